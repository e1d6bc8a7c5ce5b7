/*
 * Blasts by bad links: whatever is lost, doubled or overtaken, both ends come to an end within the
 * bound, and exactly what is marked has arrived.
 */
#include "model/blast_pair.h"

#include "base/bits.h"
#include "base/cpu.h"

enum {
    ROUNDS = 400,
};

static struct pair p;

#define TENTH (GW_Q16_ONE / 10)

/* Any faults, any trains, any bounds at either end. */
static void blasts__end_within_the_bound(void **state)
{
    (void)state;
    static const gw_q16 bounds[] = {0, 1, GW_Q16_ONE / 100, TENTH, TENTH, GW_Q16_ONE / 2};
    uint64_t missing = 0;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct gw_prng shape = gw_prng_derive(seed, 2);
        const struct pair_faults faults = {
            .lost = gw_prng_below(&shape, 2) * gw_prng_below(&shape, 30),
            .doubled = gw_prng_below(&shape, 6),
            .late = gw_prng_below(&shape, 20),
            .late_by = gw_prng_below(&shape, 50) * GW_US,
            .hails_lost = gw_prng_below(&shape, 2) * gw_prng_below(&shape, 50),
            .skew = gw_prng_below(&shape, 2) * (gw_time)gw_prng_below(&shape, 200) * GW_S,
        };
        pair_open(&p, &faults, seed);
        p.cfg.train = 1 + gw_prng_below(&shape, 8);
        for (uint32_t i = 0; i < PAIR_MESSAGES; i++) {
            uint64_t most = gw_prng_below(&shape, 2) ? PAIR_PACKETS_MAX : 10;
            struct pair_message *message =
                pair_add(&p, 1 + gw_prng_below(&shape, (uint32_t)most * PAIR_MTU),
                         bounds[gw_prng_below(&shape, GW_COUNT_OF(bounds))],
                         bounds[gw_prng_below(&shape, GW_COUNT_OF(bounds))]);
            for (uint32_t word = 0; word < PAIR_WORDS; word++)
                message->important[word] = gw_prng_next(&shape) & gw_prng_next(&shape);
            message->send.important = gw_prng_below(&shape, 2) ? message->important : NULL;
            message->send.important_first = gw_prng_below(&shape, 2);
            message->send.importance = (struct gw_importance_terms){
                .rule = (enum gw_importance_rule)gw_prng_below(&shape, GW_IMPORTANCE_RULES),
                .type = (enum gw_dtype)gw_prng_below(&shape, GW_DTYPES),
                .kernels = gw_kernels_best(0)};
        }
        /* Of some, memory is posted late. */
        const uint32_t late = gw_prng_below(&shape, 2) * gw_prng_below(&shape, 1 << PAIR_MESSAGES);
        const gw_time until = PAIR_START + gw_prng_below(&shape, 100) * GW_US;
        pair_make(&p);
        for (uint32_t i = 0; i < PAIR_MESSAGES; i++) {
            if (!(late >> i & 1))
                pair_expect(&p, i);
            pair_send(&p, i);
        }
        while (late && gw_time_before(p.now, until) && pair_step(&p))
            continue;
        for (uint32_t i = 0; i < PAIR_MESSAGES; i++)
            if (late >> i & 1)
                pair_expect(&p, i);
        pair_run(&p);
        for (uint32_t i = 0; i < PAIR_MESSAGES; i++) {
            pair_check(&p.messages[i]);
            missing += p.messages[i].ends[1].missing;
        }
        pair_close(&p);
    }
    assert_true(missing > 1000);
}

/* A message by good links, then whatever `faults` say; checked, and closed by the caller. */
static gw_time run_one(const struct pair_faults *faults, uint32_t packets, gw_q16 bound)
{
    pair_open(&p, faults, 1);
    pair_add(&p, (uint64_t)packets * PAIR_MTU - 1, bound, bound);
    pair_start(&p);
    gw_time took = pair_run(&p);
    pair_check(&p.messages[0]);
    return took;
}

/* Nothing is lost: nothing is asked for, and a sender's FINISH ends it at once. */
static void blasts__end_with_the_packet_that_is_enough(void **state)
{
    (void)state;
    static const struct pair_faults none = {.lost = 0};
    static const uint32_t percents[] = {0, 1, 10, 50};
    for (uint32_t i = 0; i < GW_COUNT_OF(percents); i++) {
        gw_q16 bound = GW_Q16_ONE * percents[i] / 100;
        gw_time took = run_one(&none, PAIR_PACKETS_MAX, bound);
        uint32_t needed = PAIR_PACKETS_MAX - (uint32_t)(((PAIR_PACKETS_MAX - 1) * bound) >> 16);
        assert_int_equal(PAIR_PACKETS_MAX - p.messages[0].ends[0].missing, needed);
        /* What leaves until the sender hears of it is all that leaves. */
        uint32_t late = (uint32_t)(PAIR_BRTT / PAIR_PKT_TIME) + 4;
        assert_in_range(pair_stats(&p, 0)->data_sent, needed, needed + late);
        assert_in_range(took, needed * PAIR_PKT_TIME, (needed + late) * PAIR_PKT_TIME + PAIR_BRTT);
        assert_true(pair_stats(&p, 1)->requests_sent == 0);
        assert_true(pair_stats(&p, 0)->retransmits == 0 && pair_stats(&p, 1)->early == 0);
        pair_close(&p);
    }
}

/* Each hail is lost several times over: the end comes all the same, and soon. */
static void blasts__repeat_each_hail(void **state)
{
    (void)state;
    for (uint32_t op = 0; op < GW_HAIL_OPS; op++) {
        for (uint32_t bound = 0; bound < 2; bound++) {
            const struct pair_faults faults = {
                .ops_lost = 1u << op, .first_lost = 3, .data_every = 7};
            gw_time took = run_one(&faults, 200, bound * TENTH);
            assert_true(took < 100 * PAIR_BRTT + 4 * 200 * PAIR_PKT_TIME);
            pair_close(&p);
        }
    }
}

/* Of a message whose end is lost for ever, the receiver has what it needs, and says so. */
static void blasts__stop_lingering_without_a_sender(void **state)
{
    (void)state;
    const struct pair_faults faults = {.ops_lost = 1u << GW_HAIL_CONFIRM, .first_lost = UINT32_MAX};
    pair_open(&p, &faults, 1);
    pair_add(&p, 100 * PAIR_MTU, TENTH, TENTH);
    pair_start(&p);
    gw_time took = pair_run(&p);
    pair_check(&p.messages[0]);
    assert_true(took < 100 * PAIR_BRTT + 200 * PAIR_PKT_TIME);
    pair_close(&p);
}

/* All data is late by any time: the STOP overtakes it, and nothing is sent twice. Of the first
 * messages between two hosts nobody knows how late data is; so one goes before. */
static void blasts__wait_for_what_a_stop_has_overtaken(void **state)
{
    (void)state;
    static const uint32_t packets[] = {1, 2, 9, 64, 500};
    for (uint32_t late = 0; late < 30; late++) {
        for (uint32_t i = 0; i < GW_COUNT_OF(packets); i++) {
            const struct pair_faults faults = {.data_late = late * 3 * GW_US};
            pair_open(&p, &faults, 1);
            pair_add(&p, 500 * PAIR_MTU, 0, 0);
            pair_add(&p, packets[i] * PAIR_MTU, 0, 0);
            pair_make(&p);
            pair_expect(&p, 0);
            pair_send(&p, 0);
            while (!p.messages[0].has_ended[0])
                assert_true(pair_step(&p));
            uint64_t before = pair_stats(&p, 0)->data_sent;
            pair_expect(&p, 1);
            pair_send(&p, 1);
            pair_run(&p);
            pair_check(&p.messages[1]);
            assert_int_equal(pair_stats(&p, 0)->data_sent - before, packets[i]);
            assert_true(pair_stats(&p, 1)->duplicates == 0);
            pair_close(&p);
        }
    }
}

/* One packet in seven is lost: as many are sent again as were lost, and no more. */
static void blasts__send_again_what_is_missing_alone(void **state)
{
    (void)state;
    const struct pair_faults faults = {.data_every = 7};
    run_one(&faults, PAIR_PACKETS_MAX, 0);
    const struct gw_endpoint_stats *stats = pair_stats(&p, 0);
    assert_int_equal(stats->data_sent - PAIR_PACKETS_MAX, stats->data_sent / 7);
    assert_int_equal(p.messages[0].ends[0].retransmits, stats->data_sent - PAIR_PACKETS_MAX);
    assert_true(pair_stats(&p, 1)->duplicates == 0);
    pair_close(&p);
}

/* The rounds of a tensor in training: which of its fragments are sent never becomes a habit (DLCP,
 * Appendix A). */
static void blasts__leave_nothing_out_for_long(void **state)
{
    (void)state;
    enum { ITERATIONS = 200, PACKETS = 400 };
    static const struct pair_faults none = {.lost = 0};
    uint32_t arrived[PACKETS] = {0}, sum = 0;
    pair_open(&p, &none, 1);
    pair_add(&p, PACKETS * PAIR_MTU, TENTH, TENTH);
    pair_make(&p);
    for (uint32_t i = 0; i < ITERATIONS; i++) {
        struct pair_message *message = &p.messages[0];
        message->has_ended[0] = message->has_ended[1] = false;
        memset(message->received, PAIR_UNTOUCHED, sizeof(message->received));
        for (uint32_t place = 0; place < PACKETS; place++)
            message->notes[1][place] = PAIR_UNTOUCHED;
        pair_expect(&p, 0);
        pair_send(&p, 0);
        pair_run(&p);
        pair_check(message);
        for (uint32_t place = 0; place < PACKETS; place++)
            arrived[place] += gw_bit_is_set(message->arrived, place);
    }
    for (uint32_t place = 0; place < PACKETS; place++)
        sum += arrived[place];
    assert_true(sum < ITERATIONS * PACKETS); /* something was left out */
    for (uint32_t place = 0; place < PACKETS; place++)
        assert_true(2 * arrived[place] * PACKETS >= sum);
    pair_close(&p);
}

/* There is no memory at first: the sender holds its data back until there is. */
static void blasts__wait_for_memory(void **state)
{
    (void)state;
    static const struct pair_faults none = {.lost = 0};
    pair_open(&p, &none, 1);
    pair_add(&p, 300 * PAIR_MTU, TENTH, TENTH);
    pair_make(&p);
    pair_send(&p, 0);
    while (p.now < PAIR_START + 40 * PAIR_BRTT)
        assert_true(pair_step(&p));
    /* A round trip's worth, and no more. */
    assert_in_range(pair_stats(&p, 0)->data_sent, 1, 2 * PAIR_BRTT / PAIR_PKT_TIME);
    assert_in_range(pair_stats(&p, 1)->rendezvous_early, 5, 20);
    pair_expect(&p, 0);
    pair_run(&p);
    pair_check(&p.messages[0]);
    pair_close(&p);
}

/* A message that is longer than its receiver's memory, or than any may be, fails at once. */
static void blasts__refuse_what_is_too_long(void **state)
{
    (void)state;
    static const struct pair_faults none = {.lost = 0};
    for (uint32_t i = 0; i < 3; i++) {
        pair_open(&p, &none, 1);
        struct pair_message *message = pair_add(&p, 300 * PAIR_MTU, 0, 0);
        message->expect.bytes -= i == 0;
        message->expect.packets_max -= i == 1 ? PAIR_PACKETS_MAX - 299 : 0;
        pair_make(&p);
        if (i < 2)
            pair_expect(&p, 0);
        else
            gw_endpoint_fini(p.hosts[1].endpoint);
        p.cfg.blast_packets_max = 299;
        if (i == 2) {
            p.cfg.pool = &p.hosts[1].pool;
            p.hosts[1].endpoint = gw_endpoint_init(p.hosts[1].endpoint, &p.cfg);
            p.nodes[1] = gw_endpoint_node(p.hosts[1].endpoint);
            pair_expect(&p, 0);
        }
        pair_send(&p, 0);
        gw_time took = pair_run(&p);
        assert_true(message->has_ended[0] && message->ends[0].kind == GW_EVENT_FAILED);
        assert_false(message->has_ended[1]);
        assert_true(took <= 2 * PAIR_BRTT);
        assert_true(pair_stats(&p, 1)->rendezvous_refused == 1);
        assert_true(gw_endpoint_expects(p.hosts[1].endpoint, 0, 0));
        pair_close(&p);
    }
}

/* Nothing gets back, or nothing arrives: both ends stall in time. */
static void blasts__stall(void **state)
{
    (void)state;
    const struct pair_faults deaf = {.is_one_way = true}, mute = {.data_every = 1};
    for (uint32_t i = 0; i < 2; i++) {
        pair_open(&p, i ? &mute : &deaf, 1);
        p.cfg.stall = 5 * GW_MS;
        struct pair_message *message = pair_add(&p, 300 * PAIR_MTU, 0, 0);
        pair_start(&p);
        pair_run(&p);
        assert_true(message->has_ended[0] && message->has_ended[1]);
        if (i == 0) {
            /* Everything has arrived, but nobody knows. */
            assert_int_equal(message->ends[0].kind, GW_EVENT_FAILED);
            assert_int_equal(message->ends[1].kind, GW_EVENT_RECEIVED);
        } else {
            assert_int_equal(message->ends[1].kind, GW_EVENT_FAILED);
        }
        pair_close(&p);
    }
}

/* Memory that is given up in mid-message is not touched again, at either end. */
static void blasts__forget_memory(void **state)
{
    (void)state;
    static const struct pair_faults none = {.lost = 0};
    for (uint32_t i = 0; i < 6; i++) {
        pair_open(&p, &none, 1);
        p.cfg.stall = 2 * GW_MS;
        struct pair_message *message = pair_add(&p, 300 * PAIR_MTU, 0, 0);
        message->send.important = message->important;
        pair_start(&p);
        while (p.now < PAIR_START + 100 * PAIR_PKT_TIME)
            assert_true(pair_step(&p));
        const void *const pieces[] = {message->sent,     message->important, message->notes[0],
                                      message->received, message->arrived,   message->notes[1]};
        static unsigned char before[sizeof(message->received)];
        uint32_t host = i / 3;
        gw_endpoint_forget(p.hosts[host].endpoint, pieces[i], 8);
        memcpy(before, message->received, sizeof(before));
        pair_run(&p);
        assert_false(message->has_ended[host]);
        assert_true(message->has_ended[1 - host]);
        assert_int_equal(message->ends[1 - host].kind, GW_EVENT_FAILED);
        if (host)
            assert_memory_equal(before, message->received, sizeof(before));
        pair_close(&p);
    }
}

/* Which packets left in which order, as the link saw them. */
static uint8_t left[PAIR_PACKETS_MAX];
static uint32_t left_count;

static bool note_importance(const struct gw_pkt *pkt)
{
    if (pkt->q.kind == GW_PKT_DATA && left_count < PAIR_PACKETS_MAX)
        left[left_count++] = pkt->q.ecn == GW_ECN_ECT0;
    return false;
}

/* A quarter is important: those leave first if asked, and else evenly among the others. */
static void blasts__send_the_important_first_if_asked(void **state)
{
    (void)state;
    const struct pair_faults faults = {.drops = note_importance};
    for (uint32_t first = 0; first < 2; first++) {
        enum { PACKETS = 400 };
        left_count = 0;
        pair_open(&p, &faults, 1);
        struct pair_message *message = pair_add(&p, PACKETS * PAIR_MTU, 0, 0);
        memset(message->important, 0x11, sizeof(message->important));
        message->send.important = message->important;
        message->send.important_first = first;
        pair_start(&p);
        pair_run(&p);
        pair_check(message);
        assert_int_equal(left_count, PACKETS);
        for (uint32_t i = 0, important = 0; i < PACKETS; i++) {
            important += left[i];
            if (first)
                assert_int_equal(left[i], i < PACKETS / 4);
            else
                assert_in_range(4 * important + 4, i, i + 8);
        }
        pair_close(&p);
    }
}

/* Which packets are important, as decided of all at once; one that leaves otherwise counts. */
static uint64_t decided[PAIR_WORDS];
static uint32_t differ;

static bool compare_importance(const struct gw_pkt *pkt)
{
    if (pkt->q.kind == GW_PKT_DATA)
        differ += (pkt->q.ecn == GW_ECN_ECT0) != gw_bit_is_set(decided, pkt->seq);
    return false;
}

/* Of any type and length, in every round, and when all is due again for lack of memory. */
static void blasts__find_out_what_is_important_as_it_leaves(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10 * GW_DTYPES; seed++) {
        struct gw_prng shape = gw_prng_derive(seed, 4);
        const struct pair_faults faults = {.drops = compare_importance,
                                           .lost = gw_prng_below(&shape, 20)};
        const bool is_late = gw_prng_below(&shape, 2);
        const struct gw_importance_terms terms = {.rule = gw_prng_below(&shape, 4)
                                                              ? GW_IMPORTANCE_MEDIAN_OF_MEANS
                                                              : GW_IMPORTANCE_MEDIAN_OF_VALUES,
                                                  .type = (enum gw_dtype)(seed % GW_DTYPES),
                                                  .kernels = gw_kernels_best(gw_cpu_features())};
        pair_open(&p, &faults, seed);
        p.cfg.train = 1 + gw_prng_below(&shape, 8);
        struct pair_message *message =
            pair_add(&p, 1 + gw_prng_below(&shape, PAIR_PACKETS_MAX * PAIR_MTU), TENTH, TENTH);
        message->send.importance = terms;
        message->send.important_first = gw_prng_below(&shape, 2);
        const struct gw_importance_tensor tensor = {
            .values = message->sent, .size = message->send.bytes, .fragment_size = PAIR_MTU};
        struct gw_importance importance;
        gw_importance_init(&importance, &tensor, &terms, 0);
        uint32_t count = gw_importance_fill(&importance, decided);
        assert_true(count == pair_total(message) || terms.type < GW_DTYPE_MAGNITUDES);
        differ = 0;
        pair_make(&p);
        if (!is_late)
            pair_expect(&p, 0);
        pair_send(&p, 0);
        while (is_late && p.now < PAIR_START + 20 * GW_US && pair_step(&p))
            continue;
        if (is_late)
            pair_expect(&p, 0);
        pair_run(&p);
        pair_check(message);
        assert_int_equal(differ, 0);
        pair_close(&p);
    }
}

/* Values are looked at shortly before they leave: of those that a test changes in mid-message,
 * against the rules, only a few trains and a batch are important as they were. In advance all are
 * if important ones leave first. */
static void blasts__look_a_few_trains_ahead(void **state)
{
    (void)state;
    enum { PACKETS = 1000, TRAIN = 8 };
    static const uint32_t nan = 0x7fc00000;
    const struct pair_faults faults = {.drops = note_importance};
    for (uint32_t first = 0; first < 2; first++) {
        left_count = 0;
        pair_open(&p, &faults, 1);
        p.cfg.train = TRAIN;
        struct pair_message *message = pair_add(&p, PACKETS * PAIR_MTU, 0, 0);
        for (uint32_t i = 0; i < PACKETS * PAIR_MTU / sizeof(nan); i++)
            memcpy(message->sent + i * sizeof(nan), &nan, sizeof(nan));
        message->send.important_first = first;
        message->send.importance =
            (struct gw_importance_terms){.rule = GW_IMPORTANCE_MEDIAN_OF_MEANS,
                                         .type = GW_DTYPE_F32,
                                         .kernels = gw_kernels_best(0)};
        pair_start(&p);
        while (left_count < PACKETS / 2)
            assert_true(pair_step(&p));
        memset(message->sent, 0, sizeof(message->sent));
        pair_run(&p);
        assert_true(message->has_ended[0] && message->has_ended[1]);
        uint32_t important = 0;
        for (uint32_t i = 0; i < PACKETS; i++)
            important += left[i];
        if (first)
            assert_int_equal(important, PACKETS);
        else
            assert_in_range(important, PACKETS / 2 + TRAIN,
                            PACKETS / 2 + 5 * TRAIN + GW_IMPORTANCE_BATCH);
        pair_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blasts__end_within_the_bound),
        cmocka_unit_test(blasts__end_with_the_packet_that_is_enough),
        cmocka_unit_test(blasts__repeat_each_hail),
        cmocka_unit_test(blasts__stop_lingering_without_a_sender),
        cmocka_unit_test(blasts__wait_for_what_a_stop_has_overtaken),
        cmocka_unit_test(blasts__send_again_what_is_missing_alone),
        cmocka_unit_test(blasts__leave_nothing_out_for_long),
        cmocka_unit_test(blasts__wait_for_memory),
        cmocka_unit_test(blasts__refuse_what_is_too_long),
        cmocka_unit_test(blasts__stall),
        cmocka_unit_test(blasts__forget_memory),
        cmocka_unit_test(blasts__send_the_important_first_if_asked),
        cmocka_unit_test(blasts__find_out_what_is_important_as_it_leaves),
        cmocka_unit_test(blasts__look_a_few_trains_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
