// The grammar: each function reads the symbol it is named after (notation: [optional] {repeated}).
//
//   program     = { NEWLINE } { declaration { NEWLINE } } END ;
//   declaration = "import" STRING "as" NAME
//               | "const" NAME [ ":" type ] "=" expression
//               | "static" "assert" expression
//               | "dim" NAME [ "<=" expression ]
//               | "type" NAME "=" type
//               | "module" NAME [ names ] "{" { NEWLINE } { member NEWLINE } "}"
//               | function
//               | "optimizer" NAME items
//               | "training" "run" items | "inference" "serve" items
//               | "effect" NAME
//               | "model" NAME "=" expression ;
//   names       = "{" NAME { "," NAME } "}" ;
//   member      = "param" NAME ":" type [ "init" expression ] | "use" NAME "=" expression
//               | function ;
//   function    = "fn" NAME [ names ] "(" [ NAME ":" type { "," NAME ":" type } ] ")"
//                 [ "->" type ] [ "uses" path { "," path } ] "=" expression ;
//   items       = "{" { NEWLINE } { item NEWLINE } "}" ;
//   item        = "checkpoint" "every" expression "steps" "to" STRING
//               | "next" WORD ":" expression
//               | WORD "=" expression | WORD ":" type [ "=" expression ] | WORD ":" expression ;
//   expression  = "let" pattern "=" expression NEWLINE expression
//               | "λ" pattern "." expression
//               | binary ;
//   binary      = unary { operator unary } ;              levels: token.def; `==` … do not chain
//   unary       = "-" unary | postfix [ "^" unary ] ;
//   postfix     = atom { arguments | "." NAME | "[" expression { "," expression } "]"
//                      | "{" expression { "," expression } "}" } ;
//   atom        = NUMBER | STRING | "stream" STRING | path
//               | "(" expression [ ":" type ] ")" | "(" expression { "," expression } ")"
//               | "ein" "[" [ WORD { "," WORD } ] "]" "(" expression ")" ;
//   path        = NAME { "." NAME } ;
//   arguments   = "(" [ argument { "," argument } ] ")" ;
//   argument    = [ WORD "=" ] ( axes | WORD | expression ) ;
//   pattern     = NAME | "(" pattern { "," pattern } ")" ;
//   type        = "ℝ" [ axes ] | "idx" "[" expression "]" [ axes ] | "param" type
//               | "params" [ path [ "{" expression { "," expression } "}" ] ]
//               | "(" type { "," type } ")" | path ;
//   axes        = "[" [ axis { "," axis } ] "]" ;
//   axis        = WORD ":" expression | expression | "..." ;
//
// WORD is a name or a reserved word: axes and configuration keys may be called anything. `model`,
// `run`, `serve`, `stream`, `checkpoint`, `every`, `steps`, `to` and `next` are names elsewhere.
//
// Layout. Inside `(…)`, `[…]` and dimension arguments newlines are skipped (free mode). Elsewhere a
// newline ends an expression, unless the next line begins with a binary operator that cannot begin
// an expression; behind `=`, `.` of a λ or an operator a newline is skipped. The first part of a
// `let` is read in lines mode even inside brackets. A `{` with a newline behind it opens a body and
// is no dimension argument. After `name :` in a configuration stands a type if it begins with `ℝ`,
// `idx`, `param`, `params` or `(`, or if `=` follows; else an expression.
#include "syntax/parser.h"

static SynId parse_expression(SynParser *p);
static SynId parse_type(SynParser *p);
static SynId parse_unary(SynParser *p);

// --- lists ---

// [item {"," item}] up to the closing bracket; the items are put on the stack.
static void parse_list(SynParser *p, SynTokenKind closer, bool may_be_empty,
                       SynId (*parse_item)(SynParser *), const char *expected) {
    SynBracket bracket = syn_open_bracket(p, true);
    if (!may_be_empty || !syn_at(p, closer)) {
        do {
            syn_put(p, parse_item(p));
        } while (syn_accept(p, SYN_TOKEN_COMMA));
    }
    syn_close_bracket(p, bracket, closer, expected);
}

static SynId parse_name(SynParser *p) {
    uint32_t begin = syn_begin(p);
    return syn_leaf(p, SYN_NAME, begin, syn_want_name(p, "a dimension"), NULL);
}

static SynId parse_word(SynParser *p) {
    uint32_t begin = syn_begin(p);
    return syn_leaf(p, SYN_NAME, begin, syn_want_word(p, "an axis"), NULL);
}

// path = NAME { "." NAME }
static SynId parse_path(SynParser *p, const char *what) {
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    do {
        uint32_t at = syn_begin(p);
        syn_put(p, syn_leaf(p, SYN_NAME, at, syn_want_name(p, what), NULL));
    } while (syn_accept(p, SYN_TOKEN_DOT));
    return syn_close(p, SYN_PATH, mark, begin, NULL, NULL);
}

// Whether a `{` here opens a body: in lines mode with a newline behind it.
static bool opens_body(const SynParser *p) {
    return !p->free && syn_peek_ahead(p, 1)->kind == SYN_TOKEN_NEWLINE;
}

// --- types ---

// axis = WORD ":" expression | expression | "..."
static SynId parse_axis(SynParser *p) {
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    if (syn_accept(p, SYN_TOKEN_ELLIPSIS))
        return syn_leaf(p, SYN_ELLIPSIS, begin, NULL, NULL);
    const SynToken *name = NULL;
    if (syn_at_word(p) && syn_peek_ahead(p, 1)->kind == SYN_TOKEN_COLON) {
        name = syn_take(p);
        syn_take(p);
    }
    syn_put(p, parse_expression(p));
    return syn_close(p, SYN_AXIS, mark, begin, name, NULL);
}

static SynId parse_axes(SynParser *p) {
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    parse_list(p, SYN_TOKEN_BRACKET_END, true, parse_axis, "`,` or `]` in the list of axes");
    return syn_close(p, SYN_AXES, mark, begin, NULL, NULL);
}

static SynId parse_axes_if_any(SynParser *p) {
    return syn_at(p, SYN_TOKEN_BRACKET) ? parse_axes(p) : 0;
}

// What follows "params": [ path [ "{" … "}" ] ]
static SynId parse_model(SynParser *p) {
    if (!syn_at(p, SYN_TOKEN_NAME))
        return 0;
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    SynId path = parse_path(p, "a module");
    if (!syn_at(p, SYN_TOKEN_BRACE) || opens_body(p))
        return path;
    syn_put(p, path);
    parse_list(p, SYN_TOKEN_BRACE_END, false, parse_expression, "`,` or `}`");
    return syn_close(p, SYN_INST, mark, begin, NULL, NULL);
}

static bool begins_type(const SynParser *p) {
    return syn_at(p, SYN_TOKEN_REAL) || syn_at(p, SYN_TOKEN_IDX) || syn_at(p, SYN_TOKEN_PARAM) ||
           syn_at(p, SYN_TOKEN_PARAMS) || syn_at(p, SYN_TOKEN_PAREN);
}

static SynId parse_type_form(SynParser *p) {
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    switch (syn_peek(p)->kind) {
    case SYN_TOKEN_REAL:
        syn_take(p);
        syn_put(p, parse_axes_if_any(p));
        return syn_close(p, SYN_TYPE_REAL, mark, begin, NULL, NULL);
    case SYN_TOKEN_IDX: {
        syn_take(p);
        if (!syn_at(p, SYN_TOKEN_BRACKET))
            syn_fail(p, "`[` and the bound after `idx`");
        SynBracket bracket = syn_open_bracket(p, true);
        syn_put(p, parse_expression(p));
        syn_close_bracket(p, bracket, SYN_TOKEN_BRACKET_END, "`]` after the bound of `idx`");
        syn_put(p, parse_axes_if_any(p));
        return syn_close(p, SYN_TYPE_IDX, mark, begin, NULL, NULL);
    }
    case SYN_TOKEN_PARAM:
        syn_take(p);
        syn_put(p, parse_type(p));
        return syn_close(p, SYN_TYPE_PARAM, mark, begin, NULL, NULL);
    case SYN_TOKEN_PARAMS:
        syn_take(p);
        syn_put(p, parse_model(p));
        return syn_close(p, SYN_TYPE_PARAMS, mark, begin, NULL, NULL);
    case SYN_TOKEN_PAREN:
        parse_list(p, SYN_TOKEN_PAREN_END, false, parse_type, "`,` or `)` in the type");
        if (!p->failed && p->stack.count == mark + 1) // parentheses around one type say nothing
            return p->stack.at[--p->stack.count];
        return syn_close(p, SYN_TYPE_TUPLE, mark, begin, NULL, NULL);
    case SYN_TOKEN_NAME:
        syn_put(p, parse_path(p, "a type"));
        return syn_close(p, SYN_TYPE_NAME, mark, begin, NULL, NULL);
    default:
        syn_fail(p, "a type");
        return 0;
    }
}

static SynId parse_type(SynParser *p) {
    if (!syn_enter(p))
        return 0;
    SynId type = parse_type_form(p);
    syn_leave(p);
    return type;
}

// --- patterns ---

static SynId parse_pattern(SynParser *p) {
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    if (!syn_at(p, SYN_TOKEN_PAREN))
        return syn_leaf(p, SYN_NAME, begin, syn_want_name(p, "a value"), NULL);
    if (!syn_enter(p))
        return 0;
    parse_list(p, SYN_TOKEN_PAREN_END, false, parse_pattern, "`,` or `)` in the pattern");
    syn_leave(p);
    if (!p->failed && p->stack.count == mark + 1)
        return p->stack.at[--p->stack.count];
    return syn_close(p, SYN_TUPLE, mark, begin, NULL, NULL);
}

// --- expressions ---

// [ WORD "=" ] ( axes | WORD | expression ); a reserved word alone is an axis
static SynId parse_argument_value(SynParser *p) {
    if (syn_at(p, SYN_TOKEN_BRACKET))
        return parse_axes(p);
    SynTokenKind after = syn_peek_ahead(p, 1)->kind;
    if (!syn_token_is_word(syn_peek(p)->kind) ||
        (after != SYN_TOKEN_COMMA && after != SYN_TOKEN_PAREN_END))
        return parse_expression(p);
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    syn_put(p, parse_word(p));
    return syn_close(p, SYN_PATH, mark, begin, NULL, NULL);
}

static SynId parse_argument(SynParser *p) {
    if (!syn_at_word(p) || syn_peek_ahead(p, 1)->kind != SYN_TOKEN_ASSIGN)
        return parse_argument_value(p);
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    const SynToken *name = syn_take(p);
    syn_take(p);
    syn_put(p, parse_argument_value(p));
    return syn_close(p, SYN_NAMED, mark, begin, name, NULL);
}

// ein "[" [ WORD { "," WORD } ] "]" "(" expression ")"
static SynId parse_ein(SynParser *p) {
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    syn_take(p);
    if (!syn_at(p, SYN_TOKEN_BRACKET))
        syn_fail(p, "`[` and the axes of the result after `ein`");
    uint32_t at = syn_begin(p), names = syn_open(p);
    parse_list(p, SYN_TOKEN_BRACKET_END, true, parse_word, "`,` or `]` in the axes of `ein`");
    syn_put(p, syn_close(p, SYN_LIST, names, at, NULL, NULL));
    if (!syn_at(p, SYN_TOKEN_PAREN))
        syn_fail(p, "`(` after the axes of `ein`");
    SynBracket bracket = syn_open_bracket(p, true);
    syn_put(p, parse_expression(p));
    syn_close_bracket(p, bracket, SYN_TOKEN_PAREN_END, "`)` after what `ein` sums");
    return syn_close(p, SYN_EIN, mark, begin, NULL, NULL);
}

// "(" expression [ ":" type ] ")" | "(" expression { "," expression } ")"
static SynId parse_parenthesis(SynParser *p) {
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    SynBracket bracket = syn_open_bracket(p, true);
    bool ascribed = false;
    do {
        syn_put(p, parse_expression(p));
    } while (syn_accept(p, SYN_TOKEN_COMMA));
    if (!p->failed && p->stack.count == mark + 1 && syn_accept(p, SYN_TOKEN_COLON)) {
        syn_put(p, parse_type(p));
        ascribed = true;
    }
    syn_close_bracket(p, bracket, SYN_TOKEN_PAREN_END,
                      ascribed ? "`)` after the type" : "`)`, `,` or an operator");
    if (ascribed)
        return syn_close(p, SYN_ASCRIBE, mark, begin, NULL, NULL);
    if (!p->failed && p->stack.count == mark + 1)
        return p->stack.at[--p->stack.count];
    return syn_close(p, SYN_TUPLE, mark, begin, NULL, NULL);
}

static SynId parse_atom(SynParser *p) {
    uint32_t begin = syn_begin(p);
    switch (syn_peek(p)->kind) {
    case SYN_TOKEN_NUMBER: {
        const SynToken *token = syn_take(p);
        return syn_leaf(p, SYN_NUMBER, begin, NULL, token);
    }
    case SYN_TOKEN_STRING: {
        const SynToken *token = syn_take(p);
        return syn_leaf(p, SYN_STRING, begin, NULL, token);
    }
    case SYN_TOKEN_NAME: {
        if (!syn_at_text(p, "stream") || syn_peek_ahead(p, 1)->kind != SYN_TOKEN_STRING)
            return parse_path(p, "a member");
        syn_take(p);
        const SynToken *path = syn_take(p);
        return syn_leaf(p, SYN_STREAM, begin, NULL, path);
    }
    case SYN_TOKEN_PAREN:
        return parse_parenthesis(p);
    case SYN_TOKEN_EIN:
        return parse_ein(p);
    default:
        syn_fail(p, "an expression");
        return 0;
    }
}

static SynId parse_postfix(SynParser *p) {
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    SynId base = parse_atom(p);
    for (;;) {
        SynTokenKind kind = syn_peek(p)->kind;
        const SynToken *name = NULL;
        SynKind made;
        syn_put(p, base);
        if (kind == SYN_TOKEN_PAREN) {
            parse_list(p, SYN_TOKEN_PAREN_END, true, parse_argument,
                       "`,`, `)` or an operator in the arguments");
            made = SYN_CALL;
        } else if (kind == SYN_TOKEN_BRACKET) {
            parse_list(p, SYN_TOKEN_BRACKET_END, false, parse_expression,
                       "`,`, `]` or an operator in the index");
            made = SYN_INDEX;
        } else if (kind == SYN_TOKEN_BRACE && !opens_body(p)) {
            parse_list(p, SYN_TOKEN_BRACE_END, false, parse_expression,
                       "`,`, `}` or an operator in the dimension arguments");
            made = SYN_INST;
        } else if (kind == SYN_TOKEN_DOT) {
            syn_take(p);
            name = syn_want_name(p, "a member");
            made = SYN_FIELD;
        } else {
            p->stack.count = mark;
            return base;
        }
        base = syn_close(p, made, mark, begin, name, NULL);
    }
}

// "-" unary | postfix [ "^" unary ]: `^` binds above the minus and groups to the right
static SynId parse_unary_form(SynParser *p) {
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    if (syn_accept(p, SYN_TOKEN_MINUS)) {
        syn_put(p, parse_unary(p));
        return syn_close_op(p, SYN_UNARY, SYN_OP_NEG, mark, begin);
    }
    SynId base = parse_postfix(p);
    if (syn_peek_operator(p)->kind != SYN_TOKEN_CARET)
        return base;
    syn_put(p, base);
    syn_take_operator(p);
    syn_put(p, parse_unary(p));
    return syn_close_op(p, SYN_BINARY, SYN_OP_POW, mark, begin);
}

static SynId parse_unary(SynParser *p) {
    if (!syn_enter(p))
        return 0;
    SynId unary = parse_unary_form(p);
    syn_leave(p);
    return unary;
}

// Operators of a level at least `level`, by precedence climbing over token.def.
static SynId parse_binary(SynParser *p, uint32_t level) {
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    const uint32_t comparison = syn_token_level(SYN_TOKEN_EQ);
    const SynToken *compared = NULL;
    SynId left = parse_unary(p);
    for (;;) {
        const SynToken *token = syn_peek_operator(p);
        uint32_t here = syn_token_level(token->kind);
        if (here == 0 || here < level)
            return left;
        if (here == comparison && compared)
            syn_fail_chain(p, compared);
        if (here == comparison)
            compared = token;
        syn_put(p, left);
        syn_take_operator(p);
        syn_put(p, parse_binary(p, here + 1));
        left = syn_close_op(p, SYN_BINARY, syn_token_op(token->kind), mark, begin);
    }
}

// "let" pattern "=" expression NEWLINE expression
static SynId parse_let(SynParser *p) {
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    syn_take(p);
    syn_put(p, parse_pattern(p));
    syn_want(p, SYN_TOKEN_ASSIGN, "after the names of `let`");
    bool free = p->free;
    p->free = false;
    syn_join_line(p);
    syn_put(p, parse_expression(p));
    if (!syn_accept(p, SYN_TOKEN_NEWLINE))
        syn_fail(p, syn_at(p, SYN_TOKEN_END) ? "a value after the last `let`"
                                             : "an operator or the end of the line");
    p->free = free;
    if (syn_at(p, SYN_TOKEN_BRACE_END) || syn_at(p, SYN_TOKEN_END) ||
        (syn_at_word(p) && syn_peek(p)->kind > SYN_TOKEN_STRING && !syn_at(p, SYN_TOKEN_LET) &&
         !syn_at(p, SYN_TOKEN_EIN)))
        syn_fail(p, "a value after the last `let`");
    syn_put(p, parse_expression(p));
    return syn_close(p, SYN_LET, mark, begin, NULL, NULL);
}

// "λ" pattern "." expression
static SynId parse_lambda(SynParser *p) {
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    syn_take(p);
    syn_put(p, parse_pattern(p));
    syn_want(p, SYN_TOKEN_DOT, "after the names of `λ`");
    syn_join_line(p);
    syn_put(p, parse_expression(p));
    return syn_close(p, SYN_LAMBDA, mark, begin, NULL, NULL);
}

static SynId parse_expression(SynParser *p) {
    if (!syn_enter(p))
        return 0;
    SynId expression = syn_at(p, SYN_TOKEN_LET)      ? parse_let(p)
                       : syn_at(p, SYN_TOKEN_LAMBDA) ? parse_lambda(p)
                                                     : parse_binary(p, 1);
    syn_leave(p);
    return expression;
}

// What follows an `=` of a declaration, item or member.
static SynId parse_value(SynParser *p) {
    syn_join_line(p);
    return parse_expression(p);
}

// --- functions and modules ---

// [ "{" NAME { "," NAME } "}" ], a LIST in any case
static SynId parse_dimensions(SynParser *p) {
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    if (syn_at(p, SYN_TOKEN_BRACE) && !opens_body(p))
        parse_list(p, SYN_TOKEN_BRACE_END, false, parse_name,
                   "`,` or `}` in the dimension parameters");
    return syn_close(p, SYN_LIST, mark, begin, NULL, NULL);
}

static SynId parse_parameter(SynParser *p) {
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    const SynToken *name = syn_want_name(p, "a parameter");
    syn_want(p, SYN_TOKEN_COLON, "after the parameter's name");
    syn_put(p, parse_type(p));
    return syn_close(p, SYN_FN_PARAM, mark, begin, name, NULL);
}

static SynId parse_effects(SynParser *p) {
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    if (syn_accept(p, SYN_TOKEN_USES)) {
        do {
            syn_put(p, parse_path(p, "an effect"));
        } while (syn_accept(p, SYN_TOKEN_COMMA));
    }
    return syn_close(p, SYN_LIST, mark, begin, NULL, NULL);
}

static SynId parse_function(SynParser *p) {
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    syn_take(p);
    const SynToken *name = syn_want_name(p, "a function");
    syn_put(p, parse_dimensions(p));
    uint32_t at = syn_begin(p), parameters = syn_open(p);
    if (!syn_at(p, SYN_TOKEN_PAREN))
        syn_fail(p, "`(` after the function's name");
    parse_list(p, SYN_TOKEN_PAREN_END, true, parse_parameter, "`,` or `)` in the parameters");
    syn_put(p, syn_close(p, SYN_LIST, parameters, at, NULL, NULL));
    bool typed = syn_accept(p, SYN_TOKEN_ARROW);
    syn_put(p, typed ? parse_type(p) : 0);
    syn_put(p, parse_effects(p));
    if (!syn_accept(p, SYN_TOKEN_ASSIGN))
        syn_fail(p, typed ? "`=`, or `uses` and effects, before the function's body"
                          : "`->` and the type of the result, or `=` and the function's body");
    syn_put(p, parse_value(p));
    return syn_close(p, SYN_FN, mark, begin, name, NULL);
}

static SynId parse_member(SynParser *p) {
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    if (syn_at(p, SYN_TOKEN_FN))
        return parse_function(p);
    if (syn_accept(p, SYN_TOKEN_PARAM)) {
        const SynToken *name = syn_want_name(p, "a parameter");
        syn_want(p, SYN_TOKEN_COLON, "after the parameter's name");
        syn_put(p, parse_type(p));
        bool initialised = syn_accept(p, SYN_TOKEN_INIT);
        syn_put(p, initialised ? parse_expression(p) : 0);
        if (!initialised)
            syn_want_line_end(p, "`init` or the end of the line after the parameter's type");
        return syn_close(p, SYN_PARAM, mark, begin, name, NULL);
    }
    if (syn_accept(p, SYN_TOKEN_USE)) {
        const SynToken *name = syn_want_name(p, "a submodule");
        syn_want(p, SYN_TOKEN_ASSIGN, "after the submodule's name");
        syn_put(p, parse_value(p));
        return syn_close(p, SYN_USE, mark, begin, name, NULL);
    }
    syn_fail(p, "`param`, `use`, `fn` or the `}` of the module");
    return 0;
}

// "{" { NEWLINE } { entry NEWLINE } "}"; what ends the block may stand on an entry's line.
static void parse_block(SynParser *p, SynId (*parse_entry)(SynParser *), const char *where) {
    if (!syn_at(p, SYN_TOKEN_BRACE))
        syn_fail(p, str_format(p->scratch, "`{` and a new line %s", where).at);
    SynBracket bracket = syn_open_bracket(p, false);
    syn_skip_newline(p);
    while (!p->failed && !syn_at(p, SYN_TOKEN_BRACE_END)) {
        syn_put(p, parse_entry(p));
        syn_want_line_end(p, "an operator or the end of the line");
        syn_skip_newline(p);
    }
    syn_close_bracket(p, bracket, SYN_TOKEN_BRACE_END, "`}`");
}

// --- configurations ---

// The type that a path read as an expression is; `name : T = e`.
static SynId type_of_path(SynParser *p, SynId path, uint32_t begin) {
    if (!p->failed && p->tree->nodes.at[path].kind != SYN_PATH)
        syn_fail(p, "the end of the line, since no type stands before it");
    uint32_t mark = syn_open(p);
    syn_put(p, path);
    return syn_close(p, SYN_TYPE_NAME, mark, begin, NULL, NULL);
}

// WORD ":" type [ "=" expression ] | WORD ":" expression, behind the colon
static SynId parse_typed_item(SynParser *p, const SynToken *name) {
    uint32_t begin = name->begin, mark = syn_open(p), at = syn_begin(p);
    bool is_type = begins_type(p);
    SynId child = is_type ? parse_type(p) : parse_expression(p);
    if (!syn_at(p, SYN_TOKEN_ASSIGN)) {
        syn_put(p, child);
        return syn_close(p, SYN_FIELD_ITEM, mark, begin, name, NULL);
    }
    syn_put(p, is_type ? child : type_of_path(p, child, at));
    syn_take(p);
    syn_put(p, parse_value(p));
    return syn_close(p, SYN_SET_TYPED, mark, begin, name, NULL);
}

// "checkpoint" "every" expression "steps" "to" STRING
static SynId parse_checkpoint(SynParser *p) {
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    syn_take(p);
    syn_want_text(p, "every", "after `checkpoint`");
    syn_put(p, parse_expression(p));
    syn_want_text(p, "steps", "after the number of steps");
    syn_want_text(p, "to", "after `steps`");
    const SynToken *path = syn_want(p, SYN_TOKEN_STRING, "with the path after `to`");
    return syn_close(p, SYN_CHECKPOINT, mark, begin, NULL, path);
}

static SynId parse_item(SynParser *p) {
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    SynTokenKind after = syn_peek_ahead(p, 1)->kind;
    bool is_key = after == SYN_TOKEN_ASSIGN || after == SYN_TOKEN_COLON;
    if (syn_at_text(p, "checkpoint") && !is_key)
        return parse_checkpoint(p);
    if (syn_at_text(p, "next") && !is_key) {
        syn_take(p);
        const SynToken *name = syn_want_word(p, "what is updated");
        syn_want(p, SYN_TOKEN_COLON, "after the name of what is updated");
        syn_put(p, parse_value(p));
        return syn_close(p, SYN_NEXT, mark, begin, name, NULL);
    }
    if (!syn_at_word(p) || (!is_key && syn_begins_declaration(p, p->next)))
        syn_fail(p, "a key or the `}` of the block");
    const SynToken *name = syn_take(p);
    if (syn_accept(p, SYN_TOKEN_ASSIGN)) {
        syn_put(p, parse_value(p));
        return syn_close(p, SYN_SET, mark, begin, name, NULL);
    }
    if (!syn_accept(p, SYN_TOKEN_COLON))
        syn_fail(p, "`=` or `:` after the key");
    return parse_typed_item(p, name);
}

// --- declarations ---

static SynId parse_import(SynParser *p, uint32_t begin) {
    const SynToken *path = syn_want(p, SYN_TOKEN_STRING, "with the path after `import`");
    syn_want(p, SYN_TOKEN_AS, "after the path");
    return syn_leaf(p, SYN_IMPORT, begin, syn_want_name(p, "an import"), path);
}

static SynId parse_const(SynParser *p, uint32_t begin, uint32_t mark) {
    const SynToken *name = syn_want_name(p, "a constant");
    syn_put(p, syn_accept(p, SYN_TOKEN_COLON) ? parse_type(p) : 0);
    syn_want(p, SYN_TOKEN_ASSIGN, "after the constant's name");
    syn_put(p, parse_value(p));
    return syn_close(p, SYN_CONST, mark, begin, name, NULL);
}

static SynId parse_dim(SynParser *p, uint32_t begin, uint32_t mark) {
    const SynToken *name = syn_want_name(p, "a dimension");
    syn_put(p, syn_accept(p, SYN_TOKEN_LE) ? parse_expression(p) : 0);
    return syn_close(p, SYN_DIM, mark, begin, name, NULL);
}

static SynId parse_module(SynParser *p, uint32_t begin, uint32_t mark) {
    const SynToken *name = syn_want_name(p, "a module");
    syn_put(p, parse_dimensions(p));
    parse_block(p, parse_member, "before the members of the module");
    return syn_close(p, SYN_MODULE, mark, begin, name, NULL);
}

static SynId parse_configuration(SynParser *p, SynKind kind, uint32_t begin, uint32_t mark,
                                 const SynToken *name) {
    parse_block(p, parse_item, "before the items of the block");
    return syn_close(p, kind, mark, begin, name, NULL);
}

static SynId parse_declaration(SynParser *p) {
    uint32_t begin = syn_begin(p), mark = syn_open(p);
    bool is_model = syn_at_text(p, "model") && syn_peek_ahead(p, 1)->kind == SYN_TOKEN_NAME;
    if (!is_model && !syn_begins_declaration(p, p->next)) {
        syn_fail_declaration(p);
        return 0;
    }
    if (syn_at(p, SYN_TOKEN_FN))
        return parse_function(p);
    switch (syn_take(p)->kind) {
    case SYN_TOKEN_IMPORT:
        return parse_import(p, begin);
    case SYN_TOKEN_CONST:
        return parse_const(p, begin, mark);
    case SYN_TOKEN_STATIC:
        syn_want(p, SYN_TOKEN_ASSERT, "after `static`");
        syn_put(p, parse_expression(p));
        return syn_close(p, SYN_STATIC_ASSERT, mark, begin, NULL, NULL);
    case SYN_TOKEN_DIM:
        return parse_dim(p, begin, mark);
    case SYN_TOKEN_TYPE: {
        const SynToken *name = syn_want_name(p, "a type");
        syn_want(p, SYN_TOKEN_ASSIGN, "after the type's name");
        syn_put(p, parse_type(p));
        return syn_close(p, SYN_TYPE_ALIAS, mark, begin, name, NULL);
    }
    case SYN_TOKEN_MODULE:
        return parse_module(p, begin, mark);
    case SYN_TOKEN_OPTIMIZER:
        return parse_configuration(p, SYN_OPTIMIZER, begin, mark, syn_want_name(p, "an optimizer"));
    case SYN_TOKEN_TRAINING:
        syn_want_text(p, "run", "after `training`");
        return parse_configuration(p, SYN_TRAINING, begin, mark, NULL);
    case SYN_TOKEN_INFERENCE:
        syn_want_text(p, "serve", "after `inference`");
        return parse_configuration(p, SYN_INFERENCE, begin, mark, NULL);
    case SYN_TOKEN_EFFECT:
        return syn_leaf(p, SYN_EFFECT, begin, syn_want_name(p, "an effect"), NULL);
    default: { // "model"
        const SynToken *name = syn_want_name(p, "a model");
        syn_want(p, SYN_TOKEN_ASSIGN, "after the model's name");
        syn_put(p, parse_value(p));
        return syn_close(p, SYN_MODEL, mark, begin, name, NULL);
    }
    }
}

// A declaration, after which its line ends or another declaration begins; what failed leaves
// nothing behind.
static void parse_and_put_declaration(SynParser *p) {
    uint32_t nodes = p->tree->nodes.count, children = p->tree->children.count;
    uint32_t mark = syn_open(p);
    p->begin = p->next;
    SynId declaration = parse_declaration(p);
    if (!syn_at(p, SYN_TOKEN_NEWLINE) && !syn_at(p, SYN_TOKEN_END) &&
        !syn_begins_declaration(p, p->next))
        syn_fail(p, "an operator or the end of the line");
    if (!p->failed) {
        syn_put(p, declaration);
        return;
    }
    p->tree->nodes.count = p->depths.count = nodes;
    p->tree->children.count = children;
    p->stack.count = mark;
    syn_recover(p);
}

static void parse_program(SynParser *p) {
    syn_skip_newline(p);
    while (!syn_at(p, SYN_TOKEN_END)) {
        parse_and_put_declaration(p);
        syn_skip_newline(p);
    }
    p->last_end = source_get(&p->context->sources, p->tree->source)->text.size;
    p->tree->program = syn_close(p, SYN_PROGRAM, 0, 0, NULL, NULL);
}

SynTree *syn_parse(Context *context, Arena *arena, uint32_t source) {
    SynTree *tree = arena_new_of(arena, SynTree);
    *tree = (SynTree){.arena = arena, .source = source};
    Arena *scratch = arena_new(&context->heap, "parser");
    SynParser p = {.context = context, .tree = tree, .scratch = scratch, .opener = SYN_NO_OPENER};
    vec_push(arena, &tree->nodes, (SynNode){0});
    vec_push(scratch, &p.depths, 0);
    syn_lex(context, arena, source, &p.tokens);
    parse_program(&p);
    arena_free(scratch);
    Str fault = syn_tree_fault(tree, arena);
    if (fault.size)
        bug("syntax tree: %s", fault.at);
    return tree;
}
