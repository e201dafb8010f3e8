// Reading realizations: the three uniform ones and JSON records, strictly.
#include "realize/realization.h"
#include "realize/json.h"

typedef struct Reader {
    Context *context;
    Arena *arena;
    RlzRealization *out;
    const RlzJson *json;
    bool has_default, has_params, has_state, failed;
} Reader;

static const Str type_names[] = {{"f64", 3}, {"f32", 3}, {"bf16", 4}};

static bool real_type(Str text, DType *type) {
    for (uint32_t i = 0; i < COUNT_OF(type_names); i++) {
        if (str_equal(text, type_names[i])) {
            *type = (DType)i;
            return true;
        }
    }
    return false;
}
_Static_assert(F64 == 0 && F32 == 1 && BF16 == 2, "type_names is indexed by DType");

static Diag *refuse(Reader *r, Span span, Str message) {
    r->failed = true;
    return diag(&r->context->diags, E7001, span, message.at);
}

static void help_spelling(Diag *made, Arena *arena, Str word, const Str *legal, uint32_t count) {
    StrBuf buf = {.arena = arena};
    for (uint32_t i = 0; i < count; i++)
        buf_format(&buf, "%s%s", i ? ", " : "", legal[i].at);
    diag_note(made, "expected one of: %s", buf_str(&buf).at);
    Str near = nearest_spelling(arena, word, legal, count);
    if (near.size)
        diag_help(made, "did you mean `%s`?", near.at);
}

// One of `legal`; its number, or `count` with a diagnostic.
static uint32_t choice(Reader *r, const RlzMember *member, const Str *legal, uint32_t count) {
    Str text = STR("");
    if (json_is_string(member->value))
        text =
            str_copy(r->arena, json_string_value(member->value), json_string_length(member->value));
    for (uint32_t i = 0; i < count; i++)
        if (json_is_string(member->value) && str_equal(text, legal[i]))
            return i;
    Diag *made =
        refuse(r, member->value_at, str_format(r->arena, "`%s` has no such value", member->key.at));
    help_spelling(made, r->arena, text, legal, count);
    return count;
}

static void type_choice(Reader *r, const RlzMember *member, DType *type) {
    uint32_t chosen = choice(r, member, type_names, COUNT_OF(type_names));
    if (chosen < COUNT_OF(type_names))
        *type = (DType)chosen;
}

static void read_sites(Reader *r, const RlzMember *member) {
    if (!json_is_object(member->value)) {
        refuse(r, member->value_at, STR("`sites` is an object from sites to types"));
        return;
    }
    RlzMember *site;
    uint32_t count = rlz_json_members(r->context, r->arena, r->json, member->value,
                                      member->value_at.begin, &site);
    for (uint32_t i = 0; i < count; i++) {
        RlzSite made = {.site = site[i].key, .span = site[i].key_at};
        type_choice(r, &site[i], &made.type);
        vec_push(r->arena, &r->out->sites, made);
    }
}

static void read_gap(Reader *r, const RlzMember *member) {
    double gap = json_number_value(member->value);
    if (json_is_number(member->value) && gap >= 0)
        r->out->gap = gap;
    else
        refuse(r, member->value_at, STR("`gap` is the measured error, a number of at least 0"));
}

static void read_name(Reader *r, const RlzMember *member) {
    if (json_is_string(member->value) && json_string_length(member->value))
        r->out->name =
            str_copy(r->arena, json_string_value(member->value), json_string_length(member->value));
    else
        refuse(r, member->value_at, STR("`name` is a string"));
}

static void read_default(Reader *r, const RlzMember *member) {
    r->has_default = true;
    type_choice(r, member, &r->out->uniform);
}

static void read_params(Reader *r, const RlzMember *member) {
    r->has_params = true;
    type_choice(r, member, &r->out->params);
}

static void read_state(Reader *r, const RlzMember *member) {
    r->has_state = true;
    type_choice(r, member, &r->out->state);
}

static void read_product(Reader *r, const RlzMember *member) {
    static const Str legal[] = {{"fma", 3}, {"mul-add", 7}};
    r->out->multiply_add = choice(r, member, legal, COUNT_OF(legal)) == 1;
}

static void read_reduce(Reader *r, const RlzMember *member) {
    static const Str legal[] = {{"sequential", 10}, {"stripes16", 9}};
    if (choice(r, member, legal, COUNT_OF(legal)) == 1)
        r->out->reduce = CORE_REDUCE_STRIPES16;
}

static void read_accumulate(Reader *r, const RlzMember *member) {
    r->out->has_accumulate = true;
    type_choice(r, member, &r->out->accumulate);
}

static void read_inline(Reader *r, const RlzMember *member) {
    if (!json_is_false(member->value))
        refuse(r, member->value_at, STR("`inline` can only be false: calls stay calls"));
}

static const Str key_names[] = {{"name", 4},   {"default", 7}, {"params", 6}, {"state", 5},
                                {"sites", 5},  {"product", 7}, {"reduce", 6}, {"accumulate", 10},
                                {"inline", 6}, {"gap", 3}};
static void (*const key_readers[])(Reader *, const RlzMember *) = {
    read_name,    read_default, read_params,     read_state,  read_sites,
    read_product, read_reduce,  read_accumulate, read_inline, read_gap};
_Static_assert(COUNT_OF(key_names) == COUNT_OF(key_readers), "one reader a key");

static void read_member(Reader *r, const RlzMember *member) {
    for (uint32_t i = 0; i < COUNT_OF(key_names); i++) {
        if (str_equal(member->key, key_names[i])) {
            key_readers[i](r, member);
            return;
        }
    }
    Str message = str_format(r->arena, "no key `%s` in a record", member->key.at);
    help_spelling(refuse(r, member->key_at, message), r->arena, member->key, key_names,
                  COUNT_OF(key_names));
}

static void fill_defaults(Reader *r) {
    RlzRealization *out = r->out;
    DType stored = out->uniform == BF16 ? F32 : out->uniform;
    if (!r->has_params)
        out->params = stored;
    if (!r->has_state)
        out->state = stored;
}

static void read_record(Reader *r, json_t *record, uint32_t begin) {
    r->out->source = r->json->source;
    RlzMember *member;
    uint32_t count = rlz_json_members(r->context, r->arena, r->json, record, begin, &member);
    for (uint32_t i = 0; i < count; i++)
        read_member(r, &member[i]);
    if (!r->has_default)
        refuse(r, (Span){r->json->source, begin, begin + 1},
               STR("the record has no `default` type"));
}

static void read_file(Reader *r, Str path) {
    Str error;
    Span where;
    RlzJson json;
    if (!rlz_json_read(r->context, r->arena, path.at, &json, &error, &where)) {
        refuse(r, where, error);
        return;
    }
    r->json = &json;
    read_record(r, json.root, json.begin);
    rlz_json_free(&json);
}

// A name or "@FILE", from the command line or at a place in a plan.
static void read_text(Reader *r, Str text, Span span) {
    r->out->name = str_copy(r->arena, text.at, text.size);
    if (text.size > 1 && text.at[0] == '@') {
        read_file(r, str_copy(r->arena, text.at + 1, text.size - 1));
    } else if (!real_type(text, &r->out->uniform)) {
        Diag *made =
            refuse(r, span, str_format(r->arena, "`%s` is not a realization", r->out->name.at));
        static const Str legal[] = {{"f64", 3}, {"f32", 3}, {"bf16", 4}, {"@FILE", 5}};
        help_spelling(made, r->arena, text, legal, COUNT_OF(legal));
    }
}

static Reader reader(Context *context, Arena *arena) {
    return (Reader){.context = context, .arena = arena, .out = arena_new_of(arena, RlzRealization)};
}

RlzRealization *rlz_realization_read(Context *context, Arena *arena, Str text) {
    Reader r = reader(context, arena);
    read_text(&r, text, (Span){0});
    fill_defaults(&r);
    return r.failed ? NULL : r.out;
}

RlzRealization *rlz_realization_of(Context *context, Arena *arena, const RlzJson *json,
                                   const RlzMember *member) {
    Reader r = reader(context, arena);
    r.json = json;
    r.out->name = STR("record");
    if (json_is_object(member->value))
        read_record(&r, member->value, member->value_at.begin);
    else if (json_is_string(member->value))
        read_text(&r, str_of(json_string_value(member->value)), member->value_at);
    else
        refuse(&r, member->value_at, STR("`realization` is a name, \"@FILE\" or a record"));
    fill_defaults(&r);
    return r.failed ? NULL : r.out;
}

bool rlz_realization_lowers(Context *context, const RlzRealization *realization) {
    if (!realization->has_accumulate)
        return true;
    bool same = realization->accumulate == dtype_arithmetic(realization->uniform);
    for (uint32_t i = 0; i < realization->sites.count; i++)
        same = same && realization->accumulate == dtype_arithmetic(realization->sites.at[i].type);
    if (!same)
        diag(&context->diags, E7002, ((Span){0}),
             "kernels accumulate in the arithmetic type; only the reference evaluator (--backend "
             "ref) runs this realization's `accumulate`");
    return same;
}
