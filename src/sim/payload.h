/*
 * Contents of messages, with host.payload; see payload.c. A flow's message exists until it was
 * sent, and memory for it at the receiver until it was received.
 */
#ifndef GW_SIM_PAYLOAD_H
#define GW_SIM_PAYLOAD_H

#include "sim/sim_impl.h"

/* 0, or an error with `why` set. */
int gw_sim_payload_open(struct gw_sim *sim, char *why);
void gw_sim_payload_close(struct gw_sim *sim);

/* What a flow sends; NULL: it has no contents. */
const void *gw_sim_payload_message(struct gw_sim *sim, uint32_t flow);
void gw_sim_payload_sent(struct gw_sim *sim, uint32_t flow);

void gw_sim_payload_expect(struct gw_sim *sim, uint32_t flow);

/* Whether what has arrived is what was sent, and nothing but the `missing` packets is missing. */
bool gw_sim_payload_received(struct gw_sim *sim, uint32_t flow, uint32_t missing);

/* The application of a host that crashed expects what is still being sent to it. */
void gw_sim_payload_expect_again(struct gw_sim *sim, const struct gw_sim_node *node);

#endif
