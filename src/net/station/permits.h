/*
 * What the neighbours of a loop may send: the first hop of whoever attached here looks at all that
 * it says (core/permit.h).
 */
#ifndef GW_NET_PERMITS_H
#define GW_NET_PERMITS_H

#include "core/permit.h"
#include "core/tenants.h"
#include "net/datapath.h"

struct gw_permits {
    struct gw_permit *of;               /* of every neighbour; address 0: it may send anything */
    uint8_t *tenants;                   /* whose host each neighbour is */
    uint64_t forbidden[GW_TENANTS_MAX]; /* packets of each tenant's that were dropped */
};

/* For neighbours below `peers_max`, which may send anything at first. Returns 0 or
 * GW_ERR_NO_MEMORY. */
int gw_permits_open(struct gw_permits *permits, uint32_t peers_max);
void gw_permits_close(struct gw_permits *permits);

/* Of a host of this tenant. NULL: the neighbour may send anything. */
void gw_permits_set(struct gw_permits *permits, uint16_t peer, const struct gw_permit *permit,
                    uint32_t tenant);

/* Takes what its neighbour may not send out of a train, back into `pool`. */
void gw_permits_sift(struct gw_permits *permits, struct gw_datapath_train *train,
                     struct gw_pkt_pool *pool);

#endif
