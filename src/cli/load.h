// Loading a program for a command: sources, constants, and the passes of driver.c.
#ifndef PRESK_CLI_LOAD_H
#define PRESK_CLI_LOAD_H

#include "check/check.h"
#include "cli/cli.h"

// The values of --const. False: said what is wrong (a usage error).
bool cli_consts(CliArgs *args, uint32_t *count, ChkConst **consts);
// `presk dump --stage realize`: groups, nests, layouts.
int cli_dump_realize(CliArgs *args);
int cli_dump_plan(CliArgs *args);
int cli_dump_space(CliArgs *args);

#endif
