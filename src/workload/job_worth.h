/*
 * What a job can do without, and what its packets say of their worth (DLCP, section 3.2): options
 * of jobs whose gradients travel as messages, but for the bound, which is of sums via ina, too.
 */
#ifndef GW_WORKLOAD_JOB_WORTH_H
#define GW_WORKLOAD_JOB_WORTH_H

#include <stdbool.h>

#include "base/fixed.h"
#include "core/algo.h"

struct gw_job_worth {
    gw_q16 bound;        /* the largest part of a push, or of each worker's contribution to a sum
                            among workers, that may be missing in the end */
    gw_q16 bound_pull;   /* likewise of what comes back */
    uint32_t priority;   /* enum gw_job_priority */
    uint32_t classes;    /* over which layers are spread */
    uint32_t importance; /* enum gw_importance_rule */
    gw_q16 spread;       /* how far fragments' own scales are apart, see importance.h */
    bool important_first;
};

enum gw_job_priority {
    GW_JOB_PRIORITY_NONE,  /* all gradients are best effort */
    GW_JOB_PRIORITY_LAYER, /* front layers in higher classes */
};

/* Whether any of it differs from what all flows have. */
static inline bool gw_job_worth_loses(const struct gw_job_worth *worth)
{
    return worth->bound > 0 || worth->bound_pull > 0;
}

#define GW_JOB_WORTH(cfg_type, kind, field, initial_text, help_text)                               \
    GW_PARAM_IN(cfg_type, job.worth, kind, field, initial_text, help_text)

/* The rows of all worth, for a kind's table; its cfg has struct gw_job_options as `job`. */
#define GW_JOB_WORTH_PARAMS(cfg_type)                                                              \
    GW_JOB_WORTH(cfg_type, Q16, bound, "0",                                                        \
                 "the largest part of a push, or of each worker's contribution to a sum among "    \
                 "workers, that may stay missing (DLCP section 5.1: 10%); via ina: that the "      \
                 "server may leave out when it is late, in steps of 1/200"),                       \
        GW_JOB_WORTH(cfg_type, Q16, bound_pull, "0",                                               \
                     "the same of what comes back to a worker; lower, since nobody averages it "   \
                     "(own: 1%)"),                                                                 \
        GW_CHOICE_IN(cfg_type, job.worth, priority, "none|layer",                                  \
                     "class of gradients: best effort, or by layer, the front ones highest (DLCP " \
                     "section 3.2.2)"),                                                            \
        GW_JOB_WORTH(cfg_type, COUNT, classes, "6",                                                \
                     "over which priority: layer spreads the layers: from 6 down to 1, or with 7 " \
                     "to best effort"),                                                            \
        {.name = "importance",                                                                     \
         .type = GW_PARAM_ENUM,                                                                    \
         .offset = offsetof(cfg_type, job.worth.importance),                                       \
         .initial = "all",                                                                         \
         .choices = GW_JOB_IMPORTANCE_WORDS,                                                       \
         .help = "which packets may not be dropped selectively, and leave as ECT: all, none, or "  \
                 "those whose gradients are large, drawn anew for each message; see "              \
                 "core/quant/importance.h"},                                                       \
        GW_JOB_WORTH(                                                                              \
            cfg_type, Q16, spread, "1",                                                            \
            "of drawn gradients: standard deviation of the logarithm of packets' scales, "         \
            "at most 4; 0: all packets are alike"),                                                \
        GW_JOB_WORTH(cfg_type, BOOL, important_first, "no",                                        \
                     "a message's important packets leave before the others (cc: dlcp)")

/* The names of enum gw_importance_rule, in its order. */
#define GW_JOB_IMPORTANCE_WORDS "all|median-of-means|median-of-values|none"

#endif
