/*
 * The server; see server.h.
 *
 * Invariants: slot i holds at most one fragment, with seq modulo window = i; the set of a fragment
 * in work names exactly the workers whose values are in its sum (or raw list); a finished fragment
 * never changes; every fragment before `expected` is finished, and none at or behind expected +
 * positions has begun. So a fragment's slot holds nothing that anybody still needs.
 */
#include "core/aggregation/server.h"

#include <string.h>

#include "base/align.h"
#include "base/error.h"
#include "core/aggregation/agg_key.h"
#include "core/host/app.h"
#include "core/aggregation/order_queue.h"
#include "core/aggregation/scaling.h"

enum {
    NO_RAW = UINT32_MAX,
};

enum {
    ROUNDS_MAX = 6, /* of requests that double the wait for the next, while a worker is late */
};

enum fragment_state {
    FRAGMENT_EMPTY,   /* the first contribution moves it on */
    FRAGMENT_SUMMING, /* collects integers */
    FRAGMENT_RAW,     /* a sum saturated, or a worker sent raw values: collects raw ones */
    FRAGMENT_DONE,    /* has a result; a newer fragment takes the slot */
};

struct fragment {
    uint32_t seq;
    uint32_t key;
    uint32_t buf; /* the result, once done */
    uint32_t raw; /* row of raw buffers, or NO_RAW */
    uint16_t values;
    uint16_t index;     /* aggregator that its packets use */
    uint16_t new_index; /* after a collision */
    uint8_t state;      /* enum fragment_state */
    uint8_t flags;      /* enum gw_agg_flag of the result */
    uint8_t scale;      /* least offer of the contributors; once done: what the result says */
    struct gw_rank_set set;
};

struct gw_server {
    struct gw_app app;
    struct gw_server_cfg cfg;
    struct gw_agg_index index;
    void *index_memory;
    void *contributors_memory;
    uint16_t epoch;
    uint8_t levels; /* of switches in the tree */
    bool is_stopped;
    struct gw_contributors contributors;
    uint32_t *addresses; /* of workers, by rank */
    struct fragment *fragments;
    int64_t *sums;      /* window rows of `values` */
    uint32_t *raw_bufs; /* raw_max rows of `world` */
    uint32_t *raw_seqs; /* raw_max: the fragment that has the row */
    uint32_t *raw_free; /* stack */
    uint32_t raw_free_count;
    gw_real *real_sum; /* one row of `values` */
    struct gw_order_queue orders;
    void *orders_memory;
    uint32_t expected;   /* first fragment without result */
    uint32_t open;       /* fragments begun and not done */
    uint32_t overtaken;  /* fragments before it that were in a collision have been asked for */
    uint8_t rounds;      /* of requests since the last result */
    gw_time progress_at; /* last result or round, or when the first of `open` began */
    struct gw_overflow_rate overflow_rate;
    struct gw_server_stats stats;
};

static int64_t *sum_of(const struct gw_server *server, const struct fragment *fragment)
{
    return server->sums + (size_t)(fragment->seq & (server->cfg.window - 1)) * server->cfg.values;
}

static struct gw_buf_pool *bufs_of(const struct gw_server *server)
{
    return server->app.pool->bufs;
}

static void release_buf(struct gw_server *server, uint32_t *buf)
{
    if (*buf != GW_BUF_NONE)
        gw_buf_release(bufs_of(server), *buf);
    *buf = GW_BUF_NONE;
}

static void raw_release(struct gw_server *server, struct fragment *fragment)
{
    if (fragment->raw == NO_RAW)
        return;
    uint32_t *row = server->raw_bufs + (size_t)fragment->raw * server->cfg.world;
    for (uint32_t rank = 0; rank < server->cfg.world; rank++)
        release_buf(server, &row[rank]);
    server->raw_free[server->raw_free_count++] = fragment->raw;
    fragment->raw = NO_RAW;
}

/* A packet was queued, or not: then the workers will ask again. */
static void ordered(struct gw_server *server, bool has_room)
{
    server->stats.refused += !has_room;
    gw_app_wake(&server->app);
}

static void order(struct gw_server *server, uint32_t seq, uint32_t dst, uint8_t flags)
{
    ordered(server, gw_order_queue_push(&server->orders, seq, dst, flags));
}

/* To all workers: through the tree, or one by one. */
static void order_all(struct gw_server *server, uint32_t seq, uint8_t flags)
{
    if (server->levels > 0)
        order(server, seq, server->addresses[0], flags);
    else
        ordered(server, gw_order_queue_push_all(&server->orders, seq, flags));
}

/* Nobody needs it any more, or all begin it anew. */
static void fragment_forget(struct gw_server *server, struct fragment *fragment)
{
    raw_release(server, fragment);
    release_buf(server, &fragment->buf);
    fragment->state = FRAGMENT_EMPTY;
}

static void fragment_start(struct gw_server *server, struct fragment *fragment,
                           const struct gw_pkt *pkt)
{
    release_buf(server, &fragment->buf);
    gw_rank_set_clear(&fragment->set);
    fragment->seq = pkt->seq;
    fragment->key = pkt->key;
    fragment->raw = NO_RAW;
    fragment->values = pkt->agg.values;
    fragment->index = pkt->index;
    fragment->state = FRAGMENT_SUMMING;
    fragment->flags = 0;
    fragment->scale = GW_PKT_SCALE_NONE;
    server->open++;
}

static struct fragment *fragment_at(const struct gw_server *server, uint32_t seq)
{
    return &server->fragments[seq & (server->cfg.window - 1)];
}

/*
 * The fragment that a packet is for, or NULL: too old to be kept, or newer than what a worker that
 * keeps to its window can send.
 */
static struct fragment *fragment_of(struct gw_server *server, const struct gw_pkt *pkt)
{
    struct fragment *fragment = fragment_at(server, pkt->seq);
    if (fragment->state != FRAGMENT_EMPTY && fragment->seq == pkt->seq)
        return fragment->key == pkt->key && fragment->values == pkt->agg.values ? fragment : NULL;
    if (pkt->seq - server->expected >= server->cfg.positions)
        return NULL;
    fragment_start(server, fragment, pkt);
    return fragment;
}

/* Moves `expected` over all fragments that are finished. */
static void advance(struct gw_server *server)
{
    const struct fragment *fragment = fragment_at(server, server->expected);
    while (fragment->state == FRAGMENT_DONE && fragment->seq == server->expected)
        fragment = fragment_at(server, ++server->expected);
}

static bool asks(const struct gw_server *server)
{
    return server->cfg.quiet > 0 && server->levels > 0;
}

/* Asks for what fragments in [first, end) lack that were in a collision. */
static void ask(struct gw_server *server, uint32_t first, uint32_t end)
{
    for (uint32_t seq = first; seq != end; seq++) {
        const struct fragment *fragment = fragment_at(server, seq);
        if (fragment->seq != seq || fragment->state != FRAGMENT_SUMMING ||
            !(fragment->flags & GW_AGG_COLLISION))
            continue;
        server->stats.asked++;
        order_all(server, seq, GW_AGG_REQUEST);
    }
}

/*
 * Every worker has sent what comes before the complete fragment `seq`: what the others lack is in
 * switches, or lost. The request leaves before the result, or workers would infer a loss from it.
 */
static void ask_overtaken(struct gw_server *server, uint32_t seq)
{
    if ((int32_t)(server->overtaken - server->expected) < 0)
        server->overtaken = server->expected;
    if (!asks(server) || (int32_t)(seq - server->overtaken) <= 0)
        return;
    ask(server, server->overtaken, seq);
    server->overtaken = seq;
}

/* Decides what the result says of the exponent one window later. */
static void agree(struct gw_server *server, struct fragment *fragment, bool overflowed)
{
    gw_overflow_rate_note(&server->overflow_rate, overflowed);
    if (!server->cfg.agrees_exponents || !gw_overflow_rate_is_high(&server->overflow_rate))
        fragment->scale = GW_PKT_SCALE_NONE;
    server->stats.scaled += fragment->scale != GW_PKT_SCALE_NONE;
}

/* A row for raw contributions is free: asks again for the oldest fragment that found none. */
static void invite_raw(struct gw_server *server)
{
    for (uint32_t i = 0; i < server->cfg.positions; i++) {
        uint32_t seq = server->expected + i;
        const struct fragment *fragment = fragment_at(server, seq);
        if (fragment->seq == seq && fragment->state == FRAGMENT_RAW && fragment->raw == NO_RAW) {
            order_all(server, seq, GW_AGG_REQUEST | GW_AGG_RAW);
            return;
        }
    }
}

static void finish(struct gw_server *server, struct fragment *fragment, uint32_t buf, uint8_t flags)
{
    bool frees_row = fragment->raw != NO_RAW;
    raw_release(server, fragment);
    agree(server, fragment, flags & GW_AGG_RAW);
    fragment->buf = buf;
    fragment->flags |= flags;
    fragment->state = FRAGMENT_DONE;
    server->stats.results++;
    server->open--;
    ask_overtaken(server, fragment->seq);
    if (fragment->flags & GW_AGG_COLLISION) {
        uint32_t seq = fragment->seq;
        fragment->new_index = gw_agg_index_of(&server->index, seq);
        /* Only if nobody moved the position since this fragment was sent. */
        if (fragment->new_index == fragment->index) {
            fragment->new_index = gw_agg_index_unused(&server->index, seq);
            gw_agg_index_move(&server->index, seq, fragment->new_index);
        }
    }
    order_all(server, fragment->seq, 0);
    advance(server);
    if (frees_row)
        invite_raw(server);
}

/* Gives the integers up and asks everybody for raw values. */
static void turn_raw(struct gw_server *server, struct fragment *fragment)
{
    fragment->state = FRAGMENT_RAW;
    gw_rank_set_clear(&fragment->set);
    server->stats.overflowed++;
    order_all(server, fragment->seq, GW_AGG_REQUEST | GW_AGG_RAW);
}

/*
 * Takes a row away from the newest fragment that has one, if it is newer than `fragment`; else
 * false. So the oldest always gets on, whatever the others wait for.
 */
static bool yield_raw_row(struct gw_server *server, const struct fragment *fragment)
{
    uint32_t newest = fragment->seq;
    for (uint32_t i = 0; i < server->cfg.raw_max; i++)
        if ((int32_t)(server->raw_seqs[i] - newest) > 0)
            newest = server->raw_seqs[i];
    if (newest == fragment->seq)
        return false;
    struct fragment *loser = fragment_at(server, newest);
    raw_release(server, loser);
    gw_rank_set_clear(&loser->set);
    server->stats.refused++;
    return true;
}

static bool claim_raw_row(struct gw_server *server, struct fragment *fragment)
{
    if (fragment->raw != NO_RAW)
        return true;
    if (server->raw_free_count == 0 && !yield_raw_row(server, fragment))
        return false;
    fragment->raw = server->raw_free[--server->raw_free_count];
    server->raw_seqs[fragment->raw] = fragment->seq;
    uint32_t *row = server->raw_bufs + (size_t)fragment->raw * server->cfg.world;
    for (uint32_t rank = 0; rank < server->cfg.world; rank++)
        row[rank] = GW_BUF_NONE;
    return true;
}

/* Whether raw floats could have travelled as integers; `room` is for one worker's. */
static bool would_fit(const struct gw_server *server, const struct fragment *fragment,
                      const uint32_t *row, void *room)
{
    const struct gw_kernels *kernels = server->cfg.kernels;
    const struct fragment *before = fragment_at(server, fragment->seq - server->cfg.positions);
    bool is_known =
        before->state == FRAGMENT_DONE && before->seq + server->cfg.positions == fragment->seq;
    int exponent = gw_scaling_exponent(is_known ? before->scale : GW_PKT_SCALE_NONE,
                                       server->cfg.scale_exponent);
    const struct gw_scale scale = gw_scale_power(exponent, 1);
    int64_t *sum = sum_of(server, fragment);
    memset(sum, 0, fragment->values * sizeof(*sum));
    for (uint32_t rank = 0; rank < server->cfg.world; rank++) {
        if (!kernels->quantise[gw_agg_key_type(fragment->key)](
                room, gw_buf_bytes(bufs_of(server), row[rank]), fragment->values, &scale))
            return false;
        kernels->add_wide(sum, room, fragment->values);
    }
    return kernels->narrow(room, sum, fragment->values) &&
           !kernels->is_saturated(room, fragment->values);
}

/* Adds up the raw contributions in rank order. */
static void finish_raw(struct gw_server *server, struct fragment *fragment)
{
    const struct gw_kernels *kernels = server->cfg.kernels;
    const uint32_t *row = server->raw_bufs + (size_t)fragment->raw * server->cfg.world;
    enum gw_dtype type = gw_agg_key_type(fragment->key);
    uint32_t values = fragment->values;
    if (row[0] == GW_BUF_NONE) {
        finish(server, fragment, GW_BUF_NONE, GW_AGG_RAW);
        return;
    }
    uint32_t buf = gw_buf_claim(bufs_of(server));
    if (buf == GW_BUF_NONE) {
        /* It stays complete: whoever sends again makes us try again. */
        server->stats.refused++;
        return;
    }
    uint8_t flags = GW_AGG_RAW;
    unsigned char *out = gw_buf_bytes(bufs_of(server), buf);
    if (type == GW_DTYPE_I32) {
        int64_t *sum = sum_of(server, fragment);
        memset(sum, 0, values * sizeof(*sum));
        for (uint32_t rank = 0; rank < server->cfg.world; rank++)
            kernels->add_wide(sum, gw_buf_bytes(bufs_of(server), row[rank]), values);
        if (!kernels->narrow(out, sum, values))
            flags |= GW_AGG_FAILED;
    } else {
        if (server->cfg.proactive)
            server->stats.needless += would_fit(server, fragment, row, out);
        memset(server->real_sum, 0, values * sizeof(*server->real_sum));
        for (uint32_t rank = 0; rank < server->cfg.world; rank++)
            kernels->add_real[type](server->real_sum, gw_buf_bytes(bufs_of(server), row[rank]),
                                    values);
        memset(out, 0, 4 * (size_t)values);
        kernels->narrow_real[type](out, server->real_sum, values,
                                   gw_agg_key_average(fragment->key) ? server->cfg.world : 1);
    }
    finish(server, fragment, buf, flags);
}

/* A raw packet: one worker's own values. */
static void add_raw(struct gw_server *server, struct fragment *fragment, struct gw_pkt *pkt,
                    const struct gw_rank_set *from)
{
    struct gw_rank_set own = {0};
    uint32_t rank = 0;
    while (rank < server->cfg.world && !gw_rank_set_has(from, rank))
        rank++;
    gw_rank_set_add(&own, rank);
    if (!gw_rank_set_equals(from, &own)) {
        server->stats.stale++;
        return;
    }
    if (fragment->state != FRAGMENT_RAW)
        turn_raw(server, fragment);
    if (gw_rank_set_overlaps(&fragment->set, from)) {
        server->stats.overlaps++;
        if (!gw_rank_set_equals(&fragment->set, &server->contributors.everybody))
            return;
    } else if (!claim_raw_row(server, fragment)) {
        server->stats.refused++;
        return;
    } else {
        uint32_t *row = server->raw_bufs + (size_t)fragment->raw * server->cfg.world;
        row[rank] = pkt->buf;
        pkt->buf = GW_BUF_NONE;
        gw_rank_set_join(&fragment->set, from);
    }
    if (gw_rank_set_equals(&fragment->set, &server->contributors.everybody))
        finish_raw(server, fragment);
}

/* A sum of everybody: its buffer is the result. */
static void take_complete(struct gw_server *server, struct fragment *fragment, struct gw_pkt *pkt)
{
    uint32_t buf = pkt->buf;
    server->stats.complete++;
    pkt->buf = GW_BUF_NONE;
    finish(server, fragment, buf, 0);
}

/* Adds a partial sum, and finishes when everybody is in. */
static void add_partial(struct gw_server *server, struct fragment *fragment,
                        const struct gw_pkt *pkt, const struct gw_rank_set *from)
{
    const struct gw_kernels *kernels = server->cfg.kernels;
    int64_t *sum = sum_of(server, fragment);
    const struct gw_rank_set *everybody = &server->contributors.everybody;
    bool is_last = gw_rank_set_completes(&fragment->set, from, everybody);
    uint32_t buf = GW_BUF_NONE;
    if (pkt->buf != GW_BUF_NONE) {
        if (is_last && (buf = gw_buf_claim(bufs_of(server))) == GW_BUF_NONE) {
            server->stats.refused++;
            return;
        }
        if (!gw_rank_set_overlaps(&fragment->set, everybody))
            memset(sum, 0, fragment->values * sizeof(*sum)); /* the first */
        kernels->add_wide(sum, gw_buf_bytes(bufs_of(server), pkt->buf), fragment->values);
    }
    server->stats.partial++;
    gw_rank_set_join(&fragment->set, from);
    if (!is_last)
        return;
    if (buf != GW_BUF_NONE) {
        void *out = gw_buf_bytes(bufs_of(server), buf);
        if (!kernels->narrow(out, sum, fragment->values) ||
            kernels->is_saturated(out, fragment->values)) {
            release_buf(server, &buf);
            turn_raw(server, fragment);
            return;
        }
    }
    finish(server, fragment, buf, 0);
}

/* The result itself, from a worker that had it before this server forgot it. */
static void take_final(struct gw_server *server, struct fragment *fragment, struct gw_pkt *pkt)
{
    uint32_t buf = pkt->buf;
    server->stats.restored++;
    pkt->buf = GW_BUF_NONE;
    finish(server, fragment, buf, pkt->agg_flags & GW_AGG_RAW);
    fragment->scale = pkt->scale; /* some workers go by that already */
}

/* An integer packet for a fragment that collects integers. */
static void add_integers(struct gw_server *server, struct fragment *fragment, struct gw_pkt *pkt,
                         const struct gw_rank_set *from)
{
    if (pkt->buf != GW_BUF_NONE && server->cfg.kernels->is_saturated(
                                       gw_buf_bytes(bufs_of(server), pkt->buf), fragment->values))
        turn_raw(server, fragment);
    else if (gw_rank_set_equals(from, &server->contributors.everybody))
        take_complete(server, fragment, pkt);
    else if (gw_rank_set_overlaps(&fragment->set, from))
        server->stats.overlaps++;
    else
        add_partial(server, fragment, pkt, from);
}

/* True when the packet was sent by a worker whose values it claims to carry. */
static bool is_from_worker(const struct gw_server *server, const struct gw_rank_set *from,
                           uint32_t address)
{
    for (uint32_t rank = 0; rank < server->cfg.world; rank++)
        if (gw_rank_set_has(from, rank) && server->addresses[rank] == address)
            return true;
    return false;
}

/* A packet for a finished fragment: its worker may have missed the result. */
static void answer(struct gw_server *server, const struct fragment *fragment,
                   const struct gw_pkt *pkt)
{
    if (!(pkt->agg_flags & GW_AGG_RESEND))
        return;
    server->stats.answered++;
    order(server, fragment->seq, pkt->src, GW_AGG_UNICAST);
}

static void server_gradient(struct gw_server *server, struct gw_pkt *pkt)
{
    struct gw_rank_set from;
    server->stats.received++;
    server->stats.bytes += pkt->q.size;
    struct fragment *fragment = NULL;
    if (!server->is_stopped && pkt->epoch == server->epoch &&
        pkt->agg.values <= server->cfg.values && pkt->agg.values > 0 &&
        gw_contributors_of(&server->contributors, pkt, &from))
        fragment = fragment_of(server, pkt);
    if (!fragment) {
        server->stats.stale++;
        return;
    }
    bool is_for_reply = fragment->state == FRAGMENT_DONE || pkt->agg_flags & GW_AGG_FINAL ||
                        (fragment->state == FRAGMENT_RAW && !(pkt->agg_flags & GW_AGG_RAW));
    if (is_for_reply && !is_from_worker(server, &from, pkt->src)) {
        server->stats.stale++; /* replies go to workers only */
        return;
    }
    if (fragment->state == FRAGMENT_DONE) {
        answer(server, fragment, pkt);
        return;
    }
    /* The last link's queue marks the packet itself: no switch has seen that. */
    if (pkt->q.ecn == GW_ECN_CE)
        fragment->flags |= GW_AGG_ECN;
    fragment->flags |= pkt->agg_flags & (GW_AGG_ECN | GW_AGG_COLLISION);
    if (pkt->scale < fragment->scale)
        fragment->scale = pkt->scale;
    if (pkt->agg_flags & GW_AGG_COLLISION)
        fragment->index = pkt->index;
    if (pkt->agg_flags & GW_AGG_FINAL)
        take_final(server, fragment, pkt);
    else if (pkt->agg_flags & GW_AGG_RAW)
        add_raw(server, fragment, pkt, &from);
    else if (fragment->state == FRAGMENT_RAW)
        order(server, fragment->seq, pkt->src, GW_AGG_REQUEST | GW_AGG_RAW | GW_AGG_UNICAST);
    else
        add_integers(server, fragment, pkt, &from);
}

/* When to ask next. The timer may be early: it does not follow every result. */
static void arm_quiet(struct gw_server *server)
{
    if (asks(server) && server->open)
        gw_app_arm_by(&server->app,
                      gw_time_add(server->progress_at, server->cfg.quiet << server->rounds));
}

static void server_input(struct gw_app *app, struct gw_pkt *pkt, gw_time now)
{
    struct gw_server *server = (struct gw_server *)app;
    bool was_idle = server->open == 0;
    uint64_t results = server->stats.results;
    server_gradient(server, pkt);
    if (was_idle || server->stats.results != results) {
        server->progress_at = now;
        server->rounds = 0;
    }
    arm_quiet(server);
    gw_pkt_release(app->pool, pkt);
}

static bool server_can_send(const struct gw_endpoint *ep, const struct gw_sender *sender,
                            gw_time now)
{
    (void)ep;
    (void)now;
    return !gw_order_queue_is_empty(&((const struct gw_server *)sender)->orders);
}

/* Tries again when buffers may be free, and asks when it has been quiet for long. */
static void server_expire(struct gw_app *app, gw_time now)
{
    struct gw_server *server = (struct gw_server *)app;
    gw_app_arm(app, GW_TIME_NEVER);
    if (!gw_order_queue_is_empty(&server->orders))
        gw_app_wake(app);
    if (server->open && asks(server) &&
        now - server->progress_at >= server->cfg.quiet << server->rounds) {
        if (gw_order_queue_is_empty(
                &server->orders)) /* else it is the server that holds things up */
            ask(server, server->expected, server->expected + server->cfg.positions);
        server->progress_at = now;
        server->rounds += server->rounds < ROUNDS_MAX;
    }
    arm_quiet(server);
}

/* Finds the next order that still holds, and its fragment; false: there is none. */
static bool next_order(struct gw_server *server, struct gw_order *next, struct fragment **fragment)
{
    for (; gw_order_queue_next(&server->orders, next); gw_order_queue_pop(&server->orders)) {
        *fragment = fragment_at(server, next->seq);
        enum fragment_state wanted = !(next->flags & GW_AGG_REQUEST) ? FRAGMENT_DONE
                                     : next->flags & GW_AGG_RAW      ? FRAGMENT_RAW
                                                                     : FRAGMENT_SUMMING;
        /* A newer fragment may have the slot by now, or the request may have been met. */
        if ((*fragment)->seq == next->seq && (*fragment)->state == wanted)
            return true;
    }
    return false;
}

/* Done with an order to `dst`: a train ends with it if the next one goes elsewhere. */
static bool ends_train(struct gw_server *server, uint32_t dst)
{
    struct gw_order after;
    struct fragment *fragment;
    gw_order_queue_pop(&server->orders);
    return next_order(server, &after, &fragment) && after.dst != dst;
}

static struct gw_pkt *server_emit(struct gw_endpoint *ep, struct gw_sender *sender, gw_time now)
{
    struct gw_server *server = (struct gw_server *)sender;
    struct gw_order next;
    struct fragment *fragment;
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
    bool is_result = !(next.flags & GW_AGG_REQUEST);
    pkt->agg_flags = next.flags;
    if (is_result) {
        pkt->agg_flags |= fragment->flags;
        if (fragment->buf != GW_BUF_NONE && !(fragment->flags & GW_AGG_FAILED)) {
            gw_buf_share(bufs_of(server), fragment->buf);
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
    if (pkt->agg_flags & GW_AGG_COLLISION)
        pkt->agg.bitmap = fragment->new_index;
    else if (!is_result)
        pkt->agg.bitmap = gw_contributors_missing(&server->contributors, &fragment->set);
    return pkt;
}

static const struct gw_sender_ops server_sender_ops = {
    .can_send = server_can_send,
    .emit = server_emit,
};

static const struct gw_app_ops server_app_ops = {
    .role = GW_APP_SERVER,
    .input = server_input,
    .expire = server_expire,
};

static uint32_t orders_max(const struct gw_server_cfg *cfg)
{
    return 2 * cfg->window + 4 * (uint32_t)cfg->world;
}

/* Carves the tables out of `at`, or with NULL only measures them. */
static size_t server_carve(struct gw_server *server, const struct gw_server_cfg *cfg,
                           unsigned char *at)
{
    size_t used = gw_aligned(sizeof(*server));
#define TAKE(field, count)                                                                         \
    do {                                                                                           \
        server->field = at ? (void *)(at + used) : NULL;                                           \
        used += gw_aligned((size_t)(count) * sizeof(*server->field));                              \
    } while (0)
    TAKE(addresses, cfg->world);
    TAKE(fragments, cfg->window);
    TAKE(sums, (size_t)cfg->window * cfg->values);
    TAKE(raw_bufs, (size_t)cfg->raw_max * cfg->world);
    TAKE(raw_seqs, cfg->raw_max);
    TAKE(raw_free, cfg->raw_max);
    TAKE(real_sum, cfg->values);
#undef TAKE
    server->orders_memory = at ? at + used : NULL;
    used += gw_aligned(gw_order_queue_size(orders_max(cfg)));
    size_t contributors = gw_aligned(gw_contributors_size(cfg->world, cfg->levels));
    if (at) {
        server->contributors_memory = at + used;
        server->index_memory = at + used + contributors;
    }
    return used + contributors + gw_aligned(gw_agg_index_size(cfg->positions, cfg->aggregators));
}

size_t gw_server_size(const struct gw_server_cfg *cfg)
{
    struct gw_server server;
    return server_carve(&server, cfg, NULL);
}

int gw_server_init(struct gw_server **result, void *memory, const struct gw_server_cfg *cfg,
                   struct gw_endpoint *ep)
{
    GW_ASSERT(cfg->world >= 1 && cfg->world <= GW_WORLD_MAX);
    GW_ASSERT(cfg->window && (cfg->window & (cfg->window - 1)) == 0);
    GW_ASSERT(cfg->window >= 2 * cfg->positions && cfg->retry > 0);
    struct gw_server *server = memory;
    *server = (struct gw_server){
        .app = {.ops = &server_app_ops,
                .job = cfg->job,
                .sender = {.ops = &server_sender_ops, .class = cfg->class}},
        .cfg = *cfg,
        .raw_free_count = cfg->raw_max,
        .is_stopped = true,
    };
    *result = server;
    int error = gw_app_attach(&server->app, ep);
    if (error)
        return error;
    server_carve(server, cfg, memory);
    gw_order_queue_init(&server->orders, server->orders_memory, orders_max(cfg), server->addresses,
                        cfg->world, server->app.train);
    for (uint32_t i = 0; i < cfg->window; i++)
        server->fragments[i] = (struct fragment){.buf = GW_BUF_NONE, .raw = NO_RAW};
    for (uint32_t i = 0; i < cfg->raw_max; i++)
        server->raw_free[i] = i;
    return GW_OK;
}

void gw_server_begin(struct gw_server *server, const struct gw_server_epoch *epoch)
{
    const struct gw_server_cfg *cfg = &server->cfg;
    GW_ASSERT(epoch->levels <= cfg->levels);
    server->epoch = epoch->epoch;
    server->levels = epoch->levels;
    server->is_stopped = false;
    gw_order_queue_clear(&server->orders);
    gw_contributors_init(&server->contributors, server->contributors_memory, cfg->world,
                         epoch->levels);
    gw_agg_index_init(&server->index, server->index_memory, cfg->positions, cfg->aggregators,
                      cfg->indexing, cfg->job, cfg->share);
    for (uint32_t rank = 0; rank < cfg->world; rank++) {
        server->addresses[rank] = epoch->places[rank].address;
        gw_contributors_enter(&server->contributors, rank, &epoch->places[rank]);
    }
    for (uint32_t i = 0; i < cfg->window; i++) {
        struct fragment *fragment = &server->fragments[i];
        bool is_kept =
            fragment->state == FRAGMENT_DONE && (int32_t)(fragment->seq - epoch->first_seq) >= 0;
        fragment->flags &= GW_AGG_RAW | GW_AGG_FAILED; /* the map of aggregators is a new one */
        if (!is_kept)
            fragment_forget(server, fragment);
    }
    server->expected = server->overtaken = epoch->first_seq;
    server->open = 0;
    advance(server);
}

void gw_server_stop(struct gw_server *server)
{
    server->is_stopped = true;
    gw_order_queue_clear(&server->orders);
    server->open = 0;
    for (uint32_t i = 0; i < server->cfg.window; i++)
        fragment_forget(server, &server->fragments[i]);
}

void gw_server_fini(struct gw_server *server)
{
    gw_app_detach(&server->app);
    gw_server_stop(server);
}

const struct gw_server_stats *gw_server_stats(const struct gw_server *server)
{
    return &server->stats;
}
