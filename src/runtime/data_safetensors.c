// The safetensors format: header length u64, a JSON object that gives each tensor's dtype, shape
// and place, then the data without holes. "__metadata__" is allowed and ignored.
#include "runtime/data_file.h"

#include <jansson.h>
#include <stdlib.h>

enum { HEADER_MAX = 100 * 1000 * 1000 }; // as the format's reference reader has it

typedef struct Kind {
    const char *text;
    DType type;
} Kind;

// By type: F64, F32 and BF16 are the first three.
static const Kind kinds[] = {{"F64", F64}, {"F32", F32}, {"BF16", BF16}};

typedef struct Entry {
    Str name;
    DType type;
    uint32_t rank;
    int64_t extent[RANK_MAX];
    uint64_t begin, end; // in the data
} Entry;

// ---- reading --------------------------------------------------------------------------------

static bool natural(const json_t *value, int64_t *number) {
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *number = json_integer_value(value);
    return true;
}

static bool read_dtype(const RtPath *path, const char *name, const json_t *value, DType *type) {
    const char *text = json_string_value(value);
    if (!text)
        return rt_malformed(path, "`%s` has no dtype", name);
    for (uint32_t i = 0; i < COUNT_OF(kinds); i++)
        if (strcmp(kinds[i].text, text) == 0) {
            *type = kinds[i].type;
            return true;
        }
    return rt_unsupported(path, "`%s` with elements of type `%s`", name,
                          rt_shown(path->arena, text, strlen(text)).at);
}

static bool read_entry(const RtPath *path, const char *name, json_t *value, Entry *entry) {
    *entry = (Entry){.name = str_copy(path->arena, name, strlen(name))};
    if (!json_is_object(value))
        return rt_malformed(path, "`%s` is not described by an object", name);
    if (!read_dtype(path, name, json_object_get(value, "dtype"), &entry->type))
        return false;
    const json_t *shape = json_object_get(value, "shape");
    const json_t *offsets = json_object_get(value, "data_offsets");
    if (!json_is_array(shape) || !json_is_array(offsets) || json_array_size(offsets) != 2 ||
        json_object_size(value) != 3)
        return rt_malformed(path, "`%s` is not described by dtype, shape and data_offsets", name);
    if (json_array_size(shape) > RANK_MAX)
        return rt_unsupported(path, "`%s` with more than %d axes", name, RANK_MAX);
    entry->rank = (uint32_t)json_array_size(shape);
    for (uint32_t i = 0; i < entry->rank; i++)
        if (!natural(json_array_get(shape, i), &entry->extent[i]))
            return rt_malformed(path, "the shape of `%s` is not a list of lengths", name);
    int64_t begin, end;
    uint64_t bytes;
    if (!natural(json_array_get(offsets, 0), &begin) ||
        !natural(json_array_get(offsets, 1), &end) ||
        !rt_bytes_of(entry->rank, entry->extent, dtype_size(entry->type), &bytes) || begin > end ||
        (uint64_t)(end - begin) != bytes)
        return rt_malformed(path, "the place of `%s` does not have the size of its shape", name);
    entry->begin = (uint64_t)begin;
    entry->end = (uint64_t)end;
    return true;
}

static int compare_places(const void *a, const void *b) {
    const Entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return str_compare(x->name, y->name);
}

// The data is covered from its first byte to its last, without overlap.
static bool check_places(const RtPath *path, uint32_t count, Entry *entries, uint64_t size,
                         uint64_t before) {
    if (count > 0)
        qsort(entries, count, sizeof *entries, compare_places);
    uint64_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (entries[i].begin != at)
            return rt_malformed(path, "the place of `%s` leaves a hole or overlaps another",
                                entries[i].name.at);
        at = entries[i].end;
    }
    return at == size || rt_wrong_length(path, before + size, before + at);
}

static bool read_entries(const RtPath *path, json_t *header, uint32_t *count, Entry *entries) {
    const char *name;
    json_t *value;
    *count = 0;
    json_object_foreach(header, name, value) {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        if (!read_entry(path, name, value, &entries[(*count)++]))
            return false;
    }
    return true;
}

static bool read_object(const RtPath *path, json_t *header, RtCursor data, uint32_t *count,
                        RtNamed **tensors) {
    Entry *entries = arena_array(path->arena, Entry, json_object_size(header) + 1);
    uint64_t size = data.size - data.offset;
    if (!read_entries(path, header, count, entries) ||
        !check_places(path, *count, entries, size, data.offset))
        return false;
    *tensors = arena_array(path->arena, RtNamed, *count + 1u);
    for (uint32_t i = 0; i < *count; i++) {
        const Entry *entry = &entries[i];
        Tensor tensor = tensor_new(path->arena, entry->type, entry->rank, entry->extent);
        memcpy(tensor.data, data.at + data.offset + entry->begin, entry->end - entry->begin);
        (*tensors)[i] = (RtNamed){entry->name, tensor};
    }
    return true;
}

static bool read_bytes(const RtPath *path, const RtBytes *bytes, uint32_t *count,
                       RtNamed **tensors) {
    RtCursor cursor = {.at = bytes->at, .size = bytes->size};
    uint64_t size = rt_take_number(&cursor, 8);
    const char *text = (const char *)rt_take(&cursor, size);
    if (cursor.beyond || size > HEADER_MAX)
        return rt_malformed(path, "its header is cut off");
    json_error_t error;
    json_t *header = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    bool read =
        json_is_object(header)
            ? read_object(path, header, cursor, count, tensors)
            : rt_malformed(path, "its header is not a JSON object: %s",
                           header ? "it is another value"
                                  : rt_shown(path->arena, error.text, strlen(error.text)).at);
    json_decref(header);
    return read;
}

bool rt_safetensors_read(const RtPath *path, uint32_t *count, RtNamed **tensors) {
    RtBytes bytes;
    if (!rt_bytes_open(path, &bytes))
        return false;
    bool read = read_bytes(path, &bytes, count, tensors);
    rt_bytes_close(&bytes);
    return read;
}

// ---- writing --------------------------------------------------------------------------------

static void add_quoted(StrBuf *buf, Str text) {
    buf_char(buf, '"');
    for (uint32_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c == '"' || c == '\\')
            buf_format(buf, "\\%c", c);
        else if (c < 0x20)
            buf_format(buf, "\\u%04x", c);
        else
            buf_char(buf, (char)c);
    }
    buf_char(buf, '"');
}

// Spaces at its end bring the data to a multiple of 8.
static Str header_text(Arena *arena, uint32_t count, const RtNamed *tensors) {
    StrBuf buf = {.arena = arena};
    uint64_t at = 0;
    buf_char(&buf, '{');
    for (uint32_t i = 0; i < count; i++) {
        const Tensor *tensor = &tensors[i].tensor;
        check_that(dtype_is_real(tensor->type));
        uint64_t end = at + (uint64_t)shape_count(&tensor->shape) * dtype_size(tensor->type);
        buf_text(&buf, i ? "," : "");
        add_quoted(&buf, tensors[i].name);
        buf_format(&buf, ":{\"dtype\":\"%s\",\"shape\":[", kinds[tensor->type].text);
        for (uint32_t k = 0; k < tensor->shape.rank; k++)
            buf_format(&buf, "%s%lld", k ? "," : "", (long long)tensor->shape.extent[k]);
        buf_format(&buf, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at,
                   (unsigned long long)end);
        at = end;
    }
    buf_char(&buf, '}');
    while (buf.size % 8 != 0)
        buf_char(&buf, ' ');
    return buf_str(&buf);
}

bool rt_safetensors_write(const RtPath *path, uint32_t count, const RtNamed *tensors) {
    FileWriter file;
    if (!rt_begin(path, &file))
        return false;
    Str text = header_text(path->arena, count, tensors);
    uint64_t size = text.size;
    file_put(&file, &size, sizeof size);
    file_put(&file, text.at, text.size);
    for (uint32_t i = 0; i < count; i++)
        rt_put_elements(&file, &tensors[i].tensor, tensors[i].tensor.type);
    return rt_commit(path, &file);
}
