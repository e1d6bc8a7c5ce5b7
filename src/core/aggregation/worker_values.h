/*
 * A worker's values: from its tensors into gradient packets, and from results into its tensors.
 *
 * Values travel as integers, multiples of a power of two (core/quant). What has no integer travels
 * raw. The exponent of a fragment is what the result one window before it says (scaling.h).
 */
#ifndef GW_CORE_WORKER_VALUES_H
#define GW_CORE_WORKER_VALUES_H

#include "core/aggregation/tensor_row.h"
#include "core/aggregation/worker.h"

struct gw_worker_values {
    const struct gw_worker_cfg *cfg;
    const struct gw_tensor_row *row;
    struct gw_buf_pool *bufs; /* of packets; NULL: they carry no payload */
    uint8_t *agreed;          /* of fragment seq, at seq modulo window_max: what the result one
                                 window before says of the exponent, until its own result */
};

/* No result counts any more: the first window begins, on all workers alike. */
void gw_worker_values_forget(struct gw_worker_values *values);

/* The result of fragment `seq` says `scale` of the fragment one window later. */
static inline void gw_worker_values_agree(struct gw_worker_values *values, uint32_t seq,
                                          uint8_t scale)
{
    values->agreed[seq & (values->cfg->window_max - 1)] = scale;
}

/* What a packet of fragment `seq` offers for the fragment one window later, if that is known. */
uint8_t gw_worker_values_offer(const struct gw_worker_values *values, uint32_t seq);

/* Whether the sum of this fragment might saturate in a switch. */
bool gw_worker_values_might_saturate(const struct gw_worker_values *values,
                                     const struct gw_row_tensor *work, uint32_t seq);

/*
 * Writes the payload of fragment pkt->seq, as integers if they all fit and it is not `raw`. Returns
 * whether it is raw, which then has to be said.
 */
bool gw_worker_values_write(const struct gw_worker_values *values, const struct gw_row_tensor *work,
                            struct gw_pkt *pkt, bool raw);

/* Stores a fragment's result into the tensor. */
void gw_worker_values_store(const struct gw_worker_values *values, const struct gw_row_tensor *work,
                            const struct gw_pkt *pkt);

#endif
