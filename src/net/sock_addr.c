/* Addresses of datagrams; see sock_addr.h. */
#include "net/sock_addr.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "net/net_error.h"

enum {
    HOST_MAX = 256,
    /* ::ffff:a.b.c.d: zeros, then ones, then the address. */
    MAPPED_ZEROS = 10,
    MAPPED_FRONT = 12,
};

int gw_sock_addr_parse(const char *host, uint16_t port, struct gw_sock_addr *addr)
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

static bool is_port(const char *text)
{
    return strspn(text, "0123456789") == strlen(text) && atol(text) > 0 && atol(text) < 65536;
}

/* Splits HOST:PORT; false: it is not of that form. */
static bool split(const char *name, char *host, char *port)
{
    const char *colon = strrchr(name, ':');
    if (!colon || colon == name || strlen(name) >= HOST_MAX)
        return false;
    size_t size = (size_t)(colon - name);
    bool has_brackets = name[0] == '[' && name[size - 1] == ']';
    if (!has_brackets && memchr(name, ':', size))
        return false;
    snprintf(host, HOST_MAX, "%.*s", (int)(has_brackets ? size - 2 : size),
             name + (has_brackets ? 1 : 0));
    snprintf(port, HOST_MAX, "%s", colon + 1);
    return is_port(port);
}

bool gw_sock_addr_is_name(const char *name)
{
    char host[HOST_MAX], port[HOST_MAX];
    return split(name, host, port);
}

uint32_t gw_sock_addr_row(const char *name)
{
    char first[HOST_MAX];
    const char *colon = strrchr(name, ':'), *dash = colon ? strchr(colon, '-') : NULL;
    if (!dash)
        return gw_sock_addr_is_name(name);
    snprintf(first, sizeof(first), "%.*s", (int)(dash - name), name);
    if (dash - name >= HOST_MAX || !gw_sock_addr_is_name(first) || !is_port(dash + 1))
        return 0;
    long count = atol(dash + 1) - atol(colon + 1) + 1;
    return count > 0 ? (uint32_t)count : 0;
}

void gw_sock_addr_row_at(const char *name, uint32_t number, char *text, size_t size)
{
    const char *port = strrchr(name, ':') + 1;
    snprintf(text, size, "%.*s%lu", (int)(port - name), name, atol(port) + (unsigned long)number);
}

int gw_sock_addr_resolve(const char *name, struct gw_sock_addr *addr, char *error)
{
    char host[HOST_MAX], port[HOST_MAX];
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICSERV}, *found;
    if (!split(name, host, port))
        return gw_net_fail(error, GW_ERR_INVALID, "not HOST:PORT: %s", name);
    int code = getaddrinfo(host, port, &hints, &found);
    if (code)
        return gw_net_fail(error, GW_ERR_INVALID, "cannot look up %s: %s", name,
                           gai_strerror(code));
    memset(addr, 0, sizeof(*addr));
    memcpy(&addr->storage, found->ai_addr, found->ai_addrlen);
    addr->length = found->ai_addrlen;
    freeaddrinfo(found);
    return GW_OK;
}

void gw_sock_addr_format_host(const struct gw_sock_addr *addr, char *text, size_t size)
{
    const void *host = gw_sock_addr_is_v6(addr)
                           ? (const void *)&((const struct sockaddr_in6 *)&addr->storage)->sin6_addr
                           : &((const struct sockaddr_in *)&addr->storage)->sin_addr;
    snprintf(text, size, "?");
    inet_ntop(addr->storage.ss_family, host, text, (socklen_t)size);
}

void gw_sock_addr_format(const struct gw_sock_addr *addr, char *text, size_t size)
{
    char host[INET6_ADDRSTRLEN];
    gw_sock_addr_format_host(addr, host, sizeof(host));
    snprintf(text, size, gw_sock_addr_is_v6(addr) ? "[%s]:%u" : "%s:%u", host,
             gw_sock_addr_port(addr));
}

uint16_t gw_sock_addr_port(const struct gw_sock_addr *addr)
{
    if (gw_sock_addr_is_v6(addr))
        return ntohs(((const struct sockaddr_in6 *)&addr->storage)->sin6_port);
    return ntohs(((const struct sockaddr_in *)&addr->storage)->sin_port);
}

void gw_sock_addr_set_port(struct gw_sock_addr *addr, uint16_t port)
{
    if (gw_sock_addr_is_v6(addr))
        ((struct sockaddr_in6 *)&addr->storage)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)&addr->storage)->sin_port = htons(port);
}

bool gw_sock_addr_is_v6(const struct gw_sock_addr *addr)
{
    return addr->storage.ss_family == AF_INET6;
}

bool gw_sock_addr_is_multicast(const struct gw_sock_addr *addr)
{
    if (gw_sock_addr_is_v6(addr))
        return IN6_IS_ADDR_MULTICAST(&((const struct sockaddr_in6 *)&addr->storage)->sin6_addr);
    return IN_MULTICAST(ntohl(((const struct sockaddr_in *)&addr->storage)->sin_addr.s_addr));
}

bool gw_sock_addr_is_same_host(const struct gw_sock_addr *a, const struct gw_sock_addr *b)
{
    if (gw_sock_addr_is_v6(a) != gw_sock_addr_is_v6(b))
        return false;
    if (gw_sock_addr_is_v6(a))
        return memcmp(&((const struct sockaddr_in6 *)&a->storage)->sin6_addr,
                      &((const struct sockaddr_in6 *)&b->storage)->sin6_addr,
                      sizeof(struct in6_addr)) == 0;
    return ((const struct sockaddr_in *)&a->storage)->sin_addr.s_addr ==
           ((const struct sockaddr_in *)&b->storage)->sin_addr.s_addr;
}

bool gw_sock_addr_is_same(const struct gw_sock_addr *a, const struct gw_sock_addr *b)
{
    return gw_sock_addr_is_same_host(a, b) && gw_sock_addr_port(a) == gw_sock_addr_port(b);
}

void gw_sock_addr_pack(const struct gw_sock_addr *addr, uint8_t bytes[GW_SOCK_ADDR_SIZE])
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&addr->storage;
    memset(bytes, 0, GW_SOCK_ADDR_SIZE);
    if (gw_sock_addr_is_v6(addr)) {
        memcpy(bytes, &((const struct sockaddr_in6 *)&addr->storage)->sin6_addr, GW_SOCK_ADDR_SIZE);
        return;
    }
    memset(bytes + MAPPED_ZEROS, 0xff, MAPPED_FRONT - MAPPED_ZEROS);
    memcpy(bytes + MAPPED_FRONT, &v4->sin_addr, sizeof(v4->sin_addr));
}

void gw_sock_addr_unpack(const uint8_t bytes[GW_SOCK_ADDR_SIZE], uint16_t port,
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
    gw_sock_addr_set_port(addr, port);
}

const uint8_t *gw_sock_addr_mapped(const uint8_t bytes[GW_SOCK_ADDR_SIZE])
{
    return bytes + MAPPED_FRONT;
}

void gw_sock_addr_advance(struct gw_sock_addr *addr, uint32_t count)
{
    uint8_t bytes[GW_SOCK_ADDR_SIZE];
    gw_sock_addr_pack(addr, bytes);
    for (uint32_t i = GW_SOCK_ADDR_SIZE; i-- > MAPPED_FRONT && count;) {
        count += bytes[i];
        bytes[i] = (uint8_t)count;
        count >>= 8;
    }
    gw_sock_addr_unpack(bytes, gw_sock_addr_port(addr), addr);
}

/* Makes `own`, perhaps the wildcard, the address that we have towards `to`. */
static bool find_own_address(struct gw_sock_addr *own, const struct gw_sock_addr *to)
{
    int fd = socket(to->storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    gw_sock_addr_set_port(own, 0);
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
        if (gw_sock_addr_is_same_host(&at, own))
            found = (int)if_nametoindex(one->ifa_name);
    }
    freeifaddrs(all);
    return found;
}

bool gw_sock_addr_reach_by(struct gw_sock_addr *group, const struct gw_sock_addr *own,
                           const struct gw_sock_addr *to)
{
    struct gw_sock_addr at = *own;
    group->interface = find_own_address(&at, to) ? interface_of(&at) : 0;
    if (group->interface)
        gw_sock_addr_pack(&at, group->source);
    if (gw_sock_addr_is_v6(group)) /* the same link-local group is another one on each link */
        ((struct sockaddr_in6 *)&group->storage)->sin6_scope_id = (uint32_t)group->interface;
    return group->interface != 0;
}
