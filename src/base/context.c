#include "base/context.h"

void context_init(Context *context) {
    uint64_t fail_at = context->heap.fail_at;
    jmp_buf *rescue = context->heap.rescue;
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
