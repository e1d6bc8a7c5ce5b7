/*
 * The mesh: how ranks meet, find ways to each other, and fail together. Calls are in
 * overlay_mesh_calls.c; see overlay_mesh.h.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "net/ranks/overlay_mesh_impl.h"

enum {
    SPAN_MAX = 1024,
    CONTROL_MAX = 4096,
    ACK_EVERY = 16,
    RX_FLOWS_DONE = 4096, /* messages that are complete and still answer if the last ACK was lost */
    HOPS = 2,
};

/* A word in the number of the job, so that workers with and without a server do not meet. */
#define MESH_JOB UINT32_C(0x6d657368)

#define BRTT     GW_MS /* between processes: scheduling included */
#define RTO_TEXT "20"  /* base RTTs: the overlay's timeout */

int gw_overlay_mesh_transport(const char *cc, const char *lb, bool by_switch,
                              struct gw_transport *transport, char *error)
{
    const struct gw_algo *algo;
    if (gw_transport_choose(transport, cc) != GW_OK)
        return gw_net_fail(error, GW_ERR_UNKNOWN, "no congestion control is called %s", cc);
    transport->lb = (const struct gw_lb_ops *)(algo = gw_registry_find(&gw_lb_registry, lb));
    if (!algo)
        return gw_net_fail(error, GW_ERR_UNKNOWN, "no load balancing is called %s", lb);
    if (transport->lb->spread != GW_SPREAD_HASH)
        return gw_net_fail(error, GW_ERR_INVALID, "%s needs switches that work with it", lb);
    gw_algo_defaults(algo, transport->lb_cfg.bytes);
    algo = gw_registry_find(&gw_loss_registry, by_switch ? "trim" : "timeout");
    transport->loss = (const struct gw_loss_ops *)algo;
    gw_algo_defaults(algo, transport->loss_cfg.bytes);
    int code = gw_algo_set(algo, transport->loss_cfg.bytes, "rto", RTO_TEXT);
    GW_ASSERT(code == GW_OK);
    return GW_OK;
}

struct gw_path gw_mesh_path(const struct gw_overlay_mesh *mesh)
{
    uint64_t rate_bps = mesh->cfg.rate_bps;
    return (struct gw_path){
        .brtt = BRTT,
        .brtt_max = BRTT,
        .rate_bps = rate_bps,
        .bdp = (uint32_t)(rate_bps / 8 * (BRTT / GW_US) / 1000000),
        .mtu = mesh->cfg.mtu,
        .hdr = gw_udp_overhead(gw_station_udp(mesh->cfg.station)),
        .hops = HOPS,
        .trims = mesh->cfg.switch_ != NULL,
    };
}

/* What this rank grants to flows on credit, whatever its own flows are; at the rate of the links.
 */
static struct gw_grant_plan grant_plan(const struct gw_overlay_mesh *mesh)
{
    const struct gw_algo *eqds = gw_registry_find(&gw_grant_registry, "eqds");
    const struct gw_path path = gw_mesh_path(mesh);
    union gw_algo_cfg options;
    struct gw_grant_plan plan;
    gw_algo_defaults(eqds, options.bytes);
    ((const struct gw_grant_ops *)eqds)->plan(options.bytes, &path, &plan);
    return plan;
}

static int open_endpoint(struct gw_overlay_mesh *mesh)
{
    const struct gw_overlay_mesh_cfg *cfg = &mesh->cfg;
    uint32_t flows = gw_mesh_flows(mesh) + cfg->world + gw_store_flows(cfg->world);
    uint32_t hdr = gw_udp_overhead(gw_station_udp(cfg->station));
    struct gw_endpoint_cfg endpoint = {
        .address = cfg->address,
        .port_count = 1,
        .tx_flows_max = flows,
        .rx_flows_max = 2 * flows + RX_FLOWS_DONE,
        .span_max = SPAN_MAX,
        .control_max = CONTROL_MAX,
        .expect_max = flows + 1 + gw_store_awaits(cfg->world),
        .mtu = cfg->mtu,
        .hdr = hdr,
        .ack_every = ACK_EVERY,
        .ack_delay = GW_MS,
        .train = gw_overlay_train(hdr, cfg->mtu),
        .stall = cfg->patience,
        .seed = cfg->seed,
        .generation = (uint16_t)cfg->seed,
        .grant = grant_plan(mesh),
        .pool = gw_station_pool(cfg->station),
    };
    size_t size = gw_endpoint_size(&endpoint);
    void *memory = size ? gw_node_memory_take(size) : NULL;
    if (!memory)
        return size ? GW_ERR_NO_MEMORY : GW_ERR_INVALID;
    mesh->ep = gw_endpoint_init(memory, &endpoint);
    mesh->node = gw_loop_add(gw_station_loop(cfg->station), gw_endpoint_node(mesh->ep));
    return GW_OK;
}

static struct gw_greeting greeting_of(const struct gw_overlay_mesh *mesh)
{
    return (struct gw_greeting){
        .job = mesh->cfg.job, .world = mesh->cfg.world, .rank = mesh->cfg.rank, .is_direct = true};
}

int gw_mesh_dial_home(struct gw_overlay_mesh *mesh, char *error)
{
    struct gw_greeting greeting = greeting_of(mesh);
    int dial = gw_station_dial(mesh->cfg.station, mesh->cfg.home, &greeting, error);
    if (dial < 0)
        return dial;
    mesh->dials[dial] = 0;
    mesh->ranks[0].is_dialled = true;
    return GW_OK;
}

int gw_overlay_mesh_open(const struct gw_overlay_mesh_cfg *cfg, struct gw_overlay_mesh **result,
                         char *error)
{
    struct gw_overlay_mesh *mesh = calloc(1, sizeof(*mesh));
    if (!mesh)
        return gw_net_fail(error, GW_ERR_NO_MEMORY, "out of memory");
    mesh->cfg = *cfg;
    mesh->cfg.job ^= MESH_JOB;
    mesh->switch_dial = GW_MESH_DIAL_NONE;
    mesh->ranks = calloc(cfg->world, sizeof(*mesh->ranks));
    mesh->addresses = calloc(cfg->world, sizeof(*mesh->addresses));
    mesh->table = calloc(cfg->world, GW_RANK_TABLE_ENTRY_SIZE);
    int code = mesh->ranks && mesh->addresses && mesh->table ? GW_OK : GW_ERR_NO_MEMORY;
    if (!code)
        code = open_endpoint(mesh);
    if (!code)
        code = gw_mesh_open_runs(mesh);
    if (!code)
        code = gw_store_open(mesh, &mesh->store);
    if (code)
        gw_net_fail(error, code, "cannot make a worker of %u ranks: %s", cfg->world,
                    gw_error_message(code));
    if (!code && cfg->switch_)
        code = gw_mesh_dial_switch(mesh, error);
    else if (!code && cfg->rank != 0)
        code = gw_mesh_dial_home(mesh, error);
    if (code) {
        gw_overlay_mesh_close(mesh);
        return code;
    }
    mesh->ranks[cfg->rank].at.address = cfg->address;
    mesh->progress_at = gw_loop_now(gw_station_loop(cfg->station));
    *result = mesh;
    return GW_OK;
}

void gw_overlay_mesh_close(struct gw_overlay_mesh *mesh)
{
    gw_mesh_close_runs(mesh);
    gw_store_close(mesh->store);
    free(mesh->ep);
    free(mesh->ranks);
    free(mesh->addresses);
    free(mesh->table);
    free(mesh);
}

void gw_mesh_post(struct gw_overlay_mesh *mesh, const struct gw_mesh_event *event)
{
    const uint32_t room = sizeof(mesh->events) / sizeof(mesh->events[0]);
    GW_ASSERT(mesh->event_count < room); /* more than there can be calls */
    mesh->events[(mesh->event_head + mesh->event_count++) % room] = *event;
}

/* The words for a failure of the whole job. */
static void describe(struct gw_overlay_mesh *mesh, enum gw_job_reason reason, uint32_t about)
{
    double seconds = (double)mesh->cfg.patience / GW_S;
    char *text = mesh->text;
    if (reason == GW_JOB_STALLED && about == mesh->cfg.rank && gw_mesh_is_cut_off(mesh))
        snprintf(text, GW_MESH_TEXT_MAX, "the switch at %s does not answer", mesh->cfg.switch_);
    else if (reason == GW_JOB_LOST)
        snprintf(text, GW_MESH_TEXT_MAX, "rank %u is lost", about);
    else if (reason == GW_JOB_SILENT && about == 0)
        snprintf(text, GW_MESH_TEXT_MAX, "no answer from rank 0 at %s for %g s", mesh->cfg.home,
                 seconds);
    else if (reason == GW_JOB_SILENT && about == mesh->cfg.world)
        snprintf(text, GW_MESH_TEXT_MAX,
                 "the job did not begin within %g s: not all of its %u ranks have come to %s",
                 seconds, about, mesh->cfg.home);
    else if (reason == GW_JOB_SILENT)
        snprintf(text, GW_MESH_TEXT_MAX,
                 "the job did not begin within %g s: rank %u and perhaps others have not come",
                 seconds, about);
    else if (reason == GW_JOB_STALLED)
        snprintf(text, GW_MESH_TEXT_MAX, "nothing came from rank %u for %g s", about, seconds);
    else if (reason == GW_JOB_OVERFLOW)
        snprintf(text, GW_MESH_TEXT_MAX, "a sum of int32 does not fit an int32 (rank %u found it)",
                 about);
    else if (reason == GW_JOB_MISMATCH)
        snprintf(text, GW_MESH_TEXT_MAX, "rank %u reduces a tensor of another size", about);
    else
        snprintf(text, GW_MESH_TEXT_MAX, "rank %u: %s", about, gw_job_reason_text(reason));
}

int gw_mesh_send(struct gw_overlay_mesh *mesh, uint32_t rank, uint32_t tag, const void *data,
                 uint64_t bytes, uint32_t *flow, gw_time now)
{
    struct gw_send send = {
        .peer = mesh->ranks[rank].at.address,
        .bytes = bytes,
        .data = data,
        .tag = tag,
        .transport = &mesh->cfg.transport,
        .path = gw_mesh_path(mesh),
    };
    int code = gw_endpoint_send(mesh->ep, &send, flow, now);
    GW_ASSERT(code == GW_OK || code == GW_ERR_NO_ROOM);
    return code;
}

/* Whether we have failed because nothing came, and not because a session has ended. */
static bool is_silence(const struct gw_overlay_mesh *mesh, enum gw_job_reason reason,
                       uint32_t about)
{
    return reason == GW_JOB_SILENT || reason == GW_JOB_STALLED ||
           (reason == GW_JOB_LOST && about < mesh->cfg.world && mesh->ranks[about].is_up);
}

void gw_mesh_fail(struct gw_overlay_mesh *mesh, enum gw_job_reason reason, uint32_t about,
                  gw_time now)
{
    uint32_t flow;
    if (mesh->state == GW_MESH_OVER)
        return;
    mesh->state = GW_MESH_OVER;
    gw_mesh_drop_calls(mesh);
    if (gw_mesh_is_cut_off(mesh) && is_silence(mesh, reason, about)) {
        reason = GW_JOB_STALLED; /* whoever was awaited, it is our switch that does not answer */
        about = mesh->cfg.rank;
    }
    describe(mesh, reason, about);
    gw_mesh_go_direct(mesh);
    mesh->failure = (struct gw_mesh_failure){htonl(reason), htonl(about)};
    for (uint32_t rank = 0; rank < mesh->cfg.world; rank++)
        if (mesh->ranks[rank].is_up && !(reason == GW_JOB_LOST && rank == about))
            mesh->failures_left += gw_mesh_send(mesh, rank, GW_MESH_TAG_FAILURE, &mesh->failure,
                                                sizeof(mesh->failure), &flow, now) == GW_OK;
    gw_mesh_post(mesh, &(struct gw_mesh_event){.kind = GW_MESH_FAILED, .reason = reason});
}

void gw_overlay_mesh_abort(struct gw_overlay_mesh *mesh, gw_time now)
{
    gw_mesh_fail(mesh, GW_JOB_LOST, mesh->cfg.rank, now);
}

void gw_mesh_connect(struct gw_overlay_mesh *mesh, uint32_t number, gw_time now)
{
    struct gw_mesh_rank *rank = &mesh->ranks[number];
    struct gw_greeting greeting = greeting_of(mesh);
    char name[GW_SOCK_NAME_MAX];
    if (rank->is_up || rank->is_dialled)
        return;
    gw_sock_format(&rank->at.addr, name, sizeof(name));
    int dial = gw_neighbours_dial(gw_station_neighbours(mesh->cfg.station), &rank->at.addr, name,
                                  &greeting, now);
    if (dial < 0) {
        gw_mesh_fail(mesh, GW_JOB_LIMIT, mesh->cfg.rank, now);
        return;
    }
    mesh->dials[dial] = (int)number;
    rank->is_dialled = true;
}

/* Whether this rank's all-reduces need the other one. */
static bool is_needed(const struct gw_overlay_mesh *mesh, uint32_t rank)
{
    const struct gw_overlay_mesh_cfg *cfg = &mesh->cfg;
    uint32_t steps = cfg->world > 1 ? cfg->coll->steps(cfg->world) : 0;
    for (uint32_t i = 0; i < steps; i++) {
        struct gw_coll_step step = cfg->coll->step(cfg->rank, cfg->world, i, 0);
        if (step.to == rank || step.from == rank)
            return true;
    }
    return false;
}

/* The table is known: finds the ways that all-reduces need. */
static void connect_all(struct gw_overlay_mesh *mesh, gw_time now)
{
    mesh->state = GW_MESH_CONNECTING;
    for (uint32_t rank = 0; rank < mesh->cfg.world; rank++)
        mesh->addresses[rank] = mesh->ranks[rank].at.address;
    for (uint32_t rank = 0; rank < mesh->cfg.rank; rank++)
        if (is_needed(mesh, rank))
            gw_mesh_connect(mesh, rank, now);
}

/* Rank 0: all have come. */
static void send_tables(struct gw_overlay_mesh *mesh, gw_time now)
{
    uint32_t flow;
    for (uint32_t rank = 1; rank < mesh->cfg.world; rank++)
        gw_rank_table_write(&mesh->ranks[rank].at,
                            mesh->table + (size_t)rank * GW_RANK_TABLE_ENTRY_SIZE);
    for (uint32_t rank = 1; rank < mesh->cfg.world; rank++) {
        int code = gw_mesh_send(mesh, rank, GW_MESH_TAG_TABLE, mesh->table,
                                (uint64_t)mesh->cfg.world * GW_RANK_TABLE_ENTRY_SIZE, &flow, now);
        GW_ASSERT(code == GW_OK); /* there is a flow for each rank */
    }
    connect_all(mesh, now);
}

/* Who has the address; `world`: nobody. */
static uint32_t rank_of(const struct gw_overlay_mesh *mesh, uint32_t address)
{
    uint32_t rank = 0;
    while (rank < mesh->cfg.world && mesh->ranks[rank].at.address != address)
        rank++;
    return rank;
}

/* Whether another rank has the address. */
static bool is_taken(const struct gw_overlay_mesh *mesh, uint32_t address, uint32_t rank)
{
    uint32_t owner = rank_of(mesh, address);
    return owner < mesh->cfg.world && owner != rank;
}

static void take_table(struct gw_overlay_mesh *mesh, uint64_t bytes, gw_time now)
{
    bool is_sound = bytes == (uint64_t)mesh->cfg.world * GW_RANK_TABLE_ENTRY_SIZE;
    for (uint32_t rank = 1; rank < mesh->cfg.world && is_sound; rank++) {
        struct gw_rank_table_entry *at = &mesh->ranks[rank].at;
        if (rank != mesh->cfg.rank)
            is_sound =
                gw_rank_table_read(mesh->table + (size_t)rank * GW_RANK_TABLE_ENTRY_SIZE, at) &&
                !is_taken(mesh, at->address, rank);
    }
    if (is_sound) {
        connect_all(mesh, now);
        return;
    }
    gw_mesh_fail(mesh, GW_JOB_MISMATCH, 0, now);
    snprintf(mesh->text, sizeof(mesh->text), "rank 0 sent a table of ranks that makes no sense");
}

/* There is a way to the rank; what it may tell us has a place. */
static void way_up(struct gw_overlay_mesh *mesh, uint32_t number,
                   const struct gw_neighbour_event *event)
{
    struct gw_mesh_rank *rank = &mesh->ranks[number];
    struct gw_loop *loop = gw_station_loop(mesh->cfg.station);
    struct gw_loop_port port = {mesh->node, 0};
    bool is_new = rank->at.address != event->said.address || !rank->is_up;
    if (is_taken(mesh, event->said.address, number)) {
        gw_mesh_fail(mesh, GW_JOB_LOST, number, gw_loop_now(loop));
        return;
    }
    rank->at.address = event->said.address;
    if (event->dial < 0)
        rank->at.addr = event->addr;
    rank->is_up = true;
    rank->peer = event->peer;
    gw_loop_link(loop, port, event->peer, false);
    int code =
        mesh->cfg.switch_ ? GW_OK : gw_loop_direct(loop, port, rank->at.address, event->peer);
    if (is_new) /* what was posted for an earlier session */
        gw_endpoint_forget(mesh->ep, &rank->failure, sizeof(rank->failure));
    if (is_new && number == 0)
        gw_endpoint_forget(mesh->ep, mesh->table,
                           (uint64_t)mesh->cfg.world * GW_RANK_TABLE_ENTRY_SIZE);
    if (!code && is_new)
        code = gw_endpoint_expect(mesh->ep, rank->at.address, GW_MESH_TAG_FAILURE, &rank->failure,
                                  sizeof(rank->failure));
    if (!code && is_new && number == 0)
        code = gw_endpoint_expect(mesh->ep, rank->at.address, GW_MESH_TAG_TABLE, mesh->table,
                                  (uint64_t)mesh->cfg.world * GW_RANK_TABLE_ENTRY_SIZE);
    if (code)
        gw_mesh_fail(mesh, GW_JOB_LIMIT, mesh->cfg.rank, gw_loop_now(loop));
}

/* Who has dialled us: one of ours, or refused. */
static void take_in(struct gw_overlay_mesh *mesh, const struct gw_neighbour_event *event)
{
    const struct gw_attach_msg *said = &event->said;
    bool is_ours = said->job == mesh->cfg.job && said->world == mesh->cfg.world &&
                   said->role == GW_ATTACH_HOST;
    if (!is_ours) {
        gw_station_refuse(mesh->cfg.station, event->peer, GW_ATTACH_JOB);
        return;
    }
    struct gw_mesh_rank *rank = said->rank < mesh->cfg.world ? &mesh->ranks[said->rank] : NULL;
    bool is_free = rank && said->rank != mesh->cfg.rank &&
                   !is_taken(mesh, said->address, said->rank) &&
                   (!rank->is_up || rank->at.address == said->address) &&
                   (mesh->state == GW_MESH_MEETING || rank->at.address == 0 ||
                    rank->at.address == said->address);
    if (is_free)
        way_up(mesh, said->rank, event);
    else
        gw_station_refuse(mesh->cfg.station, event->peer, GW_ATTACH_TAKEN);
}

static void way_down(struct gw_overlay_mesh *mesh, const struct gw_neighbour_event *event,
                     gw_time now)
{
    for (uint32_t rank = 0; rank < mesh->cfg.world; rank++) {
        if (!mesh->ranks[rank].is_up || mesh->ranks[rank].peer != event->peer)
            continue;
        mesh->ranks[rank].is_up = false;
        if (mesh->state == GW_MESH_LEAVING) {
            mesh->state = GW_MESH_OVER; /* it has gone because nobody needs anything any more */
            gw_mesh_drop_calls(mesh);
            gw_mesh_post(mesh, &(struct gw_mesh_event){.kind = GW_MESH_LEFT});
        } else if (mesh->state != GW_MESH_MEETING) {
            gw_mesh_fail(mesh, GW_JOB_LOST, rank, now);
        }
    }
}

void gw_overlay_mesh_neighbour(struct gw_overlay_mesh *mesh, const struct gw_neighbour_event *event)
{
    gw_time now = gw_loop_now(gw_station_loop(mesh->cfg.station));
    if (event->dial >= 0 && event->dial == mesh->switch_dial) {
        gw_mesh_switch_event(mesh, event, now);
    } else if (event->kind == GW_NEIGHBOUR_DOWN) {
        way_down(mesh, event, now);
    } else if (event->kind == GW_NEIGHBOUR_UP && event->dial < 0) {
        take_in(mesh, event);
    } else if (event->kind == GW_NEIGHBOUR_UP) {
        way_up(mesh, (uint32_t)mesh->dials[event->dial], event);
    } else if (mesh->state != GW_MESH_OVER && mesh->state != GW_MESH_LEAVING) {
        gw_mesh_fail(mesh, GW_JOB_RANK, (uint32_t)mesh->dials[event->dial], now);
        snprintf(mesh->text, sizeof(mesh->text), "%s refuses us: %s",
                 gw_neighbours_dial_name(gw_station_neighbours(mesh->cfg.station), event->dial),
                 gw_attach_reason_text((enum gw_attach_reason)event->said.reason));
    }
}

/* Moves on from one state to the next. */
static void step(struct gw_overlay_mesh *mesh, gw_time now)
{
    const struct gw_overlay_mesh_cfg *cfg = &mesh->cfg;
    uint32_t up = 0, missing = 0;
    for (uint32_t rank = 0; rank < cfg->world; rank++) {
        up += mesh->ranks[rank].is_up;
        missing += mesh->state == GW_MESH_CONNECTING && !mesh->ranks[rank].is_up &&
                   rank != cfg->rank && is_needed(mesh, rank);
    }
    if (mesh->state == GW_MESH_MEETING && cfg->rank == 0 && up == cfg->world - 1u &&
        !gw_mesh_is_cut_off(mesh))
        send_tables(mesh, now);
    else if (mesh->state == GW_MESH_CONNECTING && missing == 0) {
        mesh->state = GW_MESH_RUNNING;
        gw_store_serve(mesh->store);
        gw_mesh_post(mesh, &(struct gw_mesh_event){.kind = GW_MESH_OPEN});
    }
}

static uint32_t first_missing(const struct gw_overlay_mesh *mesh)
{
    uint32_t rank = 0;
    while (rank + 1 < mesh->cfg.world && (mesh->ranks[rank].is_up || rank == mesh->cfg.rank))
        rank++;
    return rank;
}

/* The rank that a message, a push or a pull waits for; `world`: there are none. */
static uint32_t awaited(const struct gw_overlay_mesh *mesh)
{
    uint32_t i = 0;
    while (i < GW_MESH_CALLS_MAX && mesh->moves[i].state == GW_MESH_MOVE_FREE)
        i++;
    return i < GW_MESH_CALLS_MAX ? mesh->moves[i].message.rank : gw_store_awaited(mesh->store);
}

/* Fails what has made no progress for too long. All-reduces watch themselves. */
static void watch(struct gw_overlay_mesh *mesh, gw_time now)
{
    const struct gw_endpoint_stats *stats = gw_endpoint_stats(mesh->ep);
    uint64_t arrivals = stats->data_received + stats->acks_received;
    bool is_waiting = mesh->state == GW_MESH_MEETING || mesh->state == GW_MESH_CONNECTING;
    if (!is_waiting &&
        (arrivals != mesh->arrivals || !gw_mesh_has_calls(mesh) || gw_store_has_work(mesh->store)))
        mesh->progress_at = now;
    mesh->arrivals = arrivals;
    uint32_t rank = gw_mesh_overdue(mesh, now);
    if (rank == mesh->cfg.world && now - mesh->progress_at >= mesh->cfg.patience)
        rank = awaited(mesh);
    if (!is_waiting && rank < mesh->cfg.world && mesh->state != GW_MESH_LEAVING)
        gw_mesh_fail(mesh, GW_JOB_STALLED, rank, now);
    if (!is_waiting || now - mesh->progress_at < mesh->cfg.patience)
        return;
    if (mesh->state == GW_MESH_CONNECTING)
        gw_mesh_fail(mesh, GW_JOB_LOST, first_missing(mesh), now);
    else if (mesh->cfg.rank != 0 && mesh->ranks[0].is_up)
        gw_mesh_fail(mesh, GW_JOB_SILENT, mesh->cfg.world, now);
    else
        gw_mesh_fail(mesh, GW_JOB_SILENT, first_missing(mesh), now);
}

static void take_failure(struct gw_overlay_mesh *mesh, uint32_t rank, gw_time now)
{
    const struct gw_mesh_failure *said = &mesh->ranks[rank].failure;
    uint32_t reason = ntohl(said->reason), about = ntohl(said->about);
    if (reason == GW_JOB_OK || reason >= GW_JOB_REASONS || about > mesh->cfg.world)
        gw_mesh_fail(mesh, GW_JOB_LOST, rank, now);
    else
        gw_mesh_fail(mesh, (enum gw_job_reason)reason, about, now);
}

/* An event of anything but an all-reduce. */
static void take_event_of(struct gw_overlay_mesh *mesh, uint32_t rank, const struct gw_event *event,
                          gw_time now)
{
    bool is_received = event->kind == GW_EVENT_RECEIVED;
    if (event->tag == GW_MESH_TAG_FAILURE && is_received)
        take_failure(mesh, rank, now);
    else if (event->tag == GW_MESH_TAG_TABLE && is_received) {
        if (mesh->state == GW_MESH_MEETING)
            take_table(mesh, event->bytes, now);
    } else if (event->kind == GW_EVENT_FAILED)
        gw_mesh_fail(mesh, GW_JOB_LOST, rank, now);
    else if (gw_store_owns(event->tag))
        gw_store_event(mesh->store, rank, event, now);
    else
        gw_mesh_calls_event(mesh, event, now);
}

static void take_event(struct gw_overlay_mesh *mesh, const struct gw_event *event, gw_time now)
{
    if (event->tag == GW_MESH_TAG_FAILURE && event->kind != GW_EVENT_RECEIVED) {
        mesh->failures_left--;
    } else if (mesh->state != GW_MESH_OVER && event->tag < GW_MESH_TAG_MESSAGE) {
        gw_mesh_calls_event(mesh, event, now); /* runs know their peers */
    } else if (mesh->state != GW_MESH_OVER) {
        uint32_t rank = rank_of(mesh, event->peer);
        if (rank < mesh->cfg.world)
            take_event_of(mesh, rank, event, now);
    }
}

bool gw_overlay_mesh_poll(struct gw_overlay_mesh *mesh, struct gw_mesh_event *event, gw_time now)
{
    const uint32_t room = sizeof(mesh->events) / sizeof(mesh->events[0]);
    struct gw_event happened;
    while (gw_endpoint_poll(mesh->ep, &happened, 1))
        take_event(mesh, &happened, now);
    step(mesh, now);
    gw_mesh_advance(mesh, now);
    gw_store_advance(mesh->store, now);
    if (mesh->state != GW_MESH_OVER)
        watch(mesh, now);
    if (mesh->event_count == 0)
        return false;
    *event = mesh->events[mesh->event_head];
    mesh->event_head = (mesh->event_head + 1) % room;
    mesh->event_count--;
    return true;
}

const char *gw_overlay_mesh_text(const struct gw_overlay_mesh *mesh)
{
    return mesh->text;
}

bool gw_overlay_mesh_is_busy(const struct gw_overlay_mesh *mesh)
{
    return mesh->failures_left != 0;
}

const struct gw_endpoint_stats *gw_overlay_mesh_stats(const struct gw_overlay_mesh *mesh)
{
    return gw_endpoint_stats(mesh->ep);
}
