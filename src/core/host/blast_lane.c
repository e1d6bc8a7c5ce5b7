/* The lanes of blasts; see blast_lane.h. */
#include "core/host/blast_lane.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/pacer.h"
#include "core/host/blast.h"

enum {
    AGE = 16, /* periods without a report, after which what is known is old (own choice) */
};

static struct gw_blast_lane *lane_of_peer(struct gw_endpoint *ep, const struct gw_cc_ops *cc,
                                          uint32_t peer)
{
    uint32_t index = gw_map_get(&ep->lane_map, peer);
    if (index == GW_MAP_NONE || ep->lanes[index].cc != cc)
        return NULL;
    if (ep->lanes[index].users == 0)
        gw_blast_lanes_remove(ep->lanes, index);
    return &ep->lanes[index];
}

/* The lane that has been idle for the longest time; what it knew is forgotten. */
static struct gw_blast_lane *take_idle(struct gw_endpoint *ep)
{
    uint32_t index = gw_blast_lanes_first(ep->lanes, ep->cfg.blasts_max);
    gw_blast_lanes_remove(ep->lanes, index);
    struct gw_blast_lane *lane = &ep->lanes[index];
    if (lane->cc && gw_map_get(&ep->lane_map, lane->peer) == index)
        gw_map_remove(&ep->lane_map, lane->peer);
    return lane;
}

/* Begins anew: nothing is known of the network. */
static void forget(struct gw_blast_lane *lane, const struct gw_transport *transport, gw_time now)
{
    memset(lane->cc_state, 0, sizeof(lane->cc_state));
    lane->sent = lane->received = 0;
    lane->report_at = now;
    transport->cc->init(lane->cc_state, transport->cc_cfg.bytes, &lane->path, &lane->window, now);
}

static struct gw_blast_lane *make(struct gw_endpoint *ep, const struct gw_transport *transport,
                                  uint32_t peer, const struct gw_path *path, gw_time now)
{
    struct gw_blast_lane *lane = take_idle(ep);
    *lane = (struct gw_blast_lane){.peer = peer, .path = *path, .free_at = now};
    if (transport->cc->shares_lane) {
        lane->cc = transport->cc;
        int code = gw_map_put(&ep->lane_map, peer, (uint32_t)(lane - ep->lanes));
        GW_ASSERT(code == GW_OK);
    }
    forget(lane, transport, now);
    return lane;
}

struct gw_blast_lane *gw_blast_lane_join(struct gw_endpoint *ep,
                                         const struct gw_transport *transport, uint32_t peer,
                                         const struct gw_path *path, gw_time now)
{
    struct gw_blast_lane *lane =
        transport->cc->shares_lane ? lane_of_peer(ep, transport->cc, peer) : NULL;
    if (!lane)
        lane = make(ep, transport, peer, path, now);
    else if (gw_time_before(gw_time_add(lane->report_at, AGE * ep->cfg.report_every), now))
        forget(lane, transport, now);
    lane->users++;
    return lane;
}

void gw_blast_lane_leave(struct gw_endpoint *ep, struct gw_blast_lane *lane)
{
    if (--lane->users == 0)
        gw_blast_lanes_append(ep->lanes, ep->cfg.blasts_max, (uint32_t)(lane - ep->lanes));
}

void gw_blast_lane_begin_train(struct gw_blast_lane *lane, gw_time late, gw_time now)
{
    gw_time since = now - (late < GW_PACER_LATE_MAX ? late : GW_PACER_LATE_MAX);
    if (gw_time_before(lane->free_at, since))
        lane->free_at = since;
}

gw_time gw_blast_lane_take(struct gw_blast_lane *lane, uint32_t bytes)
{
    return lane->free_at = gw_time_add(lane->free_at, gw_serialisation(lane->window.pace, bytes));
}

void gw_blast_lane_begin_round(struct gw_blast_lane *lane, const struct gw_transport *transport,
                               gw_time now)
{
    transport->cc->on_round(lane->cc_state, transport->cc_cfg.bytes, &lane->path, &lane->window,
                            now);
}

void gw_blast_lane_report(struct gw_blast_lane *lane, const struct gw_transport *transport,
                          const struct gw_cc_report *report, gw_time now)
{
    lane->sent += report->sent;
    lane->received += report->received;
    if (lane->cc && gw_time_before(now, lane->report_at))
        return;
    const struct gw_cc_report together = {
        .period = report->period, .sent = lane->sent, .received = lane->received};
    lane->sent = lane->received = 0;
    lane->report_at = gw_time_add(now, report->period);
    transport->cc->on_report(lane->cc_state, transport->cc_cfg.bytes, &lane->path, &together,
                             &lane->window, now);
}

void gw_blast_lanes_carve(struct gw_endpoint *ep, uint32_t count, struct gw_arena *arena)
{
    ep->lanes = gw_arena_take(arena, ((size_t)count + 1) * sizeof(*ep->lanes));
    void *map = gw_arena_take(arena, gw_map_size(count));
    if (!arena->base)
        return;
    gw_map_init(&ep->lane_map, map, count);
    memset(ep->lanes, 0, ((size_t)count + 1) * sizeof(*ep->lanes));
    gw_blast_lanes_init(ep->lanes, count);
    for (uint32_t i = 0; i < count; i++)
        gw_blast_lanes_append(ep->lanes, count, i);
}
