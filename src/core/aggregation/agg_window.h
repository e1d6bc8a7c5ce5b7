/*
 * The window of a worker: how many fragments it may have out. It follows the congestion marks that
 * results carry, by slow start, additive increase and multiplicative decrease, at most once per
 * window of fragments (ATP, section 3.7).
 *
 * It depends on nothing but results, so all workers of a job have the same.
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
    bool is_fixed; /* no congestion control */
};

/* What begins with an epoch. */
static inline void gw_agg_window_restart(struct gw_agg_window *window)
{
    window->size = window->initial;
    window->threshold = UINT64_MAX;
    window->was_cut = false;
}

static inline uint32_t gw_agg_window_fragments(const struct gw_agg_window *window)
{
    return (uint32_t)(window->size >> 16);
}

/* Halves it, unless that was done for fragments at or behind `expected`. `next` is the first that
 * has not been sent. Returns whether it did. */
static inline bool gw_agg_window_cut(struct gw_agg_window *window, uint32_t expected, uint32_t next)
{
    if (window->is_fixed || (window->was_cut && gw_seq_before(expected, window->cut_at)))
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

#endif
