/*
 * Whom the workers of a job ask: what a switch has heard of the jobs whose job control passes it.
 * The first hop lets a host ask for its own job alone (core/permit.h), so the server that they name
 * is the job's, and nobody else may install it in the switch.
 *
 * An entry stays while its workers report; one that nobody has refreshed for `idle`, or whose
 * server has ended the job or gone, may name another server, and when all are in use the one that
 * has been silent for longest goes, of a tenant that has more than its part of half of them: who
 * asks for jobs without end forgets his own.
 */
#ifndef GW_CORE_ASKED_H
#define GW_CORE_ASKED_H

#include "base/map.h"
#include "base/time.h"
#include "core/tenants.h"

struct gw_asked_entry {
    gw_time heard;
    uint32_t job;
    uint32_t server;
    uint32_t tenant; /* gw_tenants_of() the job */
    bool is_over;    /* until a worker joins again */
};

struct gw_asked {
    struct gw_asked_entry *entries; /* [0, count) are in use */
    struct gw_map map;              /* number of a job to its index */
    const struct gw_tenants *tenants;
    uint32_t count;
    uint32_t max;
    gw_time idle;
};

/* Bytes of memory for `max` jobs. */
size_t gw_asked_size(uint32_t max);

/* Makes an empty table in `memory`, aligned to 64; the tenants must outlive it. */
void gw_asked_init(struct gw_asked *asked, void *memory, uint32_t max, gw_time idle,
                   const struct gw_tenants *tenants);

/* A worker of `job` asks `server`: to join, or for anything else. */
void gw_asked_note(struct gw_asked *asked, uint32_t job, uint32_t server, bool joins, gw_time now);

/* The server has ended the job. */
void gw_asked_end(struct gw_asked *asked, uint32_t job);

/* The server has gone. */
void gw_asked_gone(struct gw_asked *asked, uint32_t server);

/* Whether it is `server` that the workers of `job` ask. */
bool gw_asked_is(const struct gw_asked *asked, uint32_t job, uint32_t server);

#endif
