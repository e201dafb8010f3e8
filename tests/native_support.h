// What the tests of native code share: a context, a Native on a cache folder of its own, buffers
// of awkward numbers with guards around them, and the comparison with the interpreter.
#ifndef TESTS_NATIVE_SUPPORT_H
#define TESTS_NATIVE_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/kernel.h"
#include "native/native.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GUARD = 64, GUARD_BYTE = 0xA5, BUFFERS_MAX = 28 };

typedef struct Fixture {
    Context context;
    Arena *arena;
    char folder[64];
} Fixture;

static inline void fixture_open(Fixture *f) {
    memset(f, 0, sizeof *f);
    context_init(&f->context);
    f->arena = arena_new(&f->context.heap, "test");
    strcpy(f->folder, "/tmp/presk-native-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
}

static inline void fixture_close(Fixture *f) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", f->folder);
    assert_int_equal(system(command), 0);
    context_free(&f->context);
}

static inline Native *fixture_native(Fixture *f, uint32_t target, const char *cpu, bool no_cache) {
    NatOptions options = {f->folder, no_cache, target, 2, cpu};
    Native *native = nat_new(&f->context, f->arena, &options);
    assert_non_null(native);
    return native;
}

static inline void assert_no_diagnostics(Fixture *f) {
    if (f->context.diags.all.count > 0)
        fail_msg("%s", diags_render(&f->context.diags, f->arena, DIAG_PLAIN).at);
}

// ---- numbers ------------------------------------------------------------------------------------

static inline uint64_t next_random(uint64_t *state) { // xorshift64*, Vigna 2016
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Du;
}

static const double awkward[] = {
    0.0,         -0.0,          1.0,     -1.0,      INFINITY,   -INFINITY,          NAN,
    1e-45,       -1e-45,        1.5e-39, 1e-310,    5e-324,     3.4028235e38,       -3.4028235e38,
    1e308,       1.1754944e-38, 0.1,     1.0 / 3.0, 16777217.0, 1.00390625,         0.998046875,
    1.001953125, 2.5,           -7.0,    1e10,      1e-10,      4503599627370497.5,
};

// Half awkward values, a quarter near 1 with all their bits, a quarter of random bits, among them
// NaNs and subnormals.
static inline void fill(DType type, int64_t range, void *data, int64_t count, uint64_t *state) {
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = next_random(state);
        if (range > 0)
            dtype_set(type, data, i, (double)(bits % (uint64_t)range));
        else if (dtype_is_real(type) && bits & 1)
            dtype_set(type, data, i, awkward[(bits >> 8) % COUNT_OF(awkward)]);
        else if (dtype_is_real(type) && bits & 2)
            dtype_set(type, data, i, (double)((int64_t)bits >> 8) * 0x1p-54);
        else
            memcpy((char *)data + (size_t)i * dtype_size(type), (char *)&bits + 1,
                   MIN(dtype_size(type), 7));
    }
}

// ---- launches -----------------------------------------------------------------------------------

typedef struct Buffers {
    void *at[BUFFERS_MAX];
    char *block[BUFFERS_MAX];
    size_t size[BUFFERS_MAX];
} Buffers;

// Buffers whose data begins `shift` bytes after an address aligned to 64. OUT buffers start as all
// ones, that is NaN.
static inline Buffers buffers_make(Fixture *f, const Kernel *kernel, size_t shift, uint64_t seed) {
    Buffers b = {0};
    assert_true(kernel->buffers.count <= BUFFERS_MAX);
    for (uint32_t i = 0; i < kernel->buffers.count; i++) {
        const KrnBuffer *buffer = &kernel->buffers.at[i];
        b.size[i] = (size_t)buffer->size * dtype_size(buffer->type);
        char *block = arena_alloc(f->arena, b.size[i] + shift + 3 * GUARD);
        b.block[i] = block + (64 - (uintptr_t)block % 64) % 64;
        memset(b.block[i], GUARD_BYTE, b.size[i] + shift + 2 * GUARD);
        b.at[i] = b.block[i] + GUARD + shift;
        if (buffer->role == KRN_IN)
            fill(buffer->type, buffer->range, b.at[i], buffer->size, &seed);
        else
            memset(b.at[i], 0xFF, b.size[i]);
    }
    return b;
}

static inline bool same_element(DType type, const void *a, const void *b, int64_t i) {
    size_t size = dtype_size(type), at = (size_t)i * size;
    if (memcmp((const char *)a + at, (const char *)b + at, size) == 0)
        return true;
    return dtype_is_real(type) && isnan(dtype_get(type, a, i)) && isnan(dtype_get(type, b, i));
}

static inline void assert_same(Fixture *f, const Kernel *kernel, const Buffers *expected,
                               const Buffers *got) {
    for (uint32_t i = 0; i < kernel->buffers.count; i++) {
        const KrnBuffer *buffer = &kernel->buffers.at[i];
        if (buffer->role == KRN_SCRATCH)
            continue;
        for (int64_t j = 0; j < buffer->size; j++)
            if (!same_element(buffer->type, expected->at[i], got->at[i], j))
                fail_msg("%s[%lld]: expected %.17g, got %.17g in\n%s",
                         name_c(kernel->names, buffer->name), (long long)j,
                         dtype_get(buffer->type, expected->at[i], j),
                         dtype_get(buffer->type, got->at[i], j), krn_print(kernel, f->arena).at);
        const unsigned char *from = (const unsigned char *)got->at[i];
        for (int g = 1; g <= GUARD; g++)
            if (from[-g] != GUARD_BYTE || from[got->size[i] + (size_t)g - 1] != GUARD_BYTE)
                fail_msg("written outside of %s", name_c(kernel->names, buffer->name));
    }
}

static inline void interpret(Fixture *f, const Kernel *kernel, const Buffers *b) {
    krn_interpret(krn_code(kernel, f->arena), b->at, 0, kernel->split_count);
}

// Runs the code in the given pieces of the split loop, in order, against the interpreter in one.
static inline void assert_equals_interpreter(Fixture *f, const Kernel *kernel, NatFunction code,
                                             int64_t pieces, size_t shift, uint64_t seed) {
    Buffers expected = buffers_make(f, kernel, shift, seed);
    Buffers got = buffers_make(f, kernel, shift, seed);
    interpret(f, kernel, &expected);
    int64_t count = kernel->split_count;
    for (int64_t p = 0; p < pieces; p++)
        code(got.at, count * p / pieces, count * (p + 1) / pieces);
    assert_same(f, kernel, &expected, &got);
}

#endif
