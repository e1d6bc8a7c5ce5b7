/* The stage of slots; see slots.h. */
#include "core/switch/slots.h"

#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"

/* One version of a slot: a fragment's sum, which stays when it is complete. */
struct version {
    uint32_t seq; /* of the fragment */
    uint32_t key;
    uint32_t bitmap; /* workers in the sum; 0: never used */
    uint32_t buf;    /* the sum, or GW_BUF_NONE in a simulation without payload */
    uint16_t values;
};

struct slot {
    struct version versions[2];
};

/* A job, or with world 0 room for one. */
struct job {
    struct gw_slots_job spec; /* its members are those below */
    uint32_t members[GW_SLOTS_WORLD_MAX];
};

struct gw_slots {
    struct gw_slots_cfg cfg;
    struct slot *pool;
    struct job *jobs; /* jobs_max */
    struct gw_map job_map;
    struct gw_slots_stats stats;
};

/* The same measures and builds. */
static void carve(struct gw_slots *slots, const struct gw_slots_cfg *cfg, struct gw_arena *arena)
{
    slots->pool = gw_arena_take(arena, cfg->slots * sizeof(*slots->pool));
    slots->jobs = gw_arena_take(arena, cfg->jobs_max * sizeof(*slots->jobs));
    void *map = gw_arena_take(arena, gw_map_size(cfg->jobs_max));
    if (arena->base)
        gw_map_init(&slots->job_map, map, cfg->jobs_max);
}

size_t gw_slots_size(const struct gw_slots_cfg *cfg)
{
    struct gw_slots slots;
    struct gw_arena arena = {.used = 0};
    gw_arena_take(&arena, sizeof(slots));
    carve(&slots, cfg, &arena);
    return arena.used;
}

struct gw_slots *gw_slots_init(void *memory, const struct gw_slots_cfg *cfg)
{
    GW_ASSERT((uintptr_t)memory % GW_CACHE_LINE == 0);
    struct gw_arena arena = {.base = memory};
    memset(memory, 0, gw_slots_size(cfg));
    struct gw_slots *slots = gw_arena_take(&arena, sizeof(*slots));
    slots->cfg = *cfg;
    carve(slots, cfg, &arena);
    return slots;
}

static struct job *job_find(const struct gw_slots *slots, uint32_t job)
{
    uint32_t index = gw_map_get(&slots->job_map, job);
    return index == GW_MAP_NONE ? NULL : &slots->jobs[index];
}

static void version_empty(struct gw_slots *slots, struct version *version)
{
    if (version->bitmap && version->buf != GW_BUF_NONE)
        gw_buf_release(slots->cfg.pool->bufs, version->buf);
    version->bitmap = 0;
}

static void job_empty(struct gw_slots *slots, struct job *job)
{
    for (uint32_t i = 0; i < job->spec.count; i++)
        for (uint32_t v = 0; v < 2; v++)
            version_empty(slots, &slots->pool[job->spec.first + i].versions[v]);
    *job = (struct job){0};
}

/* Whether the slots exist and no other job has them. */
static bool is_range_free(const struct gw_slots *slots, const struct gw_slots_job *job)
{
    uint32_t pool = slots->cfg.slots;
    if (job->count > pool || job->first > pool - job->count)
        return false;
    for (uint32_t i = 0; i < slots->cfg.jobs_max; i++) {
        const struct gw_slots_job *other = &slots->jobs[i].spec;
        if (other->world && other->job != job->job && job->first < other->first + other->count &&
            other->first < job->first + job->count)
            return false;
    }
    return true;
}

int gw_slots_install(struct gw_slots *slots, const struct gw_slots_job *spec)
{
    GW_ASSERT(spec->world >= 1 && spec->world <= GW_SLOTS_WORLD_MAX);
    GW_ASSERT(spec->count >= 1 && spec->count <= GW_SLOTS_MAX);
    if (!is_range_free(slots, spec))
        return GW_ERR_INVALID;
    struct job *job = job_find(slots, spec->job);
    if (job) {
        job_empty(slots, job);
    } else {
        uint32_t free = 0;
        while (free < slots->cfg.jobs_max && slots->jobs[free].spec.world)
            free++;
        if (free == slots->cfg.jobs_max || gw_map_put(&slots->job_map, spec->job, free) != GW_OK)
            return GW_ERR_NO_ROOM;
        job = &slots->jobs[free];
    }
    job->spec = *spec;
    memcpy(job->members, spec->members, spec->world * sizeof(*job->members));
    job->spec.members = job->members;
    return GW_OK;
}

void gw_slots_remove(struct gw_slots *slots, uint32_t job)
{
    struct job *known = job_find(slots, job);
    if (!known)
        return;
    job_empty(slots, known);
    gw_map_remove(&slots->job_map, job);
}

static uint32_t bits_of(const struct gw_slots_job *job)
{
    return UINT32_MAX >> (GW_SLOTS_WORLD_MAX - job->world);
}

static bool is_well_formed(const struct gw_slots_job *job, const struct gw_pkt *pkt)
{
    uint32_t bit = pkt->agg.bitmap;
    bool is_one_worker = bit && (bit & (bit - 1)) == 0 && (bit & ~bits_of(job)) == 0;
    return pkt->agg_flags == GW_AGG_SLOT && pkt->index < job->count && pkt->agg.level < 2 &&
           is_one_worker;
}

/* A new use of the version: the packet's buffer becomes the sum. */
static void version_begin(struct gw_slots *slots, struct version *version, struct gw_pkt *pkt)
{
    version_empty(slots, version);
    *version = (struct version){
        .seq = pkt->seq,
        .key = pkt->key,
        .bitmap = pkt->agg.bitmap,
        .buf = pkt->buf,
        .values = pkt->agg.values,
    };
    pkt->buf = GW_BUF_NONE;
}

/* Adds a contribution that is not in the sum yet; false when memory does not allow it. */
static bool version_add(struct gw_slots *slots, struct version *version, const struct gw_pkt *pkt)
{
    if (pkt->buf != GW_BUF_NONE) {
        struct gw_buf_pool *bufs = slots->cfg.pool->bufs;
        if (!gw_buf_own(bufs, &version->buf, 4 * (size_t)version->values))
            return false;
        slots->cfg.kernels->add(gw_buf_bytes(bufs, version->buf), gw_buf_bytes(bufs, pkt->buf),
                                version->values);
    }
    version->bitmap |= pkt->agg.bitmap;
    return true;
}

/* Turns a gradient into the version's result, from the address that the gradient went to. */
static void become_result(struct gw_slots *slots, const struct version *version, struct gw_pkt *pkt)
{
    gw_pkt_drop_payload(slots->cfg.pool, pkt);
    pkt->buf = version->buf;
    if (pkt->buf != GW_BUF_NONE)
        gw_buf_share(slots->cfg.pool->bufs, pkt->buf);
    pkt->q.kind = GW_PKT_PARAM;
    pkt->q.flags &= (uint8_t)~GW_PKT_HEAD; /* of the burst that ends here */
    pkt->src = pkt->dst;
    pkt->agg.bitmap = version->bitmap;
}

/* A well-formed contribution; returns as gw_slots_gradient() does. */
static uint32_t contribute(struct gw_slots *slots, const struct gw_slots_job *job,
                           struct gw_pkt *pkt, const uint32_t **dsts)
{
    struct version *version = &slots->pool[job->first + pkt->index].versions[pkt->agg.level];
    uint32_t bit = pkt->agg.bitmap;
    if (version->bitmap == 0 || gw_seq_before(version->seq, pkt->seq)) {
        version_begin(slots, version, pkt);
    } else if (version->seq != pkt->seq) {
        slots->stats.stale++;
        return 0;
    } else if (version->key != pkt->key || version->values != pkt->agg.values) {
        slots->stats.malformed++;
        return 0;
    } else if (version->bitmap == bits_of(job)) {
        slots->stats.repeated++;
        become_result(slots, version, pkt);
        *dsts = &job->members[__builtin_ctz(bit)];
        return 1;
    } else if (version->bitmap & bit) {
        slots->stats.duplicates++;
        return 0;
    } else if (!version_add(slots, version, pkt)) {
        slots->stats.no_buffer++;
        return 0;
    }
    if (version->bitmap != bits_of(job)) {
        slots->stats.held++;
        return 0;
    }
    slots->stats.completed++;
    become_result(slots, version, pkt);
    *dsts = job->members;
    return job->world;
}

uint32_t gw_slots_gradient(struct gw_slots *slots, struct gw_pkt *pkt, const uint32_t **dsts)
{
    const struct job *job = job_find(slots, pkt->flow);
    uint32_t count = 0;
    slots->stats.gradients++;
    if (!job || job->spec.epoch != pkt->epoch)
        slots->stats.foreign++;
    else if (!is_well_formed(&job->spec, pkt))
        slots->stats.malformed++;
    else
        count = contribute(slots, &job->spec, pkt, dsts);
    if (count == 0)
        gw_pkt_release(slots->cfg.pool, pkt);
    return count;
}

const struct gw_slots_stats *gw_slots_stats(const struct gw_slots *slots)
{
    return &slots->stats;
}
