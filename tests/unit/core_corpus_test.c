// Core of the corpus: its text is read back, its partition is what a partition must be, and its
// launches are what was counted on paper.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/dump.h"
#include "driver.h"
#include "support/core_text.h"
#include "support/partition_check.h"

static CoreProgram *compile(Context *context, const char *path, bool small) {
    const ChkConst consts[] = {{STR("D"), STR("64")}, {STR("H"), STR("2")}, {STR("L"), STR("2")}};
    PreskCompiled compiled;
    if (!presk_compile(context, context->arena, path, small ? 3 : 0, consts, NULL, &compiled))
        fail_msg("%s", diags_render(&context->diags, context->arena, DIAG_PLAIN).at);
    return compiled.program->core;
}

static void text_and_partition(void **state) {
    (void)state;
    static const char *const paths[] = {
        "corpus/nlp/02_minigpt.psk", "corpus/nlp/03_attention.psk", "corpus/nlp/05_gpt.psk",
        "corpus/vision/01_mlp.psk",  "tests/plan/two_dots.psk",     "tests/plan/epilogue.psk",
    };
    for (uint32_t i = 0; i < COUNT_OF(paths); i++) {
        Context context = {0};
        context_init(&context);
        CoreProgram *program = compile(&context, paths[i], false);
        for (CoreFnId id = 1; id < program->fns.count; id++)
            assert_string_equal(partition_fault(program, id, false, context.arena).at, "");
        Str text = core_print(program, context.arena);
        CoreProgram *again = core_of_legal_text(&context, text.at);
        assert_string_equal(core_print(again, context.arena).at, text.at);
        context_free(&context);
    }
}

static void launches_on_paper(void **state) {
    (void)state;
    static const struct {
        const char *fn;
        uint64_t alone, fused;
    } expected[] = {
        {"Linear.apply", 2, 2}, {"LayerNorm.apply", 9, 6}, {"SelfAttention.apply", 13, 13},
        {"loss", 91, 76},       {"adamw.step", 608, 114},
    };
    Context context = {0};
    context_init(&context);
    CoreProgram *program = compile(&context, "corpus/nlp/05_gpt.psk", true);
    for (uint32_t i = 0; i < COUNT_OF(expected); i++) {
        CoreFnId fn = core_fn_find(program, str_of(expected[i].fn));
        assert_int_not_equal(fn, 0);
        assert_int_equal(core_launches(program, fn, false, true), expected[i].alone);
        assert_int_equal(core_launches(program, fn, true, true), expected[i].fused);
    }
    context_free(&context);
}

// The plan reference's example names these sites.
static void sites_of_two_dots(void **state) {
    (void)state;
    Context context = {0};
    context_init(&context);
    CoreProgram *program = compile(&context, "tests/plan/two_dots.psk", false);
    const CoreFn *twice = core_fn(program, core_fn_find(program, STR("twice")));
    const CoreFn *attend = core_fn(program, core_fn_find(program, STR("attend")));
    assert_int_equal(core_let(twice, 2)->prim, CORE_dot);
    assert_int_equal(core_let(twice, 3)->prim, CORE_dot);
    assert_int_equal(core_let(attend, 2)->prim, CORE_ein);
    assert_int_equal(core_let(attend, 3)->prim, CORE_softmax);
    context_free(&context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_partition),
        cmocka_unit_test(launches_on_paper),
        cmocka_unit_test(sites_of_two_dots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
