/*
 * The communicator alone: which way calls go, how sums are divided over servers, what is refused,
 * and what is told when a part fails. Whole jobs under faults are in tests/model.
 */
#include "calls_fixture.h"

enum {
    COUNT = 1000,
};

static const struct plan two_by_two = {.world = 2, .servers = 2, .via = GW_VIA_INA, .whole = 4096};

/* Rank r brings (r + 1) * i of element i. */
static void fill(int32_t *values, uint64_t count, uint32_t rank)
{
    for (uint64_t i = 0; i < count; i++)
        values[i] = (int32_t)(i * (rank + 1));
}

/* Memory of every rank for one call. */
struct buffers {
    int32_t *in[RANKS_MAX], *out[RANKS_MAX];
};

static void buffers_take(const struct net *net, struct buffers *buffers, uint64_t count)
{
    for (uint32_t rank = 0; rank < net->plan.world; rank++) {
        buffers->in[rank] = gw_test_take(count * sizeof(int32_t));
        buffers->out[rank] = gw_test_take(count * sizeof(int32_t));
        memset(buffers->out[rank], 0xff, count * sizeof(int32_t));
        fill(buffers->in[rank], count, rank);
    }
}

static void buffers_free(const struct net *net, const struct buffers *buffers)
{
    for (uint32_t rank = 0; rank < net->plan.world; rank++) {
        free(buffers->in[rank]);
        free(buffers->out[rank]);
    }
}

/* An all-reduce of int32 by all ranks, from start to end. */
static void sum(struct net *net, enum gw_via via, uint64_t count)
{
    struct buffers buffers;
    uint32_t world = net->plan.world;
    buffers_take(net, &buffers, count);
    for (uint32_t rank = 0; rank < world; rank++) {
        net->ranks[rank].event_count = 0;
        start(net, rank,
              &(struct gw_call){.kind = GW_CALL_ALLREDUCE,
                                .via = via,
                                .type = GW_DTYPE_I32,
                                .number = 42,
                                .in = buffers.in[rank],
                                .out = buffers.out[rank],
                                .count = count});
    }
    run_for(net, 5 * GW_MS);
    for (uint32_t rank = 0; rank < world; rank++) {
        assert_int_equal(net->ranks[rank].event_count, 1);
        assert_int_equal(net->ranks[rank].events[0].kind, GW_COMMUNICATOR_DONE);
        assert_int_equal(net->ranks[rank].events[0].call, 42);
        for (uint64_t i = 0; i < count; i++)
            assert_int_equal(buffers.out[rank][i], i * world * (world + 1) / 2);
    }
    buffers_free(net, &buffers);
}

static void communicator_sums__small_go_to_servers_in_turn(void **state)
{
    (void)state;
    struct net net;
    net_start(&net, &two_by_two);
    for (uint32_t i = 0; i < 3; i++)
        sum(&net, GW_VIA_DEFAULT, COUNT); /* 3 fragments */
    assert_int_equal(results_of(&net, 0, GW_VIA_INA), 6);
    assert_int_equal(results_of(&net, 1, GW_VIA_INA), 3);
    assert_int_equal(results_of(&net, 0, GW_VIA_PS) + results_of(&net, 1, GW_VIA_PS), 0);
    leave(&net);
    net_close(&net);
}

static void communicator_sums__large_are_divided(void **state)
{
    (void)state;
    struct net net;
    net_start(&net, &(struct plan){
                        .world = 3, .servers = 3, .via = GW_VIA_INA, .whole = 4 * (COUNT - 1)});
    sum(&net, GW_VIA_DEFAULT, COUNT);
    for (uint32_t server = 0; server < 3; server++)
        assert_int_equal(results_of(&net, server, GW_VIA_INA), 1);
    /* 24, 24 and 23 fragments, the first to the second server: it is its turn. */
    sum(&net, GW_VIA_DEFAULT, 70 * VALUES + 1);
    assert_int_equal(results_of(&net, 0, GW_VIA_INA), 25);
    assert_int_equal(results_of(&net, 1, GW_VIA_INA), 24);
    assert_int_equal(results_of(&net, 2, GW_VIA_INA), 25);
    leave(&net);
    net_close(&net);
}

static void communicator_sums__other_via_joins_when_it_is_called(void **state)
{
    (void)state;
    struct net net;
    net_start(&net, &two_by_two);
    for (uint32_t server = 0; server < 2; server++)
        assert_int_equal(gw_coordinator_phase(net.homes[server].shards[1].coordinator),
                         GW_COORDINATOR_GATHERING);
    sum(&net, GW_VIA_PS, COUNT);
    sum(&net, GW_VIA_INA, COUNT); /* one row of turns for both */
    assert_int_equal(results_of(&net, 0, GW_VIA_PS), 3);
    assert_int_equal(results_of(&net, 1, GW_VIA_INA), 3);
    assert_int_equal(gw_coordinator_phase(net.homes[1].shards[1].coordinator),
                     GW_COORDINATOR_RUNNING);
    leave(&net);
    net_close(&net);
}

static void communicator_sums__what_servers_cannot_goes_by_ring(void **state)
{
    (void)state;
    struct net net;
    double in[2][2] = {{1.5, 2}, {1e300, -2}}, out[2][2];
    int32_t low[2] = {4, -9}, least[2] = {0};
    net_start(&net, &two_by_two);
    for (uint32_t rank = 0; rank < 2; rank++) {
        start(&net, rank,
              &(struct gw_call){.kind = GW_CALL_ALLREDUCE,
                                .type = GW_DTYPE_F64,
                                .in = in[rank],
                                .out = out[rank],
                                .count = 2});
        start(&net, rank,
              &(struct gw_call){.kind = GW_CALL_REDUCE,
                                .via = GW_VIA_PS,
                                .type = GW_DTYPE_I32,
                                .op = GW_OP_MIN,
                                .in = &low[rank],
                                .out = rank == 1 ? &least[rank] : NULL,
                                .count = 1,
                                .peer = 1});
    }
    run_for(&net, 5 * GW_MS);
    for (uint32_t rank = 0; rank < 2; rank++) {
        assert_int_equal(events_of(&net.ranks[rank], GW_COMMUNICATOR_DONE), 2);
        assert_true(out[rank][0] == 1e300 + 1.5 && out[rank][1] == 0);
        assert_int_equal(gw_communicator_stats(net.ranks[rank].comm).rerouted, 2);
        assert_int_equal(gw_communicator_stats(net.ranks[rank].comm).sums.sent, 0);
    }
    assert_int_equal(least[1], -9);
    leave(&net);
    net_close(&net);
}

static void communicator_reduce__is_the_roots_alone(void **state)
{
    (void)state;
    struct net net;
    struct buffers buffers;
    net_start(&net, &(struct plan){.world = 3, .servers = 2, .via = GW_VIA_PS, .whole = 4096});
    uint32_t blocks = block_count(&net.ranks[0]);
    for (uint32_t via = GW_VIA_INA; via <= GW_VIA_RING; via++) {
        buffers_take(&net, &buffers, COUNT);
        for (uint32_t rank = 0; rank < 3; rank++)
            start(&net, rank,
                  &(struct gw_call){.kind = GW_CALL_REDUCE,
                                    .via = (enum gw_via)via,
                                    .type = GW_DTYPE_I32,
                                    .in = buffers.in[rank],
                                    .out = buffers.out[rank],
                                    .count = COUNT,
                                    .peer = 2});
        run_for(&net, 5 * GW_MS);
        for (uint32_t rank = 0; rank < 3; rank++) {
            assert_int_equal(events_of(&net.ranks[rank], GW_COMMUNICATOR_DONE), via + 1);
            for (uint32_t i = 0; i < COUNT; i++)
                assert_int_equal(buffers.out[rank][i], rank == 2 ? (int32_t)(6 * i) : -1);
        }
        buffers_free(&net, &buffers);
    }
    assert_int_equal(block_count(&net.ranks[0]), blocks + 2); /* workers via ina */
    leave(&net);
    net_close(&net);
}

static void communicator_call__without_memory_for_a_reduce(void **state)
{
    (void)state;
    struct net net;
    int32_t value = 1;
    net_start(&net, &two_by_two);
    net.ranks[0].is_poor = true;
    struct gw_call call = {
        .kind = GW_CALL_REDUCE, .type = GW_DTYPE_I32, .in = &value, .count = 1, .peer = 1};
    assert_int_equal(gw_communicator_call(net.ranks[0].comm, &call, gw_mem_now(net.mem)),
                     GW_ERR_NO_MEMORY);
    leave(&net);
    net_close(&net);
}

/* All kinds by flows, messages and values at the same time, with calls of one row among them. */
static void communicator_call__all_kinds_at_once(void **state)
{
    (void)state;
    struct net net;
    float spread[2] = {0, 7}, all[2][2], part[2], both[2][2] = {{1, 2}, {10, 20}}, got[2] = {0};
    float pushed = 2.5F, pulled[2] = {0};
    net_start(&net, &two_by_two);
    for (uint32_t rank = 0; rank < 2; rank++) {
        const struct gw_call calls[] = {
            {.kind = GW_CALL_BROADCAST, .out = &spread[rank], .count = 1, .peer = 1},
            {.kind = GW_CALL_ALLGATHER, .in = both[rank], .out = all[rank], .count = 1},
            {.kind = GW_CALL_REDUCE_SCATTER, .in = both[rank], .out = &part[rank], .count = 1},
            {.kind = GW_CALL_BARRIER},
            {.kind = GW_CALL_BARRIER, .via = GW_VIA_RING},
            {.kind = GW_CALL_SEND, .in = both[rank], .count = 4, .peer = !rank, .tag = 5},
            {.kind = GW_CALL_RECEIVE, .out = &got[rank], .count = 9, .peer = !rank, .tag = 5},
            {.kind = GW_CALL_PUSH, .in = &pushed, .count = 1, .key = 99 + rank},
        };
        for (uint32_t i = 0; i < GW_COUNT_OF(calls); i++)
            start(&net, rank, &calls[i]);
    }
    run_for(&net, 10 * GW_MS);
    for (uint32_t rank = 0; rank < 2; rank++) {
        assert_int_equal(events_of(&net.ranks[rank], GW_COMMUNICATOR_DONE), 8);
        net.ranks[rank].event_count = 0;
        start(&net, rank,
              &(struct gw_call){
                  .kind = GW_CALL_PULL, .out = &pulled[rank], .count = 1, .key = 100 - rank});
        start(&net, rank,
              &(struct gw_call){
                  .kind = GW_CALL_PULL, .number = 3, .out = both, .count = 3, .key = 99});
    }
    run_for(&net, 10 * GW_MS);
    for (uint32_t rank = 0; rank < 2; rank++) {
        assert_true(spread[rank] == 7 && part[rank] == (rank ? 22 : 11) && pulled[rank] == 2.5F);
        assert_true(all[rank][0] == 1 && all[rank][1] == 10 && got[rank] == both[!rank][0]);
        assert_int_equal(events_of(&net.ranks[rank], GW_COMMUNICATOR_DONE), 1);
        assert_int_equal(events_of(&net.ranks[rank], GW_COMMUNICATOR_REFUSED), 1);
    }
    leave(&net);
    net_close(&net);
}

static void communicator_call__invalid(void **state)
{
    (void)state;
    struct net net;
    int32_t x = 0;
    net_start(&net, &two_by_two);
    const struct gw_call calls[] = {
        {.kind = GW_CALL_KINDS, .in = &x, .out = &x, .count = 1},
        {.kind = GW_CALL_ALLREDUCE, .in = &x, .out = &x, .count = 0},
        {.kind = GW_CALL_ALLREDUCE, .in = NULL, .out = &x, .count = 1},
        {.kind = GW_CALL_ALLREDUCE, .in = &x, .out = NULL, .count = 1},
        {.kind = GW_CALL_ALLREDUCE, .type = GW_DTYPES, .in = &x, .out = &x, .count = 1},
        {.kind = GW_CALL_ALLREDUCE, .op = GW_OPS, .in = &x, .out = &x, .count = 1},
        {.kind = GW_CALL_ALLREDUCE, .via = GW_VIA_DEFAULT + 1, .in = &x, .out = &x, .count = 1},
        {.kind = GW_CALL_ALLREDUCE, .in = &x, .out = &x, .count = UINT64_C(1) << 49},
        {.kind = GW_CALL_ALLREDUCE,
         .via = GW_VIA_RING,
         .in = &x,
         .out = &x,
         .count = UINT64_C(1) << 40},
        {.kind = GW_CALL_REDUCE, .in = &x, .out = &x, .count = 1, .peer = 2},
        {.kind = GW_CALL_BROADCAST, .out = &x, .count = 1, .peer = 2},
        {.kind = GW_CALL_BROADCAST, .in = &x, .count = 1, .peer = 1},
        {.kind = GW_CALL_SEND, .in = &x, .count = 1, .peer = 0},
        {.kind = GW_CALL_SEND, .in = &x, .count = 1, .peer = 2},
        {.kind = GW_CALL_SEND, .in = &x, .count = 1, .peer = 1, .tag = 1 << 24},
        {.kind = GW_CALL_RECEIVE, .out = &x, .count = (UINT64_C(1) << 36) + 1, .peer = 1},
        {.kind = GW_CALL_PUSH, .type = GW_DTYPES, .in = &x, .count = 1},
        {.kind = GW_CALL_PULL, .in = &x, .count = 1},
        {.kind = GW_CALL_PULL, .out = &x, .count = (UINT64_C(1) << 34) + 1},
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(calls); i++)
        assert_int_equal(gw_communicator_call(net.ranks[0].comm, &calls[i], gw_mem_now(net.mem)),
                         GW_ERR_INVALID);
    leave(&net); /* nothing is left of them */
    struct gw_call call = {.kind = GW_CALL_BARRIER};
    assert_int_equal(gw_communicator_call(net.ranks[0].comm, &call, gw_mem_now(net.mem)),
                     GW_ERR_OUT);
    net_close(&net);
}

/* As many as there may be, of one kind after the other: nothing is refused for room. */
static void communicator_call__as_many_as_there_may_be(void **state)
{
    (void)state;
    struct net net;
    static const enum gw_call_kind kinds[] = {GW_CALL_BARRIER, GW_CALL_SEND, GW_CALL_PUSH};
    static unsigned char from[2][GW_COMMUNICATOR_CALLS_MAX], to[2][GW_COMMUNICATOR_CALLS_MAX];
    net_start(&net, &two_by_two);
    for (uint32_t k = 0; k < GW_COUNT_OF(kinds); k++) {
        for (uint32_t rank = 0; rank < 2; rank++)
            for (uint32_t i = 0; i < GW_COMMUNICATOR_CALLS_MAX; i++) {
                struct gw_call call = {.kind = kinds[k],
                                       .type = GW_DTYPE_U8,
                                       .in = &from[rank][i],
                                       .count = 1,
                                       .peer = !rank,
                                       .tag = i / 2,
                                       .key = i};
                if (call.kind == GW_CALL_SEND && i % 2) {
                    call.kind = GW_CALL_RECEIVE;
                    call.out = &to[rank][i];
                }
                start(&net, rank, &call);
            }
        assert_int_equal(gw_communicator_call(net.ranks[0].comm,
                                              &(struct gw_call){.kind = GW_CALL_BARRIER},
                                              gw_mem_now(net.mem)),
                         GW_ERR_NO_ROOM);
        run_for(&net, 10 * GW_MS);
        for (uint32_t rank = 0; rank < 2; rank++) {
            assert_int_equal(net.ranks[rank].event_count, GW_COMMUNICATOR_CALLS_MAX);
            assert_int_equal(events_of(&net.ranks[rank], GW_COMMUNICATOR_DONE),
                             GW_COMMUNICATOR_CALLS_MAX);
            net.ranks[rank].event_count = 0;
        }
    }
    leave(&net);
    net_close(&net);
}

static void communicator_call__alone_ends_at_once(void **state)
{
    (void)state;
    struct net net;
    int32_t in = 5, out[4] = {0};
    net_start(&net, &(struct plan){.world = 1, .servers = 1, .via = GW_VIA_RING, .whole = 4096});
    const struct gw_call calls[] = {
        {.kind = GW_CALL_ALLREDUCE, .type = GW_DTYPE_I32, .in = &in, .out = &out[0], .count = 1},
        {.kind = GW_CALL_REDUCE, .type = GW_DTYPE_I32, .in = &in, .out = &out[1], .count = 1},
        {.kind = GW_CALL_ALLGATHER, .type = GW_DTYPE_I32, .in = &in, .out = &out[2], .count = 1},
        {.kind = GW_CALL_REDUCE_SCATTER,
         .type = GW_DTYPE_I32,
         .in = &in,
         .out = &out[3],
         .count = 1},
        {.kind = GW_CALL_BROADCAST, .type = GW_DTYPE_I32, .out = &in, .count = 1},
        {.kind = GW_CALL_BARRIER},
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(calls); i++) {
        struct gw_call call = calls[i];
        call.via = GW_VIA_DEFAULT;
        start(&net, 0, &call);
    }
    for (uint32_t i = 0; i < GW_COUNT_OF(calls); i++) {
        struct gw_communicator_event event;
        assert_true(gw_communicator_has_work(net.ranks[0].comm));
        assert_true(gw_communicator_poll(net.ranks[0].comm, &event, gw_mem_now(net.mem)));
        assert_int_equal(event.kind, GW_COMMUNICATOR_DONE);
    }
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(out[i], 5);
    leave(&net);
    net_close(&net);
}

static void communicator_open__takes_calls_before(void **state)
{
    (void)state;
    struct net net;
    int32_t values[2] = {1, 2};
    net_open(&net, &two_by_two);
    for (uint32_t rank = 0; rank < 2; rank++)
        start(&net, rank,
              &(struct gw_call){.kind = GW_CALL_ALLREDUCE,
                                .type = GW_DTYPE_I32,
                                .in = &values[rank],
                                .out = &values[rank],
                                .count = 1});
    run_for(&net, GW_MS);
    find_server(&net, 0, 1);
    find_server(&net, 1, 1);
    find_server(&net, 0, 0);
    run_for(&net, GW_MS);
    for (uint32_t rank = 0; rank < 2; rank++)
        assert_int_equal(net.ranks[rank].event_count, 0);
    find_server(&net, 1, 0);
    run_for(&net, 5 * GW_MS);
    for (uint32_t rank = 0; rank < 2; rank++) {
        assert_int_equal(events_of(&net.ranks[rank], GW_COMMUNICATOR_OPEN), 1);
        assert_int_equal(events_of(&net.ranks[rank], GW_COMMUNICATOR_DONE), 1);
        assert_int_equal(values[rank], 3);
    }
    leave(&net);
    net_close(&net);
}

/* The last event, and the only one of its kind, of every rank. */
static void expect_failure(const struct net *net, uint32_t rank, enum gw_job_reason reason,
                           uint32_t about, uint32_t server)
{
    const struct gw_communicator_event *event = last_event(&net->ranks[rank]);
    assert_int_equal(event->kind, GW_COMMUNICATOR_FAILED);
    assert_int_equal(event->reason, reason);
    assert_int_equal(event->about, about);
    assert_int_equal(event->server, server);
    assert_int_equal(events_of(&net->ranks[rank], GW_COMMUNICATOR_FAILED), 1);
}

static void communicator_fail__abort_is_told(void **state)
{
    (void)state;
    struct net net;
    static int32_t value[COUNT], after[COUNT];
    net_start(&net, &two_by_two);
    start(&net, 1,
          &(struct gw_call){.kind = GW_CALL_ALLREDUCE,
                            .type = GW_DTYPE_I32,
                            .in = value,
                            .out = value,
                            .count = COUNT});
    run_for(&net, GW_MS);
    memcpy(after, value, sizeof(after));
    gw_communicator_abort(net.ranks[0].comm, gw_mem_now(net.mem));
    gw_communicator_abort(net.ranks[0].comm, gw_mem_now(net.mem));
    assert_int_equal(gw_communicator_call(net.ranks[0].comm,
                                          &(struct gw_call){.kind = GW_CALL_BARRIER},
                                          gw_mem_now(net.mem)),
                     GW_ERR_OUT);
    run_for(&net, 30 * GW_MS);
    expect_failure(&net, 0, GW_JOB_LOST, 0, 2);
    expect_failure(&net, 1, GW_JOB_LOST, 0, 2);
    assert_int_equal(net.ranks[1].event_count, 1); /* the call was dropped */
    assert_memory_equal(after, value, sizeof(after));
    net_close(&net);
}

static void communicator_fail__terms_that_do_not_fit(void **state)
{
    (void)state;
    struct net net;
    net_open(&net,
             &(struct plan){
                 .world = 2, .servers = 1, .via = GW_VIA_INA, .whole = 4096, .values = VALUES + 1});
    find_servers(&net);
    run_for(&net, 10 * GW_MS);
    assert_int_equal(last_event(&net.ranks[0])->reason, GW_JOB_LIMIT);
    assert_int_equal(last_event(&net.ranks[1])->reason, GW_JOB_LIMIT);
    net_close(&net);
}

/* A server that nobody finds: the driver never says where it is. */
static void communicator_fail__server_that_is_not_found(void **state)
{
    (void)state;
    struct net net;
    net_open(&net, &two_by_two);
    for (uint32_t rank = 0; rank < 2; rank++)
        find_server(&net, rank, 0);
    run_for(&net, 2 * STALL);
    expect_failure(&net, 0, GW_JOB_SILENT, 2, 1);
    net_close(&net);
}

/* Who sleeps until the deadline misses no timeout. */
static void communicator_fail__message_that_does_not_come(void **state)
{
    (void)state;
    struct net net;
    char byte;
    net_start(&net, &two_by_two);
    start(&net, 1, &(struct gw_call){.kind = GW_CALL_RECEIVE, .out = &byte, .count = 1, .peer = 0});
    run_for(&net, STALL - GW_US);
    assert_int_equal(net.ranks[1].event_count, 0);
    run_for(&net, GW_MS);
    expect_failure(&net, 1, GW_JOB_STALLED, 0, 2);
    expect_failure(&net, 0, GW_JOB_STALLED, 0, 2);
    net_close(&net);
}

/* The same while other messages come and go. */
static void communicator_fail__message_that_does_not_come_among_others(void **state)
{
    (void)state;
    struct net net;
    char byte, bytes[2] = {0};
    net_start(&net, &two_by_two);
    start(&net, 1, &(struct gw_call){.kind = GW_CALL_RECEIVE, .out = &byte, .count = 1, .peer = 0});
    for (gw_time time = GW_MS; time < STALL; time += GW_MS) {
        start(&net, 0,
              &(struct gw_call){
                  .kind = GW_CALL_SEND, .in = &bytes[0], .count = 1, .peer = 1, .tag = 1});
        start(&net, 1,
              &(struct gw_call){
                  .kind = GW_CALL_RECEIVE, .out = &bytes[1], .count = 1, .peer = 0, .tag = 1});
        run_for(&net, GW_MS);
        assert_int_equal(last_event(&net.ranks[1])->kind, GW_COMMUNICATOR_DONE);
    }
    run_for(&net, 2 * GW_MS);
    expect_failure(&net, 1, GW_JOB_STALLED, 0, 2);
    net_close(&net);
}

/* Calls of all kinds are under way when the job fails here: nothing of theirs is written then. */
static void communicator_fail__leaves_memory_alone(void **state)
{
    (void)state;
    struct net net;
    enum { KINDS = 10, ROOM = 2 * 64 * COUNT };
    static const enum gw_call_kind kinds[KINDS] = {GW_CALL_ALLREDUCE, GW_CALL_BROADCAST,
                                                   GW_CALL_ALLREDUCE, GW_CALL_ALLGATHER,
                                                   GW_CALL_RECEIVE,   GW_CALL_REDUCE_SCATTER,
                                                   GW_CALL_PULL,      GW_CALL_PULL,
                                                   GW_CALL_PULL,      GW_CALL_PULL};
    static float in[2][ROOM], out[2][KINDS][ROOM], before[KINDS][ROOM];
    net_start(&net, &two_by_two);
    for (uint32_t key = 6; key < KINDS; key++)
        start(
            &net, 0,
            &(struct gw_call){.kind = GW_CALL_PUSH, .in = in[0], .count = 64 * COUNT, .key = key});
    run_for(&net, 5 * GW_MS);
    memset(out[0], 0x55, sizeof(out[0])); /* and zeros come, by the broadcast too */
    for (uint32_t rank = 0; rank < 2; rank++) {
        for (uint32_t i = 0; i < KINDS; i++)
            start(&net, rank,
                  &(struct gw_call){.kind = kinds[i],
                                    .via = i == 2 ? GW_VIA_RING : GW_VIA_INA,
                                    .in = in[rank],
                                    .out = out[rank][i],
                                    .count = 64 * COUNT,
                                    .peer = kinds[i] == GW_CALL_RECEIVE ? !rank : 1,
                                    .key = i});
        start(&net, rank,
              &(struct gw_call){
                  .kind = GW_CALL_SEND, .in = in[rank], .count = 64 * COUNT, .peer = !rank});
    }
    run_for(&net, 200 * GW_US);
    uint32_t done = net.ranks[0].event_count;
    gw_communicator_abort(net.ranks[0].comm, gw_mem_now(net.mem));
    memcpy(before, out[0], sizeof(before));
    run_for(&net, 20 * GW_MS);
    assert_memory_equal(before, out[0], sizeof(before));
    assert_int_equal(net.ranks[0].event_count, done + 1);
    expect_failure(&net, 0, GW_JOB_LOST, 0, 2);
    expect_failure(&net, 1, GW_JOB_LOST, 0, 2);
    net_close(&net);
}

static void communicator_fail__server_that_does_not_answer(void **state)
{
    (void)state;
    struct net net;
    net_open(&net, &two_by_two);
    gw_mem_replace(net.mem, 2 + 1, NULL, NULL);
    find_servers(&net);
    run_for(&net, STALL - GW_MS);
    for (uint32_t rank = 0; rank < 2; rank++) /* they have met, but that is not all */
        assert_int_equal(net.ranks[rank].event_count, 0);
    run_for(&net, 2 * GW_MS);
    expect_failure(&net, 0, GW_JOB_SILENT, 2, 1);
    net_close(&net);
}

static void communicator_demand__has_applications_and_their_events(void **state)
{
    (void)state;
    struct net net;
    struct gw_endpoint_cfg endpoint = {.apps_max = 1, .app_events_max = 2, .announcers_max = 3};
    net_open(&net, &two_by_two);
    gw_communicator_demand(&net.ranks[0].cfg, &endpoint);
    assert_int_equal(endpoint.apps_max, 1 + 2 * 2 * 2);
    assert_int_equal(endpoint.app_events_max, 2 + 2 * GW_COMMUNICATOR_CALLS_MAX + 2 * 2);
    assert_int_equal(endpoint.announcers_max, 3);
    net.ranks[0].cfg.notice = 1;
    gw_communicator_demand(&net.ranks[0].cfg, &endpoint);
    assert_int_equal(endpoint.announcers_max, 3 + 2 * 2 + 2);
    net_close(&net);
}

static void communicator_fail__sum_that_others_do_not_begin(void **state)
{
    (void)state;
    struct net net;
    int32_t value = 1;
    net_start(&net, &two_by_two);
    struct gw_call call = {
        .kind = GW_CALL_ALLREDUCE, .type = GW_DTYPE_I32, .in = &value, .out = &value, .count = 1};
    start(&net, 1, &call);
    run_for(&net, 3 * STALL);
    expect_failure(&net, 1, GW_JOB_STALLED, 2, 0);
    net_close(&net);
}

static void communicator_fail__overflow(void **state)
{
    (void)state;
    struct net net;
    int32_t value[2] = {INT32_MAX, 1};
    net_start(&net, &two_by_two);
    for (uint32_t rank = 0; rank < 2; rank++)
        start(&net, rank,
              &(struct gw_call){.kind = GW_CALL_ALLREDUCE,
                                .type = GW_DTYPE_I32,
                                .in = &value[rank],
                                .out = &value[rank],
                                .count = 1});
    run_for(&net, 3 * STALL);
    for (uint32_t rank = 0; rank < 2; rank++)
        assert_int_equal(last_event(&net.ranks[rank])->reason, GW_JOB_OVERFLOW);
    net_close(&net);
}

/* All that can be done without payload. */
static void communicator_call__bare(void **state)
{
    (void)state;
    struct net net;
    net_start(&net,
              &(struct plan){
                  .world = 3, .servers = 2, .via = GW_VIA_INA, .whole = 4096, .is_bare = true});
    static const struct gw_call calls[] = {
        {.kind = GW_CALL_ALLREDUCE, .count = COUNT},
        {.kind = GW_CALL_ALLREDUCE, .via = GW_VIA_RING, .count = 20 * COUNT},
        {.kind = GW_CALL_REDUCE, .via = GW_VIA_PS, .count = 20 * COUNT, .peer = 1},
        {.kind = GW_CALL_REDUCE, .via = GW_VIA_RING, .count = 20 * COUNT, .peer = 1},
        {.kind = GW_CALL_BROADCAST, .count = COUNT, .peer = 2},
        {.kind = GW_CALL_ALLGATHER, .count = COUNT},
        {.kind = GW_CALL_REDUCE_SCATTER, .count = 20 * COUNT},
        {.kind = GW_CALL_BARRIER},
    };
    uint32_t count = GW_COUNT_OF(calls);
    for (uint32_t rank = 0; rank < 3; rank++) {
        for (uint32_t i = 0; i < count; i++)
            start(&net, rank, &calls[i]);
        start(&net, rank,
              &(struct gw_call){.kind = GW_CALL_SEND, .count = 9, .peer = (rank + 1) % 3});
        run_for(&net, GW_MS); /* others are ahead */
        start(&net, rank,
              &(struct gw_call){.kind = GW_CALL_RECEIVE, .count = 9, .peer = (rank + 2) % 3});
        assert_int_equal(gw_communicator_call(net.ranks[rank].comm,
                                              &(struct gw_call){.kind = GW_CALL_PUSH, .count = 1},
                                              gw_mem_now(net.mem)),
                         GW_ERR_INVALID);
    }
    run_for(&net, 10 * GW_MS);
    for (uint32_t rank = 0; rank < 3; rank++)
        assert_int_equal(events_of(&net.ranks[rank], GW_COMMUNICATOR_DONE), count + 2);
    leave(&net);
    net_close(&net);
}

/* Who leaves does not wait for a server that has gone, be it before or meanwhile. */
static void communicator_leave__without_a_server(void **state)
{
    (void)state;
    struct net net;
    net_start(&net, &two_by_two);
    sum(&net, GW_VIA_INA, COUNT);
    sum(&net, GW_VIA_INA, COUNT);
    gw_mem_replace(net.mem, 2 + 1, NULL, NULL);
    gw_communicator_server_down(net.ranks[0].comm, 1, gw_mem_now(net.mem));
    for (uint32_t rank = 0; rank < 2; rank++)
        gw_communicator_leave(net.ranks[rank].comm, gw_mem_now(net.mem));
    run_for(&net, 2 * GW_MS);
    assert_int_equal(last_event(&net.ranks[0])->kind, GW_COMMUNICATOR_LEFT);
    assert_int_equal(last_event(&net.ranks[1])->kind, GW_COMMUNICATOR_DONE);
    gw_communicator_server_down(net.ranks[1].comm, 1, gw_mem_now(net.mem));
    run_for(&net, GW_US);
    assert_int_equal(last_event(&net.ranks[1])->kind, GW_COMMUNICATOR_LEFT);
    net_close(&net);
}

/* A push that comes when the others have let a rank go is in vain, and keeps nobody awake. */
static void communicator_leave__rests_whatever_still_comes(void **state)
{
    (void)state;
    struct net net;
    float values[4] = {1, 2, 3, 4};
    net_start(&net, &two_by_two);
    gw_mem_replace(net.mem, 2 + 1, NULL, NULL); /* a server that does not answer its LEAVE */
    gw_communicator_leave(net.ranks[1].comm, gw_mem_now(net.mem));
    run_for(&net, GW_MS);
    for (uint64_t key = 0; key < 8; key++)
        start(&net, 0,
              &(struct gw_call){.kind = GW_CALL_PUSH, .in = values, .count = 4, .key = key});
    run_for(&net, GW_MS);
    assert_int_equal(net.ranks[1].event_count, 0);
    assert_false(gw_communicator_has_work(net.ranks[1].comm));
    net_close(&net);
}

static void via_can__what_servers_can(void **state)
{
    (void)state;
    struct gw_call call = {.kind = GW_CALL_ALLREDUCE};
    for (uint32_t type = 0; type < GW_DTYPES; type++)
        for (uint32_t op = 0; op < GW_OPS; op++) {
            call.type = (enum gw_dtype)type;
            call.op = (enum gw_op)op;
            bool can = type <= GW_DTYPE_I32 && (op == GW_OP_SUM || op == GW_OP_AVERAGE);
            assert_int_equal(gw_via_can(GW_VIA_INA, &call), can);
            assert_int_equal(gw_via_can(GW_VIA_PS, &call), can);
            assert_true(gw_via_can(GW_VIA_RING, &call));
        }
    call.kind = GW_CALL_BARRIER;
    assert_true(gw_via_can(GW_VIA_INA, &call));
    call.kind = GW_CALL_BROADCAST;
    assert_false(gw_via_can(GW_VIA_INA, &call));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(communicator_sums__small_go_to_servers_in_turn),
        cmocka_unit_test(communicator_sums__large_are_divided),
        cmocka_unit_test(communicator_sums__other_via_joins_when_it_is_called),
        cmocka_unit_test(communicator_sums__what_servers_cannot_goes_by_ring),
        cmocka_unit_test(communicator_reduce__is_the_roots_alone),
        cmocka_unit_test(communicator_call__without_memory_for_a_reduce),
        cmocka_unit_test(communicator_call__all_kinds_at_once),
        cmocka_unit_test(communicator_call__invalid),
        cmocka_unit_test(communicator_call__as_many_as_there_may_be),
        cmocka_unit_test(communicator_call__alone_ends_at_once),
        cmocka_unit_test(communicator_call__bare),
        cmocka_unit_test(communicator_open__takes_calls_before),
        cmocka_unit_test(communicator_fail__abort_is_told),
        cmocka_unit_test(communicator_fail__terms_that_do_not_fit),
        cmocka_unit_test(communicator_fail__server_that_is_not_found),
        cmocka_unit_test(communicator_fail__message_that_does_not_come),
        cmocka_unit_test(communicator_fail__message_that_does_not_come_among_others),
        cmocka_unit_test(communicator_fail__leaves_memory_alone),
        cmocka_unit_test(communicator_fail__server_that_does_not_answer),
        cmocka_unit_test(communicator_demand__has_applications_and_their_events),
        cmocka_unit_test(communicator_fail__sum_that_others_do_not_begin),
        cmocka_unit_test(communicator_fail__overflow),
        cmocka_unit_test(communicator_leave__without_a_server),
        cmocka_unit_test(communicator_leave__rests_whatever_still_comes),
        cmocka_unit_test(via_can__what_servers_can),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
