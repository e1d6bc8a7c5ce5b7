/*
 * Ends of packets in a queue's work; see queue_heads.h.
 *
 * With p(x) the densities of the work x in the states of the port, as in queue_loss.c, and m(y, x)
 * those of work x with an end at y, in the same states: an end comes to be at y when a packet finds
 * the work y, and is at x - y from the top from then on but for what comes behind it. While the
 * queue is served y and x shrink together, so m is found from the largest y down, each row from the
 * least x up. What is taken follows from m at x, and m from what is taken, so both are found in
 * turns.
 */
#include "workload/model/queue_heads.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "topo/memory.h"

enum {
    KINDS = GW_LOSS_KINDS,
    PARTS = 8,    /* of a packet: the step of the grid */
    FELT = 16,    /* packets above the limit after which nothing is left */
    ROUNDS = 6,   /* until losses change by less than 1 % */
    FAR_MAX = 32, /* packets: a threshold or limit farther up makes no difference that shows */
    ROWS = 6,     /* doubles of a node */
};

#define STEP (1.0 / PARTS)

/* At an amount of work, a value for each state of the port. */
struct states {
    double served;       /* the queue is served */
    double after[KINDS]; /* what goes before has its turn, and a packet is in part sent */
    double first[KINDS]; /* all of the queue waits */
};

struct grid {
    const struct gw_loss_maps *maps;
    uint32_t threshold, limit; /* nodes */
    uint32_t count;            /* of nodes */
    struct states *density;
    /* By node: chances to be taken while a packet is in part sent, and of these states the mean
     * number of ends in what is too much, times the density. */
    double *small_taken, *large_taken, *small_ends, *large_ends;
    /* By steps from an end to the top: m while the queue is served, and how it changes. */
    double *ends, *slopes;
};

/* From node i to the next one; with an end at node `end`, unless that is 0. */
static struct gw_loss_rates rates_at(const struct grid *grid, uint32_t i, uint32_t end)
{
    double small = grid->maps->queue.small * grid->maps->queue.own;
    double large = grid->maps->queue.own - small;
    bool over = i >= grid->threshold, beyond = i >= grid->limit;
    double small_taken = (grid->small_taken[i] + grid->small_taken[i + 1]) / 2;
    double large_taken = (grid->large_taken[i] + grid->large_taken[i + 1]) / 2;
    if (over && end > 0 && end <= i - grid->threshold)
        small_taken = 0;
    if (beyond && end > 0 && end <= i - grid->limit)
        large_taken = 0;
    return (struct gw_loss_rates){
        .served = small * small_taken + large * large_taken,
        .first = small * !over + large * !beyond,
    };
}

static double of_sent(const struct states *states)
{
    double sum = states->served;
    for (int k = 0; k < KINDS; k++)
        sum += states->after[k];
    return sum;
}

static double of_all(const struct states *states)
{
    double sum = of_sent(states);
    for (int k = 0; k < KINDS; k++)
        sum += states->first[k];
    return sum;
}

/* What crosses a node on its way up, `up`, with the density of being served, makes the others. */
static struct states states_of(const struct grid *grid, const struct gw_loss_rates *rates,
                               const struct states *up, double served)
{
    const struct gw_loss_maps *maps = grid->maps;
    struct states states = {.served = served};
    for (int k = 0; k < KINDS; k++) {
        states.after[k] =
            (maps->starts[k] * served + up->after[k]) / (maps->ends[k] + rates->served);
        states.first[k] = up->first[k] / (maps->first_ends[k] + rates->first);
    }
    return states;
}

/* Adds what comes on a way of this length, off what no packet is large enough for. */
static void add(struct states *to, const struct gw_loss_rates *rates, const struct states *states,
                const struct states *up, double length)
{
    to->served += (rates->served * states->served - up->served) * length;
    for (int k = 0; k < KINDS; k++) {
        to->after[k] += (rates->served * states->after[k] - up->after[k]) * length;
        to->first[k] += (rates->first * states->first[k] - up->first[k]) * length;
    }
}

/*
 * The states at node i; `up` gets to the next one by Heun's method. ends[2] are the densities of
 * being served at both; without them, these are those of all work, which is crossed downwards as
 * often as upwards.
 */
static struct states step_up(const struct grid *grid, uint32_t i, uint32_t end, struct states *up,
                             const double *ends)
{
    const struct gw_loss_rates rates = rates_at(grid, i, end);
    struct states here = states_of(grid, &rates, up, ends ? ends[0] : of_all(up)), next = *up;
    add(&next, &rates, &here, up, STEP);
    struct states there = states_of(grid, &rates, &next, ends ? ends[1] : of_all(&next));
    const struct states first = *up;
    add(up, &rates, &here, &first, STEP / 2);
    add(up, &rates, &there, &next, STEP / 2);
    return here;
}

static void set_density(struct grid *grid)
{
    const struct gw_loss_empty empty = gw_loss_empty(grid->maps);
    double own = grid->maps->queue.own;
    struct states up = {.served = own * empty.idle};
    for (int k = 0; k < KINDS; k++)
        up.first[k] = own * empty.periods[k];
    for (uint32_t i = 0; i + 1 < grid->count; i++)
        grid->density[i] = step_up(grid, i, 0, &up, NULL);
}

/* How fast m changes as y and x shrink together, with `flow` of it from less work. */
static double slope_of(const struct gw_loss_maps *maps, const struct gw_loss_rates *rates,
                       const struct states *here, double flow)
{
    double slope = flow - rates->served * here->served;
    for (int k = 0; k < KINDS; k++)
        slope += maps->ends[k] * here->after[k] + maps->first_ends[k] * here->first[k] -
                 maps->starts[k] * here->served;
    return slope;
}

/* Adds an end to the mean number in what is too much at node i; the outermost ones count half. */
static void count(double *ends, uint32_t i, uint32_t from, uint32_t end, double density)
{
    if (i < from || end > i - from)
        return;
    ends[i] += (end == 0 || end == i - from ? 0.5 : 1) * density * STEP;
}

/* The row of y at node `end`, and the next one by the method of Adams and Bashforth. */
static void count_row(struct grid *grid, uint32_t end)
{
    const struct gw_loss_rates rates = rates_at(grid, end, 0);
    const struct states *old = &grid->density[end];
    struct states up = {.served = rates.served * old->served};
    for (int k = 0; k < KINDS; k++) {
        up.after[k] = rates.served * old->after[k];
        up.first[k] = rates.first * old->first[k];
    }
    for (uint32_t i = end; i + 1 < grid->count; i++) {
        double *ends = &grid->ends[i - end], *last = &grid->slopes[i - end], flow = up.served;
        const struct gw_loss_rates here_rates = rates_at(grid, i, end);
        const struct states here = step_up(grid, i, end, &up, ends);
        double slope = slope_of(grid->maps, &here_rates, &here, flow);
        count(grid->small_ends, i, grid->threshold, end, of_sent(&here));
        count(grid->large_ends, i, grid->limit, end, of_sent(&here));
        ends[0] += (1.5 * slope - 0.5 * *last) * STEP;
        *last = slope;
    }
}

/*
 * The chances to be taken, by the number of ends from `from` on, which is larger the more work
 * there is: half way from those before, so that rounds do not swing. Returns how dense ends are,
 * where that makes a difference.
 */
static double set_taken(const struct grid *grid, uint32_t from, const double *ends, double *taken)
{
    double number = 0, length = 0, mean = 0;
    for (uint32_t i = from + 1; i + 1 < grid->count; i++) {
        double density = of_sent(&grid->density[i]);
        if (ends[i] > mean * density)
            mean = ends[i] / density;
        taken[i] = (taken[i] + gw_loss_decay(mean)) / 2;
        number += density * taken[i] * mean;
        length += density * taken[i] * (i - from) * STEP;
    }
    return length > 0 ? number / length : 0;
}

static void count_ends(struct grid *grid, struct gw_loss_maps *maps)
{
    memset(grid->small_ends, 0, (size_t)(ROWS - 2) * grid->count * sizeof(double));
    set_density(grid);
    for (uint32_t end = grid->count - 1; end-- > 0;)
        count_row(grid, end);
    maps->small_packets = set_taken(grid, grid->threshold, grid->small_ends, grid->small_taken);
    maps->large_packets = set_taken(grid, grid->limit, grid->large_ends, grid->large_taken);
}

/* At first all ends lie as the maps say. */
static void expect(double *taken, const struct grid *grid, uint32_t from, double packets)
{
    for (uint32_t i = 0; i < grid->count; i++)
        taken[i] = i > from ? gw_loss_decay(packets * (i - from) * STEP) : 1;
}

void gw_queue_heads(struct gw_loss_maps *maps, double threshold, double limit)
{
    double between = limit - threshold, start = threshold < FAR_MAX ? threshold : FAR_MAX;
    double end = start + (between < FAR_MAX ? between : FAR_MAX);
    struct grid grid = {.maps = maps,
                        .threshold = (uint32_t)(start * PARTS),
                        .limit = (uint32_t)(end * PARTS),
                        .count = (uint32_t)((end + FELT) * PARTS)};
    double *room = gw_memory_zeroed((size_t)ROWS * grid.count, sizeof(*room));
    grid.density = gw_memory_zeroed(grid.count, sizeof(*grid.density));
    grid.small_taken = room;
    grid.large_taken = grid.small_taken + grid.count;
    grid.small_ends = grid.large_taken + grid.count;
    grid.large_ends = grid.small_ends + grid.count;
    grid.ends = grid.large_ends + grid.count;
    grid.slopes = grid.ends + grid.count;
    expect(grid.small_taken, &grid, grid.threshold, maps->small_packets);
    expect(grid.large_taken, &grid, grid.limit, maps->large_packets);
    for (uint32_t round = 0; round < ROUNDS; round++)
        count_ends(&grid, maps);
    maps->has_large = maps->has_tails = 0;
    free(grid.density);
    free(room);
}
