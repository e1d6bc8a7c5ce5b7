/* Which hosts jobs get: spread, packed, at random, and from a list. */
#include "unit/workload/workload_fixture.h"

#include "workload/placement.h"

enum {
    SEED = 20261122,
    ROUNDS = 50,
};

/* Four racks of four hosts. */
static void four_racks(struct gw_topo *topo, struct gw_racks *racks)
{
    build(topo, "leaf-spine", "leaves=4 spines=2 hosts_per_leaf=4");
    gw_racks_init(racks, topo);
    assert_int_equal(racks->count, 4);
    assert_int_equal(racks->host_count, 16);
}

static void done(struct gw_topo *topo, struct gw_racks *racks)
{
    gw_racks_fini(racks);
    gw_topo_fini(topo);
}

static void expect(const uint32_t *hosts, const uint32_t *expected, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(hosts[i], expected[i]);
}

static void placement_spread__divides_workers_evenly(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct gw_racks racks;
    uint32_t hosts[16];
    four_racks(&topo, &racks);
    struct gw_place place = {.how = GW_PLACEMENT_SPREAD};
    assert_true(gw_racks_place(&racks, &place, hosts, 8, 1));
    expect(hosts, (uint32_t[]){0, 1, 4, 5, 8, 9, 12, 13, 14}, 9);
    place.interleaved = true;
    assert_true(gw_racks_place(&racks, &place, hosts, 6, 0)); /* the last rack has one left */
    expect(hosts, (uint32_t[]){2, 6, 10, 15, 3, 7}, 6);
    assert_false(gw_racks_place(&racks, &place, hosts, 1, 1));
    assert_true(gw_racks_place(&racks, &place, hosts, 1, 0));
    assert_int_equal(hosts[0], 11);
    assert_int_equal(gw_racks_take(&racks, 0), UINT32_MAX);
    done(&topo, &racks);
}

static void placement_packed__takes_few_racks_and_what_fits_best(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct gw_racks racks;
    uint32_t hosts[16];
    four_racks(&topo, &racks);
    const struct gw_place place = {.how = GW_PLACEMENT_PACKED};
    assert_true(gw_racks_place(&racks, &place, hosts, 2, 1));
    expect(hosts, (uint32_t[]){0, 1, 2}, 3);
    assert_true(gw_racks_place(&racks, &place, hosts, 2, 0));
    expect(hosts, (uint32_t[]){4, 5}, 2);
    assert_true(gw_racks_place(&racks, &place, hosts, 1, 0)); /* the fullest that has room */
    assert_int_equal(hosts[0], 3);
    assert_true(gw_racks_place(&racks, &place, hosts, 5, 1)); /* one rack does not hold it */
    expect(hosts, (uint32_t[]){8, 9, 10, 11, 6, 7}, 6);
    assert_true(gw_racks_place(&racks, &place, hosts, 4, 0));
    assert_false(gw_racks_place(&racks, &place, hosts, 1, 0));
    done(&topo, &racks);
}

static void placement_random__takes_each_host_once(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct gw_racks racks;
    struct gw_prng prng = gw_prng_derive(SEED, 0);
    uint32_t first_counts[16] = {0};
    print_message("seed %d\n", SEED);
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t hosts[16];
        bool is_seen[16] = {false};
        four_racks(&topo, &racks);
        const struct gw_place place = {.how = GW_PLACEMENT_RANDOM, .prng = &prng};
        assert_true(gw_racks_place(&racks, &place, hosts, 9, 1));
        assert_true(gw_racks_place(&racks, &place, hosts + 10, 6, 0));
        assert_false(gw_racks_place(&racks, &place, hosts, 1, 0));
        for (uint32_t i = 0; i < 16; i++) {
            assert_true(hosts[i] < 16 && !is_seen[hosts[i]]);
            is_seen[hosts[i]] = true;
        }
        first_counts[hosts[0]]++;
        done(&topo, &racks);
    }
    for (uint32_t h = 0; h < 16; h++)
        assert_true(first_counts[h] < ROUNDS / 4);
}

static void placement_given__follows_the_list(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct gw_racks racks;
    struct gw_host_list list;
    uint32_t hosts[16];
    char why[BUILD_WHY_MAX] = "";
    four_racks(&topo, &racks);
    struct gw_workload_ctx ctx = {.topo = &topo, .why = why, .why_size = sizeof(why)};
    assert_int_equal(gw_host_list_parse(&list, "15,2-4,0", &ctx), GW_OK);
    const struct gw_place place = {.how = GW_PLACEMENT_GIVEN, .given = &list};
    assert_true(gw_racks_place(&racks, &place, hosts, 2, 1));
    expect(hosts, (uint32_t[]){15, 2, 3}, 3);
    assert_false(gw_racks_place(&racks, &place, hosts, 2, 1));
    assert_true(gw_racks_place(&racks, &place, hosts, 1, 1));
    expect(hosts, (uint32_t[]){4, 0}, 2);
    gw_host_list_free(&list);
    done(&topo, &racks);
}

static void host_list_parse__refuses_what_is_no_list(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *why;
    } broken[] = {
        {"1,x", "hosts must be like 3,0-2,7, not x"},
        {"-1", "hosts must be like 3,0-2,7, not -1"},
        {"1,", "hosts must be like 3,0-2,7, not 1,"},
        {"1-", "hosts must be like 3,0-2,7, not 1-"},
        {"1 2", "hosts must be like 3,0-2,7, not 1 2"},
        {"+1", "hosts must be like 3,0-2,7, not +1"},
        {"1--2", "hosts must be like 3,0-2,7, not 1--2"},
        {"3,16", "hosts: 16 is not one of the topology's 16"},
        {"5-3", "hosts must be like 3,0-2,7, not 5-3"},
        {"9999999999", "hosts must be like 3,0-2,7, not 9999999999"},
        {"3,1-4", "hosts: 3 is there twice"},
    };
    struct gw_topo topo;
    struct gw_racks racks;
    four_racks(&topo, &racks);
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct gw_host_list list;
        char why[BUILD_WHY_MAX] = "";
        struct gw_workload_ctx ctx = {.topo = &topo, .why = why, .why_size = sizeof(why)};
        assert_true(gw_host_list_parse(&list, broken[i].text, &ctx) < 0);
        assert_string_equal(why, broken[i].why);
        gw_host_list_free(&list);
    }
    done(&topo, &racks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(placement_spread__divides_workers_evenly),
        cmocka_unit_test(placement_packed__takes_few_racks_and_what_fits_best),
        cmocka_unit_test(placement_random__takes_each_host_once),
        cmocka_unit_test(placement_given__follows_the_list),
        cmocka_unit_test(host_list_parse__refuses_what_is_no_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
