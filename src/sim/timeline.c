/* What members did when; see timeline.h. */
#include "sim/timeline.h"

#include <stdlib.h>

#include "topo/memory.h"

enum {
    SPANS_MAX = 1 << 20, /* of a member: 48 MB, and 2,000 iterations of ResNet-50 */
};

struct gw_sim_timeline {
    struct gw_span *spans;
    uint32_t count, room;
    uint64_t lost;
    gw_time burst;   /* when the one under way began */
    gw_time begun[]; /* pieces, by berth */
};

struct gw_sim_timeline *gw_sim_timeline_open(const struct gw_sim *sim, const struct gw_sim_job *job)
{
    if (!sim->options.timeline)
        return NULL;
    return gw_memory_zeroed(1, sizeof(struct gw_sim_timeline) + job->room * sizeof(gw_time));
}

void gw_sim_timeline_close(struct gw_sim_timeline *timeline)
{
    if (timeline)
        free(timeline->spans);
    free(timeline);
}

/* What takes no time is not worth a span. */
static void add(const struct gw_sim_member *member, struct gw_span span)
{
    struct gw_sim_timeline *timeline = member->timeline;
    if (span.end <= span.begin)
        return;
    if (timeline->count == SPANS_MAX) {
        timeline->lost++;
        return;
    }
    span.iteration = member->begun - 1;
    timeline->spans = gw_memory_grow(timeline->spans, &timeline->room, timeline->count + 1,
                                     sizeof(*timeline->spans));
    timeline->spans[timeline->count++] = span;
}

void gw_sim_timeline_compute(const struct gw_sim_member *member, gw_time now)
{
    bool is_forward = member->phase == GW_SIM_FORWARD;
    if (member->timeline)
        add(member, (struct gw_span){.begin = now,
                                     .end = member->layer_end,
                                     .kind = is_forward ? GW_SPAN_FORWARD : GW_SPAN_BACKWARD,
                                     .index = member->layer});
}

void gw_sim_timeline_moves(const struct gw_sim_member *member, uint32_t berth, uint32_t moving,
                           gw_time now)
{
    struct gw_sim_timeline *timeline = member->timeline;
    if (!timeline)
        return;
    timeline->begun[berth] = now;
    if (moving == 1)
        timeline->burst = now;
}

void gw_sim_timeline_moved(const struct gw_sim_member *member, uint32_t berth, uint32_t moving,
                           gw_time now)
{
    const struct gw_sim_timeline *timeline = member->timeline;
    const struct gw_piece *piece = &member->pieces[berth];
    if (!timeline)
        return;
    add(member, (struct gw_span){.begin = timeline->begun[berth],
                                 .end = now,
                                 .kind = GW_SPAN_PIECE,
                                 .index = piece->first_tensor,
                                 .tensor_count = piece->tensor_count,
                                 .berth = berth,
                                 .bytes = piece->bytes});
    if (moving == 0)
        add(member, (struct gw_span){.begin = timeline->burst, .end = now, .kind = GW_SPAN_BURST});
}

/* The last span of computation, behind which there may be those of pieces, is cut. */
void gw_sim_timeline_end(const struct gw_sim_member *member, gw_time now)
{
    struct gw_sim_timeline *timeline = member->timeline;
    for (uint32_t i = timeline ? timeline->count : 0; i-- > 0;) {
        struct gw_span *span = &timeline->spans[i];
        if (span->kind != GW_SPAN_FORWARD && span->kind != GW_SPAN_BACKWARD)
            continue;
        span->end = span->end < now ? span->end : now;
        return;
    }
}

const struct gw_span *gw_sim_spans(const struct gw_sim *sim, uint32_t job, uint32_t rank,
                                   uint32_t *count, uint64_t *lost)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, job);
    const struct gw_sim_timeline *timeline = gw_sim_member_of(sim, spec, rank)->timeline;
    *count = timeline ? timeline->count : 0;
    *lost = timeline ? timeline->lost : 0;
    return timeline ? timeline->spans : NULL;
}
