// Every point of every space, bit for bit: `make exact`, or build/exact N for a sample of about N.
#include "support/exact.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    static Context context;
    context_init(&context);
    ExactReport r = exact_run(&context, argc > 1 ? strtoull(argv[1], NULL, 10) : 0, true);
    if (r.failure.size)
        printf("%s\n", r.failure.at);
    printf(
        "%llu nests, %llu points, %llu distinct kernels (%llu of them split), %llu runs as native "
        "code: %s\n",
        (unsigned long long)r.nests, (unsigned long long)r.points, (unsigned long long)r.texts,
        (unsigned long long)r.split, (unsigned long long)r.native,
        r.failure.size ? "different" : "the same bits");
    bool failed = r.failure.size > 0;
    context_free(&context);
    return failed;
}
