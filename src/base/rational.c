// Exact rationals. A magnitude is a Nat: little-endian limbs without leading zeros, so zero has
// none. GMP's mpn functions want non-empty operands, the longer one first, and room that the
// caller provides; the functions on Nat hide that and nothing else.
#include "base/rational.h"

#include <gmp.h>
#include <math.h>

_Static_assert(GMP_NUMB_BITS == 64, "limbs are 64 bits");

enum { LIMB_BITS = 64, EXPONENT_MAX = 4096, SIZE_MAX_BITS = 16384 };

typedef struct Nat {
    const mp_limb_t *at;
    uint32_t count;
} Nat;

struct Rational {
    bool negative; // never of zero
    Nat num, den;
};

// ---- magnitudes -----------------------------------------------------------------------------

static mp_limb_t *limbs_new(Arena *arena, size_t count) {
    return arena_array(arena, mp_limb_t, count);
}

static Nat nat_of_limbs(const mp_limb_t *at, size_t count) {
    while (count > 0 && at[count - 1] == 0)
        count--;
    return (Nat){at, (uint32_t)count};
}

static Nat nat_of_u64(Arena *arena, uint64_t value) {
    mp_limb_t *at = limbs_new(arena, 1);
    at[0] = value;
    return nat_of_limbs(at, 1);
}

static uint64_t nat_bits(Nat a) {
    if (a.count == 0)
        return 0;
    return (uint64_t)LIMB_BITS * a.count - (uint64_t)__builtin_clzll(a.at[a.count - 1]);
}

static bool nat_is_one(Nat a) {
    return a.count == 1 && a.at[0] == 1;
}

static int nat_compare(Nat a, Nat b) {
    if (a.count != b.count)
        return a.count < b.count ? -1 : 1;
    return a.count == 0 ? 0 : mpn_cmp(a.at, b.at, a.count);
}

static Nat nat_add(Arena *arena, Nat a, Nat b) {
    if (a.count < b.count)
        return nat_add(arena, b, a);
    if (b.count == 0)
        return a;
    mp_limb_t *at = limbs_new(arena, a.count + 1u);
    at[a.count] = mpn_add(at, a.at, a.count, b.at, b.count);
    return nat_of_limbs(at, a.count + 1u);
}

// a − b, where a ≥ b.
static Nat nat_sub(Arena *arena, Nat a, Nat b) {
    if (b.count == 0)
        return a;
    mp_limb_t *at = limbs_new(arena, a.count);
    mpn_sub(at, a.at, a.count, b.at, b.count);
    return nat_of_limbs(at, a.count);
}

static Nat nat_mul(Arena *arena, Nat a, Nat b) {
    if (a.count < b.count)
        return nat_mul(arena, b, a);
    if (b.count == 0)
        return b;
    mp_limb_t *at = limbs_new(arena, (size_t)a.count + b.count);
    mpn_mul(at, a.at, a.count, b.at, b.count);
    return nat_of_limbs(at, (size_t)a.count + b.count);
}

// Quotient and remainder by b ≠ 0.
static Nat nat_divide(Arena *arena, Nat a, Nat b, Nat *remainder) {
    if (a.count < b.count) {
        *remainder = a;
        return (Nat){0};
    }
    mp_limb_t *quotient = limbs_new(arena, a.count - b.count + 1u);
    mp_limb_t *rest = limbs_new(arena, b.count);
    mpn_tdiv_qr(quotient, rest, 0, a.at, a.count, b.at, b.count);
    *remainder = nat_of_limbs(rest, b.count);
    return nat_of_limbs(quotient, a.count - b.count + 1u);
}

static Nat nat_shift_left(Arena *arena, Nat a, uint64_t bits) {
    if (a.count == 0 || bits == 0)
        return a;
    size_t limbs = bits / LIMB_BITS, count = a.count + limbs + 1;
    unsigned rest = bits % LIMB_BITS;
    mp_limb_t *at = limbs_new(arena, count);
    if (rest)
        at[count - 1] = mpn_lshift(at + limbs, a.at, a.count, rest);
    else
        mpn_copyi(at + limbs, a.at, a.count);
    return nat_of_limbs(at, count);
}

// a / 2^bits, where that is exact.
static Nat nat_shift_right(Arena *arena, Nat a, uint64_t bits) {
    size_t limbs = bits / LIMB_BITS, count = a.count - limbs;
    unsigned rest = bits % LIMB_BITS;
    mp_limb_t *at = limbs_new(arena, count);
    if (rest)
        mpn_rshift(at, a.at + limbs, (mp_size_t)count, rest);
    else
        mpn_copyi(at, a.at + limbs, (mp_size_t)count);
    return nat_of_limbs(at, count);
}

static uint64_t trailing_zeros(Nat a) {
    return mpn_scan1(a.at, 0);
}

// Greatest common divisor of non-zero a and b. mpn_gcd destroys its operands and wants one of
// them odd, so a common power of two is put aside.
static Nat nat_gcd(Arena *arena, Nat a, Nat b) {
    if (nat_compare(a, b) < 0)
        return nat_gcd(arena, b, a);
    uint64_t twos = MIN(trailing_zeros(a), trailing_zeros(b));
    Nat x = nat_shift_right(arena, a, twos), y = nat_shift_right(arena, b, twos);
    mp_limb_t *at = limbs_new(arena, y.count);
    mp_size_t count = mpn_gcd(at, (mp_limb_t *)x.at, x.count, (mp_limb_t *)y.at, y.count);
    return nat_shift_left(arena, nat_of_limbs(at, (size_t)count), twos);
}

static Nat nat_power(Arena *arena, Nat a, uint64_t exponent) {
    Nat result = nat_of_u64(arena, 1);
    for (Nat square = a; exponent; exponent >>= 1) {
        if (exponent & 1)
            result = nat_mul(arena, result, square);
        if (exponent > 1)
            square = nat_mul(arena, square, square);
    }
    return result;
}

// ---- arithmetic -----------------------------------------------------------------------------

static const Rational *make(Arena *arena, bool negative, Nat num, Nat den) {
    Rational *result = arena_new_of(arena, Rational);
    *result = (Rational){negative && num.count > 0, num, den};
    return result;
}

static const Rational *make_reduced(Arena *arena, bool negative, Nat num, Nat den) {
    if (num.count == 0)
        return make(arena, false, num, nat_of_u64(arena, 1));
    Nat common = nat_gcd(arena, num, den), none;
    if (!nat_is_one(common)) {
        num = nat_divide(arena, num, common, &none);
        den = nat_divide(arena, den, common, &none);
    }
    return make(arena, negative, num, den);
}

const Rational *rational_of_int(Arena *arena, int64_t value) {
    uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
    return make(arena, value < 0, nat_of_u64(arena, magnitude), nat_of_u64(arena, 1));
}

const Rational *rational_of_double(Arena *arena, double value) {
    check_that(isfinite(value));
    int exponent;
    double fraction = frexp(fabs(value), &exponent);
    Nat num = nat_of_u64(arena, (uint64_t)ldexp(fraction, 53)), den = nat_of_u64(arena, 1);
    exponent -= 53;
    if (exponent >= 0)
        num = nat_shift_left(arena, num, (uint64_t)exponent);
    else
        den = nat_shift_left(arena, den, (uint64_t)-exponent);
    return make_reduced(arena, value < 0, num, den);
}

static const Rational *sum(Arena *arena, const Rational *a, const Rational *b, bool b_negative) {
    Nat x = nat_mul(arena, a->num, b->den), y = nat_mul(arena, b->num, a->den);
    Nat den = nat_mul(arena, a->den, b->den);
    if (a->negative == b_negative)
        return make_reduced(arena, b_negative, nat_add(arena, x, y), den);
    if (nat_compare(x, y) >= 0)
        return make_reduced(arena, a->negative, nat_sub(arena, x, y), den);
    return make_reduced(arena, b_negative, nat_sub(arena, y, x), den);
}

const Rational *rational_add(Arena *arena, const Rational *a, const Rational *b) {
    return sum(arena, a, b, b->negative);
}

const Rational *rational_sub(Arena *arena, const Rational *a, const Rational *b) {
    return sum(arena, a, b, !b->negative);
}

const Rational *rational_mul(Arena *arena, const Rational *a, const Rational *b) {
    return make_reduced(arena, a->negative != b->negative, nat_mul(arena, a->num, b->num),
                        nat_mul(arena, a->den, b->den));
}

const Rational *rational_div(Arena *arena, const Rational *a, const Rational *b) {
    if (b->num.count == 0)
        return NULL;
    return make_reduced(arena, a->negative != b->negative, nat_mul(arena, a->num, b->den),
                        nat_mul(arena, a->den, b->num));
}

const Rational *rational_neg(Arena *arena, const Rational *a) {
    return make(arena, !a->negative, a->num, a->den);
}

const Rational *rational_abs(Arena *arena, const Rational *a) {
    return make(arena, false, a->num, a->den);
}

// Powers of numbers without a common divisor have none, so nothing is reduced.
const Rational *rational_pow(Arena *arena, const Rational *a, int64_t exponent) {
    if (a->num.count == 0 && exponent < 0)
        return NULL;
    uint64_t count = exponent < 0 ? -(uint64_t)exponent : (uint64_t)exponent, least;
    // A number of n bits is at least 2^(n−1).
    uint64_t bits = MAX(nat_bits(a->num), nat_bits(a->den)) - 1;
    if (__builtin_mul_overflow(bits, count, &least) || least >= SIZE_MAX_BITS)
        return NULL;
    Nat num = nat_power(arena, a->num, count), den = nat_power(arena, a->den, count);
    bool negative = a->negative && (count & 1);
    const Rational *result =
        exponent < 0 ? make(arena, negative, den, num) : make(arena, negative, num, den);
    return rational_size_ok(result) ? result : NULL;
}

const Rational *rational_mod(Arena *arena, const Rational *a, const Rational *b) {
    const Rational *ratio = rational_div(arena, a, b);
    if (!ratio)
        return NULL;
    Nat rest, whole = nat_divide(arena, ratio->num, ratio->den, &rest);
    if (ratio->negative && rest.count > 0)
        whole = nat_add(arena, whole, nat_of_u64(arena, 1)); // towards −infinity
    const Rational *floor = make(arena, ratio->negative, whole, nat_of_u64(arena, 1));
    return rational_sub(arena, a, rational_mul(arena, b, floor));
}

bool rational_is_int(const Rational *a, int64_t *value) {
    uint64_t magnitude = a->num.count ? a->num.at[0] : 0;
    uint64_t most = (uint64_t)INT64_MAX + a->negative;
    if (!nat_is_one(a->den) || a->num.count > 1 || magnitude > most)
        return false;
    if (value)
        *value = a->negative ? (int64_t)-magnitude : (int64_t)magnitude;
    return true;
}

bool rational_size_ok(const Rational *a) {
    return nat_bits(a->num) <= SIZE_MAX_BITS && nat_bits(a->den) <= SIZE_MAX_BITS;
}

// ---- rounding -------------------------------------------------------------------------------

typedef struct Format {
    int precision; // bits of the significand
    int lowest;    // exponent of the last place of subnormals
} Format;

static Format format_of(DType type) {
    check_that(dtype_is_real(type));
    if (type == F64)
        return (Format){53, -1074};
    return type == F32 ? (Format){24, -149} : (Format){8, -133};
}

// The quotient's leading 64 or 65 bits, and whether anything is left below them; the value is
// q · 2^−shift.
static unsigned __int128 leading_bits(Arena *arena, const Rational *a, int64_t *shift, bool *rest) {
    *shift = LIMB_BITS - ((int64_t)nat_bits(a->num) - (int64_t)nat_bits(a->den));
    Nat num = nat_shift_left(arena, a->num, *shift > 0 ? (uint64_t)*shift : 0);
    Nat den = nat_shift_left(arena, a->den, *shift < 0 ? (uint64_t) - *shift : 0);
    Nat remainder, quotient = nat_divide(arena, num, den, &remainder);
    *rest = remainder.count > 0;
    unsigned __int128 q = quotient.at[0];
    return quotient.count > 1 ? q | (unsigned __int128)quotient.at[1] << LIMB_BITS : q;
}

// A quotient of integers that a double holds exactly is one division, rounded once; no memory.
static bool divides_in_double(const Rational *a, double *value) {
    const uint64_t most = (uint64_t)1 << 53;
    if (a->num.count > 1 || a->den.count > 1 || a->num.at[0] > most || a->den.at[0] > most)
        return false;
    double magnitude = (double)a->num.at[0] / (double)a->den.at[0];
    *value = a->negative ? -magnitude : magnitude;
    return true;
}

double rational_round(const Rational *a, DType type) {
    Format format = format_of(type);
    double value;
    if (a->num.count == 0)
        return 0;
    if (type == F64 && divides_in_double(a, &value))
        return value;
    Heap heap = {0};
    Arena *arena = arena_new(&heap, "rounding");
    int64_t shift;
    bool rest;
    unsigned __int128 q = leading_bits(arena, a, &shift, &rest);
    heap_free(&heap);
    int64_t exponent = LIMB_BITS - 1 + (q >> LIMB_BITS != 0) - shift;      // of the leading bit
    int64_t place = MAX(exponent - (format.precision - 1), format.lowest); // of the last bit kept
    int64_t dropped = place + shift; // bits of q below it: more than ten, as precision ≤ 53
    double magnitude = 0;
    if (dropped <= LIMB_BITS + 1) {
        unsigned __int128 one = 1, kept = q >> dropped, half = one << (dropped - 1);
        unsigned __int128 below = q & ((one << dropped) - 1);
        if (below > half || (below == half && (rest || (kept & 1))))
            kept++;
        magnitude = place > 1024 ? INFINITY : ldexp((double)(uint64_t)kept, (int)place);
    }
    if (type != F64 && magnitude >= 0x1p128)
        magnitude = INFINITY;
    return a->negative ? -magnitude : magnitude;
}

int rational_compare(const Rational *a, const Rational *b) {
    if (a->negative != b->negative)
        return a->negative ? -1 : 1;
    Heap heap = {0};
    Arena *arena = arena_new(&heap, "comparison");
    int order = nat_compare(nat_mul(arena, a->num, b->den), nat_mul(arena, b->num, a->den));
    heap_free(&heap);
    return a->negative ? -order : order;
}

// ---- text -----------------------------------------------------------------------------------

// Digits 0 … 9 as numbers, most significant first.
typedef struct Digits {
    unsigned char *at;
    uint32_t count;
} Digits;

static Nat nat_of_digits(Arena *arena, Digits digits) {
    while (digits.count > 0 && *digits.at == 0) {
        digits.at++;
        digits.count--;
    }
    if (digits.count == 0)
        return (Nat){0};
    mp_limb_t *at = limbs_new(arena, digits.count / 16 + 2u); // four bits a digit, one spare
    return nat_of_limbs(at, (size_t)mpn_set_str(at, digits.at, digits.count, 10));
}

// Appends the digits at *i, with `_` between them; false where there is none.
static bool take_digits(Str text, uint32_t *i, bool separators, Digits *digits) {
    uint32_t before = digits->count;
    for (; *i < text.size; ++*i) {
        char c = text.at[*i];
        if (c == '_' && separators && digits->count > before)
            continue;
        if (c < '0' || c > '9')
            break;
        digits->at[digits->count++] = (unsigned char)(c - '0');
    }
    return digits->count > before;
}

// "e-12" to the end of the text; false: malformed or beyond the limit.
static bool take_exponent(Str text, uint32_t i, int64_t *exponent) {
    bool negative = i + 1 < text.size && text.at[i + 1] == '-';
    bool sign = i + 1 < text.size && (negative || text.at[i + 1] == '+');
    i += sign ? 2 : 1;
    int64_t value = 0;
    if (i == text.size)
        return false;
    for (; i < text.size; i++) {
        if (text.at[i] == '_')
            continue;
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        value = value * 10 + (text.at[i] - '0');
        if (value > EXPONENT_MAX)
            return false;
    }
    *exponent = negative ? -value : value;
    return true;
}

static const Rational *scaled(Arena *arena, bool negative, Nat num, int64_t exponent) {
    Nat den = nat_of_u64(arena, 1), ten = nat_of_u64(arena, 10);
    if (exponent >= 0)
        num = nat_mul(arena, num, nat_power(arena, ten, (uint64_t)exponent));
    else
        den = nat_power(arena, ten, (uint64_t)-exponent);
    return make_reduced(arena, negative, num, den);
}

const Rational *rational_of_decimal(Arena *arena, Str text) {
    Digits digits = {arena_array(arena, unsigned char, text.size + 1u), 0};
    uint32_t i = 0, fraction = 0;
    if (!take_digits(text, &i, true, &digits))
        return NULL;
    if (i < text.size && text.at[i] == '.') {
        i++;
        uint32_t whole = digits.count;
        if (!take_digits(text, &i, true, &digits))
            return NULL;
        fraction = digits.count - whole;
    }
    int64_t exponent = 0;
    if (i < text.size && (text.at[i] == 'e' || text.at[i] == 'E')) {
        if (!take_exponent(text, i, &exponent))
            return NULL;
    } else if (i < text.size) {
        return NULL;
    }
    if (digits.count > EXPONENT_MAX + 1) // as no exponent may scale by
        return NULL;
    const Rational *value =
        scaled(arena, false, nat_of_digits(arena, digits), exponent - (int64_t)fraction);
    return rational_size_ok(value) ? value : NULL;
}

static void add_digits(StrBuf *buf, Nat a, uint32_t fraction) {
    if (a.count == 0) {
        buf_char(buf, '0');
        return;
    }
    mp_limb_t *copy = arena_copy(buf->arena, a.at, a.count * sizeof *a.at); // is destroyed
    unsigned char *digits = arena_alloc(buf->arena, (size_t)a.count * 20 + 2);
    uint32_t count = (uint32_t)mpn_get_str(digits, 10, copy, a.count);
    while (count > 0 && *digits == 0) {
        digits++;
        count--;
    }
    if (count <= fraction) // "0.00…" before the first digit
        buf_text(buf, "0.");
    for (uint32_t i = count; i < fraction; i++)
        buf_char(buf, '0');
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && i + fraction == count)
            buf_char(buf, '.');
        buf_char(buf, (char)('0' + digits[i]));
    }
}

// How many decimals write num/den exactly; 0: there is no short decimal.
static uint32_t short_decimals(Arena *arena, Nat den) {
    enum { SHORT = 20 };
    Nat ten = nat_of_u64(arena, 10), power = ten, rest;
    for (uint32_t count = 1; count <= SHORT; count++) {
        nat_divide(arena, power, den, &rest);
        if (rest.count == 0)
            return count;
        power = nat_mul(arena, power, ten);
    }
    return 0;
}

Str rational_text(Arena *arena, const Rational *a) {
    StrBuf buf = {.arena = arena};
    if (a->negative)
        buf_char(&buf, '-');
    uint32_t decimals = nat_is_one(a->den) ? 0 : short_decimals(arena, a->den);
    if (decimals > 0) {
        Nat rest, power = nat_power(arena, nat_of_u64(arena, 10), decimals);
        Nat factor = nat_divide(arena, power, a->den, &rest);
        add_digits(&buf, nat_mul(arena, a->num, factor), decimals);
        return buf_str(&buf);
    }
    add_digits(&buf, a->num, 0);
    if (!nat_is_one(a->den)) {
        buf_char(&buf, '/');
        add_digits(&buf, a->den, 0);
    }
    return buf_str(&buf);
}

const Rational *rational_of_text(Arena *arena, Str text) {
    Digits digits = {arena_array(arena, unsigned char, text.size + 1u), 0};
    bool negative = text.size > 0 && text.at[0] == '-';
    uint32_t i = negative;
    if (!take_digits(text, &i, false, &digits))
        return NULL;
    if (i == text.size)
        return make_reduced(arena, negative, nat_of_digits(arena, digits), nat_of_u64(arena, 1));
    char separator = text.at[i++];
    if (separator == '.') {
        uint32_t whole = digits.count;
        if (!take_digits(text, &i, false, &digits) || i < text.size)
            return NULL;
        int64_t fraction = (int64_t)digits.count - (int64_t)whole;
        return scaled(arena, negative, nat_of_digits(arena, digits), -fraction);
    }
    Digits below = {arena_array(arena, unsigned char, text.size + 1u), 0};
    if (separator != '/' || !take_digits(text, &i, false, &below) || i < text.size)
        return NULL;
    Nat den = nat_of_digits(arena, below);
    return den.count == 0 ? NULL : make_reduced(arena, negative, nat_of_digits(arena, digits), den);
}
