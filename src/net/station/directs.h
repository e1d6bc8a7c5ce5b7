/*
 * Direct ways of a loop: where packets to certain addresses go, past what their port is linked to.
 * A table; the loop does the sending. There may be one for what leaves by a port, and one for the
 * packets of a job.
 */
#ifndef GW_NET_DIRECTS_H
#define GW_NET_DIRECTS_H

#include "base/map.h"

enum {
    GW_DIRECTS_NO_PEER = UINT16_MAX,
};

struct gw_direct {
    uint32_t of; /* port that they leave by, or job that they are of */
    uint32_t address;
    uint16_t peer; /* the neighbour that they go to, or GW_DIRECTS_NO_PEER: */
    uint32_t to;   /* another port */
};

struct gw_directs {
    struct gw_direct *list;
    uint32_t count, limit;
    struct gw_map map; /* `of` and address to index */
    void *memory;      /* of it */
};

/* Makes an empty table. Returns 0 or GW_ERR_NO_MEMORY; close() is for either case. */
int gw_directs_open(struct gw_directs *directs, uint32_t limit);
void gw_directs_close(struct gw_directs *directs);

/* The way to an address; NULL: it has none. */
const struct gw_direct *gw_directs_find(const struct gw_directs *directs, uint32_t of,
                                        uint32_t address);

/* Adds one, or replaces the one that there is. Returns 0 or GW_ERR_NO_ROOM. */
int gw_directs_put(struct gw_directs *directs, const struct gw_direct *direct);

/* Takes one back; an absent one is no error. */
void gw_directs_remove(struct gw_directs *directs, uint32_t of, uint32_t address);

/* Takes back all that lead to the neighbour. */
void gw_directs_remove_peer(struct gw_directs *directs, uint16_t peer);

#endif
