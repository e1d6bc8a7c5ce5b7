/* How calls are cut among the channels of a job. */
#include "support.h"

#include "base/prng.h"
#include "lib/io.h"
#include "lib/slices.h"

enum {
    VALUES = 352,
    MIB = 1 << 18, /* elements of 4 bytes */
};

static unsigned char in[8], out[8]; /* nobody looks behind the addresses */

static struct gw_call call_of(enum gw_call_kind kind, enum gw_dtype type, uint64_t count)
{
    return (struct gw_call){
        .kind = kind, .type = type, .count = count, .number = 7, .in = in, .out = out};
}

/* That they follow one another in both places, and are the whole call. */
static void assert_cut(const struct gw_call *call, uint16_t values, uint32_t slices)
{
    const uint64_t size = gw_dtype_size(call->type);
    uint64_t next = 0;
    for (uint32_t at = 0; at < slices; at++) {
        const struct gw_call slice = gw_slice(call, values, slices, at);
        assert_int_equal((uintptr_t)slice.in - (uintptr_t)call->in, next * size);
        assert_int_equal((uintptr_t)slice.out - (uintptr_t)call->out, next * size);
        assert_true(slice.count > 0);
        assert_true(at + 1 == slices || slice.count % values == 0);
        assert_int_equal(slice.number, call->number);
        const bool lies_apart = slices > 1 && call->kind >= GW_CALL_ALLGATHER;
        assert_int_equal(slice.stride, lies_apart ? call->count : 0);
        next += slice.count;
    }
    assert_int_equal(next, call->count);
}

static void slices__are_the_whole_call(void **state)
{
    (void)state;
    static const enum gw_dtype types[] = {GW_DTYPE_F32, GW_DTYPE_BF16, GW_DTYPE_I64, GW_DTYPE_U8};
    static const uint16_t values[] = {16, 62, VALUES, 2048, 16000};
    static const enum gw_call_kind kinds[] = {GW_CALL_ALLREDUCE, GW_CALL_REDUCE, GW_CALL_BROADCAST,
                                              GW_CALL_ALLGATHER, GW_CALL_REDUCE_SCATTER};
    struct gw_prng prng = gw_prng_derive(1, 1);
    for (int i = 0; i < 3000; i++) {
        const struct gw_call call =
            call_of(kinds[i % 5], types[i / 25 % 4], 1 + gw_prng_below(&prng, 40 * MIB));
        const uint32_t slices = gw_slices_of(&call, 1 + gw_prng_below(&prng, GW_IO_CHANNELS_MAX));
        assert_cut(&call, values[i / 5 % 5], slices);
        assert_true(slices == 1 || call.count * gw_dtype_size(call.type) / slices >= GW_SLICE_MIN);
    }
}

static void slices__are_as_many_as_channels_where_there_is_enough(void **state)
{
    (void)state;
    struct gw_call call = call_of(GW_CALL_ALLREDUCE, GW_DTYPE_F32, MIB - 1);
    assert_int_equal(gw_slices_of(&call, 4), 1);
    call.count = MIB;
    assert_int_equal(gw_slices_of(&call, 1), 1);
    assert_int_equal(gw_slices_of(&call, 4), 2);
    call.count = 2 * MIB - 1;
    assert_int_equal(gw_slices_of(&call, 4), 3);
    call.count = 100 * MIB;
    assert_int_equal(gw_slices_of(&call, 4), 4);
    call.type = GW_DTYPE_U8;
    call.count = MIB;
    assert_int_equal(gw_slices_of(&call, 4), 1);
}

static void slices__are_of_whole_collectives(void **state)
{
    (void)state;
    static const enum gw_call_kind whole[] = {GW_CALL_BARRIER, GW_CALL_SEND, GW_CALL_RECEIVE,
                                              GW_CALL_PUSH, GW_CALL_PULL};
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        const struct gw_call call = call_of(whole[i], GW_DTYPE_F32, 100 * MIB);
        assert_int_equal(gw_slices_of(&call, 4), 1);
    }
    const uint64_t important = 1;
    const struct gw_parts lossy[] = {{.bound = 1}, {.bound_pull = 1}, {.important = &important}};
    struct gw_call call = call_of(GW_CALL_ALLREDUCE, GW_DTYPE_F32, 100 * MIB);
    for (size_t i = 0; i < GW_COUNT_OF(lossy); i++) {
        call.parts = &lossy[i];
        assert_int_equal(gw_slices_of(&call, 4), 1);
    }
    const struct gw_parts exact = {.class = 3};
    call.parts = &exact;
    assert_int_equal(gw_slices_of(&call, 4), 4);
    call.kind = GW_CALL_BROADCAST;
    assert_int_equal(gw_slices_of(&call, 4), 1);
}

/* Of a reduce, at a rank that is not its root. */
static void slices__without_a_place_have_none(void **state)
{
    (void)state;
    struct gw_call call = call_of(GW_CALL_REDUCE, GW_DTYPE_F32, 100 * MIB);
    call.out = NULL;
    assert_null(gw_slice(&call, VALUES, 4, 3).out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices__are_the_whole_call),
        cmocka_unit_test(slices__are_as_many_as_channels_where_there_is_enough),
        cmocka_unit_test(slices__are_of_whole_collectives),
        cmocka_unit_test(slices__without_a_place_have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
