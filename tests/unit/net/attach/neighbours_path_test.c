/*
 * What neighbours measure of the paths between them: round trips by questions that are answered,
 * whatever is lost or late, and the way to the top of the switches, as each tells the next.
 */
#include "support.h"

#include "attach_net.h"
#include "net/path_meter.h"

enum {
    WORKER,
    SWITCH,
    TOP,
    SERVER,
};

static const uint64_t seed = 2026;

/* Two sides alone, whose messages take as long as the test says. */
struct line {
    struct gw_test_attach *net;
    gw_time now;
};

static void open_line(struct line *line)
{
    line->net = gw_test_attach_open(seed);
    line->now = GW_S;
    line->net->now = line->now;
    gw_test_attach_start(line->net, WORKER);
    gw_test_attach_start(line->net, SERVER);
    gw_test_attach_dial(line->net, WORKER, SERVER);
}

/* The worker's next question; the clock goes on to it. */
static void ask(struct line *line, uint8_t bytes[GW_ATTACH_SIZE])
{
    struct gw_neighbours *own = line->net->sides[WORKER].own;
    struct gw_sock_addr to;
    gw_time deadline = gw_neighbours_deadline(own);
    if (gw_time_before(line->now, deadline))
        line->now = deadline;
    while (!gw_neighbours_output(own, &to, bytes, line->now)) /* it was the look for silence */
        line->now = gw_neighbours_deadline(own);
}

/* Takes a question to the server and its answer back; false: there is none. */
static bool answer(struct line *line, uint8_t bytes[GW_ATTACH_SIZE])
{
    const struct gw_test_side *from = &line->net->sides[WORKER];
    uint8_t question[GW_ATTACH_SIZE];
    memcpy(question, bytes, sizeof(question));
    return gw_neighbours_input(line->net->sides[SERVER].own, &from->addr, question,
                               sizeof(question), bytes, line->now) != 0;
}

static void hear(struct line *line, const uint8_t bytes[GW_ATTACH_SIZE],
                 uint8_t back[GW_ATTACH_SIZE])
{
    const struct gw_test_side *from = &line->net->sides[SERVER];
    gw_neighbours_input(line->net->sides[WORKER].own, &from->addr, bytes, GW_ATTACH_SIZE, back,
                        line->now);
}

static gw_time rtt_of(const struct line *line, int side)
{
    struct gw_neighbour_event up = {.kind = GW_NEIGHBOUR_DOWN};
    uint16_t peer = 0;
    while (!gw_neighbours_view(line->net->sides[side].own, peer, &up))
        peer++;
    return gw_neighbours_rtt(line->net->sides[side].own, peer);
}

/* Brings the session up; the round trip of the question with the proof is `rtt`. */
static void meet(struct line *line, gw_time rtt)
{
    uint8_t bytes[GW_ATTACH_SIZE], back[GW_ATTACH_SIZE];
    ask(line, bytes);
    assert_true(answer(line, bytes)); /* CHALLENGE */
    line->now += 3 * GW_MS;           /* which is no measurement */
    hear(line, bytes, back);
    assert_true(answer(line, back)); /* ACCEPT */
    line->now += rtt;
    hear(line, back, bytes);
}

static void neighbours_rtt__is_of_the_question_that_is_answered(void **state)
{
    (void)state;
    struct line line;
    uint8_t first[GW_ATTACH_SIZE], second[GW_ATTACH_SIZE], back[GW_ATTACH_SIZE];
    open_line(&line);
    meet(&line, 700 * GW_US);
    assert_int_equal(rtt_of(&line, WORKER), 700 * GW_US);
    ask(&line, first);
    assert_true(answer(&line, first));
    ask(&line, second); /* a beat later, and the first answer comes after it */
    assert_true(answer(&line, second));
    line.now += 100 * GW_US;
    hear(&line, first, back);
    assert_int_equal(rtt_of(&line, WORKER), 700 * GW_US); /* and not 100 us */
    line.now += 300 * GW_US;
    hear(&line, second, back);
    assert_int_equal(rtt_of(&line, WORKER), 400 * GW_US);
    gw_test_attach_close(line.net);
}

/* The responder measures nothing, and believes what it is told by the next question. */
static void neighbours_rtt__is_told_to_the_responder(void **state)
{
    (void)state;
    struct line line;
    uint8_t bytes[GW_ATTACH_SIZE];
    open_line(&line);
    meet(&line, 695 * GW_US);
    assert_int_equal(rtt_of(&line, SERVER), 0);
    ask(&line, bytes);
    assert_true(answer(&line, bytes));
    assert_int_equal(rtt_of(&line, SERVER), 700 * GW_US); /* in units of 20 us, rounded up */
    gw_test_attach_close(line.net);
}

/* A path that gets longer is found out, beat by beat, and one that is lost is no measurement. */
static void neighbours_rtt__is_refreshed_by_every_beat(void **state)
{
    (void)state;
    struct line line;
    uint8_t bytes[GW_ATTACH_SIZE], back[GW_ATTACH_SIZE];
    open_line(&line);
    meet(&line, 300 * GW_US);
    gw_time begin = line.now;
    for (int i = 0; line.now - begin < 3 * GW_PATH_METER_WINDOW; i++) {
        ask(&line, bytes);
        if (i % 3 == 0)
            continue; /* lost */
        assert_true(answer(&line, bytes));
        line.now += 900 * GW_US;
        hear(&line, bytes, back);
    }
    assert_int_equal(rtt_of(&line, WORKER), 900 * GW_US);
    gw_test_attach_close(line.net);
}

static struct gw_neighbour_way way_of(const struct gw_test_attach *net, int side)
{
    return gw_neighbours_way(net->sides[side].own);
}

/* A worker below two switches, of which one has slower ports; a server at the top one. */
static void neighbours_way__goes_to_the_top(void **state)
{
    (void)state;
    struct gw_test_attach *net = gw_test_attach_open(seed);
    net->sides[SWITCH].cfg.role = net->sides[TOP].cfg.role = GW_ATTACH_SWITCH;
    net->sides[SWITCH].cfg.rate_bps = UINT64_C(1000000000);
    net->sides[TOP].cfg.rate_bps = UINT64_C(100000000);
    for (int side = WORKER; side <= SERVER; side++)
        gw_test_attach_start(net, side);
    assert_true(way_of(net, WORKER).rate_bps == 0 && way_of(net, WORKER).rtt == 0);
    assert_true(way_of(net, TOP).rate_bps == UINT64_C(100000000) && way_of(net, TOP).rtt == 0);
    gw_test_attach_dial(net, WORKER, SERVER);
    gw_test_attach_dial(net, WORKER, SWITCH);
    gw_test_attach_dial(net, SERVER, TOP);
    gw_test_attach_dial(net, SWITCH, TOP);
    gw_test_attach_run(net, GW_TEST_BEAT + GW_MS);
    /* A network without delay: a hop is what rounding up makes of it. */
    assert_int_equal(way_of(net, SERVER).rtt, GW_ATTACH_RTT_UNIT);
    assert_int_equal(way_of(net, SWITCH).rtt, GW_ATTACH_RTT_UNIT);
    assert_int_equal(way_of(net, WORKER).rtt, 2 * GW_ATTACH_RTT_UNIT);
    for (int side = WORKER; side <= SERVER; side++)
        assert_true(way_of(net, side).rate_bps == UINT64_C(100000000));
    gw_test_attach_run(net, GW_TEST_BEAT + GW_MS); /* and the server knows it */
    struct gw_neighbour_event up = net->sides[SERVER].last_up;
    uint16_t peer = 0;
    while (!gw_neighbours_view(net->sides[SERVER].own, peer, &up) || up.dial >= 0)
        peer++;
    assert_int_equal(gw_neighbours_way_of(net->sides[SERVER].own, peer).rtt,
                     2 * GW_ATTACH_RTT_UNIT);
    assert_true(gw_neighbours_way_of(net->sides[SERVER].own, peer).rate_bps == UINT64_C(100000000));
    gw_test_attach_close(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_rtt__is_of_the_question_that_is_answered),
        cmocka_unit_test(neighbours_rtt__is_told_to_the_responder),
        cmocka_unit_test(neighbours_rtt__is_refreshed_by_every_beat),
        cmocka_unit_test(neighbours_way__goes_to_the_top),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
