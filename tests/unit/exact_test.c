// A fixed sample of every nest's space, bit for bit against the scalar kernel; all of it is `make
// exact`.
#include "support/exact.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_sample_of_every_space(void **state) {
    (void)state;
    static Context c;
    context_init(&c);
    ExactOptions options = {.sample = 2000};
    ExactReport r = exact_run(&c, &options);
    if (r.failure.size)
        fail_msg("%s", r.failure.at);
    assert_true(r.nests > 300);
    assert_true(r.texts >= 2000);
    assert_int_equal(r.reached, r.chosen);
    assert_true(r.natives >= r.texts * 3 / 4);
    assert_true(r.split > r.texts / 4);
    context_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_sample_of_every_space)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
