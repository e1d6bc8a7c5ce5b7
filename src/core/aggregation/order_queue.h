/*
 * What a parameter server is to send: fragments, each to one address or to all workers.
 *
 * Where no switch multiplies, what is for all goes to one worker after another. Several fragments
 * then go to the first worker, the same ones to the second, and so on, so that they travel as
 * trains.
 */
#ifndef GW_CORE_ORDER_QUEUE_H
#define GW_CORE_ORDER_QUEUE_H

#include <stddef.h>

#include "base/index_queue.h"

struct gw_order {
    uint32_t seq;
    uint32_t dst;
    uint8_t flags; /* enum gw_agg_flag, besides those of the result */
    bool is_to_all;
};

struct gw_order_queue {
    struct gw_order *orders;
    struct gw_index_queue queue; /* over them */
    const uint32_t *addresses;   /* of all workers, by rank */
    uint32_t world;
    uint32_t train; /* orders that go to one worker before the next has its turn */
    uint32_t batch; /* orders at the head that are on their way to all; 0: none */
    uint32_t at;    /* of them, the next one to `rank` */
    uint32_t rank;
};

/* Bytes of memory for `room` orders. */
size_t gw_order_queue_size(uint32_t room);

/* Makes an empty queue. `addresses` is read when orders are taken. */
void gw_order_queue_init(struct gw_order_queue *queue, void *memory, uint32_t room,
                         const uint32_t *addresses, uint32_t world, uint32_t train);

void gw_order_queue_clear(struct gw_order_queue *queue);

static inline bool gw_order_queue_is_empty(const struct gw_order_queue *queue)
{
    return queue->queue.count == 0;
}

/* Adds an order; `flags` of one to all get GW_AGG_UNICAST. False: there is no room. */
bool gw_order_queue_push(struct gw_order_queue *queue, uint32_t seq, uint32_t dst, uint8_t flags);
bool gw_order_queue_push_all(struct gw_order_queue *queue, uint32_t seq, uint8_t flags);

/* The next order, with its destination; false when there is none. */
bool gw_order_queue_next(struct gw_order_queue *queue, struct gw_order *next);

/* Done with what gw_order_queue_next() gave. */
void gw_order_queue_pop(struct gw_order_queue *queue);

#endif
