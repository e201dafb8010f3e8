// Sources: texts and the byte offsets at which their lines start.
#include "base/source.h"

uint32_t source_add(Sources *sources, Str path, Str text) {
    Source source = {.path = path, .text = text};
    vec_push(sources->arena, &source.lines, 0);
    for (uint32_t i = 0; i < text.size; i++)
        if (text.at[i] == '\n')
            vec_push(sources->arena, &source.lines, i + 1);
    vec_push(sources->arena, &sources->all, source);
    return sources->all.count;
}

const Source *source_get(const Sources *sources, uint32_t source) {
    check_that(source >= 1 && source <= sources->all.count);
    return &sources->all.at[source - 1];
}

Position source_position(const Source *source, uint32_t offset) {
    offset = MIN(offset, source->text.size);
    uint32_t low = 0, high = source->lines.count;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (source->lines.at[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    uint32_t column = 1;
    for (uint32_t i = source->lines.at[low]; i < offset; i++)
        column += ((unsigned char)source->text.at[i] & 0xc0) != 0x80; // not a continuation byte
    return (Position){low + 1, column};
}

Str source_line(const Source *source, uint32_t line) {
    check_that(line >= 1 && line <= source->lines.count);
    uint32_t begin = source->lines.at[line - 1];
    uint32_t end = line < source->lines.count ? source->lines.at[line] - 1 : source->text.size;
    if (end > begin && source->text.at[end - 1] == '\r')
        end--;
    return (Str){source->text.at + begin, end - begin};
}

Span span_join(Span a, Span b) {
    if (!a.source)
        return b;
    if (!b.source || a.source != b.source)
        return a;
    return (Span){a.source, MIN(a.begin, b.begin), MAX(a.end, b.end)};
}
