/* A worker's values; see worker_values.h. */
#include "core/aggregation/worker_values.h"

void gw_worker_values_forget(struct gw_worker_values *values)
{
    memset(values->agreed, GW_PKT_SCALE_NONE, values->positions);
}

/* The greatest exponent up to `exponent` that is safe for a fragment of floats. */
static int safe_exponent(const struct gw_worker_values *values, const struct gw_row_tensor *work,
                         uint32_t seq, int exponent)
{
    struct gw_scaling_values fragment = {
        .x = (const unsigned char *)work->tensor.in + gw_tensor_row_offset(values->row, work, seq),
        .count = gw_tensor_row_values(values->row, work, seq),
        .type = work->tensor.type,
        .workers = values->cfg->world,
    };
    return gw_scaling_safe(values->cfg->kernels, &fragment, exponent);
}

static bool has_floats(const struct gw_row_tensor *work)
{
    return work && work->tensor.in && work->tensor.type != GW_DTYPE_I32;
}

uint8_t gw_worker_values_offer(const struct gw_worker_values *values, uint32_t seq)
{
    const struct gw_worker_cfg *cfg = values->cfg;
    uint32_t later = seq + values->positions;
    const struct gw_row_tensor *work = gw_tensor_row_find(values->row, later);
    if (!has_floats(work))
        return GW_PKT_SCALE_NONE;
    return gw_scaling_byte(safe_exponent(values, work, later, cfg->scale_exponent));
}

bool gw_worker_values_might_saturate(const struct gw_worker_values *values,
                                     const struct gw_row_tensor *work, uint32_t seq)
{
    int exponent =
        gw_scaling_exponent(gw_worker_values_agreed(values, seq), values->cfg->scale_exponent);
    return has_floats(work) && safe_exponent(values, work, seq, exponent) < exponent;
}
