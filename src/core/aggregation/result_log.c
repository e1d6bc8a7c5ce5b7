/* The last results of a worker; see result_log.h. */
#include "core/aggregation/result_log.h"

#include <string.h>

static struct gw_kept_result *entry_of(const struct gw_result_log *log, uint32_t seq)
{
    return &log->entries[seq & (log->count - 1)];
}

static bool is_owed(const struct gw_kept_result *entry, uint32_t seq)
{
    return entry->is_there && entry->is_owed && entry->seq == seq;
}

/* What the entry held is gone; what it says is up to the caller. */
static void forget(struct gw_result_log *log, const struct gw_kept_result *entry)
{
    if (!entry->is_there)
        return;
    if (entry->buf != GW_BUF_NONE)
        gw_buf_release(log->pool->bufs, entry->buf);
    log->owed -= entry->is_owed;
}

/* The entry holds nothing any more. */
static void clear_entry(struct gw_result_log *log, struct gw_kept_result *entry)
{
    forget(log, entry);
    *entry = (struct gw_kept_result){.buf = GW_BUF_NONE};
}

size_t gw_result_log_size(uint32_t count)
{
    return count * sizeof(struct gw_kept_result);
}

void gw_result_log_init(struct gw_result_log *log, void *memory, uint32_t count,
                        struct gw_pkt_pool *pool)
{
    GW_ASSERT((count & (count - 1)) == 0);
    memset(memory, 0, gw_result_log_size(count));
    *log = (struct gw_result_log){.entries = memory, .pool = pool, .count = count};
}

void gw_result_log_keep(struct gw_result_log *log, struct gw_pkt *pkt)
{
    if (log->count == 0)
        return;
    struct gw_kept_result *entry = entry_of(log, pkt->seq);
    forget(log, entry);
    *entry = (struct gw_kept_result){
        .seq = pkt->seq,
        .key = pkt->key,
        .buf = pkt->buf,
        .values = pkt->agg.values,
        .scale = pkt->scale,
        .flags = pkt->agg_flags,
        .word = pkt->agg.bitmap,
        .is_there = true,
    };
    pkt->buf = GW_BUF_NONE;
}

void gw_result_log_drop(struct gw_result_log *log, uint32_t seq)
{
    if (log->count && entry_of(log, seq)->seq == seq)
        clear_entry(log, entry_of(log, seq));
}

bool gw_result_log_take(struct gw_result_log *log, uint32_t seq, struct gw_pkt *pkt)
{
    if (log->count == 0 || !entry_of(log, seq)->is_there || entry_of(log, seq)->seq != seq)
        return false;
    struct gw_kept_result *entry = entry_of(log, seq);
    *pkt = (struct gw_pkt){
        .seq = seq,
        .key = entry->key,
        .buf = entry->buf,
        .scale = entry->scale,
        .agg_flags = entry->flags,
        .agg = {.bitmap = entry->word, .values = entry->values},
    };
    log->owed -= entry->is_owed;
    *entry = (struct gw_kept_result){.buf = GW_BUF_NONE};
    return true;
}

void gw_result_log_drop_early(struct gw_result_log *log, uint32_t seq)
{
    for (uint32_t i = 0; i < log->count; i++) {
        struct gw_kept_result *entry = &log->entries[i];
        if (!entry->is_there || (int32_t)(entry->seq - seq) < 0)
            continue;
        clear_entry(log, entry);
    }
}

void gw_result_log_owe(struct gw_result_log *log, uint32_t first, uint32_t end)
{
    uint32_t span = end - first;
    if (log->count == 0)
        return;
    if (span > log->count)
        first = end - log->count; /* older ones are not kept: no worker can need them */
    log->first = log->at = first;
    log->end = end;
    log->owed = 0;
    for (uint32_t i = 0; i < log->count; i++) {
        struct gw_kept_result *entry = &log->entries[i];
        entry->is_owed = entry->is_there && entry->seq - first < end - first;
        log->owed += entry->is_owed;
    }
    if (log->owed == 0)
        log->at = end;
}

const struct gw_kept_result *gw_result_log_next(struct gw_result_log *log)
{
    while (log->at != log->end) {
        uint32_t seq = log->at++;
        if (is_owed(entry_of(log, seq), seq))
            return entry_of(log, seq);
    }
    return NULL;
}

void gw_result_log_confirm(struct gw_result_log *log, uint32_t seq)
{
    if (log->owed == 0 || !is_owed(entry_of(log, seq), seq))
        return;
    entry_of(log, seq)->is_owed = false;
    if (--log->owed == 0)
        log->at = log->end;
}

void gw_result_log_repeat(struct gw_result_log *log)
{
    if (log->owed)
        log->at = log->first;
}

void gw_result_log_clear(struct gw_result_log *log)
{
    for (uint32_t i = 0; i < log->count; i++)
        clear_entry(log, &log->entries[i]);
    log->at = log->end;
}
