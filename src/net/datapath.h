/*
 * Datapaths: packets of one station to and from its neighbours. This is the contract between the
 * loop, which drives nodes, and what moves their trains: UDP sockets (udp/udp.h), or the memory of
 * a process whose threads are stations (memory/memory_datapath.h).
 *
 * A neighbour is the other end of an overlay link. Both ends choose a random cookie that packets to
 * them must carry, whose low 16 bits are the sender's place in the receiver's table: so a datagram
 * finds its neighbour at once, and one that nobody agreed on is dropped. Class and ECN travel in
 * the TOS byte.
 *
 * Trains stay trains: each call hands over one of them. A train for which there is no room is kept,
 * with copies of payloads that are lent (core/pkt.h); nothing is lost here but by request
 * (`faults`). One thread. Errors are 0 or GW_ERR_* with a text of at most GW_NET_ERROR_MAX bytes
 * that names the address at fault.
 *
 * Another datapath is a folder, which defines struct gw_datapath_ops gw_datapath_NAME, and the line
 * GW_REGISTER(NAME) in datapath.def. What arrives becomes packets by datagram.h, and tx_faults.h
 * says what goes wrong on purpose. Tests drive nodes without any: net/mem.h.
 */
#ifndef GW_NET_DATAPATH_H
#define GW_NET_DATAPATH_H

#include "core/pkt.h"
#include "net/auth.h"
#include "net/net_error.h"
#include "net/sock_addr.h"
#include "wire/wire.h"

enum {
    GW_DATAPATH_ENTROPIES_MAX = 256,
    GW_DATAPATH_TRAIN_MAX = 64,   /* packets of a train: as many as the kernel takes as one */
    GW_DATAPATH_CONTROLS_MAX = 4, /* datagrams of the attach protocol that come as one */
    GW_DATAPATH_PEERS_MAX = 4096, /* neighbours */
    GW_DATAPATH_GROUPS_MAX = 17,  /* that are listened to: of 16 servers, and a switch */
    GW_DATAPATH_FDS_MAX = 1 + GW_DATAPATH_GROUPS_MAX, /* that receive: our own, and of groups */
    /* Bytes around a payload, with IP and UDP headers: the endpoint's `hdr`. */
    GW_DATAPATH_HDR_IPV4 = 20 + 8 + GW_WIRE_DATA_SIZE,
    GW_DATAPATH_HDR_IPV6 = 40 + 8 + GW_WIRE_DATA_SIZE,
};

_Static_assert(GW_DATAPATH_FDS_MAX <= 32, "a bit for each says that it is silent");

/* What may happen to a packet on its way out, for tests: chances / 2^32. */
struct gw_datapath_faults {
    uint64_t lose_q32;
    uint64_t duplicate_q32;
    uint64_t delay_q32; /* it leaves behind the next train to the same neighbour */
    uint64_t seed;
};

struct gw_datapath_cfg {
    struct gw_pkt_pool *pool; /* more than GW_DATAPATH_TRAIN_MAX buffers of at least `mtu` bytes,
                                 and GW_AUTH_SIZE more where they are authenticated; the front of
                                 each is at least GW_WIRE_DATA_SIZE. Exactly so: trains lie in one
                                 piece */
    const char *address;      /* ours, as text: IPv4 or IPv6 */
    uint16_t port;            /* first of the row; 0: any */
    uint16_t entropies;       /* ports in the row, 1 to GW_DATAPATH_ENTROPIES_MAX */
    uint32_t mtu;             /* payload bytes of a full packet */
    uint32_t buffer_bytes;    /* kernel buffers to ask for; 0: the system's default */
    uint16_t peers_max;       /* neighbours, 1 to GW_DATAPATH_PEERS_MAX */
    bool has_trains;          /* use the kernel's segmentation where it has it */
    bool encrypts;            /* there may be neighbours whose `auth` encrypts */
    bool serves_many;         /* one that cannot be sent to is no reason to end: it is counted */
    bool signals_by_option;   /* signals of bursts travel as IPv4 options, not in the DSCP; those
                                 that come either way are understood. Needs CAP_NET_RAW */
    struct gw_datapath_faults faults;
};

/* A neighbour, or a group of those: what is sent to it reaches all, and nothing comes from it. */
struct gw_datapath_peer {
    struct gw_sock_addr addr; /* its first port; length 0: nobody is there */
    uint16_t entropies;       /* ports of its row */
    uint64_t tx_cookie;       /* in packets to it */
    uint64_t rx_cookie;       /* in packets from it; the low 16 bits are its number here */
    struct gw_auth *auth; /* of packets both ways; NULL: they carry none. Outlives the neighbour */
};

/* Counters, in datagrams. */
struct gw_datapath_stats {
    uint64_t sent;
    uint64_t received;     /* given to the caller */
    uint64_t tx_trains;    /* calls that sent something */
    uint64_t rx_trains;    /* calls that received something */
    uint64_t rx_copied;    /* of `received`: did not lie as expected and were copied */
    uint64_t lost;         /* by request */
    uint64_t blocked;      /* times that there was no room to send */
    uint64_t send_errors;  /* refused by the system, or to nobody, and lost */
    uint64_t too_long;     /* of `send_errors`: longer than the link takes */
    uint64_t kernel_drops; /* the receive buffer was full */
    uint64_t runts;        /* shorter than any packet */
    uint64_t malformed;
    uint64_t wrong_version; /* not of this protocol, or of another version */
    uint64_t wrong_cookie;  /* of no neighbour, or not from its address */
    uint64_t forged;        /* the authentication code is wrong */
    uint64_t repeated;      /* their number has been here before, or is too old to know */
    uint64_t no_room;       /* our pool was empty */
};

/* What one look at the network brought. */
struct gw_datapath_train {
    uint16_t peer;
    uint16_t count; /* of `pkts`; may be 0: all were refused */
    struct gw_pkt *pkts[GW_DATAPATH_TRAIN_MAX];
    /* Datagrams that are no packets but of the attach protocol, one behind the other: `controls` of
     * them, at most GW_DATAPATH_CONTROLS_MAX, of `length` bytes each. */
    const uint8_t *control;
    uint32_t controls;
    uint32_t length;
    struct gw_sock_addr from;
};

struct gw_datapath;

/* What a datapath does; the functions below say what each means. */
struct gw_datapath_ops {
    const char *name;
    int (*open)(const struct gw_datapath_cfg *cfg, struct gw_datapath **datapath, char *error);
    void (*close)(struct gw_datapath *datapath);
    int (*receive)(struct gw_datapath *datapath, gw_time now, struct gw_datapath_train *train,
                   char *error);
    bool (*can_send)(const struct gw_datapath *datapath);
    int (*send)(struct gw_datapath *datapath, uint16_t peer, struct gw_pkt **pkts, uint32_t count,
                char *error);
    int (*flush)(struct gw_datapath *datapath, char *error);
    void (*send_control)(struct gw_datapath *datapath, const struct gw_sock_addr *to,
                         const uint8_t *bytes, uint32_t length);
    /* These three may be NULL: it has no multicast groups. */
    void (*listen)(struct gw_datapath *datapath, uint16_t peer, const struct gw_sock_addr *group,
                   uint64_t cookie, uint32_t address);
    void (*unlisten)(struct gw_datapath *datapath, uint16_t peer);
    bool (*misses_group)(struct gw_datapath *datapath, uint16_t *peer);
    uint32_t (*receive_fds)(const struct gw_datapath *datapath, int *fds);
    int (*blocked_fd)(const struct gw_datapath *datapath);
};

/* First member of every datapath, which sets `ops` when it opens and has gw_datapath_init() fill
 * the rest. Others call the functions below. */
struct gw_datapath {
    const struct gw_datapath_ops *ops;
    struct gw_datapath_cfg
        cfg; /* what it was opened with; `address` is gone: it was the caller's */
    struct gw_sock_addr address;
    uint32_t overhead;
    uint16_t peers_max;
    struct gw_datapath_peer *peers; /* peers_max of them */
    uint32_t silent;                /* see gw_datapath_set_silent() */
    struct gw_datapath_stats stats;
};

/* The datapath of a name, or NULL; without a name, the first of datapath.def. */
const struct gw_datapath_ops *gw_datapath_find(const char *name);

/* As above; NULL: there is none, and `error`, of GW_NET_ERROR_MAX, says which there are. */
const struct gw_datapath_ops *gw_datapath_choose(const char *name, char *error);

/* The datapath at a place of the list; NULL: behind its end. */
const struct gw_datapath_ops *gw_datapath_at(uint32_t place);

/*
 * For datapaths: takes what they were opened with, and makes the table of neighbours. Returns 0,
 * GW_ERR_INVALID or GW_ERR_NO_MEMORY with `error` filled; gw_datapath_fini() is right after either.
 */
int gw_datapath_init(struct gw_datapath *datapath, const struct gw_datapath_cfg *cfg, char *error);
void gw_datapath_fini(struct gw_datapath *datapath);

/* Returns 0 and sets *datapath; GW_ERR_INVALID, GW_ERR_NO_MEMORY, GW_ERR_NO_ROOM (the pool has too
 * few free buffers) or GW_ERR_SYSTEM with `error` filled. */
int gw_datapath_open(const struct gw_datapath_ops *ops, const struct gw_datapath_cfg *cfg,
                     struct gw_datapath **datapath, char *error);

/* Opens or changes a neighbour; its rx_cookie's low 16 bits, below peers_max, say which. */
void gw_datapath_set_peer(struct gw_datapath *datapath, const struct gw_datapath_peer *peer);

/* From now on nothing comes from it or goes to it. */
void gw_datapath_clear_peer(struct gw_datapath *datapath, uint16_t peer);

/* NULL: there is none. */
const struct gw_datapath_peer *gw_datapath_peer(const struct gw_datapath *datapath, uint16_t peer);

/* Our address with the first port of our row: where neighbours send to. */
static inline const struct gw_sock_addr *gw_datapath_address(const struct gw_datapath *datapath)
{
    return &datapath->address;
}

/* Bytes that IP, UDP and our header take around a payload. */
static inline uint32_t gw_datapath_overhead(const struct gw_datapath *datapath)
{
    return datapath->overhead;
}

static inline const struct gw_datapath_stats *gw_datapath_stats(const struct gw_datapath *datapath)
{
    return &datapath->stats;
}

/* Releases the packets that it holds; the pool stays. */
static inline void gw_datapath_close(struct gw_datapath *datapath)
{
    datapath->ops->close(datapath);
}

/*
 * Takes one train off the network. Returns 1; 0 when nothing was there; or GW_ERR_SYSTEM. What
 * `train` points to is valid until the next call, but for the packets, which are the caller's.
 */
static inline int gw_datapath_receive(struct gw_datapath *datapath, gw_time now,
                                      struct gw_datapath_train *train, char *error)
{
    return datapath->ops->receive(datapath, now, train, error);
}

/* Whether gw_datapath_send() may be called: no train waits for room. */
static inline bool gw_datapath_can_send(const struct gw_datapath *datapath)
{
    return datapath->ops->can_send(datapath);
}

/*
 * Sends packets of one train (core/node.h) and releases them, now or when there is room again.
 * Packets to a neighbour that is not there are lost. Returns 0 or GW_ERR_SYSTEM.
 */
static inline int gw_datapath_send(struct gw_datapath *datapath, uint16_t peer,
                                   struct gw_pkt **pkts, uint32_t count, char *error)
{
    return datapath->ops->send(datapath, peer, pkts, count, error);
}

/* Offers again what waits for room. Returns 0 or GW_ERR_SYSTEM. */
static inline int gw_datapath_flush(struct gw_datapath *datapath, char *error)
{
    return datapath->ops->flush(datapath, error);
}

/* Sends bytes that are no packet, at once or never. */
static inline void gw_datapath_send_control(struct gw_datapath *datapath,
                                            const struct gw_sock_addr *to, const uint8_t *bytes,
                                            uint32_t length)
{
    datapath->ops->send_control(datapath, to, bytes, length);
}

/* Whether packets can be sent to multicast groups, and come from them. */
static inline bool gw_datapath_has_groups(const struct gw_datapath_ops *ops)
{
    return ops->listen != NULL;
}

/*
 * From now on takes parameters that neighbour `peer` sends to a multicast group, with the group's
 * own cookie, and gives them to us: their destination becomes `address`. One group of a neighbour;
 * another takes its place. If there are too many, or the system does not let us, we do not listen.
 * Only of a datapath that has groups.
 */
static inline void gw_datapath_listen(struct gw_datapath *datapath, uint16_t peer,
                                      const struct gw_sock_addr *group, uint64_t cookie,
                                      uint32_t address)
{
    datapath->ops->listen(datapath, peer, group, cookie, address);
}

/* If we listen to a group of neighbour `peer`, no longer. */
static inline void gw_datapath_unlisten(struct gw_datapath *datapath, uint16_t peer)
{
    if (gw_datapath_has_groups(datapath->ops))
        datapath->ops->unlisten(datapath, peer);
}

/* Whether there is a neighbour, `peer`, of whose results most came another way than by the group
 * that we listen to, since that was asked last; to be called until there is none. */
static inline bool gw_datapath_misses_group(struct gw_datapath *datapath, uint16_t *peer)
{
    return gw_datapath_has_groups(datapath->ops) && datapath->ops->misses_group(datapath, peer);
}

/* What ppoll() is to wait for. Fills `fds`, of GW_DATAPATH_FDS_MAX, with those that receive, and
 * returns how many there are; -1 stands for none. */
static inline uint32_t gw_datapath_receive_fds(const struct gw_datapath *datapath, int *fds)
{
    return datapath->ops->receive_fds(datapath, fds);
}

/* What ppoll() found: a bit for each of those, in their order, where nothing is to be read. The
 * next calls of receive need not look there, until this says otherwise. */
static inline void gw_datapath_set_silent(struct gw_datapath *datapath, uint32_t silent)
{
    datapath->silent = silent;
}

/* The one that a train waits for, to have room; -1: no train waits. */
static inline int gw_datapath_blocked_fd(const struct gw_datapath *datapath)
{
    return datapath->ops->blocked_fd(datapath);
}

#endif
