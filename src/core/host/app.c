/*
 * The endpoint's side of its applications: attaching, timers, packets and promises; see app.h.
 * Which of them a packet is for, is in endpoint.c.
 *
 * Invariant: an application's `timer_at` is what the endpoint's heap has.
 */
#include "core/host/app.h"

#include <string.h>

#include "base/error.h"
#include "core/host/announce.h"

int gw_app_attach(struct gw_app *app, struct gw_endpoint *ep)
{
    uint64_t key = gw_app_map_key(app->job, app->ops->role);
    if (gw_map_get(&ep->app_map, key) != GW_MAP_NONE)
        return GW_ERR_INVALID;
    uint32_t index = 0;
    while (index < ep->cfg.apps_max && ep->apps[index])
        index++;
    if (index == ep->cfg.apps_max || gw_map_put(&ep->app_map, key, index) != GW_OK)
        return GW_ERR_NO_ROOM;
    ep->apps[index] = app;
    app->hdr = ep->cfg.hdr;
    app->train = ep->cfg.train;
    app->promised = 0;
    app->ep = ep;
    app->pool = ep->pool;
    app->timer_at = GW_TIME_NEVER;
    app->timer = ep->cfg.tx_flows_max + ep->cfg.rx_flows_max + index;
    app->key = gw_flow_key(ep->cfg.address, app->dst, app->job);
    app->head = UINT64_MAX;
    return GW_OK;
}

void gw_app_detach(struct gw_app *app)
{
    struct gw_endpoint *ep = app->ep;
    gw_app_rest(app);
    gw_app_arm(app, GW_TIME_NEVER);
    ep->promised -= app->promised;
    gw_map_remove(&ep->app_map, gw_app_map_key(app->job, app->ops->role));
    ep->apps[app->timer - ep->cfg.tx_flows_max - ep->cfg.rx_flows_max] = NULL;
    ep->last_app = NULL;
}

void gw_app_arm(struct gw_app *app, gw_time at)
{
    app->timer_at = at;
    gw_endpoint_arm(app->ep, app->timer, at);
}

void gw_app_count_pool_empty(const struct gw_app *app)
{
    app->ep->stats.pool_empty++;
}

void gw_app_rest(struct gw_app *app)
{
    if (app->sender.announcer)
        gw_announce_give_up(app->ep, &app->sender);
    gw_egress_leave(app->ep, &app->sender);
}

/* Its next packet goes to `dst`. */
static inline void turn_to(struct gw_app *app, uint32_t dst)
{
    if (app->dst != dst) {
        app->dst = dst;
        app->key = gw_flow_key(app->ep->cfg.address, dst, app->job);
    }
}

void gw_app_busy(struct gw_app *app, uint32_t dst, gw_time now)
{
    struct gw_endpoint *ep = app->ep;
    bool is_slots = app->ops->role == GW_APP_SLOT_WORKER; /* whose packets leave for the switch */
    app->head = UINT64_MAX;
    if (app->notice.units == 0 || (dst == ep->cfg.address && !is_slots))
        return;
    turn_to(app, dst);
    gw_egress_leave(ep, &app->sender);
    struct gw_burst burst = {
        .terms = app->notice,
        .peer = dst,
        .flow = app->job,
        .key = app->key,
        .ecn = is_slots ? GW_ECN_NOT_ECT : GW_ECN_ECT0,
    };
    if (gw_announce_begin(ep, &app->sender, &burst, now) && app->sender.leads)
        app->sender.entropy = (uint16_t)gw_prng_next(&ep->prng);
}

void gw_app_idle(struct gw_app *app, gw_time now)
{
    if (app->sender.announcer)
        gw_announce_end(app->ep, &app->sender, now);
}

void gw_app_pkt(struct gw_app *app, struct gw_pkt *pkt, uint32_t dst, uint32_t seq, uint32_t values)
{
    struct gw_endpoint *ep = app->ep;
    if (gw_sender_begins_train(ep, &app->sender))
        app->sender.entropy = (uint16_t)gw_prng_next(&ep->prng);
    turn_to(app, dst);
    if (app->sender.leads) {
        app->sender.leads = false;
        app->head = seq;
    }
    pkt->q = (struct gw_qpkt){
        .size = 4 * values + app->hdr,
        .key = app->key,
        .class = app->sender.class,
        .ecn = GW_ECN_ECT0,
        .flags = app->head == seq ? GW_PKT_HEAD : 0,
        .kind = app->ops->role == GW_APP_SERVER ? GW_PKT_PARAM : GW_PKT_GRAD,
    };
    pkt->src = ep->cfg.address;
    pkt->dst = dst;
    pkt->flow = app->job;
    pkt->scale = GW_PKT_SCALE_NONE;
    pkt->seq = seq;
    pkt->entropy = app->sender.entropy;
    memset(&pkt->agg, 0, sizeof(pkt->agg));
    pkt->agg.values = (uint16_t)values;
}

struct gw_pkt *gw_app_job_pkt(const struct gw_app *app, uint32_t dst, enum gw_job_op op)
{
    struct gw_endpoint *ep = app->ep;
    struct gw_pkt *pkt = gw_app_claim(app);
    if (!pkt)
        return NULL;
    *pkt = (struct gw_pkt){
        .q = {.size = ep->cfg.hdr,
              .key = gw_flow_key(ep->cfg.address, dst, app->job),
              .class = GW_CLASS_CONTROL,
              .ecn = GW_ECN_ECT0,
              .kind = GW_PKT_JOB},
        .src = ep->cfg.address,
        .dst = dst,
        .flow = app->job,
        .agg_flags = op,
        .entropy = (uint16_t)gw_prng_next(&ep->prng),
        .buf = GW_BUF_NONE,
    };
    return pkt;
}

bool gw_app_may_promise(const struct gw_app *app)
{
    return gw_endpoint_has_event_room(app->ep);
}

void gw_app_promise(struct gw_app *app)
{
    GW_ASSERT(gw_app_may_promise(app));
    app->promised++;
    app->ep->promised++;
}

void gw_app_post(struct gw_app *app, const struct gw_event *event)
{
    GW_ASSERT(app->promised > 0);
    app->promised--;
    app->ep->promised--;
    gw_endpoint_post(app->ep, event);
}
