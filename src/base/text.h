// Text: counted strings, string building in arenas, interned names.
#ifndef PRESK_BASE_TEXT_H
#define PRESK_BASE_TEXT_H

#include "base/memory.h"

// Bytes with a length; always followed by a NUL byte that is not counted, so `at` is a C string
// when it holds no NUL of its own.
typedef struct Str {
    const char *at;
    uint32_t size;
} Str;

#define STR(literal) ((Str){"" literal, sizeof(literal) - 1})

Str str_of(const char *c_string);                        // no copy
Str str_copy(Arena *arena, const char *at, size_t size); // copies and ends with NUL
bool str_equal(Str a, Str b);
bool str_is(Str a, const char *c_string);
int str_compare(Str a, Str b);
Str str_format(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
Str str_format_v(Arena *arena, const char *format, va_list args);

// A string under construction.
typedef struct StrBuf {
    Arena *arena;
    char *at;
    uint32_t size, capacity;
} StrBuf;

void buf_add(StrBuf *buf, Str text);
void buf_text(StrBuf *buf, const char *c_string);
void buf_char(StrBuf *buf, char c);
void buf_number(StrBuf *buf, int64_t number);
void buf_format(StrBuf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
Str buf_str(StrBuf *buf); // what was built; the buffer can go on

// The shortest decimal that reads back as the same double (or float), with ".0" never added:
// "1", "0.1", "1e-08", "inf", "-inf", "nan".
Str str_of_double(Arena *arena, double value);
Str str_of_float(Arena *arena, float value);

// Interned names: equal names have equal ids; 0 is no name.
typedef uint32_t Name;
typedef struct Names Names;
Names *names_new(Arena *arena);
Name name_of(Names *names, Str text);
Name name_of_c(Names *names, const char *c_string);
Str name_str(const Names *names, Name name); // of 0: the empty string
const char *name_c(const Names *names, Name name);

// Of `candidates`, the one nearest to `word` by edit distance, if near enough to be what was
// meant; else the empty string. Used for "did you mean".
Str nearest_spelling(Arena *arena, Str word, const Str *candidates, uint32_t count);

// 64-bit hash of bytes, the same on every machine (FNV-1a with a final mix); `seed` chains.
uint64_t hash_bytes(const void *at, size_t size, uint64_t seed);

// A hash map from byte strings to 32-bit values, in an arena, kept in order of insertion.
typedef struct Map Map;
Map *map_new(Arena *arena);
// The value slot of the key; made with *fresh = true (value 0) where there was none. The key's
// bytes are copied. `fresh` may be null.
uint32_t *map_slot(Map *map, const void *key, size_t size, bool *fresh);
const uint32_t *map_find(const Map *map, const void *key, size_t size); // null: absent
uint32_t map_count(const Map *map);

#endif
