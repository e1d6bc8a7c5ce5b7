/*
 * The inside of the simulator: the state of a run, and the rules that make a run deterministic.
 * Include this from src/sim only, and from tests that look inside. What the files of sim/ do for
 * each other is in a header of each.
 *
 * Windows. Time advances in windows on a fixed grid, no longer than the smallest link latency, so
 * nothing that a node does in a window can reach another node in the same window. In a window each
 * node that has something to do runs once: its arrivals are sorted and merged with its own
 * departures, timers and application events. There is no global event queue.
 *
 * Order. On one node events are ordered by (time, phase, input port, order of sending), phase being
 * departure, arrival, timer, application. Ports are numbered by peer, so arrivals at the same time
 * are ordered by source. Nothing else can be observed, so neither the order in which nodes run nor
 * the number of threads changes a result.
 *
 * Partitions. Nodes are renumbered so that each partition is a range ("place"). A partition writes
 * only its own memory: packets for another partition go into inboxes that belong to the sender and
 * are emptied by the receiver one window or more later (calendar.h). Between windows one thread
 * runs alone (the serial phase): faults, triggers, samples, the choice of the next window.
 */
#ifndef GW_SIM_SIM_IMPL_H
#define GW_SIM_SIM_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/align.h"
#include "base/heap.h"
#include "core/host/endpoint.h"
#include "core/switch/switch.h"
#include "sim/host_app.h"
#include "sim/sim.h"
#include "topo/label.h"
#include "topo/memory_pool.h"

enum {
    GW_SIM_INDEX_BITS = 26, /* packets alive at once: 2^26 */
    GW_SIM_TRAIN_MAX = 64,  /* packets that a port sends at once */
};

/* What faults do to one direction of a link. */
struct gw_sim_port_faults {
    uint32_t down;                                 /* faults that hold the link down */
    uint64_t lose_q32, duplicate_q32, reorder_q32; /* chance of each packet */
    gw_time delay;                                 /* of a packet that is reordered */
};

/* What is done with the packets that leave a port besides serialising them; nothing on most. */
enum gw_sim_port_extra {
    GW_SIM_PORT_FAULTY = 1,   /* they must ask `faults` */
    GW_SIM_PORT_CAPTURED = 2, /* pcap writes them */
    GW_SIM_PORT_WATCHED = 4,  /* watch.h counts them */
    GW_SIM_PORT_WIRE = 8,     /* they are encoded and decoded, see wire_check.h */
};

/* One direction of a link, seen from its sender. */
struct gw_sim_port {
    gw_time busy_until; /* end of the last packet's serialisation */
    gw_byte_time byte_time;
    gw_time latency;      /* link and the receiving node's delay */
    gw_time last_arrival; /* keeps a link first-in first-out under jitter */
    uint32_t peer;        /* place of the receiving node */
    uint16_t peer_port;
    bool is_scheduled; /* a departure event is pending */
    uint8_t extras;    /* enum gw_sim_port_extra */
    uint32_t link;
    struct gw_sim_port_faults *faults; /* NULL: no fault has begun here */
} __attribute__((aligned(GW_CACHE_LINE)));

/* Where arrivals of one node in one window wait, unsorted, from one partition. */
struct gw_sim_inbox {
    uint64_t *keys;
    uint32_t count;
    uint32_t room;
};

/* A window to come. */
struct gw_sim_row {
    struct gw_sim_inbox *inboxes; /* by place: packets sent by this partition */
    uint64_t *active;             /* bits of the places that must run; set by this partition */
};

struct gw_sim_node {
    struct gw_node *core;
    struct gw_sim_port *ports;
    uint64_t
        *departures; /* see departures.h: 2 * departure_room keys, (time << port_bits | port) */
    uint32_t departure_room; /* ports, or a little more: a power of two */
    uint32_t id;             /* in the topology */
    uint64_t hash;
    gw_q16 jitter;                 /* of packets that leave here; 0 on switches */
    struct gw_sim_host_cost *cost; /* NULL: packets cost a host nothing */
    struct gw_prng prng;           /* jitter and link faults */
    struct gw_endpoint *endpoint;  /* NULL on switches */
    struct gw_switch *sw;          /* NULL on hosts */
    struct gw_sim_app app;
    void *memory; /* of the core node */
    size_t memory_size;
    uint64_t collisions;            /* of its aggregators, at the last sample */
    struct gw_aggregate *aggregate; /* of a switch that adds up; also the start of its memory */
    struct gw_slots *slots;         /* likewise, of slots */
    void *routes;                   /* of a switch: its tables, in one piece */
    size_t routes_size;

    struct gw_endpoint_cfg *cfg; /* of a host */
    uint32_t lives;              /* times that the core node was made */
    uint32_t crashes;            /* faults that keep the node crashed */
    bool is_watched;             /* watch.h wants to know what arrives */
};

/* The sorted arrivals of one place in one window. */
struct gw_sim_batch {
    uint64_t *keys;
    uint32_t count;
    uint32_t room;
};

struct gw_sim_part {
    struct gw_sim *sim;
    uint32_t first, last; /* places [first, last) run here */
    struct gw_pkt_pool pool;
    struct gw_sim_row *rows;      /* of the calendar */
    struct gw_memory_pool memory; /* of the keys in it: what has grown is left as it was */
    struct gw_heap wakes;         /* of own places, beyond the next window */
    uint64_t *woken;              /* [word]: own places whose wake is due in this window; apart from
                                     `rows`, which the other partitions read meanwhile */
    gw_time window_start;
    uint32_t row;                   /* of the calendar: that of the window that runs */
    uint32_t *places;               /* that run in this window */
    struct gw_sim_batch batches[3]; /* of the place that runs and of the next two */
    struct gw_sim_firing *firings;  /* in this window; handed over between two */
    uint32_t firing_count, firing_room;
    uint32_t flows_ended;          /* of those that the run waits for */
    gw_time first_start, last_end; /* of those flows */
    uint64_t hops, arrivals, events, link_losses, link_copies, changed_by_wire;
    uint64_t changed_messages; /* payload that arrived with other contents than were sent */
    uint64_t wrong_payloads;   /* sums of jobs that are not what they must be */
    uint64_t broken_bounds;    /* messages that lack more than they may */
    uint64_t *rtt_counts;      /* bins of rtt.c; NULL: not wanted */
    gw_time rtt_max;           /* longest of them */
} __attribute__((aligned(128)));

/* What a flow leaves to the next one of its connection; see core/path.h. */
struct gw_sim_legacy {
    uint64_t window;
    uint64_t memory;
};

struct gw_sim {
    struct gw_scenario *scenario;
    struct gw_sim_options options;
    struct gw_memory_pool memory; /* of nodes and calendars */
    uint32_t node_count;
    struct gw_sim_node *nodes; /* by place */
    uint32_t *place;           /* of each node of the topology */
    struct gw_sim_part *parts;
    uint32_t part_count;
    gw_time window;          /* length */
    uint64_t window_inverse; /* 2^64 / window */
    uint64_t window_index;
    uint32_t row_mask; /* rows of the calendar - 1 */
    uint32_t words;    /* of one row's bitmap */
    uint32_t port_bits;
    struct gw_pkt *pkts; /* 2^GW_SIM_INDEX_BITS of them, reserved, touched as needed */
    struct gw_flow_result *flows;
    uint64_t *acked_before;          /* per flow: at the last sample */
    struct gw_sim_legacy *legacies;  /* per flow; NULL: no flow follows another one */
    uint32_t *flow_numbers;          /* per flow: its number on the sender's endpoint */
    uint32_t first_tag;              /* of the workload's flows; those of jobs follow */
    uint32_t end_tag;                /* behind them; others are those of communicators */
    uint32_t awaited;                /* flows and members that the run waits for */
    struct gw_sim_job *jobs;         /* as in workload.jobs */
    struct gw_sim_member *members;   /* workers of all jobs, as in workload.job_hosts */
    uint32_t *fired;                 /* times that each trigger was fired */
    struct gw_sim_control *controls; /* sorted by time */
    uint32_t control_count, control_next;
    gw_time sample_next;
    struct gw_sample *samples;
    uint64_t sample_count;
    uint32_t sample_room;
    struct gw_capture *capture;             /* NULL: no pcap */
    struct gw_topo_labels labels;           /* of the routes, with source routing */
    struct gw_path_labels *path_labels;     /* per flow, filled while it runs; NULL: not used */
    struct gw_sim_pair_labels *pair_labels; /* those of jobs, see labels.c */
    bool is_over;
    int error;
    char why[GW_WHY_MAX];
    atomic_uint barrier_count;
    atomic_uint barrier_phase;
    atomic_uint barrier_sleepers; /* threads that wait for the condition below */
    pthread_mutex_t barrier_lock;
    pthread_cond_t barrier_over; /* the phase has changed */

    struct gw_sim_totals past; /* counters of core nodes that crashed */
    struct gw_notice_totals past_notices;
    uint64_t past_pool_empty;       /* how often they found no packet to send */
    struct gw_finish finish;        /* of messages that may lose a part */
    uint64_t **important;           /* per flow: its important packets, while it runs; NULL: all
                                       packets of any flow are worth the same */
    struct gw_sim_payload *payload; /* NULL: messages have no contents */
    struct gw_sim_watch *watch;     /* NULL: no port is watched */
};

/* The partition that runs a place. */
static inline struct gw_sim_part *gw_sim_part_of(struct gw_sim *sim, uint32_t place)
{
    struct gw_sim_part *part = sim->parts;
    while (place >= part->last)
        part++;
    return part;
}

/* The flow of the workload that a tag names; UINT32_MAX: it is none's. */
static inline uint32_t gw_sim_flow_of_tag(const struct gw_sim *sim, uint32_t tag)
{
    uint32_t flow = tag - sim->first_tag;
    return flow < sim->scenario->workload.flow_count ? flow : UINT32_MAX;
}

/* Bits that tell `count` things apart. */
static inline uint32_t gw_sim_bits(uint64_t count)
{
    return count <= 1 ? 0 : 64 - (uint32_t)__builtin_clzll(count - 1);
}

#endif
