// Every point of every space, bit for bit: `make exact`. Arguments: minutes after which no further
// point begins (0: none); one kernel in how many runs as native code; a file for the coverage by
// kind and type; about how many points to take (0: all).
#include "support/exact.h"

#include <stdlib.h>

int main(int argc, char **argv) {
    static Context context;
    context_init(&context);
    ExactOptions options = {.progress = true};
    if (argc > 1)
        options.seconds = 60 * strtod(argv[1], NULL);
    if (argc > 2)
        options.native_share = (uint32_t)strtoul(argv[2], NULL, 10);
    if (argc > 3)
        options.table = argv[3];
    if (argc > 4)
        options.sample = strtoull(argv[4], NULL, 10);
    ExactReport report = exact_run(&context, &options);
    exact_print(&report);
    bool failed = report.failure.size > 0;
    context_free(&context);
    return failed;
}
