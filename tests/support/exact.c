// The run: spaces listed (each nest by one worker), then their points in rounds, so that wherever
// a run ends, every nest has had its share. What runs depends on nothing but the options.
#include "support/exact.h"

#include "base/file.h"
#include "realize/space.h"
#include "support/exact_cover.h"
#include "support/exact_nests.h"
#include "support/exact_point.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BATCH = 128, SPLIT_OVER = 3, ROUNDS = 32, TARGETS = 3 };

// A nest with its points; a worker makes it, then nobody changes it but for `ran`.
typedef struct Task {
    const RlzNest *nest;
    ExactTruth truth;
    uint64_t space; // points of all targets, before any choice
    Vec(ExactPoint) points;
} Task;

typedef struct Point {
    Kernel *kernel;
    Task *task;
    ExactPoint *point;
} Point;

typedef struct Batch { // kernels to be compiled together
    Arena *arena;
    Point point[BATCH];
    uint32_t count;
} Batch;

typedef struct Run Run;

typedef struct Worker {
    Run *run;
    Context *context;
    ExactPools pools;
    Arena *arena; // of what is under way
    Batch batch[TARGETS];
    Str failure;
    pthread_t thread;
} Worker;

struct Run {
    const ExactOptions *options;
    Task *task;
    uint32_t tasks, targets, workers;
    Worker *worker;
    atomic_uint next;     // task to be listed, then unit: a round of a task
    atomic_uint finished; // workers
    atomic_ullong done;   // points
    atomic_bool stop;     // by a failure
    double started;
};

static void fail(Worker *w, const Task *task, const ExactPoint *point, const Kernel *kernel,
                 Str why) {
    Arena *arena = w->context->arena;
    if (!w->failure.size)
        w->failure =
            str_format(arena, "%starget %u: %s\n%s%s", rlz_nest_text(task->nest, arena).at,
                       point->target, rlz_layout_text(task->nest, &point->layout, arena).at,
                       krn_print(kernel, arena).at, why.at);
    atomic_store(&w->run->stop, true);
}

// ---- lists --------------------------------------------------------------------------------------

// Keeps a point whose kernel the target has not had.
static void list_point(Worker *w, Task *task, Map *seen, const RlzLayout *layout, uint32_t target) {
    Kernel *kernel = krn_lower(task->nest, layout, w->arena, w->context->names);
    Str text = krn_print(kernel, w->arena);
    ExactPoint point = {.layout = *layout,
                        .target = 128u << target,
                        .text = hash_bytes(text.at, text.size, 1),
                        .insts = kernel->insts.count,
                        .split = kernel->split_count > 0};
    uint32_t *targets = map_slot(seen, &point.text, sizeof point.text, NULL);
    point.first = *targets == 0;
    uint32_t length = 1 + point.insts / (EXACT_NATIVE_INSTS + 1);
    uint32_t most = MAX(w->run->options->native_share, EXACT_NATIVE_MOST);
    uint32_t share = MIN(MAX(w->run->options->native_share, 1) * length, most);
    point.native = point.text % (point.first ? share : share * EXACT_REPEATED) == 0;
    if (!(*targets >> target & 1))
        vec_push(w->context->arena, &task->points, point);
    *targets |= 1u << target;
    arena_reset(w->arena);
}

// At most `limit` points, evenly spaced; 0: all.
static void list_points(Worker *w, Task *task, Map *seen, Random *random, uint32_t count,
                        const RlzLayout *points, uint64_t limit, uint32_t target) {
    uint64_t step = limit && count > limit ? (count + limit - 1) / limit : 1;
    uint32_t first = (uint32_t)(step > 1 ? random_below(random, (uint32_t)step) : 0);
    for (uint64_t i = first; i < count; i += step)
        list_point(w, task, seen, &points[i], target);
}

static void list_space(Worker *w, Task *task, Arena *arena, Map *seen, Random *random,
                       uint64_t limit, uint32_t target) {
    RlzMachine machine = {128u << target, SPLIT_OVER, true};
    RlzLayout *points, *modified;
    uint32_t count = rlz_space_core(task->nest, &machine, arena, &points);
    task->space += count;
    list_points(w, task, seen, random, count, points, limit ? MAX(limit / 2, 1) : 0, target);
    uint32_t every = limit ? MAX(count / 2, 1) : EXACT_MODIFIED_EVERY;
    for (uint32_t i = count ? random_below(random, MIN(every, count)) : 0; i < count; i += every) {
        uint32_t more = rlz_space_modified(task->nest, &machine, &points[i], arena, &modified);
        task->space += more - 1;
        list_points(w, task, seen, random, more, modified, limit ? MAX(limit / 4, 1) : 0, target);
    }
}

static void list_task(Worker *w, uint32_t number) {
    Run *run = w->run;
    Task *task = &run->task[number];
    Arena *arena = arena_new(&w->context->heap, "exact list");
    Map *seen = map_new(arena);
    Random random = {number + 17};
    uint64_t sample = run->options->sample;
    task->truth = exact_truth(task->nest, &random, w->context->arena, w->arena, w->context->names);
    arena_reset(w->arena);
    for (uint32_t t = 0; t < run->targets; t++)
        if (!sample || t == number % run->targets) // a sample takes one target a nest
            list_space(w, task, arena, seen, &random, sample ? MAX(sample / run->tasks, 2) : 0, t);
    arena_free(arena);
}

// ---- points -------------------------------------------------------------------------------------

static void flush(Worker *w, uint32_t target) {
    Batch *batch = &w->batch[target];
    Kernel *kernels[BATCH];
    NatFunction functions[BATCH];
    for (uint32_t i = 0; i < batch->count; i++)
        kernels[i] = batch->point[i].kernel;
    NatOptions options = {.no_cache = true, .target = 128u << target, .threads = 1};
    Native *native = batch->count ? nat_new(w->context, batch->arena, &options) : NULL;
    bool compiled = native && nat_compile(native, batch->count, kernels, functions);
    for (uint32_t i = 0; i < batch->count && !atomic_load(&w->run->stop); i++) {
        Point *p = &batch->point[i];
        Str why = compiled
                      ? exact_check(&p->task->truth, &w->pools, p->kernel, functions[i], w->arena)
                      : diags_render(&w->context->diags, w->arena, DIAG_PLAIN);
        if (why.size)
            fail(w, p->task, p->point, p->kernel, why);
        p->point->ran_native = true;
        arena_reset(w->arena);
    }
    nat_free(native);
    batch->count = 0;
    arena_reset(batch->arena);
}

static void run_point(Worker *w, Task *task, ExactPoint *point) {
    uint32_t target = point->target == 128 ? 0 : point->target == 256 ? 1 : 2;
    Batch *batch = &w->batch[target];
    if (point->first || point->native) {
        Kernel *kernel = krn_lower(task->nest, &point->layout, batch->arena, w->context->names);
        Str why = {0};
        if (!point->first || krn_verify(kernel, w->arena, &why))
            why = point->first ? exact_check(&task->truth, &w->pools, kernel, NULL, w->arena)
                               : STR("");
        if (why.size)
            fail(w, task, point, kernel, why);
        if (point->native)
            batch->point[batch->count++] = (Point){kernel, task, point};
    }
    point->ran = true;
    arena_reset(w->arena);
    if (batch->count == BATCH)
        flush(w, target);
}

static bool may_go_on(const Run *run) {
    double limit = run->options->seconds;
    return !atomic_load(&run->stop) && (limit == 0 || clock_seconds() - run->started < limit);
}

static void run_unit(Worker *w, uint32_t unit) {
    Task *task = &w->run->task[unit % w->run->tasks];
    for (uint32_t i = unit / w->run->tasks; i < task->points.count && may_go_on(w->run);
         i += ROUNDS) {
        run_point(w, task, &task->points.at[i]);
        atomic_fetch_add(&w->run->done, 1);
    }
}

// ---- workers ------------------------------------------------------------------------------------

static void *list_share(void *data) {
    Worker *w = data;
    for (uint32_t i; (i = atomic_fetch_add(&w->run->next, 1)) < w->run->tasks;)
        list_task(w, i);
    atomic_fetch_add(&w->run->finished, 1);
    return NULL;
}

static void *run_share(void *data) {
    Worker *w = data;
    for (uint32_t u; (u = atomic_fetch_add(&w->run->next, 1)) < ROUNDS * w->run->tasks;)
        run_unit(w, u);
    for (uint32_t t = 0; t < TARGETS; t++)
        flush(w, t);
    atomic_fetch_add(&w->run->finished, 1);
    return NULL;
}

static void show_progress(const Run *run, uint64_t all) {
    double seconds = clock_seconds() - run->started;
    uint64_t done = atomic_load(&run->done);
    if (all)
        printf("%5.0f s  %llu of %llu kernels\n", seconds, (unsigned long long)done,
               (unsigned long long)all);
    else
        printf("%5.0f s  spaces of %u of %u nests\n", seconds,
               MIN(atomic_load(&run->next), run->tasks), run->tasks);
    fflush(stdout);
}

// Both phases; `all` points in the second.
static void in_parallel(Run *run, void *(*share)(void *), uint64_t all) {
    enum { EVERY = 100 }; // tenths of a second between lines
    atomic_store(&run->next, 0);
    atomic_store(&run->finished, 0);
    for (uint32_t i = 0; i < run->workers; i++)
        check_that(pthread_create(&run->worker[i].thread, NULL, share, &run->worker[i]) == 0);
    for (uint32_t n = 1; atomic_load(&run->finished) < run->workers; n++) {
        usleep(100000);
        if (run->options->progress && n % EVERY == 0)
            show_progress(run, all);
    }
    for (uint32_t i = 0; i < run->workers; i++)
        pthread_join(run->worker[i].thread, NULL);
}

static void worker_open(Run *run, Worker *w) {
    w->run = run;
    w->context = calloc(1, sizeof *w->context);
    check_that(w->context != NULL);
    context_init(w->context);
    w->arena = arena_new(&w->context->heap, "exact point");
    for (uint32_t t = 0; t < TARGETS; t++)
        w->batch[t].arena = arena_new(&w->context->heap, "exact batch");
    w->pools = exact_pools();
}

static void worker_close(Worker *w) {
    exact_pools_free(&w->pools);
    context_free(w->context);
    free(w->context);
}

// ---- all ----------------------------------------------------------------------------------------

static bool collect(Context *context, ExactNests *all) {
    static const DType types[] = {F32, F64, BF16};
    for (uint32_t t = 0; t < COUNT_OF(types); t++) {
        exact_nests_by_hand(all, types[t]);
        exact_leaves_by_hand(all, types[t]);
    }
    exact_nests_mixed(all);
    return exact_nests_of_programs(context, all);
}

static void count_point(const ExactPoint *point, ExactReport *report) {
    uint32_t length = 0;
    while ((uint32_t)EXACT_NATIVE_INSTS << length < point->insts)
        length++;
    report->reached += point->ran;
    report->natives += point->ran_native;
    report->split += point->ran && point->first && point->split;
    report->length[length][0] += point->ran_native;
    report->length[length][1]++;
}

static void count_all(const Run *run, Context *context, ExactReport *report) {
    Map *texts = map_new(context->arena);
    ExactCover *cover = exact_cover_new(context->arena);
    for (uint32_t i = 0; i < run->tasks; i++) {
        const Task *task = &run->task[i];
        report->points += task->space;
        report->chosen += task->points.count;
        for (uint32_t p = 0; p < task->points.count; p++) {
            const ExactPoint *point = &task->points.at[p];
            count_point(point, report);
            if (!point->ran || !point->first)
                continue;
            map_slot(texts, &point->text, sizeof point->text, NULL);
            exact_cover_add(cover, task->nest, point);
        }
    }
    report->texts = map_count(texts);
    report->coverage = exact_cover_text(cover, context->arena);
    if (run->options->table)
        exact_cover_write(cover, context->arena, run->options->table);
}

ExactReport exact_run(Context *context, const ExactOptions *options) {
    ExactReport report = {0};
    ExactNests all = {.arena = context->arena, .seen = map_new(context->arena)};
    if (!collect(context, &all)) {
        report.failure = diags_render(&context->diags, context->arena, DIAG_PLAIN);
        return report;
    }
    Run run = {.options = options,
               .task = arena_array(context->arena, Task, all.nests.count),
               .tasks = report.nests = all.nests.count,
               .targets = 1,
               .workers = options->workers ? options->workers : pool_default_workers(),
               .started = clock_seconds()};
    while (run.targets < TARGETS && 128u << run.targets <= nat_machine_target())
        run.targets++;
    run.worker = calloc(run.workers, sizeof *run.worker);
    check_that(run.worker != NULL);
    for (uint32_t i = 0; i < run.tasks; i++)
        run.task[i].nest = all.nests.at[i];
    for (uint32_t i = 0; i < run.workers; i++)
        worker_open(&run, &run.worker[i]);
    in_parallel(&run, list_share, 0);
    uint64_t points = 0;
    for (uint32_t i = 0; i < run.tasks; i++)
        points += run.task[i].points.count;
    in_parallel(&run, run_share, points);
    count_all(&run, context, &report);
    for (uint32_t i = 0; i < run.workers; i++) {
        if (run.worker[i].failure.size && !report.failure.size)
            report.failure =
                str_copy(context->arena, run.worker[i].failure.at, run.worker[i].failure.size);
        worker_close(&run.worker[i]);
    }
    free(run.worker);
    return report;
}

void exact_print(const ExactReport *r) {
    typedef unsigned long long Number;
    printf("%s\n", r->coverage.at);
    printf("nests    %u\n", r->nests);
    printf("points   %llu: of each nest and target all of the core, and the modified ones of one "
           "in %d\n",
           (Number)r->points, EXACT_MODIFIED_EVERY);
    printf("kernels  %llu of distinct text by nest and target, %llu of them reached\n",
           (Number)r->chosen, (Number)r->reached);
    printf(
        "         %llu distinct texts ran in the interpreter, %llu of them split, on 1, 2, 3 and 7 "
        "threads\n",
        (Number)r->texts, (Number)r->split);
    printf("         %llu ran as native code:\n", (Number)r->natives);
    for (uint32_t i = 0; i < EXACT_LENGTHS; i++)
        if (r->length[i][1])
            printf("           up to %6d instructions  %7llu of %7llu, one in %.1f\n",
                   EXACT_NATIVE_INSTS << i, (Number)r->length[i][0], (Number)r->length[i][1],
                   (double)r->length[i][1] / (double)MAX(r->length[i][0], 1));
    printf("%s\n", r->failure.size ? r->failure.at : "the same bits everywhere");
}
