/* The aggregation stage; see aggregate.h. */
#include <string.h>

#include "base/arena.h"
#include "core/switch/aggregate_impl.h"

enum {
    GATHERED = GW_AGG_ECN | GW_AGG_EVEN | GW_AGG_ODD, /* flags that a sum has if any part has */
};

_Static_assert(((GATHERED | GW_AGG_RESEND) & GW_PKT_HEAD) == 0, "`signs` holds both");

/* The same measures and builds. */
static void carve(struct gw_aggregate *aggregate, const struct gw_aggregate_cfg *cfg,
                  struct gw_arena *arena)
{
    aggregate->aggregators =
        gw_arena_take(arena, cfg->aggregators * sizeof(*aggregate->aggregators));
    aggregate->jobs = gw_arena_take(arena, cfg->jobs_max * sizeof(*aggregate->jobs));
    aggregate->members = gw_arena_take(arena, cfg->members_max * sizeof(*aggregate->members));
    aggregate->workers = gw_arena_take(arena, cfg->members_max * sizeof(*aggregate->workers));
    gw_aggregate_shares_carve(&aggregate->shares, cfg->jobs_max, &aggregate->cfg.tenants, arena);
    void *map = gw_arena_take(arena, gw_map_size(cfg->jobs_max));
    if (arena->base)
        gw_map_init(&aggregate->job_map, map, cfg->jobs_max);
}

size_t gw_aggregate_size(const struct gw_aggregate_cfg *cfg)
{
    struct gw_aggregate aggregate;
    struct gw_arena arena = {.used = 0};
    gw_arena_take(&arena, sizeof(aggregate));
    carve(&aggregate, cfg, &arena);
    return arena.used;
}

struct gw_aggregate *gw_aggregate_init(void *memory, const struct gw_aggregate_cfg *cfg)
{
    GW_ASSERT((uintptr_t)memory % GW_CACHE_LINE == 0);
    GW_ASSERT(cfg->aggregators >= 1 && cfg->aggregators <= GW_AGGREGATORS_MAX);
    struct gw_arena arena = {.base = memory};
    memset(memory, 0, gw_aggregate_size(cfg));
    struct gw_aggregate *aggregate = gw_arena_take(&arena, sizeof(*aggregate));
    aggregate->cfg = *cfg;
    aggregate->shares.aggregators = cfg->aggregators;
    aggregate->shares.fixed = cfg->share;
    carve(aggregate, cfg, &arena);
    return aggregate;
}

/* Whether the aggregator is or was for a fragment of the packet's job. */
static bool aggregator_is_of(const struct gw_aggregator *aggregator, const struct gw_pkt *pkt)
{
    return aggregator->job == pkt->flow && aggregator->epoch == pkt->epoch;
}

/* Whether the fragment of the packet is the one that the aggregator is or was for. */
static bool aggregator_means(const struct gw_aggregator *aggregator, const struct gw_pkt *pkt)
{
    return aggregator->seq == pkt->seq && aggregator_is_of(aggregator, pkt);
}

static bool aggregator_holds(const struct gw_aggregator *aggregator, const struct gw_pkt *pkt)
{
    return aggregator->state == GW_AGGREGATOR_TAKEN && aggregator_means(aggregator, pkt);
}

/* The same, for a packet whose values can be added to the aggregator's. */
static bool aggregator_matches(const struct gw_aggregator *aggregator, const struct gw_pkt *pkt)
{
    return aggregator_holds(aggregator, pkt) && aggregator->key == pkt->key &&
           aggregator->values == pkt->agg.values;
}

/* Frees it if nobody has come for it for long. */
static void free_leaked(struct gw_aggregate *aggregate, struct gw_aggregator *aggregator,
                        gw_time now)
{
    if (aggregator->state == GW_AGGREGATOR_FREE || now - aggregator->touched <= aggregate->cfg.leak)
        return;
    aggregate->stats.leaked++;
    gw_aggregator_free(aggregate, aggregator);
}

/* What a sum keeps of a contribution's flags. */
static uint8_t signs_of(const struct gw_pkt *pkt)
{
    return (uint8_t)((pkt->agg_flags & GATHERED) | (pkt->q.flags & GW_PKT_HEAD));
}

/* Frees an aggregator that a job above its share has and `job` has a right to. */
static bool yields(struct gw_aggregate *aggregate, struct gw_aggregator *aggregator,
                   const struct gw_aggregate_job *job)
{
    uint32_t to = (uint32_t)(job - aggregate->jobs);
    if (aggregator->state != GW_AGGREGATOR_TAKEN ||
        !gw_aggregate_shares_take_over(&aggregate->shares, aggregator->owner - 1, to))
        return false;
    aggregate->stats.yielded++;
    gw_aggregator_free(aggregate, aggregator);
    return true;
}

/* The first contribution, from a position of `job`: the packet's buffer becomes the sum. */
static void aggregator_take(struct gw_aggregate *aggregate, struct gw_aggregator *aggregator,
                            const struct gw_aggregate_job *job, struct gw_pkt *pkt, gw_time now)
{
    uint32_t owner = (uint32_t)(job - aggregate->jobs) + 1;
    gw_aggregate_shares_pass(&aggregate->shares, aggregator->owner, owner);
    *aggregator = (struct gw_aggregator){
        .touched = now,
        .job = pkt->flow,
        .owner = owner,
        .seq = pkt->seq,
        .key = pkt->key,
        .bitmap = pkt->agg.bitmap,
        .buf = pkt->buf,
        .epoch = pkt->epoch,
        .values = pkt->agg.values,
        .scale = pkt->scale,
        .bound = pkt->agg.bound,
        .state = GW_AGGREGATOR_TAKEN,
        .signs = signs_of(pkt),
    };
    pkt->buf = GW_BUF_NONE;
    aggregate->taken++;
}

/* Adds a contribution that is not in the sum yet; false when memory does not allow it. */
static bool aggregator_add(struct gw_aggregate *aggregate, struct gw_aggregator *aggregator,
                           const struct gw_pkt *pkt, uint32_t bit, gw_time now)
{
    if (pkt->buf != GW_BUF_NONE) {
        struct gw_buf_pool *bufs = aggregate->cfg.pool->bufs;
        if (!gw_buf_own(bufs, &aggregator->buf, 4 * (size_t)aggregator->values))
            return false;
        aggregator->is_unmarked = !aggregate->cfg.kernels->add(
            gw_buf_bytes(bufs, aggregator->buf), gw_buf_bytes(bufs, pkt->buf), aggregator->values);
    }
    aggregator->bitmap |= bit;
    aggregator->touched = now;
    aggregator->signs |= signs_of(pkt);
    if (pkt->scale < aggregator->scale)
        aggregator->scale = pkt->scale;
    if (pkt->agg.bound < aggregator->bound)
        aggregator->bound = pkt->agg.bound;
    return true;
}

/* All positions below a switch. */
static uint32_t positions_of(const struct gw_aggregate_job *job)
{
    return UINT32_MAX >> (GW_FAN_IN_MAX - job->fan_in);
}

static bool is_complete(const struct gw_aggregate_job *job, const struct gw_aggregator *aggregator)
{
    return aggregator->bitmap == positions_of(job);
}

/* A position of a switch of `level` below the next one. */
static uint32_t above_bit(const uint8_t above[GW_LEVELS_MAX - 1], uint32_t level)
{
    return level < GW_LEVELS_MAX - 1 ? UINT32_C(1) << above[level] % GW_FAN_IN_MAX : 1;
}

/*
 * Lets `pkt` carry the aggregator's sum and say whose it is: when it is complete, one position
 * below the next switch. The aggregator keeps the sum, too.
 */
static void aggregator_export(struct gw_aggregate *aggregate, const struct gw_aggregate_job *job,
                              const struct gw_aggregator *aggregator, struct gw_pkt *pkt)
{
    gw_pkt_drop_payload(aggregate->cfg.pool, pkt);
    pkt->buf = aggregator->buf;
    if (aggregator->buf != GW_BUF_NONE)
        gw_buf_share(aggregate->cfg.pool->bufs, aggregator->buf);
    pkt->agg_flags |= aggregator->signs & GATHERED;
    pkt->q.flags |= aggregator->signs & GW_PKT_HEAD;
    pkt->scale = aggregator->scale;
    pkt->agg.bound = aggregator->bound;
    pkt->agg.is_unmarked = aggregator->is_unmarked;
    pkt->agg.level = job->level;
    pkt->agg.bitmap = aggregator->bitmap;
    if (is_complete(job, aggregator)) {
        pkt->agg.bitmap = above_bit(job->above, job->level);
        pkt->agg.level++;
    }
}

/* Above the first level the paper has one bit for all that comes from below a switch, so that a
 * resent packet, which may be a part of that, cannot be merged. */
static bool discards(struct gw_aggregate *aggregate, const struct gw_aggregate_job *job,
                     struct gw_aggregator *aggregator)
{
    if (job->partials != GW_AGG_PARTIALS_DISCARD || job->level == 0)
        return false;
    aggregate->stats.discarded++;
    gw_aggregator_free(aggregate, aggregator);
    return true;
}

/*
 * The sum leaves as a packet of its own, which goes where `pkt` goes; false: there is none for it.
 * In calls with a bound it stays: a server that has it leaves out whoever is late, though he may be
 * about to come.
 */
static bool leave_beside(struct gw_aggregate *aggregate, const struct gw_aggregate_job *job,
                         const struct gw_aggregator *aggregator, const struct gw_pkt *pkt)
{
    struct gw_pkt *sum = aggregator->bound ? NULL : gw_pkt_claim(aggregate->cfg.pool);
    if (!sum)
        return false;
    GW_ASSERT(!aggregate->beside);
    *sum = *pkt;
    sum->buf = GW_BUF_NONE;
    sum->agg_flags = 0;
    sum->q.flags &= (uint8_t)~GW_PKT_HEAD;
    aggregator_export(aggregate, job, aggregator, sum);
    aggregate->beside = sum;
    return true;
}

struct gw_pkt *gw_aggregate_take_beside(struct gw_aggregate *aggregate)
{
    struct gw_pkt *pkt = aggregate->beside;
    aggregate->beside = NULL;
    return pkt;
}

/* Its worker took for lost what is in a sum that has not left: it waits for others, and that is no
 * congestion. */
static void forgive(const struct gw_aggregate_job *job, const struct gw_aggregator *aggregator,
                    struct gw_pkt *pkt)
{
    if (gw_pkt_may_tell_loss(pkt) && !is_complete(job, aggregator))
        pkt->agg_flags &= (uint8_t)~GW_AGG_ECN;
}

/* The sum leaves with a packet that it matches. That of a lower level can carry it only if it is of
 * a position that is in the sum already, since it is not all of that; else the sum leaves beside
 * it. False: the sum stays. */
static bool leave_with(struct gw_aggregate *aggregate, const struct gw_aggregate_job *job,
                       struct gw_aggregator *aggregator, struct gw_pkt *pkt, gw_time now)
{
    bool is_lower = pkt->agg.level < job->level;
    uint32_t bits = is_lower ? above_bit(pkt->agg.above, job->level - 1) : pkt->agg.bitmap;
    bool is_in = (aggregator->bitmap & bits) == bits;
    if (is_lower && !is_in)
        return leave_beside(aggregate, job, aggregator, pkt);
    if (!is_in &&
        (aggregator->bitmap & bits || !aggregator_add(aggregate, aggregator, pkt, bits, now)))
        return false;
    if (is_in)
        forgive(job, aggregator, pkt);
    aggregator_export(aggregate, job, aggregator, pkt);
    return true;
}

/* What comes later of the packet's fragment follows it at once. */
static void let_follow(struct gw_aggregator *aggregator, const struct gw_pkt *pkt)
{
    if (aggregator->is_ahead && aggregator_is_of(aggregator, pkt) &&
        gw_seq_before(pkt->seq, aggregator->seq))
        return; /* mostly somebody lacks its result, and no sum waits for it */
    aggregator->job = pkt->flow;
    aggregator->seq = pkt->seq;
    aggregator->epoch = pkt->epoch;
    aggregator->is_ahead = true;
}

/* A resent packet takes the sum along, and the rest follows: else the last one would wait here
 * until somebody sends again. */
static void resent(struct gw_aggregate *aggregate, const struct gw_aggregate_job *job,
                   struct gw_aggregator *aggregator, struct gw_pkt *pkt, gw_time now)
{
    bool meets = aggregator_matches(aggregator, pkt) && !discards(aggregate, job, aggregator);
    bool leaves = meets && leave_with(aggregate, job, aggregator, pkt, now);
    aggregate->stats.partials += leaves;
    aggregate->stats.passed += meets && !leaves;
    if (leaves)
        gw_aggregator_free(aggregate, aggregator);
    if (job->partials == GW_AGG_PARTIALS_KEEP && (meets || aggregator->state == GW_AGGREGATOR_FREE))
        let_follow(aggregator, pkt);
}

/*
 * Whether a packet comes from below this switch, and if it is to be added here, from positions that
 * exist. A packet may pass switches where others of its job are added up, with the same bitmaps.
 */
static bool is_from_below(const struct gw_aggregate_job *job, const struct gw_pkt *pkt)
{
    for (uint32_t level = job->level; level < GW_LEVELS_MAX - 1; level++)
        if (pkt->agg.above[level] != job->above[level])
            return false;
    if (pkt->agg.level != job->level)
        return pkt->agg.level < job->level;
    uint32_t bits = pkt->agg.bitmap;
    bool is_single = (bits & (bits - 1)) == 0;
    return bits && !(bits & ~positions_of(job)) && (is_single || pkt->agg_flags & GW_AGG_RESEND);
}

static struct gw_aggregator *aggregator_of(const struct gw_aggregate *aggregate,
                                           const struct gw_pkt *pkt)
{
    uint32_t count = aggregate->cfg.aggregators, index = pkt->index;
    return &aggregate->aggregators[index < count ? index : index % count]; /* seldom to divide */
}

void gw_aggregate_fetch(const struct gw_aggregate *aggregate, const struct gw_pkt *pkt)
{
    __builtin_prefetch(aggregator_of(aggregate, pkt), 1);
}

/* The last contribution came: it leaves with the sum, so this is true. */
static bool complete(struct gw_aggregate *aggregate, const struct gw_aggregate_job *job,
                     const struct gw_aggregator *aggregator, struct gw_pkt *pkt)
{
    aggregate->stats.completed++;
    aggregator_export(aggregate, job, aggregator, pkt);
    return true;
}

bool gw_aggregate_gradient(struct gw_aggregate *aggregate, struct gw_pkt *pkt, gw_time now)
{
    const struct gw_aggregate_job *job = gw_aggregate_find(aggregate, pkt->flow);
    if (pkt->q.ecn == GW_ECN_CE)
        pkt->agg_flags |= GW_AGG_ECN;
    if (pkt->agg_flags & (GW_AGG_RAW | GW_AGG_FINAL))
        return true;
    if (!job || job->epoch != pkt->epoch) {
        aggregate->stats.foreign++;
        return true;
    }
    aggregate->stats.gradients++;
    struct gw_aggregator *aggregator = aggregator_of(aggregate, pkt);
    if (!is_from_below(job, pkt)) {
        aggregate->stats.misplaced++;
        return true;
    }
    if (pkt->agg_flags & GW_AGG_RESEND) {
        resent(aggregate, job, aggregator, pkt, now);
        return true;
    }
    if (pkt->agg.level != job->level)
        return true; /* another switch of the tree on its way */
    uint32_t bit = pkt->agg.bitmap;
    bool is_match = aggregator_matches(aggregator, pkt);
    if (aggregator->is_ahead && aggregator_means(aggregator, pkt)) {
        aggregate->stats.followed++;
        pkt->agg_flags |= GW_AGG_RESEND;
        resent(aggregate, job, aggregator, pkt, now);
        return true;
    }
    if (aggregator->state == GW_AGGREGATOR_FREE ||
        (!is_match && yields(aggregate, aggregator, job))) {
        aggregator_take(aggregate, aggregator, job, pkt, now);
        if (is_complete(job, aggregator))
            return complete(aggregate, job, aggregator, pkt);
    } else if (!is_match) {
        aggregate->stats.collisions++;
        pkt->agg_flags |= GW_AGG_COLLISION | GW_AGG_RESEND;
        return true;
    } else if (aggregator->bitmap & bit) {
        aggregate->stats.duplicates++;
        aggregator->signs |= signs_of(pkt);
    } else if (!aggregator_add(aggregate, aggregator, pkt, bit, now)) {
        aggregate->stats.no_buffer++;
        pkt->agg_flags |= GW_AGG_RESEND;
        return true;
    } else if (is_complete(job, aggregator)) {
        return complete(aggregate, job, aggregator, pkt);
    } else {
        aggregate->stats.held++;
    }
    gw_pkt_release(aggregate->cfg.pool, pkt);
    return false;
}

void gw_aggregate_parameter(struct gw_aggregate *aggregate, const struct gw_pkt *pkt, gw_time now)
{
    if (pkt->agg_flags & GW_AGG_REQUEST)
        return; /* not the end of the fragment */
    struct gw_aggregator *aggregator = aggregator_of(aggregate, pkt);
    if (aggregator_holds(aggregator, pkt)) {
        aggregate->stats.freed++;
        gw_aggregator_free(aggregate, aggregator);
    } else {
        free_leaked(aggregate, aggregator, now);
    }
}

const struct gw_aggregate_cfg *gw_aggregate_cfg(const struct gw_aggregate *aggregate)
{
    return &aggregate->cfg;
}

void gw_aggregate_sweep(struct gw_aggregate *aggregate, gw_time now)
{
    if (aggregate->cfg.reclaim == GW_AGG_RECLAIM_RESULTS)
        return;
    for (uint32_t i = 0; i < aggregate->cfg.aggregators && aggregate->taken; i++)
        free_leaked(aggregate, &aggregate->aggregators[i], now);
}

void gw_aggregate_fini(struct gw_aggregate *aggregate)
{
    for (uint32_t i = 0; i < aggregate->cfg.aggregators; i++)
        if (aggregate->aggregators[i].state != GW_AGGREGATOR_FREE)
            gw_aggregator_free(aggregate, &aggregate->aggregators[i]);
}

uint32_t gw_aggregate_taken(const struct gw_aggregate *aggregate)
{
    return aggregate->taken;
}

const struct gw_aggregate_shares *gw_aggregate_shares(const struct gw_aggregate *aggregate)
{
    return &aggregate->shares;
}

const struct gw_aggregate_stats *gw_aggregate_stats(const struct gw_aggregate *aggregate)
{
    return &aggregate->stats;
}
