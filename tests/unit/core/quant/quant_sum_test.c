/*
 * What aggregation relies on: sums do not depend on the order, a saturated element stays marked
 * whatever is added in whatever order, and the error is within the documented bound.
 */
#include "quant_reference.h"

enum {
    WORKERS_MAX = 40,
    VALUES = 62,
    ROUNDS = 200,
};

static const uint64_t seed = 53;

static const struct gw_kernels *here[KERNELS_MAX];
static size_t here_count;

static struct gw_prng draw;

static int start(void **state)
{
    (void)state;
    here_count = kernels_here(here, KERNELS_MAX);
    draw = gw_prng_derive(seed, 0);
    print_message("seed %llu\n", (unsigned long long)seed);
    return 0;
}

static bool is_mark(int32_t q)
{
    return q == INT32_MAX || q == INT32_MIN;
}

static int32_t sum_of(const struct gw_kernels *k, int32_t a, int32_t b)
{
    k->add(&a, &b, 1);
    return a;
}

static const int32_t edges[] = {0,
                                1,
                                -1,
                                2,
                                -2,
                                1 << 30,
                                -(1 << 30),
                                (1 << 30) - 1,
                                -(1 << 30) - 1,
                                INT32_MAX,
                                INT32_MAX - 1,
                                INT32_MAX - 2,
                                INT32_MIN,
                                INT32_MIN + 1,
                                INT32_MIN + 2};

/* An unmarked result is the exact sum, and only a sum that is no value is marked. */
static void kernels_add__is_exact_or_marked(void **state)
{
    (void)state;
    for (size_t k = 0; k < here_count; k++)
        for (size_t i = 0; i < GW_COUNT_OF(edges); i++)
            for (size_t j = 0; j < GW_COUNT_OF(edges); j++) {
                int32_t a = edges[i], b = edges[j], r = sum_of(here[k], a, b);
                int64_t exact = (int64_t)a + b;
                bool fits = exact > INT32_MIN && exact < INT32_MAX;
                if (is_mark(a) || is_mark(b) || !fits)
                    assert_true(is_mark(r));
                else
                    assert_int_equal(r, exact);
                assert_int_equal(r, sum_of(here[k], b, a));
            }
}

static void kernels_is_saturated__finds_either_mark_anywhere(void **state)
{
    (void)state;
    for (size_t k = 0; k < here_count; k++)
        for (uint32_t at = 0; at < VALUES; at++) {
            int32_t wire[VALUES];
            for (uint32_t i = 0; i < VALUES; i++)
                wire[i] = i % 2 ? INT32_MAX - 1 : INT32_MIN + 1;
            assert_false(here[k]->is_saturated(wire, VALUES));
            wire[at] = at % 2 ? INT32_MAX : INT32_MIN;
            assert_true(here[k]->is_saturated(wire, VALUES));
            assert_false(here[k]->is_saturated(wire, at));
        }
}

/* Addends of `workers` workers; the larger the magnitude, the more elements saturate. */
static void draw_addends(int32_t addends[][VALUES], uint32_t workers)
{
    for (uint32_t w = 0; w < workers; w++)
        for (uint32_t i = 0; i < VALUES; i++) {
            addends[w][i] = (int32_t)gw_prng_next(&draw) >> gw_prng_below(&draw, 8);
            if (gw_prng_below(&draw, 200) == 0)
                addends[w][i] = edges[gw_prng_below(&draw, GW_COUNT_OF(edges))];
        }
}

/* Adds the addends in a random tree, as switches of several levels do; leaves the sum in [0]. */
static void sum_in_random_tree(const struct gw_kernels *k, int32_t addends[][VALUES],
                               uint32_t workers)
{
    while (workers > 1) {
        uint32_t from = gw_prng_below(&draw, workers), to = gw_prng_below(&draw, workers - 1);
        to += to >= from;
        bool is_marked = k->add(addends[to], addends[from], VALUES);
        assert_int_equal(is_marked, k->is_saturated(addends[to], VALUES));
        workers--;
        memmove(addends[from], addends[workers], sizeof(addends[0]));
    }
}

static void kernels_add__never_loses_a_saturation_in_any_order(void **state)
{
    (void)state;
    uint32_t marked = 0, exact = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t workers = 2 + gw_prng_below(&draw, WORKERS_MAX - 1);
        int32_t addends[WORKERS_MAX][VALUES], tree[WORKERS_MAX][VALUES];
        draw_addends(addends, workers);
        memcpy(tree, addends, sizeof(tree));
        sum_in_random_tree(here[round % here_count], tree, workers);
        for (uint32_t i = 0; i < VALUES; i++) {
            int64_t sum = 0;
            bool lost = false;
            for (uint32_t w = 0; w < workers; w++) {
                sum += addends[w][i];
                lost |= is_mark(addends[w][i]);
            }
            if (is_mark(tree[0][i])) {
                marked++;
            } else {
                assert_false(lost);
                assert_int_equal(tree[0][i], sum);
                exact++;
            }
        }
    }
    /* Both happened, so that neither branch is idle. */
    assert_true(marked > ROUNDS && exact > ROUNDS);
}

/* Plain numbers: (a + a) - a with a partial sum that saturates on the way. */
static void kernels_add__keeps_the_mark_when_the_sum_comes_back(void **state)
{
    static const int32_t large[] = {2000000000, -2000000000};
    (void)state;
    for (size_t k = 0; k < here_count; k++)
        for (size_t i = 0; i < GW_COUNT_OF(large); i++) {
            int32_t sum = sum_of(here[k], large[i], large[i]);
            assert_true(is_mark(sum));
            for (int step = 0; step < 3; step++) {
                sum = sum_of(here[k], sum, -large[i]);
                assert_true(is_mark(sum));
            }
            assert_true(is_mark(sum_of(here[k], sum, INT32_MAX)));
            assert_true(is_mark(sum_of(here[k], sum, INT32_MIN)));
        }
}

static void kernels_add__equals_the_wide_sum_of_what_was_quantised(void **state)
{
    (void)state;
    const struct gw_scale scale = gw_scale_power(GW_SCALE_EXPONENT, 1);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const struct gw_kernels *k = here[round % here_count];
        uint32_t workers = 1 + gw_prng_below(&draw, WORKERS_MAX);
        int32_t addends[WORKERS_MAX][VALUES], narrow[VALUES];
        int64_t wide[VALUES] = {0};
        for (uint32_t w = 0; w < workers; w++) {
            float x[VALUES]; /* below 16 / 40, so that nothing saturates */
            for (uint32_t i = 0; i < VALUES; i++)
                x[i] = (float)((int32_t)gw_prng_next(&draw) * 0.39 * 0x1p-31);
            assert_true(k->quantise[GW_DTYPE_F32](addends[w], x, VALUES, &scale));
            k->add_wide(wide, addends[w], VALUES);
        }
        sum_in_random_tree(k, addends, workers);
        assert_true(k->narrow(narrow, wide, VALUES));
        assert_memory_equal(narrow, addends[0], sizeof(narrow));
    }
}

/*
 * The bound of docs/numbers.md: half a unit per worker, and half a unit in the last place of the
 * result. The numbers are multiples of 2^-50 below 1/4, so that int64_t adds them exactly.
 */
static void kernels__stay_within_the_exact_bound(void **state)
{
    (void)state;
    const double grain = 0x1p50;
    double worst = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const struct gw_kernels *k = here[round % here_count];
        uint32_t workers = 1 + gw_prng_below(&draw, WORKERS_MAX);
        bool average = round % 2;
        const struct gw_scale scale = gw_scale_power(GW_SCALE_EXPONENT, average ? workers : 1);
        int32_t sum[VALUES] = {0}, wire[VALUES];
        int64_t exact[VALUES] = {0};
        float x[VALUES];
        for (uint32_t w = 0; w < workers; w++) {
            for (uint32_t i = 0; i < VALUES; i++) {
                x[i] = (float)((int32_t)gw_prng_next(&draw) * 0x1p-33);
                x[i] = gw_prng_below(&draw, 2) ? x[i] : x[i] * 0x1p-14f;
                exact[i] += (int64_t)(x[i] * grain);
            }
            assert_true(k->quantise[GW_DTYPE_F32](wire, x, VALUES, &scale));
            k->add(sum, wire, VALUES);
        }
        k->dequantise[GW_DTYPE_F32](x, sum, VALUES, &scale);
        for (uint32_t i = 0; i < VALUES; i++) {
            double shares = average ? workers : 1, wanted = (double)exact[i] / grain / shares;
            double error = x[i] > wanted ? x[i] - wanted : wanted - x[i];
            double bound = workers / (2 * scale.up) / shares;
            double rounding = (x[i] < 0 ? -x[i] : x[i]) * 0x1p-24;
            assert_true(error <= bound + rounding);
            worst = error / (bound + rounding) > worst ? error / (bound + rounding) : worst;
        }
    }
    /* The bound is not idle: with one worker it is nearly reached. */
    assert_true(worst > 0.9);
}

/* The greatest safe exponent never lets a sum saturate, and is the greatest that is proven safe. */
static void scale_exponent_max__keeps_sums_from_saturating(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 20 * ROUNDS; round++) {
        const struct gw_kernels *k = here[round % here_count];
        uint32_t workers = 1 + gw_prng_below(&draw, 1024);
        uint32_t bits = (uint32_t)gw_prng_next(&draw) & INT32_MAX;
        if (bits >= UINT32_C(0x7f800000))
            continue;
        float x;
        memcpy(&x, &bits, sizeof(x));
        int exponent = gw_scale_exponent_max(bits, workers);
        const struct gw_scale scale = gw_scale_power(exponent, 1);
        int32_t q, sum = 0;
        assert_true(k->quantise[GW_DTYPE_F32](&q, &x, 1, &scale));
        for (uint32_t w = 0; w < workers; w++)
            sum = sum_of(k, sum, q);
        assert_false(is_mark(sum));
        double limit = 0x1p31 - workers;
        assert_true(workers * (x * scale.up) <= limit);
        assert_true(exponent == GW_SCALE_EXPONENT_MAX || workers * (x * scale.up * 2) > limit);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_add__is_exact_or_marked),
        cmocka_unit_test(kernels_is_saturated__finds_either_mark_anywhere),
        cmocka_unit_test(kernels_add__never_loses_a_saturation_in_any_order),
        cmocka_unit_test(kernels_add__keeps_the_mark_when_the_sum_comes_back),
        cmocka_unit_test(kernels_add__equals_the_wide_sum_of_what_was_quantised),
        cmocka_unit_test(kernels__stay_within_the_exact_bound),
        cmocka_unit_test(scale_exponent_max__keeps_sums_from_saturating),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
