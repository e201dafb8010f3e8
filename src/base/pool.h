// A pool of threads for splitting loops: workers spin briefly between jobs, then sleep.
#ifndef PRESK_BASE_POOL_H
#define PRESK_BASE_POOL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Pool Pool;
typedef void (*PoolJob)(void *data, uint32_t worker, uint32_t workers);

// `workers` counts the caller: a pool of 1 has no thread of its own. Null when threads cannot be
// made. More workers than processors are allowed (tests use them).
Pool *pool_new(uint32_t workers);
void pool_free(Pool *pool);
uint32_t pool_workers(const Pool *pool);
// Runs job(data, w, workers) for w = 0 … workers − 1 (workers ≤ pool_workers), worker 0 on the
// calling thread, and returns when all are done. Called from one thread at a time, never from
// within a job. Each worker runs in the default floating-point
// environment (round to nearest, subnormals kept), which is set for the job and restored.
void pool_run(Pool *pool, uint32_t workers, PoolJob job, void *data);

enum { POOL_WORKERS_MAX = 1024 };

// Workers this process may use: PRESK_THREADS if set and valid (1 … POOL_WORKERS_MAX), else the
// affinity mask limited by the cgroup's processor quota, at least 1.
uint32_t pool_default_workers(void);
// The quota of the process's cgroup and of those above it, version 1 or 2, in whole processors,
// rounded up; 0: none. `root` stands before every path ("" but in tests).
uint32_t pool_processor_quota(const char *root);

// Saves the calling thread's floating-point environment and sets the default one; and restores it.
typedef struct FloatEnv {
    uint64_t state[4];
} FloatEnv;
void float_env_enter(FloatEnv *saved);
void float_env_leave(const FloatEnv *saved);

#endif
