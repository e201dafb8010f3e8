// A kernel as the interpreter runs it: a flat list of steps whose operands are byte offsets in a
// frame. Inner to the interpreter (code.c makes it, interpret.c runs it).
//
// The frame begins with an image of all constants, copied in at the start of a launch; behind it
// are the slots of values, shared by values that are not alive at the same time. A vector is an
// array of its lanes; a truth value is one byte, 0 or 1.
#ifndef PRESK_KERNEL_CODE_H
#define PRESK_KERNEL_CODE_H

#include "kernel/kernel.h"

// A step's code is an operation and a variant: the scalar type of the operands (of b for selects),
// for memory the buffer's DType. Some operations need two variants and have a row for each value of
// the first.
enum {
    ROW_STORE_TRUTH = KRN_OP_COUNT,
    ROW_CONVERT,                          // + the scalar type converted from
    ROW_COPY = ROW_CONVERT + KRN_F64 + 1, // variants: COPY_4, COPY_8, COPY_MORE
    ROW_STOP,
    ROW_COUNT
};
enum { COPY_4, COPY_8, COPY_MORE };
#define CODE(row, variant) ((uint32_t)(row)*8 + (uint32_t)(variant))

typedef struct Step {
    uint16_t code;
    uint16_t lanes;      // COPY_MORE: bytes
    uint32_t d, a, b, c; // result and operands; LOOP, END: d is the index, a the counter
    int64_t number;      // shift count; else an index into addresses or loops
} Step;

typedef struct CodeTerm {
    int64_t coefficient;
    uint32_t slot;
} CodeTerm;

typedef struct CodeAddress {
    uint32_t buffer, count;
    int64_t offset, lane_stride;
    const CodeTerm *terms;
} CodeAddress;

typedef struct CodeLoop {
    int64_t begin, step, count, before;
    KrnShare share;
    uint32_t body, after; // steps
} CodeLoop;

struct KrnCode {
    Arena *arena;
    Vec(Step) steps;
    CodeAddress *addresses;
    CodeLoop *loops;
    void *image;
    uint32_t image_size, frame_size;
    int64_t split_count;
};

#endif
