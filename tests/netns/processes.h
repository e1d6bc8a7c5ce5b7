/*
 * Daemons and workers as real processes, for tests: `gradwire switch` and `gradwire server` as they
 * are shipped, and workers that sum tensors over them with the library.
 *
 * All are children of the test and die with it. Nothing here waits for ever: what does not happen
 * within GW_GUARD_MS fails the test, with the logs of the daemons.
 */
#ifndef GW_TESTS_PROCESSES_H
#define GW_TESTS_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "sim_support.h"

enum {
    GW_GUARD_MS = 60000, /* a machine that is busy with other things takes its time */
    GW_DAEMON_LOG_MAX = 1 << 16,
    GW_DAEMON_CONFIG_MAX = 1024,
};

/* A daemon, running or not. */
struct gw_test_daemon {
    const char *kind;                  /* "switch" or "server" */
    char config[GW_TEST_PATH_MAX + 8]; /* room for the name of its socket */
    uint16_t port;                     /* that it listens at */
    pid_t pid;                         /* 0: it does not run */
    int log_fd;
    char log[GW_DAEMON_LOG_MAX]; /* what it has said in this life */
    uint32_t log_size, log_seen; /* up to where it was awaited */
};

/* How a command ended, and what it said. */
struct gw_test_run {
    int status;
    char out[GW_DAEMON_LOG_MAX];
    char err[GW_DAEMON_LOG_MAX];
};

/* A worker of a job. */
struct gw_test_worker_cfg {
    const char *job;
    int rank, world;
    uint16_t server, switch_; /* ports; switch_ 0: none */
    uint16_t more_server;     /* port of a second one; 0: none */
    uint16_t join;            /* port of rank 0, for a job without a server; 0: there is one */
    bool sums_in_switches;    /* then; else by ring */
    const char *key_file;     /* or NULL */
    uint32_t count;           /* elements of its tensors */
    bool overflows;           /* most sums take the way of those that are too large */
    const char *announce;     /* as struct gradwire_options has them; NULL: the default */
    const char *signals;
    const char *multicast;
    uint32_t deadline_ms;
    uint32_t threads; /* 0: the default */
};

struct gw_test_worker {
    pid_t pid; /* 0: it does not run */
    int control;
    uint32_t rounds; /* all-reduces that it has finished */
    bool is_over;
    int error; /* enum gradwire_error; of what ended it */
    char text[256];
};

/* Fills `ports` with UDP ports of 127.0.0.1 that nobody uses, nor another test as long as this. */
void gw_test_free_ports(uint16_t *ports, uint32_t count);

/* Starts `gradwire KIND` at 127.0.0.1:port; `more` are further lines of its config. */
void gw_test_daemon_start(struct gw_test_daemon *daemon, const char *kind, uint16_t port,
                          const char *more);

/* Waits until it says `text`, after what was awaited before. */
void gw_test_daemon_await(struct gw_test_daemon *daemon, const char *text);

/* kill -9, and the same again from the same config. */
void gw_test_daemon_crash(struct gw_test_daemon *daemon);
void gw_test_daemon_restart(struct gw_test_daemon *daemon);

/* SIGTERM; returns its exit status. */
int gw_test_daemon_stop(struct gw_test_daemon *daemon);

/* Its --status; the caller's. */
json_t *gw_test_daemon_status(const struct gw_test_daemon *daemon);

/* Runs `gradwire` with these arguments, ended by NULL. */
void gw_test_run(struct gw_test_run *run, const char *const *arguments);

/*
 * Starts a worker. It sums round after round and checks every element, until rank 0 is told to stop
 * or something fails. A wrong sum ends it with GW_TEST_WRONG_SUM.
 */
enum {
    GW_TEST_WRONG_SUM = -1000,
};
void gw_test_worker_start(struct gw_test_worker *worker, const struct gw_test_worker_cfg *cfg);

/* Waits until all of them have finished so many more rounds; none may end before. */
void gw_test_workers_await(struct gw_test_worker *workers, uint32_t count, uint32_t rounds);

/* Tells rank 0, the first of them, that the next round is the last; waits until all are over. */
void gw_test_workers_stop(struct gw_test_worker *workers, uint32_t count);

/* Waits until it is over. */
void gw_test_worker_join(struct gw_test_worker *worker);

/* kill -9. */
void gw_test_worker_crash(struct gw_test_worker *worker);

/* Ends everything that a failed test has left running: its tear-down. Returns 0. */
int gw_test_end_all(void **state);

#endif
