// Fusion groups as text, JSON and Graphviz; reads the partition and never computes it.
#include "core/dump.h"
#include "core/concrete.h"
#include "core/launch.h"

// ---- launches -------------------------------------------------------------------------------

static uint64_t let_launches(const CoreProgram *program, const CoreFn *fn, CoreLetId id,
                             bool fusion) {
    if (!core_let_launches(fn, id, fusion))
        return 0;
    const CoreType *type = core_type(program, core_let(fn, id)->type);
    return type->kind == CORE_PARAMS ? core_leaf_count(program, type->tree) : 1;
}

// With calls, each function is counted once and remembered: calls may fan out.
static uint64_t count(const CoreProgram *program, CoreFnId id, bool fusion, uint64_t *known) {
    if (known && known[id])
        return known[id] - 1;
    const CoreFn *fn = core_fn(program, id);
    uint64_t sum = 0;
    for (CoreLetId let = 0; let < fn->lets.count; let++) {
        sum += let_launches(program, fn, let, fusion);
        if (known && core_let(fn, let)->prim == CORE_call)
            sum += count(program, core_let(fn, let)->attr->callee, fusion, known);
    }
    if (known)
        known[id] = sum + 1;
    return sum;
}

uint64_t core_launches(const CoreProgram *program, CoreFnId fn, bool fusion, bool calls) {
    if (!calls)
        return count(program, fn, fusion, NULL);
    Arena *scratch = arena_new(arena_heap(program->arena), "launches");
    uint64_t sum = count(program, fn, fusion, arena_array(scratch, uint64_t, program->fns.count));
    arena_free(scratch);
    return sum;
}

// ---- what the three forms share -------------------------------------------------------------

typedef struct Dump {
    const CoreProgram *program;
    const Names *names;
    StrBuf buf;
} Dump;

typedef void (*DumpFn)(Dump *d, CoreFnId id);

static const char *name_of_let(const Dump *d, const CoreFn *fn, CoreLetId let) {
    return name_c(d->names, core_let(fn, let)->name);
}

// "%5 centred"
static void write_let(Dump *d, const CoreFn *fn, CoreLetId let) {
    buf_format(&d->buf, "%%%u%s%s", let, core_let(fn, let)->name ? " " : "",
               name_of_let(d, fn, let));
}

static const char *type_text(const Dump *d, const CoreFn *fn, CoreLetId let) {
    return core_type_text(d->program, core_let(fn, let)->type, d->buf.arena).at;
}

static uint32_t group_of(const CoreFn *fn, CoreLetId let) {
    return fn->group ? fn->group[let] : CORE_NO_GROUP;
}

static bool is_root(const CoreFn *fn, CoreLetId let) {
    return group_of(fn, let) == let;
}

static uint32_t member_count(const CoreFn *fn, CoreLetId root) {
    uint32_t members = 0;
    for (CoreLetId let = 0; let <= root; let++)
        members += group_of(fn, let) == root;
    return members;
}

static Str dump(const CoreProgram *program, CoreFnId fn, Arena *arena, const char *before,
                const char *between, const char *after, DumpFn one) {
    Dump d = {program, program->context->names, {.arena = arena}};
    buf_text(&d.buf, before);
    for (CoreFnId id = fn ? fn : 1; id < (fn ? fn + 1 : program->fns.count); id++) {
        buf_text(&d.buf, id > (fn ? fn : 1) ? between : "");
        one(&d, id);
    }
    buf_text(&d.buf, after);
    return buf_str(&d.buf);
}

// ---- text -----------------------------------------------------------------------------------

static void text_remark(Dump *d, const CoreFn *fn, const CoreRemark *remark) {
    buf_text(&d->buf, "    without ");
    write_let(d, fn, remark->let);
    buf_format(&d->buf, ": %s", core_remark_text(remark->kind));
    if (remark->kind == CORE_REMARK_OUTSIDE_READER && remark->other != CORE_NO_GROUP) {
        buf_text(&d->buf, ", by ");
        write_let(d, fn, remark->other);
        buf_format(&d->buf, " (%s)", core_prims[core_let(fn, remark->other)->prim].text);
    }
    buf_char(&d->buf, '\n');
}

static void text_group(Dump *d, const CoreFn *fn, CoreLetId root) {
    buf_text(&d->buf, "  group ");
    write_let(d, fn, root);
    buf_format(&d->buf, " : %s   %u members, %llu nodes\n", type_text(d, fn, root),
               member_count(fn, root), (unsigned long long)core_group_nodes(fn, root));
    for (CoreLetId let = 0; let <= root; let++) {
        if (group_of(fn, let) != root)
            continue;
        buf_text(&d->buf, "    ");
        write_let(d, fn, let);
        buf_format(&d->buf, " = %s", core_prims[core_let(fn, let)->prim].text);
        for (uint32_t i = 0; i < core_let(fn, let)->count; i++)
            buf_format(&d->buf, " %%%u", core_operand(fn, let, i));
        if (core_let(fn, let)->prim == CORE_pow)
            buf_format(&d->buf, " %lld", (long long)core_let(fn, let)->attr->number);
        buf_char(&d->buf, '\n');
    }
    for (uint32_t i = 0; i < fn->remarks.count; i++)
        if (group_of(fn, fn->remarks.at[i].reader) == root)
            text_remark(d, fn, &fn->remarks.at[i]);
}

static void text_fn(Dump *d, CoreFnId id) {
    const CoreFn *fn = core_fn(d->program, id);
    uint64_t own[2], all[2];
    for (int fusion = 0; fusion < 2; fusion++) {
        own[fusion] = core_launches(d->program, id, fusion, false);
        all[fusion] = core_launches(d->program, id, fusion, true);
    }
    buf_format(&d->buf, "%s: %llu launch%s, %llu with fusion", name_c(d->names, fn->name),
               (unsigned long long)own[0], own[0] == 1 ? "" : "es", (unsigned long long)own[1]);
    if (all[0] != own[0] || all[1] != own[1])
        buf_format(&d->buf, " (%llu and %llu with its calls)", (unsigned long long)all[0],
                   (unsigned long long)all[1]);
    buf_char(&d->buf, '\n');
    for (CoreLetId let = 0; let < fn->lets.count; let++)
        if (is_root(fn, let))
            text_group(d, fn, let);
}

static void text_fn_explained(Dump *d, CoreFnId id) {
    const CoreFn *fn = core_fn(d->program, id);
    bool any = false;
    text_fn(d, id);
    for (uint32_t i = 0; i < fn->remarks.count; i++) {
        if (group_of(fn, fn->remarks.at[i].reader) != CORE_NO_GROUP)
            continue;
        buf_text(&d->buf, any ? "" : "  in no group\n");
        text_remark(d, fn, &fn->remarks.at[i]);
        any = true;
    }
}

Str core_dump_groups(const CoreProgram *program, CoreFnId fn, bool explain, Arena *arena) {
    return dump(program, fn, arena, "", "\n", "", explain ? text_fn_explained : text_fn);
}

// ---- JSON -----------------------------------------------------------------------------------

static void json_group(Dump *d, const CoreFn *fn, CoreFnId id, CoreLetId root) {
    buf_format(&d->buf, "{\"site\": \"%s\", \"root\": %u, \"type\": \"%s\", \"nodes\": %llu, ",
               core_site_text(d->program, id, root, d->buf.arena).at, root, type_text(d, fn, root),
               (unsigned long long)core_group_nodes(fn, root));
    buf_text(&d->buf, "\"members\": [");
    bool any = false;
    for (CoreLetId let = 0; let <= root; let++) {
        if (group_of(fn, let) != root)
            continue;
        buf_format(&d->buf, "%s{\"let\": %u, \"name\": \"%s\", \"prim\": \"%s\"}", any ? ", " : "",
                   let, name_of_let(d, fn, let), core_prims[core_let(fn, let)->prim].text);
        any = true;
    }
    buf_text(&d->buf, "]}");
}

static void json_fn(Dump *d, CoreFnId id) {
    const CoreFn *fn = core_fn(d->program, id);
    static const char *const keys[2][2] = {{"launches", "fused"}, {"total", "total_fused"}};
    buf_format(&d->buf, "  {\"name\": \"%s\"", name_c(d->names, fn->name));
    for (int calls = 0; calls < 2; calls++)
        for (int fusion = 0; fusion < 2; fusion++)
            buf_format(&d->buf, ", \"%s\": %llu", keys[calls][fusion],
                       (unsigned long long)core_launches(d->program, id, fusion, calls));
    buf_text(&d->buf, ",\n   \"groups\": [");
    bool any = false;
    for (CoreLetId let = 0; let < fn->lets.count; let++) {
        if (!is_root(fn, let))
            continue;
        buf_text(&d->buf, any ? ",\n    " : "\n    ");
        json_group(d, fn, id, let);
        any = true;
    }
    buf_text(&d->buf, "],\n   \"remarks\": [");
    for (uint32_t i = 0; i < fn->remarks.count; i++) {
        const CoreRemark *remark = &fn->remarks.at[i];
        buf_format(&d->buf, "%s{\"let\": %u, \"reader\": %u, \"text\": \"%s\"}",
                   i ? ",\n    " : "\n    ", remark->let, remark->reader,
                   core_remark_text(remark->kind));
    }
    buf_text(&d->buf, "]}");
}

Str core_dump_groups_json(const CoreProgram *program, CoreFnId fn, Arena *arena) {
    return dump(program, fn, arena, "{\"functions\": [\n", ",\n", "\n]}\n", json_fn);
}

// ---- Graphviz -------------------------------------------------------------------------------

static void dot_node(Dump *d, const CoreFn *fn, CoreFnId id, CoreLetId let) {
    const CoreLet *at = core_let(fn, let);
    buf_format(&d->buf, "    f%u_%u [label=\"%%%u %s\\n%s\\n%s\"", id, let, let,
               name_of_let(d, fn, let), core_prims[at->prim].text, type_text(d, fn, let));
    buf_text(&d->buf, core_let_launches(fn, let, true) ? ", style=bold];\n" : "];\n");
}

static void dot_fn(Dump *d, CoreFnId id) {
    const CoreFn *fn = core_fn(d->program, id);
    buf_format(&d->buf, "  subgraph cluster_f%u {\n    label=\"%s\";\n", id,
               name_c(d->names, fn->name));
    for (CoreLetId let = 0; let < fn->lets.count; let++)
        if (group_of(fn, let) == CORE_NO_GROUP && core_let(fn, let)->prim != CORE_scalar)
            dot_node(d, fn, id, let);
    for (CoreLetId root = 0; root < fn->lets.count; root++) {
        if (!is_root(fn, root))
            continue;
        buf_format(&d->buf, "    subgraph cluster_f%u_%u {\n    style=filled; label=\"\";\n", id,
                   root);
        for (CoreLetId let = 0; let <= root; let++)
            if (group_of(fn, let) == root)
                dot_node(d, fn, id, let);
        buf_text(&d->buf, "    }\n");
    }
    buf_text(&d->buf, "  }\n");
    for (CoreLetId let = 0; let < fn->lets.count; let++)
        for (uint32_t i = 0; i < core_let(fn, let)->count; i++)
            if (core_let(fn, core_operand(fn, let, i))->prim != CORE_scalar)
                buf_format(&d->buf, "  f%u_%u -> f%u_%u;\n", id, core_operand(fn, let, i), id, let);
}

Str core_dump_groups_dot(const CoreProgram *program, CoreFnId fn, Arena *arena) {
    return dump(program, fn, arena, "digraph presk {\n  node [shape=box];\n", "", "}\n", dot_fn);
}
