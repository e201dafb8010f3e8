// Loops, accumulators, split ranges, tails, index loads and streaming stores as native code, bit
// for bit against the interpreter; and products against sums computed here.
#include "native_support.h"

static KrnValue load_at(KrnBuilder *b, uint32_t buffer, int64_t offset, int64_t c0, KrnValue v0,
                        int64_t c1, KrnValue v1, uint32_t lanes) {
    KrnIndex at = krn_index(buffer, offset);
    krn_index_add(&at, c0, v0);
    krn_index_add(&at, c1, v1);
    return krn_load(b, &at, lanes, 1);
}

static void store_at(KrnBuilder *b, uint32_t buffer, int64_t offset, int64_t c0, KrnValue v0,
                     int64_t c1, KrnValue v1, KrnValue value, bool stream) {
    KrnIndex at = krn_index(buffer, offset);
    krn_index_add(&at, c0, v0);
    krn_index_add(&at, c1, v1);
    krn_store(b, &at, 1, value, stream);
}

typedef struct Product {
    int64_t m, n, k;
    uint32_t rows, lanes; // the tile: rows × lanes
    DType type;
    bool stream;
} Product;

// One tile of out = x · y at row `i` and column `j`, `rows` × `lanes`.
static void product_tile(KrnBuilder *b, const Product *p, const uint32_t *buffers, KrnValue i,
                         KrnValue j, uint32_t rows, uint32_t lanes) {
    KrnValue sums[16];
    KrnType type = krn_type(krn_float_of(dtype_arithmetic(p->type)), lanes);
    KrnValue zero = krn_const_float(b, type, 0);
    for (uint32_t r = 0; r < rows; r++)
        sums[r] = zero;
    KrnValue k = krn_loop(b, 0, p->k, 1, KRN_WHOLE, rows, sums, sums);
    KrnIndex at = krn_index(buffers[1], 0);
    krn_index_add(&at, p->n, k);
    krn_index_add(&at, 1, j);
    KrnValue y = krn_load(b, &at, lanes, 1);
    for (uint32_t r = 0; r < rows; r++) {
        KrnValue x = load_at(b, buffers[0], r * p->k, p->k, i, 1, k, 1);
        sums[r] = krn_op3(b, KRN_FMA, lanes == 1 ? x : krn_splat(b, x, lanes), y, sums[r]);
    }
    krn_end(b, rows, sums, sums);
    for (uint32_t r = 0; r < rows; r++)
        store_at(b, buffers[2], r * p->n, p->n, i, 1, j, sums[r], p->stream);
}

// out[m, n] = x[m, k] · y[k, n]: whole tiles split along the rows, the rest of the columns in
// scalars, the rest of the rows in a tail loop.
static Kernel *product_kernel(Fixture *f, const Product *p) {
    Kernel *kernel = krn_new(f->arena, f->context.names, "dot");
    KrnBuilder b = krn_builder(kernel, f->context.names);
    uint32_t buffers[3] = {krn_buffer(&b, "x", p->type, p->m * p->k, 0, KRN_IN),
                           krn_buffer(&b, "y", p->type, p->k * p->n, 0, KRN_IN),
                           krn_buffer(&b, "out", p->type, p->m * p->n, 0, KRN_OUT)};
    int64_t full_rows = p->m / p->rows * p->rows, full = p->n / p->lanes * p->lanes;
    for (int part = 0; part < 2; part++) {
        KrnValue i = part == 0 ? krn_loop(&b, 0, full_rows, p->rows, KRN_SPLIT, 0, NULL, NULL)
                               : krn_loop(&b, full_rows, p->m, 1, KRN_TAIL, 0, NULL, NULL);
        uint32_t rows = part == 0 ? p->rows : 1;
        KrnValue j = krn_loop(&b, 0, full, p->lanes, KRN_WHOLE, 0, NULL, NULL);
        product_tile(&b, p, buffers, i, j, rows, p->lanes);
        krn_end(&b, 0, NULL, NULL);
        j = krn_loop(&b, full, p->n, 1, KRN_WHOLE, 0, NULL, NULL);
        product_tile(&b, p, buffers, i, j, rows, 1);
        krn_end(&b, 0, NULL, NULL);
        krn_end(&b, 0, NULL, NULL);
    }
    return kernel;
}

static const Product products[] = {
    {7, 13, 11, 2, 4, F32, false}, {6, 32, 9, 6, 16, F32, true},  {5, 9, 0, 2, 8, F32, false},
    {1, 1, 1, 1, 1, F64, false},   {12, 37, 5, 4, 8, F64, true},  {3, 64, 17, 1, 16, BF16, true},
    {6, 24, 130, 3, 4, F64, true}, {9, 16, 3, 4, 16, BF16, true}, {2, 5, 6, 4, 8, F32, false},
    {8, 96, 21, 2, 32, F32, true}, {4, 64, 7, 2, 64, F32, true},
};

static void products_in_any_split(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f);
    static const struct {
        uint32_t target;
        const char *cpu;
    } targets[] = {{0, NULL}, {128, NULL}, {128, "x86-64"}};
    Kernel *kernels[COUNT_OF(products)];
    NatFunction code[COUNT_OF(products)];
    for (size_t i = 0; i < COUNT_OF(products); i++)
        kernels[i] = product_kernel(&f, &products[i]);
    for (size_t t = 0; t < COUNT_OF(targets); t++) {
        Native *native = fixture_native(&f, targets[t].target, targets[t].cpu, true);
        assert_true(nat_compile(native, COUNT_OF(products), kernels, code));
        for (size_t i = 0; i < COUNT_OF(products); i++)
            for (int64_t pieces = 1; pieces <= 7; pieces += 2)
                for (size_t shift = 0; shift < 3; shift++)
                    assert_equals_interpreter(&f, kernels[i], code[i], pieces, 8 * shift,
                                              (uint64_t)pieces);
        nat_free(native);
    }
    assert_no_diagnostics(&f);
    fixture_close(&f);
}

// Against a sum written here: one fma a term, in increasing k.
static void a_product_is_its_definition(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f);
    const Product p = {6, 32, 40, 3, 16, F32, false};
    Kernel *kernel = product_kernel(&f, &p);
    float x[6 * 40], y[40 * 32], got[6 * 32];
    uint64_t seed = 9;
    for (size_t i = 0; i < COUNT_OF(x); i++)
        x[i] = (float)(int32_t)next_random(&seed) * 0x1p-31f;
    for (size_t i = 0; i < COUNT_OF(y); i++)
        y[i] = (float)(int32_t)next_random(&seed) * 0x1p-31f;
    Native *native = fixture_native(&f, 0, NULL, true);
    NatFunction code;
    assert_true(nat_compile(native, 1, &kernel, &code));
    code((void *[]){x, y, got}, 0, kernel->split_count);
    bool fused = false; // some sum differs from that with two roundings a term
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 32; j++) {
            float sum = 0, twice = 0;
            for (int k = 0; k < 40; k++) {
                sum = fmaf(x[i * 40 + k], y[k * 32 + j], sum);
                volatile float product = x[i * 40 + k] * y[k * 32 + j];
                twice = twice + product;
            }
            assert_memory_equal(&sum, &got[i * 32 + j], sizeof sum);
            fused |= sum != twice;
        }
    assert_true(fused);
    nat_free(native);
    fixture_close(&f);
}

// mul followed by add keeps two roundings, on every target: LLVM may not contract them.
static void a_product_and_a_sum_round_twice(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f);
    Kernel *kernel = krn_new(f.arena, f.context.names, "mul-add");
    KrnBuilder b = krn_builder(kernel, f.context.names);
    uint32_t in = krn_buffer(&b, "in", F32, 48, 0, KRN_IN);
    uint32_t out = krn_buffer(&b, "out", F32, 16, 0, KRN_OUT);
    KrnIndex at[3] = {krn_index(in, 0), krn_index(in, 16), krn_index(in, 32)};
    KrnIndex to = krn_index(out, 0);
    KrnValue product =
        krn_op2(&b, KRN_MUL, krn_load(&b, &at[0], 16, 1), krn_load(&b, &at[1], 16, 1));
    krn_store(&b, &to, 1, krn_op2(&b, KRN_ADD, product, krn_load(&b, &at[2], 16, 1)), false);
    float values[48], got[16];
    for (int i = 0; i < 16; i++) { // (1 + 2^-12)² − 1: 2^-11 when rounded between
        values[i] = values[16 + i] = 1.000244140625f;
        values[32 + i] = -1.0f;
    }
    Native *native = fixture_native(&f, 0, NULL, true);
    NatFunction code;
    assert_true(nat_compile(native, 1, &kernel, &code));
    code((void *[]){values, got}, 0, 0);
    for (int i = 0; i < 16; i++)
        assert_true(got[i] == 0x1p-11f);
    nat_free(native);
    fixture_close(&f);
}

// Nested accumulators, of which the inner loop runs `inner` times, none of them, or once.
static Kernel *nested_sums(Fixture *f, int64_t outer, int64_t inner) {
    Kernel *kernel = krn_new(f->arena, f->context.names, "sums");
    KrnBuilder b = krn_builder(kernel, f->context.names);
    uint32_t in = krn_buffer(&b, "in", F64, 64, 0, KRN_IN);
    uint32_t out = krn_buffer(&b, "out", F64, 4, 0, KRN_OUT);
    KrnType real = krn_type(KRN_F64, 1);
    KrnValue v[2] = {krn_const_float(&b, real, 0.1), krn_const_float(&b, real, 2)}, w[2];
    KrnValue i = krn_loop(&b, 3, 3 + 2 * outer, 2, KRN_WHOLE, 2, v, v);
    KrnValue j = krn_loop(&b, -2, -2 + inner, 1, KRN_WHOLE, 2, v, w);
    KrnValue x = load_at(&b, in, 2, 1, i, 1, j, 1);
    // The two change places in each round: a phi must not see the new value of another.
    w[0] = krn_op2(&b, KRN_ADD, w[0], x);
    KrnValue next[2] = {w[1], w[0]};
    krn_end(&b, 2, next, w);
    w[0] = krn_op2(&b, KRN_MUL, w[0], krn_convert(&b, KRN_F64, i));
    krn_end(&b, 2, w, v);
    for (int r = 0; r < 2; r++)
        store_at(&b, out, r, 0, 0, 0, 0, v[r], false);
    for (int r = 2; r < 4; r++)
        store_at(&b, out, r, 0, 0, 0, 0, krn_const_float(&b, real, r), false);
    return kernel;
}

static void accumulators(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f);
    Native *native = fixture_native(&f, 0, NULL, true);
    for (int64_t outer = 0; outer <= 3; outer++)
        for (int64_t inner = 0; inner <= 3; inner++) {
            Kernel *kernel = nested_sums(&f, outer, inner);
            NatFunction code;
            assert_true(nat_compile(native, 1, &kernel, &code));
            assert_equals_interpreter(&f, kernel, code, 1, 0, 5);
        }
    nat_free(native);
    fixture_close(&f);
}

// out[i, :] = table[ids[i], :] through a scratch row, for each type of index.
static Kernel *gather_kernel(Fixture *f, DType ids_type, uint32_t lanes) {
    Kernel *kernel = krn_new(f->arena, f->context.names, "gather");
    KrnBuilder b = krn_builder(kernel, f->context.names);
    enum { ROWS = 11, ROW = 32, COUNT = 23 };
    uint32_t ids = krn_buffer(&b, "ids", ids_type, COUNT, ROWS, KRN_IN);
    uint32_t table = krn_buffer(&b, "table", F32, ROWS * ROW, 0, KRN_IN);
    uint32_t out = krn_buffer(&b, "out", F32, COUNT * ROW, 0, KRN_OUT);
    uint32_t row = krn_buffer(&b, "row", F32, ROW, 0, KRN_SCRATCH);
    KrnValue i = krn_loop(&b, 0, COUNT, 1, KRN_SPLIT, 0, NULL, NULL);
    KrnValue id = load_at(&b, ids, 0, 1, i, 0, 0, 1);
    KrnValue j = krn_loop(&b, 0, ROW, lanes, KRN_WHOLE, 0, NULL, NULL);
    KrnIndex at = krn_index(row, 0);
    krn_index_add(&at, 1, j);
    krn_store(&b, &at, 1, load_at(&b, table, 0, ROW, id, 1, j, lanes), false);
    krn_end(&b, 0, NULL, NULL);
    j = krn_loop(&b, 0, ROW, lanes, KRN_WHOLE, 0, NULL, NULL);
    KrnValue value = krn_op1(&b, KRN_NEG, load_at(&b, row, 0, 1, j, 0, 0, lanes));
    store_at(&b, out, 0, ROW, i, 1, j, value, false);
    krn_end(&b, 0, NULL, NULL);
    krn_end(&b, 0, NULL, NULL);
    return kernel;
}

static void indices_and_scratch(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f);
    Native *native = fixture_native(&f, 0, NULL, true);
    for (DType type = U8; type <= U64; type++)
        for (uint32_t lanes = 1; lanes <= 16; lanes *= 4) {
            Kernel *kernel = gather_kernel(&f, type, lanes);
            NatFunction code;
            assert_true(nat_compile(native, 1, &kernel, &code));
            assert_equals_interpreter(&f, kernel, code, 3, 0, 17);
        }
    assert_no_diagnostics(&f);
    nat_free(native);
    fixture_close(&f);
}

// Aligned streaming stores are non-temporal and fenced; what cannot be aligned is not.
static void streaming_stores(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f);
    Native *native = fixture_native(&f, 128, NULL, true);
    const Product aligned = {4, 32, 8, 2, 4, F32, true}, odd = {4, 33, 8, 2, 4, F32, true};
    Kernel *kernel = product_kernel(&f, &aligned);
    Str ir = nat_text(native, kernel, NAT_LLVM, f.arena);
    assert_non_null(strstr(ir.at, "!nontemporal"));
    assert_non_null(strstr(nat_text(native, kernel, NAT_ASSEMBLY, f.arena).at, "sfence"));
    ir = nat_text(native, product_kernel(&f, &odd), NAT_LLVM, f.arena);
    assert_null(strstr(ir.at, "!nontemporal"));
    nat_free(native);
    fixture_close(&f);
}

// The text of a kernel shows its buffers' names, and neither fmuladd nor a fast-math flag.
static void texts(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f);
    Native *native = fixture_native(&f, 0, NULL, true);
    Kernel *kernel = product_kernel(&f, &products[0]);
    Str ir = nat_text(native, kernel, NAT_LLVM, f.arena);
    assert_non_null(strstr(ir.at, "@kernel.dot(ptr"));
    assert_non_null(strstr(ir.at, "%out = load ptr"));
    assert_non_null(strstr(ir.at, "@llvm.fma.v4f32"));
    static const char *const never[] = {"fmuladd", "fast", "contract", "reassoc", "nnan", "nsz"};
    for (size_t i = 0; i < COUNT_OF(never); i++)
        assert_null(strstr(ir.at, never[i]));
    Str assembly = nat_text(native, kernel, NAT_ASSEMBLY, f.arena);
    assert_non_null(strstr(assembly.at, "kernel.dot"));
    assert_non_null(strstr(assembly.at, "ret"));
    nat_free(native);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_in_any_split),
        cmocka_unit_test(a_product_is_its_definition),
        cmocka_unit_test(a_product_and_a_sum_round_twice),
        cmocka_unit_test(accumulators),
        cmocka_unit_test(indices_and_scratch),
        cmocka_unit_test(streaming_stores),
        cmocka_unit_test(texts),
    };
    return cmocka_run_group_tests_name("native loops", tests, NULL, NULL);
}
