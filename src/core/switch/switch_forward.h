/*
 * Forwarding, for a driver that sends packets one by one and knows which links are free. It asks
 * for the way of a packet before it hands it over: what finds its link free, and nothing that
 * waits, passes without being queued. Nobody can tell that from input followed by output.
 *
 * This is what each hop of a simulation costs, so it is part of its caller.
 */
#ifndef GW_CORE_SWITCH_FORWARD_H
#define GW_CORE_SWITCH_FORWARD_H

#include "core/switch/switch_impl.h"

/* The port by which a packet leaves that is routed and queued, and nothing else, as most are;
 * GW_PORT_NONE: it is for the verb `input`. To be asked once. */
static inline uint16_t gw_switch_way(const struct gw_switch *sw, const struct gw_pkt *pkt)
{
    if (!sw->is_plain || !gw_switch_is_plain(pkt))
        return GW_PORT_NONE;
    struct gw_switch_hop hop;
    gw_switch_route_look_up(&sw->route, pkt, &hop);
    return hop.out;
}

/* The packet finds the link of `out`, its way, free. True: it leaves at once. */
static inline bool gw_switch_pass(struct gw_switch *sw, uint16_t out, const struct gw_pkt *pkt)
{
    return gw_switch_queue_pass(&sw->queue, out, pkt);
}

/* Otherwise it waits there: the rest of the verb `input`. True: the port has become ready, and is
 * not on the ready list. */
static inline bool gw_switch_wait(struct gw_switch *sw, uint16_t in, uint16_t out,
                                  struct gw_pkt *pkt, gw_time now)
{
    return gw_switch_queue_put(&sw->queue, in, out, pkt, now);
}

/* The verb `output`. */
static inline uint32_t gw_switch_pull(struct gw_switch *sw, uint16_t out, struct gw_pkt **pkts,
                                      uint32_t max, gw_time now)
{
    if (sw->queue.is_simple)
        return gw_switch_queue_output_one(&sw->queue, out, pkts, max);
    return gw_switch_queue_output(&sw->queue, out, pkts, max, now);
}

#endif
