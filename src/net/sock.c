/* Opening, addressing and control messages of UDP sockets; see sock.h. */
#include "net/sock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

enum {
    /* Attempts to find a free row of ports: a clash with another program is rare, 32 are not. */
    ROW_ATTEMPTS = 32,
};

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

void gw_sock_format(const struct gw_sock_addr *addr, char *text, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (is_v6(addr))
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)&addr->storage)->sin6_addr, host,
                  sizeof(host));
    else
        inet_ntop(AF_INET, &((const struct sockaddr_in *)&addr->storage)->sin_addr, host,
                  sizeof(host));
    snprintf(text, size, is_v6(addr) ? "[%s]:%u" : "%s:%u", host, gw_sock_port(addr));
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
        failed |= set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
    } else {
        failed |= set_option(fd, IPPROTO_IP, IP_RECVTOS, 1);
        failed |= set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
    }
    if (buffer_bytes) {
        /* The system caps both at its own limit; a smaller buffer is no error. */
        failed |= set_option(fd, SOL_SOCKET, SO_RCVBUF, (int)buffer_bytes);
        failed |= set_option(fd, SOL_SOCKET, SO_SNDBUF, (int)buffer_bytes);
    }
    return failed;
}

/* A bound socket, or -1 with errno set. */
static int open_one(struct gw_sock_addr *addr, uint32_t buffer_bytes)
{
    int fd = socket(addr->storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    addr->length = is_v6(addr) ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (set_options(fd, addr, buffer_bytes) != 0 ||
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

void gw_sock_close_row(int *fds, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        close(fds[i]);
}

size_t gw_sock_write_tos(const struct gw_sock_addr *to, uint8_t tos, void *control)
{
    struct msghdr msg = {.msg_control = control, .msg_controllen = CMSG_SPACE(sizeof(int))};
    int value = tos;
    memset(control, 0, CMSG_SPACE(sizeof(int)));
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
    cmsg->cmsg_level = is_v6(to) ? IPPROTO_IPV6 : IPPROTO_IP;
    cmsg->cmsg_type = is_v6(to) ? IPV6_TCLASS : IP_TOS;
    cmsg->cmsg_len = CMSG_LEN(sizeof(value));
    memcpy(CMSG_DATA(cmsg), &value, sizeof(value));
    return CMSG_SPACE(sizeof(value));
}

void gw_sock_read_control(struct msghdr *msg, uint8_t *tos, uint32_t *kernel_drops)
{
    for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
        if (cmsg->cmsg_level == IPPROTO_IP && cmsg->cmsg_type == IP_TOS) {
            memcpy(tos, CMSG_DATA(cmsg), sizeof(*tos));
        } else if (cmsg->cmsg_level == IPPROTO_IPV6 && cmsg->cmsg_type == IPV6_TCLASS) {
            int value;
            memcpy(&value, CMSG_DATA(cmsg), sizeof(value));
            *tos = (uint8_t)value;
        } else if (cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SO_RXQ_OVFL) {
            memcpy(kernel_drops, CMSG_DATA(cmsg), sizeof(*kernel_drops));
        }
    }
}
