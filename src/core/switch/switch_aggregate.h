/*
 * The third stage of a switch: adds up gradients and multiplies results, in aggregators that jobs
 * share (aggregate.h) or in slots that are theirs (slots.h).
 */
#ifndef GW_CORE_SWITCH_AGGREGATE_H
#define GW_CORE_SWITCH_AGGREGATE_H

#include "core/switch/aggregate.h"
#include "core/switch/slots.h"
#include "core/switch/switch_stage.h"
#include "core/switch/switch_timers.h"

struct gw_switch_aggregate {
    struct gw_aggregate *aggregators; /* or NULL */
    struct gw_slots *slots;           /* or NULL */
    struct gw_switch_timers *timers;
};

/* What else leaves. */
struct gw_switch_copies {
    const uint32_t *dsts; /* with GW_SWITCH_COPY: at least one address, until a job changes */
    uint32_t count;
    struct gw_pkt *beside; /* with GW_SWITCH_PASS: a sum that goes the same way, or NULL */
};

/* Takes a packet of GW_TRAFFIC_TENSOR or GW_TRAFFIC_SLOT. */
enum gw_switch_verdict gw_switch_aggregate(struct gw_switch_aggregate *stage, struct gw_pkt *pkt,
                                           enum gw_switch_traffic traffic,
                                           struct gw_switch_copies *copies, gw_time now);

/*
 * Whether a packet of GW_TRAFFIC_TENSOR that a host right below has sent is that host's own: a
 * gradient of the place that its job has for it here, or a result of the job's server. Of a job or
 * epoch that is not installed nothing is known, so it is.
 */
bool gw_switch_aggregate_is_own(const struct gw_switch_aggregate *stage, const struct gw_pkt *pkt);

/* Workers that a gradient stands for that leaves this switch, as gw_switch_notice_head takes them.
 */
uint32_t gw_switch_aggregate_workers(const struct gw_switch_aggregate *stage,
                                     const struct gw_pkt *pkt);

/* GW_SWITCH_TIMER_SWEEP has fired. */
void gw_switch_aggregate_sweep(struct gw_switch_aggregate *stage, gw_time now);

#endif
