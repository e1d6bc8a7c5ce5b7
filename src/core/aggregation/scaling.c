/* Offers of exponents, and the rate of overflow that makes the server use them; see scaling.h. */
#include "core/aggregation/scaling.h"

enum {
    RATE_BITS = 30,
    RATE_SHIFT = 12,          /* the average forgets with a time constant of 4096 fragments, so
                                 that one overflow alone is a quarter of the limit */
    RATE_HIGH_INVERSE = 1000, /* 0.1 % (ATP, section 3.8) */
    DECIMAL_BELOW = 26,       /* 2^26 is the greatest power of two below 10^8 */
};

_Static_assert(GW_SCALE_DECIMAL - GW_SCALE_EXPONENT_MIN < GW_PKT_SCALE_NONE, "bytes hold all");

uint8_t gw_scaling_byte(int exponent)
{
    GW_ASSERT(gw_scale_exists(exponent));
    return (uint8_t)(exponent - GW_SCALE_EXPONENT_MIN);
}

int gw_scaling_safe(const struct gw_kernels *kernels, const struct gw_scaling_values *values,
                    int exponent)
{
    uint32_t most = kernels->max_abs[values->type](values->x, values->count);
    int safe = gw_scale_exponent_max(most, values->workers);
    if (exponent == GW_SCALE_DECIMAL && gw_scale_decimal_is_safe(most, values->workers))
        return exponent;
    if (exponent == GW_SCALE_DECIMAL)
        exponent = DECIMAL_BELOW;
    return safe < exponent ? safe : exponent;
}

void gw_overflow_rate_note(struct gw_overflow_rate *rate, bool overflowed)
{
    rate->q30 -= rate->q30 >> RATE_SHIFT;
    rate->q30 += (uint32_t)overflowed << (RATE_BITS - RATE_SHIFT);
}

bool gw_overflow_rate_is_high(const struct gw_overflow_rate *rate)
{
    return rate->q30 > (UINT32_C(1) << RATE_BITS) / RATE_HIGH_INVERSE;
}
