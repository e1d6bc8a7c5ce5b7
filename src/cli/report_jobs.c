/* Training jobs in reports of simulation runs; see report_jobs.h. */
#include "cli/report_jobs.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/report_messages.h"
#include "core/job.h"

static double in_us(gw_time time)
{
    return (double)time / (double)GW_US;
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

/* From the first start of a worker to the end of the last iteration; 0 before. */
static gw_time duration(const struct gw_job_result *job)
{
    return job->end > job->start ? job->end - job->start : 0;
}

/* Iterations per second, over the whole run of the job. */
static double job_rate(const struct gw_job_result *job)
{
    return duration(job) ? job->iterations / (in_us(duration(job)) / 1e6) : 0;
}

/* Bits of gradients that each worker summed per second. */
static double job_algbw_gbps(const struct gw_job_spec *spec, const struct gw_job_result *job)
{
    return job_rate(job) * (double)spec->bytes * 8 / 1e9;
}

/* The results of all jobs, to be freed by the caller. */
static struct gw_job_result *job_results(const struct gw_run_report *run, uint32_t *count)
{
    *count = gw_sim_jobs(run->sim, NULL, 0);
    struct gw_job_result *results = calloc(*count + 1, sizeof(*results));
    if (!results)
        abort();
    gw_sim_jobs(run->sim, results, *count);
    return results;
}

/* Samples per second of all workers in the steady state; iterations of a job without samples. */
static double sample_rate(const struct gw_job_spec *spec, const struct gw_job_result *job)
{
    double samples = spec->train.batch ? (double)spec->worker_count * spec->train.batch : 1;
    return job->is_steady ? samples / (job->iteration_ps / (double)GW_S) : 0;
}

/* When the job was over; its start when it never began. */
static gw_time job_end(const struct gw_job_spec *spec, const struct gw_job_result *job)
{
    return job->end > spec->start ? job->end : spec->start;
}

static const char *model_name(const struct gw_run_report *run, const struct gw_job_spec *spec)
{
    return run->scenario->workload.plans[spec->train.plan].name;
}

/* Why a job has not completed; NULL: it has. Without host.stall, who waits for a host that is gone
 * may wait until the run ends. */
static const char *failure_of(const struct gw_job_result *job)
{
    if (job->reason)
        return gw_job_reason_text((enum gw_job_reason)job->reason);
    return job->completed < job->workers ? "unfinished when the run ended" : NULL;
}

/* What the library calls it. */
static const char *call_name(enum gw_call_kind kind)
{
    static const char *const names[GW_CALL_KINDS] = {
        [GW_CALL_ALLREDUCE] = "allreduce",
        [GW_CALL_REDUCE] = "reduce",
        [GW_CALL_BROADCAST] = "broadcast",
        [GW_CALL_ALLGATHER] = "allgather",
        [GW_CALL_REDUCE_SCATTER] = "reduce_scatter",
        [GW_CALL_BARRIER] = "barrier",
        [GW_CALL_SEND] = "send",
        [GW_CALL_RECEIVE] = "receive",
        [GW_CALL_PUSH] = "push",
        [GW_CALL_PULL] = "pull",
    };
    return names[kind];
}

static double mean_us(const struct gw_call_result *call)
{
    return call->done ? in_us(call->total) / (double)call->done : 0;
}

/* The calls of a job's list; NULL: it makes none. */
static json_t *calls_json(const struct gw_run_report *run, uint32_t job)
{
    const struct gw_workload *workload = &run->scenario->workload;
    const struct gw_job_spec *spec = &workload->jobs[job];
    const struct gw_plan *plan = &workload->plans[spec->train.plan].plan;
    struct gw_call_result call;
    json_t *json = NULL;
    for (uint32_t i = 0; gw_sim_call(run->sim, job, i, &call); i++) {
        if (!json)
            json = json_array();
        json_array_append_new(json, json_pack("{s:s, s:I, s:I, s:I, s:f, s:f}", "do",
                                              call_name(workload->calls[spec->first_call + i].kind),
                                              "bytes", (json_int_t)plan->tensors[i].bytes, "done",
                                              (json_int_t)call.done, "refused",
                                              (json_int_t)call.refused, "mean_us", mean_us(&call),
                                              "longest_us", in_us(call.longest)));
    }
    return json;
}

json_t *gw_report_jobs_json(const struct gw_run_report *run)
{
    uint32_t count;
    struct gw_job_result *results = job_results(run, &count);
    json_t *json = json_array();
    for (uint32_t i = 0; i < count; i++) {
        const struct gw_job_spec *spec = &run->scenario->workload.jobs[i];
        const struct gw_job_result *job = &results[i];
        json_array_append_new(
            json,
            json_pack("{s:i, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:s, s:i, s:i, s:i, s:f, "
                      "s:f, s:f,"
                      " s:f, s:I, s:I, s:I, s:s?, s:o*, s:o*}",
                      "id", (int)i, "model", model_name(run, spec), "samples_per_s",
                      sample_rate(spec, job), "iteration_us", job->iteration_ps / (double)GW_US,
                      "stall_us", job->stall_ps / (double)GW_US, "moving_us",
                      job->moving_ps / (double)GW_US, "bursts", job->bursts, "overlap",
                      job->overlap, "jct_us", in_us(job_end(spec, job) - spec->start),
                      "server_link_bytes", (json_int_t)job->server_bytes, "via", spec->way,
                      "workers", (int)job->workers, "completed", (int)job->completed, "iterations",
                      (int)job->iterations, "completion_us", in_us(duration(job)), "algbw_gbps",
                      job_algbw_gbps(spec, job), "aggregated_in_switch",
                      share(job->aggregated, job->fragments), "server_packets_per_fragment",
                      share(job->server_packets, job->fragments), "resent", (json_int_t)job->resent,
                      "fragments", (json_int_t)job->fragments, "left_out",
                      (json_int_t)job->left_out, "failure", failure_of(job), "calls",
                      calls_json(run, i), "messages", gw_report_messages_json(run, i)));
    }
    free(results);
    return json;
}

static void print_calls(const struct gw_run_report *run, uint32_t job)
{
    const struct gw_workload *workload = &run->scenario->workload;
    const struct gw_job_spec *spec = &workload->jobs[job];
    const struct gw_plan *plan = &workload->plans[spec->train.plan].plan;
    struct gw_call_result call;
    for (uint32_t i = 0; gw_sim_call(run->sim, job, i, &call); i++) {
        printf("               %-14s of %llu bytes: %llu done in %.2f us, at most %.2f us",
               call_name(workload->calls[spec->first_call + i].kind),
               (unsigned long long)plan->tensors[i].bytes, (unsigned long long)call.done,
               mean_us(&call), in_us(call.longest));
        if (call.refused)
            printf("; %llu refused", (unsigned long long)call.refused);
        putchar('\n');
    }
}

double gw_report_fairness(const struct gw_run_report *run)
{
    uint32_t count;
    struct gw_job_result *results = job_results(run, &count);
    double fairness = gw_sim_fairness(run->sim, results);
    free(results);
    return fairness;
}

void gw_report_jobs_text(const struct gw_run_report *run)
{
    uint32_t count;
    struct gw_job_result *results = job_results(run, &count);
    for (uint32_t i = 0; i < count; i++) {
        const struct gw_job_spec *spec = &run->scenario->workload.jobs[i];
        const struct gw_job_result *job = &results[i];
        printf("  job %-8u %s: %u of %u workers completed %u iteration%s in %.2f us, %.2f Gb/s", i,
               spec->way, job->completed, job->workers, job->iterations,
               job->iterations == 1 ? "" : "s", in_us(duration(job)), job_algbw_gbps(spec, job));
        if (job->fragments && spec->via != GW_JOB_VIA_PUSH) /* where fragments are messages */
            printf("; %.1f %% added up in switches, %.2f packets per fragment into the server's "
                   "link",
                   100 * share(job->aggregated, job->fragments),
                   share(job->server_packets, job->fragments));
        putchar('\n');
        print_calls(run, i);
        if (spec->train.batch > 0 && job->is_steady)
            printf(
                "               %s: %.1f samples/s, an iteration takes %.2f us, of which %.2f us "
                "stalled; %.0f %% of communication hidden\n",
                model_name(run, spec), sample_rate(spec, job), job->iteration_ps / (double)GW_US,
                job->stall_ps / (double)GW_US, 100 * job->overlap);
        gw_report_messages_text(run, i);
        if (job->reason)
            printf("               failed: %s (rank or address %u)\n", failure_of(job), job->about);
        else if (failure_of(job))
            printf("               %s\n", failure_of(job));
    }
    free(results);
}
