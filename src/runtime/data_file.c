// Diagnostics of data files and the conversions of their elements.
#include "runtime/data_file.h"

#define FORMATTED(arena, text)                                                                     \
    Str text;                                                                                      \
    do {                                                                                           \
        va_list arguments;                                                                         \
        va_start(arguments, format);                                                               \
        text = str_format_v(arena, format, arguments);                                             \
        va_end(arguments);                                                                         \
    } while (0)

bool rt_malformed(const RtPath *path, const char *format, ...) {
    FORMATTED(path->arena, text);
    diag(path->diags, E5003, path->span, path->path, text.at);
    return false;
}

bool rt_wrong_length(const RtPath *path, uint64_t size, uint64_t promised) {
    Str is = str_format(path->arena, "%llu", (unsigned long long)size);
    Str should = str_format(path->arena, "%llu", (unsigned long long)promised);
    Diag *made = diag(path->diags, E5004, path->span, path->path, is.at, should.at);
    diag_note(made, size < promised ? "the file is cut off" : "something follows the data");
    return false;
}

bool rt_unsupported(const RtPath *path, const char *format, ...) {
    FORMATTED(path->arena, text);
    diag(path->diags, E5005, path->span, path->path, text.at);
    return false;
}

bool rt_does_not_fit(const RtPath *path, const char *needed, const char *format, ...) {
    FORMATTED(path->arena, text);
    diag(path->diags, E5006, path->span, path->path, text.at, needed);
    return false;
}

Str rt_shown(Arena *arena, const void *at, uint64_t size) {
    enum { SHOWN = 60 };
    StrBuf buf = {.arena = arena};
    const unsigned char *bytes = at;
    for (uint64_t i = 0; i < MIN(size, (uint64_t)SHOWN); i++) {
        if (bytes[i] >= ' ' && bytes[i] < 0x7F)
            buf_char(&buf, (char)bytes[i]);
        else
            buf_format(&buf, "\\x%02x", bytes[i]);
    }
    if (size > SHOWN)
        buf_text(&buf, "…");
    return buf_str(&buf);
}

Str rt_extents_text(Arena *arena, uint32_t rank, const int64_t *extent) {
    StrBuf buf = {.arena = arena};
    buf_char(&buf, '[');
    for (uint32_t i = 0; i < rank; i++)
        buf_format(&buf, "%s%lld", i ? ", " : "", (long long)extent[i]);
    buf_char(&buf, ']');
    return buf_str(&buf);
}

bool rt_bytes_of(uint32_t rank, const int64_t *extent, size_t size, uint64_t *bytes) {
    Shape shape = {.rank = rank};
    memcpy(shape.extent, extent, rank * sizeof *extent);
    int64_t count = shape_count(&shape), total;
    if (count < 0 || __builtin_mul_overflow(count, (int64_t)size, &total))
        return false;
    *bytes = (uint64_t)total;
    return true;
}

// Elements of a file may lie at any address, so they are copied before they are read.
void rt_convert(DType from_type, const void *from, DType to_type, void *to, uint64_t count) {
    size_t size = dtype_size(from_type);
    if (from_type == to_type) {
        memcpy(to, from, count * size);
        return;
    }
    check_that(dtype_is_real(to_type) || !dtype_is_real(from_type));
    for (uint64_t i = 0; i < count; i++) {
        uint64_t element = 0;
        memcpy(&element, (const char *)from + i * size, size);
        if (dtype_is_real(from_type))
            dtype_set(to_type, to, (int64_t)i, dtype_get(from_type, &element, 0));
        else if (dtype_is_real(to_type))
            dtype_set(to_type, to, (int64_t)i, (double)element);
        else
            memcpy((char *)to + i * dtype_size(to_type), &element, dtype_size(to_type));
    }
}

bool rt_begin(const RtPath *path, FileWriter *file) {
    Str error;
    if (file_begin(path->arena, path->path, file, &error))
        return true;
    diag(path->diags, E5002, path->span, path->path, error.at);
    return false;
}

bool rt_commit(const RtPath *path, FileWriter *file) {
    Str error;
    if (file_commit(path->arena, file, &error))
        return true;
    diag(path->diags, E5002, path->span, path->path, error.at);
    return false;
}

// Elements `first` … of a tensor with gaps, side by side.
static void gather(const Tensor *tensor, int64_t first, int64_t count, char *to) {
    int64_t size = (int64_t)dtype_size(tensor->type);
    for (int64_t i = 0; i < count; i++)
        memcpy(to + i * size,
               (const char *)tensor->data + shape_offset(&tensor->shape, first + i) * size,
               (size_t)size);
}

void rt_put_elements(FileWriter *file, const Tensor *tensor, DType type) {
    enum { BLOCK = 512 };
    uint64_t gathered[BLOCK], converted[BLOCK]; // an element has at most eight bytes
    int64_t total = shape_count(&tensor->shape);
    bool dense = shape_is_contiguous(&tensor->shape);
    for (int64_t i = 0; i < total; i += BLOCK) {
        int64_t count = MIN(total - i, (int64_t)BLOCK);
        const char *from = (const char *)tensor->data + i * (int64_t)dtype_size(tensor->type);
        if (!dense) {
            gather(tensor, i, count, (char *)gathered);
            from = (const char *)gathered;
        }
        rt_convert(tensor->type, from, type, converted, (uint64_t)count);
        file_put(file, converted, (size_t)count * dtype_size(type));
    }
}
