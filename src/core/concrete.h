// Concrete types: what a symbolic type is once dimensions have values.
#ifndef PRESK_CORE_CONCRETE_H
#define PRESK_CORE_CONCRETE_H

#include "core/core.h"

// The dimensions of one call: values by DimId (−1: unbound) and the extents of the pack.
typedef struct CoreFrame {
    const int64_t *by_dim;
    uint32_t pack_rank;
    const int64_t *pack;
} CoreFrame;

typedef enum CoreConcrete {
    CORE_CONCRETE_OK,
    CORE_CONCRETE_UNBOUND,  // *missing is the dimension
    CORE_CONCRETE_OVERFLOW, // an extent, or the number of elements, exceeds 63 bits
    CORE_CONCRETE_NEGATIVE, // an extent is below zero
    CORE_CONCRETE_RANK      // more than RANK_MAX axes
} CoreConcrete;

// The row-major shape of a real or index type in a frame; *range is the bound of an index type's
// values (0 for a real one). `missing` may be null.
CoreConcrete core_concrete(const CoreProgram *program, CoreTypeId type, const CoreFrame *frame,
                           Shape *shape, int64_t *range, DimId *missing);
// What a failure says, in words: "the dimension B has no value".
Str core_concrete_text(const CoreProgram *program, CoreConcrete failure, DimId missing,
                       Arena *arena);

// Where the axes of a symbolic type stand in its concrete shape: axis i covers concrete axes
// first[i] … first[i + 1] − 1 (one, or the pack's).
void core_axis_places(const CoreType *type, uint32_t pack_rank, uint32_t *first);

// The frame of a callee: its dims and pack from a call's attributes, evaluated in the caller's
// frame. False where a value overflows or is unbound.
bool core_callee_frame(const CoreProgram *program, const CoreAttr *attr, const CoreFrame *caller,
                       Arena *arena, CoreFrame *callee);
// The frame of an entry: global dims and the function's own, by position.
CoreFrame core_entry_frame(const CoreProgram *program, const CoreFn *fn, const int64_t *global,
                           const int64_t *own, uint32_t pack_rank, const int64_t *pack,
                           Arena *arena);

// The range of leaves (in the order of core_tree_leaves) below a path of field names: 1 for a leaf.
// False: there is no such field.
bool core_leaf_range(const CoreProgram *program, CoreTree tree, uint32_t count, const Name *path,
                     uint32_t *first, uint32_t *leaves);
uint32_t core_leaf_count(const CoreProgram *program, CoreTree tree);

#endif
