/*
 * Blasts by bad links: whatever is lost, doubled or overtaken, both ends come to an end within the
 * bound, and exactly what is marked has arrived.
 */
#include "model/blast_pair.h"

enum {
    ROUNDS = 400,
};

static struct pair p;

#define TENTH (GW_Q16_ONE / 10)

/* Any faults, any trains, any bounds at either end. */
static void blasts__end_within_the_bound(void **state)
{
    (void)state;
    static const gw_q16 bounds[] = {0, 1, GW_Q16_ONE / 100, TENTH, TENTH, GW_Q16_ONE / 2};
    uint64_t missing = 0;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct gw_prng shape = gw_prng_derive(seed, 2);
        const struct pair_faults faults = {
            .lost = gw_prng_below(&shape, 2) * gw_prng_below(&shape, 30),
            .doubled = gw_prng_below(&shape, 6),
            .late = gw_prng_below(&shape, 20),
            .late_by = gw_prng_below(&shape, 50) * GW_US,
            .signals_lost = gw_prng_below(&shape, 2) * gw_prng_below(&shape, 50),
            .skew = gw_prng_below(&shape, 2) * (gw_time)gw_prng_below(&shape, 200) * GW_S,
        };
        print_message("seed %u\n", (unsigned)seed);
        pair_open(&p, &faults, seed);
        p.cfg.train = 1 + gw_prng_below(&shape, 8);
        for (uint32_t i = 0; i < PAIR_MESSAGES; i++) {
            uint64_t most = gw_prng_below(&shape, 2) ? PAIR_PACKETS_MAX : 10;
            struct pair_message *message =
                pair_add(&p, 1 + gw_prng_below(&shape, (uint32_t)most * PAIR_MTU),
                         bounds[gw_prng_below(&shape, GW_COUNT_OF(bounds))],
                         bounds[gw_prng_below(&shape, GW_COUNT_OF(bounds))]);
            for (uint32_t word = 0; word < PAIR_WORDS; word++)
                message->important[word] = gw_prng_next(&shape) & gw_prng_next(&shape);
            message->send.important = gw_prng_below(&shape, 2) ? message->important : NULL;
            message->send.important_first = gw_prng_below(&shape, 2);
        }
        pair_start(&p);
        pair_run(&p);
        for (uint32_t i = 0; i < PAIR_MESSAGES; i++) {
            pair_check(&p.messages[i]);
            missing += p.messages[i].ends[1].missing;
        }
        pair_close(&p);
    }
    assert_true(missing > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blasts__end_within_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
