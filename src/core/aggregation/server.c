/*
 * The server; see server.h: what arrives, the sums of integers, and what an epoch changes. The rest
 * is in server_raw.c, server_send.c and server_deadline.c.
 */
#include "core/aggregation/server_impl.h"

#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "core/aggregation/agg_bound.h"

/* Nobody needs it any more, or all begin it anew. */
static void fragment_forget(struct gw_server *server, struct gw_fragment *fragment)
{
    gw_server_raw_release(server, fragment);
    gw_server_release_buf(server, &fragment->buf);
    fragment->state = GW_FRAGMENT_EMPTY;
}

static void fragment_start(struct gw_server *server, struct gw_fragment *fragment,
                           const struct gw_pkt *pkt)
{
    gw_server_release_buf(server, &fragment->buf);
    gw_rank_set_clear(&fragment->set);
    fragment->seq = pkt->seq;
    fragment->key = pkt->key;
    fragment->raw = GW_FRAGMENT_NO_ROW;
    fragment->values = pkt->agg.values;
    fragment->index = pkt->index;
    fragment->state = GW_FRAGMENT_SUMMING;
    fragment->flags = fragment->parities = 0;
    fragment->scale = GW_PKT_SCALE_NONE;
    fragment->bound = pkt->agg.bound;
    fragment->lacks = 0;
    server->open++;
}

/*
 * The fragment that a packet is for, or NULL: too old to be kept, or newer than what a worker that
 * keeps to its window can send.
 */
static struct gw_fragment *fragment_of(struct gw_server *server, const struct gw_pkt *pkt)
{
    struct gw_fragment *fragment = gw_server_fragment(server, pkt->seq);
    if (fragment->state != GW_FRAGMENT_EMPTY && fragment->seq == pkt->seq)
        return fragment->key == pkt->key && fragment->values == pkt->agg.values ? fragment : NULL;
    if (pkt->seq - server->expected >= server->positions)
        return NULL;
    fragment_start(server, fragment, pkt);
    return fragment;
}

/* Moves `expected` over all fragments that are finished. */
static void advance(struct gw_server *server)
{
    const struct gw_fragment *fragment = gw_server_fragment(server, server->expected);
    while (fragment->state == GW_FRAGMENT_DONE && fragment->seq == server->expected)
        fragment = gw_server_fragment(server, ++server->expected);
}

/*
 * What is more than a window behind a fragment to which all have contributed is what all have: its
 * buffer is for the next packet, while it is in the caches.
 */
static void forget_behind(struct gw_server *server, uint32_t seq)
{
    struct gw_fragment *fragment = gw_server_fragment(server, seq - server->positions - 1);
    if (fragment->state == GW_FRAGMENT_DONE && fragment->seq == seq - server->positions - 1)
        fragment_forget(server, fragment);
}

/* Decides what the result says of the exponent one window later. */
static void agree(struct gw_server *server, struct gw_fragment *fragment, bool overflowed)
{
    gw_overflow_rate_note(&server->overflow_rate, overflowed);
    if (!server->cfg.agrees_exponents || !gw_overflow_rate_is_high(&server->overflow_rate))
        fragment->scale = GW_PKT_SCALE_NONE;
    server->stats.scaled += fragment->scale != GW_PKT_SCALE_NONE;
}

void gw_server_finish(struct gw_server *server, struct gw_fragment *fragment, uint32_t buf,
                      uint8_t flags)
{
    bool frees_row = fragment->raw != GW_FRAGMENT_NO_ROW;
    if (frees_row)
        gw_server_raw_release(server, fragment);
    agree(server, fragment, flags & GW_AGG_RAW);
    if (fragment->buf != buf) /* that of a sum which the result has overtaken */
        gw_server_release_buf(server, &fragment->buf);
    fragment->buf = buf;
    fragment->flags |= flags;
    if (fragment->parities == (GW_AGG_EVEN | GW_AGG_ODD))
        fragment->flags |= GW_AGG_MIXED;
    fragment->state = GW_FRAGMENT_DONE;
    server->stats.results++;
    server->stats.lacking += fragment->lacks > 0;
    server->stats.left_out += fragment->lacks;
    server->open--;
    gw_server_ask_overtaken(server, fragment->seq);
    if (fragment->flags & GW_AGG_COLLISION) {
        uint32_t seq = fragment->seq;
        fragment->new_index = gw_agg_index_of(&server->index, seq);
        /* Only if nobody moved the position since this fragment was sent. */
        if (fragment->new_index == fragment->index) {
            fragment->new_index = gw_agg_index_next(&server->index, seq);
            gw_agg_index_move(&server->index, seq, fragment->new_index);
        }
    }
    gw_server_order_all(server, fragment->seq, 0);
    advance(server);
    if (fragment->lacks == 0)
        forget_behind(server, fragment->seq);
    if (frees_row)
        gw_server_raw_invite(server);
}

/* Whether a packet's values hold a mark, as far as nobody in this process has looked. */
static bool is_marked(const struct gw_server *server, const struct gw_pkt *pkt)
{
    return pkt->buf != GW_BUF_NONE && !pkt->agg.is_unmarked &&
           server->cfg.kernels->is_saturated(gw_buf_bytes(gw_server_bufs(server), pkt->buf),
                                             pkt->agg.values);
}

/* A sum of everybody: its buffer is the result. */
static void take_complete(struct gw_server *server, struct gw_fragment *fragment,
                          struct gw_pkt *pkt)
{
    uint32_t buf = pkt->buf;
    if (is_marked(server, pkt)) {
        gw_server_raw_turn(server, fragment);
        return;
    }
    server->stats.complete++;
    pkt->buf = GW_BUF_NONE;
    gw_server_finish(server, fragment, buf, 0);
}

void gw_server_finish_sum(struct gw_server *server, struct gw_fragment *fragment)
{
    fragment->lacks = (uint16_t)(server->cfg.world - gw_rank_set_count(&fragment->set));
    gw_server_finish(server, fragment, fragment->buf, 0);
}

/* Adds a packet's values; the first one's buffer becomes the sum. False: the sum holds a mark. */
static bool add(const struct gw_server *server, struct gw_fragment *fragment, struct gw_pkt *pkt)
{
    struct gw_buf_pool *bufs = gw_server_bufs(server);
    if (pkt->buf == GW_BUF_NONE)
        return true;
    if (fragment->buf != GW_BUF_NONE)
        return !server->cfg.kernels->add(gw_buf_bytes(bufs, fragment->buf),
                                         gw_buf_bytes(bufs, pkt->buf), fragment->values);
    bool is_sum = !is_marked(server, pkt);
    fragment->buf = pkt->buf;
    pkt->buf = GW_BUF_NONE;
    return is_sum;
}

/* Sees to it that nobody else holds the sum, so far; false when there is no buffer to copy to. */
static bool own(const struct gw_server *server, struct gw_fragment *fragment)
{
    return fragment->buf == GW_BUF_NONE || gw_buf_own(gw_server_bufs(server), &fragment->buf,
                                                      sizeof(int32_t) * (size_t)fragment->values);
}

/* Adds a partial sum, and finishes when everybody is in; what has saturated is given up. */
static void add_partial(struct gw_server *server, struct gw_fragment *fragment, struct gw_pkt *pkt,
                        const struct gw_rank_set *from)
{
    if (!own(server, fragment)) {
        server->stats.refused++;
    } else if (!add(server, fragment, pkt)) {
        gw_server_raw_turn(server, fragment);
    } else {
        server->stats.partial++;
        server->added++;
        gw_rank_set_join(&fragment->set, from);
        if (gw_rank_set_equals(&fragment->set, &server->contributors.everybody))
            gw_server_finish_sum(server, fragment);
    }
}

/* The result itself, from a worker that had it before this server forgot it. */
static void take_final(struct gw_server *server, struct gw_fragment *fragment, struct gw_pkt *pkt,
                       uint32_t lacks)
{
    uint32_t buf = pkt->buf;
    fragment->lacks = (uint16_t)lacks;
    server->stats.restored++;
    pkt->buf = GW_BUF_NONE;
    gw_server_finish(server, fragment, buf, pkt->agg_flags & GW_AGG_RAW);
    fragment->scale = pkt->scale; /* some workers go by that already */
}

/* Takes out of a result that lacks workers what stands where others have their aggregator. */
static uint32_t take_lacks(const struct gw_server *server, struct gw_pkt *pkt)
{
    const uint8_t both = GW_AGG_FINAL | GW_AGG_COLLISION;
    if ((pkt->agg_flags & both) != both)
        return 0;
    uint32_t lacks = pkt->index;
    pkt->agg_flags &= (uint8_t)~GW_AGG_COLLISION;
    pkt->index = gw_agg_index_of(&server->index, pkt->seq);
    return lacks;
}

/* An integer packet for a fragment that collects integers. */
static void add_integers(struct gw_server *server, struct gw_fragment *fragment, struct gw_pkt *pkt,
                         const struct gw_rank_set *from)
{
    if (gw_rank_set_equals(from, &server->contributors.everybody))
        take_complete(server, fragment, pkt);
    else if (gw_rank_set_overlaps(&fragment->set, from))
        server->stats.overlaps++;
    else
        add_partial(server, fragment, pkt, from);
}

/* The worker who sent the packet, of those whose values it claims to carry, or GW_RANK_NONE. */
static uint32_t sender_of(const struct gw_server *server, const struct gw_rank_set *from,
                          uint32_t address)
{
    uint32_t rank = 0;
    for (; (rank = gw_rank_set_next(from, rank)) < server->cfg.world; rank++)
        if (server->addresses[rank] == address)
            return rank;
    return GW_RANK_NONE;
}

/* A packet for a finished fragment: its worker may have missed the result. */
static void answer(struct gw_server *server, const struct gw_fragment *fragment,
                   const struct gw_pkt *pkt, uint32_t rank, gw_time now)
{
    if (!(pkt->agg_flags & GW_AGG_RESEND))
        return;
    server->stats.answered++;
    gw_server_order(server, fragment->seq, pkt->src, GW_AGG_UNICAST);
    gw_server_deadline_answered(server, fragment, rank, now);
}

/* Whether a packet is none that gives a result back, or one of a fragment that an epoch before may
 * have completed. Else a worker could complete what it likes, without the others. */
static bool may_be_final(const struct gw_server *server, const struct gw_pkt *pkt)
{
    return !(pkt->agg_flags & GW_AGG_FINAL) || (int32_t)(server->finals_end - pkt->seq) > 0;
}

/* Whether a packet may carry the values that it claims to: without switches that add up, each
 * worker speaks for itself. */
static bool may_claim(const struct gw_server *server, const struct gw_rank_set *from,
                      const struct gw_pkt *pkt)
{
    bool is_of_one = (pkt->agg.bitmap & (pkt->agg.bitmap - 1)) == 0;
    return server->levels > 0 || (is_of_one && sender_of(server, from, pkt->src) != GW_RANK_NONE);
}

/* Whether a packet says that there is congestion. The last link's queue marks the packet itself: no
 * switch has seen that. A loss is none if the sum has all of the packet already (aggregate.c). */
static bool meets_congestion(const struct gw_fragment *fragment, const struct gw_pkt *pkt,
                             const struct gw_rank_set *from)
{
    bool is_in = gw_pkt_may_tell_loss(pkt) && fragment->state != GW_FRAGMENT_RAW &&
                 gw_rank_set_is_within(from, &fragment->set);
    return pkt->q.ecn == GW_ECN_CE || (pkt->agg_flags & GW_AGG_ECN && !is_in);
}

static void server_gradient(struct gw_server *server, struct gw_pkt *pkt, gw_time now)
{
    struct gw_rank_set named;
    const struct gw_rank_set *from = NULL;
    server->stats.received++;
    server->stats.bytes += pkt->q.size;
    struct gw_fragment *fragment = NULL;
    bool is_current = !server->is_stopped && pkt->epoch == server->epoch;
    /* Before the first epoch there is no map of aggregators either. */
    uint32_t lacks = is_current ? take_lacks(server, pkt) : 0;
    if (is_current && may_be_final(server, pkt) && pkt->agg.values <= server->cfg.values &&
        pkt->agg.values > 0 && gw_agg_may_lack(lacks, server->cfg.world) &&
        (from = gw_contributors_of(&server->contributors, pkt, &named)) != NULL &&
        may_claim(server, from, pkt))
        fragment = fragment_of(server, pkt);
    if (!fragment) {
        server->stats.stale++;
        return;
    }
    bool is_for_reply = fragment->state == GW_FRAGMENT_DONE || pkt->agg_flags & GW_AGG_FINAL ||
                        (fragment->state == GW_FRAGMENT_RAW && !(pkt->agg_flags & GW_AGG_RAW));
    uint32_t sender = is_for_reply ? sender_of(server, from, pkt->src) : GW_RANK_NONE;
    if (is_for_reply && sender == GW_RANK_NONE) {
        server->stats.stale++; /* replies go to workers only */
        return;
    }
    if (fragment->state == GW_FRAGMENT_DONE) {
        answer(server, fragment, pkt, sender, now);
        return;
    }
    fragment->flags |= pkt->agg_flags & GW_AGG_COLLISION;
    if (meets_congestion(fragment, pkt, from))
        fragment->flags |= GW_AGG_ECN;
    fragment->parities |= pkt->agg_flags & (GW_AGG_EVEN | GW_AGG_ODD);
    if (pkt->scale < fragment->scale)
        fragment->scale = pkt->scale;
    if (pkt->index != fragment->index)
        fragment->flags |= GW_AGG_COLLISION; /* workers differ on its place: all hear where it is */
    if (pkt->agg_flags & GW_AGG_COLLISION)
        fragment->index = pkt->index;
    if (pkt->agg.bound < fragment->bound)
        fragment->bound = pkt->agg.bound;
    if (pkt->agg_flags & GW_AGG_FINAL)
        take_final(server, fragment, pkt, lacks);
    else if (pkt->agg_flags & GW_AGG_RAW)
        gw_server_raw_add(server, fragment, pkt, from);
    else if (fragment->state == GW_FRAGMENT_RAW)
        gw_server_order(server, fragment->seq, pkt->src,
                        GW_AGG_REQUEST | GW_AGG_RAW | GW_AGG_UNICAST);
    else
        add_integers(server, fragment, pkt, from);
    gw_server_deadline_heard(server, fragment, from, pkt->agg_flags & GW_AGG_RESEND, now);
}

static void take(struct gw_server *server, struct gw_pkt *pkt, gw_time now)
{
    bool was_idle = server->open == 0;
    uint64_t results = server->stats.results, added = server->added;
    server_gradient(server, pkt, now);
    bool has_result = server->stats.results != results;
    if (was_idle || has_result) {
        server->progress_at = now;
        server->rounds = 0;
    }
    if (was_idle || has_result || server->added != added)
        gw_server_deadline_restart(server, has_result, now);
    gw_server_arm_quiet(server);
    gw_server_deadline_arm(server);
}

static void server_input(struct gw_app *app, struct gw_pkt **pkts, uint32_t count, gw_time now)
{
    for (uint32_t i = 0; i < count; i++) {
        take((struct gw_server *)app, pkts[i], now);
        gw_pkt_release(app->pool, pkts[i]);
    }
}

static const struct gw_app_ops server_app_ops = {
    .role = GW_APP_SERVER,
    .input = server_input,
    .expire = gw_server_expire,
};

/* A worker may be a window behind the others, and lack what is a window behind it. With deadlines
 * it may be two windows further behind (server_deadline.c). */
static uint32_t kept_max(const struct gw_server_cfg *cfg)
{
    return (cfg->patience ? 4 : 2) * gw_agg_positions(cfg->window_max);
}

static uint32_t orders_max(const struct gw_server_cfg *cfg)
{
    return 2 * kept_max(cfg) + 4 * (uint32_t)cfg->world;
}

static struct gw_agg_index_cfg index_cfg(const struct gw_server_cfg *cfg)
{
    return (struct gw_agg_index_cfg){
        .job = cfg->job,
        .window = cfg->window_max,
        .aggregators = cfg->aggregators,
        .indexing = cfg->indexing,
        .hashing = cfg->hashing,
        .remap = cfg->remap,
        .share = cfg->share,
    };
}

/* Carves the tables out of the arena, behind the server itself. */
static void server_carve(struct gw_server *server, const struct gw_server_cfg *cfg,
                         struct gw_arena *arena)
{
    const struct gw_agg_index_cfg index = index_cfg(cfg);
    uint32_t kept = kept_max(cfg), waited_for = cfg->patience ? cfg->world : 0;
    server->addresses = gw_arena_take(arena, cfg->world * sizeof(*server->addresses));
    server->fragments = gw_arena_take(arena, kept * sizeof(*server->fragments));
    server->wide_sum = gw_arena_take(arena, cfg->values * sizeof(*server->wide_sum));
    server->raw_bufs =
        gw_arena_take(arena, (size_t)cfg->raw_max * cfg->world * sizeof(*server->raw_bufs));
    server->raw_seqs = gw_arena_take(arena, cfg->raw_max * sizeof(*server->raw_seqs));
    server->raw_free = gw_arena_take(arena, cfg->raw_max * sizeof(*server->raw_free));
    server->real_sum = gw_arena_take(arena, cfg->values * sizeof(*server->real_sum));
    server->contributors_memory =
        gw_arena_take(arena, gw_contributors_size(cfg->world, cfg->levels));
    server->index_memory = gw_arena_take(arena, gw_agg_index_size(&index));
    void *books = gw_arena_take(arena, cfg->patience ? gw_left_out_size(cfg->world) : 0);
    struct gw_deadline *deadline = &server->deadline;
    deadline->heard = gw_arena_take(arena, waited_for * sizeof(*deadline->heard));
    deadline->crawls = gw_arena_take(arena, waited_for * sizeof(*deadline->crawls));
    deadline->asked_since = gw_arena_take(arena, waited_for * sizeof(*deadline->asked_since));
    void *orders = gw_arena_take(arena, gw_order_queue_size(orders_max(cfg)));
    if (!arena->base)
        return;
    gw_left_out_init(&server->deadline.books, books, cfg->world);
    gw_order_queue_init(&server->orders, orders, orders_max(cfg), server->addresses, cfg->world,
                        server->app.train);
}

size_t gw_server_size(const struct gw_server_cfg *cfg)
{
    struct gw_server server;
    struct gw_arena arena = {.base = NULL};
    gw_arena_take(&arena, sizeof(server));
    server_carve(&server, cfg, &arena);
    return arena.used;
}

int gw_server_init(struct gw_server **result, void *memory, const struct gw_server_cfg *cfg,
                   struct gw_endpoint *ep)
{
    GW_ASSERT(cfg->world >= 1 && cfg->world <= GW_WORLD_MAX);
    GW_ASSERT(cfg->window_max >= 1 && cfg->window_max <= GW_AGG_WINDOW_MAX && cfg->retry > 0);
    GW_ASSERT(cfg->patience <= cfg->patience_max);
    struct gw_arena arena = {.base = memory};
    struct gw_server *server = gw_arena_take(&arena, sizeof(*server));
    *server = (struct gw_server){
        .app = {.ops = &server_app_ops,
                .job = cfg->job,
                .sender = {.ops = &gw_server_sender_ops, .class = cfg->class}},
        .cfg = *cfg,
        .positions = gw_agg_positions(cfg->window_max),
        .kept = kept_max(cfg),
        .raw_free_count = cfg->raw_max,
        .is_stopped = true,
    };
    *result = server;
    int error = gw_app_attach(&server->app, ep);
    if (error)
        return error;
    if (cfg->hdr)
        server->app.hdr = cfg->hdr;
    server_carve(server, cfg, &arena);
    gw_patience_init(&server->deadline.patience, cfg->patience, cfg->patience_max);
    for (uint32_t i = 0; i < server->kept; i++)
        server->fragments[i] = (struct gw_fragment){.buf = GW_BUF_NONE, .raw = GW_FRAGMENT_NO_ROW};
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
    const struct gw_agg_index_cfg index = index_cfg(cfg);
    gw_agg_index_init(&server->index, server->index_memory, &index);
    for (uint32_t rank = 0; rank < cfg->world; rank++) {
        server->addresses[rank] = epoch->places[rank].address;
        gw_contributors_enter(&server->contributors, rank, &epoch->places[rank]);
    }
    for (uint32_t i = 0; i < server->kept; i++) {
        struct gw_fragment *fragment = &server->fragments[i];
        bool is_kept =
            fragment->state == GW_FRAGMENT_DONE && (int32_t)(fragment->seq - epoch->first_seq) >= 0;
        fragment->flags &= GW_AGG_RAW | GW_AGG_FAILED; /* the map of aggregators is a new one */
        if (!is_kept)
            fragment_forget(server, fragment);
    }
    server->expected = server->overtaken = epoch->first_seq;
    server->finals_end = epoch->first_seq + (epoch->is_fresh ? 0 : server->kept);
    server->open = 0;
    advance(server);
    gw_server_deadline_begin(server, epoch);
}

void gw_server_stop(struct gw_server *server)
{
    server->is_stopped = true;
    gw_order_queue_clear(&server->orders);
    server->open = 0;
    for (uint32_t i = 0; i < server->kept; i++)
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
