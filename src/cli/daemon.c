/* What the daemons share; see daemon.h. */
#define _GNU_SOURCE
#include "cli/daemon.h"

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/metrics.h"
#include "config/schema.h"
#include "net/roles/overlay_server.h"

enum {
    PEERS_MAX = 2048,
    PACKETS = 65536,
    MTU_MIN = 256,
    STATUS_MAX = 1 << 20,
    LOG_MAX = 512, /* bytes of a line of the log */
    CFG_MAX = 2048,
    STATUS_WAIT_S = 5,
    KEY_CONFIG = 256,
    KEY_STATUS,
    KEY_JSON,
};

#define LOOK_EVERY (500 * GW_MS)

struct daemon_args {
    const char *config;
    bool status, json;
};

struct gw_daemon {
    const struct gw_daemon_kind *kind;
    _Alignas(8) unsigned char cfg[CFG_MAX]; /* as kind->table describes it */
    struct gw_key keys[GW_NEIGHBOURS_KEYS_MAX];
    uint32_t key_count;
    bool is_open; /* anybody may attach */
    struct gw_station *station;
    void *own;
    struct gw_metrics *metrics; /* or NULL */
    int signals, status;        /* fds */
    bool is_draining;
    gw_time drain_until, look_at;
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

static const struct gw_daemon_common *common_of(const struct gw_daemon *daemon)
{
    return (const struct gw_daemon_common *)(const void *)daemon->cfg;
}

/* Many machines have daemons of the same config: their names tell them apart. */
uint32_t gw_daemon_address(const struct gw_daemon *daemon)
{
    char text[2 * GW_PARAM_TEXT_MAX], host[HOST_NAME_MAX + 1] = "";
    gethostname(host, sizeof(host) - 1);
    snprintf(text, sizeof(text), "%s %.*s of %s", daemon->kind->name, GW_PARAM_TEXT_MAX,
             common_of(daemon)->listen, host);
    return gw_key_address(text);
}

int gw_daemon_check_range(const char *key, uint64_t value, uint64_t low, uint64_t high, char *error)
{
    if (value >= low && value <= high)
        return GW_OK;
    return gw_net_fail(error, GW_ERR_RANGE, "%s: expected %llu to %llu", key,
                       (unsigned long long)low, (unsigned long long)high);
}

int gw_daemon_check_address(const char *key, const char *text, char *error)
{
    struct gw_sock_addr addr;
    char why[GW_NET_ERROR_MAX];
    if (!*text || gw_sock_addr_resolve(text, &addr, why) == GW_OK)
        return GW_OK;
    return gw_net_fail(error, GW_ERR_INVALID, "%s: %.128s", key, why);
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
    fprintf(stderr, "%s.%03ldZ %s: %s\n", when, now.tv_nsec / 1000000, daemon->kind->name, line);
}

static const struct argp_option options[] = {
    {"config", KEY_CONFIG, "FILE", 0, "read this YAML file", 0},
    {"status", KEY_STATUS, 0, 0, "ask the running daemon of this config what it does", 0},
    {"json", KEY_JSON, 0, 0, "with --status: print one JSON value", 0},
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

/* Reads `keys:`, a list of files; without it anybody may attach. */
static int read_keys(struct gw_daemon *daemon, const struct gw_document *document)
{
    const struct gw_doc_value *list = gw_doc_value_get(document->root, "keys");
    char error[GW_NET_ERROR_MAX];
    daemon->is_open = !list;
    if (!list) {
        gw_key_from_text("", 0, &daemon->keys[daemon->key_count++]);
        return GW_OK;
    }
    if (list->kind != GW_DOC_VALUE_LIST || list->count == 0 || list->count > GW_NEIGHBOURS_KEYS_MAX)
        return gw_document_error(document, list, GW_ERR_INVALID,
                                 "expected a list of 1 to %d key files", GW_NEIGHBOURS_KEYS_MAX);
    for (uint32_t i = 0; i < list->count; i++) {
        const char *path = gw_schema_text(document, list->items[i]);
        if (!path)
            return GW_ERR_INVALID;
        if (gw_key_from_file(path, &daemon->keys[daemon->key_count++], error) != 0)
            return gw_document_error(document, list->items[i], GW_ERR_INVALID, "%s", error);
    }
    return GW_OK;
}

/* Groups, one for each job, of the family that we listen by. */
static int check_multicast(const struct gw_daemon_common *common, char *error)
{
    struct gw_sock_addr group, listen, last;
    if (!*common->multicast)
        return GW_OK;
    int code = gw_sock_addr_resolve(common->multicast, &group, error);
    if (!code)
        code = gw_sock_addr_resolve(common->listen, &listen, error);
    if (code)
        return code;
    last = group;
    gw_sock_addr_advance(&last, common->jobs - 1);
    if (!gw_sock_addr_is_multicast(&group) || group.storage.ss_family != listen.storage.ss_family)
        return gw_net_fail(error, GW_ERR_INVALID,
                           "multicast: %s is no multicast address of the family of `listen`",
                           common->multicast);
    if (!gw_sock_addr_is_multicast(&last))
        return gw_net_fail(error, GW_ERR_INVALID,
                           "multicast: behind %s there are no groups for %u jobs",
                           common->multicast, common->jobs);
    if (gw_sock_addr_port(&group) == gw_sock_addr_port(&listen))
        return gw_net_fail(error, GW_ERR_INVALID,
                           "multicast: its port must not be that of `listen`");
    return common->authenticate ? gw_net_fail(error, GW_ERR_INVALID,
                                              "multicast: authentication is between two; with "
                                              "`authenticate` nothing can be multicast")
                                : GW_OK;
}

static int check_common(const struct gw_daemon_common *common, char *error)
{
    int code = gw_daemon_check_range("values", common->values, 16, 16000, error);
    if (!code)
        code = gw_daemon_check_range("aggregators", common->aggregators, 1, 65536, error);
    if (!code)
        code = gw_daemon_check_range("jobs", common->jobs, 1, GW_OVERLAY_JOBS_MAX, error);
    if (!code)
        code = gw_daemon_check_address("listen", common->listen, error);
    if (!code)
        code = gw_daemon_check_address("metrics", common->metrics, error);
    if (!code)
        code = gw_daemon_check_address("multicast", common->multicast, error);
    return code ? code : check_multicast(common, error);
}

static int check(const struct gw_daemon *daemon, const struct gw_document *document)
{
    char error[GW_NET_ERROR_MAX];
    int code = check_common(common_of(daemon), error);
    if (!code)
        code = daemon->kind->check(daemon->cfg, error);
    return code ? gw_schema_blame(document, document->root, code, error) : GW_OK;
}

/* Reads the config. Complains itself; returns an exit status. */
static int load(struct gw_daemon *daemon, const char *file)
{
    static const char *const others[] = {"keys", NULL};
    const struct gw_schema schema = {
        .parts = {{daemon->kind->table, daemon->cfg}}, .part_count = 1, .others = others};
    struct gw_document document;
    char why[GW_WHY_MAX];
    if (gw_key_setup() != 0) {
        gw_complain("the system gives no random numbers");
        return GW_EXIT_FAILURE;
    }
    int code = gw_document_load(&document, file, NULL, 0, why);
    if (!code)
        code = gw_schema_read(&document, document.root, &schema);
    if (!code)
        code = check(daemon, &document);
    if (!code)
        code = read_keys(daemon, &document);
    gw_document_free(&document);
    if (code)
        gw_complain("%s", why);
    return code ? GW_EXIT_USAGE : GW_EXIT_OK;
}

/* The name of the daemon's status socket: no file, so nothing stays behind. */
static socklen_t status_name(const struct gw_daemon *daemon, struct sockaddr_un *name)
{
    memset(name, 0, sizeof(*name));
    name->sun_family = AF_UNIX;
    int size = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "gradwire/%s/%s",
                        daemon->kind->name, common_of(daemon)->listen);
    size_t used =
        (size_t)size < sizeof(name->sun_path) - 2 ? (size_t)size : sizeof(name->sun_path) - 2;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + used);
}

static int open_status(struct gw_daemon *daemon, char *error)
{
    struct sockaddr_un name;
    socklen_t size = status_name(daemon, &name);
    daemon->status = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (daemon->status < 0 || bind(daemon->status, (struct sockaddr *)&name, size) != 0 ||
        listen(daemon->status, 16) != 0)
        return gw_net_fail(error, GW_ERR_SYSTEM, "cannot open the status socket of %s: %s",
                           common_of(daemon)->listen,
                           errno == EADDRINUSE ? "another one is running" : strerror(errno));
    return GW_OK;
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
    const struct gw_daemon_common *common = common_of(daemon);
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
        .peers_max = PEERS_MAX,
        .accepts = true,
        .serves_many = true,
        .authenticates = common->authenticate,
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

/* Those who have dialled us. */
static uint32_t neighbour_count(const struct gw_daemon *daemon)
{
    struct gw_neighbour_event view;
    uint32_t count = 0;
    for (uint16_t peer = 0; peer < PEERS_MAX; peer++)
        count += gw_neighbours_view(gw_station_neighbours(daemon->station), peer, &view) &&
                 view.dial < 0;
    return count;
}

/* Everybody who has a session with us. */
static json_t *sessions_of(const struct gw_daemon *daemon)
{
    struct gw_neighbour_event view;
    char name[GW_SOCK_ADDR_NAME_MAX], address[16], job[16];
    json_t *sessions = json_array();
    for (uint16_t peer = 0; peer < PEERS_MAX; peer++) {
        if (!gw_neighbours_view(gw_station_neighbours(daemon->station), peer, &view))
            continue;
        gw_sock_addr_format(&view.addr, name, sizeof(name));
        snprintf(address, sizeof(address), "%08x", view.said.address);
        json_t *session = json_pack("{s:s, s:s, s:s, s:b}", "at", name, "address", address, "role",
                                    view.said.role == GW_ATTACH_HOST ? "host" : "switch", "dialled",
                                    view.dial >= 0);
        if (view.dial < 0 && view.said.job) {
            snprintf(job, sizeof(job), "%08x", view.said.job);
            json_object_set_new(session, "job", json_string(job));
            json_object_set_new(session, "rank", json_integer(view.said.rank));
        }
        json_array_append_new(sessions, session);
    }
    return sessions;
}

static json_t *status_of(struct gw_daemon *daemon)
{
    const struct gw_datapath_stats *udp = gw_datapath_stats(gw_station_datapath(daemon->station));
    const struct gw_neighbours_stats *attach =
        gw_neighbours_stats(gw_station_neighbours(daemon->station));
    json_t *status = json_pack(
        "{s:s, s:s, s:b, s:i, s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}, s:{s:I, s:I, s:I, s:I}}",
        "daemon", daemon->kind->name, "listen", common_of(daemon)->listen, "draining",
        daemon->is_draining, "neighbours", (int)neighbour_count(daemon), "datagrams", "sent",
        (json_int_t)udp->sent, "not_sent", (json_int_t)udp->send_errors, "received",
        (json_int_t)udp->received, "kernel_drops", (json_int_t)udp->kernel_drops, "wrong_cookie",
        (json_int_t)udp->wrong_cookie, "malformed", (json_int_t)(udp->malformed + udp->runts),
        "wrong_version", (json_int_t)udp->wrong_version, "no_room", (json_int_t)udp->no_room,
        "attach", "forged", (json_int_t)attach->forged, "stale", (json_int_t)attach->stale,
        "malformed", (json_int_t)attach->malformed, "refused", (json_int_t)attach->refused);
    daemon->kind->status(daemon->own, status);
    return status;
}

static void show_metrics(struct gw_daemon *daemon)
{
    char prefix[32];
    if (!daemon->metrics)
        return;
    json_t *status = status_of(daemon);
    snprintf(prefix, sizeof(prefix), "gradwire_%s", daemon->kind->name);
    gw_metrics_set(daemon->metrics, prefix, status);
    json_decref(status);
}

/* Answers whoever asks for the status. */
static void answer_status(struct gw_daemon *daemon)
{
    int fd;
    while ((fd = accept4(daemon->status, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        json_t *status = status_of(daemon);
        json_object_set_new(status, "sessions", sessions_of(daemon));
        char *text = json_dumps(status, JSON_COMPACT);
        /* It fits the socket's buffer, or the asker gets a part: a daemon waits for nobody. */
        if (text && send(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            gw_daemon_log(daemon, "cannot answer --status: %s", strerror(errno));
        free(text);
        json_decref(status);
        close(fd);
    }
}

/* `gradwire ... --status`: prints what the daemon says. Returns an exit status. */
static int ask_status(const struct gw_daemon *daemon, bool json)
{
    struct sockaddr_un name;
    socklen_t size = status_name(daemon, &name);
    struct timeval wait = {.tv_sec = STATUS_WAIT_S};
    char *text = calloc(1, STATUS_MAX);
    size_t used = 0;
    ssize_t got = -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (text && fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
        if (connect(fd, (struct sockaddr *)&name, size) == 0)
            while ((got = read(fd, text + used, STATUS_MAX - 1 - used)) > 0)
                used += (size_t)got;
    }
    json_t *status = used ? json_loads(text, 0, NULL) : NULL;
    if (status)
        json_dumpf(status, stdout, json ? JSON_COMPACT : JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    if (status)
        putchar('\n');
    else
        gw_complain("no %s answers at %s", daemon->kind->name, common_of(daemon)->listen);
    json_decref(status);
    if (fd >= 0)
        close(fd);
    free(text);
    return status ? GW_EXIT_OK : GW_EXIT_FAILURE;
}

static void take_neighbours(struct gw_daemon *daemon)
{
    struct gw_neighbour_event event;
    bool is_any = false;
    while (gw_station_poll(daemon->station, &event)) {
        if (daemon->is_draining && event.dial < 0 && event.kind == GW_NEIGHBOUR_UP)
            gw_station_refuse(daemon->station, event.peer, GW_ATTACH_CLOSING);
        else
            daemon->kind->neighbour(daemon, daemon->own, &event);
        is_any = true;
    }
    if (is_any)
        daemon->kind->look(daemon, daemon->own);
}

static void take_signals(struct gw_daemon *daemon)
{
    struct signalfd_siginfo info;
    gw_time now = gw_loop_now(gw_station_loop(daemon->station));
    while (read(daemon->signals, &info, sizeof(info)) == sizeof(info)) {
        gw_time wait = daemon->is_draining ? 0 : common_of(daemon)->drain;
        gw_daemon_log(daemon, "%s: %u neighbours, ending within %llu ms",
                      info.ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT", neighbour_count(daemon),
                      (unsigned long long)(wait / GW_MS));
        daemon->is_draining = true;
        daemon->drain_until = gw_time_add(now, wait);
    }
}

/* Returns an exit status. */
static int run(struct gw_daemon *daemon, char *error)
{
    struct gw_loop *loop = gw_station_loop(daemon->station);
    for (;;) {
        gw_time now = gw_loop_now(loop);
        if (daemon->is_draining &&
            (neighbour_count(daemon) == 0 || !gw_time_before(now, daemon->drain_until)))
            return GW_EXIT_OK;
        if (!gw_time_before(now, daemon->look_at)) {
            daemon->kind->look(daemon, daemon->own);
            take_signals(daemon);
            answer_status(daemon);
            show_metrics(daemon);
            daemon->look_at = gw_time_add(now, LOOK_EVERY);
        }
        int code = gw_station_turn(daemon->station, daemon->look_at, error);
        if (code)
            return GW_EXIT_FAILURE;
        take_neighbours(daemon);
        if (gw_loop_has_input(loop)) {
            take_signals(daemon);
            answer_status(daemon);
        }
    }
}

static int open_all(struct gw_daemon *daemon, char *error)
{
    int code = open_signals(daemon, error);
    if (!code)
        code = open_status(daemon, error);
    if (!code)
        code = open_station(daemon, error);
    if (!code && *common_of(daemon)->metrics)
        code = gw_metrics_open(common_of(daemon)->metrics, &daemon->metrics, error);
    return code ? code : daemon->kind->open(daemon, &daemon->own, error);
}

/* Runs the daemon until it has drained. Returns an exit status. */
static int serve(struct gw_daemon *daemon)
{
    char error[GW_NET_ERROR_MAX] = "";
    int status = open_all(daemon, error) ? GW_EXIT_FAILURE : GW_EXIT_OK;
    if (status == GW_EXIT_OK) {
        gw_daemon_log(daemon, "listening at %s, address %08x", common_of(daemon)->listen,
                      gw_daemon_address(daemon));
        if (daemon->metrics)
            gw_daemon_log(daemon, "metrics are at http://%s/metrics", common_of(daemon)->metrics);
        if (daemon->is_open)
            gw_daemon_log(daemon, "no keys are given: anybody may attach");
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
    if (daemon->status >= 0)
        close(daemon->status);
    if (daemon->signals >= 0)
        close(daemon->signals);
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
    GW_ASSERT(kind->table->cfg_size <= CFG_MAX);
    daemon->kind = kind;
    daemon->signals = daemon->status = -1;
    int status = load(daemon, args.config);
    if (status == GW_EXIT_OK)
        status = args.status ? ask_status(daemon, args.json) : serve(daemon);
    free(daemon);
    return status;
}
