// The libraries that bench/products.c races against: OpenBLAS, BLIS, oneDNN, libxsmm.
//
// Batches go to the threads in equal parts, each product on one thread; single products are left to
// the library's own threads. libxsmm has kernels only: blocks of 64 x 64 results with whole sums
// (blocks of 256 terms where they are long), y's block turned first where it lies by columns.
#include "products.h"

#include <dlfcn.h>
#include <libxsmm.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t left_row(const Product *p) {
    return p->left_turned ? p->m : p->k;
}

static int64_t right_row(const Product *p) {
    return p->right_turned ? p->k : p->n;
}

// ---- OpenBLAS and BLIS, by the interface of C ---------------------------------------------------

enum { ROW_MAJOR = 101, AS_IT_LIES = 111, TURNED = 112 };
static void (*sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int,
                     float, float *, int);

static void blas_part(void *data, uint32_t worker, uint32_t workers) {
    const Product *p = data;
    int64_t end = products_share(p->batch, worker + 1, workers);
    for (int64_t b = products_share(p->batch, worker, workers); b < end; b++)
        sgemm(ROW_MAJOR, p->left_turned ? TURNED : AS_IT_LIES,
              p->right_turned ? TURNED : AS_IT_LIES, (int)p->m, (int)p->n, (int)p->k, 1,
              p->x + b * p->m * p->k, (int)left_row(p), p->y + b * p->k * p->n, (int)right_row(p),
              0, p->z + b * p->m * p->n, (int)p->n);
}

static void blas(Product *p) {
    if (p->batch > 1)
        pool_run(p->pool, p->threads, blas_part, p);
    else
        blas_part(p, 0, 1);
}

static Contestant blas_open(const Product *p, const char *library, const char *set_threads) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *threads = handle ? dlsym(handle, set_threads) : NULL;
    void *function = handle ? dlsym(handle, "cblas_sgemm") : NULL;
    if (!threads || !function) {
        fprintf(stderr, "%s\n", dlerror());
        return NULL;
    }
    long count = p->batch > 1 ? 1 : p->threads;
    ((void (*)(long))threads)(count);
    memcpy(&sgemm, &function, sizeof sgemm);
    return blas;
}

// ---- oneDNN -------------------------------------------------------------------------------------

static dnnl_stream_t stream;
static dnnl_primitive_t matmul;
static dnnl_exec_arg_t arguments[3];

static void dnnl_check(dnnl_status_t status) {
    if (status != dnnl_success) {
        fprintf(stderr, "oneDNN: status %d\n", status);
        exit(1);
    }
}

static dnnl_memory_t dnnl_operand(dnnl_engine_t engine, dnnl_memory_desc_t *desc, int64_t batch,
                                  int64_t rows, int64_t columns, bool turned, const void *data) {
    dnnl_dims_t extent = {batch, rows, columns};
    dnnl_dims_t stride = {rows * columns, turned ? 1 : columns, turned ? rows : 1};
    int skip = batch == 1;
    dnnl_check(
        dnnl_memory_desc_init_by_strides(desc, 3 - skip, extent + skip, dnnl_f32, stride + skip));
    dnnl_memory_t memory;
    dnnl_check(dnnl_memory_create(&memory, desc, engine, (void *)data));
    return memory;
}

static void dnnl_run(Product *p) {
    (void)p;
    dnnl_primitive_execute(matmul, stream, 3, arguments);
    dnnl_stream_wait(stream);
}

static Contestant dnnl_open(Product *p) {
    dnnl_engine_t engine;
    dnnl_check(dnnl_engine_create(&engine, dnnl_cpu, 0));
    dnnl_check(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
    dnnl_memory_desc_t x, y, z;
    arguments[0] = (dnnl_exec_arg_t){
        DNNL_ARG_SRC, dnnl_operand(engine, &x, p->batch, p->m, p->k, p->left_turned, p->x)};
    arguments[1] = (dnnl_exec_arg_t){
        DNNL_ARG_WEIGHTS, dnnl_operand(engine, &y, p->batch, p->k, p->n, p->right_turned, p->y)};
    arguments[2] = (dnnl_exec_arg_t){DNNL_ARG_DST,
                                     dnnl_operand(engine, &z, p->batch, p->m, p->n, false, p->z)};
    dnnl_matmul_desc_t desc;
    dnnl_primitive_desc_t primitive;
    dnnl_check(dnnl_matmul_desc_init(&desc, &x, &y, NULL, &z));
    dnnl_check(dnnl_primitive_desc_create(&primitive, &desc, NULL, engine, NULL));
    dnnl_check(dnnl_primitive_create(&matmul, primitive));
    return dnnl_run;
}

static void dnnl_sgemm_run(Product *p) {
    for (int64_t b = 0; b < p->batch; b++)
        dnnl_sgemm(p->left_turned ? 'T' : 'N', p->right_turned ? 'T' : 'N', p->m, p->n, p->k, 1,
                   p->x + b * p->m * p->k, left_row(p), p->y + b * p->k * p->n, right_row(p), 0,
                   p->z + b * p->m * p->n, p->n);
}

// ---- libxsmm ------------------------------------------------------------------------------------

static struct {
    int64_t m, n, k;
    libxsmm_smmfunction first, later; // of blocks of terms
    float *turned[POOL_WORKERS_MAX];
} xsmm;

static void xsmm_blocks(const Product *p, const float *x, const float *y, float *z, int64_t begin,
                        int64_t end, float *turned) {
    for (int64_t j = 0; j < p->n; j += xsmm.n) {
        const float *right = y + j;
        if (p->right_turned) {
            libxsmm_otrans(turned, y + j * p->k, sizeof *y, (int)p->k, (int)xsmm.n, (int)p->k,
                           (int)xsmm.n);
            right = turned;
        }
        int64_t row = p->right_turned ? xsmm.n : p->n;
        for (int64_t i = begin; i < end; i += xsmm.m)
            for (int64_t k = 0; k < p->k; k += xsmm.k)
                (k ? xsmm.later : xsmm.first)(right + k * row, x + i * p->k + k, z + i * p->n + j);
    }
}

static void xsmm_part(void *data, uint32_t worker, uint32_t workers) {
    const Product *p = data;
    bool many = p->batch > 1;
    int64_t begin = many ? products_share(p->batch, worker, workers) : 0;
    int64_t end = many ? products_share(p->batch, worker + 1, workers) : 1;
    int64_t tiles = p->m / xsmm.m;
    int64_t first = many ? 0 : products_share(tiles, worker, workers) * xsmm.m;
    int64_t last = many ? p->m : products_share(tiles, worker + 1, workers) * xsmm.m;
    for (int64_t b = begin; b < end; b++)
        xsmm_blocks(p, p->x + b * p->m * p->k, p->y + b * p->k * p->n, p->z + b * p->m * p->n,
                    first, last, xsmm.turned[worker]);
}

static void xsmm_run(Product *p) {
    pool_run(p->pool, p->threads, xsmm_part, p);
}

// Its matrices are by columns: z's columns are our rows.
static Contestant xsmm_open(Product *p) {
    libxsmm_init();
    xsmm.m = p->m < 64 ? p->m : 64;
    xsmm.n = p->n < 64 ? p->n : 64;
    xsmm.k = p->k > 512 && p->k % 256 == 0 ? 256 : p->k;
    if (p->left_turned || p->m % xsmm.m || p->n % xsmm.n) {
        fprintf(stderr, "libxsmm has no kernel for this product\n");
        return NULL;
    }
    int row = p->right_turned ? (int)xsmm.n : (int)p->n, left = (int)p->k, out = (int)p->n;
    float one = 1, zero = 0;
    int m = (int)xsmm.m, n = (int)xsmm.n, k = (int)xsmm.k;
    xsmm.first = libxsmm_smmdispatch(n, m, k, &row, &left, &out, &one, &zero, NULL, NULL);
    xsmm.later = libxsmm_smmdispatch(n, m, k, &row, &left, &out, &one, &one, NULL, NULL);
    for (uint32_t i = 0; i < p->threads; i++)
        xsmm.turned[i] = aligned_alloc(64, (size_t)(xsmm.n * p->k * 4 + 63) / 64 * 64);
    return xsmm.first && xsmm.later ? xsmm_run : NULL;
}

// ---- all ----------------------------------------------------------------------------------------

Contestant products_peer(const char *name, Product *product) {
    omp_set_num_threads((int)product->threads);
    if (strcmp(name, "openblas") == 0)
        return blas_open(product, "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0",
                         "openblas_set_num_threads");
    if (strcmp(name, "blis") == 0)
        return blas_open(product, "/usr/lib/x86_64-linux-gnu/blis-openmp/libblis.so.4",
                         "bli_thread_set_num_threads");
    if (strcmp(name, "onednn") == 0)
        return dnnl_open(product);
    if (strcmp(name, "onednn-sgemm") == 0)
        return dnnl_sgemm_run;
    if (strcmp(name, "libxsmm") == 0)
        return xsmm_open(product);
    fprintf(stderr, "no contestant is called %s\n", name);
    return NULL;
}
