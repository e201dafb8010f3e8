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

// Of the launch that was looked at last: by memory, the leaf that writes it (+ 1) and its operand.
typedef struct Written {
    uint32_t leaf;
    const RlzOperand *operand;
} Written;

typedef struct Finder {
    RtProgram *program;
    uint32_t *memory; // by buffer: the first buffer that lies there
    Written *written; // by memory
} Finder;

// Calls for the operands of a launch in the order of its buffers: each leaf's inputs, its output.
// False where a call gives false.
typedef bool (*EachOperand)(Finder *f, uint32_t leaf, const RlzOperand *operand, bool output,
                            uint32_t memory);

static bool each_operand(Finder *f, uint32_t launch, EachOperand call) {
    const RlzNest *nest = f->program->launches.at[launch].nest;
    const uint32_t *buffer = f->program->uses.at[launch].buffer;
    for (uint32_t i = 0; i < nest->leaves; i++) {
        const RlzNest *leaf = nest->leaf[i];
        for (uint32_t n = 0; n < leaf->inputs; n++)
            if (leaf->input[n].source == RLZ_MEMORY &&
                !call(f, i, &leaf->input[n], false, f->memory[*buffer++]))
                return false;
        if (!call(f, i, &leaf->output, true, f->memory[*buffer++]))
            return false;
    }
    return true;
}

static bool note_output(Finder *f, uint32_t leaf, const RlzOperand *operand, bool output,
                        uint32_t memory) {
    if (output)
        f->written[memory] = (Written){leaf + 1, operand};
    return true;
}

static bool forget_output(Finder *f, uint32_t leaf, const RlzOperand *operand, bool output,
                          uint32_t memory) {
    (void)leaf;
    (void)operand;
    if (output)
        f->written[memory] = (Written){0, NULL};
    return true;
}

static bool is_in_step(Finder *f, uint32_t leaf, const RlzOperand *operand, bool output,
                       uint32_t memory) {
    (void)output;
    const Written *by = &f->written[memory];
    return !by->leaf || (by->leaf == leaf + 1 && by->operand->type == operand->type &&
                         memcmp(by->operand->stride, operand->stride, sizeof operand->stride) == 0);
}

// Every operand of launch b in memory that launch a writes is that leaf's, in step.
static bool in_step(Finder *f, uint32_t a, uint32_t b) {
    each_operand(f, a, note_output);
    bool fits = each_operand(f, b, is_in_step);
    each_operand(f, a, forget_output);
    return fits;
}

// Does the launch go on the chain first … launch − 1?
static bool joins(Finder *f, uint32_t first, uint32_t launch) {
    const RtLaunch *at = f->program->launches.at;
    if (!same_leaves(&at[first], &at[launch]))
        return false;
    for (uint32_t i = first; i < launch; i++)
        if (!in_step(f, i, launch) || !in_step(f, launch, i))
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

// Buffers lie in one place where a new value takes that of an old one.
static uint32_t *find_memory(const RtProgram *program, Arena *arena) {
    uint32_t *memory = arena_array(arena, uint32_t, program->buffers.count);
    Map *first = map_new(arena);
    for (uint32_t i = 1; i < program->buffers.count; i++) {
        void *external = program->buffers.at[i].external;
        bool fresh = true;
        uint32_t *slot = external ? map_slot(first, &external, sizeof external, &fresh) : NULL;
        memory[i] = fresh ? i : *slot;
        if (slot)
            *slot = memory[i];
    }
    return memory;
}

void rt_find_chains(RtProgram *program) {
    bool any = false;
    for (uint32_t i = 0; i < program->launches.count; i++)
        any = any || program->launches.at[i].nest->leaves;
    if (!any)
        return;
    Arena *scratch = arena_new(arena_heap(program->arena), "chains");
    Finder f = {program, find_memory(program, scratch),
                arena_array(scratch, Written, program->buffers.count)};
    for (uint32_t first = 0, end; first < program->launches.count; first = end) {
        for (end = first + 1; end < program->launches.count && joins(&f, first, end);)
            end++;
        const Kernel *kernel = program->launches.at[first].kernel->kernel;
        if (end - first > 1 && kernel->split_count > 1)
            add_chain(program, first, end);
    }
    arena_free(scratch);
}
