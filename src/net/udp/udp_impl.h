/* The inside of the UDP datapath, shared by udp.c, udp_tx.c and udp_rx.c and by nobody else. */
#ifndef GW_NET_UDP_IMPL_H
#define GW_NET_UDP_IMPL_H

#include <sys/uio.h>

#include "core/codec.h"
#include "net/tx_faults.h"
#include "net/udp/sock.h"
#include "net/udp/udp.h"

enum {
    GW_UDP_PLACES = 2 * GW_DATAPATH_TRAIN_MAX + 1, /* of a batch on its way out: faults double
                                                      packets, and one that was late joins it */
    GW_UDP_PIECES = 3, /* of a datagram: header, payload, authentication */
    GW_UDP_DATAGRAM_MAX = 65535,
};

/* A datagram on its way out, and where it lies. */
struct gw_udp_out {
    struct iovec pieces[GW_UDP_PIECES];
    uint32_t piece_count;
    uint32_t length; /* of all pieces */
    uint8_t *hdr;    /* not encrypted */
    uint16_t entropy;
    uint8_t tos;
    uint8_t option; /* a signal that travels in the IP header's options */
};

/*
 * The train on its way out: datagrams [first, count) have not been taken by the kernel. A header is
 * written right before its payload, so that a datagram is one piece of memory, and buffers that lie
 * side by side are one for the whole train. A payload that is in the batch already, with another
 * header, is in pieces.
 */
struct gw_udp_tx {
    uint32_t first;
    uint32_t count;
    uint32_t batch; /* number of this one */
    uint32_t like;  /* the datagram that was written last without another to copy from */
    int fd;
    bool is_blocked;
    uint16_t peer;
    struct gw_pkt *pkts[GW_UDP_PLACES]; /* NULL: a copy; the packet comes later in the row */
    struct gw_udp_out outs[GW_UDP_PLACES];
    uint8_t hdrs[GW_UDP_PLACES][GW_WIRE_HDR_MAX]; /* of those that have no room elsewhere */
    uint8_t auths[GW_UDP_PLACES][GW_AUTH_SIZE];
    uint8_t *kept;        /* payloads that were lent, of a batch that waits */
    uint8_t *sealed;      /* encrypted datagrams, side by side; NULL: none are */
    uint32_t sealed_size; /* of those of this batch */
    struct iovec iovs[GW_UDP_PLACES * GW_UDP_PIECES];
    uint32_t *batches; /* of every buffer of the pool: the last batch that it was in */
    uint16_t *singles; /* of every neighbour: batches that still go one by one, since the way to it
                          could not cut one */
};

/*
 * Where the next train lands: datagrams of `stride` bytes each in a place of its own, the payload
 * in a buffer and the header before it; what does not fit that is copied out of `linear`.
 */
struct gw_udp_rx {
    uint32_t stride;
    uint32_t places;    /* laid out now */
    uint32_t iov_count; /* of them: fewer where buffers lie side by side */
    uint32_t bufs[GW_DATAPATH_TRAIN_MAX];
    struct iovec iovs[GW_DATAPATH_TRAIN_MAX + 1];
    struct gw_sock_addr from;
    uint8_t overflow[GW_UDP_DATAGRAM_MAX];
    uint8_t linear[GW_UDP_DATAGRAM_MAX];
};

/* A multicast group that we listen to. */
struct gw_udp_group {
    uint16_t peer;          /* the neighbour that sends to it: no other group's */
    uint32_t heard, missed; /* results that came by it, or another way, since they were judged */
    uint32_t address;
    uint64_t cookie;
};

/* A socket that receives. */
struct gw_udp_source {
    int fd;                    /* -1: there is none */
    uint32_t drops;            /* by the kernel, as it counted them last */
    struct gw_udp_group group; /* of all but our own */
};

struct gw_udp {
    struct gw_datapath base;
    bool segments; /* the kernel cuts trains */
    struct gw_tx_faults faults;
    int fds[GW_DATAPATH_ENTROPIES_MAX];
    struct gw_udp_source sources[GW_DATAPATH_FDS_MAX]; /* fds[0], and those of groups */
    uint32_t source_count;                             /* with those between that are none */
    uint32_t source;                                   /* the one that something came from last */
    uint32_t in_a_row;                                 /* trains from it */
    struct gw_udp_tx tx;
    struct gw_udp_rx rx;
};

static inline struct gw_udp *gw_udp_of(struct gw_datapath *datapath)
{
    return (struct gw_udp *)datapath;
}

/* What a neighbour's group comes by, or NULL. */
static inline struct gw_udp_source *gw_udp_source_of(struct gw_udp *udp, uint16_t peer)
{
    for (uint32_t i = 1; i < udp->source_count; i++)
        if (udp->sources[i].fd >= 0 && udp->sources[i].group.peer == peer)
            return &udp->sources[i];
    return NULL;
}

static inline const struct gw_udp *gw_udp_of_const(const struct gw_datapath *datapath)
{
    return (const struct gw_udp *)datapath;
}

/* The first byte of a datagram whose payload is in `buf` and whose header takes `hdr_size`. */
static inline uint8_t *gw_udp_datagram(const struct gw_udp *udp, uint32_t buf, uint32_t hdr_size)
{
    return gw_buf_bytes(udp->base.cfg.pool->bufs, buf) - hdr_size;
}

/* Appends a piece of memory to `count` others, or makes the last of them longer; returns how many
 * there are now. */
static inline uint32_t gw_udp_append(struct iovec *iovs, uint32_t count, uint8_t *bytes,
                                     size_t size)
{
    if (count && (uint8_t *)iovs[count - 1].iov_base + iovs[count - 1].iov_len == bytes) {
        iovs[count - 1].iov_len += size;
        return count;
    }
    iovs[count] = (struct iovec){bytes, size};
    return count + 1;
}

/* Claims the buffers that receiving keeps for itself; false when the pool has too few. */
bool gw_udp_rx_init(struct gw_udp *udp);
void gw_udp_rx_fini(struct gw_udp *udp);
bool gw_udp_tx_init(struct gw_udp *udp);
void gw_udp_tx_fini(struct gw_udp *udp);

/* What the names of struct gw_datapath_ops say. */
int gw_udp_receive(struct gw_datapath *datapath, gw_time now, struct gw_datapath_train *train,
                   char *error);
bool gw_udp_can_send(const struct gw_datapath *datapath);
int gw_udp_send(struct gw_datapath *datapath, uint16_t peer, struct gw_pkt **pkts, uint32_t count,
                char *error);
int gw_udp_flush(struct gw_datapath *datapath, char *error);
void gw_udp_send_control(struct gw_datapath *datapath, const struct gw_sock_addr *to,
                         const uint8_t *bytes, uint32_t length);
int gw_udp_blocked_fd(const struct gw_datapath *datapath);

/* The network or a filter is in the way; the transport repairs what is lost meanwhile. */
bool gw_udp_is_transient(int reason);

#endif
