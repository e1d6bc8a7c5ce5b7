/*
 * Thresholds from samples, and fragments compared with them; see importance.h. DLCP, section 3.2.2.
 *
 * Samples are stratified: one position is drawn from each of as many equal parts of the tensor as
 * there are to be positions. So none is drawn twice, and of a small tensor each is.
 *
 * Invariant: no decision depends on the order in which fragments are asked for.
 */
#include "core/quant/importance.h"

#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "base/bitmap.h"
#include "base/bits.h"
#include "base/fixed.h"
#include "base/prng.h"
#include "core/quant/number.h"

const char *const gw_importance_rule_names[GW_IMPORTANCE_RULES] = {
    [GW_IMPORTANCE_ALL] = "all",
    [GW_IMPORTANCE_MEDIAN_OF_MEANS] = "median-of-means",
    [GW_IMPORTANCE_MEDIAN_OF_VALUES] = "median-of-values",
    [GW_IMPORTANCE_NONE] = "none",
};

/* Larger tensors would have parts of more than 2^32 positions. */
#define SIZE_END (UINT64_C(1) << 40)

/* Keys for a median, and the positions that they belong to. */
struct sample {
    struct gw_prng prng;
    uint64_t population;
    uint32_t count;
    int64_t keys[GW_IMPORTANCE_SAMPLE_MAX];
};

static void sample_init(struct sample *sample, uint64_t population, uint64_t count, uint64_t seed)
{
    sample->prng = gw_prng_derive(seed, 0);
    sample->population = population;
    sample->count = (uint32_t)(count < population ? count : population);
}

/* The position for the key of number `index`; indices are asked for in order. */
static uint64_t sample_position(struct sample *sample, uint32_t index)
{
    uint64_t first = sample->population * index / sample->count;
    uint64_t end = sample->population * (index + 1) / sample->count;
    return first + gw_prng_below(&sample->prng, (uint32_t)(end - first));
}

/* The middle key, of an even number the lower one of both; quickselect (Hoare). */
static int64_t sample_median(struct sample *sample)
{
    int64_t *keys = sample->keys;
    int32_t low = 0, high = (int32_t)sample->count - 1, middle = high / 2;
    while (low < high) {
        int64_t pivot = keys[middle];
        int32_t up = low, down = high;
        while (up <= down) {
            while (keys[up] < pivot)
                up++;
            while (keys[down] > pivot)
                down--;
            if (up <= down) {
                int64_t key = keys[up];
                keys[up++] = keys[down];
                keys[down--] = key;
            }
        }
        if (down < middle)
            low = up;
        if (up > middle)
            high = down;
    }
    return keys[middle];
}

static uint64_t values_in_sample(uint64_t values)
{
    uint64_t count = values / GW_IMPORTANCE_SAMPLE_ONE_IN;
    if (count < GW_IMPORTANCE_SAMPLE_MIN)
        return GW_IMPORTANCE_SAMPLE_MIN;
    return count < GW_IMPORTANCE_SAMPLE_MAX ? count : GW_IMPORTANCE_SAMPLE_MAX;
}

int64_t gw_importance_key(gw_real x)
{
    int64_t bits = (int64_t)gw_f64_bits(x + 0.0); /* -0.0 becomes 0.0 */
    if ((bits & INT64_MAX) > GW_F64_INFINITY)
        return INT64_MAX;
    return bits ^ ((bits >> 63) & INT64_MAX);
}

/* What is infinite or NaN is important among its like too. */
static bool is_above(int64_t threshold, int64_t key)
{
    return key > threshold || key >= GW_F64_INFINITY;
}

static bool has_threshold(enum gw_importance_rule rule)
{
    return rule == GW_IMPORTANCE_MEDIAN_OF_MEANS || rule == GW_IMPORTANCE_MEDIAN_OF_VALUES;
}

static bool has_magnitude(enum gw_dtype type)
{
    return type < GW_DTYPE_MAGNITUDES;
}

static uint32_t batch_of(uint64_t left)
{
    return left < GW_IMPORTANCE_BATCH ? (uint32_t)left : GW_IMPORTANCE_BATCH;
}

static uint32_t bytes_of(const struct gw_importance_tensor *tensor, uint64_t offset)
{
    uint64_t left = tensor->size - offset;
    return left < tensor->fragment_size ? (uint32_t)left : tensor->fragment_size;
}

/*
 * The means of the values that are whole in these fragments; if none is, it is important. As many
 * are summed together as have equally many. The size of values is a power of two: divisions would
 * take as long as sums.
 */
static void find_keys(const struct gw_importance *importance, const uint32_t *index, uint32_t count,
                      const uint32_t *later, int64_t *keys)
{
    const struct gw_importance_terms *terms = &importance->terms;
    const struct gw_importance_tensor *tensor = &importance->tensor;
    const uint32_t value_size = gw_dtype_size(terms->type), shift = __builtin_ctz(value_size);
    const void *from[GW_IMPORTANCE_BATCH], *half[GW_IMPORTANCE_BATCH];
    uint32_t values[GW_IMPORTANCE_BATCH];
    gw_real sums[GW_IMPORTANCE_BATCH];
    for (uint32_t i = 0; i < count; i++) {
        uint64_t offset = (uint64_t)index[i] * tensor->fragment_size;
        uint32_t skip = -(uint32_t)offset & (value_size - 1), bytes = bytes_of(tensor, offset);
        from[i] = (const unsigned char *)tensor->values + offset + skip;
        values[i] = bytes > skip ? (bytes - skip) >> shift : 0;
    }
    for (uint32_t i = 0; later && i < count; i++)
        half[i] = (const unsigned char *)tensor->values +
                  (uint64_t)later[i] * tensor->fragment_size + tensor->fragment_size / 2;
    for (uint32_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && values[end] == values[first];)
            end++;
        terms->kernels->sum_abs[terms->type](
            sums + first, from + first, later ? half + first : NULL, end - first, values[first]);
    }
    for (uint32_t i = 0; i < count; i++)
        keys[i] = values[i] ? gw_importance_key(sums[i] / values[i]) : INT64_MAX;
}

/* A single fragment has no other to be less than. */
static int64_t median_of_means(const struct gw_importance *importance, uint64_t seed)
{
    struct sample sample;
    uint32_t index[GW_IMPORTANCE_SAMPLE_MIN];
    if (importance->fragments == 1)
        return INT64_MIN;
    sample_init(&sample, importance->fragments, GW_IMPORTANCE_SAMPLE_MIN, seed);
    for (uint32_t i = 0; i < sample.count; i++)
        index[i] = (uint32_t)sample_position(&sample, i);
    for (uint32_t i = 0; i < sample.count; i += GW_IMPORTANCE_BATCH)
        find_keys(importance, index + i, batch_of(sample.count - i), NULL, sample.keys + i);
    return sample_median(&sample);
}

static int64_t median_of_values(const struct gw_importance *importance, uint64_t seed)
{
    struct sample sample;
    const struct gw_importance_terms *terms = &importance->terms;
    uint32_t value_size = gw_dtype_size(terms->type);
    uint64_t values = importance->tensor.size / value_size;
    if (!values)
        return INT64_MIN;
    sample_init(&sample, values, values_in_sample(values), seed);
    for (uint32_t first = 0; first < sample.count; first += GW_IMPORTANCE_BATCH) {
        const void *from[GW_IMPORTANCE_BATCH];
        gw_real magnitudes[GW_IMPORTANCE_BATCH];
        uint32_t count = batch_of(sample.count - first);
        for (uint32_t i = 0; i < count; i++) {
            uint64_t position = sample_position(&sample, first + i);
            from[i] = (const unsigned char *)importance->tensor.values + position * value_size;
            __builtin_prefetch(from[i]);
        }
        terms->kernels->sum_abs[terms->type](magnitudes, from, NULL, count, 1);
        for (uint32_t i = 0; i < count; i++)
            sample.keys[first + i] = gw_importance_key(magnitudes[i]);
    }
    return sample_median(&sample);
}

void gw_importance_init(struct gw_importance *importance, const struct gw_importance_tensor *tensor,
                        const struct gw_importance_terms *terms, uint64_t seed)
{
    GW_ASSERT(tensor->size >= 1 && tensor->size < SIZE_END);
    GW_ASSERT(tensor->fragment_size >= 1);
    GW_ASSERT(terms->rule < GW_IMPORTANCE_RULES);
    *importance = (struct gw_importance){
        .terms = *terms,
        .tensor = *tensor,
        .fragments = (tensor->size + tensor->fragment_size - 1) / tensor->fragment_size,
    };
    if (!has_threshold(terms->rule))
        return;
    if (!has_magnitude(terms->type))
        importance->terms.rule = GW_IMPORTANCE_ALL;
    else if (terms->rule == GW_IMPORTANCE_MEDIAN_OF_MEANS)
        importance->threshold = median_of_means(importance, seed);
    else
        importance->threshold = median_of_values(importance, seed);
}

/* The natural logarithm of 1 + x, both in units of 2^-32, for x up to 2: twice the area tangent of
 * x / (2 + x), of whose series what follows is below 2^-12. */
static uint64_t log_of_more_q32(uint64_t x)
{
    const uint64_t two = UINT64_C(2) << 32;
    uint64_t y = (x << 16) / ((two + x) >> 16), square = y * y >> 32, power = y, sum = 0;
    for (uint32_t n = 1; n <= 7; n += 2) {
        sum += power / n;
        power = power * square >> 32;
    }
    return 2 * sum;
}

/* Nearly a normal deviate, of variance 1: the sum of four uniform ones (Irwin and Hall). */
static int64_t deviate_q16(uint64_t random)
{
    const int64_t mean = 2 * UINT16_MAX, root_of_3_q16 = 113512;
    int64_t sum = 0;
    for (; random; random >>= 16)
        sum += (int64_t)(random & UINT16_MAX);
    return (sum - mean) * root_of_3_q16 / GW_Q16_ONE;
}

/* centre + deviation * a normal deviate: the logarithm of a mean. */
static int64_t drawn_key(const struct gw_importance *importance, uint64_t index)
{
    struct gw_prng prng = {importance->stream + index * UINT64_C(0x9e3779b97f4a7c15)};
    int64_t deviate = deviate_q16(gw_prng_next(&prng));
    return importance->centre_q16 + importance->deviation_q16 * deviate / GW_Q16_ONE;
}

/* The median of a sample of fragments, or of values: the logarithm of these has the mean 0. */
static int64_t drawn_threshold(const struct gw_importance *importance,
                               const struct gw_importance_drawn *drawn, uint64_t seed)
{
    struct sample sample;
    bool of_means = importance->terms.rule == GW_IMPORTANCE_MEDIAN_OF_MEANS;
    uint64_t values = (uint64_t)drawn->count * drawn->fragment_values;
    if (of_means && drawn->count == 1)
        return INT64_MIN;
    if (of_means)
        sample_init(&sample, drawn->count, GW_IMPORTANCE_SAMPLE_MIN, seed);
    else
        sample_init(&sample, values, values_in_sample(values), seed);
    int64_t spread = drawn->spread_q16;
    int64_t deviation = gw_sqrt((uint64_t)(spread * spread + GW_Q16_ONE * GW_Q16_ONE));
    for (uint32_t i = 0; i < sample.count; i++)
        if (of_means)
            sample.keys[i] = drawn_key(importance, sample_position(&sample, i));
        else
            sample.keys[i] = deviation * deviate_q16(gw_prng_next(&sample.prng)) / GW_Q16_ONE;
    return sample_median(&sample);
}

/*
 * The mean of n independent log-normal values is nearly log-normal, with the same expectation and
 * variance (Fenton, IRE Transactions on Communications Systems 8(1), 1960): its logarithm has the
 * variance ln(1 + (e - 1) / n), and half of what that lacks to 1 is its mean.
 */
void gw_importance_init_drawn(struct gw_importance *importance,
                              const struct gw_importance_drawn *drawn, enum gw_importance_rule rule)
{
    const uint64_t e_minus_1_q32 = UINT64_C(7379964259), one_q32 = UINT64_C(1) << 32;
    GW_ASSERT(drawn->count >= 1 && drawn->fragment_values >= 1);
    GW_ASSERT(drawn->spread_q16 <= 4 * GW_Q16_ONE);
    GW_ASSERT(rule < GW_IMPORTANCE_RULES);
    uint64_t variance = log_of_more_q32(e_minus_1_q32 / drawn->fragment_values);
    uint64_t spread = drawn->spread_q16;
    uint64_t which = (uint64_t)drawn->tensor << 32 | drawn->iteration;
    struct gw_prng prng = gw_prng_derive(drawn->seed, which);
    *importance = (struct gw_importance){
        .terms = {.rule = rule},
        .fragments = drawn->count,
        .stream = gw_prng_next(&prng),
        .centre_q16 = variance < one_q32 ? (int64_t)((one_q32 - variance) >> 17) : 0,
        .deviation_q16 = gw_sqrt(variance + spread * spread),
    };
    if (has_threshold(rule))
        importance->threshold = drawn_threshold(importance, drawn, gw_prng_next(&prng));
}

uint64_t gw_importance_weigh(const struct gw_importance *importance, const uint32_t *index,
                             uint32_t count, const uint32_t *later)
{
    int64_t keys[GW_IMPORTANCE_BATCH];
    uint64_t important = 0;
    GW_ASSERT(count <= GW_IMPORTANCE_BATCH);
    if (!has_threshold(importance->terms.rule))
        return importance->terms.rule == GW_IMPORTANCE_ALL ? gw_bitmap_mask(0, count) : 0;
    if (importance->terms.kernels)
        find_keys(importance, index, count, later, keys);
    else
        for (uint32_t i = 0; i < count; i++)
            keys[i] = drawn_key(importance, index[i]);
    for (uint32_t i = 0; i < count; i++)
        important |= (uint64_t)is_above(importance->threshold, keys[i]) << i;
    return important;
}

/* Of `count` bits; all are 0 at first. */
static void mask_clear(uint64_t *mask, uint64_t count)
{
    memset(mask, 0, sizeof(*mask) * (size_t)gw_bit_words(count));
}

uint32_t gw_importance_fill(const struct gw_importance *importance, uint64_t *mask)
{
    uint32_t index[GW_IMPORTANCE_BATCH], important = 0;
    mask_clear(mask, importance->fragments);
    for (uint64_t first = 0; first < importance->fragments; first += GW_IMPORTANCE_BATCH) {
        uint32_t count = batch_of(importance->fragments - first);
        for (uint32_t i = 0; i < count; i++)
            index[i] = (uint32_t)first + i;
        uint64_t bits = gw_importance_weigh(importance, index, count, NULL);
        for (uint32_t i = 0; i < count; i++) {
            gw_bit_or(mask, first + i, bits >> i & 1);
            important += bits >> i & 1;
        }
    }
    return important;
}

uint32_t gw_importance_fill_given(const gw_real *worth, uint32_t count, uint64_t seed,
                                  uint64_t *mask)
{
    struct sample sample;
    uint32_t important = 0;
    GW_ASSERT(count >= 1);
    sample_init(&sample, count, GW_IMPORTANCE_SAMPLE_MIN, seed);
    for (uint32_t i = 0; i < sample.count; i++)
        sample.keys[i] = gw_importance_key(worth[sample_position(&sample, i)]);
    int64_t threshold = count > 1 ? sample_median(&sample) : INT64_MIN;
    mask_clear(mask, count);
    for (uint32_t i = 0; i < count; i++) {
        bool is = is_above(threshold, gw_importance_key(worth[i]));
        gw_bit_or(mask, i, is);
        important += is;
    }
    return important;
}
