/* What all datapaths have in common: their list, what they open with, and the table of neighbours;
 * see datapath.h. */
#include "net/datapath.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"

#define GW_REGISTER(name) extern const struct gw_datapath_ops gw_datapath_##name;
#include "net/datapath.def"
#undef GW_REGISTER

static const struct gw_datapath_ops *const datapaths[] = {
#define GW_REGISTER(name) &gw_datapath_##name,
#include "net/datapath.def"
#undef GW_REGISTER
};

#define DATAPATH_COUNT (sizeof(datapaths) / sizeof(datapaths[0]))

const struct gw_datapath_ops *gw_datapath_find(const char *name)
{
    for (size_t i = 0; i < DATAPATH_COUNT; i++)
        if (!name || strcmp(datapaths[i]->name, name) == 0)
            return datapaths[i];
    return NULL;
}

const struct gw_datapath_ops *gw_datapath_at(uint32_t place)
{
    return place < DATAPATH_COUNT ? datapaths[place] : NULL;
}

const struct gw_datapath_ops *gw_datapath_choose(const char *name, char *error)
{
    const struct gw_datapath_ops *found = gw_datapath_find(name);
    char names[GW_NET_ERROR_MAX / 2] = "";
    size_t length = 0;
    for (uint32_t i = 0; i < DATAPATH_COUNT && !found && length < sizeof(names); i++)
        length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s", i ? ", " : "",
                                   datapaths[i]->name);
    if (!found)
        gw_net_fail(error, GW_ERR_INVALID, "no datapath is called %.40s: %s", name, names);
    return found;
}

int gw_datapath_init(struct gw_datapath *datapath, const struct gw_datapath_cfg *cfg, char *error)
{
    datapath->cfg = *cfg;
    datapath->cfg.address = NULL;
    datapath->peers_max = cfg->peers_max;
    datapath->peers = NULL;
    if (gw_sock_addr_parse(cfg->address, cfg->port, &datapath->address) != 0)
        return gw_net_fail(error, GW_ERR_INVALID, "not an IP address: %s", cfg->address);
    bool is_v6 = gw_sock_addr_is_v6(&datapath->address);
    datapath->overhead = is_v6 ? GW_DATAPATH_HDR_IPV6 : GW_DATAPATH_HDR_IPV4;
    datapath->peers = calloc(cfg->peers_max, sizeof(*datapath->peers));
    return datapath->peers ? GW_OK : gw_net_fail(error, GW_ERR_NO_MEMORY, "out of memory");
}

void gw_datapath_fini(struct gw_datapath *datapath)
{
    free(datapath->peers);
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
