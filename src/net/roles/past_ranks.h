/*
 * Ranks whose job is over for them, whether they know it or not: given up, or not heard when it
 * ended. One that speaks again, as after a cut or a stop, must not take part in the next job of the
 * same number: it is told that its own is over.
 *
 * The newest are remembered, of each part of all keys as many: so nobody makes others' be
 * forgotten unless their keys share a part.
 */
#ifndef GW_NET_PAST_RANKS_H
#define GW_NET_PAST_RANKS_H

#include "core/job.h"

enum {
    GW_PAST_RANKS_PARTS = 8,
    GW_PAST_RANKS_EACH = 512,
};

struct gw_past_rank {
    uint32_t job; /* 0: none */
    uint32_t address;
};

/* All 0: none is remembered. */
struct gw_past_ranks {
    struct gw_past_rank ranks[GW_PAST_RANKS_PARTS][GW_PAST_RANKS_EACH];
    uint16_t next[GW_PAST_RANKS_PARTS];
};

static inline bool gw_past_ranks_has(const struct gw_past_ranks *past, uint32_t job,
                                     uint32_t address)
{
    const struct gw_past_rank *ranks = past->ranks[gw_job_key(job) % GW_PAST_RANKS_PARTS];
    for (uint32_t i = 0; i < GW_PAST_RANKS_EACH; i++)
        if (ranks[i].job == job && ranks[i].address == address)
            return true;
    return false;
}

static inline void gw_past_ranks_add(struct gw_past_ranks *past, uint32_t job, uint32_t address)
{
    uint32_t part = gw_job_key(job) % GW_PAST_RANKS_PARTS;
    if (gw_past_ranks_has(past, job, address))
        return;
    past->ranks[part][past->next[part]] = (struct gw_past_rank){job, address};
    past->next[part] = (uint16_t)((past->next[part] + 1) % GW_PAST_RANKS_EACH);
}

#endif
