// Scalar semantics: what every elementwise primitive means, defined once.
//
// Each elementwise primitive, in each arithmetic type (F64 or F32), is a *program*: a straight line
// of steps, every one an IEEE operation that rounds exactly once (step.def) or an exact integer or
// bit operation. The reference evaluator, the kernel interpreter, native code and exported C all
// run these same steps, scalar or in lanes, so their bits agree by construction. `add` is one
// step; `gelu` is some dozens. No libm function is used but fma and sqrt, which IEEE defines.
//
// Values within a program are floats of the arithmetic type, integers of the same width (i32
// beside f32, i64 beside f64), or truth values. Steps are numbered; a step's operands are earlier
// steps. There are no branches: choices are SELECT steps, and no step traps.
#ifndef PRESK_MATHS_MATHS_H
#define PRESK_MATHS_MATHS_H

#include "base/memory.h"
#include "base/number.h"

// Elementwise functions: function.def is the list (name, number of operands, one-line meaning).
typedef enum MthFunction {
#define FUNCTION(name, arity, meaning) MTH_##name,
#include "maths/function.def"
#undef FUNCTION
    MTH_FUNCTION_COUNT
} MthFunction;

typedef enum MthOp {
#define STEP(name, text, arity, result, operands, meaning) MTH_STEP_##name,
#include "maths/step.def"
#undef STEP
    MTH_STEP_COUNT
} MthOp;

// What a step's value is.
typedef enum MthSort { MTH_FLOAT, MTH_INT, MTH_TRUTH } MthSort;

typedef struct MthStep {
    uint8_t op;       // MthOp
    uint8_t sort;     // MthSort of the result
    uint32_t a, b, c; // operands: earlier steps
    union {
        double number;   // FLOAT_CONST: exactly representable in the arithmetic type
        int64_t integer; // INT_CONST, shift counts; ARG: which argument
    };
} MthStep;

// A program: steps[0 … arity−1] are the arguments (ARG); `result` is a step. A comparison's result
// is a truth value; everything else's is a float.
typedef struct MthProgram {
    const MthStep *steps;
    uint32_t count, result, arity;
} MthProgram;

const char *mth_function_text(MthFunction function);
uint32_t mth_function_arity(MthFunction function);
const char *mth_step_text(MthOp op);

// The program of a function in an arithmetic type (F64 or F32), built in the arena. Truth operands
// (the mask of `select`) enter as floats and count as true when they are not 0. `exponent` is the
// power of `pow` (≥ 0, at most 64) and ignored elsewhere.
MthProgram mth_program(Arena *arena, MthFunction function, int64_t exponent, DType arithmetic);

// Runs a program on n elements: args[i] are arrays of doubles that hold values of the arithmetic
// type exactly; out likewise (truth values give 0 or 1). Plain loops, one step at a time.
void mth_run(const MthProgram *program, DType arithmetic, uint32_t n, const double *const *args,
             double *out);
// The same for one element.
double mth_apply(MthFunction function, int64_t exponent, DType arithmetic, const double *args);

// One product step of a contraction and friends, so that they too stand in one place. All take and
// give doubles that hold values of the type exactly.
double mth_round(DType arithmetic, double value); // to F32: one rounding; to F64: itself
double mth_fma(DType arithmetic, double a, double b, double c);

#endif
