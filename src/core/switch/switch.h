/*
 * The switch: a node that passes each packet through a row of stages, each of which can be switched
 * off: classify, route, notice, aggregate, queue (switch_stage.h). What a stage does stands in its
 * header.
 *
 * On real sockets there is no table of routes: host addresses are random, the fabric is a tree, and
 * a switch learns where they are (learned.h). What it does not know goes up. A packet never leaves
 * by the port that it came by. Whoever is new below a switch is announced above it, by a packet in
 * its name to GW_ADDRESS_NONE, and everybody when the uplink opens: so whoever has never sent
 * anything can be reached as well.
 *
 * A route is data (struct gw_switch_routes), installed at init and replaced at any time by the
 * control plane. The switch's forwarding latency is the driver's matter: it is folded into the
 * incoming link.
 */
#ifndef GW_CORE_SWITCH_H
#define GW_CORE_SWITCH_H

#include "base/fixed.h"
#include "core/node.h"
#include "core/pause.h"
#include "core/qdisc/qdisc.h"
#include "core/switch/aggregate.h"
#include "core/switch/learned.h"
#include "core/switch/port_stats.h"
#include "core/switch/shared_buffer.h"
#include "core/switch/slots.h"
#include "core/switch/switch_notice.h"
#include "core/switch/switch_route.h"

struct gw_switch_cfg {
    uint16_t port_count; /* at most GW_PORTS_MAX */
    const struct gw_qdisc_ops *qdisc;
    const void *qdisc_cfg;
    const uint32_t *capacity; /* bytes of data per port, port_count of them; read at init only */
    uint32_t trim_size;       /* bytes of a trimmed packet */
    struct gw_shared_buffer shared; /* by the ports, beside the capacity of each */
    struct gw_switch_routes routes; /* the arrays must outlive the switch or its next routes */
    uint32_t learned_max;           /* addresses that it can learn, at least one per port; 0: it
                                       routes by `routes` */
    gw_time learned_idle;           /* an address silent for so long makes room for others */
    uint16_t uplink;                /* learning: port of all else, or GW_PORT_NONE */
    uint32_t train;                 /* packets per train, at most; 0: 1 */
    struct gw_aggregate *aggregate; /* aggregation stage, or NULL; outlives the switch */
    struct gw_slots *slots;         /* stage of slots, or NULL; outlives the switch */
    uint32_t address;               /* of the switch, for job control */
    const bool *is_edge; /* per port: a host hangs on it; NULL: on none; read at init only */
    const struct gw_pause_cfg *lossless; /* holds senders back before a queue is full; NULL: drops.
                                            `capacity` must then have room for what all ports may
                                            hold at xoff, and still receive; read at init only */
    const struct gw_switch_notice_cfg *notice; /* makes room for bursts that are announced; NULL:
                                                  notices change nothing; read at init only */
    uint64_t seed; /* of the ECMP salt, of the marking stream and of tables */
    struct gw_pkt_pool *pool;
};

struct gw_switch_stats {
    uint64_t copies_lost;  /* copies of results that found the pool empty */
    uint64_t copies_saved; /* copies of results that a group made unnecessary */
    uint64_t unroutable;   /* packets without a route: dropped. Those for nobody do not count */
    uint64_t malformed;    /* packets of job control with impossible contents: dropped */
    uint64_t spoofed;      /* in the name of an address that hangs on another port, or from a host
                              under one that is not its own: dropped */
    uint64_t unlearned;    /* no room for their sender's address: dropped */
    uint64_t jobs_idle;    /* jobs forgotten because their server fell silent */
    uint64_t heads;        /* bursts that were announced and came: with a stage of notices */
    uint64_t heads_met;    /* bytes that were queued where they leave, over all of them */
};

struct gw_switch;

/* Bytes of memory that a switch needs. */
size_t gw_switch_size(const struct gw_switch_cfg *cfg);

/* Makes a switch in `memory`, aligned to 64. Never fails. */
struct gw_switch *gw_switch_init(void *memory, const struct gw_switch_cfg *cfg);

/*
 * Releases the packets that are queued and returns how many; then the memory may be used for
 * something else. The aggregation stage is the caller's.
 */
uint32_t gw_switch_fini(struct gw_switch *sw);

/* The node, for drivers. */
struct gw_node *gw_switch_node(struct gw_switch *sw);

/* For drivers of many nodes: packets will arrive and leave shortly. Fetches the memory that they
 * will lead to, and changes nothing. */
void gw_switch_foresee(const struct gw_switch *sw);

/* Replaces the routes from the next packet on. */
void gw_switch_set_routes(struct gw_switch *sw, const struct gw_switch_routes *routes);

/*
 * A learning switch's port has something at its other end: a host, or a switch. `address` is
 * learned and announced at once, unless the port is the uplink. Returns 0, or the error of
 * gw_learned_note(): nothing has changed then.
 */
int gw_switch_open_port(struct gw_switch *sw, uint16_t port, uint32_t address, bool is_edge,
                        gw_time now);

/* Announces everybody below above once more: announcements can be lost. Without an uplink there is
 * nothing to do. */
void gw_switch_announce(struct gw_switch *sw, gw_time now);

/*
 * What leaves by port `group` reaches the host at `port` and others at once: a result for several
 * of them is put there, once. Nothing arrives by that port, and it is not opened. GW_PORT_NONE:
 * what is for the host leaves by its own port again.
 */
void gw_switch_set_group(struct gw_switch *sw, uint16_t port, uint16_t group, gw_time now);

/* Nothing is there any more: forgets its addresses, and drops what is queued for it. */
void gw_switch_close_port(struct gw_switch *sw, uint16_t port, gw_time now);

/*
 * The port marks everything ECN-capable while more than `bytes` of data are queued, and below that
 * what it is configured to; UINT32_MAX: as configured. False when its discipline does not mark.
 */
bool gw_switch_mark_at(struct gw_switch *sw, uint16_t port, uint32_t bytes);

/*
 * The port takes packets of class i as those of classes[i], and so does whoever they leave for.
 * Control stays control, and nothing else becomes it.
 */
void gw_switch_set_classes(struct gw_switch *sw, uint16_t port, const uint8_t classes[GW_CLASSES]);

struct gw_port_stats gw_switch_port_stats(const struct gw_switch *sw, uint16_t port);
const struct gw_switch_stats *gw_switch_stats(const struct gw_switch *sw);

/* The stage of notices, for its counters; NULL: there is none. */
const struct gw_switch_notice *gw_switch_notices(const struct gw_switch *sw);

/* Announcements are closed at another age from now on, those that are open too; and ports may save
 * up another time. */
void gw_switch_set_notice_hold(struct gw_switch *sw, gw_time hold, gw_time save, gw_time now);

/* Jobs that servers have installed here. */
uint32_t gw_switch_job_count(const struct gw_switch *sw);

/* Adds what a tenant has of the switch. */
void gw_switch_use(const struct gw_switch *sw, uint32_t who, struct gw_tenant_use *use);

/* Bytes queued at a port now. */
uint32_t gw_switch_backlog(const struct gw_switch *sw, uint16_t port);

#endif
