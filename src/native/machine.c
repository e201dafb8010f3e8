// This processor: the widest vectors it has, and its identity for the cache's keys. Asked of the
// processor itself, because asking LLVM would map it.
#include "native/internal.h"

#ifdef __x86_64__
#include <cpuid.h>

uint32_t nat_machine_target(void) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        return 512;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 256 : 128;
}

static uint32_t enabled_state(void) {
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

// Family and model decide the scheduling, the feature words and the register state that the system
// enables decide the instructions. Words that differ between the cores of one machine are left out.
Str nat_machine_identity(Arena *arena) {
    enum { A, B, C, D };
    static const struct {
        uint32_t leaf, sub, words; // words: 1 << A …
    } leaves[] = {{0, 0, 1 << B | 1 << C | 1 << D},
                  {1, 0, 1 << A | 1 << C | 1 << D},
                  {7, 0, 1 << B | 1 << C | 1 << D},
                  {7, 1, 1 << A | 1 << B | 1 << C | 1 << D},
                  {0xD, 1, 1 << A},
                  {0x80000001, 0, 1 << C | 1 << D}};
    StrBuf text = {.arena = arena};
    buf_text(&text, "x86-64");
    bool has_state = false;
    for (size_t i = 0; i < COUNT_OF(leaves); i++) {
        uint32_t word[4] = {0};
        __get_cpuid_count(leaves[i].leaf, leaves[i].sub, &word[A], &word[B], &word[C], &word[D]);
        for (uint32_t w = A; w <= D; w++)
            if (leaves[i].words >> w & 1)
                buf_format(&text, " %08x", word[w]);
        if (leaves[i].leaf == 1)
            has_state = word[C] & bit_OSXSAVE;
    }
    if (has_state)
        buf_format(&text, " %08x", enabled_state());
    return buf_str(&text);
}

#else

uint32_t nat_machine_target(void) {
    return 128;
}

Str nat_machine_identity(Arena *arena) {
    (void)arena;
    return STR("unknown");
}

#endif
