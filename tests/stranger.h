/*
 * A hostile neighbour: a node that has attached with an address of its own, as a server or as a
 * rank of another job, and sends well-formed packets of all kinds to the hosts of a job, of which
 * it knows all but the key: messages of any tag, answers to flows, and job control, gradients,
 * results and notices of that job and of some that it makes up. What it may say is looked at by the
 * first hop (core/permit.h), which is here, or with `is_unchecked` another process; then it also
 * sends in the name of others. Equal seeds send the same.
 */
#ifndef GW_TESTS_STRANGER_H
#define GW_TESTS_STRANGER_H

#include "base/prng.h"
#include "core/node.h"
#include "core/permit.h"

enum {
    GW_STRANGER_TARGETS_MAX = 64,
    GW_STRANGER_JOBS = 0x00bad000, /* that it makes up: their numbers from here on */
};

struct gw_stranger_cfg {
    uint64_t seed;
    uint32_t address;
    uint32_t own_job;                          /* whose rank it is; 0: it is a host of no job */
    uint32_t targets[GW_STRANGER_TARGETS_MAX]; /* addresses of hosts */
    uint32_t target_count;
    uint32_t switch_address; /* of the first of `switches` */
    uint32_t switches;
    uint32_t job;   /* that it disturbs */
    uint16_t epoch; /* of that, if it knows it; 0: it tries the first ones */
    uint32_t seq;   /* with an epoch: about the first fragment without result */
    uint32_t mtu;
    gw_time pause;            /* between two packets, at most */
    struct gw_pkt_pool *pool; /* of its packets; NULL: it has its own */
    bool is_unchecked;
};

struct gw_stranger {
    struct gw_node node;
    struct gw_stranger_cfg cfg;
    struct gw_pkt_pool pool; /* unless cfg.pool */
    struct gw_buf_pool bufs;
    struct gw_prng prng;
    uint16_t ready[1];
    bool is_ready;
    struct gw_permit permit;
    uint64_t sent; /* that the first hop lets pass */
    uint64_t held; /* that it does not: not sent, or if it is another process, dropped there */
};

/* It sends from the clock's `now` on. */
void gw_stranger_open(struct gw_stranger *stranger, const struct gw_stranger_cfg *cfg);

/* It sends nothing more. */
void gw_stranger_hush(struct gw_node *node);

/* Fails the test when a packet is missing. */
void gw_stranger_close(struct gw_stranger *stranger);

/*
 * Fills a packet of any kind that the codec takes (random_pkt.h), of which most are such as
 * somebody may wait for; the payload's buffer, of `mtu` bytes at most, comes out of the pool.
 * Source, destination, key, and the job that it names are for the caller to choose.
 */
void gw_stranger_fill(struct gw_prng *prng, struct gw_pkt_pool *pool, uint32_t mtu, gw_time now,
                      struct gw_pkt *pkt);

/* Whether it names a job, and which it names then. */
bool gw_stranger_names_job(const struct gw_pkt *pkt);
void gw_stranger_name_job(struct gw_pkt *pkt, uint32_t job);

#endif
