// Random legal kernels, to compare executors with. A kernel is a function of a list of choices, so
// that a failing one is made small by making the list small: whatever is taken out of the list, the
// kernel stays legal. Every operation, type, number of lanes up to 16, share and memory type
// occurs; every address reaches the ends of its buffer.
//
// The bits of a NaN are not defined, so BITS is only applied where a NaN has been replaced.
#ifndef TESTS_SUPPORT_RANDOM_KERNEL_H
#define TESTS_SUPPORT_RANDOM_KERNEL_H

#include "kernel/kernel.h"

enum { RANDOM_BUFFERS_MAX = 28 };

typedef struct RandomChoices {
    uint32_t *at;
    uint32_t count;
} RandomChoices;

RandomChoices random_choices(Arena *arena, uint64_t seed, uint32_t count);
Kernel *random_kernel(Arena *arena, Names *names, RandomChoices choices);

// Fewer and smaller choices for which fails(data, kernel) is still true, as it is for `choices`;
// at most `tries` kernels are tried.
RandomChoices random_shrink(Arena *arena, Names *names, RandomChoices choices, uint32_t tries,
                            bool (*fails)(void *data, Kernel *kernel), void *data);

#endif
