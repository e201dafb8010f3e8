// Running step programs, one step at a time over a block of elements, and the scalar operations
// that products are made of. float for F32 and double for F64, so that each C operation is the
// IEEE operation of the step (the build forbids contraction and wider intermediates).
#include "maths/build.h"
#include <float.h>
#include <math.h>

_Static_assert(FLT_EVAL_METHOD == 0, "float and double operations round to their own type");

enum { BLOCK = 32 };

typedef union Cell32 {
    float f;
    int32_t i;
} Cell32;
typedef union Cell64 {
    double f;
    int64_t i;
} Cell64;

// One step on n elements; truth values are integers 0 and 1.
#define DEFINE_STEP(NAME, CELL, REAL, WHOLE, UNSIGNED, FUSED, ROOT, MAGNITUDE)                     \
    static void NAME(const MthStep *step, uint32_t n, const CELL *a, const CELL *b, const CELL *c, \
                     const double *arg, CELL *out) {                                               \
        switch ((MthOp)step->op) {                                                                 \
            EACH(ARG, out[e].f = (REAL)arg[e])                                                     \
            EACH(FLOAT_CONST, out[e].f = (REAL)step->number)                                       \
            EACH(INT_CONST, out[e].i = (WHOLE)step->integer)                                       \
            EACH(ADD, out[e].f = a[e].f + b[e].f)                                                  \
            EACH(SUB, out[e].f = a[e].f - b[e].f)                                                  \
            EACH(MUL, out[e].f = a[e].f * b[e].f)                                                  \
            EACH(DIV, out[e].f = a[e].f / b[e].f)                                                  \
            EACH(SQRT, out[e].f = ROOT(a[e].f))                                                    \
            EACH(FMA, out[e].f = FUSED(a[e].f, b[e].f, c[e].f))                                    \
            EACH(NEG, out[e].f = -a[e].f)                                                          \
            EACH(ABS, out[e].f = MAGNITUDE(a[e].f))                                                \
            EACH(LT, out[e].i = a[e].f < b[e].f)                                                   \
            EACH(LE, out[e].i = a[e].f <= b[e].f)                                                  \
            EACH(EQ, out[e].i = a[e].f == b[e].f)                                                  \
            EACH(NE, out[e].i = a[e].f != b[e].f)                                                  \
            EACH(AND, out[e].i = a[e].i & b[e].i)                                                  \
            EACH(OR, out[e].i = a[e].i | b[e].i)                                                   \
            EACH(NOT, out[e].i = !a[e].i)                                                          \
            EACH(SELECT, out[e] = a[e].i ? b[e] : c[e])                                            \
            EACH(ISELECT, out[e] = a[e].i ? b[e] : c[e])                                           \
            EACH(IADD, out[e].i = (WHOLE)((UNSIGNED)a[e].i + (UNSIGNED)b[e].i))                    \
            EACH(ISUB, out[e].i = (WHOLE)((UNSIGNED)a[e].i - (UNSIGNED)b[e].i))                    \
            EACH(IAND, out[e].i = a[e].i & b[e].i)                                                 \
            EACH(IOR, out[e].i = a[e].i | b[e].i)                                                  \
            EACH(IXOR, out[e].i = a[e].i ^ b[e].i)                                                 \
            EACH(SHL, out[e].i = (WHOLE)((UNSIGNED)a[e].i << step->integer))                       \
            EACH(SHR, out[e].i = a[e].i >> step->integer)                                          \
            EACH(BITS, out[e] = a[e])                                                              \
            EACH(FLOAT, out[e] = a[e])                                                             \
        case MTH_STEP_COUNT:                                                                       \
            bug("no such step");                                                                   \
        }                                                                                          \
    }
#define EACH(op, statement)                                                                        \
    case MTH_STEP_##op:                                                                            \
        for (uint32_t e = 0; e < n; e++)                                                           \
            statement;                                                                             \
        break;

DEFINE_STEP(step32, Cell32, float, int32_t, uint32_t, fmaf, sqrtf, fabsf)
DEFINE_STEP(step64, Cell64, double, int64_t, uint64_t, fma, sqrt, fabs)

#define DEFINE_RUN(NAME, CELL, STEP)                                                               \
    static void NAME(const MthProgram *program, uint32_t begin, uint32_t n,                        \
                     const double *const *args, double *out) {                                     \
        CELL value[MTH_STEPS_MAX][BLOCK];                                                          \
        for (uint32_t i = 0; i < program->count; i++) {                                            \
            const MthStep *step = &program->steps[i];                                              \
            const double *arg = step->op == MTH_STEP_ARG ? args[step->integer] + begin : NULL;     \
            STEP(step, n, value[step->a], value[step->b], value[step->c], arg, value[i]);          \
        }                                                                                          \
        bool truth = program->steps[program->result].sort == MTH_TRUTH;                            \
        for (uint32_t e = 0; e < n; e++) {                                                         \
            CELL cell = value[program->result][e];                                                 \
            out[begin + e] = truth ? (double)cell.i : (double)cell.f;                              \
        }                                                                                          \
    }

DEFINE_RUN(run32, Cell32, step32)
DEFINE_RUN(run64, Cell64, step64)

void mth_run(const MthProgram *program, DType arithmetic, uint32_t n, const double *const *args,
             double *out) {
    check_that(program->count <= MTH_STEPS_MAX);
    for (uint32_t begin = 0; begin < n; begin += BLOCK) {
        uint32_t size = MIN(n - begin, (uint32_t)BLOCK);
        if (arithmetic == F32)
            run32(program, begin, size, args, out);
        else
            run64(program, begin, size, args, out);
    }
}

double mth_round(DType arithmetic, double value) {
    return arithmetic == F32 ? (double)(float)value : value;
}

double mth_fma(DType arithmetic, double a, double b, double c) {
    return arithmetic == F32 ? (double)fmaf((float)a, (float)b, (float)c) : fma(a, b, c);
}
