/*
 * What a run (coll_run.h) does with messages of which a part may be missing.
 *
 * Fragments. The tensor is cut on one grid, that of packets: chunks and segments are whole
 * fragments, so packet i of a message is its fragment i on both ends and at every worker. With each
 * travels its count, of the workers whose values are in it, in the packet's note; GW_COLL_NOTE_NONE
 * says that the sender has no result of it either.
 *
 * Combining. own + arrived of a fragment that has arrived, and the counts are added; of one that
 * has not the worker's own values go on, with their count. An average is divided by the count of
 * its fragment, by the worker that completes it; all others copy that, count and all.
 *
 * Bounds. A value passes coll->hops() messages until it is in its result; each may miss bound /
 * hops of its packets (finish_bound.c, which both ends ask for; the stricter one rules). So of each
 * worker's values at most `bound` is not in the results. A result comes to n - 1 workers, by one
 * message each; each may miss bound_pull / (n - 1), so that at most `bound_pull` is missing at any.
 * Who keeps his own instead has no part in what others miss, and only the hops on the way count.
 */
#ifndef GW_CORE_COLL_PARTS_H
#define GW_CORE_COLL_PARTS_H

#include "base/arena.h"
#include "core/ranks/coll_run_impl.h"

enum {
    GW_COLL_NOTE_NONE = 1 << 15, /* a count of no result */
};

/* Takes the run's memory for parts out of the arena, if it is made for them. */
void gw_coll_parts_carve(struct gw_coll_run *run, const struct gw_coll_run_cfg *cfg,
                         uint32_t places, struct gw_arena *arena);

/* Fills it, and makes the run of agreements. */
void gw_coll_parts_init(struct gw_coll_run *run);

/* Whether the run can do the call's parts. */
bool gw_coll_parts_are_valid(const struct gw_coll_run *run, const struct gw_coll_call *call);

/* A call with parts begins: bounds of hops, counts and masks. */
void gw_coll_parts_begin(struct gw_coll_run *run);

/* Whether a message of `bytes` is what the event says has arrived. */
bool gw_coll_parts_fit(const struct gw_coll_run *run, uint64_t bytes, const struct gw_event *event);

/* Fills in what a message that is posted, or sent, has of parts. `slot` is of under_way. */
void gw_coll_parts_expect(struct gw_coll_run *run, const struct gw_coll_place *place,
                          const struct gw_coll_message *message, struct gw_expect *expect);
void gw_coll_parts_send(struct gw_coll_run *run, uint32_t slot, const struct gw_coll_place *place,
                        const struct gw_coll_message *message, struct gw_send *send);

/* Takes a message that has arrived, from where it arrived to where it belongs. False: a sum or
 * product does not fit. */
bool gw_coll_parts_take(struct gw_coll_run *run, const struct gw_coll_place *place,
                        const struct gw_coll_message *message);

/* The first fragment that is said to be there although it has not come; or how many there are. */
uint64_t gw_coll_parts_untrue(const struct gw_coll_run *run);

/* All results are there that can come, and are agreed upon if the call does: leaves in `out`,
 * `arrived` and `counts` what the caller is to find, and returns how many fragments are missing. */
uint64_t gw_coll_parts_end(struct gw_coll_run *run);

/* Whether the worker allows that so many are. */
bool gw_coll_parts_may_miss(const struct gw_coll_run *run, uint64_t missing);

#endif
