/*
 * Strict priority (strict.h) that drops by worth: DLCP, sections 3.2.2 and 4.2.
 *
 * Each data queue has a threshold, S. A packet that meets more than S bytes in its queue is dropped
 * if it is unimportant (Not-ECT), and marked with CE if it is important. So the important ones of a
 * queue have all the room beyond S, and control is never dropped by worth. By default the threshold
 * of class 6, the front-most layers, is the lowest: what is served first is dropped first.
 *
 * A queue may have a limit, L (appendix B), not below S: it takes nothing while it holds more than
 * L bytes. Without one, only the capacity and the pool bound what is important.
 *
 * Lists name queues in the order of service: the first value is of class 6, the seventh of best
 * effort. The last value holds for the queues behind it.
 *
 * Invariant: strict.h; an unimportant packet leaves a queue with at most S bytes and its own size.
 */
#include "core/qdisc/strict.h"

struct dlcp_cfg {
    uint64_t threshold; /* T, bytes */
    gw_q16 step;        /* d */
    struct gw_size_list thresholds;
    struct gw_size_list limits;
    gw_q16 control;
};

struct dlcp {
    struct gw_strict queues;
    uint32_t thresholds[GW_CLASS_CONTROL]; /* bytes, by class; UINT32_MAX: none */
};

_Static_assert(sizeof(struct dlcp) <= GW_QDISC_STATE_MAX, "state fits");
_Static_assert((int)GW_SIZES_MAX == GW_CLASS_CONTROL, "a list has a value per data queue");

/* No queue holds more than that. */
static uint32_t clamp(uint64_t bytes)
{
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

/* A list's value for a class; `none` when the list is empty. */
static uint32_t listed(const struct gw_size_list *list, uint32_t class, uint32_t none)
{
    uint64_t queue = GW_CLASS_DATA_MAX - class;
    if (list->count == 0)
        return none;
    return clamp(list->bytes[queue < list->count ? queue : list->count - 1]);
}

static uint32_t limit_of(const struct dlcp_cfg *cfg, uint32_t class)
{
    return listed(&cfg->limits, class, UINT32_MAX);
}

/* T (1 + (j - 1) d) in the queue that is served as number j: 1 for class 6, 7 for best effort. */
static uint32_t arithmetic(const struct dlcp_cfg *cfg, uint32_t class)
{
    const gw_q16 largest = 16384 * GW_Q16_ONE;
    gw_q16 step = cfg->step < -largest ? -largest : cfg->step < largest ? cfg->step : largest;
    gw_q16 factor = GW_Q16_ONE + (gw_q16)(GW_CLASS_DATA_MAX - class) * step;
    return gw_red_share(factor, clamp(cfg->threshold));
}

static uint32_t threshold_of(const struct dlcp_cfg *cfg, uint32_t class)
{
    return listed(&cfg->thresholds, class, arithmetic(cfg, class));
}

static const char *dlcp_check(const void *config)
{
    const struct dlcp_cfg *cfg = config;
    if (GW_Q16_ONE + GW_CLASS_DATA_MAX * cfg->step < 0)
        return "step: below -1/6 the threshold of best effort would be below 0";
    for (uint32_t class = 0; class < GW_CLASS_CONTROL; class ++)
        if (limit_of(cfg, class) < threshold_of(cfg, class))
            return "limits: no queue's limit may be below its threshold, from which on it drops "
                   "what is unimportant";
    return NULL;
}

static void dlcp_init(void *state, const void *config, uint32_t capacity)
{
    struct dlcp *dlcp = state;
    const struct dlcp_cfg *cfg = config;
    gw_strict_init(&dlcp->queues, cfg->control, capacity);
    for (uint32_t class = 0; class < GW_CLASS_CONTROL; class ++)
        dlcp->thresholds[class] = threshold_of(cfg, class);
}

/* What becomes of a packet that fits, and meets more than its threshold. */
static enum gw_qdisc_verdict judge(struct dlcp *dlcp, const struct dlcp_cfg *cfg,
                                   struct gw_pkt *pkt)
{
    if (dlcp->queues.queues[pkt->q.class].bytes > limit_of(cfg, pkt->q.class))
        return GW_QDISC_DROPPED;
    if (pkt->q.ecn == GW_ECN_NOT_ECT)
        return GW_QDISC_SHED;
    dlcp->queues.base.marks += pkt->q.ecn != GW_ECN_CE;
    pkt->q.ecn = GW_ECN_CE;
    return GW_QDISC_QUEUED;
}

static enum gw_qdisc_verdict dlcp_enqueue(void *state, const void *config,
                                          const struct gw_qdisc_port *port, struct gw_pkt *pkt,
                                          uint64_t pool_free, struct gw_pkt **victim)
{
    struct dlcp *dlcp = state;
    uint32_t class = pkt->q.class;
    enum gw_qdisc_verdict verdict = GW_QDISC_QUEUED;
    if (!gw_strict_fits(&dlcp->queues, pkt, pool_free))
        verdict = GW_QDISC_DROPPED;
    else if (class != GW_CLASS_CONTROL &&
             dlcp->queues.queues[class].bytes > dlcp->thresholds[class])
        verdict = judge(dlcp, config, pkt);
    if (verdict == GW_QDISC_QUEUED)
        gw_strict_push(&dlcp->queues, port, pkt);
    else
        *victim = pkt;
    return verdict;
}

static struct gw_pkt *dlcp_dequeue(void *state, const void *config,
                                   const struct gw_qdisc_port *port)
{
    (void)config;
    return gw_strict_pop(&((struct dlcp *)state)->queues, port);
}

/* Of the sequence that holds where there is no list. */
#define SEQUENCE_PARAM(kind, field, initial_text, ...)                                             \
    {                                                                                              \
        .name = #field, .type = GW_PARAM_##kind, .offset = offsetof(struct dlcp_cfg, field),       \
        .initial = initial_text, .unless = "thresholds", .help = __VA_ARGS__                       \
    }

static const struct gw_param params[] = {
    SEQUENCE_PARAM(BYTES, threshold, "32KB",
                   "T: what class 6 may hold until unimportant packets are dropped (own: with the "
                   "default step, best effort has a quarter of 512 KB per port)"),
    SEQUENCE_PARAM(Q16, step, "0.5",
                   "d: from class to class down to best effort, T more of T (own; the sequence is "
                   "DLCP, section 4.2)",
                   .least = -GW_Q16_ONE),
    GW_PARAM(struct dlcp_cfg, SIZES, thresholds, NULL,
             "S of each queue, from class 6 down to best effort, the last one for all behind; "
             "none: by threshold and step (DLCP, appendix B)"),
    GW_PARAM(struct dlcp_cfg, SIZES, limits, NULL,
             "L of each queue likewise: above it nothing is taken; none: the capacity alone (DLCP, "
             "appendix B)"),
    GW_CONTROL_PARAM(struct dlcp_cfg),
};

const struct gw_qdisc_ops gw_qdisc_dlcp = {
    .algo =
        {
            .name = "dlcp",
            .summary = "strict priority by class, drops unimportant packets first",
            .source = "DLCP, sections 3.2.2 and 4.2, appendix B",
            .params = params,
            .param_count = sizeof(params) / sizeof(params[0]),
            .check = dlcp_check,
            .cfg_size = sizeof(struct dlcp_cfg),
            .state_size = sizeof(struct dlcp),
        },
    .init = dlcp_init,
    .enqueue = dlcp_enqueue,
    .dequeue = dlcp_dequeue,
    .drops_early = true,
};
