/* Adding up and multiplying in a switch; see switch_aggregate.h. */
#include "core/switch/switch_aggregate.h"

/* Whether a result on its way to `dst` is for all below this switch, not for others beyond it. */
static bool is_member(const struct gw_aggregate_job *job, uint32_t dst)
{
    for (uint32_t i = 0; i < job->member_count; i++)
        if (job->members[i] == dst)
            return true;
    return false;
}

/* A result frees its aggregator here and goes on to all members of its job below this switch. One
 * that is not the server's changes nothing. */
static enum gw_switch_verdict multiply(const struct gw_switch_aggregate *stage,
                                       const struct gw_pkt *pkt, struct gw_switch_copies *copies,
                                       gw_time now)
{
    const struct gw_aggregate_job *job = gw_aggregate_job(stage->aggregators, pkt->flow);
    if (job && job->server != GW_ADDRESS_NONE && job->server != pkt->src)
        return GW_SWITCH_PASS;
    gw_aggregate_parameter(stage->aggregators, pkt, now);
    if (!job || job->epoch != pkt->epoch || pkt->agg_flags & GW_AGG_UNICAST ||
        !is_member(job, pkt->dst))
        return GW_SWITCH_PASS;
    *copies = (struct gw_switch_copies){.dsts = job->members, .count = job->member_count};
    return GW_SWITCH_COPY;
}

bool gw_switch_aggregate_is_own(const struct gw_switch_aggregate *stage, const struct gw_pkt *pkt)
{
    const struct gw_aggregate_job *job = gw_aggregate_job(stage->aggregators, pkt->flow);
    if (!job || job->server == GW_ADDRESS_NONE)
        return true;
    if (pkt->q.kind == GW_PKT_PARAM)
        return pkt->src == job->server;
    uint32_t bit = pkt->agg.bitmap;
    return job->epoch != pkt->epoch ||
           (pkt->agg.level == job->level && bit && (bit & (bit - 1)) == 0 &&
            (uint32_t)__builtin_ctz(bit) < job->fan_in &&
            job->members[__builtin_ctz(bit)] == pkt->src);
}

/* While anything is held, the sweep looks after what nobody will come for. */
static void arm_sweep(struct gw_switch_aggregate *stage, gw_time now)
{
    const struct gw_aggregate_cfg *cfg = gw_aggregate_cfg(stage->aggregators);
    if (gw_aggregate_taken(stage->aggregators) && cfg->reclaim == GW_AGG_RECLAIM_SWEEP)
        gw_switch_timer_set(stage->timers, GW_SWITCH_TIMER_SWEEP, gw_time_add(now, cfg->leak));
}

enum gw_switch_verdict gw_switch_aggregate(struct gw_switch_aggregate *stage, struct gw_pkt *pkt,
                                           enum gw_switch_traffic traffic,
                                           struct gw_switch_copies *copies, gw_time now)
{
    if (traffic == GW_TRAFFIC_SLOT) {
        copies->count = gw_slots_gradient(stage->slots, pkt, &copies->dsts);
        return copies->count ? GW_SWITCH_COPY : GW_SWITCH_TAKEN;
    }
    enum gw_switch_verdict verdict = GW_SWITCH_PASS;
    copies->beside = NULL;
    if (pkt->q.kind == GW_PKT_PARAM)
        verdict = multiply(stage, pkt, copies, now);
    else if (!gw_aggregate_gradient(stage->aggregators, pkt, now))
        verdict = GW_SWITCH_TAKEN;
    else
        copies->beside = gw_aggregate_take_beside(stage->aggregators);
    if (!gw_switch_timer_is_armed(stage->timers, GW_SWITCH_TIMER_SWEEP))
        arm_sweep(stage, now);
    return verdict;
}

uint32_t gw_switch_aggregate_workers(const struct gw_switch_aggregate *stage,
                                     const struct gw_pkt *pkt)
{
    if (stage->aggregators && !(pkt->agg_flags & GW_AGG_SLOT))
        return gw_aggregate_workers(stage->aggregators, pkt);
    return gw_aggregate_workers_unknown(pkt);
}

void gw_switch_aggregate_sweep(struct gw_switch_aggregate *stage, gw_time now)
{
    gw_aggregate_sweep(stage->aggregators, now);
    arm_sweep(stage, now);
}
