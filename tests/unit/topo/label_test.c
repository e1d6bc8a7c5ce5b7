/* Labels: every path has one, and schedules give every path its share. */
#include "unit/topo/topo_fixture.h"

#include "base/prng.h"
#include "topo/label.h"

enum {
    LINKS_MAX = 8,   /* of a path */
    PATHS_MAX = 256, /* of a pair */
};

struct route {
    uint32_t links[LINKS_MAX];
    uint32_t count;
};

struct account {
    struct route routes[PATHS_MAX]; /* distinct, in the order of first use */
    uint64_t rates[PATHS_MAX];      /* bit/s of the slowest link */
    uint32_t used[PATHS_MAX];
    uint32_t count;
};

/* The way of a packet with `label`, as switches forward it. Fails the test if it does not arrive.
 */
static struct route route_of(const struct gw_topo *topo, const struct gw_topo_labels *labels,
                             uint32_t src, uint32_t dst, uint16_t label, uint64_t *rate)
{
    struct route route = {.count = 0};
    const struct gw_topo_port *port = &topo->ports[topo->nodes[src].first_port];
    *rate = UINT64_MAX;
    for (;;) {
        const struct gw_link *link = &topo->links[port->link];
        assert_true(route.count < LINKS_MAX);
        assert_false(link->down);
        route.links[route.count++] = port->link;
        if (link->side[port->side].rate_bps < *rate)
            *rate = link->side[port->side].rate_bps;
        if (port->peer == dst)
            return route;
        assert_true(port->peer >= topo->host_count);
        uint32_t s = port->peer - topo->host_count;
        const struct gw_topo_routes *routes = &topo->routes[s];
        const struct gw_topo_set *set = &routes->sets[routes->route[dst]];
        uint32_t digit = label / labels->divisors[s] % set->count;
        port =
            &topo->ports[topo->nodes[port->peer].first_port + routes->members[set->first + digit]];
    }
}

static uint32_t index_of(struct account *account, const struct route *route, uint64_t rate)
{
    uint32_t i = 0;
    while (i < account->count && memcmp(&account->routes[i], route, sizeof(*route)) != 0)
        i++;
    assert_true(i < PATHS_MAX);
    if (i == account->count) {
        account->routes[i] = *route;
        account->rates[i] = rate;
        account->count++;
    }
    return i;
}

/*
 * Follows the schedule of a pair for three cycles and counts. Each path must have had its share of
 * every beginning of the schedule to within one packet, if `exact`; and of a cycle exactly.
 */
static void check_pair(const struct gw_topo *topo, uint32_t src, uint32_t dst, bool exact,
                       struct account *account)
{
    struct gw_topo_labels labels;
    uint16_t *schedule;
    memset(account, 0, sizeof(*account));
    gw_topo_labels_init(&labels, topo);
    uint32_t count = gw_topo_schedule(topo, &labels, src, dst, &schedule);
    assert_true(count > 0);
    uint64_t rate, sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct route route = route_of(topo, &labels, src, dst, schedule[i], &rate);
        index_of(account, &route, rate);
    }
    for (uint32_t p = 0; p < account->count; p++)
        sum += account->rates[p];
    for (uint32_t i = 0; i < 3 * count; i++) {
        struct route route = route_of(topo, &labels, src, dst, schedule[i % count], &rate);
        account->used[index_of(account, &route, rate)]++;
        for (uint32_t p = 0; exact && p < account->count; p++) {
            double off = account->used[p] - (i + 1.0) * account->rates[p] / sum;
            assert_true(off > -1 && off < 1);
        }
    }
    free(schedule);
    gw_topo_labels_fini(&labels);
}

/* As many paths as there are, each used once per cycle. */
static void topo_schedule__has_every_path(void **state)
{
    static const struct {
        const char *kind, *settings;
        uint32_t src, dst, paths;
    } cases[] = {
        {"star", "hosts=4", 0, 3, 1},
        {"dumbbell", "hosts=3", 0, 5, 1},
        {"fat-tree", "k=4", 0, 1, 1},
        {"fat-tree", "k=4", 0, 3, 2},
        {"fat-tree", "k=4", 0, 15, 4},
        {"fat-tree", "k=8", 0, 127, 16},
        {"fat-tree", "k=8 oversubscription=4", 0, 127, 4},
        {"fat-tree", "k=16", 5, 1000, 64},
        {"leaf-spine", "leaves=2 spines=3 hosts_per_leaf=2", 0, 3, 3},
        {"leaf-spine", "leaves=2 spines=3 hosts_per_leaf=2 links_per_pair=4", 0, 3, 48},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct gw_topo topo;
        struct account account;
        build(&topo, cases[i].kind, cases[i].settings);
        check_pair(&topo, cases[i].src, cases[i].dst, true, &account);
        assert_int_equal(account.count, cases[i].paths);
        for (uint32_t p = 0; p < account.count; p++)
            assert_int_equal(account.used[p], 3);
        gw_topo_fini(&topo);
    }
}

/* Neighbours in the schedule of a fat tree leave the ToR by different links. */
static void topo_schedule__alternates_uplinks(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct gw_topo_labels labels;
    uint16_t *schedule;
    uint64_t rate;
    build(&topo, "fat-tree", "k=8");
    gw_topo_labels_init(&labels, &topo);
    uint32_t count = gw_topo_schedule(&topo, &labels, 0, 127, &schedule);
    assert_int_equal(count, 16);
    for (uint32_t i = 0; i < count; i++) {
        struct route a = route_of(&topo, &labels, 0, 127, schedule[i], &rate);
        struct route b = route_of(&topo, &labels, 0, 127, schedule[(i + 1) % count], &rate);
        assert_int_not_equal(a.links[1], b.links[1]);
    }
    free(schedule);
    gw_topo_labels_fini(&labels);
    gw_topo_fini(&topo);
}

/* Links of random speeds: shares follow them. */
static void topo_schedule__honours_rates(void **state)
{
    static const uint64_t gbps[] = {100, 200, 400, 800};
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct gw_prng prng = gw_prng_derive(seed, 0);
        struct gw_topo topo;
        struct account account;
        build(&topo, "fat-tree", "k=8");
        for (uint32_t i = 0; i < topo.link_count; i++)
            for (uint32_t side = 0; side < 2; side++)
                topo.links[i].side[side].rate_bps =
                    gbps[gw_prng_below(&prng, GW_COUNT_OF(gbps))] * 1000000000;
        check_pair(&topo, 0, 127, true, &account);
        assert_int_equal(account.count, 16);
        gw_topo_fini(&topo);
    }
}

/* Ratios of large numbers are rounded: within 1/64 of the fastest path's share. */
static void topo_schedule__rounds_odd_rates(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct account account;
    build(&topo, "leaf-spine", "leaves=2 spines=2 hosts_per_leaf=1 rate=800Gbps");
    for (uint32_t i = 0; i < topo.link_count; i++)
        if (strcmp(topo.nodes[topo.links[i].side[1].node].name, "spine1") == 0 ||
            strcmp(topo.nodes[topo.links[i].side[0].node].name, "spine1") == 0)
            topo.links[i].side[0].rate_bps = topo.links[i].side[1].rate_bps = 333333333333;
    check_pair(&topo, 0, 1, false, &account);
    assert_int_equal(account.count, 2);
    uint32_t slow = account.rates[0] == 333333333333 ? 0 : 1;
    double ratio = (double)account.used[slow] / account.used[!slow];
    assert_true(ratio > 0.4167 - 1.0 / 64 && ratio < 0.4167 + 1.0 / 64);
    gw_topo_fini(&topo);
}

/* What routes avoid is withdrawn, until there is nothing left. */
static void topo_schedule__withdraws_paths(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct account account;
    build(&topo, "leaf-spine", "leaves=2 spines=4 hosts_per_leaf=1");
    uint32_t leaf = gw_topo_find(&topo, "leaf0");
    uint32_t left = 4;
    for (uint32_t p = 0; p < topo.nodes[leaf].port_count; p++) {
        const struct gw_topo_port *port = &topo.ports[topo.nodes[leaf].first_port + p];
        if (port->peer < topo.host_count)
            continue;
        topo.links[port->link].down = true;
        assert_int_equal(gw_topo_route(&topo), GW_OK);
        if (--left == 0)
            break;
        check_pair(&topo, 0, 1, true, &account); /* fails on a link that is down */
        assert_int_equal(account.count, left);
    }
    struct gw_topo_labels labels;
    uint16_t *schedule;
    gw_topo_labels_init(&labels, &topo);
    assert_int_equal(gw_topo_schedule(&topo, &labels, 0, 1, &schedule), 0);
    free(schedule);
    gw_topo_labels_fini(&labels);
    gw_topo_fini(&topo);
}

/* More paths than labels: what is left over has no choice, and every label still leads there. */
static void topo_labels__stay_within_16_bits(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct gw_topo_labels labels;
    uint16_t *schedule;
    uint64_t rate;
    build(&topo, "leaf-spine", "leaves=2 spines=8 hosts_per_leaf=1 links_per_pair=128");
    gw_topo_labels_init(&labels, &topo);
    assert_int_equal(labels.count, 1024); /* times 128 would be too many */
    uint32_t count = gw_topo_schedule(&topo, &labels, 0, 1, &schedule);
    assert_int_equal(count, 1024);
    for (uint32_t i = 0; i < count; i++)
        route_of(&topo, &labels, 0, 1, schedule[i], &rate);
    free(schedule);
    gw_topo_labels_fini(&labels);
    gw_topo_fini(&topo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topo_schedule__has_every_path),
        cmocka_unit_test(topo_schedule__alternates_uplinks),
        cmocka_unit_test(topo_schedule__honours_rates),
        cmocka_unit_test(topo_schedule__rounds_odd_rates),
        cmocka_unit_test(topo_schedule__withdraws_paths),
        cmocka_unit_test(topo_labels__stay_within_16_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
