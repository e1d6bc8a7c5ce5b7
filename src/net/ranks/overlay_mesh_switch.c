/*
 * The switch by which the packets of a mesh go; see overlay_mesh.h.
 *
 * A rank first attaches to its switch and then comes to rank 0, so when all have met, every packet
 * finds its way. A switch that dies takes packets with it, and flows repeat them when it has come
 * back; whether that is soon enough decides the patience of the job.
 */
#include <stdio.h>

#include "base/error.h"
#include "net/ranks/overlay_mesh_impl.h"

int gw_mesh_dial_switch(struct gw_overlay_mesh *mesh, char *error)
{
    struct gw_greeting none = {.job = 0};
    int dial = gw_station_dial(mesh->cfg.station, mesh->cfg.switch_, &none, error);
    if (dial < 0)
        return dial;
    mesh->switch_dial = dial;
    return GW_OK;
}

bool gw_mesh_is_cut_off(const struct gw_overlay_mesh *mesh)
{
    return mesh->cfg.switch_ && !mesh->is_switch_up;
}

/* The first time that the switch is there: now others can reach us. */
static void go_home(struct gw_overlay_mesh *mesh, gw_time now)
{
    char error[GW_NET_ERROR_MAX];
    if (gw_mesh_dial_home(mesh, error) == GW_OK)
        return;
    gw_mesh_fail(mesh, GW_JOB_LIMIT, mesh->cfg.rank, now);
    snprintf(mesh->text, sizeof(mesh->text), "%s", error);
}

void gw_mesh_switch_event(struct gw_overlay_mesh *mesh, const struct gw_neighbour_event *event,
                          gw_time now)
{
    mesh->is_switch_up = event->kind == GW_NEIGHBOUR_UP;
    if (mesh->is_switch_up) {
        gw_loop_link(gw_station_loop(mesh->cfg.station), (struct gw_loop_port){mesh->node, 0},
                     event->peer, true);
        if (mesh->cfg.rank != 0 && !mesh->ranks[0].is_dialled && mesh->state != GW_MESH_OVER)
            go_home(mesh, now);
    } else if (event->kind == GW_NEIGHBOUR_REFUSED && mesh->state != GW_MESH_OVER &&
               mesh->state != GW_MESH_LEAVING) {
        gw_mesh_fail(mesh, GW_JOB_LOST, mesh->cfg.rank, now);
        snprintf(mesh->text, sizeof(mesh->text), "the switch at %s refuses us: %s",
                 mesh->cfg.switch_,
                 gw_attach_reason_text((enum gw_attach_reason)event->said.reason));
    }
}

void gw_mesh_go_direct(struct gw_overlay_mesh *mesh)
{
    struct gw_loop *loop = gw_station_loop(mesh->cfg.station);
    for (uint32_t i = 0; i < mesh->cfg.world; i++) {
        const struct gw_mesh_rank *rank = &mesh->ranks[i];
        if (rank->is_up)
            gw_loop_direct(loop, (struct gw_loop_port){mesh->node, 0}, rank->at.address,
                           rank->peer);
    }
}
