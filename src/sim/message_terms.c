/* What messages of the workload may lose; see message_terms.h. */
#include "sim/message_terms.h"

#include <string.h>

#include "sim/jobs.h"

/* The cfg of the policy. */
struct terms {
    const struct gw_sim *sim;
};

bool gw_sim_any_loses(const struct gw_workload *workload)
{
    bool loses = false;
    for (uint32_t i = 0; i < workload->job_count; i++)
        loses |= gw_job_worth_loses(&workload->jobs[i].worth);
    for (uint32_t i = 0; i < workload->flow_count && !loses; i++)
        loses |= workload->flows[i].bound > 0;
    return loses;
}

gw_q16 gw_sim_message_bound(const struct gw_sim *sim, uint32_t tag)
{
    uint32_t flow = gw_sim_flow_of_tag(sim, tag);
    if (flow != UINT32_MAX)
        return sim->scenario->workload.flows[flow].bound;
    return gw_sim_job_bound(sim, tag);
}

static bool terms_is_enough(const void *config, const struct gw_finish_sample *sample)
{
    struct terms terms;
    memcpy(&terms, config, sizeof(terms));
    gw_q16 bound = gw_sim_message_bound(terms.sim, sample->tag);
    return gw_finish_bound_allows(bound < sample->bound ? bound : sample->bound, sample->total,
                                  sample->total - sample->arrived);
}

static const struct gw_finish_ops terms_ops = {
    .algo = {.name = "workload",
             .summary = "what the workload says of each message",
             .cfg_size = sizeof(struct terms)},
    .is_enough = terms_is_enough,
};

const struct gw_finish *gw_sim_message_finish(struct gw_sim *sim)
{
    const struct terms terms = {.sim = sim};
    if (!gw_sim_any_loses(&sim->scenario->workload))
        return NULL;
    sim->finish.ops = &terms_ops;
    memcpy(sim->finish.cfg.bytes, &terms, sizeof(terms));
    return &sim->finish;
}

void gw_sim_message_check(struct gw_sim_part *part, const struct gw_event *event)
{
    if (event->missing &&
        !gw_finish_bound_allows(gw_sim_message_bound(part->sim, event->tag),
                                (uint32_t)gw_sim_message_packets(event), event->missing))
        part->broken_bounds++;
}
