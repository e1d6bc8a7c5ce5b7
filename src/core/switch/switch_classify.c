/* Whose packet it is, and what it is to a switch; see switch_classify.h. */
#include "core/switch/switch_classify.h"

#include "base/error.h"
#include "core/job.h"

static enum gw_switch_traffic classify_job(const struct gw_switch_classify *stage,
                                           const struct gw_pkt *pkt)
{
    if (pkt->agg_flags == GW_JOB_JOIN || pkt->agg_flags == GW_JOB_READY)
        return GW_TRAFFIC_WORKER;
    bool is_for_switches = pkt->agg_flags == GW_JOB_INSTALL || pkt->agg_flags == GW_JOB_REMOVE;
    return is_for_switches && stage->has_aggregators && pkt->job.word[2] == stage->address
               ? GW_TRAFFIC_OWN
               : GW_TRAFFIC_PLAIN;
}

enum gw_switch_traffic gw_switch_classify_other(const struct gw_switch_classify *stage,
                                                const struct gw_pkt *pkt)
{
    switch (pkt->q.kind) {
    case GW_PKT_GRAD:
        if (pkt->agg_flags & GW_AGG_SLOT)
            return stage->has_slots ? GW_TRAFFIC_SLOT : GW_TRAFFIC_PLAIN;
        return stage->has_aggregators ? GW_TRAFFIC_TENSOR : GW_TRAFFIC_PLAIN;
    case GW_PKT_PARAM:
        return stage->has_aggregators && !(pkt->agg_flags & GW_AGG_SLOT) ? GW_TRAFFIC_TENSOR
                                                                         : GW_TRAFFIC_PLAIN;
    case GW_PKT_JOB:
        return classify_job(stage, pkt);
    case GW_PKT_PAUSE:
        return stage->is_lossless ? GW_TRAFFIC_PAUSE : GW_TRAFFIC_PLAIN;
    default:
        return GW_TRAFFIC_PLAIN;
    }
}

int gw_switch_classify_sender(const struct gw_switch_classify *stage, const struct gw_pkt *pkt,
                              uint16_t in, bool is_edge, gw_time now)
{
    /* Nobody's address is no sender's, and a PAUSE has none. */
    if (pkt->src == GW_ADDRESS_NONE || pkt->q.kind == GW_PKT_PAUSE)
        return GW_ERR_INVALID;
    if (is_edge && in != stage->uplink)
        return gw_learned_is_at(stage->learned, pkt->src, in) ? GW_OK : GW_ERR_INVALID;
    int code = gw_learned_note(stage->learned, pkt->src, in, now);
    /* What is above is known without a place, too. */
    return code == GW_ERR_NO_ROOM && in == stage->uplink ? GW_OK : code;
}
