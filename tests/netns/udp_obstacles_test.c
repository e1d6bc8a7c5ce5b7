/*
 * What stands in the way of datagrams, by ill will or by accident: a stranger in another subnet who
 * says that they are too long for the path (RFC 1191 and RFC 8201 have no way to tell whether that
 * is true), a link that they are really too long for, and a way out that cannot cut trains. None of
 * them ends a process, and none lasts longer than its cause or reaches further than one neighbour.
 *
 * Three namespaces, each with a link to ours: the neighbour's, another neighbour's, the stranger's.
 */
#define _GNU_SOURCE /* unshare(), setns() */
#include "host.h"
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "net/udp/sock.h"
#include "net/udp/udp.h"

enum {
    NEIGHBOUR,
    OTHER,
    STRANGER,
    PLACES,
    TRAIN = 8,
    MTU = 1400,
    SHORT = 900, /* what the neighbour's link takes is between the two */
    PKTS = 128,
    PORT = 4791, /* of both neighbours */
    GUARD_MS = 10000,
    LOOKS_MAX = 1000000,
    TRAINS_MAX = 100000, /* of which one is cut again */
    COMMAND_MAX = 256,
    CLAIM_MAX = 128,
};

#define COOKIE UINT64_C(0x1122334455660000)

/* A neighbour whose trains the kernel is made to refuse; a port, 0: none. */
static uint16_t uncut_port;

/* Stands before the C library's function of that name: no way out here cannot cut trains. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at;
         at = CMSG_NXTHDR((struct msghdr *)message, at)) {
        struct gw_sock_addr to = {.length = message->msg_namelen};
        memcpy(&to.storage, message->msg_name, message->msg_namelen);
        if (at->cmsg_level != IPPROTO_UDP || gw_sock_addr_port(&to) != uncut_port)
            continue;
        errno = EIO;
        return -1;
    }
    return syscall(SYS_sendmsg, fd, message, flags);
}

struct fixture {
    struct gw_test_host host;
    struct gw_datapath *udp;
    int neighbours[OTHER + 1]; /* their sockets */
    char error[GW_NET_ERROR_MAX];
};

static int ours, places[PLACES]; /* namespaces */

static int open_namespace(void)
{
    int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void enter(int namespace)
{
    assert_int_equal(setns(namespace, CLONE_NEWNET), 0);
}

static void __attribute__((format(printf, 1, 2))) run(const char *format, ...)
{
    char command[COMMAND_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    if (system(command) != 0)
        fail_msg("%s", command);
}

/* The address of a place, or ours on the link to it. */
static const char *address_of(int place, bool v6, bool is_ours)
{
    static char text[2][32];
    snprintf(text[is_ours], sizeof(text[0]), v6 ? "fd00:0:0:%d::%d" : "10.9.%d.%d", place + 1,
             is_ours ? 1 : 2);
    return text[is_ours];
}

static void set_address(int place, bool is_ours)
{
    char link[16];
    snprintf(link, sizeof(link), is_ours ? "to%d" : "veth", place);
    run("ip address add %s/24 dev %s", address_of(place, false, is_ours), link);
    run("ip address add %s/64 dev %s nodad", address_of(place, true, is_ours), link);
    run("ip link set %s up", link);
}

/* Ours, and the others with a link to it each. */
static int open_network(void **state)
{
    (void)state;
    assert_int_equal(unshare(CLONE_NEWNET | (geteuid() == 0 ? 0 : CLONE_NEWUSER)), 0);
    ours = open_namespace();
    for (int i = 0; i < PLACES; i++) {
        assert_int_equal(unshare(CLONE_NEWNET), 0);
        places[i] = open_namespace();
        run("ip link add name veth type veth peer name to%d netns /proc/%d/fd/%d", i, (int)getpid(),
            ours);
        set_address(i, false);
        enter(ours);
        set_address(i, true);
    }
    return 0;
}

static void befriend(struct fixture *f, bool v6, int place)
{
    struct gw_sock_addr addr;
    enter(places[place]);
    assert_int_equal(
        gw_sock_addr_parse(address_of(place, v6, false), (uint16_t)(PORT + place), &addr), 0);
    assert_int_equal(gw_sock_open_row(&addr, 1, 0, &f->neighbours[place], f->error), 0);
    enter(ours);
    uint64_t cookie = COOKIE + (uint64_t)place;
    gw_datapath_set_peer(
        f->udp, &(struct gw_datapath_peer){
                    .addr = addr, .entropies = 1, .tx_cookie = cookie, .rx_cookie = cookie});
}

/* A process with one job, which ends where its datapath cannot go on. */
static void open_fixture(struct fixture *f, bool v6)
{
    struct gw_endpoint_cfg cfg = gw_test_host_cfg(1, MTU);
    gw_test_host_open(&f->host, &cfg, PKTS);
    struct gw_datapath_cfg udp = {
        .pool = &f->host.pool,
        .address = v6 ? "::" : "0.0.0.0",
        .entropies = 1,
        .mtu = MTU,
        .peers_max = OTHER + 1,
        .has_trains = true,
    };
    assert_int_equal(gw_datapath_open(&gw_datapath_udp, &udp, &f->udp, f->error), 0);
    befriend(f, v6, NEIGHBOUR);
    befriend(f, v6, OTHER);
}

static void close_fixture(struct fixture *f)
{
    close(f->neighbours[NEIGHBOUR]);
    close(f->neighbours[OTHER]);
    gw_datapath_close(f->udp);
    gw_test_host_close(&f->host);
}

/* Sends a train of packets with so much payload; returns in how many pieces it left. */
static uint64_t send_train(struct fixture *f, int place, uint32_t payload)
{
    struct gw_pkt *train[TRAIN];
    const struct gw_datapath_stats *stats = gw_datapath_stats(f->udp);
    uint64_t before = stats->tx_trains;
    for (uint32_t i = 0; i < TRAIN; i++) {
        uint32_t buf = gw_buf_claim(&f->host.bufs);
        train[i] = gw_pkt_claim(&f->host.pool);
        *train[i] =
            (struct gw_pkt){.q.kind = GW_PKT_DATA, .src = 1, .dst = 2, .seq = i, .buf = buf};
        train[i]->data.total = TRAIN + 1;
        train[i]->data.len = train[i]->data.mss = (uint16_t)payload;
        memset(gw_buf_bytes(&f->host.bufs, buf), (int)i, payload);
    }
    int code =
        gw_datapath_send(f->udp, (uint16_t)(COOKIE + (uint64_t)place), train, TRAIN, f->error);
    if (code)
        fail_msg("%s", f->error);
    return stats->tx_trains - before;
}

/* Whether so many datagrams come to a neighbour, and no more. */
static void assert_arrive(const struct fixture *f, int place, uint32_t count)
{
    uint8_t bytes[2 * MTU];
    struct pollfd more = {.fd = f->neighbours[place], .events = POLLIN};
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(poll(&more, 1, GUARD_MS), 1);
        assert_true(recv(more.fd, bytes, sizeof(bytes), 0) > 0);
    }
    assert_int_equal(poll(&more, 1, 0), 0);
}

/* What the system believes of the path to the neighbour. */
static int believed_mtu(const struct gw_sock_addr *to)
{
    int mtu = 0, fd = socket(to->storage.ss_family, SOCK_DGRAM, 0);
    bool v6 = gw_sock_addr_is_v6(to);
    socklen_t size = sizeof(mtu);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to->storage, to->length), 0);
    assert_int_equal(
        getsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU : IP_MTU, &mtu, &size), 0);
    close(fd);
    return mtu;
}

static uint16_t checksum(const uint8_t *bytes, size_t size)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < size; i += 2)
        sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return htons((uint16_t)~sum);
}

/* "Fragmentation needed" about a datagram between two ends; returns its length. */
static size_t claim_v4(const struct sockaddr_in *from, const struct sockaddr_in *to, uint8_t *bytes)
{
    struct icmphdr icmp = {.type = ICMP_DEST_UNREACH, .code = ICMP_FRAG_NEEDED};
    struct iphdr ip = {.version = 4,
                       .ihl = 5,
                       .ttl = 64,
                       .protocol = IPPROTO_UDP,
                       .tot_len = htons(1450),
                       .saddr = from->sin_addr.s_addr,
                       .daddr = to->sin_addr.s_addr};
    struct udphdr udp = {.source = from->sin_port, .dest = to->sin_port, .len = htons(1430)};
    size_t size = sizeof(icmp) + sizeof(ip) + sizeof(udp);
    icmp.un.frag.mtu = htons(576);
    ip.check = checksum((uint8_t *)&ip, sizeof(ip));
    memcpy(bytes, &icmp, sizeof(icmp));
    memcpy(bytes + sizeof(icmp), &ip, sizeof(ip));
    memcpy(bytes + sizeof(icmp) + sizeof(ip), &udp, sizeof(udp));
    icmp.checksum = checksum(bytes, size);
    memcpy(bytes, &icmp, sizeof(icmp));
    return size;
}

/* "Packet too big"; the system makes its checksum. */
static size_t claim_v6(const struct sockaddr_in6 *from, const struct sockaddr_in6 *to,
                       uint8_t *bytes)
{
    struct icmp6_hdr icmp = {.icmp6_type = ICMP6_PACKET_TOO_BIG};
    struct ip6_hdr ip = {.ip6_src = from->sin6_addr, .ip6_dst = to->sin6_addr};
    struct udphdr udp = {.source = from->sin6_port, .dest = to->sin6_port, .len = htons(1430)};
    icmp.icmp6_mtu = htonl(1280);
    ip.ip6_vfc = 6 << 4;
    ip.ip6_nxt = IPPROTO_UDP;
    ip.ip6_plen = htons(1430);
    memcpy(bytes, &icmp, sizeof(icmp));
    memcpy(bytes + sizeof(icmp), &ip, sizeof(ip));
    memcpy(bytes + sizeof(icmp) + sizeof(ip), &udp, sizeof(udp));
    return sizeof(icmp) + sizeof(ip) + sizeof(udp);
}

/* The stranger, who has seen nothing but knows addresses and ports, says that the path is narrow;
 * and the system believes him. */
static void claim_narrow(const struct fixture *f, bool v6)
{
    uint8_t bytes[CLAIM_MAX];
    struct gw_sock_addr from, target;
    const struct gw_sock_addr *to = &gw_datapath_peer(f->udp, (uint16_t)COOKIE)->addr;
    uint16_t port = gw_sock_addr_port(gw_datapath_address(f->udp));
    assert_int_equal(gw_sock_addr_parse(address_of(NEIGHBOUR, v6, true), port, &from), 0);
    assert_int_equal(gw_sock_addr_parse(address_of(STRANGER, v6, true), 0, &target), 0);
    size_t size = v6 ? claim_v6((struct sockaddr_in6 *)&from.storage,
                                (const struct sockaddr_in6 *)&to->storage, bytes)
                     : claim_v4((struct sockaddr_in *)&from.storage,
                                (const struct sockaddr_in *)&to->storage, bytes);
    assert_int_equal(believed_mtu(to), 1500);
    enter(places[STRANGER]);
    int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_RAW, v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
    assert_true(fd >= 0);
    assert_int_equal(sendto(fd, bytes, size, 0, (struct sockaddr *)&target.storage, target.length),
                     size);
    close(fd);
    enter(ours);
    uint32_t looks = 0;
    while (believed_mtu(to) == 1500 && looks++ < LOOKS_MAX)
        sched_yield();
    assert_int_equal(believed_mtu(to), v6 ? 1280 : 576);
}

static void resists(bool v6)
{
    struct fixture f;
    open_fixture(&f, v6);
    assert_int_equal(send_train(&f, NEIGHBOUR, MTU), 1);
    assert_arrive(&f, NEIGHBOUR, TRAIN);
    claim_narrow(&f, v6);
    assert_int_equal(send_train(&f, NEIGHBOUR, MTU), 1);
    assert_arrive(&f, NEIGHBOUR, TRAIN);
    assert_int_equal(gw_datapath_stats(f.udp)->too_long, 0);
    close_fixture(&f);
}

static void udp_send__goes_on_whatever_strangers_say_of_the_path(void **state)
{
    (void)state;
    resists(false);
}

static void udp_send__goes_on_likewise_over_ipv6(void **state)
{
    (void)state;
    resists(true);
}

/* What the link does not take is lost; the rest, and what goes elsewhere, is not. */
static void udp_send__loses_what_is_too_long(void **state)
{
    struct fixture f;
    (void)state;
    open_fixture(&f, false);
    run("ip link set to%d mtu 1200", NEIGHBOUR);
    send_train(&f, NEIGHBOUR, MTU);
    assert_arrive(&f, NEIGHBOUR, 0);
    assert_int_equal(gw_datapath_stats(f.udp)->too_long, TRAIN);
    assert_int_equal(send_train(&f, OTHER, MTU), 1);
    assert_arrive(&f, OTHER, TRAIN);
    send_train(&f, NEIGHBOUR, SHORT);
    assert_arrive(&f, NEIGHBOUR, TRAIN);
    run("ip link set to%d mtu 1500", NEIGHBOUR);
    send_train(&f, NEIGHBOUR, MTU);
    assert_arrive(&f, NEIGHBOUR, TRAIN);
    assert_int_equal(gw_datapath_stats(f.udp)->too_long, TRAIN);
    close_fixture(&f);
}

/* Towards one neighbour trains cannot be cut for a while: they go one by one, and later whole
 * again. */
static void udp_send__cuts_trains_again(void **state)
{
    struct fixture f;
    (void)state;
    open_fixture(&f, false);
    uncut_port = PORT + NEIGHBOUR;
    assert_int_equal(send_train(&f, NEIGHBOUR, SHORT), TRAIN);
    assert_arrive(&f, NEIGHBOUR, TRAIN);
    assert_int_equal(send_train(&f, OTHER, SHORT), 1);
    assert_arrive(&f, OTHER, TRAIN);
    uncut_port = 0;
    uint32_t trains = 0;
    while (send_train(&f, NEIGHBOUR, SHORT) > 1 && trains++ < TRAINS_MAX)
        assert_arrive(&f, NEIGHBOUR, TRAIN);
    assert_in_range(trains, 1, TRAINS_MAX);
    assert_arrive(&f, NEIGHBOUR, TRAIN);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(udp_send__goes_on_whatever_strangers_say_of_the_path),
        cmocka_unit_test(udp_send__goes_on_likewise_over_ipv6),
        cmocka_unit_test(udp_send__loses_what_is_too_long),
        cmocka_unit_test(udp_send__cuts_trains_again),
    };
    return cmocka_run_group_tests(tests, open_network, NULL);
}
