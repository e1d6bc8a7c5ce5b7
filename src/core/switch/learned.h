/*
 * Addresses that a switch has learned: which port each of them hangs on, as in a transparent
 * bridge (IEEE 802.1D). For fabrics whose host addresses are random numbers.
 *
 * An address belongs to the port that it came by first, until that port is forgotten: so nobody
 * takes the packets of another by sending in its name.
 */
#ifndef GW_CORE_LEARNED_H
#define GW_CORE_LEARNED_H

#include "base/map.h"
#include "core/node.h"

enum {
    GW_LEARNED_MAX = 1 << 20,
};

struct gw_learned_entry {
    uint32_t address;
    uint16_t port; /* GW_PORT_NONE: free */
    gw_time seen;  /* last time that it sent, or about that */
};

struct gw_learned {
    struct gw_learned_entry *entries;
    uint32_t *last;    /* per port: the entry of what came last, so that a train costs one look */
    uint32_t recent;   /* the entry that was looked up last: likewise */
    struct gw_map map; /* address to index of the entry */
    uint32_t count;    /* entries [0, count) have been in use */
    uint32_t max;
    uint16_t port_count;
    gw_time idle; /* an address that has not sent for so long makes room for others */
};

/* Bytes of memory for `max` addresses on `port_count` ports. */
size_t gw_learned_size(uint32_t max, uint16_t port_count);
/* Makes an empty table in `memory`, aligned to 64. */
void gw_learned_init(struct gw_learned *learned, void *memory, uint32_t max, uint16_t port_count,
                     gw_time idle);

/*
 * `address` sends by `port`. Returns 0; GW_ERR_INVALID when it hangs on another port; or
 * GW_ERR_NO_ROOM when it is new and nothing is idle.
 */
int gw_learned_note(struct gw_learned *learned, uint32_t address, uint16_t port, gw_time now);

/* The port of `address`, which is not that of the recent entry, or GW_PORT_NONE. */
uint16_t gw_learned_find(struct gw_learned *learned, uint32_t address);

/* The port of `address`, or GW_PORT_NONE. */
static inline uint16_t gw_learned_port(struct gw_learned *learned, uint32_t address)
{
    const struct gw_learned_entry *recent = &learned->entries[learned->recent];
    if (recent->address == address && recent->port != GW_PORT_NONE && learned->count)
        return recent->port;
    return gw_learned_find(learned, address);
}

/*
 * The entry at `*at` or the next one behind it that is in use, and moves `*at` behind it; NULL: no
 * more. `*at` is 0 at first.
 */
const struct gw_learned_entry *gw_learned_next(const struct gw_learned *learned, uint32_t *at);

/* Whether the entry's address has been silent for so long that it makes room for others. */
bool gw_learned_is_idle(const struct gw_learned *learned, const struct gw_learned_entry *entry,
                        gw_time now);

/* Forgets all addresses of a port. */
void gw_learned_forget(struct gw_learned *learned, uint16_t port);

#endif
