// A random program by all three executors.
#ifndef PRESK_TESTS_EXECUTORS_H
#define PRESK_TESTS_EXECUTORS_H

#include "runtime/runtime.h"
#include "support/random_value.h"

typedef struct ExecutorsOptions {
    RtBackend backend;       // KERNEL or NATIVE
    const char *realization; // "f64", "f32", "bf16"
    RlzTarget target;
    bool fusion;
    uint32_t workers;
    Native *native;     // NATIVE
    uint64_t *launched; // by RlzKind: launches are added here; may be null
} ExecutorsOptions;

// Runs the program (already through the passes) by the reference evaluator and by the backend,
// twice, on the same random arguments. The empty string where bits and launch counts agree, else
// what does not.
Str executors_difference(Context *context, const RandomProgram *program,
                         const ExecutorsOptions *options);

#endif
