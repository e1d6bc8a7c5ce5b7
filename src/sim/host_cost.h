/*
 * What packets cost a simulated host: they are given to put when they arrive, and reach the
 * endpoint when serve is called at next. While the host sleeps none does.
 */
#ifndef GW_SIM_HOST_COST_H
#define GW_SIM_HOST_COST_H

#include "core/pause.h"
#include "core/pkt.h"
#include "sim/sim.h"

struct gw_sim_node;
struct gw_sim_part;

/* Its fields are for host_cost.c and the inline functions below. */
struct gw_sim_host_cost {
    gw_time done_at;          /* the front of the queue goes to the endpoint; or never */
    gw_time tell_at;          /* links must be told something; or never */
    gw_time asleep_until;     /* the host does nothing before */
    struct gw_pkt_fifo queue; /* the front is in work */
    gw_time rx_cost;          /* per packet received */
    gw_byte_time rx_byte_time;
    gw_time tx_cost; /* per packet sent: the next one waits */
    gw_byte_time tx_byte_time;
    uint64_t rx_queue;   /* bytes of data; 0: no limit */
    uint64_t data_bytes; /* in the queue */
    uint64_t drops;
    struct gw_pause_meter *meters; /* per port, or NULL: never pauses */
    struct gw_pause_cfg pause;
    uint16_t port_count;
};

/* `cfg` is used during the call only. */
struct gw_sim_host_cost *gw_sim_host_cost_open(const struct gw_host_cost_cfg *cfg, bool is_lossless,
                                               uint16_t port_count);
void gw_sim_host_cost_close(struct gw_sim_host_cost *cost);

/* The host dies with all that waits; returns how many packets that was. */
uint64_t gw_sim_host_cost_crash(struct gw_sim *sim, struct gw_sim_node *node);

/* Adds what it has dropped and paused to the totals. */
void gw_sim_host_cost_count(const struct gw_sim_host_cost *cost, struct gw_sim_totals *totals);

/* The host does nothing until then. */
void gw_sim_host_sleep(struct gw_sim_host_cost *cost, gw_time until);

void gw_sim_host_put(struct gw_sim_part *part, struct gw_sim_node *node, uint16_t port,
                     struct gw_pkt *pkt, gw_time now);
void gw_sim_host_serve(struct gw_sim_part *part, struct gw_sim_node *node, gw_time now);

/* When gw_sim_host_serve() must be called. */
static inline gw_time gw_sim_host_next(const struct gw_sim_host_cost *cost)
{
    return cost->done_at < cost->tell_at ? cost->done_at : cost->tell_at;
}

/* When the host does what is due at `at`. */
static inline gw_time gw_sim_host_awake(const struct gw_sim_host_cost *cost, gw_time at)
{
    return at > cost->asleep_until ? at : cost->asleep_until;
}

/* The least time that a port needs for these packets. */
gw_time gw_sim_host_tx_time(const struct gw_sim_host_cost *cost, struct gw_pkt *const *pkts,
                            uint32_t count);

#endif
