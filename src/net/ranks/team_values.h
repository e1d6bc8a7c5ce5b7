/*
 * The values that a rank keeps for the others: arrays of numbers, found by a 64-bit key, to which
 * arrays are added. The table is as large as memory allows.
 *
 * An int32 stays one. Floats are kept as float32, whatever their type: sums of many 16-bit floats
 * lose nothing on the way, and are rounded to the type when they are read. A sum is rounded once
 * for each addition, to nearest with ties to even.
 *
 * It does no I/O and has no thread. The caller cuts the work on a long value into parts. The table
 * grows at once: while it holds n keys and doubles, nothing else is done for about n * 40 ns.
 */
#ifndef GW_NET_TEAM_VALUES_H
#define GW_NET_TEAM_VALUES_H

#include "base/map.h"
#include "core/quant/kernels.h"

/* Count and type of a value; never change. */
struct gw_team_value_shape {
    uint64_t count; /* elements, at least 1 */
    enum gw_dtype type;
};

struct gw_team_value {
    struct gw_team_value_shape shape;
    void *numbers; /* float32 or int32 */
};

struct gw_team_values {
    struct gw_map map;          /* from key to place in `list` */
    void *map_memory;           /* NULL: nothing has been made yet */
    struct gw_team_value *list; /* map.limit long */
    const struct gw_kernels *kernels;
};

/* Makes an empty table. */
void gw_team_values_init(struct gw_team_values *values, const struct gw_kernels *kernels);

/* Frees all values. */
void gw_team_values_fini(struct gw_team_values *values);

/* Bytes of an array as the application has it. */
uint64_t gw_team_value_bytes(const struct gw_team_value_shape *shape);

/* The value of a key, until the next one is made; NULL: there is none. */
const struct gw_team_value *gw_team_values_find(const struct gw_team_values *values, uint64_t key);

/* Makes the value of a key that has none, as zeros. Returns 0 or GW_ERR_NO_MEMORY. */
int gw_team_values_make(struct gw_team_values *values, uint64_t key,
                        const struct gw_team_value_shape *shape);

/*
 * Whether `count` elements of the value's type at `data` can be added from element `first` on: not
 * if a sum of int32 would need more than 32 bits.
 */
bool gw_team_value_has_room(const struct gw_team_value *value, uint64_t first, const void *data,
                            uint32_t count);

/* Adds `count` elements at `data`, for which there is room, from element `first` on. */
void gw_team_value_add(const struct gw_team_values *values, const struct gw_team_value *value,
                       uint64_t first, const void *data, uint32_t count);

/* Copies `count` elements from `first` on to `data`, in the value's type. */
void gw_team_value_read(const struct gw_team_values *values, const struct gw_team_value *value,
                        uint64_t first, void *data, uint32_t count);

#endif
