/* Windows to come: their length, who runs in them, and what arrives there; see calendar.h. */
#include "sim/calendar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "topo/memory.h"

enum {
    ROWS_MAX = 4096, /* windows that a packet may be under way */
    ROOM_MIN = 16,   /* of an inbox that has any */
};

/* Inbox headers beyond this mean that the latencies of the links are too far apart. */
static const size_t INBOX_BYTES_MAX = (size_t)1 << 30;

/* Longest time that a packet can be under way to the next node. */
static gw_time longest_flight(const struct gw_sim *sim)
{
    const struct gw_scenario *scenario = sim->scenario;
    const struct gw_topo *topo = &scenario->topo;
    gw_q16 slowest = GW_Q16_ONE;
    gw_time delay = 0;
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        const struct gw_fault *fault = &scenario->faults[i];
        if (fault->kind == GW_FAULT_LINK_RATE && fault->factor < slowest)
            slowest = fault->factor;
        delay = fault->delay > delay ? fault->delay : delay;
    }
    gw_time serialisation = 0;
    for (uint32_t i = 0; i < topo->link_count; i++)
        for (uint32_t side = 0; side < 2; side++) {
            gw_time time =
                gw_serialisation(gw_byte_time_from_bps(topo->links[i].side[side].rate_bps),
                                 gw_scenario_packet_max(scenario));
            if (time > serialisation)
                serialisation = time;
        }
    serialisation = serialisation * (uint64_t)GW_Q16_ONE / (uint64_t)slowest + 1;
    gw_time jitter = (gw_time)gw_q16_mul((gw_q16)serialisation, scenario->host.jitter);
    return gw_topo_latency_max(topo) + serialisation * scenario->host.train + 2 * jitter + delay;
}

static uint32_t ports_max(const struct gw_topo *topo)
{
    uint32_t most = 1;
    for (uint32_t id = 0; id < topo->node_count; id++)
        if (topo->nodes[id].port_count > most)
            most = topo->nodes[id].port_count;
    return most;
}

int gw_sim_calendar_open(struct gw_sim *sim, char *why)
{
    const struct gw_topo *topo = &sim->scenario->topo;
    sim->port_bits = gw_sim_bits(ports_max(topo));
    gw_time key_range = UINT64_C(1) << (64 - GW_SIM_INDEX_BITS - sim->port_bits);
    sim->window = gw_topo_latency_min(topo);
    if (sim->window > key_range)
        sim->window = key_range;
    if (sim->window < GW_NS) {
        snprintf(why, GW_WHY_MAX,
                 "topology: the smallest link latency must be at least 1 ns to simulate");
        return GW_ERR_RANGE;
    }
    sim->window_inverse = UINT64_MAX / sim->window;
    uint64_t rows = UINT64_C(1) << gw_sim_bits(longest_flight(sim) / sim->window + 3);
    size_t headers = rows * sim->node_count * sizeof(struct gw_sim_inbox) * sim->part_count;
    if (rows > ROWS_MAX || headers > INBOX_BYTES_MAX) {
        snprintf(why, GW_WHY_MAX,
                 "topology: the longest packet flight is %llu times the smallest link latency; "
                 "raise the smallest latency, or lower the delay of faults",
                 (unsigned long long)rows);
        return GW_ERR_RANGE;
    }
    sim->row_mask = (uint32_t)rows - 1;
    sim->words = (uint32_t)gw_bit_words(sim->node_count);
    for (uint32_t p = 0; p < sim->part_count; p++) {
        struct gw_sim_part *part = &sim->parts[p];
        uint32_t places = part->last - part->first;
        part->rows = gw_memory_aligned(rows * sizeof(*part->rows));
        for (uint64_t r = 0; r < rows; r++)
            part->rows[r] = (struct gw_sim_row){
                .inboxes = gw_memory_pool_take(&sim->memory,
                                               sim->node_count * sizeof(struct gw_sim_inbox)),
                .active = gw_memory_pool_take(&sim->memory, sim->words * sizeof(uint64_t)),
            };
        part->woken = gw_memory_aligned(sim->words * sizeof(*part->woken));
        part->places = gw_memory_aligned(places * sizeof(*part->places));
        gw_heap_init(&part->wakes, gw_memory_aligned(gw_heap_size(places)), places);
    }
    return GW_OK;
}

void gw_sim_calendar_close(struct gw_sim *sim)
{
    for (uint32_t p = 0; p < sim->part_count; p++) {
        struct gw_sim_part *part = &sim->parts[p];
        free(part->rows);
        free(part->woken);
        free(part->wakes.entries);
        free(part->places);
    }
}

void gw_sim_calendar_grow(struct gw_sim_part *part, struct gw_sim_inbox *inbox)
{
    uint32_t room = inbox->room ? 2 * inbox->room : ROOM_MIN;
    uint64_t *keys = gw_memory_pool_take(&part->memory, room * sizeof(*keys));
    if (inbox->count)
        memcpy(keys, inbox->keys, inbox->count * sizeof(*keys));
    inbox->keys = keys;
    inbox->room = room;
}

uint32_t gw_sim_calendar_enter(struct gw_sim_part *part)
{
    struct gw_sim *sim = part->sim;
    part->row = (uint32_t)sim->window_index & sim->row_mask;
    part->window_start = sim->window_index * sim->window;
    while (gw_heap_next(&part->wakes) < part->window_start + sim->window) {
        uint32_t local = gw_heap_first(&part->wakes);
        gw_heap_set(&part->wakes, local, GW_TIME_NEVER);
        uint32_t place = part->first + local;
        gw_bit_set(part->woken, place);
    }
    if (part->first == part->last)
        return 0;
    uint32_t count = 0;
    for (uint32_t word = part->first / 64; word <= (part->last - 1) / 64; word++) {
        /* A word at the border of two partitions belongs to both: each takes its own bits. */
        uint64_t own = UINT64_MAX;
        if (word == part->first / 64)
            own &= UINT64_MAX << (part->first % 64);
        if (word == part->last / 64)
            own &= ~(UINT64_MAX << (part->last % 64));
        uint64_t bits = part->woken[word];
        part->woken[word] = 0;
        for (uint32_t p = 0; p < sim->part_count; p++)
            bits |= sim->parts[p].rows[part->row].active[word];
        for (bits &= own; bits; bits &= bits - 1)
            part->places[count++] = word * 64 + (uint32_t)__builtin_ctzll(bits);
    }
    return count;
}

void gw_sim_calendar_leave(struct gw_sim *sim)
{
    size_t row = (size_t)(sim->window_index & sim->row_mask);
    for (uint32_t p = 0; p < sim->part_count; p++)
        for (uint32_t word = 0; word < sim->words; word++)
            sim->parts[p].rows[row].active[word] = 0;
}

uint64_t gw_sim_calendar_ahead(const struct gw_sim *sim)
{
    uint64_t nearest = UINT64_MAX;
    for (uint32_t ahead = 1; ahead <= sim->row_mask && nearest == UINT64_MAX; ahead++) {
        size_t row = (size_t)((sim->window_index + ahead) & sim->row_mask);
        for (uint32_t p = 0; p < sim->part_count; p++)
            for (uint32_t word = 0; word < sim->words; word++)
                if (sim->parts[p].rows[row].active[word])
                    nearest = ahead;
    }
    for (uint32_t p = 0; p < sim->part_count; p++) {
        gw_time wake = gw_heap_next(&sim->parts[p].wakes);
        if (wake == GW_TIME_NEVER)
            continue;
        uint64_t ahead = wake / sim->window - sim->window_index;
        if (ahead < nearest)
            nearest = ahead;
    }
    return nearest;
}

uint64_t gw_sim_calendar_under_way(const struct gw_sim *sim)
{
    uint64_t count = 0;
    for (uint32_t p = 0; p < sim->part_count; p++)
        for (uint32_t row = 0; row <= sim->row_mask; row++)
            for (uint32_t place = 0; place < sim->node_count; place++)
                count += gw_sim_calendar_inbox(&sim->parts[p], row, place)->count;
    return count;
}
