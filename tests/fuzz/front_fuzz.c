// Fuzzing of the front end: any bytes end in diagnostics, never in a crash, a leak or an endless
// loop. Built by `make fuzz` with clang's libFuzzer and the sanitizers.
#include "check/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Context context = {0};
    context_init(&context);
    Str text = str_copy(context.arena, (const char *)data, size);
    uint32_t source = source_add(&context.sources, STR("fuzz.psk"), text);
    SynTree *tree = syn_parse(&context, context.arena, source);
    syn_print_tree(tree, &context, context.arena);
    syn_print_tokens(&context, context.arena, source);
    chk_source(&context, context.arena, source, 0, NULL);
    diags_render(&context.diags, context.arena, DIAG_PLAIN);
    diags_render(&context.diags, context.arena, DIAG_JSON);
    context_free(&context);
    return 0;
}
