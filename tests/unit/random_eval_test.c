// Random programs through the reference evaluator, by what must not change a bit: fusion in f64
// and f32, dead code and the text form in every realization.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "realize/realization.h"
#include "support/random_value.h"

enum { SEEDS = 150, SIZE = 14 };

static const char *const realizations[] = {"f64", "f32", "bf16"};

static CoreValue evaluate(Context *c, const RandomProgram *r, const char *realization, bool fusion,
                          uint64_t *launches) {
    RlzRealization *record = rlz_realization_read(c, c->arena, str_of(realization));
    CoreArithmetic *arithmetic = rlz_arithmetic(r->core, c->arena, record, fusion);
    CoreValue *arguments = random_arguments(r, 1, arithmetic->inputs, arithmetic->params, c->arena);
    CoreEval eval = {
        .program = r->core, .arithmetic = arithmetic, .dims = r->dims, .arena = c->arena};
    CoreValue value = core_eval(&eval, r->entry, arguments, NULL, 0, NULL);
    *launches = eval.launches;
    if (c->diags.errors)
        fail_msg("seed %llu: %s\n%s", (unsigned long long)r->seed,
                 diags_render(&c->diags, c->arena, DIAG_PLAIN).at,
                 random_program_text(r, c->arena).at);
    return value;
}

static void expect_same(Context *c, const RandomProgram *r, const CoreValue *a, const CoreValue *b,
                        const char *realization, const char *what) {
    Str difference = value_difference(a, b, c->arena);
    if (difference.size)
        fail_msg("seed %llu, %s, %s: %s\n%s", (unsigned long long)r->seed, realization, what,
                 difference.at, random_program_text(r, c->arena).at);
}

static void one(uint64_t seed, uint64_t *fused, uint64_t *unfused) {
    Context c = {0};
    context_init(&c);
    RandomProgram r = random_program(&c, seed, SIZE);
    core_fold(r.core);
    core_partition(r.core);
    RandomProgram read = random_program_read(&c, random_program_text(&r, c.arena));
    RandomProgram live = random_program_read(&c, random_program_text(&r, c.arena));
    core_dce(live.core);
    for (uint32_t i = 0; i < COUNT_OF(realizations); i++) {
        const char *realization = realizations[i];
        uint64_t launches[4];
        CoreValue value = evaluate(&c, &r, realization, true, &launches[0]);
        CoreValue apart = evaluate(&c, &r, realization, false, &launches[1]);
        CoreValue again = evaluate(&c, &read, realization, true, &launches[2]);
        CoreValue lean = evaluate(&c, &live, realization, true, &launches[3]);
        if (strcmp(realization, "bf16") != 0)
            expect_same(&c, &r, &value, &apart, realization, "without fusion");
        expect_same(&c, &r, &value, &again, realization, "read from text");
        expect_same(&c, &r, &value, &lean, realization, "without dead code");
        assert_true(launches[0] <= launches[1] && launches[3] <= launches[0]);
        assert_int_equal(launches[0], launches[2]);
        *fused += launches[0];
        *unfused += launches[1];
    }
    context_free(&c);
}

static void what_changes_no_bit(void **state) {
    (void)state;
    uint64_t fused = 0, unfused = 0;
    Context c = {0};
    context_init(&c);
    uint64_t *kept;
    for (uint32_t i = 0, count = random_program_seeds(c.arena, &kept); i < count; i++)
        one(kept[i], &fused, &unfused);
    context_free(&c);
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        one(seed, &fused, &unfused);
    assert_true(fused < unfused);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_changes_no_bit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
