// The loops and operations of a kernel in LLVM IR: each instruction becomes the LLVM instruction
// that kop.def's meaning names, loops become blocks with phis. No instruction carries a fast-math
// flag, fma is the intrinsic llvm.fma (a call of libm's where the processor has none), never
// llvm.fmuladd, so every result has the bits that the interpreter gives.
#include "native/llvm.h"

// ---- types and constants ------------------------------------------------------------------------

Type emit_type(const Emit *e, KrnType type) {
    Type scalar = e->unit->scalar[type.scalar];
    return type.lanes == 1 ? scalar : LLVMVectorType(scalar, type.lanes);
}

Type emit_lanes(Type scalar, uint32_t lanes) {
    return lanes == 1 ? scalar : LLVMVectorType(scalar, lanes);
}

Value emit_integer(const Emit *e, int64_t number) {
    return LLVMConstInt(e->unit->scalar[KRN_I64], (uint64_t)number, true);
}

static Value all_lanes(Value constant, uint32_t lanes) {
    Value lane[KRN_LANES_MAX];
    assert(lanes <= KRN_LANES_MAX);
    if (lanes == 1)
        return constant;
    for (uint32_t i = 0; i < lanes; i++)
        lane[i] = constant;
    return LLVMConstVector(lane, lanes);
}

Value emit_int_lanes(Type scalar, uint64_t number, uint32_t lanes) {
    return all_lanes(LLVMConstInt(scalar, number, true), lanes);
}

Value emit_intrinsic(Emit *e, const char *name, Type overload, Value *args, uint32_t count) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    size_t overloads = overload ? 1 : 0;
    Value callee = LLVMGetIntrinsicDeclaration(e->module, id, &overload, overloads);
    Type type = LLVMIntrinsicGetType(e->unit->context, id, &overload, overloads);
    return LLVMBuildCall2(e->builder, type, callee, args, count, "");
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
    return all_lanes(number, inst->type.lanes);
}

// ---- loops --------------------------------------------------------------------------------------

static int64_t iterations(const KrnLoop *loop) {
    uint64_t distance = (uint64_t)loop->end - (uint64_t)loop->begin;
    return loop->begin >= loop->end ? 0 : (int64_t)((distance - 1) / (uint64_t)loop->step + 1);
}

Block emit_block(Emit *e, const char *name) {
    return LLVMAppendBasicBlockInContext(e->unit->context, e->function, name);
}

// The index at iteration `count` of a split loop.
static Value index_at(Emit *e, const KrnLoop *loop, Value count) {
    Value distance = LLVMBuildMul(e->builder, count, emit_integer(e, loop->step), "");
    return LLVMBuildAdd(e->builder, distance, emit_integer(e, loop->begin), "");
}

// A bound of the launch as an iteration of one of several split loops: 0 … its count.
static Value bound_in(Emit *e, const KrnLoop *loop, Value bound) {
    Value zero = emit_integer(e, 0), count = emit_integer(e, iterations(loop));
    Value own = LLVMBuildSub(e->builder, bound, emit_integer(e, loop->before), "");
    Value low = LLVMBuildICmp(e->builder, LLVMIntSLT, own, zero, "");
    own = LLVMBuildSelect(e->builder, low, zero, own, "");
    Value high = LLVMBuildICmp(e->builder, LLVMIntSGT, own, count, "");
    return LLVMBuildSelect(e->builder, high, count, own, "");
}

// Sets the range of a split or tail loop and tests whether it runs at all in this launch.
static Value range(Emit *e, OpenLoop *open) {
    const KrnLoop *loop = open->loop;
    if (loop->share == KRN_TAIL)
        return e->last;
    Value begin = e->begin, end = e->end;
    if (iterations(loop) < e->kernel->split_count) {
        begin = bound_in(e, loop, begin);
        end = bound_in(e, loop, end);
    }
    open->begin = index_at(e, loop, begin);
    open->end = index_at(e, loop, end);
    return LLVMBuildICmp(e->builder, LLVMIntSLT, begin, end, "");
}

// A loop that surely runs is tested at its end only.
static void open_loop(Emit *e, const KrnLoop *loop) {
    const KrnCarry *carries = e->kernel->carries.at + loop->first;
    OpenLoop *open = &e->open[e->depth++];
    *open = (OpenLoop){.loop = loop, .before = LLVMGetInsertBlock(e->builder)};
    if (loop->share == KRN_WHOLE && iterations(loop) == 1) {
        emit_define(e, loop->loop, emit_integer(e, loop->begin));
        for (uint32_t i = 0; i < loop->count; i++)
            emit_define(e, carries[i].carry, e->value[carries[i].initial]);
        return;
    }
    open->begin = emit_integer(e, loop->begin);
    open->end = emit_integer(e, loop->begin + iterations(loop) * loop->step);
    open->header = emit_block(e, "loop");
    open->after = emit_block(e, "after");
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
    emit_define(e, loop->loop, open->index);
}

static void close_loop(Emit *e) {
    OpenLoop *open = &e->open[--e->depth];
    const KrnLoop *loop = open->loop;
    const KrnCarry *carries = e->kernel->carries.at + loop->first;
    Block latch = LLVMGetInsertBlock(e->builder);
    if (open->header) {
        Value next = LLVMBuildAdd(e->builder, open->index, emit_integer(e, loop->step), "");
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

// ---- operations ---------------------------------------------------------------------------------

static bool is_float(uint8_t scalar) {
    return scalar == KRN_F32 || scalar == KRN_F64;
}

static Value convert(Emit *e, const KrnInst *inst) {
    LLVMBuilderRef b = e->builder;
    Value a = e->value[inst->a];
    KrnType from = e->kernel->insts.at[inst->a].type, to = inst->type;
    Type type = emit_type(e, to);
    if (from.scalar == to.scalar)
        return a;
    if (is_float(from.scalar) && is_float(to.scalar))
        return to.scalar == KRN_F64 ? LLVMBuildFPExt(b, a, type, "")
                                    : LLVMBuildFPTrunc(b, a, type, "");
    if (to.scalar == KRN_I1)
        return LLVMBuildICmp(b, LLVMIntNE, a, LLVMConstNull(emit_type(e, from)), "");
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
        return all_lanes(a, lanes);
    Value poison = LLVMGetPoison(emit_type(e, inst->type));
    Value first = LLVMBuildInsertElement(e->builder, poison, a, emit_integer(e, 0), "");
    Value mask = LLVMConstNull(LLVMVectorType(e->unit->scalar[KRN_I32], lanes));
    return LLVMBuildShuffleVector(e->builder, first, poison, mask, "");
}

static Value zip(Emit *e, const KrnInst *inst) {
    uint32_t lanes = inst->type.lanes, first = inst->op == KRN_ZIP_LOW ? 0 : lanes;
    Value from[KRN_LANES_MAX];
    for (uint32_t i = 0; i < lanes; i++)
        from[i] = LLVMConstInt(e->unit->scalar[KRN_I32], (first + i) / 2 + i % 2 * lanes, false);
    return LLVMBuildShuffleVector(e->builder, e->value[inst->a], e->value[inst->b],
                                  LLVMConstVector(from, lanes), "");
}

static Value iota(const Emit *e, uint32_t lanes) {
    Value lane[KRN_LANES_MAX];
    assert(lanes <= KRN_LANES_MAX);
    for (uint32_t i = 0; i < lanes; i++)
        lane[i] = emit_integer(e, i);
    return lanes == 1 ? lane[0] : LLVMConstVector(lane, lanes);
}

// The operations that one instruction of LLVM computes; a row for each, none for the others.
typedef enum Form { SPECIAL, BINARY, COMPARE, FCOMPARE, UNARY, SHIFT, BITCAST } Form;
static const struct {
    Form form;
    int code;         // LLVMOpcode, or the predicate of a comparison
    const char *name; // of an intrinsic
} rows[KRN_OP_COUNT] = {
    [KRN_ADD] = {BINARY, LLVMFAdd, NULL},     [KRN_SUB] = {BINARY, LLVMFSub, NULL},
    [KRN_MUL] = {BINARY, LLVMFMul, NULL},     [KRN_DIV] = {BINARY, LLVMFDiv, NULL},
    [KRN_SQRT] = {UNARY, 0, "llvm.sqrt"},     [KRN_ABS] = {UNARY, 0, "llvm.fabs"},
    [KRN_LT] = {FCOMPARE, LLVMRealOLT, NULL}, [KRN_LE] = {FCOMPARE, LLVMRealOLE, NULL},
    [KRN_EQ] = {FCOMPARE, LLVMRealOEQ, NULL}, [KRN_NE] = {FCOMPARE, LLVMRealUNE, NULL},
    [KRN_AND] = {BINARY, LLVMAnd, NULL},      [KRN_OR] = {BINARY, LLVMOr, NULL},
    [KRN_IADD] = {BINARY, LLVMAdd, NULL},     [KRN_ISUB] = {BINARY, LLVMSub, NULL},
    [KRN_IMUL] = {BINARY, LLVMMul, NULL},     [KRN_IAND] = {BINARY, LLVMAnd, NULL},
    [KRN_IOR] = {BINARY, LLVMOr, NULL},       [KRN_IXOR] = {BINARY, LLVMXor, NULL},
    [KRN_ILT] = {COMPARE, LLVMIntSLT, NULL},  [KRN_IEQ] = {COMPARE, LLVMIntEQ, NULL},
    [KRN_SHL] = {SHIFT, LLVMShl, NULL},       [KRN_SHR] = {SHIFT, LLVMAShr, NULL},
    [KRN_BITS] = {BITCAST, 0, NULL},          [KRN_FLOAT] = {BITCAST, 0, NULL},
};

static Value special(Emit *e, const KrnInst *inst) {
    Value x = e->value[inst->a], y = e->value[inst->b], z = e->value[inst->c];
    switch ((KrnOp)inst->op) {
    case KRN_CONST:
        return constant(e, inst);
    case KRN_FMA:
        return emit_intrinsic(e, "llvm.fma", emit_type(e, inst->type), (Value[]){x, y, z}, 3);
    case KRN_NEG:
        return LLVMBuildFNeg(e->builder, x, "");
    case KRN_NOT:
        return LLVMBuildNot(e->builder, x, "");
    case KRN_SELECT:
    case KRN_ISELECT:
        return LLVMBuildSelect(e->builder, x, y, z, "");
    case KRN_CONVERT:
        return convert(e, inst);
    case KRN_SPLAT:
        return splat(e, inst);
    case KRN_ZIP_LOW:
    case KRN_ZIP_HIGH:
        return zip(e, inst);
    case KRN_IOTA:
        return iota(e, inst->type.lanes);
    case KRN_LOAD:
        return emit_load(e, inst);
    case KRN_STORE:
        emit_store(e, inst);
        return NULL;
    case KRN_PREFETCH:
        emit_prefetch(e, inst);
        return NULL;
    default:
        e->error = "an operation has no native code";
        return NULL;
    }
}

// The value of an instruction; null for those without one.
static Value operation(Emit *e, const KrnInst *inst) {
    LLVMBuilderRef b = e->builder;
    Value x = e->value[inst->a], y = e->value[inst->b];
    Type type = emit_type(e, inst->type);
    int code = rows[inst->op].code;
    switch (rows[inst->op].form) {
    case BINARY:
        return LLVMBuildBinOp(b, (LLVMOpcode)code, x, y, "");
    case COMPARE:
        return LLVMBuildICmp(b, (LLVMIntPredicate)code, x, y, "");
    case FCOMPARE:
        return LLVMBuildFCmp(b, (LLVMRealPredicate)code, x, y, "");
    case UNARY:
        return emit_intrinsic(e, rows[inst->op].name, type, &x, 1);
    case SHIFT: {
        Type lane = e->unit->scalar[inst->type.scalar];
        Value count = emit_int_lanes(lane, (uint64_t)inst->integer, inst->type.lanes);
        return LLVMBuildBinOp(b, (LLVMOpcode)code, x, count, "");
    }
    case BITCAST:
        return LLVMBuildBitCast(b, x, type, "");
    case SPECIAL:
        return special(e, inst);
    }
    return NULL;
}

// ---- the body -----------------------------------------------------------------------------------

// Loads the addresses of the buffers that an outermost loop or an instruction outside of all loops
// touches, so that a kernel of many nests does not carry those of all through each.
static void load_bases(Emit *e, KrnValue first) {
    const Kernel *kernel = e->kernel;
    const KrnInst *inst = &kernel->insts.at[first];
    KrnValue last = inst->op == KRN_LOOP ? kernel->loops.at[inst->loop].last : first;
    for (KrnValue i = first; i <= last; i++) {
        KrnOp op = (KrnOp)kernel->insts.at[i].op;
        if (op == KRN_LOAD || op == KRN_STORE || op == KRN_PREFETCH)
            emit_base(e, kernel->addresses.at[kernel->insts.at[i].address].buffer);
    }
}

void emit_body(Emit *e) {
    const Kernel *kernel = e->kernel;
    memset(e->base, 0, kernel->buffers.count * sizeof *e->base);
    for (KrnValue i = 0; i < kernel->insts.count; i++) {
        const KrnInst *inst = &kernel->insts.at[i];
        if (e->depth == 0)
            load_bases(e, i);
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
                emit_define(e, i, value);
        }
    }
    // Stores past the caches are weakly ordered: other threads must see them with the rest.
    if (e->stream)
        emit_intrinsic(e, "llvm.x86.sse.sfence", NULL, NULL, 0);
    LLVMBuildRetVoid(e->builder);
}
