/*
 * Multicast groups between neighbours: who is told one and hears its probes says so, and says it no
 * longer when they stop; nothing else makes anybody believe in a group.
 */
#include "support.h"

#include "attach_net.h"

enum {
    A, /* the initiator, who listens */
    B, /* the responder, who has a group */
    C, /* a stranger to both, with the same key */
};

#define MISTRUST (30 * GW_S) /* for so long probes count for nothing */

static const struct gw_attach_group group = {
    .cookie = 0x1122334455667788, .port = 29700, .address = {[0] = 0xff, [15] = 5}};
static const struct gw_attach_group no_group = {.port = 0};

static struct gw_test_attach *open_session(void)
{
    struct gw_test_attach *net = gw_test_attach_open(2026);
    gw_test_attach_start(net, A);
    gw_test_attach_start(net, B);
    gw_test_attach_dial(net, A, B);
    gw_test_attach_run(net, 0);
    assert_true(net->sides[A].ups == 1 && net->sides[B].ups == 1);
    return net;
}

static void tell(struct gw_test_attach *net, const struct gw_attach_group *told)
{
    gw_neighbours_set_group(net->sides[B].own, net->sides[B].last_up.peer, told);
    gw_test_attach_run(net, GW_TEST_BEAT);
}

/* A probe of B's, as it would be received from side `from`. */
static void probe(struct gw_test_attach *net, int from, bool is_changed)
{
    uint8_t bytes[GW_ATTACH_SIZE];
    gw_neighbours_probe(net->sides[B].own, net->sides[B].last_up.peer, bytes);
    bytes[GW_ATTACH_SIGNED] ^= is_changed;
    gw_test_attach_send(net, from, A, bytes);
    gw_test_attach_run(net, 0);
}

static bool is_hearing(const struct gw_test_attach *net)
{
    struct gw_neighbour_event view;
    assert_true(gw_neighbours_view(net->sides[B].own, net->sides[B].last_up.peer, &view));
    return view.said.flags & GW_ATTACH_HEARS;
}

/* The packets of the group do not come to A, it has found out. */
static void mistrust(struct gw_test_attach *net)
{
    gw_neighbours_mistrust_group(net->sides[A].own, net->sides[A].last_up.peer, net->now);
    gw_test_attach_run(net, 0);
}

static void group__is_told_with_the_next_answer(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_session();
    tell(net, &group);
    const struct gw_neighbour_event *event = &net->sides[A].last;
    assert_int_equal(event->kind, GW_NEIGHBOUR_GROUP);
    assert_true(event->said.group.cookie == group.cookie);
    assert_int_equal(event->said.group.port, group.port);
    assert_memory_equal(event->said.group.address, group.address, GW_ATTACH_GROUP_SIZE);
    assert_false(is_hearing(net));
    tell(net, &no_group);
    assert_int_equal(event->kind, GW_NEIGHBOUR_GROUP);
    assert_int_equal(event->said.group.port, 0);
    gw_test_attach_close(net);
}

/* The acceptance comes too early to tell it: so whoever is of a job asks once more. */
static void group__is_told_right_after_the_first_answer(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_session();
    gw_neighbours_set_group(net->sides[B].own, net->sides[B].last_up.peer, &group);
    gw_test_attach_run(net, 10 * GW_MS);
    assert_int_equal(net->sides[A].last.kind, GW_NEIGHBOUR_GROUP);
    assert_true(net->sides[A].last.said.group.cookie == group.cookie);
    uint32_t sent = net->sent;
    gw_test_attach_run(net, GW_TEST_BEAT - 20 * GW_MS);
    assert_int_equal(net->sent, sent);
    gw_test_attach_close(net);
}

static void probe__is_answered_at_once(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_session();
    tell(net, &group);
    probe(net, B, false);
    assert_int_equal(net->sides[B].last.kind, GW_NEIGHBOUR_HEARS);
    assert_true(is_hearing(net));
    gw_test_attach_close(net);
}

/* As long as probes come nothing changes; six beats after the last it is over. */
static void hearing__lasts_as_long_as_the_probes(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_session();
    tell(net, &group);
    for (int i = 0; i < 20; i++) {
        probe(net, B, false);
        gw_test_attach_run(net, GW_TEST_BEAT);
        assert_true(is_hearing(net));
    }
    gw_test_attach_run(net, 7 * GW_TEST_BEAT);
    assert_int_equal(net->sides[B].last.kind, GW_NEIGHBOUR_HEARS);
    assert_false(is_hearing(net));
    probe(net, B, false);
    assert_true(is_hearing(net));
    gw_test_attach_close(net);
}

static void probe__counts_only_from_the_neighbour(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_session();
    gw_test_attach_start(net, C);
    probe(net, B, false); /* of no group yet */
    assert_false(is_hearing(net));
    tell(net, &group);
    probe(net, B, true);
    assert_int_equal(gw_neighbours_stats(net->sides[A].own)->forged, 1);
    gw_test_attach_run(net, GW_TEST_BEAT);
    assert_false(is_hearing(net));
    const struct gw_attach_group other = {.cookie = group.cookie + 1, .port = group.port};
    gw_neighbours_set_group(net->sides[B].own, net->sides[B].last_up.peer, &other);
    probe(net, B, false); /* of a group that A does not know yet */
    assert_false(is_hearing(net));
    assert_true(gw_neighbours_stats(net->sides[A].own)->stale > 0);
    gw_test_attach_close(net);
}

/* When the responder restarts, what was told before it counts no longer. */
static void group__ends_with_its_session(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_session();
    tell(net, &group);
    probe(net, B, false);
    assert_true(is_hearing(net));
    gw_test_attach_start(net, B);
    gw_test_attach_run(net, 2 * GW_TEST_SILENCE);
    assert_int_equal(net->sides[B].last.kind, GW_NEIGHBOUR_UP);
    assert_int_equal(net->sides[A].last.kind, GW_NEIGHBOUR_UP);
    assert_int_equal(net->sides[A].last.said.group.port, 0);
    assert_false(is_hearing(net));
    gw_test_attach_close(net);
}

/* What was sent before we said that we hear comes by unicast, and tells nothing about the group. */
static void mistrust__waits_for_two_beats(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_session();
    tell(net, &group);
    mistrust(net); /* there is nothing to mistrust: it changes nothing */
    probe(net, B, false);
    assert_true(is_hearing(net));
    mistrust(net);
    gw_test_attach_run(net, GW_TEST_BEAT);
    probe(net, B, false);
    gw_test_attach_run(net, GW_TEST_BEAT - 1);
    mistrust(net);
    gw_test_attach_run(net, GW_TEST_BEAT);
    assert_true(is_hearing(net));
    assert_int_equal(net->sides[B].hears, 1);
    mistrust(net);
    assert_false(is_hearing(net));
    assert_int_equal(net->sides[B].hears, 2);
    gw_test_attach_close(net);
}

/* Then probes do not count, until the group gets another chance, of two beats again. */
static void mistrust__passes(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_session();
    tell(net, &group);
    probe(net, B, false);
    gw_test_attach_run(net, 2 * GW_TEST_BEAT);
    assert_true(is_hearing(net));
    mistrust(net);
    gw_time until = net->now + MISTRUST;
    while (gw_time_before(net->now, until - GW_TEST_BEAT)) {
        gw_test_attach_run(net, GW_TEST_BEAT);
        probe(net, B, false);
        assert_false(is_hearing(net));
    }
    gw_test_attach_run(net, until - net->now - 1);
    probe(net, B, false);
    assert_false(is_hearing(net));
    gw_test_attach_run(net, 1);
    probe(net, B, false);
    assert_true(is_hearing(net));
    mistrust(net);
    assert_true(is_hearing(net));
    assert_int_equal(net->sides[B].hears, 3);
    assert_true(net->sides[A].downs == 0 && net->sides[B].downs == 0);
    gw_test_attach_close(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(group__is_told_with_the_next_answer),
        cmocka_unit_test(group__is_told_right_after_the_first_answer),
        cmocka_unit_test(probe__is_answered_at_once),
        cmocka_unit_test(hearing__lasts_as_long_as_the_probes),
        cmocka_unit_test(probe__counts_only_from_the_neighbour),
        cmocka_unit_test(group__ends_with_its_session),
        cmocka_unit_test(mistrust__waits_for_two_beats),
        cmocka_unit_test(mistrust__passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
