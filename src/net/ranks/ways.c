/* Sessions and ways; see ways.h. What is measured is in ways_path.c. */
#include <stdlib.h>

#include "base/error.h"
#include "net/locator.h"
#include "net/ranks/ways_impl.h"

#define PATIENCE (1 * GW_S) /* a session comes about in a few round trips, or hardly ever */

static struct gw_neighbours *neighbours_of(const struct gw_ways *ways)
{
    return gw_station_neighbours(ways->cfg.station);
}

static struct gw_loop *loop_of(const struct gw_ways *ways)
{
    return gw_station_loop(ways->cfg.station);
}

static gw_time now_of(const struct gw_ways *ways)
{
    return gw_loop_time(loop_of(ways));
}

static struct gw_mesh *mesh_of(const struct gw_ways *ways)
{
    return gw_communicator_mesh(ways->cfg.comm);
}

static struct gw_greeting greeting_of(const struct gw_ways *ways)
{
    return (struct gw_greeting){
        .job = ways->cfg.job,
        .world = ways->cfg.world,
        .rank = ways->cfg.rank,
        .notice = ways->cfg.notice,
        .address = ways->cfg.address,
    };
}

/* To the first server, where the registrar is, also what we were before. */
static struct gw_greeting greeting_to(const struct gw_ways *ways, uint32_t server)
{
    struct gw_greeting greeting = greeting_of(ways);
    greeting.job = gw_job_shard(ways->cfg.job, server);
    greeting.is_direct = !ways->cfg.switch_;
    if (server == 0) {
        greeting.wants_table = true;
        greeting.was_seated = ways->was_seated;
        greeting.table = gw_mesh_table(mesh_of(ways));
    }
    return greeting;
}

/* The next session with the server, if it begins from now on, begins with the greeting of now. */
static void greet(const struct gw_ways *ways, uint32_t server)
{
    const struct gw_greeting greeting = greeting_to(ways, server);
    gw_neighbours_greet(neighbours_of(ways), ways->servers[server].dial, &greeting);
}

/* The home is here: this rank comes to it. */
static int come_home(struct gw_ways *ways, char *error)
{
    struct gw_greeting greeting = greeting_of(ways);
    greeting.wants_table = true;
    int code = gw_overlay_home_join(ways->cfg.home, ways->cfg.port, ways->cfg.address, &greeting);
    if (code == GW_ERR_INVALID)
        return gw_net_fail(error, code,
                           "cannot serve the job: a process that has come before says otherwise, "
                           "of its ranks, of announcements, or that it is rank %u",
                           ways->cfg.rank);
    if (code)
        return gw_net_fail(error, code, "cannot serve the job: %s", gw_error_message(code));
    const struct gw_path path = gw_ways_path_home(ways);
    gw_communicator_set_server(ways->cfg.comm, 0, ways->cfg.home_address, &path, now_of(ways));
    return GW_OK;
}

static int dial_servers(struct gw_ways *ways, char *error)
{
    ways->has_dialled = true;
    if (ways->cfg.home)
        return come_home(ways, error);
    for (uint32_t i = 0; i < ways->cfg.server_count; i++) {
        const struct gw_greeting greeting = greeting_to(ways, i);
        int dial = gw_station_dial(ways->cfg.station, ways->cfg.servers[i], &greeting, error);
        if (dial < 0)
            return dial;
        ways->servers[i].dial = dial;
    }
    return GW_OK;
}

/* A home in this process is another host to the switch than the rank. */
static int dial_switch(struct gw_ways *ways, char *error)
{
    struct gw_greeting own = greeting_of(ways), none = {.job = 0};
    int dial = gw_station_dial(ways->cfg.station, ways->cfg.switch_, &own, error);
    if (dial < 0)
        return dial;
    ways->switch_.dial = dial;
    if (!ways->cfg.home)
        return GW_OK;
    dial = gw_station_dial(ways->cfg.station, ways->cfg.switch_, &none, error);
    if (dial < 0)
        return dial;
    ways->home_switch_dial = dial;
    return GW_OK;
}

int gw_ways_open(const struct gw_ways_cfg *cfg, struct gw_ways **result, char *error)
{
    struct gw_ways *ways = calloc(1, sizeof(*ways));
    struct gw_ways_end *ranks = calloc(cfg->world, sizeof(*ranks));
    if (!ways || !ranks) {
        free(ways);
        free(ranks);
        return gw_net_fail(error, GW_ERR_NO_MEMORY, "out of memory");
    }
    ways->cfg = *cfg;
    ways->ranks = ranks;
    ways->switch_.dial = ways->home_switch_dial = GW_WAYS_NONE;
    for (uint32_t i = 0; i < GW_COMMUNICATOR_SERVERS_MAX; i++)
        ways->servers[i].dial = GW_WAYS_NONE;
    for (uint32_t i = 0; i < cfg->world; i++)
        ranks[i].dial = GW_WAYS_NONE;
    int code = cfg->switch_ ? dial_switch(ways, error) : dial_servers(ways, error);
    if (code) {
        gw_ways_close(ways);
        return code;
    }
    *result = ways;
    return GW_OK;
}

void gw_ways_close(struct gw_ways *ways)
{
    free(ways->ranks);
    free(ways);
}

static void set_up(struct gw_ways_end *end, const struct gw_neighbour_event *event)
{
    end->is_up = true;
    end->peer = event->peer;
    end->address = event->said.address;
}

/* Packets to whoever is at the other end go straight from now on. */
static int go_straight_to(struct gw_ways *ways, const struct gw_ways_end *end)
{
    return gw_loop_direct(loop_of(ways), ways->cfg.port, end->address, end->peer);
}

static void server_up(struct gw_ways *ways, uint32_t server, const struct gw_neighbour_event *event)
{
    bool is_way_out = !ways->cfg.switch_ && server == 0;
    set_up(&ways->servers[server], event);
    gw_loop_link(loop_of(ways), ways->cfg.port, event->peer, is_way_out);
    if (!ways->cfg.switch_ && server > 0)
        go_straight_to(ways, &ways->servers[server]);
    const struct gw_path path = gw_ways_path_server(ways, server);
    gw_communicator_set_server(ways->cfg.comm, server, event->said.address, &path, now_of(ways));
}

/* Another session begins a round trip from now at the earliest. */
static void server_down(struct gw_ways *ways, uint32_t server,
                        const struct gw_neighbour_event *event)
{
    ways->servers[server].is_up = false;
    ways->was_seated |= server == 0 && event->said.reason == GW_ATTACH_OK;
    greet(ways, server);
    if (server == 0 && ways->cfg.is_home_rank_0)
        gw_mesh_way_down(mesh_of(ways), 0, true, now_of(ways));
    gw_communicator_server_down(ways->cfg.comm, server, now_of(ways));
}

/* When the switch is there the first time, others can reach us: we come to the home. */
static bool switch_event(struct gw_ways *ways, const struct gw_neighbour_event *event, char *error)
{
    ways->switch_.is_up = event->kind == GW_NEIGHBOUR_UP;
    if (event->kind == GW_NEIGHBOUR_REFUSED) {
        gw_net_fail(error, GW_ERR_OUT, "the switch at %s refuses us: %s", ways->cfg.switch_,
                    gw_attach_reason_text((enum gw_attach_reason)event->said.reason));
        return false;
    }
    if (event->kind != GW_NEIGHBOUR_UP)
        return true;
    gw_loop_link(loop_of(ways), ways->cfg.port, event->peer, true);
    return ways->has_dialled || dial_servers(ways, error) == GW_OK;
}

static void home_switch_event(struct gw_ways *ways, const struct gw_neighbour_event *event)
{
    if (event->kind == GW_NEIGHBOUR_UP)
        gw_overlay_home_way_out(ways->cfg.home, event->peer);
    else
        gw_overlay_home_cut_off(ways->cfg.home);
}

/* False: it is not the rank, or there is no room for its way. */
static bool rank_up(struct gw_ways *ways, uint32_t rank, const struct gw_neighbour_event *event)
{
    struct gw_ways_end *end = &ways->ranks[rank];
    if (!gw_mesh_way_up(mesh_of(ways), rank, event->said.address, now_of(ways)))
        return false;
    set_up(end, event);
    end->is_reached = true;
    gw_loop_link(loop_of(ways), ways->cfg.port, event->peer, false);
    gw_ways_set_path(ways, rank);
    return ways->cfg.switch_ || go_straight_to(ways, end) == GW_OK;
}

static void rank_down(struct gw_ways *ways, const struct gw_neighbour_event *event)
{
    for (uint32_t rank = 0; rank < ways->cfg.world; rank++) {
        struct gw_ways_end *end = &ways->ranks[rank];
        if (!end->is_up || end->peer != event->peer)
            continue;
        end->is_up = false;
        if (ways->cfg.home) /* whose registrar knows whether it is missed */
            continue;
        end->is_reached = false;
        gw_mesh_way_down(mesh_of(ways), rank, true, now_of(ways));
    }
}

/* Who has come to the home here, if he was taken in. */
static void guest_up(struct gw_ways *ways, const struct gw_neighbour_event *event)
{
    struct gw_neighbour_event view;
    if (event->said.job == ways->cfg.job && event->said.rank < ways->cfg.world &&
        gw_neighbours_view(neighbours_of(ways), event->peer, &view))
        set_up(&ways->ranks[event->said.rank], event);
}

/* By the way out, where there is no session. */
static void reach_by_way_out(struct gw_ways *ways, uint32_t rank)
{
    const struct gw_rank_place *place = gw_mesh_place(mesh_of(ways), rank);
    ways->ranks[rank].is_reached = true;
    gw_ways_set_path(ways, rank);
    gw_mesh_way_up(mesh_of(ways), rank, place->address, now_of(ways));
}

/* Who has dialled us: one of ours, or refused. */
static void take_in(struct gw_ways *ways, const struct gw_neighbour_event *event)
{
    const struct gw_attach_msg *said = &event->said;
    const struct gw_ways_cfg *cfg = &ways->cfg;
    bool is_ours = said->job == cfg->job && said->world == cfg->world &&
                   said->role == GW_ATTACH_HOST && !(said->flags & GW_ATTACH_TABLE);
    enum gw_attach_reason reason = GW_ATTACH_OK;
    if (!is_ours)
        reason = GW_ATTACH_JOB;
    else if (said->notice != cfg->notice)
        reason = GW_ATTACH_NOTICE;
    else if (said->rank >= cfg->world || said->rank == cfg->rank ||
             !rank_up(ways, said->rank, event))
        reason = GW_ATTACH_TAKEN;
    if (reason != GW_ATTACH_OK)
        gw_station_refuse(cfg->station, event->peer, reason);
}

static bool server_event(struct gw_ways *ways, uint32_t server,
                         const struct gw_neighbour_event *event, char *error)
{
    if (event->kind == GW_NEIGHBOUR_UP)
        server_up(ways, server, event);
    else
        server_down(ways, server, event);
    if (event->kind != GW_NEIGHBOUR_REFUSED)
        return true;
    if (event->said.reason == GW_ATTACH_OVER)
        gw_net_fail(error, GW_ERR_OUT,
                    "the job ended while nothing was heard of rank %u, which is this one",
                    ways->cfg.rank);
    else if (event->said.reason == GW_ATTACH_REPLACED)
        gw_net_fail(error, GW_ERR_OUT,
                    "the job is over: it has failed, or another process is in place of one of "
                    "its ranks");
    else
        gw_net_fail(error, GW_ERR_OUT, "%s refuses us: %s", ways->cfg.servers[server],
                    gw_attach_reason_text((enum gw_attach_reason)event->said.reason));
    return false;
}

/* Of a rank that we have dialled. One that does not want us is reached by the way out. */
static void rank_event(struct gw_ways *ways, const struct gw_neighbour_event *event)
{
    if (event->kind == GW_NEIGHBOUR_DOWN || event->kind == GW_NEIGHBOUR_REFUSED)
        rank_down(ways, event);
    for (uint32_t rank = 0; rank < ways->cfg.world; rank++)
        if (ways->ranks[rank].dial == event->dial && event->kind == GW_NEIGHBOUR_UP)
            rank_up(ways, rank, event);
}

bool gw_ways_neighbour(struct gw_ways *ways, const struct gw_neighbour_event *event, char *error)
{
    if (event->dial < 0) {
        if (event->kind == GW_NEIGHBOUR_UP && ways->cfg.home)
            guest_up(ways, event);
        else if (event->kind == GW_NEIGHBOUR_UP)
            take_in(ways, event);
        else if (event->kind == GW_NEIGHBOUR_DOWN)
            rank_down(ways, event);
        return true;
    }
    if (event->dial == ways->switch_.dial)
        return switch_event(ways, event, error);
    if (event->dial == ways->home_switch_dial) {
        home_switch_event(ways, event);
        return true;
    }
    for (uint32_t i = 0; i < ways->cfg.server_count; i++)
        if (event->dial == ways->servers[i].dial)
            return server_event(ways, i, event, error);
    rank_event(ways, event);
    return true;
}

/* Wants a session with a rank whose locator says where it is; false: there will be none. */
static bool dial_rank(struct gw_ways *ways, uint32_t rank)
{
    const struct gw_rank_place *place = gw_mesh_place(mesh_of(ways), rank);
    struct gw_ways_end *end = &ways->ranks[rank];
    struct gw_greeting greeting = greeting_of(ways);
    struct gw_sock_addr to;
    char name[GW_SOCK_ADDR_NAME_MAX];
    if (end->is_up || end->dial != GW_WAYS_NONE)
        return true;
    if (!gw_locator_read(place->locator, &to) ||
        gw_sock_addr_is_v6(&to) !=
            gw_sock_addr_is_v6(gw_datapath_address(gw_station_datapath(ways->cfg.station))))
        return false;
    greeting.is_direct = !ways->cfg.switch_;
    gw_sock_addr_format(&to, name, sizeof(name));
    int dial = gw_neighbours_dial(neighbours_of(ways), &to, name, &greeting, now_of(ways));
    end->dial = dial < 0 ? GW_WAYS_NONE : dial;
    return dial >= 0;
}

void gw_ways_want(struct gw_ways *ways, uint32_t rank)
{
    struct gw_ways_end *end = &ways->ranks[rank];
    if (end->is_reached)
        return;
    end->wanted_at = now_of(ways);
    bool has_dial = !ways->cfg.home && dial_rank(ways, rank);
    if (ways->cfg.switch_ || !has_dial)
        reach_by_way_out(ways, rank);
    else
        end->is_wanted = true;
}

void gw_ways_turn(struct gw_ways *ways)
{
    gw_time now = now_of(ways);
    if (ways->servers[0].dial != GW_WAYS_NONE && !ways->servers[0].is_up)
        greet(ways, 0); /* the table may have come since the session ended */
    if (!gw_ways_measure(ways, now))
        return;
    if (ways->cfg.home)
        gw_overlay_home_look(ways->cfg.home);
    for (uint32_t rank = 0; rank < ways->cfg.world; rank++) {
        struct gw_ways_end *end = &ways->ranks[rank];
        if (!end->is_wanted || (!end->is_reached && now - end->wanted_at < PATIENCE))
            continue;
        end->is_wanted = false;
        if (!end->is_reached)
            reach_by_way_out(ways, rank);
    }
}

void gw_ways_go_straight(struct gw_ways *ways)
{
    for (uint32_t i = 0; i < ways->cfg.server_count; i++)
        if (ways->servers[i].is_up)
            go_straight_to(ways, &ways->servers[i]);
    for (uint32_t i = 0; i < ways->cfg.world; i++)
        if (ways->ranks[i].is_up)
            go_straight_to(ways, &ways->ranks[i]);
}

bool gw_ways_is_cut_off(const struct gw_ways *ways)
{
    return ways->cfg.switch_ && !ways->switch_.is_up;
}

bool gw_ways_finds_silent_switch(const struct gw_ways *ways, gw_time least,
                                 char name[GW_NEIGHBOURS_NAME_MAX])
{
    gw_time lasts = gw_neighbours_silence(neighbours_of(ways), ways->cfg.job, now_of(ways), name);
    return lasts && lasts >= least;
}

uint32_t gw_ways_silent_server(const struct gw_ways *ways)
{
    uint32_t server = 0;
    while (server < ways->cfg.server_count && (ways->cfg.home || ways->servers[server].is_up))
        server++;
    return server;
}

static enum gw_attach_reason refusal_of(const struct gw_ways *ways, int dial)
{
    return dial == GW_WAYS_NONE ? GW_ATTACH_OK
                                : gw_neighbours_dial_refusal(neighbours_of(ways), dial);
}

enum gw_attach_reason gw_ways_refusal(const struct gw_ways *ways, uint32_t server)
{
    return refusal_of(ways, ways->servers[server].dial);
}

enum gw_attach_reason gw_ways_switch_refusal(const struct gw_ways *ways)
{
    return refusal_of(ways, ways->switch_.dial);
}
