/*
 * An endpoint without a network, for fuzz targets: messages arrive, and flows end, at the word of
 * the input. A message goes only where memory is posted for it, as the endpoint would have it.
 */
#ifndef GW_TESTS_POSTED_H
#define GW_TESTS_POSTED_H

#include <stdlib.h>
#include <string.h>

#include "fuzz/replay.h"
#include "support.h"

#include "base/align.h"
#include "core/allocator.h"
#include "core/host/endpoint_impl.h"
#include "core/host/flow_tx.h"

/* Memory that peers can make the target take, at most `limit` bytes. */
struct gw_test_budget {
    size_t limit;
    size_t taken;
};

struct gw_test_piece {
    _Alignas(GW_CACHE_LINE) size_t size;
};

static inline void *gw_test_budget_take(void *context, size_t size)
{
    struct gw_test_budget *budget = context;
    if (size > budget->limit || budget->taken + size > budget->limit)
        return NULL;
    struct gw_test_piece *piece = gw_test_take(sizeof(*piece) + size);
    memset(piece + 1, 0, size);
    piece->size = size;
    budget->taken += size;
    return piece + 1;
}

static inline void gw_test_budget_give(void *context, void *memory)
{
    struct gw_test_budget *budget = context;
    if (!memory)
        return;
    struct gw_test_piece *piece = (struct gw_test_piece *)memory - 1;
    budget->taken -= piece->size;
    free(piece);
}

static inline struct gw_allocator gw_test_budget_allocator(struct gw_test_budget *budget)
{
    return (struct gw_allocator){
        .take = gw_test_budget_take, .give = gw_test_budget_give, .context = budget};
}

/* What a message of the peer does to the endpoint: its contents are of `steps`. Returns false when
 * it is refused, since there is no memory for it. */
static inline bool gw_test_deliver(struct gw_endpoint *ep, uint32_t peer, uint32_t tag,
                                   uint64_t bytes, struct gw_test_steps *steps)
{
    uint32_t i = 0;
    bool is_bare = ep->pool->bufs == NULL;
    while (i < ep->cfg.expect_max &&
           (!ep->expectations[i].data || ep->expectations[i].peer != peer ||
            ep->expectations[i].tag != tag))
        i++;
    if (!is_bare && i == ep->cfg.expect_max)
        return false;
    struct gw_event event = {.kind = GW_EVENT_RECEIVED, .peer = peer, .tag = tag, .bytes = bytes};
    if (!is_bare) {
        struct gw_expect *posted = &ep->expectations[i];
        uint8_t *to = posted->data;
        if (bytes > posted->bytes)
            event.kind = GW_EVENT_FAILED; /* it does not fit, and its sender gives up */
        for (uint64_t at = 0; at < posted->bytes && at < bytes && steps->left; at++)
            to[at] = gw_test_step(steps);
        posted->data = NULL;
    }
    gw_endpoint_post(ep, &event);
    return true;
}

/* Ends the `at`th of the flows that are being sent; false: there are fewer. */
static inline bool gw_test_end_flow(struct gw_endpoint *ep, uint32_t at, bool arrives, gw_time now)
{
    for (uint32_t i = 0; i < ep->cfg.tx_flows_max; i++) {
        struct gw_tx_flow *flow = &ep->tx_flows[i];
        if (!flow->transport || at-- > 0)
            continue;
        if (arrives)
            gw_flow_tx_complete(ep, flow, flow->bytes, now);
        else
            gw_flow_tx_fail(ep, flow, now);
        return true;
    }
    return false;
}

#endif
