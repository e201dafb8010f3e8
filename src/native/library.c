// Finding and opening libpresk_llvm.so, the emitter.
#include "native/internal.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static const char LIBRARY[] = "libpresk_llvm.so";

static const Emitter *emitter_in(Arena *arena, const char *path, Str *error) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
        *error = str_format(arena, "%s", dlerror());
        return NULL;
    }
    const Emitter *emitter = dlsym(handle, "presk_emitter");
    if (!emitter || strcmp(emitter->build, PRESK_EMIT_BUILD) != 0) {
        *error = str_format(arena, "%s belongs to another version of presk", path);
        emitter = NULL;
    }
    dlclose(handle); // RTLD_NODELETE: it stays
    return emitter;
}

// The folder of the file that holds this function: the program or libpresk.so.
static Str own_folder(Arena *arena) {
    Dl_info info;
    const char *path = NULL;
    char resolved[4096];
    if (dladdr((const void *)LIBRARY, &info) && info.dli_fname)
        path = realpath(info.dli_fname, resolved);
    if (!path && (path = realpath("/proc/self/exe", resolved)) == NULL)
        return STR("");
    const char *slash = strrchr(path, '/');
    return str_copy(arena, path, slash ? (size_t)(slash - path) : 0);
}

const Emitter *nat_open_emitter(Arena *arena, Str *error) {
    const char *stated = getenv("PRESK_LIB");
    if (stated && *stated) {
        Str path = str_format(arena, "%s/%s", stated, LIBRARY);
        return emitter_in(arena, path.at, error);
    }
    static const char *const places[] = {"", "/..", "/../lib"};
    Str folder = own_folder(arena);
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        Str path = str_format(arena, "%s%s/%s", folder.at, places[i], LIBRARY);
        if (access(path.at, R_OK) == 0)
            return emitter_in(arena, path.at, error);
    }
    return emitter_in(arena, LIBRARY, error);
}
