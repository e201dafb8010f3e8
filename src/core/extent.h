// Extents: integer polynomials in dimensions, in a normal form, so that equal extents have equal
// ids. `B * T`, `4 * D` and `D / H` (where it divides exactly) are extents.
//
// A polynomial is a sum of monomials, each an integer coefficient times dimensions with powers,
// sorted; it is hash-consed in its table. Products and sums whose coefficients overflow 63 bits,
// or that grow beyond 64 factors in a monomial or 256 monomials, are EXTENT_NONE, which the caller
// reports. NONE and PACK as an operand give NONE.
#ifndef PRESK_CORE_EXTENT_H
#define PRESK_CORE_EXTENT_H

#include "base/context.h"

typedef uint32_t Extent; // index into an ExtentTable
typedef uint32_t DimId;  // from 1

enum { EXTENT_NONE = 0, EXTENT_PACK = 1 }; // PACK: the opaque axes of `...`

typedef struct Dim {
    Name name;
    Extent bound; // `dim B <= 256`: EXTENT_NONE without one
    bool global;  // a `dim` declaration; else a parameter of a module or a function
    Span span;
} Dim;

typedef struct ExtentTable ExtentTable;
ExtentTable *extent_table_new(Arena *arena, const Names *names);

DimId extent_dim_add(ExtentTable *table, Dim dim);
Dim *extent_dim_get(const ExtentTable *table, DimId dim);
uint32_t extent_dim_count(const ExtentTable *table); // ids run from 1 to this

Extent extent_int(ExtentTable *table, int64_t value);
Extent extent_dim(ExtentTable *table, DimId dim);
Extent extent_add(ExtentTable *table, Extent a, Extent b);
Extent extent_sub(ExtentTable *table, Extent a, Extent b);
Extent extent_mul(ExtentTable *table, Extent a, Extent b);
// Exact division by a polynomial of one monomial that divides every monomial of a; else NONE.
Extent extent_div(ExtentTable *table, Extent a, Extent b);
bool extent_is_int(const ExtentTable *table, Extent a, int64_t *value); // value may be null
bool extent_has_dim(const ExtentTable *table, Extent a, DimId dim);
// The first dimension of a that is not in the set (by DimId); 0: all are.
DimId extent_dim_outside(const ExtentTable *table, Extent a, const bool *set);

// What dimensions stand for: by DimId, EXTENT_NONE where unbound (left as it is).
Extent extent_substitute(ExtentTable *table, Extent a, const Extent *by_dim);
// The value where dims have these values (by DimId; −1: unbound). False on an unbound dimension
// or overflow of 63 bits; *missing (may be null) is the unbound one, 0 for overflow.
bool extent_value(const ExtentTable *table, Extent a, const int64_t *by_dim, int64_t *value,
                  DimId *missing);
// "B * T", "4 * D", "...": in terms of the source.
Str extent_text(const ExtentTable *table, Extent a, Arena *arena);
// The same onto a string, with other names for some dims (by DimId, 0: its own; null: none).
void extent_write(const ExtentTable *table, Extent a, const Name *names, StrBuf *buf);

#endif
