// Shapes and tensors. Extents are trusted to be ≥ 0 except in shape_count, which is where sizes
// that come from outside are judged before anything else is done with them.
#include "base/tensor.h"

Shape shape_row_major(uint32_t rank, const int64_t *extent) {
    check_that(rank <= RANK_MAX);
    Shape shape = {.rank = rank};
    int64_t stride = 1;
    for (uint32_t i = rank; i-- > 0;) {
        shape.extent[i] = extent[i];
        shape.stride[i] = stride;
        // An overflow means that shape_count is −1 or 0, and then no stride is ever used.
        if (__builtin_mul_overflow(stride, extent[i], &stride))
            stride = 0;
    }
    return shape;
}

int64_t shape_count(const Shape *shape) {
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (shape->extent[i] <= 0)
            return shape->extent[i] == 0 ? 0 : -1;
    }
    int64_t count = 1;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (__builtin_mul_overflow(count, shape->extent[i], &count))
            return -1;
    }
    return count;
}

bool shape_is_contiguous(const Shape *shape) {
    int64_t expected = 1;
    bool dense = true;
    for (uint32_t i = shape->rank; i-- > 0;) {
        if (shape->extent[i] == 0)
            return true;
        if (shape->extent[i] == 1)
            continue;
        dense = dense && shape->stride[i] == expected;
        if (__builtin_mul_overflow(expected, shape->extent[i], &expected))
            expected = -1; // no stride
    }
    return dense;
}

bool shape_same_extents(const Shape *a, const Shape *b) {
    return a->rank == b->rank && memcmp(a->extent, b->extent, a->rank * sizeof *a->extent) == 0;
}

// The axes of `from` fall into runs that lie in memory as one axis would; each run must be the
// product of some consecutive axes of `to`. Both are walked from the innermost axis, matching the
// products of a run and of the new axes that take its place.
bool shape_view(const Shape *from, Shape *to) {
    int64_t count = shape_count(from);
    if (count < 0 || shape_count(to) != count)
        return false;
    if (count == 0) {
        *to = shape_row_major(to->rank, to->extent);
        return true;
    }
    uint32_t i = from->rank, j = to->rank;
    while (i > 0) {
        if (from->extent[i - 1] == 1) {
            i--;
            continue;
        }
        int64_t stride = from->stride[i - 1], run = from->extent[--i];
        while (i > 0 && (from->extent[i - 1] == 1 || from->stride[i - 1] == stride * run))
            run *= from->extent[--i];
        for (int64_t step = stride; run > 1;) {
            if (j == 0 || run % to->extent[j - 1] != 0)
                return false;
            to->stride[--j] = step;
            step *= to->extent[j];
            run /= to->extent[j];
        }
    }
    while (j > 0)
        to->stride[--j] = 1; // what is left has extent 1
    return true;
}

int64_t shape_offset(const Shape *shape, int64_t flat) {
    int64_t offset = 0;
    for (uint32_t i = shape->rank; i-- > 0;) {
        offset += flat % shape->extent[i] * shape->stride[i];
        flat /= shape->extent[i];
    }
    return offset;
}

Tensor tensor_new(Arena *arena, DType type, uint32_t rank, const int64_t *extent) {
    enum { ALIGNMENT = 64 };
    Tensor tensor = {.type = type, .shape = shape_row_major(rank, extent)};
    int64_t count = shape_count(&tensor.shape);
    if (count < 0)
        bug("a tensor's size was not checked before it was made");
    // More bytes than there are addresses is memory that the system does not have.
    size_t size;
    if (__builtin_mul_overflow((size_t)count, dtype_size(type), &size) || size > SIZE_MAX / 2)
        size = SIZE_MAX / 2;
    uintptr_t at = (uintptr_t)arena_alloc(arena, size + ALIGNMENT - 1);
    tensor.data = (void *)((at + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1));
    return tensor;
}

double tensor_get(const Tensor *tensor, int64_t flat) {
    return dtype_get(tensor->type, tensor->data, shape_offset(&tensor->shape, flat));
}

void tensor_set(Tensor *tensor, int64_t flat, double value) {
    dtype_set(tensor->type, tensor->data, shape_offset(&tensor->shape, flat), value);
}

// The bits of an element, with all NaNs made one.
static uint64_t element_bits(const Tensor *tensor, int64_t flat) {
    int64_t offset = shape_offset(&tensor->shape, flat);
    if (dtype_is_real(tensor->type)) {
        double value = dtype_get(tensor->type, tensor->data, offset);
        if (value != value)
            return UINT64_MAX; // itself a NaN in f64, and beyond the narrower types
    }
    size_t size = dtype_size(tensor->type);
    uint64_t bits = 0;
    memcpy(&bits, (const char *)tensor->data + offset * (int64_t)size, size);
    return bits;
}

bool tensor_same_bits(const Tensor *a, const Tensor *b, int64_t *where) {
    check_that(a->type == b->type && shape_same_extents(&a->shape, &b->shape));
    int64_t count = shape_count(&a->shape);
    if (count == 0)
        return true;
    if (shape_is_contiguous(&a->shape) && shape_is_contiguous(&b->shape) &&
        memcmp(a->data, b->data, (size_t)count * dtype_size(a->type)) == 0)
        return true;
    for (int64_t i = 0; i < count; i++) {
        if (element_bits(a, i) != element_bits(b, i)) {
            if (where)
                *where = i;
            return false;
        }
    }
    return true;
}
