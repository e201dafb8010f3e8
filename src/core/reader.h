// The reader's cursor and what its two files share; private to core.
#ifndef PRESK_CORE_READER_H
#define PRESK_CORE_READER_H

#include "core/scan.h"
#include "core/tables.h"

enum { READ_DEPTH_MAX = 100, READ_ITEMS_MAX = 1 << 16 };

typedef struct Reader {
    CoreProgram *program;
    Context *context;
    uint32_t source;
    ScanTokens tokens;
    uint32_t at;
    uint32_t depth;      // of nested types, trees and scalars
    bool failed;         // one diagnostic has been given; the cursor stands at the end
    Vec(DimId) scope;    // dimensions of the module or function being read
    CoreModuleId module; // the module and function next to be filled
    CoreFnId fn;
} Reader;

static inline const ScanToken *read_peek(const Reader *r, uint32_t ahead) {
    uint32_t last = r->tokens.count - 1;
    return &r->tokens.at[r->at + ahead < last ? r->at + ahead : last];
}
static inline bool read_is(const Reader *r, const char *text) {
    const ScanToken *token = read_peek(r, 0);
    return token->kind != SCAN_END && token->kind != SCAN_LET && str_is(token->text, text);
}
// Takes the token if it is `text`.
bool read_take(Reader *r, const char *text);
void read_expect(Reader *r, const char *text);
// A word as a name; 0 with a diagnostic where there is none.
Name read_name(Reader *r, const char *what);
// A number up to `limit`.
uint64_t read_number(Reader *r, const char *what, uint64_t limit);
// Gives the one diagnostic, at the cursor, and moves to the end.
void read_fail(Reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
// The same with the candidate nearest to `word` as help.
void read_unknown(Reader *r, const char *what, Str word, const Str *candidates, uint32_t count);
bool read_deeper(Reader *r); // false, with a diagnostic, beyond READ_DEPTH_MAX

Extent read_extent(Reader *r);
// The axes of "[…]"; at most 2 · RANK_MAX.
uint32_t read_axes(Reader *r, CoreAxis axes[2 * RANK_MAX]);
CoreTypeId read_type(Reader *r);
CoreTree read_tree(Reader *r);
CoreScalar read_scalar(Reader *r);

#endif
