// Preparing a kernel for the interpreter: places values in the frame and writes the steps.
// Assumes that the kernel verifies. A value's slot is free again after its last use, where a use
// inside a loop that does not hold the definition counts as one at the loop's end.
#include "kernel/code.h"

#include <assert.h>

static_assert(ROW_COUNT * 8 < UINT16_MAX, "codes fit a step");
static_assert(DTYPE_COUNT <= 8 && KRN_F64 < 8, "variants fit a row of eight");

enum { NO_SLOT = UINT32_MAX, NO_LOOP = UINT32_MAX, NO_VALUE = UINT32_MAX, SIZE_CLASSES = 7 };
static_assert(8 << (SIZE_CLASSES - 1) == KRN_LANES_MAX * 8, "the last class holds any vector");

typedef struct Maker {
    const Kernel *kernel;
    KrnCode *code;
    Arena *arena;     // for what is not needed afterwards
    uint32_t *parent; // by value: the innermost loop around it
    uint32_t *outer;  // by loop: the loop around it
    uint32_t *last;   // by value: where its slot becomes free
    uint32_t *slot;
    KrnValue *home;    // by value: the value whose slot it has, itself or a carry
    uint32_t *counter; // by loop
    Vec(uint32_t) free[SIZE_CLASSES];
    KrnValue *dying, *next_dying; // by instruction: a list of values whose slot it frees
} Maker;

static const KrnInst *inst_at(const Maker *m, KrnValue value) {
    return &m->kernel->insts.at[value];
}

// ---- where values are used ------------------------------------------------------------------

static void find_parents(Maker *m) {
    uint32_t open = NO_LOOP;
    for (KrnValue i = 0; i < m->kernel->insts.count; i++) {
        const KrnInst *inst = inst_at(m, i);
        if (inst->op == KRN_END)
            open = m->outer[inst->loop];
        m->parent[i] = open;
        if (inst->op == KRN_LOOP) {
            m->outer[inst->loop] = open;
            open = inst->loop;
            m->parent[i] = open; // the index lives inside
        }
    }
}

static void use(Maker *m, KrnValue value, KrnValue at, uint32_t loop) {
    for (; loop != m->parent[value] && loop != NO_LOOP; loop = m->outer[loop])
        at = m->kernel->loops.at[loop].last;
    m->last[value] = MAX(m->last[value], at);
}

static bool has_address(const KrnInst *inst) {
    return inst->op == KRN_LOAD || inst->op == KRN_STORE || inst->op == KRN_PREFETCH;
}

static void use_operands(Maker *m, KrnValue at) {
    const Kernel *kernel = m->kernel;
    const KrnInst *inst = inst_at(m, at);
    const KrnValue operand[] = {inst->a, inst->b, inst->c};
    for (uint32_t i = 0; i < krn_arity(inst->op); i++)
        use(m, operand[i], at, m->parent[at]);
    if (has_address(inst)) {
        const KrnAddress *address = &kernel->addresses.at[inst->address];
        for (uint32_t i = 0; i < address->count; i++)
            use(m, kernel->terms.at[address->first + i].value, at, m->parent[at]);
    }
    if (inst->op != KRN_LOOP && inst->op != KRN_END)
        return;
    const KrnLoop *loop = &kernel->loops.at[inst->loop];
    for (uint32_t i = 0; i < loop->count; i++) {
        const KrnCarry *carry = &kernel->carries.at[loop->first + i];
        if (inst->op == KRN_LOOP)
            use(m, carry->initial, at, m->outer[inst->loop]);
        else
            use(m, carry->next, at, inst->loop);
    }
}

// ---- which values share a slot by nature ----------------------------------------------------

// Lane by lane, so that the result may lie where an operand does.
static bool is_plain(const KrnInst *inst) {
    return inst->op < KRN_ZIP_LOW && inst->op != KRN_CONST && inst->op != KRN_IOTA;
}

// A result has its carry's slot, and so has the next value where the carry is not read after it is
// made: an accumulator is then updated in place.
static void find_homes(Maker *m) {
    const Kernel *kernel = m->kernel;
    for (KrnValue i = 0; i < kernel->insts.count; i++)
        m->home[i] = i;
    for (uint32_t l = 0; l < kernel->loops.count; l++) {
        const KrnLoop *loop = &kernel->loops.at[l];
        for (uint32_t i = 0; i < loop->count; i++) {
            const KrnCarry *carry = &kernel->carries.at[loop->first + i];
            KrnValue next = carry->next;
            m->home[carry->result] = carry->carry;
            if (is_plain(inst_at(m, next)) && m->parent[next] == l && m->home[next] == next &&
                m->last[carry->carry] <= next)
                m->home[next] = carry->carry;
        }
    }
    for (uint32_t i = 0; i < kernel->carries.count; i++) {
        const KrnCarry *carry = &kernel->carries.at[i];
        uint32_t end = kernel->loops.at[m->parent[carry->carry]].last;
        m->last[carry->carry] = MAX(end, m->last[carry->result]);
    }
}

// ---- slots ----------------------------------------------------------------------------------

static uint32_t bytes_of(KrnType type) {
    return (uint32_t)krn_scalar_size(type.scalar) * type.lanes;
}

static uint32_t size_class(uint32_t bytes) {
    uint32_t class = 0;
    while (8u << class < bytes)
        class ++;
    return class;
}

static uint32_t slot_take(Maker *m, uint32_t bytes) {
    uint32_t class = size_class(bytes);
    if (m->free[class].count)
        return m->free[class].at[--m->free[class].count];
    uint32_t slot = m->code->frame_size;
    check_that(slot < UINT32_MAX / 2);
    m->code->frame_size += 8u << class;
    return slot;
}

static void slot_give(Maker *m, uint32_t slot, uint32_t bytes) {
    vec_push(m->arena, &m->free[size_class(bytes)], slot);
}

static uint32_t slot_of(const Maker *m, KrnValue value) {
    uint32_t slot = m->slot[m->home[value]];
    check_that(slot != NO_SLOT);
    return slot;
}

static void define(Maker *m, KrnValue value) {
    if (m->home[value] != value)
        return;
    m->slot[value] = slot_take(m, bytes_of(inst_at(m, value)->type));
    KrnValue last = m->last[value];
    m->next_dying[value] = m->dying[last];
    m->dying[last] = value;
}

static void bury(Maker *m, KrnValue at) {
    for (KrnValue value = m->dying[at]; value != NO_VALUE; value = m->next_dying[value])
        slot_give(m, m->slot[value], bytes_of(inst_at(m, value)->type));
}

// ---- constants ------------------------------------------------------------------------------

static void fill_lane(const KrnInst *inst, uint32_t lane, unsigned char *at) {
    const int64_t integer = inst->op == KRN_IOTA ? (int64_t)lane : inst->integer;
    size_t size = krn_scalar_size(inst->type.scalar);
    at += size * lane;
    switch (inst->type.scalar) {
    case KRN_F32:
        memcpy(at, &(float){(float)inst->number}, size);
        break;
    case KRN_F64:
        memcpy(at, &inst->number, size);
        break;
    case KRN_I32:
        memcpy(at, &(int32_t){(int32_t)integer}, size);
        break;
    case KRN_I64:
        memcpy(at, &integer, size);
        break;
    default:
        *at = (unsigned char)integer;
    }
}

static void make_image(Maker *m) {
    const KrnInst *insts = m->kernel->insts.at;
    Map *places = map_new(m->arena); // by bytes: constants of equal bytes share their slot
    StrBuf image = {.arena = m->code->arena};
    for (KrnValue i = 0; i < m->kernel->insts.count; i++) {
        if (insts[i].op != KRN_CONST && insts[i].op != KRN_IOTA)
            continue;
        unsigned char bytes[KRN_LANES_MAX * 8] = {0};
        for (uint32_t lane = 0; lane < insts[i].type.lanes; lane++)
            fill_lane(&insts[i], lane, bytes);
        uint32_t size = (bytes_of(insts[i].type) + 7) / 8 * 8;
        bool fresh;
        uint32_t *place = map_slot(places, bytes, size, &fresh);
        if (fresh) {
            *place = image.size;
            buf_add(&image, (Str){(const char *)bytes, size});
        }
        m->slot[i] = *place;
    }
    m->code->image = image.at;
    m->code->image_size = m->code->frame_size = image.size;
}

// ---- steps ----------------------------------------------------------------------------------

static void emit(Maker *m, Step step) {
    vec_push(m->code->arena, &m->code->steps, step);
}

static void emit_copy(Maker *m, uint32_t to, uint32_t from, uint32_t bytes) {
    uint32_t variant = bytes == 4 ? COPY_4 : bytes == 8 ? COPY_8 : COPY_MORE;
    Step step = {.lanes = (uint16_t)bytes, .d = to, .a = from};
    step.code = (uint16_t)CODE(ROW_COPY, variant);
    emit(m, step);
}

static void make_operation(Maker *m, KrnValue value) {
    const KrnInst *inst = inst_at(m, value);
    const KrnInst *a = inst_at(m, inst->a), *b = inst_at(m, inst->b);
    uint32_t row = inst->op, variant = a->type.scalar, arity = krn_arity(inst->op);
    Step step = {.lanes = inst->type.lanes, .number = inst->integer};
    step.a = arity > 0 ? slot_of(m, inst->a) : 0;
    step.b = arity > 1 ? slot_of(m, inst->b) : 0;
    step.c = arity > 2 ? slot_of(m, inst->c) : 0;
    if (inst->op == KRN_SELECT || inst->op == KRN_ISELECT)
        variant = b->type.scalar;
    if (inst->op == KRN_CONVERT) {
        row = ROW_CONVERT + a->type.scalar;
        variant = inst->type.scalar;
    }
    if (has_address(inst)) {
        const KrnAddress *address = &m->kernel->addresses.at[inst->address];
        step.number = inst->address;
        variant = m->kernel->buffers.at[address->buffer].type;
    }
    if (inst->op == KRN_STORE) {
        row = a->type.scalar == KRN_I1 ? (uint32_t)ROW_STORE_TRUTH : (uint32_t)KRN_STORE;
        step.lanes = a->type.lanes;
    } else {
        define(m, value);
        step.d = slot_of(m, value);
    }
    step.code = (uint16_t)CODE(row, variant);
    emit(m, step);
}

static void make_loop(Maker *m, KrnValue value) {
    const KrnLoop *loop = &m->kernel->loops.at[inst_at(m, value)->loop];
    CodeLoop *made = &m->code->loops[inst_at(m, value)->loop];
    define(m, value);
    m->counter[inst_at(m, value)->loop] = slot_take(m, 8);
    for (uint32_t i = 0; i < loop->count; i++) {
        const KrnCarry *carry = &m->kernel->carries.at[loop->first + i];
        define(m, carry->carry);
        emit_copy(m, slot_of(m, carry->carry), slot_of(m, carry->initial),
                  bytes_of(inst_at(m, carry->carry)->type));
    }
    emit(m, (Step){.code = CODE(KRN_LOOP, 0),
                   .d = slot_of(m, value),
                   .a = m->counter[inst_at(m, value)->loop],
                   .number = inst_at(m, value)->loop});
    *made = (CodeLoop){.begin = loop->begin,
                       .step = loop->step,
                       .share = loop->share,
                       .count = krn_loop_count(loop),
                       .before = loop->before,
                       .body = m->code->steps.count};
}

// All carries move at once: one whose next value is a carry of the same loop goes through a slot
// aside.
static void make_moves(Maker *m, const KrnLoop *loop, uint32_t number) {
    const KrnCarry *carries = m->kernel->carries.at + loop->first;
    uint32_t *from = arena_array(m->arena, uint32_t, loop->count);
    bool *aside = arena_array(m->arena, bool, loop->count);
    for (uint32_t i = 0; i < loop->count; i++) {
        KrnValue home = m->home[carries[i].next];
        uint32_t bytes = bytes_of(inst_at(m, carries[i].carry)->type);
        from[i] = slot_of(m, carries[i].next);
        aside[i] = home != carries[i].carry && inst_at(m, home)->op == KRN_CARRY &&
                   m->parent[home] == number;
        if (!aside[i])
            continue;
        uint32_t slot = slot_take(m, bytes);
        emit_copy(m, slot, from[i], bytes);
        from[i] = slot;
    }
    for (uint32_t i = 0; i < loop->count; i++) {
        uint32_t to = slot_of(m, carries[i].carry);
        uint32_t bytes = bytes_of(inst_at(m, carries[i].carry)->type);
        if (from[i] != to)
            emit_copy(m, to, from[i], bytes);
        if (aside[i])
            slot_give(m, from[i], bytes);
    }
}

static void make_end(Maker *m, KrnValue value) {
    uint32_t number = inst_at(m, value)->loop;
    const KrnLoop *loop = &m->kernel->loops.at[number];
    make_moves(m, loop, number);
    emit(m, (Step){.code = CODE(KRN_END, 0),
                   .d = slot_of(m, loop->loop),
                   .a = m->counter[number],
                   .number = number});
    m->code->loops[number].after = m->code->steps.count;
    slot_give(m, m->counter[number], 8);
}

static void make_addresses(Maker *m) {
    const Kernel *kernel = m->kernel;
    m->code->addresses = arena_array(m->code->arena, CodeAddress, kernel->addresses.count);
    for (KrnValue value = 0; value < kernel->insts.count; value++) {
        const KrnInst *inst = inst_at(m, value);
        if (inst->op != KRN_LOAD && inst->op != KRN_STORE)
            continue;
        const KrnAddress *address = &kernel->addresses.at[inst->address];
        CodeTerm *terms = arena_array(m->code->arena, CodeTerm, address->count);
        for (uint32_t i = 0; i < address->count; i++) {
            const KrnTerm *term = &kernel->terms.at[address->first + i];
            terms[i] = (CodeTerm){term->coefficient, slot_of(m, term->value)};
        }
        m->code->addresses[inst->address] = (CodeAddress){
            address->buffer, address->count, address->offset, address->lane_stride, terms};
    }
}

static void make_steps(Maker *m) {
    for (KrnValue i = 0; i < m->kernel->insts.count; i++) {
        switch (inst_at(m, i)->op) {
        case KRN_LOOP:
            make_loop(m, i);
            break;
        case KRN_END:
            make_end(m, i);
            break;
        case KRN_CONST:
        case KRN_IOTA: // in the image
        case KRN_CARRY:
        case KRN_RESULT: // made by their loop
        case KRN_PREFETCH:
            break;
        default:
            make_operation(m, i);
        }
        bury(m, i);
    }
    emit(m, (Step){.code = CODE(ROW_STOP, 0)});
}

static Maker make_maker(const Kernel *kernel, KrnCode *code, Arena *arena) {
    uint32_t insts = kernel->insts.count, loops = kernel->loops.count;
    Maker m = {.kernel = kernel, .code = code, .arena = arena};
    m.parent = arena_array(arena, uint32_t, insts);
    m.last = arena_array(arena, KrnValue, insts);
    m.slot = arena_array(arena, uint32_t, insts);
    m.home = arena_array(arena, KrnValue, insts);
    m.dying = arena_array(arena, KrnValue, insts);
    m.next_dying = arena_array(arena, KrnValue, insts);
    m.outer = arena_array(arena, uint32_t, loops);
    m.counter = arena_array(arena, uint32_t, loops);
    for (KrnValue i = 0; i < insts; i++) {
        m.last[i] = i;
        m.slot[i] = NO_SLOT;
        m.dying[i] = NO_VALUE;
    }
    return m;
}

KrnCode *krn_code(const Kernel *kernel, Arena *arena) {
    Arena *work = arena_new(arena_heap(arena), "kernel code");
    KrnCode *code = arena_new_of(arena, KrnCode);
    code->arena = arena;
    code->split_count = kernel->split_count;
    code->loops = arena_array(arena, CodeLoop, kernel->loops.count);
    Maker m = make_maker(kernel, code, work);
    find_parents(&m);
    for (KrnValue i = 0; i < kernel->insts.count; i++)
        use_operands(&m, i);
    for (uint32_t i = 0; i < kernel->loops.count; i++)
        m.last[kernel->loops.at[i].loop] = kernel->loops.at[i].last;
    find_homes(&m);
    make_image(&m);
    make_steps(&m);
    make_addresses(&m);
    arena_free(work);
    return code;
}

size_t krn_code_frame(const KrnCode *code) {
    return code->frame_size;
}
