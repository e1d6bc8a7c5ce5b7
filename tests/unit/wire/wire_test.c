/* The gate, the layouts, and the TOS byte. */
#include "support.h"

#include "base/error.h"
#include "base/prng.h"
#include "wire/wire.h"

enum {
    ROUNDS = 20000,
    PAYLOAD = 100,
    LENGTH_MAX = 200, /* lengths that the tables try */
};

static const uint64_t seed = 2026;

static uint32_t random32(struct gw_prng *prng)
{
    /* Extremes and small numbers are where codecs break. */
    static const uint32_t special[] = {0, 1, 255, 256, 65535, 65536, INT32_MAX, UINT32_MAX};
    uint64_t draw = gw_prng_next(prng);
    return draw & 1 ? special[draw >> 32 & 7] : (uint32_t)(draw >> 32);
}

static struct gw_wire_hdr random_data(struct gw_prng *prng)
{
    uint32_t total = random32(prng);
    struct gw_wire_hdr hdr = {.kind = GW_WIRE_DATA};
    total = total == 0 || total == UINT32_MAX ? 1 : total;
    hdr.seq = gw_prng_chance(prng, UINT32_MAX / 2) ? total - 1 : gw_prng_below(prng, total);
    hdr.data.total = total;
    hdr.data.mss = (uint16_t)(1 + gw_prng_below(prng, GW_WIRE_PAYLOAD_MAX));
    hdr.data.len = hdr.data.mss;
    if (hdr.seq + 1 == total)
        hdr.data.len = (uint16_t)(1 + gw_prng_below(prng, hdr.data.mss));
    hdr.data.tag = random32(prng);
    hdr.flags =
        (uint8_t)gw_prng_next(prng) & (GW_WIRE_TRIMMABLE | GW_WIRE_IMPORTANT | GW_WIRE_ACK_NOW);
    if (gw_prng_chance(prng, UINT32_MAX / 4))
        hdr.flags |= GW_WIRE_TRIMMABLE | GW_WIRE_TRIMMED;
    return hdr;
}

static struct gw_wire_hdr random_answer(struct gw_prng *prng)
{
    struct gw_wire_hdr hdr = {
        .kind = gw_prng_below(prng, 2) ? GW_WIRE_ACK : GW_WIRE_NACK,
        .flags = (uint8_t)gw_prng_next(prng) & (GW_WIRE_IMPORTANT | GW_WIRE_ECHO_CE),
        .seq = random32(prng),
    };
    hdr.answer.cum = random32(prng);
    hdr.answer.echo_entropy = (uint16_t)random32(prng);
    if (gw_prng_below(prng, 2)) {
        hdr.answer.mask[0] = random32(prng);
        hdr.answer.mask[1] = random32(prng);
    }
    return hdr;
}

static struct gw_wire_hdr random_hdr(struct gw_prng *prng)
{
    bool is_data = gw_prng_below(prng, 2);
    struct gw_wire_hdr hdr = is_data ? random_data(prng) : random_answer(prng);
    hdr.cookie = gw_prng_next(prng);
    hdr.sent_at = gw_prng_next(prng) >> (64 - GW_WIRE_TIME_BITS);
    hdr.src = random32(prng);
    hdr.dst = random32(prng);
    hdr.flow = random32(prng);
    return hdr;
}

static uint32_t length_of(const struct gw_wire_hdr *hdr, uint32_t hdr_size)
{
    bool has_payload = hdr->kind == GW_WIRE_DATA && !(hdr->flags & GW_WIRE_TRIMMED);
    return hdr_size + (has_payload ? hdr->data.len : 0);
}

static void assert_same(const struct gw_wire_hdr *a, const struct gw_wire_hdr *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->flags, b->flags);
    assert_true(a->cookie == b->cookie && a->sent_at == b->sent_at);
    assert_int_equal(a->src, b->src);
    assert_int_equal(a->dst, b->dst);
    assert_int_equal(a->flow, b->flow);
    assert_int_equal(a->seq, b->seq);
    if (a->kind == GW_WIRE_DATA) {
        assert_int_equal(a->data.total, b->data.total);
        assert_int_equal(a->data.tag, b->data.tag);
        assert_int_equal(a->data.len, b->data.len);
        assert_int_equal(a->data.mss, b->data.mss);
    } else {
        assert_int_equal(a->answer.cum, b->answer.cum);
        assert_int_equal(a->answer.mask[0], b->answer.mask[0]);
        assert_int_equal(a->answer.mask[1], b->answer.mask[1]);
        assert_int_equal(a->answer.echo_entropy, b->answer.echo_entropy);
    }
}

static void wire_decode__returns_what_was_encoded(void **state)
{
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    struct gw_prng prng = gw_prng_derive(seed, 0);
    for (int i = 0; i < ROUNDS; i++) {
        struct gw_wire_hdr in = random_hdr(&prng), out;
        uint8_t bytes[GW_WIRE_HDR_MAX] = {0};
        enum gw_wire_kind kind;
        uint32_t length = length_of(&in, gw_wire_encode(&in, bytes));
        assert_int_equal(gw_wire_validate(bytes, length, &kind), GW_OK);
        assert_int_equal(kind, in.kind);
        assert_true(gw_wire_cookie(bytes) == in.cookie);
        assert_int_equal(gw_wire_decode(bytes, length, &out), GW_OK);
        assert_same(&in, &out);
    }
}

/* Whatever passes as valid is the one encoding of what it says. */
static void wire_decode__accepts_one_encoding_only(void **state)
{
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    struct gw_prng prng = gw_prng_derive(seed, 1);
    uint32_t accepted = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct gw_wire_hdr in = random_hdr(&prng), out;
        uint8_t bytes[GW_WIRE_HDR_MAX] = {0}, again[GW_WIRE_HDR_MAX] = {0};
        enum gw_wire_kind kind;
        uint32_t hdr_size = gw_wire_encode(&in, bytes);
        uint32_t length = length_of(&in, hdr_size);
        bytes[gw_prng_below(&prng, hdr_size)] ^= (uint8_t)(1u << gw_prng_below(&prng, 8));
        if (gw_wire_validate(bytes, length, &kind) || gw_wire_decode(bytes, length, &out))
            continue;
        accepted++;
        assert_int_equal(gw_wire_encode(&out, again), hdr_size);
        assert_memory_equal(bytes, again, hdr_size);
    }
    assert_true(accepted > 0);
}

/* A well-formed packet of each layout, for the tables below. */
static uint32_t make_sample(int which, uint8_t *bytes)
{
    struct gw_wire_hdr hdr = {.kind = GW_WIRE_DATA, .cookie = 7, .seq = 3};
    hdr.data.total = 9;
    hdr.data.mss = hdr.data.len = PAYLOAD;
    if (which == 1)
        hdr.flags = GW_WIRE_TRIMMABLE | GW_WIRE_TRIMMED;
    if (which >= 2) {
        hdr.kind = which == 4 ? GW_WIRE_NACK : GW_WIRE_ACK;
        hdr.answer.cum = 2;
        hdr.answer.echo_entropy = 5;
        hdr.answer.mask[0] = hdr.answer.mask[1] = 0;
        if (which == 3)
            hdr.answer.mask[1] = 1;
    }
    return length_of(&hdr, gw_wire_encode(&hdr, bytes));
}

enum {
    SAMPLES = 5, /* data, trimmed data, ACK, ACK with mask, NACK */
};

static void wire_validate__accepts_one_length_per_packet(void **state)
{
    (void)state;
    static const uint32_t expected[SAMPLES] = {44 + PAYLOAD, 44, 40, 48, 40};
    for (int which = 0; which < SAMPLES; which++) {
        uint8_t bytes[GW_WIRE_HDR_MAX] = {0};
        uint32_t right = make_sample(which, bytes);
        assert_int_equal(right, expected[which]);
        for (uint32_t length = 0; length < LENGTH_MAX; length++) {
            enum gw_wire_kind kind;
            struct gw_wire_hdr hdr;
            int error = gw_wire_validate(bytes, length, &kind);
            if (!error)
                error = gw_wire_decode(bytes, length, &hdr);
            assert_int_equal(error, length == right ? GW_OK : GW_ERR_MALFORMED);
        }
    }
}

/* Each bit of the prefix: of another protocol or version, or no packet at all. */
static void wire_validate__refuses_every_change_of_magic_version_and_kind(void **state)
{
    (void)state;
    for (int which = 0; which < SAMPLES; which++) {
        for (int bit = 0; bit < 24; bit++) {
            uint8_t bytes[GW_WIRE_HDR_MAX] = {0};
            enum gw_wire_kind kind;
            uint32_t length = make_sample(which, bytes);
            bytes[bit / 8] ^= (uint8_t)(128 >> bit % 8);
            int error = gw_wire_validate(bytes, length, &kind);
            if (bit < 20)
                assert_int_equal(error, GW_ERR_VERSION);
            else if (!error) /* ACK and NACK may turn into each other, and into nothing else */
                assert_true(which >= 2 && kind != GW_WIRE_DATA);
            else
                assert_int_equal(error, GW_ERR_MALFORMED);
        }
    }
}

static void wire_validate__knows_the_flags_of_each_kind(void **state)
{
    (void)state;
    static const uint8_t data_plain =
        GW_WIRE_TRIMMABLE | GW_WIRE_IMPORTANT | GW_WIRE_ACK_NOW | GW_WIRE_LAST;
    static const uint8_t answer_plain = GW_WIRE_IMPORTANT | GW_WIRE_ECHO_CE;
    for (int which = 0; which < SAMPLES; which++) {
        uint8_t bytes[GW_WIRE_HDR_MAX] = {0};
        uint32_t length = make_sample(which, bytes);
        for (uint32_t flags = 0; flags < 256; flags++) {
            enum gw_wire_kind kind;
            bool good;
            if (which == 0)
                good = (flags & ~data_plain) == 0;
            else if (which == 1)
                good = (flags & ~data_plain) == GW_WIRE_TRIMMED && flags & GW_WIRE_TRIMMABLE;
            else
                good = (flags & ~answer_plain) == (which == 3 ? GW_WIRE_MASK : 0);
            bytes[3] = (uint8_t)flags;
            assert_int_equal(gw_wire_validate(bytes, length, &kind),
                             good ? GW_OK : GW_ERR_MALFORMED);
        }
    }
}

static void wire_decode__refuses_contradictions(void **state)
{
    (void)state;
    /* Bytes 24: packet number, 34: full payload, 36: packets in the message or last length. */
    static const struct {
        uint8_t flags;
        uint8_t at;
        uint32_t value;
        int error;
    } cases[] = {
        {0, 24, 7, GW_OK},
        {0, 24, 8, GW_ERR_MALFORMED},          /* the last one without LAST */
        {0, 24, 9, GW_ERR_MALFORMED},          /* behind the end */
        {0, 24, UINT32_MAX, GW_ERR_MALFORMED}, /* its successor wraps */
        {0, 36, 5, GW_OK},
        {0, 36, 4, GW_ERR_MALFORMED},
        {0, 36, 0, GW_ERR_MALFORMED},
        {0, 36, UINT32_MAX - 1, GW_OK},
        {0, 36, UINT32_MAX, GW_ERR_MALFORMED},  /* reserved */
        {0, 34, PAYLOAD - 1, GW_ERR_MALFORMED}, /* longer than a full packet */
        {0, 34, PAYLOAD + 1, GW_ERR_MALFORMED}, /* shorter, but not the last */
        {0, 34, 0, GW_ERR_MALFORMED},
        {GW_WIRE_LAST, 36, PAYLOAD, GW_OK},
        {GW_WIRE_LAST, 36, PAYLOAD - 1, GW_ERR_MALFORMED}, /* not the datagram's length */
        {GW_WIRE_LAST, 36, PAYLOAD + 65536, GW_ERR_MALFORMED},
        {GW_WIRE_LAST, 36, 0, GW_ERR_MALFORMED},
    };
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        uint8_t bytes[GW_WIRE_HDR_MAX] = {0};
        struct gw_wire_hdr hdr;
        uint32_t length = make_sample(0, bytes);
        uint8_t *field = bytes + cases[i].at;
        bytes[3] = cases[i].flags;
        if (cases[i].at == 34) {
            field[0] = (uint8_t)(cases[i].value >> 8);
            field[1] = (uint8_t)cases[i].value;
        } else {
            for (int j = 0; j < 4; j++)
                field[j] = (uint8_t)(cases[i].value >> (24 - 8 * j));
        }
        print_message("case %zu\n", i);
        assert_int_equal(gw_wire_decode(bytes, length, &hdr), cases[i].error);
    }
}

static void wire_decode__refuses_an_empty_mask(void **state)
{
    (void)state;
    uint8_t bytes[GW_WIRE_HDR_MAX];
    struct gw_wire_hdr hdr;
    uint32_t length = make_sample(3, bytes);
    assert_int_equal(gw_wire_decode(bytes, length, &hdr), GW_OK);
    memset(bytes + 40, 0, 8);
    assert_int_equal(gw_wire_decode(bytes, length, &hdr), GW_ERR_MALFORMED);
}

static void wire_version__tells_ours_from_others(void **state)
{
    (void)state;
    uint8_t bytes[GW_WIRE_HDR_MAX];
    uint32_t length = make_sample(2, bytes);
    assert_int_equal(gw_wire_version(bytes, length), GW_WIRE_VERSION);
    bytes[2] = 0x91;
    assert_int_equal(gw_wire_version(bytes, length), 9);
    assert_int_equal(gw_wire_version(bytes, 3), 0);
    bytes[0] = 'X';
    assert_int_equal(gw_wire_version(bytes, length), 0);
}

static void wire_encode__is_big_endian(void **state)
{
    (void)state;
    struct gw_wire_hdr hdr = {
        .cookie = UINT64_C(0x0102030405060708),
        .sent_at = UINT64_C(0x212223242526),
        .src = 0x090a0b0c,
        .dst = 0x0d0e0f10,
        .flow = 0x11121314,
        .seq = 0x15161718,
        .kind = GW_WIRE_ACK,
        .flags = GW_WIRE_ECHO_CE,
    };
    hdr.answer.cum = 0x292a2b2c;
    hdr.answer.echo_entropy = 0x2728;
    static const uint8_t expected[GW_WIRE_ANSWER_SIZE] = {
        'G',  'W',  0x11, 8,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,
        11,   12,   13,   14,   15,   16,   0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
        0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x2b, 0x2c,
    };
    uint8_t bytes[GW_WIRE_HDR_MAX];
    assert_int_equal(gw_wire_encode(&hdr, bytes), GW_WIRE_ANSWER_SIZE);
    assert_memory_equal(bytes, expected, sizeof(expected));
}

static void wire_tos__carries_class_and_ecn(void **state)
{
    (void)state;
    for (uint8_t class = 0; class < 8; class ++) {
        for (uint8_t ecn = 0; ecn < 4; ecn++) {
            uint8_t tos = gw_wire_tos(class, ecn);
            assert_int_equal(tos >> 2, class);
            assert_int_equal(gw_wire_tos_class(tos), class);
            assert_int_equal(gw_wire_tos_ecn(tos), ecn);
        }
    }
}

/* DSCP that the network wrote, or that says START or ACK, is no class. */
static void wire_tos__foreign_dscp_is_best_effort(void **state)
{
    (void)state;
    for (uint32_t tos = 8 << 2; tos < 256; tos++)
        assert_int_equal(gw_wire_tos_class((uint8_t)tos), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wire_decode__returns_what_was_encoded),
        cmocka_unit_test(wire_decode__accepts_one_encoding_only),
        cmocka_unit_test(wire_validate__accepts_one_length_per_packet),
        cmocka_unit_test(wire_validate__refuses_every_change_of_magic_version_and_kind),
        cmocka_unit_test(wire_validate__knows_the_flags_of_each_kind),
        cmocka_unit_test(wire_decode__refuses_contradictions),
        cmocka_unit_test(wire_decode__refuses_an_empty_mask),
        cmocka_unit_test(wire_version__tells_ours_from_others),
        cmocka_unit_test(wire_encode__is_big_endian),
        cmocka_unit_test(wire_tos__carries_class_and_ecn),
        cmocka_unit_test(wire_tos__foreign_dscp_is_best_effort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
