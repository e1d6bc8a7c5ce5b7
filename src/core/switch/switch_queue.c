/* The queues of a switch's ports; see switch_queue.h. */
#include "core/switch/switch_queue.h"

#include <string.h>

#include "core/switch/lossless.h"

/* What few packets touch: losses, and those that are served as of another class. */
struct gw_port_rest {
    uint8_t classes[GW_CLASSES]; /* as which each is served */
    uint64_t trimmed_bytes;
    uint64_t dropped_bytes;
    uint64_t trims;
    struct gw_class_losses losses[GW_CLASSES];
};

static bool is_control(const struct gw_pkt *pkt)
{
    return pkt->q.class == GW_CLASS_CONTROL;
}

void gw_switch_queue_carve(struct gw_switch_queue *queue, const struct gw_switch_queue_cfg *cfg,
                           struct gw_arena *arena)
{
    GW_ASSERT(cfg->qdisc->algo.state_size <= GW_QDISC_STATE_MAX);
    queue->port_stride = gw_aligned(sizeof(struct gw_switch_port) + cfg->qdisc->algo.state_size);
    queue->ports = gw_arena_take(arena, cfg->port_count * queue->port_stride);
    queue->rest = gw_arena_take(arena, cfg->port_count * sizeof(*queue->rest));
    if (cfg->lossless)
        queue->lossless = gw_arena_take(arena, gw_lossless_size(cfg->port_count));
}

void gw_switch_queue_init(struct gw_switch_queue *queue, const struct gw_switch_queue_cfg *cfg,
                          struct gw_prng *prng, struct gw_switch_timers *timers)
{
    queue->node = timers->node;
    queue->qdisc = cfg->qdisc;
    queue->qdisc_cfg = cfg->qdisc_cfg;
    queue->discipline =
        (struct gw_qdisc_port){.pool = cfg->pool, .prng = prng, .trim_size = cfg->trim_size};
    queue->train = cfg->train ? cfg->train : 1;
    queue->is_simple = queue->train == 1 && !cfg->lossless;
    queue->shared = cfg->shared;
    queue->pool = cfg->pool;
    if (cfg->lossless)
        gw_lossless_init(queue->lossless, cfg->lossless, timers);
    for (uint16_t i = 0; i < cfg->port_count; i++) {
        cfg->qdisc->init(gw_switch_port_at(queue, i)->qdisc_state, cfg->qdisc_cfg,
                         cfg->capacity[i]);
        gw_switch_queue_set_classes(queue, i, (const uint8_t[GW_CLASSES]){0, 1, 2, 3, 4, 5, 6, 7});
    }
}

/* `victim` is dropped, by the discipline or for good. */
static void lose(struct gw_switch_queue *queue, uint16_t out, struct gw_pkt *victim, bool is_shed,
                 gw_time now)
{
    struct gw_port_rest *rest = &queue->rest[out];
    struct gw_class_losses *class = &rest->losses[victim->q.class];
    class->drops++;
    class->unimportant += victim->q.ecn == GW_ECN_NOT_ECT;
    class->shed += is_shed;
    rest->dropped_bytes += victim->q.size;
    if (queue->lossless)
        gw_lossless_left(queue->lossless, out, victim, now);
    gw_pkt_release(queue->pool, victim);
}

/* The discipline has cut `victim`, by what is missing in the books of the port. */
static void trim(struct gw_switch_queue *queue, uint16_t out, struct gw_pkt *victim, gw_time now)
{
    const struct gw_switch_port *port = gw_switch_port_at(queue, out);
    struct gw_port_rest *rest = &queue->rest[out];
    uint32_t bytes =
        (uint32_t)(port->in_bytes - port->out_bytes - rest->trimmed_bytes - rest->dropped_bytes) -
        gw_switch_queue_backlog(queue, out);
    rest->trims++;
    rest->trimmed_bytes += bytes;
    if (queue->lossless)
        gw_lossless_trimmed(queue->lossless, out, victim, bytes + victim->q.size, now);
    gw_pkt_drop_payload(queue->pool, victim);
}

void gw_switch_queue_prepare(struct gw_switch_queue *queue, uint16_t in, uint16_t out,
                             struct gw_pkt *pkt, gw_time now)
{
    pkt->q.class = queue->rest[out].classes[pkt->q.class];
    if (queue->lossless) {
        pkt->q.in = in;
        gw_lossless_queued(queue->lossless, out, pkt, now);
    }
}

bool gw_switch_queue_settle(struct gw_switch_queue *queue, uint16_t out,
                            enum gw_qdisc_verdict verdict, struct gw_pkt *victim, gw_time now)
{
    if (verdict == GW_QDISC_TRIMMED)
        trim(queue, out, victim, now);
    else
        lose(queue, out, victim, verdict == GW_QDISC_SHED, now);
    return verdict != GW_QDISC_EVICTED;
}

/* Whether `pkt` may follow `last` in a train: all but the last are of one length. */
static bool may_follow(const struct gw_pkt *first, const struct gw_pkt *last,
                       const struct gw_pkt *pkt)
{
    return pkt->dst == first->dst && pkt->entropy == first->entropy &&
           pkt->q.kind == first->q.kind && pkt->q.class == first->q.class &&
           pkt->q.ecn == first->q.ecn && last->q.size == first->q.size &&
           pkt->q.size <= first->q.size;
}

/* The next packet of a port: the kept one, or the head of the queue; NULL when there is none. With
 * `only_control` data stays where it is. */
static struct gw_pkt *take_next(struct gw_switch_queue *queue, struct gw_switch_port *port,
                                bool only_control)
{
    struct gw_pkt *pkt = port->kept;
    if (pkt && (!only_control || is_control(pkt))) {
        port->kept = NULL;
        return pkt;
    }
    uint32_t before = gw_switch_port_backlog(port);
    if (before == 0)
        return NULL;
    pkt = queue->qdisc->dequeue(port->qdisc_state, queue->qdisc_cfg, &queue->discipline);
    queue->shared_used -= before - gw_switch_port_backlog(port);
    return pkt;
}

/* A train of at most `max` packets. */
static uint32_t take_train(struct gw_switch_queue *queue, struct gw_switch_port *port,
                           struct gw_pkt **pkts, uint32_t max)
{
    uint32_t count = 0;
    while (count < max) {
        struct gw_pkt *pkt = take_next(queue, port, false);
        if (!pkt)
            break;
        if (count > 0 && !may_follow(pkts[0], pkts[count - 1], pkt)) {
            port->kept = pkt;
            break;
        }
        port->out_packets++;
        port->out_bytes += pkt->q.size;
        pkts[count++] = pkt;
    }
    return count;
}

/* While data is held back, control leaves one by one: what is kept may be data. */
static uint32_t take_control(struct gw_switch_queue *queue, struct gw_switch_port *port,
                             struct gw_pkt **pkts)
{
    struct gw_pkt *pkt = take_next(queue, port, true);
    GW_ASSERT(pkt && is_control(pkt)); /* there is some, and every discipline serves it first */
    port->out_packets++;
    port->out_bytes += pkt->q.size;
    pkts[0] = pkt;
    return 1;
}

/* Packets that wait, of whatever class. */
static bool holds(const struct gw_switch_port *port)
{
    return port->kept || gw_switch_port_backlog(port);
}

/* A PAUSE first; then what the other end of the link lets go. */
static uint32_t lossless_output(struct gw_switch_queue *queue, uint16_t out, struct gw_pkt **pkts,
                                uint32_t max, gw_time now)
{
    struct gw_lossless *lossless = queue->lossless;
    struct gw_switch_port *port = gw_switch_port_at(queue, out);
    uint32_t count = 0;
    if (max == 0)
        return 0;
    pkts[0] = gw_lossless_pause(lossless, out, queue->pool, queue->discipline.trim_size, now);
    if (pkts[0])
        return 1;
    if (gw_lossless_is_shut(lossless, out))
        count = gw_lossless_has_control(lossless, out) ? take_control(queue, port, pkts) : 0;
    else
        count = take_train(queue, port, pkts, max);
    for (uint32_t i = 0; i < count; i++) {
        gw_lossless_left(lossless, out, pkts[i], now);
        pkts[i]->q.in = 0;
    }
    return count;
}

/* Whether the port has anything that it may send now. */
static bool is_ready(const struct gw_switch_queue *queue, uint16_t out)
{
    const struct gw_switch_port *port = gw_switch_port_at(queue, out);
    return queue->lossless ? gw_lossless_is_ready(queue->lossless, out, holds(port)) : holds(port);
}

uint32_t gw_switch_queue_output(struct gw_switch_queue *queue, uint16_t out, struct gw_pkt **pkts,
                                uint32_t max, gw_time now)
{
    struct gw_switch_port *port = gw_switch_port_at(queue, out);
    uint32_t count;
    max = max < queue->train ? max : queue->train;
    if (queue->lossless) {
        count = lossless_output(queue, out, pkts, max, now);
        port->is_ready = is_ready(queue, out);
    } else {
        count = take_train(queue, port, pkts, max);
        port->is_ready = holds(port);
    }
    return port->is_ready ? count | GW_OUTPUT_MORE : count;
}

void gw_switch_queue_foresee(const struct gw_switch_queue *queue)
{
    if (!queue->qdisc->foresee)
        return;
    for (uint16_t i = 0; i < queue->node->port_count; i++)
        queue->qdisc->foresee(gw_switch_port_at(queue, i)->qdisc_state, &queue->discipline);
}

static void report(struct gw_switch_queue *queue, uint16_t port)
{
    if (is_ready(queue, port))
        gw_node_report(queue->node, port, &gw_switch_port_at(queue, port)->is_ready);
}

void gw_switch_queue_obey(struct gw_switch_queue *queue, uint16_t port, gw_time time, gw_time now)
{
    gw_lossless_obey(queue->lossless, port, time, now);
    report(queue, port);
}

void gw_switch_queue_expire(struct gw_switch_queue *queue, enum gw_port_timer kind, uint16_t port,
                            gw_time now)
{
    gw_lossless_expire(queue->lossless, kind, port, now);
    report(queue, port);
}

bool gw_switch_queue_mark_at(struct gw_switch_queue *queue, uint16_t port, uint32_t bytes)
{
    return queue->qdisc->mark_at &&
           queue->qdisc->mark_at(gw_switch_port_at(queue, port)->qdisc_state, queue->qdisc_cfg,
                                 bytes);
}

void gw_switch_queue_set_classes(struct gw_switch_queue *queue, uint16_t index,
                                 const uint8_t classes[GW_CLASSES])
{
    struct gw_switch_port *port = gw_switch_port_at(queue, index);
    port->prepares = queue->lossless != NULL;
    for (uint32_t i = 0; i < GW_CLASSES; i++) {
        GW_ASSERT((i == GW_CLASS_CONTROL) == (classes[i] == GW_CLASS_CONTROL));
        GW_ASSERT(classes[i] < GW_CLASSES);
        port->prepares |= classes[i] != i;
        queue->rest[index].classes[i] = classes[i];
    }
    bool may_pass = queue->is_simple && !port->prepares && !queue->shared.bytes;
    port->passes = may_pass ? ((const struct gw_qdisc_state *)port->qdisc_state)->passes : 0;
}

uint32_t gw_switch_queue_clear(struct gw_switch_queue *queue, uint16_t index, gw_time now)
{
    struct gw_switch_port *port = gw_switch_port_at(queue, index);
    uint32_t count = 0;
    for (struct gw_pkt *pkt; (pkt = take_next(queue, port, false)) != NULL; count++)
        lose(queue, index, pkt, false, now);
    return count;
}

struct gw_port_stats gw_switch_queue_stats(const struct gw_switch_queue *queue, uint16_t index)
{
    const struct gw_switch_port *port = gw_switch_port_at(queue, index);
    const struct gw_port_rest *rest = &queue->rest[index];
    struct gw_port_stats stats = {
        .in_bytes = port->in_bytes,
        .out_bytes = port->out_bytes,
        .trimmed_bytes = rest->trimmed_bytes,
        .dropped_bytes = rest->dropped_bytes,
        .out_packets = port->out_packets,
        .marks = ((const struct gw_qdisc_state *)port->qdisc_state)->marks,
        .trims = rest->trims,
        .control_drops = rest->losses[GW_CLASS_CONTROL].drops,
    };
    gw_class_losses_add(stats.losses, rest->losses);
    for (uint32_t i = 0; i < GW_CLASSES; i++)
        stats.drops += rest->losses[i].drops;
    if (queue->lossless) {
        stats.pauses = gw_lossless_meter(queue->lossless, index)->pauses;
        stats.paused = gw_lossless_gate(queue->lossless, index)->total;
    }
    return stats;
}

uint32_t gw_switch_queue_backlog(const struct gw_switch_queue *queue, uint16_t index)
{
    const struct gw_switch_port *port = gw_switch_port_at(queue, index);
    return gw_switch_port_backlog(port) + (port->kept ? port->kept->q.size : 0);
}
