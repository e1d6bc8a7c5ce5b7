/* How ranks meet: the registrar, and its table of ranks. See mesh.h. */
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "core/ranks/mesh_impl.h"

static int expect(struct gw_mesh *mesh, uint32_t tag, void *memory, size_t size)
{
    return gw_endpoint_expect(mesh->cfg.endpoint, mesh->registrar, tag, memory, size);
}

void gw_mesh_await_registrar(struct gw_mesh *mesh)
{
    struct gw_mesh_posted *posted = &mesh->posted;
    int code = GW_OK;
    if (mesh->cfg.is_bare || !mesh->registrar)
        return;
    if (!posted->table)
        code = expect(mesh, GW_MESH_TAG_TABLE, mesh->table, gw_ranks_table_size(mesh->cfg.world));
    if (!code && !posted->failure)
        code = expect(mesh, GW_MESH_TAG_FAILURE, mesh->heard, sizeof(mesh->heard));
    if (!code && !posted->bye)
        code = expect(mesh, GW_MESH_TAG_BYE, &mesh->heard_bye, sizeof(mesh->heard_bye));
    GW_ASSERT(code == GW_OK); /* by gw_mesh_awaits() */
    *posted = (struct gw_mesh_posted){.table = true, .failure = true, .bye = true};
}

void gw_mesh_await_table_again(struct gw_mesh *mesh)
{
    if (mesh->state != GW_MESH_MEETING || mesh->cfg.is_bare)
        return;
    gw_endpoint_forget(mesh->cfg.endpoint, mesh->table, gw_ranks_table_size(mesh->cfg.world));
    mesh->posted.table = false;
    gw_mesh_await_registrar(mesh);
}

/* What was posted for a registrar that is elsewhere now. */
static void forget_registrar(struct gw_mesh *mesh)
{
    struct gw_endpoint *ep = mesh->cfg.endpoint;
    gw_outbox_disown(&mesh->outbox, mesh->cfg.world);
    mesh->posted = (struct gw_mesh_posted){.table = false};
    if (mesh->cfg.is_bare)
        return;
    gw_endpoint_forget(ep, mesh->table, gw_ranks_table_size(mesh->cfg.world));
    gw_endpoint_forget(ep, mesh->heard, sizeof(mesh->heard));
    gw_endpoint_forget(ep, &mesh->heard_bye, sizeof(mesh->heard_bye));
}

void gw_mesh_set_registrar(struct gw_mesh *mesh, uint32_t address, const struct gw_path *path,
                           gw_time now)
{
    GW_ASSERT(address != 0);
    bool is_first = mesh->registrar == 0;
    if (!is_first && address != mesh->registrar)
        forget_registrar(mesh);
    mesh->registrar = address;
    mesh->registrar_path = *path;
    mesh->has_registrar = true;
    if (mesh->state != GW_MESH_OVER)
        gw_mesh_await_registrar(mesh);
    if (!is_first)
        gw_mesh_tell_again(mesh, now);
}

/* Ways that came before the table, and do not lead where it says, are none. */
static void check_ways(struct gw_mesh *mesh)
{
    for (uint32_t rank = 0; rank < mesh->cfg.world; rank++) {
        struct gw_mesh_rank *other = &mesh->ranks[rank];
        if (other->is_up && other->believed != mesh->addresses[rank])
            other->is_up = false;
    }
}

/* The table is in `places`. */
static void meet(struct gw_mesh *mesh)
{
    const struct gw_mesh_cfg *cfg = &mesh->cfg;
    for (uint32_t rank = 0; rank < cfg->world; rank++) {
        uint32_t address = mesh->places[rank].address;
        mesh->addresses[rank] = address;
        int code = gw_map_put(&mesh->map, address, rank);
        /* What the registrar's address says, the registrar does. */
        if (!code && rank != cfg->rank && address != mesh->registrar && !cfg->is_bare)
            code = gw_endpoint_expect(cfg->endpoint, address, GW_MESH_TAG_FAILURE,
                                      mesh->ranks[rank].heard, sizeof(mesh->ranks[rank].heard));
        GW_ASSERT(code == GW_OK); /* by gw_mesh_awaits() */
    }
    check_ways(mesh);
    mesh->table_sum = gw_ranks_table_sum(mesh->places, cfg->world);
    mesh->has_met = true;
    mesh->has_met_event = true;
    mesh->state = GW_MESH_MET;
}

void gw_mesh_know(struct gw_mesh *mesh, const struct gw_rank_place *places, uint8_t notice_units,
                  gw_time now)
{
    GW_ASSERT(mesh->cfg.is_bare);
    if (mesh->has_met)
        return;
    for (uint32_t rank = 0; rank < mesh->cfg.world; rank++)
        mesh->places[rank] = places[rank];
    mesh->notice_units = notice_units;
    mesh->is_told = true;
    if (mesh->has_come)
        gw_mesh_take_table(mesh, gw_ranks_table_size(mesh->cfg.world), now);
}

/* The first rank that the table in `others` says is another process than ours; `world`: none. */
static uint32_t replaced_in(const struct gw_mesh *mesh)
{
    uint32_t rank = 0;
    while (rank < mesh->cfg.world && mesh->places[rank].address == mesh->others[rank].address)
        rank++;
    return rank;
}

/*
 * A registrar that has come back and knows the whole job will say when all have left. One that has
 * taken in another process in the place of a rank tells us that the rank is lost.
 */
static void take_another_table(struct gw_mesh *mesh, uint64_t bytes, gw_time now)
{
    const struct gw_mesh_cfg *cfg = &mesh->cfg;
    uint8_t units;
    if (!cfg->is_bare && !gw_ranks_table_read(mesh->table, bytes, cfg->world, mesh->others, &units))
        return;
    uint32_t replaced = cfg->is_bare ? cfg->world : replaced_in(mesh);
    if (replaced == cfg->world && mesh->has_registrar)
        mesh->leave_by = GW_TIME_NEVER;
    else if (replaced < cfg->world)
        gw_mesh_fail(mesh, GW_JOB_LOST, replaced, now);
}

void gw_mesh_take_table(struct gw_mesh *mesh, uint64_t bytes, gw_time now)
{
    const struct gw_mesh_cfg *cfg = &mesh->cfg;
    mesh->has_come = true;
    if (mesh->has_met && mesh->state != GW_MESH_OVER)
        take_another_table(mesh, bytes, now);
    if (mesh->state != GW_MESH_MEETING || (cfg->is_bare && !mesh->is_told))
        return;
    uint8_t units = mesh->notice_units;
    bool is_sound = cfg->is_bare
                        ? bytes == gw_ranks_table_size(cfg->world)
                        : gw_ranks_table_read(mesh->table, bytes, cfg->world, mesh->places, &units);
    mesh->notice_units = is_sound ? units : 0;
    if (is_sound && mesh->places[cfg->rank].address == cfg->address)
        meet(mesh);
    else
        gw_mesh_fail(mesh, GW_JOB_BROKEN, cfg->world, now);
}
