// The dump of fusion groups: what is in it, and launches over calls and trees.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/dump.h"
#include "support/core_text.h"

static const char *const text =
    "module W {\n  a : ℝ[3] init zeros\n  b : ℝ[4] init zeros\n  c : ℝ init zeros\n}\n"
    "fn norm{N, ...}(%0 x : ℝ[..., N]) -> ℝ[..., N] {\n"
    "  %1 : ℝ[..., 1] = mean %0 over 1 keep\n  %2 centred : ℝ[..., N] = sub %0 %1\n"
    "  %3 : ℝ[..., N] = pow %2 2\n  %4 : ℝ[..., 1] = mean %3 over 1 keep\n"
    "  %5 : ℝ[..., 1] = sqrt %4\n  %6 : ℝ[..., N] = div %2 %5\n  %7 y : ℝ[..., N] = neg %6\n"
    "  return %7\n}\n"
    "fn step(%0 p : params W, %1 g : params W) -> params W {\n"
    "  %2 : ℝ = scalar @lr\n  %3 : params W = mul %2 %1\n  %4 : params W = sub %0 %3\n"
    "  return %4\n}\n"
    "fn twice(%0 : ℝ[2, 3]) -> ℝ[2, 3] {\n  %1 : ℝ[2, 3] = call norm{3, ...: [2]} %0\n"
    "  %2 : ℝ[3, 2] = permute %1 [1, 0]\n  %3 : ℝ[2, 2] = dot %1 %2\n"
    "  %4 : ℝ[2, 3] = dot %3 %1\n  %5 : ℝ[2, 3] = call norm{3, ...: [2]} %4\n  return %5\n}\n";

static const char *const expected =
    "norm: 7 launches, 6 with fusion\n"
    "  group %7 y : ℝ[..., N]   2 members, 2 nodes\n"
    "    %6 = div %2 %5\n"
    "    %7 y = neg %6\n"
    "    without %2 centred: it is also read outside the group, by %3 (pow)\n"
    "    without %5: its type is not the group's\n"
    "\n"
    "step: 6 launches, 3 with fusion\n"
    "  group %4 : params W   2 members, 2 nodes\n"
    "    %3 = mul %2 %1\n"
    "    %4 = sub %0 %3\n"
    "\n"
    // the permute is read by a contraction alone: it launches nothing
    "twice: 2 launches, 2 with fusion (16 and 14 with its calls)\n";

static int setup(void **state) {
    static Context context;
    context_init(&context);
    *state = &context;
    return 0;
}

static int teardown(void **state) {
    context_free(*state);
    return 0;
}

static CoreProgram *partitioned(Context *context) {
    CoreProgram *program = core_of_legal_text(context, text);
    core_partition(program);
    return program;
}

static void as_text(void **state) {
    Context *c = *state;
    CoreProgram *p = partitioned(c);
    Str got = core_dump_groups(p, 0, false, c->arena);
    assert_string_equal(got.at, expected);
    assert_int_equal(core_launches(p, 3, false, true), 16);
    assert_int_equal(core_launches(p, 3, true, false), 2);
}

static void explained(void **state) {
    Context *c = *state;
    CoreProgram *p = core_of_legal_text(c, "fn f(%0 : ℝ[2]) -> ℝ[2] {\n  %1 : ℝ[2] = pow %0 3\n"
                                           "  %2 : ℝ[2] = exp %1\n  return %2\n}\n");
    core_partition(p);
    assert_string_equal(core_dump_groups(p, 1, false, c->arena).at,
                        "f: 2 launches, 2 with fusion\n");
    assert_string_equal(core_dump_groups(p, 1, true, c->arena).at,
                        "f: 2 launches, 2 with fusion\n  in no group\n"
                        "    without %1: a power above 2 expands to several products\n");
}

static void as_json(void **state) {
    Context *c = *state;
    CoreProgram *p = partitioned(c);
    json_t *root = json_loads(core_dump_groups_json(p, 0, c->arena).at, 0, NULL);
    assert_non_null(root);
    json_t *fns = json_object_get(root, "functions");
    assert_int_equal(json_array_size(fns), 3);
    json_t *step = json_array_get(fns, 1);
    assert_string_equal(json_string_value(json_object_get(step, "name")), "step");
    assert_int_equal(json_integer_value(json_object_get(step, "launches")), 6);
    assert_int_equal(json_integer_value(json_object_get(step, "fused")), 3);
    json_t *group = json_array_get(json_object_get(step, "groups"), 0);
    assert_string_equal(json_string_value(json_object_get(group, "site")), "step/%4");
    assert_int_equal(json_array_size(json_object_get(group, "members")), 2);
    json_t *norm = json_array_get(fns, 0);
    assert_int_equal(json_array_size(json_object_get(norm, "remarks")), 2);
    json_decref(root);
}

static void as_dot(void **state) {
    Context *c = *state;
    Str got = core_dump_groups_dot(partitioned(c), 1, c->arena);
    assert_non_null(strstr(got.at, "subgraph cluster_f1_7"));
    assert_non_null(strstr(got.at, "  f1_6 -> f1_7;\n"));
    uint32_t open = 0, close = 0;
    for (uint32_t i = 0; i < got.size; i++) {
        open += got.at[i] == '{';
        close += got.at[i] == '}';
    }
    assert_int_equal(open, close);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {TEST(as_text), TEST(explained), TEST(as_json), TEST(as_dot)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
