// Elementwise nests of the reference evaluator: fusion groups and single lets.
//
// Members are evaluated in order over a block of result elements. A member's value stays in its
// arithmetic type; the root's is rounded once to storage. What comes from outside is rounded once
// to the arithmetic type of the member that reads it, host scalars from their exact value.
#include "core/eval_frame.h"

enum { BLOCK = 512 };

typedef struct Operand {
    int32_t member;  // ≥ 0: an earlier member
    bool constant;   // a host scalar
    double value;    // CONSTANT: in the reading member's arithmetic type
    Tensor tensor;   // otherwise
    Shape broadcast; // the result's extents with the operand's strides
} Operand;

typedef struct Member {
    MthProgram program;
    DType arithmetic;
    uint32_t count;
    Operand operand[3];
    double *value; // BLOCK elements
} Member;

static bool in_group(const EvalFrame *frame, CoreLetId let, CoreLetId root) {
    return let == root ||
           (frame->eval->arithmetic->fusion && frame->fn->group && frame->fn->group[let] == root);
}

static const CoreType *type_of(const EvalFrame *frame, CoreLetId let) {
    return core_type(frame->eval->program, core_let(frame->fn, let)->type);
}

// An operand from outside the group.
static Operand outside(const EvalFrame *frame, CoreLetId let, uint32_t leaf, DType arithmetic,
                       const CoreType *result, const Shape *shape) {
    const EvalValue *value = &frame->values[let];
    Operand operand = {.member = -1};
    if (value->kind == EVAL_SCALAR) {
        operand.constant = true;
        operand.value = core_eval_scalar(frame, let, value->scalar, arithmetic);
        return operand;
    }
    operand.tensor = core_eval_tensor(frame, let, leaf);
    operand.broadcast = *shape;
    memset(operand.broadcast.stride, 0, sizeof operand.broadcast.stride);
    if (value->kind == EVAL_LIST) // a leaf of the same tree as the result
        memcpy(operand.broadcast.stride, operand.tensor.shape.stride,
               sizeof operand.broadcast.stride);
    else if (operand.tensor.shape.rank > 0)
        core_eval_align(frame, type_of(frame, let), &operand.tensor.shape, result,
                        operand.broadcast.stride);
    return operand;
}

static Member make_member(const EvalFrame *frame, CoreLetId id, CoreLetId root, uint32_t leaf,
                          const Shape *shape, const int32_t *member_of) {
    const CoreLet *let = core_let(frame->fn, id);
    Member member = {.count = let->count, .arithmetic = core_eval_arithmetic(frame, id)};
    int64_t exponent = let->attr ? let->attr->number : 0;
    member.program =
        mth_program(frame->arena, core_prim_function(let->prim), exponent, member.arithmetic);
    member.value = arena_array(frame->arena, double, BLOCK);
    check_that(let->count <= COUNT_OF(member.operand));
    for (uint32_t i = 0; i < let->count; i++) {
        CoreLetId operand = core_operand(frame->fn, id, i);
        member.operand[i] =
            in_group(frame, operand, root)
                ? (Operand){.member = member_of[operand]}
                : outside(frame, operand, leaf, member.arithmetic, type_of(frame, id), shape);
    }
    return member;
}

// `n` values of an operand from result element `begin` on, in the arithmetic type.
static void load(const Operand *operand, const Member *members, DType arithmetic, int64_t begin,
                 uint32_t n, double *values) {
    for (uint32_t e = 0; e < n; e++) {
        double value = operand->value;
        if (operand->member >= 0)
            value = members[operand->member].value[e];
        else if (!operand->constant)
            value = dtype_get(operand->tensor.type, operand->tensor.data,
                              shape_offset(&operand->broadcast, begin + e));
        values[e] = mth_round(arithmetic, value);
    }
}

static void run_member(Member *member, const Member *members, int64_t begin, uint32_t n) {
    double args[3][BLOCK];
    for (uint32_t i = 0; i < member->count; i++)
        load(&member->operand[i], members, member->arithmetic, begin, n, args[i]);
    const double *const arrays[] = {args[0], args[1], args[2]};
    mth_run(&member->program, member->arithmetic, n, arrays, member->value);
}

void core_eval_group(const EvalFrame *frame, CoreLetId root, uint32_t leaf, Tensor *out) {
    int32_t *member_of = arena_array(frame->arena, int32_t, root + 1);
    Vec(Member) members = {0};
    for (CoreLetId let = 0; let <= root; let++) {
        if (!in_group(frame, let, root))
            continue;
        member_of[let] = (int32_t)members.count;
        Member member = make_member(frame, let, root, leaf, &out->shape, member_of);
        vec_push(frame->arena, &members, member);
    }
    int64_t count = shape_count(&out->shape);
    for (int64_t begin = 0; begin < count && !*frame->failed; begin += BLOCK) {
        uint32_t n = (uint32_t)MIN(count - begin, (int64_t)BLOCK);
        for (uint32_t m = 0; m < members.count; m++)
            run_member(&members.at[m], members.at, begin, n);
        for (uint32_t e = 0; e < n; e++)
            tensor_set(out, begin + e, vec_last(&members).value[e]);
    }
}
