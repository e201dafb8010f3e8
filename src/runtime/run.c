// Running a program: the launches in order, split among the pool's workers where their layout says
// so. Nothing is allocated.
#include "runtime/program.h"

static void run_part(const RtLaunch *launch, void *const *buffers, int64_t begin, int64_t end) {
    if (launch->kernel->function)
        launch->kernel->function(buffers, begin, end);
    else
        krn_interpret(launch->kernel->code, buffers, begin, end);
}

// Worker w of p runs iterations count·w/p … count·(w+1)/p − 1: contiguous and even.
static void run_worker(void *data, uint32_t worker, uint32_t workers) {
    const RtLaunch *launch = data;
    int64_t count = launch->kernel->kernel->split_count;
    int64_t whole = count / workers, rest = count % workers;
    int64_t begin = whole * worker + MIN((int64_t)worker, rest);
    int64_t end = begin + whole + (worker < rest);
    run_part(launch, launch->buffers[worker], begin, end);
}

static void run_launch(RtProgram *program, RtLaunch *launch) {
    program->ran++;
    if (launch->workers > 1)
        pool_run(program->options.pool, launch->workers, run_worker, launch);
    else
        run_part(launch, launch->buffers[0], 0, launch->kernel->kernel->split_count);
}

void rt_run(RtProgram *program) {
    FloatEnv saved;
    float_env_enter(&saved);
    for (uint32_t i = 0; i < program->launches.count; i++)
        run_launch(program, &program->launches.at[i]);
    float_env_leave(&saved);
}

void rt_run_launch(RtProgram *program, uint32_t index) {
    FloatEnv saved;
    float_env_enter(&saved);
    run_launch(program, &program->launches.at[index]);
    float_env_leave(&saved);
}

bool rt_refresh(RtProgram *program) {
    const RtOptions *options = &program->options;
    for (uint32_t i = 0; i < program->cells.count; i++) {
        const RtCell *cell = &program->cells.at[i];
        double number;
        if (!core_scalar_value(program->core, cell->scalar, cell->by_dim, options->hyper,
                               options->hyper_data, cell->type, &number)) {
            diag(&program->core->context->diags, E6003, (Span){0},
                 core_scalar_text(program->core, cell->scalar, program->arena).at);
            return false;
        }
        dtype_set(cell->type, cell->at, 0, number);
    }
    return true;
}

CoreValue rt_result(const RtProgram *program) {
    return program->result;
}

RtSummary rt_summary(const RtProgram *program) {
    return program->summary;
}

uint32_t rt_launch_count(const RtProgram *program) {
    return program->launches.count;
}

uint64_t rt_launches_run(const RtProgram *program) {
    return program->ran;
}

const RtLaunch *rt_launch_at(const RtProgram *program, uint32_t index) {
    return &program->launches.at[index];
}
