// Whole programs: constants, imports, optimizers, the training block, limits, and errors that stay
// alone.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "check/embedded.h"
#include "core/eval.h"
#include "support/check_text.h"

// ---- constants ------------------------------------------------------------------------------

static void constants(void **state) {
    (void)state;
    // Exact: 1/3 · 3 is 1, (1/10 + 2/10) is 3/10; sqrt by one correctly rounded f64 operation.
    expect_core("const A = 1 / 3 * 3\nconst B = 0.1 + 0.2\nconst N = 7 % 4 ^ 1\n"
                "const S = sqrt(2) ^ 1\nfn f(x : ℝ[A, N]) -> ℝ[1, 3] = x * B + A * -2 ^ 2\n",
                "f",
                "fn f(%0 x : ℝ[1, 3]) -> ℝ[1, 3] {\n"
                "  %1 : ℝ = scalar 0.3\n"
                "  %2 : ℝ[1, 3] = mul %0 %1\n"
                "  %3 : ℝ = scalar -4\n"
                "  %4 : ℝ[1, 3] = add %2 %3\n"
                "  return %4\n"
                "}\n");
    // Extents that a run decides stay scalars of the host.
    expect_core("dim B\nfn f(x : ℝ[B, 4 * B]) -> ℝ = sum(x) / sqrt(B * 2)\n", "f",
                "fn f(%0 x : ℝ[B, 4 * B]) -> ℝ {\n"
                "  %1 : ℝ = sum %0 over 0 1\n"
                "  %2 : ℝ = scalar sqrt([2 * B])\n"
                "  %3 : ℝ = div %1 %2\n"
                "  return %3\n"
                "}\n");
}

static void command_line(void **state) {
    (void)state;
    Context context = {0};
    context_init(&context);
    uint32_t source =
        source_add(&context.sources, STR("test.psk"),
                   STR("const D = 6\nconst E = D / 2\nfn f(x : ℝ[E]) -> ℝ = sum(x)\n"));
    ChkConst consts[] = {{STR("D"), STR("1_0e0")}};
    ChkProgram *program = chk_source(&context, context.arena, source, 1, consts);
    assert_non_null(program);
    CoreFnId f = core_fn_find(program->core, STR("f"));
    const CoreFn *fn = core_fn(program->core, f);
    assert_string_equal(core_type_text(program->core, fn->lets.at[0].type, context.arena).at,
                        "ℝ[5]");
    assert_int_equal(program->lines, 3);
    context_free(&context);
}

// ---- optimizers -----------------------------------------------------------------------------

static void optimizers(void **state) {
    (void)state;
    // lr is a hyperparameter, rate a schedule; `next p` sees the new m.
    expect_core("optimizer o {\n  lr = 1 / 4\n  rate = lr * min(1, t / 100)\n  m : params = zeros\n"
                "  next m : m + g\n  next p : p - rate * m\n}\n",
                "o.step",
                "fn o.step(%0 p : ℝ, %1 g : ℝ, %2 m : ℝ) -> (ℝ, ℝ) {\n"
                "  %3 m : ℝ = add %2 %1\n"
                "  %4 : ℝ = scalar @lr * min(1, @t / 100)\n"
                "  %5 : ℝ = mul %4 %3\n"
                "  %6 p : ℝ = sub %0 %5\n"
                "  %7 : (ℝ, ℝ) = tuple %6 %3\n"
                "  return %7\n"
                "}\n");
    // A state without a `next` line stays.
    expect_core("optimizer o {\n  m : params = zeros\n  next p : p - g ^ 2\n}\n", "o.step",
                "fn o.step(%0 p : ℝ, %1 g : ℝ, %2 m : ℝ) -> (ℝ, ℝ) {\n"
                "  %3 : ℝ = pow %1 2\n"
                "  %4 p : ℝ = sub %0 %3\n"
                "  %5 : (ℝ, ℝ) = tuple %4 %2\n"
                "  return %5\n"
                "}\n");
}

// ---- AdamW by numbers ------------------------------------------------------------------------

typedef struct AdamW {
    const Names *names;
    double step; // the value of t
} AdamW;

static bool adamw_hyper(void *data, Name name, double *value) {
    const AdamW *a = data;
    Str text = name_str(a->names, name);
    static const struct {
        const char *name;
        double value;
    } values[] = {{"lr", 0.1}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}, {"decay", 0.01}};
    for (uint32_t i = 0; i < COUNT_OF(values); i++)
        if (str_is(text, values[i].name)) {
            *value = values[i].value;
            return true;
        }
    *value = a->step;
    return str_is(text, "t");
}

// p = 1, g = 0.5 and then -0.25, with lr = 0.1: 0.899 and 0.8714673 (bias-corrected; computed by
// hand from the paper's formulas).
static void adamw(void **state) {
    (void)state;
    Checked c;
    const char *text = NULL;
    for (const Embedded *e = presk_embedded; e->path; e++)
        if (strcmp(e->path, "std/optim.psk") == 0)
            text = e->text;
    assert_non_null(text);
    check_good(&c, text);
    CoreProgram *core = c.program->core;
    Arena *arena = c.context.arena;
    const uint8_t **storage = arena_array(arena, const uint8_t *, core->fns.count);
    for (CoreFnId i = 1; i < core->fns.count; i++)
        storage[i] = arena_array(arena, uint8_t, core_fn(core, i)->lets.count); // all F64
    _Static_assert(F64 == 0, "zeroed storage is f64");
    CoreArithmetic arithmetic = {.storage = storage, .fusion = true};
    core_partition(core);
    int64_t dims[1] = {0};
    AdamW adam = {.names = c.context.names};
    CoreEval eval = {.program = core,
                     .arithmetic = &arithmetic,
                     .dims = dims,
                     .arena = arena,
                     .hyper = adamw_hyper,
                     .hyper_data = &adam};
    CoreTypeId real = core_type_real(core, 0, NULL);
    CoreValue arguments[4] = {{0}};
    for (int i = 0; i < 4; i++)
        arguments[i] = (CoreValue){.type = real, .tensor = tensor_new(arena, F64, 0, NULL)};
    tensor_set(&arguments[0].tensor, 0, 1);
    static const double gradients[] = {0.5, -0.25}, expected[] = {0.899000002, 0.871467299};
    for (uint32_t step = 0; step < 2; step++) {
        adam.step = step + 1;
        tensor_set(&arguments[1].tensor, 0, gradients[step]);
        CoreValue result =
            core_eval(&eval, core_fn_find(core, STR("adamw.step")), arguments, NULL, 0, NULL);
        assert_int_equal(result.count, 3);
        assert_true(tensor_get(&result.parts[0].tensor, 0) > expected[step] - 1e-9);
        assert_true(tensor_get(&result.parts[0].tensor, 0) < expected[step] + 1e-9);
        arguments[0] = result.parts[0];
        arguments[2] = result.parts[1];
        arguments[3] = result.parts[2];
    }
    check_end(&c);
}

// ---- training -------------------------------------------------------------------------------

static const char *const training_text =
    "import \"std/optim.psk\" as optim\n"
    "dim B <= 8\ndim T\n"
    "const N = 5\n"
    "module M {\n  param w : ℝ[N]\n}\n"
    "fn loss(p : params M, x : idx[N][B, T], y : idx[N][B, T]) -> ℝ = mean(p.w[x] - p.w[y])\n"
    "fn close(p : params M, x : idx[N][B, T], y : idx[N][B, T]) -> ℝ = 1\n"
    "training run {\n"
    "  model = M\n  loss = loss\n  optimizer = optim.adamw\n  lr = 1 / N\n  metric = close\n"
    "  data = stream \"out/x.psk.d\" |> windows(T = 2 * N) |> shuffle(seed = 3) |> batch(B = 8) |> "
    "take(4)\n"
    "  steps = 20\n  checkpoint every 10 steps to \"out/m.psk.d\"\n}\n";

static const ChkSetting *setting(const Checked *c, const char *name) {
    const ChkTraining *training = &c->program->training;
    const ChkSetting *found = NULL;
    for (uint32_t i = 0; i < training->settings.count; i++)
        if (str_is(name_str(c->context.names, training->settings.at[i].name), name)) {
            assert_null(found);
            found = &training->settings.at[i];
        }
    assert_non_null(found);
    return found;
}

static void training(void **state) {
    (void)state;
    Checked c;
    check_good(&c, training_text);
    const ChkTraining *t = &c.program->training;
    CoreProgram *core = c.program->core;
    assert_true(t->present);
    assert_string_equal(name_c(c.context.names, core->modules.at[t->model].name), "M");
    assert_int_equal(core_type_params(core, t->tree), core_fn(core, t->loss)->lets.at[0].type);
    assert_int_equal(t->loss, core_fn_find(core, STR("loss")));
    assert_int_equal(t->step, core_fn_find(core, STR("adamw.step")));
    assert_string_equal(t->stream.at, "out/x.psk.d");
    static const char *const stages[] = {"windows", "shuffle", "batch", "take"};
    static const char *const keys[] = {"T", "seed", "B", ""};
    static const int64_t values[] = {10, 3, 8, 4};
    assert_int_equal(t->stages.count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        const ChkStage *stage = &t->stages.at[i];
        int64_t value;
        assert_string_equal(stage->name.at, stages[i]);
        assert_int_equal(stage->count, 1);
        assert_string_equal(name_c(c.context.names, stage->keys[0]), keys[i]);
        assert_true(rational_is_int(stage->values[0], &value));
        assert_int_equal(value, values[i]);
    }
    assert_string_equal(rational_text(c.context.arena, setting(&c, "lr")->value).at, "0.2");
    assert_string_equal(rational_text(c.context.arena, setting(&c, "beta2")->value).at, "0.999");
    assert_string_equal(rational_text(c.context.arena, setting(&c, "steps")->value).at, "20");
    assert_null(setting(&c, "metric")->value);
    assert_string_equal(setting(&c, "metric")->text.at, "close");
    assert_int_equal(t->checkpoint_every, 10);
    assert_string_equal(t->checkpoint_path.at, "out/m.psk.d");
    check_end(&c);
}

// ---- imports --------------------------------------------------------------------------------

static void write_file(const char *folder, const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void imports(void **state) {
    (void)state;
    char folder[] = "/tmp/presk_check_XXXXXX", sub[64], root[64];
    assert_non_null(mkdtemp(folder));
    snprintf(sub, sizeof sub, "%s/lib", folder);
    snprintf(root, sizeof root, "%s/root.psk", folder);
    Context context = {0};
    context_init(&context);
    char inner[80];
    snprintf(inner, sizeof inner, "%s/x", sub);
    assert_true(file_make_folders(context.arena, inner));
    // Two imports of one file by different paths are one unit; paths are relative to the importer.
    write_file(folder, "root.psk",
               "import \"lib/a.psk\" as a\nimport \"./lib/../base.psk\" as base\n"
               "fn f(p : params a.Scale, x : ℝ[base.N]) -> ℝ[3] = a.Scale.apply(p, a.twice(x))\n");
    write_file(sub, "a.psk",
               "import \"../base.psk\" as base\n"
               "module Scale {\n  param w : ℝ[base.N]\n"
               "  fn apply(x : ℝ[base.N]) -> ℝ[base.N] = x * w\n}\n"
               "fn twice(x : ℝ[base.N]) -> ℝ[base.N] = x + x\nfn unused(x : ℝ) -> ℝ = x\n");
    write_file(folder, "base.psk", "const N = 3\n");
    ChkProgram *program = chk_program(&context, context.arena, root, 0, NULL);
    assert_non_null(program);
    CoreFnId f = core_fn_find(program->core, STR("f"));
    assert_string_equal(core_print_fn(program->core, f, context.arena).at,
                        "fn f(%0 p : params Scale, %1 x : ℝ[3]) -> ℝ[3] {\n"
                        "  %2 : ℝ[3] = call twice %1\n"
                        "  %3 : ℝ[3] = call Scale.apply %0 %2\n"
                        "  return %3\n"
                        "}\n");
    assert_int_equal(core_fn_find(program->core, STR("unused")), 0);
    assert_int_equal(program->lines, 3 + 7 + 1);
    // A cycle through two files.
    write_file(folder, "base.psk", "import \"lib/a.psk\" as a\nconst N = 3\n");
    assert_null(chk_program(&context, context.arena, root, 0, NULL));
    assert_int_equal(context.diags.all.at[0]->code, DIAG_E1004);
    context_free(&context);
}

// ---- errors ---------------------------------------------------------------------------------

// What is built on a mistake is not reported again; other mistakes are.
static void alone(void **state) {
    (void)state;
    expect_codes("fn f(x : ℝ[3]) -> ℝ[3] =\n  let a = x + y\n  let (b, c) = a\n"
                 "  softmax(b · c, nothing) + exp(a)[x]\n",
                 "E1001");
    expect_codes("const A = B\ntype T = ℝ[A]\ndim D <= A\nmodule M {\n  param w : T\n"
                 "  fn apply(x : T) -> T = x * w\n}\n"
                 "fn f(p : params M, x : T) -> T = M.apply(p, x)\n",
                 "E1001");
    expect_codes("fn f(x : ℝ[3]) -> ℝ[3] = x + q\nfn g(x : ℝ[3]) -> ℝ[3] = f(f(x)) + r\n",
                 "E1001 E1001");
    expect_codes("module A {\n  use b = Missing\n  fn apply(x : ℝ) -> ℝ = b.apply(x)\n}\n",
                 "E1001");
    expect_codes("import \"nowhere.psk\" as n\nmodule M {\n  use a = n.Linear{3}\n"
                 "  fn apply(x : ℝ) -> ℝ = a.apply(n.f(x))\n}\nfn f(x : ℝ[3]) -> ℝ[4] = x\n",
                 "E1003 E2003");
    // A syntax error comes alone.
    expect_codes("const A = \nfn f(x : ℝ[A]) -> ℝ = x\n", "E0006");
}

static void limits(void **state) {
    (void)state;
    StrBuf buf = {.arena = NULL};
    Context context = {0};
    context_init(&context);
    buf.arena = context.arena;
    // A sum of ten thousand terms nests ten thousand deep to the left.
    buf_text(&buf, "fn f(x : ℝ) -> ℝ = x");
    for (int i = 0; i < 10000; i++)
        buf_text(&buf, " + x");
    buf_char(&buf, '\n');
    expect_codes(buf_str(&buf).at, "E0010");
    // λs that double, fifty times.
    buf = (StrBuf){.arena = context.arena};
    buf_text(&buf, "fn f(x : ℝ) -> ℝ =\n  let f0 = λ y. y\n");
    for (int i = 1; i <= 50; i++)
        buf_format(&buf, "  let f%d = λ y. f%d(f%d(y))\n", i, i - 1, i - 1);
    buf_text(&buf, "  f50(x)\n");
    expect_codes(buf_str(&buf).at, "E1018");
    // Extents of no length and of the largest length are legal.
    expect_codes("fn f(x : ℝ[0, 9223372036854775807]) -> ℝ = sum(x)\n", "");
    expect_codes("fn f(x : ℝ[9223372036854775808]) -> ℝ = sum(x)\n", "E2015");
    context_free(&context);
}

// ---- the corpus -----------------------------------------------------------------------------

// Launches of a function with everything it calls; one for each leaf of a tree.
static uint32_t launches(CoreProgram *core, CoreFnId id, Arena *arena) {
    const CoreFn *fn = core_fn(core, id);
    uint32_t count = 0;
    for (uint32_t i = 0; i < fn->lets.count; i++) {
        const CoreLet *let = &fn->lets.at[i];
        const CoreType *type = core_type(core, let->type);
        CoreLeaf *leaves;
        if (let->prim == CORE_call)
            count += launches(core, let->attr->callee, arena);
        else if (core_prims[let->prim].class != CORE_FREE)
            count +=
                type->kind == CORE_PARAMS ? core_tree_leaves(core, type->tree, arena, &leaves) : 1;
    }
    return count;
}

static void corpus(void **state) {
    (void)state;
    Context context = {0};
    context_init(&context);
    const char *path = access("corpus/nlp/05_gpt.psk", R_OK) == 0 ? "corpus/nlp/05_gpt.psk"
                                                                  : "../corpus/nlp/05_gpt.psk";
    ChkConst consts[] = {{STR("D"), STR("64")}, {STR("H"), STR("2")}, {STR("L"), STR("2")}};
    ChkProgram *program = chk_program(&context, context.arena, path, 3, consts);
    assert_non_null(program);
    Str errors;
    assert_true(core_verify(program->core, context.arena, &errors));
    static const struct {
        const char *fn;
        uint32_t launches;
    } known[] = {{"Linear.apply", 2},
                 {"LayerNorm.apply", 9},
                 {"SelfAttention.apply", 13},
                 {"loss", 91},
                 {"adamw.step", 608}};
    for (uint32_t i = 0; i < COUNT_OF(known); i++) {
        CoreFnId fn = core_fn_find(program->core, str_of(known[i].fn));
        assert_int_not_equal(fn, 0);
        assert_int_equal(launches(program->core, fn, context.arena), known[i].launches);
    }
    context_free(&context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants), cmocka_unit_test(command_line), cmocka_unit_test(optimizers),
        cmocka_unit_test(adamw),     cmocka_unit_test(training),     cmocka_unit_test(imports),
        cmocka_unit_test(alone),     cmocka_unit_test(limits),       cmocka_unit_test(corpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
