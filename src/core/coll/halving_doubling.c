/*
 * Recursive halving and doubling, also called butterfly (Rabenseifner, ICCS 2004; Thakur et al.,
 * IJHPCA 2005): log n steps in which pairs exchange halves of what they still sum, then log n in
 * which they exchange the sums. As many bytes as a ring in far fewer steps; every step is a
 * permutation of the workers. For powers of two.
 *
 * Invariant: before halving step s a worker sums the 2^(log n - s) chunks whose numbers agree with
 * its rank in the upper s bits; after the last, its own.
 */
#include "core/coll/coll.h"

static bool allows(uint32_t n)
{
    return n >= 2 && (n & (n - 1)) == 0;
}

static uint32_t log2_of(uint32_t n)
{
    return (uint32_t)__builtin_ctz(n);
}

static uint32_t steps(uint32_t n)
{
    return 2 * log2_of(n);
}

/* The chunks [first, first + size) as a range of elements. */
static void range_of(uint32_t first, uint32_t size, uint32_t n, uint64_t count,
                     uint64_t *first_element, uint64_t *elements)
{
    *first_element = gw_coll_chunk(first, n, count);
    *elements = gw_coll_chunk(first + size, n, count) - *first_element;
}

static struct gw_coll_step step(uint32_t rank, uint32_t n, uint32_t root, uint32_t at,
                                uint64_t count)
{
    (void)root;
    uint32_t halvings = log2_of(n);
    bool is_halving = at < halvings;
    /* Distance of the partners, and chunks that they exchange. */
    uint32_t size = is_halving ? n >> (at + 1) : 1u << (at - halvings);
    uint32_t own = rank & ~(size - 1), other = own ^ size;
    struct gw_coll_step move = {
        .to = rank ^ size,
        .from = rank ^ size,
        .round = at,
        .merge = at + 1 < halvings    ? GW_COLL_COMBINE
                 : at + 1 == halvings ? GW_COLL_COMPLETE
                                      : GW_COLL_COPY,
    };
    range_of(is_halving ? other : own, size, n, count, &move.send_first, &move.send_count);
    range_of(is_halving ? own : other, size, n, count, &move.recv_first, &move.recv_count);
    return move;
}

/* Half of the chunks; the longest come first. */
static uint64_t largest(uint32_t n, uint64_t count)
{
    return gw_coll_chunk(n / 2, n, count);
}

const struct gw_coll_ops gw_coll_halving_doubling = {
    .algo = {.name = "halving-doubling",
             .summary = "pairs exchange halves to be summed, then the sums; a power of two workers",
             .source = "Rabenseifner (ICCS 2004); Thakur et al. (IJHPCA 2005)"},
    .kind = GW_COLL_ALLREDUCE,
    .allows = allows,
    .steps = steps,
    .rounds = steps,
    .hops = log2_of,
    .step = step,
    .largest = largest,
};
