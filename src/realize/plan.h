// Realization plans: a realization and a layout for each nest, from a strict JSON file:
//   { "realization": "f32", "target": 512, "profile": "out/profile.json",
//     "layout": { "attend/%2": { "tile": [4, 16], "split": { "depth": 1, "workers": "all" } },
//                 "Linear.apply/%3@4096x1536x384": { "lanes": 4 } }, "made": … }
// A key names a site, or a site at one shape, as `presk dump --stage realize` prints it; the record
// of a shape stands instead of the plain one there. What is not stated has its default.
//
// A plan is checked twice: rlz_plan_check before anything runs, rlz_plan_layout whenever a nest is
// launched at a new shape. An ill-formed one is refused (E7002), never ignored; one for a wider
// target than the machine's is E7003, unless it is retargeted, which drops what does not fit.
#ifndef PRESK_REALIZE_PLAN_H
#define PRESK_REALIZE_PLAN_H

#include "realize/legal.h"
#include "realize/realization.h"

typedef struct RlzStated {
    Str key, shape; // shape: behind the @, empty: every shape
    Span span;      // of the key
    CoreFnId fn;    // 0 until rlz_plan_check has found the nest
    CoreLetId let;
    uint32_t decisions; // bits by RlzDecision
    uint32_t value[RLZ_DECISION_COUNT];
    Span at[RLZ_DECISION_COUNT];
} RlzStated;

typedef struct RlzPlan {
    Context *context;
    Arena *arena;
    Str path;
    RlzRealization *realization;
    RlzTarget target; // 0: not stated
    Span target_at;
    Str profile; // empty: none
    Vec(RlzStated) nests;
    bool retarget;
} RlzPlan;

// Null with diagnostics where the file is malformed, or a value is in no target's domain.
RlzPlan *rlz_plan_read(Context *context, Arena *arena, Str path);
// The target to run on: the plan's, or `machine` where it states none. 0 with E7003 where the plan
// is for a wider one; with `retarget`, `machine` and notes of what is dropped.
RlzTarget rlz_plan_target(RlzPlan *plan, RlzTarget machine, bool retarget);
// What can be checked before anything runs: every nest exists (in the program, reached or not), has
// the decisions and the target has the values (conditions 1, 2, 10), epilogues apply (6).
bool rlz_plan_check(const CoreProgram *program, RlzPlan *plan, const CoreArithmetic *arithmetic,
                    RlzTarget target);

// The layout of a site's nest; plan null: the default. False with a diagnostic where the stated one
// fails a condition at this shape.
bool rlz_plan_layout(const RlzPlan *plan, CoreFnId fn, CoreLetId let, const RlzNest *nest,
                     const RlzMachine *machine, Arena *arena, RlzLayout *layout);
// Condition 8, once the kernel exists.
bool rlz_plan_split(const RlzPlan *plan, CoreFnId fn, CoreLetId let, const RlzNest *nest,
                    const RlzLayout *layout, int64_t iterations);
// Does the plan state an epilogue for this product (a nest without one) at its shape?
bool rlz_plan_epilogue(const RlzPlan *plan, CoreFnId fn, CoreLetId let, const RlzNest *nest,
                       Arena *arena);
// Does the plan state one launch for the nest of all leaves of a group over a tree?
bool rlz_plan_leaves(const RlzPlan *plan, CoreFnId fn, CoreLetId let, const RlzNest *nest,
                     Arena *arena);

// "twice/%2 lanes 4 split { … }", as it stands in the plan.
Str rlz_stated_text(const RlzStated *stated, Arena *arena);
// A record of a plan that states every decision of a nest: `"KEY": { … }`.
Str rlz_plan_record(Str key, const RlzNest *nest, const RlzLayout *layout, Arena *arena);

#endif
