#include "cli/load.h"

bool cli_consts(CliArgs *args, uint32_t *count, ChkConst **consts) {
    const char **texts;
    *count = cli_list(args, "const", args->arena, &texts);
    *consts = arena_array(args->arena, ChkConst, *count + 1);
    for (uint32_t i = 0; i < *count; i++)
        if (!cli_split(args->arena, texts[i], &(*consts)[i].name, &(*consts)[i].value)) {
            cli_usage(args, "--const is NAME=value, not `%s`", texts[i]);
            return false;
        }
    return true;
}
