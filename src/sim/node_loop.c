/*
 * The hot loop: one node in one window.
 *
 * Its arrivals are gathered from the inboxes of all partitions, sorted, and merged with its
 * departures, timers and application events. A departure event exists only while a port has more to
 * send, so a packet costs one arrival and at most one departure.
 */
#include <stdlib.h>

#include "base/align.h"
#include "sim/engine.h"

enum {
    SORT_INSERTION_MAX = 24, /* fewer keys are sorted by insertion alone */
    BUCKET_BITS_MAX = 12,
    PREFETCH_AHEAD = 8,    /* arrivals; a few times the latency of memory at our speed */
    PREFETCH_BYTES = 4096, /* of a node's memory */
};

/*
 * Keys of arrivals: time in the window, input port, packet index. Only the first two order them;
 * the sorts are stable, so equal ones stay in the order in which they were sent.
 */
static inline void sort_by_insertion(uint64_t *keys, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        uint64_t key = keys[i];
        uint32_t j = i;
        for (; j > 0 && keys[j - 1] >> GW_SIM_INDEX_BITS > key >> GW_SIM_INDEX_BITS; j--)
            keys[j] = keys[j - 1];
        keys[j] = key;
    }
}

/* Scatters `keys` into about as many buckets as there are keys, then finishes by insertion. */
static uint64_t *sort_by_buckets(uint64_t *keys, uint64_t *room, uint32_t count, uint32_t key_bits)
{
    uint32_t ends[1 << BUCKET_BITS_MAX];
    uint32_t bits = 32 - (uint32_t)__builtin_clz(count);
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

/* Collects and sorts the arrivals of a place in this window. */
static void take_arrivals(struct gw_sim_part *part, uint32_t place, struct gw_sim_batch *batch)
{
    struct gw_sim *sim = part->sim;
    size_t at = (size_t)part->slot * sim->node_count + place;
    uint32_t total = 0;
    for (uint32_t p = 0; p < sim->part_count; p++)
        total += sim->parts[p].inboxes[at].count;
    if (total > batch->room_keys) {
        free(batch->room);
        batch->room_keys = 2 * total;
        batch->room = gw_sim_alloc(2 * (size_t)batch->room_keys * sizeof(*batch->room));
    }
    uint32_t filled = 0;
    for (uint32_t p = 0; p < sim->part_count; p++) {
        struct gw_sim_inbox *inbox = &sim->parts[p].inboxes[at];
        for (uint32_t i = 0; i < inbox->count; i++)
            batch->room[filled++] = inbox->keys[i];
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

static void schedule_departure(const struct gw_sim *sim, struct gw_sim_node *node, uint16_t port,
                               gw_time at)
{
    uint64_t key = at << sim->port_bits | port;
    uint32_t mask = node->departure_mask;
    uint32_t i = node->departure_head + node->departure_count++;
    /* Usually the newest departure is the latest: equal packets on equal links. */
    for (; i != node->departure_head && node->departures[(i - 1) & mask] > key; i--)
        node->departures[i & mask] = node->departures[(i - 1) & mask];
    node->departures[i & mask] = key;
}

static inline uint64_t hash_event(uint64_t hash, uint64_t a, uint64_t b)
{
    hash = (hash ^ a) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 29 ^ b) * UINT64_C(0xbf58476d1ce4e5b9);
    return hash ^ hash >> 32;
}

/* Puts a packet on its way to the other end of the link; it left the port completely at `left_at`.
 */
static inline void deliver(struct gw_sim_part *part, struct gw_sim_node *node,
                           struct gw_sim_port *port, struct gw_pkt *pkt, gw_time serialisation,
                           gw_time left_at)
{
    struct gw_sim *sim = part->sim;
    gw_time arrival = left_at + port->latency;
    if (node->jitter) {
        gw_time most = (gw_time)gw_q16_mul((gw_q16)serialisation, node->jitter);
        arrival += (gw_prng_next(&node->prng) >> 32) * most >> 32;
        if (arrival <= port->last_arrival)
            arrival = port->last_arrival + 1;
        port->last_arrival = arrival;
    }
    gw_time offset = arrival - part->window_start;
    uint32_t ahead = 0;
    if (offset < 4 * sim->window) {
        for (; offset >= sim->window; ahead++)
            offset -= sim->window;
    } else {
        ahead = (uint32_t)(offset / sim->window);
        offset %= sim->window;
    }
    GW_ASSERT(ahead >= 1 && ahead <= sim->ring_mask);
    uint32_t slot = (part->slot + ahead) & sim->ring_mask;
    struct gw_sim_inbox *inbox = &part->inboxes[(size_t)slot * sim->node_count + port->peer];
    if (inbox->count == inbox->room)
        inbox->keys = gw_sim_grow(inbox->keys, &inbox->room, sizeof(*inbox->keys));
    inbox->keys[inbox->count++] =
        ((offset << sim->port_bits | port->peer_port) << GW_SIM_INDEX_BITS) |
        gw_pkt_index(&part->pool, pkt);
    if (inbox->count == 1)
        gw_sim_activate(part, ahead, port->peer);
}

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
        deliver(part, node, port, pkt, serialisation, left_at);
        return;
    }
    gw_time last_arrival = port->last_arrival;
    deliver(part, node, port, pkt, serialisation, left_at + faults->delay);
    port->last_arrival = last_arrival;
}

/* The same as deliver() on a link with faults: the packet may be lost, copied or late. */
static void deliver_faulty(struct gw_sim_part *part, struct gw_sim_node *node,
                           struct gw_sim_port *port, struct gw_pkt *pkt, gw_time serialisation,
                           gw_time left_at)
{
    const struct gw_sim_port_faults *faults = port->faults;
    if (faults->down || gw_prng_chance(&node->prng, faults->loss_q32)) {
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

/* Pulls an idle port and serialises what it gives. */
static inline void pull(struct gw_sim_part *part, struct gw_sim_node *node, uint16_t index,
                        uint32_t max, gw_time now)
{
    struct gw_sim *sim = part->sim;
    struct gw_sim_port *port = &node->ports[index];
    struct gw_pkt *pkts[GW_SIM_TRAIN_MAX];
    uint32_t result = gw_node_output(node->core, index, pkts, max, now);
    uint32_t count = result & ~GW_OUTPUT_MORE;
    gw_time at = now;
    for (uint32_t i = 0; i < count; i++) {
        struct gw_pkt *pkt = pkts[i];
        gw_time serialisation = gw_serialisation(port->byte_time, pkt->q.size);
        at += serialisation;
        if (__builtin_expect(sim->options.wire, 0) && !gw_sim_survives_wire(part, pkt, at))
            part->changed_by_wire++;
        if (__builtin_expect(port->is_captured, 0))
            gw_capture_packet(sim, node, index, pkt, at);
        if (__builtin_expect(port->is_faulty, 0))
            deliver_faulty(part, node, port, pkt, serialisation, at);
        else
            deliver(part, node, port, pkt, serialisation, at);
    }
    part->hops += count;
    if (__builtin_expect(node->cost != NULL, 0) && at < now + count * node->cost->tx_cost)
        at = now + count * node->cost->tx_cost;
    port->busy_until = at;
    if (result & GW_OUTPUT_MORE) {
        GW_DEBUG_ASSERT(count > 0);
        port->is_scheduled = true;
        schedule_departure(sim, node, index, at);
    }
}

/* Pulls the ports that the last verb made ready, now or when their links are free. */
static inline void serve_ready(struct gw_sim_part *part, struct gw_sim_node *node, uint32_t max,
                               gw_time now)
{
    struct gw_node *core = node->core;
    for (uint32_t i = 0; i < core->ready_count; i++) {
        uint16_t index = core->ready[i];
        struct gw_sim_port *port = &node->ports[index];
        if (port->is_scheduled)
            continue;
        if (port->busy_until <= now) {
            pull(part, node, index, max, now);
        } else {
            port->is_scheduled = true;
            schedule_departure(part->sim, node, index, port->busy_until);
        }
    }
    core->ready_count = 0;
}

/* The earliest of a node's own departures. */
static inline gw_time departure_next(const struct gw_sim *sim, const struct gw_sim_node *node)
{
    return node->departure_count
               ? node->departures[node->departure_head & node->departure_mask] >> sim->port_bits
               : GW_TIME_NEVER;
}

static inline void depart(struct gw_sim_part *part, struct gw_sim_node *node, uint32_t max,
                          gw_time now)
{
    uint64_t key = node->departures[node->departure_head++ & node->departure_mask];
    node->departure_count--;
    uint16_t index = (uint16_t)(key & ((UINT64_C(1) << part->sim->port_bits) - 1));
    node->ports[index].is_scheduled = false;
    pull(part, node, index, max, now);
}

static inline struct gw_pkt *key_pkt(const struct gw_sim_part *part, uint64_t key)
{
    return gw_pkt_at(&part->pool, key & ((UINT64_C(1) << GW_SIM_INDEX_BITS) - 1));
}

/* Fetches the packet whose turn comes a little later than that of arrival `next`. */
static inline void prefetch_ahead(const struct gw_sim_part *part, const uint64_t *keys,
                                  uint32_t next, uint32_t count)
{
    if (next + PREFETCH_AHEAD < count)
        __builtin_prefetch(key_pkt(part, keys[next + PREFETCH_AHEAD]), 1);
}

static inline void arrive(struct gw_sim_part *part, struct gw_sim_node *node, uint64_t key,
                          bool has_cost, gw_time now)
{
    struct gw_pkt *pkt = key_pkt(part, key);
    uint16_t port =
        (uint16_t)(key >> GW_SIM_INDEX_BITS & ((UINT64_C(1) << part->sim->port_bits) - 1));
    node->hash = hash_event(node->hash, now << 12 ^ port,
                            ((uint64_t)pkt->seq << 32 | pkt->flow) ^ (uint64_t)pkt->src << 17 ^
                                (uint64_t)pkt->entropy << 40 ^ (uint64_t)pkt->q.size << 8 ^
                                (uint64_t)pkt->q.kind << 4 ^ pkt->q.ecn);
    part->arrivals++;
    if (__builtin_expect(part->rtt_counts != NULL, 0) && pkt->q.kind == GW_PKT_ACK &&
        node->endpoint)
        gw_sim_rtt_add(part, pkt, now);
    if (has_cost)
        gw_sim_host_put(part, node, port, pkt, now);
    else
        gw_node_input(node->core, port, &pkt, 1, now);
}

/* Sees to it that the node runs again when it must. */
static inline void schedule_node(struct gw_sim_part *part, uint32_t place, gw_time next)
{
    if (next == GW_TIME_NEVER)
        return;
    if (next < part->window_start + 2 * part->sim->window)
        gw_sim_activate(part, 1, place);
    else if (next < gw_heap_deadline(&part->wakes, place - part->first))
        gw_heap_set(&part->wakes, place - part->first, next);
}

static gw_time earlier(gw_time a, gw_time b)
{
    return a < b ? a : b;
}

/* The merge of a switch: no application. */
static gw_time run_switch(struct gw_sim_part *part, struct gw_sim_node *node, const uint64_t *keys,
                          uint32_t count)
{
    const struct gw_sim *sim = part->sim;
    const uint32_t time_shift = GW_SIM_INDEX_BITS + sim->port_bits;
    const gw_time end = part->window_start + sim->window;
    uint32_t next = 0;
    for (;;) {
        gw_time departure = departure_next(sim, node);
        gw_time arrival =
            next < count ? part->window_start + (keys[next] >> time_shift) : GW_TIME_NEVER;
        gw_time timer = gw_node_deadline(node->core);
        gw_time now = earlier(earlier(departure, arrival), timer);
        if (now >= end)
            return now;
        part->events++;
        if (departure == now) {
            depart(part, node, 1, now);
            continue; /* a switch that sends makes no other port ready */
        }
        if (arrival == now) {
            prefetch_ahead(part, keys, next, count);
            arrive(part, node, keys[next++], false, now);
        } else {
            gw_node_expire(node->core, now);
        }
        serve_ready(part, node, 1, now);
    }
}

/*
 * The merge of a host, with timers and the application. `has_cost` is known where this is called,
 * so that hosts without a cost do not pay for it.
 */
static inline __attribute__((always_inline)) gw_time run_host(struct gw_sim_part *part,
                                                              struct gw_sim_node *node,
                                                              const uint64_t *keys, uint32_t count,
                                                              const bool has_cost)
{
    const struct gw_sim *sim = part->sim;
    const uint32_t time_shift = GW_SIM_INDEX_BITS + sim->port_bits;
    const gw_time end = part->window_start + sim->window;
    const uint32_t max = sim->scenario->host.train;
    uint32_t next = 0;
    for (;;) {
        gw_time departure = departure_next(sim, node);
        gw_time arrival =
            next < count ? part->window_start + (keys[next] >> time_shift) : GW_TIME_NEVER;
        gw_time timer = gw_node_deadline(node->core);
        gw_time start = gw_sim_app_next(node);
        gw_time now = earlier(earlier(departure, arrival), earlier(timer, start));
        gw_time served = has_cost ? gw_sim_host_next(node->cost) : GW_TIME_NEVER;
        if (has_cost)
            now = earlier(now, served);
        if (now >= end)
            return now;
        part->events++;
        if (departure == now) {
            depart(part, node, max, now);
        } else if (has_cost && served == now) {
            gw_sim_host_serve(part, node, now);
        } else if (arrival == now) {
            prefetch_ahead(part, keys, next, count);
            arrive(part, node, keys[next++], has_cost, now);
        } else if (timer == now) {
            gw_node_expire(node->core, now);
        } else {
            gw_sim_app_start(part, node, now);
        }
        if (node->core->event_count) {
            node->hash = hash_event(node->hash, now, node->core->event_count);
            gw_sim_app_poll(part, node, now);
        }
        serve_ready(part, node, max, now);
    }
}

static void run_place(struct gw_sim_part *part, uint32_t place, const struct gw_sim_batch *batch)
{
    struct gw_sim_node *node = &part->sim->nodes[place];
    gw_time next;
    if (!node->endpoint)
        next = run_switch(part, node, batch->keys, batch->count);
    else if (!node->cost)
        next = run_host(part, node, batch->keys, batch->count, false);
    else
        next = run_host(part, node, batch->keys, batch->count, true);
    schedule_node(part, place, next);
}

static void prefetch_range(const void *memory, size_t size)
{
    for (size_t i = 0; i < size; i += GW_CACHE_LINE)
        __builtin_prefetch((const char *)memory + i, 1);
}

/* First step of fetching a place: what leads to the rest. */
static void prefetch_place(const struct gw_sim_part *part, uint32_t place)
{
    const struct gw_sim *sim = part->sim;
    prefetch_range(&sim->nodes[place], sizeof(sim->nodes[place]));
    for (uint32_t p = 0; p < sim->part_count; p++)
        __builtin_prefetch(&sim->parts[p].inboxes[(size_t)part->slot * sim->node_count + place], 1);
}

/* Second step: keys, links, and the front of the core node's memory, which is its busiest part. */
static void prefetch_state(const struct gw_sim_part *part, uint32_t place)
{
    const struct gw_sim *sim = part->sim;
    const struct gw_sim_node *node = &sim->nodes[place];
    for (uint32_t p = 0; p < sim->part_count; p++) {
        const struct gw_sim_inbox *inbox =
            &sim->parts[p].inboxes[(size_t)part->slot * sim->node_count + place];
        prefetch_range(inbox->keys, inbox->count * sizeof(*inbox->keys));
    }
    uint32_t ports = node->departure_mask + 1;
    prefetch_range(node->departures, ports * sizeof(*node->departures));
    prefetch_range(node->ports, ports * sizeof(*node->ports));
    prefetch_range(node->memory,
                   node->memory_size < PREFETCH_BYTES ? node->memory_size : PREFETCH_BYTES);
    prefetch_range(node->routes, node->routes_size < PREFETCH_BYTES ? node->routes_size : 0);
}

/* Third step: the arrivals in order, and the first packets. */
static void prepare_place(struct gw_sim_part *part, uint32_t place, struct gw_sim_batch *batch)
{
    take_arrivals(part, place, batch);
    for (uint32_t i = 0; i < batch->count && i < PREFETCH_AHEAD; i++)
        __builtin_prefetch(key_pkt(part, batch->keys[i]), 1);
}

/*
 * The state of all nodes is far larger than the caches near a core, and each node runs for a
 * microsecond or so per window. So while one runs, the next three are being fetched.
 */
void gw_sim_run_places(struct gw_sim_part *part, uint32_t count)
{
    enum {
        STEPS = 3,
    };
    const uint32_t *places = part->places;
    for (uint32_t i = 0; i < count + STEPS; i++) {
        if (i < count)
            prefetch_place(part, places[i]);
        if (i >= 1 && i - 1 < count)
            prefetch_state(part, places[i - 1]);
        if (i >= 2 && i - 2 < count)
            prepare_place(part, places[i - 2], &part->batches[i % 2]);
        if (i >= STEPS)
            run_place(part, places[i - STEPS], &part->batches[(i - 1) % 2]);
    }
}
