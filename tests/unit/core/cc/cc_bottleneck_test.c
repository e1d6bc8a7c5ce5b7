/*
 * Swift, MP-RDMA, BBR and NSCC over one bottleneck link: what each claims of a queue, and that each
 * drains an incast.
 */
#include "bottleneck.h"

#include <math.h>

enum {
    SEEDS = 3,
};

/* What senders met after the model's `check_context`, a point in time. */
struct seen {
    gw_time from;
    gw_time rtt_max;
    double rtt_sum;
    uint32_t acks;
};

static void check_rtt(struct model *m, struct sender *s, const void *before, gw_time rtt)
{
    struct seen *seen = m->check_context;
    (void)s;
    (void)before;
    if (m->now < seen->from)
        return;
    seen->rtt_max = rtt > seen->rtt_max ? rtt : seen->rtt_max;
    seen->rtt_sum += (double)rtt;
    seen->acks++;
}

static double utilisation(const struct seen *seen, uint64_t link_bps)
{
    return (double)seen->acks * WIRE * 8 / (double)link_bps / (100 * BRTT / 1e12);
}

/* One endless flow for 200 base RTTs; what the last 100 of them saw. */
static struct seen alone(const char *cc, const char *preset, const char *initial, uint64_t link_bps)
{
    struct model *m = model_open(cc, 1, ENDLESS, 1);
    struct seen seen = {.from = 100 * BRTT};
    m->link_bps = link_bps;
    m->check = check_rtt;
    m->check_context = &seen;
    sender_start(m, 0, preset, initial);
    model_run(m, 200 * BRTT);
    print_message("%s %s: utilisation %.4f, RTT mean %.3f max %.3f brtt, %u trims\n", cc,
                  preset ? preset : "", utilisation(&seen, link_bps),
                  seen.rtt_sum / seen.acks / BRTT, (double)seen.rtt_max / BRTT, (unsigned)m->trims);
    model_close(m);
    return seen;
}

/*
 * P4 of Swift: alone on the link, the delay is below the target and the link is used. Behind a link
 * of half the rate, where the flow makes a queue, the delay settles where what one RTT adds (two
 * packets) is what it takes: a share of 2 / cwnd above the target.
 */
static void swift_alone__uses_the_link_within_the_target(void **state)
{
    (void)state;
    struct seen seen = alone("swift", "smartt", "0.1", RATE);
    assert_true(utilisation(&seen, RATE) > 0.95);
    assert_true((double)seen.rtt_max <= 1.02545 * BRTT);

    seen = alone("swift", "smartt", "1", RATE / 2);
    double delay = seen.rtt_sum / seen.acks / BRTT, bdp = (double)BDP / MTU;
    double cwnd = bdp / 2 * delay;
    double alpha = 5 / (1 / sqrt(0.1) - 1 / sqrt(bdp));
    double target = 1.02545 + alpha * (1 / sqrt(cwnd) - 1 / sqrt(bdp));
    assert_true(utilisation(&seen, RATE / 2) > 0.95);
    assert_true(delay >= target);
    assert_true(delay <= target / (1 - 2 / cwnd));
}

/* Whether the pace is the link's rate, give or take 5 %, times one of BBR's gains. */
static void check_bbr_rate(struct model *m, struct sender *s, const void *before, gw_time rtt)
{
    static const double gains[] = {2.89, 0.35, 1.25, 1, 0.75};
    (void)before;
    (void)rtt;
    if (m->now < 8 * BRTT)
        return;
    double rate = 8e12 * (1 << GW_BYTE_TIME_SHIFT) / (double)s->window.pace / (double)m->link_bps;
    bool found = false;
    for (size_t i = 0; i < GW_COUNT_OF(gains); i++)
        found = found || (rate / gains[i] > 0.95 && rate / gains[i] < 1.05);
    assert_true(found);
    ++*(uint32_t *)m->check_context;
}

/* P1 of BBR: the estimate is the link's rate within eight RTTs, and stays. */
static void bbr_alone__finds_the_rate_in_eight_rtts(void **state)
{
    static const uint64_t links[] = {RATE, RATE / 2, RATE / 4};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(links); i++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct model *m = model_open("bbr", 1, ENDLESS, seed);
            uint32_t checks = 0;
            m->link_bps = links[i];
            m->check = check_bbr_rate;
            m->check_context = &checks;
            sender_start(m, 0, "smartt", NULL);
            model_run(m, 100 * BRTT);
            assert_true(checks > 1000);
            model_close(m);
        }
}

/* What a window did after `from`. */
struct marks {
    gw_time from;
    uint32_t ups; /* ACKs without a mark */
    uint32_t downs;
    uint64_t cwnd[2]; /* of each sender, at its last feedback */
    double cwnd_sum;
};

static void check_marks(struct model *m, struct sender *s, const void *state, gw_time rtt)
{
    struct marks *marks = m->check_context;
    uint64_t *cwnd = &marks->cwnd[s - m->senders], before = *cwnd;
    (void)state;
    (void)rtt;
    *cwnd = s->window.cwnd;
    if (m->now < marks->from)
        return;
    marks->downs += *cwnd < before;
    marks->ups += *cwnd > before;
    marks->cwnd_sum += (double)*cwnd;
}

/* P1 of MP-RDMA where a real queue marks: W packets and a share p of marks fit together. */
static void mprdma_pair__balances_marks(void **state)
{
    (void)state;
    struct model *m = model_open("mprdma", 2, ENDLESS, 1);
    struct marks marks = {.from = 200 * BRTT};
    m->check = check_marks;
    m->check_context = &marks;
    for (uint32_t i = 0; i < 2; i++)
        sender_start(m, i, NULL, NULL);
    model_run(m, 1000 * BRTT);
    double share = (double)marks.downs / (marks.downs + marks.ups);
    double cwnd = marks.cwnd_sum / (marks.downs + marks.ups) / MTU;
    print_message("mprdma: %.5f marked, %.1f packets\n", share, cwnd);
    assert_true(marks.downs > 100);
    assert_true(cwnd > 0.85 * 2 * (1 - share) / share && cwnd < 1.15 * 2 * (1 - share) / share);
    model_close(m);
}

struct contender {
    const char *cc, *preset;
    bool quick_adapt;
};

/* All start at once with their first windows. Returns completion over ideal. */
static double incast(const struct contender *contender, uint32_t count, uint32_t size,
                     uint64_t seed)
{
    struct model *m = model_open(contender->cc, count, size, seed);
    m->quick_adapt = contender->quick_adapt;
    for (uint32_t i = 0; i < count; i++)
        sender_start(m, i, contender->preset, NULL);
    model_run(m, GW_S);
    assert_int_equal(m->running, 0);
    gw_time first = GW_S, last = 0;
    for (uint32_t i = 0; i < count; i++) {
        gw_time ended = m->senders[i].ended;
        first = ended < first ? ended : first;
        last = ended > last ? ended : last;
    }
    double ratio = (double)last / (double)((uint64_t)count * size * PKT_GAP + BRTT);
    print_message("%s %s %s %u:1 x %u: %.3f of ideal, spread %.3f, %u trims\n", contender->cc,
                  contender->preset ? contender->preset : "",
                  contender->quick_adapt ? "QuickAdapt" : "", count, size, ratio,
                  (double)(last - first) / (double)first, (unsigned)m->trims);
    model_close(m);
    return ratio;
}

/* Every sender keeps a shared link busy to the end: no more than a fifth above ideal. */
static void baselines_incast__drain_near_ideal(void **state)
{
    static const struct contender cases[] = {{.cc = "swift", .preset = "smartt"},
                                             {.cc = "swift", .preset = "drafts"},
                                             {.cc = "mprdma"},
                                             {.cc = "bbr"},
                                             {.cc = "nscc"}};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            assert_true(incast(&cases[i], 8, 2048, seed) <= 1.2);
            assert_true(incast(&cases[i], 32, 512, seed) <= 1.2);
        }
}

/* QuickAdapt "can be retrofitted to any transport" (SMaRTT-REPS, section 1): what an incast of
 * messages of a bdp loses against the ideal becomes less. */
static void quick_adapt_incast__helps_others(void **state)
{
    static const struct {
        struct contender without;
        double remains_max;
    } cases[] = {{{.cc = "swift", .preset = "smartt"}, 0.9}, {{.cc = "mprdma"}, 0.75}};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct contender with = cases[i].without;
        double lost = 0, lost_with = 0;
        with.quick_adapt = true;
        for (uint64_t seed = 1; seed <= 2 * SEEDS; seed++) {
            lost += incast(&cases[i].without, 8, 256, seed) - 1;
            lost_with += incast(&with, 8, 256, seed) - 1;
        }
        print_message("%s: %.3f of the loss remains\n", with.cc, lost_with / lost);
        assert_true(lost_with <= cases[i].remains_max * lost);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(swift_alone__uses_the_link_within_the_target),
        cmocka_unit_test(bbr_alone__finds_the_rate_in_eight_rtts),
        cmocka_unit_test(mprdma_pair__balances_marks),
        cmocka_unit_test(baselines_incast__drain_near_ideal),
        cmocka_unit_test(quick_adapt_incast__helps_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
