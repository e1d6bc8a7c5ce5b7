/*
 * A job that is started again under its name, on a switch and a server that it shares: it is let in
 * when those who had the name are given up as dead, and is refused while they live.
 */
#include "netns/processes.h"
#include "support.h"

#include <stdio.h>

#include "gradwire.h"

enum {
    WORKERS = 3,
    MORE = 4,
    COUNT = 20000,
    DEADLINE_MS = 20000,
    ROUNDS = 5,
};

static struct gw_test_daemon top, server;
static struct gw_test_worker dying[MORE], living[WORKERS], strangers[2];
static struct gw_test_worker bereaved[WORKERS], again[WORKERS];
static uint16_t ports[2]; /* of switch and server */

static int set_up(void **state)
{
    (void)state;
    char text[64];
    gw_test_free_ports(ports, GW_COUNT_OF(ports));
    gw_test_daemon_start(&top, "switch", ports[0], "");
    snprintf(text, sizeof(text), "switch: 127.0.0.1:%u\n", ports[0]);
    gw_test_daemon_start(&server, "server", ports[1], text);
    gw_test_daemon_await(&server, ": up");
    return 0;
}

static void start(struct gw_test_worker *worker, const char *job, int rank, int world)
{
    const struct gw_test_worker_cfg cfg = {
        .job = job,
        .rank = rank,
        .world = world,
        .server = ports[1],
        .switch_ = ports[0],
        .count = COUNT,
        .deadline_ms = DEADLINE_MS,
    };
    gw_test_worker_start(worker, &cfg);
}

static void start_job(struct gw_test_worker *team, const char *job, int world)
{
    for (int rank = 0; rank < world; rank++)
        start(&team[rank], job, rank, world);
}

static void assert_failed(struct gw_test_worker *worker, const char *why)
{
    gw_test_worker_join(worker);
    assert_int_equal(worker->error, GRADWIRE_ERR_PEER);
    if (!strstr(worker->text, why))
        fail_msg("%s", worker->text);
}

/* At once, and of another size, which no seat of the dead is for; or all, since one has died. */
static void same_name__waits_for_the_dead_alone(void **state)
{
    (void)state;
    start_job(dying, "dying", WORKERS);
    start_job(living, "living", WORKERS);
    start_job(bereaved, "bereaved", WORKERS);
    gw_test_workers_await(dying, WORKERS, ROUNDS);
    gw_test_workers_await(living, WORKERS, ROUNDS);
    gw_test_workers_await(bereaved, WORKERS, ROUNDS);
    gw_test_worker_crash(&bereaved[1]);
    start_job(again, "bereaved", WORKERS);
    start(&strangers[0], "living", 1, WORKERS);
    start(&strangers[1], "living", 1, MORE);
    for (int rank = 0; rank < WORKERS; rank++)
        gw_test_worker_crash(&dying[rank]);
    start_job(dying, "dying", MORE);
    gw_test_workers_await(dying, MORE, ROUNDS);
    gw_test_workers_await(again, WORKERS, ROUNDS);
    assert_failed(&bereaved[0], "rank 1 is lost");
    assert_failed(&bereaved[2], "rank 1 is lost");
    assert_failed(&strangers[0], "another process has our rank of the job");
    assert_failed(&strangers[1], "a job of that name is there with another number of workers");
    gw_test_workers_await(living, WORKERS, ROUNDS); /* which has noticed nothing */
    gw_test_workers_stop(dying, MORE);
    gw_test_workers_stop(living, WORKERS);
    gw_test_workers_stop(again, WORKERS);
    assert_int_equal(gw_test_daemon_stop(&server), 0);
    assert_int_equal(gw_test_daemon_stop(&top), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(same_name__waits_for_the_dead_alone, set_up,
                                        gw_test_end_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
