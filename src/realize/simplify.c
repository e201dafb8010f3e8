// Canonical axes: nests that walk memory in the same way become the same nest, so they share one
// kernel, and their innermost loop is as long as it can be.
//
// Merging keeps the order in which indices run: only neighbours of one role merge, the outer one's
// stride being the inner one's times its extent in every operand. Parallel results do not depend on
// each other, and a reduction's terms keep their order.
#include "realize/simplify.h"

// The one axis of a row or argmax, which stays an axis of its own.
static bool fixed(const RlzNest *nest, uint32_t axis) {
    return nest->role[axis] == RLZ_REDUCED && core_prim_axes(nest->prim) == CORE_ONE_AXIS;
}

static void remove_axis(RlzNest *nest, RlzOperand *operand, uint32_t operands, uint32_t axis) {
    uint32_t behind = --nest->axes - axis;
    memmove(&nest->extent[axis], &nest->extent[axis + 1], behind * sizeof *nest->extent);
    memmove(&nest->role[axis], &nest->role[axis + 1], behind * sizeof *nest->role);
    for (uint32_t i = 0; i <= operands; i++) {
        int64_t *stride = i < operands ? operand[i].stride : nest->output.stride;
        memmove(&stride[axis], &stride[axis + 1], behind * sizeof *stride);
        stride[nest->axes] = 0;
    }
}

static bool merges(const RlzNest *nest, const RlzOperand *operand, uint32_t operands,
                   uint32_t outer) {
    uint32_t inner = outer + 1;
    if (nest->role[outer] != nest->role[inner])
        return false;
    for (uint32_t i = 0; i <= operands; i++) {
        const int64_t *stride = i < operands ? operand[i].stride : nest->output.stride;
        if (stride[outer] != stride[inner] * nest->extent[inner])
            return false;
    }
    return true;
}

void rlz_simplify(RlzNest *nest, RlzOperand *operand, uint32_t operands) {
    if (nest->kind == RLZ_CONTRACTION)
        return;
    for (uint32_t axis = nest->axes; axis-- > 0;)
        if (nest->extent[axis] == 1 && !fixed(nest, axis))
            remove_axis(nest, operand, operands, axis);
    for (uint32_t outer = nest->axes; outer-- > 1;) {
        uint32_t axis = outer - 1;
        if (!fixed(nest, axis) && merges(nest, operand, operands, axis)) {
            nest->extent[axis + 1] *= nest->extent[axis];
            remove_axis(nest, operand, operands, axis);
        }
    }
}
