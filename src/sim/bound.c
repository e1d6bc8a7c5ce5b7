/*
 * The ideal time of a scenario's flows: what must cross each host's links and each group's links to
 * the rest, with headers, at their rates, plus the shortest base RTT of any flow.
 *
 * It knows nothing of triggers or start times, so it is an ideal to compare with where all flows
 * begin together; elsewhere a run takes longer.
 */
#include "sim/sim.h"
#include "topo/memory.h"

#include <stdlib.h>

/* What leaves and enters one host or group. */
struct cut {
    uint64_t bytes[2]; /* out, in */
    uint64_t rate_bps[2];
};

static uint64_t wire_bytes(const struct gw_scenario *scenario, uint64_t bytes)
{
    uint64_t packets = (bytes + scenario->host.mtu - 1) / scenario->host.mtu;
    return bytes + packets * scenario->host.header;
}

static void add_rates(const struct gw_topo *topo, const uint32_t *part_of, struct cut *cuts)
{
    for (uint32_t i = 0; i < topo->link_count; i++)
        for (uint32_t side = 0; side < 2; side++) {
            const struct gw_link *link = &topo->links[i];
            uint32_t from = part_of[link->side[side].node];
            uint32_t to = part_of[link->side[1 - side].node];
            if (from == to)
                continue;
            if (from != GW_GROUP_ANY)
                cuts[from].rate_bps[0] += link->side[side].rate_bps;
            if (to != GW_GROUP_ANY)
                cuts[to].rate_bps[1] += link->side[side].rate_bps;
        }
}

static void add_flows(const struct gw_scenario *scenario, const uint32_t *part_of, struct cut *cuts)
{
    for (uint32_t i = 0; i < scenario->workload.flow_count; i++) {
        const struct gw_flow_spec *flow = &scenario->workload.flows[i];
        uint32_t from = part_of[flow->src], to = part_of[flow->dst];
        if (flow->background || from == to)
            continue;
        if (from != GW_GROUP_ANY)
            cuts[from].bytes[0] += wire_bytes(scenario, flow->bytes);
        if (to != GW_GROUP_ANY)
            cuts[to].bytes[1] += wire_bytes(scenario, flow->bytes);
    }
}

/* The slowest cut when nodes belong to the parts named by `part_of`, numbers below `count`. */
static gw_time slowest_cut(const struct gw_scenario *scenario, const uint32_t *part_of,
                           uint32_t count)
{
    struct cut *cuts = gw_memory_aligned(count * sizeof(*cuts));
    add_rates(&scenario->topo, part_of, cuts);
    add_flows(scenario, part_of, cuts);
    gw_time slowest = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t way = 0; way < 2; way++) {
            if (cuts[i].bytes[way] == 0 || cuts[i].rate_bps[way] == 0)
                continue;
            gw_time time =
                (gw_time)((unsigned __int128)cuts[i].bytes[way] * 8 * GW_S / cuts[i].rate_bps[way]);
            slowest = time > slowest ? time : slowest;
        }
    free(cuts);
    return slowest;
}

static gw_time shortest_brtt(const struct gw_scenario *scenario)
{
    const uint32_t header = scenario->host.header;
    gw_time shortest = GW_TIME_NEVER;
    for (uint32_t i = 0; i < scenario->workload.flow_count; i++) {
        const struct gw_flow_spec *flow = &scenario->workload.flows[i];
        struct gw_topo_path path = gw_topo_path(&scenario->topo, flow->src, flow->dst,
                                                scenario->host.mtu + header, header);
        gw_time brtt = path.one_way_full + path.one_way_ack;
        if (!flow->background && flow->bytes > 0 && brtt < shortest)
            shortest = brtt;
    }
    return shortest == GW_TIME_NEVER ? 0 : shortest;
}

gw_time gw_sim_bound(const struct gw_scenario *scenario)
{
    const struct gw_topo *topo = &scenario->topo;
    uint32_t *part_of = gw_memory_aligned(topo->node_count * sizeof(*part_of));
    uint32_t groups = 0;
    for (uint32_t id = 0; id < topo->node_count; id++) {
        part_of[id] = topo->nodes[id].group;
        if (part_of[id] != GW_GROUP_ANY && part_of[id] >= groups)
            groups = part_of[id] + 1;
    }
    gw_time bound = slowest_cut(scenario, part_of, groups);
    for (uint32_t id = 0; id < topo->node_count; id++)
        part_of[id] = id < topo->host_count ? id : GW_GROUP_ANY;
    gw_time hosts = slowest_cut(scenario, part_of, topo->host_count);
    free(part_of);
    return (hosts > bound ? hosts : bound) + shortest_brtt(scenario);
}
