// The MNIST container "idx": two zero bytes, the element type, the rank, each extent as a
// big-endian u32, then the elements. Debian ships such files gzipped, so they may be.
#include "runtime/data_file.h"

#include <limits.h>
#include <zlib.h>

enum { TYPE_U8 = 8 };

typedef struct Input {
    RtPath path;
    RtCursor plain; // not gzipped
    z_stream zip;
    bool zipped, ended;
} Input;

// The next `size` bytes; false: there are fewer, or the gzip stream is broken.
static bool take_bytes(Input *input, void *to, uint64_t size) {
    if (!input->zipped) {
        const unsigned char *at = rt_take(&input->plain, size);
        if (input->plain.beyond)
            return false;
        memcpy(to, at, size);
        return true;
    }
    for (unsigned char *at = to; size > 0 && !input->ended;) {
        uInt room = (uInt)MIN(size, (uint64_t)UINT_MAX);
        input->zip.next_out = at;
        input->zip.avail_out = room;
        int status = inflate(&input->zip, Z_NO_FLUSH);
        if (status != Z_OK && status != Z_STREAM_END)
            return false;
        input->ended = status == Z_STREAM_END;
        uint64_t got = room - input->zip.avail_out;
        if (got == 0 && !input->ended)
            return false;
        at += got;
        size -= got;
    }
    return size == 0;
}

// Nothing follows; of a gzip stream the checksum is seen here.
static bool at_end(Input *input) {
    if (!input->zipped)
        return input->plain.offset == input->plain.size;
    unsigned char more;
    if (!input->ended && take_bytes(input, &more, 1))
        return false;
    return input->ended && input->zip.avail_in == 0;
}

static uint32_t big_endian(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

// A gzipped byte stands for at most about 1032 bytes, so a header cannot ask for more memory than
// the file's length allows.
static bool plausible(const Input *input, uint64_t promised, uint64_t size) {
    return input->zipped ? promised / 1100 <= size : promised <= size;
}

static bool read_tensor(Input *input, uint64_t size, Tensor *tensor) {
    const RtPath *path = &input->path;
    unsigned char head[4];
    if (!take_bytes(input, head, 4) || head[0] != 0 || head[1] != 0)
        return rt_malformed(path, "it does not begin with two zero bytes, a type and a rank");
    if (head[2] != TYPE_U8)
        return rt_unsupported(path, "elements of the idx type 0x%02x (0x08, bytes, is read)",
                              head[2]);
    uint32_t rank = head[3];
    if (rank == 0 || rank > RANK_MAX)
        return rt_unsupported(path, "an array of %u axes", rank);
    int64_t extent[RANK_MAX];
    uint64_t promised;
    for (uint32_t i = 0; i < rank; i++) {
        unsigned char length[4];
        if (!take_bytes(input, length, 4))
            return rt_malformed(path, "its header is cut off");
        extent[i] = big_endian(length);
    }
    if (!rt_bytes_of(rank, extent, 1, &promised) || !plausible(input, promised, size))
        return rt_malformed(path, "it promises an array of %s, more than it can hold",
                            rt_extents_text(path->arena, rank, extent).at);
    *tensor = tensor_new(path->arena, U8, rank, extent);
    if (!take_bytes(input, tensor->data, promised))
        return rt_malformed(path, "its data is cut off or damaged");
    return at_end(input) || rt_malformed(path, "something follows its data, or it is damaged");
}

static bool read_zipped(Input *input, const RtBytes *bytes, Tensor *tensor) {
    enum { GZIP_ONLY = 16 };
    if (bytes->size > UINT_MAX)
        return rt_unsupported(&input->path, "a gzip stream of more than 4 GiB");
    input->zipped = true;
    input->zip.next_in = (unsigned char *)bytes->at; // is only read
    input->zip.avail_in = (uInt)bytes->size;
    if (inflateInit2(&input->zip, MAX_WBITS + GZIP_ONLY) != Z_OK)
        return rt_malformed(&input->path, "its gzip stream cannot be read");
    bool read = read_tensor(input, bytes->size, tensor);
    inflateEnd(&input->zip);
    return read;
}

bool rt_idx_read(const RtPath *path, Tensor *tensor) {
    RtBytes bytes;
    if (!rt_bytes_open(path, &bytes))
        return false;
    Input input = {.path = *path, .plain = {.at = bytes.at, .size = bytes.size}};
    bool zipped = bytes.size >= 2 && bytes.at[0] == 0x1F && bytes.at[1] == 0x8B;
    bool read =
        zipped ? read_zipped(&input, &bytes, tensor) : read_tensor(&input, bytes.size, tensor);
    rt_bytes_close(&bytes);
    return read;
}
