// Tokens: what the lexer makes of a source.
//
// The text is UTF-8. A name begins with `_` or an XID_Start character other than `λ` and `ℝ` and
// goes on with XID_Continue characters other than `·`; its spelling is normalised (NFC), nothing
// else is. `--` begins a comment to the end of the line. One or more line breaks, with blank and
// comment lines between them, are one NEWLINE; whether it matters is the parser's affair. The list
// ends with one END. Whatever bytes come in, tokens and diagnostics come out.
#ifndef PRESK_SYNTAX_LEX_H
#define PRESK_SYNTAX_LEX_H

#include "syntax/tree.h"

typedef enum SynTokenKind {
#define TOKEN(kind, text) SYN_TOKEN_##kind,
#define WORD(kind, text)  SYN_TOKEN_##kind,
#define CONTEXT(kind, text)
#define MARK(kind, text, ascii, op, level, begins) SYN_TOKEN_##kind,
#include "syntax/token.def"
#undef TOKEN
#undef WORD
#undef CONTEXT
#undef MARK
    SYN_TOKEN_COUNT
} SynTokenKind;

typedef struct SynToken {
    uint8_t kind;
    bool first;      // the first token of its line
    uint32_t indent; // bytes before the first token of its line
    uint32_t begin, end;
    Name name; // NAME and reserved words: the normalised spelling
    Str text;  // NUMBER: as written; STRING: with escapes resolved
} SynToken;

typedef Vec(SynToken) SynTokens;

void syn_lex(Context *context, Arena *arena, uint32_t source, SynTokens *tokens);

const char *syn_token_text(SynTokenKind kind); // its Unicode spelling, or the name of its class
bool syn_token_is_word(SynTokenKind kind);     // a reserved word
SynOp syn_token_op(SynTokenKind kind);         // of a binary operator, else SYN_OP_NONE
uint32_t syn_token_level(SynTokenKind kind);   // 0: no operator of the table
bool syn_token_begins(SynTokenKind kind);      // a mark that may begin an expression

// The token as a message names it: "name `x`", "`)`", "the end of the line".
Str syn_token_describe(const SynToken *token, const Names *names, Arena *arena);

#endif
