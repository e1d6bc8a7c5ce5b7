/*
 * With which thresholds the tenants and jobs of a workload announce their bursts: what they ask for
 * by a ratio follows from the longest way of their messages (PCN, section 3.3).
 */
#include "base/error.h"
#include "config/loader.h"

/* Keeps the longer of two ways. */
static void lengthen(const struct gw_scenario *scenario, uint32_t src, uint32_t dst,
                     struct gw_notice_path *longest)
{
    uint32_t header = scenario->host.header, full = scenario->host.mtu + header;
    if (src == dst)
        return;
    struct gw_topo_path path = gw_topo_path(&scenario->topo, src, dst, full, header);
    gw_time rtt = path.one_way_full + path.one_way_ack;
    if (rtt > longest->rtt)
        *longest = (struct gw_notice_path){
            .rtt = rtt, .rate_bps = path.rate_bps_min, .packet = longest->packet};
}

static int resolve(const struct gw_loader *loader, const struct gw_doc_value *entry, uint8_t option,
                   const struct gw_notice_path *path, uint8_t *units)
{
    *units = 0;
    if (!loader->scenario->pcn.enable || path->rtt == 0)
        return GW_OK;
    if (gw_notice_units(option, path, units) == GW_OK)
        return GW_OK;
    char why[GW_WHY_MAX];
    snprintf(why, sizeof(why),
             "announce: the formula gives a threshold of %u packets, and a notice can say up to %d",
             gw_notice_formula(path, option - GW_NOTICE_FORMULA), GW_NOTICE_PACKETS_MAX);
    return gw_schema_blame(&loader->document, entry, GW_ERR_RANGE, why);
}

static int resolve_tenant(const struct gw_loader *loader, const struct gw_doc_value *entry,
                          uint32_t index)
{
    const struct gw_scenario *scenario = loader->scenario;
    const struct gw_workload *workload = &scenario->workload;
    struct gw_tenant_spec *tenant = &workload->tenants[index];
    struct gw_notice_path *path = &tenant->notice_path;
    path->packet = scenario->host.mtu + scenario->host.header;
    for (uint32_t i = 0; i < workload->flow_count && scenario->pcn.enable; i++)
        if (workload->flows[i].tenant == index + 1)
            lengthen(scenario, workload->flows[i].src, workload->flows[i].dst, path);
    return resolve(loader, entry, tenant->announce, path, &tenant->units);
}

/* Between workers and servers or, without any, between workers. */
static int resolve_job(const struct gw_loader *loader, const struct gw_doc_value *entry,
                       struct gw_job_spec *job)
{
    const struct gw_scenario *scenario = loader->scenario;
    const uint32_t *workers = scenario->workload.job_hosts + job->first_worker;
    const uint32_t *peers = scenario->workload.job_servers + job->first_server;
    uint32_t peer_count = job->server_count;
    if (peer_count == 0) {
        peers = workers;
        peer_count = job->worker_count;
    }
    job->notice_path =
        (struct gw_notice_path){.packet = scenario->host.mtu + scenario->host.header};
    for (uint32_t i = 0; i < job->worker_count && scenario->pcn.enable; i++)
        for (uint32_t p = 0; p < peer_count; p++)
            lengthen(scenario, workers[i], peers[p], &job->notice_path);
    return resolve(loader, entry, job->announce, &job->notice_path, &job->units);
}

int gw_loader_announce(struct gw_loader *loader, const struct gw_doc_value *entry,
                       uint32_t first_tenant, uint32_t first_job)
{
    struct gw_workload *workload = &loader->scenario->workload;
    int error = GW_OK;
    for (uint32_t i = first_tenant; i < workload->tenant_count && !error; i++)
        error = resolve_tenant(loader, entry, i);
    for (uint32_t i = first_job; i < workload->job_count && !error; i++)
        error = resolve_job(loader, entry, &workload->jobs[i]);
    return error;
}
