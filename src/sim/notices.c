/* Who announces bursts in a run; see notices.h. */
#include "sim/notices.h"

#include <stdlib.h>

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

struct gw_notice_terms gw_sim_notices_of_flow(const struct gw_sim *sim, uint32_t flow)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    uint32_t tenant = workload->flows[flow].tenant;
    if (tenant == 0)
        return (struct gw_notice_terms){0};
    return (struct gw_notice_terms){
        .job = number_of_tenant(sim, tenant),
        .units = workload->tenants[tenant - 1].units,
    };
}

struct gw_notice_terms gw_sim_notices_of_job(const struct gw_sim *sim,
                                             const struct gw_job_spec *spec)
{
    return (struct gw_notice_terms){
        .job = number_of_job(sim, spec),
        .units = spec->units,
        .rtt = spec->notice_path.rtt,
    };
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
