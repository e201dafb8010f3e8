// What the formats of data files share: a cursor over bytes, and diagnostics.
#ifndef PRESK_RUNTIME_DATA_FILE_H
#define PRESK_RUNTIME_DATA_FILE_H

#include "runtime/data.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "data files are copied to and from memory as they are: little-endian");

// Reading front to back. A read beyond the end gives zeros and sets `beyond`.
typedef struct RtCursor {
    const unsigned char *at;
    uint64_t size, offset;
    bool beyond;
} RtCursor;

static inline const unsigned char *rt_take(RtCursor *cursor, uint64_t size) {
    static const unsigned char none[16];
    if (size > cursor->size - cursor->offset) {
        cursor->beyond = true;
        return none;
    }
    const unsigned char *at = cursor->at + cursor->offset;
    cursor->offset += size;
    return at;
}

static inline uint64_t rt_take_number(RtCursor *cursor, uint32_t size) {
    uint64_t value = 0;
    memcpy(&value, rt_take(cursor, size), size);
    return value;
}

// Malformed (E5003); gives false.
bool rt_malformed(const RtPath *path, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// The file's length is not what its header promises (E5004); gives false.
bool rt_wrong_length(const RtPath *path, uint64_t size, uint64_t promised);
// Well formed, but nothing that presk reads (E5005); gives false.
bool rt_unsupported(const RtPath *path, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// It does not fit what is needed (E5006): gives false.
bool rt_does_not_fit(const RtPath *path, const char *needed, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Bytes of a file as they can be shown: at most 60, others than printable ASCII escaped.
Str rt_shown(Arena *arena, const void *at, uint64_t size);

// "[3, 4]".
Str rt_extents_text(Arena *arena, uint32_t rank, const int64_t *extent);
// Elements of these extents times `size` bytes; false: beyond 63 bits, or a negative extent.
bool rt_bytes_of(uint32_t rank, const int64_t *extent, size_t size, uint64_t *bytes);

// Fills in counts and offsets of the leaves and the sample's size; false: sizes beyond 63 bits.
bool rt_lay_out(RtDataType *type);

// Elements from `from` to `to`, rounded once or exact (never from reals to indices).
void rt_convert(DType from_type, const void *from, DType to_type, void *to, uint64_t count);

// file_begin and file_commit with their diagnostic (E5002).
bool rt_begin(const RtPath *path, FileWriter *file);
bool rt_commit(const RtPath *path, FileWriter *file);
// All elements of a tensor in row-major order, converted to `type`.
void rt_put_elements(FileWriter *file, const Tensor *tensor, DType type);

#endif
