/* The table of direct ways; see directs.h. */
#include "net/station/directs.h"

#include <stdlib.h>

#include "base/error.h"

int gw_directs_open(struct gw_directs *directs, uint32_t limit)
{
    *directs = (struct gw_directs){.limit = limit};
    directs->list = calloc(limit + 1u, sizeof(*directs->list));
    directs->memory = malloc(gw_map_size(limit + 1));
    if (!directs->list || !directs->memory)
        return GW_ERR_NO_MEMORY;
    gw_map_init(&directs->map, directs->memory, limit + 1);
    return GW_OK;
}

void gw_directs_close(struct gw_directs *directs)
{
    free(directs->list);
    free(directs->memory);
}

static uint64_t key_of(uint32_t of, uint32_t address)
{
    return (uint64_t)of << 32 | address;
}

const struct gw_direct *gw_directs_find(const struct gw_directs *directs, uint32_t of,
                                        uint32_t address)
{
    uint32_t index = gw_map_get(&directs->map, key_of(of, address));
    return index == GW_MAP_NONE ? NULL : &directs->list[index];
}

int gw_directs_put(struct gw_directs *directs, const struct gw_direct *direct)
{
    uint64_t key = key_of(direct->of, direct->address);
    uint32_t index = gw_map_get(&directs->map, key);
    if (index == GW_MAP_NONE) {
        if (directs->count == directs->limit)
            return GW_ERR_NO_ROOM;
        index = directs->count++;
        gw_map_put(&directs->map, key, index);
    }
    directs->list[index] = *direct;
    return GW_OK;
}

/* The last one takes the place of the one that goes. */
static void remove_at(struct gw_directs *directs, uint32_t index)
{
    const struct gw_direct *gone = &directs->list[index];
    gw_map_remove(&directs->map, key_of(gone->of, gone->address));
    directs->list[index] = directs->list[--directs->count];
    const struct gw_direct *moved = &directs->list[index];
    if (index < directs->count)
        gw_map_put(&directs->map, key_of(moved->of, moved->address), index);
}

void gw_directs_remove(struct gw_directs *directs, uint32_t of, uint32_t address)
{
    uint32_t index = gw_map_get(&directs->map, key_of(of, address));
    if (index != GW_MAP_NONE)
        remove_at(directs, index);
}

void gw_directs_remove_peer(struct gw_directs *directs, uint16_t peer)
{
    for (uint32_t i = directs->count; i-- > 0;)
        if (directs->list[i].peer == peer)
            remove_at(directs, i);
}
