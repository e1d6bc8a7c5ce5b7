/*
 * Direct all-reduce: each worker is the server of its chunk, as the servers of a parameter server
 * are each of their shard (Li et al., OSDI 2014): all others send it theirs, and get the results
 * from it. As many bytes as a ring; a value makes two hops however many workers there are, and each
 * worker talks to all others.
 *
 * Invariant: in step s of a half a worker sends to the one s + 1 places behind it and receives from
 * the one s + 1 places before it, so that in each step everybody sends to another. In the first
 * half what it sends belongs to the receiver and what it receives to itself, in the second the
 * other way round.
 *
 * The steps of a half need nothing of each other. So who moves their segments in turn sends to all
 * others at the same rate, and is held up by none: were one step made after the other, a worker
 * that lags would keep who sends to it from its next step, where that sender's receiver waits, and
 * would itself come to a step's receiver together with the next sender.
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

static uint32_t half(uint32_t n)
{
    return n - 1;
}

static uint32_t hops(uint32_t n)
{
    (void)n;
    return 1;
}

static struct gw_coll_step step(uint32_t rank, uint32_t n, uint32_t root, uint32_t at,
                                uint64_t count)
{
    (void)root;
    bool is_result = at >= n - 1;
    uint32_t apart = 1 + (is_result ? at - (n - 1) : at);
    uint32_t to = (rank + apart) % n, from = (rank + n - apart) % n;
    uint32_t sent = is_result ? rank : to, received = is_result ? from : rank;
    uint64_t send_first = gw_coll_chunk(sent, n, count);
    uint64_t recv_first = gw_coll_chunk(received, n, count);
    return (struct gw_coll_step){
        .to = to,
        .send_first = send_first,
        .send_count = gw_coll_chunk(sent + 1, n, count) - send_first,
        .from = from,
        .recv_first = recv_first,
        .recv_count = gw_coll_chunk(received + 1, n, count) - recv_first,
        .round = at,
        .merge = is_result     ? GW_COLL_COPY
                 : at + 2 == n ? GW_COLL_COMPLETE
                               : GW_COLL_COMBINE,
    };
}

/* A chunk; the first is the longest. */
static uint64_t largest(uint32_t n, uint64_t count)
{
    return gw_coll_chunk(1, n, count);
}

const struct gw_coll_ops gw_coll_direct = {
    .algo = {.name = "direct",
             .summary = "each worker gets its chunk from all others, and sends them the sums",
             .source = "Li et al. (OSDI 2014)"},
    .kind = GW_COLL_ALLREDUCE,
    .allows = allows,
    .steps = steps,
    .rounds = steps,
    .apart = half,
    .hops = hops,
    .step = step,
    .largest = largest,
};
