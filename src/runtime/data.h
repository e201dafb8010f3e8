// Data files: samples (.psk.d), checkpoints, arrays of other tools (.npy, .safetensors, the MNIST
// container idx), and the stream of batches that training reads.
//
// Every function here that can meet a bad file takes an RtPath, reports what is wrong there (E5xxx;
// E9001 for a data type that is not closed) and returns false; nothing is ever half-written. Sizes
// from a file are never trusted: products are checked for overflow and the file's length must agree
// exactly. All formats are little-endian, as is the memory of every machine presk runs on.
//
// A .psk.d file holds: "PSKD"; version u16, 1 or 2; the sample type as text, u32 length first; the
// number of samples u64; in version 2 the number of leaves u32 and one byte for each (0 f64 or an
// index, 1 f32, 2 bf16); then the samples back to back, leaves in order, row-major. Version 1 is
// written unless a leaf is narrower than f64.
#ifndef PRESK_RUNTIME_DATA_H
#define PRESK_RUNTIME_DATA_H

#include "base/diag.h"
#include "base/file.h"
#include "base/tensor.h"

// A file by name; where it was named, for diagnostics; and where what is read from it is put.
typedef struct RtPath {
    Diags *diags;
    Arena *arena;
    const char *path;
    Span span; // source 0: the command line
} RtPath;

// ---- the bytes of a file --------------------------------------------------------------------

// A file's contents, mapped (a pipe is read). The bytes stay valid until rt_bytes_close.
typedef struct RtBytes {
    const unsigned char *at;
    uint64_t size;
    void *mapping; // null: nothing to unmap
} RtBytes;
bool rt_bytes_open(const RtPath *path, RtBytes *bytes);
void rt_bytes_close(RtBytes *bytes);

// ---- data types -----------------------------------------------------------------------------

// One array of a sample, or one parameter of a checkpoint.
typedef struct RtLeaf {
    Str path;       // of a parameter: "blocks.0.attn.query.w"; else empty
    uint64_t bound; // of indices: values are 0 … bound − 1; 0: reals
    DType type;     // in the file: F64, F32, BF16, or the smallest that holds the bound
    uint32_t rank;
    int64_t extent[RANK_MAX]; // at least 1 each
    Str axis[RANK_MAX];       // names, empty where there is none
    int64_t count;            // elements
    uint64_t offset;          // bytes from the start of its sample
} RtLeaf;

// The type of a sample: one leaf, or several in a (nested) tuple, or `params M`, whose leaves only
// the program knows: count is 0 until rt_data_layout.
typedef struct RtDataType {
    Str text;  // as in the file
    Str model; // of `params M`; else empty
    uint32_t count;
    RtLeaf *leaves;
    uint64_t bytes; // of a sample
} RtDataType;

// Reads a type in the language's syntax, restricted to what is closed: `ℝ[batch: 2, model: 4]`,
// `Real[3]`, `ℝ[]`, `idx[64][seq: 8]`, `(T, T)`, `params M`. Anything else is E9001. Reals are f64.
bool rt_data_type(const RtPath *path, Str text, RtDataType *type);
// The type of samples with these leaves: counts, offsets and text are filled in; false (E5003):
// sizes whose product overflows, or an axis of length 0.
bool rt_data_type_of(const RtPath *path, uint32_t count, const RtLeaf *leaves, RtDataType *type);
Str rt_leaf_text(Arena *arena, const RtLeaf *leaf); // "idx[64][seq: 8]"

// ---- sample files ---------------------------------------------------------------------------

typedef struct RtData {
    RtPath path;
    RtBytes bytes;
    uint16_t version;
    RtDataType type;
    uint64_t samples;
    const unsigned char *encodings; // version 2: one for each of encoding_count leaves
    uint32_t encoding_count;
    bool laid_out;              // false: `params M` before rt_data_layout
    const unsigned char *first; // sample
    uint64_t data_size;
} RtData;

// Opens a file and checks all of its header and its length; for `params M` as far as is possible.
bool rt_data_open(const RtPath *path, RtData *data);
void rt_data_close(RtData *data);
// States the leaves of a `params M` file (path, rank, extents of each) and checks the length.
bool rt_data_layout(RtData *data, uint32_t count, const RtLeaf *leaves);
// Reports E9001 if the file is a `params M` whose leaves nobody has stated.
bool rt_data_has_layout(const RtData *data);
// Copies a leaf of a sample to `into`, a contiguous block of the leaf's extents: reals rounded once
// to its type, indices checked against the leaf's bound (E5007).
bool rt_data_get(const RtData *data, uint64_t sample, uint32_t leaf, Tensor *into);
// `count` consecutive samples of a leaf from `sample` on, as one row-major block.
bool rt_data_get_run(const RtData *data, uint64_t sample, uint64_t count, uint32_t leaf,
                     Tensor *into);

typedef struct RtDataWriter {
    RtPath path;
    FileWriter file;
    RtDataType type;
    uint64_t samples; // still to come
    uint32_t leaf;    // the next one
} RtDataWriter;
bool rt_data_begin(const RtPath *path, const RtDataType *type, uint64_t samples,
                   RtDataWriter *writer);
// The next leaf, in order of leaves and then samples; values are rounded once to the file's type.
void rt_data_put(RtDataWriter *writer, const Tensor *leaf);
// The same from raw bytes in the file's encoding.
void rt_data_put_bytes(RtDataWriter *writer, const void *at);
bool rt_data_commit(RtDataWriter *writer); // everything promised must have been put
void rt_data_abandon(RtDataWriter *writer);

// How two files of one type differ, value by value; a NaN equals a NaN.
typedef struct RtDifference {
    uint64_t values, different;
    double largest;        // of |a − b|
    uint64_t sample, leaf; // of the first difference, with `element` in the leaf
    uint64_t element;
    double a, b; // there
} RtDifference;
// Files of one type, encoded alike or not; checkpoints without their program, where each has one
// encoding throughout (their leaves then count as one). E5006 where they cannot be compared.
bool rt_data_diff(const RtData *a, const RtData *b, RtDifference *difference);

// ---- single tensors and checkpoints ----------------------------------------------------------

typedef struct RtNamed {
    Str name;
    Tensor tensor;
} RtNamed;

// NumPy arrays: versions 1 to 3; f8 f4 u1 u2 u4 u8 b1, and i1 to i8, which become unsigned, or f64
// where a value is negative.
bool rt_npy_read(const RtPath *path, Tensor *tensor);
// bf16 is written as f4, exactly.
bool rt_npy_write(const RtPath *path, const Tensor *tensor);

// F64, F32 and BF16 tensors, in the order of the file's data.
bool rt_safetensors_read(const RtPath *path, uint32_t *count, RtNamed **tensors);
bool rt_safetensors_write(const RtPath *path, uint32_t count, const RtNamed *tensors);

// By the path's ending: .psk.d with one sample of one leaf, else .npy.
bool rt_tensor_read(const RtPath *path, Tensor *tensor);
// By the path's ending: .npy, else .psk.d. `bound`: of indices, 0 for reals.
bool rt_tensor_write(const RtPath *path, const Tensor *tensor, uint64_t bound);
// The parameters of a model: .psk.d with type `params MODEL` and one sample, or .safetensors.
// `tensors` hold the values to write; to read, they have been made by the caller, with names.
// Names, extents and (psk.d) the model's name must agree exactly (E5006).
bool rt_checkpoint_write(const RtPath *path, Str model, uint32_t count, const RtNamed *tensors);
bool rt_checkpoint_read(const RtPath *path, Str model, uint32_t count, RtNamed *tensors);

// ---- other data -----------------------------------------------------------------------------

// Arrays whose first axis counts samples, side by side as one file: sample i has row i of each.
// `type`: the sample's type, with as many elements in each leaf as in a row of its array; empty:
// reals, or idx[largest + 1], with unnamed axes. `real`: the encoding of reals. E5006 where arrays
// and type do not fit, E5007 for a value out of range.
bool rt_arrays_write(const RtPath *path, uint32_t count, const Tensor *arrays, Str type, DType real,
                     RtDataType *written);

// The MNIST container with unsigned bytes, plain or gzipped: a u8 tensor.
bool rt_idx_read(const RtPath *path, Tensor *tensor);

// The characters of a text in order of code point; a character's index is its place here.
typedef struct RtCharacters {
    uint32_t count;
    uint32_t *code;
} RtCharacters;
// Converts a UTF-8 text to a file of tokens, one sample a token, of type `idx[vocab]` (0: as many
// as there are characters), and writes the characters beside it (rt_characters_path).
bool rt_text_convert(const RtPath *text, const RtPath *data, uint64_t vocab, uint64_t *tokens,
                     RtCharacters *characters);
// "out/text.psk.d" has its characters in "out/text.chars.json": {"characters": ["\n", " ", …]}.
Str rt_characters_path(Arena *arena, const char *data_path);
bool rt_characters_read(const RtPath *path, RtCharacters *characters);
bool rt_characters_write(const RtPath *path, const RtCharacters *characters);
// Index of a code point; UINT32_MAX: not among them.
uint32_t rt_character_index(const RtCharacters *characters, uint32_t code);

// ---- streams --------------------------------------------------------------------------------

// stream |> windows(T) |> shuffle(seed) |> batch(B) |> take(n). Over the samples of a file:
//   windows  sample i is (tokens iT … iT+T−1, tokens iT+1 … iT+T): consecutive, not overlapping;
//            the file must hold one index a sample; there are ⌊(tokens − 1) / T⌋
//   shuffle  epoch e (from 1) sees the samples in the order of rt_permutation(seed, e)
//   batch    groups consecutive samples and drops an incomplete last group
//   take     keeps the first n batches of each epoch
typedef struct RtStreamSpec {
    int64_t window; // 0: none
    bool shuffle;
    uint64_t seed;
    int64_t batch; // at least 1
    int64_t take;  // −1: all
} RtStreamSpec;

typedef struct RtStream {
    RtData *data;
    RtStreamSpec spec;
    uint32_t leaves;  // of a sample: 2 with windows, else those of the file
    uint64_t samples; // in an epoch, before batching
    uint64_t batches; // in an epoch
    uint64_t *order;  // of epoch `epoch`; null before
    uint64_t epoch;
} RtStream;

// E5008 where an epoch would have no batch, or windows are asked of other samples.
bool rt_stream_new(RtData *data, const RtStreamSpec *spec, RtStream *stream);
// The leaf of one sample as the stream gives it (extents without the batch axis).
RtLeaf rt_stream_leaf(const RtStream *stream, uint32_t leaf);
// Batch `batch` (from 0) of an epoch (from 1) into one contiguous tensor for each leaf, of extents
// [B, leaf's extents …]; types as in rt_data_get.
bool rt_stream_batch(RtStream *stream, uint64_t epoch, uint64_t batch, Tensor *tensors);
// The same for `count` samples of an epoch from the `first` on, whatever the batches are.
bool rt_stream_run(RtStream *stream, uint64_t epoch, uint64_t first, uint64_t count,
                   Tensor *tensors);

// The permutation of an epoch: order[i] for i = 0 … count − 1, by Fisher–Yates from the last place
// down, place i exchanged with ⌊r_i (i + 1) / 2^64⌋; r_i is rt_random_bits(seed, "shuffle" + epoch,
// i).
void rt_permutation(uint64_t seed, uint64_t epoch, uint64_t count, uint64_t *order);

#endif
