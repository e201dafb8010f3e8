// Kernel IR to machine code through LLVM's C API: the interface of libpresk_llvm.so and the
// function around a kernel's body. Assumes a verified kernel. No pass runs over the IR: the
// lowering already gave it its final shape. Leaves one function `void name(ptr buffers, i64 begin,
// i64 end)`.
#include "native/llvm.h"

#include <llvm-c/Analysis.h>
#include <stdio.h>

// ---- the function -------------------------------------------------------------------------------

// Or of the addresses of the buffers that are stored to past the caches; null: there is none.
static Value streamed_buffers(Emit *e) {
    Value all = NULL;
    for (uint32_t i = 0; i < e->kernel->insts.count; i++) {
        const KrnInst *inst = &e->kernel->insts.at[i];
        if (inst->op != KRN_STORE || !emit_stream_alignment(e->kernel, inst))
            continue;
        Value base = emit_base(e, e->kernel->addresses.at[inst->address].buffer);
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
        Value low = LLVMBuildAnd(e->builder, addresses, emit_integer(e, 63), "");
        Value aligned = LLVMBuildICmp(e->builder, LLVMIntEQ, low, emit_integer(e, 0), "");
        Block with = emit_block(e, "aligned"), without = emit_block(e, "unaligned");
        LLVMBuildCondBr(e->builder, aligned, with, without);
        LLVMPositionBuilderAtEnd(e->builder, with);
        e->stream = true;
        emit_body(e);
        e->stream = false;
        LLVMPositionBuilderAtEnd(e->builder, without);
    }
    emit_body(e);
}

// Whether a launch has the last iteration of the split loop; see KrnShare.
static Value last_launch(Emit *e) {
    int64_t count = e->kernel->split_count;
    if (count == 0)
        return LLVMConstInt(e->unit->scalar[KRN_I1], 1, false);
    Value last = LLVMBuildICmp(e->builder, LLVMIntEQ, e->end, emit_integer(e, count), "");
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
    static const char *const names[] = {"buffers", "begin", "end"};
    for (unsigned i = 0; i < 3; i++)
        LLVMSetValueName2(LLVMGetParam(e->function, i), names[i], strlen(names[i]));
    e->begin = LLVMGetParam(e->function, 1);
    e->end = LLVMGetParam(e->function, 2);
    LLVMPositionBuilderAtEnd(e->builder, emit_block(e, "entry"));
    e->buffer_names = request->buffer_names;
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

// ---- the interface ------------------------------------------------------------------------------

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
        emit_find_partials(&e);
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

extern __attribute__((visibility("default"))) const Emitter presk_emitter;
const Emitter presk_emitter = {PRESK_EMIT_BUILD, unit_open, unit_close, emit, release};
