/*
 * PLB and FlowBender, which keep a flow on one path until that has been congested for some round
 * trips: the rules by direct calls, and what they make of a small fabric (lb_fabric.h).
 */
#include "lb_fabric.h"

enum {
    WINDOW = 10, /* packets per round of the direct calls */
};

#define RTT (DELAY * TICK)

static struct balancer make(const char *name, const char *preset, const char *setting,
                            const char *value, uint64_t seed)
{
    const struct balancer_options options = {
        .name = name, .preset = preset, .settings = {setting, value}, .bdp = 20 * MTU};
    struct balancer b = balancer_of(&options, seed);
    b.now = (gw_time)0 - 100 * RTT; /* wraps on the way */
    return b;
}

/* One RTT in which WINDOW packets come back, `marked` of them with CE. */
static void round_trip(struct balancer *b, uint32_t marked)
{
    for (uint32_t i = 0; i < WINDOW; i++) {
        b->now += RTT / WINDOW;
        on_ack_after(b, pick(b), i < marked, RTT);
    }
}

/* A flow at the end of its first round, which was good; the next ones end with round_trip(). */
static struct balancer make_running(const char *name, const char *preset, const char *setting,
                                    const char *value, uint64_t seed)
{
    struct balancer b = make(name, preset, setting, value, seed);
    on_ack(&b, pick(&b), false);
    round_trip(&b, 0);
    return b;
}

/* Rounds of `marked` packets until the entropy changes; 0 if it stays for 100. */
static uint32_t rounds_until_change(struct balancer *b, uint32_t marked)
{
    uint16_t before = pick(b);
    for (uint32_t i = 1; i <= 100; i++) {
        round_trip(b, marked);
        if (pick(b) != before)
            return i;
    }
    return 0;
}

/*
 * Random feedback at random intervals, no timeouts: the least time between two changes of entropy,
 * and in *changes how many there were. An RTT is DELAY ticks or up to twice that.
 */
static gw_time least_stay(struct balancer *b, uint32_t bad_in_64, uint32_t *changes)
{
    struct gw_prng prng = gw_prng_derive(11, bad_in_64);
    gw_time least = GW_TIME_NEVER, since = b->now;
    uint16_t entropy = pick(b);
    *changes = 0;
    for (int step = 0; step < 100000; step++) {
        b->now += gw_prng_below(&prng, (uint32_t)(RTT / 5));
        bool bad = gw_prng_below(&prng, 64) < bad_in_64;
        gw_time rtt = RTT + (bad ? RTT / 10 + gw_prng_below(&prng, (uint32_t)RTT) : 0);
        if (bad && gw_prng_below(&prng, 4) == 0)
            on_trim(b, entropy);
        else
            on_ack_after(b, entropy, bad, rtt);
        if (pick(b) == entropy)
            continue;
        entropy = pick(b);
        if (b->now - since<least && * changes> 0)
            least = b->now - since;
        since = b->now;
        ++*changes;
    }
    return least;
}

/* ---- FlowBender. ---- */

/* More than T = 5 % of 10 packets is one; V goes up by one, modulo 8. */
static void flowbender__leaves_after_one_congested_round(void **state)
{
    (void)state;
    struct balancer b = make_running("flowbender", NULL, NULL, NULL, 1);
    assert_int_equal(rounds_until_change(&b, 0), 0);
    for (uint32_t i = 0; i < 20; i++) {
        uint16_t before = pick(&b);
        assert_int_equal(rounds_until_change(&b, 1), 1);
        assert_int_equal(pick(&b), (before + 1) % 8);
    }
}

/* A share equal to T does not count. */
static void flowbender__stays_at_the_threshold(void **state)
{
    (void)state;
    struct balancer at = make_running("flowbender", NULL, "threshold", "50%", 1), above = at;
    assert_int_equal(rounds_until_change(&at, 5), 0);
    assert_int_equal(rounds_until_change(&above, 6), 1);
}

/* N congested rounds in a row; a clean one starts the count again. */
static void flowbender__counts_rounds_in_a_row(void **state)
{
    (void)state;
    struct balancer b = make_running("flowbender", NULL, "rounds", "3", 1);
    uint16_t before = pick(&b);
    for (uint32_t i = 0; i < 50; i++) {
        round_trip(&b, i % 3 < 2 ? WINDOW : 0);
        assert_int_equal(pick(&b), before);
    }
    round_trip(&b, 0);
    assert_int_equal(rounds_until_change(&b, WINDOW), 3);
}

static void flowbender__changes_at_most_once_per_rtt(void **state)
{
    (void)state;
    for (uint32_t bad = 8; bad <= 64; bad += 8) {
        struct balancer b = make("flowbender", NULL, NULL, NULL, bad);
        uint32_t changes;
        gw_time least = least_stay(&b, bad, &changes);
        assert_true(changes > 1000);
        assert_true(least >= RTT);
    }
}

/* At once, and once for all that was sent before. */
static void flowbender__leaves_once_per_lost_window(void **state)
{
    (void)state;
    struct balancer b = make("flowbender", NULL, NULL, NULL, 1);
    for (uint32_t i = 0; i < 20; i++) {
        uint16_t before = pick(&b);
        gw_time sent_at = b.now;
        b.now += 4 * RTT;
        for (uint32_t packet = 0; packet < WINDOW; packet++)
            on_timeout_of(&b, sent_at + packet);
        assert_int_equal(pick(&b), (before + 1) % 8);
    }
}

/* ---- PLB as in Linux. ---- */

/* Half of the packets marked is congestion; 12 such rounds in a row move the flow. */
static void plb_linux__moves_after_twelve_congested_rounds(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct balancer b = make_running("plb", "linux", NULL, NULL, seed);
        assert_int_equal(rounds_until_change(&b, WINDOW / 2 - 1), 0);
        assert_int_equal(rounds_until_change(&b, WINDOW / 2), 12);
        assert_int_equal(rounds_until_change(&b, WINDOW), 12);
    }
}

static void plb_linux__starts_again_after_a_good_round(void **state)
{
    (void)state;
    struct balancer b = make_running("plb", "linux", NULL, NULL, 1);
    uint16_t before = pick(&b);
    for (uint32_t i = 0; i < 100; i++) {
        round_trip(&b, i % 12 < 11 ? WINDOW : 0);
        assert_int_equal(pick(&b), before);
    }
}

/* With nothing in flight three congested rounds are enough, and none without any. */
static void plb_linux__moves_earlier_when_idle(void **state)
{
    (void)state;
    static const char *const idle_rounds[] = {"3", "0"};
    for (size_t i = 0; i < 2; i++) {
        struct balancer b = make_running("plb", "linux", "idle_rounds", idle_rounds[i], 1);
        for (uint32_t congested = 0; congested < 5; congested++) {
            uint16_t before = pick(&b);
            const struct gw_lb_echo last = {.rtt = RTT, .in_flight = 0, .entropy = before};
            b.now += 1;
            b.ops->on_ack(b.state, &b.cfg, &last, b.now); /* ends no round */
            bool moved = pick(&b) != before;
            assert_int_equal(moved, i == 0 && congested == 3);
            round_trip(&b, WINDOW);
        }
    }
}

/* A timeout moves at once; then congestion does not, for 60 to 120 base RTTs. */
static void plb_linux__is_suspended_after_a_timeout(void **state)
{
    (void)state;
    uint32_t least = UINT32_MAX, most = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct balancer b = make_running("plb", "linux", NULL, NULL, seed);
        uint16_t before = pick(&b);
        on_timeout(&b);
        assert_int_not_equal(pick(&b), before);
        uint16_t after = pick(&b);
        on_timeout(&b); /* of the same window */
        assert_int_equal(pick(&b), after);
        uint32_t rounds = 0, more = 0;
        while ((more = rounds_until_change(&b, WINDOW)) == 0)
            rounds += 100;
        rounds += more;
        least = rounds < least ? rounds : least;
        most = rounds > most ? rounds : most;
        assert_int_equal(rounds_until_change(&b, WINDOW), 12); /* as ever */
    }
    assert_in_range(least, 60, 75);
    assert_in_range(most, 105, 121);
}

static void plb_linux__moves_at_most_once_per_twelve_rtts(void **state)
{
    (void)state;
    struct balancer b = make("plb", "linux", "idle_rounds", "0", 1);
    uint32_t changes;
    gw_time least = least_stay(&b, 48, &changes);
    assert_true(changes > 100);
    assert_true(least >= 12 * RTT);
}

/* ---- PLB by delay. ---- */

/* The RTT of every packet is `percent` of the base RTT: RTTs until a move, 0 if none in 100. */
static uint32_t rtts_until_move(struct balancer *b, uint32_t percent)
{
    uint16_t before = pick(b);
    gw_time start = b->now;
    while (b->now - start < 100 * RTT) {
        b->now += RTT / WINDOW;
        on_ack_after(b, before, true, RTT * percent / 100);
        if (pick(b) != before)
            return (uint32_t)((b->now - start) / RTT);
    }
    return 0;
}

/* Marks say nothing here; 102 % is below Swift's target, 103 % above. */
static void plb_delay__stays_on_a_path_within_the_target(void **state)
{
    (void)state;
    struct balancer b = make("plb", NULL, NULL, NULL, 1);
    assert_int_equal(rtts_until_move(&b, 100), 0);
    assert_int_equal(rtts_until_move(&b, 102), 0);
    assert_in_range(rtts_until_move(&b, 103), 5, 7);
}

/* One good packet starts the time again. */
static void plb_delay__needs_all_packets_late(void **state)
{
    (void)state;
    struct balancer b = make("plb", NULL, NULL, NULL, 1);
    uint16_t before = pick(&b);
    for (uint32_t i = 0; i < 500; i++) {
        b.now += RTT / WINDOW;
        on_ack_after(&b, before, true, i % (4 * WINDOW) == 0 ? RTT : 2 * RTT);
        assert_int_equal(pick(&b), before);
    }
}

/* A flow that never had a good packet has a time of its own, and after it no other. */
static void plb_delay__moves_without_a_good_packet(void **state)
{
    (void)state;
    struct balancer b = make("plb", NULL, "first", "60us", 1); /* three RTTs */
    pick(&b);
    assert_int_equal(rtts_until_move(&b, 300), 3);
    assert_int_equal(rtts_until_move(&b, 300), 3);
    on_ack(&b, pick(&b), false);
    assert_in_range(rtts_until_move(&b, 300), 5, 100);
}

/* By default, as in htsim, that is a second. */
static void plb_delay__waits_for_the_first_good_packet(void **state)
{
    (void)state;
    struct balancer b = make("plb", NULL, NULL, NULL, 1);
    uint16_t before = pick(&b);
    assert_int_equal(rtts_until_move(&b, 300), 0);
    b.now += GW_S;
    on_trim(&b, before);
    assert_int_not_equal(pick(&b), before);
}

static void plb_delay__moves_at_most_once_per_five_rtts(void **state)
{
    (void)state;
    for (uint32_t bad = 63; bad <= 64; bad++) {
        struct balancer b = make("plb", NULL, NULL, NULL, 1);
        uint32_t changes;
        pick(&b);
        on_ack(&b, 0, false);
        gw_time least = least_stay(&b, bad, &changes);
        assert_true(changes > 50);
        assert_true(least >= 5 * RTT);
    }
}

/* Only NACKs come back: time runs all the same. */
static void plb_delay__hears_trims(void **state)
{
    (void)state;
    struct balancer b = make("plb", NULL, NULL, NULL, 1);
    uint16_t before = pick(&b);
    on_ack(&b, before, false);
    gw_time start = b.now;
    while (pick(&b) == before) {
        b.now += RTT / WINDOW;
        on_trim(&b, before);
    }
    assert_in_range((b.now - start) / RTT, 5, 7);
}

/* At once, also before any ACK, and once for all that was sent before. */
static void plb__moves_once_per_lost_window(void **state)
{
    static const char *const presets[] = {"smartt", "linux"};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(presets); i++) {
        struct balancer b = make("plb", presets[i], NULL, NULL, 1);
        for (int window = 0; window < 20; window++) {
            uint16_t before = pick(&b);
            gw_time sent_at = b.now;
            b.now += 4 * RTT;
            on_timeout_of(&b, sent_at);
            uint16_t after = pick(&b);
            assert_int_not_equal(after, before);
            for (uint32_t packet = 1; packet < WINDOW; packet++)
                on_timeout_of(&b, sent_at + packet);
            assert_int_equal(pick(&b), after);
        }
    }
}

/* ---- The fabric. ---- */

static const struct {
    const char *name, *preset, *setting, *value;
} movers[] = {
    {"flowbender", NULL, NULL, NULL},
    {"plb", "smartt", NULL, NULL},
    {"plb", "linux", "suspend", "10"},
};

static struct fabric *mover_open(size_t i, const uint32_t *rates, uint32_t paths, uint32_t flows,
                                 uint32_t window, uint64_t seed)
{
    const struct balancer_options options = {
        .name = movers[i].name,
        .preset = movers[i].preset,
        .settings = {movers[i].setting, movers[i].value},
    };
    return fabric_make(options, rates, paths, flows, window, seed);
}

/* Paths with room for all: every flow keeps its one entropy. */
static void movers_fabric__stay_without_congestion(void **state)
{
    static const uint32_t rates[] = {8, 8};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(movers); i++)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            struct fabric *f = mover_open(i, rates, 2, 4, 2, seed);
            fabric_run(f, 300 * DELAY);
            for (uint32_t flow = 0; flow < 4; flow++) {
                uint32_t used = 0;
                for (uint32_t e = 0; e < ENTROPIES; e++)
                    used += f->used[flow][e];
                assert_int_equal(used, 1);
            }
            free(f);
        }
}

/*
 * Eight flows and eight paths of one flow each: where flows meet, moving helps. ECMP keeps busy
 * 1 - (7/8)^8 = 66 % of the paths.
 */
static void movers_fabric__resolve_collisions(void **state)
{
    static const uint32_t rates[] = {1, 1, 1, 1, 1, 1, 1, 1};
    enum { RUN = 20000, SEEDS = 10 };
    (void)state;
    uint64_t ecmp = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct fabric *f = fabric_open("ecmp", NULL, rates, 8, 8, 20, seed);
        fabric_run(f, RUN);
        ecmp += f->delivered;
        free(f);
    }
    for (size_t i = 0; i < GW_COUNT_OF(movers); i++) {
        uint64_t delivered = 0;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct fabric *f = mover_open(i, rates, 8, 8, 20, seed);
            fabric_run(f, RUN);
            delivered += f->delivered;
            free(f);
        }
        print_message("%s %s: %.3f of the capacity, ecmp %.3f\n", movers[i].name,
                      movers[i].preset ? movers[i].preset : "", delivered / (8.0 * RUN * SEEDS),
                      ecmp / (8.0 * RUN * SEEDS));
        assert_true(delivered > ecmp);
    }
}

/* A flow on a dead path finds another one; by ECMP it is lost for good. */
static void movers_fabric__leave_a_dead_path(void **state)
{
    static const uint32_t rates[] = {4, 4, 4, 4};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(movers); i++)
        for (uint64_t seed = 1; seed <= 10; seed++) {
            struct fabric *f = mover_open(i, rates, 4, 8, 4, seed);
            fabric_run(f, 20 * DELAY);
            f->paths[2].dead = true;
            fabric_run(f, 100 * RTO);
            fabric_reset(f);
            fabric_run(f, 20 * DELAY);
            assert_int_equal(f->dropped, 0);
            assert_true(f->delivered > 0);
            free(f);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flowbender__leaves_after_one_congested_round),
        cmocka_unit_test(flowbender__stays_at_the_threshold),
        cmocka_unit_test(flowbender__counts_rounds_in_a_row),
        cmocka_unit_test(flowbender__changes_at_most_once_per_rtt),
        cmocka_unit_test(flowbender__leaves_once_per_lost_window),
        cmocka_unit_test(plb_linux__moves_after_twelve_congested_rounds),
        cmocka_unit_test(plb_linux__starts_again_after_a_good_round),
        cmocka_unit_test(plb_linux__moves_earlier_when_idle),
        cmocka_unit_test(plb_linux__is_suspended_after_a_timeout),
        cmocka_unit_test(plb_linux__moves_at_most_once_per_twelve_rtts),
        cmocka_unit_test(plb_delay__stays_on_a_path_within_the_target),
        cmocka_unit_test(plb_delay__needs_all_packets_late),
        cmocka_unit_test(plb_delay__moves_without_a_good_packet),
        cmocka_unit_test(plb_delay__waits_for_the_first_good_packet),
        cmocka_unit_test(plb_delay__moves_at_most_once_per_five_rtts),
        cmocka_unit_test(plb_delay__hears_trims),
        cmocka_unit_test(plb__moves_once_per_lost_window),
        cmocka_unit_test(movers_fabric__stay_without_congestion),
        cmocka_unit_test(movers_fabric__resolve_collisions),
        cmocka_unit_test(movers_fabric__leave_a_dead_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
