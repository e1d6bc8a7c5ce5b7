/*
 * Sums over several servers (ATP, sections 2.1 and A.5): small tensors go to the servers in turn,
 * large ones are divided, so that of |U| bytes each of m servers takes in |U|/m and gives out
 * |U|/m; sums for one rank reach that one; and a server that restarts goes on where it was.
 */
#include "job_model.h"
#include "support.h"

#include "wire/wire.h"

enum {
    VALUES = 64,
    FRAGMENT = VALUES * GW_WIRE_VALUE_SIZE, /* bytes */
    WHOLE = 8 * FRAGMENT,
    CALLS = 12, /* a multiple of all numbers of servers */
    MORE_CALLS = 48,
};

static struct gw_job_model_cfg basic(uint32_t servers)
{
    return (struct gw_job_model_cfg){
        .seed = servers,
        .world = 6,
        .servers = servers,
        .racks = 2,
        .rank_home = {0, 0, 1, 1, 2, 2},
        .server_home = {2, 2, 2, 2},
        .via = GW_VIA_INA,
        .whole = WHOLE,
        .has_ways = true,
        .values = VALUES,
        .window = 32,
        .segment = 1024,
        .depth = CALLS,
        .pause = GW_US,
        .apart = 10 * GW_US,
        .aggregators = 65536,
    };
}

/* Sums of float32 of so many elements each, all small enough for switches. */
static void fill_calls(struct gw_model_call calls[MORE_CALLS], enum gw_via via, uint64_t count)
{
    for (uint32_t i = 0; i < MORE_CALLS; i++)
        calls[i] = (struct gw_model_call){
            .kind = GW_CALL_ALLREDUCE, .via = via, .count = count, .seed = 2 * i + 1};
}

static void run_well(struct gw_job_model_cfg *cfg, struct gw_job_model_result *result)
{
    gw_job_model_run(cfg, result);
    for (uint32_t rank = 0; rank < cfg->world; rank++)
        if (result->ranks[rank].end != GW_JOB_MODEL_LEFT)
            fail_msg("%u servers: rank %u failed: %s", cfg->servers, rank,
                     gw_job_reason_text(result->ranks[rank].reason));
}

/* Bytes of values that came to a server in so many packets, as its books say. */
static uint64_t values_in(const struct gw_job_model_server *server, enum gw_via via)
{
    const struct gw_server_stats *sums = &server->sums[via == GW_VIA_PS];
    return sums->bytes - GW_WIRE_AGG_SIZE * sums->received;
}

/*
 * And that left it, as its link says: what is no result is job control. A server that is no home
 * sends nothing else.
 */
static uint64_t values_out(const struct gw_job_model_server *server, uint64_t results)
{
    return server->from.bytes - GW_WIRE_AGG_SIZE * results -
           GW_WIRE_JOB_SIZE * (server->from.sent - results);
}

/* What the switches add up comes once to a server, and its result leaves once. */
static void check_shares(uint32_t servers, uint64_t count)
{
    struct gw_job_model_cfg cfg = basic(servers);
    struct gw_job_model_result result;
    struct gw_model_call calls[MORE_CALLS];
    uint64_t all = CALLS * count * GW_WIRE_VALUE_SIZE;
    fill_calls(calls, GW_VIA_INA, count);
    cfg.calls = calls;
    cfg.call_count = CALLS;
    run_well(&cfg, &result);
    for (uint32_t i = 0; i < servers; i++) {
        const struct gw_server_stats *sums = &result.servers[i].sums[0];
        uint64_t in = values_in(&result.servers[i], GW_VIA_INA);
        assert_int_equal(sums->received, sums->results);
        assert_int_equal(in, all / servers);
        if (i > 0)
            assert_int_equal(values_out(&result.servers[i], sums->results), in);
    }
}

static void servers__take_whole_tensors_in_turn(void **state)
{
    (void)state;
    for (uint32_t servers = 1; servers <= GW_JOB_MODEL_SERVERS_MAX; servers++)
        check_shares(servers, WHOLE / GW_WIRE_VALUE_SIZE);
}

/* By whole fragments: of a tensor one server has more than another, of several all the same. */
static void servers__divide_large_tensors(void **state)
{
    (void)state;
    for (uint32_t servers = 1; servers <= GW_JOB_MODEL_SERVERS_MAX; servers++)
        check_shares(servers, 25 * VALUES + 7);
}

/* Without switches that add up every rank's values come. */
static void servers__of_via_ps_share_what_all_ranks_send(void **state)
{
    (void)state;
    for (uint32_t servers = 1; servers <= GW_JOB_MODEL_SERVERS_MAX; servers++) {
        struct gw_job_model_cfg cfg = basic(servers);
        struct gw_job_model_result result;
        struct gw_model_call calls[MORE_CALLS];
        uint64_t all = CALLS * WHOLE;
        fill_calls(calls, GW_VIA_PS, WHOLE / GW_WIRE_VALUE_SIZE);
        cfg.calls = calls;
        cfg.call_count = CALLS;
        run_well(&cfg, &result);
        for (uint32_t i = 0; i < servers; i++) {
            assert_int_equal(values_in(&result.servers[i], GW_VIA_PS), cfg.world * all / servers);
            assert_int_equal(values_in(&result.servers[i], GW_VIA_INA), 0);
        }
    }
}

/* Each rank is the root of sums, small and divided; where there is no root nothing is written, and
 * what a rank takes to sum in it gives back. */
static void servers__give_a_sum_to_its_root(void **state)
{
    static const uint64_t counts[] = {1, WHOLE / GW_WIRE_VALUE_SIZE, 25 * VALUES + 7};
    (void)state;
    for (uint32_t via = GW_VIA_INA; via <= GW_VIA_PS; via++)
        for (uint32_t servers = 1; servers <= GW_JOB_MODEL_SERVERS_MAX;
             servers += 1 + servers % 2) {
            struct gw_job_model_cfg cfg = basic(servers);
            struct gw_job_model_result result;
            struct gw_model_call calls[MORE_CALLS];
            uint64_t fragments = 0, results = 0;
            fill_calls(calls, (enum gw_via)via, 0);
            cfg.calls = calls;
            cfg.call_count = 3 * cfg.world;
            for (uint32_t i = 0; i < cfg.call_count; i++) {
                calls[i].kind = GW_CALL_REDUCE;
                calls[i].from = i / 3;
                calls[i].count = counts[i % 3];
                fragments += (calls[i].count + VALUES - 1) / VALUES;
            }
            run_well(&cfg, &result);
            for (uint32_t rank = 0; rank < cfg.world; rank++)
                assert_int_equal(result.ranks[rank].done, cfg.call_count);
            for (uint32_t i = 0; i < servers; i++)
                results += result.servers[i].sums[via == GW_VIA_PS].results;
            assert_true(results == fragments);
        }
}

/* Each of the servers in turn, the home too, at several moments; sums are checked by the model. */
static void servers__that_restart_go_on(void **state)
{
    (void)state;
    uint64_t restored = 0;
    for (uint32_t victim = 0; victim < 3; victim++)
        for (uint32_t moment = 0; moment < 4; moment++) {
            struct gw_job_model_cfg cfg = basic(3);
            struct gw_job_model_result result;
            struct gw_model_call calls[MORE_CALLS];
            fill_calls(calls, moment % 2 ? GW_VIA_PS : GW_VIA_INA, 4000 + moment);
            cfg.calls = calls;
            cfg.call_count = MORE_CALLS;
            cfg.via = calls[0].via;
            cfg.pause = 500 * GW_US;
            cfg.faults[0] = (struct gw_job_model_fault){
                .at = (300 + 200 * moment) * GW_US,
                .back = (300 + 200 * moment) * GW_US + (1 + moment) * 2 * GW_MS,
                .victim = GW_JOB_MODEL_SERVER,
                .which = victim,
            };
            run_well(&cfg, &result);
            restored += result.servers[victim].sums[moment % 2].restored;
            assert_true(result.servers[victim].epochs >= 2);
        }
    assert_true(restored);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers__take_whole_tensors_in_turn),
        cmocka_unit_test(servers__divide_large_tensors),
        cmocka_unit_test(servers__of_via_ps_share_what_all_ranks_send),
        cmocka_unit_test(servers__give_a_sum_to_its_root),
        cmocka_unit_test(servers__that_restart_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
