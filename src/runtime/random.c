// Random values from Philox blocks. Real values use only exact operations, IEEE ones and the
// programs of maths, so they are the same everywhere.
#include "runtime/random.h"

#include "base/philox.h"
#include "maths/maths.h"

#include <math.h>

uint64_t rt_random_stream(Str name) {
    return hash_bytes(name.at, name.size, 0);
}

static PhiloxBlock block(uint64_t seed, uint64_t stream, uint64_t index) {
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)index, (uint32_t)(index >> 32), (uint32_t)stream,
                                 (uint32_t)(stream >> 32)};
    return philox(counter, key);
}

static uint64_t low_bits(PhiloxBlock b) {
    return b.word[0] | (uint64_t)b.word[1] << 32;
}

static uint64_t high_bits(PhiloxBlock b) {
    return b.word[2] | (uint64_t)b.word[3] << 32;
}

uint64_t rt_random_bits(uint64_t seed, uint64_t stream, uint64_t index) {
    return low_bits(block(seed, stream, index));
}

double rt_random_uniform(uint64_t seed, uint64_t stream, uint64_t index) {
    return (double)(rt_random_bits(seed, stream, index) >> 11) * 0x1p-53;
}

static void run(const MthProgram *program, uint32_t count, double *values) {
    const double *args[] = {values};
    mth_run(program, F64, count, args, values);
}

void rt_random_normals(Arena *arena, uint64_t seed, uint64_t stream, uint64_t first, uint32_t count,
                       double *values) {
    double *angle = arena_array(arena, double, count);
    for (uint32_t i = 0; i < count; i++) {
        PhiloxBlock b = block(seed, stream, first + i);
        values[i] = (double)((low_bits(b) >> 11) + 1) * 0x1p-53; // in (0, 1]
        angle[i] = (double)(high_bits(b) >> 11) * 0x1p-53 * 0x1.921fb54442d18p+2;
    }
    MthProgram logarithm = mth_program(arena, MTH_log, 0, F64);
    MthProgram cosine = mth_program(arena, MTH_cos, 0, F64);
    run(&logarithm, count, values);
    run(&cosine, count, angle);
    for (uint32_t i = 0; i < count; i++)
        values[i] = sqrt(-2 * values[i]) * angle[i];
}

uint64_t rt_random_index(uint64_t seed, uint64_t stream, uint64_t index, uint64_t bound) {
    uint64_t bits = rt_random_bits(seed, stream, index);
    return (uint64_t)((unsigned __int128)bits * bound >> 64);
}
