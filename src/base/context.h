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

// Sets up an empty context in place.
void context_init(Context *context);
// The same with a point to go to when memory is out (from the first allocation on), and the n-th
// allocation failing (0: none).
void context_init_rescued(Context *context, jmp_buf *rescue, uint64_t fail_at);
void context_free(Context *context);

#endif
