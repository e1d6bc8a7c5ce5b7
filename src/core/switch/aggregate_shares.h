/*
 * Shares of the aggregators of a switch: how many each job has, and how many it is guaranteed.
 *
 * A job has those that it used last, also while they are free, and then anybody may use them next:
 * a window that is under way keeps each of its aggregators only some of the time, and at any moment
 * even a greedy job would have less than its share. Who has less takes over from who has more.
 *
 * Equal shares are of the keys that have jobs first, and then of the jobs of each: who opens many
 * jobs divides his own part. How, matters to no other key: that takes over from any job of a key
 * whose jobs have more than their part together.
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
    uint32_t held;   /* that it used last */
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

/* An aggregator passes from one job to another: their indices + 1; 0: none. */
static inline void gw_aggregate_shares_pass(struct gw_aggregate_shares *shares, uint32_t from,
                                            uint32_t to)
{
    if (from)
        shares->jobs[from - 1].held--;
    if (to)
        shares->jobs[to - 1].held++;
}

/* Whether job `to` may take over an aggregator in which job `from` has a sum; it is counted. */
bool gw_aggregate_shares_take_over(struct gw_aggregate_shares *shares, uint32_t from, uint32_t to);

#endif
