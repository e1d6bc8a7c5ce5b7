/*
 * Says which fragments of a tensor are important: those whose values are large (DLCP, section
 * 3.2.2). Important packets may not be dropped selectively.
 *
 * A fragment is as important as the mean |g| of its values; it counts as important if that is more
 * than a threshold of the tensor. The threshold is the median of a sample, which is taken before
 * the first fragment leaves, and a fragment is looked at shortly before it is copied: values far
 * beyond the caches are read once. Everything is decided by integer comparisons, means are added in
 * a fixed order, and samples come from a seed; so every machine decides the same.
 *
 * Code outside this folder keeps a struct gw_importance, and computes with nothing in it.
 */
#ifndef GW_CORE_IMPORTANCE_H
#define GW_CORE_IMPORTANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/quant/kernels.h"

enum gw_importance_rule {
    GW_IMPORTANCE_ALL,
    /* Mean |g| above the median of sampled fragments' means: about half of all fragments. */
    GW_IMPORTANCE_MEDIAN_OF_MEANS,
    /* Above the median of sampled |g|, the paper's rule. Few values are much larger than the
     * others, so means are mostly above the median, and most fragments important. */
    GW_IMPORTANCE_MEDIAN_OF_VALUES,
    GW_IMPORTANCE_NONE,
    GW_IMPORTANCE_RULES
};

/* For options and scenarios: "all", "median-of-means", "median-of-values", "none". */
extern const char *const gw_importance_rule_names[GW_IMPORTANCE_RULES];

enum {
    /* Fragments in the sample of a median, or all if there are fewer. The median of 256 lies
     * between the quantiles of 40 % and 60 % with a probability of 99.9 %; of 32, 74 %. */
    GW_IMPORTANCE_SAMPLE_MIN = 256,
    /* Values sampled: 0.1 % (DLCP, section 3.2.2), at least the above and at most this. Then the
     * median is within 45 % and 55 %, and more values would only cost time. */
    GW_IMPORTANCE_SAMPLE_MAX = 1024,
    GW_IMPORTANCE_SAMPLE_ONE_IN = 1000,
    /* Fragments weighed in one call. */
    GW_IMPORTANCE_BATCH = 64,
};

/* How to decide. */
struct gw_importance_terms {
    enum gw_importance_rule rule;
    enum gw_dtype type; /* int64 and uint8 have no magnitude: all fragments are important */
    const struct gw_kernels *kernels; /* not NULL, if the rule has a threshold */
};

/* A tensor on its way: what a sender's fragments are cut from. */
struct gw_importance_tensor {
    const void *values;     /* any alignment */
    uint64_t size;          /* bytes, at least 1 */
    uint32_t fragment_size; /* bytes; the last fragment has what is left */
};

/* A tensor without values, for simulation: |g| is log-normal, nearly. The natural logarithm of a
 * value has a standard deviation of 1 within its fragment. */
struct gw_importance_drawn {
    uint64_t seed; /* of the run and the worker */
    uint32_t tensor;
    uint32_t iteration;
    uint32_t count;           /* fragments */
    uint32_t fragment_values; /* in each fragment, at least 1 */
    uint32_t spread_q16;      /* standard deviation of the logarithm of fragments' own scales: 0 for
                                 values that are all alike; at most 4.0 */
};

/* Plain data, but for the tensor's values. */
struct gw_importance {
    struct gw_importance_terms terms; /* without kernels: fragments are drawn */
    struct gw_importance_tensor tensor;
    uint64_t fragments;
    int64_t threshold; /* a fragment is important whose key is greater */
    /* Of drawn fragments: the stream, and mean and deviation of the logarithm of their means. */
    uint64_t stream;
    int64_t centre_q16;
    int64_t deviation_q16;
};

/* Takes the sample. `seed` selects it; the same for every call that must decide alike. The values
 * stay where they are until the last fragment is weighed; they may change. */
void gw_importance_init(struct gw_importance *importance, const struct gw_importance_tensor *tensor,
                        const struct gw_importance_terms *terms, uint64_t seed);

void gw_importance_init_drawn(struct gw_importance *importance,
                              const struct gw_importance_drawn *drawn,
                              enum gw_importance_rule rule);

/*
 * Which of these are important, of at most GW_IMPORTANCE_BATCH fragments in any order: bit i is
 * that of number index[i]. `later`: NULL, or as many that may be asked for next, the second half
 * of each of which is fetched meanwhile, but for a few at the end. That takes hardly any time:
 * memory works while the processor adds. The first half is the caller's to fetch, at other times.
 */
uint64_t gw_importance_weigh(const struct gw_importance *importance, const uint32_t *index,
                             uint32_t count, const uint32_t *later);

/* Decides all fragments of a tensor in advance, fewer than 2^32. Returns how many are important.
 * `mask` has a bit per fragment; the rest of the last word is 0. */
uint32_t gw_importance_fill(const struct gw_importance *importance, uint64_t *mask);

/*
 * The same with numbers that somebody else found for the `count` fragments, the greater the more
 * important: those above the median of a sample are. NaN counts as greatest.
 */
uint32_t gw_importance_fill_given(const gw_real *worth, uint32_t count, uint64_t seed,
                                  uint64_t *mask);

/* An integer that is in the order of reals: of 0.0 it is 0, of -0.0 too, of every NaN INT64_MAX. */
int64_t gw_importance_key(gw_real x);

#endif
