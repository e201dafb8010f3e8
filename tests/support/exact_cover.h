// Points of exactness runs, and how many kernels ran with each value of each decision, by kind of
// nest and type.
#ifndef PRESK_TESTS_EXACT_COVER_H
#define PRESK_TESTS_EXACT_COVER_H

#include "realize/decision.h"

typedef struct ExactPoint {
    RlzLayout layout;
    RlzTarget target;
    uint64_t text; // a hash of the kernel's text
    uint32_t insts;
    bool split;
    bool first;           // of this text, on the narrowest target: the interpreter runs it
    bool native;          // is to run as native code
    bool ran, ran_native; // true where it did
} ExactPoint;

typedef struct ExactCover ExactCover;
ExactCover *exact_cover_new(Arena *arena);
void exact_cover_add(ExactCover *cover, const RlzNest *nest, const ExactPoint *point);
// Kernels by value and kind of nest, and by value and type; with the values of domains that no
// kernel has.
Str exact_cover_text(const ExactCover *cover, Arena *arena);
// By value, kind and type: lines of tab-separated columns in a file.
void exact_cover_write(const ExactCover *cover, Arena *arena, const char *path);

#endif
