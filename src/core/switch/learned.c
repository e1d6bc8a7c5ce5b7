/* Learned addresses; see learned.h. */
#include "core/switch/learned.h"

#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/index_list.h"

GW_INDEX_LIST(entries, struct gw_learned_entry)
GW_INDEX_LIST(beyond, struct gw_learned_port)

/* The same measures and builds. */
static void carve(struct gw_learned *learned, const struct gw_learned_cfg *cfg,
                  struct gw_arena *arena)
{
    size_t entries = (cfg->max + cfg->port_count + 1u) * sizeof(*learned->entries);
    size_t ports = (cfg->port_count + 1u) * sizeof(*learned->ports);
    learned->entries = gw_arena_take(arena, entries);
    learned->ports = gw_arena_take(arena, ports);
    void *map = gw_arena_take(arena, gw_map_size(cfg->max));
    if (!arena->base)
        return;
    memset(learned->entries, 0, entries);
    memset(learned->ports, 0, ports);
    gw_map_init(&learned->map, map, cfg->max);
}

size_t gw_learned_size(const struct gw_learned_cfg *cfg)
{
    struct gw_learned learned;
    struct gw_arena arena = {.used = 0};
    carve(&learned, cfg, &arena);
    return arena.used;
}

/* Where the list of a port begins, and behind all ports that of free entries. */
static uint32_t head_of(const struct gw_learned *learned, uint16_t port)
{
    return learned->cfg.max + port;
}

void gw_learned_init(struct gw_learned *learned, void *memory, const struct gw_learned_cfg *cfg)
{
    struct gw_arena arena = {.base = memory};
    GW_ASSERT(cfg->max >= cfg->port_count);
    *learned = (struct gw_learned){.cfg = *cfg, .share = cfg->max / cfg->port_count};
    carve(learned, cfg, &arena);
    for (uint32_t i = 0; i < cfg->max + cfg->port_count + 1u; i++)
        learned->entries[i].port = GW_PORT_NONE;
    for (uint16_t port = 0; port <= cfg->port_count; port++) {
        entries_init(learned->entries, head_of(learned, port));
        learned->ports[port].latest = head_of(learned, port);
    }
    beyond_init(learned->ports, cfg->port_count);
}

/* Takes an entry off its port and out of the map. */
static void forget(struct gw_learned *learned, uint32_t index)
{
    struct gw_learned_entry *entry = &learned->entries[index];
    struct gw_learned_port *port = &learned->ports[entry->port];
    entries_remove(learned->entries, index);
    gw_map_remove(&learned->map, entry->address);
    if (port->count-- == learned->share + 1)
        beyond_remove(learned->ports, entry->port);
    entry->port = GW_PORT_NONE;
}

/* Gives an entry that is on no list to a new address of a port. */
static void give(struct gw_learned *learned, uint32_t index, uint32_t address, uint16_t number)
{
    struct gw_learned_port *port = &learned->ports[number];
    if (port->count > learned->share)
        beyond_remove(learned->ports, number);
    if (++port->count > learned->share)
        beyond_append(learned->ports, learned->cfg.port_count, number);
    learned->entries[index].address = address;
    learned->entries[index].port = number;
    gw_map_put(&learned->map, address, index);
}

/* The port that gives an address up for a new one of `port`, which may be itself; GW_PORT_NONE:
 * none does, since what is above takes nobody's place. */
static uint16_t donor_for(const struct gw_learned *learned, uint16_t port)
{
    uint16_t uplink = learned->cfg.uplink;
    if (uplink != GW_PORT_NONE && learned->ports[uplink].count > 0)
        return uplink;
    if (port == uplink)
        return GW_PORT_NONE;
    if (learned->ports[port].count >= learned->share)
        return port;
    return (uint16_t)learned->ports[learned->cfg.port_count].prev;
}

/* An entry for a new address of a port, on no list; GW_MAP_NONE: there is none. A table that is
 * full while a port is below its share has another that is beyond. */
static uint32_t take_room(struct gw_learned *learned, uint16_t port, gw_time now)
{
    uint32_t free_head = head_of(learned, learned->cfg.port_count);
    if (learned->used < learned->cfg.max)
        return learned->used++;
    uint32_t index = entries_first(learned->entries, free_head);
    if (index != free_head) {
        entries_remove(learned->entries, index);
        return index;
    }
    uint16_t from = donor_for(learned, port);
    if (from == GW_PORT_NONE)
        return GW_MAP_NONE;
    index = entries_first(learned->entries, head_of(learned, from));
    if (from == port && !gw_learned_is_idle(learned, &learned->entries[index], now))
        return GW_MAP_NONE;
    forget(learned, index);
    return index;
}

/* Whether an address that hangs on another port may turn up at one: it was above, long ago. */
static bool is_to_be_had(const struct gw_learned *learned, uint32_t index, gw_time now)
{
    const struct gw_learned_entry *entry = &learned->entries[index];
    return entry->port == learned->cfg.uplink && gw_learned_is_idle(learned, entry, now);
}

int gw_learned_note(struct gw_learned *learned, uint32_t address, uint16_t port, gw_time now)
{
    struct gw_learned_entry *entry = &learned->entries[learned->ports[port].latest];
    if (entry->address == address && entry->port == port) {
        entry->seen = now;
        return GW_OK;
    }
    uint32_t index = gw_map_get(&learned->map, address);
    if (index != GW_MAP_NONE && learned->entries[index].port != port) {
        if (!is_to_be_had(learned, index, now))
            return GW_ERR_INVALID;
        forget(learned, index);
        give(learned, index, address, port);
    } else if (index == GW_MAP_NONE) {
        index = take_room(learned, port, now);
        if (index == GW_MAP_NONE)
            return GW_ERR_NO_ROOM;
        give(learned, index, address, port);
    } else {
        entries_remove(learned->entries, index);
    }
    entries_append(learned->entries, head_of(learned, port), index);
    learned->entries[index].seen = now;
    learned->ports[port].latest = index;
    return GW_OK;
}

uint16_t gw_learned_find(struct gw_learned *learned, uint32_t address)
{
    uint32_t index = gw_map_get(&learned->map, address);
    if (index == GW_MAP_NONE)
        return GW_PORT_NONE;
    learned->recent[address % GW_LEARNED_RECENT] = index;
    return learned->entries[index].port;
}

const struct gw_learned_entry *gw_learned_next(const struct gw_learned *learned, uint32_t *at)
{
    while (*at < learned->used) {
        const struct gw_learned_entry *entry = &learned->entries[(*at)++];
        if (entry->port != GW_PORT_NONE)
            return entry;
    }
    return NULL;
}

bool gw_learned_is_idle(const struct gw_learned *learned, const struct gw_learned_entry *entry,
                        gw_time now)
{
    return now - entry->seen >= learned->cfg.idle;
}

void gw_learned_forget(struct gw_learned *learned, uint16_t port)
{
    uint32_t head = head_of(learned, port);
    while (!entries_is_empty(learned->entries, head)) {
        uint32_t index = entries_first(learned->entries, head);
        forget(learned, index);
        entries_append(learned->entries, head_of(learned, learned->cfg.port_count), index);
    }
}
