// The tables of functions and steps, and the building of a program.
#include "maths/build.h"

typedef Val (*Builder)(MthBuild *b, const Val *arg);

static const struct {
    const char *text;
    uint32_t arity;
    Builder build;
} functions[MTH_FUNCTION_COUNT] = {
#define FUNCTION(name, arity, meaning) {#name, arity, mth_build_##name},
#include "maths/function.def"
#undef FUNCTION
};

static const struct {
    const char *text;
    uint32_t arity;
    char result;
    const char *operands;
} steps[MTH_STEP_COUNT] = {
#define STEP(name, text, arity, result, operands, meaning) {text, arity, #result[0], operands},
#include "maths/step.def"
#undef STEP
};

const char *mth_function_text(MthFunction function) {
    return functions[function].text;
}

uint32_t mth_function_arity(MthFunction function) {
    return functions[function].arity;
}

const char *mth_step_text(MthOp op) {
    return steps[op].text;
}

static MthSort sort_of(char letter) {
    return letter == 'F' ? MTH_FLOAT : letter == 'I' ? MTH_INT : MTH_TRUTH;
}

// The number of this step: of an equal earlier one, else of a new one. Constants and immediates
// are compared by bits (the union's `integer`), so −0 and +0 are two constants.
static Val step_add(MthBuild *b, MthStep step) {
    step.sort = (uint8_t)sort_of(steps[step.op].result);
    for (Val i = 0; i < b->count; i++) {
        const MthStep *old = &b->steps[i];
        if (old->op == step.op && old->a == step.a && old->b == step.b && old->c == step.c &&
            old->integer == step.integer)
            return i;
    }
    check_that(b->count < MTH_STEPS_MAX);
    b->steps[b->count] = step;
    return b->count++;
}

Val mth_step(MthBuild *b, MthOp op, Val x, Val y, Val z) {
    const Val operand[3] = {x, y, z};
    for (uint32_t i = 0; i < steps[op].arity; i++) {
        check_that(operand[i] < b->count);
        check_that(b->steps[operand[i]].sort == sort_of(steps[op].operands[i]));
    }
    return step_add(b, (MthStep){.op = (uint8_t)op, .a = x, .b = y, .c = z});
}

Val mth_float_const(MthBuild *b, double value) {
    check_that(mth_round(b->type, value) == value);
    return step_add(b, (MthStep){.op = MTH_STEP_FLOAT_CONST, .number = value});
}

Val mth_int_const(MthBuild *b, int64_t value) {
    return step_add(b, (MthStep){.op = MTH_STEP_INT_CONST, .integer = value});
}

Val mth_shift(MthBuild *b, MthOp op, Val x, int64_t count) {
    check_that(b->steps[x].sort == MTH_INT);
    return step_add(b, (MthStep){.op = (uint8_t)op, .a = x, .integer = count});
}

Val mth_polynomial(MthBuild *b, Val x, uint32_t count, const double *coefficients) {
    Val sum = number(b, coefficients[count - 1]);
    for (uint32_t i = count - 1; i > 0; i--)
        sum = fused(b, sum, x, number(b, coefficients[i - 1]));
    return sum;
}

// Steps that the result does not need fall off, arguments stay; the result's new number. Builders
// ask shared parts for more than they use.
static Val drop_unused(MthBuild *b, Val result) {
    bool used[MTH_STEPS_MAX] = {0};
    Val new_number[MTH_STEPS_MAX];
    used[result] = true;
    for (Val i = b->count; i-- > 0;) {
        const MthStep *step = &b->steps[i];
        used[i] |= step->op == MTH_STEP_ARG;
        const Val operand[3] = {step->a, step->b, step->c};
        for (uint32_t k = 0; used[i] && k < steps[step->op].arity; k++)
            used[operand[k]] = true;
    }
    Val count = 0;
    for (Val i = 0; i < b->count; i++) {
        if (!used[i])
            continue;
        MthStep step = b->steps[i];
        uint32_t arity = steps[step.op].arity;
        step.a = arity > 0 ? new_number[step.a] : 0;
        step.b = arity > 1 ? new_number[step.b] : 0;
        step.c = arity > 2 ? new_number[step.c] : 0;
        b->steps[count] = step;
        new_number[i] = count++;
    }
    b->count = count;
    return new_number[result];
}

static MthProgram build(MthBuild *b, MthFunction function, int64_t exponent, DType arithmetic) {
    check_that(arithmetic == F64 || arithmetic == F32);
    *b = (MthBuild){.type = arithmetic, .exponent = exponent};
    Val arg[3] = {0};
    for (uint32_t i = 0; i < functions[function].arity; i++)
        arg[i] = step_add(b, (MthStep){.op = MTH_STEP_ARG, .integer = i});
    Val result = drop_unused(b, functions[function].build(b, arg));
    return (MthProgram){
        .steps = b->steps, .count = b->count, .result = result, .arity = functions[function].arity};
}

MthProgram mth_program(Arena *arena, MthFunction function, int64_t exponent, DType arithmetic) {
    MthBuild b;
    MthProgram program = build(&b, function, exponent, arithmetic);
    program.steps = arena_copy(arena, b.steps, b.count * sizeof *b.steps);
    return program;
}

double mth_apply(MthFunction function, int64_t exponent, DType arithmetic, const double *args) {
    MthBuild b;
    MthProgram program = build(&b, function, exponent, arithmetic);
    const double *const arrays[3] = {args, args + 1, args + 2};
    double out;
    mth_run(&program, arithmetic, 1, arrays, &out);
    return out;
}
