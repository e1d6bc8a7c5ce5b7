/*
 * The scale of a fragment: how real numbers become integers that can be added, and back.
 *
 * A value x travels as the integer nearest to x * up, ties to even; a sum v of such integers comes
 * back as v / down, where down is up for a sum, and up times the number of workers for an average.
 * docs/numbers.md derives the bound of the error. Every function here computes exactly: a scale
 * has at most 29 significant bits, so that its product with a float is a double.
 *
 * Core code outside this folder keeps and passes scales and gw_real, and does not compute with
 * them.
 */
#ifndef GW_CORE_SCALE_H
#define GW_CORE_SCALE_H

#include <stdbool.h>
#include <stdint.h>

/* A sum of floats that are added as floats: values that have no integer form, see kernels.h. */
typedef double gw_real;

struct gw_scale {
    gw_real up;   /* x becomes the integer nearest to x * up */
    gw_real down; /* the integer v becomes v / down */
};

enum {
    /* Default scale 2^27: values up to 16 less one unit fit, and one unit is 7.5e-9. */
    GW_SCALE_EXPONENT = 27,
    /* With the least exponent 8192 floats of any size have a sum that fits; with the greatest, a
     * unit is far below what gradients hold. Both fit the byte that a packet has for them. */
    GW_SCALE_EXPONENT_MIN = -110,
    GW_SCALE_EXPONENT_MAX = 110,
    GW_SCALE_DECIMAL = 111,             /* in the place of an exponent: GW_SCALE_DECIMAL_UNITS */
    GW_SCALE_DECIMAL_UNITS = 100000000, /* 10^8, as in the ATP paper (section 3.8) */
    GW_SCALE_INTEGER_MAX = 1 << 29,
    GW_SCALE_SHARES_MAX = 1 << 24, /* keeps `down` exact */
};

/*
 * The scale 2^exponent, from GW_SCALE_EXPONENT_MIN to _MAX. `shares` divides the sum: 1 for the sum
 * itself, the number of workers for their average, up to GW_SCALE_SHARES_MAX.
 */
struct gw_scale gw_scale_power(int exponent, uint32_t shares);

/* The scale `units`, from 1 (int32 values, which are not scaled) to GW_SCALE_INTEGER_MAX. */
struct gw_scale gw_scale_integer(uint32_t units, uint32_t shares);

/* Whether `exponent` names a scale: a power of two, or GW_SCALE_DECIMAL. */
static inline bool gw_scale_exists(int exponent)
{
    return exponent >= GW_SCALE_EXPONENT_MIN && exponent <= GW_SCALE_DECIMAL;
}

/* The scale that `exponent` names. */
struct gw_scale gw_scale_named(int exponent, uint32_t shares);

/*
 * The greatest exponent with which `workers` values of at most |x| cannot add up to a saturated
 * mark: workers * |x| * 2^exponent <= 2^31 - workers (ATP, appendix B.3). `abs_bits` is |x| as the
 * bits of a float32, which the max_abs kernels give. When |x| is 0, and when it is NaN or infinite,
 * so that the fragment is not quantised at all, that is GW_SCALE_EXPONENT_MAX.
 */
int gw_scale_exponent_max(uint32_t abs_bits, uint32_t workers);

/* Likewise whether GW_SCALE_DECIMAL cannot saturate. */
bool gw_scale_decimal_is_safe(uint32_t abs_bits, uint32_t workers);

#endif
