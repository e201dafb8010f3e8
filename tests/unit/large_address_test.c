// Addresses beyond 32 bits: tables of 2^32 elements, of which only a few pages are ever touched.
#include "native/native.h"
#include "support/nest_run.h"

#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>

enum { SIDE = 65536 };
static const int64_t ELEMENTS = (int64_t)SIDE * SIDE;

static float *table_open(void) {
    void *at = mmap(NULL, (size_t)ELEMENTS * sizeof(float), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

// In the interpreter, then natively.
static void run_both(Context *c, const RlzNest *nest, void **buffers, const float *out,
                     const float *right, uint32_t count) {
    RlzLayout layout = rlz_layout_scalar(nest);
    Kernel *kernel = krn_lower(nest, &layout, c->arena, c->names);
    Str errors;
    if (!krn_verify(kernel, c->arena, &errors))
        fail_msg("%s", errors.at);
    krn_interpret(krn_code(kernel, c->arena), buffers, 0, 0);
    assert_memory_equal(out, right, count * sizeof *out);
    NatOptions options = {.no_cache = true, .threads = 1};
    Native *native = nat_new(c, c->arena, &options);
    NatFunction function;
    assert_true(native && nat_compile(native, 1, &kernel, &function));
    memset(buffers[kernel->buffers.count - 1], 0xff, count * sizeof *out);
    function(buffers, 0, 0);
    assert_memory_equal(out, right, count * sizeof *out);
    nat_free(native);
}

// Rows 0, 32768 and 65535 of a table of 65536 x 65536, their columns 0 and 65535.
static void rows_of_a_table(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    float *table = table_open();
    if (!table)
        skip();
    static const int64_t rows[] = {0, SIDE / 2, SIDE - 1};
    TestNest *test = nest_new(c.arena, RLZ_INDEXED, CORE_gather, F32);
    nest_axis(test, RLZ_PARALLEL, COUNT_OF(rows));
    nest_axis(test, RLZ_PARALLEL, 2);
    RlzOperand *from = nest_input(test, F32, NULL);
    from->stride[1] = SIDE - 1;
    from->indexed_stride = SIDE;
    from->indexed_extent = SIDE;
    nest_input(test, U16, "a")->range = SIDE;
    nest_output(test, c.arena, F32, "ab");
    uint16_t index[COUNT_OF(rows)];
    float out[6], right[6];
    for (uint32_t i = 0; i < 6; i++) {
        index[i / 2] = (uint16_t)rows[i / 2];
        right[i] = table[rows[i / 2] * SIDE + i % 2 * (SIDE - 1)] = (float)(i + 1);
    }
    assert_int_equal(rows[2] * SIDE + SIDE - 1, INT64_C(4294967295));
    run_both(&c, &test->nest, (void *[]){table, index, out}, out, right, 6);
    munmap(table, (size_t)ELEMENTS * sizeof(float));
    context_free(&c);
}

// The sum of the first and the last element, and of two in between whose distance needs 32 bits.
static void sums_of_distant_elements(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    float *table = table_open();
    if (!table)
        skip();
    TestNest *test = nest_new(c.arena, RLZ_REDUCTION, CORE_sum, F32);
    nest_axis(test, RLZ_PARALLEL, 2);
    nest_axis(test, RLZ_REDUCED, 2);
    RlzOperand *from = nest_input(test, F32, NULL);
    from->stride[0] = 1;
    from->stride[1] = ELEMENTS - 2;
    nest_output(test, c.arena, F32, "a");
    assert_int_equal(rlz_operand_span(&test->nest, from), ELEMENTS);
    table[0] = 1;
    table[1] = 2;
    table[ELEMENTS - 2] = 30;
    table[ELEMENTS - 1] = 40;
    float out[2], right[2] = {31, 42};
    run_both(&c, &test->nest, (void *[]){table, out}, out, right, 2);
    munmap(table, (size_t)ELEMENTS * sizeof(float));
    context_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_a_table),
        cmocka_unit_test(sums_of_distant_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
