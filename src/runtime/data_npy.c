// NumPy's array files: magic, version, header length, a Python dictionary literal, then the
// elements. (NumPy Enhancement Proposal 1 and the format's own description.)
#include "runtime/data_file.h"

static const char magic[6] = {(char)0x93, 'N', 'U', 'M', 'P', 'Y'};

typedef enum Signedness { PLAIN, SIGNED, TRUTH } Signedness;

typedef struct NpyType {
    const char *text; // kind and size, without the byte order
    DType type;
    Signedness sign;
} NpyType;

static const NpyType types[] = {
    {"f8", F64, PLAIN},  {"f4", F32, PLAIN},  {"u1", U8, PLAIN},  {"u2", U16, PLAIN},
    {"u4", U32, PLAIN},  {"u8", U64, PLAIN},  {"i1", U8, SIGNED}, {"i2", U16, SIGNED},
    {"i4", U32, SIGNED}, {"i8", U64, SIGNED}, {"b1", U8, TRUTH},
};

typedef struct Header {
    const NpyType *type;
    uint32_t rank;
    int64_t extent[RANK_MAX];
    bool has_type, has_order, has_shape;
} Header;

typedef struct Parser {
    const RtPath *path;
    const char *at, *end;
} Parser;

// ---- the dictionary -------------------------------------------------------------------------

static void skip_space(Parser *parser) {
    while (parser->at < parser->end && (*parser->at == ' ' || *parser->at == '\n'))
        parser->at++;
}

static bool take(Parser *parser, const char *mark) {
    skip_space(parser);
    size_t size = strlen(mark);
    if ((size_t)(parser->end - parser->at) < size || memcmp(parser->at, mark, size) != 0)
        return false;
    parser->at += size;
    return true;
}

// 'text' or "text"; no escapes occur in these headers.
static bool take_string(Parser *parser, Str *text) {
    skip_space(parser);
    if (parser->at == parser->end || (*parser->at != '\'' && *parser->at != '"'))
        return false;
    char quote = *parser->at++;
    const char *close = memchr(parser->at, quote, (size_t)(parser->end - parser->at));
    if (!close)
        return false;
    *text = str_copy(parser->path->arena, parser->at, (size_t)(close - parser->at));
    parser->at = close + 1;
    return true;
}

static bool take_shape(Parser *parser, Header *header) {
    if (!take(parser, "("))
        return false;
    while (!take(parser, ")")) {
        skip_space(parser);
        int64_t value = 0;
        const char *begin = parser->at;
        for (; parser->at < parser->end && *parser->at >= '0' && *parser->at <= '9'; parser->at++)
            if (__builtin_mul_overflow(value, 10, &value) ||
                __builtin_add_overflow(value, *parser->at - '0', &value))
                return false;
        if (parser->at == begin || header->rank == RANK_MAX)
            return false;
        header->extent[header->rank++] = value;
        if (!take(parser, ",")) {
            if (!take(parser, ")"))
                return false;
            break;
        }
    }
    header->has_shape = true;
    return true;
}

static bool take_type(Parser *parser, Header *header) {
    Str text;
    if (!take_string(parser, &text))
        return rt_unsupported(parser->path, "records or an element type of several fields");
    char order = text.size > 0 ? text.at[0] : 0;
    bool has_order = order == '<' || order == '|' || order == '=' || order == '>';
    if (order == '>' && text.size == 3 && text.at[2] > '1')
        return rt_unsupported(parser->path, "big-endian elements (`%s`)",
                              rt_shown(parser->path->arena, text.at, text.size).at);
    for (uint32_t i = 0; i < COUNT_OF(types); i++)
        if (has_order && strcmp(text.at + 1, types[i].text) == 0)
            header->type = &types[i];
    if (!header->type)
        return rt_unsupported(parser->path, "elements of type `%s`",
                              rt_shown(parser->path->arena, text.at, text.size).at);
    header->has_type = true;
    return true;
}

// One `'key': value`; a refusal that has been reported clears *clear.
static bool take_item(Parser *parser, Header *header, bool *clear) {
    Str key;
    if (!take_string(parser, &key) || !take(parser, ":"))
        return false;
    if (str_is(key, "shape") && !header->has_shape)
        return take_shape(parser, header);
    if (str_is(key, "descr") && !header->has_type)
        return *clear = take_type(parser, header);
    if (!str_is(key, "fortran_order") || header->has_order)
        return false;
    header->has_order = true;
    if (take(parser, "False"))
        return true;
    if (take(parser, "True"))
        *clear = rt_unsupported(parser->path, "an array in Fortran order");
    return false;
}

static bool read_dictionary(const RtPath *path, const char *text, uint64_t size, Header *header) {
    Parser parser = {path, text, text + size};
    bool clear = true, whole = take(&parser, "{");
    while (whole && !take(&parser, "}")) {
        whole = take_item(&parser, header, &clear);
        if (whole && !take(&parser, ",")) {
            whole = take(&parser, "}");
            break;
        }
    }
    skip_space(&parser);
    whole = whole && parser.at == parser.end && header->has_type && header->has_order &&
            header->has_shape;
    if (!whole && clear)
        return rt_malformed(path, "its header is not `descr`, `fortran_order` and `shape`: %s",
                            rt_shown(path->arena, text, size).at);
    return whole && clear;
}

// ---- elements -------------------------------------------------------------------------------

static int64_t signed_element(const void *at, size_t size) {
    uint64_t bits = 0;
    memcpy(&bits, at, size);
    uint32_t shift = 64 - 8 * (uint32_t)size;
    return (int64_t)(bits << shift) >> shift;
}

// Signed integers become unsigned ones of their size, or doubles where one is negative.
static bool read_signed(const RtPath *path, const Header *header, const unsigned char *at,
                        Tensor *tensor) {
    int64_t count = shape_count(&tensor->shape);
    size_t size = dtype_size(header->type->type);
    bool negative = false;
    for (int64_t i = 0; i < count; i++)
        negative = negative || signed_element(at + (size_t)i * size, size) < 0;
    if (!negative) {
        memcpy(tensor->data, at, (size_t)count * size);
        return true;
    }
    *tensor = tensor_new(path->arena, F64, header->rank, header->extent);
    for (int64_t i = 0; i < count; i++) {
        int64_t value = signed_element(at + (size_t)i * size, size);
        if (value > INT64_C(1) << 53 || value < -(INT64_C(1) << 53))
            return rt_unsupported(path, "the integer %lld beside negative ones: no f64 is equal",
                                  (long long)value);
        dtype_set(F64, tensor->data, i, (double)value);
    }
    return true;
}

static bool read_elements(const RtPath *path, const Header *header, const unsigned char *at,
                          Tensor *tensor) {
    *tensor = tensor_new(path->arena, header->type->type, header->rank, header->extent);
    if (header->type->sign == SIGNED)
        return read_signed(path, header, at, tensor);
    int64_t count = shape_count(&tensor->shape);
    for (int64_t i = 0; i < count && header->type->sign == TRUTH; i++)
        if (at[i] > 1)
            return rt_malformed(path, "element %lld is neither true nor false", (long long)i);
    memcpy(tensor->data, at, (size_t)count * dtype_size(tensor->type));
    return true;
}

static bool read_bytes(const RtPath *path, const RtBytes *bytes, Tensor *tensor) {
    RtCursor cursor = {.at = bytes->at, .size = bytes->size};
    if (memcmp(rt_take(&cursor, sizeof magic), magic, sizeof magic) != 0)
        return rt_malformed(path, "it does not begin with `\\x93NUMPY`");
    uint64_t version = rt_take_number(&cursor, 1), minor = rt_take_number(&cursor, 1);
    if (!cursor.beyond && (version < 1 || version > 3 || minor != 0))
        return rt_unsupported(path, "version %u.%u of NumPy's format", (unsigned)version,
                              (unsigned)minor);
    uint64_t size = rt_take_number(&cursor, version == 1 ? 2 : 4), promised;
    const char *text = (const char *)rt_take(&cursor, size);
    if (cursor.beyond)
        return rt_malformed(path, "its header is cut off");
    Header header = {0};
    if (!read_dictionary(path, text, size, &header))
        return false;
    if (!rt_bytes_of(header.rank, header.extent, dtype_size(header.type->type), &promised))
        return rt_malformed(path, "it promises more than 2^63 bytes");
    promised += cursor.offset; // below 2^64
    if (promised != bytes->size)
        return rt_wrong_length(path, bytes->size, promised);
    return read_elements(path, &header, bytes->at + cursor.offset, tensor);
}

bool rt_npy_read(const RtPath *path, Tensor *tensor) {
    RtBytes bytes;
    if (!rt_bytes_open(path, &bytes))
        return false;
    bool read = read_bytes(path, &bytes, tensor);
    rt_bytes_close(&bytes);
    return read;
}

// ---- writing --------------------------------------------------------------------------------

static Str header_text(Arena *arena, const Tensor *tensor) {
    enum { ALIGNMENT = 64, BEFORE = 10 };
    DType type = tensor->type == BF16 ? F32 : tensor->type;
    const char *kind = NULL;
    for (uint32_t i = 0; i < COUNT_OF(types) && !kind; i++)
        kind = types[i].type == type ? types[i].text : NULL;
    StrBuf buf = {.arena = arena};
    buf_format(&buf, "{'descr': '%s%s', 'fortran_order': False, 'shape': (",
               dtype_size(type) == 1 ? "|" : "<", kind);
    for (uint32_t i = 0; i < tensor->shape.rank; i++)
        buf_format(&buf, "%s%lld%s", i ? ", " : "", (long long)tensor->shape.extent[i],
                   tensor->shape.rank == 1 ? "," : "");
    buf_text(&buf, "), }");
    while ((buf.size + 1 + BEFORE) % ALIGNMENT != 0)
        buf_char(&buf, ' ');
    buf_char(&buf, '\n');
    return buf_str(&buf);
}

bool rt_npy_write(const RtPath *path, const Tensor *tensor) {
    FileWriter file;
    if (!rt_begin(path, &file))
        return false;
    Str text = header_text(path->arena, tensor);
    DType type = tensor->type == BF16 ? F32 : tensor->type;
    uint16_t size = (uint16_t)text.size;
    file_put(&file, magic, sizeof magic);
    file_put(&file, "\1\0", 2);
    file_put(&file, &size, sizeof size);
    file_put(&file, text.at, text.size);
    rt_put_elements(&file, tensor, type);
    return rt_commit(path, &file);
}
