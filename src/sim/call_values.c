/* What calls carry and what must come out of them; see call_values.h. */
#include "sim/call_values.h"

#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "core/quant/number.h"
#include "topo/memory.h"

enum {
    ELEMENT_MAX = 8,      /* bytes */
    STEPS_MOST = 250,     /* of one rank's number */
    PUSH_NUMBERS = 3,     /* 1 to so many, in turn */
    RANDOM_SHIFT = 40,    /* the upper bits of a product are the random ones */
    CHUNK = 256,          /* elements that are worked on at a time */
    PRODUCT_LARGEST = 2,  /* of one rank for each element; the others have 1 */
    UNITS_PER_FLOAT = 256 /* numbers are fractions, as gradients are, and not beyond 1 */
};

/* So far all integers are exact in the type. */
static int64_t limit_of(enum gw_dtype type)
{
    static const int64_t limits[GW_DTYPES] = {
        [GW_DTYPE_F32] = 1 << 24, [GW_DTYPE_F16] = 1 << 11, [GW_DTYPE_BF16] = 1 << 8,
        [GW_DTYPE_I32] = 1 << 30, [GW_DTYPE_F64] = 1 << 30, [GW_DTYPE_I64] = 1 << 30,
        [GW_DTYPE_U8] = 255,
    };
    return limits[type];
}

/* Where a rank's numbers begin. */
static uint64_t base_of(const struct gw_sim_duty *duty, uint32_t rank)
{
    uint64_t what = (uint64_t)duty->job << 48 | (uint64_t)duty->call << 32 | duty->iteration;
    return gw_mix64(duty->seed ^ gw_mix64(what ^ gw_mix64((uint64_t)rank + 1)));
}

static uint64_t word_of(uint64_t base, uint64_t index)
{
    uint64_t word = (base + index) * UINT64_C(0x9e3779b97f4a7c15);
    return word ^ word >> 29;
}

/* What a rank contributes to elements from `first` on, in steps. */
static void steps_of(const struct gw_sim_duty *duty, uint32_t rank, uint64_t first, uint32_t count,
                     int64_t *steps)
{
    const struct gw_call_spec *spec = duty->spec;
    const uint64_t base = base_of(duty, rank);
    const bool is_signed = spec->type != GW_DTYPE_U8;
    if (spec->op == GW_OP_PRODUCT) {
        for (uint32_t i = 0; i < count; i++) {
            int64_t size = (first + i) % duty->world == rank ? PRODUCT_LARGEST : 1;
            steps[i] = is_signed && word_of(base, first + i) % 2 ? -size : size;
        }
        return;
    }
    /* An average is made of multiples of the number of ranks. */
    const int64_t shares = spec->op == GW_OP_AVERAGE ? duty->world : 1;
    int64_t most = limit_of(spec->type) / duty->world / shares;
    most = most < STEPS_MOST ? most : STEPS_MOST;
    const uint64_t span = (uint64_t)(is_signed ? 2 * most : most) + 1;
    const int64_t least = is_signed ? -most : 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t random = word_of(base, first + i) >> RANDOM_SHIFT;
        steps[i] = ((int64_t)(random * span >> (64 - RANDOM_SHIFT)) + least) * shares;
    }
}

/* Makes one of what there is and what another rank contributes. */
static void combine(enum gw_op op, int64_t *to, const int64_t *steps, uint32_t count)
{
    switch (op) {
    case GW_OP_MIN:
        for (uint32_t i = 0; i < count; i++)
            to[i] = steps[i] < to[i] ? steps[i] : to[i];
        break;
    case GW_OP_MAX:
        for (uint32_t i = 0; i < count; i++)
            to[i] = steps[i] > to[i] ? steps[i] : to[i];
        break;
    case GW_OP_PRODUCT:
        for (uint32_t i = 0; i < count; i++)
            to[i] *= steps[i];
        break;
    default:
        for (uint32_t i = 0; i < count; i++)
            to[i] += steps[i];
        break;
    }
}

/* Writes a number of steps as an element. */
static void store(const struct gw_call_spec *spec, unsigned char *to, int64_t steps)
{
    const int64_t whole = steps;
    const int32_t narrow = (int32_t)steps;
    double unit = spec->op == GW_OP_PRODUCT ? 1 : 1.0 / UNITS_PER_FLOAT;
    const double real = (double)steps * unit;
    switch (spec->type) {
    case GW_DTYPE_F32:
        gw_f32_store(to, real);
        break;
    case GW_DTYPE_F16:
        gw_f16_store(to, real);
        break;
    case GW_DTYPE_BF16:
        gw_bf16_store(to, real);
        break;
    case GW_DTYPE_F64:
        memcpy(to, &real, sizeof(real));
        break;
    case GW_DTYPE_I32:
        memcpy(to, &narrow, sizeof(narrow));
        break;
    case GW_DTYPE_I64:
        memcpy(to, &whole, sizeof(whole));
        break;
    default:
        *to = (unsigned char)steps;
        break;
    }
}

static uint32_t size_of(const struct gw_call_spec *spec)
{
    return spec->kind == GW_CALL_SEND ? 1 : gw_dtype_size(spec->type);
}

static bool has_numbers(const struct gw_sim_duty *duty)
{
    return duty->kind == GW_CALL_ALLREDUCE || duty->kind == GW_CALL_REDUCE ||
           duty->kind == GW_CALL_REDUCE_SCATTER;
}

/* Elements that the call reads here, and writes. */
static uint64_t count_in(const struct gw_sim_duty *duty)
{
    switch (duty->kind) {
    case GW_CALL_REDUCE_SCATTER:
        return duty->spec->count * duty->world;
    case GW_CALL_BROADCAST:
    case GW_CALL_RECEIVE:
    case GW_CALL_PULL:
        return 0;
    default:
        return duty->spec->count;
    }
}

static uint64_t count_out(const struct gw_sim_duty *duty)
{
    switch (duty->kind) {
    case GW_CALL_ALLGATHER:
        return duty->spec->count * duty->world;
    case GW_CALL_REDUCE:
        return duty->rank == duty->spec->root ? duty->spec->count : 0;
    case GW_CALL_SEND:
    case GW_CALL_PUSH:
        return 0;
    default:
        return duty->spec->count;
    }
}

static void fill_bytes(unsigned char *to, uint64_t size, uint64_t base)
{
    for (uint64_t at = 0; at < size; at += sizeof(uint64_t)) {
        uint64_t word = word_of(base, at / sizeof(word));
        size_t left = size - at < sizeof(word) ? size - at : sizeof(word);
        memcpy(to + at, &word, left);
    }
}

static bool are_bytes(const unsigned char *from, uint64_t size, uint64_t base)
{
    for (uint64_t at = 0; at < size; at += sizeof(uint64_t)) {
        uint64_t word = word_of(base, at / sizeof(word));
        size_t left = size - at < sizeof(word) ? size - at : sizeof(word);
        if (memcmp(from + at, &word, left) != 0)
            return false;
    }
    return true;
}

static int64_t pushed_of(const struct gw_sim_duty *duty, uint64_t index)
{
    return 1 + (int64_t)((duty->spec->key + index) % PUSH_NUMBERS);
}

void gw_sim_duty_fill(struct gw_sim_duty *duty)
{
    const struct gw_call_spec *spec = duty->spec;
    const uint32_t size = size_of(spec);
    const uint64_t in = count_in(duty), out = count_out(duty);
    const uint64_t base = base_of(duty, duty->rank);
    duty->in = in ? gw_memory_aligned(in * size) : NULL;
    duty->out = out ? gw_memory_aligned(out * size) : NULL;
    unsigned char *to = duty->in;
    if (duty->kind == GW_CALL_BROADCAST && duty->rank == spec->root)
        fill_bytes(duty->out, out * size, base);
    else if (duty->kind == GW_CALL_PUSH)
        for (uint64_t i = 0; i < in; i++)
            store(spec, to + i * size, pushed_of(duty, i));
    else if (has_numbers(duty))
        for (uint64_t first = 0; first < in; first += CHUNK) {
            int64_t steps[CHUNK];
            uint32_t count = in - first < CHUNK ? (uint32_t)(in - first) : CHUNK;
            steps_of(duty, duty->rank, first, count, steps);
            for (uint32_t i = 0; i < count; i++)
                store(spec, to + (first + i) * size, steps[i]);
        }
    else if (in)
        fill_bytes(to, in * size, base);
}

void *gw_sim_duty_sums(const struct gw_sim_duty *duty)
{
    const struct gw_call_spec *spec = duty->spec;
    const uint32_t size = size_of(spec);
    const uint64_t all = count_in(duty);
    if (!has_numbers(duty))
        return NULL;
    unsigned char *sums = gw_memory_aligned(all * size);
    for (uint64_t first = 0; first < all; first += CHUNK) {
        int64_t steps[CHUNK], made[CHUNK];
        uint32_t count = all - first < CHUNK ? (uint32_t)(all - first) : CHUNK;
        steps_of(duty, 0, first, count, made);
        for (uint32_t rank = 1; rank < duty->world; rank++) {
            steps_of(duty, rank, first, count, steps);
            combine(spec->op, made, steps, count);
        }
        int64_t shares = spec->op == GW_OP_AVERAGE ? duty->world : 1;
        for (uint32_t i = 0; i < count; i++)
            store(spec, sums + (first + i) * size, made[i] / shares);
    }
    return sums;
}

bool gw_sim_duty_is_right(const struct gw_sim_duty *duty, const void *sums)
{
    const struct gw_call_spec *spec = duty->spec;
    const uint64_t bytes = spec->count * size_of(spec);
    const unsigned char *out = duty->out;
    switch (duty->kind) {
    case GW_CALL_ALLREDUCE:
    case GW_CALL_REDUCE:
        return !out || memcmp(out, sums, bytes) == 0;
    case GW_CALL_REDUCE_SCATTER:
        return memcmp(out, (const unsigned char *)sums + duty->rank * bytes, bytes) == 0;
    case GW_CALL_BROADCAST:
        return are_bytes(out, bytes, base_of(duty, spec->root));
    case GW_CALL_RECEIVE:
        return are_bytes(out, bytes, base_of(duty, spec->from));
    case GW_CALL_ALLGATHER:
        for (uint32_t rank = 0; rank < duty->world; rank++)
            if (!are_bytes(out + rank * bytes, bytes, base_of(duty, rank)))
                return false;
        return true;
    default:
        return true;
    }
}

bool gw_sim_duty_pushes(const struct gw_sim_duty *duty, uint64_t *pushes)
{
    const struct gw_call_spec *spec = duty->spec;
    const uint32_t size = size_of(spec);
    const unsigned char *out = duty->out;
    int32_t integer;
    memcpy(&integer, out, sizeof(integer));
    double first =
        spec->type == GW_DTYPE_I32 ? integer : (double)gw_f32_load(out) * UNITS_PER_FLOAT;
    *pushes = first > 0 ? (uint64_t)first / (uint64_t)pushed_of(duty, 0) : 0;
    for (uint64_t i = 0; i < spec->count; i++) {
        unsigned char right[ELEMENT_MAX];
        store(spec, right, pushed_of(duty, i) * (int64_t)*pushes);
        if (memcmp(out + i * size, right, size) != 0)
            return false;
    }
    return true;
}

void gw_sim_duty_free(struct gw_sim_duty *duty)
{
    free(duty->in);
    free(duty->out);
    duty->in = duty->out = NULL;
}
