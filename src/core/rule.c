// The type rule of every primitive, stated once: the checker makes lets with it and the verifier
// tests them with it. A refusal is a sentence in words of the language that shows the shapes.
#include <stdarg.h>

#include "core/tables.h"

typedef struct Rule {
    CoreProgram *program;
    const CoreFn *fn;
    CorePrim prim;
    uint32_t count;
    const CoreLetId *operands;
    const CoreAttr *attr;
    CoreTypeId stated;
    Str *why;
} Rule;

__attribute__((format(printf, 2, 3))) static CoreTypeId refuse(const Rule *rule, const char *format,
                                                               ...) {
    va_list args;
    va_start(args, format);
    *rule->why = str_format_v(rule->program->arena, format, args);
    va_end(args);
    return 0;
}

static CoreTypeId operand_id(const Rule *rule, uint32_t index) {
    return core_let(rule->fn, rule->operands[index])->type;
}

static const CoreType *operand(const Rule *rule, uint32_t index) {
    return core_type(rule->program, operand_id(rule, index));
}

static const char *show(const Rule *rule, CoreTypeId type) {
    return core_type_text(rule->program, type, rule->program->arena).at;
}

static const char *show_operand(const Rule *rule, uint32_t index) {
    return show(rule, operand_id(rule, index));
}

static const char *show_extent(const Rule *rule, Extent extent) {
    return extent_text(rule->program->extents, extent, rule->program->arena).at;
}

static const char *text(const Rule *rule) {
    return core_prims[rule->prim].text;
}

static const char *name_text(const Rule *rule, Name name) {
    return name_c(rule->program->context->names, name);
}

static bool is_tensor(const CoreType *type) {
    return type->kind == CORE_REAL || type->kind == CORE_IDX;
}

static bool is_one(const Rule *rule, Extent extent) {
    int64_t value;
    return extent_is_int(rule->program->extents, extent, &value) && value == 1;
}

static bool is_mask(const Rule *rule, const CoreType *type) {
    int64_t bound;
    return type->kind == CORE_IDX && extent_is_int(rule->program->extents, type->bound, &bound) &&
           bound == 2;
}

static bool is_comparison(CorePrim prim) {
    return prim == CORE_lt || prim == CORE_le || prim == CORE_gt || prim == CORE_ge ||
           prim == CORE_eq;
}

// A tensor of the same kind (and bound) as `like` with other axes.
static CoreTypeId tensor_like(const Rule *rule, const CoreType *like, uint32_t rank,
                              const CoreAxis *axes) {
    return like->kind == CORE_IDX ? core_type_idx(rule->program, like->bound, rank, axes)
                                  : core_type_real(rule->program, rank, axes);
}

static CoreTypeId real(const Rule *rule, uint32_t rank, const CoreAxis *axes) {
    return core_type_real(rule->program, rank, axes);
}

static CoreTypeId need_tensors(const Rule *rule) {
    for (uint32_t i = 0; i < rule->count; i++)
        if (!is_tensor(operand(rule, i)))
            return refuse(rule, "`%s` takes tensors; operand %u is %s", text(rule), i + 1,
                          show_operand(rule, i));
    return 1;
}

// ---- elementwise ----------------------------------------------------------------------------

// Joins the axes of an operand, aligned from the right, into those of the result.
static bool broadcast(const Rule *rule, const CoreType *type, CoreAxis *axes, uint32_t *rank) {
    if (type->rank > *rank) {
        memmove(axes + (type->rank - *rank), axes, *rank * sizeof *axes);
        memcpy(axes, type->axes, (type->rank - *rank) * sizeof *axes);
    }
    uint32_t common = MIN(type->rank, *rank);
    *rank = MAX(type->rank, *rank);
    for (uint32_t i = *rank - common; i < *rank; i++) {
        CoreAxis from = type->axes[type->rank - *rank + i], *to = &axes[i];
        if (to->name && from.name && to->name != from.name)
            return false;
        if (to->extent != from.extent) {
            bool widen = is_one(rule, to->extent) && from.extent != EXTENT_PACK;
            if (!widen && (!is_one(rule, from.extent) || to->extent == EXTENT_PACK))
                return false;
            if (widen)
                to->extent = from.extent;
        }
        to->name = to->name ? to->name : from.name;
    }
    return true;
}

static CoreTypeId mismatch(const Rule *rule) {
    const char *shapes = show_operand(rule, 0);
    for (uint32_t i = 1; i < rule->count; i++)
        shapes = str_format(rule->program->arena, "%s%s%s", shapes,
                            i + 1 == rule->count ? " and " : ", ", show_operand(rule, i))
                     .at;
    return refuse(rule,
                  "the shapes of `%s` do not fit: %s (aligned from the right, axes must have one "
                  "name and equal extents or 1)",
                  text(rule), shapes);
}

static bool broadcast_all(const Rule *rule, uint32_t first, CoreAxis *axes, uint32_t *rank) {
    *rank = 0;
    for (uint32_t i = first; i < rule->count; i++)
        if (!broadcast(rule, operand(rule, i), axes, rank))
            return false;
    return true;
}

// Over a parameter tree: trees of one kind, and scalars that serve every leaf.
static CoreTypeId rule_trees(const Rule *rule, CoreTypeId tree) {
    if (is_comparison(rule->prim))
        return refuse(rule, "`%s` does not compare parameter trees (%s)", text(rule),
                      show(rule, tree));
    for (uint32_t i = 0; i < rule->count; i++) {
        const CoreType *type = operand(rule, i);
        bool scalar = is_tensor(type) && type->rank == 0;
        if (!scalar && operand_id(rule, i) != tree)
            return refuse(rule,
                          "`%s` over %s takes trees of that type and scalars; operand %u is %s",
                          text(rule), show(rule, tree), i + 1, show_operand(rule, i));
        if (rule->prim == CORE_select && i == 0 && !is_mask(rule, type))
            return refuse(rule, "the mask of `select` must be idx[2], not %s",
                          show_operand(rule, 0));
    }
    return tree;
}

static CoreTypeId rule_elementwise(const Rule *rule) {
    for (uint32_t i = 0; i < rule->count; i++)
        if (operand(rule, i)->kind == CORE_PARAMS)
            return rule_trees(rule, operand_id(rule, i));
    if (!need_tensors(rule))
        return 0;
    if (rule->prim == CORE_select && !is_mask(rule, operand(rule, 0)))
        return refuse(rule, "the mask of `select` must be idx[2], not %s", show_operand(rule, 0));
    if (rule->prim == CORE_pow && (rule->attr->number < 0 || rule->attr->number > 64))
        return refuse(rule, "a power must be from 0 to 64, not %lld",
                      (long long)rule->attr->number);
    CoreAxis axes[RANK_MAX];
    uint32_t rank;
    if (!broadcast_all(rule, 0, axes, &rank))
        return mismatch(rule);
    if (is_comparison(rule->prim))
        return core_type_idx(rule->program, extent_int(rule->program->extents, 2), rank, axes);
    return real(rule, rank, axes);
}

// Does `from` broadcast into the axes of `to` without widening them?
static bool fits_into(const Rule *rule, const CoreType *from, const CoreType *to) {
    CoreAxis axes[RANK_MAX];
    uint32_t rank = to->rank;
    memcpy(axes, to->axes, to->rank * sizeof *axes);
    if (from->rank > to->rank || !broadcast(rule, from, axes, &rank))
        return false;
    for (uint32_t i = 0; i < rank; i++)
        if (axes[i].extent != to->axes[i].extent)
            return false;
    return true;
}

static CoreTypeId rule_copy(const Rule *rule) {
    if (!rule->stated)
        return operand_id(rule, 0);
    const CoreType *from = operand(rule, 0), *to = core_type(rule->program, rule->stated);
    bool scalar = is_tensor(from) && from->rank == 0;
    bool ok =
        to->kind == CORE_PARAMS ? operand_id(rule, 0) == rule->stated || scalar
        : is_tensor(to) && is_tensor(from)
            ? (to->kind == CORE_REAL || (from->kind == CORE_IDX &&
                                         core_bound_fits(rule->program, from->bound, to->bound))) &&
                  fits_into(rule, from, to)
            : false;
    return ok ? rule->stated
              : refuse(rule, "%s cannot be copied to %s", show_operand(rule, 0),
                       show(rule, rule->stated));
}

// ---- free -----------------------------------------------------------------------------------

static CoreTypeId rule_scalar(const Rule *rule) {
    if (!rule->attr->scalar)
        return refuse(rule, "a scalar needs a value");
    CoreTypeId type = real(rule, 0, NULL);
    if (rule->stated && rule->stated != type)
        return refuse(rule, "a scalar is a real without axes, not %s", show(rule, rule->stated));
    return type;
}

static CoreTypeId rule_field(const Rule *rule) {
    const CoreType *type = operand(rule, 0);
    if (type->kind != CORE_PARAMS)
        return refuse(rule, "%s has no fields", show_operand(rule, 0));
    CoreTypeId field =
        rule->attr->path_count
            ? core_tree_field(rule->program, type->tree, rule->attr->path_count, rule->attr->path)
            : 0;
    if (field)
        return field;
    const char *path = "";
    for (uint32_t i = 0; i < rule->attr->path_count; i++)
        path = str_format(rule->program->arena, "%s%s%s", path, i ? "." : "",
                          name_text(rule, rule->attr->path[i]))
                   .at;
    return refuse(rule, "%s has no field `%s`", show_operand(rule, 0), path);
}

// The product of a type's extents apart from the pack.
static Extent element_count(const Rule *rule, const CoreType *type, bool *pack) {
    Extent count = extent_int(rule->program->extents, 1);
    *pack = false;
    for (uint32_t i = 0; i < type->rank; i++) {
        if (type->axes[i].extent == EXTENT_PACK)
            *pack = true;
        else
            count = extent_mul(rule->program->extents, count, type->axes[i].extent);
    }
    return count;
}

static CoreTypeId rule_view(const Rule *rule) {
    if (!need_tensors(rule))
        return 0;
    if (!rule->stated)
        return refuse(rule, "a view needs the type that it gives");
    const CoreType *from = operand(rule, 0), *to = core_type(rule->program, rule->stated);
    bool from_pack, to_pack;
    if (from->kind != to->kind || from->bound != to->bound)
        return refuse(rule, "a view of %s cannot be %s: it renames, splits and merges axes only",
                      show_operand(rule, 0), show(rule, rule->stated));
    Extent a = element_count(rule, from, &from_pack), b = element_count(rule, to, &to_pack);
    if (a == b && a != EXTENT_NONE && from_pack == to_pack)
        return rule->stated;
    if (a == EXTENT_NONE || b == EXTENT_NONE)
        return refuse(rule, "the view of %s as %s has too many elements to count",
                      show_operand(rule, 0), show(rule, rule->stated));
    return refuse(rule, "a view of %s as %s needs as many elements: %s%s and %s%s",
                  show_operand(rule, 0), show(rule, rule->stated), from_pack ? "... * " : "",
                  show_extent(rule, a), to_pack ? "... * " : "", show_extent(rule, b));
}

static CoreTypeId rule_range(const Rule *rule) {
    const CoreType *type = rule->stated ? core_type(rule->program, rule->stated) : NULL;
    if (!type || type->kind != CORE_IDX || type->rank != 1 || type->axes[0].extent == EXTENT_PACK ||
        type->axes[0].extent != type->bound)
        return refuse(rule, "a range has one axis and is bounded by its extent, unlike %s",
                      rule->stated ? show(rule, rule->stated) : "nothing");
    return rule->stated;
}

static CoreTypeId rule_param(const Rule *rule) {
    return rule->stated ? rule->stated : refuse(rule, "a parameter needs a type");
}

static CoreTypeId rule_tuple(const Rule *rule) {
    CoreTypeId *parts = arena_array(rule->program->arena, CoreTypeId, rule->count);
    for (uint32_t i = 0; i < rule->count; i++)
        parts[i] = operand_id(rule, i);
    return core_type_tuple(rule->program, rule->count, parts);
}

static CoreTypeId rule_item(const Rule *rule) {
    const CoreType *type = operand(rule, 0);
    int64_t number = rule->attr->number;
    if (type->kind != CORE_TUPLE || number < 0 || number >= type->parts)
        return refuse(rule, "%s has no part %lld", show_operand(rule, 0), (long long)number);
    return type->part[number];
}

// ---- calls ----------------------------------------------------------------------------------

static CoreTypeId rule_call(const Rule *rule) {
    const CoreAttr *attr = rule->attr;
    if (attr->callee == 0 || attr->callee >= rule->program->fns.count)
        return refuse(rule, "the called function does not exist");
    const CoreFn *callee = core_fn(rule->program, attr->callee);
    const char *name = name_text(rule, callee->name);
    if (attr->dim_count != callee->dims.count)
        return refuse(rule, "`%s` has %u dimensions, not %u", name, callee->dims.count,
                      attr->dim_count);
    if (!callee->has_pack && attr->pack_count)
        return refuse(rule, "`%s` has no `...`", name);
    if (rule->count != callee->params)
        return refuse(rule, "`%s` takes %u arguments, not %u", name, callee->params, rule->count);
    Extent *by_dim =
        arena_array(rule->program->arena, Extent, extent_dim_count(rule->program->extents) + 1);
    for (uint32_t i = 0; i < attr->dim_count; i++) {
        if (attr->dims[i] == EXTENT_NONE || attr->dims[i] == EXTENT_PACK)
            return refuse(rule, "dimension %u of `%s` has no legal value", i + 1, name);
        by_dim[callee->dims.at[i]] = attr->dims[i];
    }
    static const CoreAxis none;
    const CoreAxis *pack = callee->has_pack ? (attr->pack_count ? attr->pack : &none) : NULL;
    for (uint32_t i = 0; i < rule->count; i++) {
        CoreTypeId wanted = core_type_substitute(rule->program, callee->lets.at[i].type, by_dim,
                                                 pack, attr->pack_count);
        if (!wanted || !core_type_fits(rule->program, operand_id(rule, i), wanted))
            return refuse(rule, "argument %u of `%s` must be %s, not %s", i + 1, name,
                          wanted ? show(rule, wanted) : show(rule, callee->lets.at[i].type),
                          show_operand(rule, i));
    }
    CoreTypeId result =
        core_type_substitute(rule->program, callee->type, by_dim, pack, attr->pack_count);
    return result ? result : refuse(rule, "the result of `%s` has an extent too large", name);
}

// ---- reductions and rows --------------------------------------------------------------------

// The axes of a type without those in `axes`, or with extent 1 in their place.
static uint32_t reduce_axes(const Rule *rule, const CoreType *type, uint64_t axes, bool keep,
                            CoreAxis *result) {
    uint32_t rank = 0;
    for (uint32_t i = 0; i < type->rank; i++) {
        bool reduced = axes >> i & 1;
        if (reduced && !keep)
            continue;
        result[rank] = type->axes[i];
        if (reduced)
            result[rank].extent = extent_int(rule->program->extents, 1);
        rank++;
    }
    return rank;
}

static CoreTypeId rule_reduction(const Rule *rule) {
    if (!need_tensors(rule))
        return 0;
    const CoreType *type = operand(rule, 0);
    uint64_t axes = rule->attr->axes;
    if (axes >> type->rank || (axes == 0 && type->rank > 0))
        return refuse(rule, "`%s` of %s needs axes that it has", text(rule), show_operand(rule, 0));
    for (uint32_t i = 0; rule->attr->keep && i < type->rank; i++)
        if (type->axes[i].extent == EXTENT_PACK && axes >> i & 1)
            return refuse(rule, "`%s` of %s cannot keep the axes of `...`", text(rule),
                          show_operand(rule, 0));
    CoreAxis left[RANK_MAX];
    uint32_t rank = reduce_axes(rule, type, axes, rule->attr->keep, left);
    if (rule->prim == CORE_square_sum &&
        (rank || operand(rule, 1)->kind != CORE_REAL || operand(rule, 1)->rank))
        return refuse(rule, "`square_sum` takes all axes and begins at one number, not %s",
                      show_operand(rule, 1));
    return real(rule, rank, left);
}

// The one axis that a row primitive works along; false with a refusal.
static bool row_axis(const Rule *rule, CoreAxis *axis) {
    if (!need_tensors(rule))
        return false;
    const CoreType *type = operand(rule, 0);
    if (rule->attr->axis >= type->rank) {
        refuse(rule, "`%s` needs an axis that %s has", text(rule), show_operand(rule, 0));
        return false;
    }
    *axis = type->axes[rule->attr->axis];
    if (axis->extent == EXTENT_PACK)
        refuse(rule, "`%s` works along one axis, not along `...` of %s", text(rule),
               show_operand(rule, 0));
    return axis->extent != EXTENT_PACK;
}

static CoreTypeId rule_argmax(const Rule *rule) {
    CoreAxis axis, left[RANK_MAX];
    if (!row_axis(rule, &axis))
        return 0;
    uint32_t rank =
        reduce_axes(rule, operand(rule, 0), UINT64_C(1) << rule->attr->axis, false, left);
    return core_type_idx(rule->program, axis.extent, rank, left);
}

static CoreTypeId rule_row(const Rule *rule) {
    CoreAxis axis, left[RANK_MAX];
    if (!row_axis(rule, &axis))
        return 0;
    const CoreType *type = operand(rule, 0);
    if (rule->prim == CORE_logsumexp) {
        uint32_t rank =
            reduce_axes(rule, type, UINT64_C(1) << rule->attr->axis, rule->attr->keep, left);
        return real(rule, rank, left);
    }
    if (rule->count == 2 &&
        (!is_mask(rule, operand(rule, 1)) || !fits_into(rule, operand(rule, 1), type)))
        return refuse(rule, "the mask of `%s` must be idx[2] and broadcast into %s; it is %s",
                      text(rule), show_operand(rule, 0), show_operand(rule, 1));
    return real(rule, type->rank, type->axes);
}

// cross_entropy and pick: one index for each row of the first operand.
static CoreTypeId rule_pick(const Rule *rule) {
    CoreAxis axis, left[RANK_MAX];
    if (!row_axis(rule, &axis))
        return 0;
    const CoreType *type = operand(rule, 0), *index = operand(rule, 1);
    uint32_t rank = reduce_axes(rule, type, UINT64_C(1) << rule->attr->axis, false, left);
    CoreTypeId wanted = core_type_idx(rule->program, axis.extent, rank, left);
    if (index->kind != CORE_IDX || !core_type_fits(rule->program, operand_id(rule, 1), wanted))
        return refuse(rule, "`%s` of %s needs indices %s, not %s", text(rule),
                      show_operand(rule, 0), show(rule, wanted), show_operand(rule, 1));
    return rule->prim == CORE_pick ? tensor_like(rule, type, rank, left) : real(rule, rank, left);
}

static CoreTypeId too_many_axes(const Rule *rule) {
    return refuse(rule, "`%s` of %s and %s would have more than %d axes", text(rule),
                  show_operand(rule, 0), show_operand(rule, 1), RANK_MAX);
}

static CoreTypeId rule_gather(const Rule *rule) {
    if (!need_tensors(rule))
        return 0;
    const CoreType *table = operand(rule, 0), *index = operand(rule, 1);
    if (table->rank == 0 || table->axes[0].extent == EXTENT_PACK)
        return refuse(rule, "%s has no first axis to index", show_operand(rule, 0));
    if (index->kind != CORE_IDX ||
        !core_bound_fits(rule->program, index->bound, table->axes[0].extent))
        return refuse(rule, "%s is indexed by idx[%s], not by %s", show_operand(rule, 0),
                      show_extent(rule, table->axes[0].extent), show_operand(rule, 1));
    if (index->rank + table->rank - 1 > RANK_MAX)
        return too_many_axes(rule);
    CoreAxis axes[RANK_MAX];
    memcpy(axes, index->axes, index->rank * sizeof *axes);
    memcpy(axes + index->rank, table->axes + 1, (table->rank - 1) * sizeof *axes);
    return tensor_like(rule, table, index->rank + table->rank - 1, axes);
}

// ---- contractions and permutations ----------------------------------------------------------

static CoreTypeId rule_dot(const Rule *rule) {
    if (!need_tensors(rule))
        return 0;
    const CoreType *x = operand(rule, 0), *w = operand(rule, 1);
    if (x->rank == 0 || w->rank == 0)
        return refuse(rule, "`·` needs an axis in both operands: %s · %s", show_operand(rule, 0),
                      show_operand(rule, 1));
    Extent last = x->axes[x->rank - 1].extent, first = w->axes[0].extent;
    if (last != first || last == EXTENT_PACK)
        return refuse(rule,
                      "`·` needs the last axis of %s to be as long as the first of %s: %s and %s",
                      show_operand(rule, 0), show_operand(rule, 1), show_extent(rule, last),
                      show_extent(rule, first));
    if (x->rank + w->rank - 2 > RANK_MAX)
        return too_many_axes(rule);
    CoreAxis axes[RANK_MAX];
    memcpy(axes, x->axes, (x->rank - 1) * sizeof *axes);
    memcpy(axes + x->rank - 1, w->axes + 1, (w->rank - 1) * sizeof *axes);
    return real(rule, x->rank + w->rank - 2, axes);
}

// Reads an ein's labels into one table: which axis each label is, and where it occurs.
typedef struct Labels {
    CoreAxis axis[2 * RANK_MAX];
    bool in[3][2 * RANK_MAX];
    uint32_t count;
} Labels;

static CoreTypeId read_labels(const Rule *rule, uint32_t which, Labels *labels) {
    const CoreType *type = operand(rule, which);
    if (rule->attr->label_count[which] != type->rank)
        return refuse(rule, "`ein` must label each axis of %s", show_operand(rule, which));
    for (uint32_t i = 0; i < type->rank; i++) {
        uint32_t label = rule->attr->labels[which][i];
        CoreAxis axis = type->axes[i];
        if (label > labels->count || label >= 2 * RANK_MAX)
            return refuse(rule, "the labels of `ein` are not numbered by first appearance");
        if (label < labels->count && labels->in[which][label])
            return refuse(rule, "`ein` names an axis of %s twice", show_operand(rule, which));
        if (label == labels->count)
            labels->axis[labels->count++] = axis;
        else if (labels->axis[label].extent != axis.extent)
            return refuse(
                rule, "`ein` needs equal extents where %s and %s share an axis: %s and %s",
                show_operand(rule, 0), show_operand(rule, 1),
                show_extent(rule, labels->axis[label].extent), show_extent(rule, axis.extent));
        if (!labels->axis[label].name)
            labels->axis[label].name = axis.name;
        labels->in[which][label] = true;
    }
    return 1;
}

static CoreTypeId rule_ein(const Rule *rule) {
    Labels labels = {0};
    if (!need_tensors(rule) || !read_labels(rule, 0, &labels) || !read_labels(rule, 1, &labels))
        return 0;
    uint32_t rank = rule->attr->label_count[2];
    if (rank > RANK_MAX)
        return too_many_axes(rule);
    CoreAxis axes[RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t label = rule->attr->labels[2][i];
        if (label >= labels.count || labels.in[2][label])
            return refuse(rule, "each axis of an `ein`'s result is an axis of %s or %s, once",
                          show_operand(rule, 0), show_operand(rule, 1));
        labels.in[2][label] = true;
        axes[i] = labels.axis[label];
    }
    for (uint32_t label = 0; label < labels.count; label++) {
        bool both = labels.in[0][label] && labels.in[1][label];
        if (both || labels.in[2][label])
            continue;
        Name name = labels.axis[label].name;
        return refuse(rule, "axis %s is in %s alone and not in the result of `ein`: sum it first",
                      name ? name_text(rule, name) : show_extent(rule, labels.axis[label].extent),
                      show_operand(rule, labels.in[0][label] ? 0 : 1));
    }
    return real(rule, rank, axes);
}

static CoreTypeId rule_permute(const Rule *rule) {
    if (!need_tensors(rule))
        return 0;
    const CoreType *type = operand(rule, 0);
    CoreAxis axes[RANK_MAX];
    uint64_t seen = 0;
    bool ok = rule->attr->order_count == type->rank;
    for (uint32_t i = 0; ok && i < type->rank; i++) {
        uint32_t from = rule->attr->order[i];
        ok = from < type->rank && !(seen >> from & 1);
        if (ok)
            axes[i] = type->axes[from];
        seen |= UINT64_C(1) << (from & 63);
    }
    if (!ok)
        return refuse(rule, "a permutation must name each axis of %s once", show_operand(rule, 0));
    return tensor_like(rule, type, type->rank, axes);
}

// ---- the reverse of the above ---------------------------------------------------------------

static CoreTypeId rule_tree(const Rule *rule) {
    const CoreType *type = rule->stated ? core_type(rule->program, rule->stated) : NULL;
    if (!type || type->kind != CORE_PARAMS ||
        core_tree_count(rule->program, type->tree) != rule->count)
        return refuse(rule, "`tree` needs a value for each field of its type");
    for (uint32_t i = 0; i < rule->count; i++) {
        CoreTypeId field = core_tree_part(rule->program, type->tree, i);
        if (!core_type_same(rule->program, field, operand_id(rule, i)))
            return refuse(rule, "field %u of `tree` is %s, not %s", i, show(rule, field),
                          show_operand(rule, i));
    }
    return rule->stated;
}

// Does a chain of `count` axes agree in extents?
static bool same_axes(const CoreAxis *a, const CoreAxis *b, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (a[i].extent != b[i].extent)
            return false;
    return true;
}

// x · w = y, up to names.
static bool is_dot(const CoreType *x, const CoreType *w, const CoreType *y) {
    return x->rank && w->rank && y->rank == x->rank + w->rank - 2 &&
           x->axes[x->rank - 1].extent == w->axes[0].extent &&
           same_axes(x->axes, y->axes, x->rank - 1) &&
           same_axes(w->axes + 1, y->axes + x->rank - 1, w->rank - 1);
}

// The index of pick and its reverse, or of gather and its reverse: x indexed gives y.
static bool is_indexed(const Rule *rule, const CoreType *x, const CoreType *index,
                       const CoreType *y) {
    if (rule->prim == CORE_scatter_add)
        return x->rank && y->rank == index->rank + x->rank - 1 &&
               core_bound_fits(rule->program, index->bound, x->axes[0].extent) &&
               same_axes(index->axes, y->axes, index->rank) &&
               same_axes(x->axes + 1, y->axes + index->rank, x->rank - 1);
    uint32_t axis = rule->attr->axis;
    return axis < x->rank && y->rank == x->rank - 1 && index->rank == y->rank &&
           core_bound_fits(rule->program, index->bound, x->axes[axis].extent) &&
           same_axes(x->axes, y->axes, axis) &&
           same_axes(x->axes + axis + 1, y->axes + axis, y->rank - axis) &&
           same_axes(index->axes, y->axes, y->rank);
}

static CoreTypeId rule_reverse_stated(const Rule *rule) {
    if (!need_tensors(rule))
        return 0;
    const CoreType *a = operand(rule, 0), *b = operand(rule, 1);
    const CoreType *type = rule->stated ? core_type(rule->program, rule->stated) : NULL;
    bool fits = type && type->kind == CORE_REAL;
    if (fits && rule->prim == CORE_dot_vjp_l)
        fits = is_dot(type, b, a);
    else if (fits && rule->prim == CORE_dot_vjp_r)
        fits = is_dot(a, type, b);
    else if (fits)
        fits = b->kind == CORE_IDX && is_indexed(rule, type, b, a);
    return fits ? rule->stated
                : refuse(rule, "`%s` of %s and %s does not give %s", text(rule),
                         show_operand(rule, 0), show_operand(rule, 1),
                         rule->stated ? show(rule, rule->stated) : "a stated type");
}

// Rows and extremes: the result has the first operand's type, the cotangent that of the value.
static CoreTypeId rule_reverse_row(const Rule *rule) {
    CoreAxis axis, left[RANK_MAX];
    bool extreme = rule->prim == CORE_reduce_max_vjp || rule->prim == CORE_reduce_min_vjp;
    if (extreme ? !need_tensors(rule) : !row_axis(rule, &axis))
        return 0;
    const CoreType *x = operand(rule, 0), *ct = operand(rule, rule->count - 1);
    uint64_t axes = extreme ? rule->attr->axes : UINT64_C(1) << rule->attr->axis;
    uint32_t rank = reduce_axes(rule, x, axes, false, left);
    bool fits = rule->prim == CORE_softmax_vjp
                    ? ct->rank == x->rank && same_axes(ct->axes, x->axes, x->rank)
                    : ct->rank == rank && same_axes(ct->axes, left, rank);
    if (fits && rule->prim == CORE_cross_entropy_vjp)
        fits = operand(rule, 1)->kind == CORE_IDX && operand(rule, 1)->rank == rank &&
               core_bound_fits(rule->program, operand(rule, 1)->bound, axis.extent);
    return fits ? real(rule, x->rank, x->axes)
                : refuse(rule, "the cotangent of `%s` over %s cannot be %s", text(rule),
                         show_operand(rule, 0), show_operand(rule, rule->count - 1));
}

// ---- all ------------------------------------------------------------------------------------

static CoreTypeId rule_of(const Rule *rule) {
    switch (rule->prim) {
    case CORE_param:
        return rule_param(rule);
    case CORE_scalar:
        return rule_scalar(rule);
    case CORE_field:
        return rule_field(rule);
    case CORE_view:
        return rule_view(rule);
    case CORE_range:
        return rule_range(rule);
    case CORE_tuple:
        return rule_tuple(rule);
    case CORE_item:
        return rule_item(rule);
    case CORE_call:
        return rule_call(rule);
    case CORE_copy:
        return rule_copy(rule);
    case CORE_argmax:
        return rule_argmax(rule);
    case CORE_cross_entropy:
    case CORE_pick:
        return rule_pick(rule);
    case CORE_gather:
        return rule_gather(rule);
    case CORE_dot:
        return rule_dot(rule);
    case CORE_ein:
        return rule_ein(rule);
    case CORE_permute:
        return rule_permute(rule);
    case CORE_tree:
        return rule_tree(rule);
    case CORE_dot_vjp_l:
    case CORE_dot_vjp_r:
    case CORE_pick_vjp:
    case CORE_scatter_add:
        return rule_reverse_stated(rule);
    case CORE_softmax_vjp:
    case CORE_cross_entropy_vjp:
    case CORE_reduce_max_vjp:
    case CORE_reduce_min_vjp:
        return rule_reverse_row(rule);
    default:
        break;
    }
    switch (core_prims[rule->prim].class) {
    case CORE_ELEMENTWISE:
        return rule_elementwise(rule);
    case CORE_REDUCTION:
        return rule_reduction(rule);
    case CORE_ROW:
        return rule_row(rule);
    default:
        bug("no type rule for `%s`", text(rule));
    }
}

CoreTypeId core_type_rule(CoreProgram *program, const CoreFn *fn, CorePrim prim, uint32_t count,
                          const CoreLetId *operands, const CoreAttr *attr, CoreTypeId stated,
                          Str *why) {
    static const CoreAttr none;
    Rule rule = {program, fn, prim, count, operands, attr ? attr : &none, stated, why};
    const CorePrimInfo *info = &core_prims[prim];
    if (count < info->min || count > info->max)
        return refuse(&rule, "`%s` takes %u operands, not %u", info->text, info->min, count);
    for (uint32_t i = 0; i < count; i++)
        if (operands[i] >= fn->lets.count)
            return refuse(&rule, "operand %u of `%s` is not there yet", i + 1, info->text);
    for (uint32_t i = 0; i <= count; i++) {
        CoreTypeId part = i < count ? core_let(fn, operands[i])->type : stated;
        Str fault = i == count && !part ? STR("") : core_type_fault(program, part, program->arena);
        if (fault.size)
            return refuse(&rule, "a type around `%s` is malformed: %s", info->text, fault.at);
    }
    CoreTypeId type = rule_of(&rule);
    Str fault = type ? core_type_fault(program, type, program->arena) : STR("");
    if (fault.size)
        return refuse(&rule, "the result of `%s` would be %s: %s", info->text, show(&rule, type),
                      fault.at);
    return type;
}
