// Arrays of other tools as samples.
#include "runtime/data_file.h"

static uint64_t largest(const Tensor *array) {
    int64_t count = shape_count(&array->shape);
    uint64_t most = 0, value = 0;
    size_t size = dtype_size(array->type);
    for (int64_t i = 0; i < count; i++) {
        memcpy(&value, (const char *)array->data + (size_t)i * size, size);
        most = MAX(most, value);
    }
    return most;
}

// What a row of the array is by itself.
static bool infer(const RtPath *path, const Tensor *array, RtLeaf *leaf) {
    *leaf = (RtLeaf){.type = F64, .rank = array->shape.rank - 1};
    memcpy(leaf->extent, array->shape.extent + 1, leaf->rank * sizeof *leaf->extent);
    if (dtype_is_real(array->type))
        return true;
    uint64_t most = largest(array);
    if (most == UINT64_MAX)
        return rt_unsupported(path, "the index 2^64 - 1, which has no bound");
    leaf->bound = most + 1;
    leaf->type = dtype_of_bound(leaf->bound);
    return true;
}

static bool infer_all(const RtPath *path, uint32_t count, const Tensor *arrays, RtDataType *type) {
    RtLeaf *leaves = arena_array(path->arena, RtLeaf, count);
    for (uint32_t i = 0; i < count; i++)
        if (!infer(path, &arrays[i], &leaves[i]))
            return false;
    return rt_data_type_of(path, count, leaves, type);
}

static bool check_values(const RtPath *path, const Tensor *array, const RtLeaf *leaf) {
    int64_t count = shape_count(&array->shape);
    size_t size = dtype_size(array->type);
    for (int64_t i = 0; i < count; i++) {
        uint64_t value = 0;
        memcpy(&value, (const char *)array->data + (size_t)i * size, size);
        if (value < leaf->bound)
            continue;
        diag(path->diags, E5007, path->span, path->path,
             str_format(path->arena, "%lld", (long long)(i / leaf->count)).at,
             str_format(path->arena, "%llu", (unsigned long long)value).at,
             str_format(path->arena, "%llu", (unsigned long long)leaf->bound).at);
        return false;
    }
    return true;
}

static bool check_array(const RtPath *path, const Tensor *array, int64_t samples,
                        const RtLeaf *leaf) {
    Str extents = rt_extents_text(path->arena, array->shape.rank, array->shape.extent);
    if (shape_count(&array->shape) / samples != leaf->count)
        return rt_does_not_fit(path, rt_leaf_text(path->arena, leaf).at, "rows of an array %s",
                               extents.at);
    bool real = dtype_is_real(array->type);
    if (leaf->bound > 0 && real)
        return rt_does_not_fit(path, rt_leaf_text(path->arena, leaf).at, "reals (%s)",
                               dtype_text(array->type));
    return leaf->bound == 0 || check_values(path, array, leaf);
}

static bool check_samples(const RtPath *path, uint32_t count, const Tensor *arrays,
                          int64_t *samples) {
    for (uint32_t i = 0; i < count; i++) {
        const Shape *shape = &arrays[i].shape;
        if (shape->rank == 0 || shape_count(shape) == 0)
            return rt_does_not_fit(path, "an axis of samples, none of them empty", "an array %s",
                                   rt_extents_text(path->arena, shape->rank, shape->extent).at);
        if (i > 0 && shape->extent[0] != *samples)
            return rt_does_not_fit(path, str_format(path->arena, "%lld", (long long)*samples).at,
                                   "%lld samples in array %u", (long long)shape->extent[0], i);
        *samples = shape->extent[0];
    }
    return true;
}

static void put_samples(RtDataWriter *writer, uint32_t count, const Tensor *arrays,
                        int64_t samples) {
    Progress progress;
    progress_begin(&progress, "writing samples", false);
    for (int64_t sample = 0; sample < samples; sample++) {
        for (uint32_t i = 0; i < count; i++) {
            const Shape *shape = &arrays[i].shape;
            Tensor row = {.type = arrays[i].type,
                          .shape = shape_row_major(shape->rank - 1, shape->extent + 1)};
            size_t bytes = (size_t)shape_count(&row.shape) * dtype_size(row.type);
            row.data = (char *)arrays[i].data + (size_t)sample * bytes;
            rt_data_put(writer, &row);
        }
        if (sample % 256 == 0)
            progress_update(&progress, (uint64_t)sample, (uint64_t)samples, NULL);
    }
    progress_end(&progress);
}

bool rt_arrays_write(const RtPath *path, uint32_t count, const Tensor *arrays, Str text, DType real,
                     RtDataType *type) {
    int64_t samples = 0;
    if (!check_samples(path, count, arrays, &samples))
        return false;
    if (text.size > 0 ? !rt_data_type(path, text, type) : !infer_all(path, count, arrays, type))
        return false;
    if (type->count != count)
        return rt_does_not_fit(path, type->text.at, "%u arrays", count);
    for (uint32_t i = 0; i < count; i++) {
        if (!check_array(path, &arrays[i], samples, &type->leaves[i]))
            return false;
        if (type->leaves[i].bound == 0)
            type->leaves[i].type = real;
    }
    RtDataWriter writer;
    if (!rt_lay_out(type) || !rt_data_begin(path, type, (uint64_t)samples, &writer))
        return false;
    put_samples(&writer, count, arrays, samples);
    return rt_data_commit(&writer);
}
