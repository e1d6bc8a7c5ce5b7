/*
 * How a sender tags its packets: the class and the rank by which queues tell urgent ones from
 * others.
 *
 * An algorithm is a function from how far a message is to the tag of one of its packets; it keeps
 * nothing, and is the same for whatever sends the message. The class may depend on what has left
 * so far, never on which packet it is: all packets of a train have one class. One file here and
 * one line in tag.def make an algorithm.
 */
#ifndef GW_CORE_TAG_H
#define GW_CORE_TAG_H

#include "core/algo.h"

/* Of a packet that is about to leave. */
struct gw_tag_sample {
    uint64_t bytes;   /* of the message */
    uint64_t sent;    /* of these, what has left so far, each byte counted once */
    uint64_t remains; /* from this packet's first byte to the end: what had not left when it first
                         did, itself included */
    uint8_t class;    /* that the message was given */
};

struct gw_tag {
    uint32_t rank; /* lower is more urgent, among packets of a class */
    uint8_t class; /* GW_CLASS_BEST_EFFORT to GW_CLASS_DATA_MAX */
};

struct gw_tag_ops {
    struct gw_algo algo; /* it has no private memory */
    struct gw_tag (*pick)(const void *cfg, const struct gw_tag_sample *sample);
};

extern const struct gw_registry gw_tag_registry;

/* The one that whoever sends does without being told. */
extern const struct gw_tag_ops gw_tag_message;

#endif
