// What the contestants of bench/products.c share: a matrix product, its data and its measure.
#ifndef BENCH_PRODUCTS_H
#define BENCH_PRODUCTS_H

#include "base/pool.h"

#include <stdint.h>

// `batch` products z[m][n] = Σ x[m][k] y[k][n] over k, row-major one after the other; x lies as
// [k][m] where `left_turned`, y as [n][k] where `right_turned`.
typedef struct Product {
    int64_t batch, m, n, k;
    bool left_turned, right_turned;
    const float *x, *y;
    float *z;
    Pool *pool;
    uint32_t threads;
} Product;

typedef void (*Contestant)(Product *product);

// Makes a library ready for the product; null with a message on stderr where it cannot compute it.
Contestant products_peer(const char *name, Product *product);

// Part `worker` of `workers` of 0 … count.
static inline int64_t products_share(int64_t count, uint32_t worker, uint32_t workers) {
    return count * worker / workers;
}

#endif
