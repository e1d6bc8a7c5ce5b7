/* Messages between ranks, over real flows: in any order, by any way, and what comes too late. */
#include "mesh_fixture.h"

static unsigned char data[4][5000], got[4][5000];

static void open_met(struct model *m, const struct setup *setup)
{
    model_open(m, setup);
    come_all(m);
    model_run(m);
}

static int start(struct model *m, uint32_t rank, const struct gw_message *message)
{
    return gw_messages_start(m->ranks[rank].messages, message, gw_mem_now(m->mem));
}

/* Sends and receives in other orders, early and late, with the same tag to and from. */
static void messages__find_each_other(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        bool is_bare = i & 1, receives_late = i & 4;
        struct model m;
        model_open(&m, &(struct setup){.world = 2, .is_bare = is_bare});
        if (i & 2)
            model_worsen(&m);
        for (uint32_t k = 0; k < 4; k++) {
            gw_test_fill(data[k], sizeof(data[k]), k);
            struct gw_message send = {.call = 10 + k,
                                      .rank = 1 - k / 2,
                                      .tag = k % 2 ? GW_MESH_MESSAGE_TAG_MAX : 0,
                                      .data = is_bare ? NULL : data[k],
                                      .bytes = 1 + 1200 * k};
            assert_int_equal(start(&m, k / 2, &send), GW_OK); /* before the table is known */
        }
        come_all(&m);
        if (receives_late)
            model_run_for(&m, GW_MS);
        for (uint32_t k = 4; k-- > 0;) {
            struct gw_message receive = {.call = 20 + k,
                                         .rank = k / 2,
                                         .tag = k % 2 ? GW_MESH_MESSAGE_TAG_MAX : 0,
                                         .data = is_bare ? NULL : got[k],
                                         .bytes = sizeof(got[k]),
                                         .is_receive = true};
            memset(got[k], 0, sizeof(got[k]));
            assert_int_equal(start(&m, 1 - k / 2, &receive), GW_OK);
        }
        model_run(&m);
        for (uint32_t k = 0; k < 4; k++) {
            if (!is_bare)
                assert_memory_equal(got[k], data[k], 1 + 1200 * k);
            uint32_t sent = 0, received = 0;
            for (uint32_t j = 0; j < 4; j++) {
                sent += m.ranks[k / 2].done[j].call == 10 + k;
                received += m.ranks[1 - k / 2].done[j].call == 20 + k &&
                            m.ranks[1 - k / 2].done[j].bytes == 1 + 1200 * k;
            }
            assert_true(sent == 1 && received == 1);
        }
        assert_int_equal(m.ranks[0].done_count + m.ranks[1].done_count, 8);
        assert_int_equal(gw_messages_awaited(m.ranks[0].messages), 2);
        assert_true(gw_messages_deadline(m.ranks[1].messages) == GW_TIME_NEVER);
        model_close(&m);
    }
}

static void messages__are_limited(void **state)
{
    (void)state;
    struct model m;
    open_met(&m, &(struct setup){.world = 2});
    struct gw_message receive = {.rank = 1, .data = got[0], .bytes = 1, .is_receive = true};
    for (receive.tag = 0; receive.tag < LIMIT; receive.tag++) {
        receive.data = &got[0][receive.tag];
        assert_int_equal(start(&m, 0, &receive), GW_OK);
    }
    assert_int_equal(start(&m, 0, &receive), GW_ERR_NO_ROOM);
    assert_int_equal(gw_messages_awaited(m.ranks[0].messages), 1);
    gw_messages_drop(m.ranks[0].messages);
    assert_int_equal(gw_messages_awaited(m.ranks[0].messages), 2);
    struct gw_message send = {.rank = 1, .tag = LIMIT, .data = data[0], .bytes = 1};
    assert_int_equal(start(&m, 0, &send), GW_OK); /* that is another message */
    assert_int_equal(start(&m, 0, &receive), GW_OK);
    assert_int_equal(start(&m, 0, &receive), GW_ERR_INVALID);
    gw_messages_drop(m.ranks[0].messages);
    assert_int_equal(start(&m, 0, &receive), GW_OK);
    talk(&m, 0, 1, 99);
    talk(&m, 1, 0, 99);
    model_close(&m);
}

/* A receive of which nothing has come in time; one that is being filled is not overdue. */
static void messages_overdue__blames_who_has_not_begun(void **state)
{
    (void)state;
    struct model m;
    open_met(&m, &(struct setup){.world = 3});
    struct gw_messages *messages = m.ranks[0].messages;
    gw_time begin = gw_mem_now(m.mem);
    struct gw_message never = {.rank = 2, .tag = 1, .data = got[0], .bytes = 1, .is_receive = true};
    struct gw_message slow = {
        .rank = 1, .tag = 1, .data = got[1], .bytes = sizeof(got[1]), .is_receive = true};
    struct gw_message sent = {.rank = 0, .tag = 1, .data = data[0], .bytes = sizeof(data[0])};
    assert_int_equal(start(&m, 0, &slow), GW_OK);
    assert_true(gw_messages_deadline(messages) == gw_time_add(begin, STALL));
    assert_int_equal(start(&m, 1, &sent), GW_OK);
    model_run_for(&m, 2 * LATENCY + 3 * GW_US); /* the first packets are there */
    assert_int_equal(m.ranks[0].done_count, 0);
    assert_false(
        gw_endpoint_expects(m.ranks[0].host.endpoint, address_of(1), GW_MESH_TAG_MESSAGE | 1));
    assert_int_equal(gw_messages_overdue(messages, gw_time_add(begin, STALL - 1)), 3);
    assert_int_equal(gw_messages_overdue(messages, gw_time_add(begin, STALL)), 3);
    assert_true(gw_messages_deadline(messages) == GW_TIME_NEVER); /* it has begun */
    model_run(&m);
    assert_int_equal(m.ranks[0].done_count, 1);
    begin = gw_mem_now(m.mem);
    assert_int_equal(start(&m, 0, &never), GW_OK);
    assert_int_equal(gw_messages_overdue(messages, gw_time_add(begin, STALL - 1)), 3);
    assert_int_equal(gw_messages_overdue(messages, gw_time_add(begin, STALL)), 2);
    gw_messages_drop(messages);
    assert_int_equal(gw_messages_overdue(messages, gw_time_add(begin, STALL)), 3);
    model_close(&m);
}

/* Without payload nobody knows what has begun, so nothing is overdue while anything comes. */
static void messages_overdue__waits_for_silence_without_payload(void **state)
{
    (void)state;
    struct model m;
    open_met(&m, &(struct setup){.world = 2, .is_bare = true});
    struct gw_messages *messages = m.ranks[0].messages;
    gw_time begin = gw_mem_now(m.mem);
    struct gw_message never = {.rank = 1, .tag = 1, .bytes = 1, .is_receive = true};
    assert_int_equal(start(&m, 0, &never), GW_OK);
    gw_messages_overdue(messages, begin);
    model_run_for(&m, STALL / 2);
    talk(&m, 1, 0, 2);
    gw_time quiet = gw_mem_now(m.mem);
    assert_int_equal(gw_messages_overdue(messages, quiet), 2);
    assert_int_equal(gw_messages_overdue(messages, gw_time_add(begin, STALL)), 2);
    assert_true(gw_messages_deadline(messages) == gw_time_add(quiet, STALL));
    assert_int_equal(gw_messages_overdue(messages, gw_time_add(quiet, STALL)), 1);
    gw_messages_drop(messages);
    model_close(&m);
}

/* More than anyone may have under way; and more than there is room for. */
static void messages__without_payload_are_not_kept_for_ever(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        struct model m;
        open_met(&m, &(struct setup){.world = 2, .is_bare = true, .has_ways = true});
        struct gw_message receive = {.rank = 1, .tag = 0, .bytes = 10, .is_receive = true};
        if (i == 0)
            assert_int_equal(start(&m, 0, &receive), GW_OK);
        for (uint32_t k = 0; k < 17 * LIMIT && gw_mesh_state(m.ranks[0].mesh) == GW_MESH_MET; k++) {
            struct gw_message send = {.rank = 0, .tag = k, .bytes = 11};
            assert_int_equal(start(&m, 1, &send), GW_OK);
            m.ranks[1].done_count = 0;
            model_run(&m);
        }
        expect_failure(&m, 0, &(struct gw_mesh_failure){i ? GW_JOB_LIMIT : GW_JOB_BROKEN, 1, 0});
        model_close(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages__find_each_other),
        cmocka_unit_test(messages__are_limited),
        cmocka_unit_test(messages_overdue__blames_who_has_not_begun),
        cmocka_unit_test(messages_overdue__waits_for_silence_without_payload),
        cmocka_unit_test(messages__without_payload_are_not_kept_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
