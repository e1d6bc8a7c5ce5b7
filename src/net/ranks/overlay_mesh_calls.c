/* Calls of the mesh: all-reduces, which take turns, and messages. See overlay_mesh.h. */
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "net/ranks/overlay_mesh_impl.h"

enum {
    SEGMENT = 256 << 10, /* bytes of an all-reduce that travel as one message */
    FLOWS = 4,           /* of an all-reduce at the same time */
    CALL_NONE = 0,       /* the number of our own all-reduce, by which ranks leave together */
};

static struct gw_coll_run_cfg run_cfg(const struct gw_overlay_mesh *mesh)
{
    const struct gw_overlay_mesh_cfg *cfg = &mesh->cfg;
    return (struct gw_coll_run_cfg){
        .coll = cfg->coll,
        .rank = cfg->rank,
        .world = cfg->world,
        .addresses = mesh->addresses,
        .transport = &mesh->cfg.transport,
        .path = gw_mesh_path(mesh),
        .segment = SEGMENT,
        .flows = FLOWS,
        .stall = cfg->patience,
        .kernels = gw_kernels_best(gw_cpu_features()),
    };
}

uint32_t gw_mesh_flows(const struct gw_overlay_mesh *mesh)
{
    struct gw_coll_run_cfg cfg = run_cfg(mesh);
    uint32_t awaits = gw_coll_run_awaits(&cfg);
    return GW_MESH_RUNS * (awaits > FLOWS ? awaits : FLOWS) + GW_MESH_CALLS_MAX;
}

int gw_mesh_open_runs(struct gw_overlay_mesh *mesh)
{
    struct gw_coll_run_cfg cfg = run_cfg(mesh);
    size_t size = gw_coll_run_size(&cfg);
    if (size == 0)
        return GW_ERR_INVALID;
    for (uint32_t i = 0; i < GW_MESH_RUNS; i++) {
        void *memory = gw_node_memory_take(size);
        if (!memory)
            return GW_ERR_NO_MEMORY;
        mesh->runs[i].run = gw_coll_run_init(memory, &cfg, mesh->ep);
    }
    return GW_OK;
}

void gw_mesh_close_runs(struct gw_overlay_mesh *mesh)
{
    for (uint32_t i = 0; i < GW_MESH_RUNS; i++)
        free(mesh->runs[i].run);
}

int gw_overlay_mesh_reduce(struct gw_overlay_mesh *mesh, uint64_t call,
                           const struct gw_tensor *tensor, gw_time now)
{
    uint64_t tags = gw_coll_run_tags(mesh->runs[0].run, tensor->count, tensor->type);
    if (tags > UINT64_C(1) << GW_MESH_SEGMENT_BITS)
        return GW_ERR_INVALID;
    if (mesh->tensor_count == GW_MESH_CALLS_MAX)
        return GW_ERR_NO_ROOM;
    uint32_t at = (mesh->tensor_head + mesh->tensor_count++) % GW_MESH_CALLS_MAX;
    mesh->tensors[at] = (struct gw_mesh_tensor){.tensor = *tensor, .call = call};
    gw_mesh_advance(mesh, now);
    return GW_OK;
}

void gw_overlay_mesh_leave(struct gw_overlay_mesh *mesh, gw_time now)
{
    if (mesh->state == GW_MESH_OVER)
        return;
    mesh->state = GW_MESH_LEAVING;
    struct gw_tensor farewell = {
        .in = &mesh->farewell, .out = &mesh->farewell, .count = 1, .type = GW_DTYPE_I32};
    int code = gw_overlay_mesh_reduce(mesh, CALL_NONE, &farewell, now);
    GW_ASSERT(code == GW_OK); /* no calls are in work */
}

int gw_overlay_mesh_move(struct gw_overlay_mesh *mesh, const struct gw_mesh_message *message,
                         gw_time now)
{
    uint32_t i = 0;
    while (i < GW_MESH_CALLS_MAX && mesh->moves[i].state != GW_MESH_MOVE_FREE)
        i++;
    if (i == GW_MESH_CALLS_MAX)
        return GW_ERR_NO_ROOM;
    mesh->moves[i] = (struct gw_mesh_move){.message = *message, .state = GW_MESH_MOVE_WAITS};
    gw_mesh_advance(mesh, now);
    return GW_OK;
}

static void start_move(struct gw_overlay_mesh *mesh, struct gw_mesh_move *move, gw_time now)
{
    const struct gw_mesh_message *message = &move->message;
    const struct gw_mesh_rank *rank = &mesh->ranks[message->rank];
    uint32_t tag = GW_MESH_TAG_MESSAGE | message->tag;
    int code;
    if (message->is_receive) {
        code = gw_endpoint_expect(mesh->ep, rank->at.address, tag, message->data, message->bytes);
    } else if (rank->is_up) {
        code =
            gw_mesh_send(mesh, message->rank, tag, message->data, message->bytes, &move->flow, now);
    } else {
        gw_mesh_connect(mesh, message->rank, now);
        return;
    }
    if (code)
        return;
    move->state = GW_MESH_MOVE_RUNS;
    move->since = now;
}

static void start_tensor(struct gw_overlay_mesh *mesh, struct gw_mesh_run *run, gw_time now)
{
    struct gw_mesh_tensor *next = &mesh->tensors[mesh->tensor_head];
    mesh->tensor_head = (mesh->tensor_head + 1) % GW_MESH_CALLS_MAX;
    mesh->tensor_count--;
    next->tensor.tag = (mesh->reduces++ & GW_MESH_CALL_MASK) << GW_MESH_SEGMENT_BITS;
    run->call = next->call;
    run->is_running = true;
    int code = gw_coll_run_start(run->run, &next->tensor, now);
    GW_ASSERT(code == GW_OK); /* it is idle, and the tags have been counted */
}

/* Takes note of what the run has come to. */
static void look_at_run(struct gw_overlay_mesh *mesh, struct gw_mesh_run *run, gw_time now)
{
    if (!run->is_running)
        return;
    gw_coll_run_expire(run->run, now);
    struct gw_coll_run_status status = gw_coll_run_status(run->run);
    if (status.state == GW_COLL_RUN_RUNNING)
        return;
    run->is_running = false;
    if (run->call == CALL_NONE)
        gw_mesh_post(mesh, &(struct gw_mesh_event){.kind = GW_MESH_LEFT});
    else if (status.state == GW_COLL_RUN_DONE)
        gw_mesh_post(mesh, &(struct gw_mesh_event){.kind = GW_MESH_DONE, .call = run->call});
    else
        gw_mesh_fail(mesh, status.reason, status.about, now);
}

void gw_mesh_advance(struct gw_overlay_mesh *mesh, gw_time now)
{
    if (mesh->state != GW_MESH_RUNNING && mesh->state != GW_MESH_LEAVING)
        return;
    for (uint32_t i = 0; i < GW_MESH_RUNS; i++) {
        look_at_run(mesh, &mesh->runs[i], now);
        while (mesh->state != GW_MESH_OVER && !mesh->runs[i].is_running && mesh->tensor_count) {
            start_tensor(mesh, &mesh->runs[i], now);
            look_at_run(mesh, &mesh->runs[i], now);
        }
    }
    for (uint32_t i = 0; i < GW_MESH_CALLS_MAX && mesh->state != GW_MESH_OVER; i++)
        if (mesh->moves[i].state == GW_MESH_MOVE_WAITS)
            start_move(mesh, &mesh->moves[i], now);
}

/* The message that an event of the endpoint is about, or NULL. */
static struct gw_mesh_move *find_move(struct gw_overlay_mesh *mesh, const struct gw_event *event)
{
    for (uint32_t i = 0; i < GW_MESH_CALLS_MAX; i++) {
        struct gw_mesh_move *move = &mesh->moves[i];
        const struct gw_mesh_message *message = &move->message;
        if (move->state != GW_MESH_MOVE_RUNS ||
            message->is_receive != (event->kind == GW_EVENT_RECEIVED))
            continue;
        if (message->is_receive ? mesh->ranks[message->rank].at.address == event->peer &&
                                      (GW_MESH_TAG_MESSAGE | message->tag) == event->tag
                                : move->flow == event->flow)
            return move;
    }
    return NULL;
}

void gw_mesh_calls_event(struct gw_overlay_mesh *mesh, const struct gw_event *event, gw_time now)
{
    bool is_known = false;
    for (uint32_t i = 0; i < GW_MESH_RUNS; i++)
        is_known |= gw_coll_run_event(mesh->runs[i].run, event, now);
    struct gw_mesh_move *move = is_known ? NULL : find_move(mesh, event);
    if (!move)
        return;
    move->state = GW_MESH_MOVE_FREE;
    gw_mesh_post(mesh, &(struct gw_mesh_event){.kind = GW_MESH_DONE,
                                               .call = move->message.call,
                                               .bytes = event->bytes});
}

bool gw_mesh_has_calls(const struct gw_overlay_mesh *mesh)
{
    bool has = mesh->tensor_count != 0;
    for (uint32_t i = 0; i < GW_MESH_RUNS; i++)
        has |= mesh->runs[i].is_running;
    for (uint32_t i = 0; i < GW_MESH_CALLS_MAX; i++)
        has |= mesh->moves[i].state != GW_MESH_MOVE_FREE;
    return has || gw_store_has_calls(mesh->store);
}

uint32_t gw_mesh_overdue(const struct gw_overlay_mesh *mesh, gw_time now)
{
    for (uint32_t i = 0; i < GW_MESH_CALLS_MAX; i++) {
        const struct gw_mesh_move *move = &mesh->moves[i];
        const struct gw_mesh_message *message = &move->message;
        if (move->state == GW_MESH_MOVE_RUNS && message->is_receive &&
            now - move->since >= mesh->cfg.patience &&
            gw_endpoint_expects(mesh->ep, mesh->ranks[message->rank].at.address,
                                GW_MESH_TAG_MESSAGE | message->tag))
            return message->rank;
    }
    return mesh->cfg.world;
}

void gw_mesh_drop_calls(struct gw_overlay_mesh *mesh)
{
    for (uint32_t i = 0; i < GW_MESH_RUNS; i++) {
        gw_coll_run_fini(mesh->runs[i].run);
        mesh->runs[i].is_running = false;
    }
    for (uint32_t i = 0; i < GW_MESH_CALLS_MAX; i++) {
        struct gw_mesh_move *move = &mesh->moves[i];
        if (move->state == GW_MESH_MOVE_RUNS)
            gw_endpoint_forget(mesh->ep, move->message.data, move->message.bytes);
        move->state = GW_MESH_MOVE_FREE;
    }
    mesh->tensor_count = 0;
    gw_store_drop(mesh->store);
}
