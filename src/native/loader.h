// The loader of relocatable ELF64 x86-64 objects: fresh and cached code go through it alike.
//
// It maps the sections that hold code and constants, resolves what they refer to (each other, and
// libm's fma and fmaf, and memcpy, memmove and memset), and makes the mapping read-only and
// executable. Every offset, size and index of the file is checked before use, so a damaged file
// gives an error and never a crash; a kind of relocation that is not known is an error too.
#ifndef PRESK_NATIVE_LOADER_H
#define PRESK_NATIVE_LOADER_H

#include "native/native.h"

typedef struct NatCode {
    void *mapping; // for nat_unload
    size_t size;
    NatFunction function; // the object's only global function
} NatCode;

// False, with an error of at most `error_size` bytes, when the object cannot be loaded.
bool nat_load(const void *object, size_t size, NatCode *code, char *error, size_t error_size);
void nat_unload(NatCode *code);

#endif
