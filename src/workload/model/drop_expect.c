/* Losses to expect; see drop_expect.h. */
#include "workload/model/drop_expect.h"

#include "workload/model/drop_trial.h"

enum {
    SEED = 0x6472, /* not that of who checks what is expected here by a trial of his own */
    WHY_MAX = 128,
};

/* Standard deviation of a loss, as a part of it, up to which a trial is sure of it: then one of a
 * thousand is off by more than a tenth. */
#define SURE 0.03

/* Standard deviations of the trial by which the formula is off when it does not hold: by chance,
 * one of twenty. */
#define REFUTED 2

/* A trial is at best as sure of a loss as if packets were lost independently. */
static bool is_worth_a_trial(const struct gw_drop_plan *plan, const struct gw_drop_port *port,
                             uint64_t arrivals)
{
    double total = 0, most = 0;
    for (uint32_t q = 0; q < port->queues; q++) {
        const struct gw_loss *loss = &plan->queues[q].loss;
        double lost = port->loads[q] * (loss->small > loss->large ? loss->small : loss->large);
        total += port->loads[q];
        most = lost > most ? lost : most;
    }
    return most * (double)arrivals > total / (SURE * SURE);
}

/* Whether the loss is that of the trial now. What chance may make of it refutes no formula. */
static bool adopt(double *loss, const struct gw_drop_seen *seen)
{
    double off = *loss < seen->loss ? seen->loss - *loss : *loss - seen->loss;
    if (seen->lost == 0 || seen->error > SURE * seen->loss || off < REFUTED * seen->error)
        return false;
    *loss = seen->loss;
    return true;
}

void gw_drop_expect(struct gw_drop_plan *plan, const struct gw_drop_port *port, uint64_t arrivals)
{
    struct gw_drop_trial trial;
    char why[WHY_MAX];
    if (!is_worth_a_trial(plan, port, arrivals) ||
        gw_drop_trial_run(&trial, plan, port, arrivals, SEED, why, sizeof(why)) != 0)
        return;
    for (uint32_t q = 0; q < port->queues; q++) {
        struct gw_drop_choice *choice = &plan->queues[q];
        choice->small_tried = adopt(&choice->loss.small, &trial.either[q][GW_DROP_SMALL]);
        choice->large_tried = adopt(&choice->loss.large, &trial.either[q][GW_DROP_LARGE]);
    }
    gw_drop_plan_price(plan, port);
}
