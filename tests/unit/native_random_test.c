// Random kernels as native code against the interpreter, bit for bit, whole and in pieces, on
// every target of this machine. A kernel that fails is made small before it is shown.
#include "native_support.h"
#include "support/random_kernel.h"

enum { CHOICES = 350 };

typedef struct Trial {
    Fixture *f;
    uint32_t target;
} Trial;

// Runs native code in `pieces` of the split loop; the seed gives operands and alignment.
static Buffers run_native(Fixture *f, const Kernel *kernel, NatFunction code, uint64_t seed) {
    Buffers b = buffers_make(f, kernel, seed % 2 * 8, seed);
    int64_t count = kernel->split_count, pieces = MAX(MIN(1 + (int64_t)(seed % 3), count), 1);
    for (int64_t i = 0; i < pieces; i++)
        code(b.at, count * i / pieces, count * (i + 1) / pieces);
    return b;
}

static bool agrees(Fixture *f, const Kernel *kernel, NatFunction code, uint64_t seed) {
    Buffers expected = buffers_make(f, kernel, seed % 2 * 8, seed);
    interpret(f, kernel, &expected);
    Buffers got = run_native(f, kernel, code, seed);
    for (uint32_t i = 0; i < kernel->buffers.count; i++) {
        const KrnBuffer *buffer = &kernel->buffers.at[i];
        const unsigned char *from = got.at[i];
        for (int64_t j = 0; j < buffer->size && buffer->role != KRN_SCRATCH; j++)
            if (!same_element(buffer->type, expected.at[i], got.at[i], j))
                return false;
        for (int g = 1; g <= GUARD; g++)
            if (from[-g] != GUARD_BYTE || from[got.size[i] + (size_t)g - 1] != GUARD_BYTE)
                return false;
    }
    return true;
}

static bool fails(void *data, Kernel *kernel) {
    Trial *trial = data;
    Native *native = fixture_native(trial->f, trial->target, NULL, true);
    NatFunction code;
    bool wrong = !nat_compile(native, 1, &kernel, &code);
    for (uint64_t seed = 1; seed <= 3 && !wrong; seed++)
        wrong = !agrees(trial->f, kernel, code, seed);
    nat_free(native);
    return wrong;
}

static void show_small(Fixture *f, uint32_t target, uint64_t number) {
    Trial trial = {f, target};
    RandomChoices choices = random_choices(f->arena, number, CHOICES);
    choices = random_shrink(f->arena, f->context.names, choices, 500, fails, &trial);
    Kernel *kernel = random_kernel(f->arena, f->context.names, choices);
    fprintf(stderr, "kernel %llu, made small:\n%s", (unsigned long long)number,
            krn_print(kernel, f->arena).at);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        Buffers expected = buffers_make(f, kernel, seed % 2 * 8, seed);
        Native *native = fixture_native(f, target, NULL, true);
        NatFunction code;
        assert_true(nat_compile(native, 1, &kernel, &code));
        interpret(f, kernel, &expected);
        Buffers got = run_native(f, kernel, code, seed);
        assert_same(f, kernel, &expected, &got);
        nat_free(native);
    }
    fail_msg("kernel %llu differs only before it is made small", (unsigned long long)number);
}

static void on_target(uint32_t target, uint64_t first, uint32_t count) {
    if (nat_machine_target() < target) {
        print_message("skipped: this machine has no vectors of %u bits\n", target);
        skip();
    }
    Fixture f;
    fixture_open(&f);
    Kernel **kernels = arena_array(f.arena, Kernel *, count);
    NatFunction *code = arena_array(f.arena, NatFunction, count);
    for (uint32_t i = 0; i < count; i++)
        kernels[i] =
            random_kernel(f.arena, f.context.names, random_choices(f.arena, first + i, CHOICES));
    Native *native = fixture_native(&f, target, NULL, true);
    bool done = nat_compile(native, count, kernels, code);
    assert_no_diagnostics(&f);
    assert_true(done);
    for (uint32_t i = 0; i < count; i++)
        for (uint64_t seed = 1; seed <= 3; seed++)
            if (!agrees(&f, kernels[i], code[i], seed))
                show_small(&f, target, first + i);
    nat_free(native);
    fixture_close(&f);
}

static void random_kernels_in_512_bits(void **state) {
    (void)state;
    on_target(512, 0, 200);
}

static void random_kernels_in_256_bits(void **state) {
    (void)state;
    on_target(256, 10000, 200);
}

static void random_kernels_in_128_bits(void **state) {
    (void)state;
    on_target(128, 20000, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_kernels_in_512_bits),
        cmocka_unit_test(random_kernels_in_256_bits),
        cmocka_unit_test(random_kernels_in_128_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
