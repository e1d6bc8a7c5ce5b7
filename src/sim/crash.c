/*
 * Crashes: a node loses all that it knew and held, and starts again as if new.
 *
 * The core node is made anew at the moment of the crash. It stays idle until the restart, since its
 * links are down, what was on its way to it is lost here, and a host's application starts nothing.
 * Its counters are kept, so the totals and the audit speak of all of its lives; what it held is
 * counted as crash_losses.
 */
#include "sim/crash.h"

#include "sim/arrivals.h"
#include "sim/audit.h"
#include "sim/departures.h"
#include "sim/host_cost.h"
#include "sim/jobs.h"
#include "sim/nodes.h"
#include "sim/notices.h"
#include "sim/payload.h"
#include "sim/routes.h"

/* Packets on their way to a node find nobody. */
static void lose_arrivals(struct gw_sim *sim, uint32_t place)
{
    struct gw_sim_part *part = gw_sim_part_of(sim, place);
    for (uint32_t p = 0; p < sim->part_count; p++)
        for (uint32_t row = 0; row <= sim->row_mask; row++) {
            struct gw_sim_inbox *inbox = gw_sim_calendar_inbox(&sim->parts[p], row, place);
            for (uint32_t i = 0; i < inbox->count; i++)
                gw_pkt_release(&part->pool, gw_sim_key_pkt(part, inbox->keys[i]));
            part->link_losses += inbox->count;
            inbox->count = 0;
        }
}

/* The stages keep their memory and forget what is in them. */
static void forget_jobs(const struct gw_sim *sim, struct gw_sim_node *node)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    for (uint32_t i = 0; node->aggregate && i < workload->job_count; i++)
        for (uint32_t s = 0; s < workload->jobs[i].server_count; s++)
            gw_aggregate_remove(node->aggregate, gw_sim_shard_number(&workload->jobs[i], s));
    if (node->slots)
        gw_sim_slots_install(sim, node->slots, node->id);
}

static void destroy(struct gw_sim *sim, uint32_t place, gw_time now)
{
    struct gw_sim_node *node = &sim->nodes[place];
    gw_sim_jobs_crashed(sim, place, now);
    gw_sim_audit_crash(sim, place);
    gw_sim_notices_crashed(sim, node, now);
    lose_arrivals(sim, place);
    forget_jobs(sim, node);
    if (node->cost)
        sim->past.crash_losses += gw_sim_host_cost_crash(sim, node);
    sim->past.crash_losses +=
        node->sw ? gw_switch_fini(node->sw) : gw_endpoint_fini(node->endpoint);
    for (uint16_t i = 0; i < sim->scenario->topo.nodes[node->id].port_count; i++) {
        node->ports[i].busy_until = now;
        node->ports[i].is_scheduled = false;
        gw_sim_departure_set(node, i, GW_SIM_DEPARTURE_NONE);
    }
}

void gw_sim_crash(struct gw_sim *sim, uint32_t place, gw_time now, gw_time until)
{
    struct gw_sim_node *node = &sim->nodes[place];
    bool was_up = node->crashes++ == 0;
    if (node->endpoint)
        gw_sim_app_crash(sim, place, now, until);
    if (!was_up)
        return;
    destroy(sim, place, now);
    gw_sim_node_make(sim, place);
    if (sim->payload && node->endpoint)
        gw_sim_payload_expect_again(sim, node);
}

void gw_sim_restart(struct gw_sim *sim, uint32_t place)
{
    struct gw_sim_node *node = &sim->nodes[place];
    if (--node->crashes > 0)
        return;
    if (node->sw)
        gw_sim_install_routes(sim);
    gw_sim_jobs_restarted(sim, place);
}
