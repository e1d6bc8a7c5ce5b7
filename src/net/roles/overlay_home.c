/* The home of jobs; see overlay_home.h. */
#include "net/roles/overlay_home.h"

#include <stdlib.h>

#include "base/error.h"
#include "wire/wire.h"

enum {
    QUEUE_BYTES = 64 << 20, /* of a port: more than all windows that can be under way */
};

struct gw_overlay_home {
    struct gw_overlay_home_cfg cfg;
    struct gw_overlay_server *server;
    struct gw_overlay_switch *sw; /* or NULL */
};

static struct gw_loop_port server_port(const struct gw_overlay_home *home)
{
    return (struct gw_loop_port){gw_overlay_server_node(home->server), 0};
}

static int open_switch(struct gw_overlay_home *home)
{
    const struct gw_overlay_home_cfg *cfg = &home->cfg;
    struct gw_overlay_switch_cfg sw = {
        .loop = gw_station_loop(cfg->station),
        .pool = gw_station_pool(cfg->station),
        .address = cfg->switch_address,
        .ports = cfg->ports,
        .hdr = gw_datapath_overhead(gw_station_datapath(cfg->station)),
        .mtu = cfg->mtu,
        .aggregators = cfg->aggregators,
        .jobs_max = cfg->jobs_max,
        .queue_bytes = QUEUE_BYTES,
        .seed = gw_key_random32(),
    };
    sw.groups = gw_station_groups(cfg->station, &sw.first_group);
    int code = gw_overlay_switch_open(&sw, &home->sw);
    return code ? code
                : gw_overlay_switch_join(home->sw, server_port(home), cfg->server_address, true);
}

int gw_overlay_home_open(const struct gw_overlay_home_cfg *cfg, struct gw_overlay_home **result)
{
    struct gw_overlay_home *home = calloc(1, sizeof(*home));
    if (!home)
        return GW_ERR_NO_MEMORY;
    home->cfg = *cfg;
    struct gw_overlay_server_cfg server = {
        .loop = gw_station_loop(cfg->station),
        .pool = gw_station_pool(cfg->station),
        .address = cfg->server_address,
        .incarnation = gw_key_random32(),
        .hdr = gw_datapath_overhead(gw_station_datapath(cfg->station)),
        .mtu = cfg->mtu,
        .jobs_max = cfg->jobs_max,
        .seed = gw_key_random32(),
    };
    int code = gw_overlay_server_open(&server, &home->server);
    if (!code && cfg->adds_up)
        code = open_switch(home);
    if (code) {
        gw_overlay_home_close(home);
        return code;
    }
    *result = home;
    return GW_OK;
}

void gw_overlay_home_close(struct gw_overlay_home *home)
{
    if (home->sw)
        gw_overlay_switch_close(home->sw);
    if (home->server)
        gw_overlay_server_close(home->server);
    free(home);
}

static int add_job(struct gw_overlay_home *home, const struct gw_greeting *greeting)
{
    const struct gw_overlay_home_cfg *cfg = &home->cfg;
    struct gw_overlay_job job = {
        .job = greeting->job,
        .world = greeting->world,
        .levels = greeting->is_direct ? 0 : GW_LEVELS_MAX,
        .values = cfg->values,
        .window = cfg->window,
        .aggregators = cfg->aggregators,
    };
    if (job.world < 1 || job.world > GW_OVERLAY_WORLD_MAX)
        return GW_ERR_INVALID;
    return gw_overlay_server_add(home->server, &job);
}

/* Links the neighbour of a job. */
static int link_worker(struct gw_overlay_home *home, const struct gw_neighbour_event *event)
{
    struct gw_loop *loop = gw_station_loop(home->cfg.station);
    if (event->said.flags & GW_ATTACH_DIRECT) {
        gw_loop_link(loop, server_port(home), event->peer, false);
        return gw_loop_direct(loop, server_port(home), event->said.address, event->peer);
    }
    return home->sw
               ? gw_overlay_switch_attach(home->sw, event->peer, event->said.address, true, false)
               : GW_OK;
}

static enum gw_attach_reason reason_of(int code)
{
    return code == GW_ERR_INVALID ? GW_ATTACH_TAKEN : GW_ATTACH_ROOM;
}

/* Takes one in; otherwise says why not. */
static enum gw_attach_reason take_in(struct gw_overlay_home *home,
                                     const struct gw_neighbour_event *event)
{
    const struct gw_attach_msg *said = &event->said;
    struct gw_greeting greeting = {.job = said->job,
                                   .world = said->world,
                                   .rank = said->rank,
                                   .is_direct = said->flags & GW_ATTACH_DIRECT};
    int code = GW_OK;
    if (said->job && add_job(home, &greeting) != GW_OK)
        return GW_ATTACH_JOB;
    if (said->role == GW_ATTACH_HOST)
        code = link_worker(home, event);
    else if (home->sw)
        code = gw_overlay_switch_attach(home->sw, event->peer, said->address, false, false);
    return code ? reason_of(code) : GW_ATTACH_OK;
}

/* The next session of a worker from *peer on, which is moved on; false: there is none. */
static bool next_worker(const struct gw_overlay_home *home, uint16_t *peer,
                        struct gw_neighbour_event *view)
{
    const struct gw_neighbours *neighbours = gw_station_neighbours(home->cfg.station);
    while (*peer < GW_DATAPATH_PEERS_MAX)
        if (gw_neighbours_view(neighbours, (*peer)++, view) && view->dial < 0 && view->said.job)
            return true;
    return false;
}

/* The round trip between the server and a worker by the way that the job's packets take; what a
 * worker has not measured yet is taken to be as ours. */
static gw_time hops_to(const struct gw_overlay_home *home, const struct gw_neighbour_event *worker)
{
    const struct gw_neighbours *neighbours = gw_station_neighbours(home->cfg.station);
    gw_time own = gw_neighbours_way(neighbours).rtt;
    gw_time other = gw_neighbours_way_of(neighbours, worker->peer).rtt;
    if (home->sw || worker->said.flags & GW_ATTACH_DIRECT)
        return gw_neighbours_rtt(neighbours, worker->peer);
    return own + (other ? other : own);
}

/* Tells the coordinator of a worker's job what is known of the path to it. */
static void tell_path(struct gw_overlay_home *home, uint32_t job)
{
    const struct gw_neighbours *neighbours = gw_station_neighbours(home->cfg.station);
    uint64_t rate = home->sw ? 0 : gw_neighbours_way(neighbours).rate_bps;
    struct gw_neighbour_event worker;
    gw_time hops = 0;
    for (uint16_t peer = 0; next_worker(home, &peer, &worker);) {
        if (worker.said.job != job)
            continue;
        gw_time other = hops_to(home, &worker);
        hops = other > hops ? other : hops;
        rate = gw_overlay_slower(rate, gw_neighbours_way_of(neighbours, worker.peer).rate_bps);
    }
    struct gw_notice_path path = {
        .rtt = gw_overlay_brtt(hops),
        .rate_bps = rate ? rate : GW_OVERLAY_RATE_BPS,
        .packet = gw_datapath_overhead(gw_station_datapath(home->cfg.station)) +
                  GW_WIRE_VALUE_SIZE * home->cfg.values,
    };
    gw_overlay_server_set_path(home->server, job, &path);
}

void gw_overlay_home_neighbour(struct gw_overlay_home *home, const struct gw_neighbour_event *event,
                               char *why)
{
    char name[GW_SOCK_ADDR_NAME_MAX];
    *why = '\0';
    if (event->kind == GW_NEIGHBOUR_DOWN && home->sw)
        gw_overlay_switch_detach(home->sw, event->peer);
    if (event->kind == GW_NEIGHBOUR_HEARS && home->sw)
        gw_overlay_switch_hear(home->sw, event->peer, gw_station_hearing(home->cfg.station, event));
    if (event->kind != GW_NEIGHBOUR_UP)
        return;
    enum gw_attach_reason reason = take_in(home, event);
    if (reason == GW_ATTACH_OK && event->said.job)
        tell_path(home, event->said.job);
    if (reason == GW_ATTACH_OK)
        return;
    gw_station_refuse(home->cfg.station, event->peer, reason);
    gw_sock_addr_format(&event->addr, name, sizeof(name));
    gw_net_fail(why, 0, "refused %s (job %u, rank %u of %u): %s", name, event->said.job,
                event->said.rank, event->said.world, gw_attach_reason_text(reason));
}

int gw_overlay_home_join(struct gw_overlay_home *home, struct gw_loop_port worker, uint32_t address,
                         const struct gw_greeting *greeting)
{
    int code = add_job(home, greeting);
    if (code)
        return code;
    if (home->sw)
        return gw_overlay_switch_join(home->sw, worker, address, false);
    gw_loop_join(gw_station_loop(home->cfg.station), server_port(home), worker);
    return GW_OK;
}

void gw_overlay_home_way_out(struct gw_overlay_home *home, uint16_t peer)
{
    gw_loop_link(gw_station_loop(home->cfg.station), server_port(home), peer, true);
}

static bool is_attended(const struct gw_overlay_home *home, uint32_t job)
{
    struct gw_neighbour_event view;
    for (uint16_t peer = 0; next_worker(home, &peer, &view);)
        if (view.said.job == job)
            return true;
    return false;
}

void gw_overlay_home_look(struct gw_overlay_home *home)
{
    uint32_t idle[GW_OVERLAY_JOBS_MAX], count = 0;
    struct gw_neighbour_event worker;
    struct gw_overlay_job_view view;
    for (uint16_t peer = 0; next_worker(home, &peer, &worker);)
        gw_overlay_server_hear(home->server, worker.said.job, worker.said.address, worker.heard_at);
    for (uint32_t i = 0; gw_overlay_server_view(home->server, i, &view); i++) {
        if (view.phase == GW_COORDINATOR_GATHERING && !is_attended(home, view.job.job))
            idle[count++] = view.job.job;
        else if (view.phase == GW_COORDINATOR_GATHERING)
            tell_path(home, view.job.job);
    }
    for (uint32_t i = 0; i < count; i++)
        gw_overlay_server_forget(home->server, idle[i]);
}

struct gw_overlay_server *gw_overlay_home_server(struct gw_overlay_home *home)
{
    return home->server;
}

const struct gw_overlay_switch *gw_overlay_home_switch(const struct gw_overlay_home *home)
{
    return home->sw;
}
