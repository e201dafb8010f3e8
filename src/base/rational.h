// Exact rational numbers for the language's constants: limbs of any length in an arena, worked on
// with GMP's mpn functions, so nothing has to be freed.
#ifndef PRESK_BASE_RATIONAL_H
#define PRESK_BASE_RATIONAL_H

#include "base/number.h"
#include "base/text.h"

// A value in lowest terms with a positive denominator.
typedef struct Rational Rational;

const Rational *rational_of_int(Arena *arena, int64_t value);
// A decimal literal as the lexer gives it: digits with `_`, fraction, exponent. Null where the
// exponent is too large to be held (beyond ±4096).
const Rational *rational_of_decimal(Arena *arena, Str text);
const Rational *rational_of_double(Arena *arena, double value); // exact; value is finite

const Rational *rational_add(Arena *arena, const Rational *a, const Rational *b);
const Rational *rational_sub(Arena *arena, const Rational *a, const Rational *b);
const Rational *rational_mul(Arena *arena, const Rational *a, const Rational *b);
const Rational *rational_div(Arena *arena, const Rational *a, const Rational *b); // null: b = 0
const Rational *rational_neg(Arena *arena, const Rational *a);
const Rational *rational_abs(Arena *arena, const Rational *a);
// Null when a = 0 and exponent < 0, or when the result would exceed the size limit.
const Rational *rational_pow(Arena *arena, const Rational *a, int64_t exponent);
// Floor division's remainder, for `%` on constants; null: b = 0.
const Rational *rational_mod(Arena *arena, const Rational *a, const Rational *b);
int rational_compare(const Rational *a, const Rational *b);
bool rational_is_int(const Rational *a, int64_t *value); // value may be null
bool rational_size_ok(const Rational *a);                // within the limit of 16,384 bits

// Rounded once, to nearest, ties to even, to F64, F32 or BF16 (overflow gives an infinity,
// subnormals are right); the result as a double, exactly.
double rational_round(const Rational *a, DType type);
// "3", "-1/3"; a decimal where the denominator is 2^a·5^b and it is short: "0.00001".
Str rational_text(Arena *arena, const Rational *a);
// Reads rational_text's output back; null: malformed.
const Rational *rational_of_text(Arena *arena, Str text);

#endif
