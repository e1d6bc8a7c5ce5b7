/*
 * The window of a worker: how many fragments it may have out. It follows congestion by slow start,
 * additive increase and multiplicative decrease, at most once per window of fragments (ATP, section
 * 3.7).
 *
 * Invariant (GW_AGG_HALVE_TOGETHER): the window is a function of the results of one fragment after
 * the other, in the order of their numbers, whatever order they arrive in. A result is the same for
 * all, so workers that expect the same fragment have the same window. What one worker alone
 * notices, a mark or a loss of its own copy of a result, it says in its next gradient; the result
 * of that one says it to all. A worker that lacks a copy is behind until it has it: others can get
 * results of what it has sent, a window, and in one window there is one cut. So its window differs
 * from theirs by at most one cut, and for as long as the copy takes: a round trip after three later
 * results have come, else a timeout and a round trip.
 *
 * As published (GW_AGG_HALVE_ALONE) each worker follows what it notices, at once; the owner then
 * calls cut and grow itself.
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
    uint32_t cut_at; /* first fragment not sent at the last cut: no other until it is expected */
    bool was_cut;
    bool is_fixed;  /* no congestion control */
    bool owes_mark; /* this worker noticed congestion, and has not told the others */
};

/* What begins with an epoch. */
static inline void gw_agg_window_restart(struct gw_agg_window *window)
{
    window->size = window->initial;
    window->threshold = UINT64_MAX;
    window->was_cut = window->owes_mark = false;
}

static inline uint32_t gw_agg_window_fragments(const struct gw_agg_window *window)
{
    return (uint32_t)(window->size >> 16);
}

/* Whether the last cut was for fragment `seq`, too: it left before that. */
static inline bool gw_agg_window_covers(const struct gw_agg_window *window, uint32_t seq)
{
    return window->was_cut && gw_seq_before(seq, window->cut_at);
}

/* Halves it, unless that was done for fragments at or behind `expected`. `next` is the first that
 * has not been sent. Returns whether it did. */
static inline bool gw_agg_window_cut(struct gw_agg_window *window, uint32_t expected, uint32_t next)
{
    if (window->is_fixed || gw_agg_window_covers(window, expected))
        return false;
    window->size = window->size / 2 > window->least ? window->size / 2 : window->least;
    window->threshold = window->size;
    window->cut_at = next;
    window->was_cut = true;
    return true;
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

/*
 * The result of `seq` is there, and those of all fragments before it. No worker can have sent more
 * than the window at that time; this does not depend on what this one has sent. Returns whether the
 * window was cut.
 */
static inline bool gw_agg_window_follow(struct gw_agg_window *window, uint32_t seq, bool is_marked)
{
    if (is_marked)
        return gw_agg_window_cut(window, seq, seq + gw_agg_window_fragments(window));
    gw_agg_window_grow(window);
    return false;
}

/* This worker alone noticed congestion, by the result of `seq`. */
static inline void gw_agg_window_notice(struct gw_agg_window *window, uint32_t seq)
{
    window->owes_mark |= !window->is_fixed && !gw_agg_window_covers(window, seq);
}

/* Whether a new gradient is to say so. */
static inline bool gw_agg_window_take_mark(struct gw_agg_window *window)
{
    bool owes_mark = window->owes_mark;
    window->owes_mark = false;
    return owes_mark;
}

#endif
