/* Who announces bursts in a run; see notices.h. */
#include "sim/notices.h"

#include <stdlib.h>

#include "core/host/egress.h"
#include "sim/sim_impl.h"
#include "topo/memory.h"

enum {
    ANNOUNCERS_MAX = 65536, /* the endpoint's limit */
};

/*
 * Numbers of those who announce, as switches see them: jobs that send fragments have the numbers of
 * their shards (the indices of their servers), then come all jobs, and then the tenants.
 */
static uint32_t number_of_job(const struct gw_sim *sim, const struct gw_job_spec *spec)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    return workload->job_server_count + (uint32_t)(spec - workload->jobs);
}

static uint32_t number_of_tenant(const struct gw_sim *sim, uint32_t tenant)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    return workload->job_server_count + workload->job_count + tenant - 1;
}

/* A round trip of a path with a full queue: no burst needs to wait longer. */
static gw_time longest_rtt(const struct gw_sim *sim, const struct gw_notice_path *path)
{
    if (path->rate_bps == 0)
        return path->rtt;
    return path->rtt +
           gw_serialisation(gw_byte_time_from_bps(path->rate_bps), sim->scenario->queue.capacity);
}

struct gw_notice_terms gw_sim_notices_of_flow(const struct gw_sim *sim, uint32_t flow)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    uint32_t tenant = workload->flows[flow].tenant;
    if (tenant == 0)
        return (struct gw_notice_terms){0};
    return (struct gw_notice_terms){
        .job = number_of_tenant(sim, tenant),
        .units = workload->tenants[tenant - 1].units,
        .rtt = longest_rtt(sim, &workload->tenants[tenant - 1].notice_path),
        .lead = sim->scenario->pcn.lead,
    };
}

void gw_sim_notices_send(struct gw_sim_part *part, const struct gw_sim_node *node, uint32_t flow)
{
    const struct gw_flow_spec *spec = &part->sim->scenario->workload.flows[flow];
    struct gw_notice_terms terms = gw_sim_notices_of_flow(part->sim, flow);
    struct gw_pkt *pkt = terms.units ? gw_pkt_claim(&part->pool) : NULL;
    if (!pkt)
        return;
    *pkt = (struct gw_pkt){
        .q = {.size = part->sim->scenario->host.header,
              .key = gw_flow_key(spec->src, spec->dst, flow),
              .class = GW_CLASS_BEST_EFFORT,
              .ecn = GW_ECN_ECT0,
              .kind = GW_PKT_NOTICE},
        .src = spec->src,
        .dst = spec->dst,
        .flow = flow,
        .entropy = (uint16_t)flow,
        .buf = GW_BUF_NONE,
        .notice = {.job = terms.job, .units = terms.units},
    };
    gw_egress_control(node->endpoint, pkt);
}

struct gw_notice_terms gw_sim_notices_of_job(const struct gw_sim *sim,
                                             const struct gw_job_spec *spec)
{
    return (struct gw_notice_terms){
        .job = number_of_job(sim, spec),
        .units = spec->units,
        .rtt = longest_rtt(sim, &spec->notice_path),
        .lead = sim->scenario->pcn.lead,
    };
}

uint8_t gw_sim_notices_option(const struct gw_sim *sim, const struct gw_job_spec *spec)
{
    return sim->scenario->pcn.enable ? spec->announce : GW_NOTICE_OFF;
}

bool gw_sim_notices_stage(const struct gw_sim *sim, struct gw_switch_notice_cfg *cfg)
{
    const struct gw_scenario *scenario = sim->scenario;
    const struct gw_pcn_cfg *pcn = &scenario->pcn;
    *cfg = (struct gw_switch_notice_cfg){
        .packet = scenario->host.mtu + scenario->host.header,
        .floor = pcn->floor,
        .hold = pcn->hold,
        .share = pcn->share,
        .save = pcn->save,
        .jobs_max = pcn->jobs,
        .announcements_max = pcn->announcements,
    };
    return pcn->enable;
}

/* Announcers of a host: one for each tenant and peer, but at least as many as need be. */
static void add_flows(const struct gw_sim *sim, struct gw_sim_demand *demands)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    uint32_t host_count = sim->scenario->topo.host_count;
    uint32_t *last = gw_memory_zeroed(host_count, sizeof(*last)); /* flow of the host, from 1 */
    for (uint32_t i = 0; i < workload->flow_count; i++) {
        const struct gw_flow_spec *flow = &workload->flows[i];
        if (flow->tenant == 0 || workload->tenants[flow->tenant - 1].units == 0)
            continue;
        const struct gw_flow_spec *before = &workload->flows[last[flow->src] - 1];
        bool is_same =
            last[flow->src] && before->dst == flow->dst && before->tenant == flow->tenant;
        demands[flow->src].announcers += !is_same;
        last[flow->src] = i + 1;
    }
    free(last);
}

static void add_job(const struct gw_sim *sim, const struct gw_job_spec *spec,
                    struct gw_sim_demand *demands)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    if (spec->units == 0)
        return;
    uint32_t peers = spec->server_count ? spec->server_count : spec->worker_count;
    for (uint32_t rank = 0; rank < spec->worker_count; rank++)
        demands[workload->job_hosts[spec->first_worker + rank]].announcers += peers;
    for (uint32_t i = 0; i < spec->server_count; i++)
        demands[workload->job_servers[spec->first_server + i]].announcers += spec->worker_count;
}

void gw_sim_notices_demand(const struct gw_sim *sim, struct gw_sim_demand *demands)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    if (!sim->scenario->pcn.enable)
        return;
    add_flows(sim, demands);
    for (uint32_t i = 0; i < workload->job_count; i++)
        add_job(sim, &workload->jobs[i], demands);
    for (uint32_t host = 0; host < sim->scenario->topo.host_count; host++)
        if (demands[host].announcers > ANNOUNCERS_MAX)
            demands[host].announcers = ANNOUNCERS_MAX;
}

/* Adds what a switch has counted. */
static void add_switch(const struct gw_sim *sim, const struct gw_sim_node *node, gw_time now,
                       struct gw_notice_totals *totals)
{
    const struct gw_switch_notice *stage = gw_switch_notices(node->sw);
    uint16_t ports = sim->scenario->topo.nodes[node->id].port_count;
    if (!stage)
        return;
    struct gw_switch_notice_stats stats = gw_switch_notice_total(stage, now);
    gw_sim_add_stats(&totals->at_switches, &stats, sizeof(stats));
    for (uint16_t port = 0; port < ports; port++) {
        gw_time lowered = gw_switch_notice_stats(stage, port, now).lowered;
        totals->lowered_most = lowered > totals->lowered_most ? lowered : totals->lowered_most;
    }
}

static void add_host(const struct gw_sim_node *node, struct gw_notice_totals *totals)
{
    const struct gw_endpoint_stats *stats = gw_endpoint_stats(node->endpoint);
    totals->announced += stats->bursts_announced;
    totals->unanswered += stats->bursts_unanswered;
    totals->unannounced += stats->bursts_unannounced;
}

static void add_node(const struct gw_sim *sim, const struct gw_sim_node *node, gw_time now,
                     struct gw_notice_totals *totals)
{
    if (node->sw)
        add_switch(sim, node, now, totals);
    else
        add_host(node, totals);
}

void gw_sim_notices_crashed(struct gw_sim *sim, const struct gw_sim_node *node, gw_time now)
{
    add_node(sim, node, now, &sim->past_notices);
}

struct gw_notice_totals gw_sim_notices(const struct gw_sim *sim)
{
    struct gw_notice_totals totals = sim->past_notices;
    gw_time now = (sim->window_index + 1) * sim->window;
    for (uint32_t id = 0; id < sim->scenario->topo.node_count; id++)
        add_node(sim, &sim->nodes[sim->place[id]], now, &totals);
    return totals;
}
