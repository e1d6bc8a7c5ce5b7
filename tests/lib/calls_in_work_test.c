/*
 * How many calls a job takes and which are refused, with two ranks that are threads of this process
 * (GRADWIRE_DATAPATH), and what is said of arguments that no call can have.
 */
#include "lib/thread_ranks.h"

enum {
    WORLD = 2,
    COUNT = 3,
    MANY = 3 * GRADWIRE_CALLS_MAX,
    TAG = 1,
};

/* Rank 1 of the pair: joins in all that rank 0 does below. */
static void *run_peer(void *options)
{
    gradwire *job;
    char word = 'x';
    float x[COUNT] = {0};
    if (gradwire_open(options, &job) != GRADWIRE_OK)
        return NULL;
    int code = GRADWIRE_OK;
    for (int i = 0; i < MANY && !code; i++)
        code = gradwire_allreduce(job, x, x, COUNT, GRADWIRE_FLOAT32, GRADWIRE_SUM);
    if (!code)
        code = gradwire_send(job, &word, 1, 0, TAG);
    gradwire_close(job);
    return code ? NULL : options;
}

static gradwire *open_alone(void)
{
    struct gradwire_options options;
    gradwire *job = NULL;
    prepare(&options, 0, 1);
    assert_int_equal(gradwire_open(&options, &job), GRADWIRE_OK);
    return job;
}

/* A message that is awaited takes one place, and no more, for as long as it takes. */
static void calls_in_work__that_last_leave_room_for_others(void **state)
{
    (void)state;
    struct gradwire_options options[WORLD];
    pthread_t peer;
    void *did_all;
    gradwire *job = NULL;
    gradwire_call call;
    char word = 0;
    float x[COUNT] = {0};
    prepare(&options[0], 0, WORLD);
    prepare(&options[1], 1, WORLD);
    assert_int_equal(pthread_create(&peer, NULL, run_peer, &options[1]), 0);
    assert_int_equal(gradwire_open(&options[0], &job), GRADWIRE_OK);
    assert_int_equal(gradwire_receive_start(job, &word, 1, 1, TAG, &call), GRADWIRE_OK);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(gradwire_allreduce(job, x, x, COUNT, GRADWIRE_FLOAT32, GRADWIRE_SUM),
                         GRADWIRE_OK);
    assert_int_equal(gradwire_wait(job, call), GRADWIRE_OK);
    assert_int_equal(word, 'x');
    gradwire_close(job);
    assert_int_equal(pthread_join(peer, &did_all), 0);
    assert_non_null(did_all);
}

/* However fast they end: none is forgotten before it was waited for. */
static void calls_in_work__are_those_not_waited_for(void **state)
{
    (void)state;
    gradwire *job = open_alone();
    gradwire_call calls[GRADWIRE_CALLS_MAX], call;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < GRADWIRE_CALLS_MAX; i++)
            assert_int_equal(gradwire_barrier_start(job, &calls[i]), GRADWIRE_OK);
        assert_int_equal(gradwire_barrier_start(job, &call), GRADWIRE_ERR_BUSY);
        for (int i = GRADWIRE_CALLS_MAX; i-- > 0;)
            assert_int_equal(gradwire_wait(job, calls[i]), GRADWIRE_OK);
    }
    assert_int_equal(gradwire_barrier(job), GRADWIRE_OK);
    assert_int_equal(gradwire_wait(job, 0), GRADWIRE_ERR_INVALID);
    assert_int_equal(gradwire_test(job, calls[9] + MANY, NULL), GRADWIRE_ERR_INVALID);
    gradwire_close(job);
}

static void calls__say_what_is_wrong_with_their_memory(void **state)
{
    (void)state;
    gradwire *job = open_alone();
    float x[2 * COUNT] = {0};
    assert_int_equal(gradwire_allreduce(job, x, x + 1, COUNT, GRADWIRE_FLOAT32, GRADWIRE_SUM),
                     GRADWIRE_ERR_INVALID);
    assert_non_null(strstr(gradwire_last_error(), "overlap"));
    assert_int_equal(gradwire_allgather(job, x + 1, x, COUNT, GRADWIRE_FLOAT32),
                     GRADWIRE_ERR_INVALID);
    assert_non_null(strstr(gradwire_last_error(), "this rank's part of out"));
    assert_int_equal(gradwire_reduce_scatter(job, x, x + 1, COUNT, GRADWIRE_FLOAT32, GRADWIRE_SUM),
                     GRADWIRE_ERR_INVALID);
    assert_non_null(strstr(gradwire_last_error(), "this rank's part of in"));
    assert_int_equal(gradwire_broadcast(job, NULL, COUNT, GRADWIRE_FLOAT32, 0),
                     GRADWIRE_ERR_INVALID);
    assert_string_equal(gradwire_last_error(), "data is NULL");
    assert_int_equal(gradwire_allreduce(job, x, x + COUNT, COUNT, GRADWIRE_FLOAT32, GRADWIRE_SUM),
                     GRADWIRE_OK);
    assert_int_equal(gradwire_allgather(job, x, x, COUNT, GRADWIRE_FLOAT32), GRADWIRE_OK);
    gradwire_close(job);
}

static void assert_no_fragments(const gradwire *job, int type, int via, const char *why)
{
    assert_int_equal(
        gradwire_fragments(job, COUNT, (enum gradwire_type)type, (enum gradwire_via)via), 0);
    assert_string_equal(gradwire_last_error(), why);
}

static void calls_fragments__says_what_is_wrong(void **state)
{
    (void)state;
    gradwire *job = open_alone();
    assert_no_fragments(NULL, GRADWIRE_FLOAT32, GRADWIRE_VIA_RING, "no job is given");
    assert_no_fragments(job, 99, GRADWIRE_VIA_RING, "type 99 is not known");
    assert_no_fragments(job, GRADWIRE_FLOAT32, 99, "via is 99: ina, ps, ring or default");
    assert_int_equal(gradwire_fragments(job, COUNT, GRADWIRE_FLOAT32, GRADWIRE_VIA_RING), 1);
    gradwire_close(job);
}

/* Ranks that all came, but wait for each other in different sums, are told what to look at. */
static void ranks_with_another_via_are_told(void **state)
{
    (void)state;
    struct gradwire_options options[WORLD];
    pthread_t peer;
    gradwire *job = NULL;
    prepare(&options[0], 0, WORLD);
    prepare(&options[1], 1, WORLD);
    options[0].deadline_ms = options[1].deadline_ms = 500;
    options[1].via = GRADWIRE_VIA_PS;
    assert_int_equal(pthread_create(&peer, NULL, run_peer, &options[1]), 0);
    assert_int_not_equal(gradwire_open(&options[0], &job), GRADWIRE_OK);
    assert_non_null(strstr(gradwire_last_error(), "are via and server equal"));
    assert_int_equal(pthread_join(peer, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_in_work__that_last_leave_room_for_others),
        cmocka_unit_test(calls_in_work__are_those_not_waited_for),
        cmocka_unit_test(calls__say_what_is_wrong_with_their_memory),
        cmocka_unit_test(calls_fragments__says_what_is_wrong),
        cmocka_unit_test(ranks_with_another_via_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
