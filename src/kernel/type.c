// Types of the kernel IR: the rules of kop.def as functions, shared by builder, reader and
// verifier.
#include "kernel/kernel.h"

#include <assert.h>

const char *const krn_op_text[KRN_OP_COUNT] = {
#define KOP(name, text, arity, rule, lane, meaning) [KRN_##name] = text,
#include "kernel/kop.def"
#undef KOP
};

const char *const krn_scalar_text[] = {"none", "i1", "i32", "i64", "f32", "f64"};
static_assert(KRN_I1 == 1 && KRN_F64 == 5, "the order of krn_scalar_text");

static const uint8_t arities[] = {
#define KOP(name, text, arity, rule, lane, meaning) [KRN_##name] = arity,
#include "kernel/kop.def"
#undef KOP
};

static const char *const rules[] = {
#define KOP(name, text, arity, rule, lane, meaning) [KRN_##name] = #rule,
#include "kernel/kop.def"
#undef KOP
};

bool krn_has_rule(KrnOp op) {
    return strchr(rules[op], '_') != NULL;
}

uint32_t krn_arity(KrnOp op) {
    return arities[op];
}

KrnType krn_type(KrnScalar scalar, uint32_t lanes) {
    check_that(lanes >= 1 && lanes <= KRN_LANES_MAX);
    return (KrnType){(uint8_t)scalar, (uint8_t)lanes};
}

KrnScalar krn_float_of(DType arithmetic) {
    return arithmetic == F64 ? KRN_F64 : KRN_F32;
}

KrnScalar krn_int_of(DType arithmetic) {
    return arithmetic == F64 ? KRN_I64 : KRN_I32;
}

size_t krn_scalar_size(KrnScalar scalar) {
    static const uint8_t sizes[] = {0, 1, 4, 8, 4, 8};
    return sizes[scalar];
}

KrnScalar krn_load_scalar(DType type) {
    return type == F64 ? KRN_F64 : dtype_is_real(type) ? KRN_F32 : KRN_I64;
}

static bool is_float(KrnScalar scalar) {
    return scalar == KRN_F32 || scalar == KRN_F64;
}

static bool is_int(KrnScalar scalar) {
    return scalar == KRN_I32 || scalar == KRN_I64;
}

bool krn_can_convert(KrnScalar from, KrnScalar to) {
    if (from == to || from == KRN_NONE || to == KRN_NONE)
        return false;
    return is_float(from) ? is_float(to) : true;
}

bool krn_can_store(KrnScalar from, DType to) {
    if (dtype_is_real(to))
        return from == krn_load_scalar(to);
    return from == KRN_I64 || from == KRN_I1;
}

int64_t krn_loop_count(const KrnLoop *loop) {
    if (loop->end <= loop->begin)
        return 0;
    uint64_t span = (uint64_t)loop->end - (uint64_t)loop->begin;
    uint64_t count = (span - 1) / (uint64_t)loop->step + 1;
    return (int64_t)MIN(count, (uint64_t)INT64_MAX);
}

static bool sort_fits(char sort, KrnScalar scalar) {
    return sort == 'F' ? is_float(scalar) : sort == 'I' ? is_int(scalar) : scalar == KRN_I1;
}

// The float as wide as an integer type, or the integer as wide as a float type.
static KrnScalar other_of_width(KrnScalar scalar) {
    static const uint8_t others[] = {
        [KRN_I32] = KRN_F32, [KRN_I64] = KRN_F64, [KRN_F32] = KRN_I32, [KRN_F64] = KRN_I64};
    return others[scalar];
}

bool krn_result_type(KrnOp op, const KrnType *operands, KrnType *result) {
    const char *rule = rules[op], *arrow = strchr(rule, '_');
    if (op == KRN_ZIP_LOW || op == KRN_ZIP_HIGH) {
        *result = operands[0];
        return is_float(operands[0].scalar) && operands[0].scalar == operands[1].scalar &&
               operands[0].lanes == operands[1].lanes && operands[0].lanes % 2 == 0;
    }
    if (!arrow)
        return false;
    KrnScalar first_float = KRN_NONE, first_int = KRN_NONE;
    for (uint32_t i = 0; rule + i < arrow; i++) {
        KrnScalar scalar = operands[i].scalar;
        KrnScalar *first = rule[i] == 'F' ? &first_float : &first_int;
        if (!sort_fits(rule[i], scalar) || operands[i].lanes != operands[0].lanes)
            return false;
        if (rule[i] == 'T')
            continue;
        if (*first == KRN_NONE)
            *first = scalar;
        if (*first != scalar)
            return false;
    }
    KrnScalar scalar = KRN_I1;
    if (arrow[1] == 'F')
        scalar = first_float ? first_float : other_of_width(first_int);
    if (arrow[1] == 'I')
        scalar = first_int ? first_int : other_of_width(first_float);
    *result = krn_type(scalar, operands[0].lanes);
    return true;
}

// ---- scratch --------------------------------------------------------------------------------

static size_t scratch_bytes(const KrnBuffer *buffer) {
    if (buffer->role != KRN_SCRATCH)
        return 0;
    size_t bytes;
    check_that(!__builtin_mul_overflow((size_t)buffer->size, dtype_size(buffer->type), &bytes));
    return (bytes + 63) / 64 * 64;
}

size_t krn_scratch_size(const Kernel *kernel) {
    size_t size = 0;
    for (uint32_t i = 0; i < kernel->buffers.count; i++)
        check_that(!__builtin_add_overflow(size, scratch_bytes(&kernel->buffers.at[i]), &size));
    return size;
}

void krn_scratch_place(const Kernel *kernel, void *block, void **buffers) {
    char *at = block;
    for (uint32_t i = 0; i < kernel->buffers.count; i++) {
        if (kernel->buffers.at[i].role == KRN_SCRATCH)
            buffers[i] = at;
        at += scratch_bytes(&kernel->buffers.at[i]);
    }
}
