/* `gradwire switch`: a switch that adds up, for any number of jobs. */
#include "cli/cli.h"
#include "cli/daemon.h"
#include "cli/daemon_queue.h"
#include "cli/losses.h"
#include "cli/switch_pcn.h"
#include "net/roles/overlay_switch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum {
    PORTS_MAX = 1024,
};

#define ANNOUNCE_EVERY (200 * GW_MS)

struct switch_cfg {
    struct gw_daemon_common common; /* first */
    char above[GW_PARAM_TEXT_MAX];
    uint32_t ports;
    uint64_t rate;
    struct gw_daemon_queue queue;
    struct gw_pcn_cfg pcn;
};

static const struct gw_param params[] = {
    GW_DAEMON_PARAMS(struct switch_cfg, "0.0.0.0:4791"),
    {.name = "switch",
     .type = GW_PARAM_TEXT,
     .offset = offsetof(struct switch_cfg, above),
     .help = "HOST:PORT of the next switch up; none: this is the top"},
    GW_PARAM(struct switch_cfg, COUNT, ports, "64", "neighbours at the same time"),
    GW_PARAM(struct switch_cfg, RATE, rate, NULL, "of each port; none: as fast as the socket"),
};

static const struct gw_algo table = {
    .name = "switch",
    .params = params,
    .param_count = sizeof(params) / sizeof(params[0]),
    .cfg_size = offsetof(struct switch_cfg, queue),
};

struct own {
    struct gw_overlay_switch *sw;
    int uplink;          /* dial, or -1 */
    gw_time announce_at; /* all that are below */
    const char *why_not; /* no room is made for bursts; NULL: it is */
    struct gw_loop *loop;
};

/* Sections of the config. */
static const char *const sections[] = {"queue", "pcn", NULL};

static int read_sections(const struct gw_document *document, void *pointer)
{
    struct switch_cfg *cfg = pointer;
    int code = gw_daemon_queue_read(document, &cfg->queue);
    return code ? code : gw_switch_pcn_read(document, &cfg->pcn);
}

static int check(const void *pointer, char *error)
{
    const struct switch_cfg *cfg = pointer;
    int code = gw_daemon_check_range("ports", cfg->ports, 1, PORTS_MAX, error);
    if (!code)
        code = gw_daemon_queue_check(&cfg->queue, cfg->rate, error);
    return code ? code : gw_daemon_check_address("switch", cfg->above, error);
}

static int open_switch(struct gw_daemon *daemon, void **result, char *error)
{
    const struct switch_cfg *cfg = gw_daemon_cfg(daemon);
    struct gw_station *station = gw_daemon_station(daemon);
    struct gw_greeting none = {.job = 0};
    struct own *own = calloc(1, sizeof(*own));
    if (!own)
        return gw_net_fail(error, GW_ERR_NO_MEMORY, "out of memory");
    *result = own;
    own->uplink = -1;
    own->loop = gw_station_loop(station);
    own->why_not = gw_switch_pcn_why_not(&cfg->pcn, cfg->rate, &cfg->queue);
    struct gw_overlay_switch_cfg sw = {
        .loop = gw_station_loop(station),
        .pool = gw_station_pool(station),
        .address = gw_daemon_address(daemon),
        .ports = (uint16_t)(cfg->ports + 1),
        .has_uplink = *cfg->above,
        .hdr = gw_datapath_overhead(gw_station_datapath(station)),
        .mtu = 4 * cfg->common.values,
        .aggregators = cfg->common.aggregators,
        .jobs_max = cfg->common.jobs,
        .tenants = gw_station_tenants(station),
        .job_share = cfg->common.job_share,
        .qdisc = cfg->queue.qdisc,
        .qdisc_cfg = &cfg->queue.cfg,
        .queue_bytes = gw_daemon_queue_bytes(&cfg->queue, cfg->rate),
        .shared = cfg->queue.shared,
        .rate_bps = cfg->rate,
        .notices = {.enable = !own->why_not,
                    .floor = cfg->pcn.floor,
                    .hold = cfg->pcn.hold,
                    .share = cfg->pcn.share,
                    .save = cfg->pcn.save,
                    .jobs = cfg->pcn.jobs,
                    .announcements = cfg->pcn.announcements},
    };
    gw_key_random(&sw.seed, sizeof(sw.seed));
    sw.groups = gw_station_groups(station, &sw.first_group);
    int code = gw_overlay_switch_open(&sw, &own->sw);
    if (code)
        return gw_net_fail(error, code, "%s", gw_error_message(code));
    if (*cfg->above) {
        own->uplink = gw_station_dial(station, cfg->above, &none, error);
        gw_daemon_log(daemon, "the next switch up is %s", cfg->above);
    }
    if (*cfg->common.multicast)
        gw_daemon_log(daemon, "results are multicast to %s and the groups behind it",
                      cfg->common.multicast);
    if (cfg->rate)
        gw_daemon_log(daemon, "ports are %s queues of %u bytes", cfg->queue.qdisc->algo.name,
                      sw.queue_bytes);
    else
        gw_daemon_log(daemon, "no rate is given: ports do not mark or trim");
    if (own->why_not)
        gw_daemon_log(daemon, "no room is made for announced bursts: %s", own->why_not);
    return *cfg->above && own->uplink < 0 ? own->uplink : GW_OK;
}

static void close_switch(void *pointer)
{
    struct own *own = pointer;
    if (own->sw)
        gw_overlay_switch_close(own->sw);
    free(own);
}

static void neighbour(struct gw_daemon *daemon, void *pointer,
                      const struct gw_neighbour_event *event)
{
    struct own *own = pointer;
    char name[GW_SOCK_ADDR_NAME_MAX];
    bool is_host = event->said.role == GW_ATTACH_HOST, is_above = event->dial >= 0;
    gw_sock_addr_format(&event->addr, name, sizeof(name));
    if (event->kind == GW_NEIGHBOUR_UP) {
        int code =
            gw_overlay_switch_attach(own->sw, event->peer, event->said.address, is_host, is_above);
        enum gw_attach_reason reason = code == GW_ERR_INVALID ? GW_ATTACH_TAKEN : GW_ATTACH_ROOM;
        if (code && !is_above)
            gw_station_refuse(gw_daemon_station(daemon), event->peer, reason);
        gw_daemon_log(daemon, "%s %s, address %08x: %s", is_host ? "host" : "switch", name,
                      event->said.address, code ? gw_attach_reason_text(reason) : "up");
    } else if (event->kind == GW_NEIGHBOUR_DOWN) {
        gw_overlay_switch_detach(own->sw, event->peer);
        gw_daemon_log(daemon, "%s %s, address %08x: down", is_host ? "host" : "switch", name,
                      event->said.address);
    } else if (event->kind == GW_NEIGHBOUR_HEARS) {
        uint16_t group = gw_station_hearing(gw_daemon_station(daemon), event);
        gw_overlay_switch_hear(own->sw, event->peer, group);
        gw_daemon_log_hearing(daemon, event, group);
    }
}

static void look(struct gw_daemon *daemon, void *pointer)
{
    struct own *own = pointer;
    const struct gw_neighbours *neighbours = gw_station_neighbours(gw_daemon_station(daemon));
    gw_time now = gw_loop_now(gw_station_loop(gw_daemon_station(daemon)));
    if (!gw_time_before(now, own->announce_at)) { /* whoever comes is announced when he comes */
        gw_overlay_switch_announce(own->sw);
        own->announce_at = gw_time_add(now, ANNOUNCE_EVERY);
    }
    gw_overlay_switch_set_rtt(own->sw, gw_switch_pcn_rtt(neighbours, GW_DAEMON_PEERS_MAX));
}

static uint16_t places(const void *cfg)
{
    return (uint16_t)((const struct switch_cfg *)cfg)->ports;
}

static uint64_t rate_of(const void *pointer)
{
    const struct switch_cfg *cfg = pointer;
    return cfg->rate;
}

static void status(void *pointer, json_t *status)
{
    const struct own *own = pointer;
    const struct gw_aggregate_stats *stats =
        gw_aggregate_stats(gw_overlay_switch_aggregate(own->sw));
    const struct gw_switch_stats *sw = gw_switch_stats(gw_overlay_switch_core(own->sw));
    struct gw_port_stats queues = gw_overlay_switch_queues(own->sw);
    json_object_set_new(status, "ports", json_integer(gw_overlay_switch_open_ports(own->sw)));
    json_object_set_new(status, "jobs",
                        json_integer(gw_switch_job_count(gw_overlay_switch_core(own->sw))));
    json_object_set_new(
        status, "aggregation",
        json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "aggregators_taken",
                  (int)gw_aggregate_taken(gw_overlay_switch_aggregate(own->sw)), "gradients",
                  (json_int_t)stats->gradients, "held", (json_int_t)stats->held, "completed",
                  (json_int_t)stats->completed, "collisions", (json_int_t)stats->collisions,
                  "yielded", (json_int_t)stats->yielded, "duplicates",
                  (json_int_t)stats->duplicates, "leaked", (json_int_t)stats->leaked, "foreign",
                  (json_int_t)stats->foreign, "copies_saved", (json_int_t)sw->copies_saved));
    json_object_set_new(
        status, "queues",
        json_pack("{s:I, s:I, s:I, s:I, s:o}", "packets", (json_int_t)queues.out_packets, "marks",
                  (json_int_t)queues.marks, "trims", (json_int_t)queues.trims, "drops",
                  (json_int_t)queues.drops, "losses", gw_losses_json(queues.losses)));
    json_object_set_new(status, "pcn",
                        gw_switch_pcn_status(own->sw, own->why_not, gw_loop_now(own->loop)));
    json_object_set_new(status, "dropped",
                        json_pack("{s:I, s:I, s:I, s:I}", "unroutable", (json_int_t)sw->unroutable,
                                  "spoofed", (json_int_t)sw->spoofed, "unlearned",
                                  (json_int_t)sw->unlearned, "malformed",
                                  (json_int_t)sw->malformed));
}

static void use(const void *pointer, uint32_t who, struct gw_tenant_use *use)
{
    const struct own *own = pointer;
    gw_switch_use(gw_overlay_switch_core(own->sw), who, use);
}

int gw_cmd_switch(int argc, char **argv)
{
    static const struct gw_daemon_kind kind = {
        .name = "switch",
        .doc = "Runs a switch that adds up the gradients of many jobs on their way."
               "\vExample:\n"
               "  gradwire switch --config examples/switch.yaml\n"
               "\ndocs/deploy.md describes the keys of the file.",
        .table = &table,
        .sections = sections,
        .cfg_size = sizeof(struct switch_cfg),
        .role = GW_ATTACH_SWITCH,
        .read = read_sections,
        .check = check,
        .open = open_switch,
        .close = close_switch,
        .neighbour = neighbour,
        .look = look,
        .places = places,
        .rate_bps = rate_of,
        .status = status,
        .use = use,
    };
    return gw_daemon_main(&kind, argc, argv);
}
