/*
 * What a UDP datapath refuses, told apart by counters: datagrams that are no packets, or not for
 * us; and configurations and addresses that cannot work, told by name. Another socket on loopback
 * plays the stranger.
 */
#include "host.h"
#include "support.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "core/codec.h"
#include "net/udp.h"

enum {
    OURS = 1,
    THEIRS = 2,
    MTU = 1000,
    PKTS = 64,
    DATAGRAM_MAX = 2048,
};

#define COOKIE   UINT64_C(0x1122334455667788)
#define PATIENCE (20 * GW_MS)

struct fixture {
    struct gw_test_host host;
    struct gw_udp *udp;
    int stranger; /* a socket that sends to us; its address is our peer */
    struct gw_sock_addr ours;
    char error[GW_NET_ERROR_MAX];
};

static struct gw_udp_cfg fixture_cfg(struct fixture *f)
{
    return (struct gw_udp_cfg){
        .node = gw_endpoint_node(f->host.endpoint),
        .pool = &f->host.pool,
        .address = "127.0.0.1",
        .entropies = 4,
        .mtu = MTU,
        .cookie = COOKIE,
    };
}

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct gw_sock_addr addr;
    assert_non_null(f);
    struct gw_endpoint_cfg cfg = gw_test_host_cfg(OURS, MTU);
    gw_test_host_open(&f->host, &cfg, PKTS);
    struct gw_udp_cfg udp_cfg = fixture_cfg(f);
    assert_int_equal(gw_udp_open(&udp_cfg, &f->udp, f->error), 0);
    assert_int_equal(gw_sock_parse("127.0.0.1", 0, &addr), 0);
    assert_int_equal(gw_sock_open_row(&addr, 1, 0, &f->stranger, f->error), 0);
    assert_int_equal(gw_udp_connect(f->udp, "127.0.0.1", gw_sock_port(&addr), f->error), 0);
    assert_int_equal(gw_sock_parse("127.0.0.1", gw_udp_port(f->udp), &f->ours), 0);
    *state = f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    close(f->stranger);
    gw_udp_close(f->udp);
    gw_test_host_close(&f->host);
    free(f);
    return 0;
}

static void throw(struct fixture * f, const uint8_t *bytes, size_t size)
{
    const struct sockaddr *to = (const struct sockaddr *)&f->ours.storage;
    assert_int_equal(sendto(f->stranger, bytes, size, 0, to, f->ours.length), size);
}

/* A data packet that we would take; returns its length. */
static uint32_t make_data(uint32_t dst, uint32_t payload, uint8_t *bytes)
{
    static const struct gw_codec codec = {.cookie = COOKIE};
    struct gw_pkt pkt = {.q.kind = GW_PKT_DATA, .src = THEIRS, .dst = dst};
    struct gw_frame frame;
    pkt.data.total = 2;
    pkt.data.len = pkt.data.mss = (uint16_t)payload;
    gw_codec_encode(&codec, &pkt, &frame);
    memset(bytes, 7, DATAGRAM_MAX);
    memcpy(bytes, frame.hdr, frame.hdr_size);
    return frame.length;
}

/* Reads everything that was thrown. Loopback delivers within send(), so one look is enough. */
static void look(struct fixture *f)
{
    assert_int_equal(gw_udp_run(f->udp, gw_udp_now(f->udp), f->error), GW_ERR_TIMED_OUT);
    assert_non_null(strstr(f->error, "127.0.0.1:"));
}

static void udp_run__counts_what_it_refuses(void **state)
{
    struct fixture *f = *state;
    uint8_t bytes[DATAGRAM_MAX];
    uint32_t length = make_data(OURS, 100, bytes);
    throw(f, bytes, 0);
    throw(f, bytes, 39);
    bytes[0] ^= 1; /* magic */
    throw(f, bytes, length);
    bytes[0] ^= 1;
    bytes[2] ^= 0x10; /* version */
    throw(f, bytes, length);
    bytes[2] ^= 0x10;
    bytes[9] ^= 1; /* cookie */
    throw(f, bytes, length);
    bytes[9] ^= 1;
    throw(f, bytes, length - 1);
    length = make_data(OURS, MTU + 1, bytes); /* more than a buffer holds */
    throw(f, bytes, length);
    look(f);
    const struct gw_udp_stats *stats = gw_udp_stats(f->udp);
    assert_int_equal(stats->runts, 2);
    assert_int_equal(stats->wrong_version, 2);
    assert_int_equal(stats->wrong_cookie, 1);
    assert_int_equal(stats->malformed, 2);
    assert_int_equal(stats->received, 0);
    assert_int_equal(gw_endpoint_stats(f->host.endpoint)->data_received, 0);
}

static void udp_run__passes_on_the_rest(void **state)
{
    struct fixture *f = *state;
    uint8_t bytes[DATAGRAM_MAX];
    throw(f, bytes, make_data(OURS, MTU, bytes));
    throw(f, bytes, make_data(OURS + 5, MTU, bytes));
    look(f);
    assert_int_equal(gw_udp_stats(f->udp)->received, 2);
    /* Nobody expects this message, and the other one is for another host. */
    assert_int_equal(gw_endpoint_stats(f->host.endpoint)->refused, 1);
    assert_int_equal(gw_endpoint_stats(f->host.endpoint)->stray, 1);
}

/* The ACK leaves by the port of its own entropy, and the payload is where it was asked for. */
static void udp_run__answers_through_the_socket(void **state)
{
    struct fixture *f = *state;
    unsigned char memory[2 * MTU];
    uint8_t bytes[DATAGRAM_MAX];
    assert_int_equal(gw_endpoint_expect(f->host.endpoint, THEIRS, 0, memory, sizeof(memory)), 0);
    throw(f, bytes, make_data(OURS, MTU, bytes));
    look(f);
    assert_int_equal(gw_udp_stats(f->udp)->sent, 1);
    enum gw_wire_kind kind;
    ssize_t size = recv(f->stranger, bytes, sizeof(bytes), 0);
    assert_int_equal(size, GW_WIRE_ANSWER_SIZE);
    assert_int_equal(gw_wire_validate(bytes, (uint32_t)size, &kind), 0);
    assert_int_equal(kind, GW_WIRE_ACK);
    for (uint32_t i = 0; i < MTU; i++)
        assert_int_equal(memory[i], 7);
}

/* When the pool is empty, packets are counted and lost, and receiving goes on afterwards. */
static void udp_run__survives_an_empty_pool(void **state)
{
    struct fixture *f = *state;
    uint8_t bytes[DATAGRAM_MAX];
    uint32_t length = make_data(OURS, MTU, bytes), held[PKTS], count = 0;
    while ((held[count] = gw_buf_claim(&f->host.bufs)) != GW_BUF_NONE)
        count++;
    assert_int_equal(count, PKTS - GW_UDP_BATCH);
    throw(f, bytes, length);
    look(f);
    assert_int_equal(gw_udp_stats(f->udp)->no_room, 1);
    assert_int_equal(gw_udp_stats(f->udp)->received, 0);
    while (count > 0)
        gw_buf_release(&f->host.bufs, held[--count]);
    throw(f, bytes, length);
    look(f);
    assert_int_equal(gw_udp_stats(f->udp)->received, 1);
}

static void udp_run__waits_until_the_deadline_and_names_the_peer(void **state)
{
    struct fixture *f = *state;
    gw_time until = gw_udp_now(f->udp) + PATIENCE;
    assert_int_equal(gw_udp_run(f->udp, until, f->error), GW_ERR_TIMED_OUT);
    assert_true(!gw_time_before(gw_udp_now(f->udp), until));
    assert_non_null(strstr(f->error, "127.0.0.1:"));
}

static void udp_open__names_what_is_wrong(void **state)
{
    struct fixture *f = *state;
    struct gw_udp *udp = NULL;
    struct gw_udp_cfg cfg = fixture_cfg(f);
    cfg.address = "localhost";
    assert_int_equal(gw_udp_open(&cfg, &udp, f->error), GW_ERR_INVALID);
    assert_non_null(strstr(f->error, "localhost"));
    cfg = fixture_cfg(f);
    cfg.entropies = 0;
    assert_int_equal(gw_udp_open(&cfg, &udp, f->error), GW_ERR_INVALID);
    assert_non_null(strstr(f->error, "entropies"));
    cfg = fixture_cfg(f);
    cfg.mtu = MTU + 1;
    assert_int_equal(gw_udp_open(&cfg, &udp, f->error), GW_ERR_INVALID);
    assert_non_null(strstr(f->error, "buffers"));
    cfg = fixture_cfg(f);
    cfg.entropies = 1;
    cfg.port = gw_udp_port(f->udp); /* taken */
    assert_int_equal(gw_udp_open(&cfg, &udp, f->error), GW_ERR_SYSTEM);
    assert_non_null(strstr(f->error, "127.0.0.1:"));
    assert_null(udp);
}

static void udp_connect__names_what_is_wrong(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *address;
        uint16_t port;
    } cases[] = {{"::1", 5}, {"127.0.0.1", 0}, {"peer", 5}};
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        assert_int_equal(gw_udp_connect(f->udp, cases[i].address, cases[i].port, f->error),
                         GW_ERR_INVALID);
        assert_non_null(strstr(f->error, cases[i].address));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        TEST(udp_run__counts_what_it_refuses),
        TEST(udp_run__passes_on_the_rest),
        TEST(udp_run__answers_through_the_socket),
        TEST(udp_run__survives_an_empty_pool),
        TEST(udp_run__waits_until_the_deadline_and_names_the_peer),
        TEST(udp_open__names_what_is_wrong),
        TEST(udp_connect__names_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
