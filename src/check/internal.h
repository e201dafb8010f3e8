// What the files of the checker share: units (sources), declarations, modules, functions, values.
//
// One evaluator of expressions serves everything. Its values are host scalars (constants and
// extents: exact, no let is made for them), lets of the Core function being built, tuples, and
// things that can only be called or instantiated: functions, modules, λs. Where no function is
// being built (constants, extents of types, initialisers, module expressions) an expression that
// would need a let is an error.
//
// An error poisons the value or type it concerns; whatever is made of poison is poison without a
// word, so each mistake is reported once and checking goes on.
#ifndef PRESK_CHECK_INTERNAL_H
#define PRESK_CHECK_INTERNAL_H

#include "check/check.h"

typedef struct ChkUnit ChkUnit;
typedef struct ChkDecl ChkDecl;
typedef struct ChkModule ChkModule;
typedef struct ChkFn ChkFn;
typedef struct ChkMod ChkMod;

enum {
    CHK_DEPTH_MAX = 600,     // nesting of expressions and of calls being elaborated
    CHK_STEPS_MAX = 1000000, // expressions evaluated, so that λs and powers cannot run away
    CHK_COPIES_MAX = 1024,   // `M ^ n`
    CHK_TREE_MAX = 16384,    // modules in one parameter tree
    CHK_POWER_MAX = 64       // `x ^ n` on tensors
};

typedef enum ChkState { CHK_NEW, CHK_OPEN, CHK_DONE, CHK_FAILED } ChkState;

typedef struct Chk {
    Context *context;
    Diags *diags;
    Arena *arena;
    CoreProgram *core;
    ExtentTable *extents;
    ChkProgram *result;
    Vec(ChkUnit *) units; // at[0] is the root
    Map *core_names;      // name of a Core module or function → index in core_spans
    Vec(Span) core_spans;
    uint32_t const_count; // from the command line
    const ChkConst *consts;
    uint32_t depth;
    uint64_t steps;
    bool bad_syntax; // a unit did not parse: what it lacks would be reported again
    bool exhausted;  // one of the limits was reported
    Name n_last, n_apply, n_zeros, n_p, n_g, n_t;
} Chk;

// ---- declarations ---------------------------------------------------------------------------

typedef enum ChkDeclKind {
    CHK_CONST,
    CHK_DIM,
    CHK_ALIAS,
    CHK_MODULE,
    CHK_FN,
    CHK_MODEL,
    CHK_OPTIMIZER,
    CHK_IMPORT
} ChkDeclKind;

struct ChkDecl {
    ChkDeclKind kind;
    ChkState state;
    Name name;
    Span span; // of the name
    ChkUnit *unit;
    SynId node;
    CoreScalar scalar; // CONST, DIM
    CoreTypeId type;   // ALIAS
    ChkModule *module; // MODULE, MODEL of a sequence
    const ChkMod *mod; // MODEL
    ChkFn *fn;         // FN
    ChkUnit *target;   // IMPORT; null where it could not be read
};

struct ChkUnit {
    SynTree *tree;
    uint32_t source;
    Str path; // std/… or as it can be opened
    bool embedded;
    ChkState state;
    Vec(ChkDecl *) decls;
    Map *names; // Name → index in decls
};

typedef enum ChkMemberKind { CHK_MEMBER_PARAM, CHK_MEMBER_USE, CHK_MEMBER_FN } ChkMemberKind;

typedef struct ChkMember {
    ChkMemberKind kind;
    Name name;
    SynId node;
    Span span;
    CoreTypeId type;   // PARAM, in terms of the module's dimensions; 0: poison
    const ChkMod *mod; // USE; null: poison
    ChkFn *fn;         // FN
} ChkMember;

struct ChkModule {
    ChkDecl *decl;
    CoreModuleId id;
    uint32_t dim_count;
    DimId *dims;
    Vec(ChkMember) members;
    uint32_t size; // modules in its tree, itself one of them
    bool poison;   // a member was wrong: unknown members are not reported
};

// A module expression's value: an instance, or several in sequence (applied from item 0 on), or
// several side by side on a tuple.
typedef enum ChkModKind { CHK_INSTANCE, CHK_SEQUENCE, CHK_PARALLEL } ChkModKind;

struct ChkMod {
    ChkModKind kind;
    ChkModule *module; // INSTANCE
    uint32_t count;
    const Extent *dims; // INSTANCE
    const ChkMod **items;
    uint32_t size; // modules in its tree
    CoreTree tree;
};

struct ChkFn {
    ChkUnit *unit;
    ChkModule *module; // null: a free function
    SynId node;        // 0: the `apply` of a model, which is `composite`
    const ChkMod *composite;
    Name name; // as Core has it: "Linear.apply"
    Span span;
    ChkState signature, body;
    CoreFnId id;
    uint32_t dim_count; // the module's, then its own
    DimId *dims;
    uint32_t own_dims; // how many of them are its own
    bool has_pack;
    uint32_t param_count; // without the tree
    CoreTypeId *params;   // 0: poison
    Name *param_names;
    Span *param_spans;
    CoreTypeId tree_type; // module functions: of parameter %0
    CoreTypeId result;    // 0: not declared and not known yet, or poison
};

// ---- values ---------------------------------------------------------------------------------

typedef struct ChkBuiltin ChkBuiltin;
typedef struct ChkBinding ChkBinding;

// A parameter tree that becomes a `field` let when it is used.
typedef struct ChkTree {
    CoreLetId base;
    uint32_t count;
    const Name *path;
} ChkTree;

typedef enum ChkKind {
    CHK_POISON,
    CHK_SCALAR,      // scalar
    CHK_LET,         // let, type
    CHK_TUPLE,       // count, parts
    CHK_LAMBDA,      // node, scope, unit
    CHK_FUNCTION,    // fn or composite mod (its apply); bound: its tree is known
    CHK_MODULE_NAME, // module that has not been given its dimensions
    CHK_MOD_VALUE,   // mod; bound: its tree is known
    CHK_BUILTIN,     // builtin
    CHK_UNIT         // unit: an import's alias
} ChkKind;

typedef struct ChkValue {
    ChkKind kind;
    Span span;
    CoreScalar scalar;
    CoreLetId let;
    CoreTypeId type; // names of axes may differ from the let's own type: declared types name them
    uint32_t count;
    const struct ChkValue *parts;
    SynId node;
    ChkBinding *scope;
    ChkUnit *unit;
    ChkFn *fn;
    ChkModule *module;
    const ChkMod *mod;
    bool bound;
    ChkTree tree;
    bool gradient;      // FUNCTION: its gradient is meant
    uint32_t dim_count; // FUNCTION: stated own dimensions, `f{N}`
    const Extent *dims;
    const ChkBuiltin *builtin;
} ChkValue;

struct ChkBinding {
    Name name;
    ChkValue value;
    ChkBinding *next;
};

// Where an expression is evaluated.
typedef struct ChkBody {
    Chk *chk;
    ChkUnit *unit;
    ChkModule *module; // members are in scope; null: none
    ChkBinding *scope;
    CoreFn *core; // the function being built; null: constants only
    bool has_pack;
    bool bound;  // a module function: %0 is its tree
    Map *fields; // (base, path) → let + 1
} ChkBody;

// ---- names.c: declarations, scopes, spelling ------------------------------------------------

const char *chk_name(const Chk *chk, Name name);
const char *chk_c(Str text);
const char *chk_quoted(const Chk *chk, Name name);                   // "`name`"
const char *chk_count(const Chk *chk, uint32_t n, const char *word); // "1 word", "2 words"
void chk_collect(Chk *chk, ChkUnit *unit);
ChkDecl *chk_find(const ChkUnit *unit, Name name);
const char *chk_decl_kind_text(ChkDeclKind kind);
const char *chk_value_text(const ChkBody *body, const ChkValue *value); // "a function", "ℝ[3]" …
// The name of a Core module or function is taken once in a program; false with a diagnostic.
bool chk_claim(Chk *chk, Name name, Span span, const char *what);
// Adds "did you mean" if one of the names is near; `extra` further candidates may be null.
void chk_suggest(Chk *chk, Diag *d, Name name, uint32_t count, const Name *candidates);
void chk_unknown_name(ChkBody *body, Name name, Span span);
ChkValue chk_lookup(ChkBody *body, Name name, Span span); // POISON after a diagnostic
ChkValue chk_path(ChkBody *body, SynId node);
ChkValue chk_member(ChkBody *body, const ChkValue *base, Name name, Span span);
ChkBinding *chk_bind(Chk *chk, ChkBinding *scope, Name name, ChkValue value);

// ---- import.c -------------------------------------------------------------------------------

ChkUnit *chk_load(Chk *chk, uint32_t source, Str path, bool embedded);

// ---- number.c: constants and extents --------------------------------------------------------

CoreScalar chk_const(Chk *chk, ChkDecl *decl); // 0: poison
CoreScalar chk_dim(Chk *chk, ChkDecl *decl);
void chk_static_assert(Chk *chk, ChkUnit *unit, SynId node);
void chk_command_line(Chk *chk);
CoreScalar chk_scalar_expr(ChkBody *body, SynId node);        // 0: poison
const Rational *chk_rational_expr(ChkBody *body, SynId node); // null: poison
bool chk_int_expr(ChkBody *body, SynId node, int64_t *value);
Extent chk_extent_expr(ChkBody *body, SynId node);                 // NONE: poison
Extent chk_extent_of(ChkBody *body, CoreScalar scalar, Span span); // NONE after a diagnostic
ChkValue chk_scalar_value(CoreScalar scalar, Span span);
ChkValue chk_scalar_apply(ChkBody *body, MthFunction function, int64_t power, CoreScalar a,
                          CoreScalar b, Span span);
ChkValue chk_scalar_compare(ChkBody *body, CorePrim prim, CoreScalar a, CoreScalar b, Span span);
ChkBody chk_constant_body(Chk *chk, ChkUnit *unit);

// ---- types.c --------------------------------------------------------------------------------

CoreTypeId chk_type(ChkBody *body, SynId node); // 0: poison
// The declaration that a path of names leads to; null after a diagnostic.
ChkDecl *chk_path_decl(ChkBody *body, SynId path);
CoreTypeId chk_alias(Chk *chk, ChkDecl *decl); // 0: poison
// The axes of an AXES node; false: poison. At most RANK_MAX of them.
bool chk_axes(ChkBody *body, SynId node, uint32_t *rank, CoreAxis *axes);
bool chk_axes_distinct(Chk *chk, uint32_t rank, const CoreAxis *axes, Span span);
// A tensor type with new axes, of the kind of `like`.
CoreTypeId chk_with_axes(Chk *chk, CoreTypeId like, uint32_t rank, const CoreAxis *axes);
const char *chk_type_text(const Chk *chk, CoreTypeId type);
const char *chk_extent_text(const Chk *chk, Extent extent);
bool chk_bound_fits(Chk *chk, Extent bound, Extent limit);
// The value as one of type `type`: names passed on, an idx made real or given a wider bound, a
// constant made a tensor. POISON, after a diagnostic that calls it `what`, where it does not fit.
ChkValue chk_accept(ChkBody *body, const ChkValue *value, CoreTypeId type, const char *what);

// ---- axes.c: alignment ----------------------------------------------------------------------

// Brings tensors to shapes that Core aligns from the right. `axes` receives the union. False:
// poison, after a diagnostic.
bool chk_align(ChkBody *body, Span span, uint32_t count, ChkValue *values, uint32_t *rank,
               CoreAxis *axes);
// One value viewed or permuted so that it right-aligns with `rank` axes that contain all its own.
ChkValue chk_fit(ChkBody *body, const ChkValue *value, uint32_t rank, const CoreAxis *axes);
// The axis that an argument names; false after a diagnostic.
bool chk_axis_argument(ChkBody *body, SynId node, CoreTypeId type, uint32_t *axis);
bool chk_is_axis(ChkBody *body, SynId node, CoreTypeId type);
int chk_axis_find(const CoreType *type, Name name); // −1: none

// ---- module.c -------------------------------------------------------------------------------

ChkModule *chk_module(Chk *chk, ChkDecl *decl);   // null: poison
const ChkMod *chk_model(Chk *chk, ChkDecl *decl); // null: poison
const ChkMod *chk_instance(ChkBody *body, ChkModule *module, uint32_t count, const SynId *args,
                           Span span);
const ChkMod *chk_instance_of(Chk *chk, ChkModule *module, uint32_t count, const Extent *dims);
ChkValue chk_mod_operator(ChkBody *body, SynId node, const ChkValue *left);
ChkMember *chk_module_member(ChkModule *module, Name name);
const ChkMod *chk_mod_expr(ChkBody *body, SynId node); // null: poison
ChkBody chk_module_body(Chk *chk, ChkModule *module);
Name chk_item_name(Chk *chk, uint32_t index);
// Dimensions `{I, O}` of a module or function; returns how many.
uint32_t chk_own_dims(Chk *chk, ChkUnit *unit, SynId list, DimId *dims);

// ---- function.c: signatures, bodies, calls --------------------------------------------------

bool chk_signature(Chk *chk, ChkFn *fn);
void chk_elaborate(Chk *chk, ChkFn *fn);
ChkFn *chk_fn_new(Chk *chk, ChkUnit *unit, ChkModule *module, SynId node, Name name, Span span);
// Calls what `callee` is with argument nodes (expressions, NAMED, AXES).
ChkValue chk_call(ChkBody *body, const ChkValue *callee, uint32_t count, const SynId *args,
                  Span span);
ChkValue chk_apply_mod(ChkBody *body, const ChkMod *mod, ChkTree tree, uint32_t count,
                       const ChkValue *args, Span span);

// ---- expr.c ---------------------------------------------------------------------------------

ChkValue chk_expr(ChkBody *body, SynId node);
ChkValue chk_poison(Span span);
// One more expression or call, nested in the ones that were entered and not left: false, with one
// diagnostic, beyond the limits.
bool chk_enter(ChkBody *body, Span span);
void chk_leave(ChkBody *body);
ChkBinding *chk_pattern(ChkBody *body, ChkBinding *scope, SynId pattern, const ChkValue *value);

// ---- emit.c: making lets --------------------------------------------------------------------

// A let of one primitive. Operands are LETs; the type is `type` where it is the rule's up to
// names of axes, or the rule's own if `type` is 0.
ChkValue chk_emit(ChkBody *body, CorePrim prim, Span span, uint32_t count, const ChkValue *operands,
                  const CoreAttr *attr, CoreTypeId type);
ChkValue chk_let_value(CoreLetId let, CoreTypeId type, Span span);
// A tensor (or tree) from a value: scalars become `scalar` lets. POISON after a diagnostic.
ChkValue chk_tensor(ChkBody *body, const ChkValue *value);
// The same, ℝ or idx and no tree; false after a diagnostic.
bool chk_operand(ChkBody *body, const ChkValue *value, ChkValue *tensor);
ChkValue chk_field(ChkBody *body, ChkTree tree, Span span);
ChkValue chk_whole(ChkBody *body, const ChkValue *value); // a tuple becomes a `tuple` let
ChkValue chk_part(ChkBody *body, const ChkValue *tuple, uint32_t index);

// ---- builtin.c, tensor.c, ein.c: the functions of the language ------------------------------

const ChkBuiltin *chk_builtin_find(const Chk *chk, Name name);
uint32_t chk_builtin_names(Chk *chk, Name **names);
ChkValue chk_builtin_call(ChkBody *body, const ChkBuiltin *builtin, uint32_t count,
                          const SynId *args, Span span);
ChkValue chk_elementwise(ChkBody *body, CorePrim prim, uint32_t count, const ChkValue *values,
                         Span span);
ChkValue chk_power(ChkBody *body, const ChkValue *base, const ChkValue *exponent, Span span);
ChkValue chk_view(ChkBody *body, uint32_t count, const SynId *args, Span span);
ChkValue chk_range(ChkBody *body, uint32_t count, const SynId *args, Span span);
ChkValue chk_dot(ChkBody *body, const ChkValue *left, const ChkValue *right, Span span);
ChkValue chk_gather(ChkBody *body, SynId node);
ChkValue chk_ein(ChkBody *body, SynId node);

// ---- optimizer.c, training.c ----------------------------------------------------------------

typedef struct ChkHyper { // a hyperparameter and its value
    Name name;
    const Rational *value;
    Span span;
} ChkHyper;

// NAME.step over `type` (params M, or ℝ where there is no training block), and the optimizer's
// hyperparameters with their defaults, in order.
CoreFnId chk_optimizer(Chk *chk, ChkDecl *decl, CoreTypeId type, uint32_t *hyper_count,
                       const ChkHyper **hypers);
// The training block at `node` of the root; 0: none, then the optimizers of the root are made
// alone.
void chk_training(Chk *chk, ChkUnit *unit, SynId node);

// ---- shorthands -----------------------------------------------------------------------------

static inline const SynNode *chk_node(const ChkBody *body, SynId node) {
    return syn_node(body->unit->tree, node);
}
static inline SynId chk_child(const ChkBody *body, SynId node, uint32_t index) {
    return syn_child(body->unit->tree, node, index);
}
static inline bool chk_is_poison(const ChkValue *value) {
    return value->kind == CHK_POISON;
}

#endif
