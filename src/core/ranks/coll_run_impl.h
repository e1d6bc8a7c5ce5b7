/*
 * The inside of a run, shared by its files and by nobody else; see coll_run.h.
 *
 *   coll_run.c      begins and ends calls, takes events
 *   coll_advance.c  moves a call on: combines, posts memory, sends
 *
 * Memory that a sum is to replace is posted while flows may still send what was there before. That
 * is safe by the contract of schedules: the sum contains what was there, so all of it has arrived
 * where it was sent, and what the flow sends again until it knows is dropped there as a duplicate.
 *
 * A receiver answers for a message that is complete as long as it has not needed the place for as
 * many others. So a sender is never more than twice `flows` messages ahead of its oldest that is
 * not acknowledged: whose last ACK was lost would else ask for ever.
 *
 * Where own values stay as they are, what is combined stays in its place, and the place is taken
 * until it has been sent on. No ring of workers waits for each other's places: take of all workers
 * the number of the next message that each is to send. Who waits for the message to be combined, a
 * lap before, is that far ahead of the worker that sends it; who waits for a place is ahead of the
 * worker that has none by all places less a lap, so by some, since what takes them is a lap behind
 * that worker's next message at the most. So whoever waits is ahead of whom it waits for.
 *
 * Without payload no memory is posted, and nothing holds a sender back but its own `flows`.
 *
 * Invariants: `applied` <= the `next` of every lane; what is awaited is a message between these
 * two; `sending` <= flows, and `awaited` <= flows of each lane.
 */
#ifndef GW_CORE_COLL_RUN_IMPL_H
#define GW_CORE_COLL_RUN_IMPL_H

#include "core/ranks/coll_row.h"
#include "core/ranks/coll_run.h"

_Static_assert(2 * GW_COLL_RUN_FLOWS_MAX <= GW_COLL_LATER_MAX, "lanes count so far ahead");

enum {
    /* Of one lane, times flows: for those awaited, those sent on, and as many between. */
    GW_COLL_PLACES = 3,
};

_Static_assert((int)GW_COLL_PLACES > (int)GW_COLL_LAP, "else workers wait for each other");

enum gw_coll_place_state {
    GW_COLL_PLACE_FREE,     /* posting a message moves it on */
    GW_COLL_PLACE_AWAITED,  /* the message's arrival moves it on */
    GW_COLL_PLACE_ARRIVED,  /* the message's turn moves it on */
    GW_COLL_PLACE_COMBINED, /* sending it on moves it on */
    GW_COLL_PLACE_SENDING,  /* the acknowledgement moves it on */
};

/* Room for a message that is awaited; it has a segment of the run's memory. */
struct gw_coll_place {
    uint64_t bytes;
    uint32_t tag;
    uint8_t state; /* enum gw_coll_place_state */
};

/* A message that has been sent and is not acknowledged. */
struct gw_coll_sending {
    struct gw_coll_place *place; /* that it is sent from, or NULL */
    uint32_t flow;
    uint32_t number; /* of the messages of this call, in the order of sending */
};

struct gw_coll_run {
    struct gw_endpoint *ep;
    struct gw_coll_run_cfg cfg;
    struct gw_coll_run_status status;
    struct gw_coll_call call;
    struct gw_coll_row row;
    uint32_t tags;  /* of the call */
    bool keeps_own; /* values at call.tensor.in */
    struct gw_coll_lane *lanes;
    struct gw_coll_place *places; /* as many for each lane */
    unsigned char *segments;      /* one for each place */
    uint32_t lane_count;
    uint32_t place_count;          /* of each lane */
    uint32_t awaited;              /* places whose message is not combined, or where it belongs */
    struct gw_coll_cursor applied; /* first message received that is not */
    struct gw_coll_cursor sent;    /* first message never sent */
    struct gw_coll_sending under_way[GW_COLL_RUN_FLOWS_MAX];
    uint32_t sending;    /* of these */
    uint32_t sent_count; /* messages, ever */
    uint32_t sent_to;    /* rank that got the last one */
    gw_time progress_at;
};

/* Whether a cursor is behind the last message. */
static inline bool gw_coll_run_is_through(const struct gw_coll_run *run,
                                          struct gw_coll_cursor cursor)
{
    return cursor.lap == run->row.segments;
}

/* coll_run.c */

void gw_coll_run_fail(struct gw_coll_run *run, enum gw_job_reason reason, uint32_t about);

/* coll_advance.c */

/* The place of the message `tag`, or NULL: it has none. */
struct gw_coll_place *gw_coll_run_place(const struct gw_coll_run *run, uint32_t tag);

/* The lane of a rank, or NULL: it sends nothing. */
struct gw_coll_lane *gw_coll_run_lane(const struct gw_coll_run *run, uint32_t peer);

/* Does all that can be done. */
void gw_coll_run_advance(struct gw_coll_run *run, gw_time now);

#endif
