// The memory plan: random lifetimes and sizes against a brute-force checker, and its quality
// against the bytes that are alive at once, below which no plan can be.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/context.h"
#include "runtime/program.h"

enum { LINE = 64, COUNT_MAX = 200 };

static size_t in_lines(size_t bytes) {
    return bytes <= LINE ? LINE : (bytes + LINE - 1) / LINE * LINE;
}

static uint32_t below(uint64_t *state, uint32_t bound) { // xorshift64*, Vigna 2016
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * UINT64_C(0x2545F4914F6CDD1D) >> 33) % bound);
}

static bool alive_at_once(const RtBuffer *a, const RtBuffer *b) {
    return a->first <= b->last && b->first <= a->last;
}

// Every pair of planned buffers that are alive at once lies apart, in lines of its own and within
// the block; and the block ends where the last buffer does.
static void check_plan(const RtBuffer *buffers, uint32_t count, size_t size) {
    size_t end = 0;
    for (uint32_t i = 1; i < count; i++) {
        const RtBuffer *a = &buffers[i];
        if (a->external)
            continue;
        assert_int_equal(a->offset % LINE, 0);
        assert_true(a->offset + in_lines(a->bytes) <= size);
        end = MAX(end, a->offset + in_lines(a->bytes));
        for (uint32_t j = 1; j < i; j++) {
            const RtBuffer *b = &buffers[j];
            if (!b->external && alive_at_once(a, b))
                assert_true(a->offset + in_lines(a->bytes) <= b->offset ||
                            b->offset + in_lines(b->bytes) <= a->offset);
        }
    }
    assert_int_equal(end, size);
}

// The most bytes that are alive at one launch.
static size_t most_alive(const RtBuffer *buffers, uint32_t count, uint32_t launches) {
    size_t most = 0;
    for (uint32_t l = 0; l < launches; l++) {
        size_t bytes = 0;
        for (uint32_t i = 1; i < count; i++)
            if (!buffers[i].external && buffers[i].first <= l && buffers[i].last >= l)
                bytes += in_lines(buffers[i].bytes);
        most = MAX(most, bytes);
    }
    return most;
}

static void random_lifetimes(void **unused) {
    (void)unused;
    Context context = {0};
    context_init(&context);
    uint64_t state = 88172645463325252u;
    double whole = 0, least = 0;
    for (int round = 0; round < 400; round++) {
        RtBuffer buffers[COUNT_MAX] = {{0}};
        uint32_t count = 1 + below(&state, COUNT_MAX - 1), launches = 1 + below(&state, 120);
        uint32_t reach = 1 + below(&state, 30), kinds = 1 + below(&state, 6);
        for (uint32_t i = 1; i < count; i++) {
            RtBuffer *b = &buffers[i];
            b->first = below(&state, launches);
            b->last = b->first + below(&state, reach);
            if (b->last >= launches || below(&state, 20) == 0)
                b->last = RT_FOREVER;
            b->bytes = (size_t)below(&state, 4000) * below(&state, kinds);
            if (below(&state, 10) == 0)
                b->external = &context;
        }
        size_t size = rt_plan(buffers, count, context.arena);
        check_plan(buffers, count, size);
        size_t most = most_alive(buffers, count, launches);
        assert_true(size >= most);
        whole += (double)size;
        least += (double)most;
    }
    assert_true(whole <= 1.05 * least); // 1.027 as this is written
    context_free(&context);
}

// The lifetimes of a network's forward pass: each layer reads the last one's output; a residual
// stream lives across four launches.
static void layers(void **unused) {
    (void)unused;
    enum { LAYERS = 24 };
    Context context = {0};
    context_init(&context);
    RtBuffer buffers[1 + 4 * LAYERS] = {{0}};
    uint32_t count = 1, launch = 0;
    for (uint32_t l = 0; l < LAYERS; l++) {
        buffers[count++] = (RtBuffer){.bytes = 4096, .first = launch, .last = launch + 4};
        buffers[count++] = (RtBuffer){.bytes = 4096, .first = launch + 1, .last = launch + 2};
        buffers[count++] = (RtBuffer){.bytes = 16384, .first = launch + 2, .last = launch + 3};
        buffers[count++] = (RtBuffer){.bytes = 4096, .first = launch + 3, .last = launch + 4};
        launch += 4;
    }
    size_t size = rt_plan(buffers, count, context.arena);
    check_plan(buffers, count, size);
    assert_true(size * 6 <= most_alive(buffers, count, launch + 1) * 7);
    context_free(&context);
}

static void nothing(void **unused) {
    (void)unused;
    Context context = {0};
    context_init(&context);
    RtBuffer buffers[2] = {{0}, {.bytes = 100, .external = &context}};
    assert_int_equal(rt_plan(buffers, 1, context.arena), 0);
    assert_int_equal(rt_plan(buffers, 2, context.arena), 0);
    // An empty tensor has a place of its own.
    buffers[1] = (RtBuffer){.last = RT_FOREVER};
    assert_int_equal(rt_plan(buffers, 2, context.arena), LINE);
    context_free(&context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_lifetimes),
        cmocka_unit_test(layers),
        cmocka_unit_test(nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
