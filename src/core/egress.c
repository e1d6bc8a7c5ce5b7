/*
 * The endpoint's egress: what leaves next by a port. Control first, then the highest class, then
 * round robin over the flows of that class, one train each.
 *
 * A flow is in its ring while it may have something to send. Whether it really may is asked when
 * its turn comes, so a window that shrinks costs nothing here.
 */
#include "core/endpoint_impl.h"

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

void gw_egress_join(struct gw_endpoint *ep, struct gw_tx_flow *flow)
{
    if (flow->in_ring)
        return;
    flow->in_ring = true;
    struct gw_egress *egress = &ep->egress[flow->port];
    uint32_t index = gw_tx_index(ep, flow);
    uint32_t *tail = &egress->ring_tail[flow->class];
    if (egress->classes & 1u << flow->class) {
        flow->ring_next = ep->tx_flows[*tail].ring_next;
        ep->tx_flows[*tail].ring_next = index;
    } else {
        flow->ring_next = index;
        egress->classes |= (uint8_t)(1u << flow->class);
    }
    *tail = index;
    gw_node_report(&ep->node, flow->port, &egress->is_ready);
}

/* Removes the flow behind `before` from its ring. */
static void ring_remove_after(struct gw_endpoint *ep, struct gw_egress *egress, uint32_t before)
{
    struct gw_tx_flow *previous = &ep->tx_flows[before];
    struct gw_tx_flow *flow = &ep->tx_flows[previous->ring_next];
    uint32_t *tail = &egress->ring_tail[flow->class];
    if (previous == flow) {
        egress->classes &= (uint8_t) ~(1u << flow->class);
    } else {
        if (*tail == gw_tx_index(ep, flow))
            *tail = before;
        previous->ring_next = flow->ring_next;
    }
    flow->in_ring = false;
    flow->train_left = 0;
}

void gw_egress_leave(struct gw_endpoint *ep, struct gw_tx_flow *flow)
{
    if (!flow->in_ring)
        return;
    uint32_t index = gw_tx_index(ep, flow);
    uint32_t before = index;
    while (ep->tx_flows[before].ring_next != index)
        before = ep->tx_flows[before].ring_next;
    ring_remove_after(ep, &ep->egress[flow->port], before);
}

/* One train, or the part of it that `max` allows, of the first flow in the ring that can send. */
static uint32_t ring_output(struct gw_endpoint *ep, struct gw_egress *egress, uint32_t class,
                            struct gw_pkt **pkts, uint32_t max, gw_time now)
{
    uint32_t count = 0;
    while (count == 0 && egress->classes & 1u << class) {
        uint32_t *tail = &egress->ring_tail[class];
        struct gw_tx_flow *flow = &ep->tx_flows[ep->tx_flows[*tail].ring_next];
        bool can_send;
        while ((can_send = gw_flow_tx_can_send(ep, flow, now)) && count < max) {
            struct gw_pkt *pkt = gw_flow_tx_emit(ep, flow, now);
            if (!pkt) {
                can_send = false;
                break;
            }
            pkts[count++] = pkt;
            if (flow->train_left == 0)
                break;
        }
        if (!can_send || !gw_flow_tx_can_send(ep, flow, now))
            ring_remove_after(ep, egress, *tail);
        else if (flow->train_left == 0)
            *tail = gw_tx_index(ep, flow);
    }
    return count;
}

uint32_t gw_egress_output(struct gw_node *node, uint16_t port, struct gw_pkt **pkts, uint32_t max,
                          gw_time now)
{
    struct gw_endpoint *ep = (struct gw_endpoint *)node;
    struct gw_egress *egress = &ep->egress[port];
    uint32_t count = 0;
    if (egress->control.count) {
        pkts[count++] = gw_pkt_fifo_pop(&egress->control, ep->pool);
    } else {
        while (count == 0 && egress->classes) {
            uint32_t class = 31 - (uint32_t)__builtin_clz(egress->classes);
            count = ring_output(ep, egress, class, pkts, max, now);
        }
    }
    egress->is_ready = egress->control.count || egress->classes;
    return egress->is_ready ? count | GW_OUTPUT_MORE : count;
}
