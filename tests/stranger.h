/*
 * A hostile neighbour: a node that has attached with an address of its own, as a server or as a
 * rank of another job, and sends well-formed packets of all kinds to the hosts of a job, of which
 * it knows all but the key: messages of any tag, answers to flows, and job control, gradients and
 * results of that job and of some that it makes up. What it may say is looked at by the first hop
 * (core/permit.h). Equal seeds send the same.
 */
#ifndef GW_TESTS_STRANGER_H
#define GW_TESTS_STRANGER_H

#include "base/prng.h"
#include "core/node.h"
#include "core/permit.h"

struct gw_stranger_cfg {
    uint64_t seed;
    uint32_t address;
    uint32_t first_target, targets; /* addresses of hosts */
    uint32_t switch_address;        /* of the first of `switches` */
    uint32_t switches;
    uint32_t job; /* that it disturbs */
    uint32_t mtu;
    gw_time pause; /* between two packets, at most */
};

struct gw_stranger {
    struct gw_node node;
    struct gw_stranger_cfg cfg;
    struct gw_pkt_pool pool;
    struct gw_buf_pool bufs;
    struct gw_prng prng;
    uint16_t ready[1];
    bool is_ready;
    struct gw_permit permit;
    uint64_t sent;
    uint64_t held; /* by the first hop */
};

/* It sends from the clock's `now` on. */
void gw_stranger_open(struct gw_stranger *stranger, const struct gw_stranger_cfg *cfg);

/* It sends nothing more. */
void gw_stranger_hush(struct gw_node *node);

/* Fails the test when a packet is missing. */
void gw_stranger_close(struct gw_stranger *stranger);

/* Fills a packet that the codec takes, but for source and destination; the payload's buffer comes
 * out of the pool. */
void gw_stranger_fill(struct gw_prng *prng, struct gw_pkt_pool *pool, uint32_t mtu,
                      struct gw_pkt *pkt);

#endif
