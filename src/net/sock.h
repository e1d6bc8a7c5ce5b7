/*
 * UDP sockets as the datapath needs them: a row of consecutive source ports (an entropy is a place
 * in that row), and what travels in the IP header.
 *
 * Errors come as text that names the address and the reason, for people to read.
 */
#ifndef GW_NET_SOCK_H
#define GW_NET_SOCK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    GW_NET_ERROR_MAX = 192, /* bytes of an error text */
    GW_SOCK_ROW_MAX = 256,
    /* Room for what gw_sock_read_control() looks for. */
    GW_SOCK_CONTROL_SIZE = CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint32_t)),
};

/* Where datagrams go or come from. */
struct gw_sock_addr {
    struct sockaddr_storage storage;
    socklen_t length;
};

/* Reads "127.0.0.1" or "::1". Returns 0 or GW_ERR_INVALID. */
int gw_sock_parse(const char *host, uint16_t port, struct gw_sock_addr *addr);
uint16_t gw_sock_port(const struct gw_sock_addr *addr);
/* Writes "127.0.0.1:4791" or "[::1]:4791". */
void gw_sock_format(const struct gw_sock_addr *addr, char *text, size_t size);

/*
 * Opens `count` non-blocking sockets on consecutive ports from `addr`'s port on, or on any free
 * ones when that is 0; `addr` then names the first. All report TOS and kernel drops on receive;
 * none fragments. `buffer_bytes` is asked for as send and receive buffer (0: the system's default).
 * Returns 0, or GW_ERR_SYSTEM with `error` filled and no socket left open.
 */
int gw_sock_open_row(struct gw_sock_addr *addr, uint32_t count, uint32_t buffer_bytes, int *fds,
                     char *error);
void gw_sock_close_row(int *fds, uint32_t count);

/* Fills `control` (GW_SOCK_CONTROL_SIZE) so that the datagram carries `tos`; returns its length. */
size_t gw_sock_write_tos(const struct gw_sock_addr *to, uint8_t tos, void *control);

/*
 * Reads the TOS of a received datagram, and how many the kernel dropped on this socket since it was
 * opened; both keep their value when the message does not tell.
 */
void gw_sock_read_control(struct msghdr *msg, uint8_t *tos, uint32_t *kernel_drops);

#endif
