// Every operation of kop.def, in each type its rule allows and in several lane counts, as native
// code, on awkward numbers, bit for bit against the interpreter (which computes in C).
#include "native_support.h"

enum { ELEMENTS = 192 };

static const struct {
    const char *rule;
} rules[KRN_OP_COUNT] = {
#define KOP(name, text, arity, rule, lane, meaning) [KRN_##name] = {#rule},
#include "kernel/kop.def"
#undef KOP
};

static bool has_rule(KrnOp op) {
    return strchr(rules[op].rule, '_') != NULL;
}

// The types of one instance of an operation: what F and I stand for.
typedef struct Sorts {
    KrnScalar f, i;
} Sorts;

static DType memory_of(char sort, Sorts sorts) {
    return sort == 'F' ? (sorts.f == KRN_F64 ? F64 : F32) : sort == 'I' ? U64 : U8;
}

static KrnValue load_operand(KrnBuilder *b, char sort, Sorts sorts, uint32_t buffer, KrnValue index,
                             uint32_t lanes, int64_t stride) {
    KrnIndex at = krn_index(buffer, stride < 0 ? -stride * (lanes - 1) : 0);
    krn_index_add(&at, stride < 0 ? -stride : stride, index);
    KrnValue value = krn_load(b, &at, lanes, lanes == 1 ? 1 : stride);
    if (sort == 'T')
        return krn_convert(b, KRN_I1, value);
    return sort == 'I' && sorts.i == KRN_I32 ? krn_convert(b, KRN_I32, value) : value;
}

static void store_result(KrnBuilder *b, uint32_t buffer, KrnValue index, KrnValue value,
                         int64_t stride) {
    KrnIndex at = krn_index(buffer, 0);
    krn_index_add(&at, stride, index);
    if (krn_type_of(b->kernel, value).scalar == KRN_I32)
        value = krn_convert(b, KRN_I64, value);
    krn_store(b, &at, krn_type_of(b->kernel, value).lanes == 1 ? 1 : stride, value, false);
}

// One loop over all elements, `lanes` at a time: load the operands, one operation, store.
static Kernel *op_kernel(Fixture *f, KrnOp op, Sorts sorts, uint32_t lanes, int64_t stride) {
    Kernel *kernel = krn_new(f->arena, f->context.names, krn_op_text[op]);
    KrnBuilder b = krn_builder(kernel, f->context.names);
    const char *rule = rules[op].rule;
    uint32_t arity = krn_arity(op), buffers[3];
    int64_t size = ELEMENTS * (stride < 0 ? -stride : stride);
    for (uint32_t i = 0; i < arity; i++)
        buffers[i] = krn_buffer(&b, (const char *[]){"a", "b", "c"}[i], memory_of(rule[i], sorts),
                                size, 0, KRN_IN);
    uint32_t out = krn_buffer(&b, "out", memory_of(rule[arity + 1], sorts), size, 0, KRN_OUT);
    KrnValue index = krn_loop(&b, 0, ELEMENTS, lanes, KRN_SPLIT, 0, NULL, NULL), v[3] = {0};
    for (uint32_t i = 0; i < arity; i++)
        v[i] = load_operand(&b, rule[i], sorts, buffers[i], index, lanes, stride);
    bool shifts = op == KRN_SHL || op == KRN_SHR;
    KrnValue result = shifts       ? krn_shift(&b, op, v[0], 11)
                      : arity == 1 ? krn_op1(&b, op, v[0])
                      : arity == 2 ? krn_op2(&b, op, v[0], v[1])
                                   : krn_op3(&b, op, v[0], v[1], v[2]);
    store_result(&b, out, index, result, stride < 0 ? -stride : stride);
    krn_end(&b, 0, NULL, NULL);
    return kernel;
}

// Halves of two vectors in turns.
static Kernel *zip_kernel(Fixture *f, KrnOp op, DType type, uint32_t lanes) {
    Kernel *kernel = krn_new(f->arena, f->context.names, krn_op_text[op]);
    KrnBuilder b = krn_builder(kernel, f->context.names);
    uint32_t left = krn_buffer(&b, "a", type, ELEMENTS, 0, KRN_IN);
    uint32_t right = krn_buffer(&b, "b", type, ELEMENTS, 0, KRN_IN);
    uint32_t out = krn_buffer(&b, "out", type, ELEMENTS, 0, KRN_OUT);
    KrnValue index = krn_loop(&b, 0, ELEMENTS, lanes, KRN_SPLIT, 0, NULL, NULL);
    KrnIndex at = krn_index(left, 0);
    krn_index_add(&at, 1, index);
    KrnValue x = krn_load(&b, &at, lanes, 1);
    at.buffer = right;
    KrnValue y = krn_load(&b, &at, lanes, 1);
    at.buffer = out;
    krn_store(&b, &at, 1, krn_op2(&b, op, x, y), false);
    krn_end(&b, 0, NULL, NULL);
    return kernel;
}

typedef struct Cases {
    Vec(Kernel *) kernels;
} Cases;

static void add_case(Fixture *f, Cases *cases, Kernel *kernel) {
    vec_push(f->arena, &cases->kernels, kernel);
}

static void run_cases(Fixture *f, const Cases *cases, uint32_t target, const char *cpu) {
    Native *native = fixture_native(f, target, cpu, true);
    uint32_t count = cases->kernels.count;
    NatFunction *code = arena_array(f->arena, NatFunction, count);
    bool done = nat_compile(native, count, cases->kernels.at, code);
    assert_no_diagnostics(f);
    assert_true(done);
    for (uint32_t i = 0; i < count; i++)
        for (uint64_t seed = 1; seed <= 3; seed++)
            assert_equals_interpreter(f, cases->kernels.at[i], code[i], seed == 2 ? 3 : 1,
                                      seed == 3 ? 8 : 0, seed);
    nat_free(native);
}

static const uint32_t lane_counts[] = {1, 4, 8, 16};

static void all_operations(Fixture *f, Cases *cases) {
    for (KrnOp op = 0; op < KRN_OP_COUNT; op++)
        for (int wide = 0; has_rule(op) && wide < 2; wide++)
            for (size_t l = 0; l < COUNT_OF(lane_counts); l++) {
                Sorts sorts = {wide ? KRN_F64 : KRN_F32, wide ? KRN_I64 : KRN_I32};
                add_case(f, cases, op_kernel(f, op, sorts, lane_counts[l], 1));
            }
    for (uint32_t lanes = 2; lanes <= 64; lanes *= 2)
        for (uint32_t n = 0; n < 4; n++)
            add_case(f, cases,
                     zip_kernel(f, n % 2 ? KRN_ZIP_HIGH : KRN_ZIP_LOW, n / 2 ? F64 : F32, lanes));
}

static void skip_unless(uint32_t target) {
    if (nat_machine_target() < target) {
        print_message("skipped: this machine has no vectors of %u bits\n", target);
        skip();
    }
}

static void on_target(uint32_t target, const char *cpu) {
    Fixture f;
    Cases cases = {0};
    fixture_open(&f);
    all_operations(&f, &cases);
    assert_true(cases.kernels.count > 150);
    run_cases(&f, &cases, target, cpu);
    fixture_close(&f);
}

static void operations_in_512_bits(void **state) {
    (void)state;
    skip_unless(512);
    on_target(512, NULL);
}

static void operations_in_256_bits(void **state) {
    (void)state;
    skip_unless(256);
    on_target(256, NULL);
}

static void operations_in_128_bits(void **state) {
    (void)state;
    on_target(128, NULL);
}

// x86-64 of 2003: no fma, no AVX, no SSE 4.
static void operations_on_the_oldest_processor(void **state) {
    (void)state;
    on_target(128, "x86-64");
}

static void strides_and_odd_lanes(void **state) {
    (void)state;
    Fixture f;
    Cases cases = {0};
    fixture_open(&f);
    static const int64_t strides[] = {2, 5, -1, -3};
    static const uint32_t lanes[] = {2, 3, 4, 16, 32, 64};
    static const KrnOp ops[] = {KRN_FMA, KRN_SELECT, KRN_IADD, KRN_NOT};
    for (size_t s = 0; s < COUNT_OF(strides); s++)
        for (size_t l = 0; l < COUNT_OF(lanes); l++) {
            KrnOp op = ops[(s + l) % COUNT_OF(ops)];
            add_case(&f, &cases,
                     op_kernel(&f, op, (Sorts){KRN_F32, KRN_I64}, lanes[l], strides[s]));
        }
    run_cases(&f, &cases, 0, NULL);
    fixture_close(&f);
}

// ---- conversions, constants, memory types -------------------------------------------------------

// Values of a scalar type from memory: F32, F64 as they are, I64 from u64, others converted.
static KrnValue load_scalar(KrnBuilder *b, KrnScalar scalar, KrnValue index, uint32_t lanes) {
    DType type = scalar == KRN_F32 ? F32 : scalar == KRN_F64 ? F64 : U64;
    uint32_t buffer = krn_buffer(b, "a", type, ELEMENTS, 0, KRN_IN);
    KrnIndex at = krn_index(buffer, 0);
    krn_index_add(&at, 1, index);
    KrnValue value = krn_load(b, &at, lanes, 1);
    KrnScalar loaded = krn_load_scalar(type);
    return loaded == scalar ? value : krn_convert(b, scalar, value);
}

static Kernel *convert_kernel(Fixture *f, KrnScalar from, KrnScalar to, uint32_t lanes) {
    Kernel *kernel = krn_new(f->arena, f->context.names, "convert");
    KrnBuilder b = krn_builder(kernel, f->context.names);
    KrnValue index = krn_loop(&b, 0, ELEMENTS, lanes, KRN_WHOLE, 0, NULL, NULL);
    KrnValue value = krn_convert(&b, to, load_scalar(&b, from, index, lanes));
    DType type = to == KRN_F32 ? F32 : to == KRN_F64 ? F64 : to == KRN_I1 ? U8 : U64;
    store_result(&b, krn_buffer(&b, "out", type, ELEMENTS, 0, KRN_OUT), index, value, 1);
    krn_end(&b, 0, NULL, NULL);
    return kernel;
}

static void conversions(void **state) {
    (void)state;
    Fixture f;
    Cases cases = {0};
    fixture_open(&f);
    for (KrnScalar from = KRN_I1; from <= KRN_F64; from++)
        for (KrnScalar to = KRN_I1; to <= KRN_F64; to++)
            for (size_t l = 0; krn_can_convert(from, to) && l < COUNT_OF(lane_counts); l++)
                add_case(&f, &cases, convert_kernel(&f, from, to, lane_counts[l]));
    run_cases(&f, &cases, 0, NULL);
    run_cases(&f, &cases, 128, "x86-64");
    fixture_close(&f);
}

static Kernel *copy_kernel(Fixture *f, DType from, DType to, uint32_t lanes, bool stream) {
    Kernel *kernel = krn_new(f->arena, f->context.names, "copy");
    KrnBuilder b = krn_builder(kernel, f->context.names);
    uint32_t in = krn_buffer(&b, "in", from, ELEMENTS, 0, KRN_IN);
    uint32_t out = krn_buffer(&b, "out", to, ELEMENTS, 0, KRN_OUT);
    KrnValue index = krn_loop(&b, 0, ELEMENTS, lanes, KRN_SPLIT, 0, NULL, NULL);
    KrnIndex at = krn_index(in, 0), to_at = krn_index(out, 0);
    krn_index_add(&at, 1, index);
    krn_index_add(&to_at, 1, index);
    krn_prefetch(&b, &at);
    KrnValue value = krn_load(&b, &at, lanes, 1);
    if (!krn_can_store(krn_type_of(kernel, value).scalar, to))
        value = krn_convert(&b, krn_load_scalar(to), value);
    krn_store(&b, &to_at, 1, value, stream);
    krn_end(&b, 0, NULL, NULL);
    return kernel;
}

// All of bf16 is among the random bits only by chance, so this takes every upper half with the
// lower halves that decide a rounding, against base/number.h.
static void bf16_stores(void **state) {
    (void)state;
    static const uint16_t low[] = {0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF};
    enum { COUNT = 65536 * COUNT_OF(low) };
    Fixture f;
    fixture_open(&f);
    Kernel *kernel = krn_new(f.arena, f.context.names, "round");
    KrnBuilder b = krn_builder(kernel, f.context.names);
    uint32_t in = krn_buffer(&b, "in", F32, COUNT, 0, KRN_IN);
    uint32_t out = krn_buffer(&b, "out", BF16, COUNT, 0, KRN_OUT);
    KrnValue index = krn_loop(&b, 0, COUNT, 16, KRN_WHOLE, 0, NULL, NULL);
    KrnIndex at = krn_index(in, 0), to_at = krn_index(out, 0);
    krn_index_add(&at, 1, index);
    krn_index_add(&to_at, 1, index);
    krn_store(&b, &to_at, 1, krn_load(&b, &at, 16, 1), false);
    krn_end(&b, 0, NULL, NULL);
    uint32_t *bits = arena_array(f.arena, uint32_t, COUNT);
    uint16_t *got = arena_array(f.arena, uint16_t, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        bits[i] = i / COUNT_OF(low) << 16 | low[i % COUNT_OF(low)];
    Native *native = fixture_native(&f, 0, NULL, true);
    NatFunction code;
    assert_true(nat_compile(native, 1, &kernel, &code));
    code((void *[]){bits, got}, 0, 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        float value;
        memcpy(&value, &bits[i], sizeof value);
        if (got[i] != bf16_of_f32(value))
            fail_msg("%08x: expected %04x, got %04x", bits[i], bf16_of_f32(value), got[i]);
    }
    nat_free(native);
    fixture_close(&f);
}

static void memory_types(void **state) {
    (void)state;
    Fixture f;
    Cases cases = {0};
    fixture_open(&f);
    for (DType from = F64; from < DTYPE_COUNT; from++)
        for (DType to = F64; to < DTYPE_COUNT; to++)
            for (size_t l = 0; dtype_is_real(from) <= dtype_is_real(to) && l < 4; l++)
                add_case(&f, &cases, copy_kernel(&f, from, to, lane_counts[l], (from + l) % 2));
    run_cases(&f, &cases, 0, NULL);
    fixture_close(&f);
}

// The constant in every lane, loaded back as bits by the test.
static void constants(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f);
    Native *native = fixture_native(&f, 0, NULL, true);
    for (size_t i = 0; i < COUNT_OF(awkward); i++)
        for (int wide = 0; wide < 2; wide++) {
            DType type = wide ? F64 : F32;
            Kernel *kernel = krn_new(f.arena, f.context.names, "constant");
            KrnBuilder b = krn_builder(kernel, f.context.names);
            uint32_t out = krn_buffer(&b, "out", type, 20, 0, KRN_OUT);
            KrnType lane = krn_type(wide ? KRN_F64 : KRN_F32, 1);
            double number = wide ? awkward[i] : (double)(float)awkward[i];
            KrnValue one = krn_const_float(&b, lane, number);
            KrnIndex at = krn_index(out, 0), rest = krn_index(out, 16);
            krn_store(&b, &at, 1, krn_splat(&b, one, 16), false);
            KrnType four = krn_type(lane.scalar, 4);
            krn_store(&b, &rest, 1, krn_const_float(&b, four, number), false);
            NatFunction code;
            assert_true(nat_compile(native, 1, &kernel, &code));
            double got[20], expected[20];
            for (int j = 0; j < 20; j++)
                dtype_set(type, expected, j, awkward[i]);
            code((void *[]){got}, 0, 0);
            for (int j = 0; j < 20; j++)
                assert_true(same_element(type, expected, got, j));
        }
    nat_free(native);
    fixture_close(&f);
}

static void lane_numbers(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f);
    Kernel *kernel = krn_new(f.arena, f.context.names, "iota");
    KrnBuilder b = krn_builder(kernel, f.context.names);
    uint32_t out = krn_buffer(&b, "out", U64, 64, 0, KRN_OUT);
    KrnIndex at = krn_index(out, 0);
    krn_store(&b, &at, 1, krn_iota(&b, 64), false);
    Native *native = fixture_native(&f, 0, NULL, true);
    NatFunction code;
    assert_true(nat_compile(native, 1, &kernel, &code));
    uint64_t got[64];
    code((void *[]){got}, 0, 0);
    for (uint64_t i = 0; i < 64; i++)
        assert_int_equal(got[i], i);
    nat_free(native);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_in_512_bits),
        cmocka_unit_test(operations_in_256_bits),
        cmocka_unit_test(operations_in_128_bits),
        cmocka_unit_test(operations_on_the_oldest_processor),
        cmocka_unit_test(strides_and_odd_lanes),
        cmocka_unit_test(conversions),
        cmocka_unit_test(memory_types),
        cmocka_unit_test(bf16_stores),
        cmocka_unit_test(constants),
        cmocka_unit_test(lane_numbers),
    };
    return cmocka_run_group_tests_name("native operations", tests, NULL, NULL);
}
