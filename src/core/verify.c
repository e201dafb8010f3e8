// The verifier of Core. It exists for these bugs:
//   - a pass that moves lets and leaves an operand, a result or a group root on an old number;
//   - a pass that changes a let and leaves its type or attributes as they were, or makes a let
//     whose type is not the one its primitive gives;
//   - a type, extent or scalar of another function left in after inlining or differentiation (a
//     dimension or `...` that is not in scope);
//   - recursion of functions or modules, which every executor would follow without end;
//   - a partition that is no longer safe to launch: an interior value read from outside, a member
//     of another type, a group of more nodes than the executors have places for.
// Modules come first, then what calls rely on, then bodies, then the graph of calls: nothing is
// walked that an earlier fault could make endless.
#include <stdarg.h>

#include "core/tables.h"

enum { ERRORS_MAX = 20 };

typedef struct Verifier {
    CoreProgram *program;
    Arena *arena;
    StrBuf errors;
    uint32_t count;
    bool *dims; // by DimId: in scope
    bool pack;
    CoreFnId fn; // 0: a module
    Name module;
} Verifier;

static const char *text(const Verifier *v, Name name) {
    return name_c(v->program->context->names, name);
}

// One line; `let` is CORE_NO_GROUP where the fault is not a let's.
__attribute__((format(printf, 3, 4))) static void fault(Verifier *v, CoreLetId let,
                                                        const char *format, ...) {
    if (v->count++ >= ERRORS_MAX)
        return;
    if (!v->fn)
        buf_format(&v->errors, "%s: ", v->module ? text(v, v->module) : "program");
    else if (let == CORE_NO_GROUP)
        buf_format(&v->errors, "%s: ", text(v, core_fn(v->program, v->fn)->name));
    else
        buf_format(&v->errors, "%s: ", core_site_text(v->program, v->fn, let, v->arena).at);
    va_list args;
    va_start(args, format);
    buf_add(&v->errors, str_format_v(v->arena, format, args));
    va_end(args);
    buf_char(&v->errors, '\n');
}

// ---- scope ----------------------------------------------------------------------------------

static void enter(Verifier *v, uint32_t count, const DimId *dims, bool pack) {
    const ExtentTable *extents = v->program->extents;
    v->dims = arena_array(v->arena, bool, extent_dim_count(extents) + 1);
    v->pack = pack;
    for (DimId dim = 1; dim <= extent_dim_count(extents); dim++)
        v->dims[dim] = extent_dim_get(extents, dim)->global;
    for (uint32_t i = 0; i < count; i++)
        v->dims[dims[i]] = true;
}

static void check_extent(Verifier *v, CoreLetId let, Extent extent) {
    if (extent == EXTENT_PACK && !v->pack)
        fault(v, let, "`...` is not in scope");
    DimId dim = extent_dim_outside(v->program->extents, extent, v->dims);
    if (dim)
        fault(v, let, "the dimension %s is not in scope",
              text(v, extent_dim_get(v->program->extents, dim)->name));
}

static void check_tree(Verifier *v, CoreLetId let, CoreTree tree) {
    const CoreTreeNode *node = core_tree(v->program, tree);
    for (uint32_t i = 0; !node->module && i < node->count; i++)
        if (i == 0 || node->items[i] != node->items[i - 1])
            check_tree(v, let, node->items[i]);
    if (!node->module)
        return;
    const CoreModule *module = &v->program->modules.at[node->module];
    if (node->count != module->dims.count)
        fault(v, let, "%s has %u dimensions, not %u", text(v, module->name), module->dims.count,
              node->count);
    for (uint32_t i = 0; i < node->count; i++)
        check_extent(v, let, node->dims[i]);
}

static void check_scope(Verifier *v, CoreLetId let, CoreTypeId id) {
    const CoreType *type = core_type(v->program, id);
    if (type->kind == CORE_IDX)
        check_extent(v, let, type->bound);
    if (type->kind == CORE_PARAMS)
        check_tree(v, let, type->tree);
    for (uint32_t i = 0; i < type->rank; i++)
        check_extent(v, let, type->axes[i].extent);
    for (uint32_t i = 0; i < type->parts; i++)
        check_scope(v, let, type->part[i]);
}

// A well-formed type in scope? False with an error.
static bool check_type(Verifier *v, CoreLetId let, CoreTypeId id) {
    Str wrong = core_type_fault(v->program, id, v->arena);
    if (wrong.size) {
        fault(v, let, "malformed type: %s", wrong.at);
        return false;
    }
    uint32_t before = v->count;
    check_scope(v, let, id);
    return v->count == before;
}

static void check_scalar(Verifier *v, CoreLetId let, CoreScalar id) {
    const CoreScalarNode *node = core_scalar(v->program, id);
    if (node->kind == CORE_SCALAR_EXTENT)
        check_extent(v, let, node->extent);
    if (node->a)
        check_scalar(v, let, node->a);
    if (node->b)
        check_scalar(v, let, node->b);
}

// ---- modules --------------------------------------------------------------------------------

static void check_field(Verifier *v, const CoreModule *module, uint32_t index) {
    const CoreField *field = &module->fields.at[index];
    for (uint32_t i = 0; i < index; i++)
        if (module->fields.at[i].name == field->name)
            fault(v, CORE_NO_GROUP, "two fields are named `%s`", text(v, field->name));
    if (!field->type == !field->tree)
        fault(v, CORE_NO_GROUP, "field `%s` must be a leaf or a subtree", text(v, field->name));
    if (field->tree)
        check_tree(v, CORE_NO_GROUP, field->tree);
    if (!field->type || !check_type(v, CORE_NO_GROUP, field->type))
        return;
    CoreKind kind = core_type(v->program, field->type)->kind;
    if (kind != CORE_REAL)
        fault(v, CORE_NO_GROUP, "leaf `%s` is no real tensor", text(v, field->name));
    uint32_t scalars = (field->init.a != 0) + (field->init.b != 0);
    uint32_t wanted =
        field->init.kind >= CORE_INIT_NORMAL ? 2u : field->init.kind == CORE_INIT_CONSTANT;
    if (scalars != wanted)
        fault(v, CORE_NO_GROUP, "the initialiser of `%s` has %u scalars", text(v, field->name),
              scalars);
    if (field->init.a)
        check_scalar(v, CORE_NO_GROUP, field->init.a);
    if (field->init.b)
        check_scalar(v, CORE_NO_GROUP, field->init.b);
}

enum { UNSEEN, OPEN, DONE };

static void visit_module(Verifier *v, CoreModuleId id, uint8_t *state);

static void visit_tree(Verifier *v, CoreTree tree, uint8_t *state) {
    const CoreTreeNode *node = core_tree(v->program, tree);
    if (node->module)
        visit_module(v, node->module, state);
    for (uint32_t i = 0; !node->module && i < node->count; i++)
        if (i == 0 || node->items[i] != node->items[i - 1])
            visit_tree(v, node->items[i], state);
}

static void visit_module(Verifier *v, CoreModuleId id, uint8_t *state) {
    const CoreModule *module = &v->program->modules.at[id];
    if (state[id] == OPEN) {
        v->module = module->name;
        fault(v, CORE_NO_GROUP, "the module contains itself");
    }
    if (state[id] != UNSEEN)
        return;
    state[id] = OPEN;
    for (uint32_t i = 0; i < module->fields.count; i++)
        if (module->fields.at[i].tree)
            visit_tree(v, module->fields.at[i].tree, state);
    state[id] = DONE;
}

static void check_modules(Verifier *v) {
    uint32_t count = v->program->modules.count;
    uint8_t *state = arena_array(v->arena, uint8_t, count);
    for (CoreModuleId id = 1; id < count; id++) {
        const CoreModule *module = &v->program->modules.at[id];
        v->module = module->name;
        for (CoreModuleId other = 1; other < id; other++)
            if (v->program->modules.at[other].name == module->name)
                fault(v, CORE_NO_GROUP, "two modules have this name");
        enter(v, module->dims.count, module->dims.at, false);
        for (uint32_t i = 0; i < module->fields.count; i++)
            check_field(v, module, i);
    }
    for (CoreModuleId id = 1; id < count; id++)
        visit_module(v, id, state);
}

// ---- lets -----------------------------------------------------------------------------------

static bool check_operands(Verifier *v, const CoreFn *fn, CoreLetId id) {
    const CoreLet *let = &fn->lets.at[id];
    bool ok = let->count <= fn->operands.count && let->first <= fn->operands.count - let->count;
    if (!ok)
        fault(v, id, "its operands are outside the list");
    for (uint32_t i = 0; ok && i < let->count; i++)
        if (core_operand(fn, id, i) >= id) {
            fault(v, id, "operand %%%u is not an earlier let", core_operand(fn, id, i));
            ok = false;
        }
    return ok;
}

static void check_attr(Verifier *v, CoreLetId id, const CoreAttr *attr) {
    if (attr->scalar)
        check_scalar(v, id, attr->scalar);
    for (uint32_t i = 0; i < attr->dim_count; i++)
        check_extent(v, id, attr->dims[i]);
    for (uint32_t i = 0; i < attr->pack_count; i++)
        check_extent(v, id, attr->pack[i].extent);
}

static bool check_let(Verifier *v, const CoreFn *fn, CoreLetId id) {
    const CoreLet *let = &fn->lets.at[id];
    if ((let->prim == CORE_param) != (id < fn->params)) {
        fault(v, id, "parameters are the first %u lets and no other", fn->params);
        return false;
    }
    if (core_prim_has_attr(let->prim) != (let->attr != NULL)) {
        fault(v, id, "`%s` %s attributes", core_prims[let->prim].text,
              let->attr ? "has no" : "needs");
        return false;
    }
    if (!check_operands(v, fn, id) || !check_type(v, id, let->type))
        return false;
    if (let->attr)
        check_attr(v, id, let->attr);
    Str why;
    CoreTypeId type = core_type_rule(v->program, fn, let->prim, let->count,
                                     fn->operands.at + let->first, let->attr, let->type, &why);
    if (!type) {
        fault(v, id, "%s", why.at);
        return false;
    }
    if (core_type_same(v->program, type, let->type))
        return true;
    fault(v, id, "its type is %s; `%s` gives %s",
          core_type_text(v->program, let->type, v->arena).at, core_prims[let->prim].text,
          core_type_text(v->program, type, v->arena).at);
    return false;
}

// ---- the partition --------------------------------------------------------------------------

static void check_member(Verifier *v, const CoreFn *fn, CoreLetId id) {
    const CoreLet *let = &fn->lets.at[id];
    CoreLetId root = fn->group[id];
    if (root >= fn->lets.count || root < id || fn->group[root] != root) {
        fault(v, id, "%%%u is no root of a group", root);
        return;
    }
    if (core_prims[let->prim].class != CORE_ELEMENTWISE)
        fault(v, id, "a group has elementwise members only");
    else if (let->prim == CORE_pow && let->attr->number > 2)
        fault(v, id, "a power above 2 is in no group");
    if (!core_type_same(v->program, let->type, fn->lets.at[root].type))
        fault(v, id, "the members of a group have one type");
    if (id == fn->result && id != root)
        fault(v, id, "the function's result is interior to a group");
}

static void check_groups(Verifier *v, const CoreFn *fn) {
    uint32_t *members = arena_array(v->arena, uint32_t, fn->lets.count);
    bool *read = arena_array(v->arena, bool, fn->lets.count);
    uint32_t before = v->count;
    for (CoreLetId id = 0; id < fn->lets.count; id++)
        if (fn->group[id] != CORE_NO_GROUP)
            check_member(v, fn, id);
    if (v->count != before)
        return;
    for (CoreLetId id = 0; id < fn->lets.count; id++) {
        uint32_t root = fn->group[id];
        if (root != CORE_NO_GROUP)
            members[root]++;
        for (uint32_t i = 0; i < fn->lets.at[id].count; i++) {
            CoreLetId operand = core_operand(fn, id, i);
            read[operand] = true;
            uint32_t group = fn->group[operand];
            if (group != CORE_NO_GROUP && group != operand && group != root)
                fault(v, operand, "it is interior to the group of %%%u and read by %%%u outside",
                      group, id);
        }
    }
    for (CoreLetId id = 0; id < fn->lets.count; id++) {
        if (fn->group[id] == CORE_NO_GROUP)
            continue;
        if (fn->group[id] != id && !read[id])
            fault(v, id, "it is interior to a group and read by nothing");
        if (fn->group[id] == id && members[id] < 2)
            fault(v, id, "a group has at least two members");
        if (fn->group[id] == id && core_group_nodes(fn, id) > CORE_GROUP_MAX)
            fault(v, id, "the group has more than %d nodes", CORE_GROUP_MAX);
    }
}

// ---- functions ------------------------------------------------------------------------------

// What calls of the function rely on: its name, parameters and declared type.
static void check_signature(Verifier *v, CoreFnId id) {
    const CoreFn *fn = core_fn(v->program, id);
    v->fn = id;
    for (CoreFnId other = 1; other < id; other++)
        if (core_fn(v->program, other)->name == fn->name)
            fault(v, CORE_NO_GROUP, "two functions have this name");
    enter(v, fn->dims.count, fn->dims.at, fn->has_pack);
    check_type(v, CORE_NO_GROUP, fn->type);
    if (fn->params > fn->lets.count)
        fault(v, CORE_NO_GROUP, "it has %u parameters and %u lets", fn->params, fn->lets.count);
    for (CoreLetId let = 0; let < fn->params && let < fn->lets.count; let++)
        check_let(v, fn, let);
}

// Does the let read one of the bad ones? Its own complaint would only repeat theirs.
static bool reads_bad(const CoreFn *fn, CoreLetId id, const bool *bad) {
    const CoreLet *let = &fn->lets.at[id];
    for (uint32_t place = let->first; place < let->first + let->count; place++)
        if (place < fn->operands.count && fn->operands.at[place] < id &&
            bad[fn->operands.at[place]])
            return true;
    return false;
}

// A gradient that is only declared: parameters and type are those that its body will have.
static void check_declared(Verifier *v, const CoreFn *fn) {
    CoreProgram *program = v->program;
    const CoreFn *of = core_fn(program, fn->gradient_of);
    const CoreType *type = core_type(program, fn->type);
    bool same = fn->params && fn->params == of->params && fn->lets.count == fn->params &&
                fn->has_pack == of->has_pack && fn->dims.count == of->dims.count &&
                !of->gradient_of;
    Extent *by_dim = arena_array(v->arena, Extent, extent_dim_count(program->extents) + 1);
    for (uint32_t i = 0; same && i < fn->dims.count; i++)
        by_dim[of->dims.at[i]] = extent_dim(program->extents, fn->dims.at[i]);
    for (CoreLetId i = 0; same && i < fn->params; i++)
        same = core_let(fn, i)->type ==
               core_type_substitute(program, core_let(of, i)->type, by_dim, NULL, 0);
    same = same && type->kind == CORE_TUPLE && type->parts == 2 &&
           type->part[0] == core_type_substitute(program, of->type, by_dim, NULL, 0) &&
           type->part[1] == core_let(fn, 0)->type;
    if (!same)
        fault(v, CORE_NO_GROUP, "it is not declared as the gradient of %s", text(v, of->name));
}

static void check_body(Verifier *v, CoreFnId id) {
    const CoreFn *fn = core_fn(v->program, id);
    v->fn = id;
    if (fn->gradient_of) {
        check_declared(v, fn);
        return;
    }
    enter(v, fn->dims.count, fn->dims.at, fn->has_pack);
    bool ok = true;
    bool *bad = arena_array(v->arena, bool, fn->lets.count);
    for (CoreLetId let = fn->params; let < fn->lets.count; let++) {
        bad[let] = reads_bad(fn, let, bad) || !check_let(v, fn, let);
        ok = ok && !bad[let];
    }
    if (fn->result >= fn->lets.count)
        fault(v, CORE_NO_GROUP, "its result %%%u is not there", fn->result);
    else if (ok && !core_type_fits(v->program, fn->lets.at[fn->result].type, fn->type))
        fault(v, fn->result, "the function gives %s, not %s",
              core_type_text(v->program, fn->type, v->arena).at,
              core_type_text(v->program, fn->lets.at[fn->result].type, v->arena).at);
    else if (ok && fn->group)
        check_groups(v, fn);
}

static void visit_fn(Verifier *v, CoreFnId id, uint8_t *state) {
    const CoreFn *fn = core_fn(v->program, id);
    if (state[id] == OPEN) {
        v->fn = id;
        fault(v, CORE_NO_GROUP, "the function calls itself");
    }
    if (state[id] != UNSEEN)
        return;
    state[id] = OPEN;
    if (fn->gradient_of)
        visit_fn(v, fn->gradient_of, state);
    for (CoreLetId let = 0; let < fn->lets.count; let++)
        if (fn->lets.at[let].prim == CORE_call)
            visit_fn(v, fn->lets.at[let].attr->callee, state);
    state[id] = DONE;
}

static void check_dims(Verifier *v) {
    const ExtentTable *extents = v->program->extents;
    for (DimId dim = 1; dim <= extent_dim_count(extents); dim++)
        for (DimId other = 1; other < dim; other++) {
            const Dim *a = extent_dim_get(extents, dim), *b = extent_dim_get(extents, other);
            if (a->global && b->global && a->name == b->name)
                fault(v, CORE_NO_GROUP, "two dimensions are named `%s`", text(v, a->name));
        }
}

bool core_verify(CoreProgram *program, Arena *arena, Str *errors) {
    Verifier v = {.program = program, .arena = arena, .errors = {.arena = arena}};
    check_dims(&v);
    check_modules(&v);
    uint32_t fns = v.count == 0 ? program->fns.count : 0;
    for (CoreFnId id = 1; id < fns; id++)
        check_signature(&v, id);
    fns = v.count == 0 ? program->fns.count : 0;
    for (CoreFnId id = 1; id < fns; id++)
        check_body(&v, id);
    uint8_t *state = arena_array(arena, uint8_t, program->fns.count);
    for (CoreFnId id = 1; v.count == 0 && id < program->fns.count; id++)
        visit_fn(&v, id, state);
    if (v.count > ERRORS_MAX)
        buf_format(&v.errors, "and %u more\n", v.count - ERRORS_MAX);
    *errors = v.count ? buf_str(&v.errors) : STR("");
    return v.count == 0;
}
