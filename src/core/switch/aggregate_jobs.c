/* The jobs that a switch adds up for; see aggregate.h. */
#include <string.h>

#include "base/error.h"
#include "core/switch/aggregate_impl.h"

/* A job ends, or an epoch of it: its numbers may come again, and mean something else. */
static void aggregators_leave(struct gw_aggregate *aggregate, const struct gw_aggregate_job *job)
{
    const uint32_t owner = (uint32_t)(job - aggregate->jobs) + 1;
    for (uint32_t i = 0; i < aggregate->cfg.aggregators; i++) {
        struct gw_aggregator *aggregator = &aggregate->aggregators[i];
        aggregator->is_ahead &= aggregator->job != job->job;
        if (aggregator->owner != owner)
            continue;
        gw_aggregate_shares_pass(&aggregate->shares, owner, 0);
        aggregator->owner = 0;
        if (aggregator->state == GW_AGGREGATOR_TAKEN &&
            aggregate->cfg.reclaim == GW_AGG_RECLAIM_RESULTS)
            aggregator->state = GW_AGGREGATOR_LEFT;
        else if (aggregator->state == GW_AGGREGATOR_TAKEN)
            gw_aggregator_free(aggregate, aggregator);
    }
}

/* Takes a job's members out of the array and closes the gap. */
static void members_remove(struct gw_aggregate *aggregate, struct gw_aggregate_job *job)
{
    uint32_t first = (uint32_t)(job->members - aggregate->members);
    uint32_t behind = first + job->member_count;
    memmove(aggregate->members + first, aggregate->members + behind,
            (aggregate->member_count - behind) * sizeof(*aggregate->members));
    memmove(aggregate->workers + first, aggregate->workers + behind,
            (aggregate->member_count - behind) * sizeof(*aggregate->workers));
    for (uint32_t i = 0; i < aggregate->cfg.jobs_max; i++) {
        struct gw_aggregate_job *other = &aggregate->jobs[i];
        if (other->members <= job->members)
            continue;
        other->members -= job->member_count;
        other->workers -= other->workers ? job->member_count : 0;
    }
    aggregate->member_count -= job->member_count;
    *job = (struct gw_aggregate_job){0};
    aggregate->last_job = NULL;
}

int gw_aggregate_install(struct gw_aggregate *aggregate, const struct gw_aggregate_job *job)
{
    GW_ASSERT(job->fan_in >= 1 && job->fan_in <= GW_FAN_IN_MAX && job->level < GW_LEVELS_MAX);
    GW_ASSERT(job->member_count >= 1 && (!job->workers || job->fan_in <= job->member_count));
    struct gw_aggregate_job *known = gw_aggregate_find(aggregate, job->job);
    uint32_t reclaimed = known ? known->member_count : 0;
    if (aggregate->member_count - reclaimed + job->member_count > aggregate->cfg.members_max)
        return GW_ERR_NO_ROOM;
    if (known) {
        aggregators_leave(aggregate, known);
        members_remove(aggregate, known);
    } else {
        uint32_t free = 0;
        while (free < aggregate->cfg.jobs_max && aggregate->jobs[free].member_count)
            free++;
        if (free == aggregate->cfg.jobs_max ||
            gw_map_put(&aggregate->job_map, job->job, free) != GW_OK)
            return GW_ERR_NO_ROOM;
        known = &aggregate->jobs[free];
        gw_aggregate_shares_enter(&aggregate->shares, free, job->job);
    }
    uint32_t *members = aggregate->members + aggregate->member_count;
    uint16_t *workers = aggregate->workers + aggregate->member_count;
    memcpy(members, job->members, job->member_count * sizeof(*members));
    if (job->workers)
        memcpy(workers, job->workers, job->fan_in * sizeof(*workers));
    aggregate->member_count += job->member_count;
    *known = *job;
    known->members = members;
    known->workers = job->workers ? workers : NULL;
    return GW_OK;
}

void gw_aggregate_remove(struct gw_aggregate *aggregate, uint32_t job)
{
    struct gw_aggregate_job *known = gw_aggregate_find(aggregate, job);
    if (!known)
        return;
    aggregators_leave(aggregate, known);
    members_remove(aggregate, known);
    gw_map_remove(&aggregate->job_map, job);
    gw_aggregate_shares_leave(&aggregate->shares, (uint32_t)(known - aggregate->jobs));
}

const struct gw_aggregate_job *gw_aggregate_job(struct gw_aggregate *aggregate, uint32_t job)
{
    return gw_aggregate_find(aggregate, job);
}
