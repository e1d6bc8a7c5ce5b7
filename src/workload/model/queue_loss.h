/*
 * What a queue with two thresholds loses at a port of strict priority, under Poisson arrivals and
 * sizes that are distributed exponentially (DLCP, appendix B).
 *
 * Loads are shares of what the port serves; lengths are in packets of the mean size. A small
 * packet is dropped when it meets more than S in its queue, a large one when it meets more than L;
 * what is being sent is not in the queue. This is the rule of core/qdisc/dlcp.c.
 *
 * The paper splits each queue in two of M/M/1/m, served at what the queues before it leave over:
 * gw_loss_paper(). That misses that the two share a queue, that a queue waits for whole busy
 * periods of those before it, and for the packet from behind that is on the wire. Here the work of
 * a queue, what waits and what is left of the packet on the wire, is a process in a random
 * environment, which says whether something else goes before. A busy period of what goes before is
 * a mixture of two exponential times, which has three moments of it right (queue_completion.h).
 * Work shrinks smoothly, only by being served. So its density at x follows from that below x: an
 * initial value problem, in which a threshold changes only the rate of arrivals from there on, and
 * one walk upwards gives the losses for all thresholds.
 *
 * It is not exact: of the busy periods of what goes before three moments are right, and the packets
 * at the head of the work are taken to lie at random, as densely as queue_heads.h finds.
 * docs/thresholds.md compares with simulation. Results are made of the four operations alone, hence
 * the same on every machine.
 */
#ifndef GW_WORKLOAD_QUEUE_LOSS_H
#define GW_WORKLOAD_QUEUE_LOSS_H

#include <stdint.h>

enum {
    GW_LOSS_DIM = 8,
    GW_LOSS_KINDS = 2, /* of exponential times in a mixture */
    GW_LOSS_NEAR = 24, /* steps after a threshold in which it is still felt */
};

/* Moments of completion times (queue_completion.h), in times of a mean packet. */
struct gw_completion {
    double mean, square, cube;
};

/* A queue among the others of its port. */
struct gw_drop_queue {
    double above;   /* load that is served before it, below 1 */
    double arrives; /* load that arrives for the queues before it: at least `above` */
    struct gw_completion completion; /* behind those queues */
    double own;                      /* load that arrives for it, above 0 */
    double below;                    /* load that is served after it */
    double small;                    /* part of the packets that is small, from 0 to 1 */
};

/* Parts of the packets that are lost. */
struct gw_loss {
    double small;
    double large;
};

/* What a queue's walks have in common. What depends on steps above a threshold is made on demand.
 */
struct gw_loss_maps {
    struct gw_drop_queue queue;
    double step;                   /* packets */
    uint32_t has_large, has_tails; /* bit i: of large, tails */
    double starts[GW_LOSS_KINDS];  /* rates at which periods of a kind interrupt the service */
    double ends[GW_LOSS_KINDS];    /* and end */
    double first_chances[GW_LOSS_KINDS]; /* of the kinds that find the queue empty */
    double first_ends[GW_LOSS_KINDS];
    /* Packets that end in work of the mean size, at its head, above the threshold and above the
     * limit; at first the load up to this queue. */
    double small_packets, large_packets;
    double both[GW_LOSS_DIM][GW_LOSS_DIM];                    /* a step up below the threshold */
    double large[GW_LOSS_NEAR + 1][GW_LOSS_DIM][GW_LOSS_DIM]; /* the i-th step above it */
    /* Rows that make of the state at the limit, i steps above the threshold, all that is passed */
    double tails[GW_LOSS_NEAR + 1][3][GW_LOSS_DIM];
};

/* Where a walk is: densities, not normalised, and what lies below. */
struct gw_loss_walk {
    double state[GW_LOSS_DIM];
    double below;   /* mass below the threshold */
    uint32_t above; /* steps from the threshold to here */
};

/* What is taken and lost at an amount of work. */
struct gw_loss_rates {
    double served;     /* load taken while a packet is in part sent */
    double first;      /* load taken while all waits */
    double small_lost; /* chances to lose a packet, while one is in part sent */
    double large_lost;
    double small_first; /* and while all waits */
    double large_first;
};

/* At `over` packets above the threshold, and `beyond` above the limit; negative: below it. */
struct gw_loss_rates gw_loss_rates(const struct gw_loss_maps *maps, double over, double beyond);

/* Prepares walks of one queue, by steps of `step` >= 1 packets. */
void gw_loss_prepare(struct gw_loss_maps *maps, const struct gw_drop_queue *queue, double step);

/* Without work: the time in which the port does nothing, and that in periods of each kind. */
struct gw_loss_empty {
    double idle;
    double periods[GW_LOSS_KINDS];
};

struct gw_loss_empty gw_loss_empty(const struct gw_loss_maps *maps);

/* A walk with threshold and limit 0. */
void gw_loss_begin(struct gw_loss_walk *walk, const struct gw_loss_maps *maps);

/*
 * Takes the packets near the threshold as they are for all above it, unless what was taken last is
 * off by less than this part. Costs as much as a preparation, far less than gw_queue_heads(), and
 * says too much of the head where few packets are large.
 */
void gw_loss_cross(const struct gw_loss_walk *walk, struct gw_loss_maps *maps, double part);

/* Moves both one step up; only before the limit is moved alone. */
void gw_loss_raise(struct gw_loss_walk *walk, const struct gw_loss_maps *maps);

/* Moves the limit one step up. */
void gw_loss_raise_limit(struct gw_loss_walk *walk, struct gw_loss_maps *maps);

/* The losses with the threshold and the limit where they are. */
struct gw_loss gw_loss_read(const struct gw_loss_walk *walk, struct gw_loss_maps *maps);

/* exp(-x) for x >= 0. */
double gw_loss_decay(double x);

/* Loss of M/M/1/m: rho^m (1 - rho) / (1 - rho^(m + 1)), 1 / (m + 1) for rho = 1; m >= 0. */
double gw_loss_paper(double rho, double m);

#endif
