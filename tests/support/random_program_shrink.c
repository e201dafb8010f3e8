// Shrinking: small steps, each kept if the program is still legal and still fails, until none is.
#include "support/random_program.h"

typedef struct Shrink {
    Context *context; // holds the smallest text
    Context work;     // holds the program being changed
    Str best;
    uint32_t tries;
    RandomProgramFails fails;
    void *data;
} Shrink;

// A copy of the smallest program, to be changed.
static RandomProgram copy(Shrink *s) {
    context_free(&s->work);
    context_init(&s->work);
    return random_program_read(&s->work, str_copy(s->work.arena, s->best.at, s->best.size));
}

// Keeps the text if it is another program that fails.
static bool attempt_text(Shrink *s, Str text) {
    if (s->tries == 0 || str_equal(text, s->best))
        return false;
    s->tries--;
    Context context = {0};
    context_init(&context);
    RandomProgram p = random_program_read(&context, str_copy(context.arena, text.at, text.size));
    bool fails = s->fails(s->data, &p);
    context_free(&context);
    if (fails)
        s->best = str_copy(s->context->arena, text.at, text.size);
    return fails;
}

static bool attempt(Shrink *s, const RandomProgram *p) {
    Str errors;
    if (!core_verify(p->core, s->work.arena, &errors))
        return false;
    core_dce(p->core);
    return attempt_text(s, random_program_text(p, s->work.arena));
}

// ---- steps: each true where one change was kept ---------------------------------------------

// After a change of some result: calls and functions get the types that they now have. Functions
// come after those they call.
static void retype(const RandomProgram *p) {
    for (CoreFnId id = 1; id <= p->entry; id++) {
        CoreFn *fn = core_fn(p->core, id);
        for (CoreLetId let = 0; let < fn->lets.count; let++) {
            CoreLet *at = &fn->lets.at[let];
            Str why;
            CoreTypeId type = 0;
            if (at->prim == CORE_call)
                type = core_type_rule(p->core, fn, CORE_call, at->count,
                                      fn->operands.at + at->first, at->attr, at->type, &why);
            at->type = type ? type : at->type;
        }
        fn->type = core_let(fn, fn->result)->type;
    }
}

// A function gives an earlier let: the earlier, the more is dead.
static bool earlier_result_in(Shrink *s, CoreFnId id) {
    RandomProgram p = copy(s);
    CoreLetId result = core_fn(p.core, id)->result;
    for (CoreLetId let = 0; let < result; let++) {
        p = copy(s);
        core_fn(p.core, id)->result = let;
        retype(&p);
        if (attempt(s, &p))
            return true;
    }
    return false;
}

// A tuple that is a result loses a part.
static bool fewer_parts(Shrink *s) {
    RandomProgram p = copy(s);
    const CoreFn *before = core_fn(p.core, p.entry);
    uint32_t parts = core_let(before, before->result)->count;
    for (uint32_t part = 0; core_let(before, before->result)->prim == CORE_tuple && part < parts;
         part++) {
        p = copy(s);
        CoreFn *fn = core_fn(p.core, p.entry);
        before = fn;
        CoreLet *let = &fn->lets.at[fn->result];
        const CoreType *type = core_type(p.core, let->type);
        CoreTypeId *left = arena_copy(s->work.arena, type->part, parts * sizeof *left);
        for (uint32_t i = part + 1; i < parts; i++) {
            fn->operands.at[let->first + i - 1] = fn->operands.at[let->first + i];
            left[i - 1] = left[i];
        }
        let->count--;
        let->type = fn->type = core_type_tuple(p.core, parts - 1, left);
        if (attempt(s, &p))
            return true;
    }
    return false;
}

// Of function `id`: one reading place reads the first earlier let of its type.
static bool earlier_operand_in(Shrink *s, CoreFnId id) {
    RandomProgram p = copy(s);
    uint32_t places = core_fn(p.core, id)->operands.count;
    for (uint32_t place = places; place-- > 0;) {
        p = copy(s);
        CoreFn *fn = core_fn(p.core, id);
        CoreLetId now = fn->operands.at[place], other = 0;
        while (other < now &&
               !core_type_same(p.core, core_let(fn, other)->type, core_let(fn, now)->type))
            other++;
        fn->operands.at[place] = other;
        if (other < now && attempt(s, &p))
            return true;
    }
    return false;
}

// Of function `id`: a let becomes the copy of a scalar.
static bool constant_in(Shrink *s, CoreFnId id) {
    RandomProgram p = copy(s);
    for (CoreLetId let = core_fn(p.core, id)->lets.count; let-- > 0;) {
        p = copy(s);
        CoreFn *fn = core_fn(p.core, id);
        CoreLetId scalar = 0;
        while (scalar < let && core_let(fn, scalar)->prim != CORE_scalar)
            scalar++;
        CoreLet *at = &fn->lets.at[let];
        bool candidate = scalar < let && at->count > 0 && at->prim != CORE_copy &&
                         core_type(p.core, at->type)->kind == CORE_REAL;
        if (!candidate)
            continue;
        at->prim = CORE_copy;
        at->attr = NULL;
        at->count = 1;
        fn->operands.at[at->first] = scalar;
        if (attempt(s, &p))
            return true;
    }
    return false;
}

static bool in_each_function(Shrink *s, bool (*step)(Shrink *s, CoreFnId id)) {
    for (CoreFnId id = copy(s).entry; id >= 1; id--)
        if (step(s, id))
            return true;
    return false;
}

static bool smaller_dimension(Shrink *s) {
    uint32_t count = extent_dim_count(copy(s).core->extents);
    for (DimId dim = 1; dim <= count; dim++)
        for (int64_t value = 1; value < copy(s).dims[dim]; value += value < 3 ? 1 : value - 1) {
            RandomProgram p = copy(s);
            int64_t *dims = arena_copy(s->work.arena, p.dims, (count + 1) * sizeof *dims);
            dims[dim] = value;
            p.dims = dims;
            if (attempt(s, &p))
                return true;
        }
    return false;
}

// A function that nothing calls leaves the text.
static bool fewer_functions(Shrink *s) {
    for (CoreFnId id = 1; id < copy(s).entry; id++) {
        RandomProgram p = copy(s);
        bool called = false;
        for (CoreFnId caller = 1; caller <= p.entry; caller++) {
            const CoreFn *fn = core_fn(p.core, caller);
            for (CoreLetId let = 0; let < fn->lets.count; let++)
                called = called || (core_let(fn, let)->prim == CORE_call &&
                                    core_let(fn, let)->attr->callee == id);
        }
        Str whole = random_program_text(&p, s->work.arena);
        Str part = core_print_fn(p.core, id, s->work.arena);
        const char *at = strstr(whole.at, part.at);
        if (called || !at)
            continue;
        StrBuf buf = {.arena = s->work.arena};
        buf_add(&buf, str_copy(s->work.arena, whole.at, (size_t)(at - whole.at)));
        buf_text(&buf, at + part.size + 1); // and the blank line
        if (attempt_text(s, buf_str(&buf)))
            return true;
    }
    return false;
}

// A parameter of the entry that nothing reads goes; later lets move down by one.
static bool fewer_parameters(Shrink *s) {
    RandomProgram p = copy(s);
    for (CoreLetId param = core_fn(p.core, p.entry)->params; param-- > 0;) {
        p = copy(s);
        CoreFn *fn = core_fn(p.core, p.entry);
        bool read = fn->result == param;
        for (uint32_t i = 0; i < fn->operands.count; i++)
            read = read || fn->operands.at[i] == param;
        if (read)
            continue;
        memmove(fn->lets.at + param, fn->lets.at + param + 1,
                (fn->lets.count - param - 1) * sizeof *fn->lets.at);
        fn->lets.count--;
        fn->params--;
        fn->result -= fn->result > param;
        for (uint32_t i = 0; i < fn->operands.count; i++)
            fn->operands.at[i] -= fn->operands.at[i] > param;
        if (attempt(s, &p))
            return true;
    }
    return false;
}

Str random_program_shrink(Context *context, const RandomProgram *program, uint32_t tries,
                          RandomProgramFails fails, void *data) {
    Shrink s = {.context = context, .tries = tries, .fails = fails, .data = data};
    s.best = random_program_text(program, context->arena);
    context_init(&s.work);
    while (in_each_function(&s, earlier_result_in) || fewer_parts(&s) || fewer_functions(&s) ||
           in_each_function(&s, constant_in) || in_each_function(&s, earlier_operand_in) ||
           fewer_parameters(&s) || smaller_dimension(&s))
        ;
    context_free(&s.work);
    return s.best;
}
