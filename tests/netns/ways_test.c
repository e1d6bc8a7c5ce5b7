/*
 * How a rank reaches others: straight, where a session comes about; by the switch in front of the
 * server, where none does.
 */
#include "group_fixture.h"

enum {
    MESSAGE = 20000,
    HIDDEN = 2,
};

static const struct gw_notice_path unknown;

static uint8_t sent[MESSAGE], heard[MESSAGE];

/* Packets that rank 0's switch has passed on. */
static uint64_t passed_on(const struct group *g)
{
    return gw_overlay_switch_queues(gw_overlay_home_switch(g->ranks[0].home)).out_packets;
}

static void start(struct group *g, uint32_t rank, const struct gw_call *call)
{
    assert_int_equal(gw_communicator_call(g->ranks[rank].comm, call,
                                          gw_loop_now(gw_station_loop(g->ranks[rank].station))),
                     0);
}

/* Rank 1 sends to rank 2; returns how many packets went by the switch. */
static uint64_t send_one(struct group *g)
{
    const struct gw_call send = {
        .kind = GW_CALL_SEND, .number = 1, .in = sent, .count = MESSAGE, .peer = 2};
    const struct gw_call receive = {
        .kind = GW_CALL_RECEIVE, .number = 1, .out = heard, .count = MESSAGE, .peer = 1};
    for (size_t i = 0; i < MESSAGE; i++)
        sent[i] = (uint8_t)(i * 7);
    memset(heard, 0, sizeof(heard));
    for (uint16_t rank = 0; rank < RANKS; rank++)
        open_rank(g, rank, GW_NOTICE_OFF, &unknown);
    run(g, 7);
    uint64_t before = passed_on(g);
    start(g, 1, &send);
    start(g, 2, &receive);
    for (int i = 0; i < TURNS_MAX && g->ranks[1].done + g->ranks[2].done < 2; i++)
        for (int rank = 0; rank < RANKS; rank++)
            turn(&g->ranks[rank]);
    assert_int_equal(g->ranks[1].done + g->ranks[2].done, 2);
    assert_memory_equal(heard, sent, MESSAGE);
    return passed_on(g) - before;
}

static void ways__lead_straight(void **state)
{
    (void)state;
    struct group g;
    open_group(&g);
    assert_true(send_one(&g) < MESSAGE / MTU);
    close_group(&g);
}

/* The other end of the session does not answer. */
static void ways__lead_by_the_switch_where_nobody_answers(void **state)
{
    (void)state;
    struct group g;
    open_group(&g);
    g.hidden = HIDDEN;
    assert_true(send_one(&g) >= MESSAGE / MTU);
    close_group(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ways__lead_straight),
        cmocka_unit_test(ways__lead_by_the_switch_where_nobody_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
