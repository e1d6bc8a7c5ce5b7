/*
 * Random trains through the UDP datapath: what leaves its socket is, byte for byte, what a plain
 * encoder makes of every packet, whatever is alike, shared, lent, sealed, doubled, late, refused or
 * kept meanwhile; and what the datapath at the other end takes out of it is what a plain decoder
 * does. A sendmsg() of our own stands between them. The loopback of a network namespace of ours.
 */
#define _GNU_SOURCE /* unshare() */
#include "host.h"
#include "random_pkt.h"
#include "support.h"
#include "unit/net/auth_ends.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/blast_hail.h"
#include "core/codec.h"
#include "net/tx_faults.h"
#include "net/udp/udp.h"

enum {
    MTU = 1408,
    PKTS = 1024,
    ENTROPIES = 4,
    PEERS = 3, /* the real one, a group, and one without authentication */
    REAL = 0,
    GROUP = 1,
    BARE = 2,
    PLACES = 2 * GW_DATAPATH_TRAIN_MAX,
    ROUNDS = 6,
    TRAINS = 1500 / GW_TEST_EVERY(3),
    LENT = 4 << 20,
    DATAGRAM_MAX = GW_WIRE_HDR_MAX + MTU + GW_AUTH_SIZE,
    UDP_MAX = 65507,
    OPTION_SIZE = 4,
    OPTION_SHIFT = 2, /* of a signal in an option */
};

static const uint64_t seed = 4711;

/* A datagram as a plain encoder makes it. */
struct plain {
    uint8_t bytes[DATAGRAM_MAX];
    uint32_t length, hdr_size;
    uint8_t tos;
    uint16_t entropy;
};

/* One that left. */
struct seen {
    uint8_t bytes[UDP_MAX];
    uint32_t length;
    uint8_t tos, option;
    bool is_passed;
    struct gw_sock_addr to;
};

static struct {
    struct gw_prng prng;
    struct gw_sock_addr real;
    uint32_t refused_in; /* calls that find no room: one in so many; 0: none */
    uint32_t uncut_in, lost_in;
    uint32_t count;
    struct seen seen[PLACES];
    uint64_t calls, runs, longest, blocked, uncut, options;
} net;

static bool happens(uint32_t in)
{
    return in && gw_prng_below(&net.prng, in) == 0;
}

/* The kernel: takes datagrams, whole or in runs, or finds reasons not to. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    static uint8_t flat[1 << 18];
    uint32_t total = 0, segment = 0;
    int tos = -1;
    uint8_t option = 0;
    struct gw_sock_addr to = {.length = message->msg_namelen};
    memcpy(&to.storage, message->msg_name, message->msg_namelen);
    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at;
         at = CMSG_NXTHDR((struct msghdr *)message, at)) {
        if (at->cmsg_level == IPPROTO_UDP && at->cmsg_type == UDP_SEGMENT)
            segment = *(uint16_t *)CMSG_DATA(at);
        else if (at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_TOS)
            memcpy(&tos, CMSG_DATA(at), sizeof(tos));
        else if (at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_RETOPTS)
            option = CMSG_DATA(at)[2] >> OPTION_SHIFT;
    }
    net.calls++;
    assert_true(message->msg_iovlen > 0 && message->msg_iovlen <= 1024);
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        const struct iovec *iov = &message->msg_iov[i];
        assert_true(iov->iov_len > 0 && total + iov->iov_len <= sizeof(flat));
        memcpy(flat + total, iov->iov_base, iov->iov_len);
        total += (uint32_t)iov->iov_len;
    }
    assert_true(total <= UDP_MAX && tos >= 0);
    if (happens(net.refused_in)) {
        net.blocked++;
        errno = EAGAIN;
        return -1;
    }
    if (segment && option && total > UDP_MAX - OPTION_SIZE) { /* the kernel's header is longer */
        net.uncut++;
        errno = EMSGSIZE;
        return -1;
    }
    if (segment && happens(net.uncut_in)) {
        net.uncut++;
        errno = gw_prng_below(&net.prng, 2) ? EIO : EMSGSIZE;
        return -1;
    }
    bool is_lost = happens(net.lost_in);
    bool is_real = gw_sock_addr_is_same(&to, &net.real);
    uint32_t step = segment ? segment : total, count = (total + step - 1) / step;
    assert_true(!segment || (count > 1 && count <= GW_DATAPATH_TRAIN_MAX));
    net.runs += count > 1;
    net.longest = count > net.longest ? count : net.longest;
    net.options += option != 0;
    for (uint32_t i = 0; i < count; i++) {
        assert_true(net.count < PLACES);
        struct seen *seen = &net.seen[net.count++];
        seen->length = i + 1 < count ? step : total - i * step;
        memcpy(seen->bytes, flat + i * step, seen->length);
        seen->tos = (uint8_t)tos;
        seen->option = option;
        seen->to = to;
        seen->is_passed = is_real && !is_lost;
    }
    if (is_lost) {
        errno = ENOBUFS;
        return -1;
    }
    if (!is_real)
        return (ssize_t)total;
    ssize_t got = syscall(SYS_sendmsg, fd, message, flags);
    if (got != (ssize_t)total)
        fail_msg("sendmsg: %s", strerror(errno));
    return got;
}

struct fixture {
    struct gw_test_host host; /* its pool is for both */
    struct gw_datapath *a, *b;
    struct ends ends, group_ends;
    struct gw_auth judge, group_judge;
    struct gw_tx_faults faults; /* draws what the datapath draws */
    struct plain late;
    uint16_t late_peer;
    struct gw_datapath_peer peers[PEERS];
    struct gw_prng prng;
    bool protects, encrypts, by_option;
    uint8_t *lent;
    uint32_t lent_at;
    char error[GW_NET_ERROR_MAX];
    uint64_t datagrams, taken, dropped;
};

static void open_fixture(struct fixture *f, uint32_t stream, bool protects, bool encrypts,
                         bool has_faults, bool by_option, bool has_trains)
{
    memset(f, 0, sizeof(*f));
    f->prng = gw_prng_derive(seed, stream);
    net.prng = gw_prng_derive(seed + 1, stream);
    f->protects = protects;
    f->encrypts = encrypts;
    f->by_option = by_option;
    f->lent = malloc(LENT);
    struct gw_endpoint_cfg cfg = gw_test_host_cfg(1, MTU + GW_AUTH_SIZE);
    gw_test_host_open(&f->host, &cfg, PKTS);
    const struct gw_datapath_faults faults = {.lose_q32 = has_faults ? UINT32_MAX / 20 : 0,
                                              .duplicate_q32 = has_faults ? UINT32_MAX / 5 : 0,
                                              .delay_q32 = has_faults ? UINT32_MAX / 10 : 0,
                                              .seed = stream};
    struct gw_datapath_cfg udp = {.pool = &f->host.pool,
                                  .address = "127.0.0.1",
                                  .entropies = ENTROPIES,
                                  .mtu = MTU,
                                  .buffer_bytes = 4 << 20,
                                  .peers_max = PEERS,
                                  .has_trains = has_trains,
                                  .encrypts = encrypts,
                                  .signals_by_option = by_option,
                                  .faults = faults};
    gw_tx_faults_init(&f->faults, &faults);
    assert_int_equal(gw_datapath_open(&gw_datapath_udp, &udp, &f->a, f->error), 0);
    udp.faults = (struct gw_datapath_faults){0};
    udp.has_trains = true;
    assert_int_equal(gw_datapath_open(&gw_datapath_udp, &udp, &f->b, f->error), 0);
    ends_open(&f->ends, encrypts);
    ends_open(&f->group_ends, encrypts);
    f->judge = f->ends.responder;
    f->group_judge = f->group_ends.responder;
    net.real = *gw_datapath_address(f->b);
    for (uint16_t i = 0; i < PEERS; i++) {
        f->peers[i] = (struct gw_datapath_peer){.addr = net.real,
                                                .entropies = ENTROPIES,
                                                .tx_cookie = UINT64_C(0x1234567800000000) +
                                                             (uint64_t)i * 0x1000000,
                                                .rx_cookie = UINT64_C(0x1122334455660000) + i,
                                                .auth = !protects || i == BARE ? NULL
                                                        : i == REAL            ? &f->ends.initiator
                                                                    : &f->group_ends.initiator};
        if (i != REAL)
            gw_sock_addr_set_port(&f->peers[i].addr, (uint16_t)(7 + i));
    }
    f->peers[GROUP].addr.interface = 1;
    for (uint16_t i = 0; i < PEERS; i++)
        gw_datapath_set_peer(f->a, &f->peers[i]);
    gw_datapath_set_peer(f->b,
                         &(struct gw_datapath_peer){.addr = *gw_datapath_address(f->a),
                                                    .entropies = ENTROPIES,
                                                    .tx_cookie = 77 << 16,
                                                    .rx_cookie = f->peers[REAL].tx_cookie,
                                                    .auth = protects ? &f->ends.responder : NULL});
}

static void close_fixture(struct fixture *f)
{
    gw_datapath_close(f->a);
    gw_datapath_close(f->b);
    gw_test_host_close(&f->host);
    free(f->lent);
}

static bool is_agg(const struct gw_pkt *pkt)
{
    return pkt->q.kind == GW_PKT_GRAD || pkt->q.kind == GW_PKT_PARAM;
}

/* What only gradients and results say. */
static void change_sum(struct gw_prng *prng, struct gw_pkt *pkt, uint32_t what)
{
    switch (what) {
    case 7:
        pkt->agg.bitmap ^= 1u << gw_prng_below(prng, 32);
        break;
    case 8:
        pkt->agg.is_unmarked = pkt->q.kind == GW_PKT_GRAD && !pkt->agg.is_unmarked;
        break;
    case 13:
        pkt->agg_flags ^= GW_AGG_ECN;
        break;
    case 14:
        pkt->scale++;
        break;
    case 15: /* the same kind of fragment the other way */
        if (!(pkt->agg_flags & ~(GW_AGG_RAW | GW_AGG_ECN | GW_AGG_COLLISION)) &&
            pkt->agg.bound == 0 && !(pkt->q.flags & GW_PKT_HEAD)) {
            pkt->q.kind ^= GW_PKT_GRAD ^ GW_PKT_PARAM;
            pkt->agg.is_unmarked = false;
        }
        break;
    default:
        break;
    }
}

/* What only data says. */
static void change_data(struct gw_prng *prng, struct gw_pkt *pkt, uint32_t what)
{
    if (what == 10 && pkt->q.flags & GW_PKT_TRIMMABLE) {
        pkt->q.flags ^= GW_PKT_TRIMMED;
    } else if (what == 11) { /* the last of the message */
        pkt->seq = pkt->data.total - 1;
        pkt->data.len = (uint16_t)(1 + gw_prng_below(prng, pkt->data.mss));
    } else if (what == 12 && pkt->seq + 1 < pkt->data.total) {
        pkt->data.tag++;
    }
}

/* The next packet of a train: mostly like the one before it. */
static void change(struct gw_prng *prng, struct gw_pkt *pkt, uint32_t payload_max)
{
    bool is_data = pkt->q.kind == GW_PKT_DATA;
    uint32_t what = gw_prng_below(prng, 40);
    bool may_lead = is_data || pkt->q.kind == GW_PKT_GRAD;
    uint16_t entropy = pkt->entropy;
    switch (what) {
    case 0:
        *pkt = gw_random_pkt(prng, payload_max, 0);
        if (pkt->q.kind == GW_PKT_HAIL)
            pkt->hail.marks &= (uint8_t)~GW_HAIL_BARE;
        pkt->entropy = entropy;
        break;
    case 1:
        pkt->q.ecn = (uint8_t)gw_prng_below(prng, 4);
        break;
    case 2:
        if (pkt->q.kind != GW_PKT_NOTICE)
            pkt->q.class = (uint8_t)gw_prng_below(prng, GW_CLASSES);
        break;
    case 3:
        if (may_lead)
            pkt->q.flags ^= GW_PKT_HEAD;
        break;
    case 4:
        pkt->flow += 1;
        break;
    case 5:
        pkt->dst ^= 1u << gw_prng_below(prng, 32);
        break;
    case 6:
        pkt->sent_at += is_data;
        break;
    case 9: /* shorter, or longer */
        if (is_data && pkt->seq + 1 < pkt->data.total)
            pkt->data.len = pkt->data.mss = (uint16_t)(1 + gw_prng_below(prng, payload_max));
        else if (is_agg(pkt) && pkt->agg.values)
            pkt->agg.values = (uint16_t)(1 + gw_prng_below(prng, payload_max / 4));
        break;
    case 10:
    case 11:
    case 12:
        if (is_data)
            change_data(prng, pkt, what);
        break;
    case 7:
    case 8:
    case 13:
    case 14:
    case 15:
        if (is_agg(pkt))
            change_sum(prng, pkt, what);
        break;
    case 16:
        break; /* the same again */
    default:
        if (is_agg(pkt)) {
            pkt->seq++;
            pkt->index = gw_prng_below(prng, 3) ? pkt->index + 1 : (uint16_t)gw_prng_next(prng);
        } else if (is_data && pkt->seq + 2 < pkt->data.total) {
            pkt->seq++;
        }
    }
}

static void encode(const struct fixture *f, const struct gw_pkt *pkt, uint16_t peer,
                   struct plain *plain)
{
    const struct gw_codec codec = {.cookie = f->peers[peer].tx_cookie};
    struct gw_frame frame;
    gw_codec_encode(&codec, pkt, &frame);
    uint32_t payload = frame.length - frame.hdr_size;
    assert_int_equal(payload, gw_codec_payload(pkt));
    memcpy(plain->bytes, frame.hdr, frame.hdr_size);
    if (payload)
        memcpy(plain->bytes + frame.hdr_size, gw_buf_payload(&f->host.bufs, pkt->buf), payload);
    plain->length = frame.length;
    plain->hdr_size = frame.hdr_size;
    plain->tos = frame.tos;
    plain->entropy = frame.entropy;
}

/* A payload for it: its own, one that is lent, or one that is in the train already. */
static void give_payload(struct fixture *f, struct gw_pkt **pkts, uint32_t at)
{
    struct gw_pkt *pkt = pkts[at];
    uint32_t size = gw_codec_payload(pkt), what = gw_prng_below(&f->prng, 10);
    pkt->buf = GW_BUF_NONE;
    if (size == 0) {
        if (what < 2)
            pkt->buf = gw_buf_claim(&f->host.bufs);
        return;
    }
    if (what == 0 && at > 0) {
        struct gw_pkt *other = pkts[gw_prng_below(&f->prng, at)];
        if (other->buf < GW_BUF_LENT && gw_codec_payload(other) == size) {
            gw_buf_share(&f->host.bufs, other->buf);
            pkt->buf = other->buf;
            return;
        }
    }
    uint64_t word = gw_prng_next(&f->prng);
    uint8_t *to;
    if (what < 4 && pkt->q.kind == GW_PKT_DATA) {
        if (f->lent_at + size > LENT)
            f->lent_at = 0;
        to = f->lent + f->lent_at;
        f->lent_at += size + gw_prng_below(&f->prng, 2);
        pkt->buf = gw_buf_lend(&f->host.bufs, to);
    } else {
        pkt->buf = gw_buf_claim(&f->host.bufs);
        assert_int_not_equal(pkt->buf, GW_BUF_NONE);
        to = gw_buf_bytes(&f->host.bufs, pkt->buf);
    }
    for (uint32_t i = 0; i < size; i++)
        to[i] = (uint8_t)((word >> i % 57) + i);
}

static struct plain expected[PLACES + 1];

/* What is to leave, in order. */
static uint32_t expect(struct fixture *f, uint16_t peer, struct gw_pkt **pkts, uint32_t count)
{
    struct gw_datapath_stats stats = {0};
    uint32_t all = 0;
    bool has_late = gw_tx_faults_take_late(&f->faults, peer) != NULL;
    struct plain late = f->late;
    if (!gw_tx_faults_exist(&f->faults)) {
        for (uint32_t i = 0; i < count; i++)
            encode(f, pkts[i], peer, &expected[all++]);
        return all;
    }
    for (uint32_t i = 0; i < count; i++) {
        enum gw_tx_fate fate = gw_tx_faults_draw(&f->faults, pkts[i], peer, &stats);
        if (fate == GW_TX_LATE)
            encode(f, pkts[i], peer, &f->late);
        if (fate == GW_TX_TWICE)
            encode(f, pkts[i], peer, &expected[all++]);
        if (fate == GW_TX_TWICE || fate == GW_TX_SENT)
            encode(f, pkts[i], peer, &expected[all++]);
    }
    if (has_late)
        expected[all++] = late;
    return all;
}

static void check_one(struct fixture *f, uint16_t peer, struct seen *seen,
                      const struct plain *plain)
{
    const struct gw_datapath_peer *of = &f->peers[peer];
    struct gw_auth *judge = peer == REAL ? &f->judge : &f->group_judge;
    uint32_t length = seen->length;
    if (of->auth) {
        length -= GW_AUTH_SIZE;
        enum gw_auth_verdict verdict =
            f->encrypts ? gw_auth_decrypt(judge, seen->bytes, length)
                        : gw_auth_open(judge, &(struct iovec){seen->bytes, length}, 1,
                                       seen->bytes + length);
        assert_int_equal(verdict, GW_AUTH_GENUINE);
    }
    assert_int_equal(length, plain->length);
    assert_memory_equal(seen->bytes, plain->bytes, length);
    uint8_t tos = plain->tos, option = 0;
    if (f->by_option && gw_wire_tos_signal(tos) != GW_WIRE_SIGNAL_NONE) {
        option = tos >> 2;
        assert_int_equal(gw_wire_tos_signal(seen->tos), GW_WIRE_SIGNAL_NONE);
        assert_int_equal(gw_wire_tos_ecn(seen->tos), gw_wire_tos_ecn(tos));
        if (gw_wire_tos_signal(tos) == GW_WIRE_SIGNAL_HEAD)
            assert_int_equal(gw_wire_tos_class(seen->tos), gw_wire_tos_number(tos));
    } else {
        assert_int_equal(seen->tos, tos);
    }
    assert_int_equal(seen->option, option);
    assert_true(gw_sock_addr_is_same(&seen->to, &of->addr));
}

static struct gw_pkt clean(const struct gw_pkt *pkt)
{
    struct gw_pkt copy = *pkt;
    copy.q.next = 0;
    copy.buf = 0;
    return copy;
}

/* What came to the other end is what a plain decoder makes of what left. */
static void check_arrived(struct fixture *f, uint16_t entropy)
{
    struct gw_datapath_train train;
    struct gw_pkt *pkts[PLACES];
    uint32_t count = 0, at = 0;
    while (gw_datapath_receive(f->b, GW_S, &train, f->error) > 0)
        for (uint32_t i = 0; i < train.count; i++)
            pkts[count++] = train.pkts[i];
    for (uint32_t i = 0; i < net.count; i++) {
        if (!net.seen[i].is_passed)
            continue;
        const struct gw_codec codec = {.cookie = f->peers[REAL].tx_cookie,
                                       .overhead = f->b->overhead - GW_WIRE_DATA_SIZE};
        struct gw_frame frame = {
            .length = expected[i].length, .entropy = entropy, .tos = expected[i].tos};
        struct gw_pkt pkt;
        memset(&pkt, 0, sizeof(pkt));
        memcpy(frame.hdr, expected[i].bytes, sizeof(frame.hdr));
        assert_int_equal(gw_codec_decode(&codec, &frame, GW_S, &pkt), 0);
        assert_true(at < count);
        struct gw_pkt got = clean(pkts[at]);
        pkt = clean(&pkt);
        assert_memory_equal(&got, &pkt, sizeof(pkt));
        uint32_t payload = frame.length - frame.hdr_size;
        assert_int_equal(payload != 0, pkts[at]->buf != GW_BUF_NONE);
        if (payload)
            assert_memory_equal(gw_buf_bytes(&f->host.bufs, pkts[at]->buf),
                                expected[i].bytes + frame.hdr_size, payload);
        gw_pkt_release(&f->host.pool, pkts[at++]);
    }
    assert_int_equal(at, count);
    f->taken += at;
}

static void send_one(struct fixture *f)
{
    struct gw_pkt *pkts[GW_DATAPATH_TRAIN_MAX];
    uint32_t count = gw_prng_below(&f->prng, 3)
                         ? 1 + gw_prng_below(&f->prng, 12)
                         : GW_DATAPATH_TRAIN_MAX - gw_prng_below(&f->prng, 20);
    uint16_t peer = (uint16_t)(gw_prng_below(&f->prng, 2) ? REAL : gw_prng_below(&f->prng, PEERS));
    uint32_t payload_max = gw_prng_below(&f->prng, 2) ? MTU : 4 + gw_prng_below(&f->prng, 300);
    struct gw_pkt pkt;
    do
        pkt = gw_random_pkt(&f->prng, payload_max, 0);
    while (pkt.q.kind == GW_PKT_HAIL ||
           (!is_agg(&pkt) && pkt.q.kind != GW_PKT_DATA && gw_prng_below(&f->prng, 3)));
    for (uint32_t i = 0; i < count; i++) {
        pkts[i] = gw_pkt_claim(&f->host.pool);
        assert_non_null(pkts[i]);
        *pkts[i] = pkt;
        give_payload(f, pkts, i);
        if (gw_prng_below(&f->prng, 3))
            change(&f->prng, &pkt, payload_max);
        else if (is_agg(&pkt))
            pkt.seq++, pkt.index++;
        else if (pkt.q.kind == GW_PKT_DATA && pkt.seq + 2 < pkt.data.total)
            pkt.seq++;
    }
    uint32_t all = expect(f, peer, pkts, count);
    net.count = 0;
    assert_int_equal(gw_datapath_send(f->a, peer, pkts, count, f->error), 0);
    bool goes = false;
    while (!gw_datapath_can_send(f->a)) {
        memset(f->lent, (int)gw_prng_next(&f->prng), LENT / 64); /* it was lent until now */
        for (uint32_t i = 0; i < 16; i++)                        /* names are given to others */
            gw_buf_lend(&f->host.bufs, NULL);
        assert_true(gw_datapath_blocked_fd(f->a) >= 0);
        if (!goes && gw_prng_below(&f->prng, 20) == 0) {
            gw_datapath_clear_peer(f->a, peer);
            goes = true;
        }
        assert_int_equal(gw_datapath_flush(f->a, f->error), 0);
    }
    if (goes)
        gw_datapath_set_peer(f->a, &f->peers[peer]);
    assert_true(goes ? net.count <= all : net.count == all);
    f->dropped += all - net.count;
    for (uint32_t i = 0; i < net.count; i++)
        check_one(f, peer, &net.seen[i], &expected[i]);
    f->datagrams += net.count;
    check_arrived(f, all ? expected[0].entropy % ENTROPIES : 0);
    f->lent_at %= LENT / 128; /* where it is written over */
}

static void check(bool protects, bool encrypts)
{
    static struct fixture f;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        bool has_faults = round % 2, by_option = round % 3 == 1, has_trains = round != 5;
        open_fixture(&f, round + 100 * protects + 200 * encrypts, protects, encrypts, has_faults,
                     by_option, has_trains);
        net.refused_in = round == 0 ? 0 : 4;
        net.uncut_in = round < 3 ? 0 : 400;
        net.lost_in = round == 0 ? 0 : 50;
        net.calls = net.runs = net.longest = net.blocked = net.uncut = net.options = 0;
        for (uint32_t i = 0; i < TRAINS; i++)
            send_one(&f);
        print_message("round %u: %lu datagrams, %lu taken, %lu dropped; %lu calls, %lu runs, "
                      "longest %lu, blocked %lu, uncut %lu, options %lu; copied %lu\n",
                      round, f.datagrams, f.taken, f.dropped, net.calls, net.runs, net.longest,
                      net.blocked, net.uncut, net.options, f.b->stats.rx_copied);
        close_fixture(&f);
    }
}

static void udp_send__leaves_what_a_plain_encoder_makes(void **state)
{
    (void)state;
    check(false, false);
}

static void udp_send__leaves_it_authenticated(void **state)
{
    (void)state;
    check(true, false);
}

static void udp_send__leaves_it_encrypted(void **state)
{
    (void)state;
    check(true, true);
}

static int open_network(void **state)
{
    (void)state;
    assert_int_equal(unshare(CLONE_NEWNET | (geteuid() == 0 ? 0 : CLONE_NEWUSER)), 0);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &loopback), 0);
    close(fd);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(udp_send__leaves_what_a_plain_encoder_makes),
        cmocka_unit_test(udp_send__leaves_it_authenticated),
        cmocka_unit_test(udp_send__leaves_it_encrypted),
    };
    return cmocka_run_group_tests(tests, open_network, NULL);
}
