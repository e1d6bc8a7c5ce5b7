/* Sessions and ways; see links.h. What is measured is in links_path.c. */
#include <stdlib.h>

#include "base/error.h"
#include "net/locator.h"
#include "net/ranks/links_impl.h"

#define PATIENCE (1 * GW_S) /* a session comes about in a few round trips, or hardly ever */

static struct gw_neighbours *neighbours_of(const struct gw_links *links)
{
    return gw_station_neighbours(links->cfg.station);
}

static struct gw_loop *loop_of(const struct gw_links *links)
{
    return gw_station_loop(links->cfg.station);
}

static gw_time now_of(const struct gw_links *links)
{
    return gw_loop_now(loop_of(links));
}

static struct gw_mesh *mesh_of(const struct gw_links *links)
{
    return gw_communicator_mesh(links->cfg.comm);
}

static struct gw_greeting greeting_of(const struct gw_links *links)
{
    return (struct gw_greeting){
        .job = links->cfg.job,
        .world = links->cfg.world,
        .rank = links->cfg.rank,
        .notice = links->cfg.notice,
        .address = links->cfg.address,
    };
}

/* The home is here: this rank comes to it. */
static int come_home(struct gw_links *links, char *error)
{
    struct gw_greeting greeting = greeting_of(links);
    greeting.wants_table = true;
    int code =
        gw_overlay_home_join(links->cfg.home, links->cfg.port, links->cfg.address, &greeting);
    if (code)
        return gw_net_fail(error, code, "cannot serve the job: %s", gw_error_message(code));
    const struct gw_path path = gw_links_path_home(links);
    gw_communicator_set_server(links->cfg.comm, 0, links->cfg.home_address, &path, now_of(links));
    return GW_OK;
}

static int dial_servers(struct gw_links *links, char *error)
{
    links->has_come = true;
    if (links->cfg.home)
        return come_home(links, error);
    for (uint32_t i = 0; i < links->cfg.server_count; i++) {
        struct gw_greeting greeting = greeting_of(links);
        greeting.job = gw_job_shard(links->cfg.job, i);
        greeting.is_direct = !links->cfg.switch_;
        greeting.wants_table = i == 0;
        int dial = gw_station_dial(links->cfg.station, links->cfg.servers[i], &greeting, error);
        if (dial < 0)
            return dial;
        links->servers[i].dial = dial;
    }
    return GW_OK;
}

/* A home in this process is another host to the switch than the rank. */
static int dial_switch(struct gw_links *links, char *error)
{
    struct gw_greeting own = greeting_of(links), none = {.job = 0};
    int dial = gw_station_dial(links->cfg.station, links->cfg.switch_, &own, error);
    if (dial < 0)
        return dial;
    links->switch_.dial = dial;
    if (!links->cfg.home)
        return GW_OK;
    dial = gw_station_dial(links->cfg.station, links->cfg.switch_, &none, error);
    if (dial < 0)
        return dial;
    links->home_switch_dial = dial;
    return GW_OK;
}

int gw_links_open(const struct gw_links_cfg *cfg, struct gw_links **result, char *error)
{
    struct gw_links *links = calloc(1, sizeof(*links));
    struct gw_link *ranks = calloc(cfg->world, sizeof(*ranks));
    if (!links || !ranks) {
        free(links);
        free(ranks);
        return gw_net_fail(error, GW_ERR_NO_MEMORY, "out of memory");
    }
    links->cfg = *cfg;
    links->ranks = ranks;
    links->switch_.dial = links->home_switch_dial = GW_LINK_NONE;
    for (uint32_t i = 0; i < GW_COMMUNICATOR_SERVERS_MAX; i++)
        links->servers[i].dial = GW_LINK_NONE;
    for (uint32_t i = 0; i < cfg->world; i++)
        ranks[i].dial = GW_LINK_NONE;
    int code = cfg->switch_ ? dial_switch(links, error) : dial_servers(links, error);
    if (code) {
        gw_links_close(links);
        return code;
    }
    *result = links;
    return GW_OK;
}

void gw_links_close(struct gw_links *links)
{
    free(links->ranks);
    free(links);
}

static void set_up(struct gw_link *link, const struct gw_neighbour_event *event)
{
    link->is_up = link->was_up = true;
    link->peer = event->peer;
    link->address = event->said.address;
}

/* Packets to whoever is at the other end go straight from now on. */
static int go_straight_to(struct gw_links *links, const struct gw_link *link)
{
    return gw_loop_direct(loop_of(links), links->cfg.port, link->address, link->peer);
}

static void server_up(struct gw_links *links, uint32_t server,
                      const struct gw_neighbour_event *event)
{
    bool is_way_out = !links->cfg.switch_ && server == 0;
    set_up(&links->servers[server], event);
    gw_loop_link(loop_of(links), links->cfg.port, event->peer, is_way_out);
    if (!links->cfg.switch_ && server > 0)
        go_straight_to(links, &links->servers[server]);
    const struct gw_path path = gw_links_path_server(links, server);
    gw_communicator_set_server(links->cfg.comm, server, event->said.address, &path, now_of(links));
}

static void server_down(struct gw_links *links, uint32_t server)
{
    links->servers[server].is_up = false;
    if (server > 0)
        return;
    if (links->cfg.is_home_rank_0)
        gw_mesh_way_down(mesh_of(links), 0, true, now_of(links));
    gw_mesh_registrar_down(mesh_of(links), now_of(links));
}

/* When the switch is there the first time, others can reach us: we come to the home. */
static bool switch_event(struct gw_links *links, const struct gw_neighbour_event *event,
                         char *error)
{
    links->switch_.is_up = event->kind == GW_NEIGHBOUR_UP;
    if (event->kind == GW_NEIGHBOUR_REFUSED) {
        gw_net_fail(error, GW_ERR_OUT, "the switch at %s refuses us: %s", links->cfg.switch_,
                    gw_attach_reason_text((enum gw_attach_reason)event->said.reason));
        return false;
    }
    if (event->kind != GW_NEIGHBOUR_UP)
        return true;
    gw_loop_link(loop_of(links), links->cfg.port, event->peer, true);
    return links->has_come || dial_servers(links, error) == GW_OK;
}

static void home_switch_event(struct gw_links *links, const struct gw_neighbour_event *event)
{
    if (event->kind == GW_NEIGHBOUR_UP)
        gw_overlay_home_way_out(links->cfg.home, event->peer);
    else
        gw_overlay_home_cut_off(links->cfg.home);
}

/* False: it is not the rank, or there is no room for its way. */
static bool rank_up(struct gw_links *links, uint32_t rank, const struct gw_neighbour_event *event)
{
    struct gw_link *link = &links->ranks[rank];
    if (!gw_mesh_way_up(mesh_of(links), rank, event->said.address, now_of(links)))
        return false;
    set_up(link, event);
    link->is_reached = true;
    gw_loop_link(loop_of(links), links->cfg.port, event->peer, false);
    gw_links_set_path(links, rank);
    return links->cfg.switch_ || go_straight_to(links, link) == GW_OK;
}

static void rank_down(struct gw_links *links, const struct gw_neighbour_event *event)
{
    for (uint32_t rank = 0; rank < links->cfg.world; rank++) {
        struct gw_link *link = &links->ranks[rank];
        if (!link->is_up || link->peer != event->peer)
            continue;
        link->is_up = false;
        if (links->cfg.home) /* whose registrar knows whether it is missed */
            continue;
        link->is_reached = false;
        gw_mesh_way_down(mesh_of(links), rank, true, now_of(links));
    }
}

/* Who has come to the home here, if he was taken in. */
static void guest_up(struct gw_links *links, const struct gw_neighbour_event *event)
{
    struct gw_neighbour_event view;
    if (event->said.job == links->cfg.job && event->said.rank < links->cfg.world &&
        gw_neighbours_view(neighbours_of(links), event->peer, &view))
        set_up(&links->ranks[event->said.rank], event);
}

/* By the way out, where there is no session. */
static void reach_by_way_out(struct gw_links *links, uint32_t rank)
{
    const struct gw_rank_place *place = gw_mesh_place(mesh_of(links), rank);
    links->ranks[rank].is_reached = true;
    gw_links_set_path(links, rank);
    gw_mesh_way_up(mesh_of(links), rank, place->address, now_of(links));
}

/* Who has dialled us: one of ours, or refused. */
static void take_in(struct gw_links *links, const struct gw_neighbour_event *event)
{
    const struct gw_attach_msg *said = &event->said;
    const struct gw_links_cfg *cfg = &links->cfg;
    bool is_ours = said->job == cfg->job && said->world == cfg->world &&
                   said->role == GW_ATTACH_HOST && !(said->flags & GW_ATTACH_TABLE);
    enum gw_attach_reason reason = GW_ATTACH_OK;
    if (!is_ours)
        reason = GW_ATTACH_JOB;
    else if (said->notice != cfg->notice)
        reason = GW_ATTACH_NOTICE;
    else if (said->rank >= cfg->world || said->rank == cfg->rank ||
             !rank_up(links, said->rank, event))
        reason = GW_ATTACH_TAKEN;
    if (reason != GW_ATTACH_OK)
        gw_station_refuse(cfg->station, event->peer, reason);
}

static bool server_event(struct gw_links *links, uint32_t server,
                         const struct gw_neighbour_event *event, char *error)
{
    if (event->kind == GW_NEIGHBOUR_UP)
        server_up(links, server, event);
    else
        server_down(links, server);
    if (event->kind != GW_NEIGHBOUR_REFUSED)
        return true;
    gw_net_fail(error, GW_ERR_OUT, "%s refuses us: %s", links->cfg.servers[server],
                gw_attach_reason_text((enum gw_attach_reason)event->said.reason));
    return false;
}

/* Of a rank that we have dialled. One that does not want us is reached by the way out. */
static void rank_event(struct gw_links *links, const struct gw_neighbour_event *event)
{
    if (event->kind == GW_NEIGHBOUR_DOWN || event->kind == GW_NEIGHBOUR_REFUSED)
        rank_down(links, event);
    for (uint32_t rank = 0; rank < links->cfg.world; rank++)
        if (links->ranks[rank].dial == event->dial && event->kind == GW_NEIGHBOUR_UP)
            rank_up(links, rank, event);
}

bool gw_links_neighbour(struct gw_links *links, const struct gw_neighbour_event *event, char *error)
{
    if (event->dial < 0) {
        if (event->kind == GW_NEIGHBOUR_UP && links->cfg.home)
            guest_up(links, event);
        else if (event->kind == GW_NEIGHBOUR_UP)
            take_in(links, event);
        else if (event->kind == GW_NEIGHBOUR_DOWN)
            rank_down(links, event);
        return true;
    }
    if (event->dial == links->switch_.dial)
        return switch_event(links, event, error);
    if (event->dial == links->home_switch_dial) {
        home_switch_event(links, event);
        return true;
    }
    for (uint32_t i = 0; i < links->cfg.server_count; i++)
        if (event->dial == links->servers[i].dial)
            return server_event(links, i, event, error);
    rank_event(links, event);
    return true;
}

/* Wants a session with a rank whose locator says where it is; false: there will be none. */
static bool dial_rank(struct gw_links *links, uint32_t rank)
{
    const struct gw_rank_place *place = gw_mesh_place(mesh_of(links), rank);
    struct gw_link *link = &links->ranks[rank];
    struct gw_greeting greeting = greeting_of(links);
    struct gw_sock_addr to;
    char name[GW_SOCK_ADDR_NAME_MAX];
    if (link->is_up || link->dial != GW_LINK_NONE)
        return true;
    if (!gw_locator_read(place->locator, &to) ||
        gw_sock_addr_is_v6(&to) !=
            gw_sock_addr_is_v6(gw_datapath_address(gw_station_datapath(links->cfg.station))))
        return false;
    greeting.is_direct = !links->cfg.switch_;
    gw_sock_addr_format(&to, name, sizeof(name));
    int dial = gw_neighbours_dial(neighbours_of(links), &to, name, &greeting, now_of(links));
    link->dial = dial < 0 ? GW_LINK_NONE : dial;
    return dial >= 0;
}

void gw_links_want(struct gw_links *links, uint32_t rank)
{
    struct gw_link *link = &links->ranks[rank];
    if (link->is_reached)
        return;
    link->wanted_at = now_of(links);
    bool has_dial = !links->cfg.home && dial_rank(links, rank);
    if (links->cfg.switch_ || !has_dial)
        reach_by_way_out(links, rank);
    else
        link->is_wanted = true;
}

void gw_links_turn(struct gw_links *links)
{
    gw_time now = now_of(links);
    if (!gw_links_measure(links, now))
        return;
    for (uint32_t rank = 0; rank < links->cfg.world; rank++) {
        struct gw_link *link = &links->ranks[rank];
        if (!link->is_wanted || (!link->is_reached && now - link->wanted_at < PATIENCE))
            continue;
        link->is_wanted = false;
        if (!link->is_reached)
            reach_by_way_out(links, rank);
    }
}

void gw_links_go_straight(struct gw_links *links)
{
    for (uint32_t i = 0; i < links->cfg.server_count; i++)
        if (links->servers[i].is_up)
            go_straight_to(links, &links->servers[i]);
    for (uint32_t i = 0; i < links->cfg.world; i++)
        if (links->ranks[i].is_up)
            go_straight_to(links, &links->ranks[i]);
}

bool gw_links_is_cut_off(const struct gw_links *links)
{
    return links->cfg.switch_ && !links->switch_.is_up;
}

uint32_t gw_links_silent_server(const struct gw_links *links)
{
    uint32_t server = 0;
    while (server < links->cfg.server_count && (links->cfg.home || links->servers[server].is_up))
        server++;
    return server;
}

enum gw_attach_reason gw_links_refusal(const struct gw_links *links, uint32_t server)
{
    int dial = links->servers[server].dial;
    return dial == GW_LINK_NONE ? GW_ATTACH_OK
                                : gw_neighbours_dial_refusal(neighbours_of(links), dial);
}

bool gw_links_has_lost(const struct gw_links *links, uint32_t rank)
{
    bool is_server = links->cfg.is_home_rank_0 && rank == 0;
    const struct gw_link *link = is_server ? &links->servers[0] : &links->ranks[rank];
    return link->was_up && !link->is_up;
}
