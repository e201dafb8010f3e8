// Strings, names and maps. A map keeps its entries in a list in order of insertion and finds them
// through an open-addressed table of 32-bit indices.
#include "base/text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

Str str_of(const char *c_string) {
    return (Str){c_string, (uint32_t)strlen(c_string)};
}

Str str_copy(Arena *arena, const char *at, size_t size) {
    check_that(size < UINT32_MAX);
    char *copy = arena_alloc(arena, size + 1);
    if (size)
        memcpy(copy, at, size);
    return (Str){copy, (uint32_t)size};
}

bool str_equal(Str a, Str b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.at, b.at, a.size) == 0);
}

bool str_is(Str a, const char *c_string) {
    return str_equal(a, str_of(c_string));
}

int str_compare(Str a, Str b) {
    uint32_t size = MIN(a.size, b.size);
    int order = size ? memcmp(a.at, b.at, size) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

Str str_format_v(Arena *arena, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    check_that(size >= 0);
    char *at = arena_alloc(arena, (size_t)size + 1);
    vsnprintf(at, (size_t)size + 1, format, again);
    va_end(again);
    return (Str){at, (uint32_t)size};
}

Str str_format(Arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    Str text = str_format_v(arena, format, args);
    va_end(args);
    return text;
}

static void buf_reserve(StrBuf *buf, size_t extra) {
    size_t wanted = (size_t)buf->size + extra + 1;
    check_that(wanted < UINT32_MAX);
    if (wanted <= buf->capacity)
        return;
    size_t capacity = MAX(MAX(wanted, (size_t)buf->capacity * 2), 64);
    buf->at = arena_grow(buf->arena, buf->at, buf->size, MIN(capacity, UINT32_MAX));
    buf->capacity = (uint32_t)MIN(capacity, UINT32_MAX);
}

void buf_add(StrBuf *buf, Str text) {
    buf_reserve(buf, text.size);
    if (text.size)
        memcpy(buf->at + buf->size, text.at, text.size);
    buf->size += text.size;
    buf->at[buf->size] = 0;
}

void buf_text(StrBuf *buf, const char *c_string) {
    buf_add(buf, str_of(c_string));
}

void buf_char(StrBuf *buf, char c) {
    buf_add(buf, (Str){&c, 1});
}

void buf_format(StrBuf *buf, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    buf_reserve(buf, 0);
    size_t room = buf->capacity - buf->size;
    int size = vsnprintf(buf->at + buf->size, room, format, args);
    check_that(size >= 0);
    if ((size_t)size >= room) {
        buf_reserve(buf, (size_t)size);
        vsnprintf(buf->at + buf->size, (size_t)size + 1, format, again);
    }
    buf->size += (uint32_t)size;
    va_end(again);
    va_end(args);
}

void buf_number(StrBuf *buf, int64_t number) {
    char digits[20], *at = digits + sizeof digits;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0)
        *--at = '-';
    buf_add(buf, (Str){at, (uint32_t)(digits + sizeof digits - at)});
}

Str buf_str(StrBuf *buf) {
    buf_reserve(buf, 0);
    buf->at[buf->size] = 0;
    return (Str){buf->at, buf->size};
}

static bool reads_back(const char *text, double value, bool single) {
    return single ? (double)strtof(text, NULL) == value : strtod(text, NULL) == value;
}

// Whole numbers stand in full as long as each of their digits means something. Where a decimal of
// `sure` digits does not read back, no shorter one does; but for powers of two, whose neighbours
// lie at two distances.
static Str shortest(Arena *arena, double value, bool single) {
    if (isnan(value))
        return STR("nan");
    if (value == trunc(value) && fabs(value) < (single ? 1e7 : 1e15))
        return str_format(arena, "%.0f", value);
    char text[32];
    int exponent, sure = single ? FLT_DIG : DBL_DIG, digits = 1;
    int most = single ? FLT_DECIMAL_DIG : DBL_DECIMAL_DIG;
    if (fabs(frexp(value, &exponent)) != 0.5) {
        snprintf(text, sizeof text, "%.*g", sure, value);
        digits = reads_back(text, value, single) ? 1 : sure + 1;
    }
    int size = snprintf(text, sizeof text, "%.*g", digits, value);
    while (digits < most && !reads_back(text, value, single))
        size = snprintf(text, sizeof text, "%.*g", ++digits, value);
    return str_copy(arena, text, (size_t)size);
}

Str str_of_double(Arena *arena, double value) {
    return shortest(arena, value, false);
}

Str str_of_float(Arena *arena, float value) {
    return shortest(arena, (double)value, true);
}

uint64_t hash_bytes(const void *at, size_t size, uint64_t seed) {
    const unsigned char *bytes = at;
    uint64_t hash = 0xcbf29ce484222325u ^ seed;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    // FNV's high bits are weak for short keys: one round of a multiply-shift mix.
    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93u;
    return hash ^ hash >> 32;
}

typedef struct Entry {
    Str key;
    uint64_t hash;
    uint32_t value;
} Entry;

struct Map {
    Arena *arena;
    Entry **entry; // by index; entries stay where they are, so slots stay valid
    uint32_t count, capacity;
    uint32_t *table; // index + 1; 0: empty
    uint32_t mask;
};

Map *map_new(Arena *arena) {
    Map *map = arena_new_of(arena, Map);
    map->arena = arena;
    return map;
}

static void map_rehash(Map *map) {
    uint32_t size = map->mask ? (map->mask + 1) * 2 : 16;
    map->table = arena_array(map->arena, uint32_t, size);
    map->mask = size - 1;
    for (uint32_t i = 0; i < map->count; i++) {
        uint32_t at = (uint32_t)map->entry[i]->hash & map->mask;
        while (map->table[at])
            at = (at + 1) & map->mask;
        map->table[at] = i + 1;
    }
}

static Entry *map_lookup(const Map *map, const void *key, size_t size, uint64_t hash) {
    if (!map->mask)
        return NULL;
    Str wanted = {key, (uint32_t)size};
    for (uint32_t at = (uint32_t)hash & map->mask; map->table[at]; at = (at + 1) & map->mask) {
        Entry *entry = map->entry[map->table[at] - 1];
        if (entry->hash == hash && str_equal(entry->key, wanted))
            return entry;
    }
    return NULL;
}

uint32_t *map_slot(Map *map, const void *key, size_t size, bool *fresh) {
    uint64_t hash = hash_bytes(key, size, 0);
    Entry *entry = map_lookup(map, key, size, hash);
    if (fresh)
        *fresh = !entry;
    if (entry)
        return &entry->value;
    if (map->count == map->capacity) {
        uint32_t capacity = map->capacity ? map->capacity * 2 : 8;
        map->entry = arena_grow(map->arena, map->entry, map->count * sizeof *map->entry,
                                capacity * sizeof *map->entry);
        map->capacity = capacity;
    }
    entry = arena_new_of(map->arena, Entry);
    entry->key = str_copy(map->arena, key, size);
    entry->hash = hash;
    map->entry[map->count++] = entry;
    // Kept at most half full.
    if (!map->mask || map->count * 2 > map->mask + 1) {
        map_rehash(map);
        return &entry->value;
    }
    uint32_t at = (uint32_t)hash & map->mask;
    while (map->table[at])
        at = (at + 1) & map->mask;
    map->table[at] = map->count;
    return &entry->value;
}

const uint32_t *map_find(const Map *map, const void *key, size_t size) {
    Entry *entry = map_lookup(map, key, size, hash_bytes(key, size, 0));
    return entry ? &entry->value : NULL;
}

uint32_t map_count(const Map *map) {
    return map->count;
}

struct Names {
    Arena *arena;
    Map *map; // text to name
    Vec(Str) text;
};

Names *names_new(Arena *arena) {
    Names *names = arena_new_of(arena, Names);
    names->arena = arena;
    names->map = map_new(arena);
    vec_push(arena, &names->text, STR(""));
    return names;
}

Name name_of(Names *names, Str text) {
    if (!text.size)
        return 0;
    bool fresh;
    uint32_t *slot = map_slot(names->map, text.at, text.size, &fresh);
    if (fresh) {
        *slot = names->text.count;
        vec_push(names->arena, &names->text, str_copy(names->arena, text.at, text.size));
    }
    return *slot;
}

Name name_of_c(Names *names, const char *c_string) {
    return name_of(names, str_of(c_string));
}

Str name_str(const Names *names, Name name) {
    return names->text.at[name];
}

const char *name_c(const Names *names, Name name) {
    return names->text.at[name].at;
}

// Edits (insert, delete, replace, swap of neighbours) from a to b, or `limit` + 1 when more.
static uint32_t edit_distance(Arena *arena, Str a, Str b, uint32_t limit) {
    if (a.size > b.size + limit || b.size > a.size + limit)
        return limit + 1;
    uint32_t *row[3];
    for (int i = 0; i < 3; i++)
        row[i] = arena_array(arena, uint32_t, b.size + 1);
    for (uint32_t j = 0; j <= b.size; j++)
        row[0][j] = j;
    for (uint32_t i = 1; i <= a.size; i++) {
        uint32_t *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (uint32_t j = 1; j <= b.size; j++) {
            uint32_t best = last[j - 1] + (a.at[i - 1] != b.at[j - 1]);
            best = MIN(best, MIN(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a.at[i - 1] == b.at[j - 2] && a.at[i - 2] == b.at[j - 1])
                best = MIN(best, before[j - 2] + 1);
            now[j] = best;
        }
    }
    return row[a.size % 3][b.size];
}

static bool same_but_case(Str a, Str b) {
    return a.size == b.size && strncasecmp(a.at, b.at, a.size) == 0;
}

Str nearest_spelling(Arena *arena, Str word, const Str *candidates, uint32_t count) {
    uint32_t limit = word.size <= 2 ? 1 : word.size <= 5 ? 2 : 3;
    uint32_t best = limit + 1;
    Str nearest = {"", 0};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t distance = edit_distance(arena, word, candidates[i], limit);
        if (distance && same_but_case(word, candidates[i]))
            return candidates[i];
        if (distance < best && distance < MAX(word.size, candidates[i].size)) {
            best = distance;
            nearest = candidates[i];
        }
    }
    return nearest;
}
