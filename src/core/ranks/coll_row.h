/*
 * The messages of one call of coll_run.h, as a row: what each worker sends and receives is ordered
 * by step of the schedule, then segment. Pure functions of the call; the inside of coll_run.c.
 *
 * A lane is a worker that sends to this one. Of a lane without payload it is counted what has
 * arrived: all messages before `next`, and some of the following. Of these there are less than
 * twice `flows`, since that is how far a sender goes ahead of what has arrived.
 */
#ifndef GW_CORE_COLL_ROW_H
#define GW_CORE_COLL_ROW_H

#include "core/coll/coll.h"

enum {
    GW_COLL_LATER_MAX = 128, /* twice the most flows of a run */
};

enum gw_coll_way { GW_COLL_SENT, GW_COLL_RECEIVED };

/* A call, seen by one worker. */
struct gw_coll_row {
    const struct gw_coll_ops *coll;
    uint32_t rank;
    uint32_t world;
    uint32_t steps;
    uint64_t count;        /* elements of the tensor */
    uint32_t element_size; /* bytes */
    uint32_t segment_values;
    uint32_t segments; /* of the largest step: so far apart are the tags of two steps */
    uint32_t tag;      /* the first */
};

/* A place in the row. */
struct gw_coll_cursor {
    uint32_t step;
    uint32_t segment;
};

/* A segment that a step sends or receives. */
struct gw_coll_message {
    uint64_t first; /* element */
    uint32_t count; /* elements */
    uint32_t bytes;
    uint32_t peer; /* rank */
    uint32_t tag;
    enum gw_coll_op op;
};

struct gw_coll_lane {
    uint32_t peer;              /* rank */
    struct gw_coll_cursor next; /* first message of this peer that may not be posted yet; without
                                   payload, that has not arrived */
    uint64_t later[GW_COLL_LATER_MAX / 64]; /* without payload: bit i is set when the message i
                                               places behind it has arrived */
};

/* Ranks that send to this one; stores them if `lanes` is not NULL. */
uint32_t gw_coll_lanes(const struct gw_coll_row *row, struct gw_coll_lane *lanes);

/* Moves the cursor on to the next message that is not empty. False: there is none. */
bool gw_coll_row_next(const struct gw_coll_row *row, enum gw_coll_way way,
                      struct gw_coll_cursor *cursor, struct gw_coll_message *message);

/* Does a step from `cursor` on, before step `end`, bring any of the message's elements? */
bool gw_coll_row_brings(const struct gw_coll_row *row, struct gw_coll_cursor cursor, uint32_t end,
                        const struct gw_coll_message *message);

/* The next message of the lane's peer, from lane->next on. False: there is none. */
bool gw_coll_lane_next(const struct gw_coll_row *row, struct gw_coll_lane *lane,
                       struct gw_coll_message *message);

/* Without payload: counts the message `tag` of the lane. False: it has another number of bytes. */
bool gw_coll_lane_count(const struct gw_coll_row *row, struct gw_coll_lane *lane, uint32_t tag,
                        uint64_t bytes);

/* Without payload: has the message at `cursor`, which the lane's peer sends, arrived? */
static inline bool gw_coll_lane_has(const struct gw_coll_lane *lane, struct gw_coll_cursor cursor)
{
    return cursor.step < lane->next.step ||
           (cursor.step == lane->next.step && cursor.segment < lane->next.segment);
}

#endif
