/*
 * Loops over the values of two workers; see combine.h. As in loops.h there are no branches, and
 * what does not fit is gathered in a word that is looked at once.
 */
#include "core/quant/combine.h"

#include <stddef.h>

#include "base/assert.h"
#include "core/quant/number.h"

#define LOOP_INLINE static inline __attribute__((always_inline))

/*
 * Minimum and maximum: the one comes first whose key is less; `flip`, all ones for the maximum,
 * turns the order round. The key of an integer is itself. That of a float are its bits, read as an
 * integer of the same size, with all but the sign turned over if that is set: then negative numbers
 * are in order, too, and -0.0 comes before 0.0.
 */
#define EXTREME(name, word, key_of, is_nan, nan)                                                   \
    static void name(void *restrict x, const void *restrict y, uint32_t count, word flip)          \
    {                                                                                              \
        unsigned char *to = x;                                                                     \
        const unsigned char *from = y;                                                             \
        for (size_t i = 0; i < count; i++) {                                                       \
            word a, b;                                                                             \
            memcpy(&a, to + sizeof(a) * i, sizeof(a));                                             \
            memcpy(&b, from + sizeof(b) * i, sizeof(b));                                           \
            word r = (word)(key_of(a) ^ flip) < (word)(key_of(b) ^ flip) ? a : b;                  \
            r = is_nan(a) | is_nan(b) ? nan : r;                                                   \
            memcpy(to + sizeof(r) * i, &r, sizeof(r));                                             \
        }                                                                                          \
    }

#define ITSELF(a)      (a)
#define NEVER(a)       0
#define KEY_16(a)      ((a) ^ (((a) >> 15) & INT16_MAX))
#define KEY_32(a)      ((a) ^ (((a) >> 31) & INT32_MAX))
#define KEY_64(a)      ((a) ^ (((a) >> 63) & INT64_MAX))
#define IS_F16_NAN(a)  (((a)&INT16_MAX) > GW_F16_INFINITY)
#define IS_BF16_NAN(a) (((a)&INT16_MAX) > GW_BF16_INFINITY)
#define IS_F32_NAN(a)  (((a)&INT32_MAX) > GW_F32_INFINITY)
#define IS_F64_NAN(a)  (((a)&INT64_MAX) > GW_F64_INFINITY)

EXTREME(extreme_f32, int32_t, KEY_32, IS_F32_NAN, GW_F32_NAN)
EXTREME(extreme_f16, int16_t, KEY_16, IS_F16_NAN, GW_F16_NAN)
EXTREME(extreme_bf16, int16_t, KEY_16, IS_BF16_NAN, GW_BF16_NAN)
EXTREME(extreme_i32, int32_t, ITSELF, NEVER, 0)
EXTREME(extreme_f64, int64_t, KEY_64, IS_F64_NAN, GW_F64_NAN)
EXTREME(extreme_i64, int64_t, ITSELF, NEVER, 0)
EXTREME(extreme_u8, uint8_t, ITSELF, NEVER, 0)

static void extreme(enum gw_dtype type, bool is_max, void *x, const void *y, uint32_t count)
{
    int8_t flip = is_max ? -1 : 0;
    switch (type) {
    case GW_DTYPE_F32:
        extreme_f32(x, y, count, flip);
        break;
    case GW_DTYPE_F16:
        extreme_f16(x, y, count, flip);
        break;
    case GW_DTYPE_BF16:
        extreme_bf16(x, y, count, flip);
        break;
    case GW_DTYPE_I32:
        extreme_i32(x, y, count, flip);
        break;
    case GW_DTYPE_F64:
        extreme_f64(x, y, count, flip);
        break;
    case GW_DTYPE_I64:
        extreme_i64(x, y, count, flip);
        break;
    default:
        extreme_u8(x, y, count, (uint8_t)flip);
        break;
    }
}

static void sum_f64(void *restrict x, const void *restrict y, uint32_t count, uint32_t shares)
{
    unsigned char *to = x;
    const unsigned char *from = y;
    size_t size = sizeof(double);
    if (shares == 1) {
        for (size_t i = 0; i < count; i++)
            gw_f64_store(to + size * i, gw_f64_load(to + size * i) + gw_f64_load(from + size * i));
    } else {
        for (size_t i = 0; i < count; i++)
            gw_f64_store(to + size * i,
                         (gw_f64_load(to + size * i) + gw_f64_load(from + size * i)) / shares);
    }
}

/* The sum wraps around when its sign differs from that of both operands. */
static bool sum_i64(void *restrict x, const void *restrict y, uint32_t count)
{
    unsigned char *to = x;
    const unsigned char *from = y;
    uint64_t wrapped = 0; /* in its highest bit */
    for (size_t i = 0; i < count; i++) {
        uint64_t a = gw_u64_load(to + sizeof(a) * i), b = gw_u64_load(from + sizeof(b) * i);
        uint64_t sum = a + b;
        wrapped |= (a ^ sum) & (b ^ sum);
        gw_u64_store(to + sizeof(sum) * i, sum);
    }
    return wrapped >> 63 == 0;
}

static bool sum_u8(void *restrict x, const void *restrict y, uint32_t count)
{
    unsigned char *to = x;
    const unsigned char *from = y;
    unsigned char wrapped = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned char sum = (unsigned char)(to[i] + from[i]);
        wrapped |= sum < to[i];
        to[i] = sum;
    }
    return !wrapped;
}

/* A float32 rounds the product once. Of two float16 it has all bits; of two bfloat16 too, unless
 * the product is less than half of the least bfloat16. */
LOOP_INLINE bool product(void *restrict x, const void *restrict y, uint32_t count,
                         float (*load)(const unsigned char *),
                         void (*store)(unsigned char *, double), size_t size)
{
    unsigned char *to = x;
    const unsigned char *from = y;
    for (size_t i = 0; i < count; i++)
        store(to + size * i, load(to + size * i) * load(from + size * i));
    return true;
}

static bool product_f64(void *restrict x, const void *restrict y, uint32_t count)
{
    unsigned char *to = x;
    const unsigned char *from = y;
    size_t size = sizeof(double);
    for (size_t i = 0; i < count; i++)
        gw_f64_store(to + size * i, gw_f64_load(to + size * i) * gw_f64_load(from + size * i));
    return true;
}

static bool product_i32(void *restrict x, const void *restrict y, uint32_t count)
{
    unsigned char *to = x;
    const unsigned char *from = y;
    uint64_t bad = 0; /* in its upper half */
    for (size_t i = 0; i < count; i++) {
        int32_t a = (int32_t)gw_u32_load(to + sizeof(a) * i);
        int32_t b = (int32_t)gw_u32_load(from + sizeof(b) * i);
        int64_t r = (int64_t)a * b;
        bad |= (uint64_t)r + (UINT64_C(1) << 31);
        gw_u32_store(to + sizeof(a) * i, (uint32_t)r);
    }
    return bad >> 32 == 0;
}

static bool product_i64(void *restrict x, const void *restrict y, uint32_t count)
{
    unsigned char *to = x;
    const unsigned char *from = y;
    bool bad = false;
    for (size_t i = 0; i < count; i++) {
        int64_t r;
        bad |= __builtin_mul_overflow((int64_t)gw_u64_load(to + sizeof(r) * i),
                                      (int64_t)gw_u64_load(from + sizeof(r) * i), &r);
        gw_u64_store(to + sizeof(r) * i, (uint64_t)r);
    }
    return !bad;
}

static bool product_u8(void *restrict x, const void *restrict y, uint32_t count)
{
    unsigned char *to = x;
    const unsigned char *from = y;
    uint32_t bad = 0; /* beyond its lowest byte */
    for (size_t i = 0; i < count; i++) {
        uint32_t r = (uint32_t)to[i] * from[i];
        bad |= r;
        to[i] = (unsigned char)r;
    }
    return bad >> 8 == 0;
}

static bool sum(const struct gw_kernels *kernels, const struct gw_combination *how, void *x,
                const void *y, uint32_t count)
{
    switch (how->type) {
    case GW_DTYPE_F64:
        sum_f64(x, y, count, how->shares);
        return true;
    case GW_DTYPE_I64:
        return sum_i64(x, y, count);
    case GW_DTYPE_U8:
        return sum_u8(x, y, count);
    default:
        return kernels->reduce[how->type](x, y, count, how->shares);
    }
}

static bool multiply(enum gw_dtype type, void *x, const void *y, uint32_t count)
{
    switch (type) {
    case GW_DTYPE_F32:
        return product(x, y, count, gw_f32_load, gw_f32_store, 4);
    case GW_DTYPE_F16:
        return product(x, y, count, gw_f16_load, gw_f16_store_f32, 2);
    case GW_DTYPE_BF16:
        return product(x, y, count, gw_bf16_load, gw_bf16_store_f32, 2);
    case GW_DTYPE_I32:
        return product_i32(x, y, count);
    case GW_DTYPE_F64:
        return product_f64(x, y, count);
    case GW_DTYPE_I64:
        return product_i64(x, y, count);
    default:
        return product_u8(x, y, count);
    }
}

static void and_bits(void *restrict x, const void *restrict y, uint32_t count)
{
    unsigned char *to = x;
    const unsigned char *from = y;
    for (size_t i = 0; i < count; i++)
        to[i] &= from[i];
}

bool gw_combine(const struct gw_kernels *kernels, const struct gw_combination *how, void *x,
                const void *y, uint32_t count)
{
    GW_ASSERT(gw_op_exists(how->op, how->type) ||
              (how->op == GW_OP_AND && how->type == GW_DTYPE_U8));
    switch (how->op) {
    case GW_OP_AND:
        and_bits(x, y, count);
        return true;
    case GW_OP_MIN:
    case GW_OP_MAX:
        extreme(how->type, how->op == GW_OP_MAX, x, y, count);
        return true;
    case GW_OP_PRODUCT:
        return multiply(how->type, x, y, count);
    default:
        return sum(kernels, how, x, y, count);
    }
}
