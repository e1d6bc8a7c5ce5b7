/*
 * What a rank knows of the paths to others, as it was measured; see ways.h.
 *
 * Hops: by a switch, the ways of both ranks to the top of their switches, one after the other (too
 * long where the paths meet below the top, never too short); straight, the round trip between the
 * two; by the way out past a server, twice the round trip to it. To that comes what the hosts take.
 * Rate: what the job was told; else what the switches say; else the most that this rank has sent
 * lately, but never less than GW_OVERLAY_RATE_BPS: a flow that had little to send proves nothing,
 * and a window that shrank with what it let pass would never grow again.
 */
#include "net/ranks/ways_impl.h"

static const struct gw_neighbours *neighbours_of(const struct gw_ways *ways)
{
    return gw_station_neighbours(ways->cfg.station);
}

/* The session with the process of a rank, if there is one. */
static bool find_peer(const struct gw_ways *ways, uint32_t rank, uint16_t *peer)
{
    if (ways->cfg.is_home_rank_0 && rank == 0) {
        *peer = ways->servers[0].peer;
        return ways->servers[0].is_up;
    }
    *peer = ways->ranks[rank].peer;
    return ways->ranks[rank].is_up;
}

/* The round trip of all hops to the other end of a session, or, without one, to where the way out
 * leads; 0: not known. */
static gw_time hops_to(const struct gw_ways *ways, bool has_peer, uint16_t peer)
{
    const struct gw_neighbours *neighbours = neighbours_of(ways);
    if (ways->cfg.switch_) {
        gw_time own = gw_neighbours_way(neighbours).rtt;
        gw_time other = has_peer ? gw_neighbours_way_of(neighbours, peer).rtt : 0;
        return own + (other ? other : own);
    }
    if (has_peer)
        return gw_neighbours_rtt(neighbours, peer);
    return ways->servers[0].is_up ? 2 * gw_neighbours_rtt(neighbours, ways->servers[0].peer) : 0;
}

static uint64_t rate_to(const struct gw_ways *ways, bool has_peer, uint16_t peer)
{
    uint64_t told = 0, sent = gw_rate_meter_most(&ways->rate);
    if (ways->cfg.rate_bps)
        return ways->cfg.rate_bps;
    if (ways->cfg.switch_) {
        told = gw_neighbours_way(neighbours_of(ways)).rate_bps;
        if (has_peer)
            told =
                gw_overlay_slower(told, gw_neighbours_way_of(neighbours_of(ways), peer).rate_bps);
    }
    uint64_t rate = told ? told : sent > GW_OVERLAY_RATE_BPS ? sent : GW_OVERLAY_RATE_BPS;
    if (rate < GW_OVERLAY_RATE_MIN_BPS)
        return GW_OVERLAY_RATE_MIN_BPS;
    return rate < GW_OVERLAY_RATE_MAX_BPS ? rate : GW_OVERLAY_RATE_MAX_BPS;
}

static struct gw_path path_of(const struct gw_ways *ways, gw_time hops, uint64_t rate_bps)
{
    const struct gw_overlay_links known = {
        .hdr = gw_datapath_overhead(gw_station_datapath(ways->cfg.station)),
        .mtu = ways->cfg.mtu,
        .rate_bps = ways->cfg.rate_bps,
        .trims = ways->cfg.switch_ != NULL,
    };
    return gw_overlay_path(&known, hops, rate_bps);
}

static struct gw_path path_to(const struct gw_ways *ways, bool has_peer, uint16_t peer)
{
    return path_of(ways, hops_to(ways, has_peer, peer), rate_to(ways, has_peer, peer));
}

struct gw_path gw_ways_path_server(const struct gw_ways *ways, uint32_t server)
{
    return path_to(ways, true, ways->servers[server].peer);
}

struct gw_path gw_ways_path_home(const struct gw_ways *ways)
{
    return path_of(ways, 0, rate_to(ways, false, 0));
}

void gw_ways_set_path(struct gw_ways *ways, uint32_t rank)
{
    uint16_t peer = 0;
    bool has_peer = find_peer(ways, rank, &peer);
    const struct gw_path path = path_to(ways, has_peer, peer);
    gw_mesh_set_path(gw_communicator_mesh(ways->cfg.comm), rank, &path);
}

bool gw_ways_measure(struct gw_ways *ways, gw_time now)
{
    const struct gw_endpoint_stats *stats = gw_endpoint_stats(ways->cfg.endpoint);
    uint64_t packets = stats->data_sent - stats->retransmits;
    gw_rate_meter_take(&ways->rate, packets * ways->cfg.mtu, now);
    if (gw_time_before(now, ways->measure_at))
        return false;
    ways->measure_at = gw_time_add(now, GW_STATION_BEAT);
    for (uint32_t rank = 0; rank < ways->cfg.world; rank++)
        if (ways->ranks[rank].is_reached)
            gw_ways_set_path(ways, rank);
    return true;
}
