/*
 * Faults in mid-run: what each kind does to a run, that it begins and ends at its time, and that
 * routing avoids a dead link once it has noticed.
 */
#include <stdio.h>

#include "sim_support.h"
#include "support.h"

#include "base/error.h"
#include "sim/sim_impl.h"

/* Two leaves, two spines: half of what crosses uses each spine. 2 MiB take 21 us and an RTT. */
static const char fabric[] =
    "topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2}\n"
    "workload: {kind: permutation, size: 2MiB}\n"
    "cc: fixed\n"
    "lb: spray\n"
    "time_limit: 10ms\n";

/* One sender, one receiver. */
static const char star[] = "topology: {kind: star, hosts: 2}\n"
                           "workload: {kind: incast, degree: 1, size: 1MiB}\n"
                           "host: {jitter: 0}\n"
                           "time_limit: 10ms\n";

static void run_with(struct gw_test_sim *run, const char *scenario, const char *set)
{
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    gw_test_sim_run(run, &options, scenario, "%s", set);
}

/* What the scenario does when nothing fails: the reference of the others. */
static gw_time undisturbed(const char *scenario, const char *set)
{
    struct gw_test_sim run;
    run_with(&run, scenario, set);
    assert_int_equal(run.totals.completed, run.totals.flows);
    assert_true(run.totals.link_losses == 0 && run.totals.retransmits == 0);
    gw_time completion = run.totals.completion;
    gw_test_sim_close(&run);
    return completion;
}

static void link_down__loses_until_it_is_up_again(void **state)
{
    (void)state;
    gw_time whole = undisturbed(star, "seed=1");
    struct gw_test_sim run;
    run_with(&run, star, "faults=[{at: 4us, until: 10us, link: [host1, sw0], down: yes}]");
    assert_int_equal(run.totals.completed, 1);
    /* 6 us at 41.6 ns per packet, both ways; the window may end before. */
    assert_true(run.totals.link_losses > 50 && run.totals.link_losses < 2 * 6000 / 41);
    assert_true(run.totals.completion > whole + 6 * GW_US);
    gw_test_sim_close(&run);
}

/*
 * A fault takes effect at the first window that begins at or after its time, and not earlier: here
 * at 4200 ns. The packets that began to leave before, one per 41.6 ns, still arrive.
 */
static void link_down__begins_at_its_time(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, star, "faults=[{at: 4us, link: [host1, sw0], down: yes}]; time_limit=50us");
    assert_int_equal(run.totals.completed, 0);
    assert_true(run.sim->window == 600 * GW_NS);
    const struct gw_sim_node *receiver = &run.sim->nodes[run.sim->place[0]];
    uint64_t packet = gw_test_exact_time(4160, 800000000000);
    assert_true(gw_endpoint_stats(receiver->endpoint)->data_received ==
                (4200 * GW_NS + packet - 1) / packet);
    gw_test_sim_close(&run);
}

static void link_down__is_avoided_after_convergence(void **state)
{
    (void)state;
    static const char fault[] =
        "faults=[{at: 5us, link: [leaf0, spine0], down: yes}]; convergence=%s";
    char set[128];
    uint64_t losses[3];
    static const char *const times[] = {"1us", "10us", "never"};
    for (uint32_t i = 0; i < GW_COUNT_OF(times); i++) {
        struct gw_test_sim run;
        snprintf(set, sizeof(set), fault, times[i]);
        run_with(&run, fabric, set);
        losses[i] = run.totals.link_losses;
        assert_true(run.totals.unroutable == 0); /* there is another spine */
        assert_int_equal(run.totals.completed, run.totals.flows);
        gw_test_sim_close(&run);
    }
    /*
     * Each leaf sends two hosts' 160 Gb/s of packets: in 1 us two times 12 data packets and as many
     * ACKs meet the dead link at either end.
     */
    assert_true(losses[0] > 0 && losses[0] < 2 * 2 * 2 * 24);
    assert_true(losses[1] > 4 * losses[0] && losses[2] > losses[1]);
}

/* Without another way, what has no route is dropped at the switch and counted. */
static void link_down__without_another_way_is_unroutable(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, star,
             "faults=[{at: 4us, until: 10us, link: [host0, sw0], down: yes}]; convergence=1us");
    assert_int_equal(run.totals.completed, 1);
    assert_true(run.totals.link_losses > 0 && run.totals.unroutable > 0);
    gw_test_sim_close(&run);
}

static void link_rate__stretches_the_rest_of_the_flow(void **state)
{
    (void)state;
    gw_time whole = undisturbed(star, "cc=fixed");
    struct gw_test_sim run;
    /* A quarter of the rate from the start: four times the serialisation. */
    run_with(&run, star,
             "cc=fixed; loss.rto=100; faults=[{at: 0, link: [host1, sw0], rate: 0.25}]");
    assert_int_equal(run.totals.completed, 1);
    assert_true(run.totals.link_losses == 0 && run.totals.retransmits == 0);
    gw_time sending = 256 * gw_test_exact_time(4160, 800000000000);
    assert_true(run.totals.completion > whole + 3 * sending);
    assert_true(run.totals.completion < whole + 3 * sending + GW_US);
    gw_test_sim_close(&run);
}

static void link_rate__recovers(void **state)
{
    (void)state;
    gw_time whole = undisturbed(star, "cc=fixed");
    struct gw_test_sim run;
    run_with(
        &run, star,
        "cc=fixed; loss.rto=100; faults=[{at: 0, until: 6us, link: [host1, sw0], rate: 0.25}]");
    /* 6 us at a quarter of the rate do the work of 1.5 us. */
    gw_time lost = run.totals.completion - whole;
    assert_true(lost > 4400 * GW_NS && lost < 4700 * GW_NS);
    gw_test_sim_close(&run);
}

/* While two faults overlap the worse counts, and the end of one is not the end of the other. */
static void link_rate__the_worst_fault_counts(void **state)
{
    (void)state;
    struct gw_test_sim one, both;
    run_with(
        &one, star,
        "cc=fixed; loss.rto=100; faults=[{at: 0, until: 6us, link: [host1, sw0], rate: 0.25}]");
    run_with(&both, star,
             "cc=fixed; loss.rto=100; faults=[{at: 0, until: 6us, link: [host1, sw0], rate: 0.25}, "
             "{at: 1us, until: 3us, link: [host1, sw0], rate: 0.5}]");
    assert_true(both.totals.completion == one.totals.completion);
    gw_test_sim_close(&one);
    gw_test_sim_close(&both);
}

/* Loss and corruption: about the share that was said, of data and of ACKs. */
static void link_loss__takes_its_share(void **state)
{
    (void)state;
    static const char *const kinds[] = {"loss", "corrupt"};
    for (uint32_t i = 0; i < GW_COUNT_OF(kinds); i++) {
        char set[128];
        struct gw_test_sim run;
        snprintf(set, sizeof(set),
                 "workload.size=8MiB; faults=[{at: 0, link: [host1, sw0], %s: 5%%}]", kinds[i]);
        run_with(&run, star, set);
        assert_int_equal(run.totals.completed, 1);
        /* The link carries half of all hops; 4 standard deviations are 75 of 360. */
        double expected = (double)run.totals.hops / 2 * 0.05;
        assert_true((double)run.totals.link_losses > expected * 0.75);
        assert_true((double)run.totals.link_losses < expected * 1.25);
        gw_test_sim_close(&run);
    }
}

static void link_loss__ends_at_its_time(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, star, "faults=[{at: 2us, until: 3us, link: [host1, sw0], loss: 1}]");
    assert_int_equal(run.totals.completed, 1);
    /* Two windows of 600 ns at most, 41.6 ns per data packet, and ACKs the other way. */
    assert_true(run.totals.link_losses >= 600 / 42 && run.totals.link_losses <= 2 * 1200 / 41);
    gw_test_sim_close(&run);
}

/* On the last link, where no queue follows: copies cost nothing but an answer each. */
static void link_duplicate__delivers_twice(void **state)
{
    (void)state;
    gw_time whole = undisturbed(star, "cc=fixed");
    struct gw_test_sim run;
    run_with(&run, star, "cc=fixed; faults=[{at: 0, link: [host0, sw0], duplicate: 1}]");
    const struct gw_sim_node *receiver = &run.sim->nodes[run.sim->place[0]];
    assert_int_equal(run.totals.completed, 1);
    assert_true(run.totals.link_losses == 0 && run.totals.retransmits == 0);
    assert_true(run.totals.data_packets == 256);
    assert_true(gw_endpoint_stats(receiver->endpoint)->duplicates == 256);
    /* Of each data packet, and of the two answers to it and its copy. */
    assert_true(run.totals.link_copies == 3 * 256);
    assert_true(run.totals.completion == whole);
    gw_test_sim_close(&run);
}

static void link_duplicate__copies_its_share(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, star, "workload.size=8MiB; faults=[{at: 0, link: [host1, sw0], duplicate: 5%}]");
    assert_int_equal(run.totals.completed, 1);
    double expected = (double)run.totals.hops / 2 * 0.05;
    assert_true((double)run.totals.link_copies > expected * 0.75);
    assert_true((double)run.totals.link_copies < expected * 1.25);
    gw_test_sim_close(&run);
}

/* When every packet is late, the last one is, and so is its ACK. */
static void link_reorder__is_late_by_its_delay(void **state)
{
    (void)state;
    static const char set[] = "cc=fixed; cc.window=2MiB; loss.rto=100; faults=[%s]";
    char text[128];
    snprintf(text, sizeof(text), set, "");
    gw_time whole = undisturbed(star, text);
    snprintf(text, sizeof(text), set, "{at: 0, link: [host1, sw0], reorder: 1, delay: 2us}");
    struct gw_test_sim run;
    run_with(&run, star, text);
    assert_int_equal(run.totals.completed, 1);
    assert_true(run.totals.link_losses == 0 && run.totals.retransmits == 0);
    assert_true(run.totals.completion == whole + 4 * GW_US);
    gw_test_sim_close(&run);
}

/* The others overtake those that are late, although jitter keeps a link in order. */
static void link_reorder__lets_others_pass(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, star,
             "host.jitter=1; cc=fixed; cc.window=2MiB; time_limit=12us;"
             "faults=[{at: 0, link: [host1, sw0], reorder: 50%, delay: 100us}]");
    const struct gw_sim_node *receiver = &run.sim->nodes[run.sim->place[0]];
    uint64_t received = gw_endpoint_stats(receiver->endpoint)->data_received;
    /* Of 240 that have arrived half were on time; 4 standard deviations are 31. */
    assert_true(received > 120 - 31 && received < 120 + 31);
    gw_test_sim_close(&run);
}

/* A delay that no ring of windows can hold is refused in one line. */
static void link_reorder__has_a_limit(void **state)
{
    (void)state;
    const struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run;
    char why[GW_WHY_MAX] = "";
    struct gw_sim *sim;
    gw_test_sim_open(&run, &options, star, "%s",
                     "faults=[{at: 0, link: [host1, sw0], reorder: 1%, delay: 1us}]");
    run.scenario.faults[0].delay = 10 * GW_MS;
    assert_int_equal(gw_sim_open(&sim, &run.scenario, &options, why), GW_ERR_RANGE);
    assert_non_null(strstr(why, "lower the delay of faults"));
    gw_test_sim_close(&run);
}

/* A spine that dies takes both of its links; after its recovery the run ends. */
static void node_down__takes_all_links_and_recovers(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, fabric, "faults=[{at: 5us, until: 15us, node: spine1, down: yes}]");
    assert_int_equal(run.totals.completed, run.totals.flows);
    assert_true(run.totals.link_losses > 100);
    for (uint32_t i = 0; i < run.scenario.topo.link_count; i++)
        assert_false(run.scenario.topo.links[i].down);
    gw_test_sim_close(&run);
}

/* A host that is away for a while loses packets, not what it knew: its flows go on. */
static void node_down__host_keeps_its_flows(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, star, "faults=[{at: 4us, until: 40us, node: host0, down: yes}]");
    assert_int_equal(run.totals.completed, 1);
    assert_true(run.totals.link_losses > 0);
    assert_true(run.totals.completion > 40 * GW_US);
    gw_test_sim_close(&run);
}

/* Two faults on one link: it is up again when both have ended. */
static void link_down__twice_needs_both_to_end(void **state)
{
    (void)state;
    struct gw_test_sim run;
    run_with(&run, star,
             "faults=[{at: 4us, until: 60us, link: [host0, sw0], down: yes},"
             " {at: 5us, until: 30us, node: host0, down: yes}]");
    assert_int_equal(run.totals.completed, 1);
    assert_true(run.totals.completion > 60 * GW_US);
    gw_test_sim_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(link_down__loses_until_it_is_up_again),
        cmocka_unit_test(link_down__begins_at_its_time),
        cmocka_unit_test(link_down__is_avoided_after_convergence),
        cmocka_unit_test(link_down__without_another_way_is_unroutable),
        cmocka_unit_test(link_down__twice_needs_both_to_end),
        cmocka_unit_test(link_rate__stretches_the_rest_of_the_flow),
        cmocka_unit_test(link_rate__recovers),
        cmocka_unit_test(link_rate__the_worst_fault_counts),
        cmocka_unit_test(link_loss__takes_its_share),
        cmocka_unit_test(link_loss__ends_at_its_time),
        cmocka_unit_test(link_duplicate__delivers_twice),
        cmocka_unit_test(link_duplicate__copies_its_share),
        cmocka_unit_test(link_reorder__is_late_by_its_delay),
        cmocka_unit_test(link_reorder__lets_others_pass),
        cmocka_unit_test(link_reorder__has_a_limit),
        cmocka_unit_test(node_down__takes_all_links_and_recovers),
        cmocka_unit_test(node_down__host_keeps_its_flows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
