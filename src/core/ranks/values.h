/*
 * The values that a rank keeps for the others: arrays of numbers, found by a 64-bit key, to which
 * arrays are added. The table is as large as memory allows.
 *
 * Integers and float64 are kept as they are. 16-bit floats are kept as float32: sums of many of
 * them lose nothing on the way, and are rounded to the type when they are read. A sum of floats is
 * rounded once for each addition, to nearest with ties to even; one of integers must fit its type.
 *
 * It does no I/O and has no thread. The caller cuts the work on a long value into parts. The table
 * grows at once: while it holds n keys and doubles, nothing else is done for about n * 40 ns.
 */
#ifndef GW_CORE_VALUES_H
#define GW_CORE_VALUES_H

#include "base/map.h"
#include "core/allocator.h"
#include "core/quant/kernels.h"

/* Count and type of a value; never change. */
struct gw_value_shape {
    uint64_t count; /* elements, at least 1 */
    enum gw_dtype type;
};

struct gw_value {
    struct gw_value_shape shape;
    void *numbers; /* float32 in place of 16-bit floats, else of the type */
    /* Pushes that have been added, at most UINT16_MAX: of each fragment, or, if `counts` is NULL,
     * of all. A count that is full stays so. */
    uint16_t pushes;
    uint16_t *counts;
};

struct gw_values {
    struct gw_map map;     /* from key to place in `list` */
    void *map_memory;      /* NULL: nothing has been made yet */
    struct gw_value *list; /* map.limit long */
    const struct gw_kernels *kernels;
    struct gw_allocator allocator;
};

/* Makes an empty table. */
void gw_values_init(struct gw_values *values, const struct gw_kernels *kernels,
                    const struct gw_allocator *allocator);

/* Frees all values. */
void gw_values_fini(struct gw_values *values);

/* Bytes of an array as the application has it; the count must be at most 2^60. */
uint64_t gw_value_bytes(const struct gw_value_shape *shape);

/* The value of a key, until the next one is made; NULL: there is none. */
const struct gw_value *gw_values_find(const struct gw_values *values, uint64_t key);

/* Fragments of `fragment` elements that a value has. */
static inline uint64_t gw_value_fragments(const struct gw_value_shape *shape, uint32_t fragment)
{
    return shape->count / fragment + (shape->count % fragment != 0);
}

/* A push has been added: all of it, or, if `arrived` is not NULL, the fragments whose bits are set.
 * Returns 0, or GW_ERR_NO_MEMORY for the counts, before anything is counted. */
int gw_values_count(struct gw_values *values, uint64_t key, uint32_t fragment,
                    const uint64_t *arrived);

/* The counts of a value's fragments. */
void gw_value_counts(const struct gw_value *value, uint32_t fragment, uint16_t *counts);

/* Makes the value of a key that has none, as zeros. Returns 0 or GW_ERR_NO_MEMORY. */
int gw_values_make(struct gw_values *values, uint64_t key, const struct gw_value_shape *shape);

/*
 * Whether `count` elements of the value's type at `data` can be added from element `first` on: not
 * if a sum of integers would not fit the type.
 */
bool gw_value_has_room(const struct gw_value *value, uint64_t first, const void *data,
                       uint32_t count);

/* Adds `count` elements at `data`, for which there is room, from element `first` on. */
void gw_value_add(const struct gw_values *values, const struct gw_value *value, uint64_t first,
                  const void *data, uint32_t count);

/* Copies `count` elements from `first` on to `data`, in the value's type. */
void gw_value_read(const struct gw_values *values, const struct gw_value *value, uint64_t first,
                   void *data, uint32_t count);

#endif
