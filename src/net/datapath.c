/* What all datapaths have in common: their list, and the table of neighbours; see datapath.h. */
#include "net/datapath.h"

#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "wire/wire.h"

#define GW_REGISTER(name) extern const struct gw_datapath_ops gw_datapath_##name;
#include "net/datapath.def"
#undef GW_REGISTER

static const struct gw_datapath_ops *const datapaths[] = {
#define GW_REGISTER(name) &gw_datapath_##name,
#include "net/datapath.def"
#undef GW_REGISTER
};

const struct gw_datapath_ops *gw_datapath_find(const char *name)
{
    for (size_t i = 0; i < sizeof(datapaths) / sizeof(datapaths[0]); i++)
        if (!name || strcmp(datapaths[i]->name, name) == 0)
            return datapaths[i];
    return NULL;
}

static int cfg_check(const struct gw_datapath_cfg *cfg, char *error)
{
    const struct gw_buf_pool *bufs = cfg->pool->bufs;
    if (cfg->entropies < 1 || cfg->entropies > GW_DATAPATH_ENTROPIES_MAX)
        return gw_net_fail(error, GW_ERR_INVALID, "entropies is %u: 1 to %u", cfg->entropies,
                           GW_DATAPATH_ENTROPIES_MAX);
    if (cfg->mtu < 1 || cfg->mtu > GW_WIRE_PAYLOAD_MAX)
        return gw_net_fail(error, GW_ERR_INVALID, "mtu is %u: 1 to %u", cfg->mtu,
                           GW_WIRE_PAYLOAD_MAX);
    if (cfg->peers_max < 1 || cfg->peers_max > GW_DATAPATH_PEERS_MAX)
        return gw_net_fail(error, GW_ERR_INVALID, "peers_max is %u: 1 to %u", cfg->peers_max,
                           GW_DATAPATH_PEERS_MAX);
    if (!bufs || bufs->size < cfg->mtu || bufs->size < GW_WIRE_HDR_MAX ||
        bufs->stride - bufs->size < GW_WIRE_DATA_SIZE || bufs->count <= GW_DATAPATH_TRAIN_MAX)
        return gw_net_fail(error, GW_ERR_INVALID,
                           "the pool needs more than %u buffers of %u bytes, with %u before each",
                           GW_DATAPATH_TRAIN_MAX, cfg->mtu, GW_WIRE_DATA_SIZE);
    return GW_OK;
}

int gw_datapath_open(const struct gw_datapath_ops *ops, const struct gw_datapath_cfg *cfg,
                     struct gw_datapath **datapath, char *error)
{
    int code = cfg_check(cfg, error);
    return code ? code : ops->open(cfg, datapath, error);
}

void gw_datapath_set_peer(struct gw_datapath *datapath, const struct gw_datapath_peer *peer)
{
    uint16_t at = (uint16_t)peer->rx_cookie;
    GW_ASSERT(at < datapath->peers_max && peer->addr.length);
    datapath->peers[at] = *peer;
}

void gw_datapath_clear_peer(struct gw_datapath *datapath, uint16_t peer)
{
    datapath->peers[peer].addr.length = 0;
}

const struct gw_datapath_peer *gw_datapath_peer(const struct gw_datapath *datapath, uint16_t peer)
{
    bool is_there = peer < datapath->peers_max && datapath->peers[peer].addr.length;
    return is_there ? &datapath->peers[peer] : NULL;
}
