// Core: the let-normal form that everything after the checker works on.
//
// A program is a set of functions. A function is a list of lets %0, %1, …; the first are its
// parameters; each other let applies one primitive (prim.def) to earlier lets; one let is the
// result. Functions stay functions: a call is a let, and a function is polymorphic in its own
// dimensions (those of its module and its own) and in one pack of axes `...`; each call states
// what they are. Global dimensions (`dim B`) have one value in a run.
//
// Types. A real tensor ℝ[axes], an index tensor idx[bound][axes], a parameter tree params M, a
// tuple. Axes have an optional name and an extent; at most one axis of a type is the pack.
//
// Elementwise operands are aligned with the result from the right: an operand may have fewer axes,
// or extent 1 where the result has more, and is broadcast. (Where the language aligns by name, the
// checker has put views and permutes in.) A scalar let is an operand like any other.
//
// Values are real numbers rounded by the realization: a let that reaches memory is rounded to the
// storage type of its site; a value inside a fusion group stays in the arithmetic type.
//
// Text form (core_print, core_read are inverses):
//   fn Linear.apply{I, O, ...}(%0 : params Linear{I, O}, %1 : ℝ[..., I]) -> ℝ[..., O] {
//     %2 : ℝ[I, O] = field %0 w
//     %3 : ℝ[..., O] = dot %1 %2
//     %4 : ℝ[O] = field %0 b
//     %5 : ℝ[..., O] = add %3 %4
//     return %5
//   }
// and of a gradient that is only declared  fn f.grad(%0 : ℝ) -> (ℝ, ℝ) gradient f
#ifndef PRESK_CORE_CORE_H
#define PRESK_CORE_CORE_H

#include "base/context.h"
#include "base/rational.h"
#include "base/tensor.h"
#include "core/extent.h"
#include "maths/maths.h"

typedef uint32_t CoreTypeId;   // 0: none
typedef uint32_t CoreTree;     // 0: none
typedef uint32_t CoreModuleId; // 0: none
typedef uint32_t CoreFnId;     // 0: none
typedef uint32_t CoreScalar;   // 0: none
typedef uint32_t CoreLetId;    // index into CoreFn.lets

typedef enum CorePrim {
#define PRIM(name, text, class, min, max, weight, meaning) CORE_##name,
#include "core/prim.def"
#undef PRIM
    CORE_PRIM_COUNT
} CorePrim;

typedef enum CoreClass {
    CORE_FREE,
    CORE_CALL,
    CORE_ELEMENTWISE,
    CORE_REDUCTION,
    CORE_ROW,
    CORE_CONTRACTION,
    CORE_INDEXED,
    CORE_PERMUTE
} CoreClass;

typedef struct CorePrimInfo {
    const char *text;
    CoreClass class;
    uint16_t min, max, weight;
} CorePrimInfo;
extern const CorePrimInfo core_prims[CORE_PRIM_COUNT];
bool core_prim_of_text(Str text, CorePrim *prim);
// The scalar meaning of an elementwise primitive.
MthFunction core_prim_function(CorePrim prim);

// ---- types ----------------------------------------------------------------------------------

typedef enum CoreKind { CORE_REAL, CORE_IDX, CORE_PARAMS, CORE_TUPLE } CoreKind;

typedef struct CoreAxis {
    Name name;     // 0: unnamed
    Extent extent; // EXTENT_PACK: the pack
} CoreAxis;

typedef struct CoreType {
    CoreKind kind;
    Extent bound;  // IDX: values are 0 … bound − 1
    uint32_t rank; // REAL, IDX: number of axes, the pack counted as one
    const CoreAxis *axes;
    CoreTree tree;  // PARAMS
    uint32_t parts; // TUPLE
    const CoreTypeId *part;
} CoreType;

// ---- host scalars ---------------------------------------------------------------------------
// Values known before anything is launched: exact rationals, extents, and expressions of them.
// `+ - * / ^` of rationals are exact; sqrt, exp … are evaluated by the F64 program of maths and
// the result is then exact. A scalar is rounded once to the arithmetic type of the nest it enters.

typedef enum CoreScalarKind {
    CORE_SCALAR_RATIONAL,
    CORE_SCALAR_EXTENT,
    CORE_SCALAR_HYPER, // a hyperparameter or the step `t`, by name: its expressions are in F64
    CORE_SCALAR_APPLY, // function (maths) of one or two scalars; pow: of one, and `power`
    CORE_SCALAR_POWER  // a ^ b with a scalar exponent b (hyperparameters: beta1 ^ t)
} CoreScalarKind;

typedef struct CoreScalarNode {
    CoreScalarKind kind;
    const Rational *rational;
    double number; // RATIONAL: rounded to f64
    Extent extent;
    Name name;
    MthFunction function;
    int64_t power;
    CoreScalar a, b;
} CoreScalarNode;

// ---- parameter trees ------------------------------------------------------------------------
// The tree of a module at given dimensions, or a sequence of trees (`Block ^ L`, `f ∘ g`, `f ⊗ g`),
// whose fields are named 0, 1, …

typedef struct CoreTreeNode {
    CoreModuleId module; // 0: a sequence
    uint32_t count;      // of `dims` (module) or `items` (sequence)
    const Extent *dims;  // arguments for the module's dimension parameters, in order
    const CoreTree *items;
} CoreTreeNode;

typedef enum CoreInitKind {
    CORE_INIT_ZEROS,
    CORE_INIT_ONES,
    CORE_INIT_CONSTANT, // a
    CORE_INIT_NORMAL,   // mean a, standard deviation b
    CORE_INIT_UNIFORM   // from a to b
} CoreInitKind;

typedef struct CoreInit {
    CoreInitKind kind;
    CoreScalar a, b;
} CoreInit;

typedef struct CoreField {
    Name name;
    CoreTypeId type; // a leaf's type in terms of the module's dimensions, or 0
    CoreInit init;   // leaves
    CoreTree tree;   // a submodule's tree, or 0
    Span span;
} CoreField;

typedef struct CoreModule {
    Name name;
    Vec(DimId) dims;
    Vec(CoreField) fields; // in the order of declaration
    Span span;
} CoreModule;

// ---- functions ------------------------------------------------------------------------------

typedef struct CoreAttr {
    CoreScalar scalar;   // scalar
    int64_t number;      // pow: the power; item: the part
    uint64_t axes;       // CORE_SET_OF_AXES: bit i: axis i is reduced
    uint32_t axis;       // CORE_ONE_AXIS
    bool keep;           // reduced axes stay with extent 1
    uint32_t path_count; // field: names of fields; a sequence's items are named by number
    const Name *path;
    CoreFnId callee;    // call
    uint32_t dim_count; // call: arguments for the callee's dims, in order
    const Extent *dims;
    uint32_t pack_count;      // call: the axes that the callee's `...` stands for (they may hold
    const CoreAxis *pack;     // the caller's own pack)
    const uint8_t *labels[3]; // ein: a label (0, 1, …) for each axis of operand 0, 1 and the
                              // result; numbered by first appearance in operand 0, then operand 1
    uint8_t label_count[3];   // the ranks of the three
    uint8_t order_count;      // permute: the operand's rank
    const uint8_t *order;
} CoreAttr;

typedef struct CoreLet {
    CorePrim prim;
    CoreTypeId type;
    uint32_t first, count; // operands: fn->operands.at[first …]
    const CoreAttr *attr;  // null where the primitive has none
    Name name;             // the source's name for it; 0: none
    Span span;
} CoreLet;

enum { CORE_NO_GROUP = UINT32_MAX };

// Why a value could have joined a fusion group and did not (remark.def).
typedef enum CoreRemarkKind {
#define REMARK(name, text) CORE_REMARK_##name,
#include "core/remark.def"
#undef REMARK
    CORE_REMARK_COUNT
} CoreRemarkKind;

typedef struct CoreRemark {
    CoreRemarkKind kind;
    CoreLetId let;    // the value that did not join
    CoreLetId reader; // the reader whose group it did not join
    CoreLetId other;  // OUTSIDE_READER: the reader outside (CORE_NO_GROUP once dead code has
                      // dropped it); else same as reader
} CoreRemark;

typedef struct CoreFn {
    Name name;       // "Linear.apply", "loss"
    Vec(DimId) dims; // its own dimensions, given by each call
    bool has_pack;
    uint32_t params; // lets 0 … params − 1 are parameters
    Vec(CoreLet) lets;
    Vec(CoreLetId) operands;
    CoreLetId result;
    CoreTypeId type; // of the result, as declared
    // The function whose gradient this one is, as long as it is only declared: it has parameters
    // and a type and no body, and differentiation (src/ad) makes it. 0: a function like any other.
    CoreFnId gradient_of;
    Span span;
    // The fusion partition, once core_partition has run; null before.
    uint32_t *group; // per let: the root of its group, or CORE_NO_GROUP
    Vec(CoreRemark) remarks;
} CoreFn;

typedef struct CoreProgram {
    Context *context;
    Arena *arena;
    ExtentTable *extents;
    Vec(CoreFn *) fns;         // by CoreFnId; at[0] is null
    Vec(CoreModule) modules;   // by CoreModuleId; at[0] unused
    struct CoreTables *tables; // hash-consed types, trees and scalars
    Vec(Arena *) idle;         // arenas of scalars' values
} CoreProgram;

CoreProgram *core_program_new(Context *context, Arena *arena);

// Constructors are hash-consed: equal arguments give equal ids. They copy what they are given.
CoreTypeId core_type_real(CoreProgram *program, uint32_t rank, const CoreAxis *axes);
CoreTypeId core_type_idx(CoreProgram *program, Extent bound, uint32_t rank, const CoreAxis *axes);
CoreTypeId core_type_params(CoreProgram *program, CoreTree tree);
CoreTypeId core_type_tuple(CoreProgram *program, uint32_t count, const CoreTypeId *parts);
const CoreType *core_type(const CoreProgram *program, CoreTypeId type);
// Equal up to the names of axes: the same kind, bound, extents, tree. What the fusion partition and
// calls compare.
bool core_type_same(const CoreProgram *program, CoreTypeId a, CoreTypeId b);
Str core_type_text(const CoreProgram *program, CoreTypeId type, Arena *arena);
// The type with dims replaced (by DimId, EXTENT_NONE: kept) and the pack replaced by axes (pack
// null: kept). EXTENT overflow gives 0.
CoreTypeId core_type_substitute(CoreProgram *program, CoreTypeId type, const Extent *by_dim,
                                const CoreAxis *pack, uint32_t pack_count);

CoreTree core_tree_module(CoreProgram *program, CoreModuleId module, uint32_t count,
                          const Extent *dims);
CoreTree core_tree_sequence(CoreProgram *program, uint32_t count, const CoreTree *items);
const CoreTreeNode *core_tree(const CoreProgram *program, CoreTree tree);
CoreTree core_tree_substitute(CoreProgram *program, CoreTree tree, const Extent *by_dim);
// The type of the leaf or subtree at a path of field names; 0: there is none.
CoreTypeId core_tree_field(CoreProgram *program, CoreTree tree, uint32_t count, const Name *path);

// The fields of a tree (of its module, or the items of a sequence), in order.
uint32_t core_tree_count(const CoreProgram *program, CoreTree tree);
CoreTypeId core_tree_part(CoreProgram *program, CoreTree tree, uint32_t index);
Name core_tree_part_name(CoreProgram *program, CoreTree tree, uint32_t index);

// Leaves in order: a module's fields as declared, subtrees in place.
typedef struct CoreLeaf {
    Str path;        // "blocks.0.attn.query.w"
    CoreTypeId type; // substituted: in terms of the tree's outer dimensions
    CoreInit init;   // scalars substituted likewise
} CoreLeaf;
uint32_t core_tree_leaves(CoreProgram *program, CoreTree tree, Arena *arena, CoreLeaf **leaves);

CoreScalar core_scalar_rational(CoreProgram *program, const Rational *value);
CoreScalar core_scalar_extent(CoreProgram *program, Extent extent); // an integer becomes RATIONAL
CoreScalar core_scalar_hyper(CoreProgram *program, Name name);
// Folds when the operands are rational; 0 on a division by zero or a value beyond the size limit.
CoreScalar core_scalar_apply(CoreProgram *program, MthFunction function, int64_t power,
                             CoreScalar a, CoreScalar b);
CoreScalar core_scalar_power(CoreProgram *program, CoreScalar a, CoreScalar b);
const CoreScalarNode *core_scalar(const CoreProgram *program, CoreScalar scalar);
CoreScalar core_scalar_substitute(CoreProgram *program, CoreScalar scalar, const Extent *by_dim);
Str core_scalar_text(const CoreProgram *program, CoreScalar scalar, Arena *arena);
// The value with dims bound (by DimId) and hyperparameters given by name (may be null), rounded
// once to `type`; false: an unbound name or dimension, or no finite exact value where one is
// needed. Asked again for the same scalar it allocates nothing.
typedef bool (*CoreHyper)(void *data, Name name, double *value);
bool core_scalar_value(CoreProgram *program, CoreScalar scalar, const int64_t *by_dim,
                       CoreHyper hyper, void *data, DType type, double *value);

CoreModuleId core_module_add(CoreProgram *program, Name name, Span span);
CoreFnId core_fn_add(CoreProgram *program, Name name, Span span);
CoreFnId core_fn_find(const CoreProgram *program, Str name); // 0: none
CoreFn *core_fn(const CoreProgram *program, CoreFnId fn);
// Declares `F.grad`, the gradient of F in its first parameter (or finds it declared): F's
// parameters and the result (value, gradient). F has a first parameter and a type. 0: another
// function has the name.
CoreFnId core_gradient_declare(CoreProgram *program, CoreFnId fn);
CoreLetId core_let_add(CoreProgram *program, CoreFn *fn, CorePrim prim, CoreTypeId type,
                       uint32_t count, const CoreLetId *operands, const CoreAttr *attr, Name name,
                       Span span); // attr is copied deeply; null: none
static inline const CoreLet *core_let(const CoreFn *fn, CoreLetId let) {
    return &fn->lets.at[let];
}
static inline CoreLetId core_operand(const CoreFn *fn, CoreLetId let, uint32_t index) {
    return fn->operands.at[fn->lets.at[let].first + index];
}
// "SelfAttention.apply/%7".
Str core_site_text(const CoreProgram *program, CoreFnId fn, CoreLetId let, Arena *arena);

// The type that a let must have, from its operands' types and attributes: the one statement of
// each primitive's type rule, used by the checker to make lets and by the verifier to test them.
// A broadcast's named axes are taken where the operands have them. 0: the operands do not fit, and
// *why says so in words of the language. (param, scalar, range, view, copy, gather's idx …: those
// whose type is not determined are checked against `stated`, which other primitives ignore.)
CoreTypeId core_type_rule(CoreProgram *program, const CoreFn *fn, CorePrim prim, uint32_t count,
                          const CoreLetId *operands, const CoreAttr *attr, CoreTypeId stated,
                          Str *why);

// ---- passes ---------------------------------------------------------------------------------

// All rules of the header's first paragraphs; errors as text, one a line; true when there is none.
bool core_verify(CoreProgram *program, Arena *arena, Str *errors);

Str core_print(const CoreProgram *program, Arena *arena);
Str core_print_fn(const CoreProgram *program, CoreFnId fn, Arena *arena);
// Reads what core_print wrote. Null: malformed, with a diagnostic.
CoreProgram *core_read(Context *context, Arena *arena, uint32_t source);

// Folds scalar arithmetic (an elementwise let all of whose operands are scalar lets of rank 0
// becomes a scalar let, where that is exact by the rules of host scalars).
void core_fold(CoreProgram *program);
// Drops lets that nothing reads (parameters stay) and renumbers. Where the partition has been
// computed it is kept as it was: a dead outside reader stays a boundary.
void core_dce(CoreProgram *program);
// Computes the fusion partition of every function (see partition.c for the growth order).
void core_partition(CoreProgram *program);
const char *core_remark_text(CoreRemarkKind kind);
// The nodes of a group's expression, in which a value read twice stands twice; above CORE_GROUP_MAX
// it is not exact. 1 for a let in no group.
enum { CORE_GROUP_MAX = 64 };
uint64_t core_group_nodes(const CoreFn *fn, CoreLetId root);
// Does the primitive have attributes? Lets have an attr exactly then.
bool core_prim_has_attr(CorePrim prim);
// Which axes its attributes name: none, attr.axis or the set attr.axes, of the first operand's type
// (pick_vjp: of the result's).
typedef enum CoreAxes { CORE_NO_AXES, CORE_ONE_AXIS, CORE_SET_OF_AXES } CoreAxes;
CoreAxes core_prim_axes(CorePrim prim);

#endif
