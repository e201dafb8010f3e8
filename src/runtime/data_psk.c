// The .psk.d format: see data.h.
#include "runtime/data_file.h"

enum { VERSION_1 = 1, VERSION_2 = 2 };
static const char magic[4] = {'P', 'S', 'K', 'D'};

// The code of a leaf's encoding in version 2.
static const uint8_t encoding_of[DTYPE_COUNT] = {[F64] = 0, [F32] = 1, [BF16] = 2};
enum { ENCODINGS = 3 };
_Static_assert(F64 == 0 && F32 == 1 && BF16 == 2, "the codes are the types' numbers");

// ---- reading --------------------------------------------------------------------------------

static bool read_header(RtData *data, RtCursor *cursor, Str *type) {
    const RtPath *path = &data->path;
    if (memcmp(rt_take(cursor, sizeof magic), magic, sizeof magic) != 0)
        return rt_malformed(path, "it does not begin with `PSKD`");
    data->version = (uint16_t)rt_take_number(cursor, 2);
    if (!cursor->beyond && data->version != VERSION_1 && data->version != VERSION_2)
        return rt_unsupported(path, "version %u of the format", data->version);
    uint32_t size = (uint32_t)rt_take_number(cursor, 4);
    const void *text = rt_take(cursor, size);
    if (!cursor->beyond)
        *type = str_copy(path->arena, text, size);
    data->samples = rt_take_number(cursor, 8);
    if (data->version == VERSION_2) {
        data->encoding_count = (uint32_t)rt_take_number(cursor, 4);
        data->encodings = rt_take(cursor, data->encoding_count);
    }
    return !cursor->beyond || rt_malformed(path, "its header is cut off");
}

// Gives each leaf its encoding and lays the sample out.
static bool apply_encodings(RtData *data) {
    const RtPath *path = &data->path;
    RtDataType *type = &data->type;
    if (data->version == VERSION_2 && data->encoding_count != type->count)
        return rt_malformed(path, "it states encodings for %u leaves, and its type has %u",
                            data->encoding_count, type->count);
    for (uint32_t i = 0; i < type->count && data->version == VERSION_2; i++) {
        uint8_t code = data->encodings[i];
        if (code >= ENCODINGS || (type->leaves[i].bound > 0 && code != 0))
            return rt_malformed(path, "leaf %u has the unknown encoding %u", i, code);
        if (type->leaves[i].bound == 0)
            type->leaves[i].type = (DType)code;
    }
    return rt_lay_out(type) || rt_malformed(path, "its samples are larger than 2^63 bytes");
}

static bool check_length(const RtData *data) {
    uint64_t header = data->bytes.size - data->data_size, promised;
    if (__builtin_mul_overflow(data->samples, data->type.bytes, &promised) ||
        __builtin_add_overflow(promised, header, &promised) || promised > INT64_MAX)
        return rt_malformed(&data->path, "it promises more than 2^63 bytes");
    return promised == data->bytes.size || rt_wrong_length(&data->path, data->bytes.size, promised);
}

static bool open_bytes(RtData *data) {
    RtCursor cursor = {.at = data->bytes.at, .size = data->bytes.size};
    Str text;
    if (!read_header(data, &cursor, &text) || !rt_data_type(&data->path, text, &data->type))
        return false;
    data->first = data->bytes.at + cursor.offset;
    data->data_size = data->bytes.size - cursor.offset;
    if (data->type.model.size > 0)
        return true; // the rest when the leaves are known
    data->laid_out = true;
    return apply_encodings(data) && check_length(data);
}

bool rt_data_open(const RtPath *path, RtData *data) {
    *data = (RtData){.path = *path};
    if (!rt_bytes_open(path, &data->bytes))
        return false;
    if (open_bytes(data))
        return true;
    rt_data_close(data);
    return false;
}

void rt_data_close(RtData *data) {
    rt_bytes_close(&data->bytes);
}

bool rt_data_layout(RtData *data, uint32_t count, const RtLeaf *leaves) {
    check_that(data->type.model.size > 0);
    data->laid_out = true;
    data->type.count = count;
    data->type.leaves = arena_copy(data->path.arena, leaves, count * sizeof *leaves);
    for (uint32_t i = 0; i < count; i++) {
        data->type.leaves[i].type = F64; // unless version 2 says otherwise
        data->type.leaves[i].bound = 0;
    }
    if (apply_encodings(data) && check_length(data))
        return true;
    // The file names its model and not the model's sizes.
    const Diags *diags = data->path.diags;
    diag_help(diags->all.at[diags->all.count - 1],
              "%s in this program has %u parameter tensors; was the file written under other "
              "--const values?",
              data->type.model.at, count);
    return false;
}

bool rt_data_has_layout(const RtData *data) {
    if (data->laid_out)
        return true;
    Diag *made = diag(data->path.diags, E9001, data->path.span, data->type.text.at,
                      " needs the program that declares it");
    diag_note(made, "%s is a checkpoint; it states no shapes", data->path.path);
    return false;
}

static bool check_indices(const RtData *data, const RtLeaf *leaf, uint64_t sample,
                          const unsigned char *at) {
    size_t size = dtype_size(leaf->type);
    if (size < 8 && leaf->bound >= UINT64_C(1) << 8 * size)
        return true; // bytes below 256, say: every value there is
    for (int64_t i = 0; i < leaf->count; i++) {
        uint64_t value = 0;
        memcpy(&value, at + (size_t)i * size, size);
        if (value < leaf->bound)
            continue;
        Arena *arena = data->path.arena;
        diag(data->path.diags, E5007, data->path.span, data->path.path,
             str_format(arena, "%llu", (unsigned long long)sample).at,
             str_format(arena, "%llu", (unsigned long long)value).at,
             str_format(arena, "%llu", (unsigned long long)leaf->bound).at);
        return false;
    }
    return true;
}

bool rt_data_get_run(const RtData *data, uint64_t sample, uint64_t count, uint32_t leaf,
                     Tensor *into) {
    check_that(leaf < data->type.count && sample <= data->samples &&
               count <= data->samples - sample);
    const RtLeaf *l = &data->type.leaves[leaf];
    check_that(shape_is_contiguous(&into->shape) &&
               shape_count(&into->shape) == (int64_t)count * l->count);
    size_t step = (size_t)l->count * dtype_size(into->type);
    for (uint64_t i = 0; i < count; i++) {
        const unsigned char *at = data->first + (sample + i) * data->type.bytes + l->offset;
        if (l->bound > 0 && !check_indices(data, l, sample + i, at))
            return false;
        rt_convert(l->type, at, into->type, (char *)into->data + i * step, (uint64_t)l->count);
    }
    return true;
}

bool rt_data_get(const RtData *data, uint64_t sample, uint32_t leaf, Tensor *into) {
    return rt_data_get_run(data, sample, 1, leaf, into);
}

// ---- writing --------------------------------------------------------------------------------

static void put_number(FileWriter *file, uint64_t value, uint32_t size) {
    file_put(file, &value, size);
}

bool rt_data_begin(const RtPath *path, const RtDataType *type, uint64_t samples,
                   RtDataWriter *writer) {
    *writer = (RtDataWriter){.path = *path, .type = *type, .samples = samples};
    if (type->count == 0)
        writer->samples = 0; // nothing to come
    if (!rt_begin(path, &writer->file))
        return false;
    bool narrow = false;
    for (uint32_t i = 0; i < type->count; i++)
        narrow = narrow || encoding_of[type->leaves[i].type] != 0;
    FileWriter *file = &writer->file;
    file_put(file, magic, sizeof magic);
    put_number(file, narrow ? VERSION_2 : VERSION_1, 2);
    put_number(file, type->text.size, 4);
    file_put(file, type->text.at, type->text.size);
    put_number(file, samples, 8);
    if (!narrow)
        return true;
    put_number(file, type->count, 4);
    for (uint32_t i = 0; i < type->count; i++)
        file_put(file, &encoding_of[type->leaves[i].type], 1);
    return true;
}

static const RtLeaf *next_leaf(RtDataWriter *writer) {
    check_that(writer->samples > 0);
    const RtLeaf *leaf = &writer->type.leaves[writer->leaf++];
    if (writer->leaf == writer->type.count) {
        writer->leaf = 0;
        writer->samples--;
    }
    return leaf;
}

void rt_data_put_bytes(RtDataWriter *writer, const void *at) {
    const RtLeaf *leaf = next_leaf(writer);
    file_put(&writer->file, at, (size_t)leaf->count * dtype_size(leaf->type));
}

void rt_data_put(RtDataWriter *writer, const Tensor *tensor) {
    const RtLeaf *leaf = next_leaf(writer);
    check_that(shape_count(&tensor->shape) == leaf->count);
    rt_put_elements(&writer->file, tensor, leaf->type);
}

bool rt_data_commit(RtDataWriter *writer) {
    check_that(writer->samples == 0);
    return rt_commit(&writer->path, &writer->file);
}

void rt_data_abandon(RtDataWriter *writer) {
    file_abandon(&writer->file);
}
