// Nests made by hand, and kernels of them run between guard words.
#ifndef PRESK_TESTS_NEST_RUN_H
#define PRESK_TESTS_NEST_RUN_H

#include "kernel/lower.h"

typedef struct Random {
    uint64_t state;
} Random;
uint32_t random_below(Random *random, uint32_t bound);
// Mostly small numbers that need rounding; now and then 0, −0, and, if asked for, ±inf and NaN.
double random_value(Random *random, bool special);

// Elements between guard words.
typedef struct Data {
    DType type;
    int64_t count;
    void *at;
    uint8_t *block;
    size_t bytes; // of the block
} Data;
Data data_new(Arena *arena, DType type, int64_t count);
void data_fill(Data *data, Random *random, int64_t range, bool special); // range: of indices
bool data_guarded(const Data *data); // the guard words are as they were
// Bits agree, NaN with NaN whatever the payload; else *at is the first element that differs.
bool data_same(const Data *a, const Data *b, int64_t *at);

// A nest under construction: operands are in row-major order of the axes named by letters (a: axis
// 0, b: axis 1 …), so "cb" is a matrix whose rows run along axis 2.
typedef struct TestNest {
    RlzNest nest;
    RlzOperand input[8];
    RlzNode node[16];
    Data data[8];
    Data out; // as it must be
} TestNest;
TestNest *nest_new(Arena *arena, RlzKind kind, CorePrim prim, DType storage);
void nest_axis(TestNest *test, RlzRole role, int64_t extent);
RlzOperand *nest_input(TestNest *test, DType type, const char *axes); // axes null: no memory
void nest_output(TestNest *test, Arena *arena, DType type, const char *axes);
// Makes and fills the data of all MEMORY inputs.
void nest_fill(TestNest *test, Arena *arena, Random *random, bool special);

// All indices of the axes first … first + count − 1, last one fastest; starts from zeros. False at
// the end; `fresh` for the first call.
bool nest_next(const RlzNest *nest, uint32_t first, uint32_t count, int64_t *index, bool fresh);
int64_t nest_offset(const RlzNest *nest, const RlzOperand *operand, const int64_t *index);
// An input at an index, exactly.
double nest_get(const TestNest *test, uint32_t input, const int64_t *index);
// What is right at an index of the output: rounded once to the output's type.
void nest_set(TestNest *test, const int64_t *index, double value);
double to_type(DType arithmetic, double value); // rounded once

// Lowers the nest, verifies the kernel, runs it (a split one in random parts) into an output full
// of NaN, and compares with test->out bit for bit. Prints the kernel and aborts on a difference.
// One kernel in NATIVE_SHARE, chosen by its text, also runs as native code. Gives the kernel's
// split_count.
enum { NATIVE_SHARE = 16 };
int64_t nest_run(Context *context, const TestNest *test, const RlzLayout *layout, Random *random);

#endif
