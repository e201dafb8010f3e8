// Elementwise functions as C: their programs step by step, for compilers to optimise.
#ifndef BENCH_STEPS_H
#define BENCH_STEPS_H

#include "maths/maths.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// `TYPE vI = …;` for step I, of the argument x.
static inline void steps_print_one(FILE *out, const MthStep *s, uint32_t i, bool f32) {
    const char *real = f32 ? "float" : "double", *whole = f32 ? "int32_t" : "int64_t";
    const char *natural = f32 ? "uint32_t" : "uint64_t", *suffix = f32 ? "f" : "";
    static const char *const infix[MTH_STEP_COUNT] = {
        [MTH_STEP_ADD] = "+",  [MTH_STEP_SUB] = "-", [MTH_STEP_MUL] = "*",  [MTH_STEP_DIV] = "/",
        [MTH_STEP_LT] = "<",   [MTH_STEP_LE] = "<=", [MTH_STEP_EQ] = "==",  [MTH_STEP_NE] = "!=",
        [MTH_STEP_AND] = "&",  [MTH_STEP_OR] = "|",  [MTH_STEP_IADD] = "+", [MTH_STEP_ISUB] = "-",
        [MTH_STEP_IAND] = "&", [MTH_STEP_IOR] = "|", [MTH_STEP_IXOR] = "^"};
    fprintf(out, "    %s v%u = ",
            s->sort == MTH_FLOAT ? real
            : s->sort == MTH_INT ? natural
                                 : "int",
            i);
    if (infix[s->op])
        fprintf(out, "v%u %s v%u;\n", s->a, infix[s->op], s->b);
    else if (s->op == MTH_STEP_ARG)
        fprintf(out, "x;\n");
    else if (s->op == MTH_STEP_FLOAT_CONST && isinf(s->number))
        fprintf(out, "%s__builtin_inf();\n", s->number < 0 ? "-" : "");
    else if (s->op == MTH_STEP_FLOAT_CONST)
        fprintf(out, "%a%s;\n", s->number, suffix);
    else if (s->op == MTH_STEP_INT_CONST)
        fprintf(out, "(%s)%lluu;\n", natural, (unsigned long long)s->integer);
    else if (s->op == MTH_STEP_SQRT || s->op == MTH_STEP_ABS)
        fprintf(out, "__builtin_%s%s(v%u);\n", s->op == MTH_STEP_SQRT ? "sqrt" : "fabs", suffix,
                s->a);
    else if (s->op == MTH_STEP_FMA)
        fprintf(out, "__builtin_fma%s(v%u, v%u, v%u);\n", suffix, s->a, s->b, s->c);
    else if (s->op == MTH_STEP_NEG || s->op == MTH_STEP_NOT)
        fprintf(out, "%sv%u;\n", s->op == MTH_STEP_NEG ? "-" : "!", s->a);
    else if (s->op == MTH_STEP_SELECT || s->op == MTH_STEP_ISELECT)
        fprintf(out, "v%u ? v%u : v%u;\n", s->a, s->b, s->c);
    else if (s->op == MTH_STEP_SHL)
        fprintf(out, "v%u << %d;\n", s->a, (int)s->integer);
    else if (s->op == MTH_STEP_SHR)
        fprintf(out, "(%s)((%s)v%u >> %d);\n", natural, whole, s->a, (int)s->integer);
    else if (s->op == MTH_STEP_BITS || s->op == MTH_STEP_FLOAT)
        fprintf(out, "((union { %s f; %s i; }){.%s = v%u}).%s;\n", real, natural,
                s->op == MTH_STEP_BITS ? "f" : "i", s->a, s->op == MTH_STEP_BITS ? "i" : "f");
    else
        bug("step %s", mth_step_text((MthOp)s->op));
}

// The definition of a function `name` of one argument.
static inline void steps_print(FILE *out, Arena *arena, MthFunction function, DType type,
                               const char *name) {
    MthProgram program = mth_program(arena, function, 0, type);
    const char *real = type == F32 ? "float" : "double";
    fprintf(out, "static inline %s %s(%s x) {\n", real, name, real);
    for (uint32_t i = 0; i < program.count; i++)
        steps_print_one(out, &program.steps[i], i, type == F32);
    fprintf(out, "    return v%u;\n}\n", program.result);
}

// The library that a C program becomes with all optimizations that move no bit; `print` writes the
// program, `flags` are further ones for the compiler.
static inline void *steps_compile(Arena *arena, void (*print)(FILE *out, Arena *arena),
                                  const char *flags) {
    char folder[] = "/tmp/presk-steps-XXXXXX";
    if (!mkdtemp(folder))
        bug("no temporary folder");
    Str source = str_format(arena, "%s/steps.c", folder);
    Str object = str_format(arena, "%s/steps.so", folder);
    FILE *out = fopen(source.at, "w");
    if (!out)
        bug("cannot write %s", source.at);
    fprintf(out, "#include <stdint.h>\n");
    print(out, arena);
    fclose(out);
    Str command = str_format(arena,
                             "cc -std=gnu11 -O3 -march=native -ffp-contract=off -fno-math-errno "
                             "-fno-trapping-math %s -w -shared -fPIC %s -o %s",
                             flags, source.at, object.at);
    if (system(command.at) != 0)
        bug("failed: %s", command.at);
    void *library = dlopen(object.at, RTLD_NOW);
    if (!library)
        bug("%s", dlerror());
    remove(source.at);
    remove(object.at);
    remove(folder);
    return library;
}

#endif
