/*
 * What the schedules are for: one worker that computes, one ideal link that sums whatever crosses
 * it, and the time between two iterations.
 */
#include "unit/workload/schedule/schedule_fixture.h"

#include "workload/model/compute.h"

enum {
    QUEUE_MAX = 1 << 16, /* pieces on the link */
    ITERATIONS = 3,      /* the first one has no gradients before it; later ones are alike */
};

/* The worker and its link. */
struct worker {
    const struct gw_plan *plan;
    struct gw_scheduler *scheduler;
    gw_byte_time byte_time; /* of the link; 0: it takes no time */
    gw_time now;
    gw_time computed;              /* when the layer is computed; GW_TIME_NEVER: none is */
    gw_time crossed;               /* when the first piece of the queue is; likewise */
    gw_time began[ITERATIONS + 1]; /* forward passes */
    struct gw_piece queue[QUEUE_MAX];
    uint32_t first, end; /* of the queue, in a circle */
    uint64_t sent;       /* bytes of the iteration */
    uint32_t sent_count;
    uint32_t layer;
    uint32_t iteration;
    bool is_backward;
};

static gw_time link_time(const struct worker *w, uint64_t bytes)
{
    return (gw_time)(((unsigned __int128)bytes * w->byte_time) >> GW_BYTE_TIME_SHIFT);
}

/* Begins the next layer if it may; returns whether anything changed. */
static bool compute(struct worker *w)
{
    const struct gw_plan *plan = w->plan;
    if (w->computed != GW_TIME_NEVER && w->computed > w->now)
        return false;
    if (w->computed != GW_TIME_NEVER) {
        w->computed = GW_TIME_NEVER;
        if (w->is_backward)
            layer_ready(w->scheduler, plan, w->layer, w->now);
        if (w->is_backward && w->layer == 0) {
            gw_scheduler_backward_over(w->scheduler, w->now);
            w->is_backward = false;
        } else if (w->is_backward) {
            w->layer--;
        } else if (++w->layer == plan->layer_count) {
            w->layer--;
            w->is_backward = true;
            assert_int_equal(w->sent, w->iteration > 1 ? plan->bytes : 0); /* P5 */
            w->sent = w->sent_count = 0;
            gw_scheduler_begin(w->scheduler, w->now);
        }
        return true;
    }
    if (!w->is_backward && !gw_scheduler_may_compute(w->scheduler, w->layer))
        return false;
    if (!w->is_backward && w->layer == 0) {
        w->began[w->iteration++] = w->now;
        if (w->iteration > ITERATIONS)
            return false;
    }
    const struct gw_plan_layer *layer = &plan->layers[w->layer];
    w->computed = w->now + (w->is_backward ? layer->backward : layer->forward);
    return true;
}

/* Ends and begins pieces on the link; returns whether anything changed. */
static bool transmit(struct worker *w)
{
    bool is_changed = false;
    while (gw_scheduler_next(w->scheduler, &w->queue[w->end % QUEUE_MAX], w->now)) {
        w->sent += w->queue[w->end % QUEUE_MAX].bytes;
        w->sent_count++;
        assert_true(w->end++ - w->first < QUEUE_MAX);
        is_changed = true;
    }
    if (w->crossed != GW_TIME_NEVER && w->crossed <= w->now) {
        w->crossed = GW_TIME_NEVER;
        gw_scheduler_done(w->scheduler, &w->queue[w->first++ % QUEUE_MAX]);
        is_changed = true;
    }
    if (w->crossed == GW_TIME_NEVER && w->first != w->end) {
        w->crossed = w->now + link_time(w, w->queue[w->first % QUEUE_MAX].bytes);
        is_changed = true;
    }
    return is_changed;
}

static gw_time earlier(gw_time a, gw_time b)
{
    return gw_deadline_before(a, b) ? a : b;
}

struct link {
    uint64_t rate_bps;    /* 0: takes no time */
    const char *settings; /* of the schedule; NULL: none */
    uint64_t fusion;
    gw_time cycle;
    uint32_t pieces; /* set: of an iteration */
};

/* Time of an iteration, from one forward pass to the next; all bytes must cross in each. */
static gw_time iteration(const struct gw_plan *plan, const char *schedule, struct link *link)
{
    static struct worker w;
    w = (struct worker){
        .plan = plan,
        .scheduler = scheduler_open(plan, schedule, link->settings ? link->settings : "",
                                    link->fusion, link->cycle),
        .byte_time = link->rate_bps ? gw_byte_time_from_bps(link->rate_bps) : 0,
        .computed = GW_TIME_NEVER,
        .crossed = GW_TIME_NEVER,
    };
    while (w.iteration <= ITERATIONS) {
        /* What is computed at this instant comes before what leaves at it. */
        if (compute(&w) || transmit(&w))
            continue;
        if (w.iteration > ITERATIONS)
            break;
        gw_time next =
            earlier(earlier(w.computed, w.crossed), gw_scheduler_deadline(w.scheduler, w.now));
        assert_true(next != GW_TIME_NEVER && next > w.now);
        w.now = next;
    }
    while (!gw_scheduler_is_over(w.scheduler)) { /* what the front layers did not wait for */
        w.now = earlier(w.crossed, gw_scheduler_deadline(w.scheduler, w.now));
        assert_true(w.now != GW_TIME_NEVER);
        while (transmit(&w))
            continue;
    }
    assert_int_equal(w.sent, plan->bytes);
    assert_true(w.sent_count <= gw_scheduler_pieces(w.scheduler));
    link->pieces = w.sent_count;
    gw_scheduler_close(w.scheduler);
    gw_time last = w.began[ITERATIONS] - w.began[ITERATIONS - 1];
    assert_int_equal(last, w.began[ITERATIONS - 1] - w.began[ITERATIONS - 2]);
    return last;
}

static void make_plan(struct gw_plan *plan, const char *name, const char *device)
{
    struct gw_model model;
    char why[512];
    assert_int_equal(gw_model_load(&model, name, why, sizeof(why)), 0);
    struct gw_plan_cfg cfg = {.device = device, .batch = 32, .compression = GW_Q16_ONE};
    assert_int_equal(gw_plan_make(plan, &model, &cfg, why, sizeof(why)), 0);
    gw_model_free(&model);
}

static const char *const MODELS[] = {"alexnet", "vgg16", "resnet50", "resnet152", "bert_base"};

enum {
    MODEL_COUNT = sizeof(MODELS) / sizeof(MODELS[0]),
};

/* P2 and P5: without a network to wait for, all take what is computed. */
static void overlap_infinite_link__leaves_the_computation(void **state)
{
    (void)state;
    for (int m = 0; m < MODEL_COUNT; m++) {
        struct gw_plan plan;
        make_plan(&plan, MODELS[m], "2080Ti");
        for (uint32_t s = 0; s < gw_schedule_registry.count; s++) {
            const char *schedule = gw_schedule_registry.algos[s]->name;
            gw_time time = iteration(&plan, schedule, &(struct link){0});
            assert_int_equal(time, plan.forward + plan.backward);
            time = iteration(&plan, schedule, &(struct link){.fusion = 64000000});
            assert_int_equal(time, plan.forward + plan.backward);
        }
        gw_plan_free(&plan);
    }
}

/* P3: SEQ >= WFBP >= by priority, and SEQ is the sum of both. */
static void overlap_any_link__gets_better_by_overlap_and_by_priority(void **state)
{
    (void)state;
    int wins = 0;
    for (int m = 0; m < MODEL_COUNT; m++) {
        struct gw_plan plan;
        make_plan(&plan, MODELS[m], "V100");
        for (uint64_t gbps = 1; gbps <= 100; gbps *= 10) {
            struct link link = {.rate_bps = gbps * 1000000000};
            gw_time seq = iteration(&plan, "seq", &link);
            gw_time wfbp = iteration(&plan, "wfbp", &link);
            gw_time p3 = iteration(&plan, "p3", &link);
            gw_time byte_scheduler = iteration(&plan, "bytescheduler", &link);
            gw_time both = plan.forward + plan.backward;
            gw_time wire = plan.bytes * 8000 / gbps;
            assert_true(seq + 2 * plan.tensor_count >= both + wire && seq <= both + wire);
            assert_true(wfbp < seq);
            assert_true(p3 <= wfbp && byte_scheduler <= wfbp);
            assert_true(p3 >= both && p3 + GW_US >= wire);
            wins += p3 < wfbp && byte_scheduler < wfbp;
        }
        gw_plan_free(&plan);
    }
    assert_true(wins >= 2 * MODEL_COUNT);
}

/* A plan whose times are computed by hand: two layers, the front one large. */
static void overlap_two_layers__is_what_it_should_be(void **state)
{
    (void)state;
    struct hand_plan hand;
    struct link link = {.rate_bps = UINT64_C(8000000000)}; /* a byte per nanosecond */
    hand_plan_init(&hand);
    hand_plan_add(&hand, 30000, 0, 10 * GW_US);
    hand_plan_add(&hand, 30000, 0, 10 * GW_US);
    /* 20 us forward and 40 backward; then 60 us on the link. */
    assert_int_equal(iteration(&hand.plan, "seq", &link), 120 * GW_US);
    /* The back layer crosses from 40 to 70 us, the front one up to 100. */
    assert_int_equal(iteration(&hand.plan, "wfbp", &link), 100 * GW_US);
    hand.layers[1].backward = 5 * GW_US;
    hand.layers[0].backward = 5 * GW_US;
    hand_plan_add(&hand, 30000, 0, 10 * GW_US);
    /* 30 us forward, 30 backward: the layers cross from 50 us on, from the back to the front. */
    assert_int_equal(iteration(&hand.plan, "wfbp", &link), 140 * GW_US);
    /* The front one overtakes the middle one, which is there 20 us after the front one has been
     * computed; the back layer's gradients are ready after 70 us, and the front's back 60 later. */
    link.settings = "credit=1";
    assert_int_equal(iteration(&hand.plan, "p3", &link), 130 * GW_US);
    assert_int_equal(iteration(&hand.plan, "bytescheduler", &link), 130 * GW_US);
    /* With credit for both the front one finds the middle one under way. */
    link.settings = "credit=60KB";
    assert_int_equal(iteration(&hand.plan, "p3", &link), 140 * GW_US);
}

/* With no computation at all the link is the limit, and a cycle of fusion adds what it waits. */
static void overlap_zero_compute__is_the_links_time(void **state)
{
    (void)state;
    struct gw_plan plan;
    make_plan(&plan, "resnet50", "none");
    gw_time wire = plan.bytes * 8000 / 100;
    for (uint32_t s = 0; s < gw_schedule_registry.count; s++) {
        const char *schedule = gw_schedule_registry.algos[s]->name;
        struct link link = {.rate_bps = UINT64_C(100000000000)};
        gw_time time = iteration(&plan, schedule, &link);
        assert_in_range(time, wire - GW_NS, wire);
        link.fusion = 64000000;
        link.cycle = 5 * GW_MS; /* all is ready at the first multiple, which is the beginning */
        assert_in_range(iteration(&plan, schedule, &link), wire - GW_NS, wire);
    }
    gw_plan_free(&plan);
}

static void overlap_fusion__joins_tensors_and_waits_for_its_cycle(void **state)
{
    (void)state;
    struct gw_plan plan;
    struct link plain = {.rate_bps = UINT64_C(10000000000)}, fused = plain;
    make_plan(&plan, "resnet50", "V100");
    fused.fusion = 64000000;
    fused.cycle = 5 * GW_MS;
    for (uint32_t s = 0; s < gw_schedule_registry.count; s++) {
        const struct gw_schedule_ops *ops = (const void *)gw_schedule_registry.algos[s];
        gw_time apart = iteration(&plan, ops->algo.name, &plain);
        gw_time together = iteration(&plan, ops->algo.name, &fused);
        assert_true(fused.pieces < plain.pieces);
        if (ops->by_layer) /* the order changes as well */
            continue;
        assert_true(fused.pieces <= 20);
        assert_true(together + plan.tensor_count >= apart);
        assert_true(together <= apart + fused.cycle);
    }
    gw_plan_free(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlap_infinite_link__leaves_the_computation),
        cmocka_unit_test(overlap_any_link__gets_better_by_overlap_and_by_priority),
        cmocka_unit_test(overlap_two_layers__is_what_it_should_be),
        cmocka_unit_test(overlap_zero_compute__is_the_links_time),
        cmocka_unit_test(overlap_fusion__joins_tensors_and_waits_for_its_cycle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
