/* All-reduces that may lose a part, in `gradwire bench`; see bench_parts.h. */
#include "cli/bench_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/prng.h"
#include "base/units.h"
#include "cli/bench_reduce.h"
#include "cli/cli.h"
#include "cli/option.h"

enum {
    KEY_BOUND = 800,
    KEY_BOUND_PULL,
    KEY_IMPORTANCE,
    KEY_IMPORTANT_FIRST,
    SUBSETS_MAX_WORLD = 16, /* of more ranks not all subsets are tried */
    PURSUIT_MAX_WORLD = 64, /* ranks that likeness tells apart, ... */
    PURSUIT_ELEMENTS = 256, /* ... of fragments with so many elements */
    PROBES = 4,             /* elements that tell which ranks have contributed */
    SAMPLE_FRAGMENTS = 3,   /* a sample looks at one of so many */
};

/* A half, and the least that is not 0, as the library says; in 1/2^32. */
#define BOUND_MAX  (UINT64_C(1) << 31)
#define BOUND_UNIT (UINT64_C(1) << 16)

struct tensor {
    struct gradwire_call_options options;
    struct gradwire_parts parts;
    uint64_t elements;
};

struct gw_bench_parts {
    bool is_exact;        /* nothing may be missing */
    bool repairs_at_once; /* whatever the ranks need to meet */
    uint32_t world;
    uint32_t count;
    uint64_t fragments, contributions, results; /* counted: all, and those missing */
    double most_left_out, most_results;         /* as in struct gw_bench_missing */
    struct tensor tensors[];
};

static const struct argp_option options[] = {
    {"bound", KEY_BOUND, "P", 0,
     "this part of each worker's tensor may be missing (0); what lacks a rank of more than 64, or "
     "of "
     "more than 16 and has below 256 elements, is not checked",
     0},
    {"bound-pull", KEY_BOUND_PULL, "P", 0, "and this part of the sums, at all workers alike (0)",
     0},
    {"importance", KEY_IMPORTANCE, "RULE", 0,
     "which packets switches drop last: all alike (all, default), by their mean magnitude (means), "
     "or as published (values)",
     0},
    {"important-first", KEY_IMPORTANT_FIRST, 0, 0, "and they leave first, not in a random order",
     0},
    {0},
};

static error_t parse_bound(const char *name, const char *text, double *bound)
{
    uint64_t chance;
    if (gw_parse_chance(text, &chance) != 0 || chance > BOUND_MAX ||
        (chance > 0 && chance < BOUND_UNIT))
        return gw_option_refuse(name, text, "0, or a part from 1/65536 to 0.5, as 0.1 or 10%%");
    *bound = (double)chance / (UINT64_C(1) << 32);
    return 0;
}

static error_t parse_importance(const char *text, enum gradwire_importance *importance)
{
    static const char *const names[] = {[GRADWIRE_IMPORTANCE_ALL] = "all",
                                        [GRADWIRE_IMPORTANCE_MEANS] = "means",
                                        [GRADWIRE_IMPORTANCE_VALUES] = "values"};
    for (int i = 0; i <= GRADWIRE_IMPORTANCE_VALUES; i++)
        if (strcmp(text, names[i]) == 0) {
            *importance = (enum gradwire_importance)i;
            return 0;
        }
    return gw_option_refuse("importance", text, "all, means or values");
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct gw_bench_parts_cfg *cfg = state->input;
    switch (key) {
    case KEY_BOUND:
        cfg->is_given = true;
        return parse_bound("bound", text, &cfg->bound);
    case KEY_BOUND_PULL:
        return parse_bound("bound-pull", text, &cfg->bound_pull);
    case KEY_IMPORTANCE:
        return parse_importance(text, &cfg->importance);
    case KEY_IMPORTANT_FIRST:
        cfg->important_first = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

bool gw_bench_parts_check_cfg(const struct gw_bench_parts_cfg *cfg, enum gradwire_via via,
                              bool is_send)
{
    bool is_ina = !is_send && via == GRADWIRE_VIA_INA;
    bool has_rule = cfg->importance != GRADWIRE_IMPORTANCE_ALL;
    if (is_send && cfg->bound_pull > 0)
        gw_complain("bench: --bound-pull is of sums, and --via=send has none");
    else if (is_send && (has_rule || cfg->important_first))
        gw_complain("bench: --importance and --important-first are of tensors, and --via=send has "
                    "none");
    else if (is_ina && cfg->bound_pull > 0)
        gw_complain("bench: --bound-pull is of messages; via ina all ranks get every sum: expected "
                    "--via ps or ring");
    else if (is_ina && has_rule)
        gw_complain("bench: --importance is of messages; via ina no packet is dropped before "
                    "others: expected --via ps or ring");
    else if (cfg->important_first && !has_rule)
        gw_complain("bench: --important-first needs --importance=means or values: all is alike");
    else
        return true;
    return false;
}

const struct argp gw_bench_parts_argp = {.options = options, .parser = parse_option};

/* Of a tensor at its place in the network. False: out of memory. */
static bool open_tensor(struct gw_bench_parts *parts, const gradwire *job,
                        const struct gw_bench_parts_cfg *cfg, uint32_t at)
{
    struct tensor *tensor = &parts->tensors[at];
    size_t room = gradwire_fragments(job, tensor->elements, GRADWIRE_FLOAT32, GRADWIRE_VIA_DEFAULT);
    tensor->parts = (struct gradwire_parts){
        .room = room,
        .arrived = calloc(gw_bit_words(room), sizeof(*tensor->parts.arrived)),
        .contributors = calloc(room, sizeof(*tensor->parts.contributors)),
    };
    gradwire_call_options_init(&tensor->options, sizeof(tensor->options));
    tensor->options.bound = cfg->bound;
    tensor->options.bound_pull = cfg->bound_pull;
    tensor->options.importance = cfg->importance;
    tensor->options.important_first = cfg->important_first;
    tensor->options.layer = at;
    tensor->options.layers = parts->count;
    tensor->options.parts = &tensor->parts;
    return tensor->parts.arrived && tensor->parts.contributors;
}

struct gw_bench_parts *gw_bench_parts_open(const gradwire *job,
                                           const struct gw_bench_parts_cfg *cfg,
                                           const uint64_t *tensors, uint32_t count)
{
    struct gw_bench_parts *parts = calloc(1, sizeof(*parts) + count * sizeof(*parts->tensors));
    if (!parts)
        return NULL;
    parts->world = (uint32_t)gradwire_world(job);
    parts->count = count;
    parts->repairs_at_once = cfg->is_given;
    parts->is_exact =
        cfg->bound == 0 && cfg->bound_pull == 0 && cfg->importance == GRADWIRE_IMPORTANCE_ALL;
    bool done = true;
    for (uint32_t i = 0; i < count; i++) {
        parts->tensors[i].elements = tensors[i];
        done &= parts->is_exact || open_tensor(parts, job, cfg, i);
    }
    if (done)
        return parts;
    gw_bench_parts_close(parts);
    return NULL;
}

void gw_bench_parts_close(struct gw_bench_parts *parts)
{
    for (uint32_t i = 0; parts && i < parts->count; i++) {
        free(parts->tensors[i].parts.arrived);
        free(parts->tensors[i].parts.contributors);
    }
    free(parts);
}

const struct gradwire_call_options *gw_bench_parts_options(const struct gw_bench_parts *parts,
                                                           uint32_t tensor)
{
    return parts->is_exact ? NULL : &parts->tensors[tensor].options;
}

/* The sum of the ranks in `set` of an element. */
static double sum_of(uint64_t set, uint64_t element)
{
    double sum = 0;
    for (uint32_t rank = 0; set; rank++, set >>= 1)
        if (set & 1)
            sum += gw_bench_element(rank, element);
    return sum;
}

/* The largest error of `count` sums, if the ranks in `set` have contributed. */
static double error_of(uint64_t set, const float *sums, uint64_t first, uint64_t count)
{
    double largest = 0;
    for (uint64_t i = 0; i < count; i++) {
        double error = fabs(sum_of(set, first + i) - sums[i]);
        largest = error <= largest ? largest : error;
    }
    return largest;
}

/* Which `size` ranks the sums are of, as far as the first elements tell. */
static uint32_t find_set(uint32_t world, uint32_t size, const float *sums, uint64_t first,
                         uint64_t count)
{
    uint32_t best = 0;
    double least = INFINITY;
    for (uint32_t set = 0; set < UINT32_C(1) << world; set++) {
        if ((uint32_t)__builtin_popcount(set) != size)
            continue;
        double error = error_of(set, sums, first, count < PROBES ? count : PROBES);
        if (error < least) {
            least = error;
            best = set;
        }
    }
    return best;
}

/*
 * The same of many ranks: of those that the sums may be of, the one that is most like what they
 * lack is taken out, until `size` are left. The ranks' values are random, so that of enough
 * elements the likeness tells who is lacking, and if it ever did not, the error would be large.
 */
static uint64_t pursue_set(uint32_t world, uint32_t size, const float *sums, uint64_t first,
                           uint64_t count)
{
    uint64_t set = UINT64_MAX >> (PURSUIT_MAX_WORLD - world);
    for (uint32_t left = world; left > size; left--) {
        double likeness[PURSUIT_MAX_WORLD] = {0}, values[PURSUIT_MAX_WORLD];
        uint32_t most = world;
        for (uint64_t i = 0; i < count; i++) {
            double lacks = -sums[i];
            for (uint32_t rank = 0; rank < world; rank++) {
                values[rank] = gw_bench_element(rank, first + i);
                lacks += set >> rank & 1 ? values[rank] : 0;
            }
            for (uint32_t rank = 0; rank < world; rank++)
                likeness[rank] += lacks * values[rank];
        }
        for (uint32_t rank = 0; rank < world; rank++)
            if (set >> rank & 1 && (most == world || likeness[rank] > likeness[most]))
                most = rank;
        set &= ~(UINT64_C(1) << most);
    }
    return set;
}

/* The largest error of a fragment's sums of `size` ranks; `probed` elements are looked at. */
static double fragment_error(uint32_t world, uint32_t size, const float *sums, uint64_t first,
                             uint64_t count, uint64_t probed)
{
    double largest = 0;
    if (size == world) {
        for (uint64_t i = 0; i < probed; i++) {
            double sum = 0;
            for (uint32_t rank = 0; rank < world; rank++)
                sum += gw_bench_element(rank, first + i);
            largest = fmax(largest, fabs(sum - sums[i]));
        }
        return largest;
    }
    if (world <= PURSUIT_MAX_WORLD && count >= PURSUIT_ELEMENTS)
        return error_of(pursue_set(world, size, sums, first, count), sums, first, probed);
    if (world <= SUBSETS_MAX_WORLD)
        return error_of(find_set(world, size, sums, first, count), sums, first, probed);
    return 0;
}

double gw_bench_parts_check(struct gw_bench_parts *parts, uint32_t at, const float *sums,
                            uint64_t first, bool is_sample)
{
    const struct tensor *tensor = &parts->tensors[at];
    uint32_t world = parts->world;
    double largest = 0;
    for (size_t i = 0; i < tensor->parts.count; i += is_sample ? SAMPLE_FRAGMENTS : 1) {
        uint64_t begin = i * tensor->parts.fragment, left = tensor->elements - begin;
        uint64_t count = left < tensor->parts.fragment ? left : tensor->parts.fragment;
        uint32_t size = tensor->parts.contributors[i];
        if (size > world)
            return INFINITY;
        double error =
            fragment_error(world, size, sums + begin, first + begin, count, is_sample ? 1 : count);
        largest = error <= largest ? largest : error;
    }
    return largest;
}

/* Folds memory into 63 bits. */
static int64_t digest(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t hash = size;
    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, size - i < sizeof(word) ? size - i : sizeof(word));
        hash = gw_mix64(hash ^ word);
    }
    return (int64_t)(hash >> 1);
}

int gw_bench_parts_compare(gradwire *job, const void *data, size_t size, bool *are_equal)
{
    const int64_t own = digest(data, size);
    int64_t ends[2];
    int code = gradwire_allreduce(job, &own, &ends[0], 1, GRADWIRE_INT64, GRADWIRE_MIN);
    if (!code)
        code = gradwire_allreduce(job, &own, &ends[1], 1, GRADWIRE_INT64, GRADWIRE_MAX);
    *are_equal = code || ends[0] == ends[1];
    return code;
}

int gw_bench_parts_meet(gradwire *job, const struct gw_bench_parts *parts)
{
    struct gradwire_call_options how;
    struct gradwire_parts told = {.room = 1};
    float token = 0;
    if (!parts->repairs_at_once)
        return gradwire_barrier(job);
    gradwire_call_options_init(&how, sizeof(how));
    how.via = GRADWIRE_VIA_RING;
    how.parts = &told; /* which makes it one of the calls that may have a bound */
    return gradwire_allreduce_with(job, &token, &token, 1, GRADWIRE_FLOAT32, GRADWIRE_SUM, &how,
                                   NULL);
}

void gw_bench_parts_count(struct gw_bench_parts *parts)
{
    for (uint32_t at = 0; at < parts->count && !parts->is_exact; at++) {
        const struct gradwire_parts *told = &parts->tensors[at].parts;
        uint64_t contributions = 0;
        for (size_t i = 0; i < told->count; i++)
            contributions += parts->world - told->contributors[i];
        uint64_t left_out = contributions - told->missing * parts->world; /* these have none */
        double count = (double)told->count;
        parts->fragments += told->count;
        parts->results += told->missing;
        parts->contributions += contributions;
        parts->most_results = fmax(parts->most_results, (double)told->missing / count);
        parts->most_left_out = fmax(parts->most_left_out, (double)left_out / count / parts->world);
    }
}

static bool is_kept(double most, double bound, const char *what)
{
    if (most <= bound)
        return true;
    gw_complain("bench: %g of %s is missing in one all-reduce, more than the bound of %g", most,
                what, bound);
    return false;
}

bool gw_bench_parts_kept(const struct gw_bench_missing *missing,
                         const struct gw_bench_parts_cfg *cfg)
{
    return is_kept(missing->most_left_out, cfg->bound, "the workers' tensors") &&
           is_kept(missing->most_results, cfg->bound_pull, "the sums");
}

struct gw_bench_missing gw_bench_parts_missing(const struct gw_bench_parts *parts)
{
    double fragments = parts->fragments ? (double)parts->fragments : 1;
    return (struct gw_bench_missing){
        .contributions = (double)parts->contributions / fragments / parts->world,
        .results = (double)parts->results / fragments,
        .most_left_out = parts->most_left_out,
        .most_results = parts->most_results,
    };
}
