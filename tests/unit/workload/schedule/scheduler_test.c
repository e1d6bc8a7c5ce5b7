/* What leaves in which order, how large and when, by each schedule, with fusion and when following.
 */
#include "unit/workload/schedule/schedule_fixture.h"

enum {
    SEED = 20261122,
    ROUNDS = 300,
};

/* Layers of 8,000 + 400 bytes, of 40,000, of none, and of 4,000 + 400. */
static void four_layers(struct hand_plan *hand)
{
    hand_plan_init(hand);
    hand_plan_add(hand, 8000, 400, GW_US);
    hand_plan_add(hand, 40000, 0, GW_US);
    hand_plan_add(hand, 0, 0, GW_US);
    hand_plan_add(hand, 4000, 400, GW_US);
}

static void expect_piece(struct gw_scheduler *scheduler, gw_time now, uint32_t first_tensor,
                         uint32_t tensor_count, uint64_t first, uint64_t bytes)
{
    struct gw_piece piece;
    assert_true(gw_scheduler_next(scheduler, &piece, now));
    assert_int_equal(piece.first_tensor, first_tensor);
    assert_int_equal(piece.tensor_count, tensor_count);
    assert_int_equal(piece.first, first);
    assert_int_equal(piece.bytes, bytes);
}

static void expect_none(struct gw_scheduler *scheduler, gw_time now)
{
    struct gw_piece piece;
    assert_false(gw_scheduler_next(scheduler, &piece, now));
}

static void scheduler_seq__sends_after_the_backward_pass_in_its_order(void **state)
{
    (void)state;
    struct hand_plan hand;
    struct gw_piece piece;
    four_layers(&hand);
    struct gw_scheduler *s = scheduler_open(&hand.plan, "seq", "", 0, 0);
    assert_true(gw_scheduler_is_over(s) && gw_scheduler_may_compute(s, 0));
    gw_scheduler_begin(s, 0);
    for (uint32_t l = 4; l-- > 0;) {
        assert_false(gw_scheduler_may_compute(s, l));
        layer_ready(s, &hand.plan, l, 10 * (4 - l));
        expect_none(s, 10 * (4 - l));
        assert_true(gw_scheduler_deadline(s, 10 * (4 - l)) == GW_TIME_NEVER);
    }
    gw_scheduler_backward_over(s, 50);
    static const uint32_t order[] = {3, 4, 2, 0, 1}; /* weights before biases of a layer */
    for (uint32_t i = 0; i < 5; i++) {
        assert_true(gw_scheduler_next(s, &piece, 50));
        assert_int_equal(piece.first_tensor, order[i]);
        assert_int_equal(piece.id, order[i]);
        assert_int_equal(piece.bytes, hand.tensors[order[i]].bytes);
        assert_int_equal(gw_scheduler_done(s, &piece), i == 4);
        for (uint32_t l = 0; l < 4; l++)
            assert_int_equal(gw_scheduler_may_compute(s, l), i == 4);
    }
    assert_true(gw_scheduler_is_over(s));
    gw_scheduler_close(s);
}

static void scheduler_wfbp__sends_what_is_ready_and_frees_layer_by_layer(void **state)
{
    (void)state;
    struct hand_plan hand;
    struct gw_piece piece;
    four_layers(&hand);
    struct gw_scheduler *s = scheduler_open(&hand.plan, "wfbp", "", 0, 0);
    gw_scheduler_begin(s, 0);
    expect_none(s, 0);
    gw_scheduler_ready(s, 4, 10);
    gw_scheduler_ready(s, 3, 10);
    expect_piece(s, 10, 3, 1, 0, 4000);
    layer_ready(s, &hand.plan, 1, 20);
    layer_ready(s, &hand.plan, 0, 30);
    gw_scheduler_backward_over(s, 30);
    expect_piece(s, 30, 4, 1, 0, 400);
    expect_piece(s, 30, 2, 1, 0, 40000);
    expect_piece(s, 30, 0, 1, 0, 8000);
    expect_piece(s, 30, 1, 1, 0, 400);
    expect_none(s, 30);
    assert_true(gw_scheduler_may_compute(s, 2)); /* it has nothing to learn */
    assert_false(gw_scheduler_may_compute(s, 0));
    piece = (struct gw_piece){.id = 0, .first_tensor = 0, .tensor_count = 1, .bytes = 8000};
    assert_false(gw_scheduler_done(s, &piece));
    piece = (struct gw_piece){.id = 1, .first_tensor = 1, .tensor_count = 1, .bytes = 400};
    assert_true(gw_scheduler_done(s, &piece));
    assert_true(gw_scheduler_may_compute(s, 0) && !gw_scheduler_may_compute(s, 1));
    gw_scheduler_close(s);
}

static void scheduler_p3__cuts_and_prefers_the_front(void **state)
{
    (void)state;
    struct hand_plan hand;
    four_layers(&hand);
    struct gw_scheduler *s = scheduler_open(&hand.plan, "p3", "partition=16KB credit=1000KB", 0, 0);
    assert_int_equal(gw_scheduler_pieces(s), 7); /* 40,000 bytes are three slices */
    gw_scheduler_begin(s, 0);
    layer_ready(s, &hand.plan, 3, 10);
    layer_ready(s, &hand.plan, 1, 10);
    expect_piece(s, 10, 2, 1, 0, 16000);
    layer_ready(s, &hand.plan, 0, 20);
    gw_scheduler_backward_over(s, 20);
    expect_piece(s, 20, 0, 1, 0, 8000); /* preempts the large tensor */
    expect_piece(s, 20, 1, 1, 0, 400);
    expect_piece(s, 20, 2, 1, 16000, 16000);
    expect_piece(s, 20, 2, 1, 32000, 8000);
    expect_piece(s, 20, 3, 1, 0, 4000);
    expect_piece(s, 20, 4, 1, 0, 400);
    expect_none(s, 20);
    gw_scheduler_close(s);
}

static void scheduler_credit__may_be_overdrawn_by_one_piece(void **state)
{
    (void)state;
    struct hand_plan hand;
    struct gw_piece piece;
    four_layers(&hand);
    struct gw_scheduler *s =
        scheduler_open(&hand.plan, "bytescheduler", "partition=10KB credit=20001", 0, 0);
    gw_scheduler_begin(s, 0);
    layer_ready(s, &hand.plan, 1, 0);
    for (int i = 0; i < 3; i++)
        expect_piece(s, 0, 2, 1, UINT64_C(10000) * i, 10000); /* the third at 20,000 of 20,001 */
    expect_none(s, 0);
    assert_true(gw_scheduler_deadline(s, 0) == GW_TIME_NEVER);
    piece = (struct gw_piece){.id = 2, .first_tensor = 2, .tensor_count = 1, .bytes = 10000};
    assert_false(gw_scheduler_done(s, &piece));
    expect_piece(s, 0, 2, 1, 30000, 10000);
    expect_none(s, 0);
    gw_scheduler_close(s);

    /* A credit of nothing is one piece after the other. */
    s = scheduler_open(&hand.plan, "p3", "credit=0", 0, 0);
    gw_scheduler_begin(s, 0);
    layer_ready(s, &hand.plan, 3, 0);
    expect_piece(s, 0, 3, 1, 0, 4000);
    expect_none(s, 0);
    gw_scheduler_close(s);
}

/* Credit is back when a piece was sent, and not again when it is done. */
static void scheduler_sent__gives_credit_back_once(void **state)
{
    (void)state;
    struct hand_plan hand;
    four_layers(&hand);
    const struct gw_algo *algo = gw_registry_find(&gw_schedule_registry, "p3");
    union gw_algo_cfg cfg;
    build_settings(algo, &cfg, "partition=10KB credit=20KB");
    struct gw_scheduler *s = gw_scheduler_open(&(struct gw_scheduler_cfg){
        .ops = (const void *)algo, .cfg = &cfg, .plan = &hand.plan, .credit_when_sent = true});
    gw_scheduler_begin(s, 0);
    layer_ready(s, &hand.plan, 1, 0);
    expect_piece(s, 0, 2, 1, 0, 10000);
    expect_piece(s, 0, 2, 1, 10000, 10000);
    expect_none(s, 0);
    struct gw_piece piece = {.id = 2, .first_tensor = 2, .tensor_count = 1, .bytes = 10000};
    gw_scheduler_sent(s, &piece);
    expect_piece(s, 0, 2, 1, 20000, 10000);
    expect_none(s, 0);
    assert_false(gw_scheduler_done(s, &piece));
    expect_none(s, 0);
    gw_scheduler_close(s);
}

static void scheduler_partition__is_of_whole_elements_and_not_tiny(void **state)
{
    (void)state;
    struct hand_plan hand;
    four_layers(&hand);
    struct gw_scheduler *s = scheduler_open(&hand.plan, "p3", "partition=1", 0, 0);
    gw_scheduler_begin(s, 0);
    layer_ready(s, &hand.plan, 0, 0);
    expect_piece(s, 0, 0, 1, 0, 1024);
    gw_scheduler_close(s);
    s = scheduler_open(&hand.plan, "p3", "partition=1025", 0, 0);
    gw_scheduler_begin(s, 0);
    layer_ready(s, &hand.plan, 0, 0);
    expect_piece(s, 0, 0, 1, 0, 1028);
    gw_scheduler_close(s);
    s = scheduler_open(&hand.plan, "p3", "partition=0", 0, 0);
    assert_int_equal(gw_scheduler_pieces(s), 5);
    gw_scheduler_close(s);
}

static void scheduler_fusion__fills_buffers_at_each_cycle(void **state)
{
    (void)state;
    struct hand_plan hand;
    hand_plan_init(&hand);
    for (int l = 0; l < 6; l++)
        hand_plan_add(&hand, 1000, 100, GW_US);
    struct gw_scheduler *s = scheduler_open(&hand.plan, "wfbp", "", 2250, 100);
    gw_scheduler_begin(s, 1000);
    layer_ready(s, &hand.plan, 5, 1010);
    expect_none(s, 1010);
    assert_int_equal(gw_scheduler_deadline(s, 1010), 1100);
    layer_ready(s, &hand.plan, 4, 1020);
    layer_ready(s, &hand.plan, 3, 1090);
    expect_none(s, 1099);
    layer_ready(s, &hand.plan, 2, 1101); /* the cycle before has let the others go */
    expect_piece(s, 1101, 8, 4, 0,
                 2200); /* the oldest layer and its neighbour; nothing more fits */
    expect_piece(s, 1101, 6, 2, 0, 1100);
    expect_none(s, 1101);
    assert_int_equal(gw_scheduler_deadline(s, 1101), 1200);
    layer_ready(s, &hand.plan, 1, 1200); /* a multiple itself: leaves at once */
    expect_piece(s, 1200, 2, 4, 0, 2200);
    assert_true(gw_scheduler_deadline(s, 1200) == GW_TIME_NEVER);
    gw_scheduler_close(s);
}

static void scheduler_fusion__keeps_to_the_schedule(void **state)
{
    (void)state;
    struct hand_plan hand;
    four_layers(&hand);
    /* SEQ: one buffer for all, once the backward pass is over. */
    struct gw_scheduler *s = scheduler_open(&hand.plan, "seq", "", 64000000, 0);
    gw_scheduler_begin(s, 0);
    for (uint32_t l = 4; l-- > 0;)
        layer_ready(s, &hand.plan, l, 0);
    expect_none(s, 0);
    gw_scheduler_backward_over(s, 0);
    expect_piece(s, 0, 0, 5, 0, 52800);
    gw_scheduler_close(s);
    /* By layer: the front first; what is cut stays cut, and no buffer is larger than a slice. */
    s = scheduler_open(&hand.plan, "p3", "partition=16KB", 64000000, 0);
    gw_scheduler_begin(s, 0);
    for (uint32_t l = 4; l-- > 0;)
        layer_ready(s, &hand.plan, l, 0);
    expect_piece(s, 0, 0, 2, 0, 8400);
    expect_piece(s, 0, 2, 1, 0, 16000);
    expect_piece(s, 0, 2, 1, 16000, 16000);
    expect_piece(s, 0, 2, 1, 32000, 8000);
    expect_piece(s, 0, 3, 2, 0, 4400);
    gw_scheduler_close(s);
    /* A tensor above the buffer leaves whole and alone. */
    s = scheduler_open(&hand.plan, "wfbp", "", 5000, 0);
    gw_scheduler_begin(s, 0);
    for (uint32_t l = 4; l-- > 0;)
        layer_ready(s, &hand.plan, l, 10 * (4 - l));
    expect_piece(s, 40, 3, 2, 0, 4400);
    expect_piece(s, 40, 2, 1, 0, 40000);
    expect_piece(s, 40, 0, 1, 0, 8000);
    expect_piece(s, 40, 1, 1, 0, 400);
    gw_scheduler_close(s);
}

static void scheduler_has__tells_who_follows_what_it_can_sum(void **state)
{
    (void)state;
    struct hand_plan hand;
    four_layers(&hand);
    static const char *const schedules[] = {"wfbp", "seq"};
    for (int i = 0; i < 2; i++) {
        struct gw_scheduler *s = scheduler_open(&hand.plan, schedules[i], "", 64000, GW_MS);
        struct gw_piece rest = {.id = 0, .tensor_count = 3, .bytes = 48400};
        struct gw_piece last = {.id = 3, .first_tensor = 3, .tensor_count = 2, .bytes = 4400};
        for (gw_time begin = 0; begin < 2; begin++) { /* what is left of an iteration is gone */
            gw_scheduler_begin(s, begin);
            gw_scheduler_ready(s, 4, begin);
            assert_false(gw_scheduler_has(s, &last));
            gw_scheduler_ready(s, 3, begin);
            assert_int_equal(gw_scheduler_has(s, &last), i == 0);
            layer_ready(s, &hand.plan, 1, begin);
            layer_ready(s, &hand.plan, 0, begin);
            gw_scheduler_backward_over(s, begin);
            assert_true(gw_scheduler_has(s, &last) && gw_scheduler_has(s, &rest));
            assert_int_equal(gw_scheduler_done(s, &last), i == 0);
            assert_int_equal(gw_scheduler_may_compute(s, 3), i == 0);
            assert_true(gw_scheduler_done(s, &rest));
            assert_true(gw_scheduler_is_over(s));
        }
        gw_scheduler_close(s);
    }
}

/* ---- Any order of readiness and of completion. ---- */

static void draw_plan(struct hand_plan *hand, struct gw_prng *prng)
{
    hand_plan_init(hand);
    uint32_t layers = 1 + gw_prng_below(prng, HAND_LAYERS_MAX);
    for (uint32_t l = 0; l < layers; l++) {
        uint64_t weights = 4 * (uint64_t)gw_prng_below(prng, 1u << gw_prng_below(prng, 16));
        uint64_t biases = 4 * (uint64_t)gw_prng_below(prng, 100);
        hand_plan_add(hand, l || weights ? weights : 4, biases, GW_US);
    }
}

/* Marks a piece's bytes as seen, each element once, and its number. */
static void see(const struct hand_plan *hand, const struct gw_piece *piece, uint64_t seen[],
                unsigned char ids[])
{
    assert_false(ids[piece->id]);
    ids[piece->id] = 1;
    assert_true(piece->bytes > 0 && piece->bytes % 4 == 0);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < piece->tensor_count; i++)
        bytes += hand->tensors[piece->first_tensor + i].bytes;
    if (piece->tensor_count > 1) {
        assert_int_equal(piece->bytes, bytes);
        for (uint32_t i = 0; i < piece->tensor_count; i++) {
            assert_int_equal(seen[piece->first_tensor + i], 0);
            seen[piece->first_tensor + i] = hand->tensors[piece->first_tensor + i].bytes;
        }
    } else { /* slices of a tensor follow each other */
        assert_int_equal(piece->first, seen[piece->first_tensor]);
        seen[piece->first_tensor] += piece->bytes;
        assert_true(seen[piece->first_tensor] <= bytes);
    }
}

static void run_iteration(struct gw_scheduler *s, const struct hand_plan *hand,
                          struct gw_prng *prng)
{
    static struct gw_piece out[1 << 20];
    static unsigned char ids[1 << 20];
    uint64_t seen[2 * HAND_LAYERS_MAX] = {0}, sent = 0;
    uint32_t out_count = 0, layer = hand->plan.layer_count, freed = 0;
    gw_time now = gw_prng_below(prng, 1000);
    assert_true(gw_scheduler_pieces(s) <= sizeof(ids));
    memset(ids, 0, gw_scheduler_pieces(s));
    gw_scheduler_begin(s, now);
    for (uint32_t idle = 0; layer > 0 || !gw_scheduler_is_over(s);) {
        struct gw_piece piece;
        assert_true(++idle < 100000);
        now += gw_prng_below(prng, 100);
        if (layer > 0 && gw_prng_below(prng, 3) == 0) {
            layer_ready(s, &hand->plan, --layer, now);
            if (layer == 0)
                gw_scheduler_backward_over(s, now);
        }
        while (gw_prng_below(prng, 8) && gw_scheduler_next(s, &piece, now)) {
            see(hand, &piece, seen, ids);
            assert_true(gw_scheduler_has(s, &piece));
            out[out_count++] = piece;
            sent += piece.bytes;
            idle = 0;
        }
        if (out_count && gw_prng_below(prng, 2)) {
            uint32_t i = gw_prng_below(prng, out_count);
            piece = out[i];
            out[i] = out[--out_count];
            freed += gw_scheduler_done(s, &piece);
            idle = 0;
        }
    }
    assert_int_equal(out_count, 0);
    assert_int_equal(sent, hand->plan.bytes);
    assert_true(freed > 0);
    for (uint32_t l = 0; l < hand->plan.layer_count; l++)
        assert_true(gw_scheduler_may_compute(s, l));
}

static void scheduler_any__hands_out_every_byte_once(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(SEED, 0);
    print_message("seed %d\n", SEED);
    for (int round = 0; round < ROUNDS; round++) {
        struct hand_plan hand;
        draw_plan(&hand, &prng);
        const struct gw_algo *algo =
            gw_schedule_registry.algos[gw_prng_below(&prng, gw_schedule_registry.count)];
        char settings[64] = "";
        if (algo->param_count)
            snprintf(settings, sizeof(settings), "partition=%u credit=%u",
                     gw_prng_below(&prng, 3) * (1 + gw_prng_below(&prng, 60000)),
                     gw_prng_below(&prng, 200000));
        struct gw_scheduler *s =
            scheduler_open(&hand.plan, algo->name, settings,
                           gw_prng_below(&prng, 2) * gw_prng_below(&prng, 100000),
                           gw_prng_below(&prng, 2) * gw_prng_below(&prng, 500));
        run_iteration(s, &hand, &prng);
        run_iteration(s, &hand, &prng);
        gw_scheduler_close(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scheduler_seq__sends_after_the_backward_pass_in_its_order),
        cmocka_unit_test(scheduler_wfbp__sends_what_is_ready_and_frees_layer_by_layer),
        cmocka_unit_test(scheduler_p3__cuts_and_prefers_the_front),
        cmocka_unit_test(scheduler_credit__may_be_overdrawn_by_one_piece),
        cmocka_unit_test(scheduler_sent__gives_credit_back_once),
        cmocka_unit_test(scheduler_partition__is_of_whole_elements_and_not_tiny),
        cmocka_unit_test(scheduler_fusion__fills_buffers_at_each_cycle),
        cmocka_unit_test(scheduler_fusion__keeps_to_the_schedule),
        cmocka_unit_test(scheduler_has__tells_who_follows_what_it_can_sum),
        cmocka_unit_test(scheduler_any__hands_out_every_byte_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
