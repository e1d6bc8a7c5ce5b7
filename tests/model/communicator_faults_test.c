/*
 * What a job that does everything at once makes of the death of each of its parties, at any moment:
 * all calls of all who live end right, or the job fails for all of them in time, and says who is to
 * blame. The model watches memory, packets and deadlines (job_model.h).
 */
#include "job_model.h"
#include "random_calls.h"
#include "support.h"

enum {
    CALLS = 50,
    ELEMENTS_MAX = 1000,
    MOMENTS = 10,
    RACK = 1, /* that dies, with the ranks 2, 3 and 4 */
    ROOT = 2,
    VICTIM = 3, /* rank that dies */
};

static struct gw_job_model_cfg basic(uint32_t moment)
{
    return (struct gw_job_model_cfg){
        .seed = moment,
        .world = 6,
        .servers = 2,
        .racks = 2,
        .rank_home = {0, 0, RACK, RACK, RACK, ROOT},
        .server_home = {ROOT, ROOT},
        .via = (enum gw_via)(moment % GW_VIAS),
        .whole = 1024,
        .has_ways = moment / 2 % 2,
        .is_early = moment % 2,
        .values = 64,
        .window = 32,
        .segment = 1024,
        .depth = 8,
        .pause = 300 * GW_US,
        .apart = 300 * GW_US,
        .aggregators = 256,
        .lose_of_64 = moment % 2,
    };
}

/* The first at 100 us, in the middle of the beginning; the last when calls have ended. */
static gw_time moment_of(uint32_t moment)
{
    return (UINT64_C(100) << moment) * GW_US;
}

static void run(struct gw_job_model_cfg *cfg, const struct gw_job_model_fault *fault,
                struct gw_job_model_result *result)
{
    static struct gw_model_call calls[CALLS];
    struct gw_prng prng = gw_prng_derive(cfg->seed, 4);
    gw_random_calls(&prng, cfg->world, ELEMENTS_MAX, CALLS, calls);
    cfg->calls = calls;
    cfg->call_count = CALLS;
    cfg->faults[0] = *fault;
    gw_job_model_run(cfg, result);
}

/* What a rank failed for is one of these. */
static void check(const struct gw_job_model_cfg *cfg, const struct gw_job_model_result *result,
                  uint32_t number, bool is_right)
{
    const struct gw_job_model_rank *rank = &result->ranks[number];
    if (rank->end == GW_JOB_MODEL_FAILED && !is_right)
        fail_msg("moment %u, rank %u: %s, about %u, server %u", (unsigned)cfg->seed, number,
                 gw_job_reason_text(rank->reason), rank->about, rank->server);
}

static void job__of_a_rank_that_dies_fails_and_names_it(void **state)
{
    (void)state;
    uint32_t failed = 0, left = 0;
    for (uint32_t moment = 0; moment < MOMENTS; moment++) {
        struct gw_job_model_cfg cfg = basic(moment);
        struct gw_job_model_result result;
        const struct gw_job_model_fault fault = {
            .at = moment_of(moment), .victim = GW_JOB_MODEL_RANK, .which = VICTIM};
        run(&cfg, &fault, &result);
        for (uint32_t i = 0; i < cfg.world; i++) {
            const struct gw_job_model_rank *rank = &result.ranks[i];
            bool is_named = rank->about == VICTIM && rank->reason == GW_JOB_LOST;
            bool is_early = rank->about == cfg.world && rank->reason == GW_JOB_SILENT;
            check(&cfg, &result, i, is_named || (is_early && rank->done == 0));
            failed += rank->end == GW_JOB_MODEL_FAILED;
            left += rank->end == GW_JOB_MODEL_LEFT;
        }
    }
    assert_true(failed && left);
}

/* A server that stays away; 0 is the home. */
static void check_server(uint32_t which)
{
    uint32_t failed = 0, left = 0;
    for (uint32_t moment = 0; moment < MOMENTS; moment++) {
        struct gw_job_model_cfg cfg = basic(moment);
        struct gw_job_model_result result;
        const struct gw_job_model_fault fault = {
            .at = moment_of(moment), .victim = GW_JOB_MODEL_SERVER, .which = which};
        run(&cfg, &fault, &result);
        for (uint32_t i = 0; i < cfg.world; i++) {
            const struct gw_job_model_rank *rank = &result.ranks[i];
            bool is_silence = rank->reason == GW_JOB_SILENT || rank->reason == GW_JOB_STALLED;
            bool is_named = rank->server == which || rank->server == cfg.servers;
            check(&cfg, &result, i, is_silence && is_named && rank->about == cfg.world);
            failed += rank->end == GW_JOB_MODEL_FAILED;
            left += rank->end == GW_JOB_MODEL_LEFT;
        }
    }
    assert_true(failed && left);
}

static void job__whose_server_stays_away_fails_and_names_it(void **state)
{
    (void)state;
    check_server(0);
    check_server(1);
}

/* One that comes back in time is not missed, whichever it is. */
static void job__whose_server_or_switch_comes_back_goes_on(void **state)
{
    (void)state;
    static const struct gw_job_model_fault faults[] = {
        {.victim = GW_JOB_MODEL_SERVER, .which = 0},
        {.victim = GW_JOB_MODEL_SERVER, .which = 1},
        {.victim = GW_JOB_MODEL_SWITCH, .which = RACK},
        {.victim = GW_JOB_MODEL_SWITCH, .which = ROOT},
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(faults); i++)
        for (uint32_t moment = 0; moment < MOMENTS; moment++) {
            struct gw_job_model_cfg cfg = basic(moment);
            struct gw_job_model_result result;
            struct gw_job_model_fault fault = faults[i];
            fault.at = moment_of(moment);
            fault.back = fault.at + (1 + moment) * GW_MS;
            run(&cfg, &fault, &result);
            for (uint32_t rank = 0; rank < cfg.world; rank++)
                check(&cfg, &result, rank, false);
        }
}

/* Also as ranks leave that have spoken with nobody else: each has results that a server which
 * restarts has forgotten, and others may lack. */
static void job__of_sums_whose_server_restarts_as_ranks_leave_goes_on(void **state)
{
    (void)state;
    static const struct gw_model_call sums[] = {
        {.kind = GW_CALL_ALLREDUCE, .via = GW_VIA_PS, .count = 1000, .seed = 1},
        {.kind = GW_CALL_ALLREDUCE, .via = GW_VIA_PS, .count = 1000, .seed = 2},
    };
    uint32_t restored = 0;
    for (uint32_t moment = 0; moment < 10 * MOMENTS; moment++) {
        struct gw_job_model_cfg cfg = basic(moment);
        struct gw_job_model_result result;
        cfg.via = GW_VIA_PS;
        cfg.servers = 1;
        cfg.lose_of_64 = 3;
        cfg.calls = sums;
        cfg.call_count = GW_COUNT_OF(sums);
        cfg.faults[0] = (struct gw_job_model_fault){
            .at = (500 + 20 * moment) * GW_US,
            .back = (600 + 20 * moment) * GW_US,
            .victim = GW_JOB_MODEL_SERVER,
        };
        gw_job_model_run(&cfg, &result);
        for (uint32_t rank = 0; rank < cfg.world; rank++)
            check(&cfg, &result, rank, false);
        restored += result.servers[0].sums[1].restored > 0;
    }
    assert_true(restored);
}

/* Somebody misses the rack's ranks; who waits for him may be missed by others. */
static void job__whose_rack_is_cut_off_fails(void **state)
{
    (void)state;
    uint32_t blamed = 0;
    for (uint32_t moment = 0; moment < MOMENTS; moment++) {
        struct gw_job_model_cfg cfg = basic(moment);
        struct gw_job_model_result result;
        const struct gw_job_model_fault fault = {
            .at = moment_of(moment), .victim = GW_JOB_MODEL_SWITCH, .which = RACK};
        run(&cfg, &fault, &result);
        for (uint32_t i = 0; i < cfg.world; i++) {
            const struct gw_job_model_rank *rank = &result.ranks[i];
            bool is_silence = rank->reason == GW_JOB_SILENT || rank->reason == GW_JOB_STALLED;
            check(&cfg, &result, i, is_silence || rank->reason == GW_JOB_LOST);
            blamed += rank->reason == GW_JOB_LOST && rank->about < cfg.world &&
                      cfg.rank_home[rank->about] == RACK;
        }
    }
    assert_true(blamed);
}

/* Once all have come. */
static void job__that_a_rank_gives_up_fails_for_all(void **state)
{
    (void)state;
    for (uint32_t moment = 3; moment < 6; moment++) {
        struct gw_job_model_cfg cfg = basic(moment);
        struct gw_job_model_result result;
        const struct gw_job_model_fault fault = {
            .at = moment_of(moment), .victim = GW_JOB_MODEL_ABORT, .which = VICTIM};
        run(&cfg, &fault, &result);
        for (uint32_t i = 0; i < cfg.world; i++) {
            const struct gw_job_model_rank *rank = &result.ranks[i];
            check(&cfg, &result, i, rank->about == VICTIM && rank->reason == GW_JOB_LOST);
            assert_int_equal(rank->end, GW_JOB_MODEL_FAILED);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job__of_a_rank_that_dies_fails_and_names_it),
        cmocka_unit_test(job__whose_server_stays_away_fails_and_names_it),
        cmocka_unit_test(job__whose_server_or_switch_comes_back_goes_on),
        cmocka_unit_test(job__of_sums_whose_server_restarts_as_ranks_leave_goes_on),
        cmocka_unit_test(job__whose_rack_is_cut_off_fails),
        cmocka_unit_test(job__that_a_rank_gives_up_fails_for_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
