/*
 * Fuzz target: three neighbours whose messages are lost, repeated, changed and invented, also by
 * one who has the key, and who restart, refuse and leave at any time.
 *
 * The input is a program of small steps. Properties: no crash, no storm of answers, events are in
 * order (tests/attach_net.h), and without a traitor who has the key, whoever is not refused has a
 * session in the end, in which he sends with a cookie that the other side knows.
 */
#include "fuzz/replay.h"
#include "support.h"

#include "attach_net.h"
#include "base/assert.h"

enum {
    SIDES = 3,
    B = 1,      /* dialled by the others */
    B_ROOM = 3, /* sessions: little, so that it is full at times */
    SENT_MAX = 6000,
    RAW_SIZE = 24, /* bytes that an invented message takes from the input */
};

/* How far the runs got; a target that reaches nothing tests nothing. */
static uint64_t total_hears, total_mistrusted, total_ups, total_downs, total_refusals, total_forged,
    total_stale, total_agreed;

struct fuzz {
    struct gw_test_attach *net;
    bool has_traitor; /* somebody has signed what he should not */
    struct gw_test_steps steps;
};

static uint8_t take8(struct fuzz *f)
{
    return gw_test_step(&f->steps);
}

static bool lose_all(void *context, uint32_t number, struct gw_test_message *message)
{
    (void)context;
    (void)number;
    (void)message;
    return false;
}

static void start(struct fuzz *f, int side)
{
    gw_test_attach_start(f->net, side);
    if (side != B)
        gw_test_attach_dial(f->net, side, B);
    f->net->sides[side].refusals = 0;
}

/* Sends something that looks like a message that was sent. */
static void forge(struct fuzz *f)
{
    if (f->net->sent == 0)
        return;
    struct gw_test_message message = f->net->messages[(take8(f) << 8 | take8(f)) % f->net->sent];
    uint8_t how = take8(f);
    uint8_t at = take8(f);
    message.bytes[at % GW_ATTACH_SIZE] ^= take8(f);
    if (how & 1) {
        gw_key_sign(&f->net->sides[B].keys[0], message.bytes);
        f->has_traitor = true;
    }
    bool is_back = how & 2;
    gw_test_attach_send(f->net, is_back ? message.to : message.from,
                        is_back ? message.from : message.to, message.bytes);
}

/* Sends bytes of the input behind a good beginning. */
static void invent(struct fuzz *f)
{
    uint8_t bytes[GW_ATTACH_SIZE];
    struct gw_attach_msg msg = {.step = take8(f) % GW_ATTACH_STEPS, .entropies = 1, .mtu = 1000};
    msg.reason = msg.step == GW_ATTACH_REFUSE ? 1 + take8(f) % (GW_ATTACH_REASONS - 1) : 0;
    msg.key_id = f->net->sides[B].keys[0].id;
    uint8_t route = take8(f);
    msg.notice = route % GW_ATTACH_NOTICES;
    gw_attach_encode(&msg, bytes);
    for (int i = 0; i < RAW_SIZE; i++)
        bytes[4 + take8(f) % (GW_ATTACH_SIZE - 4)] = take8(f);
    gw_test_attach_send(f->net, route % SIDES, route / SIDES % SIDES, bytes);
}

static void end(struct fuzz *f, bool by_refusal)
{
    uint8_t bytes[GW_ATTACH_SIZE];
    struct gw_sock_addr to;
    int number = by_refusal ? B : take8(f) % SIDES;
    uint8_t what = take8(f);
    struct gw_test_side *side = &f->net->sides[number];
    uint16_t peer = what % side->cfg.peers_max;
    if (!side->own || side->is_deaf || !side->is_up[peer])
        return;
    if (by_refusal)
        gw_test_attach_refuse(f->net, number, peer, GW_ATTACH_ENDED + what % 5, bytes);
    else if (!gw_neighbours_farewell(side->own, peer, &to, bytes))
        return;
    gw_test_attach_send(f->net, number, number == B ? what & 16 ? 0 : 2 : B, bytes);
}

/* Somebody takes it that the packets of the group which he hears do not come. */
static void mistrust(struct fuzz *f)
{
    uint8_t what = take8(f);
    struct gw_test_side *side = &f->net->sides[what % SIDES];
    uint16_t peer = (what >> 4) % side->cfg.peers_max;
    gw_test_attach_run(f->net, 0); /* what has waited has nothing to do with it */
    uint32_t before = f->net->sides[B].hears;
    if (side->own)
        gw_neighbours_mistrust_group(side->own, peer, f->net->now);
    gw_test_attach_run(f->net, 0);
    total_mistrusted += f->net->sides[B].hears - before;
}

/* B tells a session a group, or none, and asks who hears it. */
static void multicast(struct fuzz *f)
{
    uint8_t bytes[GW_ATTACH_SIZE], what = take8(f);
    struct gw_test_side *b = &f->net->sides[B];
    uint16_t peer = what % b->cfg.peers_max;
    struct gw_attach_group group = {.cookie = 77, .port = what & 64 ? 29700 : 0};
    if (!b->own || b->is_deaf || !b->is_up[peer])
        return;
    gw_neighbours_set_group(b->own, peer, &group);
    gw_neighbours_probe(b->own, peer, bytes);
    gw_test_attach_send(f->net, B, what & 16 ? 0 : 2, bytes);
}

static void step(struct fuzz *f)
{
    struct gw_test_attach *net = f->net;
    switch (take8(f) % 11) {
    case 0:
        gw_test_attach_run(net, take8(f) * 10 * GW_MS);
        break;
    case 1:
        gw_test_attach_run(net, 0);
        break;
    case 2:
        forge(f);
        break;
    case 3:
        invent(f);
        break;
    case 4:
        start(f, take8(f) % SIDES);
        break;
    case 5:
        end(f, true);
        break;
    case 6:
        end(f, false);
        break;
    case 7:
        net->sides[B].is_deaf = take8(f) & 1;
        gw_test_attach_run(net, 0); /* what has waited is heard before anything is done */
        break;
    case 8:
        multicast(f);
        break;
    case 9:
        net->fate = take8(f) & 1 ? lose_all : NULL;
        break;
    default:
        mistrust(f);
    }
}

/* Whoever has dialled and was not refused has a session with B. */
static void check_end(const struct fuzz *f)
{
    const struct gw_test_side *b = &f->net->sides[B];
    for (int i = 0; i < SIDES; i++) {
        const struct gw_test_side *side = &f->net->sides[i];
        total_ups += side->ups;
        total_downs += side->downs;
        total_refusals += side->refusals;
        total_forged += gw_neighbours_stats(side->own)->forged;
        total_hears += side->hears;
        total_stale += gw_neighbours_stats(side->own)->stale;
        if (i == B || side->refusals || f->has_traitor)
            continue;
        uint64_t cookie = side->last_up.said.cookie;
        GW_ASSERT(gw_neighbours_is_up(side->own, 0) && (uint16_t)cookie < B_ROOM);
        GW_ASSERT(b->is_up[(uint16_t)cookie]);
        GW_ASSERT(gw_neighbours_cookie(b->own, (uint16_t)cookie) == cookie);
        total_agreed++;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz f = {.net = gw_test_attach_open(1), .steps = {data, size}};
    f.net->sides[B].cfg.peers_max = B_ROOM;
    for (int i = SIDES - 1; i >= 0; i--)
        start(&f, i);
    while (f.steps.left && f.net->sent < SENT_MAX)
        step(&f);
    f.net->fate = NULL;
    f.net->sides[B].is_deaf = false;
    gw_test_attach_run(f.net, 4 * GW_TEST_SILENCE);
    check_end(&f);
    gw_test_attach_close(f.net);
    return 0;
}

enum {
    ROUNDS = 20000 / GW_TEST_EVERY(2),
};

static void check_reached(void)
{
    assert_true(total_ups > ROUNDS && total_agreed > ROUNDS / 2);
    assert_true(total_downs > ROUNDS / 10 && total_refusals > ROUNDS / 100);
    assert_true(total_hears > ROUNDS / 100 && total_mistrusted > ROUNDS / 1000);
    assert_true(total_forged > ROUNDS / 10 && total_stale > ROUNDS / 10);
}

const struct gw_test_target gw_test_target = {
    .corpus = "neighbours",
    .seed = 1,
    .rounds = ROUNDS,
    .check_reached = check_reached,
};
