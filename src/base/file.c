// Files and the progress line. A file appears under its name only when all of it is on disk: it is
// written under a temporary name in the same folder, flushed and renamed. Devices and pipes are
// written to directly; a symbolic link keeps pointing where it did.
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static Str reason(Arena *arena, int error) {
    switch (error) {
    case ENOENT:
        return STR("no such file");
    case EISDIR:
        return STR("is a folder");
    case ENOTDIR:
        return STR("a part of the path is not a folder");
    case EACCES:
        return STR("permission denied");
    default:
        return str_format(arena, "%s", strerror(error));
    }
}

static bool read_all(Arena *arena, int file, size_t expected, Str *text, Str *error) {
    size_t capacity = expected + 1, size = 0;
    char *at = arena_alloc(arena, capacity + 1);
    for (;;) {
        if (size == capacity) { // longer than it said: a pipe, or a file that grew
            at = arena_grow(arena, at, capacity + 1, 2 * capacity + 1);
            capacity *= 2;
        }
        ssize_t got = read(file, at + size, capacity - size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            *error = reason(arena, errno);
            return false;
        }
        if (got == 0)
            break;
        size += (size_t)got;
        if (size >= UINT32_MAX) {
            *error = STR("is larger than 4 GiB");
            return false;
        }
    }
    at[size] = 0;
    *text = (Str){at, (uint32_t)size};
    return true;
}

bool file_read(Arena *arena, const char *path, Str *text, Str *error) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (file < 0 || fstat(file, &info) != 0) {
        *error = reason(arena, errno);
        if (file >= 0)
            close(file);
        return false;
    }
    bool read = false;
    if (S_ISDIR(info.st_mode))
        *error = reason(arena, EISDIR);
    else if (info.st_size >= UINT32_MAX)
        *error = STR("is larger than 4 GiB");
    else
        read = read_all(arena, file, (size_t)info.st_size, text, error);
    close(file);
    return read;
}

bool file_exists(const char *path) {
    return access(path, F_OK) == 0;
}

bool file_same(const char *a, const char *b) {
    struct stat one, other;
    if (strcmp(a, b) == 0)
        return true;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

bool file_is_special(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

bool file_make_folders(Arena *arena, const char *path) {
    char *folder = arena_copy(arena, path, strlen(path) + 1);
    for (char *slash = folder; (slash = strchr(slash, '/')); slash++) {
        if (slash == folder)
            continue;
        *slash = 0;
        struct stat info;
        if (mkdir(folder, 0777) != 0 && (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode)))
            return false;
        *slash = '/';
    }
    return true;
}

// ---- writing --------------------------------------------------------------------------------

// A new file beside `path`, with the permissions that any new file of the user's has.
static int open_temporary(Arena *arena, Str path, Str *name) {
    for (uint32_t attempt = 0;; attempt++) {
        *name = str_format(arena, "%s.%ld-%u.part", path.at, (long)getpid(), attempt);
        int file = open(name->at, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file >= 0 || errno != EEXIST)
            return file;
    }
}

static void close_open(void *data) {
    FileOpen *open = data;
    if (!open->file)
        return;
    fclose(open->file);
    open->file = NULL;
    if (open->temporary.size > 0)
        unlink(open->temporary.at);
}

bool file_begin(Arena *arena, const char *path, FileWriter *writer, Str *error) {
    *writer = (FileWriter){.open = arena_new_of(arena, FileOpen),
                           .path = str_copy(arena, path, strlen(path))};
    arena_at_end(arena, close_open, writer->open);
    struct stat info;
    bool exists = stat(path, &info) == 0;
    if (exists && S_ISDIR(info.st_mode)) {
        *error = reason(arena, EISDIR);
        return false;
    }
    int file;
    if (exists && !S_ISREG(info.st_mode)) {
        file = open(path, O_WRONLY | O_CLOEXEC);
    } else {
        char target[PATH_MAX];
        if (exists && realpath(path, target))
            writer->path = str_copy(arena, target, strlen(target));
        file = open_temporary(arena, writer->path, &writer->open->temporary);
    }
    writer->open->file = file < 0 ? NULL : fdopen(file, "wb");
    if (writer->open->file)
        return true;
    *error = errno == ENOENT ? STR("no such folder") : reason(arena, errno);
    if (file >= 0)
        close(file);
    return false;
}

void file_put(FileWriter *writer, const void *at, size_t size) {
    if (size > 0 && !writer->failure && fwrite(at, 1, size, writer->open->file) != size)
        writer->failure = errno;
}

// The rename itself reaches the disk with the folder.
static void flush_folder(Arena *arena, Str path) {
    const char *slash = strrchr(path.at, '/');
    Str folder = slash ? str_copy(arena, path.at, (size_t)(slash - path.at) + 1) : STR(".");
    int file = open(folder.at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0)
        return;
    fsync(file); // some file systems refuse this; the file's own contents are safe already
    close(file);
}

bool file_commit(Arena *arena, FileWriter *writer, Str *error) {
    FileOpen *open = writer->open;
    bool beside = open->temporary.size > 0;
    int status = writer->failure;
    if (!status && (fflush(open->file) != 0 || (beside && fsync(fileno(open->file)) != 0)))
        status = errno;
    if (fclose(open->file) != 0 && !status)
        status = errno;
    open->file = NULL;
    if (!status && beside && rename(open->temporary.at, writer->path.at) != 0)
        status = errno;
    if (status) {
        if (beside)
            unlink(open->temporary.at);
        *error = reason(arena, status);
        return false;
    }
    if (beside)
        flush_folder(arena, writer->path);
    return true;
}

void file_abandon(FileWriter *writer) {
    close_open(writer->open);
}

bool file_write(Arena *arena, const char *path, const void *at, size_t size, Str *error) {
    FileWriter writer;
    if (!file_begin(arena, path, &writer, error))
        return false;
    file_put(&writer, at, size);
    return file_commit(arena, &writer, error);
}

// "NAME.PID-N.part" of a process that is no more.
static bool is_left_over(const char *file, const char *name) {
    size_t size = strlen(name);
    char *end;
    if (strncmp(file, name, size) != 0 || file[size] != '.')
        return false;
    long pid = strtol(file + size + 1, &end, 10);
    if (pid < 2 || *end != '-')
        return false;
    strtoul(end + 1, &end, 10);
    return strcmp(end, ".part") == 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

void file_sweep(Arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    Str folder = slash ? str_copy(arena, path, (size_t)(slash - path) + 1) : STR("./");
    DIR *files = opendir(folder.at);
    if (!files)
        return;
    for (struct dirent *file; (file = readdir(files));)
        if (is_left_over(file->d_name, name))
            unlink(str_format(arena, "%s%s", folder.at, file->d_name).at);
    closedir(files);
}

// ---- progress -------------------------------------------------------------------------------

double clock_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void progress_begin(Progress *progress, const char *what, bool quiet) {
    const char *terminal = getenv("TERM");
    bool capable = isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
    *progress = (Progress){.what = what, .started = clock_seconds(), .enabled = capable && !quiet};
}

// Cuts the text to the terminal's columns, since a wrapped line could not be erased.
static void cut_to_terminal(char *text) {
    struct winsize window;
    uint32_t columns = 79;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1)
        columns = window.ws_col - 1u;
    for (uint32_t shown = 0; *text; text++) {
        bool starts = ((unsigned char)*text & 0xC0) != 0x80; // a code point, not its later bytes
        if (starts && shown++ == columns) {
            *text = 0;
            return;
        }
    }
}

void progress_update(Progress *progress, uint64_t done, uint64_t total, const char *detail) {
    enum { LINE = 512 };
    if (!progress->enabled)
        return;
    double now = clock_seconds(), elapsed = now - progress->started;
    if (elapsed < 0.5 || (progress->visible && now - progress->shown < 0.1))
        return;
    char line[LINE], left[32] = "";
    if (total > 0 && done > 0 && done < total) {
        double seconds = elapsed * (double)(total - done) / (double)done;
        snprintf(left, sizeof left, seconds < 90 ? ", %.0f s left" : ", %.0f min left",
                 seconds < 90 ? seconds : seconds / 60);
    }
    if (total > 0)
        snprintf(line, sizeof line, "%s %.0f %%%s  %s", progress->what,
                 100 * (double)done / (double)total, left, detail ? detail : "");
    else
        snprintf(line, sizeof line, "%s %.0f s  %s", progress->what, elapsed, detail ? detail : "");
    cut_to_terminal(line);
    fprintf(stderr, "\r\033[K%s", line);
    fflush(stderr);
    progress->visible = true;
    progress->shown = now;
}

void progress_end(Progress *progress) {
    if (progress->visible) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    progress->visible = false;
    progress->enabled = false;
}
