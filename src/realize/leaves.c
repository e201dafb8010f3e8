// The nest of all leaves of a group over a parameter tree.
#include "realize/nest.h"

static int64_t elements_of(const RlzNest *nest) {
    int64_t count = 1;
    for (uint32_t i = 0; i < nest->axes; i++)
        count *= nest->extent[i];
    return count;
}

static bool moves(const RlzNest *nest, const RlzOperand *operand) {
    for (uint32_t i = 0; i < nest->axes; i++)
        if (operand->stride[i] && nest->extent[i] > 1)
            return true;
    return false;
}

// An operand as if the leaves lay one behind the other: what no leaf walks along is one element.
static RlzOperand operand_of_leaves(const RlzNest *const *leaf, uint32_t leaves, int32_t input) {
    RlzOperand made = input < 0 ? leaf[0]->output : leaf[0]->input[input];
    memset(made.stride, 0, sizeof made.stride);
    for (uint32_t i = 0; i < leaves; i++) {
        const RlzOperand *own = input < 0 ? &leaf[i]->output : &leaf[i]->input[input];
        if (moves(leaf[i], own))
            made.stride[0] = 1;
        if (own->source == RLZ_MEMORY && own->type == BF16)
            made.type = BF16; // the narrowest decides on lanes
    }
    return made;
}

const RlzNest *rlz_nest_of_leaves(const RlzNest *const *leaf, uint32_t leaves, Arena *arena) {
    check_that(leaves > 0);
    RlzNest *nest = arena_copy(arena, leaf[0], sizeof *nest);
    nest->leaves = leaves;
    nest->leaf = leaf;
    nest->axes = 1;
    memset(nest->extent, 0, sizeof nest->extent);
    nest->role[0] = RLZ_PARALLEL;
    for (uint32_t i = 0; i < leaves; i++) {
        check_that(leaf[i]->kind == RLZ_GROUP && leaf[i]->inputs == nest->inputs &&
                   leaf[i]->nodes == nest->nodes);
        nest->extent[0] += elements_of(leaf[i]);
    }
    RlzOperand *input = arena_array(arena, RlzOperand, nest->inputs + 1);
    for (uint32_t i = 0; i < nest->inputs; i++)
        input[i] = operand_of_leaves(leaf, leaves, (int32_t)i);
    nest->input = input;
    nest->output = operand_of_leaves(leaf, leaves, -1);
    return nest;
}
