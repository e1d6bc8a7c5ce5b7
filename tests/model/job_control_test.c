/*
 * Job control under the deaths of processes: every sum is the sum over all workers on every
 * replica, or the call failed and says why.
 */
#include "allreduce_model.h"

#include "support.h"

#include "base/prng.h"
#include "core/notice.h"

enum {
    VALUES = 32,
    WINDOW = 16,
    STEPS = 1024,
    FRAGMENTS = 63 + 32, /* of the tensors below */
    SEEDS = 24 / GW_TEST_EVERY(2),
};

/* A whole number of 2^-10 below 1 / 16: sums are exact in every type, way and order. */
static int32_t steps_of(const struct gw_model_cfg *cfg, uint32_t rank, uint32_t tensor,
                        uint32_t index)
{
    uint64_t bits = gw_mix64(cfg->seed ^ (uint64_t)rank << 48 ^ (uint64_t)tensor << 40 ^ index);
    return (int32_t)(bits % 127) - 63;
}

static uint32_t element(const struct gw_model_cfg *cfg, uint32_t rank, uint32_t tensor,
                        uint32_t index)
{
    float value = (float)steps_of(cfg, rank, tensor, index) / STEPS;
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Bursts are announced in all ways; no sum depends on it. */
static struct gw_model_cfg basic(uint64_t seed)
{
    static const uint8_t options[] = {GW_NOTICE_FORMULA, GW_NOTICE_OFF, 3};
    return (struct gw_model_cfg){
        .seed = seed,
        .racks = 2,
        .rack_workers = {2, 2},
        .root_workers = 2,
        .aggregators = 256,
        .values = VALUES,
        .window = WINDOW,
        .notice = options[seed % GW_COUNT_OF(options)],
        .first_seq = UINT32_MAX - 20, /* wraps soon */
        .tensors = 2,
        .counts = {2000, 1000},
        .type = GW_DTYPE_F32,
        .aggregates = true,
        .element = element,
    };
}

static struct gw_model_cfg faulty(uint64_t seed)
{
    struct gw_model_cfg cfg = basic(seed);
    cfg.lose_of_64 = (uint32_t)seed % 4;
    cfg.double_of_64 = (uint32_t)seed / 4 % 3;
    cfg.delay_of_64 = (uint32_t)seed / 2 % 3;
    return cfg;
}

/* Tensors whose events said so hold the sum. */
static void check_sums(const struct gw_model_cfg *cfg, const struct gw_model_result *result,
                       uint32_t rank)
{
    uint32_t rounds = cfg->rounds ? cfg->rounds : 1;
    uint32_t good = result->reduced[rank] - (rounds - 1) * cfg->tensors;
    const float *out = (const void *)result->out[rank];
    if (result->reduced[rank] < (rounds - 1) * cfg->tensors)
        return; /* the last round has not begun */
    for (uint32_t t = 0; t < good; t++)
        for (uint32_t i = 0; i < cfg->counts[t]; i++, out++) {
            int32_t sum = 0;
            for (uint32_t r = 0; r < result->world; r++)
                sum += steps_of(cfg, r, t, i);
            if (*out != (float)sum / STEPS)
                fail_msg("seed %llu: rank %u, tensor %u, element %u is wrong",
                         (unsigned long long)cfg->seed, rank, t, i);
        }
}

/* All reduced everything, nothing failed, and the switches have forgotten the job. */
static void expect_all(const struct gw_model_cfg *cfg, const struct gw_model_result *result)
{
    uint32_t rounds = cfg->rounds ? cfg->rounds : 1;
    for (uint32_t rank = 0; rank < result->world; rank++) {
        if (result->reduced[rank] != rounds * cfg->tensors ||
            (!cfg->rejoins && result->failed[rank]))
            fail_msg("seed %llu: rank %u: %u reduced, %u failed: %s", (unsigned long long)cfg->seed,
                     rank, result->reduced[rank], result->failed[rank],
                     gw_job_reason_text((enum gw_job_reason)result->reason[rank]));
        check_sums(cfg, result, rank);
    }
    assert_int_equal(result->taken, 0);
    assert_int_equal(result->jobs_left, 0);
}

/* When nothing else happens, the job of this configuration takes so long. */
static gw_time duration_of(struct gw_model_cfg cfg)
{
    struct gw_model_result result;
    memset(cfg.faults, 0, sizeof(cfg.faults));
    cfg.mover = 0;
    gw_model_run(&cfg, &result);
    expect_all(&cfg, &result);
    gw_model_result_free(&result);
    return result.time;
}

/* A moment of the run, from its beginning to a little before its end. */
static gw_time moment(const struct gw_model_cfg *cfg, uint64_t salt)
{
    gw_time duration = duration_of(*cfg);
    return 1 + gw_mix64(cfg->seed ^ salt << 32) % (duration * 9 / 10);
}

/* Three levels: one packet per fragment reaches the server, from workers at three depths. */
static void job__three_levels_add_up(void **state)
{
    (void)state;
    struct gw_model_cfg cfg = basic(1);
    struct gw_model_result result;
    cfg.racks = 4;
    cfg.pods = 2;
    cfg.rack_workers[2] = 3;
    cfg.rack_workers[3] = 1;
    gw_model_run(&cfg, &result);
    expect_all(&cfg, &result);
    assert_int_equal(result.server.received, FRAGMENTS);
    assert_int_equal(result.server.complete, FRAGMENTS);
    assert_true(result.windows_equal);
    gw_model_result_free(&result);
}

static void job__three_levels_are_exact_under_faults(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct gw_model_cfg cfg = faulty(seed);
        struct gw_model_result result;
        cfg.racks = 4;
        cfg.pods = 1 + seed % 3;
        cfg.rack_workers[2] = 3;
        cfg.rack_workers[3] = 1;
        cfg.aggregators = seed % 2 ? 256 : 7;
        gw_model_run(&cfg, &result);
        expect_all(&cfg, &result);
        assert_int_equal(result.bursts > 0, cfg.notice != GW_NOTICE_OFF);
        gw_model_result_free(&result);
    }
}

/* A server that comes back with nothing: results that some worker had are given back. */
static void job__a_restarted_server_recovers(void **state)
{
    (void)state;
    uint64_t restored = 0, supplied = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct gw_model_cfg cfg = faulty(seed);
        struct gw_model_result result;
        gw_time at = moment(&cfg, 1);
        cfg.faults[0] = (struct gw_model_fault){
            .at = at, .back = at + GW_MS / 2 * (1 + seed % 8), .victim = GW_MODEL_SERVER};
        gw_model_run(&cfg, &result);
        expect_all(&cfg, &result);
        assert_true(result.epochs >= 1);
        restored += result.server.restored;
        supplied += result.workers.supplied;
        gw_model_result_free(&result);
    }
    assert_true(restored > 0);
    assert_true(supplied >= restored);
}

/* A switch that comes back with nothing costs a pause. */
static void job__a_restarted_switch_costs_a_pause(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct gw_model_cfg cfg = faulty(seed);
        struct gw_model_result result;
        gw_time at = moment(&cfg, 2);
        cfg.faults[0] = (struct gw_model_fault){.at = at,
                                                .back = at + GW_MS * (1 + seed % 8),
                                                .victim = GW_MODEL_SWITCH,
                                                .which = (uint32_t)seed % 3};
        gw_model_run(&cfg, &result);
        expect_all(&cfg, &result);
        gw_model_result_free(&result);
    }
}

/* All calls end, and those that fail name the worker. */
static void job__a_dead_worker_fails_the_calls_of_the_others(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct gw_model_cfg cfg = faulty(seed);
        struct gw_model_result result;
        uint32_t victim = (uint32_t)seed % 6, failed = 0;
        cfg.faults[0] = (struct gw_model_fault){
            .at = moment(&cfg, 3) / 2 + 1, .victim = GW_MODEL_WORKER, .which = victim};
        gw_model_run(&cfg, &result);
        for (uint32_t rank = 0; rank < result.world; rank++) {
            if (rank == victim)
                continue;
            check_sums(&cfg, &result, rank);
            failed += result.failed[rank];
            if (result.failed[rank]) {
                assert_int_equal(result.reason[rank], GW_JOB_LOST);
                assert_int_equal(result.about[rank], victim);
                assert_int_equal(result.reduced[rank] + result.failed[rank], cfg.tensors);
            } else if (result.reduced[rank] == 0) {
                assert_int_not_equal(result.reason[rank], GW_JOB_OK); /* it had never joined */
            }
        }
        assert_int_equal(result.taken, 0);
        gw_model_result_free(&result);
    }
}

/* Another process takes the rank, in another rack; all begin anew and end well. */
static void job__a_worker_comes_back_elsewhere(void **state)
{
    (void)state;
    uint32_t failed = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct gw_model_cfg cfg = faulty(seed);
        struct gw_model_result result;
        gw_time at = moment(&cfg, 4) / 4 + 1; /* before the others can have all of its values */
        cfg.rejoins = true;
        cfg.faults[0] = (struct gw_model_fault){.at = at,
                                                .back = at + GW_MS * (seed % 60),
                                                .victim = GW_MODEL_WORKER,
                                                .which = (uint32_t)seed % 6};
        gw_model_run(&cfg, &result);
        expect_all(&cfg, &result);
        for (uint32_t rank = 0; rank < result.world; rank++)
            failed += result.failed[rank];
        gw_model_result_free(&result);
    }
    assert_true(failed > 0);
}

/* A worker that leaves between calls and comes back elsewhere: the others wait, nothing fails. */
static void job__a_worker_moves(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct gw_model_cfg cfg = faulty(seed);
        struct gw_model_result result;
        cfg.rounds = 3;
        cfg.mover = 1 + (uint32_t)seed % 6;
        gw_model_run(&cfg, &result);
        expect_all(&cfg, &result);
        assert_int_equal(result.epochs, 2);
        gw_model_result_free(&result);
    }
}

static void job__a_server_that_stays_away_fails_the_calls(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct gw_model_cfg cfg = faulty(seed);
        struct gw_model_result result;
        cfg.stall = 50 * GW_MS;
        cfg.faults[0] =
            (struct gw_model_fault){.at = moment(&cfg, 5) / 2 + 1, .victim = GW_MODEL_SERVER};
        gw_model_run(&cfg, &result);
        for (uint32_t rank = 0; rank < result.world; rank++) {
            check_sums(&cfg, &result, rank);
            if (result.reduced[rank] != cfg.tensors)
                assert_int_not_equal(result.reason[rank], GW_JOB_OK);
        }
        gw_model_result_free(&result);
    }
}

/* Everything together: what ended well is right, the rest has a reason, and all comes to an end. */
static void job__any_two_deaths(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4 * SEEDS; seed++) {
        struct gw_model_cfg cfg = faulty(seed);
        struct gw_model_result result;
        cfg.rounds = 1 + (uint32_t)seed % 3;
        cfg.aggregators = seed % 3 ? 256 : 5;
        cfg.stall = 400 * GW_MS;
        for (uint32_t i = 0; i < 2; i++) {
            gw_time at = moment(&cfg, 6 + i);
            cfg.faults[i] = (struct gw_model_fault){
                .at = at,
                .back = at + GW_MS * (1 + gw_mix64(seed << 8 | i) % 20),
                .victim = (enum gw_model_victim)(gw_mix64(seed << 8 | 2 | i) % 2),
                .which = i,
            };
        }
        if (cfg.faults[0].victim == GW_MODEL_SERVER && cfg.faults[1].victim == GW_MODEL_SERVER)
            cfg.faults[1].at = 0; /* one of each kind */
        gw_model_run(&cfg, &result);
        expect_all(&cfg, &result);
        gw_model_result_free(&result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job__three_levels_add_up),
        cmocka_unit_test(job__three_levels_are_exact_under_faults),
        cmocka_unit_test(job__a_restarted_server_recovers),
        cmocka_unit_test(job__a_restarted_switch_costs_a_pause),
        cmocka_unit_test(job__a_dead_worker_fails_the_calls_of_the_others),
        cmocka_unit_test(job__a_worker_comes_back_elsewhere),
        cmocka_unit_test(job__a_worker_moves),
        cmocka_unit_test(job__a_server_that_stays_away_fails_the_calls),
        cmocka_unit_test(job__any_two_deaths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
