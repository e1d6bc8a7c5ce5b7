/* Faults of links, and arrivals in their order; see arrivals.h. */
#include "sim/arrivals.h"

#include <stdlib.h>
#include <string.h>

#include "topo/memory.h"

enum {
    SORT_INSERTION_MAX = 24, /* fewer keys are sorted by insertion alone */
    BUCKET_BITS_MAX = 12,
};

/* One more packet like `pkt`, which shares its payload; NULL when the pool is empty. */
static struct gw_pkt *copy_pkt(struct gw_sim_part *part, const struct gw_pkt *pkt)
{
    struct gw_pkt *copy = gw_pkt_claim(&part->pool);
    if (!copy)
        return NULL;
    *copy = *pkt;
    if (copy->buf != GW_BUF_NONE)
        gw_buf_share(part->pool.bufs, copy->buf);
    return copy;
}

/* Delivers a packet, or lets others overtake it. */
static void deliver_reordered(struct gw_sim_part *part, struct gw_sim_node *node,
                              struct gw_sim_port *port, struct gw_pkt *pkt, gw_time serialisation,
                              gw_time left_at)
{
    const struct gw_sim_port_faults *faults = port->faults;
    if (!faults->reorder_q32 || !gw_prng_chance(&node->prng, faults->reorder_q32)) {
        gw_sim_deliver(part, node, port, pkt, serialisation, left_at);
        return;
    }
    gw_time last_arrival = port->last_arrival;
    gw_sim_deliver(part, node, port, pkt, serialisation, left_at + faults->delay);
    port->last_arrival = last_arrival;
}

void gw_sim_deliver_faulty(struct gw_sim_part *part, struct gw_sim_node *node,
                           struct gw_sim_port *port, struct gw_pkt *pkt, gw_time serialisation,
                           gw_time left_at)
{
    const struct gw_sim_port_faults *faults = port->faults;
    if (faults->down || gw_prng_chance(&node->prng, faults->lose_q32)) {
        part->link_losses++;
        gw_pkt_release(&part->pool, pkt);
        return;
    }
    struct gw_pkt *copy = NULL;
    if (faults->duplicate_q32 && gw_prng_chance(&node->prng, faults->duplicate_q32))
        copy = copy_pkt(part, pkt);
    deliver_reordered(part, node, port, pkt, serialisation, left_at);
    if (copy) {
        part->link_copies++;
        deliver_reordered(part, node, port, copy, serialisation, left_at);
    }
}

/* Both sorts are stable. */
static inline void sort_by_insertion(uint64_t *keys, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        uint64_t key = keys[i], last_equal = key | ((UINT64_C(1) << GW_SIM_INDEX_BITS) - 1);
        uint32_t j = i;
        for (; j > 0 && keys[j - 1] > last_equal; j--)
            keys[j] = keys[j - 1];
        keys[j] = key;
    }
}

/* Scatters `keys` into two to four times as many buckets as there are keys, then finishes by
 * insertion. */
static uint64_t *sort_by_buckets(uint64_t *keys, uint64_t *room, uint32_t count, uint32_t key_bits)
{
    uint32_t ends[1 << BUCKET_BITS_MAX];
    uint32_t bits = 33 - (uint32_t)__builtin_clz(count);
    if (bits > BUCKET_BITS_MAX)
        bits = BUCKET_BITS_MAX;
    uint32_t shift = key_bits - bits;
    for (uint32_t i = 0; i < 1u << bits; i++)
        ends[i] = 0;
    for (uint32_t i = 0; i < count; i++)
        ends[keys[i] >> shift]++;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 1u << bits; i++) {
        uint32_t size = ends[i];
        ends[i] = sum;
        sum += size;
    }
    for (uint32_t i = 0; i < count; i++)
        room[ends[keys[i] >> shift]++] = keys[i];
    sort_by_insertion(room, count);
    return room;
}

void gw_sim_arrivals_take(struct gw_sim_part *part, uint32_t place, struct gw_sim_batch *batch)
{
    struct gw_sim *sim = part->sim;
    uint32_t total = 0;
    for (uint32_t p = 0; p < sim->part_count; p++)
        total += gw_sim_calendar_inbox(&sim->parts[p], part->row, place)->count;
    if (total > batch->room_keys) {
        free(batch->room);
        batch->room_keys = 2 * total;
        batch->room = gw_memory_aligned(2 * (size_t)batch->room_keys * sizeof(*batch->room));
    }
    uint32_t filled = 0;
    for (uint32_t p = 0; p < sim->part_count; p++) {
        struct gw_sim_inbox *inbox = gw_sim_calendar_inbox(&sim->parts[p], part->row, place);
        if (inbox->count)
            memcpy(batch->room + filled, inbox->keys, inbox->count * sizeof(*batch->room));
        filled += inbox->count;
        inbox->count = 0;
    }
    batch->count = total;
    batch->keys = batch->room;
    if (total <= SORT_INSERTION_MAX) {
        sort_by_insertion(batch->room, total);
        return;
    }
    uint32_t time_bits = 64 - (uint32_t)__builtin_clzll(sim->window - 1);
    batch->keys = sort_by_buckets(batch->room, batch->room + batch->room_keys, total,
                                  time_bits + sim->port_bits + GW_SIM_INDEX_BITS);
}
