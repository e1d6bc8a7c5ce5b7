/*
 * The order in which the places of a blast are sent, drawn anew for each: an arithmetic progression
 * modulo their number, with a random start and a random step.
 *
 * Every place is equally likely to be at any turn, also the last ones, which are never sent when
 * less than all is enough (DLCP, Appendix A, needs each gradient to arrive now and then); places
 * that are sent one after the other lie apart. Turn and place follow from each other by a
 * multiplication, so nothing needs to be kept per place.
 *
 * Invariant: the step and the number of places have no common divisor, so each place has one turn.
 */
#ifndef GW_CORE_BLAST_ORDER_H
#define GW_CORE_BLAST_ORDER_H

#include "base/prng.h"

struct gw_blast_order {
    uint32_t total;
    uint32_t start;   /* the place of turn 0 */
    uint32_t step;    /* from the place of a turn to that of the next */
    uint32_t inverse; /* of the step, modulo total */
};

/* The multiplicative inverse of `step` modulo `total`; 0: there is none. */
static inline uint32_t gw_blast_order_inverse(uint32_t step, uint32_t total)
{
    int64_t a = total, b = step, x = 0, y = 1;
    while (b) {
        int64_t q = a / b, rest = a - q * b, next = x - q * y;
        a = b;
        b = rest;
        x = y;
        y = next;
    }
    return a != 1 ? 0 : (uint32_t)(x < 0 ? x + total : x);
}

/* Draws the order of `total` places. */
static inline struct gw_blast_order gw_blast_order_draw(uint32_t total, struct gw_prng *prng)
{
    struct gw_blast_order order = {.total = total};
    order.start = gw_prng_below(prng, total);
    if (total == 1)
        return order;
    /* Neither small nor almost all. Every run of some ten numbers has one that will do. */
    order.step = total / 4 + gw_prng_below(prng, total / 2);
    while (!(order.inverse = gw_blast_order_inverse(order.step, total)))
        order.step = order.step + 1 < total ? order.step + 1 : 1;
    return order;
}

static inline uint32_t gw_blast_order_place(const struct gw_blast_order *order, uint32_t turn)
{
    return (uint32_t)(((uint64_t)turn * order->step + order->start) % order->total);
}

/* The place of the turn after that of `place`; after the last the first. */
static inline uint32_t gw_blast_order_next(const struct gw_blast_order *order, uint32_t place)
{
    const uint32_t left = order->total - order->step;
    return place < left ? place + order->step : place - left;
}

static inline uint32_t gw_blast_order_turn(const struct gw_blast_order *order, uint32_t place)
{
    uint32_t ahead =
        place >= order->start ? place - order->start : place + (order->total - order->start);
    return (uint32_t)((uint64_t)ahead * order->inverse % order->total);
}

#endif
