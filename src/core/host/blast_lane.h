/*
 * Lanes: what says how fast blasts may leave. Of the endpoint's inside; see blast.h.
 *
 * Of most networks only the way to one peer is known, and all blasts to it share that: a lane for
 * each peer, with one state of congestion control and one pacer (`shares_lane` of the algorithm). A
 * blast waits for its turn in the lane, and so takes part in its rate with others, however many
 * there are. Reports tell of single blasts; congestion control hears of them together, once per
 * period. A lane that nobody uses keeps what it knows until another peer needs its place. Other
 * algorithms decide about each blast alone; then each has a lane of its own.
 *
 * Invariant: as many lanes as blasts, each blast is in one, and those that nobody uses are on the
 * list of idle ones, the one that has been for the longest time first.
 */
#ifndef GW_CORE_BLAST_LANE_H
#define GW_CORE_BLAST_LANE_H

#include "base/arena.h"
#include "base/index_list.h"
#include "core/host/transport.h"
#include "core/path.h"

struct gw_blast_lane {
    uint32_t prev, next; /* of those that are idle */
    uint32_t peer;
    uint32_t users;             /* blasts */
    const struct gw_cc_ops *cc; /* of all of them; NULL: no other blast may join */
    struct gw_path path;
    struct gw_cc_window window;
    gw_time free_at;   /* when the pace allows the next packet of those that have left */
    gw_time report_at; /* when congestion control hears of: */
    uint64_t sent;     /* wire bytes that were reported of since */
    uint64_t received; /* likewise */
    uint64_t cc_state[GW_CC_STATE_MAX / 8];
};

GW_INDEX_LIST(gw_blast_lanes, struct gw_blast_lane)

struct gw_endpoint;

/* The lane of a new blast, over `path`. */
struct gw_blast_lane *gw_blast_lane_join(struct gw_endpoint *ep,
                                         const struct gw_transport *transport, uint32_t peer,
                                         const struct gw_path *path, gw_time now);
/* The blast is over. */
void gw_blast_lane_leave(struct gw_endpoint *ep, struct gw_blast_lane *lane);
/* A train leaves that may make good for `late`. */
void gw_blast_lane_begin_train(struct gw_blast_lane *lane, gw_time late, gw_time now);
/* A packet of `bytes` on the wire has left; returns when the next one of the same blast may. */
gw_time gw_blast_lane_take(struct gw_blast_lane *lane, uint32_t bytes);
/* A blast sends again what was lost. */
void gw_blast_lane_begin_round(struct gw_blast_lane *lane, const struct gw_transport *transport,
                               gw_time now);
/* Of wire bytes that a blast sent in a period, as many arrived. */
void gw_blast_lane_report(struct gw_blast_lane *lane, const struct gw_transport *transport,
                          const struct gw_cc_report *report, gw_time now);

/* endpoint.c's part, by way of blast_hails.c */
void gw_blast_lanes_carve(struct gw_endpoint *ep, uint32_t count, struct gw_arena *arena);

#endif
