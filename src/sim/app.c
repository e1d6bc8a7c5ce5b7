/*
 * The applications on simulated hosts: they start flows when their time has come, and turn the
 * endpoint's events into results and trigger pulls.
 *
 * A trigger crosses hosts, so what it starts begins one window after the pull that fired it.
 */
#include "base/error.h"
#include "base/units.h"
#include "sim/engine.h"

#include <stdlib.h>

gw_time gw_sim_app_next(const struct gw_sim_node *node)
{
    const struct gw_sim_app *app = &node->app;
    return app->cursor < app->count && !app->is_blocked ? app->starts[app->cursor].at
                                                        : GW_TIME_NEVER;
}

void gw_sim_app_add(struct gw_sim_app *app, struct gw_sim_start start)
{
    if (app->count == app->room)
        app->starts = gw_sim_grow(app->starts, &app->room, sizeof(*app->starts));
    uint32_t i = app->count++;
    for (; i > app->cursor &&
           (app->starts[i - 1].at > start.at ||
            (app->starts[i - 1].at == start.at && app->starts[i - 1].flow > start.flow));
         i--)
        app->starts[i] = app->starts[i - 1];
    app->starts[i] = start;
}

static struct gw_path path_of(const struct gw_sim *sim, uint32_t src, uint32_t dst)
{
    const struct gw_scenario *scenario = sim->scenario;
    uint32_t header = scenario->host.header;
    struct gw_topo_path path =
        gw_topo_path(&scenario->topo, src, dst, scenario->host.mtu + header, header);
    return (struct gw_path){
        .brtt = path.one_way_full + path.one_way_ack,
        .brtt_max = scenario->brtt_max,
        .rate_bps = scenario->host_rate_bps,
        .bdp = scenario->bdp,
        .mtu = scenario->host.mtu,
        .hdr = header,
        .hops = path.hops,
        .trims = gw_text_equal(scenario->queue.qdisc->algo.name, "trim") &&
                 gw_text_equal(scenario->transport.loss->algo.name, "trim"),
    };
}

static void record_end(struct gw_sim_part *part, uint32_t flow, gw_time at,
                       enum gw_flow_outcome outcome, uint64_t retransmits)
{
    struct gw_sim *sim = part->sim;
    struct gw_flow_result *result = &sim->flows[flow];
    result->end = at;
    result->outcome = outcome;
    result->retransmits = retransmits;
    if (sim->scenario->workload.flows[flow].background)
        return;
    part->flows_ended++;
    if (result->start < part->first_start)
        part->first_start = result->start;
    if (at > part->last_end)
        part->last_end = at;
}

void gw_sim_app_start(struct gw_sim_part *part, struct gw_sim_node *node, gw_time now)
{
    struct gw_sim *sim = part->sim;
    struct gw_sim_app *app = &node->app;
    while (app->cursor < app->count && app->starts[app->cursor].at <= now) {
        uint32_t flow = app->starts[app->cursor].flow;
        if (flow >= sim->scenario->workload.flow_count) {
            if (!gw_sim_member_start(sim, flow - sim->scenario->workload.flow_count, now)) {
                app->is_blocked = true;
                return;
            }
            app->cursor++;
            continue;
        }
        const struct gw_flow_spec *spec = &sim->scenario->workload.flows[flow];
        struct gw_send send = {
            .peer = spec->dst,
            .bytes = spec->bytes,
            .tag = flow,
            .transport = &sim->scenario->transport,
            .path = path_of(sim, spec->src, spec->dst),
        };
        if (gw_endpoint_send(node->endpoint, &send, &sim->flow_numbers[flow], now) != GW_OK) {
            app->is_blocked = true;
            return;
        }
        sim->flows[flow].start = app->starts[app->cursor].at;
        sim->flows[flow].started = true;
        app->cursor++;
    }
}

static void pull_trigger(struct gw_sim_part *part, uint32_t trigger, uint32_t flow, gw_time at)
{
    if (trigger == GW_TRIGGER_NONE)
        return;
    if (part->pull_count == part->pull_room)
        part->pulls = gw_sim_grow(part->pulls, &part->pull_room, sizeof(*part->pulls));
    part->pulls[part->pull_count++] =
        (struct gw_sim_pull){.at = at, .flow = flow, .trigger = trigger};
}

/* True for an event of a flow's sender half; else `node` is the receiver, or a job's member. */
static bool is_of_sender(const struct gw_sim *sim, const struct gw_sim_node *node,
                         const struct gw_event *event)
{
    const struct gw_flow_spec *spec = &sim->scenario->workload.flows[event->tag];
    return spec->src == node->id && spec->dst == event->peer &&
           sim->flow_numbers[event->tag] == event->flow;
}

static void take_event(struct gw_sim_part *part, struct gw_sim_node *node,
                       const struct gw_event *event, gw_time now)
{
    const struct gw_sim *sim = part->sim;
    uint32_t index = event->tag;
    if (gw_sim_member_event(part, event, now))
        return;
    const struct gw_flow_spec *spec = &sim->scenario->workload.flows[index];
    if (event->kind == GW_EVENT_RECEIVED) {
        pull_trigger(part, spec->fires_received, index, now);
    } else if (is_of_sender(sim, node, event)) {
        record_end(part, index, now, event->kind == GW_EVENT_FAILED ? GW_FLOW_FAILED : GW_FLOW_DONE,
                   event->retransmits);
        pull_trigger(part, spec->fires_sent, index, now);
        /* An empty message completes without its receiver. */
        if (spec->bytes == 0)
            pull_trigger(part, spec->fires_received, index, now);
    }
}

void gw_sim_app_poll(struct gw_sim_part *part, struct gw_sim_node *node, gw_time now)
{
    enum {
        BATCH = 16,
    };
    struct gw_event events[BATCH];
    uint32_t count;
    while ((count = gw_endpoint_poll(node->endpoint, events, BATCH)) > 0) {
        for (uint32_t i = 0; i < count; i++)
            take_event(part, node, &events[i], now);
    }
    /* A flow that ended makes room for one that waits. */
    if (node->app.is_blocked) {
        node->app.is_blocked = false;
        gw_sim_app_start(part, node, now);
    }
}

static int compare_pulls(const void *a, const void *b)
{
    const struct gw_sim_pull *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (x->flow != y->flow)
        return x->flow < y->flow ? -1 : 1;
    return x->trigger < y->trigger ? -1 : x->trigger > y->trigger;
}

/* Starts one flow of a trigger at its host, one window after the pull. */
static void start_later(struct gw_sim *sim, uint32_t flow, gw_time pulled_at)
{
    uint32_t place = sim->place[sim->scenario->workload.flows[flow].src];
    gw_time at = pulled_at + sim->window;
    gw_sim_app_add(&sim->nodes[place].app, (struct gw_sim_start){.at = at, .flow = flow});
    for (uint32_t p = 0; p < sim->part_count; p++) {
        struct gw_sim_part *part = &sim->parts[p];
        if (place >= part->first && place < part->last &&
            at < gw_heap_deadline(&part->wakes, place - part->first))
            gw_heap_set(&part->wakes, place - part->first, at);
    }
}

static void fire(struct gw_sim *sim, const struct gw_sim_pull *pull)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    const struct gw_trigger_spec *trigger = &workload->triggers[pull->trigger];
    uint32_t pulls = ++sim->trigger_pulls[pull->trigger];
    const uint32_t *starts = workload->starts + trigger->first_start;
    if (trigger->one_each) {
        if (pulls <= trigger->start_count)
            start_later(sim, starts[pulls - 1], pull->at);
    } else if (pulls == trigger->needs) {
        for (uint32_t i = 0; i < trigger->start_count; i++)
            start_later(sim, starts[i], pull->at);
    }
}

/* In the serial phase: handles the pulls of the last window in the order of time. */
void gw_sim_triggers(struct gw_sim *sim)
{
    struct gw_sim_part *first = &sim->parts[0];
    for (uint32_t p = 1; p < sim->part_count; p++) {
        struct gw_sim_part *part = &sim->parts[p];
        for (uint32_t i = 0; i < part->pull_count; i++)
            pull_trigger(first, part->pulls[i].trigger, part->pulls[i].flow, part->pulls[i].at);
        part->pull_count = 0;
    }
    if (first->pull_count == 0)
        return;
    qsort(first->pulls, first->pull_count, sizeof(*first->pulls), compare_pulls);
    for (uint32_t i = 0; i < first->pull_count; i++)
        fire(sim, &first->pulls[i]);
    first->pull_count = 0;
}
