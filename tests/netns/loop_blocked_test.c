/*
 * A socket without room: the loop sleeps until there is some, or until a deadline of a node. The
 * clock goes on, and nothing depends on how fast.
 */
#define _GNU_SOURCE
#include "full_socket.h"
#include "host.h"
#include "support.h"

#include <poll.h>

#include "net/station/loop.h"
#include "net/udp/udp.h"

enum {
    OURS = 1,
    THEIRS = 2,
    MTU = 1000,
    PKTS = 128,
    BYTES = 64 * MTU,
    TURNS = 100,
};

#define COOKIE    UINT64_C(0x1122334455660000)
#define LINK_BPS  UINT64_C(1000000000000) /* a packet takes nanoseconds */
#define FLOW_BPS  UINT64_C(1000000000)
#define FLOW_BRTT (10 * GW_S) /* so the flow's deadlines are far away */

static uint32_t polls, awaiting_room, impatient;

/* Stands before the C library's function of that name: takes note of what would be waited for. */
int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    (void)fds, (void)mask;
    polls++;
    impatient += timeout && timeout->tv_sec == 0 && timeout->tv_nsec == 0;
    awaiting_room += count == 2; /* the socket that receives, and that without room */
    return 0;
}

static void loop__sleeps_while_the_socket_has_no_room(void **state)
{
    (void)state;
    static unsigned char data[BYTES];
    struct gw_test_host host;
    struct gw_datapath *udp;
    struct gw_datapath_peer peer = {.entropies = 1, .tx_cookie = COOKIE, .rx_cookie = COOKIE};
    char error[GW_NET_ERROR_MAX];
    uint32_t flow;
    struct gw_endpoint_cfg cfg = gw_test_host_cfg(OURS, MTU);
    gw_test_full_socket(1);
    gw_test_host_open(&host, &cfg, PKTS);
    struct gw_datapath_cfg udp_cfg = {
        .pool = &host.pool, .address = "127.0.0.1", .entropies = 1, .mtu = MTU, .peers_max = 1};
    assert_int_equal(gw_datapath_open(&gw_datapath_udp, &udp_cfg, &udp, error), 0);
    peer.addr = *gw_datapath_address(udp);
    gw_datapath_set_peer(udp, &peer);
    struct gw_loop *loop =
        gw_loop_open(&(struct gw_loop_cfg){.datapath = udp, .pool = &host.pool, .peers_max = 1});
    assert_non_null(loop);
    gw_loop_add(loop, gw_endpoint_node(host.endpoint));
    gw_loop_link(loop, (struct gw_loop_port){0, 0}, (uint16_t)COOKIE, true);
    gw_loop_set_rate(loop, (struct gw_loop_port){0, 0}, LINK_BPS);

    struct gw_transport transport = gw_test_transport("smartt", "reps", "timeout");
    struct gw_send send = {.peer = THEIRS,
                           .bytes = BYTES,
                           .data = data,
                           .transport = &transport,
                           .path = gw_test_path(&cfg, FLOW_BPS, FLOW_BRTT)};
    assert_int_equal(gw_endpoint_send(host.endpoint, &send, &flow, gw_loop_now(loop)), 0);
    for (uint32_t i = 0; i < TURNS; i++)
        assert_int_equal(gw_loop_turn(loop, GW_TIME_NEVER, error), 0);
    assert_in_range(polls, TURNS / 2, TURNS);
    assert_int_equal(awaiting_room, polls);
    assert_int_equal(impatient, 0);

    gw_endpoint_forget(host.endpoint, data, sizeof(data));
    gw_loop_close(loop);
    struct gw_pkt *pkt;
    while (gw_node_output(gw_endpoint_node(host.endpoint), 0, &pkt, 1, 0) & ~GW_OUTPUT_MORE)
        gw_pkt_release(&host.pool, pkt);
    gw_test_host_close(&host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loop__sleeps_while_the_socket_has_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
