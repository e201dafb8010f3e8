// Realizations and programs: which lets the sites of a record name, and the table of types that
// executors read.
#include "realize/sites.h"
#include "realize/realization.h"

typedef struct Place {
    CoreFnId fn; // 0: there is no such site
    CoreLetId let;
} Place;

static bool launches(const CoreFn *fn, CoreLetId let) {
    CoreClass class = core_prims[core_let(fn, let)->prim].class;
    return class != CORE_FREE && class != CORE_CALL;
}

// "loss/%12".
static Place find_site(const CoreProgram *program, Arena *arena, Str site) {
    Place none = {0};
    uint32_t slash = site.size;
    while (slash > 0 && site.at[slash - 1] != '/')
        slash--;
    if (slash < 2 || slash + 2 > site.size || site.at[slash] != '%')
        return none;
    uint64_t let = 0;
    for (uint32_t i = slash + 1; i < site.size; i++) {
        if (site.at[i] < '0' || site.at[i] > '9' || let > UINT32_MAX)
            return none;
        let = let * 10 + (uint64_t)(site.at[i] - '0');
    }
    CoreFnId id = core_fn_find(program, str_copy(arena, site.at, slash - 1));
    if (!id || let >= core_fn(program, id)->lets.count ||
        !launches(core_fn(program, id), (CoreLetId)let))
        return none;
    return (Place){id, (CoreLetId)let};
}

static CoreLetId root_of(const CoreFn *fn, CoreLetId let) {
    return fn->group && fn->group[let] != CORE_NO_GROUP ? fn->group[let] : let;
}

bool rlz_site_find(const CoreProgram *program, Str site, CoreFnId *fn, CoreLetId *let) {
    Place place = find_site(program, program->context->arena, site);
    *fn = place.fn;
    *let = place.let;
    return place.fn != 0;
}

Str rlz_site_nearest(const CoreProgram *program, Str site, Arena *arena) {
    Vec(Str) legal = {0};
    for (CoreFnId id = 1; id < program->fns.count; id++)
        for (CoreLetId let = 0; let < core_fn(program, id)->lets.count; let++)
            if (launches(core_fn(program, id), let))
                vec_push(arena, &legal, core_site_text(program, id, let, arena));
    return nearest_spelling(arena, site, legal.at, legal.count);
}

static void refuse_unknown(const CoreProgram *program, Arena *arena, const RlzSite *site) {
    Diag *made = diag(&program->context->diags, E7001, site->span,
                      str_format(arena, "no site `%s` launches", site->site.at).at);
    Str near = rlz_site_nearest(program, site->site, arena);
    if (near.size)
        diag_help(made, "did you mean `%s`?", near.at);
}

// The type of a root: what the record says of it, else the default.
static DType root_type(const CoreProgram *program, Arena *arena, const RlzRealization *realization,
                       Place root) {
    DType type = realization->uniform;
    for (uint32_t i = 0; i < realization->sites.count; i++) {
        Place at = find_site(program, arena, realization->sites.at[i].site);
        if (at.fn == root.fn && at.let == root.let)
            type = realization->sites.at[i].type;
    }
    return type;
}

bool rlz_realization_check(const CoreProgram *program, const RlzRealization *realization) {
    Arena *arena = program->context->arena;
    bool fine = true;
    for (uint32_t i = 0; i < realization->sites.count; i++) {
        const RlzSite *site = &realization->sites.at[i];
        Place at = find_site(program, arena, site->site);
        if (!at.fn) {
            refuse_unknown(program, arena, site);
            fine = false;
            continue;
        }
        Place root = {at.fn, root_of(core_fn(program, at.fn), at.let)};
        DType type = root_type(program, arena, realization, root);
        if (type == site->type)
            continue;
        Str name = core_site_text(program, root.fn, root.let, arena);
        Diag *made =
            diag(&program->context->diags, E7001, site->span,
                 str_format(arena, "`%s` is typed apart from its group", site->site.at).at);
        diag_note(made, "the root of its fusion group, `%s`, has the type %s", name.at,
                  dtype_text(type));
        diag_help(made, "type `%s` instead: its members follow it", name.at);
        fine = false;
    }
    return fine;
}

// A sum of squares that goes on from another is not rounded on the way: it has the arithmetic type.
static void type_sums(const CoreFn *fn, uint8_t *storage) {
    for (CoreLetId let = 0; let < fn->lets.count; let++)
        if (core_let(fn, let)->prim == CORE_square_sum)
            storage[let] = (uint8_t)dtype_arithmetic((DType)storage[let]);
}

// Trees behind the first of an optimizer's results are its state.
static void type_trees(const CoreProgram *program, const CoreFn *fn,
                       const RlzRealization *realization, uint8_t *storage) {
    for (CoreLetId let = 0; let < fn->lets.count; let++)
        if (core_type(program, core_let(fn, let)->type)->kind == CORE_PARAMS)
            storage[let] = (uint8_t)realization->params;
    const CoreLet *result = core_let(fn, fn->result);
    if (result->prim != CORE_tuple)
        return;
    for (uint32_t i = 1; i < result->count; i++) {
        CoreLetId part = core_operand(fn, fn->result, i);
        if (core_type(program, core_let(fn, part)->type)->kind == CORE_PARAMS)
            storage[part] = (uint8_t)realization->state;
    }
}

CoreArithmetic *rlz_arithmetic(const CoreProgram *program, Arena *arena,
                               const RlzRealization *realization, bool fusion) {
    uint8_t **storage = arena_array(arena, uint8_t *, program->fns.count);
    for (CoreFnId id = 1; id < program->fns.count; id++) {
        const CoreFn *fn = core_fn(program, id);
        storage[id] = arena_array(arena, uint8_t, fn->lets.count);
        memset(storage[id], (int)realization->uniform, fn->lets.count);
        type_trees(program, fn, realization, storage[id]);
    }
    for (uint32_t i = 0; i < realization->sites.count; i++) {
        Place at = find_site(program, arena, realization->sites.at[i].site);
        if (at.fn)
            storage[at.fn][at.let] = (uint8_t)realization->sites.at[i].type;
    }
    for (CoreFnId id = 1; id < program->fns.count; id++) {
        const CoreFn *fn = core_fn(program, id);
        for (CoreLetId let = 0; let < fn->lets.count; let++)
            storage[id][let] = storage[id][root_of(fn, let)];
        type_sums(fn, storage[id]);
    }
    CoreArithmetic *made = arena_new_of(arena, CoreArithmetic);
    *made = (CoreArithmetic){.storage = (const uint8_t *const *)storage,
                             .params = realization->params,
                             .inputs = realization->uniform,
                             .multiply_add = realization->multiply_add,
                             .reduce = realization->reduce,
                             .has_accumulate = realization->has_accumulate,
                             .accumulate = realization->accumulate,
                             .fusion = fusion};
    return made;
}
