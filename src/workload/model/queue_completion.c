/* Completion times behind queues with thresholds; see queue_completion.h. */
#include "workload/model/queue_completion.h"

#include <stdlib.h>

#include "topo/memory.h"

enum {
    KINDS = GW_LOSS_KINDS,
    PARTS = 8,        /* of a packet: the step of the grid */
    FELT = 24,        /* packets above the limit after which nothing is left */
    LIMIT_MAX = 4000, /* packets: who gets there may as well stay */
};

#define STEP    (1.0 / PARTS)
#define NOTHING 1e-14 /* density that does not count any more */

/* At an amount of work, time spent per packet of work, while ... */
struct node {
    double served;       /* the queue is served */
    double after[KINDS]; /* what goes before has its turn, and a packet is in part sent */
    double first[KINDS]; /* the packet from behind does, or what goes before, after it */
    double beyond;       /* and all of that above this amount */
};

/* What crosses an amount of work on its way up: in all, and in a period of each kind. */
struct crossings {
    double all, after[KINDS], first[KINDS];
};

struct grid {
    const struct gw_loss_maps *maps;
    double threshold, limit;
    struct node *starts, *spent; /* where it begins, and the time that is spent from there on */
    uint32_t count;              /* of nodes */
    double start[KINDS];         /* the same without work: only ever as `first` */
    double empty[KINDS];
};

static void set_node(const struct grid *grid, uint32_t i, const struct gw_loss_rates *rates,
                     const struct crossings *up)
{
    const struct gw_loss_maps *maps = grid->maps;
    const struct node *starts = &grid->starts[i];
    struct node *node = &grid->spent[i];
    node->served = up->all + starts->beyond;
    for (int k = 0; k < KINDS; k++) {
        node->after[k] = (maps->starts[k] * node->served + up->after[k] + starts->after[k]) /
                         (maps->ends[k] + rates->served);
        node->first[k] = (up->first[k] + starts->first[k]) / (maps->first_ends[k] + rates->first);
    }
}

/* What arrives at a node, off what no packet is large enough for. */
static struct crossings slope_of(const struct node *node, const struct gw_loss_rates *rates,
                                 const struct crossings *up)
{
    struct crossings slope = {.all = rates->served * node->served - up->all};
    for (int k = 0; k < KINDS; k++) {
        slope.all += rates->served * node->after[k] + rates->first * node->first[k];
        slope.after[k] = rates->served * node->after[k] - up->after[k];
        slope.first[k] = rates->first * node->first[k] - up->first[k];
    }
    return slope;
}

static void add(struct crossings *up, const struct crossings *slope, double length)
{
    up->all += slope->all * length;
    for (int k = 0; k < KINDS; k++) {
        up->after[k] += slope->after[k] * length;
        up->first[k] += slope->first[k] * length;
    }
}

/* From node i to the next, by Heun's method. */
static void step_up(const struct grid *grid, uint32_t i, struct crossings *up)
{
    double x = (i + 0.5) * STEP;
    const struct gw_loss_rates rates =
        gw_loss_rates(grid->maps, x - grid->threshold, x - grid->limit);
    struct crossings next = *up;
    set_node(grid, i, &rates, up);
    const struct crossings here = slope_of(&grid->spent[i], &rates, up);
    add(&next, &here, STEP);
    set_node(grid, i + 1, &rates, &next);
    const struct crossings there = slope_of(&grid->spent[i + 1], &rates, &next);
    add(up, &here, STEP / 2);
    add(up, &there, STEP / 2);
    set_node(grid, i + 1, &rates, up);
}

static double density(const struct node *node)
{
    double sum = node->served;
    for (int k = 0; k < KINDS; k++)
        sum += node->after[k] + node->first[k];
    return sum;
}

/* The time spent from the starts on; returns all of it. */
static double spend(struct grid *grid)
{
    struct crossings up = {0};
    double sum = 0;
    for (int k = 0; k < KINDS; k++) {
        grid->empty[k] = grid->start[k] / (grid->maps->first_ends[k] + grid->maps->queue.own);
        up.first[k] = grid->maps->queue.own * grid->empty[k];
        up.all += up.first[k];
        sum += grid->empty[k];
    }
    for (uint32_t i = 0; i + 1 < grid->count; i++) {
        step_up(grid, i, &up);
        if (density(&grid->spent[i + 1]) < NOTHING)
            grid->count = i + 2;
    }
    grid->spent[grid->count - 1].beyond = 0;
    for (uint32_t i = grid->count - 1; i-- > 0;)
        grid->spent[i].beyond =
            grid->spent[i + 1].beyond +
            (density(&grid->spent[i]) + density(&grid->spent[i + 1])) / 2 * STEP;
    return sum + grid->spent[0].beyond;
}

struct gw_completion gw_completion_behind(const struct gw_loss_maps *maps, double threshold,
                                          double limit)
{
    double reached = limit < LIMIT_MAX ? limit : LIMIT_MAX;
    struct grid grid = {
        .maps = maps,
        .threshold = threshold < reached ? threshold : reached,
        .limit = reached,
        .count = (uint32_t)((reached + FELT) * PARTS),
    };
    struct node *nodes = gw_memory_zeroed(2 * (size_t)grid.count, sizeof(*nodes));
    double moments[3], factor = 1;
    grid.starts = nodes;
    grid.spent = nodes + grid.count;
    for (int k = 0; k < KINDS; k++)
        grid.start[k] = maps->first_chances[k];
    for (int order = 0; order < 3; order++) {
        moments[order] = factor * spend(&grid);
        factor *= order + 2;
        struct node *next = grid.starts;
        grid.starts = grid.spent;
        grid.spent = next;
        for (int k = 0; k < KINDS; k++)
            grid.start[k] = grid.empty[k];
    }
    free(nodes);
    return (struct gw_completion){.mean = moments[0], .square = moments[1], .cube = moments[2]};
}

struct gw_completion gw_completion_of_load(double load)
{
    double free = 1 - load, cube = free * free * free;
    return (struct gw_completion){
        .mean = 1 / free,
        .square = 2 / cube,
        .cube = 6 * (1 + load) / (cube * free * free),
    };
}
