/* Trains and endpoints of an overlay; see overlay.h. */
#include "net/roles/overlay.h"

#include "base/error.h"
#include "net/node_memory.h"

enum {
    SPAN_MAX = 1024,
};

uint32_t gw_overlay_train(uint32_t hdr, uint32_t payload)
{
    uint32_t fits = UINT16_MAX / (hdr + payload);
    if (fits < 1)
        return 1;
    return fits < GW_DATAPATH_TRAIN_MAX ? fits : GW_DATAPATH_TRAIN_MAX;
}

int gw_overlay_endpoint_open(struct gw_endpoint_cfg *cfg, struct gw_endpoint **endpoint)
{
    cfg->port_count = 1;
    cfg->span_max = SPAN_MAX;
    cfg->ack_every = GW_OVERLAY_ACK_EVERY;
    cfg->ack_delay = GW_OVERLAY_HOST_TIME;
    cfg->train = gw_overlay_train(cfg->hdr, cfg->mtu);
    cfg->generation = (uint16_t)cfg->seed;
    size_t size = gw_endpoint_size(cfg);
    if (size == 0)
        return GW_ERR_INVALID;
    void *memory = gw_node_memory_take(size);
    if (!memory)
        return GW_ERR_NO_MEMORY;
    *endpoint = gw_endpoint_init(memory, cfg);
    return GW_OK;
}
