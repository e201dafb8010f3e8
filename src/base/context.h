// The context: everything a run of the compiler shares. There is no other global state, so two
// contexts run in two threads.
#ifndef PRESK_BASE_CONTEXT_H
#define PRESK_BASE_CONTEXT_H

#include "base/diag.h"

typedef struct Context {
    Heap heap;
    Arena *arena; // lives as long as the context
    Names *names;
    Sources sources;
    Diags diags;
} Context;

// Sets up an empty context in place; heap.fail_at and heap.rescue are kept from before (zero them).
void context_init(Context *context);
void context_free(Context *context);

#endif
