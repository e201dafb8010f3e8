// The builder: appends instructions to an open kernel, with the types that kop.def's rules give.
// Leaves tables that krn_verify can walk; a wrong type aborts, since only presk itself calls this.
#include "kernel/kernel.h"

#include <math.h>

Kernel *krn_new(Arena *arena, Names *names, const char *name) {
    Kernel *kernel = arena_new_of(arena, Kernel);
    kernel->arena = arena;
    kernel->names = names;
    kernel->name = name_of_c(names, name);
    return kernel;
}

KrnBuilder krn_builder(Kernel *kernel, Names *names) {
    check_that(kernel->names == names);
    return (KrnBuilder){.kernel = kernel, .names = names};
}

// A letter or _, then letters, digits and _: what krn_read reads.
static bool is_buffer_name(const char *name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return *name && !(*name >= '0' && *name <= '9') && strspn(name, letters) == strlen(name);
}

uint32_t krn_buffer(KrnBuilder *b, const char *name, DType type, int64_t size, int64_t range,
                    KrnRole role) {
    check_that(is_buffer_name(name) && size >= 0);
    check_that(range >= 0 && (range == 0 || !dtype_is_real(type)));
    KrnBuffer buffer = {name_of_c(b->names, name), type, size, range, role};
    vec_push(b->kernel->arena, &b->kernel->buffers, buffer);
    return b->kernel->buffers.count - 1;
}

static KrnValue append(KrnBuilder *b, KrnInst inst) {
    vec_push(b->kernel->arena, &b->kernel->insts, inst);
    return b->kernel->insts.count - 1;
}

KrnType krn_type_of(const Kernel *kernel, KrnValue value) {
    check_that(value < kernel->insts.count);
    return kernel->insts.at[value].type;
}

// ---- constants ------------------------------------------------------------------------------

// Constants are compared by their bits, so that -0 is not +0.
static KrnValue constant(KrnBuilder *b, KrnInst inst) {
    const Kernel *kernel = b->kernel;
    for (KrnValue i = 0; i < kernel->insts.count; i++) {
        const KrnInst *old = &kernel->insts.at[i];
        if (old->op == KRN_LOOP)
            break;
        if (old->op == KRN_CONST && old->type.scalar == inst.type.scalar &&
            old->type.lanes == inst.type.lanes && old->integer == inst.integer)
            return i;
    }
    return append(b, inst);
}

KrnValue krn_const_float(KrnBuilder *b, KrnType type, double value) {
    check_that(type.scalar == KRN_F32 || type.scalar == KRN_F64);
    if (isnan(value))
        value = (double)NAN; // one NaN, since the text form has one
    else
        check_that(type.scalar == KRN_F64 || (double)(float)value == value);
    return constant(b, (KrnInst){.op = KRN_CONST, .type = type, .number = value});
}

KrnValue krn_const_int(KrnBuilder *b, KrnType type, int64_t value) {
    check_that(type.scalar == KRN_I1 || type.scalar == KRN_I32 || type.scalar == KRN_I64);
    check_that(type.scalar != KRN_I1 || value == 0 || value == 1);
    check_that(type.scalar != KRN_I32 || (value >= INT32_MIN && value <= INT32_MAX));
    return constant(b, (KrnInst){.op = KRN_CONST, .type = type, .integer = value});
}

// ---- operations -----------------------------------------------------------------------------

static KrnValue operation(KrnBuilder *b, KrnInst inst) {
    KrnValue operand[] = {inst.a, inst.b, inst.c};
    KrnType types[3] = {{0}};
    for (uint32_t i = 0; i < krn_arity(inst.op); i++)
        types[i] = krn_type_of(b->kernel, operand[i]);
    if (!krn_result_type(inst.op, types, &inst.type))
        bug("operands %s x%u, %s x%u, %s x%u do not fit `%s`", krn_scalar_text[types[0].scalar],
            types[0].lanes, krn_scalar_text[types[1].scalar], types[1].lanes,
            krn_scalar_text[types[2].scalar], types[2].lanes, krn_op_text[inst.op]);
    return append(b, inst);
}

KrnValue krn_op1(KrnBuilder *b, KrnOp op, KrnValue a) {
    check_that(krn_arity(op) == 1 && op != KRN_SHL && op != KRN_SHR);
    return operation(b, (KrnInst){.op = (uint8_t)op, .a = a});
}

KrnValue krn_op2(KrnBuilder *b, KrnOp op, KrnValue a, KrnValue b2) {
    check_that(krn_arity(op) == 2);
    return operation(b, (KrnInst){.op = (uint8_t)op, .a = a, .b = b2});
}

KrnValue krn_op3(KrnBuilder *b, KrnOp op, KrnValue a, KrnValue b2, KrnValue c) {
    check_that(krn_arity(op) == 3);
    return operation(b, (KrnInst){.op = (uint8_t)op, .a = a, .b = b2, .c = c});
}

KrnValue krn_shift(KrnBuilder *b, KrnOp op, KrnValue a, int64_t count) {
    check_that(op == KRN_SHL || op == KRN_SHR);
    int64_t width = krn_type_of(b->kernel, a).scalar == KRN_I64 ? 64 : 32;
    check_that(count >= 0 && count < width);
    return operation(b, (KrnInst){.op = (uint8_t)op, .a = a, .integer = count});
}

KrnValue krn_splat(KrnBuilder *b, KrnValue scalar, uint32_t lanes) {
    KrnType type = krn_type_of(b->kernel, scalar);
    check_that(type.scalar != KRN_NONE && type.lanes == 1);
    return append(b, (KrnInst){.op = KRN_SPLAT, .type = krn_type(type.scalar, lanes), .a = scalar});
}

KrnValue krn_convert(KrnBuilder *b, KrnScalar to, KrnValue a) {
    KrnType type = krn_type_of(b->kernel, a);
    check_that(krn_can_convert(type.scalar, to));
    return append(b, (KrnInst){.op = KRN_CONVERT, .type = krn_type(to, type.lanes), .a = a});
}

KrnValue krn_iota(KrnBuilder *b, uint32_t lanes) {
    return append(b, (KrnInst){.op = KRN_IOTA, .type = krn_type(KRN_I64, lanes)});
}

// ---- memory ---------------------------------------------------------------------------------

KrnIndex krn_index(uint32_t buffer, int64_t offset) {
    return (KrnIndex){.buffer = buffer, .offset = offset};
}

void krn_index_add(KrnIndex *index, int64_t coefficient, KrnValue value) {
    if (coefficient == 0)
        return;
    for (uint32_t i = 0; i < index->count; i++) {
        if (index->term[i].value == value) {
            int64_t *sum = &index->term[i].coefficient;
            check_that(!__builtin_add_overflow(*sum, coefficient, sum));
            if (index->term[i].coefficient == 0)
                index->term[i] = index->term[--index->count];
            return;
        }
    }
    check_that(index->count < COUNT_OF(index->term));
    index->term[index->count++] = (KrnTerm){coefficient, value};
}

static uint32_t address(KrnBuilder *b, const KrnIndex *index, int64_t lane_stride) {
    Kernel *kernel = b->kernel;
    check_that(index->buffer < kernel->buffers.count);
    KrnAddress address = {index->buffer, index->offset, kernel->terms.count, index->count,
                          lane_stride};
    for (uint32_t i = 0; i < index->count; i++) {
        KrnType type = krn_type_of(kernel, index->term[i].value);
        check_that(type.scalar == KRN_I64 && type.lanes == 1);
        vec_push(kernel->arena, &kernel->terms, index->term[i]);
    }
    vec_push(kernel->arena, &kernel->addresses, address);
    return kernel->addresses.count - 1;
}

KrnValue krn_load(KrnBuilder *b, const KrnIndex *index, uint32_t lanes, int64_t lane_stride) {
    check_that(lanes == 1 || lane_stride != 0);
    uint32_t at = address(b, index, lanes == 1 ? 1 : lane_stride);
    KrnScalar scalar = krn_load_scalar(b->kernel->buffers.at[index->buffer].type);
    return append(b, (KrnInst){.op = KRN_LOAD, .type = krn_type(scalar, lanes), .address = at});
}

void krn_store(KrnBuilder *b, const KrnIndex *index, int64_t lane_stride, KrnValue value,
               bool stream) {
    KrnType type = krn_type_of(b->kernel, value);
    check_that(type.lanes == 1 || lane_stride != 0);
    uint32_t at = address(b, index, type.lanes == 1 ? 1 : lane_stride);
    check_that(krn_can_store(type.scalar, b->kernel->buffers.at[index->buffer].type));
    append(b, (KrnInst){.op = KRN_STORE,
                        .flags = stream ? KRN_STREAM : 0,
                        .type = {KRN_NONE, 1},
                        .a = value,
                        .address = at});
}

void krn_prefetch(KrnBuilder *b, const KrnIndex *index) {
    uint32_t at = address(b, index, 1);
    append(b, (KrnInst){.op = KRN_PREFETCH, .type = {KRN_NONE, 1}, .address = at});
}

// ---- loops ----------------------------------------------------------------------------------

KrnValue krn_loop(KrnBuilder *b, int64_t begin, int64_t end, int64_t step, KrnShare share,
                  uint32_t count, const KrnValue *initial, KrnValue *carried) {
    Kernel *kernel = b->kernel;
    check_that(step >= 1);
    uint32_t number = kernel->loops.count;
    KrnValue value =
        append(b, (KrnInst){.op = KRN_LOOP, .type = krn_type(KRN_I64, 1), .loop = number});
    KrnLoop loop = {.begin = begin,
                    .end = end,
                    .step = step,
                    .share = share,
                    .before = share == KRN_SPLIT ? kernel->split_count : 0,
                    .loop = value,
                    .first = kernel->carries.count,
                    .count = count};
    for (uint32_t i = 0; i < count; i++) {
        KrnType type = krn_type_of(kernel, initial[i]);
        check_that(type.scalar != KRN_NONE && initial[i] < value);
        KrnCarry carry = {.initial = initial[i], .carry = value + 1 + i};
        carried[i] =
            append(b, (KrnInst){.op = KRN_CARRY, .type = type, .carry = kernel->carries.count});
        vec_push(kernel->arena, &kernel->carries, carry);
    }
    vec_push(kernel->arena, &kernel->loops, loop);
    vec_push(kernel->arena, &b->open, number);
    if (share == KRN_SPLIT)
        kernel->split_count += krn_loop_count(&loop);
    return value;
}

void krn_end(KrnBuilder *b, uint32_t count, const KrnValue *next, KrnValue *result) {
    Kernel *kernel = b->kernel;
    check_that(b->open.count > 0);
    uint32_t number = b->open.at[--b->open.count];
    KrnLoop *loop = &kernel->loops.at[number];
    check_that(loop->count == count);
    loop->last = append(b, (KrnInst){.op = KRN_END, .type = {KRN_NONE, 1}, .loop = number});
    for (uint32_t i = 0; i < count; i++) {
        KrnCarry *carry = &kernel->carries.at[loop->first + i];
        KrnType type = krn_type_of(kernel, carry->carry), given = krn_type_of(kernel, next[i]);
        check_that(type.scalar == given.scalar && type.lanes == given.lanes);
        carry->next = next[i];
        carry->result = loop->last + 1 + i;
        result[i] = append(b, (KrnInst){.op = KRN_RESULT, .type = type, .carry = loop->first + i});
    }
}
