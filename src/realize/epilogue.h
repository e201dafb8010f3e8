// Epilogues: the add that a product's kernel can take over.
#ifndef PRESK_REALIZE_EPILOGUE_H
#define PRESK_REALIZE_EPILOGUE_H

#include "core/core.h"
#include "core/eval.h"

typedef struct RlzEpilogue {
    CoreLetId add, other; // the add, and its operand that is not the product
    Str why;              // where there is none: the condition that fails
} RlzEpilogue;

// The one let that reads the product must be an add of it and another tensor, launched by itself,
// of the product's shape and storage type; and the product is not the function's result. Whether
// lanes allow the other operand's strides is known at a launch.
bool rlz_epilogue_find(const CoreProgram *program, CoreFnId fn, CoreLetId product,
                       const CoreArithmetic *arithmetic, RlzEpilogue *epilogue);

#endif
