// Exporting a program as C: one file and its header, with no dependency but libm's fma and sqrt,
// that compute the bits of every other executor.
#ifndef PRESK_RUNTIME_EXPORT_H
#define PRESK_RUNTIME_EXPORT_H

#include "runtime/runtime.h"

// An argument or a result under the name that it has in C.
typedef struct RtExported {
    Str name;
    Tensor tensor; // an argument as it was bound; a result as rt_result gives it
} RtExported;

// The texts of NAME.h and NAME.c for a program built to look at or to run. The function is
//   void NAME(const struct NAME_arguments *, const struct NAME_results *, void *workspace)
// with a pointer for each argument and result and NAME_WORKSPACE bytes of workspace, aligned to 64.
// Constants of the program are in the file.
void rt_export(const RtProgram *program, Str name, uint32_t argument_count,
               const RtExported *arguments, uint32_t result_count, const RtExported *results,
               StrBuf *header, StrBuf *source);

#endif
