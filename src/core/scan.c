// The tokens of Core's text. Every byte sequence has some; what makes no sense is a sign that the
// reader refuses.
#include "core/scan.h"

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' ||
           c == '.' || (unsigned char)c >= 0x80;
}

static uint32_t token_end(Str text, uint32_t at, ScanKind *kind) {
    uint32_t end = at + 1;
    char c = text.at[at];
    char next = end < text.size ? text.at[end] : 0;
    if (is_word(c)) {
        *kind = is_digit(c) ? SCAN_NUMBER : SCAN_WORD;
        while (end < text.size && is_word(text.at[end]))
            end++;
    } else if (c == '%' && is_digit(next)) {
        *kind = SCAN_LET;
        while (end < text.size && is_digit(text.at[end]))
            end++;
    } else {
        *kind = SCAN_SIGN;
        end += (c == '-' && next == '>') || (c == '<' && next == '=');
    }
    return end;
}

ScanTokens core_scan(const Source *source, Arena *arena) {
    ScanTokens tokens = {0};
    Str text = source->text;
    bool begins = true;
    uint32_t line = 0;
    for (uint32_t at = 0; at < text.size;) {
        char c = text.at[at];
        if (c == '\n') {
            begins = true;
            line = ++at;
            continue;
        }
        if (c == ' ' || c == '\t' || c == '\r') {
            at++;
            continue;
        }
        ScanToken token = {.offset = at, .begins = begins, .column0 = at == line};
        uint32_t end = token_end(text, at, &token.kind);
        uint32_t skip = token.kind == SCAN_LET;
        token.text = str_copy(arena, text.at + at + skip, end - at - skip);
        vec_push(arena, &tokens, token);
        begins = false;
        at = end;
    }
    vec_push(arena, &tokens, ((ScanToken){.kind = SCAN_END, .offset = text.size, .begins = true}));
    return tokens;
}
