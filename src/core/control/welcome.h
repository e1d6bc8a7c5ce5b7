/*
 * What a WELCOME says, and whether it can be: the one place where a job's terms are looked at,
 * before anything is made of them. A server is a stranger like any other peer.
 *
 * Invariant: a worker can be made of every WELCOME that is taken, with memory for a window that is
 * not larger than it was made for.
 */
#ifndef GW_CORE_WELCOME_H
#define GW_CORE_WELCOME_H

#include "core/job.h"

/* What a worker was made for. */
struct gw_welcome_limits {
    uint16_t world;      /* workers of its job; 0: as many as there are */
    uint32_t values_max; /* elements per fragment; 0: as many as a packet can say, as is
                            window_max, in fragments */
    uint32_t window_max;
};

/* A WELCOME; see job.h. */
struct gw_welcome {
    uint16_t epoch;
    uint16_t share;
    int8_t scale_exponent;
    uint32_t first_seq;
    struct gw_job_terms terms;
};

enum gw_welcome_verdict {
    GW_WELCOME_POSSIBLE,
    GW_WELCOME_MALFORMED, /* nobody says so who keeps to the protocol */
    GW_WELCOME_BEYOND,    /* not what the worker was made for */
};

/* Reads a WELCOME to the worker that wants `rank`, or GW_RANK_NONE. */
enum gw_welcome_verdict gw_welcome_read(struct gw_welcome *welcome, const struct gw_pkt *pkt,
                                        const struct gw_welcome_limits *limits, uint16_t rank);

/* Whether a worker that was made of the one can go on with the other: what sums depend on is the
 * same. A server that restarts may have another configuration. */
bool gw_welcome_agrees(const struct gw_welcome *made, const struct gw_welcome *welcome);

#endif
