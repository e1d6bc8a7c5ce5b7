/* `gradwire server`: a parameter server, for any number of jobs. */
#include "cli/cli.h"
#include "cli/daemon.h"
#include "net/roles/overlay_home.h"

#include <stdlib.h>

#include "base/error.h"

enum {
    PORTS = GW_DAEMON_PEERS_MAX, /* of its own switch, the server's among them */
    WINDOW_MIN = 2,
    WINDOW_MAX = GW_OVERLAY_WINDOW_MAX,
    PHASE_NONE = -1,
};

#define RANK_STALL (30 * GW_S) /* as jobs have it, unless they say otherwise */

struct server_cfg {
    struct gw_daemon_common common; /* first */
    char switch_name[GW_PARAM_TEXT_MAX];
    uint32_t window;
};

static const struct gw_param params[] = {
    GW_DAEMON_PARAMS(struct server_cfg, "0.0.0.0:4790"),
    {.name = "switch",
     .type = GW_PARAM_TEXT,
     .offset = offsetof(struct server_cfg, switch_name),
     .help = "HOST:PORT of the top switch; none: the server has a switch of its own"},
    GW_PARAM(struct server_cfg, COUNT, window, "0",
             "fragments of a worker on their way; a power of two up to 2048; 0: so many that those "
             "of all are 4 MiB, and 704 KiB and 512 at most, but 256 KiB at least"),
};

static const struct gw_algo table = {
    .name = "server",
    .params = params,
    .param_count = sizeof(params) / sizeof(params[0]),
    .cfg_size = sizeof(struct server_cfg),
};

/* A job as it was logged last. */
struct known {
    uint32_t job;   /* 0: free */
    int phase;      /* enum gw_coordinator_phase, or PHASE_NONE */
    bool is_served; /* found in this look */
};

struct own {
    struct gw_overlay_home *home;
    struct known known[GW_OVERLAY_JOBS_MAX];
};

static int check(const void *pointer, char *error)
{
    const struct server_cfg *cfg = pointer;
    bool is_chosen = cfg->window != 0;
    if (is_chosen &&
        (cfg->window < WINDOW_MIN || cfg->window > WINDOW_MAX || cfg->window & (cfg->window - 1)))
        return gw_net_fail(error, GW_ERR_RANGE, "window: expected a power of two, %d to %d",
                           WINDOW_MIN, WINDOW_MAX);
    if (*cfg->common.multicast && *cfg->switch_name)
        return gw_net_fail(error, GW_ERR_INVALID,
                           "multicast: this server's results leave by the switch %s: say it there",
                           cfg->switch_name);
    return gw_daemon_check_address("switch", cfg->switch_name, error);
}

/* Its results then leave by its own link alone; a switch's might fill the link of the server above.
 */
static bool may_multicast(const void *cfg)
{
    return !*((const struct server_cfg *)cfg)->switch_name;
}

/* The switch above would have to be one of many, too. */
static bool may_be_many(const void *cfg)
{
    return !*((const struct server_cfg *)cfg)->switch_name;
}

static uint16_t places(const void *cfg)
{
    (void)cfg;
    return PORTS - 1;
}

static int open_server(struct gw_daemon *daemon, void **result, char *error)
{
    const struct server_cfg *cfg = gw_daemon_cfg(daemon);
    struct gw_station *station = gw_daemon_station(daemon);
    struct gw_greeting none = {.job = 0};
    char own_switch[GW_PARAM_TEXT_MAX + 16];
    struct own *own = calloc(1, sizeof(*own));
    if (!own)
        return gw_net_fail(error, GW_ERR_NO_MEMORY, "out of memory");
    *result = own;
    snprintf(own_switch, sizeof(own_switch), "switch of %s", cfg->common.listen);
    struct gw_overlay_home_cfg home = {
        .station = station,
        .server_address = gw_daemon_address(daemon),
        .switch_address = gw_key_address(own_switch, true),
        .adds_up = !*cfg->switch_name,
        .ports = PORTS,
        .aggregators = cfg->common.aggregators,
        .jobs_max = cfg->common.jobs,
        .job_share = cfg->common.job_share,
        .ranks_max = GW_DAEMON_PEERS_MAX,
        .stall = RANK_STALL,
        .mtu = 4 * cfg->common.values,
        .values = (uint16_t)cfg->common.values,
        .window = (uint16_t)cfg->window,
    };
    if (*cfg->common.multicast)
        gw_daemon_log(daemon, "results are multicast to %s and the groups behind it",
                      cfg->common.multicast);
    int code = gw_overlay_home_open(&home, &own->home);
    if (code)
        return gw_net_fail(error, code, "%s", gw_error_message(code));
    if (!*cfg->switch_name)
        return GW_OK;
    gw_daemon_log(daemon, "the fabric's switch is %s", cfg->switch_name);
    int dial = gw_station_dial(station, cfg->switch_name, &none, error);
    return dial < 0 ? dial : GW_OK;
}

static void close_server(void *pointer)
{
    struct own *own = pointer;
    if (own->home)
        gw_overlay_home_close(own->home);
    free(own);
}

static void neighbour(struct gw_daemon *daemon, void *pointer,
                      const struct gw_neighbour_event *event)
{
    struct own *own = pointer;
    char name[GW_SOCK_ADDR_NAME_MAX], why[GW_NET_ERROR_MAX];
    gw_sock_addr_format(&event->addr, name, sizeof(name));
    if (event->dial >= 0) {
        if (event->kind == GW_NEIGHBOUR_UP)
            gw_overlay_home_way_out(own->home, event->peer);
        else
            gw_overlay_home_cut_off(own->home);
        gw_daemon_log(daemon, "the fabric's switch at %s: %s", name,
                      event->kind == GW_NEIGHBOUR_UP ? "up" : "down");
        return;
    }
    gw_overlay_home_neighbour(own->home, event, why);
    if (*why)
        gw_daemon_log(daemon, "%s", why);
    else if (event->kind == GW_NEIGHBOUR_HEARS)
        gw_daemon_log_hearing(daemon, event, gw_station_hearing(gw_daemon_station(daemon), event));
    else
        gw_daemon_log(daemon, "%s, job %08x rank %u of %u: %s", name, event->said.job,
                      event->said.rank, event->said.world,
                      event->kind == GW_NEIGHBOUR_UP ? "up" : "down");
}

static void turn(void *pointer)
{
    struct own *own = pointer;
    gw_overlay_home_poll(own->home);
}

static const char *phase_text(enum gw_coordinator_phase phase)
{
    switch (phase) {
    case GW_COORDINATOR_GATHERING:
        return "waits for workers";
    case GW_COORDINATOR_INSTALLING:
        return "is set up in the switches";
    case GW_COORDINATOR_RUNNING:
        return "runs";
    case GW_COORDINATOR_CLOSING:
        return "closes";
    }
    return "is unknown";
}

/* What is known of a job; a new one is at no phase yet. NULL: too many have ended at once. */
static struct known *find_known(struct own *own, uint32_t job)
{
    struct known *room = NULL;
    for (uint32_t i = 0; i < GW_OVERLAY_JOBS_MAX; i++) {
        if (own->known[i].job == job)
            return &own->known[i];
        if (own->known[i].job == 0)
            room = &own->known[i];
    }
    if (room)
        *room = (struct known){.job = job, .phase = PHASE_NONE};
    return room;
}

static void look(struct gw_daemon *daemon, void *pointer)
{
    struct own *own = pointer;
    struct gw_overlay_job_view view;
    struct gw_overlay_server *server = gw_overlay_home_server(own->home);
    for (uint32_t i = 0; gw_overlay_server_view(server, i, &view); i++) {
        struct known *known = find_known(own, view.job.job);
        if (!known)
            continue;
        if (known->phase != (int)view.phase)
            gw_daemon_log(daemon, "job %08x of %u workers %s", view.job.job, view.job.world,
                          phase_text(view.phase));
        known->phase = (int)view.phase;
        known->is_served = true;
    }
    for (uint32_t i = 0; i < GW_OVERLAY_JOBS_MAX; i++) {
        struct known *known = &own->known[i];
        if (known->job && !known->is_served) {
            gw_daemon_log(daemon, "job %08x ends", known->job);
            known->job = 0;
        }
        known->is_served = false;
    }
    gw_overlay_home_look(own->home);
}

static void status(void *pointer, json_t *status)
{
    struct own *own = pointer;
    struct gw_overlay_job_view view;
    char number[16];
    json_t *jobs = json_array();
    for (uint32_t i = 0; gw_overlay_server_view(gw_overlay_home_server(own->home), i, &view); i++) {
        const struct gw_server_stats *stats = &view.server;
        snprintf(number, sizeof(number), "%08x", view.job.job);
        json_array_append_new(
            jobs,
            json_pack("{s:s, s:i, s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "job", number,
                      "workers", (int)view.job.world, "phase", phase_text(view.phase), "epoch",
                      (int)view.epoch, "epochs", (json_int_t)view.coordinator.epochs, "losses",
                      (json_int_t)view.coordinator.silences, "results", (json_int_t)stats->results,
                      "complete", (json_int_t)stats->complete, "partial",
                      (json_int_t)stats->partial, "overflowed", (json_int_t)stats->overflowed,
                      "restored", (json_int_t)stats->restored, "bytes", (json_int_t)stats->bytes));
    }
    json_object_set_new(status, "jobs", jobs);
    struct gw_overlay_totals totals = gw_overlay_server_totals(gw_overlay_home_server(own->home));
    json_object_set_new(status, "totals",
                        json_pack("{s:I, s:I, s:I, s:I}", "received", (json_int_t)totals.received,
                                  "results", (json_int_t)totals.results, "complete",
                                  (json_int_t)totals.complete, "bytes", (json_int_t)totals.bytes));
    const struct gw_overlay_switch *sw = gw_overlay_home_switch(own->home);
    if (sw)
        json_object_set_new(
            status, "copies_saved",
            json_integer((json_int_t)gw_switch_stats(gw_overlay_switch_core(sw))->copies_saved));
}

static void use(const void *pointer, uint32_t who, struct gw_tenant_use *use)
{
    const struct own *own = pointer;
    gw_overlay_home_use(own->home, who, use);
}

int gw_cmd_server(int argc, char **argv)
{
    static const struct gw_daemon_kind kind = {
        .name = "server",
        .doc = "Runs a parameter server, which completes the sums of many jobs."
               "\vExample:\n"
               "  gradwire server --config examples/server.yaml\n"
               "\ndocs/deploy.md describes the keys of the file.",
        .table = &table,
        .cfg_size = sizeof(struct server_cfg),
        .role = GW_ATTACH_HOST,
        .check = check,
        .open = open_server,
        .close = close_server,
        .neighbour = neighbour,
        .turn = turn,
        .look = look,
        .may_multicast = may_multicast,
        .may_be_many = may_be_many,
        .places = places,
        .status = status,
        .use = use,
    };
    return gw_daemon_main(&kind, argc, argv);
}
