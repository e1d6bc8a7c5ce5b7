/* The values that a rank keeps for the others; see team_values.h. */
#include "net/ranks/team_values.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/prng.h"

enum {
    VALUES_FIRST = 64,   /* places of a table that has one value */
    NUMBER_SIZE = 4,     /* bytes of what is kept of an element */
    BLOCK = 1024,        /* elements that are worked on at once: they stay in the L1 cache */
    VALUES_MAX = 1 << 29 /* keys: the last power of two that a map can hold */
};

/* Mixed once more than the map does: who keeps a key is chosen by its hash, so that of the keys
 * that come here only a part of the hashes is in use. */
static uint64_t place_of(uint64_t key)
{
    return gw_mix64(key);
}

void gw_team_values_init(struct gw_team_values *values, const struct gw_kernels *kernels)
{
    *values = (struct gw_team_values){.kernels = kernels};
}

void gw_team_values_fini(struct gw_team_values *values)
{
    for (uint32_t i = 0; values->map_memory && i < values->map.count; i++)
        free(values->list[i].numbers);
    free(values->list);
    free(values->map_memory);
    gw_team_values_init(values, values->kernels);
}

uint64_t gw_team_value_bytes(const struct gw_team_value_shape *shape)
{
    return shape->count * gw_dtype_size(shape->type);
}

const struct gw_team_value *gw_team_values_find(const struct gw_team_values *values, uint64_t key)
{
    uint32_t at = values->map_memory ? gw_map_get(&values->map, place_of(key)) : GW_MAP_NONE;
    return at == GW_MAP_NONE ? NULL : &values->list[at];
}

/*
 * Makes room for another value: twice as many places. Returns 0 or GW_ERR_NO_MEMORY. All keys move
 * at once, 40 ns each: packets wait for 40 ms at a million keys, and twice as long every time.
 */
static int grow(struct gw_team_values *values)
{
    uint32_t used = values->map_memory ? values->map.count : 0;
    if (values->map_memory && used < values->map.limit)
        return GW_OK;
    uint32_t limit = used ? 2 * used : VALUES_FIRST;
    if (limit > VALUES_MAX)
        return GW_ERR_NO_MEMORY;
    struct gw_team_value *list = realloc(values->list, limit * sizeof(*list));
    if (!list)
        return GW_ERR_NO_MEMORY;
    values->list = list;
    void *memory = malloc(gw_map_size(limit));
    if (!memory)
        return GW_ERR_NO_MEMORY;
    struct gw_map map;
    gw_map_init(&map, memory, limit);
    for (uint32_t i = 0; used && i <= values->map.mask; i++) {
        const struct gw_map_cell *cell = &values->map.cells[i];
        if (cell->value != GW_MAP_NONE)
            gw_map_put(&map, cell->key, cell->value);
    }
    free(values->map_memory);
    values->map_memory = memory;
    values->map = map;
    return GW_OK;
}

int gw_team_values_make(struct gw_team_values *values, uint64_t key,
                        const struct gw_team_value_shape *shape)
{
    int code = grow(values);
    void *numbers = code ? NULL : calloc(shape->count, NUMBER_SIZE);
    if (!numbers)
        return GW_ERR_NO_MEMORY;
    uint32_t at = values->map.count;
    values->list[at] = (struct gw_team_value){.shape = *shape, .numbers = numbers};
    code = gw_map_put(&values->map, place_of(key), at);
    GW_ASSERT(code == GW_OK && values->map.count == at + 1); /* the key is new */
    return GW_OK;
}

static unsigned char *number_at(const struct gw_team_value *value, uint64_t index)
{
    return (unsigned char *)value->numbers + index * NUMBER_SIZE;
}

bool gw_team_value_has_room(const struct gw_team_value *value, uint64_t first, const void *data,
                            uint32_t count)
{
    const unsigned char *sum = number_at(value, first), *more = data;
    bool has_room = true;
    if (value->shape.type != GW_DTYPE_I32)
        return true;
    for (uint32_t i = 0; i < count; i++) {
        int32_t x, y, unused;
        memcpy(&x, sum + (size_t)i * sizeof(x), sizeof(x));
        memcpy(&y, more + (size_t)i * sizeof(y), sizeof(y));
        has_room &= !__builtin_add_overflow(x, y, &unused);
    }
    return has_room;
}

/* Adds at most BLOCK floats of 16 bits. */
static void add_block(const struct gw_kernels *kernels, unsigned char *sum, const void *data,
                      enum gw_dtype type, uint32_t count)
{
    gw_real real[BLOCK] = {0};
    kernels->add_real[GW_DTYPE_F32](real, sum, count);
    kernels->add_real[type](real, data, count);
    kernels->narrow_real[GW_DTYPE_F32](sum, real, count, 1);
}

/* Rounds at most BLOCK floats to 16 bits. */
static void read_block(const struct gw_kernels *kernels, const unsigned char *sum, void *data,
                       enum gw_dtype type, uint32_t count)
{
    gw_real real[BLOCK] = {0};
    kernels->add_real[GW_DTYPE_F32](real, sum, count);
    kernels->narrow_real[type](data, real, count, 1);
}

void gw_team_value_add(const struct gw_team_values *values, const struct gw_team_value *value,
                       uint64_t first, const void *data, uint32_t count)
{
    enum gw_dtype type = value->shape.type;
    const unsigned char *from = data;
    if (gw_dtype_size(type) == NUMBER_SIZE) {
        bool fits = values->kernels->reduce[type](number_at(value, first), data, count, 1);
        GW_ASSERT(fits); /* the caller has asked */
        return;
    }
    for (uint32_t i = 0; i < count; i += BLOCK)
        add_block(values->kernels, number_at(value, first + i),
                  from + (size_t)i * gw_dtype_size(type), type,
                  count - i < BLOCK ? count - i : BLOCK);
}

void gw_team_value_read(const struct gw_team_values *values, const struct gw_team_value *value,
                        uint64_t first, void *data, uint32_t count)
{
    enum gw_dtype type = value->shape.type;
    unsigned char *to = data;
    if (gw_dtype_size(type) == NUMBER_SIZE) {
        memcpy(data, number_at(value, first), (size_t)count * NUMBER_SIZE);
        return;
    }
    for (uint32_t i = 0; i < count; i += BLOCK)
        read_block(values->kernels, number_at(value, first + i),
                   to + (size_t)i * gw_dtype_size(type), type,
                   count - i < BLOCK ? count - i : BLOCK);
}
