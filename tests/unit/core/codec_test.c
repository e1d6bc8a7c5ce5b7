/* Packets survive the way through bytes, field by field. */
#include "random_pkt.h"
#include "support.h"

#include "base/error.h"
#include "base/prng.h"
#include "core/codec.h"
#include "core/job.h"
#include "wire/attach.h"

enum {
    ROUNDS = 20000,
    OVERHEAD = 28,
    PAYLOAD_MAX = 9000,
};

static const uint64_t seed = 31;
static const struct gw_codec codec = {.cookie = UINT64_C(0xfeedface12345678), .overhead = OVERHEAD};

static void assert_same(const struct gw_pkt *a, const struct gw_pkt *b)
{
    assert_int_equal(a->q.rank, b->q.rank);
    assert_int_equal(a->q.key, b->q.key);
    assert_int_equal(a->q.class, b->q.class);
    assert_int_equal(a->q.ecn, b->q.ecn);
    assert_int_equal(a->q.flags, b->q.flags);
    assert_int_equal(a->q.kind, b->q.kind);
    assert_int_equal(a->src, b->src);
    assert_int_equal(a->dst, b->dst);
    assert_int_equal(a->flow, b->flow);
    assert_true(a->sent_at == b->sent_at);
    assert_int_equal(a->seq, b->seq);
    assert_int_equal(a->entropy, b->entropy);
    assert_int_equal(a->echo_entropy, b->echo_entropy);
    /* The union includes what the kind does not use. */
    _Static_assert(sizeof(a->agg) == sizeof(a->job), "union");
    _Static_assert(sizeof(a->agg) == sizeof(a->data) && sizeof(a->agg) == sizeof(a->ack), "union");
    assert_memory_equal(&a->agg, &b->agg, sizeof(a->agg));
}

/* The clock starts an hour before it wraps, and passes the wrap half way. */
static void codec_decode__returns_what_was_encoded(void **state)
{
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    struct gw_prng prng = gw_prng_derive(seed, 0);
    gw_time now = (gw_time)0 - 3600 * GW_S;
    uint32_t kinds = 0;
    for (int i = 0; i < ROUNDS; i++, now += 7200 * GW_S / ROUNDS) {
        struct gw_pkt in = gw_random_pkt(&prng, PAYLOAD_MAX, now), out;
        struct gw_frame frame;
        memset(&out, 0xaa, sizeof(out));
        out.q.next = 77;
        gw_codec_encode(&codec, &in, &frame);
        struct gw_frame arrived = {
            .length = frame.length, .entropy = frame.entropy, .tos = frame.tos};
        memcpy(arrived.hdr, frame.hdr, frame.hdr_size);
        assert_int_equal(gw_codec_decode(&codec, &arrived, now, &out), GW_OK);
        assert_same(&in, &out);
        assert_int_equal(arrived.hdr_size, frame.hdr_size);
        assert_int_equal(out.q.size, frame.length + OVERHEAD);
        assert_int_equal(out.q.next, 77);
        assert_int_equal(out.buf, GW_BUF_NONE);
        kinds |= 1u << in.q.kind;
    }
    assert_int_equal(kinds, (1u << GW_PKT_KINDS) - 1 - (1u << GW_ATTACH_KIND));
}

static void codec_encode__sizes_follow_from_kind_and_payload(void **state)
{
    (void)state;
    struct gw_frame frame;
    struct gw_pkt pkt = {.q.kind = GW_PKT_DATA, .q.flags = GW_PKT_TRIMMABLE};
    pkt.data.total = 1;
    pkt.data.len = pkt.data.mss = 1000;
    gw_codec_encode(&codec, &pkt, &frame);
    assert_int_equal(frame.hdr_size, GW_WIRE_DATA_SIZE);
    assert_int_equal(frame.length, GW_WIRE_DATA_SIZE + 1000);
    pkt.q.flags |= GW_PKT_TRIMMED;
    gw_codec_encode(&codec, &pkt, &frame);
    assert_int_equal(frame.length, GW_WIRE_DATA_SIZE);

    struct gw_pkt ack = {.q.kind = GW_PKT_ACK};
    gw_codec_encode(&codec, &ack, &frame);
    assert_int_equal(frame.length, GW_WIRE_ANSWER_SIZE);
    ack.ack.mask[1] = 4;
    gw_codec_encode(&codec, &ack, &frame);
    assert_int_equal(frame.length, GW_WIRE_ANSWER_MASK_SIZE);

    struct gw_pkt job = {.q.kind = GW_PKT_JOB, .agg_flags = GW_JOB_JOIN};
    gw_codec_encode(&codec, &job, &frame);
    assert_int_equal(frame.length, GW_WIRE_JOB_SIZE);

    struct gw_pkt notice = {.q.kind = GW_PKT_NOTICE};
    gw_codec_encode(&codec, &notice, &frame);
    assert_int_equal(frame.length, GW_WIRE_NOTICE_SIZE);

    struct gw_pkt hail = {.q.kind = GW_PKT_HAIL};
    gw_codec_encode(&codec, &hail, &frame);
    assert_int_equal(frame.length, GW_WIRE_HAIL_SIZE);
}

/* A worker's fragment of the default size fills an Ethernet frame over IPv6. */
static void codec_encode__352_values_fit_the_mtu(void **state)
{
    (void)state;
    struct gw_frame frame;
    struct gw_pkt pkt = {.q.kind = GW_PKT_GRAD};
    pkt.agg.values = 352;
    assert_int_equal(gw_codec_payload(&pkt), 1408);
    gw_codec_encode(&codec, &pkt, &frame);
    assert_int_equal(frame.hdr_size, GW_WIRE_AGG_SIZE);
    assert_int_equal(40 + 8 + frame.length, 1500);

    struct gw_pkt request = {.q.kind = GW_PKT_PARAM, .agg_flags = GW_AGG_REQUEST};
    gw_codec_encode(&codec, &request, &frame);
    assert_int_equal(frame.length, GW_WIRE_AGG_SIZE);
}

/* A burst of 37 packets, and its head, as switches between see them. */
static void codec_encode__signals_in_the_tos_byte(void **state)
{
    (void)state;
    struct gw_frame frame;
    struct gw_pkt notice = {.q.kind = GW_PKT_NOTICE, .q.class = 2, .q.ecn = GW_ECN_ECT0};
    notice.notice.units = 8;
    gw_codec_encode(&codec, &notice, &frame);
    assert_int_equal(frame.tos, 0x80 | 8 << 2 | GW_ECN_ECT0);
    assert_int_equal(frame.hdr[3], 2);
    notice.notice.is_answer = true;
    notice.q.class = GW_CLASS_CONTROL;
    gw_codec_encode(&codec, &notice, &frame);
    assert_int_equal(frame.tos, 0x40 | 8 << 2 | GW_ECN_ECT0);
    assert_int_equal(frame.hdr[3], GW_CLASS_CONTROL);

    struct gw_pkt head = {.q.kind = GW_PKT_DATA, .q.class = 3, .q.flags = GW_PKT_HEAD};
    head.data.total = head.data.len = head.data.mss = 1;
    gw_codec_encode(&codec, &head, &frame);
    assert_int_equal(frame.tos, 0xc0 | 3 << 2);
    assert_int_equal(frame.hdr[3], GW_WIRE_LAST); /* the header does not say it again */
}

static struct gw_pkt with_tos(struct gw_pkt pkt, uint8_t tos)
{
    struct gw_pkt out;
    struct gw_frame frame;
    gw_codec_encode(&codec, &pkt, &frame);
    frame.tos = tos;
    assert_int_equal(gw_codec_decode(&codec, &frame, 0, &out), GW_OK);
    assert_int_equal(out.q.ecn, tos & 3);
    return out;
}

/* Networks rewrite the DSCP: all that they can make of ours. */
static void codec_decode__any_dscp_is_a_packet_of_ours(void **state)
{
    (void)state;
    struct gw_pkt data = {.q.kind = GW_PKT_DATA, .q.class = 1}, ack = {.q.kind = GW_PKT_ACK};
    struct gw_pkt grad = {.q.kind = GW_PKT_GRAD};
    data.data.total = data.data.len = data.data.mss = 1;
    grad.agg.values = 1;
    for (uint32_t tos = 0; tos < 256; tos++) {
        uint8_t number = tos / 4 % 16;
        bool is_head = tos / 64 == 3 && number < GW_CLASSES;
        bool is_plain = tos / 64 == 0 && number < GW_CLASSES;
        struct gw_pkt out = with_tos(data, (uint8_t)tos);
        assert_int_equal(out.q.flags, is_head ? GW_PKT_HEAD : 0);
        assert_int_equal(out.q.class, is_head || is_plain ? number : 0);
        out = with_tos(grad, (uint8_t)tos);
        assert_int_equal(out.q.flags, is_head ? GW_PKT_HEAD : 0);
        assert_int_equal(out.q.class, is_head || is_plain ? number : 0);
        out = with_tos(ack, (uint8_t)tos); /* nothing of an answer is a head */
        assert_int_equal(out.q.flags, 0);
        assert_int_equal(out.q.class, is_plain ? number : 0);
    }
}

/* A notice is one whatever became of its threshold. */
static void codec_decode__a_bleached_notice_asks_for_nothing(void **state)
{
    (void)state;
    for (uint8_t class = 0; class < GW_CLASSES; class ++) {
        struct gw_pkt pkt = {.q.kind = GW_PKT_NOTICE, .q.class = class, .seq = 5};
        pkt.notice.job = 77;
        pkt.notice.units = 8;
        pkt.notice.is_answer = class == GW_CLASS_CONTROL;
        for (uint32_t tos = 0; tos < 256; tos++) {
            bool is_own = tos / 64 == (pkt.notice.is_answer ? 1 : 2);
            struct gw_pkt out = with_tos(pkt, (uint8_t)tos);
            assert_int_equal(out.q.kind, GW_PKT_NOTICE);
            assert_int_equal(out.q.class, class);
            assert_int_equal(out.q.flags, 0);
            assert_int_equal(out.seq, 5);
            assert_int_equal(out.notice.job, 77);
            assert_int_equal(out.notice.is_answer, pkt.notice.is_answer);
            assert_int_equal(out.notice.units, is_own ? tos / 4 % 16 : 0);
        }
    }
}

/* What a process knows of a payload it knows itself: nobody can say it on the wire. */
static void codec_decode__knows_nothing_of_marks(void **state)
{
    (void)state;
    struct gw_pkt pkt = {.q.kind = GW_PKT_GRAD, .agg = {.bitmap = 1, .values = 1}}, out;
    struct gw_frame frame, same;
    gw_codec_encode(&codec, &pkt, &same);
    pkt.agg.is_unmarked = true;
    gw_codec_encode(&codec, &pkt, &frame);
    assert_memory_equal(frame.hdr, same.hdr, same.hdr_size);
    assert_int_equal(gw_codec_decode(&codec, &frame, 0, &out), GW_OK);
    assert_false(out.agg.is_unmarked);
}

/* A receiver's clock has nothing to do with the sender's; the echo must still come back exactly. */
static void codec_decode__an_echo_survives_foreign_clocks(void **state)
{
    (void)state;
    gw_time sender_now = 900 * GW_S + 12345, receiver_now = 86400 * GW_S + 999;
    struct gw_pkt data = {.q.kind = GW_PKT_DATA, .sent_at = sender_now}, arrived, back;
    struct gw_frame frame;
    data.data.total = data.data.len = data.data.mss = 1;
    gw_codec_encode(&codec, &data, &frame);
    assert_int_equal(gw_codec_decode(&codec, &frame, receiver_now, &arrived), GW_OK);
    struct gw_pkt ack = {.q.kind = GW_PKT_ACK, .sent_at = arrived.sent_at};
    gw_codec_encode(&codec, &ack, &frame);
    assert_int_equal(gw_codec_decode(&codec, &frame, sender_now + 50 * GW_US, &back), GW_OK);
    assert_true(back.sent_at == sender_now);
}

static void codec_decode__refuses_what_is_not_for_us(void **state)
{
    (void)state;
    static const struct {
        uint8_t at, value;
        int error;
    } cases[] = {
        {0, 'X', GW_ERR_VERSION},                        /* magic */
        {2, (GW_WIRE_VERSION + 1) << 4, GW_ERR_VERSION}, /* the next version */
        {4, 0, GW_ERR_UNKNOWN},                          /* cookie of another job */
        {11, 0, GW_ERR_UNKNOWN},
        {2, GW_WIRE_VERSION << 4 | 15, GW_ERR_MALFORMED}, /* kind */
        {3, 0x80, GW_ERR_MALFORMED},                      /* flag */
        {39, 0, GW_ERR_MALFORMED},                        /* last packet without payload */
    };
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_pkt pkt = {.q.kind = GW_PKT_DATA}, out;
        struct gw_frame frame;
        pkt.data.total = pkt.data.len = pkt.data.mss = 1;
        gw_codec_encode(&codec, &pkt, &frame);
        frame.hdr[cases[i].at] = cases[i].value;
        assert_int_equal(gw_codec_decode(&codec, &frame, 0, &out), cases[i].error);
    }
}

static bool is_agg(const struct gw_pkt *pkt)
{
    return pkt->q.kind == GW_PKT_GRAD || pkt->q.kind == GW_PKT_PARAM;
}

/* One of a kind of which others may be like it. */
static struct gw_pkt random_like(struct gw_prng *prng)
{
    struct gw_pkt pkt;
    do {
        pkt = gw_random_pkt(prng, PAYLOAD_MAX, 0);
    } while (!is_agg(&pkt) && pkt.q.kind != GW_PKT_DATA);
    return pkt;
}

/* Some packet of the same message. */
static void draw_place(struct gw_prng *prng, struct gw_pkt *pkt)
{
    pkt->seq = gw_prng_below(prng, pkt->data.total);
    bool is_last = pkt->seq + 1 == pkt->data.total;
    pkt->data.len = is_last ? (uint16_t)(1 + gw_prng_below(prng, pkt->data.mss)) : pkt->data.mss;
}

/* The one behind it in a train; now and then another one. */
static struct gw_pkt random_next(struct gw_prng *prng, const struct gw_pkt *like)
{
    struct gw_pkt next = *like, other = random_like(prng);
    next.buf = 3;
    if (is_agg(like)) {
        next.seq++;
        next.index = (uint16_t)gw_prng_next(prng);
    } else {
        draw_place(prng, &next);
    }
    switch (gw_prng_below(prng, 16)) {
    case 0:
        return other;
    case 1:
        if (next.q.kind == other.q.kind) {
            next.agg = other.agg; /* or what data has there */
            next.agg_flags = is_agg(like) ? other.agg_flags : next.agg_flags;
        }
        if (!is_agg(&next))
            draw_place(prng, &next);
        break;
    case 2:
        next.key ^= 1;
        break;
    case 3:
        next.scale ^= 1;
        break;
    case 4:
        next.src ^= UINT32_C(1) << 31;
        break;
    case 5:
        next.entropy++;
        break;
    case 6:
        next.q.class ^= 1;
        break;
    case 7:
        next.epoch ^= 1 << 15;
        break;
    }
    next.q.size = GW_WIRE_DATA_SIZE + gw_codec_payload(&next) + OVERHEAD;
    return next;
}

static void codec_like__says_what_translation_says(void **state)
{
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    struct gw_prng prng = gw_prng_derive(seed, 1);
    uint32_t alike = 0, others = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct gw_pkt like = random_like(&prng), next = random_next(&prng, &like);
        struct gw_frame first, frame;
        uint8_t quick[GW_WIRE_DATA_SIZE];
        gw_codec_encode(&codec, &like, &first);
        gw_codec_encode(&codec, &next, &frame);
        if (!gw_codec_encode_like(&next, &like, first.hdr, quick)) {
            others++;
            continue;
        }
        alike++;
        assert_int_equal(frame.hdr_size, sizeof(quick));
        assert_memory_equal(quick, frame.hdr, sizeof(quick));
        assert_int_equal(first.length, frame.length);
        assert_int_equal(first.entropy, frame.entropy);
        assert_int_equal(first.tos, frame.tos);
    }
    assert_true(alike > ROUNDS / 4 && others > ROUNDS / 4);
}

/* Whatever a stranger changes in the header. */
static void codec_decode_like__says_what_decoding_says(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(seed, 2);
    uint32_t alike = 0, refused = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct gw_pkt pkt = random_like(&prng), like, out, quick = {.q.next = 77, .buf = 5};
        struct gw_frame first;
        gw_codec_encode(&codec, &pkt, &first);
        assert_int_equal(gw_codec_decode(&codec, &first, 0, &like), GW_OK);
        struct gw_frame frame = first;
        for (uint64_t n = gw_prng_below(&prng, 3); n > 0; n--)
            frame.hdr[gw_prng_below(&prng, GW_WIRE_DATA_SIZE)] ^=
                (uint8_t)(1u << gw_prng_below(&prng, 8));
        int code = gw_codec_decode(&codec, &frame, 0, &out);
        refused += code != GW_OK;
        if (!gw_codec_decode_like(frame.hdr, &like, first.hdr, &quick))
            continue;
        alike++;
        assert_int_equal(code, GW_OK);
        assert_same(&quick, &out);
        assert_int_equal(quick.q.size, out.q.size);
        assert_int_equal(quick.q.in, 0);
        assert_int_equal(quick.q.next, 77);
        assert_int_equal(quick.buf, GW_BUF_NONE);
    }
    assert_true(alike > ROUNDS / 4 && refused > ROUNDS / 20);
}

static void codec_like__is_for_kinds_with_payload(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(seed, 3);
    for (int i = 0; i < ROUNDS; i++) {
        struct gw_pkt pkt = gw_random_pkt(&prng, PAYLOAD_MAX, 0), out;
        struct gw_frame frame;
        uint8_t quick[GW_WIRE_DATA_SIZE];
        if (is_agg(&pkt) || pkt.q.kind == GW_PKT_DATA)
            continue;
        gw_codec_encode(&codec, &pkt, &frame);
        assert_false(gw_codec_encode_like(&pkt, &pkt, frame.hdr, quick));
        assert_false(gw_codec_decode_like(frame.hdr, &pkt, frame.hdr, &out));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codec_decode__returns_what_was_encoded),
        cmocka_unit_test(codec_encode__sizes_follow_from_kind_and_payload),
        cmocka_unit_test(codec_encode__352_values_fit_the_mtu),
        cmocka_unit_test(codec_encode__signals_in_the_tos_byte),
        cmocka_unit_test(codec_decode__any_dscp_is_a_packet_of_ours),
        cmocka_unit_test(codec_decode__a_bleached_notice_asks_for_nothing),
        cmocka_unit_test(codec_decode__knows_nothing_of_marks),
        cmocka_unit_test(codec_decode__an_echo_survives_foreign_clocks),
        cmocka_unit_test(codec_decode__refuses_what_is_not_for_us),
        cmocka_unit_test(codec_like__says_what_translation_says),
        cmocka_unit_test(codec_decode_like__says_what_decoding_says),
        cmocka_unit_test(codec_like__is_for_kinds_with_payload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
