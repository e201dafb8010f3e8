// Tensors: concrete shapes, strides and data. A view shares its data.
#ifndef PRESK_BASE_TENSOR_H
#define PRESK_BASE_TENSOR_H

#include "base/memory.h"
#include "base/number.h"

enum { RANK_MAX = 12 };

// Extents and strides in elements, outermost axis first. Rank 0 is a scalar.
typedef struct Shape {
    uint32_t rank;
    int64_t extent[RANK_MAX];
    int64_t stride[RANK_MAX];
} Shape;

typedef struct Tensor {
    DType type;
    Shape shape;
    void *data; // the element with all indices 0
} Tensor;

Shape shape_row_major(uint32_t rank, const int64_t *extent);
// Number of elements; an overflow of 63 bits gives −1.
int64_t shape_count(const Shape *shape);
bool shape_is_contiguous(const Shape *shape); // row-major without gaps; axes of extent 1 are free
bool shape_same_extents(const Shape *a, const Shape *b);
// The view of `from` with the extents of `to` (same count), if its strides allow one without a
// copy; fills to->stride.
bool shape_view(const Shape *from, Shape *to);
// Offset of the element with this row-major flat index.
int64_t shape_offset(const Shape *shape, int64_t flat);

// A zeroed row-major tensor aligned to 64 bytes, in the arena.
Tensor tensor_new(Arena *arena, DType type, uint32_t rank, const int64_t *extent);
double tensor_get(const Tensor *tensor, int64_t flat);
void tensor_set(Tensor *tensor, int64_t flat, double value);
// Bit equality; a NaN equals any NaN. On a difference *where is the first flat index (may be
// null). Types and extents must agree.
bool tensor_same_bits(const Tensor *a, const Tensor *b, int64_t *where);

#endif
