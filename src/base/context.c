#include "base/context.h"

void context_init(Context *context) {
    context_init_rescued(context, NULL, 0);
}

void context_init_rescued(Context *context, jmp_buf *rescue, uint64_t fail_at) {
    *context = (Context){.heap = {.fail_at = fail_at, .rescue = rescue}};
    context->arena = arena_new(&context->heap, "context");
    context->names = names_new(context->arena);
    context->sources.arena = context->arena;
    context->diags.arena = context->arena;
    context->diags.sources = &context->sources;
}

void context_free(Context *context) {
    heap_free(&context->heap);
}
