// Conversions between the storage types and double. Everything here works in the default
// floating-point environment (round to nearest, subnormals kept) or on bits, where it does not
// matter.
#include "base/number.h"

#include <assert.h>
#include <string.h>

typedef struct DTypeInfo {
    const char *text;
    uint8_t size;
} DTypeInfo;

static const DTypeInfo infos[] = {
    [F64] = {"f64", 8}, [F32] = {"f32", 4}, [BF16] = {"bf16", 2}, [U8] = {"u8", 1},
    [U16] = {"u16", 2}, [U32] = {"u32", 4}, [U64] = {"u64", 8},
};
static_assert(sizeof infos / sizeof *infos == DTYPE_COUNT, "one row for each type");
static_assert(F64 < BF16 && F32 < BF16 && BF16 < U8, "dtype_is_real compares with BF16");
static_assert(sizeof(float) == 4 && sizeof(double) == 8, "IEEE single and double");

size_t dtype_size(DType type) {
    return infos[type].size;
}

const char *dtype_text(DType type) {
    return infos[type].text;
}

bool dtype_of_text(const char *text, size_t size, DType *type) {
    for (DType t = 0; t < DTYPE_COUNT; t++) {
        if (strlen(infos[t].text) == size && memcmp(infos[t].text, text, size) == 0) {
            *type = t;
            return true;
        }
    }
    return false;
}

DType dtype_of_bound(uint64_t bound) {
    uint64_t largest = bound == 0 ? 0 : bound - 1;
    if (largest <= UINT8_MAX)
        return U8;
    if (largest <= UINT16_MAX)
        return U16;
    return largest <= UINT32_MAX ? U32 : U64;
}

static uint32_t bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// Rounds the upper half of a float's bits; an infinity comes out where the exponent overflows.
static uint16_t upper_half(uint32_t bits) {
    if ((bits & 0x7FFFFFFF) > 0x7F800000)
        return (uint16_t)(bits >> 16 | 0x40); // quiet, so that it cannot become an infinity
    uint32_t odd = bits >> 16 & 1;
    return (uint16_t)((bits + 0x7FFF + odd) >> 16);
}

uint16_t bf16_of_f32(float value) {
    return upper_half(bits_of_float(value));
}

float f32_of_bf16(uint16_t bits) {
    return float_of_bits((uint32_t)bits << 16);
}

uint16_t bf16_of_f64(double value) {
    // Rounding to odd on the way (Boldo & Melquiond 2008) keeps what the last rounding must know:
    // a float has more than two bits beyond those of bf16, at every exponent.
    float near = (float)value;
    uint32_t bits = bits_of_float(near);
    if ((double)near != value && value == value) {
        double magnitude = value < 0 ? -value : value;
        double rounded = near < 0 ? -(double)near : (double)near;
        if (rounded > magnitude)
            bits -= 1; // the float below in magnitude; from infinity the largest finite one
        bits |= 1;
    }
    return upper_half(bits);
}

double dtype_get(DType type, const void *data, int64_t index) {
    switch (type) {
    case F64:
        return ((const double *)data)[index];
    case F32:
        return (double)((const float *)data)[index];
    case BF16:
        return (double)f32_of_bf16(((const uint16_t *)data)[index]);
    case U8:
        return ((const uint8_t *)data)[index];
    case U16:
        return ((const uint16_t *)data)[index];
    case U32:
        return ((const uint32_t *)data)[index];
    case U64:
    default:
        return (double)((const uint64_t *)data)[index];
    }
}

void dtype_set(DType type, void *data, int64_t index, double value) {
    switch (type) {
    case F64:
        ((double *)data)[index] = value;
        break;
    case F32:
        ((float *)data)[index] = (float)value;
        break;
    case BF16:
        ((uint16_t *)data)[index] = bf16_of_f64(value);
        break;
    case U8:
        ((uint8_t *)data)[index] = (uint8_t)value;
        break;
    case U16:
        ((uint16_t *)data)[index] = (uint16_t)value;
        break;
    case U32:
        ((uint32_t *)data)[index] = (uint32_t)value;
        break;
    case U64:
    default:
        ((uint64_t *)data)[index] = (uint64_t)value;
        break;
    }
}
