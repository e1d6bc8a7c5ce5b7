/* The lists of flows and triggers, and the registry made from workload.def; see workload.h. */
#include "workload/workload.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "topo/memory.h"

#define GW_REGISTER(name) extern const struct gw_workload_kind gw_workload_##name;
#include "workload/workload.def"
#undef GW_REGISTER

static const struct gw_algo *const algos[] = {
#define GW_REGISTER(name) &gw_workload_##name.algo,
#include "workload/workload.def"
#undef GW_REGISTER
};

const struct gw_registry gw_workload_registry = {
    .kind = "workload",
    .algos = algos,
    .count = sizeof(algos) / sizeof(algos[0]),
};

void gw_workload_init(struct gw_workload *workload)
{
    *workload = (struct gw_workload){0};
}

void gw_workload_fini(struct gw_workload *workload)
{
    for (uint32_t i = 0; i < workload->plan_count; i++)
        gw_plan_free(&workload->plans[i].plan);
    free(workload->plans);
    free(workload->collectives);
    free(workload->tenants);
    free(workload->bursts);
    free(workload->starts);
    free(workload->triggers);
    free(workload->flows);
    free(workload->calls);
    free(workload->jobs);
    free(workload->job_hosts);
    free(workload->job_servers);
    gw_workload_init(workload);
}

uint32_t gw_workload_add_flow(struct gw_workload *workload, const struct gw_flow_spec *flow)
{
    workload->flows = gw_memory_grow(workload->flows, &workload->flow_room,
                                     workload->flow_count + 1, sizeof(workload->flows[0]));
    workload->flows[workload->flow_count] = *flow;
    return workload->flow_count++;
}

uint32_t gw_workload_add_trigger(struct gw_workload *workload, uint32_t needs, bool one_each)
{
    workload->triggers = gw_memory_grow(workload->triggers, &workload->trigger_room,
                                        workload->trigger_count + 1, sizeof(workload->triggers[0]));
    workload->triggers[workload->trigger_count] = (struct gw_trigger_spec){
        .needs = needs, .first_start = workload->start_count, .one_each = one_each};
    return workload->trigger_count++;
}

void gw_workload_add_start(struct gw_workload *workload, uint32_t flow)
{
    GW_ASSERT(workload->trigger_count > 0);
    workload->starts = gw_memory_grow(workload->starts, &workload->start_room,
                                      workload->start_count + 1, sizeof(workload->starts[0]));
    workload->starts[workload->start_count++] = flow;
    workload->triggers[workload->trigger_count - 1].start_count++;
}

uint32_t gw_workload_add_plan(struct gw_workload *workload, const struct gw_plan *plan,
                              const char *name)
{
    workload->plans = gw_memory_grow(workload->plans, &workload->plan_room,
                                     workload->plan_count + 1, sizeof(workload->plans[0]));
    struct gw_named_plan *added = &workload->plans[workload->plan_count];
    added->plan = *plan;
    snprintf(added->name, sizeof(added->name), "%s", name);
    return workload->plan_count++;
}

uint32_t gw_workload_add_job(struct gw_workload *workload, const struct gw_job_spec *job)
{
    workload->jobs = gw_memory_grow(workload->jobs, &workload->job_room, workload->job_count + 1,
                                    sizeof(workload->jobs[0]));
    struct gw_job_spec *added = &workload->jobs[workload->job_count];
    uint32_t worker = 0, server = 0;
    if (workload->job_count) {
        worker = added[-1].first_worker + added[-1].worker_count;
        server = added[-1].first_server + added[-1].server_count;
    }
    *added = *job;
    added->first_worker = worker;
    added->worker_count = workload->job_host_count - worker;
    added->first_server = server;
    added->server_count = workload->job_server_count - server;
    return workload->job_count++;
}

void gw_workload_add_collective(struct gw_workload *workload, const char *kind, uint32_t first_flow)
{
    workload->collectives =
        gw_memory_grow(workload->collectives, &workload->collective_room,
                       workload->collective_count + 1, sizeof(workload->collectives[0]));
    workload->collectives[workload->collective_count++] = (struct gw_collective_spec){
        .kind = kind, .first_flow = first_flow, .flow_count = workload->flow_count - first_flow};
}

uint32_t gw_workload_add_tenant(struct gw_workload *workload, uint8_t announce)
{
    workload->tenants = gw_memory_grow(workload->tenants, &workload->tenant_room,
                                       workload->tenant_count + 1, sizeof(workload->tenants[0]));
    workload->tenants[workload->tenant_count] = (struct gw_tenant_spec){.announce = announce};
    return ++workload->tenant_count;
}

void gw_workload_add_burst(struct gw_workload *workload, uint32_t first_flow)
{
    workload->bursts = gw_memory_grow(workload->bursts, &workload->burst_room,
                                      workload->burst_count + 1, sizeof(workload->bursts[0]));
    workload->bursts[workload->burst_count++] = (struct gw_burst_spec){
        .first_flow = first_flow, .flow_count = workload->flow_count - first_flow};
    for (uint32_t flow = first_flow; flow < workload->flow_count; flow++)
        workload->flows[flow].burst = workload->burst_count;
}

void gw_workload_add_server(struct gw_workload *workload, uint32_t host)
{
    workload->job_servers =
        gw_memory_grow(workload->job_servers, &workload->job_server_room,
                       workload->job_server_count + 1, sizeof(workload->job_servers[0]));
    workload->job_servers[workload->job_server_count++] = host;
}

void gw_workload_add_worker(struct gw_workload *workload, uint32_t host)
{
    workload->job_hosts =
        gw_memory_grow(workload->job_hosts, &workload->job_host_room, workload->job_host_count + 1,
                       sizeof(workload->job_hosts[0]));
    workload->job_hosts[workload->job_host_count++] = host;
}

uint32_t gw_workload_add_call(struct gw_workload *workload, const struct gw_call_spec *call)
{
    workload->calls = gw_memory_grow(workload->calls, &workload->call_room,
                                     workload->call_count + 1, sizeof(workload->calls[0]));
    workload->calls[workload->call_count] = *call;
    return workload->call_count++;
}
