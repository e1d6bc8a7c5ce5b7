/* The inside of the switch, shared by switch.c and switch_ports.c and by nobody else. */
#ifndef GW_CORE_SWITCH_IMPL_H
#define GW_CORE_SWITCH_IMPL_H

#include "core/switch/switch.h"
#include "core/switch/switch_aggregate.h"
#include "core/switch/switch_classify.h"
#include "core/switch/switch_jobs.h"
#include "core/switch/switch_queue.h"

/* What hangs on a port. */
struct gw_switch_link {
    uint16_t group; /* port by which its host is reached with others, or GW_PORT_NONE */
    bool is_edge;   /* a host */
};

struct gw_switch {
    struct gw_node node;
    bool is_plain; /* data and its answers are routed and queued, and nothing else */
    struct gw_switch_classify classify;
    struct gw_switch_route route;
    struct gw_switch_aggregate aggregate;
    struct gw_switch_jobs jobs;
    struct gw_switch_notice *notice; /* or NULL */
    struct gw_switch_queue queue;
    struct gw_switch_timers timers;
    struct gw_switch_link *links; /* per port */
    bool has_groups;
    struct gw_learned learned; /* unless classify.learned is NULL */
    uint32_t trim_size;        /* bytes of a packet of the switch's own */
    struct gw_prng prng;
    struct gw_pkt_pool *pool;
    struct gw_switch_stats stats;
};

/* Sends a packet of the switch's own to its destination. */
void gw_switch_send_own(struct gw_switch *sw, struct gw_pkt *pkt, gw_time now);

/* Gives ports the thresholds that the stage of notices wants. */
void gw_switch_apply_notices(struct gw_switch *sw);

#endif
