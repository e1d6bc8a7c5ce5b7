/*
 * Which fragments are important: sampled medians, every rule, and the ways to ask.
 */
#include "support.h"

#include "base/bits.h"
#include "base/cpu.h"
#include "base/prng.h"
#include "core/quant/importance.h"

enum {
    VALUES = 60000,
    FRAGMENT = 352 * 4, /* bytes */
    FRAGMENTS = (VALUES * 4 + FRAGMENT - 1) / FRAGMENT,
    WORDS = 4096,
    TRIALS = 2000,
};

static const uint64_t seed = 31;

static struct gw_prng draw;

static float values[VALUES];
static uint64_t mask[WORDS], other[WORDS];

static struct gw_importance_tensor tensor_of(const void *from, uint64_t size)
{
    return (struct gw_importance_tensor){.values = from, .size = size, .fragment_size = FRAGMENT};
}

static void init(struct gw_importance *importance, const struct gw_importance_tensor *tensor,
                 enum gw_importance_rule rule, enum gw_dtype type, uint64_t sample)
{
    const struct gw_importance_terms terms = {
        .rule = rule, .type = type, .kernels = gw_kernels_best(0)};
    gw_importance_init(importance, tensor, &terms, sample);
}

/* 2^x for a uniform x: most values are small, and the mean is above the median. */
static float draw_skewed(void)
{
    float x = 1 + (float)gw_prng_below(&draw, 1 << 20) / (1 << 20);
    for (uint32_t e = gw_prng_below(&draw, 6); e; e--)
        x *= 2;
    return gw_prng_below(&draw, 2) ? x : -x;
}

/* How many of `count` keys are below a threshold, in per cent. */
static double below(const int64_t *keys, uint32_t count, int64_t threshold)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++)
        found += keys[i] < threshold;
    return 100.0 * found / count;
}

/* Independent draws: 256 of many are outside with a probability of 0.14 %, both ways together. */
static void importance_init__takes_a_median_between_the_quantiles_of_40_and_60_percent(void **state)
{
    (void)state;
    static int64_t keys[VALUES];
    static const struct {
        enum gw_importance_rule rule;
        uint32_t fragment_size;
    } rows[] = {
        {GW_IMPORTANCE_MEDIAN_OF_VALUES, FRAGMENT},
        {GW_IMPORTANCE_MEDIAN_OF_MEANS, 32},
        {GW_IMPORTANCE_MEDIAN_OF_MEANS, FRAGMENT},
    };
    print_message("seed %llu\n", (unsigned long long)seed);
    draw = gw_prng_derive(seed, 0);
    for (uint32_t i = 0; i < VALUES; i++)
        values[i] = draw_skewed();
    for (size_t r = 0; r < GW_COUNT_OF(rows); r++) {
        struct gw_importance importance;
        struct gw_importance_tensor tensor = tensor_of(values, sizeof(values));
        bool of_values = rows[r].rule == GW_IMPORTANCE_MEDIAN_OF_VALUES;
        uint32_t size = of_values ? 4 : rows[r].fragment_size, count = 0, outside = 0;
        tensor.fragment_size = rows[r].fragment_size;
        for (uint64_t offset = 0; offset < sizeof(values); offset += size) {
            uint64_t left = (sizeof(values) - offset) / 4;
            uint32_t n = left < size / 4 ? (uint32_t)left : size / 4;
            const void *from = &values[offset / 4];
            gw_real sum;
            gw_kernels_best(0)->sum_abs[GW_DTYPE_F32](&sum, &from, NULL, 1, n);
            keys[count++] = gw_importance_key(sum / n);
        }
        for (uint32_t trial = 0; trial < TRIALS; trial++) {
            init(&importance, &tensor, rows[r].rule, GW_DTYPE_F32, trial);
            double percent = below(keys, count, importance.threshold);
            outside += percent < 40 || percent > 60;
        }
        assert_true(outside <= TRIALS / 200);
        /* All fragments are in the sample if there are so few. */
        if (count <= GW_IMPORTANCE_SAMPLE_MIN)
            assert_true(below(keys, count, importance.threshold) ==
                        100.0 * ((count - 1) / 2) / count);
    }
}

/* The same median by sorting, for samples that hold everything. */
static int compare_reals(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void importance_fill_given__is_above_the_lower_median(void **state)
{
    (void)state;
    static gw_real worth[GW_IMPORTANCE_SAMPLE_MIN], sorted[GW_IMPORTANCE_SAMPLE_MIN];
    draw = gw_prng_derive(seed, 1);
    for (uint32_t count = 2; count <= GW_IMPORTANCE_SAMPLE_MIN; count++)
        for (uint32_t range = 1; range < 3000; range = range * 13 + 1) {
            for (uint32_t i = 0; i < count; i++)
                worth[i] = sorted[i] = (double)gw_prng_below(&draw, range) - range / 2;
            qsort(sorted, count, sizeof(*sorted), compare_reals);
            uint32_t important = gw_importance_fill_given(worth, count, range, mask), found = 0;
            for (uint32_t i = 0; i < count; i++) {
                assert_int_equal(gw_bit_is_set(mask, i), worth[i] > sorted[(count - 1) / 2]);
                found += gw_bit_is_set(mask, i);
            }
            assert_int_equal(important, found);
        }
}

static void importance_fill_given__takes_nan_for_the_greatest_and_one_for_important(void **state)
{
    (void)state;
    gw_real nan = (gw_real)__builtin_nan(""), infinity = (gw_real)__builtin_inf();
    gw_real worth[] = {1, nan, -0.0, 0.0, -infinity, -nan, infinity, 0.0, -1};
    mask[0] = UINT64_MAX;
    assert_int_equal(gw_importance_fill_given(worth, GW_COUNT_OF(worth), 1, mask), 4);
    assert_int_equal(mask[0], 0x63);
    gw_real same[] = {nan, nan, nan};
    assert_int_equal(gw_importance_fill_given(same, 3, 1, mask), 3);
    gw_real alike[] = {2, 2, 2, 2};
    assert_int_equal(gw_importance_fill_given(alike, 4, 1, mask), 0);
    assert_int_equal(gw_importance_fill_given(alike, 1, 1, mask), 1);
}

static void importance_key__is_in_the_order_of_reals(void **state)
{
    (void)state;
    double infinity = __builtin_inf();
    double rising[] = {-infinity, -0x1.8p1000, -2, -1, -0x1p-1074, 0,
                       0x1p-1074, 0x1p-1022,   1,  2,  0x1.8p1000, infinity};
    for (size_t i = 1; i < GW_COUNT_OF(rising); i++)
        assert_true(gw_importance_key(rising[i - 1]) < gw_importance_key(rising[i]));
    assert_int_equal(gw_importance_key(0.0), 0);
    assert_int_equal(gw_importance_key(-0.0), 0);
    assert_true(gw_importance_key(__builtin_nan("")) == INT64_MAX);
    assert_true(gw_importance_key(-__builtin_nan("")) == INT64_MAX);
}

/* Fragments whose values grow: those of the second half are important. */
static void importance_fill__tells_large_fragments_from_small_ones(void **state)
{
    (void)state;
    struct gw_importance importance;
    struct gw_importance_tensor tensor = tensor_of(values, sizeof(values));
    for (uint32_t i = 0; i < VALUES; i++)
        values[i] = (i % 2 ? -1.0F : 1.0F) * (float)(1 + i / 352);
    init(&importance, &tensor, GW_IMPORTANCE_MEDIAN_OF_MEANS, GW_DTYPE_F32, 1);
    assert_int_equal(gw_importance_fill(&importance, mask), FRAGMENTS / 2);
    for (uint32_t i = 0; i < FRAGMENTS; i++)
        assert_int_equal(gw_bit_is_set(mask, i), i > (FRAGMENTS - 1) / 2);
    init(&importance, &tensor, GW_IMPORTANCE_ALL, GW_DTYPE_F32, 1);
    assert_int_equal(gw_importance_fill(&importance, mask), FRAGMENTS);
    init(&importance, &tensor, GW_IMPORTANCE_NONE, GW_DTYPE_F32, 1);
    assert_int_equal(gw_importance_fill(&importance, mask), 0);
}

/* The paper's rule takes nearly every fragment of a skewed distribution, the default half. */
static void importance_fill__of_skewed_values_depends_on_the_rule(void **state)
{
    (void)state;
    struct gw_importance importance;
    struct gw_importance_tensor tensor = tensor_of(values, sizeof(values));
    draw = gw_prng_derive(seed, 2);
    for (uint32_t i = 0; i < VALUES; i++)
        values[i] = draw_skewed();
    init(&importance, &tensor, GW_IMPORTANCE_MEDIAN_OF_VALUES, GW_DTYPE_F32, 3);
    assert_int_equal(gw_importance_fill(&importance, mask), FRAGMENTS);
    init(&importance, &tensor, GW_IMPORTANCE_MEDIAN_OF_MEANS, GW_DTYPE_F32, 3);
    assert_int_equal(gw_importance_fill(&importance, mask), FRAGMENTS / 2);
}

/* Any number of fragments in any order, with every type and implementation. */
static void importance_weigh__decides_as_all_at_once_with_every_kernel(void **state)
{
    (void)state;
    static unsigned char bytes[FRAGMENT * 2 * GW_IMPORTANCE_BATCH + 700];
    draw = gw_prng_derive(seed, 3);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)gw_prng_next(&draw);
    struct gw_importance_tensor tensor = tensor_of(bytes, sizeof(bytes));
    tensor.fragment_size = FRAGMENT - 3; /* so that fragments cut values */
    const uint32_t fragments = (sizeof(bytes) - 1) / (FRAGMENT - 3) + 1;
    uint32_t features = gw_cpu_features();
    for (uint32_t type = 0; type < GW_DTYPES; type++)
        for (const struct gw_kernels *const *k = gw_kernels_list; *k; k++) {
            struct gw_importance importance;
            struct gw_importance_terms terms = {
                .rule = GW_IMPORTANCE_MEDIAN_OF_MEANS, .type = (enum gw_dtype)type, .kernels = *k};
            if ((*k)->needs & ~features)
                continue;
            init(&importance, &tensor, terms.rule, terms.type, 5);
            uint32_t important = gw_importance_fill(&importance, mask), found = 0;
            gw_importance_init(&importance, &tensor, &terms, 5);
            for (uint32_t count = 0; count <= GW_IMPORTANCE_BATCH; count++) {
                uint32_t index[GW_IMPORTANCE_BATCH];
                uint64_t expected = 0;
                for (uint32_t i = 0; i < count; i++) {
                    index[i] = gw_prng_below(&draw, fragments);
                    expected |= (uint64_t)gw_bit_is_set(mask, index[i]) << i;
                }
                const uint32_t *later = count % 2 ? index : NULL;
                assert_true(gw_importance_weigh(&importance, index, count, later) == expected);
            }
            for (uint32_t i = 0; i < fragments; i++)
                found += gw_importance_weigh(&importance, &i, 1, NULL);
            assert_int_equal(found, important);
            if (type >= GW_DTYPE_MAGNITUDES)
                assert_int_equal(important, fragments);
            else
                assert_true(important >= 1);
        }
}

/* What is cut counts in neither fragment: of large values that lie across the cuts nothing is seen.
 */
static void importance_fill__leaves_out_values_that_are_cut(void **state)
{
    (void)state;
    struct gw_importance importance;
    double x[40];
    struct gw_importance_tensor tensor = tensor_of(x, sizeof(x));
    for (uint32_t i = 0; i < GW_COUNT_OF(x); i++)
        x[i] = 1;
    tensor.fragment_size = 84; /* values 10 and 31 are cut in the middle */
    x[10] = x[31] = 100;
    x[12] = 2;
    init(&importance, &tensor, GW_IMPORTANCE_MEDIAN_OF_MEANS, GW_DTYPE_F64, 1);
    assert_int_equal(gw_importance_fill(&importance, mask), 1);
    assert_int_equal(mask[0], 2);
    /* Of fragments without a whole value all are important. */
    tensor.fragment_size = 7;
    init(&importance, &tensor, GW_IMPORTANCE_MEDIAN_OF_MEANS, GW_DTYPE_F64, 1);
    assert_int_equal(gw_importance_fill(&importance, mask), (sizeof(x) + 6) / 7);
}

static void importance_fill__of_nan_and_of_a_single_fragment_is_true(void **state)
{
    (void)state;
    struct gw_importance importance;
    struct gw_importance_tensor tensor = tensor_of(values, sizeof(values));
    uint32_t nan = 0x7fc00000;
    for (uint32_t i = 0; i < VALUES; i++)
        memcpy(&values[i], &nan, sizeof(nan));
    init(&importance, &tensor, GW_IMPORTANCE_MEDIAN_OF_MEANS, GW_DTYPE_F32, 1);
    assert_int_equal(gw_importance_fill(&importance, mask), FRAGMENTS);
    init(&importance, &tensor, GW_IMPORTANCE_MEDIAN_OF_VALUES, GW_DTYPE_F32, 1);
    assert_int_equal(gw_importance_fill(&importance, mask), FRAGMENTS);
    memset(values, 0, sizeof(values));
    memcpy(&values[VALUES / 2], &nan, sizeof(nan));
    init(&importance, &tensor, GW_IMPORTANCE_MEDIAN_OF_MEANS, GW_DTYPE_F32, 1);
    assert_int_equal(gw_importance_fill(&importance, mask), 1);
    assert_true(gw_bit_is_set(mask, VALUES / 2 / 352));
    tensor.size = 5;
    init(&importance, &tensor, GW_IMPORTANCE_MEDIAN_OF_MEANS, GW_DTYPE_F32, 1);
    assert_int_equal(gw_importance_fill(&importance, mask), 1);
    tensor.size = 3; /* no value at all */
    init(&importance, &tensor, GW_IMPORTANCE_MEDIAN_OF_VALUES, GW_DTYPE_F32, 1);
    assert_int_equal(gw_importance_fill(&importance, mask), 1);
}

/* Drawn fragments. */

enum { DRAWN = 20000 };

static uint32_t fill_drawn(const struct gw_importance_drawn *drawn, enum gw_importance_rule rule,
                           uint64_t *to)
{
    struct gw_importance importance;
    gw_importance_init_drawn(&importance, drawn, rule);
    return gw_importance_fill(&importance, to);
}

/*
 * With alike fragments the mean of 352 values is 7 standard deviations above the median, that of 4
 * values 0.54: 70 % are greater. With a spread of 1, 69 % of the means are above the median.
 */
static void importance_init_drawn__has_the_fractions_of_the_rules(void **state)
{
    (void)state;
    static const struct {
        enum gw_importance_rule rule;
        uint32_t values;
        uint32_t spread_q16;
        uint32_t percent_min, percent_max;
    } rows[] = {
        {GW_IMPORTANCE_MEDIAN_OF_VALUES, 352, 0, 100, 100},
        {GW_IMPORTANCE_MEDIAN_OF_VALUES, 352, 65536, 65, 73},
        {GW_IMPORTANCE_MEDIAN_OF_VALUES, 4, 0, 65, 80},
        {GW_IMPORTANCE_MEDIAN_OF_VALUES, 1, 0, 45, 55},
        {GW_IMPORTANCE_MEDIAN_OF_MEANS, 352, 0, 40, 60},
        {GW_IMPORTANCE_MEDIAN_OF_MEANS, 352, 65536, 40, 60},
        {GW_IMPORTANCE_MEDIAN_OF_MEANS, 1, 262144, 40, 60},
        {GW_IMPORTANCE_ALL, 352, 0, 100, 100},
        {GW_IMPORTANCE_NONE, 352, 0, 0, 0},
    };
    for (size_t r = 0; r < GW_COUNT_OF(rows); r++) {
        struct gw_importance_drawn drawn = {.seed = seed,
                                            .tensor = 3,
                                            .iteration = 7,
                                            .count = DRAWN,
                                            .fragment_values = rows[r].values,
                                            .spread_q16 = rows[r].spread_q16};
        uint32_t important = fill_drawn(&drawn, rows[r].rule, mask);
        if (important < rows[r].percent_min * (DRAWN / 100) ||
            important > rows[r].percent_max * (DRAWN / 100))
            fail_msg("row %zu: %u of %u are important", r, important, (uint32_t)DRAWN);
    }
}

/* Draws depend on each part of their name, and on nothing else. */
static void importance_init_drawn__is_repeated_by_the_same_names_alone(void **state)
{
    (void)state;
    struct gw_importance_drawn drawn = {.seed = seed,
                                        .tensor = 1,
                                        .iteration = 1,
                                        .count = DRAWN,
                                        .fragment_values = 352,
                                        .spread_q16 = 32768};
    uint32_t important = fill_drawn(&drawn, GW_IMPORTANCE_MEDIAN_OF_MEANS, mask);
    assert_int_equal(fill_drawn(&drawn, GW_IMPORTANCE_MEDIAN_OF_MEANS, other), important);
    assert_memory_equal(mask, other, DRAWN / 8);
    for (uint32_t part = 0; part < 3; part++) {
        struct gw_importance_drawn changed = drawn;
        uint32_t differ = 0;
        changed.seed += part == 0;
        changed.tensor += part == 1;
        changed.iteration += part == 2;
        fill_drawn(&changed, GW_IMPORTANCE_MEDIAN_OF_MEANS, other);
        for (uint32_t i = 0; i < DRAWN; i++)
            differ += gw_bit_is_set(mask, i) != gw_bit_is_set(other, i);
        assert_in_range(differ, DRAWN * 2 / 5, DRAWN * 3 / 5);
    }
    drawn.count = 1;
    assert_int_equal(fill_drawn(&drawn, GW_IMPORTANCE_MEDIAN_OF_MEANS, other), 1);
}

/* Known results: the same on every machine. */
static void importance_init_drawn__gives_these_numbers_everywhere(void **state)
{
    (void)state;
    struct gw_importance importance;
    struct gw_importance_drawn drawn = {
        .seed = 1, .tensor = 2, .iteration = 3, .count = 64, .fragment_values = 352};
    gw_importance_init_drawn(&importance, &drawn, GW_IMPORTANCE_MEDIAN_OF_MEANS);
    /* (1 - ln(1 + (e - 1) / 352)) / 2, and the root of the logarithm, times 2^16. */
    assert_int_equal(importance.centre_q16, 32608);
    assert_int_equal(importance.deviation_q16, 4573);
    assert_int_equal(gw_importance_fill(&importance, mask), 32);
    assert_true(mask[0] == UINT64_C(0x9593202bf296746f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            importance_init__takes_a_median_between_the_quantiles_of_40_and_60_percent),
        cmocka_unit_test(importance_fill_given__is_above_the_lower_median),
        cmocka_unit_test(importance_fill_given__takes_nan_for_the_greatest_and_one_for_important),
        cmocka_unit_test(importance_key__is_in_the_order_of_reals),
        cmocka_unit_test(importance_fill__tells_large_fragments_from_small_ones),
        cmocka_unit_test(importance_fill__of_skewed_values_depends_on_the_rule),
        cmocka_unit_test(importance_weigh__decides_as_all_at_once_with_every_kernel),
        cmocka_unit_test(importance_fill__leaves_out_values_that_are_cut),
        cmocka_unit_test(importance_fill__of_nan_and_of_a_single_fragment_is_true),
        cmocka_unit_test(importance_init_drawn__has_the_fractions_of_the_rules),
        cmocka_unit_test(importance_init_drawn__is_repeated_by_the_same_names_alone),
        cmocka_unit_test(importance_init_drawn__gives_these_numbers_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
