/* REPS: the rule by direct calls, and what it makes of a small fabric (lb_fabric.h). */
#include "lb_fabric.h"

/* The entropy that follows in the walk. */
static uint16_t after(uint16_t entropy)
{
    return (uint16_t)((entropy + 1) % ENTROPIES);
}

static void reps_pick__explores_one_bdp(void **state)
{
    (void)state;
    struct balancer b = balancer_make("reps", NULL, 20 * MTU, 1);
    uint16_t last = pick(&b);
    on_ack(&b, last, false); /* does not end the exploration */
    for (int i = 1; i < 20; i++) {
        uint16_t entropy = pick(&b);
        assert_int_equal(entropy, after(last));
        last = entropy;
    }
    on_ack(&b, 77, false);
    assert_int_equal(pick(&b), 77);
    assert_int_equal(pick(&b), 77);
}

static void reps_pick__stops_exploring_when_all_entropies_were_tried(void **state)
{
    (void)state;
    struct balancer b = balancer_make("reps", NULL, 10 * ENTROPIES * MTU, 1);
    bool seen[ENTROPIES] = {false};
    on_ack(&b, 77, false);
    for (int i = 0; i < ENTROPIES; i++) {
        uint16_t entropy = pick(&b);
        assert_false(seen[entropy]);
        seen[entropy] = true;
    }
    assert_int_equal(pick(&b), 77);
}

/* A bdp of two packets is gone before the first ACK: the walk goes on, it does not stand still. */
static void reps_pick__walks_until_the_first_feedback(void **state)
{
    (void)state;
    struct balancer b = balancer_make("reps", NULL, 2 * MTU, 1);
    uint16_t last = pick(&b);
    for (int i = 0; i < 600; i++) {
        uint16_t entropy = pick(&b);
        assert_int_equal(entropy, after(last));
        last = entropy;
    }
    on_ack(&b, 9, false);
    assert_int_equal(pick(&b), 9);
}

/* Of blasts few packets are heard of: an entropy is for one of them, and the walk has the others.
 */
static void reps_pick__uses_a_sample_once(void **state)
{
    (void)state;
    const struct balancer_options options = {.name = "reps", .bdp = MTU, .is_sampled = true};
    struct balancer b = balancer_of(&options, 1);
    uint16_t last = pick(&b);
    for (int i = 0; i < 3; i++) {
        on_ack(&b, 77, false);
        assert_int_equal(pick(&b), 77);
        for (int j = 0; j < 100; j++) {
            assert_int_equal(pick(&b), after(last));
            last = after(last);
        }
    }
}

static void reps_init__starts_flows_at_different_entropies(void **state)
{
    (void)state;
    bool seen[ENTROPIES] = {false};
    uint32_t distinct = 0;
    for (uint64_t seed = 0; seed < 64; seed++) {
        struct balancer b = balancer_make("reps", NULL, 20 * MTU, seed);
        uint16_t entropy = pick(&b);
        distinct += !seen[entropy];
        seen[entropy] = true;
    }
    assert_true(distinct > 48); /* expected: 56.6 */
}

/* Figure 5a: a clean ACK is reused until the next feedback; a marked one takes the next entropy. */
static void reps_on_ack__recycles_clean_and_replaces_marked(void **state)
{
    (void)state;
    struct balancer b = balancer_make("reps", NULL, MTU, 1);
    uint16_t last = pick(&b);
    on_ack(&b, 3, false);
    assert_int_equal(pick(&b), 3);
    on_ack(&b, 5, false);
    assert_int_equal(pick(&b), 5);
    on_ack(&b, 5, true);
    assert_int_equal(pick(&b), after(last));
    assert_int_equal(pick(&b), after(last));
    on_trim(&b, 3);
    assert_int_equal(pick(&b), after(after(last)));
    on_timeout(&b);
    assert_int_equal(pick(&b), after(after(after(last))));
    on_ack(&b, 8, false);
    assert_int_equal(pick(&b), 8);
}

/* `count` packets explore, from entropy 1 on and whatever is heard of them; half as many are sent
 * again in between, and do not count. */
static void authors_explore(struct balancer *b, uint32_t count)
{
    uint32_t entropy = 0;
    for (uint32_t i = 1; i <= count; i++) {
        assert_int_equal(pick(b), ++entropy % ENTROPIES);
        on_ack(b, 77, i % 3 == 0);
        if (i % 2 == 0 && i < count)
            assert_int_equal(pick_again(b), ++entropy % ENTROPIES);
    }
}

/* One packet per entropy, or a bdp if that is more: then once more around. */
static void reps_pick__authors_explore_all_entropies(void **state)
{
    static const uint32_t bdps[] = {8, ENTROPIES, ENTROPIES + 40, 3 * ENTROPIES};
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(bdps); i++) {
        struct balancer b = balancer_make("reps", "drafts", bdps[i] * MTU, i);
        authors_explore(&b, bdps[i] > ENTROPIES ? bdps[i] : ENTROPIES);
        on_ack(&b, 200, false);
        assert_int_equal(pick(&b), 200);
        assert_int_equal(pick(&b), 200);
    }
}

/* A timeout leaves the entropy as it is; a trim does not. */
static void reps_on_timeout__authors_go_on(void **state)
{
    (void)state;
    for (int heeds = 0; heeds <= 1; heeds++) {
        struct balancer b = balancer_make("reps", heeds ? "author" : "drafts", 8 * MTU, 1);
        uint32_t same = 0;
        authors_explore(&b, ENTROPIES);
        on_ack(&b, 200, false);
        on_timeout(&b);
        for (int i = 0; i < 100; i++)
            same += pick(&b) == 200;
        assert_true(heeds ? same < 10 : same == 100);
        on_ack(&b, 200, false);
        on_trim(&b, 9);
        same = 0;
        for (int i = 0; i < 100; i++)
            same += pick(&b) == 200;
        assert_true(same < 10);
    }
}

static void reps_on_ack__authors_draw_at_random_until_a_clean_ack(void **state)
{
    (void)state;
    struct balancer b = balancer_make("reps", "author", 8 * MTU, 1);
    authors_explore(&b, ENTROPIES);
    on_ack(&b, 3, false);
    assert_int_equal(pick(&b), 3);
    on_ack(&b, 5, true);
    bool seen[ENTROPIES] = {false};
    uint32_t distinct = 0;
    for (int i = 0; i < 1000; i++) {
        uint16_t entropy = pick(&b);
        distinct += !seen[entropy];
        seen[entropy] = true;
    }
    assert_true(distinct > 240); /* expected: 250.9 */
    on_ack(&b, 3, false);
    assert_int_equal(pick(&b), 3);
}

static void reps_on_ack__distrusts_an_entropy_that_was_never_sent(void **state)
{
    (void)state;
    struct balancer b = balancer_make("reps", NULL, MTU, 1);
    pick(&b);
    on_ack(&b, 40000, false);
    assert_in_range(pick(&b), 0, ENTROPIES - 1);
}

/* ---- On a fabric of parallel paths. ---- */

/* P1: without congestion a flow recycles the entropies of its first bdp and no others. */
static void reps_fabric__keeps_its_entropies_without_congestion(void **state)
{
    static const uint32_t rates[] = {4, 4, 4, 4};
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct fabric *f = fabric_open("reps", NULL, rates, 4, 4, 16, seed);
        fabric_run(f, 5 * DELAY);
        fabric_reset(f);
        fabric_run(f, 5 * DELAY);
        struct fabric *later = malloc(sizeof(*later));
        assert_non_null(later);
        *later = *f;
        fabric_reset(later);
        fabric_run(later, 500 * DELAY);
        assert_memory_equal(later->used, f->used, sizeof(f->used));
        free(later);
        free(f);
    }
}

/*
 * P2: a dead path. Packets of one base RTT and its queueing are lost, then feedback from it stops
 * and only the entropies that timeouts try can hit it again: single packets, ever fewer. Spraying
 * goes on losing an eighth.
 */
static void reps_fabric__leaves_a_dead_path(void **state)
{
    static const uint32_t rates[] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const struct {
        const char *lb, *preset;
    } balancers[] = {{"reps", NULL}, {"reps", "author"}, {"spray", NULL}};
    enum { RUN = 2000, WINDOW = 20, SEEDS = 10 };
    (void)state;
    uint32_t dropped[GW_COUNT_OF(balancers)] = {0}, late[GW_COUNT_OF(balancers)] = {0};
    for (size_t i = 0; i < GW_COUNT_OF(balancers); i++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct fabric *f =
                fabric_open(balancers[i].lb, balancers[i].preset, rates, 8, 8, WINDOW, seed);
            fabric_run(f, RUN);
            fabric_reset(f);
            f->paths[3].dead = true;
            fabric_run(f, DELAY + RTO);
            late[i] -= f->dropped;
            fabric_run(f, RUN);
            late[i] += f->dropped;
            dropped[i] += f->dropped;
            free(f);
        }
    print_message("lost: reps %u (%u later than RTT + RTO), author %u (%u), spray %u (%u)\n",
                  dropped[0], late[0], dropped[1], late[1], dropped[2], late[2]);
    for (size_t i = 0; i < 2; i++) {
        assert_true(dropped[i] <= SEEDS * 8 * WINDOW / 4); /* a quarter of the windows */
        assert_true(late[i] <= SEEDS * 3);
        assert_true(dropped[2] >= 10 * dropped[i]);
    }
}

/* P3 (Figure 7a): two paths of 1 and 2; the load follows the capacity, where spraying halves it. */
static void reps_fabric__loads_paths_by_capacity(void **state)
{
    static const uint32_t rates[] = {1, 2};
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++)
        for (int kind = 0; kind < 3; kind++) {
            const char *preset = kind == 1 ? "author" : NULL;
            struct fabric *f =
                fabric_open(kind == 2 ? "spray" : "reps", preset, rates, 2, 8, 12, seed);
            fabric_run(f, 2000);
            fabric_reset(f);
            fabric_run(f, 20000);
            double ratio = (double)f->paths[1].chosen / f->paths[0].chosen;
            double utilisation = f->delivered / (3.0 * 20000);
            if (kind == 2) {
                assert_true(ratio < 1.05);
                assert_true(utilisation < 0.75);
            } else {
                assert_true(ratio > 1.95 && ratio < 2.05);
                assert_true(utilisation > 0.99);
            }
            free(f);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reps_pick__explores_one_bdp),
        cmocka_unit_test(reps_pick__stops_exploring_when_all_entropies_were_tried),
        cmocka_unit_test(reps_pick__walks_until_the_first_feedback),
        cmocka_unit_test(reps_pick__uses_a_sample_once),
        cmocka_unit_test(reps_pick__authors_explore_all_entropies),
        cmocka_unit_test(reps_on_timeout__authors_go_on),
        cmocka_unit_test(reps_init__starts_flows_at_different_entropies),
        cmocka_unit_test(reps_on_ack__recycles_clean_and_replaces_marked),
        cmocka_unit_test(reps_on_ack__authors_draw_at_random_until_a_clean_ack),
        cmocka_unit_test(reps_on_ack__distrusts_an_entropy_that_was_never_sent),
        cmocka_unit_test(reps_fabric__keeps_its_entropies_without_congestion),
        cmocka_unit_test(reps_fabric__leaves_a_dead_path),
        cmocka_unit_test(reps_fabric__loads_paths_by_capacity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
