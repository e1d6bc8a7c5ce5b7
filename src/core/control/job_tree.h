/*
 * The tree of a job: from the ways of its workers to where each worker and each switch is in it
 * (ATP, appendix A.3; with one level the rack-scale solution of section 5.2.2).
 *
 * The tree is what packets pass anyway: the last switch of every way, the server's, is the root; a
 * worker hangs on the first switch of its way. The longest way says how many levels there are, and
 * the root is of the highest. Below a switch, other switches have the first positions and its own
 * workers the next ones, each in the order of ranks.
 *
 * A pure function of its input: the same ways give the same tree.
 */
#ifndef GW_CORE_JOB_TREE_H
#define GW_CORE_JOB_TREE_H

#include "core/aggregation/contributors.h"
#include "core/job.h"

/* The switches that see every packet of a worker to the server, in the order of its way. */
struct gw_job_way {
    uint32_t worker; /* address */
    uint32_t switches[GW_LEVELS_MAX];
    uint8_t count;
};

/* A switch of the tree. */
struct gw_job_node {
    uint32_t address;
    uint32_t via;  /* a worker below it: what is sent there passes the switch */
    uint32_t next; /* index of the next switch towards the server; GW_JOB_NODE_NONE: the root */
    /* Where copies of a result go: its workers, and a worker below each switch right below it. The
     * first ones are those of its positions, in their order. */
    uint32_t first_member; /* index into the tree's members */
    uint16_t member_count;
    uint16_t first_rank;   /* lowest rank below it, whose address is `via` */
    uint16_t switch_count; /* right below it */
    uint16_t worker_count;
    uint8_t position; /* below the next one */
    uint8_t depth;    /* switches between it and the server */
    struct gw_job_spot spot;
};

#define GW_JOB_NODE_NONE UINT32_MAX

/* Where a worker hangs. */
struct gw_job_leaf {
    uint16_t node;
    uint16_t index; /* among the workers of that node */
};

struct gw_job_tree {
    struct gw_place *places;    /* by rank */
    struct gw_job_node *nodes;  /* the root is the first */
    struct gw_job_leaf *leaves; /* by rank */
    uint32_t *members;          /* of all nodes */
    uint16_t *workers; /* likewise: how many are behind that position, 0 where there is none */
    uint32_t node_count;
    uint32_t levels; /* for gw_contributors_init(); 0: no switch adds up, there are no nodes */
    uint32_t about;  /* after a refusal: the rank or the address of the switch at fault */
};

/* Bytes of memory for the tree of `world` workers. */
size_t gw_job_tree_size(uint32_t world);

/*
 * Makes the tree of the ways by rank, 1 to GW_WORLD_MAX of them, in `memory`, aligned to 64.
 * At most `levels` levels of switches add up, up to GW_LEVELS_MAX:
 *
 *   0  none: workers are told apart by rank alone. So it is, too, if there is no switch on any way;
 *   1  those that workers hang on, each for itself; all that are above them only multiply results.
 *      The workers of a switch that has others below are one more rack;
 *   2  if some ways have three switches, their first and last; nothing hangs on the second ones.
 *
 * Returns GW_JOB_OK, or with `about` set: GW_JOB_PATH (ways end at different switches, or go on
 * differently from the same one), or GW_JOB_TREE (more than GW_FAN_IN_MAX below one switch).
 */
enum gw_job_reason gw_job_tree_make(struct gw_job_tree *tree, void *memory,
                                    const struct gw_job_way *ways, uint32_t world, uint32_t levels);

#endif
