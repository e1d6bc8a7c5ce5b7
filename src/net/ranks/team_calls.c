/* Calls of the team: all-reduces, which take turns, and messages. See team.h. */
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/stall.h"
#include "net/ranks/team_impl.h"

enum {
    SEGMENT = 256 << 10, /* bytes of an all-reduce that travel as one message */
    FLOWS = 4,           /* of an all-reduce at the same time */
    CALL_NONE = 0,       /* the number of our own all-reduce, by which ranks leave together */
};

static struct gw_coll_run_cfg run_cfg(const struct gw_team *comm)
{
    const struct gw_team_cfg *cfg = &comm->cfg;
    return (struct gw_coll_run_cfg){
        .rank = cfg->rank,
        .world = cfg->world,
        .lanes_max = gw_coll_run_lanes(cfg->coll, cfg->rank, cfg->world),
        .addresses = comm->addresses,
        .transport = &comm->cfg.transport,
        .path = gw_team_path_all(comm),
        .segment = SEGMENT,
        .flows = FLOWS,
        .stall = cfg->stall,
        .kernels = gw_kernels_best(gw_cpu_features()),
    };
}

uint32_t gw_team_flows(const struct gw_team *comm)
{
    struct gw_coll_run_cfg cfg = run_cfg(comm);
    uint32_t awaits = gw_coll_run_awaits(&cfg);
    return GW_TEAM_RUNS * (awaits > FLOWS ? awaits : FLOWS) + GW_TEAM_CALLS_MAX;
}

int gw_team_open_runs(struct gw_team *comm)
{
    struct gw_coll_run_cfg cfg = run_cfg(comm);
    size_t size = gw_coll_run_size(&cfg);
    if (size == 0)
        return GW_ERR_INVALID;
    for (uint32_t i = 0; i < GW_TEAM_RUNS; i++) {
        void *memory = gw_node_memory_take(size);
        if (!memory)
            return GW_ERR_NO_MEMORY;
        comm->runs[i].run = gw_coll_run_init(memory, &cfg, comm->ep);
    }
    return GW_OK;
}

void gw_team_close_runs(struct gw_team *comm)
{
    for (uint32_t i = 0; i < GW_TEAM_RUNS; i++)
        free(comm->runs[i].run);
}

int gw_team_reduce(struct gw_team *comm, uint64_t call, const struct gw_tensor *tensor, gw_time now)
{
    const struct gw_coll_call reduce = {.coll = comm->cfg.coll, .tensor = *tensor};
    uint64_t tags = gw_coll_run_tags(comm->runs[0].run, &reduce);
    if (tags > UINT64_C(1) << GW_TEAM_SEGMENT_BITS)
        return GW_ERR_INVALID;
    if (gw_index_queue_is_full(&comm->tensor_queue))
        return GW_ERR_NO_ROOM;
    comm->tensors[gw_index_queue_push(&comm->tensor_queue)] =
        (struct gw_team_tensor){.tensor = *tensor, .call = call};
    gw_team_advance(comm, now);
    return GW_OK;
}

void gw_team_leave(struct gw_team *comm, gw_time now)
{
    if (comm->state == GW_TEAM_OVER)
        return;
    comm->state = GW_TEAM_LEAVING;
    struct gw_tensor farewell = {
        .in = &comm->farewell, .out = &comm->farewell, .count = 1, .type = GW_DTYPE_I32};
    int code = gw_team_reduce(comm, CALL_NONE, &farewell, now);
    GW_ASSERT(code == GW_OK); /* no calls are in work */
}

int gw_team_move(struct gw_team *comm, const struct gw_team_message *message, gw_time now)
{
    uint32_t i = 0;
    while (i < GW_TEAM_CALLS_MAX && comm->moves[i].state != GW_TEAM_MOVE_FREE)
        i++;
    if (i == GW_TEAM_CALLS_MAX)
        return GW_ERR_NO_ROOM;
    comm->moves[i] = (struct gw_team_move){.message = *message, .state = GW_TEAM_MOVE_WAITS};
    gw_team_advance(comm, now);
    return GW_OK;
}

int gw_team_store(struct gw_team *comm, const struct gw_team_store_call *call, gw_time now)
{
    int code = gw_team_store_start(comm->store, call);
    if (!code && gw_team_takes_calls(comm))
        gw_team_store_advance(comm->store, now);
    return code;
}

static void start_move(struct gw_team *comm, struct gw_team_move *move, gw_time now)
{
    const struct gw_team_message *message = &move->message;
    const struct gw_team_rank *rank = &comm->ranks[message->rank];
    uint32_t tag = GW_TEAM_TAG_MESSAGE | message->tag;
    int code;
    if (message->is_receive) {
        code = gw_endpoint_expect(comm->ep, rank->at.address, tag, message->data, message->bytes);
    } else if (rank->is_up) {
        code =
            gw_team_send(comm, message->rank, tag, message->data, message->bytes, &move->flow, now);
    } else {
        gw_team_connect(comm, message->rank, now);
        return;
    }
    if (code)
        return;
    move->state = GW_TEAM_MOVE_RUNS;
    move->since = now;
}

static void start_tensor(struct gw_team *comm, struct gw_team_run *run, gw_time now)
{
    struct gw_team_tensor *next = &comm->tensors[gw_index_queue_pop(&comm->tensor_queue)];
    next->tensor.tag = (comm->reduces++ & GW_TEAM_CALL_MASK) << GW_TEAM_SEGMENT_BITS;
    run->call = next->call;
    run->is_running = true;
    const struct gw_coll_call reduce = {.coll = comm->cfg.coll, .tensor = next->tensor};
    int code = gw_coll_run_start(run->run, &reduce, now);
    GW_ASSERT(code == GW_OK); /* it is idle, and the tags have been counted */
}

/* Takes note of what the run has come to. */
static void look_at_run(struct gw_team *comm, struct gw_team_run *run, gw_time now)
{
    if (!run->is_running)
        return;
    gw_coll_run_expire(run->run, now);
    struct gw_coll_run_status status = gw_coll_run_status(run->run);
    if (status.state == GW_COLL_RUN_RUNNING)
        return;
    run->is_running = false;
    if (run->call == CALL_NONE)
        gw_team_post(comm, &(struct gw_team_event){.kind = GW_TEAM_LEFT});
    else if (status.state == GW_COLL_RUN_DONE)
        gw_team_post(comm, &(struct gw_team_event){.kind = GW_TEAM_DONE, .call = run->call});
    else
        gw_team_fail(comm, status.reason, status.about, now);
}

bool gw_team_takes_calls(const struct gw_team *comm)
{
    return comm->state == GW_TEAM_RUNNING || comm->state == GW_TEAM_LEAVING;
}

void gw_team_advance(struct gw_team *comm, gw_time now)
{
    if (!gw_team_takes_calls(comm))
        return;
    for (uint32_t i = 0; i < GW_TEAM_RUNS; i++) {
        look_at_run(comm, &comm->runs[i], now);
        while (comm->state != GW_TEAM_OVER && !comm->runs[i].is_running &&
               comm->tensor_queue.count) {
            start_tensor(comm, &comm->runs[i], now);
            look_at_run(comm, &comm->runs[i], now);
        }
    }
    for (uint32_t i = 0; i < GW_TEAM_CALLS_MAX && comm->state != GW_TEAM_OVER; i++)
        if (comm->moves[i].state == GW_TEAM_MOVE_WAITS)
            start_move(comm, &comm->moves[i], now);
}

/* The message that an event of the endpoint is about, or NULL. */
static struct gw_team_move *find_move(struct gw_team *comm, const struct gw_event *event)
{
    for (uint32_t i = 0; i < GW_TEAM_CALLS_MAX; i++) {
        struct gw_team_move *move = &comm->moves[i];
        const struct gw_team_message *message = &move->message;
        if (move->state != GW_TEAM_MOVE_RUNS ||
            message->is_receive != (event->kind == GW_EVENT_RECEIVED))
            continue;
        if (message->is_receive ? comm->ranks[message->rank].at.address == event->peer &&
                                      (GW_TEAM_TAG_MESSAGE | message->tag) == event->tag
                                : move->flow == event->flow)
            return move;
    }
    return NULL;
}

void gw_team_calls_event(struct gw_team *comm, const struct gw_event *event, gw_time now)
{
    bool is_known = false;
    for (uint32_t i = 0; i < GW_TEAM_RUNS; i++)
        is_known |= gw_coll_run_event(comm->runs[i].run, event, now);
    struct gw_team_move *move = is_known ? NULL : find_move(comm, event);
    if (!move)
        return;
    move->state = GW_TEAM_MOVE_FREE;
    gw_team_post(comm, &(struct gw_team_event){.kind = GW_TEAM_DONE,
                                               .call = move->message.call,
                                               .bytes = event->bytes});
}

bool gw_team_has_calls(const struct gw_team *comm)
{
    bool has = comm->tensor_queue.count != 0;
    for (uint32_t i = 0; i < GW_TEAM_RUNS; i++)
        has |= comm->runs[i].is_running;
    for (uint32_t i = 0; i < GW_TEAM_CALLS_MAX; i++)
        has |= comm->moves[i].state != GW_TEAM_MOVE_FREE;
    return has || gw_team_store_has_calls(comm->store);
}

uint32_t gw_team_overdue(const struct gw_team *comm, gw_time now)
{
    for (uint32_t i = 0; i < GW_TEAM_CALLS_MAX; i++) {
        const struct gw_team_move *move = &comm->moves[i];
        const struct gw_team_message *message = &move->message;
        if (move->state == GW_TEAM_MOVE_RUNS && message->is_receive &&
            gw_stall_is_over(move->since, comm->cfg.stall, now) &&
            gw_endpoint_expects(comm->ep, comm->ranks[message->rank].at.address,
                                GW_TEAM_TAG_MESSAGE | message->tag))
            return message->rank;
    }
    return comm->cfg.world;
}

void gw_team_drop_calls(struct gw_team *comm)
{
    for (uint32_t i = 0; i < GW_TEAM_RUNS; i++) {
        gw_coll_run_fini(comm->runs[i].run);
        comm->runs[i].is_running = false;
    }
    for (uint32_t i = 0; i < GW_TEAM_CALLS_MAX; i++) {
        struct gw_team_move *move = &comm->moves[i];
        if (move->state == GW_TEAM_MOVE_RUNS)
            gw_endpoint_forget(comm->ep, move->message.data, move->message.bytes);
        move->state = GW_TEAM_MOVE_FREE;
    }
    gw_index_queue_clear(&comm->tensor_queue);
    gw_team_store_drop(comm->store);
}
