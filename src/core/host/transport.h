/*
 * A transport: the algorithms that a flow runs, each with its options. Immutable while flows use
 * it, and shared by any number of them.
 */
#ifndef GW_CORE_TRANSPORT_H
#define GW_CORE_TRANSPORT_H

#include <stdbool.h>

#include "core/cc/cc.h"
#include "core/grant/grant.h"
#include "core/lb/lb.h"
#include "core/loss/loss.h"
#include "core/urgency/urgency.h"

enum {
    GW_TRANSPORT_NAME_MAX = 64,
};

struct gw_transport {
    const struct gw_cc_ops *cc;
    const struct gw_lb_ops *lb;
    const struct gw_loss_ops *loss;
    const struct gw_grant_ops *grant; /* NULL: the sender needs no credit */
    const struct gw_urgency_ops
        *urgency; /* NULL: all packets have the message's class, and rank 0 */
    union gw_algo_cfg cc_cfg;
    union gw_algo_cfg lb_cfg;
    union gw_algo_cfg loss_cfg;
    union gw_algo_cfg grant_cfg;
    union gw_algo_cfg urgency_cfg;
    char name[GW_TRANSPORT_NAME_MAX]; /* as gw_transport_choose() was told */
};

/* Whether a transport is for flows whose data is not acknowledged (blast.h). */
static inline bool gw_transport_is_blast(const struct gw_transport *transport)
{
    return transport->cc->on_report != NULL;
}

/*
 * Sets `cc` and `grant` with their defaults from a name: a congestion control ("smartt"), a grant
 * ("eqds": credit alone, any window), or both ("eqds+smartt"). Returns 0 or GW_ERR_UNKNOWN.
 */
int gw_transport_choose(struct gw_transport *transport, const char *name);

#endif
