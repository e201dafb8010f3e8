// From maths programs to kernel operations: every step is the operation of its name, so that all
// executors run one definition.
#include "kernel/lowering.h"

// Steps without an operation of their own name: an argument is a value already, constants are
// CONST.
enum { KRN_ARG = KRN_CONST, KRN_FLOAT_CONST = KRN_CONST, KRN_INT_CONST = KRN_CONST };

static const uint8_t op_of_step[] = {
#define STEP(name, text, arity, result, operands, meaning) [MTH_STEP_##name] = KRN_##name,
#include "maths/step.def"
#undef STEP
};

MthProgram low_program(Low *low, MthFunction function, int64_t exponent, DType arithmetic) {
    MthProgram program = mth_program(low->arena, function, exponent, arithmetic);
    low_prepare(low, &program, arithmetic);
    return program;
}

static KrnValue step_constant(Low *low, const MthStep *step, DType arithmetic, uint32_t width) {
    if (step->op == MTH_STEP_FLOAT_CONST)
        return low_constant(low, arithmetic, width, step->number);
    return krn_const_int(&low->b, krn_type(krn_int_of(arithmetic), width), step->integer);
}

void low_prepare(Low *low, const MthProgram *program, DType arithmetic) {
    uint32_t widths[8], count = low_widths(low, widths);
    for (uint32_t i = 0; i < program->count; i++)
        if (op_of_step[program->steps[i].op] == KRN_CONST && program->steps[i].op != MTH_STEP_ARG)
            for (uint32_t w = 0; w < count; w++)
                step_constant(low, &program->steps[i], arithmetic, widths[w]);
}

KrnValue low_apply(Low *low, const MthProgram *program, DType arithmetic, const KrnValue *args) {
    KrnValue *value = arena_array(low->arena, KrnValue, program->count);
    uint32_t width = krn_type_of(low->b.kernel, args[0]).lanes;
    for (uint32_t i = 0; i < program->count; i++) {
        const MthStep *step = &program->steps[i];
        KrnOp op = (KrnOp)op_of_step[step->op];
        if (step->op == MTH_STEP_ARG)
            value[i] = args[step->integer];
        else if (op == KRN_CONST)
            value[i] = step_constant(low, step, arithmetic, width);
        else if (op == KRN_SHL || op == KRN_SHR)
            value[i] = krn_shift(&low->b, op, value[step->a], step->integer);
        else if (krn_arity(op) == 1)
            value[i] = krn_op1(&low->b, op, value[step->a]);
        else if (krn_arity(op) == 2)
            value[i] = krn_op2(&low->b, op, value[step->a], value[step->b]);
        else
            value[i] = krn_op3(&low->b, op, value[step->a], value[step->b], value[step->c]);
    }
    return value[program->result];
}
