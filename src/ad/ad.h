// Reverse-mode differentiation: Core to Core, before the fusion partition.
//
// The gradient of a function F with respect to its first argument is a function `F.grad` with F's
// parameters and the result (value, gradient). It calls
//   F.fwd   F's body, whose result is a tuple (value, saved values …); F itself where nothing has
//           to be saved
//   F.bwd   takes those of F's parameters that it needs, the saved values and the cotangent of the
//           value; its result are the cotangents of F's active parameters (a tuple unless one)
// A parameter is active where the gradient depends on it: an index or an input that nobody
// differentiates by is not. A function called with different active parameters has a pair for each
// (`Linear.apply.bwd.no_x` leaves out the cotangent of x).
//
// Only what the backward pass reads is saved, and what launches nothing (views, fields, scalars,
// ranges) is made again instead. Cotangents are added in reverse order of the lets. A value that no
// cotangent reaches has none: zeros are made only where a result demands them.
//
// Every primitive has a rule (derivative.c), those of backward passes included, so that gradients
// have gradients; one without makes the gradient an error (E3002), never a silent zero. Comparisons
// and indices have no derivative and end the sweep. Rules at kinks and ties follow the numerics
// page: relu'(0) = |x|'(0) = 0, the whole cotangent of a maximum goes to its first place, of max(a,
// b) to the operand that is taken.
//
// Reference: Griewank and Walther, Evaluating Derivatives, 2nd ed., SIAM 2008, chapter 3.
#ifndef PRESK_AD_AD_H
#define PRESK_AD_AD_H

#include "core/core.h"

// Gives every gradient that is only declared (core_gradient_declare) its body, with every .fwd and
// .bwd that it needs. False with diagnostics: a result that is no real scalar, a first parameter
// that holds no reals (E3003), or a primitive on the way that has no derivative (E3002).
bool ad_gradients(CoreProgram *program);

#endif
