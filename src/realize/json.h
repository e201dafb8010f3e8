// Strict JSON with positions, for realization records and plans; private to this folder.
//
// jansson reads the values and refuses what is malformed: a duplicate key, trailing text. It keeps
// no positions, so those are found again in the text, which is known to be well formed by then.
#ifndef PRESK_REALIZE_JSON_H
#define PRESK_REALIZE_JSON_H

#include "base/context.h"

#include <jansson.h>

typedef struct RlzJson {
    uint32_t source;
    json_t *root; // an object; freed by rlz_json_free
    uint32_t begin;
} RlzJson;

typedef struct RlzMember {
    Str key;
    Span key_at, value_at;
    json_t *value;
} RlzMember;

// Reads a file that holds one object. False: *error says why, at *where.
bool rlz_json_read(Context *context, Arena *arena, const char *path, RlzJson *json, Str *error,
                   Span *where);
void rlz_json_free(RlzJson *json);

// The members, in order, of the object whose text begins at `begin` (json->begin for the root, a
// member's value_at.begin below it).
uint32_t rlz_json_members(const Context *context, Arena *arena, const RlzJson *json, json_t *object,
                          uint32_t begin, RlzMember **members);

#endif
