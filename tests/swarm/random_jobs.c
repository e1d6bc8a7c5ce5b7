/* Writes random training jobs; see random_jobs.h. */
#include "swarm/random_jobs.h"

#include <inttypes.h>

#include "support.h"
#include "swarm/draw.h"
#include "swarm/random_worth.h"

enum {
    WORTH_STREAM = 6, /* of a job: what it can do without */
    BOUND_STREAM = 7, /* likewise, if its sums go by switches */
    WORKERS_MAX = 12,
    JOBS_MAX = 3,
    SERVERS_MAX = 3,
    ITERATIONS_MAX = 4,
    JOB_BYTES_MAX = 200000, /* bytes */
    WINDOW_MAX = 256,
    TINY_BYTES = 4 * (320 + 4000 + 128 + 12100), /* of the gradients of tiny.csv */
    PERCENT_MIN = 7,                             /* compression is at most 16-fold */
    RATE_FAULT_MAX = 10,                         /* times slower is a link at most */
    AGGREGATORS_FEW = 64,
    AGGREGATORS_MAX = 1024, /* each has a packet's buffer, in runs with payload */
};

/* Numbers that decide how much work there is, drawn in this order. */
struct shape {
    uint32_t workers, jobs, servers, iterations, values;
    bool colocated, in_slots;
    uint64_t size;
};

static uint32_t home_of(const struct gw_topo *topo, uint32_t host)
{
    return topo->ports[topo->nodes[host].first_port].peer;
}

bool gw_random_jobs_fit(const struct gw_scenario *network)
{
    const struct gw_topo *topo = &network->topo;
    for (uint32_t h = 0; h < topo->host_count; h++)
        if (topo->nodes[h].port_count != 1 || home_of(topo, h) < topo->host_count)
            return false;
    return true;
}

/* The first hosts, as many as hang on one switch: where a job with slots in one switch fits. */
static uint32_t neighbours(const struct gw_topo *topo)
{
    uint32_t count = 1;
    while (count < topo->host_count && home_of(topo, count) == home_of(topo, 0))
        count++;
    return count;
}

static void draw_shape(const struct gw_random_jobs *jobs, struct shape *shape)
{
    struct gw_prng *prng = jobs->prng;
    const struct gw_topo *topo = &jobs->network->topo;
    uint32_t hosts = shape->in_slots ? neighbours(topo) : topo->host_count;
    uint32_t apart =
        shape->in_slots || shape->colocated ? 0 : 1; /* hosts of the server, at least */
    uint32_t workers_max = hosts - apart < WORKERS_MAX ? hosts - apart : WORKERS_MAX;
    shape->workers = (uint32_t)gw_draw_between(prng, 1, workers_max);
    /* Jobs of slots are spread over racks, and only where there is one switch all of them fit. */
    bool may_repeat = !shape->in_slots || hosts == topo->host_count;
    uint32_t jobs_max = may_repeat ? hosts / (shape->workers + apart) : 1;
    shape->jobs = (uint32_t)gw_draw_between(prng, 1, jobs_max < JOBS_MAX ? jobs_max : JOBS_MAX);
    uint32_t servers_max = shape->colocated ? shape->workers : hosts / shape->jobs - shape->workers;
    if (!shape->in_slots)
        shape->servers = (uint32_t)gw_draw_between(
            prng, 1, servers_max < SERVERS_MAX ? servers_max : SERVERS_MAX);
    shape->iterations = (uint32_t)gw_draw_log(prng, 1, ITERATIONS_MAX);
    uint32_t values_max = jobs->network->host.mtu / sizeof(float);
    shape->values = (uint32_t)gw_draw_log(prng, values_max / 8 + 1, values_max);
    uint64_t fragments =
        jobs->packets / ((uint64_t)2 * shape->workers * shape->jobs * shape->iterations);
    uint64_t most = (fragments + 1) * shape->values * sizeof(float);
    uint64_t elements = gw_draw_log(prng, SERVERS_MAX,
                                    (most < JOB_BYTES_MAX ? most : JOB_BYTES_MAX) / sizeof(float));
    shape->size = sizeof(float) * (elements < SERVERS_MAX ? SERVERS_MAX : elements);
}

/*
 * The least time between the reports of workers. Reports are control, which goes before data: if
 * those that cross one link filled it, no gradient would ever leave. So even two entries leave half
 * of the slowest link to others, slowed by a fault.
 */
static gw_time beat_min(const struct gw_random_jobs *jobs, const struct shape *shape)
{
    const struct gw_topo *topo = &jobs->network->topo;
    uint64_t slowest = UINT64_MAX;
    for (uint32_t i = 0; i < topo->link_count; i++)
        for (uint32_t side = 0; side < 2; side++)
            if (topo->links[i].side[side].rate_bps < slowest)
                slowest = topo->links[i].side[side].rate_bps;
    gw_time report = gw_serialisation(gw_byte_time_from_bps(slowest), jobs->network->host.header);
    uint32_t ends = shape->workers > shape->servers ? shape->workers : shape->servers;
    return (gw_time)4 * RATE_FAULT_MAX * ends * shape->jobs * report;
}

static void write_times(const struct gw_random_jobs *jobs, const struct shape *shape)
{
    struct gw_prng *prng = jobs->prng;
    gw_time stall = jobs->network->host.stall, least = beat_min(jobs, shape);
    gw_time beat = gw_draw_between(prng, stall / 100, stall / 5);
    beat = beat > least ? beat : least;
    fprintf(jobs->out, "    timeout: %" PRIu64 "ps\n",
            gw_draw_between(prng, stall / 100, stall / 10));
    fprintf(jobs->out, "    leak: %" PRIu64 "ps\n", gw_draw_between(prng, stall / 10, stall));
    fprintf(jobs->out, "    beat: %" PRIu64 "ps\n    lost: %" PRIu64 "ps\n", beat,
            gw_draw_between(prng, 2 * beat, 8 * beat));
    if (gw_draw_once_in(prng, 2))
        fprintf(jobs->out, "    start: %" PRIu64 "ps\n    start_spread: %" PRIu64 "ps\n",
                gw_draw_between(prng, 0, jobs->horizon / 4),
                gw_draw_between(prng, 0, jobs->horizon));
}

/* Ours, or some or all of the paper's. */
static void write_rules(const struct gw_random_jobs *jobs)
{
    static const char *const rules[][2] = {
        {"scale", "decimal"},       {"collisions", "workers"}, {"halving", "alone"},
        {"overtaking", "in-a-row"}, {"hashing", "sequence"},   {"remap", "rehash"},
        {"partials", "discard"},    {"reclaim", "results"},
    };
    struct gw_prng *prng = jobs->prng;
    bool has_all = gw_draw_once_in(prng, 4);
    if (!has_all && gw_draw_once_in(prng, 2))
        return;
    for (uint32_t i = 0; i < GW_COUNT_OF(rules); i++)
        if (has_all || gw_draw_once_in(prng, 2))
            fprintf(jobs->out, "    %s: %s\n", rules[i][0], rules[i][1]);
    if (gw_draw_once_in(prng, 2)) /* not larger: queues are drawn to hold a packet */
        fprintf(jobs->out, "    header: %uB\n", 1 + jobs->network->host.header / 2);
}

static void write_shape(const struct gw_random_jobs *jobs, const struct shape *shape)
{
    fprintf(jobs->out, "    workers: %u\n    jobs: %u\n    iterations: %u\n    values: %u\n",
            shape->workers, shape->jobs, shape->iterations, shape->values);
    if (shape->servers)
        fprintf(jobs->out, "    servers: %u\n    colocated: %s\n", shape->servers,
                shape->colocated ? "yes" : "no");
}

/* What a job that trains does besides: it computes, and has an order for its gradients. Returns
 * whether it fuses them. */
static bool write_training(const struct gw_random_jobs *jobs, uint64_t size)
{
    static const char *const schedules[] = {"seq", "wfbp", "p3", "bytescheduler"};
    struct gw_prng *prng = jobs->prng;
    FILE *out = jobs->out;
    const gw_time stall = jobs->network->host.stall;
    uint32_t schedule = gw_prng_below(prng, GW_COUNT_OF(schedules));
    fprintf(out, "    model: %s/tests/swarm/tiny.csv\n    schedule: %s\n", GW_SOURCE_DIR,
            schedules[schedule]);
    if (schedule >= 2 && gw_draw_once_in(prng, 2))
        fprintf(out, "    partition: %" PRIu64 "\n    credit: %" PRIu64 "\n",
                4 * gw_draw_log(prng, 256, 4096), gw_draw_log(prng, 1, 40000));
    if (gw_draw_once_in(prng, 4))
        fprintf(out, "    device: none\n");
    else
        fprintf(out, "    batch: 1\n    images_per_s: %" PRIu64 "\n",
                GW_S / gw_draw_between(prng, stall / 64, stall / 4) + 1);
    /* About as many bytes as were drawn for the job. */
    uint64_t percent = 100 * size / TINY_BYTES;
    fprintf(out, "    compression: %" PRIu64 "%%\n",
            percent < PERCENT_MIN ? PERCENT_MIN
            : percent > 100       ? 100
                                  : percent);
    fprintf(out, "    split: %" PRIu64 "\n", gw_draw_log(prng, 1, 100000));
    bool fuses = gw_draw_once_in(prng, 3);
    if (fuses)
        fprintf(out, "    fusion: %" PRIu64 "\n    cycle: %" PRIu64 "ps\n",
                gw_draw_log(prng, 1, 100000), gw_draw_between(prng, 0, stall / 8));
    if (gw_draw_once_in(prng, 2))
        fprintf(out, "    jitter: 0.%" PRIu64 "\n    slowdown: 1.%" PRIu64 "\n",
                gw_draw_between(prng, 1, 9), gw_draw_between(prng, 0, 9));
    return fuses;
}

/* How a job that trains goes about what is `ps` to an all-reduce; flows have no contents. */
static const char *flows_of(const struct gw_random_jobs *jobs, const struct shape *shape)
{
    if (jobs->network->host.payload || gw_draw_once_in(jobs->prng, 3))
        return "server";
    return shape->workers > 1 && !shape->colocated && gw_draw_once_in(jobs->prng, 2) ? "ring"
                                                                                     : "ps";
}

void gw_random_jobs_write(const struct gw_random_jobs *jobs)
{
    static const char *const ways[] = {"ina", "ina", "ina", "rss", "ps", "switchml"};
    static const char *const indexing[] = {"hash", "linear", "static"};
    struct gw_prng *prng = jobs->prng;
    FILE *out = jobs->out;
    const char *via = ways[gw_prng_below(prng, GW_COUNT_OF(ways))];
    struct shape shape = {
        .in_slots = strcmp(via, "switchml") == 0,
        .colocated = strcmp(via, "ps") == 0 && gw_draw_once_in(prng, 2),
    };
    draw_shape(jobs, &shape);
    bool trains = gw_draw_once_in(prng, 2);
    if (trains && shape.values < jobs->network->host.mtu / sizeof(float) / 2)
        shape.values = jobs->network->host.mtu / sizeof(float); /* the size was drawn for fewer */
    if (trains && strcmp(via, "ps") == 0)
        via = flows_of(jobs, &shape);
    fprintf(out, "  - kind: %s\n    via: %s\n    exclusive: no\n",
            trains ? "training" : "allreduce", via);
    write_shape(jobs, &shape);
    if (trains) {
        bool fuses = write_training(jobs, shape.size);
        bool is_whole = jobs->network->host.mtu % sizeof(float) == 0; /* elements per packet */
        if (strcmp(via, "ps") == 0 || (strcmp(via, "ring") == 0 && is_whole)) {
            struct gw_prng own = gw_prng_derive(prng->state, WORTH_STREAM);
            gw_random_worth_job(out, !fuses && strcmp(via, "ps") == 0, &own);
        }
    } else
        fprintf(out, "    size: %" PRIu64 "\n", shape.size);
    if (strcmp(via, "ina") == 0) {
        struct gw_prng own = gw_prng_derive(prng->state, BOUND_STREAM);
        gw_random_worth_sum(out, jobs->network->brtt_max, &own);
    }
    uint32_t window = (uint32_t)gw_draw_log(prng, 1, WINDOW_MAX);
    fprintf(out, "    window: %u\n    window_initial: %" PRIu64 "\n", window,
            gw_draw_log(prng, 1, window));
    fprintf(out, "    aggregators: %" PRIu64 "\n",
            gw_draw_between(prng, 2 * shape.jobs,
                            gw_draw_once_in(prng, 2) ? AGGREGATORS_FEW : AGGREGATORS_MAX));
    fprintf(out, "    indexing: %s\n", indexing[gw_prng_below(prng, GW_COUNT_OF(indexing))]);
    fprintf(out, "    levels: %" PRIu64 "\n", gw_draw_between(prng, 1, 3));
    fprintf(out, "    congestion_control: %s\n", gw_draw_once_in(prng, 4) ? "no" : "yes");
    fprintf(out, "    resend_gap: %s\n", gw_draw_once_in(prng, 2) ? "yes" : "no");
    write_times(jobs, &shape);
    write_rules(jobs);
    if (!gw_draw_once_in(prng, 4)) /* it counts where switches make room */
        fprintf(out, "    announce: %" PRIu64 "\n", 5 * gw_draw_between(prng, 1, 15));
}
