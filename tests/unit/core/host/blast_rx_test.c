/* The receiver half of a blast, against a sender that keeps to the rules, or does not. */
#include "unit/core/host/blast_fixture.h"

static struct gw_finish half;

/* A flow of `packets`, of which half is enough to us and `bound` may be missing to the sender. */
static void open_flow(struct endpoint_fixture *f, uint32_t packets, gw_q16 bound)
{
    half = gw_finish_within(GW_Q16_ONE / 2);
    blast_open(f);
    gw_endpoint_fini(f->endpoint);
    f->cfg.finish = &half;
    f->cfg.pool = &f->host.pool;
    f->endpoint = f->host.endpoint = gw_endpoint_init(f->host.endpoint, &f->cfg);
    f->node = gw_endpoint_node(f->endpoint);
    struct gw_pkt pkt = blast_rendezvous(FLOW, packets, bound, f->now - GW_US);
    fixture_input(f, &pkt);
    struct gw_pkt accept = blast_hears(f, GW_HAIL_ACCEPT);
    assert_int_equal(accept.hail.marks, 0);
    assert_true(accept.sent_at == pkt.sent_at && accept.flow == FLOW);
}

static void feed(struct endpoint_fixture *f, uint32_t place, uint32_t total)
{
    struct gw_pkt pkt = blast_data(FLOW, place, total, f->now - GW_US);
    fixture_input(f, &pkt);
}

static void feed_hail(struct endpoint_fixture *f, enum gw_hail_op op, uint32_t seq)
{
    struct gw_pkt pkt = blast_hail(op, FLOW, f->now - GW_US);
    pkt.seq = seq;
    fixture_input(f, &pkt);
}

static void blast_rx__finishes_with_enough_and_takes_the_rest(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_flow(&f, 101, GW_Q16_ONE / 10);
    for (uint32_t i = 0; i < 91; i++)
        feed(&f, 100 - i, 101);
    blast_hears_nothing(&f);
    feed(&f, 9, 101); /* 9 of 101 are missing, and 10 are more than 100 * 6553 / 65536 */
    struct gw_pkt finish = blast_hears(&f, GW_HAIL_FINISH);
    assert_int_equal(finish.seq, 92);
    assert_int_equal(gw_hail_words(&finish), 92 * MTU);
    fixture_no_event(&f);
    feed(&f, 3, 101);
    feed(&f, 3, 101);
    blast_hears_nothing(&f); /* it is said at the scale of the round trip, not per packet */
    feed_hail(&f, GW_HAIL_CONFIRM, 0);
    struct gw_event event = fixture_event(&f);
    assert_int_equal(event.kind, GW_EVENT_RECEIVED);
    assert_int_equal(event.missing, 8);
    assert_true(event.bytes == 93 * MTU && event.tag == TAG && event.mss == MTU);
    feed(&f, 4, 101);
    fixture_no_event(&f);
    assert_true(fixture_stats(&f)->duplicates == 2);
    assert_true(gw_node_deadline(f.node) == GW_TIME_NEVER);
    fixture_close(&f);
}

/* The application waits for a round trip, whatever becomes of the hails; the sender is told
 * again all the same. */
static void blast_rx__lingers_for_a_round_trip(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_flow(&f, 101, GW_Q16_ONE / 10);
    for (uint32_t i = 0; i < 92; i++)
        feed(&f, i, 101);
    blast_hears(&f, GW_HAIL_FINISH);
    blast_wait(&f, RTT_US * GW_US / 2);
    feed(&f, 92, 101);
    fixture_no_event(&f);
    blast_wait(&f, RTT_US * GW_US / 2);
    struct gw_event event = fixture_event(&f);
    assert_int_equal(event.kind, GW_EVENT_RECEIVED);
    assert_int_equal(event.missing, 8);
    feed(&f, 93, 101);
    assert_true(fixture_stats(&f)->duplicates == 1);
    blast_hears_nothing(&f);
    fixture_expire(&f);
    assert_int_equal(blast_hears(&f, GW_HAIL_FINISH).seq, 93);
    feed_hail(&f, GW_HAIL_CONFIRM, 0);
    feed_hail(&f, GW_HAIL_CONFIRM, 0);
    assert_true(gw_node_deadline(f.node) == GW_TIME_NEVER);
    fixture_no_event(&f);
    fixture_close(&f);
}

/* What begins and ends a blast leaves in copies, each of them answered; there is one message. */
static void blast_rx__says_finish_in_copies(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[3];
    struct gw_endpoint_cfg cfg = blast_cfg();
    cfg.hail_copies = 2;
    fixture_open(&f, &cfg, "4000");
    struct gw_pkt rendezvous = blast_rendezvous(FLOW, 1, 0, f.now);
    for (uint32_t copy = 0; copy < 2; copy++) {
        fixture_input(&f, &rendezvous);
        assert_int_equal(blast_hears(&f, GW_HAIL_ACCEPT).hail.marks, 0);
    }
    feed(&f, 0, 1);
    assert_int_equal(fixture_pull(&f, pkts, 3), 2);
    for (uint32_t copy = 0; copy < 2; copy++)
        assert_int_equal(pkts[copy].hail.op, GW_HAIL_FINISH);
    assert_int_equal(fixture_event(&f).kind, GW_EVENT_RECEIVED);
    fixture_expire(&f);
    blast_hears(&f, GW_HAIL_FINISH);
    fixture_no_event(&f);
    fixture_close(&f);
}

static void blast_rx__repeats_finish_and_gives_up(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_flow(&f, 1, 0);
    feed(&f, 0, 1);
    assert_int_equal(fixture_event(&f).kind, GW_EVENT_RECEIVED); /* nothing to linger for */
    gw_time last = f.now;
    blast_hears(&f, GW_HAIL_FINISH);
    for (uint32_t i = 0; i < 4; i++) {
        fixture_expire(&f);
        blast_hears(&f, GW_HAIL_FINISH);
        assert_in_range(f.now - last, (2 * RTT_US << i) * GW_US, (4 * RTT_US << i) * GW_US);
        last = f.now;
    }
    fixture_expire(&f);
    blast_hears_nothing(&f);
    assert_true(gw_node_deadline(f.node) == GW_TIME_NEVER);
    /* Whoever asks is told again, one for one. */
    feed_hail(&f, GW_HAIL_STOP, 0);
    blast_hears(&f, GW_HAIL_FINISH);
    struct gw_pkt pkt = blast_rendezvous(FLOW, 1, 0, f.now);
    fixture_input(&f, &pkt);
    blast_hears(&f, GW_HAIL_FINISH);
    fixture_no_event(&f);
    fixture_close(&f);
}

static void blast_rx__reports_each_period_once(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_flow(&f, 900, 0);
    for (uint32_t period = 0; period < 3; period++) {
        for (uint32_t i = 0; i < 10; i++) {
            struct gw_pkt pkt = blast_data(FLOW, 10 * period + i, 900, f.now - GW_US);
            pkt.q.ecn = i == 9 ? GW_ECN_CE : GW_ECN_ECT0;
            fixture_input(&f, &pkt);
        }
        blast_hears_nothing(&f);
        blast_wait(&f, REPORT_EVERY);
        struct gw_pkt report = blast_hears(&f, GW_HAIL_REPORT);
        assert_int_equal(report.seq, period);
        assert_int_equal(report.hail.word[0], 10 * (MTU + HDR));
        assert_int_equal(report.hail.marks >> GW_HAIL_ECHOES_SHIFT, GW_HAIL_ECHOES);
        assert_int_equal(__builtin_popcount(report.hail.marks & 15), 1);
    }
    blast_wait(&f, 10 * REPORT_EVERY); /* nothing comes, and nothing is said of it */
    blast_hears_nothing(&f);
    fixture_close(&f);
}

/* The first packet waited in a queue for many periods, those behind it did not. */
static void blast_rx__reports_of_the_periods_of_its_sender(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_flow(&f, 900, 0);
    const gw_time began_at = f.now;
    blast_wait(&f, 20 * REPORT_EVERY);
    struct gw_pkt pkt = blast_data(FLOW, 0, 900, began_at);
    fixture_input(&f, &pkt);
    blast_wait(&f, REPORT_EVERY);
    assert_int_equal(blast_hears(&f, GW_HAIL_REPORT).seq, 0);
    feed(&f, 1, 900);
    blast_wait(&f, REPORT_EVERY);
    assert_in_range(blast_hears(&f, GW_HAIL_REPORT).seq, 20, 21);
    fixture_close(&f);
}

/* The mask of a request, and all requests of an answer in the order of places. */
static void blast_rx__asks_for_all_that_is_missing(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[8];
    open_flow(&f, 260, 0);
    for (uint32_t place = 0; place < 260; place++)
        if (place != 1 && place != 63 && place != 192 && place != 259)
            feed(&f, place, 260);
    feed_hail(&f, GW_HAIL_STOP, 0);
    blast_hears_nothing(&f);
    blast_wait(&f, RTT_US * GW_US);
    assert_int_equal(fixture_pull(&f, pkts, 8), 3);
    static const uint32_t places[] = {0, 192, 256};
    static const uint64_t masks[] = {UINT64_C(1) << 63 | 2, 1, 8};
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(pkts[i].hail.op, GW_HAIL_REQUEST);
        assert_int_equal(pkts[i].seq, places[i]);
        assert_true(gw_hail_words(&pkts[i]) == masks[i]);
        assert_int_equal(pkts[i].hail.number, 0);
        assert_int_equal(pkts[i].hail.marks, i == 2 ? GW_HAIL_LAST : 0);
        assert_int_equal(pkts[i].q.class, GW_CLASS_CONTROL);
        /* As if the STOP had been answered at once: it took a microsecond to come here. */
        assert_true(pkts[i].sent_at == f.now - GW_US);
    }
    fixture_close(&f);
}

/* Data of the next round comes before all REQUESTs for it have left: they keep their number. */
static void blast_rx__asks_for_the_round_of_the_stop(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[8];
    open_flow(&f, 260, 0);
    feed(&f, 64, 260);
    feed_hail(&f, GW_HAIL_STOP, 0);
    blast_wait(&f, RTT_US * GW_US);
    assert_int_equal(fixture_pull(&f, pkts, 2), 2);
    struct gw_pkt data = blast_data(FLOW, 1, 260, f.now - GW_US);
    data.data.tag = UINT32_C(1) << GW_HAIL_ROUND_SHIFT;
    fixture_input(&f, &data);
    assert_int_equal(fixture_pull(&f, &pkts[2], 6), 3);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(pkts[i].hail.op, GW_HAIL_REQUEST);
        assert_int_equal(pkts[i].hail.number, 0);
    }
    fixture_close(&f);
}

/* How many times all that is missing is asked for when there are `count` STOPs, the first of round
 * `round`, each `step` after the one before, and of the round `rounds` after that one's. */
static uint32_t flood(struct endpoint_fixture *f, uint32_t round, uint32_t count, gw_time step,
                      uint32_t rounds)
{
    struct gw_pkt pkts[64];
    uint32_t answers = 0;
    for (uint32_t i = 0; i < count; i++) {
        feed_hail(f, GW_HAIL_STOP, round + i * rounds);
        blast_wait(f, step);
        uint32_t got = fixture_pull(f, pkts, 64);
        for (uint32_t j = 0; j < got; j++)
            answers += pkts[j].hail.op == GW_HAIL_REQUEST && pkts[j].hail.marks;
    }
    return answers;
}

/* A flood of STOPs, also of rounds that never were: an answer per round trip at most, and fewer and
 * fewer while they bring nothing, down to one per period; so what a sender can make the receiver
 * send is little, and whose packets are lost in a crowd is asked again before long. */
static void blast_rx__answers_seldom_what_is_in_vain(void **state)
{
    (void)state;
    for (uint32_t rounds = 0; rounds < 2; rounds++) {
        struct endpoint_fixture f;
        open_flow(&f, 900, 0);
        feed(&f, 0, 900);
        /* After 0, 1, 3, 7, 15 round trips, and then every 10, which are a period. */
        assert_in_range(flood(&f, 0, 100, RTT_US * GW_US, rounds), 12, 14);
        for (uint32_t place = 1; place < 300; place++)
            feed(&f, place, 900);
        assert_in_range(flood(&f, 100 * rounds, 100, RTT_US * GW_US, rounds), 11, 14);
        fixture_close(&f);
    }
}

/* A message of two packets of which none comes is asked for as seldom. */
static void blast_rx__answers_seldom_for_few(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_flow(&f, 2, 0);
    assert_in_range(flood(&f, 0, 100, RTT_US * GW_US, 1), 12, 14);
    fixture_close(&f);
}

/* No answer for rounds that are over. */
static void blast_rx__answers_the_latest_round(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    struct gw_pkt pkts[64];
    open_flow(&f, 900, 0);
    feed(&f, 0, 900);
    assert_int_equal(flood(&f, 0, 40, RTT_US * GW_US / 40, 0), 1);
    assert_true(fixture_stats(&f)->stops_ignored > 10);
    feed_hail(&f, GW_HAIL_STOP, 4);
    blast_wait(&f, 2 * RTT_US * GW_US);
    assert_true(fixture_pull(&f, pkts, 64) > 0);
    feed_hail(&f, GW_HAIL_STOP, 3);
    blast_wait(&f, 8 * RTT_US * GW_US);
    blast_hears_nothing(&f);
    fixture_close(&f);
}

/* Data after a STOP puts the answer off, by twice what data is slower than hails. */
static void blast_rx__waits_for_late_data(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_flow(&f, 100, 0);
    feed_hail(&f, GW_HAIL_STOP, 0);
    for (uint32_t i = 0; i < 50; i++) {
        blast_wait(&f, GW_US);
        struct gw_pkt pkt = blast_data(FLOW, i, 100, f.now - 31 * GW_US);
        fixture_input(&f, &pkt);
    }
    blast_wait(&f, 59 * GW_US);
    struct gw_pkt pkts[4];
    uint32_t count = fixture_pull(&f, pkts, 4);
    for (uint32_t i = 0; i < count; i++)
        assert_int_not_equal(pkts[i].hail.op, GW_HAIL_REQUEST);
    blast_wait(&f, RTT_US * GW_US);
    assert_int_equal(fixture_pull(&f, pkts, 4), 2);
    assert_int_equal(pkts[0].hail.op, GW_HAIL_REQUEST);
    fixture_close(&f);
}

/* REQUESTs among what leaves now. */
static uint32_t requests(struct endpoint_fixture *f)
{
    struct gw_pkt pkts[128];
    uint32_t count = fixture_pull(f, pkts, 128), found = 0;
    for (uint32_t i = 0; i < count; i++)
        found += pkts[i].hail.op == GW_HAIL_REQUEST;
    return found;
}

/* A host that did not look for a while: what came meanwhile was not late for that, but what had
 * left long before is. */
static void blast_rx__does_not_take_its_nap_for_lag(void **state)
{
    (void)state;
    for (uint32_t late_us = 0; late_us <= 30; late_us += 30) {
        struct endpoint_fixture f;
        open_flow(&f, 100, 0);
        gw_time nap_from = f.now;
        f.now += 8 * GW_MS;
        for (uint32_t i = 0; i < 50; i++) {
            struct gw_pkt pkt = blast_data(FLOW, i, 100, nap_from + i * 100 * GW_US);
            pkt.sent_at -= (i == 0) * (late_us + 1) * GW_US;
            fixture_input(&f, &pkt);
        }
        feed_hail(&f, GW_HAIL_STOP, 0);
        blast_wait(&f, (2 * late_us + RTT_US / 2) * GW_US);
        assert_int_equal(requests(&f), 0);
        blast_wait(&f, 2 * GW_US);
        assert_int_equal(requests(&f), 2);
        fixture_close(&f);
    }
}

/* ---- Senders that do not keep to the rules. ---- */

static void blast_rx__drops_what_is_early_or_outside(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_flow(&f, 100, 0);
    struct gw_pkt early = blast_data(FLOW + 1, 0, 100, f.now);
    fixture_input(&f, &early);
    assert_true(fixture_stats(&f)->early == 1);
    struct gw_pkt bad[8];
    for (uint32_t i = 0; i < 8; i++)
        bad[i] = blast_data(FLOW, 5, 100, f.now);
    bad[0].seq = 100;
    bad[1].seq = UINT32_MAX;
    bad[2].data.total = 101;
    bad[3].data.mss = MTU + 1;
    bad[4].data.len = MTU - 1;
    bad[5].data.len = 0;
    bad[6].q.flags |= GW_PKT_TRIMMED;
    bad[7].seq = 99, bad[7].data.len = 7;
    for (uint32_t i = 0; i < 8; i++)
        fixture_input(&f, &bad[i]);
    assert_true(fixture_stats(&f)->malformed == 8);
    assert_true(fixture_stats(&f)->progress == 0);
    blast_hears_nothing(&f);
    fixture_close(&f);
}

/* Messages that nobody has memory for, or that cannot be. */
static void blast_rx__refuses_rendezvous_beyond_its_memory(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    static const struct {
        uint32_t packets;
        uint16_t mss, last;
        bool is_malformed;
    } cases[] = {
        {BLAST_PACKETS + 1, MTU, MTU, false},
        {UINT32_MAX, UINT16_MAX, UINT16_MAX, false},
        {0, MTU, MTU, true},
        {1, 0, 0, true},
        {1, MTU, 0, true},
        {1, MTU, MTU + 1, true},
    };
    blast_open(&f);
    for (uint32_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_pkt pkt = blast_rendezvous(i, cases[i].packets, 0, f.now);
        pkt.hail.number = cases[i].mss;
        pkt.index = cases[i].last;
        uint64_t refused = fixture_stats(&f)->rendezvous_refused;
        uint64_t malformed = fixture_stats(&f)->malformed;
        fixture_input(&f, &pkt);
        assert_int_equal(blast_hears(&f, GW_HAIL_ACCEPT).hail.marks, GW_HAIL_REFUSED);
        assert_true(fixture_stats(&f)->rendezvous_refused == refused + !cases[i].is_malformed);
        assert_true(fixture_stats(&f)->malformed == malformed + cases[i].is_malformed);
    }
    /* As many as there is room for; then nobody is ready, until one has ended and its sender knows.
     */
    for (uint32_t i = 0; i <= BLASTS; i++) {
        struct gw_pkt pkt = blast_rendezvous(100 + i, 1, 0, f.now);
        fixture_input(&f, &pkt);
        assert_int_equal(blast_hears(&f, GW_HAIL_ACCEPT).hail.marks,
                         i < BLASTS ? 0 : GW_HAIL_NOT_READY);
    }
    struct gw_pkt pkt = blast_data(102, 0, 1, f.now);
    fixture_input(&f, &pkt);
    blast_hears(&f, GW_HAIL_FINISH);
    assert_int_equal(fixture_event(&f).flow, 102);
    for (uint32_t i = 0; i < 2; i++) { /* its sender may have missed that, and ask */
        pkt = blast_rendezvous(100 + BLASTS, 1, 0, f.now);
        fixture_input(&f, &pkt);
        assert_int_equal(blast_hears(&f, GW_HAIL_ACCEPT).hail.marks,
                         i == 0 ? GW_HAIL_NOT_READY : 0);
        pkt = blast_hail(GW_HAIL_CONFIRM, 102, f.now);
        fixture_input(&f, &pkt);
    }
    fixture_close(&f);
}

/* Who wants to know which packets have come, or their notes, means packets of his own size. */
static void blast_rx__refuses_packets_of_another_size(void **state)
{
    (void)state;
    unsigned char data[4 * MTU];
    uint64_t arrived[1];
    uint16_t notes[16];
    for (uint32_t kind = 0; kind < 3; kind++) {
        for (uint32_t i = 0; i < 3; i++) {
            static const uint16_t sizes[] = {MTU / 2, 2 * MTU, MTU};
            struct endpoint_fixture f;
            struct gw_expect expect = {.peer = THEIRS,
                                       .tag = TAG,
                                       .data = data,
                                       .bytes = sizeof(data),
                                       .arrived = kind == 1 ? arrived : NULL,
                                       .notes = kind == 2 ? notes : NULL,
                                       .packets_max = 16};
            blast_open(&f);
            assert_int_equal(gw_endpoint_expect_part(f.endpoint, &expect), GW_OK);
            struct gw_pkt pkt = blast_rendezvous(FLOW, sizeof(data) / sizes[i], 0, f.now);
            pkt.hail.marks = 0;
            pkt.index = pkt.hail.number = sizes[i];
            fixture_input(&f, &pkt);
            bool is_refused = kind && sizes[i] != MTU;
            assert_int_equal(blast_hears(&f, GW_HAIL_ACCEPT).hail.marks,
                             is_refused ? GW_HAIL_REFUSED : 0);
            assert_true(gw_endpoint_expects(f.endpoint, THEIRS, TAG) == is_refused);
            fixture_close(&f);
        }
    }
}

/* Two that contradict each other: the first counts. */
static void blast_rx__believes_the_first_rendezvous(void **state)
{
    (void)state;
    struct endpoint_fixture f;
    open_flow(&f, 100, 0);
    for (uint32_t i = 0; i < 5; i++) {
        struct gw_pkt pkt = blast_rendezvous(FLOW, 100, 0, f.now);
        pkt.hail.word[0] += i == 0;
        pkt.hail.word[1] += i == 1;
        pkt.hail.number += i == 2;
        pkt.index -= i == 3;
        pkt.seq += i == 4;
        fixture_input(&f, &pkt);
        assert_true(fixture_stats(&f)->malformed == i + 1);
        blast_hears_nothing(&f);
    }
    struct gw_pkt same = blast_rendezvous(FLOW, 100, 0, f.now);
    fixture_input(&f, &same);
    blast_hears(&f, GW_HAIL_ACCEPT);
    fixture_close(&f);
}

/* Hails of flows that are not known, also with blasts switched off. */
static void blast_rx__ignores_strangers(void **state)
{
    (void)state;
    for (uint32_t has_blasts = 0; has_blasts < 2; has_blasts++) {
        struct endpoint_fixture f;
        struct gw_endpoint_cfg cfg = fixture_cfg();
        if (has_blasts)
            blast_open(&f);
        else
            fixture_open(&f, &cfg, "4000");
        feed_hail(&f, GW_HAIL_STOP, 0);
        feed_hail(&f, GW_HAIL_CONFIRM, 0);
        feed_hail(&f, GW_HAIL_ACCEPT, 0);
        feed_hail(&f, GW_HAIL_REPORT, 0);
        feed_hail(&f, GW_HAIL_REQUEST, 0);
        assert_true(fixture_stats(&f)->stray == 5);
        blast_hears_nothing(&f);
        feed_hail(&f, GW_HAIL_OPS, 0);
        assert_true(fixture_stats(&f)->malformed == 1);
        feed_hail(&f, GW_HAIL_FINISH, 0); /* it has missed our CONFIRM, or does no harm */
        blast_hears(&f, GW_HAIL_CONFIRM);
        feed(&f, 0, 10);
        assert_true(fixture_stats(&f)->early == 1);
        fixture_no_event(&f);
        fixture_close(&f);
    }
}

/* A flow without data or memory was nobody's message: its end is nobody's event. */
static void blast_rx__forgets_a_rendezvous_without_data(void **state)
{
    (void)state;
    for (uint32_t packets = 0; packets < 2; packets++) {
        struct endpoint_fixture f;
        struct gw_endpoint_cfg cfg = fixture_cfg();
        cfg.blasts_max = 1;
        cfg.blast_packets_max = 10;
        cfg.report_every = REPORT_EVERY;
        cfg.stall = GW_MS;
        fixture_open(&f, &cfg, "4000");
        struct gw_pkt pkt = blast_rendezvous(FLOW, 10, 0, f.now);
        fixture_input(&f, &pkt);
        blast_hears(&f, GW_HAIL_ACCEPT);
        for (uint32_t i = 0; i < packets; i++)
            feed(&f, i, 10);
        blast_wait(&f, 2 * GW_MS);
        if (packets)
            assert_int_equal(fixture_event(&f).kind, GW_EVENT_FAILED);
        else
            fixture_no_event(&f);
        for (struct gw_pkt report; fixture_pull(&f, &report, 1);)
            assert_int_equal(report.hail.op, GW_HAIL_REPORT);
        assert_true(gw_node_deadline(f.node) == GW_TIME_NEVER);
        pkt = blast_rendezvous(FLOW + 1, 10, 0, f.now); /* its place is free for others */
        fixture_input(&f, &pkt);
        assert_int_equal(blast_hears(&f, GW_HAIL_ACCEPT).hail.marks, 0);
        fixture_close(&f);
    }
}

/* A message of one packet comes into memory that is posted for it, and is all there. */
static void receive_payload(struct endpoint_fixture *f, uint32_t flow)
{
    struct gw_pkt pkt = blast_rendezvous(flow, 1, 0, f->now);
    pkt.hail.marks = 0;
    fixture_input(f, &pkt);
    assert_int_equal(blast_hears(f, GW_HAIL_ACCEPT).hail.marks, 0);
    pkt = blast_data(flow, 0, 1, f->now);
    pkt.buf = gw_buf_claim(&f->host.bufs);
    memset(gw_buf_bytes(&f->host.bufs, pkt.buf), 0xaa, MTU);
    fixture_input(f, &pkt);
    blast_hears(f, GW_HAIL_FINISH);
    pkt = blast_hail(GW_HAIL_CONFIRM, flow, f->now);
    fixture_input(f, &pkt);
    struct gw_event event = fixture_event(f);
    assert_true(event.kind == GW_EVENT_RECEIVED && event.flow == flow);
}

/* A copy of a rendezvous whose message has come, and whose place is another's, is not about the
 * next message of the same tag. */
static void blast_rx__takes_no_memory_for_what_has_ended(void **state)
{
    (void)state;
    static unsigned char memory[MTU], next[MTU];
    struct endpoint_fixture f;
    blast_open(&f);
    assert_int_equal(gw_endpoint_expect(f.endpoint, THEIRS, TAG, memory, MTU), GW_OK);
    receive_payload(&f, FLOW);
    for (uint32_t i = 1; i <= BLASTS; i++) { /* without payload */
        struct gw_pkt pkt = blast_rendezvous(FLOW + i, 1, 0, f.now);
        fixture_input(&f, &pkt);
        blast_hears(&f, GW_HAIL_ACCEPT);
        pkt = blast_data(FLOW + i, 0, 1, f.now);
        fixture_input(&f, &pkt);
        blast_hears(&f, GW_HAIL_FINISH);
        pkt = blast_hail(GW_HAIL_CONFIRM, FLOW + i, f.now); /* its place is free for others */
        fixture_input(&f, &pkt);
        assert_int_equal(fixture_event(&f).flow, FLOW + i);
        pkt = blast_hail(GW_HAIL_CONFIRM, FLOW + i, f.now); /* its place may be another's */
        fixture_input(&f, &pkt);
    }
    assert_int_equal(gw_endpoint_expect(f.endpoint, THEIRS, TAG, next, MTU), GW_OK);
    struct gw_pkt late = blast_rendezvous(FLOW, 1, 0, f.now - GW_MS);
    late.hail.marks = 0;
    fixture_input(&f, &late);
    struct gw_pkt told = blast_hears(&f, GW_HAIL_FINISH); /* its sender may not know */
    assert_true(told.seq == 1 && told.hail.word[0] == MTU);
    assert_true(fixture_stats(&f)->stray == 1);
    assert_true(gw_endpoint_expects(f.endpoint, THEIRS, TAG));
    receive_payload(&f, FLOW + (1 << 16));
    assert_memory_equal(memory, next, MTU);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blast_rx__finishes_with_enough_and_takes_the_rest),
        cmocka_unit_test(blast_rx__lingers_for_a_round_trip),
        cmocka_unit_test(blast_rx__says_finish_in_copies),
        cmocka_unit_test(blast_rx__repeats_finish_and_gives_up),
        cmocka_unit_test(blast_rx__reports_each_period_once),
        cmocka_unit_test(blast_rx__reports_of_the_periods_of_its_sender),
        cmocka_unit_test(blast_rx__asks_for_all_that_is_missing),
        cmocka_unit_test(blast_rx__asks_for_the_round_of_the_stop),
        cmocka_unit_test(blast_rx__answers_seldom_what_is_in_vain),
        cmocka_unit_test(blast_rx__answers_seldom_for_few),
        cmocka_unit_test(blast_rx__answers_the_latest_round),
        cmocka_unit_test(blast_rx__waits_for_late_data),
        cmocka_unit_test(blast_rx__does_not_take_its_nap_for_lag),
        cmocka_unit_test(blast_rx__drops_what_is_early_or_outside),
        cmocka_unit_test(blast_rx__refuses_rendezvous_beyond_its_memory),
        cmocka_unit_test(blast_rx__refuses_packets_of_another_size),
        cmocka_unit_test(blast_rx__believes_the_first_rendezvous),
        cmocka_unit_test(blast_rx__ignores_strangers),
        cmocka_unit_test(blast_rx__forgets_a_rendezvous_without_data),
        cmocka_unit_test(blast_rx__takes_no_memory_for_what_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
