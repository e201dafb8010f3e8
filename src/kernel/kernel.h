// Kernel IR: structured loops over buffers, scalar or in lanes; what every executor of kernels
// runs as it stands. All extents are known, so every address is proved in bounds.
//
// A kernel has buffers and a body. The body is a list of instructions; an instruction's number is
// its value. Loops nest: LOOP … END. Within a loop the LOOP instruction itself is the index (i64).
// Values carried around a loop (accumulators) are CARRY instructions directly after LOOP; each has
// an initial value from outside and a next value given by the loop's end; RESULT instructions after
// END are their final values (the initial one when the loop runs no iteration).
//
// Types. Floats f32 and f64, integers i32 and i64, truth values i1; each scalar (1 lane) or a
// vector of 2 … 64 lanes. Operands of an operation have the lanes of its result; SPLAT makes a
// vector of a scalar. Loop indices and addresses are scalar i64.
//
// Memory. An address is a buffer, a constant offset and a sum of coefficient × index value, in
// elements: index values are loop indices or integers loaded from an index buffer, whose declared
// range bounds them (an IN buffer: nothing here may store into it). A vector access has a lane
// stride (1: contiguous; 0 is not allowed: SPLAT a scalar load). A PREFETCH may name an element
// beyond the buffer. Loads convert exactly to the arithmetic side (bf16 gives f32, u8 … u64 give
// i64); stores round once (f32 to bf16 to nearest even) or truncate (i64 to u8 …; i1 stores 0 or
// 1). A value is otherwise stored only to its own type.
//
// Threads. The iterations of a *split* loop are independent. A kernel may have several, one after
// the other: their iterations are counted on from one to the next, and a launch runs iterations
// begin … end − 1 of them all (0 … count for all). Everything else runs whole in each launch,
// except *tail* loops: they hold what is left when the lanes or the tile do not divide a split
// axis, stand outside the split loops, and run in the launch of the last iteration alone
// (end = count and begin < end, or count = 0). So each store to an OUT buffer happens in one
// launch: in a kernel with split loops it stands in one of them, the same one for all stores to a
// buffer, or in a tail loop.
//
// Text form (krn_print, krn_read are inverses), one instruction a line, loops indented:
//   kernel dot {
//     buffer %x : f32[4096] in
//     buffer %y : f32[64] out
//     loop %0 = 0 to 64 step 1 split {
//       %1 : f32 = const 0
//       loop %2 = 0 to 64 step 1 carry %3 : f32 = %1 {
//         %4 : f32 = load %x[64*%0 + %2]
//         %5 : f32 = add %3 %4
//         next %5
//       } gives %7
//       store %y[%0] %7
//     }
//   }
// Values are numbered as instructions are. A vector type is f32x8; a lane stride other than 1 and
// the flag of a store look like `store %y[%0 by 64] %7 stream`; an index buffer `u8[64] in below
// 100`; a loop of the last launch alone has `tail` where `split` stands.
#ifndef PRESK_KERNEL_KERNEL_H
#define PRESK_KERNEL_KERNEL_H

#include "base/context.h"
#include "base/number.h"

typedef uint32_t KrnValue; // number of an instruction

typedef enum KrnOp {
#define KOP(name, text, arity, rule, lane, meaning) KRN_##name,
#include "kernel/kop.def"
#undef KOP
    KRN_OP_COUNT
} KrnOp;

typedef enum KrnScalar { KRN_NONE, KRN_I1, KRN_I32, KRN_I64, KRN_F32, KRN_F64 } KrnScalar;

enum { KRN_LANES_MAX = 64 };

typedef struct KrnType {
    uint8_t scalar; // KrnScalar; NONE: no value (END, STORE, PREFETCH)
    uint8_t lanes;  // 1 … KRN_LANES_MAX
} KrnType;

typedef struct KrnTerm {
    int64_t coefficient;
    KrnValue value; // a LOOP, or a scalar LOAD from an IN buffer with a range
} KrnTerm;

typedef struct KrnAddress {
    uint32_t buffer;
    int64_t offset;
    uint32_t first, count; // kernel->terms
    int64_t lane_stride;   // vectors: ≥ 1 or negative; scalars: 1
} KrnAddress;

typedef enum KrnShare { KRN_WHOLE, KRN_SPLIT, KRN_TAIL } KrnShare;

typedef struct KrnLoop {
    int64_t begin, end, step; // step ≥ 1; iterations begin, begin + step, … < end
    KrnShare share;           // a split loop has no carries
    int64_t before;           // SPLIT: iterations of the split loops before it
    KrnValue loop, last;      // the LOOP and END instructions
    uint32_t first, count;    // carried: kernel->carries
} KrnLoop;

typedef struct KrnCarry {
    KrnValue initial, carry, next, result; // `next` is a value inside the loop; CARRY and RESULT
} KrnCarry;

typedef struct KrnInst {
    uint8_t op;    // KrnOp
    uint8_t flags; // KRN_STREAM on a store
    KrnType type;  // of the result
    KrnValue a, b, c;
    union {
        double number;    // CONST of a float
        int64_t integer;  // CONST of an integer, shift counts
        uint32_t address; // LOAD, STORE, PREFETCH: kernel->addresses
        uint32_t loop;    // LOOP, END: kernel->loops
        uint32_t carry;   // CARRY, RESULT: kernel->carries
    };
} KrnInst;
enum { KRN_STREAM = 1 }; // non-temporal: the output is not read soon

typedef enum KrnRole { KRN_IN, KRN_OUT, KRN_SCRATCH } KrnRole;

typedef struct KrnBuffer {
    Name name;
    DType type;
    int64_t size;  // elements
    int64_t range; // index buffers: exclusive bound of the values, else 0
    KrnRole role;  // SCRATCH: each worker has its own, contents undefined at the start
} KrnBuffer;

typedef struct Kernel {
    Arena *arena;
    const Names *names;
    Name name; // "dot", "dot+add", "group"
    Vec(KrnBuffer) buffers;
    Vec(KrnInst) insts;
    Vec(KrnAddress) addresses;
    Vec(KrnTerm) terms;
    Vec(KrnLoop) loops;
    Vec(KrnCarry) carries;
    int64_t split_count; // iterations of all split loops; 0: there are none
} Kernel;

// ---- building -------------------------------------------------------------------------------
// A builder appends at the end of an open kernel. A constant made before any loop is given again
// when asked for again; the builder does no other cleverness. Types are checked here (a wrong one
// is a bug of the caller), scopes and addresses by krn_verify.

typedef struct KrnBuilder {
    Kernel *kernel;
    Names *names;
    Vec(uint32_t) open; // loops
} KrnBuilder;

Kernel *krn_new(Arena *arena, Names *names, const char *name);
KrnBuilder krn_builder(Kernel *kernel, Names *names);
uint32_t krn_buffer(KrnBuilder *b, const char *name, DType type, int64_t size, int64_t range,
                    KrnRole role);

KrnType krn_type(KrnScalar scalar, uint32_t lanes);
KrnScalar krn_float_of(DType arithmetic); // F64: KRN_F64, else KRN_F32
KrnScalar krn_int_of(DType arithmetic);   // F64: KRN_I64, else KRN_I32

KrnValue krn_const_float(KrnBuilder *b, KrnType type, double value);
KrnValue krn_const_int(KrnBuilder *b, KrnType type, int64_t value);
// The result type follows from the operands by kop.def's rule.
KrnValue krn_op1(KrnBuilder *b, KrnOp op, KrnValue a);
KrnValue krn_op2(KrnBuilder *b, KrnOp op, KrnValue a, KrnValue b2);
KrnValue krn_op3(KrnBuilder *b, KrnOp op, KrnValue a, KrnValue b2, KrnValue c);
KrnValue krn_shift(KrnBuilder *b, KrnOp op, KrnValue a, int64_t count);
KrnValue krn_splat(KrnBuilder *b, KrnValue scalar, uint32_t lanes);
// To another scalar type of the same lanes: f32 ↔ f64; integers to floats, rounded once; i32 to i64
// keeping the sign, i64 to i32 wrapping; i1 to 0 or 1 of anything; integers to i1: not 0. Floats
// become integers only as BITS, truth values only by comparison.
KrnValue krn_convert(KrnBuilder *b, KrnScalar to, KrnValue a);
KrnValue krn_iota(KrnBuilder *b, uint32_t lanes);

typedef struct KrnIndex { // an address under construction
    uint32_t buffer;
    int64_t offset;
    uint32_t count;
    KrnTerm term[24];
} KrnIndex;
KrnIndex krn_index(uint32_t buffer, int64_t offset);
void krn_index_add(KrnIndex *index, int64_t coefficient, KrnValue value); // 0 coefficients dropped
KrnValue krn_load(KrnBuilder *b, const KrnIndex *index, uint32_t lanes, int64_t lane_stride);
void krn_store(KrnBuilder *b, const KrnIndex *index, int64_t lane_stride, KrnValue value,
               bool stream);
void krn_prefetch(KrnBuilder *b, const KrnIndex *index);

// Opens a loop; carried[i] starts as initial[i]. On return carried[i] are the values inside. The
// arrays may be the same.
KrnValue krn_loop(KrnBuilder *b, int64_t begin, int64_t end, int64_t step, KrnShare share,
                  uint32_t count, const KrnValue *initial, KrnValue *carried);
// Closes the innermost loop; on return result[i] are the final values.
void krn_end(KrnBuilder *b, uint32_t count, const KrnValue *next, KrnValue *result);

KrnType krn_type_of(const Kernel *kernel, KrnValue value);

// ---- using ----------------------------------------------------------------------------------

extern const char *const krn_op_text[KRN_OP_COUNT];
extern const char *const krn_scalar_text[KRN_F64 + 1];
size_t krn_scalar_size(KrnScalar scalar); // bytes; of I1: 1
KrnScalar krn_load_scalar(DType type);    // what a load from such a buffer gives
bool krn_can_convert(KrnScalar from, KrnScalar to);
bool krn_can_store(KrnScalar from, DType to);
int64_t krn_loop_count(const KrnLoop *loop); // iterations
bool krn_has_rule(KrnOp op);                 // the rule column gives the result's type
// That type; false where the operands do not fit the rule or there is none.
bool krn_result_type(KrnOp op, const KrnType *operands, KrnType *result);
uint32_t krn_arity(KrnOp op); // operands that are values

// The kernel's rules: types of operations (kop.def), structure of loops, every value defined before
// and inside the loop where it is used, every address in bounds for all iterations, no store to an
// IN buffer, no load from an OUT or SCRATCH buffer of what this kernel has not stored before, no
// two launches that touch one OUT element. Errors as text, one a line.
bool krn_verify(const Kernel *kernel, Arena *arena, Str *errors);

Str krn_print(const Kernel *kernel, Arena *arena);
// The kernel of a text in krn_print's form (spaces, blank lines and `//` comments are free); null,
// with a diagnostic, where it is malformed or does not verify.
Kernel *krn_read(Context *context, Arena *arena, uint32_t source);

// Bytes of all SCRATCH buffers, each aligned to 64, for one worker; and their places in such a
// block (itself aligned to 64), written into buffers[] by kernel buffer.
size_t krn_scratch_size(const Kernel *kernel);
void krn_scratch_place(const Kernel *kernel, void *block, void **buffers);

// A verified kernel made ready for the interpreter; it does not change, so that any number of
// threads may run it at once. The arena owns it.
typedef struct KrnCode KrnCode;
KrnCode *krn_code(const Kernel *kernel, Arena *arena);
size_t krn_code_frame(const KrnCode *code); // bytes of stack that a launch uses for values

// A launch: pointers by buffer (scratch included) and the range of the split loops' iterations,
// 0 ≤ begin ≤ end ≤ split_count (0, 0 where there is none). Allocates nothing, unless the frame is
// above 256 KiB.
void krn_interpret(const KrnCode *code, void *const *buffers, int64_t begin, int64_t end);

#endif
