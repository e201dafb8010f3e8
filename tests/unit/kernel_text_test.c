// Kernel text: what is printed reads back the same; each rule of the reader and the verifier has a
// text that breaks it (tests/kernel/bad, whose first lines say what is expected); no bytes crash
// the reader.
#include "base/file.h"
#include "kernel/kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { FILES_MAX = 200 };

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static uint32_t list(Arena *arena, const char *folder, char **paths) {
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    uint32_t count = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (strstr(entry->d_name, ".krn") && count < FILES_MAX)
            paths[count++] = (char *)str_format(arena, "%s/%s", folder, entry->d_name).at;
    }
    closedir(dir);
    qsort(paths, count, sizeof *paths, by_name);
    return count;
}

static Str text_of(Arena *arena, const char *path) {
    Str text, error;
    if (!file_read(arena, path, &text, &error))
        fail_msg("%s: %s", path, error.at);
    return text;
}

static Kernel *read_text(Context *context, Str text) {
    return krn_read(context, context->arena, source_add(&context->sources, STR("test"), text));
}

static void prints_what_it_reads(void **state) {
    (void)state;
    Context context = {0};
    context_init(&context);
    char *paths[FILES_MAX];
    uint32_t count = list(context.arena, "tests/kernel/good", paths);
    assert_true(count >= 7);
    for (uint32_t i = 0; i < count; i++) {
        Str text = text_of(context.arena, paths[i]);
        Kernel *kernel = read_text(&context, text);
        if (!kernel)
            fail_msg("%s: %s", paths[i],
                     diags_render(&context.diags, context.arena, DIAG_PLAIN).at);
        assert_string_equal(krn_print(kernel, context.arena).at, text.at);
    }
    context_free(&context);
}

// "E6021 4:3 message" lines, and "help: …".
static Str describe(Context *context) {
    StrBuf out = {.arena = context->arena};
    for (uint32_t i = 0; i < context->diags.all.count; i++) {
        const Diag *d = context->diags.all.at[i];
        Span span = d->labels.at[0].span;
        Position at = source_position(source_get(&context->sources, span.source), span.begin);
        buf_format(&out, "//! %s %u:%u %s\n", diag_code_text(d->code), at.line, at.column,
                   d->message.at);
        if (d->help.size)
            buf_format(&out, "//! help: %s\n", d->help.at);
    }
    return buf_str(&out);
}

static void refuses_what_breaks_a_rule(void **state) {
    (void)state;
    Heap heap = {0};
    Arena *arena = arena_new(&heap, "test");
    char *paths[FILES_MAX];
    uint32_t count = list(arena, "tests/kernel/bad", paths), wrong = 0, form = 0, rule = 0;
    assert_true(count >= 70);
    for (uint32_t i = 0; i < count; i++) {
        Context context = {0};
        context_init(&context);
        Str text = text_of(context.arena, paths[i]);
        bool accepted = read_text(&context, text) != NULL;
        Str got = describe(&context);
        form += strstr(got.at, "E6020") != NULL;
        rule += strstr(got.at, "E6021") != NULL;
        if (accepted || got.size == 0 || strncmp(text.at, got.at, got.size) != 0 ||
            strncmp(text.at + got.size, "//!", 3) == 0) {
            print_error("%s\n%s", paths[i], got.at);
            wrong++;
        }
        context_free(&context);
    }
    heap_free(&heap);
    assert_int_equal(wrong, 0);
    assert_true(form >= 20 && rule >= 50);
}

static uint64_t next_random(uint64_t *state) { // SplitMix64, Steele et al. 2014
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

// Cut anywhere, or with a few bytes or words exchanged: an answer, never a crash; and what is
// accepted still prints as it reads.
static void survives_any_bytes(void **state) {
    (void)state;
    static const char *const words[] = {
        "%0",   "%7",    "f32x4", "0",  "-1",   "9223372036854775807", "}", "{", "[", "next",
        "loop", "split", "tail",  "by", "const"};
    uint64_t random = 1;
    char *paths[FILES_MAX];
    Heap heap = {0};
    Arena *arena = arena_new(&heap, "test");
    uint32_t count = list(arena, "tests/kernel/good", paths);
    for (uint32_t round = 0; round < 3000; round++) {
        Context context = {0};
        context_init(&context);
        Str text = text_of(context.arena, paths[round % count]);
        char *at = (char *)text.at;
        if (round % 3 == 0)
            text.size = (uint32_t)(next_random(&random) % (text.size + 1));
        for (uint64_t n = next_random(&random) % 4; n > 0 && text.size > 0; n--) {
            const char *word = words[next_random(&random) % COUNT_OF(words)];
            uint32_t to = (uint32_t)(next_random(&random) % text.size);
            if (n % 2)
                at[to] = (char)next_random(&random);
            else
                memcpy(at + to, word, MIN(strlen(word), text.size - to));
        }
        text = str_copy(context.arena, text.at, text.size);
        Kernel *kernel = read_text(&context, text);
        assert_true((kernel != NULL) == (context.diags.errors == 0));
        diags_render(&context.diags, context.arena, DIAG_PLAIN);
        if (kernel) {
            Str once = krn_print(kernel, context.arena);
            Kernel *again = read_text(&context, once);
            assert_non_null(again);
            assert_string_equal(krn_print(again, context.arena).at, once.at);
        }
        context_free(&context);
    }
    heap_free(&heap);
}

// ---- tables that no text can spell ----------------------------------------------------------

static Kernel *small_kernel(Context *context) {
    Str text = text_of(context->arena, "tests/kernel/good/dot.krn");
    Kernel *kernel = read_text(context, text);
    assert_non_null(kernel);
    return kernel;
}

static void expect_fault(Context *context, const Kernel *kernel, const char *expected) {
    Str errors;
    assert_false(krn_verify(kernel, context->arena, &errors));
    assert_string_equal(errors.at, expected);
}

static void refuses_broken_tables(void **state) {
    (void)state;
    Context context = {0};
    context_init(&context);
    Kernel *kernel = small_kernel(&context);
    kernel->insts.at[1].op = KRN_OP_COUNT;
    expect_fault(&context, kernel, "%1: there is no such operation\n");
    kernel = small_kernel(&context);
    kernel->insts.at[1].type.lanes = 0;
    expect_fault(&context, kernel, "%1: there is no such type\n");
    kernel = small_kernel(&context);
    kernel->insts.at[4].address = 7;
    expect_fault(&context, kernel, "%4: there is no such address or buffer\n");
    kernel = small_kernel(&context);
    kernel->insts.at[5].flags = KRN_STREAM;
    expect_fault(&context, kernel, "%5: a flag that `add` has not\n");
    kernel = small_kernel(&context);
    kernel->insts.at[5].b = 100;
    expect_fault(&context, kernel, "%5: reads %100, which is not a value made before\n");
    kernel = small_kernel(&context);
    kernel->insts.at[2].loop = 9;
    expect_fault(&context, kernel, "%2: there is no such loop\n");
    kernel = small_kernel(&context);
    kernel->insts.at[2].loop = 0;
    expect_fault(&context, kernel, "%2: the table of loops does not fit it\n");
    kernel = small_kernel(&context);
    kernel->insts.at[3].carry = 1;
    expect_fault(&context, kernel, "%2: the `carry` instructions behind it are out of order\n");
    kernel = small_kernel(&context);
    kernel->insts.count = 9;
    expect_fault(&context, kernel, "%0: the loop is not closed\n");
    kernel = small_kernel(&context);
    kernel->insts.at[4].op = KRN_CARRY;
    expect_fault(&context, kernel, "%10: a `carry` or `result` stands outside its loop's head\n");
    kernel = small_kernel(&context);
    kernel->split_count = 63;
    expect_fault(&context, kernel, "%0: the kernel's split count is not that of its split loops\n");
    kernel = small_kernel(&context);
    KrnInst swap = kernel->insts.at[6];
    kernel->insts.at[6] = kernel->insts.at[9];
    kernel->insts.at[9] = swap;
    kernel->loops.at[0].last = 6;
    kernel->loops.at[1].last = 9;
    kernel->carries.count = 0;
    kernel->loops.at[1].count = 0;
    expect_fault(&context, kernel, "%6: closes a loop that is not the innermost open one\n");
    context_free(&context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_what_it_reads),
        cmocka_unit_test(refuses_what_breaks_a_rule),
        cmocka_unit_test(survives_any_bytes),
        cmocka_unit_test(refuses_broken_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
