/* Reports of simulation runs; see report.h. */
#include "cli/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/json_print.h"
#include "cli/losses.h"
#include "cli/measures.h"
#include "cli/report_bursts.h"
#include "cli/report_jobs.h"

enum {
    HISTOGRAM_ROWS = 12,
    HISTOGRAM_WIDTH = 50,
    UNFINISHED_SHOWN = 8, /* flows that are named when a run ends without them */
    PATH_SIZE = 4096,
};

/* Completion times of the flows that the run waited for, sorted. */
struct times {
    gw_time *values;
    uint32_t count;
};

static int compare_times(const void *a, const void *b)
{
    gw_time x = *(const gw_time *)a, y = *(const gw_time *)b;
    return x < y ? -1 : x > y;
}

static struct times completion_times(const struct gw_run_report *run)
{
    const struct gw_workload *workload = &run->scenario->workload;
    const struct gw_flow_result *flows = gw_sim_flows(run->sim);
    struct times times = {.values = calloc(workload->flow_count + 1, sizeof(gw_time))};
    if (!times.values)
        abort();
    for (uint32_t i = 0; i < workload->flow_count; i++)
        if (!workload->flows[i].background && flows[i].outcome == GW_FLOW_DONE)
            times.values[times.count++] = flows[i].end - flows[i].start;
    qsort(times.values, times.count, sizeof(gw_time), compare_times);
    return times;
}

static double in_us(gw_time time)
{
    return (double)time / (double)GW_US;
}

/* The smallest time that `per_mille` of the flows do not exceed; 0 when there are none. */
static double percentile_us(const struct times *times, uint32_t per_mille)
{
    if (times->count == 0)
        return 0;
    uint64_t rank = ((uint64_t)times->count * per_mille + 999) / 1000;
    return in_us(times->values[rank ? rank - 1 : 0]);
}

static double mean_us(const struct times *times)
{
    double sum = 0;
    for (uint32_t i = 0; i < times->count; i++)
        sum += in_us(times->values[i]);
    return times->count ? sum / times->count : 0;
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

/* More of the distribution, and the time between the first flow to end and the last. */
static void extend_times(const struct times *times, json_t *json)
{
    json_object_set_new(json, "p10", json_real(percentile_us(times, 100)));
    json_object_set_new(json, "p25", json_real(percentile_us(times, 250)));
    json_object_set_new(json, "p75", json_real(percentile_us(times, 750)));
    json_object_set_new(json, "p90", json_real(percentile_us(times, 900)));
    json_object_set_new(json, "spread",
                        json_real(percentile_us(times, 1000) - percentile_us(times, 0)));
}

json_t *gw_report_json(const struct gw_run_report *run)
{
    struct gw_sim_totals totals = gw_sim_totals(run->sim);
    struct times times = completion_times(run);
    totals.drops += totals.host_drops; /* wherever it was dropped */
    char hash[24];
    snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)totals.trace_hash);
    json_t *params = json_object();
    for (uint32_t i = 0; i < run->param_count; i++)
        json_object_set_new(params, run->params[i].key, json_string(run->params[i].value));
    json_t *json =
        json_pack("{s:s, s:o, s:I, s:i, s:i, s:f, s:{s:f, s:f, s:f, s:f, s:f}, s:f, s:f,"
                  " s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:o, s:{s:i, s:f, s:f, s:f}}",
                  "scenario", run->scenario->name, "params", params, "seed", (json_int_t)run->seed,
                  "flows", (int)totals.flows, "completed", (int)totals.completed, "sim_us",
                  in_us(totals.end), "fct_us", "min", percentile_us(&times, 0), "mean",
                  mean_us(&times), "p50", percentile_us(&times, 500), "p99",
                  percentile_us(&times, 990), "max", percentile_us(&times, 1000), "completion_us",
                  in_us(totals.completion), "ideal_us", in_us(gw_sim_bound(run->scenario)),
                  "data_packets", (json_int_t)totals.data_packets, "hops", (json_int_t)totals.hops,
                  "marks", (json_int_t)totals.marks, "trims", (json_int_t)totals.trims, "drops",
                  (json_int_t)(totals.drops + totals.link_losses + totals.unroutable),
                  "retransmits", (json_int_t)totals.retransmits, "events",
                  (json_int_t)totals.events, "trace_hash", hash, "jobs", gw_report_jobs_json(run),
                  "host", "threads", (int)run->host.threads, "wall_s", run->host.wall_s,
                  "hops_per_s", run->host.wall_s > 0 ? (double)totals.hops / run->host.wall_s : 0.0,
                  "peak_rss_mb", run->host.peak_rss_mb);
    extend_times(&times, json_object_get(json, "fct_us"));
    free(times.values);
    gw_time bound = gw_sim_bound(run->scenario);
    json_object_set_new(json, "fairness", json_real(gw_report_fairness(run)));
    json_object_set_new(json, "over_ideal", json_real(share(totals.completion, bound)));
    json_object_set_new(json, "timeouts", json_integer((json_int_t)totals.timeouts));
    json_object_set_new(json, "overtaken", json_integer((json_int_t)totals.overtaken));
    json_object_set_new(json, "probes", json_integer((json_int_t)totals.probes));
    json_object_set_new(json, "spurious", json_integer((json_int_t)totals.spurious));
    gw_measures_add(run, json);
    gw_report_bursts_add(run, json);
    json_object_set_new(json, "control_drops", json_integer((json_int_t)totals.control_drops));
    json_object_set_new(json, "losses", gw_losses_json(totals.losses));
    json_object_set_new(json, "pauses", json_integer((json_int_t)totals.pauses));
    json_object_set_new(json, "paused_us", json_real(in_us(totals.paused)));
    return json;
}

static void print_histogram(const struct times *times)
{
    gw_time low = times->values[0], high = times->values[times->count - 1];
    gw_time width = (high - low) / HISTOGRAM_ROWS + 1;
    uint32_t rows[HISTOGRAM_ROWS] = {0}, largest = 1;
    for (uint32_t i = 0; i < times->count; i++) {
        uint32_t *row = &rows[(times->values[i] - low) / width];
        if (++*row > largest)
            largest = *row;
    }
    printf("\n  completion time (us)\n");
    for (uint32_t i = 0; i < HISTOGRAM_ROWS; i++) {
        uint32_t length = (rows[i] * HISTOGRAM_WIDTH + largest - 1) / largest;
        printf("  %10.2f  ", in_us(low + i * width));
        for (uint32_t j = 0; j < length; j++)
            putchar('#');
        printf(rows[i] ? " %u\n" : "\n", rows[i]);
    }
}

static void print_unfinished(const struct gw_run_report *run)
{
    const struct gw_workload *workload = &run->scenario->workload;
    const struct gw_flow_result *flows = gw_sim_flows(run->sim);
    uint32_t shown = 0;
    for (uint32_t i = 0; i < workload->flow_count; i++) {
        const struct gw_flow_spec *spec = &workload->flows[i];
        if (spec->background || flows[i].outcome == GW_FLOW_DONE || shown++ >= UNFINISHED_SHOWN)
            continue;
        printf("  %s  flow %u, %s to %s, %llu bytes\n",
               flows[i].outcome == GW_FLOW_FAILED ? "FAILED    "
               : flows[i].started                 ? "UNFINISHED"
                                                  : "NOT BEGUN ",
               spec->id, run->scenario->topo.nodes[spec->src].name,
               run->scenario->topo.nodes[spec->dst].name, (unsigned long long)spec->bytes);
    }
    if (shown > UNFINISHED_SHOWN)
        printf("  ... and %u more\n", shown - UNFINISHED_SHOWN);
}

void gw_report_text(const struct gw_run_report *run)
{
    const struct gw_scenario *scenario = run->scenario;
    struct gw_sim_totals totals = gw_sim_totals(run->sim);
    struct times times = completion_times(run);
    printf("%s: %s + %s + %s over %s queues, %u hosts, seed %llu\n", scenario->name,
           scenario->transport.name, scenario->transport.lb->algo.name,
           scenario->transport.loss->algo.name, scenario->queue.qdisc->algo.name,
           scenario->topo.host_count, (unsigned long long)run->seed);
    for (uint32_t i = 0; i < run->param_count; i++)
        printf("  %s = %s\n", run->params[i].key, run->params[i].value);
    if (totals.flows) {
        printf("  flows        %u of %u completed, all in %.2f us", totals.completed, totals.flows,
               in_us(totals.completion));
        gw_time bound = gw_sim_bound(scenario);
        if (totals.completed == totals.flows && bound)
            printf(": %.3f of the ideal %.2f us", share(totals.completion, bound), in_us(bound));
        putchar('\n');
        printf("  time (us)    min %.2f  mean %.2f  p50 %.2f  p99 %.2f  max %.2f\n",
               percentile_us(&times, 0), mean_us(&times), percentile_us(&times, 500),
               percentile_us(&times, 990), percentile_us(&times, 1000));
    }
    gw_report_jobs_text(run);
    gw_report_bursts_text(run);
    /* Fragments of jobs are no packets of flows, but take hops. */
    printf("  packets      %llu data%s, %llu retransmits, %llu hops\n",
           (unsigned long long)totals.data_packets, scenario->workload.job_count ? " of flows" : "",
           (unsigned long long)totals.retransmits, (unsigned long long)totals.hops);
    printf("  switches     %llu marks, %llu trims, %llu drops; links lost %llu\n",
           (unsigned long long)totals.marks, (unsigned long long)totals.trims,
           (unsigned long long)totals.drops, (unsigned long long)totals.link_losses);
    gw_losses_print(totals.losses);
    if (scenario->queue.lossless)
        printf(
            "  lossless     %llu pauses, %.2f us in total over all ports; %llu drops of control\n",
            (unsigned long long)totals.pauses, in_us(totals.paused),
            (unsigned long long)totals.control_drops);
    if (gw_host_has_cost(&scenario->host.cost))
        printf("  hosts        %llu drops\n", (unsigned long long)totals.host_drops);
    printf("  simulator    %.2f s, %.1f million hops/s, %u thread%s, %.0f MB; trace %016llx\n",
           run->host.wall_s, (double)totals.hops / (run->host.wall_s + 1e-9) / 1e6,
           run->host.threads, run->host.threads == 1 ? "" : "s", run->host.peak_rss_mb,
           (unsigned long long)totals.trace_hash);
    print_unfinished(run);
    if (times.count > 1)
        print_histogram(&times);
    free(times.values);
}

static FILE *open_file(const char *directory, const char *name, char path[PATH_SIZE])
{
    snprintf(path, PATH_SIZE, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    if (!file)
        gw_complain("%s: %s", path, strerror(errno));
    return file;
}

static int close_file(FILE *file, const char *path)
{
    bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed) {
        gw_complain("%s: cannot write: %s", path, strerror(errno));
        return GW_ERR_SYSTEM;
    }
    return GW_OK;
}

static int write_flows(const struct gw_run_report *run, const char *directory)
{
    static const char *const outcomes[] = {
        [GW_FLOW_PENDING] = "unfinished", [GW_FLOW_DONE] = "done", [GW_FLOW_FAILED] = "failed"};
    const struct gw_workload *workload = &run->scenario->workload;
    const struct gw_flow_result *flows = gw_sim_flows(run->sim);
    char path[PATH_SIZE];
    FILE *file = open_file(directory, "flows.csv", path);
    if (!file)
        return GW_ERR_SYSTEM;
    fprintf(file, "id,src,dst,bytes,start_us,end_us,fct_us,retransmits,outcome\n");
    for (uint32_t i = 0; i < workload->flow_count; i++) {
        const struct gw_flow_spec *spec = &workload->flows[i];
        bool ended = flows[i].outcome != GW_FLOW_PENDING;
        fprintf(file, "%u,%u,%u,%llu,", spec->id, spec->src, spec->dst,
                (unsigned long long)spec->bytes);
        if (flows[i].started || ended)
            fprintf(file, "%.6f", in_us(flows[i].start));
        if (ended)
            fprintf(file, ",%.6f,%.6f", in_us(flows[i].end), in_us(flows[i].end - flows[i].start));
        else
            fprintf(file, ",,");
        fprintf(file, ",%llu,%s\n", (unsigned long long)flows[i].retransmits,
                outcomes[flows[i].outcome]);
    }
    return close_file(file, path);
}

/* Subject and port. */
static void write_subject(const struct gw_run_report *run, const struct gw_sample *sample,
                          FILE *file)
{
    switch (sample->series) {
    case GW_SERIES_CWND:
    case GW_SERIES_RATE:
        fprintf(file, "%u,", run->scenario->workload.flows[sample->subject].id);
        break;
    case GW_SERIES_QUEUE:
        fprintf(file, "%s,%u", run->scenario->topo.nodes[sample->subject].name, sample->port);
        break;
    case GW_SERIES_COLLISIONS:
        fprintf(file, "%s,", run->scenario->topo.nodes[sample->subject].name);
        break;
    case GW_SERIES_GOODPUT:
    case GW_SERIES_SWITCH_SUMS:
    case GW_SERIES_SERVER_SUMS:
        fprintf(file, "%u,", sample->subject);
        break;
    }
}

static int write_series(const struct gw_run_report *run, const char *directory)
{
    static const char *const names[] = {
        [GW_SERIES_CWND] = "cwnd",
        [GW_SERIES_RATE] = "rate",
        [GW_SERIES_QUEUE] = "queue",
        [GW_SERIES_GOODPUT] = "goodput",
        [GW_SERIES_SWITCH_SUMS] = "switch_sums",
        [GW_SERIES_SERVER_SUMS] = "server_sums",
        [GW_SERIES_COLLISIONS] = "collisions",
    };
    uint64_t count;
    const struct gw_sample *samples = gw_sim_samples(run->sim, &count);
    if (count == 0)
        return GW_OK;
    char path[PATH_SIZE];
    FILE *file = open_file(directory, "series.csv", path);
    if (!file)
        return GW_ERR_SYSTEM;
    fprintf(file, "time_us,series,subject,port,value\n");
    for (uint64_t i = 0; i < count; i++) {
        const struct gw_sample *sample = &samples[i];
        fprintf(file, "%.6f,%s,", in_us(sample->at), names[sample->series]);
        write_subject(run, sample, file);
        fprintf(file, ",%llu\n", (unsigned long long)sample->value);
    }
    return close_file(file, path);
}

static int write_result(const struct gw_run_report *run, const char *directory)
{
    char path[PATH_SIZE];
    FILE *file = open_file(directory, "result.json", path);
    if (!file)
        return GW_ERR_SYSTEM;
    int status = gw_json_print(gw_report_json(run), file,
                               JSON_INDENT(2) | JSON_REAL_PRECISION(GW_REPORT_DIGITS));
    int error = close_file(file, path);
    return status ? GW_ERR_INVALID : error;
}

int gw_report_files(const struct gw_run_report *run, const char *directory)
{
    int error = write_flows(run, directory);
    if (!error)
        error = write_series(run, directory);
    if (!error)
        error = write_result(run, directory);
    return error;
}
