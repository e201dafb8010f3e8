// The disk cache and the loader: what is found again, what damage does, several processes at once,
// and that cached code needs no LLVM. Compiling happens in child processes throughout, so that
// this process maps no LLVM.
#include "native_support.h"

#include "base/file.h"
#include "native/loader.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/wait.h>

enum { KERNELS = 12, SIZE = 40 };

// out = in · factor + 1, a different kernel for each factor.
static Kernel *scale_kernel(Fixture *f, double factor, const char *name) {
    Kernel *kernel = krn_new(f->arena, f->context.names, name);
    KrnBuilder b = krn_builder(kernel, f->context.names);
    uint32_t in = krn_buffer(&b, "in", F32, SIZE, 0, KRN_IN);
    uint32_t out = krn_buffer(&b, "out", F32, SIZE, 0, KRN_OUT);
    KrnType type = krn_type(KRN_F32, 8);
    KrnValue by = krn_const_float(&b, type, factor), one = krn_const_float(&b, type, 1);
    KrnValue i = krn_loop(&b, 0, SIZE, 8, KRN_SPLIT, 0, NULL, NULL);
    KrnIndex from = krn_index(in, 0), to = krn_index(out, 0);
    krn_index_add(&from, 1, i);
    krn_index_add(&to, 1, i);
    krn_store(&b, &to, 1, krn_op3(&b, KRN_FMA, krn_load(&b, &from, 8, 1), by, one), false);
    krn_end(&b, 0, NULL, NULL);
    return kernel;
}

static void make_kernels(Fixture *f, Kernel **kernels) {
    for (int i = 0; i < KERNELS; i++)
        kernels[i] = scale_kernel(f, i, "group");
}

static bool right(NatFunction code, double factor) {
    float in[SIZE], out[SIZE];
    for (int i = 0; i < SIZE; i++)
        in[i] = (float)i;
    code((void *[]){in, out}, 0, SIZE / 8);
    for (int i = 0; i < SIZE; i++)
        if (out[i] != (float)(i * factor + 1))
            return false;
    return true;
}

// Compiles or loads all kernels on the fixture's folder; false unless all are right.
static bool compile_all(Fixture *f, NatStatistics *statistics) {
    Kernel *kernels[KERNELS];
    NatFunction code[KERNELS];
    make_kernels(f, kernels);
    Native *native = fixture_native(f, 0, NULL, false);
    bool done = nat_compile(native, KERNELS, kernels, code);
    for (int i = 0; done && i < KERNELS; i++)
        done = right(code[i], i);
    *statistics = nat_statistics(native);
    nat_free(native);
    return done;
}

static pid_t start(int (*job)(Fixture *f), Fixture *f) {
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(job(f));
    return child;
}

static int finish(pid_t child) {
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int in_child(int (*job)(Fixture *f), Fixture *f) {
    return finish(start(job, f));
}

// Exit status: kernels compiled, 100 when something is wrong.
static int compile_job(Fixture *f) {
    NatStatistics statistics;
    if (!compile_all(f, &statistics) || statistics.compiled + statistics.loaded != KERNELS)
        return 100;
    return (int)statistics.compiled;
}

static bool maps_llvm(void) {
    char line[512];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        found |= strstr(line, "libLLVM") || strstr(line, "libpresk_llvm");
    fclose(maps);
    return found;
}

static int compile_sees_llvm(Fixture *f) {
    NatStatistics statistics;
    return compile_all(f, &statistics) && maps_llvm() ? 0 : 1;
}

static void cached_code_maps_no_llvm(void **state) {
    (void)state;
    Fixture f;
    NatStatistics statistics;
    fixture_open(&f);
    assert_int_equal(in_child(compile_sees_llvm, &f), 0);
    assert_true(compile_all(&f, &statistics));
    assert_int_equal(statistics.loaded, KERNELS);
    assert_int_equal(statistics.compiled, 0);
    assert_false(maps_llvm());
    fixture_close(&f);
}

// No mapping may be writable and executable at once.
static void no_memory_is_writable_and_executable(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f);
    assert_int_equal(in_child(compile_job, &f), KERNELS);
    Kernel *kernel = scale_kernel(&f, 1, "group");
    Native *native = fixture_native(&f, 0, NULL, false);
    NatFunction code;
    assert_true(nat_compile(native, 1, &kernel, &code));
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512], access[8];
    bool found = false;
    while (fgets(line, sizeof line, maps)) {
        unsigned long long from, to;
        assert_int_equal(sscanf(line, "%llx-%llx %7s", &from, &to, access), 3);
        assert_null(strstr(access, "wx"));
        found |= (uintptr_t)code >= from && (uintptr_t)code < to && strchr(access, 'x');
    }
    fclose(maps);
    assert_true(found);
    nat_free(native);
    fixture_close(&f);
}

static void processes_share_a_folder(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f);
    pid_t children[4];
    for (size_t i = 0; i < COUNT_OF(children); i++)
        children[i] = start(compile_job, &f);
    for (size_t i = 0; i < COUNT_OF(children); i++)
        assert_in_range(finish(children[i]), 0, KERNELS);
    assert_int_equal(in_child(compile_job, &f), 0);
    fixture_close(&f);
}

// ---- damage -------------------------------------------------------------------------------------

typedef struct Files {
    Vec(Str) paths;
} Files;

static Files cached_files(Fixture *f) {
    Files files = {0};
    Str folder = str_format(f->arena, "%s/native", f->folder);
    DIR *listing = opendir(folder.at);
    assert_non_null(listing);
    for (struct dirent *entry; (entry = readdir(listing));)
        if (entry->d_name[0] != '.')
            vec_push(f->arena, &files.paths,
                     str_format(f->arena, "%s/%s", folder.at, entry->d_name));
    closedir(listing);
    return files;
}

static Str contents(Fixture *f, const char *path) {
    Str text, error;
    assert_true(file_read(f->arena, path, &text, &error));
    return text;
}

static void overwrite(const char *path, const void *at, size_t size) {
    int file = open(path, O_WRONLY | O_TRUNC);
    assert_true(file >= 0);
    assert_int_equal(write(file, at, size), size);
    close(file);
}

// Each file in turn is cut, or has a byte changed, at a place of its own: all are compiled anew.
static void damaged_files_are_compiled_anew(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f);
    assert_int_equal(in_child(compile_job, &f), KERNELS);
    Files files = cached_files(&f);
    assert_int_equal(files.paths.count, KERNELS);
    for (int cut = 0; cut < 2; cut++) {
        for (uint32_t i = 0; i < KERNELS; i++) {
            Str text = contents(&f, files.paths.at[i].at);
            char *copy = arena_copy(f.arena, text.at, text.size);
            size_t place = (size_t)text.size * i / KERNELS;
            copy[place] ^= 1;
            overwrite(files.paths.at[i].at, copy, cut ? place : text.size);
        }
        assert_int_equal(in_child(compile_job, &f), KERNELS);
        assert_int_equal(in_child(compile_job, &f), 0);
    }
    fixture_close(&f);
}

// A file that is whole but belongs to another kernel (two keys of one hash) is not taken.
static void a_file_of_another_kernel_is_not_taken(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f);
    assert_int_equal(in_child(compile_job, &f), KERNELS);
    Files files = cached_files(&f);
    Str first = contents(&f, files.paths.at[0].at);
    for (uint32_t i = 1; i < KERNELS; i++)
        overwrite(files.paths.at[i].at, first.at, first.size);
    assert_int_equal(in_child(compile_job, &f), KERNELS - 1);
    fixture_close(&f);
}

static Str an_object(Fixture *f) {
    assert_int_equal(in_child(compile_job, f), KERNELS);
    Str text = contents(f, cached_files(f).paths.at[0].at);
    const char *elf = memmem(text.at, text.size, ELFMAG, SELFMAG);
    assert_non_null(elf);
    return str_copy(f->arena, elf, (size_t)(text.at + text.size - elf));
}

// Without any checksum: every byte of an object changed, and every length of it, either loads or is
// refused; nothing is read or written out of bounds.
static void the_loader_survives_any_damage(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f);
    Str object = an_object(&f);
    NatCode code;
    char error[128] = "";
    assert_true(nat_load(object.at, object.size, &code, error, sizeof error));
    nat_unload(&code);
    uint32_t refused = 0;
    for (uint32_t i = 0; i < object.size; i++) {
        static const uint8_t changes[] = {0x01, 0x80, 0xFF};
        for (size_t c = 0; c < COUNT_OF(changes); c++) {
            char *copy = malloc(object.size);
            memcpy(copy, object.at, object.size);
            copy[i] = (char)(copy[i] ^ changes[c]);
            refused += !nat_load(copy, object.size, &code, error, sizeof error);
            nat_unload(&code);
            free(copy);
        }
        char *part = malloc(i + 1);
        memcpy(part, object.at, i);
        if (nat_load(part, i, &code, error, sizeof error))
            nat_unload(&code);
        free(part);
    }
    assert_true(refused > 100);
    fixture_close(&f);
}

static void unknown_relocations_are_refused(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f);
    Str object = an_object(&f);
    char *copy = arena_copy(f.arena, object.at, object.size);
    Elf64_Ehdr head;
    memcpy(&head, copy, sizeof head);
    uint32_t changed = 0;
    for (uint32_t i = 0; i < head.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, copy + head.e_shoff + i * sizeof section, sizeof section);
        for (uint64_t at = 0; section.sh_type == SHT_RELA && at < section.sh_size;
             at += sizeof(Elf64_Rela), changed++) {
            Elf64_Rela entry;
            memcpy(&entry, copy + section.sh_offset + at, sizeof entry);
            entry.r_info = ELF64_R_INFO(ELF64_R_SYM(entry.r_info), R_X86_64_TPOFF32);
            memcpy(copy + section.sh_offset + at, &entry, sizeof entry);
        }
    }
    assert_true(changed > 0);
    NatCode code;
    char error[128];
    assert_false(nat_load(copy, object.size, &code, error, sizeof error));
    assert_non_null(strstr(error, "unknown kind of relocation"));
    fixture_close(&f);
}

// ---- keys ---------------------------------------------------------------------------------------

static int keys_job(Fixture *f) {
    Native *native = fixture_native(f, 0, NULL, false);
    Kernel *kernels[] = {scale_kernel(f, 2, "group"), scale_kernel(f, 3, "group"),
                         scale_kernel(f, 2, "group"), scale_kernel(f, 2, "other")};
    NatFunction code[4], again[4];
    if (!nat_compile(native, 4, kernels, code) || !nat_compile(native, 4, kernels, again))
        return 1;
    bool ok = code[0] == code[2] && code[0] != code[1] && code[0] != code[3] &&
              memcmp(code, again, sizeof code) == 0 && right(code[0], 2) && right(code[1], 3) &&
              right(code[3], 2) && nat_statistics(native).compiled == 3;
    nat_free(native);
    // Another target has objects of its own.
    native = fixture_native(f, 128, "x86-64", false);
    ok = ok && nat_compile(native, 4, kernels, code) && right(code[1], 3) &&
         nat_statistics(native).compiled == 3;
    nat_free(native);
    return ok ? 0 : 2;
}

static void equal_texts_share_code_and_others_do_not(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f);
    assert_int_equal(in_child(keys_job, &f), 0);
    fixture_close(&f);
}

// ---- diagnostics --------------------------------------------------------------------------------

static int missing_library_job(Fixture *f) {
    setenv("PRESK_LIB", f->folder, 1);
    Native *native = fixture_native(f, 0, NULL, true);
    Kernel *kernel = scale_kernel(f, 2, "group");
    NatFunction code;
    bool done = nat_compile(native, 1, &kernel, &code);
    bool told = f->context.diags.all.count == 1 && f->context.diags.all.at[0]->code == DIAG_E6101 &&
                strstr(f->context.diags.all.at[0]->message.at, "libpresk_llvm.so");
    bool empty = nat_text(native, kernel, NAT_LLVM, f->arena).size == 0;
    nat_free(native);
    return !done && !code && told && empty ? 0 : 1;
}

static void a_missing_library_is_a_diagnostic(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f);
    assert_int_equal(in_child(missing_library_job, &f), 0);
    fixture_close(&f);
}

// A kernel that breaks the rules (a sum of values of two types), which LLVM's verifier refuses; the
// kernels beside it can still be compiled afterwards.
static int refused_job(Fixture *f) {
    Kernel *kernels[] = {scale_kernel(f, 2, "group"), scale_kernel(f, 3, "wrong")};
    KrnInst *load = NULL;
    for (uint32_t i = 0; i < kernels[1]->insts.count; i++)
        if (kernels[1]->insts.at[i].op == KRN_LOAD)
            load = &kernels[1]->insts.at[i];
    load->type.lanes = 4;
    Native *native = fixture_native(f, 0, NULL, true);
    NatFunction code[2];
    bool refused = !nat_compile(native, 2, kernels, code) && !code[0] && !code[1];
    bool told = f->context.diags.all.count == 1 && f->context.diags.all.at[0]->code == DIAG_E6102 &&
                strstr(f->context.diags.all.at[0]->message.at, "wrong");
    bool again = nat_compile(native, 1, kernels, code) && right(code[0], 2);
    nat_free(native);
    return refused && told && again ? 0 : 1;
}

static void a_refused_kernel_is_a_diagnostic(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f);
    assert_int_equal(in_child(refused_job, &f), 0);
    fixture_close(&f);
}

static int unwritable_job(Fixture *f) {
    snprintf(f->folder, sizeof f->folder, "/proc/no-such-folder");
    NatStatistics statistics;
    bool done = compile_all(f, &statistics);
    return done && f->context.diags.all.count == 1 && f->context.diags.all.at[0]->code == DIAG_W0601
               ? 0
               : 1;
}

static void an_unwritable_cache_is_one_warning(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f);
    assert_int_equal(in_child(unwritable_job, &f), 0);
    fixture_close(&f);
}

static void too_wide_a_target_is_a_diagnostic(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f);
    NatOptions options = {f.folder, true, 2 * nat_machine_target(), 1, NULL};
    assert_null(nat_new(&f.context, f.arena, &options));
    assert_int_equal(f.context.diags.all.count, 1);
    assert_int_equal(f.context.diags.all.at[0]->code, DIAG_E6103);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cached_code_maps_no_llvm),
        cmocka_unit_test(no_memory_is_writable_and_executable),
        cmocka_unit_test(processes_share_a_folder),
        cmocka_unit_test(damaged_files_are_compiled_anew),
        cmocka_unit_test(a_file_of_another_kernel_is_not_taken),
        cmocka_unit_test(the_loader_survives_any_damage),
        cmocka_unit_test(unknown_relocations_are_refused),
        cmocka_unit_test(equal_texts_share_code_and_others_do_not),
        cmocka_unit_test(a_missing_library_is_a_diagnostic),
        cmocka_unit_test(a_refused_kernel_is_a_diagnostic),
        cmocka_unit_test(an_unwritable_cache_is_one_warning),
        cmocka_unit_test(too_wide_a_target_is_a_diagnostic),
    };
    return cmocka_run_group_tests_name("native cache", tests, NULL, NULL);
}
