/*
 * Loss detection: when a packet in flight counts as lost. Repair is the flow's: it resends lost
 * packets before new ones, within the window.
 *
 * The flow keeps its packets in flight in the order of sending. An algorithm says how long the
 * oldest may stay unanswered, what follows from that, and whether a NACK is believed. One that
 * infers losses from what arrived says as well before which time all that is still in flight was
 * lost. One file here and one line in loss.def make an algorithm.
 */
#ifndef GW_CORE_LOSS_H
#define GW_CORE_LOSS_H

#include "core/algo.h"
#include "core/path.h"

enum {
    GW_LOSS_STATE_MAX = 128, /* bytes of private memory per flow */
};

/* What a timeout means. */
enum gw_loss_verdict {
    GW_LOSS_OLDEST, /* the oldest packet is lost; the next one may be as old */
    GW_LOSS_ALL,    /* all that is in flight is lost */
    GW_LOSS_PROBE,  /* nothing yet: one more packet is to leave, for the answer to it */
    GW_LOSS_ASK,    /* all but the oldest packet is lost; of that the header is to leave, as if a
                       switch had trimmed it, and nothing else until the receiver says by a NACK
                       that it lacks the packet */
};

struct gw_loss_ops {
    struct gw_algo algo;
    void (*init)(void *state, const void *cfg, const struct gw_path *path);
    /* A NACK tells that a packet in flight was trimmed: is it lost? */
    bool (*on_nack)(void *state, const void *cfg);
    /* Something new was acknowledged, by the ACK of a packet sent at `sent_at`, `rtt` ago. */
    void (*on_ack)(void *state, const void *cfg, gw_time sent_at, gw_time rtt);
    /* How long the oldest packet in flight may stay unanswered. */
    gw_time (*period)(const void *state, const void *cfg);
    /* A packet sent at `sent_at` stayed so for as long. */
    enum gw_loss_verdict (*on_timeout)(void *state, const void *cfg, gw_time sent_at, gw_time now);

    /* Of an algorithm that infers losses from arrivals; else both are NULL. */
    /* A packet whose only copy in flight was sent at `sent_at` has arrived. What is in flight and
     * was sent before the time that is returned is lost; GW_TIME_NEVER: nothing is. Called for each
     * packet, before on_ack. Times are whole ticks: of packets that share one, none is earlier. */
    gw_time (*on_delivery)(void *state, const void *cfg, gw_time sent_at);
    /* By that something was lost. */
    void (*on_loss)(void *state, const void *cfg, gw_time now);

    bool restarts; /* what the period is counted from: the later of a packet's sending and the
                      latest answer; else its sending */
};

extern const struct gw_registry gw_loss_registry;

#endif
