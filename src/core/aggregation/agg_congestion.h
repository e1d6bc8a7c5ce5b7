/*
 * What a worker makes of congestion: of marks on gradients and results, and of losses. It decides
 * what its window follows, and what its gradients tell the other workers (agg_rules.h).
 *
 * Together: the window follows results one after the other (agg_window.h). A loss is said in the
 * fragment when it is sent again, since its result is still to come. When it turns out to have come
 * already, so that this worker gets one of its own, or to lack workers, its copy was lost, or what
 * it had sent; that, and a mark that a result met on its way here, is said in the next new
 * gradient. Where the sum had the fragment all the time there was no loss, others were late, and
 * switch and server do not pass it on. Until a cut that is likely to come has come, behind a
 * fragment that lacks its result, the worker sends as if it had been cut.
 *
 * Alone, as published: a marked result or a loss halves this worker's window at once.
 *
 * Inline, since every packet passes here.
 */
#ifndef GW_CORE_AGG_CONGESTION_H
#define GW_CORE_AGG_CONGESTION_H

#include "core/aggregation/agg_bound.h"
#include "core/aggregation/agg_window.h"
#include "core/aggregation/outstanding.h"

struct gw_agg_congestion {
    struct gw_agg_window window;
    enum gw_agg_halving halving;
    uint32_t span_max; /* consecutive fragments that have an index each */
    uint32_t end;      /* first fragment that may not be sent yet */
    uint32_t foreseen; /* marked results behind the expected fragment that will mean a cut */
};

/* What begins with an epoch. */
static inline void gw_agg_congestion_restart(struct gw_agg_congestion *cc)
{
    gw_agg_window_restart(&cc->window);
    cc->foreseen = 0;
}

/* Whether fragment `seq`, which is out, was sent before the last cut. */
static inline bool gw_agg_congestion_is_before_cut(const struct gw_agg_congestion *cc,
                                                   const struct gw_outstanding *out, uint32_t seq)
{
    bool is_odd = *gw_outstanding_note(out, seq) & GW_NOTE_ODD;
    return is_odd != cc->window.is_odd;
}

/* Whether a cut is likely to come, behind a fragment that lacks its result. */
static inline bool gw_agg_congestion_foresees(const struct gw_agg_congestion *cc,
                                              const struct gw_outstanding *out)
{
    if (cc->halving == GW_AGG_HALVE_ALONE || cc->window.is_fixed || out->expected == out->next)
        return false;
    return cc->foreseen || (*gw_outstanding_note(out, out->expected) & GW_NOTE_LOST &&
                            !gw_agg_congestion_is_before_cut(cc, out, out->expected));
}

/* The window, results or losses have changed: finds out anew what may be sent. */
static inline void gw_agg_congestion_update(struct gw_agg_congestion *cc,
                                            const struct gw_outstanding *out)
{
    uint64_t size = cc->window.size;
    if (gw_agg_congestion_foresees(cc, out))
        size = gw_agg_window_half(&cc->window);
    uint32_t span = (uint32_t)(size >> 16) + out->ahead;
    cc->end = out->expected + (span < cc->span_max ? span : cc->span_max);
}

/* Whether the window has room for a fragment that was never sent. */
static inline bool gw_agg_congestion_has_room(const struct gw_agg_congestion *cc,
                                              const struct gw_outstanding *out)
{
    return gw_seq_before(out->next, cc->end);
}

/* What the gradient of `seq`, new or sent again, tells the other workers of congestion: flags. */
static inline uint8_t gw_agg_congestion_says(struct gw_agg_congestion *cc,
                                             const struct gw_outstanding *out, uint32_t seq,
                                             bool again)
{
    uint8_t *note = gw_outstanding_note(out, seq);
    if (cc->halving == GW_AGG_HALVE_ALONE)
        return 0;
    if (!again && cc->window.is_odd)
        *note |= GW_NOTE_ODD;
    bool says_mark = again ? *note & GW_NOTE_LOST : gw_agg_window_take_mark(&cc->window);
    return (uint8_t)((*note & GW_NOTE_ODD ? GW_AGG_ODD : GW_AGG_EVEN) |
                     (says_mark ? GW_AGG_ECN : 0));
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
    bool is_sure = is_marked && !(pkt->agg_flags & GW_AGG_MIXED);
    /* What counts is when the contributors sent it, of whom this worker may be none. They may have
     * got results by then that it still lacks, so whether that was before the last cut turns out
     * when it has those, too. */
    if (gw_agg_result_lacks(pkt->agg.bitmap)) {
        *note = (uint8_t)((*note & ~GW_NOTE_ODD) |
                          (gw_agg_result_is_odd(pkt->agg.bitmap) ? GW_NOTE_ODD : 0));
        *note |= is_sure ? GW_NOTE_CUT : 0;
    }
    if (gw_agg_congestion_is_before_cut(cc, out, pkt->seq)) {
        *note |= is_marked ? GW_NOTE_MARK : 0; /* nothing new, but no reason to grow */
        return 0;
    }
    *note |= is_marked ? GW_NOTE_MARK : 0;
    *note |= is_sure ? GW_NOTE_CUT : 0;
    cc->foreseen += is_sure;
    /* Without a tree each result is for one worker, so that nothing tells who waited. */
    bool had_all = !(pkt->agg_flags & GW_AGG_UNICAST) && !gw_agg_result_lacks(pkt->agg.bitmap);
    bool was_lost = *note & GW_NOTE_LOST && !is_marked && !had_all;
    if (was_met || was_lost)
        gw_agg_window_notice(&cc->window);
    return 0;
}

/* The results of all fragments up to `expected` are there, that of the one before it at last.
 * Returns how often the window was cut. */
static inline uint32_t gw_agg_congestion_advance(struct gw_agg_congestion *cc,
                                                 const struct gw_outstanding *out)
{
    uint32_t seq = out->expected - 1;
    uint8_t note = *gw_outstanding_note(out, seq);
    if (cc->halving == GW_AGG_HALVE_ALONE)
        return 0;
    if (!(note & GW_NOTE_MARK))
        gw_agg_window_grow(&cc->window);
    if (!(note & GW_NOTE_CUT) || gw_agg_congestion_is_before_cut(cc, out, seq))
        return 0;
    cc->foreseen = 0; /* the others had been sent before, too */
    return gw_agg_window_halve(&cc->window);
}

#endif
