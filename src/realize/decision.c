// The table of layout decisions: domains, and values of layouts by decision.
#include "realize/decision.h"

#include <stdlib.h>

const RlzDecisionInfo rlz_decisions[RLZ_DECISION_COUNT] = {
#define DECISION(name, text, nests, on128, on256, on512, otherwise, help)                          \
    [RLZ_DECISION_##                                                                               \
        name] = {{text, sizeof text - 1}, RLZ_ON_##nests, {on128, on256, on512}, otherwise, help},
#include "realize/decision.def"
#undef DECISION
};

static uint32_t sort_of_prim(CorePrim prim) {
    switch (core_prims[prim].class) {
    case CORE_CONTRACTION:
        return RLZ_ON_CONTRACTION;
    case CORE_ROW:
        return prim == CORE_softmax ? RLZ_ON_SOFTMAX : RLZ_ON_ROWS & ~RLZ_ON_SOFTMAX;
    case CORE_REDUCTION:
        return RLZ_ON_ROWS & ~RLZ_ON_SOFTMAX;
    case CORE_ELEMENTWISE:
        return RLZ_ON_GROUP;
    default:
        return RLZ_ON_EVERY & ~RLZ_ON_LANES;
    }
}

static uint32_t sort_of(CorePrim prim, bool of_tree) {
    return sort_of_prim(prim) | (of_tree ? RLZ_ON_TREE : 0);
}

bool rlz_decision_on(RlzDecision decision, CorePrim prim, bool of_tree) {
    return rlz_decisions[decision].nests & sort_of(prim, of_tree);
}

bool rlz_decision_applies(RlzDecision decision, const RlzNest *nest, const RlzLayout *layout) {
    uint32_t sort = sort_of(nest->prim, nest->of_tree);
    if (sort == RLZ_ON_CONTRACTION)
        sort = layout->row_wise ? RLZ_ON_ROW_WISE : RLZ_ON_TILED;
    return rlz_decisions[decision].nests & sort;
}

// ---- domains ------------------------------------------------------------------------------------

static bool is_number(Str word) {
    return word.at[0] >= '0' && word.at[0] <= '9';
}

// The words of a list from `at` to its end or its `x`.
static void add_words(const char *at, RlzTarget target, RlzWord *words, uint32_t *count) {
    while (*at && *at != 'x') {
        const char *end = at;
        while (*end && *end != ' ')
            end++;
        check_that(*count < RLZ_WORDS_MAX);
        RlzWord word = {.text = {at, (uint32_t)(end - at)}, .value = *count, .target = target};
        if (is_number(word.text))
            word.value = (uint32_t)strtoul(at, NULL, 10);
        words[(*count)++] = word;
        at = *end ? end + 1 : end;
    }
}

uint32_t rlz_decision_words(RlzDecision decision, bool columns, RlzWord words[RLZ_WORDS_MAX]) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < 3; i++) {
        const char *list = rlz_decisions[decision].domain[i];
        const char *second = columns ? strchr(list, 'x') : NULL;
        add_words(second ? second + 2 : list, 128u << i, words, &count);
    }
    return count;
}

static void put_word(StrBuf *buf, Str word) {
    bool plain = is_number(word) || str_is(word, "true") || str_is(word, "false");
    const char *quote = plain ? "" : "\"";
    buf_format(buf, "%s%.*s%s", quote, (int)word.size, word.at, quote);
}

static void put_words(StrBuf *buf, RlzDecision decision, bool columns, RlzTarget target) {
    RlzWord words[RLZ_WORDS_MAX];
    uint32_t count = rlz_decision_words(decision, columns, words);
    for (uint32_t i = 0, put = 0; i < count; i++) {
        if (words[i].target > target)
            continue;
        buf_text(buf, put++ ? ", " : "");
        put_word(buf, words[i].text);
    }
}

Str rlz_decision_legal(RlzDecision decision, RlzTarget target, Arena *arena) {
    StrBuf buf = {.arena = arena};
    if (decision == RLZ_DECISION_TILE)
        buf_text(&buf, "[1, 1], or [m, n] with m one of ");
    put_words(&buf, decision, false, target);
    if (decision == RLZ_DECISION_TILE) {
        buf_text(&buf, " and n one of ");
        put_words(&buf, decision, true, target);
    }
    if (decision == RLZ_DECISION_SPLIT)
        buf_text(&buf, ", { \"depth\": 0 to 2, \"workers\": a number, \"all\" or \"half\" }");
    return buf_str(&buf);
}

// ---- values -------------------------------------------------------------------------------------

static const uint8_t orders[][3] = {
    {RLZ_I, RLZ_J, RLZ_K}, {RLZ_J, RLZ_I, RLZ_K}, {RLZ_I, RLZ_J, RLZ_K}, {RLZ_I, RLZ_K, RLZ_J},
    {RLZ_J, RLZ_I, RLZ_K}, {RLZ_J, RLZ_K, RLZ_I}, {RLZ_K, RLZ_I, RLZ_J}, {RLZ_K, RLZ_J, RLZ_I}};

static uint32_t order_value(const RlzLayout *layout) {
    uint32_t first = layout->kblock ? RLZ_ORDER_IJK : 0;
    for (uint32_t i = first; i < COUNT_OF(orders); i++)
        if (memcmp(orders[i], layout->order, sizeof layout->order) == 0)
            return i;
    bug("an order that is none");
}

static uint32_t split_value(const RlzLayout *layout) {
    return layout->split_depth < 0 ? RLZ_NO_SPLIT
                                   : rlz_pair((uint32_t)layout->split_depth, layout->split_workers);
}

static void set_split(RlzLayout *layout, uint32_t value) {
    layout->split_depth = value == RLZ_NO_SPLIT ? -1 : (int32_t)(value >> 16);
    layout->split_workers = value == RLZ_NO_SPLIT ? 0 : value & 0xFFFF;
}

uint32_t rlz_layout_get(const RlzLayout *layout, RlzDecision decision) {
    switch (decision) {
    case RLZ_DECISION_FORM:
        return layout->row_wise;
    case RLZ_DECISION_TILE:
        return rlz_pair(layout->tile[0], layout->tile[1]);
    case RLZ_DECISION_KBLOCK:
        return layout->kblock;
    case RLZ_DECISION_ORDER:
        return order_value(layout);
    case RLZ_DECISION_LANES:
        return layout->lanes;
    case RLZ_DECISION_SPLIT:
        return split_value(layout);
    case RLZ_DECISION_PACK:
        return layout->pack;
    case RLZ_DECISION_PASSES:
        return layout->passes;
    case RLZ_DECISION_EPILOGUE:
        return layout->epilogue;
    case RLZ_DECISION_TAIL:
        return layout->peel;
    case RLZ_DECISION_PACK_LEFT:
        return layout->pack_left;
    case RLZ_DECISION_IBLOCK:
        return layout->iblock;
    case RLZ_DECISION_PREFETCH:
        return layout->prefetch;
    case RLZ_DECISION_UNROLL:
        return layout->unroll;
    case RLZ_DECISION_MERGE:
        return layout->merge;
    case RLZ_DECISION_ROWS:
        return layout->rows;
    case RLZ_DECISION_LEAVES:
        return layout->all_leaves;
    case RLZ_DECISION_STREAM:
        return layout->stream;
    case RLZ_DECISION_COUNT:
        break;
    }
    bug("a decision that is none: %d", (int)decision);
}

void rlz_layout_set(RlzLayout *layout, RlzDecision decision, uint32_t value) {
    switch (decision) {
    case RLZ_DECISION_FORM:
        layout->row_wise = value;
        return;
    case RLZ_DECISION_TILE:
        layout->tile[0] = value >> 16;
        layout->tile[1] = value & 0xFFFF;
        return;
    case RLZ_DECISION_KBLOCK:
        layout->kblock = value;
        return;
    case RLZ_DECISION_ORDER:
        memcpy(layout->order, orders[value], sizeof layout->order);
        return;
    case RLZ_DECISION_LANES:
        layout->lanes = value;
        return;
    case RLZ_DECISION_SPLIT:
        set_split(layout, value);
        return;
    case RLZ_DECISION_PACK:
        layout->pack = (uint8_t)value;
        return;
    case RLZ_DECISION_PASSES:
        layout->passes = value;
        return;
    case RLZ_DECISION_EPILOGUE:
        layout->epilogue = value;
        return;
    case RLZ_DECISION_TAIL:
        layout->peel = value;
        return;
    case RLZ_DECISION_PACK_LEFT:
        layout->pack_left = value;
        return;
    case RLZ_DECISION_IBLOCK:
        layout->iblock = value;
        return;
    case RLZ_DECISION_PREFETCH:
        layout->prefetch = value;
        return;
    case RLZ_DECISION_UNROLL:
        layout->unroll = value;
        return;
    case RLZ_DECISION_MERGE:
        layout->merge = value;
        return;
    case RLZ_DECISION_ROWS:
        layout->rows = value;
        return;
    case RLZ_DECISION_LEAVES:
        layout->all_leaves = value;
        return;
    case RLZ_DECISION_STREAM:
        layout->stream = value;
        return;
    case RLZ_DECISION_COUNT:
        break;
    }
    bug("a decision that is none: %d", (int)decision);
}

static Str split_text(uint32_t depth, uint32_t workers, Arena *arena) {
    const char *words = workers == RLZ_ALL_WORKERS        ? "\"all\""
                        : workers == RLZ_HALF_THE_WORKERS ? "\"half\""
                                                          : str_format(arena, "%u", workers).at;
    return str_format(arena, "{ \"depth\": %u, \"workers\": %s }", depth, words);
}

Str rlz_decision_value_text(RlzDecision decision, uint32_t value, Arena *arena) {
    if (decision == RLZ_DECISION_TILE)
        return str_format(arena, "[%u, %u]", value >> 16, value & 0xFFFF);
    if (decision == RLZ_DECISION_SPLIT && value != RLZ_NO_SPLIT)
        return split_text(value >> 16, value & 0xFFFF, arena);
    RlzWord words[RLZ_WORDS_MAX];
    uint32_t count = rlz_decision_words(decision, false, words);
    if (decision == RLZ_DECISION_SPLIT)
        value = 0;
    StrBuf buf = {.arena = arena};
    for (uint32_t i = 0; i < count; i++)
        if (words[i].value == value) {
            put_word(&buf, words[i].text);
            return buf_str(&buf);
        }
    bug("%s has no value %u", rlz_decisions[decision].text.at, value);
}
