// The parser's cursor: tokens, layout, errors and the making of nodes. Internal to the stage.
//
// An error sets `failed`; from then on the cursor shows nothing but END and further errors are
// silent, so that every grammar function runs to its end without asking. The declaration is then
// dropped as a whole.
#ifndef PRESK_SYNTAX_PARSER_H
#define PRESK_SYNTAX_PARSER_H

#include "syntax/lex.h"

typedef struct SynParser {
    Context *context;
    SynTree *tree;
    Arena *scratch;
    SynTokens tokens;
    uint32_t next;     // index of the next token
    uint32_t begin;    // index of the declaration's first token
    uint32_t last_end; // where the last token taken ends
    bool free;         // free mode: newlines are skipped; else lines mode
    bool failed;
    uint32_t opener;      // index of the innermost open bracket, NONE
    uint32_t nesting;     // of calls
    Vec(SynId) stack;     // children of nodes not yet closed
    Vec(uint16_t) depths; // by node
} SynParser;

enum { SYN_NO_OPENER = UINT32_MAX };

// --- tokens ---
const SynToken *syn_peek(const SynParser *p);
// The `ahead`-th token after the next one; in lines mode newlines count.
const SynToken *syn_peek_ahead(const SynParser *p, uint32_t ahead);
bool syn_at(const SynParser *p, SynTokenKind kind);
bool syn_at_word(const SynParser *p);                // a name or a reserved word
bool syn_at_text(const SynParser *p, const char *s); // the contextual word
const SynToken *syn_take(SynParser *p);
bool syn_accept(SynParser *p, SynTokenKind kind);
void syn_skip_newline(SynParser *p);
// Skips a newline where an expression must come, unless a declaration comes at column 0.
void syn_join_line(SynParser *p);
// The binary operator that goes on with the expression, at the start of the next line too; END:
// none. The second form steps over it.
const SynToken *syn_peek_operator(const SynParser *p);
const SynToken *syn_take_operator(SynParser *p);

// --- what must come; `where` ends the sentence "expected X where", "" if nothing needs saying ---
const SynToken *syn_want(SynParser *p, SynTokenKind kind, const char *where);
const SynToken *syn_want_name(SynParser *p, const char *what); // what it names: "a function"
const SynToken *syn_want_word(SynParser *p, const char *what); // reserved words too
void syn_want_text(SynParser *p, const char *word, const char *where);
void syn_want_line_end(SynParser *p, const char *expected); // or the `}` of the block

// --- brackets: opens one (in free mode for lists, in lines mode for blocks) and closes it ---
typedef struct SynBracket {
    uint32_t opener;
    bool free;
} SynBracket;
SynBracket syn_open_bracket(SynParser *p, bool free);
void syn_close_bracket(SynParser *p, SynBracket bracket, SynTokenKind closer, const char *expected);

// --- errors ---
// "expected …, found …" at the next token.
void syn_fail(SynParser *p, const char *expected);
void syn_fail_bracket(SynParser *p, const char *expected); // shows the innermost bracket, too
void syn_fail_declaration(SynParser *p);
void syn_fail_chain(SynParser *p, const SynToken *first); // the comparison before
void syn_fail_depth(SynParser *p);
// Every grammar function that recurses enters and leaves; false: too deep, and failed.
bool syn_enter(SynParser *p);
void syn_leave(SynParser *p);
bool syn_begins_declaration(const SynParser *p, uint32_t index);
// After a failure: on to the next declaration that starts at column 0.
void syn_recover(SynParser *p);

// --- nodes ---
uint32_t syn_begin(const SynParser *p); // offset of the next token
uint32_t syn_open(const SynParser *p);  // a mark on the stack
void syn_put(SynParser *p, SynId child);
// Makes a node of what was put since the mark; it ends where the last token taken ends. `name` and
// `text` are tokens or null. 0 after a failure.
SynId syn_close(SynParser *p, SynKind kind, uint32_t mark, uint32_t begin, const SynToken *name,
                const SynToken *text);
SynId syn_close_op(SynParser *p, SynKind kind, SynOp op, uint32_t mark, uint32_t begin);
// A node without children.
SynId syn_leaf(SynParser *p, SynKind kind, uint32_t begin, const SynToken *name,
               const SynToken *text);

#endif
