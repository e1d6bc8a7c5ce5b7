/* A worker's values; see worker_values.h. */
#include "core/aggregation/worker_values.h"

#include <string.h>

#include "base/align.h"
#include "core/aggregation/scaling.h"

static uint8_t agreed_of(const struct gw_worker_values *values, uint32_t seq)
{
    return values->agreed[seq & (values->cfg->window_max - 1)];
}

void gw_worker_values_forget(struct gw_worker_values *values)
{
    memset(values->agreed, GW_PKT_SCALE_NONE, values->cfg->window_max);
}

/* The scale of a fragment; there is no result one window before those of the first window. */
static struct gw_scale scale_of(const struct gw_worker_values *values,
                                const struct gw_row_tensor *work, uint32_t seq)
{
    const struct gw_worker_cfg *cfg = values->cfg;
    int exponent = gw_scaling_exponent(agreed_of(values, seq), cfg->scale_exponent);
    if (work->tensor.type == GW_DTYPE_I32 || exponent == cfg->scale_exponent)
        return work->scale;
    return gw_scale_power(exponent, work->tensor.average ? cfg->world : 1);
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
    uint32_t later = seq + cfg->window_max;
    const struct gw_row_tensor *work = gw_tensor_row_find(values->row, later);
    if (!has_floats(work))
        return GW_PKT_SCALE_NONE;
    return gw_scaling_byte(safe_exponent(values, work, later, cfg->scale_exponent));
}

bool gw_worker_values_might_saturate(const struct gw_worker_values *values,
                                     const struct gw_row_tensor *work, uint32_t seq)
{
    int exponent = gw_scaling_exponent(agreed_of(values, seq), values->cfg->scale_exponent);
    return has_floats(work) && safe_exponent(values, work, seq, exponent) < exponent;
}

/* Fetches the fragment `ahead` places behind `fragment`, of `size` bytes like that, to be
 * read or written: what the hardware fetches by itself ends with every page. It may lie behind the
 * tensor, of which nothing is touched. */
static inline void fetch_ahead(const void *fragment, size_t size, uint32_t ahead, bool writes)
{
    uintptr_t at = (uintptr_t)fragment + ahead * size;
    for (uintptr_t end = at + size; at < end; at += GW_CACHE_LINE)
        if (writes)
            __builtin_prefetch((const void *)at, 1);
        else
            __builtin_prefetch((const void *)at);
}

bool gw_worker_values_write(const struct gw_worker_values *values, const struct gw_row_tensor *work,
                            struct gw_pkt *pkt, bool raw)
{
    const unsigned char *in = work->tensor.in;
    enum gw_dtype type = work->tensor.type;
    size_t size = (size_t)pkt->agg.values * gw_dtype_size(type);
    if (!in)
        return raw;
    const struct gw_scale scale = scale_of(values, work, pkt->seq);
    unsigned char *out = gw_buf_bytes(values->bufs, pkt->buf);
    in += gw_tensor_row_offset(values->row, work, pkt->seq);
    raw = raw || !values->cfg->kernels->quantise[type](out, in, pkt->agg.values, &scale);
    if (raw) {
        memset(out, 0, 4 * (size_t)pkt->agg.values);
        memcpy(out, in, size);
    }
    fetch_ahead(in, size, 2, false);
    return raw;
}

void gw_worker_values_store(const struct gw_worker_values *values, const struct gw_row_tensor *work,
                            const struct gw_pkt *pkt)
{
    if (!work->tensor.out || pkt->buf == GW_BUF_NONE)
        return;
    unsigned char *out =
        (unsigned char *)work->tensor.out + gw_tensor_row_offset(values->row, work, pkt->seq);
    const unsigned char *in = gw_buf_bytes(values->bufs, pkt->buf);
    enum gw_dtype type = work->tensor.type;
    const struct gw_scale scale = scale_of(values, work, pkt->seq);
    size_t size = (size_t)pkt->agg.values * gw_dtype_size(type);
    fetch_ahead(out, size, 1, true); /* most results come in order */
    if (pkt->agg_flags & GW_AGG_RAW && type != GW_DTYPE_I32)
        memcpy(out, in, size);
    else
        values->cfg->kernels->dequantise[type](out, in, pkt->agg.values, &scale);
}
