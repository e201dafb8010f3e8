// Realizations: which arithmetic each site has. A realization owns every bit of a result; it is
// "f64", "f32", "bf16", or a JSON record (plans.md):
//   { "name": …, "default": "f32", "params": "f32", "state": "f32", "sites": { "loss/%12": "f64" },
//     "product": "fma", "reduce": "sequential", "accumulate": "f32", "inline": false, "gap": … }
#ifndef PRESK_REALIZE_REALIZATION_H
#define PRESK_REALIZE_REALIZATION_H

#include "core/core.h"
#include "core/eval.h"

typedef struct RlzSite {
    Str site; // "loss/%12"
    DType type;
    Span span; // in the record's text
} RlzSite;

typedef struct RlzRealization {
    Str name;
    DType uniform; // "default"
    DType params, state;
    Vec(RlzSite) sites;
    bool multiply_add; // "product": "mul-add"
    CoreReduce reduce; // "reduce": "stripes16"
    bool has_accumulate;
    DType accumulate;
    double gap;      // as recorded; 0: none
    uint32_t source; // 0 for a uniform one
} RlzRealization;

// `text` is "f64", "f32", "bf16" or "@FILE". Null with a diagnostic (E7001) where it is malformed.
// Under bf16 params and state default to f32.
RlzRealization *rlz_realization_read(Context *context, Arena *arena, Str text);
// The same of a plan's "realization": one of those texts, or a record in place.
struct RlzJson;
struct RlzMember;
RlzRealization *rlz_realization_of(Context *context, Arena *arena, const struct RlzJson *json,
                                   const struct RlzMember *member);
// Every site must exist and launch; a member of a group must not be typed apart from its root
// (E7001). Members that the record does not name have their root's type.
bool rlz_realization_check(const CoreProgram *program, const RlzRealization *realization);
// Kernels accumulate in the arithmetic type: another accumulation type is refused (E7002).
bool rlz_realization_lowers(Context *context, const RlzRealization *realization);
// The table that executors read. Lets of parameter trees have the type `params`, but the trees
// after the first of an optimizer's results, its state, have the type `state`.
CoreArithmetic *rlz_arithmetic(const CoreProgram *program, Arena *arena,
                               const RlzRealization *realization, bool fusion);

#endif
