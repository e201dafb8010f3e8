// Kernels from text. Any bytes may come in: the first thing that is not in the form of kernel.h is
// a diagnostic at its place, and a text that reads well is verified, each fault shown at its
// instruction. Types, scopes and numbers that make no sense are left to the verifier.
#include "kernel/kernel.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

typedef struct Reader {
    Context *context;
    Arena *arena;
    Kernel *kernel;
    uint32_t source;
    Str text;
    uint32_t at;         // the next byte
    bool failed;         // a diagnostic has been given; nothing more is
    Vec(Span) spans;     // by instruction
    Vec(Span) buffers;   // by buffer
    Vec(uint32_t) open;  // loops
    Vec(KrnValue) nexts; // of a `next` line
} Reader;

// ---- bytes and words ------------------------------------------------------------------------

static char peek(const Reader *r) {
    return r->at < r->text.size ? r->text.at[r->at] : 0;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

static void skip_space(Reader *r) {
    for (;;) {
        char c = peek(r);
        if (c == '/' && r->at + 1 < r->text.size && r->text.at[r->at + 1] == '/') {
            while (r->at < r->text.size && peek(r) != '\n')
                r->at++;
        } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            r->at++;
        } else {
            return;
        }
    }
}

static Diag *fail(Reader *r, uint32_t begin, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static Diag *fail(Reader *r, uint32_t begin, const char *format, ...) {
    if (r->failed)
        return NULL;
    r->failed = true;
    va_list args;
    va_start(args, format);
    Str text = str_format_v(r->arena, format, args);
    va_end(args);
    uint32_t end = MIN(MAX(r->at, begin + 1), r->text.size);
    Span span = {r->source, MIN(begin, r->text.size), MAX(end, MIN(begin, r->text.size))};
    return diag(&r->context->diags, E6020, span, text.at);
}

// A run of bytes that `holds`; empty where there is none.
static Str run_of(Reader *r, bool (*holds)(char)) {
    skip_space(r);
    uint32_t begin = r->at;
    while (r->at < r->text.size && holds(peek(r)))
        r->at++;
    return (Str){r->text.at + begin, r->at - begin};
}

static bool accept(Reader *r, const char *text) {
    skip_space(r);
    uint32_t size = (uint32_t)strlen(text);
    if (r->failed || r->text.size - r->at < size || memcmp(r->text.at + r->at, text, size) != 0)
        return false;
    bool word = is_word(text[size - 1]);
    if (word && r->at + size < r->text.size && is_word(r->text.at[r->at + size]))
        return false;
    r->at += size;
    return true;
}

static void expect(Reader *r, const char *text) {
    if (!accept(r, text))
        fail(r, r->at, "expected `%s`", text);
}

// ---- numbers --------------------------------------------------------------------------------

static uint64_t read_magnitude(Reader *r) {
    Str digits = run_of(r, is_digit);
    uint32_t begin = r->at - digits.size;
    uint64_t value = 0;
    for (uint32_t i = 0; i < digits.size; i++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(digits.at[i] - '0'), &value)) {
            fail(r, begin, "this number does not fit 64 bits");
            return 0;
        }
    }
    if (digits.size == 0)
        fail(r, begin, "expected a number");
    return value;
}

static int64_t signed_of(Reader *r, uint64_t magnitude, bool negative) {
    if (magnitude > (uint64_t)INT64_MAX + negative) {
        fail(r, r->at, "the number before this does not fit 64 bits with its sign");
        return 0;
    }
    return (int64_t)(negative ? -magnitude : magnitude);
}

static int64_t read_int(Reader *r) {
    bool negative = accept(r, "-");
    return signed_of(r, read_magnitude(r), negative);
}

static bool is_float_byte(char c) {
    return is_word(c) || c == '.' || c == '+' || c == '-';
}

static double read_float(Reader *r, bool narrow) {
    Str run = run_of(r, is_float_byte);
    uint32_t begin = r->at - run.size;
    Str text = str_copy(r->arena, run.at, run.size);
    char *end = (char *)text.at;
    double value = narrow ? (double)strtof(text.at, &end) : strtod(text.at, &end);
    bool named = str_is(text, "inf") || str_is(text, "-inf") || str_is(text, "nan");
    if (text.size == 0 || *end || memchr(text.at, 'x', text.size) ||
        (!named && (isnan(value) || isinf(value))))
        fail(r, begin, "expected a number, `inf`, `-inf` or `nan`");
    return isnan(value) ? (double)NAN : value;
}

// ---- names ----------------------------------------------------------------------------------

static KrnValue read_value(Reader *r) {
    expect(r, "%");
    uint32_t begin = r->at;
    uint64_t number = r->failed ? 0 : read_magnitude(r);
    if (number >= r->kernel->insts.count)
        fail(r, begin, "no value before this has this number");
    return (KrnValue)number;
}

// The number of the next instruction, written where it is defined.
static void read_definition(Reader *r) {
    expect(r, "%");
    uint32_t begin = r->at;
    uint64_t number = r->failed ? 0 : read_magnitude(r);
    if (number != r->kernel->insts.count)
        fail(r, begin, "this instruction's number is %u", r->kernel->insts.count);
}

static KrnType read_type(Reader *r) {
    Str word = run_of(r, is_word);
    uint32_t begin = r->at - word.size, lanes = 1;
    const char *x = word.size ? memchr(word.at, 'x', word.size) : NULL;
    Str scalar = {word.at, x ? (uint32_t)(x - word.at) : word.size};
    if (x) {
        lanes = 0;
        for (const char *digit = x + 1; digit < word.at + word.size && lanes < 100; digit++)
            lanes = is_digit(*digit) ? lanes * 10 + (uint32_t)(*digit - '0') : 100;
    }
    for (uint32_t s = KRN_I1; s <= KRN_F64; s++) {
        if (str_is(scalar, krn_scalar_text[s]) && lanes >= 1 && lanes <= KRN_LANES_MAX)
            return krn_type(s, lanes);
    }
    fail(r, begin, "expected a type: i1, i32, i64, f32 or f64, with 2 to %d lanes as in f32x8",
         KRN_LANES_MAX);
    return krn_type(KRN_I1, 1);
}

static uint32_t read_buffer_name(Reader *r) {
    expect(r, "%");
    Str word = run_of(r, is_word);
    const Kernel *kernel = r->kernel;
    Str *names = arena_array(r->arena, Str, kernel->buffers.count);
    for (uint32_t i = 0; i < kernel->buffers.count; i++) {
        names[i] = name_str(kernel->names, kernel->buffers.at[i].name);
        if (str_equal(names[i], word))
            return i;
    }
    Diag *d = fail(r, r->at - word.size, "no buffer has this name");
    Str near = nearest_spelling(r->arena, word, names, kernel->buffers.count);
    if (d && near.size)
        diag_help(d, "did you mean `%%%s`?", near.at);
    return 0;
}

// ---- statements -----------------------------------------------------------------------------

static void read_buffer(Reader *r) {
    static const char *const roles[] = {"in", "out", "scratch"};
    uint32_t begin = r->at - 6;
    expect(r, "%");
    Str name = run_of(r, is_word);
    if (name.size == 0 || is_digit(name.at[0]))
        fail(r, r->at - name.size, "expected a buffer's name");
    expect(r, ":");
    KrnBuffer buffer = {.name = r->failed ? 0 : name_of(r->context->names, name)};
    Str word = run_of(r, is_word);
    if (!dtype_of_text(word.at, word.size, &buffer.type))
        fail(r, r->at - word.size, "expected an element type: f64, f32, bf16, u8, u16, u32, u64");
    expect(r, "[");
    buffer.size = read_int(r);
    expect(r, "]");
    uint32_t role = 0;
    while (role < COUNT_OF(roles) && !accept(r, roles[role]))
        role++;
    if (role == COUNT_OF(roles))
        fail(r, r->at, "expected `in`, `out` or `scratch`");
    buffer.role = (KrnRole)role;
    if (accept(r, "below"))
        buffer.range = read_int(r);
    if (r->failed)
        return;
    Span span = {r->source, begin, r->at};
    vec_push(r->arena, &r->kernel->buffers, buffer);
    vec_push(r->arena, &r->buffers, span);
}

static void append(Reader *r, uint32_t begin, KrnInst inst) {
    if (r->failed)
        return;
    vec_push(r->arena, &r->kernel->insts, inst);
    Span span = {r->source, begin, r->at};
    vec_push(r->arena, &r->spans, span);
}

static void read_term(Reader *r, KrnAddress *address, bool negative) {
    skip_space(r);
    bool number = is_digit(peek(r));
    uint64_t magnitude = number ? read_magnitude(r) : 1;
    int64_t value = signed_of(r, magnitude, negative);
    if (number && !accept(r, "*")) {
        if (__builtin_add_overflow(address->offset, value, &address->offset))
            fail(r, r->at, "the offset before this does not fit 64 bits");
        return;
    }
    KrnTerm term = {value, read_value(r)};
    if (r->failed)
        return;
    vec_push(r->arena, &r->kernel->terms, term);
    address->count++;
}

static uint32_t read_address(Reader *r) {
    KrnAddress address = {.buffer = read_buffer_name(r), .lane_stride = 1};
    address.first = r->kernel->terms.count;
    expect(r, "[");
    read_term(r, &address, accept(r, "-"));
    for (;;) {
        if (accept(r, "+"))
            read_term(r, &address, false);
        else if (accept(r, "-"))
            read_term(r, &address, true);
        else
            break;
    }
    if (accept(r, "by"))
        address.lane_stride = read_int(r);
    expect(r, "]");
    vec_push(r->arena, &r->kernel->addresses, address);
    return r->kernel->addresses.count - 1;
}

static void read_loop(Reader *r, uint32_t begin) {
    Kernel *kernel = r->kernel;
    uint32_t number = kernel->loops.count;
    KrnLoop loop = {.loop = kernel->insts.count, .first = kernel->carries.count};
    read_definition(r);
    expect(r, "=");
    loop.begin = read_int(r);
    expect(r, "to");
    loop.end = read_int(r);
    expect(r, "step");
    loop.step = read_int(r);
    loop.share = accept(r, "split") ? KRN_SPLIT : accept(r, "tail") ? KRN_TAIL : KRN_WHOLE;
    append(r, begin, (KrnInst){.op = KRN_LOOP, .type = krn_type(KRN_I64, 1), .loop = number});
    if (accept(r, "carry")) {
        do {
            KrnCarry carry = {.carry = kernel->insts.count};
            skip_space(r);
            uint32_t start = r->at;
            read_definition(r);
            expect(r, ":");
            KrnType type = read_type(r);
            expect(r, "=");
            carry.initial = read_value(r);
            append(r, start,
                   (KrnInst){.op = KRN_CARRY, .type = type, .carry = kernel->carries.count});
            vec_push(r->arena, &kernel->carries, carry);
            loop.count++;
        } while (accept(r, ","));
    }
    expect(r, "{");
    vec_push(r->arena, &kernel->loops, loop);
    vec_push(r->arena, &r->open, number);
}

static void read_next(Reader *r) {
    r->nexts.count = 0;
    do {
        KrnValue value = read_value(r);
        vec_push(r->arena, &r->nexts, value);
    } while (accept(r, ","));
    skip_space(r);
    if (peek(r) != '}')
        fail(r, r->at, "`next` is the last line of a loop");
}

static void read_end(Reader *r, uint32_t begin) {
    Kernel *kernel = r->kernel;
    uint32_t number = r->open.at[--r->open.count];
    KrnLoop *loop = &kernel->loops.at[number];
    if (r->nexts.count != loop->count)
        fail(r, begin, "the loop carries %u values, and its `next` gives %u", loop->count,
             r->nexts.count);
    loop->last = kernel->insts.count;
    append(r, begin, (KrnInst){.op = KRN_END, .type = {KRN_NONE, 1}, .loop = number});
    for (uint32_t i = 0; i < loop->count && !r->failed; i++) {
        KrnCarry *carry = &kernel->carries.at[loop->first + i];
        expect(r, i ? "," : "gives");
        skip_space(r);
        uint32_t start = r->at;
        carry->next = r->nexts.at[i];
        carry->result = kernel->insts.count;
        read_definition(r);
        append(r, start,
               (KrnInst){.op = KRN_RESULT,
                         .type = kernel->insts.at[carry->carry].type,
                         .carry = loop->first + i});
    }
    r->nexts.count = 0;
}

static KrnOp read_op(Reader *r) {
    Str word = run_of(r, is_word);
    Str texts[KRN_OP_COUNT];
    uint32_t count = 0;
    for (uint32_t op = 0; op < KRN_STORE; op++) {
        if (str_is(word, krn_op_text[op]))
            return (KrnOp)op;
        texts[count++] = str_of(krn_op_text[op]);
    }
    Diag *d = fail(r, r->at - word.size, "no operation that gives a value has this name");
    Str near = nearest_spelling(r->arena, word, texts, count);
    if (d && near.size)
        diag_help(d, "did you mean `%s`?", near.at);
    return KRN_CONST;
}

static void read_const(Reader *r, KrnInst *inst) {
    if (inst->type.scalar == KRN_F32 || inst->type.scalar == KRN_F64)
        inst->number = read_float(r, inst->type.scalar == KRN_F32);
    else
        inst->integer = read_int(r);
}

static void read_operation(Reader *r, uint32_t begin) {
    KrnInst inst = {0};
    read_definition(r);
    expect(r, ":");
    inst.type = read_type(r);
    expect(r, "=");
    inst.op = (uint8_t)read_op(r);
    if (inst.op == KRN_CONST)
        read_const(r, &inst);
    if (inst.op == KRN_LOAD)
        inst.address = read_address(r);
    KrnValue *operand[] = {&inst.a, &inst.b, &inst.c};
    for (uint32_t i = 0; i < krn_arity((KrnOp)inst.op) && !r->failed; i++)
        *operand[i] = read_value(r);
    if (inst.op == KRN_SHL || inst.op == KRN_SHR)
        inst.integer = read_int(r);
    append(r, begin, inst);
}

static void read_statement(Reader *r) {
    skip_space(r);
    uint32_t begin = r->at;
    KrnInst inst = {.type = {KRN_NONE, 1}};
    if (accept(r, "loop")) {
        read_loop(r, begin);
    } else if (accept(r, "next")) {
        if (r->open.count == 0)
            fail(r, begin, "`next` outside of a loop");
        read_next(r);
    } else if (accept(r, "}")) {
        read_end(r, begin);
    } else if (accept(r, "store")) {
        inst.op = KRN_STORE;
        inst.address = read_address(r);
        inst.a = read_value(r);
        inst.flags = accept(r, "stream") ? KRN_STREAM : 0;
        append(r, begin, inst);
    } else if (accept(r, "prefetch")) {
        inst.op = KRN_PREFETCH;
        inst.address = read_address(r);
        append(r, begin, inst);
    } else if (peek(r) == '%') {
        read_operation(r, begin);
    } else {
        fail(r, begin, "expected an instruction or `}`");
    }
}

// ---- whole kernels --------------------------------------------------------------------------

static bool is_name_byte(char c) {
    return (unsigned char)c > ' ' && c != '{' && c != '}';
}

static void read_kernel(Reader *r) {
    expect(r, "kernel");
    Str name = run_of(r, is_name_byte);
    r->kernel->name = name_of(r->context->names, name);
    expect(r, "{");
    while (accept(r, "buffer"))
        read_buffer(r);
    while (!r->failed && !(r->open.count == 0 && accept(r, "}")))
        read_statement(r);
    skip_space(r);
    if (r->at < r->text.size)
        fail(r, r->at, "nothing follows a kernel's `}`");
}

// Where the verifier's line points: "%4: …" an instruction, "buffer %x: …" a buffer.
static Span span_of_fault(const Reader *r, Str fault) {
    unsigned long number = fault.at[0] == '%' ? strtoul(fault.at + 1, NULL, 10) : ULONG_MAX;
    if (number < r->spans.count)
        return r->spans.at[number];
    for (uint32_t i = r->buffers.count; i-- > 0;) {
        Str name = name_str(r->kernel->names, r->kernel->buffers.at[i].name);
        if (fault.size > name.size + 9 && memcmp(fault.at + 8, name.at, name.size) == 0 &&
            fault.at[name.size + 8] == ':')
            return r->buffers.at[i];
    }
    return (Span){r->source, 0, MIN(r->text.size, 6)};
}

// One diagnostic for each fault of the verifier.
static void show_faults(Reader *r, Str faults) {
    const char *line = faults.at;
    while (*line) {
        const char *end = strchr(line, '\n');
        Str text = str_copy(r->arena, line, (size_t)(end - line));
        diag(&r->context->diags, E6021, span_of_fault(r, text), text.at);
        line = end + 1;
    }
}

Kernel *krn_read(Context *context, Arena *arena, uint32_t source) {
    Reader r = {.context = context, .arena = arena, .source = source};
    r.text = source_get(&context->sources, source)->text;
    r.kernel = krn_new(arena, context->names, "");
    read_kernel(&r);
    if (r.failed)
        return NULL;
    for (uint32_t i = 0; i < r.kernel->loops.count; i++) {
        KrnLoop *loop = &r.kernel->loops.at[i];
        if (loop->share != KRN_SPLIT || loop->step < 1)
            continue;
        loop->before = r.kernel->split_count;
        if (__builtin_add_overflow(loop->before, krn_loop_count(loop), &r.kernel->split_count))
            r.kernel->split_count = INT64_MAX; // refused by the verifier
    }
    Str faults;
    if (krn_verify(r.kernel, arena, &faults))
        return r.kernel;
    show_faults(&r, faults);
    return NULL;
}
