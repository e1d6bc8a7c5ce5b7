/*
 * Addresses that a switch has learned: which port each of them hangs on, as in a transparent
 * bridge (IEEE 802.1D). For fabrics whose host addresses are random numbers.
 *
 * An address belongs to the port that it came by first, until that port is forgotten: so nobody
 * takes the packets of another by sending in its name. What is above, behind the uplink, is noted
 * for that alone: packets to it would go there anyway. So it is given up first where room is
 * wanted, and an address that has not been heard from above for long may turn up below.
 *
 * Every other port has an equal share of the table, and may have more while there is room. When
 * there is none, a port below its share takes it from the one that went beyond its own last, so
 * nobody who sends in ever new names takes what is due to others; any other port makes room by
 * itself, for the address that has been silent longest, if that is long enough. Nothing that a
 * packet causes scans the table.
 */
#ifndef GW_CORE_LEARNED_H
#define GW_CORE_LEARNED_H

#include "base/map.h"
#include "core/node.h"

enum {
    GW_LEARNED_RECENT = 32, /* results go to a job's workers in turn */
};

struct gw_learned_entry {
    uint32_t address;
    uint16_t port;       /* GW_PORT_NONE: free */
    gw_time seen;        /* last time that it sent, or about that */
    uint32_t prev, next; /* on the list of its port, or of what is free */
};

/* The addresses of a port, on a list in the order in which they have sent. */
struct gw_learned_port {
    uint32_t count;
    uint32_t latest;     /* the entry of what came last, so that a train costs one look */
    uint32_t prev, next; /* on the list of those beyond their share, the last to grow last */
};

struct gw_learned_cfg {
    uint32_t max; /* addresses, at least one for each port */
    uint16_t port_count;
    uint16_t uplink; /* or GW_PORT_NONE */
    gw_time idle;    /* an address that has not sent for so long makes room for others */
};

struct gw_learned {
    struct gw_learned_cfg cfg;
    struct gw_learned_entry *entries;   /* `max`, then a head of a list for each port, and for what
                                           is free */
    struct gw_learned_port *ports;      /* port_count, then the head of those beyond their share */
    uint32_t recent[GW_LEARNED_RECENT]; /* entries that were looked up last, by the address */
    struct gw_map map;                  /* address to index of the entry */
    uint32_t used;                      /* entries [0, used) have been in use */
    uint32_t share;
};

/* Bytes of memory for a table. */
size_t gw_learned_size(const struct gw_learned_cfg *cfg);

/* Makes an empty table in `memory`, aligned to 64. */
void gw_learned_init(struct gw_learned *learned, void *memory, const struct gw_learned_cfg *cfg);

/*
 * `address` sends by `port`. Returns 0; GW_ERR_INVALID when it hangs on another port; or
 * GW_ERR_NO_ROOM when it is new, the table is full, and the port has its share, none of it idle.
 */
int gw_learned_note(struct gw_learned *learned, uint32_t address, uint16_t port, gw_time now);

/* The port of `address`, which is not that of its recent entry, or GW_PORT_NONE. */
uint16_t gw_learned_find(struct gw_learned *learned, uint32_t address);

/* The port of `address`, or GW_PORT_NONE. */
static inline uint16_t gw_learned_port(struct gw_learned *learned, uint32_t address)
{
    const struct gw_learned_entry *recent =
        &learned->entries[learned->recent[address % GW_LEARNED_RECENT]];
    if (recent->address == address && recent->port != GW_PORT_NONE)
        return recent->port;
    return gw_learned_find(learned, address);
}

/* Whether `address` hangs on `port`; of what came by it last that costs one look. */
static inline bool gw_learned_is_at(struct gw_learned *learned, uint32_t address, uint16_t port)
{
    const struct gw_learned_entry *latest = &learned->entries[learned->ports[port].latest];
    if (latest->address == address && latest->port == port)
        return true;
    return gw_learned_port(learned, address) == port;
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
