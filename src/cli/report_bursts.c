/* Bursts in reports of simulation runs; see report_bursts.h. */
#include "cli/report_bursts.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/box.h"
#include "topo/memory.h"

static double in_us(gw_time time)
{
    return (double)time / (double)GW_US;
}

/* Bits of so many bytes in a time, in Gb/s; 0 when there is no time. */
static double gbps(uint64_t bytes, gw_time time)
{
    return time ? (double)bytes * 8 / 1e3 / in_us(time) : 0;
}

/* Of all packets of some sorts, on average. */
static double mean_wait_us(const struct gw_port_flux *sorts, uint32_t first, uint32_t count)
{
    uint64_t waited = 0, packets = 0;
    for (uint32_t i = first; i < first + count; i++) {
        waited += sorts[i].waited;
        packets += sorts[i].packets;
    }
    return packets ? in_us(waited) / (double)packets : 0;
}

static json_t *burst_json(const struct gw_burst_result *burst)
{
    gw_time inside = burst->last_at - burst->first_at;
    gw_time completion = burst->is_complete ? burst->end - burst->start : 0;
    return json_pack("{s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "start_us",
                     in_us(burst->start), "completion_us", in_us(completion), "first_packet_us",
                     in_us(burst->first_at), "goodput_gbps", gbps(burst->bytes, completion),
                     "queue_at_start", (json_int_t)burst->queue_at_start, "queue_max",
                     (json_int_t)burst->queue_max, "drops", (json_int_t)burst->drops, "own_drops",
                     (json_int_t)burst->own_drops, "delay_us",
                     mean_wait_us(burst->sorts, 0, GW_PORT_SORTS), "own_delay_us",
                     mean_wait_us(burst->sorts, GW_PORT_BURSTS, 1), "others_gbps",
                     gbps(burst->sorts[GW_PORT_OTHERS].bytes, inside));
}

/* A box of a key of the bursts; empty without any. */
static json_t *box_json(const json_t *bursts, const char *key)
{
    size_t count = json_array_size(bursts), i;
    json_t *burst, *json = json_object();
    double box[GW_BOX_PARTS], *values = gw_memory_zeroed(count + 1, sizeof(*values));
    json_array_foreach(bursts, i, burst)
    {
        values[i] = json_number_value(json_object_get(burst, key));
    }
    if (count)
        gw_box_of(values, count, box);
    for (uint32_t part = 0; part < GW_BOX_PARTS && count; part++)
        json_object_set_new(json, gw_box_names[part], json_real(box[part]));
    free(values);
    return json;
}

/* What jobs sent by the watched port. */
static void add_job_bursts(const struct gw_run_report *run, json_t *json)
{
    json_t *bursts = json_array();
    for (uint32_t i = run->scenario->workload.burst_count; i < gw_sim_bursts(run->sim); i++) {
        struct gw_burst_result burst;
        if (!gw_sim_burst(run->sim, i, &burst))
            continue;
        json_t *item = burst_json(&burst);
        json_object_set_new(item, "job", json_integer((json_int_t)burst.job));
        json_object_set_new(item, "bytes", json_integer((json_int_t)burst.bytes));
        json_array_append_new(bursts, item);
    }
    json_object_set_new(json, "job_bursts", bursts);
}

static void add_bursts(const struct gw_run_report *run, json_t *json)
{
    static const char *const keys[] = {"queue_at_start", "queue_max", "completion_us"};
    json_t *bursts = json_array(), *boxes = json_object();
    for (uint32_t i = 0; i < run->scenario->workload.burst_count; i++) {
        struct gw_burst_result burst;
        if (gw_sim_burst(run->sim, i, &burst))
            json_array_append_new(bursts, burst_json(&burst));
    }
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        json_object_set_new(boxes, keys[i], box_json(bursts, keys[i]));
    json_object_set_new(json, "bursts", bursts);
    json_object_set_new(json, "burst_boxes", boxes);
}

/* How long packets of a sort waited. */
static json_t *delay_json(const struct gw_run_report *run, const struct gw_port_result *port,
                          enum gw_port_sort sort)
{
    return json_pack("{s:f, s:f, s:f, s:f}", "mean", mean_wait_us(port->sorts, sort, 1), "p50",
                     in_us(gw_sim_port_delay(run->sim, sort, 500)), "p99",
                     in_us(gw_sim_port_delay(run->sim, sort, 990)), "max",
                     in_us(gw_sim_port_delay(run->sim, sort, 1000)));
}

static void name_port(const struct gw_run_report *run, const struct gw_port_result *port,
                      char *name, size_t size)
{
    const struct gw_topo *topo = &run->scenario->topo;
    uint32_t peer = topo->ports[topo->nodes[port->node].first_port + port->port].peer;
    snprintf(name, size, "%s to %s", topo->nodes[port->node].name, topo->nodes[peer].name);
}

static void add_port(const struct gw_run_report *run, json_t *json)
{
    struct gw_port_result port;
    char name[64];
    if (!gw_sim_port(run->sim, &port))
        return;
    name_port(run, &port, name, sizeof(name));
    const struct gw_port_flux *others = &port.sorts[GW_PORT_OTHERS];
    uint64_t inside = port.inside[GW_PORT_OTHERS].bytes;
    json_object_set_new(
        json, "port",
        json_pack("{s:s, s:I, s:I, s:{s:o, s:o, s:f}, s:{s:f, s:f, s:f}, s:f}", "name", name,
                  "drops", (json_int_t)port.drops, "inside_drops", (json_int_t)port.inside_drops,
                  "delay_us", "bursts", delay_json(run, &port, GW_PORT_BURSTS), "others",
                  delay_json(run, &port, GW_PORT_OTHERS), "inside",
                  mean_wait_us(port.inside, 0, GW_PORT_SORTS), "others_gbps", "all",
                  gbps(others->bytes, port.time), "inside", gbps(inside, port.inside_time),
                  "outside", gbps(others->bytes - inside, port.time - port.inside_time),
                  "inside_us", in_us(port.inside_time)));
}

static void add_notices(const struct gw_run_report *run, json_t *json)
{
    struct gw_notice_totals totals = gw_sim_notices(run->sim);
    const struct gw_switch_notice_stats *switches = &totals.at_switches;
    struct gw_sim_totals sim = gw_sim_totals(run->sim);
    json_object_set_new(
        json, "pcn",
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "announced",
                  (json_int_t)totals.announced, "unanswered", (json_int_t)totals.unanswered,
                  "unannounced", (json_int_t)totals.unannounced, "notices",
                  (json_int_t)switches->notices, "repeated", (json_int_t)switches->repeated,
                  "refused", (json_int_t)switches->refused, "no_room",
                  (json_int_t)switches->no_room, "heads", (json_int_t)switches->heads, "recoveries",
                  (json_int_t)switches->recoveries, "moved", (json_int_t)switches->moved, "dropped",
                  (json_int_t)switches->dropped, "lowered",
                  sim.end ? in_us(totals.lowered_most) / in_us(sim.end) : 0.0));
}

/* With PCN off too, so that both rows of a table have the same columns. */
static bool may_announce(const struct gw_scenario *scenario)
{
    const struct gw_workload *workload = &scenario->workload;
    bool may = scenario->pcn.enable;
    for (uint32_t i = 0; i < workload->tenant_count; i++)
        may |= workload->tenants[i].announce != GW_NOTICE_OFF;
    for (uint32_t i = 0; i < workload->job_count; i++)
        may |= workload->jobs[i].announce != GW_NOTICE_OFF;
    return may;
}

void gw_report_bursts_add(const struct gw_run_report *run, json_t *json)
{
    if (may_announce(run->scenario))
        add_notices(run, json);
    if (run->scenario->workload.burst_count)
        add_bursts(run, json);
    if (gw_sim_bursts(run->sim) && run->scenario->workload.job_count)
        add_job_bursts(run, json);
    add_port(run, json);
}

void gw_report_bursts_text(const struct gw_run_report *run)
{
    struct gw_port_result port;
    struct gw_notice_totals notices = gw_sim_notices(run->sim);
    char name[64];
    for (uint32_t i = 0; i < run->scenario->workload.burst_count; i++) {
        struct gw_burst_result burst;
        if (gw_sim_burst(run->sim, i, &burst))
            printf("  burst        at %.2f us  took %.2f us  queue %u at its start, %u at most  "
                   "%llu drops\n",
                   in_us(burst.start), burst.is_complete ? in_us(burst.end - burst.start) : 0.0,
                   burst.queue_at_start, burst.queue_max, (unsigned long long)burst.drops);
    }
    if (run->scenario->pcn.enable)
        printf("  notices      %llu bursts announced, %llu left unanswered; at switches %llu "
               "recoveries, %llu refused\n",
               (unsigned long long)notices.announced, (unsigned long long)notices.unanswered,
               (unsigned long long)notices.at_switches.recoveries,
               (unsigned long long)notices.at_switches.refused);
    if (!gw_sim_port(run->sim, &port))
        return;
    name_port(run, &port, name, sizeof(name));
    printf("  port         %s: packets waited %.2f us on average, those of bursts %.2f us\n", name,
           mean_wait_us(port.sorts, 0, GW_PORT_SORTS), mean_wait_us(port.sorts, GW_PORT_BURSTS, 1));
}
