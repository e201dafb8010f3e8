// The command line: each command is a table of options and a function; parsing, help and nearest
// spellings come from the tables.
//
// Exit status: 0 fine, 1 diagnostics, 2 usage, 3 a comparison or gate failed, 70 a bug of presk.
#ifndef PRESK_CLI_CLI_H
#define PRESK_CLI_CLI_H

#include "base/context.h"

enum { CLI_FINE = 0, CLI_DIAGNOSTICS = 1, CLI_USAGE = 2, CLI_GATE = 3 };

typedef enum CliKind {
    CLI_FLAG,     // --json
    CLI_TEXT,     // --entry NAME (the last one counts)
    CLI_NUMBER,   // a text that is an integer ≥ 0
    CLI_OPTIONAL, // --resume, --resume=@F, --resume @F: its value may be left out
    CLI_LIST      // --dim X=n, may be repeated
} CliKind;

typedef struct CliOption {
    const char *name; // without the dashes; null ends the table
    CliKind kind;
    const char *value; // what stands for the value in help: "NAME", "X=n"
    const char *help;
} CliOption;

typedef struct CliArgs CliArgs;

typedef struct CliCommand {
    const char *name;
    const char *usage;    // what follows the name: "FILE --entry F [options]"
    const char *summary;  // one line, in the list of commands
    const char *details;  // paragraphs for --help; may be null
    const char *examples; // lines, each a command
    const CliOption *options;
    uint32_t min, max; // positional arguments
    int (*run)(CliArgs *args);
} CliCommand;

typedef struct CliGiven {
    const CliOption *option;
    const char *value; // null for a flag
} CliGiven;

struct CliArgs {
    const CliCommand *command;
    Context *context;
    Arena *arena;
    uint32_t count; // positional
    const char **positional;
    uint32_t given_count;
    CliGiven *given;
    uint32_t reported; // diagnostics that have been printed
    bool color;        // of stdout
    bool quiet;        // stderr is no terminal: no progress
};

bool cli_flag(const CliArgs *args, const char *name);
const char *cli_text(const CliArgs *args, const char *name); // null: not given
int64_t cli_number(const CliArgs *args, const char *name, int64_t otherwise);
// The values of a repeated option, in order.
uint32_t cli_list(const CliArgs *args, const char *name, Arena *arena, const char ***values);
// Says what is wrong with the command line, on stderr, and where help is; gives CLI_USAGE.
int cli_usage(const CliArgs *args, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Prints what has been diagnosed to stderr, in colour on a terminal; gives CLI_DIAGNOSTICS if there
// were errors, else CLI_FINE.
int cli_report(CliArgs *args);
// CLI_DIAGNOSTICS after a diagnostic (E5001) with a help where there is no such file.
int cli_must_exist(CliArgs *args, const char *path, const char *help);
// Makes the folders above a file and sees whether the file can be written; false with a diagnostic
// (E5002).
bool cli_can_write(CliArgs *args, const char *path);
// `X=value` split in two; false: no `=`, or nothing before it.
bool cli_split(Arena *arena, const char *text, Str *name, Str *value);

// Runs a command line; the program's exit status.
int cli_main(int argc, char **argv);

// The commands, one file each, in the order of help.
#define COMMAND(name) extern const CliCommand cli_command_##name;
#include "cli/command.def"
#undef COMMAND
enum {
#define COMMAND(name) CLI_IS_##name,
#include "cli/command.def"
#undef COMMAND
    CLI_COMMAND_COUNT
};
extern const CliCommand *const cli_commands[CLI_COMMAND_COUNT];
extern const CliOption cli_common_options[]; // that every command has
extern const char *const cli_title;          // what presk is, in half a line

// "--name VALUE" as help shows an option.
Str cli_option_text(Arena *arena, const CliOption *option);

#endif
