// Random programs: dimensions, modules, signatures, calls and results.
#include "support/random_program_gen.h"

#include "base/file.h"

// ---- numbers --------------------------------------------------------------------------------

// SplitMix64 (Steele, Lea, Flood 2014).
static uint64_t next(Gen *g) {
    uint64_t z = g->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint32_t gen_below(Gen *g, uint32_t n) {
    return n ? (uint32_t)((next(g) >> 32) * n >> 32) : 0;
}

bool gen_chance(Gen *g, uint32_t percent) {
    return gen_below(g, 100) < percent;
}

int64_t gen_value(const Gen *g, Extent extent) {
    if (extent == EXTENT_PACK)
        return RANDOM_PACK;
    int64_t value;
    return extent_value(g->p->extents, extent, g->value, &value, NULL) ? value : RANDOM_WORK;
}

int64_t gen_elements(const Gen *g, CoreTypeId id) {
    const CoreType *type = core_type(g->p, id);
    int64_t count = 1;
    for (uint32_t i = 0; i < type->rank && count <= RANDOM_WORK; i++)
        count *= MAX(gen_value(g, type->axes[i].extent), 1);
    for (uint32_t i = 0; i < type->parts && count <= RANDOM_WORK; i++)
        count += gen_elements(g, type->part[i]);
    return count;
}

Name gen_axis_name(Gen *g) {
    static const char *const names[] = {"batch", "seq", "model", "head", "in", "keep"};
    return name_of_c(g->context->names, names[gen_below(g, COUNT_OF(names))]);
}

// ---- lets -----------------------------------------------------------------------------------

CoreLetId gen_emit(Gen *g, CorePrim prim, uint32_t count, const CoreLetId *operands,
                   const CoreAttr *attr, CoreTypeId stated) {
    Str why;
    for (uint32_t i = 0; i < count; i++)
        if (operands[i] == RANDOM_NONE)
            return RANDOM_NONE;
    CoreTypeId type = core_type_rule(g->p, g->fn, prim, count, operands, attr, stated, &why);
    if (!type || core_type(g->p, type)->rank > RANDOM_RANK ||
        gen_elements(g, type) > RANDOM_ELEMENTS)
        return RANDOM_NONE;
    static const char *const names[] = {"x", "y", "scores", "hidden", "in", "t"};
    Name name =
        gen_chance(g, 25) ? name_of_c(g->context->names, names[gen_below(g, COUNT_OF(names))]) : 0;
    return core_let_add(g->p, g->fn, prim, type, count, operands, attr, name, (Span){0});
}

CoreLetId gen_find(Gen *g, GenWant want) {
    uint32_t count = g->fn->lets.count;
    if (!count)
        return RANDOM_NONE;
    uint32_t start = gen_below(g, count);
    if (gen_chance(g, 50))
        start = count - 1 - gen_below(g, MIN(count, 4));
    for (uint32_t i = 0; i < count; i++) {
        CoreLetId let = (start + count - i) % count;
        if (want(g, gen_type(g, let)))
            return let;
    }
    return RANDOM_NONE;
}

// ---- calls ----------------------------------------------------------------------------------

// What a callee's own dimensions and pack have been found to be.
typedef struct Match {
    const CoreFn *callee;
    Extent by_dim[RANDOM_DIMS];
    bool packed;
    uint32_t pack_count;
    CoreAxis pack[RANDOM_RANK];
} Match;

// Does `given` match the pattern, an own dimension or an extent in terms of global ones?
static bool match_extent(Gen *g, Match *m, Extent pattern, Extent given) {
    if (pattern == EXTENT_PACK || given == EXTENT_PACK)
        return false;
    for (uint32_t i = 0; i < m->callee->dims.count; i++) {
        DimId dim = m->callee->dims.at[i];
        if (pattern != extent_dim(g->p->extents, dim))
            continue;
        if (!m->by_dim[dim] && gen_value(g, given) > 0 && gen_value(g, given) <= 20)
            m->by_dim[dim] = given;
        return m->by_dim[dim] == given;
    }
    return pattern == given;
}

static bool match_axes(Gen *g, Match *m, const CoreType *pattern, const CoreType *given) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < pattern->rank; i++) {
        if (pattern->axes[i].extent != EXTENT_PACK) {
            if (at >= given->rank ||
                !match_extent(g, m, pattern->axes[i].extent, given->axes[at++].extent))
                return false;
            continue;
        }
        if (given->rank + 1 < pattern->rank)
            return false;
        uint32_t count = given->rank + 1 - pattern->rank;
        int64_t elements = 1;
        for (uint32_t k = 0; k < count; k++)
            elements *= gen_value(g, given->axes[at + k].extent);
        if (count > 2 || elements > RANDOM_PACK)
            return false;
        if (!m->packed)
            memcpy(m->pack, given->axes + at, count * sizeof *m->pack);
        if (m->packed && m->pack_count != count)
            return false;
        m->packed = true;
        m->pack_count = count;
        for (uint32_t k = 0; k < count; k++)
            if (m->pack[k].extent != given->axes[at + k].extent)
                return false;
        at += count;
    }
    return at == given->rank;
}

static bool match(Gen *g, Match *m, CoreTypeId pattern_id, CoreTypeId given_id) {
    const CoreType *pattern = core_type(g->p, pattern_id), *given = core_type(g->p, given_id);
    if (pattern->kind != given->kind)
        return false;
    if (pattern->kind == CORE_PARAMS) {
        const CoreTreeNode *a = core_tree(g->p, pattern->tree), *b = core_tree(g->p, given->tree);
        bool ok = a->module == b->module && a->count == b->count && a->module;
        for (uint32_t i = 0; ok && i < a->count; i++)
            ok = match_extent(g, m, a->dims[i], b->dims[i]);
        return ok;
    }
    if (pattern->kind == CORE_IDX && !match_extent(g, m, pattern->bound, given->bound))
        return false;
    return match_axes(g, m, pattern, given);
}

// A let for a parameter: one that matches, or a scalar copied to its type.
static CoreLetId find_argument(Gen *g, Match *m, CoreTypeId pattern) {
    uint32_t count = g->fn->lets.count, start = gen_below(g, count);
    for (uint32_t i = 0; i < count; i++) {
        CoreLetId let = (start + i) % count;
        Match before = *m;
        if (match(g, m, pattern, core_let(g->fn, let)->type))
            return let;
        *m = before;
    }
    for (uint32_t i = 0; i < m->callee->dims.count; i++)
        if (!m->by_dim[m->callee->dims.at[i]])
            m->by_dim[m->callee->dims.at[i]] =
                extent_dim(g->p->extents, g->global[gen_below(g, 4)]);
    m->packed = true;
    CoreTypeId type = core_type_substitute(g->p, pattern, m->by_dim, m->pack, m->pack_count);
    CoreLetId scalar = gen_make_scalar(g);
    return type ? gen_emit(g, CORE_copy, 1, &scalar, NULL, type) : RANDOM_NONE;
}

CoreLetId gen_make_call(Gen *g) {
    uint32_t fns = g->p->fns.count - 2; // the last is being filled
    if (fns == 0 || g->fn->lets.count == 0)
        return RANDOM_NONE;
    CoreAttr attr = {.callee = 1 + gen_below(g, fns)};
    Match m = {.callee = core_fn(g->p, attr.callee)};
    CoreLetId operands[8];
    for (uint32_t i = 0; i < m.callee->params; i++) {
        operands[i] = find_argument(g, &m, m.callee->lets.at[i].type);
        if (operands[i] == RANDOM_NONE)
            return RANDOM_NONE;
    }
    Extent dims[4];
    for (uint32_t i = 0; i < m.callee->dims.count; i++) {
        dims[i] = m.by_dim[m.callee->dims.at[i]];
        if (!dims[i])
            return RANDOM_NONE;
    }
    attr.dims = dims;
    attr.dim_count = m.callee->dims.count;
    attr.pack = m.pack;
    attr.pack_count = m.callee->has_pack ? m.pack_count : 0;
    return gen_emit(g, CORE_call, m.callee->params, operands, &attr, 0);
}

// ---- signatures -----------------------------------------------------------------------------

static void add_param(Gen *g, CoreTypeId type) {
    Name name = gen_chance(g, 50) ? name_of_c(g->context->names, "p") : 0;
    core_let_add(g->p, g->fn, CORE_param, type, 0, NULL, NULL, name, (Span){0});
    g->fn->params = g->fn->lets.count;
}

static CoreTypeId tree_type(Gen *g, bool net, Extent a, Extent b) {
    Extent dims[2] = {a, b};
    return core_type_params(g->p, net ? core_tree_module(g->p, g->net, 1, dims)
                                      : core_tree_module(g->p, g->linear, 2, dims));
}

// Parameters of a polymorphic function: ℝ[..., N] first, which settles N and the pack.
static void own_params(Gen *g, Extent n, Extent m) {
    CoreAxis last[2] = {{0, EXTENT_PACK}, {0, n}};
    uint32_t skip = g->fn->has_pack ? 0 : 1;
    CoreAxis matrix[2] = {{0, n}, {0, m}};
    if (gen_chance(g, 30))
        last[1].name = gen_axis_name(g);
    add_param(g, core_type_real(g->p, 2 - skip, last + skip));
    for (uint32_t extra = gen_below(g, 4); extra > 0; extra--) {
        switch (gen_below(g, 6)) {
        case 0:
            add_param(g, core_type_real(g->p, 1, matrix));
            break;
        case 1:
            add_param(g, core_type_real(g->p, 2, matrix));
            break;
        case 2:
            add_param(g, core_type_idx(g->p, n, 1 - skip, last));
            break;
        case 3:
            add_param(g, core_type_real(g->p, 2 - skip, last + skip));
            break;
        case 4:
            add_param(g, tree_type(g, false, n, m));
            break;
        default:
            add_param(g, tree_type(g, true, n, n));
        }
    }
}

static CoreTypeId entry_tensor(Gen *g, bool index) {
    CoreAxis axes[4];
    uint32_t rank = gen_below(g, 5);
    int64_t elements = 1;
    for (uint32_t i = 0; i < rank; i++) {
        axes[i] = (CoreAxis){0, extent_dim(g->p->extents, g->global[gen_below(g, 5)])};
        if (gen_chance(g, 15))
            axes[i].extent = extent_int(g->p->extents, 1);
        elements *= MAX(gen_value(g, axes[i].extent), 1);
        if (elements > RANDOM_ELEMENTS / 4)
            rank = i;
    }
    if (rank && gen_chance(g, 40))
        axes[gen_below(g, rank)].name = gen_axis_name(g);
    static const int64_t bounds[] = {1, 2, 2, 7, 256, 257, 70000};
    Extent bound = gen_chance(g, 60)
                       ? extent_dim(g->p->extents, g->global[gen_below(g, 4)])
                       : extent_int(g->p->extents, bounds[gen_below(g, COUNT_OF(bounds))]);
    return index ? core_type_idx(g->p, bound, rank, axes) : core_type_real(g->p, rank, axes);
}

static void entry_params(Gen *g) {
    Extent a = extent_dim(g->p->extents, g->global[gen_below(g, 4)]);
    Extent b = extent_dim(g->p->extents, g->global[gen_below(g, 4)]);
    for (uint32_t i = 2 + gen_below(g, 3); i > 0; i--)
        add_param(g, entry_tensor(g, false));
    CoreAxis product[3] = {{0, extent_dim(g->p->extents, g->global[gen_below(g, 5)])},
                           {0, a},
                           {0, b}}; // two that a dot takes
    add_param(g, core_type_real(g->p, 2, product));
    add_param(g, core_type_real(g->p, 2, product + 1));
    for (uint32_t i = 1 + gen_below(g, 2); i > 0; i--)
        add_param(g, entry_tensor(g, true));
    if (gen_chance(g, 50))
        add_param(g, tree_type(g, false, a, b));
    if (gen_chance(g, 40))
        add_param(g, tree_type(g, true, a, a));
}

// ---- bodies ---------------------------------------------------------------------------------

// A few elementwise lets in a row, each reading the one before: what groups are made of.
static void chain(Gen *g) {
    static const CorePrim binary[] = {CORE_add, CORE_sub, CORE_mul, CORE_div, CORE_max};
    static const CorePrim unary[] = {CORE_exp, CORE_neg, CORE_gelu, CORE_sqrt, CORE_tanh};
    CoreLetId operands[2] = {gen_find(g, gen_is_tensor)}, other = operands[0];
    for (uint32_t steps = 2 + gen_below(g, 9); steps > 0 && operands[0] != RANDOM_NONE; steps--) {
        bool two = gen_chance(g, 60);
        operands[1] = gen_chance(g, 30) ? other : operands[0];
        CorePrim prim = two ? binary[gen_below(g, 5)] : unary[gen_below(g, 5)];
        other = operands[0];
        operands[0] = gen_emit(g, prim, two ? 2 : 1, operands, NULL, 0);
    }
}

static void body(Gen *g, uint32_t size) {
    uint32_t goal = g->fn->lets.count + size / 2 + gen_below(g, size);
    for (uint32_t tries = 0; g->fn->lets.count < goal && tries < 20 * size; tries++) {
        if (gen_chance(g, 6))
            chain(g);
        else if (gen_chance(g, 10))
            gen_make(g, gen_chance(g, 50) ? CORE_dot : CORE_ein);
        else if (gen_chance(g, 10))
            gen_make_call(g);
        else
            gen_make(g, (CorePrim)gen_below(g, CORE_PRIM_COUNT));
    }
}

// The result: what nothing reads, in a tuple; now and then the last value or any, the rest dead.
static void result(Gen *g, bool entry) {
    CoreFn *fn = g->fn;
    bool *read = arena_array(g->arena, bool, fn->lets.count);
    for (CoreLetId let = 0; let < fn->lets.count; let++)
        for (uint32_t i = 0; i < core_let(fn, let)->count; i++)
            read[core_operand(fn, let, i)] = true;
    enum { PARTS = 24 };
    CoreLetId unread[PARTS];
    uint32_t count = 0;
    for (CoreLetId let = fn->lets.count; let-- > 0 && count < PARTS;)
        if (!read[let])
            unread[count++] = let;
    bool any = gen_chance(g, 20);
    fn->result = any ? gen_below(g, fn->lets.count) : fn->lets.count - 1;
    if (count > 1 && gen_chance(g, entry ? 95 : 30)) {
        CoreTypeId parts[PARTS];
        for (uint32_t i = 0; i < count; i++)
            parts[i] = core_let(fn, unread[i])->type;
        fn->result = core_let_add(g->p, fn, CORE_tuple, core_type_tuple(g->p, count, parts), count,
                                  unread, NULL, 0, (Span){0});
    }
    fn->type = core_let(fn, fn->result)->type;
}

static DimId add_dim(Gen *g, const char *name, int64_t value, bool global) {
    Dim dim = {.name = name_of_c(g->context->names, name), .global = global};
    if (global)
        dim.bound = extent_int(g->p->extents, value);
    DimId id = extent_dim_add(g->p->extents, dim);
    check_that(id < RANDOM_DIMS);
    g->value[id] = value;
    return id;
}

static void own_function(Gen *g, uint32_t index, uint32_t size) {
    Str name = str_format(g->arena, "f%u", index);
    g->fn = core_fn(g->p, core_fn_add(g->p, name_of(g->context->names, name), (Span){0}));
    g->fn->has_pack = gen_chance(g, 65);
    DimId n = add_dim(g, "N", 20, false), m = add_dim(g, "M", 20, false);
    vec_push(g->arena, &g->fn->dims, n);
    vec_push(g->arena, &g->fn->dims, m);
    own_params(g, extent_dim(g->p->extents, n), extent_dim(g->p->extents, m));
    body(g, size);
    result(g, false);
}

static void leaf(Gen *g, CoreModuleId module, const char *name, uint32_t rank, const CoreAxis *axes,
                 CoreInit init) {
    CoreField field = {.name = name_of_c(g->context->names, name), .init = init};
    field.type = core_type_real(g->p, rank, axes);
    vec_push(g->arena, &g->p->modules.at[module].fields, field);
}

static void subtree(Gen *g, CoreModuleId module, const char *name, CoreTree tree) {
    CoreField field = {.name = name_of_c(g->context->names, name), .tree = tree};
    vec_push(g->arena, &g->p->modules.at[module].fields, field);
}

// Linear{I, O}: w, b; Net{N}: first : Linear{N, N}, rest : two of them, scale : ℝ.
static void modules(Gen *g) {
    CoreProgram *p = g->p;
    DimId i = add_dim(g, "I", 20, false), o = add_dim(g, "O", 20, false);
    DimId n = add_dim(g, "N", 20, false);
    CoreAxis axes[2] = {{0, extent_dim(p->extents, i)}, {0, extent_dim(p->extents, o)}};
    CoreScalar one = core_scalar_rational(p, rational_of_int(g->arena, 1));
    CoreScalar less = core_scalar_rational(p, rational_of_int(g->arena, -1));
    g->linear = core_module_add(p, name_of_c(g->context->names, "Linear"), (Span){0});
    g->net = core_module_add(p, name_of_c(g->context->names, "Net"), (Span){0});
    vec_push(g->arena, &p->modules.at[g->linear].dims, i);
    vec_push(g->arena, &p->modules.at[g->linear].dims, o);
    leaf(g, g->linear, "w", 2, axes, (CoreInit){CORE_INIT_UNIFORM, less, one});
    leaf(g, g->linear, "b", 1, axes + 1, (CoreInit){.kind = CORE_INIT_ONES});
    vec_push(g->arena, &p->modules.at[g->net].dims, n);
    Extent square[2] = {extent_dim(p->extents, n), extent_dim(p->extents, n)};
    CoreTree linear = core_tree_module(p, g->linear, 2, square);
    subtree(g, g->net, "first", linear);
    subtree(g, g->net, "rest", core_tree_sequence(p, 2, (CoreTree[]){linear, linear}));
    leaf(g, g->net, "scale", 0, NULL, (CoreInit){CORE_INIT_NORMAL, one, one});
}

RandomProgram random_program(Context *context, uint64_t seed, uint32_t size) {
    static const int64_t extents[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 17, 19};
    static const char *const names[] = {"A", "B", "C", "D", "E"};
    Gen g = {.context = context,
             .arena = context->arena,
             .p = core_program_new(context, context->arena),
             .state = seed};
    for (uint32_t i = 0; i < COUNT_OF(names); i++) {
        int64_t value = extents[gen_below(&g, COUNT_OF(extents))];
        if (i == 4 && gen_chance(&g, 30))
            value = 0;
        g.global[i] = add_dim(&g, names[i], value, true);
    }
    modules(&g);
    for (uint32_t i = 0, fns = gen_below(&g, 4); i < fns; i++)
        own_function(&g, i, size / 2 + 2);
    CoreFnId entry = core_fn_add(g.p, name_of_c(context->names, "main"), (Span){0});
    g.fn = core_fn(g.p, entry);
    entry_params(&g);
    body(&g, size);
    result(&g, true);
    int64_t *dims = arena_array(g.arena, int64_t, extent_dim_count(g.p->extents) + 1);
    for (DimId dim = 0; dim <= extent_dim_count(g.p->extents); dim++)
        dims[dim] = dim >= 1 && extent_dim_get(g.p->extents, dim)->global ? g.value[dim] : -1;
    return (RandomProgram){g.p, entry, dims, seed};
}

// ---- text and seeds -------------------------------------------------------------------------

Str random_program_text(const RandomProgram *program, Arena *arena) {
    for (DimId dim = 1; dim <= extent_dim_count(program->core->extents); dim++)
        if (program->dims[dim] >= 0)
            extent_dim_get(program->core->extents, dim)->bound =
                extent_int(program->core->extents, program->dims[dim]);
    return core_print(program->core, arena);
}

RandomProgram random_program_read(Context *context, Str text) {
    uint32_t source = source_add(&context->sources, STR("random.core"), text);
    CoreProgram *core = core_read(context, context->arena, source);
    if (!core)
        bug("a random program's text is malformed: %s",
            diags_render(&context->diags, context->arena, DIAG_PLAIN).at);
    uint32_t count = extent_dim_count(core->extents);
    int64_t *dims = arena_array(context->arena, int64_t, count + 1);
    for (DimId dim = 0; dim <= count; dim++) {
        dims[dim] = -1;
        if (dim >= 1 && extent_dim_get(core->extents, dim)->global)
            extent_is_int(core->extents, extent_dim_get(core->extents, dim)->bound, &dims[dim]);
    }
    return (RandomProgram){core, core->fns.count - 1, dims, 0};
}

uint32_t random_program_seeds(Arena *arena, uint64_t **seeds) {
    Vec(uint64_t) all = {0};
    Str text, error;
    if (!file_read(arena, "tests/random.seeds", &text, &error))
        bug("%s", error.at);
    for (uint32_t at = 0; at < text.size;) {
        uint64_t seed = 0;
        uint32_t start = at;
        for (; at < text.size && text.at[at] >= '0' && text.at[at] <= '9'; at++)
            seed = seed * 10 + (uint64_t)(text.at[at] - '0');
        if (at > start)
            vec_push(arena, &all, seed);
        while (at < text.size && text.at[at] != '\n')
            at++;
        at++;
    }
    *seeds = all.at;
    return all.count;
}
