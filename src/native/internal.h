// What the files of this stage share: the disk cache, the search for the emitter, the processor.
#ifndef PRESK_NATIVE_INTERNAL_H
#define PRESK_NATIVE_INTERNAL_H

#include "native/emit.h"
#include "native/native.h"

// ---- cache.c: objects on disk, one file a kernel -----------------------------------------------

// The folder that the options ask for; empty: no cache (or nowhere to put one).
Str nat_cache_folder(Arena *arena, const NatOptions *options);
// The object stored under a key; false where there is none or its file is damaged.
bool nat_cache_find(Arena *arena, Str folder, Str key, Str *object);
// Other processes see either the whole file or none. False, with the reason, on failure.
bool nat_cache_store(Arena *arena, Str folder, Str key, Str object, Str *error);

// ---- machine.c ---------------------------------------------------------------------------------

// Everything about this processor that code generation looks at, as text.
Str nat_machine_identity(Arena *arena);

// ---- library.c ---------------------------------------------------------------------------------

// Opens libpresk_llvm.so: in $PRESK_LIB, beside the library or program that holds this code, or
// above that (a program in a folder of its own), or in ../lib, or wherever the system looks. Null
// with the reason on failure. LLVM stays mapped until the process ends, since it does not survive
// being unloaded; opening again is cheap.
const Emitter *nat_open_emitter(Arena *arena, Str *error);

#endif
