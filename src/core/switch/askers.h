/*
 * Which workers a switch has heard ask the server of which job: it multiplies results to those
 * alone. The first hop lets a host ask in its own name and for its own job alone (core/permit.h),
 * so no tenant has results sent to ranks of others.
 *
 * It is a cache, of as many workers for each tenant, in sets of a few of which the one that was
 * silent for longest goes. Workers repeat themselves while a job forms and while it runs, and so
 * does the server, so one that went comes back in time.
 */
#ifndef GW_CORE_ASKERS_H
#define GW_CORE_ASKERS_H

#include <stddef.h>

#include "core/tenants.h"

struct gw_asker;

struct gw_askers {
    struct gw_asker *sets; /* of one tenant after the other; strangers come last */
    const struct gw_tenants *tenants;
    uint32_t set_count; /* of each tenant; a power of two */
};

/* Bytes of memory for the workers of about `jobs_max` jobs of each tenant. */
size_t gw_askers_size(uint32_t jobs_max, const struct gw_tenants *tenants);

/* Makes an empty cache in `memory`, aligned to 64; the tenants must outlive it. */
void gw_askers_init(struct gw_askers *askers, void *memory, uint32_t jobs_max,
                    const struct gw_tenants *tenants);

/* The worker at that address asks the server of `job`. */
void gw_askers_note(struct gw_askers *askers, uint32_t job, uint32_t address);

/* Whether it was heard to. */
bool gw_askers_has(const struct gw_askers *askers, uint32_t job, uint32_t address);

#endif
