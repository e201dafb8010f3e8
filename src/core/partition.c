// The fusion partition: which elementwise lets share a loop nest.
//
// A group is a set of lets of one function such that every member is elementwise and of one type
// (core_type_same), every member but the root is read by members only, and the root's expression,
// in which a value read twice stands twice, has at most sixty-four nodes. A power above 2 is in no
// group: it expands to several products. The function's result is read from outside, so it can be
// a root and no more. Host scalars are no nodes.
//
// Growth order, which is semantics (under bf16 an interior value is not rounded to storage):
//   1. Every elementwise let begins as a group of its own.
//   2. The lets are walked backwards, from the last to the first, each once. A let v with readers
//      joins the group of its readers if all its readers, dead ones too, are in one group, v is not
//      the result, neither v nor the group's root is a power above 2, v's type is the root's, and
//      the group's nodes with v are at most sixty-four. Since readers come after v, their groups
//      are settled.
//   3. v adds as many nodes as there are ways from the root to v: the sum over v's reading places
//      of the reader's ways, the root having one. A v that is refused for size stays a boundary,
//      and smaller values before it may still join (they cannot be below v: what v reads is then
//      read outside).
//   4. Groups of one member are no groups.
//
// A let that has an elementwise reader and did not join leaves a remark.
#include "core/tables.h"

typedef struct Partition {
    CoreProgram *program;
    CoreFn *fn;
    uint32_t *root;  // by let; CORE_NO_GROUP for what is not elementwise
    uint64_t *ways;  // from the root to the let
    uint64_t *nodes; // by root
    uint32_t *first; // readers of let v: readers[first[v] … first[v + 1] − 1], one a reading place
    CoreLetId *readers;
} Partition;

static bool is_power(const CoreLet *let) {
    return let->prim == CORE_pow && let->attr->number > 2;
}

// Fills first and readers: places in increasing order of the reader.
static void find_readers(Partition *p, Arena *arena) {
    uint32_t lets = p->fn->lets.count;
    p->first = arena_array(arena, uint32_t, lets + 1);
    p->readers = arena_array(arena, CoreLetId, p->fn->operands.count);
    uint32_t *at = arena_array(arena, uint32_t, lets);
    for (CoreLetId reader = 0; reader < lets; reader++)
        for (uint32_t i = 0; i < p->fn->lets.at[reader].count; i++)
            p->first[core_operand(p->fn, reader, i) + 1]++;
    for (CoreLetId v = 0; v < lets; v++) {
        at[v] = p->first[v];
        p->first[v + 1] += p->first[v];
    }
    for (CoreLetId reader = 0; reader < lets; reader++)
        for (uint32_t i = 0; i < p->fn->lets.at[reader].count; i++)
            p->readers[at[core_operand(p->fn, reader, i)]++] = reader;
}

// The last reader, among v's, that is elementwise; CORE_NO_GROUP: none.
static CoreLetId elementwise_reader(const Partition *p, CoreLetId v) {
    for (uint32_t i = p->first[v + 1]; i-- > p->first[v];)
        if (p->root[p->readers[i]] != CORE_NO_GROUP)
            return p->readers[i];
    return CORE_NO_GROUP;
}

static void remark(Partition *p, CoreRemarkKind kind, CoreLetId v, CoreLetId reader,
                   CoreLetId other) {
    vec_push(p->program->arena, &p->fn->remarks, ((CoreRemark){kind, v, reader, other}));
}

static void place(Partition *p, CoreLetId v) {
    CoreLetId reader = elementwise_reader(p, v);
    if (reader == CORE_NO_GROUP)
        return;
    uint32_t root = p->root[reader];
    const CoreLet *let = &p->fn->lets.at[v], *head = &p->fn->lets.at[root];
    uint64_t ways = 0;
    if (v == p->fn->result) {
        remark(p, CORE_REMARK_RESULT, v, reader, reader);
        return;
    }
    for (uint32_t i = p->first[v]; i < p->first[v + 1]; i++) {
        if (p->root[p->readers[i]] != root) {
            remark(p, CORE_REMARK_OUTSIDE_READER, v, reader, p->readers[i]);
            return;
        }
        ways += p->ways[p->readers[i]];
    }
    if (is_power(let) || is_power(head)) {
        remark(p, CORE_REMARK_POWER, v, reader, reader);
    } else if (!core_type_same(p->program, let->type, head->type)) {
        remark(p, CORE_REMARK_OTHER_TYPE, v, reader, reader);
    } else if (p->nodes[root] + ways > CORE_GROUP_MAX) {
        remark(p, CORE_REMARK_SIZE, v, reader, reader);
    } else {
        p->root[v] = root;
        p->ways[v] = ways;
        p->nodes[root] += ways;
    }
}

static void partition_fn(CoreProgram *program, CoreFn *fn, Arena *scratch) {
    uint32_t lets = fn->lets.count;
    Partition p = {.program = program, .fn = fn};
    p.root = arena_array(program->arena, uint32_t, lets);
    p.ways = arena_array(scratch, uint64_t, lets);
    p.nodes = arena_array(scratch, uint64_t, lets);
    find_readers(&p, scratch);
    fn->remarks.count = 0;
    for (CoreLetId v = 0; v < lets; v++) {
        bool elementwise = core_prims[fn->lets.at[v].prim].class == CORE_ELEMENTWISE;
        p.root[v] = elementwise ? v : CORE_NO_GROUP;
        p.ways[v] = p.nodes[v] = 1;
    }
    for (CoreLetId v = lets; v-- > 0;)
        if (p.root[v] != CORE_NO_GROUP)
            place(&p, v);
    bool *joined = arena_array(scratch, bool, lets);
    for (CoreLetId v = 0; v < lets; v++)
        if (p.root[v] != CORE_NO_GROUP && p.root[v] != v)
            joined[p.root[v]] = true;
    for (CoreLetId v = 0; v < lets; v++)
        if (p.root[v] == v && !joined[v])
            p.root[v] = CORE_NO_GROUP;
    fn->group = p.root;
    for (uint32_t i = 0; i < fn->remarks.count / 2; i++) { // in the order of lets
        CoreRemark *a = &fn->remarks.at[i], *b = &fn->remarks.at[fn->remarks.count - 1 - i];
        CoreRemark swap = *a;
        *a = *b;
        *b = swap;
    }
}

void core_partition(CoreProgram *program) {
    Arena *scratch = arena_new(arena_heap(program->arena), "partition");
    for (CoreFnId id = 1; id < program->fns.count; id++) {
        partition_fn(program, core_fn(program, id), scratch);
        arena_reset(scratch);
    }
    arena_free(scratch);
}

uint64_t core_group_nodes(const CoreFn *fn, CoreLetId root) {
    uint64_t ways[CORE_GROUP_MAX + 1] = {1}, nodes = 1;
    CoreLetId members[CORE_GROUP_MAX + 1] = {root};
    uint32_t count = 1;
    if (!fn->group || fn->group[root] != root)
        return 1;
    for (CoreLetId v = root; v-- > 0;) {
        if (fn->group[v] != root)
            continue;
        uint64_t sum = 0;
        for (uint32_t m = 0; m < count; m++)
            for (uint32_t i = 0; i < fn->lets.at[members[m]].count; i++)
                sum += core_operand(fn, members[m], i) == v ? ways[m] : 0;
        nodes += sum;
        if (nodes > CORE_GROUP_MAX || count > CORE_GROUP_MAX)
            return CORE_GROUP_MAX + 1;
        members[count] = v;
        ways[count++] = sum;
    }
    return nodes;
}
