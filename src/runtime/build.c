// Building a program: the walk over Core at concrete shapes that lists the launches.
//
// A let's value is a tensor in a buffer, a host scalar, a range, or a list of such (the leaves of a
// parameter tree, the parts of a tuple). Lets that launch nothing only make new views of buffers;
// each let that launches makes a nest and a buffer for its result. Scalars and ranges stay what
// they are as operands of a nest; where they leave their function (an argument, a part of a tuple,
// a result) or are an operand by index, they become constants in memory.
#include "core/launch.h"
#include "realize/epilogue.h"
#include "runtime/program.h"

#include <stdlib.h>

// Where the block of a program that is only looked at would begin: nothing lies there.
#define LOOK_BLOCK ((uintptr_t)1 << 62)

typedef struct Value Value;
struct Value {
    RlzValue at;     // how the tensor lies
    uint32_t buffer; // MEMORY
    uint32_t count;  // lists: parts
    Value *parts;
};

typedef struct Frame {
    const CoreFn *fn;
    CoreFnId id;
    CoreFrame dims;
    Value *values;      // by let
    CoreLetId *product; // by let: an add whose launch is this product's; null: there is none so far
} Frame;

typedef struct Builder {
    RtProgram *program;
    CoreProgram *core;
    Arena *arena;
    const Frame *entry;
    bool failed;
} Builder;

// ---- values ---------------------------------------------------------------------------------

static void fail_size(Builder *b, Span span, CoreConcrete failure, DimId missing) {
    Str why = core_concrete_text(b->core, failure, missing, b->arena);
    diag(&b->core->context->diags, E6002, span, why.at);
    b->failed = true;
}

static bool concrete(Builder *b, const Frame *frame, CoreTypeId type, Span span, Shape *shape,
                     int64_t *range) {
    DimId missing = 0;
    CoreConcrete result = core_concrete(b->core, type, &frame->dims, shape, range, &missing);
    if (result == CORE_CONCRETE_OK)
        return true;
    fail_size(b, span, result, missing);
    return false;
}

static uint32_t buffer_add(Builder *b, size_t bytes, void *external) {
    RtBuffer buffer = {.bytes = bytes, .external = external, .first = b->program->launches.count};
    buffer.last = buffer.first;
    vec_push(b->arena, &b->program->buffers, buffer);
    return b->program->buffers.count - 1;
}

static Value external_value(Builder *b, Tensor tensor, int64_t range) {
    Value value = {.at = {RLZ_MEMORY, tensor.type, tensor.shape, .range = range}};
    size_t bytes = (size_t)shape_count(&tensor.shape) * dtype_size(tensor.type);
    value.buffer = buffer_add(b, bytes, tensor.data);
    return value;
}

static Value value_of_argument(Builder *b, const Frame *frame, const CoreValue *argument,
                               CoreTypeId type, Span span) {
    CoreKind kind = core_type(b->core, type)->kind;
    if (kind == CORE_REAL || kind == CORE_IDX) {
        Shape shape;
        int64_t range;
        if (!concrete(b, frame, type, span, &shape, &range))
            return (Value){0};
        check_that(shape_same_extents(&shape, &argument->tensor.shape));
        return external_value(b, argument->tensor, range);
    }
    Value value = {.count = argument->count,
                   .parts = arena_array(b->arena, Value, argument->count)};
    for (uint32_t i = 0; i < argument->count; i++) {
        const CoreValue *part = &argument->parts[i];
        if (kind == CORE_TUPLE)
            value.parts[i] =
                value_of_argument(b, frame, part, core_type(b->core, type)->part[i], span);
        else
            value.parts[i] = external_value(b, part->tensor, 0);
    }
    return value;
}

static bool scalar_has_hyper(const CoreProgram *core, CoreScalar scalar) {
    const CoreScalarNode *node = core_scalar(core, scalar);
    switch (node->kind) {
    case CORE_SCALAR_HYPER:
        return true;
    case CORE_SCALAR_RATIONAL:
    case CORE_SCALAR_EXTENT:
        return false;
    case CORE_SCALAR_APPLY:
    case CORE_SCALAR_POWER:
        return scalar_has_hyper(core, node->a) || (node->b && scalar_has_hyper(core, node->b));
    }
    bug("a scalar of no kind: %d", (int)node->kind);
}

static double scalar_number(Builder *b, const Frame *frame, CoreScalar scalar, DType type,
                            Span span) {
    const RtOptions *options = &b->program->options;
    double number;
    if (core_scalar_value(b->core, scalar, frame->dims.by_dim, options->hyper, options->hyper_data,
                          type, &number))
        return number;
    diag(&b->core->context->diags, E6003, span, core_scalar_text(b->core, scalar, b->arena).at);
    b->failed = true;
    return 0;
}

// A host scalar of hyperparameters in memory, in the type in which it is read.
static Value cell_value(Builder *b, const Frame *frame, CoreScalar scalar, DType type, Span span) {
    for (uint32_t i = 0; i < b->program->cells.count; i++) {
        const RtCell *cell = &b->program->cells.at[i];
        if (cell->scalar == scalar && cell->type == type && cell->by_dim == frame->dims.by_dim)
            return external_value(b, (Tensor){type, shape_row_major(0, NULL), cell->at}, 0);
    }
    Tensor tensor = tensor_new(b->arena, type, 0, NULL);
    tensor_set(&tensor, 0, scalar_number(b, frame, scalar, type, span));
    RtCell cell = {scalar, type, frame->dims.by_dim, tensor.data};
    vec_push(b->arena, &b->program->cells, cell);
    return external_value(b, tensor, 0);
}

// The value of a let where it has to lie in memory: a scalar is rounded to its site's storage, a
// range is written out.
static Value memory_value(Builder *b, const Frame *frame, CoreLetId let) {
    Value *value = &frame->values[let];
    Span span = core_let(frame->fn, let)->span;
    if (value->parts || value->at.source == RLZ_MEMORY)
        return *value;
    if (value->at.source == RLZ_CONSTANT) {
        DType type = b->program->options.arithmetic->storage[frame->id][let];
        if (scalar_has_hyper(b->core, value->at.scalar))
            return cell_value(b, frame, value->at.scalar, type, span);
        Tensor tensor = tensor_new(b->arena, type, value->at.shape.rank, value->at.shape.extent);
        tensor_set(&tensor, 0, scalar_number(b, frame, value->at.scalar, type, span));
        return external_value(b, tensor, 0);
    }
    const Shape *shape = &value->at.shape;
    Tensor tensor = tensor_new(b->arena, value->at.type, shape->rank, shape->extent);
    int64_t count = shape_count(shape);
    for (int64_t i = 0; i < count; i++)
        tensor_set(&tensor, i, (double)shape_offset(shape, i));
    return external_value(b, tensor, value->at.range);
}

// ---- lets that launch nothing ---------------------------------------------------------------

static Value view_value(Builder *b, const Frame *frame, CoreLetId let) {
    Value value = frame->values[core_operand(frame->fn, let, 0)];
    Shape shape;
    int64_t range;
    const CoreLet *at = core_let(frame->fn, let);
    if (!concrete(b, frame, at->type, at->span, &shape, &range))
        return (Value){0};
    bool fits = shape_view(&value.at.shape, &shape);
    check_that(fits);
    value.at.shape = shape;
    return value;
}

static Value field_value(Builder *b, const Frame *frame, CoreLetId let) {
    const CoreAttr *attr = core_let(frame->fn, let)->attr;
    CoreLetId base = core_operand(frame->fn, let, 0);
    CoreTree tree = core_type(b->core, core_let(frame->fn, base)->type)->tree;
    uint32_t first, leaves;
    bool found = core_leaf_range(b->core, tree, attr->path_count, attr->path, &first, &leaves);
    check_that(found);
    Value *parts = frame->values[base].parts + first;
    CoreKind kind = core_type(b->core, core_let(frame->fn, let)->type)->kind;
    return kind == CORE_PARAMS ? (Value){.count = leaves, .parts = parts} : parts[0];
}

static Value permuted_value(const Builder *b, const Frame *frame, CoreLetId let) {
    CoreLetId source = core_operand(frame->fn, let, 0);
    Value value = frame->values[source];
    const CoreType *type = core_type(b->core, core_let(frame->fn, source)->type);
    Shape from = value.at.shape;
    uint32_t first[RANK_MAX + 1], axis = 0;
    core_axis_places(type, frame->dims.pack_rank, first);
    for (uint32_t i = 0; i < type->rank; i++) {
        uint32_t moved = core_let(frame->fn, let)->attr->order[i];
        for (uint32_t c = first[moved]; c < first[moved + 1]; c++, axis++) {
            value.at.shape.extent[axis] = from.extent[c];
            value.at.shape.stride[axis] = from.stride[c];
        }
    }
    return value;
}

// The leaves of the fields, in order.
static Value tree_value(Builder *b, const Frame *frame, CoreLetId let) {
    const CoreLet *at = core_let(frame->fn, let);
    uint32_t leaves = core_leaf_count(b->core, core_type(b->core, at->type)->tree);
    Value value = {.parts = arena_array(b->arena, Value, leaves + 1)};
    for (uint32_t i = 0; i < at->count; i++) {
        Value field = memory_value(b, frame, core_operand(frame->fn, let, i));
        if (!field.parts)
            value.parts[value.count++] = field;
        for (uint32_t leaf = 0; leaf < field.count; leaf++)
            value.parts[value.count++] = field.parts[leaf];
    }
    return value;
}

static Value free_value(Builder *b, const Frame *frame, CoreLetId let) {
    const CoreLet *at = core_let(frame->fn, let);
    switch (at->prim) {
    case CORE_scalar:
        return (Value){.at = {.source = RLZ_CONSTANT, .scalar = at->attr->scalar}};
    case CORE_field:
        return field_value(b, frame, let);
    case CORE_view:
        return view_value(b, frame, let);
    case CORE_range: {
        Value value = {.at = {.source = RLZ_IOTA}};
        if (concrete(b, frame, at->type, at->span, &value.at.shape, &value.at.range))
            value.at.type = dtype_of_bound((uint64_t)value.at.range);
        return value;
    }
    case CORE_tuple: {
        Value value = {.count = at->count, .parts = arena_array(b->arena, Value, at->count + 1)};
        for (uint32_t i = 0; i < at->count; i++)
            value.parts[i] = memory_value(b, frame, core_operand(frame->fn, let, i));
        return value;
    }
    case CORE_tree:
        return tree_value(b, frame, let);
    case CORE_item:
        return frame->values[core_operand(frame->fn, let, 0)].parts[at->attr->number];
    default:
        bug("%s is no primitive that launches nothing", core_prims[at->prim].text);
    }
}

// ---- launches -------------------------------------------------------------------------------

typedef struct NestData {
    Builder *b;
    const Frame *frame;
    CoreLetId root;
    int64_t leaf; // −1: not over a tree
    DType arithmetic;
    Value *memory; // by let: values put into memory for this nest; null: none so far
    Span span;
} NestData;

static const Value *operand_value(NestData *data, CoreLetId let) {
    const Value *value = &data->frame->values[let];
    if (value->parts)
        return &value->parts[data->leaf];
    CoreClass class = core_prims[core_let(data->frame->fn, data->root)->prim].class;
    bool cell =
        value->at.source == RLZ_CONSTANT && scalar_has_hyper(data->b->core, value->at.scalar);
    if (value->at.source == RLZ_MEMORY || (class == CORE_ELEMENTWISE && !cell))
        return value;
    if (!data->memory)
        data->memory = arena_array(data->b->arena, Value, data->frame->fn->lets.count);
    Value *stored = &data->memory[let];
    if (!stored->buffer)
        *stored =
            cell ? cell_value(data->b, data->frame, value->at.scalar, data->arithmetic, data->span)
                 : memory_value(data->b, data->frame, let);
    return stored;
}

static RlzValue nest_value(void *data, CoreLetId let) {
    return operand_value(data, let)->at;
}

static double nest_round(void *data, CoreScalar scalar, DType type) {
    NestData *nest = data;
    return scalar_number(nest->b, nest->frame, scalar, type, nest->span);
}

// The kernel of a nest under its layout, from the program's cache.
static RtKernel *kernel_of(Builder *b, const RlzNest *nest, const RlzLayout *layout) {
    RtProgram *program = b->program;
    StrBuf key = {.arena = b->arena};
    buf_add(&key, rlz_nest_text(nest, b->arena));
    buf_format(&key, "\ntarget %u ", program->options.target);
    buf_add(&key, rlz_layout_text(nest, layout, b->arena));
    bool fresh;
    uint32_t *slot = map_slot(program->kernel_of, key.at, key.size, &fresh);
    if (!fresh)
        return program->kernels.at[*slot];
    *slot = program->kernels.count;
    RtKernel *kernel = arena_new_of(b->arena, RtKernel);
    vec_push(b->arena, &program->kernels, kernel);
    if (program->options.depth == RT_TO_COUNT && !program->options.plan)
        return kernel;
    kernel->kernel = krn_lower(nest, layout, b->arena, b->core->context->names);
    kernel->scratch = krn_scratch_size(kernel->kernel);
#ifndef NDEBUG
    Str errors;
    if (!krn_verify(kernel->kernel, b->arena, &errors))
        bug("a lowered kernel does not verify:\n%s\n%s", errors.at,
            krn_print(kernel->kernel, b->arena).at);
#endif
    return kernel;
}

// The layout of the nest, by the plan, and its kernel; false: the plan's does not fit.
static bool choose_kernel(Builder *b, RtLaunch *launch) {
    const RtOptions *options = &b->program->options;
    uint32_t workers = options->pool ? pool_workers(options->pool) : 1;
    RlzMachine machine = {options->target, workers, options->backend == RT_NATIVE};
    if (!rlz_plan_layout(options->plan, launch->fn, launch->let, launch->nest, &machine, b->arena,
                         &launch->layout))
        return false;
    launch->kernel = kernel_of(b, launch->nest, &launch->layout);
    const Kernel *kernel = launch->kernel->kernel;
    if (!kernel)
        return true;
    launch->workers =
        (uint32_t)MIN((int64_t)MIN(launch->layout.split_workers, workers), kernel->split_count);
    launch->workers = MAX(launch->workers, 1);
    return rlz_plan_split(options->plan, launch->fn, launch->let, launch->nest, &launch->layout,
                          kernel->split_count);
}

// A nest with what it reads and writes.
typedef struct Part {
    NestData data;
    RlzNestInput input;
    const RlzNest *nest;
    const CoreLetId *operands; // by the nest's inputs
    Value value;
} Part;

// The buffers that a launch uses for a nest.
static void use_part(Builder *b, Part *part, RtUse *use) {
    RtProgram *program = b->program;
    for (uint32_t i = 0; i < part->nest->inputs; i++) {
        if (part->nest->input[i].source != RLZ_MEMORY)
            continue;
        uint32_t buffer = operand_value(&part->data, part->operands[i])->buffer;
        program->buffers.at[buffer].last = program->launches.count;
        use->buffer[use->count++] = buffer;
    }
    RtBuffer *output = &program->buffers.at[part->value.buffer];
    output->first = output->last = program->launches.count;
    use->buffer[use->count++] = part->value.buffer;
}

// A launch of a nest: of one part, or of the parts that are its leaves.
static void launch_add(Builder *b, const RlzNest *nest, uint32_t parts, Part *part) {
    RtProgram *program = b->program;
    const NestData *data = &part->data;
    RtLaunch launch = {.fn = data->frame->id,
                       .let = data->root,
                       .leaf = data->leaf < 0 ? 0 : (uint32_t)data->leaf,
                       .nest = nest,
                       .workers = 1};
    if (!choose_kernel(b, &launch)) {
        b->failed = true;
        return;
    }
    RtUse use = {.buffer = arena_array(b->arena, uint32_t, parts * (nest->inputs + 1))};
    for (uint32_t i = 0; i < parts; i++)
        use_part(b, &part[i], &use);
    if (launch.kernel->scratch)
        use.scratch = buffer_add(b, launch.kernel->scratch * launch.workers, NULL);
    vec_push(b->arena, &program->launches, launch);
    vec_push(b->arena, &program->uses, use);
    program->summary.flops += rlz_nest_flops(nest);
    program->summary.bytes += rlz_nest_bytes(nest);
}

// The nest of a let (or of one leaf of it), and its value without a buffer. False: it has no size.
static bool describe_nest(Builder *b, const Frame *frame, CoreLetId let, CoreTypeId type,
                          int64_t leaf, Part *part) {
    NestData *data = &part->data;
    RlzNestInput *input = &part->input;
    const CoreLet *at = core_let(frame->fn, let);
    const CoreArithmetic *arithmetic = b->program->options.arithmetic;
    DType storage = arithmetic->storage[frame->id][let];
    *data = (NestData){.b = b,
                       .frame = frame,
                       .root = let,
                       .leaf = leaf,
                       .arithmetic = dtype_arithmetic(storage),
                       .span = at->span};
    *input = (RlzNestInput){.program = b->core,
                            .fn = frame->id,
                            .root = let,
                            .arithmetic = arithmetic,
                            .value = nest_value,
                            .round = nest_round,
                            .data = data,
                            .output = {.source = RLZ_MEMORY},
                            .leaf = leaf >= 0};
    RlzValue *output = &input->output;
    if (!concrete(b, frame, type, at->span, &output->shape, &output->range))
        return false;
    output->type = core_type(b->core, type)->kind == CORE_IDX
                       ? dtype_of_bound((uint64_t)output->range)
                       : storage;
    part->value = (Value){.at = *output};
    return true;
}

// The nest that was described, and a buffer for its value.
static void make_part(Builder *b, Part *part) {
    const RlzValue *at = &part->value.at;
    part->value.buffer =
        buffer_add(b, (size_t)shape_count(&at->shape) * dtype_size(at->type), NULL);
    part->nest = rlz_nest_make(&part->input, b->arena, &part->operands);
}

// The launch of a let's nest; its value.
static Value launch_value(Builder *b, const Frame *frame, CoreLetId let) {
    Part part = {0};
    if (!describe_nest(b, frame, let, core_let(frame->fn, let)->type, -1, &part))
        return part.value;
    make_part(b, &part);
    launch_add(b, part.nest, 1, &part);
    return part.value;
}

// An add whose product has it as its epilogue: the product's kernel, at its site.
static Value launch_epilogue(Builder *b, const Frame *frame, CoreLetId add) {
    Part part = {0};
    CoreLetId product = frame->product[add], left = core_operand(frame->fn, add, 0);
    CoreTypeId type = core_let(frame->fn, product)->type;
    if (!describe_nest(b, frame, product, type, -1, &part))
        return part.value;
    part.input.epilogue = left == product ? core_operand(frame->fn, add, 1) : left;
    make_part(b, &part);
    launch_add(b, part.nest, 1, &part);
    return part.value;
}

// Does the plan give this product an epilogue? Then it launches nothing, and the add does.
static bool has_epilogue(Builder *b, Frame *frame, CoreLetId let) {
    const RtOptions *options = &b->program->options;
    const CoreLet *at = core_let(frame->fn, let);
    if (!options->plan || core_prims[at->prim].class != CORE_CONTRACTION)
        return false;
    Part part = {0};
    RlzEpilogue epilogue;
    if (!describe_nest(b, frame, let, at->type, -1, &part) ||
        !rlz_plan_epilogue(options->plan, frame->id, let,
                           rlz_nest_make(&part.input, b->arena, NULL), b->arena) ||
        !rlz_epilogue_find(b->core, frame->id, let, options->arithmetic, &epilogue))
        return false;
    if (!frame->product)
        frame->product = arena_array(b->arena, CoreLetId, frame->fn->lets.count);
    frame->product[epilogue.add] = let;
    return true;
}

static Value launch_tree(Builder *b, const Frame *frame, CoreLetId let) {
    CoreLeaf *leaves;
    CoreTree tree = core_type(b->core, core_let(frame->fn, let)->type)->tree;
    uint32_t count = core_tree_leaves(b->core, tree, b->arena, &leaves);
    Value value = {.count = count, .parts = arena_array(b->arena, Value, count + 1)};
    Part *part = arena_array(b->arena, Part, count + 1);
    const RlzNest **nest = arena_array(b->arena, const RlzNest *, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        if (!describe_nest(b, frame, let, leaves[i].type, i, &part[i]))
            return value;
        make_part(b, &part[i]);
        nest[i] = part[i].nest;
        value.parts[i] = part[i].value;
    }
    const RlzPlan *plan = b->program->options.plan;
    const RlzNest *all = plan && count ? rlz_nest_of_leaves(nest, count, b->arena) : NULL;
    if (all && rlz_plan_leaves(plan, frame->id, let, all, b->arena))
        launch_add(b, all, count, part);
    else
        for (uint32_t i = 0; i < count && !b->failed; i++)
            launch_add(b, nest[i], 1, &part[i]);
    return value;
}

// ---- functions ------------------------------------------------------------------------------

static Value call_value(Builder *b, const Frame *caller, CoreLetId let);

static void walk(Builder *b, Frame *frame) {
    const CoreFn *fn = frame->fn;
    bool fusion = b->program->options.arithmetic->fusion;
    for (CoreLetId let = fn->params; let < fn->lets.count && !b->failed; let++) {
        const CoreLet *at = core_let(fn, let);
        CoreClass class = core_prims[at->prim].class;
        if (class == CORE_FREE)
            frame->values[let] = free_value(b, frame, let);
        else if (class == CORE_CALL) {
            frame->values[let] = call_value(b, frame, let);
            if (frame == b->entry && !b->program->first_call)
                b->program->first_call = b->program->launches.count;
        } else if (core_permute_is_view(fn, let))
            frame->values[let] = permuted_value(b, frame, let);
        else if (!core_let_launches(fn, let, fusion))
            continue; // a member inside a group: only its group reads it
        else if (has_epilogue(b, frame, let))
            continue;
        else if (frame->product && frame->product[let])
            frame->values[let] = launch_epilogue(b, frame, let);
        else if (core_type(b->core, at->type)->kind == CORE_PARAMS)
            frame->values[let] = launch_tree(b, frame, let);
        else
            frame->values[let] = launch_value(b, frame, let);
    }
}

static Value call_value(Builder *b, const Frame *caller, CoreLetId let) {
    const CoreLet *at = core_let(caller->fn, let);
    Frame callee = {.fn = core_fn(b->core, at->attr->callee), .id = at->attr->callee};
    if (!core_callee_frame(b->core, at->attr, &caller->dims, b->arena, &callee.dims)) {
        fail_size(b, at->span, CORE_CONCRETE_OVERFLOW, 0);
        return (Value){0};
    }
    callee.values = arena_array(b->arena, Value, callee.fn->lets.count);
    for (uint32_t i = 0; i < at->count; i++)
        callee.values[i] = memory_value(b, caller, core_operand(caller->fn, let, i));
    walk(b, &callee);
    return b->failed ? (Value){0} : memory_value(b, &callee, callee.fn->result);
}

static void live_on(Builder *b, const Value *value) {
    if (!value->parts) {
        b->program->buffers.at[value->buffer].last = RT_FOREVER;
        return;
    }
    for (uint32_t i = 0; i < value->count; i++)
        live_on(b, &value->parts[i]);
}

// Does a nest, which uses these buffers, write each element of `output` after it has read the
// argument's there, and no other? Moves *buffers behind its own.
static bool nest_reads_in_step(const RlzNest *nest, const uint32_t **buffers, uint32_t argument,
                               uint32_t output) {
    bool reads = false, in_step = true;
    for (uint32_t i = 0; i < nest->inputs; i++) {
        const RlzOperand *input = &nest->input[i];
        if (input->source != RLZ_MEMORY || *(*buffers)++ != argument)
            continue;
        reads = true;
        in_step =
            in_step && input->type == nest->output.type &&
            memcmp(input->stride, nest->output.stride, nest->axes * sizeof *input->stride) == 0;
    }
    bool own = *(*buffers)++ == output;
    return !reads || (in_step && own);
}

static bool reads_in_step(const RtProgram *program, uint32_t launch, uint32_t argument,
                          uint32_t output) {
    const RlzNest *nest = program->launches.at[launch].nest;
    const uint32_t *buffers = program->uses.at[launch].buffer;
    if (nest->kind != RLZ_GROUP)
        return false;
    if (!nest->leaves)
        return nest_reads_in_step(nest, &buffers, argument, output);
    for (uint32_t i = 0; i < nest->leaves; i++)
        if (!nest_reads_in_step(nest->leaf[i], &buffers, argument, output))
            return false;
    return true;
}

// Puts a new value in the place of the argument it replaces, where nothing reads the old one later.
static void write_in_place(Builder *b, const Value *new, const Value *old) {
    if (new->parts) {
        for (uint32_t i = 0; i < new->count; i++)
            write_in_place(b, &new->parts[i], &old->parts[i]);
        return;
    }
    RtBuffer *to = &b->program->buffers.at[new->buffer];
    const RtBuffer *from = &b->program->buffers.at[old->buffer];
    bool same = new->at.type == old->at.type &&shape_same_extents(&new->at.shape, &old->at.shape) &&
                shape_is_contiguous(&new->at.shape) && shape_is_contiguous(&old->at.shape);
    if (!same || to->external || from->last > to->first)
        return;
    if (from->last < to->first || reads_in_step(b->program, to->first, old->buffer, new->buffer))
        to->external = from->external;
}

static void *buffer_memory(const RtProgram *program, uint32_t buffer) {
    const RtBuffer *at = &program->buffers.at[buffer];
    return at->external ? at->external : (char *)program->block + at->offset;
}

static CoreValue result_value(Builder *b, const Value *value, CoreTypeId type) {
    CoreValue result = {.type = type};
    if (!value->parts) {
        result.tensor =
            (Tensor){value->at.type, value->at.shape, buffer_memory(b->program, value->buffer)};
        return result;
    }
    const CoreType *tuple = core_type(b->core, type);
    CoreLeaf *leaves = NULL;
    if (tuple->kind == CORE_PARAMS)
        core_tree_leaves(b->core, tuple->tree, b->arena, &leaves);
    result.count = value->count;
    result.parts = arena_array(b->arena, CoreValue, value->count + 1);
    for (uint32_t i = 0; i < value->count; i++)
        result.parts[i] =
            result_value(b, &value->parts[i], leaves ? leaves[i].type : tuple->part[i]);
    return result;
}

// ---- after the walk: memory, code, pointers -------------------------------------------------

static void resolve(Builder *b) {
    RtProgram *program = b->program;
    for (uint32_t i = 0; i < program->launches.count; i++) {
        RtLaunch *launch = &program->launches.at[i];
        const RtUse *use = &program->uses.at[i];
        const Kernel *kernel = launch->kernel->kernel;
        launch->buffers = arena_array(b->arena, void **, launch->workers);
        for (uint32_t w = 0; w < launch->workers; w++) {
            void **at = launch->buffers[w] = arena_array(b->arena, void *, kernel->buffers.count);
            for (uint32_t j = 0; j < use->count; j++)
                at[j] = buffer_memory(program, use->buffer[j]);
            if (use->scratch)
                krn_scratch_place(
                    kernel,
                    (char *)buffer_memory(program, use->scratch) + w * launch->kernel->scratch, at);
        }
    }
}

static bool compile(Builder *b) {
    RtProgram *program = b->program;
    uint32_t count = program->kernels.count;
    double started = clock_seconds();
    if (program->options.backend == RT_KERNEL) {
        for (uint32_t i = 0; i < count; i++)
            program->kernels.at[i]->code = krn_code(program->kernels.at[i]->kernel, b->arena);
    } else {
        Kernel **kernels = arena_array(b->arena, Kernel *, count);
        NatFunction *functions = arena_array(b->arena, NatFunction, count);
        for (uint32_t i = 0; i < count; i++)
            kernels[i] = (Kernel *)program->kernels.at[i]->kernel;
        if (!nat_compile(program->options.native, count, kernels, functions))
            return false;
        for (uint32_t i = 0; i < count; i++)
            program->kernels.at[i]->function = functions[i];
    }
    program->summary.compile_seconds = clock_seconds() - started;
    return true;
}

static bool finish(Builder *b, const Value *arguments, const Value *result, CoreTypeId type) {
    RtProgram *program = b->program;
    program->summary.launches = program->launches.count;
    program->summary.kernels = program->kernels.count;
    live_on(b, result);
    for (uint32_t i = 0; program->options.update && i < result->count; i++)
        write_in_place(b, &result->parts[i], &arguments[program->options.update[i]]);
    rt_find_chains(program);
    size_t size = rt_plan(program->buffers.at, program->buffers.count, b->arena);
    program->summary.peak_bytes = size;
    if (program->options.depth == RT_TO_COUNT)
        return true;
    int64_t bytes = (int64_t)size;
    program->block = program->options.depth == RT_TO_LOOK
                         ? (void *)LOOK_BLOCK
                         : tensor_new(b->arena, U8, 1, &bytes).data;
    program->result = result_value(b, result, type);
    resolve(b);
    return program->options.depth == RT_TO_LOOK || compile(b);
}

RtProgram *rt_build(CoreProgram *core, Arena *arena, const RtOptions *options, CoreFnId entry,
                    const CoreValue *arguments, const int64_t *dims, uint32_t pack_rank,
                    const int64_t *pack) {
    double started = clock_seconds();
    RtProgram *program = arena_new_of(arena, RtProgram);
    program->core = core;
    program->arena = arena;
    program->options = *options;
    program->kernel_of = map_new(arena);
    vec_push(arena, &program->buffers, (RtBuffer){0});
    Builder b = {.program = program, .core = core, .arena = arena};
    Frame frame = {.fn = core_fn(core, entry), .id = entry};
    b.entry = &frame;
    frame.dims = core_entry_frame(core, frame.fn, options->dims, dims, pack_rank, pack, arena);
    frame.values = arena_array(arena, Value, frame.fn->lets.count);
    for (uint32_t i = 0; i < frame.fn->params && !b.failed; i++) {
        const CoreLet *param = core_let(frame.fn, i);
        frame.values[i] = value_of_argument(&b, &frame, &arguments[i], param->type, param->span);
    }
    if (!b.failed)
        walk(&b, &frame);
    if (b.failed)
        return NULL;
    Value result = memory_value(&b, &frame, frame.fn->result);
    if (b.failed || !finish(&b, frame.values, &result, core_let(frame.fn, frame.fn->result)->type))
        return NULL;
    program->summary.build_seconds = clock_seconds() - started - program->summary.compile_seconds;
    return program;
}
