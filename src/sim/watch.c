/* What bursts met at one port; see watch.h. */
#include "sim/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "sim/jobs.h"
#include "sim/sim_impl.h"
#include "topo/memory.h"

enum {
    BINS_PER_PACKET = 16, /* of a full packet's time at the port */
    BINS_MAX = 1 << 20,
    BURSTS_MAX = 1 << 20,
    WALK_MAX = 64, /* hops of a path; no kind of topology has so many */
};

/* Of packets of one sort that left the port. */
struct flux {
    uint64_t packets;
    uint64_t bytes;
    uint64_t waited; /* ps, of all together */
};

/* Counters of the port. */
struct meter {
    struct flux sorts[GW_PORT_SORTS];
    uint64_t drops;
    uint64_t own_drops; /* while packets of bursts were put into the queue */
};

enum burst_state {
    BURST_AHEAD,
    BURST_INSIDE,
    BURST_OVER,
};

/* Those of the workload come first. A job's are found here: what it sends by the port after more
 * than a round trip without. */
struct burst {
    enum burst_state state;
    uint32_t job;                /* of the workload, if it is a job's */
    uint32_t ended;              /* flows from the front that have ended */
    gw_time first_at, last_at;   /* when its first packet came, and the last one left */
    uint64_t own_bytes;          /* that left, headers included */
    uint32_t queue_start;        /* bytes, before its first packet */
    uint32_t queue_max;          /* until its last packet, ... */
    uint32_t queue_top;          /* ... and until now */
    struct meter before, latest; /* the port's at these times */
};

struct gw_sim_watch {
    uint32_t node; /* in the topology */
    uint16_t port;
    gw_time *stamps;  /* when a packet arrived at the switch, by its index */
    gw_time full;     /* time that a full packet takes at the port */
    uint32_t bins;    /* of 1/16 of that; the last one has all that is longer */
    uint64_t *counts; /* [sort][bin]: packets by the time that they waited */
    gw_time longest[GW_PORT_SORTS];
    struct meter meter;
    struct meter inside, mark; /* of the time inside bursts, up to the mark */
    gw_time inside_time, mark_at;
    struct burst *bursts;
    uint32_t burst_count, burst_room;
    uint32_t *latest; /* of each job: its last burst, from 1; 0: none */
    uint32_t *active; /* bursts that are inside */
    uint32_t active_count;
    gw_time last_left; /* when the last packet left */
};

/* Adds `sign` times the counters of `b` to `a`: all are uint64_t, and may wrap on the way. */
static void meter_add(struct meter *a, const struct meter *b, uint64_t sign)
{
    uint64_t *to = (uint64_t *)(void *)a;
    const uint64_t *from = (const uint64_t *)(const void *)b;
    for (size_t i = 0; i < sizeof(*a) / sizeof(uint64_t); i++)
        to[i] += sign * from[i];
}

/* Adds `bytes` to every port of a switch on the way from `src` to `dst`, and notes how near to a
 * source it is. */
static void weigh_path(const struct gw_topo *topo, const struct gw_flow_spec *flow,
                       uint64_t *weights, uint32_t *nearness)
{
    uint32_t at = topo->ports[topo->nodes[flow->src].first_port].peer;
    for (uint32_t hop = 0; at >= topo->host_count && hop < WALK_MAX; hop++) {
        const struct gw_topo_routes *routes = &topo->routes[at - topo->host_count];
        if (routes->route[flow->dst] == GW_PORT_NONE)
            return;
        uint32_t port = topo->nodes[at].first_port +
                        routes->members[routes->sets[routes->route[flow->dst]].first];
        weights[port] += flow->bytes;
        if (nearness[port] < WALK_MAX - hop)
            nearness[port] = WALK_MAX - hop;
        at = topo->ports[port].peer;
    }
}

/* The switch port by which the most bytes of bursts leave; of several, the one nearest to senders.
 * An index into the topology's ports; UINT32_MAX: there is none, since no switch is on the way. */
static uint32_t choose_port(const struct gw_scenario *scenario)
{
    const struct gw_topo *topo = &scenario->topo;
    uint32_t port_count = 2 * topo->link_count, best = 0;
    uint64_t *weights = gw_memory_zeroed(port_count, sizeof(*weights));
    uint32_t *nearness = gw_memory_zeroed(port_count, sizeof(*nearness));
    for (uint32_t i = 0; i < scenario->workload.flow_count; i++)
        if (scenario->workload.flows[i].burst)
            weigh_path(topo, &scenario->workload.flows[i], weights, nearness);
    for (uint32_t port = 1; port < port_count; port++)
        if (weights[port] > weights[best] ||
            (weights[port] == weights[best] && nearness[port] > nearness[best]))
            best = port;
    best = weights[best] ? best : UINT32_MAX;
    free(weights);
    free(nearness);
    return best;
}

static void open_counts(struct gw_sim_watch *watch, const struct gw_scenario *scenario,
                        const struct gw_link_side *side)
{
    uint32_t packet = scenario->host.mtu + scenario->host.header;
    uint32_t capacity = side->queue_bytes ? side->queue_bytes : scenario->queue.capacity;
    uint64_t bins = ((uint64_t)capacity / packet + 2) * BINS_PER_PACKET;
    watch->full = gw_serialisation(gw_byte_time_from_bps(side->rate_bps), packet);
    watch->bins = bins < BINS_MAX ? (uint32_t)bins : BINS_MAX;
    watch->counts = gw_memory_zeroed((size_t)GW_PORT_SORTS * watch->bins, sizeof(*watch->counts));
}

int gw_sim_watch_open(struct gw_sim *sim, char *why)
{
    const struct gw_scenario *scenario = sim->scenario;
    const struct gw_topo *topo = &scenario->topo;
    const struct gw_workload *workload = &scenario->workload;
    uint32_t index = scenario->metrics.port;
    if (index == UINT32_MAX && workload->burst_count == 0)
        return GW_OK;
    if (index == UINT32_MAX)
        index = choose_port(scenario);
    if (index == UINT32_MAX)
        return GW_OK;
    const struct gw_topo_port *port = &topo->ports[index];
    const struct gw_link_side *side = &topo->links[port->link].side[port->side];
    /* Address space only, as for the packets themselves. */
    gw_time *stamps = mmap(NULL, sizeof(*stamps) << GW_SIM_INDEX_BITS, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stamps == MAP_FAILED) {
        snprintf(why, GW_WHY_MAX, "cannot reserve memory for stamps: %s", strerror(errno));
        return GW_ERR_NO_MEMORY;
    }
    struct gw_sim_watch *watch = gw_memory_aligned(sizeof(*watch));
    watch->stamps = stamps;
    watch->node = side->node;
    watch->port = side->port;
    open_counts(watch, scenario, side);
    watch->burst_count = workload->burst_count;
    watch->bursts =
        gw_memory_grow(NULL, &watch->burst_room, watch->burst_count + 1, sizeof(*watch->bursts));
    memset(watch->bursts, 0, watch->burst_count * sizeof(*watch->bursts));
    watch->latest = gw_memory_zeroed(workload->job_count, sizeof(*watch->latest));
    watch->active =
        gw_memory_zeroed(workload->burst_count + workload->job_count, sizeof(*watch->active));
    sim->watch = watch;
    struct gw_sim_node *node = &sim->nodes[sim->place[watch->node]];
    node->is_watched = true;
    node->ports[watch->port].extras |= GW_SIM_PORT_WATCHED;
    return GW_OK;
}

void gw_sim_watch_close(struct gw_sim *sim)
{
    struct gw_sim_watch *watch = sim->watch;
    if (!watch)
        return;
    munmap(watch->stamps, sizeof(gw_time) << GW_SIM_INDEX_BITS);
    free(watch->counts);
    free(watch->bursts);
    free(watch->latest);
    free(watch->active);
    free(watch);
}

/* The number of a packet's burst, from 1; 0: it is of none. A job's is its last one. */
static uint32_t burst_of(const struct gw_sim *sim, const struct gw_pkt *pkt)
{
    const struct gw_workload *workload = &sim->scenario->workload;
    uint32_t job = gw_sim_job_of_packet(sim, pkt);
    if (job != UINT32_MAX)
        return sim->watch->latest[job];
    bool has_tag = pkt->q.kind == GW_PKT_DATA && !(pkt->q.flags & GW_PKT_BLAST);
    uint32_t flow = has_tag ? gw_sim_flow_of_tag(sim, pkt->data.tag) : UINT32_MAX;
    if (flow == UINT32_MAX)
        return 0;
    return workload->flows[flow].burst;
}

static bool is_silent(const struct gw_sim *sim, const struct burst *burst, gw_time now)
{
    return now - burst->last_at > sim->scenario->brtt_max;
}

/* The number of a job's burst that a packet which is queued now belongs to; it may begin one. */
static uint32_t burst_of_job(const struct gw_sim *sim, uint32_t job, gw_time now)
{
    struct gw_sim_watch *watch = sim->watch;
    uint32_t last = watch->latest[job];
    if ((last && !is_silent(sim, &watch->bursts[last - 1], now)) ||
        watch->burst_count == BURSTS_MAX)
        return last;
    watch->bursts = gw_memory_grow(watch->bursts, &watch->burst_room, watch->burst_count + 1,
                                   sizeof(*watch->bursts));
    watch->bursts[watch->burst_count] = (struct burst){.job = job};
    watch->latest[job] = ++watch->burst_count;
    return watch->burst_count;
}

/* The time since the mark was inside bursts. */
static void mark(struct gw_sim_watch *watch, gw_time now)
{
    meter_add(&watch->inside, &watch->meter, 1);
    meter_add(&watch->inside, &watch->mark, UINT64_MAX);
    watch->inside_time += now - watch->mark_at;
    watch->mark = watch->meter;
    watch->mark_at = now;
}

/* Bursts of jobs are over when nothing has come for a round trip. */
static void retire(const struct gw_sim *sim, gw_time now)
{
    struct gw_sim_watch *watch = sim->watch;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < watch->active_count; i++) {
        uint32_t index = watch->active[i];
        if (index >= sim->scenario->workload.burst_count &&
            is_silent(sim, &watch->bursts[index], now))
            watch->bursts[index].state = BURST_OVER;
        else
            watch->active[kept++] = index;
    }
    watch->active_count = kept;
}

static void enter(const struct gw_sim *sim, uint32_t index, uint32_t queued, gw_time now)
{
    struct gw_sim_watch *watch = sim->watch;
    struct burst *burst = &watch->bursts[index];
    retire(sim, now);
    if (watch->active_count == 0) {
        watch->mark = watch->meter;
        watch->mark_at = now;
    }
    watch->active[watch->active_count++] = index;
    burst->state = BURST_INSIDE;
    burst->first_at = burst->last_at = now;
    burst->queue_start = queued;
    burst->before = watch->meter;
}

/* A data packet of a burst has come, or begins to leave. */
static void advance(struct gw_sim_watch *watch, uint32_t index, gw_time now)
{
    struct burst *burst = &watch->bursts[index];
    if (burst->state != BURST_INSIDE)
        return; /* sent again though all had arrived */
    mark(watch, now);
    burst->last_at = now;
    burst->queue_max = burst->queue_top;
    burst->latest = watch->meter;
}

void gw_sim_watch_arrived(struct gw_sim_part *part, struct gw_sim_node *node, uint16_t in,
                          struct gw_pkt *pkt, gw_time now)
{
    struct gw_sim_watch *watch = part->sim->watch;
    uint32_t burst = burst_of(part->sim, pkt), job = gw_sim_job_of_packet(part->sim, pkt);
    watch->stamps[gw_pkt_index(&part->pool, pkt)] = now;
    struct gw_port_stats before = gw_switch_port_stats(node->sw, watch->port);
    uint32_t queued = gw_switch_backlog(node->sw, watch->port);
    gw_node_input(node->core, in, &pkt, 1, now);
    struct gw_port_stats after = gw_switch_port_stats(node->sw, watch->port);
    if (after.in_bytes == before.in_bytes)
        return;
    if (job != UINT32_MAX)
        burst = burst_of_job(part->sim, job, now);
    if (burst && watch->bursts[burst - 1].state == BURST_AHEAD)
        enter(part->sim, burst - 1, queued, now);
    watch->meter.drops += after.drops - before.drops;
    watch->meter.own_drops += burst ? after.drops - before.drops : 0;
    queued = gw_switch_backlog(node->sw, watch->port);
    for (uint32_t i = 0; i < watch->active_count; i++) {
        struct burst *active = &watch->bursts[watch->active[i]];
        active->queue_top = queued > active->queue_top ? queued : active->queue_top;
    }
    if (burst)
        advance(watch, burst - 1, now);
}

void gw_sim_watch_left(struct gw_sim *sim, const struct gw_pkt *pkt, gw_time now)
{
    struct gw_sim_watch *watch = sim->watch;
    if (pkt->q.kind != GW_PKT_DATA && pkt->q.kind != GW_PKT_GRAD)
        return;
    uint32_t burst = burst_of(sim, pkt);
    enum gw_port_sort sort = burst ? GW_PORT_BURSTS : GW_PORT_OTHERS;
    struct flux *flux = &watch->meter.sorts[sort];
    gw_time waited = now - watch->stamps[gw_pkt_index(&sim->parts[0].pool, pkt)];
    uint64_t bin = waited * BINS_PER_PACKET / watch->full;
    flux->packets++;
    flux->bytes += pkt->q.size;
    flux->waited += waited;
    watch->counts[sort * watch->bins + (bin < watch->bins ? bin : watch->bins - 1)]++;
    if (watch->longest[sort] < waited)
        watch->longest[sort] = waited;
    watch->last_left = now;
    if (burst)
        watch->bursts[burst - 1].own_bytes += pkt->q.size;
    if (burst)
        advance(watch, burst - 1, now);
}

static bool has_ended(const struct gw_sim *sim, uint32_t index)
{
    const struct gw_burst_spec *spec = &sim->scenario->workload.bursts[index];
    struct burst *burst = &sim->watch->bursts[index];
    while (burst->ended < spec->flow_count &&
           sim->flows[spec->first_flow + burst->ended].outcome != GW_FLOW_PENDING)
        burst->ended++;
    return burst->ended == spec->flow_count;
}

void gw_sim_watch_settle(struct gw_sim *sim)
{
    struct gw_sim_watch *watch = sim->watch;
    if (!watch)
        return;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < watch->active_count; i++) {
        if (watch->active[i] < sim->scenario->workload.burst_count &&
            has_ended(sim, watch->active[i]))
            watch->bursts[watch->active[i]].state = BURST_OVER;
        else
            watch->active[kept++] = watch->active[i];
    }
    watch->active_count = kept;
}

/* When the flows of a burst started and ended. */
static void add_flows(const struct gw_sim *sim, uint32_t index, struct gw_burst_result *result)
{
    const struct gw_burst_spec *spec = &sim->scenario->workload.bursts[index];
    result->start = GW_TIME_NEVER;
    result->is_complete = true;
    for (uint32_t i = 0; i < spec->flow_count; i++) {
        const struct gw_flow_result *flow = &sim->flows[spec->first_flow + i];
        result->bytes += sim->scenario->workload.flows[spec->first_flow + i].bytes;
        result->is_complete &= flow->outcome == GW_FLOW_DONE;
        if (!flow->started)
            continue;
        result->start = flow->start < result->start ? flow->start : result->start;
        result->end = flow->end > result->end ? flow->end : result->end;
    }
}

static uint32_t in_packets(const struct gw_sim *sim, uint32_t bytes)
{
    uint32_t packet = sim->scenario->host.mtu + sim->scenario->host.header;
    return (bytes + packet - 1) / packet;
}

static struct gw_port_flux flux_result(const struct flux *flux)
{
    return (struct gw_port_flux){
        .packets = flux->packets, .bytes = flux->bytes, .waited = flux->waited};
}

uint32_t gw_sim_bursts(const struct gw_sim *sim)
{
    return sim->watch ? sim->watch->burst_count : 0;
}

bool gw_sim_burst(const struct gw_sim *sim, uint32_t index, struct gw_burst_result *result)
{
    *result = (struct gw_burst_result){.job = UINT32_MAX};
    if (index >= gw_sim_bursts(sim))
        return false;
    const struct burst *burst = &sim->watch->bursts[index];
    if (index < sim->scenario->workload.burst_count) {
        add_flows(sim, index, result);
    } else {
        result->job = burst->job;
        result->start = burst->first_at;
        result->end = burst->last_at;
        result->bytes = burst->own_bytes;
        result->is_complete = true;
    }
    if (result->start == GW_TIME_NEVER || burst->state == BURST_AHEAD)
        return false;
    struct meter met = burst->latest;
    meter_add(&met, &burst->before, UINT64_MAX);
    result->first_at = burst->first_at;
    result->last_at = burst->last_at;
    result->queue_at_start = in_packets(sim, burst->queue_start);
    result->queue_max = in_packets(sim, burst->queue_max);
    result->drops = met.drops;
    result->own_drops = met.own_drops;
    for (uint32_t sort = 0; sort < GW_PORT_SORTS; sort++)
        result->sorts[sort] = flux_result(&met.sorts[sort]);
    return true;
}

bool gw_sim_port(const struct gw_sim *sim, struct gw_port_result *result)
{
    const struct gw_sim_watch *watch = sim->watch;
    *result = (struct gw_port_result){0};
    if (!watch)
        return false;
    result->node = watch->node;
    result->port = watch->port;
    result->time = watch->last_left;
    result->inside_time = watch->inside_time;
    result->drops = watch->meter.drops;
    result->inside_drops = watch->inside.drops;
    for (uint32_t sort = 0; sort < GW_PORT_SORTS; sort++) {
        result->sorts[sort] = flux_result(&watch->meter.sorts[sort]);
        result->inside[sort] = flux_result(&watch->inside.sorts[sort]);
    }
    return true;
}

gw_time gw_sim_port_delay(const struct gw_sim *sim, enum gw_port_sort sort, uint32_t per_mille)
{
    const struct gw_sim_watch *watch = sim->watch;
    uint64_t below = 0, total = watch->meter.sorts[sort].packets;
    uint64_t rank = (total * per_mille + 999) / 1000;
    for (uint32_t bin = 0; bin + 1 < watch->bins && total; bin++) {
        below += watch->counts[sort * watch->bins + bin];
        gw_time most = ((bin + 1) * watch->full - 1) / BINS_PER_PACKET;
        if (below >= rank && below > 0)
            return most < watch->longest[sort] ? most : watch->longest[sort];
    }
    return watch->longest[sort];
}
