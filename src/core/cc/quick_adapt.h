/*
 * QuickAdapt: when packets were lost, the window becomes what arrived within an interval
 * (SMaRTT-REPS, section 3.3, Algorithm 2). Any algorithm with a window can have it.
 *
 * Its owner tells it of every ACK and every loss, before it reacts to them itself, and gets advice
 * back: a new window, and whether that is all that this feedback should change. What was in flight
 * when the window was set tells of the time before; so a phase follows in which feedback is
 * ignored.
 *
 * A trimmed packet counts as its header, a timed out one as nothing; else what was offered would be
 * measured, not what arrived. The printed algorithm counts both in full, and lets losses within the
 * phase ask for the next QuickAdapt: qa_credit=packet qa_ignores=acks.
 *
 * Where switches do not trim, nothing may come back for long, and what is sent meanwhile is lost as
 * well. With qa_silence intervals follow one another from the flow's beginning, and a loss that
 * asks for a QuickAdapt silences the sender until the end of the interval, which then sets the
 * window.
 *
 * Invariant: between two QuickAdapts lie an interval, and the phase of the first.
 */
#ifndef GW_CORE_QUICK_ADAPT_H
#define GW_CORE_QUICK_ADAPT_H

#include "base/fixed.h"
#include "core/cc/cc.h"

/* What is ignored in the phase. */
enum gw_quick_adapt_ignored {
    GW_QUICK_ADAPT_IGNORES_ALL,
    GW_QUICK_ADAPT_IGNORES_MARKED, /* marked ACKs and losses */
    GW_QUICK_ADAPT_IGNORES_LOSSES,
    GW_QUICK_ADAPT_IGNORES_ACKS, /* a loss in the phase is remembered until it ends */
};

enum gw_quick_adapt_moment {
    GW_QUICK_ADAPT_ON_FEEDBACK,
    GW_QUICK_ADAPT_ON_LOSSES, /* an ACK neither begins nor ends an interval */
};

enum gw_quick_adapt_credit {
    GW_QUICK_ADAPT_CREDITS_HEADER,
    GW_QUICK_ADAPT_CREDITS_NOTHING,
    GW_QUICK_ADAPT_CREDITS_PACKET,
};

struct gw_quick_adapt_cfg {
    gw_q16 qa_interval;
    gw_q16 qa_gap;
    gw_q16 qa_scaling;
    gw_q16 qa_ignore_length;
    uint32_t qa_ignores; /* enum gw_quick_adapt_ignored */
    uint32_t qa_on;      /* enum gw_quick_adapt_moment */
    uint32_t qa_credit;  /* enum gw_quick_adapt_credit */
    bool quick_adapt;
    bool qa_normalise;
    bool qa_late;
    bool qa_silence; /* for owners with on_silence_end */
};

/* Rows of a parameter table: `member` is the struct gw_quick_adapt_cfg within `cfg_type`; whether
 * it is on, and its interval, are the owner's choice. */
#define GW_QUICK_ADAPT_PARAMS(cfg_type, member, is_on, interval)                                   \
    GW_PARAM_IN(cfg_type, member, BOOL, quick_adapt, is_on,                                        \
                "QuickAdapt: losses set the window to what arrived (SMaRTT-REPS, section 3.3)"),   \
        GW_PARAM_IN(cfg_type, member, Q16, qa_interval, interval,                                  \
                    "interval in which arrivals count, multiple of the base RTT; 0: the target "   \
                    "RTT, or the base RTT where there is none (SMaRTT-REPS, Algorithm 2; its "     \
                    "authors' simulator: 0 in 2023, 1 in 2024)"),                                  \
        GW_PARAM_IN(cfg_type, member, Q16, qa_gap, "0",                                            \
                    "intervals after a QuickAdapt in which losses ask for no other (not in the "   \
                    "paper; the authors' simulator of March 2024: 3)"),                            \
        GW_PARAM_IN(cfg_type, member, Q16, qa_scaling, "0.8",                                      \
                    "share of the measured bytes that becomes the window (SMaRTT-REPS, section "   \
                    "3.5)"),                                                                       \
        GW_PARAM_IN(cfg_type, member, BOOL, qa_normalise, "no",                                    \
                    "scale the measured bytes down to one interval after a silence (not in the "   \
                    "paper; the authors' simulator of 2023: yes)"),                                \
        GW_PARAM_IN(cfg_type, member, BOOL, qa_late, "no",                                         \
                    "the ACK that ends an interval counts in the next one (SMaRTT-REPS, "          \
                    "Algorithm 1 line 4: no; the authors' simulator: yes)"),                       \
        GW_PARAM_IN(cfg_type, member, Q16, qa_ignore_length, "1",                                  \
                    "bytes of feedback that are ignored, multiple of what is in flight "           \
                    "(SMaRTT-REPS, Algorithm 2; the authors' simulator of 2023: 1.25)"),           \
        GW_CHOICE_IN(                                                                              \
            cfg_type, member, qa_ignores, "all|marked|losses|acks",                                \
            "feedback that is ignored then; marked: marked ACKs and losses; acks: losses "         \
            "are reacted to (SMaRTT-REPS, section 3.3; the authors' simulator: marked)"),          \
        GW_CHOICE_IN(cfg_type, member, qa_on, "feedback|losses",                                   \
                     "what ends an interval: ACKs and losses, or losses alone (SMaRTT-REPS, "      \
                     "Algorithm 1; the authors' simulator has losses for Swift)"),                 \
        GW_CHOICE_IN(cfg_type, member, qa_credit, "header|nothing|packet",                         \
                     "what of a trimmed packet counts as arrived (the authors' simulator; "        \
                     "SMaRTT-REPS, Algorithm 1 line 4: packet, of a timed out one too)")

/* One more row, for owners with on_silence_end. */
#define GW_QUICK_ADAPT_SILENCE_PARAM(cfg_type, member)                                             \
    GW_PARAM_IN(                                                                                   \
        cfg_type, member, BOOL, qa_silence, "no",                                                  \
        "after a loss nothing is sent until the end of the interval, which sets the "              \
        "window; what is ignored then counts the new window as in flight, and losses cut "         \
        "nothing else (not in the paper; the authors' simulator where switches drop: yes)")

struct gw_quick_adapt {
    gw_time interval;
    gw_time end;      /* of the interval; meaningless until `started` */
    gw_time rest_end; /* of the gap; meaningless until there was a QuickAdapt */
    uint32_t acked;   /* bytes that reached the peer in this interval */
    uint32_t ignore;  /* bytes of feedback until the phase ends */
    uint16_t count;   /* of QuickAdapts; stops at UINT16_MAX */
    bool started;     /* the first interval has begun */
    bool lossy;       /* a loss waits for the end of the interval */
};

struct gw_quick_adapt_advice {
    uint64_t cwnd; /* new window, 1/65536 byte, not bounded by any but 32 bits; 0: as it is */
    bool is_done;  /* the feedback should change nothing else */
};

/* `target`: the RTT that the owner aims at, or the base RTT. */
void gw_quick_adapt_init(struct gw_quick_adapt *qa, const struct gw_quick_adapt_cfg *cfg,
                         gw_time base, gw_time target);

/* An ACK to which its owner does not react, and which ends no interval: only counts it. */
struct gw_quick_adapt_advice gw_quick_adapt_count(struct gw_quick_adapt *qa,
                                                  const struct gw_quick_adapt_cfg *cfg,
                                                  const struct gw_cc_ack *ack, gw_time now);

struct gw_quick_adapt_advice gw_quick_adapt_on_ack(struct gw_quick_adapt *qa,
                                                   const struct gw_quick_adapt_cfg *cfg,
                                                   const struct gw_path *path,
                                                   const struct gw_cc_ack *ack, gw_time now);

struct gw_quick_adapt_advice gw_quick_adapt_on_loss(struct gw_quick_adapt *qa,
                                                    const struct gw_quick_adapt_cfg *cfg,
                                                    const struct gw_path *path,
                                                    const struct gw_cc_loss *loss, gw_time now);

/* With qa_silence: the flow begins. */
void gw_quick_adapt_start(struct gw_quick_adapt *qa, gw_time now);

/* With qa_silence, after what may have begun a silence or ended one: says so in the window. */
void gw_quick_adapt_say_silence(const struct gw_quick_adapt *qa,
                                const struct gw_quick_adapt_cfg *cfg, struct gw_cc_window *window);

/* The silence is over: the new window. */
uint64_t gw_quick_adapt_on_silence_end(struct gw_quick_adapt *qa,
                                       const struct gw_quick_adapt_cfg *cfg,
                                       const struct gw_path *path, uint32_t in_flight, gw_time now);

#endif
