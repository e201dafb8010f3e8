// presk completion: what a shell needs to complete command lines, from the tables of options.
#include "cli/cli.h"

#include <stdio.h>

// Text between single quotes: a quote leaves them and comes back.
static void print_quoted(const char *text) {
    putchar('\'');
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\'", stdout);
        putchar(*text);
    }
    putchar('\'');
}

static bool takes_value(const CliOption *option) {
    return option->kind != CLI_FLAG && option->kind != CLI_OPTIONAL;
}

// An option's name within a double-quoted word list.
static void print_names(const CliOption *options) {
    for (; options->name; options++)
        printf(" --%s", options->name);
}

// ---- bash -----------------------------------------------------------------------------------

// A value that begins with @ is a file behind it.
static void bash(void) {
    fputs("# presk completion bash: source this, or put it where bash-completion looks for it.\n"
          "_presk() {\n"
          "  local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words\n"
          "  COMPREPLY=()\n"
          "  case $command in\n",
          stdout);
    for (uint32_t i = 0; i < CLI_COMMAND_COUNT; i++) {
        printf("    %s) words=\"", cli_commands[i]->name);
        print_names(cli_commands[i]->options);
        print_names(cli_common_options);
        puts("\" ;;");
    }
    fputs("  esac\n"
          "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
          "    COMPREPLY=($(compgen -W \"--help --version",
          stdout);
    for (uint32_t i = 0; i < CLI_COMMAND_COUNT; i++)
        printf(" %s", cli_commands[i]->name);
    fputs("\" -- \"$word\"))\n"
          "  elif [[ $word == -* ]]; then\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
          "  elif [[ $word == @* ]]; then\n"
          "    COMPREPLY=($(compgen -f -P @ -- \"${word#@}\"))\n"
          "  fi\n"
          "}\n"
          "complete -o bashdefault -o default -F _presk presk\n",
          stdout);
}

// ---- zsh ------------------------------------------------------------------------------------

// '--name[help]:VALUE:_files' of _arguments; brackets and colons of the help are escaped.
static void zsh_option(Arena *arena, const CliOption *option) {
    StrBuf line = {.arena = arena};
    buf_format(&line, "%s--%s%s[", option->kind == CLI_LIST ? "*" : "", option->name,
               takes_value(option) ? "=" : "");
    for (const char *at = option->help; *at; at++)
        buf_format(&line, *at == '[' || *at == ']' || *at == ':' ? "\\%c" : "%c", *at);
    buf_format(&line, "]%s", takes_value(option) ? ":value:_files" : "");
    fputs(" \\\n        ", stdout);
    print_quoted(buf_str(&line).at);
}

static void zsh(Arena *arena) {
    fputs("#compdef presk\n"
          "# presk completion zsh: put this as _presk into a folder of $fpath.\n"
          "_presk() {\n"
          "  if (( CURRENT == 2 )); then\n"
          "    local -a commands=(\n",
          stdout);
    for (uint32_t i = 0; i < CLI_COMMAND_COUNT; i++) {
        fputs("      ", stdout);
        print_quoted(
            str_format(arena, "%s:%s", cli_commands[i]->name, cli_commands[i]->summary).at);
        putchar('\n');
    }
    fputs("    )\n"
          "    _describe command commands\n"
          "    return\n"
          "  fi\n"
          "  local command=$words[2]\n"
          "  shift words\n"
          "  (( CURRENT-- ))\n"
          "  case $command in\n",
          stdout);
    for (uint32_t i = 0; i < CLI_COMMAND_COUNT; i++) {
        printf("    %s)\n      _arguments", cli_commands[i]->name);
        for (const CliOption *o = cli_commands[i]->options; o->name; o++)
            zsh_option(arena, o);
        for (const CliOption *o = cli_common_options; o->name; o++)
            zsh_option(arena, o);
        puts(" \\\n        '*:file:_files' ;;");
    }
    fputs("  esac\n}\n_presk \"$@\"\n", stdout);
}

// ---- fish -----------------------------------------------------------------------------------

static void fish_option(const char *command, const CliOption *option) {
    printf("complete -c presk -n '__fish_seen_subcommand_from %s' -l %s%s -d ", command,
           option->name, takes_value(option) ? " -r" : "");
    print_quoted(option->help);
    putchar('\n');
}

static void fish(void) {
    puts("# presk completion fish: put this as presk.fish among fish's completions.");
    for (uint32_t i = 0; i < CLI_COMMAND_COUNT; i++) {
        const CliCommand *command = cli_commands[i];
        printf("complete -c presk -n __fish_use_subcommand -f -a %s -d ", command->name);
        print_quoted(command->summary);
        putchar('\n');
        for (const CliOption *o = command->options; o->name; o++)
            fish_option(command->name, o);
        for (const CliOption *o = cli_common_options; o->name; o++)
            fish_option(command->name, o);
    }
}

static int run(CliArgs *args) {
    const char *shell = args->positional[0];
    if (strcmp(shell, "bash") == 0)
        bash();
    else if (strcmp(shell, "zsh") == 0)
        zsh(args->arena);
    else if (strcmp(shell, "fish") == 0)
        fish();
    else
        return cli_usage(args, "the shells are bash, zsh and fish, not `%s`", shell);
    return CLI_FINE;
}

static const CliOption options[] = {{0}};

const CliCommand cli_command_completion = {
    .name = "completion",
    .usage = "bash|zsh|fish",
    .summary = "a shell's completion of presk command lines",
    .examples = "  source <(presk completion bash)\n"
                "  presk completion fish > ~/.config/fish/completions/presk.fish",
    .options = options,
    .min = 1,
    .max = 1,
    .run = run,
};
