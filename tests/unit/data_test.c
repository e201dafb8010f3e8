// Sample files and data types: the examples of the format byte by byte, and every kind of damage.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/context.h"
#include "runtime/data.h"

typedef struct Test {
    Context context;
    char folder[64];
    RtPath path; // FOLDER/file.psk.d
} Test;

static int setup(void **state) {
    Test *test = calloc(1, sizeof *test);
    context_init(&test->context);
    strcpy(test->folder, "/tmp/presk-data-XXXXXX");
    *state = test;
    if (!mkdtemp(test->folder))
        return -1;
    Arena *arena = test->context.arena;
    test->path = (RtPath){.diags = &test->context.diags,
                          .arena = arena,
                          .path = str_format(arena, "%s/file.psk.d", test->folder).at};
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

// The only diagnostic so far has this code; it is then forgotten.
static void assert_code(Test *test, const char *code) {
    assert_int_equal(test->context.diags.all.count, 1);
    assert_string_equal(diag_code_text(test->context.diags.all.at[0]->code), code);
    test->context.diags.all.count = 0;
    test->context.diags.errors = 0;
}

// Not by file_write, which waits for the disk.
static void write_bytes(Test *test, const void *at, size_t size) {
    FILE *file = fopen(test->path.path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(at, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static Str read_bytes(Test *test) {
    Str text, error;
    assert_true(file_read(test->context.arena, test->path.path, &text, &error));
    return text;
}

// ---- types ----------------------------------------------------------------------------------

static void closed_types(void **state) {
    Test *test = *state;
    static const struct {
        const char *text;
        uint32_t leaves;
        uint64_t bytes;
    } rows[] = {
        {"(idx[64][seq: 8], idx[64][seq: 8])", 2, 16},
        {"ℝ[batch: 2, model: 4]", 1, 64},
        {"Real[3]", 1, 24},
        {"ℝ[]", 1, 8},
        {"ℝ", 1, 8},
        {"idx[256]", 1, 1},
        {"idx[257][2, 3]", 1, 12},
        {"idx[65537]", 1, 4},
        {"idx[4_294_967_297]", 1, 8},
        {" ( ℝ[ 2 ] ,\n idx[2] ) ", 2, 17},
        {"((ℝ, ℝ[2]), (idx[3]))", 3, 25},
        {"idx[18446744073709551615]", 1, 8},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        RtDataType type;
        assert_true(rt_data_type(&test->path, str_of(rows[i].text), &type));
        assert_int_equal(type.count, rows[i].leaves);
        assert_int_equal(type.bytes, rows[i].bytes);
    }
    RtDataType type;
    assert_true(rt_data_type(&test->path, STR("(ℝ[batch: 2, 4], idx[300][θ: 5])"), &type));
    assert_string_equal(type.leaves[0].axis[0].at, "batch");
    assert_int_equal(type.leaves[0].axis[1].size, 0);
    assert_int_equal(type.leaves[0].extent[1], 4);
    assert_int_equal(type.leaves[0].bound, 0);
    assert_int_equal(type.leaves[1].bound, 300);
    assert_int_equal(type.leaves[1].type, U16);
    assert_int_equal(type.leaves[1].offset, 64);
    assert_string_equal(rt_leaf_text(test->context.arena, &type.leaves[1]).at, "idx[300][θ: 5]");
    assert_string_equal(rt_leaf_text(test->context.arena, &type.leaves[0]).at, "ℝ[batch: 2, 4]");
    assert_true(rt_data_type(&test->path, STR("params nn.MiniGPT"), &type));
    assert_string_equal(type.model.at, "nn.MiniGPT");
    assert_int_equal(type.count, 0);
}

static void open_types(void **state) {
    Test *test = *state;
    static const char *const texts[] = {
        "ℝ[..., 4]",
        "ℝ[D]",
        "idx[0][2]",
        "nat",
        "ℝ ℝ",
        "((ℝ, ℝ)",
        "",
        "(",
        "()",
        "ℝ[",
        "ℝ[2",
        "ℝ[2,]",
        "ℝ[0]",
        "ℝ[a: 0, 2]",
        "ℝ[-1]",
        "ℝ[2.5]",
        "ℝ[2 * 3]",
        "ℝ[a: b]",
        "idx",
        "idx[]",
        "idx[N]",
        "param ℝ",
        "params",
        "params 3",
        "params A B",
        "(params A, ℝ)",
        "ℝ,",
        "ℝ)",
        "ℝ[a: 2, a: 3]",
        "λ",
        "ℝ[1,1,1,1,1,1,1,1,1,1,1,1,1]", // 13 axes
        "idx[18446744073709551616]",
        "ℝ[9223372036854775808]", // too large a number
        "ℝ[4294967296, 4294967296]",
        "(ℝ[1000000000000000000], ℝ[1000000000000000000])",
        "ℝ[99999999999999999999999999]",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        RtDataType type;
        if (rt_data_type(&test->path, str_of(texts[i]), &type))
            fail_msg("`%s` was taken for a data type", texts[i]);
        assert_code(test, "E9001");
    }
    RtDataType type;
    StrBuf deep = {.arena = test->context.arena};
    for (int i = 0; i < 100000; i++)
        buf_char(&deep, '(');
    assert_false(rt_data_type(&test->path, buf_str(&deep), &type));
    assert_code(test, "E9001");
    assert_false(rt_data_type(&test->path, (Str){"\xFF\0\xC3", 3}, &type));
    assert_code(test, "E9001");
}

// ---- files byte by byte ---------------------------------------------------------------------

// Version 1, (idx[64][seq: 8], idx[64][seq: 8]): samples of 16 bytes.
static void pairs_of_windows(void **state) {
    Test *test = *state;
    static const char expected[] =
        "PSKD\x01\x00\x22\x00\x00\x00(idx[64][seq: 8], idx[64][seq: 8])"
        "\x02\x00\x00\x00\x00\x00\x00\x00"
        "\x00\x01\x02\x03\x04\x05\x06\x07\x01\x02\x03\x04\x05\x06\x07\x08"
        "\x3F\x3E\x3D\x3C\x3B\x3A\x39\x38\x00\x00\x00\x00\x00\x00\x00\x00";
    RtLeaf leaf = {.bound = 64, .type = U8, .rank = 1, .extent = {8}, .axis = {STR("seq")}};
    RtDataType type;
    RtDataWriter writer;
    assert_true(rt_data_type_of(&test->path, 2, (RtLeaf[]){leaf, leaf}, &type));
    assert_true(rt_data_begin(&test->path, &type, 2, &writer));
    Tensor tensor = tensor_new(test->context.arena, U32, 1, (int64_t[]){8}); // another index type
    for (int leaf_number = 0; leaf_number < 2; leaf_number++) {
        for (int i = 0; i < 8; i++)
            tensor_set(&tensor, i, leaf_number + i);
        rt_data_put(&writer, &tensor);
    }
    for (int i = 0; i < 8; i++)
        tensor_set(&tensor, i, 63 - i);
    rt_data_put(&writer, &tensor);
    rt_data_put_bytes(&writer, "\0\0\0\0\0\0\0");
    assert_true(rt_data_commit(&writer));
    Str bytes = read_bytes(test);
    assert_int_equal(bytes.size, sizeof expected - 1);
    assert_memory_equal(bytes.at, expected, bytes.size);

    RtData data;
    assert_true(rt_data_open(&test->path, &data));
    assert_int_equal(data.samples, 2);
    assert_int_equal(data.type.bytes, 16);
    Tensor back = tensor_new(test->context.arena, U16, 1, (int64_t[]){8});
    assert_true(rt_data_get(&data, 1, 0, &back));
    for (int i = 0; i < 8; i++)
        assert_true(tensor_get(&back, i) == 63 - i);
    Tensor reals = tensor_new(test->context.arena, F32, 1, (int64_t[]){8}); // exact injection
    assert_true(rt_data_get(&data, 0, 1, &reals));
    for (int i = 0; i < 8; i++)
        assert_true(tensor_get(&reals, i) == 1 + i);
    rt_data_close(&data);
}

// Version 1 reals: 64, 24 and 8 bytes a sample.
static void reals(void **state) {
    Test *test = *state;
    static const struct {
        const char *text;
        uint64_t bytes;
        uint32_t rank;
        int64_t extent[2];
    } rows[] = {
        {"ℝ[batch: 2, model: 4]", 64, 2, {2, 4}}, {"Real[3]", 24, 1, {3}}, {"ℝ[]", 8, 0, {0}}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        StrBuf buf = {.arena = test->context.arena};
        uint32_t size = (uint32_t)strlen(rows[i].text);
        buf_add(&buf, (Str){"PSKD\1\0", 6});
        buf_add(&buf, (Str){(const char *)&size, 4});
        buf_text(&buf, rows[i].text);
        buf_add(&buf, (Str){"\1\0\0\0\0\0\0\0", 8});
        for (uint64_t k = 0; k < rows[i].bytes / 8; k++) {
            double value = 0.1 * (double)k - 0.25;
            buf_add(&buf, (Str){(const char *)&value, 8});
        }
        Str whole = buf_str(&buf);
        write_bytes(test, whole.at, whole.size);
        Tensor tensor;
        assert_true(rt_tensor_read(&test->path, &tensor));
        assert_int_equal(tensor.type, F64);
        assert_int_equal(tensor.shape.rank, rows[i].rank);
        for (uint64_t k = 0; k < rows[i].bytes / 8; k++)
            assert_true(tensor_get(&tensor, (int64_t)k) == 0.1 * (double)k - 0.25);
        for (uint32_t cut = 0; cut < whole.size; cut++) {
            write_bytes(test, whole.at, cut);
            assert_false(rt_tensor_read(&test->path, &tensor));
            assert_true(test->context.diags.errors == 1);
            test->context.diags.all.count = test->context.diags.errors = 0;
        }
    }
}

// Version 2: a leaf narrower than f64.
static void narrow_reals(void **state) {
    Test *test = *state;
    static const char expected[] =
        "PSKD\x02\x00\x17\x00\x00\x00(ℝ[2], ℝ, idx[3], ℝ)"
        "\x01\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x01\x02\x00\x00"
        "\x00\x00\x80\x3F\x00\x00\x00\xC0"  // f32 1, −2
        "\xCD\x3D"                          // bf16 of 0.1
        "\x02"                              // index
        "\x9A\x99\x99\x99\x99\x99\xB9\x3F"; // f64 0.1
    _Static_assert(sizeof "(ℝ[2], ℝ, idx[3], ℝ)" - 1 == 0x1A, "length of the type's text");
    char bytes[sizeof expected];
    memcpy(bytes, expected, sizeof expected);
    bytes[6] = 0x1A;
    RtLeaf leaves[4] = {{.type = F32, .rank = 1, .extent = {2}},
                        {.type = BF16},
                        {.type = U8, .bound = 3},
                        {.type = F64}};
    RtDataType type;
    RtDataWriter writer;
    assert_true(rt_data_type_of(&test->path, 4, leaves, &type));
    assert_true(rt_data_begin(&test->path, &type, 1, &writer));
    Tensor pair = tensor_new(test->context.arena, F64, 1, (int64_t[]){2});
    Tensor one = tensor_new(test->context.arena, F64, 0, NULL);
    Tensor index = tensor_new(test->context.arena, U64, 0, NULL);
    tensor_set(&pair, 0, 1);
    tensor_set(&pair, 1, -2);
    tensor_set(&one, 0, 0.1);
    tensor_set(&index, 0, 2);
    rt_data_put(&writer, &pair);
    rt_data_put(&writer, &one);
    rt_data_put(&writer, &index);
    rt_data_put(&writer, &one);
    assert_true(rt_data_commit(&writer));
    Str got = read_bytes(test);
    assert_int_equal(got.size, sizeof bytes - 1);
    assert_memory_equal(got.at, bytes, got.size);
    RtData data;
    assert_true(rt_data_open(&test->path, &data));
    assert_int_equal(data.version, 2);
    assert_true(rt_data_get(&data, 0, 1, &one));
    assert_true(tensor_get(&one, 0) == 0x1.9ap-4);
    Tensor narrow = tensor_new(test->context.arena, BF16, 0, NULL);
    assert_true(rt_data_get(&data, 0, 3, &narrow));
    assert_true(tensor_get(&narrow, 0) == 0x1.9ap-4);
    rt_data_close(&data);
}

static void put_u64(Test *test, uint32_t offset, uint64_t value, uint32_t size, const char *code) {
    Str whole = read_bytes(test);
    char *copy = arena_copy(test->context.arena, whole.at, whole.size);
    memcpy(copy + offset, &value, size);
    write_bytes(test, copy, whole.size);
    RtData data;
    if (code) {
        assert_false(rt_data_open(&test->path, &data));
        assert_code(test, code);
    } else {
        assert_true(rt_data_open(&test->path, &data));
        rt_data_close(&data);
    }
    write_bytes(test, whole.at, whole.size);
}

static void damaged_headers(void **state) {
    Test *test = *state;
    static const char file[] = "PSKD\x02\x00\x0E\x00\x00\x00(ℝ[1], idx[3])"
                               "\x02\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x02\x00"
                               "\x80\x3F\x02\x80\x3F\x01";
    char bytes[sizeof file];
    memcpy(bytes, file, sizeof file);
    bytes[6] = sizeof "(ℝ[1], idx[3])" - 1;
    uint32_t text = (uint32_t)bytes[6], count = 10 + text, leaves = count + 8;
    write_bytes(test, bytes, sizeof bytes - 1);
    put_u64(test, 0, 'P', 1, NULL); // as it was
    put_u64(test, 0, 'p', 1, "E5003");
    put_u64(test, 4, 0, 2, "E5005");
    put_u64(test, 4, 3, 2, "E5005");
    put_u64(test, 4, 1, 2, "E5004"); // then the encodings are taken for data
    put_u64(test, 6, text + 1, 4, "E5003");
    put_u64(test, 6, text - 1, 4, "E5003");
    put_u64(test, 6, UINT32_MAX, 4, "E5003");
    put_u64(test, count, 1, 8, "E5004");
    put_u64(test, count, 3, 8, "E5004");
    put_u64(test, count, UINT64_MAX, 8, "E5003");
    put_u64(test, count, UINT64_MAX / 3 + 1, 8, "E5003"); // whose product is 1 mod 2^64
    put_u64(test, leaves, 3, 4, "E5003");
    put_u64(test, leaves, 1, 4, "E5003");
    put_u64(test, leaves, UINT32_MAX, 4, "E5003");
    put_u64(test, leaves + 4, 3, 1, "E5003");
    put_u64(test, leaves + 4, 0, 1, "E5004"); // f64 would be longer
    put_u64(test, leaves + 5, 1, 1, "E5003"); // an index has no narrow encoding
    StrBuf longer = {.arena = test->context.arena};
    buf_add(&longer, (Str){bytes, sizeof bytes});
    write_bytes(test, buf_str(&longer).at, sizeof bytes);
    RtData data;
    assert_false(rt_data_open(&test->path, &data));
    assert_code(test, "E5004");
    unlink(test->path.path);
    assert_false(rt_data_open(&test->path, &data));
    assert_code(test, "E5001");
}

static void index_out_of_range(void **state) {
    Test *test = *state;
    static const char file[] =
        "PSKD\x01\x00\x0A\x00\x00\x00idx[64][3]\x02\x00\x00\x00\x00\x00\x00\x00"
        "\x00\x01\x3F\x00\x40\x01";
    write_bytes(test, file, sizeof file - 1);
    RtData data;
    assert_true(rt_data_open(&test->path, &data));
    Tensor tensor = tensor_new(test->context.arena, U8, 1, (int64_t[]){3});
    assert_true(rt_data_get(&data, 0, 0, &tensor));
    assert_false(rt_data_get(&data, 1, 0, &tensor));
    assert_string_equal(test->context.diags.all.at[0]->message.at + strlen(test->path.path),
                        ": sample 1 holds 64, which is not an index below 64");
    assert_code(test, "E5007");
    rt_data_close(&data);
}

// Whatever the bytes, there is a diagnostic or a file that reads well.
static void random_damage(void **state) {
    Test *test = *state;
    static const char file[] = "PSKD\x02\x00\x24\x00\x00\x00(ℝ[a: 2], (idx[300], Real[1, 1])  )"
                               "\x03\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x01\x00\x02"
                               "0123456789ab0123456789ab0123456789ab";
    char bytes[sizeof file];
    memcpy(bytes, file, sizeof file);
    bytes[6] = (char)(strchr(file + 10, '\x03') - (file + 10));
    uint64_t random = 1;
    uint32_t opened = 0;
    int memory = memfd_create("damaged", 0); // thousands of files on a disk take long
    RtPath path = test->path;
    path.path = str_format(test->context.arena, "/proc/self/fd/%d", memory).at;
    for (int i = 0; i < 4000; i++) {
        char copy[sizeof file];
        memcpy(copy, bytes, sizeof file);
        random = random * 6364136223846793005 + 1442695040888963407;
        size_t size = sizeof file - 1;
        for (uint64_t r = random >> 20, n = i % 4; n > 0; n--, r >>= 12)
            copy[r % size] = (char)(r >> 5);
        if (i % 5 == 0)
            size = random >> 33 & 127;
        size = MIN(size, sizeof file - 1);
        assert_int_equal(pwrite(memory, copy, size, 0), size);
        assert_int_equal(ftruncate(memory, (off_t)size), 0);
        RtData data;
        bool open = rt_data_open(&path, &data);
        assert_int_equal(test->context.diags.errors, open ? 0 : 1);
        if (open) {
            for (uint32_t leaf = 0; leaf < data.type.count; leaf++) {
                const RtLeaf *l = &data.type.leaves[leaf];
                Tensor tensor = tensor_new(test->context.arena, F64, l->rank, l->extent);
                for (uint64_t sample = 0; sample < data.samples; sample++)
                    rt_data_get(&data, sample, leaf, &tensor);
            }
            rt_data_close(&data);
            opened++;
        }
        test->context.diags.all.count = test->context.diags.errors = 0;
    }
    close(memory);
    assert_true(opened > 700); // at least the undamaged quarter, less those cut off
}

static void abandoned(void **state) {
    Test *test = *state;
    write_bytes(test, "old", 3);
    RtLeaf leaf = {.type = F64};
    RtDataType type;
    RtDataWriter writer;
    assert_true(rt_data_type_of(&test->path, 1, &leaf, &type));
    assert_true(rt_data_begin(&test->path, &type, 5, &writer));
    rt_data_put_bytes(&writer, "12345678");
    rt_data_abandon(&writer);
    assert_string_equal(read_bytes(test).at, "old");
    leaf = (RtLeaf){.type = F64, .rank = 2, .extent = {3, 0}};
    assert_false(rt_data_type_of(&test->path, 1, &leaf, &type));
    assert_code(test, "E5003");
    RtPath nowhere = test->path;
    nowhere.path = "/no/such/folder/file.psk.d";
    leaf = (RtLeaf){.type = F64};
    assert_true(rt_data_type_of(&nowhere, 1, &leaf, &type));
    assert_false(rt_data_begin(&nowhere, &type, 1, &writer));
    assert_code(test, "E5002");
}

// A whole tensor through a file; strides are followed.
static void tensors(void **state) {
    Test *test = *state;
    Tensor tensor = tensor_new(test->context.arena, F64, 2, (int64_t[]){40, 30});
    for (int64_t i = 0; i < 1200; i++)
        tensor_set(&tensor, i, 1.0 / (double)(i + 1));
    Tensor transposed = tensor;
    transposed.shape = (Shape){.rank = 2, .extent = {30, 40}, .stride = {1, 30}};
    Tensor back;
    assert_true(rt_tensor_write(&test->path, &transposed, 0));
    assert_true(rt_tensor_read(&test->path, &back));
    assert_true(tensor_same_bits(&transposed, &back, NULL));
    Tensor indices = tensor_new(test->context.arena, U8, 1, (int64_t[]){4});
    tensor_set(&indices, 3, 9);
    assert_true(rt_tensor_write(&test->path, &indices, 10));
    assert_memory_equal(read_bytes(test).at + 10, "idx[10][4]", 10);
    assert_true(rt_tensor_read(&test->path, &back));
    assert_int_equal(back.type, U8);
    static const char two[] =
        "PSKD\x01\x00\x06\x00\x00\x00idx[2]\x02\x00\x00\x00\x00\x00\x00\x00\x00\x01";
    write_bytes(test, two, sizeof two - 1);
    assert_false(rt_tensor_read(&test->path, &back)); // two samples are no tensor
    assert_code(test, "E5006");
}

// ---- checkpoints ----------------------------------------------------------------------------

static RtNamed *parameters(Test *test, DType type) {
    RtNamed *tensors = arena_array(test->context.arena, RtNamed, 2);
    tensors[0] =
        (RtNamed){STR("layer.w"), tensor_new(test->context.arena, type, 2, (int64_t[]){2, 3})};
    tensors[1] =
        (RtNamed){STR("layer.b"), tensor_new(test->context.arena, type, 1, (int64_t[]){3})};
    return tensors;
}

static void checkpoints(void **state) {
    Test *test = *state;
    for (DType type = F64; type <= BF16; type++) {
        RtNamed *written = parameters(test, type), *read = parameters(test, type);
        for (int64_t i = 0; i < 6; i++)
            tensor_set(&written[0].tensor, i, 0.1 * (double)i);
        for (int64_t i = 0; i < 3; i++)
            tensor_set(&written[1].tensor, i, -3.5 * (double)i);
        assert_true(rt_checkpoint_write(&test->path, STR("MiniGPT"), 2, written));
        Str bytes = read_bytes(test);
        uint32_t header = type == F64 ? 10 + 14 + 8 : 10 + 14 + 8 + 4 + 2;
        assert_memory_equal(bytes.at + 10, "params MiniGPT", 14);
        assert_int_equal(bytes.at[4], type == F64 ? 1 : 2);
        assert_int_equal(bytes.size, header + 9 * dtype_size(type));
        assert_true(rt_checkpoint_read(&test->path, STR("MiniGPT"), 2, read));
        for (int i = 0; i < 2; i++)
            assert_true(tensor_same_bits(&written[i].tensor, &read[i].tensor, NULL));
        // Another model, another count of leaves, other shapes, another length.
        assert_false(rt_checkpoint_read(&test->path, STR("GPT"), 2, read));
        assert_code(test, "E5006");
        assert_false(rt_checkpoint_read(&test->path, STR("MiniGPT"), 1, read));
        assert_code(test, type == F64 ? "E5004" : "E5003");
        read[1].tensor = tensor_new(test->context.arena, type, 1, (int64_t[]){4});
        assert_false(rt_checkpoint_read(&test->path, STR("MiniGPT"), 2, read));
        assert_code(test, "E5004");
        write_bytes(test, bytes.at, bytes.size + 1); // and the NUL behind
        assert_false(rt_checkpoint_read(&test->path, STR("MiniGPT"), 2, parameters(test, type)));
        assert_code(test, "E5004");
        write_bytes(test, bytes.at, bytes.size);
        RtData data;
        assert_true(rt_data_open(&test->path, &data)); // opening needs no program,
        assert_false(rt_data_has_layout(&data));       // looking does
        assert_code(test, "E9001");
        assert_false(rt_tensor_read(&test->path, &read[0].tensor));
        assert_code(test, "E9001");
        rt_data_close(&data);
    }
}

// Checkpoints are compared without their program, encoded alike or not.
static void differences(void **state) {
    Test *test = *state;
    RtPath other = test->path;
    other.path = str_format(test->context.arena, "%s/other.psk.d", test->folder).at;
    RtNamed *wide = parameters(test, F64), *narrow = parameters(test, F32);
    for (int64_t i = 0; i < 6; i++) {
        tensor_set(&wide[0].tensor, i, (double)i);
        tensor_set(&narrow[0].tensor, i, (double)i);
    }
    tensor_set(&wide[1].tensor, 0, NAN);
    tensor_set(&narrow[1].tensor, 0, NAN);
    assert_true(rt_checkpoint_write(&test->path, STR("M"), 2, wide));
    for (int differ = 0; differ < 2; differ++) {
        if (differ) {
            tensor_set(&narrow[0].tensor, 4, 6.5);
            tensor_set(&narrow[1].tensor, 2, -1);
        }
        assert_true(rt_checkpoint_write(&other, STR("M"), 2, narrow));
        RtData a, b;
        RtDifference found;
        assert_true(rt_data_open(&test->path, &a));
        assert_true(rt_data_open(&other, &b));
        assert_true(rt_data_diff(&a, &b, &found));
        assert_int_equal(found.values, 9);
        assert_int_equal(found.different, differ ? 2 : 0);
        if (differ)
            assert_true(found.element == 4 && found.a == 4 && found.b == 6.5 &&
                        found.largest == 2.5);
        rt_data_close(&a);
        rt_data_close(&b);
    }
    assert_true(rt_checkpoint_write(&other, STR("N"), 2, narrow));
    RtData a, b;
    RtDifference found;
    assert_true(rt_data_open(&test->path, &a));
    assert_true(rt_data_open(&other, &b));
    assert_false(rt_data_diff(&a, &b, &found));
    assert_code(test, "E5006");
    rt_data_close(&a);
    rt_data_close(&b);
}

static void empty_checkpoint(void **state) {
    Test *test = *state;
    assert_true(rt_checkpoint_write(&test->path, STR("M"), 0, NULL));
    assert_true(rt_checkpoint_read(&test->path, STR("M"), 0, NULL));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(closed_types), TEST(open_types),      TEST(pairs_of_windows),   TEST(reals),
        TEST(narrow_reals), TEST(damaged_headers), TEST(index_out_of_range), TEST(random_damage),
        TEST(abandoned),    TEST(tensors),         TEST(checkpoints),        TEST(empty_checkpoint),
        TEST(differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
