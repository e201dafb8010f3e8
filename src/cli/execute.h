// Executing an entry on a backend, for the commands that run it.
#ifndef PRESK_CLI_EXECUTE_H
#define PRESK_CLI_EXECUTE_H

#include "cli/entry.h"

typedef struct CliExecution {
    CoreValue result;
    RtProgram *program; // null on the reference evaluator
    uint64_t launches;
    double seconds; // of the last run
} CliExecution;

// Runs the bound entry once on the backend that cli_entry_backend has set up.
int cli_execute(CliEntry *entry, CliExecution *execution);

// A tensor of a result with its name: a part of a tuple by number, a leaf of a tree by path.
typedef struct CliNamedTensor {
    Str name;
    const Tensor *tensor;
} CliNamedTensor;
uint32_t cli_result_tensors(CliEntry *entry, const CoreValue *result, CliNamedTensor **tensors);
// Prints names, types and values: a scalar or a short vector on one line, a larger tensor as rows
// whose middle is left out, with smallest, largest and mean; of many tensors those three alone.
void cli_print_tensors(CliEntry *entry, uint32_t count, const CliNamedTensor *tensors);

// Two results of one entry, bit for bit, a NaN equal to a NaN.
typedef struct CliDifference {
    bool same;
    int64_t elements; // of the result
    Str name;         // of the tensor with the first difference; `at` the element, `a`, `b` there
    int64_t at;
    double a, b;
} CliDifference;
CliDifference cli_compare_results(CliEntry *entry, const CoreValue *a, const CoreValue *b);
// In one line.
void cli_print_difference(const CliDifference *difference, const char *name_a, const char *name_b);

// The plan by name and the hash of every layout as it was resolved, in one program or two (`other`
// may be null): "default 3fa4…".
Str cli_plan_text(CliEntry *entry, const RtProgram *program, const RtProgram *other);

// "1.5 ms", "12.3 MB".
Str cli_seconds_text(Arena *arena, double seconds);
Str cli_bytes_text(Arena *arena, double bytes);
// The lines that head a run or a bench: entry, arithmetic, executor, dimensions, values.
void cli_print_header(const CliEntry *entry);

#endif
