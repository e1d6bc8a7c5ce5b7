/* What a server is to send: the order of orders, alone and to all, for every length of train. */
#include "support.h"

#include "core/aggregation/order_queue.h"
#include "core/pkt.h"

enum {
    WORLD = 3,
    ROOM = 6,
};

static const uint32_t addresses[WORLD] = {11, 22, 33};

struct expected {
    uint32_t seq;
    uint32_t dst;
};

static void expect_all(struct gw_order_queue *queue, const struct expected *expected, size_t count)
{
    struct gw_order next;
    for (size_t i = 0; i < count; i++) {
        assert_true(gw_order_queue_next(queue, &next));
        assert_true(gw_order_queue_next(queue, &next)); /* looking changes nothing */
        assert_int_equal(next.seq, expected[i].seq);
        assert_int_equal(next.dst, expected[i].dst);
        assert_int_equal((next.flags & GW_AGG_UNICAST) != 0, next.is_to_all);
        gw_order_queue_pop(queue);
    }
    assert_false(gw_order_queue_next(queue, &next));
}

static void open(struct gw_order_queue *queue, uint32_t train)
{
    gw_order_queue_init(queue, malloc(gw_order_queue_size(ROOM)), ROOM, addresses, WORLD, train);
}

static void order_queue__goes_fragment_by_fragment_without_trains(void **state)
{
    (void)state;
    struct gw_order_queue queue;
    open(&queue, 1);
    assert_true(gw_order_queue_push_all(&queue, 1, 0));
    assert_true(gw_order_queue_push(&queue, 2, 99, GW_AGG_REQUEST));
    assert_true(gw_order_queue_push_all(&queue, 3, 0));
    static const struct expected expected[] = {{1, 11}, {1, 22}, {1, 33}, {2, 99},
                                               {3, 11}, {3, 22}, {3, 33}};
    expect_all(&queue, expected, GW_COUNT_OF(expected));
    free(queue.orders);
}

static void order_queue__goes_worker_by_worker_in_trains(void **state)
{
    (void)state;
    struct gw_order_queue queue;
    struct gw_order next;
    open(&queue, 2);
    for (uint32_t seq = 1; seq <= 3; seq++)
        assert_true(gw_order_queue_push_all(&queue, seq, 0));
    assert_true(gw_order_queue_next(&queue, &next));
    gw_order_queue_pop(&queue);
    assert_true(gw_order_queue_push(&queue, 4, 99, 0)); /* while a batch is on its way */
    static const struct expected expected[] = {{2, 11}, {1, 22}, {2, 22}, {1, 33}, {2, 33},
                                               {3, 11}, {3, 22}, {3, 33}, {4, 99}};
    expect_all(&queue, expected, GW_COUNT_OF(expected));
    free(queue.orders);
}

static void order_queue__refuses_what_it_has_no_room_for(void **state)
{
    (void)state;
    struct gw_order_queue queue;
    struct gw_order next;
    open(&queue, 4);
    for (uint32_t round = 0; round < 5; round++) { /* the ring goes round */
        for (uint32_t i = 0; i < ROOM; i++)
            assert_true(gw_order_queue_push(&queue, i, i, 0));
        assert_false(gw_order_queue_push(&queue, 9, 9, 0));
        assert_false(gw_order_queue_push_all(&queue, 9, 0));
        for (uint32_t i = 0; i < ROOM - round % 2; i++)
            gw_order_queue_pop(&queue);
        if (round % 2)
            gw_order_queue_clear(&queue);
        assert_false(gw_order_queue_next(&queue, &next));
    }
    free(queue.orders);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_queue__goes_fragment_by_fragment_without_trains),
        cmocka_unit_test(order_queue__goes_worker_by_worker_in_trains),
        cmocka_unit_test(order_queue__refuses_what_it_has_no_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
