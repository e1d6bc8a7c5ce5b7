/*
 * The books of a port of a switch.
 */
#ifndef GW_CORE_PORT_STATS_H
#define GW_CORE_PORT_STATS_H

#include "base/time.h"
#include "core/pkt.h"

/* Packets of one class that were dropped. */
struct gw_class_losses {
    uint64_t drops;
    uint64_t unimportant; /* of these, Not-ECT */
    uint64_t shed;        /* of these, while there was room for important ones (qdisc.h) */
};

static inline void gw_class_losses_add(struct gw_class_losses sum[GW_CLASSES],
                                       const struct gw_class_losses more[GW_CLASSES])
{
    for (uint32_t i = 0; i < GW_CLASSES; i++) {
        sum[i].drops += more[i].drops;
        sum[i].unimportant += more[i].unimportant;
        sum[i].shed += more[i].shed;
    }
}

/* What went through a port's egress queue. */
struct gw_port_stats {
    uint64_t in_bytes; /* offered to the queue */
    uint64_t out_bytes;
    uint64_t trimmed_bytes; /* payload cut off */
    uint64_t dropped_bytes;
    uint64_t out_packets;
    uint64_t marks; /* CE set here */
    uint64_t trims;
    uint64_t drops;
    uint64_t control_drops; /* of these, packets of control, which no PAUSE holds back */
    uint64_t pauses; /* times that the sender at the other end was told to hold its data back */
    gw_time paused;  /* time that data was held back here, until it last flowed again */
    struct gw_class_losses losses[GW_CLASSES]; /* the drops, by class */
};

#endif
