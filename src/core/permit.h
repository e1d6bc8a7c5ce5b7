/*
 * What a host may say by the link on which it hangs. Whoever shares a network is a stranger:
 * nothing in a packet ties it to the process that sent it, so the first hop looks, which knows who
 * attached there and for which job. What has passed it is believed by the switches behind it.
 *
 * A host sends in its own name. A rank of a job sends gradients, announces bursts, and says what
 * workers say of job control, of that job alone. A host of no job may be a server: it sends
 * results, and what servers say. Of which jobs, the switches know that have heard ranks ask it
 * (switch/switch_jobs.h). What flows carry is between the two hosts.
 */
#ifndef GW_CORE_PERMIT_H
#define GW_CORE_PERMIT_H

#include "core/pkt.h"

struct gw_permit {
    uint32_t address; /* of the host */
    uint32_t job;     /* number of a shard of the job whose rank it is; 0: of none */
};

/* Whether the packet may come from the host. */
bool gw_permit_allows(const struct gw_permit *permit, const struct gw_pkt *pkt);

#endif
