// Texts as tokens: a character is a Unicode code point, its token the place it has among all of the
// text's code points in increasing order.
#include "runtime/data_file.h"

#include <jansson.h>
#include <stdlib.h>
#include <unistr.h>

enum { CODE_END = 0x110000 };

// Calls for each code point; false: not UTF-8 at *at.
static bool next_code(const RtBytes *bytes, uint64_t *at, ucs4_t *code) {
    uint64_t left = bytes->size - *at;
    int size = u8_mbtoucr(code, bytes->at + *at, left < 8 ? (size_t)left : 8);
    if (size <= 0)
        return false;
    *at += (uint64_t)size;
    return true;
}

// Which code points occur, as the characters in order, and how many there are in all.
static bool count_characters(const RtPath *path, const RtBytes *bytes, uint64_t *tokens,
                             RtCharacters *characters) {
    unsigned char *seen = arena_alloc(path->arena, CODE_END);
    *tokens = 0;
    *characters = (RtCharacters){0};
    for (uint64_t at = 0; at < bytes->size; ++*tokens) {
        ucs4_t code;
        uint64_t begin = at;
        if (!next_code(bytes, &at, &code)) {
            diag(path->diags, E5009, path->span, path->path,
                 str_format(path->arena, "it is not UTF-8 at byte %llu", (unsigned long long)begin)
                     .at);
            return false;
        }
        characters->count += !seen[code];
        seen[code] = 1;
    }
    if (*tokens == 0) {
        diag(path->diags, E5009, path->span, path->path, "it is empty");
        return false;
    }
    characters->code = arena_array(path->arena, uint32_t, characters->count);
    for (uint32_t code = 0, i = 0; code < CODE_END; code++)
        if (seen[code])
            characters->code[i++] = code;
    return true;
}

static void put_tokens(RtDataWriter *writer, const RtBytes *bytes, uint64_t tokens,
                       const RtCharacters *characters) {
    Progress progress;
    progress_begin(&progress, "writing tokens", false);
    for (uint64_t at = 0, done = 0; done < tokens; done++) {
        ucs4_t code;
        next_code(bytes, &at, &code);
        uint64_t token = rt_character_index(characters, code);
        rt_data_put_bytes(writer, &token); // little-endian: the low bytes come first
        if (done % 65536 == 0)
            progress_update(&progress, done, tokens, NULL);
    }
    progress_end(&progress);
}

static bool convert(const RtPath *text, const RtPath *data, const RtBytes *bytes, uint64_t vocab,
                    uint64_t *tokens, RtCharacters *characters) {
    if (!count_characters(text, bytes, tokens, characters))
        return false;
    if (vocab > 0 && vocab < characters->count) {
        diag(text->diags, E5009, text->span, text->path,
             str_format(text->arena, "it has %u different characters, and the vocabulary %llu",
                        characters->count, (unsigned long long)vocab)
                 .at);
        return false;
    }
    RtLeaf leaf = {.bound = vocab ? vocab : characters->count};
    leaf.type = dtype_of_bound(leaf.bound);
    RtDataType type;
    RtDataWriter writer;
    if (!rt_data_type_of(data, 1, &leaf, &type) || !rt_data_begin(data, &type, *tokens, &writer))
        return false;
    put_tokens(&writer, bytes, *tokens, characters);
    RtPath table = *data;
    table.path = rt_characters_path(data->arena, data->path).at;
    if (!rt_characters_write(&table, characters)) {
        rt_data_abandon(&writer);
        return false;
    }
    return rt_data_commit(&writer);
}

bool rt_text_convert(const RtPath *text, const RtPath *data, uint64_t vocab, uint64_t *tokens,
                     RtCharacters *characters) {
    RtBytes bytes;
    if (!rt_bytes_open(text, &bytes))
        return false;
    bool converted = convert(text, data, &bytes, vocab, tokens, characters);
    rt_bytes_close(&bytes);
    return converted;
}

uint32_t rt_character_index(const RtCharacters *characters, uint32_t code) {
    uint32_t low = 0, high = characters->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (characters->code[middle] < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < characters->count && characters->code[low] == code ? low : UINT32_MAX;
}

// ---- the table ------------------------------------------------------------------------------

Str rt_characters_path(Arena *arena, const char *data_path) {
    static const char ending[] = ".psk.d";
    size_t size = strlen(data_path), tail = sizeof ending - 1;
    if (size > tail && strcmp(data_path + size - tail, ending) == 0)
        size -= tail;
    return str_format(arena, "%.*s.chars.json", (int)size, data_path);
}

static void add_character(StrBuf *buf, uint32_t code) {
    uint8_t bytes[8];
    int size = u8_uctomb(bytes, code, sizeof bytes);
    if (code < 0x20 || code == 0x7F) {
        buf_format(buf, "\"\\u%04x\"", code);
    } else if (code == '"' || code == '\\') {
        buf_format(buf, "\"\\%c\"", (int)code);
    } else {
        buf_char(buf, '"');
        buf_add(buf, str_copy(buf->arena, (const char *)bytes, (size_t)size));
        buf_char(buf, '"');
    }
}

bool rt_characters_write(const RtPath *path, const RtCharacters *characters) {
    StrBuf text = {.arena = path->arena};
    buf_text(&text, "{\"characters\": [");
    for (uint32_t i = 0; i < characters->count; i++) {
        buf_text(&text, i ? ", " : "");
        add_character(&text, characters->code[i]);
    }
    buf_text(&text, "]}\n");
    FileWriter file;
    if (!rt_begin(path, &file))
        return false;
    file_put(&file, text.at, text.size);
    return rt_commit(path, &file);
}

static bool read_table(const RtPath *path, const json_t *list, RtCharacters *characters) {
    characters->count = (uint32_t)json_array_size(list);
    characters->code = arena_array(path->arena, uint32_t, characters->count + 1u);
    for (uint32_t i = 0; i < characters->count; i++) {
        const json_t *item = json_array_get(list, i);
        const uint8_t *text = (const uint8_t *)json_string_value(item);
        size_t size = json_string_length(item);
        ucs4_t code;
        if (!text || size == 0 || u8_mbtoucr(&code, text, size) != (int)size ||
            (i > 0 && characters->code[i - 1] >= code))
            return rt_malformed(path, "character %u is not a single one, or is out of order", i);
        characters->code[i] = code;
    }
    return true;
}

bool rt_characters_read(const RtPath *path, RtCharacters *characters) {
    RtBytes bytes;
    if (!rt_bytes_open(path, &bytes))
        return false;
    json_error_t error;
    size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
    json_t *root = json_loadb((const char *)bytes.at, bytes.size, flags, &error);
    const json_t *list = json_object_get(root, "characters");
    bool read = json_is_array(list) && json_object_size(root) == 1
                    ? read_table(path, list, characters)
                    : rt_malformed(path, "it is not {\"characters\": [one-character strings]}");
    json_decref(root);
    rt_bytes_close(&bytes);
    return read;
}
