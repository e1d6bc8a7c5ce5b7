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
static void carve(struct gw_learned *learned, uint32_t max, uint16_t port_count,
                  struct gw_arena *arena)
{
    learned->entries = gw_arena_take(arena, (max + port_count + 1u) * sizeof(*learned->entries));
    learned->ports = gw_arena_take(arena, (port_count + 1u) * sizeof(*learned->ports));
    void *map = gw_arena_take(arena, gw_map_size(max));
    if (!arena->base)
        return;
    memset(learned->entries, 0, (max + port_count + 1u) * sizeof(*learned->entries));
    memset(learned->ports, 0, (port_count + 1u) * sizeof(*learned->ports));
    gw_map_init(&learned->map, map, max);
}

size_t gw_learned_size(uint32_t max, uint16_t port_count)
{
    struct gw_learned learned;
    struct gw_arena arena = {.used = 0};
    carve(&learned, max, port_count, &arena);
    return arena.used;
}

/* Where the list of a port begins, and behind all ports that of free entries. */
static uint32_t head_of(const struct gw_learned *learned, uint16_t port)
{
    return learned->max + port;
}

void gw_learned_init(struct gw_learned *learned, void *memory, uint32_t max, uint16_t port_count,
                     gw_time idle)
{
    struct gw_arena arena = {.base = memory};
    GW_ASSERT(max >= port_count);
    *learned = (struct gw_learned){
        .max = max, .share = max / port_count, .port_count = port_count, .idle = idle};
    carve(learned, max, port_count, &arena);
    for (uint32_t i = 0; i < max + port_count + 1u; i++)
        learned->entries[i].port = GW_PORT_NONE;
    for (uint16_t port = 0; port <= port_count; port++) {
        entries_init(learned->entries, head_of(learned, port));
        learned->ports[port].latest = head_of(learned, port);
    }
    beyond_init(learned->ports, port_count);
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
        beyond_append(learned->ports, learned->port_count, number);
    learned->entries[index].address = address;
    learned->entries[index].port = number;
    gw_map_put(&learned->map, address, index);
}

/* An entry for a new address of a port, on no list; GW_MAP_NONE: there is none. A table that is
 * full while a port is below its share has another that is beyond. */
static uint32_t take_room(struct gw_learned *learned, uint16_t port, gw_time now)
{
    uint32_t free_head = head_of(learned, learned->port_count);
    if (learned->used < learned->max)
        return learned->used++;
    uint32_t index = entries_first(learned->entries, free_head);
    if (index != free_head) {
        entries_remove(learned->entries, index);
        return index;
    }
    bool is_below = learned->ports[port].count < learned->share;
    uint16_t from = is_below ? (uint16_t)learned->ports[learned->port_count].prev : port;
    index = entries_first(learned->entries, head_of(learned, from));
    if (!is_below && !gw_learned_is_idle(learned, &learned->entries[index], now))
        return GW_MAP_NONE;
    forget(learned, index);
    return index;
}

int gw_learned_note(struct gw_learned *learned, uint32_t address, uint16_t port, gw_time now)
{
    struct gw_learned_entry *entry = &learned->entries[learned->ports[port].latest];
    if (entry->address == address && entry->port == port) {
        entry->seen = now;
        return GW_OK;
    }
    uint32_t index = gw_map_get(&learned->map, address);
    if (index == GW_MAP_NONE) {
        index = take_room(learned, port, now);
        if (index == GW_MAP_NONE)
            return GW_ERR_NO_ROOM;
        give(learned, index, address, port);
    } else {
        if (learned->entries[index].port != port)
            return GW_ERR_INVALID;
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
    learned->recent = index;
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
    return now - entry->seen >= learned->idle;
}

void gw_learned_forget(struct gw_learned *learned, uint16_t port)
{
    uint32_t head = head_of(learned, port);
    while (!entries_is_empty(learned->entries, head)) {
        uint32_t index = entries_first(learned->entries, head);
        forget(learned, index);
        entries_append(learned->entries, head_of(learned, learned->port_count), index);
    }
}
