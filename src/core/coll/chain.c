/*
 * Broadcast and reduce along a chain (Pjesivac-Grbovic et al., Cluster Computing 2007, call it the
 * pipeline algorithm): the whole vector goes from worker to worker, and since it is cut into
 * segments, all of them pass it on at the same time. So it takes little longer than to send it
 * once, whatever n is.
 *
 * Invariant: a worker receives all from the rank before it, then sends all to the rank behind it.
 * The root begins a broadcast and ends a reduce, so that both go up the ranks as a ring does: who
 * has a ring has the ways for these, and values are combined in the order of a ring.
 */
#include "core/coll/coll.h"

enum { STEPS = 2 };

static bool allows(uint32_t n)
{
    return n >= 2;
}

static uint32_t steps(uint32_t n)
{
    (void)n;
    return STEPS;
}

/* Two workers meet once. */
static uint32_t rounds(uint32_t n)
{
    (void)n;
    return 1;
}

/* All but the first, which has what it sends, and the last, which sends nothing. */
static uint32_t relays(uint32_t n)
{
    return n - 2;
}

static uint32_t hops(uint32_t n)
{
    return n - 1;
}

/* Step `at` of the worker that has `place` others before it. */
static struct gw_coll_step pass(uint32_t rank, uint32_t n, uint32_t place, uint32_t at,
                                uint64_t count)
{
    return (struct gw_coll_step){
        .to = (rank + 1) % n,
        .send_count = at == 1 && place != n - 1 ? count : 0,
        .from = (rank + n - 1) % n,
        .recv_count = at == 0 && place != 0 ? count : 0,
    };
}

static struct gw_coll_step broadcast_step(uint32_t rank, uint32_t n, uint32_t root, uint32_t at,
                                          uint64_t count)
{
    struct gw_coll_step move = pass(rank, n, (rank + n - root) % n, at, count);
    move.merge = GW_COLL_COPY;
    return move;
}

static struct gw_coll_step reduce_step(uint32_t rank, uint32_t n, uint32_t root, uint32_t at,
                                       uint64_t count)
{
    struct gw_coll_step move = pass(rank, n, (rank + n - root - 1) % n, at, count);
    move.merge = rank == root ? GW_COLL_COMPLETE : GW_COLL_COMBINE;
    return move;
}

static uint64_t largest(uint32_t n, uint64_t count)
{
    (void)n;
    return count;
}

const struct gw_coll_ops gw_coll_chain_broadcast = {
    .algo = {.name = "chain-broadcast",
             .summary = "all goes from worker to worker, up the ranks from the root",
             .source = "Pjesivac-Grbovic et al. (Cluster Computing 2007)"},
    .kind = GW_COLL_BROADCAST,
    .allows = allows,
    .steps = steps,
    .rounds = rounds,
    .relays = relays,
    .hops = hops,
    .step = broadcast_step,
    .largest = largest,
};

const struct gw_coll_ops gw_coll_chain_reduce = {
    .algo = {.name = "chain-reduce",
             .summary = "all goes from worker to worker, up the ranks to the root, and is summed",
             .source = "Pjesivac-Grbovic et al. (Cluster Computing 2007)"},
    .kind = GW_COLL_REDUCE,
    .allows = allows,
    .steps = steps,
    .rounds = rounds,
    .relays = relays,
    .hops = hops,
    .step = reduce_step,
    .largest = largest,
};
