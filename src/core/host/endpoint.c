/*
 * The endpoint's frame: memory, dispatch of the verbs, flows, timers and events. What a flow
 * does is in flow_tx.h and flow_rx.h, what leaves first is in egress.c, and what applications are
 * offered in app.c.
 *
 * Invariant: pending events + promised events <= room of the event queue, so that what ends can
 * always say so.
 */
#include "core/host/endpoint_impl.h"

#include <string.h>

#include "base/arena.h"
#include "base/align.h"
#include "base/bits.h"
#include "base/error.h"
#include "core/host/announce.h"
#include "core/host/blast.h"
#include "core/host/credit.h"
#include "core/host/flow_rx.h"
#include "core/host/flow_tx.h"

enum {
    APPS_MAX = 4096,
    APP_EVENTS_MAX = 1 << 20,
};

static uint32_t records_per_flow(const struct gw_endpoint_cfg *cfg)
{
    return cfg->span_max + 2; /* two list heads */
}

/* Carves `ep`'s tables out of the arena. The same code measures and builds. */
static void endpoint_carve(struct gw_endpoint *ep, const struct gw_endpoint_cfg *cfg,
                           struct gw_arena *arena)
{
    uint32_t flows = cfg->tx_flows_max + cfg->rx_flows_max + 2 * cfg->blasts_max;
    uint32_t timers = flows + cfg->apps_max + cfg->port_count + 2 + cfg->announcers_max;
    ep->node.ready = gw_arena_take(arena, cfg->port_count * sizeof(*ep->node.ready));
    ep->egress = gw_arena_take(arena, cfg->port_count * sizeof(*ep->egress));
    ep->tx_flows = gw_arena_take(arena, cfg->tx_flows_max * sizeof(*ep->tx_flows));
    ep->rx_flows = gw_arena_take(arena, cfg->rx_flows_max * sizeof(*ep->rx_flows));
    ep->events = gw_arena_take(arena, (flows + cfg->app_events_max) * sizeof(*ep->events));
    ep->apps = gw_arena_take(arena, cfg->apps_max * sizeof(*ep->apps));
    void *app_map = gw_arena_take(arena, gw_map_size(cfg->apps_max));
    /* And the head of a list. */
    ep->announcers =
        gw_arena_take(arena, ((size_t)cfg->announcers_max + 1) * sizeof(*ep->announcers));
    void *announcer_map = gw_arena_take(arena, gw_map_size(cfg->announcers_max));
    ep->expectations = gw_arena_take(arena, cfg->expect_max * sizeof(*ep->expectations));
    void *heap = gw_arena_take(arena, gw_heap_size(timers));
    void *map = gw_arena_take(arena, gw_map_size(cfg->rx_flows_max));
    struct gw_tx_record *records = gw_arena_take(
        arena, (size_t)cfg->tx_flows_max * records_per_flow(cfg) * sizeof(struct gw_tx_record));
    uint64_t *bits = gw_arena_take(arena, (size_t)cfg->rx_flows_max * cfg->span_max / 8);
    ep->rx_memory = gw_arena_take(arena, cfg->rx_flows_max * sizeof(*ep->rx_memory));
    uint32_t past_sets =
        cfg->expect_max ? gw_past_flows_sets(cfg->rx_flows_max + cfg->blasts_max) : 0;
    void *past = gw_arena_take(arena, gw_past_flows_size(past_sets));
    gw_blast_carve(ep, cfg, arena);
    if (!arena->base)
        return;
    gw_index_queue_init(&ep->event_queue, flows + cfg->app_events_max);
    gw_heap_init(&ep->timers, heap, timers);
    gw_map_init(&ep->rx_map, map, cfg->rx_flows_max);
    gw_map_init(&ep->app_map, app_map, cfg->apps_max);
    gw_map_init(&ep->announcer_map, announcer_map, cfg->announcers_max);
    gw_past_flows_init(&ep->past_flows, past, past_sets);
    memset(ep->apps, 0, cfg->apps_max * sizeof(*ep->apps));
    memset(ep->egress, 0, cfg->port_count * sizeof(*ep->egress));
    memset(ep->tx_flows, 0, cfg->tx_flows_max * sizeof(*ep->tx_flows));
    memset(ep->rx_flows, 0, cfg->rx_flows_max * sizeof(*ep->rx_flows));
    memset(ep->rx_memory, 0, cfg->rx_flows_max * sizeof(*ep->rx_memory));
    memset(ep->expectations, 0, cfg->expect_max * sizeof(*ep->expectations));
    for (uint32_t i = 0; i < cfg->tx_flows_max; i++) {
        ep->tx_flows[i].records = records + (size_t)i * records_per_flow(cfg);
        ep->tx_flows[i].generation = cfg->generation;
        ep->tx_flows[i].free_next = i + 1 < cfg->tx_flows_max ? i + 1 : GW_FLOW_NONE;
    }
    for (uint32_t i = 0; i < cfg->rx_flows_max; i++) {
        ep->rx_flows[i].bits = bits + (size_t)i * cfg->span_max / 64;
        ep->rx_flows[i].list_next = i + 1 < cfg->rx_flows_max ? i + 1 : GW_FLOW_NONE;
    }
}

static bool blasts_are_valid(const struct gw_endpoint_cfg *cfg)
{
    return cfg->blasts_max == 0 ||
           (cfg->blasts_max <= GW_BLASTS_MAX && cfg->report_every > 0 &&
            cfg->hail_copies <= GW_HAIL_COPIES_MAX &&
            cfg->tx_flows_max + cfg->blasts_max <= GW_TX_FLOWS_MAX && cfg->blast_packets_max > 0 &&
            cfg->blast_packets_max <= GW_BLAST_PACKETS_MAX);
}

static bool cfg_is_valid(const struct gw_endpoint_cfg *cfg)
{
    return cfg->port_count >= 1 && cfg->tx_flows_max >= 1 && cfg->tx_flows_max <= GW_TX_FLOWS_MAX &&
           cfg->rx_flows_max >= 1 && cfg->rx_flows_max <= GW_RX_FLOWS_MAX &&
           cfg->span_max >= GW_SPAN_MIN && cfg->span_max <= GW_SPAN_MAX &&
           (cfg->span_max & (cfg->span_max - 1)) == 0 && cfg->mtu >= 1 && cfg->mtu <= UINT16_MAX &&
           cfg->ack_every >= 1 && cfg->ack_every <= GW_ACK_EVERY_MAX &&
           cfg->ack_entropies <= GW_ACK_ENTROPIES_MAX && cfg->train >= 1 &&
           cfg->announcers_max <= GW_ANNOUNCERS_MAX && cfg->apps_max <= APPS_MAX &&
           cfg->app_events_max <= APP_EVENTS_MAX && cfg->pool != NULL && blasts_are_valid(cfg);
}

/* Whom a packet of a job is for. */
static enum gw_app_role role_of(const struct gw_pkt *pkt)
{
    if (pkt->q.kind != GW_PKT_JOB && pkt->agg_flags & GW_AGG_SLOT)
        return GW_APP_SLOT_WORKER;
    if (pkt->q.kind != GW_PKT_JOB)
        return pkt->q.kind == GW_PKT_GRAD ? GW_APP_SERVER : GW_APP_WORKER;
    switch (pkt->agg_flags) {
    case GW_JOB_JOIN:
    case GW_JOB_INSTALLED:
    case GW_JOB_READY:
    case GW_JOB_LEAVE:
        return GW_APP_COORDINATOR;
    default:
        return GW_APP_MEMBER;
    }
}

/* The application of the packet's job, or NULL. */
static struct gw_app *find_app(struct gw_endpoint *ep, const struct gw_pkt *pkt)
{
    enum gw_app_role role = role_of(pkt);
    struct gw_app *app = ep->last_app;
    if (app && app->job == pkt->flow && app->ops->role == role)
        return app;
    uint32_t index = gw_map_get(&ep->app_map, gw_app_map_key(pkt->flow, role));
    if (index == GW_MAP_NONE)
        return NULL;
    return ep->last_app = ep->apps[index];
}

/* Whether values are for the same application as others; job control goes by its operation. */
static bool is_for_same(const struct gw_pkt *pkt, const struct gw_pkt *first)
{
    return pkt->q.kind == first->q.kind && pkt->q.kind != GW_PKT_JOB && pkt->flow == first->flow &&
           pkt->dst == first->dst && !((pkt->agg_flags ^ first->agg_flags) & GW_AGG_SLOT);
}

/* Hands the first packets to the application of their job, as far as they are for the same one;
 * returns how many. */
static uint32_t app_input(struct gw_endpoint *ep, struct gw_pkt **pkts, uint32_t count, gw_time now)
{
    struct gw_app *app = find_app(ep, pkts[0]);
    uint32_t taken = 1;
    while (taken < count && is_for_same(pkts[taken], pkts[0]))
        taken++;
    /* A gradient for slots has missed its switch. */
    if (app && !(pkts[0]->q.kind == GW_PKT_GRAD && pkts[0]->agg_flags & GW_AGG_SLOT)) {
        app->ops->input(app, pkts, taken, now);
        return taken;
    }
    ep->stats.stray += taken;
    for (uint32_t i = 0; i < taken; i++)
        gw_pkt_release(ep->pool, pkts[i]);
    return taken;
}

static void endpoint_input(struct gw_node *node, uint16_t port, struct gw_pkt **pkts,
                           uint32_t count, gw_time now)
{
    struct gw_endpoint *ep = (struct gw_endpoint *)node;
    gw_endpoint_look(ep, now);
    for (uint32_t i = 0; i < count; i++) {
        struct gw_pkt *pkt = pkts[i];
        if (pkt->q.kind == GW_PKT_PAUSE && ep->cfg.is_lossless) {
            gw_egress_obey(ep, port, pkt->pause, now);
        } else if (pkt->dst == ep->cfg.address) {
            switch (pkt->q.kind) {
            case GW_PKT_DATA:
                if (pkt->q.flags & GW_PKT_BLAST)
                    gw_blast_rx_data(ep, pkt, now);
                else
                    gw_flow_rx_data(ep, pkt, now);
                continue;
            case GW_PKT_GRAD:
            case GW_PKT_PARAM:
            case GW_PKT_JOB:
                i += app_input(ep, pkts + i, count - i, now) - 1;
                continue;
            case GW_PKT_ACK:
                gw_flow_tx_ack(ep, pkt, now);
                break;
            case GW_PKT_NACK:
                ep->stats.nacks_received++;
                gw_flow_tx_nack(ep, pkt, now);
                break;
            case GW_PKT_CREDIT:
                ep->stats.credits_received++;
                if (!gw_blast_credit(ep, pkt, now))
                    gw_flow_tx_credit(ep, pkt, now);
                break;
            case GW_PKT_NOTICE:
                gw_announce_input(ep, pkt, now);
                continue;
            case GW_PKT_HAIL:
                gw_blast_input(ep, pkt, now);
                continue;
            default:
                ep->stats.malformed++;
            }
        } else {
            ep->stats.stray++;
        }
        gw_pkt_release(ep->pool, pkt);
    }
}

static void endpoint_expire(struct gw_node *node, gw_time now)
{
    struct gw_endpoint *ep = (struct gw_endpoint *)node;
    gw_endpoint_look(ep, now);
    /* Each timer that fires is moved behind `now` or disarmed, so this ends. */
    while (ep->timers.count && !gw_time_before(now, gw_heap_next(&ep->timers))) {
        uint32_t id = gw_heap_first(&ep->timers);
        uint32_t first_rx = ep->cfg.tx_flows_max, first_app = first_rx + ep->cfg.rx_flows_max;
        uint32_t first_port = first_app + ep->cfg.apps_max;
        if (id < first_rx)
            gw_flow_tx_expire(ep, &ep->tx_flows[id], now);
        else if (id < first_app)
            gw_flow_rx_expire(ep, &ep->rx_flows[id - first_rx], now);
        else if (id == gw_credit_timer(ep))
            gw_credit_expire(ep, now);
        else if (id == gw_early_timer(ep))
            gw_early_expire(ep, now);
        else if (id >= gw_blast_timer(ep))
            gw_blast_expire(ep, id, now);
        else if (id >= gw_announcer_timer(ep))
            gw_announce_expire(ep, id, now);
        else if (id >= first_port)
            gw_egress_expire(ep, (uint16_t)(id - first_port), now);
        else
            ep->apps[id - first_app]->ops->expire(ep->apps[id - first_app], now);
    }
    ep->node.deadline = gw_heap_next(&ep->timers);
}

static const struct gw_node_ops endpoint_ops = {
    .input = endpoint_input,
    .output = gw_egress_output,
    .expire = endpoint_expire,
};

size_t gw_endpoint_size(const struct gw_endpoint_cfg *cfg)
{
    if (!cfg_is_valid(cfg))
        return 0;
    struct gw_endpoint ep;
    struct gw_arena arena = {.used = 0};
    gw_arena_take(&arena, sizeof(ep));
    endpoint_carve(&ep, cfg, &arena);
    return arena.used;
}

struct gw_endpoint *gw_endpoint_init(void *memory, const struct gw_endpoint_cfg *cfg)
{
    GW_ASSERT(cfg_is_valid(cfg));
    GW_ASSERT((uintptr_t)memory % GW_CACHE_LINE == 0);
    struct gw_arena arena = {.base = memory};
    struct gw_endpoint *ep = gw_arena_take(&arena, sizeof(*ep));
    *ep = (struct gw_endpoint){
        .node = {.ops = &endpoint_ops, .deadline = GW_TIME_NEVER, .port_count = cfg->port_count},
        .pool = cfg->pool,
        .prng = gw_prng_derive(cfg->seed, 0),
        .span_mask = cfg->span_max - 1,
        .done_head = GW_FLOW_NONE,
        .done_tail = GW_FLOW_NONE,
        .cfg = *cfg,
    };
    if (ep->cfg.grant.first > cfg->span_max)
        ep->cfg.grant.first = cfg->span_max;
    endpoint_carve(ep, cfg, &arena);
    gw_announce_init(ep);
    return ep;
}

uint32_t gw_endpoint_fini(struct gw_endpoint *ep)
{
    uint32_t count = gw_early_fini(ep);
    for (uint16_t port = 0; port < ep->node.port_count; port++) {
        struct gw_egress *egress = &ep->egress[port];
        for (; egress->control.count; count++)
            gw_pkt_release(ep->pool, gw_pkt_fifo_pop(&egress->control, ep->pool));
        if (egress->pause) {
            gw_pkt_release(ep->pool, egress->pause);
            egress->pause = NULL;
            count++;
        }
    }
    return count;
}

void gw_endpoint_foresee(const struct gw_endpoint *ep, const struct gw_pkt *pkt)
{
    gw_prefetch(ep->egress, sizeof(*ep->egress), GW_PREFETCH_WRITE);
    if (pkt->q.kind == GW_PKT_DATA && !(pkt->q.flags & GW_PKT_BLAST))
        gw_flow_rx_foresee(ep, pkt);
    else if (pkt->q.kind == GW_PKT_ACK || pkt->q.kind == GW_PKT_NACK)
        gw_flow_tx_foresee(ep, pkt);
}

struct gw_node *gw_endpoint_node(struct gw_endpoint *ep)
{
    return &ep->node;
}

int gw_endpoint_send(struct gw_endpoint *ep, const struct gw_send *send, uint32_t *flow_id,
                     gw_time now)
{
    if (!send->transport || send->class > GW_CLASS_DATA_MAX || send->path.rate_bps == 0 ||
        send->notice.units > GW_NOTICE_UNITS_MAX ||
        send->bytes > (uint64_t)(UINT32_MAX - 1) * ep->cfg.mtu)
        return GW_ERR_INVALID;
    if (send->data && (!ep->pool->bufs || ep->pool->bufs->size < ep->cfg.mtu))
        return GW_ERR_INVALID;
    bool is_blast = gw_transport_is_blast(send->transport);
    if (is_blast && ep->cfg.blasts_max == 0)
        return GW_ERR_INVALID;
    if (!gw_endpoint_has_event_room(ep))
        return GW_ERR_NO_ROOM;
    if (is_blast && send->bytes)
        return gw_blast_tx_start(ep, send, flow_id, now);
    if (ep->tx_free == GW_FLOW_NONE)
        return GW_ERR_NO_ROOM;
    uint32_t index = ep->tx_free;
    struct gw_tx_flow *flow = &ep->tx_flows[index];
    *flow_id = (uint32_t)flow->generation << 16 | index;
    if (send->bytes == 0) {
        flow->generation++;
        gw_endpoint_post(ep, &(struct gw_event){.kind = GW_EVENT_SENT,
                                                .flow = *flow_id,
                                                .peer = send->peer,
                                                .tag = send->tag,
                                                .at = now});
        return GW_OK;
    }
    ep->tx_free = flow->free_next;
    ep->promised++;
    flow->id = *flow_id;
    gw_flow_tx_start(ep, flow, send, now);
    return GW_OK;
}

int gw_endpoint_expect_part(struct gw_endpoint *ep, const struct gw_expect *expect)
{
    for (uint32_t i = 0; i < ep->cfg.expect_max; i++) {
        if (ep->expectations[i].data)
            continue;
        ep->expectations[i] = *expect;
        ep->expect_end = ep->expect_end > i ? ep->expect_end : i + 1;
        if (expect->arrived)
            memset(expect->arrived, 0, gw_bit_words(expect->packets_max) * sizeof(uint64_t));
        gw_early_tell(ep, expect->peer, expect->tag);
        return GW_OK;
    }
    return GW_ERR_NO_ROOM;
}

int gw_endpoint_expect(struct gw_endpoint *ep, uint32_t peer, uint32_t tag, void *data,
                       uint64_t bytes)
{
    return gw_endpoint_expect_part(
        ep, &(struct gw_expect){.peer = peer, .tag = tag, .data = data, .bytes = bytes});
}

void gw_endpoint_forget(struct gw_endpoint *ep, const void *memory, uint64_t size)
{
    for (uint32_t i = 0; i < ep->expect_end; i++)
        if (gw_begins_in(ep->expectations[i].data, memory, size) ||
            gw_begins_in(ep->expectations[i].into, memory, size) ||
            gw_begins_in(ep->expectations[i].arrived, memory, size) ||
            gw_begins_in(ep->expectations[i].notes, memory, size))
            ep->expectations[i].data = NULL;
    gw_endpoint_trim(ep);
    for (uint32_t i = 0; i < ep->cfg.tx_flows_max; i++)
        if (ep->tx_flows[i].transport && (gw_begins_in(ep->tx_flows[i].data, memory, size) ||
                                          gw_begins_in(ep->tx_flows[i].important, memory, size)))
            gw_flow_tx_drop(ep, &ep->tx_flows[i]);
    for (uint32_t i = 0; i < ep->cfg.rx_flows_max; i++)
        if (gw_begins_in(ep->rx_memory[i].data, memory, size) ||
            gw_begins_in(ep->rx_memory[i].arrived_bits, memory, size))
            gw_flow_rx_drop(ep, &ep->rx_flows[i]);
    gw_blast_forget(ep, memory, size);
}

gw_time gw_endpoint_paused(const struct gw_endpoint *ep)
{
    gw_time total = 0;
    for (uint16_t port = 0; port < ep->node.port_count; port++)
        total += ep->egress[port].gate.total;
    return total;
}

void gw_endpoint_post(struct gw_endpoint *ep, const struct gw_event *event)
{
    GW_ASSERT(!gw_index_queue_is_full(&ep->event_queue));
    ep->events[gw_index_queue_push(&ep->event_queue)] = *event;
    ep->node.event_count++;
}

void gw_endpoint_tell_unexpected(struct gw_endpoint *ep, const struct gw_event *event)
{
    if (!ep->cfg.tells_unexpected || ep->unexpected.bytes)
        return;
    ep->unexpected = *event;
    ep->unexpected.kind = GW_EVENT_UNEXPECTED;
    ep->node.event_count++;
}

uint32_t gw_endpoint_poll(struct gw_endpoint *ep, struct gw_event *events, uint32_t max)
{
    uint32_t count = 0;
    while (count < max && ep->event_queue.count > 0)
        events[count++] = ep->events[gw_index_queue_pop(&ep->event_queue)];
    if (count < max && ep->unexpected.bytes) {
        events[count++] = ep->unexpected;
        ep->unexpected.bytes = 0;
    }
    ep->node.event_count -= count;
    return count;
}

bool gw_endpoint_flow_info(const struct gw_endpoint *ep, uint32_t flow_id,
                           struct gw_flow_info *info)
{
    uint32_t index = flow_id & UINT16_MAX;
    if (index >= ep->cfg.tx_flows_max)
        return gw_blast_info(ep, flow_id, info);
    const struct gw_tx_flow *flow = &ep->tx_flows[index];
    if (!flow->transport || flow->id != flow_id)
        return false;
    *info = (struct gw_flow_info){
        .cwnd = flow->window.cwnd,
        .acked_bytes = flow->acked_bytes,
        .retransmits = flow->resent_packets,
        .in_flight_bytes = flow->in_flight,
        .window_packets = flow->next - flow->una,
        .cc_state = flow->cc_state,
    };
    return true;
}

const struct gw_endpoint_stats *gw_endpoint_stats(const struct gw_endpoint *ep)
{
    return &ep->stats;
}
