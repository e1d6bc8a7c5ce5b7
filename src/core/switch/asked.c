/* Whom the workers of a job ask; see asked.h. */
#include "core/switch/asked.h"

#include "base/arena.h"
#include "base/assert.h"
#include "base/error.h"

/* The same measures and builds. */
static void carve(struct gw_asked *asked, uint32_t max, struct gw_arena *arena)
{
    asked->entries = gw_arena_take(arena, max * sizeof(*asked->entries));
    void *map = gw_arena_take(arena, gw_map_size(max));
    if (arena->base)
        gw_map_init(&asked->map, map, max);
}

size_t gw_asked_size(uint32_t max)
{
    struct gw_asked asked;
    struct gw_arena arena = {.used = 0};
    carve(&asked, max, &arena);
    return arena.used;
}

void gw_asked_init(struct gw_asked *asked, void *memory, uint32_t max, gw_time idle,
                   const struct gw_tenants *tenants)
{
    struct gw_arena arena = {.base = memory};
    *asked = (struct gw_asked){.tenants = tenants, .max = max, .idle = idle};
    carve(asked, max, &arena);
}

static struct gw_asked_entry *find(const struct gw_asked *asked, uint32_t job)
{
    uint32_t index = gw_map_get(&asked->map, job);
    return index == GW_MAP_NONE ? NULL : &asked->entries[index];
}

/* The entry that has been silent for longest, of those whose tenant has more than its part. When
 * all are in use there is one, since the parts are half of them; strangers have none. */
static struct gw_asked_entry *find_oldest(const struct gw_asked *asked)
{
    const uint32_t tenants = asked->tenants->count;
    const uint32_t part = tenants ? asked->max / 2 / tenants : 0;
    uint32_t held[GW_TENANTS_MAX + 1] = {0};
    struct gw_asked_entry *oldest = NULL;
    for (uint32_t i = 0; i < asked->count; i++)
        held[asked->entries[i].tenant]++;
    for (uint32_t i = 0; i < asked->count; i++) {
        struct gw_asked_entry *entry = &asked->entries[i];
        if (held[entry->tenant] > (entry->tenant < tenants ? part : 0) &&
            (!oldest || gw_time_before(entry->heard, oldest->heard)))
            oldest = entry;
    }
    GW_ASSERT(oldest);
    return oldest;
}

/* A place for another job. */
static struct gw_asked_entry *claim(struct gw_asked *asked)
{
    if (asked->count < asked->max)
        return &asked->entries[asked->count++];
    struct gw_asked_entry *oldest = find_oldest(asked);
    gw_map_remove(&asked->map, oldest->job);
    return oldest;
}

void gw_asked_note(struct gw_asked *asked, uint32_t job, uint32_t server, bool joins, gw_time now)
{
    struct gw_asked_entry *entry = find(asked, job);
    if (!entry) {
        entry = claim(asked);
        entry->is_over = false;
        int code = gw_map_put(&asked->map, job, (uint32_t)(entry - asked->entries));
        GW_ASSERT(code == GW_OK); /* it has room for as many as the table */
        entry->tenant = gw_tenants_of(asked->tenants, job);
    } else if (entry->server != server && !entry->is_over && now - entry->heard < asked->idle) {
        return;
    }
    entry->is_over = entry->is_over && entry->server == server && !joins;
    entry->heard = now;
    entry->job = job;
    entry->server = server;
}

void gw_asked_end(struct gw_asked *asked, uint32_t job)
{
    struct gw_asked_entry *entry = find(asked, job);
    if (entry)
        entry->is_over = true;
}

void gw_asked_gone(struct gw_asked *asked, uint32_t server)
{
    for (uint32_t i = 0; i < asked->count; i++)
        asked->entries[i].is_over |= asked->entries[i].server == server;
}

bool gw_asked_is(const struct gw_asked *asked, uint32_t job, uint32_t server)
{
    const struct gw_asked_entry *entry = find(asked, job);
    return entry && entry->server == server;
}
