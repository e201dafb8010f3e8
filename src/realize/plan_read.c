// Reading plans: JSON to stated decisions, every value in its domain.
#include "realize/json.h"
#include "realize/plan.h"
#include "realize/sites.h"

typedef struct Reader {
    Context *context;
    Arena *arena;
    RlzPlan *plan;
    RlzJson json;
    bool failed;
} Reader;

static Diag *refuse(Reader *r, Span span, Str message) {
    r->failed = true;
    return diag(&r->context->diags, E7002, span, message.at);
}

static void help_key(Reader *r, const RlzMember *member, const char *of, const Str *legal,
                     uint32_t count) {
    Diag *made =
        refuse(r, member->key_at, str_format(r->arena, "no key `%s` in %s", member->key.at, of));
    StrBuf buf = {.arena = r->arena};
    for (uint32_t i = 0; i < count; i++)
        buf_format(&buf, "%s%s", i ? ", " : "", legal[i].at);
    diag_note(made, "expected one of: %s", buf_str(&buf).at);
    Str near = nearest_spelling(r->arena, member->key, legal, count);
    if (near.size)
        diag_help(made, "did you mean `%s`?", near.at);
}

static uint32_t members_of(Reader *r, const RlzMember *member, RlzMember **members) {
    return rlz_json_members(r->context, r->arena, &r->json, member->value, member->value_at.begin,
                            members);
}

// ---- values of decisions ------------------------------------------------------------------------

static bool word_is(const RlzWord *word, const json_t *value) {
    if (json_is_integer(value))
        return word->text.at[0] >= '0' && word->text.at[0] <= '9' &&
               json_integer_value(value) == word->value;
    if (json_is_boolean(value))
        return str_is(word->text, json_is_true(value) ? "true" : "false");
    return json_is_string(value) && word->text.at[0] > '9' &&
           str_is(word->text, json_string_value(value)) && !str_is(word->text, "true") &&
           !str_is(word->text, "false");
}

static bool word_value(RlzDecision decision, bool columns, const json_t *json, uint32_t *value) {
    RlzWord words[RLZ_WORDS_MAX];
    uint32_t count = rlz_decision_words(decision, columns, words);
    for (uint32_t i = 0; i < count; i++)
        if (word_is(&words[i], json)) {
            *value = words[i].value;
            return true;
        }
    return false;
}

static bool tile_value(const json_t *json, uint32_t *value) {
    if (!json_is_array(json) || json_array_size(json) != 2)
        return false;
    json_t *rows = json_array_get(json, 0), *columns = json_array_get(json, 1);
    uint32_t m, n;
    bool fits = word_value(RLZ_DECISION_TILE, false, rows, &m) &&
                word_value(RLZ_DECISION_TILE, true, columns, &n);
    if (fits)
        *value = rlz_pair(m, n);
    if (!fits && json_is_integer(rows) && json_is_integer(columns)) {
        fits = json_integer_value(rows) == 1 && json_integer_value(columns) == 1;
        *value = rlz_pair(1, 1);
    }
    return fits;
}

static bool workers_value(const json_t *json, uint32_t *workers) {
    if (json_is_string(json)) {
        bool all = strcmp(json_string_value(json), "all") == 0;
        *workers = all ? RLZ_ALL_WORKERS : RLZ_HALF_THE_WORKERS;
        return all || strcmp(json_string_value(json), "half") == 0;
    }
    *workers = (uint32_t)json_integer_value(json);
    return json_is_integer(json) && json_integer_value(json) >= 1 &&
           json_integer_value(json) <= RLZ_WORKERS_MAX;
}

static bool split_value(Reader *r, const RlzMember *member, uint32_t *value) {
    if (!json_is_object(member->value)) {
        *value = RLZ_NO_SPLIT;
        uint32_t none;
        return word_value(RLZ_DECISION_SPLIT, false, member->value, &none);
    }
    static const Str legal[] = {{"depth", 5}, {"workers", 7}};
    RlzMember *part;
    uint32_t count = members_of(r, member, &part), depth = 0, workers = 0, given = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (str_equal(part[i].key, legal[0])) {
            json_int_t number = json_integer_value(part[i].value);
            if (!json_is_integer(part[i].value) || number < 0 || number > RLZ_DEPTH_MAX)
                return false;
            depth = (uint32_t)number;
            given++;
        } else if (str_equal(part[i].key, legal[1])) {
            if (!workers_value(part[i].value, &workers))
                return false;
            given++;
        } else {
            help_key(r, &part[i], "a split", legal, COUNT_OF(legal));
            return true;
        }
    }
    *value = rlz_pair(depth, workers);
    return given == 2;
}

static void read_value(Reader *r, RlzStated *stated, RlzDecision decision,
                       const RlzMember *member) {
    uint32_t *value = &stated->value[decision];
    bool fits = decision == RLZ_DECISION_TILE ? tile_value(member->value, value)
                : decision == RLZ_DECISION_SPLIT
                    ? split_value(r, member, value)
                    : word_value(decision, false, member->value, value);
    stated->decisions |= 1u << decision;
    stated->at[decision] = member->value_at;
    if (fits)
        return;
    RlzTarget target = r->plan->target ? r->plan->target : 512;
    Diag *made = refuse(r, member->value_at,
                        str_format(r->arena, "condition 2: `%s` of `%s` has no such value",
                                   member->key.at, stated->key.at));
    diag_note(made, "legal on target %u: %s", target,
              rlz_decision_legal(decision, target, r->arena).at);
}

// ---- nests --------------------------------------------------------------------------------------

static void read_decision(Reader *r, RlzStated *stated, const RlzMember *member) {
    Str legal[RLZ_DECISION_COUNT];
    for (RlzDecision d = 0; d < RLZ_DECISION_COUNT; d++) {
        legal[d] = rlz_decisions[d].text;
        if (str_equal(member->key, legal[d])) {
            read_value(r, stated, d, member);
            return;
        }
    }
    help_key(r, member, "a layout", legal, RLZ_DECISION_COUNT);
}

static void read_nest(Reader *r, const RlzMember *member) {
    RlzStated stated = {.key = member->key, .span = member->key_at};
    const char *shape = strrchr(member->key.at, '@');
    if (shape)
        stated.shape = str_copy(r->arena, shape + 1, strlen(shape + 1));
    if (shape && strspn(shape + 1, "0123456789x") != stated.shape.size)
        stated.shape.size = 0;
    if (shape && !stated.shape.size)
        refuse(r, member->key_at,
               STR("condition 1: behind the @ stands a shape, as in `loss/%3@16x64`"));
    if (!json_is_object(member->value)) {
        refuse(r, member->value_at,
               str_format(r->arena, "the layout of `%s` is a record", member->key.at));
        return;
    }
    RlzMember *decision;
    uint32_t count = members_of(r, member, &decision);
    for (uint32_t i = 0; i < count; i++)
        read_decision(r, &stated, &decision[i]);
    vec_push(r->arena, &r->plan->nests, stated);
}

// ---- plans --------------------------------------------------------------------------------------

static void read_realization(Reader *r, const RlzMember *member) {
    r->plan->realization = rlz_realization_of(r->context, r->arena, &r->json, member);
    r->failed = r->failed || !r->plan->realization;
}

static void read_target(Reader *r, const RlzMember *member) {
    json_int_t target = json_integer_value(member->value);
    if (json_is_integer(member->value) && (target == 128 || target == 256 || target == 512))
        r->plan->target = (RlzTarget)target;
    else
        refuse(r, member->value_at, STR("`target` is 128, 256 or 512, bits of a vector register"));
    r->plan->target_at = member->value_at;
}

static void read_profile(Reader *r, const RlzMember *member) {
    if (json_is_string(member->value))
        r->plan->profile =
            str_copy(r->arena, json_string_value(member->value), json_string_length(member->value));
    else
        refuse(r, member->value_at, STR("`profile` is the path of a machine profile"));
}

static void read_layout(Reader *r, const RlzMember *member) {
    if (!json_is_object(member->value)) {
        refuse(r, member->value_at, STR("`layout` is an object from nests to records"));
        return;
    }
    RlzMember *nest;
    uint32_t count = members_of(r, member, &nest);
    for (uint32_t i = 0; i < count; i++)
        read_nest(r, &nest[i]);
}

// What a tool says of how it made the plan.
static void read_made(Reader *r, const RlzMember *member) {
    (void)r;
    (void)member;
}

static const Str key_names[] = {
    {"target", 6}, {"realization", 11}, {"profile", 7}, {"layout", 6}, {"made", 4}};
static void (*const key_readers[])(Reader *, const RlzMember *) = {
    read_target, read_realization, read_profile, read_layout, read_made};
_Static_assert(COUNT_OF(key_names) == COUNT_OF(key_readers), "one reader a key");

static void read_members(Reader *r, uint32_t count, const RlzMember *member) {
    // In the order of key_names: messages about layouts speak of the target.
    for (uint32_t k = 0; k < COUNT_OF(key_names); k++)
        for (uint32_t i = 0; i < count; i++)
            if (str_equal(member[i].key, key_names[k]))
                key_readers[k](r, &member[i]);
    for (uint32_t i = 0; i < count; i++) {
        bool known = false;
        for (uint32_t k = 0; k < COUNT_OF(key_names); k++)
            known = known || str_equal(member[i].key, key_names[k]);
        if (!known)
            help_key(r, &member[i], "a plan", key_names, COUNT_OF(key_names));
    }
}

RlzPlan *rlz_plan_read(Context *context, Arena *arena, Str path) {
    Reader r = {.context = context, .arena = arena, .plan = arena_new_of(arena, RlzPlan)};
    r.plan->context = context;
    r.plan->arena = arena;
    r.plan->path = str_copy(arena, path.at, path.size);
    Str error;
    Span where;
    if (!rlz_json_read(context, arena, r.plan->path.at, &r.json, &error, &where)) {
        refuse(&r, where, error);
        return NULL;
    }
    RlzMember *member;
    uint32_t count = rlz_json_members(context, arena, &r.json, r.json.root, r.json.begin, &member);
    read_members(&r, count, member);
    if (!r.plan->realization && !r.failed)
        refuse(&r, (Span){r.json.source, r.json.begin, r.json.begin + 1},
               STR("the plan states no `realization`"));
    rlz_json_free(&r.json);
    return r.failed ? NULL : r.plan;
}
