/*
 * The end of a message: when what has arrived is enough.
 *
 * The receiver of a flow asks after each arrival. If it is enough, the flow ends: the receiver
 * tells its sender by an ACK, and what is in flight, lost or unsent then never comes. While it is
 * not, the same question decides about a packet that was lost: it may stay lost if the message
 * would be enough with all others. So what is given up on the way never makes the end impossible.
 *
 * The policy is the receiver's alone; the sender learns from answers what need not be sent
 * (core/host/flow_rx.h). One file here and one line in finish.def make a policy.
 */
#ifndef GW_CORE_FINISH_H
#define GW_CORE_FINISH_H

#include <stdbool.h>

#include "base/fixed.h"
#include "core/algo.h"

/* What a receiver knows of a message, in packets. */
struct gw_finish_sample {
    uint32_t total;   /* of the message; the last may be shorter than the others */
    uint32_t arrived; /* each counted once */
    uint32_t tag;     /* of the message */
    uint32_t lost;    /* will not come any more; arrived + lost <= total */
    gw_q16 bound;     /* of the sender: no larger part may be missing, whatever the receiver finds;
                         GW_Q16_ONE: it has named none */
};

struct gw_finish_ops {
    struct gw_algo algo; /* it has no private memory */
    /* True whenever all has arrived; never false again when more arrives. */
    bool (*is_enough)(const void *cfg, const struct gw_finish_sample *sample);
};

enum {
    GW_FINISH_CFG_MAX = 64, /* bytes of options: each message that may lose a part has its own */
};

/* A policy with its options. Immutable while flows use it, and shared by any number of them. */
struct gw_finish {
    const struct gw_finish_ops *ops;
    union {
        uint64_t align;
        unsigned char bytes[GW_FINISH_CFG_MAX];
    } cfg;
};

extern const struct gw_registry gw_finish_registry;

/* The policy `bound` (finish_bound.c) for `bound`. */
struct gw_finish gw_finish_within(gw_q16 bound);

/* The same, of a message whose sender has named a bound, too; all of any other. */
struct gw_finish gw_finish_within_both(gw_q16 bound);

/*
 * Whether `missing` of `total` packets are within `bound`; with 1 all are. Else the last packet
 * does not count: it may be shorter than the others, so that what is missing is within the bound in
 * packets and in bytes.
 */
static inline bool gw_finish_bound_allows(gw_q16 bound, uint32_t total, uint32_t missing)
{
    return missing == 0 || bound >= GW_Q16_ONE ||
           (bound > 0 &&
            (unsigned __int128)missing << 16 <= (unsigned __int128)bound * (total - 1));
}

/* By the policy of the receiver (NULL: all), and by the bound of the sender. */
static inline bool gw_finish_is_enough(const struct gw_finish *finish,
                                       const struct gw_finish_sample *sample)
{
    if (sample->arrived == sample->total)
        return true;
    return finish &&
           gw_finish_bound_allows(sample->bound, sample->total, sample->total - sample->arrived) &&
           finish->ops->is_enough(finish->cfg.bytes, sample);
}

#endif
