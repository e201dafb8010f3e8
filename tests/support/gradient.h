// Gradients of tests: against differences of the function itself, and by every executor.
#ifndef PRESK_TESTS_GRADIENT_H
#define PRESK_TESTS_GRADIENT_H

#include "check/check.h"
#include "support/executors.h"

typedef struct Gradient {
    Context context;
    RandomProgram program; // its entry is F.grad
    CoreFnId fn;           // F
    double low, high;      // arguments are drawn uniformly between these
} Gradient;

// The program after all passes, with the gradient of `fn`; fails the test where it has errors. In
// a text every dimension is a constant.
void gradient_of_text(Gradient *gradient, const char *text, const char *fn);
void gradient_of_core(Gradient *gradient, const char *text, const char *fn); // of Core as text
// A file at constants ("D=4 H=2") and dimensions ("B=2 T=3").
void gradient_of_file(Gradient *gradient, const char *path, const char *fn, const char *constants,
                      const char *dims);
void gradient_end(Gradient *gradient);

// Runs F.grad in f64 on these arguments by the reference evaluator.
CoreValue *gradient_arguments(Gradient *gradient, uint64_t seed);
CoreValue gradient_value(Gradient *gradient, const CoreValue *arguments);

// Compares F.grad with F and its five-point differences in every element of the first argument:
// the value bit for bit, the gradient to `tolerance`, relative to the largest value of its tensor
// or a thousandth of the largest of all. Gives how many tensors have a gradient of zeros alone.
uint32_t gradient_check(Gradient *gradient, const char *what, double tolerance);

// F.grad by the kernel interpreter in f64, f32 and bf16 and, where a folder for the cache is given,
// natively in `native` (a realization), bit for bit against the reference evaluator.
void gradient_executors(Gradient *gradient, const char *what, const char *native,
                        const char *folder);

#endif
