/* What neighbours may send; see permits.h. */
#include "net/station/permits.h"

#include <stdlib.h>

#include "base/error.h"

int gw_permits_open(struct gw_permits *permits, uint32_t peers_max)
{
    permits->of = calloc(peers_max + 1u, sizeof(*permits->of));
    permits->tenants = calloc(peers_max + 1u, sizeof(*permits->tenants));
    return permits->of && permits->tenants ? GW_OK : GW_ERR_NO_MEMORY;
}

void gw_permits_close(struct gw_permits *permits)
{
    free(permits->of);
    free(permits->tenants);
}

void gw_permits_set(struct gw_permits *permits, uint16_t peer, const struct gw_permit *permit,
                    uint32_t tenant)
{
    permits->of[peer] = permit ? *permit : (struct gw_permit){.address = 0};
    permits->tenants[peer] = (uint8_t)tenant;
}

void gw_permits_sift(struct gw_permits *permits, struct gw_datapath_train *train,
                     struct gw_pkt_pool *pool)
{
    if (train->count == 0 || permits->of[train->peer].address == 0)
        return;
    const struct gw_permit *permit = &permits->of[train->peer];
    uint16_t kept = 0, count = train->count;
    for (uint16_t i = 0; i < count; i++) {
        if (gw_permit_allows(permit, train->pkts[i]))
            train->pkts[kept++] = train->pkts[i];
        else
            gw_pkt_release(pool, train->pkts[i]);
    }
    train->count = kept;
    permits->forbidden[permits->tenants[train->peer]] += (uint64_t)count - kept;
}
