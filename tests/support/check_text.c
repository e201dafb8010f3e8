#include "support/check_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

void check_text(Checked *checked, const char *text) {
    memset(checked, 0, sizeof *checked);
    context_init(&checked->context);
    Context *context = &checked->context;
    uint32_t source = source_add(&context->sources, STR("test.psk"), str_of(text));
    checked->program = chk_source(context, context->arena, source, 0, NULL);
    if (!checked->program)
        return;
    Str errors;
    if (!core_verify(checked->program->core, context->arena, &errors))
        fail_msg("%s\n%s", errors.at, core_print(checked->program->core, context->arena).at);
}

void check_good(Checked *checked, const char *text) {
    check_text(checked, text);
    if (!checked->program)
        fail_msg("%s",
                 diags_render(&checked->context.diags, checked->context.arena, DIAG_PLAIN).at);
}

void check_end(Checked *checked) {
    context_free(&checked->context);
}

void expect_function(const Checked *checked, const char *name, const char *expected) {
    CoreProgram *core = checked->program->core;
    CoreFnId fn = core_fn_find(core, str_of(name));
    assert_int_not_equal(fn, 0);
    assert_string_equal(core_print_fn(core, fn, checked->context.arena).at, expected);
}

void expect_core(const char *text, const char *name, const char *expected) {
    Checked checked;
    check_good(&checked, text);
    expect_function(&checked, name, expected);
    check_end(&checked);
}

void expect_codes(const char *text, const char *codes) {
    Checked checked;
    check_text(&checked, text);
    const Diags *diags = &checked.context.diags;
    StrBuf buf = {.arena = checked.context.arena};
    for (uint32_t i = 0; i < diags->all.count; i++) {
        if (i)
            buf_char(&buf, ' ');
        buf_text(&buf, diag_code_text(diags->all.at[i]->code));
    }
    Str found = buf_str(&buf);
    assert_string_equal(found.at, codes);
    check_end(&checked);
}
