/*
 * Runs schedules of all-reduce over flows; see coll_run.h. That segments follow one another through
 * the steps is the segmentation of Pjesivac-Grbovic et al. (Cluster Computing 2007).
 *
 * Each worker sends the messages of a call in the order of coll_row.h, and adds them in this order;
 * they may arrive in any.
 *
 * Memory that a sum is to replace is posted while flows may still send what was there before. That
 * is safe by the contract of schedules: the sum contains what was there, so all of it has arrived
 * where it was sent, and what the flow sends again until it knows is dropped there as a duplicate.
 *
 * A receiver answers for a message that is complete as long as it has not needed the place for as
 * many others. So a sender is never more than twice `flows` messages ahead of its oldest that is
 * not acknowledged: whose last ACK was lost would else ask for ever.
 *
 * Without payload no memory is posted, and nothing holds a sender back but its own `flows`.
 *
 * Invariants: `applied` <= the `next` of every lane; what is awaited is a message between these
 * two; `sending` <= flows.
 */
#include "core/ranks/coll_run.h"

#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/stall.h"
#include "core/ranks/coll_row.h"

_Static_assert(2 * GW_COLL_RUN_FLOWS_MAX <= GW_COLL_LATER_MAX, "lanes count so far ahead");

enum {
    ELEMENT_SIZE_MAX = 4, /* bytes */
};

enum awaited_state {
    AWAITED_NONE,    /* posting a message moves it on */
    AWAITED_POSTED,  /* the message's arrival moves it on */
    AWAITED_ARRIVED, /* the message's turn moves it on */
};

/* A message that is awaited, or room for one. */
struct awaited {
    uint64_t bytes;
    uint32_t tag;
    uint8_t state; /* enum awaited_state */
};

/* A message that has been sent and is not acknowledged. */
struct sending {
    uint32_t flow;
    uint32_t number; /* of the messages of this call, in the order of sending */
};

struct gw_coll_run {
    struct gw_endpoint *ep;
    struct gw_coll_run_cfg cfg;
    struct gw_coll_run_status status;
    struct gw_coll_row row; /* of the call */
    struct gw_coll_lane *lanes;
    struct awaited *awaited; /* cfg.flows of each lane */
    unsigned char *scratch;  /* a segment for each of them, for what is to be added */
    uint32_t lane_count;
    uint32_t last_reduce; /* the step that completes sums */
    struct gw_tensor tensor;
    struct gw_coll_cursor applied; /* first message received that is not in the tensor yet */
    struct gw_coll_cursor sent;    /* first message never sent */
    struct sending under_way[GW_COLL_RUN_FLOWS_MAX];
    uint32_t sending;    /* of these */
    uint32_t sent_count; /* messages, ever */
    uint32_t sent_to;    /* rank that got the last one */
    gw_time progress_at;
};

/* The row of a call without elements: who the peers are does not depend on these. */
static struct gw_coll_row row_of(const struct gw_coll_run_cfg *cfg)
{
    return (struct gw_coll_row){.coll = cfg->coll,
                                .rank = cfg->rank,
                                .world = cfg->world,
                                .steps = cfg->world > 1 ? cfg->coll->steps(cfg->world) : 0};
}

static uint32_t lanes_of(const struct gw_coll_run_cfg *cfg)
{
    struct gw_coll_row row = row_of(cfg);
    return gw_coll_lanes(&row, NULL);
}

static bool cfg_is_valid(const struct gw_coll_run_cfg *cfg)
{
    return cfg->rank < cfg->world && (cfg->world == 1 || cfg->coll->allows(cfg->world)) &&
           cfg->segment >= ELEMENT_SIZE_MAX && cfg->segment <= GW_COLL_RUN_SEGMENT_MAX &&
           cfg->segment % ELEMENT_SIZE_MAX == 0 && cfg->flows >= 1 &&
           cfg->flows <= GW_COLL_RUN_FLOWS_MAX && cfg->transport &&
           cfg->class <= GW_CLASS_DATA_MAX && cfg->path.rate_bps != 0;
}

uint32_t gw_coll_run_awaits(const struct gw_coll_run_cfg *cfg)
{
    return lanes_of(cfg) * cfg->flows;
}

static size_t scratch_size(const struct gw_coll_run_cfg *cfg)
{
    return !cfg->kernels ? 0 : gw_coll_run_awaits(cfg) * gw_aligned(cfg->segment);
}

/* Carves the tables out of the arena, behind the run itself. */
static void run_carve(struct gw_coll_run *run, const struct gw_coll_run_cfg *cfg,
                      struct gw_arena *arena)
{
    run->lanes = gw_arena_take(arena, lanes_of(cfg) * sizeof(*run->lanes));
    run->awaited = gw_arena_take(arena, gw_coll_run_awaits(cfg) * sizeof(*run->awaited));
    run->scratch = gw_arena_take(arena, scratch_size(cfg));
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
    *run = (struct gw_coll_run){.ep = endpoint, .cfg = *cfg, .row = row_of(cfg)};
    run_carve(run, cfg, &arena);
    run->lane_count = gw_coll_lanes(&run->row, run->lanes);
    for (uint32_t step = 0; step < run->row.steps; step++)
        if (cfg->coll->step(cfg->rank, cfg->world, step, 0).op == GW_COLL_REDUCE)
            run->last_reduce = step;
    return run;
}

static uint64_t tensor_size(const struct gw_coll_run *run)
{
    return run->tensor.count * gw_dtype_size(run->tensor.type);
}

/* Leaves nothing in the endpoint that works on the tensor or on the run's memory. */
static void let_go(struct gw_coll_run *run)
{
    if (!run->cfg.kernels)
        return;
    gw_endpoint_forget(run->ep, run->tensor.out, tensor_size(run));
    gw_endpoint_forget(run->ep, run->scratch, scratch_size(&run->cfg));
}

void gw_coll_run_set_path(struct gw_coll_run *run, const struct gw_path *path)
{
    uint64_t window = run->cfg.path.window, memory = run->cfg.path.memory;
    run->cfg.path = *path;
    run->cfg.path.window = window;
    run->cfg.path.memory = memory;
}

void gw_coll_run_set_notice(struct gw_coll_run *run, const struct gw_notice_terms *notice)
{
    run->cfg.notice = *notice;
}

void gw_coll_run_fini(struct gw_coll_run *run)
{
    if (run->status.state == GW_COLL_RUN_RUNNING)
        let_go(run);
}

static void fail(struct gw_coll_run *run, enum gw_job_reason reason, uint32_t about)
{
    let_go(run);
    run->status =
        (struct gw_coll_run_status){.state = GW_COLL_RUN_FAILED, .reason = reason, .about = about};
}

static unsigned char *element(const struct gw_coll_run *run, uint64_t index)
{
    return (unsigned char *)run->tensor.out + index * gw_dtype_size(run->tensor.type);
}

static unsigned char *scratch_of(const struct gw_coll_run *run, const struct awaited *awaited)
{
    return run->scratch + (size_t)(awaited - run->awaited) * gw_aligned(run->cfg.segment);
}

/* The message `tag` among those awaited, or NULL: it is not posted. */
static struct awaited *find_awaited(const struct gw_coll_run *run, uint32_t tag)
{
    for (uint32_t i = 0; i < run->lane_count * run->cfg.flows; i++)
        if (run->awaited[i].state != AWAITED_NONE && run->awaited[i].tag == tag)
            return &run->awaited[i];
    return NULL;
}

/* The lane of a rank, or NULL: it sends nothing. */
static struct gw_coll_lane *lane_of(const struct gw_coll_run *run, uint32_t peer)
{
    uint32_t i = 0;
    while (i < run->lane_count && run->lanes[i].peer != peer)
        i++;
    return i < run->lane_count ? &run->lanes[i] : NULL;
}

/* With payload: takes the message if it has arrived. False: it has not, or the call has failed. */
static bool apply_memory(struct gw_coll_run *run, const struct gw_coll_message *message)
{
    struct awaited *awaited = find_awaited(run, message->tag);
    if (!awaited || awaited->state != AWAITED_ARRIVED)
        return false;
    bool is_complete = run->applied.step == run->last_reduce;
    if (message->op == GW_COLL_REDUCE &&
        !run->cfg.kernels->reduce[run->tensor.type](
            element(run, message->first), scratch_of(run, awaited), message->count,
            run->tensor.op == GW_OP_AVERAGE && is_complete ? run->cfg.world : 1)) {
        fail(run, GW_JOB_OVERFLOW, run->cfg.rank);
        return false;
    }
    awaited->state = AWAITED_NONE;
    return true;
}

/* Adds what has arrived, as far as it is its turn. What replaces is in its place already. */
static void apply_messages(struct gw_coll_run *run)
{
    struct gw_coll_message message;
    while (gw_coll_row_next(&run->row, GW_COLL_RECEIVED, &run->applied, &message) &&
           (run->cfg.kernels ? apply_memory(run, &message)
                             : gw_coll_lane_has(lane_of(run, message.peer), run->applied)))
        run->applied.segment++;
}

/* Posts memory for the peers' next messages. Without room for it, another event tries again. */
static void post_memory(struct gw_coll_run *run)
{
    struct gw_coll_message message;
    for (uint32_t i = 0; run->cfg.kernels && i < run->lane_count * run->cfg.flows; i++) {
        struct awaited *awaited = &run->awaited[i];
        struct gw_coll_lane *lane = &run->lanes[i / run->cfg.flows];
        if (awaited->state != AWAITED_NONE || !gw_coll_lane_next(&run->row, lane, &message))
            continue;
        void *memory =
            message.op == GW_COLL_REDUCE ? scratch_of(run, awaited) : element(run, message.first);
        if (gw_endpoint_expect(run->ep, run->cfg.addresses[message.peer], message.tag, memory,
                               message.bytes) != GW_OK)
            return;
        *awaited =
            (struct awaited){.bytes = message.bytes, .tag = message.tag, .state = AWAITED_POSTED};
        lane->next.segment++;
    }
}

/* May another message be sent, before those under way are acknowledged? */
static bool may_send(const struct gw_coll_run *run)
{
    for (uint32_t i = 0; i < run->sending; i++)
        if (run->sent_count - run->under_way[i].number >= 2 * run->cfg.flows)
            return false;
    return run->sending < run->cfg.flows;
}

/* Sends what is ready. Without room for it, another event tries again. */
static void send_messages(struct gw_coll_run *run, gw_time now)
{
    struct gw_coll_message message;
    while (may_send(run) && gw_coll_row_next(&run->row, GW_COLL_SENT, &run->sent, &message) &&
           !gw_coll_row_brings(&run->row, run->applied, run->sent.step, &message)) {
        uint32_t flow;
        struct gw_send send = {
            .peer = run->cfg.addresses[message.peer],
            .bytes = message.bytes,
            .data = run->cfg.kernels ? element(run, message.first) : NULL,
            .tag = message.tag,
            .class = run->cfg.class,
            .transport = run->cfg.transport,
            .path = run->cfg.path,
            .notice = run->cfg.notice,
        };
        int error = gw_endpoint_send(run->ep, &send, &flow, now);
        if (error == GW_ERR_NO_ROOM)
            return;
        GW_ASSERT(error == GW_OK);
        run->under_way[run->sending++] = (struct sending){flow, run->sent_count++};
        run->sent_to = message.peer;
        run->sent.segment++;
    }
}

/* Does all that can be done. */
static void advance(struct gw_coll_run *run, gw_time now)
{
    apply_messages(run);
    if (run->status.state != GW_COLL_RUN_RUNNING)
        return;
    post_memory(run);
    send_messages(run, now);
    if (run->applied.step == run->row.steps && run->sent.step == run->row.steps &&
        run->sending == 0)
        run->status.state = GW_COLL_RUN_DONE;
}

/* Segments of the largest step: equal on all workers, whatever part of it is theirs. */
static uint64_t segments_of(const struct gw_coll_run *run, uint64_t count, enum gw_dtype type)
{
    const struct gw_coll_run_cfg *cfg = &run->cfg;
    uint32_t values = cfg->segment / gw_dtype_size(type);
    uint64_t largest = cfg->world > 1 ? cfg->coll->largest(cfg->world, count) : 0;
    return largest / values + (largest % values != 0);
}

uint64_t gw_coll_run_tags(const struct gw_coll_run *run, uint64_t count, enum gw_dtype type)
{
    return run->row.steps * segments_of(run, count, type);
}

int gw_coll_run_start(struct gw_coll_run *run, const struct gw_tensor *tensor, gw_time now)
{
    bool fits = run->cfg.kernels ? tensor->in && tensor->out : !tensor->in && !tensor->out;
    if (run->status.state == GW_COLL_RUN_RUNNING || !gw_op_by_switch(tensor->op, tensor->type) ||
        (tensor->count && !fits))
        return GW_ERR_INVALID;
    uint64_t segments = segments_of(run, tensor->count, tensor->type);
    if (segments > UINT32_MAX || segments * run->row.steps > UINT32_MAX)
        return GW_ERR_INVALID;
    run->status = (struct gw_coll_run_status){.state = GW_COLL_RUN_RUNNING};
    run->tensor = *tensor;
    run->row.count = tensor->count;
    run->row.element_size = gw_dtype_size(tensor->type);
    run->row.segment_values = run->cfg.segment / run->row.element_size;
    run->row.segments = (uint32_t)segments;
    run->row.tag = tensor->tag;
    run->applied = run->sent = (struct gw_coll_cursor){0};
    run->sending = run->sent_count = 0;
    run->sent_to = run->cfg.rank;
    run->progress_at = now;
    for (uint32_t i = 0; i < run->lane_count; i++)
        run->lanes[i] = (struct gw_coll_lane){.peer = run->lanes[i].peer};
    memset(run->awaited, 0, gw_coll_run_awaits(&run->cfg) * sizeof(*run->awaited));
    if (run->cfg.kernels && tensor->in != tensor->out)
        memcpy(tensor->out, tensor->in, tensor_size(run));
    advance(run, now);
    return GW_OK;
}

/* Only a worker's tensor fails with a reason; its tags are not those of messages. */
static bool is_own(const struct gw_coll_run *run, const struct gw_event *event)
{
    bool is_message = event->kind == GW_EVENT_SENT || event->kind == GW_EVENT_RECEIVED ||
                      (event->kind == GW_EVENT_FAILED && event->reason == GW_JOB_OK);
    return is_message && event->tag - run->row.tag < run->row.steps * run->row.segments;
}

static uint32_t rank_of(const struct gw_coll_run *run, uint32_t address)
{
    uint32_t rank = 0;
    while (rank + 1 < run->cfg.world && run->cfg.addresses[rank] != address)
        rank++;
    return rank;
}

/* The message that has arrived, if it may; or NULL. Whoever sends without payload needs none. */
static struct awaited *find_posted(const struct gw_coll_run *run, const struct gw_event *event)
{
    struct awaited *awaited = find_awaited(run, event->tag);
    if (!awaited || awaited->state != AWAITED_POSTED)
        return NULL;
    uint32_t peer = run->lanes[(awaited - run->awaited) / run->cfg.flows].peer;
    return run->cfg.addresses[peer] == event->peer ? awaited : NULL;
}

static void sent(struct gw_coll_run *run, const struct gw_event *event)
{
    uint32_t i = 0;
    while (i < run->sending && run->under_way[i].flow != event->flow)
        i++;
    if (i == run->sending)
        return; /* another's, of the same tag */
    run->under_way[i] = run->under_way[--run->sending];
    run->cfg.path.window = event->window; /* messages are too short to find it out each time */
    run->cfg.path.memory = event->memory;
}

static void received(struct gw_coll_run *run, const struct gw_event *event)
{
    uint32_t rank = rank_of(run, event->peer);
    bool fits = true;
    if (run->cfg.kernels) {
        struct awaited *awaited = find_posted(run, event);
        fits = !awaited || awaited->bytes == event->bytes;
        if (awaited && fits)
            awaited->state = AWAITED_ARRIVED;
    } else {
        struct gw_coll_lane *lane = lane_of(run, rank);
        fits = !lane || gw_coll_lane_count(&run->row, lane, event->tag, event->bytes);
    }
    if (!fits)
        fail(run, GW_JOB_MISMATCH, rank);
}

static void take_event(struct gw_coll_run *run, const struct gw_event *event, gw_time now)
{
    run->progress_at = now;
    if (event->kind == GW_EVENT_FAILED)
        fail(run, GW_JOB_LOST, rank_of(run, event->peer));
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
    if (run->status.state == GW_COLL_RUN_RUNNING)
        advance(run, now);
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
    bool awaits = gw_coll_row_next(&run->row, GW_COLL_RECEIVED, &run->applied, &next);
    fail(run, GW_JOB_LOST, awaits ? next.peer : run->sent_to);
}

bool gw_coll_run_is_summed(const struct gw_coll_run *run)
{
    enum gw_coll_run_state state = run->status.state;
    return state == GW_COLL_RUN_DONE ||
           (state == GW_COLL_RUN_RUNNING && run->applied.step == run->row.steps);
}

struct gw_coll_run_status gw_coll_run_status(const struct gw_coll_run *run)
{
    return run->status;
}
