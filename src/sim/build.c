/*
 * Builds a simulation from a scenario: places and partitions, ports, core nodes, inboxes. All that
 * a run needs is sized here; only inboxes and lists of starts grow later.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "sim/engine.h"

enum {
    ALIGNMENT = 128,   /* of a partition */
    TX_FLOWS_MIN = 64, /* concurrent flows per host that are always possible, if it has as many */
    TX_FLOWS_MAX = 65536, /* the endpoint's limit */
    RX_FLOWS_MAX = 4096,
    APPS_PER_SHARD = 2, /* worker and member, or server and coordinator */
    APP_EVENTS = 4,     /* per application of a job */
    SPAN_MAX = 8192,    /* the endpoint's limit */
    SPAN_MIN = 64,
    SPAN_BDPS = 4, /* a flow may be this many BDPs ahead of its oldest missing packet */
};

/* Inbox headers beyond this mean that the latencies of the links are too far apart. */
static const size_t INBOX_BYTES_MAX = (size_t)1 << 30;

static _Noreturn void out_of_memory(size_t size)
{
    fprintf(stderr, "gradwire: out of memory (%zu bytes)\n", size);
    exit(EXIT_FAILURE);
}

void *gw_sim_alloc(size_t size)
{
    size = (size + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    void *memory = aligned_alloc(ALIGNMENT, size);
    if (!memory)
        out_of_memory(size);
    memset(memory, 0, size);
    return memory;
}

void *gw_sim_grow(void *array, uint32_t *room, size_t item_size)
{
    enum {
        ROOM_FIRST = 8,
    };
    uint32_t grown = *room ? 2 * *room : ROOM_FIRST;
    void *bigger = realloc(array, grown * item_size);
    if (!bigger)
        out_of_memory(grown * item_size);
    *room = grown;
    return bigger;
}

static uint32_t log2_ceiling(uint64_t value)
{
    return value <= 1 ? 0 : 64 - (uint32_t)__builtin_clzll(value - 1);
}

/* Numbers the places so that each partition is a range. */
static void assign_places(struct gw_sim *sim)
{
    const struct gw_topo *topo = &sim->scenario->topo;
    uint16_t *part = gw_sim_alloc(topo->node_count * sizeof(*part));
    gw_topo_partition(topo, sim->part_count, part);
    uint32_t place = 0;
    for (uint32_t p = 0; p < sim->part_count; p++) {
        sim->parts[p].first = place;
        for (uint32_t id = 0; id < topo->node_count; id++)
            if (part[id] == p) {
                sim->place[id] = place;
                sim->nodes[place++].id = id;
            }
        sim->parts[p].last = place;
    }
    free(part);
}

static void build_ports(struct gw_sim *sim, struct gw_sim_node *node)
{
    const struct gw_topo *topo = &sim->scenario->topo;
    const struct gw_topo_node *from = &topo->nodes[node->id];
    node->ports = gw_sim_alloc(from->port_count * sizeof(*node->ports));
    node->departure_mask = (1u << log2_ceiling(from->port_count)) - 1;
    node->departures = gw_sim_alloc((node->departure_mask + 1) * sizeof(*node->departures));
    for (uint16_t i = 0; i < from->port_count; i++) {
        const struct gw_topo_port *port = &topo->ports[from->first_port + i];
        const struct gw_link *link = &topo->links[port->link];
        node->ports[i] = (struct gw_sim_port){
            .byte_time = gw_byte_time_from_bps(link->side[port->side].rate_bps),
            .latency = link->latency + topo->nodes[port->peer].delay,
            .peer = sim->place[port->peer],
            .peer_port = port->peer_port,
            .link = port->link,
        };
    }
}

/* How many flows a host must be able to run at the same time. */
struct demand {
    uint32_t timed; /* flows it sends that start by the clock */
    uint32_t sends;
    uint32_t receives;
    uint32_t apps;    /* workers and servers of jobs */
    uint32_t servers; /* of these */
};

static struct demand *count_demand(const struct gw_sim *sim)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    struct demand *demand = gw_sim_alloc(sim->scenario->topo.host_count * sizeof(*demand));
    for (uint32_t i = 0; i < workload->flow_count; i++) {
        const struct gw_flow_spec *spec = &workload->flows[i];
        demand[spec->src].sends++;
        demand[spec->src].timed += spec->start != GW_TIME_NEVER;
        demand[spec->dst].receives++;
    }
    for (uint32_t i = 0; i < workload->job_count; i++)
        for (uint32_t rank = 0; rank < workload->jobs[i].worker_count; rank++)
            demand[workload->job_hosts[workload->jobs[i].first_worker + rank]].apps +=
                APPS_PER_SHARD * workload->jobs[i].server_count + 1;
    for (uint32_t i = 0; i < workload->job_server_count; i++) {
        demand[workload->job_servers[i]].apps += APPS_PER_SHARD;
        demand[workload->job_servers[i]].servers++;
    }
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
    uint64_t ahead = (uint64_t)SPAN_BDPS * scenario->bdp / scenario->host.mtu;
    uint64_t span = UINT64_C(1) << log2_ceiling(largest < ahead ? largest : ahead);
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

static int build_host(struct gw_sim *sim, struct gw_sim_part *part, struct gw_sim_node *node,
                      const struct demand *demand, uint32_t span, char *why)
{
    const struct gw_scenario *scenario = sim->scenario;
    uint32_t concurrent = demand->timed > TX_FLOWS_MIN ? demand->timed : TX_FLOWS_MIN;
    node->cfg = gw_sim_alloc(sizeof(*node->cfg));
    *node->cfg = (struct gw_endpoint_cfg){
        .address = node->id,
        .port_count = scenario->topo.nodes[node->id].port_count,
        .tx_flows_max =
            clamp(demand->sends < concurrent ? demand->sends : concurrent, 1, TX_FLOWS_MAX),
        .rx_flows_max = clamp(demand->receives, 1, RX_FLOWS_MAX),
        .span_max = span,
        .control_max = UINT32_MAX,
        .expect_max = scenario->host.payload ? demand->receives : 0,
        .apps_max = demand->apps,
        .app_events_max = APP_EVENTS * demand->apps,
        .mtu = scenario->host.mtu,
        .hdr = scenario->host.header,
        .ack_every = scenario->host.ack_every,
        .ack_delay = scenario->host.ack_delay,
        .train = scenario->host.train,
        .stall = scenario->host.stall,
        .grant = grant_plan(scenario, node->id),
        .pool = &part->pool,
    };
    size_t size = gw_endpoint_size(node->cfg);
    if (size == 0) {
        snprintf(why, GW_WHY_MAX, "host: mtu, header, ack_every or train is out of range");
        return GW_ERR_RANGE;
    }
    node->memory = gw_sim_alloc(size);
    node->memory_size = size;
    node->jitter = scenario->host.jitter;
    if (gw_host_has_cost(&scenario->host.cost) &&
        (scenario->host.cost.hosts == GW_COST_ALL || demand->servers))
        node->cost = gw_sim_host_cost_open(scenario, node->cfg->port_count);
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
    uint32_t *capacity = gw_sim_alloc(self->port_count * sizeof(*capacity));
    bool *is_edge = gw_sim_alloc(self->port_count * sizeof(*is_edge));
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
        .shared_bytes = scenario->queue.shared_bytes,
        .shared_alpha = scenario->queue.shared_alpha,
        .lossless = scenario->queue.lossless ? &scenario->queue.pause : NULL,
        .seed = node_seed(sim, node),
        .pool = pool,
    };
    node->memory_size = gw_switch_size(&cfg);
    if (!node->memory)
        node->memory = gw_sim_alloc(node->memory_size);
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

static int build_nodes(struct gw_sim *sim, char *why)
{
    struct demand *demand = count_demand(sim);
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

static void build_starts(struct gw_sim *sim)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    for (uint32_t i = 0; i < workload->flow_count; i++) {
        const struct gw_flow_spec *spec = &workload->flows[i];
        sim->awaited += !spec->background;
        if (spec->start == GW_TIME_NEVER)
            continue;
        struct gw_sim_node *node = &sim->nodes[sim->place[spec->src]];
        gw_sim_app_add(&node->app, (struct gw_sim_start){.at = spec->start, .flow = i});
    }
    for (uint32_t p = 0; p < sim->part_count; p++) {
        struct gw_sim_part *part = &sim->parts[p];
        for (uint32_t place = part->first; place < part->last; place++)
            gw_heap_set(&part->wakes, place - part->first, gw_sim_app_next(&sim->nodes[place]));
    }
}

struct gw_sim_part *gw_sim_part_of(struct gw_sim *sim, uint32_t place)
{
    struct gw_sim_part *part = sim->parts;
    while (place >= part->last)
        part++;
    return part;
}

/* Longest time that a packet can be under way to the next node. */
static gw_time longest_flight(const struct gw_sim *sim)
{
    const struct gw_scenario *scenario = sim->scenario;
    const struct gw_topo *topo = &scenario->topo;
    gw_q16 slowest = GW_Q16_ONE;
    gw_time delay = 0;
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        const struct gw_fault *fault = &scenario->faults[i];
        if (fault->kind == GW_FAULT_LINK_RATE && fault->factor < slowest)
            slowest = fault->factor;
        delay = fault->delay > delay ? fault->delay : delay;
    }
    gw_time serialisation = 0;
    for (uint32_t i = 0; i < topo->link_count; i++)
        for (uint32_t side = 0; side < 2; side++) {
            gw_time time =
                gw_serialisation(gw_byte_time_from_bps(topo->links[i].side[side].rate_bps),
                                 gw_scenario_packet_max(scenario));
            if (time > serialisation)
                serialisation = time;
        }
    serialisation = serialisation * (uint64_t)GW_Q16_ONE / (uint64_t)slowest + 1;
    gw_time jitter = (gw_time)gw_q16_mul((gw_q16)serialisation, scenario->host.jitter);
    return gw_topo_latency_max(topo) + serialisation * scenario->host.train + 2 * jitter + delay;
}

/* Chooses the window and makes the inboxes. */
static int build_windows(struct gw_sim *sim, char *why)
{
    const struct gw_topo *topo = &sim->scenario->topo;
    uint32_t ports_max = 1;
    for (uint32_t id = 0; id < topo->node_count; id++)
        if (topo->nodes[id].port_count > ports_max)
            ports_max = topo->nodes[id].port_count;
    sim->port_bits = log2_ceiling(ports_max);
    gw_time key_range = UINT64_C(1) << (64 - GW_SIM_INDEX_BITS - sim->port_bits);
    sim->window = gw_topo_latency_min(topo);
    if (sim->window > key_range)
        sim->window = key_range;
    if (sim->window < GW_NS) {
        snprintf(why, GW_WHY_MAX,
                 "topology: the smallest link latency must be at least 1 ns to simulate");
        return GW_ERR_RANGE;
    }
    uint64_t slots = UINT64_C(1) << log2_ceiling(longest_flight(sim) / sim->window + 3);
    size_t headers = slots * sim->node_count * sizeof(struct gw_sim_inbox) * sim->part_count;
    if (slots > GW_SIM_RING_MAX || headers > INBOX_BYTES_MAX) {
        snprintf(why, GW_WHY_MAX,
                 "topology: the longest packet flight is %llu times the smallest link latency; "
                 "raise the smallest latency, or lower the delay of faults",
                 (unsigned long long)slots);
        return GW_ERR_RANGE;
    }
    sim->ring_mask = (uint32_t)slots - 1;
    sim->words = (sim->node_count + 63) / 64;
    for (uint32_t p = 0; p < sim->part_count; p++) {
        struct gw_sim_part *part = &sim->parts[p];
        part->inboxes = gw_sim_alloc(slots * sim->node_count * sizeof(*part->inboxes));
        part->active = gw_sim_alloc(slots * sim->words * sizeof(*part->active));
        part->woken = gw_sim_alloc(sim->words * sizeof(*part->woken));
        uint32_t places = part->last - part->first;
        part->places = gw_sim_alloc(places * sizeof(*part->places));
        gw_heap_init(&part->wakes, gw_sim_alloc(gw_heap_size(places)), places);
    }
    return GW_OK;
}

static int build_pool(struct gw_sim *sim, char *why)
{
    const uint32_t count = 1u << GW_SIM_INDEX_BITS;
    /* Address space only: pages are touched when packets are first used. */
    void *memory = mmap(NULL, (size_t)count * sizeof(struct gw_pkt), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        snprintf(why, GW_WHY_MAX, "cannot reserve memory for packets: %s", strerror(errno));
        return GW_ERR_NO_MEMORY;
    }
    sim->pkts = memory;
    uint32_t share = count / sim->part_count;
    for (uint32_t p = 0; p < sim->part_count; p++)
        gw_pkt_pool_init(&sim->parts[p].pool, sim->pkts, p * share, share, NULL);
    return GW_OK;
}

int gw_sim_open(struct gw_sim **result, struct gw_scenario *scenario,
                const struct gw_sim_options *options, char *why)
{
    const struct gw_topo *topo = &scenario->topo;
    if (scenario->host.train > GW_SIM_TRAIN_MAX) {
        snprintf(why, GW_WHY_MAX, "host.train: at most %d", GW_SIM_TRAIN_MAX);
        return GW_ERR_RANGE;
    }
    struct gw_sim *sim = gw_sim_alloc(sizeof(*sim));
    *result = sim;
    sim->scenario = scenario;
    sim->options = *options;
    sim->node_count = topo->node_count;
    sim->part_count = scenario->host.payload ? 1 : options->threads;
    sim->parts = gw_sim_alloc(sim->part_count * sizeof(*sim->parts));
    sim->nodes = gw_sim_alloc(sim->node_count * sizeof(*sim->nodes));
    sim->place = gw_sim_alloc(sim->node_count * sizeof(*sim->place));
    for (uint32_t p = 0; p < sim->part_count; p++) {
        sim->parts[p].sim = sim;
        sim->parts[p].first_start = GW_TIME_NEVER;
        gw_sim_rtt_open(&sim->parts[p]);
    }
    uint32_t flows = scenario->workload.flow_count;
    sim->flows = gw_sim_alloc(flows * sizeof(*sim->flows));
    sim->flow_numbers = gw_sim_alloc(flows * sizeof(*sim->flow_numbers));
    sim->acked_before = gw_sim_alloc(flows * sizeof(*sim->acked_before));
    sim->trigger_pulls =
        gw_sim_alloc(scenario->workload.trigger_count * sizeof(*sim->trigger_pulls));
    assign_places(sim);
    int error = build_windows(sim, why);
    if (!error)
        error = build_pool(sim, why);
    if (!error && scenario->host.payload)
        error = gw_sim_payload_open(sim, why);
    if (!error)
        error = build_nodes(sim, why);
    if (!error)
        error = gw_sim_jobs_open(sim, why);
    if (!error && options->pcap_file)
        error = gw_capture_open(sim, why);
    if (error) {
        gw_sim_close(sim);
        *result = NULL;
        return error;
    }
    gw_sim_install_routes(sim);
    gw_sim_controls_init(sim);
    build_starts(sim);
    return GW_OK;
}

void gw_sim_close(struct gw_sim *sim)
{
    if (!sim)
        return;
    size_t inboxes = ((size_t)sim->ring_mask + 1) * sim->node_count;
    for (uint32_t p = 0; p < sim->part_count; p++) {
        struct gw_sim_part *part = &sim->parts[p];
        for (size_t i = 0; part->inboxes && i < inboxes; i++)
            free(part->inboxes[i].keys);
        free(part->inboxes);
        free(part->active);
        free(part->woken);
        free(part->wakes.entries);
        free(part->places);
        free(part->batches[0].room);
        free(part->batches[1].room);
        free(part->pulls);
        free(part->rtt_counts);
    }
    for (uint32_t place = 0; place < sim->node_count; place++) {
        struct gw_sim_node *node = &sim->nodes[place];
        for (uint16_t i = 0; node->ports && i < sim->scenario->topo.nodes[node->id].port_count; i++)
            free(node->ports[i].faults);
        free(node->ports);
        free(node->departures);
        free(node->app.starts);
        gw_sim_host_cost_close(node->cost);
        free(node->memory);
        free(node->cfg);
        free(node->routes);
        free(node->aggregate);
        free(node->slots);
    }
    if (sim->pkts)
        munmap(sim->pkts, sizeof(struct gw_pkt) << GW_SIM_INDEX_BITS);
    gw_capture_close(sim);
    gw_sim_jobs_close(sim);
    gw_sim_payload_close(sim);
    gw_sim_labels_close(sim);
    free(sim->parts);
    free(sim->nodes);
    free(sim->place);
    free(sim->flows);
    free(sim->flow_numbers);
    free(sim->acked_before);
    free(sim->trigger_pulls);
    free(sim->controls);
    free(sim->samples);
    free(sim);
}
