// Arenas, strings, names, maps, sources and the rendering of diagnostics.
#include "base/context.h"

#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

static void arenas_hold_what_is_put_in(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    Arena *arena = arena_new(&c.heap, "test");
    Vec(uint32_t) v = {0};
    for (uint32_t i = 0; i < 100000; i++)
        vec_push(arena, &v, i * 7);
    for (uint32_t i = 0; i < v.count; i++)
        assert_int_equal(v.at[i], i * 7);
    char *large = arena_alloc(arena, 5 << 20);
    assert_int_equal((uintptr_t)large % 16, 0);
    for (size_t i = 0; i < 5 << 20; i++)
        assert_int_equal(large[i], 0);
    arena_free(arena);
    context_free(&c);
    assert_int_equal(c.heap.live, 0);
}

// Every allocation of a small job fails in turn; each time the job ends at the rescue point and
// nothing stays allocated.
static void failing_allocations_reach_the_rescue_point(void **state) {
    (void)state;
    volatile uint64_t failures = 0;
    for (volatile uint64_t n = 1;; n++) {
        Context c = {0};
        jmp_buf rescue;
        volatile bool failed = false;
        if (setjmp(rescue)) {
            failed = true;
        } else {
            context_init_rescued(&c, &rescue, n);
            for (int i = 0; i < 2000; i++)
                name_of(c.names, str_format(c.arena, "name %d", i));
        }
        context_free(&c);
        assert_int_equal(c.heap.live, 0);
        if (!failed)
            break;
        failures++;
    }
    assert_true(failures > 4);
}

static void strings(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    assert_true(str_is(str_of_double(c.arena, 0.1), "0.1"));
    assert_true(str_is(str_of_double(c.arena, 1e-8), "1e-08"));
    assert_true(str_is(str_of_double(c.arena, 1.0 / 3), "0.3333333333333333"));
    assert_true(str_is(str_of_float(c.arena, 0.1f), "0.1"));
    assert_true(str_is(str_of_float(c.arena, 100), "100"));
    assert_true(str_is(str_of_float(c.arena, -0.0f), "-0"));
    assert_true(str_is(str_of_float(c.arena, 1e30f), "1e+30"));
    assert_true(str_is(str_of_double(c.arena, 12e13), "120000000000000"));
    assert_true(str_is(str_of_double(c.arena, 1e308 * 10), "inf"));
    assert_int_equal(name_of_c(c.names, "x"), name_of(c.names, STR("x")));
    assert_int_not_equal(name_of_c(c.names, "x"), name_of_c(c.names, "y"));
    Str words[] = {STR("batch"), STR("seq"), STR("model")};
    assert_true(str_is(nearest_spelling(c.arena, STR("sqe"), words, 3), "seq"));
    assert_true(str_is(nearest_spelling(c.arena, STR("modle"), words, 3), "model"));
    assert_int_equal(nearest_spelling(c.arena, STR("vocabulary"), words, 3).size, 0);
    assert_int_equal(nearest_spelling(c.arena, STR("x"), words, 3).size, 0);
    context_free(&c);
}

static void maps_keep_every_key(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    Map *map = map_new(c.arena);
    for (uint32_t i = 0; i < 5000; i++) {
        bool fresh;
        *map_slot(map, &i, sizeof i, &fresh) = i + 1;
        assert_true(fresh);
    }
    for (uint32_t i = 0; i < 5000; i++)
        assert_int_equal(*map_find(map, &i, sizeof i), i + 1);
    uint32_t absent = 5000;
    assert_null(map_find(map, &absent, sizeof absent));
    assert_int_equal(map_count(map), 5000);
    context_free(&c);
}

static void positions(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    uint32_t id = source_add(&c.sources, STR("a.psk"), STR("ab\nℝx\r\n\nend"));
    const Source *source = source_get(&c.sources, id);
    Position at = source_position(source, 6); // the x after a three-byte ℝ
    assert_int_equal(at.line, 2);
    assert_int_equal(at.column, 2);
    assert_true(str_is(source_line(source, 2), "ℝx"));
    assert_true(str_is(source_line(source, 3), ""));
    assert_true(str_is(source_line(source, 4), "end"));
    assert_int_equal(source_position(source, 1000).line, 4);
    context_free(&c);
}

static void a_diagnostic_shows_its_line(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    uint32_t id = source_add(&c.sources, STR("a.psk"), STR("let ŷ = \tℝ + zz\n"));
    Diag *made = diag(&c.diags, E7001, ((Span){id, 16, 18}), "no zz");
    diag_here(made, "here");
    diag_label(made, (Span){id, 4, 6}, "there");
    diag_note(made, "expected y");
    diag_help(made, "did you mean `y`?");
    diag(&c.diags, E7001, ((Span){id, 16, 18}), "no zz"); // shown once
    assert_string_equal(diags_render(&c.diags, c.arena, DIAG_PLAIN).at,
                        "error[E7001]: realization: no zz\n"
                        "  --> a.psk:1:14\n"
                        "   |\n"
                        " 1 | let ŷ =     ℝ + zz\n"
                        "   |                 ^^ here\n"
                        "   |     - there\n"
                        "   = note: expected y\n"
                        "   = help: did you mean `y`?\n");
    assert_non_null(strstr(diags_render(&c.diags, c.arena, DIAG_JSON).at,
                           "\"code\":\"E7001\",\"severity\":\"error\""));
    context_free(&c);
}

// Filled and reset in turns an arena asks for no memory after the first time, and what it gives is
// zero; large pieces go back.
static void reset_arenas_keep_little(void **state) {
    (void)state;
    Heap heap = {0};
    Arena *arena = arena_new(&heap, "test");
    static const size_t sizes[] = {1500, 16, 3000, 9000, 16, 700, 40000, 16};
    uint64_t calls = 0;
    for (uint32_t round = 0; round < 4; round++) {
        for (uint32_t i = 0; i < 40; i++) {
            size_t size = sizes[i % COUNT_OF(sizes)];
            char *at = arena_alloc(arena, size);
            for (size_t k = 0; k < size; k++)
                assert_int_equal(at[k], 0);
            memset(at, 0xA5, size);
        }
        size_t before = heap.live;
        arena_alloc(arena, 3 << 20);
        arena_reset(arena);
        assert_true(heap.live <= before);
        // The large piece; where each allocation is one of the system's, all of them.
#ifdef PRESK_MALLOC_ARENAS
        assert_true(round == 0 || heap.calls == calls + 41);
#else
        assert_true(round == 0 || heap.calls == calls + 1);
#endif
        calls = heap.calls;
    }
    heap_free(&heap);
    assert_int_equal(heap.live, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reset_arenas_keep_little),
        cmocka_unit_test(arenas_hold_what_is_put_in),
        cmocka_unit_test(failing_allocations_reach_the_rescue_point),
        cmocka_unit_test(strings),
        cmocka_unit_test(maps_keep_every_key),
        cmocka_unit_test(positions),
        cmocka_unit_test(a_diagnostic_shows_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
