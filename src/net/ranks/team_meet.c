/*
 * How the ranks of a team meet: all come to rank 0, which sends everybody the table of
 * ranks; then each finds ways to those whom it needs. See team.h.
 */
#include <stdio.h>

#include "base/error.h"
#include "net/ranks/team_impl.h"

static struct gw_greeting greeting_of(const struct gw_team *comm)
{
    return (struct gw_greeting){
        .job = comm->cfg.job,
        .world = comm->cfg.world,
        .rank = comm->cfg.rank,
        .notice = comm->cfg.notice,
        .is_direct = true,
    };
}

int gw_team_dial_rank_0(struct gw_team *comm, char *error)
{
    struct gw_greeting greeting = greeting_of(comm);
    int dial = gw_station_dial(comm->cfg.station, comm->cfg.join, &greeting, error);
    if (dial < 0)
        return dial;
    comm->dials[dial] = 0;
    comm->ranks[0].is_dialled = true;
    return GW_OK;
}

void gw_team_connect(struct gw_team *comm, uint32_t number, gw_time now)
{
    struct gw_team_rank *rank = &comm->ranks[number];
    struct gw_greeting greeting = greeting_of(comm);
    char name[GW_SOCK_ADDR_NAME_MAX];
    if (rank->is_up || rank->is_dialled)
        return;
    gw_sock_addr_format(&rank->at.addr, name, sizeof(name));
    int dial = gw_neighbours_dial(gw_station_neighbours(comm->cfg.station), &rank->at.addr, name,
                                  &greeting, now);
    if (dial < 0) {
        gw_team_fail(comm, GW_JOB_LIMIT, comm->cfg.rank, now);
        return;
    }
    comm->dials[dial] = (int)number;
    rank->is_dialled = true;
}

/* Whether this rank's all-reduces need the other one. */
static bool is_needed(const struct gw_team *comm, uint32_t rank)
{
    const struct gw_team_cfg *cfg = &comm->cfg;
    uint32_t steps = cfg->world > 1 ? cfg->coll->steps(cfg->world) : 0;
    for (uint32_t i = 0; i < steps; i++) {
        struct gw_coll_step step = cfg->coll->step(cfg->rank, cfg->world, 0, i, 0);
        if (step.to == rank || step.from == rank)
            return true;
    }
    return false;
}

/* The table is known: finds the ways that all-reduces need. */
static void connect_all(struct gw_team *comm, gw_time now)
{
    comm->state = GW_TEAM_CONNECTING;
    for (uint32_t rank = 0; rank < comm->cfg.world; rank++)
        comm->addresses[rank] = comm->ranks[rank].at.address;
    for (uint32_t rank = 0; rank < comm->cfg.rank; rank++)
        if (is_needed(comm, rank))
            gw_team_connect(comm, rank, now);
}

/* Rank 0: all have come. */
static void send_tables(struct gw_team *comm, gw_time now)
{
    uint32_t flow;
    if (comm->cfg.notice_path.rate_bps == 0)
        comm->cfg.notice_path = gw_team_notice_path(comm);
    if (gw_notice_units(comm->cfg.notice, &comm->cfg.notice_path, &comm->notice_units) != GW_OK) {
        gw_team_fail(comm, GW_JOB_NOTICE, comm->cfg.world, now);
        return;
    }
    gw_rank_table_write_notice(comm->notice_units, comm->table);
    for (uint32_t rank = 1; rank < comm->cfg.world; rank++)
        gw_rank_table_write(&comm->ranks[rank].at,
                            comm->table + (size_t)rank * GW_RANK_TABLE_ENTRY_SIZE);
    for (uint32_t rank = 1; rank < comm->cfg.world; rank++) {
        int code = gw_team_send(comm, rank, GW_TEAM_TAG_TABLE, comm->table,
                                (uint64_t)comm->cfg.world * GW_RANK_TABLE_ENTRY_SIZE, &flow, now);
        GW_ASSERT(code == GW_OK); /* there is a flow for each rank */
    }
    connect_all(comm, now);
}

uint32_t gw_team_rank_of(const struct gw_team *comm, uint32_t address)
{
    uint32_t rank = 0;
    while (rank < comm->cfg.world && comm->ranks[rank].at.address != address)
        rank++;
    return rank;
}

/* Whether another rank has the address. */
static bool is_taken(const struct gw_team *comm, uint32_t address, uint32_t rank)
{
    uint32_t owner = gw_team_rank_of(comm, address);
    return owner < comm->cfg.world && owner != rank;
}

void gw_team_take_table(struct gw_team *comm, uint64_t bytes, gw_time now)
{
    bool is_sound = bytes == (uint64_t)comm->cfg.world * GW_RANK_TABLE_ENTRY_SIZE &&
                    gw_rank_table_read_notice(comm->table, &comm->notice_units);
    for (uint32_t rank = 1; rank < comm->cfg.world && is_sound; rank++) {
        struct gw_rank_table_entry *at = &comm->ranks[rank].at;
        if (rank != comm->cfg.rank)
            is_sound =
                gw_rank_table_read(comm->table + (size_t)rank * GW_RANK_TABLE_ENTRY_SIZE, at) &&
                !is_taken(comm, at->address, rank);
    }
    if (is_sound) {
        connect_all(comm, now);
        return;
    }
    gw_team_fail(comm, GW_JOB_MISMATCH, 0, now);
    snprintf(comm->text, sizeof(comm->text), "rank 0 sent a table of ranks that makes no sense");
}

/* There is a way to the rank; what it may tell us has a place. */
static void way_up(struct gw_team *comm, uint32_t number, const struct gw_neighbour_event *event)
{
    struct gw_team_rank *rank = &comm->ranks[number];
    struct gw_loop *loop = gw_station_loop(comm->cfg.station);
    struct gw_loop_port port = {comm->node, 0};
    bool is_new = rank->at.address != event->said.address || !rank->is_up;
    if (is_taken(comm, event->said.address, number)) {
        gw_team_fail(comm, GW_JOB_LOST, number, gw_loop_now(loop));
        return;
    }
    rank->at.address = event->said.address;
    if (event->dial < 0)
        rank->at.addr = event->addr;
    rank->is_up = true;
    rank->peer = event->peer;
    gw_loop_link(loop, port, event->peer, false);
    int code =
        comm->cfg.switch_ ? GW_OK : gw_loop_direct(loop, port, rank->at.address, event->peer);
    if (is_new) /* what was posted for an earlier session */
        gw_endpoint_forget(comm->ep, &rank->failure, sizeof(rank->failure));
    if (is_new && number == 0)
        gw_endpoint_forget(comm->ep, comm->table,
                           (uint64_t)comm->cfg.world * GW_RANK_TABLE_ENTRY_SIZE);
    if (!code && is_new)
        code = gw_endpoint_expect(comm->ep, rank->at.address, GW_TEAM_TAG_FAILURE, &rank->failure,
                                  sizeof(rank->failure));
    if (!code && is_new && number == 0)
        code = gw_endpoint_expect(comm->ep, rank->at.address, GW_TEAM_TAG_TABLE, comm->table,
                                  (uint64_t)comm->cfg.world * GW_RANK_TABLE_ENTRY_SIZE);
    if (code)
        gw_team_fail(comm, GW_JOB_LIMIT, comm->cfg.rank, gw_loop_now(loop));
}

/* Who has dialled us: one of ours, or refused. */
static void take_in(struct gw_team *comm, const struct gw_neighbour_event *event)
{
    const struct gw_attach_msg *said = &event->said;
    bool is_ours = said->job == comm->cfg.job && said->world == comm->cfg.world &&
                   said->role == GW_ATTACH_HOST;
    if (!is_ours) {
        gw_station_refuse(comm->cfg.station, event->peer, GW_ATTACH_JOB);
        return;
    }
    if (said->notice != comm->cfg.notice) {
        gw_station_refuse(comm->cfg.station, event->peer, GW_ATTACH_NOTICE);
        return;
    }
    struct gw_team_rank *rank = said->rank < comm->cfg.world ? &comm->ranks[said->rank] : NULL;
    bool is_free = rank && said->rank != comm->cfg.rank &&
                   !is_taken(comm, said->address, said->rank) &&
                   (!rank->is_up || rank->at.address == said->address) &&
                   (comm->state == GW_TEAM_MEETING || rank->at.address == 0 ||
                    rank->at.address == said->address);
    if (is_free)
        way_up(comm, said->rank, event);
    else
        gw_station_refuse(comm->cfg.station, event->peer, GW_ATTACH_TAKEN);
}

static void way_down(struct gw_team *comm, const struct gw_neighbour_event *event, gw_time now)
{
    for (uint32_t rank = 0; rank < comm->cfg.world; rank++) {
        if (!comm->ranks[rank].is_up || comm->ranks[rank].peer != event->peer)
            continue;
        comm->ranks[rank].is_up = false;
        if (comm->state == GW_TEAM_LEAVING) {
            comm->state = GW_TEAM_OVER; /* it has gone because nobody needs anything any more */
            gw_team_drop_calls(comm);
            gw_team_post(comm, &(struct gw_team_event){.kind = GW_TEAM_LEFT});
        } else if (comm->state != GW_TEAM_MEETING) {
            gw_team_fail(comm, GW_JOB_LOST, rank, now);
        }
    }
}

void gw_team_neighbour(struct gw_team *comm, const struct gw_neighbour_event *event)
{
    gw_time now = gw_loop_now(gw_station_loop(comm->cfg.station));
    if (event->dial >= 0 && event->dial == comm->switch_dial) {
        gw_team_switch_event(comm, event, now);
    } else if (event->kind == GW_NEIGHBOUR_DOWN) {
        way_down(comm, event, now);
    } else if (event->kind == GW_NEIGHBOUR_UP && event->dial < 0) {
        take_in(comm, event);
    } else if (event->kind == GW_NEIGHBOUR_UP) {
        way_up(comm, (uint32_t)comm->dials[event->dial], event);
    } else if (comm->state != GW_TEAM_OVER && comm->state != GW_TEAM_LEAVING) {
        bool is_notice = event->said.reason == GW_ATTACH_NOTICE;
        gw_team_fail(comm, is_notice ? GW_JOB_NOTICE : GW_JOB_RANK,
                     (uint32_t)comm->dials[event->dial], now);
        snprintf(comm->text, sizeof(comm->text), "%s refuses us: %s",
                 gw_neighbours_dial_name(gw_station_neighbours(comm->cfg.station), event->dial),
                 gw_attach_reason_text((enum gw_attach_reason)event->said.reason));
    }
}

void gw_team_step(struct gw_team *comm, gw_time now)
{
    const struct gw_team_cfg *cfg = &comm->cfg;
    uint32_t up = 0, missing = 0;
    for (uint32_t rank = 0; rank < cfg->world; rank++) {
        up += comm->ranks[rank].is_up;
        missing += comm->state == GW_TEAM_CONNECTING && !comm->ranks[rank].is_up &&
                   rank != cfg->rank && is_needed(comm, rank);
    }
    if (comm->state == GW_TEAM_MEETING && cfg->rank == 0 && up == cfg->world - 1u &&
        !gw_team_is_cut_off(comm))
        send_tables(comm, now);
    else if (comm->state == GW_TEAM_CONNECTING && missing == 0) {
        comm->state = GW_TEAM_RUNNING;
        gw_team_refresh(comm);
        gw_team_store_serve(comm->store);
        gw_team_post(comm, &(struct gw_team_event){.kind = GW_TEAM_OPEN});
    }
}
