// Reductions, row nests and their derivatives against plain loops: both orders of summation, all
// lanes and tails.
#include "support/nest_run.h"

#include <cmocka.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

static const DType types[] = {F64, F32, BF16};

static double add(DType type, double a, double b) {
    return to_type(type, a + b);
}

static double maximum(double a, double b) {
    return isnan(b) ? b : a > b || isnan(a) ? a : b;
}

static double minimum(double a, double b) {
    return isnan(a) ? a : b < a || isnan(b) ? b : a;
}

// The sum of n terms in the nest's order.
static double sum_of(const RlzNest *nest, DType type, const double *term, int64_t n) {
    double s[16] = {0};
    bool striped = nest->reduce == CORE_REDUCE_STRIPES16;
    for (int64_t i = 0; i < n; i++)
        s[striped ? i % 16 : 0] = add(type, s[striped ? i % 16 : 0], term[i]);
    for (uint32_t half = striped ? 8 : 0; half > 0; half /= 2)
        for (uint32_t i = 0; i < half; i++)
            s[i] = add(type, s[i], s[i + half]);
    return s[0];
}

static void run_all(Context *c, const TestNest *test, Random *random) {
    RlzLayout layout = rlz_layout_scalar(&test->nest);
    nest_run(c, test, &layout, random);
    for (uint32_t n = 0; n < 5; n++) {
        layout.lanes = 1u << n;
        layout.split_depth = (int32_t)random_below(random, 3) - 1;
        layout.passes = test->out.type == BF16 ? 3 : 2 + random_below(random, 2);
        layout.stream = random_below(random, 2);
        layout.rows = rlz_runs_along(&test->nest) ? 1 : layout.lanes << random_below(random, 3);
        nest_run(c, test, &layout, random);
        layout.rows = 1;
        nest_run(c, test, &layout, random);
    }
    for (RlzTarget target = 128; target <= 512; target *= 2) {
        RlzLayout chosen = rlz_layout_default(&test->nest, target, 2, false);
        nest_run(c, test, &chosen, random);
    }
}

// ---- reductions -------------------------------------------------------------------------------

static uint32_t parallel_axes(const RlzNest *nest) {
    uint32_t count = 0;
    while (count < nest->axes && nest->role[count] == RLZ_PARALLEL)
        count++;
    return count;
}

static double reduce(const RlzNest *nest, const double *term, int64_t n) {
    double best = nest->prim == CORE_reduce_min ? INFINITY : -INFINITY, where = 0;
    for (int64_t i = 0; i < n; i++) {
        if (term[i] > best || (isnan(term[i]) && !isnan(best)))
            where = (double)i;
        best = nest->prim == CORE_reduce_min ? minimum(best, term[i]) : maximum(best, term[i]);
    }
    if (nest->prim == CORE_argmax)
        return where;
    if (nest->prim == CORE_reduce_max || nest->prim == CORE_reduce_min)
        return best;
    double sum = to_type(nest->arithmetic, sum_of(nest, nest->accumulate, term, n));
    return nest->prim == CORE_sum ? sum : to_type(nest->arithmetic, sum / (double)n);
}

static void expect_reduction(TestNest *test) {
    const RlzNest *nest = &test->nest;
    int64_t index[RLZ_AXES_MAX] = {0};
    static double term[4096];
    uint32_t outer = parallel_axes(nest);
    for (bool more = nest_next(nest, 0, outer, index, true); more;
         more = outer && nest_next(nest, 0, outer, index, false)) {
        int64_t n = 0;
        for (bool one = nest_next(nest, outer, nest->axes - outer, index, true); one;
             one = nest_next(nest, outer, nest->axes - outer, index, false))
            term[n++] = to_type(nest->arithmetic, nest_get(test, 0, index));
        nest_set(test, index, reduce(nest, term, n));
    }
}

typedef struct Case {
    const char *input; // memory order of the axes; upper case: reduced, after the others
    int64_t extent[4]; // by axis
} Case;
static const Case cases[] = {
    {"aB", {5, 37}},     {"Ab", {19, 3}},     {"aBc", {3, 7, 21}}, {"A", {100}},
    {"A", {0}},          {"aB", {4, 0}},      {"aB", {0, 4}},      {"aBcD", {2, 5, 3, 7}},
    {"AbC", {3, 6, 33}}, {"aB", {33, 1}},     {"Ab", {17, 70}},    {"ABc", {3, 5, 9}},
    {"aBC", {2, 48, 3}}, {"aCB", {19, 5, 6}}, {"aB", {67, 16}},
};

// Axes of the case in the order of the nest: the parallel ones first. Letters of the input follow.
static const char *make_axes(Arena *arena, TestNest *test, const Case *from, StrBuf *out) {
    char *letters = arena_alloc(arena, strlen(from->input) + 1);
    for (uint32_t reduced = 0; reduced < 2; reduced++)
        for (uint32_t axis = 0; axis < strlen(from->input); axis++) {
            const char *upper = strchr(from->input, 'A' + (int)axis);
            const char *at = upper ? upper : strchr(from->input, 'a' + (int)axis);
            if ((upper != NULL) != reduced)
                continue;
            letters[at - from->input] = (char)('a' + test->nest.axes);
            if (!reduced)
                buf_char(out, (char)('a' + test->nest.axes));
            nest_axis(test, reduced ? RLZ_REDUCED : RLZ_PARALLEL, from->extent[axis]);
        }
    return letters;
}

static void check_reduction(Context *c, const Case *from, CorePrim prim, DType type,
                            CoreReduce reduce_order, DType accumulate, Random *random) {
    Arena *arena = arena_new(&c->heap, "test");
    TestNest *test = nest_new(arena, RLZ_REDUCTION, prim, type);
    test->nest.reduce = reduce_order;
    test->nest.accumulate = accumulate;
    StrBuf out = {.arena = arena};
    const char *letters = make_axes(arena, test, from, &out);
    nest_input(test, type, letters);
    nest_output(test, arena, prim == CORE_argmax ? U16 : type, buf_str(&out).at);
    nest_fill(test, arena, random, prim != CORE_sum && prim != CORE_mean);
    expect_reduction(test);
    run_all(c, test, random);
    arena_free(arena);
}

static void reductions(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    Random random = {1};
    static const CorePrim prims[] = {CORE_sum, CORE_mean, CORE_reduce_max, CORE_reduce_min};
    for (uint32_t n = 0; n < COUNT_OF(cases); n++)
        for (uint32_t t = 0; t < 3; t++) {
            DType type = types[t], arithmetic = dtype_arithmetic(type);
            for (uint32_t p = 0; p < COUNT_OF(prims); p++)
                check_reduction(&c, &cases[n], prims[p], type, CORE_REDUCE_SEQUENTIAL, arithmetic,
                                &random);
            check_reduction(&c, &cases[n], CORE_sum, type, CORE_REDUCE_STRIPES16, arithmetic,
                            &random);
            check_reduction(&c, &cases[n], CORE_mean, type, CORE_REDUCE_STRIPES16, arithmetic,
                            &random);
            const char *first = strpbrk(cases[n].input, "ABCD");
            if (!strpbrk(first + 1, "ABCD"))
                check_reduction(&c, &cases[n], CORE_argmax, type, CORE_REDUCE_SEQUENTIAL,
                                arithmetic, &random);
        }
    context_free(&c);
}

// Sums of f32 kept in f64, rounded once.
static void wider_accumulation(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    Random random = {2};
    for (uint32_t n = 0; n < COUNT_OF(cases); n++)
        for (uint32_t order = 0; order < 2; order++) {
            check_reduction(&c, &cases[n], CORE_sum, F32, (CoreReduce)order, F64, &random);
            check_reduction(&c, &cases[n], CORE_mean, F32, (CoreReduce)order, F64, &random);
        }
    context_free(&c);
}

// The two orders differ, or the test above would not tell them apart.
static void orders_differ(void **state) {
    (void)state;
    double term[40];
    Random random = {3};
    for (uint32_t i = 0; i < 40; i++)
        term[i] = (double)(float)random_value(&random, false);
    RlzNest sequential = {.reduce = CORE_REDUCE_SEQUENTIAL};
    RlzNest stripes = {.reduce = CORE_REDUCE_STRIPES16};
    assert_true(sum_of(&sequential, F32, term, 40) != sum_of(&stripes, F32, term, 40));
}

// ---- rows ---------------------------------------------------------------------------------------

typedef struct RowValues {
    int64_t n;
    double x[256];
    bool allowed[256];
} RowValues;

static double apply(MthFunction function, DType type, double x) {
    return mth_apply(function, 0, type, &x);
}

static void expect_row(TestNest *test, const RowValues *row, int64_t *index) {
    const RlzNest *nest = &test->nest;
    DType type = nest->arithmetic;
    uint32_t axis = nest->axes - 1;
    double m = -INFINITY, e[256];
    for (int64_t i = 0; i < row->n; i++)
        m = row->allowed[i] ? maximum(m, row->x[i]) : m;
    for (int64_t i = 0; i < row->n; i++)
        e[i] = row->allowed[i] ? apply(MTH_exp, type, to_type(type, row->x[i] - m)) : 0;
    double s = sum_of(nest, type, e, row->n), log_s = apply(MTH_log, type, s);
    for (int64_t i = 0; i < row->n; i++) {
        index[axis] = i;
        if (nest->prim == CORE_softmax)
            nest_set(test, index, m == -INFINITY || !row->allowed[i] ? 0 : to_type(type, e[i] / s));
        if (nest->prim == CORE_log_softmax)
            nest_set(test, index, to_type(type, to_type(type, row->x[i] - m) - log_s));
    }
    index[axis] = 0;
    if (nest->prim == CORE_logsumexp)
        nest_set(test, index, isinf(m) ? m : to_type(type, m + log_s));
    if (nest->prim == CORE_cross_entropy) {
        double target = row->n ? row->x[(int64_t)nest_get(test, 1, index)] : 0;
        nest_set(test, index, to_type(type, log_s - to_type(type, target - m)));
    }
}

static void expect_rows(TestNest *test) {
    const RlzNest *nest = &test->nest;
    int64_t index[RLZ_AXES_MAX] = {0};
    RowValues row = {.n = nest->extent[nest->axes - 1]};
    bool masked = nest->prim == CORE_softmax && nest->inputs == 2;
    for (bool more = nest_next(nest, 0, nest->axes - 1, index, true); more;
         more = nest->axes > 1 && nest_next(nest, 0, nest->axes - 1, index, false)) {
        for (int64_t i = 0; i < row.n; i++) {
            index[nest->axes - 1] = i;
            row.x[i] = to_type(nest->arithmetic, nest_get(test, 0, index));
            row.allowed[i] = !masked || nest_get(test, 1, index) != 0;
        }
        index[nest->axes - 1] = 0;
        expect_row(test, &row, index);
    }
}

static void check_row(Context *c, CorePrim prim, DType type, uint32_t variant, int64_t rows,
                      int64_t length, Random *random) {
    Arena *arena = arena_new(&c->heap, "test");
    TestNest *test = nest_new(arena, RLZ_ROW, prim, type);
    test->nest.reduce = (CoreReduce)random_below(random, 2);
    nest_axis(test, RLZ_PARALLEL, 2);
    nest_axis(test, RLZ_PARALLEL, rows);
    nest_axis(test, RLZ_REDUCED, length);
    const char *axes = variant % 2 ? "acb" : "abc"; // contiguous across rows, or along them
    nest_input(test, type, axes);
    if (prim == CORE_softmax && variant >= 2) // masks are broadcast
        nest_input(test, U8, (const char *[]){"bc", "c", "abc", "b"}[random_below(random, 4)])
            ->range = 2;
    if (prim == CORE_cross_entropy)
        nest_input(test, U16, "ab")->range = length ? length : 1;
    bool one = prim == CORE_logsumexp || prim == CORE_cross_entropy;
    nest_output(test, arena, type, one ? "ab" : axes);
    nest_fill(test, arena, random, variant % 2 == 0);
    if (variant >= 2 && rows && length) // a row of −inf, as a row that allows nothing
        for (int64_t i = 0; i < length; i++) {
            int64_t index[3] = {1, rows - 1, i};
            dtype_set(type, test->data[0].at, nest_offset(&test->nest, &test->input[0], index),
                      -INFINITY);
        }
    expect_rows(test);
    run_all(c, test, random);
    arena_free(arena);
}

static void rows(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    Random random = {4};
    static const CorePrim prims[] = {CORE_softmax, CORE_log_softmax, CORE_logsumexp,
                                     CORE_cross_entropy};
    static const int64_t counts[] = {0, 1, 3, 16, 21};
    static const int64_t row_lengths[] = {1, 2, 13, 35, 0};
    for (uint32_t p = 0; p < COUNT_OF(prims); p++)
        for (uint32_t t = 0; t < 3; t++)
            for (uint32_t variant = 0; variant < 4; variant++)
                for (uint32_t n = 0; n < 6; n++) {
                    int64_t length = row_lengths[random_below(&random, COUNT_OF(row_lengths))];
                    if (prims[p] == CORE_cross_entropy && length == 0)
                        length = 5; // no target exists
                    check_row(&c, prims[p], types[t], variant,
                              counts[random_below(&random, COUNT_OF(counts))], length, &random);
                }
    context_free(&c);
}

// ---- derivatives of rows ------------------------------------------------------------------------

// y (ct − Σ ct y), +0 where y is 0.
static void expect_softmax_vjp(TestNest *test, int64_t *index) {
    DType type = test->nest.arithmetic;
    uint32_t axis = test->nest.axes - 1;
    int64_t n = test->nest.extent[axis];
    double y[256], ct[256], term[256] = {0};
    for (int64_t i = 0; i < n; i++) {
        index[axis] = i;
        y[i] = to_type(type, nest_get(test, 0, index));
        ct[i] = to_type(type, nest_get(test, 1, index));
        term[i] = to_type(type, ct[i] * y[i]);
    }
    double sum = sum_of(&test->nest, type, term, n);
    for (int64_t i = 0; i < n; i++) {
        index[axis] = i;
        nest_set(test, index, y[i] == 0 ? 0 : to_type(type, y[i] * to_type(type, ct[i] - sum)));
    }
}

// (softmax(x) − one at the target) ct
static void expect_cross_entropy_vjp(TestNest *test, int64_t *index) {
    DType type = test->nest.arithmetic;
    uint32_t axis = test->nest.axes - 1;
    int64_t n = test->nest.extent[axis];
    double x[256], e[256] = {0}, m = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        index[axis] = i;
        x[i] = to_type(type, nest_get(test, 0, index));
        m = maximum(m, x[i]);
    }
    for (int64_t i = 0; i < n; i++)
        e[i] = apply(MTH_exp, type, to_type(type, x[i] - m));
    double s = sum_of(&test->nest, type, e, n);
    int64_t target = (int64_t)nest_get(test, 1, index);
    double ct = to_type(type, nest_get(test, 2, index));
    for (int64_t i = 0; i < n; i++) {
        index[axis] = i;
        double y = m == -INFINITY ? 0 : to_type(type, e[i] / s);
        nest_set(test, index, to_type(type, (i == target ? to_type(type, y - 1) : y) * ct));
    }
}

static void check_reverse(Context *c, CorePrim prim, DType type, uint32_t variant, int64_t rows,
                          int64_t length, Random *random) {
    Arena *arena = arena_new(&c->heap, "test");
    TestNest *test = nest_new(arena, RLZ_ROW, prim, type);
    bool entropy = prim == CORE_cross_entropy_vjp;
    test->nest.reduce = (CoreReduce)random_below(random, 2);
    nest_axis(test, RLZ_PARALLEL, 2);
    nest_axis(test, RLZ_PARALLEL, rows);
    nest_axis(test, RLZ_REDUCED, length);
    nest_input(test, type, variant % 2 ? "acb" : "abc");
    if (entropy)
        nest_input(test, U16, "ab")->range = length;
    nest_input(test, type, entropy ? "ab" : variant / 2 ? "acb" : "abc");
    nest_output(test, arena, type, variant % 2 ? "acb" : "abc");
    nest_fill(test, arena, random, variant % 2 == 0);
    int64_t index[3] = {0};
    for (bool more = nest_next(&test->nest, 0, 2, index, true); more;
         more = nest_next(&test->nest, 0, 2, index, false)) {
        index[2] = 0;
        if (entropy)
            expect_cross_entropy_vjp(test, index);
        else
            expect_softmax_vjp(test, index);
    }
    run_all(c, test, random);
    arena_free(arena);
}

static void derivatives_of_rows(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    Random random = {6};
    static const CorePrim prims[] = {CORE_softmax_vjp, CORE_cross_entropy_vjp};
    static const int64_t counts[] = {1, 3, 16, 21};
    static const int64_t row_lengths[] = {1, 2, 13, 35};
    for (uint32_t p = 0; p < COUNT_OF(prims); p++)
        for (uint32_t t = 0; t < 3; t++)
            for (uint32_t variant = 0; variant < 4; variant++)
                for (uint32_t n = 0; n < 4; n++)
                    check_reverse(&c, prims[p], types[t], variant,
                                  counts[random_below(&random, COUNT_OF(counts))],
                                  row_lengths[random_below(&random, COUNT_OF(row_lengths))],
                                  &random);
    context_free(&c);
}

// The whole cotangent goes to the first extreme, be it NaN, and 0 to all else.
static void expect_extreme_vjp(TestNest *test) {
    const RlzNest *nest = &test->nest;
    DType type = nest->arithmetic;
    int64_t index[RLZ_AXES_MAX] = {0};
    uint32_t outer = parallel_axes(nest), inner = nest->axes - outer;
    bool max = nest->prim == CORE_reduce_max_vjp;
    for (bool more = nest_next(nest, 0, outer, index, true); more;
         more = outer && nest_next(nest, 0, outer, index, false)) {
        double best = max ? -INFINITY : INFINITY;
        int64_t at = 0, n = 0;
        for (bool one = nest_next(nest, outer, inner, index, true); one;
             one = nest_next(nest, outer, inner, index, false), n++) {
            double x = to_type(type, nest_get(test, 0, index));
            if ((max ? x > best : x < best) || (isnan(x) && !isnan(best)))
                best = x, at = n;
        }
        n = 0;
        for (bool one = nest_next(nest, outer, inner, index, true); one;
             one = nest_next(nest, outer, inner, index, false), n++)
            nest_set(test, index, n == at ? to_type(type, nest_get(test, 1, index)) : 0);
    }
}

static void derivatives_of_extremes(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    Random random = {7};
    static const struct {
        const char *input;
        int64_t extent[3]; // parallel, reduced, reduced
    } shapes[] = {
        {"abc", {19, 5, 7}}, {"bac", {17, 3, 5}}, {"bca", {35, 4, 3}}, {"abc", {1, 1, 9}}};
    for (uint32_t max = 0; max < 2; max++)
        for (uint32_t t = 0; t < 3; t++)
            for (uint32_t n = 0; n < COUNT_OF(shapes); n++) {
                Arena *arena = arena_new(&c.heap, "test");
                CorePrim prim = max ? CORE_reduce_max_vjp : CORE_reduce_min_vjp;
                TestNest *test = nest_new(arena, RLZ_ROW, prim, types[t]);
                for (uint32_t i = 0; i < 3; i++)
                    nest_axis(test, i ? RLZ_REDUCED : RLZ_PARALLEL, shapes[n].extent[i]);
                nest_input(test, types[t], shapes[n].input);
                nest_input(test, types[t], "a");
                RlzOperand *position = nest_input(test, types[t], NULL);
                *position = (RlzOperand){.source = RLZ_IOTA,
                                         .stride = {0, shapes[n].extent[2], 1},
                                         .range = shapes[n].extent[1] * shapes[n].extent[2]};
                nest_output(test, arena, types[t], shapes[n].input);
                nest_fill(test, arena, &random, true);
                expect_extreme_vjp(test);
                run_all(&c, test, &random);
                arena_free(arena);
            }
    context_free(&c);
}

// A row of refused positions and a row of −inf are both 0; others sum to 1.
static void softmax_of_nothing(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    Random random = {5};
    TestNest *test = nest_new(c.arena, RLZ_ROW, CORE_softmax, F32);
    nest_axis(test, RLZ_PARALLEL, 3);
    nest_axis(test, RLZ_REDUCED, 2);
    nest_input(test, F32, "ab");
    nest_input(test, U8, "ab")->range = 2;
    nest_output(test, c.arena, F32, "ab");
    nest_fill(test, c.arena, &random, false);
    const double x[] = {-INFINITY, -INFINITY, 1, (double)NAN, 3, 3};
    const double mask[] = {1, 1, 0, 0, 1, 1}, y[] = {0, 0, 0, 0, 0.5, 0.5};
    for (int64_t i = 0; i < 6; i++) {
        dtype_set(F32, test->data[0].at, i, x[i]);
        dtype_set(U8, test->data[1].at, i, mask[i]);
        dtype_set(F32, test->out.at, i, y[i]);
    }
    run_all(&c, test, &random);
    context_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions),
        cmocka_unit_test(wider_accumulation),
        cmocka_unit_test(orders_differ),
        cmocka_unit_test(rows),
        cmocka_unit_test(softmax_of_nothing),
        cmocka_unit_test(derivatives_of_rows),
        cmocka_unit_test(derivatives_of_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
