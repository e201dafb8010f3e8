// The thread pool: every worker runs each job once, in the default floating-point environment.
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/pool.h"

#include <string.h>

enum { MOST = 7 };

typedef struct Count {
    uint64_t calls[MOST];
    uint32_t workers; // as every worker must see it
    uint32_t wrong;
} Count;

static void count_job(void *data, uint32_t worker, uint32_t workers) {
    Count *count = data;
    if (worker >= workers || workers != count->workers)
        __atomic_fetch_add(&count->wrong, 1, __ATOMIC_RELAXED);
    else
        count->calls[worker]++; // no other worker has this index
}

static void many_jobs(uint32_t size) {
    Pool *pool = pool_new(size);
    assert_non_null(pool);
    assert_int_equal(pool_workers(pool), size);
    Count count = {0};
    uint64_t expected[MOST] = {0};
    for (uint32_t job = 0; job < 3000; job++) {
        count.workers = 1 + job * 5 % size; // some workers pass over some jobs
        for (uint32_t w = 0; w < count.workers; w++)
            expected[w]++;
        pool_run(pool, count.workers, count_job, &count);
        assert_memory_equal(count.calls, expected, sizeof expected); // all are done
    }
    assert_int_equal(count.wrong, 0);
    pool_free(pool);
}

static void one_worker(void **state) {
    (void)state;
    many_jobs(1);
}
static void two_workers(void **state) {
    (void)state;
    many_jobs(2);
}
static void three_workers(void **state) {
    (void)state;
    many_jobs(3);
}
static void seven_workers(void **state) {
    (void)state;
    many_jobs(7);
}

// Jobs far enough apart that the workers have gone to sleep.
static void sleepers_wake(void **state) {
    (void)state;
    Pool *pool = pool_new(3);
    Count count = {.workers = 3};
    for (uint64_t job = 1; job <= 20; job++) {
        usleep(2000);
        pool_run(pool, 3, count_job, &count);
        for (int w = 0; w < 3; w++)
            assert_int_equal(count.calls[w], job);
    }
    pool_free(pool);
}

static void slow_worker(void *data, uint32_t worker, uint32_t workers) {
    (void)workers;
    if (worker == 1)
        usleep(20000);
    ((volatile int *)data)[worker] = 1;
}

static void caller_waits(void **state) {
    (void)state;
    Pool *pool = pool_new(2);
    int done[2] = {0};
    pool_run(pool, 2, slow_worker, done);
    assert_int_equal(done[0] + done[1], 2);
    pool_free(pool);
}

static void pools_side_by_side(void **state) {
    (void)state;
    Pool *a = pool_new(2), *b = pool_new(3);
    Count x = {.workers = 2}, y = {.workers = 3};
    for (int job = 0; job < 100; job++) {
        pool_run(a, 2, count_job, &x);
        pool_run(b, 3, count_job, &y);
    }
    assert_int_equal(x.calls[1], 100);
    assert_int_equal(y.calls[2], 100);
    pool_free(a);
    pool_free(b);
    pool_free(NULL);
}

// Sums that differ with the rounding mode, and a subnormal that flushing would lose.
static double rounded(void) {
    volatile double one = 1, small = 0x1p-60;
    return one + small;
}
static double subnormal(void) {
    volatile double small = 0x1p-1060, half = 0.5;
    return small * half;
}

static void env_job(void *data, uint32_t worker, uint32_t workers) {
    (void)workers;
    ((int *)data)[worker] = rounded() == 1 && subnormal() == 0x1p-1061;
}

static void flush_subnormals(void) {
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#endif
}

static void default_environment(void **state) {
    (void)state;
    Pool *pool = pool_new(3);
    int right[3] = {0};
    fenv_t before;
    fegetenv(&before);
    fesetround(FE_UPWARD);
    flush_subnormals();
    assert_true(rounded() > 1);
    pool_run(pool, 3, env_job, right);
    assert_int_equal(fegetround(), FE_UPWARD); // the caller's own comes back
    assert_true(rounded() > 1);
    FloatEnv saved;
    float_env_enter(&saved);
    assert_true(rounded() == 1 && subnormal() == 0x1p-1061);
    float_env_leave(&saved);
    assert_true(rounded() > 1);
    fesetenv(&before);
    for (int w = 0; w < 3; w++)
        assert_true(right[w]);
    pool_free(pool);
}

static void threads_from_environment(void **state) {
    (void)state;
    unsetenv("PRESK_THREADS");
    uint32_t own = pool_default_workers();
    assert_true(own >= 1 && own <= (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
    setenv("PRESK_THREADS", "10", 1);
    assert_int_equal(pool_default_workers(), 10);
    static const char *const invalid[] = {"", "0", "-3", "2x", " 2", "99999999999999999999", "two"};
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
        setenv("PRESK_THREADS", invalid[i], 1);
        assert_int_equal(pool_default_workers(), own);
    }
    unsetenv("PRESK_THREADS");
}

static void put(const char *root, const char *path, const char *text) {
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = full + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(full, 0777);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void quotas(void **state) {
    (void)state;
    char root[] = "/tmp/presk-pool-XXXXXX";
    assert_non_null(mkdtemp(root));
    assert_int_equal(pool_processor_quota(root), 0); // no cgroups at all
    put(root, "/proc/self/cgroup", "0::/a/b\n");
    assert_int_equal(pool_processor_quota(root), 0);
    put(root, "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    assert_int_equal(pool_processor_quota(root), 0);
    put(root, "/sys/fs/cgroup/a/b/cpu.max", "250000 100000\n");
    assert_int_equal(pool_processor_quota(root), 3);          // rounded up
    put(root, "/sys/fs/cgroup/a/cpu.max", "200000 100000\n"); // the group above is tighter
    assert_int_equal(pool_processor_quota(root), 2);
    put(root, "/proc/self/cgroup", "0::/elsewhere\n"); // a container: only the mount's own file
    assert_int_equal(pool_processor_quota(root), 0);
    put(root, "/sys/fs/cgroup/cpu.max", "50000 100000\n");
    assert_int_equal(pool_processor_quota(root), 1);
    put(root, "/proc/self/cgroup", "5:cpuset:/x\n4:cpu,cpuacct:/x\nnonsense\n");
    put(root, "/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "-1\n");
    put(root, "/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
    assert_int_equal(pool_processor_quota(root), 0);
    put(root, "/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "400000\n");
    assert_int_equal(pool_processor_quota(root), 4);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_worker),
        cmocka_unit_test(two_workers),
        cmocka_unit_test(three_workers),
        cmocka_unit_test(seven_workers),
        cmocka_unit_test(sleepers_wake),
        cmocka_unit_test(caller_waits),
        cmocka_unit_test(pools_side_by_side),
        cmocka_unit_test(default_environment),
        cmocka_unit_test(threads_from_environment),
        cmocka_unit_test(quotas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
