/* The bytes of the attach protocol: what is written is read, and nonsense is refused. */
#include "support.h"

#include "base/error.h"
#include "base/prng.h"
#include "wire/attach.h"
#include "wire/wire.h"

enum {
    ROUNDS = 20000,
};

static const uint64_t seed = 2026;

static struct gw_attach_msg random_msg(struct gw_prng *prng)
{
    struct gw_attach_msg msg = {
        .cookie = gw_prng_next(prng),
        .key_id = gw_prng_next(prng),
        .address = (uint32_t)gw_prng_next(prng),
        .job = (uint32_t)gw_prng_next(prng),
        .mtu = (uint16_t)(1 + gw_prng_below(prng, GW_WIRE_PAYLOAD_MAX)),
        .world = (uint16_t)gw_prng_next(prng),
        .rank = (uint16_t)gw_prng_next(prng),
        .entropies = (uint16_t)(1 + gw_prng_below(prng, UINT16_MAX)),
        .step = (uint8_t)gw_prng_below(prng, GW_ATTACH_STEPS),
        .role = (uint8_t)gw_prng_below(prng, GW_ATTACH_ROLES),
        .flags = (uint8_t)gw_prng_below(prng, GW_ATTACH_FLAGS + 1),
        .notice = (uint8_t)gw_prng_below(prng, GW_ATTACH_NOTICES),
        .number = (uint32_t)gw_prng_next(prng),
        .rtt = (uint16_t)gw_prng_next(prng),
        .way = {.rate_kbps = (uint32_t)gw_prng_next(prng), .rtt = (uint16_t)gw_prng_next(prng)},
    };
    if (gw_prng_below(prng, 2)) {
        msg.way.silence.port = (uint16_t)(1 + gw_prng_below(prng, UINT16_MAX));
        msg.way.silence.ms = (uint16_t)gw_prng_next(prng);
        for (int i = 0; i < GW_ATTACH_PLACE_SIZE; i++)
            msg.way.silence.address[i] = (uint8_t)gw_prng_next(prng);
    }
    if (msg.step == GW_ATTACH_REFUSE)
        msg.reason = (uint8_t)(1 + gw_prng_below(prng, GW_ATTACH_REASONS - 1));
    if (msg.step == GW_ATTACH_ASK)
        msg.life = (uint32_t)gw_prng_next(prng), msg.told_cookie = gw_prng_next(prng),
        msg.table = (uint32_t)gw_prng_next(prng);
    if (msg.step == GW_ATTACH_ACCEPT && gw_prng_below(prng, 2)) {
        msg.group.cookie = gw_prng_next(prng);
        msg.group.port = (uint16_t)(1 + gw_prng_below(prng, UINT16_MAX));
        for (int i = 0; i < GW_ATTACH_GROUP_SIZE; i++)
            msg.group.address[i] = (uint8_t)gw_prng_next(prng);
    }
    for (int i = 0; i < GW_ATTACH_NONCE_SIZE; i++) {
        msg.session[i] = (uint8_t)gw_prng_next(prng);
        msg.proof[i] = (uint8_t)gw_prng_next(prng);
    }
    return msg;
}

static void assert_equal(const struct gw_attach_msg *a, const struct gw_attach_msg *b)
{
    assert_memory_equal(a->session, b->session, GW_ATTACH_NONCE_SIZE);
    assert_memory_equal(a->proof, b->proof, GW_ATTACH_NONCE_SIZE);
    assert_true(a->told_cookie == b->told_cookie);
    assert_true(a->cookie == b->cookie && a->key_id == b->key_id);
    assert_true(a->address == b->address && a->job == b->job && a->mtu == b->mtu);
    assert_true(a->world == b->world && a->rank == b->rank && a->entropies == b->entropies);
    assert_true(a->step == b->step && a->role == b->role && a->flags == b->flags);
    assert_int_equal(a->notice, b->notice);
    assert_true(a->reason == b->reason && a->life == b->life);
    assert_true(a->number == b->number && a->rtt == b->rtt);
    assert_true(a->way.rate_kbps == b->way.rate_kbps && a->way.rtt == b->way.rtt);
    assert_memory_equal(&a->way.silence, &b->way.silence, sizeof(a->way.silence));
    assert_true(a->group.cookie == b->group.cookie && a->group.port == b->group.port);
    assert_memory_equal(a->group.address, b->group.address, GW_ATTACH_GROUP_SIZE);
}

static void attach_encode__is_read_back(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(seed, 0);
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < ROUNDS; round++) {
        uint8_t bytes[GW_ATTACH_SIZE], session[GW_ATTACH_NONCE_SIZE];
        struct gw_attach_msg msg = random_msg(&prng), again;
        gw_attach_encode(&msg, bytes);
        assert_true(gw_attach_is(bytes, sizeof(bytes)));
        assert_int_equal(gw_attach_decode(bytes, sizeof(bytes), &again), 0);
        assert_equal(&msg, &again);
        gw_attach_session_of(bytes, session);
        assert_memory_equal(session, msg.session, sizeof(session));
        assert_int_equal(gw_attach_step_of(bytes), msg.step);
        assert_int_equal(gw_attach_version(bytes), GW_WIRE_VERSION);
    }
}

/* Every bit means something: two messages that differ are read as different, or are refused. */
static void attach_decode__reads_every_bit(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(seed, 1);
    struct gw_attach_msg msg = random_msg(&prng), other;
    uint8_t bytes[GW_ATTACH_SIZE], again[GW_ATTACH_SIZE];
    gw_attach_encode(&msg, bytes);
    for (int bit = 0; bit < 8 * GW_ATTACH_SIGNED; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (gw_attach_decode(bytes, sizeof(bytes), &other) == 0) {
            gw_attach_encode(&other, again);
            assert_memory_equal(again, bytes, GW_ATTACH_SIGNED);
        }
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

/* An old program must be able to read a new one's refusal: these places never change. */
static void attach_encode__keeps_its_places(void **state)
{
    (void)state;
    struct gw_attach_msg msg = {.step = GW_ATTACH_REFUSE,
                                .session = {0xab},
                                .cookie = UINT64_C(0x1122334455667788),
                                .job = 0x99aabbcc,
                                .entropies = 1,
                                .number = 0x12345678,
                                .mtu = 1408,
                                .flags = GW_ATTACH_AUTHENTICATED,
                                .notice = 17,
                                .reason = GW_ATTACH_VERSION};
    uint8_t bytes[GW_ATTACH_SIZE];
    gw_attach_encode(&msg, bytes);
    assert_memory_equal(bytes, "GW\xb7\x03\xab", 5);
    assert_memory_equal(bytes + 36, "\x11\x22\x33\x44\x55\x66\x77\x88", 8);
    assert_memory_equal(bytes + 48, "\x99\xaa\xbb\xcc", 4);
    assert_memory_equal(bytes + 56, "\x02\x11\0\x01\x12\x34\x56\x78", 8);
    assert_memory_equal(bytes + 72, "\0\0\0\x01", 4);
    assert_memory_equal(bytes + 102, "\x05\x80", 2);
}

/* Only an answer tells a group, and a group has a port. */
static void attach_decode__refuses_groups_out_of_place(void **state)
{
    (void)state;
    for (uint8_t step = 0; step < GW_ATTACH_STEPS; step++)
        for (uint16_t port = 0; port < 2; port++) {
            uint8_t bytes[GW_ATTACH_SIZE];
            struct gw_attach_msg msg = {.step = step,
                                        .address = 1,
                                        .entropies = 1,
                                        .mtu = 1408,
                                        .reason = step == GW_ATTACH_REFUSE,
                                        .group = {.port = port, .address = {[4] = 239}}};
            bool is_good = step == GW_ATTACH_ACCEPT && port;
            gw_attach_encode(&msg, bytes);
            assert_int_equal(gw_attach_decode(bytes, sizeof(bytes), &msg),
                             is_good ? 0 : GW_ERR_MALFORMED);
        }
}

static void attach_decode__refuses_nonsense(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t at;
        uint8_t value;
        int code;
    } cases[] = {
        {"magic", 0, 'g', GW_ERR_MALFORMED},
        {"kind of a packet", 2, GW_WIRE_VERSION << 4 | GW_WIRE_PAUSE, GW_ERR_MALFORMED},
        {"next version", 2, (GW_WIRE_VERSION + 1) << 4 | GW_ATTACH_KIND, GW_ERR_VERSION},
        {"no such step", 3, GW_ATTACH_STEPS, GW_ERR_MALFORMED},
        {"refusal without reason", 3, GW_ATTACH_REFUSE, GW_ERR_MALFORMED},
        {"no address", 47, 0, GW_ERR_MALFORMED},
        {"no such flag", 56, GW_ATTACH_FLAGS + 1, GW_ERR_MALFORMED},
        {"no such notice", 57, GW_ATTACH_NOTICES, GW_ERR_MALFORMED},
        {"no source port", 59, 0, GW_ERR_MALFORMED},
        {"packets too long", 102, 255, GW_ERR_MALFORMED},
        {"packets of nothing", 103, 0, GW_ERR_MALFORMED},
        {"reason without refusal", 75, GW_ATTACH_ROOM, GW_ERR_MALFORMED},
        {"no such reason", 72, 1, GW_ERR_MALFORMED},
        {"silence of nobody", 131, 1, GW_ERR_MALFORMED},
        {"silent nobody", 112, 1, GW_ERR_MALFORMED},
    };
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_attach_msg msg = {
            .step = GW_ATTACH_ACCEPT, .address = 1, .entropies = 1, .mtu = 255};
        uint8_t bytes[GW_ATTACH_SIZE];
        gw_attach_encode(&msg, bytes);
        assert_int_equal(gw_attach_decode(bytes, sizeof(bytes), &msg), 0);
        bytes[cases[i].at] = cases[i].value;
        print_message("%s\n", cases[i].name);
        assert_int_equal(gw_attach_decode(bytes, sizeof(bytes), &msg), cases[i].code);
    }
}

/* Messages and packets are told apart by one look, whatever the length. */
static void attach_is__never_a_packet(void **state)
{
    (void)state;
    struct gw_attach_msg msg = {.step = GW_ATTACH_ASK, .entropies = 1, .mtu = 1};
    uint8_t bytes[GW_ATTACH_SIZE + 1] = {0};
    enum gw_wire_kind kind;
    gw_attach_encode(&msg, bytes);
    for (uint32_t length = 0; length <= sizeof(bytes); length++) {
        assert_int_equal(gw_attach_is(bytes, length), length == GW_ATTACH_SIZE);
        assert_int_not_equal(gw_wire_validate(bytes, length, &kind), 0);
    }
}

/* What another version says is recognised, though its messages may be longer or shorter. */
static void attach_is__knows_other_versions(void **state)
{
    (void)state;
    struct gw_attach_msg msg = {.step = GW_ATTACH_ASK, .entropies = 1, .mtu = 1}, other;
    uint8_t bytes[GW_ATTACH_SIZE_MAX + 1] = {0};
    gw_attach_encode(&msg, bytes);
    bytes[2] ^= 0x40;
    for (uint32_t length = 0; length <= sizeof(bytes); length++) {
        bool is_one = length >= GW_ATTACH_SIZE_MIN && length <= GW_ATTACH_SIZE_MAX;
        assert_int_equal(gw_attach_is(bytes, length), is_one);
        assert_int_equal(gw_attach_decode(bytes, length, &other),
                         is_one ? GW_ERR_VERSION : GW_ERR_MALFORMED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attach_encode__is_read_back),
        cmocka_unit_test(attach_decode__reads_every_bit),
        cmocka_unit_test(attach_encode__keeps_its_places),
        cmocka_unit_test(attach_decode__refuses_groups_out_of_place),
        cmocka_unit_test(attach_decode__refuses_nonsense),
        cmocka_unit_test(attach_is__never_a_packet),
        cmocka_unit_test(attach_is__knows_other_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
