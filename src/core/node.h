/*
 * The four verbs. Everything that reacts to packets is a node: the host endpoint and the switch.
 *
 * A driver (the simulator, a datapath, a test) owns the clock and the links, and calls:
 *
 * - input: packets arrived on a port. The node takes them; it never sends from here.
 * - output: a port can transmit, so the node hands over its next packets, a train of `max` at most.
 * - deadline: when must expire be called at the latest? The answer may be early, and is never late.
 * - expire: that time has come. At any other time the call is harmless.
 *
 * All packets of a train share destination, entropy, ECN and class.
 * `now` never goes backwards across the calls on one node, and the verbs are not re-entrant.
 *
 * Readiness. A port is either quiet or ready. input, expire and the applications' calls make ports
 * ready and append them to `ready`; the driver empties that list after each call, and calls output
 * for each of these ports when its link is free. output says with GW_OUTPUT_MORE that the port
 * stays ready (never with zero packets, unless `max` is zero); without it the port is quiet, and
 * the driver asks it no more until it is reported again. So a driver never polls, and a port is
 * never listed twice.
 */
#ifndef GW_CORE_NODE_H
#define GW_CORE_NODE_H

#include <stdint.h>

#include "base/assert.h"
#include "base/time.h"
#include "core/pkt.h"

struct gw_node;

/* No port; ports of a node are below GW_PORTS_MAX. */
#define GW_PORT_NONE UINT16_MAX
#define GW_PORTS_MAX 32767

/* Nobody, where switches learn: who sends to it is learned on the way to the top. */
#define GW_ADDRESS_NONE 0

/* Set in output's result when the port has more to send now; the low bits are the packet count. */
#define GW_OUTPUT_MORE UINT32_C(0x80000000)

struct gw_node_ops {
    void (*input)(struct gw_node *node, uint16_t port, struct gw_pkt **pkts, uint32_t count,
                  gw_time now);
    uint32_t (*output)(struct gw_node *node, uint16_t port, struct gw_pkt **pkts, uint32_t max,
                       gw_time now);
    void (*expire)(struct gw_node *node, gw_time now);
};

/* First member of every node. Drivers read all fields and empty the ready list; nodes write. */
struct gw_node {
    const struct gw_node_ops *ops;
    gw_time deadline;     /* GW_TIME_NEVER: no timer is armed */
    uint16_t *ready;      /* ports that became ready; room for every port once */
    uint16_t ready_count; /* the driver sets it back to 0 */
    uint16_t port_count;
    uint32_t event_count; /* endpoint: events that the application has not polled */
};

static inline void gw_node_input(struct gw_node *node, uint16_t port, struct gw_pkt **pkts,
                                 uint32_t count, gw_time now)
{
    node->ops->input(node, port, pkts, count, now);
}

static inline uint32_t gw_node_output(struct gw_node *node, uint16_t port, struct gw_pkt **pkts,
                                      uint32_t max, gw_time now)
{
    return node->ops->output(node, port, pkts, max, now);
}

static inline gw_time gw_node_deadline(const struct gw_node *node)
{
    return node->deadline;
}

static inline void gw_node_expire(struct gw_node *node, gw_time now)
{
    node->ops->expire(node, now);
}

/* For nodes: puts `port`, which was quiet, on the ready list. */
static inline void gw_node_list(struct gw_node *node, uint16_t port)
{
    GW_DEBUG_ASSERT(node->ready_count < node->port_count);
    node->ready[node->ready_count++] = port;
}

/* The same if it was quiet; `*is_ready` remembers that it is listed or being pulled. */
static inline void gw_node_report(struct gw_node *node, uint16_t port, bool *is_ready)
{
    if (!*is_ready) {
        *is_ready = true;
        gw_node_list(node, port);
    }
}

#endif
