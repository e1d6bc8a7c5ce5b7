/*
 * The swarm of jobs: random trees, tensors, faults of links and deaths of processes, from one seed
 * each. Every sum that a call returned is the sum over all workers, of the rounded integers or of
 * the raw values, the same on all replicas; every other call failed and says why; all comes to an
 * end, and no packet, buffer or aggregator is lost.
 *
 * A failure prints the seed; `job_swarm_test --seed N --count 1` runs that world alone.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "allreduce_model.h"

#include "support.h"

#include "base/prng.h"

#define FIRST_SEED UINT64_C(20261121)

enum {
    WORLDS = 600 / GW_TEST_EVERY(10),
    VALUES_MAX = 62,
    BYTES_MAX = 4 * VALUES_MAX,
};

static struct {
    uint64_t seed, first, count;
    uint64_t calls, failed, epochs, restored, raw, collisions, died;
} swarm = {.first = FIRST_SEED, .count = WORLDS};

/* Bits of a value in the configuration's type; one in 64 fragments does not fit integers. */
static uint32_t element(const struct gw_model_cfg *cfg, uint32_t rank, uint32_t tensor,
                        uint32_t index)
{
    uint64_t where = (uint64_t)tensor << 40 | index;
    uint64_t bits = gw_mix64(cfg->seed ^ gw_mix64(where ^ (uint64_t)rank << 50));
    bool is_large = gw_mix64(cfg->seed ^ (where / cfg->values)) % 64 == 0 && index % 5 == 0;
    if (cfg->type == GW_DTYPE_I32)
        return (uint32_t)((int32_t)(bits >> 32) / (is_large ? 1 : 32));
    double x = (double)(int32_t)(bits >> 32) * (is_large ? 0x1p-26 : 0x1p-35);
    uint32_t out = 0;
    gw_kernels_best(0)->narrow_real[cfg->type](&out, &x, 1, 1);
    return out;
}

static void random_faults(struct gw_prng *prng, struct gw_model_cfg *cfg, uint32_t world,
                          uint32_t switches)
{
    uint32_t count = gw_prng_below(prng, 3);
    bool has_worker = cfg->mover; /* there is one spare host */
    for (uint32_t i = 0; i < count; i++) {
        struct gw_model_fault *fault = &cfg->faults[i];
        fault->at = 1 + gw_prng_below(prng, 4000) * GW_US;
        fault->victim = (enum gw_model_victim)gw_prng_below(prng, 3);
        if (fault->victim == GW_MODEL_WORKER && has_worker)
            fault->victim = GW_MODEL_SWITCH;
        has_worker |= fault->victim == GW_MODEL_WORKER;
        fault->which = gw_prng_below(prng, fault->victim == GW_MODEL_WORKER ? world : switches);
        if (gw_prng_below(prng, 4))
            fault->back = fault->at + (1 + gw_prng_below(prng, 20000)) * GW_US;
        /* Nobody dies twice. */
        for (uint32_t j = 0; j < i; j++)
            if (cfg->faults[j].victim == fault->victim &&
                (fault->victim == GW_MODEL_SERVER || cfg->faults[j].which == fault->which))
                *fault = (struct gw_model_fault){0};
    }
}

/* Each as the paper has it, or in one of four worlds all. */
static void random_rules(uint64_t seed, struct gw_model_cfg *cfg)
{
    struct gw_prng prng = gw_prng_derive(seed, 0x0b6);
    uint32_t bits = gw_prng_below(&prng, 4) ? (uint32_t)gw_prng_next(&prng) : UINT32_MAX;
    cfg->rules = gw_model_rules_of(bits);
    cfg->quiet = bits >> GW_MODEL_RULES & 1 ? 0 : 40 * GW_US;
    cfg->resend_gap = bits >> 8 & 1;
    cfg->window += gw_prng_below(&prng, cfg->window);
    cfg->window_initial = 1 + gw_prng_below(&prng, cfg->window);
    cfg->queue_bytes = gw_prng_below(&prng, 2) ? 20000 : 0;
}

static void random_world(uint64_t seed, struct gw_model_cfg *cfg)
{
    static const uint32_t values[] = {1, 8, 32, VALUES_MAX};
    struct gw_prng prng = gw_prng_derive(seed, 0x0b5);
    *cfg = (struct gw_model_cfg){
        .seed = seed,
        .racks = gw_prng_below(&prng, 5),
        .root_workers = gw_prng_below(&prng, 4),
        .aggregators = 1 + gw_prng_below(&prng, gw_prng_below(&prng, 2) ? 10 : 300),
        .values = values[gw_prng_below(&prng, 4)],
        .window = 4u << gw_prng_below(&prng, 4),
        .first_seq = (uint32_t)(int32_t)(int8_t)gw_prng_next(&prng),
        .tensors = 1 + gw_prng_below(&prng, 3),
        .rounds = 1 + gw_prng_below(&prng, 3),
        .type = (enum gw_dtype)gw_prng_below(&prng, GW_DTYPE_SUMMABLE),
        .aggregates = gw_prng_below(&prng, 8) != 0,
        .rack_scale = gw_prng_below(&prng, 8) == 0,
        .one_by_one = gw_prng_below(&prng, 2),
        .rejoins = gw_prng_below(&prng, 2),
        .lose_of_64 = gw_prng_below(&prng, 2) ? gw_prng_below(&prng, 5) : 0,
        .double_of_64 = gw_prng_below(&prng, 4),
        .delay_of_64 = gw_prng_below(&prng, 4),
        .stall = (100 + gw_prng_below(&prng, 100)) * GW_MS,
        .element = element,
    };
    cfg->pods = cfg->racks ? gw_prng_below(&prng, 3) : 0;
    uint32_t world = cfg->root_workers;
    for (uint32_t rack = 0; rack < cfg->racks; rack++)
        world += cfg->rack_workers[rack] = 1 + gw_prng_below(&prng, 4);
    if (world == 0)
        world = cfg->root_workers = 1;
    cfg->average = gw_prng_below(&prng, 4) == 0;
    if (cfg->rounds > 1 && world > 1 && gw_prng_below(&prng, 4) == 0)
        cfg->mover = 1 + gw_prng_below(&prng, world);
    for (uint32_t t = 0; t < cfg->tensors; t++)
        cfg->counts[t] = 1 + gw_prng_below(&prng, 40 * cfg->values);
    random_faults(&prng, cfg, world, cfg->racks + cfg->pods + 1);
    if (gw_prng_below(&prng, 2))
        random_rules(seed, cfg);
}

/* Fragment `at` bytes from the start is one of the two sums that it may be. */
static void check_fragment(const struct gw_model_cfg *cfg, const struct gw_model_result *result,
                           uint32_t rank, size_t at, uint32_t count)
{
    const unsigned char *in[GW_MODEL_WORKERS_MAX];
    unsigned char sum[BYTES_MAX];
    size_t bytes = (size_t)count * gw_dtype_size(cfg->type);
    for (uint32_t r = 0; r < result->world; r++)
        in[r] = result->in[r] + at;
    if (gw_model_integer_sum(cfg, gw_model_scale(cfg), result->world, in, count, sum) &&
        memcmp(result->out[rank] + at, sum, bytes) == 0)
        return;
    if (cfg->type != GW_DTYPE_I32) {
        gw_model_raw_sum(cfg, result->world, in, count, sum);
        if (memcmp(result->out[rank] + at, sum, bytes) == 0)
            return;
    }
    fail_msg("rank %u: the fragment at byte %zu is wrong", rank, at);
}

static void check_rank(const struct gw_model_cfg *cfg, const struct gw_model_result *result,
                       uint32_t rank)
{
    uint32_t before = (cfg->rounds - 1) * cfg->tensors;
    uint32_t size = gw_dtype_size(cfg->type);
    size_t at = 0;
    for (uint32_t t = 0; before + t < result->reduced[rank]; t++)
        for (uint32_t first = 0; first < cfg->counts[t]; first += cfg->values) {
            uint32_t left = cfg->counts[t] - first;
            uint32_t count = left < cfg->values ? left : cfg->values;
            check_fragment(cfg, result, rank, at, count);
            at += (size_t)count * size;
        }
    swarm.calls += result->reduced[rank];
    swarm.failed += result->failed[rank];
    if (result->reduced[rank] < cfg->rounds * cfg->tensors)
        assert_true(result->reason[rank] != GW_JOB_OK || result->died[rank]);
    swarm.died += result->died[rank];
}

/* What one attempt returned is the same everywhere. */
static void check_replicas(const struct gw_model_cfg *cfg, const struct gw_model_result *result)
{
    for (uint32_t rank = 0; rank < result->world; rank++)
        if (result->failed[rank] || result->reduced[rank] != cfg->rounds * cfg->tensors)
            return;
    for (uint32_t rank = 1; rank < result->world; rank++)
        assert_memory_equal(result->out[rank], result->out[0], result->bytes);
}

static void run_world(uint64_t seed)
{
    struct gw_model_cfg cfg;
    struct gw_model_result result;
    random_world(seed, &cfg);
    gw_model_run(&cfg, &result);
    for (uint32_t rank = 0; rank < result.world; rank++)
        check_rank(&cfg, &result, rank);
    check_replicas(&cfg, &result);
    assert_int_equal(result.taken, 0);
    swarm.epochs += result.epochs;
    swarm.restored += result.server.restored;
    swarm.raw += result.server.overflowed;
    swarm.collisions += result.switches.collisions;
    gw_model_result_free(&result);
}

static void job_swarm__every_sum_is_right_or_the_call_failed(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < swarm.count; i++) {
        swarm.seed = swarm.first + i;
        run_world(swarm.seed);
    }
    printf("job_swarm: %" PRIu64 " worlds from seed %" PRIu64 ": %" PRIu64 " calls, %" PRIu64
           " failed, %" PRIu64 " epochs, %" PRIu64 " results restored, %" PRIu64
           " fragments raw, %" PRIu64 " collisions, %" PRIu64 " workers died\n",
           swarm.count, swarm.first, swarm.calls, swarm.failed, swarm.epochs, swarm.restored,
           swarm.raw, swarm.collisions, swarm.died);
    if (swarm.count == WORLDS)
        assert_true(swarm.calls && swarm.failed && swarm.epochs > swarm.count && swarm.restored &&
                    swarm.raw && swarm.collisions && swarm.died);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'}, {"count", required_argument, NULL, 'c'}, {0}};
    for (int key; (key = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (key == '?') {
            fprintf(stderr, "usage: job_swarm_test [--seed N] [--count K]\n");
            return 2;
        }
        *(key == 's' ? &swarm.first : &swarm.count) = strtoull(optarg, NULL, 0);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job_swarm__every_sum_is_right_or_the_call_failed)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (!failed)
        return EXIT_SUCCESS;
    /* What the failed test left allocated is no finding: leave without a leak report. */
    fprintf(stderr, "job_swarm: run it again with: job_swarm_test --seed %" PRIu64 " --count 1\n",
            swarm.seed);
    fflush(NULL);
    _Exit(EXIT_FAILURE);
}
