/*
 * All-reduce of values that are large for the job's scale: the proactive mode and agreed exponents
 * (ATP, appendices B.2 and B.3), under faults. Every replica's result is the sum of integers of the
 * job's exponent or of the one that the workers agree on, or the sum of raw values where the rules
 * say so, and nothing else.
 */
#include "allreduce_model.h"

#include "support.h"

#include "base/prng.h"

enum {
    VALUES = 32,
    WINDOW = 16,
    AMPLE = 256, /* aggregators */
    FRAGMENTS = 90,
    NOTICED = 5, /* overflows that make 0.1 % of the server's memory of 4096 fragments */
};

/* Some thousands of units of the default scale, with bits down to a hundredth of one. */
static double low_bits(const struct gw_model_cfg *cfg, uint32_t rank, uint32_t tensor,
                       uint32_t index)
{
    struct gw_prng prng =
        gw_prng_derive(cfg->seed, (uint64_t)rank << 48 | (uint64_t)tensor << 40 | index);
    return (double)(int32_t)gw_prng_next(&prng) * 0x1p-45;
}

static uint32_t bits_of(const struct gw_model_cfg *cfg, double x)
{
    uint32_t bits = 0;
    gw_kernels_best(0)->narrow_real[cfg->type](&bits, &x, 1, 1);
    return bits;
}

/* Two elements of a fragment double every eight fragments, from 1/4 to 2^11, on every worker. */
static uint32_t growing(const struct gw_model_cfg *cfg, uint32_t rank, uint32_t tensor,
                        uint32_t index)
{
    uint32_t fragment = tensor * FRAGMENTS + index / VALUES;
    double x = low_bits(cfg, rank, tensor, index);
    if (index % VALUES == 3 || index % VALUES == 17)
        x += 0.25 * (double)(1 << fragment / 8 % 14) * (1 + (double)(rank % 4) / 8);
    return bits_of(cfg, x);
}

enum kind {
    SMALL,      /* no sum can saturate */
    SUSPICIOUS, /* if all workers had the value of the first one, the sum would not fit */
    TOO_MUCH,   /* they have */
    TOO_LARGE,  /* no integer holds the first worker's value */
    KINDS,
};

static uint32_t of_all_kinds(const struct gw_model_cfg *cfg, uint32_t rank, uint32_t tensor,
                             uint32_t index)
{
    uint32_t kind = index / VALUES % KINDS;
    double x = low_bits(cfg, rank, tensor, index);
    if (index % VALUES == 9 && (kind == TOO_MUCH || (rank == 0 && kind != SMALL)))
        x = kind == TOO_LARGE ? 20 : 3;
    return bits_of(cfg, x);
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
        .tensors = 1,
        .counts = {FRAGMENTS * VALUES},
        .type = GW_DTYPE_F32,
        .aggregates = true,
        .element = growing,
    };
}

/* One fragment of a result. */
struct fragment {
    const struct gw_model_cfg *cfg;
    const struct gw_model_result *result;
    uint32_t number; /* in the job */
    uint32_t count;  /* elements */
    size_t at;       /* bytes from the start */
    const unsigned char *in[GW_MODEL_WORKERS_MAX];
    int safe[GW_MODEL_WORKERS_MAX]; /* greatest safe exponent by each worker's values, up to the
                                       job's */
    int agreed;                     /* least of these */
};

/* What was found in a result. */
struct found {
    uint32_t agreed;   /* fragments that the agreed exponent explains and the job's does not */
    uint32_t overflow; /* fragments that do not fit the job's exponent */
    uint32_t flagged;  /* of any worker, if the job's exponent is used */
};

static int safe_exponent(const struct gw_model_cfg *cfg, const void *x, uint32_t count,
                         uint32_t world)
{
    if (cfg->type == GW_DTYPE_I32)
        return GW_SCALE_EXPONENT;
    int safe = gw_scale_exponent_max(gw_kernels_best(0)->max_abs[cfg->type](x, count), world);
    return safe < GW_SCALE_EXPONENT ? safe : GW_SCALE_EXPONENT;
}

/* What the fragment is when it is scaled by 2^exponent. */
static void expect(const struct fragment *f, int exponent, unsigned char *out)
{
    bool may_saturate = f->cfg->proactive && f->agreed < exponent;
    if (may_saturate ||
        !gw_model_integer_sum(f->cfg, exponent, f->result->world, f->in, f->count, out))
        gw_model_raw_sum(f->cfg, f->result->world, f->in, f->count, out);
}

static void check_fragment(const struct fragment *f, struct found *found)
{
    unsigned char job[4 * VALUES], agreed[4 * VALUES], unused[4 * VALUES];
    size_t size = (size_t)f->count * gw_dtype_size(f->cfg->type);
    bool may_agree = f->cfg->dynamic && f->number >= f->cfg->window;
    expect(f, GW_SCALE_EXPONENT, job);
    expect(f, f->agreed, agreed);
    const unsigned char *replica = f->result->out[0] + f->at;
    bool is_job = memcmp(replica, job, size) == 0;
    bool is_agreed = may_agree && memcmp(replica, agreed, size) == 0;
    if (!is_job && !is_agreed)
        fail_msg("seed %llu: fragment %u is wrong", (unsigned long long)f->cfg->seed, f->number);
    found->agreed += !is_job;
    found->overflow +=
        !gw_model_integer_sum(f->cfg, GW_SCALE_EXPONENT, f->result->world, f->in, f->count, unused);
    for (uint32_t rank = 0; rank < f->result->world; rank++) {
        found->flagged += f->safe[rank] < GW_SCALE_EXPONENT;
        if (memcmp(f->result->out[rank] + f->at, replica, size) != 0)
            fail_msg("seed %llu: fragment %u differs on rank %u", (unsigned long long)f->cfg->seed,
                     f->number, rank);
    }
}

static void for_each_fragment(const struct gw_model_cfg *cfg, const struct gw_model_result *result,
                              void (*check)(const struct fragment *, struct found *),
                              struct found *found)
{
    struct fragment f = {.cfg = cfg, .result = result};
    for (uint32_t t = 0; t < cfg->tensors; t++)
        for (uint32_t first = 0; first < cfg->counts[t]; first += VALUES, f.number++) {
            f.count = cfg->counts[t] - first < VALUES ? cfg->counts[t] - first : VALUES;
            f.agreed = GW_SCALE_EXPONENT;
            for (uint32_t rank = 0; rank < result->world; rank++) {
                f.in[rank] = result->in[rank] + f.at;
                f.safe[rank] = safe_exponent(cfg, f.in[rank], f.count, result->world);
                f.agreed = f.safe[rank] < f.agreed ? f.safe[rank] : f.agreed;
            }
            check(&f, found);
            f.at += (size_t)f.count * gw_dtype_size(cfg->type);
        }
}

/* Runs and checks; the caller looks at the counters and frees the result. */
static struct found run(const struct gw_model_cfg *cfg, struct gw_model_result *result,
                        void (*check)(const struct fragment *, struct found *))
{
    struct found found = {0};
    gw_model_run(cfg, result);
    for (uint32_t rank = 0; rank < result->world; rank++)
        if (result->reduced[rank] != cfg->tensors || result->failed[rank] != 0)
            fail_msg("seed %llu: rank %u: %u reduced, %u failed", (unsigned long long)cfg->seed,
                     rank, result->reduced[rank], result->failed[rank]);
    for_each_fragment(cfg, result, check, &found);
    return found;
}

/* What overflows is what was sent before the server knew that it does. */
static void allreduce_scaling__agreed_exponents_end_the_overflow(void **state)
{
    (void)state;
    struct gw_model_cfg cfg = basic(1);
    struct gw_model_result fixed, dynamic;
    struct found found = run(&cfg, &fixed, check_fragment);
    assert_int_equal(fixed.server.overflowed, found.overflow);
    assert_true(found.overflow > FRAGMENTS / 2);
    assert_int_equal(fixed.server.scaled, 0);
    cfg.dynamic = true;
    found = run(&cfg, &dynamic, check_fragment);
    assert_in_range(dynamic.server.overflowed, 1, NOTICED + WINDOW);
    assert_true(found.agreed > 0);
    assert_true(dynamic.server.received < fixed.server.received);
    gw_model_result_free(&fixed);
    gw_model_result_free(&dynamic);
}

/* Nothing but what the proactive rule says travels raw, and no sum saturates. */
static void allreduce_scaling__proactive_flags_all_that_might_saturate(void **state)
{
    (void)state;
    struct gw_model_cfg cfg = basic(2);
    struct gw_model_result result;
    cfg.element = of_all_kinds;
    cfg.proactive = true;
    cfg.counts[0] = KINDS * 20 * VALUES;
    struct found found = run(&cfg, &result, check_fragment);
    assert_int_equal(result.server.overflowed, 3 * 20);
    assert_int_equal(result.server.needless, 20); /* the suspicious ones */
    assert_int_equal(found.overflow, 2 * 20);
    assert_int_equal(result.workers.flagged, found.flagged);
    gw_model_result_free(&result);
    cfg.proactive = false;
    run(&cfg, &result, check_fragment);
    assert_int_equal(result.server.overflowed, 2 * 20);
    assert_int_equal(result.workers.flagged, 0);
    gw_model_result_free(&result);
}

/* With both modes the agreed exponent is what the proactive rule asks about. */
static void allreduce_scaling__agreed_exponents_leave_nothing_to_flag(void **state)
{
    (void)state;
    struct gw_model_cfg cfg = basic(3);
    struct gw_model_result result;
    cfg.proactive = cfg.dynamic = true;
    run(&cfg, &result, check_fragment);
    assert_in_range(result.server.overflowed, 1, NOTICED + WINDOW);
    assert_in_range(result.workers.flagged, 1, (NOTICED + WINDOW) * result.world);
    gw_model_result_free(&result);
}

/* Any schedule of loss, doubling and reordering, any memory, any type, sum or average. */
static void allreduce_scaling__is_exact_under_faults(void **state)
{
    (void)state;
    struct gw_aggregate_stats seen = {0};
    uint64_t scaled = 0, flagged = 0, needless = 0, resent = 0, agreed = 0;
    for (uint64_t seed = 1; seed <= 160; seed++) {
        struct gw_model_cfg cfg = basic(seed);
        struct gw_model_result result;
        cfg.dynamic = seed % 4 != 1;
        cfg.proactive = seed % 4 < 2;
        cfg.element = seed % 7 ? growing : of_all_kinds;
        cfg.type = (enum gw_dtype)(seed / 4 % GW_DTYPE_FLOATS);
        cfg.average = seed / 8 % 2;
        cfg.tensors = 3;
        cfg.counts[1] = 77;
        cfg.counts[2] = 400;
        cfg.lose_of_64 = (uint32_t)(seed % 5);
        cfg.double_of_64 = (uint32_t)(seed / 2 % 4);
        cfg.delay_of_64 = (uint32_t)(seed / 3 % 6);
        cfg.aggregators = seed % 3 ? AMPLE : 10;
        cfg.aggregates = seed % 16 != 9;
        cfg.rack_scale = seed % 8 == 6;
        cfg.rack_workers[0] = 1 + (uint32_t)(seed % 4);
        cfg.root_workers = (uint32_t)(seed % 3);
        agreed += run(&cfg, &result, check_fragment).agreed;
        scaled += result.server.scaled;
        needless += result.server.needless;
        flagged += result.workers.flagged;
        resent += result.workers.resent;
        seen.partials += result.switches.partials;
        seen.duplicates += result.switches.duplicates;
        seen.collisions += result.switches.collisions;
        seen.followed += result.switches.followed;
        gw_model_result_free(&result);
    }
    /* The rules that this is about were all at work. */
    assert_true(scaled && agreed && flagged && needless && resent);
    assert_true(seen.partials && seen.duplicates && seen.collisions && seen.followed);
}

static double element_at(const struct gw_model_cfg *cfg, const unsigned char *x, uint32_t i)
{
    gw_real sum = 0;
    gw_kernels_best(0)->add_real[cfg->type](&sum, x + (size_t)i * gw_dtype_size(cfg->type), 1);
    return sum;
}

/* The bound of docs/numbers.md, for float32: the least exponent that can have been agreed on. */
static void check_bound(const struct fragment *f, struct found *found)
{
    (void)found;
    const unsigned char *replica = f->result->out[0] + f->at;
    const struct gw_scale unit = gw_scale_power(f->agreed, 1);
    for (uint32_t i = 0; i < f->count; i++) {
        double sum = 0, got = element_at(f->cfg, replica, i);
        for (uint32_t rank = 0; rank < f->result->world; rank++)
            sum += element_at(f->cfg, f->in[rank], i); /* exact: 53 bits hold it */
        double error = got < sum ? sum - got : got - sum, magnitude = got < 0 ? -got : got;
        double bound = f->result->world / (2 * unit.up) + magnitude * 0x1p-24;
        if (error > bound)
            fail_msg("seed %llu: fragment %u, element %u: off by %g, at most %g",
                     (unsigned long long)f->cfg->seed, f->number, i, error, bound);
    }
    for (uint32_t rank = 1; rank < f->result->world; rank++)
        assert_memory_equal(f->result->out[rank] + f->at, replica, 4 * (size_t)f->count);
}

/*
 * Tensors that come one by one, at each worker when its last one has ended: some workers cannot
 * offer yet what others do, and offer it when they send again.
 */
static void allreduce_scaling__workers_agree_on_tensors_that_come_late(void **state)
{
    (void)state;
    uint64_t scaled = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct gw_model_cfg cfg = basic(seed);
        struct gw_model_result result;
        cfg.dynamic = cfg.one_by_one = true;
        cfg.proactive = seed % 2;
        cfg.tensors = 8;
        for (uint32_t t = 0; t < cfg.tensors; t++)
            cfg.counts[t] = (t % 2 ? 3 : 20) * VALUES - 5;
        cfg.lose_of_64 = (uint32_t)(seed % 5);
        cfg.double_of_64 = (uint32_t)(seed / 2 % 4);
        cfg.delay_of_64 = (uint32_t)(seed / 3 % 6);
        run(&cfg, &result, check_bound);
        scaled += result.server.scaled;
        gw_model_result_free(&result);
    }
    assert_true(scaled > 0);
}

/* Of all kinds of integers, by row: what fits is added up as ever. */
static uint32_t integers(const struct gw_model_cfg *cfg, uint32_t rank, uint32_t tensor,
                         uint32_t index)
{
    (void)cfg;
    (void)tensor;
    if (index % 50 == 40) /* its sum fits; not if it is added up in the wrong order */
        return rank % 2 ? (uint32_t)INT32_MIN + rank : (uint32_t)INT32_MAX;
    return index * 1000 + rank;
}

static void allreduce_scaling__int32_is_never_scaled(void **state)
{
    (void)state;
    struct gw_model_cfg cfg = basic(4);
    struct gw_model_result result;
    cfg.dynamic = cfg.proactive = true;
    cfg.type = GW_DTYPE_I32;
    cfg.element = integers;
    gw_model_run(&cfg, &result);
    assert_true(result.server.overflowed > 0);
    assert_int_equal(result.server.scaled, 0);
    assert_int_equal(result.workers.flagged, 0);
    for (uint32_t rank = 0; rank < result.world; rank++)
        for (uint32_t i = 0; i < cfg.counts[0]; i++) {
            int64_t sum = 0;
            int32_t got;
            for (uint32_t other = 0; other < result.world; other++)
                sum += (int32_t)integers(&cfg, other, 0, i);
            memcpy(&got, result.out[rank] + 4 * (size_t)i, sizeof(got));
            assert_true(got == sum);
        }
    gw_model_result_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allreduce_scaling__agreed_exponents_end_the_overflow),
        cmocka_unit_test(allreduce_scaling__proactive_flags_all_that_might_saturate),
        cmocka_unit_test(allreduce_scaling__agreed_exponents_leave_nothing_to_flag),
        cmocka_unit_test(allreduce_scaling__is_exact_under_faults),
        cmocka_unit_test(allreduce_scaling__workers_agree_on_tensors_that_come_late),
        cmocka_unit_test(allreduce_scaling__int32_is_never_scaled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
