// Operands of contractions: where they are, and copies of them that lie as they are read.
//
// Operand 1 is copied to [K, J], or to a panel [J / n, K, n] for tiles of n columns; operand 0 to
// [I / m, K, m] for tiles of m rows. A copy holds what the loops around it stand at, so it is as
// small as it can be without being made twice by a worker: it stands within the outer axes that its
// operand carries and within those of its block loops that come before any other operand's. Copies
// are scratch memory, so each worker has its own.
#include "kernel/contraction.h"

static KrnValue in_sum(Low *low, KrnValue value) {
    return low_float(low, value, low->nest->accumulate);
}

// Indices along an axis that a block at this level has, at most.
static int64_t block_extent(const Low *low, uint32_t axis, uint32_t level) {
    while (level-- > 0)
        if (low->loop[level].axis == axis)
            return low->loop[level].step;
    return low->nest->extent[axis];
}

static bool is_role(const Low *low, uint32_t level, RlzRole role) {
    return level < low->loops && low->nest->role[low->loop[level].axis] == role;
}

// Below the outer axes that an operand carries, and its block loops that follow them.
static uint32_t copy_level(const Low *low, uint32_t operand) {
    uint32_t level = 0;
    for (uint32_t i = 0; is_role(low, i, RLZ_OUTER); i++)
        if (low->nest->input[operand].stride[low->loop[i].axis])
            level = i + 1;
    while (is_role(low, level, operand ? RLZ_J : RLZ_I) || is_role(low, level, RLZ_K) ||
           (low->divided && (int32_t)level == low->split))
        level++;
    return level;
}

// The strides of the K axes in a copy whose innermost axis has `size` elements. Returns the size of
// all.
static int64_t stride_of_terms(const Low *low, uint32_t level, int64_t size,
                               int64_t stride[RLZ_AXES_MAX]) {
    memset(stride, 0, RLZ_AXES_MAX * sizeof *stride);
    for (uint32_t axis = low->nest->axes; axis-- > 0 && low->nest->role[axis] == RLZ_K;) {
        stride[axis] = size;
        size *= block_extent(low, axis, level);
    }
    return size;
}

// Adds the distance of `at` from `base`, which it began as.
static void add_distance(KrnIndex *index, const LowIndex *at, const LowIndex *base,
                         int64_t coefficient) {
    index->offset += coefficient * (at->offset - base->offset);
    for (uint32_t i = base->count; i < at->count; i++)
        krn_index_add(index, coefficient * at->term[i].coefficient, at->term[i].value);
}

static KrnIndex address_in(const Low *low, uint32_t buffer, const int64_t *stride,
                           const LowIndex *block) {
    KrnIndex index = krn_index(buffer, 0);
    for (uint32_t axis = 0; axis < low->nest->axes; axis++)
        add_distance(&index, &low->at[axis], &block[axis], stride[axis]);
    return index;
}

enum { LINE = 64 }; // bytes of a cache line

static int64_t line_of(DType type) {
    return LINE / (int64_t)dtype_size(type);
}

// Rows of a copy are short and far apart in memory: no processor foresees them. Fetches `count`
// elements from each of the lines that a later k begins with.
static void prefetch_row(Low *low, uint32_t operand, int64_t count) {
    enum { ROWS_AHEAD = 16 };
    const RlzOperand *from = &low->nest->input[operand];
    LowIndex *at = &low->at[low->nest->axes - 1];
    at->offset += ROWS_AHEAD;
    for (int64_t done = 0; done < count; done += line_of(from->type)) {
        KrnIndex index = low_address(low, low->buffer[operand], from->stride, 0);
        index.offset += done;
        krn_prefetch(&low->b, &index);
    }
    at->offset -= ROWS_AHEAD;
}

// ---- operand 1 ----------------------------------------------------------------------------------

// In a panel, the tile's first column stands before K and the column in the tile behind it.
static KrnIndex right_address(Low *low, const LowPiece *piece) {
    const LowContraction *c = low->data;
    KrnIndex index = address_in(low, c->right, c->right_stride, c->right_block);
    index.offset += piece->offset;
    return index;
}

KrnValue low_right(Low *low, const LowPiece *piece) {
    if (!low->layout->pack)
        return in_sum(low, low_load(low, low->buffer[1], low->nest->input[1].stride, piece));
    KrnIndex index = right_address(low, piece);
    return in_sum(low, krn_load(&low->b, &index, piece->width, 1));
}

static void copy_right(Low *low, KrnValue *none) {
    (void)none;
    const LowPiece *last = &low->piece[low->pieces - 1];
    if (low->layout->prefetch && rlz_right_along_j(low->nest))
        prefetch_row(low, 1, last->offset + last->width);
    for (uint32_t p = 0; p < low->pieces; p++) {
        KrnValue value = low_load(low, low->buffer[1], low->nest->input[1].stride, &low->piece[p]);
        KrnIndex index = right_address(low, &low->piece[p]);
        krn_store(&low->b, &index, 1, value, false);
    }
}

static void copy_right_row(Low *low, KrnValue *none) {
    low_pieces(low, 1, 1);
    low_fold(low, RLZ_J, 0, none, copy_right);
}

// Columns begin … end − 1, several at a time.
static void copy_columns(Low *low, int64_t begin, int64_t end, int64_t step) {
    const LowContraction *c = low->data;
    if (begin == end)
        return;
    LowLoop loop = low_open(low, (uint32_t)c->j, begin, end, step, KRN_WHOLE, 0, NULL);
    low_pieces(low, step, low->layout->lanes);
    low_fold(low, RLZ_K, 0, NULL, copy_right);
    low_close(low, &loop, 0, NULL);
}

static void make_right(Low *low) {
    LowContraction *c = low->data;
    memcpy(c->right_block, low->at, sizeof c->right_block);
    bool turned = low->layout->lanes > 1 && low->nest->input[1].stride[low->nest->axes - 1] == 1;
    if (low->layout->pack == RLZ_PACK_ROWS && !turned) {
        low_fold(low, RLZ_K, 0, NULL, copy_right_row);
        return;
    }
    bool panel = low->layout->pack == RLZ_PACK_PANEL;
    int64_t columns = low->block[c->j], n = panel ? low->layout->tile[1] : low->layout->lanes;
    low->turn.lanes = turned ? low->layout->lanes : 0;
    low->turn.ahead = low->layout->prefetch ? n : 0;
    copy_columns(low, 0, columns - columns % n, n);
    copy_columns(low, columns - columns % n, columns, columns % n);
    low->turn.lanes = 0;
}

static void prepare_right(Low *low) {
    LowContraction *c = low->data;
    check_that(c->j >= 0);
    c->right_level = copy_level(low, 1);
    int64_t columns = block_extent(low, (uint32_t)c->j, c->right_level), n = low->layout->tile[1];
    int64_t panels = (columns + n - 1) / n, size;
    if (low->layout->pack == RLZ_PACK_PANEL) {
        size = stride_of_terms(low, c->right_level, n, c->right_stride);
        c->right_stride[c->j] = size / n;
        size *= panels;
    } else {
        size = stride_of_terms(low, c->right_level, columns, c->right_stride);
        c->right_stride[c->j] = 1;
    }
    c->right = krn_buffer(&low->b, "pack", low->nest->input[1].type, size, 0, KRN_SCRATCH);
}

// ---- operand 0 ----------------------------------------------------------------------------------

// The present row and k; `tiles` beyond the present tile.
static KrnIndex left_address(Low *low, int64_t tiles) {
    const LowContraction *c = low->data;
    KrnIndex index = address_in(low, c->left, c->left_stride, c->left_block);
    if (c->i < 0)
        return index;
    add_distance(&index, &c->tile, &c->left_block[c->i], c->left_terms);
    index.offset += low->at[c->i].offset - c->tile.offset;
    index.offset += tiles * low->layout->tile[0] * c->left_terms;
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

// Rows that lie one after the other are copied in vectors.
static void copy_left_rows(Low *low, int64_t rows) {
    const LowContraction *c = low->data;
    const int64_t *stride = low->nest->input[0].stride;
    bool along = c->i >= 0 && stride[c->i] == 1;
    int64_t lanes = along ? low->layout->lanes : 1;
    if (along && low->layout->prefetch)
        prefetch_row(low, 0, rows);
    for (int64_t row = 0, width; row < rows; row += width) {
        for (width = lanes; width > rows - row;)
            width /= 2;
        KrnIndex from = low_address(low, low->buffer[0], stride, 0), to = left_address(low, 0);
        krn_store(&low->b, &to, 1, krn_load(&low->b, &from, (uint32_t)width, 1), false);
        if (c->i >= 0)
            low->at[c->i].offset += width;
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
    LowLoop loop = low_open(low, (uint32_t)c->i, begin, end, step, KRN_WHOLE, 0, NULL);
    c->tile = low->at[c->i];
    copy_left_terms(low, 0, step);
    low_close(low, &loop, 0, NULL);
}

static void make_left(Low *low) {
    LowContraction *c = low->data;
    memcpy(c->left_block, low->at, sizeof c->left_block);
    if (c->i < 0) {
        copy_left_terms(low, 0, 1);
        return;
    }
    int64_t rows = low->block[c->i], m = low->layout->tile[0];
    copy_left(low, 0, rows - rows % m, m);
    copy_left(low, rows - rows % m, rows, rows % m);
}

static void prepare_left(Low *low) {
    LowContraction *c = low->data;
    int64_t m = low->layout->tile[0], rows = 1;
    c->left_level = copy_level(low, 0);
    if (c->i >= 0)
        rows = block_extent(low, (uint32_t)c->i, c->left_level);
    int64_t size = stride_of_terms(low, c->left_level, m, c->left_stride);
    c->left_terms = size / m;
    size *= (rows + m - 1) / m;
    c->left = krn_buffer(&low->b, "left", low->nest->input[0].type, size, 0, KRN_SCRATCH);
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
    if (low->layout->pack && level == c->right_level)
        make_right(low);
    if (low->layout->pack_left && level == c->left_level)
        make_left(low);
}

// ---- prefetching --------------------------------------------------------------------------------

int64_t low_prefetch_line(const Low *low) {
    return line_of(low->nest->input[0].type);
}

bool low_prefetch_by_lines(const Low *low) {
    const RlzNest *nest = low->nest;
    return !low->layout->pack_left && nest->input[0].stride[nest->axes - 1] == 1;
}

static void prefetch_packed(Low *low, int64_t terms) {
    for (int64_t done = 0; done < terms * low->layout->tile[0]; done += low_prefetch_line(low)) {
        KrnIndex index = left_address(low, 1);
        index.offset += done;
        krn_prefetch(&low->b, &index);
    }
}

// One address for each cache line of the rows of a tile.
static void prefetch_rows(Low *low) {
    const LowContraction *c = low->data;
    const int64_t *stride = low->nest->input[0].stride;
    LowIndex *at = &low->at[c->i];
    int64_t offset = at->offset, m = low->layout->tile[0];
    for (int64_t row = 0; row < m; row += stride[c->i] == 1 ? low_prefetch_line(low) : 1) {
        at->offset = offset + m + row;
        KrnIndex index = low_address(low, low->buffer[0], stride, 0);
        krn_prefetch(&low->b, &index);
    }
    at->offset = offset;
}

void low_prefetch_left(Low *low, int64_t terms) {
    const LowContraction *c = low->data;
    LowIndex *k = &low->at[low->nest->axes - 1];
    if (c->i < 0)
        return;
    if (low->layout->pack_left) {
        prefetch_packed(low, terms);
        return;
    }
    for (int64_t term = 0; term < (low_prefetch_by_lines(low) ? 1 : terms); term++) {
        k->offset += term;
        prefetch_rows(low);
        k->offset -= term;
    }
}
