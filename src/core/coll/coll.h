/*
 * Schedules of collectives among n workers without switches or servers: who sends what to whom in
 * which step. Pure functions, so that the simulator and the sockets run the same one.
 *
 * All workers know a vector of `count` elements, cut into n chunks (gw_coll_chunk()). What a worker
 * has of it before, and after:
 *
 *   all-reduce      own values of all elements    the results of all elements
 *   reduce-scatter  own values of all elements    the results of its chunk
 *   all-gather      the values of its chunk       the values of all elements
 *   broadcast       the root: all values          all values
 *   reduce          own values of all elements    the root: the results of all elements
 *
 * A result is made of the values of all workers. A worker makes its steps one after the other, or
 * piece by piece those that need nothing of each other; in each it receives one range of the vector
 * and sends one, of which either may be empty. What it sends is what it had before the step, and it
 * may begin when what the steps before bring has come. What arrives is combined with what it has,
 * or is what it has from then on.
 *
 * A worker's messages to another are known by their round: one sends in a step of this round what
 * the other receives in a step of it, and a round is one step of each at the most. Rounds follow
 * one another as steps do.
 *
 * All-reduce: an element either is sent off once to be combined elsewhere, after which nothing is
 * combined with it until its result replaces it; or it is among those that the worker completes. So
 * no result of an element reaches a worker before its own value has left. Or pairs *exchange*: in
 * each step a worker sends to another what it receives from that one, and both combine the same two
 * values, to the same bits, since of two values no operation depends on the order. What is sent is
 * then also what is combined, and nothing of the result may be missing.
 *
 * Reduce-scatter, reduce: what is combined is sent on by the next step, just so, unless it is
 * complete; what else is sent are the worker's own values, of elements that nothing is combined
 * with there. So own values stay as they are. A worker receives from one other.
 *
 * All-gather, broadcast: an element arrives once at who has not got it.
 *
 * One file here and one line in coll.def make a schedule of all-reduce.
 */
#ifndef GW_CORE_COLL_H
#define GW_CORE_COLL_H

#include <stdbool.h>

#include "core/algo.h"

enum gw_coll_kind {
    GW_COLL_ALLREDUCE,
    GW_COLL_REDUCE_SCATTER,
    GW_COLL_ALLGATHER,
    GW_COLL_BROADCAST,
    GW_COLL_REDUCE,
    GW_COLL_KINDS,
};

/* What becomes of what arrives. */
enum gw_coll_merge {
    GW_COLL_COMBINE,  /* combined with the worker's own, it is sent off by a later step, or more is
                         combined with it */
    GW_COLL_COMPLETE, /* combined with the worker's own, it is the result */
    GW_COLL_COPY,     /* it is the result, or the value */
};

/* A step of one worker. Ranges are in elements. Both peers are ranks of others, even if nothing is
 * moved, and depend on neither root nor count. */
struct gw_coll_step {
    uint32_t to;
    uint64_t send_first, send_count;
    uint32_t from;
    uint64_t recv_first, recv_count;
    uint32_t round;
    enum gw_coll_merge merge;
};

struct gw_coll_ops {
    struct gw_algo algo;
    enum gw_coll_kind kind;
    bool exchanges;                 /* pairs do, in every step */
    bool combines_once;             /* a worker combines something with no element twice: it may do
                                       so with what arrives, in any order */
    bool (*allows)(uint32_t n);     /* n workers, at least 2 */
    uint32_t (*steps)(uint32_t n);  /* equal for all workers */
    uint32_t (*rounds)(uint32_t n); /* at most as many */
    /* So many steps in a row, from the first and from each behind such a row, send nothing that
     * another of them brings: their segments can be moved in turn. NULL: nobody asks. */
    uint32_t (*apart)(uint32_t n);
    uint32_t (*relays)(uint32_t n); /* how many wait for one another, with nothing to send, when it
                                       begins; NULL: none */
    /* Messages that a value passes at the most until it is in its result and, of an all-reduce, as
     * many again until the result is everywhere. All of a step's range counts as one message. */
    uint32_t (*hops)(uint32_t n);
    /* `root` is of a broadcast or reduce. */
    struct gw_coll_step (*step)(uint32_t rank, uint32_t n, uint32_t root, uint32_t step,
                                uint64_t count);
    uint64_t (*largest)(uint32_t n, uint64_t count); /* elements of any step, of any worker */
};

/* First element of the chunk `index` of n: chunks differ by at most one element. */
static inline uint64_t gw_coll_chunk(uint32_t index, uint32_t n, uint64_t count)
{
    uint64_t more = count % n;
    return index * (count / n) + (index < more ? index : more);
}

/* Whether what a worker combines stays apart from its own values. */
static inline bool gw_coll_keeps_own(enum gw_coll_kind kind)
{
    return kind == GW_COLL_REDUCE_SCATTER || kind == GW_COLL_REDUCE;
}

/* The schedule of a kind: a ring, or a chain along it. Each worker sends to the next rank alone. */
const struct gw_coll_ops *gw_coll_for(enum gw_coll_kind kind);

/* All-reduces: each worker sends to all others, the fewest hops; pairs exchange, the fewest steps.
 */
extern const struct gw_coll_ops gw_coll_direct, gw_coll_doubling;

/* The schedules of all-reduce, to choose from. */
extern const struct gw_registry gw_coll_registry;

#endif
