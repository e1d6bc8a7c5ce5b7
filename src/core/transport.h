/*
 * A transport: the algorithms that a flow runs, each with its options. Immutable while flows use
 * it, and shared by any number of them.
 */
#ifndef GW_CORE_TRANSPORT_H
#define GW_CORE_TRANSPORT_H

#include "core/cc/cc.h"
#include "core/lb/lb.h"
#include "core/loss/loss.h"

struct gw_transport {
    const struct gw_cc_ops *cc;
    const struct gw_lb_ops *lb;
    const struct gw_loss_ops *loss;
    union gw_algo_cfg cc_cfg;
    union gw_algo_cfg lb_cfg;
    union gw_algo_cfg loss_cfg;
};

#endif
