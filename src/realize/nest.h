// Nests: the unit of plan, cost, lowering and measurement.
//
// A nest is one loop nest at concrete extents: what is computed (kind, primitive or group body),
// over which axes, and how each operand lies in memory. It is made from a let (or the root of a
// fusion group) of a function at concrete shapes, and knows nothing of names: two nests with equal
// text (rlz_nest_text) are the same nest and share kernels. Its lowering, its space of layouts and
// its price are functions of the nest and the layout alone.
//
// Axes are loop indices with a role. Every operand reaches memory through one stride an axis (0
// where it does not carry it), so operands may lie in any axis order. The roles of a contraction:
//   K      not in the output; several, in the order in which terms are added (first index slowest)
//   J      the last axis of the output that operand 1 alone carries
//   I      the last axis of the output that operand 0 alone carries
//   OUTER  every other axis of the output
// Axes are listed outer first, then I, J, K; each role may be empty. Elsewhere: PARALLEL axes (one
// result each, in the output's order), then the REDUCED axes in order. A ROW nest has exactly one
// REDUCED axis, but for the derivatives of maximum and minimum.
//
// pick_vjp is a GROUP, select(index = position, ct, 0), of the position along the axis as an IOTA
// input. The derivatives of maximum and minimum have a third input, the IOTA of the flat position
// among the reduced axes. scatter_add runs over the PARALLEL axes of a row and the REDUCED axes of
// the indices; its output is indexed, as the first operand of gather is.
//
// Outside contractions, axes of extent 1 are dropped and neighbours of one role that every operand
// walks as one are merged, which keeps the order of every sum. A contraction keeps its axes as they
// are, so that a plan's split depth, tile and k-block mean the same at every shape.
//
// A group over a parameter tree is a nest a leaf, or one nest of all leaves: then `leaf` holds the
// leaves' own nests, which say where their elements lie, and the nest itself is the group over all
// elements of the tree, one leaf behind the other. What counts elements (lanes, splits, work, the
// shape) sees a nest like others; lowering and the text go through the leaves.
//
// An output overlaps no input; but that of a group may take the very place of an input that it
// reads element by element in step (an optimizer's new parameters).
#ifndef PRESK_REALIZE_NEST_H
#define PRESK_REALIZE_NEST_H

#include "core/core.h"
#include "core/eval.h"

typedef enum RlzKind {
    RLZ_GROUP,       // an elementwise group, or a single elementwise let
    RLZ_CONTRACTION, // dot, ein and the derivatives of dot
    RLZ_REDUCTION,   // sum, mean, reduce_max, reduce_min, argmax
    RLZ_ROW,         // softmax, log_softmax, logsumexp, cross_entropy, derivatives of rows, maximum
                     // and minimum
    RLZ_INDEXED,     // gather, pick, scatter_add
    RLZ_PERMUTE,     // a copy in another axis order
    RLZ_KIND_COUNT
} RlzKind;
const char *rlz_kind_text(RlzKind kind);

typedef enum RlzRole { RLZ_OUTER, RLZ_I, RLZ_J, RLZ_K, RLZ_PARALLEL, RLZ_REDUCED } RlzRole;
const char *rlz_role_text(RlzRole role);

typedef enum RlzSource {
    RLZ_MEMORY,   // a buffer
    RLZ_CONSTANT, // a host scalar, already rounded to the arithmetic type that reads it
    RLZ_IOTA      // a range: the sum of stride times index; no memory
} RlzSource;

enum { RLZ_AXES_MAX = 2 * RANK_MAX };

typedef struct RlzOperand {
    RlzSource source;
    DType type;                   // MEMORY: as it lies there
    int64_t stride[RLZ_AXES_MAX]; // by nest axis, in elements
    int64_t range;                // index operands: an exclusive bound of their values, else 0
    double constant;              // CONSTANT
    int64_t indexed_stride;       // gather, pick: operand 0's stride and extent along the axis that
    int64_t indexed_extent;       // operand 1 indexes, which is no axis of the nest; scatter_add:
                                  // the output's
} RlzOperand;

// One member of a group, in let order. Operands are earlier nodes or inputs. A node whose prim is a
// comparison gives a truth value, 0 or 1 to its readers.
typedef struct RlzNode {
    CorePrim prim;
    int64_t number;     // pow
    DType arithmetic;   // F64 or F32 (core_let_arithmetic)
    int16_t operand[3]; // >= 0: input[operand]; < 0: node[−1 − operand]
} RlzNode;

typedef struct RlzNest {
    RlzKind kind;
    CorePrim prim;     // of the root
    DType arithmetic;  // of the root's site
    DType accumulate;  // running sums of products, sum and mean; the arithmetic type unless the
                       // realization says otherwise
    bool multiply_add; // products
    bool epilogue;     // a contraction whose input 2 is added to each result
    CoreReduce reduce;
    uint32_t axes;
    int64_t extent[RLZ_AXES_MAX];
    uint8_t role[RLZ_AXES_MAX]; // RlzRole
    uint32_t inputs;
    const RlzOperand *input;
    uint32_t nodes; // GROUP
    const RlzNode *node;
    RlzOperand output; // its `range` is the index bound where the result is an index
    bool of_tree;      // over a leaf of a parameter tree, or all of them: no part of the text
    uint32_t leaves;   // 0: one nest
    const struct RlzNest *const *leaf;
} RlzNest;

// How a value lies in memory when a nest reads or writes it. A scalar that changes from run to run
// (a hyperparameter, the step) is not CONSTANT but MEMORY of rank 0 and the arithmetic type.
typedef struct RlzValue {
    RlzSource source;
    DType type;        // MEMORY
    Shape shape;       // extents and strides; IOTA: the strides of the position
    int64_t range;     // index values: exclusive bound
    CoreScalar scalar; // CONSTANT
} RlzValue;

// The nest of let `root` of a function: a primitive that launches, or a group's root with all its
// members (a group that `arithmetic` does not fuse is a nest a member). `value(data, let)` gives
// the operands that the nest reads from outside, at concrete shapes; `output` is where the result
// goes, row-major, with the result's extents. Over a parameter tree both are one `leaf`'s.
// Constants are rounded by `round`, which the caller gives because only it knows dims and
// hyperparameters.
typedef struct RlzNestInput {
    const CoreProgram *program;
    CoreFnId fn;
    CoreLetId root;
    const CoreArithmetic *arithmetic;
    RlzValue (*value)(void *data, CoreLetId let);
    double (*round)(void *data, CoreScalar scalar, DType type);
    void *data;
    RlzValue output;
    bool leaf;
    CoreLetId epilogue; // a product's: the other operand of the add that it takes over, 0: none
} RlzNestInput;
// The nest, and in *lets (may be null) the let that each input reads, in the arena.
const RlzNest *rlz_nest_make(const RlzNestInput *input, Arena *arena, const CoreLetId **lets);

// The nest of all leaves of a group, of which each has its own nest; one or more.
const RlzNest *rlz_nest_of_leaves(const RlzNest *const *leaf, uint32_t leaves, Arena *arena);

// The number of the axis of this role (I, J, REDUCED of a row nest), −1 where it is empty.
int32_t rlz_nest_axis(const RlzNest *nest, RlzRole role);
// 1 where the role is empty.
int64_t rlz_nest_extent(const RlzNest *nest, RlzRole role);
// Elements from an operand's first to its last, which is the size of its buffer; 0: there are none.
int64_t rlz_operand_span(const RlzNest *nest, const RlzOperand *operand);

// A canonical text of everything that a kernel depends on; the kernel cache's key.
Str rlz_nest_text(const RlzNest *nest, Arena *arena);
// Weighted operations of the nest (prim.def), for the default thread split.
double rlz_nest_weight(const RlzNest *nest);
// Bytes read and written once each; floating-point operations (a product counts 2, an elementwise
// function 1).
double rlz_nest_bytes(const RlzNest *nest);
double rlz_nest_flops(const RlzNest *nest);

#endif
