/*
 * A rank that does not keep to the store's protocol: whatever it sends, the other one fails the
 * job, says who it was, and nothing worse happens.
 */
#include "liar.h"

#include <signal.h>
#include <stdlib.h>

#include "base/prng.h"
#include "core/ranks/store_impl.h"

enum {
    LIAR = 1, /* rank */
    KEY = 1,  /* is its: of two ranks */
};

/* What it says, and whether instead of an answer or out of the blue. */
struct lie {
    enum gw_store_kind kind;
    uint8_t word, type;
    uint64_t count;
    uint64_t bytes; /* of the message */
};

/* Joins as everybody does, then tells the lie and answers nothing, until it is killed. */
static void tell(const struct lie *lie)
{
    static struct gw_store_message message;
    char error[GW_NET_ERROR_MAX];
    uint32_t flow;
    struct gw_value_shape shape = {.count = lie->count, .type = (enum gw_dtype)lie->type};
    struct gw_store_header header = {.word = lie->word, .key = KEY, .shape = shape};
    gw_store_write(&message, &header);
    struct gw_io *io = liar_open(LIAR, 2);
    struct gw_mesh *mesh = gw_communicator_mesh(io->comm);
    liar_join(io);
    liar_reach(io, 0);
    assert_int_equal(gw_mesh_send(mesh, 0, gw_store_tag(lie->kind, 0), &message, lie->bytes, &flow,
                                  gw_io_now(io)),
                     0);
    for (;;)
        assert_int_equal(gw_station_turn(io->station, gw_time_add(gw_io_now(io), GW_MS), error), 0);
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
    int code = lie->kind == GW_STORE_REQUEST ? gradwire_barrier(job)
               : pulls                       ? gradwire_pull(job, KEY, x, count, GRADWIRE_FLOAT32)
                                             : gradwire_push(job, KEY, x, count, GRADWIRE_FLOAT32);
    assert_int_equal(code, GRADWIRE_ERR_PEER);
    assert_string_equal(gradwire_last_error(), "rank 1 sent a message that makes no sense");
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    gradwire_close(job);
}

static void store__sees_through_requests(void **state)
{
    (void)state;
    static const struct lie lies[] = {
        {GW_STORE_REQUEST, GW_STORE_PUSH, GW_DTYPE_F32, 0, 24},
        {GW_STORE_REQUEST, GW_STORE_PUSH, GW_DTYPE_F32, 5, 24}, /* without its data */
        {GW_STORE_REQUEST, GW_STORE_PUSH, GW_DTYPE_F32, 5, 48}, /* with more */
        {GW_STORE_REQUEST, GW_STORE_PUSH, GW_DTYPE_F32, 5000, 48},
        {GW_STORE_REQUEST, GW_STORE_PUSH, GW_DTYPES, 5, 44},
        {GW_STORE_REQUEST, GW_STORE_PUSH, 255, 5, 44},
        {GW_STORE_REQUEST, GW_STORE_PUSH, GW_DTYPE_F32, UINT64_C(1) << 35, 24},
        {GW_STORE_REQUEST, GW_STORE_PULL, GW_DTYPE_F32, UINT64_MAX, 24},
        {GW_STORE_REQUEST, GW_STORE_PULL, GW_DTYPE_F32, 5, 44},
        {GW_STORE_REQUEST, GW_STORE_PULL, GW_DTYPE_F32, 0, 24},
        {GW_STORE_REQUEST, 0, GW_DTYPE_F32, 5, 44},
        {GW_STORE_REQUEST, GW_STORE_DONE, GW_DTYPE_F32, 5, 24},
        {GW_STORE_REQUEST, GW_STORE_PUSH, GW_DTYPE_F32, 5, 1},
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
        {{GW_STORE_ANSWER, GW_STORE_DONE, GW_DTYPE_F32, 5, 24}, false, true}, /* without data */
        {{GW_STORE_ANSWER, GW_STORE_DONE, GW_DTYPE_F32, 5, 48}, false, true},
        {{GW_STORE_ANSWER, GW_STORE_DONE, GW_DTYPE_F32, 5, 44}, false, false},
        {{GW_STORE_ANSWER, GW_STORE_DONE, GW_DTYPE_F32, 5000, 24}, true, true},
        {{GW_STORE_ANSWER, GW_STORE_GO, GW_DTYPE_F32, 5, 24}, false, false},
        {{GW_STORE_ANSWER, GW_STORE_GO, GW_DTYPE_F32, 5000, 24}, true, true},
        {{GW_STORE_ANSWER, GW_STORE_GO, GW_DTYPE_F32, 5000, 25}, true, false},
        {{GW_STORE_ANSWER, GW_REFUSED_OTHER_SHAPE, 77, 5, 24}, false, false},
        {{GW_STORE_ANSWER, 0, GW_DTYPE_F32, 5, 24}, false, false},
        {{GW_STORE_ANSWER, 5, GW_DTYPE_F32, 5, 24}, false, false},
        {{GW_STORE_ANSWER, 255, GW_DTYPE_F32, 5000, 24}, true, true},
        {{GW_STORE_ANSWER, GW_STORE_DONE, GW_DTYPE_F32, 5, 3}, false, false},
        {{GW_STORE_VALUE, 0, GW_DTYPE_F32, 5, 1000}, true, true}, /* too short */
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
