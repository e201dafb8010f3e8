// How many processors this process may use: the affinity mask, then the quotas of the control
// groups it lies in (Linux cgroups: version 2 "cpu.max", version 1 "cpu.cfs_quota_us").
#include "base/pool.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The first line of a small file; false where there is none.
static bool read_line(const char *path, char *line, int size) {
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool read = fgets(line, size, file) != NULL;
    fclose(file);
    return read;
}

static uint32_t smaller_quota(uint32_t a, uint32_t b) {
    if (a == 0 || b == 0)
        return a + b;
    return a < b ? a : b;
}

static uint32_t whole_processors(long long quota, long long period) {
    if (quota <= 0 || period <= 0)
        return 0;
    long long whole = quota / period + (quota % period != 0);
    return whole > UINT32_MAX ? 0 : (uint32_t)whole;
}

static uint32_t quota_v2(const char *folder) {
    char path[PATH_MAX], line[128];
    long long quota, period;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (read_line(path, line, sizeof line) && sscanf(line, "%lld %lld", &quota, &period) == 2)
        return whole_processors(quota, period);
    return 0; // absent, or "max"
}

static uint32_t quota_v1(const char *folder) {
    char path[PATH_MAX], line[128];
    long long quota, period;
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_line(path, line, sizeof line) || sscanf(line, "%lld", &quota) != 1)
        return 0;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (!read_line(path, line, sizeof line) || sscanf(line, "%lld", &period) != 1)
        return 0;
    return whole_processors(quota, period);
}

// The smallest quota of the group and of those above it, up to the mount point. In a container the
// group's path may be the host's; what does not exist there is passed over.
static uint32_t quota_upwards(const char *root, const char *mount, const char *group,
                              uint32_t (*quota_of)(const char *folder)) {
    char folder[PATH_MAX / 2];
    int start = snprintf(folder, sizeof folder, "%s%s", root, mount);
    if (start < 0 || (size_t)start + strlen(group) >= sizeof folder)
        return 0;
    strcpy(folder + start, group);
    uint32_t quota = 0;
    for (;;) {
        quota = smaller_quota(quota, quota_of(folder));
        char *slash = strrchr(folder + start, '/');
        if (!slash)
            return quota;
        *slash = 0;
    }
}

// Whether `name` is one of the comma-separated words.
static bool has_word(const char *words, const char *name) {
    size_t size = strlen(name);
    for (;; words++) {
        if (strncmp(words, name, size) == 0 && (words[size] == ',' || words[size] == 0))
            return true;
        words = strchr(words, ',');
        if (!words)
            return false;
    }
}

// A line of /proc/self/cgroup: "number:controllers:path", without controllers in version 2.
static uint32_t quota_of_line(const char *root, char *line) {
    line[strcspn(line, "\n")] = 0;
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return 0;
    *controllers++ = 0;
    *group++ = 0;
    if (*controllers == 0)
        return smaller_quota(quota_upwards(root, "/sys/fs/cgroup", group, quota_v2),
                             quota_upwards(root, "/sys/fs/cgroup/unified", group, quota_v2));
    if (has_word(controllers, "cpu"))
        return smaller_quota(quota_upwards(root, "/sys/fs/cgroup/cpu", group, quota_v1),
                             quota_upwards(root, "/sys/fs/cgroup/cpu,cpuacct", group, quota_v1));
    return 0;
}

uint32_t pool_processor_quota(const char *root) {
    char path[PATH_MAX], line[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    uint32_t quota = 0;
    while (fgets(line, sizeof line, file))
        quota = smaller_quota(quota, quota_of_line(root, line));
    fclose(file);
    return quota;
}

// Processors in the affinity mask; the mask is made larger until the kernel's fits.
static uint32_t affinity_count(void) {
    for (int capacity = 1024; capacity <= 1 << 20; capacity *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)capacity);
        if (!set)
            return 1;
        size_t size = CPU_ALLOC_SIZE((size_t)capacity);
        int status = sched_getaffinity(0, size, set);
        int reason = errno;
        int count = status == 0 ? CPU_COUNT_S(size, set) : 1;
        CPU_FREE(set);
        if (status == 0 || reason != EINVAL)
            return count < 1 ? 1 : (uint32_t)count;
    }
    return 1;
}

uint32_t pool_default_workers(void) {
    const char *text = getenv("PRESK_THREADS");
    if (text && *text >= '0' && *text <= '9') {
        char *end;
        unsigned long stated = strtoul(text, &end, 10);
        if (*end == 0 && stated >= 1 && stated <= POOL_WORKERS_MAX)
            return (uint32_t)stated;
    }
    uint32_t count = smaller_quota(affinity_count(), pool_processor_quota(""));
    return count < POOL_WORKERS_MAX ? count : POOL_WORKERS_MAX;
}
