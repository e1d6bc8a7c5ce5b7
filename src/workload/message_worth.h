/*
 * What messages can do without, and what their packets say of their worth: options of kinds of
 * workload that are flows. As job_worth.h for jobs.
 */
#ifndef GW_WORKLOAD_MESSAGE_WORTH_H
#define GW_WORKLOAD_MESSAGE_WORTH_H

#include "base/fixed.h"
#include "core/algo.h"

struct gw_message_worth {
    gw_q16 bound;     /* the largest part of a message that may be missing in the end */
    gw_q16 important; /* so many of its packets may not be dropped selectively */
    uint32_t class;   /* GW_CLASS_BEST_EFFORT to GW_CLASS_DATA_MAX */
};

/* The rows of all, for a kind's table; its cfg has the struct as `worth`. */
#define GW_MESSAGE_WORTH_PARAMS(cfg_type)                                                          \
    GW_PARAM_IN(cfg_type, worth, Q16, bound, "0",                                                  \
                "the largest part of a message that may stay missing (DLCP section 3.2.1)"),       \
        GW_PARAM_IN(cfg_type, worth, Q16, important, "1",                                          \
                    "part of a message's packets that may not be dropped selectively, and leave "  \
                    "as ECT; which ones is drawn for each message"),                               \
        GW_PARAM_IN(cfg_type, worth, COUNT, class, "0",                                            \
                    "of the messages: from best effort, 0, to 6")

#endif
