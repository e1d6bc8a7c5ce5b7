/* What a run's flows and packets achieved; see measures.h. */
#include "cli/measures.h"

#include <string.h>

enum {
    SIZES_MAX = 16, /* distinct message sizes that are told apart */
};

/* The least, the sum and the most of some numbers. */
struct range {
    double min, sum, max;
    uint32_t count;
};

static void range_add(struct range *range, double value)
{
    if (range->count == 0 || value < range->min)
        range->min = value;
    if (range->count == 0 || value > range->max)
        range->max = value;
    range->sum += value;
    range->count++;
}

static double mean_of(const struct range *range)
{
    return range->count ? range->sum / range->count : 0;
}

static json_t *range_json(const struct range *range)
{
    return json_pack("{s:f, s:f, s:f}", "min", range->min, "mean", mean_of(range), "max",
                     range->max);
}

static double in_us(gw_time time)
{
    return (double)time / (double)GW_US;
}

/* Completion times of the messages of one size. */
struct size_class {
    uint64_t bytes;
    struct range fct_us;
};

/* The class of a size, in ascending order; NULL when there are too many. */
static struct size_class *class_of(struct size_class classes[SIZES_MAX], uint32_t *count,
                                   uint64_t bytes)
{
    uint32_t at = 0;
    while (at < *count && classes[at].bytes < bytes)
        at++;
    if (at < *count && classes[at].bytes == bytes)
        return &classes[at];
    if (*count == SIZES_MAX)
        return NULL;
    memmove(&classes[at + 1], &classes[at], (*count - at) * sizeof(classes[0]));
    classes[at] = (struct size_class){.bytes = bytes};
    (*count)++;
    return &classes[at];
}

/* What arrived of the messages that were received, by packets, if any of them may lose a part. */
static void add_arrived(const struct gw_run_report *run, json_t *json)
{
    const struct gw_workload *workload = &run->scenario->workload;
    const struct gw_flow_result *flows = gw_sim_flows(run->sim);
    const uint32_t mtu = run->scenario->host.mtu;
    uint64_t packets = 0, missing = 0;
    bool loses = false;
    for (uint32_t i = 0; i < workload->flow_count; i++) {
        loses |= workload->flows[i].bound > 0;
        if (!flows[i].received && flows[i].outcome != GW_FLOW_DONE)
            continue;
        packets += (workload->flows[i].bytes + mtu - 1) / mtu;
        missing += flows[i].received ? flows[i].missing : flows[i].missing_at_end;
    }
    if (loses)
        json_object_set_new(json, "messages",
                            json_pack("{s:I, s:I, s:f}", "packets", (json_int_t)packets, "missing",
                                      (json_int_t)missing, "arrived",
                                      packets ? 1 - (double)missing / (double)packets : 1.0));
}

static void add_flows(const struct gw_run_report *run, json_t *json)
{
    const struct gw_workload *workload = &run->scenario->workload;
    const struct gw_flow_result *flows = gw_sim_flows(run->sim);
    struct range goodput = {0};
    struct size_class classes[SIZES_MAX];
    uint32_t class_count = 0;
    bool few = true;
    for (uint32_t i = 0; i < workload->flow_count; i++) {
        if (workload->flows[i].background || flows[i].outcome != GW_FLOW_DONE ||
            flows[i].end == flows[i].start)
            continue;
        double us = in_us(flows[i].end - flows[i].start);
        range_add(&goodput, (double)workload->flows[i].bytes * 8 / 1e3 / us);
        struct size_class *class = class_of(classes, &class_count, workload->flows[i].bytes);
        if (class)
            range_add(&class->fct_us, us);
        few = few && class;
    }
    json_object_set_new(json, "goodput_gbps", range_json(&goodput));
    json_t *sizes = json_array();
    for (uint32_t i = 0; few && i < class_count; i++)
        json_array_append_new(sizes,
                              json_pack("{s:I, s:i, s:o}", "bytes", (json_int_t)classes[i].bytes,
                                        "flows", (int)classes[i].fct_us.count, "fct_us",
                                        range_json(&classes[i].fct_us)));
    json_object_set_new(json, "sizes", sizes);
}

/* From the first start to the last end; 0 unless all flows completed. */
static gw_time collective_time(const struct gw_flow_result *flows, uint32_t count)
{
    gw_time start = GW_TIME_NEVER, end = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (flows[i].outcome != GW_FLOW_DONE)
            return 0;
        start = flows[i].start < start ? flows[i].start : start;
        end = flows[i].end > end ? flows[i].end : end;
    }
    return count ? end - start : 0;
}

static void add_collectives(const struct gw_run_report *run, json_t *json)
{
    const struct gw_workload *workload = &run->scenario->workload;
    const struct gw_flow_result *flows = gw_sim_flows(run->sim);
    json_t *list = json_array();
    for (uint32_t i = 0; i < workload->collective_count; i++) {
        const struct gw_collective_spec *spec = &workload->collectives[i];
        gw_time time = collective_time(flows + spec->first_flow, spec->flow_count);
        json_array_append_new(list, json_pack("{s:s, s:i, s:f}", "kind", spec->kind, "flows",
                                              (int)spec->flow_count, "completion_us", in_us(time)));
    }
    json_object_set_new(json, "collectives", list);
}

static void add_rtt(const struct gw_run_report *run, json_t *json)
{
    static const struct {
        const char *name;
        uint32_t per_mille;
    } points[] = {{"p1", 10},   {"p10", 100}, {"p25", 250}, {"p50", 500},
                  {"p75", 750}, {"p90", 900}, {"p99", 990}, {"max", 1000}};
    json_t *rtt = json_object();
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
        json_object_set_new(rtt, points[i].name,
                            json_real(in_us(gw_sim_rtt(run->sim, points[i].per_mille))));
    json_object_set_new(json, "rtt_us", rtt);
}

/* The windows of all running flows at each sampled time. */
static void add_cwnd(const struct gw_run_report *run, json_t *json)
{
    uint64_t count;
    const struct gw_sample *samples = gw_sim_samples(run->sim, &count);
    json_t *at_us = json_array(), *min = json_array(), *mean = json_array(), *max = json_array();
    for (uint64_t i = 0; i < count;) {
        struct range range = {0};
        gw_time at = samples[i].at;
        for (; i < count && samples[i].at == at; i++)
            if (samples[i].series == GW_SERIES_CWND)
                range_add(&range, (double)samples[i].value / 1024);
        if (range.count == 0)
            continue;
        json_array_append_new(at_us, json_real(in_us(at)));
        json_array_append_new(min, json_real(range.min));
        json_array_append_new(mean, json_real(mean_of(&range)));
        json_array_append_new(max, json_real(range.max));
    }
    json_object_set_new(
        json, "cwnd_kib",
        json_pack("{s:o, s:o, s:o, s:o}", "at_us", at_us, "min", min, "mean", mean, "max", max));
}

/* What all flows together had acknowledged between samples. */
static void add_rate(const struct gw_run_report *run, json_t *json)
{
    uint64_t count;
    const struct gw_sample *samples = gw_sim_samples(run->sim, &count);
    json_t *at_us = json_array(), *sum = json_array();
    for (uint64_t i = 0; i < count;) {
        struct range range = {0};
        gw_time at = samples[i].at;
        for (; i < count && samples[i].at == at; i++)
            if (samples[i].series == GW_SERIES_RATE)
                range_add(&range, (double)samples[i].value / 1e9);
        json_array_append_new(at_us, json_real(in_us(at)));
        json_array_append_new(sum, json_real(range.sum));
    }
    json_object_set_new(json, "rate_gbps", json_pack("{s:o, s:o}", "at_us", at_us, "sum", sum));
}

/* One series of all jobs: a list by time at jobs[].series.NAME, in the order of the samples. */
static void add_job_series(const struct gw_run_report *run, json_t *jobs, enum gw_series series,
                           const char *name)
{
    uint64_t count;
    const struct gw_sample *samples = gw_sim_samples(run->sim, &count);
    for (uint64_t i = 0; i < count; i++) {
        if (samples[i].series != series)
            continue;
        json_t *job = json_array_get(jobs, samples[i].subject);
        json_t *lists = json_object_get(job, "series");
        json_t *at_us = json_object_get(lists, "at_us");
        json_t *values = json_object_get(lists, name);
        double value = (double)samples[i].value;
        if (!values) {
            values = json_array();
            json_object_set_new(lists, name, values);
        }
        json_array_append_new(values, json_real(series == GW_SERIES_GOODPUT ? value / 1e9 : value));
        if (json_array_size(at_us) < json_array_size(values))
            json_array_append_new(at_us, json_real(in_us(samples[i].at)));
    }
}

static void add_series(const struct gw_run_report *run, json_t *json)
{
    const struct gw_metrics_cfg *metrics = &run->scenario->metrics;
    json_t *jobs = json_object_get(json, "jobs"), *job;
    size_t i;
    if (!metrics->goodput && !metrics->switch_sums && !metrics->server_sums)
        return;
    json_array_foreach(jobs, i, job)
    {
        json_object_set_new(job, "series", json_pack("{s:[]}", "at_us"));
    }
    add_job_series(run, jobs, GW_SERIES_GOODPUT, "goodput_gbps");
    add_job_series(run, jobs, GW_SERIES_SWITCH_SUMS, "switch_sums");
    add_job_series(run, jobs, GW_SERIES_SERVER_SUMS, "server_sums");
}

/* Lists by switch at series.collisions. A list is as long as series.at_us: 0 where its switch has
 * no sample. */
static void add_collisions(const struct gw_run_report *run, json_t *json)
{
    uint64_t count;
    const struct gw_sample *samples = gw_sim_samples(run->sim, &count);
    json_t *at_us = json_array(), *switches = json_object(), *values;
    const char *name;
    gw_time last = GW_TIME_NEVER;
    for (uint64_t i = 0; i < count; i++) {
        if (samples[i].series != GW_SERIES_COLLISIONS)
            continue;
        name = run->scenario->topo.nodes[samples[i].subject].name;
        if (samples[i].at != last)
            json_array_append_new(at_us, json_real(in_us(samples[i].at)));
        last = samples[i].at;
        values = json_object_get(switches, name);
        if (!values) {
            values = json_array();
            json_object_set_new(switches, name, values);
        }
        while (json_array_size(values) + 1 < json_array_size(at_us))
            json_array_append_new(values, json_integer(0));
        json_array_append_new(values, json_integer((json_int_t)samples[i].value));
    }
    json_object_foreach(switches, name, values)
    {
        while (json_array_size(values) < json_array_size(at_us))
            json_array_append_new(values, json_integer(0));
    }
    json_object_set_new(json, "series",
                        json_pack("{s:o, s:o}", "at_us", at_us, "collisions", switches));
}

void gw_measures_add(const struct gw_run_report *run, json_t *json)
{
    add_flows(run, json);
    add_arrived(run, json);
    add_collectives(run, json);
    if (run->scenario->metrics.rtt)
        add_rtt(run, json);
    if (run->scenario->metrics.sample && run->scenario->metrics.cwnd)
        add_cwnd(run, json);
    if (run->scenario->metrics.sample && run->scenario->metrics.rate)
        add_rate(run, json);
    if (run->scenario->metrics.sample)
        add_series(run, json);
    if (run->scenario->metrics.sample && run->scenario->metrics.collisions)
        add_collisions(run, json);
}
