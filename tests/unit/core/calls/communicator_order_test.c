/*
 * Collectives by flows and sums by servers have one order. They end in any; but what begins long
 * after a collective waits for its end, since messages tell no more of the order than its low bits.
 */
#include "calls_fixture.h"

enum {
    LARGE = 4 << 20, /* elements of the collective: it takes longer than all barriers */
    BARRIERS = 600,
    IN_WORK = 32, /* barriers */
    AHEAD_MAX = 256,
    SLICES_MAX = 5000, /* guards against hanging only */
    COLLECTIVE = 1,    /* numbers of calls */
    BARRIER = 2,
};

#define SLICE (20 * GW_US)

static const struct plan pair = {.world = 2, .servers = 2, .via = GW_VIA_INA, .whole = 4096};

/* What a rank has seen. */
struct seen {
    uint32_t started, ended; /* barriers */
    bool is_over;            /* the collective */
    bool has_waited;         /* barriers did, for it */
};

static void start_collective(struct net *net, int32_t *memory[2])
{
    for (uint32_t rank = 0; rank < 2; rank++) {
        memory[rank] = gw_test_take(LARGE * sizeof(int32_t));
        memset(memory[rank], 0, LARGE * sizeof(int32_t));
        start(net, rank,
              &(struct gw_call){.kind = GW_CALL_ALLREDUCE,
                                .via = GW_VIA_RING,
                                .type = GW_DTYPE_I32,
                                .number = COLLECTIVE,
                                .in = memory[rank],
                                .out = memory[rank],
                                .count = LARGE});
    }
}

/* Lets time pass, and takes note of what ends. */
static void pass(struct net *net, struct seen seen[2])
{
    run_for(net, SLICE);
    for (uint32_t rank = 0; rank < 2; rank++) {
        for (uint32_t i = 0; i < net->ranks[rank].event_count; i++) {
            const struct gw_communicator_event *event = &net->ranks[rank].events[i];
            assert_int_equal(event->kind, GW_COMMUNICATOR_DONE);
            seen[rank].is_over |= event->call == COLLECTIVE;
            seen[rank].ended += event->call == BARRIER;
        }
        net->ranks[rank].event_count = 0;
    }
}

/* Barriers are sums by servers. */
static void start_barriers(struct net *net, struct seen seen[2], enum gw_via via)
{
    for (uint32_t rank = 0; rank < 2; rank++)
        while (seen[rank].started < BARRIERS && seen[rank].started - seen[rank].ended < IN_WORK) {
            seen[rank].started++;
            start(net, rank,
                  &(struct gw_call){.kind = GW_CALL_BARRIER, .via = via, .number = BARRIER});
        }
}

static void end(struct net *net, int32_t *memory[2])
{
    leave(net);
    net_close(net);
    free(memory[0]);
    free(memory[1]);
}

static void communicator_order__waits_for_a_collective_of_long_before(void **state)
{
    (void)state;
    struct net net;
    struct seen seen[2] = {{0}};
    int32_t *memory[2];
    net_start(&net, &pair);
    start_collective(&net, memory);
    for (uint32_t i = 0; i < SLICES_MAX && seen[0].ended + seen[1].ended < 2 * BARRIERS; i++) {
        start_barriers(&net, seen, GW_VIA_INA);
        pass(&net, seen);
        for (uint32_t rank = 0; rank < 2; rank++) {
            assert_true(seen[rank].is_over || seen[rank].ended <= AHEAD_MAX);
            seen[rank].has_waited |= !seen[rank].is_over && seen[rank].ended == AHEAD_MAX;
        }
    }
    for (uint32_t rank = 0; rank < 2; rank++)
        assert_true(seen[rank].ended == BARRIERS && seen[rank].is_over && seen[rank].has_waited);
    end(&net, memory);
}

/* Sums that cannot begin at once are overtaken by a collective, and do not wait for its end. */
static void communicator_order__does_not_wait_for_what_comes_after(void **state)
{
    (void)state;
    struct net net;
    struct seen seen[2] = {{0}};
    int32_t *memory[2];
    net_start(&net, &pair);
    start_barriers(&net, seen, GW_VIA_PS); /* nobody has joined these shards yet */
    start_collective(&net, memory);
    for (uint32_t i = 0; i < SLICES_MAX && !(seen[0].ended && seen[1].ended); i++)
        pass(&net, seen);
    assert_true(!seen[0].is_over && !seen[1].is_over);
    for (uint32_t i = 0; i < SLICES_MAX && !(seen[0].is_over && seen[1].is_over); i++)
        pass(&net, seen);
    assert_true(seen[0].ended == IN_WORK && seen[1].ended == IN_WORK);
    end(&net, memory);
}

/* Two ranks exchange what is one message: each has the sum after one way. Who goes on at once waits
 * until the other has it, too, who may be a bit later. */
static void communicator_order__waits_for_others_to_end(void **state)
{
    (void)state;
    const gw_time one_way = 2 * LATENCY + 2 * GW_US;
    struct net net;
    int32_t values[2] = {1, 2};
    net_start(&net, &pair);
    for (int32_t sum = 3; sum <= 6; sum *= 2) {
        for (uint32_t rank = 0; rank < 2; rank++) {
            start(&net, rank,
                  &(struct gw_call){.kind = GW_CALL_ALLREDUCE,
                                    .via = GW_VIA_RING,
                                    .type = GW_DTYPE_I32,
                                    .in = &values[rank],
                                    .out = &values[rank],
                                    .count = 1});
            run_for(&net, rank == 0 && sum > 3 ? one_way : 0); /* the next one is late */
        }
        run_for(&net, sum > 3 ? 2 * one_way : one_way);
        for (uint32_t rank = 0; rank < 2; rank++) {
            assert_int_equal(events_of(&net.ranks[rank], GW_COMMUNICATOR_DONE), 1);
            assert_int_equal(values[rank], sum);
            net.ranks[rank].event_count = 0;
        }
    }
    /* Nobody has sent what the other could not take. */
    for (uint32_t rank = 0; rank < 2; rank++)
        assert_true(gw_endpoint_stats(net.ranks[rank].host.endpoint)->refused == 0);
    leave(&net);
    net_close(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(communicator_order__waits_for_a_collective_of_long_before),
        cmocka_unit_test(communicator_order__does_not_wait_for_what_comes_after),
        cmocka_unit_test(communicator_order__waits_for_others_to_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
