// The verifier, first part: tables, structure, scopes and types. It exists for these bugs of a
// lowering, each of which would otherwise be a wrong number or a crash in some executor:
//   - a value used before it is made, or after the loop that made it (a tail that reads the index
//     of the main loop);
//   - carries crossed or forgotten at a loop's end, an accumulator of another width;
//   - operands of mixed types or lanes, a constant that its type cannot hold (rounded twice);
//   - loop bounds so large that an executor's index would wrap;
//   - work that depends on how a launch was split: carries around the split loop or a tail.
// The second part (access.c) is about memory.
#include "kernel/verify.h"

#include <math.h>
#include <stdio.h>

// Bounds, steps and sizes stay below this, so that sums of a few of them fit 64 bits.
static const int64_t NUMBER_MAX = INT64_C(1) << 62;

void krn_fault(Verifier *v, KrnValue value, const char *format, ...) {
    va_list args;
    va_start(args, format);
    Str text = str_format_v(v->arena, format, args);
    va_end(args);
    buf_format(&v->errors, "%%%u: %s\n", value, text.at);
}

static const KrnInst *inst_at(const Verifier *v, KrnValue value) {
    return &v->kernel->insts.at[value];
}

// ---- buffers --------------------------------------------------------------------------------

static void buffer_fault(Verifier *v, const KrnBuffer *buffer, const char *what) {
    buf_format(&v->errors, "buffer %%%s: %s\n", name_c(v->kernel->names, buffer->name), what);
}

static void check_buffer(Verifier *v, uint32_t number) {
    const KrnBuffer *buffer = &v->kernel->buffers.at[number];
    for (uint32_t i = 0; i < number; i++) {
        if (v->kernel->buffers.at[i].name == buffer->name)
            buffer_fault(v, buffer, "another buffer has this name");
    }
    if (buffer->size < 0 || buffer->size > NUMBER_MAX / (int64_t)dtype_size(buffer->type))
        buffer_fault(v, buffer, "its bytes do not fit 62 bits");
    if (buffer->range == 0)
        return;
    if (dtype_is_real(buffer->type)) {
        buffer_fault(v, buffer, "only a buffer of indices has a range");
        return;
    }
    uint64_t bits = dtype_size(buffer->type) * 8;
    int64_t largest = bits > 61 ? NUMBER_MAX : INT64_C(1) << bits;
    if (buffer->range < 0 || buffer->range > largest)
        buffer_fault(v, buffer, "its range does not fit its type");
    if (buffer->role != KRN_IN)
        buffer_fault(v, buffer, "only an `in` buffer has a range");
}

// ---- structure ------------------------------------------------------------------------------

// CARRY or RESULT instructions of a loop stand in order right behind its LOOP or END.
static bool check_row(Verifier *v, const KrnLoop *loop, KrnValue head, KrnOp op) {
    for (uint32_t i = 0; i < loop->count; i++) {
        KrnValue at = head + 1 + i;
        bool fits = at < v->kernel->insts.count && inst_at(v, at)->op == op &&
                    inst_at(v, at)->carry == loop->first + i;
        const KrnCarry *carry = &v->kernel->carries.at[loop->first + i];
        if (!fits || (op == KRN_CARRY ? carry->carry : carry->result) != at) {
            krn_fault(v, head, "the `%s` instructions behind it are out of order", krn_op_text[op]);
            return false;
        }
    }
    return true;
}

static bool check_loop_tables(Verifier *v, KrnValue at) {
    const Kernel *kernel = v->kernel;
    const KrnInst *inst = inst_at(v, at);
    if (inst->loop >= kernel->loops.count) {
        krn_fault(v, at, "there is no such loop");
        return false;
    }
    const KrnLoop *loop = &kernel->loops.at[inst->loop];
    if ((inst->op == KRN_LOOP ? loop->loop : loop->last) != at ||
        (uint64_t)loop->first + loop->count > kernel->carries.count) {
        krn_fault(v, at, "the table of loops does not fit it");
        return false;
    }
    return check_row(v, loop, at, inst->op == KRN_LOOP ? KRN_CARRY : KRN_RESULT);
}

// Loops nest, and their tables agree with the instructions; fills parent and outer.
static bool check_structure(Verifier *v) {
    const Kernel *kernel = v->kernel;
    uint32_t open = KRN_NO_LOOP, carries = 0, results = 0;
    for (KrnValue i = 0; i < kernel->insts.count; i++) {
        const KrnInst *inst = inst_at(v, i);
        if (inst->op >= KRN_OP_COUNT) {
            krn_fault(v, i, "there is no such operation");
            return false;
        }
        if (inst->type.scalar > KRN_F64 || inst->type.lanes < 1 ||
            inst->type.lanes > KRN_LANES_MAX) {
            krn_fault(v, i, "there is no such type");
            return false;
        }
        carries += inst->op == KRN_CARRY;
        results += inst->op == KRN_RESULT;
        if ((inst->op == KRN_LOOP || inst->op == KRN_END) && !check_loop_tables(v, i))
            return false;
        if (inst->op == KRN_LOOP) {
            v->outer[inst->loop] = open;
            open = inst->loop;
        } else if (inst->op == KRN_END) {
            if (open != inst->loop) {
                krn_fault(v, i, "closes a loop that is not the innermost open one");
                return false;
            }
            open = v->outer[open];
        }
        v->parent[i] = open;
    }
    if (open != KRN_NO_LOOP)
        krn_fault(v, kernel->loops.at[open].loop, "the loop is not closed");
    else if (carries != kernel->carries.count || results != carries)
        krn_fault(v, kernel->insts.count, "a `carry` or `result` stands outside its loop's head");
    return v->errors.size == 0;
}

static bool loop_holds(const Verifier *v, uint32_t around, uint32_t inner) {
    while (inner != around && inner != KRN_NO_LOOP)
        inner = v->outer[inner];
    return inner == around;
}

static void check_bounds(Verifier *v, const KrnLoop *loop) {
    if (loop->step < 1)
        krn_fault(v, loop->loop, "the step is %lld; it has to be positive", (long long)loop->step);
    int64_t bounds[] = {loop->begin, loop->end, loop->step};
    for (uint32_t i = 0; i < COUNT_OF(bounds); i++) {
        if (bounds[i] < -NUMBER_MAX || bounds[i] > NUMBER_MAX)
            krn_fault(v, loop->loop, "the bound %lld is beyond 62 bits", (long long)bounds[i]);
    }
}

// The split loops count on from one to the next.
static void find_splits(Verifier *v) {
    const Kernel *kernel = v->kernel;
    int64_t count = 0;
    bool fits = true;
    for (uint32_t i = 0; i < kernel->loops.count; i++) {
        const KrnLoop *loop = &kernel->loops.at[i];
        if (loop->share != KRN_SPLIT)
            continue;
        v->has_split = true;
        fits = fits && loop->before == count;
        if (__builtin_add_overflow(count, krn_loop_count(loop), &count) || count > NUMBER_MAX) {
            krn_fault(v, loop->loop, "the iterations of the split loops do not fit 62 bits");
            return;
        }
    }
    if (!fits || count != kernel->split_count)
        krn_fault(v, 0, "the kernel's split count is not that of its split loops");
}

// A split or tail loop stands in no other.
static bool stands_in_a_share(const Verifier *v, uint32_t loop) {
    for (uint32_t around = v->outer[loop]; around != KRN_NO_LOOP; around = v->outer[around])
        if (v->kernel->loops.at[around].share != KRN_WHOLE)
            return true;
    return false;
}

static bool holds_a_share(const Verifier *v, uint32_t loop) {
    for (uint32_t i = loop + 1; i < v->kernel->loops.count; i++)
        if (v->kernel->loops.at[i].share != KRN_WHOLE && loop_holds(v, loop, i))
            return true;
    return false;
}

static void check_shares(Verifier *v) {
    for (uint32_t i = 0; i < v->kernel->loops.count; i++) {
        const KrnLoop *loop = &v->kernel->loops.at[i];
        if (loop->share == KRN_WHOLE)
            continue;
        if (loop->count)
            krn_fault(v, loop->loop, "a split or tail loop carries nothing");
        if (loop->share == KRN_SPLIT && stands_in_a_share(v, i))
            krn_fault(v, loop->loop, "a split loop stands beside the others, not in one");
        if (loop->share != KRN_TAIL)
            continue;
        if (!v->has_split)
            krn_fault(v, loop->loop, "a tail loop without a split loop");
        else if (stands_in_a_share(v, i) || holds_a_share(v, i))
            krn_fault(v, loop->loop, "a tail loop stands beside the split loops, not in or around");
    }
}

// ---- scopes ---------------------------------------------------------------------------------

// `at` in `loop` reads `value`.
static bool check_use(Verifier *v, KrnValue value, KrnValue at, uint32_t loop) {
    if (value >= at || inst_at(v, value)->type.scalar == KRN_NONE) {
        krn_fault(v, at, "reads %%%u, which is not a value made before", value);
        return false;
    }
    if (!loop_holds(v, v->parent[value], loop)) {
        krn_fault(v, at, "reads %%%u outside of the loop that made it", value);
        return false;
    }
    return true;
}

static bool same_type(KrnType a, KrnType b) {
    return a.scalar == b.scalar && a.lanes == b.lanes;
}

static void check_carries(Verifier *v, const KrnLoop *loop, uint32_t number) {
    for (uint32_t i = 0; i < loop->count; i++) {
        const KrnCarry *carry = &v->kernel->carries.at[loop->first + i];
        KrnType type = inst_at(v, carry->carry)->type;
        if (check_use(v, carry->initial, loop->loop, v->outer[number]) &&
            !same_type(type, inst_at(v, carry->initial)->type))
            krn_fault(v, loop->loop, "%%%u and its initial value %%%u differ in type", carry->carry,
                      carry->initial);
        if (check_use(v, carry->next, loop->last, number) &&
            !same_type(type, inst_at(v, carry->next)->type))
            krn_fault(v, loop->loop, "%%%u and its next value %%%u differ in type", carry->carry,
                      carry->next);
        if (!same_type(type, inst_at(v, carry->result)->type))
            krn_fault(v, loop->loop, "%%%u and its result %%%u differ in type", carry->carry,
                      carry->result);
    }
}

// ---- types ----------------------------------------------------------------------------------

static void check_const(Verifier *v, KrnValue at) {
    const KrnInst *inst = inst_at(v, at);
    bool fits = true;
    if (inst->type.scalar == KRN_F32)
        fits = isnan(inst->number) || (double)(float)inst->number == inst->number;
    if (inst->type.scalar == KRN_I1)
        fits = inst->integer == 0 || inst->integer == 1;
    if (inst->type.scalar == KRN_I32)
        fits = inst->integer >= INT32_MIN && inst->integer <= INT32_MAX;
    if (inst->type.scalar == KRN_NONE || !fits)
        krn_fault(v, at, "the constant is not a %s", krn_scalar_text[inst->type.scalar]);
}

static bool address_is_whole(const Kernel *kernel, const KrnInst *inst) {
    if (inst->address >= kernel->addresses.count)
        return false;
    const KrnAddress *address = &kernel->addresses.at[inst->address];
    return address->buffer < kernel->buffers.count &&
           (uint64_t)address->first + address->count <= kernel->terms.count;
}

// A loop's index, or an index loaded from a buffer that says what its values are below.
static bool is_index(const Kernel *kernel, const KrnInst *inst) {
    if (inst->op == KRN_LOOP)
        return true;
    return inst->op == KRN_LOAD && inst->type.lanes == 1 && address_is_whole(kernel, inst) &&
           kernel->buffers.at[kernel->addresses.at[inst->address].buffer].range > 0;
}

static void check_address(Verifier *v, KrnValue at, KrnType type) {
    const Kernel *kernel = v->kernel;
    const KrnInst *inst = inst_at(v, at);
    if (!address_is_whole(kernel, inst)) {
        krn_fault(v, at, "there is no such address or buffer");
        return;
    }
    const KrnAddress *address = &kernel->addresses.at[inst->address];
    const KrnBuffer *buffer = &kernel->buffers.at[address->buffer];
    if (type.lanes == 1 ? address->lane_stride != 1 : address->lane_stride == 0)
        krn_fault(v, at, "a lane stride of %lld at %u lanes", (long long)address->lane_stride,
                  type.lanes);
    if (inst->op == KRN_LOAD && type.scalar != krn_load_scalar(buffer->type))
        krn_fault(v, at, "a load from %s gives %s", dtype_text(buffer->type),
                  krn_scalar_text[krn_load_scalar(buffer->type)]);
    if (inst->op == KRN_STORE && !krn_can_store(type.scalar, buffer->type))
        krn_fault(v, at, "a store of %s to %s", krn_scalar_text[type.scalar],
                  dtype_text(buffer->type));
    for (uint32_t i = 0; i < address->count; i++) {
        KrnValue value = kernel->terms.at[address->first + i].value;
        if (!check_use(v, value, at, v->parent[at]))
            continue;
        if (!is_index(kernel, inst_at(v, value)))
            krn_fault(v, at, "the address has %%%u: not a loop index or a scalar load of indices",
                      value);
    }
}

static void check_own_rule(Verifier *v, KrnValue at, const KrnType *operand) {
    const KrnInst *inst = inst_at(v, at);
    KrnType type = inst->type, result;
    bool fits = true;
    switch (inst->op) {
    case KRN_CONST:
        check_const(v, at);
        break;
    case KRN_CONVERT:
        fits = krn_can_convert(operand->scalar, type.scalar) && operand->lanes == type.lanes;
        break;
    case KRN_SPLAT:
        fits = operand->scalar == type.scalar && operand->lanes == 1;
        break;
    case KRN_ZIP_LOW:
    case KRN_ZIP_HIGH:
        fits = krn_result_type(inst->op, operand, &result) && same_type(result, type);
        break;
    case KRN_IOTA:
        fits = type.scalar == KRN_I64;
        break;
    case KRN_LOAD:
        check_address(v, at, type);
        break;
    case KRN_STORE:
        check_address(v, at, *operand);
        fits = type.scalar == KRN_NONE;
        break;
    case KRN_PREFETCH:
        check_address(v, at, (KrnType){KRN_NONE, 1});
        fits = type.scalar == KRN_NONE;
        break;
    case KRN_LOOP:
        fits = same_type(type, (KrnType){KRN_I64, 1});
        break;
    case KRN_END:
        fits = type.scalar == KRN_NONE;
        break;
    }
    if (!fits)
        krn_fault(v, at, "the types do not fit `%s`", krn_op_text[inst->op]);
}

static void check_inst(Verifier *v, KrnValue at) {
    const KrnInst *inst = inst_at(v, at);
    const KrnValue operand[] = {inst->a, inst->b, inst->c};
    KrnType types[3] = {{0}}, result;
    for (uint32_t i = 0; i < krn_arity(inst->op); i++) {
        if (!check_use(v, operand[i], at, v->parent[at]))
            return;
        types[i] = inst_at(v, operand[i])->type;
    }
    if (!krn_has_rule(inst->op))
        check_own_rule(v, at, types);
    else if (!krn_result_type(inst->op, types, &result) || !same_type(result, inst->type))
        krn_fault(v, at, "the types do not fit `%s`", krn_op_text[inst->op]);
    int64_t width = inst->type.scalar == KRN_I64 ? 64 : 32;
    if ((inst->op == KRN_SHL || inst->op == KRN_SHR) &&
        (inst->integer < 0 || inst->integer >= width))
        krn_fault(v, at, "a shift by %lld of %lld bits", (long long)inst->integer,
                  (long long)width);
    if (inst->flags & ~(inst->op == KRN_STORE ? KRN_STREAM : 0))
        krn_fault(v, at, "a flag that `%s` has not", krn_op_text[inst->op]);
}

bool krn_verify(const Kernel *kernel, Arena *arena, Str *errors) {
    Verifier v = {.kernel = kernel, .arena = arena, .errors = {.arena = arena}};
    v.parent = arena_array(arena, uint32_t, kernel->insts.count);
    v.outer = arena_array(arena, uint32_t, kernel->loops.count);
    for (uint32_t i = 0; i < kernel->buffers.count; i++)
        check_buffer(&v, i);
    if (check_structure(&v)) {
        for (uint32_t i = 0; i < kernel->loops.count; i++) {
            check_bounds(&v, &kernel->loops.at[i]);
            check_carries(&v, &kernel->loops.at[i], i);
        }
        for (KrnValue i = 0; i < kernel->insts.count; i++)
            check_inst(&v, i);
    }
    if (v.errors.size == 0)
        find_splits(&v);
    if (v.errors.size == 0)
        check_shares(&v);
    if (v.errors.size == 0)
        krn_verify_accesses(&v);
    *errors = buf_str(&v.errors);
    return errors->size == 0;
}
