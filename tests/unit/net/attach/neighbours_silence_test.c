/*
 * Who knows of a switch that is silent, and how soon, and who is to blame when all are: two racks
 * below a top, a rank in each, and a server that all ranks have dialled, as a job has it.
 */
#include "support.h"

#include <string.h>

#include "attach_net.h"
#include "base/prng.h"
#include "net/station/station.h"

enum {
    RANKS = 2,  /* sides 0 and 1 */
    LEAF = 2,   /* of rank 0, */
    OTHER_LEAF, /* and of rank 1 */
    TOP,        /* above both, and the server's */
    SERVER,
    STRANGER, /* has dialled the server, for a job with another key */
    ROUNDS = 200,
};

#define DEADLINE (600 * GW_MS) /* the least for which switches are named */
#define DEAFNESS (10 * GW_S)   /* of processes GW_STATION_DEAF; this many messages can be kept */

static const uint64_t seed = 2026;

static gw_time within_a_beat(struct gw_prng *prng)
{
    return gw_prng_below(prng, GW_STATION_BEAT / GW_US) * GW_US;
}

/* All are up. Beats of different processes have nothing to do with each other. */
static struct gw_test_attach *open_fabric(struct gw_prng *prng)
{
    static const int dials[][2] = {
        {LEAF, TOP},     {OTHER_LEAF, TOP}, {SERVER, TOP},      {0, LEAF}, {0, SERVER},
        {1, OTHER_LEAF}, {1, SERVER},       {STRANGER, SERVER}, {0, 1},    {1, 0}};
    struct gw_test_attach *net = gw_test_attach_open(gw_prng_next(prng));
    gw_key_from_text("another", 7, &net->sides[STRANGER].keys[0]);
    gw_key_from_text("another", 7, &net->sides[SERVER].keys[1]);
    net->sides[SERVER].cfg.key_count = 2;
    for (int side = 0; side <= STRANGER; side++) {
        bool is_host = side < RANKS || side == SERVER || side == STRANGER;
        net->sides[side].cfg.role = is_host ? GW_ATTACH_HOST : GW_ATTACH_SWITCH;
        net->sides[side].cfg.beat = GW_STATION_BEAT;
        net->sides[side].cfg.silence = GW_STATION_SILENCE;
        net->sides[side].cfg.deafness = DEAFNESS;
        gw_test_attach_start(net, side);
    }
    for (size_t i = 0; i < GW_COUNT_OF(dials); i++) {
        gw_test_attach_dial(net, dials[i][0], dials[i][1]);
        gw_test_attach_run(net, within_a_beat(prng));
    }
    gw_test_attach_run(net, GW_S);
    return net;
}

static gw_time silence_at(const struct gw_test_attach *net, int side, char *name)
{
    return gw_neighbours_silence(net->sides[side].own, 7, net->now, name);
}

static void assert_nobody_is_silent(const struct gw_test_attach *net)
{
    char name[GW_NEIGHBOURS_NAME_MAX];
    for (int side = 0; side <= STRANGER; side++)
        if (net->sides[side].own)
            assert_int_equal(silence_at(net, side, name), 0);
}

/* All ranks know it, early enough and for long enough, and nobody else's word is needed. */
static void assert_ranks_know(const struct gw_test_attach *net, int dead)
{
    char name[GW_NEIGHBOURS_NAME_MAX], expected[GW_NEIGHBOURS_NAME_MAX];
    for (int rank = 0; rank < RANKS; rank++) {
        gw_sock_addr_format(&net->sides[dead].addr, expected, sizeof(expected));
        if (dead == LEAF + rank) /* as it was dialled */
            strcpy(expected, "the other");
        assert_in_range(silence_at(net, rank, name), DEADLINE / 2, DEADLINE + GW_STATION_BEAT);
        assert_string_equal(name, expected);
    }
}

static void neighbours_silence__every_rank_knows_the_switch(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(seed, 0);
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < ROUNDS; round++) {
        int dead = LEAF + (int)gw_prng_below(&prng, TOP - LEAF + 1);
        struct gw_test_attach *net = open_fabric(&prng);
        gw_test_attach_run(net, within_a_beat(&prng));
        assert_nobody_is_silent(net);
        gw_test_attach_stop(net, dead);
        gw_test_attach_run(net, DEADLINE);
        assert_ranks_know(net, dead);
        gw_test_attach_close(net);
    }
}

/* The sessions with it have ended meanwhile. */
static void neighbours_silence__lasts_until_it_is_back(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(seed, 1);
    char name[GW_NEIGHBOURS_NAME_MAX];
    for (int dead = LEAF; dead <= TOP; dead++) {
        struct gw_test_attach *net = open_fabric(&prng);
        gw_test_attach_stop(net, dead);
        gw_test_attach_run(net, 30 * GW_S);
        for (int rank = 0; rank < RANKS; rank++)
            assert_true(silence_at(net, rank, name) > 25 * GW_S);
        gw_test_attach_start(net, dead);
        if (dead != TOP)
            gw_test_attach_dial(net, dead, TOP);
        gw_test_attach_run(net, GW_S);
        assert_nobody_is_silent(net);
        gw_test_attach_close(net);
    }
}

/* Switches that have never reached the top say so from the beginning, and by others. */
static void neighbours_silence__is_known_of_a_top_that_never_was(void **state)
{
    (void)state;
    char name[GW_NEIGHBOURS_NAME_MAX], expected[GW_NEIGHBOURS_NAME_MAX];
    struct gw_test_attach *net = gw_test_attach_open(seed);
    net->sides[0].cfg.role = GW_ATTACH_HOST;
    gw_test_attach_start(net, 0);
    gw_test_attach_start(net, LEAF);
    gw_test_attach_start(net, OTHER_LEAF);
    gw_test_attach_dial(net, OTHER_LEAF, TOP);
    gw_test_attach_dial(net, LEAF, OTHER_LEAF);
    gw_test_attach_dial(net, 0, LEAF);
    gw_test_attach_run(net, GW_S);
    gw_sock_addr_format(&net->sides[TOP].addr, expected, sizeof(expected));
    assert_in_range(silence_at(net, 0, name), GW_S / 2, GW_S);
    assert_string_equal(name, expected);
    gw_test_attach_close(net);
}

/* Another key is another job, and who has left is not believed. */
static void neighbours_silence__is_told_to_the_job_alone(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(seed, 2);
    char name[GW_NEIGHBOURS_NAME_MAX];
    struct gw_test_attach *net = open_fabric(&prng);
    gw_test_attach_stop(net, LEAF);
    gw_test_attach_run(net, GW_S);
    assert_int_equal(silence_at(net, STRANGER, name), 0);
    assert_true(silence_at(net, 1, name) > 0);
    gw_test_attach_stop(net, 0);
    gw_test_attach_run(net, 4 * GW_S);
    assert_int_equal(silence_at(net, 1, name), 0);
    gw_test_attach_close(net);
}

static bool is_not_of_the_server(void *context, uint32_t number, struct gw_test_message *message)
{
    (void)context, (void)number;
    return message->from != SERVER && message->to != SERVER;
}

/* The longest silence of a session of the server, as its owner sees it. */
static gw_time longest_silence(const struct gw_test_attach *net)
{
    struct gw_neighbour_event view;
    gw_time longest = 0;
    for (uint16_t peer = 0; peer < net->sides[SERVER].cfg.peers_max; peer++)
        if (gw_neighbours_view(net->sides[SERVER].own, peer, &view) &&
            net->now - view.heard_at > longest)
            longest = net->now - view.heard_at;
    return longest;
}

/* Its link is gone, and all others live; then it is back, and all attach again. */
static void neighbours_silence__of_all_is_ours(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(seed, 3);
    struct gw_test_attach *net = open_fabric(&prng);
    struct gw_test_side *server = &net->sides[SERVER];
    const gw_time cut = DEAFNESS - GW_S;
    uint32_t downs = server->downs, ups = server->ups;
    net->fate = is_not_of_the_server;
    for (gw_time at = 0; at < cut; at += GW_S) {
        gw_test_attach_run(net, GW_S);
        assert_int_equal(server->downs, downs);
        assert_true(longest_silence(net) < GW_STATION_SILENCE / 2);
    }
    net->fate = NULL;
    gw_test_attach_run(net, GW_S);
    assert_int_equal(server->ups, ups + 4); /* its switch, two ranks, and the stranger */
    gw_test_attach_run(net, 4 * GW_S);
    assert_int_equal(server->downs, downs + 4); /* the sessions that these have ended */
    gw_test_attach_close(net);
}

/* It hears nobody for too long: they may be dead after all. */
static void neighbours_silence__of_all_ends_in_time(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(seed, 4);
    struct gw_test_attach *net = open_fabric(&prng);
    uint32_t downs = net->sides[SERVER].downs;
    net->fate = is_not_of_the_server;
    gw_test_attach_run(net, DEAFNESS + 2 * GW_STATION_SILENCE);
    assert_int_equal(net->sides[SERVER].downs, downs + 4);
    gw_test_attach_close(net);
}

/* All who have dialled it are dead: its switch answers, so the link is not to blame. */
static void neighbours_silence__of_the_dead_is_theirs(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(seed, 5);
    struct gw_test_attach *net = open_fabric(&prng);
    uint32_t downs = net->sides[SERVER].downs;
    gw_test_attach_stop(net, 0);
    gw_test_attach_stop(net, 1);
    gw_test_attach_stop(net, STRANGER);
    gw_test_attach_run(net, GW_STATION_SILENCE + GW_STATION_SILENCE / 4);
    assert_int_equal(net->sides[SERVER].downs, downs + 3);
    gw_test_attach_close(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_silence__every_rank_knows_the_switch),
        cmocka_unit_test(neighbours_silence__lasts_until_it_is_back),
        cmocka_unit_test(neighbours_silence__is_known_of_a_top_that_never_was),
        cmocka_unit_test(neighbours_silence__is_told_to_the_job_alone),
        cmocka_unit_test(neighbours_silence__of_all_is_ours),
        cmocka_unit_test(neighbours_silence__of_all_ends_in_time),
        cmocka_unit_test(neighbours_silence__of_the_dead_is_theirs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
