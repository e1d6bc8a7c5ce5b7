/*
 * Recursive doubling (Thakur, Rabenseifner and Gropp, IJHPCA 2005, section 4.5): log n steps, in
 * each of which pairs exchange all that they have, and both combine it. No schedule has fewer
 * steps, but each worker sends the vector log n times; of two workers none sends less. For powers
 * of two.
 *
 * Invariant: before step s the 2^s workers whose ranks agree but for the lower s bits have the same
 * values, bit by bit: each has combined the same two, in one order or the other.
 */
#include "core/coll/coll.h"

static bool allows(uint32_t n)
{
    return n >= 2 && (n & (n - 1)) == 0;
}

static uint32_t steps(uint32_t n)
{
    return (uint32_t)__builtin_ctz(n);
}

static struct gw_coll_step step(uint32_t rank, uint32_t n, uint32_t root, uint32_t at,
                                uint64_t count)
{
    (void)root;
    uint32_t peer = rank ^ 1u << at;
    return (struct gw_coll_step){
        .to = peer,
        .send_count = count,
        .from = peer,
        .recv_count = count,
        .round = at,
        .merge = at + 1 < steps(n) ? GW_COLL_COMBINE : GW_COLL_COMPLETE,
    };
}

static uint64_t largest(uint32_t n, uint64_t count)
{
    (void)n;
    return count;
}

const struct gw_coll_ops gw_coll_doubling = {
    .algo = {.name = "doubling",
             .summary =
                 "pairs exchange all that they have, and both sum it; a power of two workers",
             .source = "Thakur, Rabenseifner and Gropp (IJHPCA 2005)"},
    .kind = GW_COLL_ALLREDUCE,
    .exchanges = true,
    .allows = allows,
    .steps = steps,
    .rounds = steps,
    .hops = steps,
    .step = step,
    .largest = largest,
};
