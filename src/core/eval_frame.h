// The reference evaluator's values and frames. Internal to eval*.c.
#ifndef PRESK_CORE_EVAL_FRAME_H
#define PRESK_CORE_EVAL_FRAME_H

#include "core/concrete.h"
#include "core/eval.h"

typedef enum EvalKind {
    EVAL_TENSOR,
    EVAL_SCALAR, // a host scalar that no nest has read yet: rounded where it enters one
    EVAL_LIST    // the leaves of a parameter tree, the parts of a tuple
} EvalKind;

typedef struct EvalValue {
    EvalKind kind;
    Tensor tensor;     // SCALAR: its shape alone (a view of a scalar may have axes of extent 1)
    CoreScalar scalar; // SCALAR
    uint32_t count;    // LIST
    struct EvalValue *parts;
} EvalValue;

// One call of a function.
typedef struct EvalFrame {
    CoreEval *eval;
    const CoreFn *fn;
    CoreFnId id;
    CoreFrame dims;
    EvalValue *values; // by let
    Arena *arena;      // lives as long as the call
    bool *failed;      // a diagnostic was given; no value is used from then on
} EvalFrame;

enum { EVAL_NO_LEAF = UINT32_MAX };

DType core_eval_storage(const EvalFrame *frame, CoreLetId let);
DType core_eval_arithmetic(const EvalFrame *frame, CoreLetId let);

// The concrete shape of a let. False with a diagnostic where it has none.
bool core_eval_shape(const EvalFrame *frame, CoreLetId let, Shape *shape);
// A zeroed tensor for a value of this type at let's site; also false where it exceeds the machine's
// memory.
bool core_eval_new(const EvalFrame *frame, CoreLetId let, CoreTypeId type, Tensor *tensor);
// A host scalar rounded once to `type`; 0 with a diagnostic where it has no value.
double core_eval_scalar(const EvalFrame *frame, CoreLetId let, CoreScalar scalar, DType type);
// The value of a let, or of one leaf of it, as it lies in memory; a scalar is rounded to the
// storage type of its site.
Tensor core_eval_tensor(const EvalFrame *frame, CoreLetId let, uint32_t leaf);

// The strides of a tensor of type `from` aligned from the right with one of type `to`, by concrete
// axis of the latter: 0 where it is broadcast.
void core_eval_align(const EvalFrame *frame, const CoreType *from, const Shape *from_shape,
                     const CoreType *to, int64_t stride[RANK_MAX]);
// All elements in row-major order, rounded once to `type` (F64 or F32).
double *core_eval_load(const Tensor *tensor, DType type, Arena *arena);

// A tensor's axes parted in two: those of the mask `inner` (by concrete axis) and the rest, each in
// order, with the tensor's strides. The element of outer index i and inner index j lies at
// shape_offset(&outer, i) + shape_offset(&inner, j).
typedef struct EvalParted {
    Shape outer, inner;
} EvalParted;
EvalParted core_eval_part(const Shape *shape, const int64_t *stride, uint64_t inner);
// The concrete axes of a set of symbolic axes, as bits.
uint64_t core_eval_axes(const EvalFrame *frame, const CoreType *type, uint64_t axes);

// One function of two operands (the second one ignored by functions of one) in one arithmetic type.
typedef struct EvalOperation {
    MthProgram program;
    DType type;
} EvalOperation;
EvalOperation core_eval_operation(const EvalFrame *frame, MthFunction function, DType type);
double core_eval_apply(const EvalOperation *operation, double a, double b);

// The sum of n terms (of the arithmetic or accumulation type) in the realization's order.
double core_eval_sum(const CoreArithmetic *arithmetic, DType type, int64_t count,
                     const double *terms);

// ---- nests: each writes the value of let's site to `out` -------------------------------------

// A group's root, or a single elementwise let; over one leaf of a tree, or EVAL_NO_LEAF.
void core_eval_group(const EvalFrame *frame, CoreLetId root, uint32_t leaf, Tensor *out);
void core_eval_reduction(const EvalFrame *frame, CoreLetId let, Tensor *out);
void core_eval_extreme_vjp(const EvalFrame *frame, CoreLetId let, Tensor *out);
void core_eval_row(const EvalFrame *frame, CoreLetId let, Tensor *out);
void core_eval_contraction(const EvalFrame *frame, CoreLetId let, Tensor *out);
void core_eval_indexed(const EvalFrame *frame, CoreLetId let, Tensor *out);
void core_eval_permute(const EvalFrame *frame, CoreLetId let, Tensor *out);

#endif
