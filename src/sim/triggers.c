/* Triggers: flows that start when others have ended; see triggers.h. */
#include "sim/triggers.h"

#include <stdlib.h>

#include "sim/calendar.h"
#include "topo/memory.h"

void gw_sim_trigger_fire(struct gw_sim_part *part, uint32_t trigger, uint32_t flow, gw_time at)
{
    if (trigger == GW_TRIGGER_NONE)
        return;
    part->firings = gw_memory_grow(part->firings, &part->firing_room, part->firing_count + 1,
                                   sizeof(*part->firings));
    part->firings[part->firing_count++] =
        (struct gw_sim_firing){.at = at, .flow = flow, .trigger = trigger};
}

static int compare_firings(const void *a, const void *b)
{
    const struct gw_sim_firing *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (x->flow != y->flow)
        return x->flow < y->flow ? -1 : 1;
    return x->trigger < y->trigger ? -1 : x->trigger > y->trigger;
}

/* Starts one flow of a trigger at its host, one window after the firing or later. */
static void start_later(struct gw_sim *sim, const struct gw_trigger_spec *trigger, uint32_t flow,
                        gw_time fired_at)
{
    uint32_t place = sim->place[sim->scenario->workload.flows[flow].src];
    gw_time at = fired_at + (trigger->delay > sim->window ? trigger->delay : sim->window);
    gw_sim_app_add(&sim->nodes[place].app, (struct gw_sim_start){.at = at, .flow = flow});
    gw_sim_calendar_wake(gw_sim_part_of(sim, place), place, at);
}

static void start_flows(struct gw_sim *sim, const struct gw_sim_firing *firing)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    const struct gw_trigger_spec *trigger = &workload->triggers[firing->trigger];
    uint32_t count = ++sim->fired[firing->trigger];
    const uint32_t *starts = workload->starts + trigger->first_start;
    if (trigger->one_each) {
        if (count <= trigger->start_count)
            start_later(sim, trigger, starts[count - 1], firing->at);
    } else if (count == trigger->needs) {
        for (uint32_t i = 0; i < trigger->start_count; i++)
            start_later(sim, trigger, starts[i], firing->at);
    }
}

void gw_sim_triggers(struct gw_sim *sim)
{
    struct gw_sim_part *first = &sim->parts[0];
    for (uint32_t p = 1; p < sim->part_count; p++) {
        struct gw_sim_part *part = &sim->parts[p];
        for (uint32_t i = 0; i < part->firing_count; i++)
            gw_sim_trigger_fire(first, part->firings[i].trigger, part->firings[i].flow,
                                part->firings[i].at);
        part->firing_count = 0;
    }
    if (first->firing_count == 0)
        return;
    qsort(first->firings, first->firing_count, sizeof(*first->firings), compare_firings);
    for (uint32_t i = 0; i < first->firing_count; i++)
        start_flows(sim, &first->firings[i]);
    first->firing_count = 0;
}
