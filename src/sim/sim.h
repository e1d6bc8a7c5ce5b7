/*
 * The packet-level simulator: a driver of the four verbs at datacenter scale.
 *
 * It owns the links, the virtual clock and nothing of any protocol. A run is a pure function of the
 * scenario and its seed: the same trace hash on every machine and for every number of threads.
 * sim_impl.h explains windows, order and partitions.
 */
#ifndef GW_SIM_SIM_H
#define GW_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "config/scenario.h"
#include "core/switch/port_stats.h"
#include "core/switch/switch_notice.h"

struct gw_sim;

struct gw_sim_options {
    uint64_t seed;         /* of this run */
    uint32_t threads;      /* partitions run in parallel; at least 1 */
    bool timeline;         /* keep what members of jobs do when, for gw_sim_spans() */
    bool wire;             /* pass every packet through encode and decode, and compare */
    const char *pcap_file; /* NULL, or where to write what `pcap_link` carried */
    uint32_t pcap_link;    /* a link of the topology */
    /* Called now and then by the thread that runs the simulation; NULL: not at all. */
    void (*progress)(void *arg, uint32_t flows_done, uint32_t flow_count, gw_time now);
    void *progress_arg;
};

enum gw_flow_outcome {
    GW_FLOW_PENDING, /* not started or not finished when the run ended */
    GW_FLOW_DONE,
    GW_FLOW_FAILED, /* no progress for host.stall, or lost in the crash of a host */
};

struct gw_flow_result {
    gw_time start; /* when it was asked for */
    gw_time end;   /* when its sender knew that all was delivered; valid unless pending */
    uint64_t retransmits;
    uint32_t missing;        /* packets that its receiver does without, if it is received */
    uint32_t missing_at_end; /* the same as its sender knows it */
    enum gw_flow_outcome outcome;
    bool started;
    bool received; /* all of it has arrived; an empty message never does */
};

struct gw_sim_totals {
    uint32_t flows; /* that the run waits for: background flows are not counted */
    uint32_t completed;
    uint32_t members; /* workers of training jobs */
    uint32_t members_completed;
    gw_time end;                  /* end of the run */
    gw_time completion;           /* first start to last end of the flows counted above */
    uint64_t data_packets;        /* data packets sent by hosts, retransmissions included */
    uint64_t hops;                /* packets that left a port */
    uint64_t marks, trims, drops; /* in switch queues */
    uint64_t control_drops;       /* of these drops, of control packets */
    struct gw_class_losses losses[GW_CLASSES]; /* these drops, by class */
    uint64_t link_losses;  /* lost on links: down, random loss, corruption; or on the way
                              to a node that crashed */
    uint64_t link_copies;  /* delivered twice by links */
    uint64_t crash_losses; /* lost in the queues of nodes that crashed */
    uint64_t host_drops;   /* found a host's receive queue full */
    uint64_t pauses; /* times that a node told another one to hold its data back; see paused */
    gw_time paused;  /* time that data was held back, over all ports, until it flowed again */
    uint64_t retransmits;
    uint64_t spurious;
    uint64_t timeouts;  /* packets given up for their age, ... */
    uint64_t overtaken; /* ... or since later ones had arrived; loss detection may infer that */
    uint64_t probes;    /* packets that asked whether others are lost */
    uint64_t unroutable;
    uint64_t events; /* departures, arrivals, timers and application events handled */
    uint64_t trace_hash;
};

/*
 * Builds a simulation. The scenario must outlive it and is not changed, but for `topo`'s routes and
 * link states when faults say so. Returns 0, or a negative error with a line in why[GW_WHY_MAX].
 */
int gw_sim_open(struct gw_sim **sim, struct gw_scenario *scenario,
                const struct gw_sim_options *options, char *why);

/*
 * Runs to the end of the window in which the last flow ended (if any is waited for), or to the time
 * limit. Returns 0 also
 * when the limit left flows unfinished (see the totals), or a negative error with a line in `why`:
 * an invariant broken (conservation of bytes or packets), a packet that --wire changed, no memory.
 */
int gw_sim_run(struct gw_sim *sim, char *why);

struct gw_sim_totals gw_sim_totals(const struct gw_sim *sim);

/* What became of a training job. */
struct gw_job_result {
    uint32_t reason; /* of the first failure: enum gw_job_reason */
    uint32_t about;  /* rank or address that it is about */
    uint32_t workers;
    uint32_t completed;    /* workers that finished all iterations */
    uint32_t failed;       /* workers whose calls failed */
    uint32_t iterations;   /* that all workers finished, on average */
    gw_time start, end;    /* of the first worker, and of the last iteration that ended */
    uint64_t server_bytes; /* into the server's link: gradient packets */
    uint64_t server_packets;
    uint64_t fragments;  /* that the server finished */
    uint64_t aggregated; /* of these, that reached it as one sum of all workers */
    uint64_t resent;     /* packets, by all workers */
    uint64_t left_out;   /* workers' fragments that are in no sum, since they were late */
    /* In the steady state, which begins behind the warm-up; of jobs without one, or without an
     * iteration behind it, from their first start to their last sum. Means over workers. */
    bool is_steady;      /* an iteration ended */
    double iteration_ps; /* between two starts of the forward pass */
    double stall_ps;     /* of these, without computation */
    double moving_ps;    /* of these, with a piece under way */
    double bursts;       /* that this time consists of */
    double overlap;      /* part of the time with gradients under way that is hidden behind
                            computation; 1 also when none ever are */
};

/* Messages of a job, as they travel. */
enum gw_message_way {
    GW_MESSAGE_PUSH, /* from a worker to a server */
    GW_MESSAGE_PULL, /* from a server to a worker */
    GW_MESSAGE_WAYS,
};

/* What became of them. */
struct gw_message_result {
    uint64_t sent;  /* messages that are over at their senders */
    double mean_ps; /* from when such a message was asked for until its sender knew that it is over;
                       then: how long so many of 1000 took at most, to 1/128 */
    gw_time median, p99, p999, longest;
    uint64_t packets[GW_CLASSES]; /* of messages that are over at their receivers, by class */
    uint64_t missing[GW_CLASSES]; /* of these */
    uint64_t begun;               /* packets of messages that have begun */
    uint64_t important;           /* of these */
};

/* By way, and last of all together; false: the job's messages are not counted. */
bool gw_sim_messages(const struct gw_sim *sim, uint32_t job,
                     struct gw_message_result results[GW_MESSAGE_WAYS + 1]);

/* What became of a call of a job's list, over all its ranks and iterations. */
struct gw_call_result {
    uint64_t done;    /* times that it ended at a rank as it should */
    uint64_t refused; /* pushes and pulls */
    gw_time total;    /* from when it began at a rank to when it ended there, if it was done: sum */
    gw_time longest;
};

/* False: the job makes no calls, or not so many. */
bool gw_sim_call(const struct gw_sim *sim, uint32_t job, uint32_t index,
                 struct gw_call_result *result);

/*
 * Jain's index over the jobs that have ended an iteration, of how fast each goes against what it
 * could reach alone: the longer of its computation and of its gradients at the rate of a host's
 * link, divided by its iteration time. 1 when all jobs are slowed down alike, or there is none.
 */
double gw_sim_fairness(const struct gw_sim *sim, const struct gw_job_result *results);

/* Stores up to `max` results in the order of scenario->workload.jobs; returns how many there are.
 */
uint32_t gw_sim_jobs(const struct gw_sim *sim, struct gw_job_result *results, uint32_t max);

/* Data packets that leave the watched port. */
enum gw_port_sort {
    GW_PORT_BURSTS, /* of bursts and jobs */
    GW_PORT_OTHERS,
    GW_PORT_SORTS,
};

struct gw_port_flux {
    uint64_t packets;
    uint64_t bytes;
    uint64_t waited; /* in the switch, picoseconds of all packets together */
};

/* What a burst met at the watched port, from the arrival of its first packet there until its last
 * one left. Queues are in full packets, rounded up. */
struct gw_burst_result {
    uint32_t job;       /* of the workload, whose burst it is; UINT32_MAX: a burst of flows */
    gw_time start, end; /* of its flows; the end is valid if all are done: is_complete. A job's: of
                           what it sent by the port */
    bool is_complete;
    uint64_t bytes;
    gw_time first_at, last_at;
    uint32_t queue_at_start; /* before its first packet */
    uint32_t queue_max;
    uint64_t drops;
    uint64_t own_drops; /* while its packets, or another burst's, were queued */
    struct gw_port_flux sorts[GW_PORT_SORTS];
};

/* What the watched port carried, in all, and inside bursts. */
struct gw_port_result {
    uint32_t node; /* in the topology */
    uint16_t port;
    gw_time time; /* when the last packet left */
    gw_time inside_time;
    uint64_t drops, inside_drops;
    struct gw_port_flux sorts[GW_PORT_SORTS], inside[GW_PORT_SORTS];
};

/* Bursts of scenario->workload, and behind them those of jobs at the watched port, which begin
 * after more than the longest base RTT without a packet of the job. */
uint32_t gw_sim_bursts(const struct gw_sim *sim);

/* One of them. False: it never came to the port, or none is watched. */
bool gw_sim_burst(const struct gw_sim *sim, uint32_t index, struct gw_burst_result *result);

/* False: no port is watched. */
bool gw_sim_port(const struct gw_sim *sim, struct gw_port_result *result);

/* How long so many of 1000 packets of a sort waited at most, to 1/16 of a full packet's time at the
 * port; of those that waited for longer than its queue, and of all 1000, the longest. */
gw_time gw_sim_port_delay(const struct gw_sim *sim, enum gw_port_sort sort, uint32_t per_mille);

/* What became of notices of bursts: counters of hosts, and of switches. */
struct gw_notice_totals {
    uint64_t announced;   /* bursts */
    uint64_t unanswered;  /* of these: they left without an answer */
    uint64_t unannounced; /* bursts that should have been */
    struct gw_switch_notice_stats at_switches;
    gw_time lowered_most; /* of the port that was kept low for the longest time, in one of its
                             switch's lives */
};

struct gw_notice_totals gw_sim_notices(const struct gw_sim *sim);

/*
 * The ideal time in which the scenario's flows complete, from what must cross the links of each
 * host and group, headers included, plus the shortest base RTT, in which one packet counts twice.
 * Triggers and start times are ignored.
 */
gw_time gw_sim_bound(const struct gw_scenario *scenario);

/* Result of each flow of scenario->workload, by index. */
const struct gw_flow_result *gw_sim_flows(const struct gw_sim *sim);

/* One sampled value; series are in the order of time, then of the list below. */
struct gw_sample {
    gw_time at;
    enum gw_series {
        GW_SERIES_CWND,  /* subject: flow; value: bytes */
        GW_SERIES_RATE,  /* subject: flow; value: bit/s acknowledged since the last sample */
        GW_SERIES_QUEUE, /* subject: node, port; value: bytes */
        /* Since the last sample. Subject: job; value: bit/s of gradients whose sums came back, of
         * a worker on average; then: sums. */
        GW_SERIES_GOODPUT,
        GW_SERIES_SWITCH_SUMS,
        GW_SERIES_SERVER_SUMS,
        GW_SERIES_COLLISIONS, /* subject: node; value: packets since the last sample */
    } series;
    uint32_t subject;
    uint16_t port;
    uint64_t value;
};

const struct gw_sample *gw_sim_samples(const struct gw_sim *sim, uint64_t *count);

/* With metrics.rtt: what the RTTs of so many of 1000 acknowledged packets do not exceed, to 1/64
 * of the longest base RTT; of those above 64 base RTTs, and of all 1000, the longest. Else 0. */
gw_time gw_sim_rtt(const struct gw_sim *sim, uint32_t per_mille);

/* Something that a member of a job did. */
struct gw_span {
    gw_time begin, end; /* in between there is time */
    enum gw_span_kind {
        GW_SPAN_FORWARD,  /* computed layer `index` */
        GW_SPAN_BACKWARD, /* likewise */
        GW_SPAN_PIECE,    /* had gradients under way: of `tensor_count` tensors from `index` on */
        GW_SPAN_BURST,    /* had any under way */
    } kind;
    uint32_t iteration; /* the member's latest when the span was written */
    uint32_t index;
    uint32_t tensor_count;
    uint32_t berth; /* pieces of the same berth follow one another */
    uint64_t bytes; /* of a piece */
};

/* With options.timeline: the spans of a member, in the order in which they were known; *lost: those
 * beyond the limit. Computation of a member does not overlap, nor do its bursts. */
const struct gw_span *gw_sim_spans(const struct gw_sim *sim, uint32_t job, uint32_t rank,
                                   uint32_t *count, uint64_t *lost);

void gw_sim_close(struct gw_sim *sim);

#endif
