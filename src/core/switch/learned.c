/* Learned addresses; see learned.h. */
#include "core/switch/learned.h"

#include <string.h>

#include "base/arena.h"
#include "base/error.h"

/* The same measures and builds. */
static void carve(struct gw_learned *learned, uint32_t max, uint16_t port_count,
                  struct gw_arena *arena)
{
    learned->entries = gw_arena_take(arena, max * sizeof(*learned->entries));
    learned->last = gw_arena_take(arena, port_count * sizeof(*learned->last));
    void *map = gw_arena_take(arena, gw_map_size(max));
    if (!arena->base)
        return;
    memset(learned->entries, 0, max * sizeof(*learned->entries));
    memset(learned->last, 0, port_count * sizeof(*learned->last));
    gw_map_init(&learned->map, map, max);
}

size_t gw_learned_size(uint32_t max, uint16_t port_count)
{
    struct gw_learned learned;
    struct gw_arena arena = {.used = 0};
    carve(&learned, max, port_count, &arena);
    return arena.used;
}

void gw_learned_init(struct gw_learned *learned, void *memory, uint32_t max, uint16_t port_count,
                     gw_time idle)
{
    struct gw_arena arena = {.base = memory};
    *learned = (struct gw_learned){.max = max, .port_count = port_count, .idle = idle};
    carve(learned, max, port_count, &arena);
}

static void forget(struct gw_learned *learned, struct gw_learned_entry *entry)
{
    gw_map_remove(&learned->map, entry->address);
    entry->port = GW_PORT_NONE;
}

/* An entry that nobody uses, or has not used for long; NULL: all are in use. */
static struct gw_learned_entry *find_room(struct gw_learned *learned, gw_time now)
{
    if (learned->count < learned->max)
        return &learned->entries[learned->count++];
    struct gw_learned_entry *oldest = NULL;
    for (uint32_t i = 0; i < learned->max; i++) {
        struct gw_learned_entry *entry = &learned->entries[i];
        if (entry->port == GW_PORT_NONE)
            return entry;
        if (!oldest || gw_time_before(entry->seen, oldest->seen))
            oldest = entry;
    }
    if (!oldest || !gw_learned_is_idle(learned, oldest, now))
        return NULL;
    forget(learned, oldest);
    return oldest;
}

int gw_learned_note(struct gw_learned *learned, uint32_t address, uint16_t port, gw_time now)
{
    struct gw_learned_entry *entry = &learned->entries[learned->last[port]];
    if (entry->address == address && entry->port == port && learned->count) {
        entry->seen = now;
        return GW_OK;
    }
    uint32_t index = gw_map_get(&learned->map, address);
    if (index != GW_MAP_NONE) {
        entry = &learned->entries[index];
        if (entry->port != port)
            return GW_ERR_INVALID;
    } else {
        entry = find_room(learned, now);
        if (!entry)
            return GW_ERR_NO_ROOM;
        entry->address = address;
        entry->port = port;
        index = (uint32_t)(entry - learned->entries);
        gw_map_put(&learned->map, address, index);
    }
    entry->seen = now;
    learned->last[port] = index;
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
    while (*at < learned->count) {
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
    for (uint32_t i = 0; i < learned->count; i++)
        if (learned->entries[i].port == port)
            forget(learned, &learned->entries[i]);
}
