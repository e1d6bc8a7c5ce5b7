/*
 * Trimming: a data packet that finds the queue full loses its payload, and its header goes on
 * through the control queue, so that the receiver can ask for it at once (SMaRTT-REPS, section 3.3;
 * NDP, section 3.1). Marks like red.
 *
 * The victim is the arrival, or at random the packet at the tail of the queue, which breaks the
 * lockstep in which senders otherwise always hit the same place of a full queue.
 *
 * Invariant: a data packet that allows it is never dropped while the control queue has room.
 */
#include "core/qdisc/lanes.h"

enum trim_victim {
    VICTIM_ARRIVAL,
    VICTIM_RANDOM_TAIL, /* the arrival or the tail, with equal chance */
};

struct trim_cfg {
    struct gw_lanes_cfg lanes;
    uint32_t victim; /* enum trim_victim */
};

static void trim_init(void *state, const void *config, uint32_t capacity)
{
    const struct trim_cfg *cfg = config;
    gw_lanes_init(state, &cfg->lanes, capacity);
}

static uint32_t cut_size(const struct gw_qdisc_port *port, const struct gw_pkt *pkt)
{
    return pkt->q.size < port->trim_size ? pkt->q.size : port->trim_size;
}

static void trim_push(struct gw_lanes *lanes, const struct gw_qdisc_port *port, struct gw_pkt *pkt)
{
    gw_qdisc_cut(port, pkt);
    gw_lanes_push_control(lanes, port, pkt);
}

/*
 * Gives the place of the tail to the arrival and trims the tail. The queue is singly linked, so the
 * packets stay where they are and exchange contents. False when the tail cannot make room.
 */
static bool trim_tail(struct gw_lanes *lanes, const struct gw_qdisc_port *port, struct gw_pkt *pkt,
                      uint64_t pool_free)
{
    struct gw_pkt_fifo *data = &lanes->queues[GW_LANE_DATA];
    if (data->count == 0)
        return false;
    struct gw_pkt *tail = gw_pkt_at(port->pool, data->tail);
    uint32_t cut = cut_size(port, tail);
    uint32_t others = data->bytes - tail->q.size;
    uint64_t growth = (uint64_t)pkt->q.size + cut;
    growth -= growth < tail->q.size ? growth : tail->q.size;
    if (!(tail->q.flags & GW_PKT_TRIMMABLE) ||
        pkt->q.size > lanes->capacity[GW_LANE_DATA] - others || growth > pool_free ||
        !gw_lanes_fits(lanes, GW_LANE_CONTROL, cut, UINT64_MAX))
        return false;

    struct gw_pkt arrival = *pkt;
    *pkt = *tail;
    *tail = arrival;
    data->bytes = others + tail->q.size;
    lanes->base.backlog += tail->q.size;
    lanes->base.backlog -= pkt->q.size;
    if (lanes->red.mark == GW_RED_ENQUEUE)
        gw_red_mark(&lanes->red, &lanes->base, port->prng, tail, data->bytes);
    trim_push(lanes, port, pkt);
    return true;
}

static enum gw_qdisc_verdict trim_enqueue(void *state, const void *config,
                                          const struct gw_qdisc_port *port, struct gw_pkt *pkt,
                                          uint64_t pool_free, struct gw_pkt **victim)
{
    struct gw_lanes *lanes = state;
    const struct trim_cfg *cfg = config;
    if (gw_lanes_push(lanes, port, pkt, pool_free))
        return GW_QDISC_QUEUED;
    *victim = pkt;
    if (pkt->q.class == GW_CLASS_CONTROL)
        return GW_QDISC_DROPPED;
    if (cfg->victim == VICTIM_RANDOM_TAIL && gw_prng_next(port->prng) >> 63 &&
        trim_tail(lanes, port, pkt, pool_free))
        return GW_QDISC_TRIMMED;
    if (!(pkt->q.flags & GW_PKT_TRIMMABLE) ||
        !gw_lanes_fits(lanes, GW_LANE_CONTROL, cut_size(port, pkt), pool_free))
        return GW_QDISC_DROPPED;
    trim_push(lanes, port, pkt);
    return GW_QDISC_TRIMMED;
}

static bool trim_mark_at(void *state, const void *config, uint32_t bytes)
{
    struct gw_lanes *lanes = state;
    const struct trim_cfg *cfg = config;
    gw_red_init(&lanes->red, &cfg->lanes.red, lanes->capacity[GW_LANE_DATA], bytes);
    return cfg->lanes.red.mark != GW_RED_OFF;
}

static const struct gw_param params[] = {
    GW_RED_PARAMS(struct trim_cfg, lanes.red),
    GW_LANES_PARAMS(struct trim_cfg, lanes),
    {
        .name = "victim",
        .type = GW_PARAM_ENUM,
        .offset = offsetof(struct trim_cfg, victim),
        .initial = "arrival",
        .choices = "arrival|random_tail",
        .help = "which packet a full queue trims: the arrival, or with chance 1/2 the one at the "
                "tail (the authors' simulator; NDP)",
    },
};

static const struct gw_preset presets[] = {
    {.name = "paper", .settings = "", .help = "the text of SMaRTT-REPS: the defaults"},
    {
        .name = "drafts",
        .settings = "victim=random_tail " GW_LANES_DRAFTS,
        .help = "as the authors of SMaRTT-REPS ran it",
    },
};

const struct gw_qdisc_ops gw_qdisc_trim = {
    .algo =
        {
            .name = "trim",
            .summary = "trims instead of dropping, marks with CE between two thresholds",
            .source = "SMaRTT-REPS, section 3.3; NDP (SIGCOMM 2017), section 3.1",
            .params = params,
            .presets = presets,
            .param_count = sizeof(params) / sizeof(params[0]),
            .preset_count = sizeof(presets) / sizeof(presets[0]),
            .check = gw_lanes_check,
            .cfg_size = sizeof(struct trim_cfg),
            .state_size = sizeof(struct gw_lanes),
        },
    .init = trim_init,
    .enqueue = trim_enqueue,
    .dequeue = gw_lanes_dequeue,
    .foresee = gw_lanes_foresee,
    .delays_control = gw_lanes_delay_control,
    .mark_at = trim_mark_at,
};
