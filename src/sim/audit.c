/*
 * What must hold after every run, whatever the scenario: bytes are conserved on every port, packets
 * are conserved on the links as a whole, no packet was lost from the books, and ports are low for
 * what is announced alone. And the totals.
 */
#include "sim/audit.h"

#include <stdio.h>

#include "base/error.h"
#include "sim/calendar.h"
#include "sim/host_cost.h"
#include "sim/jobs.h"

static int broken(struct gw_sim *sim, const char *invariant, const char *node, uint64_t left,
                  uint64_t right)
{
    snprintf(sim->why, sizeof(sim->why), "invariant broken: %s (%s: %llu, %llu)", invariant, node,
             (unsigned long long)left, (unsigned long long)right);
    return GW_ERR_INVALID;
}

/* What is announced at a switch; its books fail an assertion. */
static int audit_notices(struct gw_sim *sim, const struct gw_switch_notice *notice,
                         const char *name)
{
    gw_time now = sim->window_index * sim->window; /* before that, all timers have fired */
    gw_time deadline = gw_switch_notice_deadline(notice);
    gw_switch_notice_check(notice);
    if (gw_deadline_before(deadline, now))
        return broken(sim, "announcements end in time", name, deadline, now);
    return GW_OK;
}

static int audit_ports(struct gw_sim *sim, uint32_t place)
{
    const struct gw_sim_node *node = &sim->nodes[place];
    const struct gw_topo_node *self = &sim->scenario->topo.nodes[node->id];
    for (uint16_t i = 0; node->sw && i < self->port_count; i++) {
        struct gw_port_stats stats = gw_switch_port_stats(node->sw, i);
        uint64_t accounted = stats.out_bytes + stats.trimmed_bytes + stats.dropped_bytes +
                             gw_switch_backlog(node->sw, i);
        if (stats.in_bytes != accounted)
            return broken(sim, "bytes in = out + trimmed + dropped + queued", self->name,
                          stats.in_bytes, accounted);
    }
    const struct gw_switch_notice *notice = node->sw ? gw_switch_notices(node->sw) : NULL;
    return notice ? audit_notices(sim, notice, self->name) : GW_OK;
}

/* How often a node found no packet to send. */
static uint64_t pool_empty(const struct gw_sim_node *node)
{
    return node->endpoint ? gw_endpoint_stats(node->endpoint)->pool_empty
           : node->sw     ? gw_switch_stats(node->sw)->copies_lost
                          : 0;
}

int gw_sim_audit(struct gw_sim *sim)
{
    uint64_t hops = 0, arrivals = 0, lost = 0, copies = 0, changed = 0, messages = 0, wrong = 0;
    uint64_t bounds = 0;
    uint64_t starved = sim->past_pool_empty;
    for (uint32_t p = 0; p < sim->part_count; p++) {
        hops += sim->parts[p].hops;
        arrivals += sim->parts[p].arrivals;
        lost += sim->parts[p].link_losses;
        copies += sim->parts[p].link_copies;
        changed += sim->parts[p].changed_by_wire;
        wrong += sim->parts[p].wrong_payloads;
        bounds += sim->parts[p].broken_bounds;
        messages += sim->parts[p].changed_messages;
    }
    for (uint32_t place = 0; place < sim->node_count; place++)
        starved += pool_empty(&sim->nodes[place]);
    uint64_t accounted = arrivals + lost + gw_sim_calendar_under_way(sim);
    if (hops + copies != accounted)
        return broken(sim, "packets sent = arrived + lost + under way", "links", hops + copies,
                      accounted);
    if (bounds) {
        snprintf(sim->why, sizeof(sim->why), "%llu messages lack more than their bounds allow",
                 (unsigned long long)bounds);
        return GW_ERR_INVALID;
    }
    if (changed) {
        snprintf(sim->why, sizeof(sim->why), "--wire: %llu packets changed in encode and decode",
                 (unsigned long long)changed);
        return GW_ERR_MALFORMED;
    }
    if (wrong)
        return broken(sim, "every sum is right", "wrong sums", wrong, 0);
    if (messages) {
        snprintf(sim->why, sizeof(sim->why), "payload: %llu messages changed on their way",
                 (unsigned long long)messages);
        return GW_ERR_MALFORMED;
    }
    /* With payload it may also have been a buffer that was missing; senders have tried again. */
    if (starved && !sim->payload) {
        snprintf(sim->why, sizeof(sim->why), "more than %u packets alive at once",
                 1u << GW_SIM_INDEX_BITS);
        return GW_ERR_NO_ROOM;
    }
    int error = GW_OK;
    for (uint32_t place = 0; place < sim->node_count && !error; place++)
        error = audit_ports(sim, place);
    return error;
}

static void add_switch(struct gw_sim_totals *totals, const struct gw_switch *sw,
                       uint16_t port_count)
{
    totals->unroutable += gw_switch_stats(sw)->unroutable;
    for (uint16_t i = 0; i < port_count; i++) {
        struct gw_port_stats stats = gw_switch_port_stats(sw, i);
        totals->marks += stats.marks;
        totals->trims += stats.trims;
        totals->drops += stats.drops;
        totals->control_drops += stats.control_drops;
        gw_class_losses_add(totals->losses, stats.losses);
        totals->pauses += stats.pauses;
        totals->paused += stats.paused;
    }
}

static void add_host(struct gw_sim_totals *totals, const struct gw_sim_node *node)
{
    const struct gw_endpoint_stats *stats = gw_endpoint_stats(node->endpoint);
    if (node->cost)
        gw_sim_host_cost_count(node->cost, totals);
    totals->paused += gw_endpoint_paused(node->endpoint);
    totals->data_packets += stats->data_sent;
    totals->retransmits += stats->retransmits;
    totals->spurious += stats->spurious;
    totals->timeouts += stats->timeouts;
    totals->overtaken += stats->overtaken;
    totals->probes += stats->probes;
}

static void add_node(struct gw_sim_totals *totals, const struct gw_sim *sim,
                     const struct gw_sim_node *node)
{
    if (node->sw)
        add_switch(totals, node->sw, sim->scenario->topo.nodes[node->id].port_count);
    else
        add_host(totals, node);
}

void gw_sim_audit_crash(struct gw_sim *sim, uint32_t place)
{
    const struct gw_sim_node *node = &sim->nodes[place];
    if (!sim->error)
        sim->error = audit_ports(sim, place);
    sim->past_pool_empty += pool_empty(node);
    add_node(&sim->past, sim, node);
}

struct gw_sim_totals gw_sim_totals(const struct gw_sim *sim)
{
    const struct gw_topo *topo = &sim->scenario->topo;
    const uint32_t members = sim->scenario->workload.job_host_count;
    struct gw_sim_totals totals = sim->past;
    totals.flows = sim->awaited - members;
    totals.members = members;
    gw_time first = GW_TIME_NEVER, last = 0;
    for (uint32_t p = 0; p < sim->part_count; p++) {
        const struct gw_sim_part *part = &sim->parts[p];
        totals.hops += part->hops;
        totals.events += part->events;
        totals.link_losses += part->link_losses;
        totals.link_copies += part->link_copies;
        first = part->first_start < first ? part->first_start : first;
        last = part->last_end > last ? part->last_end : last;
    }
    for (uint32_t i = 0; i < sim->scenario->workload.flow_count; i++)
        totals.completed +=
            !sim->scenario->workload.flows[i].background && sim->flows[i].outcome == GW_FLOW_DONE;
    totals.members_completed = gw_sim_members_done(sim);
    totals.completion = first == GW_TIME_NEVER ? 0 : last - first;
    totals.end = (sim->window_index + 1) * sim->window;
    for (uint32_t id = 0; id < topo->node_count; id++) {
        const struct gw_sim_node *node = &sim->nodes[sim->place[id]];
        add_node(&totals, sim, node);
        totals.trace_hash = gw_mix64(totals.trace_hash ^ node->hash);
    }
    return totals;
}
