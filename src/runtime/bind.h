// Binding an entry: the values of its dimensions and its arguments, from the command line, files
// or a seed, checked against the types that the program states.
//
// Dimensions are bound one by one (`--dim B=16`) or by the shapes of inputs: an axis whose extent
// is a bare dimension binds it, every other extent must come out equal. A dimension bound twice to
// different values, above its bound, or not at all is an error that names who bound it.
#ifndef PRESK_RUNTIME_BIND_H
#define PRESK_RUNTIME_BIND_H

#include "core/concrete.h"
#include "core/eval.h"

typedef struct RtBinding {
    CoreProgram *core;
    Arena *arena;
    CoreFnId id;
    const CoreFn *fn;
    int64_t *by_dim; // by DimId, global and the entry's own; −1: unbound
    Str *by;         // by DimId: who bound it, in words
    bool pack_bound;
    uint32_t pack_rank;
    int64_t pack[RANK_MAX];
    CoreValue *arguments; // by parameter
    bool *given;
    uintptr_t addresses; // given out by rt_bind_shapes
} RtBinding;

// The entry of this name; null with a diagnostic that lists the nearest (E6004).
RtBinding *rt_bind(CoreProgram *core, Arena *arena, Str entry);

// Each false with a diagnostic. `by` says who binds: "--dim", "the input x".
bool rt_bind_dim(RtBinding *binding, Str name, int64_t value, Str by);
bool rt_bind_pack(RtBinding *binding, uint32_t rank, const int64_t *extent, Str by);
// An argument of a real or index type, by its name: the shape binds dimensions, values are
// converted to the storage type (`real`: that of real inputs), indices are range-checked.
bool rt_bind_input(RtBinding *binding, Str name, const Tensor *tensor, DType real, Str by);
// A leaf of a parameter tree, likewise; `path` is the leaf's. The parameter's name is `name`.
bool rt_bind_leaf(RtBinding *binding, uint32_t parameter, uint32_t leaf, const Tensor *tensor,
                  DType real, Str by);

// The parameter of this name; fn->params with a diagnostic where there is none.
uint32_t rt_bind_find(RtBinding *binding, Str name);

// Makes a parameter that was not given, all dimensions being bound: drawn from a seed (a tree by
// its initialisers, a real input from the standard normal distribution, an index uniformly), keyed
// by its name so that values depend on nothing else; or zeros. `inputs` and `params` are the
// storage types of reals.
bool rt_bind_draw(RtBinding *binding, uint32_t parameter, DType inputs, DType params,
                  uint64_t seed);
bool rt_bind_zeros(RtBinding *binding, uint32_t parameter, DType inputs, DType params);
// Types and extents without memory, for a program that is built to look at or to count: data are
// addresses that tell arguments apart and hold nothing.
bool rt_bind_shapes(RtBinding *binding, uint32_t parameter, DType inputs, DType params);

// Every dimension that the entry's types mention has a value within its bound; all extents that
// were given agree.
bool rt_bind_dims_done(RtBinding *binding);

// What an argument is to be made of where it was not given: the concrete shape of parameter
// `parameter` (leaf `leaf` of a tree); false with a diagnostic.
bool rt_bind_shape(RtBinding *binding, uint32_t parameter, Shape *shape, int64_t *range);
// Leaves of a parameter that is a tree, in the entry's terms.
uint32_t rt_bind_leaves(RtBinding *binding, uint32_t parameter, CoreLeaf **leaves);
bool rt_bind_leaf_shape(RtBinding *binding, const CoreLeaf *leaf, Span span, Shape *shape);

// The values of the entry's own dimensions by position, as rt_build and core_eval take them.
const int64_t *rt_bind_own(const RtBinding *binding);
// The name of a parameter as the user writes it: that of the source, "params" for a module's tree.
Str rt_bind_name(const RtBinding *binding, uint32_t parameter);

#endif
