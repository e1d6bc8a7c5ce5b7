/* Shares of servers in a tensor: they cover it once, in order, in whole units, and evenly. */
#include "support.h"

#include "core/calls/shares.h"

static void check(uint64_t count, uint32_t unit, uint32_t servers)
{
    uint64_t next = 0, least = UINT64_MAX, most = 0;
    for (uint32_t i = 0; i < servers; i++) {
        struct gw_share share = gw_share_of(count, unit, i, servers);
        uint64_t units = (share.count + unit - 1) / unit;
        assert_int_equal(share.first, next);
        next += share.count;
        assert_true(share.first % unit == 0 || share.count == 0);
        assert_true(share.count % unit == 0 || next == count);
        least = units < least ? units : least;
        most = units > most ? units : most;
    }
    assert_int_equal(next, count);
    assert_true(most - least <= 1);
}

static void shares__cover_all_evenly(void **state)
{
    (void)state;
    for (uint64_t count = 0; count < 400; count++)
        for (uint32_t servers = 1; servers <= 16; servers++) {
            check(count, 1, servers);
            check(count, 16, servers);
            check(count, 62, servers);
        }
    check((UINT64_C(1) << 48) + 5, 352, 7);
}

static void shares__are_known_values(void **state)
{
    (void)state;
    struct gw_share first = gw_share_of(1000, 352, 0, 2), second = gw_share_of(1000, 352, 1, 2);
    assert_int_equal(first.first, 0);
    assert_int_equal(first.count, 704);
    assert_int_equal(second.first, 704);
    assert_int_equal(second.count, 296);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares__cover_all_evenly),
        cmocka_unit_test(shares__are_known_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
