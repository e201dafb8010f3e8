// Chains: launches over all leaves of a tree that follow each other (an optimizer's groups) and run
// piece by piece instead of one after the other, so that what one of them has written is still in
// the cache when the next reads it.
//
// Their kernels have the same split loops, so that a range of iterations is the same elements of
// the same leaves in each; and memory that one of them writes is touched by the others at that leaf
// alone, element by element in step. Then a piece of each in turn computes what whole launches do.
#include "runtime/program.h"

// Bytes that the launches of a chain read and write in a piece.
static const double piece_bytes = 1e6;

// ---- what may be one ----------------------------------------------------------------------------

static bool same_loop(const KrnLoop *a, const KrnLoop *b) {
    return a->begin == b->begin && a->end == b->end && a->step == b->step && a->before == b->before;
}

static const KrnLoop *next_split(const Kernel *kernel, uint32_t *at) {
    while (*at < kernel->loops.count && kernel->loops.at[*at].share != KRN_SPLIT)
        ++*at;
    return *at < kernel->loops.count ? &kernel->loops.at[(*at)++] : NULL;
}

static bool same_splits(const Kernel *a, const Kernel *b) {
    uint32_t at_a = 0, at_b = 0;
    for (;;) {
        const KrnLoop *x = next_split(a, &at_a), *y = next_split(b, &at_b);
        if (!x || !y)
            return !x && !y;
        if (!same_loop(x, y))
            return false;
    }
}

static bool same_axes(const RlzNest *a, const RlzNest *b) {
    return a->axes == b->axes && memcmp(a->extent, b->extent, a->axes * sizeof *a->extent) == 0;
}

static bool same_leaves(const RtLaunch *a, const RtLaunch *b) {
    if (!a->nest->leaves || a->nest->leaves != b->nest->leaves || a->workers != b->workers ||
        a->kernel->scratch || b->kernel->scratch || !a->kernel->kernel || !b->kernel->kernel)
        return false;
    for (uint32_t i = 0; i < a->nest->leaves; i++)
        if (!same_axes(a->nest->leaf[i], b->nest->leaf[i]))
            return false;
    return same_splits(a->kernel->kernel, b->kernel->kernel);
}

// A leaf's operand and the memory it lies in.
typedef struct Touched {
    const RlzOperand *operand;
    uint32_t leaf, buffer;
} Touched;

// The operands of a launch in the order of its buffers: each leaf's inputs, then its output.
static uint32_t list_touched(const RtProgram *program, uint32_t launch, Arena *arena,
                             Touched **touched) {
    const RlzNest *nest = program->launches.at[launch].nest;
    const RtUse *use = &program->uses.at[launch];
    uint32_t count = 0;
    *touched = arena_array(arena, Touched, use->count);
    for (uint32_t i = 0; i < nest->leaves; i++) {
        const RlzNest *leaf = nest->leaf[i];
        for (uint32_t n = 0; n <= leaf->inputs; n++) {
            const RlzOperand *operand = n < leaf->inputs ? &leaf->input[n] : &leaf->output;
            if (operand->source == RLZ_MEMORY) {
                (*touched)[count] = (Touched){operand, i, use->buffer[count]};
                count++;
            }
        }
    }
    check_that(count == use->count);
    return count;
}

static bool same_memory(const RtProgram *program, uint32_t a, uint32_t b) {
    const void *external = program->buffers.at[a].external;
    return a == b || (external && external == program->buffers.at[b].external);
}

// Every operand of launch b in memory that launch a writes is that leaf's, in step.
static bool in_step(const RtProgram *program, uint32_t a, uint32_t b, Arena *arena) {
    Touched *written, *other;
    uint32_t count = list_touched(program, a, arena, &written);
    uint32_t others = list_touched(program, b, arena, &other);
    const RlzNest *nest = program->launches.at[a].nest;
    for (uint32_t i = 0; i < count; i++) {
        if (written[i].operand != &nest->leaf[written[i].leaf]->output)
            continue;
        for (uint32_t n = 0; n < others; n++) {
            const RlzOperand *to = written[i].operand, *from = other[n].operand;
            if (!same_memory(program, written[i].buffer, other[n].buffer))
                continue;
            if (written[i].leaf != other[n].leaf || to->type != from->type ||
                memcmp(to->stride, from->stride, sizeof to->stride) != 0)
                return false;
        }
    }
    return true;
}

// Does the launch go on the chain first … launch − 1?
static bool joins(const RtProgram *program, uint32_t first, uint32_t launch, Arena *arena) {
    const RtLaunch *at = program->launches.at;
    if (!same_leaves(&at[first], &at[launch]))
        return false;
    for (uint32_t i = first; i < launch; i++)
        if (!in_step(program, i, launch, arena) || !in_step(program, launch, i, arena))
            return false;
    return true;
}

// ---- chains -------------------------------------------------------------------------------------

// While a piece of one launch runs others have begun: all buffers of a chain are alive throughout.
static void live_throughout(RtProgram *program, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; i++)
        for (uint32_t n = 0; n < program->uses.at[i].count; n++) {
            RtBuffer *buffer = &program->buffers.at[program->uses.at[i].buffer[n]];
            buffer->first = MIN(buffer->first, first);
            buffer->last = MAX(buffer->last, end - 1);
        }
}

static void add_chain(RtProgram *program, uint32_t first, uint32_t end) {
    double bytes = 0;
    for (uint32_t i = first; i < end; i++)
        bytes += rlz_nest_bytes(program->launches.at[i].nest);
    int64_t count = program->launches.at[first].kernel->kernel->split_count;
    int64_t pieces = MIN(count, (int64_t)(bytes / piece_bytes) + 1);
    pieces = MAX(pieces, (int64_t)program->launches.at[first].workers);
    vec_push(program->arena, &program->chains, ((RtChain){first, end - first, pieces}));
    live_throughout(program, first, end);
}

void rt_find_chains(RtProgram *program) {
    Arena *scratch = arena_new(arena_heap(program->arena), "chains");
    for (uint32_t first = 0, end; first < program->launches.count; first = end) {
        for (end = first + 1; end < program->launches.count; end++)
            if (!joins(program, first, end, scratch))
                break;
        const Kernel *kernel = program->launches.at[first].kernel->kernel;
        if (end - first > 1 && kernel->split_count > 1)
            add_chain(program, first, end);
        arena_reset(scratch);
    }
    arena_free(scratch);
}
