#include "support/exact_nests.h"

#include "driver.h"
#include "runtime/bind.h"
#include "runtime/runtime.h"

// Axes by role letter (o outer, i, j, k; p parallel, r reduced), operands by axis letter.
typedef struct Spec {
    RlzKind kind;
    CorePrim prim;
    const char *roles;
    int64_t extent[6];
    const char *input[3]; // input 2 of a contraction: its epilogue
    const char *output;
    bool varied; // also in types apart (exact_nests_mixed)
} Spec;

static const Spec specs[] = {
    // products: NN, NT, TN over two axes, attention's scores and values, rows to be merged; sizes
    // that tiles divide and sizes just beyond them, one axis at a time long
    {RLZ_CONTRACTION, CORE_dot, "ijk", {12, 48, 32}, {"ac", "cb"}, "ab", false},
    {RLZ_CONTRACTION, CORE_dot, "ijk", {14, 64, 9}, {"ac", "cb"}, "ab", true},
    {RLZ_CONTRACTION, CORE_dot, "ijk", {15, 65, 33}, {"ac", "cb"}, "ab", false},
    {RLZ_CONTRACTION, CORE_dot, "ijk", {2, 8, 3072}, {"ac", "cb"}, "ab", false},
    {RLZ_CONTRACTION, CORE_dot, "ijk", {3, 5, 1030}, {"ac", "cb"}, "ab", false},
    {RLZ_CONTRACTION, CORE_dot, "ijk", {130, 4, 3}, {"ac", "cb"}, "ab", false},
    {RLZ_CONTRACTION, CORE_dot_vjp_l, "ijk", {8, 32, 32}, {"ac", "bc"}, "ab", false},
    {RLZ_CONTRACTION, CORE_dot_vjp_l, "ijk", {7, 19, 33}, {"ac", "bc"}, "ab", true},
    {RLZ_CONTRACTION, CORE_dot_vjp_l, "ijk", {2, 4, 1030}, {"ac", "bc"}, "ab", true},
    {RLZ_CONTRACTION, CORE_dot_vjp_r, "ijkk", {8, 16, 3, 32}, {"cda", "cdb"}, "ab", false},
    {RLZ_CONTRACTION, CORE_dot_vjp_r, "ijkk", {9, 11, 3, 5}, {"cda", "cdb"}, "ab", true},
    {RLZ_CONTRACTION, CORE_dot_vjp_r, "ijkk", {4, 4, 2, 1030}, {"cda", "cdb"}, "ab", false},
    {RLZ_CONTRACTION, CORE_ein, "ooijk", {2, 3, 8, 16, 32}, {"acbe", "adbe"}, "abcd", true},
    {RLZ_CONTRACTION, CORE_ein, "ooijk", {2, 2, 5, 24, 7}, {"abce", "aebd"}, "acbd", true},
    {RLZ_CONTRACTION, CORE_dot, "ooijk", {2, 3, 4, 16, 9}, {"abce", "ed"}, "abcd", true},
    // a copy in another order
    {RLZ_PERMUTE, CORE_permute, "ppp", {3, 17, 21}, {"cab"}, "abc", false},
    // roles that are empty, and extents of 1 and 0
    {RLZ_CONTRACTION, CORE_ein, "jk", {16, 32}, {"b", "ba"}, "a", false},
    {RLZ_CONTRACTION, CORE_ein, "ik", {12, 32}, {"ab", "b"}, "a", false},
    {RLZ_CONTRACTION, CORE_ein, "ij", {6, 16}, {"a", "b"}, "ab", false},
    {RLZ_CONTRACTION, CORE_dot, "ijk", {1, 1, 1}, {"ac", "cb"}, "ab", false},
    {RLZ_CONTRACTION, CORE_dot, "ijk", {4, 8, 0}, {"ac", "cb"}, "ab", false},
    {RLZ_CONTRACTION, CORE_dot, "ijk", {4, 0, 8}, {"ac", "cb"}, "ab", false},
    // epilogues: a bias, a mask of the scores, a residual, constants along J and along I
    {RLZ_CONTRACTION, CORE_dot, "ijk", {8, 16, 64}, {"ac", "cb", "b"}, "ab", false},
    {RLZ_CONTRACTION, CORE_dot, "ijk", {7, 19, 37}, {"ac", "cb", "b"}, "ab", true},
    {RLZ_CONTRACTION, CORE_ein, "oijk", {2, 8, 16, 32}, {"abd", "acd", "bc"}, "abc", true},
    {RLZ_CONTRACTION, CORE_ein, "oijk", {2, 4, 16, 64}, {"abd", "adc", "abc"}, "abc", false},
    {RLZ_CONTRACTION, CORE_dot, "ijk", {8, 8, 64}, {"ac", "cb", "a"}, "ab", false},
    {RLZ_CONTRACTION, CORE_dot, "ijk", {4, 8, 0}, {"ac", "cb", ""}, "ab", false},
    // rows and reductions, along memory and across it
    {RLZ_ROW, CORE_softmax, "ppr", {3, 17, 33}, {"abc"}, "abc", true},
    {RLZ_ROW, CORE_softmax, "ppr", {2, 19, 21}, {"abc", "bc"}, "abc", true},
    {RLZ_ROW, CORE_softmax, "ppr", {2, 5, 20}, {"acb"}, "acb", true},
    {RLZ_ROW, CORE_log_softmax, "pr", {35, 18}, {"ab"}, "ab", true},
    {RLZ_ROW, CORE_logsumexp, "pr", {35, 18}, {"ab"}, "a", true},
    {RLZ_ROW, CORE_cross_entropy, "pr", {21, 17}, {"ab", "a"}, "a", true},
    {RLZ_REDUCTION, CORE_sum, "ppr", {3, 17, 37}, {"abc"}, "ab", true},
    {RLZ_REDUCTION, CORE_sum, "prr", {37, 3, 19}, {"abc"}, "a", true},
    {RLZ_REDUCTION, CORE_sum, "pr", {70, 9}, {"ba"}, "a", true},
    {RLZ_REDUCTION, CORE_mean, "pr", {33, 40}, {"ab"}, "a", true},
    {RLZ_REDUCTION, CORE_mean, "r", {70}, {"a"}, "", true},
    {RLZ_REDUCTION, CORE_reduce_max, "pr", {33, 40}, {"ab"}, "a", false},
    {RLZ_REDUCTION, CORE_argmax, "pr", {33, 19}, {"ab"}, "a", false},
    {RLZ_REDUCTION, CORE_reduce_min, "pr", {18, 33}, {"ba"}, "a", false},
};

static RlzRole role_of(char letter) {
    static const char letters[] = "oijkpr";
    static const RlzRole roles[] = {RLZ_OUTER, RLZ_I, RLZ_J, RLZ_K, RLZ_PARALLEL, RLZ_REDUCED};
    return roles[strchr(letters, letter) - letters];
}

static void add(ExactNests *all, const RlzNest *nest) {
    Str text = rlz_nest_text(nest, all->arena);
    bool fresh;
    map_slot(all->seen, text.at, text.size, &fresh);
    if (fresh)
        vec_push(all->arena, &all->nests, nest);
}

// Types that differ from those of the storage, and the order of sums.
typedef struct Variant {
    DType storage, left, right, accumulate;
    bool multiply_add;
    CoreReduce reduce;
} Variant;

static void by_hand(ExactNests *all, const Spec *spec, const Variant *v) {
    TestNest *test = nest_new(all->arena, spec->kind, spec->prim, v->storage);
    for (uint32_t i = 0; spec->roles[i]; i++)
        nest_axis(test, role_of(spec->roles[i]), spec->extent[i]);
    for (uint32_t i = 0; i < 3 && spec->input[i]; i++) {
        bool index = i == 1 && spec->kind == RLZ_ROW;
        DType real = i == 0 ? v->left : i == 1 ? v->right : v->storage;
        RlzOperand *input = nest_input(test, index ? U8 : real, spec->input[i]);
        if (index)
            input->range = spec->prim == CORE_softmax ? 2 : spec->extent[1];
    }
    test->nest.epilogue = spec->kind == RLZ_CONTRACTION && spec->input[2];
    test->nest.accumulate = v->accumulate;
    test->nest.multiply_add = v->multiply_add;
    test->nest.reduce = v->reduce;
    nest_output(test, all->arena, spec->prim == CORE_argmax ? U8 : v->storage, spec->output);
    if (spec->prim == CORE_argmax)
        test->nest.output.range = spec->extent[1];
    add(all, &test->nest);
}

void exact_nests_by_hand(ExactNests *all, DType storage) {
    Variant uniform = {storage, storage, storage, dtype_arithmetic(storage), false, 0};
    for (uint32_t s = 0; s < COUNT_OF(specs); s++)
        by_hand(all, &specs[s], &uniform);
}

void exact_nests_mixed(ExactNests *all) {
    static const Variant products[] = {{F32, F32, F32, F64, false, 0},
                                       {BF16, BF16, BF16, F64, false, 0},
                                       {F32, BF16, F32, F32, false, 0},
                                       {F64, F64, F32, F64, false, 0},
                                       {F32, F32, F32, F32, true, 0}};
    static const Variant folds[] = {{F32, F32, F32, F64, false, 0},
                                    {F32, F32, F32, F32, false, CORE_REDUCE_STRIPES16},
                                    {F64, F64, F64, F64, false, CORE_REDUCE_STRIPES16},
                                    {BF16, BF16, BF16, F32, false, CORE_REDUCE_STRIPES16}};
    for (uint32_t s = 0; s < COUNT_OF(specs); s++) {
        bool product = specs[s].kind == RLZ_CONTRACTION;
        uint32_t count = product ? COUNT_OF(products) : COUNT_OF(folds);
        for (uint32_t v = 0; specs[s].varied && v < count; v++)
            by_hand(all, &specs[s], product ? &products[v] : &folds[v]);
    }
}

// Leaves of many sizes in one nest, a + b · c of which c is one element: none, one, fewer than
// lanes, more, and one whose first operand lies in another order than the rest.
void exact_leaves_by_hand(ExactNests *all, DType storage) {
    static const int64_t sizes[] = {64, 1, 0, 3, 203, 17, 32};
    static const RlzNode nodes[] = {{.prim = CORE_mul, .operand = {1, 2}},
                                    {.prim = CORE_add, .operand = {0, -1}}};
    uint32_t count = COUNT_OF(sizes) + 1;
    const RlzNest **leaf = arena_array(all->arena, const RlzNest *, count);
    for (uint32_t i = 0; i < count; i++) {
        TestNest *test = nest_new(all->arena, RLZ_GROUP, CORE_add, storage);
        bool turned = i + 1 == count;
        nest_axis(test, RLZ_PARALLEL, turned ? 19 : sizes[i]);
        if (turned)
            nest_axis(test, RLZ_PARALLEL, 21);
        nest_input(test, storage, turned ? "ba" : "a");
        nest_input(test, storage, turned ? "ab" : "a");
        nest_input(test, storage, "");
        test->nest.nodes = COUNT_OF(nodes);
        memcpy(test->node, nodes, sizeof nodes);
        for (uint32_t n = 0; n < COUNT_OF(nodes); n++)
            test->node[n].arithmetic = test->nest.arithmetic;
        nest_output(test, all->arena, storage, turned ? "ab" : "a");
        leaf[i] = &test->nest;
    }
    add(all, rlz_nest_of_leaves(leaf, count, all->arena));
    add(all, rlz_nest_of_leaves(leaf + 1, 3, all->arena)); // too little to divide
}

// ---- programs -----------------------------------------------------------------------------------

static bool hyper_value(void *data, Name name, double *value) {
    *value = strcmp(name_c(data, name), "t") == 0 ? 2 : 0.5; // the step is a number of steps
    return true;
}

typedef struct Entry {
    const char *path, *entry;
    ChkConst constant[4];
    const char *dims;
    const char *mixed; // a record of types apart; null: none
} Entry;

#define CONSTANT(name, value)                                                                      \
    {                                                                                              \
        {name, sizeof name - 1}, {                                                                 \
            value, sizeof value - 1                                                                \
        }                                                                                          \
    }
static const Entry entries[] = {
    {"corpus/nlp/05_gpt.psk",
     "loss.grad",
     {CONSTANT("D", "24"), CONSTANT("H", "2"), CONSTANT("L", "1"), CONSTANT("V", "11")},
     "BT",
     NULL},
    {"corpus/nlp/05_gpt.psk",
     "adamw.step",
     {CONSTANT("D", "24"), CONSTANT("H", "2"), CONSTANT("L", "1"), CONSTANT("V", "11")},
     "T",
     NULL},
    {"corpus/vision/01_mlp.psk",
     "loss.grad",
     {CONSTANT("P", "20"), CONSTANT("H", "12"), CONSTANT("C", "5")},
     "B",
     NULL},
    {"corpus/nlp/02_minigpt.psk",
     "loss.grad",
     {CONSTANT("D", "12"), CONSTANT("H", "2"), CONSTANT("L", "1"), CONSTANT("V", "9")},
     "BT",
     "@tests/plan/minigpt_mixed.json"},
};

// A derivative with an operand to add: of the output's shape, or one that runs along J alone.
static void add_with_operand(ExactNests *all, const RlzNest *nest, bool whole) {
    bool derivative = nest->kind == RLZ_CONTRACTION && nest->prim != CORE_dot;
    if (!derivative || nest->epilogue)
        return;
    RlzNest *with = arena_copy(all->arena, nest, sizeof *nest);
    RlzOperand *input = arena_array(all->arena, RlzOperand, 3);
    int32_t j = rlz_nest_axis(nest, RLZ_J);
    memcpy(input, nest->input, 2 * sizeof *input);
    input[2] = (RlzOperand){.source = RLZ_MEMORY, .type = nest->output.type};
    if (whole)
        input[2] = nest->output;
    else if (j >= 0)
        input[2].stride[j] = 1;
    with->input = input;
    with->inputs = 3;
    with->epilogue = true;
    add(all, with);
}

// The nests of a program's launches; of launches a leaf, also that of all leaves.
static void add_launches(ExactNests *all, const RtProgram *program) {
    uint32_t count = rt_launch_count(program);
    for (uint32_t i = 0; i < count; i++)
        add(all, rt_launch_at(program, i)->nest);
    for (uint32_t i = 0, end; i < count; i = end) {
        const RtLaunch *first = rt_launch_at(program, i);
        const RlzNest **leaf = arena_array(all->arena, const RlzNest *, count - i);
        for (end = i; end < count && rt_launch_at(program, end)->let == first->let &&
                      rt_launch_at(program, end)->nest->of_tree;
             end++)
            leaf[end - i] = rt_launch_at(program, end)->nest;
        if (end > i)
            add(all, rlz_nest_of_leaves(leaf, end - i, all->arena));
        end = MAX(end, i + 1);
    }
    for (uint32_t i = 0; i < count; i++)
        add_with_operand(all, rt_launch_at(program, i)->nest, i % 2);
}

static bool add_entry(Context *context, ExactNests *all, const Entry *entry, const char *type) {
    Arena *arena = all->arena;
    PreskCompiled compiled;
    uint32_t constants = 0;
    while (constants < COUNT_OF(entry->constant) && entry->constant[constants].name.size)
        constants++;
    if (!presk_compile(context, arena, entry->path, constants, entry->constant, entry->entry,
                       &compiled))
        return false;
    CoreProgram *core = compiled.program->core;
    RlzRealization *record = rlz_realization_read(context, arena, str_of(type));
    CoreArithmetic *arithmetic = rlz_arithmetic(core, arena, record, true);
    RtBinding *binding = rt_bind(core, arena, str_of(entry->entry));
    if (!binding)
        return false;
    for (const char *dim = entry->dims; *dim; dim++)
        if (!rt_bind_dim(binding, str_copy(arena, dim, 1), *dim == 'T' ? 6 : 3, STR("the test")))
            return false;
    if (!rt_bind_dims_done(binding))
        return false;
    for (uint32_t i = 0; i < binding->fn->params; i++)
        if (!rt_bind_zeros(binding, i, arithmetic->inputs, arithmetic->params))
            return false;
    RtOptions options = {.backend = RT_KERNEL,
                         .depth = RT_TO_COUNT,
                         .arithmetic = arithmetic,
                         .target = 128,
                         .dims = binding->by_dim,
                         .hyper = hyper_value,
                         .hyper_data = context->names};
    RtProgram *program = rt_build(core, arena, &options, binding->id, binding->arguments,
                                  rt_bind_own(binding), 0, NULL);
    if (program)
        add_launches(all, program);
    return program != NULL;
}

bool exact_nests_of_programs(Context *context, ExactNests *all) {
    static const char *const uniform[] = {"f32", "f64", "bf16"};
    for (uint32_t i = 0; i < COUNT_OF(entries); i++) {
        for (uint32_t t = 0; t < COUNT_OF(uniform); t++)
            if (!add_entry(context, all, &entries[i], uniform[t]))
                return false;
        if (entries[i].mixed && !add_entry(context, all, &entries[i], entries[i].mixed))
            return false;
    }
    return true;
}
