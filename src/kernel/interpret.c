// The kernel interpreter: runs prepared code (code.h), one step at a time, each step lane by lane.
// What a step does in a lane is kop.def's `lane` column, instantiated for each type that its rule
// allows; there is no second definition for vectors. Threads may run one code at once: a launch
// keeps all its values in a frame on its own stack.
#include "kernel/code.h"

#include <alloca.h>
#include <math.h>
#include <stdlib.h>

enum { STACK_FRAME_MAX = 256 * 1024 };

// ---- the vocabulary of kop.def's lane column ------------------------------------------------

static inline int32_t bits_of_f32(float value) {
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static inline int64_t bits_of_f64(double value) {
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static inline float f32_of_bits(int32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline double f64_of_bits(int64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline uint32_t wrap_i32(int32_t value) {
    return (uint32_t)value;
}
static inline uint64_t wrap_i64(int64_t value) {
    return (uint64_t)value;
}
#define FMA(x, y, z) _Generic((x), float : fmaf, double : fma)(x, y, z)
#define SQRT(x)      _Generic((x), float : sqrtf, double : sqrt)(x)
#define ABS(x)       _Generic((x), float : fabsf, double : fabs)(x)
#define WRAP(x)      _Generic((x), int32_t : wrap_i32, int64_t : wrap_i64)(x)
#define BITS_OF(x)   _Generic((x), float : bits_of_f32, double : bits_of_f64)(x)
#define FLOAT_OF(x)  _Generic((x), int32_t : f32_of_bits, int64_t : f64_of_bits)(x)

// ---- steps by rule --------------------------------------------------------------------------

typedef uint8_t Truth;

#define AT(Type, offset) ((Type *)(void *)(frame + (offset)))
#define EACH_LANE        for (uint32_t lane = 0, lanes = step->lanes; lane < lanes; lane++)

// One case for each type: A, B, C, D are the C types of the operands and of the result.
#define CASE1(op, variant, D, A, expression)                                                       \
    case CODE(KRN_##op, variant): {                                                                \
        D *to = AT(D, step->d);                                                                    \
        const A *as = AT(A, step->a);                                                              \
        EACH_LANE {                                                                                \
            const A a = as[lane];                                                                  \
            to[lane] = (D)(expression);                                                            \
        }                                                                                          \
        break;                                                                                     \
    }
#define CASE2(op, variant, D, A, B, expression)                                                    \
    case CODE(KRN_##op, variant): {                                                                \
        D *to = AT(D, step->d);                                                                    \
        const A *as = AT(A, step->a);                                                              \
        const B *bs = AT(B, step->b);                                                              \
        EACH_LANE {                                                                                \
            const A a = as[lane];                                                                  \
            const B b = bs[lane];                                                                  \
            to[lane] = (D)(expression);                                                            \
        }                                                                                          \
        break;                                                                                     \
    }
#define CASE3(op, variant, D, A, B, C, expression)                                                 \
    case CODE(KRN_##op, variant): {                                                                \
        D *to = AT(D, step->d);                                                                    \
        const A *as = AT(A, step->a);                                                              \
        const B *bs = AT(B, step->b);                                                              \
        const C *cs = AT(C, step->c);                                                              \
        EACH_LANE {                                                                                \
            const A a = as[lane];                                                                  \
            const B b = bs[lane];                                                                  \
            const C c = cs[lane];                                                                  \
            to[lane] = (D)(expression);                                                            \
        }                                                                                          \
        break;                                                                                     \
    }
#define CASE_SHIFT(op, variant, A, expression)                                                     \
    case CODE(KRN_##op, variant): {                                                                \
        A *to = AT(A, step->d);                                                                    \
        const A *as = AT(A, step->a);                                                              \
        const int b = (int)step->number;                                                           \
        EACH_LANE {                                                                                \
            const A a = as[lane];                                                                  \
            to[lane] = (A)(expression);                                                            \
        }                                                                                          \
        break;                                                                                     \
    }

#define RULE_F_F(op, e)  CASE1(op, KRN_F32, float, float, e) CASE1(op, KRN_F64, double, double, e)
#define RULE_F_I(op, e)  CASE1(op, KRN_F32, int32_t, float, e) CASE1(op, KRN_F64, int64_t, double, e)
#define RULE_I_F(op, e)  CASE1(op, KRN_I32, float, int32_t, e) CASE1(op, KRN_I64, double, int64_t, e)
#define RULE_I_I(op, e)  CASE_SHIFT(op, KRN_I32, int32_t, e) CASE_SHIFT(op, KRN_I64, int64_t, e)
#define RULE_T_T(op, e)  CASE1(op, KRN_I1, Truth, Truth, e)
#define RULE_TT_T(op, e) CASE2(op, KRN_I1, Truth, Truth, Truth, e)
#define RULE_FF_F(op, e)                                                                           \
    CASE2(op, KRN_F32, float, float, float, e) CASE2(op, KRN_F64, double, double, double, e)
#define RULE_FF_T(op, e)                                                                           \
    CASE2(op, KRN_F32, Truth, float, float, e) CASE2(op, KRN_F64, Truth, double, double, e)
#define RULE_II_I(op, e)                                                                           \
    CASE2(op, KRN_I32, int32_t, int32_t, int32_t, e)                                               \
    CASE2(op, KRN_I64, int64_t, int64_t, int64_t, e)
#define RULE_II_T(op, e)                                                                           \
    CASE2(op, KRN_I32, Truth, int32_t, int32_t, e) CASE2(op, KRN_I64, Truth, int64_t, int64_t, e)
#define RULE_FFF_F(op, e)                                                                          \
    CASE3(op, KRN_F32, float, float, float, float, e)                                              \
    CASE3(op, KRN_F64, double, double, double, double, e)
#define RULE_TFF_F(op, e)                                                                          \
    CASE3(op, KRN_F32, float, Truth, float, float, e)                                              \
    CASE3(op, KRN_F64, double, Truth, double, double, e)
#define RULE_TII_I(op, e)                                                                          \
    CASE3(op, KRN_I32, int32_t, Truth, int32_t, int32_t, e)                                        \
    CASE3(op, KRN_I64, int64_t, Truth, int64_t, int64_t, e)
// Operations with a rule of their own are written out below.
#define RULE_CONSTANT(op, e)
#define RULE_CONVERT(op, e)
#define RULE_SPLAT(op, e)
#define RULE_IOTA(op, e)
#define RULE_ZIP(op, e) CASE_ZIP(op, KRN_F32, float, e) CASE_ZIP(op, KRN_F64, double, e)
#define RULE_MEMORY(op, e)
#define RULE_LOOP(op, e)

#define PAIRED(n) (lane % 2 ? bs : as)[((n) + lane) / 2]
#define CASE_ZIP(op, variant, A, expression)                                                       \
    case CODE(KRN_##op, variant): {                                                                \
        A *to = AT(A, step->d);                                                                    \
        const A *as = AT(A, step->a), *bs = AT(A, step->b);                                        \
        EACH_LANE to[lane] = expression;                                                           \
        break;                                                                                     \
    }
#define CASE_CONVERT(from, A, to_scalar, D, expression)                                            \
    case CODE(ROW_CONVERT + (from), to_scalar): {                                                  \
        D *to = AT(D, step->d);                                                                    \
        const A *as = AT(A, step->a);                                                              \
        EACH_LANE {                                                                                \
            const A a = as[lane];                                                                  \
            to[lane] = (D)(expression);                                                            \
        }                                                                                          \
        break;                                                                                     \
    }
#define CASE_SPLAT(scalar, A)                                                                      \
    case CODE(KRN_SPLAT, scalar): {                                                                \
        A *to = AT(A, step->d);                                                                    \
        const A a = *AT(A, step->a);                                                               \
        EACH_LANE to[lane] = a;                                                                    \
        break;                                                                                     \
    }
#define CASE_LOAD(dtype, Memory, D, expression)                                                    \
    case CODE(KRN_LOAD, dtype): {                                                                  \
        const CodeAddress *at = &code->addresses[step->number];                                    \
        const Memory *from = (const Memory *)buffers[at->buffer] + element(at, frame);             \
        D *to = AT(D, step->d);                                                                    \
        EACH_LANE {                                                                                \
            const Memory a = from[(int64_t)lane * at->lane_stride];                                \
            to[lane] = (D)(expression);                                                            \
        }                                                                                          \
        break;                                                                                     \
    }
#define CASE_STORE(row, dtype, Memory, A, expression)                                              \
    case CODE(row, dtype): {                                                                       \
        const CodeAddress *at = &code->addresses[step->number];                                    \
        Memory *to = (Memory *)buffers[at->buffer] + element(at, frame);                           \
        const A *as = AT(A, step->a);                                                              \
        EACH_LANE {                                                                                \
            const A a = as[lane];                                                                  \
            to[(int64_t)lane * at->lane_stride] = (Memory)(expression);                            \
        }                                                                                          \
        break;                                                                                     \
    }
#define CASE_STORE_INT(dtype, Memory)                                                              \
    CASE_STORE(KRN_STORE, dtype, Memory, int64_t, a)                                               \
    CASE_STORE(ROW_STORE_TRUTH, dtype, Memory, Truth, a)

static inline int64_t element(const CodeAddress *address, const unsigned char *frame) {
    uint64_t index = (uint64_t)address->offset;
    for (uint32_t i = 0; i < address->count; i++) {
        const CodeTerm *term = &address->terms[i];
        const int64_t *value = (const int64_t *)(const void *)(frame + term->slot);
        index += (uint64_t)term->coefficient * (uint64_t)*value;
    }
    return (int64_t)index;
}

typedef struct Launch {
    const KrnCode *code;
    void *const *buffers;
    int64_t begin, end;
} Launch;

// Sets a loop's index and counter; returns the step to go on with.
static const Step *enter_loop(const Launch *launch, const Step *step, unsigned char *frame) {
    const KrnCode *code = launch->code;
    const CodeLoop *loop = &code->loops[step->number];
    int64_t count = loop->count, first = loop->begin;
    if (loop->share == KRN_SPLIT) {
        int64_t from = MAX(launch->begin - loop->before, 0);
        count = MAX(MIN(launch->end - loop->before, count) - from, 0);
        first += from * loop->step;
    }
    bool last_launch =
        launch->end == code->split_count && (launch->begin < launch->end || code->split_count == 0);
    if (count == 0 || (loop->share == KRN_TAIL && !last_launch))
        return code->steps.at + loop->after;
    *AT(int64_t, step->d) = first;
    *AT(int64_t, step->a) = count;
    return step + 1;
}

static void run(const Launch *launch, unsigned char *frame) {
    const KrnCode *code = launch->code;
    void *const *buffers = launch->buffers;
    const Step *step = code->steps.at;
    for (;;) {
        switch (step->code) {
#define KOP(name, text, arity, rule, lane, meaning) RULE_##rule(name, lane)
#include "kernel/kop.def"
#undef KOP
            CASE_CONVERT(KRN_F32, float, KRN_F64, double, a)
            CASE_CONVERT(KRN_F64, double, KRN_F32, float, a)
            CASE_CONVERT(KRN_I1, Truth, KRN_I32, int32_t, a)
            CASE_CONVERT(KRN_I1, Truth, KRN_I64, int64_t, a)
            CASE_CONVERT(KRN_I1, Truth, KRN_F32, float, a)
            CASE_CONVERT(KRN_I1, Truth, KRN_F64, double, a)
            CASE_CONVERT(KRN_I32, int32_t, KRN_I1, Truth, a != 0)
            CASE_CONVERT(KRN_I32, int32_t, KRN_I64, int64_t, a)
            CASE_CONVERT(KRN_I32, int32_t, KRN_F32, float, a)
            CASE_CONVERT(KRN_I32, int32_t, KRN_F64, double, a)
            CASE_CONVERT(KRN_I64, int64_t, KRN_I1, Truth, a != 0)
            CASE_CONVERT(KRN_I64, int64_t, KRN_I32, int32_t, a)
            CASE_CONVERT(KRN_I64, int64_t, KRN_F32, float, a)
            CASE_CONVERT(KRN_I64, int64_t, KRN_F64, double, a)
            CASE_SPLAT(KRN_I1, Truth)
            CASE_SPLAT(KRN_I32, int32_t)
            CASE_SPLAT(KRN_I64, int64_t)
            CASE_SPLAT(KRN_F32, float)
            CASE_SPLAT(KRN_F64, double)
            CASE_LOAD(F64, double, double, a)
            CASE_LOAD(F32, float, float, a)
            CASE_LOAD(BF16, uint16_t, float, f32_of_bf16(a))
            CASE_LOAD(U8, uint8_t, int64_t, a)
            CASE_LOAD(U16, uint16_t, int64_t, a)
            CASE_LOAD(U32, uint32_t, int64_t, a)
            CASE_LOAD(U64, uint64_t, int64_t, a)
            CASE_STORE(KRN_STORE, F64, double, double, a)
            CASE_STORE(KRN_STORE, F32, float, float, a)
            CASE_STORE(KRN_STORE, BF16, uint16_t, float, bf16_of_f32(a))
            CASE_STORE_INT(U8, uint8_t)
            CASE_STORE_INT(U16, uint16_t)
            CASE_STORE_INT(U32, uint32_t)
            CASE_STORE_INT(U64, uint64_t)
        case CODE(ROW_COPY, COPY_4):
            memcpy(frame + step->d, frame + step->a, 4);
            break;
        case CODE(ROW_COPY, COPY_8):
            memcpy(frame + step->d, frame + step->a, 8);
            break;
        case CODE(ROW_COPY, COPY_MORE):
            memcpy(frame + step->d, frame + step->a, step->lanes);
            break;
        case CODE(KRN_LOOP, 0):
            step = enter_loop(launch, step, frame);
            continue;
        case CODE(KRN_END, 0):
            if (--*AT(int64_t, step->a) > 0) {
                const CodeLoop *loop = &code->loops[step->number];
                *AT(int64_t, step->d) += loop->step;
                step = code->steps.at + loop->body;
                continue;
            }
            break;
        case CODE(ROW_STOP, 0):
            return;
        default:
            bug("the interpreter has no step %u", step->code);
        }
        step++;
    }
}

void krn_interpret(const KrnCode *code, void *const *buffers, int64_t begin, int64_t end) {
    check_that(0 <= begin && begin <= end && end <= code->split_count);
    bool large = code->frame_size > STACK_FRAME_MAX;
    unsigned char *frame = large ? malloc(code->frame_size) : alloca(code->frame_size + 1);
    check_that(frame != NULL);
    if (code->image_size)
        memcpy(frame, code->image, code->image_size);
    const Launch launch = {code, buffers, begin, end};
    run(&launch, frame);
    if (large)
        free(frame);
}
