/*
 * Ring all-reduce (Patarasuk and Yuan, JPDC 2009): n - 1 steps in which each chunk travels once
 * around and is combined, then n - 1 in which the results do; and each half as a collective of its
 * own. Every worker sends and receives (n - 1) / n of the vector in each half, and talks to its
 * neighbours alone.
 *
 * Invariant: in every step a worker sends one chunk to the next, and receives the one before it. A
 * chunk that is combined has passed all workers when it has made n - 1 steps. The halves differ in
 * where a chunk begins: to be complete at the worker that it belongs to, chunk c begins at rank
 * c + 1; as the first half of an all-reduce it may end anywhere, and begins at rank c.
 */
#include "core/coll/coll.h"

static bool allows(uint32_t n)
{
    return n >= 2;
}

static uint32_t half(uint32_t n)
{
    return n - 1;
}

static uint32_t both(uint32_t n)
{
    return 2 * half(n);
}

/* `rank` of a ring, or the same plus n. */
static uint32_t wrapped(uint32_t rank, uint32_t n)
{
    return rank < n ? rank : rank - n;
}

/* A worker sends the chunk `at` < 2n places before `first` on to the next, and receives the one
 * before it. */
static struct gw_coll_step pass(uint32_t rank, uint32_t n, uint32_t first, uint32_t at,
                                uint64_t count)
{
    uint32_t send = wrapped(first + n - wrapped(at, n), n), recv = wrapped(send + n - 1, n);
    uint64_t send_first = gw_coll_chunk(send, n, count), recv_first = gw_coll_chunk(recv, n, count);
    return (struct gw_coll_step){
        .to = wrapped(rank + 1, n),
        .send_first = send_first,
        .send_count = gw_coll_chunk(send + 1, n, count) - send_first,
        .from = wrapped(rank + n - 1, n),
        .recv_first = recv_first,
        .recv_count = gw_coll_chunk(recv + 1, n, count) - recv_first,
        .round = at,
        .merge = at + 2 < n    ? GW_COLL_COMBINE
                 : at + 2 == n ? GW_COLL_COMPLETE
                               : GW_COLL_COPY,
    };
}

static struct gw_coll_step step(uint32_t rank, uint32_t n, uint32_t root, uint32_t at,
                                uint64_t count)
{
    (void)root;
    return pass(rank, n, rank, at, count);
}

static struct gw_coll_step scatter_step(uint32_t rank, uint32_t n, uint32_t root, uint32_t at,
                                        uint64_t count)
{
    (void)root;
    return pass(rank, n, wrapped(rank + n - 1, n), at, count);
}

static struct gw_coll_step gather_step(uint32_t rank, uint32_t n, uint32_t root, uint32_t at,
                                       uint64_t count)
{
    (void)root;
    struct gw_coll_step move = pass(rank, n, rank, at, count);
    move.merge = GW_COLL_COPY;
    return move;
}

/* A chunk; the first is the longest. */
static uint64_t largest(uint32_t n, uint64_t count)
{
    return gw_coll_chunk(1, n, count);
}

const struct gw_coll_ops gw_coll_ring = {
    .algo = {.name = "ring",
             .summary = "chunks travel around once to be summed, and once more as sums",
             .source = "Patarasuk and Yuan (JPDC 2009)"},
    .kind = GW_COLL_ALLREDUCE,
    .combines_once = true,
    .allows = allows,
    .steps = both,
    .rounds = both,
    .hops = half,
    .step = step,
    .largest = largest,
};

const struct gw_coll_ops gw_coll_ring_scatter = {
    .algo = {.name = "ring-reduce-scatter",
             .summary = "chunks travel around once, and end where they belong",
             .source = "Patarasuk and Yuan (JPDC 2009)"},
    .kind = GW_COLL_REDUCE_SCATTER,
    .allows = allows,
    .steps = half,
    .rounds = half,
    .hops = half,
    .step = scatter_step,
    .largest = largest,
};

const struct gw_coll_ops gw_coll_ring_gather = {
    .algo = {.name = "ring-all-gather",
             .summary = "chunks travel around once, as they are",
             .source = "Patarasuk and Yuan (JPDC 2009)"},
    .kind = GW_COLL_ALLGATHER,
    .allows = allows,
    .steps = half,
    .rounds = half,
    .hops = half,
    .step = gather_step,
    .largest = largest,
};
