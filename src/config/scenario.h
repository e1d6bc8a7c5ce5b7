/*
 * A scenario: a YAML file, resolved into topology, workload, protocol choices, faults and metrics.
 *
 * Loading checks everything that can be checked before a run: every key is known, every value has
 * the right kind and unit, every name exists, every flow has a route. An error is one line that
 * names file, line and key ("scenarios/incast.yaml:12: workload.size: wrong or missing unit: 2MX").
 *
 * docs/simulator.md describes the keys.
 */
#ifndef GW_CONFIG_SCENARIO_H
#define GW_CONFIG_SCENARIO_H

#include "base/fixed.h"
#include "core/pause.h"
#include "core/qdisc/qdisc.h"
#include "core/switch/shared_buffer.h"
#include "core/host/transport.h"
#include "topo/topo.h"
#include "workload/workload.h"

enum {
    GW_WHY_MAX = 512, /* bytes that an error line needs at most */
};

/* Which hosts packets cost something, in the order of the words of the option. */
enum gw_cost_hosts {
    GW_COST_ALL,
    GW_COST_SERVERS, /* those that run a job's server */
};

/* What a packet costs the host that sends or receives it. */
struct gw_host_cost_cfg {
    gw_time rx_cost;           /* time per packet received */
    uint64_t rx_rate_bps;      /* wire bytes received are worked off at this rate; 0: at once */
    gw_time tx_cost;           /* least time from one packet sent by a port to the next */
    uint64_t tx_rate_bps;      /* to which its wire bytes at this rate add; 0: nothing */
    uint64_t rx_queue;         /* bytes of data that wait to be worked off; 0: no limit */
    uint32_t hosts;            /* enum gw_cost_hosts */
    struct gw_pause_cfg pause; /* when the queue is lossless and rx_queue is set */
};

/* The keys that say this, and the named models of it. */
extern const struct gw_registry gw_cost_registry;

static inline bool gw_host_has_cost(const struct gw_host_cost_cfg *cost)
{
    return cost->rx_cost || cost->rx_rate_bps || cost->tx_cost || cost->tx_rate_bps ||
           cost->rx_queue;
}

/* The end host, in the scenario's `host:`. */
struct gw_host_cfg {
    uint32_t mtu;           /* payload bytes of a full packet */
    uint32_t header;        /* header bytes; the size of ACKs and trimmed packets */
    gw_q16 jitter;          /* each packet leaves up to this many of its own packet times late */
    uint32_t ack_every;     /* packets per ACK */
    gw_time ack_delay;      /* longest time that an ACK is held back when ack_every > 1 */
    uint32_t ack_entropies; /* that the ACKs of a flow carry in turn; 0: random ones */
    uint32_t bdp;           /* bytes that count as the bandwidth-delay product; 0: what it is */
    uint32_t train;         /* packets per train */
    gw_time stall;          /* a flow without progress for this long fails; 0: never */
    gw_time report_every;   /* period of the reports about blasts */
    uint32_t hail_copies;
    struct gw_host_cost_cfg cost;
    bool resend_over; /* lost packets need not fit into what is left of the window */
    bool payload;     /* messages have contents, which are checked on arrival */
};

/* Egress queues, in `queue:`. */
struct gw_queue_cfg {
    const struct gw_qdisc_ops *qdisc;
    union gw_algo_cfg cfg;
    uint32_t capacity; /* bytes per port where a link does not say otherwise; resolved from
                          "1bdp" or bytes */
    struct gw_shared_buffer shared; /* by the ports of one switch */
    bool lossless;
    struct gw_pause_cfg pause; /* of a lossless switch, for each port */
};

/* Room for announced bursts (core/switch/switch_notice.h), in `pcn:`. */
struct gw_pcn_cfg {
    bool enable;            /* else there is neither the stage of switches nor any announcement */
    uint32_t floor;         /* packets: no port is kept lower */
    gw_time lead;           /* that bursts wait behind the answer to their notice */
    gw_time hold;           /* an announcement without its burst lives for so long */
    gw_q16 share;           /* of all time that a port may be kept low */
    gw_time save;           /* of that time a job may save up so much */
    uint32_t jobs;          /* that a port knows at the same time */
    uint32_t announcements; /* open at a switch at the same time */
};

enum gw_fault_kind {
    GW_FAULT_LINK_DOWN,
    GW_FAULT_LINK_RATE,    /* the rate is multiplied by `factor`; of several the worst counts */
    GW_FAULT_LINK_LOSS,    /* each packet is lost with probability `chance_q32` / 2^32 */
    GW_FAULT_LINK_CORRUPT, /* each packet is damaged: it uses the link, the receiver discards it */
    GW_FAULT_LINK_DUPLICATE, /* each packet arrives twice with that probability */
    GW_FAULT_LINK_REORDER,   /* each packet arrives `delay` late with that probability */
    GW_FAULT_NODE_DOWN,      /* all links of the node are down; a host loses nothing it knew */
    GW_FAULT_NODE_CRASH,     /* the node loses all it knew and held, and its links are down */
    GW_FAULT_HOST_SLEEP,     /* the host does not run: what arrives waits, and nothing leaves */
};

struct gw_fault {
    enum gw_fault_kind kind;
    gw_time at;
    gw_time until; /* recovery; GW_TIME_NEVER: none */
    uint32_t link; /* for link faults; both directions */
    uint32_t node; /* for node faults */
    gw_q16 factor;
    uint64_t chance_q32;
    gw_time delay; /* of GW_FAULT_LINK_REORDER; above 0 */
};

/* Sampled series, in `metrics:`. */
struct gw_metrics_cfg {
    gw_time sample;     /* interval; 0: no series */
    bool cwnd;          /* per flow */
    bool rate;          /* per flow: acknowledged bytes per interval, as bit/s */
    bool queue;         /* per port: backlog in bytes */
    bool goodput;       /* per job: bytes of gradients back at a worker per interval, as bit/s */
    bool switch_sums;   /* per job: fragments of which switches made the whole sum, per interval */
    bool server_sums;   /* per job: of fragments, or parts of pieces, that servers finished */
    bool collisions;    /* per switch: packets that found their aggregator taken, per interval */
    bool rtt;           /* the distribution of packets' RTTs, in the result */
    uint32_t port;      /* that is watched: an index into the topology's ports. `port: [a, b]` names
                           the ends of its link, a's is meant; UINT32_MAX: that of the bursts */
    uint32_t pcap_link; /* what --pcap writes: `pcap: [a, b]` names its ends; default link 0 */
};

struct gw_scenario {
    char name[64];       /* file name without directory and suffix */
    struct gw_topo topo; /* finished and routed */
    struct gw_workload workload;
    struct gw_transport transport;
    struct gw_host_cfg host;
    struct gw_queue_cfg queue;
    struct gw_pcn_cfg pcn;
    struct gw_fault *faults; /* in the order of the file */
    uint32_t fault_count;
    gw_time
        convergence; /* from a link's failure until routes avoid it; GW_TIME_NEVER: not at all */
    struct gw_metrics_cfg metrics;
    uint64_t seed;
    gw_time time_limit;
    gw_time brtt_max;       /* base RTT of the fabric's longest path */
    uint64_t host_rate_bps; /* fastest host link */
    uint32_t bdp;           /* host_rate_bps * brtt_max in bytes, or as `host:` says */
};

/* Bytes of the longest packet that hosts send, of a message or of a training job. */
uint32_t gw_scenario_packet_max(const struct gw_scenario *scenario);

/* `--set key=value`; the key is a path of the document with dots: "workload.size". */
struct gw_override {
    const char *key;
    const char *value;
};

/*
 * Loads and resolves. Overrides are applied to the document before anything is read. Returns 0, or
 * a negative error with one line in why[GW_WHY_MAX]; the scenario is then empty. gw_scenario_free()
 * takes it back in either case.
 */
int gw_scenario_load(struct gw_scenario *scenario, const char *file,
                     const struct gw_override *overrides, uint32_t override_count, char *why);
void gw_scenario_free(struct gw_scenario *scenario);

/* What the results of a sweep are asked for, in `claims:`; its strings are its own. */
struct gw_claim {
    char *id, *text, *source;
    char *measured; /* an expression over all results; see cli/query.h */
    char *place;    /* of the expression, as errors begin: "file:line: key: " */
    double about, at_least, at_most;
    double tolerance; /* as a part of those */
    bool has_about, has_least, has_most;
    bool is_truth; /* the expression is true or false, and should be true */
    bool is_joint; /* it is evaluated once, over the results of all seeds together */
};

/* The points of a scenario's `sweep:`, the cartesian product of its lists; one empty point if it
 * has none. */
struct gw_sweep {
    struct gw_override
        *overrides; /* point_count rows of key_count; strings are owned by the sweep */
    uint32_t key_count;
    uint32_t point_count;
    char **columns; /* of the scenario's `table:`; names of the sweep's own */
    struct gw_claim *claims;
    uint32_t column_count, claim_count;
};

/* Keys in `overrides` replace the sweep over the same key. Errors as for gw_scenario_load(). */
int gw_sweep_load(struct gw_sweep *sweep, const char *file, const struct gw_override *overrides,
                  uint32_t override_count, char *why);
void gw_sweep_free(struct gw_sweep *sweep);

/*
 * The resolved document as YAML text (every default written out), to be freed by the caller. NULL
 * with `why` set on error.
 */
char *gw_scenario_describe(const char *file, const struct gw_override *overrides,
                           uint32_t override_count, char *why);

#endif
