// Tokens of Core's text; private to the reader.
#ifndef PRESK_CORE_SCAN_H
#define PRESK_CORE_SCAN_H

#include "base/context.h"

typedef enum ScanKind {
    SCAN_END,
    SCAN_WORD,   // letters, digits, `_`, `.`, anything beyond ASCII; starts with no digit
    SCAN_NUMBER, // the same, starting with a digit
    SCAN_LET,    // %12
    SCAN_SIGN    // one character, or `->` or `<=`
} ScanKind;

typedef struct ScanToken {
    ScanKind kind;
    Str text;        // of LET: the digits
    uint32_t offset; // in the source
    bool begins;     // first on its line
    bool column0;    // at the very start of its line
} ScanToken;

typedef Vec(ScanToken) ScanTokens;

// All tokens of a source, ended by SCAN_END.
ScanTokens core_scan(const Source *source, Arena *arena);

#endif
