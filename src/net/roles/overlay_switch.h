/*
 * A switch on the overlay: the core's switch with an aggregation stage, whose ports open when
 * neighbours come and close when they go.
 *
 * Without a rate a port sends what the datapath takes, and its queue only evens out what that
 * pushes back: no marks, no trimming. With a rate it is a link of that speed, and packets wait at
 * it by a queue discipline.
 */
#ifndef GW_NET_OVERLAY_SWITCH_H
#define GW_NET_OVERLAY_SWITCH_H

#include "core/qdisc/qdisc.h"
#include "core/switch/switch.h"
#include "net/attach/groups.h"
#include "net/roles/overlay.h"

/* The longest round trip that announcements wait for, unless the config says how long: neighbours
 * say what they have measured, and whoever lied would keep other jobs' ports low for as long. */
#define GW_OVERLAY_HOLD_RTT_MAX (100 * GW_MS)

/* How a switch makes room for announced bursts (core/switch/switch_notice.h). */
struct gw_overlay_notices {
    bool enable;
    uint32_t floor; /* packets */
    gw_time hold;   /* 0: four of the longest round trip that its neighbours have measured, up to
                       GW_OVERLAY_HOLD_RTT_MAX, and the time of a full queue */
    gw_q16 share;
    gw_time save;           /* 0: four times `hold` */
    uint32_t jobs;          /* that are known at a port, for each link */
    uint32_t announcements; /* open at the switch at the same time */
};

struct gw_overlay_switch_cfg {
    struct gw_loop *loop;
    struct gw_pkt_pool *pool;
    uint32_t address;
    uint16_t ports;       /* 2 and more; port 0 is for what is above: a switch, or the server */
    bool has_uplink;      /* what is not known leaves by port 0 */
    uint32_t hdr;         /* bytes of IP, UDP and our header */
    uint32_t mtu;         /* payload bytes of a full packet */
    uint32_t aggregators; /* 0: it adds up nothing */
    uint32_t jobs_max;
    const struct gw_tenants *tenants; /* who share the places of jobs; NULL: nobody; copied */
    uint32_t job_share; /* aggregators that each job is guaranteed; 0: an equal part */
    const struct gw_qdisc_ops *qdisc;   /* of each port; NULL: fifo */
    const union gw_algo_cfg *qdisc_cfg; /* of the discipline; NULL: its defaults; copied */
    uint32_t queue_bytes;               /* of each port */
    struct gw_shared_buffer shared;     /* by all ports */
    uint64_t rate_bps;                  /* of each port; 0: as the datapath */
    uint16_t groups;                    /* multicast groups of the station */
    uint16_t first_group;               /* number of the first for the loop */
    struct gw_overlay_notices notices;  /* of bursts; needs a rate and a `qdisc` that marks */
    uint64_t seed;
};

struct gw_overlay_switch;

/* Returns 0 or GW_ERR_NO_MEMORY. */
int gw_overlay_switch_open(const struct gw_overlay_switch_cfg *cfg,
                           struct gw_overlay_switch **result);

/* After the loop is closed: its packets go with the pool. */
void gw_overlay_switch_close(struct gw_overlay_switch *own);

/* Its number in the loop. */
uint16_t gw_overlay_switch_node(const struct gw_overlay_switch *own);

/*
 * A neighbour has come: gives it a port and links it; `is_above` means port 0. One that had a port
 * keeps it. Returns 0; GW_ERR_NO_ROOM (no port, or no room for its address); or GW_ERR_INVALID (the
 * address hangs on another port).
 */
int gw_overlay_switch_attach(struct gw_overlay_switch *own, uint16_t peer, uint32_t address,
                             bool is_host, bool is_above);

/*
 * Neighbour `peer` hears multicast group `group`, a number for the loop: from now on a result for
 * it and others who hear it leaves once. GW_GROUP_NONE: it hears none.
 */
void gw_overlay_switch_hear(struct gw_overlay_switch *own, uint16_t peer, uint16_t group);

/* Tells the switches above, again, who is below: from time to time, since that may be lost. */
void gw_overlay_switch_announce(struct gw_overlay_switch *own);

/* The neighbour has gone: closes its port. */
void gw_overlay_switch_detach(struct gw_overlay_switch *own, uint16_t peer);

/* Opens a port for another node of the same loop; `at` is that node's port. Returns as
 * gw_overlay_switch_attach(). */
int gw_overlay_switch_join(struct gw_overlay_switch *own, struct gw_loop_port at, uint32_t address,
                           bool is_above);

const struct gw_switch *gw_overlay_switch_core(const struct gw_overlay_switch *own);

/* The memory of its sums; NULL: it adds up nothing. */
const struct gw_aggregate *gw_overlay_switch_aggregate(const struct gw_overlay_switch *own);

/* The number of ports in use. */
uint32_t gw_overlay_switch_open_ports(const struct gw_overlay_switch *own);

/*
 * The neighbours' longest round trip by way of this switch, hosts included and without queues, as
 * it is known now; to be called from time to time. Until then it is that of hosts alone.
 */
void gw_overlay_switch_set_rtt(struct gw_overlay_switch *own, gw_time rtt);

/* How old announcements become; 0: there is no stage for them. */
gw_time gw_overlay_switch_hold(const struct gw_overlay_switch *own);

/* Its ports, opened or not, and those of groups. */
uint16_t gw_overlay_switch_ports(const struct gw_overlay_switch *own);

/* What all ports together have done since it was opened. */
struct gw_port_stats gw_overlay_switch_queues(const struct gw_overlay_switch *own);

#endif
