/*
 * All-reduce in slots over hosts and a switch that the in-memory datapath joins: several jobs share
 * them, every packet passes through its bytes and its queue, and links lose, double and delay as a
 * seed says. Sums are exact on every replica, and every call ends.
 */
#include "slots_model.h"

#include "host.h"
#include "pool_fixture.h"
#include "support.h"
#include "switch_fixture.h"

#include "base/prng.h"
#include "net/mem.h"

enum {
    STEPS_MAX = 4000000,
    TRIM_SIZE = 44,
};

#define LATENCY (2 * GW_US)

/* Hosts around a switch. */
struct net {
    struct gw_mem *mem;
    struct gw_prng prng;
    struct gw_test_host hosts[GW_SLOTS_MODEL_HOSTS];
    struct gw_pkt_pool pool; /* of the switch */
    struct gw_buf_pool bufs;
    struct gw_switch *sw;
    struct gw_slots *slots;
    struct gw_slots_model jobs[GW_SLOTS_MODEL_JOBS_MAX];
    uint32_t job_count;
    uint32_t lose_of_64, double_of_64, delay_of_64;
    gw_time delay_by;
};

/* A mask with about `of_64` of 64 bits set. */
static uint64_t random_mask(struct gw_prng *prng, uint32_t of_64)
{
    uint64_t mask = 0;
    for (uint32_t i = 0; i < 64; i++)
        mask |= (uint64_t)(gw_prng_below(prng, 64) < of_64) << i;
    return mask;
}

static void net_connect(struct net *net, uint32_t from, uint16_t from_port, uint32_t to,
                        uint16_t to_port)
{
    struct gw_mem_link link = {
        .latency = LATENCY + gw_prng_below(&net->prng, LATENCY),
        .rate_bps = 10000000000,
        .lose = random_mask(&net->prng, net->lose_of_64),
        .duplicate = random_mask(&net->prng, net->double_of_64),
        .delay = random_mask(&net->prng, net->delay_of_64),
        .delay_by = net->delay_by,
    };
    gw_mem_connect(net->mem, from, from_port, to, to_port, &link);
}

static uint32_t open_switch(struct net *net)
{
    static const uint16_t leaves[GW_SLOTS_MODEL_HOSTS] = {0, 1, 2, 3, 4};
    gw_test_pool_open(&net->pool, &net->bufs, GW_SLOTS_MODEL_PKTS, 4 * GW_SLOTS_MODEL_VALUES);
    net->slots = gw_slots_model_open_stage(&net->pool);
    struct gw_switch_cfg cfg = gw_test_switch_cfg(GW_SLOTS_MODEL_HOSTS, "red", &net->pool);
    cfg.capacity = gw_test_capacity(65536);
    cfg.trim_size = TRIM_SIZE;
    cfg.slots = net->slots;
    cfg.routes = gw_test_routes(leaves, GW_SLOTS_MODEL_HOSTS);
    net->sw = gw_test_switch_open(&cfg);
    return gw_mem_add(net->mem, gw_switch_node(net->sw), &net->pool);
}

static void net_open(struct net *net)
{
    struct gw_mem_cfg cfg = {.cookie = 5,
                             .mtu = 4 * GW_SLOTS_MODEL_VALUES,
                             .frames_max = 8192,
                             .batch = 4,
                             .start = (gw_time)0 - GW_MS};
    net->mem = gw_mem_open(&cfg);
    assert_non_null(net->mem);
    uint32_t center = open_switch(net);
    for (uint16_t i = 0; i < GW_SLOTS_MODEL_HOSTS; i++) {
        struct gw_endpoint_cfg host = gw_slots_model_endpoint_cfg(i);
        gw_test_host_open(&net->hosts[i], &host, GW_SLOTS_MODEL_PKTS);
        uint32_t node =
            gw_mem_add(net->mem, gw_endpoint_node(net->hosts[i].endpoint), &net->hosts[i].pool);
        net_connect(net, node, 0, center, i);
        net_connect(net, center, i, node, 0);
    }
    for (uint32_t j = 0; j < net->job_count; j++) {
        struct gw_slots_model *job = &net->jobs[j];
        for (uint32_t rank = 0; rank < job->world; rank++)
            job->endpoints[rank] = net->hosts[job->members[rank]].endpoint;
        gw_slots_model_open(job);
        gw_slots_model_install(job, net->slots);
    }
}

static void net_poll(struct net *net)
{
    struct gw_event event;
    for (uint32_t host = 0; host < GW_SLOTS_MODEL_HOSTS; host++)
        while (gw_endpoint_poll(net->hosts[host].endpoint, &event, 1)) {
            struct gw_slots_model *job = &net->jobs[event.flow];
            gw_slots_model_event(
                job, (host + GW_SLOTS_MODEL_HOSTS - job->number) % GW_SLOTS_MODEL_HOSTS, &event);
        }
}

/* Runs until nothing is left to do. */
static void net_run(struct net *net)
{
    for (uint32_t steps = 0; gw_mem_step(net->mem, GW_TIME_NEVER); steps++) {
        assert_in_range(steps, 0, STEPS_MAX);
        net_poll(net);
        for (uint32_t j = 0; j < net->job_count; j++)
            if (!net->jobs[j].stall)
                gw_slots_model_check_turns(&net->jobs[j]);
    }
    for (uint32_t j = 0; j < net->job_count; j++)
        assert_true(gw_slots_model_has_ended(&net->jobs[j]));
}

static void net_close(struct net *net, struct gw_slots_stats *seen)
{
    gw_slots_model_add_stats(seen, gw_slots_stats(net->slots));
    for (uint32_t j = 0; j < net->job_count; j++) {
        gw_slots_remove(net->slots, net->jobs[j].number);
        for (uint32_t rank = 0; rank < net->jobs[j].world; rank++)
            gw_slot_worker_fini(net->jobs[j].workers[rank]);
    }
    for (uint32_t i = 0; i < GW_SLOTS_MODEL_HOSTS; i++)
        gw_test_host_close(&net->hosts[i]);
    gw_test_pool_close(&net->pool);
    free(net->sw);
    gw_mem_close(net->mem);
    gw_slots_model_free_all();
}

/* Jobs of a seed, and links as bad as it says. */
static struct net net_of(uint64_t seed)
{
    struct net net = {
        .prng = gw_prng_derive(seed, 98),
        .job_count = 1 + (uint32_t)(seed % GW_SLOTS_MODEL_JOBS_MAX),
        .lose_of_64 = (uint32_t)(seed % 7),
        .double_of_64 = (uint32_t)(seed / 2 % 8),
        .delay_of_64 = (uint32_t)(seed / 3 % 9),
        .delay_by = seed % 2
                        ? 8 * LATENCY
                        : 3 * GW_SLOTS_MODEL_TIMEOUT, /* within a use of the slot, and beyond */
    };
    for (uint32_t j = 0; j < net.job_count; j++) {
        net.jobs[j] = gw_slots_model_draw(seed, j);
        net.jobs[j].units = j == 1 ? 0 : (uint8_t)(1 + seed % GW_NOTICE_UNITS_MAX);
    }
    return net;
}

static void start_all(struct net *net)
{
    for (uint32_t j = 0; j < net->job_count; j++)
        for (uint32_t rank = 0; rank < net->jobs[j].world; rank++)
            gw_slots_model_reduce(&net->jobs[j], rank, gw_mem_now(net->mem));
}

static void net__jobs_that_share_a_switch_are_exact(void **state)
{
    (void)state;
    struct gw_slots_stats seen = {0};
    uint32_t types = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct net net = net_of(seed);
        net_open(&net);
        start_all(&net);
        net_run(&net);
        for (uint32_t j = 0; j < net.job_count; j++) {
            gw_slots_model_check_sums(&net.jobs[j]);
            types |= 1u << net.jobs[j].type;
        }
        net_close(&net, &seen);
    }
    print_message("held %llu, completed %llu, repeated %llu, duplicates %llu, stale %llu\n",
                  (unsigned long long)seen.held, (unsigned long long)seen.completed,
                  (unsigned long long)seen.repeated, (unsigned long long)seen.duplicates,
                  (unsigned long long)seen.stale);
    assert_true(seen.repeated && seen.duplicates && seen.stale);
    assert_int_equal(types, (1 << GW_DTYPE_SUMMABLE) - 1);
}

/* Without loss, each worker sends each fragment once: the switch multicasts one result. */
static void net__without_loss_nothing_is_sent_twice(void **state)
{
    (void)state;
    struct gw_slots_stats seen = {0};
    struct net net = net_of(2);
    net.lose_of_64 = net.double_of_64 = net.delay_of_64 = 0;
    net_open(&net);
    start_all(&net);
    net_run(&net);
    uint64_t fragments = 0, gradients = 0, bursts = 0, announced = 0;
    for (uint32_t j = 0; j < net.job_count; j++) {
        uint64_t own = 0;
        for (uint32_t t = 0; t < GW_SLOTS_MODEL_TENSORS; t++)
            own += (net.jobs[j].counts[t] + GW_SLOTS_MODEL_VALUES - 1) / GW_SLOTS_MODEL_VALUES;
        fragments += own;
        gradients += own * net.jobs[j].world;
        for (uint32_t rank = 0; rank < net.jobs[j].world; rank++) {
            assert_int_equal(gw_slot_worker_stats(net.jobs[j].workers[rank])->sent, own);
            bursts += net.jobs[j].units > 0;
        }
    }
    /* Also from those that send to themselves, by way of the switch. */
    for (uint32_t host = 0; host < GW_SLOTS_MODEL_HOSTS; host++) {
        const struct gw_endpoint_stats *stats = gw_endpoint_stats(net.hosts[host].endpoint);
        announced += stats->bursts_announced - stats->bursts_unanswered;
    }
    assert_int_equal(announced, bursts);
    net_close(&net, &seen);
    assert_int_equal(seen.completed, fragments);
    assert_int_equal(seen.gradients, gradients);
}

/* A worker that never calls: the others give up, and then all succeed with their next calls. */
static void net__a_missing_worker_fails_the_calls(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct gw_slots_stats seen = {0};
        struct net net = net_of(seed);
        struct gw_slots_model *job = &net.jobs[0];
        net.job_count = 1;
        if (job->world == 1)
            continue;
        job->stall = 20 * GW_SLOTS_MODEL_TIMEOUT;
        net_open(&net);
        for (uint32_t rank = 1; rank < job->world; rank++)
            gw_slots_model_reduce(job, rank, gw_mem_now(net.mem));
        job->ended[0] = GW_SLOTS_MODEL_TENSORS; /* it has none */
        net_run(&net);
        for (uint32_t rank = 1; rank < job->world; rank++)
            assert_int_equal(job->failed[rank], GW_SLOTS_MODEL_TENSORS);
        assert_int_equal(gw_slots_stats(net.slots)->completed, 0);
        net_close(&net, &seen);
    }
}

/* A link that carries nothing, for a while: what fails, fails, and every call after it is exact. */
static void net__calls_after_a_failure_are_exact(void **state)
{
    (void)state;
    uint32_t failed = 0, runs = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct gw_slots_stats seen = {0};
        struct net net = net_of(seed);
        struct gw_slots_model *job = &net.jobs[0];
        struct gw_mem_link dead = {.latency = LATENCY, .lose = UINT64_MAX},
                           good = {.latency = LATENCY, .lose = 4};
        net.job_count = 1;
        job->stall = 20 * GW_SLOTS_MODEL_TIMEOUT;
        net_open(&net);
        start_all(&net);
        for (uint32_t steps = 0; steps < 40 + seed * 4 && gw_mem_step(net.mem, GW_TIME_NEVER);
             steps++)
            net_poll(&net);
        gw_mem_change(net.mem, 2 * job->members[0] + 1, &dead); /* from the switch to rank 0 */
        net_run(&net);
        for (uint32_t rank = 0; rank < job->world; rank++)
            failed += job->failed[rank];
        gw_mem_change(net.mem, 2 * job->members[0] + 1, &good);
        memset(job->ended, 0, sizeof(job->ended));
        memset(job->failed, 0, sizeof(job->failed));
        start_all(&net);
        net_run(&net);
        for (uint32_t rank = 0; rank < job->world; rank++)
            assert_int_equal(job->failed[rank], 0);
        gw_slots_model_check_sums(job);
        net_close(&net, &seen);
        runs++;
    }
    assert_true(failed > runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(net__jobs_that_share_a_switch_are_exact),
        cmocka_unit_test(net__without_loss_nothing_is_sent_twice),
        cmocka_unit_test(net__a_missing_worker_fails_the_calls),
        cmocka_unit_test(net__calls_after_a_failure_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
