/* The home of jobs; see overlay_home.h. */
#include "net/roles/overlay_home.h"

#include <stdlib.h>

#include "base/error.h"
#include "net/locator.h"
#include "wire/wire.h"

enum {
    QUEUE_BYTES = 64 << 20, /* of a port: more than all windows that can be under way */
    ANY_RANK = GW_OVERLAY_WORLD_MAX,
};

/* A rank in this process. */
struct worker {
    bool is_there;
    struct gw_loop_port port;
    uint32_t job;
    uint32_t address;
    uint16_t rank;
};

struct gw_overlay_home {
    struct gw_overlay_home_cfg cfg;
    struct gw_overlay_links links;
    struct gw_overlay_server *server;
    struct gw_overlay_switch *sw; /* or NULL */
    struct worker worker;
    bool is_cut_off; /* from the fabric's switches */
};

static struct gw_loop *loop_of(const struct gw_overlay_home *home)
{
    return gw_station_loop(home->cfg.station);
}

static const struct gw_neighbours *neighbours_of(const struct gw_overlay_home *home)
{
    return gw_station_neighbours(home->cfg.station);
}

static struct gw_loop_port server_port(const struct gw_overlay_home *home)
{
    return (struct gw_loop_port){gw_overlay_server_node(home->server), 0};
}

/* The next session of a worker from *peer on, which is moved on; false: there is none. */
static bool next_worker(const struct gw_overlay_home *home, uint16_t *peer,
                        struct gw_neighbour_event *view)
{
    while (*peer < GW_DATAPATH_PEERS_MAX)
        if (gw_neighbours_view(neighbours_of(home), (*peer)++, view) && view->dial < 0 &&
            view->said.job)
            return true;
    return false;
}

/* Whether it is of the job, and has that address (0: any) and rank (ANY_RANK: any). */
static bool is_meant(const struct gw_attach_msg *said, uint32_t job, uint32_t address,
                     uint32_t rank)
{
    return said->job == job && (address == 0 || said->address == address) &&
           (rank == ANY_RANK || said->rank == rank);
}

/* Whether such a worker is here, or has a session. */
static bool has(const struct gw_overlay_home *home, uint32_t job, uint32_t address, uint32_t rank)
{
    const struct worker *own = &home->worker;
    struct gw_neighbour_event worker = {
        .said = {.job = own->job, .address = own->address, .rank = own->rank}};
    bool has = own->is_there && is_meant(&worker.said, job, address, rank);
    for (uint16_t peer = 0; !has && next_worker(home, &peer, &worker);)
        has = is_meant(&worker.said, job, address, rank);
    return has;
}

static bool has_worker(const void *context, uint32_t job, uint32_t address)
{
    return has(context, job, address, ANY_RANK);
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
        .tenants = gw_station_tenants(cfg->station),
        .job_share = cfg->job_share,
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
        .tenants = *gw_station_tenants(cfg->station),
        .ranks_max = cfg->ranks_max,
        .has_switches = !cfg->adds_up,
        .stall = cfg->stall,
        .seed = gw_key_random32(),
        .has_come = has_worker,
        .context = home,
    };
    home->links = (struct gw_overlay_links){
        .hdr = server.hdr, .mtu = cfg->mtu, .rate_bps = cfg->rate_bps, .trims = !cfg->adds_up};
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
        .values = cfg->values,
        .window = cfg->window
                      ? cfg->window
                      : gw_overlay_window(greeting->world, GW_WIRE_VALUE_SIZE * cfg->values),
        .aggregators = cfg->aggregators,
        .is_home = greeting->wants_table,
    };
    if (job.world < 1 || job.world > GW_OVERLAY_WORLD_MAX)
        return GW_ERR_NO_ROOM;
    int code = gw_overlay_server_add(home->server, &job);
    if (!code && home->sw) /* sums that are made here alone need not pass our switch */
        code = gw_loop_receive_job(loop_of(home), gw_job_shard_direct(job.job), cfg->server_address,
                                   server_port(home));
    return code;
}

/* What leaves the server for a rank goes straight to its session. */
static int link_server(struct gw_overlay_home *home, const struct gw_neighbour_event *event)
{
    return gw_loop_direct(loop_of(home), server_port(home), event->said.address, event->peer);
}

/*
 * Links the neighbour of a job. What comes from one that has no switch passes ours; what a rank of
 * this process sends to it need not. One that has a switch is heard, and answered by that switch.
 */
static int link_worker(struct gw_overlay_home *home, const struct gw_neighbour_event *event)
{
    bool is_direct = event->said.flags & GW_ATTACH_DIRECT;
    if (home->sw && is_direct) {
        int code =
            gw_overlay_switch_attach(home->sw, event->peer, event->said.address, true, false);
        if (!code && event->said.job)
            code = gw_loop_direct_job(loop_of(home), server_port(home),
                                      gw_job_shard_direct(event->said.job), event->said.address,
                                      event->peer);
        if (!code && home->worker.is_there)
            code =
                gw_loop_direct(loop_of(home), home->worker.port, event->said.address, event->peer);
        return code;
    }
    gw_loop_link(loop_of(home), server_port(home), event->peer, false);
    return is_direct || home->is_cut_off ? link_server(home, event) : GW_OK;
}

static enum gw_attach_reason reason_of(int code)
{
    return code == GW_ERR_INVALID ? GW_ATTACH_TAKEN : GW_ATTACH_ROOM;
}

/* The round trip between the server and a worker by the way that the job's packets take; what a
 * worker has not measured yet is taken to be as ours. */
static gw_time hops_to(const struct gw_overlay_home *home, const struct gw_neighbour_event *worker)
{
    const struct gw_neighbours *neighbours = neighbours_of(home);
    gw_time own = gw_neighbours_way(neighbours).rtt;
    gw_time other = gw_neighbours_way_of(neighbours, worker->peer).rtt;
    if (home->sw || worker->said.flags & GW_ATTACH_DIRECT)
        return gw_neighbours_rtt(neighbours, worker->peer);
    return own + (other ? other : own);
}

/* Of the slowest link to a worker. */
static uint64_t rate_to(const struct gw_overlay_home *home, const struct gw_neighbour_event *worker)
{
    if (home->cfg.rate_bps)
        return home->cfg.rate_bps;
    uint64_t own = home->sw ? 0 : gw_neighbours_way(neighbours_of(home)).rate_bps;
    uint64_t rate =
        gw_overlay_slower(own, gw_neighbours_way_of(neighbours_of(home), worker->peer).rate_bps);
    return rate ? rate : GW_OVERLAY_RATE_BPS;
}

/* Tells coordinators and registrar of a worker's job what is known of the path to it. */
static void tell_path(struct gw_overlay_home *home, uint32_t job)
{
    struct gw_neighbour_event worker;
    gw_time hops = 0;
    uint64_t rate = 0;
    for (uint16_t peer = 0; next_worker(home, &peer, &worker);) {
        if (worker.said.job != job)
            continue;
        gw_time other = hops_to(home, &worker);
        hops = other > hops ? other : hops;
        rate = gw_overlay_slower(rate, rate_to(home, &worker));
    }
    struct gw_notice_path path = {
        .rtt = gw_overlay_brtt(hops),
        .rate_bps = rate ? rate : GW_OVERLAY_RATE_BPS,
        .packet = home->links.hdr + GW_WIRE_VALUE_SIZE * home->cfg.values,
    };
    if (home->cfg.notice_path.rate_bps)
        path = home->cfg.notice_path;
    gw_overlay_server_set_path(home->server, job, &path);
}

static struct gw_greeting greeting_of(const struct gw_attach_msg *said)
{
    return (struct gw_greeting){
        .job = said->job,
        .world = said->world,
        .rank = said->rank,
        .notice = said->notice,
        .wants_table = said->flags & GW_ATTACH_TABLE,
    };
}

/* Links whoever has come, and opens its job. */
static enum gw_attach_reason take_in(struct gw_overlay_home *home,
                                     const struct gw_neighbour_event *event)
{
    const struct gw_attach_msg *said = &event->said;
    struct gw_greeting greeting = greeting_of(said);
    int code = said->job ? add_job(home, &greeting) : GW_OK;
    if (code)
        return code == GW_ERR_INVALID ? GW_ATTACH_WORLD : GW_ATTACH_JOB;
    if (said->role == GW_ATTACH_HOST)
        code = link_worker(home, event);
    else if (home->sw)
        code = gw_overlay_switch_attach(home->sw, event->peer, said->address, false, false);
    return code ? reason_of(code) : GW_ATTACH_OK;
}

/* The worker in this process is alive. */
static void hear_own(const struct gw_overlay_home *home, gw_time now)
{
    if (home->worker.is_there)
        gw_overlay_server_hear(home->server, home->worker.job, home->worker.rank,
                               home->worker.address, now, now);
}

/* Tells the registrar of a job, if it is here, of a rank that has come. */
static enum gw_attach_reason register_rank(struct gw_overlay_home *home,
                                           const struct gw_neighbour_event *event)
{
    const struct gw_attach_msg *said = &event->said;
    struct gw_registrar_rank rank = {
        .place = {.address = said->address},
        .rank = said->rank,
        .notice = said->notice,
        .was_seated = said->flags & GW_ATTACH_AGAIN,
        .table = said->table,
        .path = gw_overlay_path(&home->links, hops_to(home, event), rate_to(home, event)),
    };
    if (said->job == 0 || said->role != GW_ATTACH_HOST || !(said->flags & GW_ATTACH_TABLE))
        return GW_ATTACH_OK;
    gw_time now = gw_loop_now(loop_of(home));
    gw_locator_write(&event->addr, rank.place.locator);
    hear_own(home, now);
    enum gw_job_reason reason = gw_overlay_server_come(home->server, said->job, &rank, now);
    return reason == GW_JOB_OK       ? GW_ATTACH_OK
           : reason == GW_JOB_NOTICE ? GW_ATTACH_NOTICE
           : reason == GW_JOB_LOST   ? GW_ATTACH_REPLACED
                                     : GW_ATTACH_RANK;
}

/* Whoever had the rank in an earlier job is told that it is over, whatever he thinks. */
static void dismiss_earlier(struct gw_overlay_home *home, const struct gw_neighbour_event *event)
{
    struct gw_neighbour_event other;
    for (uint16_t peer = 0; next_worker(home, &peer, &other);) {
        if (other.said.job != event->said.job || other.said.rank != event->said.rank ||
            other.said.address == event->said.address || !(other.said.flags & GW_ATTACH_TABLE))
            continue;
        gw_overlay_server_dismiss(home->server, other.said.job, other.said.address);
        if (home->sw)
            gw_overlay_switch_detach(home->sw, other.peer);
        gw_station_refuse(home->cfg.station, other.peer, GW_ATTACH_OVER);
    }
}

/* A session has ended: its rank has gone, unless it has another one by now. */
static void unregister_rank(struct gw_overlay_home *home, const struct gw_neighbour_event *event)
{
    const struct gw_attach_msg *said = &event->said;
    if (!has(home, said->job, said->address, ANY_RANK))
        gw_overlay_server_gone(home->server, said->job, said->address, gw_loop_now(loop_of(home)));
}

static void came_up(struct gw_overlay_home *home, const struct gw_neighbour_event *event, char *why)
{
    char name[GW_SOCK_ADDR_NAME_MAX];
    const struct gw_attach_msg *said = &event->said;
    bool is_over = gw_overlay_server_is_over(home->server, said->job, said->address);
    enum gw_attach_reason reason = is_over ? GW_ATTACH_OVER : take_in(home, event);
    if (reason == GW_ATTACH_OK) {
        if (said->job)
            tell_path(home, said->job);
        reason = register_rank(home, event);
        if (reason != GW_ATTACH_OK && home->sw)
            gw_overlay_switch_detach(home->sw, event->peer);
    }
    if (reason == GW_ATTACH_OK) {
        if (said->flags & GW_ATTACH_TABLE)
            dismiss_earlier(home, event);
        return;
    }
    gw_station_refuse(home->cfg.station, event->peer, reason);
    gw_sock_addr_format(&event->addr, name, sizeof(name));
    gw_net_fail(why, 0, "refused %s (job %u, rank %u of %u): %s", name, event->said.job,
                event->said.rank, event->said.world, gw_attach_reason_text(reason));
}

void gw_overlay_home_neighbour(struct gw_overlay_home *home, const struct gw_neighbour_event *event,
                               char *why)
{
    *why = '\0';
    if (event->kind == GW_NEIGHBOUR_UP)
        came_up(home, event, why);
    if (event->kind == GW_NEIGHBOUR_HEARS && home->sw)
        gw_overlay_switch_hear(home->sw, event->peer, gw_station_hearing(home->cfg.station, event));
    if (event->kind != GW_NEIGHBOUR_DOWN)
        return;
    if (home->sw)
        gw_overlay_switch_detach(home->sw, event->peer);
    if (event->said.job && event->said.flags & GW_ATTACH_TABLE)
        unregister_rank(home, event);
}

int gw_overlay_home_join(struct gw_overlay_home *home, struct gw_loop_port worker, uint32_t address,
                         const struct gw_greeting *greeting)
{
    struct gw_registrar_rank rank = {
        .place = {.address = address},
        .rank = greeting->rank,
        .notice = greeting->notice,
        .path = gw_overlay_path(&home->links, 0,
                                home->cfg.rate_bps ? home->cfg.rate_bps : GW_OVERLAY_RATE_BPS),
    };
    home->worker = (struct worker){true, worker, greeting->job, address, greeting->rank};
    int code = add_job(home, greeting);
    if (!code && home->sw)
        code = gw_overlay_switch_join(home->sw, worker, address, false);
    if (code)
        return code;
    if (home->sw)
        code = gw_loop_receive_at(loop_of(home), address, worker);
    if (!code && home->sw)
        code =
            gw_loop_receive_job(loop_of(home), gw_job_shard_direct(greeting->job), address, worker);
    if (code)
        return code;
    enum gw_job_reason reason =
        gw_overlay_server_come(home->server, greeting->job, &rank, gw_loop_now(loop_of(home)));
    return reason == GW_JOB_OK ? GW_OK : GW_ERR_INVALID;
}

uint32_t gw_overlay_home_missing(const struct gw_overlay_home *home, uint32_t job, uint16_t world)
{
    uint32_t rank = 0;
    while (rank < world && has(home, job, 0, rank))
        rank++;
    return rank;
}

/* A worker in this process is reached inside of it, or by the fabric as others are. */
static void join_worker(struct gw_overlay_home *home, bool is_inside)
{
    const struct worker *worker = &home->worker;
    if (!worker->is_there)
        return;
    if (is_inside) {
        gw_loop_direct_join(loop_of(home), server_port(home), worker->address, worker->port);
        gw_loop_direct_join(loop_of(home), worker->port, home->cfg.server_address,
                            server_port(home));
    } else {
        gw_loop_undirect(loop_of(home), server_port(home), worker->address);
        gw_loop_undirect(loop_of(home), worker->port, home->cfg.server_address);
    }
}

static void go_straight(struct gw_overlay_home *home, bool is_straight)
{
    struct gw_neighbour_event worker;
    home->is_cut_off = is_straight;
    join_worker(home, is_straight);
    for (uint16_t peer = 0; next_worker(home, &peer, &worker);) {
        if (worker.said.flags & GW_ATTACH_DIRECT)
            continue;
        if (is_straight)
            link_server(home, &worker);
        else
            gw_loop_undirect(loop_of(home), server_port(home), worker.said.address);
    }
}

void gw_overlay_home_way_out(struct gw_overlay_home *home, uint16_t peer)
{
    gw_loop_link(loop_of(home), server_port(home), peer, true);
    go_straight(home, false);
}

void gw_overlay_home_cut_off(struct gw_overlay_home *home)
{
    go_straight(home, true);
}

void gw_overlay_home_poll(struct gw_overlay_home *home)
{
    gw_overlay_server_poll(home->server, gw_loop_time(loop_of(home)));
}

void gw_overlay_home_look(struct gw_overlay_home *home)
{
    uint32_t idle[GW_OVERLAY_JOBS_MAX], count = 0;
    struct gw_neighbour_event worker;
    struct gw_overlay_job_view view;
    gw_time now = gw_loop_now(loop_of(home));
    for (uint16_t peer = 0; next_worker(home, &peer, &worker);)
        gw_overlay_server_hear(home->server, worker.said.job, worker.said.rank, worker.said.address,
                               worker.heard_at, now);
    hear_own(home, now);
    for (uint32_t i = 0; gw_overlay_server_view(home->server, i, &view); i++) {
        if (view.phase == GW_COORDINATOR_GATHERING && !has(home, view.job.job, 0, ANY_RANK))
            idle[count++] = view.job.job;
        else if (view.phase == GW_COORDINATOR_GATHERING)
            tell_path(home, view.job.job);
    }
    for (uint32_t i = 0; i < count; i++)
        if (gw_overlay_server_forget(home->server, idle[i]))
            gw_loop_forget_job(loop_of(home), gw_job_shard_direct(idle[i]),
                               home->cfg.server_address);
}

void gw_overlay_home_use(const struct gw_overlay_home *home, uint32_t who,
                         struct gw_tenant_use *use)
{
    gw_overlay_server_use(home->server, who, use);
    if (home->sw)
        gw_aggregate_shares_use(gw_aggregate_shares(gw_overlay_switch_aggregate(home->sw)), who,
                                use);
}

struct gw_overlay_server *gw_overlay_home_server(struct gw_overlay_home *home)
{
    return home->server;
}

const struct gw_overlay_switch *gw_overlay_home_switch(const struct gw_overlay_home *home)
{
    return home->sw;
}
