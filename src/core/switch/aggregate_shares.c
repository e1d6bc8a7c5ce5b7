/* Shares of aggregators; see aggregate_shares.h. */
#include "core/switch/aggregate_shares.h"

#include "core/job.h"
#include "core/switch/aggregate.h"

void gw_aggregate_shares_carve(struct gw_aggregate_shares *shares, uint32_t jobs_max,
                               const struct gw_tenants *tenants, struct gw_arena *arena)
{
    shares->jobs_max = jobs_max;
    shares->tenants = tenants;
    shares->jobs = gw_arena_take(arena, jobs_max * sizeof(*shares->jobs));
}

/* Jobs of the key of job `index`, itself among them; *is_first: none before it has the key. */
static uint32_t siblings(const struct gw_aggregate_shares *shares, uint32_t index, bool *is_first)
{
    const uint32_t key = shares->jobs[index].key;
    uint32_t count = 0;
    *is_first = true;
    for (uint32_t i = 0; i < shares->jobs_max; i++) {
        if (!shares->jobs[i].is_there || shares->jobs[i].key != key)
            continue;
        *is_first &= i >= index;
        count++;
    }
    return count;
}

static void divide(struct gw_aggregate_shares *shares)
{
    uint32_t keys = 0;
    bool is_first;
    for (uint32_t i = 0; i < shares->jobs_max; i++)
        if (shares->jobs[i].is_there)
            keys += siblings(shares, i, &is_first) && is_first;
    for (uint32_t i = 0; i < shares->jobs_max; i++)
        if (shares->jobs[i].is_there)
            shares->jobs[i].guaranteed =
                shares->aggregators / keys / siblings(shares, i, &is_first);
}

void gw_aggregate_shares_enter(struct gw_aggregate_shares *shares, uint32_t index, uint32_t job)
{
    shares->jobs[index] = (struct gw_aggregate_share){
        .key = gw_job_key(job),
        .tenant = gw_tenants_of(shares->tenants, job),
        .guaranteed = shares->fixed,
        .is_there = true,
    };
    if (shares->fixed == GW_AGGREGATE_SHARE_EQUAL)
        divide(shares);
}

void gw_aggregate_shares_leave(struct gw_aggregate_shares *shares, uint32_t index)
{
    shares->jobs[index] = (struct gw_aggregate_share){.is_there = false};
    if (shares->fixed == GW_AGGREGATE_SHARE_EQUAL)
        divide(shares);
}

bool gw_aggregate_shares_take_over(struct gw_aggregate_shares *shares, uint32_t from, uint32_t to)
{
    const struct gw_aggregate_share *has = &shares->jobs[from], *wants = &shares->jobs[to];
    uint32_t held = has->held, guaranteed = has->guaranteed;
    if (wants->held >= wants->guaranteed)
        return false;
    bool is_of_keys = shares->fixed == GW_AGGREGATE_SHARE_EQUAL && has->key != wants->key;
    for (uint32_t i = 0; is_of_keys && i < shares->jobs_max; i++)
        if (i != from && shares->jobs[i].is_there && shares->jobs[i].key == has->key) {
            held += shares->jobs[i].held;
            guaranteed += shares->jobs[i].guaranteed;
        }
    shares->yielded[has->tenant] += held > guaranteed;
    return held > guaranteed;
}

void gw_aggregate_shares_use(const struct gw_aggregate_shares *shares, uint32_t who,
                             struct gw_tenant_use *use)
{
    for (uint32_t i = 0; i < shares->jobs_max; i++)
        if (shares->jobs[i].is_there && shares->jobs[i].tenant == who)
            use->aggregators += shares->jobs[i].held;
    use->yielded += shares->yielded[who];
}
