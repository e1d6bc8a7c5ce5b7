/* Writes random jobs that make calls; see random_call_jobs.h. */
#include "swarm/random_call_jobs.h"

#include <inttypes.h>

#include "support.h"
#include "swarm/draw.h"

enum {
    WORKERS_MAX = 8,
    SERVERS_MAX = 3,
    ITERATIONS_MAX = 3,
    CALLS_MAX = 8,
    KEYS = 3, /* so that some lists disagree about the shape of a value */
    CALL_BYTES_MAX = 100000,
    WINDOW_MAX = 256,
    AGGREGATORS_MAX = 256, /* each has a packet's buffer */
    AVERAGED_TYPES = 5,    /* of the list of types below */
    UNIT = 8,              /* bytes of the largest type */
    STEPS = 2,             /* times that a call's bytes pass a link, about */
};

bool gw_random_call_jobs_fit(const struct gw_scenario *network)
{
    return gw_random_jobs_fit(network) && network->topo.host_count >= 4;
}

static void write_call(const struct gw_random_jobs *jobs, uint32_t workers, uint64_t bytes_max)
{
    static const char *const kinds[] = {"allreduce",      "allreduce", "reduce", "broadcast",
                                        "allgather",      "send",      "send",   "push",
                                        "reduce_scatter", "barrier",   "push",   "pull"};
    static const char *const vias[] = {"default", "ina", "ps", "ring"};
    static const char *const types[] = {"float32", "int32", "float16", "bfloat16",
                                        "float64", "int64", "uint8"};
    static const char *const ops[] = {"sum", "sum", "min", "max", "product", "average"};
    struct gw_prng *prng = jobs->prng;
    const char *kind = kinds[gw_prng_below(prng, GW_COUNT_OF(kinds))];
    bool is_value = strcmp(kind, "push") == 0 || strcmp(kind, "pull") == 0;
    uint32_t from = gw_prng_below(prng, workers);
    uint32_t to = (from + 1 + gw_prng_below(prng, workers - 1)) % workers;
    uint32_t key = gw_prng_below(prng, KEYS);
    uint64_t units = gw_draw_log(prng, 1, bytes_max / UNIT + 1);
    if (is_value && !gw_draw_once_in(prng, 8))
        units = key + 1; /* the shape that most have */
    fprintf(jobs->out, "      - {do: %s, bytes: %" PRIu64, kind, UNIT * units);
    uint32_t type = is_value ? key % 2 : gw_prng_below(prng, GW_COUNT_OF(types));
    uint32_t op_count = GW_COUNT_OF(ops) - (type >= AVERAGED_TYPES);
    fprintf(jobs->out, ", via: %s, op: %s, type: %s", vias[gw_prng_below(prng, GW_COUNT_OF(vias))],
            ops[gw_prng_below(prng, op_count)], types[type]);
    fprintf(jobs->out, ", from: %u, to: %u, root: %u, key: %u", from, to,
            gw_prng_below(prng, workers), key);
    if (gw_draw_once_in(prng, 2))
        fprintf(jobs->out, ", rank: %u", gw_prng_below(prng, workers));
    fputs("}\n", jobs->out);
}

static void write_times(const struct gw_random_jobs *jobs)
{
    struct gw_prng *prng = jobs->prng;
    gw_time stall = jobs->network->host.stall;
    gw_time beat = gw_draw_between(prng, stall / 100, stall / 5);
    fprintf(jobs->out, "    timeout: %" PRIu64 "ps\n    leak: %" PRIu64 "ps\n",
            gw_draw_between(prng, stall / 100, stall / 10),
            gw_draw_between(prng, stall / 10, stall));
    fprintf(jobs->out, "    beat: %" PRIu64 "ps\n    lost: %" PRIu64 "ps\n", beat,
            gw_draw_between(prng, 2 * beat, 8 * beat));
    if (gw_draw_once_in(prng, 2))
        fprintf(jobs->out, "    start: %" PRIu64 "ps\n",
                gw_draw_between(prng, 0, jobs->horizon / 4));
}

void gw_random_call_jobs_write(const struct gw_random_jobs *jobs)
{
    static const char *const vias[] = {"ina", "ina", "ps", "ring"};
    struct gw_prng *prng = jobs->prng;
    FILE *out = jobs->out;
    const uint32_t hosts = jobs->network->topo.host_count - 1; /* the first cannot be a rank */
    const uint32_t values_max = jobs->network->host.mtu / sizeof(float);
    uint32_t most = hosts - 1 < WORKERS_MAX ? hosts - 1 : WORKERS_MAX;
    uint32_t workers = (uint32_t)gw_draw_between(prng, 2, most);
    uint32_t servers_max = hosts - workers < SERVERS_MAX ? hosts - workers : SERVERS_MAX;
    uint32_t iterations = (uint32_t)gw_draw_log(prng, 1, ITERATIONS_MAX);
    uint32_t calls = (uint32_t)gw_draw_between(prng, 1, CALLS_MAX);
    uint64_t packets = jobs->packets / ((uint64_t)STEPS * workers * iterations * calls) + 1;
    uint64_t bytes = packets * jobs->network->host.mtu;
    fprintf(out, "  - kind: calls\n    via: %s\n    exclusive: no\n",
            vias[gw_prng_below(prng, GW_COUNT_OF(vias))]);
    fprintf(out, "    workers: %u\n    servers: %" PRIu64 "\n    iterations: %u\n", workers,
            gw_draw_between(prng, 1, servers_max), iterations);
    fprintf(out, "    values: %" PRIu64 "\n", gw_draw_log(prng, values_max / 8 + 1, values_max));
    uint32_t window = (uint32_t)gw_draw_log(prng, 1, WINDOW_MAX);
    fprintf(out, "    window: %u\n    window_initial: %" PRIu64 "\n", window,
            gw_draw_log(prng, 1, window));
    fprintf(out, "    aggregators: %" PRIu64 "\n    levels: %" PRIu64 "\n",
            gw_draw_log(prng, 2, AGGREGATORS_MAX), gw_draw_between(prng, 1, 3));
    fprintf(out, "    ahead: %" PRIu64 "\n    flows: %" PRIu64 "\n", gw_draw_log(prng, 1, 8),
            gw_draw_log(prng, 1, 8));
    fprintf(out, "    segment: %" PRIu64 "\n    split: %" PRIu64 "\n",
            UNIT * gw_draw_log(prng, 1 + bytes / UNIT / 16, 1 + bytes / UNIT),
            gw_draw_log(prng, 1, bytes));
    if (!gw_draw_once_in(prng, 4)) /* it counts where switches make room */
        fprintf(out, "    announce: %" PRIu64 "\n", 5 * gw_draw_between(prng, 1, 15));
    write_times(jobs);
    fputs("    calls:\n", out);
    for (uint32_t i = 0; i < calls; i++)
        write_call(jobs, workers, bytes < CALL_BYTES_MAX ? bytes : CALL_BYTES_MAX);
}
