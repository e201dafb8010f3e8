// The disk cache of compiled kernels: one file each, named by the hash of the key. A file holds
// the whole key, so that two keys of one hash are told apart, and a checksum, so that a damaged or
// cut file counts as absent. Files are written beside and renamed; they are not flushed to the
// disk, because losing one costs a compilation and the checksum finds a half-written one.
#include "base/file.h"
#include "native/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct CacheHead {
    char magic[8];
    uint64_t checksum; // of all that follows
    uint64_t key_size, object_size;
} CacheHead;

static const char magic[8] = "presk o";

Str nat_cache_folder(Arena *arena, const NatOptions *options) {
    if (options->no_cache)
        return STR("");
    if (options->cache_folder)
        return str_of(options->cache_folder);
    const char *folder = getenv("PRESK_CACHE");
    if (folder && *folder)
        return str_format(arena, "%s", folder);
    folder = getenv("XDG_CACHE_HOME");
    if (folder && *folder)
        return str_format(arena, "%s/presk", folder);
    folder = getenv("HOME");
    return folder && *folder ? str_format(arena, "%s/.cache/presk", folder) : STR("");
}

static Str path_of(Arena *arena, Str folder, Str key) {
    return str_format(arena, "%s/native/%016llx.obj", folder.at,
                      (unsigned long long)hash_bytes(key.at, key.size, 0));
}

static uint64_t checksum_of(const CacheHead *head, const char *key, const char *object) {
    uint64_t sum = hash_bytes(&head->key_size, sizeof head->key_size, 1);
    sum = hash_bytes(&head->object_size, sizeof head->object_size, sum);
    sum = hash_bytes(key, head->key_size, sum);
    return hash_bytes(object, head->object_size, sum);
}

bool nat_cache_find(Arena *arena, Str folder, Str key, Str *object) {
    Str file, error;
    CacheHead head;
    if (!file_read(arena, path_of(arena, folder, key).at, &file, &error) || file.size < sizeof head)
        return false;
    memcpy(&head, file.at, sizeof head);
    const char *at = file.at + sizeof head;
    uint64_t rest = file.size - sizeof head;
    if (memcmp(head.magic, magic, sizeof magic) != 0 || head.key_size != key.size ||
        rest < head.key_size || head.object_size != rest - head.key_size ||
        memcmp(at, key.at, key.size) != 0 || head.checksum != checksum_of(&head, at, at + key.size))
        return false;
    *object = (Str){at + key.size, (uint32_t)head.object_size};
    return true;
}

static bool write_all(int file, const void *at, size_t size) {
    for (const char *from = at; size > 0;) {
        ssize_t done = write(file, from, size);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        from += done;
        size -= (size_t)done;
    }
    return true;
}

bool nat_cache_store(Arena *arena, Str folder, Str key, Str object, Str *error) {
    Str path = path_of(arena, folder, key);
    Str temporary = str_format(arena, "%s.XXXXXX", path.at);
    char *name = arena_copy(arena, temporary.at, temporary.size + 1);
    CacheHead head = {.key_size = key.size, .object_size = object.size};
    memcpy(head.magic, magic, sizeof magic);
    head.checksum = checksum_of(&head, key.at, object.at);
    file_make_folders(arena, path.at); // mkstemp says if that failed
    int file = mkostemp(name, O_CLOEXEC);
    bool done = file >= 0 && write_all(file, &head, sizeof head) &&
                write_all(file, key.at, key.size) && write_all(file, object.at, object.size);
    if (file >= 0 && close(file) != 0)
        done = false;
    if (done && rename(name, path.at) == 0)
        return true;
    *error = str_format(arena, "%s", strerror(errno));
    if (file >= 0)
        unlink(name);
    return false;
}
