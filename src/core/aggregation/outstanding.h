/*
 * The fragments that a worker has out: which of them have their results, which are to be sent
 * again, and how it finds out that one is lost (ATP, section 3.6).
 *
 * Results may come in any order. The expected fragment is lost when three later results have
 * overtaken it, and then when three results of what was sent after its resend have overtaken that.
 * It is lost, too, when nothing has come for a timeout, which doubles as long as nothing comes at
 * all: then it is others that the worker waits for, not packets. One that the server has asked for
 * is held up by a collision, which is no loss: it is sent again when what was sent after the worker
 * noticed that has overtaken it, too, whoever was asked: the answer may be lost, or what is missing
 * be another's.
 *
 * The last fragments have nothing behind them that could overtake them. Once a result has come, and
 * then nothing for longer than is usual between two (patience.h) and two of the shortest round
 * trips (nothing waits in queues any more), the expected fragment is sent again without being
 * called lost: as TCP's tail-loss probe (RFC 8985, section 7), and again after twice that time,
 * until the timeout. While nothing comes but what probes may have brought, and that is more than
 * half of what the last one sent again, the next sends twice as many. As published there is none.
 *
 * Behind the expected fragment there may be others that were overtaken: holes. They are sent again
 * once each, as results come (as TCP's selective repeat, RFC 6675); what is lost of that is found
 * when they are expected.
 *
 * A loss means congestion (NOTE_LOST) unless the owner forgives it, or switch or server know of
 * none (agg_congestion.h). Where the owner wants it, all that is overdue is sent again with the
 * expected fragment.
 *
 * As published (GW_AGG_OVERTAKEN_IN_A_ROW) every three results in a row that are not the expected
 * one mean a loss, whenever what they answer was sent, and a gap costs a round trip for each.
 *
 * Invariants: expected <= next; next - expected <= max; the fragment `expected` has no result; what
 * is noted of a fragment is at its number modulo max.
 */
#ifndef GW_CORE_OUTSTANDING_H
#define GW_CORE_OUTSTANDING_H

#include <stddef.h>

#include "base/index_queue.h"
#include "core/agg_rules.h"
#include "core/aggregation/patience.h"
#include "core/pkt.h"

enum {
    GW_OVERTAKEN_MAX = 3, /* results out of order that mean a loss (ATP, section 3.6) */
    GW_BACKOFF_MAX = 6,   /* doublings of the timeout while nothing comes at all */
    GW_HOLE_RESULTS = 4,  /* for each of them one hole is sent again at most: all workers do so, and
                             a switch does not add them up */
};

/* What is noted of a fragment. */
enum gw_note {
    GW_NOTE_DONE = 1,   /* its result came */
    GW_NOTE_RAW = 2,    /* it travels in the tensor's own type */
    GW_NOTE_QUEUED = 4, /* it waits to be sent again */
    GW_NOTE_ASKED = 8,  /* it was in a collision, and the server asks for what it lacks */
    GW_NOTE_LOST = 16,  /* it was found lost, here */
    GW_NOTE_MARK = 32,  /* its result says that there was congestion */
    GW_NOTE_CUT = 128,  /* and all workers are to cut their windows, unless they have */
    GW_NOTE_ODD = 64,   /* it was first sent after an odd number of cuts of the window */
};

struct gw_outstanding_cfg {
    uint32_t max; /* fragments out at the same time: a power of two */
    uint32_t first_seq;
    gw_time timeout; /* the first one */
    gw_time probe;   /* what is usual counts as this at most, less than that; 0: no probes */
    enum gw_agg_overtaking overtaking;
};

/* Its owner reads `expected` and `next`. */
struct gw_outstanding {
    struct gw_outstanding_cfg cfg;
    uint8_t *notes;   /* enum gw_note */
    gw_time *sent_at; /* the last time */
    uint32_t *resend_seqs;
    struct gw_index_queue resend; /* over them */
    uint32_t expected;            /* first fragment without result */
    uint32_t next;                /* first never sent */
    uint32_t ahead;               /* results that came for fragments behind `expected` */
    uint32_t in_a_row;            /* of them, since the expected one's or the last loss */
    bool was_overtaken;           /* it was, and sent again with what is out before `resent_end` */
    uint32_t resent_end;
    uint32_t newest;       /* fragment with a result */
    uint32_t checked;      /* what lacks a result before it was sent again or asked for; not before
                              the expected fragment */
    uint32_t credit;       /* results since the last hole */
    uint32_t behind;       /* `next` at that time: the resends left before it */
    uint32_t behind_count; /* results since then of what was sent later */
    bool had_timeout;
    struct gw_patience patience; /* of probes, at least two of the shortest trips */
    gw_time last_trips[2];
    gw_time least_trip;     /* of all, slowly forgotten; 0: nothing is known */
    gw_time longest_answer; /* what came longest after its fragment was sent, soon forgotten */
    bool is_timing;         /* a fragment that is out, `timed`, was sent once */
    uint32_t timed;
    bool may_probe;         /* a result has come since others were waited for, and no timeout was
                               since */
    uint8_t probes;         /* since the last result */
    bool resends_gap;       /* every overdue fragment is sent again, not only the expected one; up
                               to the owner, as is the next */
    bool forgives;          /* a loss is not to mean congestion */
    uint64_t results_since; /* of the last timeout or probe */
    uint32_t probed;        /* fragments that the last one sent again, if it was a probe */
    uint8_t timeouts;       /* since the last result */
    gw_time progress_at;    /* last result, last resend by timeout, or begin of work */
};

/* Bytes of memory for gw_outstanding_init(). */
size_t gw_outstanding_size(uint32_t max);

/* Nothing is out, in `memory`, aligned to 64. */
void gw_outstanding_init(struct gw_outstanding *out, void *memory,
                         const struct gw_outstanding_cfg *cfg);

/* Nothing is out any more; `seq` is the next fragment. */
void gw_outstanding_clear(struct gw_outstanding *out, uint32_t seq);

/* Forgets losses, and sends again all that has no result. */
void gw_outstanding_start_over(struct gw_outstanding *out);

/* Time without progress counts from now on; others may have to come first. */
static inline void gw_outstanding_wait(struct gw_outstanding *out, gw_time now)
{
    out->progress_at = now;
    out->may_probe = false;
}

/* What is noted of fragment `seq`. */
static inline uint8_t *gw_outstanding_note(const struct gw_outstanding *out, uint32_t seq)
{
    return &out->notes[seq & (out->cfg.max - 1)];
}

/* When fragment `seq`, one of the last `max`, was sent last. */
static inline gw_time *gw_outstanding_sent_at(const struct gw_outstanding *out, uint32_t seq)
{
    return &out->sent_at[seq & (out->cfg.max - 1)];
}

/* Whether a fragment is between the expected one and the last sent; it may have its result. */
static inline bool gw_outstanding_has(const struct gw_outstanding *out, uint32_t seq)
{
    return seq - out->expected < out->next - out->expected;
}

/* Fragments that are out, or have results but for one before them. */
static inline uint32_t gw_outstanding_count(const struct gw_outstanding *out)
{
    return out->next - out->expected;
}

/* The result of fragment `seq` will tell of no round trip. */
static inline void gw_outstanding_time_not(struct gw_outstanding *out, uint32_t seq)
{
    out->is_timing &= seq != out->timed;
}

/* Sends a fragment that is out once more, unless it has its result or waits already. */
void gw_outstanding_resend(struct gw_outstanding *out, uint32_t seq);

/* Whether some fragment may wait to be sent again. */
static inline bool gw_outstanding_has_resend(const struct gw_outstanding *out)
{
    return out->resend.count > 0;
}

/* Takes the next fragment to send it again; false: there is none. */
bool gw_outstanding_take_resend(struct gw_outstanding *out, uint32_t *seq, gw_time now);

/* Takes the next fragment, for which there must be room, without sending it. */
static inline uint32_t gw_outstanding_pass_next(struct gw_outstanding *out, gw_time now)
{
    if (out->expected == out->next)
        out->progress_at = now;
    *gw_outstanding_note(out, out->next) = 0;
    *gw_outstanding_sent_at(out, out->next) = now;
    return out->next++;
}

/* Takes the next fragment, for which there must be room, to send it. After a time without work the
 * first one begins to wait now. */
static inline uint32_t gw_outstanding_take_next(struct gw_outstanding *out, gw_time now)
{
    if (!out->is_timing) {
        out->is_timing = true;
        out->timed = out->next;
    }
    return gw_outstanding_pass_next(out, now);
}

/* A round trip took so long. */
static inline void gw_outstanding_note_trip(struct gw_outstanding *out, gw_time took)
{
    enum { FORGETS = 256 }; /* so it doubles in 178 that are longer */
    out->last_trips[0] = out->last_trips[1];
    out->last_trips[1] = took;
    if (out->least_trip == 0 || took < out->least_trip)
        out->least_trip = took;
    else
        out->least_trip += out->least_trip / FORGETS;
}

/* Whether round trips are so much longer than the shortest that packets wait somewhere, and not
 * only workers for each other; also while nothing is known. */
static inline bool gw_outstanding_is_queued(const struct gw_outstanding *out)
{
    enum { TIMES = 4 };
    return out->last_trips[0] >= TIMES * out->least_trip &&
           out->last_trips[1] >= TIMES * out->least_trip;
}

/*
 * A result of fragment `seq` has come, which need not be the first. Of what was sent again it may
 * answer an earlier packet: so it says how long answers take at least, and the longest of some
 * come close to that, also when all is sent again.
 */
static inline void gw_outstanding_note_answer(struct gw_outstanding *out, uint32_t seq, gw_time now)
{
    enum { FORGETS = 16 };
    gw_time took = now - *gw_outstanding_sent_at(out, seq);
    if (out->next - 1 - seq >= out->cfg.max || took == 0 ||
        took >= out->cfg.timeout << GW_BACKOFF_MAX)
        return; /* long ago, passed by, or it was a timeout that brought it */
    if (took > out->longest_answer)
        out->longest_answer = took;
    else
        out->longest_answer -= out->longest_answer / FORGETS;
}

/* The results of `count` fragments that are out have come, from `seq` on: of one, or of some from
 * the expected one on while none behind them has. Of these `behind_count` tells nothing: it begins
 * anew before it is asked. */
static inline void gw_outstanding_finish(struct gw_outstanding *out, uint32_t seq, uint32_t count,
                                         gw_time now)
{
    if (out->is_timing && out->timed - seq < count) {
        out->is_timing = false;
        gw_outstanding_note_trip(out, now - *gw_outstanding_sent_at(out, out->timed));
    }
    for (uint32_t at = seq; at != seq + count; at++) {
        *gw_outstanding_note(out, at) |= GW_NOTE_DONE;
        if (!gw_seq_before(out->newest, at))
            continue; /* what came first was lost, there or back */
        gw_outstanding_note_answer(out, at, now);
        out->newest = at;
    }
    if (out->may_probe)
        gw_patience_result(&out->patience, now - out->progress_at, count, out->cfg.max);
    else if (out->cfg.probe && count > 1)
        gw_patience_result(&out->patience, 0, count - 1, out->cfg.max);
    out->ahead += count;
    out->credit += count;
    out->in_a_row += count;
    out->behind_count += gw_seq_before(seq, out->behind) ? 0 : count;
    out->results_since += count;
    out->progress_at = now;
    out->timeouts = out->probes = 0;
    out->may_probe = out->cfg.probe != 0;
}

/* Moves `expected` on by one if that fragment has its result; false: it has not. */
static inline bool gw_outstanding_advance(struct gw_outstanding *out)
{
    if (out->expected == out->next || !(*gw_outstanding_note(out, out->expected) & GW_NOTE_DONE))
        return false;
    /* Numbers wrap: what says where something ends goes along. */
    out->checked += out->checked == out->expected;
    out->expected++;
    out->was_overtaken &= out->expected != out->resent_end;
    out->ahead--;
    out->in_a_row = 0;
    return true;
}

/* Sends again what is out before `end`, lacks its result, and was sent longer ago than answers
 * take; that is no loss. */
void gw_outstanding_resend_before(struct gw_outstanding *out, uint32_t end, gw_time now);

/* By how many results the expected fragment has been overtaken, or what was sent of it again. */
static inline uint32_t gw_outstanding_overtaken_by(const struct gw_outstanding *out)
{
    return out->cfg.overtaking == GW_AGG_OVERTAKEN_IN_A_ROW ? out->in_a_row
           : out->was_overtaken                             ? out->behind_count
                                                            : out->ahead;
}

/* Whether it is time to look for a hole. */
static inline bool gw_outstanding_may_have_hole(const struct gw_outstanding *out)
{
    return out->ahead && out->credit >= GW_HOLE_RESULTS &&
           out->cfg.overtaking == GW_AGG_OVERTAKEN_COUNTED;
}

/* Whether there is reason to look for a loss; without, there is nothing to be found. */
static inline bool gw_outstanding_suspects_loss(const struct gw_outstanding *out)
{
    return gw_outstanding_overtaken_by(out) >= GW_OVERTAKEN_MAX ||
           gw_outstanding_may_have_hole(out);
}

/*
 * Notices that the expected fragment has been overtaken, and then that its resend has been, by what
 * was sent after it. A fragment that becomes the expected one may have been overtaken long ago.
 * Or a hole is found. `seq` is the fragment whose result has come. True: one is lost, and will be
 * sent again.
 */
bool gw_outstanding_detect_loss(struct gw_outstanding *out, uint32_t seq);

/* Looks for a timeout. True: something is lost, and will be sent again. A probe is no loss. */
bool gw_outstanding_expire(struct gw_outstanding *out, gw_time now);

/* When to look again. */
gw_time gw_outstanding_deadline(const struct gw_outstanding *out, gw_time now);

#endif
