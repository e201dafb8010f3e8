// Batches of a stream as arguments of a function: leaf i of a sample goes to the i-th argument that
// is no parameter tree.
#include "runtime/train.h"

#include "runtime/data_file.h"

enum { INPUTS_MAX = 64 };

static bool is_input(const RtBinding *b, uint32_t parameter) {
    return core_type(b->core, core_let(b->fn, parameter)->type)->kind != CORE_PARAMS;
}

// Indices must be below the argument's bound, so the data's bound may not be above it.
static bool check_leaf(RtBinding *b, const RtStream *stream, uint32_t parameter,
                       const RtLeaf *leaf) {
    Shape shape;
    int64_t range;
    if (!rt_bind_shape(b, parameter, &shape, &range))
        return false;
    const RtPath *path = &stream->data->path;
    if (!range || (leaf->bound && leaf->bound <= (uint64_t)range))
        return true;
    Str needed = str_format(path->arena, "idx[%lld]", (long long)range);
    return rt_does_not_fit(path, needed.at, "%s for %s", rt_leaf_text(path->arena, leaf).at,
                           rt_bind_name(b, parameter).at);
}

static bool bind_leaf(RtBinding *b, const RtStream *stream, uint32_t parameter, uint32_t number,
                      int64_t size, DType real) {
    const RtPath *path = &stream->data->path;
    RtLeaf leaf = rt_stream_leaf(stream, number);
    int64_t extent[RANK_MAX] = {size};
    if (leaf.rank + 1 > RANK_MAX)
        return rt_does_not_fit(path, "at most 11 axes", "samples of type %s",
                               rt_leaf_text(path->arena, &leaf).at);
    memcpy(extent + 1, leaf.extent, leaf.rank * sizeof *extent);
    Tensor zeros = tensor_new(b->arena, leaf.type, leaf.rank + 1, extent);
    Str by = str_format(b->arena, "part %u of a batch", number);
    return rt_bind_input(b, rt_bind_name(b, parameter), &zeros, real, by) &&
           check_leaf(b, stream, parameter, &leaf);
}

bool rt_bind_batch(RtBinding *b, const RtStream *stream, int64_t size, DType real) {
    uint32_t inputs = 0;
    for (uint32_t i = 0; i < b->fn->params; i++)
        inputs += is_input(b, i);
    if (inputs != stream->leaves || inputs > INPUTS_MAX)
        return rt_does_not_fit(&stream->data->path,
                               str_format(b->arena, "%u (for %s)", inputs,
                                          name_c(b->core->context->names, b->fn->name))
                                   .at,
                               "samples of %u parts", stream->leaves);
    uint32_t number = 0;
    for (uint32_t i = 0; i < b->fn->params; i++)
        if (is_input(b, i) && !bind_leaf(b, stream, i, number++, size, real))
            return false;
    return true;
}

bool rt_read_batch(RtBinding *b, RtStream *stream, uint64_t epoch, uint64_t first) {
    Tensor tensors[INPUTS_MAX];
    uint32_t count = 0;
    uint64_t size = 0;
    for (uint32_t i = 0; i < b->fn->params; i++)
        if (is_input(b, i)) {
            tensors[count++] = b->arguments[i].tensor;
            size = (uint64_t)b->arguments[i].tensor.shape.extent[0];
        }
    check_that(count == stream->leaves);
    return rt_stream_run(stream, epoch, first, size, tensors);
}
