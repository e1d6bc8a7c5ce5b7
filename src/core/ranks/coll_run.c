/* A run's life: its memory, the calls that it begins and ends, and events; see coll_run.h. */
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/stall.h"
#include "core/ranks/coll_parts.h"

enum {
    SEGMENT_STEP = 4, /* bytes */
};

static bool cfg_is_valid(const struct gw_coll_run_cfg *cfg)
{
    return cfg->rank < cfg->world && cfg->lanes_max <= cfg->world && cfg->segment >= SEGMENT_STEP &&
           cfg->segment <= GW_COLL_RUN_SEGMENT_MAX && cfg->segment % SEGMENT_STEP == 0 &&
           cfg->flows >= 1 && cfg->flows <= GW_COLL_RUN_FLOWS_MAX && cfg->transport &&
           cfg->class <= GW_CLASS_DATA_MAX && cfg->path.rate_bps != 0 &&
           (!cfg->parts_transport || (cfg->mtu != 0 && cfg->mtu <= cfg->segment));
}

static struct gw_coll_seat seat_of(const struct gw_coll_run_cfg *cfg)
{
    return (struct gw_coll_seat){.rank = cfg->rank, .world = cfg->world};
}

static uint32_t lanes_of(const struct gw_coll_run_cfg *cfg)
{
    return cfg->lanes_max ? cfg->lanes_max : 1;
}

uint32_t gw_coll_run_lanes(const struct gw_coll_ops *coll, uint32_t rank, uint32_t world)
{
    return gw_coll_lanes(coll, rank, world, NULL, 0);
}

/* Of the call itself. */
static uint32_t own_awaits(const struct gw_coll_run_cfg *cfg)
{
    return lanes_of(cfg) * cfg->flows;
}

uint32_t gw_coll_run_awaits(const struct gw_coll_run_cfg *cfg)
{
    const struct gw_coll_run_cfg agreement = gw_coll_agreement_cfg(cfg);
    return own_awaits(cfg) + (cfg->parts_transport ? own_awaits(&agreement) : 0);
}

uint32_t gw_coll_run_sends(const struct gw_coll_run_cfg *cfg)
{
    return cfg->parts_transport ? 2 * cfg->flows : cfg->flows;
}

/* Places of all lanes and copies. Who combines apart from its own values has one lane. */
static uint32_t places_of(const struct gw_coll_run_cfg *cfg)
{
    uint32_t copies = cfg->parts_transport ? 0 : cfg->flows;
    uint32_t all = own_awaits(cfg) + copies, apart = GW_COLL_PLACES * cfg->flows;
    return all > apart ? all : apart;
}

static size_t segments_size(const struct gw_coll_run_cfg *cfg)
{
    return !cfg->kernels ? 0 : places_of(cfg) * gw_aligned(cfg->segment);
}

/* Carves the tables out of the arena, behind the run itself. */
static void run_carve(struct gw_coll_run *run, const struct gw_coll_run_cfg *cfg,
                      struct gw_arena *arena)
{
    run->lanes = gw_arena_take(arena, lanes_of(cfg) * sizeof(*run->lanes));
    run->places = gw_arena_take(arena, places_of(cfg) * sizeof(*run->places));
    run->segments = gw_arena_take(arena, segments_size(cfg));
    gw_coll_parts_carve(run, cfg, places_of(cfg), arena);
}

size_t gw_coll_run_size(const struct gw_coll_run_cfg *cfg)
{
    if (!cfg_is_valid(cfg))
        return 0;
    struct gw_coll_run run;
    struct gw_arena arena = {.base = NULL};
    gw_arena_take(&arena, sizeof(run));
    run_carve(&run, cfg, &arena);
    return arena.used;
}

struct gw_coll_run *gw_coll_run_init(void *memory, const struct gw_coll_run_cfg *cfg,
                                     struct gw_endpoint *endpoint)
{
    GW_ASSERT(cfg_is_valid(cfg));
    GW_ASSERT((uintptr_t)memory % GW_CACHE_LINE == 0);
    struct gw_arena arena = {.base = memory};
    struct gw_coll_run *run = gw_arena_take(&arena, sizeof(*run));
    *run = (struct gw_coll_run){.ep = endpoint, .cfg = *cfg};
    run_carve(run, cfg, &arena);
    if (cfg->parts_transport)
        gw_coll_parts_init(run);
    return run;
}

/* Leaves nothing in the endpoint that works on the caller's memory or on the run's. */
static void let_go(struct gw_coll_run *run)
{
    const struct gw_coll_seat seat = seat_of(&run->cfg);
    if (run->call.parts && run->parts.agrees)
        gw_coll_run_fini(run->parts.agreement);
    if (!run->cfg.kernels)
        return;
    gw_endpoint_forget(run->ep, run->segments, segments_size(&run->cfg));
    if (run->exchanges && gw_coll_run_is_through(run, run->applied))
        return; /* what is sent are copies, and the tensor may be the caller's already */
    gw_endpoint_forget(run->ep, run->call.tensor.in, gw_coll_call_in_size(&run->call, seat));
    gw_endpoint_forget(run->ep, run->call.tensor.out, gw_coll_call_out_size(&run->call, seat));
}

void gw_coll_run_fail(struct gw_coll_run *run, enum gw_job_reason reason, uint32_t about)
{
    let_go(run);
    run->status =
        (struct gw_coll_run_status){.state = GW_COLL_RUN_FAILED, .reason = reason, .about = about};
}

void gw_coll_run_set_path(struct gw_coll_run *run, const struct gw_path *path)
{
    uint64_t window = run->cfg.path.window, memory = run->cfg.path.memory;
    run->cfg.path = *path;
    run->cfg.path.window = window;
    run->cfg.path.memory = memory;
    if (run->parts.agreement)
        gw_coll_run_set_path(run->parts.agreement, path);
}

void gw_coll_run_set_notice(struct gw_coll_run *run, const struct gw_notice_terms *notice)
{
    run->cfg.notice = *notice;
    if (run->parts.agreement)
        run->parts.agreement->cfg.notice = *notice;
}

void gw_coll_run_fini(struct gw_coll_run *run)
{
    if (run->status.state == GW_COLL_RUN_RUNNING)
        let_go(run);
    run->status.state = GW_COLL_RUN_IDLE;
}

uint64_t gw_coll_run_tags(const struct gw_coll_run *run, const struct gw_coll_call *call)
{
    return gw_coll_call_tags(call, run->cfg.world, run->cfg.segment, run->cfg.flows);
}

/* Only what is complete is divided. */
static void set_mergers(struct gw_coll_run *run)
{
    const struct gw_tensor *tensor = &run->call.tensor;
    struct gw_merger merger = {.kernels = run->cfg.kernels,
                               .how = {.op = tensor->op, .type = tensor->type, .shares = 1}};
    run->mergers[GW_COLL_COMBINE] = merger;
    merger.how.shares = tensor->op == GW_OP_AVERAGE ? run->cfg.world : 1;
    run->mergers[GW_COLL_COMPLETE] = merger;
}

static int start(struct gw_coll_run *run, const struct gw_coll_call *call, bool is_held,
                 gw_time now)
{
    const struct gw_coll_run_cfg *cfg = &run->cfg;
    const struct gw_coll_seat seat = seat_of(cfg);
    struct gw_coll_row row;
    if (run->status.state == GW_COLL_RUN_RUNNING ||
        !gw_coll_call_is_valid(call, seat, cfg->kernels != NULL) ||
        gw_coll_call_row(call, seat, cfg->segment, cfg->flows, &row) != GW_OK ||
        (call->parts && !gw_coll_parts_are_valid(run, call)))
        return GW_ERR_INVALID;
    run->lane_count = gw_coll_lanes(call->coll, cfg->rank, cfg->world, run->lanes, lanes_of(cfg));
    if (run->lane_count > lanes_of(cfg))
        return GW_ERR_INVALID;
    run->status = (struct gw_coll_run_status){.state = GW_COLL_RUN_RUNNING};
    run->call = *call;
    set_mergers(run);
    run->row = row;
    run->tags = (uint32_t)gw_coll_run_tags(run, call);
    run->exchanges = call->coll->exchanges && cfg->kernels;
    run->copied = NULL;
    run->keeps_own = gw_coll_keeps_own(call->coll->kind);
    run->place_count = run->keeps_own ? GW_COLL_PLACES * cfg->flows : cfg->flows;
    GW_ASSERT(run->lane_count * run->place_count + (run->exchanges ? cfg->flows : 0) <=
              places_of(cfg));
    memset(run->places, 0, places_of(cfg) * sizeof(*run->places));
    run->awaited = run->sending = run->sent_count = 0;
    run->applied = run->sent = (struct gw_coll_cursor){0};
    run->sent_to = cfg->rank;
    run->progress_at = now;
    run->is_held = is_held;
    if (cfg->kernels && !is_held)
        gw_coll_call_begin(call, seat);
    if (call->parts) {
        gw_coll_parts_begin(run);
        gw_coll_agreement_begin(run, now);
    }
    gw_coll_run_advance(run, now);
    return GW_OK;
}

int gw_coll_run_start(struct gw_coll_run *run, const struct gw_coll_call *call, gw_time now)
{
    return start(run, call, false, now);
}

int gw_coll_run_hold(struct gw_coll_run *run, const struct gw_coll_call *call, gw_time now)
{
    return start(run, call, true, now);
}

/* Only a worker's tensor fails with a reason; its tags are not those of messages. */
static bool is_own(const struct gw_coll_run *run, const struct gw_event *event)
{
    bool is_message = event->kind == GW_EVENT_SENT || event->kind == GW_EVENT_RECEIVED ||
                      (event->kind == GW_EVENT_FAILED && event->reason == GW_JOB_OK);
    return is_message && event->tag - run->row.tag < run->tags;
}

static uint32_t rank_of(const struct gw_coll_run *run, uint32_t address)
{
    uint32_t rank = 0;
    while (rank + 1 < run->cfg.world && run->cfg.addresses[rank] != address)
        rank++;
    return rank;
}

/* The message that has arrived, if it may; or NULL. Whoever sends without payload needs none. */
static struct gw_coll_place *find_awaited(const struct gw_coll_run *run,
                                          const struct gw_event *event)
{
    struct gw_coll_place *place = gw_coll_run_place(run, event->tag);
    if (!place || place->state != GW_COLL_PLACE_AWAITED)
        return NULL;
    uint32_t peer = run->lanes[(place - run->places) / run->place_count].peer;
    return run->cfg.addresses[peer] == event->peer ? place : NULL;
}

static void sent(struct gw_coll_run *run, const struct gw_event *event)
{
    uint32_t i = 0;
    while (i < run->sending && run->under_way[i].flow != event->flow)
        i++;
    if (i == run->sending)
        return; /* another's, of the same tag */
    if (run->under_way[i].place)
        run->under_way[i].place->state = GW_COLL_PLACE_FREE;
    run->under_way[i] = run->under_way[--run->sending];
    run->cfg.path.window = event->window; /* messages are too short to find it out each time */
    run->cfg.path.memory = event->memory;
}

/* Whether a message of so many bytes is the one that has arrived. */
static bool fits(const struct gw_coll_run *run, uint64_t bytes, const struct gw_event *event)
{
    return run->call.parts ? gw_coll_parts_fit(run, bytes, event) : bytes == event->bytes;
}

/* With payload; false: it has another number of bytes. */
static bool take(struct gw_coll_run *run, const struct gw_event *event)
{
    struct gw_coll_place *place = find_awaited(run, event);
    if (!place)
        return true;
    if (!fits(run, place->bytes, event))
        return false;
    place->state = GW_COLL_PLACE_ARRIVED;
    place->is_merged = event->is_merged;
    return true;
}

/* The same without. */
static bool count(struct gw_coll_run *run, uint32_t rank, const struct gw_event *event)
{
    struct gw_coll_lane *lane = gw_coll_run_lane(run, rank);
    struct gw_coll_message message;
    uint32_t place;
    if (!lane || !gw_coll_lane_find(&run->row, lane, event->tag, &message, &place))
        return true;
    if (!fits(run, message.bytes, event))
        return false;
    gw_coll_lane_count(&run->row, lane, place);
    run->status.missing += message.merge == GW_COLL_COPY ? event->missing : 0;
    return true;
}

static void received(struct gw_coll_run *run, const struct gw_event *event)
{
    uint32_t rank = rank_of(run, event->peer);
    if (!(run->cfg.kernels ? take(run, event) : count(run, rank, event)))
        gw_coll_run_fail(run, GW_JOB_MISMATCH, rank);
    else if (event->overflows)
        gw_coll_run_fail(run, GW_JOB_OVERFLOW, run->cfg.rank);
}

static void take_event(struct gw_coll_run *run, const struct gw_event *event, gw_time now)
{
    run->progress_at = now;
    if (event->kind == GW_EVENT_FAILED)
        gw_coll_run_fail(run, event->is_refused ? GW_JOB_MISMATCH : GW_JOB_LOST,
                         rank_of(run, event->peer));
    else if (event->kind == GW_EVENT_SENT)
        sent(run, event);
    else
        received(run, event);
}

bool gw_coll_run_event(struct gw_coll_run *run, const struct gw_event *event, gw_time now)
{
    bool owns = is_own(run, event);
    if (owns && run->status.state == GW_COLL_RUN_RUNNING)
        take_event(run, event, now);
    if (owns && run->call.parts && run->parts.agrees)
        gw_coll_run_event(run->parts.agreement, event, now);
    if (run->status.state == GW_COLL_RUN_RUNNING)
        gw_coll_run_advance(run, now);
    return owns;
}

gw_time gw_coll_run_deadline(const struct gw_coll_run *run)
{
    bool is_running = run->status.state == GW_COLL_RUN_RUNNING;
    return is_running ? gw_stall_at(run->progress_at, run->cfg.stall) : GW_TIME_NEVER;
}

void gw_coll_run_expire(struct gw_coll_run *run, gw_time now)
{
    bool is_running = run->status.state == GW_COLL_RUN_RUNNING;
    if (!is_running || !gw_stall_is_over(run->progress_at, run->cfg.stall, now))
        return;
    struct gw_coll_message next;
    uint32_t about = run->call.parts ? gw_coll_agreement_awaited(run) : run->cfg.world;
    if (gw_coll_row_next(&run->row, GW_COLL_RECEIVED, &run->applied, &next))
        about = next.peer;
    gw_coll_run_fail(run, GW_JOB_STALLED, about < run->cfg.world ? about : run->sent_to);
}

bool gw_coll_run_is_summed(const struct gw_coll_run *run)
{
    enum gw_coll_run_state state = run->status.state;
    return state == GW_COLL_RUN_DONE ||
           (state == GW_COLL_RUN_RUNNING && gw_coll_run_is_through(run, run->applied) &&
            (!run->call.parts || run->parts.is_ended));
}

bool gw_coll_run_trails(const struct gw_coll_run *run)
{
    bool is_summed = run->status.state == GW_COLL_RUN_RUNNING && gw_coll_run_is_summed(run);
    bool has_sent = run->exchanges && gw_coll_run_is_through(run, run->sent);
    for (uint32_t i = 0; is_summed && has_sent && i < run->sending; i++) {
        struct gw_flow_info info;
        const struct gw_coll_sending *message = &run->under_way[i];
        has_sent = !gw_endpoint_flow_info(run->ep, message->flow, &info) ||
                   info.acked_bytes + info.in_flight_bytes == message->place->bytes;
    }
    return is_summed && has_sent;
}

struct gw_coll_run_status gw_coll_run_status(const struct gw_coll_run *run)
{
    return run->status;
}
