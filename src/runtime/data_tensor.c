// Single tensors and checkpoints, over the formats that can hold them.
#include "runtime/data_file.h"

static bool ends_with(const char *path, const char *ending) {
    size_t size = strlen(path), tail = strlen(ending);
    return size >= tail && strcmp(path + size - tail, ending) == 0;
}

// ---- tensors --------------------------------------------------------------------------------

static bool read_sample(const RtPath *path, RtData *data, Tensor *tensor) {
    if (!rt_data_has_layout(data))
        return false;
    if (data->samples != 1 || data->type.count != 1)
        return rt_does_not_fit(path, "one sample of one array", "%llu samples of type %s",
                               (unsigned long long)data->samples, data->type.text.at);
    const RtLeaf *leaf = &data->type.leaves[0];
    *tensor = tensor_new(path->arena, leaf->type, leaf->rank, leaf->extent);
    return rt_data_get(data, 0, 0, tensor);
}

bool rt_tensor_read(const RtPath *path, Tensor *tensor) {
    if (!ends_with(path->path, ".psk.d"))
        return rt_npy_read(path, tensor);
    RtData data;
    if (!rt_data_open(path, &data))
        return false;
    bool read = read_sample(path, &data, tensor);
    rt_data_close(&data);
    return read;
}

static RtLeaf leaf_of(const Tensor *tensor, uint64_t bound) {
    RtLeaf leaf = {.bound = bound, .type = tensor->type, .rank = tensor->shape.rank};
    if (bound > 0)
        leaf.type = dtype_of_bound(bound);
    memcpy(leaf.extent, tensor->shape.extent, sizeof leaf.extent);
    return leaf;
}

bool rt_tensor_write(const RtPath *path, const Tensor *tensor, uint64_t bound) {
    if (ends_with(path->path, ".npy"))
        return rt_npy_write(path, tensor);
    RtLeaf leaf = leaf_of(tensor, bound);
    RtDataType type;
    RtDataWriter writer;
    if (!rt_data_type_of(path, 1, &leaf, &type) || !rt_data_begin(path, &type, 1, &writer))
        return false;
    rt_data_put(&writer, tensor);
    return rt_data_commit(&writer);
}

// ---- checkpoints ----------------------------------------------------------------------------

static RtLeaf *leaves_of(Arena *arena, uint32_t count, const RtNamed *tensors) {
    RtLeaf *leaves = arena_array(arena, RtLeaf, count + 1u);
    for (uint32_t i = 0; i < count; i++) {
        leaves[i] = leaf_of(&tensors[i].tensor, 0);
        leaves[i].path = tensors[i].name;
    }
    return leaves;
}

bool rt_checkpoint_write(const RtPath *path, Str model, uint32_t count, const RtNamed *tensors) {
    if (ends_with(path->path, ".safetensors"))
        return rt_safetensors_write(path, count, tensors);
    RtDataType type = {.text = str_format(path->arena, "params %s", model.at),
                       .model = model,
                       .count = count,
                       .leaves = leaves_of(path->arena, count, tensors)};
    RtDataWriter writer;
    if (!rt_lay_out(&type))
        return rt_malformed(path, "the parameters are larger than 2^63 bytes");
    if (!rt_data_begin(path, &type, 1, &writer))
        return false;
    for (uint32_t i = 0; i < count; i++)
        rt_data_put(&writer, &tensors[i].tensor);
    return rt_data_commit(&writer);
}

enum { SHOWN = 6 }; // names or parts in a message

static bool read_params(const RtPath *path, RtData *data, Str model, uint32_t count,
                        RtNamed *tensors) {
    const char *needed = str_format(path->arena, "params %s", model.at).at;
    if (!str_equal(data->type.model, model))
        return data->type.count > SHOWN
                   ? rt_does_not_fit(path, needed, "%u tensors a sample", data->type.count)
                   : rt_does_not_fit(path, needed, "%s", data->type.text.at);
    if (data->samples != 1)
        return rt_does_not_fit(path, "one", "%llu checkpoints", (unsigned long long)data->samples);
    if (!rt_data_layout(data, count, leaves_of(path->arena, count, tensors)))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!rt_data_get(data, 0, i, &tensors[i].tensor))
            return false;
    return true;
}

// "`w`, `b` and 3 more"
static const char *names_text(Arena *arena, uint32_t count, const RtNamed *tensors) {
    StrBuf buf = {.arena = arena};
    for (uint32_t i = 0; i < MIN(count, (uint32_t)SHOWN); i++)
        buf_format(&buf, "%s`%s`", i ? ", " : "", tensors[i].name.at);
    if (count > SHOWN)
        buf_format(&buf, " and %u more", count - SHOWN);
    return count ? buf_str(&buf).at : "nothing";
}

static bool read_by_name(const RtPath *path, uint32_t found_count, const RtNamed *found,
                         uint32_t count, RtNamed *tensors) {
    Map *map = map_new(path->arena);
    for (uint32_t i = 0; i < found_count; i++)
        *map_slot(map, found[i].name.at, found[i].name.size, NULL) = i;
    for (uint32_t i = 0; i < count; i++) {
        Tensor *to = &tensors[i].tensor;
        const uint32_t *at = map_find(map, tensors[i].name.at, tensors[i].name.size);
        if (!at)
            return rt_does_not_fit(path, str_format(path->arena, "`%s`", tensors[i].name.at).at,
                                   "%s", names_text(path->arena, found_count, found));
        const Tensor *from = &found[*at].tensor;
        if (!shape_same_extents(&from->shape, &to->shape))
            return rt_does_not_fit(
                path, rt_extents_text(path->arena, to->shape.rank, to->shape.extent).at,
                "`%s` with extents %s", tensors[i].name.at,
                rt_extents_text(path->arena, from->shape.rank, from->shape.extent).at);
        rt_convert(from->type, from->data, to->type, to->data, (uint64_t)shape_count(&from->shape));
    }
    return found_count == count || rt_does_not_fit(path, str_format(path->arena, "%u", count).at,
                                                   "%u tensors", found_count);
}

bool rt_checkpoint_read(const RtPath *path, Str model, uint32_t count, RtNamed *tensors) {
    if (ends_with(path->path, ".safetensors")) {
        uint32_t found_count;
        RtNamed *found;
        return rt_safetensors_read(path, &found_count, &found) &&
               read_by_name(path, found_count, found, count, tensors);
    }
    RtData data;
    if (!rt_data_open(path, &data))
        return false;
    bool read = read_params(path, &data, model, count, tensors);
    rt_data_close(&data);
    return read;
}
