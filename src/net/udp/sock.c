/* Opening, addressing and control messages of UDP sockets; see sock.h. */
#define _GNU_SOURCE /* struct in6_pktinfo */
#include "net/udp/sock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

enum {
    /* ::ffff:a.b.c.d: zeros, then ones, then the address. */
    MAPPED_ZEROS = 10,
    MAPPED_FRONT = 12,
    /* Attempts to find a free row of ports: a clash with another program is rare, 32 are not. */
    ROW_ATTEMPTS = 32,
};

int gw_net_fail(char *error, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, GW_NET_ERROR_MAX, format, args);
    va_end(args);
    return code;
}

int gw_sock_parse(const char *host, uint16_t port, struct gw_sock_addr *addr)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    memset(addr, 0, sizeof(*addr));
    if (inet_pton(AF_INET, host, &v4.sin_addr) == 1) {
        memcpy(&addr->storage, &v4, sizeof(v4));
        addr->length = sizeof(v4);
    } else if (inet_pton(AF_INET6, host, &v6.sin6_addr) == 1) {
        memcpy(&addr->storage, &v6, sizeof(v6));
        addr->length = sizeof(v6);
    } else {
        return GW_ERR_INVALID;
    }
    return GW_OK;
}

static bool is_v6(const struct gw_sock_addr *addr)
{
    return addr->storage.ss_family == AF_INET6;
}

bool gw_sock_is_same_host(const struct gw_sock_addr *a, const struct gw_sock_addr *b)
{
    if (is_v6(a) != is_v6(b))
        return false;
    if (is_v6(a))
        return memcmp(&((const struct sockaddr_in6 *)&a->storage)->sin6_addr,
                      &((const struct sockaddr_in6 *)&b->storage)->sin6_addr,
                      sizeof(struct in6_addr)) == 0;
    return ((const struct sockaddr_in *)&a->storage)->sin_addr.s_addr ==
           ((const struct sockaddr_in *)&b->storage)->sin_addr.s_addr;
}

uint16_t gw_sock_port(const struct gw_sock_addr *addr)
{
    if (is_v6(addr))
        return ntohs(((const struct sockaddr_in6 *)&addr->storage)->sin6_port);
    return ntohs(((const struct sockaddr_in *)&addr->storage)->sin_port);
}

static void set_port(struct gw_sock_addr *addr, uint16_t port)
{
    if (is_v6(addr))
        ((struct sockaddr_in6 *)&addr->storage)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)&addr->storage)->sin_port = htons(port);
}

void gw_sock_format_host(const struct gw_sock_addr *addr, char *text, size_t size)
{
    const void *host = is_v6(addr)
                           ? (const void *)&((const struct sockaddr_in6 *)&addr->storage)->sin6_addr
                           : &((const struct sockaddr_in *)&addr->storage)->sin_addr;
    snprintf(text, size, "?");
    inet_ntop(addr->storage.ss_family, host, text, (socklen_t)size);
}

void gw_sock_format(const struct gw_sock_addr *addr, char *text, size_t size)
{
    char host[INET6_ADDRSTRLEN];
    gw_sock_format_host(addr, host, sizeof(host));
    snprintf(text, size, is_v6(addr) ? "[%s]:%u" : "%s:%u", host, gw_sock_port(addr));
}

void gw_sock_pack(const struct gw_sock_addr *addr, uint8_t bytes[GW_SOCK_ADDRESS_SIZE])
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&addr->storage;
    memset(bytes, 0, GW_SOCK_ADDRESS_SIZE);
    if (is_v6(addr)) {
        memcpy(bytes, &((const struct sockaddr_in6 *)&addr->storage)->sin6_addr,
               GW_SOCK_ADDRESS_SIZE);
        return;
    }
    memset(bytes + MAPPED_ZEROS, 0xff, MAPPED_FRONT - MAPPED_ZEROS);
    memcpy(bytes + MAPPED_FRONT, &v4->sin_addr, sizeof(v4->sin_addr));
}

void gw_sock_unpack(const uint8_t bytes[GW_SOCK_ADDRESS_SIZE], uint16_t port,
                    struct gw_sock_addr *addr)
{
    struct in6_addr v6;
    memcpy(&v6, bytes, sizeof(v6));
    memset(addr, 0, sizeof(*addr));
    if (IN6_IS_ADDR_V4MAPPED(&v6)) {
        struct sockaddr_in *to = (struct sockaddr_in *)&addr->storage;
        to->sin_family = AF_INET;
        memcpy(&to->sin_addr, bytes + MAPPED_FRONT, sizeof(to->sin_addr));
        addr->length = sizeof(*to);
    } else {
        struct sockaddr_in6 *to = (struct sockaddr_in6 *)&addr->storage;
        to->sin6_family = AF_INET6;
        to->sin6_addr = v6;
        addr->length = sizeof(*to);
    }
    set_port(addr, port);
}

bool gw_sock_is_multicast(const struct gw_sock_addr *addr)
{
    if (is_v6(addr))
        return IN6_IS_ADDR_MULTICAST(&((const struct sockaddr_in6 *)&addr->storage)->sin6_addr);
    return IN_MULTICAST(ntohl(((const struct sockaddr_in *)&addr->storage)->sin_addr.s_addr));
}

void gw_sock_advance(struct gw_sock_addr *addr, uint32_t count)
{
    uint8_t bytes[GW_SOCK_ADDRESS_SIZE];
    gw_sock_pack(addr, bytes);
    for (uint32_t i = GW_SOCK_ADDRESS_SIZE; i-- > MAPPED_FRONT && count;) {
        count += bytes[i];
        bytes[i] = (uint8_t)count;
        count >>= 8;
    }
    gw_sock_unpack(bytes, gw_sock_port(addr), addr);
}

/* Makes `own`, perhaps the wildcard, the address that we have towards `to`. */
static bool find_own_address(struct gw_sock_addr *own, const struct gw_sock_addr *to)
{
    int fd = socket(to->storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    set_port(own, 0);
    bool is_known = bind(fd, (const struct sockaddr *)&own->storage, own->length) == 0 &&
                    connect(fd, (const struct sockaddr *)&to->storage, to->length) == 0 &&
                    getsockname(fd, (struct sockaddr *)&own->storage, &own->length) == 0;
    close(fd);
    return is_known;
}

/* Number of the interface that has the address, or 0. */
static int interface_of(const struct gw_sock_addr *own)
{
    struct ifaddrs *all;
    int found = 0;
    if (getifaddrs(&all) != 0)
        return 0;
    for (const struct ifaddrs *one = all; one && !found; one = one->ifa_next) {
        struct gw_sock_addr at = {.length = own->length};
        if (!one->ifa_addr || one->ifa_addr->sa_family != own->storage.ss_family)
            continue;
        memcpy(&at.storage, one->ifa_addr, own->length);
        if (gw_sock_is_same_host(&at, own))
            found = (int)if_nametoindex(one->ifa_name);
    }
    freeifaddrs(all);
    return found;
}

bool gw_sock_reach_by(struct gw_sock_addr *group, const struct gw_sock_addr *own,
                      const struct gw_sock_addr *to)
{
    struct gw_sock_addr at = *own;
    group->interface = find_own_address(&at, to) ? interface_of(&at) : 0;
    if (group->interface)
        gw_sock_pack(&at, group->source);
    if (is_v6(group)) /* the same link-local group is another one on each link */
        ((struct sockaddr_in6 *)&group->storage)->sin6_scope_id = (uint32_t)group->interface;
    return group->interface != 0;
}

static int set_option(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof(value));
}

static int set_options(int fd, const struct gw_sock_addr *addr, uint32_t buffer_bytes)
{
    int failed = set_option(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
    if (is_v6(addr)) {
        failed |= set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
        failed |= set_option(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
        set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0); /* not every system knows it */
        failed |= set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
    } else {
        failed |= set_option(fd, IPPROTO_IP, IP_RECVTOS, 1);
        failed |= set_option(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0); /* only groups that it joins */
        failed |= set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
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
    return setsockopt(fd, is_v6(addr) ? IPPROTO_IPV6 : IPPROTO_IP, MCAST_JOIN_GROUP, &request,
                      sizeof(request));
}

/* A bound socket, or -1 with errno set. */
static int open_one(struct gw_sock_addr *addr, uint32_t buffer_bytes)
{
    int fd = socket(addr->storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    addr->length = is_v6(addr) ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (set_options(fd, addr, buffer_bytes) != 0 ||
        (gw_sock_is_multicast(addr) &&
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
            set_port(at, (uint16_t)(gw_sock_port(addr) + i));
        bool wrapped = i > 0 && gw_sock_port(at) < gw_sock_port(addr);
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
    uint32_t attempts = gw_sock_port(addr) == 0 ? ROW_ATTEMPTS : 1;
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
    gw_sock_format(&at, name, sizeof(name));
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
    memcpy(&v4.ipi_spec_dst, to->source + MAPPED_FRONT, sizeof(v4.ipi_spec_dst));
    memcpy(&v6.ipi6_addr, to->source, sizeof(v6.ipi6_addr));
    if (is_v6(to))
        put(msg, at, IPPROTO_IPV6, IPV6_PKTINFO, &v6, sizeof(v6));
    else
        put(msg, at, IPPROTO_IP, IP_PKTINFO, &v4, sizeof(v4));
    return is_v6(to) ? CMSG_SPACE(sizeof(v6)) : CMSG_SPACE(sizeof(v4));
}

size_t gw_sock_write_control(const struct gw_sock_addr *to, uint8_t tos, uint16_t segment,
                             void *control)
{
    struct msghdr msg = {.msg_control = control, .msg_controllen = GW_SOCK_CONTROL_SIZE};
    struct cmsghdr *at = NULL;
    int value = tos;
    memset(control, 0, GW_SOCK_CONTROL_SIZE);
    put(&msg, &at, is_v6(to) ? IPPROTO_IPV6 : IPPROTO_IP, is_v6(to) ? IPV6_TCLASS : IP_TOS, &value,
        sizeof(value));
    size_t length = CMSG_SPACE(sizeof(value));
    if (segment) {
        put(&msg, &at, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
        length += CMSG_SPACE(sizeof(segment));
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
        else if (cmsg->cmsg_level == IPPROTO_IPV6 && cmsg->cmsg_type == IPV6_TCLASS)
            news->tos = (uint8_t)read_int(cmsg);
        else if (cmsg->cmsg_level == IPPROTO_UDP && cmsg->cmsg_type == UDP_GRO)
            news->segment = (uint16_t)read_int(cmsg);
        else if (cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SO_RXQ_OVFL)
            news->kernel_drops = (uint32_t)read_int(cmsg);
    }
}
