/*
 * What workers, servers and switches on real sockets agree on without talking.
 *
 * Times are for networks of 100 Mb/s to 100 Gb/s between ordinary processes: long against what a
 * scheduler takes, short against what a person waits.
 */
#ifndef GW_NET_OVERLAY_H
#define GW_NET_OVERLAY_H

#include "core/host/endpoint.h"
#include "net/station/station.h"

#define GW_OVERLAY_RETRY    (20 * GW_MS) /* an unanswered packet of job control is sent again */
#define GW_OVERLAY_TIMEOUT  (20 * GW_MS) /* a fragment without a result is sent again */
#define GW_OVERLAY_PROBE    (4 * GW_MS)  /* the last fragments of a sum are, if others had theirs */
#define GW_OVERLAY_QUIET    (5 * GW_MS)  /* the server asks for what collisions left */
#define GW_OVERLAY_LEAK     (1 * GW_S)   /* a switch gives up an aggregator that nobody comes for */
#define GW_OVERLAY_JOB_IDLE (10 * GW_S)  /* a switch forgets a job whose server is silent */

/*
 * What the two hosts of a path add to its round trip: an answer waits for others for up to so long,
 * and processes take their turns.
 */
#define GW_OVERLAY_HOST_TIME (1 * GW_MS)

/* The base RTT of flows, and of the formula of notices, over hops that were measured; 0: none was,
 * and the hosts are all that is counted. At most GW_OVERLAY_BRTT_MAX. */
#define GW_OVERLAY_BRTT_MAX (1 * GW_S)
static inline gw_time gw_overlay_brtt(gw_time hops)
{
    gw_time brtt = hops + GW_OVERLAY_HOST_TIME;
    return brtt < GW_OVERLAY_BRTT_MAX ? brtt : GW_OVERLAY_BRTT_MAX;
}

/* Of links of which nobody says more: with GW_OVERLAY_HOST_TIME a window is about 125 KB, and most
 * paths bear a few of them. */
#define GW_OVERLAY_RATE_BPS     UINT64_C(1000000000)
#define GW_OVERLAY_RATE_MAX_BPS UINT64_C(400000000000)
#define GW_OVERLAY_RATE_MIN_BPS UINT64_C(1000000)

/* The slower of two rates, of which 0 is not known. */
static inline uint64_t gw_overlay_slower(uint64_t a, uint64_t b)
{
    return a && (b == 0 || a < b) ? a : b;
}

enum {
    GW_OVERLAY_VALUES = 352,       /* elements per fragment: MTU 1500 over IPv4 and IPv6 */
    GW_OVERLAY_WINDOW_MAX = 2048,  /* the most that may be configured: ranks have buffers for it */
    GW_OVERLAY_AGGREGATORS = 4096, /* of a switch */
    GW_OVERLAY_WORLD_MAX = 1024,   /* workers of a job */
    GW_OVERLAY_ACK_EVERY = 96,     /* data packets that are answered at once: two trains, as each
                                      answer costs both ends about what a third of a train does */
};

/* What flows of a process know of their links beforehand. */
struct gw_overlay_links {
    uint32_t hdr;      /* bytes of IP, UDP and our header */
    uint32_t mtu;      /* payload bytes of a full packet */
    uint64_t rate_bps; /* as the process was told; 0: as measured */
    bool trims;        /* switches may be on the way */
};

/* The path over hops of that round trip, 0: not known, whose slowest link has that rate. */
struct gw_path gw_overlay_path(const struct gw_overlay_links *links, gw_time hops,
                               uint64_t rate_bps);

/*
 * Sets a transport up with defaults for sockets: processes are slow to answer, and real paths do
 * not trim unless our switches are on them. Over one path packets stay in their order, so what
 * arrives tells what was lost; over several, time alone does. Returns 0, or GW_ERR_UNKNOWN or
 * GW_ERR_INVALID (load balancing that switches do) with `error` filled.
 */
int gw_overlay_transport(const char *cc, const char *lb, bool by_switch, uint32_t paths,
                         struct gw_transport *transport, char *error);

/*
 * The same for calls that may lose a part, which are blasts. Their hails are answered at once, so
 * they are sent again soon: a needless copy costs one small packet, a late one a call.
 */
int gw_overlay_parts_transport(const char *lb, struct gw_transport *transport, char *error);

/*
 * How urgent the packets of the transport's messages are, by the rule of that name, or by one of
 * its presets: NAME:PRESET. Blasts, whose packets leave in no order, keep their class where the
 * rule goes by places. Returns 0, or GW_ERR_UNKNOWN with `error` filled.
 */
int gw_overlay_urgency(const char *text, struct gw_transport *transport, char *error);

/* How often receivers of blasts report, on links of which processes know the rate, or 0; equal on
 * all processes of a job. */
gw_time gw_overlay_report_every(const struct gw_overlay_links *links);

/*
 * Fragments that each of `world` workers has on their way at most, each with a payload of so many
 * bytes, unless the window is configured; a power of two. All together are to fit the caches near
 * a core, where the server adds them up; one alone is to keep its link busy.
 */
uint16_t gw_overlay_window(uint32_t world, uint32_t payload);

/* Packets of `hdr + payload` bytes that travel as one train. */
uint32_t gw_overlay_train(uint32_t hdr, uint32_t payload);

/*
 * What a rank lets leave by its port, in bits of our packets, or 0: no limit is known. All that it
 * sends shares one link: blasts that are sent at the same time, each at line rate, would fill the
 * queues behind its socket, in which hails cannot overtake.
 */
uint64_t gw_overlay_port_bps(const struct gw_overlay_links *links);

/*
 * Makes the endpoint of a role. What all have in common is filled into `cfg`: port, span,
 * acknowledgements, trains and generation. Returns 0 and sets *endpoint, whose memory free()
 * releases; GW_ERR_INVALID or GW_ERR_NO_MEMORY.
 */
int gw_overlay_endpoint_open(struct gw_endpoint_cfg *cfg, struct gw_endpoint **endpoint);

#endif
