/*
 * What leaves by an endpoint's ports, as those who send see it: control packets, which go first,
 * and senders, which are asked for their next packet when their turn comes; see egress.c.
 */
#ifndef GW_CORE_EGRESS_H
#define GW_CORE_EGRESS_H

#include "core/node.h"

struct gw_endpoint;

/*
 * Whatever has packets of its own to send by a port: a flow's sender half, or an application.
 * First member of each, which sets ops, port, class and rank; the rest is the endpoint's. In the
 * ring the latter two may change in emit() alone, and the class only at the end of a train.
 */
struct gw_sender {
    const struct gw_sender_ops {
        /* Whether emit() would give a packet now. */
        bool (*can_send)(const struct gw_endpoint *ep, const struct gw_sender *sender, gw_time now);
        /* The next packet, or NULL when the pool is empty; it then sees to being woken itself. */
        struct gw_pkt *(*emit)(struct gw_endpoint *ep, struct gw_sender *sender, gw_time now);
        /* More packets of the same train, those that emit() would give next one after the other,
         * behind pkts[0], which it has just given; at most until `max` are there. Returns how many
         * there are. NULL: only emit() gives any. */
        uint32_t (*extend)(struct gw_endpoint *ep, struct gw_sender *sender, struct gw_pkt **pkts,
                           uint32_t max, gw_time now);
    } * ops;
    struct gw_sender *ring_next; /* of the same port and class that wants to send */
    uint32_t rank;               /* lower goes first within a class; 0 for most */
    uint32_t train_left;         /* packets that the running train may still take */
    uint16_t entropy;            /* of the running train */
    uint16_t port;
    uint8_t class;
    bool in_ring;       /* or waits for the notice of its burst */
    bool leads;         /* its first packet is the head of an announced burst */
    uint32_t announcer; /* that it is a user of, from 1; 0: none (announce.h) */
};

/* The sender may have something to send: from now on it is asked in turn, until it has nothing. */
void gw_egress_join(struct gw_endpoint *ep, struct gw_sender *sender);

/* The sender is asked no more. */
void gw_egress_leave(struct gw_endpoint *ep, struct gw_sender *sender);

/* Queues a control packet, which is the endpoint's then. Without room it is dropped and counted. */
void gw_egress_control(struct gw_endpoint *ep, struct gw_pkt *pkt);

#endif
