/* How many workers a gradient stands for; see aggregate.h. */
#include "core/switch/aggregate.h"

uint32_t gw_aggregate_workers_unknown(const struct gw_pkt *pkt)
{
    bool is_slot = pkt->agg_flags & GW_AGG_SLOT;
    if (pkt->agg.level > 0 && !is_slot)
        return GW_AGGREGATE_WORKERS_ALL;
    uint32_t workers = 0;
    for (uint32_t rest = pkt->agg.bitmap; rest; rest &= rest - 1)
        workers++;
    return workers ? workers : 1;
}

/* Workers behind those of a job's positions that are in the bitmap. */
static uint32_t workers_of(const struct gw_aggregate_job *job, uint32_t bitmap)
{
    uint32_t positions = UINT32_MAX >> (GW_FAN_IN_MAX - job->fan_in);
    uint32_t workers = 0;
    for (bitmap &= positions; bitmap; bitmap &= bitmap - 1)
        workers += job->workers ? job->workers[__builtin_ctz(bitmap)] : 1;
    return workers ? workers : 1;
}

uint32_t gw_aggregate_workers(struct gw_aggregate *aggregate, const struct gw_pkt *pkt)
{
    const struct gw_aggregate_job *job = gw_aggregate_job(aggregate, pkt->flow);
    if (job && job->epoch == pkt->epoch && pkt->agg.level == job->level)
        return workers_of(job, pkt->agg.bitmap);
    if (job && job->epoch == pkt->epoch && pkt->agg.level == job->level + 1)
        return workers_of(job, UINT32_MAX);
    return gw_aggregate_workers_unknown(pkt);
}
