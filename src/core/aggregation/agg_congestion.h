/*
 * What a worker makes of congestion: of marks on gradients and results, and of losses. It decides
 * what its window follows, and what its gradients tell the other workers (agg_rules.h).
 *
 * Together: the window follows results one after the other (agg_window.h). A loss is said in the
 * fragment when it is sent again, since its result is still to come. When it turns out to have come
 * already, the copy of this worker was lost; that, and a mark that a result met on its way here,
 * is said in the next new gradient.
 *
 * Alone, as published: a marked result or a loss halves this worker's window at once.
 *
 * Inline, since every packet passes here.
 */
#ifndef GW_CORE_AGG_CONGESTION_H
#define GW_CORE_AGG_CONGESTION_H

#include "core/aggregation/agg_window.h"
#include "core/aggregation/outstanding.h"

struct gw_agg_congestion {
    struct gw_agg_window window;
    enum gw_agg_limit limit;
    enum gw_agg_halving halving;
    uint32_t span_max; /* consecutive fragments that have an index each */
};

/* Whether the window has room for a fragment that was never sent. */
static inline bool gw_agg_congestion_has_room(const struct gw_agg_congestion *cc,
                                              const struct gw_outstanding *out)
{
    uint32_t window = gw_agg_window_fragments(&cc->window);
    uint32_t span = gw_outstanding_count(out);
    if (cc->limit == GW_AGG_LIMIT_SPAN)
        return span < window;
    return span < cc->span_max && gw_outstanding_unacked(out) < window;
}

/* Whether the gradient of `seq`, new or sent again, tells the other workers of congestion. */
static inline bool gw_agg_congestion_says(struct gw_agg_congestion *cc,
                                          const struct gw_outstanding *out, uint32_t seq,
                                          bool again)
{
    if (cc->halving == GW_AGG_HALVE_ALONE)
        return false;
    return again ? *gw_outstanding_note(out, seq) & GW_NOTE_LOST
                 : gw_agg_window_take_mark(&cc->window);
}

/* A fragment was found lost. Returns how often the window was cut. */
static inline uint32_t gw_agg_congestion_lost(struct gw_agg_congestion *cc,
                                              const struct gw_outstanding *out)
{
    return cc->halving == GW_AGG_HALVE_ALONE &&
           gw_agg_window_cut(&cc->window, out->expected, out->next);
}

/* The result of a fragment that is out has come. Returns how often the window was cut. */
static inline uint32_t gw_agg_congestion_result(struct gw_agg_congestion *cc,
                                                const struct gw_outstanding *out,
                                                const struct gw_pkt *pkt)
{
    uint8_t *note = gw_outstanding_note(out, pkt->seq);
    bool is_marked = pkt->agg_flags & GW_AGG_ECN;
    bool was_met = pkt->q.ecn == GW_ECN_CE;
    if (cc->halving == GW_AGG_HALVE_ALONE) {
        if (is_marked || was_met)
            return gw_agg_window_cut(&cc->window, out->expected, out->next);
        gw_agg_window_grow(&cc->window);
        return 0;
    }
    *note |= is_marked ? GW_NOTE_MARK : 0;
    if (was_met || (*note & GW_NOTE_LOST && !is_marked))
        gw_agg_window_notice(&cc->window, pkt->seq);
    return 0;
}

/* The results of all fragments up to `expected` are there, that of the one before it at last.
 * Returns how often the window was cut. */
static inline uint32_t gw_agg_congestion_advance(struct gw_agg_congestion *cc,
                                                 const struct gw_outstanding *out)
{
    uint32_t seq = out->expected - 1;
    return cc->halving == GW_AGG_HALVE_TOGETHER &&
           gw_agg_window_follow(&cc->window, seq, *gw_outstanding_note(out, seq) & GW_NOTE_MARK);
}

#endif
