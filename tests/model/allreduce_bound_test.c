/*
 * All-reduce without stragglers: whatever links lose, double and delay, whoever stands still and
 * dies, all workers end with the same bytes and counts; each fragment is the sum (or average) of
 * exactly as many workers as its count says; and no worker is left out of more of a call's
 * fragments than the bound allows.
 */
#include "allreduce_model.h"

#include "support.h"

#include "base/prng.h"

enum {
    VALUES = 8,
    WINDOW = 64,
    WORLD = 8,
    SEEDS = 24 / GW_TEST_EVERY(4),       /* random networks, without faults and with */
    FAULT_SEEDS = 12 / GW_TEST_EVERY(4), /* two in three restore results */
};

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* In [-0.25, 0.25), all different: a sum tells whose values are in it. */
static uint32_t small_float(const struct gw_model_cfg *cfg, uint32_t rank, uint32_t tensor,
                            uint32_t index)
{
    struct gw_prng prng =
        gw_prng_derive(cfg->seed, (uint64_t)rank << 48 | (uint64_t)tensor << 40 | index);
    return bits_of((float)((int32_t)(gw_prng_next(&prng) >> 32)) / 8589934592.0f);
}

/* Every fourth fragment has elements of which two do not fit. */
static uint32_t overflowing_float(const struct gw_model_cfg *cfg, uint32_t rank, uint32_t tensor,
                                  uint32_t index)
{
    if (index / VALUES % 4 == 1 && index % 7 == 0)
        return bits_of(15.5f + (float)rank / 64);
    return small_float(cfg, rank, tensor, index);
}

/* Eight workers in two racks and at the root; the first one stands still now and then. */
static struct gw_model_cfg basic(uint64_t seed)
{
    return (struct gw_model_cfg){
        .seed = seed,
        .racks = 2,
        .rack_workers = {3, 3},
        .root_workers = 2,
        .aggregators = 256,
        .values = VALUES,
        .window = WINDOW,
        .window_initial = 16,
        .first_seq = UINT32_MAX - 20, /* wraps soon */
        .tensors = 3,
        .counts = {8000, 77, 4003},
        .type = GW_DTYPE_F32,
        .aggregates = true,
        .quiet = 40 * GW_US,
        .bound = GW_Q16_ONE / 5,
        .patience = 20 * GW_US,
        .pauses = {.first = 250 * GW_US, .length = 120 * GW_US, .every = 300 * GW_US},
        .element = small_float,
    };
}

/* What a fragment must be if just these workers are in it. */
static void sum_of(const struct gw_model_cfg *cfg, const struct gw_model_result *result,
                   uint32_t set, size_t at, uint32_t count, unsigned char *out)
{
    const unsigned char *in[GW_MODEL_WORKERS_MAX];
    uint32_t members = 0;
    for (uint32_t rank = 0; rank < result->world; rank++)
        if (set >> rank & 1)
            in[members++] = result->in[rank] + at;
    if (!gw_model_integer_sum(cfg, gw_model_scale(cfg), members, in, count, out))
        gw_model_raw_sum(cfg, members, in, count, out);
}

/* Whose values are in a fragment: the one set of that many whose sum it is; 0: there is none. */
static uint32_t set_of(const struct gw_model_cfg *cfg, const struct gw_model_result *result,
                       uint32_t contributors, size_t at, uint32_t count)
{
    for (uint32_t set = 1; set < UINT32_C(1) << result->world; set++) {
        unsigned char expected[4 * VALUES];
        if ((uint32_t)__builtin_popcount(set) != contributors)
            continue;
        sum_of(cfg, result, set, at, count, expected);
        if (memcmp(result->out[0] + at, expected, (size_t)count * 4) == 0)
            return set;
    }
    return 0;
}

/* Returns how often a worker was left out. */
static uint32_t check(const struct gw_model_cfg *cfg, const struct gw_model_result *result)
{
    uint32_t fragment = 0, all = 0;
    size_t base = 0;
    for (uint32_t rank = 0; rank < result->world; rank++) {
        assert_int_equal(result->failed[rank], 0);
        assert_int_equal(result->reduced[rank], cfg->tensors);
        assert_memory_equal(result->out[rank], result->out[0], result->bytes);
        assert_memory_equal(result->counts[rank], result->counts[0],
                            result->fragments * sizeof(*result->counts[0]));
    }
    for (uint32_t t = 0; t < cfg->tensors; t++) {
        uint32_t fragments = (cfg->counts[t] - 1) / VALUES + 1;
        uint32_t left_out[WORLD] = {0};
        for (uint32_t i = 0; i < fragments; i++, fragment++) {
            uint32_t left = cfg->counts[t] - i * VALUES, contributors = result->counts[0][fragment];
            assert_true(2 * contributors > result->world && contributors <= result->world);
            uint32_t set = set_of(cfg, result, contributors, base + (size_t)i * VALUES * 4,
                                  left < VALUES ? left : VALUES);
            if (set == 0)
                fail_msg("seed %llu: tensor %u, fragment %u is no sum of %u workers",
                         (unsigned long long)cfg->seed, t, i, contributors);
            for (uint32_t rank = 0; rank < result->world; rank++)
                left_out[rank] += !(set >> rank & 1);
        }
        for (uint32_t rank = 0; rank < result->world; rank++) {
            assert_true(left_out[rank] <= (uint64_t)fragments * (uint64_t)cfg->bound >> 16);
            all += left_out[rank];
        }
        base += (size_t)cfg->counts[t] * 4;
    }
    return all;
}

static uint32_t run_bound(const struct gw_model_cfg *cfg, struct gw_model_result *result)
{
    gw_model_run(cfg, result);
    uint32_t left_out = check(cfg, result);
    if (!cfg->faults[0].at) {
        assert_int_equal(result->server.left_out, left_out);
        assert_int_equal(result->watch.differ, 0);
        assert_true(result->watch.compared > 0);
    }
    assert_int_equal(result->taken, 0);
    return left_out;
}

/* Nobody is late: nobody is left out, and nothing else is sent than without a bound. */
static void bound__means_nothing_while_all_are_in_time(void **state)
{
    (void)state;
    struct gw_model_cfg cfg = basic(1);
    struct gw_model_result result;
    cfg.pauses.first = 0;
    assert_int_equal(run_bound(&cfg, &result), 0);
    assert_int_equal(result.server.received, result.fragments);
    gw_model_result_free(&result);
}

static void bound__of_zero_waits_for_everybody(void **state)
{
    (void)state;
    struct gw_model_cfg cfg = basic(2);
    struct gw_model_result result;
    cfg.bound = 0;
    assert_int_equal(run_bound(&cfg, &result), 0);
    assert_int_equal(result.server.probes, 0);
    gw_model_result_free(&result);
}

/* While one stands still fragments complete, and it takes what it missed when it is back. */
static void bound__others_go_on_while_one_stands_still(void **state)
{
    (void)state;
    for (int loses = 0; loses < 2; loses++) {
        struct gw_model_cfg cfg = basic(3);
        struct gw_model_result result;
        cfg.pauses.loses = loses;
        assert_true(run_bound(&cfg, &result) > 20);
        gw_model_result_free(&result);
    }
}

/* One that is always late is left out of the bound's part, and not of one fragment more. */
static void bound__a_straggler_for_good_is_waited_for_in_the_end(void **state)
{
    (void)state;
    struct gw_model_cfg cfg = basic(4);
    struct gw_model_result result;
    cfg.pauses.every = cfg.pauses.length + 20 * GW_US;
    uint32_t left_out = run_bound(&cfg, &result);
    assert_true(left_out > result.fragments / 10);
    gw_model_result_free(&result);
}

/* Averages divide by who is in them. */
static void bound__averages_are_of_the_contributors(void **state)
{
    (void)state;
    struct gw_model_cfg cfg = basic(5);
    struct gw_model_result result;
    cfg.average = true;
    assert_true(run_bound(&cfg, &result) > 20);
    gw_model_result_free(&result);
}

static void bound__holds_for_raw_fragments(void **state)
{
    (void)state;
    for (int average = 0; average < 2; average++) {
        struct gw_model_cfg cfg = basic(6);
        struct gw_model_result result;
        cfg.element = overflowing_float;
        cfg.average = average;
        assert_true(run_bound(&cfg, &result) > 20);
        assert_true(result.server.overflowed > 0);
        gw_model_result_free(&result);
    }
}

/* Everything at once, and any worker may be the straggler. */
static void bound__holds_whatever_links_do(void **state)
{
    (void)state;
    uint64_t left_out = 0, skipped = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct gw_prng prng = gw_prng_derive(seed, 1);
        struct gw_model_cfg cfg = basic(seed);
        struct gw_model_result result;
        cfg.lose_of_64 = (uint32_t)gw_prng_below(&prng, 4);
        cfg.double_of_64 = (uint32_t)gw_prng_below(&prng, 4);
        cfg.delay_of_64 = (uint32_t)gw_prng_below(&prng, 4);
        cfg.aggregators = gw_prng_below(&prng, 3) ? 256 : 10;
        cfg.aggregates = gw_prng_below(&prng, 6) != 0;
        cfg.bound = (gw_q16)gw_prng_below(&prng, GW_Q16_ONE / 2);
        cfg.patience = (gw_time)(10 + gw_prng_below(&prng, 200)) * GW_US;
        cfg.pauses.rank = (uint32_t)gw_prng_below(&prng, WORLD);
        cfg.pauses.length = (gw_time)(20 + gw_prng_below(&prng, 600)) * GW_US;
        cfg.pauses.every = cfg.pauses.length + (gw_time)(300 + gw_prng_below(&prng, 2000)) * GW_US;
        cfg.pauses.loses = gw_prng_below(&prng, 2);
        cfg.one_by_one = gw_prng_below(&prng, 2);
        cfg.window_initial = 1 + (uint32_t)gw_prng_below(&prng, WINDOW);
        cfg.dynamic = gw_prng_below(&prng, 4) == 0;
        left_out += run_bound(&cfg, &result);
        skipped += result.workers.skipped;
        gw_model_result_free(&result);
    }
    assert_true(left_out > 40 * SEEDS);
    assert_true(skipped > 40 * SEEDS);
}

/* A server that restarts has lost its books, and takes back results that lack workers. */
static void bound__holds_when_servers_and_switches_die(void **state)
{
    (void)state;
    uint64_t restored = 0, left_out = 0;
    for (uint64_t seed = 1; seed <= FAULT_SEEDS; seed++) {
        struct gw_prng prng = gw_prng_derive(seed, 2);
        struct gw_model_cfg cfg = basic(seed);
        struct gw_model_result result;
        cfg.lose_of_64 = (uint32_t)gw_prng_below(&prng, 3);
        cfg.pauses.loses = gw_prng_below(&prng, 2);
        for (uint32_t i = 0; i < 3; i++) {
            gw_time at = (gw_time)(300 + 2000 * i + gw_prng_below(&prng, 1000)) * GW_US;
            cfg.faults[i] = (struct gw_model_fault){
                .at = at,
                .back = at + (gw_time)(50 + gw_prng_below(&prng, 500)) * GW_US,
                .victim = i == 1 ? GW_MODEL_SWITCH : GW_MODEL_SERVER,
                .which = (uint32_t)gw_prng_below(&prng, 3),
            };
        }
        left_out += run_bound(&cfg, &result);
        restored += result.server.restored;
        gw_model_result_free(&result);
    }
    assert_true(restored > 0);
    assert_true(left_out > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound__means_nothing_while_all_are_in_time),
        cmocka_unit_test(bound__of_zero_waits_for_everybody),
        cmocka_unit_test(bound__others_go_on_while_one_stands_still),
        cmocka_unit_test(bound__a_straggler_for_good_is_waited_for_in_the_end),
        cmocka_unit_test(bound__averages_are_of_the_contributors),
        cmocka_unit_test(bound__holds_for_raw_fragments),
        cmocka_unit_test(bound__holds_whatever_links_do),
        cmocka_unit_test(bound__holds_when_servers_and_switches_die),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
