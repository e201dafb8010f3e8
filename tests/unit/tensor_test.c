// Shapes, views and tensors.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/tensor.h"

#define SHAPE(...)                                                                                 \
    shape_row_major((uint32_t)COUNT_OF(((const int64_t[]){__VA_ARGS__})),                          \
                    (const int64_t[]){__VA_ARGS__})

static void row_major(void **state) {
    (void)state;
    Shape shape = SHAPE(2, 3, 4);
    assert_int_equal(shape.rank, 3);
    assert_int_equal(shape.stride[0], 12);
    assert_int_equal(shape.stride[1], 4);
    assert_int_equal(shape.stride[2], 1);
    assert_int_equal(shape_count(&shape), 24);
    Shape scalar = shape_row_major(0, NULL);
    assert_int_equal(shape_count(&scalar), 1);
    assert_true(shape_is_contiguous(&scalar));
    for (int64_t i = 0; i < 24; i++)
        assert_int_equal(shape_offset(&shape, i), i);
}

static void overflow(void **state) {
    (void)state;
    const int64_t big = INT64_C(1) << 32;
    Shape fits = SHAPE(65536, 65536);
    assert_int_equal(shape_count(&fits), INT64_C(4294967296));
    assert_int_equal(shape_offset(&fits, INT64_C(4294967295)), INT64_C(4294967295));
    Shape edge = SHAPE(INT64_MAX, 1);
    assert_int_equal(shape_count(&edge), INT64_MAX);
    Shape over = SHAPE(big, big);
    assert_int_equal(shape_count(&over), -1);
    Shape barely = SHAPE(INT64_C(1) << 62, 2);
    assert_int_equal(shape_count(&barely), -1);
    Shape empty = SHAPE(big, 0, big, big);
    assert_int_equal(shape_count(&empty), 0);
    assert_true(shape_is_contiguous(&empty));
    Shape negative = SHAPE(3, -1);
    assert_int_equal(shape_count(&negative), -1);
}

static void contiguity(void **state) {
    (void)state;
    Shape shape = SHAPE(2, 1, 3);
    shape.stride[1] = 77; // an axis of extent 1 is free
    assert_true(shape_is_contiguous(&shape));
    shape.stride[0] = 4;
    assert_false(shape_is_contiguous(&shape));
    Shape swapped = {.rank = 2, .extent = {3, 2}, .stride = {1, 3}};
    assert_false(shape_is_contiguous(&swapped));
    Shape broadcast = {.rank = 2, .extent = {3, 2}, .stride = {0, 1}};
    assert_false(shape_is_contiguous(&broadcast));
}

// Every view that is granted addresses the same elements in the same order.
static void check_view(const Shape *from, Shape to, bool possible) {
    assert_int_equal(shape_view(from, &to), possible);
    for (int64_t i = 0; possible && i < shape_count(from); i++)
        assert_int_equal(shape_offset(&to, i), shape_offset(from, i));
}

static void views(void **state) {
    (void)state;
    Shape dense = SHAPE(4, 6);
    check_view(&dense, SHAPE(24), true);
    check_view(&dense, SHAPE(2, 2, 3, 2), true);
    check_view(&dense, SHAPE(8, 3), true);
    check_view(&dense, SHAPE(1, 24, 1), true);
    check_view(&dense, SHAPE(5, 5), false);
    Shape padded = {.rank = 2, .extent = {4, 6}, .stride = {10, 1}};
    check_view(&padded, SHAPE(2, 2, 6), true);
    check_view(&padded, SHAPE(4, 2, 3), true);
    check_view(&padded, SHAPE(4, 1, 6, 1), true);
    check_view(&padded, SHAPE(24), false);
    check_view(&padded, SHAPE(8, 3), false);
    Shape swapped = {.rank = 3, .extent = {2, 4, 3}, .stride = {3, 6, 1}}; // [head, seq, dim]
    check_view(&swapped, SHAPE(2, 12), false);
    check_view(&swapped, SHAPE(2, 2, 2, 3), true);
    check_view(&swapped, SHAPE(8, 3), false);
    Shape broadcast = {.rank = 2, .extent = {4, 6}, .stride = {0, 0}};
    check_view(&broadcast, SHAPE(3, 8), true);
    Shape row = {.rank = 2, .extent = {4, 6}, .stride = {0, 1}};
    check_view(&row, SHAPE(2, 2, 6), true);
    check_view(&row, SHAPE(24), false);
    Shape ones = {.rank = 3, .extent = {1, 6, 1}, .stride = {50, 2, 9}};
    check_view(&ones, SHAPE(2, 3), true);
    check_view(&ones, SHAPE(6, 1, 1), true);
    Shape scalar = shape_row_major(0, NULL), one = SHAPE(1, 1);
    check_view(&scalar, SHAPE(1, 1), true);
    check_view(&one, shape_row_major(0, NULL), true);
    Shape empty = SHAPE(3, 0);
    check_view(&empty, SHAPE(0, 7), true);
    check_view(&empty, SHAPE(1), false);
}

static void data(void **state) {
    (void)state;
    Heap heap = {0};
    Arena *arena = arena_new(&heap, "test");
    for (DType type = 0; type < DTYPE_COUNT; type++) {
        Tensor tensor = tensor_new(arena, type, 2, (const int64_t[]){3, 5});
        assert_int_equal((uintptr_t)tensor.data % 64, 0);
        for (int64_t i = 0; i < 15; i++)
            assert_true(tensor_get(&tensor, i) == 0);
        for (int64_t i = 0; i < 15; i++)
            tensor_set(&tensor, i, (double)(i * i));
        Tensor transposed = tensor;
        transposed.shape = (Shape){.rank = 2, .extent = {5, 3}, .stride = {1, 5}};
        assert_true(tensor_get(&transposed, 3 * 4 + 1) == (1 * 5 + 4) * (1 * 5 + 4));
    }
    Tensor empty = tensor_new(arena, F64, 2, (const int64_t[]){0, 5});
    assert_non_null(empty.data);
    heap_free(&heap);
}

static void same_bits(void **state) {
    (void)state;
    Heap heap = {0};
    Arena *arena = arena_new(&heap, "test");
    for (DType type = F64; type <= BF16; type++) {
        int64_t where = -1;
        Tensor a = tensor_new(arena, type, 1, (const int64_t[]){4});
        Tensor b = tensor_new(arena, type, 1, (const int64_t[]){4});
        tensor_set(&a, 1, NAN);
        tensor_set(&b, 1, -NAN);
        assert_true(tensor_same_bits(&a, &b, &where));
        tensor_set(&b, 3, -0.0);
        assert_false(tensor_same_bits(&a, &b, &where));
        assert_int_equal(where, 3);
        assert_false(tensor_same_bits(&a, &b, NULL));
        tensor_set(&b, 1, 5);
        assert_false(tensor_same_bits(&a, &b, &where));
        assert_int_equal(where, 1);
    }
    Tensor a = tensor_new(arena, U16, 2, (const int64_t[]){2, 3});
    Tensor b = tensor_new(arena, U16, 2, (const int64_t[]){3, 2});
    b.shape = (Shape){.rank = 2, .extent = {2, 3}, .stride = {1, 2}};
    for (int64_t i = 0; i < 6; i++) {
        tensor_set(&a, i, (double)i);
        tensor_set(&b, i, (double)i);
    }
    int64_t where = -1;
    assert_true(tensor_same_bits(&a, &b, &where));
    tensor_set(&b, 4, 9);
    assert_false(tensor_same_bits(&a, &b, &where));
    assert_int_equal(where, 4);
    heap_free(&heap);
}

// More bytes than the system has: the heap's rescue point, not an address that wraps around.
static void too_large(void **state) {
    (void)state;
    Heap heap = {0};
    jmp_buf rescue;
    heap.rescue = &rescue;
    Arena *arena = arena_new(&heap, "test");
    if (setjmp(rescue) == 0) {
        tensor_new(arena, F64, 2, (const int64_t[]){INT64_C(1) << 30, INT64_C(1) << 31});
        fail_msg("2^64 bytes were given");
    }
    heap_free(&heap);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_major), cmocka_unit_test(overflow), cmocka_unit_test(contiguity),
        cmocka_unit_test(views),     cmocka_unit_test(data),     cmocka_unit_test(same_bits),
        cmocka_unit_test(too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
