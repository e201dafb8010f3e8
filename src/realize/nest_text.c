// What a nest says about itself: its canonical text, its operations and its traffic.
#include "realize/nest.h"

static const char *const kind_text[RLZ_KIND_COUNT] = {"group", "contraction", "reduction",
                                                      "row",   "indexed",     "permute"};
static const char *const role_text[] = {"outer", "I", "J", "K", "parallel", "reduced"};

const char *rlz_kind_text(RlzKind kind) {
    return kind_text[kind];
}

const char *rlz_role_text(RlzRole role) {
    return role_text[role];
}

int32_t rlz_nest_axis(const RlzNest *nest, RlzRole role) {
    for (uint32_t i = 0; i < nest->axes; i++)
        if (nest->role[i] == role)
            return (int32_t)i;
    return -1;
}

int64_t rlz_nest_extent(const RlzNest *nest, RlzRole role) {
    int32_t axis = rlz_nest_axis(nest, role);
    return axis < 0 ? 1 : nest->extent[axis];
}

int64_t rlz_operand_span(const RlzNest *nest, const RlzOperand *operand) {
    int64_t last = 0;
    for (uint32_t i = 0; i < nest->axes; i++) {
        if (operand->stride[i] == 0)
            continue;
        if (nest->extent[i] == 0)
            return 0;
        last += (nest->extent[i] - 1) * operand->stride[i];
    }
    if (operand->indexed_stride) {
        if (operand->indexed_extent == 0)
            return 0;
        last += (operand->indexed_extent - 1) * operand->indexed_stride;
    }
    return last + 1;
}

// Numbers that carry bits are written as bits, so that -0 and 0 are two kernels.
static void operand_text(const RlzNest *nest, const RlzOperand *operand, StrBuf *buf) {
    uint64_t bits;
    memcpy(&bits, &operand->constant, sizeof bits);
    switch (operand->source) {
    case RLZ_CONSTANT:
        buf_format(buf, "const %016llx\n", (unsigned long long)bits);
        return;
    case RLZ_IOTA:
        buf_text(buf, "iota");
        break;
    case RLZ_MEMORY:
        buf_text(buf, dtype_text(operand->type));
        break;
    }
    for (uint32_t i = 0; i < nest->axes; i++)
        buf_format(buf, "%c%lld", i ? ',' : ' ', (long long)operand->stride[i]);
    if (operand->range)
        buf_format(buf, " below %lld", (long long)operand->range);
    if (operand->indexed_extent)
        buf_format(buf, " at %lld of %lld", (long long)operand->indexed_stride,
                   (long long)operand->indexed_extent);
    buf_char(buf, '\n');
}

static void node_text(const RlzNode *node, StrBuf *buf) {
    buf_format(buf, "%s %s", core_prims[node->prim].text, dtype_text(node->arithmetic));
    if (node->prim == CORE_pow)
        buf_format(buf, " ^%lld", (long long)node->number);
    for (uint32_t i = 0; i < core_prims[node->prim].max; i++)
        if (node->operand[i] < 0)
            buf_format(buf, " n%d", -1 - node->operand[i]);
        else
            buf_format(buf, " i%d", node->operand[i]);
    buf_char(buf, '\n');
}

static void nest_text(const RlzNest *nest, StrBuf *buf) {
    buf_format(buf, "%s %s %s", rlz_kind_text(nest->kind), core_prims[nest->prim].text,
               dtype_text(nest->arithmetic));
    if (nest->accumulate != nest->arithmetic)
        buf_format(buf, " accumulate %s", dtype_text(nest->accumulate));
    if (nest->multiply_add)
        buf_text(buf, " mul-add");
    if (nest->epilogue)
        buf_text(buf, " epilogue");
    if (nest->reduce == CORE_REDUCE_STRIPES16)
        buf_text(buf, " stripes16");
    for (uint32_t i = 0; i < nest->axes; i++)
        buf_format(buf, " %s %lld", rlz_role_text(nest->role[i]), (long long)nest->extent[i]);
    buf_char(buf, '\n');
    for (uint32_t i = 0; i < nest->inputs; i++)
        operand_text(nest, &nest->input[i], buf);
    for (uint32_t i = 0; i < nest->nodes; i++)
        node_text(&nest->node[i], buf);
    buf_text(buf, "out ");
    operand_text(nest, &nest->output, buf);
}

Str rlz_nest_text(const RlzNest *nest, Arena *arena) {
    StrBuf buf = {.arena = arena};
    if (!nest->leaves)
        nest_text(nest, &buf);
    for (uint32_t i = 0; i < nest->leaves; i++)
        nest_text(nest->leaf[i], &buf);
    return buf_str(&buf);
}

// ---- operations and bytes ---------------------------------------------------------------------

static double iterations(const RlzNest *nest) {
    double count = 1;
    for (uint32_t i = 0; i < nest->axes; i++)
        count *= (double)nest->extent[i];
    return count;
}

double rlz_nest_weight(const RlzNest *nest) {
    double weight = nest->kind == RLZ_GROUP ? 0 : core_prims[nest->prim].weight;
    for (uint32_t i = 0; i < nest->nodes; i++)
        weight += core_prims[nest->node[i].prim].weight;
    return weight * iterations(nest);
}

// Elements of an operand, each once.
static double elements(const RlzNest *nest, const RlzOperand *operand) {
    double count = 1;
    for (uint32_t i = 0; i < nest->axes; i++)
        if (operand->stride[i] || nest->extent[i] == 0)
            count *= (double)nest->extent[i];
    return count;
}

double rlz_nest_bytes(const RlzNest *nest) {
    double all = 0;
    for (uint32_t i = 0; i < nest->leaves; i++)
        all += rlz_nest_bytes(nest->leaf[i]);
    if (nest->leaves)
        return all;
    double bytes = elements(nest, &nest->output) * (double)dtype_size(nest->output.type);
    if (nest->output.indexed_extent)
        bytes *= (double)nest->output.indexed_extent;
    for (uint32_t i = 0; i < nest->inputs; i++) {
        const RlzOperand *operand = &nest->input[i];
        if (operand->source != RLZ_MEMORY)
            continue;
        // Moves by index read one element for each result, whatever the table's size.
        double count = operand->indexed_extent ? iterations(nest) : elements(nest, operand);
        bytes += count * (double)dtype_size(operand->type);
    }
    return bytes;
}

// For one element: maximum, difference, exp, sum, and what follows for each element.
static double row_flops(CorePrim prim) {
    switch (prim) {
    case CORE_softmax:
    case CORE_log_softmax:
        return 5;
    case CORE_cross_entropy_vjp: // division, product
        return 6;
    case CORE_softmax_vjp: // product, sum; difference, product
        return 4;
    case CORE_reduce_max_vjp:
    case CORE_reduce_min_vjp: // two comparisons
        return 2;
    default:
        return 4;
    }
}

double rlz_nest_flops(const RlzNest *nest) {
    switch (nest->kind) {
    case RLZ_GROUP:
        return (double)nest->nodes * iterations(nest);
    case RLZ_CONTRACTION:
        return 2 * iterations(nest);
    case RLZ_REDUCTION:
        return iterations(nest);
    case RLZ_ROW:
        return row_flops(nest->prim) * iterations(nest);
    case RLZ_INDEXED:
        return nest->prim == CORE_scatter_add ? iterations(nest) : 0;
    case RLZ_PERMUTE:
    case RLZ_KIND_COUNT:
        break;
    }
    return 0;
}
