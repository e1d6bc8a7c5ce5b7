/*
 * Where datagrams go or come from: an IP address with a port, and of a multicast group the
 * interface as well. As text, as bytes on the wire, and as the system's own structure.
 */
#ifndef GW_NET_SOCK_ADDR_H
#define GW_NET_SOCK_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    GW_SOCK_ADDR_SIZE = 16,     /* bytes of an address of either family, without its port */
    GW_SOCK_ADDR_NAME_MAX = 64, /* bytes of an address as text */
};

struct gw_sock_addr {
    struct sockaddr_storage storage;
    socklen_t length;
    int interface; /* of a multicast group: number of the one that it is reached by; else 0 */
    uint8_t source[GW_SOCK_ADDR_SIZE]; /* then: our address there */
};

/* Reads "127.0.0.1" or "::1". Returns 0 or GW_ERR_INVALID. */
int gw_sock_addr_parse(const char *host, uint16_t port, struct gw_sock_addr *addr);

/* Whether it is of the form HOST:PORT or [HOST]:PORT; nothing is looked up. */
bool gw_sock_addr_is_name(const char *name);

/*
 * A row of ports: HOST:FIRST-LAST, or one as above. The first says how many they are, 0 of what is
 * neither; the second writes the name of one of them, the first is 0.
 */
uint32_t gw_sock_addr_row(const char *name);
void gw_sock_addr_row_at(const char *name, uint32_t number, char *text, size_t size);

/* Reads HOST:PORT or [HOST]:PORT; a name is looked up. Returns 0 or GW_ERR_INVALID with `error`
 * filled. */
int gw_sock_addr_resolve(const char *name, struct gw_sock_addr *addr, char *error);

/* Writes "127.0.0.1:4791" or "[::1]:4791". */
void gw_sock_addr_format(const struct gw_sock_addr *addr, char *text, size_t size);

/* Writes the address alone. */
void gw_sock_addr_format_host(const struct gw_sock_addr *addr, char *text, size_t size);

uint16_t gw_sock_addr_port(const struct gw_sock_addr *addr);
void gw_sock_addr_set_port(struct gw_sock_addr *addr, uint16_t port);

bool gw_sock_addr_is_v6(const struct gw_sock_addr *addr);
bool gw_sock_addr_is_multicast(const struct gw_sock_addr *addr);

/* Whether both are of one host, whatever their ports. */
bool gw_sock_addr_is_same_host(const struct gw_sock_addr *a, const struct gw_sock_addr *b);

/* Whether both are one host and one port. */
bool gw_sock_addr_is_same(const struct gw_sock_addr *a, const struct gw_sock_addr *b);

/* The address in 16 bytes, an IPv4 one mapped into IPv6, and back. */
void gw_sock_addr_pack(const struct gw_sock_addr *addr, uint8_t bytes[GW_SOCK_ADDR_SIZE]);
void gw_sock_addr_unpack(const uint8_t bytes[GW_SOCK_ADDR_SIZE], uint16_t port,
                         struct gw_sock_addr *addr);

/* The IPv4 address in packed bytes, where they are of one. */
const uint8_t *gw_sock_addr_mapped(const uint8_t bytes[GW_SOCK_ADDR_SIZE]);

/* Moves the address on by `count`, as a number of 32 bits at its end. */
void gw_sock_addr_advance(struct gw_sock_addr *addr, uint32_t count);

/* Sets interface and source of a multicast group to those by which `to` is reached from `own`,
 * which may be the wildcard; false: there is no way to it. */
bool gw_sock_addr_reach_by(struct gw_sock_addr *group, const struct gw_sock_addr *own,
                           const struct gw_sock_addr *to);

#endif
