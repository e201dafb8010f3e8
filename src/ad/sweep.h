// Inside of differentiation: the backward function under construction.
//
// While a function F is swept, the lets 0 … n − 1 of the work function stand for F's lets, then
// come the saved values of F's calls, then the cotangent of the result; what the rules emit is
// behind them. When the sweep is over, the stand-ins that are read become parameters of F.bwd, or
// are made again from their operands, and the rest is dropped.
#ifndef PRESK_AD_SWEEP_H
#define PRESK_AD_SWEEP_H

#include "ad/ad.h"

enum { AD_NONE = UINT32_MAX };

// A cotangent on its way to a field of a parameter tree.
typedef struct AdPart {
    uint32_t path_count;
    const Name *path;
    CoreLetId cotangent;
} AdPart;

// What has reached a let of F.
typedef struct AdCotangent {
    CoreLetId let;       // of the work function; AD_NONE: nothing. May be smaller than the let's
                         // type and broadcast to it
    Vec(AdPart) fields;  // trees: what has reached fields
    uint32_t part_count; // tuples: what has reached each part (AD_NONE: nothing)
    CoreLetId *parts;
} AdCotangent;

typedef struct AdSweep {
    CoreProgram *program;
    Arena *arena;
    const CoreFn *fn; // F
    CoreFn *work;
    const bool *active;   // by let of F
    AdCotangent *reached; // by let of F
    Span span;            // of the let being swept: what is emitted gets it
    bool failed;
} AdSweep;

// Emits a let by the primitive's type rule; `stated` where the rule needs it.
CoreLetId ad_emit(AdSweep *s, CorePrim prim, uint32_t count, const CoreLetId *operands,
                  const CoreAttr *attr, CoreTypeId stated);
CoreLetId ad_emit1(AdSweep *s, CorePrim prim, CoreLetId a);
CoreLetId ad_emit2(AdSweep *s, CorePrim prim, CoreLetId a, CoreLetId b);
CoreLetId ad_emit3(AdSweep *s, CorePrim prim, CoreLetId a, CoreLetId b, CoreLetId c);
CoreLetId ad_scalar(AdSweep *s, const char *number); // a rational or decimal literal
CoreTypeId ad_type(const AdSweep *s, CoreLetId let); // of the work function
// The type under which a value passes between forward and backward functions: without names where
// it has the pack, since a call may give the pack an axis of the same name. A view brings them
// back.
CoreTypeId ad_plain(CoreProgram *program, CoreTypeId type);
// The value under another type of the same extents: a view, of a tuple one of each part.
CoreLetId ad_viewed(CoreProgram *program, CoreFn *fn, CoreLetId let, CoreTypeId type);
// The value under exactly this type: broadcast by a copy, renamed by a view, or itself.
CoreLetId ad_exact(AdSweep *s, CoreLetId let, CoreTypeId type);
// Zeros of a type: filled tensors, trees and tuples of them. Where a tuple has indices, those of
// `value` stand in their place; else it may be AD_NONE.
CoreLetId ad_zeros(AdSweep *s, CoreTypeId type, CoreLetId value);

// Adds a contribution to the cotangent of a let of F, where it is active.
void ad_reach(AdSweep *s, CoreLetId let, CoreLetId cotangent);
// The same after summing over the axes along which the let was broadcast into `result`.
void ad_reach_broadcast(AdSweep *s, CoreLetId let, CoreLetId cotangent, CoreTypeId result);
// A contribution to a field of a tree, and to a part of a tuple.
void ad_reach_field(AdSweep *s, CoreLetId tree, uint32_t path_count, const Name *path,
                    CoreLetId cotangent);
void ad_reach_part(AdSweep *s, CoreLetId tuple, uint32_t part, CoreLetId cotangent);
// All that has reached a let, as one value (trees and tuples put together, with zeros where nothing
// came); AD_NONE: nothing.
CoreLetId ad_collected(AdSweep *s, CoreLetId let);

// Sweeps one let of F whose cotangent (of its exact type, or smaller) is `ct`: derivative.c.
void ad_derive(AdSweep *s, CoreLetId let, CoreLetId ct);

#endif
