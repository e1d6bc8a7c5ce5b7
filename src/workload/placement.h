/*
 * Which hosts the workers and servers of jobs get.
 *
 * Racks are the groups of the topology. Hosts are taken for the whole run and by one entry of the
 * workload: a job that has ended does not give its hosts back, and no two jobs of an entry share
 * one, unless they are stacked and have the same.
 */
#ifndef GW_WORKLOAD_PLACEMENT_H
#define GW_WORKLOAD_PLACEMENT_H

#include <stdbool.h>

#include "workload/workload.h"

/* Which hosts are taken, by rack. */
struct gw_racks {
    uint32_t *rack; /* of each host; numbered in the order of their first hosts */
    bool *is_taken; /* each host */
    uint32_t *free; /* hosts of each rack that are not taken */
    uint32_t count;
    uint32_t host_count;
    uint32_t free_count; /* hosts that are not taken */
};

/* Hosts that the user has listed. */
struct gw_host_list {
    uint32_t *hosts;
    uint32_t count, room;
    uint32_t used; /* from the front on */
};

enum gw_placement {
    GW_PLACEMENT_SPREAD, /* workers evenly over the racks, servers in the last one */
    GW_PLACEMENT_PACKED, /* a job in as few racks as possible, in what fits best */
    GW_PLACEMENT_RANDOM, /* any free hosts */
    GW_PLACEMENT_GIVEN,  /* the next ones of a list */
};

/* As choices of a parameter. */
#define GW_PLACEMENT_WORDS "spread|packed|random|given"

struct gw_place {
    enum gw_placement how;
    bool interleaved; /* spread: neighbouring ranks are in different racks, not in the same one */
    struct gw_prng *prng;       /* random */
    struct gw_host_list *given; /* given */
};

void gw_racks_init(struct gw_racks *racks, const struct gw_topo *topo);
void gw_racks_fini(struct gw_racks *racks);

/* Takes a host, if it is free. */
void gw_racks_occupy(struct gw_racks *racks, uint32_t host);

/* All hosts are free again. */
void gw_racks_clear(struct gw_racks *racks);

/* Takes a free host of rack `rack` or of the next ones; UINT32_MAX when none is left. */
uint32_t gw_racks_take(struct gw_racks *racks, uint32_t rack);

/*
 * Takes hosts for a job: its workers by rank, and behind them its servers. Returns false, and has
 * taken any number, when not enough are left.
 */
bool gw_racks_place(struct gw_racks *racks, const struct gw_place *place, uint32_t *hosts,
                    uint32_t workers, uint32_t servers);

/*
 * Reads a list of hosts by number, with ranges: "3,0-2,7". Returns 0, or a negative error with
 * ctx->why set, which begins with "hosts". gw_host_list_free() takes it back, also after an error.
 */
int gw_host_list_parse(struct gw_host_list *list, const char *text, struct gw_workload_ctx *ctx);
void gw_host_list_free(struct gw_host_list *list);

#endif
