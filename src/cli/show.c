// What a run prints of its results: a scalar or a short vector on one line, anything larger as
// rows along the last axis, labelled by the other indices, with the middle left out.
#include "cli/execute.h"

#include <math.h>
#include <stdio.h>

enum { WHOLE = 8, BEFORE = 4, AFTER = 3, LINE = 100 };
_Static_assert(BEFORE + AFTER < WHOLE, "leaving out less than two is no gain");

// The indices of an axis (or of all rows) that are shown.
typedef struct Shown {
    int64_t extent;
    uint32_t count;
    bool cut; // a gap after BEFORE
} Shown;

static Shown shown_of(int64_t extent) {
    if (extent <= WHOLE)
        return (Shown){extent, (uint32_t)extent, false};
    return (Shown){extent, BEFORE + AFTER, true};
}

static int64_t shown_index(Shown shown, uint32_t i) {
    return shown.cut && i >= BEFORE ? shown.extent - shown.count + i : i;
}

static Str number_text(Arena *arena, DType type, double value) {
    return type == F64 ? str_of_double(arena, value) : str_of_float(arena, (float)value);
}

static Str element_text(Arena *arena, const Tensor *tensor, int64_t index) {
    return number_text(arena, tensor->type, tensor_get(tensor, index));
}

// "[2, 0]": the indices of a row on all axes but the last.
static Str row_label(Arena *arena, const Shape *shape, int64_t row) {
    StrBuf buf = {.arena = arena};
    int64_t index[RANK_MAX];
    for (uint32_t i = shape->rank - 1; i-- > 0;) {
        index[i] = row % shape->extent[i];
        row /= shape->extent[i];
    }
    for (uint32_t i = 0; i + 1 < shape->rank; i++)
        buf_format(&buf, "%s%lld", i ? ", " : "[", (long long)index[i]);
    if (shape->rank > 1)
        buf_char(&buf, ']');
    return buf_str(&buf);
}

static void print_rows(Arena *arena, const Tensor *tensor) {
    int64_t columns = tensor->shape.extent[tensor->shape.rank - 1];
    Shown row = shown_of(shape_count(&tensor->shape) / columns), column = shown_of(columns);
    Str label[WHOLE], text[WHOLE][WHOLE];
    int label_width = 0, width = 0;
    for (uint32_t r = 0; r < row.count; r++) {
        label[r] = row_label(arena, &tensor->shape, shown_index(row, r));
        label_width = MAX(label_width, (int)label[r].size);
        for (uint32_t c = 0; c < column.count; c++) {
            int64_t index = shown_index(row, r) * columns + shown_index(column, c);
            text[r][c] = element_text(arena, tensor, index);
            width = MAX(width, (int)text[r][c].size);
        }
    }
    for (uint32_t r = 0; r < row.count; r++) {
        if (row.cut && r == BEFORE)
            printf("  …\n");
        printf("  %-*s", label_width, label[r].at);
        for (uint32_t c = 0; c < column.count; c++)
            printf("%s%*s",
                   column.cut && c == BEFORE ? "  …  "
                   : c || label_width        ? "  "
                                             : "",
                   width, text[r][c].at);
        putchar('\n');
    }
}

static void print_summary(Arena *arena, const Tensor *tensor) {
    double low = INFINITY, high = -INFINITY, sum = 0;
    int64_t count = shape_count(&tensor->shape), nans = 0;
    for (int64_t i = 0; i < count; i++) {
        double value = tensor_get(tensor, i);
        low = fmin(low, value);
        high = fmax(high, value);
        sum += value;
        nans += value != value;
    }
    if (nans == count) {
        printf("  all are NaN\n");
        return;
    }
    printf("  smallest %s, largest %s, ", number_text(arena, tensor->type, low).at,
           number_text(arena, tensor->type, high).at);
    if (nans)
        printf("%lld NaN\n", (long long)nans);
    else
        printf("mean %.6g\n", sum / (double)count);
}

// The elements of a short vector with spaces before them; empty: not short.
static Str on_one_line(Arena *arena, const Tensor *tensor, size_t room) {
    StrBuf buf = {.arena = arena};
    if (tensor->shape.rank != 1 || tensor->shape.extent[0] > WHOLE)
        return STR("");
    for (int64_t i = 0; i < tensor->shape.extent[0]; i++)
        buf_format(&buf, " %s", element_text(arena, tensor, i).at);
    Str line = buf_str(&buf);
    return line.size <= room ? line : STR("");
}

// "loss.grad.0 : f32[2]"
static Str head_text(CliEntry *entry, const CliNamedTensor *named) {
    const Shape *shape = &named->tensor->shape;
    const char *function = name_c(entry->args->context->names, entry->binding->fn->name);
    StrBuf buf = {.arena = entry->args->arena};
    bool part = named->name.size && *named->name.at >= '0' && *named->name.at <= '9';
    buf_format(&buf, "%s%s%s : %s", part || !named->name.size ? function : "", part ? "." : "",
               named->name.size ? named->name.at : "", dtype_text(named->tensor->type));
    for (uint32_t i = 0; i < shape->rank; i++)
        buf_format(&buf, "%s%lld", i ? ", " : "[", (long long)shape->extent[i]);
    if (shape->rank)
        buf_char(&buf, ']');
    return buf_str(&buf);
}

static void print_tensor(Arena *arena, Str head, const Tensor *tensor) {
    const Shape *shape = &tensor->shape;
    int64_t count = shape_count(shape);
    Str line = on_one_line(arena, tensor, LINE - MIN(head.size, (uint32_t)LINE));
    if (!shape->rank) {
        printf("%s = %s\n", head.at, element_text(arena, tensor, 0).at);
    } else if (!count) {
        printf("%s, no elements\n", head.at);
    } else if (line.size) {
        printf("%s =%s\n", head.at, line.at);
    } else {
        printf("%s\n", head.at);
        print_rows(arena, tensor);
        int64_t columns = shape->extent[shape->rank - 1];
        if (columns > WHOLE || count / columns > WHOLE)
            print_summary(arena, tensor);
    }
}

// One of many: a line.
static void print_brief(Arena *arena, Str head, int width, const Tensor *tensor) {
    if (!tensor->shape.rank) {
        printf("%-*s  = %s\n", width, head.at, element_text(arena, tensor, 0).at);
    } else if (!shape_count(&tensor->shape)) {
        printf("%-*s  no elements\n", width, head.at);
    } else {
        printf("%-*s", width, head.at);
        print_summary(arena, tensor);
    }
}

void cli_print_tensors(CliEntry *entry, uint32_t count, const CliNamedTensor *tensors) {
    enum { MANY = 6, FIRST = 16, LAST = 6 };
    Arena *arena = entry->args->arena;
    Str *head = arena_array(arena, Str, count + 1);
    int width = 0;
    for (uint32_t i = 0; i < count; i++) {
        head[i] = head_text(entry, &tensors[i]);
        width = MAX(width, (int)head[i].size);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (count > FIRST + LAST + 1 && i == FIRST) {
            printf("… and %u more; -o F.safetensors writes them all\n", count - FIRST - LAST);
            i = count - LAST;
        }
        if (count <= MANY)
            print_tensor(arena, head[i], tensors[i].tensor);
        else
            print_brief(arena, head[i], width, tensors[i].tensor);
    }
}
