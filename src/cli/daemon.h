/*
 * What `gradwire switch` and `gradwire server` share: arguments, the config file, signals, the log,
 * and the answers to `--status`.
 *
 * A daemon runs one station in one thread; where `listen` is a row of ports there is one of it, a
 * process, for each. SIGTERM and SIGINT drain it: it ends when its last neighbour has gone, or
 * after the config's `drain`. Whoever asks for the status finds it by the config's `status`, or by
 * the address that it listens at: a Unix socket carries one JSON value.
 */
#ifndef GW_CLI_DAEMON_H
#define GW_CLI_DAEMON_H

#include <jansson.h>
#include <stdbool.h>

#include "config/document.h"
#include "core/algo.h"
#include "net/station/station.h"

enum {
    GW_DAEMON_PEERS_MAX = 2048, /* sessions, our own dial among them */
};

/* The words of `signals`, in their order. */
enum gw_daemon_signals {
    GW_DAEMON_SIGNALS_DSCP,
    GW_DAEMON_SIGNALS_OPTION,
};

/* Keys of every daemon's config, besides the lists `switch_keys` and `key_files`. First member of
 * each config. */
struct gw_daemon_common {
    char listen[GW_PARAM_TEXT_MAX];
    char metrics[GW_PARAM_TEXT_MAX];
    char multicast[GW_PARAM_TEXT_MAX]; /* of the first group; empty: there are none */
    char status[GW_PARAM_TEXT_MAX];
    char metrics_token_file[GW_PARAM_TEXT_MAX];
    gw_time drain;
    uint32_t values;
    uint32_t aggregators;
    uint32_t job_share;
    uint32_t jobs;
    uint32_t signals; /* enum gw_daemon_signals */
    bool authenticate;
    bool encrypt; /* and authenticate */
    bool insecure_key_files;
};

#define GW_DAEMON_PARAMS(config, listen_text)                                                      \
    {.name = "listen",                                                                             \
     .type = GW_PARAM_TEXT,                                                                        \
     .offset = offsetof(config, common.listen),                                                    \
     .initial = listen_text,                                                                       \
     .help = "ADDRESS:PORT to listen at; of a server also ADDRESS:FIRST-LAST, up to 16 ports, at " \
             "each of which a process of its own listens"},                                        \
        {.name = "metrics",                                                                        \
         .type = GW_PARAM_TEXT,                                                                    \
         .offset = offsetof(config, common.metrics),                                               \
         .help = "PORT of the loopback, or HOST:PORT, at which Prometheus finds /metrics; none: "  \
                 "nowhere"},                                                                       \
        {.name = "metrics_token_file",                                                             \
         .type = GW_PARAM_TEXT,                                                                    \
         .offset = offsetof(config, common.metrics_token_file),                                    \
         .help = "who asks for /metrics must show what is in this file; none: anybody may ask"},   \
        {.name = "status",                                                                         \
         .type = GW_PARAM_TEXT,                                                                    \
         .offset = offsetof(config, common.status),                                                \
         .help =                                                                                   \
             "path of the socket that --status asks; none: one in a folder of the user's own"},    \
        {.name = "multicast",                                                                      \
         .type = GW_PARAM_TEXT,                                                                    \
         .offset = offsetof(config, common.multicast),                                             \
         .help = "ADDRESS:PORT of a multicast group for results, of as many as `jobs`, in a row; " \
                 "or none"},                                                                       \
        {.name = "drain",                                                                          \
         .type = GW_PARAM_TIME,                                                                    \
         .offset = offsetof(config, common.drain),                                                 \
         .initial = "5s",                                                                          \
         .help = "after SIGTERM neighbours have so long to leave"},                                \
        {.name = "values",                                                                         \
         .type = GW_PARAM_COUNT,                                                                   \
         .offset = offsetof(config, common.values),                                                \
         .initial = "352",                                                                         \
         .help = "elements per fragment, at most"},                                                \
        {.name = "aggregators",                                                                    \
         .type = GW_PARAM_COUNT,                                                                   \
         .offset = offsetof(config, common.aggregators),                                           \
         .initial = "4096",                                                                        \
         .help = "fragments that a switch can hold at the same time"},                             \
        {.name = "job_share",                                                                      \
         .type = GW_PARAM_COUNT,                                                                   \
         .offset = offsetof(config, common.job_share),                                             \
         .initial = "0",                                                                           \
         .help = "aggregators that each job is guaranteed; 0: an equal part"},                     \
        {.name = "signals",                                                                        \
         .type = GW_PARAM_ENUM,                                                                    \
         .offset = offsetof(config, common.signals),                                               \
         .initial = "dscp",                                                                        \
         .choices = "dscp|option",                                                                 \
         .help = "where signals of bursts travel: in the DSCP, or as an IPv4 option, which needs " \
                 "CAP_NET_RAW"},                                                                   \
        {.name = "authenticate",                                                                   \
         .type = GW_PARAM_BOOL,                                                                    \
         .offset = offsetof(config, common.authenticate),                                          \
         .initial = "no",                                                                          \
         .help = "packets carry a code that only holders of the key can make"},                    \
        {.name = "encrypt",                                                                        \
         .type = GW_PARAM_BOOL,                                                                    \
         .offset = offsetof(config, common.encrypt),                                               \
         .initial = "no",                                                                          \
         .help = "packets are encrypted from neighbour to neighbour, and authenticated"},          \
        {.name = "insecure_key_files",                                                             \
         .type = GW_PARAM_BOOL,                                                                    \
         .offset = offsetof(config, common.insecure_key_files),                                    \
         .initial = "no",                                                                          \
         .help =                                                                                   \
             "others may read the files of secrets, and that is meant; else they are refused"},    \
    {                                                                                              \
        .name = "jobs", .type = GW_PARAM_COUNT, .offset = offsetof(config, common.jobs),           \
        .initial = "64", .help = "jobs at the same time"                                           \
    }

struct gw_daemon;

/* A kind of daemon. `own` is what open() made. */
struct gw_daemon_kind {
    const char *name; /* of the command */
    const char *doc;
    const struct gw_algo *table; /* of its config */
    const char *const *sections; /* of its config besides, ended by NULL; NULL: none */
    size_t cfg_size;             /* of the config, which the table fills up to its own size */
    enum gw_attach_role role;
    /* Reads the sections; 0, or a negative error with document->why set. NULL: there are none. */
    int (*read)(const struct gw_document *document, void *cfg);
    /* Checks the config; 0, or a negative error with a sentence that begins with the key. */
    int (*check)(const void *cfg, char *error);
    /* Makes the nodes; 0, or a negative error with `error` filled. */
    int (*open)(struct gw_daemon *daemon, void **own, char *error);
    void (*close)(void *own); /* after the station is closed */
    /* A neighbour came or went; logs what it does. */
    void (*neighbour)(struct gw_daemon *daemon, void *own, const struct gw_neighbour_event *event);
    /* After every turn of the station; NULL: nothing. */
    void (*turn)(void *own);
    /* Once in a while, and soon after a neighbour came or went: logs what has changed. */
    void (*look)(struct gw_daemon *daemon, void *own);
    /* Whether results may be multicast, although the config does not say so; NULL: no. */
    bool (*may_multicast)(const void *cfg);
    /* Whether there may be several in a row; NULL: no. */
    bool (*may_be_many)(const void *cfg);
    /* Sessions of those who dial it, below GW_DAEMON_PEERS_MAX: as many as it has ports for. */
    uint16_t (*places)(const void *cfg);
    /* Of its links, for those who ask; NULL: not known. */
    uint64_t (*rate_bps)(const void *cfg);
    /* Adds what it knows to the status. */
    void (*status)(void *own, json_t *status);
    /* Adds what a tenant has of it (core/tenants.h). */
    void (*use)(const void *own, uint32_t who, struct gw_tenant_use *use);
};

/* Runs the command. Returns an exit status. */
int gw_daemon_main(const struct gw_daemon_kind *kind, int argc, char **argv);

struct gw_station *gw_daemon_station(struct gw_daemon *daemon);

/* The config, as kind->table describes it. */
const void *gw_daemon_cfg(const struct gw_daemon *daemon);

/* For check(): 0, or GW_ERR_RANGE with the sentence. */
int gw_daemon_check_range(const char *key, uint64_t value, uint64_t low, uint64_t high,
                          char *error);

/* For check(), of HOST:PORT or nothing: 0, or GW_ERR_INVALID with the sentence. */
int gw_daemon_check_address(const char *key, const char *text, char *error);

/* Our address in the overlay, the same after a restart. */
uint32_t gw_daemon_address(const struct gw_daemon *daemon);

/* Logs that a neighbour hears a multicast group now, or none (GW_GROUP_NONE). */
void gw_daemon_log_hearing(const struct gw_daemon *daemon, const struct gw_neighbour_event *event,
                           uint16_t group);

/* Writes a line with the time on standard error. */
void gw_daemon_log(const struct gw_daemon *daemon, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
