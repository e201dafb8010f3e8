// What the parts of the emitter share. llvm_emit.c has the interface and the function around a
// kernel, llvm_body.c its loops and operations, llvm_memory.c its addresses, loads and stores.
// These are the only files that see LLVM, and together the whole of libpresk_llvm.so.
#ifndef PRESK_NATIVE_LLVM_H
#define PRESK_NATIVE_LLVM_H

#include "native/emit.h"

#include <assert.h>
#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
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
    Value last;                      // this launch runs the tail loops
    Value *value;                    // by instruction
    Value *base;                     // by buffer; null: not loaded yet
    const char *const *buffer_names; // may be null
    uint32_t *of_address;            // the node of each address, + 1; 0: it has no terms
    Partial *partials;
    uint32_t *of_value; // the first node of each value, + 1
    uint32_t partial_count;
    OpenLoop *open;
    uint32_t depth;
    bool stream; // this copy of the body stores past the caches
    const char *error;
} Emit;

// ---- llvm_memory.c ------------------------------------------------------------------------------

uint32_t emit_bytes(DType type); // of an element
// A buffer's address; the first time it is asked for, outside of all loops.
Value emit_base(Emit *e, uint32_t buffer);
// Builds the forest of partial addresses.
void emit_find_partials(Emit *e);
// Gives an instruction its value and computes the partial addresses that wait for it.
void emit_define(Emit *e, KrnValue number, Value value);
Value emit_load(Emit *e, const KrnInst *inst);
void emit_store(Emit *e, const KrnInst *inst);
void emit_prefetch(Emit *e, const KrnInst *inst);
// The alignment that lets a store go past the caches; 0 where it cannot or need not.
uint32_t emit_stream_alignment(const Kernel *kernel, const KrnInst *store);

// ---- llvm_body.c --------------------------------------------------------------------------------

Type emit_type(const Emit *e, KrnType type);
Type emit_lanes(Type scalar, uint32_t lanes);      // the scalar itself for one lane
Value emit_integer(const Emit *e, int64_t number); // i64
Value emit_int_lanes(Type scalar, uint64_t number, uint32_t lanes);
Block emit_block(Emit *e, const char *name); // at the end of the function
Value emit_intrinsic(Emit *e, const char *name, Type overload, Value *args, uint32_t count);
// All instructions of the kernel, up to the return.
void emit_body(Emit *e);

#endif
