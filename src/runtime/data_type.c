// Types of samples: a reader for the closed part of the language's types, and their text.
#include "runtime/data_file.h"

#include <unictype.h>
#include <unistr.h>

typedef struct Reader {
    const RtPath *path;
    Str text;
    uint32_t at;
    uint32_t depth;
    Vec(RtLeaf) leaves;
    Str model;
    bool refused;
} Reader;

enum { DEPTH_MAX = 64, LEAVES_MAX = 65536 };

// Every refusal is E9001; only the first is reported.
static bool refuse(Reader *reader, const char *why) {
    if (!reader->refused) {
        Str shown = reader->text;
        if (u8_check((const uint8_t *)shown.at, shown.size) || shown.size > 200 ||
            memchr(shown.at, 0, shown.size))
            shown = rt_shown(reader->path->arena, shown.at, shown.size);
        Diag *made = diag(reader->path->diags, E9001, reader->path->span, shown.at, why);
        diag_note(made, "this is the type of %s", reader->path->path);
    }
    reader->refused = true;
    return false;
}

static void skip_space(Reader *reader) {
    while (reader->at < reader->text.size && strchr(" \t\r\n", reader->text.at[reader->at]) &&
           reader->text.at[reader->at])
        reader->at++;
}

static bool take(Reader *reader, const char *mark) {
    skip_space(reader);
    size_t size = strlen(mark);
    if (reader->text.size - reader->at < size ||
        memcmp(reader->text.at + reader->at, mark, size) != 0)
        return false;
    reader->at += (uint32_t)size;
    return true;
}

static bool expect(Reader *reader, const char *mark) {
    if (take(reader, mark))
        return true;
    return refuse(reader, str_format(reader->path->arena, " lacks a `%s`", mark).at);
}

// A name by the language's rules for identifiers; empty where there is none.
static Str take_name(Reader *reader) {
    skip_space(reader);
    const uint8_t *text = (const uint8_t *)reader->text.at;
    uint32_t begin = reader->at;
    while (reader->at < reader->text.size) {
        ucs4_t code;
        int size = u8_mbtoucr(&code, text + reader->at, reader->text.size - reader->at);
        bool starts = reader->at == begin;
        if (size <= 0 || code == 0x3BB || code == 0x211D || code == 0xB7)
            break;
        if (!(starts ? code == '_' || uc_is_property_xid_start(code)
                     : uc_is_property_xid_continue(code)))
            break;
        reader->at += (uint32_t)size;
    }
    return str_copy(reader->path->arena, reader->text.at + begin, reader->at - begin);
}

// A positive integer; `_` may stand between digits.
static bool take_integer(Reader *reader, const char *what, uint64_t most, uint64_t *value) {
    skip_space(reader);
    uint32_t begin = reader->at;
    *value = 0;
    for (; reader->at < reader->text.size; reader->at++) {
        char c = reader->text.at[reader->at];
        if (c == '_' && reader->at > begin)
            continue;
        if (c < '0' || c > '9')
            break;
        uint64_t digit = (uint64_t)(c - '0');
        if (*value > (most - digit) / 10)
            return refuse(reader, " has a number that is too large");
        *value = *value * 10 + digit;
    }
    if (reader->at == begin)
        return refuse(reader, str_format(reader->path->arena, " needs a number for %s", what).at);
    if (*value == 0)
        return refuse(reader, str_format(reader->path->arena, " has 0 for %s", what).at);
    return true;
}

static bool take_axis(Reader *reader, RtLeaf *leaf) {
    if (leaf->rank == RANK_MAX)
        return refuse(reader, " has too many axes");
    if (take(reader, "..."))
        return refuse(reader, " leaves axes open with `...`");
    Str name = take_name(reader);
    if (name.size > 0 && !take(reader, ":"))
        return refuse(reader,
                      str_format(reader->path->arena,
                                 " has the extent `%s`, which only a program knows", name.at)
                          .at);
    uint64_t extent;
    if (!take_integer(reader, "an axis", INT64_MAX, &extent))
        return false;
    for (uint32_t i = 0; i < leaf->rank; i++)
        if (name.size > 0 && str_equal(leaf->axis[i], name))
            return refuse(reader, " names an axis twice");
    leaf->axis[leaf->rank] = name;
    leaf->extent[leaf->rank++] = (int64_t)extent;
    return true;
}

static bool take_axes(Reader *reader, RtLeaf *leaf) {
    if (!take(reader, "[") || take(reader, "]"))
        return true;
    do {
        if (!take_axis(reader, leaf))
            return false;
    } while (take(reader, ","));
    return expect(reader, "]");
}

static bool take_type(Reader *reader);

static bool take_tuple(Reader *reader) {
    if (++reader->depth > DEPTH_MAX)
        return refuse(reader, " nests too deep");
    do {
        if (!take_type(reader))
            return false;
    } while (take(reader, ","));
    reader->depth--;
    return expect(reader, ")");
}

static bool take_model(Reader *reader) {
    StrBuf model = {.arena = reader->path->arena};
    do {
        Str part = take_name(reader);
        if (part.size == 0)
            return refuse(reader, " needs the name of a module after `params`");
        buf_text(&model, model.size ? "." : "");
        buf_add(&model, part);
    } while (take(reader, "."));
    if (reader->leaves.count > 0 || reader->depth > 0)
        return refuse(reader, " holds the parameters of a module within a tuple");
    reader->model = buf_str(&model);
    return true;
}

static bool take_type(Reader *reader) {
    if (take(reader, "("))
        return take_tuple(reader);
    RtLeaf leaf = {.type = F64};
    if (!take(reader, "ℝ")) {
        Str word = take_name(reader);
        if (str_is(word, "params"))
            return take_model(reader);
        if (str_is(word, "idx")) {
            if (!expect(reader, "[") || !take_integer(reader, "a bound", UINT64_MAX, &leaf.bound) ||
                !expect(reader, "]"))
                return false;
            leaf.type = dtype_of_bound(leaf.bound);
        } else if (!str_is(word, "Real")) {
            return refuse(
                reader,
                word.size
                    ? str_format(reader->path->arena, ": `%s` is not a type of data", word.at).at
                    : " needs `ℝ`, `idx`, `params` or `(`");
        }
    }
    if (!take_axes(reader, &leaf))
        return false;
    if (reader->leaves.count == LEAVES_MAX)
        return refuse(reader, " has too many parts");
    vec_push(reader->path->arena, &reader->leaves, leaf);
    return true;
}

bool rt_lay_out(RtDataType *type) {
    type->bytes = 0;
    for (uint32_t i = 0; i < type->count; i++) {
        RtLeaf *leaf = &type->leaves[i];
        uint64_t bytes;
        if (!rt_bytes_of(leaf->rank, leaf->extent, dtype_size(leaf->type), &bytes))
            return false;
        leaf->count = (int64_t)(bytes / dtype_size(leaf->type));
        leaf->offset = type->bytes;
        type->bytes += bytes; // both are below 2^63
        if (type->bytes > INT64_MAX)
            return false;
    }
    return true;
}

bool rt_data_type(const RtPath *path, Str text, RtDataType *type) {
    Reader reader = {.path = path, .text = text};
    if (!take_type(&reader))
        return false;
    skip_space(&reader);
    if (reader.at < text.size)
        return refuse(&reader, " has something behind its end");
    *type = (RtDataType){.text = text,
                         .model = reader.model,
                         .count = reader.leaves.count,
                         .leaves = reader.leaves.at};
    return rt_lay_out(type) || refuse(&reader, " is larger than 2^63 bytes");
}

static void add_axes(StrBuf *buf, const RtLeaf *leaf) {
    buf_char(buf, '[');
    for (uint32_t i = 0; i < leaf->rank; i++) {
        buf_text(buf, i ? ", " : "");
        if (leaf->axis[i].size > 0)
            buf_format(buf, "%s: ", leaf->axis[i].at);
        buf_format(buf, "%lld", (long long)leaf->extent[i]);
    }
    buf_char(buf, ']');
}

Str rt_leaf_text(Arena *arena, const RtLeaf *leaf) {
    StrBuf buf = {.arena = arena};
    if (leaf->bound > 0)
        buf_format(&buf, "idx[%llu]", (unsigned long long)leaf->bound);
    else
        buf_text(&buf, "ℝ");
    if (leaf->rank > 0)
        add_axes(&buf, leaf);
    return buf_str(&buf);
}

bool rt_data_type_of(const RtPath *path, uint32_t count, const RtLeaf *leaves, RtDataType *type) {
    StrBuf text = {.arena = path->arena};
    buf_text(&text, count == 1 ? "" : "(");
    for (uint32_t i = 0; i < count; i++) {
        buf_text(&text, i ? ", " : "");
        buf_add(&text, rt_leaf_text(path->arena, &leaves[i]));
        for (uint32_t k = 0; k < leaves[i].rank; k++)
            if (leaves[i].extent[k] == 0)
                return rt_malformed(path, "an axis of length 0 leaves nothing to store");
    }
    buf_text(&text, count == 1 ? "" : ")");
    *type = (RtDataType){.text = buf_str(&text),
                         .count = count,
                         .leaves = arena_copy(path->arena, leaves, count * sizeof *leaves)};
    return rt_lay_out(type) || rt_malformed(path, "a sample is larger than 2^63 bytes");
}
