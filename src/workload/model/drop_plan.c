/*
 * The optimiser of thresholds; see drop_plan.h.
 *
 * The cost of a queue depends on its own S and L, and on the loads of the others. With the loads
 * given, the least cost of each queue for each L is found by trying every S, and the buffer is
 * divided by dynamic programming: queue after queue, the least cost for each part of the buffer.
 * Neither needs a curve to be convex, which losses are not: below the load 1 another packet of room
 * is worth less than the one before, but a threshold moved up takes room from the large packets.
 * So for these loads the result is the least of all on the grid: thresholds are multiples of the
 * mean packet or, if that is more, of the 1024th part of the buffer.
 *
 * What a queue loses does not load those behind it. The loads are first taken as what arrives, then
 * as what is left after the losses found, until thresholds stay or a few rounds are over; the best
 * round counts. That one queue could lose more to relieve others is not weighed. The paper takes
 * what arrives: its mu_i = mu prod_{k<i} (1 - rho_k) is what arrives for the queues before i taken
 * off mu, since rho_k = lambda_k / mu_k.
 *
 * While all pairs are tried, packets end at the head of a queue's work as densely as at S
 * (gw_loss_cross()); of the thresholds that are found, as queue_heads.h has it.
 *
 * A queue that holds L bytes still takes a packet, so each is given a packet of the buffer besides.
 */
#include "workload/model/drop_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "topo/memory.h"
#include "workload/model/queue_completion.h"
#include "workload/model/queue_heads.h"

enum {
    GRID_MAX = 1024, /* steps of the buffer */
    ROUNDS_MAX = 4,
    PASSES = 4, /* until the loads of queues agree with their losses to far below 1 % */
    QUEUES = GW_DROP_QUEUES_MAX,
};

#define ROUGH 0.1 /* part of the density of packets: losses are off by a fifth of that */

/* An optimisation on its way. Positions count steps of the grid. */
struct search {
    const struct gw_drop_port *port;
    uint64_t unit;                               /* bytes of a step */
    double step;                                 /* the same in packets */
    uint32_t steps;                              /* of the buffer that can be given away */
    double served[QUEUES];                       /* what of the loads is not lost */
    struct gw_completion completion[QUEUES + 1]; /* behind the queues before each */
    uint32_t threshold[QUEUES], limit[QUEUES];
    double *least[QUEUES];          /* cost of a queue by its limit, then of all up to it */
    uint32_t *threshold_of[QUEUES]; /* by the queue's limit */
    uint32_t *limit_of[QUEUES];     /* by what it and those before it have */
    struct gw_loss_maps maps;
};

void gw_drop_port_load(struct gw_drop_port *port, const struct gw_model *model, double load)
{
    memset(port->loads, 0, sizeof(port->loads));
    for (uint32_t x = 0; x < model->layer_count; x++) {
        uint32_t queue = x * port->queues / model->layer_count;
        const struct gw_layer *layer = &model->layers[x];
        port->loads[queue] +=
            load * (double)(layer->weights + layer->biases) / (double)model->params;
    }
}

static struct gw_drop_queue queue_of(const struct search *search, uint32_t q)
{
    const struct gw_drop_port *port = search->port;
    struct gw_drop_queue queue = {
        .own = port->loads[q], .small = port->small, .completion = search->completion[q]};
    for (uint32_t k = 0; k < q; k++) {
        queue.arrives += port->loads[k];
        queue.above += search->served[k];
    }
    for (uint32_t k = q + 1; k < port->queues; k++)
        queue.below += search->served[k];
    return queue;
}

/* The paper's loss of a queue, in which the halves are queues of their own. */
static struct gw_loss paper_loss(const struct search *search, uint32_t q, double threshold,
                                 double limit)
{
    const struct gw_drop_port *port = search->port;
    double left = 1, small = port->small * threshold;
    for (uint32_t k = 0; k < q; k++)
        left -= port->loads[k];
    return (struct gw_loss){.small = gw_loss_paper(port->loads[q] / left, small),
                            .large = gw_loss_paper(port->loads[q] / left, limit - small)};
}

/* A queue's losses where it is now. */
static struct gw_loss losses_of(struct search *search, uint32_t q)
{
    struct gw_drop_queue queue = queue_of(search, q);
    struct gw_loss_walk walk;
    double threshold = search->threshold[q] * search->step, limit = search->limit[q] * search->step;
    if (search->port->paper)
        return paper_loss(search, q, threshold, limit);
    gw_loss_prepare(&search->maps, &queue, search->step);
    gw_loss_begin(&walk, &search->maps);
    for (uint32_t s = 0; s < search->threshold[q]; s++)
        gw_loss_raise(&walk, &search->maps);
    gw_queue_heads(&search->maps, threshold, limit);
    for (uint32_t l = search->threshold[q]; l < search->limit[q]; l++)
        gw_loss_raise_limit(&walk, &search->maps);
    if (queue.above + queue.own < 1)
        search->completion[q + 1] = gw_completion_behind(&search->maps, threshold, limit);
    return gw_loss_read(&walk, &search->maps);
}

/* As if there were no thresholds. */
static void forget(struct search *search)
{
    double above = 0;
    memcpy(search->served, search->port->loads, sizeof(search->served));
    for (uint32_t q = 0; q <= search->port->queues; q++) {
        if (above < 1)
            search->completion[q] = gw_completion_of_load(above);
        above += q < search->port->queues ? search->port->loads[q] : 0;
    }
}

static double cost_of(const struct gw_drop_port *port, uint32_t q, struct gw_loss loss)
{
    return (port->small > 0 ? gw_drop_cost(&port->costs.small[q], loss.small) : 0) +
           (port->small < 1 ? gw_drop_cost(&port->costs.large[q], loss.large) : 0);
}

static void keep_least(struct search *search, uint32_t q, uint32_t threshold, uint32_t limit,
                       double cost)
{
    if (cost >= search->least[q][limit])
        return;
    search->least[q][limit] = cost;
    search->threshold_of[q][limit] = threshold;
}

/* The least cost of a queue for each limit, over all thresholds. */
static void try_thresholds(struct search *search, uint32_t q)
{
    struct gw_drop_queue queue = queue_of(search, q);
    struct gw_loss_walk walk = {0};
    for (uint32_t limit = 0; limit <= search->steps; limit++)
        search->least[q][limit] = queue.own > 0 ? 1e300 : 0;
    if (queue.own <= 0)
        return;
    if (!search->port->paper) {
        gw_loss_prepare(&search->maps, &queue, search->step);
        gw_loss_begin(&walk, &search->maps);
    }
    for (uint32_t s = 0; s <= search->steps; s++) {
        struct gw_loss_walk up = walk;
        if (!search->port->paper)
            gw_loss_cross(&up, &search->maps, ROUGH);
        for (uint32_t l = s; l <= search->steps; l++) {
            struct gw_loss loss = search->port->paper
                                      ? paper_loss(search, q, s * search->step, l * search->step)
                                      : gw_loss_read(&up, &search->maps);
            keep_least(search, q, s, l, cost_of(search->port, q, loss));
            if (!search->port->paper)
                gw_loss_raise_limit(&up, &search->maps);
        }
        if (!search->port->paper)
            gw_loss_raise(&walk, &search->maps);
    }
}

/* Divides the buffer: afterwards least[q][b] is the least cost of queues up to q with b steps. */
static void divide(struct search *search)
{
    uint32_t queues = search->port->queues, left = search->steps;
    for (uint32_t q = 0; q < queues; q++) {
        double *own = search->least[q], *before = q ? search->least[q - 1] : NULL;
        /* From the most down: own[] is read at and below the place that is written. */
        for (uint32_t b = search->steps + 1; b-- > 0;) {
            double least = 1e301;
            for (uint32_t l = 0; l <= b; l++) {
                double cost = own[l] + (before ? before[b - l] : 0);
                if (cost < least) {
                    least = cost;
                    search->limit_of[q][b] = l;
                }
            }
            own[b] = least;
        }
    }
    for (uint32_t q = queues; q-- > 0;) {
        search->limit[q] = search->limit_of[q][left];
        search->threshold[q] = search->threshold_of[q][search->limit[q]];
        left -= search->limit[q];
    }
}

void gw_drop_plan_price(struct gw_drop_plan *plan, const struct gw_drop_port *port)
{
    plan->cost = 0;
    for (uint32_t q = 0; q < port->queues; q++) {
        struct gw_drop_choice *choice = &plan->queues[q];
        choice->cost = port->loads[q] > 0 ? cost_of(port, q, choice->loss) : 0;
        plan->cost += choice->cost;
    }
}

/* The losses of all queues, and what each then brings to the others. */
static void settle(struct search *search, struct gw_drop_plan *plan)
{
    const struct gw_drop_port *port = search->port;
    for (uint32_t pass = 0; pass < PASSES; pass++) {
        for (uint32_t q = 0; q < port->queues; q++) {
            struct gw_drop_choice *choice = &plan->queues[q];
            *choice = (struct gw_drop_choice){.threshold = search->threshold[q] * search->unit,
                                              .limit = search->limit[q] * search->unit};
            search->completion[q + 1] = search->completion[q];
            if (port->loads[q] <= 0)
                continue;
            choice->loss = losses_of(search, q);
            search->served[q] = port->loads[q] * (1 - port->small * choice->loss.small -
                                                  (1 - port->small) * choice->loss.large);
        }
    }
    gw_drop_plan_price(plan, port);
}

static void optimise(struct search *search, struct gw_drop_plan *best)
{
    uint32_t last[2][QUEUES];
    forget(search);
    for (uint32_t round = 0; round < ROUNDS_MAX; round++) {
        struct gw_drop_plan plan = {0};
        for (uint32_t q = 0; q < search->port->queues; q++)
            try_thresholds(search, q);
        divide(search);
        settle(search, &plan);
        if (round == 0 || plan.cost < best->cost)
            *best = plan;
        if (search->port->paper ||
            (round > 0 && memcmp(last[0], search->threshold, sizeof(last[0])) == 0 &&
             memcmp(last[1], search->limit, sizeof(last[1])) == 0))
            break;
        memcpy(last[0], search->threshold, sizeof(last[0]));
        memcpy(last[1], search->limit, sizeof(last[1]));
    }
}

/* Least squares over the queues to which something comes; T is at least a packet. */
static void fit_sequence(struct gw_drop_plan *plan, const struct gw_drop_port *port)
{
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (uint32_t q = 0; q < port->queues; q++) {
        double s = (double)plan->queues[q].threshold;
        if (port->loads[q] <= 0)
            continue;
        n += 1;
        x += q;
        y += s;
        xx += (double)q * q;
        xy += q * s;
    }
    double spread = n * xx - x * x, slope = spread > 0 ? (n * xy - x * y) / spread : 0;
    double first = (y - slope * x) / n;
    if (first < port->packet) {
        first = port->packet;
        slope = xx > 0 ? (xy - first * x) / xx : 0;
    }
    double step = slope / first * (double)GW_Q16_ONE;
    plan->threshold = (uint64_t)(first + 0.5);
    plan->step = (gw_q16)(step < 0 ? step - 0.5 : step + 0.5);
}

/* No queue behind the first may be without service. */
static int check(const struct gw_drop_port *port, char *why, uint32_t why_size)
{
    double before = 0;
    for (uint32_t q = 0; q < port->queues; q++) {
        if (before >= 1 && port->loads[q] > 0) {
            snprintf(why, why_size,
                     "queue %u is starved: those before it take %.1f %% of the service", q + 1,
                     before * 100);
            return GW_ERR_RANGE;
        }
        before += port->loads[q];
    }
    if (port->buffer / port->packet < 2 * port->queues) {
        snprintf(why, why_size, "the buffer must hold at least 2 packets for each of %u queues",
                 port->queues);
        return GW_ERR_RANGE;
    }
    return GW_OK;
}

int gw_drop_plan_make(struct gw_drop_plan *plan, const struct gw_drop_port *port, char *why,
                      uint32_t why_size)
{
    struct search search = {.port = port, .unit = port->packet};
    uint64_t room = port->buffer - (uint64_t)port->queues * port->packet;
    int error = check(port, why, why_size);
    if (error)
        return error;
    if (room / GRID_MAX >= search.unit)
        search.unit = (room + GRID_MAX - 1) / GRID_MAX;
    search.step = (double)search.unit / port->packet;
    search.steps = (uint32_t)(room / search.unit);
    for (uint32_t q = 0; q < port->queues; q++) {
        search.least[q] = gw_memory_zeroed(search.steps + 1, sizeof(double));
        search.threshold_of[q] = gw_memory_zeroed(search.steps + 1, sizeof(uint32_t));
        search.limit_of[q] = gw_memory_zeroed(search.steps + 1, sizeof(uint32_t));
    }
    optimise(&search, plan);
    fit_sequence(plan, port);
    for (uint32_t q = 0; q < port->queues; q++) {
        free(search.least[q]);
        free(search.threshold_of[q]);
        free(search.limit_of[q]);
    }
    return GW_OK;
}

void gw_drop_plan_rate(struct gw_drop_plan *plan, const struct gw_drop_port *port)
{
    struct search search = {.port = port, .unit = port->packet, .step = 1};
    for (uint32_t q = 0; q < port->queues; q++) {
        search.threshold[q] = (uint32_t)(plan->queues[q].threshold / port->packet);
        search.limit[q] = (uint32_t)(plan->queues[q].limit / port->packet);
    }
    forget(&search);
    settle(&search, plan);
    fit_sequence(plan, port);
}
