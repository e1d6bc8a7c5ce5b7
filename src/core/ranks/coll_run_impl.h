/*
 * The inside of a run, shared by its files and by nobody else; see coll_run.h.
 *
 *   coll_run.c        begins and ends calls, takes events
 *   coll_advance.c    moves a call on: combines, posts memory, sends
 *   coll_parts.c      messages of which a part may be missing
 *   coll_agreement.c  what is missing at one worker is missing at all
 *
 * Memory that a sum is to replace is posted while flows may still send what was there before. That
 * is safe by the contract of schedules: the sum contains what was there, so all of it has arrived
 * where it was sent, and what the flow sends again until it knows is dropped there as a duplicate.
 *
 * Where pairs exchange, what is sent is a copy, in a place behind those of the lanes. So what
 * arrives is combined once the copy is made, and does not wait until that is acknowledged.
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
    uint8_t state;  /* enum gw_coll_place_state */
    bool is_merged; /* what has arrived is combined already */
};

/* A message that has been sent and is not acknowledged. */
struct gw_coll_sending {
    struct gw_coll_place *place; /* that it is sent from, or NULL */
    uint32_t flow;
    uint32_t number; /* of the messages of this call, in the order of sending */
    uint32_t slot;   /* with parts: where its bits of `important` are */
};

/* What a run made for parts has besides; see coll_parts.h. */
struct gw_coll_run_parts {
    struct gw_parts terms; /* of the call */
    /* When a message is enough whose values are combined, and one with results or values. */
    struct gw_finish adds, copies;
    uint32_t packets;    /* of a message at the most */
    uint64_t *arrived;   /* of each place: bits of its packets ... */
    uint16_t *notes;     /* ... and their counts */
    uint64_t *important; /* of each message under way: bits of its packets */
    uint16_t *ones;      /* the counts of own values */
    struct gw_coll_run *agreement;
    bool agrees;   /* the call does */
    bool is_ended; /* results are as they stay */
};

struct gw_coll_run {
    struct gw_endpoint *ep;
    struct gw_coll_run_cfg cfg;
    struct gw_coll_run_status status;
    struct gw_coll_call call;
    struct gw_coll_row row;
    uint32_t tags;  /* of the call */
    bool keeps_own; /* values at call.tensor.in */
    bool exchanges; /* it sends copies, since that is also what it combines */
    struct gw_merger mergers[GW_COLL_COPY]; /* of what is combined, by enum gw_coll_merge */
    bool is_held; /* takes what arrives and does nothing else: an agreement before its time */
    struct gw_coll_lane *lanes;
    struct gw_coll_place *places; /* as many for each lane */
    unsigned char *segments;      /* one for each place */
    uint32_t lane_count;
    uint32_t place_count;          /* of each lane */
    uint32_t awaited;              /* places whose message is not combined, or where it belongs */
    struct gw_coll_cursor applied; /* first message received that is not */
    struct gw_coll_cursor sent;    /* first message never sent */
    struct gw_coll_place *copied;  /* place of the message at `sent`, if a copy has been made */
    struct gw_coll_sending under_way[GW_COLL_RUN_FLOWS_MAX];
    uint32_t sending;    /* of these */
    uint32_t sent_count; /* messages, ever */
    uint32_t sent_to;    /* rank that got the last one */
    gw_time progress_at;
    struct gw_coll_run_parts parts;
};

/* Whether a cursor is behind the last message. */
static inline bool gw_coll_run_is_through(const struct gw_coll_run *run,
                                          struct gw_coll_cursor cursor)
{
    return cursor.stretch == run->row.stretches;
}

/* coll_run.c */

void gw_coll_run_fail(struct gw_coll_run *run, enum gw_job_reason reason, uint32_t about);

/* Starts a call that is held. */
int gw_coll_run_hold(struct gw_coll_run *run, const struct gw_coll_call *call, gw_time now);

/* coll_advance.c */

/* The place of the message `tag`, or NULL: it has none. */
struct gw_coll_place *gw_coll_run_place(const struct gw_coll_run *run, uint32_t tag);

/* The lane of a rank, or NULL: it sends nothing. */
struct gw_coll_lane *gw_coll_run_lane(const struct gw_coll_run *run, uint32_t peer);

/* The memory of a place. */
unsigned char *gw_coll_run_segment(const struct gw_coll_run *run,
                                   const struct gw_coll_place *place);

/* Where the message arrives in. */
unsigned char *gw_coll_run_memory(const struct gw_coll_run *run, const struct gw_coll_place *place,
                                  const struct gw_coll_message *message);

/* Whether the message is combined in its segment, to be sent on from there. */
bool gw_coll_run_stays(const struct gw_coll_run *run, const struct gw_coll_message *message);

/* Does all that can be done. */
void gw_coll_run_advance(struct gw_coll_run *run, gw_time now);

/* coll_agreement.c */

/* What the run of agreements is made with. */
struct gw_coll_run_cfg gw_coll_agreement_cfg(const struct gw_coll_run_cfg *cfg);

/* The call begins: holds its agreement, if it has one. */
void gw_coll_agreement_begin(struct gw_coll_run *run, gw_time now);

/* Goes on with the end of a call with parts; true: it has come. */
bool gw_coll_agreement_advance(struct gw_coll_run *run, gw_time now);

/* The rank that the agreement waits for, if the call waits for that; or `world`. */
uint32_t gw_coll_agreement_awaited(const struct gw_coll_run *run);

#endif
