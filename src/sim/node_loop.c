/*
 * The hot loop: one node in one window.
 *
 * Its arrivals, in their order (arrivals.h), are merged with its departures, timers and application
 * events. A departure event exists only while a port has more to send, so a packet costs one
 * arrival and at most one departure.
 */
#include "sim/node_loop.h"

#include "base/align.h"
#include "core/switch/switch_forward.h"
#include "sim/arrivals.h"
#include "sim/capture.h"
#include "sim/departures.h"
#include "sim/host_cost.h"
#include "sim/rtt.h"
#include "sim/watch.h"
#include "sim/wire_check.h"

enum {
    PREFETCH_AHEAD = 8,     /* arrivals; a few times the latency of memory at our speed */
    FORESEE_AHEAD = 4,      /* likewise: what a host's arrivals lead to, once they are there */
    PREFETCH_HOST = 1024,   /* bytes of a host's memory: what most packets touch */
    PREFETCH_SWITCH = 4096, /* of a switch's: its ports, too */
};

static inline uint64_t hash_event(uint64_t hash, uint64_t a, uint64_t b)
{
    hash = (hash ^ a) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 29 ^ b) * UINT64_C(0xbf58476d1ce4e5b9);
    return hash ^ hash >> 32;
}

/* Puts a packet on its way that left an unusual port completely `at`, `now` being the time of the
 * train's first bit. */
static __attribute__((noinline)) void send_with_extras(struct gw_sim_part *part,
                                                       struct gw_sim_node *node, uint16_t index,
                                                       struct gw_pkt *pkt, gw_time now, gw_time at)
{
    struct gw_sim_port *port = &node->ports[index];
    gw_time serialisation = gw_serialisation(port->byte_time, pkt->q.size);
    if (port->extras & GW_SIM_PORT_WIRE && !gw_sim_survives_wire(part, pkt, at))
        part->changed_by_wire++;
    if (port->extras & GW_SIM_PORT_WATCHED)
        gw_sim_watch_left(part->sim, pkt, now);
    if (port->extras & GW_SIM_PORT_CAPTURED)
        gw_capture_packet(part->sim, node, index, pkt, at);
    if (port->extras & GW_SIM_PORT_FAULTY)
        gw_sim_deliver_faulty(part, node, port, pkt, serialisation, at);
    else
        gw_sim_deliver(part, node, port, pkt, serialisation, at);
}

/* A host's port sends: what it gives is serialised and put on its way. Returns its next departure.
 */
static inline uint64_t send_train(struct gw_sim_part *part, struct gw_sim_node *node,
                                  uint16_t index, uint32_t max, gw_time now)
{
    struct gw_sim_port *port = &node->ports[index];
    struct gw_pkt *pkts[GW_SIM_TRAIN_MAX];
    uint32_t result = gw_node_output(node->core, index, pkts, max, now);
    uint32_t count = result & ~GW_OUTPUT_MORE;
    gw_time at = now;
    gw_time free_at = 0;
    if (__builtin_expect(node->cost != NULL, 0))
        free_at = now + gw_sim_host_tx_time(node->cost, pkts, count);
    for (uint32_t i = 0; i < count; i++) {
        gw_time serialisation = gw_serialisation(port->byte_time, pkts[i]->q.size);
        at += serialisation;
        if (__builtin_expect(port->extras, 0))
            send_with_extras(part, node, index, pkts[i], now, at);
        else
            gw_sim_deliver(part, node, port, pkts[i], serialisation, at);
    }
    part->hops += count;
    if (at < free_at)
        at = free_at;
    port->busy_until = at;
    GW_DEBUG_ASSERT(count > 0 || !(result & GW_OUTPUT_MORE));
    return result & GW_OUTPUT_MORE ? gw_sim_departure_key(part->sim, index, at)
                                   : GW_SIM_DEPARTURE_NONE;
}

/* A packet of a switch is serialised and put on its way. Returns when its last bit has left. */
static inline gw_time send_one(struct gw_sim_part *part, struct gw_sim_node *node, uint16_t index,
                               struct gw_pkt *pkt, gw_time now)
{
    struct gw_sim_port *port = &node->ports[index];
    gw_time serialisation = gw_serialisation(port->byte_time, pkt->q.size);
    gw_time at = now + serialisation;
    part->hops++;
    port->busy_until = at;
    if (__builtin_expect(port->extras, 0))
        send_with_extras(part, node, index, pkt, now, at);
    else
        gw_sim_deliver(part, node, port, pkt, serialisation, at);
    return at;
}

/* A switch's port sends. They send packets one by one and never for a cost. */
static inline uint64_t send_next(struct gw_sim_part *part, struct gw_sim_node *node, uint16_t index,
                                 gw_time now)
{
    struct gw_pkt *pkt;
    uint32_t result = gw_switch_pull(node->sw, index, &pkt, 1, now);
    if (__builtin_expect((result & ~GW_OUTPUT_MORE) == 0, 0))
        return GW_SIM_DEPARTURE_NONE;
    gw_time at = send_one(part, node, index, pkt, now);
    uint64_t key = gw_sim_departure_key(part->sim, index, at);
    return result & GW_OUTPUT_MORE ? key : GW_SIM_DEPARTURE_NONE;
}

/* An idle port sends. Returns its next departure. */
static inline uint64_t send(struct gw_sim_part *part, struct gw_sim_node *node, uint16_t index,
                            uint32_t max, bool is_switch, gw_time now)
{
    uint64_t key =
        is_switch ? send_next(part, node, index, now) : send_train(part, node, index, max, now);
    node->ports[index].is_scheduled = key != GW_SIM_DEPARTURE_NONE;
    return key;
}

/* Lets a port send that has become ready, now or when its link is free. */
static inline void serve(struct gw_sim_part *part, struct gw_sim_node *node, uint16_t index,
                         uint32_t max, bool is_switch, gw_time now)
{
    struct gw_sim_port *port = &node->ports[index];
    if (port->is_scheduled)
        return;
    if (port->busy_until <= now) {
        uint64_t key = send(part, node, index, max, is_switch, now);
        if (key != GW_SIM_DEPARTURE_NONE)
            gw_sim_departure_set(node, index, key);
    } else {
        port->is_scheduled = true;
        gw_sim_departure_set(node, index, gw_sim_departure_key(part->sim, index, port->busy_until));
    }
}

/* The same for all ports that the last verb made ready. */
static inline void serve_ready(struct gw_sim_part *part, struct gw_sim_node *node, uint32_t max,
                               bool is_switch, gw_time now)
{
    struct gw_node *core = node->core;
    for (uint32_t i = 0; i < core->ready_count; i++)
        serve(part, node, core->ready[i], max, is_switch, now);
    core->ready_count = 0;
}

/* When arrival `next` of `count` is due. */
static inline gw_time arrival_next(const struct gw_sim_part *part, const uint64_t *keys,
                                   uint32_t next, uint32_t count)
{
    return next < count ? part->window_start + gw_sim_key_time(part->sim, keys[next])
                        : GW_TIME_NEVER;
}

/* The earliest of a node's own departures. */
static inline gw_time departure_next(const struct gw_sim *sim, const struct gw_sim_node *node)
{
    return gw_sim_departure_time(sim, gw_sim_departure_first(node));
}

static inline void depart(struct gw_sim_part *part, struct gw_sim_node *node, uint32_t max,
                          bool is_switch, gw_time now)
{
    uint16_t index = gw_sim_departure_port(part->sim, gw_sim_departure_first(node));
    gw_sim_departure_set(node, index, send(part, node, index, max, is_switch, now));
}

/* Fetches the packet whose turn comes a little later than that of arrival `next`. */
static inline void prefetch_ahead(const struct gw_sim_part *part, const uint64_t *keys,
                                  uint32_t next, uint32_t count)
{
    uint32_t ahead = next + PREFETCH_AHEAD < count ? next + PREFETCH_AHEAD : next;
    __builtin_prefetch(gw_sim_key_pkt(part, keys[ahead]), 1);
}

/* What the trace knows of an arrival. */
static inline uint64_t hash_arrival(uint64_t hash, const struct gw_pkt *pkt, uint16_t port,
                                    gw_time now)
{
    return hash_event(hash, now << 12 ^ port,
                      ((uint64_t)pkt->seq << 32 | pkt->flow) ^ (uint64_t)pkt->src << 17 ^
                          (uint64_t)pkt->entropy << 40 ^ (uint64_t)pkt->q.size << 8 ^
                          (uint64_t)pkt->q.kind << 4 ^ pkt->q.ecn);
}

/* A packet arrives at a host. */
static inline void arrive(struct gw_sim_part *part, struct gw_sim_node *node, uint64_t key,
                          bool has_cost, gw_time now)
{
    struct gw_pkt *pkt = gw_sim_key_pkt(part, key);
    uint16_t port = gw_sim_key_port(part->sim, key);
    node->hash = hash_arrival(node->hash, pkt, port, now);
    if (__builtin_expect(part->rtt_counts != NULL, 0) && pkt->q.kind == GW_PKT_ACK)
        gw_sim_rtt_add(part, pkt, now);
    if (has_cost)
        gw_sim_host_put(part, node, port, pkt, now);
    else
        gw_node_input(node->core, port, &pkt, 1, now);
}

/* A packet arrives at a switch. Most only pass, and find their link free. */
static inline void forward(struct gw_sim_part *part, struct gw_sim_node *node, uint64_t key,
                           gw_time now)
{
    struct gw_pkt *pkt = gw_sim_key_pkt(part, key);
    uint16_t in = gw_sim_key_port(part->sim, key);
    node->hash = hash_arrival(node->hash, pkt, in, now);
    uint16_t out = GW_PORT_NONE;
    if (__builtin_expect(!node->is_watched, 1))
        out = gw_switch_way(node->sw, pkt);
    if (__builtin_expect(out != GW_PORT_NONE, 1)) {
        if (node->ports[out].busy_until <= now && gw_switch_pass(node->sw, out, pkt)) {
            send_one(part, node, out, pkt, now);
            return;
        }
        if (gw_switch_wait(node->sw, in, out, pkt, now))
            serve(part, node, out, 1, true, now);
        return;
    }
    if (node->is_watched)
        gw_sim_watch_arrived(part, node, in, pkt, now);
    else
        gw_node_input(node->core, in, &pkt, 1, now);
    serve_ready(part, node, 1, true, now);
}

/* Sees to it that the node runs again when it must. */
static inline void schedule_node(struct gw_sim_part *part, uint32_t place, gw_time next)
{
    if (next == GW_TIME_NEVER)
        return;
    if (next < part->window_start + 2 * part->sim->window)
        gw_sim_calendar_mark(gw_sim_calendar_row(part, 1), place);
    else
        gw_sim_calendar_wake(part, place, next);
}

static gw_time earlier(gw_time a, gw_time b)
{
    return a < b ? a : b;
}

/* When the node's timer fires: a deadline may be early, and time does not go back. */
static gw_time timer_of(const struct gw_node *core, gw_time now)
{
    gw_time deadline = gw_node_deadline(core);
    return deadline < now ? now : deadline;
}

/* The merge of a switch: no application. */
static __attribute__((noinline)) gw_time
run_switch(struct gw_sim_part *part, struct gw_sim_node *node, const uint64_t *keys, uint32_t count)
{
    const struct gw_sim *sim = part->sim;
    const gw_time end = part->window_start + sim->window;
    uint32_t next = 0;
    gw_time at = part->window_start, arrival = arrival_next(part, keys, next, count);
    for (;;) {
        gw_time departure = departure_next(sim, node);
        gw_time timer = timer_of(node->core, at);
        gw_time now = earlier(earlier(departure, arrival), timer);
        if (now >= end)
            return now;
        at = now;
        part->events++;
        if (departure == now) {
            depart(part, node, 1, true, now);
            continue; /* a switch that sends makes no other port ready */
        }
        if (arrival == now) {
            prefetch_ahead(part, keys, next, count);
            forward(part, node, keys[next++], now);
            arrival = arrival_next(part, keys, next, count);
        } else {
            gw_node_expire(node->core, now);
            serve_ready(part, node, 1, true, now);
        }
    }
}

/* When a host that may sleep does what is due at `at`. */
static inline gw_time awake(const struct gw_sim_node *node, bool has_cost, gw_time at)
{
    return has_cost ? gw_sim_host_awake(node->cost, at) : at;
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
    const gw_time end = part->window_start + sim->window;
    const uint32_t max = sim->scenario->host.train;
    gw_time at = part->window_start;
    uint32_t next = 0;
    for (;;) {
        gw_time departure = awake(node, has_cost, departure_next(sim, node));
        gw_time arrival = arrival_next(part, keys, next, count);
        gw_time timer = awake(node, has_cost, timer_of(node->core, at));
        gw_time start = awake(node, has_cost, gw_sim_app_next(&node->app));
        gw_time now = earlier(earlier(departure, arrival), earlier(timer, start));
        gw_time served = has_cost ? gw_sim_host_next(node->cost) : GW_TIME_NEVER;
        if (has_cost)
            now = earlier(now, served);
        if (now >= end)
            return now;
        at = now;
        part->events++;
        if (departure == now) {
            depart(part, node, max, false, now);
        } else if (has_cost && served == now) {
            gw_sim_host_serve(part, node, now);
        } else if (arrival == now) {
            prefetch_ahead(part, keys, next, count);
            if (next + FORESEE_AHEAD < count)
                gw_endpoint_foresee(node->endpoint,
                                    gw_sim_key_pkt(part, keys[next + FORESEE_AHEAD]));
            arrive(part, node, keys[next++], has_cost, now);
        } else if (timer == now) {
            gw_node_expire(node->core, now);
        } else {
            gw_sim_app_run(part, node, now);
        }
        if (node->core->event_count) {
            node->hash = hash_event(node->hash, now, node->core->event_count);
            gw_sim_app_poll(part, node, now);
        }
        serve_ready(part, node, max, false, now);
    }
}

static __attribute__((noinline)) void run_place(struct gw_sim_part *part, uint32_t place,
                                                const struct gw_sim_batch *batch)
{
    struct gw_sim_node *node = &part->sim->nodes[place];
    gw_time next;
    part->arrivals += batch->count;
    if (!node->endpoint)
        next = run_switch(part, node, batch->keys, batch->count);
    else if (!node->cost)
        next = run_host(part, node, batch->keys, batch->count, false);
    else
        next = run_host(part, node, batch->keys, batch->count, true);
    schedule_node(part, place, next);
}

/* First step of fetching a place: what leads to the rest. */
static void prefetch_place(const struct gw_sim_part *part, uint32_t place)
{
    const struct gw_sim *sim = part->sim;
    gw_prefetch(&sim->nodes[place], sizeof(sim->nodes[place]), GW_PREFETCH_WRITE);
    for (uint32_t p = 0; p < sim->part_count; p++)
        __builtin_prefetch(gw_sim_calendar_inbox(&sim->parts[p], part->row, place), 1);
}

/* Second step: keys, links, and the front of the core node's memory, which is its busiest part. */
static void prefetch_state(const struct gw_sim_part *part, uint32_t place)
{
    const struct gw_sim *sim = part->sim;
    const struct gw_sim_node *node = &sim->nodes[place];
    for (uint32_t p = 0; p < sim->part_count; p++) {
        const struct gw_sim_inbox *inbox = gw_sim_calendar_inbox(&sim->parts[p], part->row, place);
        gw_prefetch(inbox->keys, inbox->count * sizeof(*inbox->keys), GW_PREFETCH_WRITE);
    }
    gw_prefetch(node->departures, 2 * node->departure_room * sizeof(*node->departures),
                GW_PREFETCH_WRITE);
    gw_prefetch(node->ports, node->core->port_count * sizeof(*node->ports), GW_PREFETCH_WRITE);
    size_t most = node->endpoint ? PREFETCH_HOST : PREFETCH_SWITCH;
    gw_prefetch(node->memory, node->memory_size < most ? node->memory_size : most,
                GW_PREFETCH_WRITE);
    gw_prefetch(node->routes, node->routes_size < PREFETCH_SWITCH ? node->routes_size : 0,
                GW_PREFETCH_WRITE);
}

/* Third step: the arrivals in order, and the first packets. */
static void prepare_place(struct gw_sim_part *part, uint32_t place, struct gw_sim_batch *batch)
{
    gw_sim_arrivals_take(part, place, batch);
    for (uint32_t i = 0; i < batch->count && i < PREFETCH_AHEAD; i++)
        __builtin_prefetch(gw_sim_key_pkt(part, batch->keys[i]), 1);
}

/* Fourth step: what packets lead to. */
static void foresee_place(const struct gw_sim_part *part, uint32_t place,
                          const struct gw_sim_batch *batch)
{
    const struct gw_sim_node *node = &part->sim->nodes[place];
    if (node->sw) {
        gw_switch_foresee(node->sw);
        return;
    }
    for (uint32_t i = 0; i < batch->count && i < FORESEE_AHEAD; i++)
        gw_endpoint_foresee(node->endpoint, gw_sim_key_pkt(part, batch->keys[i]));
}

/*
 * The state of all nodes is far larger than the caches near a core, and each node runs for a
 * microsecond or so per window. So while one runs, the next four are being fetched.
 */
void gw_sim_run_places(struct gw_sim_part *part, uint32_t count)
{
    enum {
        STEPS = 4,
    };
    const uint32_t *places = part->places;
    for (uint32_t i = 0; i < count + STEPS; i++) {
        if (i < count)
            prefetch_place(part, places[i]);
        if (i >= 1 && i - 1 < count)
            prefetch_state(part, places[i - 1]);
        if (i >= 2 && i - 2 < count)
            prepare_place(part, places[i - 2], &part->batches[i % 3]);
        if (i >= 3 && i - 3 < count)
            foresee_place(part, places[i - 3], &part->batches[(i - 1) % 3]);
        if (i >= STEPS)
            run_place(part, places[i - STEPS], &part->batches[(i - 2) % 3]);
    }
}
