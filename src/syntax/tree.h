// The syntax tree: what the parser makes of the tokens, before any name is looked up.
//
// Nodes are numbered; node 0 is "absent". A node has a kind, a span, at most one name with its own
// span, at most one text (a literal) and a list of children, some of which may be absent. node.def
// says for each kind what its children are; the tree printer and the legality check read it too.
#ifndef PRESK_SYNTAX_TREE_H
#define PRESK_SYNTAX_TREE_H

#include "base/context.h"

typedef uint32_t SynId;

typedef enum SynKind {
#define NODE(kind, text, holds, children) SYN_##kind,
#include "syntax/node.def"
#undef NODE
    SYN_KIND_COUNT
} SynKind;

// Binary and unary operators (SYN_BINARY, SYN_UNARY).
typedef enum SynOp {
    SYN_OP_NONE,
    SYN_OP_PIPE,
    SYN_OP_ALT,
    SYN_OP_TENSOR,
    SYN_OP_COMPOSE,
    SYN_OP_EQ,
    SYN_OP_LE,
    SYN_OP_GE,
    SYN_OP_LT,
    SYN_OP_GT,
    SYN_OP_ADD,
    SYN_OP_SUB,
    SYN_OP_MUL,
    SYN_OP_DIV,
    SYN_OP_REM,
    SYN_OP_DOT,
    SYN_OP_POW,
    SYN_OP_NEG
} SynOp;

typedef struct SynNode {
    uint8_t kind, op;
    Span span;
    Name name; // 0: none
    Span name_span;
    Str text;              // literals: the number as written, the string with escapes resolved
    uint32_t first, count; // children: tree->children[first … first + count − 1]
} SynNode;

// Nodes nest at most this deep (else E0010), the lets of a function included; so a recursion over a
// tree needs no limit of its own.
enum { SYN_DEPTH_MAX = 1000 };

typedef struct SynTree {
    Arena *arena;
    uint32_t source;
    Vec(SynNode) nodes; // nodes.at[0] is the absent node
    Vec(SynId) children;
    SynId program; // SYN_PROGRAM, always there, even after errors
} SynTree;

static inline const SynNode *syn_node(const SynTree *tree, SynId id) {
    return &tree->nodes.at[id];
}
static inline SynId syn_child(const SynTree *tree, SynId id, uint32_t index) {
    const SynNode *node = &tree->nodes.at[id];
    return index < node->count ? tree->children.at[node->first + index] : 0;
}

const char *syn_kind_text(SynKind kind);
const char *syn_op_text(SynOp op); // the Unicode spelling

// Lexes and parses one source. Errors go to context->diags; what could be parsed is returned (a
// failed declaration is dropped and parsing goes on at the next line that starts at column 0 with
// a declaration keyword). Never null.
SynTree *syn_parse(Context *context, Arena *arena, uint32_t source);

// What is wrong with a tree, held against node.def: a child of another kind than its place asks
// for, a name or text that is missing, a span outside of its parent's. Empty: the tree is legal.
// syn_parse ends with it.
Str syn_tree_fault(const SynTree *tree, Arena *arena);

// The tree as indented text and the tokens, one a line, with spans as byte ranges; of the tokens
// the errors go to context->diags.
Str syn_print_tree(const SynTree *tree, const Context *context, Arena *arena);
Str syn_print_tokens(Context *context, Arena *arena, uint32_t source);

#endif
