// Streams of batches, random values and initial parameters. Random bits, permutations and normals
// were computed by an independent program from the definitions in the headers.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/context.h"
#include "runtime/data.h"
#include "runtime/init.h"

typedef struct Test {
    Context context;
    Arena *arena;
    char folder[64];
    RtPath path;
    RtData data;
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
                          .path = str_format(test->arena, "%s/file.psk.d", test->folder).at};
    return 0;
}

static int teardown(void **state) {
    Test *test = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", test->folder);
    rt_data_close(&test->data);
    context_free(&test->context);
    free(test);
    return system(command);
}

static void assert_code(Test *test, const char *code) {
    assert_int_equal(test->context.diags.all.count, 1);
    assert_string_equal(diag_code_text(test->context.diags.all.at[0]->code), code);
    test->context.diags.all.count = test->context.diags.errors = 0;
}

// A file of the tokens 0, 1, …, count − 1.
static void open_tokens(Test *test, uint64_t count) {
    RtLeaf leaf = {.bound = 1000, .type = U16};
    RtDataType type;
    RtDataWriter writer;
    assert_true(rt_data_type_of(&test->path, 1, &leaf, &type));
    assert_true(rt_data_begin(&test->path, &type, count, &writer));
    for (uint16_t token = 0; token < count; token++)
        rt_data_put_bytes(&writer, &token);
    assert_true(rt_data_commit(&writer));
    rt_data_close(&test->data);
    assert_true(rt_data_open(&test->path, &test->data));
}

// Windows of 4 over 18 tokens: ⌊17 / 4⌋ = 4 samples, in batches of 3: one batch, the rest dropped.
static void windows(void **state) {
    Test *test = *state;
    open_tokens(test, 18);
    RtStream stream;
    RtStreamSpec spec = {.window = 4, .batch = 3, .take = -1};
    assert_true(rt_stream_new(&test->data, &spec, &stream));
    assert_int_equal(stream.samples, 4);
    assert_int_equal(stream.batches, 1);
    assert_int_equal(stream.leaves, 2);
    RtLeaf leaf = rt_stream_leaf(&stream, 1);
    assert_int_equal(leaf.rank, 1);
    assert_int_equal(leaf.extent[0], 4);
    assert_int_equal(leaf.bound, 1000);
    Tensor tensors[2] = {tensor_new(test->arena, U16, 2, (int64_t[]){3, 4}),
                         tensor_new(test->arena, F64, 2, (int64_t[]){3, 4})};
    assert_true(rt_stream_batch(&stream, 1, 0, tensors));
    for (int64_t i = 0; i < 12; i++) {
        assert_true(tensor_get(&tensors[0], i) == (double)i);
        assert_true(tensor_get(&tensors[1], i) == (double)(i + 1));
    }
    spec.batch = 2;
    assert_true(rt_stream_new(&test->data, &spec, &stream));
    assert_int_equal(stream.batches, 2);
    Tensor two[2] = {tensor_new(test->arena, U16, 2, (int64_t[]){2, 4}),
                     tensor_new(test->arena, U32, 2, (int64_t[]){2, 4})};
    assert_true(rt_stream_batch(&stream, 7, 1, two));
    assert_true(tensor_get(&two[0], 0) == 8 && tensor_get(&two[1], 7) == 16);
    open_tokens(test, 17); // exactly four windows and the last target
    assert_true(rt_stream_new(&test->data, &spec, &stream));
    assert_int_equal(stream.samples, 4);
    open_tokens(test, 16);
    assert_true(rt_stream_new(&test->data, &spec, &stream));
    assert_int_equal(stream.samples, 3);
}

static void too_small(void **state) {
    Test *test = *state;
    RtStream stream;
    RtStreamSpec spec = {.window = 4, .batch = 1, .take = -1};
    for (uint64_t count = 0; count < 5; count++) {
        open_tokens(test, count);
        assert_false(rt_stream_new(&test->data, &spec, &stream));
        assert_code(test, "E5008");
    }
    open_tokens(test, 5);
    assert_true(rt_stream_new(&test->data, &spec, &stream));
    spec.batch = 2;
    assert_false(rt_stream_new(&test->data, &spec, &stream));
    assert_code(test, "E5008");
}

static void take(void **state) {
    Test *test = *state;
    open_tokens(test, 11);
    RtStream stream;
    static const int64_t rows[][2] = {{-1, 5}, {0, 0}, {3, 3}, {5, 5}, {9, 5}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        RtStreamSpec spec = {.batch = 2, .take = rows[i][0]};
        assert_true(rt_stream_new(&test->data, &spec, &stream));
        assert_int_equal(stream.batches, rows[i][1]);
    }
}

// Pairs of other leaves, shuffled: sample i is (i, i + 0.5 and −i).
static void shuffled_pairs(void **state) {
    Test *test = *state;
    RtLeaf leaves[2] = {{.bound = 10, .type = U8}, {.type = F32, .rank = 1, .extent = {2}}};
    RtDataType type;
    RtDataWriter writer;
    assert_true(rt_data_type_of(&test->path, 2, leaves, &type));
    assert_true(rt_data_begin(&test->path, &type, 10, &writer));
    for (int i = 0; i < 10; i++) {
        uint8_t index = (uint8_t)i;
        float pair[2] = {(float)i + 0.5f, -(float)i};
        rt_data_put_bytes(&writer, &index);
        rt_data_put_bytes(&writer, pair);
    }
    assert_true(rt_data_commit(&writer));
    assert_true(rt_data_open(&test->path, &test->data));
    RtStream stream;
    RtStreamSpec spec = {.shuffle = true, .seed = 1, .batch = 4, .take = -1};
    assert_true(rt_stream_new(&test->data, &spec, &stream));
    assert_int_equal(stream.batches, 2);
    static const int first[] = {9, 0, 2, 1, 6, 7, 3, 5}, second[] = {1, 0, 7, 4, 3, 5, 8, 6};
    Tensor tensors[2] = {tensor_new(test->arena, U8, 1, (int64_t[]){4}),
                         tensor_new(test->arena, F32, 2, (int64_t[]){4, 2})};
    // Out of order, and back: an epoch's order does not depend on what was asked before.
    static const struct {
        uint64_t epoch, batch;
        const int *expected;
    } asked[] = {{1, 0, first}, {2, 1, second + 4}, {1, 1, first + 4}, {2, 0, second}};
    for (size_t i = 0; i < COUNT_OF(asked); i++) {
        assert_true(rt_stream_batch(&stream, asked[i].epoch, asked[i].batch, tensors));
        for (int k = 0; k < 4; k++) {
            assert_true(tensor_get(&tensors[0], k) == asked[i].expected[k]);
            assert_true(tensor_get(&tensors[1], 2 * k) == asked[i].expected[k] + 0.5);
            assert_true(tensor_get(&tensors[1], 2 * k + 1) == -asked[i].expected[k]);
        }
    }
    spec.window = 2;
    assert_false(rt_stream_new(&test->data, &spec, &stream)); // no tokens
    assert_code(test, "E5008");
}

static void bad_token(void **state) {
    Test *test = *state;
    static const char file[] = "PSKD\x01\x00\x06\x00\x00\x00idx[9]\x05\x00\x00\x00\x00\x00\x00\x00"
                               "\x00\x01\x02\x09\x04";
    Str error;
    assert_true(file_write(test->arena, test->path.path, file, sizeof file - 1, &error));
    assert_true(rt_data_open(&test->path, &test->data));
    RtStream stream;
    RtStreamSpec spec = {.window = 2, .batch = 1, .take = -1};
    assert_true(rt_stream_new(&test->data, &spec, &stream));
    Tensor tensors[2] = {tensor_new(test->arena, U8, 2, (int64_t[]){1, 2}),
                         tensor_new(test->arena, U8, 2, (int64_t[]){1, 2})};
    assert_true(rt_stream_batch(&stream, 1, 0, tensors));
    assert_false(rt_stream_batch(&stream, 1, 1, tensors));
    assert_code(test, "E5007");
}

static void permutations(void **state) {
    (void)state;
    static const uint64_t expected[3][10] = {{9, 0, 2, 1, 6, 7, 3, 5, 4, 8},
                                             {1, 0, 7, 4, 3, 5, 8, 6, 9, 2},
                                             {2, 0, 3, 4, 8, 6, 7, 1, 5, 9}};
    static const uint64_t seed_epoch[3][2] = {{1, 1}, {1, 2}, {2, 1}};
    for (int i = 0; i < 3; i++) {
        uint64_t order[10];
        rt_permutation(seed_epoch[i][0], seed_epoch[i][1], 10, order);
        assert_memory_equal(order, expected[i], sizeof order);
    }
    static uint64_t order[5000];
    static bool seen[5000];
    rt_permutation(3, 9, 5000, order);
    for (int i = 0; i < 5000; i++) {
        assert_true(order[i] < 5000 && !seen[order[i]]);
        seen[order[i]] = true;
    }
    rt_permutation(3, 9, 1, order);
    assert_int_equal(order[0], 0);
    rt_permutation(3, 9, 0, order);
}

static void random_values(void **state) {
    Test *test = *state;
    uint64_t stream = rt_random_stream(STR("blocks.0.attn.query.w"));
    assert_true(stream == 0x35e5e887824d3745);
    assert_true(rt_random_bits(7, stream, 3) == 0xf3e5f256fabad8d4);
    assert_true(rt_random_bits(0x123456789abcdef0, stream, 5000000000) == 0x99ae5493b1df8a49);
    assert_true(rt_random_uniform(7, stream, 0) == 0x1.a630504356f45p-1);
    assert_true(rt_random_uniform(7, stream, 5000000000) == 0x1.b7fb4eab51633p-1);
    static const double normals[] = {0.4487544403608037, 1.0608183663570858, 1.7142570104785368,
                                     0.30357553246344604};
    double drawn[4];
    rt_random_normals(test->arena, 7, stream, 0, 4, drawn);
    for (uint64_t i = 0; i < 4; i++) // the last places depend on the log and cosine taken
        assert_true(fabs(drawn[i] / normals[i] - 1) < 1e-14);
    for (uint64_t i = 0; i < 1000; i++)
        assert_true(rt_random_index(7, stream, i, 13) < 13);
    assert_true(rt_random_index(7, stream, 3, 1000) == 952); // ⌊0xf3e5… · 1000 / 2^64⌋
    enum { COUNT = 40000 };
    double *normal = arena_array(test->arena, double, COUNT);
    rt_random_normals(test->arena, 1, stream, 0, COUNT, normal);
    double sum = 0, squares = 0, cubes = 0, uniform = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        double z = normal[i];
        sum += z;
        squares += z * z;
        cubes += z * z * z;
        uniform += rt_random_uniform(2, stream, i);
    }
    assert_true(fabs(sum / COUNT) < 0.02); // four deviations
    assert_true(fabs(squares / COUNT - 1) < 0.03);
    assert_true(fabs(cubes / COUNT) < 0.08);
    assert_true(fabs(uniform / COUNT - 0.5) < 0.006);
}

static CoreScalar scalar(Test *test, CoreProgram *program, const char *text) {
    return core_scalar_rational(program, rational_of_text(test->arena, str_of(text)));
}

static void initial_values(void **state) {
    Test *test = *state;
    CoreProgram *program = core_program_new(&test->context, test->arena);
    CoreLeaf leaf = {.path = STR("l.w")};
    leaf.init.kind = CORE_INIT_UNIFORM;
    leaf.init.a = scalar(test, program, "-1/4");
    leaf.init.b = scalar(test, program, "1/4");
    static const double uniform[] = {-0.2409814929340341, -0.16386967538836578,
                                     0.037225434378373834};
    static const double normal[] = {0.05571986490477001, 0.0375016732332847, 0.015482262069660592};
    Tensor tensor = tensor_new(test->arena, F64, 1, (int64_t[]){3});
    assert_true(rt_init_leaf(program, &leaf, NULL, 0, &tensor, (Span){0}));
    for (int i = 0; i < 3; i++)
        assert_true(fabs(tensor_get(&tensor, i) - uniform[i]) < 1e-15);
    leaf.init.kind = CORE_INIT_NORMAL;
    leaf.init.a = scalar(test, program, "0");
    leaf.init.b = scalar(test, program, "0.02");
    assert_true(rt_init_leaf(program, &leaf, NULL, 0, &tensor, (Span){0}));
    Tensor narrow = tensor_new(test->arena, BF16, 1, (int64_t[]){3});
    assert_true(rt_init_leaf(program, &leaf, NULL, 0, &narrow, (Span){0}));
    for (int i = 0; i < 3; i++) {
        assert_true(fabs(tensor_get(&tensor, i) - normal[i]) < 1e-15);
        assert_true(fabs(tensor_get(&narrow, i) / normal[i] - 1) <= 0x1p-8);
    }
    leaf.init.kind = CORE_INIT_CONSTANT;
    leaf.init.a = scalar(test, program, "0.1");
    Tensor floats = tensor_new(test->arena, F32, 1, (int64_t[]){3});
    assert_true(rt_init_leaf(program, &leaf, NULL, 0, &floats, (Span){0}));
    assert_true(tensor_get(&floats, 2) == 0x1.99999ap-4);
    leaf.init = (CoreInit){.kind = CORE_INIT_ONES};
    assert_true(rt_init_leaf(program, &leaf, NULL, 0, &floats, (Span){0}));
    assert_true(tensor_get(&floats, 0) == 1);
    leaf.init = (CoreInit){.kind = CORE_INIT_ZEROS};
    assert_true(rt_init_leaf(program, &leaf, NULL, 0, &floats, (Span){0}));
    assert_true(tensor_get(&floats, 0) == 0);
    leaf.init.kind = CORE_INIT_CONSTANT;
    leaf.init.a = core_scalar_hyper(program, name_of_c(test->context.names, "lr"));
    assert_false(rt_init_leaf(program, &leaf, NULL, 0, &floats, (Span){0}));
    assert_code(test, "E6003");
}

static void initial_inputs(void **state) {
    Test *test = *state;
    Tensor indices = tensor_new(test->arena, U8, 1, (int64_t[]){1000}), again = indices;
    rt_init_input(&test->context.heap, STR("x"), 92, 5, &indices);
    uint32_t seen[92] = {0};
    for (int64_t i = 0; i < 1000; i++)
        seen[(int)tensor_get(&indices, i)]++;
    for (int i = 0; i < 92; i++)
        assert_true(seen[i] > 0);
    again = tensor_new(test->arena, U16, 1, (int64_t[]){10});
    rt_init_input(&test->context.heap, STR("x"), 92, 5, &again);
    for (int64_t i = 0; i < 10; i++) // whatever the type and the length
        assert_true(tensor_get(&again, i) == tensor_get(&indices, i));
    Tensor reals = tensor_new(test->arena, F32, 2, (int64_t[]){2, 2});
    rt_init_input(&test->context.heap, STR("y"), 0, 5, &reals);
    uint64_t stream = rt_random_stream(STR("y"));
    double normal[4];
    rt_random_normals(test->arena, 5, stream, 0, 4, normal);
    for (int64_t i = 0; i < 4; i++)
        assert_true(tensor_get(&reals, i) == (double)(float)normal[i]);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(windows),        TEST(too_small),      TEST(take),
        TEST(shuffled_pairs), TEST(bad_token),      TEST(permutations),
        TEST(random_values),  TEST(initial_values), TEST(initial_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
