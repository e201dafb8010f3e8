// Files: read whole, write beside and rename, so that nothing is ever half-written.
#ifndef PRESK_BASE_FILE_H
#define PRESK_BASE_FILE_H

#include "base/text.h"
#include <stdio.h>

// Reads a whole file into the arena. On failure returns false and *error says why ("no such
// file", "is a folder", …).
bool file_read(Arena *arena, const char *path, Str *text, Str *error);
bool file_exists(const char *path);
bool file_same(const char *a, const char *b); // one name, or two of one file
bool file_is_special(const char *path);       // it exists and is no file of bytes: a pipe, a device
bool file_make_folders(Arena *arena, const char *path); // the folders above `path`

// A file being written under a temporary name in the same folder. If the arena goes before it is
// committed or abandoned, it is abandoned.
typedef struct FileOpen {
    FILE *file; // null: closed
    Str temporary;
} FileOpen;
typedef struct FileWriter {
    FileOpen *open; // in the arena
    Str path;
    int failure; // errno of the first write that failed; 0: none
} FileWriter;
bool file_begin(Arena *arena, const char *path, FileWriter *writer, Str *error);
void file_put(FileWriter *writer, const void *at, size_t size);
// Flushes to disk, renames to the final path. False (with *error) leaves the old file untouched.
bool file_commit(Arena *arena, FileWriter *writer, Str *error);
void file_abandon(FileWriter *writer);
// Removes what processes that are gone have left beside `path`: a write that was cut off.
void file_sweep(Arena *arena, const char *path);
// The three in one.
bool file_write(Arena *arena, const char *path, const void *at, size_t size, Str *error);

double clock_seconds(void); // monotonic

// A progress line on a terminal for anything that may take over two seconds: shown from the
// second half second on, at most ten times a second, erased at the end; silent when stderr is no
// terminal or `quiet`.
typedef struct Progress {
    const char *what;
    double started, shown;
    bool enabled, visible;
} Progress;
void progress_begin(Progress *progress, const char *what, bool quiet);
void progress_update(Progress *progress, uint64_t done, uint64_t total, const char *detail);
void progress_end(Progress *progress);

#endif
