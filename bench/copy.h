// Copies of tensors by vector registers, with ordinary stores or with stores past the caches: what
// a benchmark of memory is held against.
#ifndef BENCH_COPY_H
#define BENCH_COPY_H

#include "bench.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef struct Copy {
    const float *from;
    float *to;
    size_t count; // a multiple of 16 for each worker
    bool stream;
} Copy;

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static inline void copy512(const Copy *copy, size_t at,
                                                              size_t end) {
    for (; at < end; at += 16) {
        __m512 value = _mm512_loadu_ps(copy->from + at);
        if (copy->stream)
            _mm512_stream_ps(copy->to + at, value);
        else
            _mm512_store_ps(copy->to + at, value);
    }
}
__attribute__((target("avx"))) static inline void copy256(const Copy *copy, size_t at, size_t end) {
    for (; at < end; at += 8) {
        __m256 value = _mm256_loadu_ps(copy->from + at);
        if (copy->stream)
            _mm256_stream_ps(copy->to + at, value);
        else
            _mm256_store_ps(copy->to + at, value);
    }
}
#endif

static inline void copy_part(void *data, uint32_t worker, uint32_t workers) {
    const Copy *copy = data;
    size_t lines = copy->count / 16;
    size_t at = lines * worker / workers * 16, end = lines * (worker + 1) / workers * 16;
#if defined(__x86_64__)
    if (nat_machine_target() == 512)
        copy512(copy, at, end);
    else if (nat_machine_target() == 256)
        copy256(copy, at, end);
    else
#endif
        memcpy(copy->to + at, copy->from + at, (end - at) * sizeof *copy->to);
}

// A contestant of races for memory. Each has memory of its own, so that none finds more of it in a
// large last-level cache than another; and each is to run behind a copy past the caches, so that
// none has to write back what another has left in them.
static inline Copy copy_new(Bench *bench, int64_t count, bool stream) {
    Tensor from = tensor_new(bench->arena, F32, 1, &count);
    Tensor to = tensor_new(bench->arena, F32, 1, &count);
    bench_fill(&from);
    return (Copy){from.data, to.data, (size_t)count, stream};
}

// Seconds of processor time a worker: of a run, and of a copy.
static inline double run_seconds(RtProgram *program, uint32_t workers) {
    double started = bench_seconds();
    rt_run(program);
    return (bench_seconds() - started) / workers;
}
static inline double copy_seconds(Pool *pool, const Copy *copy) {
    double started = bench_seconds();
    pool_run(pool, pool_workers(pool), copy_part, (void *)copy);
    return (bench_seconds() - started) / pool_workers(pool);
}

#endif
