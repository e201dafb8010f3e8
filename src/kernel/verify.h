// What the parts of the verifier share. verify.c checks tables, structure, scopes and types;
// access.c checks memory, on a kernel that has passed verify.c.
#ifndef PRESK_KERNEL_VERIFY_H
#define PRESK_KERNEL_VERIFY_H

#include "kernel/kernel.h"

enum { KRN_NO_LOOP = UINT32_MAX };

typedef struct Verifier {
    const Kernel *kernel;
    Arena *arena;
    StrBuf errors;
    uint32_t *parent; // by value: the innermost loop that holds it; a loop holds its own index
    uint32_t *outer;  // by loop: the loop around it
    bool has_split;
} Verifier;

// One line: "%4: message"; `value` is the instruction at fault.
void krn_fault(Verifier *v, KrnValue value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void krn_verify_accesses(Verifier *v);

#endif
