/* presk.h: compile a program of the language and run its functions from C.
 *
 * A PreskProgram is one compiled source file with its imports; a PreskEntry is one function of it,
 * at given dimensions, ready to run. Nothing is global: programs in different threads do not know
 * of each other, and one program is used by one thread at a time (its entries may run their loops
 * on several workers of their own).
 *
 * Functions that can fail return 0 for success, or null for a pointer; presk_message then has the
 * diagnostics as text. Once a call has failed for want of memory, only presk_message and
 * presk_close may be called on the program. Everything a program gives is valid until presk_close.
 *
 *     PreskProgram *p = presk_open("layer.psk", NULL);
 *     PreskEntry *e = presk_entry(p, "score", "B=32", NULL);
 *     presk_set(e, "x", PRESK_F32, 2, (int64_t[]){32, 64}, data);
 *     presk_fill(e, 0);                       // parameters drawn from seed 0
 *     presk_run(e);
 *     PreskTensor y = presk_result(e, 0);
 *     presk_close(p);
 */
#ifndef PRESK_H
#define PRESK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PreskProgram PreskProgram;
typedef struct PreskEntry PreskEntry;

typedef enum PreskType {
    PRESK_F64,
    PRESK_F32,
    PRESK_BF16,
    PRESK_U8,
    PRESK_U16,
    PRESK_U32,
    PRESK_U64
} PreskType;

/* Row-major elements. Rank 0 is a scalar. */
typedef struct PreskTensor {
    PreskType type;
    uint32_t rank;
    const int64_t *extent;
    const void *data;
} PreskTensor;

typedef enum PreskBackend { PRESK_NATIVE, PRESK_KERNEL, PRESK_REFERENCE } PreskBackend;

typedef struct PreskOptions {
    PreskBackend backend;
    const char *realization; /* "f32" (null), "f64", "bf16" or "@FILE" */
    uint32_t workers;        /* 0: PRESK_THREADS, else the processors this process may use */
} PreskOptions;

/* Compiles a file. `constants` is null or a list "D=64,H=2" of other values for its constants.
 * Null only when there is no memory at all: ask presk_message for errors in the program. */
PreskProgram *presk_open(const char *path, const char *constants);
void presk_close(PreskProgram *program);
/* The diagnostics so far, as `presk check` prints them; empty: none. */
const char *presk_message(PreskProgram *program);

/* A function by name ("loss", "GPT.apply"). `dims` is null or a list "B=2,T=32"; dimensions that
 * it leaves out must follow from the shapes of inputs. Options null: native, f32. */
PreskEntry *presk_entry(PreskProgram *program, const char *name, const char *dims,
                        const PreskOptions *options);
/* An input by the name of the function's parameter. Values are copied: reals are rounded once to
 * the realization's type of inputs, indices are checked against their range. Inputs may be set
 * again between runs, with the same shape. */
int presk_set(PreskEntry *entry, const char *name, PreskType type, uint32_t rank,
              const int64_t *extent, const void *data);
/* A leaf of the entry's parameter tree, by its path ("blocks.0.attn.query.w"). */
int presk_set_parameter(PreskEntry *entry, const char *path, PreskType type, uint32_t rank,
                        const int64_t *extent, const void *data);
/* Draws every input and parameter that is not set, as `presk run --seed` does. */
int presk_fill(PreskEntry *entry, uint64_t seed);
/* Builds the entry at the first call (all inputs must be set) and runs it. */
int presk_run(PreskEntry *entry);
/* The result's tensors in order: one, or the parts of a tuple, or the leaves of a tree; of an
 * index out of range, data is null. Overwritten by the next run. */
PreskTensor presk_result(PreskEntry *entry, uint32_t index);
uint32_t presk_result_count(PreskEntry *entry);

#ifdef __cplusplus
}
#endif

#endif
