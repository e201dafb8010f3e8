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
} Spec;

static const Spec specs[] = {
    // products: NN, NT, TN over two axes, attention's scores and values, rows to be merged
    {RLZ_CONTRACTION, CORE_dot, "ijk", {12, 48, 32}, {"ac", "cb"}, "ab"},
    {RLZ_CONTRACTION, CORE_dot, "ijk", {13, 67, 37}, {"ac", "cb"}, "ab"},
    {RLZ_CONTRACTION, CORE_dot_vjp_l, "ijk", {8, 32, 32}, {"ac", "bc"}, "ab"},
    {RLZ_CONTRACTION, CORE_dot_vjp_l, "ijk", {7, 19, 33}, {"ac", "bc"}, "ab"},
    {RLZ_CONTRACTION, CORE_dot_vjp_r, "ijkk", {8, 16, 3, 32}, {"cda", "cdb"}, "ab"},
    {RLZ_CONTRACTION, CORE_dot_vjp_r, "ijkk", {9, 11, 3, 5}, {"cda", "cdb"}, "ab"},
    {RLZ_CONTRACTION, CORE_ein, "ooijk", {2, 3, 8, 16, 32}, {"acbe", "adbe"}, "abcd"},
    {RLZ_CONTRACTION, CORE_ein, "ooijk", {2, 2, 5, 24, 7}, {"abce", "aebd"}, "acbd"},
    {RLZ_CONTRACTION, CORE_dot, "ooijk", {2, 3, 4, 16, 9}, {"abce", "ed"}, "abcd"},
    // roles that are empty, and extents of 1 and 0
    {RLZ_CONTRACTION, CORE_ein, "jk", {16, 32}, {"b", "ba"}, "a"},
    {RLZ_CONTRACTION, CORE_ein, "ik", {12, 32}, {"ab", "b"}, "a"},
    {RLZ_CONTRACTION, CORE_ein, "ij", {6, 16}, {"a", "b"}, "ab"},
    {RLZ_CONTRACTION, CORE_dot, "ijk", {1, 1, 1}, {"ac", "cb"}, "ab"},
    {RLZ_CONTRACTION, CORE_dot, "ijk", {4, 8, 0}, {"ac", "cb"}, "ab"},
    {RLZ_CONTRACTION, CORE_dot, "ijk", {4, 0, 8}, {"ac", "cb"}, "ab"},
    // epilogues: a bias, a mask of the scores, a residual, constants along J and along I
    {RLZ_CONTRACTION, CORE_dot, "ijk", {8, 16, 64}, {"ac", "cb", "b"}, "ab"},
    {RLZ_CONTRACTION, CORE_dot, "ijk", {7, 19, 37}, {"ac", "cb", "b"}, "ab"},
    {RLZ_CONTRACTION, CORE_ein, "oijk", {2, 8, 16, 32}, {"abd", "acd", "bc"}, "abc"},
    {RLZ_CONTRACTION, CORE_ein, "oijk", {2, 4, 16, 64}, {"abd", "adc", "abc"}, "abc"},
    {RLZ_CONTRACTION, CORE_dot, "ijk", {8, 8, 64}, {"ac", "cb", "a"}, "ab"},
    {RLZ_CONTRACTION, CORE_dot, "ijk", {4, 8, 0}, {"ac", "cb", ""}, "ab"},
    // rows and reductions, along memory and across it
    {RLZ_ROW, CORE_softmax, "ppr", {3, 17, 33}, {"abc"}, "abc"},
    {RLZ_ROW, CORE_softmax, "ppr", {2, 19, 21}, {"abc", "bc"}, "abc"},
    {RLZ_ROW, CORE_softmax, "ppr", {2, 5, 20}, {"acb"}, "acb"},
    {RLZ_ROW, CORE_log_softmax, "pr", {35, 18}, {"ab"}, "ab"},
    {RLZ_ROW, CORE_logsumexp, "pr", {35, 18}, {"ab"}, "a"},
    {RLZ_ROW, CORE_cross_entropy, "pr", {21, 17}, {"ab", "a"}, "a"},
    {RLZ_REDUCTION, CORE_sum, "ppr", {3, 17, 37}, {"abc"}, "ab"},
    {RLZ_REDUCTION, CORE_sum, "prr", {37, 3, 19}, {"abc"}, "a"},
    {RLZ_REDUCTION, CORE_sum, "pr", {70, 9}, {"ba"}, "a"},
    {RLZ_REDUCTION, CORE_mean, "pr", {33, 40}, {"ab"}, "a"},
    {RLZ_REDUCTION, CORE_mean, "r", {70}, {"a"}, ""},
    {RLZ_REDUCTION, CORE_reduce_max, "pr", {33, 40}, {"ab"}, "a"},
    {RLZ_REDUCTION, CORE_argmax, "pr", {33, 19}, {"ab"}, "a"},
    {RLZ_REDUCTION, CORE_reduce_min, "pr", {18, 33}, {"ba"}, "a"},
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

void exact_nests_by_hand(ExactNests *all, DType storage) {
    for (uint32_t s = 0; s < COUNT_OF(specs); s++) {
        const Spec *spec = &specs[s];
        TestNest *test = nest_new(all->arena, spec->kind, spec->prim, storage);
        for (uint32_t i = 0; spec->roles[i]; i++)
            nest_axis(test, role_of(spec->roles[i]), spec->extent[i]);
        for (uint32_t i = 0; i < 3 && spec->input[i]; i++) {
            bool index = i == 1 && spec->kind == RLZ_ROW;
            RlzOperand *input = nest_input(test, index ? U8 : storage, spec->input[i]);
            if (index)
                input->range = spec->prim == CORE_softmax ? 2 : spec->extent[1];
        }
        test->nest.epilogue = spec->kind == RLZ_CONTRACTION && spec->input[2];
        nest_output(test, all->arena, spec->prim == CORE_argmax ? U8 : storage, spec->output);
        if (spec->prim == CORE_argmax)
            test->nest.output.range = spec->extent[1];
        add(all, &test->nest);
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
     "BT"},
    {"corpus/nlp/05_gpt.psk",
     "adamw.step",
     {CONSTANT("D", "24"), CONSTANT("H", "2"), CONSTANT("L", "1"), CONSTANT("V", "11")},
     "T"},
    {"corpus/vision/01_mlp.psk",
     "loss.grad",
     {CONSTANT("P", "20"), CONSTANT("H", "12"), CONSTANT("C", "5"), CONSTANT("D", "1")},
     "B"},
};

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
}

static bool add_entry(Context *context, ExactNests *all, const Entry *entry, const char *type) {
    Arena *arena = all->arena;
    PreskCompiled compiled;
    uint32_t constants = strstr(entry->path, "vision") ? 3 : 4;
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

bool exact_nests_of_programs(Context *context, ExactNests *all, const char *realization) {
    for (uint32_t i = 0; i < COUNT_OF(entries); i++)
        if (!add_entry(context, all, &entries[i], realization))
            return false;
    return true;
}
