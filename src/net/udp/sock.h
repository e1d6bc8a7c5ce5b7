/*
 * UDP sockets as the datapath needs them: a row of consecutive source ports (an entropy is a place
 * in that row), and what travels in the IP header.
 *
 * A signal (wire/wire.h) may travel as an option of the IPv4 header instead of in the DSCP:
 *
 *     +---------------+---------------+---+---+---------------+-------+
 *     |   type 0x9e   |   length 4    | S | A |    number     |   0   |   0
 *     +---------------+---------------+---+---+---------------+-------+
 *
 * The type is one of those for experiments (RFC 4727, section 3.3): the paper names none. It is
 * copied into fragments, of which there are none.
 */
#ifndef GW_NET_SOCK_H
#define GW_NET_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "net/net_error.h"
#include "net/sock_addr.h"

enum {
    /* Room for what gw_sock_read_control() looks for, and for what is written. */
    GW_SOCK_CONTROL_SIZE = 2 * CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint32_t)) +
                           CMSG_SPACE(GW_SOCK_ADDR_SIZE + sizeof(int)) + CMSG_SPACE(40),
    GW_SOCK_OPTION_SIZE = 4, /* bytes that a signal's option adds to the IP header */
};

/*
 * Opens `count` non-blocking sockets on consecutive ports from `addr`'s port on, or on any free
 * ones when that is 0; `addr` then names the first. All report TOS and kernel drops on receive;
 * none fragments, whatever ICMP says of a path. `buffer_bytes` is asked for as send and receive
 * buffer (0: the system's default). Returns 0, or GW_ERR_SYSTEM with `error` filled and no socket
 * left open.
 */
int gw_sock_open_row(struct gw_sock_addr *addr, uint32_t count, uint32_t buffer_bytes, int *fds,
                     char *error);
void gw_sock_close_row(int *fds, uint32_t count);

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
 * Lets a socket of IPv4 report signals that come in the IP header's options, and finds out whether
 * they can be sent so: that is for those who may send raw packets. False: it cannot.
 */
bool gw_sock_take_options(int fd);

/* What goes beside a datagram. */
struct gw_sock_beside {
    uint8_t tos;
    uint8_t option;   /* signal and number, six bits, as an option of the IPv4 header; 0: none */
    uint16_t segment; /* the kernel cuts datagrams of so many bytes out of what is sent; 0: none */
};

/* Fills `control` (GW_SOCK_CONTROL_SIZE); returns its length. */
size_t gw_sock_write_control(const struct gw_sock_addr *to, const struct gw_sock_beside *beside,
                             void *control);

/* What comes beside a received datagram. */
struct gw_sock_news {
    uint8_t tos;
    uint8_t option;        /* as in struct gw_sock_beside */
    uint16_t segment;      /* it is a train of datagrams of so many bytes; 0: it is one */
    uint32_t kernel_drops; /* on this socket since it was opened */
};

/* Reads what came beside a message; what it does not tell keeps its value. */
void gw_sock_read_control(struct msghdr *msg, struct gw_sock_news *news);

#endif
