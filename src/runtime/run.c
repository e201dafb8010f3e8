// Running a program: the launches in order, split among the pool's workers where their layout says
// so. Nothing is allocated.
#include "runtime/program.h"

static void run_part(const RtLaunch *launch, void *const *buffers, int64_t begin, int64_t end) {
    if (launch->kernel->function)
        launch->kernel->function(buffers, begin, end);
    else
        krn_interpret(launch->kernel->code, buffers, begin, end);
}

// Where share `number` of `shares` begins among `count` iterations: contiguous and even.
static int64_t share_begin(int64_t count, int64_t number, int64_t shares) {
    return count / shares * number + MIN(number, count % shares);
}

static void run_worker(void *data, uint32_t worker, uint32_t workers) {
    const RtLaunch *launch = data;
    int64_t count = launch->kernel->kernel->split_count;
    run_part(launch, launch->buffers[worker], share_begin(count, worker, workers),
             share_begin(count, worker + 1, workers));
}

static void run_launch(RtProgram *program, RtLaunch *launch) {
    program->ran++;
    if (launch->workers > 1)
        pool_run(program->options.pool, launch->workers, run_worker, launch);
    else
        run_part(launch, launch->buffers[0], 0, launch->kernel->kernel->split_count);
}

typedef struct ChainRun {
    const RtChain *chain;
    const RtLaunch *launch; // the first
} ChainRun;

// The pieces of a worker, each of all launches in turn.
static void run_pieces(void *data, uint32_t worker, uint32_t workers) {
    const ChainRun *run = data;
    int64_t pieces = run->chain->pieces, count = run->launch->kernel->kernel->split_count;
    int64_t end = share_begin(pieces, worker + 1, workers);
    for (int64_t piece = share_begin(pieces, worker, workers); piece < end; piece++)
        for (uint32_t i = 0; i < run->chain->count; i++)
            run_part(&run->launch[i], run->launch[i].buffers[worker],
                     share_begin(count, piece, pieces), share_begin(count, piece + 1, pieces));
}

static void run_chain(RtProgram *program, const RtChain *chain) {
    ChainRun run = {chain, &program->launches.at[chain->first]};
    program->ran += chain->count;
    if (run.launch->workers > 1)
        pool_run(program->options.pool, run.launch->workers, run_pieces, &run);
    else
        run_pieces(&run, 0, 1);
}

void rt_run_launches(RtProgram *program, uint32_t first, uint32_t end) {
    FloatEnv saved;
    float_env_enter(&saved);
    const RtChain *chain = program->chains.at, *last = chain + program->chains.count;
    for (uint32_t i = first; i < end;) {
        while (chain < last && chain->first < i)
            chain++;
        if (chain < last && chain->first == i && i + chain->count <= end) {
            i += chain->count;
            run_chain(program, chain);
        } else {
            run_launch(program, &program->launches.at[i++]);
        }
    }
    float_env_leave(&saved);
}

void rt_run(RtProgram *program) {
    rt_run_launches(program, 0, program->launches.count);
}

uint32_t rt_launches_of_first_call(const RtProgram *program) {
    return program->first_call;
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
