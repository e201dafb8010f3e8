// Random programs: legal, of every primitive, the same for the same seed; and every pass of Core on
// them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/partition_check.h"
#include "support/random_program.h"

enum { SEEDS = 400, SIZE = 16 };

typedef struct Seen { // over all seeds
    bool prim[CORE_PRIM_COUNT];
    bool pack, empty, one, odd, named, index_result, tree_group, dead, called_twice;
    uint32_t groups, remarks[CORE_REMARK_COUNT];
} Seen;

static void see_fn(Seen *seen, const CoreProgram *p, const CoreFn *fn) {
    for (CoreLetId let = 0; let < fn->lets.count; let++) {
        const CoreLet *at = core_let(fn, let);
        const CoreType *type = core_type(p, at->type);
        seen->prim[at->prim] = true;
        bool root = fn->group[let] == let;
        seen->groups += root;
        seen->tree_group |= root && type->kind == CORE_PARAMS;
        seen->called_twice |= at->prim == CORE_call && let > fn->params && fn->has_pack;
        for (uint32_t i = 0; i < type->rank; i++) {
            seen->pack |= type->axes[i].extent == EXTENT_PACK;
            seen->named |= type->axes[i].name != 0;
        }
    }
    seen->index_result |= core_type(p, fn->type)->kind == CORE_IDX;
    for (uint32_t i = 0; i < fn->remarks.count; i++)
        seen->remarks[fn->remarks.at[i].kind]++;
}

static void check_legal(Context *c, const RandomProgram *r, const char *after) {
    Str errors;
    if (!core_verify(r->core, c->arena, &errors))
        fail_msg("seed %llu after %s: %s\n%s", (unsigned long long)r->seed, after, errors.at,
                 random_program_text(r, c->arena).at);
}

static void check_partition(Context *c, const RandomProgram *r, bool fresh) {
    for (CoreFnId id = 1; id < r->core->fns.count; id++) {
        Str fault = partition_fault(r->core, id, fresh, c->arena);
        if (fault.size)
            fail_msg("seed %llu: %s\n%s", (unsigned long long)r->seed, fault.at,
                     core_print_fn(r->core, id, c->arena).at);
    }
}

static void check_text(Context *c, const RandomProgram *r) {
    Str text = random_program_text(r, c->arena);
    RandomProgram again = random_program_read(c, text);
    assert_string_equal(random_program_text(&again, c->arena).at, text.at);
    for (DimId dim = 1; dim <= 5; dim++)
        assert_int_equal(again.dims[dim], r->dims[dim]);
}

// Every pass on one program.
static void passes(uint64_t seed, Seen *seen) {
    Context c = {0};
    context_init(&c);
    RandomProgram r = random_program(&c, seed, SIZE);
    check_legal(&c, &r, "generation");
    check_text(&c, &r);
    for (DimId dim = 1; dim <= 5; dim++) {
        seen->empty |= r.dims[dim] == 0;
        seen->one |= r.dims[dim] == 1;
        seen->odd |= r.dims[dim] > 1 && r.dims[dim] % 2;
    }
    core_fold(r.core);
    check_legal(&c, &r, "folding");
    core_partition(r.core);
    check_legal(&c, &r, "the partition");
    check_partition(&c, &r, true);
    check_text(&c, &r);
    for (CoreFnId id = 1; id < r.core->fns.count; id++)
        see_fn(seen, r.core, core_fn(r.core, id));
    uint32_t lets = core_fn(r.core, r.entry)->lets.count;
    core_dce(r.core);
    seen->dead |= core_fn(r.core, r.entry)->lets.count < lets;
    check_legal(&c, &r, "dead code");
    check_partition(&c, &r, false);
    check_text(&c, &r);
    Str before = core_print(r.core, c.arena);
    core_dce(r.core);
    assert_string_equal(core_print(r.core, c.arena).at, before.at);
    context_free(&c);
}

static void every_pass(void **state) {
    (void)state;
    Seen seen = {0};
    Context c = {0};
    context_init(&c);
    uint64_t *kept;
    for (uint32_t i = 0, count = random_program_seeds(c.arena, &kept); i < count; i++)
        passes(kept[i], &seen);
    context_free(&c);
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        passes(seed, &seen);
    for (uint32_t prim = 0; prim < CORE_PRIM_COUNT; prim++)
        if (!seen.prim[prim])
            fail_msg("no random program has `%s`", core_prims[prim].text);
    assert_true(seen.pack && seen.empty && seen.one && seen.odd && seen.named);
    assert_true(seen.tree_group && seen.dead && seen.called_twice && seen.groups > SEEDS);
    assert_true(seen.remarks[CORE_REMARK_OUTSIDE_READER] && seen.remarks[CORE_REMARK_OTHER_TYPE] &&
                seen.remarks[CORE_REMARK_POWER]);
}

static void same_seed_same_program(void **state) {
    (void)state;
    Context a = {0}, b = {0};
    context_init(&a);
    context_init(&b);
    RandomProgram x = random_program(&a, 77, SIZE), y = random_program(&b, 77, SIZE);
    assert_string_equal(random_program_text(&x, a.arena).at, random_program_text(&y, b.arena).at);
    y = random_program(&b, 78, SIZE);
    assert_string_not_equal(random_program_text(&x, a.arena).at,
                            random_program_text(&y, b.arena).at);
    context_free(&a);
    context_free(&b);
}

static bool wide_softmax(const RandomProgram *p, const CoreFn *fn, CoreLetId let) {
    int64_t value;
    if (core_let(fn, let)->prim != CORE_softmax)
        return false;
    const CoreType *type = core_type(p->core, core_let(fn, let)->type);
    Extent extent = type->axes[core_let(fn, let)->attr->axis].extent;
    return extent_value(p->core->extents, extent, p->dims, &value, NULL) && value > 2;
}

// The "fault": a softmax along an axis of more than two, in the entry or what it calls.
static bool reaches(const RandomProgram *p, CoreFnId id) {
    const CoreFn *fn = core_fn(p->core, id);
    for (CoreLetId let = 0; let < fn->lets.count; let++) {
        const CoreLet *at = core_let(fn, let);
        if (wide_softmax(p, fn, let) || (at->prim == CORE_call && reaches(p, at->attr->callee)))
            return true;
    }
    return false;
}

static bool has_softmax(void *data, const RandomProgram *p) {
    ++*(uint32_t *)data;
    return reaches(p, p->entry);
}

static void shrinking(void **state) {
    (void)state;
    uint32_t shrunk = 0;
    for (uint64_t seed = 1; seed <= 100 && shrunk < 5; seed++) {
        Context c = {0};
        context_init(&c);
        uint32_t calls = 0;
        RandomProgram r = random_program(&c, seed, 24);
        core_dce(r.core);
        if (has_softmax(&calls, &r)) {
            shrunk++;
            calls = 0;
            Str text = random_program_shrink(&c, &r, 2000, has_softmax, &calls);
            assert_true(calls <= 2000);
            RandomProgram small = random_program_read(&c, text);
            assert_true(has_softmax(&calls, &small));
            uint32_t lets = 0;
            for (CoreFnId id = 1; id < small.core->fns.count; id++)
                lets += core_fn(small.core, id)->lets.count;
            if (lets > 12)
                fail_msg("seed %llu is left with %u lets:\n%s", (unsigned long long)seed, lets,
                         text.at);
        }
        context_free(&c);
    }
    assert_int_equal(shrunk, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pass),
        cmocka_unit_test(same_seed_same_program),
        cmocka_unit_test(shrinking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
