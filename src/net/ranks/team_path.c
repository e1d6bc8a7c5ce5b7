/*
 * What a team knows of the paths to other ranks, as it was measured; see team.h.
 *
 * Hops: by a switch, the ways of both ranks to the top of their switches, one after the other (too
 * long where the paths meet below the top, never too short); straight, the round trip between the
 * two. To that comes what the hosts take. Rate: what the job was told; else what the switches say;
 * else the most that this rank has sent lately, but never less than GW_OVERLAY_RATE_BPS: a flow
 * that had little to send proves nothing, and a window that shrank with what it let pass would
 * never grow again.
 */
#include "net/ranks/team_impl.h"

enum {
    HOPS = 2,
    /* Packets of a window, unless a rate was given: with fewer, a receiver would wait for more
     * before it answers. */
    WINDOW_MIN = 2 * GW_OVERLAY_ACK_EVERY,
    WINDOW_MAX_BYTES = 64 << 20, /* the largest that is of use: an endpoint has less under way */
};

static const struct gw_neighbours *neighbours_of(const struct gw_team *comm)
{
    return gw_station_neighbours(comm->cfg.station);
}

/* The round trip of all hops to a rank; 0: not known. */
static gw_time hops_to(const struct gw_team *comm, uint32_t number)
{
    const struct gw_team_rank *rank = &comm->ranks[number];
    if (!comm->cfg.switch_)
        return rank->is_up ? gw_neighbours_rtt(neighbours_of(comm), rank->peer) : 0;
    gw_time own = gw_neighbours_way(neighbours_of(comm)).rtt;
    gw_time other = rank->is_up ? gw_neighbours_way_of(neighbours_of(comm), rank->peer).rtt : 0;
    return own + (other ? other : own);
}

static uint64_t rate_to(const struct gw_team *comm, uint32_t number)
{
    const struct gw_team_rank *rank = &comm->ranks[number];
    uint64_t told = 0, sent = gw_rate_meter_most(&comm->rate);
    if (comm->cfg.rate_bps)
        return comm->cfg.rate_bps;
    if (comm->cfg.switch_) {
        told = gw_neighbours_way(neighbours_of(comm)).rate_bps;
        if (rank->is_up)
            told = gw_overlay_slower(
                told, gw_neighbours_way_of(neighbours_of(comm), rank->peer).rate_bps);
    }
    uint64_t rate = told ? told : sent > GW_OVERLAY_RATE_BPS ? sent : GW_OVERLAY_RATE_BPS;
    if (rate < GW_TEAM_RATE_MIN_BPS)
        return GW_TEAM_RATE_MIN_BPS;
    return rate < GW_OVERLAY_RATE_MAX_BPS ? rate : GW_OVERLAY_RATE_MAX_BPS;
}

static struct gw_path path_of(const struct gw_team *comm, gw_time hops, uint64_t rate_bps)
{
    uint32_t hdr = gw_datapath_overhead(gw_station_datapath(comm->cfg.station));
    gw_time brtt = gw_overlay_brtt(hops);
    uint64_t bdp = rate_bps / 8 * (brtt / GW_US) / 1000000;
    uint64_t least = (uint64_t)WINDOW_MIN * (comm->cfg.mtu + hdr);
    if (comm->cfg.rate_bps == 0 && bdp < least)
        bdp = least;
    return (struct gw_path){
        .brtt = brtt,
        .brtt_max = brtt,
        .rate_bps = rate_bps,
        .bdp = bdp < WINDOW_MAX_BYTES ? (uint32_t)bdp : WINDOW_MAX_BYTES,
        .mtu = comm->cfg.mtu,
        .hdr = hdr,
        .hops = HOPS,
        .trims = comm->cfg.switch_ != NULL,
    };
}

struct gw_path gw_team_path(const struct gw_team *comm, uint32_t rank)
{
    return path_of(comm, hops_to(comm, rank), rate_to(comm, rank));
}

struct gw_path gw_team_path_all(const struct gw_team *comm)
{
    gw_time hops = 0;
    uint64_t rate = rate_to(comm, comm->cfg.rank);
    for (uint32_t rank = 0; rank < comm->cfg.world; rank++) {
        if (!comm->ranks[rank].is_up)
            continue;
        gw_time other = hops_to(comm, rank);
        hops = other > hops ? other : hops;
        rate = gw_overlay_slower(rate, rate_to(comm, rank));
    }
    return path_of(comm, hops, rate);
}

struct gw_notice_terms gw_team_terms(const struct gw_team *comm)
{
    return (struct gw_notice_terms){.job = comm->cfg.job, .units = comm->notice_units};
}

struct gw_notice_path gw_team_notice_path(const struct gw_team *comm)
{
    const struct gw_path path = gw_team_path_all(comm);
    return (struct gw_notice_path){
        .rtt = path.brtt, .rate_bps = path.rate_bps, .packet = path.mtu + path.hdr};
}

void gw_team_refresh(struct gw_team *comm)
{
    const struct gw_path path = gw_team_path_all(comm);
    const struct gw_notice_terms terms = gw_team_terms(comm);
    for (uint32_t i = 0; i < GW_TEAM_RUNS; i++) {
        gw_coll_run_set_path(comm->runs[i].run, &path);
        gw_coll_run_set_notice(comm->runs[i].run, &terms);
    }
}

void gw_team_measure(struct gw_team *comm, gw_time now)
{
    const struct gw_endpoint_stats *stats = gw_endpoint_stats(comm->ep);
    uint64_t packets = stats->data_sent - stats->retransmits;
    gw_rate_meter_take(&comm->rate, packets * comm->cfg.mtu, now);
    if (gw_time_before(now, comm->measure_at))
        return;
    comm->measure_at = gw_time_add(now, GW_STATION_BEAT);
    gw_team_refresh(comm);
}
