/* The end of a message of which a part may be missing. */
#include "support.h"

#include "base/prng.h"
#include "core/finish/finish.h"

enum {
    ROUNDS = 100000,
};

static bool is_enough(gw_q16 ours, gw_q16 theirs, uint32_t total, uint32_t missing)
{
    const struct gw_finish finish = gw_finish_within(ours);
    const struct gw_finish_sample sample = {
        .total = total, .arrived = total - missing, .lost = missing, .bound = theirs};
    return gw_finish_is_enough(&finish, &sample);
}

static void finish_bound__is_exact_with_0(void **state)
{
    (void)state;
    for (uint32_t total = 1; total < 100; total++) {
        assert_true(is_enough(0, GW_Q16_ONE, total, 0));
        assert_false(is_enough(0, GW_Q16_ONE, total, 1));
        assert_false(is_enough(-GW_Q16_ONE, GW_Q16_ONE, total, 1));
        assert_true(is_enough(GW_Q16_ONE, GW_Q16_ONE, total, total));
    }
}

/* Whichever packet is the short one, no larger part of packets or of bytes is missing. */
static void finish_bound__holds_in_packets_and_bytes(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(17, 0);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t total = 1 + gw_prng_below(&prng, 3000), missing = gw_prng_below(&prng, total + 1);
        uint32_t mss = 1 + gw_prng_below(&prng, 1500), last = 1 + gw_prng_below(&prng, mss);
        gw_q16 bound = gw_prng_below(&prng, 65536);
        uint64_t bytes = (uint64_t)(total - 1) * mss + last, lost = (uint64_t)missing * mss;
        if (!is_enough(bound, GW_Q16_ONE, total, missing))
            continue;
        assert_true((uint64_t)missing << 16 <= (uint64_t)bound * total);
        assert_true(missing == 0 || lost << 16 <= (uint64_t)bound * bytes);
    }
}

/* It asks for no more than it must: with one packet less it would not hold for a last byte. */
static void finish_bound__allows_all_that_it_can(void **state)
{
    (void)state;
    assert_true(is_enough(GW_Q16_ONE / 8, GW_Q16_ONE, 801, 100));
    assert_false(is_enough(GW_Q16_ONE / 8, GW_Q16_ONE, 800, 100));
    assert_false(is_enough(GW_Q16_ONE / 8, GW_Q16_ONE, 801, 101));
    assert_true(is_enough(GW_Q16_ONE - 1, GW_Q16_ONE, UINT32_MAX - 1, UINT32_MAX - 70000));
}

static void finish_is_enough__takes_the_stricter_bound(void **state)
{
    (void)state;
    const gw_q16 tenth = GW_Q16_ONE / 10, fifth = GW_Q16_ONE / 5;
    assert_true(is_enough(fifth, fifth, 1001, 199));
    assert_false(is_enough(tenth, fifth, 1001, 199));
    assert_false(is_enough(fifth, tenth, 1001, 199));
    assert_false(is_enough(fifth, 0, 1001, 1));
    const struct gw_finish_sample most = {
        .total = 10, .arrived = 9, .lost = 1, .bound = GW_Q16_ONE};
    assert_false(gw_finish_is_enough(NULL, &most)); /* who says nothing wants all */
}

/* Who has named no bound waits until all has arrived, so nothing else would end both sides. */
static void finish_within_both__wants_all_if_the_sender_does(void **state)
{
    (void)state;
    const struct gw_finish finish = gw_finish_within_both(GW_Q16_ONE / 5);
    struct gw_finish_sample sample = {.total = 1001, .arrived = 900, .bound = GW_Q16_ONE / 10};
    assert_false(gw_finish_is_enough(&finish, &sample));
    sample.arrived = 902;
    assert_true(gw_finish_is_enough(&finish, &sample));
    sample.bound = GW_Q16_ONE;
    sample.arrived = 1000;
    assert_false(gw_finish_is_enough(&finish, &sample));
    sample.arrived = 1001;
    assert_true(gw_finish_is_enough(&finish, &sample));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finish_bound__is_exact_with_0),
        cmocka_unit_test(finish_bound__holds_in_packets_and_bytes),
        cmocka_unit_test(finish_bound__allows_all_that_it_can),
        cmocka_unit_test(finish_is_enough__takes_the_stricter_bound),
        cmocka_unit_test(finish_within_both__wants_all_if_the_sender_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
