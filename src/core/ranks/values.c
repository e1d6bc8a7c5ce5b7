/* The values that a rank keeps for the others; see values.h. */
#include "core/ranks/values.h"

#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/error.h"
#include "base/prng.h"
#include "core/quant/combine.h"

enum {
    VALUES_FIRST = 64,   /* places of a table that has one value */
    BLOCK = 1024,        /* elements that are worked on at once: they stay in the L1 cache */
    VALUES_MAX = 1 << 29 /* keys: the last power of two that a map can hold */
};

/* Mixed once more than the map does: who keeps a key is chosen by its hash, so that of the keys
 * that come here only a part of the hashes is in use. */
static uint64_t place_of(uint64_t key)
{
    return gw_mix64(key);
}

/* Whether sums need more bits than the type has. */
static bool is_widened(enum gw_dtype type)
{
    return type == GW_DTYPE_F16 || type == GW_DTYPE_BF16;
}

/* Bytes of what is kept of an element. */
static uint32_t kept_size(enum gw_dtype type)
{
    return gw_dtype_size(is_widened(type) ? GW_DTYPE_F32 : type);
}

void gw_values_init(struct gw_values *values, const struct gw_kernels *kernels,
                    const struct gw_allocator *allocator)
{
    *values = (struct gw_values){.kernels = kernels, .allocator = *allocator};
}

void gw_values_fini(struct gw_values *values)
{
    const struct gw_allocator allocator = values->allocator;
    for (uint32_t i = 0; values->map_memory && i < values->map.count; i++) {
        gw_allocator_give(&allocator, values->list[i].numbers);
        gw_allocator_give(&allocator, values->list[i].counts);
    }
    gw_allocator_give(&allocator, values->list);
    gw_allocator_give(&allocator, values->map_memory);
    gw_values_init(values, values->kernels, &allocator);
}

uint64_t gw_value_bytes(const struct gw_value_shape *shape)
{
    return shape->count * gw_dtype_size(shape->type);
}

const struct gw_value *gw_values_find(const struct gw_values *values, uint64_t key)
{
    uint32_t at = values->map_memory ? gw_map_get(&values->map, place_of(key)) : GW_MAP_NONE;
    return at == GW_MAP_NONE ? NULL : &values->list[at];
}

/* Moves everything to tables of `limit` places, which are made already. */
static void move(struct gw_values *values, struct gw_value *list, void *map_memory, uint32_t limit)
{
    struct gw_map map;
    gw_map_init(&map, map_memory, limit);
    if (values->map_memory) {
        memcpy(list, values->list, values->map.count * sizeof(*list));
        for (uint32_t i = 0; i <= values->map.mask; i++) {
            const struct gw_map_cell *cell = &values->map.cells[i];
            if (cell->value != GW_MAP_NONE)
                gw_map_put(&map, cell->key, cell->value);
        }
    }
    gw_allocator_give(&values->allocator, values->list);
    gw_allocator_give(&values->allocator, values->map_memory);
    values->list = list;
    values->map_memory = map_memory;
    values->map = map;
}

/*
 * Makes room for another value: twice as many places. Returns 0 or GW_ERR_NO_MEMORY. All keys move
 * at once, 40 ns each: packets wait for 40 ms at a million keys, and twice as long every time.
 */
static int grow(struct gw_values *values)
{
    uint32_t used = values->map_memory ? values->map.count : 0;
    if (values->map_memory && used < values->map.limit)
        return GW_OK;
    uint32_t limit = used ? 2 * used : VALUES_FIRST;
    if (limit > VALUES_MAX)
        return GW_ERR_NO_MEMORY;
    void *list = gw_allocator_take(&values->allocator, limit * sizeof(struct gw_value));
    void *map_memory = list ? gw_allocator_take(&values->allocator, gw_map_size(limit)) : NULL;
    if (!map_memory) {
        gw_allocator_give(&values->allocator, list);
        return GW_ERR_NO_MEMORY;
    }
    move(values, list, map_memory, limit);
    return GW_OK;
}

int gw_values_make(struct gw_values *values, uint64_t key, const struct gw_value_shape *shape)
{
    uint32_t size = kept_size(shape->type);
    if (shape->count > SIZE_MAX / size || grow(values) != GW_OK)
        return GW_ERR_NO_MEMORY;
    void *numbers = gw_allocator_take(&values->allocator, shape->count * size);
    if (!numbers)
        return GW_ERR_NO_MEMORY;
    uint32_t at = values->map.count;
    values->list[at] = (struct gw_value){.shape = *shape, .numbers = numbers};
    int code = gw_map_put(&values->map, place_of(key), at);
    GW_ASSERT(code == GW_OK && values->map.count == at + 1); /* the key is new */
    return GW_OK;
}

static void count_one(uint16_t *count)
{
    *count += *count < UINT16_MAX;
}

int gw_values_count(struct gw_values *values, uint64_t key, uint32_t fragment,
                    const uint64_t *arrived)
{
    struct gw_value *value = &values->list[gw_map_get(&values->map, place_of(key))];
    uint64_t fragments = arrived || value->counts ? gw_value_fragments(&value->shape, fragment) : 0;
    if (arrived && !value->counts) {
        uint16_t *counts = gw_allocator_take(&values->allocator, fragments * sizeof(*counts));
        if (!counts)
            return GW_ERR_NO_MEMORY;
        gw_value_counts(value, fragment, counts);
        value->counts = counts;
    }
    count_one(&value->pushes);
    for (uint64_t i = 0; i < fragments; i++)
        if (!arrived || gw_bit_is_set(arrived, i))
            count_one(&value->counts[i]);
    return GW_OK;
}

void gw_value_counts(const struct gw_value *value, uint32_t fragment, uint16_t *counts)
{
    uint64_t fragments = gw_value_fragments(&value->shape, fragment);
    for (uint64_t i = 0; i < fragments; i++)
        counts[i] = value->counts ? value->counts[i] : value->pushes;
}

static unsigned char *number_at(const struct gw_value *value, uint64_t index)
{
    return (unsigned char *)value->numbers + index * kept_size(value->shape.type);
}

/* Of each integer type, whether all sums fit. */
static bool i32_has_room(const unsigned char *sum, const unsigned char *more, size_t count)
{
    bool has_room = true;
    for (size_t i = 0; i < count; i++) {
        int32_t x, y, unused;
        memcpy(&x, sum + i * sizeof(x), sizeof(x));
        memcpy(&y, more + i * sizeof(y), sizeof(y));
        has_room &= !__builtin_add_overflow(x, y, &unused);
    }
    return has_room;
}

static bool i64_has_room(const unsigned char *sum, const unsigned char *more, size_t count)
{
    bool has_room = true;
    for (size_t i = 0; i < count; i++) {
        int64_t x, y, unused;
        memcpy(&x, sum + i * sizeof(x), sizeof(x));
        memcpy(&y, more + i * sizeof(y), sizeof(y));
        has_room &= !__builtin_add_overflow(x, y, &unused);
    }
    return has_room;
}

static bool u8_has_room(const unsigned char *sum, const unsigned char *more, size_t count)
{
    bool has_room = true;
    for (size_t i = 0; i < count; i++)
        has_room &= sum[i] + more[i] <= UINT8_MAX;
    return has_room;
}

bool gw_value_has_room(const struct gw_value *value, uint64_t first, const void *data,
                       uint32_t count)
{
    const unsigned char *sum = number_at(value, first);
    switch (value->shape.type) {
    case GW_DTYPE_I32:
        return i32_has_room(sum, data, count);
    case GW_DTYPE_I64:
        return i64_has_room(sum, data, count);
    case GW_DTYPE_U8:
        return u8_has_room(sum, data, count);
    default:
        return true;
    }
}

/* Adds at most BLOCK floats of 16 bits. */
static void add_block(const struct gw_kernels *kernels, unsigned char *sum, const void *data,
                      enum gw_dtype type, uint32_t count)
{
    gw_real real[BLOCK];
    memset(real, 0, count * sizeof(real[0]));
    kernels->add_real[GW_DTYPE_F32](real, sum, count);
    kernels->add_real[type](real, data, count);
    kernels->narrow_real[GW_DTYPE_F32](sum, real, count, 1);
}

/* Rounds at most BLOCK floats to 16 bits. */
static void read_block(const struct gw_kernels *kernels, const unsigned char *sum, void *data,
                       enum gw_dtype type, uint32_t count)
{
    gw_real real[BLOCK];
    memset(real, 0, count * sizeof(real[0]));
    kernels->add_real[GW_DTYPE_F32](real, sum, count);
    kernels->narrow_real[type](data, real, count, 1);
}

void gw_value_add(const struct gw_values *values, const struct gw_value *value, uint64_t first,
                  const void *data, uint32_t count)
{
    enum gw_dtype type = value->shape.type;
    const unsigned char *from = data;
    if (!is_widened(type)) {
        const struct gw_combination sum = {.op = GW_OP_SUM, .type = type, .shares = 1};
        bool fits = gw_combine(values->kernels, &sum, number_at(value, first), data, count);
        GW_ASSERT(fits); /* the caller has asked */
        return;
    }
    for (uint32_t i = 0; i < count; i += BLOCK)
        add_block(values->kernels, number_at(value, first + i),
                  from + (size_t)i * gw_dtype_size(type), type,
                  count - i < BLOCK ? count - i : BLOCK);
}

void gw_value_read(const struct gw_values *values, const struct gw_value *value, uint64_t first,
                   void *data, uint32_t count)
{
    enum gw_dtype type = value->shape.type;
    unsigned char *to = data;
    if (!is_widened(type)) {
        memcpy(data, number_at(value, first), (size_t)count * kept_size(type));
        return;
    }
    for (uint32_t i = 0; i < count; i += BLOCK)
        read_block(values->kernels, number_at(value, first + i),
                   to + (size_t)i * gw_dtype_size(type), type,
                   count - i < BLOCK ? count - i : BLOCK);
}
