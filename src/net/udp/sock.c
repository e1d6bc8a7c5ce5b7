/* Opening, addressing and control messages of UDP sockets; see sock.h. */
#define _GNU_SOURCE /* struct in6_pktinfo */
#include "net/udp/sock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

enum {
    /* Attempts to find a free row of ports: a clash with another program is rare, 32 are not. */
    ROW_ATTEMPTS = 32,
    OPTION_TYPE = 0x9e, /* for experiments; copied, of control */
    OPTION_SHIFT = 2,   /* as in the TOS byte */
};

static int set_option(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof(value));
}

/* PROBE forbids fragments, as DO does, but does not believe ICMP about the path: anybody could say
 * that it is too narrow for our packets, and be believed for ten minutes. */
static int set_options(int fd, const struct gw_sock_addr *addr, uint32_t buffer_bytes)
{
    int failed = set_option(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
    if (gw_sock_addr_is_v6(addr)) {
        failed |= set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
        failed |= set_option(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
        set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0); /* not every system knows it */
        failed |= set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    } else {
        failed |= set_option(fd, IPPROTO_IP, IP_RECVTOS, 1);
        failed |= set_option(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0); /* only groups that it joins */
        failed |= set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    }
    if (buffer_bytes) {
        /* The system caps both at its own limit, unless we may go beyond; less is no error. */
        if (set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, (int)buffer_bytes) != 0)
            failed |= set_option(fd, SOL_SOCKET, SO_RCVBUF, (int)buffer_bytes);
        if (set_option(fd, SOL_SOCKET, SO_SNDBUFFORCE, (int)buffer_bytes) != 0)
            failed |= set_option(fd, SOL_SOCKET, SO_SNDBUF, (int)buffer_bytes);
    }
    return failed;
}

static int join_group(int fd, const struct gw_sock_addr *addr)
{
    struct group_req request = {.gr_interface = (uint32_t)addr->interface};
    memcpy(&request.gr_group, &addr->storage, addr->length);
    return setsockopt(fd, gw_sock_addr_is_v6(addr) ? IPPROTO_IPV6 : IPPROTO_IP, MCAST_JOIN_GROUP,
                      &request, sizeof(request));
}

/* A bound socket, or -1 with errno set. */
static int open_one(struct gw_sock_addr *addr, uint32_t buffer_bytes)
{
    int fd = socket(addr->storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    addr->length =
        gw_sock_addr_is_v6(addr) ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (set_options(fd, addr, buffer_bytes) != 0 ||
        (gw_sock_addr_is_multicast(addr) &&
         (set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1) != 0 || join_group(fd, addr) != 0)) ||
        bind(fd, (const struct sockaddr *)&addr->storage, addr->length) != 0 ||
        getsockname(fd, (struct sockaddr *)&addr->storage, &addr->length) != 0) {
        int reason = errno;
        close(fd);
        errno = reason;
        return -1;
    }
    return fd;
}

/* One attempt; on failure errno is set, nothing is open, and *at is the address that failed. */
static int open_row(struct gw_sock_addr *addr, uint32_t count, uint32_t buffer_bytes, int *fds,
                    struct gw_sock_addr *at)
{
    for (uint32_t i = 0; i < count; i++) {
        *at = *addr;
        if (i > 0)
            gw_sock_addr_set_port(at, (uint16_t)(gw_sock_addr_port(addr) + i));
        bool wrapped = i > 0 && gw_sock_addr_port(at) < gw_sock_addr_port(addr);
        if (wrapped)
            errno = EADDRINUSE;
        fds[i] = wrapped ? -1 : open_one(at, buffer_bytes);
        if (fds[i] < 0) {
            int reason = errno;
            gw_sock_close_row(fds, i);
            errno = reason;
            return -1;
        }
        if (i == 0)
            *addr = *at;
    }
    return 0;
}

int gw_sock_open_row(struct gw_sock_addr *addr, uint32_t count, uint32_t buffer_bytes, int *fds,
                     char *error)
{
    struct gw_sock_addr at = *addr;
    uint32_t attempts = gw_sock_addr_port(addr) == 0 ? ROW_ATTEMPTS : 1;
    for (uint32_t i = 0; i < attempts; i++) {
        struct gw_sock_addr first = *addr;
        if (open_row(&first, count, buffer_bytes, fds, &at) == 0) {
            *addr = first;
            return GW_OK;
        }
        if (errno != EADDRINUSE)
            break;
    }
    char name[64];
    int reason = errno;
    gw_sock_addr_format(&at, name, sizeof(name));
    snprintf(error, GW_NET_ERROR_MAX, "cannot open UDP socket %s: %s", name, strerror(reason));
    return GW_ERR_SYSTEM;
}

int gw_sock_open_group(const struct gw_sock_addr *addr, uint32_t buffer_bytes)
{
    struct gw_sock_addr at = *addr;
    int fd = open_one(&at, buffer_bytes);
    if (fd >= 0)
        gw_sock_join_trains(fd);
    return fd;
}

void gw_sock_close_row(int *fds, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        close(fds[i]);
}

uint32_t gw_sock_receive_room(int fd)
{
    int bytes = 0;
    socklen_t size = sizeof(bytes);
    getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &size);
    return (uint32_t)bytes;
}

bool gw_sock_join_trains(int fd)
{
    return set_option(fd, IPPROTO_UDP, UDP_GRO, 1) == 0 &&
           set_option(fd, IPPROTO_UDP, UDP_SEGMENT, 0) == 0;
}

/* Appends a control message. */
static void put(struct msghdr *msg, struct cmsghdr **at, int level, int type, const void *value,
                size_t size)
{
    *at = *at ? CMSG_NXTHDR(msg, *at) : CMSG_FIRSTHDR(msg);
    (*at)->cmsg_level = level;
    (*at)->cmsg_type = type;
    (*at)->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(*at), value, size);
}

/* The interface that a multicast leaves by, and its source. */
static size_t put_way(struct msghdr *msg, struct cmsghdr **at, const struct gw_sock_addr *to)
{
    struct in_pktinfo v4 = {.ipi_ifindex = to->interface};
    struct in6_pktinfo v6 = {.ipi6_ifindex = (uint32_t)to->interface};
    memcpy(&v4.ipi_spec_dst, gw_sock_addr_mapped(to->source), sizeof(v4.ipi_spec_dst));
    memcpy(&v6.ipi6_addr, to->source, sizeof(v6.ipi6_addr));
    if (gw_sock_addr_is_v6(to))
        put(msg, at, IPPROTO_IPV6, IPV6_PKTINFO, &v6, sizeof(v6));
    else
        put(msg, at, IPPROTO_IP, IP_PKTINFO, &v4, sizeof(v4));
    return gw_sock_addr_is_v6(to) ? CMSG_SPACE(sizeof(v6)) : CMSG_SPACE(sizeof(v4));
}

static void write_option(uint8_t value, uint8_t bytes[GW_SOCK_OPTION_SIZE])
{
    bytes[0] = OPTION_TYPE;
    bytes[1] = GW_SOCK_OPTION_SIZE;
    bytes[2] = (uint8_t)(value << OPTION_SHIFT);
    bytes[3] = 0;
}

/* The signal among the options of a header; 0: there is none. */
static uint8_t read_option(const uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at + 1 < size && bytes[at] != IPOPT_EOL;) {
        size_t length = bytes[at] == IPOPT_NOP ? 1 : bytes[at + 1];
        if (length == 0 || at + length > size)
            return 0;
        if (bytes[at] == OPTION_TYPE && length == GW_SOCK_OPTION_SIZE)
            return bytes[at + 2] >> OPTION_SHIFT;
        at += length;
    }
    return 0;
}

bool gw_sock_take_options(int fd)
{
    uint8_t bytes[GW_SOCK_OPTION_SIZE];
    write_option(1, bytes);
    bool may_send = setsockopt(fd, IPPROTO_IP, IP_OPTIONS, bytes, sizeof(bytes)) == 0 &&
                    setsockopt(fd, IPPROTO_IP, IP_OPTIONS, NULL, 0) == 0;
    return may_send && set_option(fd, IPPROTO_IP, IP_RECVOPTS, 1) == 0;
}

size_t gw_sock_write_control(const struct gw_sock_addr *to, const struct gw_sock_beside *beside,
                             void *control)
{
    struct msghdr msg = {.msg_control = control, .msg_controllen = GW_SOCK_CONTROL_SIZE};
    struct cmsghdr *at = NULL;
    uint8_t option[GW_SOCK_OPTION_SIZE];
    int value = beside->tos;
    memset(control, 0, GW_SOCK_CONTROL_SIZE);
    put(&msg, &at, gw_sock_addr_is_v6(to) ? IPPROTO_IPV6 : IPPROTO_IP,
        gw_sock_addr_is_v6(to) ? IPV6_TCLASS : IP_TOS, &value, sizeof(value));
    size_t length = CMSG_SPACE(sizeof(value));
    if (beside->segment) {
        put(&msg, &at, IPPROTO_UDP, UDP_SEGMENT, &beside->segment, sizeof(beside->segment));
        length += CMSG_SPACE(sizeof(beside->segment));
    }
    if (beside->option) {
        write_option(beside->option, option);
        put(&msg, &at, IPPROTO_IP, IP_RETOPTS, option, sizeof(option));
        length += CMSG_SPACE(sizeof(option));
    }
    if (to->interface)
        length += put_way(&msg, &at, to);
    return length;
}

static int read_int(const struct cmsghdr *cmsg)
{
    int value;
    memcpy(&value, CMSG_DATA(cmsg), sizeof(value));
    return value;
}

void gw_sock_read_control(struct msghdr *msg, struct gw_sock_news *news)
{
    for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
        if (cmsg->cmsg_level == IPPROTO_IP && cmsg->cmsg_type == IP_TOS)
            memcpy(&news->tos, CMSG_DATA(cmsg), sizeof(news->tos));
        else if (cmsg->cmsg_level == IPPROTO_IP && cmsg->cmsg_type == IP_RECVOPTS)
            news->option = read_option(CMSG_DATA(cmsg), cmsg->cmsg_len - CMSG_LEN(0));
        else if (cmsg->cmsg_level == IPPROTO_IPV6 && cmsg->cmsg_type == IPV6_TCLASS)
            news->tos = (uint8_t)read_int(cmsg);
        else if (cmsg->cmsg_level == IPPROTO_UDP && cmsg->cmsg_type == UDP_GRO)
            news->segment = (uint16_t)read_int(cmsg);
        else if (cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SO_RXQ_OVFL)
            news->kernel_drops = (uint32_t)read_int(cmsg);
    }
}
