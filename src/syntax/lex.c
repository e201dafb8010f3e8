// The lexer: bytes to tokens (lex.h says how).
//
// It never gives up: a character it cannot use is reported and, where a table says what was meant
// (lookalike.def), read as that; else it becomes an ERROR token, at which the parser drops the
// declaration without a word of its own. Offsets are 32-bit, as texts are.
#include "syntax/lex.h"

#include <unictype.h>
#include <uniname.h>
#include <uninorm.h>
#include <unistr.h>

// What look() gives for a byte that begins no character.
#define INVALID 0xFFFFFFFFu

typedef struct Lexer {
    Context *context;
    Arena *arena;
    uint32_t source;
    Str text;
    uint32_t at;
    uint32_t line;   // offset of the start of the line
    uint32_t indent; // of the line's first token
    bool first;      // no token of this line yet
    SynTokens *tokens;
} Lexer;

typedef struct Lookalike {
    uint32_t code;
    const char *meant, *advice;
} Lookalike;

static const Lookalike lookalikes[] = {
#define LOOKALIKE(code, meant, advice) {code, meant, advice},
#include "syntax/lookalike.def"
#undef LOOKALIKE
};

typedef struct TokenRow {
    const char *text, *ascii;
    uint8_t op, level;
    bool word, mark, begins;
} TokenRow;

static const TokenRow rows[] = {
#define TOKEN(kind, text) {text, "", SYN_OP_NONE, 0, false, false, false},
#define WORD(kind, text)  {text, "", SYN_OP_NONE, 0, true, false, false},
#define CONTEXT(kind, text)
#define MARK(kind, text, ascii, op, level, begins)                                                 \
    {text, ascii, SYN_OP_##op, level, false, true, begins},
#include "syntax/token.def"
#undef TOKEN
#undef WORD
#undef CONTEXT
#undef MARK
};
_Static_assert(COUNT_OF(rows) == SYN_TOKEN_COUNT, "a row for every token");

const char *syn_token_text(SynTokenKind kind) {
    return rows[kind].text;
}
bool syn_token_is_word(SynTokenKind kind) {
    return rows[kind].word;
}
SynOp syn_token_op(SynTokenKind kind) {
    return (SynOp)rows[kind].op;
}
uint32_t syn_token_level(SynTokenKind kind) {
    return rows[kind].level;
}
bool syn_token_begins(SynTokenKind kind) {
    return rows[kind].begins;
}

static bool is_digit(uint32_t c) {
    return c >= '0' && c <= '9';
}

static uint32_t byte_at(const Lexer *lexer, uint32_t at) {
    return at < lexer->text.size ? (uint8_t)lexer->text.at[at] : 0;
}

// The character at an offset before the end, and its size; INVALID has size 1.
static uint32_t look(const Lexer *lexer, uint32_t at, uint32_t *size) {
    ucs4_t c;
    int bytes = u8_mbtoucr(&c, (const uint8_t *)lexer->text.at + at, lexer->text.size - at);
    *size = bytes > 0 ? (uint32_t)bytes : 1;
    return bytes > 0 ? c : INVALID;
}

static bool begins_name(uint32_t c) {
    if (c < 0x80)
        return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return c != INVALID && c != 0x3BB /* λ */ && c != 0x211D /* ℝ */ && uc_is_property_xid_start(c);
}

// U+0387 normalises to `·` and is no part of a name either.
static bool continues_name(uint32_t c) {
    if (c < 0x80)
        return begins_name(c) || is_digit(c);
    return c != INVALID && c != 0xB7 && c != 0x387 && uc_is_property_xid_continue(c);
}

static Span span_from(const Lexer *lexer, uint32_t begin) {
    return (Span){lexer->source, begin, lexer->at};
}

static SynToken *add_token(Lexer *lexer, SynTokenKind kind, uint32_t begin) {
    if (lexer->first)
        lexer->indent = begin - lexer->line;
    SynToken token = {.kind = (uint8_t)kind,
                      .first = lexer->first,
                      .indent = lexer->indent,
                      .begin = begin,
                      .end = lexer->at};
    lexer->first = false;
    vec_push(lexer->arena, lexer->tokens, token);
    return &vec_last(lexer->tokens);
}

// Reports the invalid bytes from here on as one error and steps over them.
static void skip_invalid(Lexer *lexer) {
    uint32_t begin = lexer->at, size;
    while (lexer->at < lexer->text.size && look(lexer, lexer->at, &size) == INVALID)
        lexer->at++;
    Str byte = str_format(lexer->arena, "0x%02X", byte_at(lexer, begin));
    Diag *d = diag(&lexer->context->diags, E0001, span_from(lexer, begin), byte.at);
    diag_help(d, "save the file as UTF-8");
}

static void skip_comment(Lexer *lexer) {
    while (lexer->at < lexer->text.size && byte_at(lexer, lexer->at) != '\n') {
        uint32_t size;
        if (look(lexer, lexer->at, &size) == INVALID)
            skip_invalid(lexer);
        else
            lexer->at += size;
    }
}

// Steps over spaces, comments and line breaks; the breaks become one NEWLINE at the first of them.
static void skip_space(Lexer *lexer) {
    bool broken = false;
    uint32_t at_break = 0;
    for (;;) {
        uint32_t c = byte_at(lexer, lexer->at);
        if (c == '-' && byte_at(lexer, lexer->at + 1) == '-') {
            skip_comment(lexer);
        } else if (c == ' ' || c == '\t' || c == '\r') {
            lexer->at++;
        } else if (c == '\n') {
            if (!broken)
                at_break = lexer->at;
            broken = true;
            lexer->line = ++lexer->at;
        } else {
            break;
        }
    }
    if (!broken)
        return;
    SynToken token = {.kind = SYN_TOKEN_NEWLINE, .begin = at_break, .end = at_break + 1};
    vec_push(lexer->arena, lexer->tokens, token);
    lexer->first = true;
}

// --- names ---

static Str normalised(Lexer *lexer, Str text) {
    bool ascii = true;
    for (uint32_t i = 0; i < text.size; i++)
        ascii &= (uint8_t)text.at[i] < 0x80;
    if (ascii)
        return text;
    // NFC grows UTF-8 at most threefold.
    size_t size = (size_t)text.size * 3 + 1;
    uint8_t *room = arena_alloc(lexer->arena, size);
    uint8_t *nfc = u8_normalize(UNINORM_NFC, (const uint8_t *)text.at, text.size, room, &size);
    check_that(nfc == room);
    return (Str){(const char *)nfc, (uint32_t)size};
}

static SynTokenKind word_kind(Str name) {
    for (uint32_t i = 0; i < SYN_TOKEN_COUNT; i++)
        if ((rows[i].word && str_is(name, rows[i].text)) ||
            (rows[i].mark && str_is(name, rows[i].ascii)))
            return (SynTokenKind)i;
    return SYN_TOKEN_NAME;
}

static void lex_name(Lexer *lexer) {
    uint32_t begin = lexer->at, size = 0;
    do {
        lexer->at += size;
    } while (lexer->at < lexer->text.size && continues_name(look(lexer, lexer->at, &size)));
    Str name = normalised(lexer, (Str){lexer->text.at + begin, lexer->at - begin});
    SynToken *token = add_token(lexer, word_kind(name), begin);
    token->name = name_of(lexer->context->names, name);
}

// --- numbers: digits, perhaps `.` digits, perhaps an exponent; `_` between digits ---

// Steps over digits with `_` between them; null or what is wrong.
static const char *read_digits(Str text, uint32_t *at, const char *none) {
    if (*at >= text.size || !is_digit((uint8_t)text.at[*at]))
        return none;
    while (*at < text.size && (is_digit((uint8_t)text.at[*at]) || text.at[*at] == '_')) {
        bool between = text.at[*at] != '_' || (text.at[*at - 1] != '_' && *at + 1 < text.size &&
                                               is_digit((uint8_t)text.at[*at + 1]));
        if (!between)
            return "`_` must stand between two digits";
        ++*at;
    }
    return NULL;
}

// Null or what is wrong; *good is the size of the part before it, a number by itself.
static const char *number_fault(Str text, uint32_t *good) {
    uint32_t at = 0;
    const char *fault = read_digits(text, &at, "it has no digits");
    *good = at;
    if (!fault && at < text.size && text.at[at] == '.') {
        at++;
        fault = read_digits(text, &at, "its fraction has no digits");
        *good = at;
    }
    if (!fault && at < text.size && (text.at[at] == 'e' || text.at[at] == 'E')) {
        at++;
        if (at < text.size && (text.at[at] == '+' || text.at[at] == '-'))
            at++;
        uint32_t digits = at;
        fault = read_digits(text, &at, "its exponent has no digits");
        *good = at > digits ? at : *good;
    }
    if (fault || at == text.size)
        return fault;
    return text.at[at] == '.' ? "it has more than one point"
           : text.size > 1 && text.at[0] == '0' && (text.at[1] == 'x' || text.at[1] == 'b')
               ? "numbers are decimal"
               : "a name cannot begin with a digit, nor a number end with a letter";
}

// Takes all that looks like one number, so that a malformed one is one error; what is good of it
// goes on as the number.
static void lex_number(Lexer *lexer) {
    uint32_t begin = lexer->at;
    while (lexer->at < lexer->text.size) {
        uint32_t size, c = look(lexer, lexer->at, &size);
        uint32_t before = byte_at(lexer, lexer->at - 1), after = byte_at(lexer, lexer->at + 1);
        bool sign = (c == '+' || c == '-') && (before == 'e' || before == 'E') && is_digit(after);
        if (!continues_name(c) && !(c == '.' && is_digit(after)) && !sign)
            break;
        lexer->at += size;
    }
    Str text = {lexer->text.at + begin, lexer->at - begin};
    uint32_t good;
    const char *fault = number_fault(text, &good);
    add_token(lexer, SYN_TOKEN_NUMBER, begin)->text = str_copy(lexer->arena, text.at, good);
    if (fault) {
        Str shown = str_copy(lexer->arena, text.at, text.size);
        diag(&lexer->context->diags, E0005, span_from(lexer, begin), shown.at, fault);
    }
}

// --- strings ---

static const Lookalike *lookalike_of(uint32_t c) {
    for (uint32_t i = 0; i < COUNT_OF(lookalikes); i++)
        if (lookalikes[i].code == c)
            return &lookalikes[i];
    return NULL;
}

// Whether `c` closes a string that `open` opened; a character that only looks like a quote may be
// closed by another of its like.
static bool closes_string(uint32_t open, uint32_t c) {
    if (open == '"' || c == '"')
        return c == '"';
    bool single = c == '\'' || c == 0x2018 || c == 0x2019;
    const Lookalike *like = lookalike_of(c);
    return like && like->meant[0] == '"' &&
           single == (open == '\'' || open == 0x2018 || open == 0x2019);
}

// False: unknown, and said so.
static bool lex_escape(Lexer *lexer, StrBuf *value) {
    uint32_t begin = lexer->at++, size = 1;
    if (byte_at(lexer, lexer->at) == '\n' || lexer->at >= lexer->text.size)
        return true; // the string's end is missing; that is the error
    uint32_t c = look(lexer, lexer->at, &size);
    const char *found = strchr("\"\\nt", c < 0x80 && c ? (int)c : 1);
    if (found) {
        buf_char(value, "\"\\\n\t"[found - strchr("\"\\nt", '"')]);
        lexer->at++;
        return true;
    }
    if (c != INVALID)
        lexer->at += size;
    Str shown = str_copy(lexer->arena, lexer->text.at + begin, lexer->at - begin);
    Diag *d =
        diag(&lexer->context->diags, E0004, span_from(lexer, begin), c < 0x20 ? "\\" : shown.at);
    diag_note(d, "expected `\\\"`, `\\\\`, `\\n` or `\\t`");
    return false;
}

static void report_character(Lexer *lexer, uint32_t c, uint32_t begin, const Lookalike *like);

static void report_open_string(Lexer *lexer, uint32_t begin) {
    Diag *d = diag(&lexer->context->diags, E0003, span_from(lexer, begin));
    diag_note(d, "expected `\"` before the end of the line");
    diag_help(d, "a line break inside a string is written `\\n`");
}

// From behind the opening quote `open` on. One that is no `"` has been reported already.
static void lex_string(Lexer *lexer, uint32_t open, uint32_t begin) {
    StrBuf value = {.arena = lexer->arena};
    SynTokenKind kind = SYN_TOKEN_STRING;
    for (;;) {
        uint32_t at = lexer->at, size, c;
        if (at >= lexer->text.size || byte_at(lexer, at) == '\n') {
            if (open == '"')
                report_open_string(lexer, begin);
            kind = SYN_TOKEN_ERROR;
            break;
        }
        c = look(lexer, at, &size);
        if (c == '\\') {
            kind = lex_escape(lexer, &value) ? kind : SYN_TOKEN_ERROR;
        } else if (c == INVALID) {
            skip_invalid(lexer);
            kind = SYN_TOKEN_ERROR;
        } else {
            lexer->at += size;
            if (closes_string(open, c))
                break;
            if (c < 0x20 && c != '\t' && c != '\r') {
                report_character(lexer, c, at, NULL);
                kind = SYN_TOKEN_ERROR;
            }
            buf_add(&value, (Str){lexer->text.at + at, size});
        }
    }
    add_token(lexer, kind, begin)->text = buf_str(&value);
}

// --- marks and what is none ---

// The longest mark that the text goes on with; its spelling's size in *size, 0: none.
static SynTokenKind match_mark(Str text, uint32_t *size) {
    SynTokenKind best = SYN_TOKEN_ERROR;
    *size = 0;
    for (uint32_t i = 0; i < SYN_TOKEN_COUNT; i++) {
        if (!rows[i].mark)
            continue;
        const char *spellings[] = {rows[i].text, rows[i].ascii};
        for (uint32_t k = 0; k < 2; k++) {
            // `Real` is read as a word.
            if (text.size == 0 || spellings[k][0] != text.at[0] || text.at[0] == 'R')
                continue;
            size_t length = strlen(spellings[k]);
            if (length > *size && length <= text.size && !memcmp(text.at, spellings[k], length)) {
                best = (SynTokenKind)i;
                *size = (uint32_t)length;
            }
        }
    }
    return best;
}

static bool lex_mark(Lexer *lexer) {
    uint32_t begin = lexer->at, size;
    Str rest = {lexer->text.at + begin, lexer->text.size - begin};
    SynTokenKind kind = match_mark(rest, &size);
    if (!size)
        return false;
    lexer->at += size;
    add_token(lexer, kind, begin);
    return true;
}

// "`×` (U+00D7, multiplication sign)"; what is not printable is not printed.
static Str describe_character(Lexer *lexer, uint32_t c) {
    StrBuf buf = {.arena = lexer->arena};
    if (uc_is_print(c) && c != ' ' && !uc_is_property_white_space(c) &&
        !uc_is_property_default_ignorable_code_point(c)) {
        uint8_t bytes[6];
        int size = u8_uctomb(bytes, c, sizeof bytes);
        buf_char(&buf, '`');
        buf_add(&buf, (Str){(const char *)bytes, size > 0 ? (uint32_t)size : 0});
        buf_char(&buf, '`');
        if (c < 0x80)
            return buf_str(&buf);
        buf_char(&buf, ' ');
    }
    char name[UNINAME_MAX];
    buf_format(&buf, "(U+%04X", c);
    if (unicode_character_name(c, name)) {
        for (char *at = name; *at; at++)
            *at = (char)(*at >= 'A' && *at <= 'Z' ? *at + ('a' - 'A') : *at);
        buf_format(&buf, ", %s", name);
    }
    buf_char(&buf, ')');
    return buf_str(&buf);
}

static void report_character(Lexer *lexer, uint32_t c, uint32_t begin, const Lookalike *like) {
    Str shown = describe_character(lexer, c);
    if (like && like->meant[0] == '-' && like->meant[1] == 0)
        diag_help(diag(&lexer->context->diags, E0002, span_from(lexer, begin), shown.at),
                  "write `-` (U+002D)");
    else if (like && like->advice[0])
        diag_help(diag(&lexer->context->diags, E0002, span_from(lexer, begin), shown.at), "%s",
                  like->advice);
    else if (like)
        diag_help(diag(&lexer->context->diags, E0002, span_from(lexer, begin), shown.at),
                  "write `%s`", like->meant);
    else
        diag(&lexer->context->diags, E0002, span_from(lexer, begin), shown.at);
}

static void lex_other(Lexer *lexer) {
    uint32_t begin = lexer->at, size, c = look(lexer, begin, &size);
    if (c == INVALID) {
        skip_invalid(lexer);
        add_token(lexer, SYN_TOKEN_ERROR, begin);
        return;
    }
    lexer->at += size;
    if (c == 0xFEFF && begin == 0) { // a byte order mark is no part of the text
        lexer->line = lexer->at;
        return;
    }
    const Lookalike *like = lookalike_of(c);
    bool usable = like && like->meant[0];
    while (!usable && lexer->at < lexer->text.size && look(lexer, lexer->at, &size) == c)
        lexer->at += size; // `&&` is one error
    report_character(lexer, c, begin, like);
    if (usable && like->meant[0] == '"') {
        lex_string(lexer, c, begin);
    } else if (usable) {
        if (like->meant[0] != ' ')
            add_token(lexer, match_mark(str_of(like->meant), &size), begin);
    } else {
        add_token(lexer, SYN_TOKEN_ERROR, begin);
    }
}

void syn_lex(Context *context, Arena *arena, uint32_t source, SynTokens *tokens) {
    Lexer lexer = {.context = context,
                   .arena = arena,
                   .source = source,
                   .text = source_get(&context->sources, source)->text,
                   .first = true,
                   .tokens = tokens};
    for (;;) {
        skip_space(&lexer);
        uint32_t begin = lexer.at, size;
        if (begin >= lexer.text.size)
            break;
        uint32_t c = look(&lexer, begin, &size);
        if (begins_name(c)) {
            lex_name(&lexer);
        } else if (is_digit(c)) {
            lex_number(&lexer);
        } else if (c == '"') {
            lexer.at++;
            lex_string(&lexer, c, begin);
        } else if (!lex_mark(&lexer)) {
            lex_other(&lexer);
        }
    }
    add_token(&lexer, SYN_TOKEN_END, lexer.at);
}

// --- tokens in messages and dumps ---

Str syn_token_describe(const SynToken *token, const Names *names, Arena *arena) {
    const char *text = syn_token_text(token->kind);
    if (token->kind == SYN_TOKEN_NAME)
        return str_format(arena, "name `%s`", name_c(names, token->name));
    if (token->kind == SYN_TOKEN_NUMBER)
        return str_format(arena, "number `%s`", token->text.at);
    if (rows[token->kind].word)
        return str_format(arena, "the reserved word `%s`", text);
    if (rows[token->kind].mark)
        return str_format(arena, "`%s`", text);
    return str_format(arena, token->kind == SYN_TOKEN_STRING ? "a %s" : "%s", text);
}
