// Files of other tools, written here byte by byte: .npy, .safetensors, idx, texts.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/context.h"
#include "runtime/data.h"

typedef struct Test {
    Context context;
    Arena *arena;
    char folder[64];
    RtPath path;
} Test;

static int setup(void **state) {
    Test *test = calloc(1, sizeof *test);
    context_init(&test->context);
    test->arena = test->context.arena;
    strcpy(test->folder, "/tmp/presk-data-XXXXXX");
    *state = test;
    if (!mkdtemp(test->folder))
        return -1;
    test->path = (RtPath){.diags = &test->context.diags,
                          .arena = test->arena,
                          .path = str_format(test->arena, "%s/file", test->folder).at};
    return 0;
}

static int teardown(void **state) {
    Test *test = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", test->folder);
    context_free(&test->context);
    free(test);
    return system(command);
}

static RtPath inside(Test *test, const char *name) {
    RtPath path = test->path;
    path.path = str_format(test->arena, "%s/%s", test->folder, name).at;
    return path;
}

static void forget(Test *test) {
    test->context.diags.all.count = test->context.diags.errors = 0;
}

static void assert_code(Test *test, const char *code) {
    assert_int_equal(test->context.diags.all.count, 1);
    assert_string_equal(diag_code_text(test->context.diags.all.at[0]->code), code);
    forget(test);
}

// Not by file_write, which waits for the disk.
static void write_bytes(Test *test, const void *at, size_t size) {
    FILE *file = fopen(test->path.path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(at, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

// ---- NumPy ----------------------------------------------------------------------------------

// A file of a version with a dictionary and data.
static void write_npy(Test *test, int version, const char *dictionary, const void *data,
                      size_t size) {
    StrBuf buf = {.arena = test->arena};
    uint32_t length = (uint32_t)strlen(dictionary);
    buf_add(&buf, (Str){"\x93NUMPY", 6});
    buf_char(&buf, (char)version);
    buf_char(&buf, 0);
    buf_add(&buf, (Str){(const char *)&length, version == 1 ? 2 : 4});
    buf_text(&buf, dictionary);
    buf_add(&buf, (Str){data, (uint32_t)size});
    Str whole = buf_str(&buf);
    write_bytes(test, whole.at, whole.size);
}

static void npy_types(void **state) {
    Test *test = *state;
    static const struct {
        const char *descr;
        DType type;
        uint32_t size;
        const char *data; // two elements
        double expected[2];
    } rows[] = {
        {"<f8", F64, 16, "\0\0\0\0\0\0\xF8\x3F\0\0\0\0\0\0\x04\xC0", {1.5, -2.5}},
        {"<f4", F32, 8, "\0\0\xC0\x3F\0\0\x20\xC0", {1.5, -2.5}},
        {"|u1", U8, 2, "\x01\xFF", {1, 255}},
        {"<u2", U16, 4, "\x01\x02\xFF\xFF", {513, 65535}},
        {"<u4", U32, 8, "\x01\0\0\0\xFF\xFF\xFF\xFF", {1, 4294967295.0}},
        {"<u8", U64, 16, "\x01\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0", {1, 4294967296.0}},
        {"|i1", U8, 2, "\x01\x7F", {1, 127}},
        {"<i2", U16, 4, "\x01\x02\xFF\x7F", {513, 32767}},
        {"<i4", U32, 8, "\x01\0\0\0\xFF\xFF\xFF\x7F", {1, 2147483647}},
        {"<i8", U64, 16, "\x01\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0", {1, 4294967296.0}},
        {"|i1", F64, 2, "\x01\xFF", {1, -1}}, // a negative one: as f64
        {"<i2", F64, 4, "\x00\x80\xFF\x7F", {-32768, 32767}},
        {"<i8", F64, 16, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x07\0\0\0\0\0\0\0", {-1, 7}},
        {"|b1", U8, 2, "\x01\x00", {1, 0}},
        {"=f4", F32, 8, "\0\0\xC0\x3F\0\0\x20\xC0", {1.5, -2.5}},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (int version = 1; version <= 3; version++) {
            Str text = str_format(test->arena,
                                  "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }    \n",
                                  rows[i].descr);
            write_npy(test, version, text.at, rows[i].data, rows[i].size);
            Tensor tensor;
            assert_true(rt_npy_read(&test->path, &tensor));
            assert_int_equal(tensor.type, rows[i].type);
            assert_int_equal(tensor.shape.rank, 1);
            for (int k = 0; k < 2; k++)
                assert_true(tensor_get(&tensor, k) == rows[i].expected[k]);
        }
    }
}

static void npy_shapes(void **state) {
    Test *test = *state;
    static const char data[6] = {1, 2, 3, 4, 5, 6};
    Tensor tensor;
    write_npy(test, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3)}", data, 6);
    assert_true(rt_npy_read(&test->path, &tensor));
    assert_int_equal(tensor.shape.rank, 2);
    assert_int_equal(tensor.shape.extent[0], 2);
    assert_true(tensor_get(&tensor, 3) == 4);
    write_npy(test, 1, "{'shape':(),\"fortran_order\":False,'descr':'|u1'}", data, 1);
    assert_true(rt_npy_read(&test->path, &tensor));
    assert_int_equal(tensor.shape.rank, 0);
    write_npy(test, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (0, 3)}", data, 0);
    assert_true(rt_npy_read(&test->path, &tensor));
    assert_int_equal(shape_count(&tensor.shape), 0);
}

static void npy_refused(void **state) {
    Test *test = *state;
    static const struct {
        const char *dictionary;
        const char *code;
    } rows[] = {
        {"{'descr': '<f8', 'fortran_order': True, 'shape': (1,)}", "E5005"},
        {"{'descr': '>f8', 'fortran_order': False, 'shape': (1,)}", "E5005"},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (4,)}", "E5005"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "E5005"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "E5005"},
        {"{'descr': '', 'fortran_order': False, 'shape': (1,)}", "E5005"},
        {"{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (1,)}", "E5005"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}", "E5004"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "E5004"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,0)}", "E5004"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "E5003"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775808,)}", "E5003"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", "E5003"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1)}", "E5003"},
        {"{'descr': '<f8', 'fortran_order': False}", "E5003"},
        {"{'descr': '<f8', 'shape': (1,)}", "E5003"},
        {"{'fortran_order': False, 'shape': (1,)}", "E5003"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'x': 1}", "E5003"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'shape': (1,)}", "E5003"},
        {"{'descr': '<f8', 'fortran_order': Falsehood, 'shape': (1,)}", "E5003"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,)} x", "E5003"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1", "E5003"},
        {"{'descr': '<f8", "E5005"},
        {"[]", "E5003"},
        {"", "E5003"},
    };
    Tensor tensor;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        write_npy(test, 1, rows[i].dictionary, "\0\0\0\0\0\0\xF8\x3F", 8);
        if (rt_npy_read(&test->path, &tensor))
            fail_msg("%s was read", rows[i].dictionary);
        assert_code(test, rows[i].code);
    }
    write_npy(test, 4, "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}", "", 1);
    assert_false(rt_npy_read(&test->path, &tensor));
    assert_code(test, "E5005");
    write_npy(test, 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", "\x02", 1);
    assert_false(rt_npy_read(&test->path, &tensor));
    assert_code(test, "E5003");
    write_npy(test, 1, "{'descr': '<i8', 'fortran_order': False, 'shape': (2,)}",
              "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01\0\0\0\0\0\x20\0", 16); // −1, 2^53 + 1
    assert_false(rt_npy_read(&test->path, &tensor));
    assert_code(test, "E5005");
    write_npy(test, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", "12345678", 8);
    Str whole, error;
    assert_true(file_read(test->arena, test->path.path, &whole, &error));
    for (uint32_t cut = 0; cut < whole.size; cut++) {
        write_bytes(test, whole.at, cut);
        assert_false(rt_npy_read(&test->path, &tensor));
        assert_int_equal(test->context.diags.errors, 1);
        forget(test);
    }
}

static void npy_written(void **state) {
    Test *test = *state;
    Tensor tensor = tensor_new(test->arena, F32, 2, (int64_t[]){2, 1}), back;
    tensor_set(&tensor, 0, 1.5);
    tensor_set(&tensor, 1, -2.5);
    assert_true(rt_npy_write(&test->path, &tensor));
    Str got, error;
    assert_true(file_read(test->arena, test->path.path, &got, &error));
    static const char dictionary[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }";
    assert_int_equal(got.size, 128 + 8);
    assert_memory_equal(got.at, "\x93NUMPY\x01\x00\x76\x00", 10);
    assert_memory_equal(got.at + 10, dictionary, sizeof dictionary - 1);
    for (size_t i = 10 + sizeof dictionary - 1; i < 127; i++)
        assert_int_equal(got.at[i], ' ');
    assert_memory_equal(got.at + 127, "\n\0\0\xC0\x3F\0\0\x20\xC0", 9);
    for (DType type = 0; type < DTYPE_COUNT; type++) {
        tensor = tensor_new(test->arena, type, 3, (int64_t[]){2, 3, 1});
        for (int64_t i = 0; i < 6; i++)
            tensor_set(&tensor, i, (double)(i * i));
        assert_true(rt_npy_write(&test->path, &tensor));
        assert_true(rt_npy_read(&test->path, &back));
        assert_int_equal(back.type, type == BF16 ? F32 : type);
        assert_true(shape_same_extents(&back.shape, &tensor.shape));
        for (int64_t i = 0; i < 6; i++)
            assert_true(tensor_get(&back, i) == (double)(i * i));
    }
    Tensor vector = tensor_new(test->arena, U8, 1, (int64_t[]){3});
    assert_true(rt_npy_write(&test->path, &vector));
    assert_true(file_read(test->arena, test->path.path, &got, &error));
    assert_non_null(
        strstr(got.at + 10, "'descr': '|u1', 'fortran_order': False, 'shape': (3,), }"));
}

// ---- safetensors ----------------------------------------------------------------------------

static void write_safetensors(Test *test, const char *header, const void *data, size_t size) {
    StrBuf buf = {.arena = test->arena};
    uint64_t length = strlen(header);
    buf_add(&buf, (Str){(const char *)&length, 8});
    buf_text(&buf, header);
    buf_add(&buf, (Str){data, (uint32_t)size});
    Str whole = buf_str(&buf);
    write_bytes(test, whole.at, whole.size);
}

static void safetensors_read(void **state) {
    Test *test = *state;
    static const char data[] = "\x80\x3F\x00\xC0"          // bf16 1, −2
                               "\0\0\0\0\0\0\xF8\x3F"      // f64 1.5
                               "\0\0\x20\xC0\0\0\x80\x3F"; // f32 −2.5, 1
    write_safetensors(test,
                      "{\"__metadata__\":{\"format\":\"pt\"},"
                      "\"z\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[12,20]},"
                      "\"a\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]},"
                      "\"m.x\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[4,12]},"
                      "\"none\":{\"dtype\":\"F64\",\"shape\":[0,3],\"data_offsets\":[20,20]}}   ",
                      data, sizeof data - 1);
    uint32_t count;
    RtNamed *tensors;
    assert_true(rt_safetensors_read(&test->path, &count, &tensors));
    assert_int_equal(count, 4);
    assert_string_equal(tensors[0].name.at, "a");
    assert_string_equal(tensors[1].name.at, "m.x");
    assert_string_equal(tensors[2].name.at, "z");
    assert_int_equal(tensors[0].tensor.type, BF16);
    assert_true(tensor_get(&tensors[0].tensor, 1) == -2);
    assert_int_equal(tensors[1].tensor.shape.rank, 0);
    assert_true(tensor_get(&tensors[1].tensor, 0) == 1.5);
    assert_int_equal(tensors[2].tensor.shape.extent[0], 2);
    assert_true(tensor_get(&tensors[2].tensor, 0) == -2.5);
    assert_int_equal(shape_count(&tensors[3].tensor.shape), 0);
    Str whole, error;
    assert_true(file_read(test->arena, test->path.path, &whole, &error));
    for (uint32_t cut = 0; cut < whole.size; cut++) {
        write_bytes(test, whole.at, cut);
        assert_false(rt_safetensors_read(&test->path, &count, &tensors));
        assert_int_equal(test->context.diags.errors, 1);
        forget(test);
    }
}

static void safetensors_refused(void **state) {
    Test *test = *state;
#define A "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"
    static const struct {
        const char *header, *code;
    } rows[] = {
        {"{" A "}", NULL},
        {"{}", "E5004"},
        {"{" A "," A "}", "E5003"}, // a name twice
        {"{" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", "E5003"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", "E5003"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", "E5004"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}", "E5004"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", "E5003"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", "E5003"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", "E5003"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}", "E5003"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]}}",
         "E5003"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}",
         "E5005"},
        {"{\"a\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]}}", "E5005"},
        {"{\"a\":{\"dtype\":\"f32\",\"shape\":[2],\"data_offsets\":[0,8]}}", "E5005"},
        {"{\"a\":{\"dtype\":32,\"shape\":[2],\"data_offsets\":[0,8]}}", "E5003"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", "E5003"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":0}}", "E5003"},
        {"{\"a\":[]}", "E5003"},
        {"[]", "E5003"},
        {"{" A, "E5003"},
        {"{" A "} x", "E5003"},
        {"\xFF", "E5003"},
        {"", "E5003"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        write_safetensors(test, rows[i].header, "12345678", 8);
        uint32_t count;
        RtNamed *tensors;
        bool read = rt_safetensors_read(&test->path, &count, &tensors);
        assert_int_equal(read, !rows[i].code);
        if (rows[i].code)
            assert_code(test, rows[i].code);
    }
}

static void safetensors_checkpoint(void **state) {
    Test *test = *state;
    RtPath path = inside(test, "model.safetensors");
    RtNamed written[2] = {{STR("l.\"w\""), tensor_new(test->arena, BF16, 2, (int64_t[]){2, 3})},
                          {STR("l.b"), tensor_new(test->arena, F64, 0, NULL)}};
    for (int64_t i = 0; i < 6; i++)
        tensor_set(&written[0].tensor, i, 0.5 * (double)i);
    tensor_set(&written[1].tensor, 0, 0.1);
    assert_true(rt_checkpoint_write(&path, STR("M"), 2, written));
    Str bytes, error;
    assert_true(file_read(test->arena, path.path, &bytes, &error));
    uint64_t header;
    memcpy(&header, bytes.at, 8);
    assert_int_equal(header % 8, 0);
    assert_int_equal(bytes.size, 8 + header + 12 + 8);
    // Read in another order and into other types.
    RtNamed read[2] = {{STR("l.b"), tensor_new(test->arena, F32, 0, NULL)},
                       {STR("l.\"w\""), tensor_new(test->arena, F64, 2, (int64_t[]){2, 3})}};
    assert_true(rt_checkpoint_read(&path, STR("M"), 2, read));
    assert_true(tensor_get(&read[0].tensor, 0) == 0x1.99999ap-4);
    assert_true(tensor_get(&read[1].tensor, 5) == 2.5);
    assert_false(rt_checkpoint_read(&path, STR("M"), 1, read)); // one too many
    assert_code(test, "E5006");
    read[0].name = STR("l.c");
    assert_false(rt_checkpoint_read(&path, STR("M"), 2, read));
    assert_code(test, "E5006");
    read[0].name = STR("l.b");
    read[1].tensor = tensor_new(test->arena, F64, 2, (int64_t[]){3, 2});
    assert_false(rt_checkpoint_read(&path, STR("M"), 2, read));
    assert_code(test, "E5006");
}

// ---- idx ------------------------------------------------------------------------------------

static const char images[] = "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03\x01\x02\x03\xFD\xFE\xFF";

static void idx_read(void **state) {
    Test *test = *state;
    Tensor tensor;
    write_bytes(test, images, sizeof images - 1);
    for (int zipped = 0; zipped < 2; zipped++) {
        if (zipped) { // by another program than ours
            Str command = str_format(test->arena, "gzip -f %s && mv %s.gz %s", test->path.path,
                                     test->path.path, test->path.path);
            assert_int_equal(system(command.at), 0);
        }
        assert_true(rt_idx_read(&test->path, &tensor));
        assert_int_equal(tensor.type, U8);
        assert_int_equal(tensor.shape.rank, 3);
        assert_int_equal(tensor.shape.extent[2], 3);
        assert_true(tensor_get(&tensor, 5) == 255);
        Str whole, error;
        assert_true(file_read(test->arena, test->path.path, &whole, &error));
        for (uint32_t cut = 0; cut < whole.size; cut++) {
            write_bytes(test, whole.at, cut);
            assert_false(rt_idx_read(&test->path, &tensor));
            assert_int_equal(test->context.diags.errors, 1);
            forget(test);
        }
        write_bytes(test, whole.at, whole.size + 1);
        assert_false(rt_idx_read(&test->path, &tensor));
        assert_code(test, "E5003");
        if (zipped) { // the stream's checksum
            char *damaged = arena_copy(test->arena, whole.at, whole.size);
            damaged[whole.size - 8] ^= 1;
            write_bytes(test, damaged, whole.size);
            assert_false(rt_idx_read(&test->path, &tensor));
            assert_code(test, "E5003");
        }
        write_bytes(test, whole.at, whole.size);
    }
}

static void idx_refused(void **state) {
    Test *test = *state;
    static const struct {
        uint32_t at;
        char byte;
        const char *code;
    } rows[] = {{0, 1, "E5003"}, {1, 8, "E5003"},         {2, 0x0D, "E5005"}, {2, 0, "E5005"},
                {3, 0, "E5005"}, {3, 13, "E5005"},        {3, 4, "E5003"},    {7, 1, "E5003"},
                {7, 3, "E5003"}, {4, (char)0xFF, "E5003"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char bytes[sizeof images];
        memcpy(bytes, images, sizeof images);
        bytes[rows[i].at] = rows[i].byte;
        write_bytes(test, bytes, sizeof images - 1);
        Tensor tensor;
        assert_false(rt_idx_read(&test->path, &tensor));
        assert_code(test, rows[i].code);
    }
    char huge[4 + 12 * 4] = {0, 0, 8, 12};
    memset(huge + 4, 0xFF, 48);
    write_bytes(test, huge, sizeof huge);
    Tensor tensor;
    assert_false(rt_idx_read(&test->path, &tensor));
    assert_code(test, "E5003");
}

// ---- texts ----------------------------------------------------------------------------------

static void texts(void **state) {
    Test *test = *state;
    static const char text[] = "héllo\n\"wörld\" 🦊e";
    // In order of code point: \n space " d e h l o r w é ö 🦊
    static const uint32_t codes[] = {10,  32,  '"', 'd',  'e',  'h',    'l',
                                     'o', 'r', 'w', 0xE9, 0xF6, 0x1F98A};
    static const unsigned char tokens[] = {5, 10, 6, 6, 7, 0, 2, 9, 11, 8, 6, 3, 2, 1, 12, 4};
    write_bytes(test, text, sizeof text - 1);
    RtPath data = inside(test, "text.psk.d");
    uint64_t count;
    RtCharacters characters;
    assert_true(rt_text_convert(&test->path, &data, 0, &count, &characters));
    assert_int_equal(count, sizeof tokens);
    assert_int_equal(characters.count, COUNT_OF(codes));
    assert_memory_equal(characters.code, codes, sizeof codes);
    Str bytes, error;
    assert_true(file_read(test->arena, data.path, &bytes, &error));
    assert_memory_equal(bytes.at, "PSKD\1\0\7\0\0\0idx[13]\x10\0\0\0\0\0\0\0", 25);
    assert_int_equal(bytes.size, 25 + sizeof tokens);
    assert_memory_equal(bytes.at + 25, tokens, sizeof tokens);
    RtPath table = inside(test, "text.chars.json");
    assert_string_equal(rt_characters_path(test->arena, data.path).at, table.path);
    assert_true(file_read(test->arena, table.path, &bytes, &error));
    assert_string_equal(bytes.at,
                        "{\"characters\": [\"\\u000a\", \" \", \"\\\"\", \"d\", \"e\", \"h\", "
                        "\"l\", \"o\", \"r\", \"w\", \"é\", \"ö\", \"🦊\"]}\n");
    RtCharacters back;
    assert_true(rt_characters_read(&table, &back));
    assert_int_equal(back.count, COUNT_OF(codes));
    assert_memory_equal(back.code, codes, sizeof codes);
    for (uint32_t i = 0; i < COUNT_OF(codes); i++)
        assert_int_equal(rt_character_index(&back, codes[i]), i);
    assert_int_equal(rt_character_index(&back, 'x'), UINT32_MAX);
    assert_int_equal(rt_character_index(&back, 0x10FFFF), UINT32_MAX);
    assert_true(rt_text_convert(&test->path, &data, 300, &count, &characters)); // two bytes a token
    assert_true(file_read(test->arena, data.path, &bytes, &error));
    assert_memory_equal(bytes.at + 10, "idx[300]\x10\0\0\0\0\0\0\0\x05\0\x0A\0", 20);
    assert_int_equal(bytes.size, 26 + 2 * sizeof tokens);
    assert_false(rt_text_convert(&test->path, &data, 12, &count, &characters));
    assert_code(test, "E5009");
}

static void texts_refused(void **state) {
    Test *test = *state;
    RtPath data = inside(test, "text.psk.d");
    uint64_t count;
    RtCharacters characters;
    static const char *const bad[] = {"",         "a\xFF",         "\xC3", "\xED\xA0\x80",
                                      "\xC0\x80", "ab\xF0\x9F\xA6"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        write_bytes(test, bad[i], strlen(bad[i]));
        assert_false(rt_text_convert(&test->path, &data, 0, &count, &characters));
        assert_code(test, "E5009");
        assert_false(file_exists(data.path));
    }
    write_bytes(test, "a\0b", 3); // NUL is a character too
    assert_true(rt_text_convert(&test->path, &data, 0, &count, &characters));
    RtPath table = inside(test, "text.chars.json");
    assert_true(rt_characters_read(&table, &characters));
    assert_int_equal(characters.count, 3);
    assert_int_equal(characters.code[0], 0);
    static const char *const tables[] = {"",
                                         "[]",
                                         "{}",
                                         "{\"characters\": 3}",
                                         "{\"characters\": [\"ab\"]}",
                                         "{\"characters\": [\"\"]}",
                                         "{\"characters\": [3]}",
                                         "{\"characters\": [\"b\", \"a\"]}",
                                         "{\"characters\": [\"a\", \"a\"]}",
                                         "{\"characters\": [], \"x\": 1}"};
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        write_bytes(test, tables[i], strlen(tables[i]));
        assert_false(rt_characters_read(&test->path, &characters));
        assert_code(test, "E5003");
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(npy_types),
        TEST(npy_shapes),
        TEST(npy_refused),
        TEST(npy_written),
        TEST(safetensors_read),
        TEST(safetensors_refused),
        TEST(safetensors_checkpoint),
        TEST(idx_read),
        TEST(idx_refused),
        TEST(texts),
        TEST(texts_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
