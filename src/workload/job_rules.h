/*
 * By which rules the jobs of an entry aggregate: ours, or one by one those of ATP as published (see
 * core/agg_rules.h). The preset `paper` sets them all.
 */
#ifndef GW_WORKLOAD_JOB_RULES_H
#define GW_WORKLOAD_JOB_RULES_H

#include "core/algo.h"

/* Each is an enum of that header, or says what it is; 0 is ours. */
struct gw_job_rules {
    uint64_t header;     /* bytes of a packet that are not values; 0: as all packets of the host */
    uint32_t scale;      /* 0: 2^GW_SCALE_EXPONENT, 1: GW_SCALE_DECIMAL */
    uint32_t collisions; /* 0: the server asks for what they left, 1: workers notice alone */
    uint32_t halving;
    uint32_t overtaking;
    uint32_t hashing;
    uint32_t remap;
    uint32_t partials;
    uint32_t reclaim;
    uint32_t shares; /* 0: none is guaranteed, 1: equal ones */
};

enum {
    GW_JOB_HEADER_MAX = 1000, /* bytes */
};

#define GW_JOB_RULE(cfg_type, field, words, help_text)                                             \
    GW_CHOICE_IN(cfg_type, job.rules, field, words, help_text)

/* The rows of all rules, for a kind's table; its cfg has struct gw_job_options as `job`. */
#define GW_JOB_RULE_PARAMS(cfg_type)                                                               \
    GW_PARAM_IN(cfg_type, job.rules, BYTES, header, NULL,                                          \
                "of a packet of values (ATP: 58); 0 is that of host.header"),                      \
        GW_JOB_RULE(cfg_type, scale, "binary|decimal",                                             \
                    "of floats as integers: 2^27, or 10^8 (ATP section 3.8)"),                     \
        GW_JOB_RULE(cfg_type, collisions, "server|workers",                                        \
                    "who notices what a collision left in switches: the server asks for it, or "   \
                    "workers alone (ATP section 3.6)"),                                            \
        GW_JOB_RULE(cfg_type, halving, "together|alone",                                           \
                    "of windows at congestion: of all workers at the same fragment, or of the "    \
                    "one that notices, at once (ATP section 3.7)"),                                \
        GW_JOB_RULE(cfg_type, overtaking, "counted|in-a-row",                                      \
                    "three later results mean a loss: any, or three in a row (ATP section 3.7)"),  \
        GW_JOB_RULE(cfg_type, hashing, "position|sequence",                                        \
                    "aggregators are hashed from the position in the window, or from the whole "   \
                    "number (ATP section 3.5)"),                                                   \
        GW_JOB_RULE(cfg_type, remap, "unused|rehash",                                              \
                    "where a collision moves to: an aggregator that the job does not use, or the " \
                    "hash of the index (ATP section 3.6)"),                                        \
        GW_JOB_RULE(cfg_type, partials, "keep|discard",                                            \
                    "what upper switches do with a partial sum at a resend (discard: ATP section " \
                    "3.7)"),                                                                       \
        GW_JOB_RULE(cfg_type, reclaim, "sweep|results",                                            \
                    "how forgotten aggregators are found: switches look, or when a result names "  \
                    "them (ATP section 3.7); results if any job of the run says so"),              \
        GW_JOB_RULE(cfg_type, shares, "none|equal",                                                \
                    "of aggregators that each job is guaranteed, whatever others take; equal if "  \
                    "any job of the run says so")

/* The presets of a kind with these rules. */
#define GW_JOB_PRESETS                                                                             \
    {                                                                                              \
        .name = "paper",                                                                           \
        .settings = "values=62 header=58 scale=decimal collisions=workers halving=alone "          \
                    "overtaking=in-a-row hashing=sequence remap=rehash "                           \
                    "partials=discard reclaim=results",                                            \
        .help = "ATP as published, with packets of 306 bytes (via: ina)"                           \
    }

#endif
