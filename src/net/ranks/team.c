/*
 * The team's memory, its flows, and its events. How ranks meet is in team_meet.c,
 * how they fail in team_fail.c, calls are in team_calls.c; see team.h.
 */
#include <stdlib.h>

#include "base/error.h"
#include "net/ranks/team_impl.h"

enum {
    CONTROL_MAX = 4096,
    RX_FLOWS_DONE = 4096, /* messages that are complete and still answer if the last ACK was lost */
};

/* A word in the number of the job, so that workers with and without a server do not meet. */
#define JOB_WORD UINT32_C(0x6d657368)

#define RTO_TEXT "20" /* base RTTs: the overlay's timeout */

int gw_team_transport(const char *cc, const char *lb, bool by_switch,
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

/* What this rank grants to flows on credit, whatever its own flows are: at the rate of the links as
 * it is known at the beginning. */
static struct gw_grant_plan grant_plan(const struct gw_team *comm)
{
    const struct gw_algo *eqds = gw_registry_find(&gw_grant_registry, "eqds");
    const struct gw_path path = gw_team_path_all(comm);
    union gw_algo_cfg options;
    struct gw_grant_plan plan;
    gw_algo_defaults(eqds, options.bytes);
    ((const struct gw_grant_ops *)eqds)->plan(options.bytes, &path, &plan);
    return plan;
}

static int open_endpoint(struct gw_team *comm)
{
    const struct gw_team_cfg *cfg = &comm->cfg;
    uint32_t flows = gw_team_flows(comm) + cfg->world + gw_team_store_flows(cfg->world);
    uint32_t hdr = gw_datapath_overhead(gw_station_datapath(cfg->station));
    struct gw_endpoint_cfg endpoint = {
        .address = cfg->address,
        .tx_flows_max = flows,
        .rx_flows_max = 2 * flows + RX_FLOWS_DONE,
        .control_max = CONTROL_MAX,
        .expect_max = flows + 1 + gw_team_store_awaits(cfg->world),
        .mtu = cfg->mtu,
        .hdr = hdr,
        .stall = cfg->stall,
        .seed = cfg->seed,
        .grant = grant_plan(comm),
        .announcers_max = cfg->notice ? cfg->world : 0,
        .pool = gw_station_pool(cfg->station),
    };
    int code = gw_overlay_endpoint_open(&endpoint, &comm->ep);
    if (code)
        return code;
    comm->node = gw_loop_add(gw_station_loop(cfg->station), gw_endpoint_node(comm->ep));
    return GW_OK;
}

static int open_store(struct gw_team *comm)
{
    struct gw_team_store_cfg cfg = {.comm = comm, .rank = comm->cfg.rank, .world = comm->cfg.world};
    return gw_team_store_open(&cfg, &comm->store);
}

int gw_team_open(const struct gw_team_cfg *cfg, struct gw_team **result, char *error)
{
    struct gw_team *comm = calloc(1, sizeof(*comm));
    if (!comm)
        return gw_net_fail(error, GW_ERR_NO_MEMORY, "out of memory");
    comm->cfg = *cfg;
    comm->cfg.job ^= JOB_WORD;
    comm->switch_dial = GW_TEAM_DIAL_NONE;
    gw_index_queue_init(&comm->waiting, GW_TEAM_EVENTS_MAX);
    gw_index_queue_init(&comm->tensor_queue, GW_TEAM_CALLS_MAX);
    comm->ranks = calloc(cfg->world, sizeof(*comm->ranks));
    comm->addresses = calloc(cfg->world, sizeof(*comm->addresses));
    comm->table = calloc(cfg->world, GW_RANK_TABLE_ENTRY_SIZE);
    int code = comm->ranks && comm->addresses && comm->table ? GW_OK : GW_ERR_NO_MEMORY;
    if (!code)
        code = open_endpoint(comm);
    if (!code)
        code = gw_team_open_runs(comm);
    if (!code)
        code = open_store(comm);
    if (code)
        gw_net_fail(error, code, "cannot make a worker of %u ranks: %s", cfg->world,
                    gw_error_message(code));
    if (!code && cfg->switch_)
        code = gw_team_dial_switch(comm, error);
    else if (!code && cfg->rank != 0)
        code = gw_team_dial_rank_0(comm, error);
    if (code) {
        gw_team_close(comm);
        return code;
    }
    comm->ranks[cfg->rank].at.address = cfg->address;
    comm->progress_at = gw_loop_now(gw_station_loop(cfg->station));
    *result = comm;
    return GW_OK;
}

void gw_team_close(struct gw_team *comm)
{
    gw_team_close_runs(comm);
    gw_team_store_close(comm->store);
    free(comm->ep);
    free(comm->ranks);
    free(comm->addresses);
    free(comm->table);
    free(comm);
}

void gw_team_set_notice_path(struct gw_team *comm, const struct gw_notice_path *path)
{
    comm->cfg.notice_path = *path;
}

uint8_t gw_team_notice(const struct gw_team *comm)
{
    return comm->notice_units;
}

bool gw_team_is_up(const struct gw_team *comm, uint32_t rank)
{
    return comm->ranks[rank].is_up;
}

int gw_team_send(struct gw_team *comm, uint32_t rank, uint32_t tag, const void *data,
                 uint64_t bytes, uint32_t *flow, gw_time now)
{
    struct gw_send send = {
        .peer = comm->ranks[rank].at.address,
        .bytes = bytes,
        .data = data,
        .tag = tag,
        .transport = &comm->cfg.transport,
        .path = gw_team_path(comm, rank),
    };
    if (tag < GW_TEAM_TAG_TABLE)
        send.notice = gw_team_terms(comm);
    int code = gw_endpoint_send(comm->ep, &send, flow, now);
    GW_ASSERT(code == GW_OK || code == GW_ERR_NO_ROOM);
    return code;
}

int gw_team_expect(struct gw_team *comm, uint32_t rank, uint32_t tag, void *data, uint64_t bytes)
{
    return gw_endpoint_expect(comm->ep, comm->ranks[rank].at.address, tag, data, bytes);
}

void gw_team_forget(struct gw_team *comm, const void *data, uint64_t bytes)
{
    gw_endpoint_forget(comm->ep, data, bytes);
}

void gw_team_post(struct gw_team *comm, const struct gw_team_event *event)
{
    GW_ASSERT(!gw_index_queue_is_full(&comm->waiting)); /* more than there can be calls */
    comm->events[gw_index_queue_push(&comm->waiting)] = *event;
}

/* An event of anything but an all-reduce. */
static void take_event_of(struct gw_team *comm, uint32_t rank, const struct gw_event *event,
                          gw_time now)
{
    bool is_received = event->kind == GW_EVENT_RECEIVED;
    if (event->tag == GW_TEAM_TAG_FAILURE && is_received)
        gw_team_take_failure(comm, rank, now);
    else if (event->tag == GW_TEAM_TAG_TABLE && is_received) {
        if (comm->state == GW_TEAM_MEETING)
            gw_team_take_table(comm, event->bytes, now);
    } else if (event->kind == GW_EVENT_FAILED)
        gw_team_fail(comm, GW_JOB_LOST, rank, now);
    else if (gw_team_store_owns(event->tag))
        gw_team_store_event(comm->store, rank, event, now);
    else
        gw_team_calls_event(comm, event, now);
}

static void take_event(struct gw_team *comm, const struct gw_event *event, gw_time now)
{
    if (event->tag == GW_TEAM_TAG_FAILURE && event->kind != GW_EVENT_RECEIVED) {
        comm->failures_left--;
    } else if (comm->state != GW_TEAM_OVER && event->tag < GW_TEAM_TAG_MESSAGE) {
        gw_team_calls_event(comm, event, now); /* runs know their peers */
    } else if (comm->state != GW_TEAM_OVER) {
        uint32_t rank = gw_team_rank_of(comm, event->peer);
        if (rank < comm->cfg.world)
            take_event_of(comm, rank, event, now);
    }
}

bool gw_team_poll(struct gw_team *comm, struct gw_team_event *event, gw_time now)
{
    struct gw_event happened;
    while (gw_endpoint_poll(comm->ep, &happened, 1))
        take_event(comm, &happened, now);
    gw_team_measure(comm, now);
    gw_team_step(comm, now);
    gw_team_advance(comm, now);
    if (gw_team_takes_calls(comm))
        gw_team_store_advance(comm->store, now);
    if (comm->state != GW_TEAM_OVER)
        gw_team_watch(comm, now);
    if (comm->waiting.count == 0)
        return false;
    *event = comm->events[gw_index_queue_pop(&comm->waiting)];
    return true;
}

bool gw_team_has_work(const struct gw_team *comm)
{
    return comm->waiting.count || gw_team_store_has_work(comm->store);
}

const char *gw_team_text(const struct gw_team *comm)
{
    return comm->text;
}

bool gw_team_is_busy(const struct gw_team *comm)
{
    return comm->failures_left != 0;
}

const struct gw_endpoint_stats *gw_team_stats(const struct gw_team *comm)
{
    return gw_endpoint_stats(comm->ep);
}
