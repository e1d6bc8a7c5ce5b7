/*
 * Broadcast, reduce, all-gather and reduce-scatter without payload, as simulations run them: they
 * take as long as with payload, and hardly longer than their bytes.
 */
#include "coll_kinds_fixture.h"

/* Runs a call, and gives away when each worker was done and what it sent. */
static void measure(const struct setup *setup, const struct ask *ask, gw_time *times,
                    uint64_t *packets)
{
    struct model m;
    struct memory memories[WORLD_MAX] = {0};
    model_open(&m, setup);
    gw_time begin = gw_mem_now(m.mem);
    for (uint32_t rank = 0; rank < setup->world; rank++) {
        if (!setup->is_bare)
            memory_open(&m, ask, rank, &memories[rank]);
        ask_start(&m, ask, rank, &memories[rank]);
    }
    model_run(&m);
    for (uint32_t rank = 0; rank < setup->world; rank++) {
        const struct gw_endpoint_stats *stats = gw_endpoint_stats(m.workers[rank].host.endpoint);
        assert_int_equal(state_of(&m.workers[rank]), GW_COLL_RUN_DONE);
        times[rank] = m.workers[rank].ended - begin;
        packets[rank] = stats->data_sent - stats->retransmits;
        free(memories[rank].block);
        free(memories[rank].before);
    }
    model_close(&m);
}

/* To the picosecond, since no memory is ever missing in these runs. */
static void coll_kinds_bare__take_as_long_as_with_payload(void **state)
{
    (void)state;
    for (uint32_t kind = GW_COLL_REDUCE_SCATTER; kind < GW_COLL_KINDS; kind++)
        for (uint32_t world = 2; world <= WORLD_MAX; world++) {
            struct ask ask = {kind, world / 2, false, {9001, GW_DTYPE_F64, GW_OP_SUM, 1}};
            struct setup setup = {.coll = "ring", .world = world, .segment = 2400, .flows = 16};
            gw_time times[2][WORLD_MAX];
            uint64_t packets[2][WORLD_MAX];
            measure(&setup, &ask, times[0], packets[0]);
            setup.is_bare = true;
            measure(&setup, &ask, times[1], packets[1]);
            assert_memory_equal(times[0], times[1], world * sizeof(times[0][0]));
            assert_memory_equal(packets[0], packets[1], world * sizeof(packets[0][0]));
        }
}

static void coll_kinds_bare__count_whatever_the_network_does(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){
                       .coll = "ring", .world = 7, .segment = 3000, .flows = 3, .is_bare = true});
    model_worsen(&m);
    for (uint32_t i = 0; i < 12; i++) {
        struct ask ask = {(enum gw_coll_kind)(GW_COLL_REDUCE_SCATTER + i % 4),
                          i % 7,
                          false,
                          {9000 + 997 * i, GW_DTYPE_F32, GW_OP_SUM, i}};
        for (uint32_t rank = 0; rank < 7; rank++)
            ask_start(&m, &ask, rank, &(struct memory){.in = NULL});
        model_run(&m);
        for (uint32_t rank = 0; rank < 7; rank++)
            assert_int_equal(state_of(&m.workers[rank]), GW_COLL_RUN_DONE);
        ask_move_tags(&m, &ask);
    }
    model_close(&m);
}

/*
 * How long a call of `bytes` takes over links of 1 Gb/s, in thousandths of what they take on one of
 * them with headers: all of a chain, 7 of 8 parts of a ring. Every packet is acknowledged, which
 * takes 4 % of the link the other way.
 */
static uint64_t share_of_link(enum gw_coll_kind kind, uint64_t bytes)
{
    const struct setup setup = {.coll = "ring",
                                .world = WORLD_MAX,
                                .segment = 1 << 18,
                                .flows = 4,
                                .rate_bps = UINT64_C(1000000000),
                                .latency = 10 * GW_US,
                                .is_bare = true};
    bool is_ring = kind == GW_COLL_REDUCE_SCATTER || kind == GW_COLL_ALLGATHER;
    const struct ask ask = {
        kind, 3, false, {bytes / (is_ring ? WORLD_MAX : 1), GW_DTYPE_U8, GW_OP_MAX, 1}};
    gw_time times[WORLD_MAX], longest = 0;
    uint64_t packets[WORLD_MAX];
    measure(&setup, &ask, times, packets);
    for (uint32_t rank = 0; rank < WORLD_MAX; rank++)
        longest = times[rank] > longest ? times[rank] : longest;
    uint64_t moved = is_ring ? bytes / WORLD_MAX * (WORLD_MAX - 1) : bytes;
    gw_time link = (moved + moved / MTU * HDR) * 8 * GW_NS;
    print_message("%s of %llu bytes: %llu us, which take %llu us\n", gw_coll_for(kind)->algo.name,
                  (unsigned long long)bytes, (unsigned long long)(longest / GW_US),
                  (unsigned long long)(link / GW_US));
    return longest * 1000 / link;
}

static void coll_kinds_bare__take_little_longer_than_their_bytes(void **state)
{
    (void)state;
    assert_in_range(share_of_link(GW_COLL_BROADCAST, 15000000), 1000, 1100);
    assert_in_range(share_of_link(GW_COLL_ALLGATHER, 3000000), 1000, 1100);
    assert_in_range(share_of_link(GW_COLL_REDUCE_SCATTER, 3000000), 1000, 1100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coll_kinds_bare__take_as_long_as_with_payload),
        cmocka_unit_test(coll_kinds_bare__count_whatever_the_network_does),
        cmocka_unit_test(coll_kinds_bare__take_little_longer_than_their_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
