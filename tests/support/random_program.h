// Random well-typed Core programs, for tests that compare executors or passes.
//
// A program has a few functions that are polymorphic in their own dimensions and mostly in `...`,
// calling each other, and an entry that calls them: real and index tensors, parameter trees,
// tuples, every primitive. Extents are polynomials of the global dimensions A … E, whose values are
// odd, 1 and small, E now and then 0. No axis of extent 0 is ever indexed, and no value has more
// than some ten thousand elements. The same seed and size give the same program on every machine.
// The program has not been through any pass.
#ifndef PRESK_TESTS_RANDOM_PROGRAM_H
#define PRESK_TESTS_RANDOM_PROGRAM_H

#include "core/core.h"

typedef struct RandomProgram {
    CoreProgram *core;
    CoreFnId entry;      // the last function; it has no dimensions of its own and no `...`
    const int64_t *dims; // by DimId (extent_dim_count + 1 of them): values of the global
                         // dimensions, −1 for others
    uint64_t seed;       // 0: shrunk
} RandomProgram;

// `size`: about how many lets a function has (8 to 40 are sensible).
RandomProgram random_program(Context *context, uint64_t seed, uint32_t size);

// The program as Core text that can be read back, its dimensions' values in the first line's place
// of "dim A <= 3": each global dimension's bound is its value.
Str random_program_text(const RandomProgram *program, Arena *arena);
// Reads such a text.
RandomProgram random_program_read(Context *context, Str text);

// Does the program show the fault? May run passes on it: it gets a copy.
typedef bool (*RandomProgramFails)(void *data, const RandomProgram *program);
// Makes a failing program smaller as long as it fails: a function gives an earlier let, a let reads
// an earlier one of its type in place of another, a call or tuple goes, dimensions shrink, unused
// functions go. At most `tries` runs of `fails`. Returns the text of the smallest.
Str random_program_shrink(Context *context, const RandomProgram *program, uint32_t tries,
                          RandomProgramFails fails, void *data);

// The seeds kept in tests/random.seeds (one a line, `#` begins a comment), each of which once
// showed a fault; run them before new ones.
uint32_t random_program_seeds(Arena *arena, uint64_t **seeds);

#endif
