// Memory by lifetime: buffers are placed in the order in which they are written, each into the
// lowest gap between the buffers then alive; what is no longer read makes room first. The order
// is the launches' own, so the result is the same on every machine.
#include "runtime/program.h"

#include <stdlib.h>

enum { LINE = 64 };

typedef struct Placed {
    size_t begin, end;
    uint32_t last;
} Placed;

static size_t round_up(size_t size) {
    return (size + LINE - 1) / LINE * LINE;
}

// Drops the buffers whose last reader runs before `launch`; keeps the order of addresses.
static uint32_t drop_dead(Placed *alive, uint32_t count, uint32_t launch) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (alive[i].last >= launch)
            alive[kept++] = alive[i];
    return kept;
}

size_t rt_plan(RtBuffer *buffers, uint32_t count, uint32_t launches, Arena *arena) {
    // Buffers by the launch that writes them: counting sort keeps the order of making.
    uint32_t *start = arena_array(arena, uint32_t, (size_t)launches + 2);
    uint32_t *order = arena_array(arena, uint32_t, count);
    for (uint32_t i = 1; i < count; i++)
        if (!buffers[i].external)
            start[buffers[i].first + 1]++;
    for (uint32_t l = 0; l < launches; l++)
        start[l + 1] += start[l];
    uint32_t planned = 0;
    for (uint32_t i = 1; i < count; i++)
        if (!buffers[i].external) {
            order[start[buffers[i].first]++] = i;
            planned++;
        }
    Placed *alive = arena_array(arena, Placed, planned);
    uint32_t living = 0;
    size_t size = 0;
    for (uint32_t i = 0; i < planned; i++) {
        RtBuffer *buffer = &buffers[order[i]];
        living = drop_dead(alive, living, buffer->first);
        size_t bytes = MAX(round_up(buffer->bytes), (size_t)LINE), at = 0;
        uint32_t place = 0;
        while (place < living && alive[place].begin - at < bytes)
            at = alive[place++].end;
        memmove(alive + place + 1, alive + place, (living - place) * sizeof *alive);
        alive[place] = (Placed){at, at + bytes, buffer->last};
        living++;
        buffer->offset = at;
        size = MAX(size, at + bytes);
    }
    return size;
}
