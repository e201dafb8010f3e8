// The parser's cursor over the tokens, and how nodes are made (parser.h).
#include "syntax/parser.h"

static const SynToken *end_token(const SynParser *p) {
    return &p->tokens.at[p->tokens.count - 1];
}

// Index of the next token that counts in this mode, from an index on.
static uint32_t settle(const SynParser *p, uint32_t index) {
    while (p->free && p->tokens.at[index].kind == SYN_TOKEN_NEWLINE)
        index++; // END is last, so this ends
    return index;
}

const SynToken *syn_peek(const SynParser *p) {
    return p->failed ? end_token(p) : &p->tokens.at[settle(p, p->next)];
}

const SynToken *syn_peek_ahead(const SynParser *p, uint32_t ahead) {
    uint32_t index = settle(p, p->next);
    while (ahead-- && index + 1 < p->tokens.count)
        index = settle(p, index + 1);
    return p->failed ? end_token(p) : &p->tokens.at[index];
}

bool syn_at(const SynParser *p, SynTokenKind kind) {
    return syn_peek(p)->kind == kind;
}

bool syn_at_word(const SynParser *p) {
    return syn_at(p, SYN_TOKEN_NAME) || syn_token_is_word(syn_peek(p)->kind);
}

bool syn_at_text(const SynParser *p, const char *s) {
    return syn_at(p, SYN_TOKEN_NAME) && str_is(name_str(p->context->names, syn_peek(p)->name), s);
}

const SynToken *syn_take(SynParser *p) {
    const SynToken *token = syn_peek(p);
    if (p->failed || token->kind == SYN_TOKEN_END)
        return token;
    p->next = (uint32_t)(token - p->tokens.at) + 1;
    p->last_end = token->end;
    return token;
}

bool syn_accept(SynParser *p, SynTokenKind kind) {
    if (!syn_at(p, kind))
        return false;
    syn_take(p);
    return true;
}

void syn_skip_newline(SynParser *p) {
    if (syn_at(p, SYN_TOKEN_NEWLINE))
        p->next++;
}

void syn_join_line(SynParser *p) {
    const SynToken *token = syn_peek(p);
    if (token->kind == SYN_TOKEN_NEWLINE &&
        !(token[1].indent == 0 && syn_begins_declaration(p, p->next + 1)))
        p->next++;
}

const SynToken *syn_peek_operator(const SynParser *p) {
    const SynToken *token = syn_peek(p);
    if (token->kind != SYN_TOKEN_NEWLINE)
        return token;
    bool goes_on = syn_token_op(token[1].kind) != SYN_OP_NONE && !syn_token_begins(token[1].kind);
    return goes_on ? token + 1 : token;
}

const SynToken *syn_take_operator(SynParser *p) {
    const SynToken *token = syn_peek_operator(p);
    if (syn_at(p, SYN_TOKEN_NEWLINE))
        p->next++;
    syn_take(p);
    syn_join_line(p);
    return token;
}

SynBracket syn_open_bracket(SynParser *p, bool free) {
    SynBracket outer = {p->opener, p->free};
    uint32_t index = (uint32_t)(syn_peek(p) - p->tokens.at);
    syn_take(p);
    p->opener = index;
    p->free = free;
    return outer;
}

void syn_close_bracket(SynParser *p, SynBracket outer, SynTokenKind closer, const char *expected) {
    if (!syn_accept(p, closer))
        syn_fail_bracket(p, expected);
    p->opener = outer.opener;
    p->free = outer.free;
}

bool syn_enter(SynParser *p) {
    if (p->failed)
        return false;
    if (p->nesting >= 2 * SYN_DEPTH_MAX) { // a parenthesis enters twice and makes no node
        syn_fail_depth(p);
        return false;
    }
    p->nesting++;
    return true;
}

void syn_leave(SynParser *p) {
    p->nesting--;
}

// --- nodes ---

uint32_t syn_begin(const SynParser *p) {
    return syn_peek(p)->begin;
}

uint32_t syn_open(const SynParser *p) {
    return p->stack.count;
}

void syn_put(SynParser *p, SynId child) {
    vec_push(p->scratch, &p->stack, child);
}

static SynId close(SynParser *p, SynKind kind, SynOp op, uint32_t mark, uint32_t begin) {
    uint32_t depth = 0;
    SynTree *tree = p->tree;
    SynNode node = {.kind = (uint8_t)kind,
                    .op = (uint8_t)op,
                    .span = {tree->source, MIN(begin, p->last_end), p->last_end},
                    .first = tree->children.count,
                    .count = p->stack.count - mark};
    for (uint32_t i = mark; i < p->stack.count && !p->failed; i++) {
        vec_push(tree->arena, &tree->children, p->stack.at[i]);
        depth = MAX(depth, p->depths.at[p->stack.at[i]]);
    }
    p->stack.count = mark;
    if (depth >= SYN_DEPTH_MAX)
        syn_fail_depth(p);
    if (p->failed)
        return 0;
    vec_push(tree->arena, &tree->nodes, node);
    vec_push(p->scratch, &p->depths, (uint16_t)(depth + 1));
    return tree->nodes.count - 1;
}

SynId syn_close(SynParser *p, SynKind kind, uint32_t mark, uint32_t begin, const SynToken *name,
                const SynToken *text) {
    SynId id = close(p, kind, SYN_OP_NONE, mark, begin);
    SynNode *node = &p->tree->nodes.at[id];
    if (id && name) {
        node->name = name->name;
        node->name_span = (Span){p->tree->source, name->begin, name->end};
    }
    if (id && text)
        node->text = text->text;
    return id;
}

SynId syn_close_op(SynParser *p, SynKind kind, SynOp op, uint32_t mark, uint32_t begin) {
    return close(p, kind, op, mark, begin);
}

SynId syn_leaf(SynParser *p, SynKind kind, uint32_t begin, const SynToken *name,
               const SynToken *text) {
    return syn_close(p, kind, syn_open(p), begin, name, text);
}
