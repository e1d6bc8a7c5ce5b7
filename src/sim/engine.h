/*
 * The inside of the simulator, shared by the files of sim/ and by nobody else.
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
 * are emptied by the receiver one window or more later. Between windows one thread runs alone (the
 * serial phase): faults, triggers, samples, the choice of the next window.
 */
#ifndef GW_SIM_ENGINE_H
#define GW_SIM_ENGINE_H

#include <stdatomic.h>

#include "base/heap.h"
#include "core/host/endpoint.h"
#include "core/pause.h"
#include "core/switch/switch.h"
#include "sim/sim.h"
#include "topo/label.h"

enum {
    GW_SIM_INDEX_BITS = 26, /* packets alive at once: 2^26 */
    GW_SIM_RING_MAX = 4096, /* windows that a packet may be under way */
    GW_SIM_TRAIN_MAX = 64,  /* packets that one pull takes */
};

/* What faults do to one direction of a link. */
struct gw_sim_port_faults {
    uint32_t down;                                 /* faults that hold the link down */
    uint64_t loss_q32, duplicate_q32, reorder_q32; /* chance of each packet */
    gw_time delay;                                 /* of a packet that is reordered */
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
    bool is_faulty;    /* packets must ask `faults` */
    bool is_captured;  /* pcap writes what leaves here */
    uint32_t link;
    struct gw_sim_port_faults *faults; /* NULL: no fault has begun here */
};

/* Where arrivals of one node in one window wait, unsorted, from one partition. */
struct gw_sim_inbox {
    uint64_t *keys;
    uint32_t count;
    uint32_t room;
};

/* A flow that a host is to start. */
struct gw_sim_start {
    gw_time at;
    uint32_t flow; /* index in the workload */
};

/* What an application on a host still has to start, sorted by (at, flow). */
struct gw_sim_app {
    struct gw_sim_start *starts;
    uint32_t count;
    uint32_t room;
    uint32_t cursor;  /* starts before it are done */
    gw_time ready_at; /* of a host that crashed: nothing starts before, but late starts do then */
    bool is_blocked;  /* the endpoint had no room: wait for a flow to end */
    bool is_gone;     /* the host crashed for good: what is to start fails */
    uint32_t sends;   /* flows started, in all lives of the host */
};

/* A host whose packets cost time; see host_cost.c. */
struct gw_sim_host_cost {
    gw_time done_at;          /* the front of the queue goes to the endpoint; or never */
    gw_time tell_at;          /* links must be told something; or never */
    struct gw_pkt_fifo queue; /* the front is in work */
    gw_time rx_cost;          /* per packet received */
    gw_byte_time rx_byte_time;
    gw_time tx_cost;     /* per packet sent: the next one waits */
    uint64_t rx_queue;   /* bytes of data; 0: no limit */
    uint64_t data_bytes; /* in the queue */
    uint64_t drops;
    struct gw_pause_meter *meters; /* per port, or NULL: never pauses */
    struct gw_pause_cfg pause;
    uint16_t port_count;
};

struct gw_sim_node {
    struct gw_node *core;
    struct gw_sim_port *ports;
    uint64_t *departures; /* ring of (time << port_bits | port), ascending; room for every port */
    uint32_t departure_head;
    uint32_t departure_count;
    uint32_t departure_mask;
    uint32_t id; /* in the topology */
    uint64_t hash;
    gw_q16 jitter;                 /* of packets that leave here; 0 on switches */
    struct gw_sim_host_cost *cost; /* NULL: packets cost a host nothing */
    struct gw_prng prng;           /* jitter and link faults */
    struct gw_endpoint *endpoint;  /* NULL on switches */
    struct gw_switch *sw;          /* NULL on hosts */
    struct gw_sim_app app;
    void *memory; /* of the core node */
    size_t memory_size;
    struct gw_aggregate *aggregate; /* of a switch that adds up; also the start of its memory */
    struct gw_slots *slots;         /* likewise, of slots */
    void *routes;                   /* of a switch: its tables, in one piece */
    size_t routes_size;

    struct gw_endpoint_cfg *cfg; /* of a host */
    uint32_t lives;              /* times that the core node was made */
    uint32_t crashes;            /* faults that keep the node crashed */
};

/* The sorted arrivals of one place in one window. */
struct gw_sim_batch {
    uint64_t *room; /* two areas of room_keys, to sort in */
    uint32_t room_keys;
    uint32_t count;
    const uint64_t *keys; /* in one of the areas */
};

/* A trigger pulled in the window that just ran. */
struct gw_sim_pull {
    gw_time at;
    uint32_t flow;
    uint32_t trigger;
};

struct gw_sim_part {
    struct gw_sim *sim;
    uint32_t first, last; /* places [first, last) run here */
    struct gw_pkt_pool pool;
    struct gw_sim_inbox *inboxes; /* [slot][place]: packets sent by this partition */
    uint64_t *active;             /* [slot][word]: places that must run; set by this partition */
    struct gw_heap wakes;         /* of own places, beyond the next window */
    uint64_t *woken;              /* [word]: own places whose wake is due in this window; apart from
                                     `active`, which the other partitions read meanwhile */
    gw_time window_start;
    uint32_t slot;                  /* of the window that runs */
    uint32_t *places;               /* that run in this window */
    struct gw_sim_batch batches[2]; /* of the place that runs and of the next one */
    struct gw_sim_pull *pulls;
    uint32_t pull_count, pull_room;
    uint32_t flows_ended;          /* of those that the run waits for */
    gw_time first_start, last_end; /* of those flows */
    uint64_t hops, arrivals, events, link_losses, link_copies, changed_by_wire;
    uint64_t changed_messages; /* payload that arrived with other contents than were sent */
    uint64_t wrong_payloads;   /* sums of jobs that are not what they must be */
    uint64_t *rtt_counts;      /* bins of rtt.c; NULL: not wanted */
    gw_time rtt_max;           /* longest of them */
    int error;
} __attribute__((aligned(128)));

/* Something that happens to the network at a given time, in the serial phase. */
struct gw_sim_control {
    gw_time at;
    enum gw_sim_control_kind {
        GW_CONTROL_FAULT_BEGINS,
        GW_CONTROL_FAULT_ENDS,
        GW_CONTROL_ROUTES, /* routing has noticed: compute routes anew */
    } kind;
    uint32_t fault;
};

struct gw_sim {
    struct gw_scenario *scenario;
    struct gw_sim_options options;
    uint32_t node_count;
    struct gw_sim_node *nodes; /* by place */
    uint32_t *place;           /* of each node of the topology */
    struct gw_sim_part *parts;
    uint32_t part_count;
    gw_time window; /* length */
    uint64_t window_index;
    uint32_t ring_mask; /* slots - 1 */
    uint32_t words;     /* of one slot's bitmap */
    uint32_t port_bits;
    struct gw_pkt *pkts; /* 2^GW_SIM_INDEX_BITS of them, reserved, touched as needed */
    struct gw_flow_result *flows;
    uint64_t *acked_before;          /* per flow: at the last sample */
    uint32_t *flow_numbers;          /* per flow: its number on the sender's endpoint */
    uint32_t awaited;                /* flows and members that the run waits for */
    struct gw_sim_member *members;   /* workers of all jobs, as in workload.job_hosts */
    struct gw_sim_shard *shards;     /* servers of all jobs, as in workload.job_servers */
    uint32_t *trigger_pulls;         /* times that each trigger was pulled */
    struct gw_sim_control *controls; /* sorted by time */
    uint32_t control_count, control_next;
    gw_time sample_next;
    struct gw_sample *samples;
    uint64_t sample_count;
    uint32_t sample_room;
    struct gw_capture *capture;         /* NULL: no pcap */
    struct gw_topo_labels labels;       /* of the routes, with source routing */
    struct gw_path_labels *path_labels; /* per flow, filled while it runs; NULL: not used */
    bool is_over;
    int error;
    char why[GW_WHY_MAX];
    atomic_uint barrier_count;
    atomic_uint barrier_phase;

    struct gw_sim_totals past;      /* counters of core nodes that crashed */
    uint64_t past_pool_empty;       /* the endpoints' among them */
    struct gw_sim_payload *payload; /* NULL: messages have no contents */
};

/* node_loop.c: runs `count` places of part->places from the start of the window to its end. */
void gw_sim_run_places(struct gw_sim_part *part, uint32_t count);

/* build.c: makes a place's core node in its memory, empty, with the random stream of a new life. */
void gw_sim_node_make(struct gw_sim *sim, uint32_t place);
/* The partition that runs a place. */
struct gw_sim_part *gw_sim_part_of(struct gw_sim *sim, uint32_t place);

/* sim_app.c */
gw_time gw_sim_app_next(const struct gw_sim_node *node);
void gw_sim_app_start(struct gw_sim_part *part, struct gw_sim_node *node, gw_time now);
void gw_sim_app_poll(struct gw_sim_part *part, struct gw_sim_node *node, gw_time now);
void gw_sim_app_add(struct gw_sim_app *app, struct gw_sim_start start);
void gw_sim_triggers(struct gw_sim *sim);
/*
 * In the serial phase, of a host that crashes: its running flows fail, and its starts wait until
 * the host is back at `until`, or fail in their turn if that is GW_TIME_NEVER.
 */
void gw_sim_app_crash(struct gw_sim *sim, uint32_t place, gw_time now, gw_time until);

/* host_cost.c: a host's packets are given to put when they arrive; serve must be called at next. */
struct gw_sim_host_cost *gw_sim_host_cost_open(const struct gw_scenario *scenario,
                                               uint16_t port_count);
void gw_sim_host_cost_close(struct gw_sim_host_cost *cost);
/* The host dies with all that waits; returns how many packets that was. */
uint64_t gw_sim_host_cost_crash(struct gw_sim *sim, struct gw_sim_node *node);
void gw_sim_host_put(struct gw_sim_part *part, struct gw_sim_node *node, uint16_t port,
                     struct gw_pkt *pkt, gw_time now);
void gw_sim_host_serve(struct gw_sim_part *part, struct gw_sim_node *node, gw_time now);
static inline gw_time gw_sim_host_next(const struct gw_sim_host_cost *cost)
{
    return cost->done_at < cost->tell_at ? cost->done_at : cost->tell_at;
}

/* jobs.c */
int gw_sim_jobs_open(struct gw_sim *sim, char *why);
void gw_sim_jobs_close(struct gw_sim *sim);
/* The aggregation stage of switch `id`, or NULL when it needs none. */
struct gw_aggregate *gw_sim_aggregate(const struct gw_sim *sim, struct gw_pkt_pool *pool,
                                      uint32_t id);

/* job_slots.c: likewise, of slots, with all jobs installed. */
struct gw_slots *gw_sim_slots(const struct gw_sim *sim, struct gw_pkt_pool *pool, uint32_t id);
/* Installs them; slots that were in use are empty then. */
void gw_sim_slots_install(const struct gw_sim *sim, struct gw_slots *slots, uint32_t id);

/* job_life.c */
/* Lets a member join its job; false when its endpoint has no room. */
bool gw_sim_member_start(struct gw_sim *sim, uint32_t index, gw_time now);
/* True for an event of a job; it has then been handled. */
bool gw_sim_member_event(struct gw_sim_part *part, const struct gw_event *event, gw_time now);
/*
 * In the serial phase: the node at `place` crashes, or is back. The first is called while the core
 * node still is what it was; on return nothing may refer to packets, buffers or the endpoint. Then
 * the node is made anew: applications are detached, a switch's stage knows no job and starts of
 * members are forgotten. The second is called when routes and links are up.
 */
void gw_sim_jobs_crashed(struct gw_sim *sim, uint32_t place, gw_time now);
void gw_sim_jobs_restarted(struct gw_sim *sim, uint32_t place, gw_time now);

/* control.c: everything due at or before `now`. */
void gw_sim_controls_init(struct gw_sim *sim);
void gw_sim_controls(struct gw_sim *sim, gw_time now);

/* crash.c: in the serial phase, one fault that keeps a node crashed begins or ends. */
void gw_sim_crash(struct gw_sim *sim, uint32_t place, gw_time now, gw_time until);
void gw_sim_restart(struct gw_sim *sim, uint32_t place, gw_time now);

/*
 * payload.c, with host.payload. A flow's message exists until it was sent, and memory for it at the
 * receiver until it was received; the last tells whether it is what was sent.
 */
int gw_sim_payload_open(struct gw_sim *sim, char *why);
void gw_sim_payload_close(struct gw_sim *sim);
const void *gw_sim_payload_message(struct gw_sim *sim, uint32_t flow);
void gw_sim_payload_sent(struct gw_sim *sim, uint32_t flow);
void gw_sim_payload_expect(struct gw_sim *sim, uint32_t flow);
bool gw_sim_payload_received(struct gw_sim *sim, uint32_t flow);
/* The application of a host that crashed expects what is still being sent to it. */
void gw_sim_payload_expect_again(struct gw_sim *sim, const struct gw_sim_node *node);

/* routes.c: packs the topology's routes into every switch's tables. */
void gw_sim_install_routes(struct gw_sim *sim);

/* labels.c: when routes are new; when a flow starts (NULL without source routing); and ends. */
void gw_sim_labels_renew(struct gw_sim *sim);
const struct gw_path_labels *gw_sim_labels_claim(struct gw_sim *sim, uint32_t flow);
void gw_sim_labels_release(struct gw_sim *sim, uint32_t flow);
void gw_sim_labels_close(struct gw_sim *sim);

/* sample.c */
void gw_sim_sample(struct gw_sim *sim, gw_time now);

/* rtt.c: with metrics.rtt. Add counts an ACK that reaches its host. */
void gw_sim_rtt_open(struct gw_sim_part *part);
void gw_sim_rtt_add(struct gw_sim_part *part, const struct gw_pkt *ack, gw_time now);

/* audit.c: checks the invariants after a run; 0 or an error with sim->why set. */
int gw_sim_audit(struct gw_sim *sim);
/* Checks the ports of a core node that is about to be destroyed, and keeps its counters. */
void gw_sim_audit_crash(struct gw_sim *sim, uint32_t place);

/* wire_check.c: --wire. True when the packet is the same after encode and decode. */
bool gw_sim_survives_wire(const struct gw_sim_part *part, const struct gw_pkt *pkt, gw_time now);

/* capture.c: --pcap. Close writes the file; 0, or an error with sim->why set. */
int gw_capture_open(struct gw_sim *sim, char *why);
void gw_capture_packet(struct gw_sim *sim, const struct gw_sim_node *node, uint16_t port,
                       const struct gw_pkt *pkt, gw_time at);
int gw_capture_write(struct gw_sim *sim);
void gw_capture_close(struct gw_sim *sim);

/* Zeroed memory, aligned to 64; ends the program with one line when there is none. */
void *gw_sim_alloc(size_t size);
/* Doubles a growing array of *room items, or ends the program with one line. */
void *gw_sim_grow(void *array, uint32_t *room, size_t item_size);

/* Marks a place to run in the window that is `ahead` windows later. */
static inline void gw_sim_activate(struct gw_sim_part *part, uint32_t ahead, uint32_t place)
{
    uint32_t slot = (part->slot + ahead) & part->sim->ring_mask;
    part->active[(size_t)slot * part->sim->words + place / 64] |= UINT64_C(1) << (place % 64);
}

#endif
