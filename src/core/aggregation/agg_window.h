/*
 * The window of a worker: how many fragments it may have out. It follows congestion by slow start,
 * additive increase and multiplicative decrease, at most once per window of fragments (ATP, section
 * 3.7).
 *
 * Invariant (GW_AGG_HALVE_TOGETHER): the window is a function of the results of one fragment after
 * the other, in the order of their numbers, whatever order they arrive in. A result is the same for
 * all, so workers that expect the same fragment have the same window. It is cut at a marked
 * fragment unless some worker had sent that before the last cut; gradients say after how many cuts
 * they were sent (one bit will do), and the result whether all were alike. What one worker alone
 * notices, a mark or a loss of its own copy of a result, it says in its next gradient; the result
 * of that one says it to all.
 *
 * A worker that lacks a copy is behind until it has it: others can get results of what it has sent,
 * no more, and all of that was sent after the same cuts, so at most one follows. So its window
 * differs from theirs by at most one cut, for as long as the copy takes: a round trip after three
 * later results have come, else a timeout and a round trip.
 *
 * As published (GW_AGG_HALVE_ALONE) each worker follows what it notices, at once.
 */
#ifndef GW_CORE_AGG_WINDOW_H
#define GW_CORE_AGG_WINDOW_H

#include "base/fixed.h"
#include "core/pkt.h"

struct gw_agg_window {
    uint64_t size;      /* 1/65536 fragments, as are the next five */
    uint64_t threshold; /* of slow start */
    uint64_t increase;  /* per window, or per result in slow start */
    uint64_t initial;
    uint64_t least;
    uint64_t most;
    uint32_t cut_at; /* alone: first fragment not sent at the last cut, no other until it is
                        expected */
    bool was_cut;
    bool is_odd;    /* together: it was cut an odd number of times */
    bool is_fixed;  /* no congestion control */
    bool owes_mark; /* this worker noticed congestion, and has not told the others */
};

/* What begins with an epoch. */
static inline void gw_agg_window_restart(struct gw_agg_window *window)
{
    window->size = window->initial;
    window->threshold = UINT64_MAX;
    window->was_cut = window->is_odd = window->owes_mark = false;
}

static inline uint32_t gw_agg_window_fragments(const struct gw_agg_window *window)
{
    return (uint32_t)(window->size >> 16);
}

/* Half of it, or the least. */
static inline uint64_t gw_agg_window_half(const struct gw_agg_window *window)
{
    return window->size / 2 > window->least ? window->size / 2 : window->least;
}

/* Halves it. Returns whether it did. */
static inline bool gw_agg_window_halve(struct gw_agg_window *window)
{
    if (window->is_fixed)
        return false;
    window->size = window->threshold = gw_agg_window_half(window);
    window->is_odd = !window->is_odd;
    return true;
}

/* Halves it, unless that was done for fragments at or behind `expected`. `next` is the first that
 * has not been sent. Returns whether it did. */
static inline bool gw_agg_window_cut(struct gw_agg_window *window, uint32_t expected, uint32_t next)
{
    if (window->was_cut && gw_seq_before(expected, window->cut_at))
        return false;
    window->cut_at = next;
    window->was_cut = gw_agg_window_halve(window);
    return window->was_cut;
}

/* A result came without a mark. */
static inline void gw_agg_window_grow(struct gw_agg_window *window)
{
    if (window->is_fixed || window->size == window->most)
        return;
    window->size += window->size < window->threshold ? window->increase
                                                     : (window->increase << 16) / window->size;
    if (window->size > window->most)
        window->size = window->most;
}

/* This worker alone noticed congestion. */
static inline void gw_agg_window_notice(struct gw_agg_window *window)
{
    window->owes_mark = !window->is_fixed;
}

/* Whether a new gradient is to say so. */
static inline bool gw_agg_window_take_mark(struct gw_agg_window *window)
{
    bool owes_mark = window->owes_mark;
    window->owes_mark = false;
    return owes_mark;
}

#endif
