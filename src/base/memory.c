// Arenas: chunks from malloc, handed out in order, freed together. Chunks double up to 1 MiB, so a
// small function costs little and a large one few calls.
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef struct Chunk Chunk;
struct Chunk {
    Chunk *next;
    size_t size, used; // bytes after the header
};

enum { ALIGNMENT = 16, FIRST_CHUNK = 4096 - 64, LAST_CHUNK = 1 << 20 };
#ifdef PRESK_MALLOC_ARENAS
enum { KEPT_CHUNK = 0 };
#else
enum { KEPT_CHUNK = LAST_CHUNK };
#endif
enum { HUGE_PAGE = 2 << 20, HUGE_FROM = 4 * HUGE_PAGE };
enum { CHUNK_HEADER = (sizeof(Chunk) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT };

typedef struct Ending Ending;
struct Ending {
    Ending *next;
    void (*undo)(void *data);
    void *data;
};

struct Arena {
    Heap *heap;
    Arena *next, **link; // in heap->arenas; *link points at this arena
    const char *name;
    Chunk *chunk; // the newest first
    Chunk *spare; // empty ones
    size_t next_size;
    Ending *endings;
};

_Noreturn static void heap_exhausted(Heap *heap, size_t size) {
    heap->refused = size;
    if (heap->rescue)
        longjmp(*heap->rescue, 1);
    fprintf(stderr, "presk: out of memory (%zu bytes asked for)\n", size);
    abort();
}

// Large tensors in large pages, where the system gives them on request: fewer faults at their first
// use and fewer walks of the page table afterwards.
static void advise_huge(void *at, size_t size) {
    uintptr_t begin = ((uintptr_t)at + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)at + size) & ~(uintptr_t)(HUGE_PAGE - 1);
    madvise((void *)begin, end - begin, MADV_HUGEPAGE); // where it is refused, nothing is lost
}

static void *system_alloc(Heap *heap, size_t size) {
    heap->calls++;
    void *at = heap->fail_at && heap->calls >= heap->fail_at ? NULL : calloc(1, size);
    if (!at)
        heap_exhausted(heap, size);
    if (size >= HUGE_FROM)
        advise_huge(at, size);
    heap->live += size;
    if (heap->live > heap->peak)
        heap->peak = heap->live;
    return at;
}

static void run_endings(Arena *arena) {
    for (; arena->endings; arena->endings = arena->endings->next)
        arena->endings->undo(arena->endings->data);
}

static void chunk_free(Arena *arena, Chunk *chunk) {
    arena->heap->live -= chunk->size + CHUNK_HEADER;
    free(chunk);
}

static void chunks_free(Arena *arena, Chunk *chunk) {
    while (chunk) {
        Chunk *next = chunk->next;
        chunk_free(arena, chunk);
        chunk = next;
    }
}

void heap_free(Heap *heap) {
    while (heap->arenas)
        arena_free(heap->arenas);
}

Arena *arena_new(Heap *heap, const char *name) {
    Arena *arena = system_alloc(heap, sizeof *arena);
    *arena = (Arena){heap, heap->arenas, &heap->arenas, name, NULL, NULL, FIRST_CHUNK, NULL};
    if (arena->next)
        arena->next->link = &arena->next;
    heap->arenas = arena;
    return arena;
}

void arena_free(Arena *arena) {
    if (!arena)
        return;
    run_endings(arena);
    chunks_free(arena, arena->chunk);
    chunks_free(arena, arena->spare);
    *arena->link = arena->next;
    if (arena->next)
        arena->next->link = arena->link;
    arena->heap->live -= sizeof *arena;
    free(arena);
}

// Small chunks stay, for what is allocated next: an arena that is filled and reset in turns asks
// for no memory after the first time.
void arena_reset(Arena *arena) {
    run_endings(arena);
    Chunk *chunk = arena->chunk;
    arena->chunk = NULL;
    arena->next_size = FIRST_CHUNK;
    while (chunk) {
        Chunk *next = chunk->next;
        if (chunk->size <= KEPT_CHUNK) {
            memset((char *)chunk + CHUNK_HEADER, 0, chunk->used);
            chunk->used = 0;
            chunk->next = arena->spare;
            arena->spare = chunk;
        } else {
            chunk_free(arena, chunk);
        }
        chunk = next;
    }
}

Heap *arena_heap(Arena *arena) {
    return arena->heap;
}

void arena_at_end(Arena *arena, void (*undo)(void *data), void *data) {
    Ending *ending = arena_new_of(arena, Ending);
    *ending = (Ending){arena->endings, undo, data};
    arena->endings = ending;
}

// The smallest that is large enough, so that equal demands find what they left; null: there is
// none.
static Chunk *spare_chunk(Arena *arena, size_t size) {
    Chunk **best = NULL;
    for (Chunk **at = &arena->spare; *at; at = &(*at)->next)
        if ((*at)->size >= size && (!best || (*at)->size < (*best)->size))
            best = at;
    if (!best)
        return NULL;
    Chunk *chunk = *best;
    *best = chunk->next;
    return chunk;
}

static Chunk *chunk_add(Arena *arena, size_t size) {
    Chunk *chunk = spare_chunk(arena, size);
    if (chunk)
        size = chunk->size;
    else
        chunk = system_alloc(arena->heap, CHUNK_HEADER + size);
    chunk->next = arena->chunk;
    chunk->size = size;
    arena->chunk = chunk;
    return chunk;
}

void *arena_alloc(Arena *arena, size_t size) {
    if (size > SIZE_MAX / 2)
        heap_exhausted(arena->heap, size);
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
#ifdef PRESK_MALLOC_ARENAS
    Chunk *chunk = chunk_add(arena, size);
#else
    Chunk *chunk = arena->chunk;
    if (!chunk || chunk->size - chunk->used < size) {
        if (size > arena->next_size / 4) {
            // A large piece gets a chunk of its own, behind the open one.
            Chunk *own = chunk_add(arena, size);
            own->used = size;
            if (chunk) {
                arena->chunk = chunk;
                own->next = chunk->next;
                chunk->next = own;
            }
            return (char *)own + CHUNK_HEADER;
        }
        chunk = chunk_add(arena, arena->next_size);
        if (arena->next_size < LAST_CHUNK)
            arena->next_size *= 2;
    }
#endif
    void *at = (char *)chunk + CHUNK_HEADER + chunk->used;
    chunk->used += size;
    return at;
}

void *arena_grow(Arena *arena, void *at, size_t old_size, size_t new_size) {
    void *grown = arena_alloc(arena, new_size);
    if (old_size)
        memcpy(grown, at, MIN(old_size, new_size));
    return grown;
}

void *arena_copy(Arena *arena, const void *at, size_t size) {
    void *copy = arena_alloc(arena, size);
    if (size)
        memcpy(copy, at, size);
    return copy;
}

void vec_grow_(Arena *arena, void **at, uint32_t count, uint32_t *capacity, uint32_t extra,
               size_t size) {
    uint64_t wanted = MAX((uint64_t)*capacity * 2, (uint64_t)count + extra);
    wanted = MAX(wanted, 8);
    check_that(wanted <= UINT32_MAX);
    *at = arena_grow(arena, *at, count * size, wanted * size);
    *capacity = (uint32_t)wanted;
}

void bug_(const char *file, int line, const char *format, ...) {
    fprintf(stderr, "presk: internal error at %s:%d: ", file, line);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr,
            "\nThis is a bug of presk, not of your program. Please report it with the command "
            "and the files that lead to it.\n");
    fflush(NULL);
    _Exit(70);
}
