/* The kernels for any processor: the reference that the others equal in every bit. */
#include "core/quant/kernels_list.h"
#include "core/quant/loops.h"
#include "core/quant/magnitudes.h"

static gw_sum_abs *const sums[] = GW_LOOP_SUMS;

const struct gw_kernels gw_kernels_portable = {
    .name = "portable",
    .sum_abs = sums,
    GW_LOOP_TABLE,
};
