// Files: read whole; written whole or not at all.
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

typedef struct Place {
    Heap heap;
    Arena *arena;
    char folder[64];
} Place;

static int setup(void **state) {
    Place *place = calloc(1, sizeof *place);
    place->arena = arena_new(&place->heap, "test");
    strcpy(place->folder, "/tmp/presk-file-XXXXXX");
    *state = place;
    return mkdtemp(place->folder) ? 0 : -1;
}

static int teardown(void **state) {
    Place *place = *state;
    Str command = str_format(place->arena, "rm -r %s", place->folder);
    int status = system(command.at);
    heap_free(&place->heap);
    free(place);
    return status;
}

static const char *inside(Place *place, const char *name) {
    return str_format(place->arena, "%s/%s", place->folder, name).at;
}

static uint32_t entries(const char *folder) {
    DIR *dir = opendir(folder);
    uint32_t count = 0;
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2; // "." and ".."
}

static void assert_holds(Place *place, const char *path, const char *expected) {
    Str text, error;
    assert_true(file_read(place->arena, path, &text, &error));
    assert_string_equal(text.at, expected);
    assert_int_equal(text.size, strlen(expected));
}

static void reading(void **state) {
    Place *place = *state;
    Str text, error = {0};
    assert_false(file_read(place->arena, inside(place, "none"), &text, &error));
    assert_string_equal(error.at, "no such file");
    assert_false(file_read(place->arena, place->folder, &text, &error));
    assert_string_equal(error.at, "is a folder");
    const char *path = inside(place, "bytes");
    assert_false(file_exists(path));
    assert_true(file_write(place->arena, path, "a\0b", 3, &error));
    assert_true(file_exists(path));
    assert_true(file_read(place->arena, path, &text, &error));
    assert_int_equal(text.size, 3);
    assert_memory_equal(text.at, "a\0b", 4); // and the NUL behind
    assert_false(file_read(place->arena, inside(place, "bytes/x"), &text, &error));
    assert_string_equal(error.at, "a part of the path is not a folder");
    assert_true(file_write(place->arena, path, NULL, 0, &error));
    assert_holds(place, path, "");
}

// A pipe says nothing of its size.
static void reading_a_pipe(void **state) {
    Place *place = *state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    static char sent[40000];
    memset(sent, 'x', sizeof sent);
    assert_int_equal(write(ends[1], sent, sizeof sent), sizeof sent);
    close(ends[1]);
    Str text, error;
    Str path = str_format(place->arena, "/dev/fd/%d", ends[0]);
    assert_true(file_read(place->arena, path.at, &text, &error));
    assert_int_equal(text.size, sizeof sent);
    assert_memory_equal(text.at, sent, sizeof sent);
    close(ends[0]);
}

static void folders(void **state) {
    Place *place = *state;
    const char *path = inside(place, "a/b/c/file");
    Str error;
    assert_false(file_write(place->arena, path, "x", 1, &error));
    assert_string_equal(error.at, "no such folder");
    assert_true(file_make_folders(place->arena, path));
    assert_true(file_make_folders(place->arena, path)); // again
    assert_true(file_write(place->arena, path, "x", 1, &error));
    assert_false(file_make_folders(place->arena, inside(place, "a/b/c/file/d/e")));
    assert_true(file_make_folders(place->arena, "plain"));
}

static void commit_and_abandon(void **state) {
    Place *place = *state;
    const char *path = inside(place, "f");
    Str error;
    assert_true(file_write(place->arena, path, "old", 3, &error));
    struct stat info;
    stat(path, &info);
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(info.st_mode & 0777, 0666 & ~mask);
    FileWriter writer;
    assert_true(file_begin(place->arena, path, &writer, &error));
    file_put(&writer, "ne", 2);
    fflush(writer.open->file);
    assert_holds(place, path, "old"); // until the commit
    file_abandon(&writer);
    file_abandon(&writer); // twice is fine
    assert_holds(place, path, "old");
    assert_int_equal(entries(place->folder), 1);
    assert_true(file_begin(place->arena, path, &writer, &error));
    file_put(&writer, "ne", 2);
    file_put(&writer, NULL, 0);
    file_put(&writer, "w", 1);
    assert_true(file_commit(place->arena, &writer, &error));
    assert_holds(place, path, "new");
    assert_int_equal(entries(place->folder), 1);
}

// Memory that runs out passes the writer by; what it left goes with its arena.
static void rescued(void **state) {
    Place *place = *state;
    const char *path = inside(place, "f");
    Str error;
    assert_true(file_write(place->arena, path, "old", 3, &error));
    Heap heap = {0};
    jmp_buf rescue;
    heap.rescue = &rescue;
    if (!setjmp(rescue)) {
        Arena *arena = arena_new(&heap, "writing");
        FileWriter writer;
        assert_true(file_begin(arena, path, &writer, &error));
        file_put(&writer, "new", 3);
        assert_int_equal(entries(place->folder), 2);
        arena_alloc(arena, SIZE_MAX);
        fail();
    }
    heap_free(&heap);
    assert_int_equal(entries(place->folder), 1);
    assert_holds(place, path, "old");
}

// A disk that is full: the file-size limit makes writes fail in the same way.
static void failed_write(void **state) {
    Place *place = *state;
    const char *path = inside(place, "f");
    Str error = {0};
    assert_true(file_write(place->arena, path, "old", 3, &error));
    struct rlimit before, tight;
    getrlimit(RLIMIT_FSIZE, &before);
    tight = before;
    tight.rlim_cur = 5000;
    signal(SIGXFSZ, SIG_IGN);
    static char large[20000];
    setrlimit(RLIMIT_FSIZE, &tight);
    bool written = file_write(place->arena, path, large, sizeof large, &error);
    bool small = file_write(place->arena, inside(place, "g"), large, 4900, &error);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_false(written);
    assert_true(small);
    assert_true(error.size > 0);
    assert_holds(place, path, "old");
    assert_int_equal(entries(place->folder), 2);
}

static void special_targets(void **state) {
    Place *place = *state;
    Str error = {0};
    assert_false(file_write(place->arena, place->folder, "x", 1, &error));
    assert_string_equal(error.at, "is a folder");
    assert_true(file_write(place->arena, "/dev/null", "x", 1, &error)); // stays a device
    struct stat info;
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    assert_false(file_write(place->arena, "/dev/full", "x", 1, &error));
    assert_string_equal(error.at, "No space left on device");
    const char *target = inside(place, "target"), *link = inside(place, "link");
    assert_true(file_write(place->arena, target, "old", 3, &error));
    assert_int_equal(symlink("target", link), 0);
    assert_true(file_write(place->arena, link, "new", 3, &error));
    assert_holds(place, target, "new");
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
}

// What stderr gets, when it is no terminal or quiet: nothing.
static void silent_progress(void **state) {
    Place *place = *state;
    const char *path = inside(place, "stderr");
    fflush(stderr);
    int saved = dup(STDERR_FILENO), file = open(path, O_WRONLY | O_CREAT, 0600);
    dup2(file, STDERR_FILENO);
    Progress progress;
    progress_begin(&progress, "testing", false);
    progress.started -= 10;
    progress_update(&progress, 1, 2, "half");
    progress_end(&progress);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(file);
    assert_holds(place, path, "");
    double before = clock_seconds();
    usleep(1000);
    assert_true(clock_seconds() - before >= 0.001);
}

// On a terminal: nothing in the first half second, then a line, then its removal.
static void shown_progress(void **state) {
    (void)state;
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        skip();
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    if (terminal < 0)
        skip();
    setenv("TERM", "xterm", 1);
    fflush(stderr);
    int saved = dup(STDERR_FILENO);
    dup2(terminal, STDERR_FILENO);
    Progress progress;
    progress_begin(&progress, "testing", false);
    progress.started = clock_seconds() + 60; // however slow this machine is
    progress_update(&progress, 1, 4, "early");
    progress.started = clock_seconds() - 600;
    progress_update(&progress, 1, 4, "now");
    progress.shown = clock_seconds() + 60;
    progress_update(&progress, 2, 4, "too soon");
    progress_end(&progress);
    progress_end(&progress);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(terminal);
    char got[256] = "";
    size_t size = 0;
    for (ssize_t more; (more = read(master, got + size, sizeof got - 1 - size)) > 0;)
        size += (size_t)more;
    close(master);
    assert_string_equal(got, "\r\033[Ktesting 25 %, 30 min left  now\r\033[K");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(reading),        TEST(reading_a_pipe), TEST(folders),         TEST(commit_and_abandon),
        TEST(rescued),        TEST(failed_write),   TEST(special_targets), TEST(silent_progress),
        TEST(shown_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
