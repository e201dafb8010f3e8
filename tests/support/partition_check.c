#include "support/partition_check.h"

typedef struct Check {
    const CoreProgram *program;
    const CoreFn *fn;
    Arena *arena;
    bool *member; // of the group in hand
} Check;

static bool elementwise(const CoreFn *fn, CoreLetId v) {
    return core_prims[fn->lets.at[v].prim].class == CORE_ELEMENTWISE;
}

static bool large_power(const CoreFn *fn, CoreLetId v) {
    return fn->lets.at[v].prim == CORE_pow && fn->lets.at[v].attr->number > 2;
}

// The group that v would be in if each elementwise value alone were one.
static uint32_t group_or_self(const CoreFn *fn, CoreLetId v) {
    if (!elementwise(fn, v))
        return CORE_NO_GROUP;
    return fn->group[v] == CORE_NO_GROUP ? v : fn->group[v];
}

// Writes the group's expression out and counts its nodes, up to a thousand.
static uint32_t expand(const Check *c, CoreLetId v) {
    uint32_t nodes = 1;
    for (uint32_t i = 0; i < c->fn->lets.at[v].count && nodes < 1000; i++) {
        CoreLetId operand = core_operand(c->fn, v, i);
        if (c->member[operand])
            nodes += expand(c, operand);
    }
    return nodes;
}

static uint32_t expanded(Check *c, CoreLetId root, CoreLetId extra) {
    for (CoreLetId v = 0; v < c->fn->lets.count; v++)
        c->member[v] = (c->fn->group[v] == root && v != root) || v == extra;
    return expand(c, root);
}

static bool reads(const CoreFn *fn, CoreLetId reader, CoreLetId v) {
    for (uint32_t i = 0; i < fn->lets.at[reader].count; i++)
        if (core_operand(fn, reader, i) == v)
            return true;
    return false;
}

static Str member_fault(Check *c, CoreLetId v) {
    const CoreFn *fn = c->fn;
    CoreLetId root = fn->group[v];
    uint32_t members = 0, readers = 0;
    for (CoreLetId u = 0; u < fn->lets.count; u++) {
        members += fn->group[u] == root;
        readers += reads(fn, u, v);
        if (v != root && reads(fn, u, v) && fn->group[u] != root)
            return str_format(c->arena, "%%%u is interior to %%%u and read by %%%u", v, root, u);
    }
    if (root >= fn->lets.count || fn->group[root] != root)
        return str_format(c->arena, "the root %%%u of %%%u is no root", root, v);
    if (!elementwise(fn, v) || large_power(fn, v))
        return str_format(c->arena, "%%%u may be in no group", v);
    if (!core_type_same(c->program, fn->lets.at[v].type, fn->lets.at[root].type))
        return str_format(c->arena, "%%%u and its root %%%u have two types", v, root);
    if (v != root && (v == fn->result || readers == 0))
        return str_format(c->arena, "%%%u cannot be interior", v);
    if (members < 2)
        return str_format(c->arena, "%%%u is a group of one", v);
    if (v == root && expanded(c, root, CORE_NO_GROUP) > 64)
        return str_format(c->arena, "the group of %%%u is too large", v);
    if (v == root && expanded(c, root, CORE_NO_GROUP) != core_group_nodes(fn, root))
        return str_format(c->arena, "the nodes of %%%u are miscounted", v);
    return STR("");
}

static const CoreRemark *remark_of(const CoreFn *fn, CoreLetId v, uint32_t *count) {
    const CoreRemark *found = NULL;
    *count = 0;
    for (uint32_t i = 0; i < fn->remarks.count; i++)
        if (fn->remarks.at[i].let == v) {
            found = &fn->remarks.at[i];
            ++*count;
        }
    return found;
}

// Why v could not join the group `root` of all its readers: the reasons in the order in which they
// are given; -1: it could.
static int reason(Check *c, CoreLetId v, uint32_t root, bool outside) {
    const CoreFn *fn = c->fn;
    if (v == fn->result)
        return CORE_REMARK_RESULT;
    if (outside)
        return CORE_REMARK_OUTSIDE_READER;
    if (large_power(fn, v) || large_power(fn, root))
        return CORE_REMARK_POWER;
    if (!core_type_same(c->program, fn->lets.at[v].type, fn->lets.at[root].type))
        return CORE_REMARK_OTHER_TYPE;
    return expanded(c, root, v) > 64 ? CORE_REMARK_SIZE : -1;
}

static Str left_out_fault(Check *c, CoreLetId v) {
    const CoreFn *fn = c->fn;
    uint32_t root = CORE_NO_GROUP, remarks;
    bool outside = false;
    const CoreRemark *remark = remark_of(fn, v, &remarks);
    bool interior = fn->group[v] != CORE_NO_GROUP && fn->group[v] != v;
    for (CoreLetId u = 0; u < fn->lets.count; u++)
        if (reads(fn, u, v) && elementwise(fn, u) && root == CORE_NO_GROUP)
            root = group_or_self(fn, u);
    for (CoreLetId u = 0; u < fn->lets.count; u++)
        outside = outside || (reads(fn, u, v) && group_or_self(fn, u) != root);
    if (interior || !elementwise(fn, v) || root == CORE_NO_GROUP)
        return remarks ? str_format(c->arena, "%%%u has a remark for nothing", v) : STR("");
    int why = reason(c, v, root, outside);
    if (why < 0)
        return str_format(c->arena, "%%%u could be in the group of %%%u", v, root);
    if (remarks != 1 || (int)remark->kind != why || !reads(fn, remark->reader, v) ||
        !elementwise(fn, remark->reader) || !reads(fn, remark->other, v))
        return str_format(c->arena, "%%%u lacks the remark that %s", v,
                          core_remark_text((CoreRemarkKind)why));
    return STR("");
}

Str partition_fault(const CoreProgram *program, CoreFnId id, bool fresh, Arena *arena) {
    const CoreFn *fn = core_fn(program, id);
    Check c = {program, fn, arena, arena_array(arena, bool, fn->lets.count)};
    if (!fn->group)
        return STR("there is no partition");
    for (CoreLetId v = 0; v < fn->lets.count; v++) {
        Str fault = fn->group[v] != CORE_NO_GROUP ? member_fault(&c, v) : STR("");
        if (!fault.size && fresh)
            fault = left_out_fault(&c, v);
        if (fault.size)
            return fault;
    }
    return STR("");
}
