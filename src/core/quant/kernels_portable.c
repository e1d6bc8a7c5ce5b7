/* The kernels for any processor: the reference that the others equal in every bit. */
#include "core/quant/kernels_list.h"
#include "core/quant/loops.h"

const struct gw_kernels gw_kernels_portable = {
    .name = "portable",
    GW_LOOP_TABLE,
};
