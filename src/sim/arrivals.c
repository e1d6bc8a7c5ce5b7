/* Faults of links, and arrivals in their order; see arrivals.h. */
#include "sim/arrivals.h"

#include <stdlib.h>

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

/* Inserts a key behind `count` sorted ones, after those that are equal. */
static inline void insert(uint64_t *keys, uint32_t count, uint64_t key)
{
    uint64_t last_equal = key | ((UINT64_C(1) << GW_SIM_INDEX_BITS) - 1);
    uint32_t i = count;
    for (; i > 0 && keys[i - 1] > last_equal; i--)
        keys[i] = keys[i - 1];
    keys[i] = key;
}

/* Sorts by insertion alone; the keys are few. */
static void take_few(const struct gw_sim_part *part, uint32_t place, uint64_t *keys)
{
    const struct gw_sim *sim = part->sim;
    uint32_t count = 0;
    for (uint32_t p = 0; p < sim->part_count; p++) {
        const struct gw_sim_inbox *inbox = gw_sim_calendar_inbox(&sim->parts[p], part->row, place);
        for (uint32_t i = 0; i < inbox->count; i++)
            insert(keys, count++, inbox->keys[i]);
    }
}

/* Scatters `count` keys into two to four times as many buckets, then finishes by insertion. */
static void take_many(const struct gw_sim_part *part, uint32_t place, uint64_t *keys,
                      uint32_t count)
{
    const struct gw_sim *sim = part->sim;
    uint32_t ends[1 << BUCKET_BITS_MAX];
    uint32_t bits = 33 - (uint32_t)__builtin_clz(count);
    if (bits > BUCKET_BITS_MAX)
        bits = BUCKET_BITS_MAX;
    uint32_t time_bits = 64 - (uint32_t)__builtin_clzll(sim->window - 1);
    uint32_t shift = time_bits + sim->port_bits + GW_SIM_INDEX_BITS - bits;
    for (uint32_t i = 0; i < 1u << bits; i++)
        ends[i] = 0;
    for (uint32_t p = 0; p < sim->part_count; p++) {
        const struct gw_sim_inbox *inbox = gw_sim_calendar_inbox(&sim->parts[p], part->row, place);
        for (uint32_t i = 0; i < inbox->count; i++)
            ends[inbox->keys[i] >> shift]++;
    }
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 1u << bits; i++) {
        uint32_t size = ends[i];
        ends[i] = sum;
        sum += size;
    }
    for (uint32_t p = 0; p < sim->part_count; p++) {
        const struct gw_sim_inbox *inbox = gw_sim_calendar_inbox(&sim->parts[p], part->row, place);
        for (uint32_t i = 0; i < inbox->count; i++)
            keys[ends[inbox->keys[i] >> shift]++] = inbox->keys[i];
    }
    for (uint32_t i = 1; i < count; i++)
        insert(keys, i, keys[i]);
}

void gw_sim_arrivals_take(struct gw_sim_part *part, uint32_t place, struct gw_sim_batch *batch)
{
    struct gw_sim *sim = part->sim;
    uint32_t total = 0;
    for (uint32_t p = 0; p < sim->part_count; p++)
        total += gw_sim_calendar_inbox(&sim->parts[p], part->row, place)->count;
    if (total > batch->room) {
        free(batch->keys);
        batch->room = 2 * total;
        batch->keys = gw_memory_aligned((size_t)batch->room * sizeof(*batch->keys));
    }
    batch->count = total;
    if (total <= SORT_INSERTION_MAX)
        take_few(part, place, batch->keys);
    else
        take_many(part, place, batch->keys, total);
    for (uint32_t p = 0; p < sim->part_count; p++)
        gw_sim_calendar_inbox(&sim->parts[p], part->row, place)->count = 0;
}
