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
#define GW_OVERLAY_QUIET    (5 * GW_MS)  /* the server asks for what collisions left */
#define GW_OVERLAY_LEAK     (1 * GW_S)   /* a switch gives up an aggregator that nobody comes for */
#define GW_OVERLAY_JOB_IDLE (10 * GW_S)  /* a switch forgets a job whose server is silent */

enum {
    GW_OVERLAY_VALUES = 352,       /* elements per fragment: MTU 1500 over IPv4 and IPv6 */
    GW_OVERLAY_WINDOW = 256,       /* fragments of a worker on their way */
    GW_OVERLAY_AGGREGATORS = 4096, /* of a switch */
    GW_OVERLAY_WORLD_MAX = 1024,   /* workers of a job */
};

/* Packets of `hdr + payload` bytes that travel as one train. */
uint32_t gw_overlay_train(uint32_t hdr, uint32_t payload);

/*
 * Makes the endpoint of a role. What all have in common is filled into `cfg`: port, span,
 * acknowledgements, trains and generation. Returns 0 and sets *endpoint, whose memory free()
 * releases; GW_ERR_INVALID or GW_ERR_NO_MEMORY.
 */
int gw_overlay_endpoint_open(struct gw_endpoint_cfg *cfg, struct gw_endpoint **endpoint);

#endif
