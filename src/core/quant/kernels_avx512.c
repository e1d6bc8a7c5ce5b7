/* The kernels for processors with AVX-512. */
#if defined(__x86_64__)

#if defined(__clang__)
#define GW_LOOP __attribute__((target("f16c,avx512f,avx512bw,avx512dq,avx512vl")))
#else /* GCC takes half the width unless told otherwise. */
#define GW_LOOP                                                                                    \
    __attribute__((target("f16c,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")))
#endif
#define GW_LOOP_F16C

#include "base/cpu.h"
#include "core/quant/kernels_list.h"
#include "core/quant/loops.h"

const struct gw_kernels gw_kernels_avx512 = {
    .name = "avx512",
    .needs = GW_CPU_AVX512,
    .sum_abs = gw_sums_avx2,
    GW_LOOP_TABLE,
};

#endif
