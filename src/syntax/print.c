// The dumps of the stage: tokens and tree (tree.h).
#include "syntax/lex.h"

static const char *const kind_texts[] = {
#define NODE(kind, text, holds, children) text,
#include "syntax/node.def"
#undef NODE
};

const char *syn_kind_text(SynKind kind) {
    return kind_texts[kind];
}

const char *syn_op_text(SynOp op) {
    for (uint32_t kind = 0; kind < SYN_TOKEN_COUNT && op != SYN_OP_NEG; kind++)
        if (op != SYN_OP_NONE && syn_token_op((SynTokenKind)kind) == op)
            return syn_token_text((SynTokenKind)kind);
    return op == SYN_OP_NEG ? "-" : "";
}

static void print_quoted(StrBuf *buf, Str text) {
    buf_char(buf, '"');
    for (uint32_t i = 0; i < text.size; i++) {
        char c = text.at[i];
        if (c == '"' || c == '\\')
            buf_format(buf, "\\%c", c);
        else if (c == '\n' || c == '\t')
            buf_text(buf, c == '\n' ? "\\n" : "\\t");
        else
            buf_char(buf, c);
    }
    buf_char(buf, '"');
}

// kind, operator, name, text, begin..end: the parts a node has
static void print_node(StrBuf *buf, const SynTree *tree, const Names *names, SynId id,
                       uint32_t depth) {
    const SynNode *node = syn_node(tree, id);
    for (uint32_t i = 0; i < depth; i++)
        buf_text(buf, "  ");
    buf_text(buf, syn_kind_text(node->kind));
    if (node->op != SYN_OP_NONE)
        buf_format(buf, " %s", syn_op_text(node->op));
    if (node->name) {
        buf_char(buf, ' ');
        buf_add(buf, name_str(names, node->name));
    }
    if (node->text.at && node->kind == SYN_NUMBER)
        buf_format(buf, " %s", node->text.at);
    else if (node->text.at) {
        buf_char(buf, ' ');
        print_quoted(buf, node->text);
    }
    if (id)
        buf_format(buf, " %u..%u", node->span.begin, node->span.end);
    buf_char(buf, '\n');
    for (uint32_t i = 0; i < node->count; i++)
        print_node(buf, tree, names, syn_child(tree, id, i), depth + 1);
}

Str syn_print_tree(const SynTree *tree, const Context *context, Arena *arena) {
    StrBuf buf = {.arena = arena};
    print_node(&buf, tree, context->names, tree->program, 0);
    return buf_str(&buf);
}

Str syn_print_tokens(Context *context, Arena *arena, uint32_t source) {
    SynTokens tokens = {0};
    StrBuf buf = {.arena = arena};
    syn_lex(context, arena, source, &tokens);
    for (uint32_t i = 0; i < tokens.count; i++) {
        const SynToken *token = &tokens.at[i];
        buf_format(&buf, "%u..%u ", token->begin, token->end);
        if (token->kind == SYN_TOKEN_NAME)
            buf_format(&buf, "name %s", name_c(context->names, token->name));
        else if (token->kind == SYN_TOKEN_NUMBER)
            buf_format(&buf, "number %s", token->text.at);
        else
            buf_text(&buf, token->kind == SYN_TOKEN_END       ? "end"
                           : token->kind == SYN_TOKEN_NEWLINE ? "newline"
                           : token->kind == SYN_TOKEN_ERROR   ? "error"
                                                              : syn_token_text(token->kind));
        if (token->kind == SYN_TOKEN_STRING) {
            buf_char(&buf, ' ');
            print_quoted(&buf, token->text);
        }
        buf_char(&buf, '\n');
    }
    return buf_str(&buf);
}
