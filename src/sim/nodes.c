/*
 * Makes the nodes of a run: their ports, and the core nodes with memory for all that the workload
 * may ask of them at the same time. A node that crashes is made again.
 */
#include "sim/nodes.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "sim/departures.h"
#include "sim/host_cost.h"
#include "sim/message_terms.h"
#include "sim/mover.h"
#include "sim/notices.h"
#include "topo/memory.h"

enum {
    TX_FLOWS_MIN = 64, /* concurrent flows per host that are always possible, if it has as many */
    TX_FLOWS_MAX = 65536, /* the endpoint's limit */
    RX_FLOWS_MAX = 4096,
    BLASTS_MAX = 16384,          /* each way; those that do not fit wait */
    BLAST_PACKETS_MAX = 1 << 24, /* the endpoint's limit */
    RANKS_TALK = 1 << 16,        /* bytes: more than a communicator's tables have */
    APP_EVENTS = 4,              /* per application of a job */
    SPAN_MAX = 8192,             /* the endpoint's limit */
    SPAN_MIN = 64,
    SPAN_BDPS = 4, /* a flow may be this many BDPs ahead of its oldest missing packet */
};

static void build_ports(struct gw_sim *sim, struct gw_sim_node *node)
{
    const struct gw_topo *topo = &sim->scenario->topo;
    const struct gw_topo_node *from = &topo->nodes[node->id];
    node->ports = gw_memory_pool_take(&sim->memory, from->port_count * sizeof(*node->ports));
    uint32_t room = 1u << gw_sim_bits(from->port_count);
    node->departures = gw_memory_pool_take(&sim->memory, 2 * room * sizeof(*node->departures));
    node->departure_room = room;
    for (uint32_t i = 0; i < 2 * room; i++)
        node->departures[i] = GW_SIM_DEPARTURE_NONE;
    for (uint16_t i = 0; i < from->port_count; i++) {
        const struct gw_topo_port *port = &topo->ports[from->first_port + i];
        const struct gw_link *link = &topo->links[port->link];
        node->ports[i] = (struct gw_sim_port){
            .byte_time = gw_byte_time_from_bps(link->side[port->side].rate_bps),
            .latency = link->latency + topo->nodes[port->peer].delay,
            .peer = sim->place[port->peer],
            .peer_port = port->peer_port,
            .link = port->link,
            .extras = sim->options.wire ? GW_SIM_PORT_WIRE : 0,
        };
    }
}

static struct gw_sim_demand *count_demand(const struct gw_sim *sim)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    struct gw_sim_demand *demand =
        gw_memory_aligned(sim->scenario->topo.host_count * sizeof(*demand));
    for (uint32_t i = 0; i < workload->flow_count; i++) {
        const struct gw_flow_spec *spec = &workload->flows[i];
        demand[spec->src].sends++;
        demand[spec->src].timed += spec->start != GW_TIME_NEVER;
        demand[spec->dst].receives++;
    }
    gw_sim_jobs_demand(sim, demand);
    gw_sim_notices_demand(sim, demand);
    return demand;
}

static uint32_t clamp(uint32_t value, uint32_t low, uint32_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Packets that a flow's sender keeps account of. */
static uint32_t span_of(const struct gw_scenario *scenario)
{
    uint64_t largest = 1;
    for (uint32_t i = 0; i < scenario->workload.flow_count; i++) {
        uint64_t packets =
            (scenario->workload.flows[i].bytes + scenario->host.mtu - 1) / scenario->host.mtu;
        if (packets > largest)
            largest = packets;
    }
    for (uint32_t i = 0; i < scenario->workload.job_count; i++)
        if (gw_sim_mover_of(scenario->workload.jobs[i].via)->sends_messages)
            largest = UINT32_MAX;
    /* A window that only losses bound fills a queue, however little the path holds. */
    uint64_t queued = scenario->transport.cc->exceeds_bdp ? scenario->queue.capacity : 0;
    uint64_t ahead = SPAN_BDPS * (scenario->bdp + queued) / scenario->host.mtu;
    uint64_t span = UINT64_C(1) << gw_sim_bits(largest < ahead ? largest : ahead);
    return clamp((uint32_t)(span > SPAN_MAX ? SPAN_MAX : span), SPAN_MIN, SPAN_MAX);
}

/* What a host grants: at the rate of the links that lead to it. */
static struct gw_grant_plan grant_plan(const struct gw_scenario *scenario, uint32_t host)
{
    const struct gw_transport *transport = &scenario->transport;
    const struct gw_topo *topo = &scenario->topo;
    const struct gw_topo_node *node = &topo->nodes[host];
    uint64_t rate_bps = 0;
    for (uint16_t i = 0; i < node->port_count; i++) {
        const struct gw_topo_port *port = &topo->ports[node->first_port + i];
        rate_bps += topo->links[port->link].side[1 - port->side].rate_bps;
    }
    const struct gw_path path = {
        .rate_bps = rate_bps,
        .bdp = scenario->bdp,
        .mtu = scenario->host.mtu,
        .hdr = scenario->host.header,
    };
    struct gw_grant_plan plan = {0};
    if (transport->grant)
        transport->grant->plan(transport->grant_cfg.bytes, &path, &plan);
    return plan;
}

/* Packets of the longest message. */
static uint64_t longest_message(const struct gw_sim *sim)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    uint64_t bytes = 1;
    for (uint32_t i = 0; i < workload->flow_count; i++)
        if (workload->flows[i].bytes > bytes)
            bytes = workload->flows[i].bytes;
    for (uint32_t i = 0; i < workload->job_count; i++) {
        const struct gw_job_spec *spec = &workload->jobs[i];
        uint64_t most = gw_sim_piece_max(sim, spec);
        if (spec->via ==
            GW_JOB_VIA_CALLS) /* what all ranks have, and what they say of themselves */
            most = most * spec->worker_count + RANKS_TALK;
        if (gw_sim_mover_of(spec->via)->sends_messages && most > bytes)
            bytes = most;
    }
    return (bytes - 1) / sim->scenario->host.mtu + 1;
}

/* What an endpoint has for flows whose data is not acknowledged, if the run has such. */
static void add_blasts(const struct gw_sim *sim, const struct gw_sim_demand *demand,
                       struct gw_endpoint_cfg *cfg)
{
    if (!sim->scenario->transport.cc->on_report)
        return;
    uint32_t most = demand->receives > demand->sends ? demand->receives : demand->sends;
    cfg->blasts_max = clamp(most, 1, BLASTS_MAX);
    cfg->tx_flows_max = clamp(cfg->tx_flows_max, 1, TX_FLOWS_MAX - BLASTS_MAX);
    cfg->blast_packets_max = (uint32_t)longest_message(sim);
    cfg->report_every = sim->scenario->host.report_every;
    cfg->hail_copies = sim->scenario->host.hail_copies;
}

/* Whether the host sleeps at times. */
static bool sleeps(const struct gw_scenario *scenario, uint32_t host)
{
    bool does = false;
    for (uint32_t i = 0; i < scenario->fault_count; i++)
        does |= scenario->faults[i].kind == GW_FAULT_HOST_SLEEP && scenario->faults[i].node == host;
    return does;
}

/* What a host needs where packets cost it something, or where it sleeps. */
static void open_cost(const struct gw_sim *sim, struct gw_sim_node *node, bool is_server)
{
    static const struct gw_host_cost_cfg none = {0};
    const struct gw_scenario *scenario = sim->scenario;
    const struct gw_host_cost_cfg *cfg = &scenario->host.cost;
    bool pays = gw_host_has_cost(cfg) && (cfg->hosts == GW_COST_ALL || is_server);
    if (pays || sleeps(scenario, node->id))
        node->cost = gw_sim_host_cost_open(pays ? cfg : &none, scenario->queue.lossless,
                                           node->cfg->port_count);
}

static int build_host(struct gw_sim *sim, struct gw_sim_part *part, struct gw_sim_node *node,
                      const struct gw_sim_demand *demand, uint32_t span, char *why)
{
    const struct gw_scenario *scenario = sim->scenario;
    uint32_t concurrent = demand->timed > TX_FLOWS_MIN ? demand->timed : TX_FLOWS_MIN;
    node->cfg = gw_memory_aligned(sizeof(*node->cfg));
    *node->cfg = (struct gw_endpoint_cfg){
        .address = node->id,
        .port_count = scenario->topo.nodes[node->id].port_count,
        .tx_flows_max =
            clamp(demand->sends < concurrent ? demand->sends : concurrent, 1, TX_FLOWS_MAX),
        .rx_flows_max = clamp(demand->receives, 1, RX_FLOWS_MAX),
        .span_max = span,
        .control_max = UINT32_MAX,
        .expect_max = (scenario->host.payload ? demand->receives : 0) + demand->expects,
        .early_packets = scenario->host.payload ? GW_EARLY_PACKETS : 0,
        .apps_max = demand->apps,
        .announcers_max = demand->announcers,
        .app_events_max = APP_EVENTS * demand->apps + demand->events,
        .mtu = scenario->host.mtu,
        .hdr = scenario->host.header,
        .ack_every = scenario->host.ack_every,
        .ack_delay = scenario->host.ack_delay,
        .ack_entropies = scenario->host.ack_entropies,
        .resend_over = scenario->host.resend_over,
        .ack_holes = scenario->transport.loss->on_delivery != NULL,
        .is_lossless = scenario->queue.lossless,
        .train = scenario->host.train,
        .stall = scenario->host.stall,
        .grant = grant_plan(scenario, node->id),
        .finish = gw_sim_message_finish(sim),
        .pool = &part->pool,
    };
    add_blasts(sim, demand, node->cfg);
    size_t size = gw_endpoint_size(node->cfg);
    if (size == 0) {
        snprintf(why, GW_WHY_MAX, "host: mtu, header, ack_every or train is out of range");
        return GW_ERR_RANGE;
    }
    node->memory = gw_memory_pool_take(&sim->memory, size);
    node->memory_size = size;
    node->jitter = scenario->host.jitter;
    open_cost(sim, node, demand->servers != 0);
    return GW_OK;
}

/* The seed of a node's streams: another one for each of its lives. */
static uint64_t node_seed(const struct gw_sim *sim, const struct gw_sim_node *node)
{
    uint64_t seed = gw_prng_derive(sim->options.seed, 2 * (uint64_t)node->id).state;
    return node->lives ? gw_prng_derive(seed, node->lives).state : seed;
}

static void make_switch(struct gw_sim *sim, struct gw_sim_node *node)
{
    const struct gw_scenario *scenario = sim->scenario;
    const struct gw_topo *topo = &scenario->topo;
    const struct gw_topo_node *self = &topo->nodes[node->id];
    uint32_t *capacity = gw_memory_aligned(self->port_count * sizeof(*capacity));
    bool *is_edge = gw_memory_aligned(self->port_count * sizeof(*is_edge));
    for (uint16_t i = 0; i < self->port_count; i++) {
        const struct gw_topo_port *port = &topo->ports[self->first_port + i];
        uint32_t own = topo->links[port->link].side[port->side].queue_bytes;
        capacity[i] = own ? own : scenario->queue.capacity;
        is_edge[i] = port->peer < topo->host_count;
    }
    struct gw_pkt_pool *pool = &gw_sim_part_of(sim, sim->place[node->id])->pool;
    if (!node->memory) {
        node->aggregate = gw_sim_aggregate(sim, pool, node->id);
        node->slots = gw_sim_slots(sim, pool, node->id);
    }
    struct gw_switch_notice_cfg notice;
    bool has_notices = gw_sim_notices_stage(sim, &notice);
    struct gw_switch_cfg cfg = {
        .aggregate = node->aggregate,
        .slots = node->slots,
        .address = node->id,
        .is_edge = is_edge,
        .port_count = self->port_count,
        .qdisc = scenario->queue.qdisc,
        .qdisc_cfg = &scenario->queue.cfg,
        .capacity = capacity,
        .trim_size = scenario->host.header,
        .shared = scenario->queue.shared,
        .notice = has_notices ? &notice : NULL,
        .lossless = scenario->queue.lossless ? &scenario->queue.pause : NULL,
        .seed = node_seed(sim, node),
        .pool = pool,
    };
    node->memory_size = gw_switch_size(&cfg);
    if (!node->memory)
        node->memory = gw_memory_pool_take(&sim->memory, node->memory_size);
    node->sw = gw_switch_init(node->memory, &cfg);
    node->core = gw_switch_node(node->sw);
    free(capacity);
    free(is_edge);
}

void gw_sim_node_make(struct gw_sim *sim, uint32_t place)
{
    struct gw_sim_node *node = &sim->nodes[place];
    if (node->cfg) {
        node->cfg->seed = node_seed(sim, node);
        node->cfg->generation = (uint16_t)node->app.sends;
        node->endpoint = gw_endpoint_init(node->memory, node->cfg);
        node->core = gw_endpoint_node(node->endpoint);
    } else {
        make_switch(sim, node);
    }
    node->lives++;
}

int gw_sim_nodes_open(struct gw_sim *sim, char *why)
{
    if (sim->scenario->transport.cc->on_report && longest_message(sim) > BLAST_PACKETS_MAX) {
        snprintf(why, GW_WHY_MAX,
                 "workload: cc: %s: a message has at most %d packets, and one has %llu",
                 sim->scenario->transport.cc->algo.name, BLAST_PACKETS_MAX,
                 (unsigned long long)longest_message(sim));
        return GW_ERR_RANGE;
    }
    struct gw_sim_demand *demand = count_demand(sim);
    uint32_t span = span_of(sim->scenario);
    int error = GW_OK;
    for (uint32_t p = 0; p < sim->part_count && !error; p++) {
        struct gw_sim_part *part = &sim->parts[p];
        for (uint32_t place = part->first; place < part->last && !error; place++) {
            struct gw_sim_node *node = &sim->nodes[place];
            node->prng = gw_prng_derive(sim->options.seed, 2 * (uint64_t)node->id + 1);
            build_ports(sim, node);
            if (node->id < sim->scenario->topo.host_count)
                error = build_host(sim, part, node, &demand[node->id], span, why);
            if (!error)
                gw_sim_node_make(sim, place);
        }
    }
    free(demand);
    return error;
}

void gw_sim_nodes_close(struct gw_sim *sim)
{
    for (uint32_t place = 0; place < sim->node_count; place++) {
        struct gw_sim_node *node = &sim->nodes[place];
        for (uint16_t i = 0; node->ports && i < sim->scenario->topo.nodes[node->id].port_count; i++)
            free(node->ports[i].faults);
        free(node->app.starts);
        gw_sim_host_cost_close(node->cost);
        free(node->cfg);
        free(node->routes);
        free(node->aggregate);
        free(node->slots);
    }
}
