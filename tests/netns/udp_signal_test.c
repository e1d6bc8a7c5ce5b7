/*
 * The TOS byte on the wire: signals of bursts, in both encodings, and the class and worth of
 * packets: what another socket sees in the IP header, and what the datapath at the other end makes
 * of it. Two datapaths on loopback, in a network namespace
 * of the test's own, where it may send and read raw packets.
 */
#define _GNU_SOURCE /* unshare() */
#include "host.h"
#include "support.h"

#include <arpa/inet.h>
#include <linux/capability.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "core/codec.h"
#include "net/udp/udp.h"

enum {
    MTU = 1000,
    PKTS = 512,
    LOOKS = 100,
    FRAME_MAX = 65536,
    TRAIN = 8,
    UNITS = 7,
    CLASS = 2,
    OPTION_AT = 20, /* of the IP header without options */
};

#define COOKIE_A UINT64_C(0x1122334455660000)
#define COOKIE_B UINT64_C(0x6655443322110000)

struct fixture {
    struct gw_test_host host; /* its pool is for both */
    struct gw_datapath *a, *b;
    int wire; /* a packet socket */
    char error[GW_NET_ERROR_MAX];
};

static int open_one(struct fixture *f, const char *address, bool by_option,
                    struct gw_datapath **datapath)
{
    struct gw_datapath_cfg cfg = {
        .pool = &f->host.pool,
        .address = address,
        .entropies = 1,
        .mtu = MTU,
        .peers_max = 1,
        .has_trains = true,
        .signals_by_option = by_option,
    };
    return gw_datapath_open(&gw_datapath_udp, &cfg, datapath, f->error);
}

static void open_both(struct fixture *f, bool a_by_option, bool b_by_option)
{
    assert_int_equal(open_one(f, "127.0.0.1", a_by_option, &f->a), 0);
    assert_int_equal(open_one(f, "127.0.0.1", b_by_option, &f->b), 0);
    struct gw_datapath_peer b = {.addr = *gw_datapath_address(f->b),
                                 .entropies = 1,
                                 .tx_cookie = COOKIE_B,
                                 .rx_cookie = COOKIE_A};
    struct gw_datapath_peer a = {.addr = *gw_datapath_address(f->a),
                                 .entropies = 1,
                                 .tx_cookie = COOKIE_A,
                                 .rx_cookie = COOKIE_B};
    gw_datapath_set_peer(f->a, &b);
    gw_datapath_set_peer(f->b, &a);
}

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    struct gw_endpoint_cfg cfg = gw_test_host_cfg(1, MTU);
    gw_test_host_open(&f->host, &cfg, PKTS);
    f->wire = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK, htons(ETH_P_IP));
    assert_true(f->wire >= 0);
    *state = f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    close(f->wire);
    if (f->a)
        gw_datapath_close(f->a);
    if (f->b)
        gw_datapath_close(f->b);
    gw_test_host_close(&f->host);
    free(f);
    return 0;
}

static struct gw_pkt *notice(struct fixture *f, bool is_answer)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->host.pool);
    *pkt = (struct gw_pkt){.q = {.kind = GW_PKT_NOTICE,
                                 .class = is_answer ? GW_CLASS_CONTROL : CLASS,
                                 .ecn = GW_ECN_ECT0},
                           .src = 1,
                           .dst = 2,
                           .flow = 3,
                           .buf = GW_BUF_NONE};
    pkt->notice.job = 77;
    pkt->notice.units = UNITS;
    pkt->notice.is_answer = is_answer;
    return pkt;
}

static struct gw_pkt *data(struct fixture *f, uint32_t seq, bool is_head)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->host.pool);
    *pkt = (struct gw_pkt){.q = {.kind = GW_PKT_DATA,
                                 .class = CLASS,
                                 .ecn = GW_ECN_ECT0,
                                 .flags = is_head ? GW_PKT_HEAD : 0},
                           .src = 1,
                           .dst = 2,
                           .flow = 3,
                           .seq = seq,
                           .buf = gw_buf_claim(&f->host.bufs)};
    pkt->data.total = TRAIN + 1;
    pkt->data.len = pkt->data.mss = MTU;
    memset(gw_buf_bytes(&f->host.bufs, pkt->buf), 5, MTU);
    return pkt;
}

static void pass(struct fixture *f, struct gw_pkt **pkts, uint32_t count)
{
    assert_int_equal(gw_datapath_send(f->a, 0, pkts, count, f->error), 0);
    assert_true(gw_datapath_can_send(f->a));
}

/* What b receives next, all of it; returns how many packets there are. */
static uint32_t receive(struct fixture *f, struct gw_pkt **pkts)
{
    struct gw_datapath_train train;
    uint32_t count = 0;
    for (int i = 0; i < LOOKS; i++)
        if (gw_datapath_receive(f->b, 0, &train, f->error) > 0) {
            memcpy(pkts + count, train.pkts, train.count * sizeof(struct gw_pkt *));
            count += train.count;
        }
    return count;
}

/* The next IP header that went over the loopback to b, options included. */
static uint8_t *see(struct fixture *f, uint8_t *frame)
{
    struct sockaddr_ll from;
    socklen_t length;
    do { /* each packet passes twice: out, and in */
        length = sizeof(from);
        assert_true(recvfrom(f->wire, frame, FRAME_MAX, 0, (struct sockaddr *)&from, &length) > 0);
    } while (from.sll_pkttype == PACKET_OUTGOING);
    return frame;
}

static void udp_signals__travel_as_an_option(void **state)
{
    struct fixture *f = *state;
    static uint8_t frame[FRAME_MAX];
    struct gw_pkt *pkts[TRAIN + 1], *arrived[GW_DATAPATH_TRAIN_MAX];
    open_both(f, true, true);
    pkts[0] = notice(f, false);
    pass(f, pkts, 1);
    assert_int_equal(see(f, frame)[0], 0x46); /* 24 bytes of header */
    assert_memory_equal(frame + OPTION_AT, ((uint8_t[]){0x9e, 4, 2 << 6 | UNITS << 2, 0}), 4);
    assert_int_equal(frame[1], CLASS << 2 | GW_ECN_ECT0); /* the class alone */
    assert_int_equal(receive(f, arrived), 1);
    assert_int_equal(arrived[0]->q.kind, GW_PKT_NOTICE);
    assert_int_equal(arrived[0]->notice.units, UNITS);
    assert_int_equal(arrived[0]->q.class, CLASS);
    gw_pkt_release(&f->host.pool, arrived[0]);

    pkts[0] = notice(f, true);
    pass(f, pkts, 1);
    assert_int_equal(see(f, frame)[OPTION_AT + 2], 1 << 6 | UNITS << 2);
    assert_int_equal(frame[1], GW_CLASS_CONTROL << 2 | GW_ECN_ECT0);
    assert_int_equal(receive(f, arrived), 1);
    assert_true(arrived[0]->notice.is_answer && arrived[0]->notice.units == UNITS);
    gw_pkt_release(&f->host.pool, arrived[0]);

    for (uint32_t i = 0; i <= TRAIN; i++)
        pkts[i] = data(f, i, i == 0);
    pass(f, pkts, TRAIN + 1);
    assert_int_equal(see(f, frame)[0], 0x46); /* the head pays, */
    assert_int_equal(frame[OPTION_AT + 2], 3 << 6 | CLASS << 2);
    assert_int_equal(see(f, frame)[0], 0x45); /* and what follows is a train as ever */
    assert_int_equal(frame[2] << 8 | frame[3], 28 + TRAIN * (GW_WIRE_DATA_SIZE + MTU));
    assert_int_equal(receive(f, arrived), TRAIN + 1);
    for (uint32_t i = 0; i <= TRAIN; i++) {
        assert_int_equal(arrived[i]->seq, i);
        assert_int_equal(arrived[i]->q.class, CLASS);
        assert_int_equal(arrived[i]->q.flags & GW_PKT_HEAD, i == 0 ? GW_PKT_HEAD : 0);
        gw_pkt_release(&f->host.pool, arrived[i]);
    }
}

/* One that sends options understands the DSCP, too; one that does not, reads no options: then what
 * it takes is a packet without a signal. */
static void udp_signals__of_the_other_kind(void **state)
{
    struct fixture *f = *state;
    static uint8_t frame[FRAME_MAX];
    struct gw_pkt *pkt, *arrived[GW_DATAPATH_TRAIN_MAX];
    open_both(f, false, true);
    pkt = notice(f, false);
    pass(f, &pkt, 1);
    assert_int_equal(see(f, frame)[0], 0x45);
    assert_int_equal(frame[1], 2 << 6 | UNITS << 2 | GW_ECN_ECT0);
    assert_int_equal(receive(f, arrived), 1);
    assert_int_equal(arrived[0]->notice.units, UNITS);
    gw_pkt_release(&f->host.pool, arrived[0]);
    gw_datapath_close(f->a);
    gw_datapath_close(f->b);
    open_both(f, true, false);
    pkt = data(f, 0, true);
    pass(f, &pkt, 1);
    assert_int_equal(receive(f, arrived), 1);
    assert_int_equal(arrived[0]->q.class, CLASS);
    assert_false(arrived[0]->q.flags & GW_PKT_HEAD);
    gw_pkt_release(&f->host.pool, arrived[0]);
}

/* A data packet or a gradient, of a full MTU. */
static struct gw_pkt *packet_of(struct fixture *f, enum gw_pkt_kind kind, uint32_t class,
                                enum gw_ecn ecn)
{
    struct gw_pkt *pkt = data(f, 0, false);
    pkt->q.kind = kind & 15;
    pkt->q.class = class & 7;
    pkt->q.ecn = ecn & 3;
    if (kind == GW_PKT_GRAD) {
        pkt->sent_at = 0;
        pkt->data.total = pkt->data.tag = 0;
        pkt->agg.bitmap = 1;
        pkt->agg.values = MTU / 4;
        pkt->agg.level = 0;
    }
    return pkt;
}

/* The DSCP is the number of the class, whatever is sent; a codepoint is not changed either. */
static void udp_class__travels_as_the_dscp(void **state)
{
    static const enum gw_pkt_kind kinds[] = {GW_PKT_DATA, GW_PKT_GRAD};
    struct fixture *f = *state;
    static uint8_t frame[FRAME_MAX];
    open_both(f, false, false);
    for (uint32_t i = 0; i < GW_COUNT_OF(kinds) * GW_CLASSES * 4; i++) {
        enum gw_pkt_kind kind = kinds[i / (GW_CLASSES * 4)];
        uint32_t class = i / 4 % GW_CLASSES;
        struct gw_pkt *pkt = packet_of(f, kind, class, i % 4), *arrived[GW_DATAPATH_TRAIN_MAX];
        pass(f, &pkt, 1);
        assert_int_equal(see(f, frame)[1], class << 2 | i % 4);
        assert_int_equal(receive(f, arrived), 1);
        assert_int_equal(arrived[0]->q.kind, kind);
        assert_int_equal(arrived[0]->q.class, class);
        assert_int_equal(arrived[0]->q.ecn, i % 4);
        gw_pkt_release(&f->host.pool, arrived[0]);
    }
}

static void set_raw(bool may)
{
    struct __user_cap_header_struct hdr = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2];
    assert_int_equal(syscall(SYS_capget, &hdr, caps), 0);
    if (may)
        caps[0].effective |= 1u << CAP_NET_RAW;
    else
        caps[0].effective &= ~(1u << CAP_NET_RAW);
    assert_int_equal(syscall(SYS_capset, &hdr, caps), 0);
}

static void udp_open__refuses_options_that_cannot_be(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(open_one(f, "::1", true, &f->a), GW_ERR_INVALID);
    assert_string_equal(f->error, "signals cannot be IPv4 options at ::1, an address of IPv6");
    set_raw(false);
    assert_int_equal(open_one(f, "127.0.0.1", true, &f->a), GW_ERR_SYSTEM);
    assert_string_equal(f->error, "signals as IPv4 options need the capability CAP_NET_RAW");
    assert_int_equal(open_one(f, "127.0.0.1", false, &f->a), 0); /* nothing else needs it */
    set_raw(true);
}

/* A namespace of our own, with its loopback up. */
static void enter_namespace(void)
{
    int root = geteuid() == 0 ? 0 : CLONE_NEWUSER;
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    assert_int_equal(unshare(CLONE_NEWNET | root), 0);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &request), 0);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(udp_signals__travel_as_an_option, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(udp_signals__of_the_other_kind, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(udp_class__travels_as_the_dscp, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(udp_open__refuses_options_that_cannot_be, open_fixture,
                                        close_fixture),
    };
    enter_namespace();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
