/*
 * What two neighbours agree on about their packets: plain, authenticated or encrypted. Only who
 * wants the same meets; nobody in between can talk them into less, or into something else.
 */
#include "attach_net.h"
#include "support.h"

#include "net/key.h"

enum { A, B };

enum { FLAGS_AT = 56 };

static const uint64_t seed = 2026;

/* Numbers of protections: 0 plain, 1 authenticated, 2 encrypted. */
enum { PROTECTIONS = 3 };

static struct gw_test_attach *open_net(int at_a, int at_b)
{
    struct gw_test_attach *net = gw_test_attach_open(seed);
    const int protections[] = {at_a, at_b};
    for (int side = A; side <= B; side++) {
        net->sides[side].cfg.authenticates = protections[side] >= 1;
        net->sides[side].cfg.encrypts = protections[side] == 2;
        gw_test_attach_start(net, side);
    }
    return net;
}

static void protection__is_the_same_at_both_ends(void **state)
{
    (void)state;
    for (int a = 0; a < PROTECTIONS; a++)
        for (int b = 0; b < PROTECTIONS; b++) {
            struct gw_test_attach *net = open_net(a, b);
            const struct gw_test_side *asks = &net->sides[A], *answers = &net->sides[B];
            gw_test_attach_dial(net, A, B);
            gw_test_attach_run(net, GW_S);
            assert_int_equal(asks->ups, a == b);
            assert_int_equal(answers->ups, a == b);
            assert_int_equal(asks->refusals, a != b);
            if (a != b)
                assert_int_equal(asks->last.said.reason, a == 2 || b == 2
                                                             ? GW_ATTACH_ENCRYPTION
                                                             : GW_ATTACH_AUTHENTICATION);
            gw_test_attach_close(net);
        }
    assert_string_equal(gw_attach_reason_text(GW_ATTACH_ENCRYPTION),
                        "one of us encrypts packets, the other does not");
}

/* A man in the middle changes what is asked for in each message, whoever sends it. */
static bool changes_protection(void *context, uint32_t number, struct gw_test_message *message)
{
    const uint8_t *change = context;
    (void)number;
    message->bytes[FLAGS_AT] ^= *change;
    return true;
}

static void protection__nobody_in_between_changes_it(void **state)
{
    (void)state;
    static const uint8_t changes[] = {GW_ATTACH_ENCRYPTED, GW_ATTACH_AUTHENTICATED,
                                      GW_ATTACH_ENCRYPTED | GW_ATTACH_AUTHENTICATED};
    for (int a = 0; a < PROTECTIONS; a++)
        for (int b = 0; b < PROTECTIONS; b++)
            for (size_t i = 0; i < GW_COUNT_OF(changes); i++) {
                struct gw_test_attach *net = open_net(a, b);
                net->fate = changes_protection;
                net->context = (void *)&changes[i];
                gw_test_attach_dial(net, A, B);
                gw_test_attach_run(net, 3 * GW_S);
                assert_int_equal(gw_test_attach_events(net), 0);
                assert_true(gw_neighbours_stats(net->sides[B].own)->forged > 0);
                /* When he has gone all is as it is without him. */
                net->fate = NULL;
                gw_test_attach_run(net, 3 * GW_S);
                assert_int_equal(net->sides[A].ups, a == b);
                assert_int_equal(net->sides[A].refusals, a != b);
                gw_test_attach_close(net);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(protection__is_the_same_at_both_ends),
        cmocka_unit_test(protection__nobody_in_between_changes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
