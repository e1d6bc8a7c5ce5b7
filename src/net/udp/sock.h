/*
 * UDP sockets as the datapath needs them: a row of consecutive source ports (an entropy is a place
 * in that row), and what travels in the IP header.
 *
 * Errors come as text that names the address and the reason, for people to read.
 */
#ifndef GW_NET_SOCK_H
#define GW_NET_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    GW_NET_ERROR_MAX = 192,    /* bytes of an error text */
    GW_SOCK_ADDRESS_SIZE = 16, /* bytes of an address of either family */
    GW_SOCK_ROW_MAX = 256,
    /* Room for what gw_sock_read_control() looks for, and for what is written. */
    GW_SOCK_CONTROL_SIZE = 2 * CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint32_t)) +
                           CMSG_SPACE(GW_SOCK_ADDRESS_SIZE + sizeof(int)),
    GW_SOCK_NAME_MAX = 64, /* bytes of an address as text */
};

/* Where datagrams go or come from. */
struct gw_sock_addr {
    struct sockaddr_storage storage;
    socklen_t length;
    int interface; /* of a multicast group: number of the one that it is reached by; else 0 */
    uint8_t source[GW_SOCK_ADDRESS_SIZE]; /* then: our address there */
};

/* Writes the text of an error and returns `code`. */
__attribute__((format(printf, 3, 4))) int gw_net_fail(char *error, int code, const char *format,
                                                      ...);

/* Reads "127.0.0.1" or "::1". Returns 0 or GW_ERR_INVALID. */
int gw_sock_parse(const char *host, uint16_t port, struct gw_sock_addr *addr);
uint16_t gw_sock_port(const struct gw_sock_addr *addr);
/* Writes "127.0.0.1:4791" or "[::1]:4791". */
void gw_sock_format(const struct gw_sock_addr *addr, char *text, size_t size);

/* Writes the address alone. */
void gw_sock_format_host(const struct gw_sock_addr *addr, char *text, size_t size);

/* Whether both are of one host, whatever their ports. */
bool gw_sock_is_same_host(const struct gw_sock_addr *a, const struct gw_sock_addr *b);

/*
 * Opens `count` non-blocking sockets on consecutive ports from `addr`'s port on, or on any free
 * ones when that is 0; `addr` then names the first. All report TOS and kernel drops on receive;
 * none fragments. `buffer_bytes` is asked for as send and receive buffer (0: the system's default).
 * Returns 0, or GW_ERR_SYSTEM with `error` filled and no socket left open.
 */
int gw_sock_open_row(struct gw_sock_addr *addr, uint32_t count, uint32_t buffer_bytes, int *fds,
                     char *error);
void gw_sock_close_row(int *fds, uint32_t count);

/* The address in 16 bytes, an IPv4 one mapped into IPv6, and back. */
void gw_sock_pack(const struct gw_sock_addr *addr, uint8_t bytes[GW_SOCK_ADDRESS_SIZE]);
void gw_sock_unpack(const uint8_t bytes[GW_SOCK_ADDRESS_SIZE], uint16_t port,
                    struct gw_sock_addr *addr);

bool gw_sock_is_multicast(const struct gw_sock_addr *addr);

/* Moves the address on by `count`, as a number of 32 bits at its end. */
void gw_sock_advance(struct gw_sock_addr *addr, uint32_t count);

/* Sets interface and source of a multicast group to those by which `to` is reached from `own`,
 * which may be the wildcard; false: there is no way to it. */
bool gw_sock_reach_by(struct gw_sock_addr *group, const struct gw_sock_addr *own,
                      const struct gw_sock_addr *to);

/*
 * Opens a socket that receives what is sent to a multicast group, at its port, by the interface
 * that `addr` names; trains come as one if the kernel can. Several processes may listen to one.
 * Returns it, or -1 with errno set.
 */
int gw_sock_open_group(const struct gw_sock_addr *addr, uint32_t buffer_bytes);

/* Bytes of the socket's receive buffer, as the kernel counts them. */
uint32_t gw_sock_receive_room(int fd);

/*
 * Lets the socket receive a train as one, and finds out whether trains can be sent as one. False:
 * this kernel cannot; everything works without.
 */
bool gw_sock_join_trains(int fd);

/*
 * Fills `control` (GW_SOCK_CONTROL_SIZE) so that datagrams carry `tos` and, with `segment` other
 * than 0, so that the kernel cuts them out of what is sent, every so many bytes. Returns its
 * length.
 */
size_t gw_sock_write_control(const struct gw_sock_addr *to, uint8_t tos, uint16_t segment,
                             void *control);

/* What comes beside a received datagram. */
struct gw_sock_news {
    uint8_t tos;
    uint16_t segment;      /* it is a train of datagrams of so many bytes; 0: it is one */
    uint32_t kernel_drops; /* on this socket since it was opened */
};

/* Reads it; what the message does not tell keeps its value. */
void gw_sock_read_control(struct msghdr *msg, struct gw_sock_news *news);

#endif
