// The contents of a file in memory: a regular file is mapped, so that samples are read where they
// lie; anything else (a pipe) is read whole.
#include "runtime/data.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool rt_bytes_open(const RtPath *path, RtBytes *bytes) {
    *bytes = (RtBytes){0};
    int file = open(path->path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (file >= 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        bytes->size = (uint64_t)info.st_size;
        bytes->mapping = mmap(NULL, bytes->size, PROT_READ, MAP_PRIVATE, file, 0);
        if (bytes->mapping != MAP_FAILED) {
            close(file);
            bytes->at = bytes->mapping;
            return true;
        }
    }
    if (file >= 0)
        close(file);
    *bytes = (RtBytes){0};
    Str text, error;
    if (!file_read(path->arena, path->path, &text, &error)) {
        diag(path->diags, E5001, path->span, path->path, error.at);
        return false;
    }
    bytes->at = (const unsigned char *)text.at;
    bytes->size = text.size;
    return true;
}

void rt_bytes_close(RtBytes *bytes) {
    if (bytes->mapping)
        munmap(bytes->mapping, bytes->size);
    *bytes = (RtBytes){0};
}
