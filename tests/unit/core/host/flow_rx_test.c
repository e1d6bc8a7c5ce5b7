/* The receiver half of a flow, with the sender played by the test. */
#include "unit/core/host/endpoint_fixture.h"

#include "base/prng.h"

enum {
    SPAN = 64,
    FLOW = 7,
};

static void open_ack_every(struct endpoint_fixture *f, uint32_t ack_every)
{
    struct gw_endpoint_cfg cfg = fixture_cfg();
    cfg.span_max = SPAN;
    cfg.ack_every = ack_every;
    cfg.ack_delay = 5 * GW_US;
    cfg.rx_flows_max = 2;
    fixture_open(f, &cfg, "1000");
}

/* Feeds packet `seq` of FLOW. */
static void feed(struct endpoint_fixture *f, uint32_t seq, uint32_t total)
{
    struct gw_pkt pkt = fixture_data(FLOW, seq, total);
    fixture_input(f, &pkt);
}

/* The one answer that waits. */
static struct gw_pkt answer(struct endpoint_fixture *f)
{
    struct gw_pkt pkts[2];
    assert_int_equal(fixture_pull(f, pkts, 2), 1);
    return pkts[0];
}

static void no_answer(struct endpoint_fixture *f)
{
    struct gw_pkt pkt;
    assert_int_equal(fixture_pull(f, &pkt, 1), 0);
}

static uint64_t mask_of(const struct gw_pkt *ack)
{
    return (uint64_t)ack->ack.mask[1] << 32 | ack->ack.mask[0];
}

static void flow_rx_data__is_acknowledged_with_an_echo(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_ack_every(&f, 1);
    struct gw_pkt data = fixture_data(FLOW, 0, 2);
    data.q.ecn = GW_ECN_CE;
    fixture_input(&f, &data);
    struct gw_pkt ack = answer(&f);
    assert_int_equal(ack.q.kind, GW_PKT_ACK);
    assert_int_equal(ack.q.class, GW_CLASS_CONTROL);
    assert_int_equal(ack.q.size, HDR);
    assert_int_equal(ack.q.ecn, GW_ECN_NOT_ECT);
    assert_int_equal(ack.q.flags, GW_PKT_ECHO_CE);
    assert_int_equal(ack.q.key, gw_flow_key(OURS, THEIRS, FLOW));
    assert_int_equal(ack.src, OURS);
    assert_int_equal(ack.dst, THEIRS);
    assert_int_equal(ack.flow, FLOW);
    assert_int_equal(ack.seq, 0);
    assert_true(ack.sent_at == data.sent_at);
    assert_int_equal(ack.echo_entropy, data.entropy);
    assert_int_equal(ack.ack.cum, 1);
    assert_true(mask_of(&ack) == 0);
    feed(&f, 1, 2);
    ack = answer(&f);
    assert_int_equal(ack.q.flags, 0); /* no CE */
    assert_int_equal(ack.ack.cum, 2);
    struct gw_event event = fixture_event(&f);
    assert_int_equal(event.kind, GW_EVENT_RECEIVED);
    assert_int_equal(event.flow, FLOW);
    assert_int_equal(event.peer, THEIRS);
    assert_int_equal(event.tag, FLOW);
    assert_true(event.bytes == 2 * MTU && event.at == f.now);
    fixture_close(&f);
}

/* The way back has its own entropies. */
static void flow_rx_ack__draws_its_own_entropy(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    uint16_t entropies[16];
    uint32_t different = 0;
    open_ack_every(&f, 1);
    for (uint32_t i = 0; i < 16; i++) {
        feed(&f, i, 17);
        entropies[i] = answer(&f).entropy;
        different += i > 0 && entropies[i] != entropies[i - 1];
    }
    assert_true(different >= 14);
    fixture_close(&f);
}

/* Per flow, ACKs and NACKs alike, whatever is sent to others. */
static void flow_rx_ack__takes_entropies_in_turn(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    cfg.ack_entropies = 5;
    fixture_open(&f, &cfg, "1000");
    for (uint32_t i = 0; i < 12; i++) {
        struct gw_pkt data = fixture_data(FLOW, i, 13);
        data.q.flags |= i % 3 == 1 ? GW_PKT_TRIMMED : 0;
        data.q.size = i % 3 == 1 ? HDR : data.q.size;
        fixture_input(&f, &data);
        struct gw_pkt back = answer(&f);
        assert_int_equal(back.q.kind, i % 3 == 1 ? GW_PKT_NACK : GW_PKT_ACK);
        assert_int_equal(back.entropy, i % 5);
        if (i < 4) {
            data = fixture_data(FLOW + 1, i, 13);
            fixture_input(&f, &data);
            assert_int_equal(answer(&f).entropy, i);
        }
    }
    fixture_close(&f);
}

static void flow_rx_trimmed__is_answered_by_a_nack(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_ack_every(&f, 8);
    struct gw_pkt data = fixture_data(FLOW, 0, 1);
    data.q.flags |= GW_PKT_TRIMMED;
    data.q.size = HDR;
    fixture_input(&f, &data);
    struct gw_pkt nack = answer(&f); /* at once, though ACKs are held back */
    assert_int_equal(nack.q.kind, GW_PKT_NACK);
    assert_int_equal(nack.seq, 0);
    assert_true(nack.sent_at == data.sent_at);
    assert_int_equal(nack.echo_entropy, data.entropy);
    assert_int_equal(nack.ack.cum, 0);
    fixture_no_event(&f);
    feed(&f, 0, 1);
    assert_int_equal(answer(&f).q.kind, GW_PKT_ACK);
    fixture_event(&f);
    /* A trimmed duplicate is a duplicate. */
    fixture_input(&f, &data);
    assert_int_equal(answer(&f).q.kind, GW_PKT_ACK);
    assert_true(fixture_stats(&f)->nacks_sent == 1 && fixture_stats(&f)->duplicates == 1);
    fixture_close(&f);
}

/* RFC 5681, section 4.2: with ack_holes no ACK around a hole is held back; else they all are. */
static void flow_rx_hole__is_told_of_at_once(void **state)
{
    static const uint32_t order[] = {0, 2, 3, 1, 4, 5};
    static const bool at_once[] = {false, true, true, true, false, false};
    (void)state;
    for (int holes = 0; holes < 2; holes++) {
        struct endpoint_fixture f;
        struct gw_endpoint_cfg cfg = fixture_cfg();
        cfg.ack_every = 8;
        cfg.ack_delay = 5 * GW_US;
        cfg.ack_holes = holes;
        fixture_open(&f, &cfg, "1000");
        for (size_t i = 0; i < GW_COUNT_OF(order); i++) {
            struct gw_pkt acks[2];
            feed(&f, order[i], 100);
            assert_int_equal(fixture_pull(&f, acks, 2), holes && at_once[i]);
        }
        f.now += GW_MS;
        gw_node_expire(f.node, f.now);
        fixture_take_ready(&f);
        struct gw_pkt ack = answer(&f);
        assert_true(ack.seq == 5 && ack.ack.cum == 6);
        gw_test_host_close(&f.host);
    }
}

static void flow_rx_duplicate__is_acknowledged_again(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_ack_every(&f, 1);
    feed(&f, 0, 3);
    feed(&f, 2, 3);
    feed(&f, 0, 3); /* below the cumulative number */
    feed(&f, 2, 3); /* above it */
    struct gw_pkt acks[4];
    assert_int_equal(fixture_pull(&f, acks, 4), 4);
    assert_true(fixture_stats(&f)->duplicates == 2);
    assert_int_equal(acks[3].ack.cum, 1);
    feed(&f, 1, 3);
    assert_int_equal(answer(&f).ack.cum, 3);
    assert_true(fixture_event(&f).bytes == 3 * MTU);
    feed(&f, 1, 3); /* after the end: the sender may have missed the ACK */
    assert_int_equal(answer(&f).ack.cum, 3);
    fixture_no_event(&f);
    fixture_close(&f);
}

/* Any order within the span is delivered once, and the cumulative number is the first hole. */
static void flow_rx_order__does_not_matter(void **state)
{
    (void)state;
    struct gw_prng prng = {.state = 11};
    for (uint32_t round = 0; round < 50; round++) {
        struct endpoint_fixture f;
        uint32_t order[SPAN], arrived = 0;
        bool has[SPAN + 1] = {false};
        open_ack_every(&f, 1);
        for (uint32_t i = 0; i < SPAN; i++) {
            uint32_t other = gw_prng_below(&prng, i + 1);
            order[i] = order[other];
            order[other] = i;
        }
        for (uint32_t i = 0; i < SPAN; i++) {
            feed(&f, order[i], SPAN);
            has[order[i]] = true;
            while (has[arrived])
                arrived++;
            assert_int_equal(answer(&f).ack.cum, arrived);
        }
        assert_true(fixture_event(&f).bytes == SPAN * MTU);
        fixture_close(&f);
    }
}

/* Further ahead than the span is refused, without an answer. */
static void flow_rx_order__beyond_the_span_is_refused(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_ack_every(&f, 1);
    feed(&f, SPAN, 200);
    no_answer(&f);
    assert_true(fixture_stats(&f)->refused == 1);
    feed(&f, SPAN - 1, 200);
    assert_int_equal(answer(&f).ack.cum, 0);
    feed(&f, 0, 200);
    answer(&f);
    feed(&f, SPAN, 200);
    assert_int_equal(answer(&f).ack.cum, 1);
    fixture_close(&f);
}

static void flow_rx_coalesce__answers_every_nth(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_ack_every(&f, 4);
    for (uint32_t seq = 0; seq < 10; seq++) {
        feed(&f, seq, 10);
        if (seq % 4 != 3 && seq != 9) {
            no_answer(&f);
            continue;
        }
        struct gw_pkt ack = answer(&f), data = fixture_data(FLOW, seq, 10);
        assert_int_equal(ack.seq, seq);
        assert_int_equal(ack.ack.cum, seq + 1);
        assert_int_equal(ack.echo_entropy, data.entropy);
        assert_true(ack.sent_at == data.sent_at);
        /* Bit 32 is the packet itself. */
        assert_true(mask_of(&ack) == (seq == 9 ? UINT64_C(3) << 31 : UINT64_C(15) << 29));
    }
    assert_true(fixture_stats(&f)->acks_sent == 3);
    fixture_event(&f);
    fixture_close(&f);
}

/* A change of CE flushes what is held, so that each ACK speaks for marked or unmarked packets. */
static void flow_rx_coalesce__separates_marked_packets(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_ack_every(&f, 8);
    for (uint32_t seq = 0; seq < 5; seq++) {
        struct gw_pkt data = fixture_data(FLOW, seq, 9);
        data.q.ecn = seq == 2 || seq == 3 ? GW_ECN_CE : GW_ECN_ECT0;
        fixture_input(&f, &data);
    }
    struct gw_pkt acks[3];
    assert_int_equal(fixture_pull(&f, acks, 3), 2);
    assert_int_equal(acks[0].seq, 1);
    assert_int_equal(acks[0].q.flags, 0);
    assert_true(mask_of(&acks[0]) == UINT64_C(3) << 31);
    assert_int_equal(acks[1].seq, 3);
    assert_int_equal(acks[1].q.flags, GW_PKT_ECHO_CE);
    assert_true(mask_of(&acks[1]) == UINT64_C(3) << 31);
    fixture_close(&f);
}

static void flow_rx_coalesce__obeys_ack_now(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_ack_every(&f, 8);
    feed(&f, 0, 9);
    no_answer(&f);
    struct gw_pkt data = fixture_data(FLOW, 1, 9);
    data.q.flags |= GW_PKT_ACK_NOW;
    fixture_input(&f, &data);
    struct gw_pkt ack = answer(&f);
    assert_true(mask_of(&ack) == UINT64_C(3) << 31);
    fixture_close(&f);
}

static void feed_by(struct endpoint_fixture *f, uint32_t seq, uint16_t entropy)
{
    struct gw_pkt data = fixture_data(FLOW, seq, 400);
    data.entropy = entropy;
    fixture_input(f, &data);
}

/* Of what is below `cum` no mask has to tell, so an ACK can be for more than a mask has room for:
 * not beyond a hole, and not over a change of the way. */
static void flow_rx_coalesce__tells_of_more_than_a_mask_by_cum(void **state)
{
    (void)state;
    enum { EVERY = 96, CHANGE = EVERY + 50, HOLE = CHANGE + 1, BEYOND = HOLE + 1 + 33 };
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    cfg.span_max = 256;
    cfg.ack_every = EVERY;
    cfg.ack_delay = GW_MS;
    fixture_open(&f, &cfg, "1000");
    for (uint32_t seq = 0; seq < EVERY; seq++) {
        no_answer(&f);
        feed_by(&f, seq, 1);
    }
    struct gw_pkt ack = answer(&f);
    assert_true(ack.seq == EVERY - 1 && ack.ack.cum == EVERY);
    assert_true(mask_of(&ack) == (UINT64_C(1) << (GW_ACK_MASK_BEFORE + 1)) - 1);
    for (uint32_t seq = EVERY; seq <= CHANGE; seq++) {
        no_answer(&f);
        feed_by(&f, seq, 1 + (seq == CHANGE));
    }
    ack = answer(&f);
    assert_true(ack.seq == CHANGE - 1 && ack.echo_entropy == 1);
    for (uint32_t seq = HOLE + 1; seq <= BEYOND; seq++) {
        no_answer(&f);
        feed_by(&f, seq, 2);
    }
    ack = answer(&f); /* the mask of BEYOND does not reach the first behind the hole */
    assert_true(ack.seq == BEYOND - 1 && ack.ack.cum == HOLE);
    gw_test_host_close(&f.host);
}

/* The timer counts from the first packet that is held. */
static void flow_rx_coalesce__waits_for_the_delay(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_ack_every(&f, 8);
    feed(&f, 0, 9);
    gw_time first = f.now;
    f.now += GW_US;
    feed(&f, 1, 9);
    assert_true(gw_node_deadline(f.node) == first + 5 * GW_US);
    gw_node_expire(f.node, f.now); /* too early is harmless */
    no_answer(&f);
    fixture_expire(&f);
    assert_true(f.now == first + 5 * GW_US);
    struct gw_pkt ack = answer(&f);
    assert_int_equal(ack.seq, 1);
    assert_int_equal(ack.ack.cum, 2);
    assert_true(gw_node_deadline(f.node) == GW_TIME_NEVER);
    fixture_close(&f);
}

/*
 * Whatever the order, each packet is reported by exactly one ACK, besides cumulative numbers.
 * Packets move by up to two spans of the mask.
 */
static void flow_rx_coalesce__reports_every_packet_once(void **state)
{
    (void)state;
    enum {
        TOTAL = 600,
        ROUNDS = 60,
        SPAN_HERE = 256,
    };
    struct gw_prng prng = {.state = 12};
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct endpoint_fixture f;
        struct gw_endpoint_cfg cfg = fixture_cfg();
        cfg.span_max = SPAN_HERE;
        cfg.ack_every = 2 + gw_prng_below(&prng, 31);
        cfg.ack_delay = GW_US;
        fixture_open(&f, &cfg, "1000");
        uint32_t order[TOTAL], reported[TOTAL] = {0}, reach = 1 + gw_prng_below(&prng, 128);
        for (uint32_t i = 0; i < TOTAL; i++)
            order[i] = i;
        for (uint32_t i = 0; i + 1 < TOTAL; i++) { /* no packet moves by more than `reach` */
            uint32_t block = i / reach * reach,
                     size = TOTAL - block < reach ? TOTAL - block : reach;
            uint32_t other = block + gw_prng_below(&prng, size), kept = order[i];
            order[i] = order[other];
            order[other] = kept;
        }
        for (uint32_t i = 0; i < TOTAL; i++) {
            struct gw_pkt data = fixture_data(FLOW, order[i], TOTAL), acks[4];
            data.q.ecn = gw_prng_below(&prng, 8) == 0 ? GW_ECN_CE : GW_ECN_ECT0;
            fixture_input(&f, &data);
            if (gw_prng_below(&prng, 16) == 0) {
                f.now += GW_US;
                gw_node_expire(f.node, f.now);
            }
            uint32_t count = fixture_pull(&f, acks, 4);
            for (uint32_t a = 0; a < count; a++) {
                assert_true(mask_of(&acks[a]) >> GW_ACK_MASK_BEFORE & 1);
                for (uint32_t bit = 0; bit < GW_ACK_MASK_BITS; bit++)
                    if (mask_of(&acks[a]) >> bit & 1)
                        reported[acks[a].seq - GW_ACK_MASK_BEFORE + bit]++;
            }
        }
        for (uint32_t i = 0; i < TOTAL; i++)
            if (reported[i] != 1)
                fail_msg("round %u: packet %u was reported %u times", round, i, reported[i]);
        assert_true(fixture_stats(&f)->refused == 0);
        fixture_event(&f);
        fixture_close(&f);
    }
}

/* The ACK that is held needs a packet; without one it is lost, and the next one makes up for it. */
static void flow_rx_coalesce__survives_an_empty_pool(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_ack_every(&f, 4);
    feed(&f, 0, 9);
    struct gw_pkt_fifo hoard = fixture_hoard(&f);
    fixture_expire(&f);
    no_answer(&f);
    assert_true(fixture_stats(&f)->pool_empty == 1);
    fixture_give_back(&f, &hoard);
    for (uint32_t seq = 1; seq < 5; seq++)
        feed(&f, seq, 9);
    assert_int_equal(answer(&f).ack.cum, 5);
    fixture_close(&f);
}

static void flow_rx_malformed__is_counted_and_dropped(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_ack_every(&f, 1);
    feed(&f, 0, 3);
    answer(&f);
    const struct gw_pkt good = fixture_data(FLOW, 1, 3);
    struct gw_pkt bad[11];
    for (uint32_t i = 0; i < GW_COUNT_OF(bad); i++)
        bad[i] = good;
    bad[0].seq = 3;                              /* beyond the end */
    bad[1].data.len = 0;                         /* empty */
    bad[2].data.len++;                           /* longer than a full packet */
    bad[3].data.len--;                           /* short, but not the last */
    bad[4].data.total = 4;                       /* not what packet 0 said */
    bad[5].data.mss++;                           /* the same, and a full packet is not full */
    bad[6].data.mss = bad[6].data.len = MTU - 1; /* consistent, but not with packet 0 */
    bad[7].data.total = UINT32_MAX;              /* longer than a message may be */
    bad[8].data.total = 0;
    bad[9].seq = 2;
    bad[9].data.len++;  /* the last one, but longer than a full one */
    bad[10].data.tag++; /* of another message, long after, whose number is the same */
    for (uint32_t i = 0; i < GW_COUNT_OF(bad); i++) {
        fixture_input(&f, &bad[i]);
        no_answer(&f);
        assert_true(fixture_stats(&f)->malformed == i + 1);
    }
    feed(&f, 1, 3);
    assert_int_equal(answer(&f).ack.cum, 2);
    fixture_close(&f);
}

/* Payload goes to its offset in the memory that was posted; without memory it is refused. */
static void flow_rx_payload__goes_to_its_place(void **state)
{
    (void)state;
    enum {
        BYTES = 2 * MTU + 10,
    };
    struct endpoint_fixture f;
    unsigned char sent[3 * MTU], received[BYTES + 1];
    open_ack_every(&f, 1);
    gw_test_fill(sent, sizeof(sent), 5);
    memset(received, 0x55, sizeof(received));
    for (uint32_t attempt = 0; attempt < 2; attempt++) {
        for (uint32_t i = 0; i < 3; i++) {
            uint32_t seq = 2 - i;
            struct gw_pkt *pkt = gw_pkt_claim(&f.host.pool);
            *pkt = fixture_data(FLOW, seq, 3);
            pkt->data.len = seq == 2 ? BYTES - 2 * MTU : MTU;
            pkt->buf = gw_buf_claim(&f.host.bufs);
            memcpy(gw_buf_bytes(&f.host.bufs, pkt->buf), sent + seq * MTU, pkt->data.len);
            gw_node_input(f.node, 0, &pkt, 1, f.now);
            fixture_take_ready(&f);
            struct gw_pkt back = answer(&f);
            assert_int_equal(back.q.kind, attempt == 0 ? GW_PKT_NACK : GW_PKT_ACK);
            assert_int_equal(back.q.flags, attempt == 0 ? GW_PKT_NOT_READY : 0);
            assert_int_equal(back.seq, seq);
        }
        if (attempt == 0) {
            assert_true(fixture_stats(&f)->refused == 3);
            assert_int_equal(gw_endpoint_expect(f.endpoint, THEIRS, FLOW, received, BYTES), GW_OK);
            assert_int_equal(answer(&f).q.flags, GW_PKT_READY);
        }
    }
    assert_true(fixture_event(&f).bytes == BYTES);
    assert_memory_equal(received, sent, BYTES);
    assert_int_equal(received[BYTES], 0x55);
    fixture_close(&f);
}

/* Memory of another peer or tag is not touched, nor written beyond its end. */
static void flow_rx_payload__stays_within_its_memory(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    unsigned char memory[MTU - 1], other[MTU];
    open_ack_every(&f, 1);
    memset(other, 0x55, sizeof(other));
    gw_endpoint_expect(f.endpoint, THEIRS + 1, FLOW, other, sizeof(other));
    gw_endpoint_expect(f.endpoint, THEIRS, FLOW + 1, other, sizeof(other));
    gw_endpoint_expect(f.endpoint, THEIRS, FLOW, memory, sizeof(memory));
    struct gw_pkt *pkt = gw_pkt_claim(&f.host.pool);
    *pkt = fixture_data(FLOW, 0, 1);
    pkt->buf = gw_buf_claim(&f.host.bufs);
    memset(gw_buf_bytes(&f.host.bufs, pkt->buf), 0xaa, MTU);
    gw_node_input(f.node, 0, &pkt, 1, f.now);
    fixture_take_ready(&f);
    assert_int_equal(answer(&f).q.flags, GW_PKT_NOT_READY);
    assert_true(fixture_stats(&f)->refused == 1);
    assert_true(gw_endpoint_expects(f.endpoint, THEIRS, FLOW));
    for (uint32_t i = 0; i < sizeof(other); i++)
        assert_int_equal(other[i], 0x55);
    fixture_close(&f);
}

/* As many messages at once as there are places; a complete one gives up its place, the oldest
 * first.
 */
static void flow_rx_places__are_recycled(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkt;
    open_ack_every(&f, 1); /* two places */
    for (uint32_t flow = 0; flow < 3; flow++) {
        pkt = fixture_data(flow, 0, 2);
        fixture_input(&f, &pkt);
        if (flow < 2)
            answer(&f);
        else
            no_answer(&f); /* both are in use */
    }
    assert_true(fixture_stats(&f)->refused == 1);
    pkt = fixture_data(1, 1, 2);
    fixture_input(&f, &pkt);
    answer(&f);
    assert_int_equal(fixture_event(&f).flow, 1);
    pkt = fixture_data(2, 0, 2);
    fixture_input(&f, &pkt); /* takes the place of message 1 */
    assert_int_equal(answer(&f).flow, 2);
    pkt = fixture_data(0, 1, 2);
    fixture_input(&f, &pkt);
    answer(&f);
    assert_int_equal(fixture_event(&f).flow, 0);
    pkt = fixture_data(0, 0, 2);
    fixture_input(&f, &pkt); /* message 0 still answers duplicates */
    assert_int_equal(answer(&f).ack.cum, 2);
    assert_true(fixture_stats(&f)->duplicates == 1);
    fixture_close(&f);
}

/* However many messages came before, every place can be used again. */
/* A message of one packet, with payload. */
static void feed_payload(struct endpoint_fixture *f, uint32_t flow, uint32_t tag, int byte)
{
    struct gw_pkt pkt = fixture_data(flow, 0, 1);
    pkt.data.tag = tag;
    pkt.buf = gw_buf_claim(&f->host.bufs);
    memset(gw_buf_bytes(&f->host.bufs, pkt.buf), byte, MTU);
    fixture_input(f, &pkt);
}

/*
 * A message has come and its place is another's. A copy of it that comes now is not the next
 * message of the same tag; that is one of the same sender with a later number.
 */
static void flow_rx_places__are_not_taken_again_by_what_is_late(void **state)
{
    (void)state;
    enum {
        TAG = 9,
        OTHERS = 100,
    };
    static unsigned char memory[MTU], next[MTU];
    struct endpoint_fixture f;
    open_ack_every(&f, 1);
    assert_int_equal(gw_endpoint_expect(f.endpoint, THEIRS, TAG, memory, MTU), GW_OK);
    feed_payload(&f, FLOW, TAG, 0xaa);
    assert_int_equal(answer(&f).q.kind, GW_PKT_ACK);
    assert_int_equal(fixture_event(&f).tag, TAG);
    for (uint32_t i = 1; i <= OTHERS; i++) { /* without payload */
        struct gw_pkt pkt = fixture_data(FLOW + i, 0, 1);
        fixture_input(&f, &pkt);
        assert_int_equal(answer(&f).q.kind, GW_PKT_ACK);
        assert_int_equal(fixture_event(&f).tag, FLOW + i);
    }
    assert_int_equal(gw_endpoint_expect(f.endpoint, THEIRS, TAG, next, MTU), GW_OK);
    feed_payload(&f, FLOW, TAG, 0xaa);
    struct gw_pkt back = answer(&f); /* its sender may not know */
    assert_int_equal(back.q.kind, GW_PKT_ACK);
    assert_true(back.q.flags == 0 && back.ack.cum == 1);
    fixture_no_event(&f);
    assert_true(fixture_stats(&f)->stray == 1);
    assert_int_equal(next[0], 0);
    feed_payload(&f, FLOW + (1 << 16), TAG, 0xbb);
    assert_int_equal(answer(&f).q.kind, GW_PKT_ACK);
    assert_int_equal(fixture_event(&f).tag, TAG);
    assert_int_equal(next[0], 0xbb);
    assert_int_equal(memory[0], 0xaa);
    fixture_close(&f);
}

static void flow_rx_places__are_never_used_up(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkt;
    open_ack_every(&f, 1);
    for (uint32_t flow = 0; flow < 10; flow++) {
        pkt = fixture_data(flow, 0, 1);
        fixture_input(&f, &pkt);
        answer(&f);
        assert_int_equal(fixture_event(&f).flow, flow);
    }
    for (uint32_t flow = 10; flow < 12; flow++) { /* two at once */
        pkt = fixture_data(flow, 0, 2);
        fixture_input(&f, &pkt);
        answer(&f);
    }
    assert_true(fixture_stats(&f)->refused == 0);
    fixture_close(&f);
}

/* What cannot be stored takes no place: neither payload without memory, nor a header alone. */
static void flow_rx_places__are_for_what_is_stored(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_ack_every(&f, 1);
    for (uint32_t flow = 0; flow < 4; flow++) {
        struct gw_pkt *pkt = gw_pkt_claim(&f.host.pool);
        *pkt = fixture_data(flow, 0, 2);
        if (flow % 2 == 0)
            pkt->buf = gw_buf_claim(&f.host.bufs);
        else
            pkt->q.flags |= GW_PKT_TRIMMED;
        gw_node_input(f.node, 0, &pkt, 1, f.now);
        fixture_take_ready(&f);
        struct gw_pkt back = answer(&f);
        assert_int_equal(back.q.kind, GW_PKT_NACK);
        assert_int_equal(back.q.flags, flow % 2 == 0 ? GW_PKT_NOT_READY : 0);
    }
    assert_true(fixture_stats(&f)->refused == 2);
    for (uint32_t flow = 10; flow < 12; flow++) { /* both places are free */
        struct gw_pkt pkt = fixture_data(flow, 0, 2);
        fixture_input(&f, &pkt);
        assert_int_equal(answer(&f).q.kind, GW_PKT_ACK);
    }
    fixture_close(&f);
}

/* The same number from two peers is two messages. */
static void flow_rx_places__tell_peers_apart(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_ack_every(&f, 1);
    struct gw_pkt a = fixture_data(FLOW, 0, 1), b = a;
    b.src = THEIRS + 1;
    fixture_input(&f, &a);
    fixture_input(&f, &b);
    struct gw_pkt acks[2];
    struct gw_event events[2];
    assert_int_equal(fixture_pull(&f, acks, 2), 2);
    assert_int_equal(acks[1].dst, THEIRS + 1);
    assert_int_equal(gw_endpoint_poll(f.endpoint, events, 2), 2);
    assert_true(fixture_stats(&f)->duplicates == 0);
    fixture_close(&f);
}

/* Half a message, then silence: the receiver gives up, and stays silent. */
static void flow_rx_stall__fails_on_time(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_endpoint_cfg cfg = fixture_cfg();
    cfg.stall = GW_MS;
    fixture_open(&f, &cfg, "1000");
    feed(&f, 0, 3);
    answer(&f);
    f.now += GW_MS / 2;
    feed(&f, 1, 3);
    answer(&f);
    gw_time heard = f.now;
    while (f.node->event_count == 0)
        fixture_expire(&f);
    assert_true(f.now == heard + GW_MS);
    struct gw_event event = fixture_event(&f);
    assert_int_equal(event.kind, GW_EVENT_FAILED);
    assert_int_equal(event.flow, FLOW);
    assert_true(event.bytes == 2 * MTU);
    assert_true(gw_node_deadline(f.node) == GW_TIME_NEVER);
    feed(&f, 2, 3);
    no_answer(&f); /* or the sender would believe that it succeeded */
    fixture_no_event(&f);
    fixture_close(&f);
}

static void flow_rx_control__overflow_is_counted(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt acks[8];
    struct gw_endpoint_cfg cfg = fixture_cfg();
    cfg.control_max = 3;
    fixture_open(&f, &cfg, "1000");
    for (uint32_t seq = 0; seq < 5; seq++)
        feed(&f, seq, 9);
    assert_true(fixture_stats(&f)->control_dropped == 2);
    assert_int_equal(fixture_pull(&f, acks, 8), 3);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flow_rx_data__is_acknowledged_with_an_echo),
        cmocka_unit_test(flow_rx_ack__draws_its_own_entropy),
        cmocka_unit_test(flow_rx_ack__takes_entropies_in_turn),
        cmocka_unit_test(flow_rx_trimmed__is_answered_by_a_nack),
        cmocka_unit_test(flow_rx_hole__is_told_of_at_once),
        cmocka_unit_test(flow_rx_duplicate__is_acknowledged_again),
        cmocka_unit_test(flow_rx_order__does_not_matter),
        cmocka_unit_test(flow_rx_order__beyond_the_span_is_refused),
        cmocka_unit_test(flow_rx_coalesce__answers_every_nth),
        cmocka_unit_test(flow_rx_coalesce__separates_marked_packets),
        cmocka_unit_test(flow_rx_coalesce__obeys_ack_now),
        cmocka_unit_test(flow_rx_coalesce__tells_of_more_than_a_mask_by_cum),
        cmocka_unit_test(flow_rx_coalesce__waits_for_the_delay),
        cmocka_unit_test(flow_rx_coalesce__reports_every_packet_once),
        cmocka_unit_test(flow_rx_coalesce__survives_an_empty_pool),
        cmocka_unit_test(flow_rx_malformed__is_counted_and_dropped),
        cmocka_unit_test(flow_rx_payload__goes_to_its_place),
        cmocka_unit_test(flow_rx_payload__stays_within_its_memory),
        cmocka_unit_test(flow_rx_places__are_recycled),
        cmocka_unit_test(flow_rx_places__are_not_taken_again_by_what_is_late),
        cmocka_unit_test(flow_rx_places__are_never_used_up),
        cmocka_unit_test(flow_rx_places__are_for_what_is_stored),
        cmocka_unit_test(flow_rx_places__tell_peers_apart),
        cmocka_unit_test(flow_rx_stall__fails_on_time),
        cmocka_unit_test(flow_rx_control__overflow_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
