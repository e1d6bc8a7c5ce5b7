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

static const uint8_t grad_flags = GW_WIRE_AGG_RESEND | GW_WIRE_AGG_COLLISION | GW_WIRE_AGG_RAW |
                                  GW_WIRE_AGG_ECN | GW_WIRE_AGG_FINAL | GW_WIRE_AGG_SLOT |
                                  GW_WIRE_AGG_EVEN | GW_WIRE_AGG_ODD;
static const uint8_t param_flags = GW_WIRE_AGG_MIXED | GW_WIRE_AGG_COLLISION | GW_WIRE_AGG_RAW |
                                   GW_WIRE_AGG_ECN | GW_WIRE_AGG_REQUEST | GW_WIRE_AGG_UNICAST |
                                   GW_WIRE_AGG_FAILED | GW_WIRE_AGG_SLOT;
static const uint8_t empty_flags =
    GW_WIRE_AGG_REQUEST | GW_WIRE_AGG_FAILED; /* parameter: no values */

static bool is_agg(const struct gw_wire_hdr *hdr)
{
    return hdr->kind == GW_WIRE_GRAD || hdr->kind == GW_WIRE_PARAM;
}

static bool has_time(const struct gw_wire_hdr *hdr)
{
    return hdr->kind == GW_WIRE_DATA || hdr->kind == GW_WIRE_ACK || hdr->kind == GW_WIRE_NACK ||
           hdr->kind == GW_WIRE_PAUSE || hdr->kind == GW_WIRE_HAIL;
}

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
        (uint8_t)gw_prng_next(prng) & (GW_WIRE_TRIMMABLE | GW_WIRE_ACK_NOW | GW_WIRE_ON_CREDIT |
                                       GW_WIRE_LAST_FREE | GW_WIRE_STARVED);
    if (hdr.flags & (GW_WIRE_LAST_FREE | GW_WIRE_STARVED))
        hdr.flags |= GW_WIRE_ON_CREDIT;
    if (gw_prng_chance(prng, UINT32_MAX / 4))
        hdr.flags |= GW_WIRE_TRIMMABLE | GW_WIRE_TRIMMED;
    if (gw_prng_chance(prng, UINT32_MAX / 4))
        hdr.flags = GW_WIRE_BLAST;
    return hdr;
}

static struct gw_wire_hdr random_answer(struct gw_prng *prng)
{
    struct gw_wire_hdr hdr = {
        .kind = gw_prng_below(prng, 2) ? GW_WIRE_ACK : GW_WIRE_NACK,
        .flags = (uint8_t)gw_prng_next(prng) & (GW_WIRE_GIVEN_UP | GW_WIRE_ECHO_CE),
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

static struct gw_wire_hdr random_agg(struct gw_prng *prng)
{
    bool is_grad = gw_prng_below(prng, 2);
    struct gw_wire_hdr hdr = {
        .kind = is_grad ? GW_WIRE_GRAD : GW_WIRE_PARAM,
        .seq = random32(prng),
    };
    hdr.agg.key = random32(prng);
    hdr.agg.bitmap = random32(prng);
    hdr.agg.epoch = (uint16_t)random32(prng);
    hdr.agg.index = (uint16_t)random32(prng);
    hdr.agg.scale = (uint8_t)random32(prng);
    hdr.agg.agg_flags = (uint8_t)gw_prng_next(prng) & (is_grad ? grad_flags : param_flags);
    hdr.agg.bound = is_grad ? (uint8_t)gw_prng_below(prng, GW_WIRE_BOUND_ONE + 1) : 0;
    hdr.agg.level = (uint8_t)gw_prng_below(prng, GW_WIRE_LEVEL_MAX + 1);
    for (int i = 0; i < 2; i++)
        hdr.agg.above[i] = (uint8_t)gw_prng_below(prng, GW_WIRE_POSITION_MAX + 1);
    if (is_grad || !(hdr.agg.agg_flags & empty_flags))
        hdr.agg.values = (uint16_t)(1 + gw_prng_below(prng, GW_WIRE_VALUES_MAX));
    return hdr;
}

static struct gw_wire_hdr random_job(struct gw_prng *prng)
{
    struct gw_wire_hdr hdr = {
        .kind = GW_WIRE_JOB,
        .seq = random32(prng),
    };
    hdr.job.key = random32(prng);
    hdr.job.epoch = (uint16_t)random32(prng);
    hdr.job.index = (uint16_t)random32(prng);
    hdr.job.scale = (uint8_t)random32(prng);
    hdr.job.op = (uint8_t)gw_prng_below(prng, GW_WIRE_JOB_OPS);
    if (hdr.job.op == GW_WIRE_JOB_JOIN)
        hdr.flags = (uint8_t)(gw_prng_below(prng, 32) << 3);
    for (int i = 0; i < GW_WIRE_JOB_WORDS; i++)
        hdr.job.word[i] = random32(prng);
    return hdr;
}

static struct gw_wire_hdr random_pause(struct gw_prng *prng)
{
    return (struct gw_wire_hdr){.kind = GW_WIRE_PAUSE, .seq = random32(prng)};
}

static struct gw_wire_hdr random_credit(struct gw_prng *prng)
{
    return (struct gw_wire_hdr){.kind = GW_WIRE_CREDIT, .seq = random32(prng)};
}

static struct gw_wire_hdr random_hail(struct gw_prng *prng)
{
    return (struct gw_wire_hdr){
        .kind = GW_WIRE_HAIL,
        .seq = random32(prng),
        .hail = {.word = {random32(prng), random32(prng)},
                 .index = (uint16_t)random32(prng),
                 .number = (uint16_t)random32(prng),
                 .op = (uint8_t)gw_prng_below(prng, GW_WIRE_HAIL_OPS),
                 .marks = (uint8_t)random32(prng)},
    };
}

static struct gw_wire_hdr random_notice(struct gw_prng *prng)
{
    return (struct gw_wire_hdr){.kind = GW_WIRE_NOTICE,
                                .seq = random32(prng),
                                .flags = (uint8_t)gw_prng_below(prng, 8),
                                .notice.job = random32(prng)};
}

static struct gw_wire_hdr random_hdr(struct gw_prng *prng)
{
    uint32_t layout = gw_prng_below(prng, 8);
    struct gw_wire_hdr hdr = layout == 0   ? random_data(prng)
                             : layout == 1 ? random_answer(prng)
                             : layout == 2 ? random_agg(prng)
                             : layout == 3 ? random_job(prng)
                             : layout == 4 ? random_pause(prng)
                             : layout == 5 ? random_notice(prng)
                             : layout == 6 ? random_hail(prng)
                                           : random_credit(prng);
    hdr.cookie = gw_prng_next(prng);
    if (has_time(&hdr))
        hdr.sent_at = gw_prng_next(prng) >> (64 - GW_WIRE_TIME_BITS);
    hdr.src = random32(prng);
    hdr.dst = random32(prng);
    hdr.flow = random32(prng);
    return hdr;
}

static uint32_t length_of(const struct gw_wire_hdr *hdr, uint32_t hdr_size)
{
    bool has_payload = hdr->kind == GW_WIRE_DATA && !(hdr->flags & GW_WIRE_TRIMMED);
    if (is_agg(hdr))
        return hdr_size + (uint32_t)GW_WIRE_VALUE_SIZE * hdr->agg.values;
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
    } else if (is_agg(a)) {
        assert_int_equal(a->agg.key, b->agg.key);
        assert_int_equal(a->agg.bitmap, b->agg.bitmap);
        assert_int_equal(a->agg.epoch, b->agg.epoch);
        assert_int_equal(a->agg.index, b->agg.index);
        assert_int_equal(a->agg.values, b->agg.values);
        assert_int_equal(a->agg.scale, b->agg.scale);
        assert_int_equal(a->agg.agg_flags, b->agg.agg_flags);
        assert_int_equal(a->agg.bound, b->agg.bound);
        assert_int_equal(a->agg.level, b->agg.level);
        assert_memory_equal(a->agg.above, b->agg.above, sizeof(a->agg.above));
    } else if (a->kind == GW_WIRE_JOB) {
        assert_int_equal(a->job.key, b->job.key);
        assert_int_equal(a->job.epoch, b->job.epoch);
        assert_int_equal(a->job.index, b->job.index);
        assert_int_equal(a->job.scale, b->job.scale);
        assert_int_equal(a->job.op, b->job.op);
        assert_memory_equal(a->job.word, b->job.word, sizeof(a->job.word));
    } else if (a->kind == GW_WIRE_NOTICE) {
        assert_int_equal(a->notice.job, b->notice.job);
    } else if (a->kind == GW_WIRE_ACK || a->kind == GW_WIRE_NACK) {
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
        hdr_size = gw_wire_encode(&out, again); /* another one if the kind was hit */
        assert_int_equal(length_of(&out, hdr_size), length);
        assert_memory_equal(bytes, again, hdr_size);
    }
    assert_true(accepted > 0);
}

enum sample {
    DATA,
    DATA_TRIMMED,
    ACK,
    ACK_MASK,
    NACK,
    PAUSE,
    CREDIT,
    NOTICE,
    HAIL,
    GRAD,
    PARAM,
    PARAM_REQUEST,
    JOB,
    SAMPLES,
};

/* A well-formed packet of each layout, for the tables below. */
static uint32_t make_sample(enum sample which, uint8_t *bytes)
{
    static const uint8_t kinds[SAMPLES] = {
        [DATA] = GW_WIRE_DATA,    [DATA_TRIMMED] = GW_WIRE_DATA,   [ACK] = GW_WIRE_ACK,
        [ACK_MASK] = GW_WIRE_ACK, [NACK] = GW_WIRE_NACK,           [GRAD] = GW_WIRE_GRAD,
        [PARAM] = GW_WIRE_PARAM,  [PARAM_REQUEST] = GW_WIRE_PARAM, [JOB] = GW_WIRE_JOB,
        [PAUSE] = GW_WIRE_PAUSE,  [CREDIT] = GW_WIRE_CREDIT,       [NOTICE] = GW_WIRE_NOTICE,
        [HAIL] = GW_WIRE_HAIL,
    };
    struct gw_wire_hdr hdr = {.kind = kinds[which], .cookie = 7, .seq = 3};
    if (hdr.kind == GW_WIRE_DATA) {
        hdr.data.total = 9;
        hdr.data.mss = hdr.data.len = PAYLOAD;
        hdr.flags = which == DATA_TRIMMED ? GW_WIRE_TRIMMABLE | GW_WIRE_TRIMMED : 0;
    } else if (is_agg(&hdr)) {
        hdr.agg.epoch = 1;
        hdr.agg.agg_flags = which == PARAM_REQUEST ? GW_WIRE_AGG_REQUEST : 0;
        hdr.agg.values = which == PARAM_REQUEST ? 0 : PAYLOAD / GW_WIRE_VALUE_SIZE;
    } else if (which == JOB) {
        hdr.job.epoch = 1;
    } else if (hdr.kind == GW_WIRE_ACK || hdr.kind == GW_WIRE_NACK) {
        hdr.answer.cum = 2;
        hdr.answer.echo_entropy = 5;
        hdr.answer.mask[1] = which == ACK_MASK;
    }
    return length_of(&hdr, gw_wire_encode(&hdr, bytes));
}

/* What a receiver says of a datagram of this length. */
static int receive(const uint8_t *bytes, uint32_t length, struct gw_wire_hdr *hdr)
{
    enum gw_wire_kind kind;
    int error = gw_wire_validate(bytes, length, &kind);
    return error ? error : gw_wire_decode(bytes, length, hdr);
}

static void wire_validate__accepts_one_length_per_packet(void **state)
{
    (void)state;
    static const uint32_t expected[SAMPLES] = {
        [DATA] = 44 + PAYLOAD, [DATA_TRIMMED] = 44,  [ACK] = 40,  [ACK_MASK] = 48,
        [NACK] = 40,           [PARAM_REQUEST] = 44, [JOB] = 52,  [PAUSE] = 34,
        [CREDIT] = 28,         [NOTICE] = 32,        [HAIL] = 48,
    };
    for (int which = 0; which < SAMPLES; which++) {
        if (which == GRAD || which == PARAM)
            continue; /* their length says how many values there are */
        uint8_t bytes[GW_WIRE_HDR_MAX] = {0};
        uint32_t right = make_sample(which, bytes);
        assert_int_equal(right, expected[which]);
        for (uint32_t length = 0; length < LENGTH_MAX; length++) {
            struct gw_wire_hdr hdr;
            assert_int_equal(receive(bytes, length, &hdr),
                             length == right ? GW_OK : GW_ERR_MALFORMED);
        }
    }
}

static void wire_decode__counts_values_by_the_length(void **state)
{
    (void)state;
    static const enum sample samples[] = {GRAD, PARAM};
    for (size_t i = 0; i < GW_COUNT_OF(samples); i++) {
        uint8_t bytes[GW_WIRE_HDR_MAX] = {0};
        make_sample(samples[i], bytes);
        for (uint32_t length = 0; length < 70000; length++) {
            struct gw_wire_hdr hdr;
            bool good = length > 44 && length % 4 == 0 && length <= 65535 - 8 - 40;
            assert_int_equal(receive(bytes, length, &hdr), good ? GW_OK : GW_ERR_MALFORMED);
            if (good)
                assert_int_equal(hdr.agg.values, (length - 44) / 4);
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
            else if (!error) /* these may turn into each other, and into nothing else */
                assert_true((which == DATA && kind == GW_WIRE_PARAM) ||
                            (which == PARAM && kind == GW_WIRE_DATA) ||
                            (which == ACK_MASK && kind == GW_WIRE_GRAD) ||
                            (which == JOB && kind == GW_WIRE_PARAM));
            else
                assert_int_equal(error, GW_ERR_MALFORMED);
        }
    }
}

/* What a sender says of its credit, only one that waits for some can say; and who sends a blast has
 * nothing to say of anything else. */
static bool flags_agree(uint32_t flags)
{
    static const uint8_t never =
        GW_WIRE_TRIMMED | GW_WIRE_TRIMMABLE | GW_WIRE_ACK_NOW | GW_WIRE_LAST_FREE;
    if (flags & GW_WIRE_BLAST && flags & never)
        return false;
    return flags & GW_WIRE_ON_CREDIT || !(flags & (GW_WIRE_LAST_FREE | GW_WIRE_STARVED));
}

static void wire_validate__knows_the_flags_of_each_kind(void **state)
{
    (void)state;
    static const uint8_t data_plain = GW_WIRE_TRIMMABLE | GW_WIRE_ACK_NOW | GW_WIRE_LAST |
                                      GW_WIRE_ON_CREDIT | GW_WIRE_LAST_FREE | GW_WIRE_STARVED |
                                      GW_WIRE_BLAST;
    static const uint8_t answer_plain = GW_WIRE_GIVEN_UP | GW_WIRE_ECHO_CE;
    static const uint8_t one_of = GW_WIRE_GIVEN_UP | GW_WIRE_NOT_READY | GW_WIRE_READY;
    static const uint8_t nack_plain = GW_WIRE_ECHO_CE | one_of;
    for (int which = 0; which < SAMPLES; which++) {
        uint8_t bytes[GW_WIRE_HDR_MAX] = {0};
        uint32_t length = make_sample(which, bytes);
        for (uint32_t flags = 0; flags < 256; flags++) {
            enum gw_wire_kind kind;
            bool good;
            if (which == DATA)
                good = (flags & ~data_plain) == 0 && flags_agree(flags);
            else if (which == DATA_TRIMMED)
                good = (flags & ~data_plain) == GW_WIRE_TRIMMED && flags & GW_WIRE_TRIMMABLE &&
                       flags_agree(flags);
            else if (which == NOTICE)
                good = flags < 8;
            else if (which == JOB)
                good = flags % 8 == 0;
            else if (which == GRAD)
                good = flags <= GW_WIRE_BOUND_ONE;
            else if (which == PAUSE || which == CREDIT || which >= HAIL)
                good = flags == 0;
            else
                good = (flags & ~(which == NACK ? nack_plain : answer_plain)) ==
                           (which == ACK_MASK ? GW_WIRE_MASK : 0) &&
                       __builtin_popcount(flags & one_of) <= 1;
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
        uint32_t length = make_sample(DATA, bytes);
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
    uint32_t length = make_sample(ACK_MASK, bytes);
    assert_int_equal(gw_wire_decode(bytes, length, &hdr), GW_OK);
    memset(bytes + 40, 0, 8);
    assert_int_equal(gw_wire_decode(bytes, length, &hdr), GW_ERR_MALFORMED);
}

/* Byte 41; and the flags that say that there are no values must be right about that. */
static void wire_decode__knows_the_aggregation_flags_of_each_kind(void **state)
{
    (void)state;
    static const enum sample samples[] = {GRAD, PARAM, PARAM_REQUEST};
    for (size_t i = 0; i < GW_COUNT_OF(samples); i++) {
        uint8_t bytes[GW_WIRE_HDR_MAX] = {0};
        uint32_t length = make_sample(samples[i], bytes);
        uint8_t known = samples[i] == GRAD ? grad_flags : param_flags;
        for (uint32_t flags = 0; flags < 256; flags++) {
            struct gw_wire_hdr hdr;
            bool has_values = samples[i] != PARAM_REQUEST;
            bool is_empty = samples[i] != GRAD && flags & empty_flags;
            bool good = (flags & ~known) == 0 && has_values == !is_empty;
            bytes[41] = (uint8_t)flags;
            assert_int_equal(receive(bytes, length, &hdr), good ? GW_OK : GW_ERR_MALFORMED);
            if (good)
                assert_int_equal(hdr.agg.agg_flags, flags);
        }
    }
}

/* Bytes 42 and 43: all that they can say. */
static void wire_decode__reads_every_place_and_no_reserved_bit(void **state)
{
    (void)state;
    uint8_t bytes[GW_WIRE_HDR_MAX] = {0};
    uint32_t length = make_sample(GRAD, bytes);
    for (uint32_t place = 0; place < 65536; place++) {
        struct gw_wire_hdr hdr;
        bytes[42] = (uint8_t)(place >> 8);
        bytes[43] = (uint8_t)place;
        assert_int_equal(receive(bytes, length, &hdr), place < 4096 ? GW_OK : GW_ERR_MALFORMED);
        if (place >= 4096)
            continue;
        assert_int_equal(hdr.agg.level, place / 1024);
        assert_int_equal(hdr.agg.above[0], place / 32 % 32);
        assert_int_equal(hdr.agg.above[1], place % 32);
    }
}

/* Bytes 37 to 39: the operation, and what is reserved. */
static void wire_decode__knows_the_operations_of_job_control(void **state)
{
    (void)state;
    uint8_t bytes[GW_WIRE_HDR_MAX] = {0};
    uint32_t length = make_sample(JOB, bytes);
    struct gw_wire_hdr hdr;
    for (uint32_t op = 0; op < 256; op++) {
        bytes[37] = (uint8_t)op;
        assert_int_equal(receive(bytes, length, &hdr), op < 11 ? GW_OK : GW_ERR_MALFORMED);
        if (op < 11)
            assert_int_equal(hdr.job.op, op);
    }
    bytes[37] = 0;
    for (uint32_t reserved = 1; reserved < 65536; reserved++) {
        bytes[38] = (uint8_t)(reserved >> 8);
        bytes[39] = (uint8_t)reserved;
        assert_int_equal(receive(bytes, length, &hdr), GW_ERR_MALFORMED);
    }
}

/* Of which byte 3 has an option in JOIN alone. */
static void wire_decode__knows_options_of_join_alone(void **state)
{
    (void)state;
    uint8_t bytes[GW_WIRE_HDR_MAX] = {0}, again[GW_WIRE_HDR_MAX];
    uint32_t length = make_sample(JOB, bytes);
    struct gw_wire_hdr hdr;
    for (uint32_t op = 0; op < GW_WIRE_JOB_OPS; op++)
        for (uint32_t flags = 0; flags < 256; flags++) {
            bool good = flags == 0 || (op == GW_WIRE_JOB_JOIN && flags % 8 == 0);
            bytes[37] = (uint8_t)op;
            bytes[3] = (uint8_t)flags;
            assert_int_equal(receive(bytes, length, &hdr), good ? GW_OK : GW_ERR_MALFORMED);
            if (!good)
                continue;
            assert_int_equal(hdr.flags, flags);
            assert_int_equal(gw_wire_encode(&hdr, again), length);
            assert_memory_equal(again, bytes, length);
        }
}

static void wire_version__tells_ours_from_others(void **state)
{
    (void)state;
    uint8_t bytes[GW_WIRE_HDR_MAX];
    uint32_t length = make_sample(ACK, bytes);
    assert_int_equal(gw_wire_version(bytes, length), GW_WIRE_VERSION);
    bytes[2] = 0xb1;
    assert_int_equal(gw_wire_version(bytes, length), 11);
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
        'G',  'W',  0xb1, 8,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,
        11,   12,   13,   14,   15,   16,   0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
        0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x2b, 0x2c,
    };
    uint8_t bytes[GW_WIRE_HDR_MAX];
    assert_int_equal(gw_wire_encode(&hdr, bytes), GW_WIRE_ANSWER_SIZE);
    assert_memory_equal(bytes, expected, sizeof(expected));
}

static void wire_encode__lays_a_gradient_out_as_drawn(void **state)
{
    (void)state;
    struct gw_wire_hdr hdr = {
        .cookie = UINT64_C(0x0102030405060708),
        .src = 0x090a0b0c,
        .dst = 0x0d0e0f10,
        .flow = 0x11121314,
        .seq = 0x15161718,
        .kind = GW_WIRE_GRAD,
    };
    hdr.agg.key = 0x191a1b1c;
    hdr.agg.bitmap = 0x1d1e1f20;
    hdr.agg.epoch = 0x2122;
    hdr.agg.index = 0x2324;
    hdr.agg.values = 1;
    hdr.agg.scale = 0x25;
    hdr.agg.agg_flags = GW_WIRE_AGG_RESEND | GW_WIRE_AGG_ECN;
    hdr.agg.bound = 45;
    hdr.agg.level = 2;
    hdr.agg.above[0] = 17;
    hdr.agg.above[1] = 9;
    static const uint8_t expected[GW_WIRE_AGG_SIZE] = {
        'G',  'W',  0xb3, 45,   1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,
        12,   13,   14,   15,   16,   0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a,
        0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x09, 0x0a, 0x29,
    };
    uint8_t bytes[GW_WIRE_HDR_MAX];
    assert_int_equal(gw_wire_encode(&hdr, bytes), GW_WIRE_AGG_SIZE);
    assert_memory_equal(bytes, expected, sizeof(expected));
}

static void wire_encode__lays_job_control_out_as_drawn(void **state)
{
    (void)state;
    struct gw_wire_hdr hdr = {
        .cookie = UINT64_C(0x0102030405060708),
        .src = 0x090a0b0c,
        .dst = 0x0d0e0f10,
        .flow = 0x11121314,
        .seq = 0x15161718,
        .kind = GW_WIRE_JOB,
        .job = {.key = 0x191a1b1c,
                .word = {0x25262728, 0x292a2b2c, 0x2d2e2f30},
                .epoch = 0x1d1e,
                .index = 0x1f20,
                .scale = 0x21,
                .op = 10},
    };
    static const uint8_t expected[GW_WIRE_JOB_SIZE] = {
        'G',  'W',  0xb5, 0,    1,    2,    3,    4,    5,    6,    7,    8,    9,
        10,   11,   12,   13,   14,   15,   16,   0x11, 0x12, 0x13, 0x14, 0x15, 0x16,
        0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 10,   0,
        0,    0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f, 0x30,
    };
    uint8_t bytes[GW_WIRE_HDR_MAX];
    assert_int_equal(gw_wire_encode(&hdr, bytes), GW_WIRE_JOB_SIZE);
    assert_memory_equal(bytes, expected, sizeof(expected));
}

static void wire_encode__lays_a_notice_out_as_drawn(void **state)
{
    (void)state;
    struct gw_wire_hdr hdr = {
        .cookie = UINT64_C(0x0102030405060708),
        .src = 0x090a0b0c,
        .dst = 0x0d0e0f10,
        .flow = 0x11121314,
        .seq = 0x15161718,
        .kind = GW_WIRE_NOTICE,
        .flags = 6,
        .notice.job = 0x191a1b1c,
    };
    static const uint8_t expected[GW_WIRE_NOTICE_SIZE] = {
        'G', 'W', 0xb9, 6,  1,  2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,
        13,  14,  15,   16, 17, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c,
    };
    uint8_t bytes[GW_WIRE_HDR_MAX];
    assert_int_equal(gw_wire_encode(&hdr, bytes), GW_WIRE_NOTICE_SIZE);
    assert_memory_equal(bytes, expected, sizeof(expected));
}

static void wire_encode__lays_a_hail_out_as_drawn(void **state)
{
    (void)state;
    struct gw_wire_hdr hdr = {
        .cookie = UINT64_C(0x0102030405060708),
        .sent_at = UINT64_C(0x191a1b1c1d1e),
        .src = 0x090a0b0c,
        .dst = 0x0d0e0f10,
        .flow = 0x11121314,
        .seq = 0x15161718,
        .kind = GW_WIRE_HAIL,
        .hail = {.word = {0x21222324, 0x25262728},
                 .index = 0x1f20,
                 .number = 0x2a2b,
                 .op = 6,
                 .marks = 0x29},
    };
    static const uint8_t expected[GW_WIRE_HAIL_SIZE] = {
        'G',  'W',  0xba, 0,    1,    2,    3,    4,    5,    6,    7,    8,
        9,    10,   11,   12,   13,   14,   15,   16,   0x11, 0x12, 0x13, 0x14,
        0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20,
        0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 6,    0x29, 0x2a, 0x2b,
    };
    uint8_t bytes[GW_WIRE_HDR_MAX];
    assert_int_equal(gw_wire_encode(&hdr, bytes), GW_WIRE_HAIL_SIZE);
    assert_memory_equal(bytes, expected, sizeof(expected));
}

/* Byte 44 of a hail: the operation. */
static void wire_decode__knows_the_operations_of_hails(void **state)
{
    (void)state;
    uint8_t bytes[GW_WIRE_HDR_MAX] = {0};
    uint32_t length = make_sample(HAIL, bytes);
    struct gw_wire_hdr hdr;
    for (uint32_t op = 0; op < 256; op++) {
        bytes[44] = (uint8_t)op;
        assert_int_equal(receive(bytes, length, &hdr), op < 7 ? GW_OK : GW_ERR_MALFORMED);
        if (op < 7)
            assert_int_equal(hdr.hail.op, op);
    }
}

/* The bits as drawn: signal 2, number 4, ECN 2. */
static void wire_tos__says_signal_number_and_ecn(void **state)
{
    (void)state;
    static const uint8_t upper[] = {
        [GW_WIRE_SIGNAL_NONE] = 0x00,
        [GW_WIRE_SIGNAL_ANSWER] = 0x40,
        [GW_WIRE_SIGNAL_START] = 0x80,
        [GW_WIRE_SIGNAL_HEAD] = 0xc0,
    };
    assert_int_equal(gw_wire_tos(GW_WIRE_SIGNAL_START, 8, 2), 0xa2); /* 40 packets, ECT(0) */
    for (uint32_t i = 0; i < 256; i++) {
        enum gw_wire_signal signal = (enum gw_wire_signal)(i / 64);
        uint8_t number = i / 4 % 16, ecn = i % 4;
        uint8_t tos = gw_wire_tos(signal, number, ecn);
        assert_int_equal(tos, upper[signal] + 4 * number + ecn);
        assert_int_equal(gw_wire_tos_signal(tos), signal);
        assert_int_equal(gw_wire_tos_number(tos), number);
        assert_int_equal(gw_wire_tos_ecn(tos), ecn);
        assert_int_equal(gw_wire_tos_is_head(tos), signal == GW_WIRE_SIGNAL_HEAD && number < 8);
    }
}

/* DSCP that the network wrote, or a signal, is no class. */
static void wire_tos__foreign_dscp_is_best_effort(void **state)
{
    (void)state;
    for (uint32_t tos = 0; tos < 256; tos++)
        assert_int_equal(gw_wire_tos_class((uint8_t)tos), tos < 8 << 2 ? tos / 4 : 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wire_decode__returns_what_was_encoded),
        cmocka_unit_test(wire_decode__accepts_one_encoding_only),
        cmocka_unit_test(wire_validate__accepts_one_length_per_packet),
        cmocka_unit_test(wire_decode__counts_values_by_the_length),
        cmocka_unit_test(wire_validate__refuses_every_change_of_magic_version_and_kind),
        cmocka_unit_test(wire_validate__knows_the_flags_of_each_kind),
        cmocka_unit_test(wire_decode__refuses_contradictions),
        cmocka_unit_test(wire_decode__refuses_an_empty_mask),
        cmocka_unit_test(wire_decode__knows_the_aggregation_flags_of_each_kind),
        cmocka_unit_test(wire_decode__reads_every_place_and_no_reserved_bit),
        cmocka_unit_test(wire_decode__knows_the_operations_of_job_control),
        cmocka_unit_test(wire_decode__knows_options_of_join_alone),
        cmocka_unit_test(wire_version__tells_ours_from_others),
        cmocka_unit_test(wire_encode__is_big_endian),
        cmocka_unit_test(wire_encode__lays_a_gradient_out_as_drawn),
        cmocka_unit_test(wire_encode__lays_job_control_out_as_drawn),
        cmocka_unit_test(wire_encode__lays_a_notice_out_as_drawn),
        cmocka_unit_test(wire_encode__lays_a_hail_out_as_drawn),
        cmocka_unit_test(wire_decode__knows_the_operations_of_hails),
        cmocka_unit_test(wire_tos__says_signal_number_and_ecn),
        cmocka_unit_test(wire_tos__foreign_dscp_is_best_effort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
