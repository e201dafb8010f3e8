// Random values of the host: initial parameters, inputs that were not given, shuffles, sampling.
//
// A stream of values is named by a seed and a 64-bit hash (of a parameter's path, of a purpose);
// its values are numbered. Value `index` comes from one Philox block: the key is the seed, the
// counter's lower half the index, its upper half the hash.
#ifndef PRESK_RUNTIME_RANDOM_H
#define PRESK_RUNTIME_RANDOM_H

#include "base/tensor.h"
#include "base/text.h"

// The name of a stream of values: hash_bytes of the text.
uint64_t rt_random_stream(Str name);
// 64 random bits.
uint64_t rt_random_bits(uint64_t seed, uint64_t stream, uint64_t index);
// In [0, 1), a multiple of 2^−53.
double rt_random_uniform(uint64_t seed, uint64_t stream, uint64_t index);
// `count` values from `first` on of the normal distribution with mean 0 and deviation 1, by Box and
// Muller (1958): the cosine one of each pair, computed by the F64 programs of maths. The arena is
// for scratch.
void rt_random_normals(Arena *arena, uint64_t seed, uint64_t stream, uint64_t first, uint32_t count,
                       double *values);
// Uniform in 0 … bound − 1, with a bias below bound · 2^−64.
uint64_t rt_random_index(uint64_t seed, uint64_t stream, uint64_t index, uint64_t bound);

#endif
