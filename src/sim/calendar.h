/*
 * The calendar: which places run in the windows to come, and what arrives there.
 *
 * It has a row for each of the next windows, as many as a packet can be under way; the rows form a
 * circle. A row names the places that are active in its window and holds an inbox for each place.
 * What is to happen later than the next window without a packet is a wake: a time, in a heap.
 *
 * Each partition has a calendar of its own, which it alone writes while windows run; who runs a
 * place reads the rows of all.
 */
#ifndef GW_SIM_CALENDAR_H
#define GW_SIM_CALENDAR_H

#include "base/bits.h"
#include "sim/sim_impl.h"

/*
 * Chooses the length of the windows and makes all calendars, empty. Returns 0 or a negative error
 * with `why` set: the latencies of the links are too short or too far apart.
 */
int gw_sim_calendar_open(struct gw_sim *sim, char *why);
void gw_sim_calendar_close(struct gw_sim *sim);

/* Enters the current window: fills part->places, and returns how many of them must run. */
uint32_t gw_sim_calendar_enter(struct gw_sim_part *part);

/* In the serial phase: tears out the row of the window that just ran, which is the current one. */
void gw_sim_calendar_leave(struct gw_sim *sim);

/* Windows from the current one to the next in which a place is active; UINT64_MAX: none. */
uint64_t gw_sim_calendar_ahead(const struct gw_sim *sim);

/* Packets that have left a port and have not arrived. */
uint64_t gw_sim_calendar_under_way(const struct gw_sim *sim);

/* The row of the window that is `ahead` windows later than the one that runs. */
static inline const struct gw_sim_row *gw_sim_calendar_row(const struct gw_sim_part *part,
                                                           uint32_t ahead)
{
    return &part->rows[(part->row + ahead) & part->sim->row_mask];
}

/* Where this partition puts what arrives at a place in a row's window. */
static inline struct gw_sim_inbox *gw_sim_calendar_inbox(const struct gw_sim_part *part,
                                                         uint32_t row, uint32_t place)
{
    return &part->rows[row].inboxes[place];
}

/* Gives a full inbox of this partition twice its room. */
void gw_sim_calendar_grow(struct gw_sim_part *part, struct gw_sim_inbox *inbox);

/* Marks a place to run in a row's window. */
static inline void gw_sim_calendar_mark(const struct gw_sim_row *row, uint32_t place)
{
    gw_bit_set(row->active, place);
}

/* Wakes one of the partition's own places at a time, or earlier. */
static inline void gw_sim_calendar_wake(struct gw_sim_part *part, uint32_t place, gw_time at)
{
    if (at < gw_heap_deadline(&part->wakes, place - part->first))
        gw_heap_set(&part->wakes, place - part->first, at);
}

#endif
