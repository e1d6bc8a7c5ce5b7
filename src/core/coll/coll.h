/*
 * Schedules of all-reduce among n workers without switches or servers: who sends what to whom in
 * which step. Pure functions, so that the simulator and the sockets run the same one.
 *
 * In every step a worker sends one range of the tensor and receives one, of which either may be
 * empty. What it sends is what it had before the step; what it receives is added to what it has, or
 * replaces it. It may begin a step when it has received what the steps before brought.
 *
 * An element either is sent off once to be added elsewhere, after which nothing is added to it
 * until its sum replaces it; or it is among those that the worker's last adding step brings, and
 * that step completes its sum. So no sum of an element reaches a worker before its own value has
 * left.
 *
 * One file here and one line in coll.def make a schedule.
 */
#ifndef GW_CORE_COLL_H
#define GW_CORE_COLL_H

#include <stdbool.h>

#include "core/algo.h"

enum gw_coll_op {
    GW_COLL_REDUCE, /* what arrives is added */
    GW_COLL_COPY,   /* what arrives is the result */
};

/* A step of one worker. Ranges are in elements. */
struct gw_coll_step {
    uint32_t to;
    uint64_t send_first, send_count;
    uint32_t from;
    uint64_t recv_first, recv_count;
    enum gw_coll_op op;
};

struct gw_coll_ops {
    struct gw_algo algo;
    bool (*allows)(uint32_t n);    /* n workers, at least 2 */
    uint32_t (*steps)(uint32_t n); /* equal for all workers */
    struct gw_coll_step (*step)(uint32_t rank, uint32_t n, uint32_t step, uint64_t count);
    uint64_t (*largest)(uint32_t n, uint64_t count); /* elements of any step, of any worker */
};

/* First element of the chunk `index` of n: chunks differ by at most one element. */
static inline uint64_t gw_coll_chunk(uint32_t index, uint32_t n, uint64_t count)
{
    uint64_t more = count % n;
    return index * (count / n) + (index < more ? index : more);
}

extern const struct gw_registry gw_coll_registry;

#endif
