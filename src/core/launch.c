#include "core/launch.h"

#include "core/eval.h"

bool core_permute_is_view(const CoreFn *fn, CoreLetId let) {
    if (core_let(fn, let)->prim != CORE_permute || fn->result == let)
        return false;
    bool read = false;
    for (CoreLetId reader = let + 1; reader < fn->lets.count; reader++) {
        const CoreLet *at = core_let(fn, reader);
        for (uint32_t i = 0; i < at->count; i++) {
            if (core_operand(fn, reader, i) != let)
                continue;
            if (core_prims[at->prim].class != CORE_CONTRACTION)
                return false;
            read = true;
        }
    }
    return read;
}

bool core_let_launches(const CoreFn *fn, CoreLetId let, bool fusion) {
    CoreClass class = core_prims[core_let(fn, let)->prim].class;
    if (class == CORE_FREE || class == CORE_CALL)
        return false;
    if (class == CORE_PERMUTE)
        return !core_permute_is_view(fn, let);
    return !fusion || !fn->group || fn->group[let] == CORE_NO_GROUP || fn->group[let] == let;
}

DType core_let_arithmetic(const CoreProgram *program, const CoreFn *fn, CoreLetId let,
                          const CoreArithmetic *arithmetic, CoreFnId id) {
    const CoreLet *at = core_let(fn, let);
    bool indices = core_prims[at->prim].class == CORE_ELEMENTWISE &&
                   core_type(program, at->type)->kind == CORE_IDX;
    for (uint32_t i = 0; i < at->count && indices; i++)
        indices =
            core_type(program, core_let(fn, core_operand(fn, let, i))->type)->kind == CORE_IDX;
    return indices ? F64 : dtype_arithmetic((DType)arithmetic->storage[id][let]);
}
