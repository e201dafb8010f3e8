// Plans against programs and nests: what exists, what is legal, what a nest's layout is.
#include "realize/plan.h"
#include "core/launch.h"
#include "realize/dump.h"
#include "realize/epilogue.h"
#include "realize/sites.h"

// ---- targets ------------------------------------------------------------------------------------

RlzTarget rlz_plan_target(RlzPlan *plan, RlzTarget machine, bool retarget) {
    plan->retarget = retarget;
    if (plan->target <= machine || retarget)
        return plan->target && plan->target <= machine ? plan->target : machine;
    Str wanted = str_format(plan->arena, "%u", plan->target);
    Str widest = str_format(plan->arena, "%u", machine);
    Diag *made = diag(&plan->context->diags, E7003, plan->target_at, wanted.at, widest.at);
    diag_help(made, "--retarget runs it without what target %u lacks", machine);
    return 0;
}

// The narrowest target that has a value; 0: every one.
static RlzTarget needed_by(RlzDecision decision, bool columns, uint32_t value) {
    RlzWord words[RLZ_WORDS_MAX];
    uint32_t count = rlz_decision_words(decision, columns, words);
    for (uint32_t i = 0; i < count; i++)
        if (words[i].value == value)
            return words[i].target;
    return 0;
}

static RlzTarget target_of(RlzDecision decision, uint32_t value) {
    if (decision == RLZ_DECISION_SPLIT)
        return 0;
    if (decision != RLZ_DECISION_TILE)
        return needed_by(decision, false, value);
    return MAX(needed_by(decision, false, value >> 16), needed_by(decision, true, value & 0xFFFF));
}

// ---- messages -----------------------------------------------------------------------------------

static Diag *refuse(const RlzPlan *plan, Span span, Str message) {
    return diag(&plan->context->diags, E7002, span, message.at);
}

static void refuse_fault(const RlzPlan *plan, const RlzStated *stated, const RlzFault *fault,
                         Str where) {
    bool said = stated->decisions & 1u << fault->decision;
    refuse(plan, said ? stated->at[fault->decision] : stated->span,
           str_format(plan->arena, "condition %u: `%s`%s of `%s`: %s", fault->condition,
                      rlz_decisions[fault->decision].text.at, said ? "" : " (its default)",
                      where.at, fault->why.at));
}

static void warn_dropped(const RlzPlan *plan, Span span, Str message) {
    diag(&plan->context->diags, W0701, span, message.at);
}

// ---- before anything runs -----------------------------------------------------------------------

typedef struct Program {
    const CoreProgram *core;
    RlzPlan *plan;
    const CoreArithmetic *arithmetic;
    RlzTarget target;
    bool fine;
} Program;

static bool find_nest(Program *p, RlzStated *stated) {
    Arena *arena = p->plan->arena;
    const char *at = strrchr(stated->key.at, '@');
    Str site = str_copy(arena, stated->key.at,
                        at ? (size_t)(at - stated->key.at) : (size_t)stated->key.size);
    bool found = rlz_site_find(p->core, site, &stated->fn, &stated->let);
    found = found && str_equal(site, core_site_text(p->core, stated->fn, stated->let, arena));
    const CoreFn *fn = found ? core_fn(p->core, stated->fn) : NULL;
    if (found && core_let_launches(fn, stated->let, p->arithmetic->fusion))
        return true;
    Diag *made = refuse(p->plan, stated->span,
                        str_format(arena, "condition 1: `%s` is not a nest", site.at));
    if (found && fn->group && fn->group[stated->let] != CORE_NO_GROUP) {
        Str root = core_site_text(p->core, stated->fn, fn->group[stated->let], arena);
        diag_note(made, "it is a member of the fusion group whose nest is `%s`", root.at);
        diag_help(made, "state the layout of `%s`", root.at);
        return false;
    }
    Str near = rlz_site_nearest(p->core, site, arena);
    diag_note(made, "nests are named as `presk dump --stage realize` prints them");
    if (near.size)
        diag_help(made, "did you mean `%s`?", near.at);
    return false;
}

static void check_sort(Program *p, RlzStated *stated, RlzDecision decision) {
    const CoreLet *let = core_let(core_fn(p->core, stated->fn), stated->let);
    CorePrim prim = let->prim;
    bool of_tree = core_type(p->core, let->type)->kind == CORE_PARAMS;
    if (rlz_decision_on(decision, prim, of_tree))
        return;
    StrBuf legal = {.arena = p->plan->arena};
    for (RlzDecision d = 0; d < RLZ_DECISION_COUNT; d++)
        if (rlz_decision_on(d, prim, of_tree))
            buf_format(&legal, "%s%s", legal.size ? ", " : "", rlz_decisions[d].text.at);
    Diag *made =
        refuse(p->plan, stated->at[decision],
               str_format(p->plan->arena, "condition 2: `%s`, a nest of %s, has no `%s`",
                          stated->key.at, core_prims[prim].text, rlz_decisions[decision].text.at));
    diag_note(made, "its decisions are: %s", buf_str(&legal).at);
    p->fine = false;
}

static void check_target(Program *p, RlzStated *stated, RlzDecision decision) {
    RlzTarget needed = target_of(decision, stated->value[decision]);
    if (needed <= p->target)
        return;
    Arena *arena = p->plan->arena;
    const char *name = rlz_decisions[decision].text.at;
    Str value = rlz_decision_value_text(decision, stated->value[decision], arena);
    if (p->plan->retarget) {
        stated->decisions &= ~(1u << decision);
        warn_dropped(p->plan, stated->at[decision],
                     str_format(arena, "`%s`: %s of `%s` is dropped: target %u lacks it", name,
                                value.at, stated->key.at, p->target));
        return;
    }
    RlzFault fault = {10, decision,
                      str_format(arena, "%s needs target %u; legal on target %u: %s", value.at,
                                 needed, p->target,
                                 rlz_decision_legal(decision, p->target, arena).at)};
    refuse_fault(p->plan, stated, &fault, stated->key);
    p->fine = false;
}

static void check_epilogue(Program *p, RlzStated *stated) {
    RlzEpilogue epilogue;
    if (!(stated->decisions & RLZ_BIT(EPILOGUE)) || !stated->value[RLZ_DECISION_EPILOGUE] ||
        rlz_epilogue_find(p->core, stated->fn, stated->let, p->arithmetic, &epilogue))
        return;
    RlzFault fault = {6, RLZ_DECISION_EPILOGUE, epilogue.why};
    refuse_fault(p->plan, stated, &fault, stated->key);
    p->fine = false;
}

static void check_nest(Program *p, RlzStated *stated) {
    if (!find_nest(p, stated)) {
        p->fine = false;
        return;
    }
    for (RlzDecision d = 0; d < RLZ_DECISION_COUNT; d++)
        if (stated->decisions & 1u << d) {
            check_sort(p, stated, d);
            check_target(p, stated, d);
        }
    if (p->fine)
        check_epilogue(p, stated);
}

bool rlz_plan_check(const CoreProgram *program, RlzPlan *plan, const CoreArithmetic *arithmetic,
                    RlzTarget target) {
    Program p = {program, plan, arithmetic, target, true};
    for (uint32_t i = 0; i < plan->nests.count; i++)
        check_nest(&p, &plan->nests.at[i]);
    return p.fine;
}

// ---- at a launch --------------------------------------------------------------------------------

// The record of the nest's shape, else the plain one; null: none.
static const RlzStated *find_stated(const RlzPlan *plan, CoreFnId fn, CoreLetId let,
                                    const RlzNest *nest, Arena *arena) {
    const RlzStated *found = NULL;
    Str shape = {0};
    for (uint32_t i = 0; plan && i < plan->nests.count; i++) {
        const RlzStated *stated = &plan->nests.at[i];
        if (stated->fn != fn || stated->let != let)
            continue;
        if (!shape.size)
            shape = rlz_nest_shape(nest, arena);
        if (stated->shape.size && str_equal(stated->shape, shape))
            return stated;
        if (!stated->shape.size)
            found = stated;
    }
    return found;
}

// K stands in the order with a k-block, and only then.
static bool order_fits(const RlzStated *stated, const RlzLayout *layout) {
    return !(stated->decisions & RLZ_BIT(ORDER)) ||
           (stated->value[RLZ_DECISION_ORDER] >= RLZ_ORDER_IJK) == (layout->kblock > 0);
}

// A row-wise contraction has no tile.
static RlzFault form_fault(const RlzStated *stated, const RlzNest *nest, const RlzLayout *layout) {
    for (RlzDecision d = 0; d < RLZ_DECISION_COUNT; d++)
        if (stated->decisions & 1u << d && !rlz_decision_applies(d, nest, layout))
            return (RlzFault){
                3, d, STR("this contraction is row-wise; \"form\": \"tiled\" makes it legal")};
    if (!order_fits(stated, layout))
        return (RlzFault){3, RLZ_DECISION_ORDER,
                          layout->kblock ? STR("with a k-block, a permutation of IJK is legal")
                                         : STR("without a k-block, \"IJ\" and \"JI\" are legal")};
    return (RlzFault){0};
}

// All leaves are one nest of a shape of its own; a leaf's shape cannot speak for them.
static RlzFault leaves_fault(const RlzStated *stated, const RlzNest *nest) {
    bool one = stated->decisions & RLZ_BIT(LEAVES) && stated->value[RLZ_DECISION_LEAVES];
    if (!one || nest->leaves)
        return (RlzFault){0};
    return (RlzFault){2, RLZ_DECISION_LEAVES,
                      STR("this is the shape of one leaf; \"one\" is legal without a shape, or at "
                          "the number of elements of the whole tree")};
}

static RlzLayout stated_layout(const RlzStated *stated, const RlzNest *nest,
                               const RlzMachine *machine) {
    RlzLayout values = rlz_layout_scalar(nest);
    for (RlzDecision d = 0; d < RLZ_DECISION_COUNT; d++) {
        uint32_t value = stated->value[d];
        if (!(stated->decisions & 1u << d))
            continue;
        if (d == RLZ_DECISION_SPLIT && value != RLZ_NO_SPLIT && (value & 0xFFFF) > RLZ_WORKERS_MAX)
            value = rlz_pair(value >> 16, (value & 0xFFFF) == RLZ_ALL_WORKERS
                                              ? machine->workers
                                              : MAX(machine->workers / 2, 1));
        rlz_layout_set(&values, d, value);
    }
    return rlz_layout_complete(nest, machine->target, machine->workers, !machine->native,
                               stated->decisions, &values);
}

static Str place_text(const RlzStated *stated, const RlzNest *nest, Arena *arena) {
    return stated->shape.size
               ? stated->key
               : str_format(arena, "%s@%s", stated->key.at, rlz_nest_shape(nest, arena).at);
}

bool rlz_plan_layout(const RlzPlan *plan, CoreFnId fn, CoreLetId let, const RlzNest *nest,
                     const RlzMachine *machine, Arena *arena, RlzLayout *layout) {
    const RlzStated *stated = find_stated(plan, fn, let, nest, arena);
    if (!stated) {
        *layout = rlz_layout_default(nest, machine->target, machine->workers, !machine->native);
        return true;
    }
    *layout = stated_layout(stated, nest, machine);
    RlzFault fault = form_fault(stated, nest, layout);
    if (!fault.condition)
        fault = leaves_fault(stated, nest);
    if (!fault.condition)
        fault = rlz_layout_fault(nest, layout, machine->target, arena);
    if (!fault.condition && stated->decisions & RLZ_BIT(SPLIT))
        fault = rlz_workers_fault(layout, machine, arena);
    if (!fault.condition)
        return true;
    Str where = place_text(stated, nest, plan->arena);
    if (!plan->retarget || plan->target <= machine->target) {
        refuse_fault(plan, stated, &fault, where);
        return false;
    }
    warn_dropped(plan, stated->span,
                 str_format(plan->arena, "`%s` has its default layout: condition %u: %s", where.at,
                            fault.condition, fault.why.at));
    *layout = rlz_layout_default(nest, machine->target, machine->workers, !machine->native);
    return true;
}

bool rlz_plan_split(const RlzPlan *plan, CoreFnId fn, CoreLetId let, const RlzNest *nest,
                    const RlzLayout *layout, int64_t iterations) {
    const RlzStated *stated = plan ? find_stated(plan, fn, let, nest, plan->arena) : NULL;
    if (!stated || !(stated->decisions & RLZ_BIT(SPLIT)))
        return true;
    RlzFault fault = rlz_split_fault(layout, iterations, plan->arena);
    if (fault.condition)
        refuse_fault(plan, stated, &fault, place_text(stated, nest, plan->arena));
    return !fault.condition;
}

bool rlz_plan_epilogue(const RlzPlan *plan, CoreFnId fn, CoreLetId let, const RlzNest *nest,
                       Arena *arena) {
    const RlzStated *stated = find_stated(plan, fn, let, nest, arena);
    return stated && stated->decisions & RLZ_BIT(EPILOGUE) && stated->value[RLZ_DECISION_EPILOGUE];
}

bool rlz_plan_leaves(const RlzPlan *plan, CoreFnId fn, CoreLetId let, const RlzNest *nest,
                     Arena *arena) {
    const RlzStated *stated = find_stated(plan, fn, let, nest, arena);
    return stated && stated->decisions & RLZ_BIT(LEAVES) && stated->value[RLZ_DECISION_LEAVES];
}

// ---- writing ------------------------------------------------------------------------------------

Str rlz_stated_text(const RlzStated *stated, Arena *arena) {
    StrBuf buf = {.arena = arena};
    buf_add(&buf, stated->key);
    for (RlzDecision d = 0; d < RLZ_DECISION_COUNT; d++)
        if (stated->decisions & 1u << d)
            buf_format(&buf, "  %s %s", rlz_decisions[d].text.at,
                       rlz_decision_value_text(d, stated->value[d], arena).at);
    return buf_str(&buf);
}

Str rlz_plan_record(Str key, const RlzNest *nest, const RlzLayout *layout, Arena *arena) {
    StrBuf buf = {.arena = arena};
    buf_format(&buf, "\"%s\": {", key.at);
    bool any = false;
    for (RlzDecision d = 0; d < RLZ_DECISION_COUNT; d++) {
        bool deep = d == RLZ_DECISION_SPLIT && layout->split_depth > RLZ_DEPTH_MAX;
        if (deep || !rlz_decision_applies(d, nest, layout))
            continue; // a default split may stand deeper than one may be stated
        Str value = rlz_decision_value_text(d, rlz_layout_get(layout, d), arena);
        buf_format(&buf, "%s \"%s\": %s", any ? "," : "", rlz_decisions[d].text.at, value.at);
        any = true;
    }
    buf_text(&buf, " }");
    return buf_str(&buf);
}
