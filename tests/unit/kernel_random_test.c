// Random kernels: legal, covering, the same after printing and reading, and the same however a
// launch is cut; and shrinking finds small ones.
#include "support/random_kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

enum { KERNELS = 1500, CHOICES = 500, GUARD = 64 };

typedef struct Seen {
    uint32_t op[KRN_OP_COUNT], lanes[KRN_LANES_MAX + 1], scalar[KRN_F64 + 1];
    uint32_t load[DTYPE_COUNT], store[DTYPE_COUNT], share[KRN_TAIL + 1], empty_loops, streams;
} Seen;

static void note(Seen *seen, const Kernel *kernel) {
    for (KrnValue i = 0; i < kernel->insts.count; i++) {
        const KrnInst *inst = &kernel->insts.at[i];
        seen->op[inst->op]++;
        seen->lanes[inst->type.lanes]++;
        seen->scalar[inst->type.scalar]++;
        seen->streams += inst->flags == KRN_STREAM;
        if (inst->op != KRN_LOAD && inst->op != KRN_STORE)
            continue;
        uint32_t buffer = kernel->addresses.at[inst->address].buffer;
        uint32_t *count = inst->op == KRN_LOAD ? seen->load : seen->store;
        count[kernel->buffers.at[buffer].type]++;
    }
    for (uint32_t i = 0; i < kernel->loops.count; i++) {
        seen->share[kernel->loops.at[i].share]++;
        seen->empty_loops += krn_loop_count(&kernel->loops.at[i]) == 0;
    }
}

static void all_above(const char *what, const uint32_t *counts, uint32_t from, uint32_t to,
                      uint32_t least) {
    for (uint32_t i = from; i < to; i++) {
        if (counts[i] < least)
            fail_msg("%s %u occurs %u times", what, i, counts[i]);
    }
}

static void kernels_are_legal_and_cover(void **state) {
    (void)state;
    Seen seen;
    memset(&seen, 0, sizeof seen);
    for (uint64_t seed = 0; seed < KERNELS; seed++) {
        Context context = {0};
        context_init(&context);
        Arena *arena = context.arena;
        RandomChoices choices = random_choices(arena, seed, CHOICES);
        Kernel *kernel = random_kernel(arena, context.names, choices);
        Str errors, text = krn_print(kernel, arena);
        if (!krn_verify(kernel, arena, &errors))
            fail_msg("seed %d\n%s%s", (int)seed, errors.at, text.at);
        Kernel *again = krn_read(&context, arena, source_add(&context.sources, STR("x"), text));
        if (!again)
            fail_msg("%s", diags_render(&context.diags, arena, DIAG_PLAIN).at);
        assert_string_equal(krn_print(again, arena).at, text.at);
        note(&seen, kernel);
        context_free(&context);
    }
    all_above("operation", seen.op, 0, KRN_OP_COUNT, 40);
    all_above("lane count", seen.lanes, 1, 17, 100);
    all_above("scalar type", seen.scalar, KRN_I1, KRN_F64 + 1, 100);
    all_above("store type", seen.store, 0, DTYPE_COUNT, 40);
    all_above("load type", seen.load, 0, DTYPE_COUNT, 20);
    all_above("share", seen.share, 0, KRN_TAIL + 1, 100);
    assert_true(seen.empty_loops > 100 && seen.streams > 100);
}

// ---- parts of a launch ----------------------------------------------------------------------

static uint64_t next_random(uint64_t *state) { // SplitMix64, Steele et al. 2014
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

typedef struct Buffers {
    void *at[RANDOM_BUFFERS_MAX];
    size_t size[RANDOM_BUFFERS_MAX];
} Buffers;

static Buffers make_buffers(Arena *arena, const Kernel *kernel) {
    Buffers b = {{0}, {0}};
    uint64_t random = 1;
    assert_true(kernel->buffers.count <= RANDOM_BUFFERS_MAX);
    for (uint32_t i = 0; i < kernel->buffers.count; i++) {
        const KrnBuffer *buffer = &kernel->buffers.at[i];
        b.size[i] = (size_t)buffer->size * dtype_size(buffer->type);
        char *block = arena_alloc(arena, b.size[i] + 2 * GUARD);
        memset(block, 0xFF, b.size[i] + 2 * GUARD);
        b.at[i] = block + GUARD;
        for (int64_t k = 0; k < buffer->size && buffer->role == KRN_IN; k++) {
            uint64_t bits = next_random(&random);
            if (dtype_is_real(buffer->type))
                dtype_set(buffer->type, b.at[i], k, (double)(int64_t)(bits >> 50) - 8000);
            else if (buffer->range)
                dtype_set(buffer->type, b.at[i], k, (double)(bits % (uint64_t)buffer->range));
            else
                dtype_set(buffer->type, b.at[i], k, (double)(bits % 251));
        }
    }
    return b;
}

static void parts_make_the_whole(void **state) {
    (void)state;
    uint32_t split = 0, several = 0;
    for (uint64_t seed = 0; seed < KERNELS; seed++) {
        Context context = {0};
        context_init(&context);
        Arena *arena = context.arena;
        Kernel *kernel = random_kernel(arena, context.names, random_choices(arena, seed, CHOICES));
        KrnCode *code = krn_code(kernel, arena);
        Buffers whole = make_buffers(arena, kernel), parts = make_buffers(arena, kernel);
        krn_interpret(code, whole.at, 0, kernel->split_count);
        for (int64_t i = kernel->split_count; i > 0; i--)
            krn_interpret(code, parts.at, i - 1, i);
        if (kernel->split_count == 0)
            krn_interpret(code, parts.at, 0, 0);
        split += kernel->split_count > 1;
        uint32_t loops = 0;
        for (uint32_t i = 0; i < kernel->loops.count; i++)
            loops += kernel->loops.at[i].share == KRN_SPLIT;
        several += loops > 1;
        for (uint32_t i = 0; i < kernel->buffers.count; i++) {
            const unsigned char *at = whole.at[i];
            if (kernel->buffers.at[i].role != KRN_SCRATCH &&
                memcmp(at, parts.at[i], whole.size[i]) != 0)
                fail_msg("seed %d\n%s", (int)seed, krn_print(kernel, arena).at);
            for (int g = 1; g <= GUARD; g++)
                assert_true(at[-g] == 0xFF && at[whole.size[i] + (size_t)g - 1] == 0xFF);
        }
        context_free(&context);
    }
    assert_true(split > 300);
    assert_true(several > 50);
}

// ---- shrinking ------------------------------------------------------------------------------

static bool has_wide_fma(void *data, Kernel *kernel) {
    (void)data;
    for (KrnValue i = 0; i < kernel->insts.count; i++) {
        const KrnInst *inst = &kernel->insts.at[i];
        if (inst->op == KRN_FMA && inst->type.scalar == KRN_F64 && inst->type.lanes > 4)
            return true;
    }
    return false;
}

static void shrinking_finds_small_kernels(void **state) {
    (void)state;
    uint32_t found = 0;
    for (uint64_t seed = 0; found < 3; seed++) {
        Context context = {0};
        context_init(&context);
        Arena *arena = context.arena;
        RandomChoices choices = random_choices(arena, seed, CHOICES);
        if (has_wide_fma(NULL, random_kernel(arena, context.names, choices))) {
            choices = random_shrink(arena, context.names, choices, 3000, has_wide_fma, NULL);
            Kernel *kernel = random_kernel(arena, context.names, choices);
            assert_true(has_wide_fma(NULL, kernel));
            // An fma in a loop or two, constants to feed it, a store at each end.
            assert_true(kernel->insts.count <= 30 && choices.count <= 60);
            found++;
        }
        context_free(&context);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_legal_and_cover),
        cmocka_unit_test(parts_make_the_whole),
        cmocka_unit_test(shrinking_finds_small_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
