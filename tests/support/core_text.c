#include "support/core_text.h"

#include <stdio.h>

CoreProgram *core_of_text(Context *context, const char *text) {
    Str copy = str_copy(context->arena, text, strlen(text));
    uint32_t source = source_add(&context->sources, STR("test.core"), copy);
    CoreProgram *program = core_read(context, context->arena, source);
    if (!program) {
        fputs(diags_render(&context->diags, context->arena, DIAG_PLAIN).at, stderr);
        bug("a test's program is malformed");
    }
    return program;
}

CoreProgram *core_of_legal_text(Context *context, const char *text) {
    CoreProgram *program = core_of_text(context, text);
    Str errors;
    if (!core_verify(program, context->arena, &errors)) {
        fputs(errors.at, stderr);
        bug("a test's program is illegal");
    }
    return program;
}
