// Streams: which samples a batch holds is arithmetic on indices; samples are read where they lie.
#include "runtime/data_file.h"
#include "runtime/random.h"

void rt_permutation(uint64_t seed, uint64_t epoch, uint64_t count, uint64_t *order) {
    uint64_t stream = rt_random_stream(STR("shuffle")) + epoch;
    for (uint64_t i = 0; i < count; i++)
        order[i] = i;
    for (uint64_t i = count; i-- > 1;) {
        uint64_t other = rt_random_index(seed, stream, i, i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

static bool too_few(const RtData *data, const char *why) {
    const RtPath *path = &data->path;
    Str held = str_format(path->arena, "%llu samples of type %s", (unsigned long long)data->samples,
                          data->type.text.at);
    diag(path->diags, E5008, path->span, path->path, held.at, why);
    return false;
}

bool rt_stream_new(RtData *data, const RtStreamSpec *spec, RtStream *stream) {
    check_that(spec->batch >= 1 && spec->window >= 0);
    if (!rt_data_has_layout(data))
        return false;
    *stream = (RtStream){
        .data = data, .spec = *spec, .leaves = data->type.count, .samples = data->samples};
    if (spec->window > 0) {
        const RtLeaf *leaf = &data->type.leaves[0];
        if (data->type.count != 1 || leaf->bound == 0 || leaf->rank != 0)
            return too_few(data, "windows need one index a sample, as `presk data text` writes");
        stream->leaves = 2;
        stream->samples = data->samples == 0 ? 0 : (data->samples - 1) / (uint64_t)spec->window;
    }
    stream->batches = stream->samples / (uint64_t)spec->batch;
    if (stream->batches == 0)
        return too_few(data, str_format(data->path.arena,
                                        "that is %llu after windows, and a batch takes %lld",
                                        (unsigned long long)stream->samples, (long long)spec->batch)
                                 .at);
    if (spec->take >= 0 && stream->batches > (uint64_t)spec->take)
        stream->batches = (uint64_t)spec->take;
    return true;
}

RtLeaf rt_stream_leaf(const RtStream *stream, uint32_t leaf) {
    check_that(leaf < stream->leaves);
    if (stream->spec.window == 0)
        return stream->data->type.leaves[leaf];
    RtLeaf window = stream->data->type.leaves[0];
    window.rank = 1;
    window.extent[0] = window.count = stream->spec.window;
    return window;
}

// The place of a batch's sample in the file (of a window: its first token).
static uint64_t sample_at(const RtStream *stream, uint64_t index) {
    return stream->order ? stream->order[index] : index;
}

static void shuffle(RtStream *stream, uint64_t epoch) {
    if (!stream->spec.shuffle || (stream->order && stream->epoch == epoch))
        return;
    if (!stream->order)
        stream->order = arena_array(stream->data->path.arena, uint64_t, stream->samples);
    rt_permutation(stream->spec.seed, epoch, stream->samples, stream->order);
    stream->epoch = epoch;
}

// The part of a batch's tensor that one sample fills.
static Tensor row(const Tensor *batch, uint64_t index, const RtLeaf *leaf) {
    Tensor one = {.type = batch->type, .shape = shape_row_major(leaf->rank, leaf->extent)};
    size_t bytes = (size_t)leaf->count * dtype_size(batch->type);
    one.data = (char *)batch->data + index * bytes;
    return one;
}

bool rt_stream_run(RtStream *stream, uint64_t epoch, uint64_t first, uint64_t count,
                   Tensor *tensors) {
    check_that(epoch >= 1 && first <= stream->samples && count <= stream->samples - first);
    shuffle(stream, epoch);
    uint64_t window = (uint64_t)stream->spec.window;
    for (uint32_t i = 0; i < stream->leaves; i++) {
        RtLeaf leaf = rt_stream_leaf(stream, i);
        check_that(shape_is_contiguous(&tensors[i].shape) &&
                   shape_count(&tensors[i].shape) == (int64_t)count * leaf.count);
        for (uint64_t k = 0; k < count; k++) {
            Tensor into = row(&tensors[i], k, &leaf);
            uint64_t sample = sample_at(stream, first + k);
            // Leaf 1 of a window holds the targets, one token further on.
            bool read = window
                            ? rt_data_get_run(stream->data, sample * window + i, window, 0, &into)
                            : rt_data_get(stream->data, sample, i, &into);
            if (!read)
                return false;
        }
    }
    return true;
}

bool rt_stream_batch(RtStream *stream, uint64_t epoch, uint64_t batch, Tensor *tensors) {
    check_that(batch < stream->batches);
    uint64_t size = (uint64_t)stream->spec.batch;
    return rt_stream_run(stream, epoch, batch * size, size, tensors);
}
