/*
 * The last results of a worker, as they came, for a server that restarts without them.
 *
 * A worker can be ahead of another by a window, and may have a window of results out of order; so
 * twice the window is enough that every result which some worker lacks is in the log of those that
 * have it. Buffers are kept by reference, nothing is copied. In calls with a bound a worker may be
 * two windows further behind, and the log is twice as long.
 *
 * A result may also come early: the fragment lacks this worker, which has not sent it. It waits
 * here until it is the worker's next.
 */
#ifndef GW_CORE_RESULT_LOG_H
#define GW_CORE_RESULT_LOG_H

#include "core/pkt.h"

struct gw_kept_result {
    uint32_t seq;
    uint32_t key;
    uint32_t buf; /* or GW_BUF_NONE */
    uint16_t values;
    uint8_t scale;
    uint8_t flags; /* enum gw_agg_flag, as it came */
    uint32_t word; /* agg.bitmap, as it came */
    bool is_there;
    bool is_owed; /* the server of this epoch may lack it */
};

struct gw_result_log {
    struct gw_kept_result *entries; /* of fragment seq: seq modulo count */
    struct gw_pkt_pool *pool;
    uint32_t count;      /* a power of two, or 0: nothing is kept */
    uint32_t first, end; /* what is owed is in [first, end) */
    uint32_t at;         /* next to be supplied */
    uint32_t owed;
};

/* Bytes of memory for `count` results. */
size_t gw_result_log_size(uint32_t count);

/* An empty log in `memory`, aligned to 8; `count` is a power of two, or 0. */
void gw_result_log_init(struct gw_result_log *log, void *memory, uint32_t count,
                        struct gw_pkt_pool *pool);

/* Keeps the result that a parameter packet carries, and takes its buffer. */
void gw_result_log_keep(struct gw_result_log *log, struct gw_pkt *pkt);

/* Forgets the result of fragment `seq`: all workers have it. */
void gw_result_log_drop(struct gw_result_log *log, uint32_t seq);

/* Takes the early result of fragment `seq` out of the log and into `pkt`; false: there is none. */
bool gw_result_log_take(struct gw_result_log *log, uint32_t seq, struct gw_pkt *pkt);

/* Forgets what is early, from fragment `seq` on: the server of another epoch may decide otherwise.
 */
void gw_result_log_drop_early(struct gw_result_log *log, uint32_t seq);

/* A new epoch: all kept results with seq in [first, end) are owed. */
void gw_result_log_owe(struct gw_result_log *log, uint32_t first, uint32_t end);

/* Whether next() would give one. */
static inline bool gw_result_log_has_next(const struct gw_result_log *log)
{
    return log->at != log->end;
}

/* Whether the server has not confirmed all that it may lack. */
static inline bool gw_result_log_owes(const struct gw_result_log *log)
{
    return log->owed > 0;
}

/* The next result to supply, or NULL. */
const struct gw_kept_result *gw_result_log_next(struct gw_result_log *log);

/* The server has the result of `seq`. */
void gw_result_log_confirm(struct gw_result_log *log, uint32_t seq);

/* What is still owed is supplied once more. */
void gw_result_log_repeat(struct gw_result_log *log);

/* Forgets all and releases the buffers. */
void gw_result_log_clear(struct gw_result_log *log);

#endif
