/*
 * The books of who was left out of which call: of each worker's fragments of a call at most the
 * call's bound.
 *
 * Invariant: whatever add() allows, no worker is left out of more than `bound` times the fragments
 * of the call that are known to exist by then; so it holds at any time, and at the end.
 *
 * Memory is bounded: calls follow each other, and only those that something was left out of need a
 * page. When all pages belong to calls that are still open, nobody is left out of another one.
 */
#ifndef GW_CORE_LEFT_OUT_H
#define GW_CORE_LEFT_OUT_H

#include <stddef.h>

#include "core/aggregation/rank_set.h"

enum {
    GW_LEFT_OUT_CALLS = 8, /* open at the same time, of those that lack something */
};

struct gw_left_out_call {
    uint32_t key;    /* of the call */
    uint32_t newest; /* fragment that somebody was left out of */
    uint8_t bound;   /* the strictest that was said, in 1/200 */
    bool is_open;
};

struct gw_left_out {
    struct gw_left_out_call calls[GW_LEFT_OUT_CALLS];
    uint32_t *counts; /* of each call a row by rank: fragments */
    uint32_t world;
};

/* A fragment that some workers are to be left out of. */
struct gw_left_out_item {
    uint32_t key;
    uint32_t seq;
    uint32_t known; /* fragments of the call that exist, as far as is known */
    uint8_t bound;
    const struct gw_rank_set *missing;
};

/* Bytes of memory for gw_left_out_init(). */
size_t gw_left_out_size(uint32_t world);

/* Empty books in `memory`, aligned to 4. */
void gw_left_out_init(struct gw_left_out *books, void *memory, uint32_t world);

/* Nobody was left out of anything. */
void gw_left_out_clear(struct gw_left_out *books);

/*
 * All fragments before `seq` have their results, and the one right before it is of the call `key`:
 * earlier calls are over.
 */
void gw_left_out_close(struct gw_left_out *books, uint32_t seq, uint32_t key);

/* Of how many fragments of a call one of these was left out, at most. */
uint32_t gw_left_out_most(const struct gw_left_out *books, uint32_t key,
                          const struct gw_rank_set *set);

/* Whether all workers of `missing` may be left out; if so, that is noted. */
bool gw_left_out_add(struct gw_left_out *books, const struct gw_left_out_item *item);

#endif
