/*
 * What messages of the workload may lose. A message is known everywhere by its tag, so both of its
 * ends find its bound by that; what a sender says in a packet, as blasts do, is believed besides.
 *
 * Invariant: no message that is reported as received lacks more than its bound; a run in which one
 * does fails.
 */
#ifndef GW_SIM_MESSAGE_TERMS_H
#define GW_SIM_MESSAGE_TERMS_H

#include "sim/sim_impl.h"

/* Whether anything in the workload may lose a part. */
bool gw_sim_any_loses(const struct gw_workload *workload);

/* The largest part of a message that may be missing; 0: none. */
gw_q16 gw_sim_message_bound(const struct gw_sim *sim, uint32_t tag);

/* What the endpoints of the run ask; it stays where it is while `sim` does. NULL: all messages must
 * arrive whole. */
const struct gw_finish *gw_sim_message_finish(struct gw_sim *sim);

/* Packets of a message that was received, those missing among them. */
static inline uint64_t gw_sim_message_packets(const struct gw_event *event)
{
    return (event->mss ? (event->bytes + event->mss - 1) / event->mss : 0) + event->missing;
}

/* What a flow says of its packets, when it starts and when it has ended: memory that is the flow's
 * in between. */
void gw_sim_message_weigh(struct gw_sim *sim, uint32_t flow, struct gw_send *send);
void gw_sim_message_forget(struct gw_sim *sim, uint32_t flow);

/* A job's message whose important packets are drawn. */
struct gw_sim_worth {
    const struct gw_job_worth *worth;
    uint64_t seed;   /* of who sends it */
    uint32_t number; /* of the message, in each round */
    uint32_t round;
    uint64_t bytes;
    uint32_t packet; /* bytes of payload */
};

/* Sets a bit for each packet that is important, and returns how many are. The same message has the
 * same ones whenever it is drawn. */
uint32_t gw_sim_draw_important(const struct gw_sim_worth *message, uint64_t *bits);

/* A message was received: counts it if it lacks more than it may. */
void gw_sim_message_check(struct gw_sim_part *part, const struct gw_event *event);

#endif
