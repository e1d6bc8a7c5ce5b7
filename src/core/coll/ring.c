/*
 * Ring all-reduce (Patarasuk and Yuan, JPDC 2009): n - 1 steps in which each chunk travels once
 * around and is added up, then n - 1 in which the sums do. Every worker sends and receives
 * 2 (n - 1) / n of the tensor, and talks to its neighbours alone.
 *
 * Invariant: before step s a worker has the sum of s + 1 workers in chunk rank - s.
 */
#include "core/coll/coll.h"

static bool allows(uint32_t n)
{
    return n >= 2;
}

static uint32_t steps(uint32_t n)
{
    return 2 * (n - 1);
}

static struct gw_coll_step step(uint32_t rank, uint32_t n, uint32_t at, uint64_t count)
{
    uint32_t send = (rank + n - at % n) % n, recv = (send + n - 1) % n;
    uint64_t send_first = gw_coll_chunk(send, n, count), recv_first = gw_coll_chunk(recv, n, count);
    return (struct gw_coll_step){
        .to = (rank + 1) % n,
        .send_first = send_first,
        .send_count = gw_coll_chunk(send + 1, n, count) - send_first,
        .from = (rank + n - 1) % n,
        .recv_first = recv_first,
        .recv_count = gw_coll_chunk(recv + 1, n, count) - recv_first,
        .op = at < n - 1 ? GW_COLL_REDUCE : GW_COLL_COPY,
    };
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
    .allows = allows,
    .steps = steps,
    .step = step,
    .largest = largest,
};
