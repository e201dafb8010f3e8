// Memory: one Heap per context, arenas on it named by lifetime, growable vectors in arenas.
//
// Every allocation of the compiler hangs from a Heap. When memory runs out the Heap jumps to its
// `rescue` point, which the API boundary sets; no caller ever sees a null pointer, and freeing the
// heap's arenas leaks nothing. Passes free nothing singly. Two build switches exist for tests:
// PRESK_MALLOC_ARENAS makes each arena allocation a malloc of its own, so that the sanitizers see
// it; Heap.fail_at makes the n-th allocation fail.
#ifndef PRESK_BASE_MEMORY_H
#define PRESK_BASE_MEMORY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct Arena Arena;

typedef struct Heap {
    jmp_buf *rescue;   // where to go when memory is out; null: print and abort
    Arena *arenas;     // all arenas, for heap_free
    uint64_t calls;    // allocations asked of the system so far
    uint64_t fail_at;  // 0: never; n: the n-th allocation fails (tests)
    size_t live, peak; // bytes held from the system
    size_t refused;    // bytes that it did not give
} Heap;

// Frees every arena of the heap; the heap itself belongs to the caller.
void heap_free(Heap *heap);

// A new arena; `name` (a literal) says its lifetime: "program", "function", "kernel".
Arena *arena_new(Heap *heap, const char *name);
void arena_free(Arena *arena);
// Takes back everything allocated from the arena, which keeps small pieces of memory for what
// comes.
void arena_reset(Arena *arena);
Heap *arena_heap(Arena *arena);
// Has undo(data) called before the arena's memory goes: for what an arena's owner holds besides
// memory when a rescue passes it by. The last one first; undo may allocate nothing.
void arena_at_end(Arena *arena, void (*undo)(void *data), void *data);

// Zeroed memory, aligned to 16 bytes. Never null. A size of 0 gives a valid pointer.
void *arena_alloc(Arena *arena, size_t size);
// The old contents, then zeros. `at` may be null when old_size is 0.
void *arena_grow(Arena *arena, void *at, size_t old_size, size_t new_size);
void *arena_copy(Arena *arena, const void *at, size_t size);

#define arena_new_of(arena, Type) ((Type *)arena_alloc((arena), sizeof(Type)))
#define arena_array(arena, Type, count)                                                            \
    ((Type *)arena_alloc((arena), sizeof(Type) * (size_t)(count)))

// A growable array in an arena: `Vec(int) v = {0}; vec_push(arena, &v, 3); v.at[0]`.
#define Vec(Type)                                                                                  \
    struct {                                                                                       \
        Type *at;                                                                                  \
        uint32_t count, capacity;                                                                  \
    }
#define vec_reserve(arena, vec, extra)                                                             \
    ((vec)->count + (uint32_t)(extra) <= (vec)->capacity                                           \
         ? (void)0                                                                                 \
         : vec_grow_((arena), (void **)&(vec)->at, (vec)->count, &(vec)->capacity,                 \
                     (uint32_t)(extra), sizeof *(vec)->at))
#define vec_push(arena, vec, value)                                                                \
    (vec_reserve((arena), (vec), 1), (void)((vec)->at[(vec)->count++] = (value)))
#define vec_last(vec) ((vec)->at[(vec)->count - 1])
void vec_grow_(Arena *arena, void **at, uint32_t count, uint32_t *capacity, uint32_t extra,
               size_t size);

// An internal error: a bug of presk, never of its user. Prints and aborts (exit status 70).
_Noreturn void bug_(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define bug(...)              bug_(__FILE__, __LINE__, __VA_ARGS__)
#define check_that(condition) ((condition) ? (void)0 : bug("expected %s", #condition))

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define MIN(a, b)       ((a) < (b) ? (a) : (b))
#define MAX(a, b)       ((a) > (b) ? (a) : (b))

#endif
