// Dead code: drops the lets that the result does not need and renumbers the others in their order.
//
// The partition stays as it was. A member of a group that is needed is needed through its root, so
// a group keeps its root or goes whole; what a dead outside reader kept from joining stays outside.
#include "core/tables.h"

static void mark(const CoreFn *fn, bool *live) {
    live[fn->result] = true;
    for (CoreLetId v = 0; v < fn->params; v++)
        live[v] = true;
    for (CoreLetId v = fn->lets.count; v-- > 0;)
        for (uint32_t i = 0; live[v] && i < fn->lets.at[v].count; i++)
            live[core_operand(fn, v, i)] = true;
}

static void renumber_groups(CoreProgram *program, CoreFn *fn, const uint32_t *number,
                            uint32_t count, const bool *live) {
    uint32_t *group = arena_array(program->arena, uint32_t, count);
    for (CoreLetId v = 0; v < fn->lets.count; v++)
        if (live[v])
            group[number[v]] = fn->group[v] == CORE_NO_GROUP ? CORE_NO_GROUP : number[fn->group[v]];
    fn->group = group;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < fn->remarks.count; i++) {
        CoreRemark remark = fn->remarks.at[i];
        if (!live[remark.let] || !live[remark.reader])
            continue;
        bool other = remark.other != CORE_NO_GROUP && live[remark.other];
        remark.other = other ? number[remark.other] : CORE_NO_GROUP;
        remark.let = number[remark.let];
        remark.reader = number[remark.reader];
        fn->remarks.at[kept++] = remark;
    }
    fn->remarks.count = kept;
}

static void dce_fn(CoreProgram *program, CoreFn *fn, Arena *scratch) {
    bool *live = arena_array(scratch, bool, fn->lets.count);
    uint32_t *number = arena_array(scratch, uint32_t, fn->lets.count);
    uint32_t count = 0, operands = 0;
    mark(fn, live);
    for (CoreLetId v = 0; v < fn->lets.count; v++)
        if (live[v])
            number[v] = count++;
    if (fn->group)
        renumber_groups(program, fn, number, count, live);
    // Operands move to the front as lets do: fold may have left holes between them.
    CoreLetId *from =
        arena_copy(scratch, fn->operands.at, fn->operands.count * sizeof *fn->operands.at);
    for (CoreLetId v = 0; v < fn->lets.count; v++) {
        if (!live[v])
            continue;
        CoreLet let = fn->lets.at[v];
        uint32_t first = operands;
        for (uint32_t i = 0; i < let.count; i++)
            fn->operands.at[operands++] = number[from[let.first + i]];
        let.first = first;
        fn->lets.at[number[v]] = let;
    }
    fn->result = number[fn->result];
    fn->lets.count = count;
    fn->operands.count = operands;
}

void core_dce(CoreProgram *program) {
    Arena *scratch = arena_new(arena_heap(program->arena), "dead code");
    for (CoreFnId id = 1; id < program->fns.count; id++) {
        dce_fn(program, core_fn(program, id), scratch);
        arena_reset(scratch);
    }
    arena_free(scratch);
}
