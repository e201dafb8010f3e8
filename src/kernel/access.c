// The verifier, second part: memory. It exists for these bugs of a lowering:
//   - an address past a buffer's end: a tail in full lanes, an index 32 bits wide, a tile larger
//     than its axis;
//   - a store into an operand;
//   - an output or scratch element read before it is written, which shows as whatever a buffer
//     held before (a running sum without its zero, a packed block packed after its use);
//   - two launches of a split kernel touching one output element: a reduced axis split, a store in
//     every launch that belongs to one.
// Every index is an interval, every address a sum of them, so bounds are exact for what kernels
// are made of. What follows from order is checked as far as it shows in the order of instructions
// and in the intervals of the elements touched: a kernel that leaves a hole in its output passes
// (tests fill outputs with NaN for that). A loop of no iterations touches nothing.
#include "kernel/verify.h"

typedef __int128 Wide;

// Addresses, and the sum of the sizes of their terms, stay below this: no order of evaluation in
// 64 bits wraps.
static const Wide ADDRESS_MAX = (Wide)1 << 62;

typedef struct Range {
    Wide low, high;
} Range;

typedef struct Access {
    KrnValue at;
    const KrnAddress *address;
    bool store;
    Range range;     // all elements touched
    uint32_t region; // the split or tail loop around it, or KRN_NO_LOOP
} Access;

typedef struct Checker {
    Verifier *v;
    const Kernel *kernel;
    Vec(Access) accesses;
    uint32_t *region; // by loop
    bool *dead;       // by loop: it or one around it has no iterations
} Checker;

// ---- intervals ------------------------------------------------------------------------------

// Of an index: base + step × k for k = 0 … last.
typedef struct Progression {
    Wide base, step, last;
} Progression;

static Progression progression_of(const Checker *c, KrnValue value) {
    const KrnInst *inst = &c->kernel->insts.at[value];
    if (inst->op == KRN_LOOP) {
        const KrnLoop *loop = &c->kernel->loops.at[inst->loop];
        return (Progression){loop->begin, loop->step, krn_loop_count(loop) - 1};
    }
    const KrnAddress *from = &c->kernel->addresses.at[inst->address];
    return (Progression){0, 1, c->kernel->buffers.at[from->buffer].range - 1};
}

static Wide size_of(Wide value) {
    return value < 0 ? -value : value;
}

static Range range_of_lanes(const KrnAddress *address, uint32_t lanes) {
    Wide last = (Wide)address->lane_stride * (Wide)(lanes - 1);
    return (Range){MIN(last, 0), MAX(last, 0)};
}

static uint32_t lanes_of(const Checker *c, KrnValue at) {
    const KrnInst *inst = &c->kernel->insts.at[at];
    return inst->op == KRN_STORE ? c->kernel->insts.at[inst->a].type.lanes : inst->type.lanes;
}

// False where 64 bits might not hold it.
static bool range_of_address(const Checker *c, KrnValue at, Range *range) {
    const KrnAddress *address = &c->kernel->addresses.at[c->kernel->insts.at[at].address];
    *range = range_of_lanes(address, lanes_of(c, at));
    Wide total = size_of(address->offset) + size_of(range->low) + size_of(range->high);
    range->low += address->offset;
    range->high += address->offset;
    for (uint32_t i = 0; i < address->count; i++) {
        const KrnTerm *term = &c->kernel->terms.at[address->first + i];
        Progression index = progression_of(c, term->value);
        // Bounds of loops and ranges are below 2^62 and a coefficient below 2^63.
        Wide first = (Wide)term->coefficient * index.base;
        Wide last = (Wide)term->coefficient * (index.base + index.step * index.last);
        range->low += MIN(first, last);
        range->high += MAX(first, last);
        total += MAX(size_of(first), size_of(last));
        if (total > ADDRESS_MAX)
            return false;
    }
    return total <= ADDRESS_MAX;
}

static const char *wide_text(const Checker *c, Wide value) {
    return str_format(c->v->arena, "%lld", (long long)value).at;
}

static void check_bounds(const Checker *c, const Access *access) {
    const KrnBuffer *buffer = &c->kernel->buffers.at[access->address->buffer];
    if (access->range.low < 0 || access->range.high >= buffer->size)
        krn_fault(c->v, access->at, "touches elements %s to %s of %%%s, which has %lld",
                  wide_text(c, access->range.low), wide_text(c, access->range.high),
                  name_c(c->kernel->names, buffer->name), (long long)buffer->size);
    if (access->store && buffer->role == KRN_IN)
        krn_fault(c->v, access->at, "stores into %%%s, an operand",
                  name_c(c->kernel->names, buffer->name));
}

// ---- collecting -----------------------------------------------------------------------------

static void find_regions(Checker *c) {
    for (uint32_t i = 0; i < c->kernel->loops.count; i++) {
        const KrnLoop *loop = &c->kernel->loops.at[i];
        uint32_t outer = c->v->outer[i]; // before it in the table, as loops open
        bool inherits = outer != KRN_NO_LOOP && c->region[outer] != KRN_NO_LOOP;
        c->region[i] = inherits ? c->region[outer] : loop->share == KRN_WHOLE ? KRN_NO_LOOP : i;
        c->dead[i] = krn_loop_count(loop) == 0 || (outer != KRN_NO_LOOP && c->dead[outer]);
    }
}

static void collect(Checker *c) {
    for (KrnValue at = 0; at < c->kernel->insts.count; at++) {
        const KrnInst *inst = &c->kernel->insts.at[at];
        uint32_t loop = c->v->parent[at];
        bool prefetch = inst->op == KRN_PREFETCH;
        if ((inst->op != KRN_LOAD && inst->op != KRN_STORE && !prefetch) ||
            (loop != KRN_NO_LOOP && c->dead[loop]))
            continue;
        Access access = {.at = at,
                         .address = &c->kernel->addresses.at[inst->address],
                         .store = inst->op == KRN_STORE,
                         .region = loop == KRN_NO_LOOP ? KRN_NO_LOOP : c->region[loop]};
        if (!range_of_address(c, at, &access.range)) {
            krn_fault(c->v, at, "the address does not fit 62 bits");
            continue;
        }
        if (prefetch)
            continue;
        check_bounds(c, &access);
        vec_push(c->v->arena, &c->accesses, access);
    }
}

// ---- stored before read ---------------------------------------------------------------------

static bool share_a_loop(const Checker *c, KrnValue a, KrnValue b) {
    for (uint32_t x = c->v->parent[a]; x != KRN_NO_LOOP; x = c->v->outer[x]) {
        for (uint32_t y = c->v->parent[b]; y != KRN_NO_LOOP; y = c->v->outer[y]) {
            if (x == y)
                return true;
        }
    }
    return false;
}

// A load of what the kernel makes itself: a store to the buffer stands before it, and the stores
// that may have run by then reach around the elements it reads. What only some launches store
// (split and tail loops) counts only in the same loop.
static void check_stored(const Checker *c, const Access *load) {
    const KrnBuffer *buffer = &c->kernel->buffers.at[load->address->buffer];
    bool before = false, any = false;
    Range stored = {0, 0};
    for (uint32_t i = 0; i < c->accesses.count; i++) {
        const Access *store = &c->accesses.at[i];
        if (!store->store || store->address->buffer != load->address->buffer)
            continue;
        if (store->region != KRN_NO_LOOP && store->region != load->region)
            continue;
        if (store->at > load->at && !share_a_loop(c, store->at, load->at))
            continue;
        before |= store->at < load->at;
        stored.low = any ? MIN(stored.low, store->range.low) : store->range.low;
        stored.high = any ? MAX(stored.high, store->range.high) : store->range.high;
        any = true;
        if (before && stored.low <= load->range.low && stored.high >= load->range.high)
            return; // a store more can only widen the interval
    }
    const char *name = name_c(c->kernel->names, buffer->name);
    if (!before)
        krn_fault(c->v, load->at, "reads %%%s before the kernel has stored into it", name);
    else if (load->range.low < stored.low || load->range.high > stored.high)
        krn_fault(c->v, load->at, "reads elements %s to %s of %%%s, of which %s to %s are stored",
                  wide_text(c, load->range.low), wide_text(c, load->range.high), name,
                  wide_text(c, stored.low), wide_text(c, stored.high));
}

// Scratch that is stored in a split or tail loop holds what that launch did: elsewhere it may be
// read only after stores of the same loop.
static void check_scratch(const Checker *c, const Access *load) {
    bool foreign = false, own = false;
    for (uint32_t i = 0; i < c->accesses.count; i++) {
        const Access *store = &c->accesses.at[i];
        if (!store->store || store->address->buffer != load->address->buffer)
            continue;
        foreign |= store->region != KRN_NO_LOOP && store->region != load->region;
        own |= store->region == load->region && load->region != KRN_NO_LOOP && store->at < load->at;
    }
    const KrnBuffer *buffer = &c->kernel->buffers.at[load->address->buffer];
    if (foreign && !own)
        krn_fault(c->v, load->at, "reads scratch %%%s, which another launch may have stored",
                  name_c(c->kernel->names, buffer->name));
}

// ---- launches that do not meet --------------------------------------------------------------
//
// All accesses to an output that stand in a split loop stand in the same one. The address of such
// an access is  C·s + big + small,  where s counts the split
// loop's iterations, the big terms are multiples of M, and small (with offset and lane) lies in an
// interval of width W over all accesses. If W < |C| and |C|·(n − 1) + W < M, then two addresses of
// different iterations differ: their difference is C·Δs + Δsmall modulo M, it is smaller than M, so
// it would have to be 0, but |Δsmall| ≤ W < |C| ≤ |C·Δs|. Terms with a coefficient of at least
// |C|·n are the big ones. M is their greatest common divisor, and that of the least distance of at
// least |C|·n between offsets: the rows of a tile, which no loop runs over. The lanes of a vector
// are a term of their own, with its stride as the coefficient. Without any, M is infinite. Tail
// loops must stay outside the interval of the split one, modulo M. The proof is for all accesses
// to the buffer at once; kernels for which it does not go through are refused.

typedef struct Split {
    const Checker *c;
    uint32_t loop;
    KrnValue index;
    Wide coefficient, count, modulus; // modulus 0: infinite
} Split;

// Step in elements of a term, and its coefficient's part in the offset.
static Wide term_step(const Checker *c, const KrnTerm *term, Progression *index) {
    *index = progression_of(c, term->value);
    return (Wide)term->coefficient * index->step;
}

static Wide split_coefficient(const Split *split, const Access *access) {
    Progression index;
    for (uint32_t i = 0; i < access->address->count; i++) {
        const KrnTerm *term = &split->c->kernel->terms.at[access->address->first + i];
        if (term->value == split->index)
            return term_step(split->c, term, &index);
    }
    return 0;
}

static Wide divisor(Wide a, Wide b) {
    while (b != 0) {
        Wide rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void find_modulus(Split *split, const Access *access) {
    Progression index;
    for (uint32_t i = 0; i < access->address->count; i++) {
        const KrnTerm *term = &split->c->kernel->terms.at[access->address->first + i];
        Wide step = size_of(term_step(split->c, term, &index));
        if (term->value != split->index && step >= size_of(split->coefficient) * split->count)
            split->modulus = divisor(split->modulus, step);
    }
    Wide lane = size_of(access->address->lane_stride);
    if (lanes_of(split->c, access->at) > 1 && lane >= size_of(split->coefficient) * split->count)
        split->modulus = divisor(split->modulus, lane);
}

// The least distance of at least |C|·n from the first offset, 0: there is none.
static Wide row_distance(const Split *split, uint32_t buffer) {
    const Checker *c = split->c;
    const KrnAddress *first = NULL;
    Wide least = 0;
    for (uint32_t i = 0; i < c->accesses.count; i++) {
        const Access *access = &c->accesses.at[i];
        if (access->address->buffer != buffer || access->region != split->loop)
            continue;
        first = first ? first : access->address;
        Wide distance = size_of((Wide)access->address->offset - first->offset);
        if (distance >= size_of(split->coefficient) * split->count &&
            (least == 0 || distance < least))
            least = distance;
    }
    return least;
}

// The interval of offset, small terms and lanes.
static Range small_range(const Split *split, const Access *access) {
    Range range = range_of_lanes(access->address, lanes_of(split->c, access->at));
    if (split->modulus && access->address->lane_stride % split->modulus == 0)
        range = (Range){0, 0};
    Wide offset = access->address->offset;
    for (uint32_t i = 0; i < access->address->count; i++) {
        const KrnTerm *term = &split->c->kernel->terms.at[access->address->first + i];
        Progression index;
        Wide step = term_step(split->c, term, &index);
        offset += (Wide)term->coefficient * index.base;
        if (term->value == split->index || (split->modulus && step % split->modulus == 0))
            continue;
        range.low += MIN(step * index.last, 0);
        range.high += MAX(step * index.last, 0);
    }
    return (Range){range.low + offset, range.high + offset};
}

// The same interval modulo M, its low end in base … base + M − 1.
static Range reduced(const Split *split, Range range, Wide base) {
    if (!split->modulus)
        return range;
    Wide rest = (range.low - base) % split->modulus;
    Wide low = base + (rest < 0 ? rest + split->modulus : rest);
    return (Range){low, low + (range.high - range.low)};
}

static bool is_of(const Access *access, uint32_t buffer) {
    return access->address->buffer == buffer;
}

// The interval of all accesses of the split loop for one iteration; false where coefficients vary.
static bool split_range(Split *split, uint32_t buffer, Range *range) {
    const Checker *c = split->c;
    bool any = false;
    for (uint32_t i = 0; i < c->accesses.count; i++) {
        const Access *access = &c->accesses.at[i];
        if (!is_of(access, buffer) || access->region != split->loop)
            continue;
        Wide coefficient = split_coefficient(split, access);
        if (any && coefficient != split->coefficient)
            return false;
        split->coefficient = coefficient;
        any = true;
    }
    for (uint32_t i = 0; i < c->accesses.count && split->count > 1; i++) {
        if (is_of(&c->accesses.at[i], buffer))
            find_modulus(split, &c->accesses.at[i]);
    }
    if (split->count > 1)
        split->modulus = divisor(split->modulus, row_distance(split, buffer));
    any = false;
    for (uint32_t i = 0; i < c->accesses.count; i++) {
        const Access *access = &c->accesses.at[i];
        if (!is_of(access, buffer) || access->region != split->loop)
            continue;
        Range one = reduced(split, small_range(split, access), 0);
        range->low = any ? MIN(range->low, one.low) : one.low;
        range->high = any ? MAX(range->high, one.high) : one.high;
        any = true;
    }
    return true;
}

// The split loop's window of addresses modulo M, given the interval of one iteration.
static Range window_of(const Split *split, Range one) {
    Wide reach = split->coefficient * (split->count - 1);
    return (Range){one.low + MIN(reach, 0), one.high + MAX(reach, 0)};
}

static bool tail_misses(const Split *split, const Access *access, Range window) {
    Range tail = reduced(split, small_range(split, access), window.low);
    if (!split->modulus)
        return tail.high < window.low || tail.low > window.high;
    return tail.low > window.high && tail.high < window.low + split->modulus;
}

// The split loop that touches an output; KRN_NO_LOOP: tail loops alone do, or it was refused.
static uint32_t split_loop_of(const Checker *c, uint32_t buffer) {
    const char *name = name_c(c->kernel->names, c->kernel->buffers.at[buffer].name);
    uint32_t found = KRN_NO_LOOP;
    for (uint32_t i = 0; i < c->accesses.count; i++) {
        const Access *access = &c->accesses.at[i];
        if (!is_of(access, buffer))
            continue;
        if (access->region == KRN_NO_LOOP) {
            krn_fault(c->v, access->at, "touches output %%%s in every launch of a split kernel",
                      name);
        } else if (c->kernel->loops.at[access->region].share == KRN_SPLIT) {
            if (found != KRN_NO_LOOP && found != access->region)
                krn_fault(c->v, access->at, "touches output %%%s, as another split loop does",
                          name);
            found = access->region;
        }
    }
    return c->v->errors.size ? KRN_NO_LOOP : found;
}

static void check_buffer_split(const Checker *c, uint32_t buffer) {
    uint32_t number = split_loop_of(c, buffer);
    if (number == KRN_NO_LOOP)
        return;
    const KrnLoop *loop = &c->kernel->loops.at[number];
    Split split = {.c = c, .loop = number, .index = loop->loop, .count = krn_loop_count(loop)};
    const char *name = name_c(c->kernel->names, c->kernel->buffers.at[buffer].name);
    if (c->kernel->split_count <= 1)
        return;
    Range one = {0, 0};
    bool same = split_range(&split, buffer, &one);
    Range window = window_of(&split, one);
    bool apart = same && one.high - one.low < size_of(split.coefficient) &&
                 (!split.modulus || window.high - window.low < split.modulus);
    if (split.count > 1 && !apart) {
        krn_fault(c->v, loop->loop,
                  "iterations of the split loop may touch the same element of %%%s", name);
        return;
    }
    for (uint32_t i = 0; i < c->accesses.count; i++) {
        const Access *access = &c->accesses.at[i];
        if (is_of(access, buffer) && access->region != number &&
            !tail_misses(&split, access, window))
            krn_fault(c->v, access->at, "touches elements of %%%s that the split loop may touch",
                      name);
    }
}

void krn_verify_accesses(Verifier *v) {
    const Kernel *kernel = v->kernel;
    Checker c = {.v = v, .kernel = kernel};
    c.region = arena_array(v->arena, uint32_t, kernel->loops.count);
    c.dead = arena_array(v->arena, bool, kernel->loops.count);
    find_regions(&c);
    collect(&c);
    if (v->errors.size)
        return;
    for (uint32_t i = 0; i < c.accesses.count; i++) {
        const Access *access = &c.accesses.at[i];
        KrnRole role = kernel->buffers.at[access->address->buffer].role;
        if (access->store || role == KRN_IN)
            continue;
        check_stored(&c, access);
        if (role == KRN_SCRATCH)
            check_scratch(&c, access);
    }
    for (uint32_t i = 0; i < kernel->buffers.count && v->has_split; i++) {
        if (kernel->buffers.at[i].role == KRN_OUT)
            check_buffer_split(&c, i);
    }
}
