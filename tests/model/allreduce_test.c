/*
 * All-reduce through the tree, exact under faults: every replica's result equals the sum of the
 * rounded integers (or, for fragments that do not fit them, the sum of the raw values in rank
 * order), whatever the links lose, double and delay and however little memory the switches have.
 */
#include "allreduce_model.h"

#include "support.h"

#include "base/prng.h"

enum {
    VALUES = 32,
    WINDOW = 16,
    AMPLE = 256, /* aggregators */
};

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static uint64_t random_of(const struct gw_model_cfg *cfg, uint32_t rank, uint32_t tensor,
                          uint32_t index)
{
    struct gw_prng prng =
        gw_prng_derive(cfg->seed, (uint64_t)rank << 48 | (uint64_t)tensor << 40 | index);
    return gw_prng_next(&prng);
}

/* In [-0.25, 0.25): 24 workers cannot reach 16. */
static uint32_t small_float(const struct gw_model_cfg *cfg, uint32_t rank, uint32_t tensor,
                            uint32_t index)
{
    int32_t r = (int32_t)(random_of(cfg, rank, tensor, index) >> 32);
    return bits_of((float)r / 8589934592.0f);
}

static uint32_t small_bfloat16(const struct gw_model_cfg *cfg, uint32_t rank, uint32_t tensor,
                               uint32_t index)
{
    return small_float(cfg, rank, tensor, index) >> 16;
}

/* Exponents up to 12, which is below 0.25. */
static uint32_t small_float16(const struct gw_model_cfg *cfg, uint32_t rank, uint32_t tensor,
                              uint32_t index)
{
    uint32_t r = (uint32_t)random_of(cfg, rank, tensor, index);
    return (r & 0x83ff) | (r >> 16) % 13 << 10;
}

/* Every fourth fragment has elements of about 15.9 on every worker: two of them do not fit. */
static uint32_t overflowing_float(const struct gw_model_cfg *cfg, uint32_t rank, uint32_t tensor,
                                  uint32_t index)
{
    if (index / VALUES % 4 == 1 && index % 7 == 0)
        return bits_of(15.9f + (float)(rank % 3) / 64);
    return small_float(cfg, rank, tensor, index);
}

/* One worker has what no integer can say. */
static uint32_t special_float(const struct gw_model_cfg *cfg, uint32_t rank, uint32_t tensor,
                              uint32_t index)
{
    if (rank == 1 && index == VALUES + 3)
        return UINT32_C(0x7f800000); /* infinity */
    if (rank == 0 && index == 2 * VALUES)
        return UINT32_C(0x7fc00000); /* not a number */
    if (rank == 0 && index == 5)
        return bits_of(1e20f);
    return small_float(cfg, rank, tensor, index);
}

static uint32_t small_int(const struct gw_model_cfg *cfg, uint32_t rank, uint32_t tensor,
                          uint32_t index)
{
    return (uint32_t)((int32_t)(random_of(cfg, rank, tensor, index) >> 32) / 64);
}

static uint32_t overflowing_int(const struct gw_model_cfg *cfg, uint32_t rank, uint32_t tensor,
                                uint32_t index)
{
    return index == 40 ? (uint32_t)INT32_MAX : small_int(cfg, rank, tensor, index);
}

static struct gw_model_cfg basic(uint64_t seed)
{
    return (struct gw_model_cfg){
        .seed = seed,
        .racks = 2,
        .rack_workers = {2, 2},
        .root_workers = 2,
        .aggregators = AMPLE,
        .values = VALUES,
        .window = WINDOW,
        .first_seq = UINT32_MAX - 20, /* wraps soon */
        .tensors = 2,
        .counts = {1000, 77},
        .type = GW_DTYPE_F32,
        .aggregates = true,
        .quiet = 40 * GW_US,
        .element = small_float,
    };
}

static void check_sums(const struct gw_model_cfg *cfg, const struct gw_model_result *result)
{
    uint32_t size = gw_dtype_size(cfg->type);
    size_t base = 0;
    for (uint32_t t = 0; t < cfg->tensors; t++) {
        for (uint32_t first = 0; first < cfg->counts[t]; first += VALUES) {
            uint32_t left = cfg->counts[t] - first;
            uint32_t count = left < VALUES ? left : VALUES;
            size_t at = base + (size_t)first * size;
            const unsigned char *in[GW_MODEL_WORKERS_MAX];
            unsigned char expected[4 * VALUES];
            for (uint32_t rank = 0; rank < result->world; rank++)
                in[rank] = result->in[rank] + at;
            if (!gw_model_integer_sum(cfg, gw_model_scale(cfg), result->world, in, count, expected))
                gw_model_raw_sum(cfg, result->world, in, count, expected);
            for (uint32_t rank = 0; rank < result->world; rank++)
                if (memcmp(result->out[rank] + at, expected, (size_t)count * size) != 0)
                    fail_msg("seed %llu: rank %u, tensor %u, fragment at %u is wrong",
                             (unsigned long long)cfg->seed, rank, t, first);
        }
        base += (size_t)cfg->counts[t] * size;
    }
}

/* Runs and checks; the caller looks at the counters and frees the result. */
static void run_exact(const struct gw_model_cfg *cfg, struct gw_model_result *result)
{
    gw_model_run(cfg, result);
    for (uint32_t rank = 0; rank < result->world; rank++)
        if (result->reduced[rank] != cfg->tensors || result->failed[rank] != 0)
            fail_msg("seed %llu: rank %u: %u reduced, %u failed", (unsigned long long)cfg->seed,
                     rank, result->reduced[rank], result->failed[rank]);
    check_sums(cfg, result);
    assert_int_equal(result->taken, 0);
}

static uint32_t fragments_of(const struct gw_model_cfg *cfg)
{
    uint32_t fragments = 0;
    for (uint32_t t = 0; t < cfg->tensors; t++)
        fragments += (cfg->counts[t] + cfg->values - 1) / cfg->values;
    return fragments;
}

/* ATP property P4: with enough memory the server gets one packet per fragment. */
static void allreduce__one_packet_per_fragment_reaches_the_server(void **state)
{
    (void)state;
    struct gw_model_cfg cfg = basic(1);
    struct gw_model_result result;
    run_exact(&cfg, &result);
    assert_int_equal(result.server.received, fragments_of(&cfg));
    assert_int_equal(result.server.complete, fragments_of(&cfg));
    assert_int_equal(result.workers.resent, 0);
    assert_true(result.windows_equal); /* P5 */
    gw_model_result_free(&result);
}

/* ATP figure 9, six workers in three places: one packet of each, when no switch adds up. */
static void allreduce__without_switches_the_server_adds_everything(void **state)
{
    (void)state;
    struct gw_model_cfg cfg = basic(2);
    struct gw_model_result result;
    cfg.aggregates = false;
    run_exact(&cfg, &result);
    assert_int_equal(result.world, 6);
    assert_int_equal(result.server.received, result.world * fragments_of(&cfg));
    assert_int_equal(result.server.partial, result.world * fragments_of(&cfg));
    gw_model_result_free(&result);
}

/* ATP figure 9, rack-scale aggregation: one packet per rack, which is three, and the same sums,
 * also under faults. */
static void allreduce__rack_scale_sends_one_packet_per_rack(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 16; seed++) {
        struct gw_model_cfg cfg = basic(seed);
        struct gw_model_result result;
        bool is_clean = seed == 1;
        cfg.rack_scale = true;
        cfg.lose_of_64 = is_clean ? 0 : (uint32_t)(seed % 4);
        cfg.double_of_64 = is_clean ? 0 : (uint32_t)(seed % 3);
        cfg.delay_of_64 = is_clean ? 0 : (uint32_t)(seed % 5);
        cfg.root_workers = is_clean ? 2 : (uint32_t)(seed % 3);
        run_exact(&cfg, &result);
        if (is_clean)
            assert_int_equal(result.server.received, 3 * fragments_of(&cfg));
        gw_model_result_free(&result);
    }
}

static void allreduce__a_single_worker_and_a_single_rack(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 5; workers++) {
        struct gw_model_cfg cfg = basic(workers);
        struct gw_model_result result;
        cfg.racks = 0;
        cfg.root_workers = workers;
        run_exact(&cfg, &result);
        assert_int_equal(result.server.complete, fragments_of(&cfg));
        gw_model_result_free(&result);
    }
}

/* P1 and P2: any schedule of loss, doubling and reordering. */
static void allreduce__is_exact_under_loss_doubling_and_reordering(void **state)
{
    (void)state;
    struct gw_aggregate_stats seen = {0};
    uint64_t asked = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct gw_model_cfg cfg = basic(seed);
        struct gw_model_result result;
        cfg.lose_of_64 = (uint32_t)(seed % 5);
        cfg.double_of_64 = (uint32_t)(seed / 2 % 4);
        cfg.delay_of_64 = (uint32_t)(seed / 3 % 6);
        cfg.aggregators = seed % 3 ? AMPLE : 10;
        cfg.rack_workers[0] = 1 + (uint32_t)(seed % 4);
        cfg.root_workers = (uint32_t)(seed % 3);
        cfg.quiet = seed % 4 ? cfg.quiet : 0;
        run_exact(&cfg, &result);
        seen.partials += result.switches.partials;
        seen.duplicates += result.switches.duplicates;
        seen.collisions += result.switches.collisions;
        seen.followed += result.switches.followed;
        asked += result.server.asked;
        gw_model_result_free(&result);
    }
    /* The rules that this is about were all at work. */
    assert_true(seen.partials);
    assert_true(seen.duplicates);
    assert_true(seen.collisions);
    assert_true(seen.followed);
    assert_true(asked);
}

static void allreduce__too_little_memory_costs_the_server_work_only(void **state)
{
    (void)state;
    struct gw_model_cfg cfg = basic(5);
    struct gw_model_result result;
    cfg.aggregators = 5;
    run_exact(&cfg, &result);
    assert_true(result.switches.collisions > 0);
    assert_true(result.server.received > fragments_of(&cfg));
    gw_model_result_free(&result);
}

static void allreduce__fragments_that_overflow_travel_raw(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct gw_model_cfg cfg = basic(seed);
        struct gw_model_result result;
        cfg.element = seed % 2 ? overflowing_float : special_float;
        cfg.average = seed % 4 == 0;
        cfg.lose_of_64 = (uint32_t)(seed % 3);
        run_exact(&cfg, &result);
        assert_true(result.server.overflowed > 0);
        gw_model_result_free(&result);
    }
}

static void allreduce__every_type_sums_and_averages(void **state)
{
    static uint32_t (*const elements[GW_DTYPE_SUMMABLE])(const struct gw_model_cfg *, uint32_t,
                                                         uint32_t, uint32_t) = {
        [GW_DTYPE_F32] = small_float,
        [GW_DTYPE_F16] = small_float16,
        [GW_DTYPE_BF16] = small_bfloat16,
        [GW_DTYPE_I32] = small_int,
    };
    (void)state;
    for (uint32_t type = 0; type < GW_DTYPE_SUMMABLE; type++) {
        for (uint32_t average = 0; average < 2; average++) {
            struct gw_model_cfg cfg = basic(type + 1);
            struct gw_model_result result;
            cfg.type = (enum gw_dtype)type;
            cfg.average = average;
            cfg.element = elements[type];
            cfg.lose_of_64 = 1;
            run_exact(&cfg, &result);
            gw_model_result_free(&result);
        }
    }
}

/* A network with queues that mark and overflow, and links that lose. */
static struct gw_model_cfg congested(uint64_t seed)
{
    struct gw_model_cfg cfg = basic(seed);
    cfg.window = 100; /* no power of two */
    cfg.window_initial = 25;
    cfg.queue_bytes = 6000;
    cfg.aggregators = seed % 3 ? AMPLE : 60;
    cfg.lose_of_64 = (uint32_t)(seed % 3);
    cfg.double_of_64 = (uint32_t)(seed / 2 % 3);
    cfg.delay_of_64 = (uint32_t)(seed / 3 % 4);
    cfg.counts[0] = 300 * VALUES;
    return cfg;
}

/* ATP property P5: workers that expect the same fragment have the same window, whatever is marked,
 * lost, doubled and overtaken, on the way up and down, and whether bursts wait for notices or not.
 */
static void allreduce__windows_are_equal_at_every_fragment(void **state)
{
    (void)state;
    uint64_t cuts = 0, compared = 0, apart = 0;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        struct gw_model_cfg cfg = congested(seed);
        struct gw_model_result result;
        cfg.notice = seed % 2 ? 3 : GW_NOTICE_OFF;
        cfg.quiet = seed % 4 ? cfg.quiet : 0;
        run_exact(&cfg, &result);
        if (result.watch.differ || !result.windows_equal)
            fail_msg("seed %llu: %u of %u windows differ", (unsigned long long)seed,
                     result.watch.differ, result.watch.compared);
        /* At the same time one worker may be a cut behind, never two. */
        assert_true(result.watch.apart_most <= 1);
        assert_int_equal(result.bursts > 0, seed % 2);
        apart += result.watch.apart_most;
        cuts += result.workers.cuts;
        compared += result.watch.compared;
        gw_model_result_free(&result);
    }
    assert_true(cuts > 500 && compared > 10000 && apart > 0);
}

/* As published they are not: so the test above tests something. */
static void allreduce__windows_differ_when_each_halves_alone(void **state)
{
    (void)state;
    uint32_t differ = 0;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct gw_model_cfg cfg = congested(seed);
        struct gw_model_result result;
        cfg.rules.halving = GW_AGG_HALVE_ALONE;
        run_exact(&cfg, &result);
        differ += result.watch.differ;
        gw_model_result_free(&result);
    }
    assert_true(differ > 0);
}

/* Others send again what they have out while one worker's link stands still: that says nothing of
 * congestion, unless it loses what it was to carry. With probes, and without. */
static void allreduce__who_waits_for_others_is_not_congested(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 24; i++) {
        struct gw_model_cfg cfg = basic(i + 1);
        struct gw_model_result result;
        bool loses = i % 2;
        cfg.racks = i % 12 < 8 ? 2 : 0;
        cfg.pods = i % 12 < 4 ? 1 : 0;
        cfg.root_workers = i % 12 < 8 ? 2 : 6;
        cfg.counts[0] = 300 * VALUES;
        cfg.rules.overtaking = i < 12 ? GW_AGG_OVERTAKEN_COUNTED : GW_AGG_OVERTAKEN_IN_A_ROW;
        cfg.pauses = (struct gw_model_pauses){.first = 100 * GW_US,
                                              .length = 700 * GW_US,
                                              .every = 900 * GW_US,
                                              .rank = i % 6,
                                              .loses = loses};
        run_exact(&cfg, &result);
        assert_true(result.workers.resent > 0);
        assert_int_equal(result.workers.cuts > 0, loses);
        assert_true(result.windows_equal && !result.watch.differ);
        gw_model_result_free(&result);
    }
}

/*
 * A worker whose copy of a result is lost is a cut behind, at most, until it has another: it asks
 * when three later results have come, or after a timeout, and again if that copy is lost, too.
 */
static void allreduce__a_lost_copy_is_behind_for_a_timeout_and_a_round_trip(void **state)
{
    (void)state;
    const gw_time bound = 200 * GW_US + 60 * GW_US; /* the timeout, and a way through full queues */
    gw_time most = 0;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        struct gw_model_cfg cfg = congested(seed);
        struct gw_model_result result;
        cfg.lose_of_64 = cfg.delay_of_64 = cfg.double_of_64 = 0;
        cfg.loses_copies = true;
        cfg.queue_bytes = 20000; /* marks at 4000, and loses nothing */
        cfg.aggregators = AMPLE;
        run_exact(&cfg, &result);
        most = result.watch.apart_time > most ? result.watch.apart_time : most;
        gw_model_result_free(&result);
    }
    print_message("apart for %llu us at most\n", (unsigned long long)(most / GW_US));
    assert_true(most > 0 && most < bound);
}

/*
 * Workers that come further apart than it takes to send again: the first ones' partial sums have
 * left the switches by then, and the last one does not wait until somebody sends again. As
 * published it does.
 */
static void allreduce__ends_when_the_last_worker_has_come(void **state)
{
    (void)state;
    for (uint32_t is_published = 0; is_published < 2; is_published++) {
        struct gw_model_cfg cfg = basic(1);
        struct gw_model_result result;
        cfg.tensors = 1;
        cfg.counts[0] = 1;
        cfg.apart = 600 * GW_US;
        cfg.rules.partials = is_published ? GW_AGG_PARTIALS_DISCARD : GW_AGG_PARTIALS_KEEP;
        run_exact(&cfg, &result);
        gw_time wait = result.time - (result.world - 1) * cfg.apart;
        print_message("ends %llu us after the last one\n", (unsigned long long)(wait / GW_US));
        assert_true(is_published ? wait > 200 * GW_US : wait < 100 * GW_US);
        assert_true(is_published || result.switches.followed);
        gw_model_result_free(&result);
    }
}

/* Every rule of the paper alone, and all of them: sums are exact. */
static void allreduce__is_exact_by_the_papers_rules(void **state)
{
    (void)state;
    enum { RULES = GW_MODEL_RULES + 1, SEEDS = 6 };
    struct gw_aggregate_stats seen = {0};
    uint64_t asked = 0, remaps = 0;
    for (uint32_t rule = 0; rule <= RULES; rule++) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct gw_model_cfg cfg = congested(seed);
            struct gw_model_result result;
            uint32_t on = rule == RULES ? UINT32_MAX : 1u << rule;
            cfg.rules = gw_model_rules_of(on);
            cfg.quiet = on >> GW_MODEL_RULES & 1 ? 0 : cfg.quiet;
            cfg.element = seed % 2 ? small_float : overflowing_float;
            run_exact(&cfg, &result);
            seen.discarded += result.switches.discarded;
            seen.collisions += result.switches.collisions;
            if (!cfg.quiet)
                asked += result.server.asked;
            if (cfg.rules.hashing)
                remaps += result.workers.remaps;
            gw_model_result_free(&result);
        }
    }
    assert_true(seen.discarded && seen.collisions && remaps);
    assert_int_equal(asked, 0);
}

/* A sum of int32 that does not fit fails the call on every worker. */
static void allreduce__integer_overflow_fails_everywhere(void **state)
{
    (void)state;
    struct gw_model_cfg cfg = basic(9);
    struct gw_model_result result;
    cfg.type = GW_DTYPE_I32;
    cfg.element = overflowing_int;
    cfg.tensors = 1;
    gw_model_run(&cfg, &result);
    for (uint32_t rank = 0; rank < result.world; rank++) {
        assert_int_equal(result.reduced[rank], 0);
        assert_int_equal(result.failed[rank], 1);
    }
    gw_model_result_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allreduce__one_packet_per_fragment_reaches_the_server),
        cmocka_unit_test(allreduce__without_switches_the_server_adds_everything),
        cmocka_unit_test(allreduce__rack_scale_sends_one_packet_per_rack),
        cmocka_unit_test(allreduce__a_single_worker_and_a_single_rack),
        cmocka_unit_test(allreduce__is_exact_under_loss_doubling_and_reordering),
        cmocka_unit_test(allreduce__too_little_memory_costs_the_server_work_only),
        cmocka_unit_test(allreduce__fragments_that_overflow_travel_raw),
        cmocka_unit_test(allreduce__every_type_sums_and_averages),
        cmocka_unit_test(allreduce__windows_are_equal_at_every_fragment),
        cmocka_unit_test(allreduce__windows_differ_when_each_halves_alone),
        cmocka_unit_test(allreduce__who_waits_for_others_is_not_congested),
        cmocka_unit_test(allreduce__a_lost_copy_is_behind_for_a_timeout_and_a_round_trip),
        cmocka_unit_test(allreduce__ends_when_the_last_worker_has_come),
        cmocka_unit_test(allreduce__is_exact_by_the_papers_rules),
        cmocka_unit_test(allreduce__integer_overflow_fails_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
