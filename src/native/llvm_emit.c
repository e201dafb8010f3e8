// Kernel IR to machine code through LLVM's C API; the whole of libpresk_llvm.so.
//
// Assumes a verified kernel. Each instruction becomes the LLVM instruction that kop.def's meaning
// names, loops become blocks with phis, and no pass runs over the IR: the lowering already gave it
// its final shape. No instruction carries a fast-math flag, fma is the intrinsic llvm.fma (a call
// of libm's where the processor has none), never llvm.fmuladd, so every result has the bits that
// the interpreter gives. Leaves one function `void name(ptr buffers, i64 begin, i64 end)`.
#include "native/emit.h"

#include <assert.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <stdio.h>
#include <stdlib.h>

typedef LLVMValueRef Value;
typedef LLVMTypeRef Type;
typedef LLVMBasicBlockRef Block;

struct EmitUnit {
    LLVMContextRef context;
    LLVMTargetMachineRef machine;
    LLVMTargetDataRef layout;
    char *triple;
    uint32_t bits;
    Type scalar[KRN_F64 + 1]; // by KrnScalar
    Type pointer;
    uint32_t nontemporal; // kind of metadata
    char *error;          // where LLVM's own diagnostics go; 256 bytes
};

// A node of the forest of partial addresses: its parent (a buffer's pointer at the root) plus
// bytes × value. Addresses that share their first terms share nodes, and each node is computed
// where its value is defined, that is outside of the loops it does not depend on.
typedef struct Partial {
    uint32_t parent; // + 1; 0: a root
    uint32_t buffer;
    int64_t bytes;
    KrnValue value;
    uint32_t sibling; // the next node of the same value, + 1
    Value pointer;
} Partial;

typedef struct OpenLoop {
    const KrnLoop *loop;
    Block before, header, after; // null header: one iteration, no branch
    Value index;
    Value begin, end; // of the index
} OpenLoop;

typedef struct Emit {
    EmitUnit *unit;
    const Kernel *kernel;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    Value function, begin, end;
    Value last;           // this launch runs the tail loops
    Value *value;         // by instruction
    Value *base;          // by buffer
    uint32_t *of_address; // the node of each address, + 1; 0: it has no terms
    Partial *partials;
    uint32_t *of_value; // the first node of each value, + 1
    uint32_t partial_count;
    OpenLoop *open;
    uint32_t depth;
    bool stream; // this copy of the body stores past the caches
    const char *error;
} Emit;

// ---- types and constants ----------------------------------------------------------------------

static Type type_of(const Emit *e, KrnType type) {
    Type scalar = e->unit->scalar[type.scalar];
    return type.lanes == 1 ? scalar : LLVMVectorType(scalar, type.lanes);
}

static Type in_lanes(Type scalar, uint32_t lanes) {
    return lanes == 1 ? scalar : LLVMVectorType(scalar, lanes);
}

static uint32_t bytes_of(DType type) {
    static const uint8_t bytes[DTYPE_COUNT] = {
        [F64] = 8, [F32] = 4, [BF16] = 2, [U8] = 1, [U16] = 2, [U32] = 4, [U64] = 8};
    return bytes[type];
}

static Value integer(const Emit *e, int64_t number) {
    return LLVMConstInt(e->unit->scalar[KRN_I64], (uint64_t)number, true);
}

static Value in_all_lanes(Value constant, uint32_t lanes) {
    Value lane[KRN_LANES_MAX];
    assert(lanes <= KRN_LANES_MAX);
    if (lanes == 1)
        return constant;
    for (uint32_t i = 0; i < lanes; i++)
        lane[i] = constant;
    return LLVMConstVector(lane, lanes);
}

static Value int_in_lanes(Type scalar, uint64_t number, uint32_t lanes) {
    return in_all_lanes(LLVMConstInt(scalar, number, true), lanes);
}

// Floats go in as their bits, so that a NaN's payload and the sign of a zero stay.
static Value constant(const Emit *e, const KrnInst *inst) {
    EmitUnit *unit = e->unit;
    uint64_t bits = 0;
    Value number;
    if (inst->type.scalar == KRN_F32) {
        float narrow = (float)inst->number;
        memcpy(&bits, &narrow, sizeof narrow);
        number = LLVMConstBitCast(LLVMConstInt(unit->scalar[KRN_I32], bits, false),
                                  unit->scalar[KRN_F32]);
    } else if (inst->type.scalar == KRN_F64) {
        memcpy(&bits, &inst->number, sizeof bits);
        number = LLVMConstBitCast(LLVMConstInt(unit->scalar[KRN_I64], bits, false),
                                  unit->scalar[KRN_F64]);
    } else {
        number = LLVMConstInt(unit->scalar[inst->type.scalar], (uint64_t)inst->integer, true);
    }
    return in_all_lanes(number, inst->type.lanes);
}

static Value intrinsic(Emit *e, const char *name, Type overload, Value *args, uint32_t count) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    size_t overloads = overload ? 1 : 0;
    Value callee = LLVMGetIntrinsicDeclaration(e->module, id, &overload, overloads);
    Type type = LLVMIntrinsicGetType(e->unit->context, id, &overload, overloads);
    return LLVMBuildCall2(e->builder, type, callee, args, count, "");
}

// ---- addresses --------------------------------------------------------------------------------

static uint32_t partial_of(Emit *e, uint32_t parent, uint32_t buffer, const KrnTerm *term) {
    int64_t bytes = term->coefficient * bytes_of(e->kernel->buffers.at[buffer].type);
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
static void find_partials(Emit *e) {
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
static void define(Emit *e, KrnValue number, Value value) {
    e->value[number] = value;
    for (uint32_t n = e->of_value[number]; n; n = e->partials[n - 1].sibling) {
        Partial *p = &e->partials[n - 1];
        Value from = p->parent ? e->partials[p->parent - 1].pointer : e->base[p->buffer];
        Value bytes = LLVMBuildMul(e->builder, value, integer(e, p->bytes), "");
        p->pointer = bytes_from(e, from, bytes);
    }
}

static Value address_of(Emit *e, uint32_t number, int64_t lane) {
    const KrnAddress *address = &e->kernel->addresses.at[number];
    uint32_t node = e->of_address[number];
    Value from = node ? e->partials[node - 1].pointer : e->base[address->buffer];
    int64_t offset = address->offset + lane * address->lane_stride;
    if (offset == 0)
        return from;
    return bytes_from(e, from,
                      integer(e, offset * bytes_of(e->kernel->buffers.at[address->buffer].type)));
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
    all = (all | sum) * bytes_of(kernel->buffers.at[address->buffer].type) | 64;
    return (uint32_t)(all & (0 - all));
}

// ---- memory -----------------------------------------------------------------------------------

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
    Value all = LLVMGetPoison(in_lanes(type, lanes));
    for (uint32_t i = 0; i < (whole ? 1 : lanes); i++) {
        Value from = address_of(e, inst->address, i);
        Value one = LLVMBuildLoad2(e->builder, whole ? in_lanes(type, lanes) : type, from, "");
        LLVMSetAlignment(one, align);
        all = whole ? one : LLVMBuildInsertElement(e->builder, all, one, integer(e, i), "");
    }
    return all;
}

static Value load(Emit *e, const KrnInst *inst) {
    DType type = e->kernel->buffers.at[e->kernel->addresses.at[inst->address].buffer].type;
    Value raw = load_lanes(e, memory_type(e, type), inst, bytes_of(type));
    Type result = type_of(e, inst->type);
    if (type == F64 || type == F32 || type == U64)
        return raw;
    if (type != BF16)
        return LLVMBuildZExt(e->builder, raw, result, "");
    Type word = e->unit->scalar[KRN_I32];
    uint32_t lanes = inst->type.lanes;
    Value wide = LLVMBuildZExt(e->builder, raw, in_lanes(word, lanes), "");
    wide = LLVMBuildShl(e->builder, wide, int_in_lanes(word, 16, lanes), "");
    return LLVMBuildBitCast(e->builder, wide, result, "");
}

// bf16_of_f32 of base/number.c, operation by operation.
static Value bf16_of(Emit *e, Value value, uint32_t lanes) {
    LLVMBuilderRef b = e->builder;
    Type word = e->unit->scalar[KRN_I32];
#define WORD(number) int_in_lanes(word, number, lanes)
    Value bits = LLVMBuildBitCast(b, value, in_lanes(word, lanes), "");
    Value magnitude = LLVMBuildAnd(b, bits, WORD(0x7FFFFFFF), "");
    Value is_nan = LLVMBuildICmp(b, LLVMIntUGT, magnitude, WORD(0x7F800000), "");
    Value upper = LLVMBuildLShr(b, bits, WORD(16), "");
    Value quiet = LLVMBuildOr(b, upper, WORD(0x40), "");
    Value odd = LLVMBuildAnd(b, upper, WORD(1), "");
    Value raised = LLVMBuildAdd(b, LLVMBuildAdd(b, bits, WORD(0x7FFF), ""), odd, "");
    Value near = LLVMBuildLShr(b, raised, WORD(16), "");
#undef WORD
    Value half = LLVMBuildSelect(b, is_nan, quiet, near, "");
    return LLVMBuildTrunc(b, half, in_lanes(memory_type(e, BF16), lanes), "");
}

static Value to_memory(Emit *e, Value value, KrnType from, DType to) {
    if (to == BF16)
        return bf16_of(e, value, from.lanes);
    if (dtype_is_real(to))
        return value;
    static const uint8_t width[] = {[KRN_I1] = 1, [KRN_I32] = 32, [KRN_I64] = 64};
    uint32_t bits = 8 * bytes_of(to);
    Type type = in_lanes(memory_type(e, to), from.lanes);
    if (width[from.scalar] == bits)
        return value;
    return width[from.scalar] < bits ? LLVMBuildZExt(e->builder, value, type, "")
                                     : LLVMBuildTrunc(e->builder, value, type, "");
}

// A store can go past the caches when it is a whole number of aligned registers.
static uint32_t stream_alignment(const Kernel *kernel, const KrnInst *store) {
    const KrnAddress *address = &kernel->addresses.at[store->address];
    uint32_t size =
        bytes_of(kernel->buffers.at[address->buffer].type) * kernel->insts.at[store->a].type.lanes;
    uint32_t needed = MIN(size, 64);
    bool can = store->flags & KRN_STREAM && size % 16 == 0 && (needed & (needed - 1)) == 0 &&
               address->lane_stride == 1 && alignment_of(kernel, address) >= needed;
    return can ? needed : 0;
}

static void store(Emit *e, const KrnInst *inst) {
    const KrnAddress *address = &e->kernel->addresses.at[inst->address];
    DType type = e->kernel->buffers.at[address->buffer].type;
    KrnType from = e->kernel->insts.at[inst->a].type;
    Value value = to_memory(e, e->value[inst->a], from, type);
    bool whole = from.lanes == 1 || address->lane_stride == 1;
    uint32_t aligned = e->stream ? stream_alignment(e->kernel, inst) : 0;
    for (uint32_t i = 0; i < (whole ? 1u : from.lanes); i++) {
        Value one = whole ? value : LLVMBuildExtractElement(e->builder, value, integer(e, i), "");
        Value done = LLVMBuildStore(e->builder, one, address_of(e, inst->address, i));
        LLVMSetAlignment(done, aligned ? aligned : bytes_of(type));
        if (aligned) {
            LLVMContextRef context = e->unit->context;
            Value yes = LLVMConstInt(e->unit->scalar[KRN_I32], 1, false);
            LLVMMetadataRef node = LLVMValueAsMetadata(yes);
            node = LLVMMDNodeInContext2(context, &node, 1);
            LLVMSetMetadata(done, e->unit->nontemporal, LLVMMetadataAsValue(context, node));
        }
    }
}

static void prefetch(Emit *e, const KrnInst *inst) {
    Type word = e->unit->scalar[KRN_I32];
    Value args[] = {address_of(e, inst->address, 0), LLVMConstInt(word, 0, false), // to read
                    LLVMConstInt(word, 3, false), LLVMConstInt(word, 1, false)};   // near, data
    intrinsic(e, "llvm.prefetch", e->unit->pointer, args, 4);
}

// ---- loops ------------------------------------------------------------------------------------

static int64_t iterations(const KrnLoop *loop) {
    uint64_t distance = (uint64_t)loop->end - (uint64_t)loop->begin;
    return loop->begin >= loop->end ? 0 : (int64_t)((distance - 1) / (uint64_t)loop->step + 1);
}

static Block new_block(Emit *e, const char *name) {
    return LLVMAppendBasicBlockInContext(e->unit->context, e->function, name);
}

// The index at iteration `count` of a split loop.
static Value index_at(Emit *e, const KrnLoop *loop, Value count) {
    Value distance = LLVMBuildMul(e->builder, count, integer(e, loop->step), "");
    return LLVMBuildAdd(e->builder, distance, integer(e, loop->begin), "");
}

// Sets the range of a split or tail loop and tests whether it runs at all in this launch.
static Value range(Emit *e, OpenLoop *open) {
    if (open->loop->share == KRN_TAIL)
        return e->last;
    open->begin = index_at(e, open->loop, e->begin);
    open->end = index_at(e, open->loop, e->end);
    return LLVMBuildICmp(e->builder, LLVMIntSLT, e->begin, e->end, "");
}

// A loop that surely runs is tested at its end only.
static void open_loop(Emit *e, const KrnLoop *loop) {
    const KrnCarry *carries = e->kernel->carries.at + loop->first;
    OpenLoop *open = &e->open[e->depth++];
    *open = (OpenLoop){.loop = loop, .before = LLVMGetInsertBlock(e->builder)};
    if (loop->share == KRN_WHOLE && iterations(loop) == 1) {
        define(e, loop->loop, integer(e, loop->begin));
        for (uint32_t i = 0; i < loop->count; i++)
            define(e, carries[i].carry, e->value[carries[i].initial]);
        return;
    }
    open->begin = integer(e, loop->begin);
    open->end = integer(e, loop->begin + iterations(loop) * loop->step);
    open->header = new_block(e, "loop");
    open->after = new_block(e, "after");
    if (loop->share == KRN_WHOLE)
        LLVMBuildBr(e->builder, open->header);
    else
        LLVMBuildCondBr(e->builder, range(e, open), open->header, open->after);
    LLVMPositionBuilderAtEnd(e->builder, open->header);
    open->index = LLVMBuildPhi(e->builder, e->unit->scalar[KRN_I64], "index");
    LLVMAddIncoming(open->index, &open->begin, &open->before, 1);
    for (uint32_t i = 0; i < loop->count; i++) {
        Value initial = e->value[carries[i].initial];
        Value phi = LLVMBuildPhi(e->builder, LLVMTypeOf(initial), "");
        LLVMAddIncoming(phi, &initial, &open->before, 1);
        e->value[carries[i].carry] = phi; // no address may use a carry
    }
    define(e, loop->loop, open->index);
}

static void close_loop(Emit *e) {
    OpenLoop *open = &e->open[--e->depth];
    const KrnLoop *loop = open->loop;
    const KrnCarry *carries = e->kernel->carries.at + loop->first;
    Block latch = LLVMGetInsertBlock(e->builder);
    if (open->header) {
        Value next = LLVMBuildAdd(e->builder, open->index, integer(e, loop->step), "");
        LLVMAddIncoming(open->index, &next, &latch, 1);
        Value more = LLVMBuildICmp(e->builder, LLVMIntNE, next, open->end, "");
        LLVMBuildCondBr(e->builder, more, open->header, open->after);
        LLVMMoveBasicBlockAfter(open->after, latch);
        LLVMPositionBuilderAtEnd(e->builder, open->after);
    }
    for (uint32_t i = 0; i < loop->count; i++) {
        Value from[2] = {e->value[carries[i].next], e->value[carries[i].initial]};
        Block blocks[2] = {latch, open->before};
        Value result = from[0];
        if (open->header)
            LLVMAddIncoming(e->value[carries[i].carry], &from[0], &latch, 1);
        if (loop->share != KRN_WHOLE) {
            result = LLVMBuildPhi(e->builder, LLVMTypeOf(from[0]), "");
            LLVMAddIncoming(result, from, blocks, 2);
        }
        e->value[carries[i].result] = result;
    }
}

// A loop without iterations: nothing of it is emitted. Returns its END.
static KrnValue skip_loop(Emit *e, const KrnLoop *loop) {
    for (uint32_t i = 0; i < loop->count; i++) {
        const KrnCarry *carry = &e->kernel->carries.at[loop->first + i];
        e->value[carry->result] = e->value[carry->initial];
    }
    return loop->last;
}

// ---- operations -------------------------------------------------------------------------------

static bool is_float(uint8_t scalar) {
    return scalar == KRN_F32 || scalar == KRN_F64;
}

static Value convert(Emit *e, const KrnInst *inst) {
    LLVMBuilderRef b = e->builder;
    Value a = e->value[inst->a];
    KrnType from = e->kernel->insts.at[inst->a].type, to = inst->type;
    Type type = type_of(e, to);
    if (from.scalar == to.scalar)
        return a;
    if (is_float(from.scalar) && is_float(to.scalar))
        return to.scalar == KRN_F64 ? LLVMBuildFPExt(b, a, type, "")
                                    : LLVMBuildFPTrunc(b, a, type, "");
    if (to.scalar == KRN_I1)
        return LLVMBuildICmp(b, LLVMIntNE, a, LLVMConstNull(type_of(e, from)), "");
    if (is_float(to.scalar))
        return from.scalar == KRN_I1 ? LLVMBuildUIToFP(b, a, type, "")
                                     : LLVMBuildSIToFP(b, a, type, "");
    assert(!is_float(from.scalar));
    if (from.scalar == KRN_I1)
        return LLVMBuildZExt(b, a, type, "");
    return to.scalar == KRN_I64 ? LLVMBuildSExt(b, a, type, "") : LLVMBuildTrunc(b, a, type, "");
}

static Value splat(Emit *e, const KrnInst *inst) {
    Value a = e->value[inst->a];
    uint32_t lanes = inst->type.lanes;
    if (LLVMIsConstant(a))
        return in_all_lanes(a, lanes);
    Value poison = LLVMGetPoison(type_of(e, inst->type));
    Value first = LLVMBuildInsertElement(e->builder, poison, a, integer(e, 0), "");
    Value mask = LLVMConstNull(LLVMVectorType(e->unit->scalar[KRN_I32], lanes));
    return LLVMBuildShuffleVector(e->builder, first, poison, mask, "");
}

static Value iota(const Emit *e, uint32_t lanes) {
    Value lane[KRN_LANES_MAX];
    assert(lanes <= KRN_LANES_MAX);
    for (uint32_t i = 0; i < lanes; i++)
        lane[i] = integer(e, i);
    return lanes == 1 ? lane[0] : LLVMConstVector(lane, lanes);
}

static Value unary(Emit *e, const char *name, const KrnInst *inst) {
    return intrinsic(e, name, type_of(e, inst->type), &e->value[inst->a], 1);
}

static Value shift(Emit *e, LLVMOpcode opcode, const KrnInst *inst) {
    Value count =
        int_in_lanes(e->unit->scalar[inst->type.scalar], (uint64_t)inst->integer, inst->type.lanes);
    return LLVMBuildBinOp(e->builder, opcode, e->value[inst->a], count, "");
}

// The value of an instruction; null for those without one and for the structure of loops. The
// switch has no default, so that the compiler names an operation that is missing.
static Value operation(Emit *e, const KrnInst *inst) {
    LLVMBuilderRef b = e->builder;
    Value x = e->value[inst->a], y = e->value[inst->b], z = e->value[inst->c];
    switch ((KrnOp)inst->op) {
    case KRN_CONST:
        return constant(e, inst);
    case KRN_ADD:
        return LLVMBuildFAdd(b, x, y, "");
    case KRN_SUB:
        return LLVMBuildFSub(b, x, y, "");
    case KRN_MUL:
        return LLVMBuildFMul(b, x, y, "");
    case KRN_DIV:
        return LLVMBuildFDiv(b, x, y, "");
    case KRN_SQRT:
        return unary(e, "llvm.sqrt", inst);
    case KRN_FMA:
        return intrinsic(e, "llvm.fma", type_of(e, inst->type), (Value[]){x, y, z}, 3);
    case KRN_NEG:
        return LLVMBuildFNeg(b, x, "");
    case KRN_ABS:
        return unary(e, "llvm.fabs", inst);
    case KRN_LT:
        return LLVMBuildFCmp(b, LLVMRealOLT, x, y, "");
    case KRN_LE:
        return LLVMBuildFCmp(b, LLVMRealOLE, x, y, "");
    case KRN_EQ:
        return LLVMBuildFCmp(b, LLVMRealOEQ, x, y, "");
    case KRN_NE:
        return LLVMBuildFCmp(b, LLVMRealUNE, x, y, "");
    case KRN_AND:
    case KRN_IAND:
        return LLVMBuildAnd(b, x, y, "");
    case KRN_OR:
    case KRN_IOR:
        return LLVMBuildOr(b, x, y, "");
    case KRN_NOT:
        return LLVMBuildNot(b, x, "");
    case KRN_SELECT:
    case KRN_ISELECT:
        return LLVMBuildSelect(b, x, y, z, "");
    case KRN_IADD:
        return LLVMBuildAdd(b, x, y, "");
    case KRN_ISUB:
        return LLVMBuildSub(b, x, y, "");
    case KRN_IMUL:
        return LLVMBuildMul(b, x, y, "");
    case KRN_IXOR:
        return LLVMBuildXor(b, x, y, "");
    case KRN_ILT:
        return LLVMBuildICmp(b, LLVMIntSLT, x, y, "");
    case KRN_IEQ:
        return LLVMBuildICmp(b, LLVMIntEQ, x, y, "");
    case KRN_SHL:
        return shift(e, LLVMShl, inst);
    case KRN_SHR:
        return shift(e, LLVMAShr, inst);
    case KRN_BITS:
    case KRN_FLOAT:
        return LLVMBuildBitCast(b, x, type_of(e, inst->type), "");
    case KRN_CONVERT:
        return convert(e, inst);
    case KRN_SPLAT:
        return splat(e, inst);
    case KRN_IOTA:
        return iota(e, inst->type.lanes);
    case KRN_LOAD:
        return load(e, inst);
    case KRN_STORE:
        store(e, inst);
        return NULL;
    case KRN_PREFETCH:
        prefetch(e, inst);
        return NULL;
    case KRN_LOOP:
    case KRN_CARRY:
    case KRN_END:
    case KRN_RESULT:
    case KRN_OP_COUNT:
        return NULL;
    }
    return NULL;
}

// ---- the function -----------------------------------------------------------------------------

static void body(Emit *e) {
    const Kernel *kernel = e->kernel;
    for (KrnValue i = 0; i < kernel->insts.count; i++) {
        const KrnInst *inst = &kernel->insts.at[i];
        if (inst->op == KRN_LOOP) {
            const KrnLoop *loop = &kernel->loops.at[inst->loop];
            if (iterations(loop) == 0)
                i = skip_loop(e, loop);
            else
                open_loop(e, loop);
        } else if (inst->op == KRN_END) {
            close_loop(e);
        } else if (inst->op != KRN_CARRY && inst->op != KRN_RESULT) {
            Value value = operation(e, inst);
            if (value)
                define(e, i, value);
        }
    }
    // Stores past the caches are weakly ordered: other threads must see them with the rest.
    if (e->stream)
        intrinsic(e, "llvm.x86.sse.sfence", NULL, NULL, 0);
    LLVMBuildRetVoid(e->builder);
}

// Or of the addresses of the buffers that are stored to past the caches; null: there is none.
static Value streamed_buffers(Emit *e) {
    Value all = NULL;
    for (uint32_t i = 0; i < e->kernel->insts.count; i++) {
        const KrnInst *inst = &e->kernel->insts.at[i];
        if (inst->op != KRN_STORE || !stream_alignment(e->kernel, inst))
            continue;
        Value base = e->base[e->kernel->addresses.at[inst->address].buffer];
        Value bits = LLVMBuildPtrToInt(e->builder, base, e->unit->scalar[KRN_I64], "");
        all = all ? LLVMBuildOr(e->builder, all, bits, "") : bits;
    }
    return all;
}

// Such stores need aligned addresses. Where a caller's buffer is not, a second copy of the body
// runs, with ordinary stores.
static void bodies(Emit *e) {
    Value addresses = streamed_buffers(e);
    if (addresses) {
        Value low = LLVMBuildAnd(e->builder, addresses, integer(e, 63), "");
        Value aligned = LLVMBuildICmp(e->builder, LLVMIntEQ, low, integer(e, 0), "");
        Block with = new_block(e, "aligned"), without = new_block(e, "unaligned");
        LLVMBuildCondBr(e->builder, aligned, with, without);
        LLVMPositionBuilderAtEnd(e->builder, with);
        e->stream = true;
        body(e);
        e->stream = false;
        LLVMPositionBuilderAtEnd(e->builder, without);
    }
    body(e);
}

// Whether a launch has the last iteration of the split loop; see KrnShare.
static Value last_launch(Emit *e) {
    int64_t count = e->kernel->split_count;
    if (count == 0)
        return LLVMConstInt(e->unit->scalar[KRN_I1], 1, false);
    Value last = LLVMBuildICmp(e->builder, LLVMIntEQ, e->end, integer(e, count), "");
    Value some = LLVMBuildICmp(e->builder, LLVMIntSLT, e->begin, e->end, "");
    return LLVMBuildAnd(e->builder, last, some, "");
}

static void attribute(Emit *e, const char *name, const char *value) {
    LLVMAttributeRef one = LLVMCreateStringAttribute(e->unit->context, name, (unsigned)strlen(name),
                                                     value, (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(e->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, one);
}

static void function(Emit *e, const EmitRequest *request) {
    EmitUnit *unit = e->unit;
    Type args[] = {unit->pointer, unit->scalar[KRN_I64], unit->scalar[KRN_I64]};
    Type type = LLVMFunctionType(LLVMVoidTypeInContext(unit->context), args, 3, false);
    e->function = LLVMAddFunction(e->module, request->name, type);
    unsigned nounwind = LLVMGetEnumAttributeKindForName("nounwind", 8); // no unwind tables
    LLVMAddAttributeAtIndex(e->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(unit->context, nounwind, 0));
    char width[8];
    snprintf(width, sizeof width, "%u", unit->bits);
    attribute(e, "prefer-vector-width", width);
    attribute(e, "min-legal-vector-width", unit->bits > 256 ? "512" : "0");
    e->begin = LLVMGetParam(e->function, 1);
    e->end = LLVMGetParam(e->function, 2);
    LLVMPositionBuilderAtEnd(e->builder, new_block(e, "entry"));
    for (uint32_t i = 0; i < e->kernel->buffers.count; i++) {
        Value at = integer(e, i);
        at = LLVMBuildGEP2(e->builder, unit->pointer, LLVMGetParam(e->function, 0), &at, 1, "");
        const char *name = request->buffer_names ? request->buffer_names[i] : "";
        e->base[i] = LLVMBuildLoad2(e->builder, unit->pointer, at, name);
    }
    e->last = last_launch(e);
    bodies(e);
}

static bool allocate(Emit *e) {
    const Kernel *kernel = e->kernel;
    size_t insts = kernel->insts.count + 1;
    e->value = calloc(insts, sizeof *e->value);
    e->of_value = calloc(insts, sizeof *e->of_value);
    e->base = calloc(kernel->buffers.count + 1, sizeof *e->base);
    e->of_address = calloc(kernel->addresses.count + 1, sizeof *e->of_address);
    e->partials = calloc(kernel->terms.count + 1, sizeof *e->partials);
    e->open = calloc(kernel->loops.count + 1, sizeof *e->open);
    return e->value && e->of_value && e->base && e->of_address && e->partials && e->open;
}

static void deallocate(Emit *e) {
    free(e->value);
    free(e->of_value);
    free(e->base);
    free(e->of_address);
    free(e->partials);
    free(e->open);
}

// ---- the interface ----------------------------------------------------------------------------

static void on_diagnostic(LLVMDiagnosticInfoRef info, void *data) {
    EmitUnit *unit = data;
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || !unit->error)
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    snprintf(unit->error, sizeof((EmitResult *)0)->error, "%s", text);
    LLVMDisposeMessage(text);
}

static void unit_types(EmitUnit *unit) {
    unit->scalar[KRN_I1] = LLVMInt1TypeInContext(unit->context);
    unit->scalar[KRN_I32] = LLVMInt32TypeInContext(unit->context);
    unit->scalar[KRN_I64] = LLVMInt64TypeInContext(unit->context);
    unit->scalar[KRN_F32] = LLVMFloatTypeInContext(unit->context);
    unit->scalar[KRN_F64] = LLVMDoubleTypeInContext(unit->context);
    unit->pointer = LLVMPointerTypeInContext(unit->context, 0);
    unit->nontemporal = LLVMGetMDKindIDInContext(unit->context, "nontemporal", 11);
}

static LLVMTargetMachineRef target_machine(const EmitTarget *target, const char *triple,
                                           char *error, size_t size) {
    LLVMTargetRef family;
    char *message = NULL;
    if (LLVMGetTargetFromTriple(triple, &family, &message)) {
        snprintf(error, size, "%s", message);
        LLVMDisposeMessage(message);
        return NULL;
    }
    char *cpu = target->cpu ? NULL : LLVMGetHostCPUName();
    char *features = target->cpu ? NULL : LLVMGetHostCPUFeatures();
    LLVMTargetMachineRef machine =
        LLVMCreateTargetMachine(family, triple, cpu ? cpu : target->cpu, features ? features : "",
                                LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelSmall);
    LLVMDisposeMessage(cpu);
    LLVMDisposeMessage(features);
    if (!machine)
        snprintf(error, size, "LLVM has no target machine for %s", triple);
    return machine;
}

static void unit_close(EmitUnit *unit) {
    if (unit->layout)
        LLVMDisposeTargetData(unit->layout);
    if (unit->machine)
        LLVMDisposeTargetMachine(unit->machine);
    if (unit->context)
        LLVMContextDispose(unit->context);
    LLVMDisposeMessage(unit->triple);
    free(unit);
}

static EmitUnit *unit_open(const EmitTarget *target, char *error, size_t size) {
    EmitUnit *unit = calloc(1, sizeof *unit);
    if (!unit) {
        snprintf(error, size, "out of memory");
        return NULL;
    }
    unit->bits = target->bits;
    unit->triple = LLVMGetDefaultTargetTriple();
    unit->machine = target_machine(target, unit->triple, error, size);
    if (!unit->machine) {
        unit_close(unit);
        return NULL;
    }
    unit->layout = LLVMCreateTargetDataLayout(unit->machine);
    unit->context = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(unit->context, on_diagnostic, unit);
    unit_types(unit);
    return unit;
}

static bool output(Emit *e, EmitWhat what, EmitResult *result) {
    char *text = NULL;
    LLVMMemoryBufferRef buffer = NULL;
    if (what == EMIT_IR) {
        text = LLVMPrintModuleToString(e->module);
        result->size = strlen(text);
    } else {
        LLVMCodeGenFileType type = what == EMIT_OBJECT ? LLVMObjectFile : LLVMAssemblyFile;
        if (LLVMTargetMachineEmitToMemoryBuffer(e->unit->machine, e->module, type, &text,
                                                &buffer)) {
            snprintf(result->error, sizeof result->error, "%s", text);
            LLVMDisposeMessage(text);
            return false;
        }
        result->size = LLVMGetBufferSize(buffer);
    }
    result->bytes = malloc(result->size + 1);
    if (result->bytes) {
        memcpy(result->bytes, buffer ? LLVMGetBufferStart(buffer) : text, result->size);
        result->bytes[result->size] = 0;
    } else {
        snprintf(result->error, sizeof result->error, "out of memory");
    }
    if (buffer)
        LLVMDisposeMemoryBuffer(buffer);
    else
        LLVMDisposeMessage(text);
    return result->bytes != NULL && result->error[0] == 0;
}

static void release(EmitResult *result) {
    free(result->bytes);
    result->bytes = NULL;
}

static bool emit(EmitUnit *unit, const EmitRequest *request, EmitResult *result) {
    *result = (EmitResult){0};
    Emit e = {.unit = unit, .kernel = request->kernel};
    unit->error = result->error;
    LLVMContextSetDiscardValueNames(unit->context, request->what != EMIT_IR);
    e.module = LLVMModuleCreateWithNameInContext(request->name, unit->context);
    LLVMSetTarget(e.module, unit->triple);
    LLVMSetModuleDataLayout(e.module, unit->layout);
    e.builder = LLVMCreateBuilderInContext(unit->context);
    if (allocate(&e)) {
        find_partials(&e);
        function(&e, request);
    } else {
        e.error = "out of memory";
    }
    char *message = NULL;
    if (!e.error && LLVMVerifyModule(e.module, LLVMReturnStatusAction, &message))
        e.error = message;
    if (e.error)
        snprintf(result->error, sizeof result->error, "%s", e.error);
    bool done = !e.error && output(&e, request->what, result);
    LLVMDisposeMessage(message);
    deallocate(&e);
    LLVMDisposeBuilder(e.builder);
    LLVMDisposeModule(e.module);
    unit->error = NULL;
    if (!done)
        release(result);
    return done;
}

// LLVM's list of targets is global; it is filled under the dynamic loader's lock.
__attribute__((constructor)) static void register_target(void) {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
}

extern const Emitter presk_emitter;
const Emitter presk_emitter = {PRESK_EMIT_BUILD, unit_open, unit_close, emit, release};
