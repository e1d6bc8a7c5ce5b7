/*
 * pFabric's queue: small, and whoever is nearest to the end of its message goes first (Alizadeh et
 * al., pFabric, SIGCOMM 2013, section 4.1). Control has a queue of its own, served before.
 *
 * A full queue drops the packet of the highest rank, the latest of several, or the arrival if that
 * is no more urgent. The flow of the packet of the lowest rank sends next, and of that flow the
 * packet that came first: the later ones have lower ranks, and would starve it. Classes of data are
 * not told apart.
 *
 * The packets lie in a table in the order of arrival, with what is looked at in rows of its own, so
 * that a search reads a few cache lines and no packet. Nothing else in it is sorted: the best and
 * the worst are remembered while they are there, and what leaves closes the gap. The queue is as
 * small as the paper wants it, so that is cheaper than a tree.
 *
 * Invariant: the rows hold `count` <= PACKETS_MAX packets of data_bytes <= capacity; `best` and
 * `worst`, where not NONE, are the earliest of the lowest and the latest of the highest rank.
 */
#include <string.h>

#include "core/qdisc/lanes.h"

enum {
    PACKETS_MAX = 1024, /* 512 KB in packets of half a KB */
};

#define NONE UINT32_MAX

struct pfabric_cfg {
    gw_q16 control;
};

struct pfabric {
    struct gw_qdisc_state base;
    struct gw_pkt_fifo control;
    uint32_t control_capacity; /* bytes */
    uint32_t capacity;         /* of data, bytes */
    uint32_t data_bytes;
    uint32_t count;              /* of packets of data: rows below this one are in use */
    uint32_t best;               /* a row, or NONE: not known */
    uint32_t worst;              /* likewise */
    uint32_t rank[PACKETS_MAX];  /* rows, by arrival: what queues see of a packet, ... */
    uint32_t key[PACKETS_MAX];   /* ... of which flow it is, ... */
    uint32_t index[PACKETS_MAX]; /* ... and which of the pool */
};

_Static_assert(sizeof(struct pfabric) <= GW_QDISC_STATE_MAX, "state fits");

/* Does not touch the rows: most ports never fill theirs. */
static void pfabric_init(void *state, const void *config, uint32_t capacity)
{
    struct pfabric *p = state;
    const struct pfabric_cfg *cfg = config;
    p->control_capacity = gw_control_capacity(cfg->control, capacity);
    p->capacity = capacity;
    p->best = p->worst = NONE;
}

/* Each in two passes, of which the first is over one row and without branches. */
static uint32_t find_best(const struct pfabric *p)
{
    uint32_t lowest = p->rank[0], at = 0;
    for (uint32_t i = 1; i < p->count; i++)
        lowest = p->rank[i] < lowest ? p->rank[i] : lowest;
    while (p->rank[at] != lowest)
        at++;
    return at;
}

static uint32_t find_worst(const struct pfabric *p)
{
    uint32_t highest = p->rank[0], at = p->count - 1;
    for (uint32_t i = 1; i < p->count; i++)
        highest = p->rank[i] > highest ? p->rank[i] : highest;
    while (p->rank[at] != highest)
        at--;
    return at;
}

/* Where a row is after row `gone` has left. */
static uint32_t after_gap(uint32_t row, uint32_t gone)
{
    if (row == NONE || row == gone)
        return NONE;
    return row - (row > gone);
}

static struct gw_pkt *take_out(struct pfabric *p, const struct gw_qdisc_port *port, uint32_t row)
{
    struct gw_pkt *pkt = gw_pkt_at(port->pool, p->index[row]);
    size_t behind = (--p->count - row) * sizeof(uint32_t);
    memmove(&p->rank[row], &p->rank[row + 1], behind);
    memmove(&p->key[row], &p->key[row + 1], behind);
    memmove(&p->index[row], &p->index[row + 1], behind);
    p->best = after_gap(p->best, row);
    p->worst = after_gap(p->worst, row);
    p->data_bytes -= pkt->q.size;
    p->base.backlog -= pkt->q.size;
    return pkt;
}

/* Behind all others: so it is the latest of the worst if none is worse. */
static void put_in(struct pfabric *p, const struct gw_qdisc_port *port, const struct gw_pkt *pkt)
{
    uint32_t row = p->count++;
    p->rank[row] = pkt->q.rank;
    p->key[row] = pkt->q.key;
    p->index[row] = gw_pkt_index(port->pool, pkt);
    if (row == 0 || (p->best != NONE && pkt->q.rank < p->rank[p->best]))
        p->best = row;
    if (row == 0 || (p->worst != NONE && pkt->q.rank >= p->rank[p->worst]))
        p->worst = row;
    p->data_bytes += pkt->q.size;
    p->base.backlog += pkt->q.size;
}

static enum gw_qdisc_verdict enqueue_control(struct pfabric *p, const struct gw_qdisc_port *port,
                                             struct gw_pkt *pkt, uint64_t pool_free,
                                             struct gw_pkt **victim)
{
    if (pkt->q.size > p->control_capacity - p->control.bytes || pkt->q.size > pool_free) {
        *victim = pkt;
        return GW_QDISC_DROPPED;
    }
    gw_pkt_fifo_push(&p->control, port->pool, pkt);
    p->base.backlog += pkt->q.size;
    return GW_QDISC_QUEUED;
}

static enum gw_qdisc_verdict pfabric_enqueue(void *state, const void *config,
                                             const struct gw_qdisc_port *port, struct gw_pkt *pkt,
                                             uint64_t pool_free, struct gw_pkt **victim)
{
    struct pfabric *p = state;
    (void)config;
    if (pkt->q.class == GW_CLASS_CONTROL)
        return enqueue_control(p, port, pkt, pool_free, victim);
    bool fits = pkt->q.size <= p->capacity - p->data_bytes && pkt->q.size <= pool_free &&
                p->count < PACKETS_MAX;
    if (fits) {
        put_in(p, port, pkt);
        return GW_QDISC_QUEUED;
    }
    if (p->count && p->worst == NONE)
        p->worst = find_worst(p);
    bool would_fit = pkt->q.size <= p->capacity && p->data_bytes + pool_free >= pkt->q.size;
    if (!p->count || !would_fit || pkt->q.rank >= p->rank[p->worst]) {
        *victim = pkt;
        return GW_QDISC_DROPPED;
    }
    *victim = take_out(p, port, p->worst);
    return GW_QDISC_EVICTED;
}

static struct gw_pkt *pfabric_dequeue(void *state, const void *config,
                                      const struct gw_qdisc_port *port)
{
    struct pfabric *p = state;
    (void)config;
    if (p->control.count) {
        struct gw_pkt *pkt = gw_pkt_fifo_pop(&p->control, port->pool);
        p->base.backlog -= pkt->q.size;
        return pkt;
    }
    if (!p->count)
        return NULL;
    if (p->best == NONE)
        p->best = find_best(p);
    uint32_t key = p->key[p->best], first = 0;
    while (p->key[first] != key)
        first++;
    return take_out(p, port, first);
}

static const struct gw_param params[] = {
    GW_CONTROL_PARAM(struct pfabric_cfg),
};

const struct gw_qdisc_ops gw_qdisc_pfabric = {
    .algo =
        {
            .name = "pfabric",
            .summary = "the message nearest to its end first, drops the packet of the farthest",
            .source = "pFabric, SIGCOMM 2013, section 4.1",
            .params = params,
            .param_count = sizeof(params) / sizeof(params[0]),
            .cfg_size = sizeof(struct pfabric_cfg),
            .state_size = sizeof(struct pfabric),
        },
    .init = pfabric_init,
    .enqueue = pfabric_enqueue,
    .dequeue = pfabric_dequeue,
};
