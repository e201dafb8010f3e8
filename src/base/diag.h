// Diagnostics: everything a user did wrong is collected here and printed at the end; bugs of ours
// abort (bug()), and the two are never mixed.
//
// Codes are permanent and stand in diag.def with their message, whose {0}, {1} … are replaced by
// the arguments of diag(). A printed diagnostic shows the source line with the primary span
// underlined, its label, further labelled spans, notes ("expected …") and a help ("did you mean").
#ifndef PRESK_BASE_DIAG_H
#define PRESK_BASE_DIAG_H

#include "base/source.h"

typedef enum Severity { SEVERITY_WARNING, SEVERITY_ERROR } Severity;

typedef enum DiagCode {
#define DIAG(code, severity, format, explanation) DIAG_##code,
#include "base/diag.def"
#undef DIAG
    DIAG_CODE_COUNT
} DiagCode;

typedef struct DiagLabel {
    Span span;
    Str text;
} DiagLabel;

typedef struct Diag {
    uint32_t number; // in order of finding
    DiagCode code;
    Severity severity;
    Str message;
    Vec(DiagLabel) labels; // the first is primary
    Vec(Str) notes;
    Str help; // empty: none
    Arena *arena;
} Diag;

typedef struct Diags {
    Arena *arena;
    const Sources *sources;
    Vec(Diag *) all;
    uint32_t errors;
    uint32_t limit; // errors after which further ones are dropped (0: 100); `dropped` counts them
    uint32_t dropped;
} Diags;

// diag(diags, E2003, span, a, b): adds a diagnostic; arguments are C strings (use str_format for
// numbers), as many as the code's message has places. Returns it for labels, notes and help.
#define diag(diags, code, span, ...)                                                               \
    diag_add_((diags), DIAG_##code, (span), (const char *[]){"", ##__VA_ARGS__},                   \
              (uint32_t)(sizeof((const char *[]){"", ##__VA_ARGS__}) / sizeof(char *) - 1))
Diag *diag_add_(Diags *diags, DiagCode code, Span span, const char *const *args, uint32_t count);

// Text beside the primary span's underline.
void diag_here(Diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));
void diag_label(Diag *diag, Span span, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void diag_note(Diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));
void diag_help(Diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));

const char *diag_code_text(DiagCode code);        // "E2003"
const char *diag_code_explanation(DiagCode code); // one line

typedef enum DiagFormat { DIAG_PLAIN, DIAG_COLOR, DIAG_JSON } DiagFormat;
// All diagnostics in order of source position (stable), each once, as text; JSON is one array.
Str diags_render(const Diags *diags, Arena *arena, DiagFormat format);

#endif
