/*
 * The application on a simulated host: what it still has to start, and when. It starts flows and
 * members of jobs, and takes the endpoint's events.
 */
#ifndef GW_SIM_HOST_APP_H
#define GW_SIM_HOST_APP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

struct gw_sim;
struct gw_sim_node;
struct gw_sim_part;

/* A flow that a host is to start, or a member of a job. */
struct gw_sim_start {
    gw_time at;
    uint32_t flow; /* index in the workload; behind all flows: of a member */
};

/* What an application still has to start, sorted by (at, flow). */
struct gw_sim_app {
    struct gw_sim_start *starts;
    uint32_t count;
    uint32_t room;
    uint32_t cursor;  /* starts before it are done */
    gw_time ready_at; /* of a host that crashed: nothing starts before, but late starts do then */
    bool is_blocked;  /* the endpoint had no room: wait for a flow to end */
    bool is_gone;     /* the host crashed for good: what is to start fails */
    uint32_t sends;   /* flows started, in all lives of the host */
};

void gw_sim_app_add(struct gw_sim_app *app, struct gw_sim_start start);

/* When gw_sim_app_start() must be called; GW_TIME_NEVER: nothing can start. */
static inline gw_time gw_sim_app_next(const struct gw_sim_app *app)
{
    if (app->cursor == app->count || app->is_blocked)
        return GW_TIME_NEVER;
    gw_time at = app->starts[app->cursor].at;
    return at > app->ready_at ? at : app->ready_at;
}

/* Starts what is due. */
void gw_sim_app_start(struct gw_sim_part *part, struct gw_sim_node *node, gw_time now);

/* Takes all events of the host's endpoint. */
void gw_sim_app_poll(struct gw_sim_part *part, struct gw_sim_node *node, gw_time now);

/*
 * In the serial phase, of a host that crashes: its running flows fail, and its starts wait until
 * the host is back at `until`, or fail in their turn if that is GW_TIME_NEVER.
 */
void gw_sim_app_crash(struct gw_sim *sim, uint32_t place, gw_time now, gw_time until);

#endif
