/*
 * The parameter server of a job: completes what the switches could not add up, and sends the
 * results (ATP, sections 3.4 to 3.6; the values are not stored as parameters: a result is a sum).
 *
 * Per fragment it keeps whose contributions it has. A packet is added if it brings only new ones,
 * replaces everything if it brings all, and is dropped if it overlaps: the workers that are missing
 * then send again. So every sum contains every worker exactly once, whatever was lost, repeated
 * or reordered on the way. Memory is a window of fragments, never a tensor.
 *
 * A collision divides a fragment: some contributions come here, others stay in switches as a sum
 * that nothing completes. ATP leaves it to the workers to notice, by overtaking results or a
 * timeout, and then all of them send again and halve their windows. Here the server asks as soon as
 * a later fragment is complete, or it has been quiet for a while; one worker below each switch
 * sends again, which brings all that the switch holds, and windows stay as they are. (Three jobs of
 * 8 workers with two thirds of the aggregators that they want get 1.3 times the throughput by that,
 * with a twelfth 2.3 times; simulated, 100 Gb/s.)
 *
 * A fragment whose integers saturate is asked for again raw: raw floats are kept per worker and
 * added in rank order, as doubles; raw int32 are added in 64 bits, and a sum that does not fit
 * fails the call on all workers.
 *
 * A fragment of a call with a bound may complete without stragglers (server_deadline.c): when
 * nothing new has come for a while, what switches hold was asked for, more than half of the workers
 * are in, and each that is missing was left out of no more than the bound of the call's fragments.
 * The result says how many it lacks. An average divides by those that are in it.
 *
 * A result goes to the first switch of the job's tree, which multiplies it; without a tree, or to a
 * worker that asks again, it goes to single workers.
 */
#ifndef GW_CORE_SERVER_H
#define GW_CORE_SERVER_H

#include "core/aggregation/agg_index.h"
#include "core/aggregation/contributors.h"
#include "core/host/endpoint.h"
#include "core/quant/kernels.h"

struct gw_server_cfg {
    uint32_t job;
    uint16_t world;
    uint8_t levels;      /* of switches in a tree, at most */
    uint8_t class;       /* of parameter packets */
    uint32_t hdr;        /* bytes of a packet that are not values; 0: as the endpoint says */
    uint32_t values;     /* elements per fragment, at most */
    uint32_t window_max; /* the workers' */
    uint32_t aggregators;
    enum gw_agg_indexing indexing;
    enum gw_agg_hashing hashing;
    enum gw_agg_remap remap;
    uint32_t share;
    uint32_t raw_max;      /* fragments that can be collected raw at the same time */
    gw_time retry;         /* when packets have run out: time until it tries again */
    gw_time quiet;         /* without a result: ask for what collisions left; 0: never ask, as
                              published */
    gw_time patience;      /* without a result, in calls with a bound: ask for what switches hold,
                              then complete without those that are missing; 0: never */
    gw_time patience_max;  /* between the two it follows what is measured (patience.h) */
    int scale_exponent;    /* as the workers' */
    bool agrees_exponents; /* dynamic scaling, while more than 0.1 % of the fragments overflow */
    bool proactive;        /* as the workers': counts what that makes raw for nothing */
    const struct gw_kernels *kernels;
};

/* One tree and one set of workers. */
struct gw_server_epoch {
    uint16_t epoch;
    uint8_t levels;                /* of switches; 0: none, results go to single workers */
    uint32_t first_seq;            /* first fragment that some worker lacks */
    const struct gw_place *places; /* of the workers, by rank; read at once */
    bool is_fresh;                 /* no worker has calls in work from before */
};

struct gw_server_stats {
    uint64_t received;   /* gradient packets */
    uint64_t complete;   /* of these, sums of all workers: nothing was left to do */
    uint64_t partial;    /* added here */
    uint64_t overlaps;   /* dropped: some of it was there already */
    uint64_t stale;      /* of another epoch, a fragment too old or too new, or malformed */
    uint64_t results;    /* fragments finished */
    uint64_t answered;   /* results sent again on request */
    uint64_t asked;      /* requests for what a fragment lacks that was in a collision */
    uint64_t restored;   /* results that workers gave back */
    uint64_t overflowed; /* fragments collected raw */
    uint64_t needless;   /* of these, the ones whose integers would have had a sum; counted if
                            cfg.proactive, but for int32 */
    uint64_t scaled;     /* results that say an exponent for the fragment one window later */
    uint64_t refused;    /* no room for raw contributions, or no buffer: sent again later */
    uint64_t lacking;    /* results that lack workers */
    uint64_t left_out;   /* workers that they lack, together */
    uint64_t probes;     /* requests for all that switches hold, after `patience` */
    uint64_t invited;    /* requests to a late worker, for all that it has and lacks */
    uint64_t bytes;      /* received, on the wire */
};

struct gw_server;

/* Bytes of memory that a server needs. */
size_t gw_server_size(const struct gw_server_cfg *cfg);

/*
 * Makes a server in `memory`, aligned to 64, and attaches it; all gradients are stale until the
 * first epoch. Errors as for gw_worker_init().
 */
int gw_server_init(struct gw_server **server, void *memory, const struct gw_server_cfg *cfg,
                   struct gw_endpoint *endpoint);

/*
 * Begins an epoch. Results that some worker may lack are kept, sums that were not finished are
 * given up: the workers send again.
 */
void gw_server_begin(struct gw_server *server, const struct gw_server_epoch *epoch);

/* Ends the epoch: all gradients are stale until the next. */
void gw_server_stop(struct gw_server *server);

/* Detaches and releases all buffers. */
void gw_server_fini(struct gw_server *server);

const struct gw_server_stats *gw_server_stats(const struct gw_server *server);

#endif
