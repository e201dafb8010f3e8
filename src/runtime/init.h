// Initial values of parameters and inputs that were not given.
#ifndef PRESK_RUNTIME_INIT_H
#define PRESK_RUNTIME_INIT_H

#include "core/core.h"
#include "runtime/random.h"

// Fills a leaf's tensor (contiguous) as its initialiser says: normal(a, b) is a + b · z and
// uniform(a, b) is a + (b − a) · u in F64, rounded once to the tensor's type; z and u are those of
// the stream named by the leaf's path. `by_dim` as in core_scalar_value. E6003: an initialiser
// without a finite value.
bool rt_init_leaf(CoreProgram *program, const CoreLeaf *leaf, const int64_t *by_dim, uint64_t seed,
                  Tensor *tensor, Span span);
// Inputs by name: reals from the standard normal distribution, indices uniform below `bound`.
void rt_init_input(Heap *heap, Str name, uint64_t bound, uint64_t seed, Tensor *tensor);

#endif
