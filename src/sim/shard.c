/* Shards, and what their workers share; see shard.h. */
#include "sim/shard.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "base/error.h"
#include "sim/notices.h"
#include "topo/memory.h"

enum {
    RAW_BUFS = 4096, /* buffers for raw contributions that a server may hold, about */
    INCARNATION_STREAM = 0x10b,
};

/* Workers that hang on the same switch as worker `rank`. */
static uint32_t neighbours(const struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t rank)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < spec->worker_count; i++)
        count += gw_sim_home_of(sim, gw_sim_workers_of(sim, spec)[i]) ==
                 gw_sim_home_of(sim, gw_sim_workers_of(sim, spec)[rank]);
    return count;
}

int gw_sim_shards_check(const struct gw_sim *sim, const struct gw_job_spec *spec, char *why)
{
    int error = gw_sim_homes_check(sim, spec, why);
    if (error)
        return error;
    for (uint32_t rank = 0; spec->levels > 0 && rank < spec->worker_count; rank++) {
        if (neighbours(sim, spec, rank) <= GW_FAN_IN_MAX)
            continue;
        snprintf(why, GW_WHY_MAX,
                 "workload: workers: a job has %u workers below one switch; at most %d",
                 neighbours(sim, spec, rank), GW_FAN_IN_MAX);
        return GW_ERR_RANGE;
    }
    return GW_OK;
}

struct gw_worker_cfg gw_sim_worker_cfg(const struct gw_sim *sim, const struct gw_job_spec *spec)
{
    return (struct gw_worker_cfg){
        .window_initial = spec->window_initial,
        .timeout = spec->timeout,
        .probe = spec->rules.overtaking ? 0 : spec->timeout / 5,
        .stall = sim->scenario->host.stall,
        .congestion_control = spec->congestion_control,
        .resend_gap = spec->resend_gap,
        .halving = (enum gw_agg_halving)spec->rules.halving,
        .overtaking = (enum gw_agg_overtaking)spec->rules.overtaking,
        .hdr = (uint32_t)spec->rules.header,
        .offers_exponents = spec->dynamic_scaling,
        .proactive = spec->proactive,
        .keeps_results = true,
        .takes_bounds = spec->worth.bound > 0,
        .notice = gw_sim_notices_of_job(sim, spec),
        .kernels = gw_kernels_best(gw_cpu_features()),
    };
}

uint32_t gw_sim_incarnation(const struct gw_sim *sim, uint32_t number, uint32_t lives)
{
    struct gw_prng prng = gw_prng_derive(sim->options.seed ^ (uint64_t)lives << 32,
                                         (uint64_t)INCARNATION_STREAM << 32 | number);
    return (uint32_t)gw_prng_next(&prng) | 1;
}

/* Fragments that can be collected raw at the same time. */
static uint32_t raw_max(const struct gw_job_spec *spec)
{
    uint32_t most = RAW_BUFS / spec->worker_count;
    return most < spec->window ? most : spec->window;
}

/* What names the scale of its floats, see core/quant/scale.h. */
static int scale_of(const struct gw_job_spec *spec)
{
    return spec->rules.scale ? GW_SCALE_DECIMAL : GW_SCALE_EXPONENT;
}

int gw_sim_shard_open(struct gw_sim *sim, const struct gw_job_spec *spec,
                      struct gw_sim_shard *shard)
{
    struct gw_endpoint *endpoint = sim->nodes[sim->place[shard->host]].endpoint;
    struct gw_server_cfg server = {
        .job = shard->number,
        .world = (uint16_t)spec->worker_count,
        .levels = GW_LEVELS_MAX,
        .values = spec->values,
        .window_max = spec->window,
        .aggregators = spec->aggregators,
        .indexing = (enum gw_agg_indexing)spec->indexing,
        .hashing = (enum gw_agg_hashing)spec->rules.hashing,
        .remap = (enum gw_agg_remap)spec->rules.remap,
        .share = spec->share,
        .raw_max = raw_max(spec),
        .agrees_exponents = spec->dynamic_scaling,
        .proactive = spec->proactive,
        .scale_exponent = scale_of(spec),
        .retry = spec->timeout / 8 + 1,
        .quiet = spec->rules.collisions ? 0 : spec->timeout / 16 + 1,
        .patience = spec->patience,
        .patience_max = spec->patience_max,
        .hdr = (uint32_t)spec->rules.header,
        .kernels = gw_kernels_best(gw_cpu_features()),
    };
    shard->memory[0] = gw_memory_aligned(gw_server_size(&server));
    int error = gw_server_init(&shard->server, shard->memory[0], &server, endpoint);
    if (error)
        return error;
    struct gw_coordinator_cfg cfg = {
        .job = shard->number,
        .world = (uint16_t)spec->worker_count,
        .levels = shard->levels,
        .window_max = spec->window,
        .values = (uint16_t)spec->values,
        .share = (uint16_t)spec->share,
        .aggregators = spec->aggregators,
        .indexing = (enum gw_agg_indexing)spec->indexing,
        .hashing = (enum gw_agg_hashing)spec->rules.hashing,
        .partials = (enum gw_agg_partials)spec->rules.partials,
        .scale_exponent = (int8_t)scale_of(spec),
        .incarnation = gw_sim_incarnation(sim, shard->number, shard->lives++),
        .retry = spec->timeout,
        .beat = spec->beat,
        .silence = spec->silence,
        .agrees_exponents = spec->dynamic_scaling,
        .notice_path = spec->notice_path,
        .server = shard->server,
    };
    shard->memory[1] = gw_memory_aligned(gw_coordinator_size(&cfg));
    return gw_coordinator_init(&shard->coordinator, shard->memory[1], &cfg, endpoint);
}

void gw_sim_shard_close(struct gw_sim_shard *shard)
{
    if (shard->server)
        gw_sim_add_stats(&shard->past, gw_server_stats(shard->server), sizeof(shard->past));
    for (uint32_t i = 0; i < 2; i++) {
        free(shard->memory[i]);
        shard->memory[i] = NULL;
    }
    shard->server = NULL;
    shard->coordinator = NULL;
}

void gw_sim_shard_results(const struct gw_sim_shard *shard, struct gw_job_result *result)
{
    struct gw_server_stats stats = shard->past;
    if (shard->server)
        gw_sim_add_stats(&stats, gw_server_stats(shard->server), sizeof(stats));
    result->server_bytes += stats.bytes;
    result->server_packets += stats.received;
    result->fragments += stats.results;
    result->aggregated += stats.complete;
    result->left_out += stats.left_out;
}
