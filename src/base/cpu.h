/*
 * What the processor can do, as far as the project makes use of it.
 *
 * A caller of gw_cpu_features() hands the result to gw_kernels_best() once, at start.
 */
#ifndef GW_BASE_CPU_H
#define GW_BASE_CPU_H

#include <stdint.h>

/* A bit is set when the processor has the instructions and the system saves their registers. */
enum gw_cpu_feature {
    GW_CPU_AVX2 = 1,   /* and F16C, which came before it */
    GW_CPU_AVX512 = 2, /* F, BW, DQ and VL: all that servers have had since 2017 */
};

/* The features of this processor; 0 on other architectures than x86-64. */
uint32_t gw_cpu_features(void);

#endif
