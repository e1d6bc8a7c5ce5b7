/* Messages from rank 0 to rank 1, timed; see bench_send.h. */
#include "cli/bench_send.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "cli/cli.h"
#include "cli/stopwatch.h"

enum {
    TAG_DATA = 1,
    TAG_VERDICT = 2, /* back to rank 0: whether all bytes were right */
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

static bool is_right(const uint8_t *data, uint64_t size, uint64_t i)
{
    uint8_t wrong = 0;
    for (uint64_t at = 0; at < size; at++)
        wrong |= data[at] ^ byte_of(i, at);
    return wrong == 0;
}

/* One message, and the verdict on it; both sides are ready when its time begins. */
static int move(gradwire *job, uint8_t *data, uint64_t size, uint64_t i, double *time)
{
    uint8_t verdict = 1;
    gradwire_call call;
    int code;
    if (gradwire_rank(job) == 0) {
        fill(data, size, i);
        code = gradwire_barrier(job);
        double begin = gw_seconds();
        if (!code)
            code = gradwire_send(job, data, size, 1, TAG_DATA);
        *time = gw_seconds() - begin;
        if (!code)
            code = gradwire_receive(job, &verdict, sizeof(verdict), 1, TAG_VERDICT);
    } else {
        memset(data, 0, size);
        code = gradwire_receive_start(job, data, size, 0, TAG_DATA, &call);
        if (!code)
            code = gradwire_barrier(job);
        if (!code)
            code = gradwire_wait(job, call);
        verdict = is_right(data, size, i);
        if (!code)
            code = gradwire_send(job, &verdict, sizeof(verdict), 0, TAG_VERDICT);
    }
    if (code || verdict)
        return code;
    gw_complain("bench: rank 1 received bytes that rank 0 did not send");
    return GRADWIRE_ERR_PEER;
}

int gw_bench_send(gradwire *job, uint64_t size, uint64_t iters, double *times,
                  struct gradwire_stats *stats)
{
    uint8_t *data = malloc(size);
    double time = 0;
    int code = data ? GRADWIRE_OK : GRADWIRE_ERR_NO_MEMORY;
    for (uint64_t i = 0; i <= iters && !code; i++) {
        code = move(job, data, size, i, &time);
        if (i > 0)
            times[i - 1] = time;
    }
    stats->size = sizeof(*stats);
    if (!code)
        code = gradwire_get_stats(job, stats);
    free(data);
    return code;
}

int gw_bench_send_print(const struct gw_reduce_args *args, uint64_t size, const double *times,
                        uint32_t iters, const struct gradwire_stats *stats)
{
    const char *cc = args->options.cc ? args->options.cc : "smartt";
    const char *lb = args->options.lb ? args->options.lb : "reps";
    double *sorted = gw_reduce_sorted(times, iters);
    if (!sorted)
        return GW_EXIT_FAILURE;
    double p50 = gw_reduce_quantile(sorted, iters, 0.5), gbps = 8e-9 * (double)size / p50;
    if (args->json) {
        json_t *root = json_pack(
            "{s:s, s:s, s:s, s:i, s:I, s:i, s:{s:f, s:f, s:f, s:f}, s:f, s:I, s:I, s:I}", "via",
            "send", "cc", cc, "lb", lb, "paths", (int)args->options.paths, "bytes",
            (json_int_t)size, "iters", (int)iters, "time_ms", "min", 1e3 * sorted[0], "p50",
            1e3 * p50, "p99", 1e3 * gw_reduce_quantile(sorted, iters, 0.99), "max",
            1e3 * sorted[iters - 1], "goodput_gbps", gbps, "packets", (json_int_t)stats->fragments,
            "retransmits", (json_int_t)stats->retransmits, "timeouts", (json_int_t)stats->timeouts);
        json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        putchar('\n');
        json_decref(root);
    } else {
        printf("%.3f MB from rank 0 to rank 1, %u times, by %s and %s over %u paths\n",
               1e-6 * (double)size, iters, cc, lb, args->options.paths);
        printf("  time                 %.3f ms median, %.3f to %.3f\n", 1e3 * p50, 1e3 * sorted[0],
               1e3 * sorted[iters - 1]);
        printf("  goodput              %.3f Gb/s\n", gbps);
        printf("  sent again           %llu packets of %llu, %llu after a timeout\n",
               (unsigned long long)stats->retransmits, (unsigned long long)stats->fragments,
               (unsigned long long)stats->timeouts);
    }
    free(sorted);
    return GW_EXIT_OK;
}
