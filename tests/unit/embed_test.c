// The embedding API: a program compiled and run from C, on every backend, in two threads at once,
// and what happens when memory runs out on the way.
#include "../../include/presk.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const layer = "examples/layer.psk";

// score = mean(gelu(x · w + b) / 2) with w = 0 and b = 0 is 0, and with b = 1 is gelu(1) / 2.
static void values_go_in_and_come_out(void **state) {
    (void)state;
    PreskProgram *program = presk_open(layer, NULL);
    PreskBackend backends[] = {PRESK_REFERENCE, PRESK_KERNEL, PRESK_NATIVE};
    for (int i = 0; i < 3; i++) {
        PreskOptions options = {.backend = backends[i], .realization = "f64", .workers = 2};
        PreskEntry *entry = presk_entry(program, "score", NULL, &options);
        assert_non_null(entry);
        double x[3 * 64], w[64 * 16] = {0}, b[16];
        for (int j = 0; j < 3 * 64; j++)
            x[j] = j;
        for (int j = 0; j < 16; j++)
            b[j] = 1;
        assert_int_equal(presk_set(entry, "x", PRESK_F64, 2, (int64_t[]){3, 64}, x), 0);
        assert_int_equal(presk_set_parameter(entry, "w", PRESK_F64, 2, (int64_t[]){64, 16}, w), 0);
        assert_int_equal(presk_set_parameter(entry, "b", PRESK_F64, 1, (int64_t[]){16}, b), 0);
        assert_int_equal(presk_run(entry), 0);
        assert_int_equal(presk_result_count(entry), 1);
        PreskTensor y = presk_result(entry, 0);
        assert_int_equal(y.rank, 1);
        assert_int_equal(y.extent[0], 3);
        for (int j = 0; j < 3; j++) // 0.841344746068542948… / 2, by MPFR
            assert_true(((const double *)y.data)[j] - 0.42067237303427147 < 2e-16 &&
                        ((const double *)y.data)[j] - 0.42067237303427147 > -2e-16);
        // Other values of the same shape, without building again.
        memset(b, 0, sizeof b);
        assert_int_equal(presk_set_parameter(entry, "b", PRESK_F64, 1, (int64_t[]){16}, b), 0);
        assert_int_equal(presk_run(entry), 0);
        assert_true(((const double *)presk_result(entry, 0).data)[2] == 0);
        assert_null(presk_result(entry, 1).data);
    }
    assert_string_equal(presk_message(program), "");
    presk_close(program);
}

static void what_is_wrong_is_said(void **state) {
    (void)state;
    PreskProgram *program = presk_open("examples/none.psk", NULL);
    assert_non_null(program);
    assert_non_null(strstr(presk_message(program), "examples/none.psk"));
    assert_null(presk_entry(program, "score", NULL, NULL));
    presk_close(program);
    program = presk_open(layer, "D");
    assert_non_null(strstr(presk_message(program), "E6016"));
    presk_close(program);
    program = presk_open(layer, NULL);
    assert_null(presk_entry(program, "scroe", NULL, NULL));
    assert_non_null(strstr(presk_message(program), "did you mean `score`?"));
    presk_close(program);
    program = presk_open(layer, NULL);
    PreskEntry *entry = presk_entry(program, "score", "B=2", NULL);
    assert_non_null(entry);
    assert_int_equal(presk_run(entry), 1); // nothing is set
    assert_non_null(strstr(presk_message(program), "E6013"));
    assert_int_equal(presk_fill(entry, 0), 0);
    presk_close(program);
}

typedef struct Job {
    const char *realization;
    double value;
} Job;

static void *run_job(void *data) {
    Job *job = data;
    for (int i = 0; i < 5; i++) {
        PreskProgram *program = presk_open(layer, NULL);
        PreskOptions options = {.backend = PRESK_KERNEL, .realization = job->realization, 2};
        PreskEntry *entry = presk_entry(program, "score", "B=5", &options);
        if (!entry || presk_fill(entry, 7) || presk_run(entry)) {
            presk_close(program);
            return "a run failed";
        }
        PreskTensor y = presk_result(entry, 0);
        double value =
            y.type == PRESK_F64 ? *(const double *)y.data : (double)*(const float *)y.data;
        if (i && value != job->value) {
            presk_close(program);
            return "two runs differ";
        }
        job->value = value;
        presk_close(program);
    }
    return NULL;
}

static void programs_in_two_threads_do_not_know_of_each_other(void **state) {
    (void)state;
    Job alone[2] = {{"f32", 0}, {"f64", 0}}, together[2] = {{"f32", 0}, {"f64", 0}};
    for (int i = 0; i < 2; i++)
        assert_null(run_job(&alone[i]));
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, run_job, &together[i]), 0);
    for (int i = 0; i < 2; i++) {
        void *failure;
        pthread_join(thread[i], &failure);
        assert_null(failure);
        assert_true(together[i].value == alone[i].value);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_go_in_and_come_out),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(programs_in_two_threads_do_not_know_of_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
