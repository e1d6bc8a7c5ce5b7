/*
 * How the ranks of a job agree on the way in which its bursts are announced: the registrar's path
 * counts, who announces differently is refused. In one process, over loopback.
 */
#include "group_fixture.h"

/* The paper's path, which gives 37 packets or 8 units, and one that is six times as long. */
static const struct gw_notice_path narrow = {
    .rtt = 13300 * GW_US, .rate_bps = 100000000, .packet = 1500};
static const struct gw_notice_path long_ = {
    .rtt = 80 * GW_MS, .rate_bps = 100000000, .packet = 1500};

/* What rank 0's process knows of the path counts: there is one threshold. */
static void communicator__all_have_the_threshold_of_rank_0(void **state)
{
    (void)state;
    static const struct {
        uint8_t option, units;
    } cases[] = {{GW_NOTICE_OFF, 0}, {3, 3}, {GW_NOTICE_FORMULA, 8}, {GW_NOTICE_FORMULA + 1, 4}};
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct group g;
        open_group(&g);
        for (uint16_t rank = 0; rank < RANKS; rank++)
            open_rank(&g, rank, cases[i].option, &narrow);
        run(&g, 7);
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            struct gw_mesh *mesh = gw_communicator_mesh(g.ranks[rank].comm);
            assert_int_equal(g.ranks[rank].last, GW_COMMUNICATOR_OPEN);
            assert_int_equal(gw_mesh_notice(mesh).units, cases[i].units);
        }
        close_group(&g);
    }
}

static void communicator__refuses_whoever_announces_differently(void **state)
{
    (void)state;
    struct group g;
    char expected[GW_NET_ERROR_MAX];
    open_group(&g);
    open_rank(&g, 0, GW_NOTICE_FORMULA, &narrow);
    open_rank(&g, 1, 8, &narrow); /* though the threshold would be the same */
    run(&g, 2);
    snprintf(expected, sizeof(expected),
             "%s refuses us: it announces the bursts of the job differently", g.join);
    assert_string_equal(g.ranks[1].refusal, expected);
    assert_false(g.ranks[0].has_ended);
    close_group(&g);
}

/* All learn why there is no job. */
static void communicator__fails_without_a_threshold(void **state)
{
    (void)state;
    struct group g;
    open_group(&g);
    for (uint16_t rank = 0; rank < RANKS; rank++)
        open_rank(&g, rank, GW_NOTICE_FORMULA, &long_);
    run(&g, 7);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        assert_int_equal(g.ranks[rank].last, GW_COMMUNICATOR_FAILED);
        assert_int_equal(g.ranks[rank].reason, GW_JOB_NOTICE);
    }
    close_group(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(communicator__all_have_the_threshold_of_rank_0),
        cmocka_unit_test(communicator__refuses_whoever_announces_differently),
        cmocka_unit_test(communicator__fails_without_a_threshold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
