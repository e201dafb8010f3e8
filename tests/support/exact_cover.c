#include "support/exact_cover.h"

#include <stdio.h>
#include <stdlib.h>

typedef enum Kind {
    NN,
    NT,
    TN,
    EIN,
    OUTER_EIN,
    SOFTMAX,
    MASKED,
    ROW,
    ROW_VJP,
    REDUCTION,
    GROUP,
    INDEXED,
    PERMUTE,
    KINDS
} Kind;
static const char *const kind_text[KINDS] = {"NN",      "NT",      "TN",     "ein",     "outer ein",
                                             "softmax", "masked",  "row",    "row vjp", "reduction",
                                             "group",   "indexed", "permute"};

typedef enum Type { IN_F32, IN_F64, IN_BF16, MIXED, TYPES } Type;
static const char *const type_text[TYPES] = {"f32", "f64", "bf16", "mixed"};

typedef struct Row {
    RlzDecision decision;
    uint32_t value;
    uint32_t count[KINDS][TYPES];
} Row;

struct ExactCover {
    Arena *arena;
    Map *by_value;
    Vec(Row) rows;
};

// ---- kinds and types ----------------------------------------------------------------------------

// dot, its derivatives, and products of the same form; a product with outer axes on both operands
// is an attention's.
static Kind contraction_kind(const RlzNest *nest) {
    if (nest->prim != CORE_ein)
        return nest->prim == CORE_dot_vjp_l ? NT : nest->prim == CORE_dot_vjp_r ? TN : NN;
    for (uint32_t i = 0; i < nest->axes; i++)
        if (nest->role[i] == RLZ_OUTER)
            return OUTER_EIN;
    return EIN;
}

static Kind row_kind(const RlzNest *nest) {
    if (nest->prim == CORE_softmax)
        return nest->inputs > 1 ? MASKED : SOFTMAX;
    bool forward = nest->prim == CORE_log_softmax || nest->prim == CORE_logsumexp ||
                   nest->prim == CORE_cross_entropy;
    return forward ? ROW : ROW_VJP;
}

static Kind kind_of(const RlzNest *nest) {
    switch (nest->kind) {
    case RLZ_CONTRACTION:
        return contraction_kind(nest);
    case RLZ_ROW:
        return row_kind(nest);
    case RLZ_REDUCTION:
        return REDUCTION;
    case RLZ_GROUP:
        return GROUP;
    case RLZ_INDEXED:
        return INDEXED;
    default:
        return PERMUTE;
    }
}

// Mixed where the reals in memory are of several types, or sums are wider than they.
static Type type_of(const RlzNest *nest) {
    static const Type types[] = {[F32] = IN_F32, [F64] = IN_F64, [BF16] = IN_BF16};
    const RlzOperand *first = NULL;
    bool same = true;
    for (uint32_t i = 0; i <= nest->inputs; i++) {
        const RlzOperand *operand = i < nest->inputs ? &nest->input[i] : &nest->output;
        if (operand->source != RLZ_MEMORY || !dtype_is_real(operand->type))
            continue;
        same = same && (!first || operand->type == first->type);
        first = operand;
    }
    if (!first)
        return nest->arithmetic == F64 ? IN_F64 : IN_F32;
    same = same && nest->accumulate == dtype_arithmetic(first->type) &&
           nest->arithmetic == nest->accumulate;
    return same ? types[first->type] : MIXED;
}

// ---- counting -----------------------------------------------------------------------------------

static Row *row_of(ExactCover *cover, RlzDecision decision, uint32_t value) {
    uint32_t key[2] = {decision, value};
    bool fresh;
    uint32_t *slot = map_slot(cover->by_value, key, sizeof key, &fresh);
    if (fresh) {
        *slot = cover->rows.count;
        vec_push(cover->arena, &cover->rows, ((Row){.decision = decision, .value = value}));
    }
    return &cover->rows.at[*slot];
}

// A row for each value of each domain, whether it occurs or not.
ExactCover *exact_cover_new(Arena *arena) {
    ExactCover *cover = arena_new_of(arena, ExactCover);
    cover->arena = arena;
    cover->by_value = map_new(arena);
    for (RlzDecision d = 0; d < RLZ_DECISION_COUNT; d++) {
        RlzWord words[RLZ_WORDS_MAX], columns[RLZ_WORDS_MAX];
        uint32_t count = rlz_decision_words(d, false, words);
        uint32_t widths = rlz_decision_words(d, true, columns);
        if (d == RLZ_DECISION_TILE)
            row_of(cover, d, rlz_pair(1, 1));
        for (uint32_t i = 0; i < count; i++)
            if (d != RLZ_DECISION_TILE)
                row_of(cover, d, d == RLZ_DECISION_SPLIT ? RLZ_NO_SPLIT : words[i].value);
            else
                for (uint32_t j = 0; j < widths; j++)
                    row_of(cover, d, rlz_pair(words[i].value, columns[j].value));
    }
    return cover;
}

void exact_cover_add(ExactCover *cover, const RlzNest *nest, const ExactPoint *point) {
    Kind kind = kind_of(nest);
    Type type = type_of(nest);
    for (RlzDecision d = 0; d < RLZ_DECISION_COUNT; d++)
        if (rlz_decision_applies(d, nest, &point->layout))
            row_of(cover, d, rlz_layout_get(&point->layout, d))->count[kind][type]++;
}

// ---- text ---------------------------------------------------------------------------------------

static int in_order(const void *a, const void *b) {
    const Row *left = a, *right = b;
    return left->decision != right->decision ? (int)left->decision - (int)right->decision
           : left->value == right->value     ? 0
           : (uint32_t)(left->value + 1) < (uint32_t)(right->value + 1) ? -1
                                                                        : 1;
}

// Rows by decision and value; no split, the greatest number, first.
static Row *sorted(const ExactCover *cover, Arena *arena) {
    Row *rows = arena_copy(arena, cover->rows.at, cover->rows.count * sizeof *rows);
    qsort(rows, cover->rows.count, sizeof *rows, in_order);
    return rows;
}

static uint32_t of_kind(const Row *row, Kind kind) {
    uint32_t count = 0;
    for (Type t = 0; t < TYPES; t++)
        count += row->count[kind][t];
    return count;
}

static uint32_t of_type(const Row *row, Type type) {
    uint32_t count = 0;
    for (Kind k = 0; k < KINDS; k++)
        count += row->count[k][type];
    return count;
}

static void put_count(StrBuf *buf, uint32_t count) {
    if (count)
        buf_format(buf, " %9u", count);
    else
        buf_text(buf, "         .");
}

Str exact_cover_text(const ExactCover *cover, Arena *arena) {
    StrBuf buf = {.arena = arena};
    const Row *rows = sorted(cover, arena);
    buf_format(&buf, "%-36s", "kernels");
    for (Kind k = 0; k < KINDS; k++)
        buf_format(&buf, " %9s", kind_text[k]);
    for (Type t = 0; t < TYPES; t++)
        buf_format(&buf, " %9s", type_text[t]);
    for (uint32_t i = 0; i < cover->rows.count; i++) {
        const Row *row = &rows[i];
        buf_format(&buf, "\n%-10s%-26s", rlz_decisions[row->decision].text.at,
                   rlz_decision_value_text(row->decision, row->value, arena).at);
        for (Kind k = 0; k < KINDS; k++)
            put_count(&buf, of_kind(row, k));
        for (Type t = 0; t < TYPES; t++)
            put_count(&buf, of_type(row, t));
    }
    buf_char(&buf, '\n');
    return buf_str(&buf);
}

void exact_cover_write(const ExactCover *cover, Arena *arena, const char *path) {
    FILE *out = fopen(path, "w");
    if (!out) {
        printf("%s cannot be written\n", path);
        return;
    }
    const Row *rows = sorted(cover, arena);
    fprintf(out, "decision\tvalue\tnest\ttype\tkernels\n");
    for (uint32_t i = 0; i < cover->rows.count; i++)
        for (Kind k = 0; k < KINDS; k++)
            for (Type t = 0; t < TYPES; t++)
                fprintf(out, "%s\t%s\t%s\t%s\t%u\n", rlz_decisions[rows[i].decision].text.at,
                        rlz_decision_value_text(rows[i].decision, rows[i].value, arena).at,
                        kind_text[k], type_text[t], rows[i].count[k][t]);
    fclose(out);
}
