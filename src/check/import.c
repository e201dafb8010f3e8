// Units: a source, parsed, with everything it imports. `std/…` comes from the binary; any other
// path is relative to the folder of the importing file. Cycles are refused.
#include "base/file.h"
#include "check/embedded.h"
#include "check/internal.h"

static bool is_std(Str path) {
    return path.size > 4 && memcmp(path.at, "std/", 4) == 0;
}

static const Embedded *embedded_find(Str path) {
    for (const Embedded *e = presk_embedded; e->path; e++)
        if (str_is(path, e->path))
            return e;
    return NULL;
}

// `path` seen from the file `from`, with `.` and `..` resolved, so that one file has one path.
static Str beside(Arena *arena, Str from, Str path) {
    StrBuf buf = {.arena = arena};
    if (path.size && path.at[0] != '/') {
        uint32_t folder = from.size;
        while (folder && from.at[folder - 1] != '/')
            folder--;
        buf_add(&buf, str_copy(arena, from.at, folder));
    }
    buf_add(&buf, path);
    Str joined = buf_str(&buf);
    Vec(Str) parts = {0};
    bool absolute = joined.size && joined.at[0] == '/';
    for (uint32_t i = 0; i < joined.size;) {
        uint32_t end = i;
        while (end < joined.size && joined.at[end] != '/')
            end++;
        Str part = str_copy(arena, joined.at + i, end - i);
        if (str_is(part, "..") && parts.count && !str_is(vec_last(&parts), ".."))
            parts.count--;
        else if (part.size && !str_is(part, "."))
            vec_push(arena, &parts, part);
        i = end + 1;
    }
    StrBuf out = {.arena = arena};
    for (uint32_t i = 0; i < parts.count; i++) {
        if (i || absolute)
            buf_char(&out, '/');
        buf_add(&out, parts.at[i]);
    }
    return buf_str(&out);
}

static ChkUnit *unit_of_path(const Chk *chk, Str path, bool embedded) {
    for (uint32_t i = 0; i < chk->units.count; i++)
        if (chk->units.at[i]->embedded == embedded && str_equal(chk->units.at[i]->path, path))
            return chk->units.at[i];
    return NULL;
}

// The unit at a path as it was written in `unit`; null after a diagnostic.
static ChkUnit *open_import(Chk *chk, const ChkUnit *unit, const SynNode *node) {
    bool embedded = is_std(node->text);
    Str path = embedded ? node->text : beside(chk->arena, unit->path, node->text);
    ChkUnit *known = unit_of_path(chk, path, embedded);
    if (known && known->state == CHK_OPEN) {
        Diag *d = diag(chk->diags, E1004, node->span, chk_c(node->text));
        diag_note(d, "%s imports itself, through this line", chk_c(path));
        return NULL;
    }
    if (known)
        return known;
    Str text, error = STR("there is no such library module");
    const Embedded *e = embedded ? embedded_find(path) : NULL;
    if (e)
        text = str_copy(chk->arena, e->text, e->size);
    else if (embedded || !file_read(chk->arena, chk_c(path), &text, &error)) {
        Diag *d = diag(chk->diags, E1003, node->span, chk_c(node->text), chk_c(error));
        Vec(Str) names = {0};
        for (const Embedded *m = presk_embedded; m->path; m++)
            vec_push(chk->arena, &names, str_of(m->path));
        Str best = nearest_spelling(chk->arena, node->text, names.at, names.count);
        if (best.size)
            diag_help(d, "did you mean `%s`?", best.at);
        return NULL;
    }
    return chk_load(chk, source_add(&chk->context->sources, path, text), path, embedded);
}

ChkUnit *chk_load(Chk *chk, uint32_t source, Str path, bool embedded) {
    ChkUnit *unit = arena_new_of(chk->arena, ChkUnit);
    unit->source = source;
    unit->path = embedded ? path : beside(chk->arena, STR(""), path);
    unit->embedded = embedded;
    unit->names = map_new(chk->arena);
    uint32_t errors = chk->diags->errors;
    unit->tree = syn_parse(chk->context, chk->arena, source);
    vec_push(chk->arena, &chk->units, unit);
    const Source *text = source_get(&chk->context->sources, source);
    bool ended = text->text.size && text->text.at[text->text.size - 1] == '\n';
    chk->result->lines += text->lines.count - ended;
    unit->state = CHK_DONE;
    if (chk->diags->errors != errors) {
        chk->bad_syntax = true;
        return unit;
    }
    unit->state = CHK_OPEN;
    chk_collect(chk, unit);
    for (uint32_t i = 0; i < unit->decls.count; i++) {
        ChkDecl *decl = unit->decls.at[i];
        if (decl->kind == CHK_IMPORT)
            decl->target = open_import(chk, unit, syn_node(unit->tree, decl->node));
    }
    unit->state = CHK_DONE;
    return unit;
}
