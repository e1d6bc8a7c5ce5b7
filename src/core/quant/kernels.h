/*
 * The arithmetic of in-network aggregation: loops over the values of one fragment.
 *
 * A node gets one struct gw_kernels at init. There are several, for different processors, and they
 * agree in every bit; portable C is the reference. gw_kernels_best() chooses.
 *
 * In a packet, a fragment is `count` little-endian 32-bit integers ("wire"). The two extreme
 * patterns, INT32_MAX and INT32_MIN, are marks: that element has saturated, its sum is lost, and
 * the fragment must travel again as raw user values. Every other pattern is a value.
 * docs/numbers.md has the reasons.
 *
 * Any count is allowed, also 0, and any alignment; input and output must not overlap. Nothing is
 * written behind the last element. The processor must be in its default floating-point mode (round
 * to nearest, denormals kept): a thread that runs kernels sees to that.
 */
#ifndef GW_CORE_KERNELS_H
#define GW_CORE_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/quant/scale.h"
#include "core/tensor.h"

typedef void gw_sum_abs(gw_real *sums, const void *const *x, const void *const *later,
                        uint32_t rows, uint32_t count);

struct gw_kernels {
    const char *name;
    uint32_t needs; /* enum gw_cpu_feature */

    /*
     * wire[i] = the integer nearest to x[i] * scale->up, ties to even; int32 is copied unscaled.
     * False when a result is a mark or beyond, or x[i] is NaN or infinite: the fragment must travel
     * raw, and what is in `wire` is unspecified. The sign of a zero is lost.
     */
    bool (*quantise[GW_DTYPE_SUMMABLE])(void *wire, const void *x, uint32_t count,
                                        const struct gw_scale *scale);

    /*
     * x[i] = wire[i] / scale->down, rounded once to a double and then to the type, to nearest with
     * ties to even. That is the correctly rounded quotient whenever `down` without its factors of
     * two is below 2^28: for every power-of-two scale, and for 10^8 with up to 687 workers. Marks
     * are not looked at. For int32, `down` is the number of workers.
     */
    void (*dequantise[GW_DTYPE_SUMMABLE])(void *x, const void *wire, uint32_t count,
                                          const struct gw_scale *scale);

    /*
     * sum[i] += wire[i], sticky: when either is a mark, or the sum is one or beyond, the result is
     * a mark. So an element that is no mark is the exact sum of all that was added, in whatever
     * order. Which mark means nothing; it is the same when the operands are swapped. Returns
     * whether the sum holds a mark now.
     */
    bool (*add)(void *sum, const void *wire, uint32_t count);
    /* Is any element a mark? */
    bool (*is_saturated)(const void *wire, uint32_t count);

    /* sum[i] += wire[i]; 2^32 additions fit. */
    void (*add_wide)(int64_t *sum, const void *wire, uint32_t count);
    /* wire[i] = sum[i]. False when a sum needs more than 32 bits: `wire` is then unspecified. A sum
     * that equals a mark fits; is_saturated() tells. */
    bool (*narrow)(void *wire, const int64_t *sum, uint32_t count);

    /* sum[i] += x[i] for raw floats: the caller adds in rank order, so that arrival cannot matter.
     */
    void (*add_real[GW_DTYPE_FLOATS])(gw_real *sum, const void *x, uint32_t count);
    /* x[i] = sum[i] / shares, rounded as by dequantise; every NaN becomes the same one. */
    void (*narrow_real[GW_DTYPE_FLOATS])(void *x, const gw_real *sum, uint32_t count,
                                         uint32_t shares);

    /*
     * x[i] = (x[i] + y[i]) / shares, for workers that sum among themselves: added and divided in
     * double, then rounded once to the type; without a division that is the number nearest to the
     * exact sum. Every NaN becomes the same one, and swapping x and y changes nothing. int32: false
     * when a sum needs more than 32 bits; `x` is then unspecified.
     */
    bool (*reduce[GW_DTYPE_SUMMABLE])(void *x, const void *y, uint32_t count, uint32_t shares);

    /* The largest |x[i]| as the bits of a float32, for gw_scale_exponent_max(); a NaN counts as
     * larger than infinity. 0 when there are none. */
    uint32_t (*max_abs[GW_DTYPE_FLOATS])(const void *x, uint32_t count);

    /*
     * The sums of |x[row][i]| over i < count for each row, for importance.h: lane i % 16 adds
     * element i, of float16 and bfloat16 lane i / 2 % 16; then lane i of each half adds that of the
     * other, until there is one. Lanes are float32, of float64 values float64. Infinity when a
     * value is infinite or NaN, and when a sum does not fit. Count is below 2^24. A sum does not
     * depend on the other rows; several together take less time.
     *
     * `later`, if it is not NULL, has a place in memory for each row, from which half as many bytes
     * as a row has are fetched into L2 meanwhile, as far as rows are summed several at a time; and
     * the rows of this call, which are taken to be in L2, are brought nearer. Otherwise nothing is
     * fetched.
     */
    gw_sum_abs *const *sum_abs; /* by enum gw_dtype, below GW_DTYPE_MAGNITUDES */
};

/* Implementations in order of preference, best first; NULL behind the last, which needs nothing. */
extern const struct gw_kernels *const gw_kernels_list[];

/* The best that a processor with these features (gw_cpu_features()) can run. */
const struct gw_kernels *gw_kernels_best(uint32_t features);

#endif
