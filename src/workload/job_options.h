/*
 * Options that every kind of workload with jobs has: who adds up, where, and with how much memory.
 *
 * A kind embeds them in its cfg as a member called `job` and puts GW_JOB_PARAMS into its table of
 * parameters; it checks them with gw_job_options_check(), opens a site, and for each job places it
 * there and adds it.
 */
#ifndef GW_WORKLOAD_JOB_OPTIONS_H
#define GW_WORKLOAD_JOB_OPTIONS_H

#include "core/coll/coll.h"
#include "workload/generate.h"
#include "workload/job_rules.h"
#include "workload/job_worth.h"
#include "workload/placement.h"
#include "workload/workload.h"

struct gw_job_options {
    char via[GW_PARAM_TEXT_MAX];
    struct gw_job_rules rules;
    struct gw_job_worth worth;
    gw_time start;
    gw_time start_spread;
    gw_time timeout;
    gw_time leak;
    gw_time patience;
    gw_time beat;
    gw_time lost;
    uint32_t workers;
    uint32_t jobs;
    uint32_t values;
    uint32_t window;
    uint32_t window_initial;
    uint32_t aggregators;
    uint32_t indexing;
    uint32_t servers;
    uint32_t key;
    uint32_t levels;
    uint32_t magnitude;
    uint32_t overflow_ppm;
    uint32_t placement; /* enum gw_placement */
    char hosts[GW_PARAM_TEXT_MAX];
    char announce[GW_PARAM_TEXT_MAX];
    bool exclusive;
    bool colocated;
    bool interleaved;
    bool stacked;
    bool congestion_control;
    bool resend_gap;
    bool proactive;
    bool dynamic_scaling;
};

/* One job of an entry: what differs between jobs of the same options. */
struct gw_job_draft {
    const struct gw_job_options *options;
    enum gw_job_via via;
    const char *way;                /* what the scenario calls it; static text */
    const struct gw_coll_ops *coll; /* via GW_JOB_VIA_COLL */
    uint32_t number;                /* of the job in its entry */
    gw_time start;
};

/* Where the jobs of an entry may be. */
struct gw_job_site {
    struct gw_racks racks;
    struct gw_place place;
    struct gw_host_list given;
    uint32_t *hosts; /* of the job that was placed last: workers by rank, then servers */
};

/*
 * Checks all options but `via`; `elements` is what the smallest part of the work may be divided
 * into for servers. Returns 0, or a negative error with ctx->why set.
 */
int gw_job_options_check(const struct gw_job_options *options, enum gw_job_via via,
                         uint64_t elements, struct gw_workload_ctx *ctx);

/*
 * Whether the pieces and fragments of an iteration can be numbered; `partition` is the size of the
 * largest piece (0: whole tensors), and `key` the parameter that sets the size of all. As above.
 */
int gw_job_options_check_sums(const struct gw_job_draft *draft, const struct gw_plan *plan,
                              uint64_t partition, const char *key, struct gw_workload_ctx *ctx);

/* Whether there are hosts enough for `jobs` jobs of this size; as above. */
int gw_job_options_count(const struct gw_job_options *options, enum gw_job_via via,
                         struct gw_workload_ctx *ctx);

/* Returns 0, or a negative error with ctx->why set. gw_job_site_close() takes it back, also then.
 */
int gw_job_site_open(struct gw_job_site *site, const struct gw_job_options *options,
                     const struct gw_workload *workload, struct gw_workload_ctx *ctx);
void gw_job_site_close(struct gw_job_site *site);

/* Takes hosts for a job. Returns 0, or a negative error with ctx->why set. */
int gw_job_site_place(struct gw_job_site *site, const struct gw_job_draft *draft,
                      struct gw_workload_ctx *ctx);

/* What the options say of a job; the rest of the description is the kind's. */
struct gw_job_spec gw_job_options_spec(const struct gw_job_draft *draft);

/* Adds the job that was placed last, with its workers and servers. */
void gw_job_options_add(struct gw_workload *workload, const struct gw_job_draft *draft,
                        const struct gw_job_spec *spec, const struct gw_job_site *site);

/* A row for a field of the options that is called as the parameter. */
#define GW_JOB_PARAM(cfg_type, kind, field, initial_text, help_text)                               \
    GW_PARAM_IN(cfg_type, job, kind, field, initial_text, help_text)

/* The rows of all options, for a kind's table. */
#define GW_JOB_PARAMS(cfg_type)                                                                    \
    GW_JOB_PARAM(cfg_type, COUNT, workers, "8", "of each job"),                                    \
        GW_JOB_PARAM(cfg_type, COUNT, jobs, "1", "that run at the same time"),                     \
        GW_JOB_PARAM(cfg_type, COUNT, values, "352",                                               \
                     "elements per fragment; the ATP paper's packet has 62"),                      \
        GW_JOB_PARAM(                                                                              \
            cfg_type, COUNT, window, "0",                                                          \
            "most fragments of a job that are out at once; 0: four times window_initial"),         \
        GW_JOB_PARAM(cfg_type, COUNT, window_initial, "200",                                       \
                     "fragments at the start (ATP section 3.7)"),                                  \
        GW_JOB_PARAM(cfg_type, COUNT, aggregators, "4096", "of each switch"),                      \
        {.name = "indexing",                                                                       \
         .type = GW_PARAM_ENUM,                                                                    \
         .offset = offsetof(cfg_type, job.indexing),                                               \
         .initial = "hash",                                                                        \
         .choices = "hash|linear|static",                                                          \
         .help = "how a job finds its aggregators (ATP section 3.6 and figure 14); static: in "    \
                 "its equal share of them, which bounds its window"},                              \
        GW_JOB_PARAM(cfg_type, COUNT, servers, "1", "of each job; each has a part of the tensor"), \
        GW_JOB_PARAM(cfg_type, BOOL, colocated, "no",                                              \
                     "servers share the hosts of workers (via: ps); with as many as workers this " \
                     "is BytePS' N-to-N"),                                                         \
        {.name = "placement",                                                                      \
         .type = GW_PARAM_ENUM,                                                                    \
         .offset = offsetof(cfg_type, job.placement),                                              \
         .initial = "spread",                                                                      \
         .choices = GW_PLACEMENT_WORDS,                                                            \
         .help =                                                                                   \
             "of jobs: workers evenly over racks and servers in the last one (spread), each "      \
             "job in as few racks as possible (packed), on any hosts (random), or on those of "    \
             "the key hosts (given), workers by rank and then servers, job by job"},               \
        GW_JOB_PARAM(cfg_type, TEXT, hosts, "", "for placement: given, as in 3,0-2,7"),            \
        GW_JOB_PARAM(cfg_type, BOOL, exclusive, "yes",                                             \
                     "not on hosts that have jobs of earlier entries; without effect on those "    \
                     "given"),                                                                     \
        GW_JOB_PARAM(cfg_type, BOOL, interleaved, "no",                                            \
                     "ranks go from rack to rack, so that ring neighbours are in different ones "  \
                     "(placement: spread)"),                                                       \
        GW_JOB_PARAM(cfg_type, BOOL, stacked, "no",                                                \
                     "all jobs have the same hosts, for workers and for servers"),                 \
        GW_JOB_PARAM(cfg_type, COUNT, key, "0",                                                    \
                     "whose jobs these are: shares of aggregators are of keys first"),             \
        GW_JOB_PARAM(cfg_type, COUNT, levels, "2", "of switches that add up, at most (via: ina)"), \
        GW_JOB_PARAM(cfg_type, TIME, beat, "5ms", "between signs of life of a worker"),            \
        GW_JOB_PARAM(cfg_type, TIME, lost, "25ms", "a worker silent for so long ends the job"),    \
        GW_JOB_PARAM(cfg_type, BOOL, congestion_control, "yes",                                    \
                     "AIMD on marks and losses (ATP section 3.7)"),                                \
        GW_JOB_PARAM(cfg_type, BOOL, resend_gap, "no",                                             \
                     "send all overdue fragments again at a loss, not only the first (ATP "        \
                     "section 3.6 has the first; the authors' code all)"),                         \
        GW_JOB_PARAM(cfg_type, BOOL, proactive, "no",                                              \
                     "fragments whose sum might saturate travel raw from the start (ATP "          \
                     "appendix B.2); matters with host.payload"),                                  \
        GW_JOB_PARAM(cfg_type, BOOL, dynamic_scaling, "no",                                        \
                     "scale fragments as the workers agree one window before (ATP appendix "       \
                     "B.3); matters with host.payload"),                                           \
        GW_JOB_PARAM(cfg_type, COUNT, magnitude, "0",                                              \
                     "with host.payload: values are below 2 to the power of this; from 4 on, "     \
                     "sums saturate"),                                                             \
        GW_JOB_PARAM(cfg_type, COUNT, overflow_ppm, "0",                                           \
                     "with host.payload: so many of a million fragments have sums that saturate"), \
        GW_JOB_PARAM(cfg_type, TIME, timeout, "1ms",                                               \
                     "without progress: send again (ATP section 5.2.3)"),                          \
        GW_JOB_PARAM(cfg_type, TIME, patience, "0",                                                \
                     "with a bound: without a result for so long, look who is late; 0: as "        \
                     "measured, from a sixty-fourth of timeout to twice timeout"),                 \
        GW_JOB_PARAM(cfg_type, TIME, leak, "10ms",                                                 \
                     "after which an aggregator counts as forgotten"),                             \
        GW_JOB_PARAM(cfg_type, TIME, start, "0", "when the first job may start"),                  \
        GW_JOB_PARAM(cfg_type, TIME, start_spread, "0",                                            \
                     "each job starts up to this much later, at random"),                          \
        GW_ANNOUNCE_PARAM(cfg_type, job.announce), GW_JOB_RULE_PARAMS(cfg_type),                   \
        GW_JOB_WORTH_PARAMS(cfg_type)

#endif
