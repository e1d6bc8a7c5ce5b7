/*
 * The UDP datapath: packets of one process to and from its neighbours, over a row of sockets.
 *
 * A neighbour is the other end of an overlay link. Both ends choose a random cookie that packets to
 * them must carry, whose low 16 bits are the sender's place in the receiver's table: so a datagram
 * finds its neighbour at once, and one that nobody agreed on is dropped. Class and ECN travel in
 * the TOS byte; the entropy of a packet is its place in the row of source ports, of which only the
 * first receives.
 *
 * Trains stay trains. One call of gw_udp_send() becomes one system call and, where the kernel can
 * (UDP_SEGMENT), one walk through its stack; what arrives as one (UDP_GRO) is scattered by the
 * kernel right into the pool's buffers. Nothing is copied here. (100 MB over veth: 60 Gb/s in
 * trains against 4.5 with single datagrams.)
 *
 * A train that the socket has no room for is kept; nothing is lost here but by request (`faults`).
 * One thread. Errors are 0 or GW_ERR_* with a text of at most GW_NET_ERROR_MAX bytes that names the
 * address at fault.
 */
#ifndef GW_NET_UDP_H
#define GW_NET_UDP_H

#include "core/pkt.h"
#include "net/udp/sock.h"
#include "net/udp/auth.h"
#include "wire/wire.h"

enum {
    /* Bytes around a payload, with IP and UDP headers: the endpoint's `hdr`. */
    GW_UDP_HDR_IPV4 = 20 + 8 + GW_WIRE_DATA_SIZE,
    GW_UDP_HDR_IPV6 = 40 + 8 + GW_WIRE_DATA_SIZE,
    GW_UDP_TRAIN_MAX = 64,   /* datagrams that the kernel takes as one train */
    GW_UDP_PEERS_MAX = 4096, /* neighbours */
    GW_UDP_RECEIVE_FDS = 2,  /* our own, and a group's */
};

/* What may happen to a packet on its way out, for tests: chances / 2^32. */
struct gw_udp_faults {
    uint64_t lose_q32;
    uint64_t duplicate_q32;
    uint64_t delay_q32; /* it leaves behind the next train to the same neighbour */
    uint64_t seed;
};

struct gw_udp_cfg {
    struct gw_pkt_pool
        *pool;             /* more than GW_UDP_TRAIN_MAX buffers of at least `mtu` bytes, and
                              GW_AUTH_SIZE more where they are authenticated; the front of each is
                              at least GW_WIRE_DATA_SIZE. Exactly so: trains lie in one piece */
    const char *address;   /* ours, as text: IPv4 or IPv6 */
    uint16_t port;         /* first of the row; 0: any */
    uint16_t entropies;    /* sockets in the row, 1 to GW_SOCK_ROW_MAX */
    uint32_t mtu;          /* payload bytes of a full packet */
    uint32_t buffer_bytes; /* kernel buffers to ask for; 0: the system's default */
    uint16_t peers_max;    /* neighbours, 1 to GW_UDP_PEERS_MAX */
    bool has_trains;       /* use the kernel's segmentation where it has it */
    bool serves_many;      /* one that cannot be sent to is no reason to end: it is counted */
    struct gw_udp_faults faults;
};

/* A neighbour, or a group of those: what is sent to it reaches all, and nothing comes from it. */
struct gw_udp_peer {
    struct gw_sock_addr addr; /* its first port */
    uint16_t entropies;       /* ports of its row */
    uint64_t tx_cookie;       /* in packets to it */
    uint64_t rx_cookie;       /* in packets from it; the low 16 bits are its number here */
    struct gw_auth *auth; /* of packets both ways; NULL: they carry none. Outlives the neighbour */
};

/* Counters, in datagrams. */
struct gw_udp_stats {
    uint64_t sent;
    uint64_t received;     /* given to the caller */
    uint64_t tx_trains;    /* calls that sent something */
    uint64_t rx_trains;    /* calls that received something */
    uint64_t rx_copied;    /* of `received`: did not lie as expected and were copied */
    uint64_t lost;         /* by request */
    uint64_t blocked;      /* times that a socket had no room */
    uint64_t send_errors;  /* refused by the system, or to nobody, and lost */
    uint64_t kernel_drops; /* the receive buffer was full */
    uint64_t runts;        /* shorter than any packet */
    uint64_t malformed;
    uint64_t wrong_version; /* not of this protocol, or of another version */
    uint64_t wrong_cookie;  /* of no neighbour, or not from its address */
    uint64_t forged;        /* the authentication code is wrong */
    uint64_t repeated;      /* their number has been here before, or is too old to know */
    uint64_t no_room;       /* our pool was empty */
};

/* What one look at the socket brought. */
struct gw_udp_train {
    uint16_t peer;
    uint16_t count; /* of `pkts`; may be 0: all were refused */
    struct gw_pkt *pkts[GW_UDP_TRAIN_MAX];
    /* A datagram that is no packet but of the attach protocol; `length` is 0 when there is none. */
    const uint8_t *control;
    uint32_t length;
    struct gw_sock_addr from;
};

struct gw_udp;

/* Returns 0 and sets *udp; GW_ERR_INVALID, GW_ERR_NO_MEMORY or GW_ERR_SYSTEM with `error` filled.
 */
int gw_udp_open(const struct gw_udp_cfg *cfg, struct gw_udp **udp, char *error);

/* Releases the packets that it holds; the pool stays. */
void gw_udp_close(struct gw_udp *udp);

/* Our address with the first port of our row: where neighbours send to. */
const struct gw_sock_addr *gw_udp_address(const struct gw_udp *udp);

/* Bytes that IP, UDP and our header take around a payload. */
uint32_t gw_udp_overhead(const struct gw_udp *udp);

/* Opens or changes a neighbour; its rx_cookie's low 16 bits, below peers_max, say which. */
void gw_udp_set_peer(struct gw_udp *udp, const struct gw_udp_peer *peer);

/* From now on nothing comes from it or goes to it. */
void gw_udp_clear_peer(struct gw_udp *udp, uint16_t peer);

/*
 * From now on takes parameters that neighbour `peer` sends to a multicast group, with the group's
 * own cookie, and gives them to us: their destination becomes `address`. One group at a time, that
 * of the neighbour who came first. If the system does not let us, we listen to none.
 */
void gw_udp_listen(struct gw_udp *udp, uint16_t peer, const struct gw_sock_addr *group,
                   uint64_t cookie, uint32_t address);

/* No longer, if we listen to a group of neighbour `peer`. */
void gw_udp_unlisten(struct gw_udp *udp, uint16_t peer);

/* Whether, since the last call, most results came another way than by the group that we listen to;
 * `peer` is then its neighbour. */
bool gw_udp_misses_group(struct gw_udp *udp, uint16_t *peer);

/* NULL: there is none. */
const struct gw_udp_peer *gw_udp_peer(const struct gw_udp *udp, uint16_t peer);

/* Whether gw_udp_send() may be called: no train waits for room. */
bool gw_udp_can_send(const struct gw_udp *udp);

/*
 * Sends packets of one train (core/node.h) and releases them, now or when the socket has room
 * again. Packets to a neighbour that is not there are lost. Returns 0 or GW_ERR_SYSTEM.
 */
int gw_udp_send(struct gw_udp *udp, uint16_t peer, struct gw_pkt **pkts, uint32_t count,
                char *error);

/* Offers again what waits for room. Returns 0 or GW_ERR_SYSTEM. */
int gw_udp_flush(struct gw_udp *udp, char *error);

/* Sends bytes that are no packet, at once or never. */
void gw_udp_send_control(struct gw_udp *udp, const struct gw_sock_addr *to, const uint8_t *bytes,
                         uint32_t length);

/*
 * Takes one train off the socket. Returns 1; 0 when nothing was there; or GW_ERR_SYSTEM. What
 * `train` points to is valid until the next call, but for the packets, which are the caller's.
 */
int gw_udp_receive(struct gw_udp *udp, gw_time now, struct gw_udp_train *train, char *error);

/* For ppoll(): the sockets that receive, `fds` has room for GW_UDP_RECEIVE_FDS, and how many there
 * are; and the one that a train waits for, or -1. */
uint32_t gw_udp_receive_fds(const struct gw_udp *udp, int *fds);
int gw_udp_blocked_fd(const struct gw_udp *udp);

const struct gw_udp_stats *gw_udp_stats(const struct gw_udp *udp);

#endif
