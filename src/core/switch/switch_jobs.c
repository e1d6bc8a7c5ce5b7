/* Job control in a switch; see switch_jobs.h. */
#include "core/switch/switch_jobs.h"

#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "core/job.h"

enum {
    ASKED_EACH = 4, /* jobs that are asked for, of each that is installed: most pass other switches
                       as well, and half of their sums are made past switches */
};

/* What is known of a job. It lives from the first INSTALL to REMOVE, replacement or silence. */
struct gw_switch_job {
    gw_time heard; /* last INSTALL */
    uint32_t job;
    uint32_t server;
    uint32_t incarnation;
    uint32_t spot;  /* gw_job_spot, packed without workers */
    uint32_t known; /* bit i: member i */
    uint16_t epoch;
    uint8_t known_count;
    uint8_t member_count;
    bool is_active; /* in the aggregation stage */
    uint32_t members[GW_FAN_IN_MAX];
    uint16_t workers[GW_FAN_IN_MAX]; /* by position */
};

/* The same measures and builds. */
static void carve(struct gw_switch_jobs *jobs, const struct gw_aggregate_cfg *cfg,
                  struct gw_arena *arena)
{
    const uint32_t jobs_max = cfg->jobs_max;
    jobs->jobs = gw_arena_take(arena, jobs_max * sizeof(*jobs->jobs));
    void *map = gw_arena_take(arena, gw_map_size(jobs_max));
    void *asked = gw_arena_take(arena, gw_asked_size(ASKED_EACH * jobs_max));
    void *askers = gw_arena_take(arena, gw_askers_size(jobs_max, &cfg->tenants));
    if (!arena->base)
        return;
    gw_map_init(&jobs->map, map, jobs_max);
    gw_asked_init(&jobs->asked, asked, ASKED_EACH * jobs_max, cfg->job_idle, &cfg->tenants);
    gw_askers_init(&jobs->askers, askers, jobs_max, &cfg->tenants);
}

size_t gw_switch_jobs_size(const struct gw_aggregate *aggregate)
{
    struct gw_switch_jobs jobs;
    struct gw_arena arena = {.used = 0};
    if (aggregate)
        carve(&jobs, gw_aggregate_cfg(aggregate), &arena);
    return arena.used;
}

void gw_switch_jobs_init(struct gw_switch_jobs *jobs, void *memory, struct gw_aggregate *aggregate,
                         uint32_t address)
{
    struct gw_arena arena = {.base = memory};
    *jobs = (struct gw_switch_jobs){
        .aggregate = aggregate,
        .address = address,
        .deadline = GW_TIME_NEVER,
    };
    if (aggregate)
        carve(jobs, gw_aggregate_cfg(aggregate), &arena);
}

static bool join(const struct gw_switch_jobs *jobs, struct gw_pkt *pkt, bool is_edge, bool spreads)
{
    uint32_t count = pkt->scale & GW_JOB_PATH_COUNT;
    if (pkt->scale & ~GW_JOB_PATH_FLAGS)
        return false;
    if (jobs->aggregate && (is_edge || !(pkt->scale & GW_JOB_PATH_SPREAD))) {
        /* When there are too many the last one stays: it is the server's. */
        if (count < GW_LEVELS_MAX)
            count++;
        pkt->job.word[count - 1] = jobs->address;
    }
    pkt->scale = (uint8_t)((pkt->scale & ~GW_JOB_PATH_COUNT) | count);
    if (spreads)
        pkt->scale |= GW_JOB_PATH_SPREAD;
    return true;
}

bool gw_switch_jobs_pass(struct gw_switch_jobs *jobs, struct gw_pkt *pkt,
                         const struct gw_switch_jobs_way *way, gw_time now)
{
    if (pkt->agg_flags == GW_JOB_JOIN && !join(jobs, pkt, way->is_edge, way->spreads))
        return false;
    if (jobs->aggregate) {
        gw_asked_note(&jobs->asked, pkt->flow, pkt->dst, pkt->agg_flags == GW_JOB_JOIN, now);
        gw_askers_note(&jobs->askers, pkt->flow, pkt->src);
    }
    return true;
}

static struct gw_switch_job *job_find(const struct gw_switch_jobs *jobs, uint32_t number)
{
    uint32_t index = gw_map_get(&jobs->map, number);
    return index == GW_MAP_NONE ? NULL : &jobs->jobs[index];
}

/* The last job takes the place of the one that goes. */
static void job_drop(struct gw_switch_jobs *jobs, struct gw_switch_job *job)
{
    if (job->is_active)
        gw_aggregate_remove(jobs->aggregate, job->job);
    gw_map_remove(&jobs->map, job->job);
    const struct gw_switch_job *last = &jobs->jobs[--jobs->count];
    if (job == last)
        return;
    *job = *last;
    int error = gw_map_put(&jobs->map, job->job, (uint32_t)(job - jobs->jobs));
    GW_ASSERT(error == GW_OK); /* it had a place in the map */
}

/* Of an INSTALL: what it says in all packets of an epoch. */
static uint32_t spot_of(const struct gw_pkt *pkt)
{
    uint32_t workers;
    struct gw_job_spot spot = gw_job_spot_unpack(pkt->job.word[1], &workers);
    return gw_job_spot_pack(&spot, 0);
}

/* And what it says of one position. */
static uint16_t workers_of(const struct gw_pkt *pkt)
{
    uint32_t workers;
    gw_job_spot_unpack(pkt->job.word[1], &workers);
    return (uint16_t)workers;
}

/* Whether there is a place for another job of that tenant. */
static bool has_place(const struct gw_switch_jobs *jobs, uint32_t who)
{
    const struct gw_aggregate_cfg *cfg = gw_aggregate_cfg(jobs->aggregate);
    uint32_t held[GW_TENANTS_MAX + 1] = {0};
    for (uint32_t i = 0; i < jobs->count; i++)
        held[gw_tenants_of(&cfg->tenants, jobs->jobs[i].job)]++;
    return gw_tenants_have_place(held, cfg->tenants.count, who, cfg->jobs_max,
                                 cfg->jobs_max - jobs->count);
}

void gw_switch_jobs_use(const struct gw_switch_jobs *jobs, uint32_t who, struct gw_tenant_use *use)
{
    if (!jobs->aggregate)
        return;
    for (uint32_t i = 0; i < jobs->count; i++)
        use->jobs +=
            gw_tenants_of(&gw_aggregate_cfg(jobs->aggregate)->tenants, jobs->jobs[i].job) == who;
    use->jobs_refused += jobs->refused[who];
    gw_aggregate_shares_use(gw_aggregate_shares(jobs->aggregate), who, use);
}

/* A job of which no member is known; NULL with the reason when that cannot be. */
static struct gw_switch_job *job_add(struct gw_switch_jobs *jobs, const struct gw_pkt *pkt,
                                     gw_time now, enum gw_job_reason *reason)
{
    *reason = GW_JOB_TAKEN;
    if (gw_aggregate_job(jobs->aggregate, pkt->flow))
        return NULL; /* somebody has installed it without job control */
    *reason = GW_JOB_ROOM;
    uint32_t who = gw_tenants_of(&gw_aggregate_cfg(jobs->aggregate)->tenants, pkt->flow);
    if (!has_place(jobs, who) || gw_map_put(&jobs->map, pkt->flow, jobs->count) != GW_OK) {
        jobs->refused[who]++;
        return NULL;
    }
    struct gw_switch_job *job = &jobs->jobs[jobs->count++];
    *job = (struct gw_switch_job){
        .job = pkt->flow,
        .server = pkt->src,
        .incarnation = pkt->key,
        .spot = spot_of(pkt),
        .epoch = pkt->epoch,
        .member_count = (uint8_t)pkt->seq,
    };
    gw_time idle = gw_aggregate_cfg(jobs->aggregate)->job_idle;
    if (idle && jobs->deadline == GW_TIME_NEVER)
        jobs->deadline = gw_time_add(now, idle);
    return job;
}

/* Hands the complete job to the stage; false: that has no room. */
static bool job_activate(struct gw_switch_jobs *jobs, struct gw_switch_job *job)
{
    uint32_t workers;
    struct gw_job_spot spot = gw_job_spot_unpack(job->spot, &workers);
    struct gw_aggregate_job entry = {
        .job = job->job,
        .server = job->server,
        .epoch = job->epoch,
        .level = spot.level,
        .fan_in = spot.fan_in,
        .above = {spot.above[0], spot.above[1]},
        .partials = (enum gw_agg_partials)spot.partials,
        .member_count = job->member_count,
        .members = job->members,
        .workers = job->workers,
    };
    job->is_active = gw_aggregate_install(jobs->aggregate, &entry) == GW_OK;
    return job->is_active;
}

static bool is_possible(const struct gw_pkt *pkt)
{
    uint32_t workers;
    struct gw_job_spot spot = gw_job_spot_unpack(pkt->job.word[1], &workers);
    if (gw_job_spot_pack(&spot, workers) != pkt->job.word[1])
        return false; /* the bits that are always 0 */
    return pkt->epoch != 0 && pkt->seq <= GW_FAN_IN_MAX && pkt->index < pkt->seq &&
           spot.level < GW_LEVELS_MAX && spot.fan_in >= 1 && spot.fan_in <= pkt->seq &&
           workers <= GW_WORLD_MAX && (workers != 0) == (pkt->index < spot.fan_in);
}

/* Of an epoch that the same life of the server has left behind. */
static bool is_stale(const struct gw_switch_job *job, const struct gw_pkt *pkt)
{
    return job->incarnation == pkt->key && (int16_t)(pkt->epoch - job->epoch) < 0;
}

static bool contradicts(const struct gw_switch_job *job, const struct gw_pkt *pkt)
{
    if (job->member_count != pkt->seq || job->spot != spot_of(pkt))
        return true;
    for (uint32_t i = 0; i < job->member_count; i++) {
        bool is_known = job->known >> i & 1;
        if (is_known && (job->members[i] == pkt->job.word[0]) != (i == pkt->index))
            return true;
    }
    bool is_known = job->known >> pkt->index & 1;
    return is_known && job->workers[pkt->index] != workers_of(pkt);
}

static void member_enter(struct gw_switch_job *job, const struct gw_pkt *pkt)
{
    uint32_t bit = UINT32_C(1) << pkt->index;
    job->members[pkt->index] = pkt->job.word[0];
    job->workers[pkt->index] = workers_of(pkt);
    job->known_count += !(job->known & bit);
    job->known |= bit;
}

static bool answer(const struct gw_switch_jobs *jobs, struct gw_pkt *pkt, enum gw_job_reason reason,
                   uint32_t known)
{
    pkt->dst = pkt->src;
    pkt->src = jobs->address;
    pkt->q.key = gw_flow_key(pkt->src, pkt->dst, pkt->flow);
    pkt->q.class = GW_CLASS_CONTROL;
    pkt->agg_flags = GW_JOB_INSTALLED;
    pkt->index = (uint16_t)reason;
    pkt->seq = known;
    pkt->job.word[0] = 0;
    pkt->job.word[1] = 0;
    return true;
}

static bool install(struct gw_switch_jobs *jobs, struct gw_pkt *pkt, gw_time now)
{
    if (!is_possible(pkt) || !gw_asked_is(&jobs->asked, pkt->flow, pkt->src) ||
        !gw_askers_has(&jobs->askers, pkt->flow, pkt->job.word[0]))
        return false;
    struct gw_switch_job *job = job_find(jobs, pkt->flow);
    if (job && job->server != pkt->src)
        return answer(jobs, pkt, GW_JOB_TAKEN, 0);
    if (job && is_stale(job, pkt))
        return answer(jobs, pkt, GW_JOB_OK, 0);
    if (job && (job->incarnation != pkt->key || job->epoch != pkt->epoch)) {
        job_drop(jobs, job);
        job = NULL;
    }
    enum gw_job_reason reason = GW_JOB_OK;
    if (!job)
        job = job_add(jobs, pkt, now, &reason);
    else if (contradicts(job, pkt))
        return false;
    if (!job)
        return answer(jobs, pkt, reason, 0);
    member_enter(job, pkt);
    job->heard = now;
    if (job->known_count == job->member_count && !job->is_active && !job_activate(jobs, job)) {
        job_drop(jobs, job);
        return answer(jobs, pkt, GW_JOB_ROOM, 0);
    }
    return answer(jobs, pkt, GW_JOB_OK, job->known_count);
}

bool gw_switch_jobs_input(struct gw_switch_jobs *jobs, struct gw_pkt *pkt, gw_time now)
{
    if (pkt->agg_flags == GW_JOB_INSTALL)
        return install(jobs, pkt, now);
    struct gw_switch_job *job = job_find(jobs, pkt->flow);
    if (job && job->server == pkt->src && !is_stale(job, pkt)) {
        job_drop(jobs, job);
        gw_asked_end(&jobs->asked, pkt->flow);
    }
    return answer(jobs, pkt, GW_JOB_OK, 0);
}

void gw_switch_jobs_server_gone(struct gw_switch_jobs *jobs, uint32_t server)
{
    gw_asked_gone(&jobs->asked, server);
    /* Downwards: what takes the place of a dropped one has been looked at. */
    for (uint32_t i = jobs->count; i-- > 0;)
        if (jobs->jobs[i].server == server)
            job_drop(jobs, &jobs->jobs[i]);
}

uint32_t gw_switch_jobs_expire(struct gw_switch_jobs *jobs, gw_time now)
{
    uint32_t dropped = 0;
    if (jobs->deadline == GW_TIME_NEVER || gw_time_before(now, jobs->deadline))
        return 0;
    gw_time idle = gw_aggregate_cfg(jobs->aggregate)->job_idle;
    jobs->deadline = GW_TIME_NEVER;
    /* Downwards: what takes the place of a dropped one has been looked at. */
    for (uint32_t i = jobs->count; i-- > 0;) {
        struct gw_switch_job *job = &jobs->jobs[i];
        gw_time end = gw_time_add(job->heard, idle);
        if (!gw_time_before(now, end)) {
            job_drop(jobs, job);
            dropped++;
        } else if (gw_deadline_before(end, jobs->deadline)) {
            jobs->deadline = end;
        }
    }
    return dropped;
}
