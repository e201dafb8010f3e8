// Two data files, value by value. A file is taken as a row of runs, each of one encoding: a leaf of
// a sample, or all of a checkpoint whose shapes are not known.
#include "runtime/data_file.h"

#include <math.h>

typedef struct Run {
    DType type;
    const unsigned char *at;
    uint64_t count;
} Run;

static uint64_t run_count(const RtData *data) {
    return data->laid_out ? data->samples * data->type.count : 1;
}

static Run run_at(const RtData *data, uint64_t index) {
    if (data->laid_out) {
        const RtLeaf *leaf = &data->type.leaves[index % data->type.count];
        const unsigned char *at =
            data->first + index / data->type.count * data->type.bytes + leaf->offset;
        return (Run){leaf->type, at, (uint64_t)leaf->count};
    }
    DType type = data->encoding_count > 0 ? (DType)data->encodings[0] : F64;
    return (Run){type, data->first, data->data_size / dtype_size(type)};
}

// A checkpoint without its program: every leaf has the same, known encoding.
static bool uniform(const RtData *data) {
    if (data->laid_out)
        return true;
    for (uint32_t i = 0; i < data->encoding_count; i++)
        if (data->encodings[i] != data->encodings[0] || data->encodings[i] > BF16)
            return rt_does_not_fit(&data->path, "a checkpoint with one", "several encodings");
    Run run = run_at(data, 0);
    uint64_t rest = data->data_size % dtype_size(run.type);
    return rest == 0 || rt_wrong_length(&data->path, data->bytes.size, data->bytes.size - rest);
}

static void compare_runs(const Run *a, const Run *b, uint64_t run, const RtData *data,
                         RtDifference *difference) {
    for (uint64_t i = 0; i < a->count; i++) {
        uint64_t bits[2] = {0};
        memcpy(&bits[0], a->at + i * dtype_size(a->type), dtype_size(a->type));
        memcpy(&bits[1], b->at + i * dtype_size(b->type), dtype_size(b->type));
        double x = dtype_get(a->type, &bits[0], 0), y = dtype_get(b->type, &bits[1], 0);
        bool same = a->type == b->type && bits[0] == bits[1];
        if (same || (dtype_is_real(a->type) && (x == y || (isnan(x) && isnan(y)))))
            continue;
        if (difference->different++ == 0) {
            uint64_t leaves = data->laid_out ? data->type.count : 1;
            difference->sample = run / leaves;
            difference->leaf = run % leaves;
            difference->element = i;
            difference->a = x;
            difference->b = y;
        }
        double distance = fabs(x - y);
        if (!(distance <= difference->largest)) // a NaN beside a number is the largest
            difference->largest = distance;
    }
    difference->values += a->count;
}

bool rt_data_diff(const RtData *a, const RtData *b, RtDifference *difference) {
    *difference = (RtDifference){0};
    if (!str_equal(a->type.text, b->type.text) || a->samples != b->samples ||
        a->laid_out != b->laid_out)
        return rt_does_not_fit(&b->path,
                               str_format(b->path.arena, "%llu samples of type %s",
                                          (unsigned long long)a->samples, a->type.text.at)
                                   .at,
                               "%llu samples of type %s", (unsigned long long)b->samples,
                               b->type.text.at);
    if (!uniform(a) || !uniform(b))
        return false;
    for (uint64_t i = 0; i < run_count(a); i++) {
        Run x = run_at(a, i), y = run_at(b, i);
        if (x.count != y.count)
            return rt_does_not_fit(
                &b->path, str_format(b->path.arena, "%llu", (unsigned long long)x.count).at,
                "%llu values", (unsigned long long)y.count);
        compare_runs(&x, &y, i, a, difference);
    }
    return true;
}
