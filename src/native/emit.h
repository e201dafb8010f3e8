// The C interface between native.c and libpresk_llvm.so, which alone sees LLVM.
//
// The shared object exports one symbol, `presk_emitter`, a table of functions. It reads kernels
// through the structs of kernel.h and needs no symbol of libpresk, so it can be opened by any
// program that carries one; `build` keeps two sides of different sources apart.
#ifndef PRESK_NATIVE_EMIT_H
#define PRESK_NATIVE_EMIT_H

#include "kernel/kernel.h"

// One per compiling thread: an LLVM context with a target machine.
typedef struct EmitUnit EmitUnit;

typedef struct EmitTarget {
    uint32_t bits;   // width of vector registers: 128, 256, 512
    const char *cpu; // an LLVM name of a processor; null: this machine, with all its features
} EmitTarget;

typedef enum EmitWhat { EMIT_OBJECT, EMIT_ASSEMBLY, EMIT_IR } EmitWhat;

typedef struct EmitRequest {
    const Kernel *kernel;
    const char *name;                // of the function
    const char *const *buffer_names; // null: no names (they only show in EMIT_IR)
    EmitWhat what;
} EmitRequest;

// What was emitted: `bytes` of `size`, followed by a NUL; or null bytes and an error. Freed by
// `release`.
typedef struct EmitResult {
    char *bytes;
    size_t size;
    char error[256];
} EmitResult;

typedef struct Emitter {
    const char *build; // hash of the sources and version of LLVM
    // Null, with an error of at most `size` bytes, when LLVM has no such target.
    EmitUnit *(*open)(const EmitTarget *target, char *error, size_t size);
    void (*close)(EmitUnit *unit);
    bool (*emit)(EmitUnit *unit, const EmitRequest *request, EmitResult *result);
    void (*release)(EmitResult *result);
} Emitter;

#endif
