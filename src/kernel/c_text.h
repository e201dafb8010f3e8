// Kernels as C99: what `presk export` writes and `presk dump --stage c` shows.
//
// Each operation is the `lane` expression of kop.def, so the C says what the interpreter does; a
// vector is an array that a loop over its lanes fills. The text needs krn_c_prelude before it and
// nothing else but fma and sqrt of libm. The prelude turns contraction off where the compiler can
// be told so in the text, and refuses to compile under fast-math flags or where float expressions
// are evaluated in a wider type.
#ifndef PRESK_KERNEL_C_TEXT_H
#define PRESK_KERNEL_C_TEXT_H

#include "kernel/kernel.h"

// What every exported file begins with: headers, guards, conversions.
void krn_c_prelude(StrBuf *buf);
// `static void NAME(void *const *buffers)`: the whole kernel, split loops in one piece.
void krn_c_function(const Kernel *kernel, const char *name, StrBuf *buf);

#endif
