/*
 * The loop of the UDP datapath, and its two directions; see udp.h.
 *
 * Sending: one call of output fills a batch, which is one train and so one socket and one TOS. The
 * batch is kept until the kernel has taken all of it; while it waits, the node is not asked for
 * more.
 *
 * Receiving: each datagram of a batch lands in a place, its header in the frame and its payload in
 * a buffer of the pool. A place whose buffer is handed on gets a fresh one; when there is none the
 * packet is given up and the place keeps its buffer, so that receiving, and with it the feedback
 * that frees buffers, never stops.
 */
#define _GNU_SOURCE
#include "net/udp.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/prng.h"
#include "core/codec.h"
#include "net/clock.h"

enum {
    /* Trains sent before the socket is read again: feedback stays fresh in a long burst. */
    TX_TRAINS_PER_TURN = 32,
    /* The end of an answer that is longer than a data header lands in the buffer. */
    HDR_TAIL = GW_WIRE_HDR_MAX - GW_WIRE_DATA_SIZE,
};

_Static_assert(GW_UDP_HDR_IPV4 == 28 + GW_WIRE_DATA_SIZE, "IPv4 and UDP");
_Static_assert(GW_UDP_HDR_IPV6 == 48 + GW_WIRE_DATA_SIZE, "IPv6 and UDP");

union control {
    char bytes[GW_SOCK_CONTROL_SIZE];
    struct cmsghdr align;
};

/* The batch on its way out: datagrams [first, count) have not been taken by the kernel. */
struct tx {
    uint32_t first;
    uint32_t count;
    int fd;
    bool is_blocked;
    struct gw_pkt *pkts[GW_UDP_BATCH];
    struct gw_frame frames[GW_UDP_BATCH];
    struct iovec iovs[GW_UDP_BATCH][2];
    struct mmsghdr msgs[GW_UDP_BATCH];
    union control control;
};

struct rx {
    uint32_t bufs[GW_UDP_BATCH];
    struct gw_frame frames[GW_UDP_BATCH];
    struct gw_sock_addr from[GW_UDP_BATCH];
    struct iovec iovs[GW_UDP_BATCH][2];
    struct mmsghdr msgs[GW_UDP_BATCH];
    union control controls[GW_UDP_BATCH];
};

struct gw_udp {
    struct gw_udp_cfg cfg;
    struct gw_codec codec;
    gw_time opened_at; /* by the clock */
    struct gw_sock_addr local;
    struct gw_sock_addr peer;
    char peer_name[64];
    bool is_ready; /* the port has reported and not yet said that it is empty */
    struct gw_prng prng;
    struct gw_udp_stats stats;
    int fds[GW_SOCK_ROW_MAX];
    struct tx tx;
    struct rx rx;
};

__attribute__((format(printf, 3, 4))) static int fail(char *error, int code, const char *format,
                                                      ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, GW_NET_ERROR_MAX, format, args);
    va_end(args);
    return code;
}

static int cfg_check(const struct gw_udp_cfg *cfg, char *error)
{
    const struct gw_buf_pool *bufs = cfg->pool->bufs;
    if (cfg->entropies < 1 || cfg->entropies > GW_SOCK_ROW_MAX)
        return fail(error, GW_ERR_INVALID, "entropies is %u: 1 to %u", cfg->entropies,
                    GW_SOCK_ROW_MAX);
    if (cfg->mtu < 1 || cfg->mtu > GW_WIRE_PAYLOAD_MAX)
        return fail(error, GW_ERR_INVALID, "mtu is %u: 1 to %u", cfg->mtu, GW_WIRE_PAYLOAD_MAX);
    if (!bufs || bufs->size < cfg->mtu || bufs->size < HDR_TAIL || bufs->count <= GW_UDP_BATCH)
        return fail(error, GW_ERR_INVALID, "the pool needs more than %u buffers of %u bytes",
                    GW_UDP_BATCH, cfg->mtu);
    return GW_OK;
}

/* Claims the buffers that receiving keeps for itself; false when the pool has too few. */
static bool rx_init(struct gw_udp *udp)
{
    struct rx *rx = &udp->rx;
    for (uint32_t i = 0; i < GW_UDP_BATCH; i++) {
        rx->bufs[i] = gw_buf_claim(udp->cfg.pool->bufs);
        if (rx->bufs[i] == GW_BUF_NONE) {
            while (i-- > 0)
                gw_buf_release(udp->cfg.pool->bufs, rx->bufs[i]);
            return false;
        }
        rx->iovs[i][0] =
            (struct iovec){.iov_base = rx->frames[i].hdr, .iov_len = GW_WIRE_DATA_SIZE};
    }
    return true;
}

static void rx_fini(struct gw_udp *udp)
{
    for (uint32_t i = 0; i < GW_UDP_BATCH; i++)
        gw_buf_release(udp->cfg.pool->bufs, udp->rx.bufs[i]);
}

int gw_udp_open(const struct gw_udp_cfg *cfg, struct gw_udp **out, char *error)
{
    int code = cfg_check(cfg, error);
    if (code)
        return code;
    struct gw_udp *udp = calloc(1, sizeof(*udp));
    if (!udp)
        return fail(error, GW_ERR_NO_MEMORY, "out of memory");
    udp->cfg = *cfg;
    udp->cfg.address = NULL; /* the caller's text; parsed below */
    udp->prng = gw_prng_derive(cfg->seed, 0);
    udp->opened_at = gw_clock_now();
    if (gw_sock_parse(cfg->address, cfg->port, &udp->local) != 0) {
        free(udp);
        return fail(error, GW_ERR_INVALID, "not an IP address: %s", cfg->address);
    }
    udp->codec = (struct gw_codec){
        .cookie = cfg->cookie,
        .overhead = (udp->local.storage.ss_family == AF_INET ? GW_UDP_HDR_IPV4 : GW_UDP_HDR_IPV6) -
                    GW_WIRE_DATA_SIZE,
    };
    if (!rx_init(udp)) {
        free(udp);
        return fail(error, GW_ERR_NO_ROOM, "the pool has no %u free buffers", GW_UDP_BATCH);
    }
    code = gw_sock_open_row(&udp->local, cfg->entropies, cfg->buffer_bytes, udp->fds, error);
    if (code) {
        rx_fini(udp);
        free(udp);
        return code;
    }
    *out = udp;
    return GW_OK;
}

void gw_udp_close(struct gw_udp *udp)
{
    for (uint32_t i = udp->tx.first; i < udp->tx.count; i++)
        gw_pkt_release(udp->cfg.pool, udp->tx.pkts[i]);
    rx_fini(udp);
    gw_sock_close_row(udp->fds, udp->cfg.entropies);
    free(udp);
}

uint16_t gw_udp_port(const struct gw_udp *udp)
{
    return gw_sock_port(&udp->local);
}

int gw_udp_connect(struct gw_udp *udp, const char *address, uint16_t port, char *error)
{
    struct gw_sock_addr peer;
    if (gw_sock_parse(address, port, &peer) != 0 || port == 0 ||
        peer.storage.ss_family != udp->local.storage.ss_family)
        return fail(error, GW_ERR_INVALID, "not an address that we can send to: %s port %u",
                    address, port);
    udp->peer = peer;
    gw_sock_format(&peer, udp->peer_name, sizeof(udp->peer_name));
    return GW_OK;
}

gw_time gw_udp_now(const struct gw_udp *udp)
{
    return gw_clock_now() - udp->opened_at;
}

const struct gw_udp_stats *gw_udp_stats(const struct gw_udp *udp)
{
    return &udp->stats;
}

/* Makes the packets of one output call the current batch, less those that are to be lost. */
static void tx_load(struct gw_udp *udp, struct gw_pkt **pkts, uint32_t count)
{
    struct tx *tx = &udp->tx;
    size_t control_size = 0;
    tx->first = tx->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct gw_pkt *pkt = pkts[i];
        if (gw_prng_chance(&udp->prng, udp->cfg.lose_q32)) {
            udp->stats.lost++;
            gw_pkt_release(udp->cfg.pool, pkt);
            continue;
        }
        uint32_t at = tx->count++;
        struct gw_frame *frame = &tx->frames[at];
        gw_codec_encode(&udp->codec, pkt, frame);
        if (at == 0) {
            tx->fd = udp->fds[frame->entropy % udp->cfg.entropies];
            control_size = gw_sock_write_tos(&udp->peer, frame->tos, tx->control.bytes);
        }
        GW_DEBUG_ASSERT(frame->entropy == tx->frames[0].entropy && frame->tos == tx->frames[0].tos);
        uint32_t payload = frame->length - frame->hdr_size;
        GW_ASSERT(payload == 0 || pkt->buf != GW_BUF_NONE);
        tx->pkts[at] = pkt;
        tx->iovs[at][0] = (struct iovec){.iov_base = frame->hdr, .iov_len = frame->hdr_size};
        tx->iovs[at][1] = (struct iovec){
            .iov_base = payload ? gw_buf_bytes(udp->cfg.pool->bufs, pkt->buf) : NULL,
            .iov_len = payload,
        };
        tx->msgs[at].msg_hdr = (struct msghdr){
            .msg_name = &udp->peer.storage,
            .msg_namelen = udp->peer.length,
            .msg_iov = tx->iovs[at],
            .msg_iovlen = payload ? 2 : 1,
            .msg_control = tx->control.bytes,
            .msg_controllen = control_size,
        };
    }
}

/* The network or a filter is in the way; the transport repairs what is lost meanwhile. */
static bool is_transient(int reason)
{
    return reason == ENOBUFS || reason == EPERM || reason == ECONNREFUSED ||
           reason == ENETUNREACH || reason == EHOSTUNREACH || reason == ENETDOWN;
}

/* Offers the batch to the kernel until all of it is taken or there is no room. */
static int tx_flush(struct gw_udp *udp, char *error)
{
    struct tx *tx = &udp->tx;
    tx->is_blocked = false;
    while (tx->first < tx->count) {
        int taken = sendmmsg(tx->fd, &tx->msgs[tx->first], tx->count - tx->first, MSG_DONTWAIT);
        if (taken < 0 && errno == EINTR)
            continue;
        if (taken < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            tx->is_blocked = true;
            udp->stats.blocked++;
            return GW_OK;
        }
        if (taken < 0 && !is_transient(errno))
            return fail(error, GW_ERR_SYSTEM, "cannot send %u bytes to %s: %s",
                        tx->frames[tx->first].length, udp->peer_name, strerror(errno));
        if (taken < 0) {
            udp->stats.send_errors++;
            taken = 1;
        } else {
            udp->stats.sent += (uint32_t)taken;
        }
        for (; taken > 0; taken--)
            gw_pkt_release(udp->cfg.pool, tx->pkts[tx->first++]);
    }
    return GW_OK;
}

static void collect_ready(struct gw_udp *udp)
{
    struct gw_node *node = udp->cfg.node;
    udp->is_ready |= node->ready_count != 0;
    node->ready_count = 0;
}

/* Sends what is ready, as far as one turn goes. */
static int tx_turn(struct gw_udp *udp, char *error)
{
    int code = tx_flush(udp, error);
    for (uint32_t i = 0; i < TX_TRAINS_PER_TURN && !code && !udp->tx.is_blocked; i++) {
        collect_ready(udp);
        if (!udp->is_ready)
            break;
        struct gw_pkt *pkts[GW_UDP_BATCH];
        uint32_t result = gw_node_output(udp->cfg.node, 0, pkts, GW_UDP_BATCH, gw_udp_now(udp));
        udp->is_ready = result & GW_OUTPUT_MORE;
        tx_load(udp, pkts, result & ~GW_OUTPUT_MORE);
        code = tx_flush(udp, error);
    }
    return code;
}

static void count_refusal(struct gw_udp_stats *stats, int code)
{
    if (code == GW_ERR_VERSION)
        stats->wrong_version++;
    else if (code == GW_ERR_UNKNOWN)
        stats->wrong_cookie++;
    else
        stats->malformed++;
}

/* Turns datagram `i` of the batch into a packet, or counts why not. */
static struct gw_pkt *rx_take(struct gw_udp *udp, uint32_t i, gw_time now)
{
    struct rx *rx = &udp->rx;
    struct gw_pkt_pool *pool = udp->cfg.pool;
    struct gw_frame *frame = &rx->frames[i];
    struct msghdr *msg = &rx->msgs[i].msg_hdr;
    uint32_t kernel_drops = (uint32_t)udp->stats.kernel_drops;
    frame->length = rx->msgs[i].msg_len;
    frame->entropy = (uint16_t)(gw_sock_port(&rx->from[i]) - gw_sock_port(&udp->peer));
    frame->tos = 0;
    gw_sock_read_control(msg, &frame->tos, &kernel_drops);
    udp->stats.kernel_drops += kernel_drops - (uint32_t)udp->stats.kernel_drops;
    if (frame->length < GW_WIRE_ANSWER_SIZE) {
        udp->stats.runts++;
        return NULL;
    }
    if (msg->msg_flags & MSG_TRUNC) {
        udp->stats.malformed++;
        return NULL;
    }
    memcpy(frame->hdr + GW_WIRE_DATA_SIZE, gw_buf_bytes(pool->bufs, rx->bufs[i]), HDR_TAIL);
    struct gw_pkt *pkt = gw_pkt_claim(pool);
    if (!pkt) {
        udp->stats.no_room++;
        return NULL;
    }
    int code = gw_codec_decode(&udp->codec, frame, now, pkt);
    uint32_t fresh = GW_BUF_NONE;
    if (code) {
        count_refusal(&udp->stats, code);
    } else if (gw_codec_payload(pkt)) {
        fresh = gw_buf_claim(pool->bufs);
        udp->stats.no_room += fresh == GW_BUF_NONE;
    }
    if (code || (gw_codec_payload(pkt) && fresh == GW_BUF_NONE)) {
        pkt->buf = GW_BUF_NONE;
        gw_pkt_release(pool, pkt);
        return NULL;
    }
    if (fresh != GW_BUF_NONE) {
        pkt->buf = rx->bufs[i];
        rx->bufs[i] = fresh;
    }
    udp->stats.received++;
    return pkt;
}

/* Reads one batch, and gives it to the node. Stores how many datagrams there were. */
static int rx_turn(struct gw_udp *udp, uint32_t *count, char *error)
{
    struct rx *rx = &udp->rx;
    *count = 0;
    for (uint32_t i = 0; i < GW_UDP_BATCH; i++) {
        rx->iovs[i][1] = (struct iovec){
            .iov_base = gw_buf_bytes(udp->cfg.pool->bufs, rx->bufs[i]),
            .iov_len = udp->cfg.pool->bufs->size,
        };
        rx->msgs[i].msg_hdr = (struct msghdr){
            .msg_name = &rx->from[i].storage,
            .msg_namelen = sizeof(rx->from[i].storage),
            .msg_iov = rx->iovs[i],
            .msg_iovlen = 2,
            .msg_control = rx->controls[i].bytes,
            .msg_controllen = sizeof(rx->controls[i].bytes),
        };
    }
    int got = recvmmsg(udp->fds[0], rx->msgs, GW_UDP_BATCH, MSG_DONTWAIT, NULL);
    if (got < 0 &&
        (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || is_transient(errno)))
        return GW_OK;
    if (got < 0)
        return fail(error, GW_ERR_SYSTEM, "cannot receive from %s: %s", udp->peer_name,
                    strerror(errno));
    struct gw_pkt *pkts[GW_UDP_BATCH];
    uint32_t good = 0;
    gw_time now = gw_udp_now(udp);
    for (uint32_t i = 0; i < (uint32_t)got; i++) {
        pkts[good] = rx_take(udp, i, now);
        good += pkts[good] != NULL;
    }
    if (good)
        gw_node_input(udp->cfg.node, 0, pkts, good, now);
    *count = (uint32_t)got;
    return GW_OK;
}

/* Sleeps until a socket can move, or `wake`. */
static int rest(struct gw_udp *udp, gw_time wake, char *error)
{
    struct pollfd fds[2] = {{.fd = udp->fds[0], .events = POLLIN}};
    nfds_t count = 1;
    if (udp->tx.is_blocked)
        fds[count++] = (struct pollfd){.fd = udp->tx.fd, .events = POLLOUT};
    gw_time now = gw_udp_now(udp);
    /* Rounded up to whole nanoseconds, so that the deadline has passed when it returns. */
    gw_time left = gw_time_before(now, wake) ? wake - now + GW_NS - 1 : 0;
    struct timespec timeout = {
        .tv_sec = (time_t)(left / GW_S),
        .tv_nsec = (long)(left % GW_S / GW_NS),
    };
    if (ppoll(fds, count, &timeout, NULL) < 0 && errno != EINTR)
        return fail(error, GW_ERR_SYSTEM, "cannot wait for %s: %s", udp->peer_name,
                    strerror(errno));
    return GW_OK;
}

int gw_udp_run(struct gw_udp *udp, gw_time until, char *error)
{
    struct gw_node *node = udp->cfg.node;
    GW_ASSERT(udp->peer.length != 0 && until != GW_TIME_NEVER);
    for (;;) {
        uint32_t received;
        gw_time now = gw_udp_now(udp);
        gw_time deadline = gw_node_deadline(node);
        if (deadline != GW_TIME_NEVER && !gw_time_before(now, deadline))
            gw_node_expire(node, now);
        int code = rx_turn(udp, &received, error);
        if (!code)
            code = tx_turn(udp, error);
        if (code)
            return code;
        if (node->event_count)
            return GW_OK;
        if (!gw_time_before(now, until))
            return fail(error, GW_ERR_TIMED_OUT, "%s: nothing to report before the deadline",
                        udp->peer_name);
        collect_ready(udp);
        bool can_go_on = received || (udp->is_ready && !udp->tx.is_blocked);
        deadline = gw_node_deadline(node);
        if (!can_go_on)
            code = rest(udp, gw_deadline_before(deadline, until) ? deadline : until, error);
        if (code)
            return code;
    }
}
