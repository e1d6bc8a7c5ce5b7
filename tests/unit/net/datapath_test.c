/*
 * The list of datapaths, what none of them opens with, and the table of neighbours; and what all of
 * the list must do, each between stations of its own kind. What one does beyond that has tests of
 * its own (netns/udp_*).
 */
#include "full_socket.h"
#include "host.h"
#include "random_pkt.h"
#include "support.h"

#include <poll.h>

#include "base/error.h"
#include "core/blast_hail.h"
#include "core/codec.h"
#include "net/datapath.h"
#include "wire/attach.h"

enum {
    PEERS = 3,
    MTU = 1000,
    PKTS = 256,
    ENTROPIES = 4,
    ENTROPY = 3,
    TRAIN = 20,
    BUFFER = 64 << 10, /* of a station that hears little */
    FLOOD = 2000,
    MIXED = 400, /* trains of packets of all kinds */
    SIDES = 2,   /* A sends, B receives, unless a test says otherwise */
};

#define COOKIE UINT64_C(0x1122334455660000)

static void datapath_find__knows_the_list(void **state)
{
    (void)state;
    const struct gw_datapath_ops *udp = gw_datapath_find("udp");
    assert_non_null(udp);
    assert_string_equal(udp->name, "udp");
    assert_ptr_equal(gw_datapath_find(NULL), udp);
    assert_null(gw_datapath_find("ud"));
    assert_null(gw_datapath_find(""));
    assert_ptr_equal(gw_datapath_at(0), udp);
    char error[GW_NET_ERROR_MAX] = "";
    assert_ptr_equal(gw_datapath_choose("memory", error), gw_datapath_find("memory"));
    assert_non_null(gw_datapath_find("memory"));
    assert_null(gw_datapath_choose("pigeon", error));
    assert_string_equal(error, "no datapath is called pigeon: udp, memory");
}

/* Nothing is asked to open. */
static int never_open(const struct gw_datapath_cfg *cfg, struct gw_datapath **datapath, char *error)
{
    (void)cfg, (void)datapath, (void)error;
    fail();
    return GW_OK;
}

static void datapath_open__refuses_what_none_can_do(void **state)
{
    (void)state;
    const struct gw_datapath_ops ops = {.name = "never", .open = never_open};
    struct gw_test_host host;
    struct gw_endpoint_cfg host_cfg = gw_test_host_cfg(1, MTU);
    gw_test_host_open(&host, &host_cfg, PKTS);
    const struct gw_datapath_cfg good = {
        .pool = &host.pool, .address = "127.0.0.1", .entropies = 1, .mtu = MTU, .peers_max = 1};
    struct gw_datapath_cfg bad[6];
    static const char *const words[] = {"entropies is 0", "entropies is 257",  "mtu is 0",
                                        "peers_max is 0", "peers_max is 4097", "the pool needs"};
    for (uint32_t i = 0; i < 6; i++)
        bad[i] = good;
    bad[0].entropies = 0;
    bad[1].entropies = GW_DATAPATH_ENTROPIES_MAX + 1;
    bad[2].mtu = 0;
    bad[3].peers_max = 0;
    bad[4].peers_max = GW_DATAPATH_PEERS_MAX + 1;
    bad[5].mtu = MTU + 1;
    for (uint32_t i = 0; i < 6; i++) {
        struct gw_datapath *datapath;
        char error[GW_NET_ERROR_MAX] = "";
        assert_int_equal(gw_datapath_open(&ops, &bad[i], &datapath, error), GW_ERR_INVALID);
        assert_non_null(strstr(error, words[i]));
    }
    gw_test_host_close(&host);
}

static void datapath_set_peer__finds_by_the_cookie(void **state)
{
    (void)state;
    struct gw_datapath_peer peers[PEERS] = {0};
    struct gw_datapath datapath = {.peers_max = PEERS, .peers = peers};
    struct gw_datapath_peer peer = {.entropies = 4, .rx_cookie = UINT64_C(0xabcd0000) | 2};
    assert_int_equal(gw_sock_addr_parse("127.0.0.1", 4791, &peer.addr), 0);
    gw_datapath_set_peer(&datapath, &peer);
    assert_null(gw_datapath_peer(&datapath, 0));
    assert_null(gw_datapath_peer(&datapath, 1));
    assert_non_null(gw_datapath_peer(&datapath, 2));
    assert_int_equal(gw_datapath_peer(&datapath, 2)->entropies, 4);
    assert_null(gw_datapath_peer(&datapath, PEERS));
    gw_datapath_clear_peer(&datapath, 2);
    assert_null(gw_datapath_peer(&datapath, 2));
}

/* Neighbours: one is number 1 at the other. */
struct side {
    struct gw_test_host host;
    struct gw_datapath *datapath;
    struct gw_datapath_train train; /* what came last */
};

struct pair {
    struct side sides[SIDES];
    char error[GW_NET_ERROR_MAX];
};

static void open_side(struct pair *pair, struct side *side, const struct gw_datapath_ops *ops,
                      const struct gw_datapath_cfg *wish)
{
    struct gw_datapath_cfg cfg = *wish;
    struct gw_endpoint_cfg host_cfg = gw_test_host_cfg(1, MTU + GW_AUTH_SIZE);
    gw_test_host_open(&side->host, &host_cfg, PKTS);
    cfg.pool = &side->host.pool;
    cfg.address = cfg.address ? cfg.address : "127.0.0.1";
    cfg.entropies = ENTROPIES;
    cfg.mtu = MTU;
    cfg.peers_max = PEERS;
    int code = gw_datapath_open(ops, &cfg, &side->datapath, pair->error);
    if (code)
        fail_msg("%s: %s", ops->name, pair->error);
}

static void close_side(struct side *side)
{
    gw_datapath_close(side->datapath);
    gw_test_host_close(&side->host);
}

static void befriend(struct side *side, const struct side *other, struct gw_auth *auth)
{
    const struct gw_datapath_peer peer = {
        .addr = *gw_datapath_address(other->datapath),
        .entropies = ENTROPIES,
        .tx_cookie = COOKIE | 1,
        .rx_cookie = COOKIE | 1,
        .auth = auth,
    };
    gw_datapath_set_peer(side->datapath, &peer);
}

static struct pair *open_pair(const struct gw_datapath_ops *ops, const struct gw_datapath_cfg *wish)
{
    struct pair *pair = calloc(1, sizeof(*pair));
    assert_non_null(pair);
    for (int i = 0; i < SIDES; i++)
        open_side(pair, &pair->sides[i], ops, wish);
    for (int i = 0; i < SIDES; i++)
        befriend(&pair->sides[i], &pair->sides[1 - i], NULL);
    return pair;
}

static void close_pair(struct pair *pair)
{
    for (int i = 0; i < SIDES; i++)
        close_side(&pair->sides[i]);
    free(pair);
}

static const struct gw_datapath_cfg plain;

/* A packet with `size` bytes that `seq` alone decides; none: an answer. */
static struct gw_pkt *make(struct side *side, uint32_t seq, uint32_t size)
{
    struct gw_pkt *pkt = gw_pkt_claim(&side->host.pool);
    assert_non_null(pkt);
    *pkt = (struct gw_pkt){.q.kind = size ? GW_PKT_DATA : GW_PKT_ACK,
                           .q.class = 3,
                           .q.ecn = GW_ECN_ECT0,
                           .src = 7,
                           .dst = 8,
                           .seq = seq,
                           .entropy = ENTROPY};
    pkt->buf = GW_BUF_NONE;
    if (size) {
        pkt->buf = gw_buf_claim(&side->host.bufs);
        assert_int_not_equal(pkt->buf, GW_BUF_NONE);
        gw_test_fill(gw_buf_bytes(&side->host.bufs, pkt->buf), size, seq);
        pkt->data.total = UINT16_MAX;
        pkt->data.len = pkt->data.mss = (uint16_t)size;
    }
    return pkt;
}

/* Sends packets of these sizes, numbered from `first` on, as a train. */
static void send_train(struct pair *pair, struct side *side, uint32_t first, uint32_t count,
                       uint32_t size)
{
    struct gw_pkt *pkts[GW_DATAPATH_TRAIN_MAX];
    for (uint32_t i = 0; i < count; i++)
        pkts[i] = make(side, first + i, size);
    assert_true(gw_datapath_can_send(side->datapath));
    assert_int_equal(gw_datapath_send(side->datapath, 1, pkts, count, pair->error), 0);
    assert_true(gw_datapath_can_send(side->datapath));
    assert_int_equal(gw_datapath_blocked_fd(side->datapath), -1);
}

static bool is_readable(const struct side *side)
{
    int fds[GW_DATAPATH_FDS_MAX];
    struct pollfd polled[GW_DATAPATH_FDS_MAX];
    uint32_t count = gw_datapath_receive_fds(side->datapath, fds);
    for (uint32_t i = 0; i < count; i++)
        polled[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    return poll(polled, count, 0) > 0;
}

/* Takes all that has come: packets go to `pkts`, of `room`. Returns how many. */
static uint32_t receive(struct pair *pair, struct side *side, struct gw_pkt **pkts, uint32_t room)
{
    uint32_t count = 0;
    int code;
    while ((code = gw_datapath_receive(side->datapath, 0, &side->train, pair->error)) == 1)
        for (uint32_t i = 0; i < side->train.count; i++) {
            assert_true(count < room);
            assert_int_equal(side->train.peer, 1);
            pkts[count++] = side->train.pkts[i];
        }
    assert_int_equal(code, 0);
    assert_false(is_readable(side));
    return count;
}

/* As above, and gives the packets back; their numbers go to `seqs`, if it is there. */
static uint32_t receive_seqs(struct pair *pair, struct side *side, uint32_t *seqs)
{
    struct gw_pkt *pkts[PKTS];
    uint32_t count = receive(pair, side, pkts, PKTS);
    for (uint32_t i = 0; i < count; i++) {
        if (seqs)
            seqs[i] = pkts[i]->seq;
        gw_pkt_release(&side->host.pool, pkts[i]);
    }
    return count;
}

static void moves_trains(const struct gw_datapath_ops *ops)
{
    static const uint32_t sizes[] = {MTU, 1, 0, 100, MTU};
    struct pair *pair = open_pair(ops, &plain);
    struct side *a = &pair->sides[0], *b = &pair->sides[1];
    unsigned char expected[MTU];
    assert_false(is_readable(b));
    for (uint32_t k = 0; k < GW_COUNT_OF(sizes); k++) {
        struct gw_pkt *pkts[TRAIN];
        send_train(pair, a, 10 * k, TRAIN, sizes[k]);
        assert_true(is_readable(b));
        assert_int_equal(receive(pair, b, pkts, TRAIN), TRAIN);
        for (uint32_t i = 0; i < TRAIN; i++) {
            assert_int_equal(pkts[i]->seq, 10 * k + i);
            assert_int_equal(pkts[i]->src, 7);
            assert_int_equal(pkts[i]->dst, 8);
            assert_int_equal(pkts[i]->q.class, 3);
            assert_int_equal(pkts[i]->q.ecn, GW_ECN_ECT0);
            assert_int_equal(pkts[i]->entropy, ENTROPY);
            gw_test_fill(expected, sizes[k], 10 * k + i);
            if (sizes[k])
                assert_memory_equal(gw_buf_bytes(&b->host.bufs, pkts[i]->buf), expected, sizes[k]);
            else
                assert_int_equal(pkts[i]->buf, GW_BUF_NONE);
            gw_pkt_release(&b->host.pool, pkts[i]);
        }
    }
    send_train(pair, b, 5, 1, MTU); /* and back */
    assert_int_equal(receive_seqs(pair, a, NULL), 1);
    assert_int_equal(gw_datapath_stats(a->datapath)->sent, GW_COUNT_OF(sizes) * TRAIN);
    assert_int_equal(gw_datapath_stats(b->datapath)->received, GW_COUNT_OF(sizes) * TRAIN);
    assert_int_equal(gw_datapath_stats(b->datapath)->kernel_drops, 0);
    close_pair(pair);
}

/* What leaves as two trains, of different ECN, does not arrive as one. */
static void keeps_trains_apart(const struct gw_datapath_ops *ops)
{
    struct pair *pair = open_pair(ops, &plain);
    struct side *a = &pair->sides[0], *b = &pair->sides[1];
    struct gw_pkt *first = make(a, 0, 100), *second = make(a, 1, 100);
    second->q.ecn = GW_ECN_CE;
    assert_int_equal(gw_datapath_send(a->datapath, 1, &first, 1, pair->error), 0);
    assert_int_equal(gw_datapath_send(a->datapath, 1, &second, 1, pair->error), 0);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(gw_datapath_receive(b->datapath, 0, &b->train, pair->error), 1);
        assert_int_equal(b->train.count, 1);
        assert_int_equal(b->train.pkts[0]->q.ecn, i ? GW_ECN_CE : GW_ECN_ECT0);
        gw_pkt_release(&b->host.pool, b->train.pkts[0]);
    }
    close_pair(pair);
}

/* Bytes of the attach protocol say where they come from; other bytes are nobody's. */
static void tells_control_from_noise(const struct gw_datapath_ops *ops)
{
    struct pair *pair = open_pair(ops, &plain);
    struct side *a = &pair->sides[0], *b = &pair->sides[1];
    const struct gw_datapath_stats *stats = gw_datapath_stats(b->datapath);
    uint8_t bytes[GW_ATTACH_SIZE];
    struct gw_attach_msg msg = {.step = GW_ATTACH_ASK};
    gw_attach_encode(&msg, bytes);
    assert_true(gw_attach_is(bytes, sizeof(bytes)));
    struct side *from = a, *to = b;
    struct gw_sock_addr address = *gw_datapath_address(b->datapath);
    for (int i = 0; i < 2; i++) {
        gw_datapath_send_control(from->datapath, &address, bytes, sizeof(bytes));
        assert_int_equal(gw_datapath_receive(to->datapath, 0, &to->train, pair->error), 1);
        assert_int_equal(to->train.count, 0);
        assert_int_equal(to->train.controls, 1);
        assert_int_equal(to->train.length, sizeof(bytes));
        assert_memory_equal(to->train.control, bytes, sizeof(bytes));
        assert_true(gw_sock_addr_is_same(&to->train.from, gw_datapath_address(from->datapath)));
        address = to->train.from; /* now the answer */
        from = b, to = a;
    }
    assert_int_equal(receive_seqs(pair, b, NULL), 0);
    gw_attach_encode(&(struct gw_attach_msg){.step = GW_ATTACH_PROBE}, bytes);
    gw_datapath_send_control(a->datapath, gw_datapath_address(b->datapath), bytes, sizeof(bytes));
    assert_int_equal(receive_seqs(pair, b, NULL), 0);
    assert_int_equal(b->train.controls, 0);
    assert_int_equal(stats->malformed, 1); /* a probe goes to groups */
    memset(bytes, 0x55, sizeof(bytes));
    gw_datapath_send_control(a->datapath, gw_datapath_address(b->datapath), bytes, sizeof(bytes));
    gw_datapath_send_control(a->datapath, gw_datapath_address(b->datapath), bytes, 3);
    assert_int_equal(receive_seqs(pair, b, NULL), 0);
    assert_int_equal(stats->wrong_version, 1);
    assert_int_equal(stats->runts, 1);
    assert_int_equal(stats->received, 0);
    close_pair(pair);
}

static void hears_neighbours_alone(const struct gw_datapath_ops *ops)
{
    struct pair *pair = open_pair(ops, &plain);
    struct side *a = &pair->sides[0], *b = &pair->sides[1], stranger = {0};
    const struct gw_datapath_stats *stats = gw_datapath_stats(b->datapath);
    open_side(pair, &stranger, ops, &plain);
    befriend(&stranger, b, NULL);
    send_train(pair, &stranger, 0, 2, 100); /* the right cookie, but from elsewhere */
    assert_int_equal(receive_seqs(pair, b, NULL), 0);
    assert_int_equal(stats->wrong_cookie, 2);
    send_train(pair, a, 0, 2, 100);
    send_train(pair, &stranger, 0, 2, 100); /* right behind those of the neighbour */
    assert_int_equal(receive_seqs(pair, b, NULL), 2);
    struct gw_datapath_peer peer = *gw_datapath_peer(a->datapath, 1);
    peer.tx_cookie ^= UINT64_C(1) << 40;
    gw_datapath_set_peer(a->datapath, &peer);
    send_train(pair, a, 0, 3, 100);
    assert_int_equal(receive_seqs(pair, b, NULL), 0);
    assert_int_equal(stats->wrong_cookie, 7);
    gw_datapath_clear_peer(a->datapath, 1);
    send_train(pair, a, 0, 2, 100);
    assert_int_equal(gw_datapath_stats(a->datapath)->send_errors, 2);
    gw_datapath_clear_peer(b->datapath, 1);
    befriend(a, b, NULL);
    send_train(pair, a, 0, 1, 100);
    assert_int_equal(receive_seqs(pair, b, NULL), 0);
    assert_int_equal(stats->wrong_cookie, 8);
    assert_int_equal(stats->received, 2);
    close_side(&stranger);
    close_pair(pair);
}

/* Who is gone is no reason to fail. */
static void survives_the_other(const struct gw_datapath_ops *ops)
{
    struct pair *pair = open_pair(ops, &plain);
    struct side *a = &pair->sides[0], *b = &pair->sides[1];
    send_train(pair, a, 0, TRAIN, 100);
    close_side(b);
    for (uint32_t i = 0; i < 3; i++)
        send_train(pair, a, 0, TRAIN, 100);
    assert_int_equal(receive_seqs(pair, a, NULL), 0);
    const struct gw_datapath_stats *stats = gw_datapath_stats(a->datapath);
    assert_int_equal(stats->sent + stats->send_errors, 4 * TRAIN);
    close_side(a);
    free(pair);
}

static struct gw_auth auth_of(const char *text, bool is_initiator, bool encrypts)
{
    static const uint8_t session[GW_ATTACH_NONCE_SIZE] = {3};
    struct gw_key key;
    struct gw_auth auth;
    gw_key_from_text(text, strlen(text), &key);
    const struct gw_auth_cfg cfg = {.key = &key,
                                    .session = session,
                                    .initiators_cookie = 1,
                                    .responders_cookie = 2,
                                    .is_initiator = is_initiator,
                                    .encrypts = encrypts};
    gw_auth_init(&auth, &cfg);
    return auth;
}

static void authenticates(const struct gw_datapath_ops *ops, bool encrypts)
{
    struct pair *pair = open_pair(ops, &(struct gw_datapath_cfg){.encrypts = encrypts});
    struct side *a = &pair->sides[0], *b = &pair->sides[1];
    const struct gw_datapath_stats *stats = gw_datapath_stats(b->datapath);
    struct gw_auth ours = auth_of("secret", true, encrypts),
                   theirs = auth_of("secret", false, encrypts),
                   other = auth_of("guess", true, encrypts);
    befriend(b, a, &theirs);
    befriend(a, b, &ours);
    send_train(pair, a, 0, TRAIN, MTU);
    send_train(pair, a, 0, TRAIN, 0);
    assert_int_equal(receive_seqs(pair, b, NULL), 2 * TRAIN);
    theirs = auth_of("secret", false, encrypts); /* a new session: no number has been here */
    befriend(a, b, &other);
    send_train(pair, a, 0, 3, 100);
    assert_int_equal(receive_seqs(pair, b, NULL), 0);
    assert_int_equal(stats->forged, 3);
    befriend(a, b, NULL);
    send_train(pair, a, 0, 4, 100);
    assert_int_equal(receive_seqs(pair, b, NULL), 0);
    assert_int_equal(stats->forged + stats->repeated, 7);
    uint64_t repeated = stats->repeated;
    theirs = auth_of("secret", false, encrypts), ours = auth_of("secret", true, encrypts);
    befriend(a, b, &ours);
    send_train(pair, a, 0, 2, 100);
    ours = auth_of("secret", true, encrypts); /* the same numbers again */
    send_train(pair, a, 0, 2, 100);
    assert_int_equal(receive_seqs(pair, b, NULL), 2);
    assert_int_equal(stats->repeated, repeated + 2);
    close_pair(pair);
}

/* Of any kind, or mostly like the one before it; one in some shares the payload of that. */
static struct gw_pkt *draw_pkt(struct side *side, struct gw_prng *prng, const struct gw_pkt *before)
{
    struct gw_pkt *pkt = gw_pkt_claim(&side->host.pool), drawn;
    assert_non_null(pkt);
    do {
        bool is_like = before && gw_prng_below(prng, 8);
        drawn = is_like ? *before : gw_random_pkt(prng, MTU, 0);
        drawn.seq += is_like && (drawn.q.kind == GW_PKT_GRAD || drawn.q.kind == GW_PKT_PARAM ||
                                 (drawn.q.kind == GW_PKT_DATA && drawn.seq + 2 < drawn.data.total));
        drawn.index ^= gw_prng_below(prng, 2) && drawn.q.kind == GW_PKT_GRAD;
        drawn.q.class ^= gw_prng_below(prng, 16) == 0 && drawn.q.kind == GW_PKT_PARAM;
        drawn.q.ecn ^= gw_prng_below(prng, 16) == 0 && drawn.q.kind == GW_PKT_GRAD;
    } while (drawn.q.kind == GW_PKT_HAIL && drawn.hail.marks & GW_HAIL_BARE);
    drawn.entropy = ENTROPY;
    drawn.buf = GW_BUF_NONE;
    uint32_t size = gw_codec_payload(&drawn);
    if (size && before && gw_codec_payload(before) == size && gw_prng_below(prng, 8) == 0) {
        drawn.buf = before->buf;
        gw_buf_share(&side->host.bufs, drawn.buf);
    } else if (size) {
        drawn.buf = gw_buf_claim(&side->host.bufs);
        assert_int_not_equal(drawn.buf, GW_BUF_NONE);
        gw_test_fill(gw_buf_bytes(&side->host.bufs, drawn.buf), size, gw_prng_next(prng));
    }
    *pkt = drawn;
    return pkt;
}

/* What translation alone makes of the packet. */
static struct gw_pkt translated(const struct gw_pkt *pkt)
{
    const struct gw_codec codec = {.cookie = COOKIE | 1};
    struct gw_frame frame;
    struct gw_pkt out = {.buf = GW_BUF_NONE};
    gw_codec_encode(&codec, pkt, &frame);
    assert_int_equal(gw_codec_decode(&codec, &frame, 0, &out), GW_OK);
    return out;
}

/* Trains of which packets are like others, and of which they are not, say what each packet says. */
static void moves_mixed_trains(const struct gw_datapath_ops *ops, bool authenticates, bool encrypts)
{
    static unsigned char payloads[TRAIN][MTU];
    struct pair *pair = open_pair(ops, &(struct gw_datapath_cfg){.encrypts = encrypts});
    struct side *a = &pair->sides[0], *b = &pair->sides[1];
    struct gw_auth ours = auth_of("secret", true, encrypts),
                   theirs = auth_of("secret", false, encrypts);
    struct gw_prng prng = gw_prng_derive(41, encrypts);
    befriend(a, b, authenticates ? &ours : NULL);
    befriend(b, a, authenticates ? &theirs : NULL);
    for (int round = 0; round < MIXED; round++) {
        struct gw_pkt *pkts[TRAIN], expected[TRAIN];
        for (uint32_t i = 0; i < TRAIN; i++) {
            pkts[i] = draw_pkt(a, &prng, i ? pkts[i - 1] : NULL);
            expected[i] = translated(pkts[i]);
            memcpy(payloads[i], gw_buf_bytes(&a->host.bufs, pkts[i]->buf % PKTS),
                   gw_codec_payload(pkts[i]));
        }
        assert_int_equal(gw_datapath_send(a->datapath, 1, pkts, TRAIN, pair->error), 0);
        assert_int_equal(receive(pair, b, pkts, TRAIN), TRAIN);
        for (uint32_t i = 0; i < TRAIN; i++) {
            struct gw_pkt seen = *pkts[i];
            seen.q.next = expected[i].q.next;
            seen.q.size = expected[i].q.size;
            seen.buf = expected[i].buf;
            assert_memory_equal(&seen, &expected[i], sizeof(seen));
            if (gw_codec_payload(&seen))
                assert_memory_equal(gw_buf_bytes(&b->host.bufs, pkts[i]->buf), payloads[i],
                                    gw_codec_payload(&seen));
            gw_pkt_release(&b->host.pool, pkts[i]);
        }
    }
    close_pair(pair);
}

/* What is encrypted stays as it is for who sends it twice, and for others: a payload that is in
 * several packets of a train, to a neighbour with whom we encrypt and to one with whom we do not.
 */
static void encrypts_a_shared_payload(const struct gw_datapath_ops *ops)
{
    static const uint64_t certain = UINT64_C(1) << 32;
    struct pair *pair = open_pair(
        ops, &(struct gw_datapath_cfg){.encrypts = true, .faults.duplicate_q32 = certain});
    struct side *a = &pair->sides[0], *b = &pair->sides[1];
    struct gw_auth ours = auth_of("secret", true, true), theirs = auth_of("secret", false, true);
    uint8_t expected[MTU];
    gw_test_fill(expected, MTU, 5);
    for (int i = 0; i < 2; i++) {
        struct gw_pkt *pkts[4] = {make(a, 5, MTU), make(a, 5, 0)};
        uint32_t buf = pkts[0]->buf;
        *pkts[1] = *pkts[0];
        gw_buf_share(&a->host.bufs, buf); /* the second packet's, */
        gw_buf_share(&a->host.bufs, buf); /* and ours */
        befriend(a, b, i == 0 ? &ours : NULL);
        befriend(b, a, i == 0 ? &theirs : NULL);
        assert_int_equal(gw_datapath_send(a->datapath, 1, pkts, 2, pair->error), 0);
        assert_int_equal(receive(pair, b, pkts, 4), 4);
        for (int k = 0; k < 4; k++) {
            assert_memory_equal(gw_buf_bytes(&b->host.bufs, pkts[k]->buf), expected, MTU);
            gw_pkt_release(&b->host.pool, pkts[k]);
        }
        assert_memory_equal(gw_buf_bytes(&a->host.bufs, buf), expected, MTU);
        gw_buf_release(&a->host.bufs, buf);
    }
    close_pair(pair);
}

/* Payloads that are lent are read before the call returns, and never later: not for a packet that
 * is held back, and not for a train that waits until the socket has room. */
static void reads_what_is_lent_at_once(const struct gw_datapath_ops *ops,
                                       const struct gw_datapath_cfg *cfg, struct gw_auth *ours,
                                       struct gw_auth *theirs)
{
    struct pair *pair = open_pair(ops, cfg);
    struct side *a = &pair->sides[0], *b = &pair->sides[1];
    static unsigned char memory[TRAIN][MTU];
    unsigned char expected[MTU];
    befriend(a, b, ours);
    befriend(b, a, theirs);
    for (uint32_t round = 0; round < 3; round++) {
        struct gw_pkt *pkts[2 * TRAIN], *train[TRAIN];
        for (uint32_t i = 0; i < TRAIN; i++) {
            train[i] = make(a, i, MTU);
            gw_buf_release(&a->host.bufs, train[i]->buf);
            gw_test_fill(memory[i], MTU, i);
            train[i]->buf = gw_buf_lend(&a->host.bufs, memory[i]);
        }
        gw_test_full_socket(round == 1);
        assert_int_equal(gw_datapath_send(a->datapath, 1, train, TRAIN, pair->error), 0);
        memset(memory, 0, sizeof(memory));
        gw_test_full_socket(0);
        assert_int_equal(gw_datapath_flush(a->datapath, pair->error), 0);
        uint32_t count = receive(pair, b, pkts, 2 * TRAIN);
        assert_int_equal(count, cfg->faults.delay_q32 && round == 0 ? TRAIN - 1 : TRAIN);
        for (uint32_t i = 0; i < count; i++) {
            gw_test_fill(expected, MTU, pkts[i]->seq);
            assert_memory_equal(gw_buf_bytes(&b->host.bufs, pkts[i]->buf), expected, MTU);
            gw_pkt_release(&b->host.pool, pkts[i]);
        }
    }
    assert_int_equal(gw_datapath_stats(a->datapath)->blocked, strcmp(ops->name, "udp") == 0);
    close_pair(pair);
}

static void borrows(const struct gw_datapath_ops *ops)
{
    reads_what_is_lent_at_once(ops, &plain, NULL, NULL);
    reads_what_is_lent_at_once(
        ops, &(struct gw_datapath_cfg){.faults.delay_q32 = UINT64_C(1) << 32}, NULL, NULL);
    for (int encrypts = 0; encrypts < 2; encrypts++) {
        struct gw_auth ours = auth_of("secret", true, encrypts),
                       theirs = auth_of("secret", false, encrypts);
        reads_what_is_lent_at_once(ops, &(struct gw_datapath_cfg){.encrypts = encrypts}, &ours,
                                   &theirs);
    }
}

static void loses_doubles_and_delays(const struct gw_datapath_ops *ops)
{
    static const uint64_t certain = UINT64_C(1) << 32;
    uint32_t seqs[PKTS];
    struct pair *pair = open_pair(ops, &(struct gw_datapath_cfg){.faults.lose_q32 = certain});
    send_train(pair, &pair->sides[0], 0, TRAIN, 100);
    assert_int_equal(receive_seqs(pair, &pair->sides[1], NULL), 0);
    assert_int_equal(gw_datapath_stats(pair->sides[0].datapath)->lost, TRAIN);
    close_pair(pair);

    pair = open_pair(ops, &(struct gw_datapath_cfg){.faults.duplicate_q32 = certain});
    send_train(pair, &pair->sides[0], 0, TRAIN, 100);
    assert_int_equal(receive_seqs(pair, &pair->sides[1], seqs), 2 * TRAIN);
    for (uint32_t i = 0; i < 2 * TRAIN; i++)
        assert_int_equal(seqs[i], i / 2);
    close_pair(pair);

    pair = open_pair(ops, &(struct gw_datapath_cfg){.faults.delay_q32 = certain});
    send_train(pair, &pair->sides[0], 0, TRAIN, 100);
    assert_int_equal(receive_seqs(pair, &pair->sides[1], seqs), TRAIN - 1);
    assert_int_equal(seqs[0], 1);
    send_train(pair, &pair->sides[0], TRAIN, 1, 100); /* is held itself now */
    assert_int_equal(receive_seqs(pair, &pair->sides[1], seqs), 1);
    assert_int_equal(seqs[0], 0);
    close_pair(pair); /* with one that is held */
}

/* Without a buffer a packet is lost, and receiving goes on. */
static void survives_an_empty_pool(const struct gw_datapath_ops *ops)
{
    struct pair *pair = open_pair(ops, &plain);
    struct side *b = &pair->sides[1];
    uint32_t held[PKTS + 1], count = 0;
    while ((held[count] = gw_buf_claim(&b->host.bufs)) != GW_BUF_NONE)
        count++;
    send_train(pair, &pair->sides[0], 0, TRAIN, 100);
    assert_int_equal(receive_seqs(pair, b, NULL), 0);
    assert_int_equal(gw_datapath_stats(b->datapath)->no_room, TRAIN);
    while (count > 0)
        gw_buf_release(&b->host.bufs, held[--count]);
    send_train(pair, &pair->sides[0], 0, TRAIN, 100);
    assert_int_equal(receive_seqs(pair, b, NULL), TRAIN);
    close_pair(pair);
}

/* Who does not read loses what there is no room for, and can count it; nobody waits for it. */
static void counts_what_it_did_not_read(const struct gw_datapath_ops *ops)
{
    struct pair *pair = open_pair(ops, &(struct gw_datapath_cfg){.buffer_bytes = BUFFER});
    struct side *b = &pair->sides[1];
    const struct gw_datapath_stats *stats = gw_datapath_stats(b->datapath);
    for (uint32_t i = 0; i < FLOOD / TRAIN; i++)
        send_train(pair, &pair->sides[0], 0, TRAIN, MTU);
    while (gw_datapath_receive(b->datapath, 0, &b->train, pair->error) > 0)
        for (uint32_t i = 0; i < b->train.count; i++)
            gw_pkt_release(&b->host.pool, b->train.pkts[i]);
    send_train(pair, &pair->sides[0], 0, 1, MTU); /* brings the count along */
    assert_int_equal(receive_seqs(pair, b, NULL), 1);
    assert_true(stats->kernel_drops > 0);
    assert_true(stats->kernel_drops < FLOOD);
    assert_int_equal(stats->received + stats->kernel_drops, FLOOD + 1);
    close_pair(pair);
}

static void opens_at_free_addresses(const struct gw_datapath_ops *ops)
{
    static const char *const wildcards[] = {"127.0.0.1", "0.0.0.0"};
    struct pair *pair = open_pair(ops, &plain);
    struct side *a = &pair->sides[0], *b = &pair->sides[1];
    struct gw_datapath_cfg cfg = {
        .pool = &a->host.pool, .address = "localhost", .entropies = 1, .mtu = MTU, .peers_max = 1};
    struct gw_datapath *third = NULL;
    uint16_t port = gw_sock_addr_port(gw_datapath_address(a->datapath));
    assert_true(port != 0 && port != gw_sock_addr_port(gw_datapath_address(b->datapath)));
    assert_int_equal(gw_datapath_open(ops, &cfg, &third, pair->error), GW_ERR_INVALID);
    assert_non_null(strstr(pair->error, "localhost"));
    for (uint16_t i = 0; i < 2 * ENTROPIES; i++) {
        cfg.address = wildcards[i / ENTROPIES];
        cfg.port = (uint16_t)(port + i % ENTROPIES); /* each of the row is taken */
        assert_int_equal(gw_datapath_open(ops, &cfg, &third, pair->error), GW_ERR_SYSTEM);
        assert_non_null(strstr(pair->error, cfg.address));
    }
    assert_null(third);
    close_side(a);
    open_side(pair, a, ops, &(struct gw_datapath_cfg){.port = port}); /* free again */
    befriend(a, b, NULL);
    befriend(b, a, NULL);
    send_train(pair, a, 0, 1, 100);
    assert_int_equal(receive_seqs(pair, b, NULL), 1);
    close_pair(pair);
}

/* At the wildcard a station is at every address, and answers from the one that was asked. */
static void answers_from_the_address_asked(const struct gw_datapath_ops *ops)
{
    struct pair *pair = open_pair(ops, &(struct gw_datapath_cfg){.address = "0.0.0.0"});
    struct side *a = &pair->sides[0], *b = &pair->sides[1];
    for (int i = 0; i < SIDES; i++) {
        struct side *side = &pair->sides[i];
        struct gw_datapath_peer peer = *gw_datapath_peer(side->datapath, 1);
        uint16_t port = gw_sock_addr_port(&peer.addr);
        assert_int_equal(gw_sock_addr_parse("127.0.0.1", port, &peer.addr), 0);
        gw_datapath_set_peer(side->datapath, &peer);
    }
    send_train(pair, a, 0, TRAIN, 100);
    send_train(pair, b, 0, TRAIN, 100);
    assert_int_equal(receive_seqs(pair, a, NULL), TRAIN);
    assert_int_equal(receive_seqs(pair, b, NULL), TRAIN);
    close_pair(pair);
}

static void all_datapaths__keep_the_contract(void **state)
{
    (void)state;
    const struct gw_datapath_ops *ops;
    for (uint32_t i = 0; (ops = gw_datapath_at(i)) != NULL; i++) {
        print_message("%s\n", ops->name);
        moves_trains(ops);
        keeps_trains_apart(ops);
        tells_control_from_noise(ops);
        hears_neighbours_alone(ops);
        survives_the_other(ops);
        authenticates(ops, false);
        authenticates(ops, true);
        encrypts_a_shared_payload(ops);
        moves_mixed_trains(ops, false, false);
        moves_mixed_trains(ops, true, false);
        moves_mixed_trains(ops, true, true);
        borrows(ops);
        loses_doubles_and_delays(ops);
        survives_an_empty_pool(ops);
        counts_what_it_did_not_read(ops);
        opens_at_free_addresses(ops);
        answers_from_the_address_asked(ops);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(datapath_find__knows_the_list),
        cmocka_unit_test(datapath_open__refuses_what_none_can_do),
        cmocka_unit_test(datapath_set_peer__finds_by_the_cookie),
        cmocka_unit_test(all_datapaths__keep_the_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
