// Memory by lifetime: the largest buffers are placed first, each into the lowest gap between those
// already placed that are alive with it ("greedy by size", Pisarchyk and Lee, "Efficient Memory
// Management for Deep Neural Net Inference", 2020). Ties go by the launches' own order, so the
// result is the same on every machine.
#include "runtime/program.h"

#include <stdlib.h>

enum { LINE = 64 };

typedef struct Placed {
    size_t begin, end;
    uint32_t first, last;
} Placed;

// A buffer to be placed; `bytes` in whole lines.
typedef struct Waiting {
    size_t bytes;
    uint32_t buffer, first;
} Waiting;

static size_t round_up(size_t size) {
    return MAX((size + LINE - 1) / LINE * LINE, (size_t)LINE);
}

static int larger_first(const void *a, const void *b) {
    const Waiting *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->buffer > y->buffer) - (x->buffer < y->buffer);
}

// The lowest address at which `bytes` lie apart from everything placed that is alive with the
// buffer; `placed` is in order of `begin`.
static size_t lowest_gap(const Placed *placed, uint32_t count, const RtBuffer *buffer,
                         size_t bytes) {
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (placed[i].first > buffer->last || placed[i].last < buffer->first)
            continue;
        if (placed[i].begin >= at + bytes)
            break;
        at = MAX(at, placed[i].end);
    }
    return at;
}

size_t rt_plan(RtBuffer *buffers, uint32_t count, Arena *arena) {
    Waiting *waiting = arena_array(arena, Waiting, count);
    uint32_t planned = 0;
    for (uint32_t i = 1; i < count; i++)
        if (!buffers[i].external)
            waiting[planned++] = (Waiting){round_up(buffers[i].bytes), i, buffers[i].first};
    qsort(waiting, planned, sizeof *waiting, larger_first);
    Placed *placed = arena_array(arena, Placed, planned);
    size_t size = 0;
    for (uint32_t i = 0; i < planned; i++) {
        RtBuffer *buffer = &buffers[waiting[i].buffer];
        size_t bytes = waiting[i].bytes;
        size_t at = buffer->offset = lowest_gap(placed, i, buffer, bytes);
        uint32_t place = i;
        for (; place > 0 && placed[place - 1].begin > at; place--)
            placed[place] = placed[place - 1];
        placed[place] = (Placed){at, at + bytes, buffer->first, buffer->last};
        size = MAX(size, at + bytes);
    }
    return size;
}
