/*
 * What the server sends, and when it asks. Orders wait in a queue until the port is free; each is
 * filled then, from the fragment as it is by that time.
 *
 * Invariant: an order whose fragment is not what it was ordered for any more is dropped: the
 * request has been met, or nobody needs the result.
 */
#include "core/aggregation/agg_bound.h"
#include "core/aggregation/server_impl.h"

enum {
    ROUNDS_MAX = 6, /* of requests that double the wait for the next, while a worker is late */
};

/* A packet was queued, or not: then the workers will ask again. */
static void ordered(struct gw_server *server, bool has_room)
{
    server->stats.refused += !has_room;
    gw_app_wake(&server->app);
}

void gw_server_order(struct gw_server *server, uint32_t seq, uint32_t dst, uint8_t flags)
{
    ordered(server, gw_order_queue_push(&server->orders, seq, dst, flags));
}

void gw_server_order_all(struct gw_server *server, uint32_t seq, uint8_t flags)
{
    if (server->levels > 0)
        gw_server_order(server, seq, server->addresses[0], flags);
    else
        ordered(server, gw_order_queue_push_all(&server->orders, seq, flags));
}

static bool asks(const struct gw_server *server)
{
    return server->cfg.quiet > 0 && server->levels > 0;
}

/* Asks for what fragments in [first, end) lack that were in a collision. */
static void ask(struct gw_server *server, uint32_t first, uint32_t end)
{
    for (uint32_t seq = first; seq != end; seq++) {
        const struct gw_fragment *fragment = gw_server_fragment(server, seq);
        if (fragment->seq != seq || fragment->state != GW_FRAGMENT_SUMMING ||
            !(fragment->flags & GW_AGG_COLLISION))
            continue;
        server->stats.asked++;
        gw_server_order_all(server, seq, GW_AGG_REQUEST);
    }
}

void gw_server_ask_overtaken(struct gw_server *server, uint32_t seq)
{
    if ((int32_t)(server->overtaken - server->expected) < 0)
        server->overtaken = server->expected;
    if (!asks(server) || (int32_t)(seq - server->overtaken) <= 0)
        return;
    ask(server, server->overtaken, seq);
    server->overtaken = seq;
}

void gw_server_arm_quiet(struct gw_server *server)
{
    if (asks(server) && server->open)
        gw_app_arm_by(&server->app,
                      gw_time_add(server->progress_at, server->cfg.quiet << server->rounds));
}

void gw_server_expire(struct gw_app *app, gw_time now)
{
    struct gw_server *server = (struct gw_server *)app;
    gw_app_arm(app, GW_TIME_NEVER);
    if (!gw_order_queue_is_empty(&server->orders))
        gw_app_wake(app);
    if (server->open && asks(server) &&
        now - server->progress_at >= server->cfg.quiet << server->rounds) {
        bool holds_up = !gw_order_queue_is_empty(&server->orders); /* itself what others wait for */
        if (!holds_up)
            ask(server, server->expected, server->expected + server->positions);
        server->progress_at = now;
        server->rounds += server->rounds < ROUNDS_MAX;
    }
    gw_server_arm_quiet(server);
    gw_server_deadline_expire(server, now);
    gw_server_deadline_arm(server);
}

/* Whether an order is for all that switches hold, whatever the server knows of it. */
static bool is_of_span(const struct gw_order *order)
{
    const uint8_t span = GW_AGG_REQUEST | GW_AGG_SPAN;
    return (order->flags & (span | GW_AGG_RAW)) == span;
}

/* Finds the next order that still holds, and its fragment; false: there is none. */
static bool next_order(struct gw_server *server, struct gw_order *next,
                       struct gw_fragment **fragment)
{
    for (; gw_order_queue_next(&server->orders, next); gw_order_queue_pop(&server->orders)) {
        *fragment = gw_server_fragment(server, next->seq);
        if (is_of_span(next))
            return true;
        enum gw_fragment_state wanted = !(next->flags & GW_AGG_REQUEST) ? GW_FRAGMENT_DONE
                                        : next->flags & GW_AGG_RAW      ? GW_FRAGMENT_RAW
                                                                        : GW_FRAGMENT_SUMMING;
        /* A newer fragment may have replaced it by now, or the request may have been met. */
        if ((*fragment)->seq == next->seq && (*fragment)->state == wanted)
            return true;
    }
    return false;
}

/* Done with an order to `dst`: a train ends with it if the next one goes elsewhere. */
static bool ends_train(struct gw_server *server, uint32_t dst)
{
    struct gw_order after;
    struct gw_fragment *fragment;
    gw_order_queue_pop(&server->orders);
    return next_order(server, &after, &fragment) && after.dst != dst;
}

static bool server_can_send(const struct gw_endpoint *ep, const struct gw_sender *sender,
                            gw_time now)
{
    (void)ep;
    (void)now;
    return !gw_order_queue_is_empty(&((const struct gw_server *)sender)->orders);
}

/* Fills a request for all that switches hold from a fragment on. */
static struct gw_pkt *emit_span(struct gw_server *server, struct gw_pkt *pkt,
                                const struct gw_order *order)
{
    pkt->agg_flags = order->flags;
    gw_app_pkt(&server->app, pkt, order->dst, order->seq, 0);
    pkt->key = 0;
    pkt->epoch = server->epoch;
    /* To one worker alone: all that it has and lacks. */
    bool is_for_one = order->flags & GW_AGG_UNICAST;
    pkt->index = (uint16_t)((is_for_one ? server->positions : server->deadline.span) - 1);
    pkt->agg.bitmap = is_for_one ? UINT32_MAX : server->deadline.positions;
    if (ends_train(server, order->dst))
        gw_app_end_train(&server->app);
    return pkt;
}

static struct gw_pkt *server_emit(struct gw_endpoint *ep, struct gw_sender *sender, gw_time now)
{
    struct gw_server *server = (struct gw_server *)sender;
    struct gw_order next;
    struct gw_fragment *fragment;
    struct gw_pkt *pkt = gw_app_claim(&server->app);
    (void)ep;
    if (!pkt) {
        gw_app_arm_by(&server->app, gw_time_add(now, server->cfg.retry));
        return NULL;
    }
    if (!next_order(server, &next, &fragment)) {
        gw_pkt_release(server->app.pool, pkt);
        return NULL;
    }
    if (is_of_span(&next))
        return emit_span(server, pkt, &next);
    bool is_result = !(next.flags & GW_AGG_REQUEST);
    pkt->agg_flags = next.flags;
    if (is_result) {
        pkt->agg_flags |= fragment->flags;
        if (fragment->buf != GW_BUF_NONE && !(fragment->flags & GW_AGG_FAILED)) {
            gw_buf_share(gw_server_bufs(server), fragment->buf);
            pkt->buf = fragment->buf;
        }
    }
    uint32_t values = is_result && !(fragment->flags & GW_AGG_FAILED) ? fragment->values : 0;
    gw_app_pkt(&server->app, pkt, next.dst, next.seq, values);
    if (ends_train(server, next.dst))
        gw_app_end_train(&server->app);
    pkt->key = fragment->key;
    pkt->epoch = server->epoch;
    pkt->scale = is_result ? fragment->scale : GW_PKT_SCALE_NONE;
    pkt->index = fragment->index;
    if (!is_result) {
        pkt->agg.bitmap = gw_contributors_missing(&server->contributors, &fragment->set, NULL);
        return pkt;
    }
    pkt->agg.bitmap = gw_agg_result_word(fragment->lacks, fragment->parities == GW_AGG_ODD);
    if (pkt->agg_flags & GW_AGG_COLLISION)
        pkt->agg.bitmap |= fragment->new_index;
    return pkt;
}

const struct gw_sender_ops gw_server_sender_ops = {
    .can_send = server_can_send,
    .emit = server_emit,
};
