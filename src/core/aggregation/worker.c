/*
 * The worker; see worker.h.
 *
 * Invariants: expected <= next <= end; next - expected <= window_max; the fragment `expected` has
 * no result; a fragment's slot is its sequence number modulo window_max.
 */
#include "core/aggregation/worker.h"

#include <string.h>

#include "base/align.h"
#include "base/error.h"
#include "base/fixed.h"
#include "core/host/app.h"
#include "core/job.h"
#include "core/aggregation/result_log.h"
#include "core/aggregation/scaling.h"
#include "core/aggregation/tensor_row.h"

enum {
    BACKOFF_MAX = 6,       /* doublings of the timeout while nothing comes at all */
    CRAWL_MAX = 2,         /* results between two timeouts that mean a burst of losses */
    OVERTAKEN_MAX = 3,     /* results out of order that mean a loss (ATP, section 3.6) */
    INCREASE_BYTES = 1500, /* per window, or per result in slow start (ATP, section 3.7) */
    KEY_TYPE_BITS = 2,
};

/* What is known of a fragment in the window. */
enum slot_flag {
    SLOT_DONE = 1,   /* its result came */
    SLOT_RAW = 2,    /* it travels in the tensor's own type */
    SLOT_QUEUED = 4, /* it waits to be sent again */
    SLOT_ASKED = 8,  /* it was in a collision, and the server asks for what it lacks */
};

struct gw_worker {
    struct gw_app app;
    struct gw_worker_cfg cfg;
    struct gw_agg_index index;
    void *index_memory;
    uint8_t *slots;   /* enum slot_flag, window_max of them */
    uint8_t *agreed;  /* likewise: what the result one window before says of the exponent */
    uint32_t *resend; /* ring of sequence numbers, window_max */
    uint32_t resend_head;
    uint32_t resend_count;
    struct gw_tensor_row row; /* in work */
    struct gw_result_log log;
    bool is_paused;     /* between two epochs */
    bool is_out;        /* failed: an epoch must begin before the next call */
    uint32_t expected;  /* first fragment without result */
    uint32_t next;      /* first never sent */
    uint32_t ahead;     /* results that came for fragments behind `expected` */
    uint32_t overtaken; /* fragment last found lost that way */
    bool was_overtaken;
    uint32_t behind;       /* `next` at that time: the resend left before it */
    uint32_t behind_count; /* results since then of what was sent later */
    uint8_t timeouts;      /* since the last result */
    bool had_timeout;      /* and so many results before */
    uint64_t results_then;
    uint32_t cut_at; /* `next` at the last cut: no other until a window has passed */
    bool was_cut;
    uint64_t window;     /* 1/65536 fragments */
    uint64_t threshold;  /* of slow start, likewise */
    uint64_t increase;   /* likewise */
    gw_time progress_at; /* last result, or last resend by timeout */
    gw_time result_at;   /* last result, or start of work */
    struct gw_worker_stats stats;
};

static uint8_t *slot_of(const struct gw_worker *worker, uint32_t seq)
{
    return &worker->slots[seq & (worker->cfg.window_max - 1)];
}

/* Valid from the result one window before until the fragment's own result. */
static uint8_t *agreed_of(const struct gw_worker *worker, uint32_t seq)
{
    return &worker->agreed[seq & (worker->cfg.window_max - 1)];
}

/* The worker's position below its first switch. */
static uint32_t position_bit(const struct gw_worker *worker)
{
    const struct gw_worker_cfg *cfg = &worker->cfg;
    return cfg->level == 0 ? cfg->bitmap : UINT32_C(1) << cfg->above[cfg->level - 1];
}

static bool worker_can_send(const struct gw_endpoint *ep, const struct gw_sender *sender,
                            gw_time now)
{
    const struct gw_worker *worker = (const struct gw_worker *)sender;
    (void)ep;
    (void)now;
    if (worker->is_paused)
        return false;
    return worker->resend_count || gw_result_log_has_next(&worker->log) ||
           (worker->next != worker->row.end &&
            worker->next - worker->expected < (uint32_t)(worker->window >> 16));
}

static void worker_wake(struct gw_worker *worker, gw_time now)
{
    if (worker_can_send(worker->app.ep, &worker->app.sender, now))
        gw_app_wake(&worker->app);
}

static void queue_resend(struct gw_worker *worker, uint32_t seq)
{
    uint8_t *slot = slot_of(worker, seq);
    if (*slot & (SLOT_QUEUED | SLOT_DONE))
        return;
    *slot |= SLOT_QUEUED;
    uint32_t at = (worker->resend_head + worker->resend_count++) % worker->cfg.window_max;
    worker->resend[at] = seq;
}

/* The next fragment to send: one to be sent again, else a new one. False: none. */
static bool take_seq(struct gw_worker *worker, uint32_t *seq, bool *again)
{
    while (worker->resend_count) {
        *seq = worker->resend[worker->resend_head];
        worker->resend_head = (worker->resend_head + 1) % worker->cfg.window_max;
        worker->resend_count--;
        uint8_t *slot = slot_of(worker, *seq);
        /* Its result may have come, and the slot may be another fragment's by now. */
        if (gw_seq_before(*seq, worker->expected) || !(*slot & SLOT_QUEUED))
            continue;
        *slot &= (uint8_t)~SLOT_QUEUED;
        if (*slot & SLOT_DONE)
            continue;
        *again = true;
        return true;
    }
    if (worker->next == worker->row.end ||
        worker->next - worker->expected >= (uint32_t)(worker->window >> 16))
        return false;
    *slot_of(worker, worker->next) = 0;
    *seq = worker->next++;
    *again = false;
    return true;
}

static void write_place(const struct gw_worker *worker, struct gw_pkt *pkt)
{
    pkt->agg.bitmap = position_bit(worker);
    pkt->agg.level = worker->cfg.level;
    memcpy(pkt->agg.above, worker->cfg.above, sizeof(pkt->agg.above));
}

/* The scale of a fragment; there is no result one window before those of the first window. */
static struct gw_scale scale_of(const struct gw_worker *worker, const struct gw_row_tensor *work,
                                uint32_t seq)
{
    int exponent = gw_scaling_exponent(*agreed_of(worker, seq), worker->cfg.scale_exponent);
    if (work->tensor.type == GW_DTYPE_I32 || exponent == worker->cfg.scale_exponent)
        return work->scale;
    return gw_scale_power(exponent, work->tensor.average ? worker->cfg.world : 1);
}

/* The greatest exponent up to `exponent` that is safe for a fragment of floats. */
static int safe_exponent(const struct gw_worker *worker, const struct gw_row_tensor *work,
                         uint32_t seq, int exponent)
{
    struct gw_scaling_values values = {
        .x = (const unsigned char *)work->tensor.in + gw_tensor_row_offset(&worker->row, work, seq),
        .count = gw_tensor_row_values(&worker->row, work, seq),
        .type = work->tensor.type,
        .workers = worker->cfg.world,
    };
    return gw_scaling_safe(worker->cfg.kernels, &values, exponent);
}

static bool has_floats(const struct gw_row_tensor *work)
{
    return work && work->tensor.in && work->tensor.type != GW_DTYPE_I32;
}

/* What a packet of fragment `seq` offers for the fragment one window later, if that is known. */
static uint8_t offer_of(struct gw_worker *worker, uint32_t seq)
{
    uint32_t later = seq + worker->cfg.window_max;
    const struct gw_row_tensor *work =
        worker->cfg.offers_exponents ? gw_tensor_row_find(&worker->row, later) : NULL;
    if (!has_floats(work))
        return GW_PKT_SCALE_NONE;
    return gw_scaling_byte(safe_exponent(worker, work, later, worker->cfg.scale_exponent));
}

/* Whether the sum of this fragment might saturate in a switch. */
static bool might_saturate(const struct gw_worker *worker, const struct gw_row_tensor *work,
                           uint32_t seq)
{
    int exponent = gw_scaling_exponent(*agreed_of(worker, seq), worker->cfg.scale_exponent);
    return has_floats(work) && safe_exponent(worker, work, seq, exponent) < exponent;
}

/* Fetches the fragment `ahead` places behind that at `values`, of `size` bytes like that, to be
 * read or written: what the hardware fetches by itself ends with every page. It may lie behind the
 * tensor, of which nothing is touched. */
static inline void fetch_ahead(const void *values, size_t size, uint32_t ahead, bool writes)
{
    uintptr_t at = (uintptr_t)values + ahead * size;
    for (uintptr_t end = at + size; at < end; at += GW_CACHE_LINE)
        if (writes)
            __builtin_prefetch((const void *)at, 1);
        else
            __builtin_prefetch((const void *)at);
}

/* Writes the payload, as integers if they all fit, else raw. */
static void fill_payload(struct gw_worker *worker, const struct gw_row_tensor *work, uint32_t seq,
                         struct gw_pkt *pkt)
{
    uint8_t *slot = slot_of(worker, seq);
    uint32_t size = gw_dtype_size(work->tensor.type);
    const unsigned char *in = work->tensor.in;
    if (worker->cfg.proactive && !(*slot & SLOT_RAW) && might_saturate(worker, work, seq)) {
        *slot |= SLOT_RAW;
        worker->stats.flagged++;
    }
    if (in) {
        const struct gw_scale scale = scale_of(worker, work, seq);
        unsigned char *out = gw_buf_bytes(worker->app.pool->bufs, pkt->buf);
        in += gw_tensor_row_offset(&worker->row, work, seq);
        if (!(*slot & SLOT_RAW) &&
            !worker->cfg.kernels->quantise[work->tensor.type](out, in, pkt->agg.values, &scale))
            *slot |= SLOT_RAW;
        if (*slot & SLOT_RAW) {
            memset(out, 0, 4 * (size_t)pkt->agg.values);
            memcpy(out, in, (size_t)pkt->agg.values * size);
        }
        fetch_ahead(in, (size_t)pkt->agg.values * size, 2, false);
    }
    if (*slot & SLOT_RAW) {
        pkt->agg_flags |= GW_AGG_RAW | GW_AGG_RESEND;
        worker->stats.raw++;
    }
}

/* Fills a packet that gives a result back to the server; false when none is owed. */
static bool supply(struct gw_worker *worker, struct gw_pkt *pkt)
{
    const struct gw_kept_result *kept = gw_result_log_next(&worker->log);
    if (!kept)
        return false;
    gw_app_pkt(&worker->app, pkt, worker->cfg.server, kept->seq, kept->values);
    pkt->key = kept->key;
    pkt->epoch = worker->cfg.epoch;
    pkt->scale = kept->scale;
    pkt->agg_flags = kept->flags | GW_AGG_FINAL | GW_AGG_RESEND;
    pkt->index = gw_agg_index_of(&worker->index, kept->seq);
    write_place(worker, pkt);
    pkt->buf = kept->buf;
    if (kept->buf != GW_BUF_NONE)
        gw_buf_share(worker->app.pool->bufs, kept->buf);
    worker->stats.supplied++;
    return true;
}

static struct gw_pkt *worker_emit(struct gw_endpoint *ep, struct gw_sender *sender, gw_time now)
{
    struct gw_worker *worker = (struct gw_worker *)sender;
    (void)ep;
    uint32_t seq = 0;
    bool again = false;
    struct gw_pkt *pkt = gw_app_claim(&worker->app);
    if (pkt && supply(worker, pkt))
        return pkt;
    if (!pkt || !gw_app_claim_buf(&worker->app, pkt)) {
        gw_app_arm_by(&worker->app, gw_time_add(now, worker->cfg.timeout));
        return NULL;
    }
    if (!take_seq(worker, &seq, &again)) {
        gw_pkt_release(worker->app.pool, pkt);
        return NULL;
    }
    const struct gw_row_tensor *work = gw_tensor_row_find(&worker->row, seq);
    gw_app_pkt(&worker->app, pkt, worker->cfg.server, seq,
               gw_tensor_row_values(&worker->row, work, seq));
    pkt->key = work->key;
    pkt->epoch = worker->cfg.epoch;
    pkt->scale = offer_of(worker, seq);
    pkt->agg_flags = again ? GW_AGG_RESEND : 0;
    pkt->index = gw_agg_index_of(&worker->index, seq);
    write_place(worker, pkt);
    fill_payload(worker, work, seq, pkt);
    worker->stats.sent++;
    worker->stats.resent += again;
    if (worker->app.timer_at == GW_TIME_NEVER)
        gw_app_arm(&worker->app, gw_time_add(now, worker->cfg.timeout));
    return pkt;
}

/* Halves the window, at most once per window of fragments. */
static void window_cut(struct gw_worker *worker)
{
    if (!worker->cfg.congestion_control ||
        (worker->was_cut && gw_seq_before(worker->expected, worker->cut_at)))
        return;
    uint64_t least = worker->cfg.window_min ? (uint64_t)worker->cfg.window_min << 16 : GW_Q16_ONE;
    worker->window = worker->window / 2 > least ? worker->window / 2 : least;
    worker->threshold = worker->window;
    worker->cut_at = worker->next;
    worker->was_cut = true;
    worker->stats.cuts++;
}

static void window_grow(struct gw_worker *worker)
{
    uint64_t limit = (uint64_t)worker->cfg.window_max << 16;
    if (!worker->cfg.congestion_control || worker->window == limit)
        return;
    worker->window += worker->window < worker->threshold
                          ? worker->increase
                          : (worker->increase << 16) / worker->window;
    if (worker->window > limit)
        worker->window = limit;
}

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

/* No result counts any more: the first window begins, on all workers alike. */
static void forget_agreed(struct gw_worker *worker)
{
    memset(worker->agreed, GW_PKT_SCALE_NONE, worker->cfg.window_max);
}

void gw_worker_fail(struct gw_worker *worker, uint32_t reason, uint32_t about, gw_time now)
{
    struct gw_event how = {
        .kind = GW_EVENT_FAILED, .about = about, .reason = (uint8_t)reason, .at = now};
    for (; worker->row.count; gw_tensor_row_pop(&worker->row))
        work_end(worker, gw_tensor_row_first(&worker->row), &how);
    gw_app_rest(&worker->app);
    gw_app_arm(&worker->app, GW_TIME_NEVER);
    gw_result_log_clear(&worker->log);
    forget_agreed(worker);
    worker->is_out = true;
    worker->expected = worker->next = worker->row.end;
    worker->resend_count = 0;
    worker->ahead = 0;
}

/* Stores a fragment's result into the tensor. */
static void store_result(struct gw_worker *worker, const struct gw_row_tensor *work,
                         const struct gw_pkt *pkt)
{
    if (!work->tensor.out || pkt->buf == GW_BUF_NONE)
        return;
    unsigned char *out =
        (unsigned char *)work->tensor.out + gw_tensor_row_offset(&worker->row, work, pkt->seq);
    const unsigned char *in = gw_buf_bytes(worker->app.pool->bufs, pkt->buf);
    enum gw_dtype type = work->tensor.type;
    const struct gw_scale scale = scale_of(worker, work, pkt->seq);
    size_t size = (size_t)pkt->agg.values * gw_dtype_size(type);
    fetch_ahead(out, size, 1, true); /* most results come in order */
    if (pkt->agg_flags & GW_AGG_RAW && type != GW_DTYPE_I32)
        memcpy(out, in, size);
    else
        worker->cfg.kernels->dequantise[type](out, in, pkt->agg.values, &scale);
}

/* Moves `expected` over all fragments that have results, and ends the tensors that are complete. */
static void advance(struct gw_worker *worker, gw_time now)
{
    while (worker->expected != worker->next && *slot_of(worker, worker->expected) & SLOT_DONE) {
        worker->expected++;
        worker->ahead--;
        /* All workers have what is a window behind, or this one could not be here. */
        gw_result_log_confirm(&worker->log, worker->expected - worker->cfg.window_max - 1);
    }
    const struct gw_row_tensor *work;
    while ((work = gw_tensor_row_first(&worker->row)) && work->results == work->fragments) {
        work_end(worker, work, &(struct gw_event){.kind = GW_EVENT_REDUCED, .at = now});
        gw_tensor_row_pop(&worker->row);
    }
}

/* Sends the expected fragment again, or `all` without result before `seq`. */
static void resend_overdue(struct gw_worker *worker, uint32_t seq, bool all)
{
    queue_resend(worker, worker->expected);
    for (uint32_t at = worker->expected + 1; all && gw_seq_before(at, seq); at++)
        queue_resend(worker, at);
}

/*
 * Notices that the expected fragment has been overtaken, and then that its resend has been, by what
 * was sent after it. A fragment that becomes the expected one may have been overtaken long ago. One
 * that the server has asked for is held up by a collision, which is no loss and no congestion.
 */
static void detect_loss(struct gw_worker *worker, uint32_t seq)
{
    bool is_resent = worker->was_overtaken && worker->overtaken == worker->expected;
    uint32_t by = is_resent ? worker->behind_count : worker->ahead;
    if (by < OVERTAKEN_MAX || *slot_of(worker, worker->expected) & SLOT_ASKED)
        return;
    worker->overtaken = worker->expected;
    worker->was_overtaken = true;
    worker->behind = worker->next;
    worker->behind_count = 0;
    resend_overdue(worker, seq, worker->cfg.resend_gap);
    window_cut(worker);
}

static void take_result(struct gw_worker *worker, struct gw_row_tensor *work, struct gw_pkt *pkt,
                        gw_time now)
{
    worker->stats.results++;
    store_result(worker, work, pkt);
    *agreed_of(worker, pkt->seq) = pkt->scale; /* of the fragment that has the slot next */
    *slot_of(worker, pkt->seq) |= SLOT_DONE;
    worker->ahead++;
    worker->behind_count += !gw_seq_before(pkt->seq, worker->behind);
    work->results++;
    worker->progress_at = worker->result_at = now;
    worker->timeouts = 0;
    if (pkt->agg_flags & GW_AGG_COLLISION)
        worker->stats.remaps +=
            gw_agg_index_move(&worker->index, pkt->seq, (uint16_t)pkt->agg.bitmap);
    if (pkt->agg_flags & GW_AGG_ECN)
        window_cut(worker);
    else
        window_grow(worker);
    advance(worker, now);
    detect_loss(worker, pkt->seq);
    gw_result_log_keep(&worker->log, pkt);
}

/*
 * The server wants a fragment again: raw, or because of a collision what some of the workers sent.
 * All hear of a collision, so that none takes the fragment's being overtaken for a loss.
 */
static void take_request(struct gw_worker *worker, const struct gw_pkt *pkt)
{
    bool is_raw = pkt->agg_flags & GW_AGG_RAW;
    *slot_of(worker, pkt->seq) |= is_raw ? SLOT_RAW : SLOT_ASKED;
    if (is_raw || pkt->agg.bitmap & position_bit(worker))
        queue_resend(worker, pkt->seq);
}

static void worker_input(struct gw_app *app, struct gw_pkt *pkt, gw_time now)
{
    struct gw_worker *worker = (struct gw_worker *)app;
    bool is_known = pkt->seq - worker->expected < worker->next - worker->expected;
    struct gw_row_tensor *work = is_known ? gw_tensor_row_find(&worker->row, pkt->seq) : NULL;
    if (pkt->epoch != worker->cfg.epoch || (work && pkt->key != work->key)) {
        worker->stats.stale++;
    } else if (!work || *slot_of(worker, pkt->seq) & SLOT_DONE) {
        worker->stats.duplicates++;
        gw_result_log_confirm(&worker->log, pkt->seq);
    } else if (pkt->agg_flags & GW_AGG_FAILED) {
        gw_worker_fail(worker, GW_JOB_OVERFLOW, 0, now);
    } else if (pkt->agg_flags & GW_AGG_REQUEST) {
        take_request(worker, pkt);
    } else if (pkt->agg.values != gw_tensor_row_values(&worker->row, work, pkt->seq)) {
        worker->stats.stale++;
    } else {
        take_result(worker, work, pkt, now);
    }
    gw_pkt_release(app->pool, pkt);
    worker_wake(worker, now);
}

/*
 * Since the last timeout hardly more than what it resent has come back: all that was out is lost,
 * by a switch that died or a burst, and need not wait for a timeout each.
 */
static bool is_crawling(const struct gw_worker *worker)
{
    uint64_t results = worker->stats.results - worker->results_then;
    return worker->had_timeout && results >= 1 && results <= CRAWL_MAX;
}

/* Doubles while nothing comes: then it is others that we wait for, not packets. */
static gw_time timeout_of(const struct gw_worker *worker)
{
    return worker->cfg.timeout << worker->timeouts;
}

static void worker_expire(struct gw_app *app, gw_time now)
{
    struct gw_worker *worker = (struct gw_worker *)app;
    if (worker->cfg.stall && worker->row.count && now - worker->result_at >= worker->cfg.stall) {
        gw_worker_fail(worker, GW_JOB_STALLED, worker->cfg.server, now);
        return;
    }
    if ((worker->expected == worker->row.end && worker->log.owed == 0) || worker->is_paused) {
        gw_app_arm(app, worker->row.count && worker->cfg.stall
                            ? gw_time_add(worker->result_at, worker->cfg.stall)
                            : GW_TIME_NEVER);
        return;
    }
    gw_result_log_repeat(&worker->log);
    if (worker->expected != worker->next && now - worker->progress_at >= timeout_of(worker)) {
        worker->progress_at = now;
        resend_overdue(worker, worker->next, worker->cfg.resend_gap || is_crawling(worker));
        window_cut(worker);
        worker->had_timeout = true;
        worker->timeouts += worker->timeouts < BACKOFF_MAX;
        worker->results_then = worker->stats.results;
    }
    gw_time since = worker->expected == worker->next ? now : worker->progress_at;
    gw_app_arm(app, gw_time_add(since, timeout_of(worker)));
    if (worker->cfg.stall && worker->row.count)
        gw_app_arm_by(app, gw_time_add(worker->result_at, worker->cfg.stall));
    worker_wake(worker, now);
}

static const struct gw_sender_ops worker_sender_ops = {
    .can_send = worker_can_send,
    .emit = worker_emit,
};

static const struct gw_app_ops worker_app_ops = {
    .role = GW_APP_WORKER,
    .input = worker_input,
    .expire = worker_expire,
};

static uint32_t log_count(const struct gw_worker_cfg *cfg)
{
    return cfg->keeps_results ? 2 * cfg->window_max : 0;
}

size_t gw_worker_size(const struct gw_worker_cfg *cfg)
{
    return gw_aligned(sizeof(struct gw_worker)) +
           gw_aligned(gw_agg_index_size(cfg->window_max, cfg->aggregators)) +
           gw_aligned(gw_tensor_row_size(cfg->tensors_max)) +
           gw_aligned(cfg->window_max * sizeof(uint32_t)) + 2 * gw_aligned(cfg->window_max) +
           gw_aligned(gw_result_log_size(log_count(cfg)));
}

/* What begins with an epoch: the window, and the map of aggregators. All workers have the same. */
static void reset(struct gw_worker *worker)
{
    const struct gw_worker_cfg *cfg = &worker->cfg;
    worker->window = (uint64_t)cfg->window_initial << 16;
    worker->threshold = UINT64_MAX;
    worker->was_cut = worker->was_overtaken = worker->had_timeout = false;
    worker->timeouts = 0;
    gw_agg_index_init(&worker->index, worker->index_memory, cfg->window_max, cfg->aggregators,
                      cfg->indexing, cfg->job, cfg->share);
}

int gw_worker_init(struct gw_worker **result, void *memory, const struct gw_worker_cfg *cfg,
                   struct gw_endpoint *ep)
{
    GW_ASSERT(cfg->window_max && (cfg->window_max & (cfg->window_max - 1)) == 0);
    GW_ASSERT(cfg->window_initial >= 1 && cfg->window_initial <= cfg->window_max);
    GW_ASSERT(cfg->window_min <= cfg->window_max);
    GW_ASSERT(cfg->values >= 1 && cfg->tensors_max >= 1 && cfg->timeout > 0);
    unsigned char *at = memory;
    memset(memory, 0, gw_worker_size(cfg));
    struct gw_worker *worker = memory;
    *worker = (struct gw_worker){
        .app = {.ops = &worker_app_ops,
                .job = cfg->job,
                .sender = {.ops = &worker_sender_ops, .class = cfg->class}},
        .cfg = *cfg,
        .expected = cfg->first_seq,
        .next = cfg->first_seq,
    };
    *result = worker;
    int error = gw_app_attach(&worker->app, ep);
    if (error)
        return error;
    GW_ASSERT(!worker->app.pool->bufs || worker->app.pool->bufs->size / 4 >= cfg->values);
    uint64_t packet = 4 * (uint64_t)cfg->values + worker->app.hdr;
    uint64_t increase = (INCREASE_BYTES + packet / 2) / packet;
    worker->increase = (increase ? increase : 1) << 16;
    at += gw_aligned(sizeof(*worker));
    worker->index_memory = at;
    reset(worker);
    at += gw_aligned(gw_agg_index_size(cfg->window_max, cfg->aggregators));
    gw_tensor_row_init(&worker->row, at, cfg->tensors_max, cfg->values, cfg->first_seq);
    at += gw_aligned(gw_tensor_row_size(cfg->tensors_max));
    worker->resend = (void *)at;
    at += gw_aligned(cfg->window_max * sizeof(uint32_t));
    worker->slots = at;
    at += gw_aligned(cfg->window_max);
    worker->agreed = at;
    at += gw_aligned(cfg->window_max);
    forget_agreed(worker);
    gw_result_log_init(&worker->log, at, log_count(cfg), worker->app.pool);
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
    bool was_idle = worker->expected == worker->row.end;
    int error =
        gw_tensor_row_push(&worker->row, tensor, worker->cfg.scale_exponent, worker->cfg.world);
    if (error)
        return error;
    if (was_idle)
        worker->progress_at = worker->result_at = now;
    gw_app_promise(&worker->app);
    worker_wake(worker, now);
    return GW_OK;
}

void gw_worker_pause(struct gw_worker *worker)
{
    worker->is_paused = true;
    gw_app_rest(&worker->app);
}

/* All that is out was sent to the last epoch: it is sent again, but for what has its result. */
static void start_over(struct gw_worker *worker)
{
    worker->resend_count = 0;
    for (uint32_t seq = worker->expected; seq != worker->next; seq++) {
        *slot_of(worker, seq) &= (uint8_t)~SLOT_QUEUED;
        queue_resend(worker, seq);
    }
}

void gw_worker_place(struct gw_worker *worker, const struct gw_worker_place *place, gw_time now)
{
    struct gw_worker_cfg *cfg = &worker->cfg;
    cfg->epoch = place->epoch;
    cfg->level = place->level;
    cfg->bitmap = place->bitmap;
    memcpy(cfg->above, place->above, sizeof(cfg->above));
    if (place->is_fresh) {
        GW_ASSERT(worker->row.count == 0);
        worker->expected = worker->next = worker->row.end = place->first_seq;
        gw_result_log_clear(&worker->log);
        forget_agreed(worker);
    }
    worker->is_out = worker->is_paused = false;
    reset(worker);
    start_over(worker);
    gw_result_log_owe(&worker->log, place->first_seq, worker->next);
    worker->progress_at = worker->result_at = now;
    if (worker->row.count || worker->log.owed)
        gw_app_arm(&worker->app, gw_time_add(now, cfg->timeout));
    worker_wake(worker, now);
}

bool gw_worker_owes(const struct gw_worker *worker)
{
    return worker->log.owed > 0;
}

bool gw_worker_is_out(const struct gw_worker *worker)
{
    return worker->is_out;
}

uint64_t gw_worker_window(const struct gw_worker *worker)
{
    return worker->window;
}

uint32_t gw_worker_expected(const struct gw_worker *worker)
{
    return worker->expected;
}

const struct gw_worker_stats *gw_worker_stats(const struct gw_worker *worker)
{
    return &worker->stats;
}
