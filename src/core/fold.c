// Folding of host scalars: an elementwise let of scalar lets alone becomes a scalar let, where host
// scalars have the operation (no comparison, whose result is an index) and its value. Of operands
// that dimensions or hyperparameters decide, only what has a value whatever they are is folded: a
// launch may give an infinity or NaN, a host scalar may not. It decides bits, a scalar being
// rounded once where it enters a nest, so it always runs, and before the partition.
#include "core/tables.h"

static bool always_has_value(MthFunction function) {
    switch (function) {
    case MTH_add:
    case MTH_sub:
    case MTH_mul:
    case MTH_neg:
    case MTH_abs:
    case MTH_min:
    case MTH_max:
    case MTH_relu:
    case MTH_copy:
        return true;
    default:
        return false;
    }
}

// The scalar that let v amounts to; 0: none.
static CoreScalar folded(CoreProgram *program, const CoreFn *fn, CoreLetId v) {
    const CoreLet *let = core_let(fn, v);
    if (core_prims[let->prim].class != CORE_ELEMENTWISE || let->count > 2)
        return 0;
    const CoreType *type = core_type(program, let->type);
    if (type->kind != CORE_REAL || type->rank != 0)
        return 0;
    CoreScalar operands[2] = {0, 0};
    bool known = true;
    for (uint32_t i = 0; i < let->count; i++) {
        const CoreLet *operand = core_let(fn, core_operand(fn, v, i));
        if (operand->prim != CORE_scalar)
            return 0;
        operands[i] = operand->attr->scalar;
        known = known && core_scalar(program, operands[i])->kind == CORE_SCALAR_RATIONAL;
    }
    if (!known && !always_has_value(core_prim_function(let->prim)))
        return 0;
    return core_scalar_apply(program, core_prim_function(let->prim),
                             let->prim == CORE_pow ? let->attr->number : 0, operands[0],
                             operands[1]);
}

void core_fold(CoreProgram *program) {
    for (CoreFnId id = 1; id < program->fns.count; id++) {
        CoreFn *fn = core_fn(program, id);
        check_that(!fn->group);
        for (CoreLetId v = fn->params; v < fn->lets.count; v++) {
            CoreScalar scalar = folded(program, fn, v);
            if (!scalar)
                continue;
            CoreAttr attr = {.scalar = scalar};
            CoreLet *let = &fn->lets.at[v];
            let->prim = CORE_scalar;
            let->count = 0;
            let->attr = arena_copy(program->arena, &attr, sizeof attr);
        }
    }
}
