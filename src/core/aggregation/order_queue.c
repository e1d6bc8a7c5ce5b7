/* What a parameter server is to send; see order_queue.h. */
#include "core/aggregation/order_queue.h"

#include "core/pkt.h"

size_t gw_order_queue_size(uint32_t room)
{
    return room * sizeof(struct gw_order);
}

void gw_order_queue_init(struct gw_order_queue *queue, void *memory, uint32_t room,
                         const uint32_t *addresses, uint32_t world, uint32_t train)
{
    *queue = (struct gw_order_queue){
        .orders = memory,
        .addresses = addresses,
        .world = world,
        .train = train,
    };
    gw_index_queue_init(&queue->queue, room);
}

void gw_order_queue_clear(struct gw_order_queue *queue)
{
    gw_index_queue_clear(&queue->queue);
    queue->batch = 0;
}

static bool push(struct gw_order_queue *queue, struct gw_order order)
{
    if (gw_index_queue_is_full(&queue->queue))
        return false;
    queue->orders[gw_index_queue_push(&queue->queue)] = order;
    return true;
}

bool gw_order_queue_push(struct gw_order_queue *queue, uint32_t seq, uint32_t dst, uint8_t flags)
{
    return push(queue, (struct gw_order){.seq = seq, .dst = dst, .flags = flags});
}

bool gw_order_queue_push_all(struct gw_order_queue *queue, uint32_t seq, uint8_t flags)
{
    return push(queue,
                (struct gw_order){.seq = seq, .flags = flags | GW_AGG_UNICAST, .is_to_all = true});
}

static const struct gw_order *order_at(const struct gw_order_queue *queue, uint32_t at)
{
    return &queue->orders[gw_index_queue_at(&queue->queue, at)];
}

/* Takes as many orders to all as follow each other, up to a train of them. */
static void begin_batch(struct gw_order_queue *queue)
{
    queue->at = queue->rank = 0;
    while (queue->batch < queue->queue.count && queue->batch < queue->train &&
           order_at(queue, queue->batch)->is_to_all)
        queue->batch++;
}

bool gw_order_queue_next(struct gw_order_queue *queue, struct gw_order *next)
{
    if (gw_order_queue_is_empty(queue))
        return false;
    if (queue->batch == 0)
        begin_batch(queue);
    *next = *order_at(queue, queue->batch ? queue->at : 0);
    if (queue->batch)
        next->dst = queue->addresses[queue->rank];
    return true;
}

void gw_order_queue_pop(struct gw_order_queue *queue)
{
    if (queue->batch == 0) {
        gw_index_queue_pop(&queue->queue);
        return;
    }
    if (++queue->at < queue->batch)
        return;
    queue->at = 0;
    if (++queue->rank < queue->world)
        return;
    gw_index_queue_pop_many(&queue->queue, queue->batch);
    queue->batch = 0;
}
