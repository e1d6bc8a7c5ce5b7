/*
 * Loss detection: when a packet in flight counts as lost. Repair is the flow's: it resends lost
 * packets before new ones, within the window.
 *
 * The flow keeps its packets in flight in the order of sending; an algorithm only says how long the
 * oldest may stay unanswered and whether a NACK is believed. One file here and one line in loss.def
 * make an algorithm.
 */
#ifndef GW_CORE_LOSS_H
#define GW_CORE_LOSS_H

#include "core/algo.h"
#include "core/path.h"

enum {
    GW_LOSS_STATE_MAX = 32, /* bytes of private memory per flow */
};

struct gw_loss_ops {
    struct gw_algo algo;
    void (*init)(void *state, const void *cfg, const struct gw_path *path);
    /* A NACK tells that a packet in flight was trimmed: is it lost? */
    bool (*on_nack)(void *state, const void *cfg);
    /* A packet sent at `sent_at` was acknowledged. */
    void (*on_ack)(void *state, const void *cfg, gw_time sent_at);
    /* Age at which the oldest packet in flight is lost. */
    gw_time (*period)(const void *state, const void *cfg);
    /* A packet sent at `sent_at` reached that age. */
    void (*on_timeout)(void *state, const void *cfg, gw_time sent_at, gw_time now);
};

extern const struct gw_registry gw_loss_registry;

#endif
