/*
 * Load balancing: which entropy the next packet (or train) carries, and so which path ECMP gives
 * it.
 *
 * One file here and one line in lb.def make an algorithm. Hooks are called for every ACK, NACK and
 * timeout, also while congestion control ignores them.
 */
#ifndef GW_CORE_LB_H
#define GW_CORE_LB_H

#include "base/prng.h"
#include "core/algo.h"
#include "core/path.h"

enum {
    GW_LB_STATE_MAX = 64, /* bytes of private memory per flow */
};

/* How switches choose among next hops of equal cost. */
enum gw_spread {
    GW_SPREAD_HASH,   /* by a hash of flow and entropy: ECMP */
    GW_SPREAD_TURNS,  /* one after the other, per set of next hops, whatever the packet says */
    GW_SPREAD_LABELS, /* the entropy is the label of a path, of which each switch takes a digit */
};

/* What an ACK, or the NACK of a trimmed packet, says of the packet that caused it. */
struct gw_lb_echo {
    gw_time rtt;        /* since that packet was sent */
    uint32_t in_flight; /* payload bytes of the flow; an acknowledged packet is out of it already */
    uint16_t entropy;   /* that the packet carried */
    bool ce;            /* it arrived with CE */
};

/* What an entropy is asked for: a packet, or a train that begins with it. */
struct gw_lb_next {
    uint32_t bytes; /* payload */
    bool is_resent; /* it was sent before */
};

struct gw_lb_ops {
    struct gw_algo algo;
    enum gw_spread spread; /* what it asks of the switches on the way */
    /* A flow starts; `prng` is its own stream, to be copied into the state if needed later. */
    void (*init)(void *state, const void *cfg, const struct gw_path *path, struct gw_prng prng);
    uint16_t (*pick)(void *state, const void *cfg, const struct gw_lb_next *next, gw_time now);
    /* A packet was acknowledged. */
    void (*on_ack)(void *state, const void *cfg, const struct gw_lb_echo *echo, gw_time now);
    /* A packet was trimmed. */
    void (*on_trim)(void *state, const void *cfg, const struct gw_lb_echo *echo, gw_time now);
    /* A packet was given up that was sent at `sent_at`; its entropy is not known any more. */
    void (*on_timeout)(void *state, const void *cfg, gw_time sent_at, gw_time now);
};

extern const struct gw_registry gw_lb_registry;

#endif
