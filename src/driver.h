// The driver: THE PASS LIST, from a source file to Core that executors run.
#ifndef PRESK_DRIVER_H
#define PRESK_DRIVER_H

#include "check/check.h"

// What a pass took; for `presk check --timing`.
typedef struct PreskTiming {
    const char *pass;
    double seconds;
} PreskTiming;

enum { PRESK_PASSES_MAX = 8 };

typedef struct PreskCompiled {
    ChkProgram *program;
    uint32_t functions; // of the program as it is written
    uint32_t passes;
    PreskTiming timing[PRESK_PASSES_MAX];
    CoreFnId gradient; // of the training block's loss
} PreskCompiled;

// Checks and elaborates a file and runs every pass over its Core, the verifier after each. False
// with diagnostics in the context where the program has errors. There are gradients of what the
// program asks for with grad(f), of the training block's loss and, where the entry (or null) is
// `F.grad`, of F.
bool presk_compile(Context *context, Arena *arena, const char *path, uint32_t const_count,
                   const ChkConst *consts, const char *entry, PreskCompiled *compiled);
// The passes after elaboration, for programs that come from elsewhere (tests, Core text).
bool presk_passes(CoreProgram *core, Arena *arena, PreskCompiled *compiled);

#endif
