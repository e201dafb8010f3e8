// Extents as polynomials in normal form.
//
// A monomial is a coefficient (not 0) and its dimensions, sorted, a power being a repetition; a
// polynomial is its monomials in a fixed order without two of the same dimensions. So equal
// polynomials have equal words, and the table gives equal words one id. Everything is immutable
// once it has an id.
#include "core/extent.h"

enum { FACTORS_MAX = 64, MONOMIALS_MAX = 256 };

typedef struct Monomial {
    int64_t coefficient;
    uint32_t degree;
    const DimId *dims; // sorted
} Monomial;

typedef struct Polynomial {
    uint32_t count;
    const Monomial *at;
} Polynomial;

typedef Vec(Monomial) Monomials;

// A polynomial being built: monomials in any order until `intern` sorts and merges them.
// One at a time: its list is the table's scratch.
typedef struct Build {
    Arena *arena;
    Monomials *all;
    bool failed;
} Build;

struct ExtentTable {
    Arena *arena;
    const Names *names;
    Vec(Dim *) dims;        // at[id - 1]
    Vec(Polynomial) values; // by Extent; NONE and PACK are empty places
    Map *ids;
    Vec(uint32_t) key;   // scratch
    Monomials monomials; // scratch of the polynomial being built
};

ExtentTable *extent_table_new(Arena *arena, const Names *names) {
    ExtentTable *table = arena_new_of(arena, ExtentTable);
    table->arena = arena;
    table->names = names;
    table->ids = map_new(arena);
    vec_push(arena, &table->values, ((Polynomial){0}));
    vec_push(arena, &table->values, ((Polynomial){0}));
    return table;
}

DimId extent_dim_add(ExtentTable *table, Dim dim) {
    Dim *copy = arena_copy(table->arena, &dim, sizeof dim);
    vec_push(table->arena, &table->dims, copy);
    return table->dims.count;
}

Dim *extent_dim_get(const ExtentTable *table, DimId dim) {
    check_that(dim >= 1 && dim <= table->dims.count);
    return table->dims.at[dim - 1];
}

uint32_t extent_dim_count(const ExtentTable *table) {
    return table->dims.count;
}

static const Polynomial *polynomial(const ExtentTable *table, Extent a) {
    check_that(a < table->values.count);
    return &table->values.at[a];
}

static bool is_polynomial(Extent a) {
    return a != EXTENT_NONE && a != EXTENT_PACK;
}

// Order of monomials: by their dimensions, the longer first where one begins the other, so that the
// constant comes last.
static int compare_dims(const Monomial *a, const Monomial *b) {
    for (uint32_t i = 0; i < a->degree && i < b->degree; i++)
        if (a->dims[i] != b->dims[i])
            return a->dims[i] < b->dims[i] ? -1 : 1;
    return a->degree == b->degree ? 0 : a->degree > b->degree ? -1 : 1;
}

static Build build_new(ExtentTable *table) {
    table->monomials.count = 0;
    return (Build){.arena = table->arena, .all = &table->monomials};
}

static void build_add(Build *build, Monomial monomial) {
    if (monomial.degree > FACTORS_MAX || build->all->count >= MONOMIALS_MAX * MONOMIALS_MAX) {
        build->failed = true;
        return;
    }
    // Insertion from the end: operands are sorted already, so this is near linear.
    vec_push(build->arena, build->all, monomial);
    uint32_t at = build->all->count - 1;
    while (at > 0) {
        Monomial *before = &build->all->at[at - 1];
        int order = compare_dims(before, &monomial);
        if (order == 0) {
            if (__builtin_add_overflow(before->coefficient, monomial.coefficient,
                                       &before->coefficient))
                build->failed = true;
            uint32_t last = --build->all->count;
            for (uint32_t i = at; i < last; i++)
                build->all->at[i] = build->all->at[i + 1];
            return;
        }
        if (order < 0)
            break;
        build->all->at[at] = *before;
        build->all->at[--at] = monomial;
    }
}

static Extent intern(ExtentTable *table, Build *build) {
    if (build->failed)
        return EXTENT_NONE;
    uint32_t count = 0;
    for (uint32_t i = 0; i < build->all->count; i++)
        if (build->all->at[i].coefficient != 0)
            build->all->at[count++] = build->all->at[i];
    if (count > MONOMIALS_MAX)
        return EXTENT_NONE;
    table->key.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const Monomial *m = &build->all->at[i];
        vec_push(table->arena, &table->key, m->degree);
        vec_push(table->arena, &table->key, (uint32_t)(uint64_t)m->coefficient);
        vec_push(table->arena, &table->key, (uint32_t)((uint64_t)m->coefficient >> 32));
        for (uint32_t d = 0; d < m->degree; d++)
            vec_push(table->arena, &table->key, m->dims[d]);
    }
    bool fresh;
    uint32_t *slot =
        map_slot(table->ids, table->key.at, table->key.count * sizeof(uint32_t), &fresh);
    if (fresh) {
        *slot = table->values.count;
        Extent id = *slot;
        const Monomial *at =
            arena_copy(table->arena, build->all->at, count * sizeof *build->all->at);
        vec_push(table->arena, &table->values, ((Polynomial){count, at}));
        return id;
    }
    return *slot;
}

Extent extent_int(ExtentTable *table, int64_t value) {
    Build build = build_new(table);
    build_add(&build, (Monomial){value, 0, NULL});
    return intern(table, &build);
}

Extent extent_dim(ExtentTable *table, DimId dim) {
    check_that(dim >= 1 && dim <= table->dims.count);
    Build build = build_new(table);
    build_add(&build, (Monomial){1, 1, arena_copy(table->arena, &dim, sizeof dim)});
    return intern(table, &build);
}

// a + sign · b
static Extent combine(ExtentTable *table, Extent a, Extent b, int64_t sign) {
    if (!is_polynomial(a) || !is_polynomial(b))
        return EXTENT_NONE;
    Build build = build_new(table);
    Polynomial left = *polynomial(table, a), right = *polynomial(table, b);
    for (uint32_t i = 0; i < left.count; i++)
        build_add(&build, left.at[i]);
    for (uint32_t i = 0; i < right.count; i++) {
        Monomial m = right.at[i];
        if (__builtin_mul_overflow(m.coefficient, sign, &m.coefficient))
            return EXTENT_NONE;
        build_add(&build, m);
    }
    return intern(table, &build);
}

Extent extent_add(ExtentTable *table, Extent a, Extent b) {
    return combine(table, a, b, 1);
}

Extent extent_sub(ExtentTable *table, Extent a, Extent b) {
    return combine(table, a, b, -1);
}

// The product of two monomials; false on overflow.
static bool monomial_mul(Arena *arena, const Monomial *a, const Monomial *b, Monomial *product) {
    if (a->degree + b->degree > FACTORS_MAX)
        return false;
    if (__builtin_mul_overflow(a->coefficient, b->coefficient, &product->coefficient))
        return false;
    DimId *dims = arena_array(arena, DimId, a->degree + b->degree);
    uint32_t i = 0, j = 0, n = 0;
    while (i < a->degree || j < b->degree) {
        bool left = j == b->degree || (i < a->degree && a->dims[i] <= b->dims[j]);
        dims[n++] = left ? a->dims[i++] : b->dims[j++];
    }
    product->degree = n;
    product->dims = dims;
    return true;
}

Extent extent_mul(ExtentTable *table, Extent a, Extent b) {
    if (!is_polynomial(a) || !is_polynomial(b))
        return EXTENT_NONE;
    Build build = build_new(table);
    Polynomial left = *polynomial(table, a), right = *polynomial(table, b);
    for (uint32_t i = 0; i < left.count; i++)
        for (uint32_t j = 0; j < right.count; j++) {
            Monomial product;
            if (!monomial_mul(table->arena, &left.at[i], &right.at[j], &product))
                return EXTENT_NONE;
            build_add(&build, product);
        }
    return intern(table, &build);
}

// a / b where b's dimensions are among a's and the coefficient divides.
static bool monomial_div(Arena *arena, const Monomial *a, const Monomial *b, Monomial *quotient) {
    if (b->coefficient == -1) {
        if (__builtin_sub_overflow(0, a->coefficient, &quotient->coefficient))
            return false;
    } else {
        if (a->coefficient % b->coefficient != 0)
            return false;
        quotient->coefficient = a->coefficient / b->coefficient;
    }
    DimId *dims = arena_array(arena, DimId, a->degree);
    uint32_t n = 0, j = 0;
    for (uint32_t i = 0; i < a->degree; i++)
        if (j < b->degree && a->dims[i] == b->dims[j])
            j++;
        else
            dims[n++] = a->dims[i];
    quotient->degree = n;
    quotient->dims = dims;
    return j == b->degree;
}

Extent extent_div(ExtentTable *table, Extent a, Extent b) {
    if (!is_polynomial(a) || !is_polynomial(b))
        return EXTENT_NONE;
    Polynomial left = *polynomial(table, a), right = *polynomial(table, b);
    if (right.count != 1)
        return EXTENT_NONE;
    Build build = build_new(table);
    for (uint32_t i = 0; i < left.count; i++) {
        Monomial quotient;
        if (!monomial_div(table->arena, &left.at[i], right.at, &quotient))
            return EXTENT_NONE;
        build_add(&build, quotient);
    }
    return intern(table, &build);
}

bool extent_is_int(const ExtentTable *table, Extent a, int64_t *value) {
    if (!is_polynomial(a))
        return false;
    const Polynomial *p = polynomial(table, a);
    if (p->count > 1 || (p->count == 1 && p->at[0].degree != 0))
        return false;
    if (value)
        *value = p->count ? p->at[0].coefficient : 0;
    return true;
}

bool extent_has_dim(const ExtentTable *table, Extent a, DimId dim) {
    if (!is_polynomial(a))
        return false;
    const Polynomial *p = polynomial(table, a);
    for (uint32_t i = 0; i < p->count; i++)
        for (uint32_t d = 0; d < p->at[i].degree; d++)
            if (p->at[i].dims[d] == dim)
                return true;
    return false;
}

DimId extent_dim_outside(const ExtentTable *table, Extent a, const bool *set) {
    if (!is_polynomial(a))
        return 0;
    const Polynomial *p = polynomial(table, a);
    for (uint32_t i = 0; i < p->count; i++)
        for (uint32_t d = 0; d < p->at[i].degree; d++)
            if (!set[p->at[i].dims[d]])
                return p->at[i].dims[d];
    return 0;
}

// Does it mention a dimension that has another value?
static bool changes(const ExtentTable *table, Extent a, const Extent *by_dim) {
    const Polynomial *p = polynomial(table, a);
    for (uint32_t i = 0; i < p->count; i++)
        for (uint32_t d = 0; d < p->at[i].degree; d++)
            if (by_dim[p->at[i].dims[d]])
                return true;
    return false;
}

Extent extent_substitute(ExtentTable *table, Extent a, const Extent *by_dim) {
    if (!is_polynomial(a) || !by_dim || !changes(table, a, by_dim))
        return a;
    Polynomial p = *polynomial(table, a);
    Extent sum = extent_int(table, 0);
    for (uint32_t i = 0; i < p.count; i++) {
        Extent product = extent_int(table, p.at[i].coefficient);
        for (uint32_t d = 0; d < p.at[i].degree; d++) {
            DimId dim = p.at[i].dims[d];
            Extent by = by_dim[dim] ? by_dim[dim] : extent_dim(table, dim);
            product = extent_mul(table, product, by);
        }
        sum = extent_add(table, sum, product);
    }
    return sum;
}

bool extent_value(const ExtentTable *table, Extent a, const int64_t *by_dim, int64_t *value,
                  DimId *missing) {
    if (missing)
        *missing = 0;
    if (!is_polynomial(a))
        return false;
    const Polynomial *p = polynomial(table, a);
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        int64_t product = p->at[i].coefficient;
        for (uint32_t d = 0; d < p->at[i].degree; d++) {
            DimId dim = p->at[i].dims[d];
            if (!by_dim || by_dim[dim] < 0) {
                if (missing)
                    *missing = dim;
                return false;
            }
            if (__builtin_mul_overflow(product, by_dim[dim], &product))
                return false;
        }
        if (__builtin_add_overflow(sum, product, &sum))
            return false;
    }
    *value = sum;
    return true;
}

static void monomial_write(const ExtentTable *table, const Monomial *m, bool first,
                           const Name *names, StrBuf *buf) {
    bool negative = m->coefficient < 0;
    uint64_t size = negative ? 0 - (uint64_t)m->coefficient : (uint64_t)m->coefficient;
    buf_text(buf, first ? (negative ? "-" : "") : negative ? " - " : " + ");
    bool number = size != 1 || m->degree == 0;
    if (number)
        buf_format(buf, "%llu", (unsigned long long)size);
    for (uint32_t d = 0; d < m->degree; d++) {
        DimId dim = m->dims[d];
        Name name = names && names[dim] ? names[dim] : extent_dim_get(table, dim)->name;
        buf_text(buf, d > 0 || number ? " * " : "");
        buf_add(buf, name_str(table->names, name));
    }
}

void extent_write(const ExtentTable *table, Extent a, const Name *names, StrBuf *buf) {
    if (!is_polynomial(a)) {
        buf_text(buf, a == EXTENT_PACK ? "..." : "?");
        return;
    }
    const Polynomial *p = polynomial(table, a);
    if (p->count == 0)
        buf_text(buf, "0");
    for (uint32_t i = 0; i < p->count; i++)
        monomial_write(table, &p->at[i], i == 0, names, buf);
}

Str extent_text(const ExtentTable *table, Extent a, Arena *arena) {
    StrBuf buf = {.arena = arena};
    extent_write(table, a, NULL, &buf);
    return buf_str(&buf);
}
