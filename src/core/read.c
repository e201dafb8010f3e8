// Reads what the printer wrote (print.c has the grammar). Malformed text gives one diagnostic with
// its place; text that is well formed and ill typed is read as it is, for the verifier to judge.
#include <stdarg.h>

#include "core/reader.h"

// ---- cursor ---------------------------------------------------------------------------------

static Span here(const Reader *r) {
    const ScanToken *token = read_peek(r, 0);
    return (Span){r->source, token->offset,
                  token->offset + token->text.size + (token->kind == SCAN_LET)};
}

static Diag *fail(Reader *r, const char *message) {
    Diag *report = diag(&r->context->diags, E0901, here(r), message);
    r->failed = true;
    r->at = r->tokens.count - 1;
    return report;
}

void read_fail(Reader *r, const char *format, ...) {
    if (r->failed)
        return;
    va_list args;
    va_start(args, format);
    Str message = str_format_v(r->context->arena, format, args);
    va_end(args);
    fail(r, message.at);
}

void read_unknown(Reader *r, const char *what, Str word, const Str *candidates, uint32_t count) {
    if (r->failed)
        return;
    Arena *arena = r->context->arena;
    Diag *report = fail(r, str_format(arena, "there is no %s `%s`", what, word.at).at);
    Str near = nearest_spelling(arena, word, candidates, count);
    if (near.size)
        diag_help(report, "did you mean `%s`?", near.at);
}

bool read_take(Reader *r, const char *text) {
    if (!read_is(r, text))
        return false;
    r->at++;
    return true;
}

void read_expect(Reader *r, const char *text) {
    if (!read_take(r, text))
        read_fail(r, "expected `%s`", text);
}

Name read_name(Reader *r, const char *what) {
    const ScanToken *token = read_peek(r, 0);
    if (token->kind != SCAN_WORD) {
        read_fail(r, "expected %s", what);
        return 0;
    }
    r->at++;
    return name_of(r->context->names, token->text);
}

static uint64_t digits(Reader *r, const char *what, Str text, uint64_t limit) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < text.size; i++) {
        char c = text.at[i];
        uint64_t digit = (uint64_t)(c - '0');
        if (c < '0' || c > '9' || value > (limit - MIN(digit, limit)) / 10) {
            read_fail(r, "expected %s up to %llu", what, (unsigned long long)limit);
            return 0;
        }
        value = value * 10 + digit;
    }
    r->at++;
    return value;
}

uint64_t read_number(Reader *r, const char *what, uint64_t limit) {
    const ScanToken *token = read_peek(r, 0);
    if (token->kind == SCAN_NUMBER)
        return digits(r, what, token->text, limit);
    read_fail(r, "expected %s", what);
    return 0;
}

static CoreLetId read_let_id(Reader *r) {
    const ScanToken *token = read_peek(r, 0);
    if (token->kind == SCAN_LET)
        return (CoreLetId)digits(r, "the number of a let", token->text, INT32_MAX);
    read_fail(r, "expected a let (%%0, %%1, …)");
    return 0;
}

// ---- dimensions and modules -----------------------------------------------------------------

static void read_global_dim(Reader *r) {
    Dim dim = {.global = true, .span = here(r)};
    r->at++;
    dim.name = read_name(r, "a dimension");
    if (read_take(r, "<="))
        dim.bound = read_extent(r);
    if (!r->failed)
        extent_dim_add(r->program->extents, dim);
}

// "{I, O, ...}" into the scope; true where the pack is among them. A `{` that ends its line opens a
// body.
static bool read_scope(Reader *r, bool pack_allowed) {
    bool pack = false;
    r->scope.count = 0;
    if (read_peek(r, 1)->begins || !read_take(r, "{"))
        return false;
    do {
        if (pack_allowed && read_take(r, "...")) {
            pack = true;
            break;
        }
        Dim dim = {.span = here(r)};
        dim.name = read_name(r, "a dimension");
        if (!r->failed)
            vec_push(r->program->arena, &r->scope, extent_dim_add(r->program->extents, dim));
    } while (!r->failed && read_take(r, ","));
    read_expect(r, "}");
    return pack;
}

static void read_init(Reader *r, CoreInit *init) {
    static const char *const words[] = {"zeros", "ones", "constant", "normal", "uniform"};
    _Static_assert(CORE_INIT_UNIFORM == COUNT_OF(words) - 1, "a word for each initialiser");
    read_expect(r, "init");
    uint32_t kind = 0;
    while (kind < COUNT_OF(words) && !read_is(r, words[kind]))
        kind++;
    if (kind == COUNT_OF(words)) {
        read_fail(r, "expected zeros, ones, constant, normal or uniform");
        return;
    }
    r->at++;
    init->kind = (CoreInitKind)kind;
    if (kind < CORE_INIT_CONSTANT)
        return;
    read_expect(r, "(");
    init->a = read_scalar(r);
    if (kind > CORE_INIT_CONSTANT) {
        read_expect(r, ",");
        init->b = read_scalar(r);
    }
    read_expect(r, ")");
}

static void read_module(Reader *r) {
    CoreModuleId id = r->module++;
    r->at += 2;
    read_scope(r, false);
    for (uint32_t i = 0; i < r->scope.count; i++)
        vec_push(r->program->arena, &r->program->modules.at[id].dims, r->scope.at[i]);
    read_expect(r, "{");
    while (!r->failed && !read_is(r, "}")) {
        CoreField field = {.span = here(r)};
        field.name = read_name(r, "a field");
        read_expect(r, ":");
        if (read_is(r, "ℝ") || read_is(r, "idx") || read_is(r, "(") || read_is(r, "params")) {
            field.type = read_type(r);
            read_init(r, &field.init);
        } else {
            field.tree = read_tree(r);
        }
        vec_push(r->program->arena, &r->program->modules.at[id].fields, field);
    }
    read_expect(r, "}");
}

// ---- lets -----------------------------------------------------------------------------------

typedef struct Parts { // of a let being read
    CorePrim prim;
    CoreTypeId type;
    CoreAttr attr;
    Vec(CoreLetId) operands;
    CoreLetId root; // of its group, or CORE_NO_GROUP
} Parts;

static bool on_line(const Reader *r) {
    return !read_peek(r, 0)->begins;
}

// The name of a function of the program; 0 after a diagnostic.
static CoreFnId read_function(Reader *r) {
    Str word = read_peek(r, 0)->text;
    CoreFnId fn = core_fn_find(r->program, word);
    if (fn) {
        r->at++;
        return fn;
    }
    Vec(Str) candidates = {0};
    for (CoreFnId id = 1; id < r->program->fns.count; id++)
        vec_push(r->program->arena, &candidates,
                 name_str(r->context->names, core_fn(r->program, id)->name));
    read_unknown(r, "function", word, candidates.at, candidates.count);
    return 0;
}

static void read_callee(Reader *r, CoreAttr *attr) {
    Arena *arena = r->program->arena;
    attr->callee = read_function(r);
    if (!attr->callee || !read_take(r, "{"))
        return;
    Vec(Extent) dims = {0};
    do {
        if (read_take(r, "...")) {
            CoreAxis axes[2 * RANK_MAX];
            read_expect(r, ":");
            attr->pack_count = read_axes(r, axes);
            attr->pack = arena_copy(arena, axes, attr->pack_count * sizeof *axes);
            break;
        }
        vec_push(arena, &dims, read_extent(r));
    } while (!r->failed && read_take(r, ","));
    read_expect(r, "}");
    attr->dims = dims.at;
    attr->dim_count = dims.count;
}

// An axis of the first operand (of the result for pick_vjp): its name there, or its number.
static uint32_t read_axis(Reader *r, const CoreFn *fn, const Parts *parts) {
    if (read_peek(r, 0)->kind == SCAN_NUMBER)
        return (uint32_t)read_number(r, "an axis", 63);
    bool reverse = parts->prim == CORE_pick_vjp;
    CoreLetId first = parts->operands.count ? parts->operands.at[0] : fn->lets.count;
    Name name = read_name(r, "an axis");
    if (r->failed || (first >= fn->lets.count && !reverse))
        return 0;
    const CoreType *type = core_type(r->program, reverse ? parts->type : fn->lets.at[first].type);
    for (uint32_t i = 0; i < type->rank; i++)
        if (type->axes[i].name == name)
            return i;
    r->at--;
    read_fail(r, "%%%u has no axis `%s`", reverse ? fn->lets.count : first,
              name_c(r->context->names, name));
    return 0;
}

static void read_over(Reader *r, const CoreFn *fn, Parts *parts) {
    read_expect(r, "over");
    while (!r->failed && on_line(r)) {
        if (read_take(r, "keep")) {
            parts->attr.keep = true;
            return;
        }
        const ScanToken *next = read_peek(r, 1);
        if (read_is(r, "in") && next->kind == SCAN_LET && !next->begins)
            return;
        parts->attr.axis = read_axis(r, fn, parts);
        parts->attr.axes |= UINT64_C(1) << (parts->attr.axis & 63);
    }
}

static void read_labels(Reader *r, CoreAttr *attr) {
    static const char *const before[] = {"[", ",", "->"};
    for (uint32_t which = 0; which < 3 && !r->failed; which++) {
        read_expect(r, before[which]);
        if (read_peek(r, 0)->kind != SCAN_WORD)
            continue;
        Str letters = read_peek(r, 0)->text;
        uint8_t *labels = arena_array(r->program->arena, uint8_t, letters.size);
        bool ok = letters.size <= 2 * RANK_MAX;
        for (uint32_t i = 0; ok && i < letters.size; i++) {
            ok = letters.at[i] >= 'a' && letters.at[i] <= 'z';
            labels[i] = (uint8_t)(letters.at[i] - 'a');
        }
        if (!ok) {
            read_fail(r, "expected one small letter for each axis");
            return;
        }
        attr->labels[which] = labels;
        attr->label_count[which] = (uint8_t)letters.size;
        r->at++;
    }
    read_expect(r, "]");
}

static void read_order(Reader *r, CoreAttr *attr) {
    uint8_t *order = arena_array(r->program->arena, uint8_t, 2 * RANK_MAX);
    read_expect(r, "[");
    while (!r->failed && !read_is(r, "]")) {
        if (attr->order_count == 2 * RANK_MAX) {
            read_fail(r, "a permutation has at most %d axes", RANK_MAX);
            return;
        }
        order[attr->order_count++] = (uint8_t)read_number(r, "an axis", 63);
        if (!read_take(r, ","))
            break;
    }
    read_expect(r, "]");
    attr->order = order;
}

static void read_path(Reader *r, CoreAttr *attr) {
    Arena *arena = r->program->arena;
    Vec(Name) path = {0};
    const ScanToken *token = read_peek(r, 0);
    if (token->begins || (token->kind != SCAN_WORD && token->kind != SCAN_NUMBER)) {
        read_fail(r, "expected the path of a field");
        return;
    }
    r->at++;
    for (uint32_t at = 0, end; at <= token->text.size; at = end + 1) {
        for (end = at; end < token->text.size && token->text.at[end] != '.';)
            end++;
        Str part = str_copy(arena, token->text.at + at, end - at);
        vec_push(arena, &path, name_of(r->context->names, part));
    }
    attr->path = path.at;
    attr->path_count = path.count;
}

static void read_attributes(Reader *r, const CoreFn *fn, Parts *parts) {
    CoreAxes axes = core_prim_axes(parts->prim);
    if (parts->prim == CORE_field) {
        read_path(r, &parts->attr);
    } else if (parts->prim == CORE_item || parts->prim == CORE_pow) {
        bool negative = read_take(r, "-");
        int64_t number = (int64_t)read_number(r, "a number", INT64_MAX);
        parts->attr.number = negative ? -number : number;
    } else if (parts->prim == CORE_ein) {
        read_labels(r, &parts->attr);
    } else if (parts->prim == CORE_permute) {
        read_order(r, &parts->attr);
    } else if (axes != CORE_NO_AXES) {
        read_over(r, fn, parts);
        if (axes == CORE_ONE_AXIS)
            parts->attr.axes = 0;
        else
            parts->attr.axis = 0;
    }
}

static void read_parts(Reader *r, const CoreFn *fn, Parts *parts) {
    Str word = read_peek(r, 0)->text;
    if (!core_prim_of_text(word, &parts->prim)) {
        Str texts[CORE_PRIM_COUNT];
        for (uint32_t i = 0; i < CORE_PRIM_COUNT; i++)
            texts[i] = str_of(core_prims[i].text);
        read_unknown(r, "primitive", word, texts, CORE_PRIM_COUNT);
        return;
    }
    r->at++;
    if (parts->prim == CORE_call)
        read_callee(r, &parts->attr);
    if (parts->prim == CORE_scalar)
        parts->attr.scalar = read_scalar(r);
    while (!r->failed && on_line(r) && read_peek(r, 0)->kind == SCAN_LET)
        vec_push(r->program->arena, &parts->operands, read_let_id(r));
    read_attributes(r, fn, parts);
    parts->root = read_take(r, "in") ? read_let_id(r) : (CoreLetId)CORE_NO_GROUP;
    if (!r->failed && on_line(r))
        read_fail(r, "expected the end of the line");
}

// "%4 name : type"
static CoreTypeId read_head(Reader *r, const CoreFn *fn, Name *name, Span *span) {
    *span = here(r);
    CoreLetId id = read_let_id(r);
    if (!r->failed && id != fn->lets.count) {
        r->at--;
        read_fail(r, "lets are numbered in order: expected %%%u", fn->lets.count);
    }
    *name = read_peek(r, 0)->kind == SCAN_WORD ? read_name(r, "a name") : 0;
    read_expect(r, ":");
    CoreTypeId type = read_type(r);
    *span = span_join(*span, here(r));
    return type;
}

// ---- functions ------------------------------------------------------------------------------

static void read_params(Reader *r, CoreFn *fn) {
    read_expect(r, "(");
    while (!r->failed && !read_is(r, ")")) {
        Name name;
        Span span;
        CoreTypeId type = read_head(r, fn, &name, &span);
        if (!r->failed)
            core_let_add(r->program, fn, CORE_param, type, 0, NULL, NULL, name, span);
        if (!read_take(r, ","))
            break;
    }
    read_expect(r, ")");
    fn->params = fn->lets.count;
}

typedef Vec(CoreLetId) Roots;

static void set_groups(Reader *r, CoreFn *fn, const Roots *roots) {
    uint32_t *group = arena_array(r->program->arena, uint32_t, fn->lets.count);
    for (CoreLetId id = 0; id < fn->lets.count; id++)
        group[id] = CORE_NO_GROUP;
    for (CoreLetId id = 0; id < fn->lets.count; id++) {
        if (roots->at[id] == CORE_NO_GROUP)
            continue;
        if (roots->at[id] >= fn->lets.count) {
            read_fail(r, "%%%u is in the group of %%%u, which is not there", id, roots->at[id]);
            return;
        }
        group[id] = roots->at[id];
        if (group[roots->at[id]] == CORE_NO_GROUP)
            group[roots->at[id]] = roots->at[id];
    }
    fn->group = group;
}

static void read_body(Reader *r, CoreFn *fn, Roots *roots) {
    Arena *arena = r->program->arena;
    while (!r->failed && !read_is(r, "return")) {
        Name name;
        Span span;
        Parts parts = {0};
        CoreTypeId type = parts.type = read_head(r, fn, &name, &span);
        read_expect(r, "=");
        read_parts(r, fn, &parts);
        if (r->failed)
            return;
        core_let_add(r->program, fn, parts.prim, type, parts.operands.count, parts.operands.at,
                     core_prim_has_attr(parts.prim) ? &parts.attr : NULL, name, span);
        vec_push(arena, roots, parts.root);
    }
    read_expect(r, "return");
    fn->result = read_let_id(r);
}

static void read_fn(Reader *r) {
    CoreFn *fn = core_fn(r->program, r->fn++);
    Roots roots = {0};
    r->at += 2;
    fn->has_pack = read_scope(r, true);
    for (uint32_t i = 0; i < r->scope.count; i++)
        vec_push(r->program->arena, &fn->dims, r->scope.at[i]);
    read_params(r, fn);
    for (uint32_t i = 0; i < fn->params; i++)
        vec_push(r->program->arena, &roots, CORE_NO_GROUP);
    read_expect(r, "->");
    fn->type = read_type(r);
    if (read_take(r, "gradient")) {
        fn->gradient_of = read_function(r);
        return;
    }
    bool grouped = read_take(r, "grouped");
    read_expect(r, "{");
    read_body(r, fn, &roots);
    read_expect(r, "}");
    if (grouped && !r->failed)
        set_groups(r, fn, &roots);
    for (uint32_t i = 0; !grouped && i < roots.count; i++)
        if (roots.at[i] != CORE_NO_GROUP)
            read_fail(r, "`%s` has a group and is not `grouped`",
                      name_c(r->context->names, fn->name));
}

// Functions and modules are known before they are read: calls and trees may name later ones.
static void declare(Reader *r) {
    for (; read_peek(r, 0)->kind != SCAN_END; r->at++) {
        const ScanToken *name = read_peek(r, 1);
        bool fn = read_is(r, "fn"), module = read_is(r, "module");
        if (!read_peek(r, 0)->column0 || !(fn || module) || name->kind != SCAN_WORD)
            continue;
        Span span = {r->source, name->offset, name->offset + name->text.size};
        Name id = name_of(r->context->names, name->text);
        if (fn)
            core_fn_add(r->program, id, span);
        else
            core_module_add(r->program, id, span);
    }
    r->at = 0;
}

CoreProgram *core_read(Context *context, Arena *arena, uint32_t source) {
    Reader r = {.program = core_program_new(context, arena),
                .context = context,
                .source = source,
                .tokens = core_scan(source_get(&context->sources, source), arena),
                .module = 1,
                .fn = 1};
    declare(&r);
    while (!r.failed && read_peek(&r, 0)->kind != SCAN_END) {
        bool named = read_peek(&r, 0)->column0 && read_peek(&r, 1)->kind == SCAN_WORD;
        r.scope.count = 0;
        if (named && read_is(&r, "dim"))
            read_global_dim(&r);
        else if (named && read_is(&r, "module"))
            read_module(&r);
        else if (named && read_is(&r, "fn"))
            read_fn(&r);
        else
            read_fail(&r, "expected `dim`, `module` or `fn` and a name at the start of a line");
    }
    return r.failed ? NULL : r.program;
}
