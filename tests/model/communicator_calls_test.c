/*
 * A job that does everything at once: all calls of all kinds, by all ways, interleaved and
 * asynchronous, give exactly what they must, whatever links lose, double and delay; and ranks may
 * leave in any order.
 */
#include "host.h"
#include "job_model.h"
#include "random_calls.h"
#include "support.h"

#include "base/cpu.h"
#include "base/error.h"

enum {
    CALLS = 60,
    ELEMENTS_MAX = 3000,
};

/* Three racks at a root, with a server there. */
static struct gw_job_model_cfg basic(uint64_t seed)
{
    return (struct gw_job_model_cfg){
        .seed = seed,
        .world = 6,
        .servers = 1,
        .racks = 2,
        .rank_home = {0, 0, 1, 1, 1, 2},
        .server_home = {2, 2, 2, 2},
        .via = GW_VIA_INA,
        .whole = 4096,
        .values = 64,
        .window = 32,
        .segment = 1024,
        .depth = 8,
        .pause = 200 * GW_US,
        .apart = GW_MS,
        .aggregators = 256,
    };
}

static uint32_t rerouted(const struct gw_job_model_cfg *cfg)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < cfg->call_count; i++) {
        struct gw_model_call call = cfg->calls[i];
        if (call.via == GW_VIA_DEFAULT)
            call.via = cfg->via;
        count += gw_model_call_is_rerouted(&call);
    }
    return count;
}

/* Every rank has ended every call, and left. */
static void run_well(const struct gw_job_model_cfg *cfg, struct gw_job_model_result *result)
{
    gw_job_model_run(cfg, result);
    for (uint32_t rank = 0; rank < cfg->world; rank++) {
        const struct gw_job_model_rank *r = &result->ranks[rank];
        if (r->end != GW_JOB_MODEL_LEFT)
            fail_msg("seed %llu: rank %u failed: %s (about %u, server %u), %u calls dropped",
                     (unsigned long long)cfg->seed, rank, gw_job_reason_text(r->reason), r->about,
                     r->server, r->dropped);
        assert_int_equal(r->stats.rerouted, rerouted(cfg));
    }
}

static void run_random(struct gw_job_model_cfg *cfg, struct gw_job_model_result *result)
{
    struct gw_model_call calls[CALLS];
    struct gw_prng prng = gw_prng_derive(cfg->seed, 3);
    gw_random_calls(&prng, cfg->world, ELEMENTS_MAX, CALLS, calls);
    cfg->calls = calls;
    cfg->call_count = CALLS;
    run_well(cfg, result);
}

static void communicator__does_everything_at_once(void **state)
{
    (void)state;
    for (uint32_t via = 0; via < GW_VIAS; via++) {
        struct gw_job_model_cfg cfg = basic(1 + via);
        struct gw_job_model_result result;
        cfg.via = (enum gw_via)via;
        run_random(&cfg, &result);
        assert_true(result.servers[0].sums[0].results && result.servers[0].sums[1].results);
        assert_true(result.switches.completed);
        assert_true(result.memory_most);
    }
}

static void communicator__does_so_under_loss_doubling_and_reordering(void **state)
{
    (void)state;
    uint64_t resent = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct gw_job_model_cfg cfg = basic(seed);
        struct gw_job_model_result result;
        cfg.lose_of_64 = (uint32_t)(1 + seed % 3);
        cfg.double_of_64 = (uint32_t)(seed / 2 % 3);
        cfg.delay_of_64 = (uint32_t)(seed / 3 % 4);
        cfg.via = (enum gw_via)(seed % GW_VIAS);
        cfg.has_ways = seed % 2;
        cfg.is_early = seed / 2 % 2;
        cfg.notice = seed % 3 == 0 ? 3 : 0;
        cfg.world = (uint32_t)(2 + seed % 5);
        cfg.servers = (uint32_t)(1 + seed % 3);
        run_random(&cfg, &result);
        for (uint32_t rank = 0; rank < cfg.world; rank++)
            resent += result.ranks[rank].stats.sums.resent;
    }
    assert_true(resent);
}

static void communicator__of_one_rank_needs_nobody_else(void **state)
{
    (void)state;
    for (uint32_t via = 0; via < GW_VIAS; via++) {
        struct gw_job_model_cfg cfg = basic(via);
        struct gw_job_model_result result;
        cfg.via = (enum gw_via)via;
        cfg.world = 1;
        run_random(&cfg, &result);
    }
}

/* Each way of a rank breaks now and then, and it finds another. */
static void communicator__finds_ways_again(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct gw_job_model_cfg cfg = basic(seed);
        struct gw_job_model_result result;
        cfg.pause = GW_MS;
        for (uint32_t i = 0; i < GW_JOB_MODEL_FAULTS_MAX; i++)
            cfg.faults[i] = (struct gw_job_model_fault){
                .at = (2 + i) * GW_MS, .victim = GW_JOB_MODEL_WAY, .which = i};
        run_random(&cfg, &result);
    }
}

/* Four ranks, with or without a message between them, by each of the 24 orders. */
static void communicator__ranks_leave_in_any_order(void **state)
{
    (void)state;
    static const struct gw_model_call calls[] = {
        {.kind = GW_CALL_ALLREDUCE, .via = GW_VIA_PS, .count = 100, .seed = 1},
        {.kind = GW_CALL_ALLREDUCE, .via = GW_VIA_RING, .count = 100, .seed = 2},
        {.kind = GW_CALL_PUSH, .from = 2, .count = 1000, .key = 3},
    };
    for (uint32_t order = 0; order < 256; order++) {
        uint32_t places = 0;
        for (uint32_t rank = 0; rank < 4; rank++)
            places |= 1u << (order >> 2 * rank & 3);
        if (places != 15)
            continue; /* two would have the same place */
        for (uint32_t count = 0; count <= GW_COUNT_OF(calls); count++) {
            struct gw_job_model_cfg cfg = basic(order);
            struct gw_job_model_result result;
            cfg.world = 4;
            cfg.via = (enum gw_via)(order % GW_VIAS);
            cfg.calls = calls;
            cfg.call_count = count;
            for (uint32_t rank = 0; rank < 4; rank++)
                cfg.leave_after[rank] = (1 + (order >> 2 * rank & 3)) * 10 * GW_MS;
            run_well(&cfg, &result);
        }
    }
}

static void *take(void *context, size_t size)
{
    (void)context;
    return memset(gw_test_take(size), 0, size);
}

static void give(void *context, void *memory)
{
    (void)context;
    free(memory);
}

/* A rank whose job does not begin. */
static void communicator_call__finds_no_room_for_more_than_64(void **state)
{
    (void)state;
    struct gw_transport transport = gw_test_transport("smartt", "spray", "timeout");
    struct gw_endpoint_cfg endpoint = gw_test_host_cfg(1, 256);
    struct gw_communicator_cfg cfg = {
        .address = 1,
        .job = 7,
        .world = 2,
        .server_count = 2,
        .transport = &transport,
        .mtu = 256,
        .segment = 1024,
        .flows = 2,
        .incarnation = 1,
        .worker = {.timeout = GW_MS},
        .retry = GW_MS,
        .beat = GW_MS,
        .stall = GW_S,
        .kernels = gw_kernels_best(gw_cpu_features()),
        .allocator = {.take = take, .give = give},
    };
    struct gw_test_host host;
    struct gw_communicator *comm;
    struct gw_communicator_event event;
    unsigned char bytes[8] = {0};
    gw_communicator_demand(&cfg, &endpoint);
    gw_test_host_open(&host, &endpoint, 64);
    cfg.endpoint = host.endpoint;
    void *memory = gw_test_take(gw_communicator_size(&cfg));
    assert_int_equal(gw_communicator_init(&comm, memory, &cfg, 0), GW_OK);
    struct gw_call call = {.via = GW_VIA_DEFAULT, .in = bytes, .out = bytes, .count = 1};
    for (uint32_t i = 0; i < GW_COMMUNICATOR_CALLS_MAX; i++) {
        call.kind = (enum gw_call_kind)(i % GW_CALL_KINDS);
        call.number = call.tag = i + 1;
        call.peer = 1;
        assert_int_equal(gw_communicator_call(comm, &call, 0), GW_OK);
        assert_false(gw_communicator_poll(comm, &event, 0));
    }
    for (uint32_t i = 0; i < GW_CALL_KINDS; i++) {
        call.kind = (enum gw_call_kind)i;
        assert_int_equal(gw_communicator_call(comm, &call, 0), GW_ERR_NO_ROOM);
    }
    gw_communicator_abort(comm, 0);
    assert_true(gw_communicator_poll(comm, &event, 0));
    assert_int_equal(event.kind, GW_COMMUNICATOR_FAILED);
    assert_int_equal(event.reason, GW_JOB_LOST);
    assert_int_equal(event.about, 0);
    assert_false(gw_communicator_poll(comm, &event, 0));
    assert_int_equal(gw_communicator_call(comm, &call, 0), GW_ERR_OUT);
    gw_communicator_fini(comm);
    gw_endpoint_fini(host.endpoint);
    gw_test_host_close(&host);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(communicator__does_everything_at_once),
        cmocka_unit_test(communicator__does_so_under_loss_doubling_and_reordering),
        cmocka_unit_test(communicator__of_one_rank_needs_nobody_else),
        cmocka_unit_test(communicator__finds_ways_again),
        cmocka_unit_test(communicator__ranks_leave_in_any_order),
        cmocka_unit_test(communicator_call__finds_no_room_for_more_than_64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
