// The table of layout decisions (decision.def) as values: domains, what a layout has decided.
#ifndef PRESK_REALIZE_DECISION_H
#define PRESK_REALIZE_DECISION_H

#include "realize/layout.h"

typedef enum RlzDecision {
#define DECISION(name, text, nests, on128, on256, on512, otherwise, help) RLZ_DECISION_##name,
#include "realize/decision.def"
#undef DECISION
    RLZ_DECISION_COUNT
} RlzDecision;
_Static_assert(RLZ_DECISION_COUNT <= 32, "sets of decisions are 32 bits");
#define RLZ_BIT(name) (1u << RLZ_DECISION_##name)

// Sets of the sorts of nests that a decision belongs to.
enum {
    RLZ_ON_TILED = 1,
    RLZ_ON_ROW_WISE = 2,
    RLZ_ON_CONTRACTION = 3,
    RLZ_ON_SOFTMAX = 4,
    RLZ_ON_ROWS = 12, // softmax among them
    RLZ_ON_GROUP = 16,
    RLZ_ON_LANES = RLZ_ON_CONTRACTION | RLZ_ON_ROWS | RLZ_ON_GROUP,
    RLZ_ON_EVERY = 63,
    RLZ_ON_TREE = 64 // beside the sort that the nest has otherwise
};

typedef struct RlzDecisionInfo {
    Str text;
    uint32_t nests;
    const char *domain[3]; // what targets 128, 256, 512 have each
    const char *otherwise, *help;
} RlzDecisionInfo;
extern const RlzDecisionInfo rlz_decisions[RLZ_DECISION_COUNT];

// Decisions that a let of this primitive has, its form being any; `of_tree`: over a parameter tree.
bool rlz_decision_on(RlzDecision decision, CorePrim prim, bool of_tree);
// Those that a nest has under a layout: a row-wise contraction has no tile.
bool rlz_decision_applies(RlzDecision decision, const RlzNest *nest, const RlzLayout *layout);

typedef struct RlzWord { // a member of a domain
    Str text;
    uint32_t value;
    RlzTarget target; // the narrowest that has it
} RlzWord;
enum { RLZ_WORDS_MAX = 16 };
// A decision's domain; of the tile its rows or its columns, of the split `none` alone.
uint32_t rlz_decision_words(RlzDecision decision, bool columns, RlzWord words[RLZ_WORDS_MAX]);
// What is legal on a target, for messages and help.
Str rlz_decision_legal(RlzDecision decision, RlzTarget target, Arena *arena);

// Values: a word's value; a tile is rlz_pair(rows, columns), a split rlz_pair(depth, workers).
enum { RLZ_ALL_WORKERS = 0xFFFF, RLZ_HALF_THE_WORKERS = 0xFFFE, RLZ_WORKERS_MAX = 4096 };
enum { RLZ_DEPTH_MAX = 2 };
static const uint32_t RLZ_NO_SPLIT = UINT32_MAX;
static inline uint32_t rlz_pair(uint32_t a, uint32_t b) {
    return a << 16 | b;
}
uint32_t rlz_layout_get(const RlzLayout *layout, RlzDecision decision);
void rlz_layout_set(RlzLayout *layout, RlzDecision decision, uint32_t value);
// A value as it stands in a plan: `[4, 16]`, `"panel"`, `{ "depth": 0, "workers": 2 }`.
Str rlz_decision_value_text(RlzDecision decision, uint32_t value, Arena *arena);

#endif
