// Addresses, loads and stores of a kernel in LLVM IR. An address is computed in steps, each where
// the loop index or loaded index it needs is defined, so that no pass has to move it out of a loop.
#include "native/llvm.h"

uint32_t emit_bytes(DType type) {
    static const uint8_t bytes[DTYPE_COUNT] = {
        [F64] = 8, [F32] = 4, [BF16] = 2, [U8] = 1, [U16] = 2, [U32] = 4, [U64] = 8};
    return bytes[type];
}

// ---- addresses ----------------------------------------------------------------------------------

// The address of a buffer, loaded outside of all loops.
Value emit_base(Emit *e, uint32_t buffer) {
    if (!e->base[buffer]) {
        Value at = emit_integer(e, buffer);
        at = LLVMBuildGEP2(e->builder, e->unit->pointer, LLVMGetParam(e->function, 0), &at, 1, "");
        const char *name = e->buffer_names ? e->buffer_names[buffer] : "";
        e->base[buffer] = LLVMBuildLoad2(e->builder, e->unit->pointer, at, name);
    }
    return e->base[buffer];
}

static uint32_t partial_of(Emit *e, uint32_t parent, uint32_t buffer, const KrnTerm *term) {
    int64_t bytes = term->coefficient * emit_bytes(e->kernel->buffers.at[buffer].type);
    for (uint32_t n = e->of_value[term->value]; n; n = e->partials[n - 1].sibling) {
        const Partial *p = &e->partials[n - 1];
        if (p->parent == parent && p->buffer == buffer && p->bytes == bytes)
            return n;
    }
    e->partials[e->partial_count++] =
        (Partial){parent, buffer, bytes, term->value, e->of_value[term->value], NULL};
    return e->of_value[term->value] = e->partial_count;
}

// Builds the forest: the terms of each address in order of definition, outermost loops first.
void emit_find_partials(Emit *e) {
    const Kernel *kernel = e->kernel;
    for (uint32_t a = 0; a < kernel->addresses.count; a++) {
        const KrnAddress *address = &kernel->addresses.at[a];
        const KrnTerm *terms = kernel->terms.at + address->first;
        uint32_t node = 0;
        // Addresses are short: each round takes the smallest value above the last one.
        for (uint32_t i = 0; i < address->count; i++) {
            KrnTerm next = {0, UINT32_MAX};
            for (uint32_t j = 0; j < address->count; j++) {
                bool taken = node && terms[j].value <= e->partials[node - 1].value;
                if (!taken && terms[j].value < next.value)
                    next = terms[j];
                else if (!taken && terms[j].value == next.value)
                    next.coefficient += terms[j].coefficient;
            }
            if (next.value != UINT32_MAX)
                node = partial_of(e, node, address->buffer, &next);
        }
        e->of_address[a] = node;
    }
}

static Value bytes_from(Emit *e, Value pointer, Value bytes) {
    return LLVMBuildGEP2(e->builder, LLVMInt8TypeInContext(e->unit->context), pointer, &bytes, 1,
                         "");
}

// Computes the nodes that wait for this value.
void emit_define(Emit *e, KrnValue number, Value value) {
    e->value[number] = value;
    for (uint32_t n = e->of_value[number]; n; n = e->partials[n - 1].sibling) {
        Partial *p = &e->partials[n - 1];
        Value from = p->parent ? e->partials[p->parent - 1].pointer : emit_base(e, p->buffer);
        Value bytes = LLVMBuildMul(e->builder, value, emit_integer(e, p->bytes), "");
        p->pointer = bytes_from(e, from, bytes);
    }
}

static Value address_of(Emit *e, uint32_t number, int64_t lane) {
    const KrnAddress *address = &e->kernel->addresses.at[number];
    uint32_t node = e->of_address[number];
    Value from = node ? e->partials[node - 1].pointer : emit_base(e, address->buffer);
    int64_t offset = address->offset + lane * address->lane_stride;
    if (offset == 0)
        return from;
    return bytes_from(
        e, from, emit_integer(e, offset * emit_bytes(e->kernel->buffers.at[address->buffer].type)));
}

// The largest power of two, up to 64, that divides the address's distance in bytes from its
// buffer's start in every iteration.
static uint32_t alignment_of(const Kernel *kernel, const KrnAddress *address) {
    uint64_t sum = (uint64_t)address->offset, all = 0;
    for (uint32_t i = 0; i < address->count; i++) {
        KrnTerm term = kernel->terms.at[address->first + i];
        const KrnInst *inst = &kernel->insts.at[term.value];
        uint64_t coefficient = (uint64_t)term.coefficient, step = 1;
        if (inst->op == KRN_LOOP) {
            step = (uint64_t)kernel->loops.at[inst->loop].step;
            sum += coefficient * (uint64_t)kernel->loops.at[inst->loop].begin;
        }
        all |= coefficient * step;
    }
    all = (all | sum) * emit_bytes(kernel->buffers.at[address->buffer].type) | 64;
    return (uint32_t)(all & (0 - all));
}

// ---- loads and stores ---------------------------------------------------------------------------

static Type memory_type(const Emit *e, DType type) {
    LLVMContextRef context = e->unit->context;
    switch (type) {
    case F64:
        return e->unit->scalar[KRN_F64];
    case F32:
        return e->unit->scalar[KRN_F32];
    case U8:
        return LLVMInt8TypeInContext(context);
    case BF16:
    case U16:
        return LLVMInt16TypeInContext(context);
    case U32:
        return LLVMInt32TypeInContext(context);
    default:
        return LLVMInt64TypeInContext(context);
    }
}

static Value load_lanes(Emit *e, Type type, const KrnInst *inst, uint32_t align) {
    const KrnAddress *address = &e->kernel->addresses.at[inst->address];
    uint32_t lanes = inst->type.lanes;
    bool whole = lanes == 1 || address->lane_stride == 1;
    Value all = LLVMGetPoison(emit_lanes(type, lanes));
    for (uint32_t i = 0; i < (whole ? 1 : lanes); i++) {
        Value from = address_of(e, inst->address, i);
        Value one = LLVMBuildLoad2(e->builder, whole ? emit_lanes(type, lanes) : type, from, "");
        LLVMSetAlignment(one, align);
        all = whole ? one : LLVMBuildInsertElement(e->builder, all, one, emit_integer(e, i), "");
    }
    return all;
}

Value emit_load(Emit *e, const KrnInst *inst) {
    DType type = e->kernel->buffers.at[e->kernel->addresses.at[inst->address].buffer].type;
    Value raw = load_lanes(e, memory_type(e, type), inst, emit_bytes(type));
    Type result = emit_type(e, inst->type);
    if (type == F64 || type == F32 || type == U64)
        return raw;
    if (type != BF16)
        return LLVMBuildZExt(e->builder, raw, result, "");
    Type word = e->unit->scalar[KRN_I32];
    uint32_t lanes = inst->type.lanes;
    Value wide = LLVMBuildZExt(e->builder, raw, emit_lanes(word, lanes), "");
    wide = LLVMBuildShl(e->builder, wide, emit_int_lanes(word, 16, lanes), "");
    return LLVMBuildBitCast(e->builder, wide, result, "");
}

// bf16_of_f32 of base/number.c, operation by operation.
static Value bf16_of(Emit *e, Value value, uint32_t lanes) {
    LLVMBuilderRef b = e->builder;
    Type word = e->unit->scalar[KRN_I32];
#define WORD(number) emit_int_lanes(word, number, lanes)
    Value bits = LLVMBuildBitCast(b, value, emit_lanes(word, lanes), "");
    Value magnitude = LLVMBuildAnd(b, bits, WORD(0x7FFFFFFF), "");
    Value is_nan = LLVMBuildICmp(b, LLVMIntUGT, magnitude, WORD(0x7F800000), "");
    Value upper = LLVMBuildLShr(b, bits, WORD(16), "");
    Value quiet = LLVMBuildOr(b, upper, WORD(0x40), "");
    Value odd = LLVMBuildAnd(b, upper, WORD(1), "");
    Value raised = LLVMBuildAdd(b, LLVMBuildAdd(b, bits, WORD(0x7FFF), ""), odd, "");
    Value near = LLVMBuildLShr(b, raised, WORD(16), "");
#undef WORD
    Value half = LLVMBuildSelect(b, is_nan, quiet, near, "");
    return LLVMBuildTrunc(b, half, emit_lanes(memory_type(e, BF16), lanes), "");
}

static Value to_memory(Emit *e, Value value, KrnType from, DType to) {
    if (to == BF16)
        return bf16_of(e, value, from.lanes);
    if (dtype_is_real(to))
        return value;
    static const uint8_t width[] = {[KRN_I1] = 1, [KRN_I32] = 32, [KRN_I64] = 64};
    uint32_t bits = 8 * emit_bytes(to);
    Type type = emit_lanes(memory_type(e, to), from.lanes);
    if (width[from.scalar] == bits)
        return value;
    return width[from.scalar] < bits ? LLVMBuildZExt(e->builder, value, type, "")
                                     : LLVMBuildTrunc(e->builder, value, type, "");
}

// A store can go past the caches when it is a whole number of aligned registers.
uint32_t emit_stream_alignment(const Kernel *kernel, const KrnInst *store) {
    const KrnAddress *address = &kernel->addresses.at[store->address];
    uint32_t size = emit_bytes(kernel->buffers.at[address->buffer].type) *
                    kernel->insts.at[store->a].type.lanes;
    uint32_t needed = MIN(size, 64);
    bool can = store->flags & KRN_STREAM && size % 16 == 0 && (needed & (needed - 1)) == 0 &&
               address->lane_stride == 1 && alignment_of(kernel, address) >= needed;
    return can ? needed : 0;
}

void emit_store(Emit *e, const KrnInst *inst) {
    const KrnAddress *address = &e->kernel->addresses.at[inst->address];
    DType type = e->kernel->buffers.at[address->buffer].type;
    KrnType from = e->kernel->insts.at[inst->a].type;
    Value value = to_memory(e, e->value[inst->a], from, type);
    bool whole = from.lanes == 1 || address->lane_stride == 1;
    uint32_t aligned = e->stream ? emit_stream_alignment(e->kernel, inst) : 0;
    for (uint32_t i = 0; i < (whole ? 1u : from.lanes); i++) {
        Value one =
            whole ? value : LLVMBuildExtractElement(e->builder, value, emit_integer(e, i), "");
        Value done = LLVMBuildStore(e->builder, one, address_of(e, inst->address, i));
        LLVMSetAlignment(done, aligned ? aligned : emit_bytes(type));
        if (aligned) {
            LLVMContextRef context = e->unit->context;
            Value yes = LLVMConstInt(e->unit->scalar[KRN_I32], 1, false);
            LLVMMetadataRef node = LLVMValueAsMetadata(yes);
            node = LLVMMDNodeInContext2(context, &node, 1);
            LLVMSetMetadata(done, e->unit->nontemporal, LLVMMetadataAsValue(context, node));
        }
    }
}

void emit_prefetch(Emit *e, const KrnInst *inst) {
    Type word = e->unit->scalar[KRN_I32];
    Value args[] = {address_of(e, inst->address, 0), LLVMConstInt(word, 0, false), // to read
                    LLVMConstInt(word, 3, false), LLVMConstInt(word, 1, false)};   // near, data
    emit_intrinsic(e, "llvm.prefetch", e->unit->pointer, args, 4);
}
