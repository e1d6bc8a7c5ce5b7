/*
 * The keys of `queue:` that make a network lossless, and the sizes that follow from its links.
 *
 * Headroom is what may still arrive by a link when its receiver has decided to pause it: what is
 * under way, what the sender sends until it hears of it, and the packets that both ends have begun
 * (IEEE 802.1Q, the annex on the buffers of priority flow control). A port that brought xoff bytes
 * and then its headroom has brought the most that it can; an egress queue with room for that from
 * every port of its switch never drops.
 *
 * Where a switch multiplies results, one packet of the headroom may become several in the same
 * queue: those for racks beyond the same port. So there is room for that many times the headroom;
 * but once for xoff, since what a port has brought counts every copy.
 *
 * All this is about data. Control is never held back, so nothing bounds what comes of it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "config/loader.h"
#include "core/switch/aggregate.h"
#include "topo/memory.h"

enum {
    HYSTERESIS_PACKETS = 2,
    /* A PAUSE lasts for at least so many times the longest way of one, so that it is repeated in
     * time even if one is lost. */
    PAUSE_WAYS = 16,
};

/* And as long as the longest of IEEE 802.1Qbb at some 400 Gb/s: 65535 times 512 bits. */
static const gw_time pause_time_min = 100 * GW_US;

/* One direction of a link with the times of its packets. */
struct way {
    gw_time told;      /* from the receiver's decision to the sender's stop */
    uint64_t headroom; /* bytes */
};

static bool is_host(const struct gw_scenario *scenario, uint32_t node)
{
    return node < scenario->topo.host_count;
}

static gw_time jitter_of(const struct gw_scenario *scenario, uint32_t node, gw_time time)
{
    return is_host(scenario, node) ? (gw_time)gw_q16_mul((gw_q16)time, scenario->host.jitter) : 0;
}

/* Packets that a node puts on a link at once. */
static uint32_t train_of(const struct gw_scenario *scenario, uint32_t node)
{
    return is_host(scenario, node) ? scenario->host.train : 1;
}

/* Time that a packet of `size` bytes takes a host that sends it, beside that on the link. */
static gw_time sending_cost(const struct gw_host_cost_cfg *cost, uint32_t size)
{
    gw_byte_time rate = cost->tx_rate_bps ? gw_byte_time_from_bps(cost->tx_rate_bps) : 0;
    return cost->tx_cost + gw_serialisation(rate, size);
}

/* Of the data that side[`side`] of a link sends. */
static struct way measure_way(const struct gw_scenario *scenario, const struct gw_link *link,
                              uint32_t side)
{
    const struct gw_topo *topo = &scenario->topo;
    const struct gw_host_cfg *host = &scenario->host;
    const uint32_t full = gw_scenario_packet_max(scenario);
    uint32_t sender = link->side[side].node, receiver = link->side[!side].node;
    gw_byte_time there = gw_byte_time_from_bps(link->side[side].rate_bps);
    gw_byte_time back = gw_byte_time_from_bps(link->side[!side].rate_bps);
    gw_time packet = gw_serialisation(back, full);
    /* The PAUSE waits for a train of packets to leave, and stays behind it. */
    gw_time wait = train_of(scenario, receiver) * packet + jitter_of(scenario, receiver, packet);
    if (is_host(scenario, receiver))
        wait += host->train * sending_cost(&host->cost, full);
    struct way way = {.told = wait + gw_serialisation(back, host->header) + link->latency +
                              topo->nodes[sender].delay};
    gw_time open = way.told + link->latency + topo->nodes[receiver].delay +
                   jitter_of(scenario, sender, gw_serialisation(there, full));
    /* The packet with which it decided, and the train that the sender has just begun. */
    way.headroom = (1 + (uint64_t)train_of(scenario, sender)) * full +
                   ((open << GW_BYTE_TIME_SHIFT) + there - 1) / there;
    return way;
}

/* The longest and largest over the links that lead into switches, or into hosts. */
static struct way measure_ways(const struct gw_scenario *scenario, bool into_hosts)
{
    struct way most = {0};
    for (uint32_t i = 0; i < scenario->topo.link_count; i++)
        for (uint32_t side = 0; side < 2; side++) {
            const struct gw_link *link = &scenario->topo.links[i];
            if (is_host(scenario, link->side[!side].node) != into_hosts)
                continue;
            struct way way = measure_way(scenario, link, side);
            most.told = way.told > most.told ? way.told : most.told;
            most.headroom = way.headroom > most.headroom ? way.headroom : most.headroom;
        }
    return most;
}

/* Where the only link of a job's host leads to. A job whose hosts have others, or none, cannot run.
 */
static uint32_t home_of(const struct gw_topo *topo, uint32_t host)
{
    const struct gw_topo_node *node = &topo->nodes[host];
    return node->port_count ? topo->ports[node->first_port].peer : host;
}

/*
 * Copies of one result that a switch may queue at one port. It makes one for each worker that hangs
 * on it, by a port of its own, and one for each switch right below it in the job's tree
 * (core/control/job_tree.h). Each of those has a rack of its own below it, and the server's is none
 * of them.
 */
static uint32_t copies_max(const struct gw_scenario *scenario)
{
    const struct gw_workload *workload = &scenario->workload;
    const struct gw_topo *topo = &scenario->topo;
    uint32_t *counted_for = gw_memory_zeroed(topo->node_count, sizeof(*counted_for)), most = 1;
    for (uint32_t j = 0; j < workload->job_count; j++) {
        const struct gw_job_spec *job = &workload->jobs[j];
        for (uint32_t s = 0; s < job->server_count && job->levels > 0; s++) {
            uint32_t server = job->first_server + s, racks = 0;
            counted_for[home_of(topo, workload->job_servers[server])] = server + 1;
            for (uint32_t w = 0; w < job->worker_count; w++) {
                uint32_t home = home_of(topo, workload->job_hosts[job->first_worker + w]);
                racks += counted_for[home] != server + 1;
                counted_for[home] = server + 1;
            }
            most = racks > most ? racks : most;
        }
    }
    free(counted_for);
    return most < GW_FAN_IN_MAX ? most : GW_FAN_IN_MAX;
}

static uint32_t ports_max(const struct gw_scenario *scenario, bool of_hosts)
{
    uint32_t most = 1;
    for (uint32_t id = 0; id < scenario->topo.node_count; id++)
        if (is_host(scenario, id) == of_hosts && scenario->topo.nodes[id].port_count > most)
            most = scenario->topo.nodes[id].port_count;
    return most;
}

/* A link's own queue must have the same room. */
static int check_link_queues(const struct gw_loader *loader, uint64_t per_port)
{
    const struct gw_topo *topo = &loader->scenario->topo;
    for (uint32_t i = 0; i < topo->link_count; i++)
        for (uint32_t side = 0; side < 2; side++) {
            const struct gw_link_side *from = &topo->links[i].side[side];
            const struct gw_topo_node *node = &topo->nodes[from->node];
            uint64_t least = node->port_count * per_port;
            if (!is_host(loader->scenario, from->node) && from->queue_bytes != 0 &&
                from->queue_bytes < least)
                return gw_document_error(
                    &loader->document, gw_doc_value_get(loader->document.root, "topology"),
                    GW_ERR_RANGE,
                    "a queue of %s is %u bytes; to be lossless it needs %llu for each of %u ports",
                    node->name, from->queue_bytes, (unsigned long long)per_port, node->port_count);
        }
    return GW_OK;
}

/* A host pauses its links before its receive queue is full. */
static int resolve_hosts(struct gw_loader *loader, gw_time time)
{
    struct gw_scenario *scenario = loader->scenario;
    const uint32_t full = gw_scenario_packet_max(scenario);
    struct gw_host_cost_cfg *cost = &scenario->host.cost;
    uint32_t ports = ports_max(scenario, true);
    uint64_t headroom = measure_ways(scenario, true).headroom;
    uint64_t least = headroom + (HYSTERESIS_PACKETS + 1) * full;
    char why[GW_WHY_MAX];
    if (cost->rx_queue == 0)
        return GW_OK;
    if (cost->rx_queue / ports < least) {
        snprintf(why, sizeof(why),
                 "rx_queue is %llu bytes; to be lossless it needs %llu for each of %u ports",
                 (unsigned long long)cost->rx_queue, (unsigned long long)least, ports);
        return gw_schema_blame(&loader->document, gw_doc_value_get(loader->document.root, "host"),
                               GW_ERR_RANGE, why);
    }
    uint64_t xoff = cost->rx_queue / ports - headroom;
    cost->pause.xoff = xoff < UINT32_MAX ? (uint32_t)xoff : UINT32_MAX;
    cost->pause.xon = cost->pause.xoff - HYSTERESIS_PACKETS * full;
    cost->pause.time = time;
    return GW_OK;
}

/* Fills in what was not said. */
static int resolve(struct gw_loader *loader, const struct gw_doc_value *section,
                   struct gw_lossless_options *options, uint64_t *capacity)
{
    struct gw_scenario *scenario = loader->scenario;
    const struct gw_document *document = &loader->document;
    const uint32_t hysteresis = HYSTERESIS_PACKETS * gw_scenario_packet_max(scenario);
    struct way way = measure_ways(scenario, false);
    char why[GW_WHY_MAX];
    /* With a headroom of data left, a port has something to send until the next data comes. */
    if (options->xoff == 0)
        options->xoff = way.headroom + hysteresis;
    if (options->xoff <= hysteresis) {
        snprintf(why, sizeof(why), "xoff must be above two packets, %u bytes", hysteresis);
        return gw_schema_blame(document, section, GW_ERR_RANGE, why);
    }
    if (options->xon == 0)
        options->xon = options->xoff - hysteresis;
    if (options->xon >= options->xoff)
        return gw_schema_blame(document, section, GW_ERR_RANGE, "xon must be below xoff");
    uint32_t ports = ports_max(scenario, false);
    uint64_t room = copies_max(scenario) * way.headroom;
    uint64_t per_port = options->xoff + room, least = ports * per_port;
    if (!gw_doc_value_get(section, "capacity"))
        *capacity = least;
    if (*capacity < least) {
        snprintf(why, sizeof(why),
                 "capacity is %llu bytes; to be lossless it needs %llu for each of %u ports: "
                 "xoff and a headroom of %llu",
                 (unsigned long long)*capacity, (unsigned long long)per_port, ports,
                 (unsigned long long)room);
        return gw_schema_blame(document, section, GW_ERR_RANGE, why);
    }
    gw_time hosts = measure_ways(scenario, true).told;
    gw_time time = PAUSE_WAYS * (way.told > hosts ? way.told : hosts);
    scenario->queue.pause = (struct gw_pause_cfg){
        .xoff = options->xoff < UINT32_MAX ? (uint32_t)options->xoff : UINT32_MAX,
        .xon = options->xon < UINT32_MAX ? (uint32_t)options->xon : UINT32_MAX,
        .time = time > pause_time_min ? time : pause_time_min,
    };
    return check_link_queues(loader, per_port);
}

int gw_loader_lossless(struct gw_loader *loader, const struct gw_doc_value *section,
                       struct gw_lossless_options *options, uint64_t *capacity)
{
    struct gw_scenario *scenario = loader->scenario;
    scenario->queue.lossless = options->lossless;
    if (!options->lossless && options->xoff)
        return gw_schema_blame(&loader->document, section, GW_ERR_INVALID,
                               "xoff needs lossless: yes");
    if (!options->lossless && options->xon)
        return gw_schema_blame(&loader->document, section, GW_ERR_INVALID,
                               "xon needs lossless: yes");
    if (!options->lossless)
        return GW_OK;
    int error = resolve(loader, section, options, capacity);
    return error ? error : resolve_hosts(loader, scenario->queue.pause.time);
}
