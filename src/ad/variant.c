// Making a pair: which lets are active, the sweep over F, and the assembly of F.fwd and F.bwd from
// what the sweep has read.
#include "ad/variant.h"

// A call of F while F is swept: the pair of its callee and where its saved values stand in the work
// function.
typedef struct Call {
    const AdVariant *variant; // null: not active
    CoreLetId first_saved;
} Call;

typedef struct Making {
    AdState *state;
    AdSweep sweep;
    AdVariant *variant;
    CoreFnId id;
    bool *active;
    Call *calls;         // by let of F
    CoreLetId stand_ins; // how many: lets of F, saved values of its calls, the cotangent
    CoreLetId ct;        // the cotangent's
    CoreLetId result;    // of the work function
} Making;

static const CoreType *type_of(const Making *m, CoreTypeId type) {
    return core_type(m->state->program, type);
}

// ---- activity -------------------------------------------------------------------------------

static void find_active(Making *m) {
    const CoreFn *fn = m->sweep.fn;
    m->active = arena_array(m->state->arena, bool, fn->lets.count);
    for (CoreLetId let = 0; let < fn->lets.count; let++) {
        const CoreLet *at = core_let(fn, let);
        if (let < MIN(fn->params, AD_ACTIVE_MAX))
            m->active[let] = m->variant->mask >> let & 1;
        for (uint32_t i = 0; i < at->count; i++)
            m->active[let] = m->active[let] || m->active[core_operand(fn, let, i)];
        if (type_of(m, at->type)->kind == CORE_IDX)
            m->active[let] = false;
    }
    m->sweep.active = m->active;
}

// The active operands of a call; false after a diagnostic: one is beyond the mask, as the saved
// values of a gradient's own gradient may be.
static bool call_mask(const Making *m, CoreLetId let, uint64_t *mask) {
    const CoreLet *at = core_let(m->sweep.fn, let);
    CoreProgram *program = m->state->program;
    *mask = 0;
    for (uint32_t i = 0; i < at->count; i++) {
        if (!m->active[core_operand(m->sweep.fn, let, i)])
            continue;
        if (i >= AD_ACTIVE_MAX) {
            Diag *made =
                diag(&program->context->diags, E3002, at->span,
                     name_c(program->context->names, core_fn(program, at->attr->callee)->name));
            diag_note(made, "more than %d of its operands would have one", AD_ACTIVE_MAX);
            return false;
        }
        *mask |= UINT64_C(1) << i;
    }
    return true;
}

// The callee's type in the caller's dimensions.
static CoreTypeId in_caller(Making *m, const CoreAttr *attr, CoreTypeId type) {
    CoreProgram *program = m->state->program;
    const CoreFn *callee = core_fn(program, attr->callee);
    Extent *by_dim = arena_array(m->state->arena, Extent, extent_dim_count(program->extents) + 1);
    for (uint32_t i = 0; i < attr->dim_count; i++)
        by_dim[callee->dims.at[i]] = attr->dims[i];
    return core_type_substitute(program, type, by_dim, attr->pack, attr->pack_count);
}

// ---- the sweep ------------------------------------------------------------------------------

static CoreLetId stand_in(Making *m, CoreTypeId type, Name name, Span span) {
    return core_let_add(m->state->program, m->sweep.work, CORE_param, type, 0, NULL, NULL, name,
                        span);
}

static bool make_stand_ins(Making *m) {
    const CoreFn *fn = m->sweep.fn;
    for (CoreLetId let = 0; let < fn->lets.count; let++) {
        const CoreLet *at = core_let(fn, let);
        stand_in(m, at->type, at->name, at->span);
    }
    for (CoreLetId let = 0; let < fn->lets.count; let++) {
        const CoreLet *at = core_let(fn, let);
        if (at->prim != CORE_call || !m->active[let])
            continue;
        Call *call = &m->calls[let];
        uint64_t mask;
        if (!call_mask(m, let, &mask))
            return false;
        call->variant = ad_variant(m->state, at->attr->callee, mask);
        if (!call->variant)
            return false;
        call->first_saved = m->sweep.work->lets.count;
        for (uint32_t i = 0; i < call->variant->saved; i++)
            stand_in(m, in_caller(m, at->attr, call->variant->saved_type[i]), 0, at->span);
    }
    const CoreLet *result = core_let(fn, fn->result);
    m->ct = stand_in(m, result->type, 0, result->span);
    m->stand_ins = m->sweep.work->lets.count;
    return true;
}

// The call of the callee's backward function; its cotangents reach the arguments.
static void derive_call(Making *m, CoreLetId let, CoreLetId ct) {
    AdSweep *s = &m->sweep;
    const CoreLet *at = core_let(s->fn, let);
    const AdVariant *v = m->calls[let].variant;
    s->span = at->span;
    CoreLetId *operands = arena_array(s->arena, CoreLetId, v->params.count + v->saved + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < v->params.count; i++)
        operands[count++] = core_operand(s->fn, let, v->params.at[i]);
    for (uint32_t i = 0; i < v->saved; i++)
        operands[count++] = m->calls[let].first_saved + i;
    const CoreFn *backward = core_fn(s->program, v->backward);
    operands[count] = ad_exact(s, ct, at->type);
    count++;
    CoreAttr attr = *at->attr;
    attr.callee = v->backward;
    CoreLetId call = ad_emit(s, CORE_call, count, operands, &attr, 0);
    bool tuple = core_type(s->program, backward->type)->kind == CORE_TUPLE;
    for (uint32_t i = 0, part = 0; i < at->count; i++) {
        if (i >= AD_ACTIVE_MAX || !(v->mask >> i & 1))
            continue;
        CoreAttr item = {.number = part++};
        CoreLetId operand = core_operand(s->fn, let, i);
        CoreLetId cotangent = tuple ? ad_emit(s, CORE_item, 1, &call, &item, 0) : call;
        ad_reach(s, operand, ad_exact(s, cotangent, core_let(s->fn, operand)->type));
    }
}

static void sweep(Making *m) {
    AdSweep *s = &m->sweep;
    const CoreFn *fn = s->fn;
    s->reached = arena_array(s->arena, AdCotangent, fn->lets.count);
    for (CoreLetId let = 0; let < fn->lets.count; let++)
        s->reached[let].let = AD_NONE;
    ad_reach(s, fn->result, m->ct);
    for (CoreLetId let = fn->lets.count; let-- > fn->params && !s->failed;) {
        CoreLetId ct = m->active[let] ? ad_collected(s, let) : AD_NONE;
        if (ct == AD_NONE)
            continue;
        if (core_let(fn, let)->prim == CORE_call)
            derive_call(m, let, ct);
        else
            ad_derive(s, let, ct);
    }
}

// The cotangents of the active parameters: one, or a tuple.
static void collect_result(Making *m) {
    AdSweep *s = &m->sweep;
    CoreLetId *parts = arena_array(s->arena, CoreLetId, s->fn->params + 1);
    uint32_t count = 0;
    for (CoreLetId let = 0; let < s->fn->params; let++) {
        if (!m->active[let])
            continue;
        CoreTypeId type = core_let(s->fn, let)->type;
        CoreLetId ct = ad_collected(s, let);
        ct = ct == AD_NONE ? ad_zeros(s, type, let) : ad_exact(s, ct, type);
        parts[count++] = ad_exact(s, ct, ad_plain(s->program, type));
    }
    m->result = count == 1 ? parts[0] : ad_emit(s, CORE_tuple, count, parts, NULL, 0);
}

// ---- assembly -------------------------------------------------------------------------------

// Of a call that gives a tuple the parts are saved that are read, not the whole.
static bool is_saved(const Making *m, CoreLetId let) {
    const CoreFn *fn = m->sweep.fn;
    if (let >= fn->lets.count)
        return let < m->ct;
    if (core_let(fn, let)->prim == CORE_item)
        return core_let(fn, core_operand(fn, let, 0))->prim == CORE_call;
    return let >= fn->params && core_prims[core_let(fn, let)->prim].class != CORE_FREE;
}

// Which lets of the work function the result needs. A stand-in of a let that launches nothing is
// made again, so its operands are needed instead of it being saved.
static bool *find_needed(const Making *m) {
    const CoreFn *work = m->sweep.work, *fn = m->sweep.fn;
    bool *needed = arena_array(m->state->arena, bool, work->lets.count);
    needed[m->result] = true;
    for (CoreLetId let = work->lets.count; let-- > 0;) {
        if (!needed[let])
            continue;
        if (let >= m->stand_ins) {
            for (uint32_t i = 0; i < core_let(work, let)->count; i++)
                needed[core_operand(work, let, i)] = true;
        } else if (let < fn->lets.count && let >= fn->params && !is_saved(m, let)) {
            for (uint32_t i = 0; i < core_let(fn, let)->count; i++)
                needed[core_operand(fn, let, i)] = true;
        }
    }
    return needed;
}

static CoreFn *new_function(Making *m, const char *suffix, CoreFnId *id) {
    CoreProgram *program = m->state->program;
    const CoreFn *fn = m->sweep.fn;
    StrBuf name = {.arena = m->state->arena};
    buf_add(&name, name_str(program->context->names, fn->name));
    buf_text(&name, suffix);
    for (CoreLetId let = 0; let < fn->params; let++) {
        CoreKind kind = type_of(m, core_let(fn, let)->type)->kind;
        if (m->active[let] || kind == CORE_IDX)
            continue;
        Name param = core_let(fn, let)->name;
        buf_format(&name, ".no_%s", param ? name_c(program->context->names, param) : "params");
    }
    *id = core_fn_add(program, name_of(program->context->names, buf_str(&name)), fn->span);
    CoreFn *made = core_fn(program, *id);
    for (uint32_t i = 0; i < fn->dims.count; i++)
        vec_push(program->arena, &made->dims, fn->dims.at[i]);
    made->has_pack = fn->has_pack;
    return made;
}

// Copies a let of one function to the end of another under a map of numbers.
static CoreLetId copy_let(Making *m, CoreFn *to, const CoreFn *from, CoreLetId let,
                          const CoreLetId *map) {
    const CoreLet *at = core_let(from, let);
    CoreLetId *operands = arena_array(m->state->arena, CoreLetId, at->count + 1);
    for (uint32_t i = 0; i < at->count; i++)
        operands[i] = map[core_operand(from, let, i)];
    return core_let_add(m->state->program, to, at->prim, at->type, at->count, operands, at->attr,
                        at->name, at->span);
}

static void copy_param(Making *m, CoreFn *to, CoreLetId *map, CoreLetId let, CoreTypeId type) {
    const CoreLet *at = core_let(m->sweep.work, let);
    map[let] =
        core_let_add(m->state->program, to, CORE_param, type, 0, NULL, NULL, at->name, at->span);
    to->params++;
}

static void make_backward(Making *m, const bool *needed) {
    const CoreFn *fn = m->sweep.fn, *work = m->sweep.work;
    CoreFn *made = new_function(m, ".bwd", &m->variant->backward);
    CoreLetId *map = arena_array(m->state->arena, CoreLetId, work->lets.count);
    for (CoreLetId let = 0; let < fn->params; let++)
        if (needed[let]) {
            vec_push(m->state->arena, &m->variant->params, let);
            copy_param(m, made, map, let, core_let(work, let)->type);
        }
    for (CoreLetId let = fn->params, saved = 0; let < m->ct; let++)
        if (needed[let] && is_saved(m, let))
            copy_param(m, made, map, let, m->variant->saved_type[saved++]);
    copy_param(m, made, map, m->ct, core_let(work, m->ct)->type);
    for (CoreLetId let = fn->params; let < m->ct; let++)
        if (needed[let] && is_saved(m, let))
            map[let] = ad_viewed(m->state->program, made, map[let], core_let(work, let)->type);
    for (CoreLetId let = fn->params; let < fn->lets.count; let++)
        if (needed[let] && !is_saved(m, let))
            map[let] = copy_let(m, made, fn, let, map);
    for (CoreLetId let = m->stand_ins; let < work->lets.count; let++)
        if (needed[let])
            map[let] = copy_let(m, made, work, let, map);
    made->result = map[m->result];
    made->type = core_let(made, made->result)->type;
}

// A call of F in F.fwd: of the callee's forward function, whose first part is the value.
static CoreLetId forward_call(Making *m, CoreFn *made, CoreLetId let, CoreLetId *map) {
    CoreProgram *program = m->state->program;
    const CoreLet *at = core_let(m->sweep.fn, let);
    const Call *call = &m->calls[let];
    if (!call->variant || !call->variant->saved)
        return copy_let(m, made, m->sweep.fn, let, map);
    CoreLetId *operands = arena_array(m->state->arena, CoreLetId, at->count + 1);
    for (uint32_t i = 0; i < at->count; i++)
        operands[i] = map[core_operand(m->sweep.fn, let, i)];
    CoreAttr attr = *at->attr;
    attr.callee = call->variant->forward;
    CoreTypeId *parts = arena_array(m->state->arena, CoreTypeId, call->variant->saved + 1);
    parts[0] = at->type;
    for (uint32_t i = 0; i < call->variant->saved; i++)
        parts[i + 1] = in_caller(m, at->attr, call->variant->saved_type[i]);
    CoreTypeId tuple = core_type_tuple(program, call->variant->saved + 1, parts);
    CoreLetId whole =
        core_let_add(program, made, CORE_call, tuple, at->count, operands, &attr, 0, at->span);
    for (uint32_t i = 0; i <= call->variant->saved; i++) {
        CoreAttr item = {.number = i};
        CoreLetId part = core_let_add(program, made, CORE_item, parts[i], 1, &whole, &item,
                                      i ? 0 : at->name, at->span);
        map[i ? call->first_saved + i - 1 : let] = part;
    }
    return map[let];
}

static void make_forward(Making *m, const bool *needed) {
    const CoreFn *fn = m->sweep.fn;
    AdVariant *v = m->variant;
    CoreLetId *saved = arena_array(m->state->arena, CoreLetId, m->ct + 1);
    v->saved_type = arena_array(m->state->arena, CoreTypeId, m->ct + 1);
    for (CoreLetId let = fn->params; let < m->ct; let++)
        if (needed[let] && is_saved(m, let)) {
            v->saved_type[v->saved] =
                ad_plain(m->state->program, core_let(m->sweep.work, let)->type);
            saved[v->saved++] = let;
        }
    v->forward = m->id;
    if (!v->saved)
        return;
    CoreFn *made = new_function(m, ".fwd", &v->forward);
    CoreLetId *map = arena_array(m->state->arena, CoreLetId, m->stand_ins);
    for (CoreLetId let = 0; let < fn->params; let++)
        copy_param(m, made, map, let, core_let(fn, let)->type);
    for (CoreLetId let = fn->params; let < fn->lets.count; let++)
        map[let] = core_let(fn, let)->prim == CORE_call ? forward_call(m, made, let, map)
                                                        : copy_let(m, made, fn, let, map);
    CoreLetId *parts = arena_array(m->state->arena, CoreLetId, v->saved + 1);
    CoreTypeId *types = arena_array(m->state->arena, CoreTypeId, v->saved + 1);
    parts[0] = map[fn->result];
    types[0] = core_let(fn, fn->result)->type;
    for (uint32_t i = 0; i < v->saved; i++) {
        parts[i + 1] = ad_viewed(m->state->program, made, map[saved[i]], v->saved_type[i]);
        types[i + 1] = v->saved_type[i];
    }
    made->type = core_type_tuple(m->state->program, v->saved + 1, types);
    made->result = core_let_add(m->state->program, made, CORE_tuple, made->type, v->saved + 1,
                                parts, NULL, 0, fn->span);
}

// ---- all ------------------------------------------------------------------------------------

static const AdVariant *make_variant(AdState *state, CoreFnId id, uint64_t mask) {
    AdVariant *v = arena_new_of(state->arena, AdVariant);
    v->fn = id;
    v->mask = mask;
    const CoreFn *fn = core_fn(state->program, id);
    Making m = {.state = state, .variant = v, .id = id};
    m.sweep = (AdSweep){.program = state->program,
                        .arena = state->arena,
                        .fn = fn,
                        .work = arena_new_of(state->arena, CoreFn)};
    m.calls = arena_array(state->arena, Call, fn->lets.count);
    find_active(&m);
    if (!make_stand_ins(&m))
        return NULL;
    sweep(&m);
    if (m.sweep.failed)
        return NULL;
    m.sweep.span = fn->span;
    collect_result(&m);
    const bool *needed = find_needed(&m);
    make_forward(&m, needed);
    make_backward(&m, needed);
    vec_push(state->arena, &state->variants, v);
    return v;
}

const AdVariant *ad_variant(AdState *state, CoreFnId fn, uint64_t mask) {
    for (uint32_t i = 0; i < state->variants.count; i++)
        if (state->variants.at[i]->fn == fn && state->variants.at[i]->mask == mask)
            return state->variants.at[i];
    return ad_gradient(state, fn) ? make_variant(state, fn, mask) : NULL;
}
