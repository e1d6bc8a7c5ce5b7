/* Ranks of the job model: their processes, from the first packet to the last; see job_model.h. */
#include "job_model_impl.h"

#include "base/align.h"
#include "base/cpu.h"

#define RETRY   (100 * GW_US)
#define BEAT    GW_MS
#define TIMEOUT (200 * GW_US)

static void *take(void *context, size_t size)
{
    struct gw_job_model_actor *actor = context;
    size_t head = gw_aligned(sizeof(struct gw_job_model_block));
    struct gw_job_model_block *block = gw_test_take(head + size), *ring = &actor->blocks;
    memset(block, 0, head + size);
    *block = (struct gw_job_model_block){.next = ring->next, .before = ring, .size = size};
    ring->next->before = block;
    ring->next = block;
    actor->memory_now += size;
    return (unsigned char *)block + head;
}

static void give(void *context, void *memory)
{
    struct gw_job_model_actor *actor = context;
    if (!memory)
        return;
    struct gw_job_model_block *block =
        (void *)((unsigned char *)memory - gw_aligned(sizeof(struct gw_job_model_block)));
    block->next->before = block->before;
    block->before->next = block->next;
    actor->memory_now -= block->size;
    free(block);
}

struct gw_communicator_cfg gw_job_model_comm_cfg(struct gw_job_model *m, uint32_t rank)
{
    const struct gw_job_model_cfg *cfg = m->cfg;
    const struct gw_kernels *kernels = gw_kernels_best(gw_cpu_features());
    return (struct gw_communicator_cfg){
        .address = gw_job_model_address(m, rank),
        .job = GW_JOB_MODEL_NUMBER,
        .rank = (uint16_t)rank,
        .world = (uint16_t)cfg->world,
        .via = cfg->via,
        .server_count = cfg->servers,
        .whole = cfg->whole,
        .has_ways = cfg->has_ways,
        .notice = cfg->notice,
        .class = 1,
        .transport = &m->transport,
        .parts_transport = &m->parts_transport,
        .parts_segment = 32 * m->net.cfg.mtu,
        .largest = UINT64_C(1) << 16,
        .mtu = m->net.cfg.mtu,
        .segment = cfg->segment,
        .flows = 4,
        .incarnation = (uint32_t)gw_prng_next(&m->prng) | 1,
        .worker = {.timeout = TIMEOUT,
                   .stall = GW_JOB_MODEL_STALL,
                   .congestion_control = true,
                   .keeps_results = true,
                   .window_min = 4,
                   .kernels = kernels},
        .retry = RETRY,
        .beat = BEAT,
        .stall = GW_JOB_MODEL_STALL,
        .kernels = kernels,
        .allocator = {.take = take, .give = give, .context = &m->actors[rank]},
    };
}

void gw_job_model_rank_start(struct gw_job_model *m, uint32_t rank)
{
    struct gw_job_model_actor *actor = &m->actors[rank];
    *actor = (struct gw_job_model_actor){
        .rank = rank, .life = actor->life + 1, .has_returned = actor->life != 0};
    actor->blocks.next = actor->blocks.before = &actor->blocks;
    struct gw_communicator_cfg cfg = gw_job_model_comm_cfg(m, rank);
    cfg.endpoint = gw_job_model_endpoint(m, rank);
    size_t size = gw_communicator_size(&cfg);
    assert_true(size > 0);
    actor->memory = gw_test_take(size);
    assert_int_equal(gw_communicator_init(&actor->comm, actor->memory, &cfg, gw_job_model_now(m)),
                     0);
    gw_job_model_draw(m, actor);
    gw_job_model_at(m, gw_job_model_some(m, m->cfg->apart), GW_JOB_MODEL_COME, rank, 0);
    for (uint32_t server = 1; server < m->cfg->servers; server++)
        gw_job_model_at(m, gw_job_model_some(m, m->cfg->apart), GW_JOB_MODEL_KNOW, rank, server);
    gw_job_model_at(m, gw_job_model_some(m, m->cfg->apart), GW_JOB_MODEL_START, rank, 0);
}

/* Nobody hears of it any more: who knew it notices after `delay`. */
static void vanish(struct gw_job_model *m, uint32_t rank, gw_time delay)
{
    struct gw_job_model_actor *actor = &m->actors[rank];
    actor->state = GW_JOB_MODEL_GONE;
    actor->life++;
    if (actor->has_met && m->homes[0].is_up)
        gw_job_model_at(m, delay, GW_JOB_MODEL_LOSE, gw_job_model_address(m, rank),
                        m->homes[0].life);
    for (uint32_t other = 0; other < m->cfg->world; other++)
        if (m->actors[other].ways[rank] && gw_job_model_is_up(&m->actors[other]))
            gw_job_model_at(m, delay, GW_JOB_MODEL_MISS, other, rank);
}

static void note_memory(struct gw_job_model *m, const struct gw_job_model_actor *actor)
{
    if (actor->memory_now > m->result->memory_most)
        m->result->memory_most = actor->memory_now;
}

void gw_job_model_rank_die(struct gw_job_model *m, uint32_t rank)
{
    struct gw_job_model_actor *actor = &m->actors[rank];
    gw_tree_net_kill_host(&m->net, rank);
    gw_job_model_bury_calls(m, actor);
    while (actor->blocks.next != &actor->blocks)
        give(actor, (unsigned char *)actor->blocks.next + gw_aligned(sizeof(actor->blocks)));
    free(actor->memory);
    m->result->ranks[rank] = (struct gw_job_model_rank){.end = GW_JOB_MODEL_DIED};
    actor->is_dead = true;
    vanish(m, rank, GW_JOB_MODEL_SILENCE);
}

bool gw_job_model_rank_goes(struct gw_job_model *m, uint32_t rank)
{
    struct gw_job_model_actor *actor = &m->actors[rank];
    if (actor->state != GW_JOB_MODEL_OVER || gw_communicator_is_busy(actor->comm))
        return false;
    struct gw_tree_host *host = &m->net.hosts[rank];
    m->result->ranks[rank].stats = gw_communicator_stats(actor->comm);
    note_memory(m, actor);
    gw_communicator_fini(actor->comm);
    assert_ptr_equal(actor->blocks.next, &actor->blocks);
    free(actor->memory);
    gw_endpoint_fini(host->host.endpoint);
    gw_mem_replace(m->net.mem, host->node, NULL, NULL);
    gw_test_host_close(&host->host);
    host->is_up = false;
    vanish(m, rank, GW_TREE_NET_LATENCY);
    return true;
}

static void end(struct gw_job_model *m, struct gw_job_model_actor *actor,
                const struct gw_communicator_event *event)
{
    struct gw_job_model_rank *result = &m->result->ranks[actor->rank];
    bool has_left = event->kind == GW_COMMUNICATOR_LEFT;
    assert_int_not_equal(actor->state, GW_JOB_MODEL_OVER);
    if (has_left) {
        assert_int_equal(actor->state, GW_JOB_MODEL_LEAVING);
        assert_int_equal(actor->in_work, 0);
    } else {
        assert_in_range(event->reason, GW_JOB_OK + 1, GW_JOB_REASONS - 1);
        assert_in_range(event->about, 0, m->cfg->world);
        assert_in_range(event->server, 0, m->cfg->servers);
    }
    result->end = has_left ? GW_JOB_MODEL_LEFT : GW_JOB_MODEL_FAILED;
    result->ended = gw_job_model_now(m) - m->begin;
    result->dropped = actor->in_work;
    result->reason = event->reason;
    result->about = event->about;
    result->server = event->server;
    gw_job_model_bury_calls(m, actor);
    actor->state = GW_JOB_MODEL_OVER;
}

static void handle(struct gw_job_model *m, struct gw_job_model_actor *actor,
                   const struct gw_communicator_event *event)
{
    switch (event->kind) {
    case GW_COMMUNICATOR_OPEN:
        assert_int_equal(actor->state, GW_JOB_MODEL_OPENING);
        actor->state = GW_JOB_MODEL_OPEN;
        break;
    case GW_COMMUNICATOR_WANTS:
        assert_false(m->cfg->has_ways);
        assert_in_range(event->rank, 0, m->cfg->world - 1);
        gw_job_model_at(m, gw_job_model_some(m, 200 * GW_US), GW_JOB_MODEL_MEET, actor->rank,
                        event->rank);
        break;
    case GW_COMMUNICATOR_DONE:
    case GW_COMMUNICATOR_REFUSED:
        gw_job_model_call_ended(m, actor, event);
        break;
    case GW_COMMUNICATOR_FAILED:
    case GW_COMMUNICATOR_LEFT:
        end(m, actor, event);
        break;
    }
}

void gw_job_model_rank_turn(struct gw_job_model *m, uint32_t rank)
{
    struct gw_job_model_actor *actor = &m->actors[rank];
    gw_time now = gw_job_model_now(m), deadline = gw_communicator_deadline(actor->comm);
    struct gw_communicator_event event;
    struct gw_event posted;
    while (gw_endpoint_poll(gw_job_model_endpoint(m, rank), &posted, 1))
        gw_communicator_event(actor->comm, &posted, now);
    if (deadline != GW_TIME_NEVER && !gw_time_before(now, deadline)) {
        gw_communicator_expire(actor->comm, now);
        deadline = gw_communicator_deadline(actor->comm);
        assert_true(deadline == GW_TIME_NEVER || gw_time_before(now, deadline));
    }
    while (gw_communicator_poll(actor->comm, &event, now)) {
        assert_int_not_equal(actor->state, GW_JOB_MODEL_OVER);
        handle(m, actor, &event);
    }
    note_memory(m, actor);
}
