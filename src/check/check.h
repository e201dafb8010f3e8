// The checker: names, extents, types and shapes; the typed program becomes Core.
//
// A source and everything it imports (std/ is embedded in the binary; other paths are relative to
// the importing file) becomes one CoreProgram with a function for every function of the root
// source, every module function that is used, and `NAME.step` for every optimizer.
#ifndef PRESK_CHECK_CHECK_H
#define PRESK_CHECK_CHECK_H

#include "core/core.h"
#include "syntax/tree.h"

// A constant set from the command line (--const X=n); `value` as written.
typedef struct ChkConst {
    Str name, value;
} ChkConst;

// The training block, for the commands that need it.
typedef struct ChkStage { // one stage of the data pipeline
    Str name;             // windows, shuffle, batch, take
    uint32_t count;
    Name keys[4];
    const Rational *values[4];
} ChkStage;

typedef struct ChkSetting {
    Name name;
    const Rational *value; // null where it is a name or a schedule
    CoreScalar schedule;   // of the step `t`: a hyperparameter's; else 0
    Str text;              // a name, or a schedule as it is written
    Span span;
} ChkSetting;

typedef struct ChkTraining {
    bool present;
    Span span;
    CoreModuleId model; // and the tree of its parameters
    CoreTree tree;
    CoreFnId loss, step; // step: the optimizer's function, 0 without one
    Str stream;          // path of the data
    Vec(ChkStage) stages;
    Vec(ChkSetting) settings; // epochs, steps, lr, metric, …
    int64_t checkpoint_every; // 0: none
    Str checkpoint_path;
} ChkTraining;

typedef struct ChkProgram {
    CoreProgram *core;
    ChkTraining training;
    uint32_t source; // the root
    uint32_t lines;  // of all sources, for reports
} ChkProgram;

// Reads, parses, checks and elaborates `path`. Errors are in the context's diagnostics; null if
// there were any.
ChkProgram *chk_program(Context *context, Arena *arena, const char *path, uint32_t const_count,
                        const ChkConst *consts);
// The same for a text already added as a source (tests, fuzzing). Imports other than std/ are
// relative to the source's path.
ChkProgram *chk_source(Context *context, Arena *arena, uint32_t source, uint32_t const_count,
                       const ChkConst *consts);

#endif
