#include "driver.h"

#include "ad/ad.h"
#include "base/file.h"

typedef struct Pass {
    const char *name;
    void (*run)(CoreProgram *core);
} Pass;

// The first pass, the only one that a program can fail: gradients get their bodies, so that all
// others see them.
static const char *const differentiation = "differentiation";

// The pass list. The partition comes before the dead code goes: a dead outside reader stays a
// boundary, since a group's members keep their arithmetic type and so are part of what a program
// computes.
static const Pass passes[] = {
    {"fold", core_fold},
    {"partition", core_partition},
    {"dead code", core_dce},
};

static void timed(PreskCompiled *compiled, const char *pass, double started) {
    check_that(compiled->passes < PRESK_PASSES_MAX);
    compiled->timing[compiled->passes++] = (PreskTiming){pass, clock_seconds() - started};
}

static void verify(CoreProgram *core, Arena *arena, const char *after) {
    Str errors;
    if (!core_verify(core, arena, &errors))
        bug("Core does not verify after %s:\n%s\n%s", after, errors.at, core_print(core, arena).at);
}

bool presk_passes(CoreProgram *core, Arena *arena, PreskCompiled *compiled) {
    verify(core, arena, "elaboration");
    double begun = clock_seconds();
    bool good = ad_gradients(core);
    timed(compiled, differentiation, begun);
    if (!good)
        return false;
    verify(core, arena, differentiation);
    for (uint32_t i = 0; i < COUNT_OF(passes); i++) {
        double started = clock_seconds();
        passes[i].run(core);
        timed(compiled, passes[i].name, started);
        verify(core, arena, passes[i].name);
    }
    return true;
}

// Gradients that the program does not call: of the training block's loss, and of F where the entry
// is F.grad.
static void declare_gradients(PreskCompiled *compiled, const char *entry) {
    const ChkProgram *program = compiled->program;
    CoreProgram *core = program->core;
    if (program->training.present && program->training.loss)
        compiled->gradient = core_gradient_declare(core, program->training.loss);
    Str name = str_of(entry ? entry : "");
    if (name.size <= 5 || memcmp(name.at + name.size - 5, ".grad", 5) != 0)
        return;
    CoreFnId fn = core_fn_find(core, (Str){name.at, name.size - 5});
    if (fn && core_fn(core, fn)->params)
        core_gradient_declare(core, fn);
}

bool presk_compile(Context *context, Arena *arena, const char *path, uint32_t const_count,
                   const ChkConst *consts, const char *entry, PreskCompiled *compiled) {
    *compiled = (PreskCompiled){0};
    double started = clock_seconds();
    compiled->program = chk_program(context, arena, path, const_count, consts);
    timed(compiled, "check", started);
    if (!compiled->program)
        return false;
    compiled->functions = compiled->program->core->fns.count - 1;
    declare_gradients(compiled, entry);
    return presk_passes(compiled->program->core, arena, compiled);
}
