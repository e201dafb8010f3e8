// Source files and spans. A span is a range of bytes of one file; line and column are computed
// only when something is printed.
#ifndef PRESK_BASE_SOURCE_H
#define PRESK_BASE_SOURCE_H

#include "base/text.h"

typedef struct Span {
    uint32_t source; // 1-based index into Sources; 0: no source (command line, built in)
    uint32_t begin, end;
} Span;

typedef struct Source {
    Str path; // as it is shown
    Str text;
    Vec(uint32_t) lines; // byte offset of the start of each line
} Source;

typedef struct Sources {
    Arena *arena;
    Vec(Source) all;
} Sources;

// Adds a text; returns its number (for Span.source).
uint32_t source_add(Sources *sources, Str path, Str text);
const Source *source_get(const Sources *sources, uint32_t source);

typedef struct Position {
    uint32_t line, column; // from 1; columns count code points
} Position;
Position source_position(const Source *source, uint32_t offset);
// The text of a line (from 1) without its line break.
Str source_line(const Source *source, uint32_t line);

// The smallest span that covers both; either may be empty (source 0).
Span span_join(Span a, Span b);

#endif
