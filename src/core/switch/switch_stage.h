/*
 * What the stages of a switch hand to each other.
 *
 * A packet passes them in this order, and no stage knows the next one; switch.c is the only place
 * that does:
 *
 *   classify    whose packet is it, and what is it to this switch?
 *   route       by which port does it leave?
 *   notice      does it announce a burst there, or end the announcement?
 *   aggregate   is it added to others, multiplied, or noted down on its way?
 *   queue       when does it leave, and in which state?
 *
 * Each has a header switch_STAGE.h; job control is in switch_jobs.h.
 */
#ifndef GW_CORE_SWITCH_STAGE_H
#define GW_CORE_SWITCH_STAGE_H

#include "core/node.h"

/* What a packet is to this switch. */
enum gw_switch_traffic {
    GW_TRAFFIC_PLAIN,  /* it goes on as it came */
    GW_TRAFFIC_PAUSE,  /* of the link that it came by, and goes no further */
    GW_TRAFFIC_OWN,    /* job control for this switch, which turns it round */
    GW_TRAFFIC_WORKER, /* job control of a worker, which says whom it asks */
    GW_TRAFFIC_TENSOR, /* values that an aggregator may add up, or a result */
    GW_TRAFFIC_SLOT,   /* values for a slot */
};

/* The way of one packet through the switch. */
struct gw_switch_hop {
    uint16_t in;    /* port by which it came */
    uint16_t out;   /* port by which it leaves; GW_PORT_NONE: there is no way */
    uint16_t set;   /* if it spreads: of ports to its destination */
    bool spreads;   /* other packets to its destination may leave by other ports */
    bool is_own;    /* the switch's: it may leave by any port */
    bool has_begun; /* the burst that it is the head of, if it is one: the stage of notices knows */
};

/* What becomes of a packet that is aggregated. */
enum gw_switch_verdict {
    GW_SWITCH_PASS,  /* it goes on */
    GW_SWITCH_TAKEN, /* it ended here */
    GW_SWITCH_COPY,  /* it goes on to each of some addresses */
};

#endif
