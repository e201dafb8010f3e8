// Operands of contractions: where they are, and copies of them that lie as they are read.
//
// Operand 1 is copied to [K, J], or to a panel [J / n, K, n] for tiles of n columns, at the level
// below the outer axes that it carries. Operand 0 is copied a block of rows at a time, to
// [rows / m, K, m] for tiles of m rows, below the block loop over I. Copies are scratch memory, so
// each worker has its own.
#include "kernel/contraction.h"

static KrnValue in_sum(Low *low, KrnValue value) {
    return low_float(low, value, low->nest->accumulate);
}

// ---- operand 1 ----------------------------------------------------------------------------------

// The address in a panel: the tile's first column times K, then [K, n].
static KrnIndex panel_address(Low *low, const LowPiece *piece) {
    const LowContraction *c = low->data;
    KrnIndex index = low_address(low, c->right, c->right_stride, 0);
    index.offset += piece->offset;
    return index;
}

KrnValue low_right(Low *low, const LowPiece *piece) {
    const LowContraction *c = low->data;
    if (low->layout->pack != RLZ_PACK_PANEL)
        return in_sum(low, low_load(low, c->right, c->right_stride, piece));
    KrnIndex index = panel_address(low, piece);
    return in_sum(low, krn_load(&low->b, &index, piece->width, 1));
}

static void copy_to_pack(Low *low, KrnValue *none) {
    (void)none;
    const LowContraction *c = low->data;
    LowPiece one = {0, 1};
    KrnValue value = low_load(low, low->buffer[1], low->nest->input[1].stride, &one);
    KrnIndex index = low_address(low, c->right, c->right_stride, 0);
    krn_store(&low->b, &index, 1, value, false);
}

static void copy_row_to_pack(Low *low, KrnValue *none) {
    low_fold(low, RLZ_J, 0, none, copy_to_pack);
}

static void copy_to_panel(Low *low, KrnValue *none) {
    (void)none;
    for (uint32_t p = 0; p < low->pieces; p++) {
        KrnValue value = low_load(low, low->buffer[1], low->nest->input[1].stride, &low->piece[p]);
        KrnIndex index = panel_address(low, &low->piece[p]);
        krn_store(&low->b, &index, 1, value, false);
    }
}

static void copy_panels(Low *low, int64_t begin, int64_t end, int64_t step) {
    const LowContraction *c = low->data;
    if (begin == end)
        return;
    LowLoop loop = low_open(low, (uint32_t)c->j, begin, end, step, KRN_WHOLE, 0, NULL);
    low_pieces(low, step, low->layout->lanes);
    low_fold(low, RLZ_K, 0, NULL, copy_to_panel);
    low_close(low, &loop, 0, NULL);
}

static void make_right(Low *low) {
    const LowContraction *c = low->data;
    if (low->layout->pack == RLZ_PACK_ROWS) {
        low_fold(low, RLZ_K, 0, NULL, copy_row_to_pack);
        return;
    }
    int64_t extent = low->nest->extent[c->j], n = low->layout->tile[1];
    if (low->layout->lanes > 1 && low->nest->input[1].stride[low->nest->axes - 1] == 1)
        low->turn.lanes = low->layout->lanes;
    copy_panels(low, 0, extent - extent % n, n);
    copy_panels(low, extent - extent % n, extent, extent % n);
    low->turn.lanes = 0;
}

static void prepare_right(Low *low) {
    LowContraction *c = low->data;
    const RlzNest *nest = low->nest;
    int64_t columns = c->j < 0 ? 1 : nest->extent[c->j], n = low->layout->tile[1];
    bool panel = low->layout->pack == RLZ_PACK_PANEL;
    check_that(!panel || c->j >= 0);
    int64_t size = panel ? n : columns;
    memset(c->right_stride, 0, sizeof c->right_stride);
    for (uint32_t axis = nest->axes; axis-- > 0 && nest->role[axis] == RLZ_K;) {
        c->right_stride[axis] = nest->extent[axis] == 1 ? 0 : size;
        size *= nest->extent[axis];
    }
    if (c->j >= 0)
        c->right_stride[c->j] = panel ? c->terms : columns == 1 ? 0 : 1;
    if (panel)
        size = (columns + n - 1) / n * n * c->terms;
    c->pack_level = 0;
    for (uint32_t axis = 0; axis < nest->axes && nest->role[axis] == RLZ_OUTER; axis++)
        if (nest->input[1].stride[axis])
            c->pack_level = axis + 1;
    c->right = krn_buffer(&low->b, "pack", nest->input[1].type, size, 0, KRN_SCRATCH);
}

// ---- operand 0 ----------------------------------------------------------------------------------

// What `at` adds to `base`, which it began as.
static void add_difference(KrnIndex *index, const LowIndex *at, const LowIndex *base,
                           int64_t coefficient) {
    index->offset += coefficient * (at->offset - base->offset);
    for (uint32_t i = base->count; i < at->count; i++)
        krn_index_add(index, coefficient * at->term[i].coefficient, at->term[i].value);
}

// The present row and k; `tiles` beyond the present tile.
static KrnIndex left_address(Low *low, int64_t tiles) {
    const LowContraction *c = low->data;
    KrnIndex index = low_address(low, c->left, c->left_stride, 0);
    if (c->i < 0)
        return index;
    const LowIndex *at = &low->at[c->i];
    add_difference(&index, &c->tile, &c->left_block, c->terms);
    index.offset += at->offset - c->tile.offset + tiles * low->layout->tile[0] * c->terms;
    return index;
}

KrnValue low_left(Low *low) {
    if (!low->layout->pack_left) {
        LowPiece one = {0, 1};
        return in_sum(low, low_load(low, low->buffer[0], low->nest->input[0].stride, &one));
    }
    KrnIndex index = left_address(low, 0);
    return in_sum(low, krn_load(&low->b, &index, 1, 1));
}

static void copy_left_rows(Low *low, int64_t rows) {
    const LowContraction *c = low->data;
    LowPiece one = {0, 1};
    for (int64_t row = 0; row < rows; row++) {
        KrnValue value = low_load(low, low->buffer[0], low->nest->input[0].stride, &one);
        KrnIndex index = left_address(low, 0);
        krn_store(&low->b, &index, 1, value, false);
        if (c->i >= 0)
            low->at[c->i].offset++;
    }
    if (c->i >= 0)
        low->at[c->i].offset -= rows;
}

// All of k that the loops at this level have before them.
static void copy_left_terms(Low *low, uint32_t axis, int64_t rows) {
    while (axis < low->nest->axes && low->nest->role[axis] != RLZ_K)
        axis++;
    if (axis == low->nest->axes) {
        copy_left_rows(low, rows);
        return;
    }
    if (low->block[axis] == 0)
        return;
    LowLoop loop = low_open(low, axis, 0, low->block[axis], 1, KRN_WHOLE, 0, NULL);
    copy_left_terms(low, axis + 1, rows);
    low_close(low, &loop, 0, NULL);
}

static void copy_left(Low *low, int64_t begin, int64_t end, int64_t step) {
    LowContraction *c = low->data;
    if (begin == end)
        return;
    uint32_t i = (uint32_t)c->i;
    LowLoop loop = low_open(low, i, begin, end, step, KRN_WHOLE, 0, NULL);
    c->tile = low->at[i];
    copy_left_terms(low, 0, step);
    low_close(low, &loop, 0, NULL);
}

static void make_left(Low *low) {
    LowContraction *c = low->data;
    if (c->i < 0) {
        copy_left_terms(low, 0, 1);
        return;
    }
    c->left_block = low->at[c->i];
    int64_t rows = low->block[c->i], m = low->layout->tile[0];
    copy_left(low, 0, rows - rows % m, m);
    copy_left(low, rows - rows % m, rows, rows % m);
}

static void prepare_left(Low *low) {
    LowContraction *c = low->data;
    const RlzNest *nest = low->nest;
    int64_t m = low->layout->tile[0], tiles = MAX(low->layout->iblock, 1), size = m;
    memset(c->left_stride, 0, sizeof c->left_stride);
    for (uint32_t axis = nest->axes; axis-- > 0 && nest->role[axis] == RLZ_K;) {
        c->left_stride[axis] = nest->extent[axis] == 1 ? 0 : size;
        size *= nest->extent[axis];
    }
    c->left_level = 0;
    for (uint32_t level = 0; level < low->loops; level++) {
        uint32_t axis = low->loop[level].axis;
        bool rows = (int32_t)axis == c->i;
        if (rows || (nest->role[axis] == RLZ_OUTER && nest->input[0].stride[axis]))
            c->left_level = level + 1;
        if (rows)
            break;
    }
    c->left = krn_buffer(&low->b, "left", nest->input[0].type, size * tiles, 0, KRN_SCRATCH);
}

// ---- both ---------------------------------------------------------------------------------------

void low_prepare_packs(Low *low) {
    if (low->layout->pack)
        prepare_right(low);
    if (low->layout->pack_left)
        prepare_left(low);
}

void low_make_packs(Low *low, uint32_t level) {
    const LowContraction *c = low->data;
    if (low->layout->pack && level == c->pack_level)
        make_right(low);
    if (low->layout->pack_left && level == c->left_level)
        make_left(low);
}

// ---- prefetching --------------------------------------------------------------------------------

enum { LINE = 64 }; // bytes

int64_t low_prefetch_line(const Low *low) {
    return LINE / (int64_t)dtype_size(low->nest->input[0].type);
}

bool low_prefetch_by_lines(const Low *low) {
    const RlzNest *nest = low->nest;
    return !low->layout->pack_left && nest->input[0].stride[nest->axes - 1] == 1;
}

// One address for each cache line of the rows of a tile.
void low_prefetch_left(Low *low) {
    const LowContraction *c = low->data;
    if (c->i < 0)
        return;
    LowIndex *at = &low->at[c->i];
    int64_t offset = at->offset, m = low->layout->tile[0];
    bool packed = low->layout->pack_left;
    int64_t step = packed || low->nest->input[0].stride[c->i] == 1 ? low_prefetch_line(low) : 1;
    for (int64_t row = 0; row < m; row += step) {
        at->offset = offset + row + (packed ? 0 : m);
        KrnIndex index = packed ? left_address(low, 1)
                                : low_address(low, low->buffer[0], low->nest->input[0].stride, 0);
        krn_prefetch(&low->b, &index);
    }
    at->offset = offset;
}
