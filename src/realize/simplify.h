// Canonical axes of a nest; private to this folder.
#ifndef PRESK_REALIZE_SIMPLIFY_H
#define PRESK_REALIZE_SIMPLIFY_H

#include "realize/nest.h"

// Drops axes of extent 1 and merges neighbours, where the kind allows it (nest.h).
void rlz_simplify(RlzNest *nest, RlzOperand *operand, uint32_t operands);

#endif
