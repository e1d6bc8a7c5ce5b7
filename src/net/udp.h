/*
 * The UDP datapath: one node with one port, over a row of UDP sockets, to one peer.
 *
 * It drives the four verbs from a loop that sleeps in ppoll() until a datagram, room to send, the
 * node's deadline or the caller's. The entropy of a packet is its place in the row of source ports;
 * datagrams go to the first port of the peer's row. Class and ECN travel in the TOS byte. A
 * datagram that the socket has no room for is kept and sent when it has (back-pressure); nothing is
 * lost here but by request (`lose_q32`).
 *
 * Use: open, learn the peer's address and connect, start flows at gw_udp_now(), then run and poll
 * the endpoint's events. One thread. Errors are 0 or GW_ERR_* with a text of at most
 * GW_NET_ERROR_MAX bytes that names the address at fault.
 */
#ifndef GW_NET_UDP_H
#define GW_NET_UDP_H

#include "core/node.h"
#include "net/sock.h"

/* Bytes around a payload, with IP and UDP headers: the endpoint's `hdr`. */
enum {
    GW_UDP_HDR_IPV4 = 20 + 8 + 44,
    GW_UDP_HDR_IPV6 = 40 + 8 + 44,
};

struct gw_udp_cfg {
    struct gw_node *node;
    struct gw_pkt_pool *pool; /* more than GW_UDP_BATCH buffers of at least `mtu` bytes */
    const char *address;      /* ours, as text: IPv4 or IPv6 */
    uint16_t port;            /* first of the row; 0: any */
    uint16_t entropies;       /* sockets in the row, 1 to GW_SOCK_ROW_MAX */
    uint32_t mtu;             /* payload bytes of a full packet */
    uint32_t buffer_bytes;    /* kernel buffers to ask for; 0: the system's default */
    uint64_t cookie;          /* of the job */
    uint64_t lose_q32;        /* chance / 2^32 that a packet is lost before it is sent; for tests */
    uint64_t seed;            /* of those losses */
};

enum {
    GW_UDP_BATCH = 32, /* most datagrams per system call */
};

/* Counters, in datagrams. */
struct gw_udp_stats {
    uint64_t sent;
    uint64_t received;     /* given to the node */
    uint64_t lost;         /* by request */
    uint64_t blocked;      /* times that the socket had no room */
    uint64_t send_errors;  /* refused by the system and lost */
    uint64_t kernel_drops; /* the receive buffer was full */
    uint64_t runts;        /* shorter than any packet */
    uint64_t malformed;
    uint64_t wrong_version; /* not of this protocol, or of another version */
    uint64_t wrong_cookie;  /* of another job */
    uint64_t no_room;       /* our pool was empty */
};

struct gw_udp;

/* Returns 0 and sets *udp; GW_ERR_INVALID, GW_ERR_NO_MEMORY or GW_ERR_SYSTEM with `error` filled.
 */
int gw_udp_open(const struct gw_udp_cfg *cfg, struct gw_udp **udp, char *error);

/* Releases the packets that it holds; the node and the pool stay. */
void gw_udp_close(struct gw_udp *udp);

/* First port of our row: where the peer sends to. */
uint16_t gw_udp_port(const struct gw_udp *udp);

/* Names the peer: its address and the first port of its row. Returns 0 or GW_ERR_INVALID. */
int gw_udp_connect(struct gw_udp *udp, const char *address, uint16_t port, char *error);

/* The node's time: picoseconds since open. */
gw_time gw_udp_now(const struct gw_udp *udp);

/*
 * Moves packets until the application has events to poll (returns 0), until `until` (returns
 * GW_ERR_TIMED_OUT; the text names the peer), or until the system refuses to go on (GW_ERR_SYSTEM).
 * `until` must not be GW_TIME_NEVER. What is ready to leave is offered to the socket first, so an
 * application that polls an event may close: its acknowledgement is on its way.
 */
int gw_udp_run(struct gw_udp *udp, gw_time until, char *error);

const struct gw_udp_stats *gw_udp_stats(const struct gw_udp *udp);

#endif
