/*
 * The life of a daemon: arguments, the log, what it opens, and the loop until it has drained; see
 * daemon.h.
 */
#include "cli/daemon_impl.h"

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/cli.h"

enum {
    PACKETS = 65536,
    MTU_MIN = 256,
    LOG_MAX = 512, /* bytes of a line of the log */
    KEY_CONFIG = 256,
    KEY_STATUS,
    KEY_JSON,
};

#define LOOK_EVERY (200 * GW_MS)
#define LOOK_SOON  (20 * GW_MS) /* after a neighbour came or went: not for each of many */

struct daemon_args {
    const char *config;
    bool status, json;
};

void gw_daemon_log_hearing(const struct gw_daemon *daemon, const struct gw_neighbour_event *event,
                           uint16_t group)
{
    char name[GW_SOCK_ADDR_NAME_MAX];
    gw_sock_addr_format(&event->addr, name, sizeof(name));
    gw_daemon_log(daemon, "%s, job %08x rank %u: results come by %s", name, event->said.job,
                  event->said.rank, group == GW_GROUP_NONE ? "unicast again" : "multicast");
}

struct gw_station *gw_daemon_station(struct gw_daemon *daemon)
{
    return daemon->station;
}

const void *gw_daemon_cfg(const struct gw_daemon *daemon)
{
    return daemon->cfg;
}

/* Many machines have daemons of the same config: their names tell them apart. A daemon without a
 * key of switches could not attach with an address of the fabric. */
uint32_t gw_daemon_address(const struct gw_daemon *daemon)
{
    char text[2 * GW_PARAM_TEXT_MAX], host[HOST_NAME_MAX + 1] = "";
    gethostname(host, sizeof(host) - 1);
    snprintf(text, sizeof(text), "%s %.*s of %s", daemon->kind->name, GW_PARAM_TEXT_MAX,
             gw_daemon_common(daemon)->listen, host);
    return gw_key_address(text, daemon->switch_key_count > 0);
}

void gw_daemon_log(const struct gw_daemon *daemon, const char *format, ...)
{
    char when[32], line[LOG_MAX];
    struct timespec now;
    struct tm utc;
    va_list args;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &utc);
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    const char *port = daemon->row_count > 1 ? strrchr(gw_daemon_common(daemon)->listen, ':') : "";
    fprintf(stderr, "%s.%03ldZ %s%s: %s\n", when, now.tv_nsec / 1000000, daemon->kind->name, port,
            line);
}

static const struct argp_option options[] = {
    {"config", KEY_CONFIG, "FILE", 0, "read this YAML file", 0},
    {"status", KEY_STATUS, 0, 0, "ask the running daemon of this config what it does", 0},
    {"json", KEY_JSON, 0, 0, "with --status: print one JSON value, of each in a row", 0},
    {0},
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct daemon_args *args = state->input;
    switch (key) {
    case KEY_CONFIG:
        args->config = text;
        return 0;
    case KEY_STATUS:
        args->status = true;
        return 0;
    case KEY_JSON:
        args->json = true;
        return 0;
    case ARGP_KEY_INIT:
        gw_no_hints(state);
        return 0;
    case ARGP_KEY_ARG:
        gw_complain("'%s': no argument is expected", text);
        return EINVAL;
    case ARGP_KEY_END:
        if (args->config)
            return 0;
        gw_complain("no --config FILE is given");
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int open_signals(struct gw_daemon *daemon, char *error)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    daemon->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return daemon->signals < 0
               ? gw_net_fail(error, GW_ERR_SYSTEM, "cannot wait for signals: %s", strerror(errno))
               : GW_OK;
}

static int open_station(struct gw_daemon *daemon, char *error)
{
    const struct gw_daemon_common *common = gw_daemon_common(daemon);
    struct gw_sock_addr listen;
    char address[GW_PARAM_TEXT_MAX];
    int code = gw_sock_addr_resolve(common->listen, &listen, error);
    if (code)
        return code;
    gw_sock_addr_format_host(&listen, address, sizeof(address));
    uint32_t mtu = 4 * common->values;
    struct gw_station_cfg cfg = {
        .address = address,
        .port = gw_sock_addr_port(&listen),
        .entropies = 1,
        .packets = PACKETS,
        .mtu = mtu > MTU_MIN ? mtu : MTU_MIN,
        .peers_max = GW_DAEMON_PEERS_MAX,
        .places = daemon->kind->places(daemon->cfg),
        .accepts = true,
        .insists = true,
        .serves_many = true,
        .authenticates = common->authenticate || common->encrypt,
        .encrypts = common->encrypt,
        .signals_by_option = common->signals == GW_DAEMON_SIGNALS_OPTION,
        .rate_bps = daemon->kind->rate_bps ? daemon->kind->rate_bps(daemon->cfg) : 0,
        .node_address = gw_daemon_address(daemon),
        .role = (uint8_t)daemon->kind->role,
        .keys = daemon->keys,
        .key_count = daemon->key_count,
        .fds = {daemon->signals, daemon->status},
        .fd_count = 2,
        .groups = (uint16_t)common->jobs,
    };
    if (*common->multicast && (code = gw_sock_addr_resolve(common->multicast, &cfg.group, error)))
        return code;
    return gw_station_open(&cfg, &daemon->station, error);
}

/* Whether who has dialled us says that it is a switch, or has an address of the fabric, and has no
 * key of switches: all that is said of host ports would not hold for it. */
static bool poses_as_fabric(const struct gw_daemon *daemon, const struct gw_neighbour_event *event)
{
    uint64_t id = gw_neighbours_key(gw_station_neighbours(daemon->station), event->peer)->id;
    for (uint32_t i = 0; i < daemon->switch_key_count; i++)
        if (daemon->keys[i].id == id)
            return false;
    return event->said.role == GW_ATTACH_SWITCH || event->said.address & GW_KEY_FABRIC;
}

/* Turns away who has dialled us and may not be here. */
static bool turns_away(struct gw_daemon *daemon, const struct gw_neighbour_event *event)
{
    char name[GW_SOCK_ADDR_NAME_MAX];
    if (event->dial >= 0 || event->kind != GW_NEIGHBOUR_UP)
        return false;
    bool poses = poses_as_fabric(daemon, event);
    if (!poses && !daemon->is_draining)
        return false;
    gw_station_refuse(daemon->station, event->peer, poses ? GW_ATTACH_ROLE : GW_ATTACH_CLOSING);
    gw_sock_addr_format(&event->addr, name, sizeof(name));
    if (poses)
        gw_daemon_log(daemon, "refused %s: it says that it is %s, without one of switch_keys", name,
                      event->said.role == GW_ATTACH_SWITCH ? "a switch" : "of the fabric");
    return true;
}

static void take_neighbours(struct gw_daemon *daemon)
{
    struct gw_neighbour_event event;
    while (gw_station_poll(daemon->station, &event)) {
        gw_time soon = gw_time_add(gw_loop_now(gw_station_loop(daemon->station)), LOOK_SOON);
        if (!turns_away(daemon, &event))
            daemon->kind->neighbour(daemon, daemon->own, &event);
        if (gw_time_before(soon, daemon->tend_at))
            daemon->tend_at = soon;
    }
}

/* Says why the one that we have dialled does not want us, each reason once. */
static void log_refusal(struct gw_daemon *daemon)
{
    const struct gw_neighbours *neighbours = gw_station_neighbours(daemon->station);
    enum gw_attach_reason refusal = gw_neighbours_dial_refusal(neighbours, 0);
    if (refusal != daemon->refusal && refusal != GW_ATTACH_OK)
        gw_daemon_log(daemon, "the next switch up, %s, refuses us: %s; it is asked again",
                      gw_neighbours_dial_name(neighbours, 0), gw_attach_reason_text(refusal));
    daemon->refusal = refusal;
}

static void take_signals(struct gw_daemon *daemon)
{
    struct signalfd_siginfo info;
    gw_time now = gw_loop_now(gw_station_loop(daemon->station));
    while (read(daemon->signals, &info, sizeof(info)) == sizeof(info)) {
        gw_time wait = daemon->is_draining ? 0 : gw_daemon_common(daemon)->drain;
        gw_daemon_log(daemon, "%s: %u neighbours, ending within %llu ms",
                      info.ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT",
                      gw_daemon_neighbour_count(daemon), (unsigned long long)(wait / GW_MS));
        daemon->is_draining = true;
        daemon->drain_until = gw_time_add(now, wait);
    }
}

/* Returns an exit status. */
static int run(struct gw_daemon *daemon, char *error)
{
    struct gw_loop *loop = gw_station_loop(daemon->station);
    gw_loop_own(loop);
    for (;;) {
        gw_time now = gw_loop_now(loop);
        if (daemon->is_draining &&
            (gw_daemon_neighbour_count(daemon) == 0 || !gw_time_before(now, daemon->drain_until)))
            return GW_EXIT_OK;
        if (!gw_time_before(now, daemon->tend_at)) {
            daemon->kind->look(daemon, daemon->own);
            daemon->tend_at = gw_time_add(now, LOOK_EVERY);
        }
        if (!gw_time_before(now, daemon->look_at)) {
            log_refusal(daemon);
            take_signals(daemon);
            gw_daemon_status_answer(daemon);
            gw_daemon_status_show(daemon);
            daemon->look_at = gw_time_add(now, LOOK_EVERY);
        }
        gw_time until =
            gw_time_before(daemon->tend_at, daemon->look_at) ? daemon->tend_at : daemon->look_at;
        int code = gw_station_turn(daemon->station, until, error);
        if (code)
            return GW_EXIT_FAILURE;
        if (daemon->kind->turn)
            daemon->kind->turn(daemon->own);
        take_neighbours(daemon);
        if (gw_loop_has_input(loop)) {
            take_signals(daemon);
            gw_daemon_status_answer(daemon);
        }
    }
}

static int open_all(struct gw_daemon *daemon, char *error)
{
    int code = open_signals(daemon, error);
    if (!code)
        code = gw_daemon_status_open(daemon, error);
    if (!code)
        code = open_station(daemon, error);
    if (!code && *gw_daemon_common(daemon)->metrics)
        code = gw_metrics_open(gw_daemon_common(daemon)->metrics,
                               *daemon->metrics_token ? daemon->metrics_token : NULL,
                               &daemon->metrics, error);
    return code ? code : daemon->kind->open(daemon, &daemon->own, error);
}

/* Runs the daemon until it has drained. Returns an exit status. */
static int serve(struct gw_daemon *daemon)
{
    char error[GW_NET_ERROR_MAX] = "";
    int status = open_all(daemon, error) ? GW_EXIT_FAILURE : GW_EXIT_OK;
    if (status == GW_EXIT_OK) {
        gw_daemon_log(daemon, "listening at %s, address %08x", gw_daemon_common(daemon)->listen,
                      gw_daemon_address(daemon));
        if (daemon->metrics)
            gw_daemon_log(daemon, "metrics are at http://%s/metrics",
                          gw_daemon_common(daemon)->metrics);
        if (daemon->is_open)
            gw_daemon_log(daemon, "no key_files are given: anybody may attach, %s",
                          daemon->switch_key_count == daemon->key_count ? "also as a switch"
                                                                        : "but not as a switch");
        status = run(daemon, error);
    }
    if (status != GW_EXIT_OK)
        gw_complain("%s: %s", daemon->kind->name, error);
    if (daemon->metrics)
        gw_metrics_close(daemon->metrics);
    if (daemon->station)
        gw_station_close(daemon->station);
    if (daemon->own)
        daemon->kind->close(daemon->own);
    if (daemon->station)
        gw_station_free(daemon->station);
    gw_daemon_status_close(daemon);
    if (daemon->signals >= 0)
        close(daemon->signals);
    return status;
}

/* Asks each of the row. */
static int ask(struct gw_daemon *daemon, bool json)
{
    int status = GW_EXIT_OK;
    for (uint32_t number = 0; number < daemon->row_count; number++) {
        gw_daemon_listen_at(daemon, number);
        int one = gw_daemon_status_ask(daemon, json);
        status = status ? status : one;
    }
    return status;
}

int gw_daemon_main(const struct gw_daemon_kind *kind, int argc, char **argv)
{
    const struct argp argp = {.options = options, .parser = parse_option, .doc = kind->doc};
    struct daemon_args args = {.config = NULL};
    struct gw_daemon *daemon = calloc(1, sizeof(*daemon));
    argp_err_exit_status = GW_EXIT_USAGE;
    if (!daemon || argp_parse(&argp, argc, argv, 0, NULL, &args) != 0) {
        free(daemon);
        return GW_EXIT_USAGE;
    }
    GW_ASSERT(kind->cfg_size <= GW_DAEMON_CFG_MAX);
    daemon->kind = kind;
    daemon->signals = daemon->status = -1;
    int status = gw_daemon_load(daemon, args.config, args.status);
    if (status == GW_EXIT_OK)
        status = args.status ? ask(daemon, args.json) : gw_daemon_run_row(daemon, serve);
    free(daemon);
    return status;
}
