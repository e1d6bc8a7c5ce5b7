/*
 * The implementations by name, for the list in kernels.c and for one another.
 *
 * Those for one architecture exist only there.
 */
#ifndef GW_CORE_KERNELS_LIST_H
#define GW_CORE_KERNELS_LIST_H

#include "core/quant/kernels.h"

extern const struct gw_kernels gw_kernels_portable;
extern const struct gw_kernels gw_kernels_avx2;
extern const struct gw_kernels gw_kernels_avx512;

extern gw_sum_abs *const gw_sums_avx2[GW_DTYPE_MAGNITUDES];

#endif
