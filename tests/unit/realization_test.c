// Realizations: records read strictly, errors in full, sites, the table of types.
#include "base/file.h"
#include "realize/realization.h"
#include "support/core_text.h"

#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

static const char *const record_path = "build/realization_test.json";

static RlzRealization *read_record(Context *c, const char *text) {
    Str error;
    assert_true(file_make_folders(c->arena, record_path));
    assert_true(file_write(c->arena, record_path, text, strlen(text), &error));
    RlzRealization *made =
        rlz_realization_read(c, c->arena, str_format(c->arena, "@%s", record_path));
    unlink(record_path);
    return made;
}

static void uniform(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    RlzRealization *r = rlz_realization_read(&c, c.arena, STR("bf16"));
    assert_int_equal(r->uniform, BF16);
    assert_int_equal(r->params, F32);
    assert_int_equal(r->state, F32);
    assert_false(r->multiply_add);
    r = rlz_realization_read(&c, c.arena, STR("f64"));
    assert_int_equal(r->params, F64);
    assert_null(rlz_realization_read(&c, c.arena, STR("f23")));
    assert_string_equal(diags_render(&c.diags, c.arena, DIAG_PLAIN).at,
                        "error[E7001]: realization: `f23` is not a realization\n"
                        "   = note: expected one of: f64, f32, bf16, @FILE\n"
                        "   = help: did you mean `f32`?\n");
    context_free(&c);
}

static void records(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    RlzRealization *r = read_record(
        &c, "{ \"name\": \"mixed\", \"default\": \"bf16\", \"params\": \"bf16\",\n"
            "  \"sites\": { \"f/%3\": \"f64\", \"f/%2\" : \"f32\" }, \"product\": \"mul-add\",\n"
            "  \"reduce\": \"stripes16\", \"accumulate\": \"f32\", \"inline\": false, \"gap\": "
            "1e-3 }\n");
    assert_non_null(r);
    assert_true(str_is(r->name, "mixed"));
    assert_int_equal(r->uniform, BF16);
    assert_int_equal(r->params, BF16);
    assert_int_equal(r->state, F32);
    assert_int_equal(r->sites.count, 2);
    assert_true(str_is(r->sites.at[1].site, "f/%2"));
    assert_int_equal(r->sites.at[0].type, F64);
    assert_true(r->multiply_add);
    assert_int_equal(r->reduce, CORE_REDUCE_STRIPES16);
    assert_true(r->gap == 1e-3);
    // f32 is bf16's arithmetic type, but not that of the f64 site.
    assert_false(rlz_realization_lowers(&c, r));
    r->sites.count = 0;
    assert_true(rlz_realization_lowers(&c, r));
    context_free(&c);
}

static const struct {
    const char *text, *error;
} bad[] = {
    {"{ \"default\": \"f32\", \"sits\": {} }",
     "error[E7001]: realization: no key `sits` in a record\n"
     "  --> build/realization_test.json:1:21\n"
     "   |\n"
     " 1 | { \"default\": \"f32\", \"sits\": {} }\n"
     "   |                     ^^^^^^\n"
     "   = note: expected one of: name, default, params, state, sites, product, reduce, "
     "accumulate, "
     "inline, gap\n"
     "   = help: did you mean `sites`?\n"},
    {"{ \"default\": \"f32\",\n  \"sites\": { \"f/%1\": \"bf61\" } }",
     "error[E7001]: realization: `f/%1` has no such value\n"
     "  --> build/realization_test.json:2:22\n"
     "   |\n"
     " 2 |   \"sites\": { \"f/%1\": \"bf61\" } }\n"
     "   |                      ^^^^^^\n"
     "   = note: expected one of: f64, f32, bf16\n"
     "   = help: did you mean `bf16`?\n"},
    {"{ \"default\": 32 }", "error[E7001]: realization: `default` has no such value\n"
                            "  --> build/realization_test.json:1:14\n"
                            "   |\n"
                            " 1 | { \"default\": 32 }\n"
                            "   |              ^^\n"
                            "   = note: expected one of: f64, f32, bf16\n"},
    {"{ \"default\": \"f32\" } x", "error[E7001]: realization: end of file expected near 'x'\n"
                                   "  --> build/realization_test.json:1:22\n"
                                   "   |\n"
                                   " 1 | { \"default\": \"f32\" } x\n"
                                   "   |                      ^\n"},
    {"{ \"product\": \"mul\" }", "error[E7001]: realization: the record has no `default` type\n"
                                 "  --> build/realization_test.json:1:1\n"
                                 "   |\n"
                                 " 1 | { \"product\": \"mul\" }\n"
                                 "   | ^\n"
                                 "\n"
                                 "error[E7001]: realization: `product` has no such value\n"
                                 "  --> build/realization_test.json:1:14\n"
                                 "   |\n"
                                 " 1 | { \"product\": \"mul\" }\n"
                                 "   |              ^^^^^\n"
                                 "   = note: expected one of: fma, mul-add\n"},
};

static void records_are_strict(void **state) {
    (void)state;
    for (uint32_t i = 0; i < COUNT_OF(bad); i++) {
        Context c = {0};
        context_init(&c);
        assert_null(read_record(&c, bad[i].text));
        assert_string_equal(diags_render(&c.diags, c.arena, DIAG_PLAIN).at, bad[i].error);
        context_free(&c);
    }
    static const char *const refused[] = {
        "{ \"default\": \"f32\", \"default\": \"f32\" }", // a key twice
        "[]",
        "{ \"default\": \"f32\", }",
        "{ \"default\": \"f32\", \"inline\": true }",
        "{ \"default\": \"f32\", \"gap\": -1 }",
        "{ \"default\": \"f32\", \"name\": \"\" }",
        "{ \"default\": \"f32\", \"sites\": [] }",
        "{ \"default\": \"u8\" }",
        "",
    };
    for (uint32_t i = 0; i < COUNT_OF(refused); i++) {
        Context c = {0};
        context_init(&c);
        assert_null(read_record(&c, refused[i]));
        assert_int_equal(c.diags.errors, 1);
        context_free(&c);
    }
    Context c = {0};
    context_init(&c);
    assert_null(rlz_realization_read(&c, c.arena, STR("@build/no_such.json")));
    assert_string_equal(
        diags_render(&c.diags, c.arena, DIAG_PLAIN).at,
        "error[E7001]: realization: cannot read build/no_such.json: no such file\n");
    context_free(&c);
}

static const char *const program_text =
    "fn f(%0 : ℝ[8], %1 : ℝ[8]) -> ℝ {\n"
    "  %2 : ℝ[8] = add %0 %1\n  %3 : ℝ[8] = gelu %2\n  %4 : ℝ[8] = mul %3 %0\n"
    "  %5 : ℝ = sum %4 over 0\n  return %5\n}\n";

static void sites(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    CoreProgram *program = core_of_legal_text(&c, program_text);
    core_partition(program);
    RlzRealization *r = read_record(
        &c, "{ \"default\": \"f32\", \"sites\": { \"f/%4\": \"bf16\", \"f/%5\": \"f64\" } }");
    assert_true(rlz_realization_check(program, r));
    CoreArithmetic *table = rlz_arithmetic(program, c.arena, r, true);
    static const uint8_t types[] = {F32, F32, BF16, BF16, BF16, F64}; // members follow their root
    assert_memory_equal(table->storage[1], types, sizeof types);
    assert_int_equal(table->inputs, F32);
    assert_true(table->fusion);
    // The same type said of a member is fine, another one is not.
    r = read_record(&c, "{ \"default\": \"f32\", \"sites\": { \"f/%3\": \"f32\" } }");
    assert_true(rlz_realization_check(program, r));
    r = read_record(&c, "{ \"default\": \"f32\", \"sites\": { \"f/%3\": \"f64\" } }");
    assert_false(rlz_realization_check(program, r));
    r = read_record(&c, "{ \"default\": \"f32\", \"sites\": { \"g/%3\": \"f64\" } }");
    assert_false(rlz_realization_check(program, r));
    Str errors = diags_render(&c.diags, c.arena, DIAG_PLAIN);
    assert_non_null(strstr(errors.at, "`f/%3` is typed apart from its group"));
    assert_non_null(strstr(errors.at, "the root of its fusion group, `f/%4`, has the type f32"));
    assert_non_null(strstr(errors.at, "no site `g/%3` launches"));
    assert_non_null(strstr(errors.at, "did you mean `f/%3`?"));
    static const char *const unknown[] = {"f/%0", "f/%6", "f/%", "f%3", "/%3", "f/%3x", "f/3", ""};
    for (uint32_t i = 0; i < COUNT_OF(unknown); i++) {
        RlzRealization one = {.uniform = F32};
        RlzSite site = {str_of(unknown[i]), F32, {0}};
        vec_push(c.arena, &one.sites, site);
        assert_false(rlz_realization_check(program, &one));
    }
    context_free(&c);
}

// An optimizer's first tree is the parameters, the others are its state.
static void optimizer_trees(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    CoreProgram *program = core_of_legal_text(
        &c, "module M {\n  w : ℝ[4] init zeros\n}\n\n"
            "fn o.step(%0 : params M, %1 : params M, %2 : params M) -> (params M, params M) {\n"
            "  %3 : params M = add %2 %1\n  %4 : params M = mul %3 %1\n"
            "  %5 : params M = sub %0 %4\n  %6 : (params M, params M) = tuple %5 %3\n"
            "  return %6\n}\n");
    core_partition(program);
    RlzRealization *r =
        read_record(&c, "{ \"default\": \"bf16\", \"params\": \"f32\", \"state\": \"f64\" }");
    CoreArithmetic *table = rlz_arithmetic(program, c.arena, r, true);
    const uint8_t *types = table->storage[1];
    assert_int_equal(types[3], F64);
    assert_int_equal(types[4], F32);
    assert_int_equal(types[5], F32);
    context_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform),
        cmocka_unit_test(records),
        cmocka_unit_test(records_are_strict),
        cmocka_unit_test(sites),
        cmocka_unit_test(optimizer_trees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
