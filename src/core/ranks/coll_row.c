/* The messages of a call, in their order; see coll_row.h. */
#include "core/ranks/coll_row.h"

#include "base/bits.h"

enum {
    WORDS = GW_COLL_LATER_MAX / 64,
};

/* The element that a unit begins with, or behind the last one. */
static uint64_t element_of(const struct gw_coll_row *row, uint64_t unit)
{
    return unit / row->part_units * row->part + unit % row->part_units * row->unit;
}

struct gw_coll_step gw_coll_row_in_elements(const struct gw_coll_row *row,
                                            const struct gw_coll_step *in_units)
{
    struct gw_coll_step step = *in_units;
    if (row->units == 0)
        return step;
    step.send_first = element_of(row, in_units->send_first);
    step.send_count =
        element_of(row, in_units->send_first + in_units->send_count) - step.send_first;
    step.recv_first = element_of(row, in_units->recv_first);
    step.recv_count =
        element_of(row, in_units->recv_first + in_units->recv_count) - step.recv_first;
    return step;
}

/* The peers of a step do not depend on root and count. */
static uint32_t sender_of(const struct gw_coll_ops *coll, uint32_t rank, uint32_t world,
                          uint32_t step)
{
    return coll->step(rank, world, 0, step, 0).from;
}

uint32_t gw_coll_lanes(const struct gw_coll_ops *coll, uint32_t rank, uint32_t world,
                       struct gw_coll_lane *lanes, uint32_t max)
{
    uint32_t count = 0, steps = world > 1 ? coll->steps(world) : 0;
    for (uint32_t step = 0; step < steps; step++) {
        uint32_t peer = sender_of(coll, rank, world, step), first = 0;
        while (sender_of(coll, rank, world, first) != peer)
            first++;
        if (first != step)
            continue;
        if (count < max)
            lanes[count] = (struct gw_coll_lane){.peer = peer};
        count++;
    }
    return count;
}

/* The cursor at the first segment of the next step. */
static struct gw_coll_cursor step_behind(const struct gw_coll_row *row,
                                         struct gw_coll_cursor cursor)
{
    uint32_t first = cursor.stretch * row->stretch, end = first + row->stretch;
    if (cursor.step + 1 < end)
        return (struct gw_coll_cursor){cursor.stretch, cursor.lap, cursor.step + 1, 0};
    if (row->segments - cursor.lap > row->lap)
        return (struct gw_coll_cursor){cursor.stretch, cursor.lap + row->lap, first, 0};
    return (struct gw_coll_cursor){.stretch = cursor.stretch + 1, .step = end};
}

bool gw_coll_row_next(const struct gw_coll_row *row, enum gw_coll_way way,
                      struct gw_coll_cursor *cursor, struct gw_coll_message *message)
{
    for (; cursor->stretch < row->stretches; *cursor = step_behind(row, *cursor)) {
        struct gw_coll_step step = gw_coll_row_step(row, cursor->step);
        uint64_t segment = (uint64_t)cursor->lap + cursor->segment;
        uint64_t before = segment * row->segment_values;
        uint64_t count = way == GW_COLL_SENT ? step.send_count : step.recv_count;
        if (cursor->segment >= row->lap || before >= count)
            continue;
        uint64_t left = count - before;
        *message = (struct gw_coll_message){
            .first = before + (way == GW_COLL_SENT ? step.send_first : step.recv_first),
            .count = left < row->segment_values ? (uint32_t)left : row->segment_values,
            .peer = way == GW_COLL_SENT ? step.to : step.from,
            .tag = gw_coll_row_tag(row, &step, *cursor),
            .merge = step.merge,
        };
        message->bytes = message->count * row->element_size;
        return true;
    }
    return false;
}

/* The first segment of a step that is at or behind the cursor. */
static uint64_t segment_at(const struct gw_coll_row *row, struct gw_coll_cursor cursor,
                           uint32_t step)
{
    if (step >= (cursor.stretch + 1) * row->stretch)
        return 0;
    if (step < cursor.step)
        return (uint64_t)cursor.lap + row->lap;
    return (uint64_t)cursor.lap + (step == cursor.step ? cursor.segment : 0);
}

bool gw_coll_row_brings(const struct gw_coll_row *row, struct gw_coll_cursor cursor, uint32_t end,
                        const struct gw_coll_message *message)
{
    if (cursor.stretch == row->stretches)
        return false;
    for (uint32_t i = cursor.stretch * row->stretch; i < end; i++) {
        struct gw_coll_step step = gw_coll_row_step(row, i);
        uint64_t from = step.recv_first + segment_at(row, cursor, i) * row->segment_values;
        uint64_t to = step.recv_first + step.recv_count;
        from = from > message->first ? from : message->first;
        to = to < message->first + message->count ? to : message->first + message->count;
        if (from < to)
            return true;
    }
    return false;
}

bool gw_coll_lane_next(const struct gw_coll_row *row, struct gw_coll_lane *lane,
                       struct gw_coll_message *message)
{
    while (gw_coll_row_next(row, GW_COLL_RECEIVED, &lane->next, message)) {
        if (message->peer == lane->peer)
            return true;
        lane->next = step_behind(row, lane->next);
    }
    return false;
}

bool gw_coll_lane_find(const struct gw_coll_row *row, const struct gw_coll_lane *lane, uint32_t tag,
                       struct gw_coll_message *message, uint32_t *place)
{
    struct gw_coll_lane ahead = *lane;
    for (*place = 0; *place < GW_COLL_LATER_MAX; ++*place) {
        if (!gw_coll_lane_next(row, &ahead, message))
            break;
        if (message->tag == tag)
            return true;
        ahead.next.segment++;
    }
    return false;
}

void gw_coll_lane_count(const struct gw_coll_row *row, struct gw_coll_lane *lane, uint32_t place)
{
    struct gw_coll_message message;
    gw_bit_set(lane->later, place);
    while (lane->later[0] & 1 && gw_coll_lane_next(row, lane, &message)) {
        lane->next.segment++;
        for (uint32_t w = 0; w < WORDS; w++)
            lane->later[w] = lane->later[w] >> 1 | (w + 1 < WORDS ? lane->later[w + 1] << 63 : 0);
    }
}
