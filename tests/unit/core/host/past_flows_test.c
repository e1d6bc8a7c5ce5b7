/* Flows that have had memory are known again, in bounded memory. */
#include "support.h"

#include "core/host/past_flows.h"

enum {
    PEER = 7,
    OTHER = 8,
};

#define NOW ((gw_time)0 - GW_MS) /* the clock wraps soon */

static uint32_t flow_of(uint16_t index, uint16_t generation)
{
    return (uint32_t)generation << 16 | index;
}

static struct gw_past_flows *open_table(uint32_t flows)
{
    static struct gw_past_flows past;
    uint32_t sets = gw_past_flows_sets(flows);
    gw_past_flows_init(&past, gw_test_take(gw_past_flows_size(sets)), sets);
    return &past;
}

/* A flow that has come to as many packets as its generation. */
static void note(struct gw_past_flows *past, uint32_t peer, uint32_t flow, gw_time at)
{
    gw_past_flows_note(past, peer, flow, (struct gw_past_end){5, flow >> 16, flow}, at);
}

static bool has(const struct gw_past_flows *past, uint32_t peer, uint32_t flow, gw_time now)
{
    struct gw_past_end end;
    return gw_past_flows_has(past, peer, flow, now, &end);
}

/* Of the last flow of an index it is known what it came to. */
static void past_flows__tell_how_the_last_ended(void **state)
{
    (void)state;
    struct gw_past_flows *past = open_table(64);
    struct gw_past_end end;
    note(past, PEER, flow_of(3, 7), NOW);
    note(past, PEER, flow_of(3, 5), NOW); /* ended later than its sender's */
    assert_true(gw_past_flows_has(past, PEER, flow_of(3, 7), NOW, &end));
    assert_true(end.tag == 5 && end.arrived == 7 && end.bytes == flow_of(3, 7));
    assert_true(gw_past_flows_has(past, PEER, flow_of(3, 5), NOW, &end));
    assert_true(end.arrived == 0);
    free(past->entries);
}

/* Generations count on through 65536. */
static void past_flows__are_those_up_to_the_last(void **state)
{
    (void)state;
    struct gw_past_flows *past = open_table(64);
    assert_false(has(past, PEER, flow_of(3, 2), NOW));
    note(past, PEER, flow_of(3, 2), NOW);
    assert_true(has(past, PEER, flow_of(3, 2), NOW));
    assert_true(has(past, PEER, flow_of(3, UINT16_MAX), NOW));
    assert_false(has(past, PEER, flow_of(3, 3), NOW));
    assert_false(has(past, PEER, flow_of(4, 2), NOW));
    assert_false(has(past, OTHER, flow_of(3, 2), NOW));
    note(past, PEER, flow_of(3, 3), NOW);
    assert_true(has(past, PEER, flow_of(3, 3), NOW));
    note(past, PEER, flow_of(3, 1), NOW - GW_US); /* ended later than its sender's */
    assert_true(has(past, PEER, flow_of(3, 3), NOW));
    free(past->entries);
}

/* A peer that starts again may use any generation, if not at once. */
static void past_flows__are_forgotten_but_the_last(void **state)
{
    (void)state;
    struct gw_past_flows *past = open_table(64);
    note(past, PEER, flow_of(3, 9000), NOW);
    assert_false(has(past, PEER, flow_of(3, 9000 - GW_PAST_FLOWS_REACH), NOW));
    assert_true(has(past, PEER, flow_of(3, 9001 - GW_PAST_FLOWS_REACH), NOW));
    assert_true(has(past, PEER, flow_of(3, 8999), NOW + GW_PAST_FLOWS_TIME - GW_NS));
    assert_false(has(past, PEER, flow_of(3, 8999), NOW + GW_PAST_FLOWS_TIME));
    assert_true(has(past, PEER, flow_of(3, 9000), NOW + GW_PAST_FLOWS_TIME));
    free(past->entries);
}

/* Of many that come to the same place, the last ones are known. */
static void past_flows__give_way_in_their_order(void **state)
{
    (void)state;
    enum {
        ROOM = 8,
        MANY = 100,
    };
    struct gw_past_flows *past = open_table(1);
    past->sets = 1;
    for (uint16_t i = 0; i < MANY; i++) {
        note(past, PEER, flow_of(i, 1), NOW + i);
        for (uint16_t j = 0; j < MANY; j++)
            assert_int_equal(has(past, PEER, flow_of(j, 1), NOW + i), j <= i && i - j < ROOM);
    }
    free(past->entries);
}

static void past_flows__need_memory(void **state)
{
    (void)state;
    struct gw_past_flows none;
    gw_past_flows_init(&none, NULL, gw_past_flows_sets(0));
    assert_true(gw_past_flows_size(none.sets) == 0);
    note(&none, PEER, 1, NOW);
    assert_false(has(&none, PEER, 1, NOW));
    assert_int_equal(gw_past_flows_sets(1), 8);
    assert_int_equal(gw_past_flows_sets(4096), 2048);
    assert_int_equal(gw_past_flows_sets(4095 + 9), 2048 * 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(past_flows__are_those_up_to_the_last),
        cmocka_unit_test(past_flows__tell_how_the_last_ended),
        cmocka_unit_test(past_flows__are_forgotten_but_the_last),
        cmocka_unit_test(past_flows__give_way_in_their_order),
        cmocka_unit_test(past_flows__need_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
