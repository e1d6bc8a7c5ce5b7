/*
 * In-network aggregation: the stage of a switch that adds up gradient fragments of many jobs in a
 * memory that they share, best effort (ATP, sections 3.3 to 3.6 and Appendix A).
 *
 * An aggregator holds the partial sum of one fragment, named (job, epoch, sequence number). The
 * packet says which aggregator to use; the first fragment that finds it free gets it, unless a
 * part of its sum has gone on from there already; that one, and one that finds it taken, goes on to
 * the server, which adds it up itself. So memory bounds how much work the
 * switch takes off the server, never whether a sum is right. A sum leaves when all positions below
 * this switch have contributed; the aggregator stays taken until the result comes back.
 *
 * A job may be guaranteed a share of the aggregators. As long as it has fewer, a fragment of it
 * that finds an aggregator taken by a job with more than the share takes it over, whatever that job
 * does: to its workers the sum is lost like a packet, and they send it again. A job at its share
 * takes nothing from anybody, so that two that want more do not rob each other.
 *
 * Invariant: a worker's contribution is in an aggregator at most once, and every packet that leaves
 * names exactly the contributors whose values it carries.
 *
 * The sum is kept in the payload buffer of the first packet; nothing is copied unless the buffer is
 * shared.
 */
#ifndef GW_CORE_AGGREGATE_H
#define GW_CORE_AGGREGATE_H

#include "core/agg_rules.h"
#include "core/job.h"
#include "core/quant/kernels.h"
#include "core/switch/aggregate_shares.h"
#include "core/tenants.h"

enum {
    GW_AGGREGATORS_MAX = 65536, /* what a packet's index can name */
    GW_AGGREGATE_WORKERS_ALL = UINT16_MAX,
};

/* What a switch knows of a job that passes it; installed by job control. */
struct gw_aggregate_job {
    uint32_t job;
    uint32_t server; /* results come from there alone; GW_ADDRESS_NONE: from anybody, and members
                        are in no order: of a job that came without job control */
    uint16_t epoch;
    uint8_t level;  /* of this switch in the job's tree: 0 adds up workers */
    uint8_t fan_in; /* positions below it, numbered from 0: 1 to GW_FAN_IN_MAX */
    /* Entry i: position below the next one of the switch of level i that is here or above. */
    uint8_t above[GW_LEVELS_MAX - 1];
    enum gw_agg_partials partials;
    uint16_t member_count;
    /* Where copies of a result go: hosts right below, and one host for each switch below. Entry i
     * is at position i, of which there are fan_in, no more than members. */
    const uint32_t *members;
    const uint16_t *workers; /* entry i: behind position i. NULL: one behind each */
};

/* Each key that has jobs is guaranteed an equal part of the aggregators, and each of its jobs an
 * equal part of that; so more while there are fewer. */
#define GW_AGGREGATE_SHARE_EQUAL UINT32_MAX

struct gw_aggregate_cfg {
    uint32_t aggregators;      /* 1 to GW_AGGREGATORS_MAX */
    uint32_t jobs_max;         /* jobs known at the same time */
    struct gw_tenants tenants; /* among whom job control divides the places of jobs */
    uint32_t members_max;      /* of all jobs together */
    uint32_t share; /* aggregators that each job is guaranteed, at most aggregators / jobs_max
                       for all to have them at once; 0: none, as published; or: */
    gw_time leak;   /* an aggregator untouched for this long may be taken over by
                       a result or the sweep; above the largest skew of workers */
    enum gw_agg_reclaim reclaim;
    gw_time job_idle; /* a job that its server has not INSTALLed again for this long is
                         forgotten; 0: never; above several of the server's repetitions */
    const struct gw_kernels *kernels;
    struct gw_pkt_pool *pool;
};

/* Counters, in packets or aggregators. */
struct gw_aggregate_stats {
    uint64_t gradients;  /* that could be aggregated: not raw, of a known job and epoch */
    uint64_t held;       /* added and consumed */
    uint64_t completed;  /* left as the sum of all positions */
    uint64_t collisions; /* found the aggregator taken by another fragment */
    uint64_t yielded;    /* taken over from a job above its share by one below */
    uint64_t duplicates; /* were there already */
    uint64_t partials;   /* resent ones that took a partial sum along, or beside them */
    uint64_t followed;   /* went after a resent one of its fragment, with what was held by then */
    uint64_t passed;     /* resent ones that had to leave a partial sum where it was */
    uint64_t discarded;  /* partial sums thrown away for a resent one (GW_AGG_PARTIALS_DISCARD) */
    uint64_t freed;      /* by results */
    uint64_t leaked;     /* reclaimed after cfg.leak */
    uint64_t foreign;    /* of a job or epoch that is not known here: forwarded */
    uint64_t misplaced;  /* from a place that is not below this switch: forwarded */
    uint64_t no_buffer;  /* forwarded because a shared sum could not be copied */
};

struct gw_aggregate;

/* Bytes of memory that the stage needs. */
size_t gw_aggregate_size(const struct gw_aggregate_cfg *cfg);

/* Makes an empty stage in `memory`, aligned to 64. */
struct gw_aggregate *gw_aggregate_init(void *memory, const struct gw_aggregate_cfg *cfg);

/*
 * Installs a job or replaces it (a new epoch): aggregators of its earlier epochs are freed, or if
 * only results reclaim stay taken by nobody, until one finds them leaked. Copies
 * the members and workers, which must not be those of gw_aggregate_job(). Returns 0, or
 * GW_ERR_NO_ROOM.
 */
int gw_aggregate_install(struct gw_aggregate *aggregate, const struct gw_aggregate_job *job);

/* Forgets a job and gives up its aggregators likewise; an unknown job is no error. */
void gw_aggregate_remove(struct gw_aggregate *aggregate, uint32_t job);

/* The job, or NULL. */
const struct gw_aggregate_job *gw_aggregate_job(struct gw_aggregate *aggregate, uint32_t job);

/* Fetches what gw_aggregate_gradient() will look at first, for a packet of which only that is
 * known. */
void gw_aggregate_fetch(const struct gw_aggregate *aggregate, const struct gw_pkt *pkt);

/*
 * Handles a gradient packet. True: forward it (it may carry a sum now), and before the next one
 * take what leaves beside it; false: it was consumed.
 */
bool gw_aggregate_gradient(struct gw_aggregate *aggregate, struct gw_pkt *pkt, gw_time now);

/* A sum that leaves beside the packet that is forwarded, and becomes the caller's; or NULL. */
struct gw_pkt *gw_aggregate_take_beside(struct gw_aggregate *aggregate);

/*
 * How many workers a gradient stands for that leaves this switch; GW_AGGREGATE_WORKERS_ALL: of a
 * sum of which the switch does not know it, so all that sent by the same link. Never 0.
 */
uint32_t gw_aggregate_workers(struct gw_aggregate *aggregate, const struct gw_pkt *pkt);
/* The same for a switch that knows no jobs. */
uint32_t gw_aggregate_workers_unknown(const struct gw_pkt *pkt);

/* Handles a parameter packet, which is then forwarded or multicast: frees its aggregator. */
void gw_aggregate_parameter(struct gw_aggregate *aggregate, const struct gw_pkt *pkt, gw_time now);

/* Frees all aggregators, before the pool goes. */
void gw_aggregate_fini(struct gw_aggregate *aggregate);

/* What it was made with. */
const struct gw_aggregate_cfg *gw_aggregate_cfg(const struct gw_aggregate *aggregate);

/* Reclaims leaked aggregators; none when only results do that. */
void gw_aggregate_sweep(struct gw_aggregate *aggregate, gw_time now);

/* Aggregators taken now. */
uint32_t gw_aggregate_taken(const struct gw_aggregate *aggregate);

/* Which job and tenant has them. */
const struct gw_aggregate_shares *gw_aggregate_shares(const struct gw_aggregate *aggregate);

const struct gw_aggregate_stats *gw_aggregate_stats(const struct gw_aggregate *aggregate);

#endif
