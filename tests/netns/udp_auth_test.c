/*
 * Authenticated packets that a UDP datapath receives: payloads up to the mtu and no longer,
 * although a buffer has room for the code behind it, and only what is genuine and comes for the
 * first time. Another socket on loopback plays the neighbour.
 */
#include "host.h"
#include "support.h"

#include <sys/socket.h>
#include <unistd.h>

#include "core/codec.h"
#include "net/udp/sock.h"
#include "net/udp/udp.h"

enum {
    OURS = 1,
    THEIRS = 2,
    MTU = 1000,
    BUFFER = MTU + GW_AUTH_SIZE,
    WHOLE = GW_WIRE_DATA_SIZE + BUFFER,
    PKTS = 128,
    DATAGRAM_MAX = 2048,
    FILL = 7,    /* every byte of a payload, */
    HELD = 0xee, /* and of a buffer that nothing comes to */
};

#define OUR_COOKIE   UINT64_C(0x1122334455660000)
#define THEIR_COOKIE UINT64_C(0x99aabbccddee0000)

struct fixture {
    struct gw_test_host host;
    struct gw_datapath *udp;
    struct gw_auth ours, theirs; /* ends of the session; we have dialled */
    int neighbour;
    char error[GW_NET_ERROR_MAX];
};

static void open_tags(struct fixture *f)
{
    static const uint8_t session[GW_ATTACH_NONCE_SIZE] = {1, 2, 3};
    struct gw_key key;
    assert_int_equal(gw_key_setup(), 0);
    gw_key_from_text("secret", 6, &key);
    struct gw_auth_cfg cfg = {
        .key = &key,
        .session = session,
        .initiators_cookie = OUR_COOKIE,
        .responders_cookie = THEIR_COOKIE,
        .is_initiator = true,
    };
    gw_auth_init(&f->ours, &cfg);
    cfg.is_initiator = false;
    gw_auth_init(&f->theirs, &cfg);
}

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct gw_sock_addr addr;
    assert_non_null(f);
    struct gw_endpoint_cfg cfg = gw_test_host_cfg(OURS, BUFFER); /* for the size of its buffers */
    gw_test_host_open(&f->host, &cfg, PKTS);
    struct gw_datapath_cfg udp_cfg = {
        .pool = &f->host.pool,
        .address = "127.0.0.1",
        .entropies = 1,
        .mtu = MTU,
        .peers_max = 1,
        .has_trains = true,
    };
    assert_int_equal(gw_datapath_open(&gw_datapath_udp, &udp_cfg, &f->udp, f->error), 0);
    assert_int_equal(gw_sock_addr_parse("127.0.0.1", 0, &addr), 0);
    assert_int_equal(gw_sock_open_row(&addr, 1, 0, &f->neighbour, f->error), 0);
    open_tags(f);
    gw_datapath_set_peer(f->udp, &(struct gw_datapath_peer){.addr = addr,
                                                            .entropies = 1,
                                                            .tx_cookie = THEIR_COOKIE,
                                                            .rx_cookie = OUR_COOKIE,
                                                            .auth = &f->ours});
    *state = f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    close(f->neighbour);
    gw_datapath_close(f->udp);
    gw_test_host_close(&f->host);
    free(f);
    return 0;
}

/* A data packet of so much payload with the neighbour's next authentication; returns its length. */
static uint32_t make(struct fixture *f, uint32_t payload, uint8_t *bytes)
{
    static const struct gw_codec codec = {.cookie = OUR_COOKIE};
    struct gw_pkt pkt = {.q.kind = GW_PKT_DATA, .src = THEIRS, .dst = OURS};
    struct gw_frame frame;
    pkt.data.total = 2;
    pkt.data.len = pkt.data.mss = (uint16_t)payload;
    gw_codec_encode(&codec, &pkt, &frame);
    memset(bytes, FILL, DATAGRAM_MAX);
    memcpy(bytes, frame.hdr, frame.hdr_size);
    gw_auth_seal(&f->theirs, &(struct iovec){bytes, frame.length}, 1, bytes + frame.length);
    return frame.length + GW_AUTH_SIZE;
}

/* Throws it, and returns how many packets have come of it, each of `payload` bytes. */
static uint32_t bring(struct fixture *f, const uint8_t *bytes, uint32_t size, uint32_t payload)
{
    const struct gw_sock_addr *to = gw_datapath_address(f->udp);
    struct gw_datapath_train train;
    assert_int_equal(
        sendto(f->neighbour, bytes, size, 0, (const struct sockaddr *)&to->storage, to->length),
        size);
    assert_int_equal(gw_datapath_receive(f->udp, GW_S, &train, f->error), 1);
    for (uint32_t i = 0; i < train.count; i++) {
        assert_int_equal(train.pkts[i]->data.len, payload);
        for (uint32_t k = 0; k < payload; k++)
            assert_int_equal(gw_buf_bytes(&f->host.bufs, train.pkts[i]->buf)[k], FILL);
        gw_pkt_release(&f->host.pool, train.pkts[i]);
    }
    return train.count;
}

/* A buffer with the room for a header before it. */
static unsigned char *whole(const struct fixture *f, uint32_t buf)
{
    return gw_buf_bytes(&f->host.bufs, buf) - GW_WIRE_DATA_SIZE;
}

/*
 * Each length twice: the second of a kind lies where datagrams of its length are expected, if they
 * fit there. All buffers but those that receive are held, and keep what is in them.
 */
static void udp_receive__takes_payloads_up_to_the_mtu(void **state)
{
    static const uint32_t payloads[] = {100, MTU - 1, MTU, MTU + 1, BUFFER - 1, BUFFER, BUFFER + 1};
    struct fixture *f = *state;
    uint32_t held[PKTS], count = 0;
    uint64_t refused = 0;
    while ((held[count] = gw_buf_claim(&f->host.bufs)) != GW_BUF_NONE)
        memset(whole(f, held[count++]), HELD, WHOLE);
    for (uint32_t i = 0; i < 2; i++) /* two are enough for the one packet that we have at a time */
        gw_buf_release(&f->host.bufs, held[--count]);
    for (uint32_t i = 0; i < 2 * GW_COUNT_OF(payloads); i++) {
        uint8_t bytes[DATAGRAM_MAX];
        uint32_t payload = payloads[i / 2];
        uint32_t size = make(f, payload, bytes);
        assert_int_equal(bring(f, bytes, size, payload), payload <= MTU);
        refused += payload > MTU;
        assert_int_equal(gw_datapath_stats(f->udp)->malformed, refused);
    }
    assert_int_equal(gw_datapath_stats(f->udp)->received, 2 * GW_COUNT_OF(payloads) - refused);
    while (count-- > 0) {
        for (uint32_t k = 0; k < WHOLE; k++)
            assert_int_equal(whole(f, held[count])[k], HELD);
        gw_buf_release(&f->host.bufs, held[count]);
    }
}

static void udp_receive__takes_what_is_genuine_once(void **state)
{
    struct fixture *f = *state;
    uint8_t bytes[DATAGRAM_MAX];
    uint32_t size = make(f, MTU, bytes);
    bytes[size - GW_AUTH_SIZE - 1] ^= 1; /* the last of the payload */
    assert_int_equal(bring(f, bytes, size, MTU), 0);
    assert_int_equal(gw_datapath_stats(f->udp)->forged, 1);
    bytes[size - GW_AUTH_SIZE - 1] ^= 1;
    assert_int_equal(bring(f, bytes, size, MTU), 1);
    assert_int_equal(bring(f, bytes, size, MTU), 0);
    assert_int_equal(gw_datapath_stats(f->udp)->repeated, 1);
    /* Too short to be a packet and its authentication. */
    assert_int_equal(bring(f, bytes, GW_WIRE_HDR_MIN + GW_AUTH_SIZE - 1, 0), 0);
    assert_int_equal(gw_datapath_stats(f->udp)->runts, 1);
    assert_int_equal(gw_datapath_stats(f->udp)->received, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        TEST(udp_receive__takes_payloads_up_to_the_mtu),
        TEST(udp_receive__takes_what_is_genuine_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
