/*
 * Which scale the values of a fragment travel with, so that sums fit: the proactive mode and the
 * dynamic scaling factor (ATP, appendices B.2 and B.3).
 *
 * A gradient packet offers an exponent for the fragment one window later: the greatest with which
 * no sum of that fragment can saturate if all workers hold such values, and at most the job's.
 * Switches and the server keep the least offer. The server says it in the result, when so many
 * fragments overflow that it is worth it; else it says none, which means the job's.
 *
 * Invariant: all workers scale a fragment alike. What the result one window before says decides,
 * the server says it once and for all, and no worker sends a fragment, nor takes its result, before
 * it has that one. So a result need not say what it was scaled with.
 */
#ifndef GW_CORE_SCALING_H
#define GW_CORE_SCALING_H

#include "core/pkt.h"
#include "core/quant/kernels.h"

/* The values of a fragment, floats of any type, and how many workers add up such fragments. */
struct gw_scaling_values {
    const void *x;
    uint32_t count;
    enum gw_dtype type;
    uint32_t workers;
};

/*
 * What a packet's `scale` says of an exponent, in the same order; every exponent is below
 * GW_PKT_SCALE_NONE, so the least of several offers is that of the least exponent.
 */
uint8_t gw_scaling_byte(int exponent);

/*
 * The exponent that `agreed`, the byte of a result, stands for. No offer is above the job's
 * exponent; so whatever is, none included, stands for the job's.
 */
static inline int gw_scaling_exponent(uint8_t agreed, int job_exponent)
{
    int exponent = agreed + GW_SCALE_EXPONENT_MIN;
    return exponent < job_exponent ? exponent : job_exponent;
}

/*
 * The greatest exponent up to `exponent`, where GW_SCALE_DECIMAL lies between 26 and 27, with which
 * no sum can saturate: |x| <= (2^31 - n) / (n * 2^exponent) for all values. A fragment with NaN or
 * infinity, which is not scaled at all, gives `exponent`.
 */
int gw_scaling_safe(const struct gw_kernels *kernels, const struct gw_scaling_values *values,
                    int exponent);

/*
 * How often fragments have overflowed lately: a moving average over some thousand of them. It
 * begins as zeros.
 */
struct gw_overflow_rate {
    uint32_t q30; /* share of the fragments, in 2^-30 */
};

/* Counts one more fragment. */
void gw_overflow_rate_note(struct gw_overflow_rate *rate, bool overflowed);

/* More than 0.1 %: below that, sending again costs no throughput (ATP, section 3.8). */
bool gw_overflow_rate_is_high(const struct gw_overflow_rate *rate);

#endif
