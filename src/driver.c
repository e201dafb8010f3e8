#include "driver.h"

#include "base/file.h"

typedef struct Pass {
    const char *name;
    void (*run)(CoreProgram *core);
} Pass;

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

void presk_passes(CoreProgram *core, Arena *arena, PreskCompiled *compiled) {
    verify(core, arena, "elaboration");
    for (uint32_t i = 0; i < COUNT_OF(passes); i++) {
        double started = clock_seconds();
        passes[i].run(core);
        timed(compiled, passes[i].name, started);
        verify(core, arena, passes[i].name);
    }
}

bool presk_compile(Context *context, Arena *arena, const char *path, uint32_t const_count,
                   const ChkConst *consts, PreskCompiled *compiled) {
    *compiled = (PreskCompiled){0};
    double started = clock_seconds();
    compiled->program = chk_program(context, arena, path, const_count, consts);
    timed(compiled, "check", started);
    if (!compiled->program)
        return false;
    presk_passes(compiled->program->core, arena, compiled);
    return true;
}
