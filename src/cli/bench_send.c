/* Messages from rank 0 to rank 1, timed; see bench_send.h. */
#include "cli/bench_send.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/prng.h"
#include "cli/cli.h"
#include "cli/json_print.h"
#include "cli/stopwatch.h"

#define WRONG UINT64_MAX /* in place of how many fragments are missing */

enum {
    TAG_DATA = 1,
    TAG_VERDICT = 2, /* back to rank 0: what is missing, or that bytes were wrong */
};

/* Byte `at` of message `i`. */
static uint8_t byte_of(uint64_t i, uint64_t at)
{
    return (uint8_t)(gw_mix64(i) >> (at % 8 * 8)) ^ (uint8_t)(at >> 3);
}

static void fill(uint8_t *data, uint64_t size, uint64_t i)
{
    for (uint64_t at = 0; at < size; at++)
        data[at] = byte_of(i, at);
}

/* Whether the fragments of the message that are there are right. */
static bool is_right(const uint8_t *data, uint64_t size, uint64_t i,
                     const struct gradwire_parts *parts)
{
    uint8_t wrong = 0;
    for (uint64_t first = 0, part = 0; first < size; first += parts->fragment, part++) {
        uint64_t end = size - first < parts->fragment ? size : first + parts->fragment;
        for (uint64_t at = first; gw_bit_is_set(parts->arrived, part) && at < end; at++)
            wrong |= data[at] ^ byte_of(i, at);
    }
    return wrong == 0;
}

/* What a rank has for the messages. */
struct end {
    gradwire *job;
    const struct gradwire_call_options *how; /* NULL: nothing may be missing */
    struct gradwire_parts parts;             /* all of it, or what has arrived last */
    uint8_t *data;
    uint64_t size;
    uint64_t missing; /* fragments, of all messages */
};

static int send_one(struct end *end, uint64_t i, double *time)
{
    uint64_t missing = 0;
    fill(end->data, end->size, i);
    int code = gradwire_barrier(end->job);
    double begin = gw_seconds();
    if (!code)
        code = gradwire_send_with(end->job, end->data, end->size, 1, TAG_DATA, end->how, NULL);
    *time = gw_seconds() - begin;
    if (!code)
        code = gradwire_receive(end->job, &missing, sizeof(missing), 1, TAG_VERDICT);
    end->missing += missing;
    bool is_kept = (double)missing <= (end->how ? end->how->bound : 0) * (double)end->parts.count;
    if (code || is_kept)
        return code;
    if (missing == WRONG)
        gw_complain("bench: rank 1 received bytes that rank 0 did not send");
    else
        gw_complain("bench: rank 1 misses %llu of %zu fragments, more than the bound",
                    (unsigned long long)missing, end->parts.count);
    return GRADWIRE_ERR_PEER;
}

static int receive_one(struct end *end, uint64_t i)
{
    gradwire_call call;
    memset(end->data, 0, end->size);
    int code = gradwire_receive_with(end->job, end->data, end->size, 0, TAG_DATA, end->how, &call);
    if (!code)
        code = gradwire_barrier(end->job);
    if (!code)
        code = gradwire_wait(end->job, call);
    bool is_good = is_right(end->data, end->size, i, &end->parts);
    uint64_t verdict = is_good ? end->parts.missing : WRONG;
    if (!code)
        code = gradwire_send(end->job, &verdict, sizeof(verdict), 0, TAG_VERDICT);
    if (code || is_good)
        return code;
    gw_complain("bench: rank 1 received bytes that rank 0 did not send");
    return GRADWIRE_ERR_PEER;
}

int gw_bench_send(gradwire *job, const struct gw_bench_send_cfg *cfg, double *times,
                  struct gw_bench_send *result)
{
    struct gradwire_call_options options;
    size_t room = gradwire_fragments(job, cfg->size, GRADWIRE_UINT8, GRADWIRE_VIA_DEFAULT);
    struct end end = {
        .job = job,
        .data = malloc(cfg->size),
        .size = cfg->size,
        .parts = {.room = room, .fragment = cfg->size, .count = room},
    };
    end.parts.arrived = malloc(gw_bit_words(room) * sizeof(uint64_t));
    gradwire_call_options_init(&options, sizeof(options));
    options.bound = cfg->parts->bound;
    options.parts = &end.parts;
    if (options.bound > 0)
        end.how = &options;
    double time = 0;
    int code = end.data && end.parts.arrived ? GRADWIRE_OK : GRADWIRE_ERR_NO_MEMORY;
    if (!code)
        end.parts.arrived[0] = 1; /* of one fragment, if all must be there */
    for (uint64_t i = 0; i <= cfg->iters && !code; i++) {
        code = gradwire_rank(job) == 0 ? send_one(&end, i, &time) : receive_one(&end, i);
        if (i > 0)
            times[i - 1] = time;
    }
    *result = (struct gw_bench_send){.stats = {.size = sizeof(result->stats)}};
    result->missing = (double)end.missing / (double)room / (double)(cfg->iters + 1);
    if (!code)
        code = gradwire_get_stats(job, &result->stats);
    free(end.parts.arrived);
    free(end.data);
    return code;
}

/* Messages with a bound have a congestion control of their own. */
static const char *cc_of(const struct gw_reduce_args *args, const struct gw_bench_send_cfg *cfg)
{
    if (cfg->parts->bound > 0)
        return "dlcp";
    return args->options.cc ? args->options.cc : "smartt";
}

static const char *lb_of(const struct gw_reduce_args *args)
{
    return args->options.lb ? args->options.lb : "reps";
}

static int print_json(const struct gw_reduce_args *args, const struct gw_bench_send_cfg *cfg,
                      const double *sorted, const struct gw_bench_send *result)
{
    const struct gradwire_stats *stats = &result->stats;
    const uint32_t n = (uint32_t)cfg->iters;
    double p50 = gw_reduce_quantile(sorted, n, 0.5);
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:i, s:I, s:i, s:{s:f, s:f, s:f, s:f, s:f, s:f}, s:f, s:I, s:I, s:I}",
        "via", "send", "cc", cc_of(args, cfg), "lb", lb_of(args), "paths", (int)args->options.paths,
        "bytes", (json_int_t)cfg->size, "iters", (int)n, "time_ms", "min", 1e3 * sorted[0], "p50",
        1e3 * p50, "p99", 1e3 * gw_reduce_quantile(sorted, n, 0.99), "p99.9",
        1e3 * gw_reduce_quantile(sorted, n, 0.999), "max", 1e3 * sorted[n - 1], "mean",
        1e3 * gw_reduce_mean(sorted, n), "goodput_gbps", 8e-9 * (double)cfg->size / p50, "packets",
        (json_int_t)stats->fragments, "retransmits", (json_int_t)stats->retransmits, "timeouts",
        (json_int_t)stats->timeouts);
    if (cfg->parts->bound > 0)
        json_object_set_new(root, "missing", json_real(result->missing));
    return gw_json_print(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
}

static void print_text(const struct gw_reduce_args *args, const struct gw_bench_send_cfg *cfg,
                       const double *sorted, const struct gw_bench_send *result)
{
    const struct gradwire_stats *stats = &result->stats;
    const uint32_t n = (uint32_t)cfg->iters;
    double p50 = gw_reduce_quantile(sorted, n, 0.5);
    printf("%.3f MB from rank 0 to rank 1, %u times, by %s and %s over %u paths\n",
           1e-6 * (double)cfg->size, n, cc_of(args, cfg), lb_of(args), args->options.paths);
    printf("  time                 %.3f ms median, %.3f to %.3f\n", 1e3 * p50, 1e3 * sorted[0],
           1e3 * sorted[n - 1]);
    printf("  goodput              %.3f Gb/s\n", 8e-9 * (double)cfg->size / p50);
    printf("  sent again           %llu packets of %llu, %llu after a timeout\n",
           (unsigned long long)stats->retransmits, (unsigned long long)stats->fragments,
           (unsigned long long)stats->timeouts);
    if (cfg->parts->bound > 0)
        printf("  missing              %.3f %% of the messages\n", 100 * result->missing);
}

int gw_bench_send_print(const struct gw_reduce_args *args, const struct gw_bench_send_cfg *cfg,
                        const double *times, const struct gw_bench_send *result)
{
    double *sorted = gw_reduce_sorted(times, (uint32_t)cfg->iters);
    if (!sorted)
        return GW_EXIT_FAILURE;
    int status = GW_EXIT_OK;
    if (args->json)
        status = print_json(args, cfg, sorted, result);
    else
        print_text(args, cfg, sorted, result);
    free(sorted);
    return status;
}
