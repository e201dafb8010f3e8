#include "realize/epilogue.h"
#include "core/launch.h"

static uint32_t readers_of(const CoreFn *fn, CoreLetId value, CoreLetId *last) {
    uint32_t readers = 0;
    for (CoreLetId let = value + 1; let < fn->lets.count; let++)
        for (uint32_t i = 0; i < core_let(fn, let)->count; i++)
            if (core_operand(fn, let, i) == value) {
                readers++;
                *last = let;
            }
    return readers;
}

// A value that lies in memory as a tensor of reals: no constant, range, tuple or tree.
static bool is_tensor(const CoreProgram *program, const CoreFn *fn, CoreLetId let) {
    CorePrim prim = core_let(fn, let)->prim;
    return prim != CORE_scalar && prim != CORE_range &&
           core_type(program, core_let(fn, let)->type)->kind == CORE_REAL;
}

static const char *failing(const CoreProgram *program, CoreFnId id, CoreLetId product,
                           const CoreArithmetic *arithmetic, RlzEpilogue *e) {
    const CoreFn *fn = core_fn(program, id);
    if (fn->result == product)
        return "the product is the function's result";
    if (readers_of(fn, product, &e->add) != 1)
        return "not one let alone reads the product";
    const CoreLet *add = core_let(fn, e->add);
    if (add->prim != CORE_add)
        return "the let that reads the product is not an add";
    CoreLetId left = core_operand(fn, e->add, 0), right = core_operand(fn, e->add, 1);
    e->other = left == product ? right : left;
    if (!is_tensor(program, fn, e->other))
        return "the add's other operand is not a tensor";
    if (!core_let_launches(fn, e->add, arithmetic->fusion) ||
        (arithmetic->fusion && fn->group && fn->group[e->add] != CORE_NO_GROUP))
        return "the add is a member of a fusion group";
    if (!core_type_same(program, add->type, core_let(fn, product)->type))
        return "the add's other operand widens the product";
    if (arithmetic->storage[id][e->add] != arithmetic->storage[id][product])
        return "the add has another storage type than the product";
    return NULL;
}

bool rlz_epilogue_find(const CoreProgram *program, CoreFnId fn, CoreLetId product,
                       const CoreArithmetic *arithmetic, RlzEpilogue *epilogue) {
    const char *why = failing(program, fn, product, arithmetic, epilogue);
    epilogue->why = str_of(why ? why : "");
    return !why;
}
