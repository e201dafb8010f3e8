// Random programs by the kernel interpreter and by native code, bit for bit against the reference
// evaluator. A program that differs is shrunk and printed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/executors.h"

enum { SEEDS = 80, NATIVE_SEEDS = 12, SIZE = 16 };

static char cache[] = "/tmp/presk-random-XXXXXX"; // of native code

static Str difference(Context *c, const RandomProgram *r, const ExecutorsOptions *options) {
    core_fold(r->core);
    core_partition(r->core);
    core_dce(r->core);
    ExecutorsOptions given = *options;
    NatOptions native = {.cache_folder = cache, .target = options->target};
    if (options->backend == RT_NATIVE && !(given.native = nat_new(c, c->arena, &native)))
        return diags_render(&c->diags, c->arena, DIAG_PLAIN);
    Str text = executors_difference(c, r, &given);
    if (given.native)
        nat_free(given.native);
    return text;
}

static bool differs(void *data, const RandomProgram *r) {
    return difference(r->core->context, r, data).size > 0;
}

static void one(uint64_t seed, ExecutorsOptions options) {
    Context c = {0};
    context_init(&c);
    RandomProgram r = random_program(&c, seed, SIZE);
    RandomProgram copy = random_program_read(&c, random_program_text(&r, c.arena));
    Str text = difference(&c, &copy, &options);
    if (text.size) {
        Str small = random_program_shrink(&c, &r, 1000, differs, &options);
        RandomProgram shrunk = random_program_read(&c, small);
        fprintf(stderr, "seed %llu, %s: %s\nshrunk: %s\n%s", (unsigned long long)seed,
                options.realization, text.at, difference(&c, &shrunk, &options).at, small.at);
        fail();
    }
    context_free(&c);
}

static void all(ExecutorsOptions options) {
    uint64_t launched[RLZ_KIND_COUNT] = {0};
    options.launched = launched;
    Context c = {0};
    context_init(&c);
    uint64_t *kept;
    for (uint32_t i = 0, count = random_program_seeds(c.arena, &kept); i < count; i++)
        one(kept[i], options);
    context_free(&c);
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        one(seed, options);
    for (uint32_t kind = 0; kind < RLZ_KIND_COUNT; kind++)
        assert_true(launched[kind] > SEEDS / 10);
}

static void f64(void **state) {
    (void)state;
    all((ExecutorsOptions){RT_KERNEL, "f64", 128, true, 1, NULL, NULL});
}

static void f32_unfused(void **state) {
    (void)state;
    all((ExecutorsOptions){RT_KERNEL, "f32", 512, false, 3, NULL, NULL});
}

static void f32(void **state) {
    (void)state;
    all((ExecutorsOptions){RT_KERNEL, "f32", 256, true, 2, NULL, NULL});
}

static void bf16(void **state) {
    (void)state;
    all((ExecutorsOptions){RT_KERNEL, "bf16", 512, true, 1, NULL, NULL});
}

static void native(void **state) {
    (void)state;
    static const char *const realizations[] = {"f32", "f64", "bf16"};
    assert_non_null(mkdtemp(cache));
    for (uint64_t seed = 1; seed <= NATIVE_SEEDS; seed++)
        one(seed, (ExecutorsOptions){RT_NATIVE, realizations[seed % 3], nat_machine_target(), true,
                                     1 + (uint32_t)seed % 3, NULL, NULL});
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", cache);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f64),  cmocka_unit_test(f32),    cmocka_unit_test(f32_unfused),
        cmocka_unit_test(bf16), cmocka_unit_test(native),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
