// Collecting and rendering diagnostics.
//
// The plain form is what the error tests pin:
//   error[E2003]: the axis `sec` is not an axis of ℝ[seq: T]
//     --> file.psk:3:7
//      |
//    3 |   mean(x, sec)
//      |           ^^^ no such axis
//      = note: …
//      = help: did you mean `seq`?
#include "base/diag.h"

#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

#include <unictype.h>
#include <unistr.h>
#include <uniwidth.h>

typedef struct CodeInfo {
    const char *text;
    Severity severity;
    const char *format, *explanation;
} CodeInfo;

static const CodeInfo code_info[] = {
#define DIAG(code, severity, format, explanation) {#code, SEVERITY_##severity, format, explanation},
#include "base/diag.def"
#undef DIAG
};

const char *diag_code_text(DiagCode code) {
    return code_info[code].text;
}

const char *diag_code_explanation(DiagCode code) {
    return code_info[code].explanation;
}

static Str message_text(Arena *arena, const char *format, const char *const *args, uint32_t count) {
    StrBuf buf = {.arena = arena};
    for (const char *at = format; *at; at++) {
        if (at[0] == '{' && at[1] >= '0' && at[1] <= '9' && at[2] == '}') {
            uint32_t index = (uint32_t)(at[1] - '0');
            check_that(index < count);
            buf_text(&buf, args[1 + index]); // args[0] only keeps the array from being empty
            at += 2;
        } else {
            buf_char(&buf, *at);
        }
    }
    return buf_str(&buf);
}

Diag *diag_add_(Diags *diags, DiagCode code, Span span, const char *const *args, uint32_t count) {
    const CodeInfo *info = &code_info[code];
    Diag *made = arena_new_of(diags->arena, Diag);
    *made = (Diag){.code = code,
                   .severity = info->severity,
                   .arena = diags->arena,
                   .number = diags->all.count};
    made->message = message_text(diags->arena, info->format, args, count);
    vec_push(diags->arena, &made->labels, ((DiagLabel){span, STR("")}));
    if (info->severity == SEVERITY_ERROR) {
        if (diags->errors >= (diags->limit ? diags->limit : 100)) {
            diags->dropped++;
            return made; // usable by the caller, never shown
        }
        diags->errors++;
    }
    vec_push(diags->arena, &diags->all, made);
    return made;
}

#define FORMATTED(arena, text)                                                                     \
    Str text;                                                                                      \
    do {                                                                                           \
        va_list args_;                                                                             \
        va_start(args_, format);                                                                   \
        text = str_format_v((arena), format, args_);                                               \
        va_end(args_);                                                                             \
    } while (0)

void diag_here(Diag *made, const char *format, ...) {
    FORMATTED(made->arena, text);
    made->labels.at[0].text = text;
}

void diag_label(Diag *made, Span span, const char *format, ...) {
    FORMATTED(made->arena, text);
    vec_push(made->arena, &made->labels, ((DiagLabel){span, text}));
}

void diag_note(Diag *made, const char *format, ...) {
    FORMATTED(made->arena, text);
    vec_push(made->arena, &made->notes, text);
}

void diag_help(Diag *made, const char *format, ...) {
    FORMATTED(made->arena, text);
    made->help = text;
}

// ---- rendering ------------------------------------------------------------------------------

typedef struct Render {
    StrBuf buf;
    const Diags *diags;
    bool color;
} Render;

static const char *paint(const Render *render, const char *code) {
    return render->color ? code : "";
}
#define RED    "\033[1;31m"
#define YELLOW "\033[1;33m"
#define BLUE   "\033[1;34m"
#define BOLD   "\033[1m"
#define PLAIN  "\033[0m"

// Decodes one code point for display: control characters and bad bytes are shown as U+FFFD (a tab
// as four spaces), so that the underline stays below what it marks.
static uint32_t show_point(StrBuf *buf, const char *at, const char *end, uint32_t *width) {
    ucs4_t point;
    int size = u8_mbtoucr(&point, (const uint8_t *)at, (size_t)(end - at));
    if (size > 0 && point == '\t') {
        *width = 4;
        if (buf)
            buf_text(buf, "    ");
        return 1;
    }
    if (size <= 0 || uc_is_general_category_withtable(point, UC_CATEGORY_MASK_C)) {
        *width = 1;
        if (buf)
            buf_text(buf, "\xef\xbf\xbd");
        return size <= 0 ? 1 : (uint32_t)size;
    }
    int columns = uc_width(point, "UTF-8");
    *width = columns < 0 ? 1 : (uint32_t)columns;
    if (buf)
        buf_add(buf, (Str){at, (uint32_t)size});
    return (uint32_t)size;
}

static uint32_t show_text(StrBuf *buf, Str text) {
    uint32_t columns = 0, width;
    for (const char *at = text.at, *end = text.at + text.size; at < end; columns += width)
        at += show_point(buf, at, end, &width);
    return columns;
}

static void repeat(StrBuf *buf, char c, uint32_t count) {
    while (count--)
        buf_char(buf, c);
}

static uint32_t digits_of(uint32_t value) {
    uint32_t digits = 1;
    while (value >= 10) {
        value /= 10;
        digits++;
    }
    return digits;
}

// The source line of a label (unless it has just been shown) with its underline; a span of several
// lines is underlined to the end of its first.
static void render_label(Render *render, const DiagLabel *label, uint32_t gutter, bool primary,
                         const char *accent, uint32_t *line_shown) {
    StrBuf *buf = &render->buf;
    const Source *source = source_get(render->diags->sources, label->span.source);
    Position at = source_position(source, label->span.begin);
    Str line = source_line(source, at.line);
    uint32_t start = source->lines.at[at.line - 1];
    uint32_t begin = MIN(label->span.begin - MIN(start, label->span.begin), line.size);
    uint32_t end = MIN(label->span.end - MIN(start, label->span.end), line.size);
    if (at.line != *line_shown) {
        buf_format(buf, "%s%*u |%s ", paint(render, BLUE), (int)gutter, at.line,
                   paint(render, PLAIN));
        show_text(buf, line);
        buf_char(buf, '\n');
        *line_shown = at.line;
    }
    buf_format(buf, "%s%*s |%s ", paint(render, BLUE), (int)gutter, "", paint(render, PLAIN));
    repeat(buf, ' ', show_text(NULL, (Str){line.at, begin}));
    uint32_t width = end > begin ? show_text(NULL, (Str){line.at + begin, end - begin}) : 1;
    buf_text(buf, paint(render, primary ? accent : BLUE));
    repeat(buf, primary ? '^' : '-', MAX(width, 1));
    if (label->text.size) {
        buf_char(buf, ' ');
        buf_add(buf, label->text);
    }
    buf_format(buf, "%s\n", paint(render, PLAIN));
}

static void render_tail(Render *render, uint32_t gutter, const char *kind, Str text) {
    buf_format(&render->buf, "%s%*s =%s %s%s:%s ", paint(render, BLUE), (int)gutter, "",
               paint(render, PLAIN), paint(render, BOLD), kind, paint(render, PLAIN));
    // Further lines of a note stand below its first.
    for (uint32_t i = 0; i < text.size; i++) {
        buf_char(&render->buf, text.at[i]);
        if (text.at[i] == '\n')
            repeat(&render->buf, ' ', gutter + 5 + (uint32_t)strlen(kind));
    }
    buf_char(&render->buf, '\n');
}

static void render_diag(Render *render, const Diag *shown) {
    StrBuf *buf = &render->buf;
    bool error = shown->severity == SEVERITY_ERROR;
    const char *accent = error ? RED : YELLOW;
    buf_format(buf, "%s%s[%s]%s%s: ", paint(render, accent), error ? "error" : "warning",
               diag_code_text(shown->code), paint(render, PLAIN), paint(render, BOLD));
    buf_add(buf, shown->message);
    buf_format(buf, "%s\n", paint(render, PLAIN));
    uint32_t gutter = 1;
    for (uint32_t i = 0; i < shown->labels.count; i++) {
        Span span = shown->labels.at[i].span;
        if (span.source) {
            const Source *source = source_get(render->diags->sources, span.source);
            gutter = MAX(gutter, digits_of(source_position(source, span.begin).line));
        }
    }
    gutter += 1;
    uint32_t source_shown = 0, line_shown = 0;
    for (uint32_t i = 0; i < shown->labels.count; i++) {
        const DiagLabel *label = &shown->labels.at[i];
        if (!label->span.source)
            continue;
        if (label->span.source != source_shown) {
            const Source *source = source_get(render->diags->sources, label->span.source);
            Position at = source_position(source, label->span.begin);
            buf_format(buf, "%s%*s%s%s ", paint(render, BLUE), (int)gutter, "",
                       source_shown ? ":::" : "-->", paint(render, PLAIN));
            buf_add(buf, source->path);
            buf_format(buf, ":%u:%u\n%s%*s |%s\n", at.line, at.column, paint(render, BLUE),
                       (int)gutter, "", paint(render, PLAIN));
            source_shown = label->span.source;
            line_shown = 0;
        }
        render_label(render, label, gutter, i == 0, accent, &line_shown);
    }
    for (uint32_t i = 0; i < shown->notes.count; i++)
        render_tail(render, gutter, "note", shown->notes.at[i]);
    if (shown->help.size)
        render_tail(render, gutter, "help", shown->help);
}

static void json_string(StrBuf *buf, Str text) {
    buf_char(buf, '"');
    const char *end = text.at + text.size;
    for (const char *at = text.at; at < end;) {
        ucs4_t point;
        int size = u8_mbtoucr(&point, (const uint8_t *)at, (size_t)(end - at));
        if (size <= 0) {
            buf_text(buf, "\\ufffd");
            at++;
            continue;
        }
        if (point == '"' || point == '\\')
            buf_format(buf, "\\%c", (char)point);
        else if (point < 0x20)
            buf_format(buf, "\\u%04x", (unsigned)point);
        else
            buf_add(buf, (Str){at, (uint32_t)size});
        at += size;
    }
    buf_char(buf, '"');
}

static void json_labels(Render *render, const Diag *shown) {
    StrBuf *buf = &render->buf;
    buf_text(buf, ",\"labels\":[");
    bool first = true;
    for (uint32_t i = 0; i < shown->labels.count; i++) {
        const DiagLabel *label = &shown->labels.at[i];
        if (!label->span.source)
            continue;
        const Source *source = source_get(render->diags->sources, label->span.source);
        Position begin = source_position(source, label->span.begin);
        Position end = source_position(source, label->span.end);
        buf_text(buf, first ? "{\"file\":" : ",{\"file\":");
        first = false;
        json_string(buf, source->path);
        buf_format(buf,
                   ",\"line\":%u,\"column\":%u,\"end_line\":%u,\"end_column\":%u,\"begin\":%u,"
                   "\"end\":%u,\"text\":",
                   begin.line, begin.column, end.line, end.column, label->span.begin,
                   label->span.end);
        json_string(buf, label->text);
        buf_char(buf, '}');
    }
    buf_char(buf, ']');
}

static void json_diag(Render *render, const Diag *shown) {
    StrBuf *buf = &render->buf;
    buf_format(buf,
               "{\"code\":\"%s\",\"severity\":\"%s\",\"message\":", diag_code_text(shown->code),
               shown->severity == SEVERITY_ERROR ? "error" : "warning");
    json_string(buf, shown->message);
    json_labels(render, shown);
    buf_text(buf, ",\"notes\":[");
    for (uint32_t i = 0; i < shown->notes.count; i++) {
        if (i)
            buf_char(buf, ',');
        json_string(buf, shown->notes.at[i]);
    }
    buf_text(buf, "],\"help\":");
    if (shown->help.size)
        json_string(buf, shown->help);
    else
        buf_text(buf, "null");
    buf_char(buf, '}');
}

// Orders by file, then position, then the order in which they were found.
static int diag_order(const void *a, const void *b) {
    const Diag *x = *(Diag *const *)a, *y = *(Diag *const *)b;
    Span s = x->labels.at[0].span, t = y->labels.at[0].span;
    if (s.source != t.source)
        return s.source < t.source ? -1 : 1;
    if (s.begin != t.begin)
        return s.begin < t.begin ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static bool diag_same(const Diag *a, const Diag *b) {
    Span s = a->labels.at[0].span, t = b->labels.at[0].span;
    return a->code == b->code && s.source == t.source && s.begin == t.begin && s.end == t.end &&
           str_equal(a->message, b->message);
}

Str diags_render(const Diags *diags, Arena *arena, DiagFormat format) {
    Render render = {{.arena = arena}, diags, format == DIAG_COLOR};
    uint32_t count = diags->all.count;
    Diag **sorted = arena_copy(arena, diags->all.at, count * sizeof *sorted);
    if (count)
        qsort(sorted, count, sizeof *sorted, diag_order);
    if (format == DIAG_JSON)
        buf_char(&render.buf, '[');
    for (uint32_t i = 0, shown = 0; i < count; i++) {
        if (i && diag_same(sorted[i], sorted[i - 1]))
            continue;
        if (shown++)
            buf_char(&render.buf, format == DIAG_JSON ? ',' : '\n');
        if (format == DIAG_JSON)
            json_diag(&render, sorted[i]);
        else
            render_diag(&render, sorted[i]);
    }
    if (format == DIAG_JSON)
        buf_text(&render.buf, "]\n");
    else if (diags->dropped)
        buf_format(&render.buf, "\n%u further errors are not shown\n", diags->dropped);
    return buf_str(&render.buf);
}
