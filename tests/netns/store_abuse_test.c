/*
 * A rank that does not keep to the store's protocol: whatever it sends, the other one fails the
 * job, says who it was, and nothing worse happens.
 */
#include "ranks_fixture.h"

#include <signal.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/prng.h"
#include "lib/options.h"
#include "net/ranks/team_store_impl.h"

enum {
    LIAR = 1, /* rank */
    KEY = 1,  /* is its: of two ranks */
};

/* What it says, and whether instead of an answer or out of the blue. */
struct lie {
    enum gw_team_store_kind kind;
    uint8_t word, type;
    uint64_t count;
    uint64_t bytes; /* of the message */
};

static void open_liar(struct gw_station **station, struct gw_team **comm)
{
    struct gradwire_options options = options_of(LIAR);
    struct gw_io_plan plan;
    char error[GW_NET_ERROR_MAX];
    options.world = 2;
    assert_int_equal(gw_options_plan(&options, &plan, error), 0);
    struct gw_station_cfg cfg = {
        .family_of = plan.join,
        .entropies = plan.paths,
        .packets = 1024,
        .mtu = 4u * plan.values,
        .peers_max = 16,
        .accepts = true,
        .node_address = 4711,
        .role = GW_ATTACH_HOST,
        .keys = &plan.key,
        .key_count = 1,
    };
    assert_int_equal(gw_key_setup(), 0);
    assert_int_equal(gw_station_open(&cfg, station, error), 0);
    struct gw_team_cfg comm_cfg = {
        .station = *station,
        .address = cfg.node_address,
        .job = gw_key_job(&plan.key, plan.job),
        .rank = LIAR,
        .world = 2,
        .join = plan.join,
        .mtu = cfg.mtu,
        .rate_bps = plan.rate_bps,
        .coll = (const struct gw_coll_ops *)gw_registry_find(&gw_coll_registry, "ring"),
        .transport = plan.transport,
        .stall = plan.stall,
        .seed = 1,
    };
    assert_int_equal(gw_team_open(&comm_cfg, comm, error), 0);
}

/* Joins as everybody does, then tells the lie and answers nothing, until it is killed. */
static void tell(const struct lie *lie)
{
    struct gw_station *station;
    struct gw_team *comm;
    struct gw_neighbour_event neighbour;
    struct gw_team_event event = {.kind = GW_TEAM_DONE};
    static struct gw_team_store_message message;
    char error[GW_NET_ERROR_MAX];
    uint32_t flow;
    bool is_told = false;
    struct gw_team_value_shape shape = {.count = lie->count, .type = (enum gw_dtype)lie->type};
    gw_team_store_write(&message, lie->word, KEY, &shape);
    open_liar(&station, &comm);
    for (;;) {
        gw_time now = gw_loop_now(gw_station_loop(station));
        assert_int_equal(gw_station_turn(station, gw_time_add(now, GW_MS), error), 0);
        while (gw_station_poll(station, &neighbour))
            gw_team_neighbour(comm, &neighbour);
        if (is_told)
            continue;
        while (event.kind != GW_TEAM_OPEN && gw_team_poll(comm, &event, now))
            continue;
        is_told =
            event.kind == GW_TEAM_OPEN && gw_team_send(comm, 0, gw_team_store_tag(lie->kind, 0),
                                                       &message, lie->bytes, &flow, now) == GW_OK;
    }
}

/* Rank 0 asks the liar, or waits for it: either must end, and name it. */
static void is_seen_through(const struct lie *lie, bool is_large, bool pulls)
{
    static float x[5000];
    assert_int_equal(gw_mix64(KEY) % 2, LIAR);
    gradwire *job;
    choose_join("127.0.0.1");
    via = GRADWIRE_VIA_RING;
    struct gradwire_options options = options_of(0);
    options.world = 2;
    options.deadline_ms = 20000;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(GUARD_S);
        tell(lie);
    }
    assert_int_equal(gradwire_open(&options, &job), 0);
    size_t count = is_large ? 5000 : 5;
    int code = lie->kind == GW_TEAM_STORE_REQUEST ? gradwire_barrier(job)
               : pulls ? gradwire_pull(job, KEY, x, count, GRADWIRE_FLOAT32)
                       : gradwire_push(job, KEY, x, count, GRADWIRE_FLOAT32);
    assert_int_equal(code, GRADWIRE_ERR_PEER);
    assert_string_equal(gradwire_last_error(), "rank 1 sent a push or pull that makes no sense");
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    gradwire_close(job);
}

static void store__sees_through_requests(void **state)
{
    (void)state;
    static const struct lie lies[] = {
        {GW_TEAM_STORE_REQUEST, GW_TEAM_STORE_PUSH, GW_DTYPE_F32, 0, 24},
        {GW_TEAM_STORE_REQUEST, GW_TEAM_STORE_PUSH, GW_DTYPE_F32, 5, 24}, /* without its data */
        {GW_TEAM_STORE_REQUEST, GW_TEAM_STORE_PUSH, GW_DTYPE_F32, 5, 48}, /* with more */
        {GW_TEAM_STORE_REQUEST, GW_TEAM_STORE_PUSH, GW_DTYPE_F32, 5000, 48},
        {GW_TEAM_STORE_REQUEST, GW_TEAM_STORE_PUSH, GW_DTYPE_SUMMABLE, 5, 44},
        {GW_TEAM_STORE_REQUEST, GW_TEAM_STORE_PUSH, 255, 5, 44},
        {GW_TEAM_STORE_REQUEST, GW_TEAM_STORE_PUSH, GW_DTYPE_F32, UINT64_C(1) << 35, 24},
        {GW_TEAM_STORE_REQUEST, GW_TEAM_STORE_PULL, GW_DTYPE_F32, UINT64_MAX, 24},
        {GW_TEAM_STORE_REQUEST, GW_TEAM_STORE_PULL, GW_DTYPE_F32, 5, 44},
        {GW_TEAM_STORE_REQUEST, GW_TEAM_STORE_PULL, GW_DTYPE_F32, 0, 24},
        {GW_TEAM_STORE_REQUEST, 0, GW_DTYPE_F32, 5, 44},
        {GW_TEAM_STORE_REQUEST, GW_TEAM_STORE_DONE, GW_DTYPE_F32, 5, 24},
        {GW_TEAM_STORE_REQUEST, GW_TEAM_STORE_PUSH, GW_DTYPE_F32, 5, 1},
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(lies); i++)
        is_seen_through(&lies[i], false, false);
}

static void store__sees_through_answers(void **state)
{
    (void)state;
    static const struct {
        struct lie lie;
        bool is_large, pulls;
    } cases[] = {
        {{GW_TEAM_STORE_ANSWER, GW_TEAM_STORE_DONE, GW_DTYPE_F32, 5, 24},
         false,
         true}, /* without data */
        {{GW_TEAM_STORE_ANSWER, GW_TEAM_STORE_DONE, GW_DTYPE_F32, 5, 48}, false, true},
        {{GW_TEAM_STORE_ANSWER, GW_TEAM_STORE_DONE, GW_DTYPE_F32, 5, 44}, false, false},
        {{GW_TEAM_STORE_ANSWER, GW_TEAM_STORE_DONE, GW_DTYPE_F32, 5000, 24}, true, true},
        {{GW_TEAM_STORE_ANSWER, GW_TEAM_STORE_GO, GW_DTYPE_F32, 5, 24}, false, false},
        {{GW_TEAM_STORE_ANSWER, GW_TEAM_STORE_GO, GW_DTYPE_F32, 5000, 24}, true, true},
        {{GW_TEAM_STORE_ANSWER, GW_TEAM_STORE_GO, GW_DTYPE_F32, 5000, 25}, true, false},
        {{GW_TEAM_STORE_ANSWER, GW_TEAM_OTHER_SHAPE, 77, 5, 24}, false, false},
        {{GW_TEAM_STORE_ANSWER, 0, GW_DTYPE_F32, 5, 24}, false, false},
        {{GW_TEAM_STORE_ANSWER, 5, GW_DTYPE_F32, 5, 24}, false, false},
        {{GW_TEAM_STORE_ANSWER, 255, GW_DTYPE_F32, 5000, 24}, true, true},
        {{GW_TEAM_STORE_ANSWER, GW_TEAM_STORE_DONE, GW_DTYPE_F32, 5, 3}, false, false},
        {{GW_TEAM_STORE_VALUE, 0, GW_DTYPE_F32, 5, 1000}, true, true}, /* too short */
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(cases); i++)
        is_seen_through(&cases[i].lie, cases[i].is_large, cases[i].pulls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store__sees_through_requests),
        cmocka_unit_test(store__sees_through_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
