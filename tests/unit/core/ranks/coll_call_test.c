/* What a call of coll_run.h may be, the memory that it may work on, and the tags that it uses. */
#include "support.h"

#include "base/error.h"
#include "core/ranks/coll_call.h"
#include "core/ranks/coll_row.h"

enum {
    WORLD = 4,
    COUNT = 100,
    SEGMENT = 1 << 18, /* bytes */
    FLOWS = 2,
};

static struct gw_coll_call call_of(enum gw_coll_kind kind, uint64_t count, enum gw_dtype type)
{
    return (struct gw_coll_call){.coll = gw_coll_for(kind),
                                 .tensor = {.count = count, .type = type}};
}

static uint64_t tags_of(enum gw_coll_kind kind, uint32_t world, uint64_t count, enum gw_dtype type)
{
    struct gw_coll_call call = call_of(kind, count, type);
    return gw_coll_call_tags(&call, world, SEGMENT, FLOWS);
}

/* So a tensor may have the more elements the more workers there are. */
static void coll_call_tags__are_numbered_by_the_largest_step(void **state)
{
    (void)state;
    const enum gw_coll_kind kind = GW_COLL_ALLREDUCE;
    uint64_t count = UINT64_C(1) << 31; /* 2^21 floats a chunk, 2^16 a segment */
    assert_int_equal(tags_of(kind, 1024, count, GW_DTYPE_F32), 2 * 1023 * 32);
    assert_int_equal(tags_of(kind, 1024, count + 1, GW_DTYPE_F32), 2 * 1023 * 33);
    assert_int_equal(tags_of(kind, 1024, count, GW_DTYPE_F16), 2 * 1023 * 16);
    assert_int_equal(tags_of(kind, 1024, count, GW_DTYPE_F64), 2 * 1023 * 64);
    assert_int_equal(tags_of(kind, 1024, 1, GW_DTYPE_F32), 2 * 1023);
    assert_int_equal(tags_of(kind, 1024, 0, GW_DTYPE_F32), 0);
    assert_int_equal(tags_of(kind, 1, 5, GW_DTYPE_F32), 0);
    const struct gw_coll_call wide = call_of(kind, 1, GW_DTYPE_I64);
    assert_true(gw_coll_call_tags(&wide, 2, 4, FLOWS) == UINT64_MAX);
    /* `count` elements for each rank: 2^16 are a segment of each. */
    assert_int_equal(tags_of(GW_COLL_ALLGATHER, 1024, 1 << 16, GW_DTYPE_F32), 1023);
    assert_int_equal(tags_of(GW_COLL_REDUCE_SCATTER, 1024, (1 << 16) + 1, GW_DTYPE_F32), 2 * 1023);
}

/* Of a chain two workers meet once. Its segments are so short that all workers soon have some, but
 * no shorter than 16 KiB. */
static void coll_call_tags__of_a_chain_are_segments(void **state)
{
    (void)state;
    for (uint32_t kind = GW_COLL_BROADCAST; kind <= GW_COLL_REDUCE; kind++) {
        assert_int_equal(tags_of(kind, 2, 1 << 20, GW_DTYPE_F32), 16);
        assert_int_equal(tags_of(kind, 8, 1 << 30, GW_DTYPE_F32), 1 << 14);
        assert_int_equal(tags_of(kind, 8, 1 << 13, GW_DTYPE_F32), 2);
        /* 64 times two flows of six workers, and what is cut off to whole elements. */
        assert_int_equal(tags_of(kind, 8, 1 << 23, GW_DTYPE_F32), 64 * FLOWS * 6 + 1);
    }
}

static bool is_valid(const struct gw_coll_call *call, uint32_t rank)
{
    return gw_coll_call_is_valid(call, (struct gw_coll_seat){rank, WORLD}, true);
}

struct places {
    int in, out; /* elements from the start; -1: NULL */
    bool is_valid;
};

static void check_places(enum gw_coll_kind kind, uint32_t rank, const struct places *places,
                         size_t count)
{
    static float memory[4 * WORLD * COUNT];
    for (size_t i = 0; i < count; i++) {
        struct gw_coll_call call = call_of(kind, COUNT, GW_DTYPE_F32);
        call.root = 2;
        call.tensor.in = places[i].in < 0 ? NULL : memory + places[i].in;
        call.tensor.out = places[i].out < 0 ? NULL : memory + places[i].out;
        if (is_valid(&call, rank) != places[i].is_valid)
            fail_msg("kind %d, rank %u, case %zu", kind, rank, i);
    }
}

/* `in` and `out` are the same, or apart. */
static void coll_call__may_work_in_place(void **state)
{
    (void)state;
    enum { C = COUNT, ALL = WORLD * COUNT };
    static const struct places same[] = {
        {0, 0, true},  {0, C, true},   {C, 0, true},   {0, C - 1, false},
        {1, 0, false}, {0, -1, false}, {-1, 0, false},
    };
    static const struct places scatter[] = {
        {0, 2 * C, true},      {0, ALL, true},      {C, 0, true},   {0, 0, false},
        {0, 2 * C + 1, false}, {0, ALL - 1, false}, {0, -1, false}, {-1, 0, false},
    };
    static const struct places gather[] = {
        {2 * C, 0, true},      {ALL, 0, true},      {0, C, true},   {0, 0, false},
        {2 * C + 1, 0, false}, {ALL - 1, 0, false}, {0, -1, false}, {-1, 0, false},
    };
    static const struct places receiver[] = {{-1, 0, true}, {0, C / 2, true}, {0, -1, false}};
    static const struct places giver[] = {{0, -1, true}, {0, C / 2, true}, {-1, 0, false}};
    check_places(GW_COLL_ALLREDUCE, 1, same, GW_COUNT_OF(same));
    check_places(GW_COLL_BROADCAST, 2, same, GW_COUNT_OF(same));
    check_places(GW_COLL_REDUCE, 2, same, GW_COUNT_OF(same));
    check_places(GW_COLL_REDUCE_SCATTER, 2, scatter, GW_COUNT_OF(scatter));
    check_places(GW_COLL_ALLGATHER, 2, gather, GW_COUNT_OF(gather));
    check_places(GW_COLL_BROADCAST, 1, receiver, GW_COUNT_OF(receiver));
    check_places(GW_COLL_REDUCE, 1, giver, GW_COUNT_OF(giver));
}

static void coll_call__is_of_a_kind_that_exists(void **state)
{
    (void)state;
    static float memory[COUNT];
    struct gw_coll_call good = call_of(GW_COLL_ALLREDUCE, COUNT, GW_DTYPE_F32), bad;
    good.tensor.in = good.tensor.out = memory;
    assert_true(is_valid(&good, 0));
    bad = good, bad.root = WORLD;
    assert_false(is_valid(&bad, 0));
    bad = good, bad.stride = COUNT; /* of parts alone */
    assert_false(is_valid(&bad, 0));
    bad = good, bad.tensor.type = GW_DTYPES;
    assert_false(is_valid(&bad, 0));
    bad = good, bad.tensor.op = GW_OPS;
    assert_false(is_valid(&bad, 0));
    bad = good, bad.tensor.op = GW_OP_AVERAGE, bad.tensor.type = GW_DTYPE_U8;
    assert_false(is_valid(&bad, 0));
    bad.coll = gw_coll_for(GW_COLL_BROADCAST); /* which has no operation */
    assert_true(is_valid(&bad, 0));
    bad = good, bad.tensor.count = UINT64_MAX / 4 / WORLD + 1;
    assert_false(is_valid(&bad, 0));
    bad = good;
    bad.coll = (const struct gw_coll_ops *)gw_registry_find(&gw_coll_registry, "halving-doubling");
    assert_false(gw_coll_call_is_valid(&bad, (struct gw_coll_seat){0, 3}, true));
    assert_true(gw_coll_call_is_valid(&bad, (struct gw_coll_seat){0, 1}, true));
    assert_false(gw_coll_call_is_valid(&good, (struct gw_coll_seat){0, WORLD}, false));
    bad = good, bad.tensor.in = bad.tensor.out = NULL;
    assert_true(gw_coll_call_is_valid(&bad, (struct gw_coll_seat){0, WORLD}, false));
    assert_false(is_valid(&bad, 0));
    bad.tensor.count = 0;
    assert_true(is_valid(&bad, 0));
}

/* Where the parts of workers lie apart. */
static void coll_call__may_have_strides(void **state)
{
    (void)state;
    enum { STRIDE = COUNT + 10 };
    static float memory[2 * WORLD * STRIDE];
    for (int i = 0; i < 2; i++) {
        const bool gathers = i == 1;
        struct gw_coll_call call =
            call_of(gathers ? GW_COLL_ALLGATHER : GW_COLL_REDUCE_SCATTER, COUNT, GW_DTYPE_F32);
        float *all = memory, *own = memory + 2 * STRIDE; /* rank 2's */
        call.stride = STRIDE;
        call.tensor.in = gathers ? own : all;
        call.tensor.out = gathers ? all : own;
        assert_true(is_valid(&call, 2));
        assert_false(is_valid(&call, 1));
        const uint64_t element = 3 * COUNT + 5, mine = 2 * COUNT + 5;
        assert_ptr_equal(gathers ? gw_coll_call_out(&call, 2, element)
                                 : (unsigned char *)(uintptr_t)gw_coll_call_in(&call, element),
                         all + 3 * STRIDE + 5);
        if (!gathers)
            assert_ptr_equal(gw_coll_call_out(&call, 2, mine), own + 5);
        call.stride = COUNT - 1;
        assert_false(is_valid(&call, 2));
        call.stride = UINT64_MAX / sizeof(float) / WORLD + 1;
        assert_false(is_valid(&call, 2));
        const struct gw_parts parts = {.bound = 1};
        call.stride = STRIDE, call.parts = &parts, call.fragment = 10;
        assert_false(is_valid(&call, 2));
    }
}

/* Up to the last tag, messages are in the order of tags; of a short lap, they are not. */
static void coll_row__goes_round_in_laps(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= 40; count++) {
        struct gw_coll_call call = call_of(GW_COLL_REDUCE_SCATTER, count, GW_DTYPE_I64);
        struct gw_coll_row row;
        const struct gw_coll_seat seat = {1, WORLD};
        assert_int_equal(gw_coll_call_row(&call, seat, 12, FLOWS, &row), GW_OK);
        assert_int_equal(row.segments, count);
        struct gw_coll_cursor cursor = {0};
        struct gw_coll_message message;
        uint32_t lap = 2 * FLOWS, seen = 0;
        for (uint32_t first = 0; first < count; first += lap)
            for (uint32_t step = 0; step < WORLD - 1; step++)
                for (uint32_t i = first; i < first + lap && i < count; i++) {
                    assert_true(gw_coll_row_next(&row, GW_COLL_SENT, &cursor, &message));
                    assert_int_equal(message.tag, step * count + i);
                    assert_int_equal(message.first, (WORLD - step) % WORLD * count + i);
                    assert_int_equal(message.count, 1);
                    cursor.segment++;
                    seen++;
                }
        assert_false(gw_coll_row_next(&row, GW_COLL_SENT, &cursor, &message));
        assert_int_equal(seen, (WORLD - 1) * count);
        assert_int_equal(gw_coll_call_row(&call, seat, 4, FLOWS, &row), GW_ERR_INVALID);
    }
}

/* Of steps that need nothing of each other the peers take turns, segment by segment. */
static void coll_row__takes_turns_where_steps_are_apart(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= 40; count++) {
        struct gw_coll_call call = call_of(GW_COLL_ALLREDUCE, WORLD * count, GW_DTYPE_I64);
        call.coll = &gw_coll_direct;
        struct gw_coll_row row;
        const struct gw_coll_seat seat = {1, WORLD};
        assert_int_equal(gw_coll_call_row(&call, seat, 8, FLOWS, &row), GW_OK);
        struct gw_coll_cursor cursor = {0}, before = {0};
        struct gw_coll_message message;
        for (uint32_t half = 0; half < 2; half++)
            for (uint32_t i = 0; i < count; i++)
                for (uint32_t apart = 1; apart < WORLD; apart++) {
                    uint32_t peer = (1 + apart) % WORLD;
                    assert_true(gw_coll_row_next(&row, GW_COLL_SENT, &cursor, &message));
                    assert_true(gw_coll_cursor_before(before, cursor) == (half + i + apart > 1));
                    assert_int_equal(message.peer, peer);
                    assert_int_equal(message.first, (half ? 1 : peer) * count + i);
                    /* A result waits for what all others bring of it, and for nothing else. */
                    bool brings = half == 1;
                    assert_int_equal(
                        gw_coll_row_brings(&row, (struct gw_coll_cursor){0}, cursor.step, &message),
                        brings);
                    struct gw_coll_cursor last = {.lap = i, .step = WORLD - 2};
                    assert_int_equal(gw_coll_row_brings(&row, last, cursor.step, &message), brings);
                    last.segment = 1;
                    assert_false(gw_coll_row_brings(&row, last, cursor.step, &message));
                    before = cursor;
                    cursor.segment++;
                }
        assert_false(gw_coll_row_next(&row, GW_COLL_SENT, &cursor, &message));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coll_call_tags__are_numbered_by_the_largest_step),
        cmocka_unit_test(coll_call_tags__of_a_chain_are_segments),
        cmocka_unit_test(coll_call__may_work_in_place),
        cmocka_unit_test(coll_call__is_of_a_kind_that_exists),
        cmocka_unit_test(coll_call__may_have_strides),
        cmocka_unit_test(coll_row__goes_round_in_laps),
        cmocka_unit_test(coll_row__takes_turns_where_steps_are_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
