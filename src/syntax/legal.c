// Whether a tree is what node.def says (tree.h). It exists for the parser's own mistakes: a node
// closed with a child too few, a name forgotten, a span that ends before its last token.
#include "syntax/tree.h"

typedef struct NodeRow {
    const char *text, *holds, *children;
} NodeRow;

static const NodeRow rows[] = {
#define NODE(kind, text, holds, children) {text, holds, children},
#include "syntax/node.def"
#undef NODE
};

// The words of node.def's last column: a range of kinds; several rows add up. A list's elements
// have a word of their own.
typedef struct Role {
    const char *word;
    SynKind first, last;
    const char *elements;
} Role;

static const Role roles[] = {
    {"declaration", SYN_IMPORT, SYN_MODEL, NULL},
    {"member", SYN_PARAM, SYN_USE, NULL},
    {"member", SYN_FN, SYN_FN, NULL},
    {"item", SYN_SET, SYN_CHECKPOINT, NULL},
    {"expression", SYN_NUMBER, SYN_TUPLE, NULL},
    {"value", SYN_NUMBER, SYN_TUPLE, NULL},
    {"value", SYN_AXES, SYN_AXES, NULL},
    {"part", SYN_NUMBER, SYN_TUPLE, NULL},
    {"part", SYN_NAME, SYN_NAME, NULL},
    {"init", SYN_NUMBER, SYN_TUPLE, NULL},
    {"body", SYN_NUMBER, SYN_TUPLE, NULL},
    {"callee", SYN_NUMBER, SYN_TUPLE, NULL},
    {"base", SYN_NUMBER, SYN_TUPLE, NULL},
    {"selector", SYN_NUMBER, SYN_TUPLE, NULL},
    {"left", SYN_NUMBER, SYN_TUPLE, NULL},
    {"right", SYN_NUMBER, SYN_TUPLE, NULL},
    {"operand", SYN_NUMBER, SYN_TUPLE, NULL},
    {"bound", SYN_NUMBER, SYN_TUPLE, NULL},
    {"extent", SYN_NUMBER, SYN_TUPLE, NULL},
    {"argument", SYN_NUMBER, SYN_TUPLE, NULL},
    {"argument", SYN_NAMED, SYN_NAMED, NULL},
    {"argument", SYN_AXES, SYN_AXES, NULL},
    {"type", SYN_TYPE_REAL, SYN_TYPE_NAME, NULL},
    {"expression-or-type", SYN_NUMBER, SYN_TYPE_NAME, NULL},
    {"pattern", SYN_NAME, SYN_NAME, NULL},
    {"pattern", SYN_TUPLE, SYN_TUPLE, "pattern"},
    {"path", SYN_PATH, SYN_PATH, NULL},
    {"model", SYN_PATH, SYN_PATH, NULL},
    {"model", SYN_INST, SYN_INST, NULL},
    {"axes", SYN_AXES, SYN_AXES, NULL},
    {"axis", SYN_AXIS, SYN_ELLIPSIS, NULL},
    {"name", SYN_NAME, SYN_NAME, NULL},
    {"parameter", SYN_FN_PARAM, SYN_FN_PARAM, NULL},
    {"names", SYN_LIST, SYN_LIST, "name"},
    {"parameters", SYN_LIST, SYN_LIST, "parameter"},
    {"effects", SYN_LIST, SYN_LIST, "path"},
    {"node", SYN_PROGRAM, SYN_ELLIPSIS, NULL},
};
_Static_assert(SYN_MODEL - SYN_IMPORT == 11, "the declarations stand together");
_Static_assert(SYN_CHECKPOINT - SYN_SET == 4, "the items stand together");
_Static_assert(SYN_TUPLE - SYN_NUMBER == 14, "the expressions stand together");
_Static_assert(SYN_TYPE_NAME - SYN_TYPE_REAL == 5, "the types stand together");
_Static_assert(SYN_TYPE_REAL == SYN_TUPLE + 1, "the types follow the expressions");

typedef struct Check {
    const SynTree *tree;
    Arena *arena;
    Str fault;
} Check;

static void fail(Check *check, SynId id, const char *what) {
    const SynNode *node = syn_node(check->tree, id);
    if (!check->fault.size)
        check->fault = str_format(check->arena, "node %u (%s, %u..%u): %s", id,
                                  rows[node->kind].text, node->span.begin, node->span.end, what);
}

static bool is_word(const char *word, size_t size, const char *role) {
    return strlen(role) == size && !memcmp(word, role, size);
}

// Whether the node may stand where a word of node.def is.
static bool plays(const Check *check, SynId id, const char *word, size_t size) {
    const SynNode *node = syn_node(check->tree, id);
    for (uint32_t i = 0; i < COUNT_OF(roles); i++) {
        const Role *role = &roles[i];
        if (!is_word(word, size, role->word) || node->kind < role->first || node->kind > role->last)
            continue;
        for (uint32_t k = 0; role->elements && k < node->count; k++)
            if (!plays(check, syn_child(check->tree, id, k), role->elements,
                       strlen(role->elements)))
                return false;
        return true;
    }
    return false;
}

static void check_children(Check *check, SynId id) {
    const SynNode *node = syn_node(check->tree, id);
    const char *at = rows[node->kind].children;
    uint32_t index = 0;
    while (*at) {
        size_t size = strcspn(at, " ?*");
        char mark = at[size];
        uint32_t last = mark == '*' ? node->count : index + 1;
        for (; index < last; index++) {
            SynId child = syn_child(check->tree, id, index);
            if (index >= node->count)
                fail(check, id, "a child is missing");
            else if (child ? !plays(check, child, at, size) : mark != '?')
                fail(check, id,
                     child ? rows[syn_node(check->tree, child)->kind].text : "a child is absent");
        }
        at += size;
        at += strspn(at, " ?*");
    }
    if (index < node->count)
        fail(check, id, "it has too many children");
}

// A name, text or operator is there when node.def's word for it is, without a `?`; and only then.
static void check_holds(Check *check, SynId id) {
    const SynNode *node = syn_node(check->tree, id);
    const char *holds = rows[node->kind].holds;
    bool name = strstr(holds, "name"), maybe = strstr(holds, "name?");
    bool text = strstr(holds, "text"), op = strstr(holds, "op");
    if ((node->name != 0) != name && !maybe)
        fail(check, id, "its name");
    if (text != (node->text.at != NULL))
        fail(check, id, "its text");
    if ((node->op != SYN_OP_NONE) != op)
        fail(check, id, "its operator");
}

static bool within(Span inner, Span outer) {
    return inner.source == outer.source && outer.begin <= inner.begin && inner.begin <= inner.end &&
           inner.end <= outer.end;
}

static void check_node(Check *check, SynId id) {
    const SynNode *node = syn_node(check->tree, id);
    check_children(check, id);
    check_holds(check, id);
    if (node->name && !within(node->name_span, node->span))
        fail(check, id, "the span of its name");
    for (uint32_t i = 0; i < node->count && !check->fault.size; i++) {
        SynId child = syn_child(check->tree, id, i);
        if (child >= id)
            fail(check, id, "a child is made after its parent");
        else if (child && !within(syn_node(check->tree, child)->span, node->span))
            fail(check, child, "its span");
        else if (child)
            check_node(check, child);
    }
}

Str syn_tree_fault(const SynTree *tree, Arena *arena) {
    Check check = {tree, arena, {NULL, 0}};
    if (syn_node(tree, tree->program)->kind != SYN_PROGRAM)
        fail(&check, tree->program, "no program");
    else
        check_node(&check, tree->program);
    return check.fault;
}
