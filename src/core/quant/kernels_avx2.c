/* The kernels for processors with AVX2. */
#if defined(__x86_64__)

#define GW_LOOP __attribute__((target("avx2,f16c")))
#define GW_LOOP_F16C
#define GW_LOOP_VECTOR  32
#define GW_LOOP_PMADDWD __builtin_ia32_pmaddwd256
#include "base/cpu.h"
#include "core/quant/kernels_list.h"
#include "core/quant/loops.h"
#include "core/quant/magnitudes.h"

gw_sum_abs *const gw_sums_avx2[] = GW_LOOP_SUMS;

const struct gw_kernels gw_kernels_avx2 = {
    .name = "avx2",
    .needs = GW_CPU_AVX2,
    .sum_abs = gw_sums_avx2,
    GW_LOOP_TABLE,
};

#endif
