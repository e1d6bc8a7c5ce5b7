/* The sizes that papers share; those of files are tested with the kind that reads them. */
#include "unit/workload/workload_fixture.h"

#include "workload/sizes.h"

enum {
    WEB_SEARCH = 1, /* place in GW_SIZES_CHOICES */
    PACKET = 1460,
};

static struct gw_sizes web_search(void)
{
    struct gw_workload_ctx ctx = {.directory = "."};
    struct gw_sizes sizes;
    assert_int_equal(gw_sizes_make(&sizes, WEB_SEARCH, "", &ctx), 0);
    return sizes;
}

/* What the scripts of PIAS' simulations say of it: 1138 packets on average. */
static void sizes_web_search__has_the_mean_of_its_papers(void **state)
{
    (void)state;
    struct gw_sizes sizes = web_search();
    uint64_t mean = (uint64_t)(gw_sizes_mean(&sizes) >> 32);
    assert_in_range(mean, 1138 * PACKET * 99 / 100, 1138 * PACKET * 101 / 100);
    free(sizes.points);
}

static void sizes_at__is_linear_between_points(void **state)
{
    static const struct {
        uint32_t per_mille, packets;
    } cases[] = {{0, 6}, {149, 6}, {600, 133}, {650, 400}, {900, 3333}, {985, 13333}};
    (void)state;
    struct gw_sizes sizes = web_search();
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        uint64_t chance = (UINT64_C(1) << 32) * cases[i].per_mille / 1000;
        assert_in_range(gw_sizes_at(&sizes, chance), cases[i].packets * PACKET - PACKET,
                        cases[i].packets * PACKET + PACKET);
    }
    assert_in_range(gw_sizes_at(&sizes, UINT32_MAX), 19999 * PACKET, 20000 * PACKET);
    free(sizes.points);
}

static void sizes_make__takes_one_distribution(void **state)
{
    (void)state;
    struct gw_topo topo;
    build(&topo, "star", "hosts=4");
    generate_refused(&topo, "poisson", "sizes=web-search file=x count=1",
                     "file and sizes: a distribution comes from one of them");
    gw_topo_fini(&topo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_web_search__has_the_mean_of_its_papers),
        cmocka_unit_test(sizes_at__is_linear_between_points),
        cmocka_unit_test(sizes_make__takes_one_distribution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
