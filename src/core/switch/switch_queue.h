/*
 * The last stage of a switch: the queues of its ports. What does not fit is trimmed or dropped as
 * the queue discipline says; what fits leaves when the driver pulls its port, in trains.
 *
 * Each port has its own state of the discipline, its own marking threshold, and its own classes: it
 * may serve the packets of a class as those of another.
 *
 * A lossless switch tells the other ends of its links to hold their data back while it holds too
 * much of what they sent, and does as it is told itself (pause.h). Its own PAUSEs pass by the
 * queues and are not in the books of a port. While a port is told to hold data back, control alone
 * leaves, which every discipline serves first.
 *
 * Invariant, per port: bytes in = bytes out + bytes trimmed + bytes dropped + backlog.
 */
#ifndef GW_CORE_SWITCH_QUEUE_H
#define GW_CORE_SWITCH_QUEUE_H

#include "base/arena.h"
#include "base/fixed.h"
#include "core/pause.h"
#include "core/qdisc/qdisc.h"
#include "core/switch/port_stats.h"
#include "core/switch/shared_buffer.h"
#include "core/switch/switch_timers.h"

/* As in struct gw_switch_cfg. */
struct gw_switch_queue_cfg {
    uint16_t port_count;
    const struct gw_qdisc_ops *qdisc;
    const void *qdisc_cfg;
    const uint32_t *capacity;
    uint32_t trim_size;
    struct gw_shared_buffer shared;
    uint32_t train;
    const struct gw_pause_cfg *lossless;
    struct gw_pkt_pool *pool;
};

/* What every packet touches of a port, in as few cache lines as possible. */
struct gw_switch_port {
    uint64_t in_bytes;
    uint64_t out_bytes;
    uint64_t out_packets;
    struct gw_pkt *kept; /* the first of the next train, out of the queue already */
    bool is_ready;       /* see core/node.h */
    bool prepares;       /* packets before they are queued: it has classes of its own, or the switch
                            is lossless */
    uint32_t passes;     /* a packet of at most so many bytes that finds nothing waiting leaves as
                            if it had been queued */
    uint64_t qdisc_state[];
};

struct gw_switch_queue {
    struct gw_node *node; /* whose ports these are, and who is told which are ready */
    const struct gw_qdisc_ops *qdisc;
    const void *qdisc_cfg;
    struct gw_qdisc_port discipline; /* what a discipline may use */
    unsigned char *ports;            /* one after the other, port_stride apart */
    size_t port_stride;
    struct gw_port_rest *rest; /* per port */
    uint32_t train;
    bool is_simple; /* packets leave one by one, and nobody may hold them back */
    struct gw_shared_buffer shared;
    uint64_t shared_used;
    struct gw_lossless *lossless; /* or NULL */
    struct gw_pkt_pool *pool;
};

/* Takes the stage's tables out of the arena. */
void gw_switch_queue_carve(struct gw_switch_queue *queue, const struct gw_switch_queue_cfg *cfg,
                           struct gw_arena *arena);

/* Makes empty queues in tables that are all zero. */
void gw_switch_queue_init(struct gw_switch_queue *queue, const struct gw_switch_queue_cfg *cfg,
                          struct gw_prng *prng, struct gw_switch_timers *timers);

static inline struct gw_switch_port *gw_switch_port_at(const struct gw_switch_queue *queue,
                                                       uint16_t index)
{
    return (struct gw_switch_port *)(void *)(queue->ports + index * queue->port_stride);
}

/* In the discipline's queues; gw_switch_queue_backlog() has the rest. */
static inline uint32_t gw_switch_port_backlog(const struct gw_switch_port *port)
{
    return ((const struct gw_qdisc_state *)port->qdisc_state)->backlog;
}

/* What ports that prepare packets do to one before it is queued. */
void gw_switch_queue_prepare(struct gw_switch_queue *queue, uint16_t in, uint16_t out,
                             struct gw_pkt *pkt, gw_time now);

/* The discipline has not just queued an arrival. False: it must be offered again. */
bool gw_switch_queue_settle(struct gw_switch_queue *queue, uint16_t out,
                            enum gw_qdisc_verdict verdict, struct gw_pkt *victim, gw_time now);

/* Takes a packet that came by the port `in` and is to leave by `out`. True: `out` was quiet, and is
 * ready now. This and output_one are what each hop of a simulation costs, so they are part of their
 * callers. */
static inline bool gw_switch_queue_put(struct gw_switch_queue *queue, uint16_t in, uint16_t out,
                                       struct gw_pkt *pkt, gw_time now)
{
    struct gw_switch_port *port = gw_switch_port_at(queue, out);
    port->in_bytes += pkt->q.size;
    if (__builtin_expect(port->prepares, 0))
        gw_switch_queue_prepare(queue, in, out, pkt, now);
    enum gw_qdisc_verdict verdict;
    struct gw_pkt *victim;
    do {
        uint32_t before = gw_switch_port_backlog(port);
        uint64_t room = gw_shared_buffer_room(&queue->shared, queue->shared_used, before, pkt);
        verdict = queue->qdisc->enqueue(port->qdisc_state, queue->qdisc_cfg, &queue->discipline,
                                        pkt, room, &victim);
        /* May fall: a tail was cut. */
        queue->shared_used += (uint64_t)gw_switch_port_backlog(port) - before;
    } while (__builtin_expect(verdict != GW_QDISC_QUEUED, 0) &&
             !gw_switch_queue_settle(queue, out, verdict, victim, now));
    bool becomes_ready = !port->is_ready && gw_switch_port_backlog(port);
    port->is_ready |= becomes_ready;
    return becomes_ready;
}

/* The same, and tells the driver. */
static inline void gw_switch_queue_push(struct gw_switch_queue *queue, uint16_t in, uint16_t out,
                                        struct gw_pkt *pkt, gw_time now)
{
    if (gw_switch_queue_put(queue, in, out, pkt, now))
        gw_node_list(queue->node, out);
}

/* A packet that is to leave by `out` at once, since its link is free. True: it does, and was never
 * queued; false: it has to be. */
static inline bool gw_switch_queue_pass(struct gw_switch_queue *queue, uint16_t out,
                                        const struct gw_pkt *pkt)
{
    struct gw_switch_port *port = gw_switch_port_at(queue, out);
    if (pkt->q.size > port->passes || gw_switch_port_backlog(port))
        return false;
    port->in_bytes += pkt->q.size;
    port->out_bytes += pkt->q.size;
    port->out_packets++;
    return true;
}

/* The verb `output` of the node, without trains and with nobody who holds data back: half of what
 * the one below costs. */
static inline uint32_t gw_switch_queue_output_one(struct gw_switch_queue *queue, uint16_t out,
                                                  struct gw_pkt **pkts, uint32_t max)
{
    struct gw_switch_port *port = gw_switch_port_at(queue, out);
    uint32_t before = gw_switch_port_backlog(port);
    if (__builtin_expect(max == 0 || before == 0, 0)) {
        port->is_ready = before != 0;
        return before ? GW_OUTPUT_MORE : 0;
    }
    pkts[0] = queue->qdisc->dequeue(port->qdisc_state, queue->qdisc_cfg, &queue->discipline);
    uint32_t after = gw_switch_port_backlog(port);
    port->out_packets++;
    port->out_bytes += before - after;
    queue->shared_used -= before - after;
    port->is_ready = after != 0;
    return 1 | (after ? GW_OUTPUT_MORE : 0);
}

/* The same for every switch. */
uint32_t gw_switch_queue_output(struct gw_switch_queue *queue, uint16_t port, struct gw_pkt **pkts,
                                uint32_t max, gw_time now);

/* Fetches what the next packets will touch, and changes nothing. */
void gw_switch_queue_foresee(const struct gw_switch_queue *queue);

/* A PAUSE for `time` arrived by `port`. */
void gw_switch_queue_obey(struct gw_switch_queue *queue, uint16_t port, gw_time time, gw_time now);

/* A timer of `port` has fired. */
void gw_switch_queue_expire(struct gw_switch_queue *queue, enum gw_port_timer kind, uint16_t port,
                            gw_time now);

/*
 * The port marks all that is ECN-capable above `bytes` of data queued, and below that as
 * configured; UINT32_MAX: as configured. False when its discipline does not mark.
 */
bool gw_switch_queue_mark_at(struct gw_switch_queue *queue, uint16_t port, uint32_t bytes);

/* The port serves packets of class i as those of classes[i]; control stays control. */
void gw_switch_queue_set_classes(struct gw_switch_queue *queue, uint16_t port,
                                 const uint8_t classes[GW_CLASSES]);

/* Releases what a port holds, and counts it as dropped; returns packets. */
uint32_t gw_switch_queue_clear(struct gw_switch_queue *queue, uint16_t port, gw_time now);

struct gw_port_stats gw_switch_queue_stats(const struct gw_switch_queue *queue, uint16_t port);

/* Bytes that a port holds. */
uint32_t gw_switch_queue_backlog(const struct gw_switch_queue *queue, uint16_t port);

#endif
