/* Results of calls that may lose a part; see parts_model.h. */
#include "parts_model.h"

#include "support.h"

#include "base/bits.h"
#include "base/prng.h"
#include "core/quant/kernels.h"

enum {
    ELEMENT_MAX = 8,
    UNTOUCHED = 0xa5, /* as in job_model_calls.c */
};

/* The element of a set of ranks. */
static void put(enum gw_dtype type, uint32_t set, unsigned char *to)
{
    double number = set;
    uint64_t integer = set;
    if (type == GW_DTYPE_F64)
        memcpy(to, &number, sizeof(number));
    else if (gw_dtype_is_float(type))
        gw_kernels_best(0)->narrow_real[type](to, &number, 1, 1);
    else
        memcpy(to, &integer, gw_dtype_size(type));
}

/* The set, out of so many, whose element it is. */
static uint32_t set_of(enum gw_dtype type, uint32_t members, const unsigned char *element)
{
    unsigned char expected[ELEMENT_MAX];
    for (uint32_t set = 0; set < 1u << members; set++) {
        put(type, set, expected);
        if (memcmp(element, expected, gw_dtype_size(type)) == 0)
            return set;
    }
    fail_msg("no sum of bits of %u", members);
    return 0;
}

static uint32_t size_of(const struct gw_model_call *call)
{
    return call->kind == GW_CALL_SEND ? 1 : gw_dtype_size(call->type);
}

static uint64_t part_fragments(const struct gw_model_call *call, uint32_t fragment)
{
    return (call->count + fragment - 1) / fragment;
}

uint64_t gw_parts_model_fragments(const struct gw_model_call *call, uint32_t world,
                                  uint32_t fragment)
{
    return part_fragments(call, fragment) * (call->kind == GW_CALL_ALLGATHER ? world : 1);
}

static unsigned char byte_of(const struct gw_model_call *call, uint64_t index)
{
    return (unsigned char)gw_mix64(call->seed + index);
}

void gw_parts_model_fill(const struct gw_model_call *call, uint32_t world, uint32_t rank, void *in)
{
    uint64_t count = call->count * (call->kind == GW_CALL_REDUCE_SCATTER ? world : 1);
    unsigned char *to = in;
    for (uint64_t i = 0; i < count; i++)
        if (call->kind == GW_CALL_SEND)
            to[i] = byte_of(call, i);
        else
            put(call->type, 1u << rank, to + i * size_of(call));
}

static bool adds(const struct gw_model_call *call)
{
    return call->kind == GW_CALL_ALLREDUCE || call->kind == GW_CALL_REDUCE ||
           call->kind == GW_CALL_REDUCE_SCATTER;
}

static void assert_uniform(const unsigned char *bytes, uint32_t size, uint64_t elements)
{
    for (uint64_t i = size; i < elements * size; i++)
        assert_int_equal(bytes[i], bytes[i - size]);
}

static void assert_filled(const unsigned char *bytes, unsigned char with, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++)
        assert_int_equal(bytes[i], with);
}

/* A fragment that is there is what its count says; returns the set of ranks in it. */
static uint32_t check_there(const struct gw_model_call *call, uint32_t world,
                            const unsigned char *bytes, uint64_t first, uint64_t elements,
                            uint32_t count)
{
    uint32_t size = size_of(call), part = (uint32_t)(first / call->count);
    uint32_t source = call->kind == GW_CALL_ALLGATHER ? part : call->from;
    if (call->kind == GW_CALL_SEND) {
        for (uint64_t i = 0; i < elements; i++)
            assert_int_equal(bytes[i], byte_of(call, first + i));
        assert_int_equal(count, 1);
        return 0;
    }
    assert_uniform(bytes, size, elements);
    uint32_t set = set_of(call->type, world, bytes);
    if (!adds(call)) {
        assert_int_equal(set, 1u << source);
        assert_int_equal(count, 1);
        return 0;
    }
    if (!set || (uint32_t)__builtin_popcount(set) != count)
        fail_msg("kind %u via %u type %u: %u contributors, but set %x", call->kind, call->via,
                 call->type, count, set);
    return set;
}

static uint64_t mixed(uint64_t digest, const void *bytes, size_t size)
{
    const unsigned char *from = bytes;
    for (size_t i = 0; i < size; i++)
        digest = gw_mix64(digest ^ from[i]);
    return digest;
}

uint64_t gw_parts_model_check(const struct gw_model_call *call, uint32_t world, uint32_t rank,
                              const struct gw_parts_model_result *result)
{
    uint32_t size = size_of(call);
    uint64_t each = part_fragments(call, result->fragment), missing = 0, without[32] = {0};
    uint64_t fragments = gw_parts_model_fragments(call, world, result->fragment);
    uint64_t digest = 1;
    for (uint64_t i = 0; i < fragments; i++) {
        uint64_t at = i % each * result->fragment, left = call->count - at;
        uint64_t elements = left < result->fragment ? left : result->fragment;
        uint64_t first = i / each * call->count + at;
        const unsigned char *bytes = result->out + first * size;
        bool is_there = gw_bit_is_set(result->arrived, i);
        if (is_there) {
            uint32_t set = check_there(call, world, bytes, first, elements, result->counts[i]);
            for (uint32_t r = 0; set && r < world; r++)
                without[r] += !(set >> r & 1);
        } else {
            assert_int_equal(result->counts[i], 0);
            assert_filled(bytes, call->kind == GW_CALL_SEND ? UNTOUCHED : 0, elements * size);
            missing++;
        }
        digest = mixed(digest, bytes, elements * size) + is_there + result->counts[i];
    }
    gw_q16 bound = call->kind == GW_CALL_SEND ? call->bound : call->bound_pull;
    assert_true(missing == result->missing);
    if (missing << 16 > (uint64_t)bound * fragments)
        fail_msg("rank %u, kind %u via %u: %u of %u fragments are missing", rank, call->kind,
                 call->via, (uint32_t)missing, (uint32_t)fragments);
    for (uint32_t r = 0; r < world; r++)
        if (without[r] << 16 > (uint64_t)call->bound * fragments)
            fail_msg("rank %u, kind %u via %u: %u of %u fragments lack rank %u", rank, call->kind,
                     call->via, (uint32_t)without[r], (uint32_t)fragments, r);
    bool is_shared = call->kind == GW_CALL_ALLREDUCE || call->kind == GW_CALL_BROADCAST ||
                     call->kind == GW_CALL_ALLGATHER;
    return is_shared ? digest : 0;
}

void gw_parts_model_check_pull(const struct gw_model_call *call,
                               const struct gw_parts_model_result *result, uint32_t begun,
                               uint32_t due, const gw_q16 *bounds)
{
    uint32_t size = size_of(call);
    uint64_t fragments = part_fragments(call, result->fragment), missing = 0, without[32] = {0};
    for (uint64_t i = 0; i < fragments; i++) {
        uint64_t at = i * result->fragment, left = call->count - at;
        uint64_t elements = left < result->fragment ? left : result->fragment;
        const unsigned char *bytes = result->out + at * size;
        if (!gw_bit_is_set(result->arrived, i)) {
            assert_int_equal(result->counts[i], 0);
            assert_filled(bytes, UNTOUCHED, elements * size);
            missing++;
            continue;
        }
        assert_uniform(bytes, size, elements);
        uint32_t set = set_of(call->type, GW_CALL_MODEL_PUSHES_MAX, bytes);
        assert_int_equal(__builtin_popcount(set), result->counts[i]);
        assert_int_equal(set & ~begun, 0);
        for (uint32_t push = 0; push < GW_CALL_MODEL_PUSHES_MAX; push++)
            without[push] += (due & ~set) >> push & 1;
    }
    assert_true(missing == result->missing);
    assert_true(missing << 16 <= (uint64_t)call->bound * fragments);
    for (uint32_t push = 0; push < GW_CALL_MODEL_PUSHES_MAX; push++)
        assert_true(without[push] << 16 <= (uint64_t)bounds[push] * fragments);
}
