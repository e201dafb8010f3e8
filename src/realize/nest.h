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
//   K      in both operands, not in the output; several, in the order in which terms are added
//   J      in operand 1 and the output: the last axis of the output that operand 1 alone carries
//   I      the last axis that operand 0 alone shares with the output
//   OUTER  every other axis of the output
// Axes are listed outer first, then I, J, K. Elsewhere: PARALLEL axes (one result each), then the
// REDUCED axes in order.
#ifndef PRESK_REALIZE_NEST_H
#define PRESK_REALIZE_NEST_H

#include "core/core.h"
#include "core/eval.h"

typedef enum RlzKind {
    RLZ_GROUP,       // an elementwise group, or a single elementwise let
    RLZ_CONTRACTION, // dot, ein and the derivatives of dot
    RLZ_REDUCTION,   // sum, mean, reduce_max, reduce_min, argmax
    RLZ_ROW,         // softmax, log_softmax, logsumexp, cross_entropy
    RLZ_INDEXED,     // gather, pick
    RLZ_PERMUTE,     // a copy in another axis order
    RLZ_KIND_COUNT
} RlzKind;
const char *rlz_kind_text(RlzKind kind);

typedef enum RlzRole { RLZ_OUTER, RLZ_I, RLZ_J, RLZ_K, RLZ_PARALLEL, RLZ_REDUCED } RlzRole;

typedef enum RlzSource {
    RLZ_MEMORY,   // a buffer
    RLZ_CONSTANT, // a host scalar, already rounded to the arithmetic type
    RLZ_IOTA      // a range: start + sum of stride times index; no memory
} RlzSource;

enum { RLZ_AXES_MAX = 16, RLZ_OPERANDS_MAX = 64, RLZ_NODES_MAX = 64 };

typedef struct RlzOperand {
    RlzSource source;
    DType type;                    // MEMORY: as it lies there
    int64_t stride[RLZ_AXES_MAX];  // by nest axis, in elements
    int64_t range;                 // index operands: an exclusive bound of their values, else 0
    double constant;               // CONSTANT
    int64_t start;                 // IOTA
    int64_t indexed_stride;        // gather, pick: operand 0's stride along the indexed axis;
    int64_t indexed_extent;        // cross_entropy's target uses them likewise
} RlzOperand;

// One member of a group, in let order. Operands are earlier nodes or inputs.
typedef struct RlzNode {
    CorePrim prim;
    int64_t number;      // pow
    DType arithmetic;    // F64 or F32 (core_let_arithmetic)
    int16_t operand[3];  // >= 0: inputs[operand]; < 0: nodes[−1 − operand]
} RlzNode;

typedef struct RlzNest {
    RlzKind kind;
    CorePrim prim;       // of the root
    DType arithmetic;    // of the root's site
    DType accumulate;    // running sums; the arithmetic type unless the realization says otherwise
    bool multiply_add;   // products
    CoreReduce reduce;
    bool fast_tail;      // reserved: false
    uint32_t axes;
    int64_t extent[RLZ_AXES_MAX];
    uint8_t role[RLZ_AXES_MAX]; // RlzRole
    uint32_t inputs;
    RlzOperand input[RLZ_OPERANDS_MAX];
    uint32_t nodes;      // GROUP
    RlzNode node[RLZ_NODES_MAX];
    RlzOperand output;   // its `range` is the index bound where the result is an index
} RlzNest;

// How a value lies in memory when a nest reads or writes it.
typedef struct RlzValue {
    RlzSource source;
    DType type;
    Shape shape;        // extents and strides
    int64_t range;      // index values: exclusive bound
    double constant;    // CONSTANT, unrounded exact value is in `scalar`
    CoreScalar scalar;  // CONSTANT
} RlzValue;

// The nest of let `root` of a function: a primitive that launches, or a group's root with all its
// members. `value(data, let)` gives the operands that the nest reads from outside, at concrete
// shapes; `output` is where the result goes (row-major). Constants are rounded by `round`, which
// the caller gives because only it knows the dims and hyperparameters. Axes that can be merged for
// all operands are merged, axes of extent 1 are dropped, where the kind allows it.
typedef struct RlzNestInput {
    CoreProgram *program;
    CoreFnId fn;
    CoreLetId root;
    const CoreArithmetic *arithmetic;
    RlzValue (*value)(void *data, CoreLetId let);
    double (*round)(void *data, CoreScalar scalar, DType type);
    void *data;
    RlzValue output;
    Shape result;        // the result's extents
} RlzNestInput;
// Fills nest and, for each nest input that is MEMORY, which let it reads (operand_let).
void rlz_nest_make(const RlzNestInput *input, RlzNest *nest, CoreLetId operand_let[RLZ_OPERANDS_MAX]);

// A canonical text of everything that a kernel depends on; the kernel cache's key.
Str rlz_nest_text(const RlzNest *nest, Arena *arena);
// Weighted operations of the nest, for the default thread split.
double rlz_nest_weight(const RlzNest *nest);
// Bytes read and written once each; floating-point operations (a product counts 2).
double rlz_nest_bytes(const RlzNest *nest);
double rlz_nest_flops(const RlzNest *nest);

#endif
