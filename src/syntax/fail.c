// What the parser says of an error, and how it goes on after one (parser.h).
//
// One declaration reports one error: after it the declaration is dropped. A bracket that was left
// open is reported where it was opened, since the place where the parser notices can be far away.
#include "syntax/parser.h"

static Span span_of(const SynParser *p, const SynToken *token) {
    return (Span){p->tree->source, token->begin, token->end};
}

// --- advice ---

// Words of other languages.
static const struct {
    const char *word, *advice;
} foreign[] = {
    {"if", "a value is chosen by `where(mask, a, b)`"},
    {"then", "a value is chosen by `where(mask, a, b)`"},
    {"else", "a value is chosen by `where(mask, a, b)`"},
    {"in", "the line ends a `let`; what follows stands on the next"},
    {"def", "a function begins with `fn`"},
    {"func", "a function begins with `fn`"},
    {"function", "a function begins with `fn`"},
    {"var", "`let` gives a value a name"},
    {"val", "`let` gives a value a name"},
    {"return", "the value of a function is its last line"},
    {"lambda", "a function without a name is `λ x. body`"},
    {"for", "there are no loops; operations take whole tensors"},
    {"while", "there are no loops; operations take whole tensors"},
    {"class", "a record of parameters and functions is a `module`"},
    {"struct", "a record of parameters and functions is a `module`"},
    {"from", "a file is imported by `import \"path\" as name`"},
    {"and", "`m * n == 1` is the mask where both `m` and `n` hold"},
    {"or", "`m + n > 0` is the mask where `m` or `n` holds"},
    {"not", "`m == 0` is the opposite of the mask `m`"},
};

// Marks that are one thing elsewhere and two here.
static const struct {
    SynTokenKind before, found;
    const char *advice;
} pairs[] = {
    {SYN_TOKEN_STAR, SYN_TOKEN_STAR, "a power is written `^`"},
    {SYN_TOKEN_SLASH, SYN_TOKEN_SLASH, "a comment begins with `--`"},
    {SYN_TOKEN_SLASH, SYN_TOKEN_STAR, "a comment begins with `--`"},
    {SYN_TOKEN_COMMA, SYN_TOKEN_PAREN_END, "no comma stands behind the last item"},
    {SYN_TOKEN_COMMA, SYN_TOKEN_BRACKET_END, "no comma stands behind the last item"},
    {SYN_TOKEN_COMMA, SYN_TOKEN_BRACE_END, "no comma stands behind the last item"},
    {SYN_TOKEN_ASSIGN, SYN_TOKEN_GT, "the type of a result follows `->`"},
    {SYN_TOKEN_BAR, SYN_TOKEN_BAR, "`m + n > 0` is the mask where `m` or `n` holds"},
};

// Words that begin something, so that a misspelled one is noticed at the token behind it.
static const char *const leading[] = {"let",  "ein",    "idx",  "param",     "params",
                                      "Real", "stream", "next", "checkpoint"};

static bool advise_near(SynParser *p, Diag *d, Str word, const Str *candidates, uint32_t count) {
    if (word.size < 3)
        return false;
    Str near = nearest_spelling(p->scratch, word, candidates, count);
    if (near.size)
        diag_help(d, "did you mean `%s` instead of `%s`?", near.at, word.at);
    return near.size > 0;
}

static bool advise_foreign(Diag *d, Str word) {
    for (uint32_t i = 0; i < COUNT_OF(foreign); i++) {
        if (str_is(word, foreign[i].word)) {
            diag_help(d, "%s", foreign[i].advice);
            return true;
        }
    }
    return false;
}

// The words in back quotes in a message: what could have been meant.
static uint32_t quoted_words(SynParser *p, const char *expected, Str *words, uint32_t room) {
    uint32_t count = 0;
    for (const char *at = strchr(expected, '`'); at && count < room; at = strchr(at, '`')) {
        const char *end = strchr(++at, '`');
        if (!end)
            break;
        if (*at >= 'a' && *at <= 'z')
            words[count++] = str_copy(p->scratch, at, (size_t)(end - at));
        at = end + 1;
    }
    return count;
}

static void advise(SynParser *p, Diag *d, const SynToken *found, const char *expected) {
    const Names *names = p->context->names;
    const SynToken *before = found > p->tokens.at ? found - 1 : NULL;
    Str words[24];
    uint32_t count = quoted_words(p, expected, words, COUNT_OF(words));
    if (found->kind == SYN_TOKEN_NAME) {
        Str word = name_str(names, found->name);
        if (advise_foreign(d, word) || advise_near(p, d, word, words, count))
            return;
    }
    if (!before)
        return;
    for (uint32_t i = 0; i < COUNT_OF(pairs); i++)
        if (pairs[i].before == before->kind && pairs[i].found == found->kind)
            diag_help(d, "%s", pairs[i].advice);
    if (before->kind == SYN_TOKEN_NAME) {
        for (count = 0; count < COUNT_OF(leading); count++)
            words[count] = str_of(leading[count]);
        Str word = name_str(names, before->name);
        if (!advise_foreign(d, word))
            advise_near(p, d, word, words, count);
    }
    if (found->kind == SYN_TOKEN_ASSIGN && strstr(expected, "operator"))
        diag_help(d, "the operator of equality is `==`");
    if (found->kind == SYN_TOKEN_BRACE && strstr(expected, "operator"))
        diag_help(d, "dimension arguments begin on the line of their `{`");
}

// --- brackets left open ---

static SynTokenKind closer_of(SynTokenKind opener) {
    return opener == SYN_TOKEN_PAREN     ? SYN_TOKEN_PAREN_END
           : opener == SYN_TOKEN_BRACKET ? SYN_TOKEN_BRACKET_END
                                         : SYN_TOKEN_BRACE_END;
}

// Whether a token where another was expected means that the innermost bracket was forgotten: the
// text ends, a declaration comes, or (inside a list) `->`, another bracket's end or a line that is
// indented no deeper than the one that opened it.
static bool left_open(const SynParser *p, const SynToken *found) {
    const SynToken *opener = &p->tokens.at[p->opener];
    SynTokenKind kind = found->kind;
    if (kind == SYN_TOKEN_END || (found->first && found->indent == 0 &&
                                  syn_begins_declaration(p, (uint32_t)(found - p->tokens.at))))
        return true;
    if (!p->free)
        return false;
    bool closes =
        kind == SYN_TOKEN_PAREN_END || kind == SYN_TOKEN_BRACKET_END || kind == SYN_TOKEN_BRACE_END;
    return kind == SYN_TOKEN_ARROW || (closes && kind != closer_of(opener->kind)) ||
           (found->first && found->indent <= opener->indent && kind != closer_of(opener->kind));
}

static void fail_open(SynParser *p, const SynToken *found) {
    const SynToken *opener = &p->tokens.at[p->opener];
    const char *closer = syn_token_text(closer_of(opener->kind));
    Diag *d = diag(&p->context->diags, E0008, span_of(p, opener), syn_token_text(opener->kind));
    diag_here(d, "opened here");
    diag_label(d, span_of(p, found), "expected `%s` before %s", closer,
               found->kind == SYN_TOKEN_END ? "the end of the file" : "this");
}

// --- failures ---

// Whether to report: the first failure of a declaration, at a token that the lexer did not report.
static bool begin_failure(SynParser *p, const SynToken **found) {
    if (p->failed)
        return false;
    *found = syn_peek(p);
    p->failed = true;
    return (*found)->kind != SYN_TOKEN_ERROR;
}

static Diag *fail(SynParser *p, const char *expected) {
    const SynToken *found;
    if (!begin_failure(p, &found))
        return NULL;
    if (p->opener != SYN_NO_OPENER && left_open(p, found)) {
        fail_open(p, found);
        return NULL;
    }
    Str text = syn_token_describe(found, p->context->names, p->scratch);
    Diag *d = diag(&p->context->diags, E0006, span_of(p, found), expected, text.at);
    advise(p, d, found, expected);
    return d;
}

void syn_fail(SynParser *p, const char *expected) {
    fail(p, expected);
}

void syn_fail_bracket(SynParser *p, const char *expected) {
    Diag *d = fail(p, expected);
    if (d)
        diag_label(d, span_of(p, &p->tokens.at[p->opener]), "opened here");
}

static const char declarations[] =
    "`import` `const` `static` `dim` `type` `module` `fn` `optimizer` `training` `inference` "
    "`effect` `model`";

void syn_fail_declaration(SynParser *p) {
    const SynToken *found;
    if (!begin_failure(p, &found))
        return;
    Str text = syn_token_describe(found, p->context->names, p->scratch);
    Diag *d = diag(&p->context->diags, E0007, span_of(p, found), text.at);
    if (found->first && found->indent > 0)
        diag_note(d,
                  found->kind == SYN_TOKEN_MINUS
                      ? "a line that begins with `-` does not go on with the line before; put "
                        "the `-` at that line's end"
                      : "the declaration before it is over: its last line is a whole expression");
    advise(p, d, found, declarations);
}

void syn_fail_chain(SynParser *p, const SynToken *first) {
    const SynToken *found = syn_peek_operator(p);
    if (p->failed)
        return;
    p->failed = true;
    Diag *d = diag(&p->context->diags, E0009, span_of(p, found));
    diag_label(d, span_of(p, first), "the comparison before it");
    diag_help(d, "`(a < b) * (b < c) == 1` is the mask of both");
}

void syn_fail_depth(SynParser *p) {
    const SynToken *found;
    if (!begin_failure(p, &found))
        return;
    Str limit = str_format(p->scratch, "%d", SYN_DEPTH_MAX);
    Diag *d = diag(&p->context->diags, E0010, span_of(p, found), limit.at);
    diag_help(d, "name parts of it by `let`, in functions of their own");
}

// --- what must come ---

const SynToken *syn_want(SynParser *p, SynTokenKind kind, const char *where) {
    if (!syn_at(p, kind)) {
        bool mark = kind > SYN_TOKEN_STRING;
        syn_fail(
            p,
            str_format(p->scratch, mark ? "`%s` %s" : "a %s %s", syn_token_text(kind), where).at);
    }
    return syn_take(p);
}

const SynToken *syn_want_name(SynParser *p, const char *what) {
    const SynToken *found = syn_peek(p);
    if (!p->failed && syn_token_is_word(found->kind)) {
        bool open = p->opener != SYN_NO_OPENER && left_open(p, found);
        if (!open && begin_failure(p, &found)) {
            diag(&p->context->diags, E0011, span_of(p, found), syn_token_text(found->kind), what);
            return found;
        }
    }
    if (!syn_at(p, SYN_TOKEN_NAME))
        syn_fail(p, str_format(p->scratch, "the name of %s", what).at);
    return syn_take(p);
}

const SynToken *syn_want_word(SynParser *p, const char *what) {
    if (!syn_at_word(p))
        syn_fail(p, str_format(p->scratch, "the name of %s", what).at);
    return syn_take(p);
}

void syn_want_text(SynParser *p, const char *word, const char *where) {
    if (!syn_at_text(p, word))
        syn_fail(p, str_format(p->scratch, "`%s` %s", word, where).at);
    syn_take(p);
}

void syn_want_line_end(SynParser *p, const char *expected) {
    if (!syn_at(p, SYN_TOKEN_NEWLINE) && !syn_at(p, SYN_TOKEN_BRACE_END) &&
        !syn_at(p, SYN_TOKEN_END))
        syn_fail(p, expected);
}

// --- going on ---

bool syn_begins_declaration(const SynParser *p, uint32_t index) {
    const SynToken *token = &p->tokens.at[index];
    switch (token->kind) {
    case SYN_TOKEN_IMPORT:
    case SYN_TOKEN_CONST:
    case SYN_TOKEN_STATIC:
    case SYN_TOKEN_DIM:
    case SYN_TOKEN_TYPE:
    case SYN_TOKEN_MODULE:
    case SYN_TOKEN_FN:
    case SYN_TOKEN_OPTIMIZER:
    case SYN_TOKEN_TRAINING:
    case SYN_TOKEN_INFERENCE:
    case SYN_TOKEN_EFFECT:
        return true;
    case SYN_TOKEN_NAME: // `model` is also an axis and a key
        return str_is(name_str(p->context->names, token->name), "model") &&
               token[1].kind == SYN_TOKEN_NAME && token[2].kind == SYN_TOKEN_ASSIGN;
    default:
        return false;
    }
}

// Whether a misspelled declaration begins here; it is worth an error of its own.
static bool misspells_declaration(SynParser *p, const SynToken *token) {
    Str words[24], word = name_str(p->context->names, token->name);
    uint32_t count = quoted_words(p, declarations, words, COUNT_OF(words));
    return token->kind == SYN_TOKEN_NAME && word.size > 3 &&
           (token[1].kind == SYN_TOKEN_NAME || token[1].kind == SYN_TOKEN_STRING) &&
           nearest_spelling(p->scratch, word, words, count).size > 0;
}

void syn_recover(SynParser *p) {
    p->failed = p->free = false;
    p->opener = SYN_NO_OPENER;
    p->nesting = 0;
    p->next = MAX(p->next, p->begin + 1);
    for (; p->tokens.at[p->next].kind != SYN_TOKEN_END; p->next++) {
        const SynToken *token = &p->tokens.at[p->next];
        if (token->first && token->indent == 0 &&
            (syn_begins_declaration(p, p->next) || misspells_declaration(p, token)))
            return;
    }
}
