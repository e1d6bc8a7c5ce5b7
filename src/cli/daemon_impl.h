/* The inside of a daemon, shared by daemon.c and daemon_*.c, and by nobody else. */
#ifndef GW_CLI_DAEMON_IMPL_H
#define GW_CLI_DAEMON_IMPL_H

#include "cli/daemon.h"
#include "cli/metrics.h"
#include "cli/status_socket.h"

enum {
    GW_DAEMON_KEYS_MAX = 16, /* of one list */
    GW_DAEMON_TOKEN_MAX = 1024,
    GW_DAEMON_ROW_MAX = 16,                  /* as many servers as a job may have */
    GW_DAEMON_CFG_MAX = 2 * GW_ALGO_CFG_MAX, /* a table and a section */
};

/* To who asks for the status. */
struct gw_daemon_answer {
    char *text; /* NULL: nobody does */
    size_t sent;
    int fd;
    gw_time until; /* then it is given up, if nothing more has been read */
};

struct gw_daemon {
    const struct gw_daemon_kind *kind;
    _Alignas(8) unsigned char cfg[GW_DAEMON_CFG_MAX]; /* as kind->table and the sections say */
    struct gw_key keys[GW_NEIGHBOURS_KEYS_MAX];       /* those of switches first */
    uint32_t key_count, switch_key_count;
    char row[GW_PARAM_TEXT_MAX]; /* the ports that are listened at; `listen` is one of them */
    uint32_t row_count;
    bool is_open; /* anybody may attach */
    struct gw_station *station;
    void *own;
    struct gw_metrics *metrics;              /* or NULL */
    char metrics_token[GW_DAEMON_TOKEN_MAX]; /* empty: anybody may ask */
    int signals, status;                     /* fds */
    char status_path[GW_STATUS_PATH_MAX];    /* of an open `status` */
    struct gw_daemon_answer answer;          /* that is under way */
    bool is_draining;
    enum gw_attach_reason refusal; /* of ours, as it was logged last */
    gw_time drain_until;
    gw_time look_at; /* at signals and whoever asks for the status, */
    gw_time tend_at; /* and at what is the kind's own */
};

static inline const struct gw_daemon_common *gw_daemon_common(const struct gw_daemon *daemon)
{
    return (const struct gw_daemon_common *)(const void *)daemon->cfg;
}

/* daemon_config.c: reads and checks the config, and the secrets that it names, unless the daemon
 * is only asked for. Complains itself; returns an exit status. */
int gw_daemon_load(struct gw_daemon *daemon, const char *file, bool asks);

/* Turns the config into that of one daemon of the row: where it listens; and what it has that
 * others of the row have not. */
void gw_daemon_listen_at(struct gw_daemon *daemon, uint32_t number);
void gw_daemon_settle(struct gw_daemon *daemon, uint32_t number);

/* daemon_row.c: starts a process for each port of the row, which settles and serves, and ends with
 * the last of them. Returns an exit status, in each of these processes too. */
int gw_daemon_run_row(struct gw_daemon *daemon, int (*serve)(struct gw_daemon *daemon));

/* daemon_status.c: opens the socket of those who ask; 0, or an error with `error` filled. */
int gw_daemon_status_open(struct gw_daemon *daemon, char *error);
/* Closes it, if it is open, and removes its path. */
void gw_daemon_status_close(struct gw_daemon *daemon);
/* Answers all who ask. */
void gw_daemon_status_answer(struct gw_daemon *daemon);
/* Shows the status to those who read the metrics, if there are any. */
void gw_daemon_status_show(struct gw_daemon *daemon);
/* `gradwire ... --status`: prints what the running daemon says. Returns an exit status. */
int gw_daemon_status_ask(const struct gw_daemon *daemon, bool json);

/* Those who have dialled us. */
uint32_t gw_daemon_neighbour_count(const struct gw_daemon *daemon);

#endif
