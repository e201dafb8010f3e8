// Training: values of the optimizer against those computed by hand, bits that depend on no backend,
// thread, place in memory or interruption, and state files.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/file.h"
#include "core/launch.h"
#include "driver.h"
#include "runtime/program.h"
#include "runtime/train.h"

// Calls for memory of everything in the program, where they can be counted.
#if defined(__GLIBC__) && !defined(PRESK_MALLOC_ARENAS)
static uint64_t calls_for_memory;
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *at, size_t size);
void *malloc(size_t size) {
    calls_for_memory++;
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
    calls_for_memory++;
    return __libc_calloc(count, size);
}
void *realloc(void *at, size_t size) {
    calls_for_memory++;
    return __libc_realloc(at, size);
}
#else
static const uint64_t calls_for_memory = 0;
#endif

// ---- a run ------------------------------------------------------------------------------------

typedef struct Run {
    Context context;
    Arena *arena;
    char folder[64];
    PreskCompiled compiled;
    RlzRealization *realization;
    RtData data;
    RtStream stream;
    RtOptions options;
    bool one; // all leaves of each of the optimizer's groups in one launch
    RtTrainer *trainer;
} Run;

typedef struct Choice {
    RtBackend backend;
    const char *arithmetic;
    uint32_t workers;
    bool no_fusion;
    uint64_t seed;
} Choice;

static const char *path_in(Run *run, const char *name) {
    return str_format(run->context.arena, "%s/%s", run->folder, name).at;
}

static RtPath rt_path(Run *run, const char *name) {
    return (RtPath){&run->context.diags, run->context.arena, path_in(run, name), {0}};
}

static void assert_good(Run *run, bool good) {
    if (!good || run->context.diags.errors)
        fail_msg("%s", diags_render(&run->context.diags, run->context.arena, DIAG_PLAIN).at);
}

static void assert_code(Run *run, const char *code) {
    assert_true(run->context.diags.all.count > 0);
    assert_string_equal(diag_code_text(run->context.diags.all.at[0]->code), code);
    run->context.diags.all.count = run->context.diags.errors = 0;
}

// A data file of `count` samples of one real array of `width` values, sample after sample.
static void write_data(Run *run, uint64_t count, int64_t width, const double *values) {
    RtPath path = rt_path(run, "data.psk.d");
    RtLeaf leaf = {.type = F64, .rank = width > 1, .extent = {width}};
    RtDataType type;
    RtDataWriter writer;
    assert_good(run, rt_data_type_of(&path, 1, &leaf, &type) &&
                         rt_data_begin(&path, &type, count, &writer));
    for (uint64_t i = 0; i < count; i++)
        rt_data_put_bytes(&writer, values + i * (uint64_t)width);
    assert_good(run, rt_data_commit(&writer));
}

static void open_run(Run *run) {
    memset(run, 0, sizeof *run);
    context_init(&run->context);
    strcpy(run->folder, "/tmp/presk-train-XXXXXX");
    assert_non_null(mkdtemp(run->folder));
}

static void close_trainer(Run *run) {
    if (run->options.pool)
        pool_free(run->options.pool);
    if (run->options.native)
        nat_free(run->options.native);
    rt_data_close(&run->data);
    run->options = (RtOptions){0};
    run->data = (RtData){0};
}

static void close_run(Run *run) {
    close_trainer(run);
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", run->folder);
    assert_int_equal(system(command), 0);
    context_free(&run->context);
}

static int64_t stage_value(const ChkTraining *block, const char *name) {
    int64_t value = -1;
    for (uint32_t i = 0; i < block->stages.count; i++)
        if (str_is(block->stages.at[i].name, name))
            assert_true(rational_is_int(block->stages.at[i].values[0], &value));
    return value;
}

// "leaves": "one" for every launch over a tree of a function, on all workers.
static const RlzPlan *plan_of_leaves(Run *run, CoreFnId id) {
    CoreProgram *core = run->compiled.program->core;
    const CoreFn *fn = core_fn(core, id);
    StrBuf buf = {.arena = run->arena};
    buf_text(&buf, "{ \"realization\": \"f32\", \"layout\": { ");
    const char *comma = "";
    for (CoreLetId let = fn->params; let < fn->lets.count; let++)
        if (core_let_launches(fn, let, true) &&
            core_type(core, core_let(fn, let)->type)->kind == CORE_PARAMS) {
            buf_format(&buf,
                       "%s\"%s\": { \"leaves\": \"one\", \"split\": { \"depth\": 0, "
                       "\"workers\": \"all\" } }",
                       comma, core_site_text(core, id, let, run->arena).at);
            comma = ", ";
        }
    buf_text(&buf, " } }");
    Str text = buf_str(&buf), error;
    const char *path = path_in(run, "plan.json");
    assert_true(file_write(run->arena, path, text.at, text.size, &error));
    RlzPlan *plan = rlz_plan_read(&run->context, run->arena, str_of(path));
    assert_good(run,
                plan && rlz_plan_check(core, plan, run->options.arithmetic, run->options.target));
    return plan;
}

static void make_options(Run *run, const Choice *choice) {
    run->options = (RtOptions){.backend = choice->backend,
                               .target = (RlzTarget)nat_machine_target(),
                               .pool = pool_new(MAX(choice->workers, 1u))};
    run->options.arithmetic = rlz_arithmetic(run->compiled.program->core, run->arena,
                                             run->realization, !choice->no_fusion);
    if (run->one)
        run->options.plan = plan_of_leaves(run, run->compiled.program->training.step);
    if (choice->backend != RT_NATIVE)
        return;
    NatOptions native = {.target = (uint32_t)run->options.target, .threads = 2};
    run->options.native = nat_new(&run->context, run->arena, &native);
    assert_good(run, run->options.native != NULL);
}

// A trainer of the program's training block, whose stages are shuffle and batch of B, over
// data.psk.d.
static void make_trainer(Run *run, const char *program, const Choice *choice) {
    Str error;
    assert_true(file_write(run->context.arena, path_in(run, "program.psk"), program,
                           strlen(program), &error));
    run->arena = run->context.arena;
    assert_good(run, presk_compile(&run->context, run->arena, path_in(run, "program.psk"), 0, NULL,
                                   NULL, &run->compiled));
    const ChkTraining *block = &run->compiled.program->training;
    CoreProgram *core = run->compiled.program->core;
    const Names *names = run->context.names;
    run->realization = rlz_realization_read(
        &run->context, run->arena, str_of(choice->arithmetic ? choice->arithmetic : "f32"));
    make_options(run, choice);
    RtPath path = rt_path(run, "data.psk.d");
    int64_t shuffle = stage_value(block, "shuffle");
    RtStreamSpec stream = {.batch = stage_value(block, "batch"),
                           .take = -1,
                           .shuffle = shuffle >= 0,
                           .seed = (uint64_t)MAX(shuffle, 0)};
    assert_good(run, rt_data_open(&path, &run->data) &&
                         rt_stream_new(&run->data, &stream, &run->stream));
    RtBinding *loss = rt_bind(core, run->arena, name_str(names, core_fn(core, block->loss)->name));
    assert_good(
        run, loss &&
                 rt_bind_batch(loss, &run->stream, stream.batch, run->options.arithmetic->inputs) &&
                 rt_bind_dims_done(loss));
    RtHyper *hypers = arena_array(run->arena, RtHyper, block->settings.count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < block->settings.count; i++)
        if (block->settings.at[i].value || block->settings.at[i].schedule) {
            const ChkSetting *setting = &block->settings.at[i];
            hypers[count++] = (RtHyper){
                .name = setting->name,
                .value = setting->value ? rational_round(setting->value, F64) : 0,
                .schedule = setting->schedule,
            };
        }
    RtTrainSpec spec = {.loss = loss,
                        .gradient = run->compiled.gradient,
                        .step = block->step,
                        .model = name_str(names, core->modules.at[block->model].name),
                        .options = run->options,
                        .realization = run->realization,
                        .stream = &run->stream,
                        .hypers = {.count = count, .at = hypers},
                        .seed = choice->seed};
    run->trainer = rt_trainer_new(run->arena, &spec);
    assert_good(run, run->trainer != NULL);
}

static double step(Run *run) {
    double loss;
    assert_good(run, rt_trainer_step(run->trainer, &loss));
    return loss;
}

// A hash of the bits of parameters and states.
static uint64_t bits(const Run *run) {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < run->trainer->states + 2; i++)
        for (uint32_t j = 0; i != 1 && j < run->trainer->leaves; j++) {
            const Tensor *tensor = &run->trainer->arguments[i].parts[j].tensor;
            hash = hash_bytes(tensor->data,
                              (size_t)shape_count(&tensor->shape) * dtype_size(tensor->type), hash);
        }
    return hash;
}

// ---- values -----------------------------------------------------------------------------------

// The gradient of sum(w * x) is x: the data are the gradients.
#define STRAIGHT(optimizer, settings)                                                              \
    "import \"std/optim.psk\" as optim\n"                                                          \
    "dim B <= 8\n"                                                                                 \
    "module One {\n"                                                                               \
    "  param w : ℝ init ones\n"                                                                  \
    "  fn apply(x : ℝ[batch: B]) -> ℝ[batch: B] = w * x\n"                                     \
    "}\n" optimizer "fn loss(p : params One, x : ℝ[batch: B]) -> ℝ = sum(One.apply(p, x))\n"   \
    "training run {\n"                                                                             \
    "  model = One\n"                                                                              \
    "  loss = loss\n" settings "  data = stream \"data.psk.d\" |> batch(B = 1)\n"                  \
    "  steps = 2\n"                                                                                \
    "}\n"

static double parameter(const Run *run) {
    return tensor_get(&rt_trainer_parameters(run->trainer)->parts[0].tensor, 0);
}

// p = 1, then gradients 0.5 and −0.25: in f64 0.899 and 0.8714673 (to its digits), in f32 the
// nearest of what its own roundings give.
static void values_of_adamw(void **state) {
    (void)state;
    const double gradient[] = {0.5, -0.25};
    static const struct {
        const char *arithmetic;
        double first, second, within;
    } expected[] = {{"f64", 0.899, 0.87146731, 1e-8}, {"f32", 0.899000002, 0.871467299, 5e-10}};
    for (uint32_t backend = RT_REF; backend <= RT_NATIVE; backend++)
        for (uint32_t i = 0; i < COUNT_OF(expected); i++) {
            Run run;
            open_run(&run);
            write_data(&run, 2, 1, gradient);
            make_trainer(
                &run, STRAIGHT("", "  optimizer = optim.adamw\n  lr = 0.1\n"),
                &(Choice){.backend = (RtBackend)backend, .arithmetic = expected[i].arithmetic});
            assert_float_equal(step(&run), 0.5, 0);
            assert_float_equal(parameter(&run), expected[i].first, expected[i].within);
            step(&run);
            assert_float_equal(parameter(&run), expected[i].second, expected[i].within);
            close_run(&run);
        }
}

// The same in every element of leaves of 1, 5 and 1000, saved between the steps and gone on with by
// another trainer.
static void adamw_over_leaves(void **state) {
    (void)state;
    const double gradient[] = {0.5, -0.25};
    static const char program[] =
        "import \"std/optim.psk\" as optim\n"
        "dim B <= 8\n"
        "module Three {\n  param w : ℝ init ones\n  param v : ℝ[5] init ones\n"
        "  param u : ℝ[1000] init ones\n}\n"
        "fn loss(p : params Three, x : ℝ[batch: B]) -> ℝ = sum(x) * (p.w + sum(p.v) + sum(p.u))\n"
        "training run {\n  model = Three\n  loss = loss\n  optimizer = optim.adamw\n  lr = 0.1\n"
        "  data = stream \"data.psk.d\" |> batch(B = 1)\n  steps = 2\n}\n";
    for (uint32_t backend = RT_REF; backend <= RT_NATIVE; backend++) {
        Run run;
        open_run(&run);
        write_data(&run, 2, 1, gradient);
        const Choice choice = {.backend = (RtBackend)backend, .arithmetic = "f32"};
        make_trainer(&run, program, &choice);
        step(&run);
        RtPath path = rt_path(&run, "three.psk.d"), saved = rt_path(&run, "three.state.psk.d");
        assert_good(&run, rt_trainer_save(run.trainer, &path, STR("none")));
        close_trainer(&run);
        make_trainer(&run, program, &choice);
        assert_good(&run, rt_trainer_load(run.trainer, &saved));
        step(&run);
        assert_int_equal(run.trainer->leaves, 3);
        for (uint32_t i = 0; i < 3; i++) {
            const Tensor *leaf = &rt_trainer_parameters(run.trainer)->parts[i].tensor;
            for (int64_t j = 0, count = shape_count(&leaf->shape); j < count; j++)
                assert_float_equal(tensor_get(leaf, j), 0.871467299, 5e-10);
        }
        close_run(&run);
    }
}

// Gradient descent with a rate that falls with the step, by the optimizer or by the block:
// 1 − 0.5 · 0.5 / 1, then + 0.25 · 0.5 / 2.
static void schedules(void **state) {
    (void)state;
    const double gradient[] = {0.5, -0.25};
    static const char *const programs[] = {
        STRAIGHT("optimizer falling {\n  first = 0.25\n"
                 "  rate = 2 * first / t\n  next p : p - rate * g\n}\n",
                 "  optimizer = falling\n"),
        STRAIGHT("", "  optimizer = optim.sgd\n  lr = min(9, 1 / 2) / t * (1 + cos(0 * t)) / 2\n"),
    };
    for (uint32_t i = 0; i < 2 * (RT_NATIVE + 1); i++) {
        Run run;
        open_run(&run);
        write_data(&run, 2, 1, gradient);
        make_trainer(&run, programs[i % 2], &(Choice){.backend = (RtBackend)(i / 2)});
        step(&run);
        assert_float_equal(parameter(&run), 0.75, 0);
        step(&run);
        assert_float_equal(parameter(&run), 0.8125, 0);
        close_run(&run);
    }
}

static const char odd[] =
    STRAIGHT("optimizer odd {\n  old : params = zeros\n  kept : params = zeros\n"
             "  copied : params = zeros\n  still : params = zeros\n"
             "  next copied : old\n  next old : p\n  next kept : g\n"
             "  next p : p - old * kept\n}\n",
             "  optimizer = odd\n");

// States that take each other's and the parameters' values, in place or not: after gradients a, b:
//   old = p before, kept = the gradient, copied = old's value before it was set
static void states_take_values(void **state) {
    (void)state;
    const double gradient[] = {0.5, -0.25};
    for (uint32_t backend = RT_REF; backend <= RT_NATIVE; backend++) {
        Run run;
        open_run(&run);
        write_data(&run, 2, 1, gradient);
        make_trainer(&run, odd, &(Choice){.backend = (RtBackend)backend});
        step(&run); // p = 1 − 1 · 0.5
        step(&run); // p = 0.5 + 0.5 · 0.25
        // p, g, old, kept, copied, still
        static const double expected[] = {0.625, -0.25, 0.5, -0.25, 1, 0};
        for (uint32_t i = 0; i < COUNT_OF(expected); i++)
            if (i != 1)
                assert_float_equal(tensor_get(&run.trainer->arguments[i].parts[0].tensor, 0),
                                   expected[i], 0);
        assert_int_equal(run.trainer->copies, backend == RT_REF ? 0 : 4);
        close_run(&run);
    }
}

// Gradients 3, 2, 2 are scaled down to the norm 1; smaller ones stay as they are.
static void clipping(void **state) {
    (void)state;
    const double data[] = {1, 0.125};
    static const char program[] =
        "dim B <= 8\n"
        "module Two {\n"
        "  param a : ℝ init ones\n"
        "  param b : ℝ[2] init ones\n"
        "  fn apply(x : ℝ[batch: B]) -> ℝ[batch: B] = 3 * a * x + 2 * sum(b) * x\n"
        "}\n"
        "optimizer clipped {\n  clip = 1\n  next g : g * min(1, clip / norm(g))\n"
        "  next p : p - g\n}\n"
        "fn loss(p : params Two, x : ℝ[batch: B]) -> ℝ = sum(Two.apply(p, x))\n"
        "training run {\n  model = Two\n  loss = loss\n  optimizer = clipped\n"
        "  data = stream \"data.psk.d\" |> batch(B = 1)\n  steps = 2\n}\n";
    const double norm = sqrt(9 + 4 + 4);
    for (uint32_t backend = RT_REF; backend <= RT_NATIVE; backend++) {
        Run run;
        open_run(&run);
        write_data(&run, 2, 1, data);
        make_trainer(&run, program, &(Choice){.backend = (RtBackend)backend, .arithmetic = "f64"});
        const CoreValue *leaf = rt_trainer_parameters(run.trainer)->parts;
        step(&run);
        assert_float_equal(tensor_get(&leaf[0].tensor, 0), 1 - 3 / norm, 1e-15);
        assert_float_equal(tensor_get(&leaf[1].tensor, 1), 1 - 2 / norm, 1e-15);
        step(&run);
        assert_float_equal(tensor_get(&leaf[0].tensor, 0), 1 - 3 / norm - 0.375, 1e-15);
        assert_float_equal(tensor_get(&leaf[1].tensor, 1), 1 - 2 / norm - 0.25, 1e-15);
        close_run(&run);
    }
}

// ---- bits -------------------------------------------------------------------------------------

enum { SAMPLES = 37, WIDTH = 5 };

static const char network[] =
    "import \"std/nn.psk\" as nn\n"
    "import \"std/optim.psk\" as optim\n"
    "dim B <= 8\n"
    "module Net {\n"
    "  use up = nn.Linear{5, 7}\n"
    "  use norm = nn.LayerNorm{7}\n"
    "  use down = nn.Linear{7, 5}\n"
    "  fn apply(x : ℝ[batch: B, 5]) -> ℝ[batch: B, 5] = down.apply(gelu(norm.apply(up.apply(x))))\n"
    "}\n"
    "fn loss(p : params Net, x : ℝ[batch: B, 5]) -> ℝ = mean((Net.apply(p, x) - x) ^ 2)\n"
    "training run {\n"
    "  model = Net\n"
    "  loss = loss\n"
    "  optimizer = optim.adamw\n"
    "  lr = 0.01\n"
    "  data = stream \"data.psk.d\" |> shuffle(seed = 3) |> batch(B = 8)\n"
    "  steps = 20\n"
    "}\n";

static void write_points(Run *run) {
    double values[SAMPLES * WIDTH];
    for (uint32_t i = 0; i < COUNT_OF(values); i++)
        values[i] = sin(1.7 * i) + 0.3 * cos(0.11 * i * i);
    write_data(run, SAMPLES, WIDTH, values);
}

static uint64_t bits_after(const Choice *choice, uint32_t steps, double *first, double *last) {
    Run run;
    open_run(&run);
    write_points(&run);
    make_trainer(&run, network, choice);
    for (uint32_t i = 0; i < steps; i++) {
        double loss = step(&run);
        *(i ? last : first) = loss;
    }
    uint64_t hash = bits(&run);
    close_run(&run);
    return hash;
}

static void one_run_one_result(void **state) {
    (void)state;
    static const char *const arithmetic[] = {"f32", "f64", "bf16"};
    for (uint32_t i = 0; i < COUNT_OF(arithmetic); i++) {
        double first, last;
        uint64_t expected = bits_after(&(Choice){.backend = RT_REF, .arithmetic = arithmetic[i]},
                                       12, &first, &last);
        assert_true(last < 0.9 * first);
        const Choice others[] = {{RT_KERNEL, arithmetic[i], 1, false, 0},
                                 {RT_KERNEL, arithmetic[i], 3, false, 0},
                                 {RT_NATIVE, arithmetic[i], 1, false, 0},
                                 {RT_NATIVE, arithmetic[i], 2, false, 0},
                                 {RT_NATIVE, arithmetic[i], 7, false, 0}};
        for (uint32_t j = 0; j < COUNT_OF(others); j++)
            assert_int_equal(bits_after(&others[j], 12, &first, &last), expected);
        const Choice unfused = {RT_NATIVE, arithmetic[i], 2, true, 0};
        if (i < 2) // under bf16 the partition is part of the arithmetic
            assert_int_equal(bits_after(&unfused, 12, &first, &last), expected);
        const Choice other_seed = {RT_NATIVE, arithmetic[i], 1, false, 1};
        assert_int_not_equal(bits_after(&other_seed, 12, &first, &last), expected);
    }
}

// A schedule with a dimension in it and a constant that no double holds.
static const char scheduled[] =
    STRAIGHT("", "  optimizer = optim.adamw_clipped\n"
                 "  lr = 0.1 * min(1, t / (2 * B + 1)) / 1.0000000000000000000001\n");

// Groups over all leaves, one launch each, which run piece by piece: the bits of a launch a leaf.
static void leaves_in_one_launch(void **state) {
    (void)state;
    static const char program[] =
        "import \"std/optim.psk\" as optim\n"
        "dim B <= 8\n"
        "module Many {\n  param a : ℝ[70000] init normal(0, 1)\n  param b : ℝ[5] init ones\n"
        "  param c : ℝ init ones\n  param d : ℝ[300, 7] init normal(0, 1)\n}\n"
        "fn loss(p : params Many, x : ℝ[batch: B]) -> ℝ =\n"
        "  sum(x) * (sum(p.a ^ 2) + sum(exp(p.b)) + p.c + sum(p.d ^ 2) / 3)\n"
        "training run {\n  model = Many\n  loss = loss\n  optimizer = optim.adamw_clipped\n"
        "  data = stream \"data.psk.d\" |> batch(B = 1)\n  steps = 2\n}\n";
    const double gradient[] = {0.5, -0.25, 0.375};
    uint64_t expected = 0;
    static const uint32_t workers[] = {1, 1, 2, 3, 7};
    for (uint32_t i = 0; i < 2 * COUNT_OF(workers); i++) {
        const Choice choice = {.backend = i % 2 ? RT_KERNEL : RT_NATIVE, .workers = workers[i / 2]};
        Run run;
        open_run(&run);
        write_data(&run, 3, 1, gradient);
        run.one = i >= 2 && nat_machine_target() > 128;
        make_trainer(&run, program, &choice);
        for (uint32_t n = 0; n < 3; n++)
            step(&run);
        const RtProgram *update = run.trainer->update;
        assert_int_equal(run.trainer->copies, 0);
        if (run.one) {
            // The clipped gradient, m, v and p, of which pieces run in turn.
            assert_int_equal(update->chains.count, 1);
            assert_int_equal(update->chains.at[0].count, 4);
            assert_true(update->chains.at[0].pieces >= 4);
        }
        expected = i ? expected : bits(&run);
        assert_int_equal(bits(&run), expected);
        close_run(&run);
    }
}

// After the first step nothing asks for memory, on any number of workers and by any executor of
// kernels, whether or not new values have to be moved to their places.
static void steps_allocate_nothing(void **state) {
    (void)state;
    static const char *const programs[] = {network, odd, scheduled};
    for (uint32_t i = 0; i < 4 * COUNT_OF(programs); i++) {
        Run run;
        open_run(&run);
        const double gradient[] = {0.5, -0.25};
        if (i % 3 == 0)
            write_points(&run);
        else
            write_data(&run, 2, 1, gradient);
        run.one = i >= 6 && i % 3 == 0 && nat_machine_target() > 128;
        make_trainer(&run, programs[i % 3],
                     &(Choice){.backend = i / 3 % 2 ? RT_KERNEL : RT_NATIVE, .workers = 1 + i / 6});
        double loss;
        step(&run);
        assert_int_equal(run.trainer->copies, i % 3 == 1 ? 4 : 0);
        const void *parameters = run.trainer->arguments[0].parts[0].tensor.data;
        uint64_t calls = run.context.heap.calls, all = calls_for_memory;
        size_t live = run.context.heap.live;
        for (uint32_t n = 0; n < 9; n++)
            assert_true(rt_trainer_step(run.trainer, &loss));
        assert_int_equal(calls_for_memory, all);
        assert_int_equal(run.context.heap.live, live);
#ifndef PRESK_MALLOC_ARENAS
        assert_int_equal(run.context.heap.calls, calls);
#else
        (void)calls;
#endif
        assert_ptr_equal(run.trainer->arguments[0].parts[0].tensor.data, parameters);
        close_run(&run);
    }
}

static void not_finite(void **state) {
    (void)state;
    const double gradient[] = {0.5, INFINITY};
    Run run;
    open_run(&run);
    write_data(&run, 2, 1, gradient);
    make_trainer(&run, STRAIGHT("", "  optimizer = optim.sgd\n"), &(Choice){.backend = RT_KERNEL});
    run.trainer->spec.check_finite = true;
    step(&run);
    uint64_t before = bits(&run);
    double loss;
    assert_false(rt_trainer_step(run.trainer, &loss));
    assert_code(&run, "E6201");
    assert_int_equal(run.trainer->steps, 1);
    assert_int_equal(bits(&run), before);
    close_run(&run);
}

// ---- state files ------------------------------------------------------------------------------

static void resumed_runs(void **state) {
    (void)state;
    static const struct {
        RtBackend backend;
        const char *arithmetic;
    } kinds[] = {{RT_KERNEL, "f32"}, {RT_NATIVE, "f32"}, {RT_NATIVE, "bf16"}, {RT_REF, "f64"}};
    for (uint32_t i = 0; i < COUNT_OF(kinds); i++) {
        const Choice choice = {kinds[i].backend, kinds[i].arithmetic, 1, false, 5};
        double first, last;
        uint64_t straight = bits_after(&choice, 20, &first, &last);
        Run run;
        open_run(&run);
        write_points(&run);
        make_trainer(&run, network, &choice);
        for (uint32_t j = 0; j < 7; j++)
            step(&run);
        RtPath path = rt_path(&run, "sub/net.psk.d"), saved = rt_path(&run, "sub/net.state.psk.d");
        assert_good(&run, rt_trainer_save(run.trainer, &path, STR("default 1")));
        assert_true(file_exists(path_in(&run, "sub/net.json")));
        close_trainer(&run);
        make_trainer(&run, network, &choice);
        assert_good(&run, rt_trainer_load(run.trainer, &saved));
        assert_int_equal(run.trainer->steps, 7);
        assert_int_equal(rt_trainer_epoch(run.trainer), 2); // four batches an epoch
        double loss = 0;
        for (uint32_t j = 0; j < 13; j++)
            loss = step(&run);
        assert_int_equal(bits(&run), straight);
        assert_float_equal(loss, last, 0);
        close_run(&run);
    }
}

// The checkpoint beside the state holds the same parameters.
static void checkpoint_of_state(void **state) {
    (void)state;
    Run run;
    open_run(&run);
    write_points(&run);
    make_trainer(&run, network, &(Choice){.backend = RT_KERNEL});
    step(&run);
    RtPath path = rt_path(&run, "net.psk.d");
    assert_good(&run, rt_trainer_save(run.trainer, &path, STR("none")));
    RtNamed named[8];
    assert_int_equal(run.trainer->leaves, 6);
    for (uint32_t i = 0; i < 6; i++) {
        const Shape *shape = &run.trainer->arguments[0].parts[i].tensor.shape;
        named[i].name = run.trainer->leaf[i].path;
        named[i].tensor = tensor_new(run.arena, F32, shape->rank, shape->extent);
    }
    assert_good(&run, rt_checkpoint_read(&path, STR("Net"), 6, named));
    for (uint32_t i = 0; i < 6; i++)
        assert_true(
            tensor_same_bits(&named[i].tensor, &run.trainer->arguments[0].parts[i].tensor, NULL));
    Str text, error;
    assert_true(file_read(run.arena, path_in(&run, "net.json"), &text, &error));
    assert_non_null(strstr(text.at, "\"step\": 1"));
    assert_non_null(strstr(text.at, "\"realization\": \"f32\""));
    close_run(&run);
}

static void states_of_other_runs(void **state) {
    (void)state;
    Run run;
    open_run(&run);
    write_points(&run);
    make_trainer(&run, network, &(Choice){.backend = RT_KERNEL});
    step(&run);
    RtPath path = rt_path(&run, "net.psk.d"), saved = rt_path(&run, "net.state.psk.d");
    assert_good(&run, rt_trainer_save(run.trainer, &path, STR("none")));
    const Choice others[] = {{RT_KERNEL, "f64", 1, false, 0}, {RT_KERNEL, "f32", 1, false, 9}};
    for (uint32_t i = 0; i < COUNT_OF(others); i++) {
        close_trainer(&run);
        make_trainer(&run, network, &others[i]);
        uint64_t before = bits(&run);
        assert_false(rt_trainer_load(run.trainer, &saved));
        assert_code(&run, "E6202");
        assert_int_equal(bits(&run), before);
        assert_int_equal(run.trainer->steps, 0);
    }
    assert_false(rt_trainer_load(run.trainer, &path)); // a checkpoint is no state
    assert_code(&run, "E9001");
    RtPath data = rt_path(&run, "data.psk.d");
    assert_false(rt_trainer_load(run.trainer, &data));
    assert_code(&run, "E5003");
    close_run(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_adamw),
        cmocka_unit_test(schedules),
        cmocka_unit_test(adamw_over_leaves),
        cmocka_unit_test(states_take_values),
        cmocka_unit_test(clipping),
        cmocka_unit_test(one_run_one_result),
        cmocka_unit_test(leaves_in_one_launch),
        cmocka_unit_test(steps_allocate_nothing),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(resumed_runs),
        cmocka_unit_test(checkpoint_of_state),
        cmocka_unit_test(states_of_other_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
