/*
 * Thresholds for a port of strict priority that drops by worth: which S and L for each queue make
 * what is lost cost the fewest training rounds (DLCP, appendix B).
 */
#ifndef GW_WORKLOAD_DROP_PLAN_H
#define GW_WORKLOAD_DROP_PLAN_H

#include <stdbool.h>

#include "base/fixed.h"
#include "workload/model/drop_costs.h"
#include "workload/model/model.h"
#include "workload/model/queue_loss.h"

/* A port, and what comes to it. Queues are in the order of service. */
struct gw_drop_port {
    uint32_t queues;                  /* for data, from 1 to 7 */
    double loads[GW_DROP_QUEUES_MAX]; /* what arrives, as a share of what the port serves */
    double small;                     /* part of the packets that is small */
    uint64_t buffer;                  /* bytes, for all queues */
    uint32_t packet;                  /* bytes, on average */
    bool paper;                       /* by the paper's formula, gw_loss_paper() */
    struct gw_drop_costs costs;
};

struct gw_drop_choice {
    uint64_t threshold; /* S, bytes: above it small ones are dropped */
    uint64_t limit;     /* L, bytes: above it all are */
    struct gw_loss loss;
    bool small_tried, large_tried; /* that loss was tried out (drop_expect.h), not computed */
    double cost;                   /* rounds */
};

struct gw_drop_plan {
    struct gw_drop_choice queues[GW_DROP_QUEUES_MAX];
    double cost;        /* of all */
    uint64_t threshold; /* T and d of the arithmetic sequence nearest to the S */
    gw_q16 step;
};

/*
 * Sets the loads: layer x of n goes to queue floor(x queues / n), and brings its share of the
 * model's bytes of `load`, the total.
 */
void gw_drop_port_load(struct gw_drop_port *port, const struct gw_model *model, double load);

/*
 * Finds the thresholds. Returns 0, or a negative error with a sentence in why[why_size]: a buffer
 * that is too small, or a queue that gets no service because those before it take all.
 */
int gw_drop_plan_make(struct gw_drop_plan *plan, const struct gw_drop_port *port, char *why,
                      uint32_t why_size);

/* What becomes of given thresholds and limits, in whole packets: losses, costs, and the sequence.
 */
void gw_drop_plan_rate(struct gw_drop_plan *plan, const struct gw_drop_port *port);

/* What the losses of the plan cost. */
void gw_drop_plan_price(struct gw_drop_plan *plan, const struct gw_drop_port *port);

#endif
