#include "kernel/c_text.h"

#include <inttypes.h>
#include <math.h>

void krn_c_prelude(StrBuf *buf) {
    buf_text(
        buf,
        "#include <float.h>\n"
        "#include <math.h>\n"
        "#include <stddef.h>\n"
        "#include <stdint.h>\n"
        "#include <string.h>\n"
        "\n"
        "/* Every operation rounds once, as written: no contraction, no fast-math. */\n"
        "#if defined(__clang__)\n"
        "#pragma STDC FP_CONTRACT OFF\n"
        "#elif defined(__GNUC__)\n"
        "#pragma GCC optimize(\"fp-contract=off\")\n"
        "#else\n"
        "#pragma STDC FP_CONTRACT OFF\n"
        "#endif\n"
        "#if defined(__FAST_MATH__)\n"
        "#error \"fast-math flags change bits: compile without them\"\n"
        "#endif\n"
        "#if !defined(FLT_EVAL_METHOD) || FLT_EVAL_METHOD != 0\n"
        "#error \"float expressions must be evaluated in their own type (on 32-bit x86: -msse2 "
        "-mfpmath=sse)\"\n"
        "#endif\n"
        "\n"
        "static inline int32_t bits_of_f32(float a) { int32_t b; memcpy(&b, &a, 4); return b; }\n"
        "static inline int64_t bits_of_f64(double a) { int64_t b; memcpy(&b, &a, 8); return b; }\n"
        "static inline float f32_of_bits(int32_t a) { float b; memcpy(&b, &a, 4); return b; }\n"
        "static inline double f64_of_bits(int64_t a) { double b; memcpy(&b, &a, 8); return b; }\n"
        "static inline float f32_of_bf16(uint16_t a) {\n"
        "    return f32_of_bits((int32_t)((uint32_t)a << 16));\n"
        "}\n"
        "static inline uint16_t bf16_of_f32(float a) { /* to nearest, ties to even */\n"
        "    uint32_t b = (uint32_t)bits_of_f32(a);\n"
        "    if (a != a)\n"
        "        return (uint16_t)(b >> 16 | 0x40);\n"
        "    return (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);\n"
        "}\n\n");
}

// ---- types and names ------------------------------------------------------------------------

static const char *const scalar_c[] = {"void",    "unsigned char", "int32_t",
                                       "int64_t", "float",         "double"};
_Static_assert(COUNT_OF(scalar_c) == KRN_F64 + 1, "a C type for each scalar");

static const char *const memory_c[DTYPE_COUNT] = {"double",   "float",    "uint16_t", "uint8_t",
                                                  "uint16_t", "uint32_t", "uint64_t"};

static const char *const lane_text[KRN_OP_COUNT] = {
#define KOP(name, text, arity, rule, lane, meaning) #lane,
#include "kernel/kop.def"
#undef KOP
};

typedef struct Writer {
    const Kernel *kernel;
    StrBuf *buf;
    uint32_t depth;
} Writer;

static void indent(Writer *w) {
    for (uint32_t i = 0; i < w->depth; i++)
        buf_text(w->buf, "    ");
}

static const KrnInst *inst_of(const Writer *w, KrnValue value) {
    return &w->kernel->insts.at[value];
}

static uint32_t lanes_of(const Writer *w, KrnValue value) {
    return inst_of(w, value)->type.lanes;
}

// `v7`, or `v7[l]` where the value has lanes.
static void use(Writer *w, KrnValue value) {
    buf_format(w->buf, lanes_of(w, value) > 1 ? "v%u[l]" : "v%u", value);
}

static void declare(Writer *w, KrnValue value) {
    KrnType type = inst_of(w, value)->type;
    indent(w);
    buf_format(w->buf, "%s v%u", scalar_c[type.scalar], value);
    if (type.lanes > 1)
        buf_format(w->buf, "[%u]", type.lanes);
}

static void number(Writer *w, KrnType type, const KrnInst *inst) {
    if (type.scalar == KRN_F32 && isfinite(inst->number))
        buf_format(w->buf, "%af", inst->number);
    else if (type.scalar == KRN_F64 && isfinite(inst->number))
        buf_format(w->buf, "%a", inst->number);
    else if (type.scalar == KRN_F32)
        buf_text(w->buf, isnan(inst->number) ? "f32_of_bits(0x7fc00000)"
                         : inst->number > 0  ? "f32_of_bits(0x7f800000)"
                                             : "-f32_of_bits(0x7f800000)");
    else if (type.scalar == KRN_F64)
        buf_text(w->buf, isnan(inst->number) ? "f64_of_bits(0x7ff8000000000000)"
                         : inst->number > 0  ? "f64_of_bits(0x7ff0000000000000)"
                                             : "-f64_of_bits(0x7ff0000000000000)");
    else if (inst->integer == INT64_MIN)
        buf_text(w->buf, "INT64_MIN");
    else
        buf_format(w->buf, type.scalar == KRN_I64 ? "INT64_C(%" PRId64 ")" : "%" PRId64,
                   inst->integer);
}

// ---- operations -----------------------------------------------------------------------------

static bool word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// A word of a lane expression: an operand, a shift count, or one of the vocabulary, which depends
// on the type of the first operand.
static void lane_word(Writer *w, const KrnInst *inst, Str word) {
    bool wide =
        inst_of(w, inst->a)->type.scalar == KRN_F64 || inst_of(w, inst->a)->type.scalar == KRN_I64;
    bool shift = inst->op == KRN_SHL || inst->op == KRN_SHR;
    if (str_is(word, "a"))
        use(w, inst->a);
    else if (str_is(word, "b") && shift)
        buf_format(w->buf, "%" PRId64, inst->integer);
    else if (str_is(word, "b"))
        use(w, inst->b);
    else if (str_is(word, "c"))
        use(w, inst->c);
    else if (str_is(word, "FMA"))
        buf_text(w->buf, wide ? "fma" : "fmaf");
    else if (str_is(word, "SQRT"))
        buf_text(w->buf, wide ? "sqrt" : "sqrtf");
    else if (str_is(word, "ABS"))
        buf_text(w->buf, wide ? "fabs" : "fabsf");
    else if (str_is(word, "WRAP"))
        buf_text(w->buf, wide ? "(uint64_t)" : "(uint32_t)");
    else if (str_is(word, "BITS_OF"))
        buf_text(w->buf, wide ? "bits_of_f64" : "bits_of_f32");
    else if (str_is(word, "FLOAT_OF"))
        buf_text(w->buf, wide ? "f64_of_bits" : "f32_of_bits");
    else
        buf_add(w->buf, word); // a number
}

static void lane_expression(Writer *w, const KrnInst *inst) {
    const char *at = lane_text[inst->op];
    while (*at) {
        const char *end = at;
        while (word_char(*end))
            end++;
        if (end > at) {
            lane_word(w, inst, (Str){at, (uint32_t)(end - at)});
            at = end;
        } else {
            buf_char(w->buf, *at++);
        }
    }
}

static void conversion(Writer *w, const KrnInst *inst) {
    use(w, inst->a);
    if (inst->type.scalar == KRN_I1)
        buf_text(w->buf, " != 0");
}

// offset + coefficient * index …, and the lane.
static void element(Writer *w, const KrnAddress *address, bool lanes) {
    const char *plus = "";
    for (uint32_t i = 0; i < address->count; i++) {
        const KrnTerm *term = &w->kernel->terms.at[address->first + i];
        buf_text(w->buf, plus);
        if (term->coefficient != 1)
            buf_format(w->buf, "INT64_C(%" PRId64 ") * ", term->coefficient);
        buf_format(w->buf, "v%u", term->value);
        plus = " + ";
    }
    if (lanes && address->lane_stride == 1)
        buf_format(w->buf, "%sl", plus);
    else if (lanes)
        buf_format(w->buf, "%sINT64_C(%" PRId64 ") * l", plus, address->lane_stride);
    if (address->offset || (!lanes && !*plus))
        buf_format(w->buf, "%s%" PRId64, lanes ? " + " : plus, address->offset);
}

static void place(Writer *w, const KrnInst *inst, bool lanes) {
    const KrnAddress *address = &w->kernel->addresses.at[inst->address];
    buf_format(w->buf, "b%u[", address->buffer);
    element(w, address, lanes);
    buf_char(w->buf, ']');
}

static DType buffer_type(const Writer *w, const KrnInst *inst) {
    return w->kernel->buffers.at[w->kernel->addresses.at[inst->address].buffer].type;
}

static void value_expression(Writer *w, const KrnInst *inst, bool lanes) {
    switch (inst->op) {
    case KRN_CONST:
        number(w, inst->type, inst);
        return;
    case KRN_SPLAT:
        use(w, inst->a);
        return;
    case KRN_IOTA:
        buf_text(w->buf, lanes ? "l" : "0");
        return;
    case KRN_ZIP_LOW:
    case KRN_ZIP_HIGH:
        buf_format(w->buf, "(l %% 2 ? v%u : v%u)[(%u + l) / 2]", inst->b, inst->a,
                   inst->op == KRN_ZIP_LOW ? 0 : inst->type.lanes);
        return;
    case KRN_CONVERT:
        conversion(w, inst);
        return;
    case KRN_LOAD:
        buf_text(w->buf, buffer_type(w, inst) == BF16 ? "f32_of_bf16(" : "");
        place(w, inst, lanes);
        buf_text(w->buf, buffer_type(w, inst) == BF16 ? ")" : "");
        return;
    default:
        lane_expression(w, inst);
    }
}

static void each_lane(Writer *w, uint32_t lanes) {
    buf_format(w->buf, "for (int l = 0; l < %u; l++) ", lanes);
}

static void define(Writer *w, KrnValue value) {
    const KrnInst *inst = inst_of(w, value);
    declare(w, value);
    bool lanes = inst->type.lanes > 1;
    if (lanes) {
        buf_text(w->buf, "; ");
        each_lane(w, inst->type.lanes);
        buf_format(w->buf, "v%u[l]", value);
    }
    buf_format(w->buf, " = (%s)(", scalar_c[inst->type.scalar]);
    value_expression(w, inst, lanes);
    buf_text(w->buf, ");\n");
}

static void store(Writer *w, const KrnInst *inst) {
    uint32_t lanes = lanes_of(w, inst->a);
    DType type = buffer_type(w, inst);
    indent(w);
    if (lanes > 1)
        each_lane(w, lanes);
    place(w, inst, lanes > 1);
    buf_format(w->buf, " = (%s)%s", memory_c[type], type == BF16 ? "bf16_of_f32(" : "(");
    use(w, inst->a);
    buf_text(w->buf, ");\n");
}

// ---- loops ----------------------------------------------------------------------------------

// Declares PREFIXto with the value of `from`, which has its type.
static void declare_as(Writer *w, char prefix, KrnValue to, KrnValue from) {
    KrnType type = inst_of(w, from)->type;
    indent(w);
    buf_format(w->buf, "%s %c%u", scalar_c[type.scalar], prefix, to);
    if (type.lanes > 1) {
        buf_format(w->buf, "[%u]; ", type.lanes);
        each_lane(w, type.lanes);
        buf_format(w->buf, "%c%u[l] = v%u[l];\n", prefix, to, from);
    } else {
        buf_format(w->buf, " = v%u;\n", from);
    }
}

static void open_loop(Writer *w, KrnValue value) {
    const KrnLoop *loop = &w->kernel->loops.at[inst_of(w, value)->loop];
    for (uint32_t i = 0; i < loop->count; i++) {
        const KrnCarry *carry = &w->kernel->carries.at[loop->first + i];
        declare_as(w, 'v', carry->carry, carry->initial);
    }
    indent(w);
    buf_format(w->buf, "for (int64_t v%u = %" PRId64 "; v%u < %" PRId64 "; v%u += %" PRId64 ") {\n",
               value, loop->begin, value, loop->end, value, loop->step);
    w->depth++;
}

// The next values are all read before any carried one changes.
static void close_loop(Writer *w, const KrnInst *inst) {
    const KrnLoop *loop = &w->kernel->loops.at[inst->loop];
    for (uint32_t i = 0; i < loop->count; i++) {
        const KrnCarry *carry = &w->kernel->carries.at[loop->first + i];
        declare_as(w, 'n', carry->carry, carry->next);
    }
    for (uint32_t i = 0; i < loop->count; i++) {
        const KrnCarry *carry = &w->kernel->carries.at[loop->first + i];
        uint32_t lanes = lanes_of(w, carry->carry);
        indent(w);
        if (lanes > 1)
            each_lane(w, lanes);
        buf_format(w->buf, lanes > 1 ? "v%u[l] = n%u[l];\n" : "v%u = n%u;\n", carry->carry,
                   carry->carry);
    }
    w->depth--;
    indent(w);
    buf_text(w->buf, "}\n");
}

static void result(Writer *w, KrnValue value) {
    const KrnCarry *carry = &w->kernel->carries.at[inst_of(w, value)->carry];
    declare_as(w, 'v', value, carry->carry);
}

static void instruction(Writer *w, KrnValue value) {
    const KrnInst *inst = inst_of(w, value);
    switch (inst->op) {
    case KRN_LOOP:
        open_loop(w, value);
        return;
    case KRN_END:
        close_loop(w, inst);
        return;
    case KRN_RESULT:
        result(w, value);
        return;
    case KRN_STORE:
        store(w, inst);
        return;
    case KRN_CARRY:    // declared before its loop
    case KRN_PREFETCH: // a hint
        return;
    default:
        define(w, value);
    }
}

void krn_c_function(const Kernel *kernel, const char *name, StrBuf *buf) {
    Writer w = {.kernel = kernel, .buf = buf, .depth = 1};
    buf_format(buf, "static void %s(void *const *buffers) {\n", name);
    for (uint32_t i = 0; i < kernel->buffers.count; i++) {
        const KrnBuffer *buffer = &kernel->buffers.at[i];
        const char *qualifier = buffer->role == KRN_IN ? "const " : "";
        buf_format(buf, "    %s%s *const b%u = (%s%s *)buffers[%u]; /* %" PRId64 " */\n", qualifier,
                   memory_c[buffer->type], i, qualifier, memory_c[buffer->type], i, buffer->size);
    }
    for (KrnValue value = 0; value < kernel->insts.count; value++)
        instruction(&w, value);
    buf_text(buf, "}\n");
}
