/*
 * Packets on their way: from the port that they left to the place where they arrive.
 *
 * A packet under way is a key in an inbox of the calendar: when in the window it arrives, at which
 * port, and its index. Keys are ordered by the first two; equal ones stay in the order in which
 * they were sent.
 */
#ifndef GW_SIM_ARRIVALS_H
#define GW_SIM_ARRIVALS_H

#include "sim/calendar.h"
#include "topo/memory.h"

/* Time of arrival, counted from the beginning of the window. */
static inline gw_time gw_sim_key_time(const struct gw_sim *sim, uint64_t key)
{
    return key >> (GW_SIM_INDEX_BITS + sim->port_bits);
}

static inline uint16_t gw_sim_key_port(const struct gw_sim *sim, uint64_t key)
{
    return (uint16_t)(key >> GW_SIM_INDEX_BITS & ((UINT64_C(1) << sim->port_bits) - 1));
}

static inline struct gw_pkt *gw_sim_key_pkt(const struct gw_sim_part *part, uint64_t key)
{
    return gw_pkt_at(&part->pool, key & ((UINT64_C(1) << GW_SIM_INDEX_BITS) - 1));
}

/* When a packet that left the port completely at `left_at` arrives. */
static inline gw_time gw_sim_arrival_of(struct gw_sim_node *node, struct gw_sim_port *port,
                                        gw_time serialisation, gw_time left_at)
{
    gw_time arrival = left_at + port->latency;
    if (node->jitter) {
        gw_time most = (gw_time)gw_q16_mul((gw_q16)serialisation, node->jitter);
        arrival += (gw_prng_next(&node->prng) >> 32) * most >> 32;
        if (arrival <= port->last_arrival)
            arrival = port->last_arrival + 1;
        port->last_arrival = arrival;
    }
    return arrival;
}

/* Puts a packet on its way to the other end of the link; it left the port completely at `left_at`.
 */
static inline void gw_sim_deliver(struct gw_sim_part *part, struct gw_sim_node *node,
                                  struct gw_sim_port *port, struct gw_pkt *pkt,
                                  gw_time serialisation, gw_time left_at)
{
    struct gw_sim *sim = part->sim;
    gw_time offset = gw_sim_arrival_of(node, port, serialisation, left_at) - part->window_start;
    /* The quotient and the remainder by sim->window; a division would take far longer. */
    uint32_t ahead = (uint32_t)((unsigned __int128)offset * sim->window_inverse >> 64);
    offset -= ahead * sim->window;
    if (offset >= sim->window) { /* the inverse is rounded down */
        offset -= sim->window;
        ahead++;
    }
    GW_ASSERT(ahead >= 1 && ahead <= sim->row_mask);
    const struct gw_sim_row *row = gw_sim_calendar_row(part, ahead);
    struct gw_sim_inbox *inbox = &row->inboxes[port->peer];
    if (__builtin_expect(inbox->count == inbox->room, 0))
        gw_sim_calendar_grow(part, inbox);
    inbox->keys[inbox->count++] =
        ((offset << sim->port_bits | port->peer_port) << GW_SIM_INDEX_BITS) |
        gw_pkt_index(&part->pool, pkt);
    /* Most places are marked already, but whether this one is cannot be guessed. */
    gw_sim_calendar_mark(row, port->peer);
}

/* The same on a link with faults: the packet may be lost, copied or late. */
void gw_sim_deliver_faulty(struct gw_sim_part *part, struct gw_sim_node *node,
                           struct gw_sim_port *port, struct gw_pkt *pkt, gw_time serialisation,
                           gw_time left_at);

/* Collects and sorts the arrivals of a place in this window. */
void gw_sim_arrivals_take(struct gw_sim_part *part, uint32_t place, struct gw_sim_batch *batch);

#endif
