/*
 * Combines the values of two workers, element by element, for schedules among workers alone: every
 * operation of core/tensor.h on every type, and AND on uint8.
 *
 * The sums that switches know too are kernels, which exist for several processors; all else is
 * portable C, the same for all of them. Every result has the same bits on every machine, and
 * swapping the operands changes none.
 */
#ifndef GW_CORE_COMBINE_H
#define GW_CORE_COMBINE_H

#include "core/quant/kernels.h"

struct gw_combination {
    enum gw_op op;
    enum gw_dtype type; /* gw_op_exists(op, type) */
    uint32_t shares;    /* of an average: divides the sum. 1: not yet, others are to be added */
};

/*
 * x[i] = x[i] op y[i]. Any alignment; x and y do not overlap.
 *
 * Sums are added, and averages divided, in double, then rounded once to the type: of float64 that
 * is one rounding each. Products are exact before they are rounded once. Of -0.0 and 0.0 the
 * minimum is -0.0, the maximum 0.0. If one of the operands is NaN, so is the result, and every NaN
 * becomes the same one.
 *
 * Returns false when a sum or product of integers does not fit the type; `x` is then unspecified.
 */
bool gw_combine(const struct gw_kernels *kernels, const struct gw_combination *how, void *x,
                const void *y, uint32_t count);

#endif
