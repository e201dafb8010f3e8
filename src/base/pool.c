// The pool's threads. Each worker has a ticket that the caller raises to hand it the current job,
// so workers that take no part in a job are not woken. Waiting is a spin, only where each worker
// can have a processor of its own, and then a futex. The spin is some times as long as a futex
// takes to wake a thread (about 30 µs): a shorter one would put both sides to sleep at every job.
#include "base/pool.h"

#include "base/memory.h"

#include <fenv.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { SPINS = 10000, CACHE_LINE = 64 };

typedef struct Worker {
    _Alignas(CACHE_LINE) _Atomic uint32_t ticket; // jobs handed to this worker so far
    _Atomic uint32_t asleep;
    uint32_t index;
    Pool *pool;
    pthread_t thread;
} Worker;

struct Pool {
    // What a running job's workers read; the caller writes it only while no job runs.
    PoolJob job;
    void *data;
    uint32_t workers;
    bool quit;
    uint32_t size, spins;
    _Alignas(CACHE_LINE) _Atomic uint32_t pending; // workers that have not finished the job
    _Atomic uint32_t caller_asleep;
    Worker worker[]; // 1 … size − 1; 0 is the caller
};

static void futex_wait(_Atomic uint32_t *at, uint32_t value) {
    syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *at) {
    syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static inline void relax(void) {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// Waits until *at differs from `value`; `asleep` tells the other side that it has to wake us. Both
// sides use sequentially consistent operations: either we see the new value or it sees the flag.
static void wait_change(_Atomic uint32_t *at, uint32_t value, _Atomic uint32_t *asleep,
                        uint32_t spins) {
    for (uint32_t i = 0; i < spins; i++) {
        if (atomic_load(at) != value)
            return;
        relax();
    }
    atomic_store(asleep, 1);
    while (atomic_load(at) == value)
        futex_wait(at, value);
    atomic_store(asleep, 0);
}

static void run_job(const Pool *pool, uint32_t worker) {
    FloatEnv saved;
    float_env_enter(&saved);
    pool->job(pool->data, worker, pool->workers);
    float_env_leave(&saved);
}

static void *worker_main(void *argument) {
    Worker *self = argument;
    Pool *pool = self->pool;
    for (uint32_t seen = 0;; seen++) {
        wait_change(&self->ticket, seen, &self->asleep, pool->spins);
        if (pool->quit)
            return NULL;
        run_job(pool, self->index);
        if (atomic_fetch_sub(&pool->pending, 1) == 1 && atomic_load(&pool->caller_asleep))
            futex_wake(&pool->pending);
    }
}

static void hand_out(Pool *pool, uint32_t workers) {
    for (uint32_t i = 1; i < workers; i++) {
        Worker *worker = &pool->worker[i];
        atomic_fetch_add(&worker->ticket, 1);
        if (atomic_load(&worker->asleep))
            futex_wake(&worker->ticket);
    }
}

// Starts worker `index` with all signals blocked, so that they reach the program's own threads.
static bool worker_start(Pool *pool, uint32_t index) {
    Worker *worker = &pool->worker[index];
    worker->index = index;
    worker->pool = pool;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int status = pthread_create(&worker->thread, NULL, worker_main, worker);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return status == 0;
}

Pool *pool_new(uint32_t workers) {
    check_that(workers >= 1);
    size_t size = sizeof(Pool) + sizeof(Worker) * workers;
    Pool *pool = aligned_alloc(CACHE_LINE, (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    if (!pool)
        return NULL;
    memset(pool, 0, size);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    pool->spins = (long)workers <= processors ? SPINS : 0;
    for (pool->size = 1; pool->size < workers; pool->size++) {
        if (!worker_start(pool, pool->size)) {
            pool_free(pool);
            return NULL;
        }
    }
    return pool;
}

void pool_free(Pool *pool) {
    if (!pool)
        return;
    pool->quit = true;
    hand_out(pool, pool->size);
    for (uint32_t i = 1; i < pool->size; i++)
        pthread_join(pool->worker[i].thread, NULL);
    free(pool);
}

uint32_t pool_workers(const Pool *pool) {
    return pool->size;
}

void pool_run(Pool *pool, uint32_t workers, PoolJob job, void *data) {
    check_that(workers >= 1 && workers <= pool->size);
    pool->job = job;
    pool->data = data;
    pool->workers = workers;
    atomic_store(&pool->pending, workers - 1);
    hand_out(pool, workers);
    run_job(pool, 0);
    for (uint32_t left; (left = atomic_load(&pool->pending)) != 0;)
        wait_change(&pool->pending, left, &pool->caller_asleep, pool->spins);
}

// ---- floating-point environment -------------------------------------------------------------

#if defined(__x86_64__)

// All arithmetic is SSE or AVX, so the control register of those is the whole environment.
enum { MXCSR_DEFAULT = 0x1F80 };

void float_env_enter(FloatEnv *saved) {
    saved->state[0] = _mm_getcsr();
    _mm_setcsr(MXCSR_DEFAULT);
}

void float_env_leave(const FloatEnv *saved) {
    _mm_setcsr((unsigned)saved->state[0]);
}

#else

_Static_assert(sizeof(fenv_t) <= sizeof(FloatEnv), "the environment fits");

void float_env_enter(FloatEnv *saved) {
    fegetenv((fenv_t *)saved->state);
    fesetenv(FE_DFL_ENV);
}

void float_env_leave(const FloatEnv *saved) {
    fesetenv((const fenv_t *)saved->state);
}

#endif
