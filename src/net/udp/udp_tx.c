/*
 * Sending of trains; see udp.h.
 *
 * The kernel cuts one buffer into datagrams of equal length, of which the last may be shorter: a
 * train is offered in runs of that form, or one datagram at a time where the kernel cannot cut: to
 * one neighbour for a while where it has refused to, since ways out change. The batch is kept until
 * the kernel has taken all of it; while it waits, no other is taken.
 */
#include "net/udp/udp_impl.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"

enum {
    SINGLES = 1024, /* batches: a refused try costs a system call, so they can be seldom */
};

/* Datagrams that the kernel can cut out of one buffer, and the pieces of memory that they take. */
struct run {
    uint32_t count;
    uint32_t pieces;
};

bool gw_udp_tx_init(struct gw_udp *udp)
{
    struct gw_udp_tx *tx = &udp->tx;
    tx->kept = malloc((size_t)GW_UDP_PLACES * udp->base.cfg.mtu);
    tx->batches = calloc(udp->base.cfg.pool->bufs->count, sizeof(*tx->batches));
    tx->singles = calloc(udp->base.peers_max, sizeof(*tx->singles));
    if (udp->base.cfg.encrypts)
        tx->sealed =
            malloc((size_t)GW_UDP_PLACES * (GW_WIRE_HDR_MAX + udp->base.cfg.mtu + GW_AUTH_SIZE));
    return tx->kept && tx->batches && tx->singles && (tx->sealed || !udp->base.cfg.encrypts);
}

/* Whether a header may be written before this payload: it is in a buffer, and has none yet in this
 * batch. */
static bool claim_front(struct gw_udp *udp, uint32_t buf)
{
    struct gw_udp_tx *tx = &udp->tx;
    if (gw_buf_is_lent(buf) || tx->batches[buf] == tx->batch)
        return false;
    tx->batches[buf] = tx->batch;
    return true;
}

/*
 * Encrypts the datagram, and says where it lies: behind the one before it, so that a train is one
 * piece. Its payload stays as it is, for others and for another time; the header is before it for
 * as long as this takes.
 */
static void place_encrypted(struct gw_udp *udp, struct gw_udp_out *out, const struct gw_pkt *pkt,
                            uint32_t payload, struct gw_auth *auth)
{
    struct gw_udp_tx *tx = &udp->tx;
    uint8_t *bytes = out->hdr, *sealed = tx->sealed + tx->sealed_size;
    uint32_t hdr_size = out->length - payload;
    GW_ASSERT(tx->sealed && payload <= udp->base.cfg.mtu);
    if (payload) {
        bytes = gw_udp_datagram(udp, pkt->buf, hdr_size);
        memcpy(bytes, out->hdr, hdr_size);
    }
    gw_auth_encrypt(auth, bytes, out->length, sealed);
    out->length += GW_AUTH_SIZE;
    tx->sealed_size += out->length;
    out->pieces[0] = (struct iovec){sealed, out->length};
    out->piece_count = 1;
}

/* Says where the datagram lies, with its authentication if there is one. */
static void place(struct gw_udp *udp, struct gw_udp_out *out, const struct gw_pkt *pkt,
                  uint32_t payload, bool is_whole)
{
    struct gw_udp_tx *tx = &udp->tx;
    struct gw_auth *auth = udp->base.peers[tx->peer].auth;
    out->pieces[0] = (struct iovec){out->hdr, out->length - (is_whole ? 0 : payload)};
    out->piece_count = 1;
    if (payload && !is_whole)
        out->pieces[out->piece_count++] =
            (struct iovec){(void *)gw_buf_payload(udp->base.cfg.pool->bufs, pkt->buf), payload};
    if (auth) {
        GW_ASSERT(!is_whole || payload + GW_AUTH_SIZE <= udp->base.cfg.pool->bufs->size);
        uint8_t *bytes = is_whole ? out->hdr + out->length : tx->auths[out - tx->outs];
        gw_auth_seal(auth, out->pieces, out->piece_count, bytes);
        out->pieces[out->piece_count++] = (struct iovec){bytes, GW_AUTH_SIZE};
        out->length += GW_AUTH_SIZE;
    }
}

/* Takes the signal, if there is one, out of the TOS byte, which keeps class and ECN. */
static uint8_t take_signal(const struct gw_pkt *pkt, uint8_t *tos)
{
    uint8_t with_signal = *tos;
    if (gw_wire_tos_signal(with_signal) == GW_WIRE_SIGNAL_NONE)
        return 0;
    *tos = gw_wire_tos(GW_WIRE_SIGNAL_NONE, pkt->q.class, pkt->q.ecn);
    return with_signal >> 2;
}

/* Writes the header, and what else the packet says of its datagram. */
static __attribute__((noinline)) void encode(struct gw_udp *udp, const struct gw_codec *codec,
                                             const struct gw_pkt *pkt, struct gw_udp_out *out)
{
    struct gw_frame frame;
    gw_codec_encode(codec, pkt, &frame);
    memcpy(out->hdr, frame.hdr, frame.hdr_size);
    out->length = frame.length;
    out->entropy = frame.entropy;
    out->tos = frame.tos;
    out->option = udp->base.cfg.signals_by_option ? take_signal(pkt, &out->tos) : 0;
}

/* Adds a packet to the batch; `is_copy`: the packet itself comes again. */
static void append(struct gw_udp *udp, const struct gw_codec *codec, struct gw_pkt *pkt,
                   bool is_copy)
{
    struct gw_udp_tx *tx = &udp->tx;
    struct gw_auth *auth = udp->base.peers[tx->peer].auth;
    uint32_t at = tx->count++, payload = gw_codec_payload(pkt);
    const struct gw_pkt *like = at ? tx->pkts[tx->like] : NULL;
    struct gw_udp_out *out = &tx->outs[at], *like_out = &tx->outs[tx->like];
    GW_ASSERT(payload == 0 || pkt->buf != GW_BUF_NONE);
    bool encrypts = gw_auth_encrypts(auth);
    bool is_whole = payload && !encrypts && claim_front(udp, pkt->buf);
    out->hdr = is_whole ? gw_udp_datagram(udp, pkt->buf, GW_WIRE_DATA_SIZE) : tx->hdrs[at];
    if (like && gw_codec_encode_like(pkt, like, like_out->hdr, out->hdr)) {
        out->length = GW_WIRE_DATA_SIZE + payload;
        out->entropy = like_out->entropy;
        out->tos = like_out->tos;
        out->option = like_out->option;
    } else {
        encode(udp, codec, pkt, out);
        tx->like = at;
    }
    GW_DEBUG_ASSERT(!payload || out->length == GW_WIRE_DATA_SIZE + payload);
    tx->pkts[at] = is_copy ? NULL : pkt;
    if (encrypts)
        place_encrypted(udp, out, pkt, payload, auth);
    else
        place(udp, out, pkt, payload, is_whole);
}

/* Adds packets, as far as they are like one in the batch and lie in a buffer of their own, or are
 * lent. Returns how many. */
static uint32_t append_alike(struct gw_udp *udp, struct gw_pkt **pkts, uint32_t count)
{
    struct gw_udp_tx *tx = &udp->tx;
    const struct gw_pkt *like = tx->pkts[tx->like];
    const struct gw_udp_out *like_out = &tx->outs[tx->like];
    const uint32_t length = like_out->length;
    uint32_t i = 0;
    if (udp->base.peers[tx->peer].auth || length == GW_WIRE_DATA_SIZE)
        return 0;
    for (; i < count; i++) {
        struct gw_udp_out *out = &tx->outs[tx->count];
        uint32_t buf = pkts[i]->buf;
        bool is_lent = gw_buf_is_lent(buf);
        if (!is_lent && (buf == GW_BUF_NONE || tx->batches[buf] == tx->batch))
            break;
        out->hdr = is_lent ? tx->hdrs[tx->count] : gw_udp_datagram(udp, buf, GW_WIRE_DATA_SIZE);
        if (!gw_codec_encode_like(pkts[i], like, like_out->hdr, out->hdr))
            break;
        out->length = length;
        out->entropy = like_out->entropy;
        out->tos = like_out->tos;
        out->option = like_out->option;
        place(udp, out, pkts[i], length - GW_WIRE_DATA_SIZE, !is_lent);
        if (!is_lent)
            tx->batches[buf] = tx->batch;
        tx->pkts[tx->count++] = pkts[i];
    }
    return i;
}

/* Adds a packet, or does to it what was asked for. */
static void append_with_faults(struct gw_udp *udp, const struct gw_codec *codec, struct gw_pkt *pkt)
{
    switch (gw_tx_faults_draw(&udp->faults, pkt, udp->tx.peer, &udp->base.stats)) {
    case GW_TX_LOST:
        gw_pkt_release(udp->base.cfg.pool, pkt);
        return;
    case GW_TX_LATE:
        return;
    case GW_TX_TWICE:
        append(udp, codec, pkt, true);
        break;
    case GW_TX_SENT:
        break;
    }
    append(udp, codec, pkt, false);
}

/* Makes the packets the current batch. */
static void load(struct gw_udp *udp, uint16_t number, struct gw_pkt **pkts, uint32_t count)
{
    struct gw_udp_tx *tx = &udp->tx;
    bool has_faults = gw_tx_faults_exist(&udp->faults);
    struct gw_codec codec = {.cookie = udp->base.peers[number].tx_cookie};
    struct gw_pkt *late = gw_tx_faults_take_late(&udp->faults, number);
    tx->first = tx->count = tx->sealed_size = 0;
    tx->batch++;
    tx->peer = number;
    tx->singles[number] -= tx->singles[number] > 0;
    if (has_faults || gw_auth_encrypts(udp->base.peers[number].auth))
        count = gw_pkt_settle(udp->base.cfg.pool, pkts, count, &udp->base.stats.no_room);
    for (uint32_t i = 0; i < count; i++) {
        GW_DEBUG_ASSERT(pkts[i]->entropy == pkts[0]->entropy);
        if (has_faults) {
            append_with_faults(udp, &codec, pkts[i]);
            continue;
        }
        append(udp, &codec, pkts[i], false);
        i += append_alike(udp, &pkts[i + 1], count - i - 1);
    }
    if (late)
        append(udp, &codec, late, false);
    if (tx->count)
        tx->fd = udp->fds[tx->outs[0].entropy % udp->base.cfg.entropies];
}

/* Takes `count` datagrams off the batch: they are sent, or given up. */
static void drop_front(struct gw_udp *udp, uint32_t count)
{
    struct gw_udp_tx *tx = &udp->tx;
    for (; count > 0; count--) {
        struct gw_pkt *pkt = tx->pkts[tx->first++];
        if (pkt)
            gw_pkt_release(udp->base.cfg.pool, pkt);
    }
}

/* The batch has to wait: what is lent to it is copied. */
static void keep(struct gw_udp *udp)
{
    struct gw_udp_tx *tx = &udp->tx;
    for (uint32_t i = tx->first; i < tx->count; i++) {
        struct iovec *payload = &tx->outs[i].pieces[1];
        if (!tx->pkts[i] || !gw_buf_is_lent(tx->pkts[i]->buf) || !gw_codec_payload(tx->pkts[i]))
            continue;
        uint8_t *copy = tx->kept + (size_t)i * udp->base.cfg.mtu;
        memcpy(copy, payload->iov_base, payload->iov_len);
        payload->iov_base = copy;
        tx->pkts[i]->buf = GW_BUF_NONE;
    }
}

/* Whether the kernel can cut both out of one buffer, which it does into datagrams of equal length,
 * but for the last, with the same IP header. */
static bool may_follow(const struct gw_udp_out *first, const struct gw_udp_out *next)
{
    return next->length <= first->length && next->tos == first->tos &&
           next->option == first->option;
}

/* Lists the memory of as many datagrams as the kernel can cut out of it; says how many they and
 * their pieces are. */
static struct run gather(struct gw_udp *udp)
{
    struct gw_udp_tx *tx = &udp->tx;
    const struct gw_udp_out *first = &tx->outs[tx->first], *end = &tx->outs[tx->count], *out;
    uint32_t room = GW_UDP_DATAGRAM_MAX - (udp->base.overhead - GW_WIRE_DATA_SIZE), bytes = 0;
    struct run run = {0};
    room -= first->option ? GW_SOCK_OPTION_SIZE : 0;
    if (!udp->segments || tx->singles[tx->peer])
        end = first + 1;
    else if (end - first > GW_DATAPATH_TRAIN_MAX)
        end = first + GW_DATAPATH_TRAIN_MAX;
    for (out = first; out < end; out++) {
        if (out != first && (bytes + out->length > room || !may_follow(first, out)))
            break;
        bytes += out->length;
        for (uint32_t i = 0; i < out->piece_count; i++)
            run.pieces = gw_udp_append(tx->iovs, run.pieces, out->pieces[i].iov_base,
                                       out->pieces[i].iov_len);
        if (out->length < first->length) {
            out++;
            break;
        }
    }
    run.count = (uint32_t)(out - first);
    return run;
}

/* One datagram, or the train that the kernel cuts into several. */
static ssize_t send_pieces(int fd, const struct gw_sock_addr *to,
                           const struct gw_sock_beside *beside, struct iovec *iovs, uint32_t count)
{
    union {
        char bytes[GW_SOCK_CONTROL_SIZE];
        struct cmsghdr align;
    } control;
    struct msghdr msg = {
        .msg_name = (void *)&to->storage,
        .msg_namelen = to->length,
        .msg_iov = iovs,
        .msg_iovlen = count,
        .msg_control = control.bytes,
        .msg_controllen = gw_sock_write_control(to, beside, control.bytes),
    };
    ssize_t taken;
    do {
        taken = sendmsg(fd, &msg, MSG_DONTWAIT);
    } while (taken < 0 && errno == EINTR);
    return taken;
}

static ssize_t send_run(struct gw_udp *udp, const struct run *run)
{
    struct gw_udp_tx *tx = &udp->tx;
    const struct gw_udp_out *first = &tx->outs[tx->first];
    const struct gw_sock_beside beside = {
        .tos = first->tos,
        .option = first->option,
        .segment = run->count > 1 ? (uint16_t)first->length : 0,
    };
    return send_pieces(tx->fd, &udp->base.peers[tx->peer].addr, &beside, tx->iovs, run->pieces);
}

/* Whether a run was refused because it is one: this way out cannot cut trains, or not these. */
static bool is_uncut(uint32_t count, bool is_group)
{
    bool is_refused = errno == EIO || errno == EMSGSIZE || (errno == EINVAL && !is_group);
    return count > 1 && is_refused;
}

/* Offers the batch to the kernel. */
static int flush(struct gw_udp *udp, char *error)
{
    struct gw_udp_tx *tx = &udp->tx;
    bool is_group = udp->base.peers[tx->peer].addr.interface != 0;
    tx->is_blocked = false;
    if (tx->first < tx->count && !udp->base.peers[tx->peer].addr.length)
        drop_front(udp, tx->count - tx->first); /* gone while its train waited */
    while (tx->first < tx->count) {
        const struct run run = gather(udp);
        if (send_run(udp, &run) >= 0) {
            udp->base.stats.sent += run.count;
            udp->base.stats.tx_trains++;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            tx->is_blocked = true;
            udp->base.stats.blocked++;
            keep(udp);
            return GW_OK;
        } else if (is_uncut(run.count, is_group)) {
            tx->singles[tx->peer] = SINGLES;
            continue;
        } else if (is_group) {
            udp->base.stats.send_errors += run.count; /* who hears nothing gets it otherwise */
        } else if (udp->base.cfg.serves_many || gw_udp_is_transient(errno)) {
            udp->base.stats.send_errors += run.count;
            udp->base.stats.too_long += errno == EMSGSIZE ? run.count : 0;
        } else {
            char name[64];
            int reason = errno;
            gw_sock_addr_format(&udp->base.peers[tx->peer].addr, name, sizeof(name));
            return gw_net_fail(error, GW_ERR_SYSTEM, "cannot send %u bytes to %s: %s",
                               tx->outs[tx->first].length, name, strerror(reason));
        }
        drop_front(udp, run.count);
    }
    return GW_OK;
}

int gw_udp_flush(struct gw_datapath *datapath, char *error)
{
    return flush(gw_udp_of(datapath), error);
}

bool gw_udp_can_send(const struct gw_datapath *datapath)
{
    const struct gw_udp_tx *tx = &gw_udp_of_const(datapath)->tx;
    return tx->first == tx->count;
}

int gw_udp_send(struct gw_datapath *datapath, uint16_t number, struct gw_pkt **pkts, uint32_t count,
                char *error)
{
    struct gw_udp *udp = gw_udp_of(datapath);
    GW_ASSERT(gw_udp_can_send(datapath) && count <= GW_DATAPATH_TRAIN_MAX);
    if (!gw_datapath_peer(datapath, number)) {
        for (uint32_t i = 0; i < count; i++)
            gw_pkt_release(udp->base.cfg.pool, pkts[i]);
        udp->base.stats.send_errors += count;
        return GW_OK;
    }
    load(udp, number, pkts, count);
    return flush(udp, error);
}

void gw_udp_send_control(struct gw_datapath *datapath, const struct gw_sock_addr *to,
                         const uint8_t *bytes, uint32_t length)
{
    struct gw_udp *udp = gw_udp_of(datapath);
    struct iovec iov = {(void *)bytes, length};
    const struct gw_sock_beside nothing = {.tos = 0};
    udp->base.stats.send_errors += send_pieces(udp->fds[0], to, &nothing, &iov, 1) < 0;
}

int gw_udp_blocked_fd(const struct gw_datapath *datapath)
{
    const struct gw_udp *udp = gw_udp_of_const(datapath);
    return udp->tx.is_blocked ? udp->tx.fd : -1;
}

void gw_udp_tx_fini(struct gw_udp *udp)
{
    drop_front(udp, udp->tx.count - udp->tx.first);
    gw_tx_faults_fini(&udp->faults, udp->base.cfg.pool);
    free(udp->tx.sealed);
    free(udp->tx.kept);
    free(udp->tx.singles);
    free(udp->tx.batches);
}
