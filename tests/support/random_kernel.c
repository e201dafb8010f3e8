// See random_kernel.h. The generator keeps the values in scope in a pool and takes operands from
// those that nothing has read yet, and blocks end by storing some of these, so that most of what is
// computed reaches memory. Addresses are made first and buffers
// sized to fit them.
#include "support/random_kernel.h"

#include <float.h>
#include <math.h>

enum { DEPTH_MAX = 4, INSTS_MAX = 220, OUTS_MAX = 18, SCRATCHES_MAX = 4, INDEX_RANGE = 5 };

typedef struct OpenLoop {
    KrnValue value;
    int64_t first, step, last; // of iterations that run; one at least
} OpenLoop;

typedef struct Pooled {
    KrnValue value;
    bool read;
} Pooled;

typedef struct Scratch {
    uint32_t buffer;
    int64_t size; // elements filled
} Scratch;

typedef struct Maker {
    Arena *arena;
    Kernel *kernel;
    KrnBuilder b;
    RandomChoices choices;
    uint32_t next;
    uint32_t lanes; // beside 1
    uint32_t in[5]; // a buffer of each memory type that loads have a use for
    uint32_t indices, outs, scratches;
    bool splits, split_done, in_split;
    uint32_t shared; // loops opened when the split or tail loop was; 0: outside
    Vec(Pooled) pool;
    Vec(KrnValue) index_pool; // loaded indices, below INDEX_RANGE
    Vec(OpenLoop) loops;
    Vec(Scratch) filled;
} Maker;

static const DType in_types[] = {F32, F64, BF16, U8, U64};

static const char *const rules[] = {
#define KOP(name, text, arity, rule, lane, meaning) [KRN_##name] = #rule,
#include "kernel/kop.def"
#undef KOP
};

// ---- choices --------------------------------------------------------------------------------

static uint64_t next_random(uint64_t *state) { // SplitMix64, Steele et al. 2014
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

RandomChoices random_choices(Arena *arena, uint64_t seed, uint32_t count) {
    RandomChoices choices = {arena_array(arena, uint32_t, count), count};
    for (uint32_t i = 0; i < count; i++)
        choices.at[i] = (uint32_t)(next_random(&seed) >> 40);
    return choices;
}

// Below `count`; 0 when no choices are left, which ends everything that goes on.
static uint32_t choose(Maker *m, uint32_t count) {
    return m->next < m->choices.count ? m->choices.at[m->next++] % count : 0;
}

// ---- values ---------------------------------------------------------------------------------

static KrnValue keep(Maker *m, KrnValue value) {
    vec_push(m->arena, &m->pool, ((Pooled){value, false}));
    return value;
}

static KrnValue constant(Maker *m, KrnType type) {
    static const double floats[] = {0,       1,      -0.0,      -1.5,     0.1,      3,
                                    1e-45,   1e38,   -INFINITY, INFINITY, NAN,      FLT_MAX,
                                    DBL_MAX, 5e-324, 1e10,      16777217, 0x1p-126, -0x1p-140};
    static const int64_t ints[] = {0,  1,         -1,        2,          255,       1000,
                                   -7, INT32_MAX, INT32_MIN, 0x3F800000, INT64_MIN, INT64_MAX};
    if (type.scalar == KRN_F32)
        return krn_const_float(&m->b, type, (double)(float)floats[choose(m, COUNT_OF(floats))]);
    if (type.scalar == KRN_F64)
        return krn_const_float(&m->b, type, floats[choose(m, COUNT_OF(floats))]);
    if (type.scalar == KRN_I1)
        return krn_const_int(&m->b, type, choose(m, 2));
    uint32_t count = COUNT_OF(ints) - (type.scalar == KRN_I32 ? 2 : 0);
    return krn_const_int(&m->b, type, ints[choose(m, count)]);
}

static KrnValue load_from(Maker *m, uint32_t buffer, uint32_t lanes);

static bool has_type(const Maker *m, KrnValue value, KrnType type) {
    KrnType own = krn_type_of(m->kernel, value);
    return own.scalar == type.scalar && own.lanes == type.lanes;
}

static KrnValue fresh(Maker *m, KrnType type) {
    KrnType scalar = krn_type(type.scalar, 1);
    uint32_t way = choose(m, 4);
    if (way == 0)
        return constant(m, type);
    if (way == 1 && type.lanes > 1)
        return krn_splat(&m->b, fresh(m, scalar), type.lanes);
    if (way == 2 && type.scalar == KRN_I64 && type.lanes > 1)
        return krn_iota(&m->b, type.lanes);
    if (type.scalar == KRN_F32)
        return load_from(m, m->in[choose(m, 2) ? 2 : 0], type.lanes);
    if (type.scalar == KRN_F64)
        return load_from(m, m->in[1], type.lanes);
    KrnValue loaded = load_from(m, m->in[3 + choose(m, 2)], type.lanes);
    return has_type(m, loaded, type) ? loaded : krn_convert(&m->b, type.scalar, loaded);
}

// A value of this type: one in scope, most often the last that nothing has read, or a new one.
static KrnValue want(Maker *m, KrnType type) {
    bool any = choose(m, 4) == 3;
    uint32_t skip = choose(m, 4) / 2;
    for (uint32_t i = m->pool.count; i-- > 0;) {
        Pooled *pooled = &m->pool.at[i];
        if (has_type(m, pooled->value, type) && (any || !pooled->read) && skip-- == 0) {
            pooled->read = true;
            return pooled->value;
        }
    }
    KrnValue value = keep(m, fresh(m, type));
    vec_last(&m->pool).read = true;
    return value;
}

static uint32_t some_lanes(Maker *m) {
    return choose(m, 3) ? m->lanes : 1;
}

static KrnType some_type(Maker *m) {
    return krn_type(KRN_I1 + choose(m, 5), some_lanes(m));
}

// ---- addresses ------------------------------------------------------------------------------

typedef struct Reach {
    int64_t low, high;
} Reach;

static void add_term(KrnIndex *index, Reach *reach, int64_t coefficient, const OpenLoop *loop) {
    int64_t a = coefficient * loop->first;
    int64_t b = coefficient * (loop->first + loop->step * loop->last);
    reach->low += MIN(a, b);
    reach->high += MAX(a, b);
    krn_index_add(index, coefficient, loop->value);
}

// Terms of loops from the `from`-th on and of loaded indices, and the lanes; the offset is open.
static KrnIndex some_terms(Maker *m, uint32_t from, int64_t lane_reach, Reach *reach) {
    KrnIndex index = krn_index(0, 0);
    *reach = (Reach){MIN(lane_reach, 0), MAX(lane_reach, 0)};
    for (uint32_t i = from; i < m->loops.count; i++) {
        if (choose(m, 4))
            add_term(&index, reach, (int64_t)choose(m, 7) - 3, &m->loops.at[i]);
    }
    if (m->index_pool.count && choose(m, 3) == 2) {
        KrnValue value = m->index_pool.at[choose(m, m->index_pool.count)];
        OpenLoop all = {value, 0, 1, INDEX_RANGE - 1};
        add_term(&index, reach, (int64_t)choose(m, 5) - 2, &all);
    }
    return index;
}

static int64_t some_stride(Maker *m, uint32_t lanes) {
    static const int64_t strides[] = {1, 1, 1, 2, -1, 3, -4};
    return lanes == 1 ? 1 : strides[choose(m, COUNT_OF(strides))];
}

static void grow_buffer(Maker *m, uint32_t buffer, int64_t size) {
    KrnBuffer *grown = &m->kernel->buffers.at[buffer];
    grown->size = MAX(grown->size, size);
}

static KrnValue load_from(Maker *m, uint32_t buffer, uint32_t lanes) {
    int64_t stride = some_stride(m, lanes);
    Reach reach;
    KrnIndex index = some_terms(m, 0, stride * (lanes - 1), &reach);
    index.buffer = buffer;
    index.offset = choose(m, 3) - reach.low;
    grow_buffer(m, buffer, reach.high + index.offset + 1);
    if (choose(m, 8) == 7)
        krn_prefetch(&m->b, &index);
    return krn_load(&m->b, &index, lanes, stride);
}

static void load_index(Maker *m) {
    Reach reach;
    KrnIndex index = some_terms(m, 0, 0, &reach);
    index.buffer = m->indices;
    index.offset = -reach.low;
    grow_buffer(m, m->indices, reach.high - reach.low + 1);
    KrnValue value = krn_load(&m->b, &index, 1, 1);
    vec_push(m->arena, &m->index_pool, keep(m, value));
}

// ---- stores ---------------------------------------------------------------------------------

static DType type_for(Maker *m, KrnScalar scalar) {
    if (scalar == KRN_F64)
        return F64;
    if (scalar == KRN_F32)
        return choose(m, 3) ? F32 : BF16;
    return U8 + choose(m, 4);
}

static uint32_t new_buffer(Maker *m, const char *prefix, uint32_t number, DType type,
                           KrnRole role) {
    const char *name = str_format(m->arena, "%s%u", prefix, number).at;
    return krn_buffer(&m->b, name, type, 0, 0, role);
}

// To an output of its own. Inside a split loop its iterations lie side by side.
static void store_out(Maker *m, KrnValue value) {
    if (m->outs == OUTS_MAX || (m->splits && m->shared == 0))
        return;
    if (krn_type_of(m->kernel, value).scalar == KRN_I32)
        value = krn_convert(&m->b, KRN_I64, value);
    KrnType type = krn_type_of(m->kernel, value);
    int64_t stride = some_stride(m, type.lanes);
    bool split = m->in_split;
    Reach reach;
    KrnIndex index = some_terms(m, split ? m->shared : 0, stride * (type.lanes - 1), &reach);
    if (split) {
        int64_t side = reach.high - reach.low + 1 + choose(m, 3);
        add_term(&index, &reach, choose(m, 4) == 3 ? -side : side, &m->loops.at[m->shared - 1]);
    }
    index.buffer = new_buffer(m, "out", m->outs++, type_for(m, type.scalar), KRN_OUT);
    index.offset = choose(m, 2) - reach.low;
    grow_buffer(m, index.buffer, reach.high + index.offset + 1);
    krn_store(&m->b, &index, stride, value, choose(m, 8) == 7);
    if (choose(m, 4) == 3)
        keep(m, krn_load(&m->b, &index, type.lanes, stride));
}

// Stores the last values from the `from`-th on that nothing has read.
static void store_unread(Maker *m, uint32_t from) {
    uint32_t most = 1 + choose(m, 3);
    for (uint32_t i = m->pool.count; i-- > from && most > 0;) {
        if (m->pool.at[i].read)
            continue;
        m->pool.at[i].read = true;
        store_out(m, m->pool.at[i].value);
        most--;
    }
}

static void fill_scratch(Maker *m) {
    if (m->scratches == SCRATCHES_MAX)
        return;
    KrnValue value = want(m, krn_type(choose(m, 2) ? KRN_F32 : KRN_F64, some_lanes(m)));
    KrnType type = krn_type_of(m->kernel, value);
    Scratch scratch = {0, (int64_t)type.lanes * (1 + choose(m, 4))};
    scratch.buffer =
        new_buffer(m, "scratch", m->scratches++, type_for(m, type.scalar), KRN_SCRATCH);
    grow_buffer(m, scratch.buffer, scratch.size);
    KrnValue at = krn_loop(&m->b, 0, scratch.size, type.lanes, KRN_WHOLE, 0, NULL, NULL);
    bool backwards = type.lanes > 1 && choose(m, 2);
    KrnIndex index = krn_index(scratch.buffer, backwards ? type.lanes - 1 : 0);
    krn_index_add(&index, 1, at);
    krn_store(&m->b, &index, backwards ? -1 : 1, value, false);
    krn_end(&m->b, 0, NULL, NULL);
    vec_push(m->arena, &m->filled, scratch);
}

static void load_scratch(Maker *m) {
    if (m->filled.count == 0)
        return;
    const Scratch *scratch = &m->filled.at[choose(m, m->filled.count)];
    uint32_t lanes = some_lanes(m);
    int64_t stride = some_stride(m, lanes);
    Reach reach;
    KrnIndex index = some_terms(m, 0, stride * (lanes - 1), &reach);
    int64_t slack = scratch->size - (reach.high - reach.low + 1);
    if (slack < 0)
        return;
    index.buffer = scratch->buffer;
    index.offset = choose(m, (uint32_t)slack + 1) - reach.low;
    keep(m, krn_load(&m->b, &index, lanes, stride));
}

// ---- operations -----------------------------------------------------------------------------

static KrnValue without_nan(Maker *m, KrnValue value) {
    KrnValue one = krn_const_float(&m->b, krn_type_of(m->kernel, value), 1);
    return krn_op3(&m->b, KRN_SELECT, krn_op2(&m->b, KRN_NE, value, value), one, value);
}

static void operate(Maker *m) {
    KrnOp op = KRN_ADD + choose(m, KRN_CONVERT - KRN_ADD);
    bool wide = choose(m, 2);
    uint32_t lanes = some_lanes(m);
    KrnValue v[3] = {0};
    for (uint32_t i = 0; i < krn_arity(op); i++) {
        char sort = rules[op][i];
        KrnScalar scalar = sort == 'T'   ? KRN_I1
                           : sort == 'F' ? (wide ? KRN_F64 : KRN_F32)
                                         : (wide ? KRN_I64 : KRN_I32);
        v[i] = want(m, krn_type(scalar, lanes));
    }
    if (op == KRN_BITS)
        v[0] = without_nan(m, v[0]);
    if (op == KRN_SHL || op == KRN_SHR)
        keep(m, krn_shift(&m->b, op, v[0], choose(m, wide ? 64 : 32)));
    else if (krn_arity(op) == 1)
        keep(m, krn_op1(&m->b, op, v[0]));
    else if (krn_arity(op) == 2)
        keep(m, krn_op2(&m->b, op, v[0], v[1]));
    else
        keep(m, krn_op3(&m->b, op, v[0], v[1], v[2]));
}

static void convert(Maker *m) {
    KrnType from = some_type(m);
    KrnScalar to = KRN_I1 + choose(m, 5);
    if (krn_can_convert(from.scalar, to))
        keep(m, krn_convert(&m->b, to, want(m, from)));
}

static void zip(Maker *m) {
    KrnType type = krn_type(choose(m, 2) ? KRN_F64 : KRN_F32, m->lanes);
    KrnValue low = want(m, type), high = want(m, type);
    keep(m, krn_op2(&m->b, choose(m, 2) ? KRN_ZIP_LOW : KRN_ZIP_HIGH, low, high));
}

static void splat(Maker *m) {
    if (m->lanes % 2 == 0 && choose(m, 2))
        zip(m);
    else if (m->lanes > 1)
        keep(m, krn_splat(&m->b, want(m, krn_type(KRN_I1 + choose(m, 5), 1)), m->lanes));
}

// ---- loops ----------------------------------------------------------------------------------

static void statements(Maker *m);

static KrnShare some_share(Maker *m) {
    if (!m->splits || m->shared)
        return KRN_WHOLE;
    if (!m->split_done)
        return choose(m, 2) ? KRN_SPLIT : KRN_WHOLE;
    static const KrnShare later[] = {KRN_WHOLE, KRN_TAIL, KRN_SPLIT, KRN_TAIL};
    return later[choose(m, COUNT_OF(later))];
}

static void loop(Maker *m, KrnShare share) {
    static const uint8_t counts[] = {2, 3, 1, 0, 4, 2, 3, 5};
    int64_t begin = (int64_t)choose(m, 9) - 4, step = 1 + choose(m, 3);
    int64_t count = counts[choose(m, COUNT_OF(counts))];
    int64_t end = begin + (count ? (count - 1) * step + 1 + choose(m, (uint32_t)step) : 0);
    KrnValue carried[3];
    uint32_t carries = share == KRN_WHOLE ? choose(m, 4) : 0;
    for (uint32_t i = 0; i < carries; i++)
        carried[i] = want(m, some_type(m));
    uint32_t pool = m->pool.count, indices = m->index_pool.count, filled = m->filled.count;
    OpenLoop open = {0, begin, step, MAX(count - 1, 0)};
    open.value = krn_loop(&m->b, begin, end, step, share, carries, carried, carried);
    vec_push(m->arena, &m->loops, open);
    if (share != KRN_WHOLE)
        m->shared = m->loops.count;
    m->in_split = m->in_split || share == KRN_SPLIT;
    keep(m, open.value);
    vec_last(&m->pool).read = true;
    for (uint32_t i = 0; i < carries; i++)
        keep(m, carried[i]);
    statements(m);
    store_unread(m, pool);
    for (uint32_t i = 0; i < carries; i++)
        carried[i] = want(m, krn_type_of(m->kernel, carried[i]));
    krn_end(&m->b, carries, carried, carried);
    m->loops.count--;
    m->pool.count = pool;
    m->index_pool.count = indices;
    m->filled.count = filled;
    if (share != KRN_WHOLE)
        m->shared = 0;
    if (share == KRN_SPLIT) {
        m->split_done = true;
        m->in_split = false;
    }
    for (uint32_t i = 0; i < carries; i++)
        keep(m, carried[i]);
}

static void statement(Maker *m) {
    switch (choose(m, 16)) {
    case 0:
    case 1:
    case 2:
        if (m->loops.count < DEPTH_MAX)
            loop(m, some_share(m));
        break;
    case 3:
        convert(m);
        break;
    case 4:
        splat(m);
        break;
    case 5:
        store_out(m, want(m, some_type(m)));
        break;
    case 6:
        fill_scratch(m);
        break;
    case 7:
        load_scratch(m);
        break;
    case 8:
        load_index(m);
        break;
    default:
        operate(m);
    }
}

static void statements(Maker *m) {
    while (choose(m, 9) != 0 && m->kernel->insts.count < INSTS_MAX)
        statement(m);
}

Kernel *random_kernel(Arena *arena, Names *names, RandomChoices choices) {
    Maker m = {.arena = arena, .choices = choices};
    m.kernel = krn_new(arena, names, "random");
    m.b = krn_builder(m.kernel, names);
    m.lanes = 1 + choose(&m, 16);
    m.splits = choose(&m, 2);
    for (uint32_t i = 0; i < COUNT_OF(in_types); i++)
        m.in[i] = new_buffer(&m, "in", i, in_types[i], KRN_IN);
    m.indices = krn_buffer(&m.b, "indices", choose(&m, 2) ? U16 : U8, 0, INDEX_RANGE, KRN_IN);
    uint32_t blocks = 1 + choose(&m, 6);
    for (uint32_t i = 0; i < blocks; i++)
        statements(&m);
    if (m.splits && !m.split_done)
        loop(&m, KRN_SPLIT);
    store_unread(&m, 0);
    return m.kernel;
}

// ---- shrinking ------------------------------------------------------------------------------

typedef struct Shrinker {
    Arena *arena;
    Names *names;
    uint32_t tries;
    bool (*fails)(void *data, Kernel *kernel);
    void *data;
    RandomChoices best;
} Shrinker;

static bool attempt(Shrinker *s, RandomChoices choices) {
    if (s->tries == 0)
        return false;
    s->tries--;
    if (!s->fails(s->data, random_kernel(s->arena, s->names, choices)))
        return false;
    s->best = choices;
    return true;
}

static RandomChoices copy_without(Shrinker *s, uint32_t from, uint32_t count) {
    RandomChoices copy = {arena_array(s->arena, uint32_t, s->best.count), s->best.count - count};
    memcpy(copy.at, s->best.at, from * sizeof *copy.at);
    memcpy(copy.at + from, s->best.at + from + count, (copy.count - from) * sizeof *copy.at);
    return copy;
}

static bool remove_runs(Shrinker *s) {
    bool any = false;
    for (uint32_t size = s->best.count / 2; size > 0; size /= 2) {
        for (uint32_t from = 0; from + size <= s->best.count;) {
            if (attempt(s, copy_without(s, from, size)))
                any = true;
            else
                from += size;
        }
    }
    return any;
}

static bool lower_choices(Shrinker *s) {
    bool any = false;
    for (uint32_t i = 0; i < s->best.count; i++) {
        for (uint32_t value = 0; value < 2 && s->best.at[i] > value; value++) {
            RandomChoices copy = copy_without(s, s->best.count, 0);
            copy.at[i] = value;
            if (attempt(s, copy)) {
                any = true;
                break;
            }
        }
    }
    return any;
}

RandomChoices random_shrink(Arena *arena, Names *names, RandomChoices choices, uint32_t tries,
                            bool (*fails)(void *data, Kernel *kernel), void *data) {
    Shrinker s = {arena, names, tries, fails, data, choices};
    bool removed, lowered;
    do {
        removed = remove_runs(&s);
        lowered = lower_choices(&s);
    } while ((removed || lowered) && s.tries > 0);
    return s.best;
}
