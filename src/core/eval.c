// The walk of the reference evaluator: lets in order, calls, and values that launch nothing.
#include "core/eval_frame.h"
#include "core/launch.h"

// ---- lets that launch nothing -------------------------------------------------------------------

static EvalValue tensor_value(Tensor tensor) {
    return (EvalValue){.kind = EVAL_TENSOR, .tensor = tensor};
}

static Tensor contiguous(const EvalFrame *frame, const Tensor *from) {
    Tensor copy = tensor_new(frame->arena, from->type, from->shape.rank, from->shape.extent);
    int64_t count = shape_count(&from->shape);
    for (int64_t i = 0; i < count; i++)
        tensor_set(&copy, i, tensor_get(from, i));
    return copy;
}

static EvalValue view_value(const EvalFrame *frame, CoreLetId let) {
    EvalValue value = frame->values[core_operand(frame->fn, let, 0)];
    Shape shape;
    if (!core_eval_shape(frame, let, &shape))
        return value;
    if (value.kind == EVAL_TENSOR && !shape_view(&value.tensor.shape, &shape))
        value.tensor = contiguous(frame, &value.tensor);
    value.tensor.shape = shape;
    return value;
}

static EvalValue field_value(const EvalFrame *frame, CoreLetId let) {
    const CoreProgram *program = frame->eval->program;
    const CoreAttr *attr = core_let(frame->fn, let)->attr;
    CoreLetId base = core_operand(frame->fn, let, 0);
    CoreTree tree = core_type(program, core_let(frame->fn, base)->type)->tree;
    uint32_t first, leaves;
    check_that(core_leaf_range(program, tree, attr->path_count, attr->path, &first, &leaves));
    EvalValue *parts = frame->values[base].parts + first;
    bool subtree = core_type(program, core_let(frame->fn, let)->type)->kind == CORE_PARAMS;
    return subtree ? (EvalValue){.kind = EVAL_LIST, .count = leaves, .parts = parts} : parts[0];
}

static EvalValue range_value(const EvalFrame *frame, CoreLetId let) {
    Tensor tensor;
    if (!core_eval_new(frame, let, core_let(frame->fn, let)->type, &tensor))
        return (EvalValue){0};
    for (int64_t i = 0; i < tensor.shape.extent[0]; i++)
        tensor_set(&tensor, i, (double)i);
    return tensor_value(tensor);
}

// The value as it leaves its function or enters another: a scalar lies in memory.
static EvalValue settled(const EvalFrame *frame, CoreLetId let) {
    const EvalValue *value = &frame->values[let];
    return value->kind == EVAL_SCALAR ? tensor_value(core_eval_tensor(frame, let, EVAL_NO_LEAF))
                                      : *value;
}

// The leaves of the fields, in order.
static EvalValue tree_value(const EvalFrame *frame, CoreLetId let) {
    const CoreLet *at = core_let(frame->fn, let);
    CoreTree tree = core_type(frame->eval->program, at->type)->tree;
    EvalValue value = {.kind = EVAL_LIST};
    value.parts = arena_array(frame->arena, EvalValue, core_leaf_count(frame->eval->program, tree));
    for (uint32_t i = 0; i < at->count; i++) {
        EvalValue field = settled(frame, core_operand(frame->fn, let, i));
        if (field.kind != EVAL_LIST)
            value.parts[value.count++] = field;
        for (uint32_t leaf = 0; field.kind == EVAL_LIST && leaf < field.count; leaf++)
            value.parts[value.count++] = field.parts[leaf];
    }
    return value;
}

static EvalValue free_value(const EvalFrame *frame, CoreLetId let) {
    const CoreLet *at = core_let(frame->fn, let);
    EvalValue tuple = {.kind = EVAL_LIST, .count = at->count};
    switch (at->prim) {
    case CORE_scalar:
        return (EvalValue){.kind = EVAL_SCALAR, .scalar = at->attr->scalar};
    case CORE_field:
        return field_value(frame, let);
    case CORE_view:
        return view_value(frame, let);
    case CORE_range:
        return range_value(frame, let);
    case CORE_tuple:
        tuple.parts = arena_array(frame->arena, EvalValue, at->count);
        for (uint32_t i = 0; i < at->count; i++)
            tuple.parts[i] = settled(frame, core_operand(frame->fn, let, i));
        return tuple;
    case CORE_tree:
        return tree_value(frame, let);
    case CORE_item:
        return frame->values[core_operand(frame->fn, let, 0)].parts[at->attr->number];
    default:
        bug("%s is no primitive that launches nothing", core_prims[at->prim].text);
    }
}

// A permute that contractions alone read: the operand's elements, unrounded.
static EvalValue permuted_value(const EvalFrame *frame, CoreLetId let) {
    Tensor tensor = core_eval_tensor(frame, core_operand(frame->fn, let, 0), EVAL_NO_LEAF);
    Shape shape;
    if (!core_eval_shape(frame, let, &shape))
        return tensor_value(tensor);
    Tensor out = tensor_new(frame->arena, tensor.type, shape.rank, shape.extent);
    core_eval_permute(frame, let, &out);
    return tensor_value(out);
}

// ---- launches -----------------------------------------------------------------------------------

static EvalValue launch(const EvalFrame *frame, CoreLetId let, CoreTypeId type, uint32_t leaf) {
    static void (*const evaluate[])(const EvalFrame *, CoreLetId, Tensor *) = {
        [CORE_REDUCTION] = core_eval_reduction,     [CORE_ROW] = core_eval_row,
        [CORE_CONTRACTION] = core_eval_contraction, [CORE_INDEXED] = core_eval_indexed,
        [CORE_PERMUTE] = core_eval_permute,
    };
    Tensor out;
    if (!core_eval_new(frame, let, type, &out))
        return (EvalValue){0};
    CoreClass class = core_prims[core_let(frame->fn, let)->prim].class;
    EvalFrame scratch = *frame; // what a nest needs meanwhile goes with it
    scratch.arena = arena_new(arena_heap(frame->arena), "launch");
    if (class == CORE_ELEMENTWISE)
        core_eval_group(&scratch, let, leaf, &out);
    else
        evaluate[class](&scratch, let, &out);
    arena_free(scratch.arena);
    CoreEval *eval = frame->eval;
    eval->launches++;
    if (eval->launched)
        eval->launched(eval->launched_data, frame->id, let);
    return tensor_value(out);
}

static EvalValue launch_tree(const EvalFrame *frame, CoreLetId let) {
    CoreProgram *program = frame->eval->program;
    CoreTree tree = core_type(program, core_let(frame->fn, let)->type)->tree;
    CoreLeaf *leaves;
    uint32_t count = core_tree_leaves(program, tree, frame->arena, &leaves);
    EvalValue value = {
        .kind = EVAL_LIST, .count = count, .parts = arena_array(frame->arena, EvalValue, count)};
    for (uint32_t i = 0; i < count && !*frame->failed; i++)
        value.parts[i] = launch(frame, let, leaves[i].type, i);
    return value;
}

// ---- functions ----------------------------------------------------------------------------------

static EvalValue call_value(const EvalFrame *caller, CoreLetId let);

static void walk(const EvalFrame *frame) {
    const CoreFn *fn = frame->fn;
    bool fusion = frame->eval->arithmetic->fusion;
    for (CoreLetId let = fn->params; let < fn->lets.count && !*frame->failed; let++) {
        const CoreLet *at = core_let(fn, let);
        CoreClass class = core_prims[at->prim].class;
        EvalValue *value = &frame->values[let];
        if (class == CORE_FREE)
            *value = free_value(frame, let);
        else if (class == CORE_CALL)
            *value = call_value(frame, let);
        else if (core_permute_is_view(fn, let))
            *value = permuted_value(frame, let);
        else if (!core_let_launches(fn, let, fusion))
            continue; // a member inside a group: the root evaluates it
        else if (core_type(frame->eval->program, at->type)->kind == CORE_PARAMS)
            *value = launch_tree(frame, let);
        else
            *value = launch(frame, let, at->type, EVAL_NO_LEAF);
    }
}

// A copy of a value in another arena, so that the frame which made it can go.
static EvalValue moved(const EvalValue *value, Arena *arena) {
    EvalValue copy = *value;
    if (value->kind == EVAL_TENSOR) {
        copy.tensor = tensor_new(arena, value->tensor.type, value->tensor.shape.rank,
                                 value->tensor.shape.extent);
        int64_t count = shape_count(&value->tensor.shape);
        for (int64_t i = 0; i < count; i++)
            tensor_set(&copy.tensor, i, tensor_get(&value->tensor, i));
    }
    copy.parts = arena_array(arena, EvalValue, value->count);
    for (uint32_t i = 0; i < value->count; i++)
        copy.parts[i] = moved(&value->parts[i], arena);
    return copy;
}

// Evaluates a frame whose parameters are set; its arena is freed.
static EvalValue run(EvalFrame *frame, Arena *arena) {
    walk(frame);
    EvalValue result = {0};
    if (!*frame->failed) {
        result = settled(frame, frame->fn->result);
        result = moved(&result, arena);
    }
    arena_free(frame->arena);
    return result;
}

static EvalFrame frame_new(CoreEval *eval, CoreFnId id, bool *failed) {
    EvalFrame frame = {.eval = eval, .fn = core_fn(eval->program, id), .id = id, .failed = failed};
    frame.arena = arena_new(arena_heap(eval->arena), "call");
    frame.values = arena_array(frame.arena, EvalValue, frame.fn->lets.count);
    return frame;
}

static EvalValue call_value(const EvalFrame *caller, CoreLetId let) {
    const CoreLet *at = core_let(caller->fn, let);
    const CoreProgram *program = caller->eval->program;
    EvalFrame callee = frame_new(caller->eval, at->attr->callee, caller->failed);
    if (!core_callee_frame(program, at->attr, &caller->dims, callee.arena, &callee.dims)) {
        diag(&program->context->diags, E6002, at->span,
             core_concrete_text(program, CORE_CONCRETE_OVERFLOW, 0, caller->arena).at);
        *caller->failed = true;
    }
    for (uint32_t i = 0; i < at->count; i++)
        callee.values[i] = settled(caller, core_operand(caller->fn, let, i));
    return run(&callee, caller->arena);
}

// ---- the entry ----------------------------------------------------------------------------------

static EvalValue value_in(const CoreValue *value, Arena *arena) {
    if (!value->count)
        return value->parts ? (EvalValue){.kind = EVAL_LIST} : tensor_value(value->tensor);
    EvalValue list = {.kind = EVAL_LIST,
                      .count = value->count,
                      .parts = arena_array(arena, EvalValue, value->count)};
    for (uint32_t i = 0; i < value->count; i++)
        list.parts[i] = value_in(&value->parts[i], arena);
    return list;
}

static CoreValue value_out(CoreEval *eval, const EvalValue *value, CoreTypeId type) {
    CoreValue out = {.type = type, .tensor = value->tensor, .count = value->count};
    if (value->kind != EVAL_LIST)
        return out;
    const CoreType *list = core_type(eval->program, type);
    CoreLeaf *leaves = NULL;
    if (list->kind == CORE_PARAMS)
        core_tree_leaves(eval->program, list->tree, eval->arena, &leaves);
    out.parts = arena_array(eval->arena, CoreValue, value->count);
    for (uint32_t i = 0; i < value->count; i++)
        out.parts[i] = value_out(eval, &value->parts[i], leaves ? leaves[i].type : list->part[i]);
    return out;
}

CoreValue core_eval(CoreEval *eval, CoreFnId fn, const CoreValue *arguments, const int64_t *dims,
                    uint32_t pack_rank, const int64_t *pack) {
    bool failed = false;
    EvalFrame frame = frame_new(eval, fn, &failed);
    frame.dims =
        core_entry_frame(eval->program, frame.fn, eval->dims, dims, pack_rank, pack, frame.arena);
    for (uint32_t i = 0; i < frame.fn->params; i++)
        frame.values[i] = value_in(&arguments[i], frame.arena);
    CoreTypeId type = core_let(frame.fn, frame.fn->result)->type;
    EvalValue result = run(&frame, eval->arena);
    return failed ? (CoreValue){0} : value_out(eval, &result, type);
}
