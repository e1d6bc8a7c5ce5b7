/* The aggregation stage's own; see aggregate.h. */
#ifndef GW_CORE_AGGREGATE_IMPL_H
#define GW_CORE_AGGREGATE_IMPL_H

#include "base/map.h"
#include "core/switch/aggregate.h"

enum gw_aggregator_state {
    GW_AGGREGATOR_FREE,
    GW_AGGREGATOR_TAKEN,
    GW_AGGREGATOR_LEFT, /* what it was for is over, and nobody has freed it */
};

/* One aggregator: less than a cache line, so that a fragment costs a miss or two besides its
 * values. */
struct gw_aggregator {
    gw_time touched;
    uint32_t job;
    uint32_t owner; /* the job that has it, or had it last: its index + 1; 0: none that is known */
    uint32_t seq;
    uint32_t key; /* of the tensor: only fragments of one are added */
    uint32_t bitmap;
    uint32_t buf; /* the sum, or GW_BUF_NONE in a simulation without payload */
    uint16_t epoch, values;
    uint8_t scale, bound; /* least of the contributors' */
    uint8_t state;        /* enum gw_aggregator_state */
    uint8_t signs;        /* GATHERED flags of the contributors, of congestion; and GW_PKT_HEAD */
    bool is_unmarked;     /* the sum holds no mark, as was seen when it was made */
    bool is_ahead;        /* something of the fragment has gone on: so does the rest */
};

struct gw_aggregate {
    struct gw_aggregate_cfg cfg;
    struct gw_aggregator *aggregators;
    struct gw_aggregate_job *jobs; /* jobs_max; member_count is 0 in free ones */
    uint32_t *members;             /* members_max; each job's are in one piece, in order of jobs */
    uint16_t *workers;             /* the same of its workers, at the same place */
    struct gw_aggregate_shares shares;
    struct gw_map job_map;
    struct gw_aggregate_job *last_job; /* that was looked up, so that a train costs one look */
    uint32_t member_count;
    uint32_t taken;
    struct gw_pkt *beside; /* waits to be taken, or NULL */
    struct gw_aggregate_stats stats;
};

static inline void gw_aggregator_free(struct gw_aggregate *aggregate,
                                      struct gw_aggregator *aggregator)
{
    if (aggregator->buf != GW_BUF_NONE)
        gw_buf_release(aggregate->cfg.pool->bufs, aggregator->buf);
    aggregator->state = GW_AGGREGATOR_FREE;
    aggregate->taken--;
}

/* The job of that number, or NULL. */
static inline struct gw_aggregate_job *gw_aggregate_find(struct gw_aggregate *aggregate,
                                                         uint32_t job)
{
    if (aggregate->last_job && aggregate->last_job->job == job)
        return aggregate->last_job;
    uint32_t index = gw_map_get(&aggregate->job_map, job);
    if (index == GW_MAP_NONE)
        return NULL;
    return aggregate->last_job = &aggregate->jobs[index];
}

#endif
