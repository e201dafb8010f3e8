// An entry of a program as commands see it: compiled, realized, bound to dimensions and inputs.
#ifndef PRESK_CLI_ENTRY_H
#define PRESK_CLI_ENTRY_H

#include "cli/load.h"
#include "driver.h"
#include "runtime/bind.h"
#include "runtime/runtime.h"
#include "runtime/train.h"

// Options that every command with an entry has.
#define CLI_ENTRY_OPTIONS                                                                          \
    {"entry", CLI_TEXT, "NAME", "the function: loss, GPT.apply …"},                                \
        {"dim", CLI_LIST, "X=n", "the value of a dimension"},                                      \
        {"const", CLI_LIST, "X=value", "another value for a constant of the program"},             \
        {"pack", CLI_TEXT, "N,M", "the extents that the entry's own `...` stands for"},            \
        {"realize", CLI_TEXT, "R", "the arithmetic: f64, f32 (default), bf16 or @FILE"},           \
        {"plan", CLI_TEXT, "P", "arithmetic and layouts: @FILE, or default"},                      \
        {"retarget", CLI_FLAG, NULL,                                                               \
         "drop what a plan for another target has and this one lacks"},                            \
        {"fusion", CLI_TEXT, "on|off", "fusion groups (default on)"},                              \
        {"threads", CLI_NUMBER, "N", "workers (default PRESK_THREADS, else the machine's)"}, {     \
        "target", CLI_NUMBER, "BITS", "widest vector registers: 128, 256 or 512"                   \
    }

// Where values come from.
#define CLI_VALUE_OPTIONS                                                                          \
    {"in", CLI_LIST, "x=@F", "an input: .npy or .psk.d"},                                          \
        {"params", CLI_TEXT, "@F", "parameters: .psk.d or .safetensors"},                          \
        {"seed", CLI_NUMBER, "N", "what is not given is drawn from this seed (default 0)"},        \
        {"zeros", CLI_FLAG, NULL, "what is not given is zero"},                                    \
        {"batch", CLI_NUMBER, "K", "the inputs are batch K of the training block's data"}, {       \
        "data", CLI_TEXT, "F.psk.d", "with --batch: another data file"                             \
    }

// What helps where the data of a training block is not there.
#define CLI_DATA_HELP                                                                              \
    "`presk data` makes data files of text, images and arrays; `presk data --help` shows how"

typedef struct CliEntry {
    CliArgs *args;
    PreskCompiled compiled;
    CoreProgram *core;
    RtBinding *binding;
    RlzPlan *plan; // null: the default of every nest
    RlzRealization *realization;
    CoreArithmetic *arithmetic;
    RtOptions options;
    RtHypers hypers; // of the block's optimizer at step 1, where its step is the entry
    Str values;      // where the values come from, in words for the header
} CliEntry;

// Compiles the program. A status other than CLI_FINE, here and below: what is wrong has been said.
int cli_entry_compile(CliArgs *args, CliEntry *entry);
// Finds the entry, reads the realization and binds --dim and --pack.
int cli_entry_bind(CliEntry *entry);
// Both.
int cli_entry_open(CliArgs *args, CliEntry *entry);
// Reads the plan and what can be checked of it without an entry; entry->args and core are set.
int cli_entry_plan(CliEntry *entry);
// Binds inputs and parameters: those given, the rest drawn or zero; all dimensions have values
// afterwards.
int cli_entry_values(CliEntry *entry);
// The same without files and memory, for commands that need shapes only.
int cli_entry_shapes(CliEntry *entry);
// Sets options for a backend: pool, native code. `depth` as in RtOptions.
int cli_entry_backend(CliEntry *entry, RtBackend backend, RtDepth depth);
// Another plan (@FILE or default) for an entry that is ready for its backend; `option` names where
// it was asked for. Values are bound, so it must give inputs and parameters the same types. Native
// code for another target is made anew, the caller's to free as well.
int cli_entry_replan(CliEntry *entry, const char *option, const char *text);
void cli_entry_close(CliEntry *entry);

// Builds the program of the entry; null: said why.
RtProgram *cli_entry_build(CliEntry *entry);

// The hyperparameters as a training block sets them.
uint32_t cli_hypers(CliArgs *args, const ChkTraining *block, RtHyper **hypers);

bool cli_backend_of_text(const char *text, RtBackend *backend);
const char *cli_backend_text(RtBackend backend);

#endif
