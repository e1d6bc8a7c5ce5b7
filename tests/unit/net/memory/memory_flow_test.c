/*
 * One flow between two loops of one process, whose datagrams go by memory: the same endpoint,
 * smartt and reps as in the simulator and over UDP (netns/udp_flow_test). One thread turns the two
 * in turn, and rests only where the other one has something to wait for.
 */
#include "host.h"
#include "support.h"

#include "net/memory/memory_datapath.h"
#include "net/station/loop.h"

enum {
    SENDER,
    RECEIVER,
    SIDES,
    MTU = 1400,
    PEER = 3, /* number of the other one, in both */
    PKTS = 2048,
    ENTROPIES = 8,
    TAG = 42,
    INBOX = 1 << 20,
    LOSS_PERCENT = 5,
};

#define BYTES    ((size_t)2 << 20)
#define GUARD    (60 * GW_S) /* against hanging only */
#define REST     (200 * GW_US)
#define RATE_BPS UINT64_C(1000000000)
#define BRTT     GW_MS
#define COOKIE   UINT64_C(0x5eedc0de12340000)

struct side {
    struct gw_test_host host;
    struct gw_endpoint_cfg cfg;
    struct gw_datapath *datapath;
    struct gw_loop *loop;
};

struct pair {
    struct side sides[SIDES];
    char error[GW_NET_ERROR_MAX];
};

static void open_side(struct pair *pair, int number, uint64_t chance_q32)
{
    struct side *side = &pair->sides[number];
    side->cfg = gw_test_host_cfg(1 + (uint32_t)number, MTU);
    side->cfg.hdr = GW_DATAPATH_HDR_IPV4;
    side->cfg.train = 16;
    side->cfg.ack_every = 2;
    side->cfg.ack_delay = 100 * GW_US;
    side->cfg.stall = GUARD / 2;
    gw_test_host_open(&side->host, &side->cfg, PKTS);
    const struct gw_datapath_cfg cfg = {
        .pool = &side->host.pool,
        .address = "127.0.0.1",
        .entropies = ENTROPIES,
        .mtu = MTU,
        .buffer_bytes = INBOX,
        .peers_max = PEER + 1,
        .faults = {.lose_q32 = chance_q32,
                   .duplicate_q32 = chance_q32,
                   .delay_q32 = chance_q32,
                   .seed = 4791 + (uint64_t)number},
    };
    assert_int_equal(gw_datapath_open(&gw_datapath_memory, &cfg, &side->datapath, pair->error), 0);
    assert_int_equal(gw_datapath_overhead(side->datapath), GW_DATAPATH_HDR_IPV4);
    side->loop = gw_loop_open(&(struct gw_loop_cfg){
        .datapath = side->datapath, .pool = &side->host.pool, .peers_max = cfg.peers_max});
    assert_non_null(side->loop);
    gw_loop_add(side->loop, gw_endpoint_node(side->host.endpoint));
}

static struct pair *open_pair(uint64_t chance_q32)
{
    struct pair *pair = calloc(1, sizeof(*pair));
    assert_non_null(pair);
    for (int i = 0; i < SIDES; i++)
        open_side(pair, i, chance_q32);
    for (int i = 0; i < SIDES; i++) {
        const struct gw_datapath_peer peer = {
            .addr = *gw_datapath_address(pair->sides[1 - i].datapath),
            .entropies = ENTROPIES,
            .tx_cookie = COOKIE | PEER,
            .rx_cookie = COOKIE | PEER,
        };
        gw_datapath_set_peer(pair->sides[i].datapath, &peer);
        gw_loop_link(pair->sides[i].loop, (struct gw_loop_port){0, 0}, PEER, true);
    }
    return pair;
}

static void close_pair(struct pair *pair)
{
    for (int i = 0; i < SIDES; i++) {
        gw_loop_close(pair->sides[i].loop);
        gw_test_host_abandon(&pair->sides[i].host);
    }
    free(pair);
}

/* Turns both sides until this one's application has an event. */
static struct gw_event next_event(struct pair *pair, int number)
{
    struct gw_event event;
    struct gw_loop *loop = pair->sides[number].loop;
    gw_time guard = gw_loop_now(loop) + GUARD;
    while (gw_endpoint_poll(pair->sides[number].host.endpoint, &event, 1) == 0) {
        assert_true(gw_time_before(gw_loop_now(loop), guard));
        for (int i = 0; i < SIDES; i++) {
            gw_time until = gw_loop_now(pair->sides[i].loop) + REST;
            assert_int_equal(gw_loop_turn(pair->sides[i].loop, until, pair->error), 0);
        }
    }
    return event;
}

static void move_a_message(uint64_t chance_q32)
{
    struct pair *pair = open_pair(chance_q32);
    struct side *sender = &pair->sides[SENDER], *receiver = &pair->sides[RECEIVER];
    struct gw_transport transport = gw_test_transport("smartt", "reps", "timeout");
    unsigned char *data = malloc(BYTES), *received = calloc(1, BYTES);
    uint32_t flow;
    assert_non_null(data);
    assert_non_null(received);
    gw_test_fill(data, BYTES, 1);
    assert_int_equal(gw_algo_set(&transport.lb->algo, transport.lb_cfg.bytes, "entropies", "8"), 0);
    const struct gw_send send = {
        .peer = 1 + RECEIVER,
        .bytes = BYTES,
        .data = data,
        .tag = TAG,
        .class = GW_CLASS_DATA_MAX,
        .transport = &transport,
        .path = gw_test_path(&sender->cfg, RATE_BPS, BRTT),
    };
    assert_int_equal(gw_endpoint_expect(receiver->host.endpoint, 1 + SENDER, TAG, received, BYTES),
                     0);
    assert_int_equal(
        gw_endpoint_send(sender->host.endpoint, &send, &flow, gw_loop_now(sender->loop)), 0);
    struct gw_event sent = next_event(pair, SENDER);
    assert_int_equal(sent.kind, GW_EVENT_SENT);
    assert_int_equal(next_event(pair, RECEIVER).kind, GW_EVENT_RECEIVED);
    assert_memory_equal(received, data, BYTES);

    const struct gw_datapath_stats *out = gw_datapath_stats(sender->datapath);
    const struct gw_datapath_stats *in = gw_datapath_stats(receiver->datapath);
    assert_true(out->sent >= BYTES / MTU && out->tx_trains < out->sent);
    assert_true(in->rx_trains < in->received);
    assert_true(in->malformed + in->runts + in->wrong_version + in->wrong_cookie == 0);
    if (chance_q32)
        assert_true(out->lost > 0 && sent.retransmits > 0);
    close_pair(pair);
    free(data);
    free(received);
}

static void memory_run__moves_a_message(void **state)
{
    (void)state;
    move_a_message(0);
}

static void memory_run__survives_lost_doubled_and_late_packets(void **state)
{
    (void)state;
    move_a_message((UINT64_C(1) << 32) * LOSS_PERCENT / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_run__moves_a_message),
        cmocka_unit_test(memory_run__survives_lost_doubled_and_late_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
