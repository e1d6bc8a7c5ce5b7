/* What messages of the workload may lose; see message_terms.h. */
#include "sim/message_terms.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "core/quant/importance.h"
#include "sim/jobs.h"
#include "topo/memory.h"

enum {
    WORTH_STREAM = 0x3aa, /* of random numbers: which packets are important */
};

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

void gw_sim_message_weigh(struct gw_sim *sim, uint32_t flow, struct gw_send *send)
{
    const struct gw_flow_spec *spec = &sim->scenario->workload.flows[flow];
    send->bound = spec->bound;
    send->class = spec->class;
    send->is_unimportant = spec->unimportant == GW_Q16_ONE;
    if (spec->unimportant == 0 || spec->unimportant == GW_Q16_ONE)
        return;
    send->important = sim->important[flow];
    if (send->important) /* there was no room for the flow before */
        return;
    uint64_t packets = (spec->bytes + sim->scenario->host.mtu - 1) / sim->scenario->host.mtu;
    struct gw_prng prng = gw_prng_derive(sim->options.seed, (uint64_t)WORTH_STREAM << 32 | flow);
    uint64_t *bits = gw_memory_zeroed(gw_bit_words(packets), sizeof(*bits));
    for (uint64_t i = 0; i < packets; i++)
        if (gw_prng_below(&prng, (uint32_t)GW_Q16_ONE) >= (uint32_t)spec->unimportant)
            gw_bit_set(bits, i);
    sim->important[flow] = bits;
    send->important = bits;
}

void gw_sim_message_forget(struct gw_sim *sim, uint32_t flow)
{
    if (!sim->important)
        return;
    free(sim->important[flow]);
    sim->important[flow] = NULL;
}

uint32_t gw_sim_draw_important(const struct gw_sim_worth *message, uint64_t *bits)
{
    const struct gw_importance_drawn drawn = {
        .seed = message->seed,
        .tensor = message->number,
        .iteration = message->round,
        .count = (uint32_t)((message->bytes + message->packet - 1) / message->packet),
        .fragment_values = (message->packet - 1) / sizeof(float) + 1,
        .spread_q16 = (uint32_t)message->worth->spread,
    };
    struct gw_importance importance;
    gw_importance_init_drawn(&importance, &drawn,
                             (enum gw_importance_rule)message->worth->importance);
    return gw_importance_fill(&importance, bits);
}

void gw_sim_message_check(struct gw_sim_part *part, const struct gw_event *event)
{
    if (event->missing &&
        !gw_finish_bound_allows(gw_sim_message_bound(part->sim, event->tag),
                                (uint32_t)gw_sim_message_packets(event), event->missing))
        part->broken_bounds++;
}
