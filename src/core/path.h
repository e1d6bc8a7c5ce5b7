/*
 * What is known of the path between two hosts when a flow starts. The driver supplies it: the
 * simulator from the topology, a datapath from configuration and probes.
 */
#ifndef GW_CORE_PATH_H
#define GW_CORE_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

/* Explicit paths. The driver may change the contents while flows run, and keeps it as long. */
struct gw_path_labels {
    const uint16_t *labels; /* in the order in which to use them: a cycle */
    uint32_t count;
};

struct gw_path {
    gw_time brtt;      /* base RTT of this pair: full packet out, ACK back, empty network */
    gw_time brtt_max;  /* the same for the longest path of the fabric */
    uint64_t rate_bps; /* line rate of the sender's port */
    uint32_t bdp;      /* rate * brtt_max, or what is to count as that; bytes */
    uint32_t mtu;      /* payload bytes of a full data packet */
    uint32_t hdr;      /* header bytes of a packet; also the size of an ACK or a trimmed packet */
    uint16_t hops;     /* links one way */
    bool trims;        /* switches on the path trim rather than drop */
    bool is_sampled;   /* of many packets few are heard of: the flow is a blast */
    uint64_t window;   /* bytes: with which an earlier flow ended; 0: nothing is known */
    uint64_t memory;   /* what its congestion control left besides; 0: nothing */
    const struct gw_path_labels *labels; /* for source routing; NULL: unknown */
};

/* Time that a full data packet occupies the sender's port. */
static inline gw_time gw_path_packet_time(const struct gw_path *path)
{
    return gw_serialisation(gw_byte_time_from_bps(path->rate_bps), path->mtu + path->hdr);
}

#endif
