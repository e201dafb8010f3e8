// Core as text: what core_read takes back. Assumes only that ids are in their tables, so that an
// ill-typed program can be looked at too.
//
//   dim B <= 256
//   module Linear{I, O} {
//     w : ℝ[I, O] init uniform(-1, 1)
//     inner : Norm{I}
//   }
//   fn f{I, ...}(%0 x : ℝ[..., I]) -> ℝ[..., I] grouped {
//     %1 : ℝ[..., I] = exp %0 in %2
//     %2 y : ℝ[..., I] = add %1 %0
//     return %2
//   }
//
// A gradient that is only declared has no body: `fn f.grad(%0 x : ℝ) -> (ℝ, ℝ) gradient f`.
// A let is its number, the source's name for it where it has one, its type, its primitive,
// operands and attributes, and `in` the root of its group. `grouped`: the partition has been
// computed. A dimension of a module or function whose name another one in scope has is printed
// with a number after it.
#include "core/tables.h"

typedef struct Printer {
    const CoreProgram *program;
    const Names *names;
    const Name *renamed; // by DimId, or null
    StrBuf buf;
} Printer;

static void print_type(Printer *p, CoreTypeId type) {
    core_type_write(p->program, type, p->renamed, &p->buf);
}

static void print_extent(Printer *p, Extent extent) {
    extent_write(p->program->extents, extent, p->renamed, &p->buf);
}

static void print_scalar(Printer *p, CoreScalar scalar) {
    if (scalar)
        core_scalar_write(p->program, scalar, p->renamed, &p->buf);
    else
        buf_text(&p->buf, "?");
}

static const char *dim_text(const Printer *p, DimId dim) {
    Name name = p->renamed && p->renamed[dim] ? p->renamed[dim]
                                              : extent_dim_get(p->program->extents, dim)->name;
    return name_c(p->names, name);
}

// ---- names of dimensions --------------------------------------------------------------------

static bool taken(const Printer *p, Name *renamed, uint32_t count, const DimId *dims, Name name) {
    const ExtentTable *extents = p->program->extents;
    for (DimId dim = 1; dim <= extent_dim_count(extents); dim++)
        if (extent_dim_get(extents, dim)->global && extent_dim_get(extents, dim)->name == name)
            return true;
    for (uint32_t i = 0; i < count; i++)
        if (renamed[dims[i]] == name)
            return true;
    return false;
}

// Gives each of these dimensions a name of its own in its scope.
static void enter_scope(Printer *p, uint32_t count, const DimId *dims) {
    const ExtentTable *extents = p->program->extents;
    Arena *arena = p->buf.arena;
    Name *renamed = arena_array(arena, Name, extent_dim_count(extents) + 1);
    for (uint32_t i = 0; i < count; i++) {
        Name name = extent_dim_get(extents, dims[i])->name;
        for (uint32_t n = 2; taken(p, renamed, i, dims, name); n++) {
            Str text = str_format(arena, "%s_%u",
                                  name_c(p->names, extent_dim_get(extents, dims[i])->name), n);
            name = name_of(p->program->context->names, text);
        }
        renamed[dims[i]] = name;
    }
    p->renamed = renamed;
}

static void print_dims(Printer *p, uint32_t count, const DimId *dims, bool pack) {
    if (!count && !pack)
        return;
    buf_char(&p->buf, '{');
    for (uint32_t i = 0; i < count; i++)
        buf_format(&p->buf, "%s%s", i ? ", " : "", dim_text(p, dims[i]));
    buf_text(&p->buf, pack ? count ? ", ...}" : "...}" : "}");
}

// ---- lets -----------------------------------------------------------------------------------

// An axis of the type that attributes name axes of: by name where it has one, else by number.
static void print_axis(Printer *p, const CoreFn *fn, const CoreLet *let, uint32_t axis) {
    const CoreType *type = NULL;
    if (let->prim == CORE_pick_vjp)
        type = core_type(p->program, let->type);
    else if (let->count && core_operand(fn, (CoreLetId)(let - fn->lets.at), 0) < fn->lets.count)
        type = core_type(p->program,
                         fn->lets.at[core_operand(fn, (CoreLetId)(let - fn->lets.at), 0)].type);
    if (type && axis < type->rank && type->axes[axis].name &&
        !str_is(name_str(p->names, type->axes[axis].name), "keep"))
        buf_format(&p->buf, " %s", name_c(p->names, type->axes[axis].name));
    else
        buf_format(&p->buf, " %u", axis);
}

static void print_call(Printer *p, const CoreAttr *attr) {
    const CoreFn *callee = core_fn(p->program, attr->callee);
    buf_format(&p->buf, " %s", name_c(p->names, callee->name));
    if (!attr->dim_count && !attr->pack_count && !callee->has_pack)
        return;
    buf_char(&p->buf, '{');
    for (uint32_t i = 0; i < attr->dim_count; i++) {
        buf_text(&p->buf, i ? ", " : "");
        print_extent(p, attr->dims[i]);
    }
    if (attr->pack_count || callee->has_pack) {
        buf_text(&p->buf, attr->dim_count ? ", ...: " : "...: ");
        core_axes_write(p->program, attr->pack_count, attr->pack, p->renamed, &p->buf);
    }
    buf_char(&p->buf, '}');
}

// [ab, b -> a]
static void print_labels(Printer *p, const CoreAttr *attr) {
    static const char *const before[] = {"", ",", " ->"};
    buf_text(&p->buf, " [");
    for (uint32_t which = 0; which < 3; which++) {
        buf_text(&p->buf, before[which]);
        buf_text(&p->buf, which && attr->label_count[which] ? " " : "");
        for (uint32_t i = 0; i < attr->label_count[which]; i++)
            buf_char(&p->buf, (char)('a' + attr->labels[which][i] % 26));
    }
    buf_char(&p->buf, ']');
}

static void print_order(Printer *p, const CoreAttr *attr) {
    for (uint32_t i = 0; i < attr->order_count; i++)
        buf_format(&p->buf, "%s%u", i ? ", " : " [", attr->order[i]);
    buf_text(&p->buf, attr->order_count ? "]" : " []");
}

// What stands after the operands.
static void print_attributes(Printer *p, const CoreFn *fn, const CoreLet *let) {
    static const CoreAttr none;
    const CoreAttr *attr = let->attr ? let->attr : &none;
    if (let->prim == CORE_field)
        for (uint32_t i = 0; i < attr->path_count; i++)
            buf_format(&p->buf, "%s%s", i ? "." : " ", name_c(p->names, attr->path[i]));
    if (let->prim == CORE_item || let->prim == CORE_pow)
        buf_format(&p->buf, " %lld", (long long)attr->number);
    if (let->prim == CORE_ein)
        print_labels(p, attr);
    if (let->prim == CORE_permute)
        print_order(p, attr);
    CoreAxes axes = core_prim_axes(let->prim);
    if (axes != CORE_NO_AXES) {
        buf_text(&p->buf, " over");
        for (uint32_t i = 0; i < 64; i++)
            if (axes == CORE_ONE_AXIS ? i == attr->axis : attr->axes >> i & 1)
                print_axis(p, fn, let, i);
        buf_text(&p->buf, attr->keep ? " keep" : "");
    }
}

static void print_let(Printer *p, const CoreFn *fn, CoreLetId id) {
    const CoreLet *let = &fn->lets.at[id];
    buf_format(&p->buf, "  %%%u", id);
    if (let->name)
        buf_format(&p->buf, " %s", name_c(p->names, let->name));
    buf_text(&p->buf, " : ");
    print_type(p, let->type);
    buf_format(&p->buf, " = %s", core_prims[let->prim].text);
    if (let->prim == CORE_call && let->attr && let->attr->callee)
        print_call(p, let->attr);
    if (let->prim == CORE_scalar) {
        buf_char(&p->buf, ' ');
        print_scalar(p, let->attr ? let->attr->scalar : 0);
    }
    for (uint32_t i = 0; i < let->count; i++)
        buf_format(&p->buf, " %%%u", core_operand(fn, id, i));
    print_attributes(p, fn, let);
    if (fn->group && fn->group[id] != CORE_NO_GROUP && fn->group[id] != id)
        buf_format(&p->buf, " in %%%u", fn->group[id]);
    buf_char(&p->buf, '\n');
}

static void print_fn(Printer *p, const CoreFn *fn) {
    enter_scope(p, fn->dims.count, fn->dims.at);
    buf_format(&p->buf, "fn %s", name_c(p->names, fn->name));
    print_dims(p, fn->dims.count, fn->dims.at, fn->has_pack);
    buf_char(&p->buf, '(');
    for (CoreLetId id = 0; id < fn->params && id < fn->lets.count; id++) {
        const CoreLet *let = &fn->lets.at[id];
        buf_format(&p->buf, "%s%%%u", id ? ", " : "", id);
        if (let->name)
            buf_format(&p->buf, " %s", name_c(p->names, let->name));
        buf_text(&p->buf, " : ");
        print_type(p, let->type);
    }
    buf_text(&p->buf, ") -> ");
    print_type(p, fn->type);
    if (fn->gradient_of) {
        buf_format(&p->buf, " gradient %s\n",
                   name_c(p->names, core_fn(p->program, fn->gradient_of)->name));
        p->renamed = NULL;
        return;
    }
    buf_text(&p->buf, fn->group ? " grouped {\n" : " {\n");
    for (CoreLetId id = fn->params; id < fn->lets.count; id++)
        print_let(p, fn, id);
    buf_format(&p->buf, "  return %%%u\n}\n", fn->result);
    p->renamed = NULL;
}

// ---- modules and dimensions -----------------------------------------------------------------

static void print_init(Printer *p, const CoreInit *init) {
    static const char *const words[] = {
        [CORE_INIT_ZEROS] = "zeros",   [CORE_INIT_ONES] = "ones",       [CORE_INIT_CONSTANT] = NULL,
        [CORE_INIT_NORMAL] = "normal", [CORE_INIT_UNIFORM] = "uniform",
    };
    buf_text(&p->buf, " init ");
    if (init->kind == CORE_INIT_CONSTANT) {
        buf_text(&p->buf, "constant(");
        print_scalar(p, init->a);
        buf_char(&p->buf, ')');
        return;
    }
    buf_text(&p->buf, words[init->kind]);
    if (init->kind == CORE_INIT_ZEROS || init->kind == CORE_INIT_ONES)
        return;
    buf_char(&p->buf, '(');
    print_scalar(p, init->a);
    buf_text(&p->buf, ", ");
    print_scalar(p, init->b);
    buf_char(&p->buf, ')');
}

static void print_module(Printer *p, const CoreModule *module) {
    enter_scope(p, module->dims.count, module->dims.at);
    buf_format(&p->buf, "module %s", name_c(p->names, module->name));
    print_dims(p, module->dims.count, module->dims.at, false);
    buf_text(&p->buf, " {\n");
    for (uint32_t i = 0; i < module->fields.count; i++) {
        const CoreField *field = &module->fields.at[i];
        buf_format(&p->buf, "  %s : ", name_c(p->names, field->name));
        if (field->type) {
            print_type(p, field->type);
            print_init(p, &field->init);
        } else if (field->tree) {
            core_tree_write(p->program, field->tree, p->renamed, &p->buf);
        }
        buf_char(&p->buf, '\n');
    }
    buf_text(&p->buf, "}\n");
    p->renamed = NULL;
}

static bool print_global_dims(Printer *p) {
    const ExtentTable *extents = p->program->extents;
    bool any = false;
    for (DimId dim = 1; dim <= extent_dim_count(extents); dim++) {
        const Dim *at = extent_dim_get(extents, dim);
        if (!at->global)
            continue;
        any = true;
        buf_format(&p->buf, "dim %s", name_c(p->names, at->name));
        if (at->bound) {
            buf_text(&p->buf, " <= ");
            print_extent(p, at->bound);
        }
        buf_char(&p->buf, '\n');
    }
    return any;
}

static Printer printer(const CoreProgram *program, Arena *arena) {
    return (Printer){.program = program, .names = program->context->names, .buf = {.arena = arena}};
}

Str core_print(const CoreProgram *program, Arena *arena) {
    Printer p = printer(program, arena);
    bool blank = print_global_dims(&p);
    for (CoreModuleId id = 1; id < program->modules.count; id++) {
        buf_text(&p.buf, blank ? "\n" : "");
        print_module(&p, &program->modules.at[id]);
        blank = true;
    }
    for (CoreFnId id = 1; id < program->fns.count; id++) {
        buf_text(&p.buf, blank ? "\n" : "");
        print_fn(&p, core_fn(program, id));
        blank = true;
    }
    return buf_str(&p.buf);
}

Str core_print_fn(const CoreProgram *program, CoreFnId fn, Arena *arena) {
    Printer p = printer(program, arena);
    print_fn(&p, core_fn(program, fn));
    return buf_str(&p.buf);
}
