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
#include "core/tenants.h"

/* Of one job, by the index that it has in the stage. */
struct gw_aggregate_share {
    uint32_t key;    /* of its number */
    uint32_t tenant; /* whose it is: gw_tenants_of() */
    uint32_t held;
    uint32_t guaranteed;
    bool is_there;
};

struct gw_aggregate_shares {
    struct gw_aggregate_share *jobs;
    uint32_t jobs_max;
    uint32_t aggregators; /* of the switch */
    uint32_t fixed;       /* of each job, or GW_AGGREGATE_SHARE_EQUAL */
    const struct gw_tenants *tenants;
    uint64_t yielded[GW_TENANTS_MAX + 1]; /* by jobs of each tenant; the last is of strangers */
};

/* Takes the memory out of the arena: cleared, it is empty. The tenants must outlive it. */
void gw_aggregate_shares_carve(struct gw_aggregate_shares *shares, uint32_t jobs_max,
                               const struct gw_tenants *tenants, struct gw_arena *arena);

/* A job comes, with no aggregators; and goes. The shares of all others may change. */
void gw_aggregate_shares_enter(struct gw_aggregate_shares *shares, uint32_t index, uint32_t job);
void gw_aggregate_shares_leave(struct gw_aggregate_shares *shares, uint32_t index);

/* Adds the aggregators of a tenant's jobs. */
void gw_aggregate_shares_use(const struct gw_aggregate_shares *shares, uint32_t who,
                             struct gw_tenant_use *use);

/* Whether job `to` may take over an aggregator that job `from` has: `from` is above its share, and
 * `to` below. */
static inline bool gw_aggregate_shares_yields(const struct gw_aggregate_shares *shares,
                                              uint32_t from, uint32_t to)
{
    const struct gw_aggregate_share *has = &shares->jobs[from], *wants = &shares->jobs[to];
    return has->held > has->guaranteed && wants->held < wants->guaranteed;
}

#endif
