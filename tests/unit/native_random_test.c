// Random kernels: graphs of operations over awkward numbers and constants, as native code on each
// target, bit for bit against the interpreter. They are after the rewrites of LLVM's instruction
// selection (minimum and maximum from selects, division by constants, negated products).
#include "native_support.h"

enum { ELEMENTS = 48, STEPS = 40, KERNELS = 120, POOL = 96 };

static const char *const rules[KRN_OP_COUNT] = {
#define KOP(name, text, arity, rule, lane, meaning) [KRN_##name] = #rule,
#include "kernel/kop.def"
#undef KOP
};

typedef struct Values {
    KrnValue value[POOL];
    uint32_t count;
} Values;

// Values of the three sorts so far: floats, integers as wide, truth values.
typedef struct Graph {
    KrnBuilder b;
    KrnScalar real, whole;
    uint32_t lanes;
    Values pool[3];
    uint64_t state;
} Graph;

static uint32_t draw(Graph *g, uint32_t below) {
    return (uint32_t)(next_random(&g->state) >> 33) % below;
}

static Values *pool_of(Graph *g, char sort) {
    return &g->pool[sort == 'F' ? 0 : sort == 'I' ? 1 : 2];
}

static void keep(Graph *g, char sort, KrnValue value) {
    Values *pool = pool_of(g, sort);
    pool->value[pool->count++ % POOL] = value;
}

// Mostly recent values, so that the graph is deep.
static KrnValue any(Graph *g, char sort) {
    const Values *pool = pool_of(g, sort);
    uint32_t back = draw(g, draw(g, 2) ? MIN(pool->count, 3) : pool->count);
    return pool->value[pool->count - 1 - back];
}

static double constant(Graph *g) {
    double number = awkward[draw(g, COUNT_OF(awkward))];
    if (draw(g, 3) == 0)
        number = ldexp(1, (int)draw(g, 9) - 4);
    return g->real == KRN_F32 ? (double)(float)number : number;
}

// A NaN's sign and payload are open, so integers are made of numbers only.
static KrnValue bits(Graph *g, KrnValue value) {
    KrnValue one = krn_const_float(&g->b, krn_type(g->real, g->lanes), 1);
    KrnValue number = krn_op2(&g->b, KRN_EQ, value, value);
    return krn_op1(&g->b, KRN_BITS, krn_op3(&g->b, KRN_SELECT, number, value, one));
}

static void begin_graph(Graph *g, uint32_t in, KrnValue index) {
    for (int i = 0; i < 3; i++) {
        KrnIndex at = krn_index(in, i * ELEMENTS);
        krn_index_add(&at, 1, index);
        keep(g, 'F', krn_load(&g->b, &at, g->lanes, 1));
    }
    KrnType real = krn_type(g->real, g->lanes), whole = krn_type(g->whole, g->lanes);
    for (int i = 0; i < 4; i++)
        keep(g, 'F', krn_const_float(&g->b, real, constant(g)));
    keep(g, 'I', bits(g, any(g, 'F')));
    keep(g, 'I', krn_const_int(&g->b, whole, (int64_t)draw(g, 1000) - 500));
    keep(g, 'T', krn_op2(&g->b, KRN_LT, any(g, 'F'), any(g, 'F')));
}

static void step(Graph *g) {
    KrnOp op;
    do
        op = (KrnOp)draw(g, KRN_OP_COUNT);
    while (!strchr(rules[op], '_'));
    const char *rule = rules[op];
    uint32_t arity = krn_arity(op);
    KrnValue v[3];
    for (uint32_t i = 0; i < arity; i++)
        v[i] = any(g, rule[i]);
    KrnValue result;
    if (op == KRN_SHL || op == KRN_SHR)
        result = krn_shift(&g->b, op, v[0], draw(g, g->real == KRN_F32 ? 32 : 64));
    else if (op == KRN_BITS)
        result = bits(g, v[0]);
    else if (arity == 1)
        result = krn_op1(&g->b, op, v[0]);
    else
        result = arity == 2 ? krn_op2(&g->b, op, v[0], v[1]) : krn_op3(&g->b, op, v[0], v[1], v[2]);
    keep(g, rule[arity + 1], result);
}

static void store_last(Graph *g, char sort, uint32_t buffer, KrnValue index) {
    for (int i = 0; i < 2; i++) {
        KrnIndex at = krn_index(buffer, i * ELEMENTS);
        krn_index_add(&at, 1, index);
        KrnValue value = any(g, sort);
        if (krn_type_of(g->b.kernel, value).scalar == KRN_I32)
            value = krn_convert(&g->b, KRN_I64, value);
        krn_store(&g->b, &at, 1, value, false);
    }
}

static Kernel *random_kernel(Fixture *f, uint64_t seed) {
    static const uint32_t lanes[] = {1, 4, 8, 16};
    Kernel *kernel = krn_new(f->arena, f->context.names, "random");
    Graph g = {.b = krn_builder(kernel, f->context.names), .state = seed};
    g.real = draw(&g, 3) ? KRN_F32 : KRN_F64;
    g.whole = g.real == KRN_F32 ? KRN_I32 : KRN_I64;
    g.lanes = lanes[draw(&g, COUNT_OF(lanes))];
    DType type = g.real == KRN_F32 ? F32 : F64;
    uint32_t in = krn_buffer(&g.b, "in", type, 3 * ELEMENTS, 0, KRN_IN);
    uint32_t reals = krn_buffer(&g.b, "reals", type, 2 * ELEMENTS, 0, KRN_OUT);
    uint32_t wholes = krn_buffer(&g.b, "wholes", U64, 2 * ELEMENTS, 0, KRN_OUT);
    uint32_t truths = krn_buffer(&g.b, "truths", U8, 2 * ELEMENTS, 0, KRN_OUT);
    KrnValue index = krn_loop(&g.b, 0, ELEMENTS, g.lanes, KRN_SPLIT, 0, NULL, NULL);
    begin_graph(&g, in, index);
    for (int i = 0; i < STEPS; i++)
        step(&g);
    store_last(&g, 'F', reals, index);
    store_last(&g, 'I', wholes, index);
    store_last(&g, 'T', truths, index);
    krn_end(&g.b, 0, NULL, NULL);
    return kernel;
}

static void run(uint32_t target, const char *cpu) {
    Fixture f;
    fixture_open(&f);
    Native *native = fixture_native(&f, target, cpu, true);
    Kernel *kernels[KERNELS];
    NatFunction code[KERNELS];
    for (uint64_t i = 0; i < KERNELS; i++)
        kernels[i] = random_kernel(&f, 0x9E3779B97F4A7C15u * (i + 1));
    assert_true(nat_compile(native, KERNELS, kernels, code));
    for (uint64_t i = 0; i < KERNELS; i++)
        for (uint64_t seed = 1; seed <= 4; seed++)
            assert_equals_interpreter(&f, kernels[i], code[i], 1, 0, seed);
    nat_free(native);
    fixture_close(&f);
}

static void on_this_machine(void **state) {
    (void)state;
    run(0, NULL);
}

static void in_128_bits(void **state) {
    (void)state;
    run(128, NULL);
}

static void on_the_oldest_processor(void **state) {
    (void)state;
    run(128, "x86-64");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_this_machine),
        cmocka_unit_test(in_128_bits),
        cmocka_unit_test(on_the_oldest_processor),
    };
    return cmocka_run_group_tests_name("native random kernels", tests, NULL, NULL);
}
