/*
 * The switch by which the packets of a team go; see team.h.
 *
 * A rank first attaches to its switch and then comes to rank 0, so when all have met, every packet
 * finds its way. A switch that dies takes packets with it, and flows repeat them when it has come
 * back; whether that is soon enough, before calls have stalled, the job decides.
 */
#include <stdio.h>

#include "base/error.h"
#include "net/ranks/team_impl.h"

int gw_team_dial_switch(struct gw_team *comm, char *error)
{
    struct gw_greeting none = {.job = 0};
    int dial = gw_station_dial(comm->cfg.station, comm->cfg.switch_, &none, error);
    if (dial < 0)
        return dial;
    comm->switch_dial = dial;
    return GW_OK;
}

bool gw_team_is_cut_off(const struct gw_team *comm)
{
    return comm->cfg.switch_ && !comm->is_switch_up;
}

/* The first time that the switch is there: now others can reach us. */
static void come_to_rank_0(struct gw_team *comm, gw_time now)
{
    char error[GW_NET_ERROR_MAX];
    if (gw_team_dial_rank_0(comm, error) == GW_OK)
        return;
    gw_team_fail(comm, GW_JOB_LIMIT, comm->cfg.rank, now);
    snprintf(comm->text, sizeof(comm->text), "%s", error);
}

void gw_team_switch_event(struct gw_team *comm, const struct gw_neighbour_event *event, gw_time now)
{
    comm->is_switch_up = event->kind == GW_NEIGHBOUR_UP;
    if (comm->is_switch_up) {
        gw_loop_link(gw_station_loop(comm->cfg.station), (struct gw_loop_port){comm->node, 0},
                     event->peer, true);
        if (comm->cfg.rank != 0 && !comm->ranks[0].is_dialled && comm->state != GW_TEAM_OVER)
            come_to_rank_0(comm, now);
    } else if (event->kind == GW_NEIGHBOUR_REFUSED && comm->state != GW_TEAM_OVER &&
               comm->state != GW_TEAM_LEAVING) {
        gw_team_fail(comm, GW_JOB_LOST, comm->cfg.rank, now);
        snprintf(comm->text, sizeof(comm->text), "the switch at %s refuses us: %s",
                 comm->cfg.switch_,
                 gw_attach_reason_text((enum gw_attach_reason)event->said.reason));
    }
}

void gw_team_go_direct(struct gw_team *comm)
{
    struct gw_loop *loop = gw_station_loop(comm->cfg.station);
    for (uint32_t i = 0; i < comm->cfg.world; i++) {
        const struct gw_team_rank *rank = &comm->ranks[i];
        if (rank->is_up)
            gw_loop_direct(loop, (struct gw_loop_port){comm->node, 0}, rank->at.address,
                           rank->peer);
    }
}
