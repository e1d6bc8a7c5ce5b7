/*
 * The messages of one call of coll_run.h, as a row: what each worker sends and receives is ordered
 * by stretch, then lap, then step of the schedule, then segment. Pure functions of the call; the
 * inside of coll_run.c.
 *
 * A stretch is some steps in a row, with all of their segments; a lap is the steps of a stretch
 * with some segments of each. Where what is combined takes memory until it has been sent on, laps
 * are short, so that it is sent on soon; where steps need nothing of each other they are a stretch,
 * with one segment of each in a lap, so that no peer waits for another one's turn. Else one stretch
 * has all steps, and one lap all segments.
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
    /* Of a short lap, times flows: what a worker sends in it depends on what arrived two flows'
     * worth of messages before, so that it need not wait for that. */
    GW_COLL_LAP = 2,
};

enum gw_coll_way { GW_COLL_SENT, GW_COLL_RECEIVED };

/* A call, seen by one worker. */
struct gw_coll_row {
    const struct gw_coll_ops *coll;
    uint32_t rank;
    uint32_t world;
    uint32_t root;
    uint32_t steps;
    uint64_t units;      /* that a vector is cut in: fragments, or elements if nothing is missing */
    uint64_t part_units; /* of each rank's part of an all-gather or reduce-scatter, else of all */
    uint64_t part;       /* elements of these */
    uint32_t unit;       /* elements of a unit, but for the last of a part */
    uint32_t element_size; /* bytes */
    uint32_t segment_values;
    uint32_t segments;  /* of the largest step: so far apart are the tags of two rounds */
    uint32_t lap;       /* segments of a step in one lap; at least 1 */
    uint32_t stretch;   /* steps of one stretch; at least 1 */
    uint32_t stretches; /* 0: there are no messages */
    uint32_t tag;       /* the first */
};

/* A place in the row. */
struct gw_coll_cursor {
    uint32_t stretch; /* row->stretches: behind all messages */
    uint32_t lap;     /* the first segment of it */
    uint32_t step;    /* of all */
    uint32_t segment; /* beyond `lap` */
};

/* A segment that a step sends or receives. */
struct gw_coll_message {
    uint64_t first; /* element */
    uint32_t count; /* elements */
    uint32_t bytes;
    uint32_t peer; /* rank */
    uint32_t tag;
    enum gw_coll_merge merge;
};

struct gw_coll_lane {
    uint32_t peer;              /* rank */
    struct gw_coll_cursor next; /* first message of this peer that may not be posted yet; without
                                   payload, that has not arrived */
    uint64_t later[GW_COLL_LATER_MAX / 64]; /* without payload: bit i is set when the message i
                                               places behind it has arrived */
};

/* The same range in elements. */
struct gw_coll_step gw_coll_row_in_elements(const struct gw_coll_row *row,
                                            const struct gw_coll_step *in_units);

/* What a step of this worker moves. */
static inline struct gw_coll_step gw_coll_row_step(const struct gw_coll_row *row, uint32_t step)
{
    struct gw_coll_step move = row->coll->step(row->rank, row->world, row->root, step, row->units);
    return row->unit == 1 ? move : gw_coll_row_in_elements(row, &move);
}

/* The tag of what a step moves in the segment at the cursor. */
static inline uint32_t gw_coll_row_tag(const struct gw_coll_row *row,
                                       const struct gw_coll_step *step,
                                       struct gw_coll_cursor cursor)
{
    return row->tag + step->round * row->segments + cursor.lap + cursor.segment;
}

/* How many ranks send to `rank`; stores up to `max` of them. */
uint32_t gw_coll_lanes(const struct gw_coll_ops *coll, uint32_t rank, uint32_t world,
                       struct gw_coll_lane *lanes, uint32_t max);

/* Moves the cursor on to the next message that is not empty. False: there is none. */
bool gw_coll_row_next(const struct gw_coll_row *row, enum gw_coll_way way,
                      struct gw_coll_cursor *cursor, struct gw_coll_message *message);

/* Does a message from `cursor` on, of a step before `end`, bring any of the message's elements? */
bool gw_coll_row_brings(const struct gw_coll_row *row, struct gw_coll_cursor cursor, uint32_t end,
                        const struct gw_coll_message *message);

/* The next message of the lane's peer, from lane->next on. False: there is none. */
bool gw_coll_lane_next(const struct gw_coll_row *row, struct gw_coll_lane *lane,
                       struct gw_coll_message *message);

/* Without payload: finds the message `tag` of the lane, and its place behind lane->next. False: it
 * has been counted, or nobody sends it. */
bool gw_coll_lane_find(const struct gw_coll_row *row, const struct gw_coll_lane *lane, uint32_t tag,
                       struct gw_coll_message *message, uint32_t *place);

/* Counts the message at the place. */
void gw_coll_lane_count(const struct gw_coll_row *row, struct gw_coll_lane *lane, uint32_t place);

static inline bool gw_coll_cursor_before(struct gw_coll_cursor a, struct gw_coll_cursor b)
{
    if (a.stretch != b.stretch)
        return a.stretch < b.stretch;
    if (a.lap != b.lap)
        return a.lap < b.lap;
    return a.step < b.step || (a.step == b.step && a.segment < b.segment);
}

#endif
