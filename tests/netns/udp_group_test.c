/*
 * The group sockets of a UDP datapath: what a neighbour multicasts comes in, by its group alone and
 * from it alone, and nothing else does; and no socket shuts others out. Other sockets on
 * loopback, which multicasts, play the switch and strangers.
 */
#include "host.h"
#include "support.h"

#include <sys/socket.h>
#include <unistd.h>

#include "core/codec.h"
#include "net/udp/sock.h"
#include "net/udp/udp.h"
#include "wire/attach.h"

enum {
    OURS = 11, /* addresses */
    THEIRS = 12,
    PEER = 1, /* number of the switch */
    OTHER = 2,
    PEERS = 3,
    MTU = 1000,
    PKTS = 256,
    DATAGRAM_MAX = 2048,
    VALUES = 4,       /* of a result */
    IN_A_ROW_MAX = 8, /* trains from one socket while the other has some */
    MISSED_MIN = 8,   /* results by unicast that say nothing yet */
};

/* Both name the switch by number, so that it is the rest of them that tells. */
#define COOKIE       (UINT64_C(0x1122334455660000) | PEER)
#define GROUP_COOKIE (UINT64_C(0x99aabbccddee0000) | PEER)

struct fixture {
    struct gw_test_host host;
    struct gw_datapath *udp;
    int sw, neighbour, stranger; /* sockets: the switch, another port there, another host */
    struct gw_sock_addr sw_addr, ours, group, others_group;
    char error[GW_NET_ERROR_MAX];
};

static int open_socket(struct fixture *f, const char *host, uint16_t port,
                       struct gw_sock_addr *addr)
{
    int fd;
    assert_int_equal(gw_sock_addr_parse(host, port, addr), 0);
    assert_int_equal(gw_sock_open_row(addr, 1, 0, &fd, f->error), 0);
    return fd;
}

static void set_peer(struct fixture *f, uint16_t number)
{
    struct gw_datapath_peer peer = {
        .addr = f->sw_addr,
        .entropies = 1,
        .tx_cookie = COOKIE,
        .rx_cookie = (COOKIE & ~UINT64_C(0xffff)) | number,
    };
    gw_datapath_set_peer(f->udp, &peer);
}

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct gw_sock_addr addr;
    assert_non_null(f);
    struct gw_endpoint_cfg cfg = gw_test_host_cfg(OURS, MTU);
    gw_test_host_open(&f->host, &cfg, PKTS);
    struct gw_datapath_cfg udp_cfg = {
        .pool = &f->host.pool,
        .address = "127.0.0.1",
        .entropies = 1,
        .mtu = MTU,
        .peers_max = PEERS,
        .has_trains = true,
    };
    assert_int_equal(gw_datapath_open(&gw_datapath_udp, &udp_cfg, &f->udp, f->error), 0);
    f->ours = *gw_datapath_address(f->udp);
    f->sw = open_socket(f, "127.0.0.1", 0, &f->sw_addr);
    f->neighbour = open_socket(f, "127.0.0.1", 0, &addr);
    f->stranger = open_socket(f, "127.0.0.2", gw_sock_addr_port(&f->sw_addr), &addr);
    /* Our own port: so nobody else has it at all addresses. */
    assert_int_equal(gw_sock_addr_parse("239.77.9.1", gw_sock_addr_port(&f->ours), &f->group), 0);
    assert_true(gw_sock_addr_reach_by(&f->group, &f->sw_addr, &f->ours));
    f->others_group = f->group;
    gw_sock_addr_advance(&f->others_group, 1);
    assert_true(gw_sock_addr_reach_by(&f->others_group, &f->sw_addr, &f->ours));
    set_peer(f, PEER);
    gw_datapath_listen(f->udp, PEER, &f->group, GROUP_COOKIE, OURS);
    *state = f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    close(f->sw);
    close(f->neighbour);
    close(f->stranger);
    gw_datapath_close(f->udp);
    gw_test_host_close(&f->host);
    free(f);
    return 0;
}

/* A well-formed packet of any kind; returns its length. */
static uint32_t make(enum gw_pkt_kind kind, uint64_t cookie, uint8_t *bytes)
{
    const struct gw_codec codec = {.cookie = cookie};
    struct gw_pkt pkt = {.q.kind = (uint8_t)kind, .src = THEIRS, .dst = THEIRS};
    struct gw_frame frame;
    if (kind == GW_PKT_GRAD || kind == GW_PKT_PARAM) {
        pkt.agg.values = VALUES;
    } else if (kind == GW_PKT_DATA) {
        pkt.data.total = 2;
        pkt.data.len = pkt.data.mss = 100;
    }
    gw_codec_encode(&codec, &pkt, &frame);
    memset(bytes, 7, DATAGRAM_MAX);
    memcpy(bytes, frame.hdr, frame.hdr_size);
    return frame.length;
}

static void throw(int fd, const struct gw_sock_addr *to, uint8_t *bytes, size_t size)
{
    _Alignas(struct cmsghdr) char control[GW_SOCK_CONTROL_SIZE];
    struct gw_sock_addr at = *to;
    struct iovec iov = {bytes, size};
    struct msghdr msg = {
        .msg_name = &at.storage,
        .msg_namelen = at.length,
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = gw_sock_write_control(&at, &(struct gw_sock_beside){.tos = 0}, control),
    };
    assert_int_equal(sendmsg(fd, &msg, 0), size);
}

static void throw_pkt(int fd, const struct gw_sock_addr *to, enum gw_pkt_kind kind, uint64_t cookie)
{
    uint8_t bytes[DATAGRAM_MAX];
    throw(fd, to, bytes, make(kind, cookie, bytes));
}

/* Takes what was thrown last, which loopback delivers within send(); false: nothing was there. */
static bool look(struct fixture *f, struct gw_datapath_train *train)
{
    int result = gw_datapath_receive(f->udp, GW_S, train, f->error);
    assert_true(result == 0 || result == 1);
    return result == 1;
}

static void release(struct fixture *f, const struct gw_datapath_train *train)
{
    for (uint32_t i = 0; i < train->count; i++)
        gw_pkt_release(&f->host.pool, train->pkts[i]);
}

/* Looks, and gives back what has come; returns how many packets. */
static uint32_t take(struct fixture *f)
{
    struct gw_datapath_train train;
    assert_true(look(f, &train));
    release(f, &train);
    return train.count;
}

static void udp_listen__gives_results_to_us(void **state)
{
    struct fixture *f = *state;
    struct gw_datapath_train train;
    throw_pkt(f->sw, &f->group, GW_PKT_PARAM, GROUP_COOKIE);
    assert_true(look(f, &train));
    assert_int_equal(train.peer, PEER);
    assert_int_equal(train.count, 1);
    const struct gw_pkt *pkt = train.pkts[0];
    assert_int_equal(pkt->q.kind, GW_PKT_PARAM);
    assert_int_equal(pkt->src, THEIRS);
    assert_int_equal(pkt->dst, OURS);
    assert_int_equal(pkt->agg.values, VALUES);
    for (uint32_t i = 0; i < VALUES * GW_WIRE_VALUE_SIZE; i++)
        assert_int_equal(gw_buf_bytes(&f->host.bufs, pkt->buf)[i], 7);
    release(f, &train);
    assert_false(look(f, &train)); /* it came once */
    /* What comes by unicast keeps its destination. */
    throw_pkt(f->sw, &f->ours, GW_PKT_PARAM, COOKIE);
    assert_true(look(f, &train));
    assert_int_equal(train.count, 1);
    assert_int_equal(train.pkts[0]->dst, THEIRS);
    release(f, &train);
}

static void udp_listen__takes_them_from_the_neighbour_alone(void **state)
{
    struct fixture *f = *state;
    struct gw_sock_addr from_stranger = f->group, stranger;
    assert_int_equal(gw_sock_addr_parse("127.0.0.2", 0, &stranger), 0);
    gw_sock_addr_pack(&stranger, from_stranger.source);
    const struct {
        int fd;
        const struct gw_sock_addr *to;
        uint64_t cookie;
    } wrong[] = {
        {f->neighbour, &f->group, GROUP_COOKIE}, {f->stranger, &from_stranger, GROUP_COOKIE},
        {f->sw, &f->ours, GROUP_COOKIE},         {f->sw, &f->group, COOKIE},
        {f->sw, &f->group, GROUP_COOKIE ^ 1}, /* that number is nobody's */
    };
    for (size_t i = 0; i < GW_COUNT_OF(wrong); i++) {
        throw_pkt(wrong[i].fd, wrong[i].to, GW_PKT_PARAM, wrong[i].cookie);
        assert_int_equal(take(f), 0);
        assert_int_equal(gw_datapath_stats(f->udp)->wrong_cookie, i + 1);
    }
    assert_int_equal(gw_datapath_stats(f->udp)->received, 0);
    throw_pkt(f->sw, &f->group, GW_PKT_PARAM, GROUP_COOKIE);
    assert_int_equal(take(f), 1);
}

/* Each kind is well-formed: by unicast it is taken. */
static void udp_listen__takes_results_alone(void **state)
{
    struct fixture *f = *state;
    uint64_t refused = 0;
    for (int kind = 0; kind < GW_PKT_KINDS; kind++) {
        if (kind == GW_PKT_PARAM || kind == GW_ATTACH_KIND)
            continue;
        throw_pkt(f->sw, &f->ours, (enum gw_pkt_kind)kind, COOKIE);
        assert_int_equal(take(f), 1);
        throw_pkt(f->sw, &f->group, (enum gw_pkt_kind)kind, GROUP_COOKIE);
        assert_int_equal(take(f), 0);
        assert_int_equal(gw_datapath_stats(f->udp)->malformed, ++refused);
    }
}

/* Of the attach protocol a probe is handed on if it came by the group, and all else if it did not.
 */
static void udp_receive__hands_on_probes_of_the_group(void **state)
{
    struct fixture *f = *state;
    uint64_t refused = 0;
    for (uint8_t step = 0; step < GW_ATTACH_STEPS; step++) {
        for (int by_group = 0; by_group < 2; by_group++) {
            uint8_t bytes[GW_ATTACH_SIZE];
            struct gw_datapath_train train;
            struct gw_attach_msg msg = {
                .step = step, .entropies = 1, .mtu = MTU, .cookie = GROUP_COOKIE};
            gw_attach_encode(&msg, bytes);
            throw(f->sw, by_group ? &f->group : &f->ours, bytes, sizeof(bytes));
            assert_true(look(f, &train));
            assert_int_equal(train.count, 0);
            if ((step == GW_ATTACH_PROBE) == by_group) {
                assert_int_equal(train.length, GW_ATTACH_SIZE);
                assert_memory_equal(train.control, bytes, GW_ATTACH_SIZE);
                assert_int_equal(gw_sock_addr_port(&train.from), gw_sock_addr_port(&f->sw_addr));
            } else {
                assert_int_equal(train.controls, 0);
                refused++;
            }
            assert_int_equal(gw_datapath_stats(f->udp)->malformed, refused);
        }
    }
    assert_int_equal(refused, GW_ATTACH_STEPS);
}

/* Who hears another's group, at the same address, does not hear this one. */
static void udp_receive__hands_on_probes_of_no_other_group(void **state)
{
    struct fixture *f = *state;
    uint8_t bytes[GW_ATTACH_SIZE];
    struct gw_datapath_train train;
    const struct gw_attach_msg msg = {
        .step = GW_ATTACH_PROBE, .entropies = 1, .mtu = MTU, .cookie = GROUP_COOKIE + 1};
    gw_attach_encode(&msg, bytes);
    throw(f->sw, &f->group, bytes, sizeof(bytes));
    assert_true(look(f, &train));
    assert_int_equal(train.controls, 0);
    assert_int_equal(gw_datapath_stats(f->udp)->malformed, 1);
}

static void udp_receive__serves_both_sockets(void **state)
{
    enum {
        EACH = 60,
        LOOKS = 2 * IN_A_ROW_MAX + 2,
    };
    struct fixture *f = *state;
    for (int i = 0; i < EACH; i++) {
        throw_pkt(f->sw, &f->ours, GW_PKT_PARAM, COOKIE);
        throw_pkt(f->sw, &f->group, GW_PKT_PARAM, GROUP_COOKIE);
    }
    for (int round = 0; round < EACH / LOOKS; round++) {
        int by_group = 0;
        for (int i = 0; i < LOOKS; i++) {
            struct gw_datapath_train train;
            assert_true(look(f, &train));
            assert_int_equal(train.count, 1);
            by_group += train.pkts[0]->dst == OURS;
            release(f, &train);
        }
        assert_in_range(by_group, 1, LOOKS - 1);
    }
    while (gw_datapath_stats(f->udp)->received < (uint64_t)2 * EACH)
        assert_int_equal(take(f), 1);
}

/* Where ppoll() has found nothing, nobody looks until it says otherwise. */
static void udp_set_silent__passes_over(void **state)
{
    struct fixture *f = *state;
    struct gw_datapath_train train;
    throw_pkt(f->sw, &f->ours, GW_PKT_PARAM, COOKIE);
    gw_datapath_set_silent(f->udp, 1);
    assert_false(look(f, &train));
    throw_pkt(f->sw, &f->group, GW_PKT_PARAM, GROUP_COOKIE);
    assert_int_equal(take(f), 1);
    assert_false(look(f, &train));
    throw_pkt(f->sw, &f->group, GW_PKT_PARAM, GROUP_COOKIE);
    gw_datapath_set_silent(f->udp, 2);
    assert_int_equal(take(f), 1);
    assert_false(look(f, &train));
    gw_datapath_set_silent(f->udp, 0);
    assert_int_equal(take(f), 1);
    assert_false(look(f, &train));
}

static void udp_unlisten__ends_it_for_its_neighbour(void **state)
{
    struct fixture *f = *state;
    struct gw_datapath_train train;
    int fds[GW_DATAPATH_FDS_MAX];
    assert_int_equal(gw_datapath_receive_fds(f->udp, fds), 2);
    gw_datapath_unlisten(f->udp, OTHER);
    assert_int_equal(gw_datapath_receive_fds(f->udp, fds), 2);
    gw_datapath_unlisten(f->udp, PEER);
    assert_int_equal(gw_datapath_receive_fds(f->udp, fds), 1);
    throw_pkt(f->sw, &f->group, GW_PKT_PARAM, GROUP_COOKIE);
    assert_false(look(f, &train));
    throw_pkt(f->sw, &f->ours, GW_PKT_PARAM, COOKIE);
    assert_int_equal(take(f), 1);
}

/* A result comes by a group: how many packets of `peer` that makes. */
static uint32_t take_by(struct fixture *f, const struct gw_sock_addr *group, uint64_t cookie,
                        uint16_t peer)
{
    struct gw_datapath_train train;
    throw_pkt(f->sw, group, GW_PKT_PARAM, cookie);
    assert_true(look(f, &train));
    release(f, &train);
    return train.count && train.peer == peer ? train.count : 0;
}

/* When a neighbour tells another group, that takes the place of the one before. */
static void udp_listen__is_to_one_group_of_a_neighbour(void **state)
{
    struct fixture *f = *state;
    int fds[GW_DATAPATH_FDS_MAX];
    gw_datapath_listen(f->udp, PEER, &f->group, GROUP_COOKIE + 1, OURS);
    assert_int_equal(gw_datapath_receive_fds(f->udp, fds), 2);
    assert_int_equal(take_by(f, &f->group, GROUP_COOKIE, PEER), 0);
    assert_int_equal(take_by(f, &f->group, GROUP_COOKIE + 1, PEER), 1);
}

/* Each cookie is of its group alone, and a group that is given up leaves the others as they are. */
static void udp_listen__is_to_groups_of_several_neighbours(void **state)
{
    struct fixture *f = *state;
    struct gw_datapath_train train;
    int fds[GW_DATAPATH_FDS_MAX];
    set_peer(f, OTHER);
    gw_datapath_listen(f->udp, OTHER, &f->others_group, GROUP_COOKIE + 1, OURS);
    assert_int_equal(gw_datapath_receive_fds(f->udp, fds), 3);
    assert_int_equal(take_by(f, &f->group, GROUP_COOKIE, PEER), 1);
    assert_int_equal(take_by(f, &f->others_group, GROUP_COOKIE + 1, OTHER), 1);
    assert_int_equal(take_by(f, &f->group, GROUP_COOKIE + 1, OTHER), 0);
    assert_int_equal(take_by(f, &f->others_group, GROUP_COOKIE, PEER), 0);
    gw_datapath_unlisten(f->udp, PEER);
    assert_int_equal(gw_datapath_receive_fds(f->udp, fds), 3);
    assert_int_equal(fds[1], -1);
    gw_datapath_set_silent(f->udp, 1 << 2); /* its place is what it was */
    throw_pkt(f->sw, &f->others_group, GW_PKT_PARAM, GROUP_COOKIE + 1);
    assert_false(look(f, &train));
    gw_datapath_set_silent(f->udp, 1 << 1);
    assert_int_equal(take(f), 1);
    gw_datapath_set_silent(f->udp, 0);
    gw_datapath_listen(f->udp, PEER, &f->group, GROUP_COOKIE, OURS);
    assert_int_equal(gw_datapath_receive_fds(f->udp, fds), 3);
    assert_int_equal(take_by(f, &f->group, GROUP_COOKIE, PEER), 1);
    gw_datapath_unlisten(f->udp, PEER);
    gw_datapath_unlisten(f->udp, OTHER);
    assert_int_equal(gw_datapath_receive_fds(f->udp, fds), 1);
}

static void udp_listen__has_a_limit(void **state)
{
    struct fixture *f = *state;
    int fds[GW_DATAPATH_FDS_MAX];
    for (uint16_t peer = OTHER; peer < OTHER + GW_DATAPATH_GROUPS_MAX - 1; peer++)
        gw_datapath_listen(f->udp, peer, &f->others_group, GROUP_COOKIE + peer, OURS);
    assert_int_equal(gw_datapath_receive_fds(f->udp, fds), GW_DATAPATH_FDS_MAX);
    set_peer(f, OTHER);
    gw_datapath_listen(f->udp, OTHER - 1 + GW_DATAPATH_GROUPS_MAX, &f->group, GROUP_COOKIE, OURS);
    assert_int_equal(gw_datapath_receive_fds(f->udp, fds), GW_DATAPATH_FDS_MAX);
    assert_int_equal(take_by(f, &f->group, GROUP_COOKIE, PEER), 1);
    gw_datapath_unlisten(f->udp, OTHER - 1 + GW_DATAPATH_GROUPS_MAX); /* it has none */
    assert_int_equal(gw_datapath_receive_fds(f->udp, fds), GW_DATAPATH_FDS_MAX);
    gw_datapath_listen(f->udp, PEER, &f->group, GROUP_COOKIE + 1, OURS);
    assert_int_equal(take_by(f, &f->group, GROUP_COOKIE + 1, PEER), 1);
}

/* Results come, `alone` by unicast and `together` by the group. */
static void bring_results(struct fixture *f, int alone, int together)
{
    for (int i = 0; i < alone; i++) {
        throw_pkt(f->sw, &f->ours, GW_PKT_PARAM, COOKIE);
        assert_int_equal(take(f), 1);
    }
    for (int i = 0; i < together; i++) {
        throw_pkt(f->sw, &f->group, GW_PKT_PARAM, GROUP_COOKIE);
        assert_int_equal(take(f), 1);
    }
}

static void udp_misses_group__when_most_come_by_unicast(void **state)
{
    static const struct {
        int alone, together;
        bool is_missed;
    } cases[] = {
        {0, 0, false},
        {MISSED_MIN, 0, false}, /* too few to tell */
        {MISSED_MIN, 0, false}, /* and they do not count for the next time */
        {MISSED_MIN + 1, 0, true},
        {0, 0, false},
        {2 * MISSED_MIN, 2 * MISSED_MIN, false},
        {2 * MISSED_MIN, 2 * MISSED_MIN - 1, true},
        {MISSED_MIN + 1, 5 * MISSED_MIN, false},
        {MISSED_MIN + 1, 0, true}, /* nor does what came by the group */
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        uint16_t peer = OTHER;
        bring_results(f, cases[i].alone, cases[i].together);
        assert_int_equal(gw_datapath_misses_group(f->udp, &peer), cases[i].is_missed);
        assert_true(!cases[i].is_missed || peer == PEER);
    }
}

/* What one misses says nothing of another, and each is told once. */
static void udp_misses_group__tells_neighbours_apart(void **state)
{
    struct fixture *f = *state;
    uint16_t peer;
    set_peer(f, OTHER);
    gw_datapath_listen(f->udp, OTHER, &f->others_group, GROUP_COOKIE + 1, OURS);
    for (int i = 0; i <= MISSED_MIN; i++) {
        throw_pkt(f->sw, &f->ours, GW_PKT_PARAM, COOKIE - PEER + OTHER);
        assert_int_equal(take(f), 1);
        assert_int_equal(take_by(f, &f->group, GROUP_COOKIE, PEER), 1);
    }
    assert_true(gw_datapath_misses_group(f->udp, &peer));
    assert_int_equal(peer, OTHER);
    assert_false(gw_datapath_misses_group(f->udp, &peer));
    bring_results(f, MISSED_MIN + 1, 0);
    assert_true(gw_datapath_misses_group(f->udp, &peer));
    assert_int_equal(peer, PEER);
    assert_false(gw_datapath_misses_group(f->udp, &peer));
}

/* Packets of other kinds come by unicast in any case, and who listens to no group misses none. */
static void udp_misses_group__counts_only_what_could_come_by_it(void **state)
{
    struct fixture *f = *state;
    uint16_t peer;
    for (int i = 0; i < 4 * MISSED_MIN; i++) {
        throw_pkt(f->sw, &f->ours, GW_PKT_DATA, COOKIE);
        assert_int_equal(take(f), 1);
    }
    assert_false(gw_datapath_misses_group(f->udp, &peer));
    gw_datapath_unlisten(f->udp, PEER);
    bring_results(f, 4 * MISSED_MIN, 0);
    assert_false(gw_datapath_misses_group(f->udp, &peer));
    /* What came before it was there was not missed. */
    bring_results(f, 4 * MISSED_MIN, 0);
    gw_datapath_listen(f->udp, PEER, &f->group, GROUP_COOKIE, OURS);
    assert_false(gw_datapath_misses_group(f->udp, &peer));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        TEST(udp_listen__gives_results_to_us),
        TEST(udp_listen__takes_them_from_the_neighbour_alone),
        TEST(udp_listen__takes_results_alone),
        TEST(udp_receive__hands_on_probes_of_the_group),
        TEST(udp_receive__hands_on_probes_of_no_other_group),
        TEST(udp_receive__serves_both_sockets),
        TEST(udp_set_silent__passes_over),
        TEST(udp_unlisten__ends_it_for_its_neighbour),
        TEST(udp_listen__is_to_one_group_of_a_neighbour),
        TEST(udp_listen__is_to_groups_of_several_neighbours),
        TEST(udp_listen__has_a_limit),
        TEST(udp_misses_group__when_most_come_by_unicast),
        TEST(udp_misses_group__tells_neighbours_apart),
        TEST(udp_misses_group__counts_only_what_could_come_by_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
