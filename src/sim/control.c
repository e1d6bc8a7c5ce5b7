/*
 * Faults and routing: what changes the network in mid-run. Everything here happens in the serial
 * phase before the first window that begins at or after its time.
 *
 * A link that is down takes what its ports send until the routes avoid it, which happens
 * `convergence` after the failure (and after the recovery). What had left a port before the failure
 * still arrives. crash.c has what a crash does besides.
 */
#include "sim/control.h"

#include <stdlib.h>

#include "base/error.h"
#include "sim/crash.h"
#include "sim/host_cost.h"
#include "sim/routes.h"
#include "topo/memory.h"

static int compare_controls(const void *a, const void *b)
{
    const struct gw_sim_control *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (x->fault != y->fault)
        return x->fault < y->fault ? -1 : 1;
    return x->kind < y->kind ? -1 : x->kind > y->kind;
}

void gw_sim_controls_init(struct gw_sim *sim)
{
    const struct gw_scenario *scenario = sim->scenario;
    /* Begin, end, and a route computation after each. */
    sim->controls = gw_memory_aligned(4 * (size_t)scenario->fault_count * sizeof(*sim->controls));
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        const struct gw_fault *fault = &scenario->faults[i];
        bool reroutes = scenario->convergence != GW_TIME_NEVER &&
                        (fault->kind == GW_FAULT_LINK_DOWN || fault->kind == GW_FAULT_NODE_DOWN ||
                         fault->kind == GW_FAULT_NODE_CRASH);
        gw_time times[] = {fault->at, fault->until};
        for (uint32_t j = 0; j < 2 && times[j] != GW_TIME_NEVER; j++) {
            sim->controls[sim->control_count++] = (struct gw_sim_control){
                .at = times[j],
                .kind = j == 0 ? GW_CONTROL_FAULT_BEGINS : GW_CONTROL_FAULT_ENDS,
                .fault = i,
            };
            if (reroutes)
                sim->controls[sim->control_count++] = (struct gw_sim_control){
                    .at = times[j] + scenario->convergence,
                    .kind = GW_CONTROL_ROUTES,
                    .fault = i,
                };
        }
    }
    qsort(sim->controls, sim->control_count, sizeof(*sim->controls), compare_controls);
}

static struct gw_sim_port *port_of(struct gw_sim *sim, const struct gw_link_side *side)
{
    return &sim->nodes[sim->place[side->node]].ports[side->port];
}

/* What is left of a link's rate: of faults that overlap, the worst counts. */
static gw_q16 link_factor(const struct gw_sim *sim, uint32_t link_id, gw_time now)
{
    gw_q16 factor = GW_Q16_ONE;
    for (uint32_t i = 0; i < sim->scenario->fault_count; i++) {
        const struct gw_fault *fault = &sim->scenario->faults[i];
        if (fault->kind == GW_FAULT_LINK_RATE && fault->link == link_id && fault->at <= now &&
            now < fault->until && fault->factor < factor)
            factor = fault->factor;
    }
    return factor;
}

/* How late a link's reordered packets are: of faults that overlap, the latest counts. */
static gw_time link_delay(const struct gw_sim *sim, uint32_t link_id, gw_time now)
{
    gw_time delay = 0;
    for (uint32_t i = 0; i < sim->scenario->fault_count; i++) {
        const struct gw_fault *fault = &sim->scenario->faults[i];
        if (fault->kind == GW_FAULT_LINK_REORDER && fault->link == link_id && fault->at <= now &&
            now < fault->until && fault->delay > delay)
            delay = fault->delay;
    }
    return delay;
}

/* Adds a fault's chance to those of others that overlap it, or takes it away. */
static void change_chance(uint64_t *chance_q32, const struct gw_fault *fault, bool begins)
{
    *chance_q32 = begins ? *chance_q32 + fault->chance_q32 : *chance_q32 - fault->chance_q32;
}

/* Applies or removes a fault on both directions of a link. */
static void change_link(struct gw_sim *sim, const struct gw_fault *fault, uint32_t link_id,
                        bool begins, gw_time now)
{
    struct gw_link *link = &sim->scenario->topo.links[link_id];
    for (uint32_t i = 0; i < 2; i++) {
        struct gw_sim_port *port = port_of(sim, &link->side[i]);
        if (!port->faults)
            port->faults = gw_memory_aligned(sizeof(*port->faults));
        struct gw_sim_port_faults *faults = port->faults;
        switch (fault->kind) {
        case GW_FAULT_LINK_DOWN:
        case GW_FAULT_NODE_DOWN:
        case GW_FAULT_NODE_CRASH:
            faults->down = begins ? faults->down + 1 : faults->down - 1;
            break;
        case GW_FAULT_LINK_RATE:
            port->byte_time = gw_byte_time_from_bps(link->side[i].rate_bps) * (uint64_t)GW_Q16_ONE /
                              (uint64_t)link_factor(sim, link_id, now);
            break;
        case GW_FAULT_LINK_LOSS:
        case GW_FAULT_LINK_CORRUPT:
            /* The receiver discards a damaged packet, so both lose it at the link's far end. */
            change_chance(&faults->lose_q32, fault, begins);
            break;
        case GW_FAULT_LINK_DUPLICATE:
            change_chance(&faults->duplicate_q32, fault, begins);
            break;
        case GW_FAULT_LINK_REORDER:
            change_chance(&faults->reorder_q32, fault, begins);
            faults->delay = link_delay(sim, link_id, now);
            break;
        case GW_FAULT_HOST_SLEEP:
            break; /* links are as they were */
        }
        port->extras &= (uint8_t)~GW_SIM_PORT_FAULTY;
        if (faults->down || faults->lose_q32 || faults->duplicate_q32 || faults->reorder_q32)
            port->extras |= GW_SIM_PORT_FAULTY;
        link->down = faults->down != 0;
    }
}

static void change_network(struct gw_sim *sim, const struct gw_fault *fault, bool begins,
                           gw_time now)
{
    const struct gw_topo *topo = &sim->scenario->topo;
    if (fault->kind == GW_FAULT_HOST_SLEEP) {
        if (begins) /* it wakes by itself */
            gw_sim_host_sleep(sim->nodes[sim->place[fault->node]].cost, fault->until);
        return;
    }
    if (fault->kind != GW_FAULT_NODE_DOWN && fault->kind != GW_FAULT_NODE_CRASH) {
        change_link(sim, fault, fault->link, begins, now);
        return;
    }
    const struct gw_topo_node *node = &topo->nodes[fault->node];
    for (uint16_t port = 0; port < node->port_count; port++)
        change_link(sim, fault, topo->ports[node->first_port + port].link, begins, now);
    if (fault->kind == GW_FAULT_NODE_DOWN)
        return;
    if (begins)
        gw_sim_crash(sim, sim->place[fault->node], now, fault->until);
    else
        gw_sim_restart(sim, sim->place[fault->node]);
}

void gw_sim_controls(struct gw_sim *sim, gw_time now)
{
    bool reroute = false;
    for (; sim->control_next < sim->control_count; sim->control_next++) {
        const struct gw_sim_control *control = &sim->controls[sim->control_next];
        if (control->at > now)
            break;
        if (control->kind == GW_CONTROL_ROUTES)
            reroute = true;
        else
            change_network(sim, &sim->scenario->faults[control->fault],
                           control->kind == GW_CONTROL_FAULT_BEGINS, now);
    }
    if (!reroute)
        return;
    sim->error = gw_topo_route(&sim->scenario->topo);
    if (sim->error == GW_OK)
        gw_sim_install_routes(sim);
}
