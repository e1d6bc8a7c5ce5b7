/*
 * The communicator: how ranks meet, find ways to each other, and fail together. Calls are in
 * communicator_calls.c; see communicator.h.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "net/ranks/communicator_impl.h"

enum {
    SPAN_MAX = 1024,
    CONTROL_MAX = 4096,
    ACK_EVERY = 16,
    RX_FLOWS_DONE = 4096, /* messages that are complete and still answer if the last ACK was lost */
    HOPS = 2,
};

/* A word in the number of the job, so that workers with and without a server do not meet. */
#define JOB_WORD UINT32_C(0x6d657368)

#define BRTT     GW_MS /* between processes: scheduling included */
#define RTO_TEXT "20"  /* base RTTs: the overlay's timeout */

int gw_communicator_transport(const char *cc, const char *lb, bool by_switch,
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

struct gw_path gw_communicator_path(const struct gw_communicator *comm)
{
    uint64_t rate_bps = comm->cfg.rate_bps;
    return (struct gw_path){
        .brtt = BRTT,
        .brtt_max = BRTT,
        .rate_bps = rate_bps,
        .bdp = (uint32_t)(rate_bps / 8 * (BRTT / GW_US) / 1000000),
        .mtu = comm->cfg.mtu,
        .hdr = gw_udp_overhead(gw_station_udp(comm->cfg.station)),
        .hops = HOPS,
        .trims = comm->cfg.switch_ != NULL,
    };
}

/* What this rank grants to flows on credit, whatever its own flows are; at the rate of the links.
 */
static struct gw_grant_plan grant_plan(const struct gw_communicator *comm)
{
    const struct gw_algo *eqds = gw_registry_find(&gw_grant_registry, "eqds");
    const struct gw_path path = gw_communicator_path(comm);
    union gw_algo_cfg options;
    struct gw_grant_plan plan;
    gw_algo_defaults(eqds, options.bytes);
    ((const struct gw_grant_ops *)eqds)->plan(options.bytes, &path, &plan);
    return plan;
}

static int open_endpoint(struct gw_communicator *comm)
{
    const struct gw_communicator_cfg *cfg = &comm->cfg;
    uint32_t flows = gw_communicator_flows(comm) + cfg->world + gw_store_flows(cfg->world);
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
        .stall = cfg->stall,
        .seed = cfg->seed,
        .generation = (uint16_t)cfg->seed,
        .grant = grant_plan(comm),
        .pool = gw_station_pool(cfg->station),
    };
    size_t size = gw_endpoint_size(&endpoint);
    void *memory = size ? gw_node_memory_take(size) : NULL;
    if (!memory)
        return size ? GW_ERR_NO_MEMORY : GW_ERR_INVALID;
    comm->ep = gw_endpoint_init(memory, &endpoint);
    comm->node = gw_loop_add(gw_station_loop(cfg->station), gw_endpoint_node(comm->ep));
    return GW_OK;
}

static struct gw_greeting greeting_of(const struct gw_communicator *comm)
{
    return (struct gw_greeting){
        .job = comm->cfg.job, .world = comm->cfg.world, .rank = comm->cfg.rank, .is_direct = true};
}

int gw_communicator_dial_rank_0(struct gw_communicator *comm, char *error)
{
    struct gw_greeting greeting = greeting_of(comm);
    int dial = gw_station_dial(comm->cfg.station, comm->cfg.join, &greeting, error);
    if (dial < 0)
        return dial;
    comm->dials[dial] = 0;
    comm->ranks[0].is_dialled = true;
    return GW_OK;
}

int gw_communicator_open(const struct gw_communicator_cfg *cfg, struct gw_communicator **result,
                         char *error)
{
    struct gw_communicator *comm = calloc(1, sizeof(*comm));
    if (!comm)
        return gw_net_fail(error, GW_ERR_NO_MEMORY, "out of memory");
    comm->cfg = *cfg;
    comm->cfg.job ^= JOB_WORD;
    comm->switch_dial = GW_COMMUNICATOR_DIAL_NONE;
    comm->ranks = calloc(cfg->world, sizeof(*comm->ranks));
    comm->addresses = calloc(cfg->world, sizeof(*comm->addresses));
    comm->table = calloc(cfg->world, GW_RANK_TABLE_ENTRY_SIZE);
    int code = comm->ranks && comm->addresses && comm->table ? GW_OK : GW_ERR_NO_MEMORY;
    if (!code)
        code = open_endpoint(comm);
    if (!code)
        code = gw_communicator_open_runs(comm);
    if (!code)
        code = gw_store_open(comm, &comm->store);
    if (code)
        gw_net_fail(error, code, "cannot make a worker of %u ranks: %s", cfg->world,
                    gw_error_message(code));
    if (!code && cfg->switch_)
        code = gw_communicator_dial_switch(comm, error);
    else if (!code && cfg->rank != 0)
        code = gw_communicator_dial_rank_0(comm, error);
    if (code) {
        gw_communicator_close(comm);
        return code;
    }
    comm->ranks[cfg->rank].at.address = cfg->address;
    comm->progress_at = gw_loop_now(gw_station_loop(cfg->station));
    *result = comm;
    return GW_OK;
}

void gw_communicator_close(struct gw_communicator *comm)
{
    gw_communicator_close_runs(comm);
    gw_store_close(comm->store);
    free(comm->ep);
    free(comm->ranks);
    free(comm->addresses);
    free(comm->table);
    free(comm);
}

void gw_communicator_post(struct gw_communicator *comm, const struct gw_communicator_event *event)
{
    const uint32_t room = sizeof(comm->events) / sizeof(comm->events[0]);
    GW_ASSERT(comm->event_count < room); /* more than there can be calls */
    comm->events[(comm->event_head + comm->event_count++) % room] = *event;
}

/* The words for a failure of the whole job. */
static void describe(struct gw_communicator *comm, enum gw_job_reason reason, uint32_t about)
{
    double seconds = (double)comm->cfg.stall / GW_S;
    char *text = comm->text;
    if (reason == GW_JOB_STALLED && about == comm->cfg.rank && gw_communicator_is_cut_off(comm))
        snprintf(text, GW_COMMUNICATOR_TEXT_MAX, "the switch at %s does not answer",
                 comm->cfg.switch_);
    else if (reason == GW_JOB_LOST)
        snprintf(text, GW_COMMUNICATOR_TEXT_MAX, "rank %u is lost", about);
    else if (reason == GW_JOB_SILENT && about == 0)
        snprintf(text, GW_COMMUNICATOR_TEXT_MAX, "no answer from rank 0 at %s for %g s",
                 comm->cfg.join, seconds);
    else if (reason == GW_JOB_SILENT && about == comm->cfg.world)
        snprintf(text, GW_COMMUNICATOR_TEXT_MAX,
                 "the job did not begin within %g s: not all of its %u ranks have come to %s",
                 seconds, about, comm->cfg.join);
    else if (reason == GW_JOB_SILENT)
        snprintf(text, GW_COMMUNICATOR_TEXT_MAX,
                 "the job did not begin within %g s: rank %u and perhaps others have not come",
                 seconds, about);
    else if (reason == GW_JOB_STALLED)
        snprintf(text, GW_COMMUNICATOR_TEXT_MAX, "nothing came from rank %u for %g s", about,
                 seconds);
    else if (reason == GW_JOB_OVERFLOW)
        snprintf(text, GW_COMMUNICATOR_TEXT_MAX,
                 "a sum of int32 does not fit an int32 (rank %u found it)", about);
    else if (reason == GW_JOB_MISMATCH)
        snprintf(text, GW_COMMUNICATOR_TEXT_MAX, "rank %u reduces a tensor of another size", about);
    else
        snprintf(text, GW_COMMUNICATOR_TEXT_MAX, "rank %u: %s", about, gw_job_reason_text(reason));
}

int gw_communicator_send(struct gw_communicator *comm, uint32_t rank, uint32_t tag,
                         const void *data, uint64_t bytes, uint32_t *flow, gw_time now)
{
    struct gw_send send = {
        .peer = comm->ranks[rank].at.address,
        .bytes = bytes,
        .data = data,
        .tag = tag,
        .transport = &comm->cfg.transport,
        .path = gw_communicator_path(comm),
    };
    int code = gw_endpoint_send(comm->ep, &send, flow, now);
    GW_ASSERT(code == GW_OK || code == GW_ERR_NO_ROOM);
    return code;
}

/* Whether we have failed because nothing came, and not because a session has ended. */
static bool is_silence(const struct gw_communicator *comm, enum gw_job_reason reason,
                       uint32_t about)
{
    return reason == GW_JOB_SILENT || reason == GW_JOB_STALLED ||
           (reason == GW_JOB_LOST && about < comm->cfg.world && comm->ranks[about].is_up);
}

void gw_communicator_fail(struct gw_communicator *comm, enum gw_job_reason reason, uint32_t about,
                          gw_time now)
{
    uint32_t flow;
    if (comm->state == GW_COMMUNICATOR_OVER)
        return;
    comm->state = GW_COMMUNICATOR_OVER;
    gw_communicator_drop_calls(comm);
    if (gw_communicator_is_cut_off(comm) && is_silence(comm, reason, about)) {
        reason = GW_JOB_STALLED; /* whoever was awaited, it is our switch that does not answer */
        about = comm->cfg.rank;
    }
    describe(comm, reason, about);
    gw_communicator_go_direct(comm);
    comm->failure = (struct gw_communicator_failure){htonl(reason), htonl(about)};
    for (uint32_t rank = 0; rank < comm->cfg.world; rank++)
        if (comm->ranks[rank].is_up && !(reason == GW_JOB_LOST && rank == about))
            comm->failures_left +=
                gw_communicator_send(comm, rank, GW_COMMUNICATOR_TAG_FAILURE, &comm->failure,
                                     sizeof(comm->failure), &flow, now) == GW_OK;
    gw_communicator_post(
        comm, &(struct gw_communicator_event){.kind = GW_COMMUNICATOR_FAILED, .reason = reason});
}

void gw_communicator_abort(struct gw_communicator *comm, gw_time now)
{
    gw_communicator_fail(comm, GW_JOB_LOST, comm->cfg.rank, now);
}

void gw_communicator_connect(struct gw_communicator *comm, uint32_t number, gw_time now)
{
    struct gw_communicator_rank *rank = &comm->ranks[number];
    struct gw_greeting greeting = greeting_of(comm);
    char name[GW_SOCK_NAME_MAX];
    if (rank->is_up || rank->is_dialled)
        return;
    gw_sock_format(&rank->at.addr, name, sizeof(name));
    int dial = gw_neighbours_dial(gw_station_neighbours(comm->cfg.station), &rank->at.addr, name,
                                  &greeting, now);
    if (dial < 0) {
        gw_communicator_fail(comm, GW_JOB_LIMIT, comm->cfg.rank, now);
        return;
    }
    comm->dials[dial] = (int)number;
    rank->is_dialled = true;
}

/* Whether this rank's all-reduces need the other one. */
static bool is_needed(const struct gw_communicator *comm, uint32_t rank)
{
    const struct gw_communicator_cfg *cfg = &comm->cfg;
    uint32_t steps = cfg->world > 1 ? cfg->coll->steps(cfg->world) : 0;
    for (uint32_t i = 0; i < steps; i++) {
        struct gw_coll_step step = cfg->coll->step(cfg->rank, cfg->world, i, 0);
        if (step.to == rank || step.from == rank)
            return true;
    }
    return false;
}

/* The table is known: finds the ways that all-reduces need. */
static void connect_all(struct gw_communicator *comm, gw_time now)
{
    comm->state = GW_COMMUNICATOR_CONNECTING;
    for (uint32_t rank = 0; rank < comm->cfg.world; rank++)
        comm->addresses[rank] = comm->ranks[rank].at.address;
    for (uint32_t rank = 0; rank < comm->cfg.rank; rank++)
        if (is_needed(comm, rank))
            gw_communicator_connect(comm, rank, now);
}

/* Rank 0: all have come. */
static void send_tables(struct gw_communicator *comm, gw_time now)
{
    uint32_t flow;
    for (uint32_t rank = 1; rank < comm->cfg.world; rank++)
        gw_rank_table_write(&comm->ranks[rank].at,
                            comm->table + (size_t)rank * GW_RANK_TABLE_ENTRY_SIZE);
    for (uint32_t rank = 1; rank < comm->cfg.world; rank++) {
        int code =
            gw_communicator_send(comm, rank, GW_COMMUNICATOR_TAG_TABLE, comm->table,
                                 (uint64_t)comm->cfg.world * GW_RANK_TABLE_ENTRY_SIZE, &flow, now);
        GW_ASSERT(code == GW_OK); /* there is a flow for each rank */
    }
    connect_all(comm, now);
}

/* Who has the address; `world`: nobody. */
static uint32_t rank_of(const struct gw_communicator *comm, uint32_t address)
{
    uint32_t rank = 0;
    while (rank < comm->cfg.world && comm->ranks[rank].at.address != address)
        rank++;
    return rank;
}

/* Whether another rank has the address. */
static bool is_taken(const struct gw_communicator *comm, uint32_t address, uint32_t rank)
{
    uint32_t owner = rank_of(comm, address);
    return owner < comm->cfg.world && owner != rank;
}

static void take_table(struct gw_communicator *comm, uint64_t bytes, gw_time now)
{
    bool is_sound = bytes == (uint64_t)comm->cfg.world * GW_RANK_TABLE_ENTRY_SIZE;
    for (uint32_t rank = 1; rank < comm->cfg.world && is_sound; rank++) {
        struct gw_rank_table_entry *at = &comm->ranks[rank].at;
        if (rank != comm->cfg.rank)
            is_sound =
                gw_rank_table_read(comm->table + (size_t)rank * GW_RANK_TABLE_ENTRY_SIZE, at) &&
                !is_taken(comm, at->address, rank);
    }
    if (is_sound) {
        connect_all(comm, now);
        return;
    }
    gw_communicator_fail(comm, GW_JOB_MISMATCH, 0, now);
    snprintf(comm->text, sizeof(comm->text), "rank 0 sent a table of ranks that makes no sense");
}

/* There is a way to the rank; what it may tell us has a place. */
static void way_up(struct gw_communicator *comm, uint32_t number,
                   const struct gw_neighbour_event *event)
{
    struct gw_communicator_rank *rank = &comm->ranks[number];
    struct gw_loop *loop = gw_station_loop(comm->cfg.station);
    struct gw_loop_port port = {comm->node, 0};
    bool is_new = rank->at.address != event->said.address || !rank->is_up;
    if (is_taken(comm, event->said.address, number)) {
        gw_communicator_fail(comm, GW_JOB_LOST, number, gw_loop_now(loop));
        return;
    }
    rank->at.address = event->said.address;
    if (event->dial < 0)
        rank->at.addr = event->addr;
    rank->is_up = true;
    rank->peer = event->peer;
    gw_loop_link(loop, port, event->peer, false);
    int code =
        comm->cfg.switch_ ? GW_OK : gw_loop_direct(loop, port, rank->at.address, event->peer);
    if (is_new) /* what was posted for an earlier session */
        gw_endpoint_forget(comm->ep, &rank->failure, sizeof(rank->failure));
    if (is_new && number == 0)
        gw_endpoint_forget(comm->ep, comm->table,
                           (uint64_t)comm->cfg.world * GW_RANK_TABLE_ENTRY_SIZE);
    if (!code && is_new)
        code = gw_endpoint_expect(comm->ep, rank->at.address, GW_COMMUNICATOR_TAG_FAILURE,
                                  &rank->failure, sizeof(rank->failure));
    if (!code && is_new && number == 0)
        code =
            gw_endpoint_expect(comm->ep, rank->at.address, GW_COMMUNICATOR_TAG_TABLE, comm->table,
                               (uint64_t)comm->cfg.world * GW_RANK_TABLE_ENTRY_SIZE);
    if (code)
        gw_communicator_fail(comm, GW_JOB_LIMIT, comm->cfg.rank, gw_loop_now(loop));
}

/* Who has dialled us: one of ours, or refused. */
static void take_in(struct gw_communicator *comm, const struct gw_neighbour_event *event)
{
    const struct gw_attach_msg *said = &event->said;
    bool is_ours = said->job == comm->cfg.job && said->world == comm->cfg.world &&
                   said->role == GW_ATTACH_HOST;
    if (!is_ours) {
        gw_station_refuse(comm->cfg.station, event->peer, GW_ATTACH_JOB);
        return;
    }
    struct gw_communicator_rank *rank =
        said->rank < comm->cfg.world ? &comm->ranks[said->rank] : NULL;
    bool is_free = rank && said->rank != comm->cfg.rank &&
                   !is_taken(comm, said->address, said->rank) &&
                   (!rank->is_up || rank->at.address == said->address) &&
                   (comm->state == GW_COMMUNICATOR_MEETING || rank->at.address == 0 ||
                    rank->at.address == said->address);
    if (is_free)
        way_up(comm, said->rank, event);
    else
        gw_station_refuse(comm->cfg.station, event->peer, GW_ATTACH_TAKEN);
}

static void way_down(struct gw_communicator *comm, const struct gw_neighbour_event *event,
                     gw_time now)
{
    for (uint32_t rank = 0; rank < comm->cfg.world; rank++) {
        if (!comm->ranks[rank].is_up || comm->ranks[rank].peer != event->peer)
            continue;
        comm->ranks[rank].is_up = false;
        if (comm->state == GW_COMMUNICATOR_LEAVING) {
            comm->state =
                GW_COMMUNICATOR_OVER; /* it has gone because nobody needs anything any more */
            gw_communicator_drop_calls(comm);
            gw_communicator_post(comm,
                                 &(struct gw_communicator_event){.kind = GW_COMMUNICATOR_LEFT});
        } else if (comm->state != GW_COMMUNICATOR_MEETING) {
            gw_communicator_fail(comm, GW_JOB_LOST, rank, now);
        }
    }
}

void gw_communicator_neighbour(struct gw_communicator *comm, const struct gw_neighbour_event *event)
{
    gw_time now = gw_loop_now(gw_station_loop(comm->cfg.station));
    if (event->dial >= 0 && event->dial == comm->switch_dial) {
        gw_communicator_switch_event(comm, event, now);
    } else if (event->kind == GW_NEIGHBOUR_DOWN) {
        way_down(comm, event, now);
    } else if (event->kind == GW_NEIGHBOUR_UP && event->dial < 0) {
        take_in(comm, event);
    } else if (event->kind == GW_NEIGHBOUR_UP) {
        way_up(comm, (uint32_t)comm->dials[event->dial], event);
    } else if (comm->state != GW_COMMUNICATOR_OVER && comm->state != GW_COMMUNICATOR_LEAVING) {
        gw_communicator_fail(comm, GW_JOB_RANK, (uint32_t)comm->dials[event->dial], now);
        snprintf(comm->text, sizeof(comm->text), "%s refuses us: %s",
                 gw_neighbours_dial_name(gw_station_neighbours(comm->cfg.station), event->dial),
                 gw_attach_reason_text((enum gw_attach_reason)event->said.reason));
    }
}

/* Moves on from one state to the next. */
static void step(struct gw_communicator *comm, gw_time now)
{
    const struct gw_communicator_cfg *cfg = &comm->cfg;
    uint32_t up = 0, missing = 0;
    for (uint32_t rank = 0; rank < cfg->world; rank++) {
        up += comm->ranks[rank].is_up;
        missing += comm->state == GW_COMMUNICATOR_CONNECTING && !comm->ranks[rank].is_up &&
                   rank != cfg->rank && is_needed(comm, rank);
    }
    if (comm->state == GW_COMMUNICATOR_MEETING && cfg->rank == 0 && up == cfg->world - 1u &&
        !gw_communicator_is_cut_off(comm))
        send_tables(comm, now);
    else if (comm->state == GW_COMMUNICATOR_CONNECTING && missing == 0) {
        comm->state = GW_COMMUNICATOR_RUNNING;
        gw_store_serve(comm->store);
        gw_communicator_post(comm, &(struct gw_communicator_event){.kind = GW_COMMUNICATOR_OPEN});
    }
}

static uint32_t first_missing(const struct gw_communicator *comm)
{
    uint32_t rank = 0;
    while (rank + 1 < comm->cfg.world && (comm->ranks[rank].is_up || rank == comm->cfg.rank))
        rank++;
    return rank;
}

/* The rank that a message, a push or a pull waits for; `world`: there are none. */
static uint32_t awaited(const struct gw_communicator *comm)
{
    uint32_t i = 0;
    while (i < GW_COMMUNICATOR_CALLS_MAX && comm->moves[i].state == GW_COMMUNICATOR_MOVE_FREE)
        i++;
    return i < GW_COMMUNICATOR_CALLS_MAX ? comm->moves[i].message.rank
                                         : gw_store_awaited(comm->store);
}

/* Fails what has made no progress for too long. All-reduces watch themselves. */
static void watch(struct gw_communicator *comm, gw_time now)
{
    const struct gw_endpoint_stats *stats = gw_endpoint_stats(comm->ep);
    uint64_t arrivals = stats->data_received + stats->acks_received;
    bool is_waiting =
        comm->state == GW_COMMUNICATOR_MEETING || comm->state == GW_COMMUNICATOR_CONNECTING;
    if (!is_waiting && (arrivals != comm->arrivals || !gw_communicator_has_calls(comm) ||
                        gw_store_has_work(comm->store)))
        comm->progress_at = now;
    comm->arrivals = arrivals;
    uint32_t rank = gw_communicator_overdue(comm, now);
    if (rank == comm->cfg.world && now - comm->progress_at >= comm->cfg.stall)
        rank = awaited(comm);
    if (!is_waiting && rank < comm->cfg.world && comm->state != GW_COMMUNICATOR_LEAVING)
        gw_communicator_fail(comm, GW_JOB_STALLED, rank, now);
    if (!is_waiting || now - comm->progress_at < comm->cfg.stall)
        return;
    if (comm->state == GW_COMMUNICATOR_CONNECTING)
        gw_communicator_fail(comm, GW_JOB_LOST, first_missing(comm), now);
    else if (comm->cfg.rank != 0 && comm->ranks[0].is_up)
        gw_communicator_fail(comm, GW_JOB_SILENT, comm->cfg.world, now);
    else
        gw_communicator_fail(comm, GW_JOB_SILENT, first_missing(comm), now);
}

static void take_failure(struct gw_communicator *comm, uint32_t rank, gw_time now)
{
    const struct gw_communicator_failure *said = &comm->ranks[rank].failure;
    uint32_t reason = ntohl(said->reason), about = ntohl(said->about);
    if (reason == GW_JOB_OK || reason >= GW_JOB_REASONS || about > comm->cfg.world)
        gw_communicator_fail(comm, GW_JOB_LOST, rank, now);
    else
        gw_communicator_fail(comm, (enum gw_job_reason)reason, about, now);
}

/* An event of anything but an all-reduce. */
static void take_event_of(struct gw_communicator *comm, uint32_t rank, const struct gw_event *event,
                          gw_time now)
{
    bool is_received = event->kind == GW_EVENT_RECEIVED;
    if (event->tag == GW_COMMUNICATOR_TAG_FAILURE && is_received)
        take_failure(comm, rank, now);
    else if (event->tag == GW_COMMUNICATOR_TAG_TABLE && is_received) {
        if (comm->state == GW_COMMUNICATOR_MEETING)
            take_table(comm, event->bytes, now);
    } else if (event->kind == GW_EVENT_FAILED)
        gw_communicator_fail(comm, GW_JOB_LOST, rank, now);
    else if (gw_store_owns(event->tag))
        gw_store_event(comm->store, rank, event, now);
    else
        gw_communicator_calls_event(comm, event, now);
}

static void take_event(struct gw_communicator *comm, const struct gw_event *event, gw_time now)
{
    if (event->tag == GW_COMMUNICATOR_TAG_FAILURE && event->kind != GW_EVENT_RECEIVED) {
        comm->failures_left--;
    } else if (comm->state != GW_COMMUNICATOR_OVER && event->tag < GW_COMMUNICATOR_TAG_MESSAGE) {
        gw_communicator_calls_event(comm, event, now); /* runs know their peers */
    } else if (comm->state != GW_COMMUNICATOR_OVER) {
        uint32_t rank = rank_of(comm, event->peer);
        if (rank < comm->cfg.world)
            take_event_of(comm, rank, event, now);
    }
}

bool gw_communicator_poll(struct gw_communicator *comm, struct gw_communicator_event *event,
                          gw_time now)
{
    const uint32_t room = sizeof(comm->events) / sizeof(comm->events[0]);
    struct gw_event happened;
    while (gw_endpoint_poll(comm->ep, &happened, 1))
        take_event(comm, &happened, now);
    step(comm, now);
    gw_communicator_advance(comm, now);
    gw_store_advance(comm->store, now);
    if (comm->state != GW_COMMUNICATOR_OVER)
        watch(comm, now);
    if (comm->event_count == 0)
        return false;
    *event = comm->events[comm->event_head];
    comm->event_head = (comm->event_head + 1) % room;
    comm->event_count--;
    return true;
}

const char *gw_communicator_text(const struct gw_communicator *comm)
{
    return comm->text;
}

bool gw_communicator_is_busy(const struct gw_communicator *comm)
{
    return comm->failures_left != 0;
}

const struct gw_endpoint_stats *gw_communicator_stats(const struct gw_communicator *comm)
{
    return gw_endpoint_stats(comm->ep);
}
