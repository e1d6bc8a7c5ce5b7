/* What a worker has out; see outstanding.h. */
#include "core/aggregation/outstanding.h"

#include <string.h>

#include "base/arena.h"

enum {
    CRAWL_MAX = 2, /* results between two timeouts that mean a burst of losses */
};

static size_t outstanding_carve(struct gw_outstanding *out, void *memory, uint32_t max)
{
    struct gw_arena arena = {.base = memory};
    out->resend_seqs = gw_arena_take(&arena, max * sizeof(*out->resend_seqs));
    out->sent_at = gw_arena_take(&arena, max * sizeof(*out->sent_at));
    out->notes = gw_arena_take(&arena, max * sizeof(*out->notes));
    return arena.used;
}

size_t gw_outstanding_size(uint32_t max)
{
    struct gw_outstanding out;
    return outstanding_carve(&out, NULL, max);
}

void gw_outstanding_init(struct gw_outstanding *out, void *memory,
                         const struct gw_outstanding_cfg *cfg)
{
    GW_ASSERT(cfg->max && (cfg->max & (cfg->max - 1)) == 0);
    *out = (struct gw_outstanding){
        .cfg = *cfg,
        .expected = cfg->first_seq,
        .next = cfg->first_seq,
        .newest = cfg->first_seq - 1,
        .checked = cfg->first_seq,
    };
    gw_time least = gw_patience_least(cfg->timeout);
    gw_patience_init(&out->patience, least < cfg->probe ? least : cfg->probe, cfg->probe);
    outstanding_carve(out, memory, cfg->max);
    memset(out->sent_at, 0, cfg->max * sizeof(*out->sent_at));
    memset(out->notes, 0, cfg->max * sizeof(*out->notes));
    gw_index_queue_init(&out->resend, cfg->max);
}

void gw_outstanding_clear(struct gw_outstanding *out, uint32_t seq)
{
    out->expected = out->next = out->checked = seq;
    out->newest = seq - 1;
    out->ahead = out->in_a_row = 0;
    out->was_overtaken = out->is_timing = out->had_timeout = false;
    gw_index_queue_clear(&out->resend);
}

void gw_outstanding_start_over(struct gw_outstanding *out)
{
    out->was_overtaken = out->had_timeout = out->is_timing = false;
    out->newest = out->expected - 1;
    out->checked = out->expected;
    out->timeouts = 0;
    out->in_a_row = 0;
    gw_index_queue_clear(&out->resend);
    for (uint32_t seq = out->expected; seq != out->next; seq++) {
        *gw_outstanding_note(out, seq) &= (uint8_t)(GW_NOTE_DONE | GW_NOTE_RAW);
        gw_outstanding_resend(out, seq);
    }
}

/* Takes out of the queue what has its result by now. Others are in it once. */
static void forget_resent(struct gw_outstanding *out)
{
    for (uint32_t left = out->resend.count; left > 0; left--) {
        uint32_t seq = out->resend_seqs[gw_index_queue_pop(&out->resend)];
        if (!gw_seq_before(seq, out->expected) && *gw_outstanding_note(out, seq) & GW_NOTE_QUEUED)
            out->resend_seqs[gw_index_queue_push(&out->resend)] = seq;
    }
}

void gw_outstanding_resend(struct gw_outstanding *out, uint32_t seq)
{
    uint8_t *note = gw_outstanding_note(out, seq);
    if (*note & (GW_NOTE_QUEUED | GW_NOTE_DONE))
        return;
    if (gw_index_queue_is_full(&out->resend))
        forget_resent(out);
    *note |= GW_NOTE_QUEUED;
    gw_outstanding_time_not(out, seq);
    out->resend_seqs[gw_index_queue_push(&out->resend)] = seq;
}

bool gw_outstanding_take_resend(struct gw_outstanding *out, uint32_t *seq, gw_time now)
{
    while (out->resend.count) {
        *seq = out->resend_seqs[gw_index_queue_pop(&out->resend)];
        uint8_t *note = gw_outstanding_note(out, *seq);
        /* Its result may have come, and the note may be another fragment's by now. */
        if (gw_seq_before(*seq, out->expected) || !(*note & GW_NOTE_QUEUED))
            continue;
        *note &= (uint8_t)~GW_NOTE_QUEUED;
        if (*note & GW_NOTE_DONE)
            continue;
        *gw_outstanding_sent_at(out, *seq) = now;
        return true;
    }
    return false;
}

static void resend_lost(struct gw_outstanding *out, uint32_t seq)
{
    *gw_outstanding_note(out, seq) |= out->forgives ? 0 : GW_NOTE_LOST;
    gw_outstanding_resend(out, seq);
}

/* Sends the expected fragment again, or `all` without result before `seq`. */
static void resend_overdue(struct gw_outstanding *out, uint32_t seq, bool all)
{
    resend_lost(out, out->expected);
    for (uint32_t at = out->expected + 1; all && gw_seq_before(at, seq); at++)
        resend_lost(out, at);
}

/* What is before `end`, which is behind the expected fragment, is about to be sent again. */
static void note_resends(struct gw_outstanding *out, uint32_t end)
{
    out->resent_end = end;
    if (gw_seq_before(out->checked, end))
        out->checked = end;
    out->was_overtaken = true;
    out->behind = out->next;
    out->behind_count = 0;
    out->in_a_row = 0;
}

void gw_outstanding_resend_before(struct gw_outstanding *out, uint32_t end, gw_time now)
{
    uint32_t resent_end = out->expected;
    for (uint32_t seq = out->expected; gw_seq_before(seq, end); seq++) {
        if (*gw_outstanding_note(out, seq) & GW_NOTE_DONE ||
            now - *gw_outstanding_sent_at(out, seq) < out->longest_answer)
            continue;
        gw_outstanding_resend(out, seq);
        resent_end = seq + 1;
    }
    if (resent_end != out->expected)
        note_resends(out, resent_end);
}

/* The expected fragment has been overtaken, or what was sent of it again: sends again it, or all
 * that is overdue before `seq`. False: no loss, since the server has asked for it. */
static bool overtake(struct gw_outstanding *out, uint32_t seq)
{
    bool is_asked = *gw_outstanding_note(out, out->expected) & GW_NOTE_ASKED;
    bool has_gap = out->resends_gap && !is_asked && gw_seq_before(out->expected, seq);
    if (is_asked && out->cfg.overtaking == GW_AGG_OVERTAKEN_IN_A_ROW)
        return false; /* it would be sent again every three results, whenever they were sent */
    if (!out->was_overtaken && (is_asked || gw_seq_before(out->expected, out->checked))) {
        note_resends(out, out->expected + 1); /* it may be on its way */
        return false;
    }
    note_resends(out, has_gap ? seq : out->expected + 1);
    if (is_asked)
        gw_outstanding_resend(out, out->expected);
    else
        resend_overdue(out, seq, has_gap);
    return !is_asked;
}

/* Sends the next hole again, if there is one; false: there is none. */
static bool send_hole(struct gw_outstanding *out)
{
    while (gw_seq_before(out->checked + GW_OVERTAKEN_MAX - 1, out->newest)) {
        uint32_t seq = out->checked++;
        if (*gw_outstanding_note(out, seq) & (GW_NOTE_DONE | GW_NOTE_ASKED))
            continue;
        out->credit = 0;
        resend_lost(out, seq);
        return true;
    }
    return false;
}

bool gw_outstanding_detect_loss(struct gw_outstanding *out, uint32_t seq)
{
    if (gw_outstanding_overtaken_by(out) >= GW_OVERTAKEN_MAX && overtake(out, seq))
        return true;
    return gw_outstanding_may_have_hole(out) && send_hole(out);
}

/* How long nothing comes before a probe leaves. */
static gw_time probe_after(const struct gw_outstanding *out)
{
    gw_time usual = gw_patience_of(&out->patience), least = 2 * out->least_trip;
    return usual > least ? usual : least;
}

static bool is_for_probe(const struct gw_outstanding *out)
{
    return out->may_probe && probe_after(out) << out->probes < out->cfg.timeout;
}

static gw_time timeout_of(const struct gw_outstanding *out)
{
    return is_for_probe(out) ? probe_after(out) << out->probes : out->cfg.timeout << out->timeouts;
}

/*
 * Since the last timeout or probe hardly more than what it resent has come back: all that was out
 * is lost, by a switch that died or a burst, and need not wait for one each.
 */
static bool is_crawling(const struct gw_outstanding *out)
{
    uint64_t most = out->probed > CRAWL_MAX ? out->probed : CRAWL_MAX;
    return out->had_timeout && out->results_since >= 1 && out->results_since <= most;
}

/* Sends again what may have been lost, without saying so. */
static void probe(struct gw_outstanding *out)
{
    bool has_brought = is_crawling(out) && 2 * out->results_since > out->probed;
    uint32_t count = has_brought && out->probed ? 2 * out->probed : 1;
    out->probed = 0;
    for (uint32_t seq = out->expected; out->probed < count && seq != out->next; seq++) {
        if (*gw_outstanding_note(out, seq) & GW_NOTE_DONE)
            continue;
        gw_outstanding_resend(out, seq);
        out->probed++;
    }
    out->probes++;
}

bool gw_outstanding_expire(struct gw_outstanding *out, gw_time now)
{
    if (out->expected == out->next || now - out->progress_at < timeout_of(out))
        return false;
    bool is_loss = !is_for_probe(out);
    if (is_loss) {
        out->may_probe = false;
        out->progress_at = now;
        resend_overdue(out, out->next, out->resends_gap || is_crawling(out));
        out->timeouts += out->timeouts < GW_BACKOFF_MAX;
        out->probed = 0;
    } else {
        probe(out);
    }
    out->had_timeout = true;
    out->results_since = 0;
    return is_loss;
}

gw_time gw_outstanding_deadline(const struct gw_outstanding *out, gw_time now)
{
    gw_time since = out->expected == out->next ? now : out->progress_at;
    gw_time at = gw_time_add(since, timeout_of(out));
    if (!out->cfg.probe)
        return at;
    gw_time look_at = gw_time_add(now, probe_after(out)); /* a result may come */
    return gw_time_before(look_at, at) ? look_at : at;
}
