/* Plain results of calls; see call_model.h. */
#include "call_model.h"

#include "host.h"
#include "support.h"

#include "core/quant/kernels.h"

/* How large elements are, so that 8 of them add up without rounding. */
struct range {
    uint32_t bits;     /* of the number, besides its sign */
    int32_t shift_min; /* powers of two that it may be multiplied by */
    int32_t shift_max;
    int32_t shift_raw; /* one that integers in switches have no room for */
};

static const struct range ranges[GW_DTYPES] = {
    [GW_DTYPE_F32] = {19, -27, -19, -8}, /* as multiples of 2^-27, below 16 */
    [GW_DTYPE_F16] = {6, -20, -12, 0},   [GW_DTYPE_BF16] = {4, -27, -12, 3},
    [GW_DTYPE_I32] = {20, 0, 6, 0},      [GW_DTYPE_F64] = {48, -100, 100, 200},
    [GW_DTYPE_I64] = {40, 0, 19, 0},     [GW_DTYPE_U8] = {4, 0, 0, 0},
};

bool gw_model_call_has(const struct gw_model_call *call, uint32_t rank)
{
    return gw_model_call_is_collective(call) || call->from == rank ||
           (call->kind == GW_CALL_SEND && call->to == rank);
}

bool gw_model_call_is_rerouted(const struct gw_model_call *call)
{
    bool is_sum = call->kind == GW_CALL_ALLREDUCE || call->kind == GW_CALL_REDUCE;
    return is_sum && !call->has_parts && call->via != GW_VIA_RING &&
           !gw_op_by_switch(call->op, call->type);
}

size_t gw_model_call_in_size(const struct gw_model_call *call, uint32_t world, uint32_t rank)
{
    size_t bytes = call->count * gw_dtype_size(call->type);
    switch (call->kind) {
    case GW_CALL_REDUCE_SCATTER:
        return world * bytes;
    case GW_CALL_SEND:
        return call->from == rank ? call->count : 0;
    case GW_CALL_BROADCAST:
    case GW_CALL_BARRIER:
    case GW_CALL_PULL:
        return 0;
    default:
        return call->is_in_place ? 0 : bytes;
    }
}

size_t gw_model_call_out_size(const struct gw_model_call *call, uint32_t world, uint32_t rank)
{
    size_t bytes = call->count * gw_dtype_size(call->type);
    switch (call->kind) {
    case GW_CALL_ALLGATHER:
        return world * bytes;
    case GW_CALL_REDUCE:
        return call->from == rank ? bytes : 0;
    case GW_CALL_SEND:
        return call->to == rank ? call->count : 0;
    case GW_CALL_BARRIER:
    case GW_CALL_PUSH:
        return 0;
    default:
        return bytes;
    }
}

static uint64_t random_of(const struct gw_model_call *call, uint32_t rank, uint64_t index)
{
    return gw_mix64(call->seed ^ gw_mix64(index << 8 | rank));
}

/* The number of a rank's element. */
static int64_t number_of(const struct gw_model_call *call, uint32_t world, uint32_t rank,
                         uint64_t index)
{
    const struct range *range = &ranges[call->type];
    uint64_t bits = random_of(call, rank, index);
    bool is_signed = call->type != GW_DTYPE_U8;
    int64_t number = 1;
    if (call->op == GW_OP_PRODUCT)
        number += bits >> 1 & (is_signed || rank < 4);
    else if (call->op == GW_OP_AVERAGE)
        number = (int64_t)(world * (bits >> 1 & ((UINT64_C(1) << (range->bits - 3)) - 1)));
    else
        number = (int64_t)(bits >> 1 & ((UINT64_C(1) << range->bits) - 1));
    return is_signed && bits & 1 ? -number : number;
}

/* The power of two that it is multiplied by. Of a call with an even seed one in 128 elements is
 * large. */
static int32_t shift_of(const struct gw_model_call *call, uint64_t index)
{
    const struct range *range = &ranges[call->type];
    uint64_t bits = random_of(call, UINT8_MAX, index);
    uint32_t choice = (uint32_t)(range->shift_max - range->shift_min + 1);
    if (call->op == GW_OP_PRODUCT)
        return 0;
    return call->seed % 2 == 0 && bits % 128 == 0
               ? range->shift_raw
               : range->shift_min + (int32_t)(bits / 128 % choice);
}

static void write_element(enum gw_dtype type, int64_t number, int32_t shift, unsigned char *out)
{
    uint64_t power_bits = (uint64_t)(1023 + shift) << 52; /* 2^shift as a float64 */
    double x;
    memcpy(&x, &power_bits, sizeof(x));
    x *= (double)number;
    bool is_integer = !gw_dtype_is_float(type);
    int64_t i64 = is_integer ? (int64_t)((uint64_t)number << shift) : 0;
    int32_t i32 = (int32_t)i64;
    switch (type) {
    case GW_DTYPE_I32:
        memcpy(out, &i32, sizeof(i32));
        break;
    case GW_DTYPE_F64:
        memcpy(out, &x, sizeof(x));
        break;
    case GW_DTYPE_I64:
        memcpy(out, &i64, sizeof(i64));
        break;
    case GW_DTYPE_U8:
        *out = (unsigned char)i64;
        break;
    default:
        gw_kernels_best(0)->narrow_real[type](out, &x, 1, 1);
    }
}

/* The element that the operation makes of all ranks'. */
static void write_result(const struct gw_model_call *call, uint32_t world, uint64_t index,
                         unsigned char *out)
{
    int64_t result = number_of(call, world, 0, index);
    for (uint32_t rank = 1; rank < world; rank++) {
        int64_t number = number_of(call, world, rank, index);
        if (call->op == GW_OP_PRODUCT)
            result *= number;
        else if (call->op == GW_OP_MIN || call->op == GW_OP_MAX)
            result = (number < result) == (call->op == GW_OP_MIN) ? number : result;
        else
            result += number;
    }
    if (call->op == GW_OP_AVERAGE)
        result /= (int64_t)world;
    write_element(call->type, result, shift_of(call, index), out);
}

/* What a push adds: a bit of its own to each element. */
static void fill_push(const struct gw_model_call *call, unsigned char *in)
{
    for (uint64_t i = 0; i < call->count; i++)
        write_element(call->type, INT64_C(1) << call->push, 0, in + i * gw_dtype_size(call->type));
}

void gw_model_call_fill(const struct gw_model_call *call, uint32_t world, uint32_t rank, void *in)
{
    unsigned char *bytes = in;
    uint32_t size = gw_dtype_size(call->type);
    uint64_t count = call->kind == GW_CALL_REDUCE_SCATTER ? world * call->count : call->count;
    if (call->kind == GW_CALL_SEND) {
        gw_test_fill(in, call->count, call->seed);
    } else if (call->kind == GW_CALL_PUSH) {
        fill_push(call, in);
    } else {
        for (uint64_t i = 0; i < count; i++)
            write_element(call->type, number_of(call, world, rank, i), shift_of(call, i),
                          bytes + i * size);
    }
}

void gw_model_call_expect(const struct gw_model_call *call, uint32_t world, uint32_t rank,
                          void *out)
{
    unsigned char *bytes = out;
    uint32_t size = gw_dtype_size(call->type);
    uint64_t first = call->kind == GW_CALL_REDUCE_SCATTER ? rank * call->count : 0;
    switch (call->kind) {
    case GW_CALL_BROADCAST:
        gw_model_call_fill(call, world, call->from, out);
        break;
    case GW_CALL_ALLGATHER:
        for (uint32_t r = 0; r < world; r++)
            gw_model_call_fill(call, world, r, bytes + r * call->count * size);
        break;
    case GW_CALL_SEND:
        gw_test_fill(out, call->count, call->seed);
        break;
    default:
        for (uint64_t i = 0; i < call->count; i++)
            write_result(call, world, first + i, bytes + i * size);
    }
}

bool gw_model_call_pushes(const struct gw_model_call *call, const void *out, uint32_t *pushes)
{
    const unsigned char *bytes = out;
    unsigned char expected[sizeof(uint64_t)];
    uint32_t size = gw_dtype_size(call->type);
    for (uint32_t set = 1; set < 1u << GW_CALL_MODEL_PUSHES_MAX; set++) {
        write_element(call->type, set, 0, expected);
        if (memcmp(bytes, expected, size) != 0)
            continue;
        *pushes = set;
        for (uint64_t i = 0; i < call->count; i++)
            if (memcmp(bytes + i * size, expected, size) != 0)
                return false;
        return true;
    }
    return false;
}
