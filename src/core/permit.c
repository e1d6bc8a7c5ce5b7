/* What a host may say; see permit.h. */
#include "core/permit.h"

#include "core/job.h"

/* Who says it: a worker, or the server; a switch never hangs on a host's link. */
static bool is_workers(uint8_t op)
{
    return op == GW_JOB_JOIN || op == GW_JOB_READY || op == GW_JOB_LEAVE;
}

static bool is_servers(uint8_t op)
{
    return op < GW_JOB_OPS && op != GW_JOB_INSTALLED && !is_workers(op);
}

/* Whether values would be served before everybody's, as control is. */
static bool poses_as_control(const struct gw_pkt *pkt)
{
    bool has_values =
        pkt->q.kind == GW_PKT_DATA || pkt->q.kind == GW_PKT_GRAD || pkt->q.kind == GW_PKT_PARAM;
    return has_values && pkt->q.class == GW_CLASS_CONTROL && !(pkt->q.flags & GW_PKT_TRIMMED);
}

/* Slots have no server: results are made by switches. */
bool gw_permit_allows(const struct gw_permit *permit, const struct gw_pkt *pkt)
{
    if (pkt->src != permit->address || poses_as_control(pkt))
        return false;
    bool is_rank = permit->job != 0;
    switch (pkt->q.kind) {
    case GW_PKT_GRAD:
        return is_rank && gw_job_has_shard(permit->job, pkt->flow);
    case GW_PKT_PARAM:
        return !is_rank;
    case GW_PKT_JOB:
        return is_rank ? is_workers(pkt->agg_flags) && gw_job_has_shard(permit->job, pkt->flow)
                       : is_servers(pkt->agg_flags);
    case GW_PKT_NOTICE:
        return pkt->notice.is_answer || (is_rank && gw_job_has_shard(permit->job, pkt->notice.job));
    case GW_PKT_PAUSE:
        return false; /* of a link that is configured lossless, of which there is none here */
    default:
        return true;
    }
}
