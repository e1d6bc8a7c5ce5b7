/* Trials on the loopback interface; see probe.h. */
#include "net/udp/probe.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "net/udp/sock.h"

enum {
    DATAGRAM = 1000,
    DATAGRAMS = 4,
    WAIT_MS = 1000,
    TOS = 3 << 2 | 2, /* class 3, ECT(0) */
};

/* Sends a train from one socket to the other. */
static bool send_train(int fd, const struct gw_sock_addr *to)
{
    static uint8_t bytes[DATAGRAM * DATAGRAMS];
    char control[GW_SOCK_CONTROL_SIZE];
    const struct gw_sock_beside beside = {.tos = TOS, .segment = DATAGRAM};
    struct iovec iov = {bytes, sizeof(bytes)};
    struct msghdr msg = {
        .msg_name = (void *)&to->storage,
        .msg_namelen = to->length,
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = gw_sock_write_control(to, &beside, control),
    };
    return sendmsg(fd, &msg, 0) == (ssize_t)sizeof(bytes);
}

/* Bytes of the first thing that arrives, 0 when nothing does. */
static uint32_t receive(int fd, struct gw_sock_news *news)
{
    static uint8_t bytes[2 * DATAGRAM * DATAGRAMS];
    char control[GW_SOCK_CONTROL_SIZE];
    struct iovec iov = {bytes, sizeof(bytes)};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control,
                         .msg_controllen = sizeof(control)};
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    if (poll(&poller, 1, WAIT_MS) != 1)
        return 0;
    ssize_t got = recvmsg(fd, &msg, 0);
    gw_sock_read_control(&msg, news);
    return got > 0 ? (uint32_t)got : 0;
}

void gw_probe_run(const char *address, uint32_t wanted, struct gw_probe *probe)
{
    struct gw_sock_addr from, to;
    struct gw_sock_news news = {0};
    char error[GW_NET_ERROR_MAX];
    int fds[2] = {-1, -1};
    *probe = (struct gw_probe){0};
    if (gw_sock_addr_parse(address, 0, &from) != 0 || gw_sock_addr_parse(address, 0, &to) != 0)
        return;
    if (gw_sock_open_row(&from, 1, 0, &fds[0], error) != 0)
        return;
    if (gw_sock_open_row(&to, 1, wanted, &fds[1], error) == 0) {
        probe->has_sockets = true;
        probe->receive_room = gw_sock_receive_room(fds[1]);
        bool joins = gw_sock_join_trains(fds[1]);
        probe->cuts_trains = send_train(fds[0], &to);
        uint32_t size = probe->cuts_trains ? receive(fds[1], &news) : 0;
        probe->joins_trains = joins && size == DATAGRAM * DATAGRAMS && news.segment == DATAGRAM;
        probe->keeps_tos = size > 0 && news.tos == TOS;
        gw_sock_close_row(&fds[1], 1);
    }
    gw_sock_close_row(&fds[0], 1);
}
