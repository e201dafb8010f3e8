// Element types and their exact conversions: the one place where a rounding to storage is defined.
#ifndef PRESK_BASE_NUMBER_H
#define PRESK_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// How elements lie in memory. Reals first; U8 … U64 hold indices (idx[N] takes the smallest).
typedef enum DType { F64, F32, BF16, U8, U16, U32, U64, DTYPE_COUNT } DType;

size_t dtype_size(DType type);
const char *dtype_text(DType type); // "f64", "bf16", "u8" …
bool dtype_of_text(const char *text, size_t size, DType *type);
static inline bool dtype_is_real(DType type) {
    return type <= BF16;
}
// Smallest of U8 … U64 that holds 0 … bound − 1.
DType dtype_of_bound(uint64_t bound);
// The arithmetic type of a storage type: f32 for bf16, itself otherwise.
static inline DType dtype_arithmetic(DType storage) {
    return storage == BF16 ? F32 : storage;
}

// Round to nearest, ties to even; a NaN stays a NaN.
uint16_t bf16_of_f32(float value);
float f32_of_bf16(uint16_t bits);
// Rounded once from f64 (not through f32, which would round twice).
uint16_t bf16_of_f64(double value);

// Element `index` of an array of `type`, converted exactly to double (u64 above 2^53 rounds).
double dtype_get(DType type, const void *data, int64_t index);
// Stores `value` rounded once to `type`; index types take integers in range.
void dtype_set(DType type, void *data, int64_t index, double value);

#endif
