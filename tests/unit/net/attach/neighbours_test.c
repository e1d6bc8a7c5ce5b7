/*
 * Sessions with neighbours: they come up whatever is lost, both ends agree on them, they end when
 * one end does, and nothing that is forged or recorded moves them.
 */
#include "support.h"

#include "attach_net.h"
#include "base/prng.h"
#include "wire/wire.h"

enum {
    A, /* the initiator */
    B, /* the responder */
    C,
    VERSION_AT = 2, /* byte of a message */
};

static const uint64_t seed = 2026;

static struct gw_test_attach *open_pair(void)
{
    struct gw_test_attach *net = gw_test_attach_open(seed);
    gw_test_attach_start(net, A);
    gw_test_attach_start(net, B);
    gw_test_attach_dial(net, A, B);
    return net;
}

static struct gw_test_attach *open_session(void)
{
    struct gw_test_attach *net = open_pair();
    gw_test_attach_run(net, 0);
    assert_int_equal(net->sides[A].ups, 1);
    assert_int_equal(net->sides[B].ups, 1);
    return net;
}

static void set_key(struct gw_test_side *side, const char *text)
{
    gw_key_from_text(text, strlen(text), &side->keys[0]);
}

/* Both ends send with the cookie that the other one expects. */
static void assert_agreed(const struct gw_test_attach *net, int from, int to)
{
    const struct gw_test_side *a = &net->sides[from], *b = &net->sides[to];
    assert_true(a->last_up.said.cookie == gw_neighbours_cookie(b->own, b->last_up.peer));
    assert_true(b->last_up.said.cookie == gw_neighbours_cookie(a->own, a->last_up.peer));
}

static void assert_events(const struct gw_test_side *side, uint32_t ups, uint32_t downs,
                          uint32_t refusals)
{
    assert_int_equal(side->ups, ups);
    assert_int_equal(side->downs, downs);
    assert_int_equal(side->refusals, refusals);
}

static void neighbours_dial__makes_a_session_in_two_rounds(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_session();
    const struct gw_neighbour_event *a = &net->sides[A].last, *b = &net->sides[B].last;
    static const uint8_t steps[] = {GW_ATTACH_ASK, GW_ATTACH_CHALLENGE, GW_ATTACH_ASK,
                                    GW_ATTACH_ACCEPT};
    assert_int_equal(net->sent, GW_COUNT_OF(steps));
    for (size_t i = 0; i < GW_COUNT_OF(steps); i++)
        assert_int_equal(gw_attach_step_of(net->messages[i].bytes), steps[i]);
    assert_agreed(net, A, B);
    assert_int_equal(a->dial, 0);
    assert_true(a->said.address == 101 && a->said.entropies == 2 && a->said.mtu == 1408);
    assert_int_equal(gw_sock_addr_port(&a->addr), gw_sock_addr_port(&net->sides[B].addr));
    assert_int_equal(b->dial, -1);
    assert_true(b->said.address == 100 && b->said.entropies == 1);
    assert_int_equal(b->said.job, gw_test_attach_job(net, A));
    assert_true(b->said.world == 4 && b->said.rank == 3);
    assert_int_equal(b->said.notice, 17);
    assert_int_equal(b->said.flags, GW_ATTACH_DIRECT);
    assert_int_equal(gw_sock_addr_port(&b->addr), gw_sock_addr_port(&net->sides[A].addr));
    assert_int_equal((uint16_t)gw_neighbours_cookie(net->sides[B].own, b->peer), b->peer);
    assert_true(gw_neighbours_is_up(net->sides[A].own, 0));
    gw_test_attach_close(net);
}

struct loss {
    uint32_t from, to; /* numbers of messages that are lost */
};

static bool lose(void *context, uint32_t number, struct gw_test_message *message)
{
    const struct loss *loss = context;
    (void)message;
    return number < loss->from || number >= loss->to;
}

/* Any one message, and any burst of up to twelve: it takes a few fast repetitions, not more. */
static void neighbours_dial__survives_losses(void **state)
{
    (void)state;
    for (uint32_t from = 0; from < 4; from++)
        for (uint32_t count = 1; count <= 12; count++) {
            struct loss loss = {from, from + count};
            struct gw_test_attach *net = open_pair();
            net->fate = lose;
            net->context = &loss;
            gw_test_attach_run(net, count <= 4 ? 100 * GW_MS : GW_S);
            assert_events(&net->sides[A], 1, 0, 0);
            assert_events(&net->sides[B], 1, 0, 0);
            assert_agreed(net, A, B);
            gw_test_attach_close(net);
        }
}

/* Ten minutes, over many changes of the proof: no event, and no more traffic than beats and rounds.
 */
static void neighbours__stay_for_as_long_as_they_beat(void **state)
{
    (void)state;
    const uint32_t minutes = 10, beats_per_minute = 60 * 5;
    struct gw_test_attach *net = open_session();
    for (uint32_t i = 0; i < minutes; i++) {
        uint32_t before = net->sent;
        gw_test_attach_run(net, 60 * GW_S);
        assert_in_range(net->sent - before, 2 * beats_per_minute - 4, 2 * beats_per_minute + 12);
    }
    assert_events(&net->sides[A], 1, 0, 0);
    assert_events(&net->sides[B], 1, 0, 0);
    gw_test_attach_close(net);
}

static void neighbours__responder_restarts(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_session();
    uint64_t cookie = net->sides[A].last_up.said.cookie;
    gw_test_attach_run(net, GW_S);
    gw_test_attach_start(net, B);
    gw_test_attach_run(net, 2 * GW_TEST_BEAT);
    assert_events(&net->sides[A], 2, 1, 0); /* its session is forgotten, and it begins another */
    assert_events(&net->sides[B], 2, 0, 0);
    assert_true(net->sides[A].last_up.said.cookie != cookie);
    assert_agreed(net, A, B);
    /* A late ACCEPT of the first life changes nothing. */
    uint32_t sent = net->sent;
    for (uint32_t i = 0; i < sent; i++)
        if (gw_attach_step_of(net->messages[i].bytes) == GW_ATTACH_ACCEPT)
            gw_test_attach_send(net, B, A, net->messages[i].bytes);
    gw_test_attach_run(net, 0);
    assert_events(&net->sides[A], 2, 1, 0);
    assert_agreed(net, A, B);
    /* Nor does all that it has said. */
    for (uint32_t i = 0; i < sent; i++)
        if (net->messages[i].from == B)
            gw_test_attach_send(net, B, A, net->messages[i].bytes);
    gw_test_attach_run(net, GW_TEST_BEAT);
    assert_agreed(net, A, B);
    assert_events(&net->sides[A], 2, 1, 0);
    assert_events(&net->sides[B], 2, 0, 0);
    gw_test_attach_close(net);
}

static void neighbours__initiator_restarts(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_session();
    gw_test_attach_start(net, A);
    gw_test_attach_dial(net, A, B);
    gw_test_attach_run(net, 0);
    assert_events(&net->sides[B], 2, 1, 0); /* the session of the life before has ended */
    assert_agreed(net, A, B);
    gw_test_attach_run(net, 2 * GW_TEST_SILENCE);
    assert_events(&net->sides[A], 2, 0, 0);
    assert_events(&net->sides[B], 2, 1, 0);
    assert_agreed(net, A, B);
    gw_test_attach_close(net);
}

static void neighbours__silence_ends_a_session(void **state)
{
    (void)state;
    for (int gone = A; gone <= B; gone++) {
        struct gw_test_attach *net = open_session();
        int left = A + B - gone;
        gw_test_attach_stop(net, gone);
        gw_test_attach_run(net, GW_TEST_SILENCE - GW_MS);
        assert_events(&net->sides[left], 1, 0, 0);
        gw_test_attach_run(net, GW_TEST_SILENCE / 2);
        assert_events(&net->sides[left], 1, 1, 0);
        gw_test_attach_start(net, gone);
        if (gone == A)
            gw_test_attach_dial(net, A, B);
        gw_test_attach_run(net, GW_TEST_BEAT); /* who is silent is still dialled */
        assert_events(&net->sides[left], 2, 1, 0);
        assert_agreed(net, A, B);
        gw_test_attach_close(net);
    }
}

static void neighbours_farewell__ends_a_session_at_once(void **state)
{
    (void)state;
    for (int leaver = A; leaver <= B; leaver++) {
        struct gw_test_attach *net = open_session();
        struct gw_test_side *side = &net->sides[leaver];
        uint8_t bytes[GW_ATTACH_SIZE];
        struct gw_sock_addr to;
        assert_false(gw_neighbours_farewell(side->own, side->last.peer + 1, &to, bytes));
        assert_false(gw_neighbours_farewell(side->own, UINT16_MAX, &to, bytes));
        assert_true(gw_neighbours_farewell(side->own, side->last.peer, &to, bytes));
        assert_int_equal(gw_sock_addr_port(&to),
                         gw_sock_addr_port(&net->sides[A + B - leaver].addr));
        gw_test_attach_stop(net, leaver);
        gw_test_attach_send(net, leaver, A + B - leaver, bytes);
        gw_test_attach_run(net, 0);
        assert_events(&net->sides[A + B - leaver], 1, 1, 0);
        if (leaver == B)
            assert_false(gw_neighbours_is_up(net->sides[A].own, 0));
        gw_test_attach_close(net);
    }
}

/* Ends the session of a pair in the named way; afterwards A is not running. */
static void end_session(struct gw_test_attach *net, const char *way)
{
    uint8_t bytes[GW_ATTACH_SIZE];
    struct gw_sock_addr to;
    if (strcmp(way, "farewell") == 0) {
        assert_true(
            gw_neighbours_farewell(net->sides[A].own, net->sides[A].last_up.peer, &to, bytes));
        gw_test_attach_send(net, A, B, bytes);
    } else if (strcmp(way, "refusal") == 0) {
        gw_test_attach_refuse(net, B, net->sides[B].last_up.peer, GW_ATTACH_JOB, bytes);
        gw_test_attach_send(net, B, A, bytes);
        gw_test_attach_run(net, 0);
        assert_int_equal(net->sides[A].refusals, 1);
        assert_int_equal(net->sides[A].last.said.reason, GW_ATTACH_JOB);
    }
    gw_test_attach_stop(net, A);
    gw_test_attach_run(net, 2 * GW_TEST_SILENCE);
    assert_int_equal(net->sides[B].downs, strcmp(way, "refusal") != 0);
}

/*
 * All that was ever said in a session is said again, by one who can send as anybody and receives
 * nothing: at any time after the end nothing comes of it, also when there is a new session.
 */
static void neighbours__ended_session_cannot_be_replayed(void **state)
{
    (void)state;
    static const char *const ways[] = {"farewell", "refusal", "silence"};
    static const gw_time waits[] = {0, 1 * GW_S, 29 * GW_S, 30 * GW_S, 61 * GW_S, 600 * GW_S};
    for (size_t i = 0; i < GW_COUNT_OF(ways) * GW_COUNT_OF(waits) * 2; i++) {
        struct gw_test_attach *net = open_session();
        gw_test_attach_run(net, 45 * GW_S); /* with more than one proof */
        end_session(net, ways[i % GW_COUNT_OF(ways)]);
        uint32_t recorded = net->sent;
        if (i % 2) {
            gw_test_attach_start(net, A);
            gw_test_attach_dial(net, A, B);
        }
        gw_test_attach_run(net, waits[i / 2 % GW_COUNT_OF(waits)]);
        uint32_t events = gw_test_attach_events(net);
        for (uint32_t m = 0; m < recorded; m++)
            gw_test_attach_send(net, net->messages[m].from, net->messages[m].to,
                                net->messages[m].bytes);
        gw_test_attach_run(net, GW_TEST_SILENCE);
        assert_int_equal(gw_test_attach_events(net), events);
        if (i % 2)
            assert_agreed(net, A, B);
        gw_test_attach_close(net);
    }
}

/* Room of ended sessions is used again, and still they do not come back. */
static void neighbours__full_of_ended_sessions(void **state)
{
    (void)state;
    struct gw_test_attach *net = gw_test_attach_open(seed);
    uint8_t bytes[GW_ATTACH_SIZE];
    struct gw_sock_addr to;
    net->sides[B].cfg.peers_max = 2;
    gw_test_attach_start(net, B);
    gw_test_attach_start(net, C);
    gw_test_attach_dial(net, C, B);
    gw_test_attach_run(net, 0);
    for (uint32_t life = 1; life < 20; life++) {
        gw_test_attach_start(net, A);
        gw_test_attach_dial(net, A, B);
        gw_test_attach_run(net, GW_TEST_BEAT);
        assert_events(&net->sides[A], life, 0, 0);
        assert_true(
            gw_neighbours_farewell(net->sides[A].own, net->sides[A].last_up.peer, &to, bytes));
        gw_test_attach_send(net, A, B, bytes);
        gw_test_attach_stop(net, A);
        gw_test_attach_run(net, 0);
        assert_events(&net->sides[B], 1 + life, life, 0);
    }
    for (uint32_t m = 0, sent = net->sent; m < sent; m++)
        if (net->messages[m].from == A)
            gw_test_attach_send(net, A, B, net->messages[m].bytes);
    gw_test_attach_run(net, GW_TEST_SILENCE);
    assert_events(&net->sides[B], 20, 19, 0);
    assert_events(&net->sides[C], 1, 0, 0);
    gw_test_attach_close(net);
}

/* An ended session keeps its place until the caller knows: meanwhile who comes has to wait. */
static void neighbours__ended_sessions_wait_for_the_caller(void **state)
{
    (void)state;
    struct gw_test_attach *net = gw_test_attach_open(seed);
    uint8_t bytes[GW_ATTACH_SIZE];
    struct gw_sock_addr to;
    net->sides[B].cfg.peers_max = 1;
    for (int side = A; side <= C; side++)
        gw_test_attach_start(net, side);
    gw_test_attach_dial(net, A, B);
    gw_test_attach_run(net, 0);
    net->sides[B].is_deaf = true;
    assert_true(gw_neighbours_farewell(net->sides[A].own, net->sides[A].last.peer, &to, bytes));
    gw_test_attach_send(net, A, B, bytes);
    gw_test_attach_stop(net, A);
    gw_test_attach_dial(net, C, B);
    gw_test_attach_run(net, 10 * GW_MS);
    assert_events(&net->sides[C], 0, 0, 0);
    net->sides[B].is_deaf = false;
    gw_test_attach_run(net, GW_TEST_BEAT);
    assert_events(&net->sides[B], 2, 1, 0);
    assert_events(&net->sides[C], 1, 0, 0);
    gw_test_attach_close(net);
}

/* Our refusal is lost; then the next sign of life is answered by it, and another session begins. */
static void neighbours_refuse__may_be_lost(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_session();
    uint8_t bytes[GW_ATTACH_SIZE];
    gw_test_attach_refuse(net, B, net->sides[B].last.peer, GW_ATTACH_JOB, bytes);
    gw_test_attach_run(net, 2 * GW_TEST_BEAT);
    assert_events(&net->sides[A], 2, 1, 0);
    assert_events(&net->sides[B], 2, 0, 0);
    assert_agreed(net, A, B);
    gw_test_attach_close(net);
}

struct flip {
    uint32_t number; /* of the message */
    uint32_t bit;
};

static bool flip_bit(void *context, uint32_t number, struct gw_test_message *message)
{
    const struct flip *flip = context;
    if (number == flip->number)
        message->bytes[flip->bit / 8] ^= (uint8_t)(1u << flip->bit % 8);
    return true;
}

/* Each bit of each message: it is as if the message were lost. */
static void neighbours__a_flipped_bit_is_a_loss(void **state)
{
    (void)state;
    for (uint32_t number = 0; number < 4; number++)
        for (uint32_t bit = 0; bit < 8 * GW_ATTACH_SIZE; bit++) {
            struct flip flip = {number, bit};
            struct gw_test_attach *net = open_pair();
            net->fate = flip_bit;
            net->context = &flip;
            gw_test_attach_run(net, 100 * GW_MS);
            assert_events(&net->sides[A], 1, 0, 0);
            assert_events(&net->sides[B], 1, 0, 0);
            assert_agreed(net, A, B);
            assert_int_equal(net->sides[A].last_up.said.address, 101);
            assert_int_equal(net->sides[B].last_up.said.job, gw_test_attach_job(net, A));
            gw_test_attach_close(net);
        }
}

/* What ends a session must be genuine, too: the farewell, and a refusal of one that is up. */
static void neighbours__a_flipped_ending_ends_nothing(void **state)
{
    (void)state;
    for (uint32_t bit = 0; bit < 3 * 8 * GW_ATTACH_SIZE; bit++) {
        struct gw_test_attach *net = open_session();
        uint8_t bytes[GW_ATTACH_SIZE];
        struct gw_sock_addr to;
        int kind = (int)(bit / (8 * GW_ATTACH_SIZE));
        uint32_t at = bit % (8 * GW_ATTACH_SIZE);
        if (kind == 2)
            gw_test_attach_refuse(net, B, net->sides[B].last.peer, GW_ATTACH_JOB, bytes);
        else
            assert_true(gw_neighbours_farewell(net->sides[kind].own, net->sides[kind].last.peer,
                                               &to, bytes));
        bytes[at / 8] ^= (uint8_t)(1u << at % 8);
        gw_test_attach_send(net, kind == 0 ? A : B, kind == 0 ? B : A, bytes);
        gw_test_attach_run(net, 0);
        assert_int_equal(gw_test_attach_events(net), 2);
        gw_test_attach_close(net);
    }
}

/* An observer who knows the session, but no key, invents refusals. */
static void neighbours__unsigned_refusal_ends_nothing(void **state)
{
    (void)state;
    for (uint8_t reason = 1; reason < GW_ATTACH_REASONS; reason++) {
        struct gw_test_attach *net = open_session();
        struct gw_attach_msg msg;
        uint8_t bytes[GW_ATTACH_SIZE];
        assert_int_equal(gw_attach_decode(net->messages[2].bytes, GW_ATTACH_SIZE, &msg), 0);
        msg.step = GW_ATTACH_REFUSE;
        msg.reason = reason;
        gw_attach_encode(&msg, bytes);
        gw_test_attach_send(net, B, A, bytes);
        bytes[VERSION_AT] ^= 0x30;
        gw_test_attach_send(net, B, A, bytes);
        gw_test_attach_run(net, GW_S);
        assert_int_equal(gw_test_attach_events(net), 2);
        gw_test_attach_close(net);
    }
}

static void neighbours__key_is_not_known(void **state)
{
    (void)state;
    struct gw_test_attach *net = gw_test_attach_open(seed);
    set_key(&net->sides[A], "another");
    gw_test_attach_start(net, A);
    gw_test_attach_start(net, B);
    gw_test_attach_dial(net, A, B);
    gw_test_attach_run(net, 10 * GW_S - GW_MS);
    assert_int_equal(gw_test_attach_events(net), 0);
    assert_int_equal(gw_neighbours_dial_refusal(net->sides[A].own, 0), GW_ATTACH_KEY);
    assert_int_equal(net->sent, 20); /* it is asked once in a second */
    assert_int_equal(gw_neighbours_stats(net->sides[B].own)->refused, 10);
    gw_test_attach_close(net);
}

/* The name of the key is right, the key is not, on either side. */
static void neighbours__key_is_wrong(void **state)
{
    (void)state;
    struct gw_test_attach *net = gw_test_attach_open(seed);
    net->sides[A].keys[0].attach[0] ^= 1;
    gw_test_attach_start(net, A);
    gw_test_attach_start(net, B);
    gw_test_attach_dial(net, A, B);
    gw_test_attach_run(net, 10 * GW_S);
    assert_int_equal(gw_test_attach_events(net), 0);
    assert_true(gw_neighbours_stats(net->sides[B].own)->forged > 10);
    gw_test_attach_close(net);
}

static void neighbours__key_is_one_of_many(void **state)
{
    (void)state;
    struct gw_test_attach *net = gw_test_attach_open(seed);
    gw_key_from_text("", 0, &net->sides[B].keys[1]);
    net->sides[B].cfg.key_count = 2;
    set_key(&net->sides[C], "");
    for (int side = A; side <= C; side++)
        gw_test_attach_start(net, side);
    gw_test_attach_dial(net, A, B);
    gw_test_attach_dial(net, C, B);
    gw_test_attach_run(net, GW_S);
    assert_events(&net->sides[A], 1, 0, 0);
    assert_events(&net->sides[B], 2, 0, 0);
    assert_events(&net->sides[C], 1, 0, 0);
    gw_test_attach_close(net);
}

/* A neighbour that comes back without our key is silent, and then refuses, as anybody can. */
static void neighbours__key_is_lost(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_session();
    set_key(&net->sides[B], "another");
    gw_test_attach_start(net, B);
    gw_test_attach_run(net, GW_TEST_SILENCE / 2);
    assert_events(&net->sides[A], 1, 0, 0);
    gw_test_attach_run(net, GW_TEST_SILENCE);
    assert_events(&net->sides[A], 1, 1, 0);
    assert_int_equal(gw_neighbours_dial_refusal(net->sides[A].own, 0), GW_ATTACH_KEY);
    gw_test_attach_close(net);
}

static bool other_version(void *context, uint32_t number, struct gw_test_message *message)
{
    (void)number;
    if (message->from == *(int *)context)
        message->bytes[VERSION_AT] = (GW_WIRE_VERSION + 1) << 4 | GW_ATTACH_KIND;
    return true;
}

/* Messages of another version have another length: the answer is as long as the question, so that
 * they know it, but never longer. */
static void neighbours__answer_another_version_at_its_length(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_session();
    for (uint32_t length = GW_ATTACH_SIZE_MIN; length <= GW_ATTACH_SIZE_MAX; length++) {
        uint8_t asked[GW_ATTACH_SIZE_MAX] = {0}, answer[GW_ATTACH_SIZE];
        memcpy(asked, net->messages[0].bytes, GW_ATTACH_SIZE_MIN);
        asked[VERSION_AT] = (GW_WIRE_VERSION + 1) << 4 | GW_ATTACH_KIND;
        uint32_t size = gw_neighbours_input(net->sides[B].own, &net->sides[A].addr, asked, length,
                                            answer, net->now);
        assert_int_equal(size, length < GW_ATTACH_SIZE ? length : GW_ATTACH_SIZE);
        assert_int_equal(gw_attach_step_of(answer), GW_ATTACH_REFUSE);
    }
    gw_test_attach_close(net);
}

/* The initiator is of the next version: the answer is of ours, and names both. */
static void neighbours__initiator_of_another_version(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_pair();
    int from = A;
    net->fate = other_version;
    net->context = &from;
    gw_test_attach_run(net, 0);
    struct gw_attach_msg msg;
    const uint8_t *answer = net->messages[1].bytes;
    uint8_t session[GW_ATTACH_NONCE_SIZE];
    gw_attach_session_of(net->messages[0].bytes, session);
    assert_int_equal(gw_attach_version(answer), GW_WIRE_VERSION);
    assert_int_equal(gw_attach_decode(answer, GW_ATTACH_SIZE, &msg), 0);
    assert_int_equal(msg.step, GW_ATTACH_REFUSE);
    assert_int_equal(msg.reason, GW_ATTACH_VERSION);
    assert_int_equal(msg.job, GW_WIRE_VERSION + 1);
    assert_memory_equal(msg.session, session, sizeof(session));
    assert_events(&net->sides[B], 0, 0, 0);
    /* As A speaks our version, it does not believe that we refuse that. */
    assert_events(&net->sides[A], 0, 0, 0);
    gw_test_attach_close(net);
}

/* The responder is of the next version. */
static void neighbours__responder_of_another_version(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_pair();
    uint8_t bytes[GW_ATTACH_SIZE] = {0};
    gw_test_attach_stop(net, B);
    gw_test_attach_run(net, 0);
    memcpy(bytes, net->messages[0].bytes, 4 + GW_ATTACH_NONCE_SIZE);
    memset(bytes + 40, 0xff, 20); /* whatever it means there */
    bytes[VERSION_AT] = (GW_WIRE_VERSION + 1) << 4 | GW_ATTACH_KIND;
    bytes[3] = GW_ATTACH_CHALLENGE;
    gw_test_attach_send(net, B, A, bytes);
    gw_test_attach_run(net, 0);
    assert_events(&net->sides[A], 0, 0, 0);
    bytes[3] = GW_ATTACH_REFUSE;
    gw_test_attach_send(net, B, A, bytes);
    gw_test_attach_run(net, 0);
    assert_int_equal(gw_test_attach_events(net), 0);
    assert_int_equal(gw_neighbours_dial_refusal(net->sides[A].own, 0), GW_ATTACH_VERSION);
    gw_test_attach_start(net, B); /* it was somebody else's word, or is of our version again */
    gw_test_attach_run(net, 2 * GW_S);
    assert_events(&net->sides[A], 1, 0, 0);
    assert_int_equal(gw_neighbours_dial_refusal(net->sides[A].own, 0), GW_ATTACH_OK);
    gw_test_attach_close(net);
}

static void neighbours__refuse_for_a_reason(void **state)
{
    (void)state;
    for (uint8_t reason = GW_ATTACH_ROOM; reason < GW_ATTACH_REASONS; reason++) {
        struct gw_test_attach *net = gw_test_attach_open(seed);
        net->sides[B].cfg.peers_max = reason == GW_ATTACH_ROOM ? 1 : 16;
        net->sides[A].cfg.mtu += reason == GW_ATTACH_MTU;
        if (reason == GW_ATTACH_SELF)
            net->sides[A].cfg.address = net->sides[B].cfg.address;
        for (int side = A; side <= C; side++)
            gw_test_attach_start(net, side);
        gw_test_attach_dial(net, C, B);
        gw_test_attach_run(net, 0);
        gw_test_attach_dial(net, A, B);
        gw_test_attach_run(net, GW_S);
        if (reason == GW_ATTACH_ROOM || reason == GW_ATTACH_MTU || reason == GW_ATTACH_SELF) {
            assert_events(&net->sides[A], 0, 0, 1);
            assert_int_equal(net->sides[A].last.said.reason, reason);
        } else {
            assert_events(&net->sides[A], 1, 0, 0);
        }
        assert_events(&net->sides[C], 1, 0, 0);
        assert_string_not_equal(gw_attach_reason_text(reason), gw_attach_reason_text(0));
        gw_test_attach_close(net);
    }
}

/* The port of a shared machine is no proof: who cannot receive there gets nothing stored. */
static void neighbours__nothing_is_stored_without_proof(void **state)
{
    (void)state;
    struct gw_test_attach *net = gw_test_attach_open(seed);
    uint8_t answer[GW_ATTACH_SIZE], bytes[GW_ATTACH_SIZE];
    net->sides[B].cfg.peers_max = 1;
    gw_test_attach_start(net, A);
    gw_test_attach_start(net, B);
    gw_test_attach_dial(net, A, B);
    assert_true(
        gw_neighbours_output(net->sides[A].own, &(struct gw_sock_addr){0}, bytes, net->now));
    for (uint16_t port = 1; port < 1000; port++) {
        struct gw_sock_addr from;
        assert_int_equal(gw_sock_addr_parse("10.9.9.9", port, &from), 0);
        assert_int_equal(
            gw_neighbours_input(net->sides[B].own, &from, bytes, sizeof(bytes), answer, net->now),
            GW_ATTACH_SIZE);
        assert_int_equal(gw_attach_step_of(answer), GW_ATTACH_CHALLENGE);
        /* The proof of one address and port is none of another. */
        memcpy(bytes + 4 + GW_ATTACH_NONCE_SIZE, answer + 4 + GW_ATTACH_NONCE_SIZE,
               GW_ATTACH_NONCE_SIZE);
        gw_key_sign(&net->sides[A].keys[0], bytes);
    }
    assert_events(&net->sides[B], 0, 0, 0);
    gw_test_attach_run(net, GW_TEST_BEAT);
    assert_events(&net->sides[B], 1, 0, 0);
    gw_test_attach_close(net);
}

/* Dialled by its own address, or with its own messages sent back: no session with oneself. */
/* The address may belong to our own earlier life: it is tried until that has ended. */
static void neighbours__a_taken_address_is_tried_again(void **state)
{
    (void)state;
    struct gw_test_attach *net = open_session();
    uint8_t bytes[GW_ATTACH_SIZE];
    gw_test_attach_refuse(net, B, net->sides[B].last.peer, GW_ATTACH_TAKEN, bytes);
    gw_test_attach_send(net, B, A, bytes);
    gw_test_attach_run(net, GW_S);
    assert_events(&net->sides[A], 2, 1, 0);
    assert_agreed(net, A, B);
    gw_test_attach_close(net);
}

static void neighbours__no_session_with_oneself(void **state)
{
    (void)state;
    struct gw_test_attach *net = gw_test_attach_open(seed);
    gw_test_attach_start(net, A);
    gw_test_attach_dial(net, A, A);
    gw_test_attach_run(net, GW_S);
    assert_events(&net->sides[A], 0, 0, 1);
    assert_int_equal(net->sides[A].last.said.reason, GW_ATTACH_SELF);
    gw_test_attach_close(net);
}

static void neighbours__who_accepts_nobody_is_silent(void **state)
{
    (void)state;
    struct gw_test_attach *net = gw_test_attach_open(seed);
    net->sides[B].cfg.accepts = false;
    gw_test_attach_start(net, A);
    gw_test_attach_start(net, B);
    gw_test_attach_dial(net, A, B);
    gw_test_attach_run(net, 10 * GW_S);
    assert_int_equal(gw_test_attach_events(net), 0);
    /* Fast at first, then once per beat. */
    assert_in_range(net->sent, 50, 70);
    gw_test_attach_close(net);
}

static void neighbours_dial__has_a_limit(void **state)
{
    (void)state;
    struct gw_test_attach *net = gw_test_attach_open(seed);
    gw_test_attach_start(net, A);
    for (int i = 0; i < net->sides[A].cfg.peers_max; i++)
        assert_int_equal(gw_test_attach_dial(net, A, B), i);
    assert_true(gw_test_attach_dial(net, A, B) < 0);
    gw_test_attach_run(net, GW_S);
    gw_test_attach_close(net);
}

/* More neighbours come at once than events can wait: all are told in the end. */
static void neighbours__events_are_not_lost(void **state)
{
    (void)state;
    enum { EACH = 64, DIALS = 5 * EACH };
    struct gw_test_attach *net = gw_test_attach_open(seed);
    net->sides[B].cfg.peers_max = 512;
    net->sides[B].is_deaf = true;
    gw_test_attach_start(net, B);
    for (int i = 0; i < DIALS; i++) {
        int from = C + i % 5;
        net->sides[from].cfg.peers_max = EACH;
        if (i < 5)
            gw_test_attach_start(net, from);
        const struct gw_greeting greeting = {
            .job = gw_test_attach_job(net, from), .world = DIALS, .rank = (uint16_t)i};
        assert_int_equal(gw_test_attach_dial(net, from, B), i / 5);
        gw_neighbours_greet(net->sides[from].own, i / 5, &greeting);
    }
    gw_test_attach_run(net, 100 * GW_MS);
    assert_true(gw_neighbours_stats(net->sides[B].own)->no_room > 0);
    net->sides[B].is_deaf = false;
    gw_test_attach_run(net, GW_S);
    assert_events(&net->sides[B], DIALS, 0, 0);
    for (int side = C; side < C + 5; side++)
        assert_events(&net->sides[side], EACH, 0, 0);
    gw_test_attach_close(net);
}

struct storm {
    struct gw_prng prng;
    bool is_over;
};

/* A third is lost. */
static bool storm(void *context, uint32_t number, struct gw_test_message *message)
{
    struct storm *own = context;
    (void)number;
    (void)message;
    return own->is_over || gw_prng_below(&own->prng, 3) != 0;
}

/* Losses, restarts and late copies in any order; when they are over both ends agree again. */
static void neighbours__agree_in_the_end(void **state)
{
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (uint64_t round = 0; round < 300; round++) {
        struct gw_test_attach *net = open_pair();
        struct storm context = {.prng = gw_prng_derive(seed, round)};
        struct gw_prng *prng = &context.prng;
        net->fate = storm;
        net->context = &context;
        for (int i = 0; i < 20; i++) {
            gw_test_attach_run(net, gw_prng_below(prng, 3000) * GW_MS);
            for (int copies = 0; copies < 5; copies++) {
                const struct gw_test_message *old = &net->messages[gw_prng_below(prng, net->sent)];
                gw_test_attach_send(net, old->from, old->to, old->bytes);
            }
            if (gw_prng_below(prng, 8) == 0)
                gw_test_attach_start(net, B);
            if (gw_prng_below(prng, 8) == 0) {
                gw_test_attach_start(net, A);
                gw_test_attach_dial(net, A, B);
            }
        }
        context.is_over = true;
        gw_test_attach_run(net, 3 * GW_TEST_SILENCE);
        assert_true(gw_neighbours_is_up(net->sides[A].own, 0));
        assert_agreed(net, A, B);
        uint32_t events = gw_test_attach_events(net);
        gw_test_attach_run(net, 10 * GW_S);
        assert_int_equal(gw_test_attach_events(net), events);
        gw_test_attach_close(net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_dial__makes_a_session_in_two_rounds),
        cmocka_unit_test(neighbours_dial__survives_losses),
        cmocka_unit_test(neighbours__stay_for_as_long_as_they_beat),
        cmocka_unit_test(neighbours__responder_restarts),
        cmocka_unit_test(neighbours__initiator_restarts),
        cmocka_unit_test(neighbours__silence_ends_a_session),
        cmocka_unit_test(neighbours_farewell__ends_a_session_at_once),
        cmocka_unit_test(neighbours__ended_session_cannot_be_replayed),
        cmocka_unit_test(neighbours__full_of_ended_sessions),
        cmocka_unit_test(neighbours__ended_sessions_wait_for_the_caller),
        cmocka_unit_test(neighbours_refuse__may_be_lost),
        cmocka_unit_test(neighbours__a_flipped_bit_is_a_loss),
        cmocka_unit_test(neighbours__a_flipped_ending_ends_nothing),
        cmocka_unit_test(neighbours__unsigned_refusal_ends_nothing),
        cmocka_unit_test(neighbours__key_is_not_known),
        cmocka_unit_test(neighbours__key_is_wrong),
        cmocka_unit_test(neighbours__key_is_one_of_many),
        cmocka_unit_test(neighbours__key_is_lost),
        cmocka_unit_test(neighbours__initiator_of_another_version),
        cmocka_unit_test(neighbours__answer_another_version_at_its_length),
        cmocka_unit_test(neighbours__responder_of_another_version),
        cmocka_unit_test(neighbours__refuse_for_a_reason),
        cmocka_unit_test(neighbours__nothing_is_stored_without_proof),
        cmocka_unit_test(neighbours__a_taken_address_is_tried_again),
        cmocka_unit_test(neighbours__no_session_with_oneself),
        cmocka_unit_test(neighbours__who_accepts_nobody_is_silent),
        cmocka_unit_test(neighbours_dial__has_a_limit),
        cmocka_unit_test(neighbours__events_are_not_lost),
        cmocka_unit_test(neighbours__agree_in_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
