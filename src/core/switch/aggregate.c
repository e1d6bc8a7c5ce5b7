/* The aggregation stage; see aggregate.h. */
#include "core/switch/aggregate.h"

#include <string.h>

#include "base/align.h"
#include "base/error.h"
#include "base/map.h"

/* One aggregator: half a cache line, so that a fragment costs one miss besides its values. */
struct slot {
    gw_time touched;
    uint32_t job;
    uint32_t seq;
    uint32_t key; /* of the tensor: only fragments of one are added */
    uint32_t bitmap;
    uint32_t buf; /* the sum, or GW_BUF_NONE in a simulation without payload */
    uint16_t epoch;
    uint16_t values;
    uint8_t scale; /* least of the contributors' */
    bool taken;
    bool ecn;
};

struct gw_aggregate {
    struct gw_aggregate_cfg cfg;
    struct slot *slots;
    struct gw_aggregate_job *jobs; /* jobs_max; member_count is 0 in free ones */
    uint32_t *members;             /* members_max; each job's are in one piece, in order of jobs */
    struct gw_map job_map;
    struct gw_aggregate_job *last_job; /* that was looked up, so that a train costs one look */
    uint32_t member_count;
    uint32_t taken;
    uint32_t sweep_at;
    struct gw_aggregate_stats stats;
};

size_t gw_aggregate_size(const struct gw_aggregate_cfg *cfg)
{
    return gw_aligned(sizeof(struct gw_aggregate)) +
           gw_aligned(cfg->aggregators * sizeof(struct slot)) +
           gw_aligned(cfg->jobs_max * sizeof(struct gw_aggregate_job)) +
           gw_aligned(cfg->members_max * sizeof(uint32_t)) + gw_aligned(gw_map_size(cfg->jobs_max));
}

struct gw_aggregate *gw_aggregate_init(void *memory, const struct gw_aggregate_cfg *cfg)
{
    GW_ASSERT((uintptr_t)memory % GW_CACHE_LINE == 0);
    GW_ASSERT(cfg->aggregators >= 1 && cfg->aggregators <= GW_AGGREGATORS_MAX);
    unsigned char *at = memory;
    memset(memory, 0, gw_aggregate_size(cfg));
    struct gw_aggregate *aggregate = memory;
    aggregate->cfg = *cfg;
    at += gw_aligned(sizeof(*aggregate));
    aggregate->slots = (void *)at;
    at += gw_aligned(cfg->aggregators * sizeof(struct slot));
    aggregate->jobs = (void *)at;
    at += gw_aligned(cfg->jobs_max * sizeof(struct gw_aggregate_job));
    aggregate->members = (void *)at;
    at += gw_aligned(cfg->members_max * sizeof(uint32_t));
    gw_map_init(&aggregate->job_map, at, cfg->jobs_max);
    return aggregate;
}

static void slot_free(struct gw_aggregate *aggregate, struct slot *slot)
{
    if (slot->buf != GW_BUF_NONE)
        gw_buf_release(aggregate->cfg.pool->bufs, slot->buf);
    slot->taken = false;
    aggregate->taken--;
}

static void slots_free_of(struct gw_aggregate *aggregate, uint32_t job)
{
    for (uint32_t i = 0; i < aggregate->cfg.aggregators; i++)
        if (aggregate->slots[i].taken && aggregate->slots[i].job == job)
            slot_free(aggregate, &aggregate->slots[i]);
}

/* Takes a job's members out of the array and closes the gap. */
static void members_remove(struct gw_aggregate *aggregate, struct gw_aggregate_job *job)
{
    uint32_t first = (uint32_t)(job->members - aggregate->members);
    uint32_t behind = first + job->member_count;
    memmove(aggregate->members + first, aggregate->members + behind,
            (aggregate->member_count - behind) * sizeof(*aggregate->members));
    for (uint32_t i = 0; i < aggregate->cfg.jobs_max; i++)
        if (aggregate->jobs[i].members > job->members)
            aggregate->jobs[i].members -= job->member_count;
    aggregate->member_count -= job->member_count;
    *job = (struct gw_aggregate_job){0};
    aggregate->last_job = NULL;
}

static struct gw_aggregate_job *job_find(struct gw_aggregate *aggregate, uint32_t job)
{
    if (aggregate->last_job && aggregate->last_job->job == job)
        return aggregate->last_job;
    uint32_t index = gw_map_get(&aggregate->job_map, job);
    if (index == GW_MAP_NONE)
        return NULL;
    return aggregate->last_job = &aggregate->jobs[index];
}

int gw_aggregate_install(struct gw_aggregate *aggregate, const struct gw_aggregate_job *job)
{
    GW_ASSERT(job->fan_in >= 1 && job->fan_in <= GW_FAN_IN_MAX && job->level < GW_LEVELS_MAX);
    GW_ASSERT(job->member_count >= 1);
    struct gw_aggregate_job *known = job_find(aggregate, job->job);
    uint32_t reclaimed = known ? known->member_count : 0;
    if (aggregate->member_count - reclaimed + job->member_count > aggregate->cfg.members_max)
        return GW_ERR_NO_ROOM;
    if (known) {
        slots_free_of(aggregate, job->job);
        members_remove(aggregate, known);
    } else {
        uint32_t free = 0;
        while (free < aggregate->cfg.jobs_max && aggregate->jobs[free].member_count)
            free++;
        if (free == aggregate->cfg.jobs_max ||
            gw_map_put(&aggregate->job_map, job->job, free) != GW_OK)
            return GW_ERR_NO_ROOM;
        known = &aggregate->jobs[free];
    }
    uint32_t *members = aggregate->members + aggregate->member_count;
    memcpy(members, job->members, job->member_count * sizeof(*members));
    aggregate->member_count += job->member_count;
    *known = *job;
    known->members = members;
    return GW_OK;
}

void gw_aggregate_remove(struct gw_aggregate *aggregate, uint32_t job)
{
    struct gw_aggregate_job *known = job_find(aggregate, job);
    if (!known)
        return;
    slots_free_of(aggregate, job);
    members_remove(aggregate, known);
    gw_map_remove(&aggregate->job_map, job);
}

const struct gw_aggregate_job *gw_aggregate_job(struct gw_aggregate *aggregate, uint32_t job)
{
    return job_find(aggregate, job);
}

static bool slot_holds(const struct slot *slot, const struct gw_pkt *pkt)
{
    return slot->taken && slot->seq == pkt->seq && slot->job == pkt->flow &&
           slot->epoch == pkt->epoch;
}

/* The same, for a packet whose values can be added to the slot's. */
static bool slot_matches(const struct slot *slot, const struct gw_pkt *pkt)
{
    return slot_holds(slot, pkt) && slot->key == pkt->key && slot->values == pkt->agg.values;
}

static bool is_leaked(const struct gw_aggregate *aggregate, const struct slot *slot, gw_time now)
{
    return slot->taken && now - slot->touched > aggregate->cfg.leak;
}

/* The first contribution: the packet's buffer becomes the sum. */
static void slot_take(struct gw_aggregate *aggregate, struct slot *slot, struct gw_pkt *pkt,
                      uint32_t bit, gw_time now)
{
    *slot = (struct slot){
        .touched = now,
        .job = pkt->flow,
        .seq = pkt->seq,
        .key = pkt->key,
        .bitmap = bit,
        .buf = pkt->buf,
        .epoch = pkt->epoch,
        .values = pkt->agg.values,
        .scale = pkt->scale,
        .taken = true,
        .ecn = pkt->agg_flags & GW_AGG_ECN,
    };
    pkt->buf = GW_BUF_NONE;
    aggregate->taken++;
}

/* Sees to it that nobody else holds the slot's sum; false when there is no buffer to copy to. */
static bool slot_own_sum(struct gw_aggregate *aggregate, struct slot *slot)
{
    struct gw_buf_pool *bufs = aggregate->cfg.pool->bufs;
    uint32_t own = gw_buf_own(bufs, slot->buf, 4 * (size_t)slot->values);
    if (own == GW_BUF_NONE)
        return false;
    slot->buf = own;
    return true;
}

/* Adds a contribution that is not in the sum yet; false when memory does not allow it. */
static bool slot_add(struct gw_aggregate *aggregate, struct slot *slot, const struct gw_pkt *pkt,
                     uint32_t bit, gw_time now)
{
    if (pkt->buf != GW_BUF_NONE) {
        struct gw_buf_pool *bufs = aggregate->cfg.pool->bufs;
        if (!slot_own_sum(aggregate, slot))
            return false;
        aggregate->cfg.kernels->add(gw_buf_bytes(bufs, slot->buf), gw_buf_bytes(bufs, pkt->buf),
                                    slot->values);
    }
    slot->bitmap |= bit;
    slot->touched = now;
    slot->ecn |= pkt->agg_flags & GW_AGG_ECN;
    if (pkt->scale < slot->scale)
        slot->scale = pkt->scale;
    return true;
}

/* All positions below a switch. */
static uint32_t positions_of(const struct gw_aggregate_job *job)
{
    return UINT32_MAX >> (GW_FAN_IN_MAX - job->fan_in);
}

static bool is_complete(const struct gw_aggregate_job *job, const struct slot *slot)
{
    return slot->bitmap == positions_of(job);
}

/* A position of a switch of `level` below the next one. */
static uint32_t above_bit(const uint8_t above[GW_LEVELS_MAX - 1], uint32_t level)
{
    return level < GW_LEVELS_MAX - 1 ? UINT32_C(1) << above[level] % GW_FAN_IN_MAX : 1;
}

/*
 * Lets `pkt` carry the slot's sum and say whose it is: when it is complete, one position below the
 * next switch. The slot keeps the sum, too.
 */
static void slot_export(struct gw_aggregate *aggregate, const struct gw_aggregate_job *job,
                        const struct slot *slot, struct gw_pkt *pkt)
{
    gw_pkt_drop_payload(aggregate->cfg.pool, pkt);
    pkt->buf = slot->buf;
    if (slot->buf != GW_BUF_NONE)
        gw_buf_share(aggregate->cfg.pool->bufs, slot->buf);
    pkt->agg_flags |= slot->ecn ? GW_AGG_ECN : 0;
    pkt->scale = slot->scale;
    pkt->agg.level = job->level;
    pkt->agg.bitmap = slot->bitmap;
    if (is_complete(job, slot)) {
        pkt->agg.bitmap = above_bit(job->above, job->level);
        pkt->agg.level++;
    }
}

/*
 * A resent packet takes the sum along. One of a lower level can only if the sum has its position
 * already, since what it carries is not all of that position; else the sum waits for another.
 */
static bool resent(struct gw_aggregate *aggregate, const struct gw_aggregate_job *job,
                   struct slot *slot, struct gw_pkt *pkt, gw_time now)
{
    if (!slot_matches(slot, pkt))
        return true;
    bool is_lower = pkt->agg.level < job->level;
    uint32_t bits = is_lower ? above_bit(pkt->agg.above, job->level - 1) : pkt->agg.bitmap;
    if ((slot->bitmap & bits) != bits &&
        (is_lower || slot->bitmap & bits || !slot_add(aggregate, slot, pkt, bits, now))) {
        aggregate->stats.passed++;
        return true;
    }
    aggregate->stats.partials++;
    slot_export(aggregate, job, slot, pkt);
    slot_free(aggregate, slot);
    return true;
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

/* The last contribution came: it leaves with the sum. */
static void complete(struct gw_aggregate *aggregate, const struct gw_aggregate_job *job,
                     const struct slot *slot, struct gw_pkt *pkt)
{
    aggregate->stats.completed++;
    slot_export(aggregate, job, slot, pkt);
}

bool gw_aggregate_gradient(struct gw_aggregate *aggregate, struct gw_pkt *pkt, gw_time now)
{
    const struct gw_aggregate_job *job = job_find(aggregate, pkt->flow);
    if (pkt->q.ecn == GW_ECN_CE)
        pkt->agg_flags |= GW_AGG_ECN;
    if (pkt->agg_flags & (GW_AGG_RAW | GW_AGG_FINAL))
        return true;
    if (!job || job->epoch != pkt->epoch) {
        aggregate->stats.foreign++;
        return true;
    }
    aggregate->stats.gradients++;
    struct slot *slot = &aggregate->slots[pkt->index % aggregate->cfg.aggregators];
    if (!is_from_below(job, pkt)) {
        aggregate->stats.misplaced++;
        return true;
    }
    if (pkt->agg_flags & GW_AGG_RESEND)
        return resent(aggregate, job, slot, pkt, now);
    if (pkt->agg.level != job->level)
        return true; /* another switch of the tree on its way */
    uint32_t bit = pkt->agg.bitmap;
    if (!slot->taken) {
        slot_take(aggregate, slot, pkt, bit, now);
        if (is_complete(job, slot)) {
            complete(aggregate, job, slot, pkt);
            return true;
        }
    } else if (!slot_matches(slot, pkt)) {
        aggregate->stats.collisions++;
        pkt->agg_flags |= GW_AGG_COLLISION | GW_AGG_RESEND;
        return true;
    } else if (slot->bitmap & bit) {
        aggregate->stats.duplicates++;
        slot->ecn |= pkt->agg_flags & GW_AGG_ECN;
    } else if (!slot_add(aggregate, slot, pkt, bit, now)) {
        aggregate->stats.no_buffer++;
        pkt->agg_flags |= GW_AGG_RESEND;
        return true;
    } else if (is_complete(job, slot)) {
        complete(aggregate, job, slot, pkt);
        return true;
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
    struct slot *slot = &aggregate->slots[pkt->index % aggregate->cfg.aggregators];
    if (slot_holds(slot, pkt)) {
        aggregate->stats.freed++;
        slot_free(aggregate, slot);
    } else if (is_leaked(aggregate, slot, now)) {
        aggregate->stats.leaked++;
        slot_free(aggregate, slot);
    }
}

const struct gw_aggregate_cfg *gw_aggregate_cfg(const struct gw_aggregate *aggregate)
{
    return &aggregate->cfg;
}

void gw_aggregate_sweep(struct gw_aggregate *aggregate, uint32_t count, gw_time now)
{
    if (count > aggregate->cfg.aggregators)
        count = aggregate->cfg.aggregators;
    for (uint32_t i = 0; i < count && aggregate->taken; i++) {
        struct slot *slot = &aggregate->slots[aggregate->sweep_at];
        aggregate->sweep_at = (aggregate->sweep_at + 1) % aggregate->cfg.aggregators;
        if (is_leaked(aggregate, slot, now)) {
            aggregate->stats.leaked++;
            slot_free(aggregate, slot);
        }
    }
}

uint32_t gw_aggregate_taken(const struct gw_aggregate *aggregate)
{
    return aggregate->taken;
}

const struct gw_aggregate_stats *gw_aggregate_stats(const struct gw_aggregate *aggregate)
{
    return &aggregate->stats;
}
