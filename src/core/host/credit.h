/*
 * Flows on credit: the receiver lets the sender go on (EQDS; what is granted when is a matter of
 * core/grant).
 *
 * One credit is one packet. Both ends count from the beginning of the flow, and a CREDIT carries
 * the receiver's count, so a lost one is made good by the next. A sender begins with plan.first
 * packets for free. With the first that it hears of its receiver that ends: one more free packet
 * tells the receiver how many there were.
 *
 * The receiver keeps in `due` how many packets are under way, or granted and not sent yet: each
 * arrival, trimmed or whole, takes one off, each credit adds one. What is missing of the message
 * and not due needs credit. So a trim needs no message of its own, and a flow of few packets no
 * credit at all. A flow that wants credit waits in a queue, served in turn by one pacer for all
 * ports.
 *
 * What is lost without a trace leaves `due` too high. In the end the sender has neither credit nor
 * anything in flight; after a timeout it sends one packet that says so, and the receiver starts to
 * count anew.
 *
 * A blast is the same but for what tells of losses. Its sender has no free packet more when it
 * hears of its receiver. With a STOP it gives up what credit it has, and whatever was under way has
 * arrived or is lost when the receiver answers that, so it counts anew then.
 *
 * A sender that lies about this, doubles its packets, or says STOP again and again, is granted as
 * much as its turns in the queue allow, and no other's turn.
 *
 * Invariants: of honest senders, due + (what arrived) falls behind what the sender may have sent
 * only by what the network doubles, and by credits that cross a packet or STOP that says there is
 * none; credits of any time span t are at most one train above what the pace allows in t, if timers
 * come in time. The pacer catches up with one that comes late: that adds what the pace allows in
 * the delay, and at most in 2 ms.
 */
#ifndef GW_CORE_CREDIT_H
#define GW_CORE_CREDIT_H

#include "core/host/endpoint_impl.h"

/* Packets that a flow of `total` sends before any credit; its transport has a grant. */
uint32_t gw_credit_free(const struct gw_endpoint *ep, const struct gw_transport *transport,
                        const struct gw_path *path, uint32_t total);

/* The receiver's half. */

/* A flow of `total` packets opens, some of which come without credit. */
void gw_credit_open(struct gw_endpoint *ep, struct gw_grantee *grantee, uint32_t total,
                    gw_time now);
/* A data packet of an active flow of `total` packets arrived, trimmed or whole. */
void gw_credit_arrived(struct gw_endpoint *ep, struct gw_grantee *grantee, uint32_t total,
                       const struct gw_pkt *pkt, gw_time now);
/* Nothing of the flow is under way. */
void gw_credit_renew(struct gw_endpoint *ep, struct gw_grantee *grantee, gw_time now);
/* The flow wants no credit any more. */
void gw_credit_leave(struct gw_endpoint *ep, struct gw_grantee *grantee);
/* The time of the next credit may have come. */
void gw_credit_expire(struct gw_endpoint *ep, gw_time now);

#endif
