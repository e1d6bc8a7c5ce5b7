/*
 * Strict priority by class (strict.h): DLCP, section 3.2.2, without its selective dropping. Tail
 * drop; marks by the total of the data queues (red.h).
 *
 * Invariant: see strict.h.
 */
#include "core/qdisc/strict.h"

struct prio_cfg {
    struct gw_red_cfg red;
    gw_q16 control;
};

struct prio {
    struct gw_strict queues;
    struct gw_red red;
};

_Static_assert(sizeof(struct prio) <= GW_QDISC_STATE_MAX, "state fits");

static const char *prio_check(const void *config)
{
    const struct prio_cfg *cfg = config;
    return gw_red_check(&cfg->red);
}

static void prio_init(void *state, const void *config, uint32_t capacity)
{
    struct prio *prio = state;
    const struct prio_cfg *cfg = config;
    gw_strict_init(&prio->queues, cfg->control, capacity);
    gw_red_init(&prio->red, &cfg->red, capacity, UINT32_MAX);
}

static void mark(struct prio *prio, const struct gw_qdisc_port *port, struct gw_pkt *pkt,
                 enum gw_red_mark when)
{
    if (prio->red.mark == when && pkt->q.class != GW_CLASS_CONTROL)
        gw_red_mark(&prio->red, &prio->queues.base, port->prng, pkt, prio->queues.data_bytes);
}

static enum gw_qdisc_verdict prio_enqueue(void *state, const void *config,
                                          const struct gw_qdisc_port *port, struct gw_pkt *pkt,
                                          uint64_t pool_free, struct gw_pkt **victim)
{
    struct prio *prio = state;
    (void)config;
    if (!gw_strict_fits(&prio->queues, pkt, pool_free)) {
        *victim = pkt;
        return GW_QDISC_DROPPED;
    }
    gw_strict_push(&prio->queues, port, pkt);
    mark(prio, port, pkt, GW_RED_ENQUEUE);
    return GW_QDISC_QUEUED;
}

static struct gw_pkt *prio_dequeue(void *state, const void *config,
                                   const struct gw_qdisc_port *port)
{
    struct prio *prio = state;
    (void)config;
    struct gw_pkt *pkt = gw_strict_pop(&prio->queues, port);
    if (pkt)
        mark(prio, port, pkt, GW_RED_DEQUEUE);
    return pkt;
}

static bool prio_mark_at(void *state, const void *config, uint32_t bytes)
{
    struct prio *prio = state;
    const struct prio_cfg *cfg = config;
    gw_red_init(&prio->red, &cfg->red, prio->queues.capacity, bytes);
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
            .source = "DLCP, section 3.2.2",
            .params = params,
            .param_count = sizeof(params) / sizeof(params[0]),
            .check = prio_check,
            .cfg_size = sizeof(struct prio_cfg),
            .state_size = sizeof(struct prio),
        },
    .init = prio_init,
    .enqueue = prio_enqueue,
    .dequeue = prio_dequeue,
    .mark_at = prio_mark_at,
};
