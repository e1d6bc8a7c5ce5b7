/*
 * Every congestion control, alone and beside every grant, and every grant alone, with every load
 * balancer: loops over the registries, so that a new algorithm meets all others when its line is
 * added. Whatever the pair, every message arrives, on
 * a network that trims, one that drops, and one that loses packets and a link; and the run is the
 * same with several threads and through the wire format.
 */
#include <stdio.h>

#include "sim_support.h"
#include "support.h"

static const char scenario[] = "topology: {kind: fat-tree, tiers: 3, k: 4}\n"
                               "workload: {kind: permutation, size: 128KiB}\n"
                               "time_limit: 100ms\n";

static const char *const networks[] = {
    "workload.kind=incast; workload.degree=8",
    "queue=red; loss=timeout; topology.oversubscription=2",
    "faults=[{at: 3us, link: [tor0, agg0], down: yes}, {at: 0, link: [agg2, core0], loss: 0.02}];"
    " convergence=40us",
};

static struct gw_sim_totals totals_of(const char *set, uint32_t threads)
{
    struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run;
    options.threads = threads;
    options.wire = threads > 1;
    gw_test_sim_run(&run, &options, scenario, "%s", set);
    struct gw_sim_totals totals = run.totals;
    gw_test_sim_close(&run);
    return totals;
}

/* What `cc` can be: each row is a grant or none, each column a congestion control or none. */
static uint32_t cc_count(void)
{
    return (gw_grant_registry.count + 1) * (gw_cc_registry.count + 1) - 1;
}

/* Grants go with all but blasts. False: there is no such pair. */
static bool cc_name(uint32_t i, char name[GW_TRANSPORT_NAME_MAX])
{
    uint32_t row = i / (gw_cc_registry.count + 1), column = i % (gw_cc_registry.count + 1);
    const char *grant = row < gw_grant_registry.count ? gw_grant_registry.algos[row]->name : "";
    const char *cc = column < gw_cc_registry.count ? gw_cc_registry.algos[column]->name : "";
    const struct gw_cc_ops *ops =
        column < gw_cc_registry.count ? (const void *)gw_cc_registry.algos[column] : NULL;
    snprintf(name, GW_TRANSPORT_NAME_MAX, "%s%s%s", grant, grant[0] && cc[0] ? "+" : "", cc);
    return !(grant[0] && ops && ops->on_report);
}

static void transport_pairs__deliver_everything(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < cc_count(); c++)
        for (uint32_t l = 0; l < gw_lb_registry.count; l++)
            for (size_t n = 0; n < GW_COUNT_OF(networks); n++) {
                char set[512], cc[GW_TRANSPORT_NAME_MAX];
                if (!cc_name(c, cc))
                    continue;
                snprintf(set, sizeof(set), "cc=%s; lb=%s; %s", cc, gw_lb_registry.algos[l]->name,
                         networks[n]);
                struct gw_sim_totals alone = totals_of(set, 1), several = totals_of(set, 3);
                if (alone.completed != alone.flows)
                    fail_msg("%s: %u of %u flows completed", set, alone.completed, alone.flows);
                if (alone.trace_hash != several.trace_hash)
                    fail_msg("%s: not the same with three threads", set);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transport_pairs__deliver_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
