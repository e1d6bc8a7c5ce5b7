/*
 * Receiving of trains; see udp.h.
 *
 * The kernel scatters a train over places, each a buffer of the pool with room for a header before
 * it, laid out for the length of datagram that came last. A place whose buffer is handed on gets a
 * fresh one; when there is none the packet is given up and the place keeps its buffer, so that
 * receiving, and with it the feedback that frees buffers, never stops. A train of other lengths is
 * put together again and copied out: right, only slower, and the next one lies as it should.
 */
#include "net/udp/udp_impl.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "net/datagram.h"
#include "wire/attach.h"

enum {
    IN_A_ROW_MAX = 8, /* trains from one source before the next is looked at */
};

/* The train as it lies in memory. */
struct arrival {
    uint32_t bytes;
    uint32_t segment; /* length of every datagram but the last */
    uint8_t tos;
    bool is_in_place;
    struct gw_udp_group *group;          /* by which it came; NULL: by none */
    uint64_t cookie;                     /* in all its packets */
    const struct gw_datapath_peer *peer; /* NULL: not known yet */
    struct gw_udp_source *missed;        /* by which its results could have come; NULL: by none */
};

static uint8_t *place_bytes(const struct gw_udp *udp, uint32_t i)
{
    return gw_udp_datagram(udp, udp->rx.bufs[i], GW_WIRE_DATA_SIZE);
}

/* Tells the kernel's next scatter where the places are. Those of buffers that lie side by side are
 * one piece, if they are as long. */
static void point_at_places(struct gw_udp *udp)
{
    struct gw_udp_rx *rx = &udp->rx;
    bool fills = rx->stride == udp->base.cfg.pool->bufs->stride;
    rx->iov_count = 0;
    for (uint32_t i = 0; i < rx->places; i++) {
        if (fills && i && rx->bufs[i] == rx->bufs[i - 1] + 1)
            rx->iovs[rx->iov_count - 1].iov_len += rx->stride;
        else
            rx->iovs[rx->iov_count++] = (struct iovec){place_bytes(udp, i), rx->stride};
    }
    rx->iovs[rx->iov_count++] = (struct iovec){rx->overflow, sizeof(rx->overflow)};
}

/* Lays the places out for datagrams of `stride` bytes. */
static void lay_out(struct gw_udp *udp, uint32_t stride)
{
    struct gw_udp_rx *rx = &udp->rx;
    rx->stride = stride;
    rx->places = (GW_UDP_DATAGRAM_MAX + stride - 1) / stride;
    if (rx->places > GW_DATAPATH_TRAIN_MAX)
        rx->places = GW_DATAPATH_TRAIN_MAX;
    point_at_places(udp);
}

/* A layout must have room for the end of a long header, and fit the buffers. None is made for what
 * may be a header alone: answers come between trains of data, which would be copied then. */
static bool fits_places(const struct gw_udp *udp, uint32_t length)
{
    return length > GW_WIRE_HDR_MAX + GW_AUTH_SIZE &&
           length - GW_WIRE_DATA_SIZE <= udp->base.cfg.pool->bufs->size;
}

bool gw_udp_rx_init(struct gw_udp *udp)
{
    struct gw_udp_rx *rx = &udp->rx;
    struct gw_buf_pool *bufs = udp->base.cfg.pool->bufs;
    for (uint32_t i = 0; i < GW_DATAPATH_TRAIN_MAX; i++) {
        rx->bufs[i] = gw_buf_claim(bufs);
        if (rx->bufs[i] == GW_BUF_NONE) {
            while (i-- > 0)
                gw_buf_release(bufs, rx->bufs[i]);
            return false;
        }
    }
    uint32_t full = GW_WIRE_DATA_SIZE + udp->base.cfg.mtu;
    lay_out(udp, fits_places(udp, full) ? full : GW_WIRE_HDR_MAX);
    return true;
}

void gw_udp_rx_fini(struct gw_udp *udp)
{
    for (uint32_t i = 0; i < GW_DATAPATH_TRAIN_MAX; i++)
        gw_buf_release(udp->base.cfg.pool->bufs, udp->rx.bufs[i]);
}

/* Puts the train together in `linear`. */
static void linearise(struct gw_udp *udp, uint32_t bytes)
{
    struct gw_udp_rx *rx = &udp->rx;
    uint32_t at = 0;
    for (uint32_t i = 0; at < bytes; i++) {
        size_t size = rx->iovs[i].iov_len < bytes - at ? rx->iovs[i].iov_len : bytes - at;
        memcpy(rx->linear + at, rx->iovs[i].iov_base, size);
        at += (uint32_t)size;
    }
}

/* The neighbour that the cookie names, or who sends to the group; NULL: nobody. */
static const struct gw_datapath_peer *find_peer(const struct gw_udp *udp,
                                                const struct arrival *arrival)
{
    const struct gw_sock_addr *from = &udp->rx.from;
    const struct gw_udp_group *group = arrival->group;
    if (!group)
        return gw_datagram_sender(&udp->base, arrival->cookie, from);
    const struct gw_datapath_peer *peer = gw_datapath_peer(&udp->base, group->peer);
    bool is_its = peer && arrival->cookie == group->cookie && gw_datagram_is_from(peer, from);
    return is_its ? peer : NULL;
}

/* Of what goes to many only results are for us. */
static bool take_from_group(struct gw_udp *udp, struct gw_udp_group *group, struct gw_pkt *pkt)
{
    if (pkt->q.kind != GW_PKT_PARAM) {
        udp->base.stats.malformed++;
        gw_pkt_release(udp->base.cfg.pool, pkt);
        return false;
    }
    pkt->dst = group->address;
    group->heard++;
    return true;
}

/* What all datagrams of the train have in common. */
static struct gw_datagram any_of(const struct gw_udp *udp, const struct arrival *arrival)
{
    return (struct gw_datagram){
        .peer = arrival->peer,
        .cookie = arrival->cookie,
        .entropy =
            (uint16_t)(gw_sock_addr_port(&udp->rx.from) - gw_sock_addr_port(&arrival->peer->addr)),
        .tos = arrival->tos,
    };
}

/* Turns datagram `i` of the train into a packet, or counts why not. */
static struct gw_pkt *take(struct gw_udp *udp, const struct arrival *arrival,
                           struct gw_datagram *datagram, uint32_t i, gw_time now)
{
    struct gw_udp_rx *rx = &udp->rx;
    uint32_t begin = i * arrival->segment;
    uint32_t left = arrival->bytes - begin;
    datagram->bytes = arrival->is_in_place ? place_bytes(udp, i) : rx->linear + begin;
    datagram->length = left < arrival->segment ? left : arrival->segment;
    datagram->buf = arrival->is_in_place ? &rx->bufs[i] : NULL;
    struct gw_pkt *pkt = gw_datagram_take(&udp->base, datagram, now);
    if (!pkt)
        return NULL;
    if (arrival->group && !take_from_group(udp, arrival->group, pkt)) {
        datagram->before = NULL;
        return NULL;
    }
    if (arrival->missed && pkt->q.kind == GW_PKT_PARAM)
        arrival->missed->group.missed++;
    return pkt;
}

/* Turns datagrams from number `i` on into packets, as far as they are like one before them and lie
 * in place; returns how many. */
static uint32_t take_alike(struct gw_udp *udp, const struct arrival *arrival,
                           const struct gw_datagram *datagram, uint32_t i, struct gw_pkt **pkts)
{
    uint32_t end = arrival->bytes / arrival->segment; /* behind it there may be a shorter one */
    if (!arrival->is_in_place || i >= end || datagram->before_length != arrival->segment)
        return 0;
    uint32_t count = gw_datagram_take_alike(&udp->base, datagram, &udp->rx.bufs[i], end - i, pkts);
    if (arrival->group)
        arrival->group->heard += count;
    else if (arrival->missed && datagram->before && datagram->before->q.kind == GW_PKT_PARAM)
        arrival->missed->group.missed += count;
    return count;
}

/* Whether a message of the attach protocol may come as it did: to a group anybody can send, so it
 * is for probes, its own, and they are for it. */
static bool may_come_by(const struct gw_udp_group *group, const uint8_t *bytes)
{
    bool is_probe = gw_attach_step_of(bytes) == GW_ATTACH_PROBE;
    return group ? is_probe && gw_attach_cookie_of(bytes) == group->cookie : !is_probe;
}

/* The system may have joined several, which one end sent at the same moment. */
static void take_control(struct gw_udp *udp, const struct arrival *arrival, uint32_t length,
                         uint32_t count, struct gw_datapath_train *train)
{
    uint32_t whole = arrival->bytes / length;
    train->controls = whole < GW_DATAPATH_CONTROLS_MAX ? whole : GW_DATAPATH_CONTROLS_MAX;
    linearise(udp, train->controls * length);
    train->control = udp->rx.linear;
    train->length = length;
    train->from = udp->rx.from;
    udp->base.stats.malformed += count - train->controls;
}

/* Sorts out what the first header says: packets of a neighbour, attach protocol, or neither. */
static bool classify(struct gw_udp *udp, struct arrival *arrival, struct gw_datapath_train *train)
{
    uint32_t length = arrival->bytes < arrival->segment ? arrival->bytes : arrival->segment;
    uint32_t count = (arrival->bytes + arrival->segment - 1) / arrival->segment;
    const uint8_t *hdr = place_bytes(udp, 0);
    enum gw_datagram_kind kind = gw_datagram_look(&udp->base, hdr, length, count);
    if (kind == GW_DATAGRAM_REFUSED)
        return false;
    if (kind == GW_DATAGRAM_CONTROL) {
        if (!may_come_by(arrival->group, hdr)) {
            udp->base.stats.malformed += count;
            return false;
        }
        take_control(udp, arrival, length, count, train);
        return false;
    }
    arrival->cookie = gw_wire_cookie(hdr);
    arrival->peer = find_peer(udp, arrival);
    if (!arrival->peer)
        udp->base.stats.wrong_cookie += count;
    return arrival->peer != NULL;
}

/* One system call. Returns 1, 0 when nothing is there, or GW_ERR_SYSTEM. */
static int receive_from(struct gw_udp *udp, struct gw_udp_source *source, struct arrival *arrival,
                        char *error)
{
    struct gw_udp_rx *rx = &udp->rx;
    union {
        char bytes[GW_SOCK_CONTROL_SIZE];
        struct cmsghdr align;
    } control;
    struct msghdr msg = {
        .msg_name = &rx->from.storage,
        .msg_namelen = sizeof(rx->from.storage),
        .msg_iov = rx->iovs,
        .msg_iovlen = rx->iov_count,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes),
    };
    ssize_t got = recvmsg(source->fd, &msg, MSG_DONTWAIT);
    if (got < 0 &&
        (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || gw_udp_is_transient(errno)))
        return 0;
    if (got < 0) {
        char name[64];
        int reason = errno;
        gw_sock_addr_format(&udp->base.address, name, sizeof(name));
        return gw_net_fail(error, GW_ERR_SYSTEM, "cannot receive at %s: %s", name,
                           strerror(reason));
    }
    struct gw_sock_news news = {.kernel_drops = source->drops};
    gw_sock_read_control(&msg, &news);
    udp->base.stats.kernel_drops += (uint32_t)(news.kernel_drops - source->drops);
    source->drops = news.kernel_drops;
    rx->from.length = msg.msg_namelen;
    arrival->bytes = (uint32_t)got;
    arrival->segment = news.segment && news.segment < got ? news.segment : (uint32_t)got;
    /* The DSCP is the class alone where the signal has come otherwise. */
    arrival->tos = news.option ? (uint8_t)(news.option << 2 | gw_wire_tos_ecn(news.tos)) : news.tos;
    arrival->group = source != &udp->sources[0] ? &source->group : NULL;
    return 1;
}

/* Looks first where something came from last, but not for ever: no source shuts others out. */
static int receive(struct gw_udp *udp, struct arrival *arrival, char *error)
{
    int result = 0;
    if (udp->in_a_row == IN_A_ROW_MAX) {
        udp->source++;
        udp->in_a_row = 0;
    }
    for (uint32_t i = 0; i < udp->source_count && result == 0; i++) {
        uint32_t number = (udp->source + i) % udp->source_count;
        if (udp->sources[number].fd < 0 || udp->base.silent >> number & 1)
            continue;
        result = receive_from(udp, &udp->sources[number], arrival, error);
        if (result > 0) {
            udp->in_a_row = number == udp->source ? udp->in_a_row + 1 : 1;
            udp->source = number;
        }
    }
    return result;
}

int gw_udp_receive(struct gw_datapath *datapath, gw_time now, struct gw_datapath_train *train,
                   char *error)
{
    struct gw_udp *udp = gw_udp_of(datapath);
    struct gw_udp_rx *rx = &udp->rx;
    struct arrival arrival = {0};
    train->count = 0;
    train->controls = 0;
    int result = receive(udp, &arrival, error);
    if (result <= 0)
        return result;
    udp->base.stats.rx_trains++;
    bool is_single = arrival.segment == arrival.bytes;
    arrival.is_in_place = is_single ? arrival.bytes <= rx->stride : arrival.segment == rx->stride;
    if (arrival.bytes == 0)
        udp->base.stats.runts++;
    if (arrival.bytes == 0 || !classify(udp, &arrival, train))
        return 1;
    uint32_t count = (arrival.bytes + arrival.segment - 1) / arrival.segment;
    if (count > GW_DATAPATH_TRAIN_MAX || arrival.bytes > sizeof(rx->linear)) {
        udp->base.stats.malformed += count;
        return 1;
    }
    if (!arrival.is_in_place) {
        linearise(udp, arrival.bytes);
        udp->base.stats.rx_copied += count;
    }
    train->peer = (uint16_t)arrival.peer->rx_cookie; /* its number, whatever it sent to */
    arrival.missed = arrival.group ? NULL : gw_udp_source_of(udp, train->peer);
    struct gw_datagram datagram = any_of(udp, &arrival);
    for (uint32_t i = 0; i < count; i++) {
        struct gw_pkt *pkt = take(udp, &arrival, &datagram, i, now);
        if (pkt)
            train->pkts[train->count++] = pkt;
        uint32_t alike = take_alike(udp, &arrival, &datagram, i + 1, &train->pkts[train->count]);
        train->count += (uint16_t)alike;
        i += alike;
    }
    udp->base.stats.received += train->count;
    if (arrival.is_in_place)
        point_at_places(udp); /* the buffers are others now */
    else if (fits_places(udp, arrival.segment))
        lay_out(udp, arrival.segment);
    return 1;
}
