// Command lines: parsed by the tables of options, refused with the nearest legal spelling.
#include "cli/cli.h"

#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define VERSION "0.1.0"

const char *const cli_title = "a tensor compiler whose plans move the clock and never a bit";

const CliCommand *const cli_commands[] = {
#define COMMAND(name) &cli_command_##name,
#include "cli/command.def"
#undef COMMAND
};

const CliOption cli_common_options[] = {
    {"color", CLI_TEXT, "WHEN", "colours: auto (on a terminal), always, never"},
    {"help", CLI_FLAG, NULL, "this help"},
    {0},
};

// ---- help -----------------------------------------------------------------------------------

Str cli_option_text(Arena *arena, const CliOption *option) {
    if (option->kind == CLI_OPTIONAL)
        return str_format(arena, "--%s[=%s]", option->name, option->value);
    return option->value ? str_format(arena, "--%s %s", option->name, option->value)
                         : str_format(arena, "--%s", option->name);
}

static void print_options(FILE *out, Arena *arena, const CliOption *options) {
    for (; options->name; options++)
        fprintf(out, "  %-22s %s%s\n", cli_option_text(arena, options).at, options->help,
                options->kind == CLI_LIST ? " (may be repeated)" : "");
}

static void print_command_help(FILE *out, Arena *arena, const CliCommand *command) {
    fprintf(out, "presk %s: %s\n\nusage: presk %s %s\n", command->name, command->summary,
            command->name, command->usage);
    if (command->details)
        fprintf(out, "\n%s\n", command->details);
    fprintf(out, "\noptions:\n");
    print_options(out, arena, command->options);
    print_options(out, arena, cli_common_options);
    fprintf(out, "\nexamples:\n%s\n", command->examples);
}

static void print_help(FILE *out) {
    fprintf(out, "presk: %s\n\nusage: presk COMMAND …\n\ncommands:\n", cli_title);
    for (uint32_t i = 0; i < CLI_COMMAND_COUNT; i++)
        fprintf(out, "  %-11s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    fprintf(out, "\n`presk COMMAND --help` shows a command's options and examples,\n"
                 "`presk --version` the version.\n");
}

// ---- parsing --------------------------------------------------------------------------------

static const CliOption *option_find(const CliOption *options, const char *name, size_t size) {
    for (; options->name; options++)
        if (strlen(options->name) == size && memcmp(options->name, name, size) == 0)
            return options;
    return NULL;
}

int cli_usage(const CliArgs *args, const char *format, ...) {
    va_list list;
    va_start(list, format);
    fprintf(stderr, "presk %s: ", args->command->name);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "\nusage: presk %s %s\n`presk %s --help` has examples.\n", args->command->name,
            args->command->usage, args->command->name);
    return CLI_USAGE;
}

// `word` begins behind the dashes.
static int unknown_option(const CliArgs *args, const char *dashes, const char *word, size_t size) {
    Str names[64];
    uint32_t count = 0;
    for (const CliOption *o = args->command->options; o->name; o++)
        names[count++] = str_of(o->name);
    for (const CliOption *o = cli_common_options; o->name; o++)
        names[count++] = str_of(o->name);
    Str near = nearest_spelling(args->arena, (Str){word, (uint32_t)size}, names, count);
    if (near.size)
        return cli_usage(args, "there is no option %s%.*s; did you mean --%s?", dashes, (int)size,
                         word, near.at);
    return cli_usage(args, "there is no option %s%.*s", dashes, (int)size, word);
}

static bool is_number(const char *text) {
    char *end;
    if (*text < '0' || *text > '9' || strlen(text) > 18)
        return false;
    strtoull(text, &end, 10);
    return !*end;
}

static void give(CliArgs *args, const CliOption *option, const char *value) {
    args->given[args->given_count++] = (CliGiven){option, value};
}

// The option at argv[*at], with its value there or next.
static int parse_option(CliArgs *args, int argc, char **argv, int *at) {
    const char *word = argv[*at] + 2, *equals = strchr(word, '=');
    size_t size = equals ? (size_t)(equals - word) : strlen(word);
    const CliOption *option = option_find(args->command->options, word, size);
    if (!option)
        option = option_find(cli_common_options, word, size);
    if (!option)
        return unknown_option(args, "--", word, size);
    const char *value = equals ? equals + 1 : NULL;
    if (option->kind == CLI_FLAG && value)
        return cli_usage(args, "--%s takes no value", option->name);
    if (option->kind == CLI_OPTIONAL && !value && *at + 1 < argc && argv[*at + 1][0] == '@')
        value = argv[++*at];
    if (option->kind != CLI_FLAG && option->kind != CLI_OPTIONAL && !value) {
        if (*at + 1 >= argc)
            return cli_usage(args, "--%s needs a value: --%s %s", option->name, option->name,
                             option->value);
        value = argv[++*at];
    }
    if (option->kind == CLI_NUMBER && !is_number(value))
        return cli_usage(args, "--%s needs a whole number, not `%s`", option->name, value);
    give(args, option, value);
    return CLI_FINE;
}

// The short spellings: -h, and -o for --out.
static int parse_short(CliArgs *args, int argc, char **argv, int *at) {
    if (strcmp(argv[*at], "-h") == 0) {
        give(args, option_find(cli_common_options, "help", 4), NULL);
        return CLI_FINE;
    }
    const CliOption *out = option_find(args->command->options, "out", 3);
    if (strcmp(argv[*at], "-o") != 0 || !out)
        return unknown_option(args, "-", argv[*at] + 1, strlen(argv[*at] + 1));
    if (*at + 1 >= argc)
        return cli_usage(args, "-o needs a path");
    give(args, out, argv[++*at]);
    return CLI_FINE;
}

static int parse(CliArgs *args, int argc, char **argv) {
    args->given = arena_array(args->arena, CliGiven, argc + 1);
    args->positional = arena_array(args->arena, const char *, argc + 1);
    bool only_positional = false;
    for (int i = 0; i < argc; i++) {
        int status = CLI_FINE;
        if (!only_positional && strcmp(argv[i], "--") == 0)
            only_positional = true;
        else if (!only_positional && strncmp(argv[i], "--", 2) == 0)
            status = parse_option(args, argc, argv, &i);
        else if (!only_positional && argv[i][0] == '-' && argv[i][1])
            status = parse_short(args, argc, argv, &i);
        else
            args->positional[args->count++] = argv[i];
        if (status)
            return status;
    }
    return CLI_FINE;
}

// ---- what commands ask ----------------------------------------------------------------------

const char *cli_text(const CliArgs *args, const char *name) {
    for (uint32_t i = args->given_count; i-- > 0;)
        if (strcmp(args->given[i].option->name, name) == 0)
            return args->given[i].value ? args->given[i].value : "";
    return NULL;
}

bool cli_flag(const CliArgs *args, const char *name) {
    return cli_text(args, name) != NULL;
}

int64_t cli_number(const CliArgs *args, const char *name, int64_t otherwise) {
    const char *text = cli_text(args, name);
    return text ? strtoll(text, NULL, 10) : otherwise;
}

uint32_t cli_list(const CliArgs *args, const char *name, Arena *arena, const char ***values) {
    uint32_t count = 0;
    *values = arena_array(arena, const char *, args->given_count + 1);
    for (uint32_t i = 0; i < args->given_count; i++)
        if (strcmp(args->given[i].option->name, name) == 0)
            (*values)[count++] = args->given[i].value;
    return count;
}

bool cli_split(Arena *arena, const char *text, Str *name, Str *value) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return false;
    *name = str_copy(arena, text, (size_t)(equals - text));
    *value = str_of(equals + 1);
    return true;
}

int cli_must_exist(CliArgs *args, const char *path, const char *help) {
    if (file_exists(path))
        return CLI_FINE;
    diag_help(diag(&args->context->diags, E5001, (Span){0}, path, "no such file"), "%s", help);
    return cli_report(args);
}

bool cli_can_write(CliArgs *args, const char *path) {
    Str error;
    FileWriter file;
    file_make_folders(args->arena, path); // what is wrong is said when the file is begun
    if (file_begin(args->arena, path, &file, &error)) {
        file_abandon(&file);
        return true;
    }
    diag(&args->context->diags, E5002, (Span){0}, path, error.at);
    return false;
}

static bool use_color(const CliArgs *args, int descriptor) {
    const char *when = cli_text(args, "color");
    if (when && strcmp(when, "auto") != 0)
        return strcmp(when, "always") == 0;
    return isatty(descriptor) && !getenv("NO_COLOR");
}

int cli_report(CliArgs *args) {
    const Diags *diags = &args->context->diags;
    if (diags->all.count > args->reported) {
        args->reported = diags->all.count;
        fflush(stdout);
        DiagFormat format = use_color(args, STDERR_FILENO) ? DIAG_COLOR : DIAG_PLAIN;
        fputs(diags_render(diags, args->arena, format).at, stderr);
        if (diags->errors)
            fprintf(stderr, "\n%u error%s\n", diags->errors, diags->errors == 1 ? "" : "s");
    }
    return diags->errors ? CLI_DIAGNOSTICS : CLI_FINE;
}

// ---- commands -------------------------------------------------------------------------------

static int run_command(const CliCommand *command, Context *context, int argc, char **argv) {
    CliArgs args = {.command = command, .context = context, .arena = context->arena};
    int status = parse(&args, argc, argv);
    if (status)
        return status;
    if (cli_flag(&args, "help")) {
        print_command_help(stdout, args.arena, command);
        return CLI_FINE;
    }
    const char *when = cli_text(&args, "color");
    if (when && strcmp(when, "auto") && strcmp(when, "always") && strcmp(when, "never"))
        return cli_usage(&args, "--color is auto, always or never, not `%s`", when);
    if (args.count < command->min)
        return cli_usage(&args, "an argument is missing");
    if (args.count > command->max)
        return cli_usage(&args, "`%s` is one argument too many", args.positional[command->max]);
    args.color = use_color(&args, STDOUT_FILENO);
    args.quiet = !isatty(STDERR_FILENO);
    return command->run(&args);
}

static int unknown_command(Arena *arena, const char *word) {
    enum { OTHERS = 2 };
    Str names[CLI_COMMAND_COUNT + OTHERS] = {STR("--help"), STR("--version")};
    for (uint32_t i = 0; i < CLI_COMMAND_COUNT; i++)
        names[OTHERS + i] = str_of(cli_commands[i]->name);
    Str near = nearest_spelling(arena, str_of(word), names, COUNT_OF(names));
    fprintf(stderr, "presk: there is no %s `%s`", *word == '-' ? "option" : "command", word);
    if (near.size)
        fprintf(stderr, "; did you mean `%s`?", near.at);
    fprintf(stderr, "\n`presk --help` lists the commands.\n");
    return CLI_USAGE;
}

static const CliCommand *command_find(const char *word) {
    for (uint32_t i = 0; i < CLI_COMMAND_COUNT; i++)
        if (strcmp(cli_commands[i]->name, word) == 0)
            return cli_commands[i];
    return NULL;
}

static int dispatch(Context *context, int argc, char **argv) {
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        const CliCommand *about = argc > 2 ? command_find(argv[2]) : NULL;
        if (argc > 2 && !about)
            return unknown_command(context->arena, argv[2]);
        if (about)
            print_command_help(stdout, context->arena, about);
        else
            print_help(stdout);
        return CLI_FINE;
    }
    if (strcmp(word, "--version") == 0) {
        puts("presk " VERSION);
        return CLI_FINE;
    }
    const CliCommand *command = command_find(word);
    return command ? run_command(command, context, argc - 2, argv + 2)
                   : unknown_command(context->arena, word);
}

int cli_main(int argc, char **argv) {
    Context context = {0};
    jmp_buf rescue;
    if (setjmp(rescue)) {
        // Nothing may be allocated here: the message is all that is left to say.
        fprintf(stderr, "error[E6001]: out of memory: %zu bytes more were asked for\n\n1 error\n",
                context.heap.refused);
        context_free(&context);
        return CLI_DIAGNOSTICS;
    }
    const char *fail_at = getenv("PRESK_FAIL_ALLOCATION"); // tests: the n-th allocation fails
    context_init_rescued(&context, &rescue, fail_at ? strtoull(fail_at, NULL, 10) : 0);
    int status = dispatch(&context, argc, argv);
    // Output that did not arrive is an error, a closed pipe included.
    if ((fflush(stdout) || ferror(stdout)) && status == CLI_FINE) {
        fprintf(stderr, "error[E5002]: cannot write the output: %s\n\n1 error\n", strerror(errno));
        status = CLI_DIAGNOSTICS;
    }
    context_free(&context);
    return status;
}
