// The reference evaluator: runs Core as its header says, in the realized types, with plain loops
// and no cleverness. It is the oracle that every other executor is compared with, so it includes
// nothing of the kernel stages.
//
// Rules it states (numerics.md): a nest computes in the arithmetic type of its site; operands are
// converted exactly or rounded once; the result is rounded once to the site's storage type.
// Products add their terms in increasing flat index of the summed axes to one accumulator that
// starts at +0; reductions fold in increasing index; members of a fusion group stay in the
// arithmetic type. A declared accumulation type holds the running value of products and sums, whose
// operands are rounded once to it (to f32 where it is bf16, and each step then to bf16).
//
// Policies: an empty sum is +0, an empty maximum −inf, minimum +inf, mean NaN. Maximum and minimum
// keep a NaN; argmax is the first maximum, the first NaN where there is one, and 0 of nothing. A
// softmax row without an allowed position, or of −inf scores alone, is all +0; refused positions
// are +0, whatever the score. logsumexp and its kin follow their formula: of −inf alone it is NaN.
#ifndef PRESK_CORE_EVAL_H
#define PRESK_CORE_EVAL_H

#include "core/core.h"

typedef enum CoreReduce { CORE_REDUCE_SEQUENTIAL, CORE_REDUCE_STRIPES16 } CoreReduce;

// What a realization says, as the executors need it (made by rlz_).
typedef struct CoreArithmetic {
    const uint8_t *const
        *storage;      // [CoreFnId][let]: DType of the let's real values (F64, F32, BF16)
    DType params;      // storage of parameters
    DType inputs;      // storage of other real inputs of an entry
    bool multiply_add; // products: round a * b, then the sum; else one fma
    CoreReduce reduce;
    bool has_accumulate; // products and sums keep their running value in `accumulate`
    DType accumulate;
    bool fusion; // false: every group member reaches memory
} CoreArithmetic;

// A let's arithmetic type: F64 for a comparison of index operands alone, else that of its storage.
DType core_let_arithmetic(const CoreProgram *program, const CoreFn *fn, CoreLetId let,
                          const CoreArithmetic *arithmetic, CoreFnId id);

// A value: a tensor, or a list of values (the leaves of a parameter tree in order, or the parts of
// a tuple).
typedef struct CoreValue {
    CoreTypeId type; // closed: in terms of global dimensions only
    Tensor tensor;   // REAL, IDX
    uint32_t count;  // PARAMS: number of leaves; TUPLE: of parts
    struct CoreValue *parts;
} CoreValue;

typedef struct CoreEval {
    CoreProgram *program;
    const CoreArithmetic *arithmetic;
    const int64_t *dims; // values of global dimensions by DimId
    Arena *arena;        // results and intermediates
    CoreHyper hyper;     // may be null
    void *hyper_data;
    uint64_t launches; // counted as a kernel backend would launch: nests, once a leaf for trees
    void (*launched)(void *data, CoreFnId fn, CoreLetId let); // after each; may be null
    void *launched_data;
} CoreEval;

// Runs a function. `arguments` are its parameters in order; `dims` and `pack` are the concrete
// values of the function's own dimensions (by position) and pack. Index values are trusted: they
// were checked when they entered.
CoreValue core_eval(CoreEval *eval, CoreFnId fn, const CoreValue *arguments, const int64_t *dims,
                    uint32_t pack_rank, const int64_t *pack);

#endif
