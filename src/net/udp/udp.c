/* Opening and closing of the UDP datapath, and its table of neighbours; see udp.h. */
#include "net/udp/udp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "net/udp/udp_impl.h"

_Static_assert(GW_UDP_HDR_IPV4 == 28 + GW_WIRE_DATA_SIZE, "IPv4 and UDP");
_Static_assert(GW_UDP_HDR_IPV6 == 48 + GW_WIRE_DATA_SIZE, "IPv6 and UDP");

enum {
    MISSED_MIN = 8, /* results; a few come another way even when all is well */
};

static int cfg_check(const struct gw_udp_cfg *cfg, char *error)
{
    const struct gw_buf_pool *bufs = cfg->pool->bufs;
    if (cfg->entropies < 1 || cfg->entropies > GW_SOCK_ROW_MAX)
        return gw_net_fail(error, GW_ERR_INVALID, "entropies is %u: 1 to %u", cfg->entropies,
                           GW_SOCK_ROW_MAX);
    if (cfg->mtu < 1 || cfg->mtu > GW_WIRE_PAYLOAD_MAX)
        return gw_net_fail(error, GW_ERR_INVALID, "mtu is %u: 1 to %u", cfg->mtu,
                           GW_WIRE_PAYLOAD_MAX);
    if (cfg->peers_max < 1 || cfg->peers_max > GW_UDP_PEERS_MAX)
        return gw_net_fail(error, GW_ERR_INVALID, "peers_max is %u: 1 to %u", cfg->peers_max,
                           GW_UDP_PEERS_MAX);
    if (!bufs || bufs->size < cfg->mtu || bufs->size < GW_WIRE_HDR_MAX ||
        bufs->stride - bufs->size < GW_WIRE_DATA_SIZE || bufs->count <= GW_UDP_TRAIN_MAX)
        return gw_net_fail(error, GW_ERR_INVALID,
                           "the pool needs more than %u buffers of %u bytes, with %u before each",
                           GW_UDP_TRAIN_MAX, cfg->mtu, GW_WIRE_DATA_SIZE);
    return GW_OK;
}

/* What is there when nothing else is; the caller closes it after a failure, too. */
static int open_all(struct gw_udp *udp, const char *address, char *error)
{
    const struct gw_udp_cfg *cfg = &udp->cfg;
    if (gw_sock_parse(address, cfg->port, &udp->local) != 0)
        return gw_net_fail(error, GW_ERR_INVALID, "not an IP address: %s", address);
    udp->ip_overhead =
        (udp->local.storage.ss_family == AF_INET ? GW_UDP_HDR_IPV4 : GW_UDP_HDR_IPV6) -
        GW_WIRE_DATA_SIZE;
    udp->peers = calloc(cfg->peers_max, sizeof(*udp->peers));
    if (!udp->peers || !gw_udp_tx_init(udp))
        return gw_net_fail(error, GW_ERR_NO_MEMORY, "out of memory");
    int code = gw_sock_open_row(&udp->local, cfg->entropies, cfg->buffer_bytes, udp->fds, error);
    if (code)
        return code;
    udp->sources[0].fd = udp->fds[0];
    udp->sources[1].fd = -1;
    udp->segments = cfg->has_trains && gw_sock_join_trains(udp->fds[0]);
    if (!gw_udp_rx_init(udp)) {
        gw_sock_close_row(udp->fds, cfg->entropies);
        return gw_net_fail(error, GW_ERR_NO_ROOM, "the pool has no %u free buffers",
                           GW_UDP_TRAIN_MAX);
    }
    return GW_OK;
}

int gw_udp_open(const struct gw_udp_cfg *cfg, struct gw_udp **out, char *error)
{
    int code = cfg_check(cfg, error);
    if (code)
        return code;
    struct gw_udp *udp = calloc(1, sizeof(*udp));
    if (!udp)
        return gw_net_fail(error, GW_ERR_NO_MEMORY, "out of memory");
    udp->cfg = *cfg;
    udp->cfg.address = NULL; /* the caller's text; parsed below */
    udp->prng = gw_prng_derive(cfg->faults.seed, 0);
    code = open_all(udp, cfg->address, error);
    if (code) {
        gw_udp_tx_fini(udp);
        free(udp->peers);
        free(udp);
        return code;
    }
    *out = udp;
    return GW_OK;
}

void gw_udp_close(struct gw_udp *udp)
{
    gw_udp_tx_fini(udp);
    gw_udp_rx_fini(udp);
    gw_udp_unlisten(udp, udp->group.peer);
    gw_sock_close_row(udp->fds, udp->cfg.entropies);
    free(udp->peers);
    free(udp);
}

const struct gw_sock_addr *gw_udp_address(const struct gw_udp *udp)
{
    return &udp->local;
}

uint32_t gw_udp_overhead(const struct gw_udp *udp)
{
    return udp->ip_overhead + GW_WIRE_DATA_SIZE;
}

void gw_udp_set_peer(struct gw_udp *udp, const struct gw_udp_peer *peer)
{
    uint16_t at = (uint16_t)peer->rx_cookie;
    GW_ASSERT(at < udp->cfg.peers_max && peer->addr.length);
    udp->peers[at] = *peer;
}

void gw_udp_clear_peer(struct gw_udp *udp, uint16_t peer)
{
    udp->peers[peer].addr.length = 0;
}

void gw_udp_listen(struct gw_udp *udp, uint16_t peer, const struct gw_sock_addr *group,
                   uint64_t cookie, uint32_t address)
{
    struct gw_udp_source *source = &udp->sources[1];
    gw_udp_unlisten(udp, peer);
    if (source->fd >= 0)
        return;
    udp->group = (struct gw_udp_group){.peer = peer, .address = address, .cookie = cookie};
    *source = (struct gw_udp_source){.fd = gw_sock_open_group(group, udp->cfg.buffer_bytes)};
}

void gw_udp_unlisten(struct gw_udp *udp, uint16_t peer)
{
    struct gw_udp_source *source = &udp->sources[1];
    if (source->fd < 0 || udp->group.peer != peer)
        return;
    close(source->fd);
    source->fd = -1;
}

bool gw_udp_misses_group(struct gw_udp *udp, uint16_t *peer)
{
    struct gw_udp_group *group = &udp->group;
    bool misses =
        udp->sources[1].fd >= 0 && group->missed > MISSED_MIN && group->missed > group->heard;
    group->heard = group->missed = 0;
    *peer = group->peer;
    return misses;
}

const struct gw_udp_peer *gw_udp_peer(const struct gw_udp *udp, uint16_t peer)
{
    bool is_there = peer < udp->cfg.peers_max && udp->peers[peer].addr.length;
    return is_there ? &udp->peers[peer] : NULL;
}

const struct gw_udp_stats *gw_udp_stats(const struct gw_udp *udp)
{
    return &udp->stats;
}

bool gw_udp_is_transient(int reason)
{
    return reason == ENOBUFS || reason == EPERM || reason == ECONNREFUSED ||
           reason == ENETUNREACH || reason == EHOSTUNREACH || reason == ENETDOWN;
}
