/*
 * The rules of aggregation that a job chooses: where what is here differs from ATP as published
 * (NSDI 2021), each difference has a name of its own, so that it can be measured alone.
 *
 * The first value of each is ours, and 0; the second is the paper's. docs/aggregation.md says why
 * they differ. None of them decides whether a sum is right. Rules that a worker keeps for itself
 * are told to it alone; which aggregator a fragment uses, and with what scale, is told to it by the
 * server, and to a switch by INSTALL what it does with partial sums (core/job.h). When a switch
 * gives up on an aggregator is its own affair: its memory is that of all jobs.
 */
#ifndef GW_CORE_AGG_RULES_H
#define GW_CORE_AGG_RULES_H

/* Who halves its window when there was congestion. */
enum gw_agg_halving {
    GW_AGG_HALVE_TOGETHER, /* all workers, at the same fragment: when its result says so */
    GW_AGG_HALVE_ALONE,    /* the worker that notices, at once (section 3.7) */
};

/* When results of later fragments mean that the expected one is lost. */
enum gw_agg_overtaking {
    GW_AGG_OVERTAKEN_COUNTED,  /* three have come; likewise of others behind it */
    GW_AGG_OVERTAKEN_IN_A_ROW, /* the last three results were others (section 3.7) */
};

/* What the aggregator of a fragment is hashed from, besides its job. */
enum gw_agg_hashing {
    GW_AGG_HASH_POSITION, /* its number modulo the window: a fixed set of aggregators per job */
    GW_AGG_HASH_SEQUENCE, /* its number (section 3.5): the job sweeps over all of them */
};

/* Where a collision moves to. */
enum gw_agg_remap {
    GW_AGG_REMAP_UNUSED, /* an aggregator that the job does not use */
    GW_AGG_REMAP_REHASH, /* the hash of the aggregator's index (section 3.6) */
};

/* What a switch above the first level does with its partial sum when a packet is sent again. */
enum gw_agg_partials {
    GW_AGG_PARTIALS_KEEP,   /* the packet takes it along; at any level, the rest follows it */
    GW_AGG_PARTIALS_DISCARD /* it is thrown away (section 3.7) */
};

/* How a switch finds aggregators that nobody will come for. */
enum gw_agg_reclaim {
    GW_AGG_RECLAIM_SWEEP,   /* it looks through all of them; a job's go with the job */
    GW_AGG_RECLAIM_RESULTS, /* when the result of another fragment names one (section 3.7) */
};

#endif
