// Strict JSON with positions: jansson for values, a walk over the text for spans.
#include "realize/json.h"
#include "base/file.h"

static uint32_t skip_space(Str text, uint32_t at) {
    while (at < text.size && strchr(" \t\r\n", text.at[at]))
        at++;
    return at;
}

// The end of the string that begins at its opening quote.
static uint32_t skip_string(Str text, uint32_t at) {
    for (at++; at < text.size && text.at[at] != '"'; at++)
        if (text.at[at] == '\\')
            at++;
    return at + 1;
}

static uint32_t skip_value(Str text, uint32_t at) {
    for (uint32_t depth = 0; at < text.size;) {
        char c = text.at[at];
        if (c == '"') {
            at = skip_string(text, at);
            if (depth == 0)
                return at;
            continue;
        }
        if (c == '{' || c == '[')
            depth++;
        if (depth == 0 && strchr(",}] \t\r\n", c))
            return at;
        at++;
        if ((c == '}' || c == ']') && --depth == 0)
            return at;
    }
    return at;
}

bool rlz_json_read(Context *context, Arena *arena, const char *path, RlzJson *json, Str *error,
                   Span *where) {
    Str text, why;
    *where = (Span){0};
    if (!file_read(arena, path, &text, &why)) {
        *error = str_format(arena, "cannot read %s: %s", path, why.at);
        return false;
    }
    *json = (RlzJson){.source = source_add(&context->sources, str_of(path), text)};
    json->begin = skip_space(text, 0);
    json_error_t failure;
    json->root = json_loadb(text.at, text.size, JSON_REJECT_DUPLICATES, &failure);
    if (json->root && json_is_object(json->root))
        return true;
    uint32_t at = json->root ? json->begin : (uint32_t)MAX(failure.position - 1, 0);
    at = MIN(at, text.size);
    *where = (Span){json->source, at, MIN(at + 1, text.size)};
    *error = json->root ? STR("an object is expected")
                        : str_copy(arena, failure.text, strlen(failure.text));
    rlz_json_free(json);
    return false;
}

void rlz_json_free(RlzJson *json) {
    json_decref(json->root);
    json->root = NULL;
}

uint32_t rlz_json_members(const Context *context, Arena *arena, const RlzJson *json, json_t *object,
                          uint32_t begin, RlzMember **members) {
    Str text = source_get(&context->sources, json->source)->text;
    uint32_t count = 0, at = begin + 1; // behind the brace
    *members = arena_array(arena, RlzMember, json_object_size(object));
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) { // in the order of the text
        RlzMember *member = &(*members)[count++];
        member->key = str_copy(arena, key, strlen(key));
        member->value = value;
        at = skip_space(text, at);
        uint32_t end = skip_string(text, at);
        member->key_at = (Span){json->source, at, end};
        at = skip_space(text, skip_space(text, end) + 1); // behind the colon
        end = skip_value(text, at);
        member->value_at = (Span){json->source, at, end};
        at = skip_space(text, end) + 1; // behind the comma
    }
    return count;
}
