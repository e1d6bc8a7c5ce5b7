/* Opening and closing of the UDP datapath, and the groups that it listens to; see udp.h. */
#include "net/udp/udp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "net/udp/udp_impl.h"

enum {
    MISSED_MIN = 8, /* results; a few come another way even when all is well */
};

/* Signals in options of the IP header: a matter of IPv4, and of those who may send raw packets. */
static int take_options(struct gw_udp *udp, const char *address, char *error)
{
    if (!udp->base.cfg.signals_by_option)
        return GW_OK;
    if (gw_sock_addr_is_v6(&udp->base.address))
        return gw_net_fail(error, GW_ERR_INVALID,
                           "signals cannot be IPv4 options at %s, an address of IPv6", address);
    if (!gw_sock_take_options(udp->fds[0]))
        return gw_net_fail(error, GW_ERR_SYSTEM,
                           "signals as IPv4 options need the capability CAP_NET_RAW");
    return GW_OK;
}

/* What is there when nothing else is; the caller closes it after a failure, too. */
static int open_all(struct gw_udp *udp, const struct gw_datapath_cfg *cfg, char *error)
{
    int code = gw_datapath_init(&udp->base, cfg, error);
    if (!code && !gw_udp_tx_init(udp))
        code = gw_net_fail(error, GW_ERR_NO_MEMORY, "out of memory");
    if (!code)
        code = gw_sock_open_row(&udp->base.address, cfg->entropies, cfg->buffer_bytes, udp->fds,
                                error);
    if (code)
        return code;
    code = take_options(udp, cfg->address, error);
    if (code) {
        gw_sock_close_row(udp->fds, cfg->entropies);
        return code;
    }
    udp->sources[0].fd = udp->fds[0];
    udp->source_count = 1;
    udp->segments = cfg->has_trains && gw_sock_join_trains(udp->fds[0]);
    if (!gw_udp_rx_init(udp)) {
        gw_sock_close_row(udp->fds, cfg->entropies);
        return gw_net_fail(error, GW_ERR_NO_ROOM, "the pool has no %u free buffers",
                           GW_DATAPATH_TRAIN_MAX);
    }
    return GW_OK;
}

static int open_udp(const struct gw_datapath_cfg *cfg, struct gw_datapath **out, char *error)
{
    struct gw_udp *udp = calloc(1, sizeof(*udp));
    if (!udp)
        return gw_net_fail(error, GW_ERR_NO_MEMORY, "out of memory");
    udp->base.ops = &gw_datapath_udp;
    gw_tx_faults_init(&udp->faults, &cfg->faults);
    int code = open_all(udp, cfg, error);
    if (code) {
        gw_udp_tx_fini(udp);
        gw_datapath_fini(&udp->base);
        free(udp);
        return code;
    }
    *out = &udp->base;
    return GW_OK;
}

static void unlisten(struct gw_datapath *datapath, uint16_t peer)
{
    struct gw_udp *udp = gw_udp_of(datapath);
    struct gw_udp_source *source = gw_udp_source_of(udp, peer);
    if (!source)
        return;
    close(source->fd);
    source->fd = -1;
    while (udp->sources[udp->source_count - 1].fd < 0)
        udp->source_count--;
}

static void listen_to_group(struct gw_datapath *datapath, uint16_t peer,
                            const struct gw_sock_addr *group, uint64_t cookie, uint32_t address)
{
    struct gw_udp *udp = gw_udp_of(datapath);
    uint32_t i = 1;
    unlisten(datapath, peer);
    while (i < udp->source_count && udp->sources[i].fd >= 0)
        i++;
    int fd = i < GW_DATAPATH_FDS_MAX ? gw_sock_open_group(group, udp->base.cfg.buffer_bytes) : -1;
    if (fd < 0)
        return;
    udp->sources[i] = (struct gw_udp_source){
        .fd = fd,
        .group = {.peer = peer, .address = address, .cookie = cookie},
    };
    if (i == udp->source_count)
        udp->source_count++;
}

static bool misses_group(struct gw_datapath *datapath, uint16_t *peer)
{
    struct gw_udp *udp = gw_udp_of(datapath);
    bool misses = false;
    for (uint32_t i = 1; i < udp->source_count && !misses; i++) {
        struct gw_udp_group *group = &udp->sources[i].group;
        misses =
            udp->sources[i].fd >= 0 && group->missed > MISSED_MIN && group->missed > group->heard;
        group->heard = group->missed = 0;
        *peer = group->peer;
    }
    return misses;
}

static void close_udp(struct gw_datapath *datapath)
{
    struct gw_udp *udp = gw_udp_of(datapath);
    gw_udp_tx_fini(udp);
    gw_udp_rx_fini(udp);
    while (udp->source_count > 1)
        unlisten(datapath, udp->sources[udp->source_count - 1].group.peer);
    gw_sock_close_row(udp->fds, udp->base.cfg.entropies);
    gw_datapath_fini(&udp->base);
    free(udp);
}

static uint32_t receive_fds(const struct gw_datapath *datapath, int *fds)
{
    const struct gw_udp *udp = gw_udp_of_const(datapath);
    for (uint32_t i = 0; i < udp->source_count; i++)
        fds[i] = udp->sources[i].fd;
    return udp->source_count;
}

bool gw_udp_is_transient(int reason)
{
    return reason == ENOBUFS || reason == EPERM || reason == ECONNREFUSED ||
           reason == ENETUNREACH || reason == EHOSTUNREACH || reason == ENETDOWN ||
           reason == EMSGSIZE;
}

const struct gw_datapath_ops gw_datapath_udp = {
    .name = "udp",
    .open = open_udp,
    .close = close_udp,
    .receive = gw_udp_receive,
    .can_send = gw_udp_can_send,
    .send = gw_udp_send,
    .flush = gw_udp_flush,
    .send_control = gw_udp_send_control,
    .listen = listen_to_group,
    .unlisten = unlisten,
    .misses_group = misses_group,
    .receive_fds = receive_fds,
    .blocked_fd = gw_udp_blocked_fd,
};
