// The trainer: see train.h. Assumes that the gradient's parameters are the loss's and that a step's
// result has the new parameters first, then the new states in the order of its arguments; leaves
// parameters and states in memory of its own, always those of a whole step.
#include "runtime/train.h"

#include "base/file.h"
#include "runtime/init.h"

#include <math.h>

// ---- hyperparameters --------------------------------------------------------------------------

bool rt_hyper_value(void *data, Name name, double *value) {
    const RtHypers *hypers = data;
    if (str_is(name_str(hypers->core->context->names, name), "t")) {
        *value = (double)hypers->step;
        return hypers->step > 0;
    }
    for (uint32_t i = 0; i < hypers->count; i++) {
        const RtHyper *hyper = &hypers->at[i];
        if (hyper->name != name)
            continue;
        *value = hyper->value;
        return !hyper->schedule || core_scalar_value(hypers->core, hyper->schedule, hypers->dims,
                                                     rt_hyper_value, data, F64, value);
    }
    return false;
}

// ---- values -----------------------------------------------------------------------------------

static const RtBinding *loss_of(const RtTrainer *trainer) {
    return trainer->spec.loss;
}

// The loss's parameter that is the tree: its first.
static Span tree_span(const RtTrainer *trainer) {
    return core_let(loss_of(trainer)->fn, 0)->span;
}

static bool new_tree(RtTrainer *trainer, CoreTypeId type, DType storage, CoreValue *tree) {
    *tree = (CoreValue){.type = type, .count = trainer->leaves};
    tree->parts = arena_array(trainer->arena, CoreValue, trainer->leaves + 1);
    for (uint32_t i = 0; i < trainer->leaves; i++) {
        Shape shape;
        tree->parts[i].type = trainer->leaf[i].type;
        if (!rt_bind_leaf_shape(trainer->spec.loss, &trainer->leaf[i], tree_span(trainer), &shape))
            return false;
        tree->parts[i].tensor = tensor_new(trainer->arena, storage, shape.rank, shape.extent);
    }
    return true;
}

static bool draw_parameters(RtTrainer *trainer) {
    for (uint32_t i = 0; i < trainer->leaves; i++)
        if (!rt_init_leaf(trainer->core, &trainer->leaf[i], loss_of(trainer)->by_dim,
                          trainer->spec.seed, &trainer->arguments[0].parts[i].tensor,
                          tree_span(trainer)))
            return false;
    return true;
}

static bool make_values(RtTrainer *trainer) {
    const CoreFn *step = core_fn(trainer->core, trainer->spec.step);
    const RlzRealization *realization = trainer->spec.realization;
    check_that(step->params >= 2);
    trainer->states = step->params - 2;
    trainer->arguments = arena_array(trainer->arena, CoreValue, step->params);
    trainer->state_name = arena_array(trainer->arena, Name, trainer->states + 1);
    CoreTypeId type = core_let(step, 0)->type;
    if (!new_tree(trainer, type, realization->params, &trainer->arguments[0]))
        return false;
    for (uint32_t i = 0; i < trainer->states; i++) {
        trainer->state_name[i] = core_let(step, i + 2)->name;
        if (!new_tree(trainer, type, realization->state, &trainer->arguments[i + 2]))
            return false;
    }
    trainer->spec.loss->arguments[0] = trainer->arguments[0];
    return draw_parameters(trainer);
}

// ---- programs ---------------------------------------------------------------------------------

// Leaves of the step's result that lie apart from the arguments they replace.
static uint32_t count_copies(const RtTrainer *trainer) {
    CoreValue result = rt_result(trainer->update);
    uint32_t copies = 0;
    for (uint32_t i = 0; i < result.count; i++)
        for (uint32_t j = 0; j < trainer->leaves; j++)
            copies += result.parts[i].parts[j].tensor.data !=
                      trainer->arguments[i ? i + 1 : 0].parts[j].tensor.data;
    return copies;
}

// Room for leaves that are moved.
static void make_aside(RtTrainer *trainer) {
    uint32_t parts = (trainer->states + 1) * trainer->leaves;
    trainer->aside = arena_array(trainer->arena, void *, parts);
    for (uint32_t i = 0; i < parts; i++) {
        uint32_t tree = i / trainer->leaves;
        const Tensor *to =
            &trainer->arguments[tree ? tree + 1 : 0].parts[i % trainer->leaves].tensor;
        trainer->aside[i] =
            arena_alloc(trainer->arena, (size_t)shape_count(&to->shape) * dtype_size(to->type));
    }
}

static bool build_programs(RtTrainer *trainer) {
    const RtBinding *loss = loss_of(trainer);
    RtOptions options = trainer->spec.options;
    options.depth = RT_TO_RUN;
    trainer->gradient = rt_build(trainer->core, trainer->arena, &options, trainer->spec.gradient,
                                 loss->arguments, rt_bind_own(loss), loss->pack_rank, loss->pack);
    if (!trainer->gradient)
        return false;
    trainer->arguments[1] = rt_result(trainer->gradient).parts[1];
    uint32_t *update = arena_array(trainer->arena, uint32_t, trainer->states + 1);
    for (uint32_t i = 1; i <= trainer->states; i++)
        update[i] = i + 1;
    options.update = update;
    trainer->update = rt_build(trainer->core, trainer->arena, &options, trainer->spec.step,
                               trainer->arguments, NULL, 0, NULL);
    if (!trainer->update)
        return false;
    trainer->copies = count_copies(trainer);
    if (trainer->copies)
        make_aside(trainer);
    return true;
}

RtTrainer *rt_trainer_new(Arena *arena, const RtTrainSpec *spec) {
    RtTrainer *trainer = arena_new_of(arena, RtTrainer);
    trainer->spec = *spec;
    trainer->core = spec->loss->core;
    trainer->arena = arena;
    trainer->scratch = arena_new(arena_heap(arena), "step");
    RtHypers *hypers = &trainer->spec.hypers;
    hypers->core = trainer->core;
    hypers->dims = spec->loss->by_dim;
    hypers->step = 1;
    trainer->spec.options.dims = spec->loss->by_dim;
    trainer->spec.options.hyper = rt_hyper_value;
    trainer->spec.options.hyper_data = hypers;
    trainer->leaves = rt_bind_leaves(spec->loss, 0, &trainer->leaf);
    if (!make_values(trainer))
        return NULL;
    if (spec->options.backend != RT_REF && !build_programs(trainer))
        return NULL;
    return trainer;
}

// ---- a step -----------------------------------------------------------------------------------

static bool not_finite(RtTrainer *trainer, double loss) {
    if (!trainer->spec.check_finite || isfinite(loss))
        return false;
    Arena *arena = trainer->core->context->arena;
    diag(&trainer->core->context->diags, E6201, loss_of(trainer)->fn->span,
         str_of_double(arena, loss).at,
         str_format(arena, "%llu", (unsigned long long)trainer->steps + 1).at);
    return true;
}

// New values that are not where the old ones were move there; all of them are first set aside,
// since one may be another's old value.
static void move_results(RtTrainer *trainer, const CoreValue *result, Arena *scratch) {
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < result->count; i++)
            for (uint32_t j = 0; j < trainer->leaves; j++) {
                Tensor *from = &result->parts[i].parts[j].tensor;
                const Tensor *to = &trainer->arguments[i ? i + 1 : 0].parts[j].tensor;
                size_t bytes = (size_t)shape_count(&to->shape) * dtype_size(to->type);
                check_that(from->type == to->type && shape_is_contiguous(&from->shape));
                if (from->data == to->data)
                    continue;
                if (pass)
                    memcpy(to->data, from->data, bytes);
                else if (trainer->aside)
                    from->data = memcpy(trainer->aside[i * trainer->leaves + j], from->data, bytes);
                else
                    from->data = arena_copy(scratch, from->data, bytes);
            }
}

static CoreValue copy_of(const CoreValue *value, Arena *arena) {
    CoreValue copy = *value;
    copy.parts = arena_array(arena, CoreValue, value->count + 1);
    for (uint32_t i = 0; i < value->count; i++)
        copy.parts[i] = copy_of(&value->parts[i], arena);
    return copy;
}

// Runs the gradient; the loss. On the reference backend results live in `scratch`.
static double run_gradient(RtTrainer *trainer, CoreEval *eval) {
    const RtBinding *loss = loss_of(trainer);
    CoreValue result;
    if (trainer->gradient) {
        uint32_t forward = rt_launches_of_first_call(trainer->gradient);
        double began = clock_seconds();
        rt_run_launches(trainer->gradient, 0, forward);
        trainer->times.forward += clock_seconds() - began;
        rt_run_launches(trainer->gradient, forward, rt_launch_count(trainer->gradient));
        result = rt_result(trainer->gradient);
    } else {
        result = core_eval(eval, trainer->spec.gradient, loss->arguments, rt_bind_own(loss),
                           loss->pack_rank, loss->pack);
        if (!result.parts)
            return NAN;
        trainer->arguments[1] = result.parts[1];
    }
    return tensor_get(&result.parts[0].tensor, 0);
}

static bool run_update(RtTrainer *trainer, CoreEval *eval) {
    CoreValue result;
    if (trainer->update) {
        if (!rt_refresh(trainer->update))
            return false;
        rt_run(trainer->update);
        if (!trainer->copies)
            return true;
        CoreValue own = rt_result(trainer->update);
        result = copy_of(&own, eval->arena);
    } else {
        result = core_eval(eval, trainer->spec.step, trainer->arguments, NULL, 0, NULL);
    }
    if (result.parts)
        move_results(trainer, &result, eval->arena);
    return result.parts != NULL;
}

static bool hypers_are_finite(RtTrainer *trainer) {
    RtHypers *hypers = &trainer->spec.hypers;
    hypers->step = trainer->steps + 1;
    for (uint32_t i = 0; i < hypers->count; i++) {
        const RtHyper *hyper = &hypers->at[i];
        double value;
        if (rt_hyper_value(hypers, hyper->name, &value) && isfinite(value))
            continue;
        Arena *arena = trainer->core->context->arena;
        Diag *made = diag(&trainer->core->context->diags, E6003, hyper->span,
                          hyper->schedule ? hyper->text.at : str_of_double(arena, hyper->value).at);
        diag_note(made, "it is that of step %llu", (unsigned long long)hypers->step);
        return false;
    }
    return true;
}

static bool run_step(RtTrainer *trainer, CoreEval *eval, double *loss) {
    if (!hypers_are_finite(trainer))
        return false;
    double began = clock_seconds();
    RtStream *stream = trainer->spec.stream;
    uint64_t first = trainer->steps % stream->batches * (uint64_t)stream->spec.batch;
    if (!rt_read_batch(trainer->spec.loss, stream, rt_trainer_epoch(trainer), first))
        return false;
    double read = clock_seconds();
    uint32_t errors = trainer->core->context->diags.errors;
    *loss = run_gradient(trainer, eval);
    double differentiated = clock_seconds();
    if (trainer->core->context->diags.errors > errors || not_finite(trainer, *loss) ||
        !run_update(trainer, eval))
        return false;
    trainer->times.batch += read - began;
    trainer->times.gradient += differentiated - read;
    trainer->times.step += clock_seconds() - differentiated;
    trainer->steps++;
    return true;
}

bool rt_trainer_step(RtTrainer *trainer, double *loss) {
    CoreEval eval = {.program = trainer->core,
                     .arithmetic = trainer->spec.options.arithmetic,
                     .dims = loss_of(trainer)->by_dim,
                     .arena = trainer->scratch,
                     .hyper = rt_hyper_value,
                     .hyper_data = &trainer->spec.hypers};
    FloatEnv saved;
    float_env_enter(&saved);
    bool done = run_step(trainer, &eval, loss);
    float_env_leave(&saved);
    arena_reset(trainer->scratch);
    return done;
}

const CoreValue *rt_trainer_parameters(const RtTrainer *trainer) {
    return &trainer->arguments[0];
}

uint64_t rt_trainer_epoch(const RtTrainer *trainer) {
    return trainer->steps / trainer->spec.stream->batches + 1;
}

bool rt_trainer_launches(RtTrainer *trainer, const CoreArithmetic *arithmetic,
                         RtTrainLaunches *launches) {
    const RtBinding *loss = loss_of(trainer);
    RtOptions options = trainer->spec.options;
    if (options.backend == RT_REF)
        options.backend = RT_KERNEL;
    options.depth = RT_TO_COUNT;
    if (arithmetic->fusion != options.arithmetic->fusion)
        options.plan = NULL; // its sites are checked for one of the two
    options.arithmetic = arithmetic;
    if (!arithmetic->fusion)
        options.plan = NULL; // its nests are groups
    CoreValue *step = arena_copy(trainer->arena, trainer->arguments,
                                 (trainer->states + 2) * sizeof *trainer->arguments);
    step[1] = step[0]; // a gradient's shapes are those of the parameters
    const CoreFnId entries[] = {loss->id, trainer->spec.gradient, trainer->spec.step};
    uint32_t *counts[] = {&launches->loss, &launches->gradient, &launches->step};
    for (uint32_t i = 0; i < COUNT_OF(entries); i++) {
        RtProgram *program =
            entries[i] == trainer->spec.step
                ? rt_build(trainer->core, trainer->arena, &options, entries[i], step, NULL, 0, NULL)
                : rt_build(trainer->core, trainer->arena, &options, entries[i], loss->arguments,
                           rt_bind_own(loss), loss->pack_rank, loss->pack);
        if (!program)
            return false;
        *counts[i] = rt_launch_count(program);
    }
    return true;
}
