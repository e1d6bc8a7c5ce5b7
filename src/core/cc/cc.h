/*
 * Congestion control: how many bytes a flow may have in flight, and how fast it may send.
 *
 * An algorithm gets zeroed private memory, a read-only sample and `now`; it answers with a window.
 * It never sees the flow. One file here and one line in cc.def make an algorithm.
 */
#ifndef GW_CORE_CC_H
#define GW_CORE_CC_H

#include "core/algo.h"
#include "core/path.h"

enum {
    GW_CC_STATE_MAX = 128, /* bytes of private memory per flow */
};

/* The decision. */
struct gw_cc_window {
    uint64_t cwnd;        /* bytes of payload that may be in flight; one packet is always allowed
                             when nothing is in flight */
    gw_byte_time pace;    /* least time per wire byte between packets; 0: not paced */
    gw_time silent_until; /* while is_silent: when on_silence_end is called, later than now */
    bool is_silent;       /* nothing at all is sent until then; false when a flow starts */
};

/* Data was acknowledged for the first time. */
struct gw_cc_ack {
    uint32_t bytes;     /* payload newly acknowledged */
    uint32_t in_flight; /* payload in flight, without those bytes */
    gw_time rtt;        /* of the packet that caused the ACK */
    bool ce;            /* that packet carried CE */
};

/* A packet was lost: trimmed, or given up by loss detection. */
struct gw_cc_loss {
    uint32_t bytes;     /* payload of the packet */
    uint32_t in_flight; /* payload in flight, without it */
    gw_time sent_at;    /* when it was last sent */
    bool trimmed;       /* a NACK told of it; else it was inferred */
    bool is_timeout;    /* from its age; else from answers to other packets, or by a NACK */
    bool is_again;      /* it had been lost before */
};

/*
 * Of a blast (host/blast.h), whose packets are not acknowledged: what its receiver reports once per
 * period, beside what was sent in the period of the same number. Both count periods from the first
 * packet of a round, each at its own end.
 */
struct gw_cc_report {
    gw_time period;
    uint64_t sent;     /* wire bytes in the period */
    uint64_t received; /* likewise; 0 when three reports in a row are missing */
};

struct gw_cc_ops {
    struct gw_algo algo;
    /* A flow starts. `path` stays valid and unchanged while the flow lives, as does `cfg`. */
    void (*init)(void *state, const void *cfg, const struct gw_path *path,
                 struct gw_cc_window *window, gw_time now);
    void (*on_ack)(void *state, const void *cfg, const struct gw_path *path,
                   const struct gw_cc_ack *ack, struct gw_cc_window *window, gw_time now);
    void (*on_loss)(void *state, const void *cfg, const struct gw_path *path,
                    const struct gw_cc_loss *loss, struct gw_cc_window *window, gw_time now);
    /* The silence is over that the algorithm asked for, and `in_flight` bytes are out; NULL: it
     * never asks. */
    void (*on_silence_end)(void *state, const void *cfg, const struct gw_path *path,
                           uint32_t in_flight, struct gw_cc_window *window, gw_time now);
    /* A flow ends: what the next one to the same peer gets as its path's `memory`, not 0. NULL:
     * there is nothing to remember but the window. */
    uint64_t (*remember)(const void *state, const void *cfg);
    /* Of an algorithm for blasts; else both are NULL. Its windows are only paced. */
    /* A round begins in which the packets are sent that the receiver asked for. */
    void (*on_round)(void *state, const void *cfg, const struct gw_path *path,
                     struct gw_cc_window *window, gw_time now);
    void (*on_report)(void *state, const void *cfg, const struct gw_path *path,
                      const struct gw_cc_report *report, struct gw_cc_window *window, gw_time now);
    /* Its blasts from one host to another have one state together, which hears of all of them
     * (host/blast_lane.h); else each has its own. */
    bool shares_lane;
    /* Nothing but losses and marks end the growth of a window that is used: it is not bounded by
     * the bdp, but by what queues hold. */
    bool exceeds_bdp;
};

extern const struct gw_registry gw_cc_registry;

/* For algorithms to which acknowledgements, or losses, say nothing. */

static inline void gw_cc_ignore_ack(void *state, const void *cfg, const struct gw_path *path,
                                    const struct gw_cc_ack *ack, struct gw_cc_window *window,
                                    gw_time now)
{
    (void)state;
    (void)cfg;
    (void)path;
    (void)ack;
    (void)window;
    (void)now;
}

static inline void gw_cc_ignore_loss(void *state, const void *cfg, const struct gw_path *path,
                                     const struct gw_cc_loss *loss, struct gw_cc_window *window,
                                     gw_time now)
{
    (void)state;
    (void)cfg;
    (void)path;
    (void)loss;
    (void)window;
    (void)now;
}

#endif
