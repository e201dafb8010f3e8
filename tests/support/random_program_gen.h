// What the files of the random program generator share.
#ifndef PRESK_TESTS_RANDOM_PROGRAM_GEN_H
#define PRESK_TESTS_RANDOM_PROGRAM_GEN_H

#include "support/random_program.h"

enum { RANDOM_NONE = UINT32_MAX, RANDOM_DIMS = 64, RANDOM_RANK = 5 };
enum { RANDOM_ELEMENTS = 10000, RANDOM_WORK = 200000, RANDOM_PACK = 40 };

typedef struct Gen {
    Context *context;
    Arena *arena;
    CoreProgram *p;
    CoreFn *fn;                 // being filled
    uint64_t state;             // of the generator of numbers
    int64_t value[RANDOM_DIMS]; // by DimId: the value, or for a function's own the largest
    DimId global[5];            // A … E
    CoreModuleId linear, net;
} Gen;

uint32_t gen_below(Gen *g, uint32_t n); // 0 … n − 1
bool gen_chance(Gen *g, uint32_t percent);
// The value of an extent, or its largest estimate in a polymorphic function.
int64_t gen_value(const Gen *g, Extent extent);
int64_t gen_elements(const Gen *g, CoreTypeId type);
Name gen_axis_name(Gen *g);

// Adds a let if its type is legal and it is small enough; RANDOM_NONE otherwise. `stated` as in
// core_type_rule.
CoreLetId gen_emit(Gen *g, CorePrim prim, uint32_t count, const CoreLetId *operands,
                   const CoreAttr *attr, CoreTypeId stated);
// A random let whose type satisfies `want`; recent ones are likelier.
typedef bool (*GenWant)(const Gen *g, const CoreType *type);
CoreLetId gen_find(Gen *g, GenWant want);
const CoreType *gen_type(const Gen *g, CoreLetId let);
bool gen_is_tensor(const Gen *g, const CoreType *type);
bool gen_is_index(const Gen *g, const CoreType *type);
bool gen_is_tree(const Gen *g, const CoreType *type);
bool gen_has_axis(const Gen *g, const CoreType *type);
// Has an axis that may be indexed: not `...`, not of extent 0; the first axis is one.
bool gen_has_row(const Gen *g, const CoreType *type);
bool gen_has_first(const Gen *g, const CoreType *type);
uint32_t gen_row_axis(Gen *g, const CoreType *type); // one of them

// One let of this primitive, with what it needs before it; RANDOM_NONE where that cannot be had.
CoreLetId gen_make(Gen *g, CorePrim prim);
CoreLetId gen_make_reverse(Gen *g, CorePrim prim); // a primitive that differentiation makes
CoreLetId gen_make_call(Gen *g);
CoreLetId gen_make_scalar(Gen *g);

#endif
