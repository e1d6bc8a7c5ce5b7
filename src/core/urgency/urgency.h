/*
 * How urgent a sender says its packets are: the class and the rank by which queues tell them apart.
 *
 * An algorithm is a function from how far a message is to the urgency of one of its packets; it
 * keeps nothing, and is the same for whatever sends the message. The class may depend on what has
 * left so far, never on which packet it is: all packets of a train have one class. One file here
 * and one line in urgency.def make an algorithm.
 */
#ifndef GW_CORE_URGENCY_H
#define GW_CORE_URGENCY_H

#include <stdbool.h>

#include "core/algo.h"

/* Of a packet that is about to leave. */
struct gw_urgency_sample {
    uint64_t bytes;   /* of the message */
    uint64_t sent;    /* of these, what has left so far, each byte counted once */
    uint64_t remains; /* from this packet's first byte to the end: what had not left when it first
                         did, itself included */
    uint8_t class;    /* that the message was given */
};

struct gw_urgency {
    uint32_t rank; /* lower is more urgent, among packets of a class */
    uint8_t class; /* GW_CLASS_BEST_EFFORT to GW_CLASS_DATA_MAX */
};

struct gw_urgency_ops {
    struct gw_algo algo; /* it has no private memory */
    bool ranks_by_place; /* the rank depends on which packet it is: not for blasts, whose packets
                            leave in no order */
    struct gw_urgency (*pick)(const void *cfg, const struct gw_urgency_sample *sample);
};

extern const struct gw_registry gw_urgency_registry;

/* The one that whoever sends does without being told. */
extern const struct gw_urgency_ops gw_urgency_message;

#endif
