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

void gw_asked_init(struct gw_asked *asked, void *memory, uint32_t max, gw_time idle)
{
    struct gw_arena arena = {.base = memory};
    *asked = (struct gw_asked){.max = max, .idle = idle};
    carve(asked, max, &arena);
}

static struct gw_asked_entry *find(const struct gw_asked *asked, uint32_t job)
{
    uint32_t index = gw_map_get(&asked->map, job);
    return index == GW_MAP_NONE ? NULL : &asked->entries[index];
}

/* A place for another job: that of the one that has been silent for longest if there is no other.
 */
static struct gw_asked_entry *claim(struct gw_asked *asked)
{
    if (asked->count < asked->max)
        return &asked->entries[asked->count++];
    struct gw_asked_entry *oldest = &asked->entries[0];
    for (uint32_t i = 1; i < asked->count; i++)
        if (gw_time_before(asked->entries[i].heard, oldest->heard))
            oldest = &asked->entries[i];
    gw_map_remove(&asked->map, oldest->job);
    return oldest;
}

void gw_asked_note(struct gw_asked *asked, uint32_t job, uint32_t server, gw_time now)
{
    struct gw_asked_entry *entry = find(asked, job);
    if (!entry) {
        entry = claim(asked);
        int code = gw_map_put(&asked->map, job, (uint32_t)(entry - asked->entries));
        GW_ASSERT(code == GW_OK); /* it has room for as many as the table */
    } else if (entry->server != server && now - entry->heard < asked->idle) {
        return;
    }
    *entry = (struct gw_asked_entry){.heard = now, .job = job, .server = server};
}

bool gw_asked_is(const struct gw_asked *asked, uint32_t job, uint32_t server)
{
    const struct gw_asked_entry *entry = find(asked, job);
    return entry && entry->server == server;
}
