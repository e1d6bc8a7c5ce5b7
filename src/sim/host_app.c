/*
 * The applications on simulated hosts: they start flows when their time has come, and turn the
 * endpoint's events into results and firings of triggers.
 */
#include "sim/host_app.h"

#include "base/error.h"
#include "base/units.h"
#include "sim/jobs.h"
#include "sim/labels.h"
#include "sim/message_terms.h"
#include "sim/notices.h"
#include "sim/payload.h"
#include "sim/triggers.h"
#include "topo/memory.h"

enum {
    RESTART_PACKETS = 10, /* of a window after a silence (RFC 6928, section 2) */
};

void gw_sim_app_add(struct gw_sim_app *app, struct gw_sim_start start)
{
    app->starts = gw_memory_grow(app->starts, &app->room, app->count + 1, sizeof(*app->starts));
    uint32_t i = app->count++;
    for (; i > app->cursor &&
           (app->starts[i - 1].at > start.at ||
            (app->starts[i - 1].at == start.at && app->starts[i - 1].flow > start.flow));
         i--)
        app->starts[i] = app->starts[i - 1];
    app->starts[i] = start;
}

struct gw_path gw_sim_app_path(const struct gw_sim *sim, uint32_t src, uint32_t dst)
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

/* A flow ends at its sender, which is done with it whether it failed or not. */
static void end_flow(struct gw_sim_part *part, uint32_t flow, gw_time at,
                     enum gw_flow_outcome outcome, uint64_t retransmits)
{
    record_end(part, flow, at, outcome, retransmits);
    gw_sim_labels_release(part->sim, flow);
    gw_sim_message_forget(part->sim, flow);
    gw_sim_trigger_fire(part, part->sim->scenario->workload.flows[flow].fires_sent, flow, at);
    if (part->sim->payload)
        gw_sim_payload_sent(part->sim, flow);
}

/* A flow takes over what the one before it left to it. */
static void inherit(const struct gw_sim *sim, const struct gw_flow_spec *spec, struct gw_path *path)
{
    if (spec->follows == 0)
        return;
    const struct gw_sim_legacy *legacy = &sim->legacies[spec->follows - 1];
    uint64_t restart = (uint64_t)RESTART_PACKETS * path->mtu;
    path->window = spec->goes_on || legacy->window < restart ? legacy->window : restart;
    path->memory = legacy->memory;
}

/* Starts a flow; false when the endpoint has no room. */
static bool start_flow(struct gw_sim *sim, struct gw_sim_node *node, uint32_t flow, gw_time now)
{
    const struct gw_flow_spec *spec = &sim->scenario->workload.flows[flow];
    struct gw_send send = {
        .peer = spec->dst,
        .bytes = spec->bytes,
        .data = sim->payload ? gw_sim_payload_message(sim, flow) : NULL,
        .tag = sim->first_tag + flow,
        .transport = &sim->scenario->transport,
        .path = gw_sim_app_path(sim, spec->src, spec->dst),
        .notice = gw_sim_notices_of_flow(sim, flow),
    };
    inherit(sim, spec, &send.path);
    gw_sim_message_weigh(sim, flow, &send);
    send.path.labels = gw_sim_labels_claim(sim, flow);
    if (gw_endpoint_send(node->endpoint, &send, &sim->flow_numbers[flow], now) != GW_OK)
        return false;
    if (sim->payload)
        gw_sim_payload_expect(sim, flow);
    node->app.sends++;
    sim->flows[flow].started = true;
    return true;
}

static void start_due(struct gw_sim_part *part, struct gw_sim_node *node, gw_time now)
{
    struct gw_sim *sim = part->sim;
    struct gw_sim_app *app = &node->app;
    while (app->cursor < app->count && app->starts[app->cursor].at <= now) {
        uint32_t flow = app->starts[app->cursor].flow;
        if (flow >= sim->scenario->workload.flow_count) {
            if (!gw_sim_member_start(part, flow - sim->scenario->workload.flow_count, now)) {
                app->is_blocked = true;
                return;
            }
            app->cursor++;
            continue;
        }
        bool is_silent = sim->scenario->workload.flows[flow].silent;
        if (!app->is_gone && is_silent)
            gw_sim_notices_send(part, node, flow);
        else if (!app->is_gone && !start_flow(sim, node, flow, now)) {
            app->is_blocked = true;
            return;
        }
        sim->flows[flow].start = app->starts[app->cursor].at;
        if (app->is_gone || is_silent)
            end_flow(part, flow, now, app->is_gone ? GW_FLOW_FAILED : GW_FLOW_DONE, 0);
        app->cursor++;
    }
}

void gw_sim_app_run(struct gw_sim_part *part, struct gw_sim_node *node, gw_time now)
{
    struct gw_sim_app *app = &node->app;
    if (!app->is_blocked && app->ready_at <= now)
        start_due(part, node, now);
    while (app->wake <= now)
        gw_sim_members_expire(part, app, now);
}

/* True for an event of a flow's sender half; else `node` is the receiver, or a job's member. */
static bool is_of_sender(const struct gw_sim *sim, const struct gw_sim_node *node,
                         const struct gw_event *event)
{
    uint32_t flow = gw_sim_flow_of_tag(sim, event->tag);
    const struct gw_flow_spec *spec = &sim->scenario->workload.flows[flow];
    return spec->src == node->id && spec->dst == event->peer &&
           sim->flow_numbers[flow] == event->flow;
}

static void take_event(struct gw_sim_part *part, struct gw_sim_node *node,
                       const struct gw_event *event, gw_time now)
{
    struct gw_sim *sim = part->sim;
    if (event->kind == GW_EVENT_RECEIVED)
        gw_sim_message_check(part, event);
    if (gw_sim_job_event(part, node, event, now))
        return;
    uint32_t index = gw_sim_flow_of_tag(sim, event->tag);
    const struct gw_flow_spec *spec = &sim->scenario->workload.flows[index];
    struct gw_flow_result *result = &sim->flows[index];
    if (event->kind == GW_EVENT_RECEIVED) {
        if (sim->payload && !gw_sim_payload_received(sim, index, event->missing))
            part->changed_messages++;
        /* A host that crashed may receive for the second time what it had received before. */
        if (!result->received)
            gw_sim_trigger_fire(part, spec->fires_received, index, now);
        result->received = true;
        result->missing = event->missing;
    } else if (is_of_sender(sim, node, event)) {
        /* A receiver that crashed acknowledges the rest of a message whose beginning it lost; not
         * that of a blast, which is over at its sender first. */
        bool is_blast = sim->scenario->transport.cc->on_report != NULL;
        bool is_done =
            event->kind == GW_EVENT_SENT && (spec->bytes == 0 || is_blast || result->received);
        result->missing_at_end = event->missing;
        if (sim->legacies)
            sim->legacies[index] =
                (struct gw_sim_legacy){.window = event->window, .memory = event->memory};
        end_flow(part, index, now, is_done ? GW_FLOW_DONE : GW_FLOW_FAILED, event->retransmits);
        /* An empty message completes without its receiver. */
        if (spec->bytes == 0)
            gw_sim_trigger_fire(part, spec->fires_received, index, now);
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
        start_due(part, node, now);
    }
}

/* Jobs start their members anew, if they do. */
static void forget_members(const struct gw_sim *sim, struct gw_sim_app *app)
{
    uint32_t kept = app->cursor;
    for (uint32_t i = app->cursor; i < app->count; i++)
        if (app->starts[i].flow < sim->scenario->workload.flow_count)
            app->starts[kept++] = app->starts[i];
    app->count = kept;
}

void gw_sim_app_crash(struct gw_sim *sim, uint32_t place, gw_time now, gw_time until)
{
    struct gw_sim_part *part = gw_sim_part_of(sim, place);
    struct gw_sim_node *node = &sim->nodes[place];
    struct gw_sim_app *app = &node->app;
    for (uint32_t i = 0; i < sim->scenario->workload.flow_count; i++) {
        if (sim->scenario->workload.flows[i].src != node->id || !sim->flows[i].started ||
            sim->flows[i].outcome != GW_FLOW_PENDING)
            continue;
        struct gw_flow_info info = {0};
        gw_endpoint_flow_info(node->endpoint, sim->flow_numbers[i], &info);
        end_flow(part, i, now, GW_FLOW_FAILED, info.retransmits);
    }
    forget_members(sim, app);
    app->is_blocked = false;
    app->is_gone |= until == GW_TIME_NEVER;
    /* The restart takes effect at a window's beginning, and time never goes back. */
    gw_time back = app->is_gone ? now : (until + sim->window - 1) / sim->window * sim->window;
    back = back > now ? back : now;
    app->ready_at = back > app->ready_at ? back : app->ready_at;
    gw_heap_set(&part->wakes, place - part->first, gw_sim_app_next(app));
}
