/* Open-addressing hash map; see map.h for the invariant. */
#include "base/map.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/prng.h"

static uint32_t map_cells(uint32_t entries)
{
    GW_ASSERT(entries <= UINT32_MAX / 4);
    uint32_t cells = 4;
    while (cells < 2 * (uint64_t)entries)
        cells *= 2;
    return cells;
}

static uint32_t map_home(const struct gw_map *map, uint64_t key)
{
    return (uint32_t)gw_mix64(key) & map->mask;
}

/* The cell that holds `key`, or the empty cell where it belongs. */
static uint32_t map_locate(const struct gw_map *map, uint64_t key)
{
    uint32_t i = map_home(map, key);
    while (map->cells[i].value != GW_MAP_NONE && map->cells[i].key != key)
        i = (i + 1) & map->mask;
    return i;
}

size_t gw_map_size(uint32_t entries)
{
    return map_cells(entries) * sizeof(struct gw_map_cell);
}

void gw_map_init(struct gw_map *map, void *memory, uint32_t entries)
{
    *map = (struct gw_map){.cells = memory, .mask = map_cells(entries) - 1, .limit = entries};
    for (uint32_t i = 0; i <= map->mask; i++)
        map->cells[i] = (struct gw_map_cell){.value = GW_MAP_NONE};
}

uint32_t gw_map_get(const struct gw_map *map, uint64_t key)
{
    return map->cells[map_locate(map, key)].value;
}

int gw_map_put(struct gw_map *map, uint64_t key, uint32_t value)
{
    GW_ASSERT(value != GW_MAP_NONE);
    struct gw_map_cell *cell = &map->cells[map_locate(map, key)];
    if (cell->value == GW_MAP_NONE) {
        if (map->count == map->limit)
            return GW_ERR_NO_ROOM;
        map->count++;
    }
    *cell = (struct gw_map_cell){.key = key, .value = value};
    return GW_OK;
}

void gw_map_remove(struct gw_map *map, uint64_t key)
{
    uint32_t hole = map_locate(map, key);
    if (map->cells[hole].value == GW_MAP_NONE)
        return;
    map->count--;
    for (uint32_t i = (hole + 1) & map->mask; map->cells[i].value != GW_MAP_NONE;
         i = (i + 1) & map->mask) {
        /* A key may move back into the hole unless its home lies after the hole. */
        uint32_t distance = (i - map_home(map, map->cells[i].key)) & map->mask;
        if (distance >= ((i - hole) & map->mask)) {
            map->cells[hole] = map->cells[i];
            hole = i;
        }
    }
    map->cells[hole].value = GW_MAP_NONE;
}
