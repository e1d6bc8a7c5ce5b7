/*
 * Hash map from a 64-bit key to a 32-bit value: open addressing, linear probing, fixed capacity.
 *
 * Deletion shifts the cluster back, so there are no tombstones and lookups never slow down with
 * age. Invariant: no empty cell lies between a key's home cell and the cell that holds it.
 */
#ifndef GW_BASE_MAP_H
#define GW_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

/* Value that marks an empty cell; it cannot be stored. */
#define GW_MAP_NONE UINT32_MAX

struct gw_map_cell {
    uint64_t key;
    uint32_t value; /* GW_MAP_NONE: empty */
};

struct gw_map {
    struct gw_map_cell *cells;
    uint32_t mask; /* number of cells - 1; a power of two, at least twice the entries */
    uint32_t count;
    uint32_t limit; /* entries that gw_map_put() accepts */
};

/* Bytes of memory that gw_map_init() needs for `entries`. */
size_t gw_map_size(uint32_t entries);

/* Makes an empty map in `memory`, which must be aligned to 8 and outlive the map. */
void gw_map_init(struct gw_map *map, void *memory, uint32_t entries);

/* The value of `key`, or GW_MAP_NONE. */
uint32_t gw_map_get(const struct gw_map *map, uint64_t key);

/* Stores or replaces. Returns 0, or GW_ERR_NO_ROOM when a new key finds the map full. */
int gw_map_put(struct gw_map *map, uint64_t key, uint32_t value);

/* Removes `key`; an absent key is no error. */
void gw_map_remove(struct gw_map *map, uint64_t key);

#endif
