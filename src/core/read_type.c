// Reading extents, types, trees and scalars of Core's text.
#include "core/reader.h"

bool read_deeper(Reader *r) {
    if (r->failed || ++r->depth <= READ_DEPTH_MAX)
        return !r->failed;
    read_fail(r, "this is nested too deeply");
    return false;
}

// ---- extents --------------------------------------------------------------------------------

static DimId find_dim(const Reader *r, Name name) {
    const ExtentTable *extents = r->program->extents;
    for (uint32_t i = 0; i < r->scope.count; i++)
        if (extent_dim_get(extents, r->scope.at[i])->name == name)
            return r->scope.at[i];
    for (DimId dim = 1; dim <= extent_dim_count(extents); dim++)
        if (extent_dim_get(extents, dim)->global && extent_dim_get(extents, dim)->name == name)
            return dim;
    return 0;
}

static void unknown_dim(Reader *r, Str word) {
    const ExtentTable *extents = r->program->extents;
    Vec(Str) candidates = {0};
    for (DimId dim = 1; dim <= extent_dim_count(extents); dim++)
        vec_push(r->context->arena, &candidates,
                 name_str(r->context->names, extent_dim_get(extents, dim)->name));
    read_unknown(r, "dimension", word, candidates.at, candidates.count);
}

static Extent read_factor(Reader *r, bool negative) {
    ExtentTable *extents = r->program->extents;
    Extent factor = EXTENT_NONE;
    if (read_peek(r, 0)->kind == SCAN_NUMBER) {
        uint64_t limit = (uint64_t)INT64_MAX + negative;
        uint64_t value = read_number(r, "an extent", limit);
        return extent_int(extents, negative ? (int64_t)(0 - value) : (int64_t)value);
    }
    const ScanToken *token = read_peek(r, 0);
    DimId dim = token->kind == SCAN_WORD ? find_dim(r, name_of(r->context->names, token->text)) : 0;
    if (!dim && token->kind == SCAN_WORD) {
        unknown_dim(r, token->text);
    } else if (!dim) {
        read_fail(r, "expected an extent");
    } else {
        r->at++;
        factor = extent_dim(extents, dim);
        if (negative)
            factor = extent_sub(extents, extent_int(extents, 0), factor);
    }
    return factor;
}

Extent read_extent(Reader *r) {
    ExtentTable *extents = r->program->extents;
    Extent sum = extent_int(extents, 0);
    bool negative = read_take(r, "-");
    do {
        Extent term = read_factor(r, negative);
        while (!r->failed && read_take(r, "*"))
            term = extent_mul(extents, term, read_factor(r, false));
        if (r->failed)
            return extent_int(extents, 0);
        sum = extent_add(extents, sum, term);
        if (sum == EXTENT_NONE) {
            read_fail(r, "an extent overflows");
            return extent_int(extents, 0);
        }
        negative = read_is(r, "-");
    } while (!read_peek(r, 0)->begins && (read_take(r, "+") || read_take(r, "-")));
    return sum;
}

// ---- types ----------------------------------------------------------------------------------

uint32_t read_axes(Reader *r, CoreAxis axes[2 * RANK_MAX]) {
    uint32_t rank = 0;
    read_expect(r, "[");
    if (read_take(r, "]"))
        return 0;
    do {
        if (rank == 2 * RANK_MAX) {
            read_fail(r, "a type has at most %d axes", RANK_MAX);
            return 0;
        }
        CoreAxis axis = {0};
        if (read_peek(r, 0)->kind == SCAN_WORD && str_is(read_peek(r, 1)->text, ":") &&
            !read_is(r, "...")) {
            axis.name = read_name(r, "an axis");
            read_expect(r, ":");
        }
        axis.extent = read_take(r, "...") ? (Extent)EXTENT_PACK : read_extent(r);
        axes[rank++] = axis;
    } while (!r->failed && read_take(r, ","));
    read_expect(r, "]");
    return rank;
}

static CoreTypeId read_tuple(Reader *r) {
    Vec(CoreTypeId) parts = {0};
    read_expect(r, "(");
    while (!r->failed && !read_is(r, ")")) {
        vec_push(r->program->arena, &parts, read_type(r));
        if (!read_take(r, ","))
            break;
    }
    read_expect(r, ")");
    return core_type_tuple(r->program, parts.count, parts.at);
}

CoreTypeId read_type(Reader *r) {
    CoreAxis axes[2 * RANK_MAX];
    uint32_t rank = 0;
    CoreTypeId type = core_type_real(r->program, 0, NULL);
    if (!read_deeper(r))
        return type;
    if (read_take(r, "idx")) {
        read_expect(r, "[");
        Extent bound = read_extent(r);
        read_expect(r, "]");
        if (read_is(r, "["))
            rank = read_axes(r, axes);
        if (!r->failed)
            type = core_type_idx(r->program, bound, rank, axes);
    } else if (read_take(r, "params")) {
        CoreTree tree = read_tree(r);
        if (!r->failed)
            type = core_type_params(r->program, tree);
    } else if (read_is(r, "(")) {
        type = read_tuple(r);
    } else if (read_take(r, "ℝ")) {
        if (read_is(r, "["))
            rank = read_axes(r, axes);
        if (!r->failed)
            type = core_type_real(r->program, rank, axes);
    } else {
        read_fail(r, "expected a type: ℝ, idx, params or a tuple");
    }
    r->depth--;
    return type;
}

// ---- trees ----------------------------------------------------------------------------------

static CoreTree read_sequence(Reader *r) {
    Vec(CoreTree) items = {0};
    read_expect(r, "[");
    while (!r->failed && !read_is(r, "]")) {
        CoreTree item = read_tree(r);
        uint64_t count = read_take(r, "^") ? read_number(r, "a count", READ_ITEMS_MAX) : 1;
        for (uint64_t i = 0; !r->failed && i < count; i++)
            vec_push(r->program->arena, &items, item);
        if (items.count > READ_ITEMS_MAX)
            read_fail(r, "a sequence has at most %d items", READ_ITEMS_MAX);
        if (!read_take(r, ","))
            break;
    }
    read_expect(r, "]");
    return r->failed ? 0 : core_tree_sequence(r->program, items.count, items.at);
}

static CoreModuleId find_module(Reader *r, Str word) {
    Vec(Str) candidates = {0};
    for (CoreModuleId id = 1; id < r->program->modules.count; id++) {
        Str name = name_str(r->context->names, r->program->modules.at[id].name);
        if (str_equal(name, word))
            return id;
        vec_push(r->context->arena, &candidates, name);
    }
    read_unknown(r, "module", word, candidates.at, candidates.count);
    return 0;
}

CoreTree read_tree(Reader *r) {
    if (!read_deeper(r))
        return 0;
    CoreTree tree = 0;
    if (read_is(r, "[")) {
        tree = read_sequence(r);
    } else if (read_peek(r, 0)->kind != SCAN_WORD) {
        read_fail(r, "expected a module");
    } else {
        Vec(Extent) dims = {0};
        CoreModuleId module = find_module(r, read_peek(r, 0)->text);
        r->at += module != 0;
        bool arguments = module && !read_peek(r, 1)->begins;
        if (arguments && read_take(r, "{")) {
            do
                vec_push(r->program->arena, &dims, read_extent(r));
            while (!r->failed && read_take(r, ","));
            read_expect(r, "}");
        }
        if (!r->failed)
            tree = core_tree_module(r->program, module, dims.count, dims.at);
    }
    r->depth--;
    return tree;
}

// ---- scalars --------------------------------------------------------------------------------

static CoreScalar checked(Reader *r, CoreScalar scalar) {
    if (!scalar && !r->failed)
        read_fail(r, "this scalar has no exact value");
    return scalar;
}

// "3", "-1/3", "0.5": the sign and the slash stand without spaces.
static CoreScalar read_rational(Reader *r, bool negative) {
    Arena *arena = r->program->arena;
    const ScanToken *number = read_peek(r, 0), *slash = read_peek(r, 1), *below = read_peek(r, 2);
    Str text = number->text;
    bool fraction = str_is(slash->text, "/") && below->kind == SCAN_NUMBER &&
                    slash->offset == number->offset + number->text.size &&
                    below->offset == slash->offset + 1;
    if (fraction)
        text = str_format(arena, "%s/%s", text.at, below->text.at);
    if (negative)
        text = str_format(arena, "-%s", text.at);
    const Rational *value = rational_of_text(arena, text);
    if (!value || !rational_size_ok(value)) {
        read_fail(r, "`%s` is no number", text.at);
        return 0;
    }
    r->at += fraction ? 3 : 1;
    return core_scalar_rational(r->program, value);
}

static CoreScalar read_function(Reader *r) {
    Str word = read_peek(r, 0)->text;
    Str names[MTH_FUNCTION_COUNT];
    uint32_t function = MTH_FUNCTION_COUNT;
    for (uint32_t i = 0; i < MTH_FUNCTION_COUNT; i++) {
        names[i] = str_of(mth_function_text((MthFunction)i));
        if (str_equal(names[i], word))
            function = i;
    }
    if (function == MTH_FUNCTION_COUNT) {
        read_unknown(r, "function", word, names, MTH_FUNCTION_COUNT);
        return 0;
    }
    uint32_t arity = mth_function_arity((MthFunction)function);
    if (arity > 2 || function == MTH_pow) {
        read_fail(r, "`%s` is no function of scalars", word.at);
        return 0;
    }
    r->at++;
    read_expect(r, "(");
    CoreScalar a = read_scalar(r), b = 0;
    if (arity == 2) {
        read_expect(r, ",");
        b = read_scalar(r);
    }
    read_expect(r, ")");
    return r->failed ? 0
                     : checked(r, core_scalar_apply(r->program, (MthFunction)function, 0, a, b));
}

static CoreScalar read_primary(Reader *r) {
    if (read_take(r, "(")) {
        CoreScalar inner = read_scalar(r);
        read_expect(r, ")");
        return inner;
    }
    if (read_take(r, "@")) {
        Name name = read_name(r, "a hyperparameter");
        return name ? core_scalar_hyper(r->program, name) : 0;
    }
    if (read_peek(r, 0)->kind == SCAN_NUMBER)
        return read_rational(r, false);
    if (read_is(r, "-") && read_peek(r, 1)->kind == SCAN_NUMBER) {
        r->at++;
        return read_rational(r, true);
    }
    bool bracket = read_take(r, "[");
    if (!bracket && read_peek(r, 0)->kind == SCAN_WORD && str_is(read_peek(r, 1)->text, "("))
        return read_function(r);
    Extent extent = bracket ? read_extent(r) : read_factor(r, false);
    if (bracket)
        read_expect(r, "]");
    return r->failed ? 0 : core_scalar_extent(r->program, extent);
}

static CoreScalar combine(Reader *r, char sign, CoreScalar a, CoreScalar b) {
    MthFunction function = sign == '+'   ? MTH_add
                           : sign == '-' ? MTH_sub
                           : sign == '*' ? MTH_mul
                                         : MTH_div;
    return checked(r, sign == '^' ? core_scalar_power(r->program, a, b)
                                  : core_scalar_apply(r->program, function, 0, a, b));
}

CoreScalar read_scalar(Reader *r) {
    if (!read_deeper(r))
        return 0;
    CoreScalar left = read_primary(r);
    const ScanToken *token = read_peek(r, 0);
    bool infix = token->kind == SCAN_SIGN && !token->begins && token->text.size == 1 &&
                 strchr("+-*/^", token->text.at[0]);
    if (!r->failed && infix) {
        r->at++;
        CoreScalar right = read_primary(r);
        if (!r->failed)
            left = combine(r, token->text.at[0], left, right);
    }
    r->depth--;
    return left;
}
