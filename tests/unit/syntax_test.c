// Tokens, tree shapes, precedence, layout, spans, recovery and robustness of the syntax stage. The
// expected shapes were written by hand from the grammar.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "syntax/lex.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct Fixture {
    Context context;
    SynTree *tree;
    uint32_t source;
} Fixture;

static void parse_bytes(Fixture *f, const char *text, size_t size) {
    context_init(&f->context);
    f->source =
        source_add(&f->context.sources, STR("t.psk"), str_copy(f->context.arena, text, size));
    f->tree = syn_parse(&f->context, f->context.arena, f->source);
}

static void parse(Fixture *f, const char *text) {
    parse_bytes(f, text, strlen(text));
}

// A tree in short: operators and forms in parentheses, paths and literals as written.
static void shape(StrBuf *buf, const Fixture *f, SynId id) {
    const SynNode *node = syn_node(f->tree, id);
    const Names *names = f->context.names;
    if (node->kind == SYN_ABSENT || node->kind == SYN_ELLIPSIS) {
        buf_text(buf, id ? "..." : "_");
    } else if (node->kind == SYN_NAME) {
        buf_add(buf, name_str(names, node->name));
    } else if (node->kind == SYN_NUMBER) {
        buf_add(buf, node->text);
    } else if (node->kind == SYN_STRING) {
        buf_format(buf, "'%s'", node->text.at);
    } else if (node->kind == SYN_PATH) {
        for (uint32_t i = 0; i < node->count; i++) {
            buf_text(buf, i ? "." : "");
            shape(buf, f, syn_child(f->tree, id, i));
        }
    } else {
        buf_char(buf, '(');
        buf_text(buf, node->op ? syn_op_text(node->op) : syn_kind_text(node->kind));
        if (node->name)
            buf_format(buf, " %s", name_c(names, node->name));
        if (node->text.at)
            buf_format(buf, " '%s'", node->text.at);
        for (uint32_t i = 0; i < node->count; i++) {
            buf_char(buf, ' ');
            shape(buf, f, syn_child(f->tree, id, i));
        }
        buf_char(buf, ')');
    }
}

static void expect_clean(Fixture *f) {
    if (f->context.diags.errors)
        print_error("%s", diags_render(&f->context.diags, f->context.arena, DIAG_PLAIN).at);
    assert_int_equal(f->context.diags.errors, 0);
}

// The shape of a whole program.
static void program_is(const char *text, const char *expected) {
    Fixture f = {0};
    StrBuf buf;
    parse(&f, text);
    expect_clean(&f);
    buf = (StrBuf){.arena = f.context.arena};
    shape(&buf, &f, f.tree->program);
    assert_string_equal(buf_str(&buf).at, expected);
    context_free(&f.context);
}

// The shape of an expression: the value of a constant.
static void expression_is(const char *text, const char *expected) {
    char program[512], wanted[512];
    snprintf(program, sizeof program, "const c = %s\n", text);
    snprintf(wanted, sizeof wanted, "(program (const c _ %s))", expected);
    program_is(program, wanted);
}

static void type_is(const char *text, const char *expected) {
    char program[512], wanted[512];
    snprintf(program, sizeof program, "type t = %s", text);
    snprintf(wanted, sizeof wanted, "(program (type t %s))", expected);
    program_is(program, wanted);
}

// The codes of the errors in the order of their places, and the number of declarations left.
static void errors_are(const char *text, const char *codes, uint32_t declarations) {
    Fixture f = {0};
    char found[256] = "";
    parse(&f, text);
    for (uint32_t i = 0; i < f.context.diags.all.count; i++) {
        strcat(found, i ? " " : "");
        strcat(found, diag_code_text(f.context.diags.all.at[i]->code));
    }
    assert_string_equal(found, codes);
    assert_int_equal(syn_node(f.tree, f.tree->program)->count, declarations);
    context_free(&f.context);
}

// The primary span of the only error, as text.
static void error_at(const char *text, const char *code, const char *place, const char *message) {
    Fixture f = {0};
    parse(&f, text);
    assert_int_equal(f.context.diags.all.count, 1);
    const Diag *d = f.context.diags.all.at[0];
    Span span = d->labels.at[0].span;
    assert_string_equal(diag_code_text(d->code), code);
    assert_int_equal(span.end - span.begin, strlen(place));
    assert_memory_equal(text + span.begin, place, strlen(place));
    assert_string_equal(d->message.at, message);
    context_free(&f.context);
}

// --- tokens ---

static void tokens_are(const char *text, const char *expected) {
    Fixture f = {0};
    SynTokens tokens = {0};
    context_init(&f.context);
    StrBuf buf = {.arena = f.context.arena};
    f.source = source_add(&f.context.sources, STR("t.psk"), str_of(text));
    syn_lex(&f.context, f.context.arena, f.source, &tokens);
    for (uint32_t i = 0; i + 1 < tokens.count; i++) {
        const SynToken *token = &tokens.at[i];
        buf_text(&buf, i ? " " : "");
        if (token->kind == SYN_TOKEN_NEWLINE)
            buf_text(&buf, "NL");
        else if (token->kind == SYN_TOKEN_NUMBER || token->kind == SYN_TOKEN_STRING)
            buf_add(&buf, token->text);
        else if (token->kind == SYN_TOKEN_NAME)
            buf_format(&buf, "'%s'", name_c(f.context.names, token->name));
        else
            buf_text(&buf, syn_token_text(token->kind));
    }
    assert_int_equal(tokens.at[tokens.count - 1].kind, SYN_TOKEN_END);
    assert_string_equal(buf_str(&buf).at, expected);
    context_free(&f.context);
}

static void test_spellings(void **state) {
    (void)state;
    tokens_are("Real \\ @ >< <<", "ℝ λ · ⊗ ∘");
    tokens_are("ℝ λ · ⊗ ∘", "ℝ λ · ⊗ ∘");
    tokens_are("a|>b|c<=d>=e==f<g>h->i...j.k", "'a' |> 'b' | 'c' <= 'd' >= 'e' == 'f' < 'g' > "
                                               "'h' -> 'i' ... 'j' . 'k'");
    tokens_are("a<-b a>-b a=-b", "'a' < - 'b' 'a' > - 'b' 'a' = - 'b'");
    tokens_are("module param params use fn const dim type import as static assert optimizer "
               "training inference effect let uses init axis idx ein",
               "module param params use fn const dim type import as static assert optimizer "
               "training inference effect let uses init axis idx ein");
    tokens_are("model run serve stream checkpoint every steps to next",
               "'model' 'run' 'serve' 'stream' 'checkpoint' 'every' 'steps' 'to' 'next'");
}

static void test_names(void **state) {
    (void)state;
    tokens_are("θ γ _x x1 Realm modules", "'θ' 'γ' '_x' 'x1' 'Realm' 'modules'");
    tokens_are("y\xCC\x82 \xC5\xB7", "'\xC5\xB7' '\xC5\xB7'");    // y and a combining hat; ŷ
    tokens_are("\xE2\x84\xAB \xC3\x85", "'\xC3\x85' '\xC3\x85'"); // the Angstrom sign; Å
    tokens_are("λx xλ a·b ℝx", "λ 'x' 'xλ' 'a' · 'b' ℝ 'x'");
    tokens_are("\xEF\xBB\xBFx", "'x'"); // a byte order mark
}

static void test_numbers_and_strings(void **state) {
    (void)state;
    tokens_are("1 1.5 1e-8 2.5E+10 1_000.0_1 1...", "1 1.5 1e-8 2.5E+10 1_000.0_1 1 ...");
    tokens_are("1.x 3-2 3e2-1", "1 . 'x' 3 - 2 3e2 - 1");
    tokens_are("\"\" \"a\\\"b\\\\c\\td\\n\" \"é -- no comment\"", " a\"b\\c\td\n é -- no comment");
}

static void test_newlines_and_comments(void **state) {
    (void)state;
    tokens_are("a\n\n -- x\n\n  b\r\nc", "'a' NL 'b' NL 'c'");
    tokens_are("a --b\n- -c", "'a' NL - - 'c'");
    tokens_are("\n\na -- end", "NL 'a'");
    tokens_are("", "");
}

// --- expressions ---

static void test_precedence(void **state) {
    (void)state;
    expression_is("a + b * c - d", "(- (+ a (* b c)) d)");
    expression_is("x · w + b", "(+ (· x w) b)");
    expression_is("a / b * c % d @ e", "(· (% (* (/ a b) c) d) e)");
    expression_is("-x ^ 2", "(- (^ x 2))");
    expression_is("-x * y", "(* (- x) y)");
    expression_is("a ^ b ^ -c", "(^ a (^ b (- c)))");
    expression_is("a - -b", "(- a (- b))");
    expression_is("a + 1 <= b * 2", "(<= (+ a 1) (* b 2))");
    expression_is("f << g >< h == k", "(⊗ (∘ f g) (== h k))"); // comparisons bind tighter
    expression_is("s |> a | b ∘ c |> d", "(|> (|> s (| a (∘ b c))) d)");
    expression_is("(a < b) * (b < c)", "(* (< a b) (< b c))");
}

static void test_postfix(void **state) {
    (void)state;
    expression_is("a.b.c", "a.b.c");
    expression_is("f(x).y", "(field y (call f x))");
    expression_is("token[x] + pos", "(+ (index token x) pos)");
    expression_is("nn.Linear{D, 4 * D} ^ L", "(^ (instance nn.Linear D (* 4 D)) L)");
    expression_is("grad(loss)(p)[0]", "(index (call (call grad loss) p) 0)");
    expression_is("f()", "(call f)");
    expression_is("a ^ b.c(d)", "(^ a (call b.c d))");
    expression_is("(a + b).c", "(field c (+ a b))");
}

static void test_arguments(void **state) {
    (void)state;
    expression_is("mean(x, last, keep = true)", "(call mean x last (named argument keep true))");
    expression_is("view(x, [batch: B, D / H, ...])",
                  "(call view x (axes (axis batch B) (axis (/ D H)) ...))");
    expression_is("softmax(x, dim, where = range([seq: T]) >= m)",
                  "(call softmax x dim (named argument where "
                  "(>= (call range (axes (axis seq T))) m)))");
    expression_is("f(axis = idx, shape = [])",
                  "(call f (named argument axis idx) (named argument shape (axes)))");
    expression_is("ein[batch, dim, axis](a * b)", "(ein (list batch dim axis) (* a b))");
    expression_is("ein[](a)", "(ein (list) a)");
}

static void test_other_forms(void **state) {
    (void)state;
    expression_is("(x)", "x");
    expression_is("(x, (y, 1))", "(tuple x (tuple y 1))");
    expression_is("(x : ℝ)", "(ascribe x (real type _))");
    expression_is("\\(a, b). a", "(lambda (tuple a b) a)");
    expression_is("λ x. λ y. x + y", "(lambda x (lambda y (+ x y)))");
    expression_is("stream \"p\" |> batch(B = 2)",
                  "(|> (stream 'p') (call batch (named argument B 2)))");
    expression_is("stream + 1", "(+ stream 1)");
    expression_is("\"s\"", "'s'");
}

static void test_lines(void **state) {
    (void)state;
    expression_is("a\n  + b\n  |> c", "(|> (+ a b) c)");
    expression_is("a +\n  b", "(+ a b)");
    expression_is("\n  a", "a");
    expression_is("f(a,\n  b\n)", "(call f a b)");
    expression_is("(a\n - b)", "(- a b)"); // free mode: no line ends
    expression_is("let a = 1\n a", "(let a 1 a)");
    expression_is("let (a, b) = f\n let c = a\n b", "(let (tuple a b) f (let c a b))");
    expression_is("f(let a = 1\n a, 2)", "(call f (let a 1 a) 2)");
    expression_is("let a = let b = 1\n b\n a", "(let a (let b 1 b) a)");
    expression_is("λ x.\n x", "(lambda x x)");
    // A line that begins with `-` or a bracket goes on with nothing.
    errors_are("const a = 1\n- 2\nconst b = 3", "E0007", 2);
    errors_are("const a = f\n(2)\n", "E0007", 1);
}

// --- types and declarations ---

static void test_types(void **state) {
    (void)state;
    type_is("ℝ", "(real type _)");
    type_is("Real[]", "(real type (axes))");
    type_is("ℝ[..., model: 4, D]", "(real type (axes ... (axis model 4) (axis D)))");
    type_is("ℝ[dim: 1, type: 2]", "(real type (axes (axis dim 1) (axis type 2)))");
    type_is("idx[64][seq: 8]", "(index type 64 (axes (axis seq 8)))");
    type_is("idx[N + 1]", "(index type (+ N 1) _)");
    type_is("param idx[2]", "(param type (index type 2 _))");
    type_is("params", "(params type _)");
    type_is("params nn.Net", "(params type nn.Net)");
    type_is("params Net{1, N}", "(params type (instance Net 1 N))");
    type_is("(ℝ, (idx[2], a.b))",
            "(tuple type (real type _) (tuple type (index type 2 _) (named type a.b)))");
    type_is("(ℝ)", "(real type _)");
}

static void test_declarations(void **state) {
    (void)state;
    program_is("import \"std/nn.psk\" as nn\nconst A : idx[2] = 1\ndim B\ndim C <= 4",
               "(program (import nn 'std/nn.psk') (const A (index type 2 _) 1) (dim B _) "
               "(dim C 4))");
    program_is("static assert A == 1\neffect Log\nmodel M = N ∘ N",
               "(program (static assert (== A 1)) (effect Log) (model M (∘ N N)))");
    program_is("fn f() = 1", "(program (fn f (list) (list) _ (list) 1))");
    program_is("fn f{N, M}(x : ℝ, y : t) -> ℝ uses A, b.C =\n  x",
               "(program (fn f (list N M) (list (parameter x (real type _)) "
               "(parameter y (named type t))) (real type _) (list A b.C) x))");
    program_is("const A = 1 const B = 2", "(program (const A _ 1) (const B _ 2))");
    program_is("", "(program)");
}

static void test_modules(void **state) {
    (void)state;
    program_is("module M {\n}", "(program (module M (list)))");
    program_is("module M{I, O} {\n\n  param w : ℝ[I] init zeros\n  param b : ℝ\n"
               "  use s = nn.L{I, O} ^ 2\n  fn f() = w\n}",
               "(program (module M (list I O) (param w (real type (axes (axis I))) zeros) "
               "(param b (real type _) _) (use s (^ (instance nn.L I O) 2)) "
               "(fn f (list) (list) _ (list) w)))");
}

static void test_configurations(void **state) {
    (void)state;
    program_is("optimizer o {\n lr = 1\n m : params = zeros\n v : t = ones\n k : ℝ\n"
               " e : a + 1\n next p : p - g\n next = 1\n dim = 2\n}",
               "(program (optimizer o (set lr 1) (set typed m (params type _) zeros) "
               "(set typed v (named type t) ones) (field item k (real type _)) "
               "(field item e (+ a 1)) (next p (- p g)) (set next 1) (set dim 2)))");
    program_is("training run {\n optimizer = o\n checkpoint every 10 steps to \"c\"\n"
               " checkpoint = 1\n model = M\n}",
               "(program (training run (set optimizer o) (checkpoint 'c' 10) "
               "(set checkpoint 1) (set model M)))");
    program_is("inference serve {}", "(program (inference serve))");
}

static void test_spans(void **state) {
    (void)state;
    Fixture f = {0};
    const char *text = "const c = (a + b) * -f(x)";
    parse(&f, text);
    SynId c = syn_child(f.tree, f.tree->program, 0), product = syn_child(f.tree, c, 1);
    SynId sum = syn_child(f.tree, product, 0), minus = syn_child(f.tree, product, 1);
    const struct {
        SynId id;
        const char *text;
    } spans[] = {{c, text}, {product, "(a + b) * -f(x)"}, {sum, "a + b"}, {minus, "-f(x)"}};
    for (uint32_t i = 0; i < COUNT_OF(spans); i++) {
        Span span = syn_node(f.tree, spans[i].id)->span;
        assert_int_equal(span.end - span.begin, strlen(spans[i].text));
        assert_memory_equal(text + span.begin, spans[i].text, strlen(spans[i].text));
    }
    Span name = syn_node(f.tree, c)->name_span;
    assert_int_equal(name.begin, 6);
    assert_int_equal(name.end, 7);
    context_free(&f.context);
}

// --- errors ---

static void test_places(void **state) {
    (void)state;
    error_at("const a = (1 + 2\nconst b = 3", "E0008", "(", "this `(` is never closed");
    error_at("module M {\n  fn f() = 1\n", "E0008", "{", "this `{` is never closed");
    error_at("const a = b < c < d", "E0009", "<", "comparisons do not chain");
    error_at("const a = b == c <= d", "E0009", "<=", "comparisons do not chain");
    error_at("const a = 1 2", "E0006", "2",
             "expected an operator or the end of the line, found number `2`");
    error_at("fn f(x) = 1", "E0006", ")", "expected `:` after the parameter's name, found `)`");
    error_at("const a = \"x", "E0003", "\"x", "the string is not closed");
    error_at("const a = 1 × 2", "E0002", "×",
             "unexpected character `×` (U+00D7, multiplication sign)");
    error_at("const a = 1 \xFF\xFE 2", "E0001", "\xFF\xFE", "the text is not UTF-8: byte 0xFF");
    error_at("modul M {\n}", "E0007", "modul", "expected a declaration, found name `modul`");
    error_at("const let = 1", "E0011", "let", "the reserved word `let` cannot name a constant");
}

static void test_recovery(void **state) {
    (void)state;
    errors_are("const = 1\nconst b = 2\nfn f( = 3\n  fn g() = 1\nconst c = 1 1\ndim D",
               "E0006 E0006 E0006", 2);
    errors_are("module M {\n  fn f() = \n}\nmodel N = M\n", "E0006", 1);
    errors_are("optimizer o {\n  lr = 1\nmodel M = N\n", "E0008", 1);
    errors_are("training run {\n  model = M\n  + 2\n  3\n}\nconst a = 1", "E0006", 1);
    errors_are("const a = 1 − 2\nconst b = 1__0\nconst c = 3", "E0002 E0005", 3);
}

static void test_depth(void **state) {
    (void)state;
    // 5,000 of each would overflow a stack that nothing bounds.
    static const char *const parts[][3] = {
        {"const a = ", "(", "1"},       {"const a = ", "- ", "1"},
        {"const a = 1", " + 1", ""},    {"const a = 1", " ^ 1", ""},
        {"const a = f", "()", ""},      {"const a = ", "λ x. ", "x"},
        {"const a = ", "f(", "x"},      {"const a = ", "[", ""},
        {"type t = ", "(", "ℝ"},        {"type t = ", "param ", "ℝ"},
        {"const a = ", "let a = ", ""}, {"fn f() =", " let a = 1\n", "a"},
        {"const a = f(", "a = [", ""},  {"const a = λ ", "(", "x"},
        {"const a = ", "ein[](", "x"},
    };
    for (uint32_t i = 0; i < COUNT_OF(parts); i++) {
        Fixture f = {0};
        context_init(&f.context);
        StrBuf buf = {.arena = f.context.arena};
        buf_text(&buf, parts[i][0]);
        for (uint32_t k = 0; k < 5000; k++)
            buf_text(&buf, parts[i][1]);
        buf_text(&buf, parts[i][2]);
        f.source = source_add(&f.context.sources, STR("deep.psk"), buf_str(&buf));
        f.tree = syn_parse(&f.context, f.context.arena, f.source);
        assert_int_equal(f.context.diags.errors, 1);
        context_free(&f.context);
    }
}

// --- whole programs ---

// Every prefix of a program, and the program with each byte replaced: no crash, and a legal tree
// (syn_parse checks it).
static void test_mutations(void **state) {
    (void)state;
    const char *text = "module M{I} {\n  param w : ℝ[I, ...] init f(-1)\n  fn g(x : idx[2]) -> ℝ "
                       "=\n    let (a, b) = ein[i](x · w)\n    view(a, [b: 1])[0].c ^ 2\n}\n"
                       "optimizer o {\n  m : params M{3} = 1e-8\n  next p : \"s\"\n}\n";
    static const char bytes[] = "(){}[]\"\\\n.:=-+^<|, 1ex\xFF\xCE\x00";
    size_t size = strlen(text);
    char *copy = strdup(text);
    for (size_t i = 0; i <= size; i++) {
        Fixture f = {0};
        parse_bytes(&f, text, i);
        context_free(&f.context);
        for (size_t k = 0; i < size && k < sizeof bytes - 1; k++) {
            copy[i] = bytes[k];
            parse_bytes(&f, copy, size);
            context_free(&f.context);
        }
        copy[i] = text[i];
    }
    free(copy);
}

static void test_memory_runs_out(void **state) {
    (void)state;
    const char *text = "fn f(x : ℝ[a: 1]) -> ℝ =\n  let ŷ = x + \"a\"\n  f(ŷ, [b: 2]) 3\n";
    volatile bool done = false;
    for (volatile uint64_t n = 1; !done; n++) {
        Context context = {0};
        jmp_buf rescue;
        context_init(&context);
        if (setjmp(rescue) == 0) {
            context.heap.rescue = &rescue;
            context.heap.fail_at = context.heap.calls + n;
            uint32_t source = source_add(&context.sources, STR("t.psk"), str_of(text));
            syn_parse(&context, context.arena, source);
            done = true;
        }
        context_free(&context);
    }
}

static void test_printers(void **state) {
    (void)state;
    Fixture f = {0};
    parse(&f, "const c = -1\n");
    assert_string_equal(syn_print_tree(f.tree, &f.context, f.context.arena).at,
                        "program 0..13\n  const c 0..12\n    absent\n    unary - 10..12\n"
                        "      number 1 11..12\n");
    assert_string_equal(syn_print_tokens(&f.context, f.context.arena, f.source).at,
                        "0..5 const\n6..7 name c\n8..9 =\n10..11 -\n11..12 number 1\n"
                        "12..13 newline\n13..13 end\n");
    context_free(&f.context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_numbers_and_strings),
        cmocka_unit_test(test_newlines_and_comments),
        cmocka_unit_test(test_precedence),
        cmocka_unit_test(test_postfix),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_other_forms),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_declarations),
        cmocka_unit_test(test_modules),
        cmocka_unit_test(test_configurations),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_recovery),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_memory_runs_out),
        cmocka_unit_test(test_printers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
