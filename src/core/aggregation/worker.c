/*
 * The worker; see worker.h. What it has out is in outstanding.c, the window in agg_window.h, what
 * packets carry in worker_values.c, how they leave in worker_send.c, and all that comes but
 * first results in worker_other.c; here is when which of them acts, and what an epoch changes.
 */
#include "core/aggregation/worker_impl.h"

#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/stall.h"
#include "core/aggregation/agg_bound.h"

enum {
    INCREASE_BYTES = 1500, /* of the window, per window or result (ATP, section 3.7) */
};

static void work_end(struct gw_worker *worker, const struct gw_row_tensor *work,
                     const struct gw_event *how)
{
    struct gw_event event = *how;
    event.flow = worker->cfg.job;
    event.peer = worker->cfg.server;
    event.tag = work->tensor.tag;
    event.bytes = work->tensor.count * gw_dtype_size(work->tensor.type);
    event.retransmits = worker->stats.resent;
    gw_app_post(&worker->app, &event);
}

void gw_worker_fail(struct gw_worker *worker, uint32_t reason, uint32_t about, gw_time now)
{
    struct gw_event how = {
        .kind = GW_EVENT_FAILED, .about = about, .reason = (uint8_t)reason, .at = now};
    const struct gw_row_tensor *work;
    for (; (work = gw_tensor_row_first(&worker->row)); gw_tensor_row_pop(&worker->row))
        work_end(worker, work, &how);
    gw_app_rest(&worker->app);
    gw_app_arm(&worker->app, GW_TIME_NEVER);
    gw_result_log_clear(&worker->log);
    gw_worker_values_forget(&worker->values);
    gw_outstanding_clear(&worker->out, worker->row.end);
    gw_agg_congestion_update(&worker->cc, &worker->out);
    worker->is_out = true;
}

/* Moves `expected` over all fragments that have results, and ends the tensors that are complete. */
static inline __attribute__((always_inline)) void advance(struct gw_worker *worker, gw_time now)
{
    while (gw_outstanding_advance(&worker->out)) {
        worker->stats.cuts += gw_agg_congestion_advance(&worker->cc, &worker->out);
        /* All workers have what is a window behind, or this one could not be here. */
        gw_result_log_confirm(&worker->log, worker->out.expected - worker->out.cfg.max - 1);
    }
    const struct gw_row_tensor *work;
    while ((work = gw_tensor_row_first(&worker->row)) && work->results == work->fragments) {
        work_end(worker, work,
                 &(struct gw_event){.kind = GW_EVENT_REDUCED, .missing = work->lacking, .at = now});
        gw_tensor_row_pop(&worker->row);
    }
}

/* Notes how many workers' values are in a fragment's sum. */
static void count_contributors(struct gw_worker *worker, struct gw_row_tensor *work,
                               const struct gw_pkt *pkt)
{
    uint32_t lacks = gw_agg_result_lacks(pkt->agg.bitmap);
    work->lacking += lacks > 0;
    worker->stats.lacking += lacks > 0;
    if (work->tensor.counts)
        work->tensor.counts[pkt->seq - work->first] = (uint16_t)(worker->cfg.world - lacks);
}

/* Before losses are looked for: whether one would mean congestion, and what is sent again. */
static void may_lose(struct gw_worker *worker)
{
    const struct gw_row_tensor *work = gw_tensor_row_first(&worker->row);
    worker->out.resends_gap = worker->cfg.resend_gap;
    worker->out.forgives = work &&
                           work->losses < gw_agg_bound_allows(work->bound, work->fragments) &&
                           !gw_outstanding_is_queued(&worker->out);
}

/* A loss was found. */
static void has_lost(struct gw_worker *worker)
{
    if (worker->out.forgives)
        gw_tensor_row_first(&worker->row)->losses++;
    else
        worker->stats.cuts += gw_agg_congestion_lost(&worker->cc, &worker->out);
}

/* Takes the first results of `count` fragments, which are a run (run_of()), or one. Inline, so that
 * there is code of its own for one. */
static inline __attribute__((always_inline)) void take_results(struct gw_worker *worker,
                                                               struct gw_row_tensor *work,
                                                               struct gw_pkt **pkts, uint32_t count,
                                                               gw_time now)
{
    const struct gw_pkt *pkt = pkts[0];
    bool had_timeout = worker->out.timeouts > 0;
    worker->stats.results += count;
    for (uint32_t i = 0; i < count; i++) {
        count_contributors(worker, work, pkts[i]);
        gw_worker_values_store(&worker->values, work, pkts[i]);
        gw_worker_values_agree(&worker->values, pkts[i]->seq, pkts[i]->scale);
    }
    if (gw_agg_result_lacks(pkt->agg.bitmap)) /* maybe this worker, who has just sent it */
        gw_outstanding_time_not(&worker->out, pkt->seq);
    gw_outstanding_finish(&worker->out, pkt->seq, count, now);
    if (had_timeout) /* the next one is not doubled any more */
        gw_app_arm_by(&worker->app, gw_outstanding_deadline(&worker->out, now));
    work->results += count;
    worker->result_at = now;
    if (pkt->agg_flags & GW_AGG_COLLISION)
        worker->stats.remaps +=
            gw_agg_index_move(&worker->index, pkt->seq, (uint16_t)pkt->agg.bitmap);
    worker->stats.cuts += gw_agg_congestion_result(&worker->cc, &worker->out, pkt);
    advance(worker, now);
    if (gw_outstanding_suspects_loss(&worker->out)) {
        may_lose(worker);
        if (gw_outstanding_detect_loss(&worker->out, pkt->seq))
            has_lost(worker);
    }
    gw_agg_congestion_update(&worker->cc, &worker->out);
    for (uint32_t i = 0; i < count; i++) {
        gw_result_log_keep(&worker->log, pkts[i]);
        /* Who has sent a fragment has all that is a window behind it. */
        if (gw_agg_result_lacks(pkts[i]->agg.bitmap) == 0)
            gw_result_log_drop(&worker->log, pkts[i]->seq - worker->out.cfg.max - 1);
    }
}

/*
 * How many of the packets, of which the first is the result of a fragment of `work` that is out,
 * are a run: what they change together is what each would change after the other. They begin with
 * the expected fragment and follow one another, nothing came before its turn, none was lost or
 * waited for until a timeout, and all say the same: that they are sums of all workers. Where one of
 * them would do more there is none: move the window (alone), make room for an early result, or
 * confirm what a server was owed.
 */
static uint32_t run_of(const struct gw_worker *worker, const struct gw_row_tensor *work,
                       struct gw_pkt **pkts, uint32_t count)
{
    const struct gw_outstanding *out = &worker->out;
    const struct gw_pkt *first = pkts[0];
    uint32_t whole = gw_tensor_row_whole(&worker->row, work, first->seq), run = 0;
    bool may_run = first->seq == out->expected && out->ahead == 0 && out->timeouts == 0 &&
                   !gw_seq_before(out->next, worker->early_end) &&
                   !gw_result_log_owes(&worker->log) && worker->cc.halving != GW_AGG_HALVE_ALONE &&
                   !(first->agg_flags & (GW_AGG_ECN | GW_AGG_COLLISION)) &&
                   first->q.ecn != GW_ECN_CE && gw_agg_result_lacks(first->agg.bitmap) == 0;
    if (!may_run)
        return 1;
    count = count < whole ? count : whole;
    count = count < gw_outstanding_count(out) ? count : gw_outstanding_count(out);
    while (run < count && pkts[run]->seq == first->seq + run && gw_pkt_is_alike(pkts[run], first) &&
           !(*gw_outstanding_note(out, first->seq + run) & GW_NOTE_LOST))
        run++;
    return run ? run : 1;
}

void gw_worker_skip(struct gw_worker *worker, gw_time now)
{
    struct gw_pkt pkt;
    if (!gw_seq_before(worker->out.next, worker->early_end)) {
        worker->early_end = worker->out.next; /* numbers wrap */
        return;
    }
    while (!worker->is_paused && gw_worker_has_next(worker) &&
           gw_result_log_take(&worker->log, worker->out.next, &pkt)) {
        struct gw_row_tensor *work = gw_tensor_row_find(&worker->row, pkt.seq);
        bool fits = pkt.key == work->key &&
                    pkt.agg.values == gw_tensor_row_values(&worker->row, work, pkt.seq);
        if (fits) {
            worker->stats.skipped++;
            gw_outstanding_pass_next(&worker->out, now);
            take_results(worker, work, &(struct gw_pkt *){&pkt}, 1, now);
        } else {
            worker->stats.stale++;
        }
        if (pkt.buf != GW_BUF_NONE)
            gw_buf_release(worker->app.pool->bufs, pkt.buf);
    }
}

/* Whether a packet is the first result of a fragment of `work` that is out. What is refused here is
 * sorted out by gw_worker_take_other(), which has a branch for each reason. */
static inline bool is_news(const struct gw_worker *worker, const struct gw_row_tensor *work,
                           const struct gw_pkt *pkt)
{
    return pkt->epoch == worker->cfg.epoch && pkt->src == worker->cfg.server &&
           pkt->key == work->key && !(pkt->agg_flags & (GW_AGG_REQUEST | GW_AGG_FAILED)) &&
           gw_agg_may_lack(gw_agg_result_lacks(pkt->agg.bitmap), worker->cfg.world) &&
           !(*gw_outstanding_note(&worker->out, pkt->seq) & GW_NOTE_DONE) &&
           pkt->agg.values == gw_tensor_row_values(&worker->row, work, pkt->seq);
}

/* Takes the first of the packets, and what is a run with it; returns how many. */
static uint32_t take(struct gw_worker *worker, struct gw_pkt **pkts, uint32_t count, gw_time now)
{
    struct gw_pkt *pkt = pkts[0];
    struct gw_row_tensor *work = gw_outstanding_has(&worker->out, pkt->seq)
                                     ? gw_tensor_row_find(&worker->row, pkt->seq)
                                     : NULL;
    if (!work || !is_news(worker, work, pkt)) {
        gw_worker_take_other(worker, work, pkt, now);
        return 1;
    }
    uint32_t run = count > 1 ? run_of(worker, work, pkts, count) : 1;
    if (run > 1)
        take_results(worker, work, pkts, run, now);
    else
        take_results(worker, work, pkts, 1, now);
    return run;
}

static void worker_input(struct gw_app *app, struct gw_pkt **pkts, uint32_t count, gw_time now)
{
    struct gw_worker *worker = (struct gw_worker *)app;
    for (uint32_t i = 0; i < count;) {
        i += take(worker, pkts + i, count - i, now);
        gw_worker_skip(worker, now);
    }
    for (uint32_t i = 0; i < count; i++)
        gw_pkt_release(app->pool, pkts[i]);
    if (gw_app_is_announced(app) && !gw_worker_has_work(worker))
        gw_app_idle(app, now);
    gw_worker_wake(worker, now);
}

static void worker_expire(struct gw_app *app, gw_time now)
{
    struct gw_worker *worker = (struct gw_worker *)app;
    bool has_tensor = gw_tensor_row_count(&worker->row) > 0;
    gw_time stall_at =
        has_tensor ? gw_stall_at(worker->result_at, worker->cfg.stall) : GW_TIME_NEVER;
    if (has_tensor && gw_stall_is_over(worker->result_at, worker->cfg.stall, now)) {
        gw_worker_fail(worker, GW_JOB_STALLED, worker->cfg.server, now);
        return;
    }
    if (!gw_worker_has_work(worker) || worker->is_paused) {
        gw_app_arm(app, stall_at);
        return;
    }
    gw_result_log_repeat(&worker->log);
    may_lose(worker);
    if (gw_outstanding_expire(&worker->out, now))
        has_lost(worker);
    gw_agg_congestion_update(&worker->cc, &worker->out);
    gw_app_arm(app, gw_outstanding_deadline(&worker->out, now));
    gw_app_arm_by(app, stall_at);
    gw_worker_wake(worker, now);
}

static const struct gw_app_ops worker_app_ops = {
    .role = GW_APP_WORKER,
    .input = worker_input,
    .expire = worker_expire,
};

static uint32_t log_count(const struct gw_worker_cfg *cfg)
{
    uint32_t windows = cfg->takes_bounds ? 4 : 2;
    return cfg->keeps_results ? windows * gw_agg_positions(cfg->window_max) : 0;
}

static struct gw_agg_index_cfg index_cfg(const struct gw_worker_cfg *cfg)
{
    return (struct gw_agg_index_cfg){
        .job = cfg->job,
        .window = cfg->window_max,
        .aggregators = cfg->aggregators,
        .indexing = cfg->indexing,
        .hashing = cfg->hashing,
        .share = cfg->share,
    };
}

/* Carves the tables out of the arena, behind the worker itself. */
static void worker_carve(struct gw_worker *worker, const struct gw_worker_cfg *cfg,
                         struct gw_arena *arena)
{
    const struct gw_agg_index_cfg index = index_cfg(cfg);
    uint32_t positions = gw_agg_positions(cfg->window_max);
    worker->index_memory = gw_arena_take(arena, gw_agg_index_size(&index));
    void *row = gw_arena_take(arena, gw_tensor_row_size(cfg->tensors_max));
    void *out = gw_arena_take(arena, gw_outstanding_size(positions));
    worker->values.positions = positions;
    worker->values.agreed = gw_arena_take(arena, positions);
    void *log = gw_arena_take(arena, gw_result_log_size(log_count(cfg)));
    if (!arena->base)
        return;
    gw_tensor_row_init(&worker->row, row, cfg->tensors_max, cfg->values, cfg->first_seq);
    gw_outstanding_init(&worker->out, out,
                        &(struct gw_outstanding_cfg){
                            .max = positions,
                            .first_seq = cfg->first_seq,
                            .timeout = cfg->timeout,
                            .probe = cfg->probe,
                            .overtaking = cfg->overtaking,
                        });
    gw_result_log_init(&worker->log, log, log_count(cfg), worker->app.pool);
}

size_t gw_worker_size(const struct gw_worker_cfg *cfg)
{
    struct gw_worker worker;
    struct gw_arena arena = {.base = NULL};
    gw_arena_take(&arena, sizeof(worker));
    worker_carve(&worker, cfg, &arena);
    return arena.used;
}

/* The window at the beginning of an epoch, by how much it grows, and what it follows. */
static struct gw_agg_congestion first_congestion(const struct gw_worker *worker)
{
    const struct gw_worker_cfg *cfg = &worker->cfg;
    uint64_t packet = 4 * (uint64_t)cfg->values + worker->app.hdr;
    uint64_t increase = (INCREASE_BYTES + packet / 2) / packet;
    return (struct gw_agg_congestion){
        .window = {.increase = (increase ? increase : 1) << 16,
                   .initial = (uint64_t)cfg->window_initial << 16,
                   .least = cfg->window_min ? (uint64_t)cfg->window_min << 16 : GW_Q16_ONE,
                   .most = (uint64_t)cfg->window_max << 16,
                   .is_fixed = !cfg->congestion_control},
        .halving = cfg->halving,
        .span_max = gw_agg_span(cfg->window_max, cfg->indexing),
    };
}

/* What begins with an epoch: the window, and the map of aggregators. All workers have the same. */
static void reset(struct gw_worker *worker)
{
    const struct gw_agg_index_cfg cfg = index_cfg(&worker->cfg);
    gw_agg_congestion_restart(&worker->cc);
    gw_agg_congestion_update(&worker->cc, &worker->out);
    gw_agg_index_init(&worker->index, worker->index_memory, &cfg);
}

int gw_worker_init(struct gw_worker **result, void *memory, const struct gw_worker_cfg *cfg,
                   struct gw_endpoint *ep)
{
    GW_ASSERT(cfg->window_max >= 1 && cfg->window_max <= GW_AGG_WINDOW_MAX);
    GW_ASSERT(cfg->window_initial >= 1 && cfg->window_initial <= cfg->window_max);
    GW_ASSERT(cfg->window_min <= cfg->window_max);
    GW_ASSERT(cfg->keeps_results || !cfg->takes_bounds);
    GW_ASSERT(cfg->values >= 1 && cfg->tensors_max >= 1 && cfg->timeout > 0);
    struct gw_arena arena = {.base = memory};
    struct gw_worker *worker = gw_arena_take(&arena, sizeof(*worker));
    *worker = (struct gw_worker){
        .app = {.ops = &worker_app_ops,
                .job = cfg->job,
                .notice = cfg->notice,
                .sender = {.ops = &gw_worker_sender_ops, .class = cfg->class}},
        .cfg = *cfg,
        .early_end = cfg->first_seq,
    };
    *result = worker;
    int error = gw_app_attach(&worker->app, ep);
    if (error)
        return error;
    if (cfg->hdr)
        worker->app.hdr = cfg->hdr;
    if (cfg->notice.rtt == 0)
        worker->app.notice.rtt = cfg->timeout;
    GW_ASSERT(!worker->app.pool->bufs || worker->app.pool->bufs->size / 4 >= cfg->values);
    worker->values = (struct gw_worker_values){
        .cfg = &worker->cfg,
        .row = &worker->row,
        .bufs = worker->app.pool->bufs,
    };
    worker_carve(worker, cfg, &arena);
    worker->cc = first_congestion(worker);
    gw_worker_values_forget(&worker->values);
    reset(worker);
    return GW_OK;
}

void gw_worker_fini(struct gw_worker *worker)
{
    gw_result_log_clear(&worker->log);
    gw_app_detach(&worker->app);
}

int gw_worker_reduce(struct gw_worker *worker, const struct gw_tensor *tensor, gw_time now)
{
    bool has_payload = tensor->in != NULL;
    if (has_payload != (worker->app.pool->bufs != NULL))
        return GW_ERR_INVALID;
    if (worker->is_out)
        return GW_ERR_OUT;
    if (!gw_app_may_promise(&worker->app))
        return GW_ERR_NO_ROOM;
    bool was_idle = gw_tensor_row_count(&worker->row) == 0;
    int error =
        gw_tensor_row_push(&worker->row, tensor, worker->cfg.scale_exponent, worker->cfg.world);
    if (error)
        return error;
    if (was_idle) {
        gw_outstanding_wait(&worker->out, now);
        worker->result_at = now;
        worker->train_first = worker->out.next;
        if (!worker->is_paused && !gw_app_is_announced(&worker->app))
            gw_app_busy(&worker->app, worker->cfg.server, now);
    }
    gw_app_promise(&worker->app);
    gw_worker_wake(worker, now);
    return GW_OK;
}

void gw_worker_pause(struct gw_worker *worker)
{
    worker->is_paused = true;
    gw_app_rest(&worker->app);
}

void gw_worker_place(struct gw_worker *worker, const struct gw_worker_place *place, gw_time now)
{
    struct gw_worker_cfg *cfg = &worker->cfg;
    cfg->epoch = place->epoch;
    cfg->level = place->level;
    cfg->bitmap = place->bitmap;
    memcpy(cfg->above, place->above, sizeof(cfg->above));
    if (place->is_fresh) {
        gw_tensor_row_restart(&worker->row, place->first_seq);
        gw_outstanding_clear(&worker->out, place->first_seq);
        gw_result_log_clear(&worker->log);
        gw_worker_values_forget(&worker->values);
    }
    worker->is_out = worker->is_paused = false;
    reset(worker);
    gw_result_log_drop_early(&worker->log, worker->out.next);
    worker->early_end = worker->out.next;
    gw_outstanding_start_over(&worker->out); /* what was sent to the last epoch is lost */
    gw_agg_congestion_update(&worker->cc, &worker->out);
    gw_outstanding_wait(&worker->out, now);
    gw_result_log_owe(&worker->log, place->first_seq, worker->out.next);
    worker->result_at = now;
    if (gw_app_is_announced(&worker->app))
        gw_app_rest(&worker->app);
    if (gw_worker_has_work(worker)) {
        gw_app_arm(&worker->app, gw_time_add(now, cfg->timeout));
        gw_app_busy(&worker->app, cfg->server, now);
    }
    gw_worker_wake(worker, now);
}

bool gw_worker_owes(const struct gw_worker *worker)
{
    return gw_result_log_owes(&worker->log);
}

bool gw_worker_is_out(const struct gw_worker *worker)
{
    return worker->is_out;
}

uint64_t gw_worker_window(const struct gw_worker *worker)
{
    return worker->cc.window.size;
}

uint32_t gw_worker_expected(const struct gw_worker *worker)
{
    return worker->out.expected;
}

const struct gw_worker_stats *gw_worker_stats(const struct gw_worker *worker)
{
    return &worker->stats;
}
