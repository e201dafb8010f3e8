// Native code: kernels compiled by LLVM, cached on disk, loaded by a small loader of our own.
//
// LLVM lives in a shared object of its own (libpresk_llvm.so, the llvm_*.c files), opened
// only when something has to be compiled; loading cached code maps no libLLVM. An object is a
// relocatable ELF file in the cache folder, named by the hash of the kernel's text, the target's
// triple and features, and the versions of LLVM and of the emitter.
#ifndef PRESK_NATIVE_NATIVE_H
#define PRESK_NATIVE_NATIVE_H

#include "kernel/kernel.h"

// As krn_interpret's arguments; begin and end bound the split loop.
typedef void (*NatFunction)(void *const *buffers, int64_t begin, int64_t end);

typedef struct Native Native;

typedef struct NatOptions {
    const char *cache_folder; // null: $PRESK_CACHE, else $XDG_CACHE_HOME/presk, else ~/.cache/presk
    bool no_cache;
    uint32_t target;  // 128, 256, 512; 0: the machine's widest
    uint32_t threads; // compile threads; 0: pool_default_workers()
    const char *cpu;  // an LLVM name such as "x86-64"; null: this machine
} NatOptions;

typedef struct NatStatistics {
    uint32_t compiled, loaded;            // kernels compiled by LLVM; taken from the disk cache
    double compile_seconds, load_seconds; // wall clock
} NatStatistics;

// The widest vector target of this processor: 512, 256 or 128; bits of vector register.
uint32_t nat_machine_target(void);

// Null with a diagnostic when the machine's vectors are narrower than the target.
Native *nat_new(Context *context, Arena *arena, const NatOptions *options);
void nat_free(Native *native); // unmaps all code
// Compiles or loads kernels; functions[i] is kernels[i]'s code, valid until nat_free. Kernels of
// equal text share code. False with a diagnostic (E6xxx) when LLVM cannot be opened or fails.
bool nat_compile(Native *native, uint32_t count, Kernel *const *kernels, NatFunction *functions);
NatStatistics nat_statistics(const Native *native);

// The LLVM IR or assembly of a kernel, for dumps. Empty with a diagnostic on failure.
typedef enum NatText { NAT_LLVM, NAT_ASSEMBLY } NatText;
Str nat_text(Native *native, const Kernel *kernel, NatText what, Arena *arena);

#endif
