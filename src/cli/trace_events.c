/* What workers did when, as trace events; see trace_events.h. Events are written one by one. */
#include "cli/trace_events.h"

#include <errno.h>
#include <string.h>

#include "cli/cli.h"

enum {
    DIGITS = 15, /* picoseconds of a quarter of an hour */
    NAME_SIZE = 256,
};

struct writer {
    FILE *file;
    const struct gw_workload *workload;
    bool is_behind; /* another event */
    bool is_broken; /* an event has no JSON */
};

/* A worker, as events name it. */
struct track {
    uint32_t job;
    uint32_t rank;
};

static double in_us(gw_time time)
{
    return (double)time / GW_US;
}

static void put(struct writer *writer, json_t *event)
{
    fputs(writer->is_behind ? ",\n" : "\n", writer->file);
    if (json_dumpf(event, writer->file, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS)) != 0)
        writer->is_broken = true;
    json_decref(event);
    writer->is_behind = true;
}

static void put_name(struct writer *writer, const char *kind, struct track track, const char *name)
{
    put(writer, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "ph", "M", "name", kind, "pid",
                          (int)track.job, "tid", (int)track.rank, "args", "name", name));
}

/* Both ends of an asynchronous event. Equal ids of a category are one row. */
static void put_async(struct writer *writer, struct track track, const struct gw_span *span,
                      const char *name, const char *id)
{
    const char *kind = span->kind == GW_SPAN_PIECE ? "piece" : "burst";
    json_t *begin =
        json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:f}", "ph", "b", "cat", kind, "id", id, "name",
                  name, "pid", (int)track.job, "tid", (int)track.rank, "ts", in_us(span->begin));
    if (span->kind == GW_SPAN_PIECE)
        json_object_set_new(begin, "args", json_pack("{s:I}", "bytes", (json_int_t)span->bytes));
    put(writer, begin);
    put(writer,
        json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:f}", "ph", "e", "cat", kind, "id", id, "name",
                  name, "pid", (int)track.job, "tid", (int)track.rank, "ts", in_us(span->end)));
}

static const struct gw_plan *plan_of(const struct writer *writer, struct track track)
{
    const struct gw_workload *workload = writer->workload;
    return &workload->plans[workload->jobs[track.job].train.plan].plan;
}

/* What a layer is called. */
static const char *layer_name(const struct writer *writer, struct track track, uint32_t layer,
                              char text[NAME_SIZE])
{
    const char *name = plan_of(writer, track)->layers[layer].name;
    if (name)
        return name;
    snprintf(text, NAME_SIZE, "layer %u", layer);
    return text;
}

static void put_piece(struct writer *writer, struct track track, const struct gw_span *span)
{
    char text[NAME_SIZE], name[NAME_SIZE], id[NAME_SIZE];
    uint32_t layer = plan_of(writer, track)->tensors[span->index].layer;
    snprintf(name, NAME_SIZE, span->tensor_count > 1 ? "%.200s and %u more" : "%.200s",
             layer_name(writer, track, layer, text), span->tensor_count - 1);
    snprintf(id, NAME_SIZE, "job %u worker %u berth %u", track.job, track.rank, span->berth);
    put_async(writer, track, span, name, id);
}

static void put_span(struct writer *writer, struct track track, const struct gw_span *span)
{
    char text[NAME_SIZE];
    switch (span->kind) {
    case GW_SPAN_FORWARD:
    case GW_SPAN_BACKWARD:
        put(writer,
            json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:{s:i}}", "ph", "X", "cat",
                      span->kind == GW_SPAN_FORWARD ? "forward" : "backward", "name",
                      layer_name(writer, track, span->index, text), "pid", (int)track.job, "tid",
                      (int)track.rank, "ts", in_us(span->begin), "dur",
                      in_us(span->end - span->begin), "args", "iteration", (int)span->iteration));
        break;
    case GW_SPAN_PIECE:
        put_piece(writer, track, span);
        break;
    case GW_SPAN_BURST:
        snprintf(text, NAME_SIZE, "job %u worker %u", track.job, track.rank);
        put_async(writer, track, span, "burst", text);
        break;
    }
}

/* Returns how many spans there was no room for. */
static uint64_t put_worker(struct writer *writer, const struct gw_run_report *run,
                           struct track track)
{
    const struct gw_job_spec *spec = &writer->workload->jobs[track.job];
    uint32_t host = writer->workload->job_hosts[spec->first_worker + track.rank], count;
    uint64_t lost;
    char name[NAME_SIZE];
    snprintf(name, NAME_SIZE, "worker %u (%.200s)", track.rank,
             run->scenario->topo.nodes[host].name);
    put_name(writer, "thread_name", track, name);
    const struct gw_span *spans = gw_sim_spans(run->sim, track.job, track.rank, &count, &lost);
    for (uint32_t i = 0; i < count; i++)
        put_span(writer, track, &spans[i]);
    return lost;
}

bool gw_trace_events_write(const struct gw_run_report *run, FILE *file, const char *name)
{
    struct writer writer = {.file = file, .workload = &run->scenario->workload};
    uint64_t lost = 0;
    fputs("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [", file);
    for (struct track track = {0}; track.job < writer.workload->job_count; track.job++) {
        const struct gw_job_spec *spec = &writer.workload->jobs[track.job];
        char text[NAME_SIZE];
        snprintf(text, NAME_SIZE, "job %u: %.100s via %.100s", track.job,
                 writer.workload->plans[spec->train.plan].name, spec->way);
        put_name(&writer, "process_name", track, text);
        for (track.rank = 0; track.rank < spec->worker_count; track.rank++)
            lost += put_worker(&writer, run, track);
        track.rank = 0;
    }
    fputs("\n]}\n", file);
    if (lost)
        gw_complain("--timeline: %llu spans beyond the limit of a worker were left out",
                    (unsigned long long)lost);
    if (fflush(file) != 0 || ferror(file)) {
        gw_complain("--timeline %s: %s", name, strerror(errno));
        return false;
    }
    if (writer.is_broken)
        gw_complain("--timeline %s: a name is not UTF-8, or memory is short", name);
    return !writer.is_broken;
}
