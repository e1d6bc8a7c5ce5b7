/*
 * Strict priority: control first, then class 6 down to best effort, first in first out within a
 * class (DLCP, section 3.3, without its selective dropping). The data queues share the capacity;
 * tail drop; marks by the total of the data queues (red.h).
 *
 * Invariant: bit c of `busy` is set exactly when queue c is not empty; the data queues together
 * hold data_bytes <= capacity.
 */
#include "core/qdisc/lanes.h"

struct prio_cfg {
    struct gw_red_cfg red;
    gw_q16 control;
};

struct prio {
    struct gw_qdisc_state base;
    uint32_t busy;             /* bit per class */
    uint32_t data_bytes;       /* in queues 0 to 6 */
    uint32_t capacity;         /* of those, bytes */
    uint32_t control_capacity; /* of queue 7, bytes */
    struct gw_red red;
    struct gw_pkt_fifo queues[GW_CLASSES]; /* by class */
};

_Static_assert(sizeof(struct prio) <= GW_QDISC_STATE_MAX, "state fits");

static void prio_init(void *state, const void *config, uint32_t capacity)
{
    struct prio *prio = state;
    const struct prio_cfg *cfg = config;
    *prio = (struct prio){
        .capacity = capacity,
        .control_capacity = gw_control_capacity(cfg->control, capacity),
    };
    gw_red_init(&prio->red, &cfg->red, capacity, UINT32_MAX);
}

static enum gw_qdisc_verdict prio_enqueue(void *state, const void *config,
                                          const struct gw_qdisc_port *port, struct gw_pkt *pkt,
                                          uint64_t pool_free, struct gw_pkt **victim)
{
    struct prio *prio = state;
    (void)config;
    GW_DEBUG_ASSERT(pkt->q.class < GW_CLASSES);
    struct gw_pkt_fifo *queue = &prio->queues[pkt->q.class];
    bool control = pkt->q.class == GW_CLASS_CONTROL;
    uint32_t room =
        control ? prio->control_capacity - queue->bytes : prio->capacity - prio->data_bytes;
    if (pkt->q.size > room || pkt->q.size > pool_free) {
        *victim = pkt;
        return GW_QDISC_DROPPED;
    }
    gw_pkt_fifo_push(queue, port->pool, pkt);
    prio->busy |= UINT32_C(1) << pkt->q.class;
    prio->base.backlog += pkt->q.size;
    if (!control) {
        prio->data_bytes += pkt->q.size;
        if (prio->red.mark == GW_RED_ENQUEUE)
            gw_red_mark(&prio->red, &prio->base, port->prng, pkt, prio->data_bytes);
    }
    return GW_QDISC_QUEUED;
}

static struct gw_pkt *prio_dequeue(void *state, const void *config,
                                   const struct gw_qdisc_port *port)
{
    struct prio *prio = state;
    (void)config;
    if (prio->busy == 0)
        return NULL;
    uint32_t class = 31 - (uint32_t)__builtin_clz(prio->busy);
    struct gw_pkt_fifo *queue = &prio->queues[class];
    struct gw_pkt *pkt = gw_pkt_fifo_pop(queue, port->pool);
    if (queue->count == 0)
        prio->busy &= ~(UINT32_C(1) << class);
    prio->base.backlog -= pkt->q.size;
    if (class != GW_CLASS_CONTROL) {
        prio->data_bytes -= pkt->q.size;
        if (prio->red.mark == GW_RED_DEQUEUE)
            gw_red_mark(&prio->red, &prio->base, port->prng, pkt, prio->data_bytes);
    }
    return pkt;
}

static bool prio_mark_at(void *state, const void *config, uint32_t bytes)
{
    struct prio *prio = state;
    const struct prio_cfg *cfg = config;
    gw_red_init(&prio->red, &cfg->red, prio->capacity, bytes);
    return cfg->red.mark != GW_RED_OFF;
}

static const struct gw_param params[] = {
    GW_RED_PARAMS(struct prio_cfg, red),
    GW_CONTROL_PARAM(struct prio_cfg),
};

const struct gw_qdisc_ops gw_qdisc_prio = {
    .algo =
        {
            .name = "prio",
            .summary = "strict priority by class, marks with CE between two thresholds",
            .source = "DLCP, section 3.3",
            .params = params,
            .param_count = sizeof(params) / sizeof(params[0]),
            .cfg_size = sizeof(struct prio_cfg),
            .state_size = sizeof(struct prio),
        },
    .init = prio_init,
    .enqueue = prio_enqueue,
    .dequeue = prio_dequeue,
    .mark_at = prio_mark_at,
};
