/*
 * The network in memory: nodes joined by links that carry encoded bytes, under a clock that is
 * turned by hand.
 *
 * It is the third driver of the four verbs, beside the simulator and the loop, and not a datapath
 * (datapath.h): it stands for the loops, the datapaths and the network of all processes together.
 * No threads, no system calls, no clock. What leaves a port is encoded; what arrives is validated,
 * decoded and put into the receiver's own pool, as if the nodes were processes. Faults are
 * scripted: a test names exactly which packets of a link die, are doubled or come late.
 *
 * Use: open, add nodes, connect their ports, start flows at gw_mem_now(), then step until done.
 * Equal inputs give equal runs.
 */
#ifndef GW_NET_MEM_H
#define GW_NET_MEM_H

#include "core/node.h"

enum {
    GW_MEM_NODES_MAX = 128,
    GW_MEM_LINKS_MAX = 256,
    GW_MEM_BATCH_MAX = 32,
};

struct gw_mem_cfg {
    uint64_t cookie;     /* of the job */
    uint32_t overhead;   /* bytes that a datagram takes on a link beyond its own */
    uint32_t mtu;        /* largest payload */
    uint32_t frames_max; /* datagrams on all links at the same time; more are lost and counted */
    uint32_t batch;      /* most packets in one call of input or output, 1 to GW_MEM_BATCH_MAX */
    gw_time start;       /* what the clock shows at first */
};

/*
 * One direction of a link. In the masks, bit i stands for the packets whose number on this link is
 * i modulo 64; all ones means every packet.
 */
struct gw_mem_link {
    gw_time latency;    /* at least 1 ps */
    uint64_t rate_bps;  /* 0: a packet takes no time to leave */
    uint64_t lose;      /* these packets vanish */
    uint64_t duplicate; /* these arrive twice */
    uint64_t delay;     /* these arrive late, behind packets sent after them */
    gw_time delay_by;   /* how late */
};

/* Counters of one direction, in packets. */
struct gw_mem_stats {
    uint64_t sent;      /* pulled out of the node */
    uint64_t bytes;     /* of these, with the codec's headers */
    uint64_t lost;      /* by script */
    uint64_t doubled;   /* by script: extra copies */
    uint64_t overflow;  /* lost because frames_max was reached */
    uint64_t delivered; /* given to the node */
    uint64_t malformed; /* refused by the codec */
    uint64_t no_room;   /* the receiver's pool was empty, or nobody was there */
};

struct gw_mem;

/* Returns NULL when there is no memory. gw_mem_close() frees everything but the nodes and pools. */
struct gw_mem *gw_mem_open(const struct gw_mem_cfg *cfg);
void gw_mem_close(struct gw_mem *mem);

/* Adds a node whose packets live in `pool`, and returns its number. Both must outlive `mem`. */
uint32_t gw_mem_add(struct gw_mem *mem, struct gw_node *node, struct gw_pkt_pool *pool);

/*
 * Puts another node in the place of `number`, as when a process dies and comes back: what is under
 * way to it arrives there. NULL: nobody is there, and what arrives is lost.
 */
void gw_mem_replace(struct gw_mem *mem, uint32_t number, struct gw_node *node,
                    struct gw_pkt_pool *pool);

/* Connects one direction and returns the link's number. A port has at most one link out. */
uint32_t gw_mem_connect(struct gw_mem *mem, uint32_t from, uint16_t from_port, uint32_t to,
                        uint16_t to_port, const struct gw_mem_link *link);

/* Changes latency, rate or script from the next packet on. */
void gw_mem_change(struct gw_mem *mem, uint32_t link, const struct gw_mem_link *cfg);

/*
 * Goes to the next instant at which something happens, and lets it happen: departures, then
 * arrivals, then timers. Returns false when nothing is left to do until `until`; the clock then
 * shows `until`, unless that is GW_TIME_NEVER.
 */
bool gw_mem_step(struct gw_mem *mem, gw_time until);

gw_time gw_mem_now(const struct gw_mem *mem);
const struct gw_mem_stats *gw_mem_stats(const struct gw_mem *mem, uint32_t link);

#endif
