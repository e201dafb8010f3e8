// Kernels as text, in the form that kernel.h shows.
#include "kernel/kernel.h"

typedef struct Printer {
    const Kernel *kernel;
    StrBuf out;
    int depth;
} Printer;

// "%7"
static void print_value(Printer *p, KrnValue value) {
    buf_char(&p->out, '%');
    buf_number(&p->out, value);
}

static void print_indent(Printer *p) {
    for (int i = 0; i < p->depth; i++)
        buf_text(&p->out, "  ");
}

static void print_type(Printer *p, KrnType type) {
    buf_text(&p->out, krn_scalar_text[type.scalar]);
    if (type.lanes > 1)
        buf_format(&p->out, "x%u", type.lanes);
}

static void print_buffers(Printer *p) {
    static const char *const roles[] = {"in", "out", "scratch"};
    for (uint32_t i = 0; i < p->kernel->buffers.count; i++) {
        const KrnBuffer *buffer = &p->kernel->buffers.at[i];
        buf_format(&p->out, "  buffer %%%s : %s[%lld] %s", name_c(p->kernel->names, buffer->name),
                   dtype_text(buffer->type), (long long)buffer->size, roles[buffer->role]);
        if (buffer->range)
            buf_format(&p->out, " below %lld", (long long)buffer->range);
        buf_char(&p->out, '\n');
    }
}

// "64*%0", "%2", "-%3"; `first` says that no term stands before it.
static void print_term(Printer *p, const KrnTerm *term, bool first) {
    uint64_t size =
        term->coefficient < 0 ? -(uint64_t)term->coefficient : (uint64_t)term->coefficient;
    if (first)
        buf_text(&p->out, term->coefficient < 0 ? "-" : "");
    else
        buf_text(&p->out, term->coefficient < 0 ? " - " : " + ");
    if (size != 1)
        buf_format(&p->out, "%llu*", (unsigned long long)size);
    print_value(p, term->value);
}

static void print_address(Printer *p, uint32_t number) {
    const KrnAddress *address = &p->kernel->addresses.at[number];
    Name name = p->kernel->buffers.at[address->buffer].name;
    buf_format(&p->out, " %%%s[", name_c(p->kernel->names, name));
    for (uint32_t i = 0; i < address->count; i++)
        print_term(p, &p->kernel->terms.at[address->first + i], i == 0);
    if (address->count == 0)
        buf_format(&p->out, "%lld", (long long)address->offset);
    else if (address->offset > 0)
        buf_format(&p->out, " + %lld", (long long)address->offset);
    else if (address->offset < 0)
        buf_format(&p->out, " - %llu", (unsigned long long)-(uint64_t)address->offset);
    if (address->lane_stride != 1)
        buf_format(&p->out, " by %lld", (long long)address->lane_stride);
    buf_char(&p->out, ']');
}

static void print_const(Printer *p, const KrnInst *inst) {
    Arena *arena = p->out.arena;
    buf_char(&p->out, ' ');
    if (inst->type.scalar == KRN_F32)
        buf_add(&p->out, str_of_float(arena, (float)inst->number));
    else if (inst->type.scalar == KRN_F64)
        buf_add(&p->out, str_of_double(arena, inst->number));
    else
        buf_format(&p->out, "%lld", (long long)inst->integer);
}

static void print_loop(Printer *p, const KrnLoop *loop) {
    static const char *const shares[] = {"", " split", " tail"};
    buf_format(&p->out, "loop %%%u = %lld to %lld step %lld%s", loop->loop, (long long)loop->begin,
               (long long)loop->end, (long long)loop->step, shares[loop->share]);
    for (uint32_t i = 0; i < loop->count; i++) {
        const KrnCarry *carry = &p->kernel->carries.at[loop->first + i];
        buf_format(&p->out, "%s %%%u : ", i ? "," : " carry", carry->carry);
        print_type(p, p->kernel->insts.at[carry->carry].type);
        buf_format(&p->out, " = %%%u", carry->initial);
    }
    buf_text(&p->out, " {\n");
}

static void print_end(Printer *p, const KrnLoop *loop) {
    const KrnCarry *carries = p->kernel->carries.at + loop->first;
    if (loop->count) {
        buf_format(&p->out, "%*snext", p->depth * 2 + 2, "");
        for (uint32_t i = 0; i < loop->count; i++)
            buf_format(&p->out, "%s %%%u", i ? "," : "", carries[i].next);
        buf_char(&p->out, '\n');
    }
    print_indent(p);
    buf_char(&p->out, '}');
    for (uint32_t i = 0; i < loop->count; i++)
        buf_format(&p->out, "%s %%%u", i ? "," : " gives", carries[i].result);
    buf_char(&p->out, '\n');
}

static void print_operation(Printer *p, KrnValue value, const KrnInst *inst) {
    if (inst->type.scalar != KRN_NONE) {
        print_value(p, value);
        buf_text(&p->out, " : ");
        print_type(p, inst->type);
        buf_text(&p->out, " = ");
    }
    buf_text(&p->out, krn_op_text[inst->op]);
    if (inst->op == KRN_CONST)
        print_const(p, inst);
    if (inst->op == KRN_LOAD || inst->op == KRN_STORE || inst->op == KRN_PREFETCH)
        print_address(p, inst->address);
    const KrnValue operand[] = {inst->a, inst->b, inst->c};
    for (uint32_t i = 0; i < krn_arity(inst->op); i++) {
        buf_char(&p->out, ' ');
        print_value(p, operand[i]);
    }
    if (inst->op == KRN_SHL || inst->op == KRN_SHR)
        buf_format(&p->out, " %lld", (long long)inst->integer);
    if (inst->flags & KRN_STREAM)
        buf_text(&p->out, " stream");
    buf_char(&p->out, '\n');
}

Str krn_print(const Kernel *kernel, Arena *arena) {
    Printer p = {.kernel = kernel, .out = {.arena = arena}, .depth = 1};
    buf_format(&p.out, "kernel %s {\n", name_c(kernel->names, kernel->name));
    print_buffers(&p);
    for (KrnValue i = 0; i < kernel->insts.count; i++) {
        const KrnInst *inst = &kernel->insts.at[i];
        if (inst->op == KRN_CARRY || inst->op == KRN_RESULT)
            continue; // shown by the loop
        if (inst->op == KRN_END) {
            p.depth--;
            print_end(&p, &kernel->loops.at[inst->loop]);
            continue;
        }
        print_indent(&p);
        if (inst->op == KRN_LOOP) {
            print_loop(&p, &kernel->loops.at[inst->loop]);
            p.depth++;
        } else {
            print_operation(&p, i, inst);
        }
    }
    buf_text(&p.out, "}\n");
    return buf_str(&p.out);
}
