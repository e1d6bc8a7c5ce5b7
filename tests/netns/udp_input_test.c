/*
 * What a UDP datapath refuses, told apart by counters: datagrams that are no packets, or not for
 * us; and configurations and addresses that cannot work, told by name. Another socket on loopback
 * plays the stranger.
 */
#include "host.h"
#include "support.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "core/blast_hail.h"
#include "core/codec.h"
#include "net/station/loop.h"
#include "net/udp/sock.h"
#include "net/udp/udp.h"
#include "wire/attach.h"

enum {
    OURS = 1,
    THEIRS = 2,
    MTU = 1000,
    PKTS = 128,
    DATAGRAM_MAX = 2048,
    LOOKS = 3, /* turns that take all that a test throws */
};

#define COOKIE   UINT64_C(0x1122334455660000)
#define PATIENCE (20 * GW_MS)

struct fixture {
    struct gw_test_host host;
    struct gw_datapath *udp;
    struct gw_loop *loop;
    int stranger; /* a socket that sends to us; its address is our peer */
    struct gw_sock_addr ours;
    char error[GW_NET_ERROR_MAX];
};

static struct gw_datapath_cfg fixture_cfg(struct fixture *f)
{
    return (struct gw_datapath_cfg){
        .pool = &f->host.pool,
        .address = "127.0.0.1",
        .entropies = 4,
        .mtu = MTU,
        .peers_max = 2,
        .has_trains = true,
    };
}

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct gw_sock_addr addr;
    assert_non_null(f);
    struct gw_endpoint_cfg cfg = gw_test_host_cfg(OURS, MTU);
    gw_test_host_open(&f->host, &cfg, PKTS);
    struct gw_datapath_cfg udp_cfg = fixture_cfg(f);
    assert_int_equal(gw_datapath_open(&gw_datapath_udp, &udp_cfg, &f->udp, f->error), 0);
    assert_int_equal(gw_sock_addr_parse("127.0.0.1", 0, &addr), 0);
    assert_int_equal(gw_sock_open_row(&addr, 1, 0, &f->stranger, f->error), 0);
    f->ours = *gw_datapath_address(f->udp);
    gw_datapath_set_peer(
        f->udp, &(struct gw_datapath_peer){
                    .addr = addr, .entropies = 1, .tx_cookie = COOKIE, .rx_cookie = COOKIE});
    f->loop = gw_loop_open(
        &(struct gw_loop_cfg){.datapath = f->udp, .pool = &f->host.pool, .peers_max = 2});
    assert_non_null(f->loop);
    gw_loop_add(f->loop, gw_endpoint_node(f->host.endpoint));
    gw_loop_link(f->loop, (struct gw_loop_port){0, 0}, (uint16_t)COOKIE, true);
    *state = f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    close(f->stranger);
    gw_loop_close(f->loop);
    gw_test_host_close(&f->host);
    free(f);
    return 0;
}

static void throw(struct fixture * f, const uint8_t *bytes, size_t size)
{
    const struct sockaddr *to = (const struct sockaddr *)&f->ours.storage;
    assert_int_equal(sendto(f->stranger, bytes, size, 0, to, f->ours.length), size);
}

/* As one train of datagrams that have `segment` bytes each. */
static void throw_train(struct fixture *f, void *bytes, size_t size, uint16_t segment)
{
    union {
        char bytes[CMSG_SPACE(sizeof(segment))];
        struct cmsghdr align;
    } control = {.bytes = ""};
    struct iovec iov = {bytes, size};
    struct msghdr msg = {
        .msg_name = &f->ours.storage,
        .msg_namelen = f->ours.length,
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control),
    };
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
    *cmsg = (struct cmsghdr){CMSG_LEN(sizeof(segment)), IPPROTO_UDP, UDP_SEGMENT};
    memcpy(CMSG_DATA(cmsg), &segment, sizeof(segment));
    assert_int_equal(sendmsg(f->stranger, &msg, 0), size);
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

/* A RENDEZVOUS likewise. */
static uint32_t make_rendezvous(uint8_t marks, uint8_t *bytes)
{
    static const struct gw_codec codec = {.cookie = COOKIE};
    struct gw_pkt pkt = {.q.kind = GW_PKT_HAIL, .src = THEIRS, .dst = OURS};
    struct gw_frame frame;
    pkt.hail.op = GW_HAIL_RENDEZVOUS;
    pkt.hail.marks = marks;
    pkt.hail.word[0] = 1;
    pkt.hail.number = pkt.index = MTU;
    gw_codec_encode(&codec, &pkt, &frame);
    memcpy(bytes, frame.hdr, frame.hdr_size);
    return frame.length;
}

/* Reads everything that was thrown. Loopback delivers within send(), so one look is enough. */
static void look(struct fixture *f)
{
    for (uint32_t i = 0; i < LOOKS; i++)
        assert_int_equal(gw_loop_turn(f->loop, gw_loop_now(f->loop), f->error), 0);
}

static void udp_run__counts_what_it_refuses(void **state)
{
    struct fixture *f = *state;
    uint8_t bytes[DATAGRAM_MAX];
    uint32_t length = make_data(OURS, 100, bytes);
    throw(f, bytes, 0);
    throw(f, bytes, GW_WIRE_HDR_MIN - 1);
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
    length = make_rendezvous(GW_HAIL_BARE, bytes); /* of a message without payload */
    throw(f, bytes, length);
    look(f);
    const struct gw_datapath_stats *stats = gw_datapath_stats(f->udp);
    assert_int_equal(stats->runts, 2);
    assert_int_equal(stats->wrong_version, 2);
    assert_int_equal(stats->wrong_cookie, 1);
    assert_int_equal(stats->malformed, 3);
    assert_int_equal(stats->received, 0);
    assert_int_equal(gw_endpoint_stats(f->host.endpoint)->data_received, 0);
}

static void udp_run__passes_on_the_rest(void **state)
{
    struct fixture *f = *state;
    uint8_t bytes[DATAGRAM_MAX];
    throw(f, bytes, make_data(OURS, MTU, bytes));
    throw(f, bytes, make_data(OURS + 5, MTU, bytes));
    throw(f, bytes, make_rendezvous(0, bytes));
    look(f);
    assert_int_equal(gw_datapath_stats(f->udp)->received, 3);
    assert_int_equal(gw_endpoint_stats(f->host.endpoint)->hails_received, 1);
    /* Nobody expects this message, the next is for another host, and the last to be a blast. */
    assert_int_equal(gw_endpoint_stats(f->host.endpoint)->refused, 1);
    assert_int_equal(gw_endpoint_stats(f->host.endpoint)->stray, 2);
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
    assert_int_equal(gw_datapath_stats(f->udp)->sent, 1);
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
    assert_int_equal(count, PKTS - GW_DATAPATH_TRAIN_MAX);
    throw(f, bytes, length);
    look(f);
    assert_int_equal(gw_datapath_stats(f->udp)->no_room, 1);
    assert_int_equal(gw_datapath_stats(f->udp)->received, 0);
    while (count > 0)
        gw_buf_release(&f->host.bufs, held[--count]);
    throw(f, bytes, length);
    look(f);
    assert_int_equal(gw_datapath_stats(f->udp)->received, 1);
}

static void loop_turn__sleeps_until_the_deadline(void **state)
{
    struct fixture *f = *state;
    gw_time until = gw_loop_now(f->loop) + PATIENCE;
    assert_int_equal(gw_loop_turn(f->loop, until, f->error), 0);
    assert_true(!gw_time_before(gw_loop_now(f->loop), until));
    assert_int_equal(gw_loop_stats(f->loop)->sleeps, 1);
}

/* A train whose datagrams are not of the length that came before is copied, and then expected;
 * but not one of headers, as answers are, which come between trains of data. */
static void udp_receive__takes_trains_of_any_length(void **state)
{
    struct fixture *f = *state;
    static uint8_t bytes[4 * DATAGRAM_MAX];
    static const uint32_t payloads[] = {100, 100, 700, MTU, 20, MTU, 8, MTU};
    uint32_t expected = MTU;
    uint64_t received = 0, copied = 0;
    for (size_t k = 0; k < GW_COUNT_OF(payloads); k++) {
        uint32_t length = make_data(OURS + 5, payloads[k], bytes);
        for (uint32_t i = 1; i < 4; i++)
            make_data(OURS + 5, payloads[k], bytes + (size_t)i * length);
        char control[GW_SOCK_CONTROL_SIZE];
        struct iovec iov = {bytes, 4 * (size_t)length};
        struct msghdr msg = {
            .msg_name = &f->ours.storage,
            .msg_namelen = f->ours.length,
            .msg_iov = &iov,
            .msg_iovlen = 1,
            .msg_control = control,
            .msg_controllen = gw_sock_write_control(
                &f->ours, &(struct gw_sock_beside){.segment = (uint16_t)length}, control),
        };
        assert_int_equal(sendmsg(f->stranger, &msg, 0), 4 * length);
        look(f);
        received += 4;
        copied += payloads[k] == expected ? 0 : 4;
        if (payloads[k] >= 100)
            expected = payloads[k];
        assert_int_equal(gw_datapath_stats(f->udp)->received, received);
        assert_int_equal(gw_endpoint_stats(f->host.endpoint)->stray, received);
    }
    assert_int_equal(gw_datapath_stats(f->udp)->rx_copied, copied);
}

static void udp_open__names_what_is_wrong(void **state)
{
    struct fixture *f = *state;
    struct gw_datapath *udp = NULL;
    struct gw_datapath_cfg cfg = fixture_cfg(f);
    cfg.address = "localhost";
    assert_int_equal(gw_datapath_open(&gw_datapath_udp, &cfg, &udp, f->error), GW_ERR_INVALID);
    assert_non_null(strstr(f->error, "localhost"));
    cfg = fixture_cfg(f);
    cfg.entropies = 0;
    assert_int_equal(gw_datapath_open(&gw_datapath_udp, &cfg, &udp, f->error), GW_ERR_INVALID);
    assert_non_null(strstr(f->error, "entropies"));
    cfg = fixture_cfg(f);
    cfg.mtu = MTU + 1;
    assert_int_equal(gw_datapath_open(&gw_datapath_udp, &cfg, &udp, f->error), GW_ERR_INVALID);
    assert_non_null(strstr(f->error, "buffers"));
    cfg = fixture_cfg(f);
    cfg.entropies = 1;
    cfg.port = gw_sock_addr_port(&f->ours); /* taken */
    assert_int_equal(gw_datapath_open(&gw_datapath_udp, &cfg, &udp, f->error), GW_ERR_SYSTEM);
    assert_non_null(strstr(f->error, "127.0.0.1:"));
    assert_null(udp);
}

/* Nobody may send to the broadcast address: that ends a process with one job, not one that serves
 * many neighbours. */
static void udp_send__counts_whom_it_cannot_send_to(void **state)
{
    struct fixture *f = *state;
    for (int serves_many = 0; serves_many < 2; serves_many++) {
        struct gw_datapath *udp;
        struct gw_datapath_cfg cfg = fixture_cfg(f);
        struct gw_datapath_peer nowhere = {
            .entropies = 1, .tx_cookie = COOKIE, .rx_cookie = COOKIE};
        cfg.address = "0.0.0.0";
        cfg.serves_many = serves_many;
        gw_loop_close(f->loop); /* and the fixture's socket: the pool has room for one */
        assert_int_equal(gw_datapath_open(&gw_datapath_udp, &cfg, &udp, f->error), 0);
        assert_int_equal(gw_sock_addr_parse("255.255.255.255", 9, &nowhere.addr), 0);
        gw_datapath_set_peer(udp, &nowhere);
        struct gw_pkt *pkt = gw_pkt_claim(&f->host.pool);
        *pkt = (struct gw_pkt){.q.kind = GW_PKT_CREDIT, .src = OURS, .dst = THEIRS};
        pkt->buf = GW_BUF_NONE;
        assert_int_equal(gw_datapath_send(udp, (uint16_t)COOKIE, &pkt, 1, f->error),
                         serves_many ? 0 : GW_ERR_SYSTEM);
        assert_int_equal(gw_datapath_stats(udp)->send_errors, serves_many);
        if (!serves_many)
            assert_non_null(strstr(f->error, "255.255.255.255:9"));
        f->loop = gw_loop_open(
            &(struct gw_loop_cfg){.datapath = udp, .pool = &f->host.pool, .peers_max = 2});
        assert_non_null(f->loop);
    }
}

/* What a process says at once in two sessions, the system may join; a flood of it has an end. */
static void udp_receive__takes_control_that_comes_as_one(void **state)
{
    struct fixture *f = *state;
    enum { MANY = GW_DATAPATH_CONTROLS_MAX + 3 };
    uint8_t bytes[MANY * GW_ATTACH_SIZE];
    struct gw_datapath_train train;
    for (uint32_t i = 0; i < MANY; i++) {
        const struct gw_attach_msg msg = {.step = GW_ATTACH_ASK, .number = i};
        gw_attach_encode(&msg, bytes + i * GW_ATTACH_SIZE);
    }
    throw_train(f, bytes, 2 * GW_ATTACH_SIZE, GW_ATTACH_SIZE);
    assert_int_equal(gw_datapath_receive(f->udp, 0, &train, f->error), 1);
    assert_int_equal(train.controls, 2);
    assert_int_equal(train.length, GW_ATTACH_SIZE);
    assert_memory_equal(train.control, bytes, 2 * GW_ATTACH_SIZE);
    assert_int_equal(gw_datapath_stats(f->udp)->malformed, 0);
    throw_train(f, bytes, sizeof(bytes) - 1, GW_ATTACH_SIZE);
    assert_int_equal(gw_datapath_receive(f->udp, 0, &train, f->error), 1);
    assert_int_equal(train.controls, GW_DATAPATH_CONTROLS_MAX);
    assert_memory_equal(train.control, bytes, GW_DATAPATH_CONTROLS_MAX * GW_ATTACH_SIZE);
    assert_int_equal(gw_datapath_stats(f->udp)->malformed, 3);
}

/* All of them reach the owner of the loop. */
static void loop_turn__hands_on_control_that_comes_as_one(void **state)
{
    struct fixture *f = *state;
    uint8_t bytes[2 * GW_ATTACH_SIZE];
    const uint8_t *taken;
    struct gw_sock_addr from;
    for (uint32_t i = 0; i < 2; i++)
        gw_attach_encode(&(struct gw_attach_msg){.step = GW_ATTACH_ASK, .number = i},
                         bytes + i * GW_ATTACH_SIZE);
    throw_train(f, bytes, sizeof(bytes), GW_ATTACH_SIZE);
    assert_int_equal(gw_loop_turn(f->loop, gw_loop_now(f->loop) + PATIENCE, f->error), 0);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(gw_loop_take_foreign(f->loop, &taken, &from), GW_ATTACH_SIZE);
        assert_memory_equal(taken, bytes + i * GW_ATTACH_SIZE, GW_ATTACH_SIZE);
    }
    assert_int_equal(gw_loop_take_foreign(f->loop, &taken, &from), 0);
}

/* Two packets that share a payload leave in one train, each with its own header. */
static void udp_send__gives_each_packet_its_header(void **state)
{
    struct fixture *f = *state;
    static const struct gw_codec codec = {.cookie = COOKIE};
    struct gw_pkt *train[2];
    uint32_t buf = gw_buf_claim(&f->host.bufs);
    memset(gw_buf_bytes(&f->host.bufs, buf), 9, MTU);
    gw_buf_share(&f->host.bufs, buf);
    for (uint32_t i = 0; i < GW_COUNT_OF(train); i++) {
        train[i] = gw_pkt_claim(&f->host.pool);
        *train[i] = (struct gw_pkt){.q.kind = GW_PKT_DATA, .src = OURS, .dst = THEIRS, .seq = i};
        train[i]->buf = buf;
        train[i]->data.total = 3;
        train[i]->data.len = train[i]->data.mss = MTU;
    }
    assert_int_equal(gw_datapath_send(f->udp, (uint16_t)COOKIE, train, 2, f->error), 0);
    assert_int_equal(gw_datapath_stats(f->udp)->sent, 2);
    for (uint32_t i = 0; i < GW_COUNT_OF(train); i++) {
        uint8_t bytes[DATAGRAM_MAX];
        struct gw_pkt pkt;
        struct gw_frame frame = {.length = GW_WIRE_DATA_SIZE + MTU};
        assert_int_equal(recv(f->stranger, bytes, sizeof(bytes), 0), frame.length);
        memcpy(frame.hdr, bytes, sizeof(frame.hdr));
        assert_int_equal(gw_codec_decode(&codec, &frame, 0, &pkt), 0);
        assert_int_equal(pkt.seq, i);
        for (uint32_t k = 0; k < MTU; k++)
            assert_int_equal(bytes[GW_WIRE_DATA_SIZE + k], 9);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        TEST(udp_run__counts_what_it_refuses),
        TEST(udp_run__passes_on_the_rest),
        TEST(udp_send__counts_whom_it_cannot_send_to),
        TEST(udp_send__gives_each_packet_its_header),
        TEST(udp_receive__takes_control_that_comes_as_one),
        TEST(loop_turn__hands_on_control_that_comes_as_one),
        TEST(udp_run__answers_through_the_socket),
        TEST(udp_run__survives_an_empty_pool),
        TEST(loop_turn__sleeps_until_the_deadline),
        TEST(udp_receive__takes_trains_of_any_length),
        TEST(udp_open__names_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
