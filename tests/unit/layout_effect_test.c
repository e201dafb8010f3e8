// A layout is not exact because it was ignored: what kernels load, compute and store under each
// value of a decision, counted, and what stands in the machine code.
#include "native/native.h"
#include "realize/legal.h"
#include "support/nest_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { I = 12, J = 32, K = 64 };

static TestNest *product(Arena *arena, bool nt) {
    TestNest *test = nest_new(arena, RLZ_CONTRACTION, nt ? CORE_dot_vjp_l : CORE_dot, F32);
    nest_axis(test, RLZ_I, I);
    nest_axis(test, RLZ_J, J);
    nest_axis(test, RLZ_K, K);
    nest_input(test, F32, "ac");
    nest_input(test, F32, nt ? "bc" : "cb");
    nest_output(test, arena, F32, "ab");
    return test;
}

static TestNest *softmax(Arena *arena, int64_t rows, int64_t length) {
    TestNest *test = nest_new(arena, RLZ_ROW, CORE_softmax, F32);
    nest_axis(test, RLZ_PARALLEL, rows);
    nest_axis(test, RLZ_REDUCED, length);
    nest_input(test, F32, "ab");
    nest_output(test, arena, F32, "ab");
    return test;
}

static Kernel *lower(Context *c, const RlzNest *nest, const RlzLayout *layout) {
    assert_int_equal(rlz_layout_fault(nest, layout, 512, c->arena).condition, 0);
    return krn_lower(nest, layout, c->arena, c->names);
}

// ---- counting -----------------------------------------------------------------------------------

// Elements that a launch of the whole kernel loads from, stores to or (another operation) computes,
// lane by lane. `buffer` is not asked for where the operation reaches no memory.
static int64_t executed(const Kernel *kernel, KrnOp op, uint32_t buffer) {
    int64_t times[32] = {1}, count = 0;
    uint32_t depth = 0;
    for (uint32_t i = 0; i < kernel->insts.count; i++) {
        const KrnInst *inst = &kernel->insts.at[i];
        bool memory = op == KRN_LOAD || op == KRN_STORE || op == KRN_PREFETCH;
        if (inst->op == KRN_LOOP) {
            times[depth + 1] = times[depth] * krn_loop_count(&kernel->loops.at[inst->loop]);
            depth++;
        } else if (inst->op == KRN_END) {
            depth--;
        } else if (inst->op == op &&
                   (!memory || kernel->addresses.at[inst->address].buffer == buffer)) {
            KrnType type = op == KRN_STORE ? krn_type_of(kernel, inst->a) : inst->type;
            count += times[depth] * MAX(type.lanes, 1);
        }
    }
    return count;
}

static int64_t instructions(const Kernel *kernel, KrnOp op) {
    int64_t count = 0;
    for (uint32_t i = 0; i < kernel->insts.count; i++)
        count += kernel->insts.at[i].op == op;
    return count;
}

enum { LEFT, RIGHT, OUT };

// A tile of m rows and n columns loads an element of operand 0 once for n results, one of operand
// 1 once for m; blocks of K outside of the tiles store zeros, then each block loads what it goes on
// with and stores it.
static void tiles_and_blocks(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    const RlzNest *nest = &product(c.arena, false)->nest;
    static const uint32_t rows[] = {1, 2, 4, 6, 12}, columns[] = {4, 8, 16, 32};
    for (uint32_t m = 0; m < COUNT_OF(rows); m++)
        for (uint32_t n = 0; n < COUNT_OF(columns); n++)
            for (uint32_t lanes = 1; lanes <= 4; lanes += 3) {
                RlzLayout layout = rlz_layout_scalar(nest);
                layout.tile[0] = rows[m];
                layout.tile[1] = columns[n];
                layout.lanes = lanes;
                Kernel *kernel = lower(&c, nest, &layout);
                int64_t terms = (int64_t)I * J * K;
                assert_int_equal(executed(kernel, KRN_LOAD, LEFT), terms / columns[n]);
                assert_int_equal(executed(kernel, KRN_LOAD, RIGHT), terms / rows[m]);
                assert_int_equal(executed(kernel, KRN_FMA, 0), terms);
                assert_int_equal(executed(kernel, KRN_STORE, OUT), I * J);
                layout.kblock = 32;
                layout.order[0] = RLZ_K;
                layout.order[1] = RLZ_I;
                layout.order[2] = RLZ_J;
                kernel = lower(&c, nest, &layout);
                assert_int_equal(executed(kernel, KRN_LOAD, OUT), I * J * (K / 32));
                assert_int_equal(executed(kernel, KRN_STORE, OUT), I * J * (K / 32 + 1));
                assert_int_equal(executed(kernel, KRN_FMA, 0), terms);
            }
    context_free(&c);
}

// A pack reads operand 1 once, the tiles then read the copy; one of operand 0 likewise.
static void packs(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    const RlzNest *nt = &product(c.arena, true)->nest;
    RlzLayout layout = rlz_layout_scalar(nt);
    layout.tile[0] = 4;
    layout.tile[1] = 8;
    Kernel *plain = lower(&c, nt, &layout);
    assert_int_equal(executed(plain, KRN_LOAD, RIGHT), I / 4 * J * K);
    static const uint8_t kinds[] = {RLZ_PACK_ROWS, RLZ_PACK_PANEL};
    for (uint32_t p = 0; p < COUNT_OF(kinds); p++) {
        layout.pack = kinds[p];
        Kernel *packed = lower(&c, nt, &layout);
        assert_int_equal(executed(packed, KRN_LOAD, RIGHT), J * K);
        assert_int_equal(executed(packed, KRN_FMA, 0), I * J * K);
    }
    layout.pack = RLZ_PACK_NONE;
    layout.pack_left = true;
    assert_int_equal(executed(plain, KRN_LOAD, LEFT), I * K * (J / 8));
    assert_int_equal(executed(lower(&c, nt, &layout), KRN_LOAD, LEFT), I * K);
    context_free(&c);
}

// The row-wise form holds its sums in the output from one k to the next.
static void the_row_wise_form(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    const RlzNest *nest = &product(c.arena, false)->nest;
    RlzLayout layout = rlz_layout_scalar(nest);
    layout.row_wise = true;
    Kernel *kernel = lower(&c, nest, &layout);
    assert_int_equal(executed(kernel, KRN_FMA, 0), I * J * K);
    assert_int_equal(executed(kernel, KRN_LOAD, OUT), I * J * K);
    assert_int_equal(executed(kernel, KRN_STORE, OUT), I * J * (K + 1));
    context_free(&c);
}

// What unrolling and lanes save are instructions and iterations, not terms.
static void unrolled_and_in_lanes(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    const RlzNest *nest = &product(c.arena, false)->nest;
    RlzLayout layout = rlz_layout_scalar(nest);
    layout.tile[1] = 16;
    for (uint32_t unroll = 1; unroll <= 8; unroll *= 2)
        for (uint32_t lanes = 1; lanes <= 16; lanes = lanes == 1 ? 4 : lanes * 2) {
            layout.unroll = unroll;
            layout.lanes = lanes;
            Kernel *kernel = lower(&c, nest, &layout);
            assert_int_equal(instructions(kernel, KRN_FMA), unroll * 16 / lanes);
            assert_int_equal(executed(kernel, KRN_FMA, 0), I * J * K);
        }
    context_free(&c);
}

// Two passes take each exponential once, three take it twice. Each exponential scales by a power of
// two that it makes from bits: as many FLOATs each.
static void exponentials(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    enum { ROWS = 6, LENGTH = 20, N = ROWS * LENGTH };
    TestNest *alone = nest_new(c.arena, RLZ_GROUP, CORE_exp, F32);
    nest_axis(alone, RLZ_PARALLEL, N);
    nest_input(alone, F32, "a");
    alone->nest.nodes = 1;
    alone->node[0] = (RlzNode){.prim = CORE_exp, .arithmetic = F32, .operand = {0}};
    nest_output(alone, c.arena, F32, "a");
    RlzLayout layout = rlz_layout_scalar(&alone->nest);
    int64_t each = executed(lower(&c, &alone->nest, &layout), KRN_FLOAT, 0);
    assert_true(each >= N && each % N == 0);
    const RlzNest *nest = &softmax(c.arena, ROWS, LENGTH)->nest;
    for (uint32_t passes = 2; passes <= 3; passes++)
        for (uint32_t rows = 1; rows <= 2; rows++) {
            layout = rlz_layout_scalar(nest);
            layout.passes = passes;
            layout.rows = rows;
            Kernel *kernel = lower(&c, nest, &layout);
            assert_int_equal(executed(kernel, KRN_FLOAT, 0), each * (passes - 1));
        }
    context_free(&c);
}

// ---- machine code -------------------------------------------------------------------------------

static bool has(Context *c, const RlzNest *nest, const RlzLayout *layout, uint32_t target,
                const char *word) {
    NatOptions options = {.no_cache = true, .target = target, .cpu = "x86-64-v4"};
    Native *native = nat_new(c, c->arena, &options);
    assert_non_null(native);
    Str text = nat_text(native, lower(c, nest, layout), NAT_ASSEMBLY, c->arena);
    assert_true(text.size > 0);
    nat_free(native);
    return strstr(text.at, word) != NULL;
}

static void instructions_of_the_machine(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    const RlzNest *nest = &product(c.arena, false)->nest;
    RlzLayout plain = rlz_layout_scalar(nest);
    plain.tile[0] = 4;
    plain.tile[1] = 16;
    plain.lanes = 16;
    RlzLayout stream = plain, prefetch = plain, narrow = plain, scalar = plain;
    stream.stream = prefetch.prefetch = true;
    narrow.lanes = 8;
    scalar.lanes = 1;
    assert_true(has(&c, nest, &stream, 512, "vmovntps"));
    assert_false(has(&c, nest, &plain, 512, "vmovnt"));
    assert_true(has(&c, nest, &prefetch, 512, "prefetcht0"));
    assert_false(has(&c, nest, &plain, 512, "prefetch"));
    assert_true(has(&c, nest, &plain, 512, "%zmm"));
    assert_false(has(&c, nest, &narrow, 256, "%zmm"));
    assert_true(has(&c, nest, &narrow, 256, "%ymm"));
    assert_false(has(&c, nest, &scalar, 128, "%ymm"));
    context_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_and_blocks),  cmocka_unit_test(packs),
        cmocka_unit_test(the_row_wise_form), cmocka_unit_test(unrolled_and_in_lanes),
        cmocka_unit_test(exponentials),      cmocka_unit_test(instructions_of_the_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
