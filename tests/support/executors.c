#include "support/executors.h"

static Str diagnostics(Context *context) {
    Str text = diags_render(&context->diags, context->arena, DIAG_PLAIN);
    return text.size ? text : STR("failed without a diagnostic");
}

Str executors_difference(Context *context, const RandomProgram *program,
                         const ExecutorsOptions *options) {
    Arena *arena = context->arena;
    RlzRealization *record = rlz_realization_read(context, arena, str_of(options->realization));
    CoreArithmetic *arithmetic = rlz_arithmetic(program->core, arena, record, options->fusion);
    CoreValue *arguments =
        random_arguments(program, 1, arithmetic->inputs, arithmetic->params, arena);
    CoreEval eval = {
        .program = program->core, .arithmetic = arithmetic, .dims = program->dims, .arena = arena};
    CoreValue expected = core_eval(&eval, program->entry, arguments, NULL, 0, NULL);
    if (context->diags.errors)
        return str_format(arena, "reference: %s", diagnostics(context).at);
    Pool *pool = options->workers > 1 ? pool_new(options->workers) : NULL;
    RtOptions rt = {.backend = options->backend,
                    .arithmetic = arithmetic,
                    .target = options->target,
                    .pool = pool,
                    .native = options->native,
                    .dims = program->dims};
    Str difference = STR("");
    RtProgram *built =
        rt_build(program->core, arena, &rt, program->entry, arguments, NULL, 0, NULL);
    if (!built)
        difference = diagnostics(context);
    else if (rt_launch_count(built) != eval.launches)
        difference = str_format(arena, "%u launches, %llu in the reference", rt_launch_count(built),
                                (unsigned long long)eval.launches);
    for (uint32_t i = 0; built && options->launched && i < rt_launch_count(built); i++)
        options->launched[rt_launch_at(built, i)->nest->kind]++;
    for (int run = 0; built && !difference.size && run < 2; run++) {
        rt_run(built);
        CoreValue result = rt_result(built);
        difference = value_difference(&expected, &result, arena);
    }
    if (pool)
        pool_free(pool);
    return difference;
}
