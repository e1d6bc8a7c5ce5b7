/*
 * A worker's values: from its tensors into gradient packets, and from results into its tensors.
 *
 * Values travel as integers, multiples of a power of two (core/quant). What has no integer travels
 * raw. The exponent of a fragment is what the result one window before it says (scaling.h).
 *
 * What every packet passes is inline: as calls it is 2 % more instructions per packet of 16 values.
 */
#ifndef GW_CORE_WORKER_VALUES_H
#define GW_CORE_WORKER_VALUES_H

#include <string.h>

#include "base/align.h"
#include "core/aggregation/agg_bound.h"
#include "core/aggregation/scaling.h"
#include "core/aggregation/tensor_row.h"
#include "core/aggregation/worker.h"

struct gw_worker_values {
    const struct gw_worker_cfg *cfg;
    const struct gw_tensor_row *row;
    struct gw_buf_pool *bufs; /* of packets; NULL: they carry no payload */
    uint32_t positions;       /* of the worker's window; "one window" is as many fragments */
    uint8_t *agreed;          /* of fragment seq, at its position: what the result one window before
                                 says of the exponent, until its own result */
};

/* No result counts any more: the first window begins, on all workers alike. */
void gw_worker_values_forget(struct gw_worker_values *values);

/* The result of fragment `seq` says `scale` of the fragment one window later. */
static inline void gw_worker_values_agree(struct gw_worker_values *values, uint32_t seq,
                                          uint8_t scale)
{
    values->agreed[seq & (values->positions - 1)] = scale;
}

/* What the result one window before fragment `seq` says of its exponent. */
static inline uint8_t gw_worker_values_agreed(const struct gw_worker_values *values, uint32_t seq)
{
    return values->agreed[seq & (values->positions - 1)];
}

/* What a packet of fragment `seq` offers for the fragment one window later, if that is known. */
uint8_t gw_worker_values_offer(const struct gw_worker_values *values, uint32_t seq);

/* Whether the sum of this fragment might saturate in a switch. */
bool gw_worker_values_might_saturate(const struct gw_worker_values *values,
                                     const struct gw_row_tensor *work, uint32_t seq);

/* The scale of a fragment whose sum lacks some workers; there is no result one window before those
 * of the first window. */
static inline struct gw_scale gw_worker_values_scale(const struct gw_worker_values *values,
                                                     const struct gw_row_tensor *work, uint32_t seq,
                                                     uint32_t lacks)
{
    const struct gw_worker_cfg *cfg = values->cfg;
    int exponent = gw_scaling_exponent(gw_worker_values_agreed(values, seq), cfg->scale_exponent);
    bool is_integer = work->tensor.type == GW_DTYPE_I32;
    bool averages = work->tensor.op == GW_OP_AVERAGE;
    if ((is_integer || exponent == cfg->scale_exponent) && !(averages && lacks))
        return work->scale;
    uint32_t shares = averages ? cfg->world - lacks : 1;
    return is_integer ? gw_scale_integer(1, shares) : gw_scale_named(exponent, shares);
}

/* Where the fragment lies that is `ahead` places behind `fragment`, of `size` bytes like that, to
 * be fetched: what the hardware fetches by itself ends with every page. It may be behind the
 * tensor. */
static inline const void *gw_worker_values_ahead(const void *fragment, size_t size, uint32_t ahead)
{
    return (const void *)((uintptr_t)fragment + ahead * size);
}

/*
 * Writes the payload of fragment pkt->seq, as integers if they all fit and it is not `raw`. Returns
 * whether it is raw, which then has to be said.
 */
static inline bool gw_worker_values_write(const struct gw_worker_values *values,
                                          const struct gw_row_tensor *work, struct gw_pkt *pkt,
                                          bool raw)
{
    const unsigned char *in = work->tensor.in;
    enum gw_dtype type = work->tensor.type;
    size_t size = (size_t)pkt->agg.values * gw_dtype_size(type);
    if (!in)
        return raw;
    const struct gw_scale scale = gw_worker_values_scale(values, work, pkt->seq, 0);
    unsigned char *out = gw_buf_bytes(values->bufs, pkt->buf);
    in += gw_tensor_row_offset(values->row, work, pkt->seq);
    raw = raw || !values->cfg->kernels->quantise[type](out, in, pkt->agg.values, &scale);
    if (raw) {
        memset(out, 0, 4 * (size_t)pkt->agg.values);
        memcpy(out, in, size);
    }
    gw_prefetch(gw_worker_values_ahead(in, size, 2), size, GW_PREFETCH_READ);
    return raw;
}

/* Stores a fragment's result into the tensor. */
static inline void gw_worker_values_store(const struct gw_worker_values *values,
                                          const struct gw_row_tensor *work,
                                          const struct gw_pkt *pkt)
{
    if (!work->tensor.out || pkt->buf == GW_BUF_NONE)
        return;
    unsigned char *out =
        (unsigned char *)work->tensor.out + gw_tensor_row_offset(values->row, work, pkt->seq);
    const unsigned char *in = gw_buf_bytes(values->bufs, pkt->buf);
    enum gw_dtype type = work->tensor.type;
    const struct gw_scale scale =
        gw_worker_values_scale(values, work, pkt->seq, gw_agg_result_lacks(pkt->agg.bitmap));
    size_t size = (size_t)pkt->agg.values * gw_dtype_size(type);
    /* Most results come in order. */
    gw_prefetch(gw_worker_values_ahead(out, size, 1), size, GW_PREFETCH_WRITE);
    if (pkt->agg_flags & GW_AGG_RAW && type != GW_DTYPE_I32)
        memcpy(out, in, size);
    else
        values->cfg->kernels->dequantise[type](out, in, pkt->agg.values, &scale);
}

#endif
