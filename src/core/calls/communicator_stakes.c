/*
 * The stakes of a communicator: joining shards, their workers, leaving. See communicator.h.
 *
 * All members are attached from the start; one joins when a call needs it and its server's address
 * is known. Its worker is made when the job's terms are.
 *
 * Stakes are in until all ranks leave. A server that restarts takes back from their workers what
 * another rank may lack; and one that does not know a worker that leaves lets it go.
 */
#include "base/error.h"
#include "core/calls/communicator_impl.h"

static uint32_t stake_count(const struct gw_communicator *comm)
{
    return 2 * comm->cfg.server_count;
}

/* The first stake of a via; there are as many as servers. */
static uint32_t first_of(const struct gw_communicator *comm, enum gw_via via)
{
    return via == GW_VIA_PS ? comm->cfg.server_count : 0;
}

static int attach(struct gw_communicator *comm, struct gw_stake *stake)
{
    const struct gw_communicator_cfg *cfg = &comm->cfg;
    struct gw_member_cfg member = {
        .job = stake->job,
        .server = comm->addresses[stake->server],
        .rank = cfg->rank,
        .incarnation = cfg->incarnation,
        .retry = cfg->retry,
        .beat = cfg->beat,
        .stall = cfg->stall,
        .notice = cfg->notice,
        .limits = {.world = cfg->world,
                   .values_max = cfg->mtu / sizeof(int32_t),
                   .window_max = cfg->worker.window_max},
    };
    int error = gw_member_init(&stake->member, stake->memory, &member, cfg->endpoint);
    stake->is_attached = !error;
    return error;
}

static void detach(struct gw_stake *stake)
{
    if (!stake->is_attached)
        return;
    if (stake->worker)
        gw_worker_fini(stake->worker);
    gw_member_fini(stake->member);
    stake->is_attached = false;
    stake->state = GW_STAKE_GONE;
}

int gw_communicator_attach_stakes(struct gw_communicator *comm)
{
    uint32_t servers = comm->cfg.server_count;
    for (uint32_t i = 0; i < stake_count(comm); i++) {
        struct gw_stake *stake = &comm->stakes[i];
        uint32_t job = gw_job_shard(comm->cfg.job, i % servers);
        stake->job = i < servers ? job : gw_job_shard_direct(job);
        stake->server = i % servers;
        int error = attach(comm, stake);
        if (error) {
            gw_communicator_detach_stakes(comm);
            return error;
        }
    }
    return GW_OK;
}

void gw_communicator_detach_stakes(struct gw_communicator *comm)
{
    for (uint32_t i = 0; i < stake_count(comm); i++)
        detach(&comm->stakes[i]);
}

void gw_communicator_free_stakes(struct gw_communicator *comm)
{
    for (uint32_t i = 0; i < stake_count(comm); i++) {
        gw_allocator_give(&comm->cfg.allocator, comm->stakes[i].worker);
        comm->stakes[i].worker = NULL;
    }
}

static void fail(struct gw_communicator *comm, const struct gw_stake *stake,
                 enum gw_job_reason reason, uint32_t about, gw_time now)
{
    bool is_of_rank = reason == GW_JOB_LOST || reason == GW_JOB_RANK || reason == GW_JOB_NOTICE;
    bool is_known = is_of_rank && about < comm->cfg.world;
    gw_communicator_fail(comm,
                         &(struct gw_communicator_failure){
                             .reason = reason,
                             .about = is_known ? about : comm->cfg.world,
                             .server = stake->server,
                         },
                         now);
}

/* Without room for its event, which whoever sends without payload may have taken, later. */
static void join(const struct gw_communicator *comm, struct gw_stake *stake, gw_time now)
{
    if (stake->is_wanted && stake->state == GW_STAKE_OUT && comm->addresses[stake->server] &&
        gw_member_join(stake->member, now) == GW_OK)
        stake->state = GW_STAKE_JOINING;
}

void gw_communicator_want_stakes(struct gw_communicator *comm, enum gw_via via, gw_time now)
{
    struct gw_stake *first = &comm->stakes[first_of(comm, via)];
    for (uint32_t i = 0; via != GW_VIA_RING && i < comm->cfg.server_count; i++) {
        first[i].is_wanted = true;
        join(comm, &first[i], now);
    }
}

/* One that is in finds its server where it was. */
void gw_communicator_move_stakes(struct gw_communicator *comm, uint32_t server, gw_time now)
{
    for (uint32_t i = server; i < stake_count(comm); i += comm->cfg.server_count) {
        struct gw_stake *stake = &comm->stakes[i];
        if (stake->state != GW_STAKE_OUT && stake->state != GW_STAKE_JOINING)
            continue;
        detach(stake);
        stake->state = GW_STAKE_OUT;
        int error = attach(comm, stake);
        GW_ASSERT(error == GW_OK); /* it has just been detached */
        join(comm, stake, now);
    }
}

bool gw_communicator_has_stakes(const struct gw_communicator *comm, enum gw_via via)
{
    const struct gw_stake *first = &comm->stakes[first_of(comm, via)];
    for (uint32_t i = 0; via != GW_VIA_RING && i < comm->cfg.server_count; i++)
        if (first[i].state != GW_STAKE_IN)
            return false;
    return true;
}

/* The first epoch has begun: makes the worker by the job's terms. */
static bool make_worker(struct gw_communicator *comm, struct gw_stake *stake)
{
    struct gw_worker_cfg cfg = comm->cfg.worker;
    cfg.tensors_max = GW_COMMUNICATOR_CALLS_MAX;
    if (!cfg.kernels)
        cfg.kernels = comm->cfg.kernels;
    cfg.takes_bounds = comm->cfg.parts_transport && cfg.keeps_results;
    gw_member_worker_cfg(stake->member, &cfg);
    if (cfg.window_initial == 0 || cfg.window_initial > cfg.window_max)
        cfg.window_initial = cfg.window_max;
    if (cfg.window_min > cfg.window_max)
        cfg.window_min = cfg.window_max;
    void *memory = gw_allocator_take(&comm->cfg.allocator, gw_worker_size(&cfg));
    if (!memory)
        return false;
    if (gw_worker_init(&stake->worker, memory, &cfg, comm->cfg.endpoint) != GW_OK) {
        gw_allocator_give(&comm->cfg.allocator, memory);
        stake->worker = NULL;
        return false;
    }
    stake->values = cfg.values;
    gw_member_bind(stake->member, stake->worker);
    return true;
}

static struct gw_stake *find(struct gw_communicator *comm, uint32_t job)
{
    for (uint32_t i = 0; i < stake_count(comm); i++)
        if (comm->stakes[i].job == job)
            return &comm->stakes[i];
    return NULL;
}

static void take_event(struct gw_communicator *comm, struct gw_stake *stake,
                       const struct gw_event *event, gw_time now)
{
    switch (event->kind) {
    case GW_EVENT_REDUCED:
        gw_communicator_part_done(comm, event->tag);
        break;
    case GW_EVENT_JOINED:
        if (gw_member_state(stake->member) == GW_MEMBER_JOINING)
            break; /* at where the server was before */
        stake->state = GW_STAKE_IN;
        if (!make_worker(comm, stake))
            fail(comm, stake, GW_JOB_LIMIT, comm->cfg.world, now);
        break;
    case GW_EVENT_LEFT:
        stake->state = GW_STAKE_GONE;
        break;
    default: /* failed, or refused */
        if (comm->state == GW_COMMUNICATOR_LEAVING)
            stake->state = GW_STAKE_GONE;
        else
            fail(comm, stake, (enum gw_job_reason)event->reason, event->about, now);
        break;
    }
}

/* Flows fail without a reason. */
static bool is_of_application(const struct gw_event *event)
{
    return event->kind != GW_EVENT_SENT && event->kind != GW_EVENT_RECEIVED &&
           (event->kind != GW_EVENT_FAILED || event->reason != GW_JOB_OK);
}

bool gw_communicator_stakes_event(struct gw_communicator *comm, const struct gw_event *event,
                                  gw_time now)
{
    struct gw_stake *stake = is_of_application(event) ? find(comm, event->flow) : NULL;
    if (stake && stake->is_attached)
        take_event(comm, stake, event, now);
    return stake != NULL;
}

/* Begins to leave, or goes on with it. Of a stake that is not in nobody knows, one between two
 * epochs is in no sum any more, and a server that has gone does not answer. */
static void leave(const struct gw_communicator *comm, struct gw_stake *stake, gw_time now)
{
    bool is_heard = !comm->is_down[stake->server];
    if (stake->state == GW_STAKE_LEAVING && is_heard)
        return;
    int error = GW_ERR_INVALID;
    if (stake->state == GW_STAKE_IN && is_heard && gw_member_state(stake->member) == GW_MEMBER_IN)
        error = gw_member_leave(stake->member, now);
    if (error == GW_OK)
        stake->state = GW_STAKE_LEAVING;
    else if (error != GW_ERR_NO_ROOM) /* which comes with the next event */
        detach(stake);
}

/* Joins, or takes note that it has failed. */
static void tend(struct gw_communicator *comm, struct gw_stake *stake, gw_time now)
{
    if (stake->state == GW_STAKE_OUT)
        join(comm, stake, now);
    else if (stake->state == GW_STAKE_IN && gw_member_state(stake->member) == GW_MEMBER_OUT)
        fail(comm, stake, gw_member_reason(stake->member), gw_member_about(stake->member), now);
}

void gw_communicator_tend_stakes(struct gw_communicator *comm, gw_time now)
{
    for (uint32_t i = 0; i < stake_count(comm) && comm->state != GW_COMMUNICATOR_OVER; i++)
        if (comm->has_left)
            leave(comm, &comm->stakes[i], now);
        else if (comm->state != GW_COMMUNICATOR_LEAVING)
            tend(comm, &comm->stakes[i], now);
}

bool gw_communicator_are_stakes_gone(const struct gw_communicator *comm)
{
    for (uint32_t i = 0; i < stake_count(comm); i++)
        if (comm->stakes[i].state != GW_STAKE_GONE)
            return false;
    return true;
}

void gw_communicator_count_stakes(const struct gw_communicator *comm, struct gw_worker_stats *sums)
{
    _Static_assert(sizeof(*sums) % sizeof(uint64_t) == 0, "counters only");
    uint64_t *to = (uint64_t *)sums;
    for (uint32_t i = 0; i < stake_count(comm); i++) {
        if (!comm->stakes[i].worker)
            continue;
        const uint64_t *from = (const uint64_t *)gw_worker_stats(comm->stakes[i].worker);
        for (uint32_t j = 0; j < sizeof(*sums) / sizeof(*to); j++)
            to[j] += from[j];
    }
}
