/*
 * Sessions of ranks with a home: one that finds its rank taken tries again, and a process that is
 * two hosts attaches once for each.
 */
#include "support.h"

#include "attach_net.h"
#include "core/job.h"

enum {
    RANK,
    HOME,
};

static const uint64_t seed = 2026;

static struct gw_test_attach *open_session(void)
{
    struct gw_test_attach *net = gw_test_attach_open(seed);
    gw_test_attach_start(net, RANK);
    gw_test_attach_start(net, HOME);
    gw_test_attach_dial(net, RANK, HOME);
    gw_test_attach_run(net, 0);
    assert_int_equal(net->sides[RANK].ups, 1);
    return net;
}

/* Perhaps it is another's for no longer; why is known meanwhile. */
static void neighbours_dial__tries_again_when_its_rank_is_taken(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_session();
    uint8_t bytes[GW_ATTACH_SIZE];
    const struct gw_neighbours *own = net->sides[RANK].own;
    assert_int_equal(gw_neighbours_dial_refusal(own, 0), GW_ATTACH_OK);
    gw_test_attach_refuse(net, HOME, net->sides[HOME].last.peer, GW_ATTACH_RANK, bytes);
    gw_test_attach_send(net, HOME, RANK, bytes);
    gw_test_attach_run(net, 0);
    assert_int_equal(gw_neighbours_dial_refusal(own, 0), GW_ATTACH_RANK);
    assert_int_equal(net->sides[RANK].last.kind, GW_NEIGHBOUR_DOWN);
    assert_int_equal(net->sides[RANK].last.said.reason, GW_ATTACH_RANK);
    gw_test_attach_run(net, GW_S);
    assert_int_equal(gw_neighbours_dial_refusal(own, 0), GW_ATTACH_OK);
    assert_int_equal(net->sides[RANK].ups, 2);
    assert_int_equal(net->sides[RANK].refusals, 0); /* which would be for good */
    assert_true(gw_neighbours_is_up(own, 0));
    gw_test_attach_close(net);
}

/* Lets time pass, while the home refuses whoever comes. */
static void run_refusing(struct gw_test_attach *net, enum gw_attach_reason reason, gw_time duration)
{
    uint8_t bytes[GW_ATTACH_SIZE];
    for (gw_time until = net->now + duration; gw_time_before(net->now, until);) {
        uint16_t peer = net->sides[HOME].last_up.peer;
        if (net->sides[HOME].is_up[peer]) {
            gw_test_attach_refuse(net, HOME, peer, reason, bytes);
            gw_test_attach_send(net, HOME, RANK, bytes);
        }
        gw_test_attach_run(net, 10 * GW_MS);
    }
}

/* Who is dead would have been given up by then. */
static void neighbours_dial__asks_until_the_dead_are_given_up(void **state)
{
    (void)state;
    static const enum gw_attach_reason reasons[] = {GW_ATTACH_RANK, GW_ATTACH_WORLD};
    for (size_t i = 0; i < GW_COUNT_OF(reasons); i++) {
        struct gw_test_attach *net = open_session();
        run_refusing(net, reasons[i], GW_TEST_SILENCE + 900 * GW_MS);
        assert_int_equal(net->sides[RANK].refusals, 0);
        assert_int_equal(gw_neighbours_dial_refusal(net->sides[RANK].own, 0), reasons[i]);
        gw_test_attach_run(net, GW_S); /* there they have been */
        assert_true(gw_neighbours_is_up(net->sides[RANK].own, 0));
        run_refusing(net, reasons[i], GW_TEST_SILENCE + 900 * GW_MS);
        assert_int_equal(net->sides[RANK].refusals, 0);
        run_refusing(net, reasons[i], 400 * GW_MS); /* there they live */
        assert_int_equal(net->sides[RANK].refusals, 1);
        assert_int_equal(net->sides[RANK].last.said.reason, reasons[i]);
        uint32_t sent = net->sent;
        gw_test_attach_run(net, 10 * GW_S);
        assert_int_equal(net->sent, sent);
        gw_test_attach_close(net);
    }
}

/* It also says which of them comes for the table of ranks. */
static void neighbours_dial__says_which_host_it_is(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_session();
    const struct gw_greeting other = {
        .job = gw_test_attach_job(net, RANK), .address = 4711, .wants_table = true};
    struct gw_neighbours *own = net->sides[RANK].own;
    assert_int_equal(net->sides[HOME].last.said.address, net->sides[RANK].cfg.address);
    assert_false(net->sides[HOME].last.said.flags & GW_ATTACH_TABLE);
    int dial = gw_neighbours_dial(own, &net->sides[HOME].addr, "home", &other, net->now);
    gw_test_attach_run(net, GW_S);
    assert_true(gw_neighbours_is_up(own, 0) && gw_neighbours_is_up(own, dial));
    assert_int_equal(net->sides[HOME].last.said.address, 4711);
    assert_true(net->sides[HOME].last.said.flags & GW_ATTACH_TABLE);
    assert_int_equal(gw_neighbours_dial_address(own, dial), 4711);
    assert_int_equal(gw_neighbours_dial_address(own, 0), net->sides[RANK].cfg.address);
    gw_test_attach_close(net);
}

/* It counts for the session that follows one that had been accepted. */
static void neighbours_greet__says_it_in_the_next_session(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_session();
    const struct gw_attach_msg *said = &net->sides[HOME].last.said;
    const struct gw_greeting now = {.job = gw_test_attach_job(net, RANK),
                                    .wants_table = true,
                                    .was_seated = true,
                                    .table = 4711};
    const uint8_t told = GW_ATTACH_TABLE | GW_ATTACH_AGAIN;
    uint8_t bytes[GW_ATTACH_SIZE];
    assert_false(said->flags & told);
    gw_neighbours_greet(net->sides[RANK].own, 0, &now);
    gw_test_attach_run(net, GW_S);
    assert_false(said->flags & told);
    gw_test_attach_refuse(net, HOME, net->sides[HOME].last.peer, GW_ATTACH_ENDED, bytes);
    gw_test_attach_send(net, HOME, RANK, bytes);
    gw_test_attach_run(net, 0);
    assert_int_equal(net->sides[RANK].last.kind, GW_NEIGHBOUR_DOWN);
    assert_int_equal(net->sides[RANK].last.said.reason, GW_ATTACH_OK);
    gw_test_attach_run(net, GW_S);
    assert_int_equal(said->flags & told, told);
    assert_int_equal(said->table, 4711);
    gw_test_attach_close(net);
}

/* A job is its key and its name: who has another key that is listed does not say its number, nor
 * that of any part of it, and has a session with that of his own. */
static void neighbours_asked__a_job_is_of_the_askers_key(void **state)
{
    (void)state;
    struct gw_test_attach *net = gw_test_attach_open(seed);
    struct gw_test_side *hostile = &net->sides[RANK], *home = &net->sides[HOME];
    uint32_t job = gw_test_attach_job(net, RANK);
    gw_key_from_text("tenant", 6, &hostile->keys[0]);
    home->keys[1] = hostile->keys[0];
    home->cfg.key_count = 2;
    gw_test_attach_start(net, RANK);
    gw_test_attach_start(net, HOME);
    for (uint32_t i = 0; i < 2 * GW_JOB_SHARDS_MAX; i++) {
        uint32_t number = gw_job_shard(job, i / 2);
        struct gw_greeting claim = {.job = i % 2 ? gw_job_shard_direct(number) : number};
        int dial = gw_neighbours_dial(hostile->own, &home->addr, "home", &claim, net->now);
        gw_test_attach_run(net, 0);
        assert_false(gw_neighbours_is_up(hostile->own, dial));
        assert_int_equal(hostile->refusals, i + 1);
        assert_int_equal(hostile->last.said.reason, GW_ATTACH_FOREIGN);
    }
    assert_int_equal(home->ups, 0);
    int dial = gw_test_attach_dial(net, RANK, HOME);
    gw_test_attach_run(net, 0);
    assert_true(gw_neighbours_is_up(hostile->own, dial));
    gw_test_attach_close(net);
}

/* Of two keys the holders of one come first, and are as many as they like: they get what is for
 * anybody, and their own share. */
static void neighbours_asked__each_key_has_its_share_of_sessions(void **state)
{
    enum { GREEDY = 2, PLACES = 6, SHARE = PLACES / 4 };
    (void)state;
    struct gw_test_attach *net = gw_test_attach_open(seed);
    struct gw_test_side *home = &net->sides[HOME];
    home->cfg.peers_max = PLACES;
    home->cfg.key_count = 2;
    gw_key_from_text("tenant", 6, &home->keys[1]);
    gw_test_attach_start(net, HOME);
    for (int side = GREEDY; side < GREEDY + PLACES; side++) {
        net->sides[side].keys[0] = home->keys[1];
        gw_test_attach_start(net, side);
        gw_test_attach_dial(net, side, HOME);
        gw_test_attach_run(net, 0);
        assert_int_equal(net->sides[side].ups, side < GREEDY + PLACES - SHARE);
    }
    assert_int_equal(gw_neighbours_dial_refusal(net->sides[GREEDY + PLACES - SHARE].own, 0),
                     GW_ATTACH_ROOM);
    gw_test_attach_start(net, RANK);
    gw_test_attach_dial(net, RANK, HOME);
    gw_test_attach_run(net, 0);
    assert_int_equal(net->sides[RANK].ups, 1);
    for (uint32_t who = 0; who < 2; who++) {
        struct gw_tenant_use use = {.sessions = 0};
        gw_neighbours_use(home->own, who, &use);
        assert_int_equal(use.sessions, who ? PLACES - SHARE : SHARE);
        assert_int_equal(use.sessions_refused > 0, who);
    }
    gw_test_attach_close(net);
}

/* The last question that the rank has asked. */
static struct gw_attach_msg last_question(const struct gw_test_attach *net)
{
    struct gw_attach_msg msg, last = {.step = GW_ATTACH_ASK};
    for (uint32_t i = 0; i < net->sent; i++) {
        const struct gw_test_message *message = &net->messages[i];
        if (message->from == RANK && gw_attach_decode(message->bytes, GW_ATTACH_SIZE, &msg) == 0 &&
            msg.step == GW_ATTACH_ASK)
            last = msg;
    }
    return last;
}

/* A tenant asks in the rank's name, who sees the proof that it takes. */
static void ask_as_tenant(struct gw_test_attach *net, struct gw_attach_msg msg)
{
    const struct gw_test_side *home = &net->sides[HOME];
    uint8_t bytes[GW_ATTACH_SIZE], answer[GW_ATTACH_SIZE];
    struct gw_attach_msg answered = {.step = GW_ATTACH_CHALLENGE};
    msg.job = 0;
    msg.key_id = home->keys[1].id;
    for (int i = 0; i < 2 && answered.step == GW_ATTACH_CHALLENGE; i++) {
        gw_attach_encode(&msg, bytes);
        gw_key_sign(&home->keys[1], bytes);
        if (!gw_neighbours_input(home->own, &net->sides[RANK].addr, bytes, GW_ATTACH_SIZE, answer,
                                 net->now))
            break;
        assert_int_equal(gw_attach_decode(answer, GW_ATTACH_SIZE, &answered), 0);
        memcpy(msg.proof, answered.proof, sizeof(msg.proof));
    }
}

/* Who sees the links, can send as anybody and has another listed key: he begins sessions of his own
 * where others send from, not with their addresses, and does nothing to theirs. */
static void neighbours_asked__a_session_is_of_its_key(void **state)
{
    (void)state;
    for (int attack = 0; attack < 4; attack++) {
        struct gw_test_attach *net = gw_test_attach_open(seed);
        gw_key_from_text("tenant", 6, &net->sides[HOME].keys[1]);
        net->sides[HOME].cfg.key_count = 2;
        gw_test_attach_start(net, RANK);
        gw_test_attach_start(net, HOME);
        gw_test_attach_dial(net, RANK, HOME);
        gw_test_attach_run(net, GW_S);
        struct gw_attach_msg msg = last_question(net);
        assert_int_not_equal(msg.told_cookie, 0);
        msg.number += 1000; /* those of the rank would be stale */
        if (attack == 1)
            msg.told_cookie ^= 1; /* its session would be over */
        if (attack >= 2) {        /* another life of its process */
            msg.session[0] ^= 1;
            msg.told_cookie = 0;
            msg.life++;
        }
        if (attack == 3)
            msg.address ^= 0x100;
        uint32_t ups = net->sides[HOME].ups;
        ask_as_tenant(net, msg);
        gw_test_attach_run(net, 0);
        assert_int_equal(net->sides[HOME].ups - ups, attack == 3);
        gw_test_attach_run(net, GW_TEST_SILENCE + GW_TEST_BEAT);
        assert_true(gw_neighbours_is_up(net->sides[RANK].own, 0));
        assert_int_equal(net->sides[RANK].ups, 1);
        assert_int_equal(net->sides[HOME].downs, attack == 3); /* his own */
        gw_test_attach_close(net);
    }
}

static bool lose_answers(void *context, uint32_t number, struct gw_test_message *message)
{
    const bool *loses = context;
    (void)number;
    return !*loses || message->from != HOME;
}

/* Who has had no answer for too long begins another session. The one that he has given up ends at
 * once: its address is not another's. */
static void neighbours_asked__a_session_follows_one_that_was_given_up(void **state)
{
    (void)state;
    struct gw_test_attach *net = gw_test_attach_open(seed);
    bool loses = false;
    net->fate = lose_answers;
    net->context = &loses;
    gw_test_attach_start(net, RANK);
    gw_test_attach_start(net, HOME);
    gw_test_attach_dial(net, RANK, HOME);
    gw_test_attach_run(net, GW_S);
    uint16_t first = net->sides[HOME].last_up.peer;
    loses = true;
    gw_test_attach_run(net, GW_TEST_SILENCE + GW_TEST_BEAT);
    assert_false(gw_neighbours_is_up(net->sides[RANK].own, 0));
    loses = false;
    gw_test_attach_run(net, GW_TEST_BEAT);
    assert_true(gw_neighbours_is_up(net->sides[RANK].own, 0));
    assert_int_equal(net->sides[HOME].ups, 2);
    assert_int_equal(net->sides[HOME].downs, 1);
    assert_false(net->sides[HOME].is_up[first]);
    gw_test_attach_close(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_asked__a_session_is_of_its_key),
        cmocka_unit_test(neighbours_asked__a_session_follows_one_that_was_given_up),
        cmocka_unit_test(neighbours_dial__tries_again_when_its_rank_is_taken),
        cmocka_unit_test(neighbours_dial__asks_until_the_dead_are_given_up),
        cmocka_unit_test(neighbours_dial__says_which_host_it_is),
        cmocka_unit_test(neighbours_greet__says_it_in_the_next_session),
        cmocka_unit_test(neighbours_asked__a_job_is_of_the_askers_key),
        cmocka_unit_test(neighbours_asked__each_key_has_its_share_of_sessions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
