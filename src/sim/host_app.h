/*
 * The application on a simulated host: what it still has to start, and when. It starts flows and
 * members of jobs, calls members when they want to be called, and takes the endpoint's events.
 */
#ifndef GW_SIM_HOST_APP_H
#define GW_SIM_HOST_APP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"
#include "core/path.h"

struct gw_sim;
struct gw_sim_node;
struct gw_sim_part;

/* A flow that a host is to start, or a member of a job. */
struct gw_sim_start {
    gw_time at;
    uint32_t flow; /* index in the workload; behind all flows: of a member; and behind these: of
                      a member of which the job's first server is to hear */
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
    uint32_t first_member; /* of jobs, on this host; UINT32_MAX: none */
    gw_time wake;          /* when the first of them wants to be called; GW_TIME_NEVER: none */
    uint32_t claimant;     /* job of the communicator or registrar there; UINT32_MAX: none */
};

static inline void gw_sim_app_init(struct gw_sim_app *app)
{
    *app = (struct gw_sim_app){
        .first_member = UINT32_MAX, .wake = GW_TIME_NEVER, .claimant = UINT32_MAX};
}

void gw_sim_app_add(struct gw_sim_app *app, struct gw_sim_start start);

/* When gw_sim_app_run() must be called; GW_TIME_NEVER: nothing is to be done. */
static inline gw_time gw_sim_app_next(const struct gw_sim_app *app)
{
    if (app->cursor == app->count || app->is_blocked)
        return app->wake;
    gw_time at = app->starts[app->cursor].at;
    at = at > app->ready_at ? at : app->ready_at;
    return at < app->wake ? at : app->wake;
}

/* Starts what is due, and calls members whose time has come. */
void gw_sim_app_run(struct gw_sim_part *part, struct gw_sim_node *node, gw_time now);

/* The path of a flow between two hosts, without labels. */
struct gw_path gw_sim_app_path(const struct gw_sim *sim, uint32_t src, uint32_t dst);

/* Takes all events of the host's endpoint. */
void gw_sim_app_poll(struct gw_sim_part *part, struct gw_sim_node *node, gw_time now);

/*
 * In the serial phase, of a host that crashes: its running flows fail, and its starts wait until
 * the host is back at `until`, or fail in their turn if that is GW_TIME_NEVER.
 */
void gw_sim_app_crash(struct gw_sim *sim, uint32_t place, gw_time now, gw_time until);

#endif
