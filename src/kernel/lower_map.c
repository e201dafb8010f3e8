// Lowering of nests with one result an index and nothing summed: groups, permutes, gather, pick.
//
// Each piece evaluates the whole group, member by member, in registers. What the vector axis does
// not move is loaded before its loop.
#include "kernel/lowering.h"

enum { NO_VALUE = UINT32_MAX };

typedef struct Map {
    MthProgram *program; // by node
    KrnValue *still;     // by input: loaded before the innermost loop, else NO_VALUE
    KrnValue *loaded;    // by input, of the present piece
    KrnValue *value;     // by node
} Map;

// A copy between index types moves the integer.
static bool moves_index(const Low *low, const RlzNode *node) {
    return node->prim == CORE_copy && !dtype_is_real(low->nest->output.type);
}

// ---- inputs -------------------------------------------------------------------------------------

// An input from memory that the vector axis does not move.
static bool is_still(const Low *low, uint32_t input) {
    const RlzOperand *operand = &low->nest->input[input];
    if (operand->source != RLZ_MEMORY || low->vector < 0 || operand->stride[low->vector])
        return false;
    return low->nest->kind != RLZ_INDEXED || input != 0 ||
           low->nest->input[1].stride[low->vector] == 0;
}

static void load_still(Low *low, uint32_t level) {
    if (level + 1 != low->loops || (int32_t)low->loop[level].axis != low->vector)
        return;
    Map *map = low->data;
    LowPiece one = {0, 1};
    for (uint32_t i = 0; i < low->nest->inputs; i++)
        if (is_still(low, i) && !(low->nest->kind == RLZ_INDEXED && i == 1))
            map->still[i] = low_input(low, i, &one);
}

static KrnValue input_value(Low *low, uint32_t input, const LowPiece *piece) {
    Map *map = low->data;
    if (map->loaded[input] == NO_VALUE) {
        KrnValue value = map->still[input];
        if (value == NO_VALUE)
            value = low_input(low, input, piece);
        else if (piece->width > 1)
            value = krn_splat(&low->b, value, piece->width);
        map->loaded[input] = value;
    }
    return map->loaded[input];
}

// ---- bodies -------------------------------------------------------------------------------------

static KrnValue node_operand(Low *low, const RlzNode *node, uint32_t number,
                             const LowPiece *piece) {
    const Map *map = low->data;
    int16_t operand = node->operand[number];
    if (operand < 0)
        return map->value[-1 - operand];
    const RlzOperand *input = &low->nest->input[operand];
    if (input->source == RLZ_CONSTANT)
        return low_constant(low, node->arithmetic, piece->width, input->constant);
    return input_value(low, (uint32_t)operand, piece);
}

static KrnValue node_value(Low *low, uint32_t number, const LowPiece *piece) {
    const Map *map = low->data;
    const RlzNode *node = &low->nest->node[number];
    if (moves_index(low, node))
        return node_operand(low, node, 0, piece);
    KrnValue args[3];
    for (uint32_t i = 0; i < core_prims[node->prim].max; i++)
        args[i] = low_float(low, node_operand(low, node, i, piece), node->arithmetic);
    return low_apply(low, &map->program[number], node->arithmetic, args);
}

// A permute, gather or pick: the value in the arithmetic type, an index as it is.
static KrnValue moved_value(Low *low, const LowPiece *piece) {
    KrnValue value = input_value(low, 0, piece);
    return dtype_is_real(low->nest->output.type) ? low_float(low, value, low->nest->arithmetic)
                                                 : value;
}

static void map_piece(Low *low, const LowPiece *piece) {
    Map *map = low->data;
    memset(map->loaded, 0xff, low->nest->inputs * sizeof *map->loaded);
    if (low->nest->kind != RLZ_GROUP) {
        low_store(low, piece, moved_value(low, piece));
        return;
    }
    for (uint32_t i = 0; i < low->nest->nodes; i++)
        map->value[i] = node_value(low, i, piece);
    low_store(low, piece, map->value[low->nest->nodes - 1]);
}

static void map_body(Low *low) {
    if (low->vector >= 0)
        low_pieces(low, low->block[low->vector], low->layout->lanes);
    for (uint32_t i = 0; i < low->pieces; i++)
        map_piece(low, &low->piece[i]);
}

// ---- all ----------------------------------------------------------------------------------------

// Several vectors an iteration where the body is short, so that the loop's own steps weigh little.
// Leaves of one kernel have two whatever the body, so that groups over one tree have the same
// loops.
static int64_t unrolled(const Low *low, uint32_t steps) {
    int64_t lanes = low->layout->lanes, unroll = steps > 24 ? 1 : steps > 8 ? 2 : 4;
    if (low->of_leaves)
        unroll = 2;
    if (lanes == 1)
        unroll = 1;
    while (unroll > 1 && low->nest->extent[low->vector] < 2 * unroll * lanes)
        unroll /= 2;
    return unroll * lanes;
}

// Where an input is contiguous along another axis than the lanes, as in a transposition, that axis
// runs in blocks with a loop within the lanes' one, so that each cache line is used while it is
// there.
static void block_transposed(Low *low) {
    const RlzNest *nest = low->nest;
    if (low->layout->lanes == 1 || nest->kind == RLZ_INDEXED)
        return;
    for (uint32_t level = 0; level + 1 < low->loops; level++) {
        uint32_t axis = low->loop[level].axis;
        for (uint32_t i = 0; i < nest->inputs; i++) {
            const int64_t *stride = nest->input[i].stride;
            if (nest->input[i].source != RLZ_MEMORY || stride[axis] != 1 || stride[low->vector] < 2)
                continue;
            low->loop[low->loops++] = (RlzLoop){axis, 1, true};
            low->loop[level].step = MIN(16, nest->extent[axis]);
            return;
        }
    }
}

void low_map(Low *low) {
    const RlzNest *nest = low->nest;
    Map *map = arena_new_of(low->arena, Map);
    map->program = arena_array(low->arena, MthProgram, nest->nodes);
    map->value = arena_array(low->arena, KrnValue, nest->nodes);
    map->loaded = arena_array(low->arena, KrnValue, nest->inputs);
    map->still = arena_array(low->arena, KrnValue, nest->inputs);
    memset(map->still, 0xff, nest->inputs * sizeof *map->still);
    uint32_t steps = 1;
    for (uint32_t i = 0; i < nest->nodes; i++) {
        const RlzNode *node = &nest->node[i];
        if (moves_index(low, node))
            continue;
        map->program[i] =
            low_program(low, core_prim_function(node->prim), node->number, node->arithmetic);
        steps += map->program[i].count;
        for (uint32_t o = 0; o < core_prims[node->prim].max; o++)
            if (node->operand[o] >= 0 && nest->input[node->operand[o]].source == RLZ_CONSTANT)
                low_prepare_constant(low, node->arithmetic, nest->input[node->operand[o]].constant);
    }
    if (low->loops) {
        low->loop[low->loops - 1].step = unrolled(low, steps);
        block_transposed(low);
    }
    low->data = map;
    low->enter = load_still;
    low->body = map_body;
    low_run(low);
}
