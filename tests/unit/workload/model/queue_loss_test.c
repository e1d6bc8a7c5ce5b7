/* Losses by the formula against the discipline itself, under the arrivals that it assumes. */
#include "support.h"

#include <math.h>
#include <stdio.h>

#include "core/qdisc/qdisc.h"
#include "workload/model/drop_plan.h"

enum {
    PACKETS = 1 << 13,
    QUEUES = GW_DROP_QUEUES_MAX,
    MEAN = 10000, /* bytes of a packet; large, so that whole bytes do not matter */
    ARRIVALS = 3000000,
    SEED = 5,
};

static struct gw_pkt packets[PACKETS];

/* A case: thresholds and limits in packets. */
struct expectation {
    uint32_t queues;
    double loads[QUEUES], thresholds[QUEUES], limits[QUEUES];
    /* Of small and large packets: what the formula may be off, in percent; 0: is not compared. */
    double small_off[QUEUES], large_off[QUEUES];
};

/* A port that sends one byte in 1/MEAN of a second. */
struct port {
    const struct gw_qdisc_ops *ops;
    union gw_algo_cfg cfg;
    uint64_t memory[GW_QDISC_STATE_MAX / 8];
    struct gw_pkt_pool pool;
    struct gw_prng prng;
    struct gw_qdisc_port outside;
    double arrived[QUEUES][2], lost[QUEUES][2]; /* small, large */
};

static double uniform(struct gw_prng *prng)
{
    return ((double)(gw_prng_next(prng) >> 11) + 0.5) / 9007199254740992.0;
}

static double exponential(struct gw_prng *prng)
{
    return -log(uniform(prng));
}

static void port_open(struct port *port, const struct expectation *expectation)
{
    char lists[2][256] = {"", ""};
    *port = (struct port){.ops = (const void *)gw_registry_find(&gw_qdisc_registry, "dlcp"),
                          .prng = gw_prng_derive(SEED, 0)};
    gw_algo_defaults(&port->ops->algo, &port->cfg);
    for (uint32_t q = 0; q < expectation->queues; q++)
        for (int list = 0; list < 2; list++) {
            size_t used = strlen(lists[list]);
            const double *lengths = list == 0 ? expectation->thresholds : expectation->limits;
            snprintf(lists[list] + used, sizeof(lists[list]) - used, "%s%.0f", q ? "," : "",
                     lengths[q] * MEAN);
        }
    assert_int_equal(gw_algo_set(&port->ops->algo, &port->cfg, "thresholds", lists[0]), 0);
    assert_int_equal(gw_algo_set(&port->ops->algo, &port->cfg, "limits", lists[1]), 0);
    gw_pkt_pool_init(&port->pool, packets, 0, PACKETS, NULL);
    port->outside =
        (struct gw_qdisc_port){.pool = &port->pool, .prng = &port->prng, .trim_size = 64};
    port->ops->init(port->memory, &port->cfg, PACKETS * (uint32_t)MEAN);
}

static void arrive(struct port *port, const struct expectation *expectation, double total)
{
    double place = uniform(&port->prng) * total;
    uint32_t q = 0;
    for (; q + 1 < expectation->queues && place >= expectation->loads[q]; q++)
        place -= expectation->loads[q];
    bool large = uniform(&port->prng) < 0.5;
    struct gw_pkt *victim, *pkt = gw_pkt_claim(&port->pool);
    assert_non_null(pkt);
    pkt->q = (struct gw_qpkt){.size = (uint32_t)(exponential(&port->prng) * MEAN) + 1,
                              .class = (uint8_t)(6 - q),
                              .ecn = large ? GW_ECN_ECT0 : GW_ECN_NOT_ECT};
    port->arrived[q][large]++;
    if (port->ops->enqueue(port->memory, &port->cfg, &port->outside, pkt, UINT64_MAX, &victim) ==
        GW_QDISC_QUEUED)
        return;
    port->lost[q][large]++;
    gw_pkt_release(&port->pool, victim);
}

static void run(struct port *port, const struct expectation *expectation)
{
    double total = 0, done = INFINITY;
    for (uint32_t q = 0; q < expectation->queues; q++)
        total += expectation->loads[q];
    double next = exponential(&port->prng) / total;
    for (uint32_t n = 0; n < ARRIVALS;) {
        double now = next < done ? next : done;
        if (next <= done) {
            arrive(port, expectation, total);
            next = now + exponential(&port->prng) / total;
            n++;
            if (done != INFINITY)
                continue;
        }
        struct gw_pkt *pkt = port->ops->dequeue(port->memory, &port->cfg, &port->outside);
        done = pkt ? now + (double)pkt->q.size / MEAN : INFINITY;
        if (pkt)
            gw_pkt_release(&port->pool, pkt);
    }
}

static void compare(const struct expectation *expectation)
{
    static struct port port;
    struct gw_drop_port asked = {
        .queues = expectation->queues, .small = 0.5, .packet = MEAN, .buffer = 1000 * MEAN};
    struct gw_drop_plan plan = {0};
    for (uint32_t q = 0; q < asked.queues; q++) {
        asked.loads[q] = expectation->loads[q];
        plan.queues[q].threshold = (uint64_t)expectation->thresholds[q] * MEAN;
        plan.queues[q].limit = (uint64_t)expectation->limits[q] * MEAN;
    }
    gw_drop_plan_rate(&plan, &asked);
    port_open(&port, expectation);
    run(&port, expectation);
    for (uint32_t q = 0; q < asked.queues; q++)
        for (int large = 0; large < 2; large++) {
            double off = large ? expectation->large_off[q] : expectation->small_off[q];
            double seen = port.lost[q][large] / port.arrived[q][large];
            double said = large ? plan.queues[q].loss.large : plan.queues[q].loss.small;
            if (off == 0)
                continue;
            if (fabs(said / seen - 1) > off / 100)
                fail_msg("seed %d, queue %u of %u: %s: said %.5f, seen %.5f (%.0f packets)", SEED,
                         q + 1, asked.queues, large ? "large" : "small", said, seen,
                         port.lost[q][large]);
        }
}

/* One queue, far from empty and far beyond what the port serves. */
static void queue_loss__is_that_of_the_discipline_alone(void **state)
{
    static const struct expectation cases[] = {
        {1, {0.9}, {10}, {13}, {10}, {10}},
        {1, {0.9}, {5}, {8}, {10}, {10}},
        {1, {1.2}, {10}, {16}, {10}, {10}},
        {1, {0.5}, {3}, {3}, {10}, {10}},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++)
        compare(&cases[i]);
}

/* Queues behind others, whose busy periods they wait for, and before others, for one packet. */
static void queue_loss__is_that_of_the_discipline_among_others(void **state)
{
    static const struct expectation cases[] = {
        {2, {0.4, 0.4}, {60, 15}, {60, 15}, {0, 10}, {0, 10}},
        {3, {0.6, 0.18, 0.13}, {100, 100, 15}, {100, 100, 15}, {0, 0, 10}, {0, 0, 10}},
        {7,
         {0.28, 0.12, 0.11, 0.10, 0.10, 0.12, 0.11},
         {4, 4, 5, 5, 6, 9, 16},
         {5, 5, 6, 7, 9, 15, 31},
         {10, 10, 10, 10, 10, 10, 20},
         {10, 10, 10, 10, 10, 20, 0}},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++)
        compare(&cases[i]);
}

/* Known values of M/M/1/m, also where powers neither grow nor fall. */
static void gw_loss_paper__is_that_of_a_finite_queue(void **state)
{
    (void)state;
    assert_float_equal(gw_loss_paper(0.5, 1), 1.0 / 3, 1e-12);
    assert_float_equal(gw_loss_paper(1, 4), 0.2, 1e-12);
    assert_float_equal(gw_loss_paper(1 + 1e-9, 4), 0.2, 1e-6);
    assert_float_equal(gw_loss_paper(2, 3), 8.0 / 15, 1e-12);
    assert_float_equal(gw_loss_paper(4, 0.5), 6.0 / 7, 1e-9);
    assert_float_equal(gw_loss_paper(2, 100000), 0.5, 1e-12);
    assert_true(gw_loss_paper(0.5, 100000) < 1e-300);
}

/* exp(-x) without the C library. */
static void gw_loss_decay__is_the_exponential(void **state)
{
    (void)state;
    for (double x = 0; x < 600; x = x * 1.5 + 0.01)
        assert_true(fabs(gw_loss_decay(x) / exp(-x) - 1) < 1e-9);
    assert_true(gw_loss_decay(1e6) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_loss__is_that_of_the_discipline_alone),
        cmocka_unit_test(queue_loss__is_that_of_the_discipline_among_others),
        cmocka_unit_test(gw_loss_paper__is_that_of_a_finite_queue),
        cmocka_unit_test(gw_loss_decay__is_the_exponential),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
