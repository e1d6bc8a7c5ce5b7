/* REPS with a cache: the rule by direct calls, and a dead path in a small fabric (lb_fabric.h). */
#include "lb_fabric.h"

enum {
    SLOTS = 8,
    EXPLORE = 16,
};

#define FREEZE (100 * TICK)

static struct balancer cache_make(const char *name, const char *value, uint64_t seed)
{
    const struct balancer_options options = {
        .name = "reps-cache", .settings = {"freeze", "100us", name, value}, .bdp = 20 * MTU};
    struct balancer b = balancer_of(&options, seed);
    b.now = (gw_time)0 - 50 * TICK; /* wraps on the way */
    return b;
}

/* How many of `count` picks are below `limit`. */
static uint32_t picks_below(struct balancer *b, uint32_t count, uint16_t limit)
{
    uint32_t below = 0;
    for (uint32_t i = 0; i < count; i++)
        below += pick(b) < limit;
    return below;
}

static void reps_cache_pick__walks_until_the_first_ack(void **state)
{
    (void)state;
    struct balancer b = cache_make("entropies", "256", 1);
    uint16_t last = pick(&b);
    for (int i = 0; i < 600; i++) {
        uint16_t entropy = pick(&b);
        assert_int_equal(entropy, (last + 1) % ENTROPIES);
        last = entropy;
    }
    on_ack(&b, 9, false);
    assert_int_equal(pick(&b), 9);
}

/* Oldest first, each once; then at random: 64 draws of 65536 values hit none of 0 to 99. */
static void reps_cache_pick__uses_each_clean_ack_once(void **state)
{
    (void)state;
    struct balancer b = cache_make(NULL, NULL, 1);
    for (uint16_t i = 0; i < 5; i++)
        on_ack(&b, i, false);
    on_ack(&b, 99, true);
    on_trim(&b, 98);
    for (uint16_t i = 0; i < 5; i++)
        assert_int_equal(pick(&b), i);
    assert_int_equal(picks_below(&b, 64, 100), 0);
    on_ack(&b, 7, false);
    assert_int_equal(pick(&b), 7);
    assert_int_equal(picks_below(&b, 64, 100), 0);
}

/* The ring keeps the newest. */
static void reps_cache_on_ack__overwrites_the_oldest(void **state)
{
    (void)state;
    struct balancer b = cache_make(NULL, NULL, 1);
    for (uint16_t i = 0; i < SLOTS + 3; i++)
        on_ack(&b, i, false);
    for (uint16_t i = 3; i < SLOTS + 3; i++)
        assert_int_equal(pick(&b), i);
    assert_int_equal(picks_below(&b, 64, 100), 0);
}

/* An entry whose predecessor was overwritten half used has all of its own uses. */
static void reps_cache_on_ack__overwrites_a_used_entry(void **state)
{
    (void)state;
    struct balancer b = cache_make("lifetime", "2", 1);
    for (uint16_t i = 0; i < SLOTS; i++)
        on_ack(&b, i, false);
    assert_int_equal(pick(&b), 0);
    on_ack(&b, SLOTS, false);
    for (uint16_t i = 1; i <= SLOTS; i++) {
        assert_int_equal(pick(&b), i);
        assert_int_equal(pick(&b), i);
    }
    assert_int_equal(picks_below(&b, 64, 100), 0);
}

/*
 * However ACKs and packets alternate, no entropy is used more than `lifetime` times per ACK.
 * (Random draws from 65536 hardly ever hit the 64 that are acknowledged.)
 */
static void reps_cache_pick__never_exceeds_the_lifetime(void **state)
{
    static const char *const lifetimes[] = {"1", "2", "5"};
    static const uint32_t limits[] = {1, 2, 5};
    enum { ACKED = 64, STEPS = 20000 };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(lifetimes); i++) {
        struct balancer b = cache_make("lifetime", lifetimes[i], 1);
        struct gw_prng prng = gw_prng_derive(7, i);
        uint32_t acked[ACKED] = {0}, used[ACKED] = {0}, total = 0;
        for (int step = 0; step < STEPS; step++) {
            uint16_t entropy = (uint16_t)gw_prng_below(&prng, ACKED);
            if (gw_prng_below(&prng, limits[i] + 1) == 0) {
                on_ack(&b, entropy, false);
                acked[entropy]++;
                continue;
            }
            entropy = pick(&b);
            if (entropy >= ACKED)
                continue;
            used[entropy]++;
            total++;
        }
        for (uint32_t e = 0; e < ACKED; e++)
            assert_true(used[e] <= limits[i] * acked[e]);
        assert_true(total > STEPS / 4);
    }
}

/* A timeout freezes: only what was acknowledged is used, in turns, and fresh or not. */
static void reps_cache_on_timeout__freezes(void **state)
{
    (void)state;
    struct balancer b = cache_make(NULL, NULL, 1);
    for (uint16_t i = 0; i < 6; i++)
        on_ack(&b, i, false);
    for (uint16_t i = 0; i < 4; i++)
        pick(&b);
    on_timeout(&b);
    for (uint32_t i = 0; i < 60; i++)
        assert_int_equal(pick(&b), i % 6);
    on_ack(&b, 6, false); /* sent earlier: it is kept, too */
    bool seen = false;
    for (uint32_t i = 0; i < 7; i++)
        seen |= pick(&b) == 6;
    assert_true(seen);
    b.now += FREEZE; /* not later than that */
    on_ack(&b, 50, true);
    on_timeout(&b);
    on_trim(&b, 50);
    assert_int_equal(picks_below(&b, 64, 7), 64);
}

/* Nothing is known to be alive: any entropy is as good. */
static void reps_cache_on_timeout__freezes_nothing_before_an_ack(void **state)
{
    (void)state;
    struct balancer b = cache_make(NULL, NULL, 1);
    uint16_t first = pick(&b);
    on_timeout(&b);
    assert_int_equal(pick(&b), (uint16_t)(first + 1));
}

/* Congestion is reported by trimming and is no failure. */
static void reps_cache_on_trim__does_not_freeze(void **state)
{
    (void)state;
    struct balancer b = cache_make(NULL, NULL, 1);
    on_ack(&b, 1, false);
    on_trim(&b, 1);
    assert_int_equal(pick(&b), 1);
    assert_int_equal(picks_below(&b, 64, 100), 0);
}

/* The first feedback after the freeze, of whatever kind, forgets the ring and explores. */
static void reps_cache_freeze__ends_in_exploration(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct balancer b = cache_make(NULL, NULL, 1);
        for (uint16_t i = 0; i < SLOTS; i++)
            on_ack(&b, i, false);
        on_timeout(&b);
        b.now += FREEZE + 1;
        assert_int_equal(picks_below(&b, 64, SLOTS), 64); /* there was no feedback yet */
        if (kind == 0)
            on_trim(&b, 1);
        else
            on_ack(&b, 20, kind == 1);
        on_ack(&b, 21, false);
        on_timeout(&b); /* while it explores, no freeze */
        assert_int_equal(picks_below(&b, EXPLORE, 100), 0);
        if (kind == 2)
            assert_int_equal(pick(&b), 20);
        assert_int_equal(pick(&b), 21);
        assert_int_equal(picks_below(&b, 64, 100), 0);
    }
}

/*
 * A dead path in the fabric: every timeout of its packets meets a frozen ring, so nothing is sent
 * there again but by entries that were alive before, and these are soon overwritten by ACKs of the
 * others. Spraying goes on losing an eighth.
 */
static void reps_cache_fabric__loses_a_tenth_of_spraying(void **state)
{
    static const uint32_t rates[] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const char *const names[] = {"reps-cache", "spray"};
    enum { RUN = 2000, WINDOW = 20, SEEDS = 10 };
    (void)state;
    uint32_t dropped[2] = {0}, delivered[2] = {0};
    for (size_t i = 0; i < 2; i++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct fabric *f = fabric_open(names[i], NULL, rates, 8, 8, WINDOW, seed);
            fabric_run(f, RUN);
            fabric_reset(f);
            f->paths[3].dead = true;
            fabric_run(f, RUN);
            dropped[i] += f->dropped;
            delivered[i] += f->delivered;
            free(f);
        }
    print_message("lost: %u of %u with the cache, %u of %u by spraying\n", dropped[0],
                  dropped[0] + delivered[0], dropped[1], dropped[1] + delivered[1]);
    assert_true(dropped[0] > 0);
    assert_true(dropped[1] >= 10 * dropped[0]);
}

/* Without failure it is REPS: the load follows the capacity of the paths. */
static void reps_cache_fabric__loads_paths_by_capacity(void **state)
{
    static const uint32_t rates[] = {1, 2};
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct fabric *f = fabric_open("reps-cache", NULL, rates, 2, 8, 12, seed);
        fabric_run(f, 2000);
        fabric_reset(f);
        fabric_run(f, 20000);
        double ratio = (double)f->paths[1].chosen / f->paths[0].chosen;
        assert_true(ratio > 1.9 && ratio < 2.1);
        assert_true(f->delivered > 0.98 * 3 * 20000);
        free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reps_cache_pick__walks_until_the_first_ack),
        cmocka_unit_test(reps_cache_pick__uses_each_clean_ack_once),
        cmocka_unit_test(reps_cache_on_ack__overwrites_the_oldest),
        cmocka_unit_test(reps_cache_on_ack__overwrites_a_used_entry),
        cmocka_unit_test(reps_cache_pick__never_exceeds_the_lifetime),
        cmocka_unit_test(reps_cache_on_timeout__freezes),
        cmocka_unit_test(reps_cache_on_timeout__freezes_nothing_before_an_ack),
        cmocka_unit_test(reps_cache_on_trim__does_not_freeze),
        cmocka_unit_test(reps_cache_freeze__ends_in_exploration),
        cmocka_unit_test(reps_cache_fabric__loses_a_tenth_of_spraying),
        cmocka_unit_test(reps_cache_fabric__loads_paths_by_capacity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
