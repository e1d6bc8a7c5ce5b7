/*
 * Strict priority: a queue per class, control first, then class 6 down to best effort, first in
 * first out within a class. What prio and dlcp have in common.
 *
 * Invariant: bit c of `busy` is set exactly when queue c is not empty; the data queues together
 * hold data_bytes <= capacity.
 */
#ifndef GW_CORE_STRICT_H
#define GW_CORE_STRICT_H

#include "core/qdisc/lanes.h"

struct gw_strict {
    struct gw_qdisc_state base;
    uint32_t busy;                         /* bit per class */
    uint32_t data_bytes;                   /* in queues 0 to 6 */
    uint32_t capacity;                     /* of those, bytes */
    uint32_t control_capacity;             /* of queue 7, bytes */
    struct gw_pkt_fifo queues[GW_CLASSES]; /* by class */
};

static inline void gw_strict_init(struct gw_strict *strict, gw_q16 control, uint32_t capacity)
{
    *strict = (struct gw_strict){
        .capacity = capacity,
        .control_capacity = gw_control_capacity(control, capacity),
    };
}

/* Whether there is room for the packet: control has a queue of its own, all data shares one. */
static inline bool gw_strict_fits(const struct gw_strict *strict, const struct gw_pkt *pkt,
                                  uint64_t pool_free)
{
    uint32_t room = pkt->q.class == GW_CLASS_CONTROL
                        ? strict->control_capacity - strict->queues[GW_CLASS_CONTROL].bytes
                        : strict->capacity - strict->data_bytes;
    return pkt->q.size <= room && pkt->q.size <= pool_free;
}

/* Queues a packet that fits. */
static inline void gw_strict_push(struct gw_strict *strict, const struct gw_qdisc_port *port,
                                  struct gw_pkt *pkt)
{
    gw_pkt_fifo_push(&strict->queues[pkt->q.class], port->pool, pkt);
    strict->busy |= UINT32_C(1) << pkt->q.class;
    strict->base.backlog += pkt->q.size;
    if (pkt->q.class != GW_CLASS_CONTROL)
        strict->data_bytes += pkt->q.size;
}

/* The next packet, or NULL. */
static inline struct gw_pkt *gw_strict_pop(struct gw_strict *strict,
                                           const struct gw_qdisc_port *port)
{
    if (strict->busy == 0)
        return NULL;
    uint32_t class = 31 - (uint32_t)__builtin_clz(strict->busy);
    struct gw_pkt_fifo *queue = &strict->queues[class];
    struct gw_pkt *pkt = gw_pkt_fifo_pop(queue, port->pool);
    if (queue->count == 0)
        strict->busy &= ~(UINT32_C(1) << class);
    strict->base.backlog -= pkt->q.size;
    if (class != GW_CLASS_CONTROL)
        strict->data_bytes -= pkt->q.size;
    return pkt;
}

#endif
