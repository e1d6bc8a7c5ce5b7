/*
 * Sums by servers: a shard is one server's part of a job, a job of its own to switches
 * and job control. It has a server and a coordinator, on the server's host.
 */
#ifndef GW_SIM_SHARD_H
#define GW_SIM_SHARD_H

#include "core/control/coordinator.h"
#include "sim/jobs_impl.h"

enum {
    GW_SIM_SHARD_APPS = 2, /* on its host, and as many on that of each worker */
};

struct gw_sim_shard {
    uint32_t host;            /* of the server */
    uint32_t number;          /* of the job that it is in packets */
    uint8_t levels;           /* of switches that add up, at most */
    struct gw_server *server; /* NULL: its host is down */
    struct gw_coordinator *coordinator;
    void *memory[2];
    uint32_t lives;
    struct gw_server_stats past; /* of earlier lives */
};

/* Whether the job's hosts can aggregate, as far as that would not be said before the job forms; 0,
 * or an error with `why` set. */
int gw_sim_shards_check(const struct gw_sim *sim, const struct gw_job_spec *spec, char *why);

/* Attaches server and coordinator to their host, again after gw_sim_shard_close(). */
int gw_sim_shard_open(struct gw_sim *sim, const struct gw_job_spec *spec,
                      struct gw_sim_shard *shard);

/* Frees them; the endpoint is gone, or is about to go. */
void gw_sim_shard_close(struct gw_sim_shard *shard);

/* Adds what its lives have counted to a result. */
void gw_sim_shard_results(const struct gw_sim_shard *shard, struct gw_job_result *result);

/* A worker's options, as far as the job's terms do not say them. */
struct gw_worker_cfg gw_sim_worker_cfg(const struct gw_sim *sim, const struct gw_job_spec *spec);

/* Random, not 0, and another one for every life. */
uint32_t gw_sim_incarnation(const struct gw_sim *sim, uint32_t number, uint32_t lives);

#endif
