/*
 * Shares of the aggregators of a switch: how many each job has, and how many it is guaranteed.
 *
 * Equal shares are of the keys that have jobs first, and then of the jobs of each: who opens many
 * jobs divides his own part.
 *
 * Invariant: with equal shares, what all jobs are guaranteed together is at most all there are.
 */
#ifndef GW_CORE_AGGREGATE_SHARES_H
#define GW_CORE_AGGREGATE_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* Of one job, by the index that it has in the stage. */
struct gw_aggregate_share {
    uint32_t key; /* of its number */
    uint32_t held;
    uint32_t guaranteed;
    bool is_there;
};

struct gw_aggregate_shares {
    struct gw_aggregate_share *jobs;
    uint32_t jobs_max;
    uint32_t aggregators;
    uint32_t fixed; /* of each job, or GW_AGGREGATE_SHARE_EQUAL */
};

/* Takes the memory out of the arena: cleared, it is empty. */
void gw_aggregate_shares_carve(struct gw_aggregate_shares *shares, uint32_t jobs_max,
                               struct gw_arena *arena);

/* A job comes, with no aggregators; and goes. The shares of all others may change. */
void gw_aggregate_shares_enter(struct gw_aggregate_shares *shares, uint32_t index, uint32_t job);
void gw_aggregate_shares_leave(struct gw_aggregate_shares *shares, uint32_t index);

/* Whether job `to` may take over an aggregator that job `from` has: `from` is above its share, and
 * `to` below. */
static inline bool gw_aggregate_shares_yields(const struct gw_aggregate_shares *shares,
                                              uint32_t from, uint32_t to)
{
    const struct gw_aggregate_share *has = &shares->jobs[from], *wants = &shares->jobs[to];
    return has->held > has->guaranteed && wants->held < wants->guaranteed;
}

#endif
