/*
 * The endpoint's egress: what leaves next by a port. Control first, in trains where it can, then
 * the highest class, then round robin over the senders of the lowest rank in that class, one train
 * each.
 *
 * A sender is in its ring while it may have something to send. Whether it really may is asked when
 * its turn comes, so a window that shrinks costs nothing here.
 *
 * While the other end of the link has told the port to pause, only control leaves.
 */
#include "core/host/endpoint_impl.h"

void gw_egress_control(struct gw_endpoint *ep, struct gw_pkt *pkt)
{
    uint16_t port = ep->node.port_count == 1 ? 0 : (uint16_t)(pkt->q.key % ep->node.port_count);
    struct gw_egress *egress = &ep->egress[port];
    if (egress->control.count == ep->cfg.control_max) {
        ep->stats.control_dropped++;
        gw_pkt_release(ep->pool, pkt);
        return;
    }
    gw_pkt_fifo_push(&egress->control, ep->pool, pkt);
    gw_node_report(&ep->node, port, &egress->is_ready);
}

/* Puts the sender into the ring of its class, behind all that are as urgent. */
static void ring_insert(struct gw_egress *egress, struct gw_sender *sender)
{
    struct gw_sender **tail = &egress->ring_tail[sender->class];
    if (!(egress->classes & 1u << sender->class)) {
        egress->classes |= (uint8_t)(1u << sender->class);
        sender->ring_next = sender;
        *tail = sender;
        return;
    }
    struct gw_sender *before = *tail;
    if (sender->rank >= before->rank)
        *tail = sender;
    else
        while (before->ring_next->rank <= sender->rank)
            before = before->ring_next;
    sender->ring_next = before->ring_next;
    before->ring_next = sender;
}

void gw_egress_join(struct gw_endpoint *ep, struct gw_sender *sender)
{
    if (sender->in_ring)
        return;
    sender->in_ring = true;
    struct gw_egress *egress = &ep->egress[sender->port];
    ring_insert(egress, sender);
    gw_node_report(&ep->node, sender->port, &egress->is_ready);
}

/* Removes the sender behind `before` from the ring of `class`. */
static void ring_remove_after(struct gw_egress *egress, uint32_t class, struct gw_sender *before)
{
    struct gw_sender *sender = before->ring_next;
    struct gw_sender **tail = &egress->ring_tail[class];
    if (before == sender)
        egress->classes &= (uint8_t) ~(1u << class);
    else if (*tail == sender)
        *tail = before;
    before->ring_next = sender->ring_next;
}

static void leave_after(struct gw_egress *egress, uint32_t class, struct gw_sender *before)
{
    struct gw_sender *sender = before->ring_next;
    ring_remove_after(egress, class, before);
    sender->in_ring = false;
    sender->train_left = 0;
}

void gw_egress_leave(struct gw_endpoint *ep, struct gw_sender *sender)
{
    if (!sender->in_ring)
        return;
    struct gw_sender *before = sender;
    while (before->ring_next != sender)
        before = before->ring_next;
    leave_after(&ep->egress[sender->port], sender->class, before);
}

/* The first of the ring of `class` has sent a train: it goes to where it belongs now. */
static void ring_turn(struct gw_egress *egress, uint32_t class)
{
    struct gw_sender **tail = &egress->ring_tail[class];
    struct gw_sender *sender = (*tail)->ring_next;
    if (sender->class == class && sender->rank >= (*tail)->rank) {
        *tail = sender;
        return;
    }
    ring_remove_after(egress, class, *tail);
    ring_insert(egress, sender);
}

/* One train, or the part of it that `max` allows, of the first in the ring that can send. */
static uint32_t ring_output(struct gw_endpoint *ep, struct gw_egress *egress, uint32_t class,
                            struct gw_pkt **pkts, uint32_t max, gw_time now)
{
    uint32_t count = 0;
    while (count == 0 && egress->classes & 1u << class) {
        struct gw_sender **tail = &egress->ring_tail[class];
        struct gw_sender *sender = (*tail)->ring_next;
        const struct gw_sender_ops *ops = sender->ops;
        bool can_send = ops->can_send(ep, sender, now);
        while (can_send && count < max) {
            struct gw_pkt *pkt = ops->emit(ep, sender, now);
            if (pkt)
                pkts[count++] = pkt;
            if (pkt && ops->extend && sender->train_left && count < max)
                count += ops->extend(ep, sender, pkts + count - 1, max - count + 1, now) - 1;
            can_send = pkt && ops->can_send(ep, sender, now);
            if (sender->train_left == 0)
                break;
        }
        if (!can_send)
            leave_after(egress, class, *tail);
        else if (sender->train_left == 0)
            ring_turn(egress, class);
    }
    return count;
}

/* For this host; gradients for slots are for the switch, whatever their address, and only they are
 * announced to ourselves. */
static bool stays_here(const struct gw_endpoint *ep, const struct gw_pkt *pkt)
{
    return pkt->dst == ep->cfg.address &&
           !(pkt->q.kind == GW_PKT_GRAD && pkt->agg_flags & GW_AGG_SLOT) &&
           !(pkt->q.kind == GW_PKT_NOTICE && !pkt->notice.is_answer);
}

/* Whether a packet may be of the same train as one before it. */
static bool joins(const struct gw_endpoint *ep, const struct gw_pkt *pkt,
                  const struct gw_pkt *before)
{
    return pkt->dst == before->dst && pkt->entropy == before->entropy &&
           pkt->q.kind == before->q.kind && pkt->q.ecn == before->q.ecn &&
           pkt->q.class == before->q.class && stays_here(ep, pkt) == stays_here(ep, before);
}

/* One train of control, or the part of it that `max` allows. */
static uint32_t control_output(struct gw_endpoint *ep, struct gw_egress *egress,
                               struct gw_pkt **pkts, uint32_t max)
{
    struct gw_pkt_fifo *control = &egress->control;
    uint32_t count = 0;
    do
        pkts[count++] = gw_pkt_fifo_pop(control, ep->pool);
    while (count < max && control->count && joins(ep, gw_pkt_at(ep->pool, control->head), pkts[0]));
    return count;
}

bool gw_endpoint_pause(struct gw_endpoint *ep, uint16_t port, gw_time time)
{
    struct gw_egress *egress = &ep->egress[port];
    if (!egress->pause)
        egress->pause = gw_pkt_claim(ep->pool);
    if (!egress->pause)
        return false;
    gw_pause_fill(egress->pause, ep->cfg.hdr, time);
    gw_node_report(&ep->node, port, &egress->is_ready);
    return true;
}

/* Opens or shuts the port for data, until `until`. */
static void set_gate(struct gw_endpoint *ep, uint16_t port, gw_time until, gw_time now)
{
    struct gw_egress *egress = &ep->egress[port];
    uint32_t timer = ep->cfg.tx_flows_max + ep->cfg.rx_flows_max + ep->cfg.apps_max + port;
    gw_pause_gate_set(&egress->gate, until != GW_TIME_NEVER, now);
    gw_endpoint_arm(ep, timer, until);
    if (!egress->gate.is_shut && egress->classes)
        gw_node_report(&ep->node, port, &egress->is_ready);
}

void gw_egress_obey(struct gw_endpoint *ep, uint16_t port, gw_time time, gw_time now)
{
    set_gate(ep, port, time ? gw_time_add(now, time) : GW_TIME_NEVER, now);
}

void gw_egress_expire(struct gw_endpoint *ep, uint16_t port, gw_time now)
{
    set_gate(ep, port, GW_TIME_NEVER, now);
}

/* Besides a PAUSE. */
static bool has_more(const struct gw_egress *egress)
{
    return egress->control.count || (egress->classes && !egress->gate.is_shut);
}

uint32_t gw_egress_output(struct gw_node *node, uint16_t port, struct gw_pkt **pkts, uint32_t max,
                          gw_time now)
{
    struct gw_endpoint *ep = (struct gw_endpoint *)node;
    struct gw_egress *egress = &ep->egress[port];
    uint32_t count = 0;
    if (max > 0 && egress->pause) {
        pkts[count++] = egress->pause;
        egress->pause = NULL;
    }
    while (max > 0 && count == 0 && has_more(egress)) {
        if (egress->control.count) {
            count = control_output(ep, egress, pkts, max);
        } else {
            uint32_t class = 31 - (uint32_t)__builtin_clz(egress->classes);
            count = ring_output(ep, egress, class, pkts, max, now);
        }
        if (count && stays_here(ep, pkts[0])) {
            count = gw_pkt_settle(ep->pool, pkts, count, &ep->stats.refused);
            gw_node_input(node, port, pkts, count, now); /* to this host: it takes no link */
            count = 0;
        }
    }
    egress->is_ready = egress->pause || has_more(egress);
    return egress->is_ready ? count | GW_OUTPUT_MORE : count;
}
