/*
 * What a daemon does, as JSON: for whoever asks by `--status`, through a socket (status_socket.h),
 * and for those who read its metrics. A daemon waits for nobody.
 */
#define _GNU_SOURCE
#include "cli/daemon_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/cli.h"

enum {
    STATUS_MAX = 1 << 20,
    STATUS_WAIT_S = 5,
};

#define PATIENCE (2 * GW_S) /* with who asks and does not read */

static struct gw_status_socket socket_of(const struct gw_daemon *daemon)
{
    const struct gw_daemon_common *common = gw_daemon_common(daemon);
    return (struct gw_status_socket){
        .path = common->status, .kind = daemon->kind->name, .listen = common->listen};
}

int gw_daemon_status_open(struct gw_daemon *daemon, char *error)
{
    const struct gw_status_socket cfg = socket_of(daemon);
    int fd = gw_status_socket_open(&cfg, daemon->status_path, error);
    daemon->status = fd < 0 ? -1 : fd;
    return fd < 0 ? fd : GW_OK;
}

static void end_answer(struct gw_daemon *daemon)
{
    if (!daemon->answer.text)
        return;
    close(daemon->answer.fd);
    free(daemon->answer.text);
    daemon->answer.text = NULL;
}

void gw_daemon_status_close(struct gw_daemon *daemon)
{
    end_answer(daemon);
    if (daemon->status < 0)
        return;
    close(daemon->status);
    unlink(daemon->status_path);
}

uint32_t gw_daemon_neighbour_count(const struct gw_daemon *daemon)
{
    struct gw_neighbour_event view;
    uint32_t count = 0;
    for (uint16_t peer = 0; peer < GW_DAEMON_PEERS_MAX; peer++)
        count += gw_neighbours_view(gw_station_neighbours(daemon->station), peer, &view) &&
                 view.dial < 0;
    return count;
}

/* The public name of a key. */
static json_t *key_name(const struct gw_key *key)
{
    char name[20];
    snprintf(name, sizeof(name), "%016llx", (unsigned long long)key->id);
    return json_string(name);
}

/* What each tenant has and was refused, and those of no listed key; *sum is that of all. */
static json_t *tenants_of(const struct gw_daemon *daemon, struct gw_tenant_use *sum)
{
    const uint32_t count = gw_station_tenants(daemon->station)->count;
    json_t *tenants = json_array();
    for (uint32_t who = 0; who <= count; who++) {
        struct gw_tenant_use use = {.jobs = 0};
        gw_station_use(daemon->station, who, &use);
        daemon->kind->use(daemon->own, who, &use);
        json_array_append_new(
            tenants,
            json_pack("{s:o, s:i, s:I, s:i, s:I, s:i, s:I, s:I}", "key",
                      who < count ? key_name(&daemon->keys[who]) : json_string("none of these"),
                      "sessions", (int)use.sessions, "sessions_refused",
                      (json_int_t)use.sessions_refused, "jobs", (int)use.jobs, "jobs_refused",
                      (json_int_t)use.jobs_refused, "aggregators", (int)use.aggregators, "yielded",
                      (json_int_t)use.yielded, "forbidden", (json_int_t)use.forbidden));
        sum->sessions_refused += use.sessions_refused;
        sum->jobs_refused += use.jobs_refused;
        sum->forbidden += use.forbidden;
    }
    return tenants;
}

/* Everybody who has a session with us. */
static json_t *sessions_of(const struct gw_daemon *daemon)
{
    struct gw_neighbour_event view;
    char name[GW_SOCK_ADDR_NAME_MAX], address[16], job[16];
    json_t *sessions = json_array();
    for (uint16_t peer = 0; peer < GW_DAEMON_PEERS_MAX; peer++) {
        if (!gw_neighbours_view(gw_station_neighbours(daemon->station), peer, &view))
            continue;
        gw_sock_addr_format(&view.addr, name, sizeof(name));
        snprintf(address, sizeof(address), "%08x", view.said.address);
        const struct gw_key *key = gw_neighbours_key(gw_station_neighbours(daemon->station), peer);
        json_t *session =
            json_pack("{s:s, s:s, s:o, s:s, s:b}", "at", name, "address", address, "key",
                      key_name(key), "role", view.said.role == GW_ATTACH_HOST ? "host" : "switch",
                      "dialled", view.dial >= 0);
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
    struct gw_tenant_use sum = {.jobs = 0};
    json_t *tenants = tenants_of(daemon, &sum);
    json_t *status = json_pack(
        "{s:s, s:s, s:b, s:i, s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}, s:{s:I, s:I, "
        "s:I, s:I}, s:I, s:I, s:o}",
        "daemon", daemon->kind->name, "listen", gw_daemon_common(daemon)->listen, "draining",
        daemon->is_draining, "neighbours", (int)gw_daemon_neighbour_count(daemon), "datagrams",
        "sent", (json_int_t)udp->sent, "not_sent", (json_int_t)udp->send_errors, "too_long",
        (json_int_t)udp->too_long, "received", (json_int_t)udp->received, "kernel_drops",
        (json_int_t)udp->kernel_drops, "wrong_cookie", (json_int_t)udp->wrong_cookie, "malformed",
        (json_int_t)(udp->malformed + udp->runts), "wrong_version", (json_int_t)udp->wrong_version,
        "no_room", (json_int_t)udp->no_room, "forbidden", (json_int_t)sum.forbidden, "attach",
        "forged", (json_int_t)attach->forged, "stale", (json_int_t)attach->stale, "malformed",
        (json_int_t)attach->malformed, "refused", (json_int_t)attach->refused, "sessions_refused",
        (json_int_t)sum.sessions_refused, "jobs_refused", (json_int_t)sum.jobs_refused, "tenants",
        tenants);
    daemon->kind->status(daemon->own, status);
    return status;
}

void gw_daemon_status_show(struct gw_daemon *daemon)
{
    char prefix[32];
    if (!daemon->metrics)
        return;
    json_t *status = status_of(daemon);
    snprintf(prefix, sizeof(prefix), "gradwire_%s", daemon->kind->name);
    gw_metrics_set(daemon->metrics, prefix, status);
    json_decref(status);
}

static gw_time now_of(struct gw_daemon *daemon)
{
    return gw_loop_now(gw_station_loop(daemon->station));
}

/* Takes the next who asks; false: nobody does. */
static bool begin_answer(struct gw_daemon *daemon)
{
    struct gw_daemon_answer *answer = &daemon->answer;
    int fd = accept4(daemon->status, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return false;
    json_t *status = status_of(daemon);
    json_object_set_new(status, "sessions", sessions_of(daemon));
    *answer = (struct gw_daemon_answer){
        .fd = fd,
        .text = json_dumps(status, JSON_COMPACT),
        .until = gw_time_add(now_of(daemon), PATIENCE),
    };
    json_decref(status);
    if (!answer->text)
        close(fd);
    return answer->text;
}

/* Sends what the socket takes; a daemon waits for nobody. Returns whether the answer is over. */
static bool send_answer(struct gw_daemon *daemon)
{
    struct gw_daemon_answer *answer = &daemon->answer;
    const char *rest = answer->text + answer->sent;
    ssize_t sent = send(answer->fd, rest, strlen(rest), MSG_DONTWAIT | MSG_NOSIGNAL);
    bool is_full = sent < 0 && errno == EAGAIN;
    if (sent < 0 && !is_full)
        gw_daemon_log(daemon, "cannot answer --status: %s", strerror(errno));
    if (sent > 0) {
        answer->sent += (size_t)sent;
        answer->until = gw_time_add(now_of(daemon), PATIENCE);
    }
    bool may_go_on = sent > 0 || (is_full && gw_time_before(now_of(daemon), answer->until));
    if (may_go_on && answer->text[answer->sent])
        return false;
    end_answer(daemon);
    return true;
}

void gw_daemon_status_answer(struct gw_daemon *daemon)
{
    while ((daemon->answer.text || begin_answer(daemon)) && send_answer(daemon))
        continue;
}

int gw_daemon_status_ask(const struct gw_daemon *daemon, bool json)
{
    const struct gw_status_socket cfg = socket_of(daemon);
    struct timeval wait = {.tv_sec = STATUS_WAIT_S};
    char *text = calloc(1, STATUS_MAX);
    size_t used = 0;
    ssize_t got = -1;
    int fd = gw_status_socket_connect(&cfg);
    if (text && fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
        while ((got = read(fd, text + used, STATUS_MAX - 1 - used)) > 0)
            used += (size_t)got;
    }
    json_t *status = used ? json_loads(text, 0, NULL) : NULL;
    if (status)
        json_dumpf(status, stdout, json ? JSON_COMPACT : JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    if (status)
        putchar('\n');
    else
        gw_complain("no %s answers at %s", daemon->kind->name, gw_daemon_common(daemon)->listen);
    json_decref(status);
    if (fd >= 0)
        close(fd);
    free(text);
    return status ? GW_EXIT_OK : GW_EXIT_FAILURE;
}
