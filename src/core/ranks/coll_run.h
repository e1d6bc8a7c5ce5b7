/*
 * Collectives among workers alone: runs schedules (coll/coll.h) over an endpoint's flows, exactly
 * or within bounds on what may be missing.
 *
 * What a step moves is cut into segments, each a message of its own, so that sending, receiving and
 * combining overlap: a segment leaves as soon as all that the steps before bring for its elements
 * has been combined. What is to be combined arrives in memory of the run, unless it can be as it
 * comes, and what is a result in its place in the tensor. Memory is posted ahead, for the next
 * `flows` messages of every peer; a peer has no more under way, so it is refused only while this
 * worker has not begun or is far behind another peer. No memory grows with the tensor: what a
 * worker of a reduce or reduce-scatter combines for others stays in the run until it has been sent
 * on.
 *
 * Order. A step makes own + arrived of an element, and a worker does so in the order of the steps,
 * whatever arrives first. So the schedule alone decides in which order the values of all workers
 * are combined, and the result depends on nothing else. Each sum is rounded to the type, to nearest
 * with ties to even, and travels in the type. One worker completes an element's result, dividing it
 * for an average before it rounds, and all others copy it; or pairs combine the same two values. So
 * all have the same bits. docs/numbers.md has the error.
 *
 * Parts. Messages of a call that may lose a part are blasts, each with its share of the bound, and
 * only the fragments that arrived are combined (coll_parts.h). What is missing of results at one
 * worker is then missing at all: they agree on it (coll_agreement.c).
 *
 * Without kernels there is nothing to combine with (simulation): tensors have no memory, messages
 * no payload, and the run no segments; what arrives is counted as if it had been combined. Such
 * messages need no memory, so nothing is refused: events of a call that has not started are to be
 * kept, and handed over when it has.
 *
 * Use: init, start, hand over all events that the endpoint posts, call expire at the deadline,
 * until the status says done or failed. All workers start the same calls, in the same order.
 * Several runs may share an endpoint and overlap, if their tags differ.
 */
#ifndef GW_CORE_COLL_RUN_H
#define GW_CORE_COLL_RUN_H

#include "core/job.h"
#include "core/host/endpoint.h"
#include "core/quant/kernels.h"
#include "core/ranks/coll_call.h"

enum {
    GW_COLL_RUN_FLOWS_MAX = 64,
    GW_COLL_RUN_SEGMENT_MAX = 1 << 30, /* bytes */
};

/* World, segment and flows are equal on all workers. */
struct gw_coll_run_cfg {
    uint32_t rank;
    uint32_t world;                       /* workers */
    uint32_t lanes_max;                   /* ranks that send to this one in a call, at the most:
                                             gw_coll_run_lanes(); 0: one, for rings and chains */
    const uint32_t *addresses;            /* of all ranks; must outlive the run */
    const struct gw_transport *transport; /* must outlive the run */
    struct gw_path path;                  /* to the farthest rank */
    uint8_t class;                        /* of all messages */
    uint32_t segment;                     /* bytes of a message at the most: a multiple of 4 */
    uint32_t flows; /* messages sent at the same time, 1 to GW_COLL_RUN_FLOWS_MAX */
    /* For calls with parts: those that the messages of the call are sent by, one for blasts; NULL:
     * there are no such calls. */
    const struct gw_transport *parts_transport;
    uint32_t mtu; /* with parts: payload bytes of a full packet; `segment` has room for one */
    /* Fail when nothing arrives and nothing is acknowledged for so long; 0: never. Longer than the
     * endpoint's, so that those who send to a dead worker name it. */
    gw_time stall;
    struct gw_notice_terms notice;    /* how messages after an idle time are announced */
    const struct gw_kernels *kernels; /* NULL: no payload (simulation) */
};

enum gw_coll_run_state {
    GW_COLL_RUN_IDLE,    /* start moves it on */
    GW_COLL_RUN_RUNNING, /* events and the deadline move it on */
    GW_COLL_RUN_DONE,    /* `out` has the result; start moves it on */
    GW_COLL_RUN_FAILED,  /* what `out` holds is undefined; start moves it on */
};

/*
 * How a call stands; done or failed, the tensor is the caller's again. Nobody tells the others of a
 * failure. A worker that fails lets go of its flows, so the others fail too: when a message of
 * theirs stalls, or at their own deadlines.
 */
struct gw_coll_run_status {
    enum gw_coll_run_state state;
    /*
     * Failed: GW_JOB_LOST, `about` does not answer; GW_JOB_STALLED, it has sent nothing for too
     * long (it may only wait for another); GW_JOB_OVERFLOW, a sum or product of integers of some of
     * the workers does not fit, found here, `about` is this worker; GW_JOB_MISMATCH, `about` has a
     * tensor of another size; GW_JOB_BOUND, more results are missing than this worker, `about`,
     * allows; GW_JOB_BROKEN, `about` says that there are results which have not come. When sizes
     * differ at least one worker fails, maybe with one of the first two.
     */
    enum gw_job_reason reason;
    uint32_t about;   /* rank */
    uint64_t missing; /* done, of a call with parts: fragments of `out` that are not there. Without
                         payload those that were missing of messages with results */
};

struct gw_coll_run;

/* What a schedule needs of lanes_max. */
uint32_t gw_coll_run_lanes(const struct gw_coll_ops *coll, uint32_t rank, uint32_t world);

/*
 * Messages that a run awaits at the same time; the endpoint needs as many expect_max, twice as many
 * rx_flows_max, so that those complete still answer. And messages that it sends at the same time:
 * tx_flows_max.
 */
uint32_t gw_coll_run_awaits(const struct gw_coll_run_cfg *cfg);
uint32_t gw_coll_run_sends(const struct gw_coll_run_cfg *cfg);

/* Bytes of memory that a run needs, with kernels a segment for each message awaited or, without
 * parts, sent, and at least 3 for each flow; 0 when `cfg` is invalid. */
size_t gw_coll_run_size(const struct gw_coll_run_cfg *cfg);

/* Makes a run, idle, in `memory`, aligned to 64 and gw_coll_run_size() long. Never fails. */
struct gw_coll_run *gw_coll_run_init(void *memory, const struct gw_coll_run_cfg *cfg,
                                     struct gw_endpoint *endpoint);

/* More is known of the path to the farthest rank now: for messages from here on. */
void gw_coll_run_set_path(struct gw_coll_run *run, const struct gw_path *path);

/* How messages are announced from here on. */
void gw_coll_run_set_notice(struct gw_coll_run *run, const struct gw_notice_terms *notice);

/* Gives up a call that runs; its tensor is the caller's again. */
void gw_coll_run_fini(struct gw_coll_run *run);

/* Tags that a call uses, from tensor.tag on. */
uint64_t gw_coll_run_tags(const struct gw_coll_run *run, const struct gw_coll_call *call);

/*
 * Starts a call; see coll_call.h for what it reads and writes. No other message between these
 * workers may use its tags; those of a call that failed must not be used again. Ends at once when
 * there is nothing to do. Returns 0, or GW_ERR_INVALID (a call runs; no such call; memory that is
 * missing, overlaps or, without kernels, is there; too many lanes; 2^32 tags or more; an element
 * larger than a segment; parts that the run was not made for, or that do not fill packets).
 */
int gw_coll_run_start(struct gw_coll_run *run, const struct gw_coll_call *call, gw_time now);

/*
 * Takes an event of the endpoint. Returns whether it is about this run's last call. Give it
 * those of other messages too, if they share the endpoint's room for flows: it may wait for some.
 */
bool gw_coll_run_event(struct gw_coll_run *run, const struct gw_event *event, gw_time now);

/* When expire must be called at the latest; GW_TIME_NEVER: need not be. */
gw_time gw_coll_run_deadline(const struct gw_coll_run *run);

/* Fails the call if its deadline has come; harmless at any other time. */
void gw_coll_run_expire(struct gw_coll_run *run, gw_time now);

struct gw_coll_run_status gw_coll_run_status(const struct gw_coll_run *run);

/* Whether the last call's result is there, as far as it is this worker's; others may still lack
 * what this worker sends them. */
bool gw_coll_run_is_summed(const struct gw_coll_run *run);

/* Whether besides the tensor is the caller's again, although the run goes on: all has been sent
 * that is to be, and what is under way are copies. */
bool gw_coll_run_trails(const struct gw_coll_run *run);

#endif
