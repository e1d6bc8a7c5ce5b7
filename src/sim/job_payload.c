/*
 * The numbers that members sum in runs that carry payload, and the check of what comes out.
 *
 * Values are whole multiples of a power of two, so few that any sum of them is exact in single
 * precision, in fixed point as well as raw. So there is one right result to the last bit, whatever
 * way a fragment took.
 */
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "sim/jobs_impl.h"

enum {
    STEPS_LOG2 = 10,        /* steps per 2^magnitude */
    DECIMAL_STEPS_LOG2 = 8, /* the same with the scale 10^8, which is 2^8 times an odd number */
    OVERFLOW_MAGNITUDE = 4, /* a value fits into 32 bits, the sum of several does not */
    PPM = 1000000,
    SUBSETS_WORKERS_MAX = 16, /* whose subsets are tried, where sums may lack workers */
};

static int steps_log2(const struct gw_job_spec *spec)
{
    return spec->rules.scale ? DECIMAL_STEPS_LOG2 : STEPS_LOG2;
}

/* Values are within this many steps of 0, a little less than 2^magnitude. */
static int32_t range_of(const struct gw_job_spec *spec)
{
    return (1 << steps_log2(spec)) * 125 / 128;
}

/* Whether a fragment is one of those whose sums saturate; all workers agree. */
static bool overflows(const struct gw_sim *sim, const struct gw_sim_member *member, uint64_t index)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    uint64_t where = (uint64_t)member->iterations << 42 | index / spec->values;
    uint64_t who = (uint64_t)member->job << 16 | UINT16_MAX;
    return gw_mix64(where ^ gw_mix64(who ^ gw_mix64(sim->options.seed))) % PPM < spec->overflow_ppm;
}

/* What a step is worth in element `index` of an iteration. */
static float step_of(const struct gw_sim *sim, const struct gw_sim_member *member, uint64_t index)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    bool is_large = spec->overflow_ppm && overflows(sim, member, index);
    int magnitude = (int)spec->magnitude;
    if (is_large && magnitude < OVERFLOW_MAGNITUDE)
        magnitude = OVERFLOW_MAGNITUDE;
    return ldexpf(1, magnitude - steps_log2(spec));
}

/* What worker `rank` of a job contributes to element `index` of an iteration. */
static int32_t steps_of(const struct gw_sim *sim, const struct gw_sim_member *member, uint32_t rank,
                        uint64_t index)
{
    uint64_t where = (uint64_t)member->iterations << 42 | index;
    uint64_t who = (uint64_t)member->job << 16 | rank;
    uint64_t bits = gw_mix64(where ^ gw_mix64(who ^ gw_mix64(sim->options.seed)));
    int32_t range = range_of(gw_sim_job_spec(sim, member->job));
    return (int32_t)(bits % (2 * (uint64_t)range + 1)) - range;
}

void gw_sim_payload_fill(const struct gw_sim *sim, struct gw_sim_member *member)
{
    for (uint64_t i = 0; i < gw_sim_job_of(sim, member)->plan->bytes / sizeof(float); i++)
        member->in[i] = (float)steps_of(sim, member, member->rank, i) * step_of(sim, member, i);
}

int gw_sim_payload_check(const struct gw_sim *sim, const struct gw_job_spec *spec, char *why)
{
    if (!sim->scenario->host.payload || !spec->worth.bound ||
        spec->worker_count <= SUBSETS_WORKERS_MAX)
        return GW_OK;
    snprintf(
        why, GW_WHY_MAX,
        "workload: bound: with host.payload at most %d workers, not %u, since whom a sum lacks "
        "is found by trying",
        SUBSETS_WORKERS_MAX, spec->worker_count);
    return GW_ERR_INVALID;
}

/* Whether steps are the sum of more than half of the workers. It is `*lacking`, by rank, that are
 * not in it, first tried and then found. */
static bool is_sum_of_most(const struct gw_sim *sim, const struct gw_sim_member *member,
                           uint64_t index, float steps, uint32_t *lacking)
{
    const uint32_t workers = gw_sim_job_spec(sim, member->job)->worker_count;
    for (uint32_t tried = 0; tried <= UINT32_C(1) << workers; tried++) {
        uint32_t lacks = tried == 0 ? *lacking : tried - 1;
        if (2 * (uint32_t)__builtin_popcount(lacks) >= workers)
            continue;
        int32_t sum = 0;
        for (uint32_t rank = 0; rank < workers; rank++)
            sum += lacks >> rank & 1 ? 0 : steps_of(sim, member, rank, index);
        if (steps == (float)sum) {
            *lacking = lacks;
            return true;
        }
    }
    return false;
}

bool gw_sim_payload_is_right(const struct gw_sim *sim, const struct gw_sim_member *member)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    uint32_t lacking = 0;
    for (uint64_t i = 0; i < gw_sim_job_of(sim, member)->plan->bytes / sizeof(float); i++) {
        int32_t sum = 0;
        for (uint32_t rank = 0; rank < spec->worker_count; rank++)
            sum += steps_of(sim, member, rank, i);
        float step = step_of(sim, member, i);
        if (member->out[i] != (float)sum * step &&
            !(spec->worth.bound && is_sum_of_most(sim, member, i, member->out[i] / step, &lacking)))
            return false;
    }
    return true;
}
