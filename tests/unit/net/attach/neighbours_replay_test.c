/*
 * What somebody can do to sessions who has no key, but sees all that is said, can send as anybody,
 * and is faster than both: nothing that he records, repeats or invents makes a session use its
 * number with two cookies, keeps a dead end alive, ends a live one, or ends a dial.
 */
#include "support.h"

#include "attach_net.h"
#include "net/auth.h"
#include "wire/wire.h"

enum {
    A, /* the initiator */
    B, /* the responder */
    LIVES = 4,
    UPS_MAX = 64,
    OTHER_VERSION = GW_WIRE_VERSION + 1,
};

static const uint64_t seed = 2027;

/* The other end of A's session each time that it comes up. */
struct ups {
    uint32_t count;
    struct gw_attach_msg said[UPS_MAX];
};

static struct gw_test_attach *open_session(void)
{
    struct gw_test_attach *net = gw_test_attach_open(seed);
    gw_test_attach_start(net, A);
    gw_test_attach_start(net, B);
    gw_test_attach_dial(net, A, B);
    gw_test_attach_run(net, 0);
    assert_int_equal(net->sides[A].ups, 1);
    return net;
}

/* Whether A's session is new is what its tags depend on: its number never comes up again. */
static void look(const struct gw_test_attach *net, struct ups *ups)
{
    const struct gw_attach_msg *said = &net->sides[A].last_up.said;
    if (net->sides[A].ups == ups->count)
        return;
    assert_int_equal(net->sides[A].ups, ups->count + 1);
    for (uint32_t i = 0; i < ups->count; i++)
        assert_memory_not_equal(said->session, ups->said[i].session, GW_ATTACH_NONCE_SIZE);
    assert_true(ups->count < UPS_MAX);
    ups->said[ups->count++] = *said;
}

/* Says again what B has said up to a number, and looks after each message. */
static void repeat(struct gw_test_attach *net, uint32_t recorded, struct ups *ups)
{
    for (uint32_t m = 0; m < recorded; m++)
        if (net->messages[m].from == B) {
            gw_test_attach_send(net, B, A, net->messages[m].bytes);
            gw_test_attach_run(net, 0);
            look(net, ups);
        }
}

/*
 * B restarts, life after life, and before A has noticed all that B ever said comes again: the
 * challenges of its lives before, and the acceptances with their cookies.
 */
static void neighbours__no_number_has_two_cookies(void **state)
{
    (void)state;
    for (gw_time wait = 0; wait < GW_TEST_SILENCE; wait += 50 * GW_MS) {
        struct gw_test_attach *net = open_session();
        struct ups ups = {0};
        look(net, &ups);
        for (int life = 0; life < LIVES; life++) {
            uint32_t recorded = net->sent;
            gw_test_attach_start(net, B);
            gw_test_attach_run(net, wait);
            look(net, &ups);
            repeat(net, recorded, &ups);
            gw_test_attach_run(net, GW_TEST_BEAT);
            look(net, &ups);
            repeat(net, net->sent, &ups);
            gw_test_attach_run(net, 2 * GW_TEST_BEAT);
            look(net, &ups);
            assert_true(gw_neighbours_is_up(net->sides[A].own, 0));
        }
        assert_int_equal(ups.count, 1 + LIVES);
        gw_test_attach_close(net);
    }
}

/* The first ACCEPT comes after B has restarted and has accepted the same session once more. */
static bool hold_back(void *context, uint32_t number, struct gw_test_message *message)
{
    struct gw_test_message *held = context;
    (void)number;
    if (held->to != held->from || gw_attach_step_of(message->bytes) != GW_ATTACH_ACCEPT)
        return true;
    *held = *message;
    return false;
}

static void neighbours__late_answer_brings_no_other_cookie(void **state)
{
    (void)state;
    struct gw_test_attach *net = gw_test_attach_open(seed);
    struct gw_test_message held = {.from = A, .to = A};
    net->fate = hold_back;
    net->context = &held;
    gw_test_attach_start(net, A);
    gw_test_attach_start(net, B);
    gw_test_attach_dial(net, A, B);
    gw_test_attach_run(net, 0);
    assert_int_equal(held.from, B);
    gw_test_attach_start(net, B);
    gw_test_attach_run(net, 25 * GW_MS);
    assert_int_equal(net->sides[A].ups, 1);
    uint64_t stale = gw_neighbours_stats(net->sides[A].own)->stale;
    gw_test_attach_send(net, B, A, held.bytes);
    gw_test_attach_run(net, 2 * GW_S);
    assert_int_equal(gw_neighbours_stats(net->sides[A].own)->stale, stale + 1);
    assert_int_equal(net->sides[A].ups, 1);
    assert_int_equal(net->sides[A].downs, 0);
    gw_test_attach_close(net);
}

/* B is dead, and what it said last comes again and again. */
static void neighbours__repeated_answers_keep_no_session(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_session();
    gw_test_attach_run(net, 10 * GW_S);
    uint32_t recorded = net->sent;
    gw_test_attach_stop(net, B);
    for (uint32_t m = 0; m < recorded; m++)
        if (net->messages[m].from == B) {
            gw_test_attach_send(net, B, A, net->messages[m].bytes);
            gw_test_attach_run(net, GW_TEST_BEAT / 4);
        }
    assert_int_equal(net->sides[A].downs, 1);
    assert_false(gw_neighbours_is_up(net->sides[A].own, 0));
    gw_test_attach_close(net);
}

/* The initiator is dead and what it said is repeated, in order and while its proof is good: it is
 * gone as soon as if nothing had come. */
static void neighbours__replayed_beats_keep_no_session(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_session();
    gw_test_attach_run(net, 10 * GW_S);
    uint32_t recorded = net->sent;
    uint64_t stale = gw_neighbours_stats(net->sides[B].own)->stale;
    gw_test_attach_stop(net, A);
    for (uint32_t m = 0; m < recorded; m++)
        if (net->messages[m].from == A) {
            gw_test_attach_send(net, A, B, net->messages[m].bytes);
            gw_test_attach_run(net, GW_TEST_BEAT / 4);
        }
    assert_int_equal(net->sides[B].ups, 1);
    assert_int_equal(net->sides[B].downs, 1);
    assert_true(gw_neighbours_stats(net->sides[B].own)->stale > stale + 10);
    gw_test_attach_close(net);
}

/* Answers each question before B can, with something that has no code. */
struct liar {
    struct gw_test_attach *net;
    enum gw_attach_step step;
    uint8_t reason;
    uint32_t copies;
    bool is_of_another_version;
};

/* Says it to A, about the question that it asked. */
static void lie_about(const struct liar *liar, struct gw_attach_msg msg)
{
    uint8_t bytes[GW_ATTACH_SIZE], answer[GW_ATTACH_SIZE];
    struct gw_test_side *a = &liar->net->sides[A];
    msg.step = (uint8_t)liar->step;
    msg.reason = liar->reason;
    memset(msg.proof, 0x5a, sizeof(msg.proof));
    gw_attach_encode(&msg, bytes);
    if (liar->is_of_another_version)
        bytes[2] = OTHER_VERSION << 4 | GW_ATTACH_KIND;
    for (uint32_t i = 0; i < liar->copies; i++) {
        uint32_t size = gw_neighbours_input(a->own, &liar->net->sides[B].addr, bytes,
                                            GW_ATTACH_SIZE, answer, liar->net->now);
        if (size)
            gw_test_attach_send(liar->net, A, B, answer);
    }
}

static bool lie(void *context, uint32_t number, struct gw_test_message *message)
{
    struct gw_attach_msg msg;
    (void)number;
    if (message->from == A && gw_attach_decode(message->bytes, GW_ATTACH_SIZE, &msg) == 0 &&
        msg.step == GW_ATTACH_ASK)
        lie_about(context, msg);
    return true;
}

/* All that he can say without a key: the session stays up, also where proofs are made anew. */
static void neighbours__lies_do_not_hold_a_session_up(void **state)
{
    (void)state;
    struct liar liars[] = {
        {.step = GW_ATTACH_CHALLENGE, .copies = 1},
        {.step = GW_ATTACH_CHALLENGE, .copies = 20},
        {.step = GW_ATTACH_ACCEPT, .copies = 3},
        {.step = GW_ATTACH_DETACH, .copies = 3},
        {.step = GW_ATTACH_REFUSE, .reason = GW_ATTACH_KEY, .copies = 3},
        {.step = GW_ATTACH_REFUSE, .reason = GW_ATTACH_ENDED, .copies = 3},
        {.step = GW_ATTACH_REFUSE, .reason = 1, .copies = 3, .is_of_another_version = true},
    };
    for (size_t i = 0; i < GW_COUNT_OF(liars); i++) {
        struct gw_test_attach *net = open_session();
        liars[i].net = net;
        net->fate = lie;
        net->context = &liars[i];
        gw_test_attach_run(net, 200 * GW_S);
        assert_int_equal(gw_test_attach_events(net), 2);
        assert_true(gw_neighbours_is_up(net->sides[A].own, 0));
        gw_test_attach_close(net);
    }
}

/* And where there is none yet: a refusal of his slows the dial down, and never ends it. */
static void neighbours__lies_do_not_end_a_dial(void **state)
{
    (void)state;
    struct liar liars[] = {
        {.step = GW_ATTACH_REFUSE, .reason = GW_ATTACH_KEY, .copies = 50},
        {.step = GW_ATTACH_REFUSE, .reason = 1, .copies = 50, .is_of_another_version = true},
    };
    for (size_t i = 0; i < GW_COUNT_OF(liars); i++) {
        struct gw_test_attach *net = gw_test_attach_open(seed);
        liars[i].net = net;
        net->fate = lie;
        net->context = &liars[i];
        gw_test_attach_start(net, A);
        gw_test_attach_dial(net, A, B);
        for (int again = 0; again < 100; again++) {
            struct gw_attach_msg asked;
            gw_test_attach_run(net, 100 * GW_MS - GW_US);
            assert_int_equal(
                gw_attach_decode(net->messages[net->sent - 1].bytes, GW_ATTACH_SIZE, &asked), 0);
            lie_about(&liars[i], asked);
        }
        assert_int_equal(net->sent, 10); /* one question in a second, and no end of them */
        assert_int_equal(gw_test_attach_events(net), 0);
        assert_int_equal(gw_neighbours_dial_refusal(net->sides[A].own, 0),
                         liars[i].is_of_another_version ? GW_ATTACH_VERSION : GW_ATTACH_KEY);
        gw_test_attach_start(net, B);
        gw_test_attach_run(net, GW_S);
        assert_int_equal(net->sides[A].ups, 1);
        assert_int_equal(gw_neighbours_dial_refusal(net->sides[A].own, 0), GW_ATTACH_OK);
        gw_test_attach_close(net);
    }
}

/* A daemon asks again, whatever it is refused for; a job ends where that will not pass. */
static void neighbours__who_insists_asks_again(void **state)
{
    (void)state;
    for (int insists = 0; insists < 2; insists++) {
        struct gw_test_attach *net = gw_test_attach_open(seed);
        net->sides[A].cfg.mtu++;
        net->sides[A].cfg.insists = insists;
        gw_test_attach_start(net, A);
        gw_test_attach_start(net, B);
        gw_test_attach_dial(net, A, B);
        gw_test_attach_run(net, 10 * GW_S);
        assert_int_equal(net->sides[A].refusals, !insists);
        assert_int_equal(gw_neighbours_dial_refusal(net->sides[A].own, 0), GW_ATTACH_MTU);
        net->sides[B].cfg.mtu++;
        gw_test_attach_start(net, B);
        gw_test_attach_run(net, 2 * GW_S);
        assert_int_equal(net->sides[A].ups, insists);
        gw_test_attach_close(net);
    }
}

/* A question counts once, and none that was asked before it counts after it. */
static void neighbours__questions_count_in_order(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_session();
    uint8_t answer[GW_ATTACH_SIZE];
    gw_test_attach_run(net, GW_S);
    const struct gw_neighbours_stats *stats = gw_neighbours_stats(net->sides[B].own);
    uint64_t stale = stats->stale, asked = 0;
    for (uint32_t m = 0; m < net->sent; m++) {
        struct gw_attach_msg msg;
        assert_int_equal(gw_attach_decode(net->messages[m].bytes, GW_ATTACH_SIZE, &msg), 0);
        if (msg.step != GW_ATTACH_ASK || msg.number == 1) /* the first one has no proof */
            continue;
        assert_int_equal(gw_neighbours_input(net->sides[B].own, &net->sides[A].addr,
                                             net->messages[m].bytes, GW_ATTACH_SIZE, answer,
                                             net->now),
                         0);
        assert_int_equal(stats->stale, stale + ++asked);
    }
    assert_in_range(asked, 5, 7);
    gw_test_attach_close(net);
}

/* There is no room for a dial's next session while its own events wait: it comes up afterwards. */
static void neighbours__a_dial_waits_for_room(void **state)
{
    (void)state;
    struct gw_test_attach *net = gw_test_attach_open(seed);
    uint8_t bytes[GW_ATTACH_SIZE];
    struct gw_sock_addr to;
    net->sides[B].cfg.peers_max = 2;
    for (int side = A; side <= B + 1; side++)
        gw_test_attach_start(net, side);
    gw_test_attach_dial(net, B, B + 1); /* one of B's two places */
    gw_test_attach_dial(net, A, B);     /* the other */
    gw_test_attach_run(net, 0);
    net->sides[B].is_deaf = true;
    assert_true(
        gw_neighbours_farewell(net->sides[B + 1].own, net->sides[B + 1].last_up.peer, &to, bytes));
    gw_test_attach_send(net, B + 1, B, bytes);
    gw_test_attach_stop(net, B + 1);
    gw_test_attach_run(net, GW_S);
    gw_test_attach_start(net, B + 1);
    gw_test_attach_run(net, GW_S);
    net->sides[B].is_deaf = false;
    gw_test_attach_run(net, 2 * GW_S);
    assert_true(gw_neighbours_is_up(net->sides[B].own, 0));
    gw_test_attach_close(net);
}

static bool is_no_acceptance(void *context, uint32_t number, struct gw_test_message *message)
{
    (void)context;
    (void)number;
    return gw_attach_step_of(message->bytes) != GW_ATTACH_ACCEPT;
}

/* Who ends before he hears that he was accepted leaves nobody behind who seems to live. */
static void neighbours_farewell__ends_a_session_that_was_accepted_unheard(void **state)
{
    (void)state;
    struct gw_test_attach *net = gw_test_attach_open(seed);
    uint8_t bytes[GW_ATTACH_SIZE];
    struct gw_sock_addr to;
    uint32_t farewells = 0;
    gw_test_attach_start(net, B);
    gw_test_attach_start(net, A);
    net->fate = is_no_acceptance;
    gw_test_attach_dial(net, A, B);
    gw_test_attach_run(net, 0);
    assert_false(gw_neighbours_is_up(net->sides[A].own, 0));
    assert_int_equal(net->sides[B].ups, 1);
    for (uint16_t peer = 0; peer < net->sides[A].cfg.peers_max; peer++)
        if (gw_neighbours_farewell(net->sides[A].own, peer, &to, bytes)) {
            gw_test_attach_send(net, A, B, bytes);
            farewells++;
        }
    gw_test_attach_stop(net, A);
    gw_test_attach_run(net, 0);
    assert_int_equal(farewells, 1);
    assert_int_equal(net->sides[B].downs, 1);
    gw_test_attach_close(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours__no_number_has_two_cookies),
        cmocka_unit_test(neighbours__late_answer_brings_no_other_cookie),
        cmocka_unit_test(neighbours__repeated_answers_keep_no_session),
        cmocka_unit_test(neighbours__replayed_beats_keep_no_session),
        cmocka_unit_test(neighbours__lies_do_not_hold_a_session_up),
        cmocka_unit_test(neighbours__lies_do_not_end_a_dial),
        cmocka_unit_test(neighbours__who_insists_asks_again),
        cmocka_unit_test(neighbours__questions_count_in_order),
        cmocka_unit_test(neighbours__a_dial_waits_for_room),
        cmocka_unit_test(neighbours_farewell__ends_a_session_that_was_accepted_unheard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
