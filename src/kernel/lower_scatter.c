// Lowering of scatter_add: rows added into a table at their indices.
//
// Each result adds its terms to +0 in increasing flat order of the indices, whatever row they go
// to, so the indices are walked as they lie and nothing is split among threads but the elements of
// a row. A block of the row's elements (the pieces) is done at a time: its column of the whole
// table is set to 0 in scratch memory, receives every index's block, and is rounded once to the
// output.
#include "kernel/lowering.h"

typedef struct Scatter {
    int64_t width; // elements of a row in the scratch table
} Scatter;

// A piece of the scratch table's row `row`.
static KrnIndex scratch_at(const Low *low, const KrnIndex *row, uint32_t piece) {
    const Scatter *scatter = low->data;
    KrnIndex index = krn_index(low->scratch, scatter->width * row->offset);
    for (uint32_t i = 0; i < row->count; i++)
        krn_index_add(&index, scatter->width * row->term[i].coefficient, row->term[i].value);
    index.offset += low->piece[piece].offset;
    return index;
}

// The row that the present index names: loaded, or a range's sum of strides.
static KrnIndex named_row(Low *low) {
    const RlzOperand *indices = &low->nest->input[1];
    int32_t vector = low->vector;
    low->vector = -1; // an index does not depend on the place in the row
    KrnIndex row = krn_index(low->scratch, 0);
    if (indices->source == RLZ_IOTA)
        row = low_address(low, low->scratch, indices->stride, 0);
    else
        krn_index_add(&row, 1, low_input(low, 1, &(LowPiece){0, 1}));
    low->vector = vector;
    return row;
}

static void add_row(Low *low, KrnValue *none) {
    (void)none;
    KrnBuilder *b = &low->b;
    KrnIndex row = named_row(low);
    for (uint32_t p = 0; p < low->pieces; p++) {
        const LowPiece *piece = &low->piece[p];
        KrnIndex index = scratch_at(low, &row, p);
        KrnValue sum = krn_load(b, &index, piece->width, 1);
        KrnValue ct = low_load(low, low->buffer[0], low->nest->input[0].stride, piece);
        sum = krn_op2(b, KRN_ADD, sum, low_float(low, ct, low->nest->arithmetic));
        krn_store(b, &index, 1, sum, false);
    }
}

// For every row of the table: `store` an element block of it.
static void for_rows(Low *low, void (*store)(Low *low, const KrnIndex *row, uint32_t piece)) {
    KrnValue loop =
        krn_loop(&low->b, 0, low->nest->output.indexed_extent, 1, KRN_WHOLE, 0, NULL, NULL);
    KrnIndex row = krn_index(low->scratch, 0);
    krn_index_add(&row, 1, loop);
    for (uint32_t p = 0; p < low->pieces; p++)
        store(low, &row, p);
    krn_end(&low->b, 0, NULL, NULL);
}

static void store_zero(Low *low, const KrnIndex *row, uint32_t piece) {
    KrnIndex index = scratch_at(low, row, piece);
    krn_store(&low->b, &index, 1,
              low_constant(low, low->nest->arithmetic, low->piece[piece].width, 0), false);
}

static void store_result(Low *low, const KrnIndex *row, uint32_t piece) {
    const RlzOperand *out = &low->nest->output;
    KrnIndex from = scratch_at(low, row, piece);
    KrnValue sum = krn_load(&low->b, &from, low->piece[piece].width, 1);
    KrnIndex to = low_address(low, low->out, out->stride, low->piece[piece].offset);
    krn_index_add(&to, out->indexed_stride, row->term[0].value);
    krn_store(&low->b, &to, low->vector < 0 ? 1 : out->stride[low->vector],
              low_float(low, sum, out->type), low->layout->stream);
}

static void scatter_body(Low *low) {
    if (low->vector >= 0)
        low_pieces(low, low->block[low->vector], low->layout->lanes);
    for_rows(low, store_zero);
    low_fold(low, RLZ_REDUCED, 0, NULL, add_row);
    for_rows(low, store_result);
}

void low_scatter(Low *low) {
    const RlzNest *nest = low->nest;
    Scatter *scatter = arena_new_of(low->arena, Scatter);
    int64_t extent = low->vector < 0 ? 1 : nest->extent[low->vector];
    scatter->width = low->layout->lanes;
    while (low->layout->lanes > 1 && scatter->width < 4 * low->layout->lanes &&
           2 * scatter->width <= extent)
        scatter->width *= 2;
    if (low->loops)
        low->loop[low->loops - 1].step = scatter->width;
    low->scratch = krn_buffer(&low->b, "table", nest->arithmetic,
                              nest->output.indexed_extent * scatter->width, 0, KRN_SCRATCH);
    low_prepare_constant(low, nest->arithmetic, 0);
    low->data = scatter;
    low->body = scatter_body;
    if (nest->output.indexed_extent > 0)
        low_run(low);
}
