/* The list of implementations, and the choice among them. */
#include "core/quant/kernels.h"

#include <stddef.h>

#include "core/quant/kernels_list.h"

const struct gw_kernels *const gw_kernels_list[] = {
#if defined(__x86_64__)
    &gw_kernels_avx512,
    &gw_kernels_avx2,
#endif
    &gw_kernels_portable,
    NULL,
};

const struct gw_kernels *gw_kernels_best(uint32_t features)
{
    const struct gw_kernels *const *kernels = gw_kernels_list;
    while ((*kernels)->needs & ~features)
        kernels++;
    return *kernels;
}
